/** Aggregates of the join features that input rows are paired with.
 *
 *   start(n rows) -> add(pair), add(pair), ... -> rewind -> result(row 0), ...
 *
 *  Pairs come in any order and the results are the same bits: sums are exact
 *  (oj_exact_sum.h), and what depends on an order has one of its own.  So
 * either side of the join may be the one that streams.
 *
 *  Values are those of the join feature's fields.  NULLs count nowhere but in
 *  OJ_AGG_COUNT.  A row without values has no result (NULL), and 0 for counts.
 *  Numbers are ordered as usual, NaN after all others and equal to itself, -0
 *  like 0; bytes as memcmp() orders them.
 *
 *  count, sums, extremes, first and last need some bytes for each row; median,
 *  mode, unique and concat hold the values of their field, sorted, in memory or
 *  beyond a bound in files (oj_aggregate_held.h).
 */
#ifndef OJ_AGGREGATE_H
#define OJ_AGGREGATE_H

#include "oj_aggregate_held.h"

#ifdef __cplusplus
extern "C" {
#endif

enum oj_aggregate_kind
{
    OJ_AGG_COUNT = 0,    /**< pairs */
    OJ_AGG_COUNT_VALUES, /**< values */
    OJ_AGG_SUM,  /**< integers: exact or an error; reals: rounded once */
    OJ_AGG_MEAN, /**< the sum by the number of values */
    OJ_AGG_MIN,
    OJ_AGG_MAX,
    OJ_AGG_MEDIAN, /**< of an even number: the mean of the two in the middle */
    OJ_AGG_STDDEV, /**< of a sample: the divisor is n - 1; none for n < 2 */
    OJ_AGG_FIRST,  /**< the value of the smallest (FID, place) that has one */
    OJ_AGG_LAST,
    OJ_AGG_MODE,        /**< the most frequent value, of several the smallest */
    OJ_AGG_UNIQUE,      /**< how many different values */
    OJ_AGG_CONCAT,      /**< values in the order of (FID, place) */
    OJ_AGG_WEIGHTED_SUM /**< of value times the pair's share */
};

enum oj_aggregate_type
{
    OJ_AGG_INTEGER = 0,
    OJ_AGG_REAL,
    OJ_AGG_BYTES
};

/** A value or a result, in the member of its type. */
struct oj_aggregate_value
{
    int is_null;
    int64_t integer;
    double real;
    const char *bytes; /**< borrowed */
    int64_t n_bytes;
};

struct oj_aggregate
{
    enum oj_aggregate_kind kind;
    int column;            /**< of the values; OJ_AGG_COUNT has none */
    const char *separator; /**< OJ_AGG_CONCAT */
};

/** What to compute, of which values. Borrows. */
struct oj_aggregate_plan
{
    const struct oj_aggregate *aggregates; /**< [n_aggregates] */
    int n_aggregates;
    const enum oj_aggregate_type *types; /**< [n_columns] */
    int n_columns;
    int64_t memory; /**< bytes that held values may take; 0: no bound */
    const struct oj_held_files *files; /**< NULL only without bound */
};

/** A pair, and what its join feature has. */
struct oj_aggregate_pair
{
    int64_t row;
    int64_t fid;   /**< of the join feature */
    int64_t place; /**< of the join feature in its layer, in read order */
    double share;  /**< of the join feature, that the row is given */
    const struct oj_aggregate_value *values; /**< [n_columns] */
};

struct oj_aggregates;

/** The type of a result. */
OJ_EXPORT enum oj_aggregate_type
oj_aggregate_type(enum oj_aggregate_kind kind, enum oj_aggregate_type column);

/** plan's arrays and separators outlive *out; the struct itself is copied.
 *  OJ_ERR_ARG for aggregates that bytes do not have. */
OJ_MUST_USE OJ_EXPORT oj_status
oj_aggregates_open(const struct oj_aggregate_plan *plan,
                   struct oj_aggregates **out, struct oj_error *err);

/** Forgets everything; rows 0 to n_rows - 1 have no pairs. */
OJ_MUST_USE OJ_EXPORT oj_status oj_aggregates_start(
    struct oj_aggregates *aggregates, int64_t n_rows, struct oj_error *err);

/** More rows, without pairs: 0 to n_rows - 1 there are then. */
OJ_MUST_USE OJ_EXPORT oj_status oj_aggregates_extend(
    struct oj_aggregates *aggregates, int64_t n_rows, struct oj_error *err);

/** Adds a pair, 0 <= pair->row < n_rows. Tens of nanoseconds. */
OJ_MUST_USE OJ_EXPORT oj_status
oj_aggregates_add(struct oj_aggregates *aggregates,
                  const struct oj_aggregate_pair *pair, struct oj_error *err);

/** Values of one column, in the array of its type. */
struct oj_aggregate_column
{
    const double *real;
    const int64_t *integer;
    const uint8_t *is_null; /**< NULL: none is */
};

/** 1 when the plan has nothing but counts, sums, means and standard deviations:
 *  then pairs may be added in blocks. */
OJ_EXPORT int oj_aggregates_take_blocks(const struct oj_aggregates *aggregates);

/** Adds n pairs: pair p is of row row[p] and has the values at place at[p] of
 *  columns [n_columns].  Some nanoseconds each. */
OJ_MUST_USE OJ_EXPORT oj_status oj_aggregates_add_block(
    struct oj_aggregates *aggregates, int64_t n, const int64_t *row,
    const int32_t *at, const struct oj_aggregate_column *columns,
    struct oj_error *err);

/** 1 when the plan has nothing but counts of pairs: then the pairs of rows may
 *  be counted elsewhere. */
OJ_EXPORT int oj_aggregates_take_counts(const struct oj_aggregates *aggregates);

/** Adds count[row] pairs to each of the first n rows. */
OJ_EXPORT void oj_aggregates_add_counts(struct oj_aggregates *aggregates,
                                        int64_t n, const int64_t *count);

struct oj_pair_sums;

/** 1 when the plan has nothing but counts, sums and means: then pairs may be
 *  counted and values summed elsewhere (oj_pair_sums.h). */
OJ_EXPORT int oj_aggregates_take_sums(const struct oj_aggregates *aggregates);

/** Sums of the first n rows, as the plan needs them, with nothing in them. */
OJ_MUST_USE OJ_EXPORT oj_status
oj_aggregates_sums(const struct oj_aggregates *aggregates, int64_t n,
                   struct oj_pair_sums **out, struct oj_error *err);

/** Adds all that was added to sums. */
OJ_MUST_USE OJ_EXPORT oj_status
oj_aggregates_add_sums(struct oj_aggregates *aggregates,
                       const struct oj_pair_sums *sums, struct oj_error *err);

/** 1 when rows can be merged: no values are held. */
OJ_EXPORT int oj_aggregates_can_merge(const struct oj_aggregates *aggregates);

/** Adds all pairs of row from to row to, another one. */
OJ_MUST_USE OJ_EXPORT oj_status
oj_aggregates_merge(struct oj_aggregates *aggregates, int64_t from, int64_t to,
                    struct oj_error *err);

/** After the last pair. */
OJ_MUST_USE OJ_EXPORT oj_status
oj_aggregates_rewind(struct oj_aggregates *aggregates, struct oj_error *err);

/** Pairs of row. */
OJ_EXPORT int64_t oj_aggregates_pairs(const struct oj_aggregates *aggregates,
                                      int64_t row);

/** The result of plan->aggregates[i] for row; its bytes are valid until the
 *  next call.  Rows are asked in ascending order, and of one row each
 *  aggregate any number of times.  OJ_ERR_LIMIT when it does not fit: a sum of
 *  integers into 64 bits, a text into two GB. */
OJ_MUST_USE OJ_EXPORT oj_status
oj_aggregates_result(struct oj_aggregates *aggregates, int64_t row, int i,
                     struct oj_aggregate_value *value, struct oj_error *err);

/** Runs that were put aside in files since start. */
OJ_EXPORT int64_t oj_aggregates_spills(const struct oj_aggregates *aggregates);

/** Accepts NULL. */
OJ_EXPORT void oj_aggregates_close(struct oj_aggregates *aggregates);

#ifdef __cplusplus
}
#endif
#endif
