/** Distance from a point to a feature of a flat layer, every segment of it:
 *  the plain way, with the shared kernels, part by part as GEOS has it. */
#ifndef PLAIN_POINT_DISTANCE_H
#define PLAIN_POINT_DISTANCE_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/relation/oj_relation.h"

/** Least distance from x, y to the parts of feature, CRS units; INFINITY for a
 *  feature without parts. To the interior, a polygon part is at distance 0
 *  where an odd number of its rings hold the point or one passes through it. */
double oj_flat_distance(const struct oj_flat *flat, int64_t feature,
                        enum oj_distance_to distance_to, double x, double y);

#endif
