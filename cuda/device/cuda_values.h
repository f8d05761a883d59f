/** Columns of values that go to a device with the points of a chunk, to be
 *  summed by join feature (oj_sum_request.h).
 *
 *   caller's columns --threads--> stage (pinned) --copy--> value, is_null
 */
#ifndef CUDA_VALUES_H
#define CUDA_VALUES_H

#include "cuda_stage.h"

/** Owner; zeroed memory is a valid empty one. */
struct oj_cuda_values
{
    struct oj_cuda_array<uint64_t> value[OJ_SUM_MOST_COLUMNS];
    struct oj_cuda_array<uint8_t> is_null[OJ_SUM_MOST_COLUMNS];
    struct oj_cuda_stage stage;
};

/** Enqueues copies of rows first .. first + n - 1 of the columns of request;
 *  *out is the same request with columns on the device. Nothing that was
 *  enqueued before needs what values held. */
OJ_MUST_USE oj_status oj_cuda_values_load(struct oj_cuda_device *device,
                                          cudaStream_t stream,
                                          const struct oj_sum_request *request,
                                          int64_t first, int64_t n,
                                          struct oj_cuda_values *values,
                                          struct oj_sum_request *out,
                                          struct oj_error *err);

/** The stream has done with them. */
void oj_cuda_values_drop(struct oj_cuda_device *device, cudaStream_t stream,
                         struct oj_cuda_values *values);

#endif
