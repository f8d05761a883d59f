/** One cell of a tree of cells over polygon rings, and one edge in it.
 *
 *  The root is a square; a cell has 4 x 4 children. Every cell has a reference
 *  point inside it. For each polygon with edges in the cell, its state is
 *  stored: whether the reference point is inside the polygon. The state of any
 *  other point of the cell follows from the edges that cross a path between the
 *  two points; the states at the children's reference points follow alike.
 *
 *      c --- c --- C     path from the reference point P of a cell to that of a
 *      |     |     |     child, C: along the row of P, then along the column of
 *      P ---------- +    C. If edges cross it an odd number of times, the
 *                        states at P and C differ.
 *
 *  Reference points never lie on an edge: they count as moved by (e, e e) with
 *  an infinitely small e > 0. It follows that a vertex on the row is below it,
 *  a vertex on the column is left of it, and a point on an edge is on the right
 *  of the upward edge. So each state is defined, and exact signs compute it
 *  without error. Source: cells with a reference point as in S2's cell index;
 *  moved points are "simulation of simplicity" (Edelsbrunner, Muecke 1990); the
 *  rest ours.
 */
#ifndef OJ_RING_CELL_SPLIT_H
#define OJ_RING_CELL_SPLIT_H

#include "../../../algs/foundations/kernels/oj_ring.h"

#include <stddef.h>

/** Number of children of a cell along an axis, and in total. */
#define OJ_RING_CELL_SPLIT 4
#define OJ_RING_CELL_CHILDREN 16

/** Deepest level; the root has level 0. Coordinates have 32 bits, so a cell of
 *  the deepest level still has 2^6 steps along each axis. */
#define OJ_RING_CELL_LEVELS 13

/** Position of the reference point in its cell, in units of the cell's side.
 * These uneven fractions are chosen because usual coordinates seldom coincide
 * with them. */
#define OJ_RING_CELL_U 0.45190723405173713
#define OJ_RING_CELL_V 0.53728130164893871

/** The square of the root cell. */
struct oj_ring_frame
{
    double x0, y0, size;
    double scale; /**< steps per unit; the square has 2^32 steps */
    /** Cells are enlarged by this on each side; it exceeds all rounding errors
     *  of coordinates and corners. */
    double margin;
    /** Deepest level whose cells are at least 64 margins wide. */
    int levels;
    /** Side of a cell at each level; exact. */
    double side[OJ_RING_CELL_LEVELS + 1];
    double steps[OJ_RING_CELL_LEVELS + 1]; /**< 2^15 / side, by level */
};

struct oj_ring_cell
{
    uint32_t ix, iy; /**< 0 .. 4^level - 1 */
    int32_t level;
};

/** Makes the frame around a box with finite coordinates. Rounding: p - x0 and
 *  its product with scale each have a relative error of 2^-53, and their size
 *  is at most that of the square; corners x0 + i * side have an error of 2^-52
 *  * magnitude. margin is much larger than both, and the border of the square
 *  is farther than margin from the box. */
