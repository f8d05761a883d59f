/* The functions of the module for a kept index: its devices, and what goes to
 * them and comes back. */
#include "cuda_live.cuh"

#include "../../flatten/base/oj_alloc.h"
#include "../foundations/device/cuda_copy.h"
#include "../foundations/device/cuda_host_threads.h"
#include "../foundations/index/cuda_index.h"
#include "../foundations/index/cuda_row_shares.cuh"

#include <new>
#include <string.h>

/* Rows that are joined at once; fewer where memory is missing. */
#define MOST_ROWS ((int64_t)1 << 22)

/* --- devices -------------------------------------------------------------- */

static oj_status use_part(const struct oj_cuda_live_part *part,
                          struct oj_error *err)
{
    OJ_CUDA_TRY(cudaSetDevice(part->device.ordinal), "choosing a device", err);
    return OJ_OK;
}

static void free_part(struct oj_cuda_live_part *part)
{
    struct oj_cuda_device *device = &part->device;
    if (device->stream == NULL)
        return;
    (void)cudaSetDevice(device->ordinal);
    oj_cuda_release(device, device->stream, &part->page_memory);
    oj_cuda_release(device, device->stream, &part->id_memory);
    oj_cuda_close(device);
}

void oj_cuda_live_free(struct oj_gpu_live *live)
{
    if (live == NULL)
        return;
    oj_cuda_thread_aside(
        [=]()
        {
            for (int i = 0; i < live->n_parts; i++)
                free_part(&live->part[i]);
        });
    pthread_mutex_destroy(&live->lock);
    oj_free(live);
}

oj_status oj_cuda_live_new(const struct oj_options *options,
                           struct oj_gpu_live **out, struct oj_error *err)
{
    int ordinal[OJ_GPU_MAX_DEVICES];
    oj_status status;
    struct oj_gpu_live *live = (struct oj_gpu_live *)oj_calloc(1, sizeof *live);
    if (live == NULL)
        return oj_fail_nomem(err, 1, sizeof *live);
    pthread_mutex_init(&live->lock, NULL);
    live->n_parts = oj_cuda_index_list_devices(options->gpus, ordinal);
    status = oj_cuda_threads_try_all(
        live->n_parts,
        [&](int i, struct oj_error *why)
        {
            struct oj_cuda_device *device = &live->part[i].device;
            OJ_TRY(oj_cuda_open(ordinal[i], options->gpu_memory, NULL, device,
                                why));
            device->n_threads = options->n_threads;
            return OJ_OK;
        },
        err);
    if (status == OJ_OK)
        *out = live;
    else
        oj_cuda_live_free(live);
    return status;
}

/* --- batches -------------------------------------------------------------- */

/* The changes of each part, in the order of the batch. Owner of the arrays
 * unless there is one part. */
struct shared_changes
{
    int64_t first[OJ_GPU_MAX_DEVICES + 1];
    int64_t *own_id;
    double *own_x, *own_y;
    const int64_t *id;
    const double *x, *y;
};

static int part_of_id(const struct oj_gpu_live *live, int64_t id)
{
    /* the table of ids uses the lower bits */
    return (int)((oj_live_mix_id(id) >> 40) % (uint64_t)live->n_parts);
}

static void free_changes(struct shared_changes *changes)
{
    oj_free(changes->own_id);
    oj_free(changes->own_x);
    oj_free(changes->own_y);
}

static oj_status share_changes(const struct oj_gpu_live *live, int64_t n,
                               const int64_t *id, const double *x,
                               const double *y, struct shared_changes *out,
                               struct oj_error *err)
{
    int64_t at[OJ_GPU_MAX_DEVICES];
    out->id = id;
    out->x = x;
    out->y = y;
    out->first[1] = n;
    if (live->n_parts == 1)
        return OJ_OK;
    out->first[1] = 0;
    for (int64_t i = 0; i < n; i++)
        out->first[part_of_id(live, id[i]) + 1]++;
    for (int i = 0; i < live->n_parts; i++)
    {
        out->first[i + 1] += out->first[i];
        at[i] = out->first[i];
    }
    out->own_id = (int64_t *)oj_malloc(n, sizeof *id);
    out->own_x = (double *)oj_malloc(n, sizeof *x);
    out->own_y = (double *)oj_malloc(n, sizeof *y);
    if (out->own_id == NULL || out->own_x == NULL || out->own_y == NULL)
        return oj_fail_nomem(err, n, 3 * sizeof *id);
    for (int64_t i = 0; i < n; i++)
    {
        int64_t to = at[part_of_id(live, id[i])]++;
        out->own_id[to] = id[i];
        out->own_x[to] = x[i];
        out->own_y[to] = y[i];
    }
    out->id = out->own_id;
    out->x = out->own_x;
    out->y = out->own_y;
    return OJ_OK;
}

