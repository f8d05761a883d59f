/** Distance between two segments. It is 0 exactly if they intersect, decided by
 * exact orientations (in GEOS by rounded arithmetic). Otherwise it is the
 * minimum of the four distances from a vertex to the other segment, in GEOS's
 * order of operations (Distance::segmentToSegment). A segment without length
 * counts as a point. */
#ifndef OJ_SEGMENT_PAIR_H
#define OJ_SEGMENT_PAIR_H

#include "oj_segment_intersection.h"

/** Returns 1 if the interval between u and v and the interval between s and t
 *  overlap.
 */
OJ_FN int oj_segment_intervals_overlap(double u, double v, double s, double t)
{
    double u0 = u < v ? u : v, u1 = u < v ? v : u;
    double s0 = s < t ? s : t, s1 = s < t ? t : s;
    return u0 <= s1 && s0 <= u1;
}

/** Returns the distance between the segments a -> b and c -> d, in CRS units; a
 * segment with equal ends is a point. Exchanging ends or segments may change
 * the last bit. */
OJ_FN double oj_segment_pair_distance(double ax, double ay, double bx,
                                      double by, double cx, double cy,
                                      double dx, double dy)
{
    double least = INFINITY, d;
    if (ax == bx && ay == by)
    {
        d = oj_segment_distance(ax, ay, cx, cy, dx, dy);
        return d < least ? d : least;
    }
    if (cx == dx && cy == dy)
    {
        d = oj_segment_distance(dx, dy, ax, ay, bx, by);
        return d < least ? d : least;
    }
    if (oj_segment_boxes_meet(ax, ay, bx, by, cx, cy, dx, dy) &&
        oj_segments_contact(ax, ay, bx, by, cx, cy, dx, dy) != OJ_APART)
        return 0.0;
    d = oj_segment_distance(ax, ay, cx, cy, dx, dy);
    least = d < least ? d : least;
    d = oj_segment_distance(bx, by, cx, cy, dx, dy);
    least = d < least ? d : least;
    d = oj_segment_distance(cx, cy, ax, ay, bx, by);
    least = d < least ? d : least;
    d = oj_segment_distance(dx, dy, ax, ay, bx, by);
    return d < least ? d : least;
}

#endif
