#include "device/cuda_workers.h"
#include "device/oj_streamed.h"
#include "index/cuda_chunk_pairs.h"
#include "index/cuda_sizes.h"

#include "../flatten/base/oj_array.h"

#include <stdlib.h>
#include <string.h>

/* A batch is cut into chunks, and workers take chunk after chunk: each has a
 * slot of a device, copies its chunk in, waits for the kernels and copies the
 * answers out, while the others are elsewhere on that way.  The place of an
 * answer is that of its row, so it does not matter who takes which chunk. */
enum
{
    BLOCK = 256,
    LEAST_ROWS = 4096 /* of a chunk; less is not cut further for memory */
};

struct cuda_join_batch
{
    struct oj_gpu_index *index;
    const struct oj_cuda_family *family;
    int number; /* of the family */
    const struct oj_flat *input;
    struct oj_matches *out;
    int lists, in_pinned, out_pinned;
    int streams; /* 1: results are larger than caches (oj_streamed.h) */
    int64_t chunk_rows, n_chunks;
    int n_workers;
    int64_t most_kept; /* pairs that stay on the devices until all are there */
    const struct oj_cuda_taker *taker; /* pairs are not made; or NULL */

    /* Shared; changed atomically. */
    int64_t next_chunk, n_pairs, n_kept, n_matched;

    /* Lists only: chunks from the first on get their place in out as soon as
     * those before them are counted. */
    struct oj_cuda_chunk_pairs *pairs; /* [n_chunks] */
    pthread_mutex_t lock;              /* of what follows */
    int64_t n_counted;                 /* chunks from the first on */
    int64_t n_counted_pairs;           /* of these */
    int64_t n_placed;                  /* chunks from the first on */
    int64_t room;                      /* pairs that out has room for */

    struct oj_cuda_workers workers; /* they need slots */
};

struct cuda_batch_worker
{
    struct cuda_join_batch *batch;
    struct oj_cuda_place *place;
    struct oj_cuda_slot *slot;
    struct oj_cuda_points points; /* of its chunk, on the device */
    struct oj_error error;
};

static __global__ void count_matched(int64_t n, const int32_t *row,
                                     unsigned long long *n_matched)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int n_block = __syncthreads_count(i < n && row[i] >= 0);
    if (threadIdx.x == 0 && n_block > 0)
        atomicAdd(n_matched, (unsigned long long)n_block);
}

/* ---- one chunk ---------------------------------------------------------- */

static oj_status copy_in(struct cuda_batch_worker *w, int64_t first, int64_t n)
{
    struct oj_cuda_slot *slot = w->slot;
    const double *x = w->batch->input->x + first;
    const double *y = w->batch->input->y + first;
    size_t bytes = (size_t)n * sizeof(double);
    if (!w->batch->in_pinned)
    {
        memcpy(slot->stage.data, x, bytes);
        memcpy(slot->stage.data + bytes, y, bytes);
        x = (const double *)(const void *)slot->stage.data;
        y = x + n;
    }
    OJ_CUDA_TRY(cudaMemcpyAsync(slot->d_x.data, x, bytes,
                                cudaMemcpyHostToDevice, slot->stream),
                "copying points", &w->error);
    OJ_CUDA_TRY(cudaMemcpyAsync(slot->d_y.data, y, bytes,
                                cudaMemcpyHostToDevice, slot->stream),
                "copying points", &w->error);
    return OJ_OK;
}

/* Copies the points of a chunk in. Nothing waits for them, but where the pace
 * is asked for next: it is that of kernels. */
static oj_status take_points(struct cuda_batch_worker *w, int64_t first,
                             int64_t n)
{
    const struct oj_relation *relation = &w->batch->index->relation;
    memset(&w->points, 0, sizeof w->points);
    w->points.n = n;
    w->points.x = w->slot->d_x.data;
    w->points.y = w->slot->d_y.data;
    OJ_TRY(copy_in(w, first, n));
    if (w->batch->family->knows_columns)
        OJ_TRY(oj_cuda_slot_columns(w->slot, w->batch->input,
                                    relation->exclude_self ||
                                        relation->unordered_pairs != 0,
                                    first, &w->points, &w->error));
    if (w->slot->pace.n_rows > 0)
        return OJ_OK;
    return oj_cuda_slot_wait(w->slot, &w->error);
}

