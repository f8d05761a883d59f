/** Distance from a point to a segment, and the side of a segment a point is on.
 *  Source: the order of operations of the distance is that of GEOS
 *  (Distance::pointToSegment), so that distances agree bit for bit; the
 *  orientation is a filtered sign with exact expansions behind it
 *  (Shewchuk 1997).
 */
#ifndef OJ_SEGMENT_H
#define OJ_SEGMENT_H

#include "oj_kernel.h"

/** Distance between two points, CRS units. */
OJ_FN double oj_point_distance(double px, double py, double qx, double qy)
{
    double dx = px - qx;
    double dy = py - qy;
    return sqrt(dx * dx + dy * dy);
}

/** Distance from p to the segment a -> b, CRS units.  The direction matters in
 *  the last bit.  NaN when the segment's squared length underflows to 0 though
 *  a != b and p projects onto it: GEOS answers so too, and such a distance
 *  never is the least. */
OJ_FN double oj_segment_distance(double px, double py, double ax, double ay,
                                 double bx, double by)
{
    double dx, dy, len2, r, s;
    if (ax == bx && ay == by)
        return oj_point_distance(px, py, ax, ay);
    dx = bx - ax;
    dy = by - ay;
    len2 = dx * dx + dy * dy;
    r = ((px - ax) * dx + (py - ay) * dy) / len2;
    if (r <= 0.0)
        return oj_point_distance(px, py, ax, ay);
    if (r >= 1.0)
        return oj_point_distance(px, py, bx, by);
    s = ((ay - py) * dx - (ax - px) * dy) / len2;
    return fabs(s) * sqrt(len2);
}

/* --- exact orientation ---------------------------------------------------- */

/** a * b = *high + *low exactly, but for overflow and underflow. */
OJ_FN void oj_two_product(double a, double b, double *high, double *low)
{
    const double splitter = 134217729.0; /* 2^27 + 1 */
    double c, a_high, a_low, b_high, b_low;
    *high = a * b;
    c = splitter * a;
    a_high = c - (c - a);
    a_low = a - a_high;
    c = splitter * b;
    b_high = c - (c - b);
    b_low = b - b_high;
    *low = a_low * b_low -
           (((*high - a_high * b_high) - a_low * b_high) - a_high * b_low);
}

/** Adds value to the expansion e of n components, smallest first. */
OJ_FN int oj_grow_expansion(int n, double *e, double value)
{
    double q = value;
    int i;
    for (i = 0; i < n; i++)
    {
        double sum = q + e[i];
        double part = sum - q;
        double low = (q - (sum - part)) + (e[i] - part);
        e[i] = low;
        q = sum;
    }
    e[n] = q;
    return n + 1;
}

/** Sign of a.x * (b.y - c.y) + b.x * (c.y - a.y) + c.x * (a.y - b.y), exact. */
OJ_FN int oj_orientation_exact(double ax, double ay, double bx, double by,
                               double cx, double cy)
{
    double e[12];
    double high, low;
    int n = 0, i;
    double factor[6][2];
    factor[0][0] = ax;
    factor[0][1] = by;
    factor[1][0] = -ax;
    factor[1][1] = cy;
    factor[2][0] = bx;
    factor[2][1] = cy;
    factor[3][0] = -bx;
    factor[3][1] = ay;
    factor[4][0] = cx;
    factor[4][1] = ay;
    factor[5][0] = -cx;
    factor[5][1] = by;
    for (i = 0; i < 6; i++)
    {
        oj_two_product(factor[i][0], factor[i][1], &high, &low);
        n = oj_grow_expansion(n, e, low);
        n = oj_grow_expansion(n, e, high);
    }
    for (i = n - 1; i >= 0; i--)
    {
        if (e[i] > 0.0)
            return 1;
        if (e[i] < 0.0)
            return -1;
    }
    return 0;
}

/** 1 when c is left of a -> b, -1 when right, 0 when on the line; exact for
 *  coordinates between about 1e-140 and 1e140 in size. */
OJ_FN int oj_orientation(double ax, double ay, double bx, double by, double cx,
                         double cy)
{
    double left = (ax - cx) * (by - cy);
    double right = (ay - cy) * (bx - cx);
    double det = left - right;
    double size = fabs(left) + fabs(right);
    /* Shewchuk's bound A: (3 + 16 u) u; tiny sizes may have underflowed. */
    double bound = 3.3306690738754716e-16 * size;
    if (size > 1e-280)
    {
        if (det > bound)
            return 1;
        if (-det > bound)
            return -1;
    }
    /* what the filter leaves is mostly c on an end, or a line along an axis */
    if (((ax == cx) & (ay == cy)) | ((bx == cx) & (by == cy)) |
        ((ax == cx) & (bx == cx)) | ((ay == cy) & (by == cy)))
        return 0;
    return oj_orientation_exact(ax, ay, bx, by, cx, cy);
}

#endif
