#include "cpu_point_block.h"

#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "../base/cpu_vector.h"

#include <stdlib.h>
#include <string.h>

/* Candidates that are refined together at the least, but at a block's end. */
#define CANDIDATES 2048

/* --- refine: from candidates to pairs --------------------------------------
 */

/* The edges of a ring of at most eight, all at once: OJ_INSIDE, OJ_OUTSIDE, or
 * OJ_POINT_UNKNOWN where p is so near an edge that the sign of its side is not
 * sure. Nine vertices are read, whatever n; those past the ring count for
 * nothing. */
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
    return n_unsure > 0.0 ? OJ_POINT_UNKNOWN : (int)n_crossings & 1;
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

/* By feature, then part. */
static int compare_states(const struct oj_point_state *a,
                          const struct oj_point_state *b)
{
    if (a->feature != b->feature)
        return a->feature < b->feature ? -1 : 1;
    return (a->part > b->part) - (a->part < b->part);
}

static int by_feature(const void *left, const void *right)
{
    return compare_states(left, right);
}

/* Rings of one part side by side; mostly there are one or two. */
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
        for (; j > 0 && compare_states(&state[j - 1], &moved) > 0; j--)
            state[j] = state[j - 1];
        state[j] = moved;
    }
}

/* Whether the point of a candidate, which is on rings of a feature only, is in
 * its interior all the same: its parts may cover all around the point, and a
 * ring may be but a line. */
static oj_status is_in_interior(const struct oj_point_query *q,
                                struct oj_point_worker *w, int64_t row,
                                int32_t feature, int *is, struct oj_error *err)
{
    struct oj_shape shape = oj_shape_of(q->cells->flat, feature);
    enum oj_matrix_place place;
    OJ_TRY(oj_shape_place(&shape, q->input->x[row], q->input->y[row],
                          &w->relate, &place, err));
    *is = place == OJ_PLACE_INTERIOR;
    return OJ_OK;
}

static oj_status is_solid(const struct oj_point_query *q,
                          struct oj_point_worker *w, int32_t feature,
                          int *is_solid, struct oj_error *err)
{
    uint8_t known =
        atomic_load_explicit(&q->solidity[feature], memory_order_relaxed);
    if (known == OJ_SOLIDITY_NOT_KNOWN)
    {
        struct oj_shape shape = oj_shape_of(q->cells->flat, feature);
        OJ_TRY(oj_figure_make(&w->relate.join_side, &shape, 0, &w->relate.node,
                              err));
        known =
            oj_figure_is_solid(&w->relate.join_side) ? OJ_SOLID : OJ_NOT_SOLID;
        atomic_store_explicit(&q->solidity[feature], known,
                              memory_order_relaxed);
    }
    *is_solid = known == OJ_SOLID;
    return OJ_OK;
}

/* Adds the pair if it is one, of a point that is on rings of n_on parts of the
 * feature and inside of none. */
static oj_status add_on_boundary(const struct oj_point_query *q,
                                 struct oj_point_worker *w, int64_t first_row,
                                 int32_t point, int32_t feature, int n_on,
                                 struct oj_error *err)
{
    int location = OJ_ON_BOUNDARY;
    if (q->solidity != NULL)
    {
        int solid = 1, is_interior = 0;
        if (n_on == 1)
            OJ_TRY(is_solid(q, w, feature, &solid, err));
        if (n_on > 1 || !solid)
            OJ_TRY(is_in_interior(q, w, first_row + point, feature,
                                  &is_interior, err));
        location = is_interior ? OJ_INSIDE : OJ_ON_BOUNDARY;
    }
    if (q->accepted >> location & 1)
        return add_pair(w, point, feature, err);
    return OJ_OK;
}

/* Puts together where a point is in the rings of one feature, state[0] and
 * those after it, by part: inside of an odd number of the rings of a part is
 * inside. Returns how many rings these are. What known cells say is of all
 * rings of a feature together, whose parts do not overlap then. */
