/** How many rows go to a device at a time, so that a join that is cancelled
 * ends within a second whatever its points ask of the kernels: what is under
 * way cannot be stopped, so it should be short. */
#ifndef CUDA_PACE_H
#define CUDA_PACE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Zeroed memory is a pace that is not known yet. */
struct oj_cuda_pace
{
    int64_t n_rows; /**< of the last piece; 0: there was none */
    double seconds; /**< it took */
};

/** Rows of the next piece, 1 .. left: few while the pace is not known. */
int64_t oj_cuda_pace_rows(const struct oj_cuda_pace *pace, int64_t left);

/** n rows, 1 or more, took so long. */
void oj_cuda_pace_took(struct oj_cuda_pace *pace, int64_t n, double seconds);

#ifdef __cplusplus
}
#endif

#endif
