/** Cells over a feature of many edges.
 *
 *  The feature's box is cut into nx x ny cells. A cell knows which edges touch
 *  it, and where it lies if none does; if some do, whether its reference point
 *  is inside.  So a window of a few cells is often decided without a look at
 *  the feature, and else by a few edges.
 *
 *      state   outside, inside: no edge touches the cell
 *              edges: entry[first .. first of the next cell)
 *
 *  Works for rings of all polygons together (even-odd), for lines, and for
 *  points as edges of no length; the last two have no inside.
 *  Source: cells with a reference point as in S2's cell index; planar and even-
 *  odd here.
 */
#ifndef CPU_CELLS_H
#define CPU_CELLS_H

#include "../flatten/oj_status.h"
#include "kernels/oj_ring.h"
#include "oj_boxes.h"

#include <stdint.h>

/** Owner. */
struct oj_cells
{
    int64_t n_cells;
};

void oj_cells_free(struct oj_cells *cells);

#endif
