/** Starts a tree of cells over polygon rings at a level far below the root,
 *  without building the levels above it; for polygons with few edges that are
 *  small compared with the plane.
 *
 *  The cells of that level that a unit's edges or interior may intersect are
 *  covered by windows of 4 x 4 cells. To the build (oj_ring_cells_build.h) a
 *  window is a node that has the unit's fragments, and its 16 cells are the
 *  children. The paths to their reference points begin outside of all polygons.
 *
 *     . . . . . . . .
 *     . + - - - - + .      two windows of 4 x 4 cells around one polygon; it
 *     . |         | .      intersects no other cell
 *     . + - - - - + . */
#ifndef OJ_RING_WINDOWS_H
#define OJ_RING_WINDOWS_H

#include "oj_ring_cells_build.h"

/** Maximum number of windows of a unit, and of edges * windows. */
#define OJ_RING_WINDOWS 16
#define OJ_RING_WINDOW_EDGES 1024

/** A summary of the edges of a unit. The edges are added one by one. */
struct oj_ring_chain
{
    double x0, y0, x1, y1; /**< bounding box */
    /* Start and end of the current ring. */
    double start_x, start_y, end_x, end_y;
    int32_t n;
    int32_t is_open; /* 1: the current ring is not closed yet */
    int32_t is_torn; /* 1: a ring was not closed */
};

struct oj_ring_windows
{
    uint32_t ix, iy; /**< cell with the smallest ix, iy in the windows */
    uint32_t nx, ny; /**< windows along each axis; 0: the unit is not small */
};

OJ_FN struct oj_ring_chain oj_ring_chain_make(void)
{
    struct oj_ring_chain c;
    c.x0 = c.y0 = c.x1 = c.y1 = 0.0;
    c.start_x = c.start_y = c.end_x = c.end_y = 0.0;
    c.n = c.is_open = c.is_torn = 0;
    return c;
}

OJ_FN void oj_ring_chain_extend(struct oj_ring_chain *c, double x, double y)
{
    c->x0 = x < c->x0 ? x : c->x0;
    c->y0 = y < c->y0 ? y : c->y0;
    c->x1 = x > c->x1 ? x : c->x1;
    c->y1 = y > c->y1 ? y : c->y1;
}

OJ_FN void oj_ring_chain_add(struct oj_ring_chain *c, double ax, double ay,
                             double bx, double by)
{
    if (c->n++ == 0)
    {
        c->x0 = c->x1 = ax;
        c->y0 = c->y1 = ay;
    }
    if (!c->is_open)
    {
        c->start_x = ax;
        c->start_y = ay;
    }
    else if (ax != c->end_x || ay != c->end_y)
        c->is_torn = 1;
    oj_ring_chain_extend(c, ax, ay);
    oj_ring_chain_extend(c, bx, by);
    c->end_x = bx;
    c->end_y = by;
    c->is_open = !(bx == c->start_x && by == c->start_y);
}

/** Covers the interval low .. high, enlarged by more than the margin and all
 *  rounding, along one axis of n cells by windows of 4 cells. Returns the
 *  number of windows; *at is the first cell. The windows stay in the square,
 *  because n is a multiple of 4. */
OJ_FN uint32_t oj_ring_windows_along(double low, double high, double margin,
                                     double side, uint32_t n, uint32_t *at)
{
    double first = (low - 2.0 * margin) / side;
    double last = (high + 2.0 * margin) / side;
    uint32_t i, j, windows;
    first = first > 0.0 ? first : 0.0;
    last = last < (double)(n - 1) ? last : (double)(n - 1);
    i = (uint32_t)first;
    j = (uint32_t)last;
    windows = (j - i) / OJ_RING_CELL_SPLIT + 1;
    if (windows > n / OJ_RING_CELL_SPLIT)
        windows = n / OJ_RING_CELL_SPLIT;
    if (i > n - OJ_RING_CELL_SPLIT * windows)
        i = n - OJ_RING_CELL_SPLIT * windows;
    *at = i;
    return windows;
}

/** Returns the windows of a unit at a level >= 1. A unit with an open ring
 *  never counts as small, because its state may change far from its edges. */
OJ_FN struct oj_ring_windows oj_ring_windows_of(const struct oj_ring_frame *f,
                                                const struct oj_ring_chain *c,
                                                int level)
{
    struct oj_ring_windows w;
    uint32_t n = 1u << (2 * level);
    w.ix = w.iy = w.nx = w.ny = 0;
    if (c->is_open || c->is_torn || c->n == 0 || c->n > OJ_RING_WINDOW_EDGES)
        return w;
    w.nx = oj_ring_windows_along(c->x0 - f->x0, c->x1 - f->x0, f->margin,
                                 f->side[level], n, &w.ix);
    w.ny = oj_ring_windows_along(c->y0 - f->y0, c->y1 - f->y0, f->margin,
                                 f->side[level], n, &w.iy);
    if (w.nx > OJ_RING_WINDOWS || w.ny > OJ_RING_WINDOWS ||
        w.nx * w.ny > OJ_RING_WINDOWS ||
        (uint32_t)c->n * w.nx * w.ny > OJ_RING_WINDOW_EDGES)
        w.nx = w.ny = 0;
    return w;
}

/** Makes the splitter of a window, whose lower left cell is ix, iy at the start
 *  level, with cells of width `side`. */
OJ_FN struct oj_ring_splitter
oj_ring_splitter_of_window(const struct oj_ring_frame *f, uint32_t ix,
                           uint32_t iy, double side)
{
    struct oj_ring_splitter s = oj_ring_splitter_of_cell_block(f, ix, iy, side);
    s.px = f->x0 - f->size;
    s.py = s.y[1]; /* any row between the lowest and the highest will do */
    return s;
}

/** Returns the start level for n_edges edges: the first level with at least as
 *  many cells as edges, but at most `deepest`. */
OJ_FN int oj_ring_start_level(int64_t n_edges, int deepest)
{
    int level = 0;
    while (level < deepest && (int64_t)1 << (4 * level) < n_edges)
        level++;
    return level;
}

#endif
