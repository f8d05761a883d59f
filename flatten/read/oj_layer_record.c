#include "oj_layer_record.h"
#include "../base/oj_array.h"

#include <string.h>

#define IS_POINT 1u /* one vertex, no parts arrays */
#define HAS_MAX_DISTANCE 2u
#define HAS_ON_CLASS 4u
#define HAS_EXCLUDE_CLASS 8u
#define HAS_FID 16u

/* What every record starts with. Columns that are there follow it. */
struct head
{
    int64_t length; /* of the record, a multiple of 8 */
    int64_t ordinal, fid;
    uint32_t flags;
    int32_t n_parts; /* 0 with IS_POINT */
};

static int64_t padded(int64_t n)
{
    return (n + 7) & ~INT64_C(7);
}

/* ---- bytes -------------------------------------------------------------- */

static oj_status put(struct oj_bytes *bytes, const void *from, int64_t n,
                     struct oj_error *err)
{
    int64_t end = bytes->n + padded(n);
    OJ_TRY(oj_reserve(&bytes->byte, bytes->n, end, &bytes->capacity, 1, err));
    if (n > 0)
        memcpy(bytes->byte + bytes->n, from, (size_t)n);
    memset(bytes->byte + bytes->n + n, 0, (size_t)(end - bytes->n - n));
    bytes->n = end;
    return OJ_OK;
}

static oj_status put_number(struct oj_bytes *bytes, int64_t number,
                            struct oj_error *err)
{
    return put(bytes, &number, sizeof number, err);
}

/* Where the next piece of a record is. */
struct record_cursor
{
    const unsigned char *at;
};

static const void *take(struct record_cursor *cursor, int64_t n)
{
    const void *piece = cursor->at;
    cursor->at += padded(n);
    return piece;
}

static int64_t take_number(struct record_cursor *cursor)
{
    int64_t number;
    memcpy(&number, take(cursor, sizeof number), sizeof number);
    return number;
}

/* ---- values ------------------------------------------------------------- */

static oj_status put_list(struct oj_bytes *bytes, OGRFieldType type,
                          const OGRField *raw, struct oj_error *err)
{
    int n = raw->IntegerList.nCount;
    OJ_TRY(put_number(bytes, n, err));
    if (type == OFTIntegerList)
        return put(bytes, raw->IntegerList.paList, 4 * (int64_t)n, err);
    if (type != OFTStringList)
        return put(bytes, raw->Integer64List.paList, 8 * (int64_t)n, err);
    for (int i = 0; i < n; i++)
    {
        int64_t length = (int64_t)strlen(raw->StringList.paList[i]) + 1;
        OJ_TRY(put_number(bytes, length, err));
        OJ_TRY(put(bytes, raw->StringList.paList[i], length, err));
    }
    return OJ_OK;
}

static oj_status put_value(struct oj_bytes *bytes, OGRFieldType type,
                           const struct oj_value *value, struct oj_error *err)
{
    const OGRField *raw = &value->raw;
    int64_t n;
    if (OGR_RawField_IsNull(raw) || OGR_RawField_IsUnset(raw))
        return put_number(bytes, 0, err);
    OJ_TRY(put_number(bytes, 1, err));
    switch (type)
    {
        case OFTInteger:
            return put_number(bytes, raw->Integer, err);
        case OFTInteger64:
            return put_number(bytes, raw->Integer64, err);
        case OFTReal:
            return put(bytes, &raw->Real, sizeof raw->Real, err);
        case OFTString:
            n = value->n_text >= 0 ? value->n_text
                                   : (int64_t)strlen(raw->String);
            OJ_TRY(put_number(bytes, n, err));
            return put(bytes, raw->String, n, err);
        case OFTBinary:
            OJ_TRY(put_number(bytes, raw->Binary.nCount, err));
            return put(bytes, raw->Binary.paData, raw->Binary.nCount, err);
        case OFTIntegerList:
        case OFTInteger64List:
        case OFTRealList:
        case OFTStringList:
            return put_list(bytes, type, raw, err);
        default:
            return put(bytes, raw, sizeof *raw, err);
    }
}

