/** The quadrant method's functions of struct oj_gpu_module. */
#ifndef CUDA_QUADRANT_H
#define CUDA_QUADRANT_H

#include "../../algs/relation/oj_gpu.h"

oj_status oj_cuda_quadrant_index(const struct oj_flat *join_side,
                                 const int32_t *tie_rank,
                                 const struct oj_relation *relation,
                                 const struct oj_options *options,
                                 struct oj_gpu_quadrant_index **out,
                                 struct oj_stats *stats, struct oj_error *err);
oj_status oj_cuda_quadrant_join(struct oj_gpu_quadrant_index *index,
                                const struct oj_flat *input,
                                struct oj_matches *out, struct oj_stats *stats,
                                struct oj_error *err);
/** Accepts NULL. */
void oj_cuda_quadrant_free(struct oj_gpu_quadrant_index *index);

#endif
