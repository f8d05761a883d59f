/** Distance from a point to a feature of a flat layer: a simple loop over all
 * segments with the shared kernels, part by part like GEOS. */
#ifndef PLAIN_POINT_DISTANCE_H
#define PLAIN_POINT_DISTANCE_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/relation/oj_relation.h"

/** Returns the minimum distance from (x, y) to the parts of a feature, in CRS
 * units; INFINITY if it has no parts. With OJ_TO_INTERIOR it is 0 if the point
 * is inside an odd number of a polygon's rings or on a ring. */
double oj_flat_distance(const struct oj_flat *flat, int64_t feature,
                        enum oj_distance_to distance_to, double x, double y);

/** Returns the distance from (x, y) to those segments of lines and rings whose
 * direction fits the heading (struct oj_flat.heading). If the heading is NaN,
 * measures to all segments and points, like oj_flat_distance(). Angles are
 * compared in degrees; differences below 1e-9 degrees are decided by
 * oj_heading_fits(). */
double oj_flat_distance_by_heading(const struct oj_flat *flat, int64_t feature,
                                   double x, double y,
                                   const struct oj_heading_condition *condition,
                                   double heading);

#endif
