/** One cell of a tree of cells over polygon rings, and one edge against it.
 *
 *  The tree is over a square; a cell has 4 x 4 children. Every cell has a
 *  reference point inside it, and for each polygon that has edges in the cell
 *  it is known whether that point is inside. Whether any other point of the
 *  cell is follows from the edges in the cell that cross a way from one to the
 *  other; so do the states of the children's reference points.
 *
 *      c --- c --- C     the way from a cell's reference point P to that of a
 *      |     |     |     child, C: along the row of P, then along the column of
 *      P ---------- +    C; edges that cross it an odd number of times make
 *                        the states differ
 *
 *  Reference points never lie on an edge: they are meant to be moved by
 *  (e, e e), e > 0 smaller than anything, and all rules below follow from that:
 *  a vertex on the row is below it, one on the column left of it, and a point
 *  on an edge is on its right hand going up. So no state is ever unknown, and
 *  with exact signs none is wrong.
 *  Source: cells with a reference point as in S2's cell index; the moved points
 *  are "simulation of simplicity" (Edelsbrunner, Muecke 1990); the rest ours.
 */
#ifndef OJ_RING_CELL_H
#define OJ_RING_CELL_H

#include "../../../algs/foundations/kernels/oj_ring.h"

#include <stddef.h>

/** Children of a cell along an axis, and in all. */
#define OJ_RING_CELL_SPLIT 4
#define OJ_RING_CELL_CHILDREN 16

/** Deepest level; the root's is 0. Places are 32 bits, so that a cell of the
 *  deepest level still has 2^6 steps along each axis. */
#define OJ_RING_CELL_LEVELS 13

/** Where the reference point of a cell is, in shares of its side; numbers that
 *  coordinates of any origin or unit seldom hit. */
#define OJ_RING_CELL_U 0.45190723405173713
#define OJ_RING_CELL_V 0.53728130164893871

/** The square of the root. */
struct oj_ring_frame
{
    double x0, y0, size;
    double scale;  /**< steps of 1 / 2^32 of the square in one unit */
    double margin; /**< cells are taken to be wider by this on each side: more
                        than all rounding of places and corners */
    int levels;    /**< deepest level at which cells are wide enough */
    double side[OJ_RING_CELL_LEVELS + 1];  /**< of cells by level; exact */
    double steps[OJ_RING_CELL_LEVELS + 1]; /**< 2^15 / side */
};

struct oj_ring_cell
{
    uint32_t ix, iy; /**< 0 .. 4^level - 1 */
    int32_t level;
};

/** The frame around a box of finite coordinates.
 *  Rounding of a place: p - x0 and its product with scale are each off by
 *  2^-53 of their size, which is at most size; corners x0 + i * side by
 *  2^-52 of magnitude. margin is much more than both, and the border of the
 *  square is farther from the box than margin. */
OJ_FN struct oj_ring_frame oj_ring_frame_around(double x0, double y0, double x1,
                                                double y1)
{
    struct oj_ring_frame f;
    double w = x1 - x0, h = y1 - y0, side = w > h ? w : h, magnitude = fabs(x0);
    int i;
    magnitude = fabs(x1) > magnitude ? fabs(x1) : magnitude;
    magnitude = fabs(y0) > magnitude ? fabs(y0) : magnitude;
    magnitude = fabs(y1) > magnitude ? fabs(y1) : magnitude;
    /* at least 2^20 representable numbers wide */
    if (!(side > magnitude * 2.3283064365386963e-10)) /* 2^-32 */
        side = magnitude * 2.3283064365386963e-10;
    if (!(side > 1e-140)) /* a single point at the origin */
        side = 1e-140;
    f.size = side * (1.0 + 0x1p-8);
    f.x0 = x0 - (f.size - w) * 0.5;
    f.y0 = y0 - (f.size - h) * 0.5;
    f.scale = 4294967296.0 / f.size;
    f.margin = f.size * 0x1p-38 + magnitude * 0x1p-48;
    f.levels = 0;
    for (i = 0; i <= OJ_RING_CELL_LEVELS; i++)
    {
        f.side[i] = i == 0 ? f.size : f.side[i - 1] / OJ_RING_CELL_SPLIT;
        f.steps[i] = 32768.0 / f.side[i];
    }
    /* a cell is 2^6 margins wide at least */
    while (f.levels < OJ_RING_CELL_LEVELS &&
           f.side[f.levels + 1] >= 64.0 * f.margin)
        f.levels++;
    return f;
}

OJ_FN double oj_ring_cell_x(const struct oj_ring_frame *f, uint32_t ix,
                            double share, double side)
{
    return f->x0 + ((double)ix + share) * side;
}

OJ_FN double oj_ring_cell_y(const struct oj_ring_frame *f, uint32_t iy,
                            double share, double side)
{
    return f->y0 + ((double)iy + share) * side;
}

