/** Rings and lines drawn into the cells of a frame: which edges touch a cell,
 *  and whether it lies inside.
 *
 *  A cell has a reference point c, just below it: at the last height that still
 *  belongs to the row below.  Only edges whose ends are in different rows can
 *  part the c of one cell from that of the next, so whether each is inside, by
 *  even-odd over all rings drawn, takes a look at those alone.  Decided by
 * exact orientation where rounding might say otherwise.
 *
 *  Source: cells with a reference point as in S2's cell index; planar and even-
 *  odd here.
 */
#ifndef EDGE_RASTER_H
#define EDGE_RASTER_H

#include "../../../flatten/base/oj_status.h"
#include "cpu_point_in_ring.h"
#include "edge_cells_in_frame.h"

/** 64 cells side by side, a bit each. */
struct oj_edge_word
{
    uint64_t edges;  /**< 1: edges touch the cell, or it is not known */
    uint64_t inside; /**< 1: the reference point is inside */
    uint64_t rank;   /**< cells with edges before these */
};

/** A run of edges that touch a cell. */
struct oj_cell_run
{
    uint32_t cell;
    struct oj_edge_run run;
};

/** Owner of run only; zeroed memory is a valid empty one. */
struct oj_edge_raster
{
    const struct oj_edge_frame *frame;
    const double *below; /**< [rows] heights of the frame's reference points */
    int has_inside;      /**< 1: rings, 0: lines and points */

    /** The cells of the frame, zeroed before: rows of n_words words.  The
     *  number of a cell is 64 * n_words * row + column. */
    struct oj_edge_word *word;
    int64_t n_words;

    int64_t n_runs, cap_runs;
    struct oj_cell_run *run; /**< in the order of edges */
};

/** Where in a cell the column of its reference point lies: an odd place, so
 * that the round coordinates of real data do not hit it. */
#define OJ_REFERENCE_X 0.5123456789

static inline double oj_reference_x(const struct oj_edge_frame *f,
                                    int64_t column)
{
    return f->x0 + ((double)column + OJ_REFERENCE_X) * f->cell;
}

/** Fills the heights of the reference points of all rows; 0 when rounding
 *  leaves a row or a column without its own. */
int oj_edge_references(const struct oj_edge_frame *frame, double *below);

/** Draws vertices first .. first + n - 1, n > 0, of x, y: a closed ring, or a
 *  line; one vertex is a point.  Edge e is vertices e and e + 1.  A run of no
 *  edges means that the reference point cannot be used. */
OJ_MUST_USE oj_status oj_edge_raster_draw(struct oj_edge_raster *raster,
                                          const double *x, const double *y,
                                          int64_t first, int64_t n,
                                          struct oj_error *err);

/** When all is drawn: states and ranks of n_rows rows.  Returns how many cells
 *  have edges. */
int64_t oj_edge_raster_finish(struct oj_edge_raster *raster, int64_t n_rows);

#endif
