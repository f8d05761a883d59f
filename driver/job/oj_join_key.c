#include "oj_join_key.h"

#include "../base/oj_sql_words.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <ogr_srs_api.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- what is read ------------------------------------------------------- */

/* NULL is not "". */
static void add_text(char ***key, const char *text)
{
    *key = CSLAddString(*key, text != NULL ? "text" : "none");
    *key = CSLAddString(*key, text);
}

__attribute__((format(printf, 2, 3))) static void
add_numbers(char ***key, const char *format, ...)
{
    char text[512];
    va_list numbers;
    va_start(numbers, format);
    vsnprintf(text, sizeof text, format, numbers);
    va_end(numbers);
    *key = CSLAddString(*key, text);
}

static void add_list(char ***key, const char *const *list)
{
    for (; list != NULL && *list != NULL; list++)
        add_text(key, *list);
    add_text(key, NULL);
}

static void add_source(char ***key, const struct oj_source *join)
{
    const struct oj_source_options *side = join->side;
    GDALDriverH driver = GDALGetDatasetDriver(join->dataset);
    char *path = realpath(side->dataset, NULL);
    add_text(key, path != NULL ? path : side->dataset);
    free(path);
    add_text(key, driver != NULL ? GDALGetDescription(driver) : NULL);
    add_list(key, side->open_options);
    add_text(key, side->sql);
    add_text(key, side->sql != NULL ? side->dialect : NULL);
    add_text(key, OGR_L_GetName(join->layer));
    add_text(key, side->where);
}

static void add_fields(char ***key, const struct oj_source *join)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(join->layer);
    for (int i = 0; i < join->n_fields + join->n_hidden; i++)
    {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(defn, join->fields[i]);
        add_text(key, OGR_Fld_GetNameRef(field));
        add_numbers(key, "%d %d %d", join->fields[i], OGR_Fld_GetType(field),
                    OGR_Fld_GetSubType(field));
    }
    add_text(key, NULL);
}

static void add_crs(char ***key, OGRSpatialReferenceH srs)
{
    const char *const options[] = {"FORMAT=WKT2_2019", NULL};
    char *text = NULL;
    const int *axes;
    int n_axes = 0;
    if (srs != NULL && OSRExportToWktEx(srs, &text, options) != OGRERR_NONE)
    {
        CPLFree(text);
        text = NULL;
        OSRExportToProj4(srs, &text);
    }
    *key = CSLAddString(*key, text != NULL ? text : "");
    CPLFree(text);
    if (srs == NULL)
        return;
    axes = OSRGetDataAxisToSRSAxisMapping(srs, &n_axes);
    for (int i = 0; i < n_axes; i++)
        add_numbers(key, "%d", axes[i]);
    add_numbers(key, "epoch %.17g", OSRGetCoordinateEpoch(srs));
}

static void add_transformation(char ***key,
                               OGRCoordinateTransformationH transformation)
{
    add_text(key, transformation != NULL ? "transformed" : NULL);
    if (transformation == NULL)
        return;
    add_crs(key, OCTGetSourceCS(transformation));
    add_crs(key, OCTGetTargetCS(transformation));
}

/* ---- what is made of it ------------------------------------------------- */

static void add_classes(char ***key, const struct oj_classes *classes)
{
    struct oj_class_field right;
    int as_number;
    for (int i = 0;
         classes != NULL && oj_classes_field_at(classes, i, &right, &as_number);
         i++)
        add_numbers(key, "%d %d %d %d", right.column, right.type, right.subtype,
                    as_number);
    add_text(key, NULL);
}

static void add_sides(char ***key, const struct oj_sides *sides)
{
    int reach = sides->reach_column[1];
    add_numbers(key, "%d %d %d %d %d %.17g", sides->reshape[1].shape,
                sides->reshape[1].invalid, sides->needs_points,
                sides->needs_fids, reach,
                reach >= 0 ? sides->reach_scale : 1.0);
    add_classes(key, sides->on);
    add_classes(key, sides->exclude);
}

static void add_relation(char ***key, const struct oj_relation *r)
{
    add_numbers(key, "%d %.17g %.17g %lld %d %d %d '%.9s' %d %d %d %d %d",
                r->op, r->max_distance, r->min_distance, (long long)r->k,
                r->ties, r->distance_to, r->metric, r->mask, r->exclude_self,
                r->unordered_pairs, r->exclude_same_geometry, r->any_order,
                r->share_lists);
}

/* Rows that are expected do not count: they decide only where auto joins. */
static void add_engine(char ***key, const char *backend,
                       const struct oj_options *o)
{
    add_numbers(key, "%s %d %lld %lld %u %llu %lld %lld",
                backend != NULL ? backend : "auto", o->n_threads,
                (long long)o->quadrant_size, (long long)o->max_batch_pairs,
                o->input_kinds, (unsigned long long)o->gpus,
                (long long)o->gpu_memory, (long long)o->gpu_batch);
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

static void add_options(char ***key, char **list)
{
    int n = CSLCount(list);
    if (n > 0)
        qsort(list, (size_t)n, sizeof *list, compare_texts);
    for (int i = 0; i < n; i++)
    {
        if (!is_of_no_account(list[i]))
            add_text(key, list[i]);
    }
    add_text(key, NULL);
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

struct oj_join_key oj_join_key_make(const struct oj_join_recipe *recipe)
{
    char **identity = NULL;
    struct oj_join_key key;
    add_source(&identity, recipe->join);
    add_fields(&identity, recipe->join);
    add_transformation(&identity, recipe->join->transformation);
    add_sides(&identity, recipe->sides);
    add_relation(&identity, recipe->relation);
    add_engine(&identity, recipe->command->backend, &recipe->options);
    add_options(&identity, CPLGetConfigOptions());
    add_options(&identity, CPLGetThreadLocalConfigOptions());
    key.identity = identity;
    key.state = CSLDuplicate(recipe->files->state);
    return key;
}
