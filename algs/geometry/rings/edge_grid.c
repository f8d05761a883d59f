#include "edge_grid.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../foundations/base/cpu_lane_loops.h"
#include "../../foundations/base/oj_feature_box.h"

#include <string.h>

/* Target width of a cell, as a multiple of the mean edge length. A wider cell
 * has more edges to test; a narrower one needs more memory. */
#define EDGES_ALONG 8.0

struct oj_edge_extent oj_edge_measure_extent(const double *x, const double *y,
                                             int64_t n)
{
    struct oj_box box = oj_box_of_points(x, y, n);
    struct oj_edge_extent e = {box.x0, box.y0, box.x1, box.y1, 0.0};
    for (int64_t i = 1; i < n; i++)
        e.length += fabs(x[i] - x[i - 1]) + fabs(y[i] - y[i - 1]);
    return e;
}

/* Chooses the size of cells and the frame. Returns 0 if cells are impossible
 * (see oj_edge_grid.n_words). */
static int choose_cell_size_and_frame(struct oj_edge_grid *g,
                                      const struct oj_edge_extent *e,
                                      const struct oj_edge_fineness *fineness)
{
    double n = (double)g->chains.n_vertices;
    double width = e->x1 - e->x0, height = e->y1 - e->y0;
    double wider = oj_larger(width, height), side, cell;
    struct oj_box box = {e->x0, e->y0, e->x1, e->y1};
    struct oj_edge_frame *f = &g->frame;
    if (!oj_box_is_safe_for_grid(&box))
        return 0;
    side = sqrt(width / n) * sqrt(height);
    cell = fmin(EDGES_ALONG * e->length / n, side / sqrt(fineness->least));
    cell = fmax(cell, side / sqrt(fineness->most));
    /* limits the mean number of cells that an edge intersects */
    cell = fmax(cell, e->length / (fineness->edge * n));
    cell = fmax(cell, wider / fmin(fineness->along * n, OJ_FRAME_MOST - 1.0));
    /* A cell must be larger than the resolution of coordinates far from the
     * origin. Otherwise the margins would put every edge into every cell. */
    cell = fmax(cell, 1e-12 * oj_box_largest_coordinate(&box));
    f->cell = cell;
    f->x0 = e->x0;
    f->y0 = e->y0;
    f->inverse = 1.0 / cell;
    f->last_x = oj_frame_index(e->x1, f->x0, f->inverse, OJ_FRAME_MOST);
    f->last_y = oj_frame_index(e->y1, f->y0, f->inverse, OJ_FRAME_MOST);
    g->nx = (int64_t)f->last_x + 1;
    g->ny = (int64_t)f->last_y + 1;
    g->n_words = (g->nx + 63) / 64;
    return 1;
}

/* Replaces cell numbers in the runs by the ranks of these cells among the cells
 * with edges, and counts the runs of each cell. */
static OJ_CLONES void
number_nonempty_cells_of_runs(const struct oj_edge_grid *g, int64_t n,
                              struct oj_cell_run *made)
{
    for (int64_t i = 0; i < n; i++)
    {
        made[i].cell = oj_edge_grid_rank(g, made[i].cell);
        g->first_run[made[i].cell]++;
    }
}

/* Sorts the runs of edges by cell. */
static oj_status sort_edge_runs_by_cell(struct oj_edge_grid *g,
                                        const struct oj_edge_raster *r,
                                        int64_t n_cells, struct oj_error *err)
{
    uint32_t end = 0;
    g->n_runs = r->n_runs;
    g->n_first = n_cells + 1;
    OJ_NEW(g->run, g->n_runs + (g->n_first + 1) / 2, err);
    g->first_run = (uint32_t *)(void *)(g->run + g->n_runs);
    memset(g->first_run, 0, (size_t)g->n_first * sizeof *g->first_run);
    number_nonempty_cells_of_runs(g, r->n_runs, r->run);
    for (int64_t i = 0; i <= n_cells; i++)
        g->first_run[i] = end += g->first_run[i];
    for (int64_t i = r->n_runs - 1; i >= 0; i--)
        g->run[--g->first_run[r->run[i].cell]] = r->run[i].run;
    return OJ_OK;
}

