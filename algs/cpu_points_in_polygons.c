#include "../flatten/oj_array.h"
#include "cpu_family.h"
#include "cpu_ring_cells.h"
#include "cpu_threads.h"
#include "cpu_vector.h"
#include "oj_clock.h"
#include "oj_pairs.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Points go through the stages in blocks: every stage asks the memory for what
 * the next one reads of all points, so points may lie anywhere, in any order.
 */
#define BLOCK 256
#define ROWS_PER_TASK 8192

/* Candidates that are refined together at the least, but at a block's end. */
#define CANDIDATES 2048

/* A ring that may hold a point of the block. */
struct candidate
{
    int32_t point, ring;
    int32_t cell;     /* of the ring's grid, if it has one */
    int32_t location; /* in the ring, or UNKNOWN */
};

#define UNKNOWN (-1)

/* Where a point is in one ring of a feature of several. */
struct ring_state
{
    int32_t feature, location;
};

/* A point that is in a spot with rings. */
struct survivor
{
    int32_t point, layer;
    uint32_t cell, probe;
};

struct worker
{
    uint32_t cell[OJ_RING_LAYERS][BLOCK], probe[OJ_RING_LAYERS][BLOCK];
    struct survivor survivor[OJ_RING_LAYERS * BLOCK];
    uint32_t n_pairs_of[BLOCK];
    int64_t n_candidates, cap_candidates;
    struct candidate *candidate;
    int64_t n_states, cap_states;
    struct ring_state *state; /* of current_point */
    int32_t current_point;
    int64_t n_pairs, cap_pairs;
    int32_t *feature; /* [n_pairs] in the order of the rows of each task */
    int64_t n_refined;
    double filter_s, refine_s;
};

struct cpu_index
{
    struct oj_relation relation;
    struct oj_options options;
    const int32_t *tie_rank;
    const struct oj_flat *flat;
    struct oj_ring_cells cells;
    unsigned accepted;     /* bits 1 << enum oj_location */
    struct worker *worker; /* [n_threads] */
    struct task *task;     /* of the batch; its memory is used again */
    int64_t cap_tasks;
};

/* Where the pairs of a task are. */
struct task
{
    int64_t first, n; /* in feature of the worker */
    int64_t assumed;  /* pairs before it, as its offsets have it */
    int64_t before;   /* pairs before it, in truth */
    int32_t worker;
    int32_t n_matched;
};

/* A batch on its way. */
struct batch
{
    struct cpu_index *self;
    const struct oj_ring_set *set; /* NULL: no rings */
    const struct oj_flat *input;
    struct oj_pair_filter filter;
    struct oj_matches *out;
    atomic_llong n_pairs;
    atomic_int status;
    struct oj_error error; /* written by the thread that sets status */
};

static struct cpu_index *unwrap(struct oj_index *index)
{
    return (struct cpu_index *)(void *)index;
}

/* --- the join side -------------------------------------------------------- */

/* Locations of a point in a feature at which the join holds; 0: a join that
 * asks for more. */
static unsigned accepted_locations(enum oj_op op)
{
    switch (op)
    {
        case OJ_OP_INTERSECTS:
        case OJ_OP_COVEREDBY:
            return 1u << OJ_INSIDE | 1u << OJ_ON_BOUNDARY;
        case OJ_OP_WITHIN:
            return 1u << OJ_INSIDE;
        case OJ_OP_TOUCHES:
            return 1u << OJ_ON_BOUNDARY;
        default:
            return 0;
    }
}

static int takes(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input)
{
    return accepted_locations(relation->op) != 0 &&
           !oj_flat_is_points(join_side) &&
           (join_side->part_kinds & ~(unsigned)OJ_PART_POLYGON) == 0 &&
           (input == NULL || oj_flat_is_points(input));
}

static void free_index(struct oj_index *wrapped)
{
    struct cpu_index *self = unwrap(wrapped);
    if (self == NULL)
        return;
    for (int t = 0; self->worker != NULL && t < self->options.n_threads; t++)
    {
        oj_free(self->worker[t].candidate);
        oj_free(self->worker[t].state);
        oj_free(self->worker[t].feature);
    }
    oj_free(self->worker);
    oj_free(self->task);
    oj_ring_cells_free(&self->cells);
    oj_free(self);
}

