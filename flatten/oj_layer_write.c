#include "oj_layer_write.h"
#include "oj_array.h"
#include "oj_batch.h"
#include "oj_ogr_errors.h"
#include "oj_table.h"
#include "oj_wkb.h"

#include <limits.h>
#include <math.h>
#include <string.h>

struct way
{
    struct oj_column column;
    struct oj_setter setter;
};

struct oj_layer_writer
{
    OGRLayerH layer;
    struct oj_write_options options;
    struct way *way;
    OGRFeatureH feature;            /* one for all rows */
    const struct oj_fields *fields; /* the reader's; NULL: not seen yet */
    struct oj_ogr_errors errors;
    int has_geometry;
    int64_t n_rows, n_without_geometry;
};

/* ---- open and close ----------------------------------------------------- */

/* Columns of the input get their setters with the first batch, which knows the
 * types. */
static oj_status init_way(struct oj_layer_writer *writer, struct way *way,
                          struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(writer->layer);
    OGRFieldType type = OFTInteger64;
    OGRFieldSubType subtype = OFSTNone;
    switch (way->column.origin)
    {
        case OJ_COLUMN_INPUT:
            if (writer->fields == NULL)
                return OJ_OK;
            if (way->column.source < 0 ||
                way->column.source >= writer->fields->n)
                return oj_fail(err, OJ_ERR_INTERNAL,
                               "the batch has no field %d", way->column.source);
            type = writer->fields->field[way->column.source].type;
            subtype = writer->fields->field[way->column.source].subtype;
            break;
        case OJ_COLUMN_JOIN:
            if (writer->options.join_table == NULL || way->column.source < 0 ||
                way->column.source >=
                    oj_table_columns(writer->options.join_table))
                return oj_fail(err, OJ_ERR_INTERNAL,
                               "the join table has no column %d",
                               way->column.source);
            type = oj_table_type(writer->options.join_table, way->column.source,
                                 &subtype);
            break;
        case OJ_COLUMN_MEASURE:
            type = OFTReal;
            break;
        default:
            break;
    }
    return oj_setter_init(&way->setter, type, subtype, defn, way->column.target,
                          err);
}

/* Once, or again when batches come from another reader. */
static oj_status set_fields(struct oj_layer_writer *writer,
                            const struct oj_fields *fields,
                            struct oj_error *err)
{
    writer->fields = fields;
    for (int i = 0; i < writer->options.n_columns; i++)
    {
        struct way *way = &writer->way[i];
        if (way->column.origin != OJ_COLUMN_INPUT)
            continue;
        oj_setter_free(&way->setter);
        OJ_TRY(init_way(writer, way, err));
    }
    return OJ_OK;
}

oj_status oj_layer_writer_open(OGRLayerH layer,
                               const struct oj_write_options *options,
                               struct oj_layer_writer **out,
                               struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    struct oj_layer_writer *writer;
    oj_status status = OJ_OK;
    OJ_NEW(writer, 1, err);
    memset(writer, 0, sizeof *writer);
    writer->layer = layer;
    writer->options = *options;
    writer->options.columns = NULL; /* the caller's; copied to way */
    writer->has_geometry = OGR_FD_GetGeomFieldCount(defn) > 0;
    writer->feature = OGR_F_Create(defn);
    writer->way = oj_calloc(options->n_columns, sizeof *writer->way);
    if (writer->way == NULL || writer->feature == NULL)
        status = oj_fail_nomem(err, options->n_columns, sizeof *writer->way);
    for (int i = 0; status == OJ_OK && i < options->n_columns; i++)
    {
        writer->way[i].column = options->columns[i];
        status = init_way(writer, &writer->way[i], err);
    }
    if (status == OJ_OK)
        *out = writer;
    else
        oj_layer_writer_close(writer);
    return status;
}

