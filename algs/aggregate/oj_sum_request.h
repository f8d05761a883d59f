/** Pairs counted and values summed by join feature, without the pairs.
 *
 *   columns of a batch --request--> backend --words of limbs--> aggregates
 *
 *  A backend adds what a batch's points have, as whole numbers (oj_limbs.h), to
 *  a run of words for each join feature, in any order; afterwards the words go
 *  to sums that hold every bit.  So the results are those of pairs that are
 *  added one by one.
 */
#ifndef OJ_SUM_REQUEST_H
#define OJ_SUM_REQUEST_H

#include "oj_aggregate_column.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OJ_SUM_MOST_COLUMNS 8

/** A column of the points, and where its sums are among a feature's words. */
struct oj_sum_column
{
    const uint64_t *value;  /**< [rows] bits of doubles, or of integers; NULL:
                                 no sum is wanted */
    const uint8_t *is_null; /**< [rows]; NULL: none is */
    int is_integer;
    int base;    /**< limb k counts in 2^(base + 32 k) */
    int n_limbs; /**< 0: no sum is wanted, or all values are 0 or odd */
    int limb_at; /**< word of limb 0 */
    int n_at;    /**< word of the number of values; 0: as many as pairs */
    int odd_at;  /**< words of the numbers of +infinities, -infinities and NaNs;
                      0: there are none */
};

/** Word 0 of a feature counts its pairs. All words are signed. */
struct oj_sum_request
{
    int n_words, n_columns;
    struct oj_sum_column column[OJ_SUM_MOST_COLUMNS];
};

/** The request for n rows of columns, fewer than 2^31: looks at all values to
 *  learn how many limbs their sums need.  types, wants_sum and columns:
 *  [n_columns], at most OJ_SUM_MOST_COLUMNS, without OJ_AGG_BYTES; columns
 *  outlives *out. */
void oj_sum_request_make(int n_columns, const enum oj_aggregate_type *types,
                         const int *wants_sum,
                         const struct oj_aggregate_column *columns, int64_t n,
                         int n_threads, struct oj_sum_request *out);

#ifdef __cplusplus
}
#endif
#endif
