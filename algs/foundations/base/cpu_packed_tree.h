/** A packed tree of boxes: eight children a node, all levels in one array.
 *
 *  level 0          node 0         node 1     ...   children: entries 0..7, ..
 *  level 1          node 0 (children: nodes 0..7 of level 0) ...
 *  ...
 *  level n_levels-1 one node, the root
 *
 *  Boxes are single precision, rounded outward, relative to an origin in the
 *  middle of the entries and scaled by a power of two, so that little precision
 *  is lost where most of the data are. They only select candidates, never
 *  decide a pair. Entries must be sorted so that neighbours are close together
 *  (cpu_morton_order.h).
 */
#ifndef CPU_PACKED_TREE_H
#define CPU_PACKED_TREE_H

#include "oj_feature_box.h"

#define OJ_FANOUT 8
#define OJ_TREE_LEVELS 12 /* for up to 8^12 entries */

/** Boxes of the eight children; an absent child has an empty box (x0 = +inf, x1
 * = -inf). */
struct oj_tree_node
{
    float x0[OJ_FANOUT], y0[OJ_FANOUT], x1[OJ_FANOUT], y1[OJ_FANOUT];
};

/** A packed tree. Owner; zeroed memory is a valid empty tree. */
struct oj_tree
{
    int64_t n_entries;
    int n_levels;                        /**< 0: the tree has no entries */
    int64_t level_first[OJ_TREE_LEVELS]; /**< index in `node` of each level's
                                              first node */
    int64_t n_nodes;
    struct oj_tree_node *node;
    double origin_x, origin_y, scale;
    double slack; /**< maximum amount, in CRS units, by which stored boxes may
                       be too small, since the shift to the origin rounds */
};

/** Builds the tree over n entries with boxes box[0..n-1], with n_threads
 * threads. Source: packed R-trees (Kamel and Faloutsos 1993), in Morton instead
 * of Hilbert order. */
OJ_MUST_USE oj_status oj_tree_build(struct oj_tree *tree, int n_threads,
                                    int64_t n, const struct oj_box *box,
                                    struct oj_error *err);

int64_t oj_tree_bytes(const struct oj_tree *tree);

void oj_tree_free(struct oj_tree *tree);

/* Converts v to tree coordinates, rounded down or up by twice the error of
 * single precision, so that boxes never become too small. */
static inline float oj_tree_round_down(double v, double origin, double scale)
{
    float f = (float)((v - origin) * scale);
    return f - (fabsf(f) * 1.2e-7f + 1e-30f);
}

static inline float oj_tree_round_up(double v, double origin, double scale)
{
    float f = (float)((v - origin) * scale);
    return f + (fabsf(f) * 1.2e-7f + 1e-30f);
}

/** Returns the squared search radius in tree coordinates, for comparison with
 * oj_tree_node_distances2(). It is rounded up and widened by the rounding
 * errors of single precision and of the shift to the origin. It is always
 * finite, so that absent children (at infinity) never pass; existing children
 * are within 1e37. */
static inline float oj_tree_reach2(const struct oj_tree *tree, double reach)
{
    double r = (reach + tree->slack) * tree->scale * (1.0 + 1e-6);
    float f = r < 1e19 ? (float)(r * r) : 1e38f;
    return f + (f * 1.2e-7f + 1e-30f);
}

#endif
