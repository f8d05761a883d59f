/** Distances of shapes for the references where GEOS has no function or cannot
 *  be asked: the plain way, every vertex with every vertex or segment. */
#ifndef PLAIN_SHAPE_DISTANCES_H
#define PLAIN_SHAPE_DISTANCES_H

#include "plain_sphere.h"

/** The greatest distance from a vertex of feature_a to feature_b, rings and
 *  lines by their segments as GEOS takes them; of_segments 0: to its vertices.
 *  Both have vertices.  O(vertices of a x vertices of b). */
double oj_plain_shapes_directed(const struct oj_flat *a, int64_t feature_a,
                                const struct oj_flat *b, int64_t feature_b,
                                int of_segments);

/** The discrete Frechet distance: the whole table, two rows at a time.
 *  sphere_a, sphere_b: the same on the sphere, or NULL: in the plane.
 *  Source: Eiter and Mannila 1994. */
OJ_MUST_USE oj_status oj_plain_shapes_frechet(
    const struct oj_flat *a, int64_t feature_a,
    const struct oj_plain_sphere *sphere_a, const struct oj_flat *b,
    int64_t feature_b, const struct oj_plain_sphere *sphere_b, double *out,
    struct oj_error *err);

#endif
