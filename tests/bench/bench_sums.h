/** What oj_bench measures of sums by join feature: values of the points, some
 *  of them NULL, as -agg "count,sum(a),mean(a),sum(b)" has them.
 */
#ifndef BENCH_SUMS_H
#define BENCH_SUMS_H

#include "../../algs/api/engine/oj_join.h"

#include "../../algs/foundations/aggregate/oj_aggregate.h"
#include "../../algs/foundations/aggregate/oj_sum_request.h"

enum
{
    BENCH_VALUE_COLUMNS = 2
};

/** Owner; zeroed memory is a valid empty one. */
struct bench_values
{
    double *real;     /**< [n] money */
    uint8_t *is_null; /**< [n] one of 20 */
    int64_t *integer; /**< [n] */
    struct oj_aggregate_column column[BENCH_VALUE_COLUMNS];
};

OJ_MUST_USE oj_status bench_values_make(int64_t n, struct bench_values *values,
                                        struct oj_error *err);
void bench_values_free(struct bench_values *values);

/** Aggregates of n_rows join features, with nothing in them. */
OJ_MUST_USE oj_status bench_sums_open(int64_t n_rows,
                                      struct oj_aggregates **out,
                                      struct oj_error *err);

/** The line "ANSWER pairs=.. checksum=..", of every bit of every result. */
OJ_MUST_USE oj_status bench_sums_print(struct oj_aggregates *aggregates,
                                       int64_t n_rows, struct oj_error *err);

struct bench_sums_options
{
    const char *backend;
    const struct oj_options *options;
    const struct oj_relation *relation;
    int64_t batch, n_repeats;
    int only_pairs; /**< 1: also where the backend can do without */
    int pinned;     /**< 1: points and values */
};

/** Lines "SUMS way=.." with the wall seconds of the repeat that took least,
 *  index, join and the adding of pairs on one thread, and the answer. */
OJ_MUST_USE oj_status bench_sums(const struct bench_sums_options *options,
                                 const struct oj_flat *input,
                                 const struct oj_flat *join_side,
                                 struct oj_error *err);

#endif
