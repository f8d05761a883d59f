/** A grid of edges, which locates a point or a box relative to a ring or to all
 *  rings of a feature, and finds nearby edges, by looking at few edges.
 *
 *  The box of all edges is cut into nx x ny cells.  A cell stores the edges
 *  that touch it, as runs of consecutive ones, and whether its reference point
 *  c, just below the cell, is inside (edge_raster.h). All points of a cell
 *  without edges have the location of c. In other cells, the location of a
 *  point p follows from c and the edges of the cell:
 *
 *      q ----- p  p is inside iff the path p -> q -> c crosses rings an odd
 *      |          number of times and c is outside, or an even number and c is
 *      c          inside; only edges of the cell can cross it
 *
 *  Exact: crossings are decided by exact orientation; where the path goes
 *  through an edge's end or along an edge, all rings are walked instead.
 */
#ifndef EDGE_GRID_H
#define EDGE_GRID_H

#include "../../../flatten/arrays/oj_flat.h"
#include "edge_raster.h"

#include <stdint.h>

/** Vertices of rings, lines or points, adjacent in memory. Borrows them. */
struct oj_edge_chains
{
    const double *x, *y;   /**< [n_vertices] */
    int64_t n_vertices;    /**< limit: OJ_EDGE_GRID_VERTICES */
    int64_t n;             /**< number of chains */
    const int64_t *offset; /**< [n + 1] chain i begins at vertex offset[i] -
                                offset[0]; NULL: a single chain */
    int has_inside;        /**< 1: all chains are closed rings; 0: no chain
                                encloses an area */
};

#define OJ_EDGE_GRID_VERTICES (INT64_C(1) << 27)

/** Owns its cells; borrows the coordinates.  Members that look-ups read come
 * first, in one cache line. */
struct oj_edge_grid
{
    int64_t n_words; /**< words per row; the number of a cell is 64 * n_words
                          * row + column.  0: no cells, because the size of
                          coordinates is only safe for walking all edges */
    struct oj_edge_word *word; /**< [ny * n_words] owned */
    struct oj_edge_frame frame;

    struct oj_edge_chains chains;
    const struct oj_ring_kernel *kernel;
    int64_t nx, ny;
    double *below; /**< [ny] heights of the reference points; in the
                        allocation of word */
    int64_t n_first, n_runs;
    struct oj_edge_run *run; /**< [n_runs] owned; an empty run: the reference
                                  point is not usable */
    uint32_t *first_run;     /**< [n_first] first run of each cell with edges,
                                  then the end; in the allocation of run */
};

/** Box of chains, and the total of |dx| + |dy| over their edges. */
struct oj_edge_extent
{
    double x0, y0, x1, y1, length;
};

/** Precondition: n > 0, finite coordinates. */
struct oj_edge_extent oj_edge_measure(const double *x, const double *y,
                                      int64_t n);

/** Limits for the size of cells: minimum and maximum number of cells per vertex
 * (least, most), mean number of cells per edge (edge), and columns or rows per
 * vertex (along).  Within them a cell is about eight mean edges wide. */
struct oj_edge_fineness
{
    double least, most, edge, along;
};

/** Builds the grid of chains with finite coordinates.  O(vertices) in time and
 * memory. */
OJ_MUST_USE oj_status oj_edge_grid_build(
    struct oj_edge_grid *grid, const struct oj_edge_chains *chains,
    const struct oj_edge_extent *extent,
    const struct oj_edge_fineness *fineness, struct oj_error *err);

/** Builds the grid of one closed ring x, y [n]. extent: its extent, or NULL if
 * not computed yet.  Aims at n_cells cells or more, unless long edges forbid
 * it.  OJ_ERR_LIMIT: too many vertices. */
OJ_MUST_USE oj_status oj_edge_grid_of_ring(
    struct oj_edge_grid *grid, const double *x, const double *y, int64_t n,
    const struct oj_edge_extent *extent, double n_cells, struct oj_error *err);

/** Number of the cell of p; 0 if there are no cells. */
static inline int64_t oj_edge_grid_cell(const struct oj_edge_grid *g, double px,
                                        double py)
{
    int32_t column, row;
    if (g->n_words == 0)
        return 0;
    oj_frame_column_and_row(&g->frame, px, py, &column, &row);
    return row * g->n_words * 64 + column;
}

/** Location of all points of a cell without edges; -1: the cell has edges. */
static inline int oj_edge_grid_known(const struct oj_edge_grid *g, int64_t cell)
{
    const struct oj_edge_word *word = &g->word[(uint64_t)cell / 64];
    if (g->n_words == 0)
        return -1;
    return (int)(word->inside >> (uint64_t)cell % 64 & 1) |
           -(int)(word->edges >> (uint64_t)cell % 64 & 1);
}

/** The rank of a cell among the cells with edges. */
static inline uint32_t oj_edge_grid_rank(const struct oj_edge_grid *g,
                                         uint32_t cell)
{
    uint64_t before = ((uint64_t)1 << cell % 64) - 1;
    if (g->n_words == 0)
        return 0;
    return (uint32_t)g->word[cell / 64].rank +
           (uint32_t)__builtin_popcountll(g->word[cell / 64].edges & before);
}

/** Location of all points of a box; -1 if they may differ.  A connected area of
 * cells without edges is wholly inside or wholly outside. */
static inline int oj_edge_grid_known_box(const struct oj_edge_grid *g,
                                         double left, double low, double right,
                                         double high)
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

/** The runs of all edges that touch columns first .. last of a row: from *run
 * up to the returned end. An edge that touches several cells repeats. */
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

/** Location of p by the edges of its cell; rank: that of the cell. */
enum oj_location oj_edge_grid_test(const struct oj_edge_grid *grid,
                                   int64_t cell, uint32_t rank, double px,
                                   double py);

/* Prefetches what oj_edge_grid_known() reads, and after it what
 * oj_edge_grid_test() of an undecided cell reads, step by step: the position of
 * runs is known only after first_run is read. */

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
    /* gcc would remove calls of functions without side effects */
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

/** Location of p by even-odd over all rings; equal to oj_ring_locate(). */
static inline enum oj_location oj_edge_grid_locate(const struct oj_edge_grid *g,
                                                   double px, double py)
{
    int64_t cell = oj_edge_grid_cell(g, px, py);
    int known = oj_edge_grid_known(g, cell);
    return known >= 0 ? (enum oj_location)known
                      : oj_edge_grid_test(g, cell,
                                          oj_edge_grid_rank(g, (uint32_t)cell),
                                          px, py);
}

int64_t oj_edge_grid_bytes(const struct oj_edge_grid *grid);

void oj_edge_grid_free(struct oj_edge_grid *grid);

/** Grids of a layer's large polygon rings; for smaller rings, walking the edges
 * is faster than looking up a cell.  Owner; zeroed memory is a valid empty
 * one. */
struct oj_ring_grids
{
    int32_t *of_ring; /**< [n_rings of the layer] index in grid, or -1 */
    int64_t *ring;    /**< [n] */
    int64_t n;
    struct oj_edge_grid *grid; /**< [n] */
};

/** Builds the grids with n_threads.  O(vertices). */
OJ_MUST_USE oj_status oj_ring_grids_build(struct oj_ring_grids *grids,
                                          const struct oj_flat *flat,
                                          int n_threads, struct oj_error *err);

int64_t oj_ring_grids_bytes(const struct oj_ring_grids *grids);

void oj_ring_grids_free(struct oj_ring_grids *grids);

#endif
