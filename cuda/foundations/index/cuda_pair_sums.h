/** Memory for sums by join feature on one device (struct oj_cuda_tally). */
#ifndef CUDA_PAIR_SUMS_H
#define CUDA_PAIR_SUMS_H

#include "cuda_family.h"

/** All words 0, in work's memory; *out is without the columns of points. */
OJ_MUST_USE oj_status oj_cuda_pair_sums_make(
    struct oj_cuda_work *work, int64_t n_features,
    const struct oj_sum_request *request, struct oj_cuda_tally *out);

/** Adds what copies have, from number `first` on, to [features * words]. */
OJ_MUST_USE oj_status oj_cuda_pair_sums_add(struct oj_cuda_work *work,
                                            const struct oj_cuda_tally *tally,
                                            unsigned first,
                                            unsigned long long *to);

#endif
