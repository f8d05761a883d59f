/** How a batch is cut into chunks, and how many are on the way at a time. */
#ifndef CUDA_SIZES_H
#define CUDA_SIZES_H

#include "cuda_index.h"

struct oj_cuda_sizes
{
    int64_t chunk_rows;
    int64_t spare_bytes; /**< that pairs may take of each device meanwhile */
    int n_workers; /**< at most OJ_CUDA_MOST_SLOTS, and one for each chunk */
};

/** Chunks that fit into the memory that is there, several for each worker where
 *  the batch is large.  direct: the caller's memory is pinned, in and out.
 *  The family's index is made; n_rows > 0. Changes the current device. */
struct oj_cuda_sizes oj_cuda_choose_sizes(const struct oj_gpu_index *index,
                                          int family, int64_t n_rows,
                                          int direct);

/** Bytes that may still be taken of a device, as far as one can know. Changes
 *  the current device. */
int64_t oj_cuda_room_on(const struct oj_cuda_device *device);

static inline int64_t oj_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t oj_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
