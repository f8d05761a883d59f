/* The nearest segment of points far from all segments. The points of a warp lie
 * close together, and its threads walk the packed tree of segments together: a
 * box is visited if one of them needs it, nearer boxes first. Far away, all
 * threads need nearly the same boxes, and so do the next points: their search
 * begins with the segments found last.
 *
 * This pays in the nearest boundary of 170 million points without maximum
 * distance (a row of BENCHMARKS.md), ten million of which are far away. */
#include "../../foundations/tree/cuda_tree.h"
#include "../../foundations/tree/cuda_warp_tree_walk.cuh"
#include "../points/cuda_point_pair_kernels.cuh"
#include "../points/oj_nearest_point_walk.h"

enum
{
    BLOCK = 128,
    LANES = OJ_WARP_LANES,
    MOST_GROUPS = 8
};

struct near_segments_index : oj_cuda_index
{
    struct oj_tree_side side;
};

static oj_status build_segments_side(struct oj_cuda_index *index,
                                     struct oj_cuda_work *work)
{
    return oj_cuda_tree_side_build(
        work, index->layer, 0, 0, &((struct near_segments_index *)index)->side);
}

static int64_t batch_bytes(const struct oj_cuda_index *wrapped, int64_t n)
{
    (void)wrapped;
    return n * OJ_CUDA_POINT_ORDER_BYTES;
}

/* --- walk through the tree ------------------------------------------------ */

/* The search of one thread for its point (a Lane, see
 * cuda_warp_tree_walk.cuh). */
struct seeker
{
    const struct oj_tree_side *side;
    struct oj_near_other own;
    int64_t entry; /* nearest segment so far, or -1 */

    __device__ __forceinline__ double x() const
    {
        return own.x;
    }

    __device__ __forceinline__ double y() const
    {
        return own.y;
    }

    __device__ __forceinline__ double reach2() const
    {
        return own.reach2;
    }

    __device__ __forceinline__ int wants_node(uint32_t, double) const
    {
        return 1;
    }

    __device__ __forceinline__ void consider_entry(int64_t new_entry)
    {
        struct oj_near_other *o = &own;
        double distance = oj_tree_entry_distance(side, new_entry, o->px, o->py);
        int32_t rank = side->rank[new_entry];
        if (distance > o->most || !(distance < INFINITY) ||
            distance > o->distance ||
            (distance == o->distance && rank >= o->rank))
            return;
        o->distance = distance;
        o->rank = rank;
        entry = new_entry;
        oj_nearest_point_set_bound(o, distance);
    }
};

/* Starts the search for point i, with the segment that this thread found last
 * as the first candidate. If i is -1, this thread has no point. */
static __device__ void start_search_of_point(struct seeker *s,
                                             const struct point_batch &batch,
                                             int64_t i)
{
    const struct oj_near_others others = {s->side->segments, NULL, NULL, NULL};
    int64_t last = s->entry;
    oj_nearest_point_start(&s->own, &others, i, i >= 0 ? batch.x[i] : NAN,
                           i >= 0 ? batch.y[i] : NAN, 0.0, batch.most);
    s->entry = -1;
    if (last >= 0 && s->own.reach2 >= 0.0)
        s->consider_entry(last);
}

static __global__ void __launch_bounds__(BLOCK)
    find_nearest(const __grid_constant__ struct oj_tree_side side,
                 const __grid_constant__ struct point_batch batch,
                 const struct oj_warp_shares shares, int32_t *row,
                 double *measure)
{
    __shared__ struct oj_warp_walk_memory walks[BLOCK / LANES];
    struct seeker s;
    s.side = &side;
    s.entry = -1;
    for (int g = 0; g < shares.n_groups; g++)
    {
        int64_t t = oj_warp_shares_point_of_thread(&shares, batch.n, g);
        int64_t i = t >= 0 ? point_of_thread(batch, t) : -1;
        start_search_of_point(&s, batch, i);
        walk_tree_by_warp(side.segments, &walks[threadIdx.x / LANES], &s);
        if (i >= 0)
            write_single_answer(batch, i, s.own.rank, s.own.distance, row,
                                measure);
    }
}

static oj_status find_nearest_segment_of_points(
    const struct oj_cuda_index *index, struct oj_cuda_work *work,
    const struct oj_cuda_points *points, int32_t *d_row, double *d_measure)
{
    const struct oj_tree_side *side =
        &((const struct near_segments_index *)index)->side;
    const struct oj_warp_shares shares =
        oj_warp_shares_choose(points->n, MOST_GROUPS);
    int32_t *order;
    if (points->n == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_tree_order_points(work, &side->segments, points, &order));
    return work->launch_blocks<BLOCK>(
        oj_warp_shares_blocks(&shares, points->n, BLOCK), find_nearest, *side,
        make_point_join_batch(index, points, order), shares, d_row, d_measure);
}

const struct oj_cuda_family oj_cuda_near_segments = {
    "nearest segments of points far away, by a packed tree",
    /* supports() is NULL, because only cuda_nearest.cu uses this family, for
     * joins that it supports itself. */
    NULL,
    sizeof(struct near_segments_index),
    build_segments_side,
    0,
    NULL,
    batch_bytes,
    find_nearest_segment_of_points,
};
