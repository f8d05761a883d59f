#include "cpu_ring_box_index.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_compare.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../foundations/base/cpu_lane_loops.h"
#include "../../foundations/base/oj_feature_box.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* --- boxes in u and v, the coordinates along the axes of cells ------------ */

/* Returns the box of n vertices, in u and v if is_turned is 1, otherwise in x
 * and y. */
OJ_INLINE struct oj_box box_of_vertices(const struct oj_ring_axes *axes,
                                        int is_turned, const double *x,
                                        const double *y, int64_t n)
{
    struct oj_box box = oj_box_empty();
    for (int64_t i = 0; i < n; i++)
        oj_box_add_point(&box,
                         is_turned ? oj_ring_axes_u(axes, x[i], y[i]) : x[i],
                         is_turned ? oj_ring_axes_v(axes, x[i], y[i]) : y[i]);
    return box;
}

/* Returns the box of a ring in u and v. If the axes are rotated, the box is
 * widened by more than the rounding error of u and v of any point in the
 * ring. */
static OJ_CLONES struct oj_box box_of_ring(const struct oj_ring_cells *cells,
                                           int64_t r)
{
    const struct oj_located_ring *ring = &cells->ring[r];
    const struct oj_ring_axes axes = cells->axes;
    const double *x = cells->flat->x + ring->first_vertex;
    const double *y = cells->flat->y + ring->first_vertex;
    struct oj_box box;
    double reach;
    if (!axes.is_turned && ring->grid >= 0)
    {
        const struct oj_edge_extent *e = &cells->grid[ring->grid].extent;
        box.x0 = e->x0, box.y0 = e->y0;
        box.x1 = e->x1, box.y1 = e->y1;
        return box;
    }
    if (!axes.is_turned)
        return box_of_vertices(&axes, 0, x, y, ring->n_vertices);
    box = box_of_vertices(&axes, 1, x, y, ring->n_vertices);
    reach = fmax(fabs(box.x0), fabs(box.x1)) + fmax(fabs(box.y0), fabs(box.y1));
    reach *= 1e-14;
    box.x0 -= reach;
    box.y0 -= reach;
    box.x1 += reach;
    box.y1 += reach;
    return box;
}

/* --- choice of the axes --------------------------------------------------- */

/* Bins of the histogram of directions, one degree each. Directions at right
 * angles share a bin. */
#define N_DIRECTIONS 90
#define AXES_SAMPLES 256
/* Maximum vertices of a ring in the sample for the axes. */
#define AXES_VERTICES 24
/* Axes are not rotated if a layer's rings have more vertices than this on
 * average. */
#define AXES_MEAN 48
/* Axes are not rotated if coordinates are larger than this, so that nothing
 * overflows. */
#define AXES_SIZE 1e100

/* Returns the sum of the box areas of a sample of small rings, with the present
 * axes. */
static double sum_sampled_box_areas(const struct oj_ring_cells *cells)
{
    double sum = 0.0;
    for (int64_t i = 0; i < AXES_SAMPLES; i++)
    {
        int64_t r = cells->n_rings * i / AXES_SAMPLES;
        struct oj_box box;
        if (cells->ring[r].n_vertices < 1 ||
            cells->ring[r].n_vertices > AXES_VERTICES)
            continue;
        box = box_of_ring(cells, r);
        sum += (box.x1 - box.x0) * (box.y1 - box.y0);
    }
    return sum;
}

/* Returns the main direction, in radians, of the edges of sampled rings,
 * weighted by length; NaN if there is none, or coordinates are too large. */
