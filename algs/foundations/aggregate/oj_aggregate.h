/** Aggregates of the join features that input rows are paired with.
 *
 *   start(n rows) -> add(pairs), add(pairs), ... -> rewind -> result(row 0),
 * ... add_sums(by row), ...
 *
 *  Pairs may come in any order without changing a bit of the results: sums are
 *  exact (oj_exact_sum.h), and aggregates that depend on an order sort by (FID,
 *  place) or by value.  So either side of the join may be streamed.
 *
 *  Values are fields of the join feature, or columns of the pair itself such as
 *  its distance.  NULLs are ignored, except by OJ_AGG_COUNT.  The result of a
 * row without values is NULL; for counts it is 0. Numbers are ordered as usual,
 * NaN after all others and equal to itself, -0 like 0; bytes as memcmp() orders
 * them.
 *
 *  count, sums, extremes, first and last need some bytes for each row; median,
 *  percentile, mode, minority, unique and concat hold the values of their
 * field, sorted, in memory or beyond a bound in files
 * (oj_value_external_sort.h).
 */
#ifndef OJ_AGGREGATE_H
#define OJ_AGGREGATE_H

#include "oj_sum_request.h"
#include "oj_value_external_sort.h"

enum oj_aggregate_kind
{
    OJ_AGG_COUNT = 0,    /**< number of pairs */
    OJ_AGG_COUNT_VALUES, /**< number of values that are not NULL */
    OJ_AGG_SUM,  /**< integers: exact or an error; reals: rounded once */
    OJ_AGG_MEAN, /**< sum divided by the number of values */
    OJ_AGG_MIN,
    OJ_AGG_MAX,
    OJ_AGG_MEDIAN, /**< of an even number of values: mean of the two in the
                        middle */
    OJ_AGG_STDDEV, /**< sample standard deviation (divisor n - 1); NULL for n
                        < 2 */
    OJ_AGG_FIRST,  /**< first value that is not NULL, in the order of (FID,
                        place) */
    OJ_AGG_LAST,
    OJ_AGG_MODE,         /**< most frequent value; of several the smallest */
    OJ_AGG_UNIQUE,       /**< number of different values */
    OJ_AGG_CONCAT,       /**< values joined in the order of (FID, place) */
    OJ_AGG_WEIGHTED_SUM, /**< sum of value times the share of its pair */
    OJ_AGG_VARIANCE,     /**< sample variance; NULL for n < 2 */
    OJ_AGG_PERCENTILE,   /**< linear between the two values around the position
                              (n - 1) * percent / 100, counted from 0 */
    OJ_AGG_RANGE,        /**< maximum less minimum; integers: exact or an
                              error */
    OJ_AGG_MINORITY,     /**< rarest value; of several the smallest */
    OJ_AGG_COVERED,      /**< the value that all pairs of a row have; 0 for a
                              row without pairs */
    OJ_AGG_WEIGHTED_MEAN /**< sum of value times weight, both exact, by the sum
                              of the weights; NULL if that is 0. Pairs without
                              value or weight are ignored */
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
    int column;            /**< column of the values; unused by OJ_AGG_COUNT */
    const char *separator; /**< used by OJ_AGG_CONCAT */
    int weight;            /**< column of the weights; used by
                                OJ_AGG_WEIGHTED_MEAN */
    double percent;        /**< 0 to 100; used by OJ_AGG_PERCENTILE */
};

/** The aggregates to compute and the types of their columns. Borrows its
 * arrays. */
struct oj_aggregate_plan
{
    const struct oj_aggregate *aggregates; /**< [n_aggregates] */
    int n_aggregates;
    const enum oj_aggregate_type *types; /**< [n_columns] */
    int n_columns;
    int64_t memory; /**< maximum bytes of stored values in memory; 0: no
                         bound */
    const struct oj_held_files *files; /**< may be NULL if memory is 0 */
    const uint8_t *is_of_pairs; /**< [n_columns] 1: value p of the column is
                                     that of pair p; 0: value i is that of join
                                     feature i. NULL: all are 0 */
};

/** Pairs with the values of their join features: pair p belongs to row row[p];
 * its feature has index at[p] in fid, place, and the columns that are not of
 * pairs. Borrows its arrays. */
struct oj_aggregate_pairs
{
    int64_t n;
    const int64_t *row;                        /**< [n] */
    const int32_t *at;                         /**< [n] */
    const struct oj_aggregate_column *columns; /**< [n_columns] */

    /* Needed by first, last and concat; else NULL. */
    const int64_t *fid;   /**< of join features */
    const int64_t *place; /**< positions of join features in their layer, in
                               reading order */

    const double *share; /**< [n] share of the join feature that the row
                              gets; NULL: all of it */
};

struct oj_aggregates;

