#include "cuda_pair_sums.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../device/cuda_stream_work.cuh"
#include "cuda_index.h"

#include <string.h>

/* Maximum number of copies of the sums on a device. Several copies spread the
 * additions of many blocks to one feature over the memory units. All copies
 * together have at most 4 MiB, which fit well into the cache. */
enum
{
    MOST_COPIES = 64
};

static const int64_t most_bytes_of_copies = (int64_t)4 << 20;

oj_status oj_cuda_pair_sums_make(struct oj_cuda_work *work, int64_t n_features,
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
    return work->allocate_zeros(n * out->n_copies, &out->words);
}

oj_status oj_cuda_pair_sums_add(struct oj_cuda_work *work,
                                const struct oj_cuda_tally *tally,
                                unsigned first, unsigned long long *to)
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

/* State of counting the pairs of a batch per join feature, or of summing values
 * of the points. Each device sums its chunks; the sums are copied to the host
 * once per batch. */
struct counting
{
    struct oj_gpu_index *index;
    const struct oj_sum_request *request;
    int number; /* number of the family */
    struct oj_cuda_tally tally[OJ_GPU_MAX_DEVICES];
    int64_t n_words; /* words of all features */
    int64_t *host;   /* [n_words * number of devices] */
};

static oj_status allocate_sum_words(struct counting *c, int p,
                                    struct oj_error *err)
{
    struct oj_cuda_place *place = &c->index->place[p];
    struct oj_cuda_work work(&place->device, place->device.stream,
                             "counting pairs", err);
    OJ_TRY(work.check(cudaSetDevice(place->device.ordinal)));
    OJ_TRY(oj_cuda_pair_sums_make(&work, c->index->join_side->n_features,
                                  c->request, &c->tally[p]));
    OJ_TRY(work.wait());
    oj_cuda_move_ownership(&work.memory, NULL, &place->tally);
    return OJ_OK;
}

/* Copies the sums of device p to the host, after all its chunks have ended. */
static oj_status fetch_sum_words(struct counting *c, int p,
                                 struct oj_error *err)
{
    struct oj_cuda_device *device = &c->index->place[p].device;
    struct oj_cuda_work work(device, device->stream, "counting pairs", err);
    OJ_TRY(work.check(cudaSetDevice(device->ordinal)));
    OJ_TRY(oj_cuda_pair_sums_add(&work, &c->tally[p], 1, c->tally[p].words));
    OJ_TRY(
        work.check(cudaMemcpyAsync(c->host + p * c->n_words, c->tally[p].words,
                                   (size_t)c->n_words * sizeof *c->host,
                                   cudaMemcpyDeviceToHost, work.stream)));
    return work.wait();
}

/* Frees the sums on all devices. Must be called on a thread of the module
 * (oj_cuda_threads_run_one_on_module()). */
static void release_sum_memory(const struct counting *c)
{
    for (int p = 0; p < c->index->n_places; p++)
    {
        struct oj_cuda_place *place = &c->index->place[p];
        (void)cudaSetDevice(place->device.ordinal);
        oj_cuda_memory_free_all(&place->device, place->device.stream,
                                &place->tally);
    }
    (void)cudaGetLastError();
}

/* --- values of points ----------------------------------------------------- */

static int64_t value_stage_bytes(const struct oj_sum_request *request,
                                 int64_t n)
{
    int64_t bytes = 0;
    for (int c = 0; c < request->n_columns; c++)
    {
        if (request->column[c].value != NULL)
            bytes += n * 8;
        if (request->column[c].is_null != NULL)
            bytes += n + 8;
    }
    return bytes;
}

/* Enqueues copies of rows first .. first + n - 1 of the request's columns; *out
 * is the request with its columns in device memory. Pageable memory is copied
 * through *stage, which no copy enqueued before may still use. */