/** The reference point of a cell: the same bits wherever it is asked for. */
OJ_FN void oj_ring_cell_reference(const struct oj_ring_frame *f, uint32_t ix,
                                  uint32_t iy, double side, double *x,
                                  double *y)
{
    *x = oj_ring_cell_x(f, ix, OJ_RING_CELL_U, side);
    *y = oj_ring_cell_y(f, iy, OJ_RING_CELL_V, side);
}

/** oj_ring_is_left() for points near the line of a -> b. */
OJ_FN_APART int oj_ring_is_left_exactly(double ax, double ay, double bx,
                                        double by, double x, double y)
{
    int side = oj_orientation_exact(ax, ay, bx, by, x, y);
    if (side != 0)
        return side > 0;
    return by != ay ? by < ay : bx > ax;
}

/** 1 when the moved point (x + e, y + e e) is left of a -> b; a != b. Near the
 *  line, *unsure becomes 1 instead, unless unsure is NULL. */
OJ_FN int oj_ring_is_left(double ax, double ay, double bx, double by, double x,
                          double y, int *unsure)
{
    /* as oj_orientation() does it */
    double left = (ax - x) * (by - y), right = (ay - y) * (bx - x);
    double det = left - right, size = fabs(left) + fabs(right);
    if (size > 1e-280 && fabs(det) > 3.3306690738754716e-16 * size)
        return det > 0.0;
    if (unsure == NULL)
        return oj_ring_is_left_exactly(ax, ay, bx, by, x, y);
    *unsure = 1;
    return 0;
}

/* --- splitting ------------------------------------------------------------ */

/** Bit 4 j + i: child i, j. */
struct oj_ring_split
{
    uint32_t touched; /**< children that the edge may touch; all that it does */
    uint32_t toggled; /**< children whose reference points are parted from the
                           cell's one by the edge: their ways cross it an odd
                           number of times */
};

/** What all edges in a cell are compared with. */
struct oj_ring_splitter
{
    double x0, y0;     /* lower left corner of the cell */
    double side;       /* of a child */
    double inverse;    /* 1 / side */
    double margin;     /* of the frame */
    double px, py;     /* reference point of the cell */
    double x[4], y[4]; /* columns and rows of the children's ones */
};

/** For 4 x 4 cells, of which ix, iy is the lowest, of this side; the caller
 *  says where the ways begin. */
OJ_FN struct oj_ring_splitter
oj_ring_splitter_over(const struct oj_ring_frame *f, uint32_t ix, uint32_t iy,
                      double side)
{
    struct oj_ring_splitter s;
    uint32_t i;
    s.x0 = oj_ring_cell_x(f, ix, 0.0, side);
    s.y0 = oj_ring_cell_y(f, iy, 0.0, side);
    s.side = side;
    s.inverse = 1.0 / side;
    s.margin = f->margin;
    s.px = s.py = 0.0;
    for (i = 0; i < OJ_RING_CELL_SPLIT; i++)
        oj_ring_cell_reference(f, ix + i, iy + i, side, &s.x[i], &s.y[i]);
    return s;
}

/** For the children of a cell.  is_root: the ways begin outside of everything,
 *  left of the square. */
OJ_FN struct oj_ring_splitter oj_ring_splitter_of(const struct oj_ring_frame *f,
                                                  uint32_t ix, uint32_t iy,
                                                  double side, int is_root)
{
    struct oj_ring_splitter s = oj_ring_splitter_over(
        f, OJ_RING_CELL_SPLIT * ix, OJ_RING_CELL_SPLIT * iy,
        side * (1.0 / OJ_RING_CELL_SPLIT));
    oj_ring_cell_reference(f, ix, iy, side, &s.px, &s.py);
    if (is_root)
        s.px = f->x0 - f->size;
    return s;
}

/* The columns, or rows, wider by the margin, that low .. high meet, from the
 * cell's corner on. */
OJ_FN uint32_t oj_ring_span(double low, double high,
                            const struct oj_ring_splitter *s)
{
    double first = (low - s->margin) * s->inverse;
    double last = (high + s->margin) * s->inverse;
    if (!(last >= 0.0 && first < OJ_RING_CELL_SPLIT))
        return 0;
    first = first > 0.0 ? first : 0.0;
    last = last < OJ_RING_CELL_SPLIT - 1 ? last : OJ_RING_CELL_SPLIT - 1;
    return (2u << (uint32_t)last) - (1u << (uint32_t)first);
}

/* The children, wider by the margin, that the edge may touch.  Both ends are in
 * the root's square, so c - a is at most its size, size, and the cross product
 * is off by less than 2^-50 size (|dx| + |dy|): twice the margin covers it. */
