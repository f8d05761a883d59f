/** Paper: Zhang, You, Gruenwald 2012, "High-Performance Spatial Join Processing
 *  on GPGPUs with Applications to Large-Scale Taxi Trip Data", sections 3.2 to
 *  3.4.
 *
 *  points --codes, sort, split--> quadrants --boxes--> windows
 *      windows x cells --count, scan, fill--> (quadrant, feature) pairs
 *          pairs --a block per few pairs of a quadrant--> nearest of each point
 *
 *  Method and differences: see algs/papers/quadrants.c, the version for one CPU
 *  thread. This one needs a maximum distance, and it makes and processes as
 *  many pairs at a time as fit into memory. It is the backend
 *  "cuda_quadrant".
 */
#include "../foundations/device/cuda_box_reduce.cuh"
#include "../foundations/device/cuda_host_threads.h"
#include "../foundations/device/cuda_module_exports.cuh"
#include "../foundations/device/cuda_offset_search.cuh"
#include "../foundations/device/cuda_reduce.cuh"

#include "../../algs/foundations/kernels/oj_point_quadrants.h"
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_compare.h"

#include <stdlib.h>

#define BLOCK 256
#define TILE 128 /* threads per block of the last stage */
/* maximum number of pairs of one quadrant that such a block processes */
#define TASK 32
#define WARP 32

enum
{
    /* If device memory is missing, a chunk is halved, but not below this number
     * of rows. */
    LEAST_ROWS = 4096
};

static const int64_t default_size = 256, most_rows = (int64_t)1 << 30;

/* Maximum number of pairs in memory, which is also that between two checks of
 * the cancel flag; a single quadrant may have more. */
static const int64_t most_pairs = (int64_t)1 << 24;

/** The boxes of the join side, in the cells of a grid. */
struct quadrant_cells
{
    double reach;
    struct oj_quadrant_frame frame;
    int64_t n_entries;
    struct oj_box *box; /**< [n_features] */
    uint64_t *cell;     /**< [n_entries] ascending */
    int32_t *feature;   /**< [n_entries] rank */
    int32_t *first;     /**< [n_features + 1] first segment */
    /** [n_segments] OJ_QUADRANT_POLYGON_END or OJ_QUADRANT_LINE_END at the last
     *  segment of a part, 0 elsewhere; NULL if there are no polygons */
    uint8_t *flag;
};

/** Consecutive quadrants whose pairs are in memory at a time. */
struct quadrant_slice
{
    int64_t first, end, n_pairs, n_tasks;
};

/** A chunk of points, passed to kernels by value. The chunk's work owns its
 * arrays; layer and grid are borrowed. */
struct quadrant_chunk
{
    struct oj_cuda_layer layer;
    struct quadrant_cells grid;
    int64_t n;
    double *x, *y, *measure; /**< [n] */
    int32_t *row;            /**< [n] join ordinal or -1 */

    /* Points by quadrant: */
    int64_t n_points; /**< points with coordinates, sorted by quadrant */
    int64_t n_quadrants;
    int32_t *row_of;       /**< [n_points or more] row of each point */
    double *in_x, *in_y;   /**< [n_points] */
    int32_t *first;        /**< [n_quadrants + 1] first point */
    struct oj_box *window; /**< [n_quadrants] */

    /* Number of pairs per quadrant, and the pairs of slice: */
    int64_t n_pairs; /**< pairs of all quadrants */
    int64_t *offset; /**< [n_quadrants + 1] */
    int64_t *task;   /**< [n_quadrants + 1] first task */
    struct quadrant_slice slice;
    struct oj_cuda_array<int32_t> feature;

    /* Nearest features so far: */
    double *distance; /**< [n_points] */
    int32_t *rank;    /**< [n_points] */
    int32_t *lock;    /**< [n_quadrants] 0: free */
    /** [1] number of (point, feature) pairs within the maximum distance. */
    unsigned long long *n_met;
};

struct oj_gpu_quadrant_index
{
    struct oj_options options;
    int interior; /**< 1: the distance to a polygon is 0 inside it */
    struct oj_cuda_device device;
    struct oj_cuda_memory memory; /**< owns the arrays of layer and grid */
    int64_t grid_bytes;
    struct oj_cuda_layer layer;
    struct quadrant_cells grid;
};

/* --- points -----------------------------------------------------------------
 */

/* Assigns points to quadrants: sorts them by code and splits squares level by
 * level. */

/* Bounding box and number of the points with coordinates. */
struct point_extent
{
    struct oj_box box;
    int64_t n;
};

struct extent_of_point
{
    const double *x, *y;

    __device__ struct point_extent operator()(ptrdiff_t i) const
    {
        struct point_extent e = {oj_box_empty(), x[i] == x[i]};
        if (e.n > 0)
            oj_box_add_point(&e.box, x[i], y[i]);
        return e;
    }
};

struct join_point_extents
{
    __device__ struct point_extent
    operator()(struct point_extent a, const struct point_extent &b) const
    {
        oj_box_add_box(&a.box, &b.box);
        a.n += b.n;
        return a;
    }
};

/* A square with too many points, at places first .. end - 1. */
struct square
{
    int32_t first, end;
};

/* Sorts points by Morton code; stable. *code becomes the code of each point;
 * *work owns the array. */
