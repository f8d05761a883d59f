/** Binary search in an array of offsets. */
#ifndef CUDA_OFFSET_SEARCH_CUH
#define CUDA_OFFSET_SEARCH_CUH

#include <stdint.h>

/** Returns the list that contains entry `at`: the last i in first .. end - 1
 *  with offset[i] <= at, or `first` if there is none. Offsets must ascend;
 *  empty lists are skipped. */
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
