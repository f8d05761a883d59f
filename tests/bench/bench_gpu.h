/** Measurements of oj_bench on a GPU for which struct oj_join has no function:
 * points and answers that stay on the device, and pinned memory. */
#ifndef BENCH_GPU_H
#define BENCH_GPU_H

#include "bench_answer.h"

/** Measures index and query by the device's clock. Prints the least and the
 * median of n_repeats as lines "RESIDENT phase=.. least_ms=.. middle_ms=..".
 * Also measures pairs counted by join feature if the join supports it, and with
 * `sums` summed values. If each row has one answer, copies the answers to
 * *answer; otherwise only the number of pairs. */
OJ_MUST_USE oj_status bench_resident(const struct oj_flat *input,
                                     const struct oj_flat *join_side,
                                     const struct oj_relation *relation,
                                     const struct oj_options *options,
                                     int64_t n_repeats, int sums,
                                     struct bench_answer *answer,
                                     struct oj_error *err);

/** Pins an array until the program ends. An array that is NULL is ignored. */
OJ_MUST_USE oj_status bench_pin_array(const void *array, int64_t n, size_t size,
                                      struct oj_error *err);

/** Pins the arrays of both sides and of matches, until the program ends.
 * matches must be allocated for all rows. */
OJ_MUST_USE oj_status bench_pin(const struct oj_flat *input,
                                const struct oj_flat *join_side,
                                const struct oj_matches *matches,
                                struct oj_error *err);

/** Returns the bits of struct oj_options.gpus for "all", "0" or "0,2". */
uint64_t bench_gpu_list(const char *text);

#endif
