/** Pairs of points that are equal, or within a distance fixed at build time:
 *  the points of the join side are sorted into square cells.
 *
 *  A cell is at least as wide as the distance, so the matches of a point are in
 *  three columns and three rows. Cells share places modulo a power of two of
 *  columns and rows, as on a torus, so that there are about as many places as
 *  points, even if these are far apart:
 *
 *    place    (row mod rows) * columns + (column mod columns)
 *    entry    0 .. n - 1, sorted by place, then by rank
 *    start    start[place]: its first entry; start[place + 1]: end
 *
 *  Cells only exclude entries; the others are tested on the original
 *  coordinates, by the definition of the join. Source: ours.
 */
#ifndef OJ_CLOSE_POINTS_H
#define OJ_CLOSE_POINTS_H

#include "../../../algs/foundations/kernels/oj_segment.h"
#include "../../../algs/foundations/kernels/oj_square_limit.h"
#include "../../foundations/device/oj_segment_record.h"
#include "../../foundations/index/oj_pair_conditions.h"

/** The join side as it is searched. Borrows all arrays. */
struct oj_close_side
{
    int64_t n;            /**< number of entries, below 2^31 */
    double reach;         /**< half width of the window around a point */
    double least2, most2; /**< minimum and maximum squared distance */
    int equal;            /**< 1: matches have equal coordinates (0.0 and -0.0
                               are equal); 0: matches are within a distance */
    double x0, y0, scale; /**< lower left corner, and cells per unit */
    uint32_t column_mask, row_mask;
    int32_t column_bits;
    const uint32_t *start;              /**< [places + 1] */
    const struct oj_point_place *entry; /**< [n] */
    const int32_t *rank;                /**< [n] */
};

/** Last column (or row); all larger coordinates count as in it. */
#define OJ_CLOSE_LAST_COLUMN 2147483647u

/** Minimum and maximum number of bits of a place. */
#define OJ_CLOSE_LEAST_BITS 8
#define OJ_CLOSE_MOST_BITS 28

/* Factor by which the side of a cell exceeds the distance. It is irrational,
 * because otherwise all points of a lattice could fall into few places. */
#define OJ_CLOSE_WIDER 1.0618033988749895

/* Bound for the error of the ends of a window, relative to |coordinate| +
 * reach; derived at oj_close_visit_start(). */
#define OJ_CLOSE_SLACK 2e-15

OJ_FN int64_t oj_close_n_places(const struct oj_close_side *side)
{
    return ((int64_t)side->row_mask + 1) << side->column_bits;
}

/** Chooses the cells for n points in x0 .. x1, y0 .. y1. Matches have least <=
 *  distance <= reach, with finite reach; or equal coordinates if equal is set.
 *  A negative or NaN reach matches nothing. Host only. */
static inline void oj_close_set_layout(struct oj_close_side *side, int64_t n,
                                       double x0, double y0, double x1,
                                       double y1, int equal, double least,
                                       double reach)
{
    double extent = x1 - x0 > y1 - y0 ? x1 - x0 : y1 - y0;
    double size = fabs(x0) > fabs(x1) ? fabs(x0) : fabs(x1);
    int bits = OJ_CLOSE_LEAST_BITS;
    size = fabs(y0) > size ? fabs(y0) : size;
    size = fabs(y1) > size ? fabs(y1) : size;
    /* Minimum side of a cell: with it a window is narrow in spite of its slack.
     */
    size *= 50.0 * OJ_CLOSE_SLACK;
    if (extent / OJ_CLOSE_LAST_COLUMN > size)
        size = extent / OJ_CLOSE_LAST_COLUMN;
    while (bits < OJ_CLOSE_MOST_BITS && ((int64_t)1 << bits) < n)
        bits++;
    side->n = n;
    side->equal = equal;
    side->reach = equal ? 0.0 : reach;
    side->least2 = side->most2 = -1.0;
    if (!equal && reach >= 0.0)
    {
        side->least2 = least > 0.0 ? oj_square_limit_least(least) : 0.0;
        side->most2 = oj_square_limit_most(reach);
        size = reach > size ? reach : size;
    }
    size *= OJ_CLOSE_WIDER;
    side->scale = size > 0.0 ? 1.0 / size : 0.0;
    side->x0 = x0;
    side->y0 = y0;
    side->column_bits = (bits + 1) / 2;
    side->column_mask = (1u << side->column_bits) - 1u;
    side->row_mask = (1u << (bits - side->column_bits)) - 1u;
    side->start = 0;
    side->entry = 0;
    side->rank = 0;
}

/** Returns the column (or row) of v, which never decreases as v increases, in
 * spite of rounding. */
OJ_FN uint32_t oj_close_column(double v, double origin, double scale)
{
    double c = (v - origin) * scale;
    if (!(c > 0.0))
        return 0;
    return c >= (double)OJ_CLOSE_LAST_COLUMN ? OJ_CLOSE_LAST_COLUMN
                                             : (uint32_t)c;
}

/** Returns the place of the cell that contains x, y. */
OJ_FN uint32_t oj_close_place_of(const struct oj_close_side *side, double x,
                                 double y)
{
    uint32_t column = oj_close_column(x, side->x0, side->scale);
    uint32_t row = oj_close_column(y, side->y0, side->scale);
    return (row & side->row_mask) << side->column_bits |
           (column & side->column_mask);
}

/* --- search around a point ------------------------------------------------ */

/** A search of the places (see the top of this file) that the window around a
 *  point reaches, one row of cells after the other. */
