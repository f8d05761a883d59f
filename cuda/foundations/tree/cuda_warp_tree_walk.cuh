/** A walk through a packed tree (oj_tree.h) by all threads of a warp together,
 *  whose points lie close to each other. A node is visited if one of the
 *  threads needs it, nearer nodes first, and its entries are offered to all
 *  threads. So boxes are read once for 32 points, and no thread waits for the
 *  path of another. If points are few, they lie far apart, and a warp with 32
 *  of them would visit most of the tree; then a warp gets fewer points, down to
 *  one.
 *
 *  A Lane is the type by which a thread describes its point:
 *    x(), y()                coordinates, less the tree's origin
 *    reach2()                boxes with a larger squared distance are ignored;
 *                            negative: the thread has no point
 *    wants_node(at, d2)      returns 0 if nothing below node `at`, with squared
 *                            distance d2, matters
 *    consider_entry(entry)       receives an entry whose box is in reach
 *  Source: ours.
 */
#ifndef CUDA_WARP_TREE_WALK_CUH
#define CUDA_WARP_TREE_WALK_CUH

#include "../device/oj_cuda.h"
#include "oj_tree.h"

#define OJ_WARP_LANES 32
#define OJ_FULL_WARP 0xFFFFFFFFu

/** How points are distributed to warps. */
struct oj_warp_shares
{
    int n_points; /**< points of a group, 1 .. OJ_WARP_LANES */
    int n_groups; /**< groups that a warp takes in turn */
};

/** Chooses the distribution of n points: groups are as large as possible while
 *  there are enough warps to keep a large device busy. A family whose searches
 *  start from the results of the previous group of a warp passes most_groups >
 *  1. */
static inline struct oj_warp_shares oj_warp_shares_choose(int64_t n,
                                                          int most_groups)
{
    const int64_t enough_warps = 2048;
    struct oj_warp_shares shares = {1, 1};
    while (shares.n_points < OJ_WARP_LANES &&
           n / (2 * shares.n_points) >= enough_warps)
        shares.n_points *= 2;
    while (shares.n_groups < most_groups &&
           n / (2 * shares.n_groups * OJ_WARP_LANES) >= enough_warps)
        shares.n_groups *= 2;
    return shares;
}

static inline unsigned
oj_warp_shares_blocks(const struct oj_warp_shares *shares, int64_t n, int block)
{
    return oj_cuda_count_blocks(n, (int64_t)block / OJ_WARP_LANES *
                                       shares->n_points * shares->n_groups);
}

/** Returns the number of this thread's point in group g of its warp, or -1. */
static __device__ __forceinline__ int64_t oj_warp_shares_point_of_thread(
    const struct oj_warp_shares *shares, int64_t n, int g)
{
    int64_t warp =
        ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / OJ_WARP_LANES;
    int lane = (int)(threadIdx.x % OJ_WARP_LANES);
    int64_t t = (warp * shares->n_groups + g) * shares->n_points + lane;
    return lane < shares->n_points && t < n ? t : -1;
}

/** Shared memory of a warp. */
struct oj_warp_walk_memory
{
    struct oj_device_tree_node boxes;
    /** nodes to visit, as in struct oj_tree_walk (oj_tree.h) */
    uint32_t stack[OJ_TREE_STACK];
    float stack_apart[OJ_TREE_STACK];
};

static_assert(sizeof(struct oj_device_tree_node) ==
                  OJ_WARP_LANES * sizeof(float),
              "a thread for each number of a node");

/* A circle that contains all points of a warp. */
struct oj_warp_circle
{
    double x, y, radius;
};

/* Returns a circle around the points of all lanes whose centre is the point of
 * the first lane that has one. */
template <typename Lane>
static __device__ struct oj_warp_circle find_circle_of_warp(const Lane *lane)
{
    struct oj_warp_circle circle;
    int is_point = lane->reach2() >= 0.0;
    uint32_t points = __ballot_sync(OJ_FULL_WARP, is_point);
    int first = points != 0 ? __ffs((int)points) - 1 : 0;
    double apart;
    circle.x = __shfl_sync(OJ_FULL_WARP, lane->x(), first);
    circle.y = __shfl_sync(OJ_FULL_WARP, lane->y(), first);
    apart = is_point ? fabs(lane->x() - circle.x) + fabs(lane->y() - circle.y)
                     : 0.0;
    for (int step = OJ_WARP_LANES / 2; step > 0; step /= 2)
        apart = fmax(apart, __shfl_xor_sync(OJ_FULL_WARP, apart, step));
    circle.radius = apart;
    return circle;
}

/* Returns the distance of box c from the centre of the circle; infinite if the
 * node has no child c. */
static __device__ __forceinline__ float
box_distance_to_middle(const struct oj_warp_circle *circle,
                       const struct oj_device_tree_node &b, int c)
{
    double dx = fmax(
        fmax((double)b.x0[c] - circle->x, circle->x - (double)b.x1[c]), 0.0);
    double dy = fmax(
        fmax((double)b.y0[c] - circle->y, circle->y - (double)b.y1[c]), 0.0);
    return sqrtf((float)(dx * dx + dy * dy));
}

