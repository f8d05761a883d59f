/** Pairs counted and values summed by join feature, without the pairs.
 *
 *   columns of a batch --request--> backend --words of limbs--> aggregates
 *
 *  A backend adds what a batch's points have, as whole numbers
 * (oj_sum_limbs.h), to a run of words for each join feature, in any order;
 * afterwards the words go to sums that hold every bit.  So the results are
 * those of pairs that are added one by one.
 */
#ifndef OJ_SUM_REQUEST_H
#define OJ_SUM_REQUEST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Values of join features that are aggregated, as columns. */

enum oj_aggregate_type
{
    OJ_AGG_INTEGER = 0,
    OJ_AGG_REAL,
    OJ_AGG_BYTES
};

/** A text or other bytes, borrowed. */
struct oj_aggregate_bytes
{
    const char *bytes;
    int64_t n;
};

/** Values of one column, in the array of its type. */
struct oj_aggregate_column
{
    const double *real;
    const int64_t *integer;
    const uint8_t *is_null; /**< NULL: none is */
    const struct oj_aggregate_bytes *bytes;
};

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

#ifdef __cplusplus
}
#endif
#endif