static oj_status
make_index(const struct oj_flat *join_side, const int32_t *tie_rank,
           const struct oj_relation *relation, const struct oj_options *options,
           struct oj_index **out, struct oj_stats *stats, struct oj_error *err)
{
    struct cpu_index *self = oj_calloc(1, sizeof *self);
    double start = oj_clock_seconds();
    oj_status status;
    if (self == NULL)
        return oj_fail_nomem(err, 1, sizeof *self);
    self->relation = *relation;
    self->options = *options;
    self->tie_rank = tie_rank;
    self->flat = join_side;
    self->accepted = accepted_locations(relation->op);
    self->worker = oj_calloc(options->n_threads, sizeof *self->worker);
    if (self->worker == NULL)
        status = oj_fail_nomem(err, options->n_threads, sizeof *self->worker);
    else
        status = oj_ring_cells_build(&self->cells, join_side,
                                     options->n_threads, err);
    if (status != OJ_OK)
    {
        free_index((struct oj_index *)(void *)self);
        return status;
    }
    stats->index_s += oj_clock_seconds() - start;
    stats->index_bytes += oj_ring_cells_bytes(&self->cells);
    *out = (struct oj_index *)(void *)self;
    return OJ_OK;
}

/* --- filter: from points to candidates ------------------------------------ */

/* The cell of a point and what its entries are compared with. A point that is
 * none gets the cell that has no rings. */
OJ_INLINE void probe(const struct oj_ring_axes *axes,
                     const struct oj_ring_layer *layer, double x, double y,
                     int is_turned, uint32_t *cell, uint32_t *out)
{
    double nothing = (x - x) + (y - y);
    double u = is_turned ? oj_ring_u(axes, x, y) : x;
    double v = is_turned ? oj_ring_v(axes, x, y) : y;
    int32_t i = oj_ring_step(u, layer->x0, layer->scale_x, layer->last_x);
    int32_t j = oj_ring_step(v, layer->y0, layer->scale_y, layer->last_y);
    int32_t at = j / OJ_CELL_STEPS * layer->nx + i / OJ_CELL_STEPS;
    *cell = (uint32_t)(nothing == 0.0 ? at : layer->nx * layer->ny);
    *out = oj_ring_probe(i, j);
}

static OJ_CLONES void probe_points(const struct oj_ring_axes *borrowed_axes,
                                   const struct oj_ring_layer *borrowed,
                                   int64_t n, const double *x, const double *y,
                                   uint32_t *cell, uint32_t *out)
{
    const struct oj_ring_axes axes = *borrowed_axes;
    const struct oj_ring_layer layer = *borrowed;
    if (axes.is_turned)
    {
        for (int64_t i = 0; i < n; i++)
            probe(&axes, &layer, x[i], y[i], 1, &cell[i], &out[i]);
    }
    else
    {
        for (int64_t i = 0; i < n; i++)
            probe(&axes, &layer, x[i], y[i], 0, &cell[i], &out[i]);
    }
}

static inline int spot_of(uint32_t probe)
{
    return (int)((probe >> 8 & 0x70) >> 1 | (probe & 0x70) >> 4);
}

/* The points of the block that are in spots with rings, in their order. */
OJ_INLINE int64_t take_survivors(const struct oj_ring_set *set,
                                 struct worker *w, int64_t n, int n_layers)
{
    int64_t n_survivors = 0;
    for (int64_t i = 0; i < n; i++)
    {
        for (int l = 0; l < n_layers; l++)
        {
            uint32_t cell = w->cell[l][i], probe = w->probe[l][i];
            struct survivor *s = &w->survivor[n_survivors];
            s->point = (int32_t)i;
            s->layer = l;
            s->cell = cell;
            s->probe = probe;
            n_survivors +=
                (int64_t)(set->layer[l].mask[cell] >> spot_of(probe) & 1);
        }
    }
    return n_survivors;
}

