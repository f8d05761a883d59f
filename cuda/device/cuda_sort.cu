#include "cuda_stream_work.cuh"

#include <cub/device/device_radix_sort.cuh>

template <typename K, typename V>
static oj_status sort_pairs(struct oj_cuda_work *work, int64_t n, int bits,
                            K **key, V **value)
{
    K *other_key;
    V *other_value;
    OJ_TRY(work->make(n, &other_key));
    OJ_TRY(work->make(n, &other_value));
    cub::DoubleBuffer<K> keys(*key, other_key);
    cub::DoubleBuffer<V> values(*value, other_value);
    OJ_TRY(work->with_scratch(
        [&](void *temporary, size_t &bytes)
        {
            return cub::DeviceRadixSort::SortPairs(
                temporary, bytes, keys, values, (int)n, 0, bits, work->stream);
        }));
    *key = keys.Current();
    *value = values.Current();
    work->drop(keys.Alternate());
    work->drop(values.Alternate());
    return OJ_OK;
}

oj_status oj_cuda_work::sort(int64_t n, int bits, uint32_t **key,
                             int32_t **value)
{
    return sort_pairs(this, n, bits, key, value);
}

oj_status oj_cuda_work::sort(int64_t n, int bits, uint64_t **key,
                             int32_t **value)
{
    return sort_pairs(this, n, bits, key, value);
}

oj_status oj_cuda_work::sort_keys(int64_t n, int first_bit, int end_bit,
                                  const uint64_t *key, uint64_t *sorted)
{
    return with_scratch(
        [&](void *temporary, size_t &bytes)
        {
            return cub::DeviceRadixSort::SortKeys(
                temporary, bytes, key, sorted, n, first_bit, end_bit, stream);
        });
}
