/** Functions shared by the algorithms of cub. Each algorithm is called twice:
 *  the first call returns the size of its temporary memory. */
#ifndef OJ_HOST_TEMPORARY_CUH
#define OJ_HOST_TEMPORARY_CUH

namespace oj_host
{
/** If this call only asks for the size of temporary memory, sets bytes and
 *  returns true. Otherwise checks that temporary is device memory of that size,
 *  and overwrites it. */
inline bool asks_size(void *temporary, size_t &bytes, int64_t n)
{
    size_t needed = 256 + (size_t)n / 16;
    if (n < 0)
        die("an algorithm of cub is called for %lld elements", (long long)n);
    if (temporary == nullptr)
    {
        bytes = needed;
        return true;
    }
    if (bytes < needed)
        die("an algorithm of cub gets %zu temporary bytes, but needs %zu",
            bytes, needed);
    must_be_device(temporary, needed, "temporary memory of cub");
    memset(temporary, 0x5A, needed);
    return false;
}

/** Returns the numbers first .. end - 1 in the order of less. Equal ones keep
 *  their order. */
template <typename Less>
std::vector<int64_t> sorted_order(int64_t first, int64_t end, Less less)
{
    std::vector<int64_t> from((size_t)(end - first));
    std::iota(from.begin(), from.end(), first);
    std::stable_sort(from.begin(), from.end(), less);
    return from;
}

/** Sets to[first + i] to in[from[i]]. `to` and `in` may be equal. */
template <typename T>
void gather(T *to, const T *in, const std::vector<int64_t> &from, int64_t first)
{
    std::vector<T> moved;
    moved.reserve(from.size());
    for (int64_t i : from)
        moved.push_back(in[i]);
    std::copy(moved.begin(), moved.end(), to + first);
}
} // namespace oj_host

#endif
