/** Counts and sums per join feature, made by a backend without storing pairs.
 *
 *   columns of a batch --request--> backend --words of limbs--> aggregates
 *
 *  A backend cuts the values of a batch's points into limbs (oj_sum_limbs.h)
 * and adds them to the words of each point's join features, in any order. The
 * words are then added to exact sums, so the results equal those of adding the
 * pairs one by one.
 */
#ifndef OJ_SUM_REQUEST_H
#define OJ_SUM_REQUEST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Type of the values in a column. */

enum oj_aggregate_type
{
    OJ_AGG_INTEGER = 0,
    OJ_AGG_REAL,
    OJ_AGG_BYTES
};

/** A text or other bytes; borrowed. */
struct oj_aggregate_bytes
{
    const char *bytes;
    int64_t n;
};

/** Values of a column. Of real, integer and bytes, the array of the column's
 * type is set, and the two other arrays are NULL. */
struct oj_aggregate_column
{
    const double *real;
    const int64_t *integer;
    const uint8_t *is_null; /**< NULL: no value is NULL */
    const struct oj_aggregate_bytes *bytes;
};

#define OJ_SUM_MOST_COLUMNS 8

/** A column to be summed, and where its sums are in the words of a feature. */
struct oj_sum_column
{
    const uint64_t *value;  /**< [rows] bits of doubles, or integers; NULL: no
                                 sum is needed */
    const uint8_t *is_null; /**< [rows]; NULL: no value is NULL */
    int is_integer;
    int base;    /**< limb k is in units of 2^(base + 32 k) */
    int n_limbs; /**< number of limbs of the sum; 0: no sum is needed, or all
                      values are 0, infinite or NaN */
    int limb_at; /**< position of limb 0 in a feature's words */
    int n_at;    /**< position of the word that counts values; 0: no value is
                      NULL, so word 0, the pair count, serves */
    int nonfinite_at; /**< position of the three words that count +infinities,
                     -infinities and NaNs; 0: all values are finite */
};

/** Layout of the words of a feature. Word 0 counts its pairs. All words are
 * signed. */
struct oj_sum_request
{
    int n_words, n_columns;
    struct oj_sum_column column[OJ_SUM_MOST_COLUMNS];
};

#ifdef __cplusplus
}
#endif
#endif
