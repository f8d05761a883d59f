/** Point in one large ring by cells with a known state.
 *
 *  The ring's box is cut into nx x ny cells of a few edges each.  A cell knows
 *  the edges that touch it, as runs of consecutive ones, and whether its
 *  reference point c, just below the cell, is inside; the location of any point
 *  of the cell follows from those few edges:
 *
 *      q ----- p  p is inside iff the path p -> q -> c crosses the ring an
 *      |          odd number of times and c is outside, or an even number
 *      c          and c is inside; only edges of the cell can cross it
 *
 *  Which cell a coordinate belongs to is computed by one function that never
 *  decreases, so an edge is known to touch no cells but those between its ends'
 *  whatever the rounding; and since c lies where a row begins, only edges whose
 *  ends are in different rows can change the state from cell to cell.
 *
 *  Exact: crossings are decided by exact orientation; where the path goes
 *  through an edge's end or along an edge, the whole ring is asked instead.
 *  Source: cells with a reference point as in S2's cell index; planar and even-
 *  odd here.
 */
#ifndef CPU_RING_GRID_H
#define CPU_RING_GRID_H

#include "../flatten/oj_status.h"
#include "kernels/oj_ring.h"

#include <stdint.h>

/** Consecutive edges first .. first + n - 1; edge e is vertices e, e + 1. */
struct oj_edge_run
{
    uint32_t first, n;
};

/** Owner of its cells; the ring's coordinates stay the caller's. */
struct oj_ring_grid
{
    int64_t n_vertices;
    const double *x, *y;
    double x0, y0, cell, inverse_cell;
    int64_t nx, ny; /**< 0: coordinates of sizes at which nothing but walking
                         the ring is safe */

    /** [nx * ny + 1] 4 * first run + enum oj_location of the reference point;
     *  OJ_ON_BOUNDARY: not usable. */
    uint32_t *first_run;
    struct oj_edge_run *run;
    double *below; /**< [ny] y of the row's reference points: the last double
                        that belongs to the row below */
};

/** Builds the grid of the closed ring x, y [n]; finite coordinates; n at most
 *  2^27.  O(n) time and memory. */
OJ_MUST_USE oj_status oj_ring_grid_build(struct oj_ring_grid *grid,
                                         const double *x, const double *y,
                                         int64_t n, struct oj_error *err);

/** The number of v's row or column among n; never decreases with v. */
static inline int32_t oj_ring_grid_index(double v, double origin,
                                         double inverse, int64_t n)
{
    double c = (v - origin) * inverse, last = (double)(n - 1);
    c = c > 0.0 ? c : 0.0;
    c = c < last ? c : last;
    return (int32_t)c;
}

/** The cell of p, or 0 where there are none. */
static inline int64_t oj_ring_grid_cell(const struct oj_ring_grid *g, double px,
                                        double py)
{
    return g->nx == 0
               ? 0
               : oj_ring_grid_index(py, g->y0, g->inverse_cell, g->ny) * g->nx +
                     oj_ring_grid_index(px, g->x0, g->inverse_cell, g->nx);
}

/** Where all points of a cell without edges are; -1: the cell has edges. */
static inline int oj_ring_grid_known(const struct oj_ring_grid *g, int64_t cell)
{
    uint32_t run;
    if (g->nx == 0)
        return -1;
    run = g->first_run[cell];
    return run / 4 == g->first_run[cell + 1] / 4 && run % 4 != OJ_ON_BOUNDARY
               ? (int)(run % 4)
               : -1;
}

/** Where p, which is in this cell, is, by the cell's edges. */
enum oj_location oj_ring_grid_test(const struct oj_ring_grid *grid,
                                   int64_t cell, double px, double py);

/* Asks the memory for what oj_ring_grid_test() will read of a cell that is not
 * known: the runs, and later their edges. */

static inline void oj_ring_grid_fetch_runs(const struct oj_ring_grid *g,
                                           int64_t cell)
{
    if (g->nx > 0)
        __builtin_prefetch(g->run + g->first_run[cell] / 4);
}

static inline void oj_ring_grid_fetch_edges(const struct oj_ring_grid *g,
                                            int64_t cell)
{
    uint32_t run, end;
    if (g->nx == 0)
        return;
    run = g->first_run[cell] / 4;
    end = g->first_run[cell + 1] / 4;
    for (end = end < run + 4 ? end : run + 4; run < end; run++)
    {
        int64_t first = g->run[run].first, last = first + g->run[run].n;
        __builtin_prefetch(g->x + first);
        __builtin_prefetch(g->y + first);
        __builtin_prefetch(g->x + last);
        __builtin_prefetch(g->y + last);
    }
}

/** Where p is. Equal to oj_ring_locate(). */
static inline enum oj_location oj_ring_grid_locate(const struct oj_ring_grid *g,
                                                   double px, double py)
{
    int64_t cell = oj_ring_grid_cell(g, px, py);
    int known = oj_ring_grid_known(g, cell);
    return known >= 0 ? (enum oj_location)known
                      : oj_ring_grid_test(g, cell, px, py);
}

int64_t oj_ring_grid_bytes(const struct oj_ring_grid *grid);

void oj_ring_grid_free(struct oj_ring_grid *grid);

#endif
