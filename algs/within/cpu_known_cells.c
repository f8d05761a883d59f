#include "cpu_known_cells.h"

#include "../../flatten/base/oj_array.h"
#include "../base/cpu_threads.h"
#include "../base/cpu_vector.h"
#include "../base/oj_radix.h"

#include <math.h>
#include <string.h>

/* Cells: as many as the points pay for; more for each vertex would hold no
 * fewer edges; and what fits into memory. */
#define POINTS_PER_CELL 2.0
#define CELLS_PER_VERTEX 8.0
#define MOST_CELLS (1 << 22)
#define LEAST_CELLS 64.0

/* Of the boxes of all features together. */
#define MOST_COVERED (1 << 26)

/* Fewer points are done with sooner than anything is prepared. */
#define LEAST_POINTS 200000

#define FEATURES_AT_ONCE 256

struct known_cells_build
{
    struct oj_known_cells *known;
    struct oj_ring_cells *cells;
    struct oj_cell_trace *trace; /* [n_threads] */
    int n_threads;
    int knows_inside;
    const int *cancel;
};

/* --- the frame ------------------------------------------------------------ */

/* The box of all features; the sum of the areas of their boxes. */
static struct oj_box measure(const struct oj_flat *flat, double *covered)
{
    struct oj_box all = oj_box_empty();
    *covered = 0.0;
    for (int64_t f = 0; f < flat->n_features; f++)
    {
        struct oj_box box = oj_box_empty();
        int64_t first = flat->ring_offset[flat->part_offset[f]];
        int64_t end = flat->ring_offset[flat->part_offset[f + 1]];
        for (int64_t i = flat->vertex_offset[first];
             i < flat->vertex_offset[end]; i++)
            oj_box_add_point(&box, flat->x[i], flat->y[i]);
        if (flat->vertex_offset[first] == flat->vertex_offset[end])
            continue;
        oj_box_add_box(&all, &box);
        *covered += (box.x1 - box.x0) * (box.y1 - box.y0);
    }
    return all;
}

/* 0: there would be too few cells to be of use, or none that are safe. */
static int choose_cells(struct oj_known_cells *k, const struct oj_flat *flat,
                        int64_t n_input)
{
    double covered, width, height, n = (double)n_input / POINTS_PER_CELL;
    struct oj_box all = measure(flat, &covered);
    width = all.x1 - all.x0;
    height = all.y1 - all.y0;
    if (!oj_box_is_safe(&all) || !(width > OJ_LEAST_SAFE_SIZE) ||
        !(height > OJ_LEAST_SAFE_SIZE))
        return 0;
    n = fmin(n, CELLS_PER_VERTEX * (double)flat->n_vertices);
    n = fmin(n, MOST_CELLS);
    n = fmin(n, MOST_COVERED / (covered / width / height));
    if (!(n >= LEAST_CELLS))
        return 0;
    k->size = sqrt(width / n) * sqrt(height);
    /* long and narrow: along neither axis too many */
    k->size = fmax(k->size, fmax(width, height) / (n / 4.0));
    /* far from the origin no finer than coordinates can tell */
    k->size = fmax(k->size, 1e-12 * oj_box_size(&all));
    k->x0 = all.x0;
    k->y0 = all.y0;
    k->inverse_size = 1.0 / k->size;
    k->nx = oj_ring_grid_index(all.x1, k->x0, k->inverse_size, MOST_CELLS) + 1;
    k->ny = oj_ring_grid_index(all.y1, k->y0, k->inverse_size, MOST_CELLS) + 1;
    return (int64_t)k->nx * k->ny <= 2 * (int64_t)MOST_CELLS;
}

/* --- the features --------------------------------------------------------- */

static oj_status trace_feature(int64_t feature, int thread, void *user,
                               struct oj_error *err)
{
    struct known_cells_build *b = user;
    OJ_TRY(oj_check_cancel(b->cancel, err));
    return oj_cell_trace_feature(&b->trace[thread], b->known, b->cells, feature,
                                 b->knows_inside, err);
}

/* Candidates by cell. */
static oj_status place_candidates(struct known_cells_build *b,
                                  struct oj_error *err)
{
    struct oj_known_cells *k = b->known;
    int64_t n_cells = (int64_t)k->nx * k->ny, total = 0;
    for (int t = 0; t < b->n_threads; t++)
    {
        const struct oj_cell_trace *trace = &b->trace[t];
        for (int64_t i = 0; i < trace->n_candidates; i++)
            k->cell[trace->candidate[i].cell].first++;
    }
    for (int64_t c = 0; c < n_cells + 2; c++)
    {
        int64_t n = k->cell[c].first;
        k->cell[c].first = (uint32_t)total;
        total += n;
    }
    OJ_NEW(k->candidate, total, err);
    for (int t = 0; t < b->n_threads; t++)
    {
        const struct oj_cell_trace *trace = &b->trace[t];
        for (int64_t i = 0; i < trace->n_candidates; i++)
            k->candidate[k->cell[trace->candidate[i].cell].first++] =
                trace->candidate[i].ring;
    }
    /* filling moved every place to the start of the next cell */
    for (int64_t c = n_cells + 1; c > 0; c--)
        k->cell[c].first = k->cell[c - 1].first;
    k->cell[0].first = 0;
    return OJ_OK;
}

