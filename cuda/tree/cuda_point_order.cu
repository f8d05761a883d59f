#include "cuda_point_order.h"

#include "../device/cuda_scratch.cuh"

#define BLOCK 256

static __global__ void
make_codes(const __grid_constant__ struct oj_device_tree tree,
           struct oj_cuda_points points, uint32_t *code, int32_t *order)
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

oj_status oj_cuda_point_order(struct oj_cuda_device *device,
                              cudaStream_t stream,
                              const struct oj_device_tree *tree,
                              const struct oj_cuda_points *points,
                              struct oj_cuda_array<int32_t> *order,
                              struct oj_error *err)
{
    int64_t n = points->n;
    oj_status status;
    if (n < OJ_CUDA_FEW_POINTS || n > INT32_MAX || tree->n == 0)
        return OJ_OK;
    status = oj_cuda_order_by<uint32_t>(
        device, stream, n, 32,
        [&](uint32_t *code, int32_t *number)
        {
            make_codes<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(
                *tree, *points, code, number);
        },
        order, "ordering points", err);
    return status == OJ_ERR_NOMEM ? OJ_OK : status;
}
