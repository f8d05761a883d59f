/** Where a feature is nearest to points on the sphere, and in which direction.
 */
#ifndef SPHERE_PAIR_CLOSEST_POINTS_H
#define SPHERE_PAIR_CLOSEST_POINTS_H

#include "../../pairs/selection/oj_nearest_points.h"
#include "cpu_sphere_side.h"

/** As oj_nearest_points_find(), for feature a of points and feature b of a side
 *  with edges: the points in degrees, distance a squared chord.  Of several
 *  such places the first counts, by the points of a, then by the vertices of b.
 *  In a polygon (to the interior) both are the point of a.  Vertices are given
 *  as they are; other points have a longitude from -180 to 180 where the ends
 *  of their edge do, else the one next to these. */
struct oj_nearest_points oj_sphere_points_find(const struct oj_flat *flat,
                                               int64_t a,
                                               const struct oj_sphere_side *b,
                                               int64_t feature);

/** The direction in which the great circle from a to b sets out, degrees
 *  clockwise from north, [0, 360); at a pole north is what its longitude says.
 *  NaN when they are one point, or NaN; any where they are opposite. */
double oj_sphere_bearing(double ax, double ay, double bx, double by);

#endif
