/** Squares of the plane that know which features of a polygon layer they lie
 *  in, for points in such numbers that preparing the plane pays.
 *
 *   cell[c].list    the list of the features that hold all of cell c
 *   cell[c].first   candidates cell[c].first .. cell[c + 1].first - 1: what may
 *                   hold a part of it
 *
 *  Cells of one list share it (struct oj_shared_lists), so a point costs one
 *  look-up, and its exact test is for those few rings only whose edges pass
 *  through its cell.
 *
 *  A candidate is a ring with edges in the cell, r, or, as ~r, the news that
 * the cell lies inside of an odd number of the other rings of ring r's feature.
 *
 *  Rings are drawn into the plane one by one (edge_raster.h), which is exact.
 *  Cells at the rim reach outward for ever.  Source: ours.
 */
#ifndef CPU_COVERED_CELLS_H
#define CPU_COVERED_CELLS_H

#include "../../flatten/arrays/oj_matches.h"
#include "cpu_ring_cells.h"

struct oj_known_cell
{
    int32_t list;
    uint32_t first;
};

/** Owner; zeroed memory is a valid empty one. */
struct oj_known_cells
{
    struct oj_edge_frame frame;
    int32_t nx, ny;             /**< 0: there are no cells */
    struct oj_known_cell *cell; /**< [nx * ny + 2]; the last but one is for
                                     points that are none, and empty */
    int32_t *candidate;
    struct oj_shared_lists lists; /**< list 0 is the empty one */
    int64_t *offset;              /**< what lists points at, and the next */
    int32_t *feature;
};

/** Prepares the plane for about n_input points, in time about half of what they
 *  would save.  knows_inside: a feature that holds a cell goes into its list.
 *  known->nx stays 0 where it would not pay or take too much memory.  cells
 *  outlives *known. */
OJ_MUST_USE oj_status oj_known_cells_build(struct oj_known_cells *known,
                                           const struct oj_ring_cells *cells,
                                           int64_t n_input, int knows_inside,
                                           int n_threads, const int *cancel,
                                           struct oj_error *err);

/** Cells of n points, n_cells for those that are none. */
void oj_known_cells_find(const struct oj_known_cells *known, int64_t n,
                         const double *x, const double *y, uint32_t *cell);

int64_t oj_known_cells_bytes(const struct oj_known_cells *known);

void oj_known_cells_free(struct oj_known_cells *known);

#endif
