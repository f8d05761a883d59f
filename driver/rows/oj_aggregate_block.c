#include "oj_aggregate_block.h"

#include "../../flatten/base/oj_array.h"

oj_status oj_aggregate_block_open(struct oj_aggregates *state,
                                  struct oj_value_way *ways, int n_ways,
                                  struct oj_aggregate_block **out,
                                  struct oj_error *err)
{
    struct oj_aggregate_block *block = oj_calloc(1, sizeof *block);
    oj_status status;
    if (block == NULL)
        return oj_fail_nomem(err, 1, sizeof *block);
    block->state = state;
    status = oj_aggregate_columns_reserve(&block->columns, ways, n_ways,
                                          OJ_BLOCK_FEATURES, err);
    if (status == OJ_OK)
        *out = block;
    else
        oj_aggregate_block_close(block);
    return status;
}

void oj_aggregate_block_start(struct oj_aggregate_block *block,
                              const struct oj_attributes *attributes,
                              int64_t first, int64_t n, const int32_t *order)
{
    oj_aggregate_columns_read(&block->columns, attributes, first, n, order);
}

oj_status oj_aggregate_block_flush(struct oj_aggregate_block *block,
                                   struct oj_error *err)
{
    int64_t n = block->n_pairs;
    block->n_pairs = 0;
    return oj_aggregates_add_block(block->state, n, block->row, block->at,
                                   block->columns.column, err);
}

void oj_aggregate_block_close(struct oj_aggregate_block *block)
{
    if (block == NULL)
        return;
    oj_aggregate_columns_free(&block->columns);
    oj_free(block);
}
