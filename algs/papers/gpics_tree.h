/** The trees of G-PICS: a quadtree and a k-d tree of the points of a layer,
 * with their updates.
 *
 *  Paper: Lewis, Tu 2022, "G-PICS: A Framework for GPU-Based Spatial Indexing
 *  and Query Processing", sections III (construction) and V (updates).
 *
 *   inner node   sx, sy, four children
 *   leaf         number of points, last page
 *                                   |
 *   page         x[64] y[64] feature[64] <- previous page of the leaf <- ...
 *   place        [features] page and slot of each point
 *
 *   quadtree     a node with more than MC points is divided in the middle of
 *                its square, down to MH levels (section III.A)
 *   k-d tree     a node is divided at the median of x, on the next level at the
 *                median of y. A histogram finds the median, so that only the
 *                values of one bucket are sorted (section III.B)
 *
 *  There are no empty nodes. Points of a leaf are stored in pages, so an update
 *  changes only the leaves that lose or get points (section V.A, "paging").
 *
 *  Differences: the paper has a thread per point and atomic operations. Here
 *  one thread divides the nodes level by level, and counts points before it
 *  moves them. An axis on which all points of a node are equal is skipped. The
 *  outermost cells extend to infinity, so that points may leave the box of the
 *  first points. */
#ifndef GPICS_TREE_H
#define GPICS_TREE_H

#include "../../flatten/base/oj_status.h"
#include "../foundations/base/oj_feature_box.h"

#include <stdint.h>

#define GPICS_PAGE_POINTS 64
#define GPICS_NONE (-1)

/** Maximum number of levels of a quadtree: MH of the paper's experiments. A k-d
 * tree has twice as many. */
#define GPICS_LEVELS 14
#define GPICS_MOST_LEVELS (2 * GPICS_LEVELS)

enum gpics_kind
{
    GPICS_QUADTREE = 0,
    GPICS_KDTREE
};

/** State of a node: a leaf, an inner node (link), or unused. */
enum gpics_node_state
{
    GPICS_LEAF = 0,
    GPICS_LINK,
    GPICS_FREE
};

/** Up to GPICS_PAGE_POINTS points of a leaf, or an unused page. */
struct gpics_page
{
    double x[GPICS_PAGE_POINTS], y[GPICS_PAGE_POINTS];
    int32_t feature[GPICS_PAGE_POINTS];
    int32_t n, leaf;
    int32_t previous; /**< in a leaf: the page before this one, which is full;
                           if unused: the next unused page; GPICS_NONE: none */
};

/** A node. In an inner node, a point belongs to child 2 (x >= sx) + (y >= sy).
 * In a k-d tree, one of sx and sy is infinite, so a node has at most two
 * children. */
struct gpics_node
{
    struct oj_box cell; /**< half-open: x0 <= x < x1, y0 <= y < y1 */
    double sx, sy;
    int32_t child[4]; /**< GPICS_NONE: no child */
    int32_t parent;   /**< GPICS_NONE: the root. Of a free node: the next free
                           node */
    int32_t page;     /**< in a leaf: its last page; GPICS_NONE: no points */
    int32_t n;        /**< in a leaf: number of points */
    uint8_t level, state;
    uint8_t is_full; /**< 1 during an update: the leaf is to be divided */
};

/** A tree. Owner; zeroed memory is a valid empty value. */
struct gpics_tree
{
    enum gpics_kind kind;
    int64_t most_points;  /**< maximum points of a leaf (MC of the paper) */
    const int *cancel;    /**< cancel flag; may be NULL */
    struct oj_box frame;  /**< box of the points when the tree was built */
    struct oj_box extent; /**< box that contains all points, also moved ones */
    int64_t n_features, n_points;
    int64_t *place; /**< [n_features] page * GPICS_PAGE_POINTS + slot; -1: the
                         feature has no point */
    int64_t n_nodes, cap_nodes, n_pages, cap_pages;
    struct gpics_node *node;
    struct gpics_page *page;
    int32_t root, free_node, free_page; /**< GPICS_NONE: none */
};

/** Builds a tree of n points (x[i], y[i]). If x[i] is NaN, feature i has no
 * point. Preconditions: kind, most_points and cancel are set, the rest is
 * zeroed. The caller frees the tree, even after an error. O(n log n). */
OJ_MUST_USE oj_status gpics_tree_build(struct gpics_tree *tree, int64_t n,
                                       const double *x, const double *y,
                                       struct oj_error *err);

/** Moves n features, each of them at most once. x and y [n_features] contain
 * the new coordinates of these features and the old coordinates of all
 * others. After an error the tree can only be freed. Cost: O(log n) for each
 * feature that leaves its leaf, O(1) for each other feature, and the nodes
 * that are divided or merged. */
OJ_MUST_USE oj_status gpics_tree_move(struct gpics_tree *tree, int64_t n,
                                      const int32_t *feature, const double *x,
                                      const double *y, struct oj_error *err);

/** Returns the leaf whose cell contains (x, y), or GPICS_NONE. */
int32_t gpics_tree_leaf_at(const struct gpics_tree *tree, double x, double y);

int64_t gpics_tree_bytes(const struct gpics_tree *tree);

void gpics_tree_free(struct gpics_tree *tree);

/** State of a search for the leaves that a box intersects: a stack of nodes to
 * visit. */
struct gpics_descent
{
    const struct gpics_tree *tree;
    struct oj_box box;
    int n;
    int32_t open[3 * GPICS_MOST_LEVELS + 4];
};

/** Starts a search for the leaves whose cells intersect box. */
void gpics_descent_begin(struct gpics_descent *descent,
                         const struct gpics_tree *tree,
                         const struct oj_box *box);

/** Returns the next leaf whose cell intersects the box, or GPICS_NONE at the
 *  end.
 */
int32_t gpics_descent_next_leaf(struct gpics_descent *descent);

#endif
