/** Exact signs about a node: the side of an edge it is on, how its coordinates
 *  compare, which of two directions comes first.
 *
 *  A crossing of two edges has no doubles for coordinates. Doubles that are off
 *  by a known bound decide most questions, and whole numbers of any size the
 *  rest.  Source: ours.
 */
#ifndef RELATE_SIGN_H
#define RELATE_SIGN_H

#include "relate_figure.h"

/** A point: given by its coordinates, or as the one in which two edges cross,
 *  of which x and y are off by less than error. */
struct oj_node
{
    double x, y, error;
    const struct oj_edge *cross[2]; /**< NULL: x and y are exact */
};

/** The node in which two edges cross that have one point in common, which is
 *  an end of neither. */
struct oj_node oj_node_of_crossing(const struct oj_edge *e,
                                   const struct oj_edge *f);

/** The sign of the cross product of the directions of two edges. */
int oj_cross_sign(const struct oj_edge *e, const struct oj_edge *f);

/** 1 when the node is left of the line of e, -1: right, 0: on it. */
int oj_node_side(const struct oj_node *node, const struct oj_edge *e);

/** oj_node_compare_y() and _x() where the bound does not decide. */
int oj_crossing_compare_y(const struct oj_node *node, double v);
int oj_crossing_compare_x(const struct oj_node *node, double v);

/** The sign of the node's y, or x, less v. */
static inline int oj_node_compare_y(const struct oj_node *node, double v)
{
    if (node->cross[0] != NULL && !(fabs(node->y - v) > node->error))
        return oj_crossing_compare_y(node, v);
    return (node->y > v) - (node->y < v);
}

static inline int oj_node_compare_x(const struct oj_node *node, double v)
{
    if (node->cross[0] != NULL && !(fabs(node->x - v) > node->error))
        return oj_crossing_compare_x(node, v);
    return (node->x > v) - (node->x < v);
}

#endif
