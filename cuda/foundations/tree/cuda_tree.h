/** Packed trees of boxes on a device (oj_tree.h), and the join side under such
 *  trees (oj_tree_distance_search.h). All arrays are those of the work that
 * they are built with. */
#ifndef CUDA_TREE_H
#define CUDA_TREE_H

#include "../index/cuda_family.h"
#include "oj_tree_distance_search.h"

/** Owns nothing. */
struct oj_cuda_tree
{
    struct oj_device_tree tree; /**< by value to kernels */
    int64_t n_nodes;
    int32_t *order; /**< [entries] box of each */
};

/** The tree of n boxes, below 2^31; all that is finite of them is in the extent
 *  of layer. */
OJ_MUST_USE oj_status oj_cuda_tree_build(struct oj_cuda_work *work,
                                         const struct oj_cuda_layer *layer,
                                         int64_t n, const struct oj_box *box,
                                         struct oj_cuda_tree *out);

/** That of all segments of layer; its order is work's. */
OJ_MUST_USE oj_status oj_cuda_tree_of_segments(
    struct oj_cuda_work *keep, struct oj_cuda_work *work,
    const struct oj_cuda_layer *layer, struct oj_cuda_tree *out);

/** order [points->n]: the points in Morton order of their places in the tree's
 *  extent, for kernels whose neighbouring threads should walk the same way.
 *  NULL, which stands for the order of the points, where they are few or
 *  memory is short. Costs about 0.2 ns a point on a large device. */
OJ_MUST_USE oj_status oj_cuda_point_order(struct oj_cuda_work *work,
                                          const struct oj_device_tree *tree,
                                          const struct oj_cuda_points *points,
                                          int32_t **order);

/** Bytes a point while they are put in order. */
#define OJ_CUDA_POINT_ORDER_BYTES 17

/** The rings of layer, which outlives them, with boxes around chains of their
 *  segments; without a tree. */
OJ_MUST_USE oj_status oj_cuda_tree_rings_make(struct oj_cuda_work *work,
                                              const struct oj_cuda_layer *layer,
                                              struct oj_tree_rings *out);

/** What distances to layer need, which outlives it. to_interior: points in
 *  polygons are at distance 0; several: features are asked for, for each
 *  point. *out is zeroed memory. */
OJ_MUST_USE oj_status oj_cuda_tree_side_build(struct oj_cuda_work *work,
                                              const struct oj_cuda_layer *layer,
                                              int to_interior, int several,
                                              struct oj_tree_side *out);

#endif
