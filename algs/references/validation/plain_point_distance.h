/** Distance from a point to a feature of a flat layer: a simple loop over all
 * segments with the shared kernels, part by part like GEOS. */
#ifndef PLAIN_POINT_DISTANCE_H
#define PLAIN_POINT_DISTANCE_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/relation/oj_relation.h"

/** Minimum distance from (x, y) to the parts of a feature, in CRS units;
 * INFINITY if it has no parts. With OJ_TO_INTERIOR it is 0 if the point is
 * inside an odd number of a polygon's rings or on a ring. */
double oj_flat_distance(const struct oj_flat *flat, int64_t feature,
                        enum oj_distance_to distance_to, double x, double y);

#endif
