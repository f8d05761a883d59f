/** Pairs counted and values summed by join feature, without the pairs.
 *
 *   columns of a batch --request--> backend --words of limbs--> pair sums
 *
 *  A backend adds what a batch's points have, as whole numbers (oj_limbs.h), to
 *  a run of words for each join feature, in any order; afterwards the words go
 *  to sums that hold every bit.  So the results are those of pairs that are
 *  added one by one.
 */
#ifndef OJ_PAIR_SUMS_H
#define OJ_PAIR_SUMS_H

#include "oj_aggregate.h"

#ifdef __cplusplus
extern "C" {
#endif

struct oj_exact_sum;
struct oj_long_sum;

#define OJ_SUM_MOST_COLUMNS 8

/* ---- what a backend is asked -------------------------------------------- */

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

/* ---- what comes of it --------------------------------------------------- */

struct oj_summed_column
{
    enum oj_aggregate_type type; /**< not OJ_AGG_BYTES */
    int wants_sum;               /**< 0: only the number of values */
    int64_t *n;                  /**< [n_features] values that are not NULL */
    struct oj_exact_sum *real;   /**< [n_features], of reals, if wanted */
    struct oj_long_sum *integer; /**< [n_features], of integers, if wanted */
};

/** Owner. */
struct oj_pair_sums
{
    int64_t n_features;
    int64_t *n_pairs; /**< [n_features] */
    int n_columns;
    struct oj_summed_column column[OJ_SUM_MOST_COLUMNS];
    int64_t *words; /**< [cap_words] of a batch */
    int64_t cap_words;
};

/** Nothing summed yet.  types and wants_sum: [n_columns], n_columns at most
 *  OJ_SUM_MOST_COLUMNS. */
OJ_MUST_USE OJ_EXPORT oj_status oj_pair_sums_open(
    int64_t n_features, int n_columns, const enum oj_aggregate_type *types,
    const int *wants_sum, struct oj_pair_sums **out, struct oj_error *err);

/** The request for a batch of n rows, fewer than 2^31: looks at all values to
 *  learn how many limbs their sums need. columns: [sums->n_columns], outlive
 *  *out. */
OJ_EXPORT void oj_sum_request_make(const struct oj_pair_sums *sums,
                                   const struct oj_aggregate_column *columns,
                                   int64_t n, int n_threads,
                                   struct oj_sum_request *out);

/** sums->words: room for a request's words of all features, zeroed. */
OJ_MUST_USE OJ_EXPORT oj_status oj_pair_sums_reserve(
    struct oj_pair_sums *sums, const struct oj_sum_request *request,
    struct oj_error *err);

/** Adds sums->words, as a backend has filled them. OJ_ERR_NOMEM: some were
 *  added. */
OJ_MUST_USE OJ_EXPORT oj_status
oj_pair_sums_add(struct oj_pair_sums *sums,
                 const struct oj_sum_request *request, struct oj_error *err);

/** Accepts NULL. */
OJ_EXPORT void oj_pair_sums_close(struct oj_pair_sums *sums);

#ifdef __cplusplus
}
#endif
#endif
