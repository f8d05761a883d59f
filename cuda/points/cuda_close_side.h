/** Points of the join side in cells (oj_close_points.h) on a device, and the
 *  points of a batch in the order of those cells. */
#ifndef CUDA_CLOSE_SIDE_H
#define CUDA_CLOSE_SIDE_H

#include "../index/cuda_family.h"
#include "oj_close_points.h"

/** Owner; zeroed memory is a valid empty one. */
struct oj_cuda_close_side
{
    struct oj_close_side side; /**< by value to kernels */
    struct oj_cuda_array<uint32_t> start;
    struct oj_cuda_array<struct oj_close_place> entry;
    struct oj_cuda_array<int32_t> rank;
    struct oj_cuda_columns columns; /**< of entries, as far as asked for */
};

/** Pairs of equal places, or least <= distance <= reach < INFINITY, with
 *  layer, which has only points. Enqueued on device->stream. out is empty, and
 *  after an error it can be dropped. */
OJ_MUST_USE oj_status oj_cuda_close_side_build(
    struct oj_cuda_device *device, const struct oj_cuda_layer *layer, int equal,
    double least, double reach, struct oj_cuda_close_side *out,
    struct oj_error *err);

void oj_cuda_close_side_drop(struct oj_cuda_device *device,
                             struct oj_cuda_close_side *side);

int64_t oj_cuda_close_side_bytes(const struct oj_cuda_close_side *side);

/** order [points->n]: the points by the place of their cell. Empty, which
 *  stands for the order of the points, where they are few. */
OJ_MUST_USE oj_status oj_cuda_close_order(struct oj_cuda_device *device,
                                          cudaStream_t stream,
                                          const struct oj_close_side *side,
                                          const struct oj_cuda_points *points,
                                          struct oj_cuda_array<int32_t> *order,
                                          struct oj_error *err);

/** Bytes a point while they are put in order. */
#define OJ_CUDA_CLOSE_ORDER_BYTES 17

#endif