/* A batch of a part, from its preparation to its commit. */
struct part_batch
{
    int has_work;
    alignas(struct oj_cuda_work) char work[sizeof(struct oj_cuda_work)];
    struct oj_error err; /* of the work */
    struct oj_cuda_live_plan plan;
};

static struct oj_cuda_work *work_of(struct part_batch *batch)
{
    return (struct oj_cuda_work *)(void *)batch->work;
}

static oj_status prepare_part(struct oj_cuda_live_part *part,
                              struct part_batch *batch,
                              const struct shared_changes *changes, int number,
                              struct oj_error *err)
{
    int64_t first = changes->first[number];
    int64_t n = changes->first[number + 1] - first;
    const int64_t *id;
    const double *x, *y;
    struct oj_cuda_work *work;
    OJ_TRY(use_part(part, err));
    work = new (batch->work) oj_cuda_work(&part->device, part->device.stream,
                                          "changing a kept index", &batch->err);
    batch->has_work = 1;
    OJ_TRY(oj_cuda_put(work, changes->id + first, n, &id));
    OJ_TRY(oj_cuda_put(work, changes->x + first, n, &x));
    OJ_TRY(oj_cuda_put(work, changes->y + first, n, &y));
    OJ_TRY(oj_cuda_live_prepare(part, work, n, id, x, y, &batch->plan));
    return work->wait();
}

/* Makes the changes of a part, or forgets them; frees the work. */
static oj_status finish_part(struct oj_cuda_live_part *part,
                             struct part_batch *batch, int is_made,
                             struct oj_error *err)
{
    struct oj_cuda_work *work = work_of(batch);
    oj_status status;
    if (!batch->has_work)
        return OJ_OK;
    status = use_part(part, &batch->err);
    if (status == OJ_OK && is_made)
        status = oj_cuda_live_commit(part, work, &batch->plan);
    oj_cuda_live_abandon(part, work, &batch->plan);
    if (status == OJ_OK)
        status = work->wait();
    work->~oj_cuda_work();
    return status == OJ_OK ? OJ_OK
                           : oj_fail(err, status, "%s", batch->err.message);
}

static int64_t count_kinds(const struct oj_cuda_live_histogram *count, int kind)
{
    return (int64_t)count->n[kind] + count->n[kind + OJ_LIVE_OUTSIDE];
}

static void add_counts(struct oj_gpu_live_counts *to,
                       const struct oj_cuda_live_plan *plan)
{
    const struct oj_cuda_live_histogram *c = &plan->count;
    to->n_put += count_kinds(c, OJ_LIVE_PUT);
    to->n_moved +=
        count_kinds(c, OJ_LIVE_STAYS) + count_kinds(c, OJ_LIVE_MOVES);
    to->n_removed +=
        (int64_t)c->n[OJ_LIVE_REMOVED] + c->n[OJ_LIVE_REMOVED_BEYOND];
    to->n_unknown +=
        (int64_t)c->n[OJ_LIVE_UNKNOWN] + c->n[OJ_LIVE_UNKNOWN_BEYOND];
    to->n_unjoinable +=
        (int64_t)c->n[OJ_LIVE_UNKNOWN_BEYOND] + c->n[OJ_LIVE_REMOVED_BEYOND];
    to->n_superseded += c->n[OJ_LIVE_SUPERSEDED];
}

static oj_status apply_to_parts(struct oj_gpu_live *live,
                                const struct shared_changes *changes,
                                struct part_batch *batch, struct oj_error *err)
{
    int is_anew = 0;
    struct oj_error broken;
    oj_status status = oj_cuda_threads_try_all(
        live->n_parts,
        [&](int i, struct oj_error *why)
        {
            oj_status prepared =
                prepare_part(&live->part[i], &batch[i], changes, i, why);
            return prepared == OJ_OK || !batch[i].has_work
                       ? prepared
                       : oj_fail(why, prepared, "%s", batch[i].err.message);
        },
        err);
    int is_made = status == OJ_OK;
    oj_status finished = oj_cuda_threads_try_all(
        live->n_parts,
        [&](int i, struct oj_error *why)
        { return finish_part(&live->part[i], &batch[i], is_made, why); },
        is_made ? err : &broken);
    if (status == OJ_OK)
        status = finished;
    for (int i = 0; status == OJ_OK && i < live->n_parts; i++)
    {
        add_counts(&live->counts, &batch[i].plan);
        is_anew |= batch[i].plan.is_anew;
    }
    live->counts.n_rebuilt += is_anew;
    return status;
}

