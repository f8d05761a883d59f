/** Calls of CUB: each is asked how much memory it wants, gets it and works. */
#ifndef CUDA_CUB_CUH
#define CUDA_CUB_CUH

#include "cuda_stage.h"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

#include <iterator>

/** Runs call(memory, bytes), a call of CUB that tells bytes where memory is
 *  NULL. scratch grows as calls want; its owner drops it. */
template <typename Call>
OJ_MUST_USE oj_status
oj_cuda_with_scratch(struct oj_cuda_device *device, cudaStream_t stream,
                     struct oj_cuda_array<uint8_t> *scratch, Call call,
                     const char *doing, struct oj_error *err)
{
    size_t bytes = 0;
    OJ_CUDA_TRY(call((void *)NULL, bytes), doing, err);
    if ((int64_t)bytes > scratch->n)
    {
        oj_cuda_drop(device, stream, scratch);
        OJ_TRY(oj_cuda_make(device, stream, (int64_t)bytes, scratch, err));
    }
    OJ_CUDA_TRY(call((void *)scratch->data, bytes), doing, err);
    return OJ_OK;
}

/** Counts [n + 1], the last one 0, become offsets, in place. */
template <typename T>
OJ_MUST_USE oj_status oj_cuda_scan(struct oj_cuda_device *device,
                                   cudaStream_t stream,
                                   struct oj_cuda_array<uint8_t> *scratch,
                                   T *counts, int64_t n, const char *doing,
                                   struct oj_error *err)
{
    return oj_cuda_with_scratch(
        device, stream, scratch,
        [&](void *memory, size_t &bytes)
        {
            return cub::DeviceScan::ExclusiveSum(memory, bytes, counts, counts,
                                                 n + 1, stream);
        },
        doing, err);
}

/** The same, and waits for their sum. */
template <typename T>
OJ_MUST_USE oj_status oj_cuda_scan_total(struct oj_cuda_device *device,
                                         cudaStream_t stream,
                                         struct oj_cuda_array<uint8_t> *scratch,
                                         T *counts, int64_t n, T *total,
                                         const char *doing,
                                         struct oj_error *err)
{
    OJ_TRY(oj_cuda_scan(device, stream, scratch, counts, n, doing, err));
    return oj_cuda_read(stream, counts + n, (int)sizeof *total, total, doing,
                        err);
}

/** Work on a device in order of a stream: a struct of what it makes has this
 *  as its base.  The calls are those above, and their failures go to err. */
struct oj_cuda_job
{
    struct oj_cuda_device *device;
    cudaStream_t stream;
    struct oj_error *err;
    struct oj_cuda_array<uint8_t>
        scratch; /**< of calls of CUB; to be dropped */

    /** Arrays of n elements each. */
    template <typename... T>
    OJ_MUST_USE oj_status make(int64_t n, struct oj_cuda_array<T> *...out)
    {
        return oj_cuda_make(device, stream, n, out..., err);
    }
    template <typename... T> void drop(struct oj_cuda_array<T> *...array)
    {
        oj_cuda_drop(device, stream, array...);
    }
    template <typename T>
    OJ_MUST_USE oj_status clear(const struct oj_cuda_array<T> *array,
                                const char *doing)
    {
        return oj_cuda_clear(stream, array, doing, err);
    }
    template <typename Call>
    OJ_MUST_USE oj_status with_scratch(Call call, const char *doing)
    {
        return oj_cuda_with_scratch(device, stream, &scratch, call, doing, err);
    }
    template <typename T>
    OJ_MUST_USE oj_status scan(T *counts, int64_t n, const char *doing)
    {
        return oj_cuda_scan(device, stream, &scratch, counts, n, doing, err);
    }
    template <typename T>
    OJ_MUST_USE oj_status scan_total(T *counts, int64_t n, T *total,
                                     const char *doing)
    {
        return oj_cuda_scan_total(device, stream, &scratch, counts, n, total,
                                  doing, err);
    }
    /** Waits for the stream. */
    template <typename From, typename T>
    OJ_MUST_USE oj_status read(const From *from, T *to, const char *doing)
    {
        static_assert(sizeof *from == sizeof *to, "they are the same bytes");
        return oj_cuda_read(stream, from, (int)sizeof *to, to, doing, err);
    }
    /** Launches blocks of BLOCK threads, n in all. */
    template <int BLOCK = 256, typename... P, typename... A>
    OJ_MUST_USE oj_status run(int64_t n, const char *doing,
                              void (*kernel)(P...), A... arguments)
    {
        kernel<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(arguments...);
        OJ_CUDA_TRY_LAUNCH(doing, err);
        return OJ_OK;
    }
};

