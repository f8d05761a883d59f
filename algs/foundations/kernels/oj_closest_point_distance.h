/** How far a vertex is from a segment in the order of operations of GEOS's
 *  Hausdorff distance, which is another one than that of its least distance
 *  (oj_segment.h). */
#ifndef OJ_CLOSEST_POINT_DISTANCE_H
#define OJ_CLOSEST_POINT_DISTANCE_H

#include "oj_kernel.h"

/** The square of the distance from p to the segment from a to b, by way of the
 *  closest point; a and b may be equal.  The direction decides about the last
 *  bit.  Without branches, for vectors of segments.
 *  Source: what GEOS's LineSegment::closestPoint() computes; of the two ends
 *  the nearer one by squares, whose root is the same. */
OJ_FN double oj_closest_point_distance2(double px, double py, double ax,
                                        double ay, double bx, double by)
{
    double dx = bx - ax, dy = by - ay;
    double pax = px - ax, pay = py - ay, pbx = px - bx, pby = py - by;
    /* no length: NaN or infinite, which is not between the ends */
    double r = (pax * dx + pay * dy) / (dx * dx + dy * dy);
    double cx = ax + r * dx - px, cy = ay + r * dy - py;
    double to_a = pax * pax + pay * pay, to_b = pbx * pbx + pby * pby;
    double to_end = to_a < to_b ? to_a : to_b, to_c = cx * cx + cy * cy;
    return ((r > 0.0) & (r < 1.0)) ? to_c : to_end;
}

#endif
