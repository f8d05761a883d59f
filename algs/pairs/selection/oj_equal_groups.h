/** Groups the join features with equal geometries into entries. An index holds
 *  one item per entry, whose distance to a row is computed once.
 *
 *  entry       0     1       2   ...
 *  feature   [ 7     3 5 8   9   ...   ordinals
 *  first     [ 0     1       4   ...   NULL where each entry is one feature
 *
 *  The features of an entry are sorted by -on class, then by tie rank. A row
 *  tests them in this order until it has enough pairs. These conditions are met
 *  without testing every feature, so an entry of any size costs O(k) a row:
 *
 *   -on               the features of a class are consecutive
 *   order of FIDs     a range of tie ranks, found by binary search
 *   -exclude, self    next_other: the next feature of another class or FID
 *
 *  Other conditions are tested feature by feature. Source: ours. */
#ifndef OJ_EQUAL_GROUPS_H
#define OJ_EQUAL_GROUPS_H

#include "oj_class_runs.h"
#include "oj_parallel_row_search.h"
#include "oj_sorted_fids.h"

/** The join features by entry. Owner of its arrays; zeroed memory is valid. The
 * index fills `feature`, and also `first` if an entry has several features. */
struct oj_equal_groups
{
    int64_t n;        /**< entries */
    int32_t *feature; /**< [features] ordinals, entry by entry */
    int32_t *first;   /**< [n + 1] positions in feature; NULL: each entry is
                           one feature */
    /** [features] position in `feature` of the next feature of the entry that a
     * row can keep although it excludes this feature; NULL: a row excludes at
     * most one feature of an entry */
    int32_t *next_other;
    struct oj_sorted_fids fids; /**< used if a pair depends on the order of its
                                     FIDs */
    struct oj_class_runs classes; /**< runs of entries; set by
                                       oj_equal_groups_make() */
};

/** Builds the entries from order, which is sorted by Morton code: neighbours
 * with equal geometries form one entry. Long runs of one code are sorted first,
 * so that equal geometries are adjacent. The features of an entry are in one
 * run of classes (oj_class_runs.h), by which entries are sorted. A feature with
 * its own maximum distance is an entry of its own. */
OJ_MUST_USE oj_status oj_equal_groups_make(struct oj_equal_groups *groups,
                                           const struct oj_index_args *args,
                                           struct oj_order *order,
                                           struct oj_error *err);

/** Sorts the features of each entry and prepares next_other and fids for the
 * conditions of the join. O(features log features). Called by
 * oj_equal_groups_make(). */
OJ_MUST_USE oj_status oj_equal_groups_sort_and_link(
    struct oj_equal_groups *groups, const struct oj_index_args *args,
    struct oj_error *err);

int64_t oj_equal_groups_bytes(const struct oj_equal_groups *groups);

void oj_equal_groups_free(struct oj_equal_groups *groups);

/** Returns the number of features of an entry. */
static inline int64_t
oj_equal_groups_count(const struct oj_equal_groups *groups, int64_t entry)
{
    return groups->first != NULL
               ? groups->first[entry + 1] - groups->first[entry]
               : 1;
}

/** Returns the first feature of an entry, whose geometry equals that of the
 * entry's other features. */
static inline int32_t
oj_equal_groups_first_feature(const struct oj_equal_groups *groups,
                              int64_t entry)
{
    return groups
        ->feature[groups->first != NULL ? groups->first[entry] : entry];
}

/** Half-open range of the tie ranks of features that can pair with a row. */
struct oj_rank_range
{
    int32_t from, end;
};

/** Returns the tie ranks whose FIDs are in the order that the relation requires
 * with the row's FID; all ranks if the relation requires no order. */
struct oj_rank_range
oj_equal_groups_ranks_of_row(const struct oj_equal_groups *groups,
                             const struct oj_row_index *index, int64_t row);

/** The features of an entry that can pair with a row: half-open range of
 * positions in feature. */
struct oj_equal_run
{
    int64_t first, end; /**< empty: first == end */
};

struct oj_equal_run
oj_equal_groups_find_run(const struct oj_equal_groups *groups,
                         const struct oj_row_index *index, int64_t row,
                         int64_t entry, struct oj_rank_range range);

/** Adds pairs of a row with those features of a run that pass the filter, all
 * with the measure `compared`: at most k in a join of the k nearest, all if
 * ties are kept. Increases *n_tried by the number of features tested. */
OJ_MUST_USE oj_status oj_equal_groups_add_pairs(
    const struct oj_equal_groups *groups, const struct oj_row_index *index,
    struct oj_row_worker *worker, int64_t row, struct oj_equal_run run,
    double compared, int64_t *n_tried, struct oj_error *err);

#endif
