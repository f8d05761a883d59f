/** Aggregates of the join features that input rows are paired with.
 *
 *   start(n rows) -> add(pairs), add(pairs), ... -> rewind -> result(row 0),
 * ... add_sums(by row), ...
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
 *  beyond a bound in files (oj_value_external_sort.h).
 */
#ifndef OJ_AGGREGATE_H
#define OJ_AGGREGATE_H

#include "oj_sum_request.h"
#include "oj_value_external_sort.h"

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

/** Pairs, and what their join features have: pair p is of row row[p], and its
 *  feature is the one at place at[p] of columns, fid and place. Borrows. */
struct oj_aggregate_pairs
{
    int64_t n;
    const int64_t *row;                        /**< [n] */
    const int32_t *at;                         /**< [n] */
    const struct oj_aggregate_column *columns; /**< [n_columns] */

    /* first, last and concat; else NULL. */
    const int64_t *fid;   /**< of the join feature */
    const int64_t *place; /**< of it in its layer, in read order */

    const double *share; /**< [n] of the join feature, that the row is given;
                              NULL: all of it */
};

struct oj_aggregates;

/** What values a function takes. */
enum oj_aggregate_takes
{
    OJ_AGG_TAKES_ANY,
    OJ_AGG_TAKES_NUMBERS,
    OJ_AGG_TAKES_WRITTEN, /**< as texts */
    OJ_AGG_TAKES_ORDERED,
    OJ_AGG_TAKES_ORDERED_GIVES_ONE /**< the result is one of the values */
};

struct oj_aggregate_function
{
    const char *name;
    enum oj_aggregate_kind kind;
    enum oj_aggregate_takes takes;
};

#define OJ_AGGREGATE_NAMES                                                     \
    "count, sum, mean (or avg), min, max, median, stddev, first, last, mode, " \
    "unique, concat, weighted_sum"

/** The function of a name (without case). Errors begin with before. */
OJ_MUST_USE oj_status oj_aggregate_find(
    const char *before, const char *name,
    const struct oj_aggregate_function **out, struct oj_error *err);

/** The type of a result. */
enum oj_aggregate_type oj_aggregate_type(enum oj_aggregate_kind kind,
                                         enum oj_aggregate_type column);

/** plan's arrays and separators outlive *out; the struct itself is copied.
 *  OJ_ERR_ARG for aggregates that bytes do not have. */
OJ_MUST_USE oj_status oj_aggregates_open(const struct oj_aggregate_plan *plan,
                                         struct oj_aggregates **out,
                                         struct oj_error *err);

/** Forgets everything; rows 0 to n_rows - 1 have no pairs. */
OJ_MUST_USE oj_status oj_aggregates_start(struct oj_aggregates *aggregates,
                                          int64_t n_rows, struct oj_error *err);

/** More rows, without pairs: 0 to n_rows - 1 there are then. */
OJ_MUST_USE oj_status oj_aggregates_extend(struct oj_aggregates *aggregates,
                                           int64_t n_rows,
                                           struct oj_error *err);

/** Adds pairs, 0 <= row[p] < n_rows; bytes are copied.  Some nanoseconds each
 *  where nothing but counts and sums is asked for, else tens of them. */
OJ_MUST_USE oj_status oj_aggregates_add(struct oj_aggregates *aggregates,
                                        const struct oj_aggregate_pairs *pairs,
                                        struct oj_error *err);

/** 1 when the plan has nothing but counts, sums and means: then pairs may be
 *  counted and values summed elsewhere (oj_sum_request.h). */
int oj_aggregates_take_sums(const struct oj_aggregates *aggregates);

/** [n_rows] the numbers of pairs, to add to, when the plan asks for nothing
 *  else; NULL when it does. */
int64_t *oj_aggregates_counts(struct oj_aggregates *aggregates);

/** What to sum for the plan, over n features, fewer than 2^31, and zeroed room
 *  for the words of all rows.  columns outlives *request; *words is valid until
 *  the next call. */
OJ_MUST_USE oj_status oj_aggregates_ask_sums(
    struct oj_aggregates *aggregates, const struct oj_aggregate_column *columns,
    int64_t n, int n_threads, struct oj_sum_request *request, int64_t **words,
    struct oj_error *err);

/** Adds these words, as a backend has filled them.  OJ_ERR_NOMEM: some were
 *  added. */
OJ_MUST_USE oj_status oj_aggregates_add_sums(
    struct oj_aggregates *aggregates, const struct oj_sum_request *request,
    struct oj_error *err);

/** Adds all pairs of the rows of from, another one of the same plan, which has
 *  nothing but counts, sums and means, to the same rows.  OJ_ERR_NOMEM: some
 *  were added. */
OJ_MUST_USE oj_status oj_aggregates_merge(struct oj_aggregates *aggregates,
                                          const struct oj_aggregates *from,
                                          struct oj_error *err);

/** After the last pair. */
OJ_MUST_USE oj_status oj_aggregates_rewind(struct oj_aggregates *aggregates,
                                           struct oj_error *err);

/** Pairs of row. */
int64_t oj_aggregates_pairs(const struct oj_aggregates *aggregates,
                            int64_t row);

/** The result of plan->aggregates[i] for row; its bytes are valid until the
 *  next call.  Rows are asked in ascending order, and of one row each
 *  aggregate any number of times.  OJ_ERR_LIMIT when it does not fit: a sum of
 *  integers into 64 bits, a text into two GB. */
OJ_MUST_USE oj_status oj_aggregates_result(struct oj_aggregates *aggregates,
                                           int64_t row, int i,
                                           struct oj_aggregate_value *value,
                                           struct oj_error *err);

/** Accepts NULL. */
void oj_aggregates_close(struct oj_aggregates *aggregates);

#endif
