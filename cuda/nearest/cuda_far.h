/** The nearest feature of points that lie outside of the cells: a warp each,
 *  through boxes around runs of segments (oj_near_run.h). */
#ifndef CUDA_FAR_H
#define CUDA_FAR_H

#include "../device/oj_cuda.h"

#include "oj_near_run.h"

struct oj_cuda_far
{
    int64_t n_runs, n_spans;
    double reach;
    double width; /**< of all, both axes together */
    struct oj_cuda_array<struct oj_run_box> run, span;
};

OJ_MUST_USE oj_status oj_cuda_far_build(struct oj_cuda_device *device,
                                        const struct oj_cuda_layer *layer,
                                        double reach, struct oj_cuda_far *out,
                                        struct oj_error *err);
void oj_cuda_far_drop(struct oj_cuda_device *device, struct oj_cuda_far *far);
int64_t oj_cuda_far_bytes(const struct oj_cuda_far *far);

/** Answers the points whose row is outside: their row becomes a rank or -1, and
 *  distance [n] that to it or NaN; distance may be NULL.  Ranks become ordinals
 *  by the layer's ordinal_of, unless it is empty. */
OJ_MUST_USE oj_status oj_cuda_far_join(const struct oj_cuda_far *far,
                                       const struct oj_cuda_layer *layer,
                                       cudaStream_t stream, int64_t n,
                                       const double *x, const double *y,
                                       int32_t outside, int32_t *row,
                                       double *distance, struct oj_error *err);

#endif
