#include "oj_attribute_table.h"

#include "../base/oj_alloc.h"

#include <string.h>

struct table_column
{
    OGRFieldType type;
    OGRFieldSubType subtype;
    uint8_t *has_value; /* one bit per row; 1: the row has a value */
    /* array of int, int64_t, double or OGRField; for texts and binaries offsets
     * into pool */
    void *values;
    char *pool; /* bytes of strings and binaries */
    int64_t n_pool;
    int64_t n_lists; /* number of values in `values` that own memory (lists) */
    int64_t cap_has_value, cap_values, cap_pool;
};

struct oj_table
{
    int64_t n_rows, n_list_bytes;
    int n_columns;
    struct table_column *column;
};

static int is_bytes(OGRFieldType type)
{
    return type == OFTString || type == OFTBinary;
}

static size_t size_of_value_type(OGRFieldType type)
{
    return type == OFTInteger                          ? sizeof(int)
           : is_bytes(type) || oj_type_is_number(type) ? 8
                                                       : sizeof(OGRField);
}

static oj_status init_column(struct table_column *column, OGRFieldType type,
                             OGRFieldSubType subtype, struct oj_error *err)
{
    column->type = type;
    column->subtype = subtype;
    OJ_TRY(oj_reserve(&column->values, 0, 1, &column->cap_values,
                      size_of_value_type(column->type), err));
    if (is_bytes(column->type))
        ((int64_t *)column->values)[0] = 0;
    return OJ_OK;
}

/* Makes an empty table: with the n_columns columns of `like`, or, if like is
 * NULL, with a column for each of the fields `fields` of defn. */
static oj_status make_table(const struct oj_table *like, OGRFeatureDefnH defn,
                            const int *fields, int n_columns,
                            struct oj_table **out, struct oj_error *err)
{
    struct oj_table *table = oj_calloc(1, sizeof *table);
    oj_status status = OJ_OK;
    if (table != NULL)
        table->column = oj_calloc(n_columns, sizeof *table->column);
    if (table == NULL || table->column == NULL)
    {
        oj_free(table);
        return oj_fail_nomem(err, n_columns + 1, sizeof *table->column);
    }
    table->n_columns = n_columns;
    for (int c = 0; status == OJ_OK && c < n_columns; c++)
    {
        OGRFieldDefnH field =
            like == NULL ? OGR_FD_GetFieldDefn(defn, fields[c]) : NULL;
        status = init_column(
            &table->column[c],
            like != NULL ? like->column[c].type : OGR_Fld_GetType(field),
            like != NULL ? like->column[c].subtype : OGR_Fld_GetSubType(field),
            err);
    }
    if (status == OJ_OK)
        *out = table;
    else
        oj_table_free(table);
    return status;
}

oj_status oj_table_new(OGRLayerH layer, const int *fields, int n_fields,
                       struct oj_table **out, struct oj_error *err)
{
    return make_table(NULL, OGR_L_GetLayerDefn(layer), fields, n_fields, out,
                      err);
}

oj_status oj_table_new_like(const struct oj_table *like, struct oj_table **out,
                            struct oj_error *err)
{
    return make_table(like, NULL, NULL, like->n_columns, out, err);
}

/* ---- filling ------------------------------------------------------------- */

/* Copies a list into one block of memory, so that one free suffices; texts
 * follow their array of pointers. Adds the size of the block to *n_bytes. */
static oj_status copy_list_value(OGRFieldType type, const OGRField *from,
                                 OGRField *to, int64_t *n_bytes,
                                 struct oj_error *err)
{
    int n = from->IntegerList.nCount;
    size_t size = 0, text = 0;
    char *block;
    memset(to, 0, sizeof *to);
    to->IntegerList.nCount = n;
    if (type == OFTIntegerList)
        size = (size_t)n * sizeof(int);
    else if (type == OFTStringList)
        size = ((size_t)n + 1) * sizeof(char *);
    else
        size = (size_t)n * 8;
    for (int i = 0; type == OFTStringList && i < n; i++)
        text += strlen(from->StringList.paList[i]) + 1;
    OJ_NEW(block, (int64_t)(size + text), err);
    to->IntegerList.paList = (int *)(void *)block;
    *n_bytes += (int64_t)(size + text);
    if (type != OFTStringList)
    {
        if (n > 0)
            memcpy(block, from->IntegerList.paList, size);
        return OJ_OK;
    }
    to->StringList.paList[n] = NULL;
    block += size;
    for (int i = 0; i < n; i++)
    {
        size_t length = strlen(from->StringList.paList[i]) + 1;
        memcpy(block, from->StringList.paList[i], length);
        to->StringList.paList[i] = block;
        block += length;
    }
    return OJ_OK;
}