static double find_main_direction(const struct oj_ring_cells *cells)
{
    const double quarter = 1.5707963267948966;
    double length_in[N_DIRECTIONS] = {0.0}, sum_of[N_DIRECTIONS] = {0.0};
    int best = 0;
    for (int64_t i = 0; i < AXES_SAMPLES; i++)
    {
        int64_t r = cells->n_rings * i / AXES_SAMPLES;
        const struct oj_located_ring *ring = &cells->ring[r];
        const double *x = cells->flat->x + ring->first_vertex;
        const double *y = cells->flat->y + ring->first_vertex;
        if (ring->n_vertices > AXES_VERTICES)
            continue;
        for (int64_t v = 0; v + 1 < ring->n_vertices; v++)
        {
            double dx = x[v + 1] - x[v], dy = y[v + 1] - y[v];
            double length = fabs(dx) + fabs(dy), angle = atan2(dy, dx);
            int at;
            if (!(fabs(x[v]) + fabs(y[v]) < AXES_SIZE))
                return NAN;
            angle -= quarter * floor(angle / quarter);
            at = (int)(angle / quarter * N_DIRECTIONS);
            at = at < 0 ? 0 : at < N_DIRECTIONS ? at : N_DIRECTIONS - 1;
            length_in[at] += length;
            sum_of[at] += length * angle;
        }
    }
    for (int d = 1; d < N_DIRECTIONS; d++)
        best = length_in[d] > length_in[best] ? d : best;
    return sum_of[best] / length_in[best];
}

/* Rotates the axes to the main direction if this reduces the sum of the sampled
 * box areas by more than a quarter. */
static void rotate_axes_if_boxes_shrink(struct oj_ring_cells *cells)
{
    struct oj_ring_axes turned = {1, 0.0, 0.0, 1.0, 0.0};
    double direction, plain;
    const struct oj_located_ring *middle = &cells->ring[cells->n_rings / 2];
    if (cells->flat->n_vertices > AXES_MEAN * cells->n_rings)
        return;
    direction = find_main_direction(cells);
    if (!(direction == direction) || middle->n_vertices < 1)
        return;
    plain = sum_sampled_box_areas(cells);
    turned.x0 = cells->flat->x[middle->first_vertex];
    turned.y0 = cells->flat->y[middle->first_vertex];
    turned.cos = cos(direction);
    turned.sin = sin(direction);
    if (!(fabs(turned.x0) + fabs(turned.y0) < AXES_SIZE))
        return;
    cells->axes = turned;
    if (!(sum_sampled_box_areas(cells) < 0.75 * plain))
        cells->axes.is_turned = 0;
}

/* --- extent and number of cells of a layer -------------------------------- */

/* Maximum cells along an axis of the last, coarsest grid (layer) of a set. */
#define LAST_ALONG 8

/* Target number of cells per ring; CELLS_PER_RING_OF_FEW is used for layers of
 * fewer than FEW_RINGS rings. More cells take more memory and time to build;
 * fewer cells have more entries each. */
#define CELLS_PER_RING 1.0
#define CELLS_PER_RING_OF_FEW 4.0
#define FEW_RINGS 4096
#define MOST_CELLS (1 << 26)
/* Maximum cells along an axis, so that steps fit into 32 bits. */
#define MOST_ALONG (1 << 22)

#define N_SAMPLES 1024

/* Up to 1 + n / FAR_OF of n sampled rings at each end of the extent are treated
 * as outliers, if the extent of all others is shorter than 1 / FAR_DEVIATIONS
 * of it. */
#define FAR_OF 64
#define FAR_DEVIATIONS 6.0

struct ring_sample
{
    struct oj_box all;
    double width, height; /* mean width and height of a ring's box */
    double low[2][N_SAMPLES],
        high[2][N_SAMPLES]; /* lower and upper limits of the sampled boxes, [0]
                               in x and [1] in y */
};

/* Shortens the extent *first .. *last along an axis if a few outliers would
 * otherwise put most rings into one cell. low [n] and high [n] are the limits
 * of the rings along the axis; both may be reordered. Outliers are clamped to
 * the border cells, so they are not lost. */
static void trim_far_rings_from_extent(int64_t n, double *low, double *high,
                                       double *first, double *last)
{
    double length = *last - *first, sum = 0.0, sum_squares = 0.0, mean;
    int64_t n_far = 1 + n / FAR_OF;
    if (n < FAR_OF / 4)
        return;
    for (int64_t i = 0; i < n; i++)
    {
        double at = (low[i] - *first) / length;
        sum += at;
        sum_squares += at * at;
    }
    mean = sum / (double)n;
    /* Evenly distributed rings have an extent of 3.5 standard deviations. */
    if (!(sum_squares / (double)n - mean * mean <
          1.0 / (FAR_DEVIATIONS * FAR_DEVIATIONS)))
        return;
    qsort(low, (size_t)n, sizeof *low, oj_compare_doubles);
    qsort(high, (size_t)n, sizeof *high, oj_compare_doubles);
    if (high[n - 1 - n_far] - low[n_far] < length / FAR_DEVIATIONS)
    {
        *first = low[n_far];
        *last = high[n - 1 - n_far];
    }
}

