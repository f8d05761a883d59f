/* The nearest segment of points that are far from all of them.  The threads of
 * a warp have points that lie close together, and go through the packed tree of
 * the join side's segments as one: a box is looked into when one of them wants
 * it, the nearest first.  Far away they all want the same few, and so do the
 * next points: these begin with the segments that the last ones found.
 *
 * Pays for itself by the unbounded nearest boundary of 170 million points, a
 * row of BENCHMARKS.md: ten million of them are far away.
 */
#include "../points/cuda_point_pair_kernels.cuh"
#include "../points/oj_nearest_point_walk.h"
#include "../tree/cuda_tree.h"

enum
{
    BLOCK = 128,
    LANES = 32,
    MOST_GROUPS = 8, /* of points that a warp has one after another */
    ENOUGH_WARPS = 2048 /* keep a large device busy */
};

#define FULL_WARP 0xFFFFFFFFu

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

/* --- going through the tree ----------------------------------------------- */

/* What the threads of a warp share. */
struct segment_warp_memory
{
    struct oj_device_tree_node boxes;
    uint32_t stack[OJ_TREE_STACK]; /* as in struct oj_tree_walk */
    float stack_apart[OJ_TREE_STACK];
};

static_assert(sizeof(struct oj_device_tree_node) == LANES * sizeof(float),
              "a thread for each number of a node");

/* How a batch is dealt to warps. Few points are far from each other: a warp
 * that has 32 of them wants nearly all boxes, since one of them wants each. So
 * a warp gets one point where points are few, and 32 and several times 32 only
 * where there are warps enough. */
struct warp_shares
{
    int n_points; /* of a group, 1 .. LANES */
    int n_groups; /* of a warp */
};

static struct warp_shares choose_warp_shares(int64_t n)
{
    struct warp_shares shares = {1, 1};
    while (shares.n_points < LANES &&
           n / (2 * shares.n_points) >= ENOUGH_WARPS)
        shares.n_points *= 2;
    while (shares.n_groups < MOST_GROUPS &&
           n / (2 * shares.n_groups * LANES) >= ENOUGH_WARPS)
        shares.n_groups *= 2;
    return shares;
}

/* A thread's point, and where the points of its warp are. */
struct seeker
{
    struct oj_near_other own;
    int64_t entry;       /* of the nearest so far, or -1 */
    double x, y, radius; /* a circle around the points of the warp */
};

static __device__ __forceinline__ void
keep_segment_if_nearer(struct seeker *s, const struct oj_tree_side &side,
                       int64_t entry)
{
    struct oj_near_other *o = &s->own;
    double distance = oj_tree_entry_distance(&side, entry, o->px, o->py);
    int32_t rank = side.rank[entry];
    if (distance > o->most || !(distance < INFINITY) ||
        distance > o->distance || (distance == o->distance && rank >= o->rank))
        return;
    o->distance = distance;
    o->rank = rank;
    s->entry = entry;
    oj_near_other_bound(o, distance);
}

/* The circle, around the first point that is one. */
static __device__ void find_circle_of_warp(struct seeker *s)
{
    struct oj_near_other *o = &s->own;
    int is_point = o->reach2 >= 0.0;
    uint32_t points = __ballot_sync(FULL_WARP, is_point);
    int first = points != 0 ? __ffs((int)points) - 1 : 0;
    double apart;
    s->x = __shfl_sync(FULL_WARP, o->x, first);
    s->y = __shfl_sync(FULL_WARP, o->y, first);
    apart = is_point ? fabs(o->x - s->x) + fabs(o->y - s->y) : 0.0;
    for (int step = LANES / 2; step > 0; step /= 2)
        apart = fmax(apart, __shfl_xor_sync(FULL_WARP, apart, step));
    s->radius = apart;
}

/* How far box c is from the middle of the circle; infinite: there is none. */
static __device__ __forceinline__ float
box_distance_to_middle(const struct seeker *s,
                       const struct oj_device_tree_node &b, int c)
{
    double dx = fmax(fmax((double)b.x0[c] - s->x, s->x - (double)b.x1[c]), 0.0);
    double dy = fmax(fmax((double)b.y0[c] - s->y, s->y - (double)b.y1[c]), 0.0);
    return sqrtf((float)(dx * dx + dy * dy));
}

/* Whether somebody may want what is in a box so far from the middle. */
static __device__ __forceinline__ int
is_box_in_reach_of_any_lane(const struct seeker *s, float apart)
{
    /* floats, their root and their squares are off by less than 2^-20 */
    double least = (double)apart * (1.0 - 1e-6) - s->radius;
    return __any_sync(FULL_WARP,
                      least <= 0.0 || least * least <= s->own.reach2);
}

/* Puts the children that are wanted on the stack, the nearest on top. */
static __device__ __forceinline__ int
push_children(struct segment_warp_memory &group, const struct seeker *s,
              uint32_t wanted, uint32_t first, int depth)
{
    int lane = (int)(threadIdx.x % LANES), below = depth;
    float apart = box_distance_to_middle(s, group.boxes, lane % OJ_TREE_FANOUT);
    for (int c = 0; c < OJ_TREE_FANOUT; c++)
    {
        float its = __shfl_sync(FULL_WARP, apart, c);
        if ((wanted >> c & 1u) && (its > apart || (its == apart && c > lane)))
            below++;
    }
    if (lane < OJ_TREE_FANOUT && (wanted >> lane & 1u))
    {
        group.stack[below] = first + (uint32_t)lane;
        group.stack_apart[below] = apart;
    }
    return depth + __popc(wanted);
}