static oj_status sort_points(struct oj_cuda_work *keep,
                             struct oj_cuda_work *work,
                             struct quadrant_chunk *c,
                             const struct oj_box frame, uint64_t **code)
{
    const double *x = c->x, *y = c->y;
    OJ_TRY(keep->order_by<uint64_t>(
        c->n, OJ_QUADRANT_CODE_BITS,
        [=] __device__(int64_t i)
        { return oj_quadrant_code(x[i], y[i], &frame); },
        &c->row_of));
    OJ_TRY(keep->make(c->n_points, &c->in_x, &c->in_y));
    OJ_TRY(work->make(c->n_points, code));
    const int32_t *row_of = c->row_of;
    double *in_x = c->in_x, *in_y = c->in_y;
    uint64_t *to_code = *code;
    return work->each(c->n_points,
                      [=] __device__(int64_t i)
                      {
                          double at_x = x[row_of[i]], at_y = y[row_of[i]];
                          in_x[i] = at_x;
                          in_y[i] = at_y;
                          to_code[i] = oj_quadrant_code(at_x, at_y, &frame);
                      });
}

/* Splits a square into the squares of the next level, whose codes agree in the
 * bits from low_bits on. Squares with too many points are appended to next as
 * open squares, in any order; for others, place is set to 1 at their first
 * point. */
static __device__ void split_square(struct square s, const uint64_t *code,
                                    int low_bits, int64_t size, int32_t *place,
                                    struct square *next,
                                    unsigned long long *n_next)
{
    int64_t first = s.first, end = s.end;
    while (first < end)
    {
        int64_t stop = oj_quadrant_square_end(code, first, end, low_bits);
        if (stop - first > size && low_bits > 0)
            next[atomicAdd(n_next, 1ull)] = {(int32_t)first, (int32_t)stop};
        else
        {
            /* codes have no more bits: the points are divided into runs of at
             * most size points */
            for (int64_t p = first; p < stop; p += size)
                place[p] = 1;
        }
        first = stop;
    }
}

/* Sets place [n + 1] to 1 where a quadrant begins. An open square has more than
 * size points, so there are at most n / size of them. */
static oj_status split_crowded_squares(struct oj_cuda_work *work, int64_t n,
                                       int64_t size, const uint64_t *code,
                                       int32_t *place)
{
    int64_t n_open = n > size, most = n / (size + 1) + 1;
    struct square *open, *next;
    unsigned long long *n_next;
    OJ_TRY(work->make(most, &open, &next));
    OJ_TRY(work->make(1, &n_next));
    OJ_TRY(work->each(1,
                      [=] __device__(int64_t)
                      {
                          place[0] = 1;
                          open[0] = {0, (int32_t)n};
                      }));
    for (int low_bits = OJ_QUADRANT_CODE_BITS - 2; n_open > 0; low_bits -= 2)
    {
        struct square *from = open, *to = next;
        OJ_TRY(work->clear(n_next, 1));
        OJ_TRY(work->each(n_open,
                          [=] __device__(int64_t i) {
                              split_square(from[i], code, low_bits, size, place,
                                           to, n_next);
                          }));
        OJ_TRY(work->read(n_next, &n_open));
        open = to;
        next = from;
    }
    return OJ_OK;
}

/* Computes the window of each quadrant, the box of its points; one warp per
 * quadrant. */
static __global__ void
compute_boxes_of_quadrants(const __grid_constant__ struct quadrant_chunk c)
{
    int64_t q = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / WARP;
    struct oj_box box = oj_box_empty();
    if (q >= c.n_quadrants)
        return;
    for (int p = c.first[q] + (int)threadIdx.x % WARP; p < c.first[q + 1];
         p += WARP)
        oj_box_add_point(&box, c.in_x[p], c.in_y[p]);
    oj_cuda_box_of_warp(&box);
    if (threadIdx.x % WARP == 0)
        c.window[q] = oj_box_widened(&box, 0.0);
}

/* Makes the list of quadrants. On entry, place is 1 where a quadrant begins; on
 * return, it is the number of quadrants before each place. */
static oj_status list_quadrants(struct oj_cuda_work *keep, int32_t *place,
                                struct quadrant_chunk *c)
{
    int32_t n_quadrants = 0, *first;
    int64_t n = c->n_points;
    OJ_TRY(keep->scan_and_read_total(place, n, &n_quadrants));
    c->n_quadrants = n_quadrants;
    OJ_TRY(keep->make(c->n_quadrants + 1, &c->first));
    OJ_TRY(keep->make(c->n_quadrants, &c->window));
    first = c->first;
    OJ_TRY(keep->each(n + 1,
                      [=] __device__(int64_t i)
                      {
                          if (i == n || place[i + 1] != place[i])
                              first[place[i]] = (int32_t)i;
                      }));
    return keep->run<BLOCK>(c->n_quadrants * WARP, compute_boxes_of_quadrants,
                            *c);
}

static oj_status make_quadrants(struct oj_cuda_work *keep, int64_t size,
                                struct quadrant_chunk *c)
{
    struct oj_cuda_work work(keep);
    struct point_extent frame = {oj_box_empty(), 0};
    uint64_t *code = NULL;
    int32_t *place = NULL;
    size = size < c->n ? size : c->n;
    OJ_TRY(oj_cuda_reduce(&work, c->n, extent_of_point{c->x, c->y},
                          join_point_extents(), &frame));
    c->n_points = frame.n;
    if (frame.n == 0)
        return OJ_OK;
    OJ_TRY(sort_points(keep, &work, c, frame.box, &code));
    OJ_TRY(work.allocate_zeros(c->n_points + 1, &place));
    OJ_TRY(split_crowded_squares(&work, c->n_points, size, code, place));
    return list_quadrants(keep, place, c);
}

