/** Distance from a vertex to a segment for the Hausdorff distance, bit for bit
 * as in GEOS. GEOS computes it in another order of operations than the minimum
 * distance (oj_segment.h). */
#ifndef OJ_CLOSEST_POINT_DISTANCE_H
#define OJ_CLOSEST_POINT_DISTANCE_H

#include "oj_kernel.h"

/** Returns the squared distance from p to the segment a -> b, computed by way
 *  of the closest point. a and b may be equal. Exchanging a and b may change
 *  the last bit. There are no branches, so that loops over segments vectorise.
 *
 *  Source: GEOS's LineSegment::closestPoint(). To choose the nearer end, GEOS
 *  compares distances, and this function their squares. The result is equal.
 */
OJ_FN double oj_closest_point_distance2(double px, double py, double ax,
                                        double ay, double bx, double by)
{
    double dx = bx - ax, dy = by - ay;
    double pax = px - ax, pay = py - ay, pbx = px - bx, pby = py - by;
    /* for a == b, r is NaN or infinite: the distance to an end is used */
    double r = (pax * dx + pay * dy) / (dx * dx + dy * dy);
    double cx = ax + r * dx - px, cy = ay + r * dy - py;
    double to_a = pax * pax + pay * pay, to_b = pbx * pbx + pby * pby;
    double to_end = to_a < to_b ? to_a : to_b, to_c = cx * cx + cy * cy;
    return ((r > 0.0) & (r < 1.0)) ? to_c : to_end;
}

#endif
