#include "oj_table.h"

#include "../base/oj_array.h"
#include "oj_attributes.h"

#include <string.h>

struct table_column
{
    OGRFieldType type;
    OGRFieldSubType subtype;
    uint8_t *has_value; /* bits */
    void *values;       /* int, int64_t, double, OGRField, or offsets */
    char *pool;         /* strings and binaries */
    int64_t n_pool;
    int64_t n_lists; /* values that hold a pointer, or zero */
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

static size_t value_size(OGRFieldType type)
{
    switch (type)
    {
        case OFTInteger:
            return sizeof(int);
        case OFTInteger64:
        case OFTString:
        case OFTBinary:
            return sizeof(int64_t);
        case OFTReal:
            return sizeof(double);
        default:
            return sizeof(OGRField);
    }
}

static oj_status init_column(struct table_column *column, OGRFieldType type,
                             OGRFieldSubType subtype, struct oj_error *err)
{
    column->type = type;
    column->subtype = subtype;
    OJ_TRY(oj_reserve(&column->values, 0, 1, &column->cap_values,
                      value_size(column->type), err));
    if (is_bytes(column->type))
        ((int64_t *)column->values)[0] = 0;
    return OJ_OK;
}

/* A table of columns that oj_table_free() can free, without types. */
static oj_status make_table(int n_columns, struct oj_table **out,
                            struct oj_error *err)
{
    struct oj_table *table = oj_calloc(1, sizeof *table);
    if (table != NULL)
        table->column = oj_calloc(n_columns, sizeof *table->column);
    if (table == NULL || table->column == NULL)
    {
        oj_free(table);
        return oj_fail_nomem(err, n_columns + 1, sizeof *table->column);
    }
    table->n_columns = n_columns;
    *out = table;
    return OJ_OK;
}

oj_status oj_table_new(OGRLayerH layer, const int *fields, int n_fields,
                       struct oj_table **out, struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    struct oj_table *table = NULL;
    oj_status status = make_table(n_fields, &table, err);
    if (status != OJ_OK)
        return status;
    for (int c = 0; status == OJ_OK && c < n_fields; c++)
    {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(defn, fields[c]);
        status = init_column(&table->column[c], OGR_Fld_GetType(field),
                             OGR_Fld_GetSubType(field), err);
    }
    if (status == OJ_OK)
        *out = table;
    else
        oj_table_free(table);
    return status;
}

oj_status oj_table_new_like(const struct oj_table *like, struct oj_table **out,
                            struct oj_error *err)
{
    struct oj_table *table = NULL;
    oj_status status = make_table(like->n_columns, &table, err);
    if (status != OJ_OK)
        return status;
    for (int c = 0; status == OJ_OK && c < like->n_columns; c++)
        status = init_column(&table->column[c], like->column[c].type,
                             like->column[c].subtype, err);
    if (status == OJ_OK)
        *out = table;
    else
        oj_table_free(table);
    return status;
}

/* ---- filling ------------------------------------------------------------ */

/* One block for a list, so that freeing it is freeing one pointer; strings
 * follow their array of pointers. */
static oj_status copy_list(OGRFieldType type, const OGRField *from,
                           OGRField *to, int64_t *n_bytes, struct oj_error *err)
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
                              const void *bytes, int64_t n,
                              struct oj_error *err)
{
    OJ_TRY(oj_reserve(&column->pool, column->n_pool, column->n_pool + n + 1,
                      &column->cap_pool, 1, err));
    if (n > 0)
        memcpy(column->pool + column->n_pool, bytes, (size_t)n);
    column->pool[column->n_pool + n] = '\0';
    column->n_pool += n + 1;
    ((int64_t *)column->values)[row + 1] = column->n_pool;
    return OJ_OK;
}

static void mark(struct table_column *column, int64_t row, int has_value)
{
    uint8_t bit = (uint8_t)(1u << (row & 7));
    if ((row & 7) == 0)
        column->has_value[row >> 3] = 0;
    if (has_value)
        column->has_value[row >> 3] |= bit;
}

static oj_status append_value(struct oj_table *table,
                              struct table_column *column, int64_t row,
                              const struct oj_value *value,
                              struct oj_error *err)
{
    const OGRField *raw = &value->raw;
    switch (column->type)
    {
        case OFTInteger:
            ((int *)column->values)[row] = raw->Integer;
            return OJ_OK;
        case OFTInteger64:
            ((int64_t *)column->values)[row] = raw->Integer64;
            return OJ_OK;
        case OFTReal:
            ((double *)column->values)[row] = raw->Real;
            return OJ_OK;
        case OFTString:
            return append_bytes(column, row, raw->String,
                                value->n_text >= 0
                                    ? value->n_text
                                    : (int64_t)strlen(raw->String),
                                err);
        case OFTBinary:
            return append_bytes(column, row, raw->Binary.paData,
                                raw->Binary.nCount, err);
        default:
            break;
    }
    if (oj_type_is_list(column->type))
        return copy_list(column->type, raw, (OGRField *)column->values + row,
                         &table->n_list_bytes, err);
    ((OGRField *)column->values)[row] = *raw;
    return OJ_OK;
}

