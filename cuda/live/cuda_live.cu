/* The functions of the module for a kept index: its devices, batches, which
 * device has which points, and counts of changes. */
#include "cuda_live.cuh"

#include "../../flatten/base/oj_alloc.h"
#include "../foundations/index/cuda_index.h"

#include <new>
#include <string.h>

/* The regions of devices are chosen anew if one device has more than
 * MOST_TIMES_PART times the mean number of points per device, plus FEW_POINTS.
 */
#define MOST_TIMES_PART 1.5
#define FEW_POINTS 512

/* --- devices -------------------------------------------------------------- */

oj_status oj_cuda_live_make_device_current(const struct oj_cuda_live_part *part,
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
    oj_cuda_memory_free_all(device, device->stream, &part->page_memory);
    oj_cuda_memory_free_all(device, device->stream, &part->id_memory);
    oj_cuda_close(device);
}

void oj_cuda_live_free(struct oj_gpu_live *live)
{
    if (live == NULL)
        return;
    oj_cuda_threads_run_one_on_module(
        [=]()
        {
            oj_cuda_stage_release(&live->stage);
            for (int i = 0; i < live->n_parts; i++)
                free_part(&live->part[i]);
        });
    oj_cuda_peer_barrier_destroy(&live->peers);
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
    oj_cuda_peer_barrier_init(&live->peers);
    live->n_parts = oj_cuda_index_list_devices(options->gpus, ordinal);
    status = oj_cuda_threads_try_on_module(
        live->n_parts,
        [&](int i, struct oj_error *why)
        {
            struct oj_cuda_device *device = &live->part[i].device;
            OJ_TRY(oj_cuda_open(ordinal[i], options->gpu_memory, NULL, device,
                                why));
            device->n_threads = options->n_threads;
            if (live->n_parts > 1)
            {
                device->peers = &live->peers;
                device->number = i;
                oj_cuda_peers_allow_reading(device, ordinal, live->n_parts);
            }
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

/* A batch on the part of one device, from its preparation to its commit. */
struct part_batch
{
    int has_work;
    alignas(struct oj_cuda_work) char work[sizeof(struct oj_cuda_work)];
    struct oj_error err; /* of the work */
    struct oj_cuda_live_region place;
    struct oj_cuda_live_plan plan;
    /* Set in the batch of part 0 if there are several parts: number of ids
     * whose last change is a removal, and how many of those removals have
     * coordinates that no join takes. */
    int64_t n_removals, n_beyond;
};

static struct oj_cuda_work *work_of_part_batch(struct part_batch *batch)
{
    return (struct oj_cuda_work *)(void *)batch->work;
}

static oj_status prepare_changes_of_part(struct oj_gpu_live *live, int number,
                                         const struct oj_cuda_live_given *from,
                                         struct oj_cuda_staging *staging,
                                         struct part_batch *batch,
                                         struct oj_error *err)
{
    struct oj_cuda_live_part *part = &live->part[number];
    struct oj_cuda_live_changes c = {from->n, NULL, NULL, NULL};
    struct oj_cuda_work *work;
    OJ_TRY(oj_cuda_live_make_device_current(part, err));
    work = new (batch->work) oj_cuda_work(&part->device, part->device.stream,
                                          "changing a kept index", &batch->err);
    batch->has_work = 1;
    batch->place = {number, live->regions};
    OJ_TRY(oj_cuda_live_begin_changes(part, work, &batch->place, c.n,
                                      &batch->plan));
    if (from->here != NULL)
        c = from->here[number];
    else
    {
        OJ_TRY(oj_cuda_live_upload_array(work, staging, from->id, c.n, &c.id));
        OJ_TRY(oj_cuda_live_upload_array(work, staging, from->x, c.n, &c.x));
        OJ_TRY(oj_cuda_live_upload_array(work, staging, from->y, c.n, &c.y));
    }
    OJ_TRY(
        oj_cuda_live_prepare_changes(part, work, c.id, c.x, c.y, &batch->plan));
    if (number == 0 && live->n_parts > 1 &&
        batch->plan.count.n[OJ_LIVE_ANY_REMOVAL] > 0)
        return oj_cuda_live_count_removals(work, &c, &batch->n_removals,
                                           &batch->n_beyond);
    return OJ_OK;
}

/* If is_made, makes the prepared changes of a part; otherwise discards them.
 * Frees the work. Does nothing if the batch has no work. */
static oj_status commit_or_discard_part(struct oj_cuda_live_part *part,
                                        struct part_batch *batch, int is_made,
                                        struct oj_error *err)
{
    struct oj_cuda_work *work = work_of_part_batch(batch);
    oj_status status;
    if (!batch->has_work)
        return OJ_OK;
    status = oj_cuda_live_make_device_current(part, &batch->err);
    if (status == OJ_OK && is_made)
        status = oj_cuda_live_commit_changes(part, work, &batch->plan);
    oj_cuda_live_abandon_changes(part, work, &batch->plan);
    if (status == OJ_OK)
        status = work->wait();
    else /* copies from the caller's arrays may still be running */
        (void)cudaStreamSynchronize(work->stream);
    work->~oj_cuda_work();
    return status == OJ_OK ? OJ_OK
                           : oj_fail(err, status, "%s", batch->err.message);
}

static int64_t count_changes_of_kind(const struct oj_cuda_live_histogram *count,
                                     int kind)
{
    return (int64_t)count->n[kind] + count->n[kind + OJ_LIVE_OUTSIDE];
}

static int64_t
count_changes_of_kind_or_beyond(const struct oj_cuda_live_histogram *count,
                                int kind)
{
    return (int64_t)count->n[kind] + count->n[kind + 1];
}

/* Adds what n changes have done to live->counts. With several parts, a point
 * that goes from one part to another is removed in the first and put in the
 * second; it counts as moved. */
static void add_counts(struct oj_gpu_live *live, int64_t n,
                       const struct part_batch *batch)
{
    struct oj_gpu_live_counts *to = &live->counts;
    const struct oj_cuda_live_histogram *first = &batch[0].plan.count;
    int64_t n_placed = 0, n_removed = 0, n_removals = batch[0].n_removals;
    int64_t n_beyond = batch[0].n_beyond;
    int is_anew = 0;
    for (int i = 0; i < live->n_parts; i++)
    {
        const struct oj_cuda_live_histogram *c = &batch[i].plan.count;
        int64_t n_put = count_changes_of_kind(c, OJ_LIVE_PUT);
        int64_t n_here = count_changes_of_kind(c, OJ_LIVE_STAYS) +
                         count_changes_of_kind(c, OJ_LIVE_MOVES);
        int64_t n_left = c->n[OJ_LIVE_LEAVES];
        to->n_put += n_put - n_left;
        to->n_moved += n_here + n_left;
        n_placed += n_put + n_here;
        n_removed += count_changes_of_kind_or_beyond(c, OJ_LIVE_REMOVED);
        is_anew |= batch[i].plan.is_anew;
    }
    if (live->n_parts == 1)
    {
        n_removals =
            n_removed + count_changes_of_kind_or_beyond(first, OJ_LIVE_UNKNOWN);
        n_beyond = (int64_t)first->n[OJ_LIVE_UNKNOWN_BEYOND] +
                   first->n[OJ_LIVE_REMOVED_BEYOND];
    }
    to->n_removed += n_removed;
    to->n_unknown += n_removals - n_removed;
    to->n_unjoinable += n_beyond;
    to->n_superseded += n - n_placed - n_removals;
    to->n_rebuilt += is_anew;
}

/* Prepares the changes of a part, and makes them once all parts are prepared.
 * If a part fails, no part makes its changes. */
static oj_status apply_to_part(struct oj_gpu_live *live, int number,
                               const struct oj_cuda_live_given *from,
                               struct oj_cuda_staging *staging,
                               struct part_batch *batch, struct oj_error *err)
{
    struct oj_error unwanted;
    oj_status status =
        prepare_changes_of_part(live, number, from, staging, batch, err);
    oj_status finished;
    if (status != OJ_OK && batch->has_work)
        status = oj_fail(err, status, "%s", batch->err.message);
    if (status == OJ_OK)
        status = oj_cuda_peer_barrier_wait_for_all(&live->peers, err);
    finished =
        commit_or_discard_part(&live->part[number], batch, status == OJ_OK,
                               status == OJ_OK ? err : &unwanted);
    return status == OJ_OK ? finished : status;
}

static oj_status apply_to_parts(struct oj_gpu_live *live,
                                const struct oj_cuda_live_given *from,
                                struct part_batch *batch, struct oj_error *err)
{
    struct oj_cuda_staging arrays = {};
    int64_t bytes = from->n * (int64_t)sizeof(double);
    if (from->here == NULL)
    {
        oj_cuda_copy_stage_add(&arrays, from->id, bytes);
        oj_cuda_copy_stage_add(&arrays, from->x, bytes);
        oj_cuda_copy_stage_add(&arrays, from->y, bytes);
    }
    return oj_cuda_live_run_while_staging(
        live, &arrays,
        [&](int i, struct oj_cuda_staging *staging, struct oj_error *why)
        { return apply_to_part(live, i, from, staging, &batch[i], why); },
        err);
}

static int64_t count_points(const struct oj_gpu_live *live)
{
    int64_t n = 0;
    for (int i = 0; i < live->n_parts; i++)
        n += live->part[i].n_points;
    return n;
}

static oj_status apply_batch(struct oj_gpu_live *live,
                             const struct oj_cuda_live_given *from, int counts,
                             struct oj_error *err)
{
    struct part_batch *batch =
        (struct part_batch *)oj_calloc(live->n_parts, sizeof *batch);
    oj_status status;
    if (batch == NULL)
        return oj_fail_nomem(err, live->n_parts, sizeof *batch);
    status = apply_to_parts(live, from, batch, err);
    if (status == OJ_OK && counts)
        add_counts(live, from->n, batch);
    oj_free(batch);
    return status;
}

/* --- all points ----------------------------------------------------------- */

static oj_status copy_points_to_host(const struct oj_cuda_live_part *part,
                                     int64_t *id, double *x, double *y,
                                     struct oj_error *err)
{
    struct oj_cuda_device *device = (struct oj_cuda_device *)&part->device;
    int64_t n = part->n_points, bytes = n * (int64_t)sizeof(double);
    int64_t *d_id;
    double *d_x, *d_y;
    if (n == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_live_make_device_current(part, err));
    struct oj_cuda_work work(device, device->stream, "reading a kept index",
                             err);
    OJ_TRY(work.make(n, &d_id));
    OJ_TRY(work.make(n, &d_x, &d_y));
    OJ_TRY(oj_cuda_live_copy_points_of_part(part, &work, d_id, d_x, d_y));
    OJ_TRY(oj_cuda_copy_out(device, work.stream, id, d_id, bytes, err));
    OJ_TRY(oj_cuda_copy_out(device, work.stream, x, d_x, bytes, err));
    return oj_cuda_copy_out(device, work.stream, y, d_y, bytes, err);
}

static oj_status read_points(const struct oj_gpu_live *live, int64_t *id,
                             double *x, double *y, struct oj_error *err)
{
    return oj_cuda_threads_try_on_module(
        live->n_parts,
        [=](int i, struct oj_error *why)
        {
            int64_t first = 0;
            for (int k = 0; k < i; k++)
                first += live->part[k].n_points;
            return copy_points_to_host(&live->part[i], id + first, x + first,
                                       y + first, why);
        },
        err);
}

/* Sets *out_id, *out_x and *out_y [*n] to new arrays of all points, which the
 * caller frees. */
static oj_status read_all_points(struct oj_gpu_live *live, int64_t *n,
                                 int64_t **out_id, double **out_x,
                                 double **out_y, struct oj_error *err)
{
    int64_t n_points = count_points(live);
    int64_t *id = (int64_t *)oj_malloc(n_points, sizeof *id);
    double *x = (double *)oj_malloc(n_points, sizeof *x);
    double *y = (double *)oj_malloc(n_points, sizeof *y);
    oj_status status = OJ_OK;
    if (id == NULL || x == NULL || y == NULL)
        status = oj_fail_nomem(err, n_points, 3 * sizeof *id);
    if (status == OJ_OK)
        status = read_points(live, id, x, y, err);
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

/* --- regions -------------------------------------------------------------- */

/* Chooses the regions by the points of a batch if the index is empty and has
 * several parts. */
static oj_status choose_first_regions(struct oj_gpu_live *live,
                                      const struct oj_cuda_live_given *from,
                                      struct oj_error *err)
{
    if (live->n_parts == 1 || count_points(live) > 0)
        return OJ_OK;
    live->n_changes = 0;
    return oj_cuda_live_choose_regions(live->n_parts, from->n, from->x, from->y,
                                       &live->regions, err);
}

static int is_balanced(const struct oj_gpu_live *live)
{
    int64_t n = count_points(live), most = 0;
    for (int i = 0; i < live->n_parts; i++)
        most = live->part[i].n_points > most ? live->part[i].n_points : most;
    return (double)(most - FEW_POINTS) * live->n_parts <=
               MOST_TIMES_PART * (double)n ||
           n > INT32_MAX;
}

/* Chooses the regions anew if one device has too many of the points, but only
 * after at least half as many changes as there are points. A batch that puts
 * each point where it already is then brings the points to their devices. If
 * that fails, the old regions stay. */
static void balance_regions(struct oj_gpu_live *live)
{
    const struct oj_cuda_live_regions before = live->regions;
    struct oj_cuda_live_given all = {};
    struct oj_error unwanted;
    int64_t *id = NULL;
    double *x = NULL, *y = NULL;
    oj_status status;
    if (live->n_parts == 1 || live->n_changes < count_points(live) / 2 ||
        is_balanced(live))
        return;
    live->n_changes = 0;
    status = read_all_points(live, &all.n, &id, &x, &y, &unwanted);
    all.id = id;
    all.x = x;
    all.y = y;
    if (status == OJ_OK)
        status = oj_cuda_live_choose_regions(live->n_parts, all.n, x, y,
                                             &live->regions, &unwanted);
    if (status == OJ_OK)
        status = apply_batch(live, &all, 0, &unwanted);
    if (status != OJ_OK)
        live->regions = before;
    oj_free(id);
    oj_free(x);
    oj_free(y);
}

oj_status oj_cuda_live_apply_changes(struct oj_gpu_live *live,
                                     const struct oj_cuda_live_given *given,
                                     struct oj_error *err)
{
    oj_status status;
    if (given->n < 0 || given->n > INT32_MAX)
        return oj_fail(
            err, OJ_ERR_LIMIT,
            "a batch can have 0 to %d changes, not %lld: apply smaller batches",
            INT32_MAX, (long long)given->n);
    pthread_mutex_lock(&live->lock);
    status = choose_first_regions(live, given, err);
    if (status == OJ_OK)
        status = apply_batch(live, given, 1, err);
    if (status == OJ_OK)
    {
        live->n_changes += given->n;
        balance_regions(live);
    }
    pthread_mutex_unlock(&live->lock);
    return status;
}

oj_status oj_cuda_live_apply(struct oj_gpu_live *live, int64_t n,
                             const int64_t *id, const double *x,
                             const double *y, struct oj_error *err)
{
    const struct oj_cuda_live_given given = {n, id, x, y, NULL};
    return oj_cuda_live_apply_changes(live, &given, err);
}

/* --- points and counts ---------------------------------------------------- */

oj_status oj_cuda_live_points(struct oj_gpu_live *live, int64_t *n,
                              int64_t **id, double **x, double **y,
                              struct oj_error *err)
{
    oj_status status;
    pthread_mutex_lock(&live->lock);
    status = read_all_points(live, n, id, x, y, err);
    pthread_mutex_unlock(&live->lock);
    return status;
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