static struct oj_cuda_points part_of(const struct oj_cuda_points *all,
                                     int64_t at, int64_t n)
{
    const auto behind = [at](auto *column)
    { return column != NULL ? column + at : NULL; };
    struct oj_cuda_points part;
    part.n = n;
    part.x = all->x + at;
    part.y = all->y + at;
    part.fid = behind(all->fid);
    part.on_class = behind(all->on_class);
    part.exclude_class = behind(all->exclude_class);
    part.max_distance = behind(all->max_distance);
    return part;
}

/* The stage is free for answers as soon as the points are on the device: the
 * copies out stand behind those in on the same stream. */
static oj_status join_one(struct cuda_batch_worker *w,
                          const struct oj_cuda_points *points, int64_t first)
{
    struct cuda_join_batch *b = w->batch;
    struct oj_cuda_slot *slot = w->slot;
    int64_t n = points->n;
    double *measure = b->out->measure + first;
    int32_t *row = b->out->join_row + first;
    size_t size = (size_t)n;
    double *to_measure = measure;
    int32_t *to_row = row;
    if (!b->out_pinned)
    {
        to_measure = (double *)(void *)slot->stage.data;
        to_row = (int32_t *)(void *)(to_measure + n);
    }
    OJ_TRY(oj_cuda_clear(slot->stream, &slot->d_matched, "joining", &w->error));
    OJ_TRY(b->family->join_one(w->place->of[b->number], slot->stream, points,
                               slot->d_row.data, slot->d_measure.data,
                               &w->error));
    count_matched<<<oj_blocks(n, BLOCK), BLOCK, 0, slot->stream>>>(
        n, slot->d_row.data, slot->d_matched.data);
    OJ_CUDA_TRY_LAUNCH("counting matches", &w->error);
    OJ_CUDA_TRY(cudaMemcpyAsync(slot->matched, slot->d_matched.data,
                                sizeof *slot->matched, cudaMemcpyDeviceToHost,
                                slot->stream),
                "copying answers", &w->error);
    OJ_CUDA_TRY(cudaMemcpyAsync(to_row, slot->d_row.data, size * sizeof *to_row,
                                cudaMemcpyDeviceToHost, slot->stream),
                "copying answers", &w->error);
    OJ_CUDA_TRY(cudaMemcpyAsync(to_measure, slot->d_measure.data,
                                size * sizeof *to_measure,
                                cudaMemcpyDeviceToHost, slot->stream),
                "copying answers", &w->error);
    OJ_TRY(oj_cuda_slot_wait(slot, &w->error));
    if (!b->out_pinned)
    {
        oj_stream_or_copy(b->streams, row, to_row, size * sizeof *to_row);
        oj_stream_or_copy(b->streams, measure, to_measure,
                          size * sizeof *to_measure);
    }
    __atomic_add_fetch(&b->n_matched, (int64_t)*slot->matched,
                       __ATOMIC_RELAXED);
    return OJ_OK;
}

static oj_status take_pairs(struct cuda_batch_worker *w,
                            struct oj_cuda_chunk_pairs *pairs, int64_t n,
                            struct oj_cuda_pairs *found)
{
    struct cuda_join_batch *b = w->batch;
    int64_t n_found = found->n_pairs;
    int64_t n_kept = __atomic_add_fetch(&b->n_kept, n_found, __ATOMIC_RELAXED);
    int keeps = n_kept <= b->most_kept;
    oj_status status =
        oj_cuda_chunk_take(pairs, w->slot, n, found, keeps, &w->error);
    if (!keeps || status != OJ_OK)
        __atomic_sub_fetch(&b->n_kept, n_found, __ATOMIC_RELAXED);
    return status;
}

static oj_status too_many_pairs(struct cuda_batch_worker *w)
{
    return oj_fail(&w->error, OJ_ERR_TOO_MANY_PAIRS,
                   "the batch has more pairs than %lld",
                   (long long)w->batch->index->options.max_batch_pairs);
}

