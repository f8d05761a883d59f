/* One feature's way through the cells: which of them its edges touch, and which
 * it holds. */
#include "cpu_known_cells.h"

#include "../../flatten/base/oj_array.h"
#include "../base/oj_radix.h"

#include <math.h>
#include <string.h>

/* Bits of a raster: of the ring at work, then of the feature. */
enum
{
    EDGE = 1,
    IN_RING = 2,
    ODD = 4,    /* inside of an odd number of rings, those with edges aside */
    PARTIAL = 8 /* edges of some ring */
};

/* Columns and rows, both ends included. */
struct range
{
    int32_t x0, y0, x1, y1;
};

struct feature_trace
{
    struct oj_cell_trace *trace;
    const struct oj_known_cells *known;
    struct oj_ring_cells *cells;
    struct range all; /* of the feature, and of the raster */
    int64_t width;
};

static int32_t column_of(const struct oj_known_cells *k, double x)
{
    return oj_ring_grid_index(x, k->x0, k->inverse_size, k->nx);
}

static int32_t row_of(const struct oj_known_cells *k, double y)
{
    return oj_ring_grid_index(y, k->y0, k->inverse_size, k->ny);
}

static struct range range_of(const struct feature_trace *w,
                             const struct oj_located_ring *ring)
{
    const double *x = w->cells->flat->x + ring->first_vertex;
    const double *y = w->cells->flat->y + ring->first_vertex;
    struct oj_box box = oj_box_empty();
    struct range r;
    for (int64_t i = 0; i < ring->n_vertices; i++)
        oj_box_add_point(&box, x[i], y[i]);
    r.x0 = column_of(w->known, box.x0);
    r.y0 = row_of(w->known, box.y0);
    r.x1 = column_of(w->known, box.x1);
    r.y1 = row_of(w->known, box.y1);
    return r;
}

static uint8_t *at(const struct feature_trace *w, int32_t column, int32_t row)
{
    return w->trace->raster + (row - w->all.y0) * w->width +
           (column - w->all.x0);
}

/* --- edges ---------------------------------------------------------------- */

/* Marks every cell that the edge may touch. What of it lies in a row is
 * computed, and the rounding of that is covered by a margin that is large
 * against the error of the few operations here and small against a cell. */
static void mark_edge(const struct feature_trace *w, double ax, double ay,
                      double bx, double by)
{
    const struct oj_known_cells *k = w->known;
    double size, margin, slope;
    int32_t least, most, first_row, last_row;
    if (by < ay)
    {
        double swap = ax;
        ax = bx, bx = swap;
        swap = ay;
        ay = by, by = swap;
    }
    first_row = row_of(k, ay);
    last_row = row_of(k, by);
    least = column_of(k, ax < bx ? ax : bx);
    most = column_of(k, ax < bx ? bx : ax);
    size = fmax(fmax(fabs(ax), fabs(bx)), fmax(fabs(ay), fabs(by)));
    slope = by > ay ? (bx - ax) / (by - ay) : 0.0;
    /* a flat edge enlarges the rounding of the row's limits */
    margin = 1e-9 * k->size + 1e-14 * size;
    margin += margin * fabs(slope);
    for (int32_t row = first_row; row <= last_row; row++)
    {
        int32_t first = least, last = most;
        if (first_row != last_row && least != most && margin < k->size)
        {
            double low = k->y0 + (double)row * k->size;
            double from = row == first_row ? ax : ax + (low - ay) * slope;
            double to =
                row == last_row ? bx : ax + (low + k->size - ay) * slope;
            first = column_of(k, (from < to ? from : to) - margin);
            last = column_of(k, (from < to ? to : from) + margin);
            first = first > least ? first : least;
            last = last < most ? last : most;
        }
        for (int32_t column = first; column <= last; column++)
            *at(w, column, row) |= EDGE;
    }
}

static void mark_edges(const struct feature_trace *w,
                       const struct oj_located_ring *ring)
{
    const double *x = w->cells->flat->x + ring->first_vertex;
    const double *y = w->cells->flat->y + ring->first_vertex;
    *at(w, column_of(w->known, x[0]), row_of(w->known, y[0])) |= EDGE;
    for (int64_t i = 0; i + 1 < ring->n_vertices; i++)
        mark_edge(w, x[i], y[i], x[i + 1], y[i + 1]);
}

