#include "cuda_stream_work.cuh"

#include <cub/device/device_segmented_sort.cuh>

template <typename K, typename V>
static oj_status
sort_pairs_of_lists(struct oj_cuda_work *work, int64_t n, int64_t n_lists,
                    const int64_t *first, const int64_t *end, const K *key,
                    K *sorted_key, const V *value, V *sorted_value)
{
    return work->with_scratch(
        [&](void *temporary, size_t &bytes)
        {
            return cub::DeviceSegmentedSort::StableSortPairs(
                temporary, bytes, key, sorted_key, value, sorted_value, (int)n,
                (int)n_lists, first, end, work->stream);
        });
}

oj_status oj_cuda_work::sort_lists(int64_t n, int64_t n_lists,
                                   const int64_t *first, const int64_t *end,
                                   const int32_t *key, int32_t *sorted_key,
                                   const double *value, double *sorted_value)
{
    return sort_pairs_of_lists(this, n, n_lists, first, end, key, sorted_key,
                               value, sorted_value);
}

oj_status oj_cuda_work::sort_lists(int64_t n, int64_t n_lists,
                                   const int64_t *first, const int64_t *end,
                                   const double *key, double *sorted_key,
                                   const int32_t *value, int32_t *sorted_value)
{
    return sort_pairs_of_lists(this, n, n_lists, first, end, key, sorted_key,
                               value, sorted_value);
}

oj_status oj_cuda_work::sort_lists(int64_t n, int64_t n_lists,
                                   const int64_t *first, const int64_t *end,
                                   const int32_t *key, int32_t *sorted_key)
{
    return with_scratch(
        [&](void *temporary, size_t &bytes)
        {
            return cub::DeviceSegmentedSort::SortKeys(
                temporary, bytes, key, sorted_key, (int)n, (int)n_lists, first,
                end, stream);
        });
}
