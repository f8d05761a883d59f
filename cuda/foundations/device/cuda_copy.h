/** Copies between pageable host memory and a device, by several threads through
 *  pinned memory: one thread alone reaches a fifth of the bandwidth of the
 *  bus. */
#ifndef CUDA_COPY_H
#define CUDA_COPY_H

#include "oj_cuda.h"

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

#endif