/* Texts of a list are pointed at where they lie; *texts keeps the pointers. */
static oj_status take_list(struct record_cursor *cursor, OGRFieldType type,
                           OGRField *raw, char ***texts, int64_t *cap_texts,
                           struct oj_error *err)
{
    int n = (int)take_number(cursor);
    raw->IntegerList.nCount = n;
    if (type == OFTIntegerList)
        raw->IntegerList.paList = (int *)take(cursor, 4 * (int64_t)n);
    else if (type != OFTStringList)
        raw->Integer64List.paList = (GIntBig *)take(cursor, 8 * (int64_t)n);
    else
    {
        OJ_TRY(oj_reserve(texts, 0, n, cap_texts, sizeof **texts, err));
        for (int i = 0; i < n; i++)
        {
            int64_t length = take_number(cursor);
            (*texts)[i] = (char *)take(cursor, length);
        }
        raw->StringList.paList = *texts;
    }
    return OJ_OK;
}

static oj_status take_value(struct record_cursor *cursor, OGRFieldType type,
                            struct oj_value *value, char ***texts,
                            int64_t *cap_texts, struct oj_error *err)
{
    OGRField *raw = &value->raw;
    if (take_number(cursor) == 0)
    {
        oj_value_set_null(value);
        return OJ_OK;
    }
    oj_value_set_zero(value);
    switch (type)
    {
        case OFTInteger:
            raw->Integer = (int)take_number(cursor);
            return OJ_OK;
        case OFTInteger64:
            raw->Integer64 = take_number(cursor);
            return OJ_OK;
        case OFTReal:
            memcpy(&raw->Real, take(cursor, 8), 8);
            return OJ_OK;
        case OFTString:
            value->n_text = take_number(cursor);
            raw->String = (char *)take(cursor, value->n_text);
            return OJ_OK;
        case OFTBinary:
            raw->Binary.nCount = (int)take_number(cursor);
            raw->Binary.paData = (GByte *)take(cursor, raw->Binary.nCount);
            return OJ_OK;
        case OFTIntegerList:
        case OFTInteger64List:
        case OFTRealList:
        case OFTStringList:
            return take_list(cursor, type, raw, texts, cap_texts, err);
        default:
            memcpy(raw, take(cursor, sizeof *raw), sizeof *raw);
            return OJ_OK;
    }
}

/* ---- features ----------------------------------------------------------- */

struct oj_flat oj_feature_set_view(const struct oj_feature_set *features)
{
    struct oj_flat flat = oj_flat_buf_view(&features->buf);
    flat.max_distance = features->max_distance;
    flat.on_class = features->on_class;
    flat.exclude_class = features->exclude_class;
    return flat;
}

oj_status oj_feature_set_clear(struct oj_feature_set *features,
                               struct oj_error *err)
{
    struct oj_table *table = features->table;
    oj_flat_buf_clear(&features->buf);
    if (table == NULL)
        return OJ_OK;
    OJ_TRY(oj_table_new_like(table, &features->table, err));
    oj_table_free(table);
    return OJ_OK;
}

void oj_feature_set_free(struct oj_feature_set *features)
{
    oj_flat_buf_free(&features->buf);
    oj_table_free(features->table);
    oj_free(features->ordinal);
    oj_free(features->max_distance);
    oj_free(features->on_class);
    oj_free(features->exclude_class);
    memset(features, 0, sizeof *features);
}

static oj_status add_ordinal(struct oj_feature_set *features, int64_t ordinal,
                             struct oj_error *err)
{
    int64_t n = features->buf.n_features;
    OJ_TRY(oj_reserve(&features->ordinal, n, n + 1, &features->cap_ordinal,
                      sizeof *features->ordinal, err));
    features->ordinal[n] = ordinal;
    return OJ_OK;
}