/* Samples rings at equal distances in the list; records their boxes, clipped to
 * `clip`, and in s->all their extent without outliers. */
static void sample_ring_boxes(const struct oj_ring_cells *cells,
                              const int32_t *ring, int64_t n_rings,
                              const struct oj_box *clip, struct ring_sample *s)
{
    int64_t n = n_rings < N_SAMPLES ? n_rings : N_SAMPLES, n_taken = 0;
    s->all = oj_box_empty();
    s->width = s->height = 0.0;
    for (int64_t i = 0; i < n; i++)
    {
        int64_t at = n == n_rings
                         ? i
                         : (int64_t)((double)n_rings / (double)n * (double)i);
        int64_t r = ring != NULL ? ring[at] : at;
        struct oj_box box;
        if (cells->ring[r].n_vertices < 1)
            continue;
        box = box_of_ring(cells, r);
        box.x0 = fmin(fmax(box.x0, clip->x0), clip->x1);
        box.y0 = fmin(fmax(box.y0, clip->y0), clip->y1);
        box.x1 = fmin(fmax(box.x1, clip->x0), clip->x1);
        box.y1 = fmin(fmax(box.y1, clip->y0), clip->y1);
        oj_box_add_box(&s->all, &box);
        s->width += (box.x1 - box.x0) / (double)n;
        s->height += (box.y1 - box.y0) / (double)n;
        s->low[0][n_taken] = box.x0;
        s->low[1][n_taken] = box.y0;
        s->high[0][n_taken] = box.x1;
        s->high[1][n_taken] = box.y1;
        n_taken++;
    }
    if (n_taken == 0)
        memset(&s->all, 0, sizeof s->all);
    trim_far_rings_from_extent(n_taken, s->low[0], s->high[0], &s->all.x0,
                               &s->all.x1);
    trim_far_rings_from_extent(n_taken, s->low[1], s->high[1], &s->all.y0,
                               &s->all.y1);
}

static double clamp_between(double v, double least, double most)
{
    return v > least ? v < most ? v : most : least;
}

/* Returns the number of cells along an axis of this length; 1 if the length is
 * 0 or infinite. */
static int32_t count_cells_along(double length, double cell, double most)
{
    if (!(length > 0.0) || !(length < INFINITY) || !(cell > 0.0))
        return 1;
    return (int32_t)clamp_between(ceil(length / cell), 1.0, most);
}

static double steps_per_unit(double length, int32_t n)
{
    double scale = (double)n * OJ_CELL_STEPS / length;
    return length > 0.0 && scale > 0.0 && scale < INFINITY ? scale : 0.0;
}

/* Chooses the extent and number of cells. The target is CELLS_PER_RING cells
 * per ring; for fewer than FEW_RINGS rings CELLS_PER_RING_OF_FEW per ring and
 * 64 more. Cells have the proportions of the mean ring box, and at least a
 * quarter of its width and height. */
