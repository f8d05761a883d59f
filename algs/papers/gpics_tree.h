/** The trees of G-PICS: a quadtree and a k-d tree of the points of a layer,
 * with their updates.
 *
 *  Paper: Lewis, Tu 2022, "G-PICS: A Framework for GPU-Based Spatial Indexing
 *  and Query Processing", sections III (construction) and V (updates).
 *
 *   node   link: sx, sy, four children     leaf: its last page, number of
 * points
 *                                                   |
 *   page   x[64] y[64] feature[64] <- previous page of the leaf <- ..
 *   place  [features] page and slot of each point
 *
 *  quadtree  a node with more than MC points is cut in the middle of its
 * square, down to MH levels (section III.A) kdtree    it is cut at the median
 * of x, at the next level of y. The median is found by a histogram, of which
 * one bucket is sorted (section III.B)
 *
 *  Nodes without points are not made. Lists of leaves consist of pages, so that
 *  an update changes only the leaves that it touches (section V.A, "paging").
 *
 *  Differences: nodes are cut one after another on one thread, in the order of
 *  levels, where the paper has a thread per point; points are counted before
 *  they are moved, so there are no atomic operations. An axis on which all
 *  points of a node are equal is skipped. Cells on the rim extend to infinity,
 *  so that points may leave the extent of the first points. */
#ifndef GPICS_TREE_H
#define GPICS_TREE_H

#include "../../flatten/base/oj_status.h"
#include "../foundations/base/oj_feature_box.h"

#include <stdint.h>

#define GPICS_PAGE_POINTS 64
#define GPICS_NONE (-1)

/** MH of the paper's experiments. A k-d tree has two levels for each. */
#define GPICS_LEVELS 14
#define GPICS_MOST_LEVELS (2 * GPICS_LEVELS)

enum gpics_kind
{
    GPICS_QUADTREE = 0,
    GPICS_KDTREE
};

enum gpics_node_state
{
    GPICS_LEAF = 0,
    GPICS_LINK,
    GPICS_FREE
};

struct gpics_page
{
    double x[GPICS_PAGE_POINTS], y[GPICS_PAGE_POINTS];
    int32_t feature[GPICS_PAGE_POINTS];
    int32_t n, leaf;
    int32_t previous; /**< page of the leaf, which is full, or next free page */
};

/** A point belongs to child 2 (x >= sx) + (y >= sy). In a k-d tree one of sx
 * and sy is infinite, and a node has two children. */
struct gpics_node
{
    struct oj_box cell; /**< x0 <= x < x1, y0 <= y < y1 */
    double sx, sy;
    int32_t child[4]; /**< or GPICS_NONE */
    int32_t parent;   /**< or GPICS_NONE; of a free node the next free one */
    int32_t page;     /**< leaf: its last page, or GPICS_NONE */
    int32_t n;        /**< leaf: number of points */
    uint8_t level, state;
    uint8_t is_full; /**< during an update: it is listed to be cut */
};

/** Owner; zeroed memory is a valid empty one. */
struct gpics_tree
{
    enum gpics_kind kind;
    int64_t most_points;  /**< MC */
    const int *cancel;    /**< or NULL */
    struct oj_box frame;  /**< box of the points of the build */
    struct oj_box extent; /**< box that covers all points */
    int64_t n_features, n_points;
    int64_t *place; /**< [n_features] page * GPICS_PAGE_POINTS + slot; -1: no
                         point */
    int64_t n_nodes, cap_nodes, n_pages, cap_pages;
    struct gpics_node *node;
    struct gpics_page *page;
    int32_t root, free_node, free_page; /**< or GPICS_NONE */
};

/** Builds a tree of n features with the places x, y; x NaN: no point.  The
 *  caller has set kind, most_points and cancel, and frees the tree also after
 * an error. Cost  O(n log n) */
OJ_MUST_USE oj_status gpics_tree_build(struct gpics_tree *tree, int64_t n,
                                       const double *x, const double *y,
                                       struct oj_error *err);

/** Moves n features, each at most once, to their places in x, y, which have all
 *  features.  After an error the tree can only be freed.
 *  Cost  O(log n) per feature that leaves its leaf, O(1) for the others, and
 * the nodes that are cut or merged */
OJ_MUST_USE oj_status gpics_tree_move(struct gpics_tree *tree, int64_t n,
                                      const int32_t *feature, const double *x,
                                      const double *y, struct oj_error *err);

/** Returns the leaf whose cell contains a place, or GPICS_NONE. */
int32_t gpics_tree_leaf_at(const struct gpics_tree *tree, double x, double y);

int64_t gpics_tree_bytes(const struct gpics_tree *tree);

void gpics_tree_free(struct gpics_tree *tree);

/** The way down to the leaves that a box meets, with the open nodes. */
struct gpics_descent
{
    const struct gpics_tree *tree;
    struct oj_box box;
    int n;
    int32_t open[3 * GPICS_MOST_LEVELS + 4];
};

void gpics_descent_begin(struct gpics_descent *descent,
                         const struct gpics_tree *tree,
                         const struct oj_box *box);

/** Returns the next leaf whose cell meets the box, or GPICS_NONE. */
int32_t gpics_descent_next_leaf(struct gpics_descent *descent);

#endif
