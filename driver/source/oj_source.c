#include "oj_source.h"

#include "../../algs/foundations/relation/oj_compared_fields.h"
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/geopackage/oj_sqlite_connection.h"
#include "../../flatten/read/oj_lane_table.h"
#include "../../flatten/text/oj_spelling.h"
#include "../../flatten/write/oj_flat_to_ogr_geometry.h"
#include "../base/oj_gdal_driver.h"
#include "../base/oj_message.h"
#include "../base/oj_shell_words.h"
#include "../base/oj_transaction.h"
#include "../files/oj_path.h"
#include "oj_geometry_column.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* Names a side in messages: "input layer 'lots'" */
#define LAYER_FORMAT "%s layer '%s'"

/* Returns the prefix that GDAL needs before the name of an archive, or NULL if
 * the name is not that of an archive. */
static const char *prefix_of_archive(const char *name)
{
    const char *end = CPLGetExtension(name);
    if (strncmp(name, "/vsi", 4) == 0)
        return NULL;
    if (EQUAL(end, "zip"))
        return "/vsizip/";
    if (EQUAL(end, "tar") || EQUAL(end, "tgz"))
        return "/vsitar/";
    if (!EQUAL(end, "gz"))
        return NULL;
    return EQUAL(CPLGetExtension(CPLGetBasename(name)), "tar") ? "/vsitar/"
                                                               : "/vsigzip/";
}

/* Writes a hint if the name is valid in another program, or nearly valid in
 * GDAL: an archive without prefix, a layer in QGIS's syntax, a stream without
 * format. Returns 0 if it is none of these. */
static int write_hint_for_foreign_name(const char *name, const char *role,
                                       char *text, size_t size)
{
    static const char layer_name[] = "|layername=";
    const char *prefix = prefix_of_archive(name);
    const char *bar = strstr(name, layer_name), *of_layer;
    struct stat file;
    if (prefix != NULL && stat(name, &file) == 0)
    {
        snprintf(text, size, "GDAL reads a packed file under the name %s%s",
                 prefix, name);
        return 1;
    }
    if (bar != NULL)
    {
        of_layer = bar + sizeof layer_name - 1;
        snprintf(text, size,
                 "this is how QGIS names a layer; for GDAL write %.*s, and "
                 "-%s_layer %.*s",
                 (int)(bar - name), name, role, (int)strcspn(of_layer, "|"),
                 of_layer);
        return 1;
    }
    if (strncmp(name, "/vsistdin", 9) == 0)
    {
        snprintf(text, size,
                 "the stream is empty, or its first bytes do not show its "
                 "format (for CSV write CSV:%s)",
                 name);
        return 1;
    }
    return 0;
}

static GDALDatasetH open_to_read(const struct oj_source_options *side)
{
    CPLErrorReset();
    return GDALOpenEx(side->dataset,
                      GDAL_OF_VECTOR | GDAL_OF_READONLY | GDAL_OF_VERBOSE_ERROR,
                      NULL, (const char *const *)side->open_options, NULL);
}

static oj_status open_dataset(struct oj_source *s, struct oj_error *err)
{
    const struct oj_source_options *side = s->side;
    const char *why;
    char hint[600];
    s->dataset = open_to_read(side);
    if (s->dataset == NULL &&
        oj_transaction_recover(side->dataset,
                               (const char *const *)side->open_options))
    {
        oj_notice("%s: the changes of a killed run were rolled back",
                  side->dataset);
        s->dataset = open_to_read(side);
    }
    if (s->dataset != NULL)
        return OJ_OK;
    why = write_hint_for_foreign_name(side->dataset, s->role, hint, sizeof hint)
              ? hint
              : CPLGetLastErrorMsg();
    /* GDAL's message usually names the dataset; it is added only if it does
     * not. */
    if (why != hint && strstr(why, side->dataset) != NULL)
        return oj_fail(err, OJ_ERR_IO, "cannot open the %s dataset: %s",
                       s->role, why);
    return oj_fail(err, OJ_ERR_IO, "cannot open the %s dataset %s%s%s", s->role,
                   side->dataset, why[0] != '\0' ? ": " : "", why);
}

