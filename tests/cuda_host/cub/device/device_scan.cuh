/** cub::DeviceScan, the parts that the module uses. */
#ifndef OJ_HOST_DEVICE_SCAN_CUH
#define OJ_HOST_DEVICE_SCAN_CUH

#include "../temporary.cuh"

namespace cub
{
struct DeviceScan
{
    template <typename In, typename Out, typename N>
    static cudaError_t ExclusiveSum(void *temporary, size_t &bytes, In in,
                                    Out out, N n, cudaStream_t stream = nullptr)
    {
        if (oj_host::asks_size(temporary, bytes, (int64_t)n))
            return cudaSuccess;
        return oj_host::enqueue(stream,
                                [=]
                                {
                                    auto sum = decltype(in[0] + in[0])();
                                    for (N i = 0; i < n; i++)
                                    {
                                        auto v = in[i];
                                        out[i] = sum;
                                        sum = sum + v;
                                    }
                                });
    }

    template <typename In, typename Out, typename Op, typename N>
    static cudaError_t InclusiveScan(void *temporary, size_t &bytes, In in,
                                     Out out, Op op, N n,
                                     cudaStream_t stream = nullptr)
    {
        if (oj_host::asks_size(temporary, bytes, (int64_t)n))
            return cudaSuccess;
        return oj_host::enqueue(stream,
                                [=]
                                {
                                    for (N i = 0; i < n; i++)
                                        out[i] = i > 0 ? op(out[i - 1], in[i])
                                                       : in[i];
                                });
    }
};
} // namespace cub

#endif
