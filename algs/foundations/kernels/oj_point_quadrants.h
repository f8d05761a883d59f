/** Arithmetic of the paper's method, for CPU and GPU: points are grouped in
 *  quadrants, which are joined with features within a distance. The functions
 *  split squares, find the grid cells that a box intersects and the cell in
 *  which a pair is counted, and measure the distance from a point to a feature.
 *
 *  A pair of boxes may share several cells. It is counted in the first of them
 *  only; the paper sorts the pairs and drops repetitions instead.
 *
 *  Source: Zhang, You, Gruenwald 2012, sections 3.2 to 3.4.
 */
#ifndef OJ_POINT_QUADRANTS_H
#define OJ_POINT_QUADRANTS_H

#include "oj_box.h"
#include "oj_morton.h"
#include "oj_ring.h"

/** Bits of a Morton code; each split of a square into four uses two of them. */
#define OJ_QUADRANT_CODE_BITS 64

/** The code of a missing point, greater than all valid codes. */
#define OJ_QUADRANT_NO_CODE UINT64_MAX

/* --- quadrants ------------------------------------------------------------ */

/** Returns the Morton code of a point within frame, the bounding box of all
 * points, or OJ_QUADRANT_NO_CODE if x is NaN. A point whose code would equal
 * OJ_QUADRANT_NO_CODE gets the code below it. */
OJ_FN uint64_t oj_quadrant_code(double x, double y, const struct oj_box *frame)
{
    uint64_t code;
    if (x != x)
        return OJ_QUADRANT_NO_CODE;
    code = oj_morton64(oj_morton_column32(x, frame->x0, frame->x1),
                       oj_morton_column32(y, frame->y0, frame->y1));
    return code == OJ_QUADRANT_NO_CODE ? code - 1 : code;
}

/** Finds the end of a square in the sorted codes first .. end - 1 (at least
 * one): the index of the first code outside of the square of 2^low_bits codes
 * that contains code[first]. */
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

/** A grid of square cells: its lower left corner, and the side of a cell. size
 * INFINITY: the grid is a single cell. */
struct oj_quadrant_frame
{
    double x0, y0, size;
};

/** The range of cells that a box intersects, inclusive at both ends. */
struct oj_quadrant_cells
{
    uint32_t column0, row0, column1, row1;
};

/** The last column and row of the grid. Coordinates beyond it are clamped. */
#define OJ_QUADRANT_LAST_COLUMN 2147483647u

/** Returns the column of coordinate v. A greater v never has a lower column, so
 * boxes that intersect have a common cell in spite of rounding. */
OJ_FN uint32_t oj_quadrant_column(double v, double origin, double size)
{
    double c = (v - origin) / size;
    if (!(c > 0.0))
        return 0;
    return c >= (double)OJ_QUADRANT_LAST_COLUMN ? OJ_QUADRANT_LAST_COLUMN
                                                : (uint32_t)c;
}

/** Finds the range of cells that a box intersects. */
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

/** Returns the number of cells of a range, as a double, because it may exceed
 *  an int64_t. */
OJ_FN double oj_quadrant_n_cells(const struct oj_quadrant_cells *cells)
{
    return ((double)cells->column1 - cells->column0 + 1.0) *
           ((double)cells->row1 - cells->row0 + 1.0);
}

/** Returns the number of a cell. Numbers ascend by row, then column. */
OJ_FN uint64_t oj_quadrant_cell(uint32_t row, uint32_t column)
{
    return (uint64_t)row << 32 | column;
}

/** Returns the index of the first of n sorted cells that is >= key. */
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

/** Among n cells sorted by (row, column), finds those in `row` within the
 * columns of *cells: *first .. *end - 1. Returns the next row that may have
 * such cells, or UINT32_MAX if there is none. */
OJ_FN uint32_t oj_quadrant_cells_of_row(const uint64_t *cell, int64_t n,
                                        uint32_t row,
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

/** Returns 1 if `cell` is the first (lowest row, then column) that the ranges a
 * and b have in common. A pair of boxes is only counted there. */
OJ_FN int oj_quadrant_is_first_common_cell(uint64_t cell,
                                           const struct oj_quadrant_cells *a,
                                           const struct oj_quadrant_cells *b)
{
    uint32_t row = a->row0 > b->row0 ? a->row0 : b->row0;
    uint32_t column = a->column0 > b->column0 ? a->column0 : b->column0;
    return cell == oj_quadrant_cell(row, column);
}

/* --- a point against a feature -------------------------------------------- */

/** Marks the last segment of a part, with the kind of the part. */
enum oj_quadrant_flag
{
    OJ_QUADRANT_POLYGON_END = 1,
    OJ_QUADRANT_LINE_END = 2 /**< also for a part that is a point */
};

/** State of the computation of a point's distance to a feature, segment by
 * segment. */
struct oj_quadrant_state
{
    double least;     /**< minimum distance to the segments visited */
    int odd, on_edge; /**< odd 1: edges of the current part cross the ray from
                           the point an odd number of times. on_edge 1: the
                           point is on a ring of the part */
    int is_in;        /**< 1: an earlier polygon of the feature contains the
                           point */
};

OJ_FN void oj_quadrant_begin_feature(struct oj_quadrant_state *s)
{
    s->least = INFINITY;
    s->odd = s->on_edge = s->is_in = 0;
}

/** Ends a part. flag is the enum oj_quadrant_flag of its last segment. A
 * polygon contains the point if it is on a ring or if the number of crossings
 * is odd; a line contains no point. */
OJ_FN void oj_quadrant_end_part(struct oj_quadrant_state *s, unsigned flag)
{
    if (flag == OJ_QUADRANT_POLYGON_END)
        s->is_in |= s->on_edge | s->odd;
    s->odd = s->on_edge = 0;
}

/** Adds the next segment a -> b of the feature. If interior is 1, points inside
 * of polygons have distance 0. flag is of enum oj_quadrant_flag if the segment
 * is the last of its part, otherwise 0. */
OJ_FN void oj_quadrant_add_segment(struct oj_quadrant_state *s, double px,
                                   double py, double ax, double ay, double bx,
                                   double by, int interior, unsigned flag)
{
    double d = oj_segment_distance(px, py, ax, ay, bx, by);
    s->least = d < s->least ? d : s->least;
    if (!interior)
        return;
    if (!s->is_in)
    {
        int edge = oj_ring_edge_crosses_ray(px, py, ax, ay, bx, by);
        if (edge == OJ_ON_BOUNDARY)
            s->on_edge = 1;
        else
            s->odd ^= edge;
    }
    if (flag != 0)
        oj_quadrant_end_part(s, flag);
}

/** The nearest feature found for a point. */
struct oj_quadrant_best
{
    double distance;
    int32_t rank; /**< tie rank of the feature; INT32_MAX: none found */
};

/** Replaces *best if this feature is within max_distance and nearer, or equally
 * near with a lower tie rank. */
OJ_FN void oj_quadrant_keep_nearer(struct oj_quadrant_best *best,
                                   double distance, int32_t rank,
                                   double max_distance)
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

/** Returns the distance of the point to the feature, after its last segment was
 *  added. */
OJ_FN double oj_quadrant_distance(const struct oj_quadrant_state *s)
{
    return s->is_in ? 0.0 : s->least;
}

#endif