void oj_layer_writer_close(struct oj_layer_writer *writer)
{
    if (writer == NULL)
        return;
    for (int i = 0; writer->way != NULL && i < writer->options.n_columns; i++)
        oj_setter_free(&writer->way[i].setter);
    if (writer->feature != NULL)
        OGR_F_Destroy(writer->feature);
    oj_free(writer->way);
    oj_free(writer);
}

int64_t oj_layer_writer_rows(const struct oj_layer_writer *writer)
{
    return writer->n_rows;
}

int64_t
oj_layer_writer_rows_without_geometry(const struct oj_layer_writer *writer)
{
    return writer->n_without_geometry;
}

int64_t oj_layer_writer_warnings(const struct oj_layer_writer *writer,
                                 const char **first)
{
    *first = writer->errors.warning;
    return writer->errors.n_warnings;
}

/* ---- geometry ----------------------------------------------------------- */

static oj_status fail_geometry(int64_t fid, struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO,
                   "the geometry of input feature %lld cannot be written",
                   (long long)fid);
}

/* A 2-D point: the one of the row before is used again where the driver left
 * it in place. */
static oj_status set_point(struct oj_layer_writer *writer, double x, double y,
                           int64_t fid, struct oj_error *err)
{
    OGRwkbGeometryType type =
        writer->options.promote_to_multi ? wkbMultiPoint : wkbPoint;
    OGRGeometryH geometry = OGR_F_GetGeometryRef(writer->feature);
    OGRGeometryH point;
    if (geometry == NULL || OGR_G_GetGeometryType(geometry) != type ||
        (type == wkbMultiPoint && OGR_G_GetGeometryCount(geometry) != 1))
    {
        geometry = OGR_G_CreateGeometry(type);
        if (geometry != NULL && type == wkbMultiPoint)
            OGR_G_AddGeometryDirectly(geometry, OGR_G_CreateGeometry(wkbPoint));
        if (geometry == NULL ||
            OGR_F_SetGeometryDirectly(writer->feature, geometry) != OGRERR_NONE)
            return fail_geometry(fid, err);
    }
    point =
        type == wkbMultiPoint ? OGR_G_GetGeometryRef(geometry, 0) : geometry;
    if (OGR_G_GetGeometryType(point) != wkbPoint) /* a driver touched it */
        OGR_G_SetCoordinateDimension(point, 2);
    OGR_G_SetPoint_2D(point, 0, x, y);
    return OJ_OK;
}

/* Takes geometry. Others than points, lines and polygons stay as they are. */
static OGRGeometryH to_multi(OGRGeometryH geometry)
{
    switch (wkbFlatten(OGR_G_GetGeometryType(geometry)))
    {
        case wkbPoint:
            return OGR_G_ForceToMultiPoint(geometry);
        case wkbLineString:
            return OGR_G_ForceToMultiLineString(geometry);
        case wkbPolygon:
            return OGR_G_ForceToMultiPolygon(geometry);
        default:
            return geometry;
    }
}

/* Takes geometry. */
static oj_status set_geometry(struct oj_layer_writer *writer,
                              OGRGeometryH geometry, int64_t fid,
                              struct oj_error *err)
{
    if (geometry != NULL && writer->options.promote_to_multi)
        geometry = to_multi(geometry);
    if (geometry == NULL || OGR_G_IsEmpty(geometry))
        writer->n_without_geometry++;
    if (OGR_F_SetGeometryDirectly(writer->feature, geometry) != OGRERR_NONE)
        return fail_geometry(fid, err);
    return OJ_OK;
}

static oj_status geometry_from_wkb(struct oj_layer_writer *writer,
                                   const struct oj_batch *batch, int64_t row,
                                   int64_t fid, struct oj_error *err)
{
    size_t n = 0;
    const uint8_t *wkb = oj_arrow_wkb(&batch->attributes->slice, row, &n);
    const uint8_t *at = wkb != NULL ? oj_wkb_plain_point(wkb, n) : NULL;
    OGRGeometryH geometry = NULL;
    if (at != NULL)
    {
        double x = oj_wkb_double(at), y = oj_wkb_double(at + 8);
        if (!isnan(x) || !isnan(y)) /* NaN NaN: POINT EMPTY */
            return set_point(writer, x, y, fid, err);
    }
    if (wkb != NULL &&
        (n > INT_MAX ||
         OGR_G_CreateFromWkb(wkb, NULL, &geometry, (int)n) != OGRERR_NONE))
        return fail_geometry(fid, err);
    return set_geometry(writer, geometry, fid, err);
}

