#include "cuda_feature_sums.h"

#define BLOCK 256

/* Copies spread what many blocks add to one feature over the memory's units;
 * all together stay well inside its cache. */
enum
{
    MOST_COPIES = 64
};

static const int64_t most_bytes_of_copies = (int64_t)4 << 20;

static unsigned count_copies(int64_t copy_words)
{
    unsigned n = 1;
    while (n < MOST_COPIES &&
           2 * (int64_t)n * copy_words * (int64_t)sizeof(unsigned long long) <=
               most_bytes_of_copies)
        n *= 2;
    return n;
}

oj_status oj_cuda_tally_make(struct oj_cuda_device *device, int64_t n_features,
                             const struct oj_sum_request *request,
                             struct oj_cuda_tally_words *out,
                             struct oj_error *err)
{
    struct oj_cuda_tally *tally = &out->tally;
    int64_t n_words = n_features;
    tally->n_copies = 1;
    if (request != NULL)
    {
        tally->request = *request;
        n_words *= request->n_words;
        tally->n_copies = count_copies(n_words);
    }
    tally->copy_words = n_words;
    OJ_TRY(oj_cuda_make(device, device->stream, n_words * tally->n_copies,
                        &out->words, err));
    tally->words = out->words.data;
    return oj_cuda_clear(device->stream, &out->words, "counting pairs", err);
}

static __global__ void add_copies(struct oj_cuda_tally tally,
                                  unsigned long long *to)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    unsigned long long sum = 0;
    if (i >= tally.copy_words)
        return;
    for (int64_t c = 0; c < tally.n_copies; c++)
        sum += tally.words[c * tally.copy_words + i];
    to[i] += sum;
}

oj_status oj_cuda_tally_add(struct oj_cuda_device *device,
                            const struct oj_cuda_tally_words *words,
                            int64_t *to, struct oj_error *err)
{
    int64_t n = words->tally.copy_words;
    if (n == 0)
        return OJ_OK;
    add_copies<<<oj_blocks(n, BLOCK), BLOCK, 0, device->stream>>>(
        words->tally, (unsigned long long *)(void *)to);
    OJ_CUDA_TRY_LAUNCH("adding up sums", err);
    return OJ_OK;
}

oj_status oj_cuda_tally_fold(struct oj_cuda_device *device,
                             struct oj_cuda_tally_words *words,
                             struct oj_error *err)
{
    struct oj_cuda_tally_words others = *words;
    if (words->tally.n_copies == 1)
        return OJ_OK;
    others.tally.n_copies--;
    others.tally.words += words->tally.copy_words;
    return oj_cuda_tally_add(device, &others,
                             (int64_t *)(void *)words->tally.words, err);
}

void oj_cuda_tally_drop(struct oj_cuda_device *device,
                        struct oj_cuda_tally_words *words)
{
    oj_cuda_drop(device, device->stream, &words->words);
}
