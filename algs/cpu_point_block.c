#include "cpu_point_block.h"

#include "../flatten/oj_array.h"
#include "cpu_vector.h"
#include "oj_clock.h"

#include <stdlib.h>
#include <string.h>

/* Candidates that are refined together at the least, but at a block's end. */
#define CANDIDATES 2048

#define UNKNOWN (-1)

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
                                 struct oj_point_worker *w, int64_t n,
                                 int n_layers)
{
    int64_t n_survivors = 0;
    for (int64_t i = 0; i < n; i++)
    {
        for (int l = 0; l < n_layers; l++)
        {
            uint32_t cell = w->cell[l][i], probe = w->probe[l][i];
            struct oj_point_survivor *s = &w->survivor[n_survivors];
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
                                struct oj_point_worker *w,
                                const struct oj_ring_layer *layer,
                                uint32_t cell, uint32_t probe, int32_t point,
                                struct oj_error *err)
{
    const struct oj_ring_entry *entry = layer->entry + layer->first[cell];
    const struct oj_ring_entry *end = layer->entry + layer->first[cell + 1];
    struct oj_point_candidate *out;
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
        out->location = UNKNOWN;
        out++;
        __builtin_prefetch(&cells->ring[entry->ring]);
    }
    w->n_candidates = out - w->candidate;
    return OJ_OK;
}

/* The same in the set that a crowded cell has in place of its entries. */
static oj_status descend(const struct oj_ring_cells *cells,
                         struct oj_point_worker *w, int32_t set_number,
                         double x, double y, int32_t point,
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

/* The same from the cell that knows its features. */
static oj_status add_known_candidates(const struct oj_point_query *q,
                                      struct oj_point_worker *w, uint32_t cell,
                                      int32_t point, struct oj_error *err)
{
    const struct oj_known_cells *known = q->known;
    int64_t first = known->cell[cell].first, end = known->cell[cell + 1].first;
    OJ_TRY(oj_reserve(&w->candidate, w->n_candidates,
                      w->n_candidates + (end - first), &w->cap_candidates,
                      sizeof *w->candidate, err));
    for (; first < end; first++)
    {
        struct oj_point_candidate *out = &w->candidate[w->n_candidates++];
        int32_t ring = known->candidate[first];
        out->point = point;
        out->ring = ring >= 0 ? ring : ~ring;
        out->location = ring >= 0 ? UNKNOWN : OJ_INSIDE;
        __builtin_prefetch(&q->cells->ring[out->ring]);
    }
    return OJ_OK;
}

/* --- refine: from candidates to pairs ------------------------------------- */

/* The edges of a ring of at most eight, all at once: OJ_INSIDE, OJ_OUTSIDE, or
 * UNKNOWN where p is so near an edge that the sign of its side is not sure.
 * Nine vertices are read, whatever n; those past the ring count for nothing. */
static OJ_CLONES int locate_in_few(double px, double py, const double *x,
                                   const double *y, int64_t n)
{
    double crossings[OJ_LANES], unsure[OJ_LANES];
    double n_crossings = 0.0, n_unsure = 0.0;
    OJ_EIGHT
    {
        double ax = x[c], ay = y[c], bx = x[c + 1], by = y[c + 1];
        /* as oj_orientation() does it, so that the signs are the same */
        double left = (ax - px) * (by - py), right = (ay - py) * (bx - px);
        double det = left - right, size = fabs(left) + fabs(right);
        double bound = 3.3306690738754716e-16 * size;
        double up = by > py ? 1.0 : 0.0, from_up = ay > py ? 1.0 : 0.0;
        double low = ay < by ? ay : by, high = ay < by ? by : ay;
        double is_left = det > bound ? 1.0 : 0.0;
        double is_right = -det > bound ? 1.0 : 0.0;
        double is_sure = size > 1e-280 ? is_left + is_right : 0.0;
        double touches = (low <= py ? 1.0 : 0.0) * (high >= py ? 1.0 : 0.0);
        double counts = (double)c + 1.0 < (double)n ? 1.0 : 0.0;
        crossings[c] = counts * (up * (1.0 - from_up) * is_left +
                                 from_up * (1.0 - up) * is_right);
        unsure[c] = counts * touches * (1.0 - is_sure);
    }
    for (int c = 0; c < OJ_LANES; c++)
    {
        n_crossings += crossings[c];
        n_unsure += unsure[c];
    }
    return n_unsure > 0.0 ? UNKNOWN : (int)n_crossings & 1;
}

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

static oj_status add_pair(struct oj_point_worker *w, int32_t point,
                          int32_t feature, struct oj_error *err)
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
    const struct oj_point_state *a = left, *b = right;
    return (a->feature > b->feature) - (a->feature < b->feature);
}

/* Rings of one feature side by side; mostly there are one or two. */
static void sort_states(int64_t n, struct oj_point_state *state)
{
    if (n > 32)
    {
        qsort(state, (size_t)n, sizeof *state, by_feature);
        return;
    }
    for (int64_t i = 1; i < n; i++)
    {
        struct oj_point_state moved = state[i];
        int64_t j = i;
        for (; j > 0 && state[j - 1].feature > moved.feature; j--)
            state[j] = state[j - 1];
        state[j] = moved;
    }
}

/* Puts together where the current point is in the rings of each feature: on any
 * of them is on the boundary, and inside of an odd number is inside. */
static oj_status finish_point(const struct oj_point_query *q,
                              struct oj_point_worker *w, struct oj_error *err)
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
        if (q->accepted >> (on_boundary ? OJ_ON_BOUNDARY : odd) & 1)
            OJ_TRY(add_pair(w, w->current_point, feature, err));
    }
    return OJ_OK;
}

