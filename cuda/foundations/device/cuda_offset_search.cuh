/** Where a place lies among offsets. */
#ifndef CUDA_OFFSET_SEARCH_CUH
#define CUDA_OFFSET_SEARCH_CUH

#include <stdint.h>

/** The last i of first .. end - 1 with offset[i] <= at, which ascend; the first
 *  of them where none is. Those that have nothing are stepped over. */
template <typename I, typename Offset>
static __device__ __forceinline__ I oj_cuda_list_of_entry(const Offset *offset,
                                                          I first, I end,
                                                          int64_t at)
{
    while (end - first > 1)
    {
        I middle = first + (end - first) / 2;
        if ((int64_t)offset[middle] <= at)
            first = middle;
        else
            end = middle;
    }
    return first;
}

#endif
