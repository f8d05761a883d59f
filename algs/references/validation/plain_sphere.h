/** Distances on the sphere for its reference, which GEOS does not know.
 *
 *  The plain way: vectors in long double, every edge looked at, a point's being
 *  inside told by the angle through which the ring turns around it.  It shares
 *  no arithmetic with the fast way (kernels/oj_sphere.h), but what a feature on
 *  the sphere is, it takes from there: longitudes modulo 360, edges the shorter
 *  great-circle arcs, latitudes beyond 90 nowhere, the inside of a ring the
 *  side away from the point opposite to the mean of its vertices.
 *
 *  Candidates come from boxes in a plane through the axis, on which the unit
 *  sphere is projected: two features are at least as far apart straight through
 *  space (a chord) as their boxes are there.  Source: ours.
 */
#ifndef PLAIN_SPHERE_H
#define PLAIN_SPHERE_H

#include "../../foundations/base/oj_feature_box.h"

/** On the unit sphere. */
struct wide3
{
    long double x, y, z;
};

/** A side of a join. Owner; zeroed memory is a valid empty one. */
struct oj_plain_sphere
{
    const struct oj_flat *flat; /**< outlives this */
    struct wide3 *at;           /**< [n_vertices] */
};

OJ_MUST_USE oj_status oj_plain_sphere_make(struct oj_plain_sphere *side,
                                           const struct oj_flat *flat,
                                           struct oj_error *err);

/** The box of a feature in that plane; empty when it joins nothing. */
struct oj_box oj_plain_sphere_box(const struct oj_plain_sphere *side,
                                  int64_t feature);

/** At least the chord of a distance on the sphere. */
double oj_plain_sphere_chord(double metres);

/** Metres from the nearest point of row to the nearest point of feature; 0 in a
 *  polygon part when to_interior. */
double oj_plain_sphere_metres(const struct oj_plain_sphere *points, int64_t row,
                              const struct oj_plain_sphere *side,
                              int64_t feature, int to_interior);

/** The greatest of the least distances, in metres, from a vertex of feature_a
 *  to feature_b, rings and lines by their arcs; of_segments 0: to its
 *  vertices. */
double oj_plain_sphere_directed(const struct oj_plain_sphere *a,
                                int64_t feature_a,
                                const struct oj_plain_sphere *b,
                                int64_t feature_b, int of_segments);

/** Metres between two vertices. */
double oj_plain_sphere_vertices(const struct oj_plain_sphere *a, int64_t v,
                                const struct oj_plain_sphere *b, int64_t w);

void oj_plain_sphere_free(struct oj_plain_sphere *side);

#endif
