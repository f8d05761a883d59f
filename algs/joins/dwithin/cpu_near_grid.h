/** Points of the join side in cells, for pairs of points within a distance.
 *
 *  cells      . . . . .       one empty row and column around all others, so
 *             . 0 1 2 .       that a cell always has eight neighbours
 *             . 3 4 5 .
 *             . . . . .
 *  cell_start [ .. ]          first point of each cell, row by row
 *  x, y, id   0 0 1 2 2 2 3   the points, cell by cell; in a cell in the order
 *                             of the layer
 *
 *  A cell is at least as wide as the greatest distance, so a point's partners
 *  are in three runs: its own cell and the cells left and right of it, and the
 *  same below and above.  What lies outside the frame is in the cells of its
 *  rim: that keeps neighbours neighbours.  Where the data are too uneven for
 *  cells (few points very far away), the build says so.
 */
#ifndef CPU_NEAR_GRID_H
#define CPU_NEAR_GRID_H

#include "../../foundations/base/oj_feature_box.h"

/** Points are looked at so many at a time. */
#define OJ_NEAR_LANES 8

/** Owner; zeroed memory is a valid empty one. */
struct oj_near_grid
{
    int64_t n;                 /**< points; those that are NaN are left out */
    double *x, *y;             /**< [n] */
    int32_t *id;               /**< [n] tie ranks, or ordinals */
    int64_t n_columns, n_rows; /**< with the empty ones */
    uint32_t *cell_start;      /**< [n_columns * n_rows + 1] */
    double x0, y0, inverse;    /**< frame, and 1 / width of a cell */
    int is_uneven;             /**< 1: the cells do not serve these data */
};

/** Puts the points of flat (short form) into cells for distances up to reach,
 *  finite and >= 0.  tie_rank: [n_features], or NULL: the ordinal. */
OJ_MUST_USE oj_status oj_near_grid_build(struct oj_near_grid *grid,
                                         const struct oj_flat *flat,
                                         const int32_t *tie_rank, double reach,
                                         int n_threads, struct oj_error *err);

int64_t oj_near_grid_bytes(const struct oj_near_grid *grid);

void oj_near_grid_free(struct oj_near_grid *grid);

/** Column or row of a coordinate, from 1 to n - 2. */
static inline int64_t oj_near_column(double v, double origin, double inverse,
                                     int64_t n)
{
    double c = (v - origin) * inverse;
    if (!(c >= 1.0))
        return 1;
    return c < (double)(n - 2) ? (int64_t)c + 1 : n - 2;
}

/** The number of the cell of x, y. */
static inline int64_t oj_near_cell_number(const struct oj_near_grid *grid,
                                          double x, double y)
{
    int64_t column =
        oj_near_column(x, grid->x0, grid->inverse, grid->n_columns);
    int64_t row = oj_near_column(y, grid->y0, grid->inverse, grid->n_rows);
    return row * grid->n_columns + column;
}

/** The cell of x, y: its place in cell_start. */
static inline const uint32_t *oj_near_cell(const struct oj_near_grid *grid,
                                           double x, double y)
{
    return grid->cell_start + oj_near_cell_number(grid, x, y);
}

/** The run of points in the cells around cell, row -1, 0 or 1: what is within
 *  reach of a point of the cell is in one of the three runs. */
static inline int64_t oj_near_run_begin(const struct oj_near_grid *grid,
                                        const uint32_t *cell, int64_t row)
{
    return cell[row * grid->n_columns - 1];
}

static inline int64_t oj_near_run_end(const struct oj_near_grid *grid,
                                      const uint32_t *cell, int64_t row)
{
    return cell[row * grid->n_columns + 2];
}

/* --- the partners of a point -----------------------------------------------

 * The inner loop; decided by squares (oj_square_limit.h). */

/** The points that can be partners of those in one cell, side by side.
 *  Owner; zeroed memory is a valid one of no cell. */
struct oj_near_hood
{
    const uint32_t *cell; /**< whose: its place in cell_start */
    int64_t n;            /**< points; OJ_NEAR_LANES more follow that are NaN */
    double *x, *y;
    int32_t *id;
    int64_t cap_x, cap_y, cap_id;
};

/** What a point asks for. */
struct oj_near_query
{
    double x, y;
    double least2, most2;      /**< squares of the distances that count */
    int32_t from, end, except; /**< ids that count: from <= id < end, but not
                                    this one */
};

/** 1 when a point is a partner; *d2: the square of its distance. */
static inline int oj_near_is_partner(const struct oj_near_query *q, double x,
                                     double y, int32_t id, double *d2)
{
    double dx = q->x - x, dy = q->y - y;
    *d2 = dx * dx + dy * dy;
    return (*d2 <= q->most2) & (*d2 >= q->least2) & (id >= q->from) &
           (id < q->end) & (id != q->except);
}

/** Two ways to do the same, one for processors that pick lanes. */
struct oj_near_kernel
{
    /** How many partners the point has. */
    int64_t (*count)(const struct oj_near_hood *hood,
                     const struct oj_near_query *query);

    /** Their ids and squared distances, in the order of the hood.  Writes up to
     *  OJ_NEAR_LANES entries beyond them.  Returns how many. */
    int64_t (*collect)(const struct oj_near_hood *hood,
                       const struct oj_near_query *query, int32_t *id,
                       double *d2);
};

/** Distances from their squares; both may be the same array. */
void oj_near_roots(int64_t n, const double *d2, double *distance);

/** Makes hood that of the cell of x, y. */
OJ_MUST_USE oj_status oj_near_hood_move(struct oj_near_hood *hood,
                                        const struct oj_near_grid *grid,
                                        double x, double y,
                                        struct oj_error *err);

/** Makes hood one of no cell and no points; then points are added to it. */
static inline void oj_near_hood_clear(struct oj_near_hood *hood)
{
    hood->cell = NULL;
    hood->n = 0;
}

/** Adds n points of the grid, which lie side by side from `first` on. */
OJ_MUST_USE oj_status oj_near_hood_add(struct oj_near_hood *hood,
                                       const struct oj_near_grid *grid,
                                       int64_t first, int64_t n,
                                       struct oj_error *err);

void oj_near_hood_free(struct oj_near_hood *hood);

/** The plain one. */
extern const struct oj_near_kernel oj_near_plain;

/** The one for processors with AVX-512, or NULL where this one has none. */
const struct oj_near_kernel *oj_near_avx512(void);

/** The fastest that this processor can do. */
const struct oj_near_kernel *oj_near_kernel(void);

#endif
