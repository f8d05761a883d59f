#include "cpu_ring_cells.h"

#include "../../flatten/base/oj_array.h"
#include "../base/cpu_threads.h"
#include "../base/cpu_vector.h"
#include "../base/oj_boxes.h"

#include <stdatomic.h>
#include <string.h>

/* Rings in more cells than this go to the next layer. The last layer has so few
 * cells that none is. */
#define MOST_SPAN (OJ_LAST_ALONG * OJ_LAST_ALONG)

/* But where there are few cells, and the large rings add few entries to each,
 * another layer would cost more than these. */
#define FEW_CELLS 32768
#define FEW_ENTRIES 6

/* A cell with more entries than this gets layers of its own, if the boxes of
 * these leave enough of it free that this tells them apart. */
#define MOST_ENTRIES 48
#define MOST_COVERED 0.25
#define MOST_DEPTH 6

#define RINGS_PER_TASK 4096

/* Steps that the box of a ring covers; x0 < 0: the ring is not in the layer,
 * and if it is large, x0 is ~x0. */
#define NO_STEPS INT32_MIN

struct steps
{
    int32_t x0, y0, x1, y1;
};

/* Building of one layer of one set. */
struct ring_layer_build
{
    struct oj_ring_cells *cells;
    struct oj_ring_layer *layer;
    int n_threads;
    const int32_t *ring; /* [n] the rings, or NULL: all */
    int64_t n;
    struct steps *steps;            /* [n] */
    int32_t *rest;                  /* [n_rest] for the next layer */
    atomic_llong n_rest, rest_span; /* cells of the rest */
};

/* --- counting and filling ------------------------------------------------- */

/* The next place of a cell, or one more of its entries. */
static inline uint32_t take_place(const struct ring_layer_build *b,
                                  int64_t cell)
{
    uint32_t *place = &b->layer->first[cell];
    if (b->n_threads > 1)
        return __atomic_fetch_add(place, 1, __ATOMIC_RELAXED);
    return (*place)++;
}

static void count_cells(const struct ring_layer_build *b, const struct steps *s)
{
    int32_t last_column = s->x1 / OJ_CELL_STEPS;
    int32_t last_row = s->y1 / OJ_CELL_STEPS;
    for (int32_t row = s->y0 / OJ_CELL_STEPS; row <= last_row; row++)
    {
        for (int32_t c = s->x0 / OJ_CELL_STEPS; c <= last_column; c++)
            take_place(b, (int64_t)row * b->layer->nx + c);
    }
}

static int64_t span_of(const struct steps *s)
{
    return (int64_t)(s->x1 / OJ_CELL_STEPS - s->x0 / OJ_CELL_STEPS + 1) *
           (s->y1 / OJ_CELL_STEPS - s->y0 / OJ_CELL_STEPS + 1);
}

static void measure_rings(int64_t task, int thread, void *user)
{
    struct ring_layer_build *b = user;
    const struct oj_ring_layer *layer = b->layer;
    int64_t end = (task + 1) * RINGS_PER_TASK;
    (void)thread;
    if (end > b->n)
        end = b->n;
    for (int64_t i = task * RINGS_PER_TASK; i < end; i++)
    {
        int64_t r = b->ring != NULL ? b->ring[i] : i;
        struct steps *s = &b->steps[i];
        struct oj_box box;
        s->x0 = NO_STEPS;
        if (b->cells->ring[r].n_vertices < 1)
            continue;
        box = oj_ring_cells_box(b->cells, r);
        s->x0 = oj_ring_step(box.x0, layer->x0, layer->scale_x, layer->last_x);
        s->y0 = oj_ring_step(box.y0, layer->y0, layer->scale_y, layer->last_y);
        s->x1 = oj_ring_step(box.x1, layer->x0, layer->scale_x, layer->last_x);
        s->y1 = oj_ring_step(box.y1, layer->y0, layer->scale_y, layer->last_y);
        if (span_of(s) <= MOST_SPAN)
            count_cells(b, s);
        else
        {
            atomic_fetch_add(&b->rest_span, span_of(s));
            b->rest[atomic_fetch_add(&b->n_rest, 1)] = (int32_t)r;
            s->x0 = ~s->x0;
        }
    }
}

/* Takes the large rings into the layer after all. */
static void take_rest(struct ring_layer_build *b)
{
    for (int64_t i = 0; i < b->n; i++)
    {
        struct steps *s = &b->steps[i];
        if (s->x0 >= 0 || s->x0 == NO_STEPS)
            continue;
        s->x0 = ~s->x0;
        count_cells(b, s);
    }
    atomic_store(&b->n_rest, 0);
}

