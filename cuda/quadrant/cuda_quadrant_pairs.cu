/* Quadrants and features whose boxes meet: counted, then written, a warp for
 * each quadrant. */
#include "../device/cuda_scratch.cuh"
#include "cuda_quadrant.h"

#include <string.h>

#define BLOCK 256
#define WARP 32

struct filter
{
    int64_t n_entries;
    struct oj_quadrant_frame frame;
    double reach;
    const struct oj_quadrant_box *box; /* of features */
    const uint64_t *cell;
    const int32_t *feature;
    const struct oj_quadrant_box *window; /* of quadrants */
};

static struct filter filter_of(const struct oj_cuda_quadrant_grid *grid,
                               const struct oj_cuda_quadrants *quadrants)
{
    struct filter f = {grid->n_entries,       grid->frame,
                       grid->reach,           grid->box.data,
                       grid->cell.data,       grid->feature.data,
                       quadrants->window.data};
    return f;
}

/* 1 when entry i stands for a pair with this window. */
static __device__ int is_pair(const struct filter *f, int64_t i,
                              const struct oj_quadrant_box *window,
                              const struct oj_quadrant_cells *cells)
{
    struct oj_quadrant_box box =
        oj_quadrant_box_around(&f->box[f->feature[i]], f->reach);
    struct oj_quadrant_cells of_box;
    if (!oj_quadrant_boxes_meet(&box, window))
        return 0;
    of_box = oj_quadrant_cells_of(&f->frame, &box);
    return oj_quadrant_counts_in(f->cell[i], cells, &of_box);
}

/* The pairs of a quadrant in the order of entries; out NULL: only counted. */
static __device__ int64_t visit(const struct filter *f, int64_t q, int32_t *out)
{
    struct oj_quadrant_box window = f->window[q];
    struct oj_quadrant_cells cells = oj_quadrant_cells_of(&f->frame, &window);
    unsigned lane = threadIdx.x % WARP;
    uint32_t row = cells.row0;
    int64_t n = 0, first, end;
    while (row <= cells.row1)
    {
        row = oj_quadrant_run(f->cell, f->n_entries, row, &cells, &first, &end);
        for (int64_t i = first; i < end; i += WARP)
        {
            int is = i + lane < end && is_pair(f, i + lane, &window, &cells);
            unsigned mask = __ballot_sync(~0u, is);
            if (is && out != NULL)
                out[n + __popc(mask & ((1u << lane) - 1))] =
                    f->feature[i + lane];
            n += __popc(mask);
        }
    }
    return n;
}

static __global__ void count_pairs(struct filter f, int64_t n, int64_t *count,
                                   int64_t *n_tasks)
{
    int64_t q = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / WARP;
    int64_t n_pairs;
    if (q > n)
        return;
    n_pairs = q < n ? visit(&f, q, NULL) : 0;
    if (threadIdx.x % WARP != 0)
        return;
    count[q] = n_pairs;
    n_tasks[q] = (n_pairs + OJ_CUDA_QUADRANT_TASK - 1) / OJ_CUDA_QUADRANT_TASK;
}

static __global__ void fill_pairs(struct filter f, int64_t first, int64_t end,
                                  const int64_t *offset, int32_t *feature)
{
    int64_t q = first + ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / WARP;
    if (q < end)
        (void)visit(&f, q, feature + (offset[q] - offset[first]));
}

/* One thread. */
static __global__ void find_slice(int64_t n, const int64_t *offset,
                                  const int64_t *task, int64_t first,
                                  int64_t most,
                                  struct oj_cuda_quadrant_slice *out)
{
    int64_t low = first + 1, high = n;
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

static oj_status count_all(struct oj_cuda_device *device,
                           const struct oj_cuda_quadrant_grid *grid,
                           const struct oj_cuda_quadrants *quadrants,
                           struct oj_cuda_quadrant_pairs *pairs,
                           struct oj_error *err)
{
    cudaStream_t stream = device->stream;
    int64_t n = quadrants->n;
    OJ_TRY(
        oj_cuda_make(device, stream, n + 1, &pairs->offset, &pairs->task, err));
    count_pairs<<<oj_blocks((n + 1) * WARP, BLOCK), BLOCK, 0, stream>>>(
        filter_of(grid, quadrants), n, pairs->offset.data, pairs->task.data);
    OJ_CUDA_TRY_LAUNCH("counting pairs", err);
    OJ_TRY(oj_cuda_scan(device, stream, &pairs->scratch, pairs->task.data, n,
                        "summing counts", err));
    return oj_cuda_scan_total(device, stream, &pairs->scratch,
                              pairs->offset.data, n, &pairs->n,
                              "summing counts", err);
}

oj_status oj_cuda_quadrant_count_pairs(
    struct oj_cuda_device *device, const struct oj_cuda_quadrant_grid *grid,
    const struct oj_cuda_quadrants *quadrants,
    struct oj_cuda_quadrant_pairs *out, struct oj_error *err)
{
    struct oj_cuda_quadrant_pairs pairs = {};
    oj_status status;
    status = count_all(device, grid, quadrants, &pairs, err);
    if (status != OJ_OK)
        oj_cuda_quadrant_pairs_drop(device, &pairs);
    else
        *out = pairs;
    return status;
}

oj_status oj_cuda_quadrant_next_slice(
    struct oj_cuda_device *device, const struct oj_cuda_quadrants *quadrants,
    const struct oj_cuda_quadrant_pairs *pairs, int64_t first, int64_t most,
    struct oj_cuda_quadrant_slice *out, struct oj_error *err)
{
    oj_cuda_array<struct oj_cuda_quadrant_slice> slice = {NULL, 0};
    cudaStream_t stream = device->stream;
    cudaError_t error;
    OJ_TRY(oj_cuda_make(device, stream, 1, &slice, err));
    find_slice<<<1, 1, 0, stream>>>(quadrants->n, pairs->offset.data,
                                    pairs->task.data, first, most, slice.data);
    error = cudaGetLastError();
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(out, slice.data, sizeof *out,
                                cudaMemcpyDeviceToHost, stream);
    oj_cuda_drop(device, stream, &slice);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream);
    OJ_CUDA_TRY(error, "choosing quadrants", err);
    return OJ_OK;
}

oj_status oj_cuda_quadrant_fill_pairs(
    struct oj_cuda_device *device, const struct oj_cuda_quadrant_grid *grid,
    const struct oj_cuda_quadrants *quadrants,
    const struct oj_cuda_quadrant_slice *slice,
    struct oj_cuda_quadrant_pairs *pairs, struct oj_error *err)
{
    int64_t n = slice->end - slice->first;
    fill_pairs<<<oj_blocks(n * WARP, BLOCK), BLOCK, 0, device->stream>>>(
        filter_of(grid, quadrants), slice->first, slice->end,
        pairs->offset.data, pairs->feature.data);
    OJ_CUDA_TRY_LAUNCH("listing pairs", err);
    return OJ_OK;
}

void oj_cuda_quadrant_pairs_drop(struct oj_cuda_device *device,
                                 struct oj_cuda_quadrant_pairs *pairs)
{
    cudaStream_t stream = device->stream;
    oj_cuda_drop(device, stream, &pairs->offset, &pairs->task, &pairs->feature,
                 &pairs->scratch);
    memset(pairs, 0, sizeof *pairs);
}
