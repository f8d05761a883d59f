#include "cuda_index.h"

#include "../flatten/oj_array.h"

#include <string.h>

/* Pairs of a batch by join feature: each device counts its share, and the
 * counts come back once for the batch. */
struct counting
{
    struct oj_index *index;
    struct oj_cuda_array<unsigned long long> counts[OJ_GPU_MAX_DEVICES];
    unsigned long long *d_count[OJ_GPU_MAX_DEVICES];
    unsigned long long *host; /* [features of all devices] */
    oj_status status;
    struct oj_error error;
};

/* All of them 0. Runs aside. */
static void make_counts(void *user)
{
    struct counting *c = (struct counting *)user;
    int64_t n = c->index->join_side->n_features;
    for (int p = 0; p < c->index->n_places && c->status == OJ_OK; p++)
    {
        struct oj_cuda_device *device = &c->index->place[p].device;
        cudaError_t error = cudaSetDevice(device->ordinal);
        c->status =
            oj_cuda_make(device, device->stream, n, &c->counts[p], &c->error);
        if (c->status != OJ_OK)
            return;
        c->d_count[p] = c->counts[p].data;
        if (error == cudaSuccess)
            error = cudaMemsetAsync(c->counts[p].data, 0,
                                    (size_t)n * sizeof *c->counts[p].data,
                                    device->stream);
        if (error == cudaSuccess)
            error = cudaStreamSynchronize(device->stream);
        if (error != cudaSuccess)
            c->status = oj_cuda_fail(&c->error, error, "counting pairs");
    }
}

/* Runs aside; the chunks have been waited for. */
static void fetch_counts(void *user)
{
    struct counting *c = (struct counting *)user;
    int64_t n = c->index->join_side->n_features;
    for (int p = 0; p < c->index->n_places && c->status == OJ_OK; p++)
    {
        struct oj_cuda_device *device = &c->index->place[p].device;
        cudaError_t error = cudaSetDevice(device->ordinal);
        if (error == cudaSuccess)
            error = cudaMemcpyAsync(c->host + p * n, c->counts[p].data,
                                    (size_t)n * sizeof *c->host,
                                    cudaMemcpyDeviceToHost, device->stream);
        if (error == cudaSuccess)
            error = cudaStreamSynchronize(device->stream);
        if (error != cudaSuccess)
            c->status = oj_cuda_fail(&c->error, error, "counting pairs");
    }
}

static void drop_counts(void *user)
{
    struct counting *c = (struct counting *)user;
    for (int p = 0; p < c->index->n_places; p++)
    {
        struct oj_cuda_device *device = &c->index->place[p].device;
        (void)cudaSetDevice(device->ordinal);
        oj_cuda_drop(device, device->stream, &c->counts[p]);
    }
}

static oj_status count_batch(struct counting *c, int family,
                             const struct oj_flat *input,
                             struct oj_stats *stats, struct oj_error *err)
{
    oj_cuda_aside(make_counts, c);
    if (c->status == OJ_OK)
        OJ_TRY(oj_cuda_count_chunks(c->index, family, input, c->d_count, stats,
                                    err));
    if (c->status == OJ_OK)
        oj_cuda_aside(fetch_counts, c);
    if (c->status != OJ_OK)
        return oj_fail(err, c->status, "%s", c->error.message);
    return OJ_OK;
}

oj_status oj_cuda_count_pairs(struct oj_index *index,
                              const struct oj_flat *input, int64_t *count,
                              int64_t *n_pairs, struct oj_stats *stats,
                              struct oj_error *err)
{
    struct counting counting;
    int64_t n = index->join_side->n_features, sum = 0;
    oj_status status;
    int family;
    if (input->n_features == 0 || n == 0)
    {
        *n_pairs = 0;
        return OJ_OK;
    }
    OJ_TRY(oj_cuda_family_for(index, input, &family, stats, err));
    if (oj_cuda_family_at(family)->count == NULL)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "pairs of this join are not counted by join feature");
    memset(&counting, 0, sizeof counting);
    counting.index = index;
    counting.host = (unsigned long long *)oj_malloc(index->n_places * n,
                                                    sizeof *counting.host);
    if (counting.host == NULL)
        return oj_fail_nomem(err, index->n_places * n, sizeof *counting.host);
    status = count_batch(&counting, family, input, stats, err);
    oj_cuda_aside(drop_counts, &counting);
    for (int64_t i = 0; status == OJ_OK && i < index->n_places * n; i++)
    {
        count[i % n] += (int64_t)counting.host[i];
        sum += (int64_t)counting.host[i];
    }
    oj_free(counting.host);
    if (status == OJ_OK)
        *n_pairs = sum;
    return status;
}