/* Bits of the spots from step x0, y0 to x1, y1 of a cell. */
static uint64_t spots(int32_t x0, int32_t y0, int32_t x1, int32_t y1)
{
    int32_t column = x0 / OJ_SPOT_STEPS, last_column = x1 / OJ_SPOT_STEPS;
    int32_t row = y0 / OJ_SPOT_STEPS, last_row = y1 / OJ_SPOT_STEPS;
    uint64_t columns = (UINT64_C(0xff) >> (7 - last_column + column)) << column;
    uint64_t rows = UINT64_C(0x0101010101010101) >> (8 * (7 - last_row + row));
    return (columns * rows) << (8 * row);
}

static int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static void fill_cell(const struct ring_layer_build *b, const struct steps *s,
                      int32_t r, int32_t column, int32_t row)
{
    struct oj_ring_layer *layer = b->layer;
    int64_t cell = (int64_t)row * layer->nx + column;
    int32_t left = column * OJ_CELL_STEPS, low = row * OJ_CELL_STEPS;
    int32_t x0 = larger(s->x0 - left, 0), y0 = larger(s->y0 - low, 0);
    int32_t x1 = smaller(s->x1 - left, OJ_CELL_STEPS - 1);
    int32_t y1 = smaller(s->y1 - low, OJ_CELL_STEPS - 1);
    struct oj_ring_entry *entry = &layer->entry[take_place(b, cell)];
    uint64_t mask = spots(x0, y0, x1, y1);
    entry->steps = (uint32_t)x0 | (uint32_t)y0 << 8 |
                   (uint32_t)(OJ_CELL_STEPS - 1 - x1) << 16 |
                   (uint32_t)(OJ_CELL_STEPS - 1 - y1) << 24;
    entry->ring = r;
    if (b->n_threads > 1)
        __atomic_fetch_or(&layer->mask[cell], mask, __ATOMIC_RELAXED);
    else
        layer->mask[cell] |= mask;
}

static void fill_rings(int64_t task, int thread, void *user)
{
    struct ring_layer_build *b = user;
    int64_t end = (task + 1) * RINGS_PER_TASK;
    (void)thread;
    if (end > b->n)
        end = b->n;
    for (int64_t i = task * RINGS_PER_TASK; i < end; i++)
    {
        const struct steps *s = &b->steps[i];
        int32_t r = b->ring != NULL ? b->ring[i] : (int32_t)i;
        int32_t last_column, last_row;
        if (s->x0 < 0)
            continue;
        last_column = s->x1 / OJ_CELL_STEPS;
        last_row = s->y1 / OJ_CELL_STEPS;
        for (int32_t row = s->y0 / OJ_CELL_STEPS; row <= last_row; row++)
        {
            for (int32_t column = s->x0 / OJ_CELL_STEPS; column <= last_column;
                 column++)
                fill_cell(b, s, r, column, row);
        }
    }
}

static int64_t tasks_of(int64_t n)
{
    return (n + RINGS_PER_TASK - 1) / RINGS_PER_TASK;
}

static oj_status fill_layer(struct ring_layer_build *b,
                            const struct oj_box *clip, int is_last,
                            struct oj_error *err)
{
    struct oj_ring_layer *layer = b->layer;
    int64_t n_cells, total = 0;
    oj_ring_cells_choose_frame(b->cells, b->ring, b->n, clip, is_last, layer);
    n_cells = (int64_t)layer->nx * layer->ny;
    layer->mask = oj_calloc(n_cells + 1, sizeof *layer->mask);
    layer->first = oj_calloc(n_cells + 1, sizeof *layer->first);
    b->steps = oj_malloc(b->n, sizeof *b->steps);
    b->rest = oj_malloc(b->n, sizeof *b->rest);
    if (layer->mask == NULL || layer->first == NULL || b->steps == NULL ||
        b->rest == NULL)
        return oj_fail_nomem(err, b->n, 2 * sizeof *b->steps);
    oj_parallel_for(b->n_threads, tasks_of(b->n), measure_rings, b);
    if (n_cells <= FEW_CELLS &&
        atomic_load(&b->rest_span) <= FEW_ENTRIES * n_cells)
        take_rest(b);
    for (int64_t cell = 0; cell <= n_cells; cell++)
    {
        int64_t n = layer->first[cell];
        layer->first[cell] = (uint32_t)total;
        total += n;
    }
    if (total > UINT32_MAX)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the polygons overlap too much to be indexed");
    layer->entry = oj_malloc(total, sizeof *layer->entry);
    if (layer->entry == NULL)
        return oj_fail_nomem(err, total, sizeof *layer->entry);
    oj_parallel_for(b->n_threads, tasks_of(b->n), fill_rings, b);
    /* filling moved every place to the start of the next cell */
    memmove(layer->first + 1, layer->first,
            (size_t)n_cells * sizeof *layer->first);
    layer->first[0] = 0;
    return OJ_OK;
}