static oj_status add_candidates(const struct oj_ring_cells *cells,
                                struct worker *w,
                                const struct oj_ring_layer *layer,
                                uint32_t cell, uint32_t probe, int32_t point,
                                struct oj_error *err)
{
    const struct oj_ring_entry *entry = layer->entry + layer->first[cell];
    const struct oj_ring_entry *end = layer->entry + layer->first[cell + 1];
    struct candidate *out;
    OJ_TRY(oj_reserve(&w->candidate, w->n_candidates,
                      w->n_candidates + (end - entry), &w->cap_candidates,
                      sizeof *w->candidate, err));
    out = w->candidate + w->n_candidates;
    for (; entry < end; entry++)
    {
        if (!oj_ring_entry_holds(entry->steps, probe))
            continue;
        out->point = point;
        out->ring = entry->ring;
        out++;
        __builtin_prefetch(&cells->ring[entry->ring]);
    }
    w->n_candidates = out - w->candidate;
    return OJ_OK;
}

/* The same in the set that a crowded cell has in place of its entries. */
static oj_status descend(const struct oj_ring_cells *cells, struct worker *w,
                         int32_t set_number, double x, double y, int32_t point,
                         struct oj_error *err)
{
    const struct oj_ring_set *set = &cells->set[set_number];
    for (int l = 0; l < set->n_layers; l++)
    {
        const struct oj_ring_layer *layer = &set->layer[l];
        uint32_t cell, at;
        probe(&cells->axes, layer, x, y, cells->axes.is_turned, &cell, &at);
        if (!(layer->mask[cell] >> spot_of(at) & 1))
            continue;
        if (layer->child != NULL && layer->child[cell] >= 0)
            OJ_TRY(descend(cells, w, layer->child[cell], x, y, point, err));
        else
            OJ_TRY(add_candidates(cells, w, layer, cell, at, point, err));
    }
    return OJ_OK;
}

/* --- refine: from candidates to pairs ------------------------------------- */

/* oj_ring_locate(), with what an edge shares with the next computed once. */
static enum oj_location walk(double px, double py, const double *x,
                             const double *y, int64_t n)
{
    int odd = 0, up = y[0] > py;
    for (int64_t i = 0; i + 1 < n; i++)
    {
        double ax = x[i], bx = x[i + 1], by = y[i + 1];
        int next_up = by > py;
        if (y[i] == py && (ax == px || (by == py && (ax <= px) != (bx <= px)) ||
                           (by == py && bx == px)))
            return OJ_ON_BOUNDARY;
        if (up != next_up)
        {
            if (ax > px && bx > px)
                odd ^= 1;
            else if (!(ax < px && bx < px))
            {
                int side = oj_orientation(ax, y[i], bx, by, px, py);
                if (side == 0)
                    return OJ_ON_BOUNDARY;
                odd ^= (side > 0) == next_up;
            }
        }
        up = next_up;
    }
    return odd ? OJ_INSIDE : OJ_OUTSIDE;
}

static oj_status add_pair(struct worker *w, int32_t point, int32_t feature,
                          struct oj_error *err)
{
    if (w->n_pairs == w->cap_pairs)
        OJ_TRY(oj_reserve(&w->feature, w->n_pairs, w->n_pairs + 4096,
                          &w->cap_pairs, sizeof *w->feature, err));
    w->feature[w->n_pairs++] = feature;
    w->n_pairs_of[point]++;
    return OJ_OK;
}

static int by_feature(const void *left, const void *right)
{
    const struct ring_state *a = left, *b = right;
    return (a->feature > b->feature) - (a->feature < b->feature);
}

/* Rings of one feature side by side; mostly there are one or two. */
static void sort_states(int64_t n, struct ring_state *state)
{
    if (n > 32)
    {
        qsort(state, (size_t)n, sizeof *state, by_feature);
        return;
    }
    for (int64_t i = 1; i < n; i++)
    {
        struct ring_state moved = state[i];
        int64_t j = i;
        for (; j > 0 && state[j - 1].feature > moved.feature; j--)
            state[j] = state[j - 1];
        state[j] = moved;
    }
}

