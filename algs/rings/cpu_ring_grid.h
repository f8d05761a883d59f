/** Point in one large ring by cells with a known state.
 *
 *  The ring's box is cut into nx x ny cells of a few edges each.  A cell knows
 *  the edges that touch it, as runs of consecutive ones, and whether its
 *  reference point c, just below the cell, is inside; the location of any point
 *  of the cell follows from those few edges:
 *
 *      q ----- p  p is inside iff the path p -> q -> c crosses the ring an
 *      |          odd number of times and c is outside, or an even number
 *      c          and c is inside; only edges of the cell can cross it
 *
 *  Which cell a coordinate belongs to is computed by one function that never
 *  decreases, so an edge is known to touch no cells but those between its ends'
 *  whatever the rounding; and since c lies where a row begins, only edges whose
 *  ends are in different rows can change the state from cell to cell.
 *
 *  Exact: crossings are decided by exact orientation; where the path goes
 *  through an edge's end or along an edge, the whole ring is asked instead.
 *  Source: cells with a reference point as in S2's cell index; planar and even-
 *  odd here.
 */
#ifndef CPU_RING_GRID_H
#define CPU_RING_GRID_H

#include "../../flatten/base/oj_status.h"
#include "cpu_ring_edges.h"

#include <stdint.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/** 64 cells side by side, a bit each. */
struct oj_ring_word
{
    uint64_t edges;  /**< 1: edges touch the cell, or it is not known */
    uint64_t inside; /**< 1: the reference point is inside */
    uint64_t rank;   /**< cells with edges before these */
};

/** Owner of its cells; the ring's coordinates stay the caller's.  What a look-
 *  up reads comes first. */
struct oj_ring_grid
{
    double x0, y0;         /* side by side, as oj_ring_grid_cell() reads them */
    double last_x, last_y; /**< nx - 1, ny - 1 */
    double inverse_cell;
    int64_t n_words; /**< of a row; a cell's number is its column and 64 *
                          n_words * its row.  0: coordinates of sizes at
                          which nothing but walking the ring is safe */
    struct oj_ring_word *word; /**< [ny * n_words]; owned */

    int64_t n_vertices;
    const double *x, *y;
    const struct oj_ring_kernel *kernel;
    double cell;
    int64_t nx, ny;
    double *below; /**< [ny] y of the row's reference points: the last double
                        that belongs to the row below; behind word */
    int64_t n_first, n_runs;
    struct oj_edge_run *run; /**< [n_runs]; one of no edges: the reference point
                                  is not usable; owned */
    uint32_t *first_run; /**< [n_first] of the cells with edges, and the end;
                              behind run */
};

/** Box of a ring, and its length along both axes. */
struct oj_ring_extent
{
    double x0, y0, x1, y1, length;
};

/** n > 0, finite coordinates. */
struct oj_ring_extent oj_ring_measure(const double *x, const double *y,
                                      int64_t n);

/** Builds the grid of the closed ring x, y [n]; finite coordinates; n at most
 *  2^27.  O(n) time and memory. */
OJ_MUST_USE oj_status oj_ring_grid_build(struct oj_ring_grid *grid,
                                         const double *x, const double *y,
                                         int64_t n, struct oj_error *err);

/** The same of a ring that has been measured. */
OJ_MUST_USE oj_status oj_ring_grid_build_in(struct oj_ring_grid *grid,
                                            const struct oj_ring_extent *extent,
                                            const double *x, const double *y,
                                            int64_t n, struct oj_error *err);

/** Where in a cell the column of its reference point lies: an odd place, so
 * that the round coordinates of real data do not hit it. */
#define OJ_REFERENCE_X 0.5123456789

static inline double oj_ring_grid_reference_x(const struct oj_ring_grid *g,
                                              int64_t column)
{
    return g->x0 + ((double)column + OJ_REFERENCE_X) * g->cell;
}

/** The number of v's row or column among n; never decreases with v. */
static inline int32_t oj_ring_grid_index(double v, double origin,
                                         double inverse, int64_t n)
{
    double c = (v - origin) * inverse, last = (double)(n - 1);
    c = c > 0.0 ? c : 0.0;
    c = c < last ? c : last;
    return (int32_t)c;
}