/* --- inside or not -------------------------------------------------------- */

static oj_status test_cell(const struct feature_trace *w,
                           const struct oj_located_ring *ring, int32_t column,
                           int32_t row, int *is_inside, struct oj_error *err)
{
    const struct oj_known_cells *k = w->known;
    double x = k->x0 + ((double)column + 0.5) * k->size;
    double y = k->y0 + ((double)row + 0.5) * k->size;
    const struct oj_ring_grid *grid = NULL;
    enum oj_location location;
    if (ring->grid >= 0)
        OJ_TRY(oj_ring_cells_grid(w->cells, ring, &grid, err));
    location =
        grid != NULL
            ? oj_ring_grid_locate(grid, x, y)
            : oj_ring_locate(x, y, w->cells->flat->x + ring->first_vertex,
                             w->cells->flat->y + ring->first_vertex,
                             ring->n_vertices);
    if (column_of(k, x) != column || row_of(k, y) != row ||
        location == OJ_ON_BOUNDARY)
        w->trace->is_unsafe = 1;
    *is_inside = location == OJ_INSIDE;
    return OJ_OK;
}

/* Cells first .. end - 1 of a row have no edges and so are on one side of the
 * ring: that of a cell without edges above or below, if there is one in the
 * last row.  At the rim of the ring's range is outside. */
static oj_status settle_run(const struct feature_trace *w,
                            const struct oj_located_ring *ring,
                            const struct range *range, int32_t row,
                            int32_t first, int32_t end, struct oj_error *err)
{
    const uint8_t *below;
    int is_inside = -1;
    if (first == range->x0 || end == range->x1 + 1 || row == range->y0 ||
        row == range->y1)
        return OJ_OK;
    below = at(w, first, row - 1);
    for (int32_t i = 0; i < end - first && is_inside < 0; i++)
    {
        if ((below[i] & EDGE) == 0)
            is_inside = (below[i] & IN_RING) != 0;
    }
    if (is_inside < 0)
        OJ_TRY(test_cell(w, ring, first, row, &is_inside, err));
    for (int32_t column = first; is_inside && column < end; column++)
        *at(w, column, row) |= IN_RING;
    return OJ_OK;
}

static oj_status settle_row(const struct feature_trace *w,
                            const struct oj_located_ring *ring,
                            const struct range *range, int32_t row,
                            struct oj_error *err)
{
    const uint8_t *cell = at(w, range->x0, row);
    int32_t n = range->x1 - range->x0 + 1;
    for (int32_t i = 0; i < n;)
    {
        int32_t first = i;
        while (i < n && (cell[i] & EDGE) == 0)
            i++;
        if (i > first)
            OJ_TRY(settle_run(w, ring, range, row, range->x0 + first,
                              range->x0 + i, err));
        while (i < n && (cell[i] & EDGE) != 0)
            i++;
    }
    return OJ_OK;
}

static oj_status add_candidate(struct oj_cell_trace *t, int64_t cell,
                               int32_t ring, struct oj_error *err)
{
    if (t->n_candidates == t->cap_candidates)
        OJ_TRY(oj_reserve(&t->candidate, t->n_candidates,
                          t->n_candidates + 4096, &t->cap_candidates,
                          sizeof *t->candidate, err));
    t->candidate[t->n_candidates].cell = (uint32_t)cell;
    t->candidate[t->n_candidates++].ring = ring;
    return OJ_OK;
}

/* From what the raster says of the ring to what it says of the feature. */
static oj_status take_ring(const struct feature_trace *w, int32_t ring,
                           const struct range *range, struct oj_error *err)
{
    for (int32_t row = range->y0; row <= range->y1; row++)
    {
        uint8_t *cell = at(w, range->x0, row);
        int64_t number = (int64_t)row * w->known->nx + range->x0;
        for (int32_t i = 0; i <= range->x1 - range->x0; i++)
        {
            if ((cell[i] & EDGE) != 0)
            {
                cell[i] |= PARTIAL;
                OJ_TRY(add_candidate(w->trace, number + i, ring, err));
            }
            else if ((cell[i] & IN_RING) != 0)
                cell[i] ^= ODD;
            cell[i] &= (uint8_t) ~(EDGE | IN_RING);
        }
    }
    return OJ_OK;
}

