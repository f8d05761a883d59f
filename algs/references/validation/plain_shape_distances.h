/** Hausdorff and Frechet distances for the references, if GEOS has no function
 * or its function cannot be used: loops over all vertices and segments. */
#ifndef PLAIN_SHAPE_DISTANCES_H
#define PLAIN_SHAPE_DISTANCES_H

#include "plain_sphere.h"

/** Returns the directed Hausdorff distance: the maximum over the vertices of
 * feature_a of the distance to feature_b's segments, as in GEOS, or with
 * of_segments 0 to feature_b's vertices. Both features must have vertices.
 * O(vertices of a x vertices of b). */
double oj_plain_shapes_directed_hausdorff(const struct oj_flat *a,
                                          int64_t feature_a,
                                          const struct oj_flat *b,
                                          int64_t feature_b, int of_segments);

/** Sets *out to the discrete Frechet distance, by a table of which two rows are
 * in memory: in metres if sphere_a and sphere_b are the sides on the sphere, in
 * the plane if both are NULL. Source: Eiter and Mannila 1994. */
OJ_MUST_USE oj_status oj_plain_shapes_frechet(
    const struct oj_flat *a, int64_t feature_a,
    const struct oj_plain_sphere *sphere_a, const struct oj_flat *b,
    int64_t feature_b, const struct oj_plain_sphere *sphere_b, double *out,
    struct oj_error *err);

#endif
