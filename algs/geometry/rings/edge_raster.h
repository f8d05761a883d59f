/** Rasterises rings and lines: finds the edges that touch each cell of a frame,
 *  and whether the cell is inside.
 *
 *  A cell has a reference point c, just below it: at the last height that still
 *  belongs to the row below.  Between the c of neighbouring cells of a row
 *  there are only edges whose ends are in different rows, so these edges alone
 *  decide whether each c is inside, by even-odd over all rings.  Exact
 *  orientation decides where rounding might not.
 *
 *  Source: cells with a reference point as in S2's cell index; planar and even-
 *  odd here.
 */
#ifndef EDGE_RASTER_H
#define EDGE_RASTER_H

#include "../../../flatten/base/oj_status.h"
#include "cpu_point_in_ring.h"
#include "edge_cells_in_frame.h"

/** 64 neighbouring cells of a row, a bit each. */
struct oj_edge_word
{
    uint64_t edges;  /**< 1: edges touch the cell, or its location is unknown */
    uint64_t inside; /**< 1: the reference point is inside */
    uint64_t rank;   /**< number of cells with edges in all words before */
};

/** A run of edges that touch one cell. */
struct oj_cell_run
{
    uint32_t cell;
    struct oj_edge_run run;
};

/** Owns run only; zeroed memory is a valid empty one. */
struct oj_edge_raster
{
    const struct oj_edge_frame *frame;
    const double *below; /**< [rows] y of the reference points */
    int has_inside;      /**< 1: rings; 0: lines and points */

    /** The cells of the frame, initially zero, in rows of n_words words. The
     * number of a cell is 64 * n_words * row + column. */
    struct oj_edge_word *word;
    int64_t n_words;

    int64_t n_runs, cap_runs;
    struct oj_cell_run *run; /**< [n_runs] in the order of edges */
};

/** Horizontal position of the reference point in its cell: an odd fraction, so
 * that the round coordinates of real data rarely coincide with it. */
#define OJ_REFERENCE_X 0.5123456789

static inline double oj_reference_x(const struct oj_edge_frame *f,
                                    int64_t column)
{
    return f->x0 + ((double)column + OJ_REFERENCE_X) * f->cell;
}

/** Computes below, the y of all rows' reference points. Returns 0 if rounding
 * leaves a row or a column without one. */
int oj_edge_references(const struct oj_edge_frame *frame, double *below);

/** Draws vertices first .. first + n - 1 (n > 0): a closed ring or a line; a
 * single vertex is a point.  Edge e joins vertices e and e + 1.  An empty run
 * means that the reference point cannot be used. */
OJ_MUST_USE oj_status oj_edge_raster_draw(struct oj_edge_raster *raster,
                                          const double *x, const double *y,
                                          int64_t first, int64_t n,
                                          struct oj_error *err);

/** Completes states and ranks of n_rows rows, after all chains are drawn.
 * Returns the number of cells with edges. */
int64_t oj_edge_raster_finish(struct oj_edge_raster *raster, int64_t n_rows);

#endif