static oj_status join_lists(struct cuda_batch_worker *w,
                            struct oj_cuda_chunk_pairs *pairs,
                            const struct oj_cuda_points *points)
{
    struct cuda_join_batch *b = w->batch;
    struct oj_cuda_slot *slot = w->slot;
    struct oj_cuda_pairs found = {};
    int64_t most = b->index->options.max_batch_pairs, left = 0, n_found;
    oj_status status;
    if (most > 0 && b->input->n_features > 1)
    {
        left = most - __atomic_load_n(&b->n_pairs, __ATOMIC_RELAXED);
        if (left <= 0)
            left = 1;
    }
    status = b->family->join_lists(w->place->of[b->number], slot->stream,
                                   points, left, &found, &w->error);
    if (status != OJ_OK)
        return status;
    n_found = found.n_pairs;
    if (most > 0 && b->input->n_features > 1 &&
        __atomic_add_fetch(&b->n_pairs, n_found, __ATOMIC_RELAXED) > most)
        status = too_many_pairs(w);
    if (status == OJ_OK)
        status = take_pairs(w, pairs, points->n, &found);
    if (status == OJ_ERR_NOMEM) /* they are counted again */
        __atomic_sub_fetch(&b->n_pairs, n_found, __ATOMIC_RELAXED);
    oj_cuda_pairs_drop(slot->device, slot->stream, &found);
    return status;
}

static oj_status give_rows(struct cuda_batch_worker *w,
                           const struct oj_cuda_points *points, int64_t first)
{
    const struct oj_cuda_taker *taker = w->batch->taker;
    OJ_TRY(taker->take(taker->user, (int)(w->place - w->batch->index->place),
                       w->slot, first, points, &w->error));
    return oj_cuda_slot_wait(w->slot, &w->error);
}

/* ---- the places of pairs ------------------------------------------------- */

/* Pairs of all rows, as those counted so far suggest, and a little more. */
static int64_t expected_pairs(const struct cuda_join_batch *b)
{
    double n_rows = (double)b->input->n_features;
    double n_counted = (double)(b->n_counted * b->chunk_rows);
    double n;
    if (b->n_counted == b->n_chunks)
        return b->n_counted_pairs;
    n = (double)b->n_counted_pairs * (n_rows / n_counted) * 1.0625;
    return n < 9e18 ? (int64_t)n : INT64_MAX;
}

/* The first chunks that are counted tell how much room all will need.  Without
 * memory for that, pairs wait until all are counted. */
static void make_room(struct cuda_join_batch *b)
{
    struct oj_error ignored;
    int64_t n = expected_pairs(b), most = b->index->options.max_batch_pairs;
    if (b->room > 0 ||
        (b->n_counted < b->n_workers && b->n_counted < b->n_chunks))
        return;
    if (most > 0 && n > most)
        n = most;
    if (oj_matches_grow(b->out, 0, n, &ignored) == OJ_OK)
        b->room = n;
}

/* The pairs of a chunk are counted: gives those their first place that it can
 * be known of.  1 when all are: what is left is placed by all workers. */
static int note_counted(struct cuda_join_batch *b, int64_t chunk)
{
    int all;
    pthread_mutex_lock(&b->lock);
    b->pairs[chunk].is_counted = 1;
    while (b->n_counted < b->n_chunks && b->pairs[b->n_counted].is_counted)
    {
        struct oj_cuda_chunk_pairs *pairs = &b->pairs[b->n_counted++];
        pairs->first = b->n_counted_pairs;
        b->n_counted_pairs += pairs->n;
    }
    make_room(b);
    all = b->n_counted == b->n_chunks;
    pthread_mutex_unlock(&b->lock);
    return all;
}

/* A chunk's pairs, and where they go. */
struct placing
{
    struct oj_cuda_chunk_pairs *pairs;
    struct oj_cuda_pairs_place place;
};

