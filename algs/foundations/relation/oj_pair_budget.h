/** How many pairs a batch may have (struct oj_options.max_batch_pairs), counted
 *  over all threads that join it.
 *
 *   worker 0  found 5,301, of which 4,096 are counted --.
 *   worker 1  found 9,008, of which 8,192 are counted --+--> n_counted = 12,288
 *   worker 2  found   812, of which     0 are counted --'
 *
 *  A worker adds its pairs to the total a block at a time, so that threads
 *  seldom write to the total.  A batch stops once the counted pairs exceed the
 *  budget; it then holds at most one block per worker beyond it. At its end the
 *  engine asks oj_pairs_fit() for its exact number of pairs.  So a batch fails
 *  exactly if its total exceeds the budget, however its pairs are spread over
 *  the threads.
 *
 *  A batch of a single row cannot be joined in parts and has no bound.
 *
 *  Counted are the pairs that an engine holds in memory: undecided ones, too,
 *  and for a multipoint the nearest features of each of its points.
 */
#ifndef OJ_PAIR_BUDGET_H
#define OJ_PAIR_BUDGET_H

#include "../../../flatten/base/oj_status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Upper bounds of what stays uncounted: pairs per worker, and 1/16 of the
 * budget for all workers together. */
#define OJ_MOST_UNCOUNTED_PAIRS INT64_C(4096)
#define OJ_UNCOUNTED_PART 16

/** Plain values. All zeros: no bound. */
struct oj_pair_budget
{
    int64_t most;      /**< 0: no bound */
    int64_t block;     /**< pairs that a worker counts at once */
    int64_t n_counted; /**< atomic */
};

/** Maximum number of pairs for a batch of n_rows; 0: no bound.  max_pairs:
 * struct oj_options.max_batch_pairs. */
static inline int64_t oj_most_pairs_of_batch(int64_t max_pairs, int64_t n_rows)
{
    return max_pairs > 0 && n_rows > 1 ? max_pairs : 0;
}

/** Maximum number of candidates to hold for a batch with this bound on pairs;
 * 0: no bound.  Four per pair: a candidate takes 5 bytes, a pair 12 in the
 * matches and as many in what is made of it.  At least a million, so that a
 * small bound on pairs does not slow the work. */
static inline int64_t oj_most_candidates_of_batch(int64_t most_pairs)
{
    const int64_t per_pair = 4, least = INT64_C(1) << 20;
    if (most_pairs == 0 || most_pairs > INT64_MAX / per_pair)
        return 0;
    return most_pairs * per_pair > least ? most_pairs * per_pair : least;
}

/** OJ_ERR_TOO_MANY_PAIRS if n_pairs > most (0: no bound). */
OJ_MUST_USE static inline oj_status oj_pairs_fit(int64_t most, int64_t n_pairs,
                                                 struct oj_error *err)
{
    if (most == 0 || n_pairs <= most)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                   "the batch has more than %lld pairs (max_batch_pairs)",
                   (long long)most);
}

/** Starts the count for a batch of n_rows, joined by n_workers. */
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

/** Called by a worker that has found n pairs in this batch, *n_counted of which
 * are in the total: adds the rest once it is a block. */
OJ_MUST_USE static inline oj_status
oj_pair_budget_count(struct oj_pair_budget *budget, int64_t n,
                     int64_t *n_counted, struct oj_error *err)
{
    int64_t n_new = n - *n_counted;
    if (budget->most == 0 || n_new < budget->block)
        return OJ_OK;
    *n_counted = n;
    return oj_pairs_fit(
        budget->most,
        __atomic_add_fetch(&budget->n_counted, n_new, __ATOMIC_RELAXED), err);
}

#ifdef __cplusplus
}
#endif
#endif
