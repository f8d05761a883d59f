/** Splits cells with too many points: a table of split rules, and the function
 *  that builds a subtree of points by a rule.
 *
 *  quadtree  at the centre of the square, as in a PR quadtree
 *  kdtree    at the median of x, then of y in either half; medians are
 *            estimated by histograms, so nothing is sorted
 *
 *  Source: the rules of G-PICS (Lewis and Tu 2022), whose space-driven trees
 *  end at height MH and whose leaves hold MC points. Ours: cuts of two axes at
 *  once, and the treatment of points that no cut separates. */
#ifndef LIVE_SPLIT_H
#define LIVE_SPLIT_H

#include "live_tree.h"

/** Maximum depth of the tree under any rule. */
#define LIVE_MOST_DEPTH 40

struct live_split_rule
{
    const char *name, *help;
    int most_depth; /**< maximum number of nodes above a page */
    /** Sets sx and sy of node, whose cell is set, for the n points in this
     *  cell. frame is the box of all points at the last build. Returns 0 if no
     *  cut separates the points. */
    int (*cut)(struct live_node *node, const struct oj_box *frame, int64_t n,
               const struct live_point *point);
};

/** Returns row i of the table of rules, or NULL past its end. */
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
    uint32_t parent; /**< 4 * node + child in the subtree; LIVE_NONE: the leaf
                          is the root */
    int32_t depth;
};

/** The subtree built of points. Owner; zeroed memory is a valid empty one. */
struct live_subtree
{
    int64_t n_nodes, cap_nodes, n_leaves, cap_leaves;
    struct live_node *node; /**< in child, LIVE_NO_CHILD stands for a leaf */
    struct live_leaf *leaf;
};

struct live_split
{
    const struct live_split_rule *rule;
    struct oj_box frame;
    int64_t leaf_points; /**< a leaf with at most so many points is not split */
    int keeps_empty;     /**< 1: leaves without points are kept */
};

/** Builds the subtree of the n points from whole->first on, with the cell and
 *  depth of `whole`, and adds it below whole->parent (a node of the subtree, or
 *  LIVE_NONE). Sorts the points in the order of the leaves; scratch has room
 *  for n points. After an error the points may have another order. */
OJ_MUST_USE oj_status live_split_points(const struct live_split *split,
                                        struct live_point *point,
                                        struct live_point *scratch,
                                        const struct live_leaf *whole,
                                        struct live_subtree *subtree,
                                        struct oj_error *err);

void live_subtree_free(struct live_subtree *subtree);

#endif
