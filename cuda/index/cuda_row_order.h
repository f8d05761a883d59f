/** The pairs of each row in the order of their features' ranks. */
#ifndef CUDA_ROW_ORDER_H
#define CUDA_ROW_ORDER_H

#include "cuda_family.h"

/** pairs, whose join features are ranks so far, each once in a row, get them in
 *  ascending order, row by row, with their measures where there are some; and
 *  then ordinals, by ordinal_of, or where that is NULL ranks.  More than 2^31 -
 *  1 pairs with long rows among them: OJ_ERR_NOMEM, as for all that is too much
 *  at once. Waits for the stream where rows may be long. */
OJ_MUST_USE oj_status oj_cuda_order_rows(struct oj_cuda_device *device,
                                         cudaStream_t stream, int64_t n_rows,
                                         const int32_t *ordinal_of,
                                         struct oj_cuda_pairs *pairs,
                                         struct oj_error *err);

#endif