/* Returns the first vertex of chain i and sets *n to its number of vertices. */
static int64_t first_vertex_of_chain(const struct oj_edge_chains *c, int64_t i,
                                     int64_t *n)
{
    *n = c->offset == NULL ? c->n_vertices : c->offset[i + 1] - c->offset[i];
    return c->offset == NULL ? 0 : c->offset[i] - c->offset[0];
}

static oj_status fill_edge_grid(struct oj_edge_grid *g,
                                struct oj_edge_raster *r, struct oj_error *err)
{
    int64_t n_words = g->n_words * g->ny, n;
    int is_usable = 1;
    OJ_NEW(g->word, n_words + (g->ny + 2) / 3, err);
    memset(g->word, 0, (size_t)n_words * sizeof *g->word);
    g->below = (double *)(void *)(g->word + n_words);
    r->word = g->word;
    r->below = g->below;
    r->n_words = g->n_words;
    is_usable = oj_edge_raster_find_reference_heights(&g->frame, g->below);
    OJ_ROOM(r->run, 0, g->chains.n_vertices / 4 + 1, r->cap_runs, err);
    for (int64_t i = 0; is_usable && i < g->chains.n; i++)
    {
        int64_t first = first_vertex_of_chain(&g->chains, i, &n);
        if (n > 1 || !r->has_inside)
            OJ_TRY(oj_edge_raster_draw(r, g->chains.x, g->chains.y, first, n,
                                       err));
        else
            is_usable = 0; /* a ring without edges; without a grid, all rings
                              are tested */
    }
    if (!is_usable || r->n_runs > UINT32_MAX)
    {
        g->nx = g->ny = g->n_words = 0;
        return OJ_OK;
    }
    return sort_edge_runs_by_cell(g, r, oj_edge_raster_finish(r, g->ny), err);
}

oj_status oj_edge_grid_build(struct oj_edge_grid *g,
                             const struct oj_edge_chains *chains,
                             const struct oj_edge_extent *extent,
                             const struct oj_edge_fineness *fineness,
                             struct oj_error *err)
{
    struct oj_edge_raster raster = {.frame = &g->frame,
                                    .has_inside = chains->has_inside};
    oj_status status;
    memset(g, 0, sizeof *g);
    g->chains = *chains;
    g->kernel = oj_ring_kernel();
    if (!choose_cell_size_and_frame(g, extent, fineness))
        return OJ_OK;
    status = fill_edge_grid(g, &raster, err);
    oj_free(raster.run);
    if (status != OJ_OK)
        oj_edge_grid_free(g);
    return status;
}

oj_status oj_edge_grid_of_ring(struct oj_edge_grid *g, const double *x,
                               const double *y, int64_t n,
                               const struct oj_edge_extent *extent,
                               double n_cells, struct oj_error *err)
{
    double least = oj_larger(n_cells / (double)n, 1.0), along = sqrt(least);
    const struct oj_edge_fineness fineness = {least, oj_larger(least, 8.0),
                                              4.0 * along, along};
    const struct oj_edge_chains ring = {
        .x = x, .y = y, .n_vertices = n, .n = 1, .has_inside = 1};
    struct oj_edge_extent measured;
    memset(g, 0, sizeof *g);
    if (n < 2)
        return oj_fail_internal(err, "a grid of a ring of %lld vertices",
                                (long long)n);
    if (n > OJ_EDGE_GRID_VERTICES)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "a ring has %lld vertices; at most %lld are possible: "
                       "simplify or split the polygon",
                       (long long)n, (long long)OJ_EDGE_GRID_VERTICES);
    if (extent == NULL)
    {
        measured = oj_edge_measure_extent(x, y, n);
        extent = &measured;
    }
    return oj_edge_grid_build(g, &ring, extent, &fineness, err);
}

int64_t oj_edge_grid_bytes(const struct oj_edge_grid *g)
{
    int64_t n_words = g->n_words * g->ny;
    return n_words == 0
               ? 0
               : n_words * (int64_t)sizeof *g->word + g->ny * 8 +
                     g->n_first * 4 + g->n_runs * (int64_t)sizeof *g->run;
}