static int has_geometry(OGRLayerH layer)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    return OGR_FD_GetGeomFieldCount(defn) > 0 &&
           OGR_L_GetGeomType(layer) != wkbNone;
}

static void list_layers(GDALDatasetH dataset, char *text, size_t size)
{
    int n = GDALDatasetGetLayerCount(dataset);
    text[0] = '\0';
    for (int i = 0; i < n; i++)
        oj_message_append_name(text, size,
                               OGR_L_GetName(GDALDatasetGetLayer(dataset, i)));
}

static oj_status choose_named_layer(struct oj_source *s, struct oj_error *err)
{
    char names[600];
    s->layer = GDALDatasetGetLayerByName(s->dataset, s->side->layer);
    if (s->layer != NULL)
        return OJ_OK;
    list_layers(s->dataset, names, sizeof names);
    return oj_fail(err, OJ_ERR_ARG, "%s has no layer '%s'; it has: %s",
                   s->side->dataset, s->side->layer, names);
}

/* Chooses the layer if it is the only one, or the only one with a geometry. */
static oj_status choose_only_layer(struct oj_source *s, struct oj_error *err)
{
    char names[600];
    int n = GDALDatasetGetLayerCount(s->dataset), n_spatial = 0;
    if (n == 0)
        return oj_fail(err, OJ_ERR_DATA,
                       "%s has no layers: name a dataset with a layer",
                       s->side->dataset);
    for (int i = 0; i < n; i++)
    {
        OGRLayerH layer = GDALDatasetGetLayer(s->dataset, i);
        if (layer != NULL && (n == 1 || has_geometry(layer)))
        {
            n_spatial++;
            s->layer = layer;
        }
    }
    if (n_spatial == 1)
        return OJ_OK;
    list_layers(s->dataset, names, sizeof names);
    return oj_fail(err, OJ_ERR_ARG,
                   "%s has %d layers, name one with -%s_layer: %s",
                   s->side->dataset, n, s->role, names);
}

static oj_status run_sql_of_side(struct oj_source *s, struct oj_error *err)
{
    CPLErrorReset();
    s->layer =
        GDALDatasetExecuteSQL(s->dataset, s->side->sql, NULL, s->side->dialect);
    if (s->layer == NULL)
        return oj_fail(err, OJ_ERR_ARG, "the %s SELECT returns no layer: %s",
                       s->role,
                       CPLGetLastErrorMsg()[0] != '\0'
                           ? CPLGetLastErrorMsg()
                           : "write a SELECT that returns rows");
    s->is_result_set = 1;
    return OJ_OK;
}

static oj_status choose_layer(struct oj_source *s, struct oj_error *err)
{
    if (s->side->sql != NULL)
        return run_sql_of_side(s, err);
    if (s->side->layer != NULL)
        return choose_named_layer(s, err);
    return choose_only_layer(s, err);
}

/* Replaces the layer by a view whose geometries come from the column that the
 * command names (oj_geometry_column.h). */
static oj_status choose_geometry(struct oj_source *s, int skips_failures,
                                 struct oj_error *err)
{
    OGRLayerH view;
    if (s->side->geometry == NULL)
        return OJ_OK;
    OJ_TRY(oj_geometry_column_choose(s->layer, s->side->geometry,
                                     s->role[0] == 'i' ? "input_geometry"
                                                       : "join_geometry",
                                     skips_failures, &view, err));
    if (view == NULL)
        return OJ_OK;
    s->viewed = s->layer;
    s->layer = view;
    return OJ_OK;
}

static int is_csv(const struct oj_source *s)
{
    return s->stream != NULL ||
           oj_driver_is(GDALGetDatasetDriver(s->dataset), "CSV");
}

/* Returns advice on how two tables without geometry are joined by the fields of
 * -on. Returns "" if -op names the join. */
