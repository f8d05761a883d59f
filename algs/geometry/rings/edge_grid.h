/** A grid over the edges of a ring, or of all rings of a feature. It locates a
 *  point or a box and finds nearby edges, reading only a few edges each time.
 *
 *  The box of all edges is cut into nx x ny cells.  A cell stores the edges
 *  that intersect it, as runs of consecutive edges, and whether its reference
 *  point c, just below the cell, is inside (edge_raster.h). All points of a
 *  cell without edges have the location of c. In other cells, the location of a
 *  point p follows from c and the edges of the cell:
 *
 *      q ----- p  p is inside iff the path p -> q -> c crosses rings an odd
 *      |          number of times and c is outside, or an even number and c is
 *      c          inside; only edges of the cell can cross it
 *
 *  Exact: crossings are decided by exact orientation. If q or c is on the line
 *  through an edge that the path may cross, all edges are tested instead.
 */
#ifndef EDGE_GRID_H
#define EDGE_GRID_H

#include "../../../flatten/arrays/oj_flat.h"
#include "edge_raster.h"

#include <stdint.h>

/** Vertices of rings, lines or points, adjacent in memory. The arrays are
 * borrowed. */
struct oj_edge_chains
{
    const double *x, *y;   /**< [n_vertices] */
    int64_t n_vertices;    /**< at most OJ_EDGE_GRID_VERTICES */
    int64_t n;             /**< number of chains */
    const int64_t *offset; /**< [n + 1] chain i starts at vertex offset[i] -
                                offset[0]; NULL: all vertices are one chain */
    int has_inside;        /**< 1: all chains are closed rings; 0: lines or
                                points, which enclose nothing */
};

#define OJ_EDGE_GRID_VERTICES (INT64_C(1) << 27)

/** The grid. Owns its cells; the coordinates are borrowed. Point location reads
 * only the first members, which share a cache line. */
struct oj_edge_grid
{
    int64_t n_words; /**< words per row; cell number = 64 * n_words * row +
                          column. 0: the grid has no cells, and all edges are
                          tested. (Coordinates are too large or too small for
                          cell arithmetic, a ring has no edges, or there would
                          be 2^32 runs or more.) */
    struct oj_edge_word *word; /**< [ny * n_words], owned */
    struct oj_edge_frame frame;

    struct oj_edge_chains chains;
    const struct oj_ring_kernel *kernel;
    int64_t nx, ny;
    double *below; /**< [ny] y of the reference points of each row; in the
                        memory of `word` */
    int64_t n_first, n_runs;
    struct oj_edge_run *run; /**< [n_runs] owned; a run of 0 edges means that
                                  the cell's reference point cannot be used */
    uint32_t *first_run;     /**< [n_first] first run of each cell with edges,
                                  then the end; in the memory of `run` */
};

/** Box of chains, and the sum of |dx| + |dy| over their edges. */
struct oj_edge_extent
{
    double x0, y0, x1, y1, length;
};

/** Computes the extent of n vertices. Preconditions: n > 0, finite coordinates.
 */
struct oj_edge_extent oj_edge_measure_extent(const double *x, const double *y,
                                             int64_t n);

/** Bounds of the size of cells, whose default width is about eight mean edge
 * lengths.
 *
 * The number of cells per vertex is between least and most. An edge intersects
 * at most `edge` cells on average. There are at most `along` columns, and rows,
 * per vertex. */
struct oj_edge_fineness
{
    double least, most, edge, along;
};

/** Builds the grid of chains. Precondition: finite coordinates. O(vertices) in
 * time and memory. */
OJ_MUST_USE oj_status oj_edge_grid_build(
    struct oj_edge_grid *grid, const struct oj_edge_chains *chains,
    const struct oj_edge_extent *extent,
    const struct oj_edge_fineness *fineness, struct oj_error *err);

/** Builds the grid of one closed ring x, y [n]. extent is the result of
 * oj_edge_measure_extent(), or NULL to compute it here. The grid has at least
 * n_cells cells, unless edges are too long for it. Returns OJ_ERR_LIMIT if
 * there are too many vertices, and OJ_ERR_INTERNAL if there are less than 2. */
OJ_MUST_USE oj_status oj_edge_grid_of_ring(
    struct oj_edge_grid *grid, const double *x, const double *y, int64_t n,
    const struct oj_edge_extent *extent, double n_cells, struct oj_error *err);

/** Returns the number of the cell that contains p, or 0 if the grid has no
 *  cells. */
static inline int64_t oj_edge_grid_cell(const struct oj_edge_grid *g, double px,
                                        double py)
{
    int32_t column, row;
    if (g->n_words == 0)
        return 0;
    oj_frame_column_and_row(&g->frame, px, py, &column, &row);
    return row * g->n_words * 64 + column;
}

/** Returns the location of all points of a cell without edges (enum
 * oj_location), or -1 if the cell has edges. */
static inline int oj_edge_grid_cell_location(const struct oj_edge_grid *g,
                                             int64_t cell)
{
    const struct oj_edge_word *word = &g->word[(uint64_t)cell / 64];
    if (g->n_words == 0)
        return -1;
    return (int)(word->inside >> (uint64_t)cell % 64 & 1) |
           -(int)(word->edges >> (uint64_t)cell % 64 & 1);
}

/** Returns the rank of a cell among the cells with edges, in the order of their
 *  numbers. */