void oj_edge_grid_free(struct oj_edge_grid *g)
{
    oj_free(g->word);
    oj_free(g->run);
    memset(g, 0, sizeof *g);
}

/* --- location of points --------------------------------------------------- */

/* Flips *odd if the path p -> q -> c of w crosses the edge from a to b. Sets
 * *unclear to 1 if q or c is on the line through the edge, because the crossing
 * is then undecided. Returns 1 if p is on the edge. */
OJ_INLINE int toggle_parity_if_crossed(const struct oj_ring_way *w, double ax,
                                       double ay, double bx, double by,
                                       int *odd, int *unclear)
{
    int across = (ay > w->py) != (by > w->py);
    int along = (ax > w->cx) != (bx > w->cx), at_q = 0;
    if (ay == w->py || by == w->py)
    {
        if (oj_ring_edge_crosses_ray(w->px, w->py, ax, ay, bx, by) ==
            OJ_ON_BOUNDARY)
            return 1;
    }
    if (across | along)
    {
        at_q = oj_orientation(ax, ay, bx, by, w->cx, w->py);
        *unclear |= at_q == 0;
    }
    if (across)
    {
        int at_p = oj_orientation(ax, ay, bx, by, w->px, w->py);
        if (at_p == 0)
            return 1;
        *odd ^= at_p != at_q;
    }
    if (along)
    {
        int at_c = oj_orientation(ax, ay, bx, by, w->cx, w->cy);
        *unclear |= at_c == 0;
        *odd ^= at_c != at_q;
    }
    return 0;
}

/* Locates a point without the grid, by the edges of all rings. */
static enum oj_location
locate_point_by_walking_all_edges(const struct oj_edge_grid *g, double px,
                                  double py)
{
    int odd = 0;
    for (int64_t i = 0; i < g->chains.n; i++)
    {
        int64_t n, first = first_vertex_of_chain(&g->chains, i, &n);
        enum oj_location location = oj_ring_locate_fast(
            g->kernel, px, py, g->chains.x + first, g->chains.y + first, n);
        if (location == OJ_ON_BOUNDARY)
            return OJ_ON_BOUNDARY;
        odd ^= location == OJ_INSIDE;
    }
    return odd ? OJ_INSIDE : OJ_OUTSIDE;
}

