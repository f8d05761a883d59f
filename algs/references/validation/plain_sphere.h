/** Distances on the sphere for the reference, since GEOS computes in the plane
 *  only.
 *
 *  Simple and slow: vectors in long double, loops over all edges, and the
 *  winding number to decide whether a point is inside a ring.  It shares no
 *  arithmetic with the engine (kernels/oj_sphere.h), but its definitions:
 *  longitudes modulo 360, edges are the shorter great-circle arcs, latitudes
 *  beyond 90 are nowhere, the inside of a ring is the side that does not
 *  contain the point opposite to the mean of its vertices.
 *
 *  Candidates come from boxes in a plane through the axis, onto which the unit
 *  sphere is projected: the chord between two features is at least the distance
 *  of their boxes in that plane.  Source: ours.
 */
#ifndef PLAIN_SPHERE_H
#define PLAIN_SPHERE_H

#include "../../foundations/base/oj_feature_box.h"

/** A vector in space. */
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

/** The box of a feature in that plane; empty if it has no pairs. */
struct oj_box oj_plain_sphere_box(const struct oj_plain_sphere *side,
                                  int64_t feature);

/** An upper bound of the chord of a distance on the sphere. */
double oj_plain_sphere_chord(double metres);

/** Metres between the nearest points of row and feature; 0 inside a polygon
 * part if to_interior. */
double oj_plain_sphere_metres(const struct oj_plain_sphere *points, int64_t row,
                              const struct oj_plain_sphere *side,
                              int64_t feature, int to_interior);

/** Maximum over the vertices of feature_a of the distance in metres to
 * feature_b, whose rings and lines are taken by arcs; of_segments 0: by
 * vertices. */
double oj_plain_sphere_directed(const struct oj_plain_sphere *a,
                                int64_t feature_a,
                                const struct oj_plain_sphere *b,
                                int64_t feature_b, int of_segments);

/** Distance in metres of two vertices. */
double oj_plain_sphere_vertex_distance(const struct oj_plain_sphere *a,
                                       int64_t v,
                                       const struct oj_plain_sphere *b,
                                       int64_t w);

void oj_plain_sphere_free(struct oj_plain_sphere *side);

#endif
