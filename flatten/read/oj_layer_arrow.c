#include "oj_layer_arrow.h"
#include "../base/oj_array.h"

#if OJ_HAVE_ARROW
#include <cpl_string.h>
#include <ogr_recordbatch.h>

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Chunks no larger than this are asked for: their text columns count bytes in
 * 32 bits. */
#define MOST_ROWS 524288

/* Which child of the stream a column is, and the letter of its format:
 * i s l f g u U z Z. */
struct arrow_column
{
    int child;
    char format;
};

/* What every chunk of a stream has in common. Shared like chunks are: a batch
 * may be freed after the stream is closed. */
struct layout
{
    atomic_int n_users;
    struct arrow_column fid, geometry; /* child < 0: none */
    int n_fields;
    struct arrow_column field[];
};

struct oj_arrow_chunk
{
    atomic_int n_users;
    struct layout *layout;
    struct ArrowArray array;
};

struct oj_arrow_stream
{
    struct ArrowArrayStream stream;
    struct layout *layout;
    struct oj_arrow_slice rest; /* of the last chunk, not handed out yet */
};

static void layout_free(struct layout *layout)
{
    if (layout != NULL && atomic_fetch_sub(&layout->n_users, 1) == 1)
        oj_free(layout);
}

/* ---- schema ------------------------------------------------------------- */

/* The format that values of this type have in a stream, 0 where something is
 * lost (times lose their zone; GDAL 3.6 mixes up the bits of booleans) or where
 * it is not worth it (lists). */
static char format_of(const struct oj_field *field)
{
    switch (field->type)
    {
        case OFTInteger:
            if (field->subtype == OFSTBoolean)
                return 0;
            return field->subtype == OFSTInt16 ? 's' : 'i';
        case OFTInteger64:
            return 'l';
        case OFTReal:
            return field->subtype == OFSTFloat32 ? 'f' : 'g';
        case OFTString:
            return 'u';
        case OFTBinary:
            return 'z';
        default:
            return 0;
    }
}

/* Formats with 64-bit offsets are written in capitals. */
static int has_format(const struct ArrowSchema *child, char format)
{
    char large = format == 'u' ? 'U' : format == 'z' ? 'Z' : format;
    return (child->format[0] == format || child->format[0] == large) &&
           child->format[1] == '\0' && child->dictionary == NULL;
}

/* A dictionary would have to be looked up: not worth it. */
static int find_column(const struct ArrowSchema *schema, const char *name,
                       char format, struct arrow_column *column)
{
    for (int64_t c = 0; c < schema->n_children; c++)
    {
        const struct ArrowSchema *child = schema->children[c];
        if (child->name == NULL || strcmp(child->name, name) != 0)
            continue;
        if (column->child >= 0 || !has_format(child, format))
            return 0; /* twice the same name, or not as expected */
        column->child = (int)c;
        column->format = child->format[0];
    }
    return column->child >= 0;
}

static int fill_layout(struct layout *layout, OGRLayerH layer,
                       const struct oj_fields *fields,
                       const struct ArrowSchema *schema)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    const char *fid_name = OGR_L_GetFIDColumn(layer);
    atomic_init(&layout->n_users, 1);
    layout->n_fields = fields->n;
    layout->fid.child = layout->geometry.child = -1;
    if (!find_column(schema, fid_name[0] != '\0' ? fid_name : "OGC_FID", 'l',
                     &layout->fid))
        return 0;
    if (fields->geometry_field >= 0)
    {
        const char *name = OGR_GFld_GetNameRef(
            OGR_FD_GetGeomFieldDefn(defn, fields->geometry_field));
        if (!find_column(schema, name[0] != '\0' ? name : "wkb_geometry", 'z',
                         &layout->geometry))
            return 0;
    }
    for (int i = 0; i < fields->n; i++)
    {
        const struct oj_field *field = &fields->field[i];
        const char *name =
            OGR_Fld_GetNameRef(OGR_FD_GetFieldDefn(defn, field->index));
        layout->field[i].child = -1;
        if (!field->is_skipped &&
            !find_column(schema, name, format_of(field), &layout->field[i]))
            return 0;
    }
    return 1;
}

static int types_survive(const struct oj_fields *fields)
{
    for (int i = 0; i < fields->n; i++)
    {
        if (!fields->field[i].is_skipped && format_of(&fields->field[i]) == 0)
            return 0;
    }
    return 1;
}

/* A rectangle: drivers compare it with the features' boxes only in a stream,
 * but with the features themselves in the feature loop. */
