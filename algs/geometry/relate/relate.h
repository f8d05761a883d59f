/** Computes the exact DE-9IM matrix of two shapes. Used for pairs that boxes,
 *  cells and contacts of edges (cpu_prepared_shapes.h) do not decide.
 *
 *  All nodes (vertices, and crossings of edges) are visited
 *  (relate_feature_edges.h). For topologically valid shapes, the edges around a
 *  vertex are analysed only if the vertex is on the boundary of the other
 *  shape; otherwise a point location suffices.
 */
#ifndef RELATE_H
#define RELATE_H

#include "relate_feature_edges.h"

/** Memory that is reused for many pairs; one struct per thread. Zeroed memory
 * is valid. */
struct oj_relate_scratch
{
    struct oj_figure input, join_side;
    struct oj_node_scratch node;
};

/** Computes *matrix, the matrix of input and join_side. Both shapes must have
 * parts. If relation is not NULL, the computation stops as soon as *matrix
 * decides this relation. input_is_valid and join_is_valid are results of
 * oj_shape_is_valid(). A nonzero *cancel ends the computation with
 * OJ_ERR_CANCELLED. Usually O((n + m) log (n + m)) for n and m vertices. */
OJ_MUST_USE oj_status oj_shapes_relate(
    const struct oj_relation *relation, const struct oj_shape *input,
    int input_is_valid, const struct oj_shape *join_side, int join_is_valid,
    const int *cancel, struct oj_relate_scratch *scratch,
    struct oj_matrix *matrix, struct oj_error *err);

/** Locates a point in a shape. The shape is decomposed into the figure
 * scratch->join_side, which is reused for further points in this shape. O(edges
 * at the point's height). */
OJ_MUST_USE oj_status oj_relate_locate_point(const struct oj_shape *shape,
                                             double x, double y,
                                             struct oj_relate_scratch *scratch,
                                             enum oj_matrix_place *place,
                                             struct oj_error *err);

/** Forgets the layers that scratch refers to. Must be called before such a
 * layer is freed. */
void oj_relate_scratch_forget_layers(struct oj_relate_scratch *scratch);

void oj_relate_scratch_free(struct oj_relate_scratch *scratch);

#endif