/* Puts together where the current point is in the rings of each feature: on any
 * of them is on the boundary, and inside of an odd number is inside. */
static oj_status finish_point(const struct cpu_index *self, struct worker *w,
                              struct oj_error *err)
{
    int64_t n = w->n_states;
    w->n_states = 0;
    sort_states(n, w->state);
    for (int64_t i = 0; i < n;)
    {
        int32_t feature = w->state[i].feature;
        int odd = 0, on_boundary = 0;
        for (; i < n && w->state[i].feature == feature; i++)
        {
            odd ^= w->state[i].location & OJ_INSIDE;
            on_boundary |= w->state[i].location & OJ_ON_BOUNDARY;
        }
        if (self->accepted >> (on_boundary ? OJ_ON_BOUNDARY : odd) & 1)
            OJ_TRY(add_pair(w, w->current_point, feature, err));
    }
    return OJ_OK;
}

/* Asks the memory for what the candidates' tests read: each step asks for what
 * the one before has told the place of. Points in cells without edges are done
 * with on the way. */
static oj_status fetch(struct oj_ring_cells *cells, int64_t n,
                       struct candidate *candidate, const double *x,
                       const double *y, struct oj_error *err)
{
    const double *rx = cells->flat->x, *ry = cells->flat->y;
    int64_t n_in_grids = 0;
    for (int64_t i = 0; i < n; i++)
    {
        struct candidate *c = &candidate[i];
        const struct oj_located_ring *ring = &cells->ring[c->ring];
        const struct oj_ring_grid *grid = NULL;
        c->location = UNKNOWN;
        c->cell = -1;
        if (ring->grid >= 0)
            OJ_TRY(oj_ring_cells_grid(cells, ring, &grid, err));
        if (grid != NULL)
        {
            c->cell =
                (int32_t)oj_ring_grid_cell(grid, x[c->point], y[c->point]);
            __builtin_prefetch(grid->first_run + c->cell);
            n_in_grids++;
        }
        else
        {
            __builtin_prefetch(rx + ring->first_vertex);
            __builtin_prefetch(ry + ring->first_vertex);
        }
    }
    for (int64_t i = 0; n_in_grids > 0 && i < n; i++)
    {
        struct candidate *c = &candidate[i];
        const struct oj_ring_grid *grid;
        if (c->cell < 0)
            continue;
        grid = &cells->grid[cells->ring[c->ring].grid].grid;
        c->location = oj_ring_grid_known(grid, c->cell);
        if (c->location == UNKNOWN)
            oj_ring_grid_fetch_runs(grid, c->cell);
    }
    for (int64_t i = 0; n_in_grids > 0 && i < n; i++)
    {
        struct candidate *c = &candidate[i];
        if (c->cell >= 0 && c->location == UNKNOWN)
            oj_ring_grid_fetch_edges(
                &cells->grid[cells->ring[c->ring].grid].grid, c->cell);
    }
    return OJ_OK;
}

static enum oj_location locate(const struct oj_ring_cells *cells,
                               const struct oj_located_ring *ring,
                               const struct candidate *c, double px, double py)
{
    if (c->location != UNKNOWN)
        return (enum oj_location)c->location;
    if (c->cell >= 0)
        return oj_ring_grid_test(&cells->grid[ring->grid].grid, c->cell, px,
                                 py);
    return walk(px, py, cells->flat->x + ring->first_vertex,
                cells->flat->y + ring->first_vertex, ring->n_vertices);
}

