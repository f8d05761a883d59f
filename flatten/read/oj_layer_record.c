#include "oj_layer_record.h"
#include "../base/oj_array.h"

#include <string.h>

#define IS_POINT 1u /* one vertex, no parts arrays */
#define HAS_MAX_DISTANCE 2u
#define HAS_ON_CLASS 4u
#define HAS_EXCLUDE_CLASS 8u

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

/* All members of an OGRField begin where it does. */
static int64_t raw_size(OGRFieldType type)
{
    return oj_type_is_number(type) ? 8 : (int64_t)sizeof(OGRField);
}

static oj_status put_value(struct oj_bytes *bytes, OGRFieldType type,
                           const struct oj_value *value, struct oj_error *err)
{
    const OGRField *raw = &value->raw;
    const void *text;
    int64_t n;
    if (!oj_value_is_there(value))
        return put_number(bytes, 0, err);
    OJ_TRY(put_number(bytes, 1, err));
    if (oj_type_is_list(type))
        return put_list(bytes, type, raw, err);
    if (type != OFTString && type != OFTBinary)
        return put(bytes, raw, raw_size(type), err);
    text = oj_value_bytes(value, type, &n);
    OJ_TRY(put_number(bytes, n, err));
    return put(bytes, text, n, err);
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
    if (oj_type_is_list(type))
        return take_list(cursor, type, raw, texts, cap_texts, err);
    if (type == OFTString)
    {
        value->n_text = take_number(cursor);
        raw->String = (char *)take(cursor, value->n_text);
    }
    else if (type == OFTBinary)
    {
        raw->Binary.nCount = (int)take_number(cursor);
        raw->Binary.paData = (GByte *)take(cursor, raw->Binary.nCount);
    }
    else
        memcpy(raw, take(cursor, raw_size(type)), (size_t)raw_size(type));
    return OJ_OK;
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

/* What stands beside the geometry. */
static oj_status add_columns(struct oj_feature_set *features,
                             const struct oj_flat *flat, int64_t from,
                             int64_t ordinal, struct oj_error *err)
{
    int64_t n = features->buf.n_features;
    OJ_ROOM(features->ordinal, n, n + 1, features->cap_ordinal, err);
    features->ordinal[n] = ordinal;
    if (flat->max_distance != NULL)
    {
        OJ_ROOM(features->max_distance, n, n + 1, features->cap_max_distance,
                err);
        features->max_distance[n] = flat->max_distance[from];
    }
    if (flat->on_class != NULL)
    {
        OJ_ROOM(features->on_class, n, n + 1, features->cap_on_class, err);
        features->on_class[n] = flat->on_class[from];
    }
    if (flat->exclude_class != NULL)
    {
        OJ_ROOM(features->exclude_class, n, n + 1, features->cap_exclude_class,
                err);
        features->exclude_class[n] = flat->exclude_class[from];
    }
    return OJ_OK;
}

oj_status oj_feature_set_add(struct oj_feature_set *features,
                             const struct oj_flat *flat, int64_t from,
                             int64_t ordinal, struct oj_error *err)
{
    OJ_TRY(add_columns(features, flat, from, ordinal, err));
    return oj_flat_buf_copy(&features->buf, flat, from,
                            flat->fid != NULL ? flat->fid[from] : -1, err);
}

/* ---- records ------------------------------------------------------------ */

/* Of n pieces from first on, counted from 0: n + 1 of them. */
static oj_status put_offsets(struct oj_bytes *bytes, const int64_t *offset,
                             int64_t first, int64_t n, struct oj_error *err)
{
    for (int64_t i = 0; i <= n; i++)
        OJ_TRY(put_number(bytes, offset[first + i] - offset[first], err));
    return OJ_OK;
}

static oj_status put_shape(struct oj_bytes *bytes, const struct oj_flat *flat,
                           int64_t from, struct oj_error *err)
{
    int64_t vertex = from, n = 1;
    if (!oj_flat_is_points(flat))
    {
        int64_t part = flat->part_offset[from];
        int64_t n_parts = flat->part_offset[from + 1] - part;
        int64_t ring = flat->ring_offset[part];
        int64_t n_rings = flat->ring_offset[part + n_parts] - ring;
        vertex = flat->vertex_offset[ring];
        n = flat->vertex_offset[ring + n_rings] - vertex;
        OJ_TRY(put(bytes, flat->part_kind + part, n_parts, err));
        OJ_TRY(put_offsets(bytes, flat->ring_offset, part, n_parts, err));
        OJ_TRY(put_offsets(bytes, flat->vertex_offset, ring, n_rings, err));
    }
    OJ_TRY(put(bytes, flat->x + vertex, 8 * n, err));
    return put(bytes, flat->y + vertex, 8 * n, err);
}

static oj_status put_columns(struct oj_bytes *bytes, const struct oj_flat *flat,
                             int64_t from, struct oj_error *err)
{
    if (flat->max_distance != NULL)
        OJ_TRY(put(bytes, flat->max_distance + from, 8, err));
    if (flat->on_class != NULL)
        OJ_TRY(put(bytes, flat->on_class + from, 4, err));
    if (flat->exclude_class != NULL)
        OJ_TRY(put(bytes, flat->exclude_class + from, 4, err));
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
        head.fid = flat->fid[from];
    if (!oj_flat_is_points(flat))
        head.n_parts =
            (int32_t)(flat->part_offset[from + 1] - flat->part_offset[from]);
    OJ_TRY(put(bytes, &head, sizeof head, err));
    OJ_TRY(put_columns(bytes, flat, from, err));
    OJ_TRY(put_shape(bytes, flat, from, err));
    for (int c = 0; table != NULL && c < oj_table_columns(table); c++)
    {
        struct oj_value value;
        oj_table_value(table, row, c, &value);
        OJ_TRY(put_value(bytes, oj_table_type(table, c, NULL), &value, err));
    }
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
    struct oj_flat flat; /* of the one feature; its arrays lie in the record */
    int64_t part_offset[2];
    struct record_cursor attributes;
};

static void parse(const unsigned char *record, struct parsed *out)
{
    struct record_cursor cursor = {record};
    struct oj_flat *flat = &out->flat;
    memset(out, 0, sizeof *out);
    memcpy(&out->head, take(&cursor, sizeof out->head), sizeof out->head);
    flat->n_features = flat->n_vertices = 1;
    flat->fid = &out->head.fid;
    if (out->head.flags & HAS_MAX_DISTANCE)
        flat->max_distance = take(&cursor, 8);
    if (out->head.flags & HAS_ON_CLASS)
        flat->on_class = take(&cursor, 4);
    if (out->head.flags & HAS_EXCLUDE_CLASS)
        flat->exclude_class = take(&cursor, 4);
    if (!(out->head.flags & IS_POINT))
    {
        int64_t n_parts = out->part_offset[1] = out->head.n_parts;
        flat->part_offset = out->part_offset;
        flat->part_kind = take(&cursor, n_parts);
        flat->ring_offset = take(&cursor, 8 * (n_parts + 1));
        flat->n_rings = flat->ring_offset[n_parts];
        flat->vertex_offset = take(&cursor, 8 * (flat->n_rings + 1));
        flat->n_vertices = flat->vertex_offset[flat->n_rings];
    }
    flat->x = take(&cursor, 8 * flat->n_vertices);
    flat->y = take(&cursor, 8 * flat->n_vertices);
    out->attributes = cursor;
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
    parse(record, &r);
    if (features->table != NULL)
        OJ_TRY(read_attributes(r.attributes, features->table, err));
    return oj_feature_set_add(features, &r.flat, 0, r.head.ordinal, err);
}
