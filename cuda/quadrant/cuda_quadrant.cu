/** The paper's method on the device: points in quadrants of at most K, boxes of
 *  the join side in the cells of a grid, both met cell by cell, then the points
 *  of a quadrant against all segments of its features.
 *
 *  points --codes, sort, split--> quadrants --boxes--> windows
 *      windows x cells --count, scan, fill--> (quadrant, feature) pairs
 *          pairs --a block for each few of a quadrant--> best of each point
 *
 *  A method to compare with, not the one to use. Source: Zhang, You, Gruenwald
 *  2012, sections 3.2 to 3.4.
 */
#include "../device/cuda_offsets.cuh"
#include "../device/cuda_parallel_for.cuh"
#include "../device/cuda_threads.h"
#include "../device/cuda_work.cuh"
#include "cuda_quadrant.h"

#include "../../algs/kernels/oj_quadrant.h"
#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_compare.h"

#include <stdlib.h>

#define BLOCK 256
#define TILE 128 /* threads of a block of the last stage */
#define TASK 32  /* pairs of one quadrant that such a block takes */
#define WARP 32

enum
{
    LEAST_ROWS = 4096 /* of a chunk; less is not cut further for memory */
};

static const int64_t default_size = 256, most_rows = (int64_t)1 << 30;

/* Pairs that are held at a time, if there is memory, and between two looks at
 * the caller's wish to cancel. */
static const int64_t most_pairs = (int64_t)1 << 24, least_pairs = 1 << 16;

/** The join side's boxes in cells. */
struct quadrant_cells
{
    double reach;
    struct oj_quadrant_frame frame;
    int64_t n_entries;
    struct oj_cuda_array<struct oj_box> box; /**< [features] */
    struct oj_cuda_array<uint64_t> cell;     /**< [n_entries] ascending */
    struct oj_cuda_array<int32_t> feature;   /**< [n_entries] rank */
    struct oj_cuda_array<int32_t> first;     /**< [features + 1] segment */
    struct oj_cuda_array<uint8_t> flag;      /**< [segments], or empty: no
                                                  polygons */
};

/** Points of a chunk in quadrants. */
struct quadrants
{
    int64_t n_points;                           /**< that are there, in order */
    int64_t n;                                  /**< quadrants */
    struct oj_cuda_array<int32_t> row;          /**< [n_points or more] */
    struct oj_cuda_array<double> x, y;          /**< [n_points] */
    struct oj_cuda_array<int32_t> first;        /**< [n + 1] point */
    struct oj_cuda_array<struct oj_box> window; /**< [n] */
};

/** Pairs of a chunk: how many each quadrant has, and which some have. */
struct quadrant_pairs
{
    int64_t n;                            /**< in all */
    struct oj_cuda_array<int64_t> offset; /**< [quadrants + 1] */
    struct oj_cuda_array<int64_t> task;   /**< [quadrants + 1] first task */
    struct oj_cuda_array<int32_t> feature;
};

/** A run of quadrants whose pairs are held at a time. */
struct quadrant_slice
{
    int64_t first, end, n_pairs, n_tasks;
};

/** What points have found so far. */
struct quadrant_answers
{
    struct oj_cuda_array<double> distance;          /**< [points in order] */
    struct oj_cuda_array<int32_t> rank;             /**< [points in order] */
    struct oj_cuda_array<int32_t> lock;             /**< [quadrants] 0: free */
    struct oj_cuda_array<unsigned long long> n_met; /**< [1] (point, feature)
                                                         pairs in reach */
};

/** Points on their way; by value to kernels. The layer and the grid are
 *  borrowed, the arrays are the chunk's own, also after an error. */
struct quadrant_chunk
{
    struct oj_cuda_layer layer;
    struct quadrant_cells grid;
    int interior; /**< 1: points in polygons are at distance 0 */
    int64_t n;
    struct oj_cuda_array<double> x, y, measure; /**< [n] */
    struct oj_cuda_array<int32_t> row;          /**< [n] join ordinal or -1 */
    struct quadrants quadrants;
    struct quadrant_pairs pairs;
    struct quadrant_slice slice;
    struct quadrant_answers answers;
};

struct oj_gpu_quadrant_index
{
    struct oj_options options;
    int interior;
    struct oj_cuda_device device;
    struct oj_cuda_memory memory; /**< of layer */
    struct oj_cuda_layer layer;
    struct quadrant_cells grid;
};

/** The host's side of a chunk. */
struct chunk : quadrant_chunk, oj_cuda_job
{
    struct oj_gpu_quadrant_index *self;
    int64_t n_met;
    double stage_start, sort_s, filter_s, refine_s;
};

/* --- points -----------------------------------------------------------------
 */

/* Points in quadrants: codes, sort, squares split level by level. */

/* The box of points, and how many are there. */
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

/* A square with too many points: those of places first .. end - 1. */
struct square
{
    int32_t first, end;
};

struct quadrants_build : oj_cuda_job
{
    int64_t n, size;
    const double *x, *y;
    struct quadrants *out;
    struct oj_cuda_array<uint64_t> code;
    struct oj_cuda_array<struct square> open, next;
    struct oj_cuda_array<unsigned long long> n_next; /* [1] */
    struct oj_cuda_array<int32_t> place; /* [n + 1] 1: a quadrant begins */
};

