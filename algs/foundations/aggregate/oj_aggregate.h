/** Aggregates over the pairs of each row, with values of the paired features.
 *
 *   reset(n rows) -> add(pairs) or add_sums(), ...
 *       -> rewind -> result(row 0), result(row 1), ...
 *
 *  The results do not depend on the order of pairs: sums are exact
 *  (oj_exact_sum.h), and aggregates that need an order sort by (FID, reading
 *  position) of the join features, or by value.  So either side of the join may
 *  be streamed.
 *
 *  Values are fields of the join feature, or belong to the pair, for example
 *  its distance.  NULLs are ignored, except by OJ_AGG_COUNT.  The result of a
 *  row without values is NULL; for counts it is 0.  In the order of numbers,
 *  NaN follows all others and equals itself, and -0 equals 0.  Bytes are
 *  ordered as by memcmp().
 *
 *  count, sums, extremes, first and last need a few bytes for each row; median,
 *  percentile, mode, minority, unique and concat store and sort all values, in
 *  memory or, above a limit, in files (oj_value_external_sort.h).
 */
#ifndef OJ_AGGREGATE_H
#define OJ_AGGREGATE_H

#include "oj_sum_request.h"
#include "oj_value_external_sort.h"

/** The aggregate functions. Values are those of one row's pairs. */
enum oj_aggregate_kind
{
    OJ_AGG_COUNT = 0,    /**< number of pairs */
    OJ_AGG_COUNT_VALUES, /**< number of values that are not NULL */
    OJ_AGG_SUM,  /**< integers: exact or an error; reals: rounded once */
    OJ_AGG_MEAN, /**< sum divided by the number of values */
    OJ_AGG_MIN,
    OJ_AGG_MAX,
    OJ_AGG_MEDIAN, /**< middle value; for an even number of values, the mean of
                        the two in the middle */
    OJ_AGG_STDDEV, /**< sample standard deviation (divisor n - 1); NULL for n
                        < 2 */
    OJ_AGG_FIRST,  /**< first value that is not NULL, in the order of (FID,
                        reading position) */
    OJ_AGG_LAST,   /**< last value that is not NULL, in the order of (FID,
                        reading position) */
    OJ_AGG_MODE, /**< most frequent value; if several are equally frequent, the
                      smallest of them */
    OJ_AGG_UNIQUE,       /**< number of different values */
    OJ_AGG_CONCAT,       /**< values joined in the order of (FID, reading
                              position) */
    OJ_AGG_WEIGHTED_SUM, /**< sum of value times share; the share is the part of
                              the join feature, 0 to 1, that the input row
                              overlaps */
    OJ_AGG_VARIANCE,     /**< sample variance; NULL for n < 2 */
    OJ_AGG_PERCENTILE,   /**< linear interpolation at the position (n - 1) *
                              percent / 100 of the sorted values, counted
                              from 0 */
    OJ_AGG_RANGE,        /**< maximum minus minimum; integers: exact, or an
                              error */
    OJ_AGG_MINORITY,     /**< rarest value; if several are equally rare, the
                              smallest of them */
    OJ_AGG_COVERED, /**< area, length or percentage of the row that its join
                         features cover: every pair of the row carries it as its
                         value; 0 for a row without pairs, unless
                         oj_aggregates_set_undefined() makes it NULL */
    OJ_AGG_WEIGHTED_MEAN /**< sum of value times weight, divided by the sum of
                              weights; both sums are exact; NULL if the weights
                              add up to 0. Pairs without value or weight are
                              ignored */
};

/** A value or a result. The type determines which member is valid. */
struct oj_aggregate_value
{
    int is_null;
    int64_t integer;
    double real;
    const char *bytes; /**< borrowed */
    int64_t n_bytes;
};

/** One aggregate to compute: a function and its arguments. */
struct oj_aggregate
{
    enum oj_aggregate_kind kind;
    int column;            /**< column of the values; not used by
                                OJ_AGG_COUNT */
    const char *separator; /**< used by OJ_AGG_CONCAT */
    int weight;            /**< column of the weights; used by
                                OJ_AGG_WEIGHTED_MEAN */
    double percent;        /**< 0 to 100; used by OJ_AGG_PERCENTILE */
};

/** The aggregates to compute and the types of their columns; the arrays are
 * borrowed. */
struct oj_aggregate_plan
{
    const struct oj_aggregate *aggregates; /**< [n_aggregates] */
    int n_aggregates;
    const enum oj_aggregate_type *types; /**< [n_columns] type of each column */
    int n_columns;
    int64_t memory; /**< maximum bytes of stored values in memory; 0: no
                         limit */
    const struct oj_value_sort_files
        *files;                 /**< files for values beyond `memory`;
                               may be NULL if memory is 0 */
    const uint8_t *is_of_pairs; /**< [n_columns] 1: element p of the column
                                     belongs to pair p; 0: element i belongs to
                                     join feature i. NULL: all are 0 */
};

/** Pairs to add. Pair p belongs to row row[p]; at[p] is the index of its join
 * feature in fid, place and those columns that have a value per join feature.
 * The arrays are borrowed. */
struct oj_aggregate_pairs
{
    int64_t n;
    const int64_t *row;                        /**< [n] row of each pair */
    const int32_t *at;                         /**< [n] index of each pair's
                                                    join feature */
    const struct oj_aggregate_column *columns; /**< [n_columns] */

    /* Needed by first, last and concat; otherwise NULL. */
    const int64_t *fid;   /**< FIDs of join features */
    const int64_t *place; /**< [join features] ordinals of features in their
                               layer */

    const double *share; /**< [n] part of the join feature that the row
                              overlaps, 0 to 1; NULL: all are 1 */
};