static const char *
hint_for_tables_without_geometry(const struct oj_command *command)
{
    const char *on = command->on;
    if (oj_command_has_option(command, "op"))
        return "";
    if (on == NULL)
        return "; tables are joined by a field with -op attributes -on F";
    return CPLSPrintf("; tables are joined by fields with -op attributes -on "
                      "%s",
                      on);
}

static oj_status check_geometry(const struct oj_source *s,
                                const struct oj_command *command,
                                struct oj_error *err)
{
    if (has_geometry(s->layer) || !oj_command_needs_shapes(command))
        return OJ_OK;
    if (is_csv(s))
        return oj_fail(err, OJ_ERR_DATA,
                       LAYER_FORMAT " has no geometry; name its columns, for "
                                    "example -%s X_POSSIBLE_NAMES=lon -%s "
                                    "Y_POSSIBLE_NAMES=lat, or -%s_geometry "
                                    "with a field of WKT%s",
                       s->role, s->name, s->role[0] == 'i' ? "oo" : "joo",
                       s->role[0] == 'i' ? "oo" : "joo", s->role,
                       hint_for_tables_without_geometry(command));
    return oj_fail(err, OJ_ERR_DATA, LAYER_FORMAT " has no geometry%s", s->role,
                   s->name, hint_for_tables_without_geometry(command));
}

static oj_status fail_where(const struct oj_source *s, const char *where,
                            struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_ARG,
                   "the %s condition '%.200s' fails: %.500s%s%s%s", s->role,
                   where, CPLGetLastErrorMsg(),
                   is_csv(s) ? "; all fields are text here: -" : "",
                   is_csv(s) && s->role[0] != 'i' ? "j" : "",
                   is_csv(s) ? "oo AUTODETECT_TYPE=YES detects numbers" : "");
}

/* Sets the attribute filter of the layer and has_where. */
static oj_status set_attribute_filter(struct oj_source *s, const char *where,
                                      struct oj_error *err)
{
    CPLErrorReset();
    if (OGR_L_SetAttributeFilter(s->layer, where) != OGRERR_NONE)
        return fail_where(s, where, err);
    s->has_where = where != NULL;
    return OJ_OK;
}

/* Refuses an invalid condition. GeoPackage and SQLite detect it only when the
 * first row is read, so it is tried in a SELECT. */
static oj_status check_attribute_filter(const struct oj_source *s,
                                        struct oj_error *err)
{
    const char *where = s->side->where;
    size_t size = strlen(where) + 2 * strlen(s->name) + 64;
    OGRLayerH result;
    char *select, *name;
    if (!oj_driver_is(GDALGetDatasetDriver(s->dataset), "GPKG|SQLite") ||
        s->is_result_set)
        return OJ_OK;
    OJ_NEW(select, (int64_t)size, err);
    name = CPLEscapeString(s->name, -1, CPLES_SQLI);
    snprintf(select, size, "SELECT 1 FROM \"%s\" m WHERE (%s) LIMIT 0", name,
             where);
    CPLFree(name);
    CPLErrorReset();
    result = GDALDatasetExecuteSQL(s->dataset, select, NULL, NULL);
    oj_free(select);
    if (result != NULL)
        GDALDatasetReleaseResultSet(s->dataset, result);
    else if (CPLGetLastErrorType() == CE_Failure)
        return fail_where(s, where, err);
    return OJ_OK;
}

static void set_box_filter(const struct oj_source *s, const double *box)
{
    if (box != NULL)
        OGR_L_SetSpatialFilterRect(s->layer, box[0], box[1], box[2], box[3]);
    else
        OGR_L_SetSpatialFilter(s->layer, NULL);
}

static oj_status set_filters(struct oj_source *s, struct oj_error *err)
{
    if (s->side->where != NULL)
    {
        OJ_TRY(set_attribute_filter(s, s->side->where, err));
        OJ_TRY(check_attribute_filter(s, err));
    }
    if (s->spat != NULL)
        set_box_filter(s, s->spat);
    return OJ_OK;
}

