/** Distances between points and multipoints on an ellipsoid, by geodesics. */
#ifndef ELLIPSOID_PAIR_DISTANCE_H
#define ELLIPSOID_PAIR_DISTANCE_H

#include "../../foundations/base/oj_geodesic.h"
#include "cpu_sphere_side.h"

/** The nearest two points of two features. */
struct oj_ellipsoid_pair
{
    double metres;    /**< INFINITY: a feature has no points */
    int64_t from, to; /**< their vertices; of equally near ones the first of
                           `from`, then of `to` */
};

/** Finds the nearest points of feature a of a layer of points and feature b of
 *  a side on the ellipsoid.  O(1) for single points, otherwise the product of
 *  the numbers of points, of which few are measured by a geodesic. */
struct oj_ellipsoid_pair
oj_ellipsoid_nearest_points(const struct oj_ellipsoid *ellipsoid,
                            const struct oj_geodesic *geodesic,
                            const struct oj_flat *flat, int64_t a,
                            const struct oj_sphere_side *side, int64_t b);

#endif
