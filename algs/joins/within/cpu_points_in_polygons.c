/* Engine that joins points with polygons, or with the envelopes of features.
 *
 * Points pass through the stages in blocks. Each stage prefetches the memory
 * that the next one reads for all points of the block, so points may be in any
 * order.
 *
 *      points -> cells and subcells -> survivors -> entries -> candidates
 *             -> grids, runs, edges -> locations in rings -> pairs
 *
 * A survivor is a point near some ring, an entry the box of a ring in a cell
 * (cpu_ring_box_index.h), and a candidate a point with a ring whose box
 * contains it. If one pair of a row is enough, a point with very many entries
 * leaves the block: its candidates are decided part by part until the pair is
 * found. */
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_clock.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../foundations/base/cpu_lane_loops.h"
#include "../../foundations/base/oj_radix_sort.h"
#include "../../foundations/relation/oj_index.h"
#include "../../foundations/relation/oj_is_points_in_polygons.h"
#include "../../geometry/relate/relate.h"
#include "../../pairs/selection/oj_pair_filter.h"
#include "../../pairs/selection/oj_tie_rank_sort.h"
#include "cpu_containing.h"
#include "cpu_ring_box_index.h"
#include "envelope_rings.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_PER_TASK 8192

/* Room for one pair per row is allocated at first, for at most this many rows.
 */
#define MOST_FORESEEN (1 << 20)

/* Maximum points of a block. */
#define POINT_BLOCK 256

/* Maximum number of entries (boxes of rings) that are compared with points at a
 * time. */
#define HELD 4096

/* Parameters of a batch. It owns nothing. */
struct point_query
{
    struct oj_ring_cells *cells;   /* index of rings; grids of rings may be
                                      built during the search */
    const struct oj_ring_set *set; /* the set of layers in `cells` that covers
                                      the whole plane; the other sets subdivide
                                      a cell */
    const struct oj_flat *input;   /* a layer of single points */
    const struct oj_pair_filter *filter;
    unsigned accepted; /* point locations that make a pair, bits 1 << enum
                          oj_location */

    /* [features] enum solidity, found when a point is on a ring of the feature.
     * NULL if the join does not distinguish boundary and interior. */
    _Atomic uint8_t *solidity;
    const int *cancel; /* may be NULL */
    int timings;
    int enough;              /* enum oj_enough_pairs */
    const int32_t *tie_rank; /* used if the first pair of a row is enough */
};

/* Result of the test whether all polygons of a feature enclose an area. If not,
 * points on its rings may be in the interior, as on lines. */
enum solidity
{
    SOLIDITY_NOT_KNOWN,
    SOLID,
    NOT_SOLID
};

#define UNKNOWN (-1)

/* A point of the block and a ring that may contain it. */
struct point_candidate
{
    int32_t point, ring;
    int32_t cell;                    /* number of the point's cell in `grid` */
    int32_t location;                /* enum oj_location in the ring, or
                                        UNKNOWN */
    const struct oj_edge_grid *grid; /* grid of the ring's edges, or NULL */
};

/* A candidate that only the edges of the ring can decide. candidate: its index
 * in point_worker.candidate. rank: if the ring has a grid, the number of the
 * point's cell among the grid's cells with edges (oj_edge_grid_rank()). */
struct point_open
{
    uint32_t rank;
    int32_t candidate;
};

/* The location of a point in a ring. */
struct point_state
{
    uint64_t key; /* feature << 32 | part */
    int32_t location;
};

/* A point near some ring: boxes of rings intersect the subcell that it is in.
 */
struct point_survivor
{
    int32_t point, layer;
    uint32_t cell, probe;
};

/* A cell that has entries and contains a point, and the point's value to
 * compare with the entries (oj_ring_probe_of_steps()). */
struct point_leaf
{
    const struct oj_ring_layer *layer;
    uint32_t cell, probe;
};

/* Memory of a thread. Owner; zeroed memory is a valid empty value. */
struct point_worker
{
    uint32_t cell[OJ_RING_LAYERS][POINT_BLOCK],
        probe[OJ_RING_LAYERS][POINT_BLOCK];
    struct point_survivor survivor[OJ_RING_LAYERS * POINT_BLOCK];
    uint32_t n_pairs_of[POINT_BLOCK];
    struct oj_ring_range range[POINT_BLOCK];
    int32_t held_point[HELD + 8], held_ring[HELD + 8];
    int64_t n_candidates, cap_candidates;
    struct point_candidate *candidate;
    int64_t n_open, cap_open;
    struct point_open *open;
    int64_t cap_states;
    struct point_state *state; /* scratch for one point */
    int64_t n_leaves, cap_leaves;
    struct point_leaf *leaf; /* scratch for one point */
    int64_t n_last, cap_last;
    int32_t *last_ring; /* rings of a crowded point that are decided last */
    struct oj_relate_scratch relate;
    int64_t n_pairs, cap_pairs;
    int64_t n_pairs_counted; /* part of n_pairs that is already counted in the
                                pair budget of the batch (struct
                                oj_pair_budget) */
    int32_t *feature;        /* [n_pairs] join features, by task and then by
                                row */
    struct oj_tie_rank_sorter order;
    int64_t n_refined;
    double filter_s, refine_s;
};

/* The candidates are decided when at least this many are collected. */
#define CANDIDATES 2048

/* --- refine: from candidates to pairs ------------------------------------- */

/* Returns OJ_INSIDE or OJ_OUTSIDE for the location of p in a ring of at most
 * eight edges, or UNKNOWN if p is so close to an edge that rounding matters.
 * Tests all edges at once. Always reads nine vertices; those beyond the ring
 * are ignored. */