int oj_source_is_filtered(const struct oj_source *source)
{
    return source->side->where != NULL || source->spat != NULL;
}

/* Sets the spatial filter of the layer, which can have only one: box if -spat
 * contains it, otherwise -spat, because no row outside of -spat may be read. */
static void set_smaller_of_two_filters(const struct oj_source *s,
                                       const OGREnvelope *box)
{
    const double both[4] = {box->MinX, box->MinY, box->MaxX, box->MaxY};
    const double *spat = s->spat;
    int is_inside = spat == NULL || (both[0] >= spat[0] && both[1] >= spat[1] &&
                                     both[2] <= spat[2] && both[3] <= spat[3]);
    set_box_filter(s, is_inside ? both : spat);
}

/* Sets an attribute filter made of the command's condition and `where`, which
 * may be NULL.
 */
static oj_status set_where_and_condition(struct oj_source *s, const char *where,
                                         struct oj_error *err)
{
    const char *own = s->side->where;
    size_t size;
    char *both;
    oj_status status;
    if (where == NULL || own == NULL)
    {
        where = where != NULL ? where : own;
        return where != NULL || s->has_where
                   ? set_attribute_filter(s, where, err)
                   : OJ_OK;
    }
    size = strlen(own) + strlen(where) + 16;
    OJ_NEW(both, (int64_t)size, err);
    snprintf(both, size, "(%s) AND (%s)", own, where);
    status = set_attribute_filter(s, both, err);
    oj_free(both);
    return status;
}

oj_status oj_source_set_filter(struct oj_source *source, const OGREnvelope *box,
                               const char *where, struct oj_error *err)
{
    if (box != NULL)
        set_smaller_of_two_filters(source, box);
    else
        set_box_filter(source, source->spat);
    return set_where_and_condition(source, where, err);
}

oj_status oj_source_filter_fid(struct oj_source *source, int64_t fid,
                               struct oj_error *err)
{
    const char *column = OGR_L_GetFIDColumn(source->layer);
    char where[300];
    if (column != NULL && column[0] != '\0')
        snprintf(where, sizeof where, "\"%.200s\" = %lld", column,
                 (long long)fid);
    else
        snprintf(where, sizeof where, "FID = %lld", (long long)fid);
    return oj_source_set_filter(source, NULL, where, err);
}

/* Fails because the layer lacks the field; lists its fields, the most similar
 * name first. */
static oj_status fail_field(const struct oj_source *s, const char *option,
                            const char *name, struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(s->layer);
    const char *best = NULL;
    char names[600] = "";
    int least = 3;
    for (int i = 0; i < OGR_FD_GetFieldCount(defn); i++)
    {
        const char *here = OGR_Fld_GetNameRef(OGR_FD_GetFieldDefn(defn, i));
        int distance = oj_spelling_distance(name, here);
        if (distance < least && distance < (int)strlen(name))
        {
            best = here;
            least = distance;
        }
        oj_message_append_name(names, sizeof names, here);
    }
    return oj_fail(
        err, OJ_ERR_ARG, "%s" LAYER_FORMAT " has no field '%.100s'; %s%s%s%s%s",
        option, s->role, s->name, name, best != NULL ? "did you mean '" : "",
        best != NULL ? best : "", best != NULL ? "'? " : "",
        names[0] != '\0' ? "it has: " : "it has none", names);
}

/* Adds a field to those that are read, unless it is in the list already. The
 * geometry column needs no entry. */
static oj_status select_field(struct oj_source *s, const char *name,
                              struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(s->layer);
    int field = OGR_FD_GetFieldIndex(defn, name);
    if (field < 0 && OGR_FD_GetGeomFieldIndex(defn, name) >= 0)
        return OJ_OK;
    if (field < 0)
        return fail_field(s, "", name, err);
    for (int i = 0; i < s->n_fields; i++)
    {
        if (s->fields[i] == field)
            return OJ_OK;
    }
    s->fields[s->n_fields++] = field;
    return OJ_OK;
}

