/** The order of the pairs of a row: by the tie ranks of their join features.
 */
#ifndef OJ_TIE_RANK_SORT_H
#define OJ_TIE_RANK_SORT_H

#include "../../../flatten/base/oj_status.h"
#include "../../foundations/base/oj_radix.h"

#include <stddef.h>

/** The place of a feature in tie order; tie_rank: [features], or NULL: the
 *  ordinal. */
static inline int32_t oj_tie_rank(const int32_t *tie_rank, int32_t feature)
{
    return tie_rank != NULL ? tie_rank[feature] : feature;
}

/** What sorting long rows needs in between; of one thread. Owner; zeroed memory
 *  is a valid empty one. */
struct oj_row_order
{
    struct oj_keyed *key;
    double *measure;
    int64_t cap_key, cap_measure;
};

/** Sorts the n pairs of a row, n < 2^31, whose features are all different.
 *  tie_rank: [features] or NULL, the ordinal; measure: [n], goes along with
 *  feature, or NULL.  O(n); memory is taken for more than 128 pairs only. */
OJ_MUST_USE oj_status oj_row_order_sort(struct oj_row_order *order, int64_t n,
                                        const int32_t *tie_rank,
                                        int32_t *feature, double *measure,
                                        struct oj_error *err);

void oj_row_order_free(struct oj_row_order *order);

#endif
