/** Pinned host memory, through which pageable memory is copied to devices and
 *  back. */
#ifndef CUDA_STAGE_H
#define CUDA_STAGE_H

#include "oj_cuda.h"

/** A block of pinned memory. Owner; zeroed memory is a valid empty one. */
struct oj_cuda_stage
{
    char *data;
    int64_t bytes;
    int is_registered; /**< 1: ordinary memory, registered with CUDA */
};

/** Blocks have a power of two of bytes, plus this many; a request of such a
 *  size wastes nothing. */
#define OJ_CUDA_STAGE_EXTRA 64

/** Makes *stage a block of at least `bytes`, preferably one that an earlier
 *  join has freed; the previous content of *stage is lost. On failure the stage
 *  is empty. */
OJ_MUST_USE oj_status oj_cuda_stage_reserve(struct oj_cuda_stage *stage,
                                            int64_t bytes,
                                            struct oj_error *err);

/** Returns the block, which is kept for later joins or freed. No copy may use
 *  it any more. */
void oj_cuda_stage_release(struct oj_cuda_stage *stage);

/** Reads a few bytes of device memory after the work enqueued on stream, and
 *  waits. A kernel writes them to pinned memory, because a copy would wait
 *  behind the copies of all other streams. */
OJ_MUST_USE oj_status oj_cuda_stage_read(cudaStream_t stream, const void *from,
                                         int bytes, void *to, const char *doing,
                                         struct oj_error *err);

/** Returns 1 if all these bytes are pinned memory, which CUDA copies directly.
 */
int oj_cuda_is_pinned(const void *memory, int64_t bytes);

#endif
