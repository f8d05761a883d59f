#include "../device/cuda_work.cuh"
#include "cuda_feature_sums.h"
#include "cuda_index.h"

#include "../../flatten/base/oj_array.h"

/* Pairs of a batch by join feature, counted, or summed with what points have:
 * each device adds up its share, and the words come back once for the batch. */
struct counting
{
    struct oj_gpu_index *index;
    const struct oj_sum_request *request;
    int number; /* of the family */
    struct oj_cuda_tally tally[OJ_GPU_MAX_DEVICES];
    int64_t n_words; /* of all features */
    int64_t *host;   /* [n_words of all devices] */
};

static oj_status make_words(struct counting *c, int p, struct oj_error *err)
{
    struct oj_cuda_place *place = &c->index->place[p];
    struct oj_cuda_work work(&place->device, place->device.stream,
                             "counting pairs", err);
    OJ_TRY(work.check(cudaSetDevice(place->device.ordinal)));
    OJ_TRY(oj_cuda_tally_make(&work, c->index->join_side->n_features,
                              c->request, &c->tally[p]));
    OJ_TRY(work.wait());
    oj_cuda_hand_over(&work.memory, NULL, &place->tally);
    return OJ_OK;
}

/* The chunks have been waited for. */
static oj_status fetch_words(struct counting *c, int p, struct oj_error *err)
{
    struct oj_cuda_device *device = &c->index->place[p].device;
    struct oj_cuda_work work(device, device->stream, "counting pairs", err);
    OJ_TRY(work.check(cudaSetDevice(device->ordinal)));
    OJ_TRY(oj_cuda_tally_add(&work, &c->tally[p], 1, c->tally[p].words));
    OJ_TRY(
        work.check(cudaMemcpyAsync(c->host + p * c->n_words, c->tally[p].words,
                                   (size_t)c->n_words * sizeof *c->host,
                                   cudaMemcpyDeviceToHost, work.stream)));
    return work.wait();
}

/* Runs aside. */
static void drop_all(void *user)
{
    struct counting *c = (struct counting *)user;
    for (int p = 0; p < c->index->n_places; p++)
    {
        struct oj_cuda_place *place = &c->index->place[p];
        (void)cudaSetDevice(place->device.ordinal);
        oj_cuda_release(&place->device, place->device.stream, &place->tally);
    }
    (void)cudaGetLastError();
}

/* A chunk's points; runs on many threads. */
static oj_status take_chunk(void *user, int place, struct oj_cuda_slot *slot,
                            int64_t first, const struct oj_cuda_points *points,
                            struct oj_error *err)
{
    const struct counting *c = (const struct counting *)user;
    const struct oj_cuda_index *index = c->index->place[place].of[c->number];
    struct oj_cuda_work work(slot->device, slot->stream, "counting pairs", err);
    struct oj_cuda_tally tally = c->tally[place];
    OJ_TRY(oj_cuda_values_load(slot->device, slot->stream, c->request, first,
                               points->n, &slot->values, &tally.request, err));
    return index->family->add(index, &work, points, &tally);
}

static oj_status count_batch(struct counting *c, const struct oj_flat *input,
                             struct oj_stats *stats, struct oj_error *err)
{
    const struct oj_cuda_taker taker = {take_chunk, c};
    OJ_TRY(oj_cuda_try_all(
        c->index->n_places,
        [&](int p, struct oj_error *error) { return make_words(c, p, error); },
        err));
    OJ_TRY(oj_cuda_give_chunks(c->index, c->number, input, &taker, stats, err));
    return oj_cuda_try_all(
        c->index->n_places,
        [&](int p, struct oj_error *error) { return fetch_words(c, p, error); },
        err);
}

oj_status oj_cuda_sum_pairs(struct oj_gpu_index *index,
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
    OJ_TRY(oj_cuda_family_for(index, input, &c.number, stats, err));
    if (oj_cuda_family_at(c.number)->add == NULL)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "pairs of this join are not %s by join feature",
                       n_words > 1 ? "summed" : "counted");
    c.n_words = n_features * n_words;
    n_all = index->n_places * c.n_words;
    c.host = (int64_t *)oj_malloc(n_all, sizeof *c.host);
    if (c.host == NULL)
        return oj_fail_nomem(err, n_all, sizeof *c.host);
    status = count_batch(&c, input, stats, err);
    oj_cuda_aside(drop_all, &c);
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

oj_status oj_cuda_count_pairs(struct oj_gpu_index *index,
                              const struct oj_flat *input, int64_t *count,
                              int64_t *n_pairs, struct oj_stats *stats,
                              struct oj_error *err)
{
    const struct oj_sum_request request = oj_cuda_only_counts();
    return oj_cuda_sum_pairs(index, input, &request, count, n_pairs, stats,
                             err);
}
