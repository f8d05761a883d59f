/* The join side for the quadrant method: boxes, cells, and where the segments
 * of features and rings end. */
#include "../../flatten/base/oj_compare.h"
#include "../device/cuda_scratch.cuh"
#include "cuda_quadrant.h"

#include <stdlib.h>

#define BLOCK 256
#define WARP 32
#define N_SAMPLES 1023

struct quadrant_grid_build
{
    struct oj_cuda_device *device;
    const struct oj_cuda_layer *layer;
    struct oj_cuda_quadrant_grid *grid;
    struct oj_cuda_array<double> n_cells; /* [1] */
    struct oj_cuda_array<int64_t> offset; /* [features + 1] */
    struct oj_cuda_array<uint8_t> scratch;
    struct oj_cuda_sorting<uint64_t, int32_t> entries; /* features by cell */
    struct oj_error *err;
};

/* Where features' segments begin. */
static __global__ void
list_first(const __grid_constant__ struct oj_cuda_layer layer, int32_t *first)
{
    int64_t f = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (f > layer.n_features)
        return;
    if (layer.short_points)
        first[f] = (int32_t)f;
    else if (f == layer.n_features)
        first[f] = (int32_t)layer.n_segments;
    else
        first[f] = (int32_t)layer.segment_offset
                       .data[layer.ring_offset.data[layer.part_offset.data[f]]];
}

/* A thread for each part: those without segments are none. */
static __global__ void
flag_parts(const __grid_constant__ struct oj_cuda_layer layer, uint8_t *flag)
{
    int64_t p = (int64_t)blockIdx.x * BLOCK + threadIdx.x, end;
    const int64_t *ring = layer.ring_offset.data;
    const int64_t *segment = layer.segment_offset.data;
    if (p >= layer.n_parts)
        return;
    end = segment[ring[p + 1]];
    if (end > segment[ring[p]])
        flag[end - 1] = layer.part_kind.data[p] == OJ_PART_POLYGON
                            ? OJ_QUADRANT_POLYGON_END
                            : OJ_QUADRANT_LINE_END;
}

/* A warp for each feature. */
static __global__ void make_boxes(int64_t n, const int32_t *first,
                                  const struct oj_cuda_segment *segment,
                                  struct oj_quadrant_box *out)
{
    int64_t f = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / WARP;
    struct oj_quadrant_box box = oj_quadrant_box_empty();
    if (f >= n)
        return;
    for (int64_t s = first[f] + (int)threadIdx.x % WARP; s < first[f + 1];
         s += WARP)
    {
        oj_quadrant_box_add(&box, segment[s].ax, segment[s].ay);
        oj_quadrant_box_add(&box, segment[s].bx, segment[s].by);
    }
    for (int step = WARP / 2; step > 0; step /= 2)
    {
        box.x0 = fmin(box.x0, __shfl_xor_sync(~0u, box.x0, step));
        box.y0 = fmin(box.y0, __shfl_xor_sync(~0u, box.y0, step));
        box.x1 = fmax(box.x1, __shfl_xor_sync(~0u, box.x1, step));
        box.y1 = fmax(box.y1, __shfl_xor_sync(~0u, box.y1, step));
    }
    if (threadIdx.x % WARP == 0)
        out[f] = oj_quadrant_box_of_feature(&box);
}

/* Cells of a feature; 0 when it has no box. */
static __device__ double cells_of(const struct oj_cuda_quadrant_grid &grid,
                                  int64_t f, struct oj_quadrant_cells *cells)
{
    struct oj_quadrant_box box = grid.box.data[f];
    if (oj_quadrant_box_is_empty(&box))
        return 0.0;
    box = oj_quadrant_box_around(&box, grid.reach);
    *cells = oj_quadrant_cells_of(&grid.frame, &box);
    return oj_quadrant_n_cells(cells);
}