/** The types of values that a function takes. */
enum oj_aggregate_takes
{
    OJ_AGG_TAKES_ANY,
    OJ_AGG_TAKES_NUMBERS,
    OJ_AGG_TAKES_WRITTEN, /**< any type, converted to text */
    OJ_AGG_TAKES_ORDERED,
    OJ_AGG_TAKES_ORDERED_GIVES_ONE /**< values with an order; the result is
                                        one of them */
};

struct oj_aggregate_function
{
    const char *name;
    enum oj_aggregate_kind kind;
    enum oj_aggregate_takes takes;
    double percent; /**< of q1 and q3; NaN: percentile takes it as an
                         argument */
};

#define OJ_AGGREGATE_NAMES                                                     \
    "count, sum, mean (or avg), min, max, range, median, percentile, q1, q3, " \
    "stddev, variance, first, last, mode, minority, unique, concat, "          \
    "weighted_sum, weighted_mean, covered_area, covered_percent, "             \
    "covered_length"

/** Finds a function by name (without case). Errors begin with `before`; that of
 * a name which other programs use names the function that is meant. */
OJ_MUST_USE oj_status oj_aggregate_find(
    const char *before, const char *name,
    const struct oj_aggregate_function **out, struct oj_error *err);

/** The type of the result for a column of this type. */
enum oj_aggregate_type oj_aggregate_type(enum oj_aggregate_kind kind,
                                         enum oj_aggregate_type column);

/** The plan's arrays and separators must outlive *out; the struct itself is
 * copied. OJ_ERR_ARG if an aggregate does not take the type of its column. */
OJ_MUST_USE oj_status oj_aggregates_open(const struct oj_aggregate_plan *plan,
                                         struct oj_aggregates **out,
                                         struct oj_error *err);

/** Starts over: rows 0 to n_rows - 1 have no pairs. */
OJ_MUST_USE oj_status oj_aggregates_start(struct oj_aggregates *aggregates,
                                          int64_t n_rows, struct oj_error *err);

/** Adds rows without pairs, so that there are n_rows. */
OJ_MUST_USE oj_status oj_aggregates_extend(struct oj_aggregates *aggregates,
                                           int64_t n_rows,
                                           struct oj_error *err);

/** Adds pairs, 0 <= row[p] < n_rows; bytes are copied.  A few nanoseconds per
 * pair if the plan has only counts and sums, else tens of them. */
OJ_MUST_USE oj_status oj_aggregates_add(struct oj_aggregates *aggregates,
                                        const struct oj_aggregate_pairs *pairs,
                                        struct oj_error *err);

/** 1 if the plan has only counts, sums and means: then a backend may count and
 * sum without making pairs (oj_sum_request.h). */
int oj_aggregates_take_sums(const struct oj_aggregates *aggregates);

/** [n_rows] the pair counts, which the caller may increase, if the plan asks
 * only for these; otherwise NULL. */
int64_t *oj_aggregates_counts(struct oj_aggregates *aggregates);

/** Plans the sums over n features (fewer than 2^31) for a backend, and
 * allocates zeroed words for all rows.  columns must outlive *request; *words
 * is valid until the next call. */
OJ_MUST_USE oj_status oj_aggregates_ask_sums(
    struct oj_aggregates *aggregates, const struct oj_aggregate_column *columns,
    int64_t n, int n_threads, struct oj_sum_request *request, int64_t **words,
    struct oj_error *err);

/** Adds words filled by a backend.  On OJ_ERR_NOMEM a part was added. */
OJ_MUST_USE oj_status oj_aggregates_add_sums(
    struct oj_aggregates *aggregates, const struct oj_sum_request *request,
    struct oj_error *err);

/** Adds all rows of `from`, which must have an equal plan of only counts, sums
 * and means.  On OJ_ERR_NOMEM a part was added. */
OJ_MUST_USE oj_status oj_aggregates_merge(struct oj_aggregates *aggregates,
                                          const struct oj_aggregates *from,
                                          struct oj_error *err);

/** Ends adding; results can be read from row 0 on. */
OJ_MUST_USE oj_status oj_aggregates_rewind(struct oj_aggregates *aggregates,
                                           struct oj_error *err);

/** Number of pairs of row. */
int64_t oj_aggregates_pairs(const struct oj_aggregates *aggregates,
                            int64_t row);

/** The result of plan->aggregates[i] for row; its bytes are valid until the
 * next call.  Rows must be read in ascending order; each aggregate of a row
 * any number of times.  OJ_ERR_LIMIT if the result is too large: an integer
 * sum beyond 64 bits, a text beyond 2 GB. */
OJ_MUST_USE oj_status oj_aggregates_result(struct oj_aggregates *aggregates,
                                           int64_t row, int i,
                                           struct oj_aggregate_value *value,
                                           struct oj_error *err);

/** Accepts NULL. */
void oj_aggregates_close(struct oj_aggregates *aggregates);

#endif
