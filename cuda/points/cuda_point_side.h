/** The join side for pairs of points (oj_point_pairs.h) on a device: its
 * points, or the boxes of its features, under a packed tree.
 */
#ifndef CUDA_POINT_SIDE_H
#define CUDA_POINT_SIDE_H

#include "../tree/cuda_tree.h"
#include "oj_point_pairs.h"

/** Owner; zeroed memory is a valid empty one. */
struct oj_cuda_point_side
{
    struct oj_point_side side; /**< by value to kernels */
    struct oj_cuda_tree tree;
    struct oj_cuda_array<struct oj_point_place> place; /**< [entries] */
    struct oj_cuda_array<struct oj_tree_box> box;      /**< [entries] */
    struct oj_cuda_array<int32_t> rank;                /**< [entries] */

    /** [features] by rank, for the distances of pairs; else empty. */
    struct oj_cuda_array<struct oj_point_place> place_of;
};

/** Builds what such a test asks of layer; without boxes it has only points.
 *  least: of distances. out is empty, and after an error it can be dropped. */
OJ_MUST_USE oj_status oj_cuda_point_side_build(
    struct oj_cuda_device *device, const struct oj_cuda_layer *layer,
    enum oj_point_test test, double least, struct oj_cuda_point_side *out,
    struct oj_error *err);

void oj_cuda_point_side_drop(struct oj_cuda_device *device,
                             struct oj_cuda_point_side *side);

int64_t oj_cuda_point_side_bytes(const struct oj_cuda_point_side *side);

#endif
