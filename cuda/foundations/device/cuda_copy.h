/** Ordinary memory of the host to a device and back, by several threads and
 *  pinned memory: one thread alone copies at a fifth of what the bus takes. */
#ifndef CUDA_COPY_H
#define CUDA_COPY_H

#include "oj_cuda.h"

/** Copies bytes to the device, in order of stream; from stays as it is until
 *  the stream has got there. The device is current. */
OJ_MUST_USE oj_status oj_cuda_copy_in(const struct oj_cuda_device *device,
                                      cudaStream_t stream, void *to,
                                      const void *from, int64_t bytes,
                                      struct oj_error *err);

/** Copies bytes from the device, in order of stream; done on return. The device
 *  is current. */
OJ_MUST_USE oj_status oj_cuda_copy_out(const struct oj_cuda_device *device,
                                       cudaStream_t stream, void *to,
                                       const void *from, int64_t bytes,
                                       struct oj_error *err);

#endif
