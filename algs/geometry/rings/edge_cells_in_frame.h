/** A grid of square cells over a box (the frame), and the cells that an edge
 *  may intersect.
 *
 *  One function, oj_frame_index(), computes rows and columns. It is monotone in
 *  the coordinate. So in spite of rounding, an edge only intersects cells
 *  between the rows and columns of its ends.
 *
 *  For an edge over several rows and columns, the range of x in each row is
 *  computed and widened by a margin m on both sides:
 *
 *    m = (1e-9 cell + 1e-14 E) (1 + |s|)
 *
 *  Proof that no cell is lost: let S be the largest coordinate of the box, W
 *  its longer side, E the largest coordinate of the edge, s its slope dx / dy,
 *  u = 2^-53.  The computed y of the row's limits has an error of at most
 *  4 u W + u S < 1e-15 S.  The computed x of the edge at such a limit has an
 *  error of |s| times that, plus less than 11 u E for the rounding of its own
 *  operations.  Together these errors are below 1e-15 S |s| + 1.3e-15 E.  If
 *  E >= S / 10, the second term of m is larger.  If E < S / 10, the edge can
 *  only intersect the box if W > 0.9 S; there are fewer than 2^15 cells along
 *  W, so 1e-9 cell > 2e-14 S, and the first term is larger.
 */
#ifndef EDGE_CELLS_IN_FRAME_H
#define EDGE_CELLS_IN_FRAME_H

#include <math.h>
#include <stdint.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/** Maximum number of columns, and of rows. */
#define OJ_FRAME_MOST 32767

/** A grid of square cells over a box. */
struct oj_edge_frame
{
    double x0, y0;         /* lower left corner; adjacent members, so that one
                              vector load reads both */
    double last_x, last_y; /**< index of the last column and of the last row */
    double inverse;        /**< 1 / cell */
    double cell;           /**< side of a cell, CRS units; at least 1e-12 of the
                                largest coordinate */
};

/** Returns the row or column of coordinate v, from 0 to last. A greater v never
 *  has a lower index. */
static inline int32_t oj_frame_index(double v, double origin, double inverse,
                                     double last)
{
    double c = (v - origin) * inverse;
    c = c > 0.0 ? c : 0.0;
    c = c < last ? c : last;
    return (int32_t)c;
}

static inline int32_t oj_frame_column(const struct oj_edge_frame *f, double x)
{
    return oj_frame_index(x, f->x0, f->inverse, f->last_x);
}

static inline int32_t oj_frame_row(const struct oj_edge_frame *f, double y)
{
    return oj_frame_index(y, f->y0, f->inverse, f->last_y);
}

/** Column and row of a point. */
static inline void oj_frame_column_and_row(const struct oj_edge_frame *f,
                                           double x, double y, int32_t *column,
                                           int32_t *row)
{
#if defined(__SSE2__)
    /* computes column and row by vector instructions, because compilers turn
     * the scalar code into branches; the result is equal */
    __m128d p = _mm_sub_pd(_mm_set_pd(y, x), _mm_loadu_pd(&f->x0));
    __m128i at;
    p = _mm_mul_pd(p, _mm_set1_pd(f->inverse));
    p = _mm_max_pd(p, _mm_setzero_pd());
    p = _mm_min_pd(p, _mm_loadu_pd(&f->last_x));
    at = _mm_cvttpd_epi32(p);
    *column = _mm_cvtsi128_si32(at);
    *row = _mm_cvtsi128_si32(_mm_shuffle_epi32(at, 1));
#else
    *column = oj_frame_column(f, x);
    *row = oj_frame_row(f, y);
#endif
}

/** A range of columns and rows, inclusive at both ends. */
struct oj_edge_window
{
    int32_t column0, column1, row0, row1;
};

/** Returns the cells that the box (x0, y0, x1, y1) intersects. */
static inline struct oj_edge_window
oj_frame_window(const struct oj_edge_frame *f, double x0, double y0, double x1,
                double y1)
{
    struct oj_edge_window w;
    oj_frame_column_and_row(f, x0, y0, &w.column0, &w.row0);
    oj_frame_column_and_row(f, x1, y1, &w.column1, &w.row1);
    return w;
}

/** An edge, prepared for finding the cells that it intersects in each row. */
struct oj_edge_rows
{
    struct oj_edge_window window;
    double ax, ay, bx, by; /* ay <= by */
    double slope, margin;  /* s and m of the proof above */
    int is_narrow; /* 1: the columns are computed row by row; 0: all columns of
                      the window are taken in each row */
};

/** Prepares the edge from a to b. */
static inline struct oj_edge_rows oj_edge_rows_of(const struct oj_edge_frame *f,
                                                  double ax, double ay,
                                                  double bx, double by)
{
    struct oj_edge_rows e;
    int is_falling = by < ay;
    double size = fabs(ax);
    size = fabs(bx) > size ? fabs(bx) : size;
    size = fabs(ay) > size ? fabs(ay) : size;
    size = fabs(by) > size ? fabs(by) : size;
    e.ax = is_falling ? bx : ax;
    e.ay = is_falling ? by : ay;
    e.bx = is_falling ? ax : bx;
    e.by = is_falling ? ay : by;
    e.window =
        oj_frame_window(f, ax < bx ? ax : bx, e.ay, ax < bx ? bx : ax, e.by);
    e.slope = e.margin = 0.0;
    e.is_narrow =
        e.window.row0 != e.window.row1 && e.window.column0 != e.window.column1;
    if (e.is_narrow)
    {
        e.slope = (e.bx - e.ax) / (e.by - e.ay);
        e.margin = (1e-9 * f->cell + 1e-14 * size) * (1.0 + fabs(e.slope));
        e.is_narrow = e.margin < f->cell; /* also 0 if the slope overflows */
    }
    return e;
}

/** Sets *first and *last to the columns that the edge may intersect in one
 *  row. */
static inline void oj_edge_columns(const struct oj_edge_frame *f,
                                   const struct oj_edge_rows *e, int32_t row,
                                   int32_t *first, int32_t *last)
{
    double low = f->y0 + (double)row * f->cell, high = low + f->cell;
    double from, to;
    int32_t column;
    *first = e->window.column0;
    *last = e->window.column1;
    if (!e->is_narrow)
        return;
    from = low > e->ay ? e->ax + (low - e->ay) * e->slope : e->ax;
    to = high < e->by ? e->ax + (high - e->ay) * e->slope : e->bx;
    column = oj_frame_column(f, (from < to ? from : to) - e->margin);
    *first = column > *first ? column : *first;
    column = oj_frame_column(f, (from < to ? to : from) + e->margin);
    *last = column < *last ? column : *last;
}

#endif
