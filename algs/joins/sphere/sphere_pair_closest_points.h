/** The closest points of two features on the sphere, and the bearing from one
 * point to another there. */
#ifndef SPHERE_PAIR_CLOSEST_POINTS_H
#define SPHERE_PAIR_CLOSEST_POINTS_H

#include "../../pairs/selection/oj_nearest_points.h"
#include "cpu_sphere_side.h"

/** Like oj_nearest_points_find(), for feature a of flat, a layer of points, and
 *  a feature of b, a prepared side with edges. Points are in degrees; the
 *  distance is a squared chord.
 *
 *  Ties: the first point of a, then the first vertex of `feature`. If the point
 *  of a is inside a polygon (and interiors count), both results are this point.
 *  Vertices are returned unchanged. Other points have a longitude in -180 ..
 *  180, or near the longitudes of their edge if these exceed 180.
 */
struct oj_nearest_points
oj_sphere_find_closest_points(const struct oj_flat *flat, int64_t a,
                              const struct oj_sphere_side *b, int64_t feature);

/** Returns the initial bearing of the great circle from a to b, in degrees
 * clockwise from north, in [0, 360). At a pole, its longitude defines north.
 * Returns NaN if the points are equal or a coordinate is NaN, and any value
 * for antipodal points. */
double oj_sphere_bearing(double ax, double ay, double bx, double by);

#endif