static int is_usable(OGRLayerH layer, const struct oj_fields *fields)
{
    return types_survive(fields) && OGR_L_GetSpatialFilter(layer) == NULL &&
           OGR_FD_GetGeomFieldCount(OGR_L_GetLayerDefn(layer)) <= 1 &&
           OGR_L_TestCapability(layer, OLCFastGetArrowStream);
}

static oj_status make_stream(OGRLayerH layer, const struct oj_fields *fields,
                             struct oj_arrow_stream *stream, int *usable,
                             struct oj_error *err)
{
    struct ArrowSchema schema;
    struct layout *layout;
    *usable = 0;
    layout = oj_calloc(1, sizeof *layout +
                              (size_t)fields->n * sizeof layout->field[0]);
    if (layout == NULL)
        return oj_fail_nomem(err, fields->n, sizeof layout->field[0]);
    memset(&schema, 0, sizeof schema);
    if (stream->stream.get_schema(&stream->stream, &schema) == 0)
    {
        *usable = fill_layout(layout, layer, fields, &schema);
        schema.release(&schema);
    }
    if (*usable)
        stream->layout = layout;
    else
        oj_free(layout);
    return OJ_OK;
}

oj_status oj_arrow_open(OGRLayerH layer, const struct oj_fields *fields,
                        int64_t batch_rows, struct oj_arrow_stream **out,
                        struct oj_error *err)
{
    struct oj_arrow_stream *stream;
    char rows[64];
    char *options[3];
    oj_status status;
    int usable;
    *out = NULL;
    if (!is_usable(layer, fields))
        return OJ_OK;
    stream = oj_calloc(1, sizeof *stream);
    if (stream == NULL)
        return oj_fail_nomem(err, 1, sizeof *stream);
    snprintf(rows, sizeof rows, "MAX_FEATURES_IN_BATCH=%lld",
             (long long)(batch_rows < MOST_ROWS ? batch_rows : MOST_ROWS));
    options[0] = rows;
    options[1] = "INCLUDE_FID=YES";
    options[2] = NULL;
    if (!OGR_L_GetArrowStream(layer, &stream->stream, options))
    {
        oj_free(stream);
        return OJ_OK;
    }
    status = make_stream(layer, fields, stream, &usable, err);
    if (status == OJ_OK && usable)
        *out = stream;
    else
        oj_arrow_close(stream);
    return status;
}

/* ---- slices ------------------------------------------------------------- */

/* GeoPackage (seen in GDAL 3.6) answers a broken page with chunks of no rows,
 * without end, and reports it on a thread of its own where nobody listens. */
#define MAX_EMPTY_CHUNKS 16

/* FlatGeobuf (seen with GDAL 3.10) forgets in its streams that a row has
 * no geometry, and writes the next ones over others: a WKB of no bytes, or of
 * less, in a row that is not NULL. */
static int geometries_are_sound(const struct oj_arrow_chunk *chunk)
{
    const struct arrow_column *column = &chunk->layout->geometry;
    const struct ArrowArray *child;
    const int32_t *offset;
    const uint8_t *bits;
    if (column->child < 0 || column->format != 'z')
        return 1;
    child = chunk->array.children[column->child];
    offset = (const int32_t *)child->buffers[1] + child->offset;
    bits = child->null_count != 0 ? child->buffers[0] : NULL;
    for (int64_t i = 0; i < child->length; i++)
    {
        int64_t at = child->offset + i;
        if (offset[i + 1] <= offset[i] &&
            (bits == NULL || (bits[at >> 3] >> (at & 7) & 1) != 0))
            return 0;
    }
    return 1;
}

static oj_status next_chunk(struct oj_arrow_stream *stream, const char **text,
                            struct oj_error *err)
{
    struct oj_arrow_chunk *chunk;
    oj_arrow_slice_free(&stream->rest);
    OJ_NEW(chunk, 1, err);
    memset(chunk, 0, sizeof *chunk);
    if (stream->stream.get_next(&stream->stream, &chunk->array) != 0)
    {
        *text = stream->stream.get_last_error(&stream->stream);
        oj_free(chunk);
        return oj_fail(err, OJ_ERR_IO, "the stream of rows broke off");
    }
    if (chunk->array.release == NULL)
    {
        oj_free(chunk);
        return OJ_OK;
    }
    chunk->layout = stream->layout;
    if (!geometries_are_sound(chunk))
    {
        chunk->array.release(&chunk->array);
        oj_free(chunk);
        *text = "the driver mixes up rows without geometry";
        return oj_fail(err, OJ_ERR_UNSUPPORTED, "%s", *text);
    }
    atomic_init(&chunk->n_users, 1);
    atomic_fetch_add(&chunk->layout->n_users, 1);
    stream->rest.chunk = chunk;
    stream->rest.first = 0;
    stream->rest.n_rows = chunk->array.length;
    return OJ_OK;
}

