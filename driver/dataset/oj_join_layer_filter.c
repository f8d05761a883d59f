/* Filters of a join layer that the input layer can apply, and what is known of
 * its rows without making them. */
#include "oj_join_layer_state.h"

#include "../../flatten/base/oj_array.h"
#include "../base/oj_driver.h"
#include "../source/oj_where.h"

#include <cpl_string.h>

#include <math.h>
#include <string.h>
#include <strings.h>

/* ---- what may go down --------------------------------------------------- */

/* 0 after a side could not be opened anew: then nothing is known of the input,
 * and no filter goes down to it. */
static int is_open(const struct oj_join_layer *layer)
{
    return layer->main.pass.rows.job != NULL;
}

/* 1 when leaving out rows of the input changes no other row: not their FIDs,
 * not which join rows match nothing, not which rows are the first ones. What
 * was added up while the join layer streamed is there for all rows at once. */
static int may_leave_out(const struct oj_join_layer *layer)
{
    const struct oj_pass *pass = &layer->main.pass;
    return is_open(layer) && layer->schema.keep_fids &&
           layer->command.limit < 0 &&
           !oj_rows_has_unmatched_join(&pass->rows) && !pass->streams_join;
}

/* Rows have the input's geometry, in the input's CRS. */
static int has_input_geometry(const struct oj_join_layer *layer)
{
    const struct oj_pass *pass = &layer->main.pass;
    return is_open(layer) && pass->rows.geometry == OJ_WRITE_INPUT &&
           pass->job.input.transformation == NULL;
}

/* 1 when name is, in rows and in the input layer, the same field. */
static int is_input_field(const struct oj_join_layer *layer, const char *name)
{
    const struct oj_source *input = &layer->main.pass.job.input;
    OGRFeatureDefnH theirs = OGR_L_GetLayerDefn(input->layer);
    int i = OGR_FD_GetFieldIndex(layer->shape.defn, name);
    const struct oj_column *column = i >= 0 ? &layer->shape.columns[i] : NULL;
    return column != NULL && column->origin == OJ_COLUMN_INPUT &&
           OGR_FD_GetFieldIndex(theirs, name) == input->fields[column->source];
}

/* Drivers that leave conditions to OGR: they mean there what they mean here. */
static int asks_ogr(const struct oj_source *input)
{
    static const char *const names[] = {"ESRI Shapefile",
                                        "FlatGeobuf",
                                        "GeoJSON",
                                        "GeoJSONSeq",
                                        "CSV",
                                        "Memory",
                                        "MEM",
                                        "MapInfo File",
                                        "KML",
                                        "GML",
                                        NULL};
    return CSLFindString(
               (CSLConstList)names,
               GDALGetDescription(GDALGetDatasetDriver(input->dataset))) >= 0;
}

static int may_push_where(const struct oj_join_layer *layer, const char *where,
                          char **used_fields)
{
    const struct oj_source *input = &layer->main.pass.job.input;
    if (input->layer == NULL || used_fields == NULL || !may_leave_out(layer))
        return 0;
    for (int i = 0; used_fields[i] != NULL; i++)
    {
        if (!is_input_field(layer, used_fields[i]))
            return 0;
    }
    if (oj_driver_is_database(GDALGetDatasetDriver(input->dataset)))
        return 0;
    return asks_ogr(input) ||
           oj_where_is_plain(where, OGR_L_GetLayerDefn(input->layer));
}

/* ---- filters ------------------------------------------------------------ */

/* What is no number has no place in a driver's SQL. */
static int pushes_box(const struct oj_join_layer *layer)
{
    const OGREnvelope *box = &layer->box;
    return layer->has_box && may_leave_out(layer) &&
           has_input_geometry(layer) && isfinite(box->MinX) &&
           isfinite(box->MinY) && isfinite(box->MaxX) && isfinite(box->MaxY);
}

/* Without memory for it there is no filter, which is no loss but of time. */
void oj_join_layer_push_filters(struct oj_join_layer *layer)
{
    const OGREnvelope *box = pushes_box(layer) ? &layer->box : NULL;
    struct oj_error error;
    if (layer->has_stream)
        return;
    oj_row_stream_stop(&layer->main);
    if (oj_pass_filter(&layer->main.pass, box, layer->where, &error) != OJ_OK)
    {
        oj_free(layer->where);
        layer->where = NULL;
    }
}

void oj_join_layer_filter_box(struct oj_join_layer *layer,
                              const OGREnvelope *box)
{
    oj_join_layer_reset(layer);
    layer->has_box = box != NULL;
    if (box != NULL)
        layer->box = *box;
    oj_join_layer_push_filters(layer);
}

int oj_join_layer_filter_where(struct oj_join_layer *layer, const char *where,
                               char **used_fields)
{
    oj_join_layer_reset(layer);
    oj_free(layer->where);
    layer->where = NULL;
    CSLDestroy(layer->used_fields);
    layer->used_fields = CSLDuplicate(used_fields);
    layer->has_where = where != NULL;
    if (where != NULL && !layer->has_stream &&
        may_push_where(layer, where, used_fields))
    {
        layer->where = oj_malloc((int64_t)strlen(where) + 1, 1);
        if (layer->where != NULL)
            strcpy(layer->where, where);
    }
    oj_join_layer_push_filters(layer);
    return layer->where != NULL;
}

