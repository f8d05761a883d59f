#include "../base/cpu_vector.h"
#include "cpu_ring_grid.h"

#include <stddef.h>

/* Flips *odd where the way crosses the edge; *unclear where it cannot be told.
 * 1 when p is on the edge. */
OJ_INLINE int cross(const struct oj_ring_way *w, double ax, double ay,
                    double bx, double by, int *odd, int *unclear)
{
    int across = (ay > w->py) != (by > w->py);
    int along = (ax > w->cx) != (bx > w->cx), at_q = 0;
    if (ay == w->py || by == w->py)
    {
        if (oj_ring_edge(w->px, w->py, ax, ay, bx, by) == OJ_ON_BOUNDARY)
            return 1;
    }
    if (across | along)
    {
        at_q = oj_orientation(ax, ay, bx, by, w->cx, w->py);
        *unclear |= at_q == 0;
    }
    if (across)
    {
        int at_p = oj_orientation(ax, ay, bx, by, w->px, w->py);
        if (at_p == 0)
            return 1;
        *odd ^= at_p != at_q;
    }
    if (along)
    {
        int at_c = oj_orientation(ax, ay, bx, by, w->cx, w->cy);
        *unclear |= at_c == 0;
        *odd ^= at_c != at_q;
    }
    return 0;
}

enum oj_location oj_ring_grid_test(const struct oj_ring_grid *g, int64_t cell,
                                   uint32_t rank, double px, double py)
{
    const double *x = g->x, *y = g->y;
    struct oj_ring_way w = {px, py, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    uint32_t run, end;
    int64_t row;
    int odd, unclear;
    if (g->n_words == 0)
        return oj_ring_walk(g->kernel, px, py, x, y, g->n_vertices);
    run = g->first_run[rank];
    end = g->first_run[rank + 1];
    odd = (int)(g->word[cell / 64].inside >> cell % 64 & 1);
    unclear = 0;
    row = (uint32_t)cell / (uint32_t)(64 * g->n_words);
    w.cx = oj_ring_grid_reference_x(g, cell - row * 64 * g->n_words);
    w.cy = g->below[row];
    w.left = px < w.cx ? px : w.cx;
    w.right = px < w.cx ? w.cx : px;
    w.low = py < w.cy ? py : w.cy;
    w.high = py < w.cy ? w.cy : py;
    if (g->kernel->cross != NULL)
    {
        int crossed = g->kernel->cross(&w, x, y, g->run + run, end - run);
        if (crossed >= 0)
            return odd != crossed ? OJ_INSIDE : OJ_OUTSIDE;
    }
    for (; run < end; run++)
    {
        int64_t e = g->run[run].first, end_edge = e + g->run[run].n;
        unclear |= e == end_edge;
        for (; e < end_edge; e += OJ_RING_EDGES)
        {
            int64_t n = end_edge - e;
            uint64_t bits = oj_ring_near_way(
                &w, x + e, y + e, n < OJ_RING_EDGES ? (int)n : OJ_RING_EDGES);
            for (; bits != 0; bits &= bits - 1)
            {
                int64_t i = e + __builtin_ctzll(bits);
                if (cross(&w, x[i], y[i], x[i + 1], y[i + 1], &odd, &unclear))
                    return OJ_ON_BOUNDARY;
            }
        }
    }
    if (unclear)
        return oj_ring_walk(g->kernel, px, py, x, y, g->n_vertices);
    return odd ? OJ_INSIDE : OJ_OUTSIDE;
}

int oj_ring_grid_known_box(const struct oj_ring_grid *g, double left,
                           double low, double right, double high)
{
    int32_t x0, x1, y0, y1;
    uint64_t edges = 0, inside = 0, outside = 0;
    if (g->n_words == 0)
        return -1;
    x0 = oj_ring_grid_index(left, g->x0, g->inverse_cell, g->nx);
    x1 = oj_ring_grid_index(right, g->x0, g->inverse_cell, g->nx);
    y0 = oj_ring_grid_index(low, g->y0, g->inverse_cell, g->ny);
    y1 = oj_ring_grid_index(high, g->y0, g->inverse_cell, g->ny);
    for (int64_t row = y0; row <= y1; row++)
    {
        for (int32_t i = x0 / 64; i <= x1 / 64; i++)
        {
            const struct oj_ring_word word = g->word[row * g->n_words + i];
            uint64_t mask = ~(uint64_t)0;
            if (i == x0 / 64)
                mask &= ~(uint64_t)0 << x0 % 64;
            if (i == x1 / 64)
                mask &= ~(uint64_t)0 >> (63 - x1 % 64);
            edges |= word.edges & mask;
            inside |= word.inside & mask;
            outside |= ~word.inside & mask;
        }
        if (edges != 0 || (inside != 0 && outside != 0))
            return -1;
    }
    return inside != 0 ? OJ_INSIDE : OJ_OUTSIDE;
}