static oj_status make_lists(struct known_cells_build *b, int *fits,
                            struct oj_error *err)
{
    struct oj_keyed *turn;
    int64_t n = 0;
    oj_status status;
    for (int t = 0; t < b->n_threads; t++)
        n += b->trace[t].n_turns;
    OJ_NEW(turn, 2 * n, err);
    n = 0;
    for (int t = 0; t < b->n_threads; t++)
    {
        struct oj_cell_trace *trace = &b->trace[t];
        if (trace->n_turns > 0)
            memcpy(turn + n, trace->turn,
                   (size_t)trace->n_turns * sizeof *turn);
        n += trace->n_turns;
        oj_cell_trace_free(trace);
    }
    status = oj_known_cells_list(b->known, oj_radix_sort(turn, turn + n, n), n,
                                 fits, err);
    oj_free(turn);
    return status;
}

static oj_status fill(struct known_cells_build *b, int *fits,
                      struct oj_error *err)
{
    struct oj_known_cells *k = b->known;
    int64_t n_features = b->cells->flat->n_features, n_candidates = 0;
    k->cell = oj_calloc((int64_t)k->nx * k->ny + 2, sizeof *k->cell);
    b->trace = oj_calloc(b->n_threads, sizeof *b->trace);
    if (k->cell == NULL || b->trace == NULL)
        return oj_fail_nomem(err, (int64_t)k->nx * k->ny, sizeof *k->cell);
    OJ_TRY(oj_parallel_try(b->n_threads, n_features, FEATURES_AT_ONCE,
                           trace_feature, b, err));
    *fits = 1;
    for (int t = 0; t < b->n_threads; t++)
    {
        n_candidates += b->trace[t].n_candidates;
        *fits &= !b->trace[t].is_unsafe;
    }
    *fits &= n_candidates <= INT32_MAX;
    if (!*fits)
        return OJ_OK;
    OJ_TRY(place_candidates(b, err));
    return make_lists(b, fits, err);
}

oj_status oj_known_cells_build(struct oj_known_cells *known,
                               struct oj_ring_cells *cells, int64_t n_input,
                               int knows_inside, int n_threads,
                               const int *cancel, struct oj_error *err)
{
    struct known_cells_build b = {.known = known,
                                  .cells = cells,
                                  .n_threads = n_threads,
                                  .knows_inside = knows_inside,
                                  .cancel = cancel};
    int fits = 0;
    oj_status status = OJ_OK;
    memset(known, 0, sizeof *known);
    if (n_input >= LEAST_POINTS && cells->n_rings > 0 &&
        choose_cells(known, cells->flat, n_input))
        status = fill(&b, &fits, err);
    for (int t = 0; b.trace != NULL && t < n_threads; t++)
        oj_cell_trace_free(&b.trace[t]);
    oj_free(b.trace);
    if (status != OJ_OK || !fits)
        oj_known_cells_free(known);
    return status;
}

/* --- points --------------------------------------------------------------- */

OJ_CLONES void oj_known_cells_find(const struct oj_known_cells *k, int64_t n,
                                   const double *x, const double *y,
                                   uint32_t *cell)
{
    double x0 = k->x0, y0 = k->y0, inverse = k->inverse_size;
    int32_t nx = k->nx, ny = k->ny;
    for (int64_t i = 0; i < n; i++)
    {
        double nothing = (x[i] - x[i]) + (y[i] - y[i]);
        int32_t at = oj_ring_grid_index(y[i], y0, inverse, ny) * nx +
                     oj_ring_grid_index(x[i], x0, inverse, nx);
        cell[i] = (uint32_t)(nothing == 0.0 ? at : nx * ny);
    }
}

int64_t oj_known_cells_bytes(const struct oj_known_cells *k)
{
    int64_t n_cells = (int64_t)k->nx * k->ny;
    if (n_cells == 0)
        return 0;
    return n_cells * (int64_t)sizeof *k->cell +
           k->cell[n_cells].first * (int64_t)sizeof *k->candidate +
           k->lists.n * (int64_t)sizeof *k->offset +
           k->offset[k->lists.n] * (int64_t)sizeof *k->feature;
}

void oj_known_cells_free(struct oj_known_cells *k)
{
    oj_free(k->cell);
    oj_free(k->candidate);
    oj_free(k->offset);
    oj_free(k->feature);
    memset(k, 0, sizeof *k);
}
