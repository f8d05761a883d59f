/* The quadrant method as the library sees it: an index of the join side on one
 * device, and batches of points. */
#include "../device/cuda_threads.h"
#include "cuda_quadrant.h"
#include "cuda_quadrant_method.h"

#include "../../flatten/base/oj_array.h"

enum
{
    LEAST_ROWS = 4096 /* of a chunk; less is not cut further for memory */
};

static const int64_t default_size = 256, most_rows = (int64_t)1 << 30;

/* Pairs that are held at a time, if there is memory, and between two looks at
 * the caller's wish to cancel. */
static const int64_t most_pairs = (int64_t)1 << 24, least_pairs = 1 << 16;

struct oj_gpu_quadrant_index
{
    struct oj_options options;
    int interior;
    struct oj_cuda_device device;
    struct oj_cuda_layer layer;
    struct oj_cuda_quadrant_grid grid;
    cudaEvent_t begin, end;
};

/* Rows on their way. */
struct chunk : oj_cuda_quadrant_chunk
{
    struct oj_gpu_quadrant_index *self;
    int64_t n_met;
    double sort_s, filter_s, refine_s;
    struct oj_error *err;
};

static oj_status start_clock(struct chunk *c)
{
    OJ_TRY(oj_check_cancel(c->self->device.cancel, c->err));
    OJ_CUDA_TRY(cudaEventRecord(c->self->begin, c->self->device.stream),
                "taking the time", c->err);
    return OJ_OK;
}

/* Adds the device's time since start_clock(); waits for the stream. */
static oj_status stop_clock(struct chunk *c, double *seconds)
{
    float milliseconds = 0.0f;
    OJ_CUDA_TRY(cudaEventRecord(c->self->end, c->self->device.stream),
                "taking the time", c->err);
    OJ_CUDA_TRY(cudaEventSynchronize(c->self->end), "joining", c->err);
    OJ_CUDA_TRY(
        cudaEventElapsedTime(&milliseconds, c->self->begin, c->self->end),
        "taking the time", c->err);
    *seconds += 1e-3 * (double)milliseconds;
    return OJ_OK;
}

static oj_status load(struct chunk *c, const double *x, const double *y)
{
    struct oj_cuda_device *device = &c->self->device;
    cudaStream_t stream = device->stream;
    size_t bytes = (size_t)c->n * sizeof *x;
    OJ_TRY(oj_cuda_make(device, stream, c->n, &c->x, &c->y, &c->measure,
                        &c->row, c->err));
    OJ_CUDA_TRY(
        cudaMemcpyAsync(c->x.data, x, bytes, cudaMemcpyHostToDevice, stream),
        "copying points", c->err);
    OJ_CUDA_TRY(
        cudaMemcpyAsync(c->y.data, y, bytes, cudaMemcpyHostToDevice, stream),
        "copying points", c->err);
    return OJ_OK;
}

static oj_status group(struct chunk *c)
{
    struct oj_gpu_quadrant_index *self = c->self;
    int64_t size = self->options.quadrant_size;
    OJ_TRY(start_clock(c));
    OJ_TRY(oj_cuda_quadrants_make(&self->device, size > 0 ? size : default_size,
                                  c, c->err));
    return stop_clock(c, &c->sort_s);
}

/* Room for as many pairs as there is memory for, up to n. *got: how many. */
static oj_status hold_pairs(struct chunk *c, int64_t n, int64_t *got)
{
    struct oj_cuda_device *device = &c->self->device;
    for (*got = n < most_pairs ? n : most_pairs;; *got /= 2)
    {
        oj_status status = oj_cuda_make(device, device->stream, *got,
                                        &c->pairs.feature, c->err);
        if (status != OJ_ERR_NOMEM || *got <= least_pairs)
            return status;
    }
}

/* One quadrant may have more pairs than are held at a time. */
static oj_status make_room(struct chunk *c)
{
    struct oj_cuda_device *device = &c->self->device;
    if (c->slice.n_pairs <= c->pairs.feature.n)
        return OJ_OK;
    oj_cuda_drop(device, device->stream, &c->pairs.feature);
    return oj_cuda_make(device, device->stream, c->slice.n_pairs,
                        &c->pairs.feature, c->err);
}

static oj_status run_slice(struct chunk *c, int64_t most)
{
    struct oj_cuda_device *device = &c->self->device;
    OJ_TRY(start_clock(c));
    OJ_TRY(oj_cuda_quadrant_next_slice(device, most, c, c->err));
    OJ_TRY(make_room(c));
    OJ_TRY(oj_cuda_quadrant_fill_pairs(device, c, c->err));
    OJ_TRY(stop_clock(c, &c->filter_s));
    OJ_TRY(start_clock(c));
    OJ_TRY(oj_cuda_quadrant_refine(device, c, c->err));
    return stop_clock(c, &c->refine_s);
}

