/** Memory for sums by join feature on one device (struct oj_cuda_tally). */
#ifndef CUDA_FEATURE_SUMS_H
#define CUDA_FEATURE_SUMS_H

#include "cuda_family.h"

/** Owner of a tally's words; zeroed memory is a valid empty one. */
struct oj_cuda_tally_words
{
    struct oj_cuda_array<unsigned long long> words;
    struct oj_cuda_tally tally; /**< without the columns of points */
};

/** All words 0, on device->stream. request NULL: pairs are counted only, in
 *  one copy. */
OJ_MUST_USE oj_status oj_cuda_tally_make(struct oj_cuda_device *device,
                                         int64_t n_features,
                                         const struct oj_sum_request *request,
                                         struct oj_cuda_tally_words *out,
                                         struct oj_error *err);

/** Adds what all copies have to to [features * words], on device->stream. */
OJ_MUST_USE oj_status oj_cuda_tally_add(struct oj_cuda_device *device,
                                        const struct oj_cuda_tally_words *words,
                                        int64_t *to, struct oj_error *err);

/** Adds the other copies to the first, on device->stream. */
OJ_MUST_USE oj_status oj_cuda_tally_fold(struct oj_cuda_device *device,
                                         struct oj_cuda_tally_words *words,
                                         struct oj_error *err);

void oj_cuda_tally_drop(struct oj_cuda_device *device,
                        struct oj_cuda_tally_words *words);

#endif
