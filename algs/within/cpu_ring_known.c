#include "cpu_ring_cells.h"

#include "../../flatten/base/oj_array.h"

#include <string.h>

/* Spots get answers once so many points a cell have been joined, and if there
 * are no more cells than this. */
#define POINTS_PER_CELL 128
#define MOST_CELLS 32768

static int has_answers(const struct oj_ring_cells *cells)
{
    const struct oj_ring_set *set;
    if (cells->n_sets == 0 || cells->n_grids == 0 || cells->axes.is_turned ||
        cells->flat->n_features > UINT16_MAX - OJ_SPOT_FEATURE)
        return 0;
    set = &cells->set[cells->n_sets - 1];
    return set->n_layers == 1 &&
           (int64_t)set->layer[0].nx * set->layer[0].ny <= MOST_CELLS;
}

oj_status oj_ring_cells_expect(struct oj_ring_cells *cells, int64_t n_points,
                               struct oj_error *err)
{
    struct oj_ring_layer *layer;
    int64_t n_cells;
    cells->n_points += n_points;
    if (!has_answers(cells))
        return OJ_OK;
    layer = &cells->set[cells->n_sets - 1].layer[0];
    n_cells = (int64_t)layer->nx * layer->ny;
    if (layer->answer != NULL || cells->n_points < n_cells * POINTS_PER_CELL)
        return OJ_OK;
    OJ_NEW(layer->answer, (n_cells + 1) * OJ_SPOTS, err);
    for (int64_t i = 0; i < (n_cells + 1) * OJ_SPOTS; i++)
        layer->answer[i] = layer->mask[i / OJ_SPOTS] >> i % OJ_SPOTS & 1
                               ? OJ_SPOT_UNKNOWN
                               : OJ_SPOT_NOTHING;
    atomic_fetch_add(&cells->new_bytes,
                     (n_cells + 1) * OJ_SPOTS * (int64_t)sizeof *layer->answer);
    return OJ_OK;
}

/* An interval that holds every coordinate whose step is first .. first +
 * OJ_SPOT_STEPS - 1; 0: rounding allows of none.  Steps never decrease with the
 * coordinate, so two coordinates beyond them prove it. */
static int bound_steps(double origin, double scale, double last, int32_t first,
                       double *low, double *high)
{
    double end = (double)first + OJ_SPOT_STEPS;
    *low = -INFINITY;
    *high = INFINITY;
    if (first > 0)
    {
        *low = origin + ((double)first - 1e-3) / scale;
        if (!(oj_ring_step(*low, origin, scale, last) < first))
            return 0;
    }
    if (end <= last)
    {
        *high = origin + (end + 1e-3) / scale;
        if (!(oj_ring_step(*high, origin, scale, last) >= (int32_t)end))
            return 0;
    }
    return 1;
}

/* 1 when the box of the entry's ring touches the spot, whose first steps within
 * its cell are x, y. */
static int touches_spot(uint32_t steps, int32_t x, int32_t y)
{
    int32_t x0 = (int32_t)(steps & 0xff), y0 = (int32_t)(steps >> 8 & 0xff);
    int32_t x1 = OJ_CELL_STEPS - 1 - (int32_t)(steps >> 16 & 0xff);
    int32_t y1 = OJ_CELL_STEPS - 1 - (int32_t)(steps >> 24);
    return x0 < x + OJ_SPOT_STEPS && x1 >= x && y0 < y + OJ_SPOT_STEPS &&
           y1 >= y;
}

uint16_t oj_ring_cells_answer(const struct oj_ring_cells *cells,
                              const struct oj_ring_layer *layer, int64_t cell,
                              int spot)
{
    int32_t column = (int32_t)(cell % layer->nx) * OJ_CELL_STEPS;
    int32_t row = (int32_t)(cell / layer->nx) * OJ_CELL_STEPS;
    int32_t x = spot % 8 * OJ_SPOT_STEPS, y = spot / 8 * OJ_SPOT_STEPS;
    int32_t part = -1, feature = -1;
    struct oj_box box;
    if ((layer->child != NULL && layer->child[cell] >= 0) ||
        !bound_steps(layer->x0, layer->scale_x, layer->last_x, column + x,
                     &box.x0, &box.x1) ||
        !bound_steps(layer->y0, layer->scale_y, layer->last_y, row + y, &box.y0,
                     &box.y1))
        return OJ_SPOT_MIXED;
    for (uint32_t i = layer->first[cell]; i < layer->first[cell + 1]; i++)
    {
        const struct oj_located_ring *ring = &cells->ring[layer->entry[i].ring];
        int location;
        if (!touches_spot(layer->entry[i].steps, x, y))
            continue;
        if (ring->grid < 0)
            return OJ_SPOT_MIXED;
        if (atomic_load_explicit(&cells->grid[ring->grid].n_asked,
                                 memory_order_acquire) < OJ_GRID_IS_READY)
            return OJ_SPOT_UNKNOWN;
        location = oj_edge_grid_known_box(&cells->grid[ring->grid].grid, box.x0,
                                          box.y0, box.x1, box.y1);
        if (location < 0)
            return OJ_SPOT_MIXED;
        if (location == OJ_OUTSIDE)
            continue;
        if (part >= 0 && ring->part != part)
            return OJ_SPOT_MIXED;
        part = part < 0 ? ring->part : -1;
        feature = ring->feature;
    }
    return part < 0 ? OJ_SPOT_NOTHING : (uint16_t)(OJ_SPOT_FEATURE + feature);
}
