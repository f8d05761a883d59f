/** Candidate pairs for the CPU's predicates: the functions of struct
 *  oj_gpu_module. */
#ifndef CUDA_SCREEN_H
#define CUDA_SCREEN_H

#include "../../algs/relation/oj_gpu.h"

oj_status oj_cuda_screen_index(const struct oj_flat *join_side,
                               const struct oj_screen_rule *rule,
                               const struct oj_options *options,
                               struct oj_gpu_screen **out,
                               struct oj_stats *stats, struct oj_error *err);
oj_status oj_cuda_screen_find(struct oj_gpu_screen *screen,
                              const struct oj_flat *input, int64_t most,
                              struct oj_screen_pairs *out,
                              struct oj_stats *stats, struct oj_error *err);
void oj_cuda_screen_free(struct oj_gpu_screen *screen);

#endif