/* --- the join side ---------------------------------------------------------
 */

/* The join side as boxes and cells, and the last segment of each of its
 * parts. */

#define N_SAMPLES 1023

/* Returns the number of cells of a feature; 0 if its box is empty. */
static __device__ double cells_of_feature(const struct quadrant_cells &grid,
                                          int64_t f,
                                          struct oj_quadrant_cells *cells)
{
    struct oj_box box = grid.box[f];
    if (oj_box_is_empty(&box))
        return 0.0;
    box = oj_box_widened(&box, grid.reach);
    *cells = oj_quadrant_cells_of(&grid.frame, &box);
    return oj_quadrant_n_cells(cells);
}

/* Sums the features' numbers of cells as doubles, which is exact up to the
 * limit with which the sum is compared. */
struct sum_of_cells
{
    struct quadrant_cells grid;

    __device__ double operator()(ptrdiff_t f) const
    {
        struct oj_quadrant_cells cells;
        return cells_of_feature(grid, f, &cells);
    }
    __device__ double operator()(double a, double b) const
    {
        return a + b;
    }
};

struct n_cells_of
{
    struct sum_of_cells of;
    int64_t n;

    __device__ int64_t operator()(ptrdiff_t f) const
    {
        return f < n ? (int64_t)of(f) : 0;
    }
};

/* Writes the cells of each feature, and the feature beside each of them, from
 * offset[feature] on; one warp per feature. */
static __global__ void
list_cells_of_features(int64_t n,
                       const __grid_constant__ struct quadrant_cells grid,
                       const int64_t *offset, uint64_t *cell, int32_t *feature)
{
    int64_t f = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / WARP;
    struct oj_quadrant_cells cells;
    int64_t n_columns;
    if (f >= n || cells_of_feature(grid, f, &cells) == 0.0)
        return;
    n_columns = (int64_t)cells.column1 - cells.column0 + 1;
    for (int64_t i = threadIdx.x % WARP; i < offset[f + 1] - offset[f];
         i += WARP)
    {
        cell[offset[f] + i] =
            oj_quadrant_cell(cells.row0 + (uint32_t)(i / n_columns),
                             cells.column0 + (uint32_t)(i % n_columns));
        feature[offset[f] + i] = (int32_t)f;
    }
}

static oj_status
make_boxes_and_segment_starts(struct oj_cuda_work *keep,
                              const struct oj_cuda_layer &layer,
                              struct quadrant_cells *grid)
{
    int64_t n = layer.n_features;
    OJ_TRY(keep->make(n + 1, &grid->first));
    OJ_TRY(keep->make(n, &grid->box));
    OJ_TRY(oj_cuda_layer_boxes(keep, &layer, grid->box));
    if (layer.segment_part.n > 0)
        OJ_TRY(keep->allocate_zeros(layer.n_segments, &grid->flag));
    const struct oj_cuda_layer l = layer;
    const struct quadrant_cells to = *grid;
    OJ_TRY(keep->each(n + 1,
                      [=] __device__(int64_t f)
                      {
                          to.first[f] =
                              (int32_t)oj_cuda_first_segment_of_feature(l, f);
                          if (f < n && !oj_box_is_empty(&to.box[f]))
                              to.box[f] = oj_box_widened(&to.box[f], 0.0);
                      }));
    return keep->each(to.flag != NULL ? l.n_parts : 0,
                      [=] __device__(int64_t p)
                      {
                          const int64_t *ring = l.ring_offset.data;
                          const int64_t *segment = l.segment_offset.data;
                          int64_t end = segment[ring[p + 1]];
                          /* a part without segments has no end */
                          if (end > segment[ring[p]])
                              to.flag[end - 1] =
                                  l.part_kind.data[p] == OJ_PART_POLYGON
                                      ? OJ_QUADRANT_POLYGON_END
                                      : OJ_QUADRANT_LINE_END;
                      });
}

/* Computes the cell size: twice the longer side of a typical box that is
 * enlarged by its reach. Such a box intersects few cells of this size. */
static oj_status typical_box_cell_size(struct oj_cuda_work *work, int64_t n,
                                       const struct quadrant_cells *grid,
                                       double *out)
{
    struct oj_box box[N_SAMPLES];
    double side[N_SAMPLES];
    int64_t step = n / N_SAMPLES + 1, n_sides = 0;
    int64_t n_samples = (n + step - 1) / step;
    OJ_TRY(work->check(cudaMemcpy2DAsync(
        box, sizeof *box, grid->box, (size_t)step * sizeof *box, sizeof *box,
        (size_t)n_samples, cudaMemcpyDeviceToHost, work->stream)));
    OJ_TRY(work->wait());
    for (int64_t i = 0; i < n_samples; i++)
    {
        if (!oj_box_is_empty(&box[i]))
            side[n_sides++] =
                fmax(box[i].x1 - box[i].x0, box[i].y1 - box[i].y0);
    }
    qsort(side, (size_t)n_sides, sizeof *side, oj_compare_doubles);
    *out = 2.0 * ((n_sides > 0 ? side[n_sides / 2] : 0.0) + 2.0 * grid->reach);
    return OJ_OK;
}