static OJ_CLONES int locate_in_small_ring(double px, double py, const double *x,
                                          const double *y, int64_t n)
{
    double crossings[OJ_LANES], unsure[OJ_LANES];
    double n_crossings = 0.0, n_unsure = 0.0;
    OJ_EIGHT
    {
        double ax = x[c], ay = y[c], bx = x[c + 1], by = y[c + 1];
        /* The operations are those of oj_orientation(), so that signs are
         * equal. */
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

static oj_status add_pair_of_point(struct point_worker *w, int32_t point,
                                   int32_t feature, struct oj_error *err)
{
    if (w->n_pairs == w->cap_pairs)
        OJ_ROOM(w->feature, w->n_pairs, w->n_pairs + 4096, w->cap_pairs, err);
    w->feature[w->n_pairs++] = feature;
    w->n_pairs_of[point]++;
    return OJ_OK;
}

static int compare_states_by_key(const void *left, const void *right)
{
    const struct point_state *a = left, *b = right;
    return (a->key > b->key) - (a->key < b->key);
}

/* Uses insertion sort for up to 32 rings; there are usually one or two. */
static void sort_states_by_feature_and_part(int64_t n,
                                            struct point_state *state)
{
    if (n > 32)
    {
        qsort(state, (size_t)n, sizeof *state, compare_states_by_key);
        return;
    }
    for (int64_t i = 1; i < n; i++)
    {
        struct point_state moved = state[i];
        int64_t j = i;
        for (; j > 0 && state[j - 1].key > moved.key; j--)
            state[j] = state[j - 1];
        state[j] = moved;
    }
}

/* Sets *is to 1 if a point on rings of the feature is in its interior. That
 * happens if parts cover the whole neighbourhood of the point, or if a polygon
 * has no area. Precondition: the point is not inside of any part. */
static oj_status is_boundary_point_in_interior(const struct point_query *q,
                                               struct point_worker *w,
                                               int64_t row, int32_t feature,
                                               int *is, struct oj_error *err)
{
    struct oj_shape shape = oj_shape_of(q->cells->flat, feature);
    enum oj_matrix_place place;
    OJ_TRY(oj_relate_locate_point(&shape, q->input->x[row], q->input->y[row],
                                  &w->relate, &place, err));
    *is = place == OJ_PLACE_INTERIOR;
    return OJ_OK;
}

static oj_status does_feature_enclose_areas_cached(const struct point_query *q,
                                                   struct point_worker *w,
                                                   int32_t feature,
                                                   int *is_solid,
                                                   struct oj_error *err)
{
    uint8_t known =
        atomic_load_explicit(&q->solidity[feature], memory_order_relaxed);
    if (known == SOLIDITY_NOT_KNOWN)
    {
        struct oj_shape shape = oj_shape_of(q->cells->flat, feature);
        OJ_TRY(oj_relate_figure_make(&w->relate.join_side, &shape, 0,
                                     &w->relate.node, err));
        known = oj_relate_figure_encloses_areas(&w->relate.join_side)
                    ? SOLID
                    : NOT_SOLID;
        atomic_store_explicit(&q->solidity[feature], known,
                              memory_order_relaxed);
    }
    *is_solid = known == SOLID;
    return OJ_OK;
}

/* Adds the pair of a point and a feature if the point's location is accepted.
 * Precondition: the point is on rings of n_on parts of the feature and inside
 * of none. */
static oj_status add_pair_on_boundary(const struct point_query *q,
                                      struct point_worker *w, int64_t first_row,
                                      int32_t point, int32_t feature, int n_on,
                                      struct oj_error *err)
{
    int location = OJ_ON_BOUNDARY;
    if (q->solidity != NULL)
    {
        int solid = 1, is_interior = 0;
        if (n_on == 1)
            OJ_TRY(
                does_feature_enclose_areas_cached(q, w, feature, &solid, err));
        if (n_on > 1 || !solid)
            OJ_TRY(is_boundary_point_in_interior(q, w, first_row + point,
                                                 feature, &is_interior, err));
        location = is_interior ? OJ_INSIDE : OJ_ON_BOUNDARY;
    }
    if (q->accepted >> location & 1)
        return add_pair_of_point(w, point, feature, err);
    return OJ_OK;
}

/* Combines the locations of a point in the rings of one feature, which start at
 * state[0]. The point is inside a part if it is inside an odd number of the
 * part's rings. Sets *is_inside to 1 if it is inside any part, and *n_on to the
 * number of parts on whose rings it is. Returns the number of the feature's
 * rings in state. */
static int64_t combine_ring_locations(const struct point_state *state,
                                      int64_t n, int *is_inside, int *n_on)
{
    int64_t i = 0;
    *is_inside = *n_on = 0;
    while (i < n && state[i].key >> 32 == state[0].key >> 32)
    {
        uint64_t key = state[i].key;
        int odd = 0, on_boundary = 0;
        for (; i < n && state[i].key == key; i++)
        {
            odd ^= state[i].location & OJ_INSIDE;
            on_boundary |= state[i].location & OJ_ON_BOUNDARY;
        }
        *n_on += on_boundary != 0;
        *is_inside |= odd && !on_boundary;
    }
    return i;
}

/* Adds the pairs of a point that has n candidate rings, whose locations are
 * decided. */
static oj_status add_pairs_of_located_point(
    const struct point_query *q, struct point_worker *w, int64_t first_row,
    int64_t n, const struct point_candidate *candidate, struct oj_error *err)
{
    struct point_state *state;
    int64_t n_in = 0; /* number of rings that the point is inside of or on */
    OJ_ROOM(w->state, 0, n, w->cap_states, err);
    state = w->state;
    for (int64_t i = 0; i < n; i++)
    {
        const struct oj_located_ring *ring = &q->cells->ring[candidate[i].ring];
        if (candidate[i].location == OJ_OUTSIDE)
            continue;
        state[n_in].key = (uint64_t)ring->feature << 32 | (uint32_t)ring->part;
        state[n_in++].location = candidate[i].location;
    }
    sort_states_by_feature_and_part(n_in, state);
    for (int64_t i = 0; i < n_in;)
    {
        int32_t feature = (int32_t)(state[i].key >> 32);
        int32_t point = candidate->point;
        int is_inside, n_on;
        i += combine_ring_locations(state + i, n_in - i, &is_inside, &n_on);
        if (!is_inside && n_on > 0)
            OJ_TRY(add_pair_on_boundary(q, w, first_row, point, feature, n_on,
                                        err));
        else if (q->accepted >> is_inside & 1)
            OJ_TRY(add_pair_of_point(w, point, feature, err));
    }
    return OJ_OK;
}

/* Removes candidates that the pair filter rejects; returns how many remain. */
static int64_t drop_pairs_excluded_by_filter(const struct point_query *q,
                                             int64_t first_row, int64_t n,
                                             struct point_candidate *candidate)
{
    int64_t n_left = 0;
    for (int64_t i = 0; i < n; i++)
    {
        const struct point_candidate c = candidate[i];
        candidate[n_left] = c;
        n_left += oj_pair_filter_accepts(q->filter, first_row + c.point,
                                         q->cells->ring[c.ring].feature) != 0;
    }
    return n_left;
}

/* Finds the point's cell in the ring's grid, for each candidate whose ring has
 * a grid. May build grids. */
static oj_status find_ring_grid_cells_of_candidates(
    struct oj_ring_cells *cells, int64_t n, struct point_candidate *candidate,
    const double *x, const double *y, struct oj_error *err)
{
    const double *rx = cells->flat->x, *ry = cells->flat->y;
    for (int64_t i = 0; i < n; i++)
    {
        struct point_candidate *c = &candidate[i];
        const struct oj_located_ring *ring = &cells->ring[c->ring];
        const struct oj_edge_grid *grid = NULL;
        c->grid = NULL;
        if (c->location != UNKNOWN)
            continue;
        if (ring->grid >= 0)
            OJ_TRY(oj_ring_cells_grid_of_ring(cells, ring, &grid, err));
        c->grid = grid;
        if (grid != NULL)
        {
            c->cell =
                (int32_t)oj_edge_grid_cell(grid, x[c->point], y[c->point]);
            oj_edge_grid_prefetch(grid, c->cell);
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

/* Removes candidates that the ring's grid shows to be outside; returns how many
 * remain. Lists those that only edges can decide in w->open. */
static OJ_CLONES int64_t drop_outside_candidates(struct point_worker *w,
                                                 int64_t n)
{
    struct point_candidate *candidate = w->candidate;
    int64_t n_left = 0, n_open = 0;
    for (int64_t i = 0; i < n; i++)
    {
        struct point_candidate c = candidate[i];
        if (c.grid != NULL)
            c.location = oj_edge_grid_cell_location(c.grid, c.cell);
        candidate[n_left] = c;
        w->open[n_open].candidate = (int32_t)n_left;
        n_left += c.location != OJ_OUTSIDE;
        n_open += c.location == UNKNOWN;
    }
    for (int64_t i = 0; i < n_open; i++)
    {
        struct point_open *open = &w->open[i];
        const struct point_candidate *c = &candidate[open->candidate];
        if (c->grid == NULL)
            continue;
        open->rank = oj_edge_grid_rank(c->grid, (uint32_t)c->cell);
        __builtin_prefetch(c->grid->first_run + open->rank);
    }
    w->n_open = n_open;
    return n_left;
}

/* Prefetches the edges in the cells of the undecided candidates. */
OJ_INLINE void prefetch_edges(const struct point_worker *w)
{
    for (int64_t i = 0; i < w->n_open; i++)
    {
        const struct point_open *open = &w->open[i];
        const struct point_candidate *c = &w->candidate[open->candidate];
        if (c->grid != NULL)
            oj_edge_grid_prefetch_runs(c->grid, open->rank);
    }
    for (int64_t i = 0; i < w->n_open; i++)
    {
        const struct point_open *open = &w->open[i];
        const struct point_candidate *c = &w->candidate[open->candidate];
        if (c->grid != NULL)
            oj_edge_grid_prefetch_edges(c->grid, open->rank);
    }
}

static enum oj_location locate_candidate(const struct oj_ring_cells *cells,
                                         const struct point_open *open,
                                         const struct point_candidate *c,
                                         double px, double py)
{
    const struct oj_located_ring *ring = &cells->ring[c->ring];
    const double *x = cells->flat->x + ring->first_vertex;
    const double *y = cells->flat->y + ring->first_vertex;
    if (c->grid != NULL)
        return oj_edge_grid_locate_in_cell(c->grid, c->cell, open->rank, px,
                                           py);
    if (ring->n_vertices <= OJ_LANES + 1 &&
        ring->first_vertex + OJ_LANES < cells->flat->n_vertices)
    {
        int few = locate_in_small_ring(px, py, x, y, ring->n_vertices);
        if (few != UNKNOWN)
            return (enum oj_location)few;
    }
    return oj_ring_locate_fast(cells->kernel, px, py, x, y, ring->n_vertices);
}

/* Decides all candidates in the list, appends the resulting pairs and empties
 * the list. The list must contain all candidates of each of its points. */
static oj_status refine_candidates(const struct point_query *q,
                                   struct point_worker *w, int64_t first_row,
                                   struct oj_error *err)
{
    struct oj_ring_cells *cells = q->cells;
    const double *x = q->input->x + first_row, *y = q->input->y + first_row;
    struct point_candidate *c = w->candidate;
    int64_t n = w->n_candidates, end;
    w->n_refined += n;
    w->n_candidates = 0;
    OJ_ROOM(w->open, 0, n, w->cap_open, err);
    if (q->filter->is_needed)
        n = drop_pairs_excluded_by_filter(q, first_row, n, c);
    OJ_TRY(find_ring_grid_cells_of_candidates(cells, n, c, x, y, err));
    n = drop_outside_candidates(w, n);
    prefetch_edges(w);
    for (int64_t i = 0; i < w->n_open; i++)
    {
        struct point_candidate *at = &c[w->open[i].candidate];
        at->location = (int32_t)locate_candidate(cells, &w->open[i], at,
                                                 x[at->point], y[at->point]);
    }
    /* one more than needed, because the loop writes an element before it counts
     * it */
    OJ_ROOM(w->feature, w->n_pairs, w->n_pairs + n + 1, w->cap_pairs, err);
    for (int64_t i = 0; i < n; i = end)
    {
        for (end = i + 1; end < n && c[end].point == c[i].point; end++)
            ;
        if (end - i > 1)
            OJ_TRY(add_pairs_of_located_point(q, w, first_row, end - i, &c[i],
                                              err));
        else if (c[i].location == OJ_ON_BOUNDARY)
            OJ_TRY(add_pair_on_boundary(q, w, first_row, c[i].point,
                                        cells->ring[c[i].ring].feature, 1,
                                        err));
        else
        {
            /* No branch, since it would be mispredicted often. */
            uint32_t is_pair = q->accepted >> c[i].location & 1;
            w->feature[w->n_pairs] = cells->ring[c[i].ring].feature;
            w->n_pairs += is_pair;
            w->n_pairs_of[c[i].point] += is_pair;
        }
    }
    return OJ_OK;
}

/* --- filter: from points to candidates ------------------------------------ */

/* Sets *cell to the number of the layer's cell that contains a point, and *out
 * to the value to compare with the entries of this cell. If is_turned is 1, the
 * cells are along the turned axes u and v. A point with a NaN coordinate gets
 * the cell after the last, which has no rings. */
OJ_INLINE void find_cell_and_probe(const struct oj_ring_axes *axes,
                                   const struct oj_ring_layer *layer, double x,
                                   double y, int is_turned, uint32_t *cell,
                                   uint32_t *out)
{
    double nothing = (x - x) + (y - y);
    double u = is_turned ? oj_ring_axes_u(axes, x, y) : x;
    double v = is_turned ? oj_ring_axes_v(axes, x, y) : y;
    int32_t i = oj_frame_index(u, layer->x0, layer->scale_x, layer->last_x);
    int32_t j = oj_frame_index(v, layer->y0, layer->scale_y, layer->last_y);
    int32_t at = j / OJ_CELL_STEPS * layer->nx + i / OJ_CELL_STEPS;
    *cell = (uint32_t)(nothing == 0.0 ? at : layer->nx * layer->ny);
    *out = oj_ring_probe_of_steps(i, j);
}

static OJ_CLONES void
find_cells_and_subcells_of_points(const struct oj_ring_axes *borrowed_axes,
                                  const struct oj_ring_layer *borrowed,
                                  int64_t n, const double *x, const double *y,
                                  uint32_t *cell, uint32_t *out)
{
    const struct oj_ring_axes axes = *borrowed_axes;
    const struct oj_ring_layer layer = *borrowed;
    if (axes.is_turned)
    {
        for (int64_t i = 0; i < n; i++)
            find_cell_and_probe(&axes, &layer, x[i], y[i], 1, &cell[i],
                                &out[i]);
    }
    else
    {
        for (int64_t i = 0; i < n; i++)
            find_cell_and_probe(&axes, &layer, x[i], y[i], 0, &cell[i],
                                &out[i]);
    }
}

static inline int subcell_of_probe(uint32_t probe)
{
    return (int)((probe >> 8 & 0x70) >> 1 | (probe & 0x70) >> 4);
}

/* Lists in w->survivor the points of the block in whose subcell boxes of rings
 * lie, in order, and once for each layer where this is so. Returns the length
 * of the list. */
OJ_INLINE int64_t list_points_near_rings(const struct oj_ring_set *set,
                                         struct point_worker *w, int64_t n,
                                         int n_layers)
{
    int64_t n_survivors = 0;
    for (int64_t i = 0; i < n; i++)
    {
        for (int l = 0; l < n_layers; l++)
        {
            uint32_t cell = w->cell[l][i], probe = w->probe[l][i];
            struct point_survivor *s = &w->survivor[n_survivors];
            s->point = (int32_t)i;
            s->layer = l;
            s->cell = cell;
            s->probe = probe;
            n_survivors +=
                (int64_t)(set->layer[l].mask[cell] >> subcell_of_probe(probe) &
                          1);
        }
    }
    return n_survivors;
}

OJ_INLINE oj_status add_candidates(const struct oj_ring_cells *cells,
                                   struct point_worker *w,
                                   const struct oj_ring_layer *layer,
                                   uint32_t cell, uint32_t probe, int32_t point,
                                   struct oj_error *err)
{
    const struct oj_ring_entry *entry = layer->entry + layer->first[cell];
    const struct oj_ring_entry *end = layer->entry + layer->first[cell + 1];
    struct point_candidate *out;
    /* one more than needed, because the loop writes an element before it counts
     * it */
    if (w->cap_candidates - w->n_candidates <= end - entry)
        OJ_ROOM(w->candidate, w->n_candidates,
                w->n_candidates + (end - entry) + 2 * CANDIDATES,
                w->cap_candidates, err);
    out = w->candidate + w->n_candidates;
    for (; entry < end; entry++)
    {
        out->point = point;
        out->ring = entry->ring;
        out->location = UNKNOWN;
        out += oj_ring_entry_contains_point(entry->steps, probe);
        __builtin_prefetch(&cells->ring[entry->ring]);
    }
    w->n_candidates = out - w->candidate;
    return OJ_OK;
}

/* Appends the candidate rings of a point in a crowded cell, which is subdivided
 * into smaller cells and has no entries of its own. */
static oj_status append_rings_of_subdivided_cell(
    const struct oj_ring_cells *cells, struct point_worker *w,
    int32_t set_number, double x, double y, int32_t point, struct oj_error *err)
{
    const struct oj_ring_set *set = &cells->set[set_number];
    for (int l = 0; l < set->n_layers; l++)
    {
        const struct oj_ring_layer *layer = &set->layer[l];
        uint32_t cell, at;
        find_cell_and_probe(&cells->axes, layer, x, y, cells->axes.is_turned,
                            &cell, &at);
        if (!(layer->mask[cell] >> subcell_of_probe(at) & 1))
            continue;
        if (layer->child != NULL && layer->child[cell] >= 0)
            OJ_TRY(append_rings_of_subdivided_cell(cells, w, layer->child[cell],
                                                   x, y, point, err));
        else
            OJ_TRY(add_candidates(cells, w, layer, cell, at, point, err));
    }
    return OJ_OK;
}

/* --- blocks of points ----------------------------------------------------- */

/* Polls the cancel flag and refines the collected candidates; measures the time
 * if requested. */
static oj_status refine_candidates_timed(const struct point_query *q,
                                         struct point_worker *w,
                                         int64_t first_row,
                                         struct oj_error *err)
{
    double start = q->timings ? oj_clock_seconds() : 0.0;
    OJ_TRY(oj_check_cancel(q->cancel, err));
    OJ_TRY(refine_candidates(q, w, first_row, err));
    if (q->timings)
        w->refine_s += oj_clock_seconds() - start;
    return OJ_OK;
}

/* Appends the rings whose boxes contain a point, for n points at once.
 * w->range[i] has the range of entries (ring boxes) of the cell of point i. */
static oj_status append_rings_of_cell_ranges(const struct oj_ring_cells *cells,
                                             struct point_worker *w,
                                             const struct oj_ring_layer *layer,
                                             int64_t n, struct oj_error *err)
{
    int64_t n_held = cells->kernel->holding(layer->entry, w->range, n,
                                            w->held_point, w->held_ring);
    struct point_candidate *candidate;
    OJ_ROOM(w->candidate, w->n_candidates, w->n_candidates + n_held,
            w->cap_candidates, err);
    candidate = w->candidate + w->n_candidates;
    for (int64_t i = 0; i < n_held; i++)
    {
        candidate[i].point = w->held_point[i];
        candidate[i].ring = w->held_ring[i];
        candidate[i].location = UNKNOWN;
        __builtin_prefetch(&cells->ring[w->held_ring[i]]);
    }
    w->n_candidates += n_held;
    return OJ_OK;
}

/* Collects, from survivor `first` on, the points with the ranges of entries of
 * their cells. Stops at a cell that is subdivided, or at HELD entries. Returns
 * the number of points. */
static int64_t
collect_cell_ranges_of_near_points(const struct oj_ring_layer *borrowed,
                                   struct point_worker *w, int64_t first,
                                   int64_t n)
{
    const struct oj_ring_layer layer_copy = *borrowed, *layer = &layer_copy;
    int64_t n_entries = 0, n_ranges = 0;
    for (; first < n; first++, n_ranges++)
    {
        const struct point_survivor *s = &w->survivor[first];
        struct oj_ring_range *range = &w->range[n_ranges];
        range->point = s->point;
        range->probe = s->probe;
        range->first = layer->first[s->cell];
        range->n = layer->first[s->cell + 1] - range->first;
        n_entries += range->n;
        __builtin_prefetch(&layer->entry[range->first]);
        if (n_entries > HELD ||
            (layer->child != NULL && layer->child[s->cell] >= 0))
            break;
    }
    return n_ranges;
}

/* Appends the rings whose boxes contain one point. */
static oj_status append_candidate_rings_of_point(const struct point_query *q,
                                                 struct point_worker *w,
                                                 const struct point_survivor *s,
                                                 int64_t first_row,
                                                 struct oj_error *err)
{
    const struct oj_ring_layer *layer = &q->set->layer[s->layer];
    if (layer->child == NULL || layer->child[s->cell] < 0)
        return add_candidates(q->cells, w, layer, s->cell, s->probe, s->point,
                              err);
    return append_rings_of_subdivided_cell(
        q->cells, w, layer->child[s->cell], q->input->x[first_row + s->point],
        q->input->y[first_row + s->point], s->point, err);
}

/* Finds the rings whose boxes contain each of the survivors first .. n - 1.
 * Decides these candidates whenever the list has CANDIDATES or more; the last
 * ones stay in the list. */
static oj_status find_candidates_of_points_near_rings(
    const struct point_query *q, struct point_worker *w, int64_t first,
    int64_t n, int64_t first_row, struct oj_error *err)
{
    const struct point_survivor *survivor = w->survivor;
    const struct oj_ring_set *set = q->set;
    int is_wide = set->n_layers == 1 && q->cells->kernel->holding != NULL;
    for (int64_t i = first; i < n; i++)
        __builtin_prefetch(
            &set->layer[survivor[i].layer].first[survivor[i].cell]);
    for (int64_t i = first; !is_wide && i < n; i++)
    {
        const struct oj_ring_layer *layer = &set->layer[survivor[i].layer];
        __builtin_prefetch(&layer->entry[layer->first[survivor[i].cell]]);
    }
    for (int64_t i = first; i < n; i++)
    {
        int64_t n_ranges =
            is_wide
                ? collect_cell_ranges_of_near_points(&set->layer[0], w, i, n)
                : 0;
        if (n_ranges > 0)
            OJ_TRY(append_rings_of_cell_ranges(q->cells, w, &set->layer[0],
                                               n_ranges, err));
        i += n_ranges;
        if (i == n)
            break;
        if (w->n_candidates >= CANDIDATES &&
            survivor[i].point != survivor[i - 1].point)
            OJ_TRY(refine_candidates_timed(q, w, first_row, err));
        OJ_TRY(append_candidate_rings_of_point(q, w, &survivor[i], first_row,
                                               err));
    }
    return OJ_OK;
}

/* --- points with many entries, if one pair of a row is enough ------------- */

/* A point is crowded if its cells have more entries than this. */
#define CROWDED 64

/* The candidates of a crowded point are decided in parts: the first part has
 * FIRST_PART of them, each later one twice as many, up to CANDIDATES. */
#define FIRST_PART 16

/* Features with at most this many rings are decided as soon as a box of a ring
 * contains the point; those with more rings are decided last, by the rings
 * whose boxes contain it. */
#define FEW_RINGS 8

/* A crowded point while its pair is searched. */
struct crowded_point
{
    const struct point_query *q;
    int64_t first_row, first_pair;
    int64_t part;      /* number of candidates that are decided at once */
    int64_t only_rank; /* tie rank below which a feature can replace the pair
                          found: INT64_MAX before a pair is found, 0 after it if
                          any pair is enough */
    int32_t point;
};

/* Appends to w->leaf the cells of a set that contain the point x, y and have
 * entries; cells of the sets that subdivide them, too. */
static oj_status list_leaves_of_set(const struct oj_ring_cells *cells,
                                    struct point_worker *w, int32_t set_number,
                                    double x, double y, struct oj_error *err)
{
    const struct oj_ring_set *set = &cells->set[set_number];
    for (int l = 0; l < set->n_layers; l++)
    {
        const struct oj_ring_layer *layer = &set->layer[l];
        uint32_t cell, probe;
        find_cell_and_probe(&cells->axes, layer, x, y, cells->axes.is_turned,
                            &cell, &probe);
        if (!(layer->mask[cell] >> subcell_of_probe(probe) & 1))
            continue;
        if (layer->child != NULL && layer->child[cell] >= 0)
        {
            OJ_TRY(list_leaves_of_set(cells, w, layer->child[cell], x, y, err));
            continue;
        }
        OJ_ROOM(w->leaf, w->n_leaves, w->n_leaves + 1, w->cap_leaves, err);
        w->leaf[w->n_leaves++] = (struct point_leaf){layer, cell, probe};
    }
    return OJ_OK;
}

/* Sets w->leaf to the cells with entries that contain a point, whose survivors
 * are first .. end - 1. Sets *is_crowded to 1 if these cells have more than
 * CROWDED entries. */
static oj_status list_leaves_of_point(const struct point_query *q,
                                      struct point_worker *w, int64_t first,
                                      int64_t end, int64_t first_row,
                                      int *is_crowded, struct oj_error *err)
{
    int64_t n_entries = 0;
    w->n_leaves = 0;
    for (int64_t i = first; i < end; i++)
    {
        const struct point_survivor *s = &w->survivor[i];
        const struct oj_ring_layer *layer = &q->set->layer[s->layer];
        const int64_t row = first_row + s->point;
        if (layer->child != NULL && layer->child[s->cell] >= 0)
        {
            OJ_TRY(list_leaves_of_set(q->cells, w, layer->child[s->cell],
                                      q->input->x[row], q->input->y[row], err));
            continue;
        }
        OJ_ROOM(w->leaf, w->n_leaves, w->n_leaves + 1, w->cap_leaves, err);
        w->leaf[w->n_leaves++] = (struct point_leaf){layer, s->cell, s->probe};
    }
    for (int64_t i = 0; i < w->n_leaves; i++)
    {
        const struct point_leaf *leaf = &w->leaf[i];
        n_entries +=
            leaf->layer->first[leaf->cell + 1] - leaf->layer->first[leaf->cell];
    }
    *is_crowded = n_entries > CROWDED;
    return OJ_OK;
}

static int64_t tie_rank_of_ring(const struct point_query *q, int32_t ring)
{
    return oj_tie_rank(q->tie_rank, q->cells->ring[ring].feature);
}

/* Decides the collected candidates of a crowded point. Of its pairs, it keeps
 * the first in tie order. */
static oj_status refine_crowded_point(struct crowded_point *c,
                                      struct point_worker *w,
                                      struct oj_error *err)
{
    int64_t best = c->first_pair;
    if (w->n_candidates == 0)
        return OJ_OK;
    OJ_TRY(refine_candidates_timed(c->q, w, c->first_row, err));
    c->part = c->part < CANDIDATES ? 2 * c->part : c->part;
    if (w->n_pairs == c->first_pair)
        return OJ_OK;
    for (int64_t i = c->first_pair + 1; i < w->n_pairs; i++)
    {
        if (oj_tie_rank(c->q->tie_rank, w->feature[i]) <
            oj_tie_rank(c->q->tie_rank, w->feature[best]))
            best = i;
    }
    w->feature[c->first_pair] = w->feature[best];
    w->n_pairs = c->first_pair + 1;
    w->n_pairs_of[c->point] = 1;
    c->only_rank = c->q->enough == OJ_ENOUGH_ANY
                       ? 0
                       : oj_tie_rank(c->q->tie_rank, w->feature[c->first_pair]);
    return OJ_OK;
}

static oj_status add_candidate_ring(const struct crowded_point *c,
                                    struct point_worker *w, int32_t ring,
                                    struct oj_error *err)
{
    OJ_ROOM(w->candidate, w->n_candidates, w->n_candidates + 1,
            w->cap_candidates, err);
    w->candidate[w->n_candidates++] = (struct point_candidate){
        .point = c->point, .ring = ring, .location = UNKNOWN};
    return OJ_OK;
}

/* Adds a ring whose box contains a crowded point. The rings of a feature are
 * decided together. */
static oj_status add_ring_of_crowded_point(struct crowded_point *c,
                                           struct point_worker *w, int32_t ring,
                                           struct oj_error *err)
{
    const struct oj_flat *flat = c->q->cells->flat;
    const int64_t feature = c->q->cells->ring[ring].feature;
    const int64_t first = flat->ring_offset[flat->part_offset[feature]];
    const int64_t end = flat->ring_offset[flat->part_offset[feature + 1]];
    if (end - first == 1)
    {
        OJ_TRY(add_candidate_ring(c, w, ring, err));
        return w->n_candidates >= c->part ? refine_crowded_point(c, w, err)
                                          : OJ_OK;
    }
    if (end - first > FEW_RINGS)
    {
        OJ_ROOM(w->last_ring, w->n_last, w->n_last + 1, w->cap_last, err);
        w->last_ring[w->n_last++] = ring;
        return OJ_OK;
    }
    OJ_TRY(refine_crowded_point(c, w, err));
    for (int64_t r = first; r < end; r++)
    {
        if (c->q->cells->ring[r].n_vertices > 0)
            OJ_TRY(add_candidate_ring(c, w, (int32_t)r, err));
    }
    return refine_crowded_point(c, w, err);
}

/* Searches the pair of a crowded point in w->leaf. Decides the candidates of
 * earlier points first, since pairs are in the order of the points. */
static oj_status search_point_in_crowded_cell(const struct point_query *q,
                                              struct point_worker *w,
                                              int32_t point, int64_t first_row,
                                              struct oj_error *err)
{
    struct crowded_point c = {.q = q,
                              .first_row = first_row,
                              .part = FIRST_PART,
                              .only_rank = INT64_MAX,
                              .point = point};
    OJ_TRY(refine_candidates_timed(q, w, first_row, err));
    c.first_pair = w->n_pairs;
    w->n_last = 0;
    for (int64_t i = 0; i < w->n_leaves; i++)
    {
        const struct point_leaf leaf = w->leaf[i];
        const struct oj_ring_layer *layer = leaf.layer;
        const uint32_t first = layer->first[leaf.cell];
        const uint32_t end = layer->first[leaf.cell + 1];
        for (uint32_t e = first; e < end; e++)
        {
            const struct oj_ring_entry *entry = &layer->entry[e];
            if (c.only_rank == INT64_MAX ||
                tie_rank_of_ring(q, entry->ring) < c.only_rank)
            {
                if (oj_ring_entry_contains_point(entry->steps, leaf.probe))
                    OJ_TRY(add_ring_of_crowded_point(&c, w, entry->ring, err));
            }
            else if (c.only_rank == 0 || end - first > CROWDED)
                break; /* any pair is enough, or the entries are sorted
                          (sort_crowded_cells()) and no later one has a lower
                          rank */
        }
    }
    OJ_TRY(refine_crowded_point(&c, w, err));
    for (int64_t i = 0; i < w->n_last; i++)
    {
        if (tie_rank_of_ring(q, w->last_ring[i]) < c.only_rank)
            OJ_TRY(add_candidate_ring(&c, w, w->last_ring[i], err));
    }
    return refine_crowded_point(&c, w, err);
}

/* Like find_candidates_of_points_near_rings() for n survivors, but decides
 * crowded points on the way. */
static oj_status
find_only_pairs_of_points_near_rings(const struct point_query *q,
                                     struct point_worker *w, int64_t n,
                                     int64_t first_row, struct oj_error *err)
{
    int64_t open = 0; /* first survivor whose candidates are not listed */
    for (int64_t i = 0, end; i < n; i = end)
    {
        const int32_t point = w->survivor[i].point;
        int is_crowded;
        for (end = i + 1; end < n && w->survivor[end].point == point; end++)
            ;
        OJ_TRY(list_leaves_of_point(q, w, i, end, first_row, &is_crowded, err));
        if (!is_crowded)
            continue;
        OJ_TRY(find_candidates_of_points_near_rings(q, w, open, i, first_row,
                                                    err));
        OJ_TRY(search_point_in_crowded_cell(q, w, point, first_row, err));
        open = end;
    }
    return find_candidates_of_points_near_rings(q, w, open, n, first_row, err);
}

/* Sorts n entries of a cell in tie order. key [2 n] is scratch. */
static void sort_entries_of_cell(const struct oj_ring_cells *cells,
                                 const int32_t *tie_rank,
                                 struct oj_ring_entry *entry, int64_t n,
                                 struct oj_keyed *key)
{
    const struct oj_keyed *sorted;
    for (int64_t i = 0; i < n; i++)
    {
        uint32_t rank =
            (uint32_t)oj_tie_rank(tie_rank, cells->ring[entry[i].ring].feature);
        key[i].key = (uint64_t)rank << 32 | (uint32_t)entry[i].ring;
        key[i].value = entry[i].steps;
    }
    sorted = oj_radix_sort(key, key + n, n);
    for (int64_t i = 0; i < n; i++)
    {
        entry[i].ring = (int32_t)(uint32_t)sorted[i].key;
        entry[i].steps = (uint32_t)sorted[i].value;
    }
}

/* Sorts the entries of each cell with more than CROWDED, so that a row whose
 * first pair is enough reads few of them. */
static oj_status sort_crowded_cells(const struct oj_ring_cells *cells,
                                    const int32_t *tie_rank,
                                    struct oj_error *err)
{
    struct oj_keyed *key = NULL;
    int64_t capacity = 0;
    oj_status status = OJ_OK;
    for (int64_t i = 0; i < cells->n_sets * OJ_RING_LAYERS; i++)
    {
        const struct oj_ring_set *set = &cells->set[i / OJ_RING_LAYERS];
        const struct oj_ring_layer *layer = &set->layer[i % OJ_RING_LAYERS];
        if (i % OJ_RING_LAYERS >= set->n_layers)
            continue;
        for (int64_t cell = 0;
             cell < (int64_t)layer->nx * layer->ny && status == OJ_OK; cell++)
        {
            int64_t n = layer->first[cell + 1] - layer->first[cell];
            if (n <= CROWDED)
                continue;
            status = oj_reserve(&key, 0, 2 * n, &capacity, sizeof *key, err);
            if (status == OJ_OK)
                sort_entries_of_cell(cells, tie_rank,
                                     layer->entry + layer->first[cell], n, key);
        }
    }
    oj_free(key);
    return status;
}

/* --- blocks of points, continued ------------------------------------------ */

/* Joins the rows first_row .. first_row + n - 1, n <= POINT_BLOCK: appends the
 * join features of their pairs to w->feature, row by row, and sets
 * n_pairs_of[]. */
static oj_status join_block(const struct point_query *q, struct point_worker *w,
                            int64_t first_row, int64_t n, struct oj_error *err)
{
    const struct oj_ring_set *set = q->set;
    const double *x = q->input->x + first_row, *y = q->input->y + first_row;
    int64_t n_survivors;
    memset(w->n_pairs_of, 0, (size_t)n * sizeof *w->n_pairs_of);
    w->n_candidates = 0;
    for (int l = 0; l < set->n_layers; l++)
    {
        const struct oj_ring_layer *layer = &set->layer[l];
        find_cells_and_subcells_of_points(&q->cells->axes, layer, n, x, y,
                                          w->cell[l], w->probe[l]);
        for (int64_t i = 0; i < n; i++)
            __builtin_prefetch(&layer->mask[w->cell[l][i]]);
    }
    if (set->n_layers == 1)
        n_survivors = list_points_near_rings(set, w, n, 1);
    else
        n_survivors = list_points_near_rings(set, w, n, set->n_layers);
    if (q->enough != OJ_ENOUGH_ALL)
        OJ_TRY(find_only_pairs_of_points_near_rings(q, w, n_survivors,
                                                    first_row, err));
    else
        OJ_TRY(find_candidates_of_points_near_rings(q, w, 0, n_survivors,
                                                    first_row, err));
    return refine_candidates_timed(q, w, first_row, err);
}

static void free_worker(struct point_worker *w)
{
    oj_free(w->candidate);
    oj_free(w->open);
    oj_free(w->state);
    oj_free(w->leaf);
    oj_free(w->last_ring);
    oj_free(w->feature);
    oj_tie_rank_sorter_free(&w->order);
    oj_relate_scratch_free(&w->relate);
    memset(w, 0, sizeof *w);
}

/* --- for other engines ---------------------------------------------------- */

oj_status oj_containing_find(struct oj_ring_cells *cells, int64_t n,
                             const double *x, const double *y,
                             const int *cancel, struct oj_containing *out,
                             struct oj_error *err)
{
    const struct oj_flat points = oj_flat_of_points(n, NULL, x, y);
    const struct oj_pair_filter none = {0};
    const struct point_query q = {.cells = cells,
                                  .set = &cells->set[cells->n_sets - 1],
                                  .input = &points,
                                  .filter = &none,
                                  .accepted =
                                      1u << OJ_INSIDE | 1u << OJ_ON_BOUNDARY,
                                  .cancel = cancel};
    if (out->worker == NULL)
        OJ_NEW_ZEROED(out->worker, 1, err);
    OJ_ROOM(out->offset, 0, n + 1, out->cap_offset, err);
    out->worker->n_pairs = out->offset[0] = 0;
    for (int64_t row = 0; row < n; row += POINT_BLOCK)
    {
        int64_t n_rows = n - row < POINT_BLOCK ? n - row : POINT_BLOCK;
        OJ_TRY(join_block(&q, out->worker, row, n_rows, err));
        for (int64_t i = 0; i < n_rows; i++)
            out->offset[row + i + 1] =
                out->offset[row + i] + out->worker->n_pairs_of[i];
    }
    out->feature = out->worker->feature;
    return OJ_OK;
}

void oj_containing_free(struct oj_containing *containing)
{
    if (containing->worker != NULL)
        free_worker(containing->worker);
    oj_free(containing->worker);
    oj_free(containing->offset);
    memset(containing, 0, sizeof *containing);
}

/* --- the engine ----------------------------------------------------------- */

struct points_in_polygons_index
{
    struct oj_relation relation;
    struct oj_options options;
    const int32_t *tie_rank;
    const struct oj_flat *flat;
    const struct oj_flat *join_side;
    struct envelope_rings envelopes; /* if the join is by envelopes, owns flat;
                                        otherwise empty */
    struct oj_ring_cells cells;
    unsigned accepted;         /* point locations that make a pair, bits 1 <<
                                  enum oj_location */
    _Atomic uint8_t *solidity; /* [features] enum solidity; NULL if the join
                                  does not distinguish boundary and interior */

    /* Memory of batches, which the next batch reuses. */
    struct point_worker *worker; /* [n_threads] */
    struct task *task;
    int64_t cap_tasks;
};

/* The pairs of a task. */
struct task
{
    int64_t first, n; /* range of the task's pairs in `feature` of its worker */
    int64_t assumed;  /* number of pairs of earlier tasks that its offsets
                         assume; a wrong assumption is corrected later */
    int64_t before;   /* actual number of pairs of all tasks before it */
    int32_t worker;
    int32_t n_matched;
};

/* State of a batch. */
struct points_in_polygons_batch
{
    struct points_in_polygons_index *self;
    struct point_query query;
    const struct oj_flat *input;
    struct oj_pair_filter filter;
    struct oj_matches *out;
    struct oj_pair_budget budget;
};

/* --- the join side -------------------------------------------------------- */

static void free_batches(struct oj_index *wrapped)
{
    struct points_in_polygons_index *self = (void *)wrapped;
    for (int t = 0; self->worker != NULL && t < self->options.n_threads; t++)
        free_worker(&self->worker[t]);
    oj_free(self->worker);
    oj_free(self->task);
}

static void free_points_in_polygons_index(struct oj_index *wrapped)
{
    struct points_in_polygons_index *self = (void *)wrapped;
    oj_free((void *)self->solidity);
    oj_ring_cells_free(&self->cells);
    envelope_rings_free(&self->envelopes);
}

/* Returns 1 if the join treats points on the boundary like points inside. */
static int treats_boundary_as_inside(unsigned accepted)
{
    return (accepted >> OJ_INSIDE & 1) == (accepted >> OJ_ON_BOUNDARY & 1);
}

static oj_status build_points_in_polygons(struct oj_index *wrapped,
                                          const struct oj_index_args *args,
                                          struct oj_stats *stats,
                                          struct oj_error *err)
{
    const struct oj_options *options = &args->options;
    struct points_in_polygons_index *self = (void *)wrapped;
    enum oj_op op = args->relation.op;
    self->relation = args->relation;
    self->options = args->options;
    self->tie_rank = args->tie_rank;
    self->flat = self->join_side = args->join_side;
    if (oj_relation_is_bbox(&args->relation))
    {
        OJ_TRY(envelope_rings_make(&self->envelopes, args->join_side, err));
        self->flat = &self->envelopes.flat;
        op = OJ_OP_INTERSECTS; /* a point with a rectangle */
    }
    self->accepted = oj_point_locations_of_op(op);
    OJ_TRY(oj_ring_cells_build(&self->cells, self->flat, options->n_expected,
                               options->n_threads, err));
    if (args->relation.enough_pairs == OJ_ENOUGH_FIRST)
        OJ_TRY(sort_crowded_cells(&self->cells, args->tie_rank, err));
    if (!treats_boundary_as_inside(self->accepted))
        OJ_NEW_ZEROED(self->solidity, self->flat->n_features, err);
    stats->index_bytes += oj_ring_cells_bytes(&self->cells);
    return OJ_OK;
}

/* --- rows ----------------------------------------------------------------- */

/* Sets offset[i] to the end of the pairs of row i of a block of n rows, and
 * sorts the pairs of each row unless the join accepts any order. `before` is
 * the end of the pairs of the row before the block. Counts the rows with pairs
 * in task. */
static oj_status
set_offsets_and_sort_rows(const struct points_in_polygons_index *self,
                          struct point_worker *w, int64_t n, int64_t before,
                          int64_t first_pair, int64_t *offset,
                          struct task *task, struct oj_error *err)
{
    int32_t *feature = w->feature != NULL ? w->feature + first_pair : NULL;
    int64_t total = 0, n_matched = 0;
    int is_sorting = !self->relation.any_order;
    for (int64_t i = 0; i < n; i++)
    {
        int64_t n_pairs = w->n_pairs_of[i];
        if (n_pairs > 1 && is_sorting)
            OJ_TRY(oj_tie_rank_sort_pairs(&w->order, n_pairs, self->tie_rank,
                                          feature + total, NULL, err));
        total += n_pairs;
        n_matched += n_pairs > 0;
        offset[i] = before + total;
    }
    task->n_matched += (int32_t)n_matched;
    return OJ_OK;
}

static oj_status join_rows(struct points_in_polygons_batch *b,
                           struct task *task, struct point_worker *w,
                           int64_t row, int64_t end, struct oj_error *err)
{
    double start = b->self->options.timings ? oj_clock_seconds() : 0.0;
    for (; row < end; row += POINT_BLOCK)
    {
        int64_t n = end - row < POINT_BLOCK ? end - row : POINT_BLOCK;
        int64_t first = w->n_pairs;
        OJ_TRY(join_block(&b->query, w, row, n, err));
        OJ_TRY(set_offsets_and_sort_rows(
            b->self, w, n, task->assumed + first - task->first, first,
            b->out->offset + row + 1, task, err));
        OJ_TRY(oj_pair_budget_count(&b->budget, w->n_pairs, &w->n_pairs_counted,
                                    err));
    }
    task->n = w->n_pairs - task->first;
    if (b->self->options.timings)
        /* The time includes refinement, which sum_stats_of_threads() subtracts.
         */
        w->filter_s += oj_clock_seconds() - start;
    return OJ_OK;
}

/* Returns the first row of a task, and sets *end to the row after its last. */
static int64_t first_row_of_task(const struct points_in_polygons_batch *b,
                                 int64_t i, int64_t *end)
{
    int64_t row = i * ROWS_PER_TASK, n_rows = b->input->n_features;
    *end = row + ROWS_PER_TASK < n_rows ? row + ROWS_PER_TASK : n_rows;
    return row;
}

static oj_status join_task(int64_t i, int thread, void *user,
                           struct oj_error *err)
{
    struct points_in_polygons_batch *b = user;
    struct point_worker *w = &b->self->worker[thread];
    struct task *task = &b->self->task[i];
    int64_t end, row = first_row_of_task(b, i, &end);
    memset(task, 0, sizeof *task);
    task->first = w->n_pairs;
    task->worker = thread;
    /* With one thread, tasks run in order, so the offsets are final. */
    task->assumed = b->self->options.n_threads == 1 ? task->first : 0;
    return join_rows(b, task, w, row, end, err);
}

/* Copies the pairs of a task to their final position in the result. */
static void move_pairs_of_task_into_place(int64_t i, int thread, void *user)
{
    struct points_in_polygons_batch *b = user;
    const struct task *task = &b->self->task[i];
    const struct point_worker *w = &b->self->worker[task->worker];
    struct oj_matches *out = b->out;
    int64_t end, row = first_row_of_task(b, i, &end);
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

static void sum_stats_of_threads(struct points_in_polygons_index *self,
                                 double seconds, struct oj_stats *stats)
{
    int n_threads = self->options.n_threads;
    for (int t = 0; t < n_threads; t++)
    {
        struct point_worker *w = &self->worker[t];
        stats->n_candidates += w->n_refined;
        /* Wall-clock time is estimated as the time of all threads divided by
         * their number. */
        stats->filter_s += (w->filter_s - w->refine_s) / n_threads;
        stats->refine_s += w->refine_s / n_threads;
        w->n_refined = 0;
        w->filter_s = w->refine_s = 0.0;
    }
    if (!self->options.timings)
        stats->refine_s += seconds;
}

static oj_status join_batch(struct points_in_polygons_batch *b,
                            struct oj_stats *stats, struct oj_error *err)
{
    struct points_in_polygons_index *self = b->self;
    struct oj_matches *out = b->out;
    int n_threads = self->options.n_threads;
    int64_t n_rows = b->input->n_features;
    int64_t n_tasks = (n_rows + ROWS_PER_TASK - 1) / ROWS_PER_TASK;
    int64_t n_pairs = 0, n_matched = 0;
    double start = oj_clock_seconds();
    oj_status status;
    OJ_TRY(oj_matches_reserve(out, n_rows, 0, 1, err));
    OJ_ROOM(self->task, 0, n_tasks, self->cap_tasks, err);
    oj_pair_budget_start(&b->budget, self->options.max_batch_pairs, n_rows,
                         n_threads);
    out->offset[0] = 0;
    for (int t = 0; t < n_threads; t++)
    {
        struct point_worker *w = &self->worker[t];
        int64_t n = n_rows < MOST_FORESEEN ? n_rows : MOST_FORESEEN;
        w->n_pairs = w->n_pairs_counted = 0;
        OJ_ROOM(w->feature, 0, n / n_threads + POINT_BLOCK, w->cap_pairs, err);
    }
    status = oj_parallel_try(n_threads, n_tasks, 1, join_task, b, err);
    sum_stats_of_threads(self, oj_clock_seconds() - start, stats);
    stats->index_bytes += atomic_exchange(&self->cells.new_bytes, 0);
    if (status != OJ_OK)
        return status;
    for (int64_t i = 0; i < n_tasks; i++)
    {
        self->task[i].before = n_pairs;
        n_pairs += self->task[i].n;
        n_matched += self->task[i].n_matched;
    }
    OJ_TRY(oj_pair_budget_check(b->budget.most, n_pairs, err));
    /* The offsets are kept when the arrays grow. */
    OJ_TRY(oj_matches_reserve(out, n_rows, n_pairs, 1, err));
    oj_parallel_for(n_threads, n_tasks, move_pairs_of_task_into_place, b);
    out->n_pairs = n_pairs;
    out->n_matched = n_matched;
    return OJ_OK;
}

static oj_status join_points_in_polygons(struct oj_index *wrapped,
                                         const struct oj_flat *input,
                                         struct oj_matches *out,
                                         struct oj_stats *stats,
                                         struct oj_error *err)
{
    struct points_in_polygons_index *self = (void *)wrapped;
    struct points_in_polygons_batch b;
    memset(&b, 0, sizeof b);
    b.self = self;
    b.input = input;
    b.out = out;
    if (self->worker == NULL)
        OJ_NEW_ZEROED(self->worker, self->options.n_threads, err);
    for (int t = 0; t < self->options.n_threads; t++)
        oj_relate_scratch_forget_layers(&self->worker[t].relate);
    OJ_TRY(oj_pair_filter_make(&self->relation, input, self->join_side,
                               &b.filter, err));
    if (self->cells.n_sets == 0)
    {
        OJ_TRY(oj_matches_reserve(out, input->n_features, 0, 1, err));
        memset(out->offset, 0,
               (size_t)(input->n_features + 1) * sizeof *out->offset);
        return OJ_OK;
    }
    self->cells.n_points += input->n_features;
    b.query.cells = &self->cells;
    b.query.set = &self->cells.set[self->cells.n_sets - 1];
    b.query.input = input;
    b.query.filter = &b.filter;
    b.query.accepted = self->accepted;
    b.query.solidity = self->solidity;
    b.query.cancel = self->options.cancel;
    b.query.timings = self->options.timings;
    b.query.enough = self->relation.enough_pairs;
    b.query.tie_rank = self->tie_rank;
    return join_batch(&b, stats, err);
}

static void set_options(struct oj_index *wrapped,
                        const struct oj_options *options)
{
    struct points_in_polygons_index *self = (void *)wrapped;
    oj_options_copy_per_batch(&self->options, options);
}

static const struct oj_engine_cost points_cost = {.vertex_s = 28e-9,
                                                  .row_s = 27e-9};

/* Returns 1 if the join is of points with the envelopes of other features. */
static int is_points_in_envelopes(const struct oj_relation *relation,
                                  const struct oj_flat *join_side,
                                  const struct oj_flat *input)
{
    return oj_relation_is_bbox(relation) && !oj_flat_is_points(join_side) &&
           (input == NULL || oj_flat_is_points(input));
}

#define ENGINE(words, is_taken)                                                \
    {                                                                          \
        .name = words, .supports = is_taken,                                   \
        .index_size = sizeof(struct points_in_polygons_index),                 \
        .build = build_points_in_polygons, .join = join_points_in_polygons,    \
        .free_side = free_points_in_polygons_index,                            \
        .free_batches = free_batches, .set_options = set_options,              \
        .points_cost = &points_cost                                            \
    }

const struct oj_engine oj_cpu_points_in_polygons =
    ENGINE("points in cells of polygons", oj_is_points_in_polygons);
const struct oj_engine oj_cpu_points_in_envelopes =
    ENGINE("points in cells of envelopes", is_points_in_envelopes);