static oj_status refine(const struct batch *b, struct worker *w,
                        int64_t first_row, struct oj_error *err)
{
    struct cpu_index *self = b->self;
    struct oj_ring_cells *cells = &self->cells;
    const double *x = b->input->x + first_row, *y = b->input->y + first_row;
    int64_t n = w->n_candidates;
    OJ_TRY(fetch(cells, n, w->candidate, x, y, err));
    for (int64_t i = 0; i < n; i++)
    {
        const struct candidate *c = &w->candidate[i];
        const struct oj_located_ring *ring = &cells->ring[c->ring];
        enum oj_location location;
        if (c->point != w->current_point)
        {
            if (w->n_states > 0)
                OJ_TRY(finish_point(self, w, err));
            w->current_point = c->point;
        }
        if (!oj_pair_may_count(&b->filter, first_row + c->point, ring->feature))
            continue;
        location = locate(cells, ring, c, x[c->point], y[c->point]);
        if (location == OJ_OUTSIDE)
            continue;
        if (ring->is_lone)
        {
            if (self->accepted >> location & 1)
                OJ_TRY(add_pair(w, c->point, ring->feature, err));
            continue;
        }
        if (w->n_states == w->cap_states)
            OJ_TRY(oj_reserve(&w->state, w->n_states, w->n_states + 1,
                              &w->cap_states, sizeof *w->state, err));
        w->state[w->n_states].feature = ring->feature;
        w->state[w->n_states++].location = (int32_t)location;
    }
    w->n_refined += n;
    w->n_candidates = 0;
    return OJ_OK;
}

/* --- rows ----------------------------------------------------------------- */

struct ranked
{
    int32_t rank, feature;
};

static int by_rank(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* The n pairs of a row in tie order. */
static oj_status sort_row(const int32_t *tie_rank, int64_t n, int32_t *feature,
                          struct oj_error *err)
{
    struct ranked few[32], *list = few;
    if (n > 32)
        OJ_NEW(list, n, err);
    for (int64_t i = 0; i < n; i++)
    {
        struct ranked r = {feature[i], feature[i]};
        int64_t j = i;
        if (tie_rank != NULL)
            r.rank = tie_rank[r.feature];
        for (; n <= 32 && j > 0 && list[j - 1].rank > r.rank; j--)
            list[j] = list[j - 1];
        list[j] = r;
    }
    if (n > 32)
        qsort(list, (size_t)n, sizeof *list, by_rank);
    for (int64_t i = 0; i < n; i++)
        feature[i] = list[i].feature;
    if (n > 32)
        oj_free(list);
    return OJ_OK;
}

/* Offsets of a block's rows, and their order. */
static oj_status finish_rows(const struct cpu_index *self, struct worker *w,
                             int64_t n, int64_t before, int64_t first_pair,
                             int64_t *offset, struct task *task,
                             struct oj_error *err)
{
    int32_t *feature = w->feature != NULL ? w->feature + first_pair : NULL;
    int64_t total = 0, n_matched = 0;
    int is_sorting = !self->relation.any_order;
    for (int64_t i = 0; i < n; i++)
    {
        int64_t n_pairs = w->n_pairs_of[i];
        if (n_pairs > 1 && is_sorting)
            OJ_TRY(sort_row(self->tie_rank, n_pairs, feature + total, err));
        total += n_pairs;
        n_matched += n_pairs > 0;
        offset[i] = before + total;
    }
    task->n_matched += (int32_t)n_matched;
    return OJ_OK;
}

static int is_cancelled(const struct cpu_index *self)
{
    return self->options.cancel != NULL &&
           __atomic_load_n(self->options.cancel, __ATOMIC_RELAXED);
}

/* Refines what has come together, and stops where that is asked for. */
static oj_status flush(struct batch *b, struct worker *w, int64_t first_row,
                       struct oj_error *err)
{
    double start = b->self->options.timings ? oj_clock_seconds() : 0.0;
    if (is_cancelled(b->self))
        return oj_fail(err, OJ_ERR_CANCELLED, "interrupted");
    OJ_TRY(refine(b, w, first_row, err));
    if (b->self->options.timings)
        w->refine_s += oj_clock_seconds() - start;
    return OJ_OK;
}

static oj_status join_block(struct batch *b, struct worker *w,
                            int64_t first_row, int64_t n, struct oj_error *err)
{
    const struct oj_ring_cells *cells = &b->self->cells;
    const struct oj_ring_set *set = b->set;
    const double *x = b->input->x + first_row, *y = b->input->y + first_row;
    int64_t n_survivors;
    memset(w->n_pairs_of, 0, sizeof w->n_pairs_of);
    w->current_point = -1;
    w->n_candidates = w->n_states = 0;
    for (int l = 0; l < set->n_layers; l++)
    {
        const struct oj_ring_layer *layer = &set->layer[l];
        probe_points(&cells->axes, layer, n, x, y, w->cell[l], w->probe[l]);
        for (int64_t i = 0; i < n; i++)
            __builtin_prefetch(&layer->mask[w->cell[l][i]]);
    }
    n_survivors = set->n_layers == 1 ? take_survivors(set, w, n, 1)
                                     : take_survivors(set, w, n, set->n_layers);
    for (int64_t i = 0; i < n_survivors; i++)
    {
        const struct survivor *s = &w->survivor[i];
        __builtin_prefetch(&set->layer[s->layer].first[s->cell]);
    }
    for (int64_t i = 0; i < n_survivors; i++)
    {
        const struct survivor *s = &w->survivor[i];
        const struct oj_ring_layer *layer = &set->layer[s->layer];
        __builtin_prefetch(&layer->entry[layer->first[s->cell]]);
    }
    for (int64_t i = 0; i < n_survivors; i++)
    {
        const struct survivor *s = &w->survivor[i];
        const struct oj_ring_layer *layer = &set->layer[s->layer];
        if (layer->child != NULL && layer->child[s->cell] >= 0)
            OJ_TRY(descend(cells, w, layer->child[s->cell], x[s->point],
                           y[s->point], s->point, err));
        else
            OJ_TRY(add_candidates(cells, w, layer, s->cell, s->probe, s->point,
                                  err));
        if (w->n_candidates >= CANDIDATES)
            OJ_TRY(flush(b, w, first_row, err));
    }
    OJ_TRY(flush(b, w, first_row, err));
    return finish_point(b->self, w, err);
}

static oj_status check_bound(struct batch *b, int64_t n_more,
                             struct oj_error *err)
{
    int64_t most = b->self->options.max_batch_pairs;
    if (most <= 0 || b->input->n_features < 2 ||
        atomic_fetch_add(&b->n_pairs, n_more) + n_more <= most)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                   "the batch has more pairs than fit");
}