/* Chooses the cell size: the typical size, doubled until there are at most
 * about six entries per feature. (With a single cell there is at most one per
 * feature.) */
static oj_status choose_grid_cell_size(struct oj_cuda_work *work,
                                       const struct oj_cuda_layer &layer,
                                       struct quadrant_cells *grid)
{
    struct oj_box all = {layer.x0, layer.y0, layer.x1, layer.y1};
    double limit = fmin(6.0 * (double)layer.n_features + 1024.0, 2147483000.0);
    double extent, size, n = 0.0;
    all = oj_box_widened(&all, grid->reach);
    extent = fmax(all.x1 - all.x0, all.y1 - all.y0);
    grid->frame.x0 = all.x0;
    grid->frame.y0 = all.y0;
    OJ_TRY(typical_box_cell_size(work, layer.n_features, grid, &size));
    size = fmax(size, extent / OJ_QUADRANT_LAST_COLUMN);
    if (!(extent < INFINITY) || !(size > 0.0))
        size = INFINITY;
    for (;; size *= 2.0)
    {
        grid->frame.size = size;
        n = 0.0;
        OJ_TRY(oj_cuda_reduce(work, layer.n_features, sum_of_cells{*grid},
                              sum_of_cells{*grid}, &n));
        if (n <= limit || !(size < INFINITY))
            break;
    }
    if (n > INT32_MAX)
        return oj_fail(work->err, OJ_ERR_LIMIT,
                       "the join layer has too many features, or the maximum "
                       "distance is too large, for a grid of cells: use a "
                       "smaller max_distance, or the backend cuda");
    return OJ_OK;
}

/* Builds the grid. Waits for the stream. */
static oj_status make_grid(struct oj_cuda_work *keep,
                           const struct oj_cuda_layer &layer, double reach,
                           struct quadrant_cells *grid)
{
    struct oj_cuda_work work(keep);
    int64_t n = layer.n_features, *offset;
    grid->reach = reach;
    if (layer.n_segments == 0)
        return OJ_OK;
    OJ_TRY(make_boxes_and_segment_starts(keep, layer, grid));
    OJ_TRY(choose_grid_cell_size(&work, layer, grid));
    OJ_TRY(work.scan_of_computed_values(n, n_cells_of{{*grid}, n}, &offset,
                                        &grid->n_entries));
    OJ_TRY(keep->make(grid->n_entries, &grid->cell));
    OJ_TRY(keep->make(grid->n_entries, &grid->feature));
    OJ_TRY(work.run<BLOCK>(n * WARP, list_cells_of_features, n, *grid, offset,
                           grid->cell, grid->feature));
    if (grid->n_entries > 0)
        OJ_TRY(keep->sort(grid->n_entries, 64, &grid->cell, &grid->feature));
    return keep->wait();
}

/* --- pairs ------------------------------------------------------------------
 */

/* Finds quadrants and features whose boxes intersect; one warp per quadrant.
 * One pass counts the pairs, the next one writes them. */

/* Returns 1 if the box of entry i's feature intersects the window, and entry i
 * is in the first of the cells that both intersect, so that each pair counts
 * once. */
static __device__ int is_candidate_pair(const struct quadrant_cells *grid,
                                        int64_t i, const struct oj_box *window,
                                        const struct oj_quadrant_cells *cells)
{
    struct oj_box box =
        oj_box_widened(&grid->box[grid->feature[i]], grid->reach);
    struct oj_quadrant_cells of_box;
    if (!oj_box_intersects(&box, window))
        return 0;
    of_box = oj_quadrant_cells_of(&grid->frame, &box);
    return oj_quadrant_is_first_common_cell(grid->cell[i], cells, &of_box);
}

/* Writes the pairs of a quadrant to out, in the order of entries, or only
 * counts them if out is NULL. Returns their number. */
static __device__ int64_t find_quadrant_pairs(const struct quadrant_chunk *c,
                                              int64_t q, int32_t *out)
{
    const struct quadrant_cells *grid = &c->grid;
    struct oj_box window = c->window[q];
    struct oj_quadrant_cells cells =
        oj_quadrant_cells_of(&grid->frame, &window);
    unsigned lane = threadIdx.x % WARP;
    uint32_t row = cells.row0;
    int64_t n = 0, first, end;
    while (row <= cells.row1)
    {
        row = oj_quadrant_cells_of_row(grid->cell, grid->n_entries, row, &cells,
                                       &first, &end);
        for (int64_t i = first; i < end; i += WARP)
        {
            int is = i + lane < end &&
                     is_candidate_pair(grid, i + lane, &window, &cells);
            unsigned mask = __ballot_sync(~0u, is);
            if (is && out != NULL)
                out[n + __popc(mask & ((1u << lane) - 1))] =
                    grid->feature[i + lane];
            n += __popc(mask);
        }
    }
    return n;
}

static __global__ void
count_pairs(const __grid_constant__ struct quadrant_chunk c)
{
    int64_t q = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / WARP;
    int64_t n = c.n_quadrants, n_pairs;
    if (q > n)
        return;
    n_pairs = q < n ? find_quadrant_pairs(&c, q, NULL) : 0;
    if (threadIdx.x % WARP != 0)
        return;
    c.offset[q] = n_pairs;
    c.task[q] = (n_pairs + TASK - 1) / TASK;
}