static oj_status select_fields(struct oj_source *s, struct oj_error *err)
{
    const char *option = s->role[0] == 'i' ? "select" : "join_select";
    int n = OGR_FD_GetFieldCount(OGR_L_GetLayerDefn(s->layer));
    struct oj_field_pairs names = {0};
    oj_status status;
    OJ_NEW(s->fields, n + 1, err);
    OJ_NEW_ZEROED(s->needed, n + 1, err);
    OJ_NEW_ZEROED(s->skipped, n + 1, err);
    if (s->side->select == NULL)
    {
        for (int i = 0; i < n; i++)
            s->fields[i] = i;
        s->n_fields = n;
        return OJ_OK;
    }
    status = oj_field_names_parse("-", option, s->side->select, &names, err);
    for (int i = 0; i < names.n && status == OJ_OK; i++)
        status = select_field(s, names.fields[0][i], err);
    oj_field_pairs_free(&names);
    return status;
}

/* Leaves out all join fields with -how semi, -how anti or -agg, which write
 * none of them; oj_source_need_field() later adds those that -agg reads. With
 * -agg and -unmatched_join_layer the fields are only skipped, because rows of
 * unmatched join features are written later with all fields. */
static void drop_unwritten_fields(const struct oj_command *command,
                                  struct oj_source *s)
{
    if (command->output.unmatched_join_layer != NULL &&
        command->aggregates != NULL)
        memset(s->skipped, 1, (size_t)s->n_fields);
    else if (command->how == OJ_HOW_SEMI || command->how == OJ_HOW_ANTI ||
             command->aggregates != NULL)
        s->n_fields = 0;
}

oj_status oj_source_need_field(struct oj_source *source, const char *name,
                               const char *option, int *column,
                               OGRFieldDefnH *defn, struct oj_error *err)
{
    int field = OGR_FD_GetFieldIndex(OGR_L_GetLayerDefn(source->layer), name);
    int n = source->n_fields + source->n_hidden, i = 0;
    char text[80];
    snprintf(text, sizeof text, "-%s: ", option);
    if (field < 0)
        return fail_field(source, text, name, err);
    while (i < n && source->fields[i] != field)
        i++;
    if (i == n)
    {
        source->fields[n] = field; /* the array has room for each field once */
        source->n_hidden++;
    }
    source->needed[i] = 1;
    source->skipped[i] = 0;
    *column = i;
    *defn = oj_source_field(source, i);
    return OJ_OK;
}

OGRFieldDefnH oj_source_field(const struct oj_source *source, int i)
{
    return OGR_FD_GetFieldDefn(OGR_L_GetLayerDefn(source->layer),
                               source->fields[i]);
}

char **oj_source_describe_fields(const struct oj_source *source, int n)
{
    char **list = NULL;
    for (int i = 0; i < n; i++)
    {
        OGRFieldDefnH field = oj_source_field(source, i);
        list =
            CSLAddString(list, CPLSPrintf("%s %d %d", OGR_Fld_GetNameRef(field),
                                          OGR_Fld_GetType(field),
                                          OGR_Fld_GetSubType(field)));
    }
    return list;
}

void oj_source_skip_field(struct oj_source *source, int column, int is_skipped)
{
    source->skipped[column] = is_skipped && !source->needed[column];
}

/* Returns 1 for the "undefined" CRS of some GeoPackages. */
static int is_undefined_crs(OGRSpatialReferenceH srs)
{
    const char *name = OSRGetName(srs);
    return name == NULL || strncasecmp(name, "Undefined", 9) == 0;
}

/* Sets s->srs to a copy of the CRS of the layer; it stays NULL without one. */
static oj_status clone_crs_of_layer(struct oj_source *s, struct oj_error *err)
{
    OGRSpatialReferenceH srs = OGR_L_GetSpatialRef(s->layer);
    if (srs == NULL || is_undefined_crs(srs))
        return OJ_OK;
    s->srs = OSRClone(srs);
    if (s->srs == NULL)
        return oj_fail(err, OJ_ERR_NOMEM,
                       "out of memory for a CRS: free memory");
    return OJ_OK;
}