static int64_t join_states(const struct oj_point_state *state, int64_t n,
                           int *is_inside, int *n_on)
{
    int64_t i = 0;
    *is_inside = *n_on = 0;
    while (i < n && state[i].feature == state[0].feature)
    {
        int32_t part = state[i].part;
        int odd = 0, on_boundary = 0;
        for (; i < n && state[i].feature == state[0].feature &&
               state[i].part == part;
             i++)
        {
            odd ^= state[i].location & OJ_INSIDE;
            on_boundary |= state[i].location & OJ_ON_BOUNDARY;
        }
        *n_on += on_boundary != 0;
        *is_inside |= odd && !on_boundary;
    }
    return i;
}

/* A point that may be in several rings. */
static oj_status add_pairs(const struct oj_point_query *q,
                           struct oj_point_worker *w, int64_t first_row,
                           int64_t n,
                           const struct oj_point_candidate *candidate,
                           struct oj_error *err)
{
    struct oj_point_state *state;
    OJ_TRY(oj_reserve(&w->state, 0, n, &w->cap_states, sizeof *w->state, err));
    state = w->state;
    for (int64_t i = 0; i < n; i++)
    {
        const struct oj_located_ring *ring = &q->cells->ring[candidate[i].ring];
        state[i].feature = ring->feature;
        state[i].part = q->known != NULL ? 0 : ring->part;
        state[i].location = candidate[i].location;
    }
    sort_states(n, state);
    for (int64_t i = 0; i < n;)
    {
        int32_t feature = state[i].feature, point = candidate->point;
        int is_inside, n_on;
        i += join_states(state + i, n - i, &is_inside, &n_on);
        if (!is_inside && n_on > 0)
            OJ_TRY(add_on_boundary(q, w, first_row, point, feature, n_on, err));
        else if (q->accepted >> is_inside & 1)
            OJ_TRY(add_pair(w, point, feature, err));
    }
    return OJ_OK;
}

/* The candidates that may count, whatever their geometries say. */
static int64_t take_counting(const struct oj_point_query *q, int64_t first_row,
                             int64_t n, struct oj_point_candidate *candidate)
{
    int64_t n_left = 0;
    for (int64_t i = 0; i < n; i++)
    {
        const struct oj_point_candidate c = candidate[i];
        candidate[n_left] = c;
        n_left += oj_pair_may_count(q->filter, first_row + c.point,
                                    q->cells->ring[c.ring].feature) != 0;
    }
    return n_left;
}

/* Finds the cells of the candidates in the grids of their rings, which are
 * built here if need be. */
static oj_status find_cells(struct oj_ring_cells *cells, int64_t n,
                            struct oj_point_candidate *candidate,
                            const double *x, const double *y,
                            struct oj_error *err)
{
    const double *rx = cells->flat->x, *ry = cells->flat->y;
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_point_candidate *c = &candidate[i];
        const struct oj_located_ring *ring = &cells->ring[c->ring];
        const struct oj_edge_grid *grid = NULL;
        c->grid = NULL;
        if (c->location != OJ_POINT_UNKNOWN)
            continue;
        if (ring->grid >= 0)
            OJ_TRY(oj_ring_cells_grid(cells, ring, &grid, err));
        c->grid = grid;
        if (grid != NULL)
        {
            c->cell =
                (int32_t)oj_edge_grid_cell(grid, x[c->point], y[c->point]);
            oj_edge_grid_fetch(grid, c->cell);
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
    return OJ_OK;
}

/* Leaves out the candidates whose cells have no edges and are outside: how
 * many are left.  w->open: those among them whose edges have to be looked at.
 */
static OJ_CLONES int64_t take_known_cells(struct oj_point_worker *w, int64_t n)
{
    struct oj_point_candidate *candidate = w->candidate;
    int64_t n_left = 0, n_open = 0;
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_point_candidate c = candidate[i];
        if (c.grid != NULL)
            c.location = oj_edge_grid_known(c.grid, c.cell);
        candidate[n_left] = c;
        w->open[n_open].candidate = (int32_t)n_left;
        n_left += c.location != OJ_OUTSIDE;
        n_open += c.location == OJ_POINT_UNKNOWN;
    }
    for (int64_t i = 0; i < n_open; i++)
    {
        struct oj_point_open *open = &w->open[i];
        const struct oj_point_candidate *c = &candidate[open->candidate];
        if (c->grid == NULL)
            continue;
        open->rank = oj_edge_grid_rank(c->grid, (uint32_t)c->cell);
        __builtin_prefetch(c->grid->first_run + open->rank);
    }
    w->n_open = n_open;
    return n_left;
}

