/** Lists of nearest features with all ties, where the cells say of each point
 *  what is nearest, or only how far: then several features are as near, and all
 *  within that distance are wanted.
 */
#ifndef CUDA_TIES_H
#define CUDA_TIES_H

#include "../index/cuda_family.h"
#include "../tree/oj_tree_join.h"

/** The row of a point that is left open. */
#define OJ_CUDA_OPEN (-2)

/** Makes pairs of row and measure [points->n]: row is the ordinal of the only
 *  pair of a point, -1, or OJ_CUDA_OPEN with the distance of a tie, NaN where
 *  nothing is near. The features of a tie come from side.  Waits for the stream
 *  to learn the size.  Ties are taken to be few and small: *fits is 0 where
 *  they are not, and out then is empty.  OJ_ERR_TOO_MANY_PAIRS as in
 *  join_lists() of struct oj_cuda_family. */
OJ_MUST_USE oj_status
oj_cuda_list_ties(struct oj_cuda_device *device, cudaStream_t stream,
                  const struct oj_tree_side *side, const int32_t *ordinal_of,
                  const struct oj_cuda_points *points, const int32_t *row,
                  const double *measure, int64_t max_pairs, int *fits,
                  struct oj_cuda_pairs *out, struct oj_error *err);

/** Bytes that this takes for n rows. */
int64_t oj_cuda_list_ties_bytes(int64_t n);

#endif
