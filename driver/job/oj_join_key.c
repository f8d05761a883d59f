#include "oj_join_key.h"

#include "../../flatten/base/oj_array.h"
#include "../base/oj_sql_words.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <ogr_srs_api.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- bytes -------------------------------------------------------------- */

/* After the first failure nothing is added. */
struct writer
{
    struct oj_join_key *key;
    oj_status status;
    struct oj_error *err;
};

static void add_bytes(struct writer *w, const void *bytes, int64_t n)
{
    struct oj_join_key *key = w->key;
    if (w->status == OJ_OK)
        w->status = oj_reserve(&key->bytes, key->n, key->n + n, &key->capacity,
                               1, w->err);
    if (w->status != OJ_OK)
        return;
    if (n > 0)
        memcpy(key->bytes + key->n, bytes, (size_t)n);
    key->n += n;
}

static void add_number(struct writer *w, int64_t number)
{
    add_bytes(w, &number, sizeof number);
}

static void add_real(struct writer *w, double real)
{
    add_bytes(w, &real, sizeof real);
}

/* With its length, so that "a", "bc" is not "ab", "c"; NULL is not "". */
static void add_text(struct writer *w, const char *text)
{
    int64_t n = text != NULL ? (int64_t)strlen(text) : -1;
    add_number(w, n);
    if (n > 0)
        add_bytes(w, text, n);
}

static void add_list(struct writer *w, const char *const *list)
{
    for (; list != NULL && *list != NULL; list++)
        add_text(w, *list);
    add_text(w, NULL);
}

/* ---- what is read ------------------------------------------------------- */

static void add_source(struct writer *w, const struct oj_source *join)
{
    const struct oj_source_options *side = join->side;
    GDALDriverH driver = GDALGetDatasetDriver(join->dataset);
    char *path = realpath(side->dataset, NULL);
    add_text(w, path != NULL ? path : side->dataset);
    free(path);
    add_text(w, driver != NULL ? GDALGetDescription(driver) : NULL);
    add_list(w, side->open_options);
    add_text(w, side->sql);
    add_text(w, side->sql != NULL ? side->dialect : NULL);
    add_text(w, OGR_L_GetName(join->layer));
    add_text(w, side->where);
}

static void add_fields(struct writer *w, const struct oj_source *join)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(join->layer);
    int n = join->n_fields + join->n_hidden;
    add_number(w, n);
    for (int i = 0; i < n; i++)
    {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(defn, join->fields[i]);
        add_number(w, join->fields[i]);
        add_text(w, OGR_Fld_GetNameRef(field));
        add_number(w, OGR_Fld_GetType(field));
        add_number(w, OGR_Fld_GetSubType(field));
    }
}

static void add_crs(struct writer *w, OGRSpatialReferenceH srs)
{
    const char *const options[] = {"FORMAT=WKT2_2019", NULL};
    char *text = NULL;
    const int *axes;
    int n_axes = 0;
    if (srs == NULL)
    {
        add_text(w, NULL);
        return;
    }
    if (OSRExportToWktEx(srs, &text, options) != OGRERR_NONE)
    {
        CPLFree(text);
        text = NULL;
        OSRExportToProj4(srs, &text);
    }
    add_text(w, text != NULL ? text : "");
    CPLFree(text);
    axes = OSRGetDataAxisToSRSAxisMapping(srs, &n_axes);
    add_number(w, n_axes);
    for (int i = 0; i < n_axes; i++)
        add_number(w, axes[i]);
    add_real(w, OSRGetCoordinateEpoch(srs));
}

static void add_transformation(struct writer *w,
                               OGRCoordinateTransformationH transformation)
{
    add_number(w, transformation != NULL);
    if (transformation == NULL)
        return;
    add_crs(w, OCTGetSourceCS(transformation));
    add_crs(w, OCTGetTargetCS(transformation));
}

/* ---- what is made of it ------------------------------------------------- */

static void add_classes(struct writer *w, const struct oj_classes *classes)
{
    struct oj_class_field right;
    int as_number;
    add_number(w, classes != NULL);
    if (classes == NULL)
        return;
    for (int i = 0; oj_classes_field_at(classes, i, &right, &as_number); i++)
    {
        add_number(w, right.column);
        add_number(w, right.type);
        add_number(w, right.subtype);
        add_number(w, as_number);
    }
    add_number(w, -1);
}