/* Asks the memory for what the candidates' tests read: each step asks for what
 * the one before has told the place of. Points in cells without edges are done
 * with on the way. */
static oj_status fetch(struct oj_ring_cells *cells, int64_t n,
                       struct oj_point_candidate *candidate, const double *x,
                       const double *y, struct oj_error *err)
{
    const double *rx = cells->flat->x, *ry = cells->flat->y;
    int64_t n_in_grids = 0;
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_point_candidate *c = &candidate[i];
        const struct oj_located_ring *ring = &cells->ring[c->ring];
        const struct oj_ring_grid *grid = NULL;
        c->cell = -1;
        if (c->location != UNKNOWN)
            continue;
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
            int64_t last = ring->first_vertex + ring->n_vertices - 1;
            __builtin_prefetch(rx + ring->first_vertex);
            __builtin_prefetch(ry + ring->first_vertex);
            __builtin_prefetch(rx + last);
            __builtin_prefetch(ry + last);
        }
    }
    for (int64_t i = 0; n_in_grids > 0 && i < n; i++)
    {
        struct oj_point_candidate *c = &candidate[i];
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
        struct oj_point_candidate *c = &candidate[i];
        if (c->cell >= 0 && c->location == UNKNOWN)
            oj_ring_grid_fetch_edges(
                &cells->grid[cells->ring[c->ring].grid].grid, c->cell);
    }
    return OJ_OK;
}

static enum oj_location locate(const struct oj_ring_cells *cells,
                               const struct oj_located_ring *ring,
                               const struct oj_point_candidate *c, double px,
                               double py)
{
    const double *x = cells->flat->x + ring->first_vertex;
    const double *y = cells->flat->y + ring->first_vertex;
    if (c->location != UNKNOWN)
        return (enum oj_location)c->location;
    if (c->cell >= 0)
        return oj_ring_grid_test(&cells->grid[ring->grid].grid, c->cell, px,
                                 py);
    if (ring->n_vertices <= OJ_LANES + 1 &&
        ring->first_vertex + OJ_LANES < cells->flat->n_vertices)
    {
        int few = locate_in_few(px, py, x, y, ring->n_vertices);
        if (few != UNKNOWN)
            return (enum oj_location)few;
    }
    return walk(px, py, x, y, ring->n_vertices);
}

