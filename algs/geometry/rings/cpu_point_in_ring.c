#include "cpu_point_in_ring.h"

#include "../../foundations/base/cpu_lane_loops.h"

#include <stddef.h>

OJ_INLINE double greater(double a, double b)
{
    return a > b ? a : b;
}

/* Returns the bit mask of the edges, of eight, whose boxes intersect the box of
 * either half of the path (struct oj_ring_way). */
OJ_INLINE unsigned edges_near_path(const struct oj_ring_way *w, const double *x,
                                   const double *y)
{
    double apart[OJ_LANES]; /* > 0: the edge's box is disjoint from both boxes
                               of the path. (The differences are rounded, but
                               their signs are exact.) */
    unsigned bits = 0;
    OJ_EIGHT
    {
        double x0 = x[c] < x[c + 1] ? x[c] : x[c + 1];
        double x1 = x[c] < x[c + 1] ? x[c + 1] : x[c];
        double y0 = y[c] < y[c + 1] ? y[c] : y[c + 1];
        double y1 = y[c] < y[c + 1] ? y[c + 1] : y[c];
        double across = greater(greater(y0 - w->py, w->py - y1),
                                greater(x0 - w->right, w->left - x1));
        double along = greater(greater(x0 - w->cx, w->cx - x1),
                               greater(y0 - w->high, w->low - y1));
        apart[c] = across < along ? across : along;
    }
    for (int c = 0; c < OJ_LANES; c++)
        bits |= (unsigned)(apart[c] <= 0.0) << c;
    return bits;
}

OJ_CLONES uint64_t oj_ring_edges_near_path(const struct oj_ring_way *borrowed,
                                           const double *x, const double *y,
                                           int n)
{
    const struct oj_ring_way w = *borrowed;
    uint64_t bits = 0;
    int i = 0;
    for (; i + OJ_LANES <= n; i += OJ_LANES)
        bits |= (uint64_t)edges_near_path(&w, x + i, y + i) << i;
    if (i < n && n >= OJ_LANES)
    {
        i = n - OJ_LANES;
        bits |= (uint64_t)edges_near_path(&w, x + i, y + i) << i;
    }
    else
    {
        for (; i < n; i++)
            bits |= (uint64_t)1 << i;
    }
    return bits;
}

static uint64_t find_edges_at_height(double py, const double *y, int n)
{
    uint64_t bits = 0;
    for (int i = 0; i < n; i++)
    {
        int is_apart = (y[i] > py) & (y[i + 1] > py);
        is_apart |= (y[i] < py) & (y[i + 1] < py);
        bits |= (uint64_t)!is_apart << i;
    }
    return bits;
}

const struct oj_ring_kernel oj_ring_plain = {NULL, find_edges_at_height, NULL};

const struct oj_ring_kernel *oj_ring_kernel(void)
{
    const struct oj_ring_kernel *wide = oj_ring_avx512();
    return wide != NULL ? wide : &oj_ring_plain;
}

enum oj_location oj_ring_locate_fast(const struct oj_ring_kernel *kernel,
                                     double px, double py, const double *x,
                                     const double *y, int64_t n)
{
    int odd = 0;
    for (int64_t i = 0; i + 1 < n; i += OJ_RING_EDGES)
    {
        int64_t left = n - 1 - i;
        uint64_t bits = kernel->at_height(
            py, y + i, left < OJ_RING_EDGES ? (int)left : OJ_RING_EDGES);
        for (; bits != 0; bits &= bits - 1)
        {
            int64_t e = i + __builtin_ctzll(bits);
            int edge = oj_ring_edge_crosses_ray(px, py, x[e], y[e], x[e + 1],
                                                y[e + 1]);
            if (edge == OJ_ON_BOUNDARY)
                return OJ_ON_BOUNDARY;
            odd ^= edge;
        }
    }
    return odd ? OJ_INSIDE : OJ_OUTSIDE;
}
