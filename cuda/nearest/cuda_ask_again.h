/** Rows that one index leaves open, asked of another one.
 *
 *  The cells answer most points at once, and say of the others that they do not
 *  know: too far from everything, or as near to several features.  These are
 *  put side by side, joined by a family that knows every case, and their
 *  answers go where they belong.
 */
#ifndef CUDA_ASK_AGAIN_H
#define CUDA_ASK_AGAIN_H

#include "../index/cuda_family.h"
#include "cuda_ties.h"

/** What answers open rows. */
struct oj_cuda_asked
{
    struct oj_cuda_device *device;
    const struct oj_cuda_family *family;
    struct oj_cuda_index *index; /**< of the family */
    int knows_distance; /**< 1: measures of open rows go along, as their own
                             greatest distances; NaN: they match nothing */
};

/** One-to-one joins: completes row [points->n] and measure, which may be NULL.
 *  Waits for the stream to learn how many are open. */
OJ_MUST_USE oj_status oj_cuda_ask_again_one(const struct oj_cuda_asked *asked,
                                            cudaStream_t stream,
                                            const struct oj_cuda_points *points,
                                            int32_t *row, double *measure,
                                            struct oj_error *err);

/** Joins that give lists: makes pairs of row and measure [points->n], which say
 *  what is the only pair of a point or -1, and of the open rows' lists. */
OJ_MUST_USE oj_status
oj_cuda_ask_again_lists(const struct oj_cuda_asked *asked, cudaStream_t stream,
                        const struct oj_cuda_points *points, const int32_t *row,
                        const double *measure, int64_t max_pairs,
                        struct oj_cuda_pairs *out, struct oj_error *err);

/** Bytes that this takes for n rows, as a rule. */
int64_t oj_cuda_ask_again_bytes(const struct oj_cuda_asked *asked, int64_t n,
                                int lists);

#endif