/* The box of all lanes of a warp. */
static __device__ void join_lanes(struct oj_box *box)
{
    for (int step = WARP / 2; step > 0; step /= 2)
    {
        struct oj_box other;
        other.x0 = __shfl_xor_sync(~0u, box->x0, step);
        other.y0 = __shfl_xor_sync(~0u, box->y0, step);
        other.x1 = __shfl_xor_sync(~0u, box->x1, step);
        other.y1 = __shfl_xor_sync(~0u, box->y1, step);
        oj_box_add_box(box, &other);
    }
}

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

/* By codes; points with the same code keep their order. */
static oj_status sort_points(struct quadrants_build *m, struct oj_box frame)
{
    struct quadrants *out = m->out;
    const double *x = m->x, *y = m->y;
    OJ_TRY(oj_cuda_order_by<uint64_t>(
        m->device, m->stream, m->n, OJ_QUADRANT_CODE_BITS,
        [=] __device__(int64_t i)
        { return oj_quadrant_code(x[i], y[i], &frame); },
        &out->row, "sorting the points", m->err));
    OJ_TRY(m->make(out->n_points, &out->x, &out->y));
    OJ_TRY(m->make(out->n_points, &m->code));
    int32_t *row = out->row.data;
    double *to_x = out->x.data, *to_y = out->y.data;
    uint64_t *code = m->code.data;
    return oj_cuda_each(
        m->stream, out->n_points,
        [=] __device__(int64_t i)
        {
            to_x[i] = x[row[i]];
            to_y[i] = y[row[i]];
            code[i] = oj_quadrant_code(to_x[i], to_y[i], &frame);
        },
        "ordering the points", m->err);
}

/* The children of squares: those with too many points are split further, the
 * first place of each other is marked.  The order of open squares is any. */
static __global__ void split(int64_t n, const struct square *open,
                             const uint64_t *code, int low_bits, int64_t size,
                             int32_t *place, struct square *next,
                             unsigned long long *n_next)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int64_t first, end;
    if (i >= n)
        return;
    first = open[i].first;
    end = open[i].end;
    while (first < end)
    {
        int64_t stop = oj_quadrant_square_end(code, first, end, low_bits);
        if (stop - first > size && low_bits > 0)
        {
            struct square s = {(int32_t)first, (int32_t)stop};
            next[atomicAdd(n_next, 1ull)] = s;
        }
        else
        {
            /* codes tell no more: runs of at most size */
            for (int64_t p = first; p < stop; p += size)
                place[p] = 1;
        }
        first = stop;
    }
}

/* Marks the first place of each quadrant. Open squares have more than size
 * points each, which bounds their number. */
static oj_status split_all(struct quadrants_build *m)
{
    int64_t n = m->out->n_points, n_open = n > m->size;
    int64_t most = n / (m->size + 1) + 1;
    struct square root = {0, (int32_t)n};
    int32_t one = 1;
    OJ_TRY(m->make(n + 1, &m->place));
    OJ_TRY(m->make(most, &m->open, &m->next));
    OJ_TRY(m->make(1, &m->n_next));
    OJ_TRY(m->clear(&m->place, "splitting squares"));
    OJ_CUDA_TRY(cudaMemcpyAsync(m->place.data, &one, sizeof one,
                                cudaMemcpyHostToDevice, m->stream),
                "splitting squares", m->err);
    OJ_CUDA_TRY(cudaMemcpyAsync(m->open.data, &root, sizeof root,
                                cudaMemcpyHostToDevice, m->stream),
                "splitting squares", m->err);
    for (int low_bits = OJ_QUADRANT_CODE_BITS - 2; n_open > 0; low_bits -= 2)
    {
        OJ_TRY(m->clear(&m->n_next, "splitting squares"));
        OJ_TRY(m->run(n_open, "splitting squares", split, n_open, m->open.data,
                      m->code.data, low_bits, m->size, m->place.data,
                      m->next.data, m->n_next.data));
        OJ_TRY(m->read(m->n_next.data, &n_open, "splitting squares"));
        oj_cuda_swap(&m->open, &m->next);
    }
    return OJ_OK;
}

/* A warp for each quadrant. */
static __global__ void make_windows(int64_t n, const int32_t *first,
                                    const double *x, const double *y,
                                    struct oj_box *window)
{
    int64_t q = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / WARP;
    struct oj_box box = oj_box_empty();
    if (q >= n)
        return;
    for (int p = first[q] + (int)threadIdx.x % WARP; p < first[q + 1];
         p += WARP)
        oj_box_add_point(&box, x[p], y[p]);
    join_lanes(&box);
    if (threadIdx.x % WARP == 0)
        window[q] = oj_box_around(&box, 0.0);
}

static oj_status list_quadrants(struct quadrants_build *m)
{
    struct quadrants *out = m->out;
    int32_t n_quadrants = 0;
    OJ_TRY(m->scan_total(m->place.data, out->n_points, &n_quadrants,
                         "listing quadrants"));
    out->n = n_quadrants;
    OJ_TRY(m->make(out->n + 1, &out->first));
    OJ_TRY(m->make(out->n, &out->window));
    /* quadrants before each place */
    const int32_t *number = m->place.data;
    int32_t *first = out->first.data;
    int64_t n = out->n_points;
    OJ_TRY(oj_cuda_each(
        m->stream, n + 1,
        [=] __device__(int64_t i)
        {
            if (i == n || number[i + 1] != number[i])
                first[number[i]] = (int32_t)i;
        },
        "listing quadrants", m->err));
    return m->run(out->n * WARP, "listing quadrants", make_windows, out->n,
                  out->first.data, out->x.data, out->y.data, out->window.data);
}

