/** Pairs of a point with the points, or the boxes, under a packed tree: those
 *  within a distance, those that are equal, those that hold it.
 *
 *  The tree only says what need not be looked at; the test of an entry is that
 *  of the definition, on the coordinates as they are.
 */
#ifndef OJ_POINT_PAIRS_H
#define OJ_POINT_PAIRS_H

#include "../../algs/kernels/oj_segment.h"
#include "../index/oj_pair_rule.h"
#include "../tree/oj_tree.h"

enum oj_point_test
{
    OJ_POINT_NEAR,  /**< least <= distance <= reach */
    OJ_POINT_EQUAL, /**< the same coordinates; 0 is -0 */
    OJ_POINT_IN_BOX /**< in the box or on its border */
};

struct __attribute__((aligned(16))) oj_point_place
{
    double x, y;
};

/** The join side: an entry is a feature. Borrows everything. */
struct oj_point_side
{
    struct oj_device_tree tree;
    enum oj_point_test test;
    double least;
    const struct oj_point_place *place; /**< [tree.n], for boxes NULL */
    const struct oj_tree_box *box;      /**< [tree.n], for points NULL */
    const int32_t *rank;                /**< [tree.n] */
};

/** A point on its way through the tree. */
struct oj_point_visit
{
    struct oj_tree_walk walk;
    double x, y, reach;
    int64_t row;
};

/** reach: 0 but for OJ_POINT_NEAR. Returns 0 when nothing can be found. */
OJ_FN int oj_point_visit_start(struct oj_point_visit *v,
                               const struct oj_point_side *side, int64_t row,
                               double x, double y, double reach)
{
    if (!isfinite(x) || !isfinite(y) || !(reach >= 0.0))
        return 0;
    v->x = x;
    v->y = y;
    v->reach = reach;
    v->row = row;
    oj_tree_walk_start(&v->walk, &side->tree, x, y, reach);
    return 1;
}

OJ_FN int oj_point_holds(const struct oj_point_side *side, int64_t entry,
                         double x, double y, double reach)
{
    if (side->test == OJ_POINT_IN_BOX)
    {
        const struct oj_tree_box *box = &side->box[entry];
        return box->x0 <= x && x <= box->x1 && box->y0 <= y && y <= box->y1;
    }
    else
    {
        const struct oj_point_place *q = &side->place[entry];
        double distance;
        if (side->test == OJ_POINT_EQUAL)
            return q->x == x && q->y == y;
        distance = oj_point_distance(x, y, q->x, q->y);
        return distance <= reach && distance >= side->least &&
               distance < INFINITY;
    }
}

/** The rank of the next feature, in the tree's order, or -1. */
OJ_FN int32_t oj_point_visit_next(struct oj_point_visit *v,
                                  const struct oj_point_side *side,
                                  const struct oj_pair_rule *rule)
{
    int64_t entry;
    while ((entry = oj_tree_walk_next(&v->walk, &side->tree)) >= 0)
    {
        int32_t rank;
        int is_same;
        if (!oj_point_holds(side, entry, v->x, v->y, v->reach))
            continue;
        rank = side->rank[entry];
        is_same = side->place != 0 && side->place[entry].x == v->x &&
                  side->place[entry].y == v->y;
        if (oj_pair_rule_passes(rule, v->row, rank, is_same))
            return rank;
    }
    return -1;
}

#endif