static oj_status add_columns(struct oj_feature_set *features,
                             const double *max_distance,
                             const int32_t *on_class,
                             const int32_t *exclude_class, struct oj_error *err)
{
    int64_t n = features->buf.n_features;
    if (max_distance != NULL)
    {
        OJ_TRY(oj_reserve(&features->max_distance, n, n + 1,
                          &features->cap_max_distance, sizeof *max_distance,
                          err));
        features->max_distance[n] = *max_distance;
    }
    if (on_class != NULL)
    {
        OJ_TRY(oj_reserve(&features->on_class, n, n + 1,
                          &features->cap_on_class, sizeof *on_class, err));
        features->on_class[n] = *on_class;
    }
    if (exclude_class != NULL)
    {
        OJ_TRY(oj_reserve(&features->exclude_class, n, n + 1,
                          &features->cap_exclude_class, sizeof *exclude_class,
                          err));
        features->exclude_class[n] = *exclude_class;
    }
    return OJ_OK;
}

/* The parts of feature from of flat. */
static oj_status copy_parts(struct oj_flat_buf *buf, const struct oj_flat *flat,
                            int64_t from, struct oj_error *err)
{
    for (int64_t part = flat->part_offset[from];
         part < flat->part_offset[from + 1]; part++)
        OJ_TRY(oj_flat_buf_copy_part(buf, flat, part, err));
    return oj_flat_buf_end(buf, err);
}

static int has_parts(const struct oj_flat *flat, int64_t i)
{
    if (oj_flat_is_points(flat))
        return flat->x[i] == flat->x[i] && flat->y[i] == flat->y[i];
    return flat->part_offset[i + 1] > flat->part_offset[i];
}

static oj_status copy_geometry(struct oj_flat_buf *buf,
                               const struct oj_flat *flat, int64_t from,
                               int64_t fid, struct oj_error *err)
{
    oj_status status;
    if (oj_flat_is_points(flat))
        return oj_flat_buf_add_point(buf, fid, flat->x[from], flat->y[from],
                                     err);
    OJ_TRY(oj_flat_buf_begin(buf, fid, err));
    status = copy_parts(buf, flat, from, err);
    if (status != OJ_OK)
        oj_flat_buf_drop(buf);
    return status;
}

oj_status oj_feature_set_add(struct oj_feature_set *features,
                             const struct oj_flat *flat, int64_t from,
                             int with_geometry, const struct oj_table *table,
                             int64_t row, int64_t ordinal, struct oj_error *err)
{
    int64_t fid = flat->fid != NULL ? flat->fid[from] : -1;
    OJ_TRY(add_ordinal(features, ordinal, err));
    OJ_TRY(add_columns(
        features, flat->max_distance != NULL ? flat->max_distance + from : NULL,
        flat->on_class != NULL ? flat->on_class + from : NULL,
        flat->exclude_class != NULL ? flat->exclude_class + from : NULL, err));
    if (table != NULL)
        OJ_TRY(oj_table_append_copy(features->table, table, row, err));
    if (with_geometry && has_parts(flat, from))
        return copy_geometry(&features->buf, flat, from, fid, err);
    return oj_flat_buf_add_null(&features->buf, fid, err);
}

/* ---- records ------------------------------------------------------------ */

static oj_status put_shape(struct oj_bytes *bytes, const struct oj_flat *flat,
                           int64_t from, struct oj_error *err)
{
    int64_t part = flat->part_offset[from], end = flat->part_offset[from + 1];
    int64_t ring = flat->ring_offset[part], end_ring = flat->ring_offset[end];
    int64_t vertex = flat->vertex_offset[ring];
    int64_t n = flat->vertex_offset[end_ring] - vertex;
    OJ_TRY(put(bytes, flat->part_kind + part, end - part, err));
    for (int64_t p = part; p < end; p++)
        OJ_TRY(put_number(
            bytes, flat->ring_offset[p + 1] - flat->ring_offset[p], err));
    for (int64_t r = ring; r < end_ring; r++)
        OJ_TRY(put_number(
            bytes, flat->vertex_offset[r + 1] - flat->vertex_offset[r], err));
    OJ_TRY(put(bytes, flat->x + vertex, 8 * n, err));
    return put(bytes, flat->y + vertex, 8 * n, err);
}