static oj_status upload_point_values(struct oj_cuda_work *work,
                                     const struct oj_sum_request *request,
                                     int64_t first, int64_t n,
                                     struct oj_cuda_stage *stage,
                                     struct oj_sum_request *out)
{
    char *free = NULL;
    const auto load = [&](auto *host, auto *column) -> oj_status
    {
        size_t bytes = (size_t)n * sizeof *host;
        const void *from;
        void *to = NULL;
        *column = NULL;
        if (host == NULL)
            return OJ_OK;
        from = host + first;
        OJ_TRY(oj_cuda_alloc_owned(work->device, work->stream, n, sizeof *host,
                                   &work->memory, &to, work->err));
        if (!oj_cuda_is_pinned(from, (int64_t)bytes))
        {
            from = memcpy(free, from, bytes);
            free += (bytes + 7) / 8 * 8;
        }
        *column = (decltype(host))to;
        return work->check(cudaMemcpyAsync(
            to, from, bytes, cudaMemcpyHostToDevice, work->stream));
    };
    OJ_TRY(
        oj_cuda_stage_reserve(stage, value_stage_bytes(request, n), work->err));
    free = stage->data;
    *out = *request;
    for (int c = 0; n > 0 && c < request->n_columns; c++)
    {
        const struct oj_sum_column *column = &request->column[c];
        OJ_TRY(load(column->value, &out->column[c].value));
        OJ_TRY(load(column->is_null, &out->column[c].is_null));
    }
    return OJ_OK;
}

/* --- batches -------------------------------------------------------------- */

/* Adds the pairs of a chunk's points to the sums; runs on many threads. */
static oj_status sum_pairs_of_chunk(void *user, int place,
                                    struct oj_cuda_slot *slot, int64_t first,
                                    const struct oj_cuda_points *points,
                                    struct oj_error *err)
{
    const struct counting *c = (const struct counting *)user;
    const struct oj_cuda_index *index = c->index->place[place].of[c->number];
    struct oj_cuda_work work(slot->device, slot->stream, "counting pairs", err);
    struct oj_cuda_tally tally = c->tally[place];
    OJ_TRY(upload_point_values(&work, c->request, first, points->n,
                               &slot->value_stage, &tally.request));
    return index->family->add(index, &work, points, &tally);
}

static oj_status sum_pairs_of_batch(struct counting *c,
                                    const struct oj_flat *input,
                                    struct oj_stats *stats,
                                    struct oj_error *err)
{
    const struct oj_cuda_taker taker = {sum_pairs_of_chunk, c};
    OJ_TRY(oj_cuda_threads_try_on_module(
        c->index->n_places,
        [&](int p, struct oj_error *error)
        { return allocate_sum_words(c, p, error); },
        err));
    OJ_TRY(oj_cuda_index_pass_chunks_to_taker(c->index, c->number, input,
                                              &taker, stats, err));
    return oj_cuda_threads_try_on_module(
        c->index->n_places,
        [&](int p, struct oj_error *error)
        { return fetch_sum_words(c, p, error); },
        err);
}

oj_status oj_cuda_index_sum_pairs(struct oj_gpu_index *index,
                                  const struct oj_flat *input,
                                  const struct oj_sum_request *request,
                                  int64_t *words, int64_t *n_pairs,
                                  struct oj_stats *stats, struct oj_error *err)
{
    int64_t n_features = index->join_side->n_features, sum = 0;
    int64_t n_words = request->n_words, n_all;
    struct counting c = {};
    oj_status status;
    if (input->n_features == 0 || n_features == 0)
    {
        *n_pairs = 0;
        return OJ_OK;
    }
    c.index = index;
    c.request = request;
    OJ_TRY(oj_cuda_index_prepare_family(index, input, &c.number, stats, err));
    if (oj_cuda_family_at(c.number)->add == NULL)
        return oj_fail(
            err, OJ_ERR_UNSUPPORTED,
            "the GPU cannot %s the pairs of this join without a list of them: "
            "oj_join_batch() makes the list",
            n_words > 1 ? "sum" : "count");
    c.n_words = n_features * n_words;
    n_all = index->n_places * c.n_words;
    c.host = (int64_t *)oj_malloc(n_all, sizeof *c.host);
    if (c.host == NULL)
        return oj_fail_nomem(err, n_all, sizeof *c.host);
    status = sum_pairs_of_batch(&c, input, stats, err);
    oj_cuda_threads_run_one_on_module([&]() { release_sum_memory(&c); });
    for (int64_t p = 0; status == OJ_OK && p < index->n_places; p++)
    {
        const int64_t *host = c.host + p * c.n_words;
        for (int64_t i = 0; i < c.n_words; i++)
            words[i] += host[i];
        for (int64_t i = 0; i < c.n_words; i += n_words)
            sum += host[i];
    }
    oj_free(c.host);
    if (status == OJ_OK)
        *n_pairs = sum;
    return status;
}
