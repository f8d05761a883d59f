/** Point in one large ring by cells with a known state.
 *
 *  The ring's box is cut into nx x ny cells of about one edge each. A cell
 * knows the edges that touch it and whether its reference point is inside; the
 *  location of any other point of the cell follows from those few edges:
 *
 *      c          p is inside iff the path p -> q -> c crosses the ring an
 *      |          odd number of times and c is outside, or an even number
 *      q ----- p  and c is inside; only edges of the cell can cross it
 *
 *  Exact: crossings are decided by exact orientation; where the path touches an
 *  edge without crossing it clearly, the whole ring is asked instead.
 *  Source: cells with a reference point as in S2's cell index; planar and even-
 *  odd here.
 */
#ifndef CPU_RING_GRID_H
#define CPU_RING_GRID_H

#include "../flatten/oj_status.h"
#include "kernels/oj_ring.h"

#include <stdint.h>

/** Owner of its cells; the ring's coordinates stay the caller's. */
struct oj_ring_grid
{
    int64_t n_vertices;
    const double *x, *y;
    double x0, y0, cell, inverse_cell;
    int64_t nx, ny;
    int64_t *edge_offset; /**< [nx * ny + 1] into edge */
    uint32_t *edge;       /**< edge e is vertices e, e + 1 */
    uint8_t *state;       /**< [nx * ny] enum oj_location of the reference
                               point; OJ_ON_BOUNDARY: not usable */
};

/** Builds the grid of the closed ring x, y [n]; finite coordinates, n < 2^32.
 *  O(n) time and memory. */
OJ_MUST_USE oj_status oj_ring_grid_build(struct oj_ring_grid *grid,
                                         const double *x, const double *y,
                                         int64_t n, struct oj_error *err);

/** Where p, inside the box of the ring, is. Equal to oj_ring_locate(). */
enum oj_location oj_ring_grid_locate(const struct oj_ring_grid *grid, double px,
                                     double py);

int64_t oj_ring_grid_bytes(const struct oj_ring_grid *grid);

void oj_ring_grid_free(struct oj_ring_grid *grid);

#endif
