#include "oj_aggregate_block.h"

#include "../flatten/oj_array.h"

struct oj_block_values
{
    double real[OJ_BLOCK_FEATURES];
    int64_t integer[OJ_BLOCK_FEATURES];
    uint8_t is_null[OJ_BLOCK_FEATURES];
};

oj_status oj_aggregate_block_open(struct oj_aggregates *state,
                                  struct oj_value_way *ways, int n_ways,
                                  struct oj_aggregate_block **out,
                                  struct oj_error *err)
{
    struct oj_aggregate_block *block = oj_calloc(1, sizeof *block);
    if (block == NULL)
        return oj_fail_nomem(err, 1, sizeof *block);
    block->state = state;
    block->ways = ways;
    block->n_ways = n_ways;
    block->columns = oj_calloc(n_ways, sizeof *block->columns);
    block->values = oj_calloc(n_ways, sizeof *block->values);
    if (block->columns == NULL || block->values == NULL)
    {
        oj_aggregate_block_close(block);
        return oj_fail_nomem(err, n_ways, sizeof *block->values);
    }
    *out = block;
    return OJ_OK;
}

static void take_one(struct oj_value_way *way,
                     const struct oj_attributes *attributes, int64_t row,
                     struct oj_block_values *values, int64_t i)
{
    struct oj_value value;
    struct oj_aggregate_value taken = {0};
    oj_attributes_value(attributes, way->field, row, &value);
    oj_value_way_take(way, &value, &taken);
    values->is_null[i] = taken.is_null != 0;
    values->real[i] = taken.real;
    values->integer[i] = taken.integer;
}

void oj_aggregate_block_start(struct oj_aggregate_block *block,
                              const struct oj_attributes *attributes,
                              int64_t first, int64_t n, const int32_t *order)
{
    for (int c = 0; c < block->n_ways; c++)
    {
        struct oj_value_way *way = &block->ways[c];
        struct oj_block_values *values = &block->values[c];
        struct oj_aggregate_column *column = &block->columns[c];
        int any_null = 1;
        if (way->form != OJ_FORM_NUMBER || way->type != OFTReal ||
            !oj_attributes_reals(attributes, way->field, first, n, order,
                                 values->real, values->is_null, &any_null))
        {
            for (int64_t i = 0; i < n; i++)
                take_one(way, attributes,
                         order != NULL ? order[first + i] : first + i, values,
                         i);
        }
        column->real = values->real;
        column->integer = values->integer;
        column->is_null = any_null ? values->is_null : NULL;
    }
}

oj_status oj_aggregate_block_flush(struct oj_aggregate_block *block,
                                   struct oj_error *err)
{
    int64_t n = block->n_pairs;
    block->n_pairs = 0;
    return oj_aggregates_add_block(block->state, n, block->row, block->at,
                                   block->columns, err);
}

void oj_aggregate_block_close(struct oj_aggregate_block *block)
{
    if (block == NULL)
        return;
    oj_free(block->columns);
    oj_free(block->values);
    oj_free(block);
}