enum oj_location oj_edge_grid_locate_in_cell(const struct oj_edge_grid *g,
                                             int64_t cell, uint32_t rank,
                                             double px, double py)
{
    const double *x = g->chains.x, *y = g->chains.y;
    struct oj_ring_way w = {px, py, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    uint32_t run, end;
    int64_t row;
    int odd, unclear;
    if (g->n_words == 0)
        return locate_point_by_walking_all_edges(g, px, py);
    run = g->first_run[rank];
    end = g->first_run[rank + 1];
    odd = (int)(g->word[cell / 64].inside >> cell % 64 & 1);
    unclear = 0;
    row = (uint32_t)cell / (uint32_t)(64 * g->n_words);
    w.cx = oj_edge_raster_reference_x(&g->frame, cell - row * 64 * g->n_words);
    w.cy = g->below[row];
    w.left = px < w.cx ? px : w.cx;
    w.right = px < w.cx ? w.cx : px;
    w.low = py < w.cy ? py : w.cy;
    w.high = py < w.cy ? w.cy : py;
    if (g->kernel->cross != NULL)
    {
        int crossed = g->kernel->cross(&w, x, y, g->run + run, end - run);
        if (crossed >= 0)
            return odd != crossed ? OJ_INSIDE : OJ_OUTSIDE;
    }
    for (; run < end; run++)
    {
        int64_t e = g->run[run].first, end_edge = e + g->run[run].n;
        unclear |= e == end_edge;
        for (; e < end_edge; e += OJ_RING_EDGES)
        {
            int64_t n = end_edge - e;
            uint64_t bits = oj_ring_edges_near_path(
                &w, x + e, y + e, n < OJ_RING_EDGES ? (int)n : OJ_RING_EDGES);
            for (; bits != 0; bits &= bits - 1)
            {
                int64_t i = e + __builtin_ctzll(bits);
                if (toggle_parity_if_crossed(&w, x[i], y[i], x[i + 1], y[i + 1],
                                             &odd, &unclear))
                    return OJ_ON_BOUNDARY;
            }
        }
    }
    if (unclear)
        return locate_point_by_walking_all_edges(g, px, py);
    return odd ? OJ_INSIDE : OJ_OUTSIDE;
}

/* --- grids of a layer's large rings --------------------------------------- */

/* Minimum vertices of a ring with a grid. */
#define GRID_VERTICES 64

struct ring_grids_build
{
    struct oj_ring_grids *grids;
    const struct oj_flat *flat;
};

/* Returns the FID of the feature with this ring, or its index without FIDs. */
static int64_t fid_of_ring(const struct oj_flat *flat, int64_t ring)
{
    int64_t f = 0;
    while (flat->ring_offset[flat->part_offset[f + 1]] <= ring)
        f++;
    return flat->fid != NULL ? flat->fid[f] : f;
}

static oj_status build_ring_grid(int64_t i, int thread, void *user,
                                 struct oj_error *err)
{
    const struct ring_grids_build *b = user;
    const struct oj_flat *flat = b->flat;
    const int64_t *vertex = flat->vertex_offset + b->grids->ring[i];
    struct oj_error reason;
    oj_status status = oj_edge_grid_of_ring(
        &b->grids->grid[i], flat->x + vertex[0], flat->y + vertex[0],
        vertex[1] - vertex[0], NULL, 0.0, &reason);
    (void)thread;
    if (status == OJ_ERR_LIMIT)
        return oj_fail(err, status, "feature %lld: %.800s",
                       (long long)fid_of_ring(flat, b->grids->ring[i]),
                       reason.message);
    return status == OJ_OK ? OJ_OK : oj_fail(err, status, "%s", reason.message);
}

static oj_status build_ring_grids(struct ring_grids_build *b, int n_threads,
                                  struct oj_error *err)
{
    const struct oj_flat *flat = b->flat;
    struct oj_ring_grids *grids = b->grids;
    int64_t n = 0, cap_rings = 0;
    OJ_NEW(grids->of_ring, flat->n_rings, err);
    for (int64_t p = 0; p < flat->n_parts; p++)
    {
        int64_t r = flat->ring_offset[p];
        for (; r < flat->ring_offset[p + 1]; r++)
        {
            int64_t size = flat->vertex_offset[r + 1] - flat->vertex_offset[r];
            grids->of_ring[r] = -1;
            if (flat->part_kind[p] != OJ_PART_POLYGON || size < GRID_VERTICES)
                continue;
            OJ_ROOM(grids->ring, n, n + 1, cap_rings, err);
            grids->ring[n] = r;
            grids->of_ring[r] = (int32_t)n++;
        }
    }
    OJ_NEW_ZEROED(grids->grid, n, err);
    grids->n = n;
    return oj_parallel_try(n_threads, n, 1, build_ring_grid, b, err);
}

oj_status oj_ring_grids_build(struct oj_ring_grids *grids,
                              const struct oj_flat *flat, int n_threads,
                              struct oj_error *err)
{
    struct ring_grids_build b = {grids, flat};
    oj_status status;
    memset(grids, 0, sizeof *grids);
    status = build_ring_grids(&b, n_threads, err);
    if (status != OJ_OK)
        oj_ring_grids_free(grids);
    return status;
}

int64_t oj_ring_grids_bytes(const struct oj_ring_grids *grids)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < grids->n; i++)
        bytes += oj_edge_grid_bytes(&grids->grid[i]);
    return bytes;
}

void oj_ring_grids_free(struct oj_ring_grids *grids)
{
    for (int64_t i = 0; i < grids->n; i++)
        oj_edge_grid_free(&grids->grid[i]);
    oj_free(grids->grid);
    oj_free(grids->ring);
    oj_free(grids->of_ring);
    memset(grids, 0, sizeof *grids);
}