static __global__ void
fill_pairs(const __grid_constant__ struct quadrant_chunk c)
{
    const int64_t *offset = c.offset;
    int64_t q =
        c.slice.first + ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / WARP;
    if (q < c.slice.end)
        (void)find_quadrant_pairs(
            &c, q, c.feature.data + (offset[q] - offset[c.slice.first]));
}

/* Returns the next slice: quadrants that together have at most `most` pairs, or
 * a single one. */
static __device__ struct quadrant_slice
next_slice_within_pair_limit(const struct quadrant_chunk &c, int64_t most)
{
    const int64_t *offset = c.offset, *task = c.task;
    int64_t first = c.slice.end, low = first + 1, high = c.n_quadrants;
    while (low < high)
    {
        int64_t middle = low + (high - low + 1) / 2;
        if (offset[middle] - offset[first] <= most)
            low = middle;
        else
            high = middle - 1;
    }
    return {first, low, offset[low] - offset[first], task[low] - task[first]};
}

static oj_status count_all_pairs(struct oj_cuda_work *work,
                                 struct quadrant_chunk *c)
{
    int64_t n = c->n_quadrants;
    OJ_TRY(work->make(n + 1, &c->offset, &c->task));
    OJ_TRY(work->run<BLOCK>((n + 1) * WARP, count_pairs, *c));
    OJ_TRY(work->scan(c->task, n));
    return work->scan_and_read_total(c->offset, n, &c->n_pairs);
}

static oj_status move_to_next_slice(struct oj_cuda_work *of,
                                    struct quadrant_chunk *c, int64_t most)
{
    struct oj_cuda_work work(of);
    const struct quadrant_chunk chunk = *c;
    struct quadrant_slice *slice;
    OJ_TRY(work.make(1, &slice));
    OJ_TRY(work.each(1, [=] __device__(int64_t)
                     { *slice = next_slice_within_pair_limit(chunk, most); }));
    return work.read(slice, &c->slice);
}

/* --- points against features ------------------------------------------------
 */

/* Measures the points of quadrants against all segments of their features: one
 * block per few pairs of a quadrant, with segments in shared memory. Blocks of
 * one quadrant merge their results under its lock by (distance, rank), so their
 * order does not matter. */

/* The pairs of a block, in shared memory. */
struct pairs_of_block
{
    int32_t feature[TASK];
    int32_t first[TASK];
    int64_t place[TASK + 1]; /* prefix sums of the segments of the pairs */
    struct oj_box box[TASK];
};

/* Segments that a block processes at a time, in shared memory. */
struct tile
{
    struct oj_cuda_segment segment[TILE];
    uint8_t flag[TILE];
};

static __device__ void load_pairs_to_shared(const struct quadrant_chunk *c,
                                            const int32_t *feature, int n,
                                            struct pairs_of_block *p)
{
    const int32_t *first = c->grid.first;
    int i = (int)threadIdx.x;
    if (i < n)
    {
        p->feature[i] = feature[i];
        p->first[i] = first[feature[i]];
        p->box[i] = c->grid.box[feature[i]];
        p->place[i + 1] = first[feature[i] + 1] - first[feature[i]];
    }
    __syncthreads();
    if (i == 0)
    {
        p->place[0] = 0;
        for (int k = 0; k < n; k++)
            p->place[k + 1] += p->place[k];
    }
    __syncthreads();
}

/* Loads segment `at` of the block's pairs into this thread's place of the tile.
 */
template <int INTERIOR>
static __device__ void
load_line_segment_to_shared(const struct quadrant_chunk *c,
                            const struct pairs_of_block *p, int n, int64_t at,
                            struct tile *tile)
{
    int pair;
    int64_t s;
    if (at >= p->place[n])
        return;
    pair = oj_cuda_list_of_entry(p->place, 0, n, at);
    s = p->first[pair] + (at - p->place[pair]);
    tile->segment[threadIdx.x] = c->layer.segment.data[s];
    tile->flag[threadIdx.x] = INTERIOR ? c->grid.flag[s] : 0;
}

/* A point that is measured against the segments of a block's pairs. */
struct quadrant_walk
{
    double x, y;
    struct oj_box window;
    struct oj_quadrant_state state;
    struct oj_quadrant_best best;
    int is_there, in_reach;
    unsigned n_met;
};

/* Measures the point against segments from .. end - 1 of the tile, all of one
 * pair. */
template <int INTERIOR>
static __device__ void measure_segments_of_tile(const struct tile *tile,
                                                int from, int end,
                                                struct quadrant_walk *w)
{
    for (int s = from; s < end; s++)
    {
        const struct oj_cuda_segment *e = &tile->segment[s];
        oj_quadrant_add_segment(&w->state, w->x, w->y, e->ax, e->ay, e->bx,
                                e->by, INTERIOR, INTERIOR ? tile->flag[s] : 0);
    }
}

/* Measures one point per thread against all pairs of the block. All threads
 * must call it. */