static oj_status meet(struct chunk *c)
{
    int64_t most = 0;
    if (c->quadrants.n == 0 || c->grid.n_entries == 0)
        return OJ_OK;
    OJ_TRY(start_clock(c));
    OJ_TRY(oj_cuda_quadrant_count_pairs(&c->self->device, c, c->err));
    OJ_TRY(stop_clock(c, &c->filter_s));
    if (c->pairs.n == 0)
        return OJ_OK;
    OJ_TRY(hold_pairs(c, c->pairs.n, &most));
    while (c->slice.end < c->quadrants.n)
        OJ_TRY(run_slice(c, most));
    return OJ_OK;
}

static oj_status unload(struct chunk *c, int32_t *row, double *measure)
{
    struct oj_gpu_quadrant_index *self = c->self;
    cudaStream_t stream = self->device.stream;
    unsigned long long n_met = 0;
    size_t n = (size_t)c->n;
    OJ_TRY(start_clock(c));
    OJ_TRY(oj_cuda_quadrant_answer(&self->device, c, c->err));
    OJ_TRY(stop_clock(c, &c->refine_s));
    OJ_CUDA_TRY(cudaMemcpyAsync(row, c->row.data, n * sizeof *row,
                                cudaMemcpyDeviceToHost, stream),
                "copying answers", c->err);
    OJ_CUDA_TRY(cudaMemcpyAsync(measure, c->measure.data, n * sizeof *measure,
                                cudaMemcpyDeviceToHost, stream),
                "copying answers", c->err);
    OJ_CUDA_TRY(cudaMemcpyAsync(&n_met, c->answers.n_met.data, sizeof n_met,
                                cudaMemcpyDeviceToHost, stream),
                "copying answers", c->err);
    OJ_CUDA_TRY(cudaStreamSynchronize(stream), "copying answers", c->err);
    c->n_met = (int64_t)n_met;
    return OJ_OK;
}

static void drop_chunk(struct chunk *c)
{
    struct oj_cuda_quadrants *q = &c->quadrants;
    struct oj_cuda_quadrant_pairs *p = &c->pairs;
    struct oj_cuda_quadrant_answers *a = &c->answers;
    cudaStream_t stream = c->self->device.stream;
    oj_cuda_drop(&c->self->device, stream, &c->x, &c->y, &c->measure, &c->row,
                 &q->row, &q->x, &q->y, &q->first, &q->window, &p->offset,
                 &p->task, &p->feature, &p->scratch, &a->distance, &a->rank,
                 &a->lock, &a->n_met);
    /* What is under way must not outlive the host's arrays. */
    (void)cudaStreamSynchronize(stream);
    (void)cudaGetLastError();
}

static oj_status run_chunk(struct chunk *c, const double *x, const double *y,
                           int32_t *row, double *measure)
{
    OJ_TRY(load(c, x, y));
    OJ_TRY(group(c));
    OJ_TRY(oj_cuda_quadrant_answers_make(&c->self->device, c, c->err));
    OJ_TRY(meet(c));
    return unload(c, row, measure);
}

/* Without memory for a chunk its halves are tried. */
static oj_status join_rows(struct oj_gpu_quadrant_index *self,
                           const struct oj_flat *input, int64_t first,
                           int64_t n, struct oj_matches *out,
                           struct oj_stats *stats, struct oj_error *err)
{
    struct chunk c = {};
    oj_status status;
    c.self = self;
    c.layer = self->layer;
    c.grid = self->grid;
    c.interior = self->interior;
    c.n = n;
    c.err = err;
    status = run_chunk(&c, input->x + first, input->y + first,
                       out->join_row + first, out->measure + first);
    drop_chunk(&c);
    if (status == OJ_OK)
    {
        stats->sort_s += c.sort_s;
        stats->filter_s += c.filter_s;
        stats->refine_s += c.refine_s;
        stats->n_candidates += c.n_met;
    }
    if (status != OJ_ERR_NOMEM || n < 2 * LEAST_ROWS)
        return status;
    OJ_TRY(join_rows(self, input, first, n / 2, out, stats, err));
    return join_rows(self, input, first + n / 2, n - n / 2, out, stats, err);
}

