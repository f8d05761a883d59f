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
 *  Which cell a coordinate belongs to is computed by oj_ring_grid_index(),
 * which never decreases; an edge is in every cell that it may touch, whatever
 * the rounding; and cells without edges of a ring that lie side by side are on
 * one side of it, which one exact test tells.  Cells at the rim reach outward
 * for ever.  Source: ours.
 */
#ifndef CPU_KNOWN_CELLS_H
#define CPU_KNOWN_CELLS_H

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
    double x0, y0, size, inverse_size;
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
 *  outlives *known; its grids may be built. */
OJ_MUST_USE oj_status oj_known_cells_build(struct oj_known_cells *known,
                                           struct oj_ring_cells *cells,
                                           int64_t n_input, int knows_inside,
                                           int n_threads, const int *cancel,
                                           struct oj_error *err);

/** Cells of n points, n_cells for those that are none. */
void oj_known_cells_find(const struct oj_known_cells *known, int64_t n,
                         const double *x, const double *y, uint32_t *cell);

int64_t oj_known_cells_bytes(const struct oj_known_cells *known);

void oj_known_cells_free(struct oj_known_cells *known);

/* Steps of the building, in files of their own. */

/** A candidate of a cell. */
struct oj_cell_candidate
{
    uint32_t cell;
    int32_t ring; /**< or ~ring */
};

/** What one thread has found. Owner; zeroed memory is a valid empty one. */
struct oj_cell_trace
{
    int64_t n_candidates, cap_candidates;
    struct oj_cell_candidate *candidate;

    /* key: the cell from which on, in the order of the cells, the feature value
     * holds all of them, or no longer does; always in pairs. */
    int64_t n_turns, cap_turns;
    struct oj_keyed *turn;

    uint8_t *raster; /* of one feature */
    int64_t cap_raster;
    int is_unsafe; /**< rounding left a cell without a point to test */
};

/** Adds feature. (cpu_cell_trace.c) */
OJ_MUST_USE oj_status oj_cell_trace_feature(struct oj_cell_trace *trace,
                                            const struct oj_known_cells *known,
                                            struct oj_ring_cells *cells,
                                            int64_t feature, int knows_inside,
                                            struct oj_error *err);

void oj_cell_trace_free(struct oj_cell_trace *trace);

/** Makes the lists of all cells, from turns in the order of cells; *fits is 0
 *  when they take too much memory. (cpu_cell_lists.c) */
OJ_MUST_USE oj_status oj_known_cells_list(struct oj_known_cells *known,
                                          const struct oj_keyed *turn,
                                          int64_t n_turns, int *fits,
                                          struct oj_error *err);

#endif
