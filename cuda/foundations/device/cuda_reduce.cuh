/** Reduces the values of a function on a device to one value. */
#ifndef CUDA_REDUCE_CUH
#define CUDA_REDUCE_CUH

#include "cuda_stream_work.cuh"

#define OJ_CUDA_REDUCE_BLOCK 128

/** Reduces of(0) .. of(n - 1) by op to one value per block of threads, in out
 *  [blocks]. `none` must be the neutral element of op. */
template <typename V, typename Of, typename Op>
static __global__ void __launch_bounds__(OJ_CUDA_REDUCE_BLOCK)
    oj_cuda_reduce_values(int64_t n, const __grid_constant__ Of of,
                          const __grid_constant__ Op op,
                          const __grid_constant__ V none, V *out)
{
    __shared__ V of_thread[OJ_CUDA_REDUCE_BLOCK];
    unsigned t = threadIdx.x;
    V value = none;
    for (int64_t i = (int64_t)blockIdx.x * OJ_CUDA_REDUCE_BLOCK + t; i < n;
         i += (int64_t)gridDim.x * OJ_CUDA_REDUCE_BLOCK)
        value = op(value, of((ptrdiff_t)i));
    of_thread[t] = value;
    for (unsigned half = OJ_CUDA_REDUCE_BLOCK / 2; half > 0; half /= 2)
    {
        __syncthreads();
        if (t < half)
            of_thread[t] = op(of_thread[t], of_thread[t + half]);
    }
    if (t == 0)
        out[blockIdx.x] = of_thread[0];
}

/** Reduces of(0) .. of(n - 1) by op into *sum. On entry *sum must be the
 *  neutral element of op, which must be associative and commutative. Waits for
 *  the stream. */
template <typename V, typename Of, typename Op>
OJ_MUST_USE oj_status oj_cuda_reduce(struct oj_cuda_work *work, int64_t n,
                                     Of of, Op op, V *sum)
{
    oj_cuda_work own(work);
    unsigned n_blocks = oj_cuda_count_blocks(n, 16 * OJ_CUDA_REDUCE_BLOCK);
    V *of_block, *all;
    n_blocks = n_blocks < 2048 ? n_blocks : 2048;
    OJ_TRY(own.make(n_blocks, &of_block));
    OJ_TRY(own.make(1, &all));
    OJ_TRY(own.launch_blocks<OJ_CUDA_REDUCE_BLOCK>(
        n_blocks, oj_cuda_reduce_values<V, Of, Op>, n, of, op, *sum, of_block));
    auto value_of_block = [=] __device__(ptrdiff_t i) { return of_block[i]; };
    OJ_TRY(own.launch_blocks<OJ_CUDA_REDUCE_BLOCK>(
        1, oj_cuda_reduce_values<V, decltype(value_of_block), Op>,
        (int64_t)n_blocks, value_of_block, op, *sum, all));
    return own.read(all, sum);
}

#endif
