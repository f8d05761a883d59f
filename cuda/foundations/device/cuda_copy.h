/** Copies between pageable host memory and a device, by several threads through
 *  pinned memory: one thread alone reaches a fifth of the bandwidth of the
 *  bus. */
#ifndef CUDA_COPY_H
#define CUDA_COPY_H

#include "cuda_pinned_stage.h"

enum
{
    OJ_CUDA_MOST_STAGED = 4
};

/** Copies bytes to the device in stream order. `from` must stay unchanged until
 *  the stream has reached the copy. The device must be current. */
OJ_MUST_USE oj_status oj_cuda_copy_in(const struct oj_cuda_device *device,
                                      cudaStream_t stream, void *to,
                                      const void *from, int64_t bytes,
                                      struct oj_error *err);

/** Copies bytes from the device in stream order and waits until they are in
 *  host memory. The device must be current. */
OJ_MUST_USE oj_status oj_cuda_copy_out(const struct oj_cuda_device *device,
                                       cudaStream_t stream, void *to,
                                       const void *from, int64_t bytes,
                                       struct oj_error *err);

/** An array on its way to devices. */
struct oj_cuda_staged_array
{
    const char *from;
    char *to; /**< in pinned memory */
    int64_t bytes;
    int64_t n_staged; /**< bytes already in pinned memory; changed atomically */
};

/** Small arrays of pageable memory on their way to devices. Several threads
 *  copy them, piece by piece, into one block of pinned memory; a device copies
 *  an array from there once it is complete. One call of CUDA per array, from
 *  pageable memory, takes four times as long (oj_bench_live, batches of 100,000
 *  changes from host memory). Zeroed memory is an empty value. */
struct oj_cuda_staging
{
    int n;
    struct oj_cuda_staged_array array[OJ_CUDA_MOST_STAGED];
    int64_t next; /**< number of the next piece; changed atomically */
};

/** Adds an array of `bytes` at `from`; NULL is ignored. */
void oj_cuda_copy_stage_add(struct oj_cuda_staging *staging, const void *from,
                            int64_t bytes);

/** Makes *stage a block of pinned memory for all arrays. Returns the number of
 *  threads that shall call oj_cuda_copy_stage_pieces(). Returns 0 if the arrays
 *  must be copied by oj_cuda_copy_in() instead: they are empty, they have more
 *  than 32 MiB, for which that is as fast, or no pinned memory is available.
 *  Makes no CUDA call on the calling thread. */
int oj_cuda_copy_stage_begin(struct oj_cuda_staging *staging,
                             const struct oj_cuda_device *device,
                             struct oj_cuda_stage *stage);

/** Copies pieces until every piece has been taken by a thread. Makes no CUDA
 *  call. */
void oj_cuda_copy_stage_pieces(struct oj_cuda_staging *staging);

/** Returns the pinned copy of the array `from`, which must have been added.
 *  Until it is complete, the calling thread copies pieces, too. */
const void *oj_cuda_copy_stage_wait(struct oj_cuda_staging *staging,
                                    const void *from);

#endif
