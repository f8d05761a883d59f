/** Sorts the pairs of a row by the tie ranks of their join features. */
#ifndef OJ_TIE_RANK_SORT_H
#define OJ_TIE_RANK_SORT_H

#include "../../../flatten/base/oj_status.h"
#include "../../foundations/base/oj_radix_sort.h"

#include <stddef.h>

/** Returns the tie rank of a feature. tie_rank: [features], or NULL if the
 * ordinal is the rank. */
static inline int32_t oj_tie_rank(const int32_t *tie_rank, int32_t feature)
{
    return tie_rank != NULL ? tie_rank[feature] : feature;
}

/** Buffers for sorting long rows; one per thread. Owner; zeroed memory is a
 * valid empty one. */
struct oj_tie_rank_sorter
{
    struct oj_keyed *key;
    double *measure;
    int64_t cap_key, cap_measure;
};

/** Sorts the n pairs of a row by tie rank; n < 2^31, features are distinct.
 * tie_rank: [features]; NULL: the ordinal. measure: [n], reordered like
 * feature; may be NULL.  O(n); allocates memory only above 128 pairs. */
OJ_MUST_USE oj_status oj_tie_rank_sort_pairs(struct oj_tie_rank_sorter *order,
                                             int64_t n, const int32_t *tie_rank,
                                             int32_t *feature, double *measure,
                                             struct oj_error *err);

void oj_tie_rank_sorter_free(struct oj_tie_rank_sorter *order);

#endif