/* ---- counts ------------------------------------------------------------- */

/* A pass whose datasets are not in use. */
static oj_status idle_pass(struct oj_join_layer *layer, struct oj_pass **pass,
                           struct oj_error *err)
{
    struct oj_row_stream *stream = &layer->main;
    *pass = &stream->pass;
    if (!stream->pass.is_running && !layer->has_stream)
        return OJ_OK;
    OJ_TRY(oj_join_layer_open_single(layer, err));
    stream = &layer->single;
    *pass = &stream->pass;
    oj_row_stream_stop(stream);
    OJ_TRY(oj_pass_filter(*pass, NULL, layer->where, err));
    return oj_pass_reopen(*pass, err);
}

static oj_status count(struct oj_join_layer *layer, int force, int64_t *n,
                       struct oj_error *err)
{
    int is_known = oj_join_layer_is_one_to_one(layer);
    struct oj_pass *pass;
    oj_status status;
    *n = -1;
    if ((layer->has_where && layer->where == NULL) ||
        (!force && !(is_known && layer->has_fast_count)))
        return OJ_OK;
    OJ_TRY(idle_pass(layer, &pass, err));
    status = is_known ? oj_pass_count_input(pass, force, n, err)
                      : oj_pass_count(pass, n, err);
    oj_message_list_report(&pass->messages);
    return status;
}

GIntBig oj_join_layer_count(struct oj_join_layer *layer, int force)
{
    struct oj_error error = {OJ_OK, ""};
    int has_filter = layer->has_box || layer->has_where;
    int64_t n = -1;
    if (layer->has_box)
        return -1;
    if (oj_join_layer_refresh(layer, &error) != OJ_OK)
    {
        oj_join_layer_report(&error);
        return -1;
    }
    if (!has_filter && layer->n_rows >= 0)
        return layer->n_rows;
    if (count(layer, force, &n, &error) != OJ_OK)
    {
        oj_join_layer_report(&error);
        return -1;
    }
    if (!has_filter && n >= 0)
        layer->n_rows = n;
    return n;
}

/* ---- where rows are ----------------------------------------------------- */

/* Every feature of the input has a row, with its geometry. */
static int has_input_extent(const struct oj_join_layer *layer)
{
    return has_input_geometry(layer) && layer->command.how == OJ_HOW_LEFT &&
           layer->command.limit < 0 &&
           !oj_source_is_filtered(&layer->main.pass.job.input);
}

int oj_join_layer_extent(struct oj_join_layer *layer, OGREnvelope *extent,
                         int force)
{
    struct oj_error error = {OJ_OK, ""};
    struct oj_pass *pass;
    oj_status status;
    int there = 0;
    if (!has_input_extent(layer) || (!force && !layer->has_fast_extent))
        return 0;
    status = oj_join_layer_refresh(layer, &error);
    if (status == OJ_OK)
        status = idle_pass(layer, &pass, &error);
    if (status == OJ_OK)
    {
        status = oj_pass_extent(pass, force, extent, &there, &error);
        oj_message_list_report(&pass->messages);
    }
    if (status != OJ_OK)
        oj_join_layer_report(&error);
    return there;
}

/* ---- capabilities ------------------------------------------------------- */

static int has_rows_by_fid(const struct oj_join_layer *layer)
{
    return is_open(layer) && layer->schema.keep_fids &&
           layer->command.limit < 0 && layer->has_random_read &&
           !oj_source_is_filtered(&layer->main.pass.job.input);
}

int oj_join_layer_has(struct oj_join_layer *layer, const char *capability)
{
    int has_filter = layer->has_box || layer->has_where;
    if (strcasecmp(capability, OLCRandomRead) == 0)
        return has_rows_by_fid(layer);
    if (strcasecmp(capability, OLCFastFeatureCount) == 0)
        return !has_filter &&
               (layer->n_rows >= 0 ||
                (oj_join_layer_is_one_to_one(layer) && layer->has_fast_count));
    if (strcasecmp(capability, OLCFastGetExtent) == 0)
        return has_input_extent(layer) && layer->has_fast_extent;
    if (strcasecmp(capability, OLCFastSpatialFilter) == 0)
        return may_leave_out(layer) && has_input_geometry(layer) &&
               layer->has_fast_box;
    if (strcasecmp(capability, OLCFastSetNextByIndex) == 0)
        return !has_filter;
#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 6, 0)
    if (strcasecmp(capability, OLCFastGetArrowStream) == 0)
        return !has_filter;
#endif
    return strcasecmp(capability, OLCStringsAsUTF8) == 0 ||
           strcasecmp(capability, OLCIgnoreFields) == 0 ||
           strcasecmp(capability, OLCCurveGeometries) == 0 ||
           strcasecmp(capability, OLCMeasuredGeometries) == 0 ||
           strcasecmp(capability, "ZGeometries") == 0;
}
