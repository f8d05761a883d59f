/** Boxes in the plane, and the margin by which filters widen them against
 * rounding. */
#ifndef OJ_BOX_H
#define OJ_BOX_H

#include "oj_kernel.h"

/** Closed box; empty when x0 > x1. */
struct oj_box
{
    double x0, y0, x1, y1;
};

/** Maximum error that the underflow of squares can cause in a computed distance
 * (proof: oj_validation.h): two features closer than this may have a computed
 * distance of 0. Box filters must allow for it. */
#define OJ_LEAST_DISTANCE 0x1p-510

/** Returns an upper bound of the rounding error of a computed distance, for
 * coordinates of magnitude up to size: 32 ulp of size. (The proof in
 * oj_validation.h gives 22 * 2^-53 times the distance of two points, which is
 * at most 2 sqrt(2) size.) */
OJ_FN double oj_box_rounding_error(double size)
{
    return 0x1p-47 * size + OJ_LEAST_DISTANCE;
}

/** Returns the larger of two numbers, neither of them NaN. It is inlined,
 * unlike fmax(). */
OJ_FN double oj_larger(double a, double b)
{
    return a > b ? a : b;
}

OJ_FN struct oj_box oj_box_empty(void)
{
    struct oj_box box = {INFINITY, INFINITY, -INFINITY, -INFINITY};
    return box;
}

OJ_FN int oj_box_is_empty(const struct oj_box *box)
{
    return !(box->x0 <= box->x1);
}

OJ_FN int oj_box_intersects(const struct oj_box *a, const struct oj_box *b)
{
    return a->x0 <= b->x1 && b->x0 <= a->x1 && a->y0 <= b->y1 && b->y0 <= a->y1;
}

OJ_FN int oj_box_covers(const struct oj_box *a, const struct oj_box *b)
{
    return a->x0 <= b->x0 && a->y0 <= b->y0 && a->x1 >= b->x1 && a->y1 >= b->y1;
}

OJ_FN void oj_box_add_point(struct oj_box *box, double x, double y)
{
    box->x0 = x < box->x0 ? x : box->x0;
    box->y0 = y < box->y0 ? y : box->y0;
    box->x1 = x > box->x1 ? x : box->x1;
    box->y1 = y > box->y1 ? y : box->y1;
}

/** Enlarges box so that it contains b, which may be empty. */
OJ_FN void oj_box_add_box(struct oj_box *box, const struct oj_box *b)
{
    box->x0 = b->x0 < box->x0 ? b->x0 : box->x0;
    box->y0 = b->y0 < box->y0 ? b->y0 : box->y0;
    box->x1 = b->x1 > box->x1 ? b->x1 : box->x1;
    box->y1 = b->y1 > box->y1 ? b->y1 : box->y1;
}

/** Returns the largest magnitude of a coordinate of box. */
OJ_FN double oj_box_largest_coordinate(const struct oj_box *box)
{
    double x = oj_larger(fabs(box->x0), fabs(box->x1));
    double y = oj_larger(fabs(box->y0), fabs(box->y1));
    return oj_larger(x, y);
}

/** Enlarges box by reach (>= 0, may be INFINITY) on every side, and by the
 * maximum rounding error. The result is clamped to finite numbers. */
OJ_FN struct oj_box oj_box_widened(const struct oj_box *box, double reach)
{
    const double most = 1.7976931348623157e308;
    double by =
        reach + oj_box_rounding_error(oj_box_largest_coordinate(box) + reach);
    struct oj_box grown = {box->x0 - by, box->y0 - by, box->x1 + by,
                           box->y1 + by};
    /* a NaN (infinity minus infinity) is clamped, too */
    grown.x0 = grown.x0 > -most ? grown.x0 : -most;
    grown.y0 = grown.y0 > -most ? grown.y0 : -most;
    grown.x1 = grown.x1 < most ? grown.x1 : most;
    grown.y1 = grown.y1 < most ? grown.y1 : most;
    return grown;
}

#endif
