/** Exact point-in-ring test by the even-odd rule, edge by edge. Of the two ends
 * of an edge, the lower one belongs to it and the upper one does not, as usual.
 * So every closed ring gives a defined result, valid or not. */
#ifndef OJ_RING_H
#define OJ_RING_H

#include "oj_segment.h"

/** Where a point is relative to a ring or polygon. */
enum oj_location
{
    OJ_OUTSIDE = 0,
    OJ_INSIDE = 1,
    OJ_ON_BOUNDARY = 2
};

/** Tests edge a -> b of a ring against the ray from p towards +x. Returns 1 if
 * the ray crosses the edge (callers xor the results), else 0; OJ_ON_BOUNDARY
 * if p lies on the edge. */
OJ_FN int oj_ring_edge_crosses_ray(double px, double py, double ax, double ay,
                                   double bx, double by)
{
    int side;
    if ((ay > py) == (by > py))
    {
        /* no crossing; p may still be an end of the edge, or lie on a
         * horizontal edge */
        if (ay == py && by == py)
            return (ax <= px && px <= bx) || (bx <= px && px <= ax)
                       ? OJ_ON_BOUNDARY
                       : 0;
        if ((ax == px && ay == py) || (bx == px && by == py))
            return OJ_ON_BOUNDARY;
        return 0;
    }
    if (ax < px && bx < px)
        return 0;
    side = oj_orientation(ax, ay, bx, by, px, py);
    if (side == 0)
        return OJ_ON_BOUNDARY;
    return (side > 0) == (by > ay);
}

/** Returns the location of p relative to the closed ring x[0..n-1] (last vertex
 * == first). O(n). */
OJ_FN enum oj_location oj_ring_locate(double px, double py, const double *x,
                                      const double *y, int64_t n)
{
    int odd = 0;
    int64_t i;
    for (i = 0; i + 1 < n; i++)
    {
        int edge =
            oj_ring_edge_crosses_ray(px, py, x[i], y[i], x[i + 1], y[i + 1]);
        if (edge == OJ_ON_BOUNDARY)
            return OJ_ON_BOUNDARY;
        odd ^= edge;
    }
    return odd ? OJ_INSIDE : OJ_OUTSIDE;
}

/** Returns the location of p by the even-odd rule over the rings first .. end -
 * 1 together. Ring r has the vertices offset[r] .. offset[r + 1] - 1. */
OJ_FN enum oj_location oj_rings_locate_by_even_odd(double px, double py,
                                                   const double *x,
                                                   const double *y,
                                                   const int64_t *offset,
                                                   int64_t first, int64_t end)
{
    int odd = 0;
    int64_t r;
    for (r = first; r < end; r++)
    {
        enum oj_location at = oj_ring_locate(
            px, py, x + offset[r], y + offset[r], offset[r + 1] - offset[r]);
        if (at == OJ_ON_BOUNDARY)
            return OJ_ON_BOUNDARY;
        odd ^= at == OJ_INSIDE;
    }
    return odd ? OJ_INSIDE : OJ_OUTSIDE;
}

#endif