template <int INTERIOR>
static __device__ void
measure_block_pairs_to_points(const struct quadrant_chunk *c,
                              const struct pairs_of_block *p, int n,
                              struct tile *tile, struct quadrant_walk *w)
{
    int i = 0;
    w->in_reach = 0;
    for (int64_t at = 0; at < p->place[n]; at += TILE)
    {
        load_line_segment_to_shared<INTERIOR>(c, p, n, at + threadIdx.x, tile);
        __syncthreads();
        while (i < n && p->place[i] < at + TILE)
        {
            int64_t from = p->place[i] - at, end = p->place[i + 1] - at;
            if (from >= 0 && w->is_there)
            {
                w->in_reach = oj_box_intersects(&w->window, &p->box[i]);
                w->n_met += (unsigned)w->in_reach;
                oj_quadrant_begin_feature(&w->state);
            }
            if (w->in_reach)
                measure_segments_of_tile<INTERIOR>(
                    tile, from > 0 ? (int)from : 0,
                    end < TILE ? (int)end : TILE, w);
            if (end > TILE)
                break;
            if (w->in_reach)
                oj_quadrant_keep_nearer(&w->best,
                                        oj_quadrant_distance(&w->state),
                                        p->feature[i], c->grid.reach);
            i++;
        }
        __syncthreads();
    }
}

/* Merges the best match that a block found for a point into the result. Blocks
 * of one quadrant do this one after the other. alone is 1 if the quadrant has
 * no other block. */
static __device__ void merge_best_of_blocks(const struct quadrant_chunk *c,
                                            int64_t q, int alone, int64_t point,
                                            const struct quadrant_walk *w)
{
    double *distance = &c->distance[point];
    int32_t *rank = &c->rank[point];
    int32_t *lock = &c->lock[q];
    struct oj_quadrant_best best;
    if (!alone)
    {
        if (threadIdx.x == 0)
        {
            while (atomicCAS(lock, 0, 1) != 0)
                ;
            __threadfence();
        }
        __syncthreads();
    }
    if (w->is_there && w->best.rank != INT32_MAX)
    {
        best.distance = __ldcg(distance);
        best.rank = __ldcg(rank);
        oj_quadrant_keep_nearer(&best, w->best.distance, w->best.rank,
                                c->grid.reach);
        __stcg(distance, best.distance);
        __stcg(rank, best.rank);
    }
    if (!alone)
    {
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0)
            atomicExch(lock, 0);
    }
}

static __device__ void init_walk_of_point(const struct quadrant_chunk *c,
                                          int64_t point, int is_there,
                                          struct quadrant_walk *w)
{
    struct oj_box at;
    w->is_there = is_there;
    w->best.distance = INFINITY;
    w->best.rank = INT32_MAX;
    w->n_met = 0;
    if (!is_there)
        return;
    w->x = c->in_x[point];
    w->y = c->in_y[point];
    at.x0 = at.x1 = w->x;
    at.y0 = at.y1 = w->y;
    w->window = oj_box_widened(&at, c->grid.reach);
}

template <int INTERIOR>
static __global__ void __launch_bounds__(TILE)
    measure_quadrant_pairs(const __grid_constant__ struct quadrant_chunk c)
{
    __shared__ struct pairs_of_block pairs;
    __shared__ struct tile tile;
    const int64_t *task = c.task, *offset = c.offset;
    const int32_t *first_point = c.first;
    struct quadrant_walk w;
    int64_t t = task[c.slice.first] + blockIdx.x;
    int64_t q = oj_cuda_list_of_entry(task, c.slice.first, c.slice.end, t);
    int64_t first = offset[q] + (t - task[q]) * TASK;
    int64_t left = offset[q + 1] - first;
    int n = left < TASK ? (int)left : TASK;
    int alone = task[q + 1] - task[q] == 1;
    unsigned n_met = 0;
    load_pairs_to_shared(&c, c.feature.data + (first - offset[c.slice.first]),
                         n, &pairs);
    for (int64_t p = first_point[q]; p < first_point[q + 1]; p += TILE)
    {
        int64_t point = p + threadIdx.x;
        init_walk_of_point(&c, point, point < first_point[q + 1], &w);
        measure_block_pairs_to_points<INTERIOR>(&c, &pairs, n, &tile, &w);
        merge_best_of_blocks(&c, q, alone, point, &w);
        n_met += w.n_met;
    }
    for (int step = WARP / 2; step > 0; step /= 2)
        n_met += __shfl_xor_sync(~0u, n_met, step);
    if (threadIdx.x % WARP == 0 && n_met > 0)
        atomicAdd(c.n_met, (unsigned long long)n_met);
}

static oj_status init_best_answers(struct oj_cuda_work *work,
                                   struct quadrant_chunk *c)
{
    int64_t n = c->n_points;
    OJ_TRY(work->make(n, &c->distance));
    OJ_TRY(work->make(n, &c->rank));
    OJ_TRY(work->allocate_zeros(c->n_quadrants, &c->lock));
    OJ_TRY(work->allocate_zeros(1, &c->n_met));
    double *distance = c->distance;
    int32_t *rank = c->rank;
    return work->each(n,
                      [=] __device__(int64_t i)
                      {
                          distance[i] = INFINITY;
                          rank[i] = INT32_MAX;
                      });
}

