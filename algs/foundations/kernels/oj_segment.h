/** Distance from a point to a segment, and the orientation of three points.
 *
 *  The distance uses GEOS's order of operations (Distance::pointToSegment), so
 *  that results agree bit for bit. The orientation is a filtered sign (Shewchuk
 *  1997); if rounding leaves it open, exact products decide.
 */
#ifndef OJ_SEGMENT_H
#define OJ_SEGMENT_H

#include "oj_exact_product.h"

#include <float.h>

/** Returns the distance between two points, in CRS units. */
OJ_FN double oj_point_distance(double px, double py, double qx, double qy)
{
    double dx = px - qx;
    double dy = py - qy;
    return sqrt(dx * dx + dy * dy);
}

/** Returns the distance from p to the segment a -> b, in CRS units. Exchanging
 * a and b may change the last bit. Bound of the rounding error:
 * OJ_VALIDATION_SLACK (oj_validation.h). */
OJ_FN double oj_segment_distance(double px, double py, double ax, double ay,
                                 double bx, double by)
{
    double dx = bx - ax, dy = by - ay, len2 = dx * dx + dy * dy, r, s;
    if (!(len2 >= DBL_MIN)) /* The squared length underflows: the segment is a
                               point, or shorter than 2^-511. Returns the
                               distance to the nearer end (GEOS's result is
                               arbitrary). */
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

/** Returns the result of oj_segment_distance() without its branches, for loops
 * over segments. The operations have that function's order, so results are
 * equal bit by bit. */
OJ_FN double oj_segment_distance_without_branches(double px, double py,
                                                  double ax, double ay,
                                                  double bx, double by)
{
    double dx = bx - ax, dy = by - ay;
    double ux = px - ax, uy = py - ay;
    double vx = px - bx, vy = py - by;
    double len2 = dx * dx + dy * dy;
    double r = (ux * dx + uy * dy) / len2;
    double s = ((ay - py) * dx - (ax - px) * dy) / len2;
    double to_a2 = ux * ux + uy * uy, to_b2 = vx * vx + vy * vy;
    int is_short = !(len2 >= DBL_MIN);
    int at_start = is_short ? to_a2 <= to_b2 : r <= 0.0;
    double to_end = sqrt(at_start ? to_a2 : to_b2);
    double to_line = fabs(s) * sqrt(len2);
    return (is_short | at_start | (r >= 1.0)) ? to_end : to_line;
}

/* --- exact orientation ---------------------------------------------------- */

/** Returns the sign (-1, 0, 1) of the exact sum a.x * (b.y - c.y) + b.x * (c.y
 * - a.y) + c.x * (a.y - b.y). */
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

/** Returned by oj_orientation_if_certain() if rounded arithmetic does not
 * decide the sign. */
#define OJ_SIGN_OPEN 2

/** Shewchuk's error bound A, (3 + 16 u) u with u = 2^-53. The error of det in
 * oj_orientation_if_certain() needs (3 + 12 u) u, and the rounding of the bound
 * itself raises this to (3 + 15 u) u. The remaining u^2 also covers the
 * underflow of products, 2^-1074, except for tiny numbers (size up to
 * 1e-280). */
#define OJ_ORIENTATION_ERROR 3.3306690738754716e-16

/** Returns the sign of oj_orientation() if rounded arithmetic proves it,
 * otherwise OJ_SIGN_OPEN. A returned sign is never wrong. */
OJ_FN int oj_orientation_if_certain(double ax, double ay, double bx, double by,
                                    double cx, double cy)
{
    double left = (ax - cx) * (by - cy);
    double right = (ay - cy) * (bx - cx);
    double det = left - right;
    double size = fabs(left) + fabs(right);
    double bound = OJ_ORIENTATION_ERROR * size;
    if (size > 1e-280)
    {
        if (det > bound)
            return 1;
        if (-det > bound)
            return -1;
    }
    /* shortcut: in most undecided cases c equals a or b, or all points are on a
     * horizontal or vertical line, so the sign is 0 */
    if (((ax == cx) & (ay == cy)) | ((bx == cx) & (by == cy)) |
        ((ax == cx) & (bx == cx)) | ((ay == cy) & (by == cy)))
        return 0;
    return OJ_SIGN_OPEN;
}

/** Returns 1 if c is left of a -> b, -1 if right, 0 if on the line. Exact for
 * coordinates of magnitude up to 1e150, subnormal numbers included. */
OJ_FN int oj_orientation(double ax, double ay, double bx, double by, double cx,
                         double cy)
{
    int sign = oj_orientation_if_certain(ax, ay, bx, by, cx, cy);
    return sign != OJ_SIGN_OPEN ? sign
                                : oj_orientation_exact(ax, ay, bx, by, cx, cy);
}

#endif