OJ_FN struct oj_ring_frame oj_ring_frame_around(double x0, double y0, double x1,
                                                double y1)
{
    struct oj_ring_frame f;
    double w = x1 - x0, h = y1 - y0, side = w > h ? w : h, magnitude = fabs(x0);
    int i;
    magnitude = fabs(x1) > magnitude ? fabs(x1) : magnitude;
    magnitude = fabs(y0) > magnitude ? fabs(y0) : magnitude;
    magnitude = fabs(y1) > magnitude ? fabs(y1) : magnitude;
    /* the square is at least 2^20 representable numbers wide */
    if (!(side > magnitude * 2.3283064365386963e-10)) /* 2^-32 */
        side = magnitude * 2.3283064365386963e-10;
    if (!(side > 1e-140)) /* the box is a single point at the origin */
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
    /* a cell is at least 2^6 margins wide */
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

/** Sets *x and *y to the reference point of a cell; repeated calls for one
 *  cell give identical bits. */
OJ_FN void oj_ring_cell_reference(const struct oj_ring_frame *f, uint32_t ix,
                                  uint32_t iy, double side, double *x,
                                  double *y)
{
    *x = oj_ring_cell_x(f, ix, OJ_RING_CELL_U, side);
    *y = oj_ring_cell_y(f, iy, OJ_RING_CELL_V, side);
}

/** Like oj_ring_is_left(), for points near the line through a and b. */
OJ_FN_APART int oj_ring_is_left_exactly(double ax, double ay, double bx,
                                        double by, double x, double y)
{
    int side = oj_orientation_exact(ax, ay, bx, by, x, y);
    if (side != 0)
        return side > 0;
    return by != ay ? by < ay : bx > ax;
}

/** Returns 1 if the moved point (x + e, y + e e) (see the head of this file)
 *  lies left of the directed line from a to b; a != b. If the point is near the
 *  line, sets *unsure to 1 and returns 0, unless unsure is NULL: then decides
 *  by exact arithmetic. */
OJ_FN int oj_ring_is_left(double ax, double ay, double bx, double by, double x,
                          double y, int *unsure)
{
    /* this is the filter of oj_orientation() */
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

/** An edge compared with the children of a cell. Bit 4 j + i of a mask is child
 *  (i, j). */
struct oj_ring_split
{
    /** Children that the edge touches, and perhaps some that it does not. */
    uint32_t touched;
    /** Children whose state differs from the cell's because of this edge: it
     *  crosses the path to them an odd number of times. */
    uint32_t toggled;
};

/** Values that all comparisons of a cell's edges with its children use. */
struct oj_ring_splitter
{
    double x0, y0;  /* lower left corner of the cell */
    double side;    /* side of a child */
    double inverse; /* 1 / side */
    double margin;  /* margin of the frame */
    double px, py;  /* reference point of the cell, where the paths begin */
    /* x of the children's reference points by column, y by row */
    double x[4], y[4];
};

/** Makes a splitter for 4 x 4 cells with this side, of which ix, iy is the
 *  lower left one. The caller sets px, py. */
OJ_FN struct oj_ring_splitter
oj_ring_splitter_of_cell_block(const struct oj_ring_frame *f, uint32_t ix,
                               uint32_t iy, double side)
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

/** Makes a splitter for the children of a cell. If is_root is 1, the paths
 *  begin left of the square, at a point outside of all polygons. */
OJ_FN struct oj_ring_splitter
oj_ring_splitter_of_children(const struct oj_ring_frame *f, uint32_t ix,
                             uint32_t iy, double side, int is_root)
{
    struct oj_ring_splitter s = oj_ring_splitter_of_cell_block(
        f, OJ_RING_CELL_SPLIT * ix, OJ_RING_CELL_SPLIT * iy,
        side * (1.0 / OJ_RING_CELL_SPLIT));
    oj_ring_cell_reference(f, ix, iy, side, &s.px, &s.py);
    if (is_root)
        s.px = f->x0 - f->size;
    return s;
}

/* Returns the mask of columns (or rows), widened by the margin, that the
 * interval low .. high intersects. low and high are relative to the cell's
 * corner. */
OJ_FN uint32_t oj_ring_cells_of_interval(double low, double high,
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

/* Returns the mask of the children, each widened by the margin, that the edge
 * may touch. The reach has the margin twice: once for the widening, once for
 * rounding. Both ends are in the root's square, so the error of the cross
 * product is less than 2^-50 size (|dx| + |dy|); the margin is at least 2^-38
 * size. */
OJ_FN uint32_t oj_ring_children_touched(const struct oj_ring_splitter *s,
                                        double ax, double ay, double bx,
                                        double by)
{
    double left = ax < bx ? ax : bx, right = ax < bx ? bx : ax;
    double low = ay < by ? ay : by, high = ay < by ? by : ay;
    uint32_t columns =
        oj_ring_cells_of_interval(left - s->x0, right - s->x0, s);
    uint32_t rows = oj_ring_cells_of_interval(low - s->y0, high - s->y0, s),
             touched = 0;
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

/* Returns the mask of the children whose reference points the edge a -> b
 * separates from the cell's reference point (px, py). If unsure is NULL,
 * decides by exact arithmetic; otherwise sets *unsure to 1 if exact arithmetic
 * is needed. */
OJ_FN uint32_t oj_ring_sixteenths_toggled(const struct oj_ring_splitter *s,
                                          double ax, double ay, double bx,
                                          double by, int *unsure)
{
    uint32_t toggled = 0;
    int i, j;
    if ((ay > s->py) != (by > s->py))
    {
        /* the edge crosses the horizontal line through the cell's reference
         * point: all columns whose reference points lie on the other side of
         * the edge than that point are toggled */
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
            /* the edge is above or below all reference points of the column;
             * the y of the cell's reference point is between theirs */
            continue;
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

/** Compares the edge a -> b of a cell with the children of the cell. If unsure
 * is NULL, decides by exact arithmetic; otherwise sets *unsure to 1 if exact
 * arithmetic is needed. */
OJ_FN struct oj_ring_split oj_ring_split_edge(const struct oj_ring_splitter *s,
                                              double ax, double ay, double bx,
                                              double by, int *unsure)
{
    struct oj_ring_split split;
    split.touched = oj_ring_children_touched(s, ax, ay, bx, by);
    split.toggled = oj_ring_sixteenths_toggled(s, ax, ay, bx, by, unsure);
    return split;
}

/** Moves bit c of mask to bit 4 c. Sums of such words are sixteen 4-bit
 *  counters. */
OJ_FN uint64_t oj_ring_mask_to_nibbles(uint32_t mask)
{
    uint64_t v = mask & 0xffffu;
    v = (v | v << 24) & 0x000000ff000000ffu;
    v = (v | v << 12) & 0x000f000f000f000fu;
    v = (v | v << 6) & 0x0303030303030303u;
    return (v | v << 3) & 0x1111111111111111u;
}

/* --- a point -------------------------------------------------------------- */

/** Returns 1 if the edge crosses the path from p to the reference point r, 0 if
 *  not, OJ_ON_BOUNDARY if p is on the edge. p and r must be in one cell.
 *  Exact. */
OJ_FN int oj_ring_edge_crosses_path(double px, double py, double rx, double ry,
                                    double ax, double ay, double bx, double by)
{
    int crosses_row = (ay > py) != (by > py);
    int crosses_column = (ax > rx) != (bx > rx);
    int at_corner, odd = 0;
    if (oj_ring_edge_crosses_ray(px, py, ax, ay, bx, by) == OJ_ON_BOUNDARY)
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