/* ---- the boxes of -window as a layer in memory --------------------------- */

static oj_status make_box(const double *box, OGRGeometryH *out,
                          struct oj_error *err)
{
    struct oj_flat_buf buf = {0};
    struct oj_flat flat;
    oj_status status =
        oj_flat_buf_add_box(&buf, 0, box[0], box[1], box[2], box[3], err);
    flat = oj_flat_buf_view(&buf);
    if (status == OJ_OK)
        status = oj_flat_to_ogr_shape(&flat, 0, 0, out, err);
    oj_flat_buf_free(&buf);
    return status;
}

static oj_status create_window_layer(struct oj_source *s, const double *boxes,
                                     int64_t n, struct oj_error *err)
{
    s->dataset = oj_driver_create_memory_dataset();
    if (s->dataset != NULL)
        s->layer = GDALDatasetCreateLayer(s->dataset, "window", NULL,
                                          wkbUnknown, NULL);
    if (s->layer == NULL)
        return oj_driver_fail_memory_dataset(err);
    for (int64_t i = 0; i < n; i++)
    {
        OGRFeatureH feature;
        OGRGeometryH box;
        OGRErr result;
        OJ_TRY(make_box(&boxes[4 * i], &box, err));
        feature = OGR_F_Create(OGR_L_GetLayerDefn(s->layer));
        OGR_F_SetGeometryDirectly(feature, box);
        OGR_F_SetFID(feature, i + 1);
        result = OGR_L_CreateFeature(s->layer, feature);
        OGR_F_Destroy(feature);
        if (result != OGRERR_NONE)
            return oj_fail(err, OJ_ERR_NOMEM,
                           "out of memory for a box: free memory");
    }
    snprintf(s->name, sizeof s->name, "%s", OGR_L_GetName(s->layer));
    return OJ_OK;
}

/* ---- opening a side ------------------------------------------------------ */

/* Returns 1 if FlatGeobuf's Arrow stream would be wrong, as in GDAL 3.6. After
 * a row without a value the stream shifts the texts of a NOT NULL field, and
 * without a feature count in the header it does not end. Precondition: no
 * filter is set, since a filter makes the count unknown. */
static int has_wrong_stream(const struct oj_source *s)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(s->layer);
    int is_wrong;
    if (s->is_result_set ||
        !oj_driver_is(GDALGetDatasetDriver(s->dataset), "FlatGeobuf"))
        return 0;
    is_wrong = !OGR_L_TestCapability(s->layer, OLCFastFeatureCount);
    for (int i = 0; i < OGR_FD_GetFieldCount(defn); i++)
        is_wrong |= !OGR_Fld_IsNullable(OGR_FD_GetFieldDefn(defn, i));
    return is_wrong;
}

static oj_status open_layer(struct oj_source *s,
                            const struct oj_command *command,
                            struct oj_error *err)
{
    OJ_TRY(open_dataset(s, err));
    OJ_TRY(choose_layer(s, err));
    snprintf(s->name, sizeof s->name, "%s", OGR_L_GetName(s->layer));
    OJ_TRY(choose_geometry(s, command->skip_failures, err));
    OJ_TRY(check_geometry(s, command, err));
    s->has_wrong_stream = has_wrong_stream(s);
    OJ_TRY(set_filters(s, err));
    return clone_crs_of_layer(s, err);
}

/* Opens the stream of reports on stdin that -events takes as input. */
static oj_status open_report_stream(struct oj_source *s,
                                    const struct oj_command *command,
                                    struct oj_error *err)
{
    const struct oj_report_stream_options options = {
        s->side->dataset, s->side->open_options, command->key,
        command->flush,   command->batch,        command->skip_failures};
    if (s->side->geometry != NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "-input_geometry cannot read reports from %s: in CSV "
                       "write -oo GEOM_POSSIBLE_NAMES=%s",
                       s->side->dataset, s->side->geometry);
    if (s->side->sql != NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "-sql cannot read reports from %s: write -select, "
                       "-where or -spat",
                       s->side->dataset);
    OJ_TRY(oj_report_stream_open(&options, &s->stream, &s->dataset, &s->layer,
                                 err));
    snprintf(s->name, sizeof s->name, "%s", OGR_L_GetName(s->layer));
    OJ_TRY(check_geometry(s, command, err));
    OJ_TRY(set_filters(s, err));
    return clone_crs_of_layer(s, err);
}

