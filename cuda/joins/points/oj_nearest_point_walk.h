/** Finds the nearest point with which a point may be paired, for example the
 *  nearest other point of its own layer: the first by (distance, rank). Several
 *  points that lie close together walk the packed tree of the join side
 *  together: a node is visited if one of them needs it, and its entries are
 *  offered to all. Before that, each point descends to a leaf by always taking
 *  the nearest child. Source: ours. */
#ifndef OJ_NEAREST_POINT_WALK_H
#define OJ_NEAREST_POINT_WALK_H

#include "../../../algs/foundations/kernels/oj_segment.h"
#include "../../foundations/device/oj_segment_record.h"
#include "../../foundations/index/oj_pair_conditions.h"
#include "../../foundations/tree/oj_tree.h"

/** The join side as it is searched. Borrows all arrays. */
struct oj_near_others
{
    struct oj_device_tree tree;
    const struct oj_point_place *place; /**< [tree.n] */
    const int32_t *rank;                /**< [tree.n] */
    /** [nodes] smallest rank of all entries below each node. */
    const int32_t *least_rank;
};

/** The search of one point. */
struct oj_near_other
{
    double px, py;
    double least, most; /* minimum and maximum distance */
    double x, y;        /* coordinates relative to the tree's origin */
    double slack;       /* maximum error of a computed distance of boxes */
    double reach2;      /* boxes with a larger squared distance are skipped */
    double most2;       /* entries with a larger squared distance are skipped */
    double distance;    /* distance of the best entry so far */
    int64_t row;
    int32_t rank; /* -1: no entry so far */
};

/* From now on, skips entries at a distance above bound. The limit reach2 for
 * boxes is computed as in oj_tree_walk_set_bound(). In most2, the factor covers
 * rounding: a square whose root rounds to d or less is at most d^2 (1 +
 * 2^-51). */
OJ_FN void oj_nearest_point_set_bound(struct oj_near_other *o, double bound)
{
    double reach = bound + o->slack;
    o->reach2 = reach * reach * (1.0 + 1e-14);
    o->most2 = bound * bound * (1.0 + 1e-15);
}

/** Starts a search. A point that is not finite, or whose most is negative or
 *  NaN, matches nothing. */
OJ_FN void oj_nearest_point_start(struct oj_near_other *o,
                                  const struct oj_near_others *others,
                                  int64_t row, double px, double py,
                                  double least, double most)
{
    const struct oj_device_tree *tree = &others->tree;
    o->px = px;
    o->py = py;
    o->least = least;
    o->most = most;
    o->row = row;
    o->distance = INFINITY;
    o->rank = -1;
    o->x = px - tree->x0;
    o->y = py - tree->y0;
    o->slack =
        7.2e-15 * (fabs(o->x) + fabs(o->y) + tree->radius) + OJ_LEAST_DISTANCE;
    o->reach2 = o->most2 = -1.0;
    if (isfinite(px) && isfinite(py) && most >= 0.0)
        oj_nearest_point_set_bound(o, most);
}

/** Returns the squared distance of a box, a lower bound for its entries. */
OJ_FN double oj_nearest_point_box_distance2(const struct oj_near_other *o,
                                            double x0, double y0, double x1,
                                            double y1)
{
    double dx = x0 - o->x > o->x - x1 ? x0 - o->x : o->x - x1;
    double dy = y0 - o->y > o->y - y1 ? y0 - o->y : o->y - y1;
    dx = dx > 0.0 ? dx : 0.0;
    dy = dy > 0.0 ? dy : 0.0;
    return dx * dx + dy * dy;
}

/** Returns 1 if an entry in the box may be better than the best one so far.
 *  least_rank is a lower bound of the ranks in the box; at distance 0 only
 *  ranks decide. */
OJ_FN int oj_nearest_point_can_improve(const struct oj_near_other *o, double x0,
                                       double y0, double x1, double y1,
                                       int32_t least_rank)
{
    return oj_nearest_point_box_distance2(o, x0, y0, x1, y1) <= o->reach2 &&
           !(o->distance == 0.0 && least_rank > o->rank);
}

OJ_FN void oj_nearest_point_offer(struct oj_near_other *o,
                                  const struct oj_pair_rule *rule, double qx,
                                  double qy, int32_t rank)
{
    double dx = o->px - qx, dy = o->py - qy;
    double d2 = dx * dx + dy * dy, distance;
    if (!(d2 <= o->most2))
        return;
    distance = sqrt(d2); /* computed as oj_point_distance() does */
    if (distance > o->most || distance < o->least || distance > o->distance ||
        !(distance < INFINITY) ||
        (distance == o->distance && rank >= o->rank) ||
        !oj_pair_rule_passes(rule, o->row, rank, qx == o->px && qy == o->py))
        return;
    o->distance = distance;
    o->rank = rank;
    oj_nearest_point_set_bound(o, distance);
}

/** Returns the number of entries of node `node` of level 0, which begin at
 *  entry node * OJ_TREE_FANOUT. */
OJ_FN int oj_nearest_point_n_entries(const struct oj_near_others *others,
                                     uint32_t node)
{
    int64_t left = others->tree.n - (int64_t)node * OJ_TREE_FANOUT;
    return left < OJ_TREE_FANOUT ? (int)left : OJ_TREE_FANOUT;
}

/** Descends to the nearest leaf and offers its entries. */
OJ_FN void
oj_nearest_point_search_nearest_leaf(struct oj_near_other *o,
                                     const struct oj_near_others *others,
                                     const struct oj_pair_rule *rule)
{
    const struct oj_device_tree *tree = &others->tree;
    uint32_t at = 0;
    int32_t level;
    int c, n;
    if (o->reach2 < 0.0 || tree->n == 0)
        return;
    for (level = tree->n_levels - 1; level > 0; level--)
    {
        const struct oj_device_tree_node *node =
            tree->node + tree->level_first[level] + at;
        double least = INFINITY;
        int nearest = 0;
        for (c = 0; c < OJ_TREE_FANOUT; c++)
        {
            double d2 = oj_nearest_point_box_distance2(
                o, node->x0[c], node->y0[c], node->x1[c], node->y1[c]);
            if (d2 < least)
            {
                least = d2;
                nearest = c;
            }
        }
        at = at * OJ_TREE_FANOUT + (uint32_t)nearest;
    }
    n = oj_nearest_point_n_entries(others, at);
    for (c = 0; c < n; c++)
    {
        int64_t entry = (int64_t)at * OJ_TREE_FANOUT + c;
        const struct oj_point_place *q = &others->place[entry];
        oj_nearest_point_offer(o, rule, q->x, q->y, others->rank[entry]);
    }
}

/** Returns the smallest rank below node i of a level from those of the level
 *  below. */
OJ_FN int32_t oj_nearest_point_least_rank(const struct oj_near_others *others,
                                          int level, uint32_t i)
{
    const struct oj_device_tree *tree = &others->tree;
    const int32_t *below =
        level == 0 ? others->rank
                   : others->least_rank + tree->level_first[level - 1];
    int64_t first = (int64_t)i * OJ_TREE_FANOUT, c;
    int64_t end = level == 0 ? tree->n : (int64_t)tree->level_n[level - 1];
    int32_t least = below[first];
    end = end < first + OJ_TREE_FANOUT ? end : first + OJ_TREE_FANOUT;
    for (c = first + 1; c < end; c++)
        least = below[c] < least ? below[c] : least;
    return least;
}

#endif