static oj_status apply_batch(struct oj_gpu_live *live, int64_t n,
                             const int64_t *id, const double *x,
                             const double *y, struct oj_error *err)
{
    struct shared_changes changes = {};
    struct part_batch *batch =
        (struct part_batch *)oj_calloc(live->n_parts, sizeof *batch);
    oj_status status;
    if (batch == NULL)
        return oj_fail_nomem(err, live->n_parts, sizeof *batch);
    status = share_changes(live, n, id, x, y, &changes, err);
    if (status == OJ_OK)
        status = apply_to_parts(live, &changes, batch, err);
    free_changes(&changes);
    oj_free(batch);
    return status;
}

oj_status oj_cuda_live_apply(struct oj_gpu_live *live, int64_t n,
                             const int64_t *id, const double *x,
                             const double *y, struct oj_error *err)
{
    oj_status status;
    if (n < 0 || n > INT32_MAX)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "a batch has 0 to %d changes, not %lld", INT32_MAX,
                       (long long)n);
    pthread_mutex_lock(&live->lock);
    status = apply_batch(live, n, id, x, y, err);
    pthread_mutex_unlock(&live->lock);
    return status;
}

/* --- joins ---------------------------------------------------------------- */

/* The pairs of a chunk of rows with the points of a part. Owner. */
struct part_pairs
{
    int64_t n;
    int64_t *offset, *id;
    double *distance;
};

static void free_part_pairs(int n_parts, struct part_pairs *pairs)
{
    for (int i = 0; i < n_parts; i++)
    {
        oj_free(pairs[i].offset);
        oj_free(pairs[i].id);
        oj_free(pairs[i].distance);
        pairs[i] = {};
    }
}

/* Host memory may be too little for the pairs: the caller asks for fewer rows
 * then. */
static oj_status copy_pairs_out(struct oj_cuda_work *work, int64_t n_rows,
                                const struct oj_cuda_live_found *found,
                                struct part_pairs *out)
{
    const struct oj_cuda_device *device = work->device;
    int64_t bytes = (int64_t)sizeof(int64_t);
    out->n = found->n;
    out->offset = (int64_t *)oj_malloc(n_rows + 1, sizeof *out->offset);
    out->id = (int64_t *)oj_malloc(found->n, sizeof *out->id);
    out->distance = (double *)oj_malloc(found->n, sizeof *out->distance);
    if (out->offset == NULL || out->id == NULL || out->distance == NULL)
        return oj_fail_nomem(work->err, found->n, 2 * sizeof *out->id);
    OJ_TRY(oj_cuda_copy_out(device, work->stream, out->offset, found->offset,
                            (n_rows + 1) * bytes, work->err));
    if (found->n == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_copy_out(device, work->stream, out->id, found->id,
                            found->n * bytes, work->err));
    return oj_cuda_copy_out(device, work->stream, out->distance,
                            found->distance, found->n * bytes, work->err);
}

static oj_status join_part(const struct oj_cuda_live_part *part,
                           const struct oj_relation *relation,
                           const struct oj_gpu_live_rows *rows, int64_t first,
                           int64_t n, struct part_pairs *out,
                           struct oj_error *err)
{
    struct oj_cuda_device *device = (struct oj_cuda_device *)&part->device;
    struct oj_cuda_live_rows here = {};
    struct oj_cuda_live_found found;
    OJ_TRY(use_part(part, err));
    struct oj_cuda_work work(device, device->stream,
                             "joining with a kept index", err);
    here.n = n;
    if (rows->box != NULL)
        OJ_TRY(oj_cuda_put(&work, rows->box + first, n, &here.box));
    else
    {
        OJ_TRY(oj_cuda_put(&work, rows->x + first, n, &here.x));
        OJ_TRY(oj_cuda_put(&work, rows->y + first, n, &here.y));
    }
    if (rows->fid != NULL)
        OJ_TRY(oj_cuda_put(&work, rows->fid + first, n, &here.fid));
    if (rows->max_distance != NULL)
        OJ_TRY(oj_cuda_put(&work, rows->max_distance + first, n,
                           &here.max_distance));
    OJ_TRY(oj_cuda_live_find(part, &work, relation, &here, &found));
    OJ_TRY(copy_pairs_out(&work, n, &found, out));
    return work.wait();
}

