/** The closest points of two features on the sphere or on an ellipsoid, and the
 * bearing from one point to another on the sphere. */
#ifndef SPHERE_PAIR_CLOSEST_POINTS_H
#define SPHERE_PAIR_CLOSEST_POINTS_H

#include "../../pairs/selection/oj_nearest_points.h"
#include "ellipsoid_pair_distance.h"

/** Like oj_nearest_points_find(), for feature a of a layer of points and
 *  feature b of a prepared side with edges. Points are in degrees; the distance
 *  is a squared chord.
 *
 *  Ties: the first point of a, then the first vertex of b. If the point of a is
 *  inside a polygon (and interiors count), both results are this point.
 *  Vertices are returned unchanged. Other points have a longitude in -180 ..
 *  180, or near the longitudes of their edge if these exceed 180.
 */
struct oj_nearest_points oj_sphere_points_find(const struct oj_flat *flat,
                                               int64_t a,
                                               const struct oj_sphere_side *b,
                                               int64_t feature);

/** Like oj_sphere_points_find(), for features a and b of points on an
 *  ellipsoid; the distance is in metres. */
struct oj_nearest_points
oj_ellipsoid_points_find(const struct oj_ellipsoid *ellipsoid,
                         const struct oj_geodesic *geodesic,
                         const struct oj_flat *flat, int64_t a,
                         const struct oj_sphere_side *b, int64_t feature);

/** Initial bearing of the great circle from a to b, in degrees clockwise from
 * north, in [0, 360). At a pole, its longitude defines north. NaN if the points
 * are equal or a coordinate is NaN; arbitrary for antipodal points. */
double oj_sphere_bearing(double ax, double ay, double bx, double by);

#endif