/** The values of(0), of(1), .. as calls of CUB read them. */
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
 *  order; waits for the device's stream. n is below 2^31. */
template <typename V, typename Of, typename Op>
OJ_MUST_USE oj_status oj_cuda_reduce(struct oj_cuda_device *device, Of of,
                                     int64_t n, Op op, V *sum,
                                     const char *doing, struct oj_error *err)
{
    cudaStream_t stream = device->stream;
    oj_cuda_computed<V, Of> values = {of, 0};
    oj_cuda_array<uint8_t> scratch = {NULL, 0};
    oj_cuda_array<V> out = {NULL, 0};
    oj_status status = oj_cuda_make(device, stream, 1, &out, err);
    if (status == OJ_OK)
        status = oj_cuda_with_scratch(
            device, stream, &scratch,
            [&](void *memory, size_t &bytes)
            {
                return cub::DeviceReduce::Reduce(
                    memory, bytes, values, out.data, (int)n, op, *sum, stream);
            },
            doing, err);
    if (status == OJ_OK)
        status =
            oj_cuda_read(stream, out.data, (int)sizeof *sum, sum, doing, err);
    oj_cuda_drop(device, stream, &out, &scratch);
    return status;
}

/** Keys with their values, and room for as many; zeroed memory is empty. */
template <typename K, typename V> struct oj_cuda_sorting
{
    struct oj_cuda_array<K> key[2];
    struct oj_cuda_array<V> value[2];
    struct oj_cuda_array<uint8_t> scratch;
};

template <typename K, typename V>
OJ_MUST_USE oj_status oj_cuda_sorting_make(struct oj_cuda_device *device,
                                           cudaStream_t stream, int64_t n,
                                           struct oj_cuda_sorting<K, V> *s,
                                           struct oj_error *err)
{
    return oj_cuda_make(device, stream, n, &s->key[0], &s->value[0], &s->key[1],
                        &s->value[1], err);
}

template <typename T>
void oj_cuda_swap(struct oj_cuda_array<T> *a, struct oj_cuda_array<T> *b)
{
    struct oj_cuda_array<T> other = *a;
    *a = *b;
    *b = other;
}

/** Sorts key[0] and value[0] by the lowest bits of the keys; what has equal
 *  ones keeps its order.  The sorted ones are number 0 again, and number 1 is
 *  anything.  At most 2^31 - 1. */
template <typename K, typename V>
OJ_MUST_USE oj_status oj_cuda_sort(struct oj_cuda_device *device,
                                   cudaStream_t stream, int bits,
                                   const char *doing,
                                   struct oj_cuda_sorting<K, V> *s,
                                   struct oj_error *err)
{
    cub::DoubleBuffer<K> keys(s->key[0].data, s->key[1].data);
    cub::DoubleBuffer<V> values(s->value[0].data, s->value[1].data);
    OJ_TRY(oj_cuda_with_scratch(
        device, stream, &s->scratch,
        [&](void *memory, size_t &bytes)
        {
            return cub::DeviceRadixSort::SortPairs(
                memory, bytes, keys, values, (int)s->key[0].n, 0, bits, stream);
        },
        doing, err));
    if (keys.Current() != s->key[0].data)
        oj_cuda_swap(&s->key[0], &s->key[1]);
    if (values.Current() != s->value[0].data)
        oj_cuda_swap(&s->value[0], &s->value[1]);
    return OJ_OK;
}

template <typename K, typename V>
void oj_cuda_sorting_drop(struct oj_cuda_device *device, cudaStream_t stream,
                          struct oj_cuda_sorting<K, V> *s)
{
    oj_cuda_drop(device, stream, &s->key[0], &s->value[0], &s->key[1],
                 &s->value[1], &s->scratch);
}

#endif