oj_status oj_arrow_next(struct oj_arrow_stream *stream, int64_t max_rows,
                        struct oj_arrow_slice *slice, const char **text,
                        struct oj_error *err)
{
    struct oj_arrow_slice *rest = &stream->rest;
    *text = NULL;
    for (int n_empty = 0; rest->n_rows == 0; n_empty++)
    {
        if (n_empty > MAX_EMPTY_CHUNKS)
        {
            *text = "the driver has no more rows but is not at the end: "
                    "the file is broken";
            return oj_fail(err, OJ_ERR_IO, "%s", *text);
        }
        OJ_TRY(next_chunk(stream, text, err));
        if (rest->chunk == NULL)
        {
            memset(slice, 0, sizeof *slice);
            return OJ_OK;
        }
    }
    *slice = *rest;
    if (slice->n_rows > max_rows)
        slice->n_rows = max_rows;
    rest->first += slice->n_rows;
    rest->n_rows -= slice->n_rows;
    atomic_fetch_add(&slice->chunk->n_users, 1);
    if (rest->n_rows == 0)
        oj_arrow_slice_free(rest); /* not kept longer than its readers do */
    return OJ_OK;
}

void oj_arrow_slice_free(struct oj_arrow_slice *slice)
{
    struct oj_arrow_chunk *chunk = slice->chunk;
    if (chunk != NULL && atomic_fetch_sub(&chunk->n_users, 1) == 1)
    {
        chunk->array.release(&chunk->array);
        layout_free(chunk->layout);
        oj_free(chunk);
    }
    memset(slice, 0, sizeof *slice);
}

void oj_arrow_close(struct oj_arrow_stream *stream)
{
    if (stream == NULL)
        return;
    oj_arrow_slice_free(&stream->rest);
    stream->stream.release(&stream->stream);
    layout_free(stream->layout);
    oj_free(stream);
}

/* ---- values ------------------------------------------------------------- */

static int bit(const void *bits, int64_t i)
{
    return ((const uint8_t *)bits)[i >> 3] >> (i & 7) & 1;
}

/* The array of a column and the place of a row in its buffers; NULL where the
 * row has no value. */
static const struct ArrowArray *locate(const struct oj_arrow_slice *slice,
                                       const struct arrow_column *column,
                                       int64_t row, int64_t *at)
{
    const struct ArrowArray *batch = &slice->chunk->array;
    const struct ArrowArray *child;
    if (column->child < 0)
        return NULL;
    child = batch->children[column->child];
    *at = batch->offset + child->offset + slice->first + row;
    if (child->null_count != 0 && child->buffers[0] != NULL &&
        !bit(child->buffers[0], *at))
        return NULL;
    return child;
}

static const void *bytes_at(const struct ArrowArray *array, char format,
                            int64_t at, int64_t *n)
{
    int64_t first, end;
    if (format == 'U' || format == 'Z')
    {
        const int64_t *offset = array->buffers[1];
        first = offset[at];
        end = offset[at + 1];
    }
    else
    {
        const int32_t *offset = array->buffers[1];
        first = offset[at];
        end = offset[at + 1];
    }
    *n = end - first;
    if (array->buffers[2] == NULL)
        return "";
    return (const char *)array->buffers[2] + first;
}

int64_t oj_arrow_fid(const struct oj_arrow_slice *slice, int64_t row)
{
    int64_t at;
    const struct ArrowArray *array =
        locate(slice, &slice->chunk->layout->fid, row, &at);
    return array != NULL ? ((const int64_t *)array->buffers[1])[at]
                         : OGRNullFID;
}

const uint8_t *oj_arrow_wkb(const struct oj_arrow_slice *slice, int64_t row,
                            size_t *n_bytes)
{
    const struct arrow_column *column = &slice->chunk->layout->geometry;
    int64_t at, n;
    const struct ArrowArray *array = locate(slice, column, row, &at);
    const void *bytes;
    if (array == NULL)
        return NULL;
    bytes = bytes_at(array, column->format, at, &n);
    *n_bytes = (size_t)n;
    return bytes;
}

struct oj_arrow_view oj_arrow_view(const struct oj_arrow_slice *slice,
                                   int field)
{
    const struct arrow_column *column = &slice->chunk->layout->field[field];
    const struct ArrowArray *batch = &slice->chunk->array;
    const struct ArrowArray *child = batch->children[column->child];
    struct oj_arrow_view view = {0};
    view.format = column->format;
    if (child->null_count != 0)
        view.bits = child->buffers[0];
    view.values = child->buffers[1];
    if (child->n_buffers > 2)
        view.bytes = child->buffers[2] != NULL ? child->buffers[2] : "";
    view.first = batch->offset + child->offset + slice->first;
    return view;
}