static oj_status trace_ring(const struct feature_trace *w, int32_t r,
                            struct oj_error *err)
{
    const struct oj_located_ring *ring = &w->cells->ring[r];
    struct range range;
    if (ring->n_vertices < 1)
        return OJ_OK;
    range = range_of(w, ring);
    mark_edges(w, ring);
    for (int32_t row = range.y0; row <= range.y1; row++)
        OJ_TRY(settle_row(w, ring, &range, row, err));
    return take_ring(w, r, &range, err);
}

/* --- features ------------------------------------------------------------- */

static oj_status add_turn(struct oj_cell_trace *t, int64_t cell,
                          int64_t feature, struct oj_error *err)
{
    if (t->n_turns == t->cap_turns)
        OJ_TRY(oj_reserve(&t->turn, t->n_turns, t->n_turns + 4096,
                          &t->cap_turns, sizeof *t->turn, err));
    t->turn[t->n_turns].key = (uint64_t)cell;
    t->turn[t->n_turns++].value = feature;
    return OJ_OK;
}

static oj_status take_row(const struct feature_trace *w, int64_t feature,
                          int32_t ring, int32_t row, int knows_inside,
                          struct oj_error *err)
{
    const uint8_t *cell = at(w, w->all.x0, row);
    int64_t first = (int64_t)row * w->known->nx + w->all.x0;
    int is_held = 0;
    for (int64_t i = 0; i <= w->width; i++)
    {
        int holds = i < w->width && cell[i] == ODD && knows_inside;
        if (holds != is_held)
            OJ_TRY(add_turn(w->trace, first + i, feature, err));
        is_held = holds;
        if (i < w->width && cell[i] == (ODD | PARTIAL))
            OJ_TRY(add_candidate(w->trace, first + i, ~ring, err));
    }
    return OJ_OK;
}

static int64_t first_ring(const struct oj_flat *flat, int64_t feature)
{
    return flat->ring_offset[flat->part_offset[feature]];
}

oj_status oj_cell_trace_feature(struct oj_cell_trace *trace,
                                const struct oj_known_cells *known,
                                struct oj_ring_cells *cells, int64_t feature,
                                int knows_inside, struct oj_error *err)
{
    struct feature_trace w = {
        trace, known, cells, {INT32_MAX, INT32_MAX, -1, -1}, 0};
    int32_t first = (int32_t)first_ring(cells->flat, feature);
    int32_t end = (int32_t)first_ring(cells->flat, feature + 1);
    int64_t n_cells;
    for (int32_t r = first; r < end; r++)
    {
        struct range range;
        if (cells->ring[r].n_vertices < 1)
            continue;
        range = range_of(&w, &cells->ring[r]);
        w.all.x0 = range.x0 < w.all.x0 ? range.x0 : w.all.x0;
        w.all.y0 = range.y0 < w.all.y0 ? range.y0 : w.all.y0;
        w.all.x1 = range.x1 > w.all.x1 ? range.x1 : w.all.x1;
        w.all.y1 = range.y1 > w.all.y1 ? range.y1 : w.all.y1;
    }
    if (w.all.x1 < 0)
        return OJ_OK;
    w.width = w.all.x1 - w.all.x0 + 1;
    n_cells = w.width * (w.all.y1 - w.all.y0 + 1);
    OJ_TRY(oj_reserve(&trace->raster, 0, n_cells, &trace->cap_raster, 1, err));
    memset(trace->raster, 0, (size_t)n_cells);
    for (int32_t r = first; r < end; r++)
        OJ_TRY(trace_ring(&w, r, err));
    for (int32_t row = w.all.y0; row <= w.all.y1; row++)
        OJ_TRY(take_row(&w, feature, first, row, knows_inside, err));
    return OJ_OK;
}

void oj_cell_trace_free(struct oj_cell_trace *trace)
{
    oj_free(trace->candidate);
    oj_free(trace->turn);
    oj_free(trace->raster);
    memset(trace, 0, sizeof *trace);
}
