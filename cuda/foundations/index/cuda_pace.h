/** Chooses how many rows go to a device at a time. A running kernel cannot be
 *  stopped, so pieces are short: a join that is cancelled ends within a second.
 */
#ifndef CUDA_PACE_H
#define CUDA_PACE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Rows and time of the last piece; zeroed memory: no piece yet. */
struct oj_cuda_pace
{
    int64_t n_rows; /**< rows of the last piece; 0: no piece yet */
    double seconds; /**< time of the last piece */
};

/** Returns the rows of the next piece, 1 .. left; few if the pace is not known
 *  yet. */
int64_t oj_cuda_pace_next_rows(const struct oj_cuda_pace *pace, int64_t left);

/** Records that n >= 1 rows took this many seconds. */
void oj_cuda_pace_record(struct oj_cuda_pace *pace, int64_t n, double seconds);

#ifdef __cplusplus
}
#endif

#endif