static void choose_grid_extent_and_size(const struct oj_ring_cells *cells,
                                        const int32_t *ring, int64_t n_rings,
                                        const struct oj_box *clip, int is_last,
                                        struct oj_ring_layer *layer)
{
    struct ring_sample s;
    double most = is_last ? LAST_ALONG : MOST_ALONG;
    double n = (double)n_rings;
    double target = n < FEW_RINGS ? n * CELLS_PER_RING_OF_FEW + 64.0
                                  : fmax(n * CELLS_PER_RING, 4.0 * FEW_RINGS);
    double width, height, shape, side;
    sample_ring_boxes(cells, ring, n_rings, clip, &s);
    width = s.all.x1 - s.all.x0;
    height = s.all.y1 - s.all.y0;
    shape = sqrt(s.width / s.height);
    shape = shape > 0.0 ? clamp_between(shape, 1.0 / 16.0, 16.0) : 1.0;
    target = fmin(target, MOST_CELLS);
    /* Adds a margin without rings, for points outside of all rings. */
    layer->x0 = s.all.x0 - width / 64.0;
    layer->y0 = s.all.y0 - height / 64.0;
    width += width / 32.0;
    height += height / 32.0;
    side = sqrt(width / target) * sqrt(height);
    layer->nx =
        count_cells_along(width, fmax(side * shape, s.width / 4.0), most);
    layer->ny =
        count_cells_along(height, fmax(side / shape, s.height / 4.0),
                          clamp_between(2.0 * target / layer->nx, 1.0, most));
    layer->scale_x = steps_per_unit(width, layer->nx);
    layer->scale_y = steps_per_unit(height, layer->ny);
    layer->last_x = (double)layer->nx * OJ_CELL_STEPS - 1.0;
    layer->last_y = (double)layer->ny * OJ_CELL_STEPS - 1.0;
}

/* --- layers of cells ------------------------------------------------------ */

/* A ring that intersects more cells of a layer than this is put into the next,
 * coarser layer. It is the greatest number of cells that the last layer has. */
#define MOST_SPAN (LAST_ALONG * LAST_ALONG)

/* If a layer has at most FEW_CELLS cells and its large rings add at most
 * FEW_ENTRIES entries per cell on average, they nevertheless stay in this
 * layer: a search of one more layer would cost more. */
#define FEW_CELLS 32768
#define FEW_ENTRIES 6

/* A cell with more than MOST_ENTRIES entries is subdivided, if the box of an
 * entry covers on average less than MOST_COVERED of it, so that smaller cells
 * separate the boxes. Cells are subdivided down to depth MOST_DEPTH. */
#define MOST_ENTRIES 48
#define MOST_COVERED 0.25
#define MOST_DEPTH 6

#define RINGS_AT_ONCE 4096

/* The range of steps (fractions of cells) that a ring's box covers. A negative
 * x0 means that the ring has no entries in this layer: x0 is NO_STEPS if the
 * ring has no vertices; otherwise the ring was deferred to the next layer, and
 * its first step is ~x0. */
#define NO_STEPS INT32_MIN

struct steps
{
    int32_t x0, y0, x1, y1;
};

/* State while one layer of a set is built. */
struct ring_layer_build
{
    struct oj_ring_cells *cells;
    struct oj_ring_layer *layer;
    int n_threads;
    const int32_t *ring; /* [n] rings to put into the layer; NULL for all
                            rings */
    int64_t n;
    struct steps *steps;            /* [n] range of each ring */
    int32_t *rest;                  /* [n_rest] rings deferred to the next
                                       layer */
    atomic_llong n_rest, rest_span; /* rest_span: sum over deferred rings of the
                                       cells that each would intersect */
};

/* --- counting and filling ------------------------------------------------- */

/* Increments the counter of a cell and returns its previous value. In the first
 * pass counters count entries; in the second they are positions to write. */
static inline uint32_t increment_cell_counter(const struct ring_layer_build *b,
                                              int64_t cell)
{
    uint32_t *place = &b->layer->first[cell];
    if (b->n_threads > 1)
        return __atomic_fetch_add(place, 1, __ATOMIC_RELAXED);
    return (*place)++;
}

static void count_ring_in_its_cells(const struct ring_layer_build *b,
                                    const struct steps *s)
{
    int32_t last_column = s->x1 / OJ_CELL_STEPS;
    int32_t last_row = s->y1 / OJ_CELL_STEPS;
    for (int32_t row = s->y0 / OJ_CELL_STEPS; row <= last_row; row++)
    {
        for (int32_t c = s->x0 / OJ_CELL_STEPS; c <= last_column; c++)
            increment_cell_counter(b, (int64_t)row * b->layer->nx + c);
    }
}

static int64_t count_covered_cells(const struct steps *s)
{
    return (int64_t)(s->x1 / OJ_CELL_STEPS - s->x0 / OJ_CELL_STEPS + 1) *
           (s->y1 / OJ_CELL_STEPS - s->y0 / OJ_CELL_STEPS + 1);
}