/* Asks the memory for the edges that candidates are in the cells of. */
OJ_INLINE void fetch_edges(const struct oj_point_worker *w)
{
    for (int64_t i = 0; i < w->n_open; i++)
    {
        const struct oj_point_open *open = &w->open[i];
        const struct oj_point_candidate *c = &w->candidate[open->candidate];
        if (c->grid != NULL)
            oj_edge_grid_fetch_runs(c->grid, open->rank);
    }
    for (int64_t i = 0; i < w->n_open; i++)
    {
        const struct oj_point_open *open = &w->open[i];
        const struct oj_point_candidate *c = &w->candidate[open->candidate];
        if (c->grid != NULL)
            oj_edge_grid_fetch_edges(c->grid, open->rank);
    }
}

static enum oj_location locate(const struct oj_ring_cells *cells,
                               const struct oj_point_open *open,
                               const struct oj_point_candidate *c, double px,
                               double py)
{
    const struct oj_located_ring *ring = &cells->ring[c->ring];
    const double *x = cells->flat->x + ring->first_vertex;
    const double *y = cells->flat->y + ring->first_vertex;
    if (c->grid != NULL)
        return oj_edge_grid_test(c->grid, c->cell, open->rank, px, py);
    if (ring->n_vertices <= OJ_LANES + 1 &&
        ring->first_vertex + OJ_LANES < cells->flat->n_vertices)
    {
        int few = locate_in_few(px, py, x, y, ring->n_vertices);
        if (few != OJ_POINT_UNKNOWN)
            return (enum oj_location)few;
    }
    return oj_ring_walk(cells->kernel, px, py, x, y, ring->n_vertices);
}

/* Appends the pairs that the candidates of whole points are, and forgets the
 * candidates. */
