/** Builds packed trees of boxes in device memory (oj_tree.h), and the join side
 *  for distance searches (oj_tree_distance_search.h). The arrays belong to the
 *  work that builds them. */
#ifndef CUDA_TREE_H
#define CUDA_TREE_H

#include "../index/cuda_family.h"
#include "oj_tree_distance_search.h"

/** A packed tree and the order of its entries. Owns nothing. */
struct oj_cuda_tree
{
    struct oj_device_tree tree; /**< passed to kernels by value */
    int64_t n_nodes;
    int32_t *order; /**< [tree.n] number of the box of each entry */
};

/** Builds the tree of n < 2^31 boxes. Finite boxes must lie in the extent of
 *  layer. */
OJ_MUST_USE oj_status oj_cuda_tree_build(struct oj_cuda_work *work,
                                         const struct oj_cuda_layer *layer,
                                         int64_t n, const struct oj_box *box,
                                         struct oj_cuda_tree *out);

/** Builds the tree of all segments of layer; *keep owns its arrays, but *work
 *  owns out->order. */
OJ_MUST_USE oj_status oj_cuda_tree_of_segments(
    struct oj_cuda_work *keep, struct oj_cuda_work *work,
    const struct oj_cuda_layer *layer, struct oj_cuda_tree *out);

/** Makes *order [points->n], the points in Morton order within the tree's
 *  extent, so that neighbouring threads of a kernel take similar paths through
 *  the tree. If points are few or memory is missing, *order is NULL, which
 *  means the given order. Costs about 0.2 ns per point on a large device. */
OJ_MUST_USE oj_status oj_cuda_tree_order_points(
    struct oj_cuda_work *work, const struct oj_device_tree *tree,
    const struct oj_cuda_points *points, int32_t **order);

/** Bytes per point that oj_cuda_tree_order_points() needs. */
#define OJ_CUDA_POINT_ORDER_BYTES 17

/** Makes the rings of layer, which must outlive them, with boxes of chains of
 *  segments, but without the tree of polygons. */
OJ_MUST_USE oj_status oj_cuda_tree_rings_make(struct oj_cuda_work *work,
                                              const struct oj_cuda_layer *layer,
                                              struct oj_tree_rings *out);

/** Builds the join side for distances to layer, which must outlive it. If
 *  to_interior is 1, the distance to a polygon is 0 inside it; if
 *  finds_several is 1, searches find several features per point. *out must be
 *  zeroed. */
OJ_MUST_USE oj_status oj_cuda_tree_side_build(struct oj_cuda_work *work,
                                              const struct oj_cuda_layer *layer,
                                              int to_interior,
                                              int finds_several,
                                              struct oj_tree_side *out);

#endif