static void compute_and_count_ring_cells(int64_t first, int64_t end, void *user)
{
    struct ring_layer_build *b = user;
    const struct oj_ring_layer *layer = b->layer;
    for (int64_t i = first; i < end; i++)
    {
        int64_t r = b->ring != NULL ? b->ring[i] : i;
        struct steps *s = &b->steps[i];
        struct oj_box box;
        s->x0 = NO_STEPS;
        if (b->cells->ring[r].n_vertices < 1)
            continue;
        box = box_of_ring(b->cells, r);
        s->x0 =
            oj_frame_index(box.x0, layer->x0, layer->scale_x, layer->last_x);
        s->y0 =
            oj_frame_index(box.y0, layer->y0, layer->scale_y, layer->last_y);
        s->x1 =
            oj_frame_index(box.x1, layer->x0, layer->scale_x, layer->last_x);
        s->y1 =
            oj_frame_index(box.y1, layer->y0, layer->scale_y, layer->last_y);
        if (count_covered_cells(s) <= MOST_SPAN)
            count_ring_in_its_cells(b, s);
        else
        {
            atomic_fetch_add(&b->rest_span, count_covered_cells(s));
            b->rest[atomic_fetch_add(&b->n_rest, 1)] = (int32_t)r;
            s->x0 = ~s->x0;
        }
    }
}

/* Adds the rings that were deferred because they are large to this layer after
 * all. */
static void insert_deferred_rings(struct ring_layer_build *b)
{
    for (int64_t i = 0; i < b->n; i++)
    {
        struct steps *s = &b->steps[i];
        if (s->x0 >= 0 || s->x0 == NO_STEPS)
            continue;
        s->x0 = ~s->x0;
        count_ring_in_its_cells(b, s);
    }
    atomic_store(&b->n_rest, 0);
}

/* Returns the bit mask of the subcells of a cell from step (x0, y0) to (x1,
 * y1). */
static uint64_t mask_of_subcells_in_range(int32_t x0, int32_t y0, int32_t x1,
                                          int32_t y1)
{
    int32_t column = x0 / OJ_SUBCELL_STEPS, last_column = x1 / OJ_SUBCELL_STEPS;
    int32_t row = y0 / OJ_SUBCELL_STEPS, last_row = y1 / OJ_SUBCELL_STEPS;
    uint64_t columns = (UINT64_C(0xff) >> (7 - last_column + column)) << column;
    uint64_t rows = UINT64_C(0x0101010101010101) >> (8 * (7 - last_row + row));
    return (columns * rows) << (8 * row);
}

static int32_t larger_step(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static int32_t smaller_step(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static void add_ring_to_cell(const struct ring_layer_build *b,
                             const struct steps *s, int32_t r, int32_t column,
                             int32_t row)
{
    struct oj_ring_layer *layer = b->layer;
    int64_t cell = (int64_t)row * layer->nx + column;
    int32_t left = column * OJ_CELL_STEPS, low = row * OJ_CELL_STEPS;
    int32_t x0 = larger_step(s->x0 - left, 0), y0 = larger_step(s->y0 - low, 0);
    int32_t x1 = smaller_step(s->x1 - left, OJ_CELL_STEPS - 1);
    int32_t y1 = smaller_step(s->y1 - low, OJ_CELL_STEPS - 1);
    struct oj_ring_entry *entry =
        &layer->entry[increment_cell_counter(b, cell)];
    uint64_t mask = mask_of_subcells_in_range(x0, y0, x1, y1);
    entry->steps = (uint32_t)x0 | (uint32_t)y0 << 8 |
                   (uint32_t)(OJ_CELL_STEPS - 1 - x1) << 16 |
                   (uint32_t)(OJ_CELL_STEPS - 1 - y1) << 24;
    entry->ring = r;
    if (b->n_threads > 1)
        __atomic_fetch_or(&layer->mask[cell], mask, __ATOMIC_RELAXED);
    else
        layer->mask[cell] |= mask;
}

static void add_rings_to_their_cells(int64_t first, int64_t end, void *user)
{
    struct ring_layer_build *b = user;
    for (int64_t i = first; i < end; i++)
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
                add_ring_to_cell(b, s, r, column, row);
        }
    }
}