static oj_status put_columns(struct oj_bytes *bytes, const struct oj_flat *flat,
                             int64_t from, struct oj_error *err)
{
    if (flat->max_distance != NULL)
        OJ_TRY(put(bytes, flat->max_distance + from, 8, err));
    if (flat->on_class != NULL)
        OJ_TRY(put_number(bytes, flat->on_class[from], err));
    if (flat->exclude_class != NULL)
        OJ_TRY(put_number(bytes, flat->exclude_class[from], err));
    return OJ_OK;
}

static oj_status put_attributes(struct oj_bytes *bytes,
                                const struct oj_table *table, int64_t row,
                                struct oj_error *err)
{
    for (int c = 0; table != NULL && c < oj_table_columns(table); c++)
    {
        struct oj_value value;
        oj_table_value(table, row, c, &value);
        OJ_TRY(put_value(bytes, oj_table_type(table, c, NULL), &value, err));
    }
    return OJ_OK;
}

oj_status oj_record_write(struct oj_bytes *bytes, const struct oj_flat *flat,
                          int64_t from, const struct oj_table *table,
                          int64_t row, int64_t ordinal, struct oj_error *err)
{
    int64_t start = bytes->n;
    struct head head;
    memset(&head, 0, sizeof head);
    head.ordinal = ordinal;
    head.flags = (oj_flat_is_points(flat) ? IS_POINT : 0) |
                 (flat->max_distance != NULL ? HAS_MAX_DISTANCE : 0) |
                 (flat->on_class != NULL ? HAS_ON_CLASS : 0) |
                 (flat->exclude_class != NULL ? HAS_EXCLUDE_CLASS : 0);
    if (flat->fid != NULL)
    {
        head.flags |= HAS_FID;
        head.fid = flat->fid[from];
    }
    if (!oj_flat_is_points(flat))
        head.n_parts =
            (int32_t)(flat->part_offset[from + 1] - flat->part_offset[from]);
    OJ_TRY(put(bytes, &head, sizeof head, err));
    OJ_TRY(put_columns(bytes, flat, from, err));
    if (oj_flat_is_points(flat))
    {
        OJ_TRY(put(bytes, flat->x + from, 8, err));
        OJ_TRY(put(bytes, flat->y + from, 8, err));
    }
    else
        OJ_TRY(put_shape(bytes, flat, from, err));
    OJ_TRY(put_attributes(bytes, table, row, err));
    head.length = bytes->n - start;
    memcpy(bytes->byte + start, &head, sizeof head);
    return OJ_OK;
}

int64_t oj_record_length(const unsigned char *record)
{
    int64_t length;
    memcpy(&length, record, sizeof length);
    return length;
}

/* A record taken apart. */
struct parsed
{
    struct head head;
    double max_distance;
    int32_t on_class, exclude_class;
    const unsigned char *part_kind; /* [head.n_parts] */
    const int64_t *rings_of_part;   /* [head.n_parts] */
    const int64_t *vertices_of_ring;
    int64_t n_rings, n_vertices;
    const double *x, *y;
    struct record_cursor attributes;
};

static void parse(const unsigned char *record, struct parsed *out)
{
    struct record_cursor cursor = {record};
    memcpy(&out->head, take(&cursor, sizeof out->head), sizeof out->head);
    if (out->head.flags & HAS_MAX_DISTANCE)
        memcpy(&out->max_distance, take(&cursor, 8), 8);
    if (out->head.flags & HAS_ON_CLASS)
        out->on_class = (int32_t)take_number(&cursor);
    if (out->head.flags & HAS_EXCLUDE_CLASS)
        out->exclude_class = (int32_t)take_number(&cursor);
    out->n_rings = 0;
    out->n_vertices = 1;
    if (!(out->head.flags & IS_POINT))
    {
        out->n_vertices = 0;
        out->part_kind = take(&cursor, out->head.n_parts);
        out->rings_of_part = take(&cursor, 8 * (int64_t)out->head.n_parts);
        for (int32_t p = 0; p < out->head.n_parts; p++)
            out->n_rings += out->rings_of_part[p];
        out->vertices_of_ring = take(&cursor, 8 * out->n_rings);
        for (int64_t r = 0; r < out->n_rings; r++)
            out->n_vertices += out->vertices_of_ring[r];
    }
    out->x = take(&cursor, 8 * out->n_vertices);
    out->y = take(&cursor, 8 * out->n_vertices);
    out->attributes = cursor;
}

