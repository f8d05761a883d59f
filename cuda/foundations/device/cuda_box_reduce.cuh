/** Bounding boxes of the lanes of a warp, and of the features of a layer. */
#ifndef CUDA_BOX_REDUCE_CUH
#define CUDA_BOX_REDUCE_CUH

#include "cuda_stream_work.cuh"

/** Replaces the box of each lane by the common bounding box of all lanes. */
static __device__ __forceinline__ void oj_cuda_box_of_warp(struct oj_box *box)
{
    for (int step = 16; step > 0; step /= 2)
    {
        struct oj_box other;
        other.x0 = __shfl_xor_sync(0xffffffffu, box->x0, step);
        other.y0 = __shfl_xor_sync(0xffffffffu, box->y0, step);
        other.x1 = __shfl_xor_sync(0xffffffffu, box->x1, step);
        other.y1 = __shfl_xor_sync(0xffffffffu, box->y1, step);
        oj_box_add_box(box, &other);
    }
}

/** Returns the number of the first segment of the feature with rank f, or the
 *  number of all segments if f == n_features. The segments of a feature are
 *  consecutive. */
static __device__ __forceinline__ int64_t
oj_cuda_first_segment_of_feature(const struct oj_cuda_layer &layer, int64_t f)
{
    return layer.short_points
               ? f
               : layer.segment_offset
                     .data[layer.ring_offset.data[layer.part_offset.data[f]]];
}

/** Writes the bounding box of each feature to box [n_features], by rank. A
 *  feature without parts gets the empty box. */
OJ_MUST_USE oj_status oj_cuda_layer_boxes(struct oj_cuda_work *work,
                                          const struct oj_cuda_layer *layer,
                                          struct oj_box *box);

#endif