static oj_status build_grid_layer(struct ring_layer_build *b,
                                  const struct oj_box *clip, int is_last,
                                  struct oj_error *err)
{
    struct oj_ring_layer *layer = b->layer;
    int64_t n_cells, total = 0;
    choose_grid_extent_and_size(b->cells, b->ring, b->n, clip, is_last, layer);
    n_cells = (int64_t)layer->nx * layer->ny;
    OJ_NEW_ZEROED(layer->mask, n_cells + 1, err);
    OJ_NEW_ZEROED(layer->first, n_cells + 1, err);
    OJ_NEW(b->steps, b->n, err);
    OJ_NEW(b->rest, b->n, err);
    oj_parallel_slices(b->n_threads, b->n, RINGS_AT_ONCE,
                       compute_and_count_ring_cells, b);
    if (n_cells <= FEW_CELLS &&
        atomic_load(&b->rest_span) <= FEW_ENTRIES * n_cells)
        insert_deferred_rings(b);
    for (int64_t cell = 0; cell <= n_cells; cell++)
    {
        int64_t n = layer->first[cell];
        layer->first[cell] = (uint32_t)total;
        total += n;
    }
    if (total > UINT32_MAX)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the boxes of the polygons overlap too much for an "
                       "index of 2^32 entries: split large polygons");
    OJ_NEW(layer->entry, total, err);
    oj_parallel_slices(b->n_threads, b->n, RINGS_AT_ONCE,
                       add_rings_to_their_cells, b);
    /* After filling, each element is the start of the next cell: shifts them by
     * one. */
    memmove(layer->first + 1, layer->first,
            (size_t)n_cells * sizeof *layer->first);
    layer->first[0] = 0;
    return OJ_OK;
}

/* --- sets of layers ------------------------------------------------------- */

static oj_status build_grid_layers_of_rings(struct oj_ring_cells *cells,
                                            const int32_t *ring, int64_t n,
                                            const struct oj_box *clip,
                                            int depth, int n_threads,
                                            int64_t *out, struct oj_error *err);

/* Returns 1 if smaller cells would separate the entries of a cell. */
static int is_cell_worth_subdividing(const struct oj_ring_layer *layer,
                                     int64_t cell)
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

/* Returns the part of clip that is in a cell. Border cells extend without
 * limit. */
static struct oj_box box_of_cell(const struct oj_ring_layer *layer,
                                 int64_t cell, const struct oj_box *clip)
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

static oj_status subdivide_cell(struct oj_ring_cells *cells,
                                struct oj_ring_layer *layer, int64_t cell,
                                const struct oj_box *clip, int depth,
                                int n_threads, struct oj_error *err)
{
    int64_t n_cells = (int64_t)layer->nx * layer->ny, set;
    int64_t first = layer->first[cell], n = layer->first[cell + 1] - first;
    struct oj_box box = box_of_cell(layer, cell, clip);
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
    status = build_grid_layers_of_rings(cells, ring, n, &box, depth + 1,
                                        n_threads, &set, err);
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
}

/* Builds a set of layers for the rings, appends it to cells->set, and sets *out
 * to its index there. A layer leaves its large rings to the next. */
