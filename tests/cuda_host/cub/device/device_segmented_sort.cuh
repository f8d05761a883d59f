/** cub::DeviceSegmentedSort as far as the module uses it. Elements of no
 *  segment are left as they are at the target. */
#ifndef OJ_HOST_DEVICE_SEGMENTED_SORT_CUH
#define OJ_HOST_DEVICE_SEGMENTED_SORT_CUH

#include "../temporary.cuh"

namespace cub
{
struct DeviceSegmentedSort
{
    template <typename K, typename V, typename At>
    static cudaError_t StableSortPairs(void *temporary, size_t &bytes,
                                       const K *keys_in, K *keys_out,
                                       const V *values_in, V *values_out, int n,
                                       int n_segments, At first, At end,
                                       cudaStream_t stream = nullptr)
    {
        if (oj_host::asks_size(temporary, bytes, n))
            return cudaSuccess;
        return oj_host::enqueue(
            stream,
            [=]
            {
                for (int s = 0; s < n_segments; s++)
                {
                    std::vector<int64_t> from =
                        order(keys_in, first[s], end[s], n);
                    oj_host::gather(keys_out, keys_in, from, first[s]);
                    oj_host::gather(values_out, values_in, from, first[s]);
                }
            });
    }

    template <typename K, typename At>
    static cudaError_t SortKeys(void *temporary, size_t &bytes,
                                const K *keys_in, K *keys_out, int n,
                                int n_segments, At first, At end,
                                cudaStream_t stream = nullptr)
    {
        if (oj_host::asks_size(temporary, bytes, n))
            return cudaSuccess;
        return oj_host::enqueue(stream,
                                [=]
                                {
                                    for (int s = 0; s < n_segments; s++)
                                        oj_host::gather(
                                            keys_out, keys_in,
                                            order(keys_in, first[s], end[s], n),
                                            first[s]);
                                });
    }

  private:
    template <typename K>
    static std::vector<int64_t> order(const K *keys, int64_t first, int64_t end,
                                      int64_t n)
    {
        if (first < 0 || first > end || end > n)
            oj_host::die("a segment from %lld to %lld of %lld elements",
                         (long long)first, (long long)end, (long long)n);
        return oj_host::sorted_order(first, end,
                                     [=](int64_t a, int64_t b)
                                     { return keys[a] < keys[b]; });
    }
};
} // namespace cub

#endif