/* --- sets ----------------------------------------------------------------- */

static oj_status build_set(struct oj_ring_cells *cells, const int32_t *ring,
                           int64_t n, const struct oj_box *clip, int depth,
                           int n_threads, int64_t *out, struct oj_error *err);

/* 1 when layers of their own would tell the entries of a cell apart. */
static int is_crowded(const struct oj_ring_layer *layer, int64_t cell)
{
    int64_t first = layer->first[cell], end = layer->first[cell + 1];
    double covered = 0.0;
    if (end - first <= MOST_ENTRIES)
        return 0;
    for (int64_t i = first; i < end; i++)
    {
        uint32_t s = layer->entry[i].steps;
        covered += (double)(OJ_CELL_STEPS - (s >> 16 & 0xff) - (s & 0xff)) *
                   (double)(OJ_CELL_STEPS - (s >> 24) - (s >> 8 & 0xff));
    }
    return covered <
           MOST_COVERED * OJ_CELL_STEPS * OJ_CELL_STEPS * (double)(end - first);
}

/* What of clip lies in a cell; cells at the rim reach outward for ever. */
static struct oj_box cell_box(const struct oj_ring_layer *layer, int64_t cell,
                              const struct oj_box *clip)
{
    int64_t column = cell % layer->nx, row = cell / layer->nx;
    double width = OJ_CELL_STEPS / layer->scale_x;
    double height = OJ_CELL_STEPS / layer->scale_y;
    struct oj_box box = *clip;
    if (column > 0)
        box.x0 = fmax(clip->x0, layer->x0 + (double)column * width);
    if (row > 0)
        box.y0 = fmax(clip->y0, layer->y0 + (double)row * height);
    if (column + 1 < layer->nx)
        box.x1 = fmin(clip->x1, layer->x0 + (double)(column + 1) * width);
    if (row + 1 < layer->ny)
        box.y1 = fmin(clip->y1, layer->y0 + (double)(row + 1) * height);
    box.x1 = fmax(box.x0, box.x1);
    box.y1 = fmax(box.y0, box.y1);
    return box;
}

static oj_status split_cell(struct oj_ring_cells *cells,
                            struct oj_ring_layer *layer, int64_t cell,
                            const struct oj_box *clip, int depth, int n_threads,
                            struct oj_error *err)
{
    int64_t n_cells = (int64_t)layer->nx * layer->ny, set;
    int64_t first = layer->first[cell], n = layer->first[cell + 1] - first;
    struct oj_box box = cell_box(layer, cell, clip);
    int32_t *ring;
    oj_status status;
    if (layer->child == NULL)
    {
        OJ_NEW(layer->child, n_cells, err);
        memset(layer->child, -1, (size_t)n_cells * sizeof *layer->child);
    }
    OJ_NEW(ring, n, err);
    for (int64_t i = 0; i < n; i++)
        ring[i] = layer->entry[first + i].ring;
    status = build_set(cells, ring, n, &box, depth + 1, n_threads, &set, err);
    oj_free(ring);
    if (status == OJ_OK)
        layer->child[cell] = (int32_t)set;
    return status;
}

static void free_layer(struct oj_ring_layer *layer)
{
    oj_free(layer->mask);
    oj_free(layer->first);
    oj_free(layer->entry);
    oj_free(layer->child);
    oj_free(layer->answer);
}

/* Builds a set of the rings and appends it. Those that a layer leaves are what
 * the next one is made of. */
static oj_status build_set(struct oj_ring_cells *cells, const int32_t *ring,
                           int64_t n, const struct oj_box *clip, int depth,
                           int n_threads, int64_t *out, struct oj_error *err)
{
    struct oj_ring_set set;
    struct ring_layer_build b = {.cells = cells,
                                 .n_threads =
                                     n < RINGS_PER_TASK ? 1 : n_threads,
                                 .ring = ring,
                                 .n = n};
    int32_t *rest = NULL; /* what b.ring is, but for the first layer */
    oj_status status = OJ_OK;
    memset(&set, 0, sizeof set);
    while (status == OJ_OK && b.n > 0)
    {
        struct oj_ring_layer *layer = &set.layer[set.n_layers++];
        b.layer = layer;
        atomic_init(&b.n_rest, 0);
        atomic_init(&b.rest_span, 0);
        status = fill_layer(&b, clip, set.n_layers == OJ_RING_LAYERS || b.n < 8,
                            err);
        for (int64_t cell = 0; status == OJ_OK && depth < MOST_DEPTH &&
                               cell < (int64_t)layer->nx * layer->ny;
             cell++)
        {
            if (is_crowded(layer, cell))
                status =
                    split_cell(cells, layer, cell, clip, depth, n_threads, err);
        }
        oj_free(b.steps);
        b.steps = NULL;
        oj_free(rest);
        b.ring = rest = b.rest;
        b.rest = NULL;
        b.n = atomic_load(&b.n_rest);
    }
    oj_free(rest);
    if (status == OJ_OK)
        status = oj_reserve(&cells->set, cells->n_sets, cells->n_sets + 1,
                            &cells->cap_sets, sizeof *cells->set, err);
    if (status != OJ_OK)
    {
        for (int i = 0; i < set.n_layers; i++)
            free_layer(&set.layer[i]);
        return status;
    }
    *out = cells->n_sets;
    cells->set[cells->n_sets++] = set;
    return OJ_OK;
}

