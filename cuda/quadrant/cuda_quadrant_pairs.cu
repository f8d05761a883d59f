/* Quadrants and features whose boxes meet: counted, then written, a warp for
 * each quadrant. */
#include "../device/cuda_scratch.cuh"
#include "cuda_quadrant.h"

#define BLOCK 256
#define WARP 32

/* 1 when entry i of the grid stands for a pair with this window. */
static __device__ int is_pair(const struct oj_cuda_quadrant_grid *grid,
                              int64_t i, const struct oj_quadrant_box *window,
                              const struct oj_quadrant_cells *cells)
{
    struct oj_quadrant_box box = oj_quadrant_box_around(
        &grid->box.data[grid->feature.data[i]], grid->reach);
    struct oj_quadrant_cells of_box;
    if (!oj_quadrant_boxes_meet(&box, window))
        return 0;
    of_box = oj_quadrant_cells_of(&grid->frame, &box);
    return oj_quadrant_counts_in(grid->cell.data[i], cells, &of_box);
}

/* The pairs of a quadrant in the order of entries; out NULL: only counted. */
static __device__ int64_t visit(const struct oj_cuda_quadrant_chunk *c,
                                int64_t q, int32_t *out)
{
    const struct oj_cuda_quadrant_grid *grid = &c->grid;
    struct oj_quadrant_box window = c->quadrants.window.data[q];
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
count_pairs(const __grid_constant__ struct oj_cuda_quadrant_chunk c)
{
    int64_t q = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / WARP;
    int64_t n = c.quadrants.n, n_pairs;
    if (q > n)
        return;
    n_pairs = q < n ? visit(&c, q, NULL) : 0;
    if (threadIdx.x % WARP != 0)
        return;
    c.pairs.offset.data[q] = n_pairs;
    c.pairs.task.data[q] =
        (n_pairs + OJ_CUDA_QUADRANT_TASK - 1) / OJ_CUDA_QUADRANT_TASK;
}

static __global__ void
fill_pairs(const __grid_constant__ struct oj_cuda_quadrant_chunk c)
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
find_slice(const __grid_constant__ struct oj_cuda_quadrant_chunk c,
           int64_t most, struct oj_cuda_quadrant_slice *out)
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

oj_status oj_cuda_quadrant_count_pairs(struct oj_cuda_device *device,
                                       struct oj_cuda_quadrant_chunk *c,
                                       struct oj_error *err)
{
    struct oj_cuda_quadrant_pairs *pairs = &c->pairs;
    cudaStream_t stream = device->stream;
    int64_t n = c->quadrants.n;
    OJ_TRY(
        oj_cuda_make(device, stream, n + 1, &pairs->offset, &pairs->task, err));
    count_pairs<<<oj_blocks((n + 1) * WARP, BLOCK), BLOCK, 0, stream>>>(*c);
    OJ_CUDA_TRY_LAUNCH("counting pairs", err);
    OJ_TRY(oj_cuda_scan(device, stream, &pairs->scratch, pairs->task.data, n,
                        "summing counts", err));
    return oj_cuda_scan_total(device, stream, &pairs->scratch,
                              pairs->offset.data, n, &pairs->n,
                              "summing counts", err);
}

oj_status oj_cuda_quadrant_next_slice(struct oj_cuda_device *device,
                                      int64_t most,
                                      struct oj_cuda_quadrant_chunk *c,
                                      struct oj_error *err)
{
    oj_cuda_array<struct oj_cuda_quadrant_slice> slice = {NULL, 0};
    oj_status status;
    OJ_TRY(oj_cuda_make(device, device->stream, 1, &slice, err));
    find_slice<<<1, 1, 0, device->stream>>>(*c, most, slice.data);
    status = oj_cuda_read(device->stream, slice.data, (int)sizeof c->slice,
                          &c->slice, "choosing quadrants", err);
    oj_cuda_drop(device, device->stream, &slice);
    return status;
}

oj_status oj_cuda_quadrant_fill_pairs(struct oj_cuda_device *device,
                                      const struct oj_cuda_quadrant_chunk *c,
                                      struct oj_error *err)
{
    int64_t n = c->slice.end - c->slice.first;
    fill_pairs<<<oj_blocks(n * WARP, BLOCK), BLOCK, 0, device->stream>>>(*c);
    OJ_CUDA_TRY_LAUNCH("listing pairs", err);
    return OJ_OK;
}