static oj_status join_rows(struct batch *b, struct task *task, struct worker *w,
                           int64_t row, int64_t end, struct oj_error *err)
{
    double start = b->self->options.timings ? oj_clock_seconds() : 0.0;
    for (; row < end; row += BLOCK)
    {
        int64_t n = end - row < BLOCK ? end - row : BLOCK;
        int64_t first = w->n_pairs;
        OJ_TRY(join_block(b, w, row, n, err));
        OJ_TRY(finish_rows(b->self, w, n, task->assumed + first - task->first,
                           first, b->out->offset + row + 1, task, err));
        OJ_TRY(check_bound(b, w->n_pairs - first, err));
    }
    task->n = w->n_pairs - task->first;
    if (b->self->options.timings)
        w->filter_s += oj_clock_seconds() - start; /* less refine_s, later */
    return OJ_OK;
}

static void join_task(int64_t i, int thread, void *user)
{
    struct batch *b = user;
    struct worker *w = &b->self->worker[thread];
    struct task *task = &b->self->task[i];
    int64_t n_rows = b->input->n_features, row = i * ROWS_PER_TASK;
    int64_t end = row + ROWS_PER_TASK < n_rows ? row + ROWS_PER_TASK : n_rows;
    struct oj_error error;
    oj_status status;
    int expected = OJ_OK;
    memset(task, 0, sizeof *task);
    if (atomic_load(&b->status) != OJ_OK)
        return;
    task->first = w->n_pairs;
    task->worker = thread;
    /* one thread takes the tasks in their order */
    task->assumed = b->self->options.n_threads == 1 ? task->first : 0;
    status = join_rows(b, task, w, row, end, &error);
    if (status != OJ_OK &&
        atomic_compare_exchange_strong(&b->status, &expected, (int)status))
        b->error = error;
}