int oj_arrow_reals(const struct oj_arrow_slice *slice, int field, int64_t first,
                   int64_t n, const int32_t *order, double *value,
                   uint8_t *is_null, int *any_null)
{
    const struct arrow_column *column = &slice->chunk->layout->field[field];
    const struct ArrowArray *batch = &slice->chunk->array, *child;
    const double *column_value;
    int64_t at;
    if (column->format != 'g' || column->child < 0)
        return 0;
    child = batch->children[column->child];
    column_value = child->buffers[1];
    at = batch->offset + child->offset + slice->first;
    *any_null = child->null_count != 0 && child->buffers[0] != NULL;
    for (int64_t i = 0; i < n; i++)
        value[i] =
            column_value[at + (order != NULL ? order[first + i] : first + i)];
    for (int64_t i = 0; *any_null && i < n; i++)
        is_null[i] = !bit(child->buffers[0],
                          at + (order != NULL ? order[first + i] : first + i));
    return 1;
}

void oj_arrow_value(const struct oj_arrow_slice *slice, int field, int64_t row,
                    struct oj_value *value)
{
    const struct arrow_column *column = &slice->chunk->layout->field[field];
    int64_t at, n;
    const struct ArrowArray *array = locate(slice, column, row, &at);
    if (array == NULL)
    {
        oj_value_set_null(value);
        return;
    }
    oj_value_set_zero(value);
    switch (column->format)
    {
        case 's':
            value->raw.Integer = ((const int16_t *)array->buffers[1])[at];
            break;
        case 'i':
            value->raw.Integer = ((const int32_t *)array->buffers[1])[at];
            break;
        case 'l':
            value->raw.Integer64 = ((const int64_t *)array->buffers[1])[at];
            break;
        case 'f':
            value->raw.Real = (double)((const float *)array->buffers[1])[at];
            break;
        case 'g':
            value->raw.Real = ((const double *)array->buffers[1])[at];
            break;
        case 'u':
        case 'U':
            value->raw.String = (char *)bytes_at(array, column->format, at, &n);
            value->n_text = n;
            break;
        default:
            value->raw.Binary.paData =
                (GByte *)bytes_at(array, column->format, at, &n);
            value->raw.Binary.nCount = (int)n;
            break;
    }
}

#else

oj_status oj_arrow_open(OGRLayerH layer, const struct oj_fields *fields,
                        int64_t batch_rows, struct oj_arrow_stream **out,
                        struct oj_error *err)
{
    (void)layer;
    (void)fields;
    (void)batch_rows;
    (void)err;
    *out = NULL;
    return OJ_OK;
}

oj_status oj_arrow_next(struct oj_arrow_stream *stream, int64_t max_rows,
                        struct oj_arrow_slice *slice, const char **text,
                        struct oj_error *err)
{
    (void)stream;
    (void)max_rows;
    (void)slice;
    *text = NULL;
    return oj_fail(err, OJ_ERR_INTERNAL, "no Arrow stream before GDAL 3.6");
}

void oj_arrow_close(struct oj_arrow_stream *stream)
{
    (void)stream;
}

void oj_arrow_slice_free(struct oj_arrow_slice *slice)
{
    (void)slice;
}

int64_t oj_arrow_fid(const struct oj_arrow_slice *slice, int64_t row)
{
    (void)slice;
    (void)row;
    return OGRNullFID;
}

const uint8_t *oj_arrow_wkb(const struct oj_arrow_slice *slice, int64_t row,
                            size_t *n_bytes)
{
    (void)slice;
    (void)row;
    *n_bytes = 0;
    return NULL;
}

struct oj_arrow_view oj_arrow_view(const struct oj_arrow_slice *slice,
                                   int field)
{
    const struct oj_arrow_view view = {0};
    (void)slice;
    (void)field;
    return view;
}

int oj_arrow_reals(const struct oj_arrow_slice *slice, int field, int64_t first,
                   int64_t n, const int32_t *order, double *value,
                   uint8_t *is_null, int *any_null)
{
    (void)slice;
    (void)field;
    (void)first;
    (void)n;
    (void)order;
    (void)value;
    (void)is_null;
    (void)any_null;
    return 0;
}

void oj_arrow_value(const struct oj_arrow_slice *slice, int field, int64_t row,
                    struct oj_value *value)
{
    (void)slice;
    (void)field;
    (void)row;
    oj_value_set_null(value);
}

#endif