static oj_status make_all(struct quadrants_build *m)
{
    struct point_extent frame = {oj_box_empty(), 0};
    struct extent_of_point points = {m->x, m->y};
    if (m->n == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_reduce(m->device, points, m->n, join_point_extents(), &frame,
                          "measuring the points", m->err));
    m->out->n_points = frame.n;
    if (frame.n == 0)
        return OJ_OK;
    OJ_TRY(sort_points(m, frame.box));
    OJ_TRY(split_all(m));
    return list_quadrants(m);
}

static oj_status make_quadrants(struct chunk *c, int64_t size)
{
    struct quadrants_build m = {};
    oj_status status;
    m.device = c->device;
    m.stream = c->stream;
    m.n = c->n;
    m.size = size < c->n ? size : c->n;
    m.x = c->x.data;
    m.y = c->y.data;
    m.out = &c->quadrants;
    m.err = c->err;
    status = make_all(&m);
    m.drop(&m.code, &m.scratch, &m.open, &m.next, &m.n_next, &m.place);
    return status;
}

/* --- the join side ---------------------------------------------------------
 */

/* The join side for the quadrant method: boxes, cells, and where the segments
 * of features and rings end. */

#define N_SAMPLES 1023

struct quadrant_grid_build : oj_cuda_job
{
    const struct oj_cuda_layer *layer;
    struct quadrant_cells *grid;
    struct oj_cuda_array<int64_t> offset;              /* [features + 1] */
    struct oj_cuda_sorting<uint64_t, int32_t> entries; /* features by cell */
};

/* A warp for each feature. */
static __global__ void make_boxes(int64_t n, const int32_t *first,
                                  const struct oj_cuda_segment *segment,
                                  struct oj_box *out)
{
    int64_t f = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / WARP;
    struct oj_box box = oj_box_empty();
    if (f >= n)
        return;
    for (int64_t s = first[f] + (int)threadIdx.x % WARP; s < first[f + 1];
         s += WARP)
    {
        oj_box_add_point(&box, segment[s].ax, segment[s].ay);
        oj_box_add_point(&box, segment[s].bx, segment[s].by);
    }
    join_lanes(&box);
    if (threadIdx.x % WARP == 0)
        out[f] = oj_box_is_empty(&box) ? box : oj_box_around(&box, 0.0);
}

/* Cells of a feature; 0 when it has no box. */
static __device__ double cells_of(const struct quadrant_cells &grid, int64_t f,
                                  struct oj_quadrant_cells *cells)
{
    struct oj_box box = grid.box.data[f];
    if (oj_box_is_empty(&box))
        return 0.0;
    box = oj_box_around(&box, grid.reach);
    *cells = oj_quadrant_cells_of(&grid.frame, &box);
    return oj_quadrant_n_cells(cells);
}

/* Of whole numbers: exact as long as they matter. */
struct sum_of_cells
{
    struct quadrant_cells grid;

    __device__ double operator()(ptrdiff_t f) const
    {
        struct oj_quadrant_cells cells;
        return cells_of(grid, f, &cells);
    }
    __device__ double operator()(double a, double b) const
    {
        return a + b;
    }
};

