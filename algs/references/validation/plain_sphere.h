/** Distances on the sphere, and from points on an ellipsoid, for the reference,
 *  since GEOS computes in the plane only.  Simple and slow: vectors in long
 * double, loops over all edges, and winding numbers to locate points in rings.
 * It has the definitions of the engine (cpu_sphere_side.h), but shares no
 * arithmetic with it: longitudes modulo 360, edges are the shorter great-circle
 * arcs, features with latitudes beyond 90 have no pairs, the inside of a ring
 * is the side that does not contain the antipode of the mean of its vertices.
 * On an ellipsoid, whose vectors are in units of its semi-major axis, geodesics
 * measure each pair of points, and edges are geodesics: these are cut into
 * pieces, on which golden sections find the nearest point. Rings are located by
 * points on their edges every .0005 a (3 km on the Earth), between which the
 * section by a plane is within .6 mm.
 *
 *  Candidates are found by boxes in a plane through the Earth's axis, onto
 *  which the globe is projected: the chord between two features is at least the
 *  distance of their boxes in the plane.  Source: ours.
 */
#ifndef PLAIN_SPHERE_H
#define PLAIN_SPHERE_H

#include "../../foundations/base/oj_feature_box.h"
#include "../../foundations/base/oj_geodesic.h"

/** A vector in space. */
struct wide3
{
    long double x, y, z;
};

/** One side of a join. Owner; zeroed memory is a valid empty value. */
struct oj_plain_sphere
{
    const struct oj_flat *flat; /**< must outlive this */
    struct wide3 *at;           /**< [n_vertices] unit vectors, or vectors of
                                     the ellipsoid */
    struct oj_ellipsoid ellipsoid;
    struct oj_geodesic *geodesic; /**< NULL on the sphere */
};

/** Prepares a side: on the sphere if ellipsoid is NULL; otherwise one of the
 * two sides must be of points. side must be zeroed, and must be freed also
 * after an error. */
OJ_MUST_USE oj_status oj_plain_sphere_make(struct oj_plain_sphere *side,
                                           const struct oj_flat *flat,
                                           const struct oj_ellipsoid *ellipsoid,
                                           struct oj_error *err);

/** Returns the box of a feature in the plane of projection; empty if it has no
 * pairs. */
struct oj_box oj_plain_sphere_box(const struct oj_plain_sphere *side,
                                  int64_t feature);

/** Returns a number that the chord of two points within this distance in metres
 * never exceeds. */
double oj_plain_sphere_chord(const struct oj_plain_sphere *side, double metres);

/** Returns the metres between the nearest points of row and feature. With
 * to_interior 1 the distance is 0 inside of a polygon. */
double oj_plain_sphere_metres(const struct oj_plain_sphere *points, int64_t row,
                              const struct oj_plain_sphere *side,
                              int64_t feature, int to_interior);

/** Returns the directed Hausdorff distance in metres: the maximum over the
 * vertices of feature_a of the distance to feature_b's arcs, or with
 * of_segments 0 to its vertices. */
double oj_plain_sphere_directed_hausdorff(const struct oj_plain_sphere *a,
                                          int64_t feature_a,
                                          const struct oj_plain_sphere *b,
                                          int64_t feature_b, int of_segments);

/** Returns the metres between vertex v of a and vertex w of b. */
double oj_plain_sphere_vertex_distance(const struct oj_plain_sphere *a,
                                       int64_t v,
                                       const struct oj_plain_sphere *b,
                                       int64_t w);

void oj_plain_sphere_free(struct oj_plain_sphere *side);

#endif