static oj_status write_best_answers(struct oj_cuda_work *work,
                                    const struct quadrant_chunk &c)
{
    const struct quadrant_chunk chunk = c;
    OJ_TRY(work->each(chunk.n,
                      [=] __device__(int64_t i)
                      {
                          chunk.row[i] = -1;
                          chunk.measure[i] = NAN;
                      }));
    return work->each(chunk.n_points,
                      [=] __device__(int64_t p)
                      {
                          const int32_t *ordinal_of =
                              chunk.layer.ordinal_of.data;
                          int32_t best = chunk.rank[p];
                          int32_t row = chunk.row_of[p];
                          if (best == INT32_MAX)
                              return;
                          chunk.row[row] =
                              ordinal_of != NULL ? ordinal_of[best] : best;
                          chunk.measure[row] = chunk.distance[p];
                      });
}

/* --- batches ----------------------------------------------------------- */

/* A chunk of rows and the state of its join. */
struct chunk
{
    const struct oj_gpu_quadrant_index *self;
    struct oj_cuda_work *work;
    struct quadrant_chunk on;
    double stage_start;
    struct oj_stats stats; /* statistics of this chunk */
};

/* Waits for the enqueued work and adds the time since the last call to
 * *seconds. */
static oj_status wait_and_add_stage_time(struct chunk *c, double *seconds)
{
    double start = c->stage_start;
    OJ_TRY(c->work->wait());
    c->stage_start = oj_clock_seconds();
    *seconds += c->stage_start - start;
    return oj_check_cancel(c->self->device.cancel, c->work->err);
}

static oj_status start_copy(struct chunk *c, void *to, const void *from,
                            size_t bytes)
{
    return c->work->check(
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, c->work->stream));
}

static oj_status upload_points(struct chunk *c, const double *x,
                               const double *y)
{
    struct quadrant_chunk *on = &c->on;
    size_t bytes = (size_t)on->n * sizeof *x;
    OJ_TRY(c->work->make(on->n, &on->x, &on->y, &on->measure));
    OJ_TRY(c->work->make(on->n, &on->row));
    OJ_TRY(start_copy(c, on->x, x, bytes));
    return start_copy(c, on->y, y, bytes);
}

static oj_status group_points(struct chunk *c)
{
    int64_t size = c->self->options.quadrant_size;
    OJ_TRY(make_quadrants(c->work, size > 0 ? size : default_size, &c->on));
    return wait_and_add_stage_time(c, &c->stats.sort_s);
}

static oj_status grow_pair_buffer(struct chunk *c)
{
    struct oj_cuda_array<int32_t> *feature = &c->on.feature;
    if (c->on.slice.n_pairs <= feature->n)
        return OJ_OK;
    c->work->drop(feature->data);
    return c->work->make(c->on.slice.n_pairs, feature);
}

static oj_status join_next_slice(struct chunk *c)
{
    struct quadrant_chunk *on = &c->on;
    OJ_TRY(move_to_next_slice(c->work, on, most_pairs));
    OJ_TRY(grow_pair_buffer(c));
    OJ_TRY(c->work->run<BLOCK>((on->slice.end - on->slice.first) * WARP,
                               fill_pairs, *on));
    OJ_TRY(wait_and_add_stage_time(c, &c->stats.filter_s));
    OJ_TRY(c->work->launch_blocks<TILE>(
        (unsigned)on->slice.n_tasks,
        c->self->interior && on->grid.flag != NULL ? measure_quadrant_pairs<1>
                                                   : measure_quadrant_pairs<0>,
        *on));
    return wait_and_add_stage_time(c, &c->stats.refine_s);
}

static oj_status join_quadrants_by_slices(struct chunk *c)
{
    struct quadrant_chunk *on = &c->on;
    if (on->n_quadrants == 0 || on->grid.n_entries == 0)
        return OJ_OK;
    OJ_TRY(count_all_pairs(c->work, on));
    OJ_TRY(wait_and_add_stage_time(c, &c->stats.filter_s));
    while (on->n_pairs > 0 && on->slice.end < on->n_quadrants)
        OJ_TRY(join_next_slice(c));
    return OJ_OK;
}

static oj_status copy_answers_to_host(struct chunk *c, int32_t *row,
                                      double *measure)
{
    const struct quadrant_chunk *on = &c->on;
    size_t n = (size_t)on->n;
    OJ_TRY(write_best_answers(c->work, *on));
    OJ_TRY(wait_and_add_stage_time(c, &c->stats.refine_s));
    OJ_TRY(start_copy(c, row, on->row, n * sizeof *row));
    OJ_TRY(start_copy(c, measure, on->measure, n * sizeof *measure));
    return c->work->read(on->n_met, &c->stats.n_candidates);
}

static oj_status join_chunk(struct chunk *c, const double *x, const double *y,
                            int32_t *row, double *measure)
{
    c->stage_start = oj_clock_seconds();
    OJ_TRY(upload_points(c, x, y));
    OJ_TRY(group_points(c));
    OJ_TRY(init_best_answers(c->work, &c->on));
    OJ_TRY(join_quadrants_by_slices(c));
    return copy_answers_to_host(c, row, measure);
}

