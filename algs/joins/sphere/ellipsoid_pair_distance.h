/** Distances on an ellipsoid between points and features of any type, by
 *  geodesics, and their bounds by chords. */
#ifndef ELLIPSOID_PAIR_DISTANCE_H
#define ELLIPSOID_PAIR_DISTANCE_H

#include "../../foundations/base/oj_geodesic.h"
#include "../../pairs/selection/oj_nearest_points.h"
#include "cpu_sphere_side.h"

/** Both sides of a join on an ellipsoid. At least one feature of a pair
 *  consists of points. A side with other features was built with edges. */
struct oj_ellipsoid_sides
{
    const struct oj_ellipsoid *ellipsoid;
    const struct oj_geodesic *geodesic;
    const struct oj_sphere_side *input, *join;
};

/** Returns 1 if all features of a layer are points or multipoints. */
int oj_flat_has_points_only(const struct oj_flat *flat);

/** Bounds of the squared chord between the nearest points of two features, in
 *  units of the semi-major axis. */
struct oj_chord2_range
{
    double least2, most2; /**< both INFINITY: the chord is beyond the limit, or
                               a feature has no points */
};

/** Returns the bounds for feature a of the input side and feature b of the join
 *  side; both are 0 if a point is surely inside of a polygon. Computes no
 *  geodesics. Bounds beyond limit2 may be INFINITY. */
struct oj_chord2_range
oj_ellipsoid_chord_range(const struct oj_ellipsoid_sides *sides, int64_t a,
                         int64_t b, double limit2);

/** Finds the nearest points of feature a of the input side and feature b of
 *  the join side, and their distance in metres. most2 is the member of their
 *  chord range (oj_ellipsoid_chord_range()). If a point is inside of a polygon,
 *  both nearest points are this point. Of equally near points the first one of
 *  the input feature counts, then the first one of the join feature. Distances
 *  between points are geodesics from the input's point to the join's; those
 *  from edges are measured as in ellipsoid_edge_distance.h. O(1) for single
 *  points, otherwise the product of the numbers of points or edges, of which
 *  few are measured by geodesics. */
struct oj_nearest_points
oj_ellipsoid_find_nearest_points(const struct oj_ellipsoid_sides *sides,
                                 int64_t a, int64_t b, double most2);

#endif
