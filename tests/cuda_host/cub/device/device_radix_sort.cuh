/** cub::DeviceRadixSort, the parts that the module uses. */
#ifndef OJ_HOST_DEVICE_RADIX_SORT_CUH
#define OJ_HOST_DEVICE_RADIX_SORT_CUH

#include "../temporary.cuh"

namespace cub
{
template <typename T> struct DoubleBuffer
{
    T *d_buffers[2];
    int selector;

    DoubleBuffer(T *current, T *alternate)
        : d_buffers{current, alternate}, selector(0)
    {
    }
    T *Current(void) const
    {
        return d_buffers[selector];
    }
    T *Alternate(void) const
    {
        return d_buffers[selector ^ 1];
    }
};

struct DeviceRadixSort
{
    template <typename K, typename N>
    static cudaError_t SortKeys(void *temporary, size_t &bytes, const K *in,
                                K *out, N n, int begin_bit = 0,
                                int end_bit = 8 * sizeof(K),
                                cudaStream_t stream = nullptr)
    {
        if (oj_host::asks_size(temporary, bytes, (int64_t)n))
            return cudaSuccess;
        if (out < in + n && in < out + n)
            oj_host::die(
                "keys are sorted in place: input and output must differ");
        return oj_host::enqueue(
            stream, [=]
            { oj_host::gather(out, in, order(in, n, begin_bit, end_bit), 0); });
    }

    /* Each pass sorts by eight bits and swaps the buffers. After an odd number
     * of passes the result is in the alternate buffers. The other buffers then
     * have no defined content. */
    template <typename K, typename V, typename N>
    static cudaError_t
    SortPairs(void *temporary, size_t &bytes, DoubleBuffer<K> &keys,
              DoubleBuffer<V> &values, N n, int begin_bit = 0,
              int end_bit = 8 * sizeof(K), cudaStream_t stream = nullptr)
    {
        if (oj_host::asks_size(temporary, bytes, (int64_t)n))
            return cudaSuccess;
        K *key = keys.Current(), *other_key = keys.Alternate();
        V *value = values.Current(), *other_value = values.Alternate();
        int turns = (end_bit - begin_bit + 7) / 8 % 2;
        keys.selector ^= turns;
        values.selector ^= turns;
        return oj_host::enqueue(
            stream,
            [=]
            {
                std::vector<int64_t> from = order(key, n, begin_bit, end_bit);
                oj_host::gather(turns ? other_key : key, key, from, 0);
                oj_host::gather(turns ? other_value : value, value, from, 0);
                memset((void *)(turns ? key : other_key), 0x5A,
                       (size_t)n * sizeof *key);
                memset((void *)(turns ? value : other_value), 0x5A,
                       (size_t)n * sizeof *value);
            });
    }

  private:
    template <typename K, typename N>
    static std::vector<int64_t> order(const K *key, N n, int begin_bit,
                                      int end_bit)
    {
        static_assert(std::is_unsigned<K>::value, "keys are unsigned");
        int width = end_bit - begin_bit;
        uint64_t mask = width >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << width) - 1;
        if (width < 0 || end_bit > (int)(8 * sizeof(K)))
            oj_host::die("keys are sorted by bits %d to %d", begin_bit,
                         end_bit);
        if (width == 0)
            return oj_host::sorted_order(
                0, (int64_t)n, [](int64_t, int64_t) { return false; });
        return oj_host::sorted_order(
            0, (int64_t)n,
            [=](int64_t a, int64_t b)
            {
                return ((uint64_t)key[a] >> begin_bit & mask) <
                       ((uint64_t)key[b] >> begin_bit & mask);
            });
    }
};
} // namespace cub

#endif