/* Whether there are pairs that can be placed from device: the caller does. */
static int next_to_place(struct cuda_join_batch *b,
                         const struct oj_cuda_device *device,
                         struct placing *next)
{
    struct oj_matches *out = b->out;
    next->pairs = NULL;
    pthread_mutex_lock(&b->lock);
    for (int64_t c = b->n_placed; next->pairs == NULL && c < b->n_counted; c++)
    {
        struct oj_cuda_chunk_pairs *pairs = &b->pairs[c];
        if (pairs->is_placed || pairs->device != device ||
            pairs->first + pairs->n > b->room)
            continue;
        pairs->is_placed = 1;
        next->pairs = pairs;
        next->place.end = out->offset + c * b->chunk_rows + 1;
        next->place.row = out->join_row + pairs->first;
        next->place.measure = out->measure + pairs->first;
        next->place.at = pairs->first;
        next->place.n_matched = 0;
        next->place.streams = b->streams;
    }
    while (b->n_placed < b->n_counted && b->pairs[b->n_placed].is_placed)
        b->n_placed++;
    pthread_mutex_unlock(&b->lock);
    return next->pairs != NULL;
}

/* All that can be placed now. */
static oj_status place_pairs(struct cuda_join_batch *b,
                             struct oj_cuda_slot *slot, struct oj_error *err)
{
    struct placing next;
    while (!oj_cuda_workers_stopped(&b->workers) &&
           next_to_place(b, slot->device, &next))
    {
        OJ_TRY(oj_check_cancel(b->index->options.cancel, err));
        OJ_TRY(oj_cuda_chunk_move(next.pairs, slot, &next.place, err));
        __atomic_add_fetch(&b->n_matched, next.place.n_matched,
                           __ATOMIC_RELAXED);
        __atomic_sub_fetch(&b->n_kept, next.pairs->n_kept, __ATOMIC_RELAXED);
    }
    return OJ_OK;
}

/* ---- workers ------------------------------------------------------------ */

/* Rows at .. at + n - 1 of the worker's chunk; without memory for them their
 * halves are tried. */
static oj_status join_rows(struct cuda_batch_worker *w, int64_t chunk,
                           int64_t at, int64_t n)
{
    struct cuda_join_batch *b = w->batch;
    struct oj_cuda_points points = part_of(&w->points, at, n);
    int64_t first = chunk * b->chunk_rows + at;
    struct oj_error first_error;
    oj_status status;
    if (oj_cuda_workers_stopped(&b->workers))
        return OJ_OK;
    OJ_TRY(oj_check_cancel(b->index->options.cancel, &w->error));
    if (b->taker != NULL)
        status = give_rows(w, &points, first);
    else
        status = b->lists ? join_lists(w, &b->pairs[chunk], &points)
                          : join_one(w, &points, first);
    if (status != OJ_ERR_NOMEM || n < 2 * LEAST_ROWS)
        return status;
    first_error = w->error;
    OJ_TRY(oj_cuda_slot_wait(w->slot, &w->error)); /* copies from stages */
    status = join_rows(w, chunk, at, n / 2);
    if (status == OJ_OK)
        status = join_rows(w, chunk, at + n / 2, n - n / 2);
    if (status == OJ_ERR_NOMEM)
        w->error = first_error;
    return status;
}

static oj_status join_chunk(struct cuda_batch_worker *w, int64_t chunk)
{
    struct cuda_join_batch *b = w->batch;
    struct oj_cuda_pace *pace = &w->slot->pace;
    int64_t first = chunk * b->chunk_rows, left = b->input->n_features - first;
    int64_t n_rows = left < b->chunk_rows ? left : b->chunk_rows;
    OJ_TRY(take_points(w, first, n_rows));
    for (int64_t at = 0, n; at < n_rows; at += n)
    {
        double start = oj_clock_seconds();
        n = oj_cuda_pace_rows(pace, n_rows - at);
        OJ_TRY(join_rows(w, chunk, at, n));
        oj_cuda_pace_took(pace, n, oj_clock_seconds() - start);
    }
    if (!b->lists || b->taker != NULL)
        return OJ_OK;
    if (note_counted(b, chunk))
        return OJ_OK;
    return place_pairs(b, w->slot, &w->error);
}