/* Brings a task's pairs to their place. */
static void place_task(int64_t i, int thread, void *user)
{
    struct batch *b = user;
    const struct task *task = &b->self->task[i];
    const struct worker *w = &b->self->worker[task->worker];
    struct oj_matches *out = b->out;
    int64_t n_rows = b->input->n_features, row = i * ROWS_PER_TASK;
    int64_t end = row + ROWS_PER_TASK < n_rows ? row + ROWS_PER_TASK : n_rows;
    int64_t more = task->before - task->assumed;
    (void)thread;
    for (; more != 0 && row < end; row++)
        out->offset[row + 1] += more;
    if (task->n == 0)
        return;
    memcpy(out->join_row + task->before, w->feature + task->first,
           (size_t)task->n * sizeof *out->join_row);
    for (int64_t p = 0; p < task->n; p++)
        out->measure[task->before + p] = NAN;
}

static void sum_stats(struct cpu_index *self, double seconds,
                      struct oj_stats *stats)
{
    int n_threads = self->options.n_threads;
    for (int t = 0; t < n_threads; t++)
    {
        struct worker *w = &self->worker[t];
        stats->n_candidates += w->n_refined;
        /* shares of the threads' time, as wall seconds */
        stats->filter_s += (w->filter_s - w->refine_s) / n_threads;
        stats->refine_s += w->refine_s / n_threads;
        w->n_refined = 0;
        w->filter_s = w->refine_s = 0.0;
    }
    if (!self->options.timings)
        stats->refine_s += seconds;
}

static oj_status join_batch(struct batch *b, struct oj_stats *stats,
                            struct oj_error *err)
{
    struct cpu_index *self = b->self;
    struct oj_matches *out = b->out;
    int n_threads = self->options.n_threads;
    int64_t n_rows = b->input->n_features;
    int64_t n_tasks = (n_rows + ROWS_PER_TASK - 1) / ROWS_PER_TASK;
    int64_t n_pairs = 0, n_matched = 0;
    double start = oj_clock_seconds();
    OJ_TRY(oj_matches_reserve(out, n_rows, 0, 1, err));
    OJ_TRY(oj_reserve(&self->task, 0, n_tasks, &self->cap_tasks,
                      sizeof *self->task, err));
    out->offset[0] = 0;
    for (int t = 0; t < n_threads; t++)
        self->worker[t].n_pairs = 0;
    oj_parallel_for(n_threads, n_tasks, join_task, b);
    sum_stats(self, oj_clock_seconds() - start, stats);
    stats->index_bytes += atomic_exchange(&self->cells.new_bytes, 0);
    if (atomic_load(&b->status) != OJ_OK)
    {
        if (err != NULL)
            *err = b->error;
        return (oj_status)atomic_load(&b->status);
    }
    for (int64_t i = 0; i < n_tasks; i++)
    {
        self->task[i].before = n_pairs;
        n_pairs += self->task[i].n;
        n_matched += self->task[i].n_matched;
    }
    /* the offsets keep their memory: there is room for them */
    OJ_TRY(oj_matches_reserve(out, n_rows, n_pairs, 1, err));
    oj_parallel_for(n_threads, n_tasks, place_task, b);
    out->n_pairs = n_pairs;
    out->n_matched = n_matched;
    return OJ_OK;
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct cpu_index *self = unwrap(wrapped);
    struct batch b;
    memset(&b, 0, sizeof b);
    b.self = self;
    b.input = input;
    b.out = out;
    OJ_TRY(oj_pair_filter_make(&self->relation, input, self->flat, &b.filter,
                               err));
    if (self->cells.n_sets > 0)
        b.set = &self->cells.set[self->cells.n_sets - 1];
    else
    {
        OJ_TRY(oj_matches_reserve(out, input->n_features, 0, 1, err));
        memset(out->offset, 0,
               (size_t)(input->n_features + 1) * sizeof *out->offset);
        return OJ_OK;
    }
    atomic_init(&b.n_pairs, 0);
    atomic_init(&b.status, OJ_OK);
    return join_batch(&b, stats, err);
}

const struct oj_cpu_family oj_cpu_points_in_polygons = {
    "points in cells of polygons", takes, make_index, join, free_index};
