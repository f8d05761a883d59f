/** Limits the pairs of a batch (struct oj_options.max_batch_pairs), counted
 *  over all threads that join it.
 *
 *   worker 0  found 5,301, of which 4,096 are counted --.
 *   worker 1  found 9,008, of which 8,192 are counted --+--> n_counted = 12,288
 *   worker 2  found   812, of which     0 are counted --'
 *
 *  A worker adds its pairs to the total a block at a time, so that threads
 *  seldom write to the total.  A batch stops once the counted pairs exceed the
 *  budget, so at most one more block per worker is in memory.  At the end of a
 *  batch the engine checks the exact number of pairs by oj_pair_budget_check().
 *  So a batch fails exactly if its pairs exceed the budget, however they are
 *  spread over the threads.
 *
 *  A batch of a single row cannot be split further and has no limit.
 *
 *  The count is of pairs that an engine holds in memory. It includes undecided
 *  pairs and, for a multipoint, the nearest features of each point.
 */
#ifndef OJ_PAIR_BUDGET_H
#define OJ_PAIR_BUDGET_H

#include "../../../flatten/base/oj_status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Limits of the pairs that workers have found but not yet added to n_counted:
 * OJ_MOST_UNCOUNTED_PAIRS for each worker, and 1 / OJ_UNCOUNTED_PART of the
 * budget for all workers together. */
#define OJ_MOST_UNCOUNTED_PAIRS INT64_C(4096)
#define OJ_UNCOUNTED_PART 16

/** State of the count for one batch. All zeros: no limit. */
struct oj_pair_budget
{
    int64_t most;      /**< maximum pairs of the batch; 0: no limit */
    int64_t block;     /**< number of pairs that a worker adds to n_counted at a
                            time */
    int64_t n_counted; /**< pairs counted so far, of all workers; accessed
                            atomically */
};

/** Returns the maximum number of pairs of a batch of n_rows rows, or 0 if there
 * is no limit. max_pairs is struct oj_options.max_batch_pairs. */
static inline int64_t oj_most_pairs_of_batch(int64_t max_pairs, int64_t n_rows)
{
    return max_pairs > 0 && n_rows > 1 ? max_pairs : 0;
}

/** Returns the maximum number of candidates to hold in memory for a batch of at
 * most most_pairs, or 0 if there is no limit. It is four per pair, since a
 * candidate takes 5 bytes and a pair about 24. It is at least 2^20, so that a
 * low limit of pairs does not slow the join. */
static inline int64_t oj_most_candidates_of_batch(int64_t most_pairs)
{
    const int64_t per_pair = 4, least = INT64_C(1) << 20;
    if (most_pairs == 0 || most_pairs > INT64_MAX / per_pair)
        return 0;
    return most_pairs * per_pair > least ? most_pairs * per_pair : least;
}

/** Fails with OJ_ERR_TOO_MANY_PAIRS if n_pairs > most. With most 0 there is no
 *  limit. */
OJ_MUST_USE static inline oj_status
oj_pair_budget_check(int64_t most, int64_t n_pairs, struct oj_error *err)
{
    if (most == 0 || n_pairs <= most)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                   "the batch has more than %lld pairs (max_batch_pairs): use "
                   "smaller batches, or raise max_batch_pairs",
                   (long long)most);
}

/** Starts counting for a batch of n_rows that n_workers join. */
static inline void oj_pair_budget_start(struct oj_pair_budget *budget,
                                        int64_t max_pairs, int64_t n_rows,
                                        int n_workers)
{
    int64_t block = max_pairs / OJ_UNCOUNTED_PART / n_workers;
    budget->most = oj_most_pairs_of_batch(max_pairs, n_rows);
    budget->block = block < 1                         ? 1
                    : block > OJ_MOST_UNCOUNTED_PAIRS ? OJ_MOST_UNCOUNTED_PAIRS
                                                      : block;
    budget->n_counted = 0;
}

/** Called by a worker that has found n pairs so far, of which *n_counted are in
 * budget->n_counted already. If n - *n_counted is at least a block, adds it to
 * budget->n_counted and sets *n_counted to n. Fails if budget->n_counted then
 * exceeds the budget. */
OJ_MUST_USE static inline oj_status
oj_pair_budget_count(struct oj_pair_budget *budget, int64_t n,
                     int64_t *n_counted, struct oj_error *err)
{
    int64_t n_new = n - *n_counted;
    if (budget->most == 0 || n_new < budget->block)
        return OJ_OK;
    *n_counted = n;
    return oj_pair_budget_check(
        budget->most,
        __atomic_add_fetch(&budget->n_counted, n_new, __ATOMIC_RELAXED), err);
}

#ifdef __cplusplus
}
#endif
#endif