/* Joins a chunk; if memory is missing, one half after the other. */
static oj_status join_chunk_or_its_halves(struct oj_gpu_quadrant_index *self,
                                          const struct oj_flat *input,
                                          int64_t first, int64_t n,
                                          struct oj_matches *out,
                                          struct oj_stats *stats,
                                          struct oj_error *err)
{
    struct chunk c = {};
    oj_status status;
    {
        struct oj_cuda_work work(&self->device, self->device.stream, "joining",
                                 err);
        c.self = self;
        c.work = &work;
        c.on.layer = self->layer;
        c.on.grid = self->grid;
        c.on.n = n;
        status = join_chunk(&c, input->x + first, input->y + first,
                            out->join_row + first, out->measure + first);
        /* Waits, because no copy may outlive the host's arrays. */
        (void)cudaStreamSynchronize(work.stream);
        (void)cudaGetLastError();
    }
    if (status == OJ_OK)
    {
        stats->sort_s += c.stats.sort_s;
        stats->filter_s += c.stats.filter_s;
        stats->refine_s += c.stats.refine_s;
        stats->n_candidates += c.stats.n_candidates;
    }
    if (status != OJ_ERR_NOMEM || n < 2 * LEAST_ROWS)
        return status;
    OJ_TRY(
        join_chunk_or_its_halves(self, input, first, n / 2, out, stats, err));
    return join_chunk_or_its_halves(self, input, first + n / 2, n - n / 2, out,
                                    stats, err);
}

static oj_status join_all_chunks(struct oj_gpu_quadrant_index *self,
                                 const struct oj_flat *input,
                                 struct oj_matches *out, struct oj_stats *stats,
                                 struct oj_error *err)
{
    int64_t n = input->n_features, step = most_rows;
    OJ_CUDA_TRY(cudaSetDevice(self->device.ordinal), "choosing a device", err);
    if (self->options.gpu_batch > 0 && self->options.gpu_batch < step)
        step = self->options.gpu_batch;
    for (int64_t first = 0; first < n; first += step)
        OJ_TRY(join_chunk_or_its_halves(self, input, first,
                                        n - first < step ? n - first : step,
                                        out, stats, err));
    return OJ_OK;
}

oj_status oj_cuda_quadrant_join(struct oj_gpu_quadrant_index *index,
                                const struct oj_flat *input,
                                struct oj_matches *out, struct oj_stats *stats,
                                struct oj_error *err)
{
    int64_t n = input->n_features, n_matched = 0;
    OJ_TRY(oj_matches_reserve(out, n, n, 0, err));
    OJ_TRY(oj_cuda_threads_try_on_module(
        1,
        [&](int, struct oj_error *error)
        { return join_all_chunks(index, input, out, stats, error); },
        err));
    for (int64_t i = 0; i < n; i++)
        n_matched += out->join_row[i] >= 0;
    out->n_matched = out->n_pairs = n_matched;
    return OJ_OK;
}

static oj_status make_index(struct oj_gpu_quadrant_index *self,
                            const struct oj_flat *join_side,
                            const int32_t *tie_rank, double reach,
                            struct oj_error *err)
{
    const struct oj_options *options = &self->options;
    int ordinal = 0;
    while (ordinal < OJ_GPU_MAX_DEVICES - 1 && options->gpus != 0 &&
           (options->gpus >> ordinal & 1) == 0)
        ordinal++;
    OJ_TRY(oj_cuda_open(ordinal, options->gpu_memory, options->cancel,
                        &self->device, err));
    struct oj_cuda_work work(&self->device, self->device.stream,
                             "indexing the join layer", err);
    struct oj_cuda_work grid(&work);
    OJ_TRY(oj_cuda_layer_make(&work, join_side, NULL, tie_rank, NULL,
                              &self->layer));
    OJ_TRY(make_grid(&grid, self->layer, reach, &self->grid));
    self->grid_bytes = oj_cuda_memory_bytes(&grid.memory);
    oj_cuda_move_ownership(&work.memory, NULL, &self->memory);
    oj_cuda_move_ownership(&grid.memory, NULL, &self->memory);
    return OJ_OK;
}

oj_status oj_cuda_quadrant_index(const struct oj_flat *join_side,
                                 const int32_t *tie_rank,
                                 const struct oj_relation *relation,
                                 const struct oj_options *options,
                                 struct oj_gpu_quadrant_index **out,
                                 struct oj_stats *stats, struct oj_error *err)
{
    double start = oj_clock_seconds();
    struct oj_gpu_quadrant_index *self;
    oj_status status;
    self = (struct oj_gpu_quadrant_index *)oj_calloc(1, sizeof *self);
    if (self == NULL)
        return oj_fail_nomem(err, 1, sizeof *self);
    self->options = *options;
    self->interior = relation->distance_to == OJ_TO_INTERIOR;
    status = oj_cuda_threads_try_on_module(
        1,
        [&](int, struct oj_error *error)
        {
            return make_index(self, join_side, tie_rank, relation->max_distance,
                              error);
        },
        err);
    if (status != OJ_OK)
    {
        oj_cuda_quadrant_free(self);
        return status;
    }
    stats->index_s += oj_clock_seconds() - start;
    stats->index_bytes += self->grid_bytes;
    *out = self;
    return OJ_OK;
}

static void free_quadrant_index(struct oj_gpu_quadrant_index *self)
{
    if (self->device.stream == NULL)
        return;
    (void)cudaSetDevice(self->device.ordinal);
    oj_cuda_memory_free_all(&self->device, self->device.stream, &self->memory);
    oj_cuda_close(&self->device);
    (void)cudaGetLastError();
}

void oj_cuda_quadrant_free(struct oj_gpu_quadrant_index *index)
{
    if (index == NULL)
        return;
    oj_cuda_threads_run_one_on_module([=]() { free_quadrant_index(index); });
    oj_free(index);
}