/* Sums of whole numbers: exact as long as they matter. */
static __global__ void
sum_cells(int64_t n, const __grid_constant__ struct oj_cuda_quadrant_grid grid,
          double *sum)
{
    int64_t f = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    struct oj_quadrant_cells cells;
    double mine = f < n ? cells_of(grid, f, &cells) : 0.0;
    for (int step = WARP / 2; step > 0; step /= 2)
        mine += __shfl_xor_sync(~0u, mine, step);
    if (threadIdx.x % WARP == 0)
        atomicAdd(sum, mine);
}

static __global__ void
count_cells(int64_t n,
            const __grid_constant__ struct oj_cuda_quadrant_grid grid,
            int64_t *count)
{
    int64_t f = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    struct oj_quadrant_cells cells;
    if (f <= n)
        count[f] = f < n ? (int64_t)cells_of(grid, f, &cells) : 0;
}

/* A warp for each feature. */
static __global__ void
list_cells(int64_t n, const __grid_constant__ struct oj_cuda_quadrant_grid grid,
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
    struct oj_cuda_quadrant_grid *grid = m->grid;
    cudaStream_t stream = m->device->stream;
    int64_t n = layer->n_features;
    OJ_TRY(oj_cuda_make(m->device, stream, n + 1, &grid->first, m->err));
    OJ_TRY(oj_cuda_make(m->device, stream, n, &grid->box, m->err));
    list_first<<<oj_blocks(n + 1, BLOCK), BLOCK, 0, stream>>>(*layer,
                                                              grid->first.data);
    make_boxes<<<oj_blocks(n * WARP, BLOCK), BLOCK, 0, stream>>>(
        n, grid->first.data, layer->segment.data, grid->box.data);
    OJ_CUDA_TRY_LAUNCH("making boxes", m->err);
    if (layer->segment_part.n == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_make(m->device, stream, layer->n_segments, &grid->flag,
                        m->err));
    OJ_TRY(oj_cuda_clear(stream, &grid->flag, "following rings", m->err));
    flag_parts<<<oj_blocks(layer->n_parts, BLOCK), BLOCK, 0, stream>>>(
        *layer, grid->flag.data);
    OJ_CUDA_TRY_LAUNCH("following rings", m->err);
    return OJ_OK;
}

/* Twice the longer side of a typical box with its reach: such a box touches a
 * few cells. */
static oj_status typical_size(struct quadrant_grid_build *m, double *out)
{
    struct oj_quadrant_box box[N_SAMPLES];
    double side[N_SAMPLES];
    int64_t n = m->layer->n_features, step = n / N_SAMPLES + 1, n_sides = 0;
    int64_t n_samples = (n + step - 1) / step;
    OJ_CUDA_TRY(cudaMemcpy2DAsync(box, sizeof *box, m->grid->box.data,
                                  (size_t)step * sizeof *box, sizeof *box,
                                  (size_t)n_samples, cudaMemcpyDeviceToHost,
                                  m->device->stream),
                "looking at boxes", m->err);
    OJ_CUDA_TRY(cudaStreamSynchronize(m->device->stream), "looking at boxes",
                m->err);
    for (int64_t i = 0; i < n_samples; i++)
    {
        if (!oj_quadrant_box_is_empty(&box[i]))
            side[n_sides++] =
                fmax(box[i].x1 - box[i].x0, box[i].y1 - box[i].y0);
    }
    qsort(side, (size_t)n_sides, sizeof *side, oj_compare_doubles);
    *out =
        2.0 * ((n_sides > 0 ? side[n_sides / 2] : 0.0) + 2.0 * m->grid->reach);
    return OJ_OK;
}

static oj_status count_entries(struct quadrant_grid_build *m, double *out)
{
    struct oj_cuda_quadrant_grid *grid = m->grid;
    cudaStream_t stream = m->device->stream;
    int64_t n = m->layer->n_features;
    OJ_TRY(oj_cuda_clear(stream, &m->n_cells, "counting cells", m->err));
    sum_cells<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(n, *grid,
                                                         m->n_cells.data);
    OJ_CUDA_TRY_LAUNCH("counting cells", m->err);
    return oj_cuda_read(stream, m->n_cells.data, (int)sizeof *out, out,
                        "counting cells", m->err);
}

