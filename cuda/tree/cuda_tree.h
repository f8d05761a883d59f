/** A packed tree of boxes on a device (oj_tree.h), and the join side under such
 *  trees (oj_tree_join.h). */
#ifndef CUDA_TREE_H
#define CUDA_TREE_H

#include "../index/cuda_family.h"
#include "oj_tree_join.h"

/** Owner; zeroed memory is a valid empty one. */
struct oj_cuda_tree
{
    struct oj_device_tree tree;
    struct oj_cuda_array<struct oj_device_tree_node> node;
    struct oj_cuda_array<int32_t> order; /**< [entries] box of each */
};

/** The tree of the boxes on device->stream; extent is around all that is
 *  finite of them.  Below 2^31 boxes. out is empty, and after an error it can
 *  be dropped. */
OJ_MUST_USE oj_status
oj_cuda_tree_build(struct oj_cuda_device *device,
                   const struct oj_cuda_array<struct oj_tree_box> *box,
                   const struct oj_tree_box *extent, struct oj_cuda_tree *out,
                   struct oj_error *err);

void oj_cuda_tree_drop(struct oj_cuda_device *device,
                       struct oj_cuda_tree *tree);

/** order [points->n]: the points in Morton order of their places in the tree's
 *  extent, for kernels whose neighbouring threads should walk the same way.
 *  Empty, which stands for the order of the points, where they are few or
 *  memory is short. Costs about 0.2 ns a point on a large device. */
OJ_MUST_USE oj_status oj_cuda_point_order(struct oj_cuda_device *device,
                                          cudaStream_t stream,
                                          const struct oj_device_tree *tree,
                                          const struct oj_cuda_points *points,
                                          struct oj_cuda_array<int32_t> *order,
                                          struct oj_error *err);

/** Bytes a point while they are put in order. */
#define OJ_CUDA_POINT_ORDER_BYTES 17

/** The rings of a layer with boxes around chains of their segments; owner;
 *  zeroed memory is a valid empty one. */
struct oj_cuda_rings
{
    struct oj_tree_rings rings; /**< by value to kernels; without a tree */
    struct oj_cuda_array<struct oj_tree_box> chain[OJ_TREE_CHAIN_LEVELS];
};

/** Measures the rings of layer, which outlives them, on stream; out is empty,
 *  and after an error it can be dropped. */
OJ_MUST_USE oj_status oj_cuda_rings_make(struct oj_cuda_device *device,
                                         cudaStream_t stream,
                                         const struct oj_cuda_layer *layer,
                                         struct oj_cuda_rings *out,
                                         struct oj_error *err);
void oj_cuda_rings_drop(struct oj_cuda_device *device, cudaStream_t stream,
                        struct oj_cuda_rings *rings);
int64_t oj_cuda_rings_bytes(const struct oj_cuda_rings *rings);

/** The join side; owner; zeroed memory is a valid empty one. */
struct oj_cuda_tree_side
{
    struct oj_tree_side side; /**< by value to kernels */
    struct oj_cuda_tree segments, polygons;
    struct oj_cuda_array<struct oj_cuda_segment> segment; /**< [entries] */
    struct oj_cuda_array<int32_t> rank;                   /**< [entries] */
    struct oj_cuda_array<int32_t> only_rank; /**< [nodes], with several */
    struct oj_cuda_rings rings;              /**< with to_interior */
};

/** Builds what distances to layer need, which outlives it. to_interior: points
 *  in polygons are at distance 0; several: features are asked for, for each
 *  point. out is empty, and after an error it can be dropped. */
OJ_MUST_USE oj_status oj_cuda_tree_side_build(struct oj_cuda_device *device,
                                              const struct oj_cuda_layer *layer,
                                              int to_interior, int several,
                                              struct oj_cuda_tree_side *out,
                                              struct oj_error *err);

void oj_cuda_tree_side_drop(struct oj_cuda_device *device,
                            struct oj_cuda_tree_side *side);

int64_t oj_cuda_tree_side_bytes(const struct oj_cuda_tree_side *side);

#endif
