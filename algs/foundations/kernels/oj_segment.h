/** Distance from a point to a segment, and the side of a segment a point is on.
 *  Source: the order of operations of the distance is that of GEOS
 *  (Distance::pointToSegment), so that distances agree bit for bit; the
 *  orientation is a filtered sign (Shewchuk 1997) with exact products
 *  behind it.
 */
#ifndef OJ_SEGMENT_H
#define OJ_SEGMENT_H

#include "oj_exact_product.h"

#include <float.h>

/** Distance between two points, CRS units. */
OJ_FN double oj_point_distance(double px, double py, double qx, double qy)
{
    double dx = px - qx;
    double dy = py - qy;
    return sqrt(dx * dx + dy * dy);
}

/** Distance from p to the segment a -> b, CRS units.  Exchanging a and b may
 * change the last bit.  Bound of the rounding error: OJ_VALIDATION_SLACK
 * (oj_validation.h). */
OJ_FN double oj_segment_distance(double px, double py, double ax, double ay,
                                 double bx, double by)
{
    double dx = bx - ax, dy = by - ay, len2 = dx * dx + dy * dy, r, s;
    if (!(len2 >= DBL_MIN)) /* A point, or a segment shorter than 2^-511, for
                               which GEOS's result is arbitrary. */
    {
        r = oj_point_distance(px, py, ax, ay);
        s = oj_point_distance(px, py, bx, by);
        return r < s ? r : s;
    }
    r = ((px - ax) * dx + (py - ay) * dy) / len2;
    if (r <= 0.0)
        return oj_point_distance(px, py, ax, ay);
    if (r >= 1.0)
        return oj_point_distance(px, py, bx, by);
    s = ((ay - py) * dx - (ax - px) * dy) / len2;
    return fabs(s) * sqrt(len2);
}

/* --- exact orientation ---------------------------------------------------- */

/** Sign of a.x * (b.y - c.y) + b.x * (c.y - a.y) + c.x * (a.y - b.y), exact. */
OJ_FN int oj_orientation_exact(double ax, double ay, double bx, double by,
                               double cx, double cy)
{
    struct oj_exact_product product[6];
    product[0] = oj_exact_product_of(ax, by);
    product[1] = oj_exact_product_of(-ax, cy);
    product[2] = oj_exact_product_of(bx, cy);
    product[3] = oj_exact_product_of(-bx, ay);
    product[4] = oj_exact_product_of(cx, ay);
    product[5] = oj_exact_product_of(-cx, by);
    return oj_exact_product_sum_sign(product, 6);
}

/** In place of a sign: it takes exact arithmetic to find it. */
#define OJ_SIGN_OPEN 2

/** oj_orientation() where rounded arithmetic decides it, else OJ_SIGN_OPEN. */
OJ_FN int oj_orientation_rounded(double ax, double ay, double bx, double by,
                                 double cx, double cy)
{
    double left = (ax - cx) * (by - cy);
    double right = (ay - cy) * (bx - cx);
    double det = left - right;
    double size = fabs(left) + fabs(right);
    /* Shewchuk's bound A: (3 + 16 u) u; (3 + 12 u) u is needed, and 15 u would
     * cover the rounding of the bound.  The rest, u^2 size, exceeds what
     * products lose by underflow (2^-1074) unless they are tiny. */
    double bound = 3.3306690738754716e-16 * size;
    if (size > 1e-280)
    {
        if (det > bound)
            return 1;
        if (-det > bound)
            return -1;
    }
    /* Most pairs that pass the filter have c on an end, or lie on a line along
     * an axis: their sign is 0 without exact products. */
    if (((ax == cx) & (ay == cy)) | ((bx == cx) & (by == cy)) |
        ((ax == cx) & (bx == cx)) | ((ay == cy) & (by == cy)))
        return 0;
    return OJ_SIGN_OPEN;
}

/** 1 if c is left of a -> b, -1 if right, 0 if on the line.  Exact for
 * coordinates of magnitude up to 1e150, subnormal ones included. */
OJ_FN int oj_orientation(double ax, double ay, double bx, double by, double cx,
                         double cy)
{
    int sign = oj_orientation_rounded(ax, ay, bx, by, cx, cy);
    return sign != OJ_SIGN_OPEN ? sign
                                : oj_orientation_exact(ax, ay, bx, by, cx, cy);
}

#endif