static oj_status work(struct cuda_batch_worker *w)
{
    struct cuda_join_batch *b = w->batch;
    while (!oj_cuda_workers_stopped(&b->workers))
    {
        int64_t chunk = __atomic_fetch_add(&b->next_chunk, 1, __ATOMIC_RELAXED);
        if (chunk >= b->n_chunks)
            break;
        OJ_TRY(join_chunk(w, chunk));
    }
    return OJ_OK;
}

/* A worker without a slot leaves the chunks to the others. */
static int take_slot(struct cuda_batch_worker *w)
{
    struct cuda_join_batch *b = w->batch;
    int staged = !b->in_pinned || !b->out_pinned || b->lists;
    oj_status status;
    if (__atomic_load_n(&b->next_chunk, __ATOMIC_RELAXED) >= b->n_chunks)
        return 0;
    status = oj_cuda_slot_make(&w->place->device, b->chunk_rows, staged,
                               w->slot, &w->error);
    oj_cuda_workers_ready(&b->workers, status, &w->error);
    if (status != OJ_OK)
        oj_cuda_slot_free(w->slot);
    if (w->slot->family != b->number)
        memset(&w->slot->pace, 0, sizeof w->slot->pace);
    w->slot->family = b->number;
    return status == OJ_OK;
}

/* Slots are made here, so that one device works while the memory of another is
 * being found. */
static void run_worker(int i, void *user)
{
    struct cuda_join_batch *b = (struct cuda_join_batch *)user;
    struct cuda_batch_worker w = {};
    oj_status status = OJ_OK;
    cudaError_t error;
    w.batch = b;
    w.place = &b->index->place[i % b->index->n_places];
    w.slot = &b->index->slot[i];
    error = cudaSetDevice(w.place->device.ordinal);
    if (error != cudaSuccess)
        status = oj_cuda_fail(&w.error, error, "choosing a device");
    else if (!take_slot(&w))
        return;
    else
        status = work(&w);
    oj_cuda_workers_told(&b->workers, status, &w.error);
    /* What is under way must not outlive the arrays it writes to. */
    if (w.slot->stream != NULL)
        (void)cudaStreamSynchronize(w.slot->stream);
    (void)cudaGetLastError();
}

static oj_status run_all(struct cuda_join_batch *b,
                         void (*run)(int i, void *user), struct oj_error *err)
{
    oj_cuda_workers_start(&b->workers);
    oj_cuda_side_by_side(b->n_workers, run, b);
    return oj_cuda_workers_end(&b->workers, err);
}

/* ---- a batch ------------------------------------------------------------ */

/* Chunks that were not placed on the way. */
static void run_placer(int i, void *user)
{
    struct cuda_join_batch *b = (struct cuda_join_batch *)user;
    struct oj_cuda_slot *slot = &b->index->slot[i];
    struct oj_error error = {OJ_OK, ""};
    oj_status status = OJ_OK;
    cudaError_t set;
    if (slot->stream == NULL)
        return; /* it made nothing, and others of its device can do this */
    set = cudaSetDevice(slot->device->ordinal);
    if (set != cudaSuccess)
        status = oj_cuda_fail(&error, set, "choosing a device");
    else
        status = place_pairs(b, slot, &error);
    oj_cuda_workers_told(&b->workers, status, &error);
    (void)cudaStreamSynchronize(slot->stream);
    (void)cudaGetLastError();
}

/* All chunks are counted: what has no place yet gets it. */
static oj_status gather(struct cuda_join_batch *b, struct oj_error *err)
{
    struct oj_matches *out = b->out;
    int64_t n = b->n_counted_pairs;
    if (n > b->room)
        OJ_TRY(oj_matches_grow(out, b->room, n, err));
    b->room = n;
    if (b->n_placed < b->n_chunks)
        OJ_TRY(run_all(b, run_placer, err));
    out->n_entries = out->n_pairs = n;
    out->n_matched = b->n_matched;
    return OJ_OK;
}

static void free_pairs(struct cuda_join_batch *b)
{
    for (int64_t c = 0; b->pairs != NULL && c < b->n_chunks; c++)
        oj_cuda_chunk_free(&b->pairs[c]);
    oj_free(b->pairs);
    b->pairs = NULL;
}

