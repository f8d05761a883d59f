/** Pinned host memory, through which pageable memory is copied to devices and
 *  back. */
#ifndef CUDA_PINNED_STAGE_H
#define CUDA_PINNED_STAGE_H

#include "oj_cuda.h"

/** A block of pinned memory. Owner; zeroed memory is a valid empty one. */
struct oj_cuda_stage
{
    char *data;
    int64_t bytes;
    int is_registered; /**< 1: ordinary memory, registered with CUDA; 0: from
                            cudaHostAlloc() */
};

/** The size of a block is a power of two plus this many bytes, so that a
 *  request for a power of two with some counters behind it (cuda_batches.cu)
 *  does not get twice the memory. */
#define OJ_CUDA_STAGE_EXTRA 64

/** Makes *stage a block of at least `bytes`, preferably one that an earlier
 *  join has freed; the previous content of *stage may be lost. On failure the
 *  stage is empty. */
OJ_MUST_USE oj_status oj_cuda_stage_reserve(struct oj_cuda_stage *stage,
                                            int64_t bytes,
                                            struct oj_error *err);

/** Gives the block back: it is kept for later joins or freed, and *stage
 *  becomes empty. No copy may use it any more. */
void oj_cuda_stage_release(struct oj_cuda_stage *stage);

/** Copies `bytes` bytes of device memory, a few only, to host memory `to`,
 *  after the work enqueued on stream, and waits for this. A kernel writes the
 *  bytes to pinned memory, because a copy would wait behind the copies of all
 *  other streams. */
OJ_MUST_USE oj_status oj_cuda_stage_read(cudaStream_t stream, const void *from,
                                         int bytes, void *to, const char *doing,
                                         struct oj_error *err);

/** Returns 1 if memory [bytes] is pinned host memory, which CUDA copies
 *  directly. Only its first and its last byte are checked. */
int oj_cuda_is_pinned(const void *memory, int64_t bytes);

#endif
