/** Kernels with a thread for each of n things. */
#ifndef CUDA_PARALLEL_FOR_CUH
#define CUDA_PARALLEL_FOR_CUH

#include "cuda_cub.cuh"

#define OJ_CUDA_EACH_BLOCK 256

template <typename Body>
static __global__ void oj_cuda_each_of(int64_t n,
                                       const __grid_constant__ Body body)
{
    int64_t i = (int64_t)blockIdx.x * OJ_CUDA_EACH_BLOCK + threadIdx.x;
    if (i < n)
        body(i);
}

/** Enqueues body(0) .. body(n - 1), a thread each. body holds copies: name no
 *  pointer to memory of the host in it. */
template <typename Body>
OJ_MUST_USE oj_status oj_cuda_each(cudaStream_t stream, int64_t n, Body body,
                                   const char *doing, struct oj_error *err)
{
    if (n > 0)
        oj_cuda_each_of<Body><<<oj_blocks(n, OJ_CUDA_EACH_BLOCK),
                                OJ_CUDA_EACH_BLOCK, 0, stream>>>(n, body);
    OJ_CUDA_TRY_LAUNCH(doing, err);
    return OJ_OK;
}

template <typename K, typename Key> struct oj_cuda_key_writer
{
    Key key_of;
    K *key;
    int32_t *number;

    __device__ void operator()(int64_t i) const
    {
        key[i] = key_of(i);
        number[i] = (int32_t)i;
    }
};

/** order [n]: 0 .. n - 1 by the lowest bits of key_of(0) .., and where these
 *  are equal by number. At most 2^31 - 1. */
template <typename K, typename Key>
OJ_MUST_USE oj_status oj_cuda_order_by(struct oj_cuda_device *device,
                                       cudaStream_t stream, int64_t n, int bits,
                                       Key key_of,
                                       struct oj_cuda_array<int32_t> *order,
                                       const char *doing, struct oj_error *err)
{
    oj_cuda_sorting<K, int32_t> s = {};
    oj_status status = oj_cuda_sorting_make(device, stream, n, &s, err);
    if (status == OJ_OK)
    {
        oj_cuda_key_writer<K, Key> write = {key_of, s.key[0].data,
                                            s.value[0].data};
        status = oj_cuda_each(stream, n, write, doing, err);
    }
    if (status == OJ_OK)
        status = oj_cuda_sort(device, stream, bits, doing, &s, err);
    if (status == OJ_OK)
        oj_cuda_swap(order, &s.value[0]);
    oj_cuda_sorting_drop(device, stream, &s);
    return status;
}

#endif
