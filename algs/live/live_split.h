/** How a cell with too many points is cut: a table of rules, and the subtree
 *  that a rule makes of some points.
 *
 *  quadtree  in the middle of the square, as a PR quadtree is
 *  kdtree    at the median of x, and at that of y in either half; medians by
 *            histograms, so that nothing is sorted
 *
 *  Source: the rules are those of G-PICS (Lewis and Tu 2022), whose
 * space-driven trees end at a height MH and whose leaves hold MC points; cuts
 * of two axes at once, and what is done with places that no cut takes apart,
 * are ours.
 */
#ifndef LIVE_SPLIT_H
#define LIVE_SPLIT_H

#include "live_tree.h"

/** Levels of nodes, at most, of any rule. */
#define LIVE_MOST_DEPTH 40

struct live_split_rule
{
    const char *name, *help;
    int most_depth; /**< nodes above a page */
    /** Sets sx and sy of node, whose cell is set, for n points, all of them in
     *  that cell. frame: around all points when the tree was built. Returns 0
     *  where no cut takes the points apart. */
    int (*cut)(struct live_node *node, const struct oj_box *frame, int64_t n,
               const struct live_point *point);
};

/** Row i of the table, or NULL past its end. */
const struct live_split_rule *live_split_rule_at(int i);

enum
{
    LIVE_QUADTREE = 0,
    LIVE_KDTREE = 1
};

/** A leaf of a subtree: a run of points. */
struct live_leaf
{
    int64_t first, n;
    struct oj_box cell;
    uint32_t
        parent; /**< 4 * node + child in the subtree; LIVE_NONE: its root */
    int32_t depth;
};

/** What points become. Owner; zeroed memory is a valid empty one. */
struct live_subtree
{
    int64_t n_nodes, cap_nodes, n_leaves, cap_leaves;
    struct live_node *node; /**< children of nodes are set, those that are
                                 leaves are LIVE_NO_CHILD */
    struct live_leaf *leaf;
};

struct live_split
{
    const struct live_split_rule *rule;
    struct oj_box frame;
    int64_t leaf_points; /**< a leaf of at most so many is not cut */
    int keeps_empty;     /**< 1: leaves without points stay */
};

/** Adds the subtree of n points from first on, which have cell and lie at
 * depth, below parent (a node of the subtree, or LIVE_NONE); the points come
 * into the order of the leaves. scratch: as many.  On failure the points may
 * have another order. */
OJ_MUST_USE oj_status live_split_points(const struct live_split *split,
                                        struct live_point *point,
                                        struct live_point *scratch,
                                        const struct live_leaf *whole,
                                        struct live_subtree *subtree,
                                        struct oj_error *err);

void live_subtree_free(struct live_subtree *subtree);

#endif
