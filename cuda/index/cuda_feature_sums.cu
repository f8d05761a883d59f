#include "cuda_feature_sums.h"

#include "../device/cuda_work.cuh"

/* Copies spread what many blocks add to one feature over the memory's units;
 * all together stay well inside its cache. */
enum
{
    MOST_COPIES = 64
};

static const int64_t most_bytes_of_copies = (int64_t)4 << 20;

oj_status oj_cuda_tally_make(struct oj_cuda_work *work, int64_t n_features,
                             const struct oj_sum_request *request,
                             struct oj_cuda_tally *out)
{
    int64_t n = n_features * request->n_words;
    out->request = *request;
    out->copy_words = n;
    out->n_copies = 1;
    while (request->n_words > 1 && out->n_copies < MOST_COPIES &&
           2 * (int64_t)out->n_copies * n * (int64_t)sizeof *out->words <=
               most_bytes_of_copies)
        out->n_copies *= 2;
    return work->make_zeros(n * out->n_copies, &out->words);
}

oj_status oj_cuda_tally_add(struct oj_cuda_work *work,
                            const struct oj_cuda_tally *tally, unsigned first,
                            unsigned long long *to)
{
    const unsigned long long *words = tally->words;
    int64_t n = tally->copy_words, end = tally->n_copies;
    if (first == tally->n_copies)
        return OJ_OK;
    return work->each(n,
                      [=] __device__(int64_t i)
                      {
                          unsigned long long sum = 0;
                          for (int64_t c = first; c < end; c++)
                              sum += words[c * n + i];
                          to[i] += sum;
                      });
}