static void add_sides(struct writer *w, const struct oj_sides *sides)
{
    const struct oj_conditions *conditions = &sides->conditions;
    add_number(w, sides->reshape[1].shape);
    add_number(w, sides->reshape[1].invalid);
    add_number(w, sides->needs_points);
    add_number(w, sides->needs_fids);
    add_classes(w, conditions->on);
    add_classes(w, conditions->exclude);
    add_number(w, conditions->reach_column[1]);
    add_real(w,
             conditions->reach_column[1] >= 0 ? conditions->reach_scale : 1.0);
}

static void add_relation(struct writer *w, const struct oj_relation *relation)
{
    add_number(w, relation->op);
    add_real(w, relation->max_distance);
    add_number(w, relation->k);
    add_number(w, relation->ties);
    add_number(w, relation->distance_to);
    add_real(w, relation->min_distance);
    add_number(w, relation->metric);
    add_bytes(w, relation->mask, sizeof relation->mask);
    add_number(w, relation->exclude_self);
    add_number(w, relation->unordered_pairs);
    add_number(w, relation->exclude_same_geometry);
    add_number(w, relation->any_order);
    add_number(w, relation->share_lists);
}

/* Rows that are expected do not count: they decide only where auto joins. */
static void add_engine(struct writer *w, const char *backend,
                       const struct oj_options *options)
{
    add_text(w, backend != NULL ? backend : "auto");
    add_number(w, options->n_threads);
    add_number(w, options->quadrant_size);
    add_number(w, options->max_batch_pairs);
    add_number(w, options->input_kinds);
    add_number(w, (int64_t)options->gpus);
    add_number(w, options->gpu_memory);
    add_number(w, options->gpu_batch);
}

/* ---- GDAL's configuration ----------------------------------------------- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Messages and this cache do not change what a driver reads. */
static int is_of_no_account(const char *option)
{
    return strncasecmp(option, "OGRJOIN_", 8) == 0 ||
           strncasecmp(option, "CPL_DEBUG", 9) == 0 ||
           strncasecmp(option, "CPL_LOG", 7) == 0 ||
           strncasecmp(option, "CPL_TIMESTAMP", 13) == 0;
}

static void add_options(struct writer *w, char **list)
{
    int n = CSLCount(list);
    if (n > 0)
        qsort(list, (size_t)n, sizeof *list, compare_texts);
    for (int i = 0; i < n; i++)
    {
        if (!is_of_no_account(list[i]))
            add_text(w, list[i]);
    }
    add_text(w, NULL);
    CSLDestroy(list);
}

/* ---- the key ------------------------------------------------------------ */

int oj_join_key_is_possible(const struct oj_command *command,
                            const struct oj_source *join)
{
    const struct oj_source_options *side = &command->join;
    GDALDriverH driver = GDALGetDatasetDriver(join->dataset);
    if (command->n_windows > 0 || command->memory > 0)
        return 0;
    /* Statements of GPKG and SQLite that run first can attach databases. */
    for (const char **o = side->open_options; o != NULL && *o != NULL; o++)
    {
        if (strncasecmp(*o, "PRELUDE", 7) == 0)
            return 0;
    }
    if (side->where != NULL && oj_select_may_vary(side->where))
        return 0;
    return side->sql == NULL ||
           (!oj_select_may_vary(side->sql) &&
            !oj_select_may_reach_out(side->sql, side->dialect,
                                     driver != NULL ? GDALGetDescription(driver)
                                                    : ""));
}

oj_status oj_join_key_make(const struct oj_join_recipe *recipe,
                           struct oj_join_key *key, struct oj_error *err)
{
    struct writer w = {key, OJ_OK, err};
    key->n = 0;
    add_source(&w, recipe->join);
    add_fields(&w, recipe->join);
    add_transformation(&w, recipe->join->transformation);
    add_sides(&w, recipe->sides);
    add_relation(&w, recipe->relation);
    add_engine(&w, recipe->command->backend, &recipe->options);
    add_options(&w, CPLGetConfigOptions());
    add_options(&w, CPLGetThreadLocalConfigOptions());
    key->n_identity = key->n;
    add_bytes(&w, recipe->files->state, recipe->files->n_state);
    return w.status;
}

void oj_join_key_free(struct oj_join_key *key)
{
    const struct oj_join_key empty = {0};
    oj_free(key->bytes);
    *key = empty;
}
