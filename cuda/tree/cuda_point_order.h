/** Points in Morton order, for kernels whose neighbouring threads should walk
 *  the same way. */
#ifndef CUDA_POINT_ORDER_H
#define CUDA_POINT_ORDER_H

#include "../index/cuda_family.h"
#include "oj_tree.h"

/** order [points->n]: the points by their place in the tree's extent, on
 *  stream. Empty, which stands for the order of the points, where they are few
 *  or memory is short. Costs about 0.2 ns a point on a large device. */
OJ_MUST_USE oj_status oj_cuda_point_order(struct oj_cuda_device *device,
                                          cudaStream_t stream,
                                          const struct oj_device_tree *tree,
                                          const struct oj_cuda_points *points,
                                          struct oj_cuda_array<int32_t> *order,
                                          struct oj_error *err);

/** Bytes a point while they are put in order. */
#define OJ_CUDA_POINT_ORDER_BYTES 17

#endif