/* Looks into a node: measures its segments, or puts what is wanted on the
 * stack. */
static __device__ __forceinline__ int
measure_leaf_or_push_children(const struct oj_tree_side &side,
                              struct segment_warp_memory &group,
                              struct seeker *s, uint32_t at, int depth)
{
    const struct oj_device_tree *tree = &side.segments;
    const struct oj_device_tree_node &b = group.boxes;
    int level = (int)(at >> OJ_TREE_INDEX_BITS);
    uint32_t i = at & ((1u << OJ_TREE_INDEX_BITS) - 1u), wanted = 0;
    const struct oj_device_tree_node *node =
        tree->node + tree->level_first[level] + i;
    uint32_t first = i * OJ_TREE_FANOUT, lane = threadIdx.x % LANES;
    int64_t below = level > 0 ? (int64_t)tree->level_n[level - 1] : tree->n;
    int n =
        below - first < OJ_TREE_FANOUT ? (int)(below - first) : OJ_TREE_FANOUT;
    ((float *)&group.boxes)[lane] = ((const float *)node)[lane];
    __syncwarp();
    for (int c = 0; c < n; c++)
    {
        int wants = oj_near_other_box(&s->own, b.x0[c], b.y0[c], b.x1[c],
                                      b.y1[c]) <= s->own.reach2;
        if (level == 0 && wants)
            keep_segment_if_nearer(s, side, (int64_t)first + c);
        else if (level > 0 && __any_sync(FULL_WARP, wants))
            wanted |= 1u << c;
    }
    if (level > 0)
        depth = push_children(
            group, s, wanted,
            (uint32_t)(level - 1) << OJ_TREE_INDEX_BITS | first, depth);
    __syncwarp();
    return depth;
}

/* Begins with point i; nobody's where i is -1. */
static __device__ void start_search_of_point(struct seeker *s,
                                             const struct oj_tree_side &side,
                                             const struct point_batch &batch,
                                             int64_t i)
{
    const struct oj_near_others others = {side.segments, NULL, NULL, NULL};
    int64_t last = s->entry;
    oj_near_other_start(&s->own, &others, i, i >= 0 ? batch.x[i] : NAN,
                        i >= 0 ? batch.y[i] : NAN, 0.0, batch.most);
    s->entry = -1;
    if (last >= 0 && s->own.reach2 >= 0.0)
        keep_segment_if_nearer(s, side, last);
    find_circle_of_warp(s);
}

static __global__ void __launch_bounds__(BLOCK)
    find_nearest(const __grid_constant__ struct oj_tree_side side,
                 const __grid_constant__ struct point_batch batch,
                 const struct warp_shares shares, int32_t *row, double *measure)
{
    __shared__ struct segment_warp_memory groups[BLOCK / LANES];
    struct segment_warp_memory &group = groups[threadIdx.x / LANES];
    int64_t warp = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / LANES;
    int64_t first = warp * shares.n_groups * shares.n_points;
    int lane = (int)(threadIdx.x % LANES);
    struct seeker s;
    s.entry = -1;
    for (int g = 0; g < shares.n_groups && first < batch.n; g++)
    {
        int64_t t = first + lane, i;
        int depth = side.segments.n > 0 ? 1 : 0;
        i = lane < shares.n_points && t < batch.n ? point_of_thread(batch, t)
                                                  : -1;
        start_search_of_point(&s, side, batch, i);
        if (lane == 0)
        {
            group.stack[0] = (uint32_t)(side.segments.n_levels - 1)
                             << OJ_TREE_INDEX_BITS;
            group.stack_apart[0] = 0.0f;
        }
        __syncwarp();
        while (depth > 0)
        {
            uint32_t at = group.stack[--depth];
            float apart = group.stack_apart[depth];
            __syncwarp();
            if (is_box_in_reach_of_any_lane(&s, apart))
                depth =
                    measure_leaf_or_push_children(side, group, &s, at, depth);
        }
        if (i >= 0)
            write_single_answer(batch, i, s.own.rank, s.own.distance, row,
                                measure);
        first += shares.n_points;
    }
}

static oj_status find_nearest_segment_of_points(
    const struct oj_cuda_index *index, struct oj_cuda_work *work,
    const struct oj_cuda_points *points, int32_t *d_row, double *d_measure)
{
    const struct oj_tree_side *side =
        &((const struct near_segments_index *)index)->side;
    const struct warp_shares shares = choose_warp_shares(points->n);
    int32_t *order;
    if (points->n == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_point_order(work, &side->segments, points, &order));
    return work->run_blocks<BLOCK>(
        oj_blocks(points->n,
                  BLOCK / LANES * shares.n_points * shares.n_groups),
        find_nearest, *side, make_point_join_batch(index, points, order),
        shares, d_row, d_measure);
}

const struct oj_cuda_family oj_cuda_near_segments = {
    "nearest segments of points far away, by a packed tree",
    NULL, /* nobody asks it but cuda_nearest.cu, about joins that that takes */
    sizeof(struct near_segments_index),
    build_segments_side,
    0,
    NULL,
    batch_bytes,
    find_nearest_segment_of_points,
};
