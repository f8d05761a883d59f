/** Quadrants of points against features in reach, piece by piece: how squares
 *  split, which cells a box touches, where a pair is counted, and how a point
 *  meets the segments of a feature.
 *  Source: Zhang, You, Gruenwald 2012, sections 3.2 to 3.4.  A pair of boxes is
 *  counted in the first cell that both touch; the paper sorts pairs and drops
 *  repeats.
 */
#ifndef OJ_POINT_QUADRANTS_H
#define OJ_POINT_QUADRANTS_H

#include "oj_box.h"
#include "oj_morton.h"
#include "oj_ring.h"

/** Bits of a code that squares are split by, two at a time. */
#define OJ_QUADRANT_CODE_BITS 64

/** The code of a point that is not there, behind all others. */
#define OJ_QUADRANT_NO_CODE UINT64_MAX

/* --- quadrants ------------------------------------------------------------ */

/** Code of a point among those that frame is around; x NaN: none. Codes of the
 *  last two places in the order are one. */
OJ_FN uint64_t oj_quadrant_code(double x, double y, const struct oj_box *frame)
{
    uint64_t code;
    if (x != x)
        return OJ_QUADRANT_NO_CODE;
    code = oj_morton64(oj_morton_column32(x, frame->x0, frame->x1),
                       oj_morton_column32(y, frame->y0, frame->y1));
    return code == OJ_QUADRANT_NO_CODE ? code - 1 : code;
}

/** Of sorted codes first .. end - 1, first < end, the first that lies in
 *  another square of 2^low_bits codes than code[first]. */
OJ_FN int64_t oj_quadrant_square_end(const uint64_t *code, int64_t first,
                                     int64_t end, int low_bits)
{
    uint64_t square = code[first] >> low_bits;
    while (first < end)
    {
        int64_t middle = first + (end - first) / 2;
        if (code[middle] >> low_bits > square)
            end = middle;
        else
            first = middle + 1;
    }
    return end;
}

/* --- cells ---------------------------------------------------------------- */

/** Where cells lie: corner and side; side INFINITY: one cell. */
struct oj_quadrant_frame
{
    double x0, y0, size;
};

/** Cells that a box touches, both ends included. */
struct oj_quadrant_cells
{
    uint32_t column0, row0, column1, row1;
};

/** Cells there can be along an axis; the last also has all beyond. */
#define OJ_QUADRANT_LAST_COLUMN 2147483647u

/** Never decreases with v, so boxes that meet share a cell whatever rounding
 *  does to the cells' borders. */
OJ_FN uint32_t oj_quadrant_column(double v, double origin, double size)
{
    double c = (v - origin) / size;
    if (!(c > 0.0))
        return 0;
    return c >= (double)OJ_QUADRANT_LAST_COLUMN ? OJ_QUADRANT_LAST_COLUMN
                                                : (uint32_t)c;
}

OJ_FN struct oj_quadrant_cells
oj_quadrant_cells_of(const struct oj_quadrant_frame *frame,
                     const struct oj_box *box)
{
    struct oj_quadrant_cells cells;
    cells.column0 = oj_quadrant_column(box->x0, frame->x0, frame->size);
    cells.row0 = oj_quadrant_column(box->y0, frame->y0, frame->size);
    cells.column1 = oj_quadrant_column(box->x1, frame->x0, frame->size);
    cells.row1 = oj_quadrant_column(box->y1, frame->y0, frame->size);
    return cells;
}

/** How many they are; they may be more than integers hold. */
OJ_FN double oj_quadrant_n_cells(const struct oj_quadrant_cells *cells)
{
    return ((double)cells->column1 - cells->column0 + 1.0) *
           ((double)cells->row1 - cells->row0 + 1.0);
}

OJ_FN uint64_t oj_quadrant_cell(uint32_t row, uint32_t column)
{
    return (uint64_t)row << 32 | column;
}