static oj_status geometry_from_feature(struct oj_layer_writer *writer,
                                       const struct oj_batch *batch,
                                       int64_t row, int64_t fid,
                                       struct oj_error *err)
{
    const struct oj_attributes *attributes = batch->attributes;
    int field = attributes->fields->geometry_field;
    OGRGeometryH geometry = NULL;
    if (field >= 0)
        geometry = OGR_F_GetGeomFieldRef(attributes->feature[row], field);
    if (geometry != NULL && OGR_G_GetGeometryType(geometry) == wkbPoint &&
        !OGR_G_IsEmpty(geometry))
        return set_point(writer, OGR_G_GetX(geometry, 0),
                         OGR_G_GetY(geometry, 0), fid, err);
    return set_geometry(writer, geometry != NULL ? OGR_G_Clone(geometry) : NULL,
                        fid, err);
}

/* ---- rows --------------------------------------------------------------- */

static oj_status set_input_columns(struct oj_layer_writer *writer,
                                   const struct oj_batch *batch, int64_t row,
                                   struct oj_error *err)
{
    for (int i = 0; i < writer->options.n_columns; i++)
    {
        struct way *way = &writer->way[i];
        struct oj_value value;
        if (way->column.origin != OJ_COLUMN_INPUT)
            continue;
        oj_attributes_value(batch->attributes, way->column.source, row, &value);
        OJ_TRY(oj_setter_set(&way->setter, writer->feature, &value, err));
    }
    return OJ_OK;
}

oj_status oj_layer_writer_set_join_columns(const struct oj_layer_writer *writer,
                                           OGRFeatureH feature,
                                           int32_t join_row, double measure,
                                           int64_t rank, struct oj_error *err)
{
    const struct oj_flat *side = writer->options.join_side;
    for (int i = 0; i < writer->options.n_columns; i++)
    {
        struct way *way = &writer->way[i];
        struct oj_value value;
        if (way->column.origin == OJ_COLUMN_INPUT)
            continue;
        oj_value_set_zero(&value);
        if (join_row < 0)
            oj_value_set_null(&value);
        else if (way->column.origin == OJ_COLUMN_JOIN)
            oj_table_value(writer->options.join_table, join_row,
                           way->column.source, &value);
        else if (way->column.origin == OJ_COLUMN_MEASURE)
            value.raw.Real = measure;
        else if (way->column.origin == OJ_COLUMN_RANK)
            value.raw.Integer64 = rank;
        else if (side->fid != NULL)
            value.raw.Integer64 = side->fid[join_row];
        else
            value.raw.Integer64 = join_row;
        OJ_TRY(oj_setter_set(&way->setter, feature, &value, err));
    }
    return OJ_OK;
}

static oj_status create_row(struct oj_layer_writer *writer,
                            const struct oj_batch *batch, int64_t row,
                            struct oj_error *err)
{
    int64_t fid = batch->flat.fid[row];
    OGRErr code;
    if (writer->has_geometry)
    {
        if (batch->attributes->slice.chunk != NULL)
            OJ_TRY(geometry_from_wkb(writer, batch, row, fid, err));
        else
            OJ_TRY(geometry_from_feature(writer, batch, row, fid, err));
    }
    OGR_F_SetFID(writer->feature, writer->options.keep_fids ? fid : OGRNullFID);
    code = OGR_L_CreateFeature(writer->layer, writer->feature);
    if (code != OGRERR_NONE || writer->errors.n_failures > 0)
        return oj_fail(err, OJ_ERR_IO,
                       "the row of input feature %lld cannot be written to "
                       "layer %s: %s",
                       (long long)fid, OGR_L_GetName(writer->layer),
                       oj_ogr_errors_text(&writer->errors));
    writer->n_rows++;
    return OJ_OK;
}

