/** The trees of G-PICS on a device: a quadtree and a k-d tree of points.
 *
 *  Paper: Lewis, Tu 2022, "G-PICS: A Framework for GPU-Based Spatial Indexing
 *  and Query Processing", section III (construction). The version for CPU
 *  threads is algs/papers/gpics_tree.h.
 *
 *   inner node   sx, sy, four children
 *   leaf         first point, number of points
 *                    |
 *   points       x[] y[] feature[], leaf by leaf
 *
 *  Both trees are made level by level, and only nodes with points exist. In
 *  the quadtree, points are sorted by the numbers of the children on their
 *  path through 14 levels, so that the points of a node are a range. In the
 *  k-d tree, points are sorted once by x and once by y; on each level both
 *  orders are divided at the medians, and stay sorted within each node.
 *
 *  Differences: the paper has a thread per point and atomic operations. Here
 *  points are counted before they move, so that a tree depends on the points
 *  alone. The points of a leaf are stored without pages, because these trees
 *  take no updates; cuda/live has the index that does. */
#ifndef CUDA_GPICS_TREE_CUH
#define CUDA_GPICS_TREE_CUH

#include "../../algs/foundations/kernels/oj_box.h"
#include "../foundations/device/cuda_stream_work.cuh"

enum
{
    /** Levels of the quadtree (MH of the paper's experiments). A k-d tree has
     *  two levels for each of these. */
    OJ_GPICS_LEVELS = 14,
    /** Maximum number of nodes that wait while a thread walks a tree: three per
     *  level of a quadtree or one per level of a k-d tree (whose levels are
     *  twice as many), and the last four. */
    OJ_GPICS_WAITING = 3 * OJ_GPICS_LEVELS + 4,
    OJ_GPICS_NONE = -1
};

/** A node. In an inner node a point belongs to child 2 (x >= sx) + (y >= sy).
 *  In a k-d tree one of sx and sy is infinite. */
struct oj_cuda_gpics_node
{
    struct oj_box cell;
    double sx, sy;
    int32_t child[4]; /**< OJ_GPICS_NONE: no child */
    int32_t first, n; /**< its points */
    int32_t is_leaf;
};

/** A tree in device memory. Owns nothing. Passed by value. */
struct oj_cuda_gpics_tree
{
    int64_t n_points;
    int64_t n_nodes;                       /**< 0: no points */
    struct oj_box frame;                   /**< box of the points */
    const struct oj_cuda_gpics_node *node; /**< [n_nodes] node 0 is the root */
    const double *x, *y;                   /**< [n_points] leaf by leaf */
    const int32_t *feature;                /**< [n_points] */
};

/** Builds a tree of n points in host memory; if x[i] is NaN, feature i has no
 *  point. most_points is the maximum number of points of a leaf (MC of the
 *  paper); leaves on the deepest level may have more. *work owns the arrays.
 *  All devices of a join must build equal trees in equal order. O(n log n). */
OJ_MUST_USE oj_status oj_cuda_gpics_tree_build(struct oj_cuda_work *work,
                                               int64_t n, const double *x,
                                               const double *y, int is_kdtree,
                                               int64_t most_points,
                                               struct oj_cuda_gpics_tree *out);

/** Calls visit(leaf) for each leaf whose cell may intersect the box. */
template <typename Visit>
static __device__ __forceinline__ void
oj_cuda_gpics_visit_leaves(const struct oj_cuda_gpics_tree &tree,
                           const struct oj_box &box, Visit visit)
{
    int32_t waiting[OJ_GPICS_WAITING];
    int n = tree.n_nodes > 0;
    waiting[0] = 0;
    while (n > 0)
    {
        int32_t at = waiting[--n];
        const struct oj_cuda_gpics_node &node = tree.node[at];
        if (node.is_leaf)
        {
            visit(at);
            continue;
        }
        for (int c = 0; c < 4; c++)
        {
            int meets_x = c & 2 ? box.x1 >= node.sx : box.x0 < node.sx;
            int meets_y = c & 1 ? box.y1 >= node.sy : box.y0 < node.sy;
            if (node.child[c] != OJ_GPICS_NONE && meets_x && meets_y)
                waiting[n++] = node.child[c];
        }
    }
}

/** Returns the leaf to which a point at (x, y) would belong, or
 *  OJ_GPICS_NONE. */
static __device__ __forceinline__ int32_t
oj_cuda_gpics_leaf_at(const struct oj_cuda_gpics_tree &tree, double x, double y)
{
    int32_t at = tree.n_nodes > 0 ? 0 : OJ_GPICS_NONE;
    while (at != OJ_GPICS_NONE && !tree.node[at].is_leaf)
    {
        const struct oj_cuda_gpics_node &node = tree.node[at];
        at = node.child[2 * (x >= node.sx) + (y >= node.sy)];
    }
    return at;
}

#endif