static oj_status append_bytes(struct table_column *column, int64_t row,
                              const struct oj_value *value,
                              struct oj_error *err)
{
    int64_t n;
    const void *bytes = oj_value_bytes(value, column->type, &n);
    OJ_ROOM(column->pool, column->n_pool, column->n_pool + n + 1,
            column->cap_pool, err);
    if (n > 0)
        memcpy(column->pool + column->n_pool, bytes, (size_t)n);
    column->pool[column->n_pool + n] = '\0';
    column->n_pool += n + 1;
    ((int64_t *)column->values)[row + 1] = column->n_pool;
    return OJ_OK;
}

static void set_validity_bit(struct table_column *column, int64_t row,
                             int has_value)
{
    uint8_t bit = (uint8_t)(1u << (row & 7));
    if ((row & 7) == 0)
        column->has_value[row >> 3] = 0;
    if (has_value)
        column->has_value[row >> 3] |= bit;
}

/* Copies the value without a switch over types: all members of the union
 * OGRField start at its address. */
static void store_fixed_size_value(struct table_column *column, int64_t row,
                                   const OGRField *raw)
{
    size_t size = size_of_value_type(column->type);
    char *to = (char *)column->values + (size_t)row * size;
    if (size == 4)
        memcpy(to, raw, 4);
    else if (size == 8)
        memcpy(to, raw, 8);
    else
        memcpy(to, raw, sizeof *raw);
}

/* Stores a zero in place of a NULL; it is never read as a value. */
static void append_null(struct table_column *column, int64_t row)
{
    OGRField zero;
    memset(&zero, 0, sizeof zero);
    if (is_bytes(column->type))
        ((int64_t *)column->values)[row + 1] = column->n_pool;
    else
        store_fixed_size_value(column, row, &zero);
}

/* Allocates memory for rows up to `end`. */
static oj_status reserve_column(const struct oj_table *table,
                                struct table_column *column, int64_t end,
                                struct oj_error *err)
{
    int64_t first = table->n_rows;
    OJ_TRY(oj_reserve(&column->values, first + is_bytes(column->type), end + 1,
                      &column->cap_values, size_of_value_type(column->type),
                      err));
    OJ_ROOM(column->has_value, (first + 7) / 8, (end + 7) / 8,
            column->cap_has_value, err);
    if (oj_type_is_list(column->type)) /* zeroed, so that after a failure
                                          half-way only valid pointers are
                                          freed */
    {
        memset((OGRField *)column->values + first, 0,
               (size_t)(end - first) * sizeof(OGRField));
        column->n_lists = end;
    }
    return OJ_OK;
}

static oj_status append_value_to_column(struct oj_table *table,
                                        struct table_column *column,
                                        int64_t row,
                                        const struct oj_value *value,
                                        struct oj_error *err)
{
    int has_value = oj_value_is_there(value);
    set_validity_bit(column, row, has_value);
    if (!has_value)
        append_null(column, row);
    else if (is_bytes(column->type))
        return append_bytes(column, row, value, err);
    else if (oj_type_is_list(column->type))
        return copy_list_value(column->type, &value->raw,
                               (OGRField *)column->values + row,
                               &table->n_list_bytes, err);
    else
        store_fixed_size_value(column, row, &value->raw);
    return OJ_OK;
}

oj_status oj_table_append_rows(struct oj_table *table,
                               const struct oj_attributes *attributes,
                               int64_t n_rows, struct oj_error *err)
{
    int64_t first = table->n_rows;
    for (int c = 0; c < table->n_columns; c++)
    {
        struct table_column *column = &table->column[c];
        OJ_TRY(reserve_column(table, column, first + n_rows, err));
        for (int64_t i = 0; i < n_rows; i++)
        {
            struct oj_value value;
            oj_attributes_value(attributes, c, i, &value);
            OJ_TRY(
                append_value_to_column(table, column, first + i, &value, err));
        }
    }
    table->n_rows += n_rows;
    return OJ_OK;
}

oj_status oj_table_append_column_value(struct oj_table *table, int c,
                                       const struct oj_value *value,
                                       struct oj_error *err)
{
    struct table_column *column = &table->column[c];
    OJ_TRY(reserve_column(table, column, table->n_rows + 1, err));
    return append_value_to_column(table, column, table->n_rows, value, err);
}

void oj_table_end_row(struct oj_table *table)
{
    table->n_rows++;
}

/* ---- reading ------------------------------------------------------------- */

int64_t oj_table_rows(const struct oj_table *table)
{
    return table->n_rows;
}

int oj_table_columns(const struct oj_table *table)
{
    return table->n_columns;
}