/* A warp for each feature. */
static __global__ void
list_cells(int64_t n, const __grid_constant__ struct quadrant_cells grid,
           const int64_t *offset, uint64_t *cell, int32_t *feature)
{
    int64_t f = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / WARP;
    struct oj_quadrant_cells cells;
    int64_t n_columns;
    if (f >= n || cells_of(grid, f, &cells) == 0.0)
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

static oj_status follow_segments(struct quadrant_grid_build *m)
{
    const struct oj_cuda_layer *layer = m->layer;
    struct quadrant_cells *grid = m->grid;
    int64_t n = layer->n_features;
    OJ_TRY(m->make(n + 1, &grid->first));
    OJ_TRY(m->make(n, &grid->box));
    const struct oj_cuda_layer l = *layer;
    int32_t *first = grid->first.data;
    OJ_TRY(oj_cuda_each(
        m->stream, n + 1,
        [=] __device__(int64_t f)
        {
            if (l.short_points)
                first[f] = (int32_t)f;
            else if (f == l.n_features)
                first[f] = (int32_t)l.n_segments;
            else
                first[f] = (int32_t)l.segment_offset
                               .data[l.ring_offset.data[l.part_offset.data[f]]];
        },
        "making boxes", m->err));
    OJ_TRY(m->run(n * WARP, "making boxes", make_boxes, n, grid->first.data,
                  layer->segment.data, grid->box.data));
    if (layer->segment_part.n == 0)
        return OJ_OK;
    OJ_TRY(m->make(layer->n_segments, &grid->flag));
    OJ_TRY(m->clear(&grid->flag, "following rings"));
    uint8_t *flag = grid->flag.data;
    return oj_cuda_each(
        m->stream, layer->n_parts,
        [=] __device__(int64_t p)
        {
            const int64_t *ring = l.ring_offset.data;
            const int64_t *segment = l.segment_offset.data;
            int64_t end = segment[ring[p + 1]];
            /* parts without segments are none */
            if (end > segment[ring[p]])
                flag[end - 1] = l.part_kind.data[p] == OJ_PART_POLYGON
                                    ? OJ_QUADRANT_POLYGON_END
                                    : OJ_QUADRANT_LINE_END;
        },
        "following rings", m->err);
}

/* Twice the longer side of a typical box with its reach: such a box touches a
 * few cells. */
static oj_status typical_size(struct quadrant_grid_build *m, double *out)
{
    struct oj_box box[N_SAMPLES];
    double side[N_SAMPLES];
    int64_t n = m->layer->n_features, step = n / N_SAMPLES + 1, n_sides = 0;
    int64_t n_samples = (n + step - 1) / step;
    OJ_CUDA_TRY(cudaMemcpy2DAsync(box, sizeof *box, m->grid->box.data,
                                  (size_t)step * sizeof *box, sizeof *box,
                                  (size_t)n_samples, cudaMemcpyDeviceToHost,
                                  m->stream),
                "looking at boxes", m->err);
    OJ_CUDA_TRY(cudaStreamSynchronize(m->stream), "looking at boxes", m->err);
    for (int64_t i = 0; i < n_samples; i++)
    {
        if (!oj_box_is_empty(&box[i]))
            side[n_sides++] =
                fmax(box[i].x1 - box[i].x0, box[i].y1 - box[i].y0);
    }
    qsort(side, (size_t)n_sides, sizeof *side, oj_compare_doubles);
    *out =
        2.0 * ((n_sides > 0 ? side[n_sides / 2] : 0.0) + 2.0 * m->grid->reach);
    return OJ_OK;
}

/* Chooses the cells' size so that there are at most a few entries a feature:
 * one cell has one of each at most. */
static oj_status choose_size(struct quadrant_grid_build *m)
{
    const struct oj_cuda_layer *layer = m->layer;
    struct quadrant_cells *grid = m->grid;
    struct oj_box all = {layer->x0, layer->y0, layer->x1, layer->y1};
    double limit = fmin(6.0 * (double)layer->n_features + 1024.0, 2147483000.0);
    double extent, size, n = 0.0;
    all = oj_box_around(&all, grid->reach);
    extent = fmax(all.x1 - all.x0, all.y1 - all.y0);
    grid->frame.x0 = all.x0;
    grid->frame.y0 = all.y0;
    OJ_TRY(typical_size(m, &size));
    size = fmax(size, extent / OJ_QUADRANT_LAST_COLUMN);
    if (!(extent < INFINITY) || !(size > 0.0))
        size = INFINITY;
    for (;; size *= 2.0)
    {
        struct sum_of_cells sum;
        grid->frame.size = size;
        sum.grid = *grid;
        n = 0.0;
        OJ_TRY(oj_cuda_reduce(m->device, sum, layer->n_features, sum, &n,
                              "counting cells", m->err));
        if (n <= limit || !(size < INFINITY))
            break;
    }
    if (n > INT32_MAX)
        return oj_fail(m->err, OJ_ERR_LIMIT, "too many features for a grid");
    grid->n_entries = (int64_t)n;
    return OJ_OK;
}

static oj_status make_cells(struct quadrant_grid_build *m)
{
    struct quadrant_cells *grid = m->grid;
    int64_t n = m->layer->n_features, n_entries;
    OJ_TRY(choose_size(m));
    n_entries = grid->n_entries;
    OJ_TRY(m->make(n + 1, &m->offset));
    OJ_TRY(oj_cuda_sorting_make(m->device, m->stream, n_entries, &m->entries,
                                m->err));
    int64_t *count = m->offset.data;
    const struct quadrant_cells cells = *grid;
    OJ_TRY(oj_cuda_each(
        m->stream, n + 1,
        [=] __device__(int64_t f)
        {
            struct oj_quadrant_cells unused;
            count[f] = f < n ? (int64_t)cells_of(cells, f, &unused) : 0;
        },
        "counting cells", m->err));
    OJ_TRY(m->scan(m->offset.data, n, "summing counts"));
    OJ_TRY(m->run(n * WARP, "listing cells", list_cells, n, *grid,
                  m->offset.data, m->entries.key[0].data,
                  m->entries.value[0].data));
    if (n_entries > 0)
        OJ_TRY(oj_cuda_sort(m->device, m->stream, 64, "sorting cells",
                            &m->entries, m->err));
    oj_cuda_swap(&grid->cell, &m->entries.key[0]);
    oj_cuda_swap(&grid->feature, &m->entries.value[0]);
    return OJ_OK;
}

static oj_status make_grid(struct oj_cuda_device *device,
                           const struct oj_cuda_layer *layer, double reach,
                           struct quadrant_cells *out, struct oj_error *err)
{
    struct quadrant_grid_build m = {};
    oj_status status;
    out->reach = reach;
    if (layer->n_segments == 0)
        return OJ_OK;
    m.device = device;
    m.stream = device->stream;
    m.layer = layer;
    m.grid = out;
    m.err = err;
    status = follow_segments(&m);
    if (status == OJ_OK)
        status = make_cells(&m);
    m.drop(&m.offset, &m.scratch);
    oj_cuda_sorting_drop(device, device->stream, &m.entries);
    OJ_TRY(status);
    OJ_CUDA_TRY(cudaStreamSynchronize(device->stream), "laying a grid", err);
    return OJ_OK;
}

/* --- pairs ------------------------------------------------------------------
 */

/* Quadrants and features whose boxes meet: counted, then written, a warp for
 * each quadrant. */

/* 1 when entry i of the grid stands for a pair with this window. */
static __device__ int is_pair(const struct quadrant_cells *grid, int64_t i,
                              const struct oj_box *window,
                              const struct oj_quadrant_cells *cells)
{
    struct oj_box box =
        oj_box_around(&grid->box.data[grid->feature.data[i]], grid->reach);
    struct oj_quadrant_cells of_box;
    if (!oj_box_intersects(&box, window))
        return 0;
    of_box = oj_quadrant_cells_of(&grid->frame, &box);
    return oj_quadrant_counts_in(grid->cell.data[i], cells, &of_box);
}

/* The pairs of a quadrant in the order of entries; out NULL: only counted. */
static __device__ int64_t visit(const struct quadrant_chunk *c, int64_t q,
                                int32_t *out)
{
    const struct quadrant_cells *grid = &c->grid;
    struct oj_box window = c->quadrants.window.data[q];
    struct oj_quadrant_cells cells =
        oj_quadrant_cells_of(&grid->frame, &window);
    unsigned lane = threadIdx.x % WARP;
    uint32_t row = cells.row0;
    int64_t n = 0, first, end;
    while (row <= cells.row1)
    {
        row = oj_quadrant_run(grid->cell.data, grid->n_entries, row, &cells,
                              &first, &end);
        for (int64_t i = first; i < end; i += WARP)
        {
            int is = i + lane < end && is_pair(grid, i + lane, &window, &cells);
            unsigned mask = __ballot_sync(~0u, is);
            if (is && out != NULL)
                out[n + __popc(mask & ((1u << lane) - 1))] =
                    grid->feature.data[i + lane];
            n += __popc(mask);
        }
    }
    return n;
}

static __global__ void
count_pairs(const __grid_constant__ struct quadrant_chunk c)
{
    int64_t q = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / WARP;
    int64_t n = c.quadrants.n, n_pairs;
    if (q > n)
        return;
    n_pairs = q < n ? visit(&c, q, NULL) : 0;
    if (threadIdx.x % WARP != 0)
        return;
    c.pairs.offset.data[q] = n_pairs;
    c.pairs.task.data[q] = (n_pairs + TASK - 1) / TASK;
}

static __global__ void
fill_pairs(const __grid_constant__ struct quadrant_chunk c)
{
    const int64_t *offset = c.pairs.offset.data;
    int64_t q =
        c.slice.first + ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / WARP;
    if (q < c.slice.end)
        (void)visit(&c, q,
                    c.pairs.feature.data + (offset[q] - offset[c.slice.first]));
}

/* One thread. */
static __global__ void
find_slice(const __grid_constant__ struct quadrant_chunk c, int64_t most,
           struct quadrant_slice *out)
{
    const int64_t *offset = c.pairs.offset.data, *task = c.pairs.task.data;
    int64_t first = c.slice.end, low = first + 1, high = c.quadrants.n;
    while (low < high)
    {
        int64_t middle = low + (high - low + 1) / 2;
        if (offset[middle] - offset[first] <= most)
            low = middle;
        else
            high = middle - 1;
    }
    out->first = first;
    out->end = low;
    out->n_pairs = offset[low] - offset[first];
    out->n_tasks = task[low] - task[first];
}

static oj_status count_all_pairs(struct chunk *c)
{
    struct quadrant_pairs *pairs = &c->pairs;
    int64_t n = c->quadrants.n;
    OJ_TRY(c->make(n + 1, &pairs->offset, &pairs->task));
    OJ_TRY(c->run((n + 1) * WARP, "counting pairs", count_pairs, *c));
    OJ_TRY(c->scan(pairs->task.data, n, "summing counts"));
    return c->scan_total(pairs->offset.data, n, &pairs->n, "summing counts");
}

static oj_status next_slice(struct chunk *c, int64_t most)
{
    oj_cuda_array<struct quadrant_slice> slice = {NULL, 0};
    oj_status status;
    OJ_TRY(c->make(1, &slice));
    find_slice<<<1, 1, 0, c->stream>>>(*c, most, slice.data);
    status = c->read(slice.data, &c->slice, "choosing quadrants");
    c->drop(&slice);
    return status;
}

static oj_status list_pairs(struct chunk *c)
{
    int64_t n = c->slice.end - c->slice.first;
    return c->run(n * WARP, "listing pairs", fill_pairs, *c);
}

/* --- points against features ------------------------------------------------
 */

/* Points of quadrants against all segments of their features: a block for each
 * few pairs of a quadrant, segments in shared memory. What blocks of the same
 * quadrant find is put together under its lock by (distance, rank), so their
 * order does not show. */

/* What a block has of its pairs. */
struct pairs_of_block
{
    int32_t feature[TASK];
    int32_t first[TASK];
    int64_t place[TASK + 1]; /* segments before each, and all */
    struct oj_box box[TASK];
};

/* Segments that a block looks at together. */
struct tile
{
    struct oj_cuda_segment segment[TILE];
    uint8_t flag[TILE];
};

static __device__ void load_pairs(const struct quadrant_chunk *c,
                                  const int32_t *feature, int n,
                                  struct pairs_of_block *p)
{
    const int32_t *first = c->grid.first.data;
    int i = (int)threadIdx.x;
    if (i < n)
    {
        p->feature[i] = feature[i];
        p->first[i] = first[feature[i]];
        p->box[i] = c->grid.box.data[feature[i]];
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

/* Segment at, of all of the block's pairs, to this thread's place. */
template <int INTERIOR>
static __device__ void load_segment(const struct quadrant_chunk *c,
                                    const struct pairs_of_block *p, int n,
                                    int64_t at, struct tile *tile)
{
    int pair;
    int64_t s;
    if (at >= p->place[n])
        return;
    pair = oj_cuda_owner_of(p->place, 0, n, at);
    s = p->first[pair] + (at - p->place[pair]);
    tile->segment[threadIdx.x] = c->layer.segment.data[s];
    tile->flag[threadIdx.x] = INTERIOR ? c->grid.flag.data[s] : 0;
}

/* A point on its way along the segments of a block's pairs. */
struct quadrant_walk
{
    double x, y;
    struct oj_box window;
    struct oj_quadrant_state state;
    struct oj_quadrant_best best;
    int is_there, in_reach;
    unsigned n_met;
};

/* The segments from, up to end, of the tile are pair i's next. */
template <int INTERIOR>
static __device__ void walk_on(const struct tile *tile, int from, int end,
                               struct quadrant_walk *w)
{
    for (int s = from; s < end; s++)
    {
        const struct oj_cuda_segment *e = &tile->segment[s];
        oj_quadrant_step(&w->state, w->x, w->y, e->ax, e->ay, e->bx, e->by,
                         INTERIOR, INTERIOR ? tile->flag[s] : 0);
    }
}

/* All pairs of the block for one point each; every thread comes along. */
template <int INTERIOR>
static __device__ void walk_all(const struct quadrant_chunk *c,
                                const struct pairs_of_block *p, int n,
                                struct tile *tile, struct quadrant_walk *w)
{
    int i = 0;
    w->in_reach = 0;
    for (int64_t at = 0; at < p->place[n]; at += TILE)
    {
        load_segment<INTERIOR>(c, p, n, at + threadIdx.x, tile);
        __syncthreads();
        while (i < n && p->place[i] < at + TILE)
        {
            int64_t from = p->place[i] - at, end = p->place[i + 1] - at;
            if (from >= 0 && w->is_there)
            {
                w->in_reach = oj_box_intersects(&w->window, &p->box[i]);
                w->n_met += (unsigned)w->in_reach;
                oj_quadrant_start(&w->state);
            }
            if (w->in_reach)
                walk_on<INTERIOR>(tile, from > 0 ? (int)from : 0,
                                  end < TILE ? (int)end : TILE, w);
            if (end > TILE)
                break;
            if (w->in_reach)
                oj_quadrant_take(&w->best, oj_quadrant_distance(&w->state),
                                 p->feature[i], c->grid.reach);
            i++;
        }
        __syncthreads();
    }
}

/* Blocks of a quadrant do this one after the other. */
static __device__ void put_together(const struct quadrant_chunk *c, int64_t q,
                                    int alone, int64_t point,
                                    const struct quadrant_walk *w)
{
    double *distance = &c->answers.distance.data[point];
    int32_t *rank = &c->answers.rank.data[point];
    int32_t *lock = &c->answers.lock.data[q];
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
        oj_quadrant_take(&best, w->best.distance, w->best.rank, c->grid.reach);
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

static __device__ void start_walk(const struct quadrant_chunk *c, int64_t point,
                                  int is_there, struct quadrant_walk *w)
{
    struct oj_box at;
    w->is_there = is_there;
    w->best.distance = INFINITY;
    w->best.rank = INT32_MAX;
    w->n_met = 0;
    if (!is_there)
        return;
    w->x = c->quadrants.x.data[point];
    w->y = c->quadrants.y.data[point];
    at.x0 = at.x1 = w->x;
    at.y0 = at.y1 = w->y;
    w->window = oj_box_around(&at, c->grid.reach);
}

template <int INTERIOR>
static __global__ void __launch_bounds__(TILE)
    refine(const __grid_constant__ struct quadrant_chunk c)
{
    __shared__ struct pairs_of_block pairs;
    __shared__ struct tile tile;
    const int64_t *task = c.pairs.task.data, *offset = c.pairs.offset.data;
    const int32_t *first_point = c.quadrants.first.data;
    struct quadrant_walk w;
    int64_t t = task[c.slice.first] + blockIdx.x;
    int64_t q = oj_cuda_owner_of(task, c.slice.first, c.slice.end, t);
    int64_t first = offset[q] + (t - task[q]) * TASK;
    int64_t left = offset[q + 1] - first;
    int n = left < TASK ? (int)left : TASK;
    int alone = task[q + 1] - task[q] == 1;
    unsigned n_met = 0;
    load_pairs(&c, c.pairs.feature.data + (first - offset[c.slice.first]), n,
               &pairs);
    for (int64_t p = first_point[q]; p < first_point[q + 1]; p += TILE)
    {
        int64_t point = p + threadIdx.x;
        start_walk(&c, point, point < first_point[q + 1], &w);
        walk_all<INTERIOR>(&c, &pairs, n, &tile, &w);
        put_together(&c, q, alone, point, &w);
        n_met += w.n_met;
    }
    for (int step = WARP / 2; step > 0; step /= 2)
        n_met += __shfl_xor_sync(~0u, n_met, step);
    if (threadIdx.x % WARP == 0 && n_met > 0)
        atomicAdd(c.answers.n_met.data, (unsigned long long)n_met);
}

static oj_status make_answers(struct chunk *c)
{
    struct quadrant_answers *a = &c->answers;
    int64_t n = c->quadrants.n_points;
    OJ_TRY(c->make(n, &a->distance, &a->rank));
    OJ_TRY(c->make(c->quadrants.n, &a->lock));
    OJ_TRY(c->make(1, &a->n_met));
    OJ_TRY(c->clear(&a->n_met, "starting answers"));
    OJ_TRY(c->clear(&a->lock, "starting answers"));
    double *distance = a->distance.data;
    int32_t *rank = a->rank.data;
    return oj_cuda_each(
        c->stream, n,
        [=] __device__(int64_t i)
        {
            distance[i] = INFINITY;
            rank[i] = INT32_MAX;
        },
        "starting answers", c->err);
}

static oj_status refine_slice(struct chunk *c)
{
    unsigned n_blocks = (unsigned)c->slice.n_tasks;
    if (n_blocks == 0)
        return OJ_OK;
    if (c->interior && c->grid.flag.n > 0)
        refine<1><<<n_blocks, TILE, 0, c->stream>>>(*c);
    else
        refine<0><<<n_blocks, TILE, 0, c->stream>>>(*c);
    OJ_CUDA_TRY_LAUNCH("measuring distances", c->err);
    return OJ_OK;
}

static oj_status answer_all(struct chunk *c)
{
    const struct quadrant_chunk chunk = *c;
    OJ_TRY(oj_cuda_each(
        c->stream, c->n,
        [=] __device__(int64_t i)
        {
            chunk.row.data[i] = -1;
            chunk.measure.data[i] = NAN;
        },
        "answering", c->err));
    return oj_cuda_each(
        c->stream, c->quadrants.n_points,
        [=] __device__(int64_t p)
        {
            const int32_t *ordinal_of = chunk.layer.ordinal_of.data;
            int32_t best = chunk.answers.rank.data[p];
            int32_t row = chunk.quadrants.row.data[p];
            if (best == INT32_MAX)
                return;
            chunk.row.data[row] = ordinal_of != NULL ? ordinal_of[best] : best;
            chunk.measure.data[row] = chunk.answers.distance.data[p];
        },
        "answering", c->err);
}

/* --- batches ----------------------------------------------------------- */

/* Waits for what is enqueued, which adds to *seconds. */
static oj_status end_stage(struct chunk *c, double *seconds)
{
    double start = c->stage_start;
    OJ_CUDA_TRY(cudaStreamSynchronize(c->stream), "joining", c->err);
    c->stage_start = oj_clock_seconds();
    *seconds += c->stage_start - start;
    return oj_check_cancel(c->self->device.cancel, c->err);
}

static oj_status load(struct chunk *c, const double *x, const double *y)
{
    size_t bytes = (size_t)c->n * sizeof *x;
    OJ_TRY(c->make(c->n, &c->x, &c->y, &c->measure, &c->row));
    OJ_CUDA_TRY(
        cudaMemcpyAsync(c->x.data, x, bytes, cudaMemcpyHostToDevice, c->stream),
        "copying points", c->err);
    OJ_CUDA_TRY(
        cudaMemcpyAsync(c->y.data, y, bytes, cudaMemcpyHostToDevice, c->stream),
        "copying points", c->err);
    return OJ_OK;
}

static oj_status group(struct chunk *c)
{
    struct oj_gpu_quadrant_index *self = c->self;
    int64_t size = self->options.quadrant_size;
    OJ_TRY(make_quadrants(c, size > 0 ? size : default_size));
    return end_stage(c, &c->sort_s);
}

/* Room for as many pairs as there is memory for, up to n. *got: how many. */
static oj_status hold_pairs(struct chunk *c, int64_t n, int64_t *got)
{
    for (*got = n < most_pairs ? n : most_pairs;; *got /= 2)
    {
        oj_status status = c->make(*got, &c->pairs.feature);
        if (status != OJ_ERR_NOMEM || *got <= least_pairs)
            return status;
    }
}

/* One quadrant may have more pairs than are held at a time. */
static oj_status make_room(struct chunk *c)
{
    if (c->slice.n_pairs <= c->pairs.feature.n)
        return OJ_OK;
    c->drop(&c->pairs.feature);
    return c->make(c->slice.n_pairs, &c->pairs.feature);
}

static oj_status run_slice(struct chunk *c, int64_t most)
{
    OJ_TRY(next_slice(c, most));
    OJ_TRY(make_room(c));
    OJ_TRY(list_pairs(c));
    OJ_TRY(end_stage(c, &c->filter_s));
    OJ_TRY(refine_slice(c));
    return end_stage(c, &c->refine_s);
}

static oj_status meet(struct chunk *c)
{
    int64_t most = 0;
    if (c->quadrants.n == 0 || c->grid.n_entries == 0)
        return OJ_OK;
    OJ_TRY(count_all_pairs(c));
    OJ_TRY(end_stage(c, &c->filter_s));
    if (c->pairs.n == 0)
        return OJ_OK;
    OJ_TRY(hold_pairs(c, c->pairs.n, &most));
    while (c->slice.end < c->quadrants.n)
        OJ_TRY(run_slice(c, most));
    return OJ_OK;
}

static oj_status unload(struct chunk *c, int32_t *row, double *measure)
{
    unsigned long long n_met = 0;
    size_t n = (size_t)c->n;
    OJ_TRY(answer_all(c));
    OJ_TRY(end_stage(c, &c->refine_s));
    OJ_CUDA_TRY(cudaMemcpyAsync(row, c->row.data, n * sizeof *row,
                                cudaMemcpyDeviceToHost, c->stream),
                "copying answers", c->err);
    OJ_CUDA_TRY(cudaMemcpyAsync(measure, c->measure.data, n * sizeof *measure,
                                cudaMemcpyDeviceToHost, c->stream),
                "copying answers", c->err);
    OJ_CUDA_TRY(cudaMemcpyAsync(&n_met, c->answers.n_met.data, sizeof n_met,
                                cudaMemcpyDeviceToHost, c->stream),
                "copying answers", c->err);
    OJ_CUDA_TRY(cudaStreamSynchronize(c->stream), "copying answers", c->err);
    c->n_met = (int64_t)n_met;
    return OJ_OK;
}

static void drop_chunk(struct chunk *c)
{
    struct quadrants *q = &c->quadrants;
    struct quadrant_pairs *p = &c->pairs;
    struct quadrant_answers *a = &c->answers;
    c->drop(&c->scratch, &c->x, &c->y, &c->measure, &c->row, &q->row, &q->x,
            &q->y, &q->first, &q->window, &p->offset, &p->task, &p->feature,
            &a->distance, &a->rank, &a->lock, &a->n_met);
    /* What is under way must not outlive the host's arrays. */
    (void)cudaStreamSynchronize(c->stream);
    (void)cudaGetLastError();
}

static oj_status run_chunk(struct chunk *c, const double *x, const double *y,
                           int32_t *row, double *measure)
{
    c->stage_start = oj_clock_seconds();
    OJ_TRY(load(c, x, y));
    OJ_TRY(group(c));
    OJ_TRY(make_answers(c));
    OJ_TRY(meet(c));
    return unload(c, row, measure);
}

/* Without memory for a chunk its halves are tried. */
static oj_status join_rows(struct oj_gpu_quadrant_index *self,
                           const struct oj_flat *input, int64_t first,
                           int64_t n, struct oj_matches *out,
                           struct oj_stats *stats, struct oj_error *err)
{
    struct chunk c = {};
    oj_status status;
    c.self = self;
    c.device = &self->device;
    c.stream = self->device.stream;
    c.layer = self->layer;
    c.grid = self->grid;
    c.interior = self->interior;
    c.n = n;
    c.err = err;
    status = run_chunk(&c, input->x + first, input->y + first,
                       out->join_row + first, out->measure + first);
    drop_chunk(&c);
    if (status == OJ_OK)
    {
        stats->sort_s += c.sort_s;
        stats->filter_s += c.filter_s;
        stats->refine_s += c.refine_s;
        stats->n_candidates += c.n_met;
    }
    if (status != OJ_ERR_NOMEM || n < 2 * LEAST_ROWS)
        return status;
    OJ_TRY(join_rows(self, input, first, n / 2, out, stats, err));
    return join_rows(self, input, first + n / 2, n - n / 2, out, stats, err);
}

static oj_status join_all(struct oj_gpu_quadrant_index *self,
                          const struct oj_flat *input, struct oj_matches *out,
                          struct oj_stats *stats, struct oj_error *err)
{
    int64_t n = input->n_features, step = most_rows;
    OJ_CUDA_TRY(cudaSetDevice(self->device.ordinal), "choosing a device", err);
    if (self->options.gpu_batch > 0 && self->options.gpu_batch < step)
        step = self->options.gpu_batch;
    for (int64_t first = 0; first < n; first += step)
        OJ_TRY(join_rows(self, input, first,
                         n - first < step ? n - first : step, out, stats, err));
    return OJ_OK;
}

oj_status oj_cuda_quadrant_join(struct oj_gpu_quadrant_index *index,
                                const struct oj_flat *input,
                                struct oj_matches *out, struct oj_stats *stats,
                                struct oj_error *err)
{
    int64_t n = input->n_features, n_matched = 0;
    OJ_TRY(oj_matches_reserve(out, n, n, 0, err));
    OJ_TRY(oj_cuda_try_all(
        1,
        [&](int, struct oj_error *error)
        { return join_all(index, input, out, stats, error); },
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
                             "copying the layer", err);
    OJ_TRY(oj_cuda_layer_make(&work, join_side, NULL, tie_rank, NULL,
                              &self->layer));
    oj_cuda_hand_over(&work.memory, NULL, &self->memory);
    return make_grid(&self->device, &self->layer, reach, &self->grid, err);
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
    status = oj_cuda_try_all(
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
    stats->index_bytes +=
        oj_cuda_bytes(&self->grid.box, &self->grid.first, &self->grid.flag) +
        self->grid.n_entries * (int64_t)(sizeof(uint64_t) + sizeof(int32_t));
    *out = self;
    return OJ_OK;
}

static void free_aside(void *user)
{
    struct oj_gpu_quadrant_index *self = (struct oj_gpu_quadrant_index *)user;
    if (self->device.stream == NULL)
        return;
    (void)cudaSetDevice(self->device.ordinal);
    oj_cuda_drop(&self->device, self->device.stream, &self->grid.box,
                 &self->grid.cell, &self->grid.feature, &self->grid.first,
                 &self->grid.flag);
    oj_cuda_release(&self->device, self->device.stream, &self->memory);
    oj_cuda_close(&self->device);
    (void)cudaGetLastError();
}

void oj_cuda_quadrant_free(struct oj_gpu_quadrant_index *index)
{
    if (index == NULL)
        return;
    oj_cuda_aside(free_aside, index);
    oj_free(index);
}
