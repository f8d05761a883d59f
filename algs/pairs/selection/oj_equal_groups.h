/** Features of the join side that are equal in what a join measures: one entry
 * of an index, which is measured once for a row.
 *
 *  entry       0     1       2   ...
 *  feature   [ 7     3 5 8   9   ...   ordinals
 *  first     [ 0     1       4   ...   NULL where each entry is one feature
 *
 *  The features of an entry are sorted by the class that must be equal and by
 *  tie rank, and a row asks them in this order until it has as many as it
 * wants. Each condition leads to the first features that fulfil it, so an entry
 * of any size costs O(k) a row:
 *
 *   -on               a run of the entry
 *   order of FIDs     a range of tie ranks, found by halving
 *   -exclude, self    next_other: the next feature of another class or FID
 *
 *  Other conditions of attributes are asked of one feature after the other.
 *  Source: ours.
 */
#ifndef OJ_EQUAL_GROUPS_H
#define OJ_EQUAL_GROUPS_H

#include "oj_parallel_row_search.h"
#include "oj_sorted_fids.h"

/** Owner of its arrays, which the index that has the entries fills: feature,
 * and first where an entry has several; zeroed memory is valid. */
struct oj_equal_groups
{
    int64_t n;           /**< entries */
    int32_t *feature;    /**< [features] */
    int32_t *first;      /**< [n + 1] in feature; NULL: one feature each */
    int32_t *next_other; /**< [features] place in feature of the next one that
                              rows do not leave out together with this; NULL:
                              rows leave out one of an entry at most */
    struct oj_sorted_fids fids; /**< where pairs have an order of FIDs */
};

/** Makes entries of the features in order, which is that of Morton codes: equal
 * geometries next to each other are one, and long runs of one code are sorted
 * for that.  Features with maximum distances of their own are an entry each. */
OJ_MUST_USE oj_status oj_equal_groups_make(struct oj_equal_groups *groups,
                                           const struct oj_index_args *args,
                                           struct oj_order *order,
                                           struct oj_error *err);

/** Sorts the features of each entry, and prepares for the conditions of a join.
 * O(features log features).  oj_equal_groups_make() calls it. */
OJ_MUST_USE oj_status oj_equal_groups_finish(struct oj_equal_groups *groups,
                                             const struct oj_index_args *args,
                                             struct oj_error *err);

int64_t oj_equal_groups_bytes(const struct oj_equal_groups *groups);

void oj_equal_groups_free(struct oj_equal_groups *groups);

/** The number of features of an entry. */
static inline int64_t
oj_equal_groups_count(const struct oj_equal_groups *groups, int64_t entry)
{
    return groups->first != NULL
               ? groups->first[entry + 1] - groups->first[entry]
               : 1;
}

/** The first feature of an entry, which stands for all. */
static inline int32_t
oj_equal_groups_first_feature(const struct oj_equal_groups *groups,
                              int64_t entry)
{
    return groups
        ->feature[groups->first != NULL ? groups->first[entry] : entry];
}

/** The tie ranks, from .. end - 1, of features that can be pairs of a row. */
struct oj_rank_range
{
    int32_t from, end;
};

/** The range that the order of FIDs leaves to a row; all ranks where none is
 * asked for. */
struct oj_rank_range
oj_equal_groups_ranks_of_row(const struct oj_equal_groups *groups,
                             const struct oj_row_index *index, int64_t row);

/** The features of an entry that can be pairs of a row, as places in feature.
 */
struct oj_equal_run
{
    int64_t first, end; /**< empty: first == end */
};

struct oj_equal_run
oj_equal_groups_find_run(const struct oj_equal_groups *groups,
                         const struct oj_row_index *index, int64_t row,
                         int64_t entry, struct oj_rank_range range);

/** Puts the pairs of a row with the features of a run that pass the filter, at
 * one compared value: of k nearest no more than k, or all for ties.
 * *n_tried grows by the number of features that are looked at. */
OJ_MUST_USE oj_status oj_equal_groups_add_pairs(
    const struct oj_equal_groups *groups, const struct oj_row_index *index,
    struct oj_row_worker *worker, int64_t row, struct oj_equal_run run,
    double compared, int64_t *n_tried, struct oj_error *err);

#endif
