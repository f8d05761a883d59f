/** The nearest points of two features on the sphere, and the bearing between
 * them. */
#ifndef SPHERE_PAIR_CLOSEST_POINTS_H
#define SPHERE_PAIR_CLOSEST_POINTS_H

#include "../../pairs/selection/oj_nearest_points.h"
#include "cpu_sphere_side.h"

/** Like oj_nearest_points_find(), for feature a of points and feature b of a
 * side with edges: points in degrees, the distance as a squared chord.  Of
 * equally near places the first counts, by the points of a, then by the
 * vertices of b. If the point of a is in a polygon (with interiors), it is
 * both points.  Vertices are returned unchanged.  Other points have a
 * longitude from -180 to 180 if the ends of their edge do, otherwise the
 * equivalent one near these. */
struct oj_nearest_points oj_sphere_points_find(const struct oj_flat *flat,
                                               int64_t a,
                                               const struct oj_sphere_side *b,
                                               int64_t feature);

/** Initial bearing of the great circle from a to b, degrees clockwise from
 * north, in [0, 360); at a pole, north is defined by its longitude. NaN if the
 * points are equal or NaN; arbitrary if they are opposite. */
double oj_sphere_bearing(double ax, double ay, double bx, double by);

#endif
