/* Counts the pairs of a batch by join feature, with aggregates that only
 * count. */
#ifndef PAIR_COUNTS_H
#define PAIR_COUNTS_H

#include "../../algs/api/engine/oj_join.h"
#include "../../algs/foundations/aggregate/oj_aggregate.h"

/** Adds the number of pairs of each join feature to count [n]. */
static inline oj_status count_pairs_by_feature(struct oj_join *join,
                                               const struct oj_flat *input,
                                               int64_t n, int64_t *count,
                                               int64_t *n_pairs,
                                               struct oj_error *err)
{
    const struct oj_aggregate only = {OJ_AGG_COUNT, 0, NULL, 0, 0.0};
    const struct oj_aggregate_plan plan = {&only, 1, NULL, 0, 0, NULL, NULL};
    struct oj_aggregates *counts = NULL;
    oj_status status = oj_aggregates_open(&plan, &counts, err);
    if (status == OJ_OK)
        status = oj_aggregates_reset(counts, n, err);
    if (status == OJ_OK)
        status = oj_join_sum_pairs(join, input, NULL, counts, n_pairs, err);
    for (int64_t i = 0; status == OJ_OK && i < n; i++)
        count[i] += oj_aggregates_counts(counts)[i];
    oj_aggregates_close(counts);
    return status;
}

#endif
