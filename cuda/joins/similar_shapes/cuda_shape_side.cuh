/** The features of one side in device memory, with bounding boxes of runs of
 *  their vertices or segments.
 *
 *  feature   v0 ...                          v99
 *  block     [ 0 .. 32 ) [ 32 .. 64 ) ...            of vertices, or segments
 *  box       |           |                           widened
 */
#ifndef CUDA_SHAPE_SIDE_CUH
#define CUDA_SHAPE_SIDE_CUH

#include "../../../algs/foundations/kernels/oj_box.h"
#include "../../foundations/index/cuda_row_shares.cuh"

#define OJ_SHAPE_WARP 32
#define OJ_SHAPE_SIDES 9 /* numbers per feature in oj_cuda_shape_side.sides */

/** Consecutive vertices or segments. Segments 1, 3, ... of a block are measured
 *  from their end to their start. */
struct oj_cuda_shape_block
{
    int64_t first; /**< first vertex */
    /** Number of vertices or segments; 0: the block is a segment that is a
     *  point. */
    int32_t n;
};

/** Features of one side. Owns nothing. */
struct oj_cuda_shape_side
{
    int64_t n;
    const double *x, *y;
    const int64_t *vertex;       /**< [n] first vertex of each feature */
    const int32_t *n_vertices;   /**< [n] */
    const int64_t *block_offset; /**< [n + 1] into block and box */
    const struct oj_cuda_shape_block *block;
    const struct oj_box *box;
    /** [9 n] per feature: its box, its first and last vertex, and the maximum
     *  error of these numbers. */
    const double *sides;
};

/** Features of a side, and the columns on which its pairs depend. Owns
 *  nothing. */
struct oj_cuda_shapes
{
    struct oj_cuda_shape_side side;
    int64_t most_vertices; /**< maximum vertices of a feature */
    int64_t all_vertices;
    struct oj_cuda_columns columns;
    const double *max_distance;
};

/** Index of the join side. */
struct oj_cuda_shapes_index
{
    struct oj_cuda_index base;
    struct oj_cuda_shapes of;
};

OJ_MUST_USE oj_status oj_cuda_shapes_index_build(struct oj_cuda_index *index,
                                                 struct oj_cuda_work *work);

static inline int oj_distance_uses_segments(enum oj_distance_kind kind)
{
    return kind != OJ_DISTANCE_HAUSDORFF_POINTS && kind != OJ_DISTANCE_FRECHET;
}

/** Prepares features first .. first + n - 1; *work owns the arrays. Waits for
 *  the stream. */
OJ_MUST_USE oj_status oj_cuda_shapes_make(struct oj_cuda_work *work,
                                          const struct oj_flat *flat,
                                          int64_t first, int64_t n,
                                          const struct oj_relation *relation,
                                          struct oj_cuda_shapes *out);

static __device__ __forceinline__ double oj_warp_min(double v)
{
    for (int step = OJ_SHAPE_WARP / 2; step > 0; step /= 2)
    {
        double other = __shfl_xor_sync(~0u, v, step);
        v = other < v ? other : v;
    }
    return v;
}

static __device__ __forceinline__ double oj_warp_max(double v)
{
    return -oj_warp_min(-v);
}

static __device__ __forceinline__ double
oj_vertex_distance2(double px, double py, double x, double y)
{
    double dx = px - x, dy = py - y;
    return dx * dx + dy * dy;
}

/* Returns a lower bound of the squared distance between any point of box a and
 * any point of the content of box b. Box b must already be enlarged by the
 * rounding error. */
static __device__ __forceinline__ double
oj_shape_box_distance2(const struct oj_box &a, const struct oj_box &b)
{
    double dx = oj_larger(oj_larger(a.x0 - b.x1, b.x0 - a.x1), 0.0);
    double dy = oj_larger(oj_larger(a.y0 - b.y1, b.y0 - a.y1), 0.0);
    return dx * dx + dy * dy;
}

#endif
