/** The DE-9IM matrix of two shapes, exactly: what decides a pair wherever
 *  boxes, cells and the contact of edges (cpu_prepared_shapes.h) leave it open.
 *
 *  The vertices of both, and the points in which edges cross, are looked at one
 *  by one (relate_feature_edges.h).  A vertex that is not on the other shape
 * says the same as every other vertex there, so of shapes that are nice only
 * those on each other cost more than a look at where they are.
 */
#ifndef RELATE_H
#define RELATE_H

#include "relate_feature_edges.h"

/** One thread's own; zeroed memory is valid. */
struct oj_relate_scratch
{
    struct oj_figure input, join_side;
    struct oj_node_scratch node;
};

/** Adds to *matrix, which is empty, all that input and join_side, which have
 *  parts, have in common.  With a relation other than NULL it may stop as soon
 *  as oj_matrix_holds() is known.  is_nice: what oj_shape_is_nice() says.
 *  O((n + m) log) as a rule; cancel: nonzero ends it with OJ_ERR_CANCELLED. */
OJ_MUST_USE oj_status oj_shapes_relate(
    const struct oj_relation *relation, const struct oj_shape *input,
    int input_is_nice, const struct oj_shape *join_side, int join_is_nice,
    const int *cancel, struct oj_relate_scratch *scratch,
    struct oj_matrix *matrix, struct oj_error *err);

/** Where a point is in a shape. scratch->join_side is then that shape's figure,
 *  as of one that is not nice, and is kept for the next point.  O(edges at the
 *  point's height). */
OJ_MUST_USE oj_status oj_shape_place(const struct oj_shape *shape, double x,
                                     double y,
                                     struct oj_relate_scratch *scratch,
                                     enum oj_matrix_place *place,
                                     struct oj_error *err);

/** The layers that shapes were of are no longer there. */
void oj_relate_forget(struct oj_relate_scratch *scratch);

void oj_relate_scratch_free(struct oj_relate_scratch *scratch);

#endif
