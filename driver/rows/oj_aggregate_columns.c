#include "oj_aggregate_columns.h"

#include "../../flatten/base/oj_array.h"

#include <string.h>

/* Only the array of the column's type is there. */
struct oj_column_values
{
    double *real;
    int64_t *integer;
    uint8_t *is_null;
    int64_t cap_real, cap_integer, cap_null;
};

static int is_real(const struct oj_value_way *way)
{
    return oj_value_way_type(way) == OJ_AGG_REAL;
}

oj_status oj_aggregate_columns_reserve(struct oj_aggregate_columns *columns,
                                       struct oj_value_way *ways, int n_ways,
                                       int64_t n_features, struct oj_error *err)
{
    if (columns->column == NULL)
        columns->column = oj_calloc(n_ways, sizeof *columns->column);
    if (columns->value == NULL)
        columns->value = oj_calloc(n_ways, sizeof *columns->value);
    if (columns->column == NULL || columns->value == NULL)
        return oj_fail_nomem(err, n_ways, sizeof *columns->value);
    columns->n = n_ways;
    columns->ways = ways;
    for (int c = 0; c < n_ways; c++)
    {
        struct oj_column_values *value = &columns->value[c];
        if (is_real(&ways[c]))
            OJ_TRY(oj_reserve(&value->real, 0, n_features, &value->cap_real,
                              sizeof *value->real, err));
        else
            OJ_TRY(oj_reserve(&value->integer, 0, n_features,
                              &value->cap_integer, sizeof *value->integer,
                              err));
        OJ_TRY(oj_reserve(&value->is_null, 0, n_features, &value->cap_null, 1,
                          err));
    }
    return OJ_OK;
}

static void read_one(struct oj_value_way *way,
                     const struct oj_attributes *attributes, int64_t row,
                     struct oj_column_values *values, int64_t i)
{
    struct oj_value value;
    struct oj_aggregate_value taken = {0};
    oj_attributes_value(attributes, way->field, row, &value);
    oj_value_way_take(way, &value, &taken);
    values->is_null[i] = taken.is_null != 0;
    if (values->real != NULL)
        values->real[i] = taken.real;
    else
        values->integer[i] = taken.integer;
}

static void read_column(struct oj_value_way *way,
                        const struct oj_attributes *attributes, int64_t first,
                        int64_t n, const int32_t *order,
                        struct oj_column_values *values,
                        struct oj_aggregate_column *column)
{
    int any_null = 1;
    if (way->form != OJ_FORM_NUMBER || way->type != OFTReal ||
        !oj_attributes_reals(attributes, way->field, first, n, order,
                             values->real, values->is_null, &any_null))
    {
        for (int64_t i = 0; i < n; i++)
            read_one(way, attributes,
                     order != NULL ? order[first + i] : first + i, values, i);
    }
    column->real = values->real;
    column->integer = values->integer;
    column->is_null = any_null ? values->is_null : NULL;
}

void oj_aggregate_columns_read(struct oj_aggregate_columns *columns,
                               const struct oj_attributes *attributes,
                               int64_t first, int64_t n, const int32_t *order)
{
    for (int c = 0; c < columns->n; c++)
        read_column(&columns->ways[c], attributes, first, n, order,
                    &columns->value[c], &columns->column[c]);
}

void oj_aggregate_columns_free(struct oj_aggregate_columns *columns)
{
    for (int c = 0; c < columns->n; c++)
    {
        oj_free(columns->value[c].real);
        oj_free(columns->value[c].integer);
        oj_free(columns->value[c].is_null);
    }
    oj_free(columns->column);
    oj_free(columns->value);
    memset(columns, 0, sizeof *columns);
}