static oj_status make_room(struct oj_gpu_live_pairs *out, int64_t n,
                           int64_t max_pairs, struct oj_error *err)
{
    if (max_pairs > 0 && out->n + n > max_pairs)
        return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                       "the join has more pairs than max_pairs allows");
    OJ_ROOM(out->id, out->n, out->n + n, out->cap_id, err);
    OJ_ROOM(out->distance, out->n, out->n + n, out->cap_distance, err);
    return OJ_OK;
}

static int comes_first(const struct part_pairs *a, int64_t at_a,
                       const struct part_pairs *b, int64_t at_b,
                       int by_distance)
{
    if (by_distance && a->distance[at_a] != b->distance[at_b])
        return a->distance[at_a] < b->distance[at_b];
    return a->id[at_a] < b->id[at_b];
}

/* 1: a nearest row that has n pairs ends before one at this distance. */
static int is_complete(const struct oj_relation *relation,
                       const struct oj_gpu_live_pairs *out, int64_t first,
                       double distance)
{
    int64_t n = out->n - first;
    return n >= relation->k &&
           (relation->ties != OJ_TIES_ALL ||
            distance != out->distance[first + relation->k - 1]);
}

/* Merges the sorted pairs of a row of all parts. */
static void merge_row(const struct oj_gpu_live *live,
                      const struct part_pairs *pairs,
                      const struct oj_relation *relation, int64_t row,
                      struct oj_gpu_live_pairs *out)
{
    int64_t at[OJ_GPU_MAX_DEVICES], first = out->n;
    int is_nearest = oj_relation_is_nearest(relation);
    for (int i = 0; i < live->n_parts; i++)
        at[i] = pairs[i].offset[row];
    for (;;)
    {
        int next = -1;
        for (int i = 0; i < live->n_parts; i++)
        {
            if (at[i] < pairs[i].offset[row + 1] &&
                (next < 0 || comes_first(&pairs[i], at[i], &pairs[next],
                                         at[next], is_nearest)))
                next = i;
        }
        if (next < 0 ||
            (is_nearest &&
             is_complete(relation, out, first, pairs[next].distance[at[next]])))
            return;
        out->id[out->n] = pairs[next].id[at[next]];
        out->distance[out->n++] = pairs[next].distance[at[next]++];
    }
}

static oj_status add_chunk(const struct oj_gpu_live *live,
                           const struct part_pairs *pairs,
                           const struct oj_relation *relation, int64_t first,
                           int64_t n_rows, int64_t max_pairs,
                           struct oj_gpu_live_pairs *out, struct oj_error *err)
{
    int64_t n = 0;
    for (int i = 0; i < live->n_parts; i++)
        n += pairs[i].n;
    /* of several parts, pairs that are not among the k nearest go */
    OJ_TRY(make_room(out, n, live->n_parts == 1 ? max_pairs : 0, err));
    for (int64_t row = 0; row < n_rows; row++)
    {
        merge_row(live, pairs, relation, row, out);
        out->offset[first + row + 1] = out->n;
    }
    return make_room(out, 0, max_pairs, err);
}

static oj_status join_chunk(struct oj_gpu_live *live,
                            const struct oj_relation *relation,
                            const struct oj_gpu_live_rows *rows, int64_t first,
                            int64_t n, int64_t max_pairs,
                            struct oj_gpu_live_pairs *out, struct oj_error *err)
{
    struct part_pairs pairs[OJ_GPU_MAX_DEVICES] = {};
    oj_status status = oj_cuda_threads_try_all(
        live->n_parts,
        [&](int i, struct oj_error *why) {
            return join_part(&live->part[i], relation, rows, first, n,
                             &pairs[i], why);
        },
        err);
    if (status == OJ_OK)
        status =
            add_chunk(live, pairs, relation, first, n, max_pairs, out, err);
    free_part_pairs(live->n_parts, pairs);
    return status;
}

static oj_status join_rows(struct oj_gpu_live *live,
                           const struct oj_relation *relation,
                           const struct oj_gpu_live_rows *rows,
                           int64_t max_pairs, struct oj_gpu_live_pairs *out,
                           struct oj_error *err)
{
    int64_t most = MOST_ROWS, n;
    out->offset = (int64_t *)oj_malloc(rows->n + 1, sizeof *out->offset);
    if (out->offset == NULL)
        return oj_fail_nomem(err, rows->n + 1, sizeof *out->offset);
    out->n_rows = rows->n;
    out->offset[0] = 0;
    OJ_TRY(make_room(out, 1, 0, err));
    for (int64_t first = 0; first < rows->n; first += n)
    {
        oj_status status;
        n = oj_least(most, rows->n - first);
        status =
            join_chunk(live, relation, rows, first, n, max_pairs, out, err);
        if (status == OJ_ERR_NOMEM && n > 1)
        {
            most = (n + 1) / 2;
            n = 0;
            continue;
        }
        OJ_TRY(status);
    }
    return OJ_OK;
}

