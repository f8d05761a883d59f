/** Pairs on their way into aggregates, many at once: the values of some
 * features as columns, and the rows that each of them goes to.
 *
 *   start(features) -> put(row, feature), put(...), ... -> flush
 */
#ifndef OJ_AGGREGATE_BLOCK_H
#define OJ_AGGREGATE_BLOCK_H

#include "oj_aggregate_columns.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most features of a block. */
#define OJ_BLOCK_FEATURES 1024
#define OJ_BLOCK_PAIRS 4096

struct oj_aggregate_block
{
    struct oj_aggregates *state;
    struct oj_aggregate_columns columns;
    int64_t n_pairs;
    int64_t row[OJ_BLOCK_PAIRS];
    int32_t at[OJ_BLOCK_PAIRS];
};

/** For a state that takes blocks; it and ways outlive *out. */
OJ_MUST_USE oj_status oj_aggregate_block_open(struct oj_aggregates *state,
                                              struct oj_value_way *ways,
                                              int n_ways,
                                              struct oj_aggregate_block **out,
                                              struct oj_error *err);

/** Reads the values of n <= OJ_BLOCK_FEATURES features, first, first + 1, ...
 *  or, unless order is NULL, order[first], order[first + 1], ...  No pairs may
 *  be waiting. */
void oj_aggregate_block_start(struct oj_aggregate_block *block,
                              const struct oj_attributes *attributes,
                              int64_t first, int64_t n, const int32_t *order);

/** Hands over the pairs that are waiting. */
OJ_MUST_USE oj_status oj_aggregate_block_flush(struct oj_aggregate_block *block,
                                               struct oj_error *err);

/** Adds a pair of row with the feature at place at of the block. */
OJ_MUST_USE static inline oj_status
oj_aggregate_block_put(struct oj_aggregate_block *block, int64_t row,
                       int64_t at, struct oj_error *err)
{
    if (block->n_pairs == OJ_BLOCK_PAIRS)
        OJ_TRY(oj_aggregate_block_flush(block, err));
    block->row[block->n_pairs] = row;
    block->at[block->n_pairs++] = (int32_t)at;
    return OJ_OK;
}

/** Accepts NULL. */
void oj_aggregate_block_close(struct oj_aggregate_block *block);

#ifdef __cplusplus
}
#endif
#endif