static int is_report_stream(const struct oj_source *s,
                            const struct oj_command *command)
{
    return s->role[0] == 'i' && command->events != NULL &&
           oj_report_stream_is_name(s->side->dataset);
}

/* Refuses options that only a stream of reports on stdin obeys. */
static oj_status check_stream_options(const struct oj_source *s,
                                      const struct oj_command *command,
                                      struct oj_error *err)
{
    const int has_texts =
        command->input.geometry != NULL || command->join.geometry != NULL;
    const char *option = oj_command_has_option(command, "flush") ? "flush"
                         : command->skip_failures && !has_texts ? "skipfailures"
                                                                : NULL;
    if (s->role[0] == 'j' || option == NULL || is_report_stream(s, command))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "-%s is for reports in CSV or GeoJSONSeq on /vsistdin/; %s "
                   "is read as in any join: leave -%s out",
                   option, s->side->dataset, option);
}

static oj_status open_side(const struct oj_command *command, int side,
                           struct oj_source *s, struct oj_error *err)
{
    OJ_TRY(check_stream_options(s, command, err));
    if (side == 1 && command->n_windows > 0)
        OJ_TRY(
            create_window_layer(s, command->windows, command->n_windows, err));
    else if (is_report_stream(s, command))
        OJ_TRY(open_report_stream(s, command, err));
    else
        OJ_TRY(open_layer(s, command, err));
    s->type = has_geometry(s->layer) ? OGR_L_GetGeomType(s->layer) : wkbNone;
    OJ_TRY(select_fields(s, err));
    if (side == 1)
        drop_unwritten_fields(command, s);
    return OJ_OK;
}

oj_status oj_source_open(const struct oj_command *command, int side,
                         struct oj_source *source, struct oj_error *err)
{
    struct oj_source s = {0};
    oj_status status;
    s.side = side == 0 ? &command->input : &command->join;
    s.role = side == 0 ? "input" : "join";
    if (side == 0 && command->has_spat)
        s.spat = command->spat;
    status = open_side(command, side, &s, err);
    if (status == OJ_OK)
        *source = s;
    else
        oj_source_close(&s);
    return status;
}

int64_t oj_source_count(const struct oj_source *source, int64_t limit)
{
    int64_t n = -1;
    if (source->stream != NULL)
        return -1;
    if (OGR_L_TestCapability(source->layer, OLCFastFeatureCount))
        n = OGR_L_GetFeatureCount(source->layer, 0);
    if (limit >= 0 && n > limit)
        n = limit;
    return n;
}

oj_status oj_source_check_count(const struct oj_source *source, int64_t limit,
                                int64_t n_rows, struct oj_error *err)
{
    int64_t n_promised;
    /* Only in FlatGeobuf is the feature count part of the file's structure;
     * elsewhere it can be an estimate. */
    if (!oj_driver_is(GDALGetDatasetDriver(source->dataset), "FlatGeobuf") ||
        source->is_result_set)
        return OJ_OK;
    n_promised = oj_source_count(source, limit);
    if (n_promised <= n_rows)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_DATA,
                   LAYER_FORMAT
                   " should have %lld rows, but %s ends after %lld: it is "
                   "damaged or cut off; copy or make it again",
                   source->role, source->name, (long long)n_promised,
                   source->side->dataset, (long long)n_rows);
}

