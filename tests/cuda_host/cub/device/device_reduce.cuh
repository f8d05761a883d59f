/** cub::DeviceReduce as far as the module uses it. */
#ifndef OJ_HOST_DEVICE_REDUCE_CUH
#define OJ_HOST_DEVICE_REDUCE_CUH

#include "../temporary.cuh"

namespace cub
{
struct DeviceReduce
{
    /* The last elements first: the order is of no account. */
    template <typename In, typename T, typename Op>
    static cudaError_t Reduce(void *temporary, size_t &bytes, In in, T *out,
                              int n, Op op, T first,
                              cudaStream_t stream = nullptr)
    {
        if (oj_host::asks_size(temporary, bytes, n))
            return cudaSuccess;
        return oj_host::enqueue(stream,
                                [=]
                                {
                                    T all = first;
                                    for (int i = n - 1; i >= 0; i--)
                                        all = op(all, in[i]);
                                    *out = all;
                                });
    }
};
} // namespace cub

#endif
