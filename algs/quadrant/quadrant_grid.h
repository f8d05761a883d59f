/** The grid of the paper's filter: boxes of the join side, expanded by a
 *  distance, as cells of a uniform grid.
 *
 *  cell          [ 3    7    8   ... ]  row * 2^32 + column, ascending
 *  cell_offset   [ 0    2    3    6 ... ]
 *  feature       [ 4 9  4    2 5 9 ... ]  whose expanded box touches the cell
 *
 *  Cells that no box touches are not stored, so that features far off cost
 *  nothing.  Source: Zhang, You, Gruenwald 2012, section 3.3 (boxes of the join
 *  side are expanded, not those of the quadrants; quadrants look up the cells
 *  by binary search).
 */
#ifndef QUADRANT_GRID_H
#define QUADRANT_GRID_H

#include "../base/oj_boxes.h"
#include "../kernels/oj_quadrant.h"

/** Owner. */
struct oj_quadrant_grid
{
    const struct oj_boxes *boxes; /* borrowed */
    double reach;                 /* by which the boxes were expanded */
    int has_cells;                /* 0: every feature is in the one cell */
    struct oj_quadrant_frame frame;
    int64_t n_cells, n_entries;
    uint64_t *cell;       /* [n_cells] */
    int64_t *cell_offset; /* [n_cells + 1] */
    int32_t *feature;     /* [n_entries] */
};

/** Rasterises the boxes, expanded by reach. With reach INFINITY every feature
 *  is a candidate of every quadrant. boxes outlives the grid. */
OJ_MUST_USE oj_status oj_quadrant_grid_make(const struct oj_boxes *boxes,
                                            double reach,
                                            struct oj_quadrant_grid **out,
                                            struct oj_error *err);

/** Entries in the cells that window touches: repeats counted. */
int64_t oj_quadrant_grid_count(const struct oj_quadrant_grid *grid,
                               const struct oj_box *window);

/** Writes the features whose expanded box intersects window to feature, which
 *  has room for oj_quadrant_grid_count() of them, ascending, each once (sort
 *  and unique). Returns their number. */
int64_t oj_quadrant_grid_gather(const struct oj_quadrant_grid *grid,
                                const struct oj_box *window, int32_t *feature);

/** Accepts NULL. */
void oj_quadrant_grid_free(struct oj_quadrant_grid *grid);

#endif
