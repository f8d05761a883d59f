/** Pairs of points within a distance that is known beforehand, or at the same
 *  place: the points of the join side in square cells.
 *
 *  Cells are at least as wide as the distance, so that the partners of a point
 *  lie in three columns and three rows.  Where cells are goes round after some
 *  power of two of columns and of rows, as on a torus, so that there are about
 *  as many places as points wherever these are:
 *
 *    place        (row mod rows) * columns + (column mod columns)
 *    entry        0 .. n - 1 in the order of places, then of ranks
 *    start[place] its first entry; start[place + 1] the first of the next
 *
 *  Cells only say what need not be looked at; the test of an entry is that of
 *  the definition, on the coordinates as they are.
 *  Source: ours.
 */
#ifndef OJ_CLOSE_POINTS_H
#define OJ_CLOSE_POINTS_H

#include "../../../algs/foundations/kernels/oj_segment.h"
#include "../../../algs/foundations/kernels/oj_square_limit.h"
#include "../../foundations/device/oj_segment_record.h"
#include "../../foundations/index/oj_pair_conditions.h"

/** The join side. Borrows everything. */
struct oj_close_side
{
    int64_t n;            /**< entries, below 2^31 */
    double reach;         /**< of a window around a point */
    double least2, most2; /**< limits of squared distances */
    int equal;            /**< 1: coordinates are equal; 0 is -0 */
    double x0, y0, scale; /**< corner, cells in one unit */
    uint32_t column_mask, row_mask;
    int32_t column_bits;
    const uint32_t *start;              /**< [places + 1] */
    const struct oj_point_place *entry; /**< [n] */
    const int32_t *rank;                /**< [n] */
};

/** Columns that there can be; the last one also has all beyond. */
#define OJ_CLOSE_LAST_COLUMN 2147483647u

/** Bits of places, at least and at most. */
#define OJ_CLOSE_LEAST_BITS 8
#define OJ_CLOSE_MOST_BITS 28

/* Points of a lattice shall not all come round to the same few places: so the
 * side of a cell is no simple multiple of a distance or an extent. */
#define OJ_CLOSE_WIDER 1.0618033988749895

/* What rounding may take from a window, by magnitude: see
 * oj_close_visit_start(). */
#define OJ_CLOSE_SLACK 2e-15

OJ_FN int64_t oj_close_n_places(const struct oj_close_side *side)
{
    return ((int64_t)side->row_mask + 1) << side->column_bits;
}

/** The shape of cells for n points from x0, y0 to x1, y1: least <= distance <=
 *  reach, which is finite; equal: at the same place, whatever the others
 *  are.  A reach that is none finds nothing.  The host's. */
static inline void oj_close_layout(struct oj_close_side *side, int64_t n,
                                   double x0, double y0, double x1, double y1,
                                   int equal, double least, double reach)
{
    double extent = x1 - x0 > y1 - y0 ? x1 - x0 : y1 - y0;
    double size = fabs(x0) > fabs(x1) ? fabs(x0) : fabs(x1);
    int bits = OJ_CLOSE_LEAST_BITS;
    size = fabs(y0) > size ? fabs(y0) : size;
    size = fabs(y1) > size ? fabs(y1) : size;
    size *= 50.0 * OJ_CLOSE_SLACK; /* windows stay narrow */
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
        side->least2 = least > 0.0 ? oj_square_least(least) : 0.0;
        side->most2 = oj_square_most(reach);
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

/** Never decreases with v, whatever rounding does. */
OJ_FN uint32_t oj_close_column(double v, double origin, double scale)
{
    double c = (v - origin) * scale;
    if (!(c > 0.0))
        return 0;
    return c >= (double)OJ_CLOSE_LAST_COLUMN ? OJ_CLOSE_LAST_COLUMN
                                             : (uint32_t)c;
}

/** Where the point of the cell that x, y is in. */
OJ_FN uint32_t oj_close_place_of(const struct oj_close_side *side, double x,
                                 double y)
{
    uint32_t column = oj_close_column(x, side->x0, side->scale);
    uint32_t row = oj_close_column(y, side->y0, side->scale);
    return (row & side->row_mask) << side->column_bits |
           (column & side->column_mask);
}

/* --- looking around a point ----------------------------------------------- */

/** The places around a point, row by row. */
struct oj_close_visit
{
    double x, y;
    uint32_t column, n_columns; /* of every row, at most all of them */
    uint32_t row, n_rows;       /* those still to come */
    uint32_t done;              /* columns of this row */
    uint32_t at, end;           /* entries of places that were looked up */
};

/** Returns 0 when nothing can be found; nothing comes then.
 *
 *  Let u = 2^-53.  A partner q has fl(sqrt(dx^2 + dy^2)) <= reach, so |dx| <=
 *  reach (1 + 4 u), or the square underflowed and |dx| < 2^-510; and px - qx
 *  is dx (1 + u).  The ends of the window are off by u (|px| + reach) when they
 *  are computed, and the slack by 2 u of itself: 18 u (|px| + reach), which
 *  OJ_CLOSE_SLACK is, covers all of these. */
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

/* The entries of the next places side by side; 0 when there are none left. */
OJ_FN int oj_close_visit_run(struct oj_close_visit *v,
                             const struct oj_close_side *side)
{
    uint32_t column, n, at;
    if (v->n_rows == 0)
        return 0;
    column = (v->column + v->done) & side->column_mask;
    n = v->n_columns - v->done;
    if (n > side->column_mask + 1 - column)
        n = side->column_mask + 1 - column; /* the others are at the front */
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

/** Entries that are tested at a time. */
#define OJ_CLOSE_AT_ONCE 8

/** The next entries that may be partners, up to OJ_CLOSE_AT_ONCE: returns how
 *  many from *first on. Every entry comes once; 0 after the last of them. */
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

/** Bit i: the place of entry first + i is as it should be; n of them. */
OJ_FN uint32_t oj_close_bits(const struct oj_close_side *side,
                             const struct oj_close_visit *v, uint32_t first,
                             uint32_t n)
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

/** 1 when row, which is at v, and an entry at a place that passed may be a
 *  pair; rule's columns of the join side are those of entries. */
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
