/** Figures whose polygons that enclose nothing are found, and shapes of which
 * it is known that every edge has the interior on one side. */
#ifndef RELATE_NICE_H
#define RELATE_NICE_H

#include "relate_node.h"

/** Takes shape apart; what figure holds already is kept.  is_nice: the shape is
 *  of points, of lines of some length, or a polygon of which oj_shape_is_nice()
 *  is known.  O(vertices). */
OJ_MUST_USE oj_status oj_figure_make(struct oj_figure *figure,
                                     const struct oj_shape *shape, int is_nice,
                                     struct oj_node_scratch *scratch,
                                     struct oj_error *err);

/** *is_nice: 1 when shape is of points, of lines of some length, or of polygons
 *  no two edges of which cross or run along each other, whose holes lie in
 * their shells and in no other hole, and none of whose parts lies in another:
 * then all edges have the interior on one side, and even-odd over all rings is
 * the union of the parts.  Parts and rings may touch in points.  figure:
 * scratch. O(vertices) as a rule. */
OJ_MUST_USE oj_status oj_shape_is_nice(const struct oj_shape *shape,
                                       struct oj_figure *figure,
                                       struct oj_node_scratch *scratch,
                                       int *is_nice, struct oj_error *err);

#endif