static oj_status refine(const struct oj_point_query *q,
                        struct oj_point_worker *w, int64_t first_row,
                        struct oj_error *err)
{
    struct oj_ring_cells *cells = q->cells;
    const double *x = q->input->x + first_row, *y = q->input->y + first_row;
    struct oj_point_candidate *c = w->candidate;
    int64_t n = w->n_candidates, end;
    w->n_refined += n;
    w->n_candidates = 0;
    OJ_TRY(oj_reserve(&w->open, 0, n, &w->cap_open, sizeof *w->open, err));
    if (q->filter->is_needed)
        n = take_counting(q, first_row, n, c);
    OJ_TRY(find_cells(cells, n, c, x, y, err));
    n = take_known_cells(w, n);
    fetch_edges(w);
    for (int64_t i = 0; i < w->n_open; i++)
    {
        struct oj_point_candidate *at = &c[w->open[i].candidate];
        at->location =
            (int32_t)locate(cells, &w->open[i], at, x[at->point], y[at->point]);
    }
    /* one more is written than counts */
    OJ_TRY(oj_reserve(&w->feature, w->n_pairs, w->n_pairs + n + 1,
                      &w->cap_pairs, sizeof *w->feature, err));
    for (int64_t i = 0; i < n; i = end)
    {
        for (end = i + 1; end < n && c[end].point == c[i].point; end++)
            ;
        if (end - i > 1)
            OJ_TRY(add_pairs(q, w, first_row, end - i, &c[i], err));
        else if (c[i].location == OJ_ON_BOUNDARY)
            OJ_TRY(add_on_boundary(q, w, first_row, c[i].point,
                                   cells->ring[c[i].ring].feature, 1, err));
        else
        {
            /* whether it counts cannot be foretold */
            uint32_t is_pair = q->accepted >> c[i].location & 1;
            w->feature[w->n_pairs] = cells->ring[c[i].ring].feature;
            w->n_pairs += is_pair;
            w->n_pairs_of[c[i].point] += is_pair;
        }
    }
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

OJ_INLINE oj_status add_candidates(const struct oj_ring_cells *cells,
                                   struct oj_point_worker *w,
                                   const struct oj_ring_layer *layer,
                                   uint32_t cell, uint32_t probe, int32_t point,
                                   struct oj_error *err)
{
    const struct oj_ring_entry *entry = layer->entry + layer->first[cell];
    const struct oj_ring_entry *end = layer->entry + layer->first[cell + 1];
    struct oj_point_candidate *out;
    /* one more is written than counts */
    if (w->cap_candidates - w->n_candidates <= end - entry)
        OJ_TRY(oj_reserve(&w->candidate, w->n_candidates,
                          w->n_candidates + (end - entry) + 2 * CANDIDATES,
                          &w->cap_candidates, sizeof *w->candidate, err));
    out = w->candidate + w->n_candidates;
    for (; entry < end; entry++)
    {
        out->point = point;
        out->ring = entry->ring;
        out->location = OJ_POINT_UNKNOWN;
        out += oj_ring_entry_holds(entry->steps, probe);
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
        out->location = ring >= 0 ? OJ_POINT_UNKNOWN : OJ_INSIDE;
        __builtin_prefetch(&q->cells->ring[out->ring]);
    }
    return OJ_OK;
}

/* --- known spots ---------------------------------------------------------- */

/* Of the points of a block, those in spots of which not all is known become
 * survivors: how many.  The others' answers are left in w->answer. */
static OJ_CLONES int64_t take_unknown(const struct oj_ring_layer *layer,
                                      struct oj_point_worker *w, int64_t n)
{
    const uint16_t *answer = layer->answer;
    int64_t n_left = 0;
    for (int64_t i = 0; i < n; i++)
        w->spot[i] =
            w->cell[0][i] * OJ_SPOTS + (uint32_t)spot_of(w->probe[0][i]);
    for (int64_t i = 0; i < n; i++)
    {
        w->answer[i] = __atomic_load_n(&answer[w->spot[i]], __ATOMIC_RELAXED);
        w->left[n_left] = (int32_t)i;
        n_left += w->answer[i] < OJ_SPOT_NOTHING;
    }
    for (int64_t k = 0; k < n_left; k++)
    {
        struct oj_point_survivor *s = &w->survivor[k];
        s->point = w->left[k];
        s->layer = 0;
        s->cell = w->cell[0][s->point];
        s->probe = w->probe[0][s->point];
    }
    return n_left;
}

/* Looks at a spot that a point is in. */
static void look_at_spot(const struct oj_point_query *q,
                         const struct oj_point_survivor *s)
{
    const struct oj_ring_layer *layer = &q->set->layer[0];
    int spot = spot_of(s->probe);
    uint16_t *answer = &layer->answer[(int64_t)s->cell * OJ_SPOTS + spot];
    if (__atomic_load_n(answer, __ATOMIC_RELAXED) == OJ_SPOT_UNKNOWN)
        __atomic_store_n(answer,
                         oj_ring_cells_answer(q->cells, layer, s->cell, spot),
                         __ATOMIC_RELAXED);
}

/* Pairs of points first .. end - 1 that are in known spots. */
static inline int32_t *put_known(const struct oj_point_worker *w, int64_t first,
                                 int64_t end, int32_t *feature)
{
    for (int64_t i = first; i < end; i++)
    {
        *feature = w->answer[i] - OJ_SPOT_FEATURE;
        feature += w->answer[i] >= OJ_SPOT_FEATURE;
    }
    return feature;
}

/* Brings the pairs of points in known spots among those of the n_left others,
 * which begin at first_pair. */
static oj_status merge_known(struct oj_point_worker *w, int64_t first_pair,
                             int64_t n_left, int64_t n, struct oj_error *err)
{
    int64_t n_late = w->n_pairs - first_pair, n_known = 0, next = 0;
    const int32_t *late;
    int32_t *feature;
    for (int64_t i = 0; i < n; i++)
        n_known += w->answer[i] >= OJ_SPOT_FEATURE;
    /* the late ones behind everything; one more is written than counts */
    OJ_TRY(oj_reserve(&w->feature, w->n_pairs,
                      w->n_pairs + n_known + 1 + n_late, &w->cap_pairs,
                      sizeof *w->feature, err));
    feature = w->feature + first_pair;
    late = feature + n_late + n_known + 1;
    memmove(feature + n_late + n_known + 1, feature,
            (size_t)n_late * sizeof *feature);
    for (int64_t k = 0; k < n_left; k++)
    {
        int64_t point = w->left[k];
        feature = put_known(w, next, point, feature);
        for (uint32_t i = 0; i < w->n_pairs_of[point]; i++)
            *feature++ = *late++;
        next = point + 1;
    }
    put_known(w, next, n, feature);
    for (int64_t i = 0; i < n; i++)
        w->n_pairs_of[i] += w->answer[i] >= OJ_SPOT_FEATURE;
    w->n_pairs += n_known;
    return OJ_OK;
}

/* --- blocks --- */

/* Refines what has come together, and stops where that is asked for. */
static oj_status flush(const struct oj_point_query *q,
                       struct oj_point_worker *w, int64_t first_row,
                       struct oj_error *err)
{
    double start = q->timings ? oj_clock_seconds() : 0.0;
    OJ_TRY(oj_check_cancel(q->cancel, err));
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

/* Candidates of the points of n ranges, by many entries at a time. */
static oj_status add_held(const struct oj_ring_cells *cells,
                          struct oj_point_worker *w,
                          const struct oj_ring_layer *layer, int64_t n,
                          struct oj_error *err)
{
    int64_t n_held = cells->kernel->holding(layer->entry, w->range, n,
                                            w->held_point, w->held_ring);
    struct oj_point_candidate *candidate;
    OJ_TRY(oj_reserve(&w->candidate, w->n_candidates, w->n_candidates + n_held,
                      &w->cap_candidates, sizeof *w->candidate, err));
    candidate = w->candidate + w->n_candidates;
    for (int64_t i = 0; i < n_held; i++)
    {
        candidate[i].point = w->held_point[i];
        candidate[i].ring = w->held_ring[i];
        candidate[i].location = OJ_POINT_UNKNOWN;
        __builtin_prefetch(&cells->ring[w->held_ring[i]]);
    }
    w->n_candidates += n_held;
    return OJ_OK;
}

/* The ranges of survivors from first on, up to one that has a set in place of
 * its entries or whose entries find no room: how many. */
static int64_t take_ranges(const struct oj_ring_layer *borrowed,
                           struct oj_point_worker *w, int64_t first, int64_t n)
{
    const struct oj_ring_layer layer_copy = *borrowed, *layer = &layer_copy;
    int64_t n_entries = 0, n_ranges = 0;
    for (; first < n; first++, n_ranges++)
    {
        const struct oj_point_survivor *s = &w->survivor[first];
        struct oj_ring_range *range = &w->range[n_ranges];
        range->point = s->point;
        range->probe = s->probe;
        range->first = layer->first[s->cell];
        range->n = layer->first[s->cell + 1] - range->first;
        n_entries += range->n;
        __builtin_prefetch(&layer->entry[range->first]);
        if (n_entries > OJ_HELD ||
            (layer->child != NULL && layer->child[s->cell] >= 0))
            break;
    }
    return n_ranges;
}

/* Candidates of one survivor. */
static oj_status add_survivor(const struct oj_point_query *q,
                              struct oj_point_worker *w,
                              const struct oj_point_survivor *s,
                              int64_t first_row, struct oj_error *err)
{
    const struct oj_ring_layer *layer = &q->set->layer[s->layer];
    if (layer->child == NULL || layer->child[s->cell] < 0)
        return add_candidates(q->cells, w, layer, s->cell, s->probe, s->point,
                              err);
    return descend(q->cells, w, layer->child[s->cell],
                   q->input->x[first_row + s->point],
                   q->input->y[first_row + s->point], s->point, err);
}

/* Candidates of the survivors, refined but for the last ones. */
static oj_status join_survivors(const struct oj_point_query *q,
                                struct oj_point_worker *w, int64_t n,
                                int64_t first_row, int has_answers,
                                struct oj_error *err)
{
    const struct oj_point_survivor *survivor = w->survivor;
    const struct oj_ring_set *set = q->set;
    int is_wide = set->n_layers == 1 && q->cells->kernel->holding != NULL;
    for (int64_t i = 0; i < n; i++)
        __builtin_prefetch(
            &set->layer[survivor[i].layer].first[survivor[i].cell]);
    for (int64_t i = 0; !is_wide && i < n; i++)
    {
        const struct oj_ring_layer *layer = &set->layer[survivor[i].layer];
        __builtin_prefetch(&layer->entry[layer->first[survivor[i].cell]]);
    }
    for (int64_t i = 0; i < n; i++)
    {
        int64_t n_ranges = is_wide ? take_ranges(&set->layer[0], w, i, n) : 0;
        if (n_ranges > 0)
            OJ_TRY(add_held(q->cells, w, &set->layer[0], n_ranges, err));
        i += n_ranges;
        if (i == n)
            break;
        if (w->n_candidates >= CANDIDATES &&
            survivor[i].point != survivor[i - 1].point)
            OJ_TRY(flush(q, w, first_row, err));
        OJ_TRY(add_survivor(q, w, &survivor[i], first_row, err));
    }
    for (int64_t i = 0; has_answers && i < n; i++)
        look_at_spot(q, &survivor[i]);
    return OJ_OK;
}

/* Candidates of the rows by the rings' boxes. */
static oj_status join_by_boxes(const struct oj_point_query *q,
                               struct oj_point_worker *w, int64_t first_row,
                               int64_t n, struct oj_error *err)
{
    const struct oj_ring_set *set = q->set;
    const double *x = q->input->x + first_row, *y = q->input->y + first_row;
    int64_t n_survivors, first_pair = w->n_pairs;
    int has_answers = set->layer[0].answer != NULL && !q->filter->is_needed &&
                      (q->accepted >> OJ_INSIDE & 1);
    for (int l = 0; l < set->n_layers; l++)
    {
        const struct oj_ring_layer *layer = &set->layer[l];
        probe_points(&q->cells->axes, layer, n, x, y, w->cell[l], w->probe[l]);
        for (int64_t i = 0; !has_answers && i < n; i++)
            __builtin_prefetch(&layer->mask[w->cell[l][i]]);
    }
    if (has_answers)
        n_survivors = take_unknown(&set->layer[0], w, n);
    else if (set->n_layers == 1)
        n_survivors = take_survivors(set, w, n, 1);
    else
        n_survivors = take_survivors(set, w, n, set->n_layers);
    OJ_TRY(join_survivors(q, w, n_survivors, first_row, has_answers, err));
    OJ_TRY(flush(q, w, first_row, err));
    return has_answers ? merge_known(w, first_pair, n_survivors, n, err)
                       : OJ_OK;
}

oj_status oj_point_block_join(const struct oj_point_query *q,
                              struct oj_point_worker *w, int64_t first_row,
                              int64_t n, struct oj_error *err)
{
    memset(w->n_pairs_of, 0, sizeof w->n_pairs_of);
    w->n_candidates = 0;
    if (q->known == NULL)
        return join_by_boxes(q, w, first_row, n, err);
    OJ_TRY(join_known(q, w, first_row, n, err));
    return flush(q, w, first_row, err);
}

void oj_point_worker_free(struct oj_point_worker *w)
{
    oj_free(w->candidate);
    oj_free(w->open);
    oj_free(w->state);
    oj_free(w->feature);
    oj_row_order_free(&w->order);
    oj_relate_scratch_free(&w->relate);
    memset(w, 0, sizeof *w);
}