/* join_row < 0: the row has no pair. */
static oj_status write_pair(struct oj_layer_writer *writer,
                            const struct oj_batch *batch, int64_t row,
                            int32_t join_row, double measure, int64_t rank,
                            struct oj_error *err)
{
    OJ_TRY(oj_layer_writer_set_join_columns(writer, writer->feature, join_row,
                                            measure, rank, err));
    return create_row(writer, batch, row, err);
}

static oj_status write_row(struct oj_layer_writer *writer,
                           const struct oj_batch *batch,
                           const struct oj_matches *matches, int64_t row,
                           struct oj_error *err)
{
    int64_t first = oj_matches_first(matches, row);
    int64_t end = oj_matches_end(matches, row);
    enum oj_how how = writer->options.how;
    if (first == end ? how == OJ_HOW_INNER || how == OJ_HOW_SEMI
                     : how == OJ_HOW_ANTI)
        return OJ_OK;
    OJ_TRY(set_input_columns(writer, batch, row, err));
    if (first == end || how == OJ_HOW_SEMI)
        return write_pair(writer, batch, row, -1, (double)NAN, 0, err);
    for (int64_t p = first; p < end; p++)
        OJ_TRY(write_pair(writer, batch, row, matches->join_row[p],
                          matches->measure[p], p - first + 1, err));
    return OJ_OK;
}

/* Rows of the join side come in no order: what the writer will need of them is
 * fetched some rows ahead, in two steps because texts hang on their offsets. */
#define FETCH_AHEAD 16

static void fetch_ahead(const struct oj_layer_writer *writer,
                        const struct oj_matches *matches, int64_t row)
{
    const struct oj_write_options *options = &writer->options;
    if (matches->offset != NULL || options->join_table == NULL)
        return;
    for (int stage = 0; stage < 2; stage++)
    {
        int64_t ahead = row + FETCH_AHEAD * (2 - stage);
        if (ahead >= matches->n_rows || matches->join_row[ahead] < 0)
            continue;
        oj_table_prefetch(options->join_table, matches->join_row[ahead], stage);
        if (stage == 0 && options->join_side->fid != NULL)
            __builtin_prefetch(
                &options->join_side->fid[matches->join_row[ahead]]);
    }
}

/* Asked now and then: a batch can take a second to write. */
static int is_cancelled(const struct oj_layer_writer *writer, int64_t row)
{
    const int *cancel = writer->options.cancel;
    return row % 1024 == 0 && cancel != NULL &&
           __atomic_load_n(cancel, __ATOMIC_RELAXED) != 0;
}

oj_status oj_layer_writer_write(struct oj_layer_writer *writer,
                                const struct oj_batch *batch,
                                const struct oj_matches *matches,
                                struct oj_error *err)
{
    oj_status status = OJ_OK;
    if (batch->n_rows == 0)
        return OJ_OK;
    if (batch->attributes == NULL || matches->n_rows != batch->n_rows)
        return oj_fail(err, OJ_ERR_INTERNAL,
                       "%lld answers for a batch of %lld rows",
                       (long long)matches->n_rows, (long long)batch->n_rows);
    oj_ogr_errors_begin(&writer->errors);
    if (writer->fields != batch->attributes->fields)
        status = set_fields(writer, batch->attributes->fields, err);
    for (int64_t i = 0; status == OJ_OK && i < batch->n_rows; i++)
    {
        if (is_cancelled(writer, i))
            status = oj_fail(err, OJ_ERR_CANCELLED, "interrupted");
        else
        {
            fetch_ahead(writer, matches, i);
            status = write_row(writer, batch, matches, i, err);
        }
    }
    oj_ogr_errors_end(&writer->errors);
    return status;
}