static oj_status refine(const struct oj_point_query *q,
                        struct oj_point_worker *w, int64_t first_row,
                        struct oj_error *err)
{
    struct oj_ring_cells *cells = q->cells;
    const double *x = q->input->x + first_row, *y = q->input->y + first_row;
    int64_t n = w->n_candidates;
    OJ_TRY(fetch(cells, n, w->candidate, x, y, err));
    for (int64_t i = 0; i < n; i++)
    {
        const struct oj_point_candidate *c = &w->candidate[i];
        const struct oj_located_ring *ring = &cells->ring[c->ring];
        enum oj_location location;
        if (c->point != w->current_point)
        {
            if (w->n_states > 0)
                OJ_TRY(finish_point(q, w, err));
            w->current_point = c->point;
        }
        if (!oj_pair_may_count(q->filter, first_row + c->point, ring->feature))
            continue;
        location = locate(cells, ring, c, x[c->point], y[c->point]);
        if (location == OJ_OUTSIDE)
            continue;
        if (ring->is_lone)
        {
            if (q->accepted >> location & 1)
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

/* --- blocks --- */

static int is_cancelled(const struct oj_point_query *q)
{
    return q->cancel != NULL && __atomic_load_n(q->cancel, __ATOMIC_RELAXED);
}

/* Refines what has come together, and stops where that is asked for. */
static oj_status flush(const struct oj_point_query *q,
                       struct oj_point_worker *w, int64_t first_row,
                       struct oj_error *err)
{
    double start = q->timings ? oj_clock_seconds() : 0.0;
    if (is_cancelled(q))
        return oj_fail(err, OJ_ERR_CANCELLED, "interrupted");
    OJ_TRY(refine(q, w, first_row, err));
    if (q->timings)
        w->refine_s += oj_clock_seconds() - start;
    return OJ_OK;
}

/* Candidates of the rows by the cells that know their features, refined but for
 * the last ones. */
static oj_status join_known(const struct oj_point_query *q,
                            struct oj_point_worker *w, int64_t first_row,
                            int64_t n, struct oj_error *err)
{
    const struct oj_known_cells *known = q->known;
    int32_t *list = q->list + first_row;
    uint32_t *cell = w->cell[0];
    oj_known_cells_find(known, n, q->input->x + first_row,
                        q->input->y + first_row, cell);
    for (int64_t i = 0; i < n; i++)
        __builtin_prefetch(&known->cell[cell[i]]);
    for (int64_t i = 0; i < n; i++)
    {
        const struct oj_known_cell *c = &known->cell[cell[i]];
        list[i] = c->list;
        __builtin_prefetch(&known->candidate[c->first]);
        __builtin_prefetch(&known->lists.offset[c->list]);
    }
    for (int64_t i = 0; i < n; i++)
    {
        OJ_TRY(add_known_candidates(q, w, cell[i], (int32_t)i, err));
        if (w->n_candidates >= CANDIDATES)
            OJ_TRY(flush(q, w, first_row, err));
    }
    return OJ_OK;
}

/* The same by the rings' boxes. */
static oj_status join_by_boxes(const struct oj_point_query *q,
                               struct oj_point_worker *w, int64_t first_row,
                               int64_t n, struct oj_error *err)
{
    const struct oj_ring_cells *cells = q->cells;
    const struct oj_ring_set *set = q->set;
    const double *x = q->input->x + first_row, *y = q->input->y + first_row;
    int64_t n_survivors;
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
        const struct oj_point_survivor *s = &w->survivor[i];
        __builtin_prefetch(&set->layer[s->layer].first[s->cell]);
    }
    for (int64_t i = 0; i < n_survivors; i++)
    {
        const struct oj_point_survivor *s = &w->survivor[i];
        const struct oj_ring_layer *layer = &set->layer[s->layer];
        __builtin_prefetch(&layer->entry[layer->first[s->cell]]);
    }
    for (int64_t i = 0; i < n_survivors; i++)
    {
        const struct oj_point_survivor *s = &w->survivor[i];
        const struct oj_ring_layer *layer = &set->layer[s->layer];
        if (layer->child != NULL && layer->child[s->cell] >= 0)
            OJ_TRY(descend(cells, w, layer->child[s->cell], x[s->point],
                           y[s->point], s->point, err));
        else
            OJ_TRY(add_candidates(cells, w, layer, s->cell, s->probe, s->point,
                                  err));
        if (w->n_candidates >= CANDIDATES)
            OJ_TRY(flush(q, w, first_row, err));
    }
    return OJ_OK;
}

oj_status oj_point_block_join(const struct oj_point_query *q,
                              struct oj_point_worker *w, int64_t first_row,
                              int64_t n, struct oj_error *err)
{
    memset(w->n_pairs_of, 0, sizeof w->n_pairs_of);
    w->current_point = -1;
    w->n_candidates = w->n_states = 0;
    OJ_TRY(q->known != NULL ? join_known(q, w, first_row, n, err)
                            : join_by_boxes(q, w, first_row, n, err));
    OJ_TRY(flush(q, w, first_row, err));
    return finish_point(q, w, err);
}

void oj_point_worker_free(struct oj_point_worker *w)
{
    oj_free(w->candidate);
    oj_free(w->state);
    oj_free(w->feature);
    memset(w, 0, sizeof *w);
}
