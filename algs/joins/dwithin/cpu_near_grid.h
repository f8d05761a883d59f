/** A grid over the points of the join side, for pairs of points within a
 *  distance.
 *
 *  cells      . . . . .       one empty row and column around all others, so
 *             . 0 1 2 .       that every cell has eight neighbours
 *             . 3 4 5 .
 *             . . . . .
 *  cell_start [ .. ]          first point of each cell, row by row
 *  x, y, id   0 0 1 2 2 2 3   the points by cell (here the number of the cell);
 *                             within a cell in the order of the layer
 *
 *  A cell is at least as wide as the maximum distance, so all partners of a
 *  point are in three runs of consecutive points: the point's own cell with the
 *  cells to its left and right, and the three cells above and below these.
 *  Points outside of the frame are assigned to its border cells; points near
 *  each other are still in neighbouring cells. If the points are too unevenly
 *  distributed for a grid (a few points very far away), the build sets
 *  is_uneven. */
#ifndef CPU_NEAR_GRID_H
#define CPU_NEAR_GRID_H

#include "../../foundations/base/oj_feature_box.h"

/** Number of points that are compared at a time. */
#define OJ_NEAR_LANES 8

/** The grid. Owner; zeroed memory is a valid empty one. */
struct oj_near_grid
{
    int64_t n;                 /**< number of points; those with NaN are left
                                    out */
    double *x, *y;             /**< [n], then OJ_NEAR_LANES unused elements */
    int32_t *id;               /**< [n] tie ranks, or ordinals if there is no
                                    tie rank; then OJ_NEAR_LANES unused
                                    elements */
    int64_t n_columns, n_rows; /**< numbers of columns and rows, including the
                                    empty ones */
    uint32_t *cell_start;      /**< [n_columns * n_rows + 1] position of the
                                    first point of each cell */
    double x0, y0, inverse;    /**< lower left corner of the frame, and 1 /
                                    width of a cell */
    int is_uneven;             /**< 1: the points are too unevenly distributed
                                    for a grid */
};

/** Sorts the points of flat (short form) into cells, for distances up to reach,
 * which must be finite and >= 0. The points get the ids tie_rank [n_features],
 * or their ordinals if tie_rank is NULL. */
OJ_MUST_USE oj_status oj_near_grid_build(struct oj_near_grid *grid,
                                         const struct oj_flat *flat,
                                         const int32_t *tie_rank, double reach,
                                         int n_threads, struct oj_error *err);

int64_t oj_near_grid_bytes(const struct oj_near_grid *grid);

void oj_near_grid_free(struct oj_near_grid *grid);

/** Returns the column or row of a coordinate, from 1 to n - 2, where n is the
 * number of columns or rows including the empty ones at both ends. */
static inline int64_t oj_near_column(double v, double origin, double inverse,
                                     int64_t n)
{
    double c = (v - origin) * inverse;
    if (!(c >= 1.0))
        return 1;
    return c < (double)(n - 2) ? (int64_t)c + 1 : n - 2;
}

/** Returns the number of the cell that contains x, y. */
static inline int64_t oj_near_cell_number(const struct oj_near_grid *grid,
                                          double x, double y)
{
    int64_t column =
        oj_near_column(x, grid->x0, grid->inverse, grid->n_columns);
    int64_t row = oj_near_column(y, grid->y0, grid->inverse, grid->n_rows);
    return row * grid->n_columns + column;
}

/** Returns the element of cell_start for the cell that contains x, y. */
static inline const uint32_t *oj_near_cell(const struct oj_near_grid *grid,
                                           double x, double y)
{
    return grid->cell_start + oj_near_cell_number(grid, x, y);
}

/** Returns the position of the first point of a run. A run is the points in row
 * -1, 0 or 1 of the 3 x 3 cells around `cell`. All points within reach of a
 * point of the cell are in the three runs. */
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
 *
 * The inner loop of the join. It compares squared distances
 * (oj_square_limit.h). */

/** The possible partners of the points of one cell, copied into contiguous
 *  arrays.  Owner; zeroed memory is a valid empty one. */
struct oj_near_hood
{
    const uint32_t *cell; /**< the cell, as an element of cell_start */
    int64_t n;            /**< number of points; OJ_NEAR_LANES more follow,
                               which are NaN */
    double *x, *y;
    int32_t *id;
    int64_t cap_x, cap_y, cap_id;
};

/** A point whose partners are searched, and the limits on them. */
struct oj_near_query
{
    double x, y;
    double least2, most2;      /**< squares of the minimum and maximum
                                    distance */
    int32_t from, end, except; /**< partners must have from <= id < end and id
                                    != except */
};

/** Returns 1 if the point x, y with this id is a partner of the query's point.
 * Sets *d2 to the square of their distance in any case. */
static inline int oj_near_is_partner(const struct oj_near_query *q, double x,
                                     double y, int32_t id, double *d2)
{
    double dx = q->x - x, dy = q->y - y;
    *d2 = dx * dx + dy * dy;
    return (*d2 <= q->most2) & (*d2 >= q->least2) & (id >= q->from) &
           (id < q->end) & (id != q->except);
}

/** An implementation of the search for partners: oj_near_plain, or that of
 * oj_near_avx512(), which needs the compress instructions of AVX-512. */
struct oj_near_kernel
{
    /** Returns the number of partners of the query's point. */
    int64_t (*count)(const struct oj_near_hood *hood,
                     const struct oj_near_query *query);

    /** Stores ids and squared distances of the partners, in the order of the
     * hood, and returns their number. Both arrays need room for hood->n +
     * OJ_NEAR_LANES elements, since elements behind the partners are
     * overwritten. */
    int64_t (*collect)(const struct oj_near_hood *hood,
                       const struct oj_near_query *query, int32_t *id,
                       double *d2);
};

/** Computes distances from their squares; both may be one array. */
void oj_near_square_roots(int64_t n, const double *d2, double *distance);

/** Fills hood with the points of the cell that contains x, y and of its eight
 * neighbours. */
OJ_MUST_USE oj_status oj_near_hood_copy_cells_around(
    struct oj_near_hood *hood, const struct oj_near_grid *grid, double x,
    double y, struct oj_error *err);

/** Empties the hood, so that points can be added to it. */
static inline void oj_near_hood_clear(struct oj_near_hood *hood)
{
    hood->cell = NULL;
    hood->n = 0;
}

/** Adds the n points of the grid from position `first` on.
 * oj_near_hood_pad_with_nan() must be called after the last of them. */
OJ_MUST_USE oj_status oj_near_hood_add_points(struct oj_near_hood *hood,
                                              const struct oj_near_grid *grid,
                                              int64_t first, int64_t n,
                                              struct oj_error *err);

/** Appends the OJ_NEAR_LANES points with NaN that the kernels read beyond the
 * last point of a hood; nothing if the hood is empty. */
void oj_near_hood_pad_with_nan(struct oj_near_hood *hood);

void oj_near_hood_free(struct oj_near_hood *hood);

/** The implementation for all processors. */
extern const struct oj_near_kernel oj_near_plain;

/** Returns the implementation for AVX-512, or NULL if this processor lacks it.
 */
const struct oj_near_kernel *oj_near_avx512(void);

/** Returns the fastest implementation for this processor. */
const struct oj_near_kernel *oj_near_kernel(void);

#endif