OGRFieldType oj_table_type(const struct oj_table *table, int column,
                           OGRFieldSubType *subtype)
{
    if (subtype != NULL)
        *subtype = table->column[column].subtype;
    return table->column[column].type;
}

struct oj_column_view oj_table_view(const struct oj_table *table, int c)
{
    const struct table_column *column = &table->column[c];
    const struct oj_column_view view = {oj_format_of_type(column->type),
                                        1,
                                        column->has_value,
                                        column->values,
                                        column->pool,
                                        0};
    return view;
}

void oj_table_value(const struct oj_table *table, int64_t row, int c,
                    struct oj_value *value)
{
    const struct oj_column_view view = oj_table_view(table, c);
    oj_column_value(&view, row, value);
}

void oj_table_prefetch(const struct oj_table *table, int64_t row, int stage)
{
    for (int c = 0; c < table->n_columns; c++)
    {
        const struct table_column *column = &table->column[c];
        if (stage == 0)
        {
            __builtin_prefetch(&column->has_value[row >> 3]);
            __builtin_prefetch((const char *)column->values +
                               (size_t)row * size_of_value_type(column->type));
        }
        else if (is_bytes(column->type))
            __builtin_prefetch(column->pool +
                               ((const int64_t *)column->values)[row]);
    }
}

int64_t oj_table_bytes(const struct oj_table *table)
{
    int64_t n = table->n_list_bytes;
    for (int c = 0; c < table->n_columns; c++)
    {
        const struct table_column *column = &table->column[c];
        n += column->cap_has_value + column->cap_pool +
             column->cap_values * (int64_t)size_of_value_type(column->type);
    }
    return n;
}

void oj_table_free(struct oj_table *table)
{
    if (table == NULL)
        return;
    for (int c = 0; c < table->n_columns; c++)
    {
        struct table_column *column = &table->column[c];
        for (int64_t i = 0; i < column->n_lists; i++)
            oj_free(((OGRField *)column->values)[i].IntegerList.paList);
        oj_free(column->has_value);
        oj_free(column->values);
        oj_free(column->pool);
    }
    oj_free(table->column);
    oj_free(table);
}

/* ---- attributes of a batch or a table ------------------------------------ */

void oj_attributes_clear(struct oj_attributes *attributes)
{
    oj_slice_free(&attributes->slice);
    for (int64_t i = 0; i < attributes->n_features; i++)
        OGR_F_Destroy(attributes->feature[i]);
    attributes->n_features = 0;
}

void oj_attributes_free(struct oj_attributes *attributes)
{
    if (attributes == NULL)
        return;
    oj_attributes_clear(attributes);
    oj_free(attributes->feature);
    oj_free(attributes);
}

oj_status oj_attributes_append_feature(struct oj_attributes *attributes,
                                       OGRFeatureH feature,
                                       struct oj_error *err)
{
    int64_t n = attributes->n_features;
    OJ_ROOM(attributes->feature, n, n + 1, attributes->cap_features, err);
    attributes->feature[n] = feature;
    attributes->n_features = n + 1;
    return OJ_OK;
}

OGRGeometryH oj_attributes_geometry(const struct oj_attributes *attributes,
                                    int64_t row)
{
    return OGR_F_GetGeometryRef(attributes->feature[row]);
}

void oj_attributes_value(const struct oj_attributes *attributes, int field,
                         int64_t row, struct oj_value *value)
{
    const struct oj_slice *slice = &attributes->slice;
    if (attributes->table != NULL)
    {
        oj_table_value(attributes->table, row, field, value);
        return;
    }
    if (slice->chunk != NULL)
    {
        oj_column_value(&slice->chunk->column[OJ_CHUNK_FIELDS + field],
                        slice->first + row, value);
        return;
    }
    value->raw = *OGR_F_GetRawFieldRef(attributes->feature[row],
                                       attributes->fields->field[field].index);
    value->n_text = -1;
}

int oj_attributes_copy_reals(const struct oj_attributes *attributes, int field,
                             int64_t first, int64_t n, const int32_t *order,
                             double *value, uint8_t *is_null, int *any_null)
{
    const struct oj_slice *slice = &attributes->slice;
    const struct oj_column_view *column;
    const double *from;
    if (slice->chunk == NULL)
        return 0;
    column = &slice->chunk->column[OJ_CHUNK_FIELDS + field];
    if (column->format != 'g')
        return 0;
    from = (const double *)column->values + column->first + slice->first;
    *any_null = column->bits != NULL;
    for (int64_t i = 0; i < n; i++)
        value[i] = from[order != NULL ? order[first + i] : first + i];
    for (int64_t i = 0; *any_null && i < n; i++)
        is_null[i] = !oj_column_has_value(
            column,
            slice->first + (order != NULL ? order[first + i] : first + i));
    return 1;
}