/** First of n sorted cells that is key or comes after it. */
OJ_FN int64_t oj_quadrant_lower_bound(const uint64_t *cell, int64_t n,
                                      uint64_t key)
{
    int64_t first = 0, end = n;
    while (first < end)
    {
        int64_t middle = first + (end - first) / 2;
        if (cell[middle] < key)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/** The entries of one row of cells, of n sorted by cell, are a run: *first up
 *  to *end. Returns the next row that may have entries. */
OJ_FN uint32_t oj_quadrant_run(const uint64_t *cell, int64_t n, uint32_t row,
                               const struct oj_quadrant_cells *cells,
                               int64_t *first, int64_t *end)
{
    int64_t i =
        oj_quadrant_lower_bound(cell, n, oj_quadrant_cell(row, cells->column0));
    uint64_t last = oj_quadrant_cell(row, cells->column1);
    uint32_t found;
    *first = *end = i;
    if (i >= n)
        return UINT32_MAX;
    if (cell[i] <= last)
    {
        *end = i + oj_quadrant_lower_bound(cell + i, n - i, last + 1);
        return row + 1;
    }
    found = (uint32_t)(cell[i] >> 32);
    return found > row ? found : row + 1;
}

/** 1 when a pair of things that touch cells a and b is counted in this cell:
 *  the first that both touch. */
OJ_FN int oj_quadrant_counts_in(uint64_t cell,
                                const struct oj_quadrant_cells *a,
                                const struct oj_quadrant_cells *b)
{
    uint32_t row = a->row0 > b->row0 ? a->row0 : b->row0;
    uint32_t column = a->column0 > b->column0 ? a->column0 : b->column0;
    return cell == oj_quadrant_cell(row, column);
}

/* --- a point against a feature -------------------------------------------- */

/** What the last segment of a part, and only that, says of it. */
enum oj_quadrant_flag
{
    OJ_QUADRANT_POLYGON_END = 1,
    OJ_QUADRANT_LINE_END = 2 /**< the part is a line or a point */
};

/** A point on its way along the segments of a feature. */
struct oj_quadrant_state
{
    double least;     /**< distance so far */
    int odd, on_edge; /**< of the part */
    int is_in;        /**< a part of the feature holds the point */
};

OJ_FN void oj_quadrant_start(struct oj_quadrant_state *s)
{
    s->least = INFINITY;
    s->odd = s->on_edge = s->is_in = 0;
}

/** A part has ended: a polygon holds points on its rings and inside an odd
 *  number of them. Lines decide nothing. */
OJ_FN void oj_quadrant_end_part(struct oj_quadrant_state *s, unsigned flag)
{
    if (flag == OJ_QUADRANT_POLYGON_END)
        s->is_in |= s->on_edge | s->odd;
    s->odd = s->on_edge = 0;
}

/** The next segment a -> b of the feature. interior: distances to the inside
 *  of polygons are 0; flag: enum oj_quadrant_flag, or 0. */
OJ_FN void oj_quadrant_step(struct oj_quadrant_state *s, double px, double py,
                            double ax, double ay, double bx, double by,
                            int interior, unsigned flag)
{
    double d = oj_segment_distance(px, py, ax, ay, bx, by);
    s->least = d < s->least ? d : s->least;
    if (!interior)
        return;
    if (!s->is_in)
    {
        int edge = oj_ring_edge(px, py, ax, ay, bx, by);
        if (edge == OJ_ON_BOUNDARY)
            s->on_edge = 1;
        else
            s->odd ^= edge;
    }
    if (flag != 0)
        oj_quadrant_end_part(s, flag);
}

/** The best of a point so far. */
struct oj_quadrant_best
{
    double distance;
    int32_t rank; /**< INT32_MAX: none */
};

/** Takes the feature that s has gone along: the least distance wins, and the
 *  least rank of those. */
OJ_FN void oj_quadrant_take(struct oj_quadrant_best *best, double distance,
                            int32_t rank, double max_distance)
{
    if (!(distance <= max_distance) || !(distance < INFINITY))
        return;
    if (distance < best->distance ||
        (distance == best->distance && rank < best->rank))
    {
        best->distance = distance;
        best->rank = rank;
    }
}

OJ_FN double oj_quadrant_distance(const struct oj_quadrant_state *s)
{
    return s->is_in ? 0.0 : s->least;
}

#endif
