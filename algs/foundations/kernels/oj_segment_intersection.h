/** Exact test of how two segments intersect: by four orientations
 * (oj_segment.h), as usual. For collinear segments the boxes decide. */
#ifndef OJ_SEGMENT_INTERSECTION_H
#define OJ_SEGMENT_INTERSECTION_H

#include "oj_segment.h"

/** How two segments intersect, in ascending strength. */
enum oj_contact
{
    OJ_APART = 0,
    OJ_TOUCHING = 1, /**< an end of one segment is on the other, or the segments
                          overlap */
    OJ_CROSSING = 2  /**< the segments cross in one point that is an end of
                          neither */
};

/** Returns 1 if the boxes of the closed segments a b and c d intersect. */
OJ_FN int oj_segment_boxes_meet(double ax, double ay, double bx, double by,
                                double cx, double cy, double dx, double dy)
{
    double x0 = ax < bx ? ax : bx, x1 = ax < bx ? bx : ax;
    double y0 = ay < by ? ay : by, y1 = ay < by ? by : ay;
    double u0 = cx < dx ? cx : dx, u1 = cx < dx ? dx : cx;
    double v0 = cy < dy ? cy : dy, v1 = cy < dy ? dy : cy;
    return (x0 <= u1) & (u0 <= x1) & (y0 <= v1) & (v0 <= y1);
}

/** Returns how the closed segments a b and c d intersect. Precondition: their
 * boxes intersect. A segment of length 0 is a point. */
OJ_FN enum oj_contact oj_segments_contact(double ax, double ay, double bx,
                                          double by, double cx, double cy,
                                          double dx, double dy)
{
    int c = oj_orientation(ax, ay, bx, by, cx, cy);
    int d = oj_orientation(ax, ay, bx, by, dx, dy);
    int a, b;
    if (c * d > 0)
        return OJ_APART;
    a = oj_orientation(cx, cy, dx, dy, ax, ay);
    b = oj_orientation(cx, cy, dx, dy, bx, by);
    if (a * b > 0)
        return OJ_APART;
    /* All four signs 0: the segments are collinear, and intersect because their
     * boxes do. One sign 0: an end of one segment is on the other. */
    return a != 0 && b != 0 && c != 0 && d != 0 ? OJ_CROSSING : OJ_TOUCHING;
}

/** Returns 1 if p is on the closed segment a b. */
OJ_FN int oj_on_segment(double px, double py, double ax, double ay, double bx,
                        double by)
{
    return oj_segment_boxes_meet(ax, ay, bx, by, px, py, px, py) &&
           oj_orientation(ax, ay, bx, by, px, py) == 0;
}

/** Returns 1 if the box is strictly on one side of the line through a and b.
 * Returns 0 if the line may intersect the box. */
OJ_FN int oj_line_misses_box(double ax, double ay, double bx, double by,
                             double x0, double y0, double x1, double y1)
{
    /* the two corners of the box that are farthest from each other across the
     * line */
    int rising = (bx > ax) == (by > ay);
    int first = rising ? oj_orientation(ax, ay, bx, by, x0, y1)
                       : oj_orientation(ax, ay, bx, by, x0, y0);
    int second;
    if (first == 0)
        return 0;
    second = rising ? oj_orientation(ax, ay, bx, by, x1, y0)
                    : oj_orientation(ax, ay, bx, by, x1, y1);
    return first == second;
}

#endif