static oj_status join_all(struct oj_gpu_quadrant_index *self,
                          const struct oj_flat *input, struct oj_matches *out,
                          struct oj_stats *stats, struct oj_error *err)
{
    int64_t n = input->n_features, step = most_rows;
    OJ_CUDA_TRY(cudaSetDevice(self->device.ordinal), "choosing a device", err);
    if (self->options.gpu_batch > 0 && self->options.gpu_batch < step)
        step = self->options.gpu_batch;
    for (int64_t first = 0; first < n; first += step)
        OJ_TRY(join_rows(self, input, first,
                         n - first < step ? n - first : step, out, stats, err));
    return OJ_OK;
}

oj_status oj_cuda_quadrant_join(struct oj_gpu_quadrant_index *index,
                                const struct oj_flat *input,
                                struct oj_matches *out, struct oj_stats *stats,
                                struct oj_error *err)
{
    int64_t n = input->n_features, n_matched = 0;
    OJ_TRY(oj_matches_reserve(out, n, n, 0, err));
    OJ_TRY(oj_cuda_try_all(
        1,
        [&](int, struct oj_error *error)
        { return join_all(index, input, out, stats, error); },
        err));
    for (int64_t i = 0; i < n; i++)
        n_matched += out->join_row[i] >= 0;
    out->n_matched = out->n_pairs = n_matched;
    return OJ_OK;
}

static oj_status make_index(struct oj_gpu_quadrant_index *self,
                            const struct oj_flat *join_side,
                            const int32_t *tie_rank, double reach,
                            struct oj_error *err)
{
    const struct oj_options *options = &self->options;
    int ordinal = 0;
    while (ordinal < OJ_GPU_MAX_DEVICES - 1 && options->gpus != 0 &&
           (options->gpus >> ordinal & 1) == 0)
        ordinal++;
    OJ_TRY(oj_cuda_open(ordinal, options->gpu_memory, options->cancel,
                        &self->device, err));
    OJ_CUDA_TRY(cudaEventCreate(&self->begin), "taking the time", err);
    OJ_CUDA_TRY(cudaEventCreate(&self->end), "taking the time", err);
    OJ_TRY(oj_cuda_layer_make(&self->device, join_side, NULL, tie_rank,
                              &self->layer, err));
    return oj_cuda_quadrant_grid_make(&self->device, &self->layer, reach,
                                      &self->grid, err);
}

oj_status oj_cuda_quadrant_index(const struct oj_flat *join_side,
                                 const int32_t *tie_rank,
                                 const struct oj_relation *relation,
                                 const struct oj_options *options,
                                 struct oj_gpu_quadrant_index **out,
                                 struct oj_stats *stats, struct oj_error *err)
{
    double start = oj_clock_seconds();
    struct oj_gpu_quadrant_index *self;
    oj_status status;
    self = (struct oj_gpu_quadrant_index *)oj_calloc(1, sizeof *self);
    if (self == NULL)
        return oj_fail_nomem(err, 1, sizeof *self);
    self->options = *options;
    self->interior = relation->distance_to == OJ_TO_INTERIOR;
    status = oj_cuda_try_all(
        1,
        [&](int, struct oj_error *error)
        {
            return make_index(self, join_side, tie_rank, relation->max_distance,
                              error);
        },
        err);
    if (status != OJ_OK)
    {
        oj_cuda_quadrant_free(self);
        return status;
    }
    stats->index_s += oj_clock_seconds() - start;
    stats->index_bytes +=
        oj_cuda_bytes(&self->grid.box, &self->grid.first, &self->grid.flag) +
        self->grid.n_entries * (int64_t)(sizeof(uint64_t) + sizeof(int32_t));
    *out = self;
    return OJ_OK;
}

static void free_aside(void *user)
{
    struct oj_gpu_quadrant_index *self = (struct oj_gpu_quadrant_index *)user;
    if (self->device.stream == NULL)
        return;
    (void)cudaSetDevice(self->device.ordinal);
    if (self->begin != NULL)
        (void)cudaEventDestroy(self->begin);
    if (self->end != NULL)
        (void)cudaEventDestroy(self->end);
    oj_cuda_drop(&self->device, self->device.stream, &self->grid.box,
                 &self->grid.cell, &self->grid.feature, &self->grid.first,
                 &self->grid.flag);
    oj_cuda_layer_drop(&self->device, &self->layer);
    oj_cuda_close(&self->device);
    (void)cudaGetLastError();
}

void oj_cuda_quadrant_free(struct oj_gpu_quadrant_index *index)
{
    if (index == NULL)
        return;
    oj_cuda_aside(free_aside, index);
    oj_free(index);
}