/* Chooses the cells' size so that there are at most a few entries a feature:
 * one cell has one of each at most. */
static oj_status choose_size(struct quadrant_grid_build *m)
{
    const struct oj_cuda_layer *layer = m->layer;
    struct oj_cuda_quadrant_grid *grid = m->grid;
    struct oj_quadrant_box all = {layer->x0, layer->y0, layer->x1, layer->y1};
    double limit = fmin(6.0 * (double)layer->n_features + 1024.0, 2147483000.0);
    double extent, size, n;
    all = oj_quadrant_box_around(&all, grid->reach);
    extent = fmax(all.x1 - all.x0, all.y1 - all.y0);
    grid->frame.x0 = all.x0;
    grid->frame.y0 = all.y0;
    OJ_TRY(typical_size(m, &size));
    size = fmax(size, extent / OJ_QUADRANT_LAST_COLUMN);
    if (!(extent < INFINITY) || !(size > 0.0))
        size = INFINITY;
    OJ_TRY(oj_cuda_make(m->device, m->device->stream, 1, &m->n_cells, m->err));
    for (;; size *= 2.0)
    {
        grid->frame.size = size;
        OJ_TRY(count_entries(m, &n));
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
    struct oj_cuda_quadrant_grid *grid = m->grid;
    struct oj_cuda_device *device = m->device;
    cudaStream_t stream = device->stream;
    int64_t n = m->layer->n_features, n_entries;
    OJ_TRY(choose_size(m));
    n_entries = grid->n_entries;
    OJ_TRY(oj_cuda_make(device, stream, n + 1, &m->offset, m->err));
    OJ_TRY(
        oj_cuda_sorting_make(device, stream, n_entries, &m->entries, m->err));
    count_cells<<<oj_blocks(n + 1, BLOCK), BLOCK, 0, stream>>>(n, *grid,
                                                               m->offset.data);
    OJ_CUDA_TRY_LAUNCH("counting cells", m->err);
    OJ_TRY(oj_cuda_scan(device, stream, &m->scratch, m->offset.data, n,
                        "summing counts", m->err));
    list_cells<<<oj_blocks(n * WARP, BLOCK), BLOCK, 0, stream>>>(
        n, *grid, m->offset.data, m->entries.key[0].data,
        m->entries.value[0].data);
    OJ_CUDA_TRY_LAUNCH("listing cells", m->err);
    if (n_entries > 0)
        OJ_TRY(oj_cuda_sort(device, stream, 64, "sorting cells", &m->entries,
                            m->err));
    oj_cuda_swap(&grid->cell, &m->entries.key[0]);
    oj_cuda_swap(&grid->feature, &m->entries.value[0]);
    return OJ_OK;
}

oj_status oj_cuda_quadrant_grid_make(struct oj_cuda_device *device,
                                     const struct oj_cuda_layer *layer,
                                     double reach,
                                     struct oj_cuda_quadrant_grid *out,
                                     struct oj_error *err)
{
    struct quadrant_grid_build m = {};
    oj_status status;
    out->reach = reach;
    if (layer->n_segments == 0)
        return OJ_OK;
    m.device = device;
    m.layer = layer;
    m.grid = out;
    m.err = err;
    status = follow_segments(&m);
    if (status == OJ_OK)
        status = make_cells(&m);
    oj_cuda_drop(device, device->stream, &m.n_cells, &m.offset, &m.scratch);
    oj_cuda_sorting_drop(device, device->stream, &m.entries);
    OJ_TRY(status);
    OJ_CUDA_TRY(cudaStreamSynchronize(device->stream), "laying a grid", err);
    return OJ_OK;
}
