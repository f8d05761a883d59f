#include "cuda_stream_work.cuh"

#include <cub/device/device_radix_sort.cuh>

template <typename K>
oj_status oj_cuda_work::sort(int64_t n, int bits, K **key, int32_t **value)
{
    K *other_key;
    int32_t *other_value;
    OJ_TRY(make(n, &other_key));
    OJ_TRY(make(n, &other_value));
    cub::DoubleBuffer<K> keys(*key, other_key);
    cub::DoubleBuffer<int32_t> values(*value, other_value);
    OJ_TRY(run_with_scratch_memory(
        [&](void *temporary, size_t &bytes)
        {
            return cub::DeviceRadixSort::SortPairs(
                temporary, bytes, keys, values, (int)n, 0, bits, stream);
        }));
    *key = keys.Current();
    *value = values.Current();
    drop(keys.Alternate());
    drop(values.Alternate());
    return OJ_OK;
}

template oj_status oj_cuda_work::sort(int64_t, int, uint32_t **, int32_t **);
template oj_status oj_cuda_work::sort(int64_t, int, uint64_t **, int32_t **);

oj_status oj_cuda_work::sort_keys(int64_t n, int first_bit, int end_bit,
                                  const uint64_t *key, uint64_t *sorted)
{
    return run_with_scratch_memory(
        [&](void *temporary, size_t &bytes)
        {
            return cub::DeviceRadixSort::SortKeys(
                temporary, bytes, key, sorted, n, first_bit, end_bit, stream);
        });
}