static oj_status build_grid_layers_of_rings(struct oj_ring_cells *cells,
                                            const int32_t *ring, int64_t n,
                                            const struct oj_box *clip,
                                            int depth, int n_threads,
                                            int64_t *out, struct oj_error *err)
{
    struct oj_ring_set set;
    struct ring_layer_build b = {.cells = cells,
                                 .n_threads = n < RINGS_AT_ONCE ? 1 : n_threads,
                                 .ring = ring,
                                 .n = n};
    int32_t *rest = NULL; /* owns b.ring, except for the first layer */
    oj_status status = OJ_OK;
    memset(&set, 0, sizeof set);
    while (status == OJ_OK && b.n > 0)
    {
        struct oj_ring_layer *layer = &set.layer[set.n_layers++];
        b.layer = layer;
        atomic_init(&b.n_rest, 0);
        atomic_init(&b.rest_span, 0);
        status = build_grid_layer(
            &b, clip, set.n_layers == OJ_RING_LAYERS || b.n < 8, err);
        for (int64_t cell = 0; status == OJ_OK && depth < MOST_DEPTH &&
                               cell < (int64_t)layer->nx * layer->ny;
             cell++)
        {
            if (is_cell_worth_subdividing(layer, cell))
                status = subdivide_cell(cells, layer, cell, clip, depth,
                                        n_threads, err);
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

/* --- grids of large rings, built when points need them -------------------- */

/* Minimum vertices of a ring with a grid. */
#define GRID_VERTICES 32

/* A ring that was tested this many times is likely to be tested again, so it
 * gets a grid. */
#define ASKED_BEFORE 2

/* If there are at least MANY_POINTS points per ring, a ring of LARGE or more
 * vertices gets a grid when it is first tested. */
#define MANY_POINTS 8
#define LARGE 256

/* Maximum number of cells that a grid gets at a rate of one cell per expected
 * point. The number of vertices may require more. */
#define MOST_PAID 4096.0

/* Number of points that is assumed if it is not known. If more have been joined
 * so far, their number is used. (A smaller number so far is not used: a grid is
 * built only once, and the first points may be a small sample.) */
#define UNKNOWN_POINTS 65536.0

#define LARGE_AT_ONCE 256

static void measure_extents_of_large_rings(int64_t first, int64_t end,
                                           void *user)
{
    struct oj_ring_cells *cells = user;
    for (int64_t r = first; r < end; r++)
    {
        const struct oj_located_ring *ring = &cells->ring[r];
        if (ring->grid >= 0)
            cells->grid[ring->grid].extent = oj_edge_measure_extent(
                cells->flat->x + ring->first_vertex,
                cells->flat->y + ring->first_vertex, ring->n_vertices);
    }
}

static oj_status assign_grids_to_large_rings(struct oj_ring_cells *cells,
                                             int n_threads,
                                             struct oj_error *err)
{
    int64_t n = 0;
    for (int64_t r = 0; r < cells->n_rings; r++)
    {
        if (cells->ring[r].n_vertices >= GRID_VERTICES)
            cells->ring[r].grid = (int32_t)n++;
    }
    if (n == 0)
        return OJ_OK;
    OJ_NEW(cells->grid, n, err);
    memset(cells->grid, 0, (size_t)n * sizeof *cells->grid);
    cells->n_grids = n;
    for (int64_t i = 0; i < n; i++)
    {
        atomic_init(&cells->grid[i].n_asked, 0);
        atomic_init(&cells->grid[i].is_taken, 0);
    }
    oj_parallel_slices(n_threads, cells->n_rings, LARGE_AT_ONCE,
                       measure_extents_of_large_rings, cells);
    return OJ_OK;
}

/* Returns the number of tests of a ring that read all its edges before a grid
 * is built for it. */
static int count_tests_before_grid(const struct oj_ring_cells *cells,
                                   const struct oj_located_ring *ring)
{
    return ring->n_vertices >= LARGE &&
                   cells->n_points / MANY_POINTS >= cells->n_rings
               ? 0
               : ASKED_BEFORE;
}

/* Returns the minimum number of cells of a ring's grid: the number of points
 * with which the ring is expected to be tested, at most MOST_PAID. */
static double min_cells_of_ring_grid(const struct oj_ring_cells *cells)
{
    double n =
        cells->n_expected > 0 ? (double)cells->n_expected : UNKNOWN_POINTS;
    return fmin(fmax(n, (double)cells->n_points) / (double)cells->n_rings,
                MOST_PAID);
}

/* Adds the feature of the ring to the message of an error. */
static oj_status fail_grid_of_ring(const struct oj_ring_cells *cells,
                                   const struct oj_located_ring *ring,
                                   oj_status status,
                                   const struct oj_error *reason,
                                   struct oj_error *err)
{
    const int64_t *fid = cells->flat->fid;
    if (status != OJ_ERR_LIMIT)
        return oj_fail(err, status, "%s", reason->message);
    return oj_fail(
        err, status, "feature %lld of the join layer: %.800s",
        (long long)(fid != NULL ? fid[ring->feature] : ring->feature),
        reason->message);
}

/* Builds the grid in one thread. Other threads do not wait for it; they test
 * all edges of the ring meanwhile. */
oj_status oj_ring_cells_build_grid(struct oj_ring_cells *cells,
                                   const struct oj_located_ring *ring,
                                   const struct oj_edge_grid **out,
                                   struct oj_error *err)
{
    struct oj_late_grid *late = &cells->grid[ring->grid];
    int n_asked = atomic_fetch_add(&late->n_asked, 1);
    struct oj_error reason;
    oj_status status;
    *out = NULL;
    if (n_asked >= OJ_GRID_IS_READY)
    {
        *out = &late->grid;
        return OJ_OK;
    }
    if (n_asked < count_tests_before_grid(cells, ring) ||
        atomic_exchange(&late->is_taken, 1) != 0)
        return OJ_OK;
    status = oj_edge_grid_of_ring(
        &late->grid, cells->flat->x + ring->first_vertex,
        cells->flat->y + ring->first_vertex, ring->n_vertices, &late->extent,
        min_cells_of_ring_grid(cells), &reason);
    if (status != OJ_OK)
    {
        atomic_store(&late->is_taken, 0); /* a later test may try again */
        return fail_grid_of_ring(cells, ring, status, &reason, err);
    }
    atomic_fetch_add(&cells->new_bytes, oj_edge_grid_bytes(&late->grid));
    atomic_store_explicit(&late->n_asked, OJ_GRID_IS_READY,
                          memory_order_release);
    *out = &late->grid;
    return OJ_OK;
}

/* --- the whole index ------------------------------------------------------ */

static void list_rings(int64_t begin, int64_t end, void *user)
{
    struct oj_ring_cells *cells = user;
    const struct oj_flat *flat = cells->flat;
    for (int64_t f = begin; f < end; f++)
    {
        int64_t part = flat->part_offset[f];
        int64_t first = flat->ring_offset[part];
        int64_t last = flat->ring_offset[flat->part_offset[f + 1]];
        int is_left_out = flat->overlaps != NULL && flat->overlaps[f];
        for (int64_t r = first; r < last; r++)
        {
            struct oj_located_ring *ring = &cells->ring[r];
            int64_t n_vertices;
            while (r >= flat->ring_offset[part + 1])
                part++;
            ring->first_vertex = flat->vertex_offset[r];
            /* A count beyond int32_t is clamped; building the grid then reports
             * the error. */
            n_vertices = flat->vertex_offset[r + 1] - flat->vertex_offset[r];
            if (is_left_out || flat->part_kind[part] != OJ_PART_POLYGON)
                n_vertices = 0;
            ring->n_vertices =
                (int32_t)(n_vertices < INT32_MAX ? n_vertices : INT32_MAX);
            ring->feature = (int32_t)f;
            ring->part = (int32_t)part;
            ring->grid = -1;
        }
    }
}

oj_status oj_ring_cells_build(struct oj_ring_cells *cells,
                              const struct oj_flat *flat, int64_t n_expected,
                              int n_threads, struct oj_error *err)
{
    const struct oj_box everywhere = {-INFINITY, -INFINITY, INFINITY, INFINITY};
    int64_t set;
    oj_status status;
    memset(cells, 0, sizeof *cells);
    cells->flat = flat;
    cells->kernel = oj_ring_kernel();
    cells->n_rings = flat->n_rings;
    cells->n_expected = n_expected;
    if (cells->n_rings > INT32_MAX)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the join layer has %lld polygon rings; an index can "
                       "hold at most %d: split the layer",
                       (long long)cells->n_rings, INT32_MAX);
    if (cells->n_rings == 0)
        return OJ_OK;
    OJ_NEW(cells->ring, cells->n_rings, err);
    oj_parallel_slices(n_threads, flat->n_features, RINGS_AT_ONCE, list_rings,
                       cells);
    rotate_axes_if_boxes_shrink(cells);
    status = assign_grids_to_large_rings(cells, n_threads, err);
    if (status == OJ_OK)
        status = build_grid_layers_of_rings(
            cells, NULL, cells->n_rings, &everywhere, 0, n_threads, &set, err);
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
