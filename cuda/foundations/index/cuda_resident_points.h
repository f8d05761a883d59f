/** Points and answers that stay on a device of an index: what the module's
 *  functions of the caller's memory are made of. */
#ifndef CUDA_RESIDENT_POINTS_H
#define CUDA_RESIDENT_POINTS_H

#include "cuda_index.h"

struct oj_cuda_work;

/** The index of the family that answers, on the first device. */
OJ_MUST_USE oj_status oj_cuda_resident_index(const struct oj_gpu_index *index,
                                             const struct oj_cuda_index **out,
                                             struct oj_error *err);

/** Points as the families take them; copies, where these are not one after
 *  another, are work's. */
OJ_MUST_USE oj_status oj_cuda_resident_points(
    const struct oj_gpu_index *index, struct oj_cuda_work *work,
    const struct oj_gpu_points *points, struct oj_cuda_points *out);

/** The answer of a join with one for each point; d_measure may be NULL. */
OJ_MUST_USE oj_status oj_cuda_resident_answer(
    const struct oj_cuda_index *of, struct oj_cuda_work *work,
    const struct oj_cuda_points *points, int32_t *d_row, double *d_measure);

#endif
