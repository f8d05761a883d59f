/** What two figures look like around one point: which edges leave it in which
 *  direction, what lies between them, and what that adds to the matrix.
 *
 *  The rays that leave the point are sorted by angle. The sector that follows
 *  the direction of +x counterclockwise is where a ray cast from the point, a
 *  little above it, would begin: a group holds it where that ray crosses an odd
 *  number of the group's edges that do not contain the point.  From there each
 *  edge of a ring that is passed changes what its group holds.
 *
 *  Every piece of an edge begins and ends in such a point, and every area that
 *  edges enclose is a sector of one: so the nodes of two figures together give
 *  the matrix.  All signs are exact.
 *
 *  Source: ours; nodes and sorted edges around them as in every overlay.
 */
#ifndef RELATE_NODE_H
#define RELATE_NODE_H

#include "../relation/oj_matrix.h"
#include "relate_figure.h"
#include "relate_sign.h"

/** A direction in which an edge leaves the node. */
struct oj_ray
{
    const struct oj_edge *edge;
    int8_t sign;     /**< 1: from a to b */
    int8_t quadrant; /**< 0: up, 1: -x, 2: down, 3: +x */
    uint8_t figure;  /**< 0 or 1 */
};

/** One thread's own; zeroed memory is valid. */
struct oj_node_scratch
{
    int64_t n_rays, cap_rays;
    struct oj_ray *ray;
};

/** Adds to matrix what lies around the node. *is_vertex: 1 when a crossing is
 *  an end of some edge; nothing is added then, as it is a node of its own. */
OJ_MUST_USE oj_status oj_node_relate(struct oj_figure *a, struct oj_figure *b,
                                     const struct oj_node *node,
                                     struct oj_node_scratch *scratch,
                                     struct oj_matrix *matrix, int *is_vertex,
                                     struct oj_error *err);

/** *is_vertex: 1 when the crossing is an end of some edge of either figure. */
void oj_node_find_vertex(const struct oj_figure *a, const struct oj_figure *b,
                         const struct oj_node *node, int *is_vertex);

/** The most groups of f that hold one sector around the point. */
OJ_MUST_USE oj_status oj_figure_depth(struct oj_figure *f, double x, double y,
                                      struct oj_node_scratch *scratch,
                                      int32_t *depth, struct oj_error *err);

/** *encloses: 1 when a sector at a vertex of the group's rings is inside by
 *  even-odd. */
OJ_MUST_USE oj_status oj_group_encloses(struct oj_figure *f, int32_t group,
                                        double x, double y,
                                        struct oj_node_scratch *scratch,
                                        int *encloses, struct oj_error *err);

void oj_node_scratch_free(struct oj_node_scratch *scratch);

#endif
