/** A device's time between two points of a stream. */
#ifndef CUDA_STOPWATCH_H
#define CUDA_STOPWATCH_H

#include "../../cuda/device/oj_cuda.h"

struct oj_cuda_stopwatch
{
    cudaEvent_t begin = NULL, end = NULL;

    ~oj_cuda_stopwatch()
    {
        if (begin != NULL)
            (void)cudaEventDestroy(begin);
        if (end != NULL)
            (void)cudaEventDestroy(end);
    }

    OJ_MUST_USE oj_status start(cudaStream_t stream, struct oj_error *err)
    {
        if (begin == NULL)
            OJ_CUDA_TRY(cudaEventCreate(&begin), "taking the time", err);
        if (end == NULL)
            OJ_CUDA_TRY(cudaEventCreate(&end), "taking the time", err);
        OJ_CUDA_TRY(cudaEventRecord(begin, stream), "taking the time", err);
        return OJ_OK;
    }

    /** Adds the time since start() to *seconds; waits for the stream. */
    OJ_MUST_USE oj_status stop(cudaStream_t stream, double *seconds,
                               struct oj_error *err)
    {
        float milliseconds = 0.0f;
        OJ_CUDA_TRY(cudaEventRecord(end, stream), "taking the time", err);
        OJ_CUDA_TRY(cudaEventSynchronize(end), "working", err);
        OJ_CUDA_TRY(cudaEventElapsedTime(&milliseconds, begin, end),
                    "taking the time", err);
        *seconds += 1e-3 * (double)milliseconds;
        return OJ_OK;
    }
};

#endif