unsigned oj_source_lanes(const struct oj_source *source)
{
    struct oj_lane_dataset dataset = {0};
    if (source->stream != NULL || source->viewed != NULL)
        return 0;
    if (source->dataset != NULL)
    {
        dataset.driver = GDALGetDatasetDriver(source->dataset);
        if ((oj_lane_facts_of_driver(dataset.driver) & OJ_LANE_SOLE_LAYER) !=
                0 &&
            GDALDatasetGetLayerCount(source->dataset) == 1)
            dataset.facts |= OJ_LANE_SOLE_LAYER;
    }
    if (!source->is_result_set && !source->has_where)
        dataset.facts |= OJ_LANE_WHOLE_LAYER;
    if (source->side->open_options == NULL)
        dataset.facts |= OJ_LANE_PLAIN_OPEN;
    if (!source->has_wrong_stream)
        dataset.facts |= OJ_LANE_SOUND_STREAM;
    return oj_lanes_that_read(&dataset);
}

const char *oj_source_all_rows_filter(const struct oj_source *source)
{
    return source->dataset != NULL && !source->is_result_set &&
                   !source->has_where &&
                   oj_driver_is(GDALGetDatasetDriver(source->dataset), "GPKG")
               ? "1 = 1"
               : NULL;
}

int oj_source_can_hold_points(const struct oj_source *source)
{
    OGRwkbGeometryType flat = OGR_GT_Flatten(source->type);
    return flat == wkbUnknown || flat == wkbPoint || flat == wkbMultiPoint ||
           flat == wkbGeometryCollection;
}

int oj_source_has_file(const struct oj_source *source, const char *path)
{
    char **files = GDALGetFileList(source->dataset);
    int found = oj_path_is_same_file(path, source->side->dataset);
    for (int i = 0; files != NULL && files[i] != NULL && !found; i++)
        found = oj_path_is_same_file(path, files[i]);
    CSLDestroy(files);
    return found;
}

int oj_source_reads_once(const struct oj_source *source)
{
    return source->stream != NULL ||
           strncmp(source->side->dataset, "/vsistdin", 9) == 0;
}

oj_status oj_source_begin_snapshot(struct oj_source *source,
                                   struct oj_error *err)
{
    void *connection = source->dataset != NULL && !source->is_held
                           ? oj_sqlite_connection_of(source->dataset)
                           : NULL;
    struct oj_error reason;
    oj_status status;
    if (connection == NULL)
        return OJ_OK;
    status = oj_sqlite_connection_begin_reading(connection, &reason);
    if (status != OJ_OK)
        return oj_fail(err, status, LAYER_FORMAT " cannot be read: %s",
                       source->role, source->name, reason.message);
    source->is_held = 1;
    return OJ_OK;
}

void oj_source_end_snapshot(struct oj_source *source)
{
    if (source->is_held)
        oj_sqlite_connection_end_reading(
            oj_sqlite_connection_of(source->dataset));
    source->is_held = 0;
}

oj_status oj_source_fail_changed(const struct oj_source *source,
                                 const char *how, struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_DATA, "the %s layer '%s' %s", source->role,
                   source->name, how);
}

void oj_source_close_dataset(struct oj_source *source)
{
    oj_source_end_snapshot(source);
    oj_report_stream_close(source->stream);
    source->stream = NULL;
    if (source->viewed != NULL)
    {
        oj_geometry_column_close(source->layer);
        source->layer = source->viewed;
        source->viewed = NULL;
    }
    if (source->is_result_set)
        GDALDatasetReleaseResultSet(source->dataset, source->layer);
    if (source->dataset != NULL)
        GDALClose(source->dataset);
    source->is_result_set = 0;
    source->layer = NULL;
    source->dataset = NULL;
}

void oj_source_close(struct oj_source *source)
{
    oj_free(source->fields);
    oj_free(source->needed);
    oj_free(source->skipped);
    if (source->transformation != NULL)
        OCTDestroyCoordinateTransformation(source->transformation);
    if (source->srs != NULL)
        OSRRelease(source->srs);
    oj_source_close_dataset(source);
    memset(source, 0, sizeof *source);
}