void oj_record_middle(const unsigned char *record, double *x, double *y)
{
    struct parsed r;
    double x0, y0, x1, y1;
    parse(record, &r);
    x0 = x1 = r.n_vertices > 0 ? r.x[0] : 0.0;
    y0 = y1 = r.n_vertices > 0 ? r.y[0] : 0.0;
    for (int64_t i = 1; i < r.n_vertices; i++)
    {
        x0 = r.x[i] < x0 ? r.x[i] : x0;
        x1 = r.x[i] > x1 ? r.x[i] : x1;
        y0 = r.y[i] < y0 ? r.y[i] : y0;
        y1 = r.y[i] > y1 ? r.y[i] : y1;
    }
    *x = 0.5 * x0 + 0.5 * x1;
    *y = 0.5 * y0 + 0.5 * y1;
}

static oj_status read_parts(const struct parsed *r, struct oj_flat_buf *buf,
                            struct oj_error *err)
{
    int64_t ring = 0, vertex = 0;
    for (int32_t part = 0; part < r->head.n_parts; part++)
    {
        OJ_TRY(
            oj_flat_buf_part(buf, (enum oj_part_kind)r->part_kind[part], err));
        for (int64_t i = 0; i < r->rings_of_part[part]; i++, ring++)
        {
            int64_t n = r->vertices_of_ring[ring];
            double *x, *y;
            OJ_TRY(oj_flat_buf_ring(buf, err));
            OJ_TRY(oj_flat_buf_vertices(buf, n, &x, &y, err));
            memcpy(x, r->x + vertex, (size_t)n * sizeof *x);
            memcpy(y, r->y + vertex, (size_t)n * sizeof *y);
            vertex += n;
        }
    }
    return oj_flat_buf_end(buf, err);
}

static oj_status read_shape(const struct parsed *r, struct oj_flat_buf *buf,
                            struct oj_error *err)
{
    oj_status status;
    if (r->head.flags & IS_POINT)
        return oj_flat_buf_add_point(buf, r->head.fid, r->x[0], r->y[0], err);
    OJ_TRY(oj_flat_buf_begin(buf, r->head.fid, err));
    status = read_parts(r, buf, err);
    if (status != OJ_OK)
        oj_flat_buf_drop(buf);
    return status;
}

static oj_status read_attributes(struct record_cursor cursor,
                                 struct oj_table *table, struct oj_error *err)
{
    char **texts = NULL;
    int64_t cap_texts = 0;
    oj_status status = OJ_OK;
    for (int c = 0; status == OJ_OK && c < oj_table_columns(table); c++)
    {
        struct oj_value value;
        status = take_value(&cursor, oj_table_type(table, c, NULL), &value,
                            &texts, &cap_texts, err);
        if (status == OJ_OK)
            status = oj_table_append_column_value(table, c, &value, err);
    }
    oj_free(texts);
    if (status == OJ_OK)
        oj_table_end_row(table);
    return status;
}

oj_status oj_record_read(const unsigned char *record,
                         struct oj_feature_set *features, struct oj_error *err)
{
    struct parsed r;
    memset(&r, 0, sizeof r);
    parse(record, &r);
    OJ_TRY(add_ordinal(features, r.head.ordinal, err));
    OJ_TRY(add_columns(
        features, r.head.flags & HAS_MAX_DISTANCE ? &r.max_distance : NULL,
        r.head.flags & HAS_ON_CLASS ? &r.on_class : NULL,
        r.head.flags & HAS_EXCLUDE_CLASS ? &r.exclude_class : NULL, err));
    if (features->table != NULL)
        OJ_TRY(read_attributes(r.attributes, features->table, err));
    return read_shape(&r, &features->buf, err);
}
