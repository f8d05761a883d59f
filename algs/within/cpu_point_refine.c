#include "../../flatten/base/oj_array.h"
#include "../base/cpu_vector.h"
#include "cpu_point_block.h"

#include <stdlib.h>

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

oj_status oj_point_refine(const struct oj_point_query *q,
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
