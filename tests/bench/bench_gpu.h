/** Measurements of oj_bench on a GPU that struct oj_join does not offer: points
 * and answers that stay on the device, and pinned memory. */
#ifndef BENCH_GPU_H
#define BENCH_GPU_H

#include "bench_answer.h"

/** Measures index and query by the device's clock and prints minimum and median
 * of n_repeats as lines "RESIDENT phase=.. least_ms=.. middle_ms=.."; then the
 * answers (copied to *answer if rows have one each, otherwise the number of
 * pairs); then pairs counted by join feature if the join supports it, and with
 * `sums` also summed values. */
OJ_MUST_USE oj_status bench_resident(const struct oj_flat *input,
                                     const struct oj_flat *join_side,
                                     const struct oj_relation *relation,
                                     const struct oj_options *options,
                                     int64_t n_repeats, int sums,
                                     struct bench_answer *answer,
                                     struct oj_error *err);

/** Pins an array until the program ends; NULL is ignored. */
OJ_MUST_USE oj_status bench_pin_array(const void *array, int64_t n, size_t size,
                                      struct oj_error *err);

/** Pins the arrays of both sides and of matches, allocated for all rows, until
 * the program ends. */
OJ_MUST_USE oj_status bench_pin(const struct oj_flat *input,
                                const struct oj_flat *join_side,
                                const struct oj_matches *matches,
                                struct oj_error *err);

/** Parses "all", "0" or "0,2" to the bits of struct oj_options.gpus. */
uint64_t bench_gpu_list(const char *text);

#endif