/* --- the whole --- */

static void list_rings(int64_t task, int thread, void *user)
{
    struct oj_ring_cells *cells = user;
    const struct oj_flat *flat = cells->flat;
    int64_t end = (task + 1) * RINGS_PER_TASK;
    (void)thread;
    if (end > flat->n_features)
        end = flat->n_features;
    for (int64_t f = task * RINGS_PER_TASK; f < end; f++)
    {
        int64_t part = flat->part_offset[f];
        int64_t first = flat->ring_offset[part];
        int64_t last = flat->ring_offset[flat->part_offset[f + 1]];
        int is_left_out = flat->overlaps != NULL && flat->overlaps[f];
        for (int64_t r = first; r < last; r++)
        {
            struct oj_located_ring *ring = &cells->ring[r];
            int64_t n_vertices;
            ring->first_vertex = flat->vertex_offset[r];
            /* too many are an error when the grid is built */
            n_vertices = flat->vertex_offset[r + 1] - flat->vertex_offset[r];
            n_vertices = is_left_out ? 0 : n_vertices;
            ring->n_vertices =
                (int32_t)(n_vertices < INT32_MAX ? n_vertices : INT32_MAX);
            while (r >= flat->ring_offset[part + 1])
                part++;
            ring->feature = (int32_t)f;
            ring->part = (int32_t)part;
            ring->grid = -1;
        }
    }
}

oj_status oj_ring_cells_build(struct oj_ring_cells *cells,
                              const struct oj_flat *flat, int n_threads,
                              struct oj_error *err)
{
    const struct oj_box everywhere = {-INFINITY, -INFINITY, INFINITY, INFINITY};
    int64_t set;
    oj_status status;
    memset(cells, 0, sizeof *cells);
    cells->flat = flat;
    cells->kernel = oj_ring_kernel();
    cells->n_rings = flat->n_rings;
    if (cells->n_rings > INT32_MAX)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the join layer has %lld polygon rings; at most %d are "
                       "possible",
                       (long long)cells->n_rings, INT32_MAX);
    if (cells->n_rings == 0)
        return OJ_OK;
    OJ_NEW(cells->ring, cells->n_rings, err);
    oj_parallel_for(n_threads, tasks_of(flat->n_features), list_rings, cells);
    oj_ring_cells_choose_axes(cells);
    status = oj_ring_cells_list_grids(cells, n_threads, err);
    if (status == OJ_OK)
        status = build_set(cells, NULL, cells->n_rings, &everywhere, 0,
                           n_threads, &set, err);
    if (status != OJ_OK)
        oj_ring_cells_free(cells);
    return status;
}

int64_t oj_ring_cells_bytes(const struct oj_ring_cells *cells)
{
    int64_t bytes = cells->n_rings * (int64_t)sizeof *cells->ring;
    for (int64_t i = 0; i < cells->n_grids; i++)
        bytes += (int64_t)sizeof *cells->grid +
                 oj_edge_grid_bytes(&cells->grid[i].grid);
    for (int64_t i = 0; i < cells->n_sets; i++)
    {
        for (int l = 0; l < cells->set[i].n_layers; l++)
        {
            const struct oj_ring_layer *layer = &cells->set[i].layer[l];
            int64_t n = (int64_t)layer->nx * layer->ny;
            bytes += n * (layer->child != NULL ? 16 : 12) +
                     layer->first[n] * (int64_t)sizeof *layer->entry;
        }
    }
    return bytes;
}

void oj_ring_cells_free(struct oj_ring_cells *cells)
{
    for (int64_t i = 0; i < cells->n_sets; i++)
    {
        for (int l = 0; l < cells->set[i].n_layers; l++)
            free_layer(&cells->set[i].layer[l]);
    }
    for (int64_t i = 0; i < cells->n_grids; i++)
        oj_edge_grid_free(&cells->grid[i].grid);
    oj_free(cells->set);
    oj_free(cells->grid);
    oj_free(cells->ring);
    memset(cells, 0, sizeof *cells);
}
