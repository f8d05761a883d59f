/** Memory for sums per join feature on one device (struct oj_cuda_tally). */
#ifndef CUDA_PAIR_SUMS_H
#define CUDA_PAIR_SUMS_H

#include "cuda_family.h"

/** Makes *out: allocates the words of all copies, owned by *work, and sets them
 *  to 0. The caller sets the columns of out->request. */
OJ_MUST_USE oj_status oj_cuda_pair_sums_make(
    struct oj_cuda_work *work, int64_t n_features,
    const struct oj_sum_request *request, struct oj_cuda_tally *out);

/** Sums copies `first`, first + 1, ... of the tally's words and adds the result
 *  to the words `to` [n_features * words per feature]. */
OJ_MUST_USE oj_status oj_cuda_pair_sums_add(struct oj_cuda_work *work,
                                            const struct oj_cuda_tally *tally,
                                            unsigned first,
                                            unsigned long long *to);

#endif