/* Returns 1 if a thread of the warp may need the content of a box at this
 * distance from the centre. */
static __device__ __forceinline__ int
is_box_in_reach_of_any_lane(const struct oj_warp_circle *circle, double reach2,
                            float apart)
{
    /* relative errors of single precision here are below 2^-20 */
    double least = (double)apart * (1.0 - 1e-6) - circle->radius;
    return __any_sync(OJ_FULL_WARP, reach2 >= 0.0 && (least <= 0.0 ||
                                                      least * least <= reach2));
}

/* Pushes the children whose bit is set in `wanted`, so that they are popped by
 * ascending distance, equally near ones in the order of the tree. Returns the
 * new depth of the stack. */
static __device__ __forceinline__ int
push_children(struct oj_warp_walk_memory *memory,
              const struct oj_warp_circle *circle, uint32_t wanted,
              uint32_t first, int depth)
{
    int lane = (int)(threadIdx.x % OJ_WARP_LANES), below = depth;
    float apart =
        box_distance_to_middle(circle, memory->boxes, lane % OJ_TREE_FANOUT);
    for (int c = 0; c < OJ_TREE_FANOUT; c++)
    {
        float apart_of_child = __shfl_sync(OJ_FULL_WARP, apart, c);
        if ((wanted >> c & 1u) &&
            (apart_of_child > apart || (apart_of_child == apart && c > lane)))
            below++;
    }
    if (lane < OJ_TREE_FANOUT && (wanted >> lane & 1u))
    {
        memory->stack[below] = first + (uint32_t)lane;
        memory->stack_apart[below] = apart;
    }
    return depth + __popc(wanted);
}

/* Returns the squared distance of box c from the thread's point. */
template <typename Lane>
static __device__ __forceinline__ double
box_distance2(const Lane *lane, const struct oj_device_tree_node &b, int c)
{
    double dx = oj_tree_distance_to_interval(lane->x(), b.x0[c], b.x1[c]);
    double dy = oj_tree_distance_to_interval(lane->y(), b.y0[c], b.y1[c]);
    return dx * dx + dy * dy;
}

/* Visits a node: offers its entries to the lanes, or pushes the children that
 * they need. Returns the new depth of the stack. */
template <typename Lane>
static __device__ __forceinline__ int offer_entries_or_push_children(
    const struct oj_device_tree &tree, struct oj_warp_walk_memory *memory,
    const struct oj_warp_circle *circle, Lane *lane, uint32_t at, int depth)
{
    const struct oj_device_tree_node &b = memory->boxes;
    int level = (int)(at >> OJ_TREE_INDEX_BITS);
    uint32_t i = at & ((1u << OJ_TREE_INDEX_BITS) - 1u), wanted = 0;
    const struct oj_device_tree_node *node =
        tree.node + tree.level_first[level] + i;
    uint32_t first = i * OJ_TREE_FANOUT, number = threadIdx.x % OJ_WARP_LANES;
    uint32_t child = (uint32_t)(level - 1) << OJ_TREE_INDEX_BITS | first;
    int64_t below = level > 0 ? (int64_t)tree.level_n[level - 1] : tree.n;
    int n =
        below - first < OJ_TREE_FANOUT ? (int)(below - first) : OJ_TREE_FANOUT;
    ((float *)&memory->boxes)[number] = ((const float *)node)[number];
    __syncwarp();
    for (int c = 0; c < n; c++)
    {
        double d2 = box_distance2(lane, b, c);
        int wants = d2 <= lane->reach2();
        if (level == 0 && wants)
            lane->consider_entry((int64_t)first + c);
        else if (level > 0 &&
                 __any_sync(OJ_FULL_WARP,
                            wants && lane->wants_node(child + (uint32_t)c, d2)))
            wanted |= 1u << c;
    }
    if (level > 0)
        depth = push_children(memory, circle, wanted, child, depth);
    __syncwarp();
    return depth;
}

/** Offers to each lane all entries whose boxes are in its reach. All threads of
 *  the warp must call it. */
template <typename Lane>
static __device__ void walk_tree_by_warp(const struct oj_device_tree &tree,
                                         struct oj_warp_walk_memory *memory,
                                         Lane *lane)
{
    struct oj_warp_circle circle = find_circle_of_warp(lane);
    int depth = tree.n > 0 ? 1 : 0;
    if (threadIdx.x % OJ_WARP_LANES == 0)
    {
        memory->stack[0] = (uint32_t)(tree.n_levels - 1) << OJ_TREE_INDEX_BITS;
        memory->stack_apart[0] = 0.0f;
    }
    __syncwarp();
    while (depth > 0)
    {
        uint32_t at = memory->stack[--depth];
        float apart = memory->stack_apart[depth];
        __syncwarp();
        if (is_box_in_reach_of_any_lane(&circle, lane->reach2(), apart))
            depth = offer_entries_or_push_children(tree, memory, &circle, lane,
                                                   at, depth);
    }
}

#endif
