/** Measures sums by join feature in oj_bench. The values are those of the
 * points, some of them NULL, as for -agg "count,sum(a),mean(a),sum(b)". */
#ifndef BENCH_SUMS_H
#define BENCH_SUMS_H

#include "../../algs/api/engine/oj_join.h"

#include "../../algs/foundations/aggregate/oj_aggregate.h"
#include "../../algs/foundations/aggregate/oj_sum_request.h"

enum
{
    BENCH_VALUE_COLUMNS = 2
};

/** Owner; zeroed memory is a valid empty value. */
struct bench_values
{
    double *real;     /**< [n] money */
    uint8_t *is_null; /**< [n] about one value in 20 is NULL */
    int64_t *integer; /**< [n] */
    struct oj_aggregate_column column[BENCH_VALUE_COLUMNS];
};

OJ_MUST_USE oj_status bench_values_make(int64_t n, struct bench_values *values,
                                        struct oj_error *err);
void bench_values_free(struct bench_values *values);

/** Opens empty aggregates for n_rows join features. */
OJ_MUST_USE oj_status bench_sums_open(int64_t n_rows,
                                      struct oj_aggregates **out,
                                      struct oj_error *err);

/** Prints the line "ANSWER pairs=.. checksum=..". The checksum includes every
 * bit of the results. */
OJ_MUST_USE oj_status bench_sums_print(struct oj_aggregates *aggregates,
                                       int64_t n_rows, struct oj_error *err);

struct bench_sums_options
{
    const char *backend;
    const struct oj_options *options;
    const struct oj_relation *relation;
    int64_t batch, n_repeats;
    int only_pairs; /**< 1: adds pairs even if the backend can sum them itself
                     */
    int pinned;     /**< 1: points and values are pinned */
};

/** Prints lines "SUMS way=.." with the wall-clock seconds of the fastest
 * repeat, and the answer. The seconds are those of the index, of the join,
 * and of adding pairs on one thread. */
OJ_MUST_USE oj_status bench_sums(const struct bench_sums_options *options,
                                 const struct oj_flat *input,
                                 const struct oj_flat *join_side,
                                 struct oj_error *err);

#endif
