/** Rasterises rings and lines: finds the edges that intersect each cell of a
 *  frame, and whether the cell is inside.
 *
 *  Each cell has a reference point c, just below it: at the greatest y that
 *  still belongs to the row below. The line through the reference points of a
 *  row only crosses edges that have their ends in different rows. So these
 *  edges alone decide, by the even-odd rule over all rings, which reference
 *  points are inside. Exact orientation decides where rounding matters.
 *
 *  Source: cells with a reference point are from S2's cell index. S2's cells
 *  are on a sphere; the cells here are in the plane, and the even-odd rule
 *  decides.
 */
#ifndef EDGE_RASTER_H
#define EDGE_RASTER_H

#include "../../../flatten/base/oj_status.h"
#include "cpu_point_in_ring.h"
#include "edge_cells_in_frame.h"

/** 64 neighbouring cells of a row: two properties of each cell, in bit i for
 * cell i, and one number for all of them. */
struct oj_edge_word
{
    uint64_t edges;  /**< 1: edges intersect the cell, or its reference point
                          cannot be used */
    uint64_t inside; /**< 1: the reference point of the cell is inside */
    uint64_t rank;   /**< number of cells with edges in all previous words: the
                          rank of the word's first such cell */
};

/** A run of edges that intersect one cell. */
struct oj_cell_run
{
    uint32_t cell;
    struct oj_edge_run run;
};

/** State of the rasterisation. Owns only `run`; zeroed memory is a valid empty
 * value. */
struct oj_edge_raster
{
    const struct oj_edge_frame *frame;
    const double *below; /**< [rows] y of the reference points of each row */
    int has_inside;      /**< 1: chains are rings; 0: lines and points */

    /** The cells of the frame, zeroed by the caller, in rows of n_words words.
     * A cell has the number 64 * n_words * row + column. */
    struct oj_edge_word *word;
    int64_t n_words;

    int64_t n_runs, cap_runs;
    struct oj_cell_run *run; /**< [n_runs] not sorted by cell */
};

/** Horizontal position of the reference point within its cell, as a fraction of
 * the cell. The fraction is an unusual number, because coordinates of real data
 * are often round. */
#define OJ_REFERENCE_X 0.5123456789

/** x of the reference points of a column. */
static inline double oj_edge_raster_reference_x(const struct oj_edge_frame *f,
                                                int64_t column)
{
    return f->x0 + ((double)column + OJ_REFERENCE_X) * f->cell;
}

/** Computes the y of each row's reference points. Returns 0 if, because of
 * rounding, some row or column has no reference point. */
int oj_edge_raster_find_reference_heights(const struct oj_edge_frame *frame,
                                          double *below);

/** Rasterises the vertices first .. first + n - 1, n > 0: a closed ring, a
 * line, or (n = 1) a point. Edge e is from vertex e to vertex e + 1. A run of 0
 * edges means that the reference point of its cell cannot be used. */
OJ_MUST_USE oj_status oj_edge_raster_draw(struct oj_edge_raster *raster,
                                          const double *x, const double *y,
                                          int64_t first, int64_t n,
                                          struct oj_error *err);

/** Completes the states and ranks of n_rows rows after all chains were drawn.
 * Returns the number of cells with edges. */
int64_t oj_edge_raster_finish(struct oj_edge_raster *raster, int64_t n_rows);

#endif