OJ_FN uint32_t oj_ring_touched(const struct oj_ring_splitter *s, double ax,
                               double ay, double bx, double by)
{
    double left = ax < bx ? ax : bx, right = ax < bx ? bx : ax;
    double low = ay < by ? ay : by, high = ay < by ? by : ay;
    uint32_t columns = oj_ring_span(left - s->x0, right - s->x0, s);
    uint32_t rows = oj_ring_span(low - s->y0, high - s->y0, s), touched = 0;
    double dx = bx - ax, dy = by - ay, reach, start;
    int i, j;
    for (j = 0; j < OJ_RING_CELL_SPLIT; j++)
        touched |= (rows >> j & 1u) * columns << (OJ_RING_CELL_SPLIT * j);
    if ((columns & (columns - 1u)) == 0u || (rows & (rows - 1u)) == 0u)
        return touched;
    reach = (fabs(dx) + fabs(dy)) * (0.5 * s->side + 2.0 * s->margin);
    start =
        dx * (s->y0 + 0.5 * s->side - ay) - dy * (s->x0 + 0.5 * s->side - ax);
    dx *= s->side;
    dy *= s->side;
    for (j = 0; j < OJ_RING_CELL_SPLIT; j++)
    {
        for (i = 0; i < OJ_RING_CELL_SPLIT; i++)
        {
            double cross = start + (double)j * dx - (double)i * dy;
            touched &= ~((uint32_t)(fabs(cross) > reach)
                         << (OJ_RING_CELL_SPLIT * j + i));
        }
    }
    return touched;
}

OJ_FN uint32_t oj_ring_toggled(const struct oj_ring_splitter *s, double ax,
                               double ay, double bx, double by, int *unsure)
{
    uint32_t toggled = 0;
    int i, j;
    if ((ay > s->py) != (by > s->py))
    {
        /* the edge crosses the row of P: columns beyond it are parted */
        int at_p = oj_ring_is_left(ax, ay, bx, by, s->px, s->py, unsure);
        for (i = 0; i < OJ_RING_CELL_SPLIT; i++)
        {
            if (oj_ring_is_left(ax, ay, bx, by, s->x[i], s->py, unsure) != at_p)
                toggled ^= 0x1111u << i;
        }
    }
    for (i = 0; i < OJ_RING_CELL_SPLIT; i++)
    {
        int at_corner;
        if ((ax > s->x[i]) == (bx > s->x[i]))
            continue;
        if ((ay > s->y[3] && by > s->y[3]) || (ay < s->y[0] && by < s->y[0]))
            continue; /* above or below all of the column's points, P's row
                         too, which is between their rows */
        at_corner = oj_ring_is_left(ax, ay, bx, by, s->x[i], s->py, unsure);
        for (j = 0; j < OJ_RING_CELL_SPLIT; j++)
        {
            if (oj_ring_is_left(ax, ay, bx, by, s->x[i], s->y[j], unsure) !=
                at_corner)
                toggled ^= 1u << (OJ_RING_CELL_SPLIT * j + i);
        }
    }
    return toggled;
}

/** The edge a -> b, which is in the list of the cell, against its children.
 *  unsure: NULL, or what becomes 1 where signs that are not exact do not do. */
OJ_FN struct oj_ring_split oj_ring_split_edge(const struct oj_ring_splitter *s,
                                              double ax, double ay, double bx,
                                              double by, int *unsure)
{
    struct oj_ring_split split;
    split.touched = oj_ring_touched(s, ax, ay, bx, by);
    split.toggled = oj_ring_toggled(s, ax, ay, bx, by, unsure);
    return split;
}

/** Bit c of mask as bit 4 c: sixteen counters of four bits. */
OJ_FN uint64_t oj_ring_nibbles(uint32_t mask)
{
    uint64_t v = mask & 0xffffu;
    v = (v | v << 24) & 0x000000ff000000ffu;
    v = (v | v << 12) & 0x000f000f000f000fu;
    v = (v | v << 6) & 0x0303030303030303u;
    return (v | v << 3) & 0x1111111111111111u;
}

/* --- a point -------------------------------------------------------------- */

/** One edge against the way from p to the reference point r of a cell that both
 *  are in: 1 when it crosses the way, 0 when not; OJ_ON_BOUNDARY when p is on
 *  the edge. Exact. */
OJ_FN int oj_ring_way_edge(double px, double py, double rx, double ry,
                           double ax, double ay, double bx, double by)
{
    int crosses_row = (ay > py) != (by > py);
    int crosses_column = (ax > rx) != (bx > rx);
    int at_corner, odd = 0;
    if (oj_ring_edge(px, py, ax, ay, bx, by) == OJ_ON_BOUNDARY)
        return OJ_ON_BOUNDARY;
    if (!crosses_row && !crosses_column)
        return 0;
    at_corner = oj_ring_is_left(ax, ay, bx, by, rx, py, NULL);
    if (crosses_row)
        odd ^= oj_ring_is_left(ax, ay, bx, by, px, py, NULL) != at_corner;
    if (crosses_column)
        odd ^= oj_ring_is_left(ax, ay, bx, by, rx, ry, NULL) != at_corner;
    return odd;
}

#endif