struct oj_close_visit
{
    double x, y;
    /* columns of each row that are searched; n_columns is at most the number of
     * all columns */
    uint32_t column, n_columns;
    uint32_t row, n_rows; /* the next row, and how many rows are left */
    uint32_t done;        /* columns of this row that are finished */
    uint32_t at, end;     /* entries of the current places */
};

/** Starts a search. Returns 0 if nothing can match; the search is then empty.
 *
 *  Let u = 2^-53, p the point, q a match and dx the computed difference of
 *  their x. Since fl(sqrt(dx^2 + dy^2)) <= reach, |dx| <= reach (1 + 4 u),
 *  unless the square underflowed and |dx| < 2^-510. The exact difference is dx
 *  (1 + u). The computed ends of the window have an error of u (|px| + reach),
 *  and the slack one of 2 u of itself: OJ_CLOSE_SLACK, 18 u (|px| + reach),
 *  covers all of these errors. */
OJ_FN int oj_close_visit_start(struct oj_close_visit *v,
                               const struct oj_close_side *side, double x,
                               double y)
{
    double by_x = 0.0, by_y = 0.0;
    uint32_t end;
    v->n_rows = v->at = v->end = 0;
    if (!isfinite(x) || !isfinite(y) || side->n == 0 ||
        (!side->equal && side->most2 < 0.0))
        return 0;
    if (!side->equal)
    {
        by_x = side->reach + OJ_CLOSE_SLACK * (fabs(x) + side->reach) + 1e-153;
        by_y = side->reach + OJ_CLOSE_SLACK * (fabs(y) + side->reach) + 1e-153;
    }
    v->x = x;
    v->y = y;
    v->column = oj_close_column(x - by_x, side->x0, side->scale);
    end = oj_close_column(x + by_x, side->x0, side->scale);
    v->n_columns = end - v->column < side->column_mask ? end - v->column + 1
                                                       : side->column_mask + 1;
    v->row = oj_close_column(y - by_y, side->y0, side->scale);
    end = oj_close_column(y + by_y, side->y0, side->scale);
    v->n_rows =
        end - v->row < side->row_mask ? end - v->row + 1 : side->row_mask + 1;
    v->done = 0;
    return 1;
}

/* Advances to the entries of the next adjacent places; returns 0 if none are
 * left. */
OJ_FN int oj_close_visit_run(struct oj_close_visit *v,
                             const struct oj_close_side *side)
{
    uint32_t column, n, at;
    if (v->n_rows == 0)
        return 0;
    column = (v->column + v->done) & side->column_mask;
    n = v->n_columns - v->done;
    if (n > side->column_mask + 1 - column)
        /* columns wrap around: the remaining ones are at the start of the row
         */
        n = side->column_mask + 1 - column;
    at = (v->row & side->row_mask) << side->column_bits | column;
    v->done += n;
    if (v->done == v->n_columns)
    {
        v->done = 0;
        v->row++;
        v->n_rows--;
    }
    v->at = side->start[at];
    v->end = side->start[at + n];
    return 1;
}

/** Number of entries that are tested at a time. */
#define OJ_CLOSE_AT_ONCE 8

/** Returns how many of the next entries may match, at most OJ_CLOSE_AT_ONCE,
 *  and the first of them in *first; 0 at the end. Each entry is returned once.
 */
OJ_FN uint32_t oj_close_visit_next(struct oj_close_visit *v,
                                   const struct oj_close_side *side,
                                   uint32_t *first)
{
    uint32_t n;
    while (v->at == v->end)
    {
        if (!oj_close_visit_run(v, side))
            return 0;
    }
    n = v->end - v->at < OJ_CLOSE_AT_ONCE ? v->end - v->at : OJ_CLOSE_AT_ONCE;
    *first = v->at;
    v->at += n;
    return n;
}

/** Returns a mask of n entries from first on: bit i is set if the location of
 *  entry first + i matches. */
OJ_FN uint32_t oj_close_match_mask(const struct oj_close_side *side,
                                   const struct oj_close_visit *v,
                                   uint32_t first, uint32_t n)
{
    uint32_t bits = 0, i;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (i = 0; i < OJ_CLOSE_AT_ONCE; i++)
    {
        struct oj_point_place q;
        double dx, dy, d2;
        if (i >= n)
            break;
        q = side->entry[first + i];
        if (side->equal)
        {
            bits |= (uint32_t)(q.x == v->x && q.y == v->y) << i;
            continue;
        }
        dx = v->x - q.x;
        dy = v->y - q.y;
        d2 = dx * dx + dy * dy;
        bits |= (uint32_t)(d2 <= side->most2 && d2 >= side->least2) << i;
    }
    return bits;
}

/** Returns 1 if the conditions allow a pair of the point `row`, which is at
 *  (v->x, v->y), and an entry whose location matches. The rule's columns of
 *  the join side are indexed by entry. */
OJ_FN int oj_close_may_pair(const struct oj_close_side *side,
                            const struct oj_close_visit *v,
                            const struct oj_pair_rule *rule, int64_t row,
                            uint32_t entry)
{
    const struct oj_point_place *q = &side->entry[entry];
    int is_same = rule->excludes_same && q->x == v->x && q->y == v->y;
    return oj_pair_rule_passes(rule, row, (int32_t)entry, is_same);
}

OJ_FN double oj_close_distance(const struct oj_close_side *side, double x,
                               double y, uint32_t entry)
{
    const struct oj_point_place *q = &side->entry[entry];
    return oj_point_distance(x, y, q->x, q->y);
}

#endif