oj_status oj_cuda_live_join(struct oj_gpu_live *live,
                            const struct oj_relation *relation,
                            const struct oj_gpu_live_rows *rows,
                            int64_t max_pairs, struct oj_gpu_live_pairs *out,
                            struct oj_error *err)
{
    struct oj_gpu_live_pairs pairs = {};
    oj_status status;
    if (oj_relation_is_nearest(relation) && relation->k > OJ_GPU_LIVE_MOST_K)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "a kept index on a GPU finds at most %d nearest",
                       OJ_GPU_LIVE_MOST_K);
    pthread_mutex_lock(&live->lock);
    status = join_rows(live, relation, rows, max_pairs, &pairs, err);
    pthread_mutex_unlock(&live->lock);
    if (status == OJ_OK)
    {
        *out = pairs;
        return OJ_OK;
    }
    oj_free(pairs.offset);
    oj_free(pairs.id);
    oj_free(pairs.distance);
    return status;
}

/* --- points and counts ---------------------------------------------------- */

static oj_status copy_points_out(const struct oj_cuda_live_part *part,
                                 int64_t *id, double *x, double *y,
                                 struct oj_error *err)
{
    struct oj_cuda_device *device = (struct oj_cuda_device *)&part->device;
    int64_t n = part->n_points, bytes = n * (int64_t)sizeof(double);
    int64_t *d_id;
    double *d_x, *d_y;
    if (n == 0)
        return OJ_OK;
    OJ_TRY(use_part(part, err));
    struct oj_cuda_work work(device, device->stream, "reading a kept index",
                             err);
    OJ_TRY(work.make(n, &d_id));
    OJ_TRY(work.make(n, &d_x, &d_y));
    OJ_TRY(oj_cuda_live_points_of(part, &work, d_id, d_x, d_y));
    OJ_TRY(oj_cuda_copy_out(device, work.stream, id, d_id, bytes, err));
    OJ_TRY(oj_cuda_copy_out(device, work.stream, x, d_x, bytes, err));
    return oj_cuda_copy_out(device, work.stream, y, d_y, bytes, err);
}

static oj_status read_points(const struct oj_gpu_live *live, int64_t *id,
                             double *x, double *y, struct oj_error *err)
{
    return oj_cuda_threads_try_all(
        live->n_parts,
        [=](int i, struct oj_error *why)
        {
            int64_t first = 0;
            for (int k = 0; k < i; k++)
                first += live->part[k].n_points;
            return copy_points_out(&live->part[i], id + first, x + first,
                                   y + first, why);
        },
        err);
}

static int64_t count_points(const struct oj_gpu_live *live)
{
    int64_t n = 0;
    for (int i = 0; i < live->n_parts; i++)
        n += live->part[i].n_points;
    return n;
}

oj_status oj_cuda_live_points(struct oj_gpu_live *live, int64_t *n,
                              int64_t **out_id, double **out_x, double **out_y,
                              struct oj_error *err)
{
    int64_t n_points, *id;
    double *x, *y;
    oj_status status = OJ_OK;
    pthread_mutex_lock(&live->lock);
    n_points = count_points(live);
    id = (int64_t *)oj_malloc(n_points, sizeof *id);
    x = (double *)oj_malloc(n_points, sizeof *x);
    y = (double *)oj_malloc(n_points, sizeof *y);
    if (id == NULL || x == NULL || y == NULL)
        status = oj_fail_nomem(err, n_points, 3 * sizeof *id);
    if (status == OJ_OK)
        status = read_points(live, id, x, y, err);
    pthread_mutex_unlock(&live->lock);
    if (status != OJ_OK)
    {
        oj_free(id);
        oj_free(x);
        oj_free(y);
        return status;
    }
    *n = n_points;
    *out_id = id;
    *out_x = x;
    *out_y = y;
    return OJ_OK;
}

struct oj_gpu_live_counts oj_cuda_live_count(struct oj_gpu_live *live)
{
    struct oj_gpu_live_counts counts;
    pthread_mutex_lock(&live->lock);
    counts = live->counts;
    counts.n = count_points(live);
    for (int i = 0; i < live->n_parts; i++)
    {
        counts.n_pages += live->part[i].pages.n;
        counts.n_bytes += oj_cuda_memory_bytes(&live->part[i].page_memory) +
                          oj_cuda_memory_bytes(&live->part[i].id_memory);
    }
    pthread_mutex_unlock(&live->lock);
    return counts;
}