static inline uint32_t oj_edge_grid_rank(const struct oj_edge_grid *g,
                                         uint32_t cell)
{
    uint64_t before = ((uint64_t)1 << cell % 64) - 1;
    if (g->n_words == 0)
        return 0;
    return (uint32_t)g->word[cell / 64].rank +
           (uint32_t)__builtin_popcountll(g->word[cell / 64].edges & before);
}

/** Returns the location of a whole box (enum oj_location) if no edges intersect
 * its cells, otherwise -1. */
static inline int oj_edge_grid_box_location(const struct oj_edge_grid *g,
                                            double left, double low,
                                            double right, double high)
{
    struct oj_edge_window w;
    const struct oj_edge_word *first;
    uint64_t mask;
    int32_t i = 0, last;
    if (g->n_words == 0)
        return -1;
    w = oj_frame_window(&g->frame, left, low, right, high);
    first = &g->word[w.row0 * g->n_words + (w.column0 >> 6)];
    last = (w.column1 >> 6) - (w.column0 >> 6);
    mask = ~(uint64_t)0 << (w.column0 & 63);
    for (; i <= last; i++, mask = ~(uint64_t)0)
    {
        const struct oj_edge_word *word = first + i;
        if (i == last)
            mask &= ~(uint64_t)0 >> (63 - (w.column1 & 63));
        for (int32_t n = w.row1 - w.row0; n >= 0; n--, word += g->n_words)
        {
            if ((word->edges & mask) != 0)
                return -1;
        }
    }
    return (int)(first->inside >> (w.column0 & 63) & 1);
}

/** Lists the runs of all edges that intersect columns first .. last of a row:
 * from *run to the returned end. An edge may be in several runs. */
static inline const struct oj_edge_run *
oj_edge_grid_runs(const struct oj_edge_grid *g, int32_t row, int32_t first,
                  int32_t last, const struct oj_edge_run **run)
{
    uint32_t start = (uint32_t)row * (uint32_t)g->n_words * 64;
    uint32_t end = start + (uint32_t)last;
    *run = g->run + g->first_run[oj_edge_grid_rank(g, start + (uint32_t)first)];
    return g->run + g->first_run[oj_edge_grid_rank(g, end) +
                                 (g->word[end / 64].edges >> end % 64 & 1)];
}

/** Locates p by the edges of `cell`, which contains it. rank is
 * oj_edge_grid_rank() of the cell. */
enum oj_location oj_edge_grid_locate_in_cell(const struct oj_edge_grid *grid,
                                             int64_t cell, uint32_t rank,
                                             double px, double py);

/* Prefetches for the location of a point, in three steps: first the word of the
 * cell (here), then the cell's runs, then its edges. */

static inline void oj_edge_grid_prefetch(const struct oj_edge_grid *g,
                                         int64_t cell)
{
    __builtin_prefetch(g->word + (uint64_t)cell / 64);
}

static inline void oj_edge_grid_prefetch_runs(const struct oj_edge_grid *g,
                                              uint32_t rank)
{
    if (g->n_words > 0)
        __builtin_prefetch(g->run + g->first_run[rank]);
}

static inline void oj_edge_grid_prefetch_edges(const struct oj_edge_grid *g,
                                               uint32_t rank)
{
    uint32_t run, end;
    /* Keeps calls of this function: gcc would remove them, because it has no
     * side effects. */
    __asm__ volatile("");
    if (g->n_words == 0)
        return;
    run = g->first_run[rank];
    end = g->first_run[rank + 1];
    for (end = end < run + 4 ? end : run + 4; run < end; run++)
    {
        int64_t first = g->run[run].first, last = first + g->run[run].n;
        __builtin_prefetch(g->chains.x + first);
        __builtin_prefetch(g->chains.y + first);
        __builtin_prefetch(g->chains.x + last);
        __builtin_prefetch(g->chains.y + last);
    }
}

/** Returns the location of p by the even-odd rule over all rings; for a single
 * ring it equals that of oj_ring_locate(). */
static inline enum oj_location oj_edge_grid_locate(const struct oj_edge_grid *g,
                                                   double px, double py)
{
    int64_t cell = oj_edge_grid_cell(g, px, py);
    int known = oj_edge_grid_cell_location(g, cell);
    return known >= 0
               ? (enum oj_location)known
               : oj_edge_grid_locate_in_cell(
                     g, cell, oj_edge_grid_rank(g, (uint32_t)cell), px, py);
}

int64_t oj_edge_grid_bytes(const struct oj_edge_grid *grid);

void oj_edge_grid_free(struct oj_edge_grid *grid);

/** Grids for the large polygon rings of a layer. For smaller rings it is faster
 * to test all edges. Owner; zeroed memory is a valid empty value. */
struct oj_ring_grids
{
    int32_t *of_ring; /**< [n_rings of the layer] index in `grid`; -1: no
                           grid */
    int64_t *ring;    /**< [n] ring of each grid */
    int64_t n;
    struct oj_edge_grid *grid; /**< [n] */
};

/** Builds the grids with n_threads threads. O(vertices). The message of
 * OJ_ERR_LIMIT names the feature of the ring. */
OJ_MUST_USE oj_status oj_ring_grids_build(struct oj_ring_grids *grids,
                                          const struct oj_flat *flat,
                                          int n_threads, struct oj_error *err);

int64_t oj_ring_grids_bytes(const struct oj_ring_grids *grids);

void oj_ring_grids_free(struct oj_ring_grids *grids);

#endif