/** The cell of p, or 0 where there are none. */
static inline int64_t oj_ring_grid_cell(const struct oj_ring_grid *g, double px,
                                        double py)
{
#if defined(__SSE2__)
    /* both at once, by the same operations; compilers make branches of them */
    __m128d p = _mm_sub_pd(_mm_set_pd(py, px), _mm_loadu_pd(&g->x0));
    __m128i at;
    p = _mm_mul_pd(p, _mm_set1_pd(g->inverse_cell));
    p = _mm_max_pd(p, _mm_setzero_pd());
    p = _mm_min_pd(p, _mm_loadu_pd(&g->last_x));
    at = _mm_cvttpd_epi32(p);
    if (g->n_words == 0)
        return 0;
    return _mm_cvtsi128_si32(_mm_shuffle_epi32(at, 1)) * g->n_words * 64 +
           _mm_cvtsi128_si32(at);
#else
    double u = (px - g->x0) * g->inverse_cell;
    double v = (py - g->y0) * g->inverse_cell;
    if (g->n_words == 0)
        return 0;
    u = u > 0.0 ? u : 0.0;
    v = v > 0.0 ? v : 0.0;
    u = u < g->last_x ? u : g->last_x;
    v = v < g->last_y ? v : g->last_y;
    return (int32_t)v * g->n_words * 64 + (int32_t)u;
#endif
}

/** Where all points of a cell without edges are; -1: the cell has edges. */
static inline int oj_ring_grid_known(const struct oj_ring_grid *g, int64_t cell)
{
    const struct oj_ring_word *word = &g->word[(uint64_t)cell / 64];
    if (g->n_words == 0)
        return -1;
    return (int)(word->inside >> (uint64_t)cell % 64 & 1) |
           -(int)(word->edges >> (uint64_t)cell % 64 & 1);
}

/** The number of a cell with edges among them. */
static inline uint32_t oj_ring_grid_rank(const struct oj_ring_grid *g,
                                         uint32_t cell)
{
    uint64_t before = ((uint64_t)1 << cell % 64) - 1;
    if (g->n_words == 0)
        return 0;
    return (uint32_t)g->word[cell / 64].rank +
           (uint32_t)__builtin_popcountll(g->word[cell / 64].edges & before);
}

/** Where all points of a box are, or -1: they may be here and there. */
int oj_ring_grid_known_box(const struct oj_ring_grid *grid, double x0,
                           double y0, double x1, double y1);

/** Where p is, which is in this cell with edges of this rank, by these edges.
 */
enum oj_location oj_ring_grid_test(const struct oj_ring_grid *grid,
                                   int64_t cell, uint32_t rank, double px,
                                   double py);

/* Asks the memory for what oj_ring_grid_known() will read, and then
 * oj_ring_grid_test() of a cell that is not known, step by step.  The runs are
 * where first_run has told. */

static inline void oj_ring_grid_fetch(const struct oj_ring_grid *g,
                                      int64_t cell)
{
    __builtin_prefetch(g->word + (uint64_t)cell / 64);
}

static inline void oj_ring_grid_fetch_runs(const struct oj_ring_grid *g,
                                           uint32_t rank)
{
    if (g->n_words > 0)
        __builtin_prefetch(g->run + g->first_run[rank]);
}

static inline void oj_ring_grid_fetch_edges(const struct oj_ring_grid *g,
                                            uint32_t rank)
{
    uint32_t run, end;
    /* gcc leaves out calls of functions that do nothing but this */
    __asm__ volatile("");
    if (g->n_words == 0)
        return;
    run = g->first_run[rank];
    end = g->first_run[rank + 1];
    for (end = end < run + 4 ? end : run + 4; run < end; run++)
    {
        int64_t first = g->run[run].first, last = first + g->run[run].n;
        __builtin_prefetch(g->x + first);
        __builtin_prefetch(g->y + first);
        __builtin_prefetch(g->x + last);
        __builtin_prefetch(g->y + last);
    }
}

/** Where p is. Equal to oj_ring_locate(). */
static inline enum oj_location oj_ring_grid_locate(const struct oj_ring_grid *g,
                                                   double px, double py)
{
    int64_t cell = oj_ring_grid_cell(g, px, py);
    int known = oj_ring_grid_known(g, cell);
    return known >= 0 ? (enum oj_location)known
                      : oj_ring_grid_test(g, cell,
                                          oj_ring_grid_rank(g, (uint32_t)cell),
                                          px, py);
}

int64_t oj_ring_grid_bytes(const struct oj_ring_grid *grid);

void oj_ring_grid_free(struct oj_ring_grid *grid);

#endif