/* Cuts the batch and sends it through the devices. */
static oj_status run_chunks(struct cuda_join_batch *b, struct oj_error *err)
{
    struct oj_cuda_sizes sizes;
    int64_t n = b->input->n_features;
    sizes = oj_cuda_choose_sizes(b->index, b->number, n,
                                 b->in_pinned && b->out_pinned);
    b->n_workers = sizes.n_workers;
    b->chunk_rows = sizes.chunk_rows;
    b->n_chunks = (n + b->chunk_rows - 1) / b->chunk_rows;
    b->most_kept = sizes.spare_bytes / OJ_CUDA_PAIR_BYTES;
    if (b->lists)
    {
        b->pairs = (struct oj_cuda_chunk_pairs *)oj_calloc(b->n_chunks,
                                                           sizeof *b->pairs);
        if (b->pairs == NULL)
            return oj_fail_nomem(err, b->n_chunks, sizeof *b->pairs);
        b->out->offset[0] = 0;
    }
    return run_all(b, run_worker, err);
}

static oj_status join_batch(struct cuda_join_batch *b, struct oj_error *err)
{
    struct oj_matches *out = b->out;
    int64_t n = b->input->n_features;
    int64_t bytes = n * (int64_t)sizeof(double);
    OJ_CUDA_TRY(cudaSetDevice(b->index->place[0].device.ordinal),
                "choosing a device", err);
    b->in_pinned = oj_cuda_is_pinned(b->input->x, bytes) &&
                   oj_cuda_is_pinned(b->input->y, bytes);
    if (b->taker != NULL)
    {
        b->out_pinned = 1;
        return run_chunks(b, err);
    }
    b->streams = bytes > OJ_STREAMED_BYTES;
    OJ_TRY(oj_matches_reserve(out, n, b->lists ? 0 : n, b->lists, err));
    if (n == 0)
    {
        if (b->lists)
            out->offset[0] = 0;
        return OJ_OK;
    }
    b->out_pinned =
        !b->lists && oj_cuda_is_pinned(out->measure, bytes) &&
        oj_cuda_is_pinned(out->join_row, n * (int64_t)sizeof(int32_t));
    OJ_TRY(run_chunks(b, err));
    if (b->lists)
        return gather(b, err);
    out->n_matched = out->n_pairs = b->n_matched;
    return OJ_OK;
}

/* On threads of their own, whose current device is nobody's. */
static oj_status run_aside(struct cuda_join_batch *b, struct oj_stats *stats,
                           struct oj_error *err)
{
    double start = oj_clock_seconds();
    oj_status status = oj_cuda_try_all(
        1,
        [&](int, struct oj_error *error)
        {
            oj_status joined = join_batch(b, error);
            free_pairs(b);
            return joined;
        },
        err);
    stats->refine_s += oj_clock_seconds() - start;
    return status;
}

oj_status oj_cuda_join(struct oj_gpu_index *index, const struct oj_flat *input,
                       struct oj_matches *out, struct oj_stats *stats,
                       struct oj_error *err)
{
    struct cuda_join_batch batch = {};
    oj_status status;
    batch.index = index;
    batch.input = input;
    batch.out = out;
    batch.lists = oj_relation_gives_lists(&index->relation);
    OJ_TRY(oj_cuda_family_for(index, input, &batch.number, stats, err));
    batch.family = oj_cuda_family_at(batch.number);
    pthread_mutex_init(&batch.lock, NULL);
    status = run_aside(&batch, stats, err);
    pthread_mutex_destroy(&batch.lock);
    return status;
}

oj_status oj_cuda_give_chunks(struct oj_gpu_index *index, int family,
                              const struct oj_flat *input,
                              const struct oj_cuda_taker *taker,
                              struct oj_stats *stats, struct oj_error *err)
{
    struct cuda_join_batch batch = {};
    batch.index = index;
    batch.family = oj_cuda_family_at(family);
    batch.number = family;
    batch.input = input;
    batch.taker = taker;
    return run_aside(&batch, stats, err);
}