struct oj_aggregates;

/** The types of values that a function accepts. */
enum oj_aggregate_takes
{
    OJ_AGG_TAKES_ANY,
    OJ_AGG_TAKES_NUMBERS,
    OJ_AGG_TAKES_WRITTEN, /**< texts, and numbers and times as texts */
    OJ_AGG_TAKES_ORDERED, /**< values with an order: numbers, texts, times */
    OJ_AGG_TAKES_ORDERED_GIVES_ONE /**< as OJ_AGG_TAKES_ORDERED; the result is
                                        one of the values */
};

/** A name that users may write, and the function it stands for. */
struct oj_aggregate_function
{
    const char *name;
    enum oj_aggregate_kind kind;
    enum oj_aggregate_takes takes;
    double percent; /**< the percentage of q1 and q3; NaN: not fixed (percentile
                         has an argument) */
};

#define OJ_AGGREGATE_NAMES                                                     \
    "count, sum, mean (or avg), min, max, range, median, percentile, q1, q3, " \
    "stddev, variance, first, last, mode, minority, unique, concat, "          \
    "weighted_sum, weighted_mean, covered_area, covered_percent, "             \
    "covered_length"

/** Finds a function by name, ignoring case. Error messages begin with `before`.
 * If the name is unknown here but usual in other programs, the message suggests
 * the name used here. */
OJ_MUST_USE oj_status oj_aggregate_find(
    const char *before, const char *name,
    const struct oj_aggregate_function **out, struct oj_error *err);

/** Returns the type of the result for a column of this type. */
enum oj_aggregate_type oj_aggregate_type(enum oj_aggregate_kind kind,
                                         enum oj_aggregate_type column);

/** Makes aggregates, with no rows yet. The plan's arrays must outlive *out.
 * OJ_ERR_INTERNAL if an aggregate does not accept the type of its column. */
OJ_MUST_USE oj_status oj_aggregates_open(const struct oj_aggregate_plan *plan,
                                         struct oj_aggregates **out,
                                         struct oj_error *err);

/** Removes all pairs, and sets the number of rows to n_rows. */
OJ_MUST_USE oj_status oj_aggregates_reset(struct oj_aggregates *aggregates,
                                          int64_t n_rows, struct oj_error *err);

/** Enlarges the number of rows to n_rows. The new rows have no pairs. */
OJ_MUST_USE oj_status oj_aggregates_extend(struct oj_aggregates *aggregates,
                                           int64_t n_rows,
                                           struct oj_error *err);

/** Adds pairs, 0 <= row[p] < n_rows. Bytes are copied. Takes a few nanoseconds
 * per pair if the plan has only counts and sums, otherwise tens of nanoseconds.
 */
OJ_MUST_USE oj_status oj_aggregates_add(struct oj_aggregates *aggregates,
                                        const struct oj_aggregate_pairs *pairs,
                                        struct oj_error *err);

/** Returns 1 if a backend can count and sum without storing pairs
 * (oj_sum_request.h): the plan has only counts, sums and means, and at most
 * OJ_SUM_MOST_COLUMNS columns, all of them numbers of join features. */
int oj_aggregates_need_only_sums(const struct oj_aggregates *aggregates);

/** Returns the pair counts [n_rows], which the caller may increase, or NULL if
 * the plan needs more than pair counts. */
int64_t *oj_aggregates_counts(struct oj_aggregates *aggregates);

/** Plans sums over n features (fewer than 2^31) that a backend will compute.
 * Sets *words to zeroed words for the sums of all rows, which are valid until
 * the next call of this function. columns must outlive *request. */
OJ_MUST_USE oj_status oj_aggregates_plan_sums(
    struct oj_aggregates *aggregates, const struct oj_aggregate_column *columns,
    int64_t n, int n_threads, struct oj_sum_request *request, int64_t **words,
    struct oj_error *err);

/** Adds to the aggregates the sums that a backend has left in the words of
 * oj_aggregates_plan_sums(). After OJ_ERR_NOMEM some of them may have been
 * added. */
OJ_MUST_USE oj_status oj_aggregates_add_sums(
    struct oj_aggregates *aggregates, const struct oj_sum_request *request,
    struct oj_error *err);

/** Adds row i of `from` to row i, for all rows of `from`. Both plans must be
 * equal and have only counts, sums and means. After OJ_ERR_NOMEM some rows may
 * have been added. */
OJ_MUST_USE oj_status oj_aggregates_merge(struct oj_aggregates *aggregates,
                                          const struct oj_aggregates *from,
                                          struct oj_error *err);

/** Makes the result of aggregate i, whose kind must be OJ_AGG_COVERED, NULL for
 * a row that gets no pairs. */
void oj_aggregates_set_undefined(struct oj_aggregates *aggregates, int64_t row,
                                 int i);

/** Ends the adding of pairs. Results can then be read, from row 0 on. */
OJ_MUST_USE oj_status oj_aggregates_rewind(struct oj_aggregates *aggregates,
                                           struct oj_error *err);

/** Returns the number of pairs of a row. */
int64_t oj_aggregates_pair_count(const struct oj_aggregates *aggregates,
                                 int64_t row);

/** Reads the result of aggregate i for a row; bytes are valid until the next
 * call. Rows must be read in ascending order. OJ_ERR_LIMIT if the result is too
 * large: an integer sum beyond 64 bits, a text beyond 2 GB. */
OJ_MUST_USE oj_status oj_aggregates_result(struct oj_aggregates *aggregates,
                                           int64_t row, int i,
                                           struct oj_aggregate_value *value,
                                           struct oj_error *err);

/** Frees the aggregates, which may be NULL. */
void oj_aggregates_close(struct oj_aggregates *aggregates);

#endif
