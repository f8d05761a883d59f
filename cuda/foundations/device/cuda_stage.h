/** Pinned memory of the host, by way of which ordinary memory goes to devices
 *  and comes back.
 */
#ifndef CUDA_STAGE_H
#define CUDA_STAGE_H

#include "oj_cuda.h"

/** Owner; zeroed memory is a valid empty one. */
struct oj_cuda_stage
{
    char *data;
    int64_t bytes;
};

/** Sizes that cost least are powers of two and so many bytes. */
#define OJ_CUDA_STAGE_EXTRA 64

/** Makes stage one of so many bytes or more; what it held is lost. What earlier
 *  joins have done with is taken again. On an error it is empty. */
OJ_MUST_USE oj_status oj_cuda_stage_want(struct oj_cuda_stage *stage,
                                         int64_t bytes, struct oj_error *err);

/** No copy from or to it is under way. */
void oj_cuda_stage_drop(struct oj_cuda_stage *stage);

/** Reads the bytes at from, a few of a device, when stream has got there, and
 *  waits.  A kernel writes them to the host: a copy would wait behind those of
 *  all other streams. */
OJ_MUST_USE oj_status oj_cuda_stage_read(cudaStream_t stream, const void *from,
                                         int bytes, void *to, const char *doing,
                                         struct oj_error *err);

/** 1 when all of the bytes can be copied to and from directly. */
int oj_cuda_is_pinned(const void *memory, int64_t bytes);

#endif
