/** Computed values of a layer put together as one. */
#ifndef CUDA_REDUCE_CUH
#define CUDA_REDUCE_CUH

#include "cuda_stream_work.cuh"

#include <cub/device/device_reduce.cuh>

#include <iterator>

/** The values of(0), of(1), .. as CUB reads them. */
template <typename V, typename Of> struct oj_cuda_computed
{
    typedef std::random_access_iterator_tag iterator_category;
    typedef V value_type;
    typedef ptrdiff_t difference_type;
    typedef const V *pointer;
    typedef V reference;
    Of of;
    ptrdiff_t at;

    __device__ V operator*() const
    {
        return of(at);
    }
    __device__ V operator[](ptrdiff_t i) const
    {
        return of(at + i);
    }
    __host__ __device__ oj_cuda_computed operator+(ptrdiff_t i) const
    {
        oj_cuda_computed moved = {of, at + i};
        return moved;
    }
};

/** Puts of(0) .. of(n - 1) together with what *sum is, by op, whatever their
 *  order; waits for the stream. n is below 2^31. */
template <typename V, typename Of, typename Op>
OJ_MUST_USE oj_status oj_cuda_reduce(struct oj_cuda_work *work, int64_t n,
                                     Of of, Op op, V *sum)
{
    oj_cuda_computed<V, Of> values = {of, 0};
    oj_cuda_work own(work);
    V *out;
    OJ_TRY(own.make(1, &out));
    OJ_TRY(own.with_scratch(
        [&](void *temporary, size_t &bytes)
        {
            return cub::DeviceReduce::Reduce(temporary, bytes, values, out,
                                             (int)n, op, *sum, own.stream);
        }));
    return own.read(out, sum);
}

#endif