/* What a row without value holds is never read, but it is defined. */
static void append_null(struct table_column *column, int64_t row)
{
    if (is_bytes(column->type))
        ((int64_t *)column->values)[row + 1] = column->n_pool;
    else
        memset((char *)column->values + (size_t)row * value_size(column->type),
               0, value_size(column->type));
}

/* Room for rows up to end. */
static oj_status reserve_column(const struct oj_table *table,
                                struct table_column *column, int64_t end,
                                struct oj_error *err)
{
    int64_t first = table->n_rows;
    OJ_TRY(oj_reserve(&column->values, first + is_bytes(column->type), end + 1,
                      &column->cap_values, value_size(column->type), err));
    OJ_TRY(oj_reserve(&column->has_value, (first + 7) / 8, (end + 7) / 8,
                      &column->cap_has_value, 1, err));
    if (oj_type_is_list(
            column->type)) /* so that a failure in between is no leak */
    {
        memset((OGRField *)column->values + first, 0,
               (size_t)(end - first) * sizeof(OGRField));
        column->n_lists = end;
    }
    return OJ_OK;
}

static oj_status append_one(struct oj_table *table, struct table_column *column,
                            int64_t row, const struct oj_value *value,
                            struct oj_error *err)
{
    int has_value =
        !OGR_RawField_IsNull(&value->raw) && !OGR_RawField_IsUnset(&value->raw);
    mark(column, row, has_value);
    if (has_value)
        return append_value(table, column, row, value, err);
    append_null(column, row);
    return OJ_OK;
}

static oj_status append_column(struct oj_table *table, int c,
                               const struct oj_attributes *attributes,
                               int64_t n_rows, struct oj_error *err)
{
    struct table_column *column = &table->column[c];
    int64_t first = table->n_rows;
    OJ_TRY(reserve_column(table, column, first + n_rows, err));
    for (int64_t i = 0; i < n_rows; i++)
    {
        struct oj_value value;
        oj_attributes_value(attributes, c, i, &value);
        OJ_TRY(append_one(table, column, first + i, &value, err));
    }
    return OJ_OK;
}

oj_status oj_table_append(struct oj_table *table,
                          const struct oj_attributes *attributes,
                          int64_t n_rows, struct oj_error *err)
{
    for (int c = 0; c < table->n_columns; c++)
        OJ_TRY(append_column(table, c, attributes, n_rows, err));
    table->n_rows += n_rows;
    return OJ_OK;
}

oj_status oj_table_append_column_value(struct oj_table *table, int c,
                                       const struct oj_value *value,
                                       struct oj_error *err)
{
    struct table_column *column = &table->column[c];
    OJ_TRY(reserve_column(table, column, table->n_rows + 1, err));
    return append_one(table, column, table->n_rows, value, err);
}

void oj_table_end_row(struct oj_table *table)
{
    table->n_rows++;
}

oj_status oj_table_append_copy(struct oj_table *table,
                               const struct oj_table *from, int64_t row,
                               struct oj_error *err)
{
    for (int c = 0; c < table->n_columns; c++)
    {
        struct oj_value value;
        oj_table_value(from, row, c, &value);
        OJ_TRY(oj_table_append_column_value(table, c, &value, err));
    }
    oj_table_end_row(table);
    return OJ_OK;
}

/* ---- reading ------------------------------------------------------------ */

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

void oj_table_value(const struct oj_table *table, int64_t row, int c,
                    struct oj_value *value)
{
    const struct table_column *column = &table->column[c];
    const int64_t *offset = column->values;
    if ((column->has_value[row >> 3] >> (row & 7) & 1) == 0)
    {
        oj_value_set_null(value);
        return;
    }
    oj_value_set_zero(value);
    switch (column->type)
    {
        case OFTInteger:
            value->raw.Integer = ((const int *)column->values)[row];
            break;
        case OFTInteger64:
            value->raw.Integer64 = ((const int64_t *)column->values)[row];
            break;
        case OFTReal:
            value->raw.Real = ((const double *)column->values)[row];
            break;
        case OFTString:
            value->raw.String = column->pool + offset[row];
            break;
        case OFTBinary:
            value->raw.Binary.paData = (GByte *)column->pool + offset[row];
            value->raw.Binary.nCount = (int)(offset[row + 1] - offset[row] - 1);
            break;
        default:
            value->raw = ((const OGRField *)column->values)[row];
            break;
    }
}

struct oj_table_view oj_table_view(const struct oj_table *table, int c)
{
    const struct table_column *column = &table->column[c];
    const struct oj_table_view view = {column->type, column->has_value,
                                       column->values, column->pool};
    return view;
}

void oj_table_prefetch(const struct oj_table *table, int64_t row, int stage)
{
    for (int c = 0; c < table->n_columns; c++)
    {
        const struct table_column *column = &table->column[c];
        int is_text = column->type == OFTString || column->type == OFTBinary;
        if (stage == 0)
        {
            __builtin_prefetch(&column->has_value[row >> 3]);
            __builtin_prefetch((const char *)column->values +
                               (size_t)row * value_size(column->type));
        }
        else if (is_text)
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
             column->cap_values * (int64_t)value_size(column->type);
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
