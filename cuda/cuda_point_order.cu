#include "cuda_point_order.h"

#include <cub/device/device_radix_sort.cuh>

#include <string.h>

enum
{
    BLOCK = 256,
    FEW_POINTS = 4096
};

static __global__ void make_codes(const __grid_constant__ struct oj_tree tree,
                                  struct oj_cuda_points points, uint32_t *code,
                                  int32_t *order)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    struct oj_tree_box box;
    if (i >= points.n)
        return;
    box.x0 = box.x1 = points.x[i];
    box.y0 = box.y1 = points.y[i];
    code[i] = (uint32_t)(oj_tree_code(&tree, &box) >> 32);
    order[i] = (int32_t)i;
}

struct sorting
{
    struct oj_cuda_array<uint32_t> code[2];
    struct oj_cuda_array<int32_t> order[2];
    struct oj_cuda_array<uint8_t> scratch;
};

static oj_status sort_points(struct oj_cuda_device *device, cudaStream_t stream,
                             const struct oj_tree *tree,
                             const struct oj_cuda_points *points,
                             struct sorting *s, int *sorted,
                             struct oj_error *err)
{
    int64_t n = points->n;
    size_t bytes = 0;
    for (int i = 0; i < 2; i++)
    {
        OJ_TRY(oj_cuda_make(device, stream, n, &s->code[i], err));
        OJ_TRY(oj_cuda_make(device, stream, n, &s->order[i], err));
    }
    make_codes<<<(unsigned)((n + BLOCK - 1) / BLOCK), BLOCK, 0, stream>>>(
        *tree, *points, s->code[0].data, s->order[0].data);
    OJ_CUDA_TRY_LAUNCH("ordering points", err);
    cub::DoubleBuffer<uint32_t> keys(s->code[0].data, s->code[1].data);
    cub::DoubleBuffer<int32_t> values(s->order[0].data, s->order[1].data);
    OJ_CUDA_TRY(cub::DeviceRadixSort::SortPairs(NULL, bytes, keys, values,
                                                (int)n, 0, 32, stream),
                "ordering points", err);
    OJ_TRY(oj_cuda_make(device, stream, (int64_t)bytes, &s->scratch, err));
    OJ_CUDA_TRY(cub::DeviceRadixSort::SortPairs(s->scratch.data, bytes, keys,
                                                values, (int)n, 0, 32, stream),
                "ordering points", err);
    *sorted = values.Current() == s->order[1].data;
    return OJ_OK;
}

oj_status oj_cuda_point_order(struct oj_cuda_device *device,
                              cudaStream_t stream, const struct oj_tree *tree,
                              const struct oj_cuda_points *points,
                              struct oj_cuda_array<int32_t> *order,
                              struct oj_error *err)
{
    struct sorting sorting;
    oj_status status;
    int sorted = 0;
    if (points->n < FEW_POINTS || points->n > INT32_MAX || tree->n == 0)
        return OJ_OK;
    memset(&sorting, 0, sizeof sorting);
    status = sort_points(device, stream, tree, points, &sorting, &sorted, err);
    if (status == OJ_OK)
    {
        *order = sorting.order[sorted];
        memset(&sorting.order[sorted], 0, sizeof sorting.order[sorted]);
    }
    for (int i = 0; i < 2; i++)
    {
        oj_cuda_drop(device, stream, &sorting.code[i]);
        oj_cuda_drop(device, stream, &sorting.order[i]);
    }
    oj_cuda_drop(device, stream, &sorting.scratch);
    return status == OJ_ERR_NOMEM ? OJ_OK : status;
}
