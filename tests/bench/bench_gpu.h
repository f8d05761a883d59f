/** What oj_bench measures on a GPU beyond the joins of struct oj_join: points
 *  and answers that stay on the device, and memory that is pinned. */
#ifndef BENCH_GPU_H
#define BENCH_GPU_H

#include "bench_answer.h"

/** The device's clock for index and query, least and middle of n_repeats, as
 *  lines "RESIDENT phase=.. least_ms=.. middle_ms=.."; then the answers, which
 *  are copied back into *answer where rows have one each, or the number of
 *  pairs; then pairs counted by join feature, where the join has that, and with
 * sums values summed. */
OJ_MUST_USE oj_status bench_resident(const struct oj_flat *input,
                                     const struct oj_flat *join_side,
                                     const struct oj_relation *relation,
                                     const struct oj_options *options,
                                     int64_t n_repeats, int sums,
                                     struct bench_answer *answer,
                                     struct oj_error *err);

/** Pins one array; NULL: nothing. It stays pinned until the program ends. */
OJ_MUST_USE oj_status bench_pin_array(const void *array, int64_t n, size_t size,
                                      struct oj_error *err);

/** Pins the arrays of both sides and of matches, which has room for all rows.
 *  They stay pinned until the program ends. */
OJ_MUST_USE oj_status bench_pin(const struct oj_flat *input,
                                const struct oj_flat *join_side,
                                const struct oj_matches *matches,
                                struct oj_error *err);

/** "all", "0", "0,2": bits of struct oj_options.gpus. */
uint64_t bench_gpu_list(const char *text);

#endif
