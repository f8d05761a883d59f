#include "gpu_resident.h"

#include "../../cuda/foundations/index/cuda_index.h"
#include "../../cuda/foundations/index/cuda_pair_listing.cuh"
#include "../../cuda/foundations/index/cuda_pair_sums.h"
#include "../../cuda/foundations/index/cuda_resident_points.h"
#include "../../cuda/live/cuda_live.cuh"
#include "../../flatten/base/oj_alloc.h"

/* Measures time on a device between two points of a stream. */
struct stopwatch
{
    cudaEvent_t begin = NULL, end = NULL;

    ~stopwatch()
    {
        if (begin != NULL)
            (void)cudaEventDestroy(begin);
        if (end != NULL)
            (void)cudaEventDestroy(end);
    }

    OJ_MUST_USE oj_status start(cudaStream_t stream, struct oj_error *err)
    {
        if (begin == NULL)
            OJ_CUDA_TRY(cudaEventCreate(&begin), "taking the time", err);
        if (end == NULL)
            OJ_CUDA_TRY(cudaEventCreate(&end), "taking the time", err);
        OJ_CUDA_TRY(cudaEventRecord(begin, stream), "taking the time", err);
        return OJ_OK;
    }

    /** Adds the time since start() to *seconds; waits for the stream. */
    OJ_MUST_USE oj_status stop(cudaStream_t stream, double *seconds,
                               struct oj_error *err)
    {
        float milliseconds = 0.0f;
        OJ_CUDA_TRY(cudaEventRecord(end, stream), "taking the time", err);
        OJ_CUDA_TRY(cudaEventSynchronize(end), "working", err);
        OJ_CUDA_TRY(cudaEventElapsedTime(&milliseconds, begin, end),
                    "taking the time", err);
        *seconds += 1e-3 * (double)milliseconds;
        return OJ_OK;
    }
};

static oj_status use_first(struct oj_gpu_index *index, struct oj_error *err)
{
    OJ_CUDA_TRY(cudaSetDevice(index->place[0].device.ordinal),
                "choosing a device", err);
    return OJ_OK;
}

static oj_status allocate(struct oj_gpu_index *index, int64_t bytes, void **out,
                          struct oj_error *err)
{
    OJ_TRY(use_first(index, err));
    OJ_CUDA_TRY(cudaMalloc(out, (size_t)bytes), "taking memory of the device",
                err);
    return OJ_OK;
}

static void release(struct oj_gpu_index *index, void *memory)
{
    (void)cudaSetDevice(index->place[0].device.ordinal);
    (void)cudaFree(memory);
    (void)cudaGetLastError();
}

static oj_status copy(struct oj_gpu_index *index, void *to, const void *from,
                      int64_t bytes, struct oj_error *err)
{
    OJ_TRY(use_first(index, err));
    OJ_CUDA_TRY(cudaMemcpy(to, from, (size_t)bytes, cudaMemcpyDefault),
                "copying", err);
    OJ_CUDA_TRY(cudaDeviceSynchronize(), "copying", err);
    return OJ_OK;
}

/* Prepares the join side again. Until this succeeds, the index has no family
 * and answers nothing. *seconds is the time since the flat arrays were on the
 * device. */
static oj_status make_layer_again(struct oj_gpu_index *index, double *seconds,
                                  struct oj_error *err)
{
    struct oj_cuda_place *place = &index->place[0];
    struct stopwatch watch;
    oj_status status = watch.start(place->device.stream, err);
    oj_cuda_memory_free_all(&place->device, place->device.stream,
                            &place->memory);
    place->device.uploaded = watch.begin;
    if (status == OJ_OK)
        status = oj_cuda_index_upload_join_layer(index, place, err);
    place->device.uploaded = NULL;
    if (status == OJ_OK)
        status = watch.stop(place->device.stream, seconds, err);
    if (status == OJ_OK)
        return OJ_OK;
    index->refused = ~0u;
    if (index->why_refused.status == OJ_OK)
        index->why_refused = *err;
    return status;
}

static oj_status rebuild(struct oj_gpu_index *index, double seconds[2],
                         struct oj_error *err)
{
    struct oj_cuda_place *place = &index->place[0];
    struct stopwatch watch;
    const struct oj_cuda_index *of;
    int number = oj_cuda_index_chosen_family(index, NULL);
    OJ_TRY(oj_cuda_resident_choose_index(index, &of, err));
    OJ_TRY(use_first(index, err));
    for (int i = 0; i < OJ_CUDA_MOST_FAMILIES; i++)
    {
        if (i != number && place->of[i] != NULL)
            return oj_fail(err, OJ_ERR_UNSUPPORTED,
                           "the index holds more than one family's");
    }
    oj_cuda_family_free(place->of[number]);
    place->of[number] = NULL;
    seconds[0] = seconds[1] = 0.0;
    place->device.peers = NULL; /* the other devices build no index now */
    OJ_TRY(make_layer_again(index, &seconds[0], err));
    OJ_CUDA_TRY(cudaDeviceSynchronize(), "waiting", err);
    OJ_TRY(watch.start(place->device.stream, err));
    OJ_TRY(oj_cuda_family_build_index(oj_cuda_family_at(number), &place->device,
                                      &place->layer, &index->relation,
                                      &place->of[number], err));
    return watch.stop(place->device.stream, &seconds[1], err);
}

/* Measures ask(of, &work, &points) for points on the device. `of` is the index
 * of the kernel family. Waits until the device has finished, even after an
 * error. */
template <typename Ask>
static oj_status measure(struct oj_gpu_index *index,
                         const struct oj_gpu_points *points, double *seconds,
                         struct oj_error *err, Ask ask)
{
    struct oj_cuda_device *device = &index->place[0].device;
    struct oj_cuda_work work(device, device->stream, "joining", err);
    struct stopwatch watch;
    struct oj_cuda_points here;
    const struct oj_cuda_index *of;
    double unwanted = 0.0;
    oj_status status;
    OJ_TRY(oj_cuda_resident_choose_index(index, &of, err));
    OJ_TRY(use_first(index, err));
    OJ_TRY(oj_cuda_resident_prepare_points(index, &work, points, &here));
    OJ_TRY(watch.start(work.stream, err));
    status = ask(of, &work, &here);
    if (status != OJ_OK)
    {
        (void)cudaStreamSynchronize(work.stream);
        return status;
    }
    if (seconds != NULL)
        *seconds = 0.0;
    return watch.stop(work.stream, seconds != NULL ? seconds : &unwanted, err);
}

static oj_status join(struct oj_gpu_index *index,
                      const struct oj_gpu_points *points, int32_t *d_row,
                      double *d_measure, double *seconds, struct oj_error *err)
{
    return measure(
        index, points, seconds, err,
        [=](const struct oj_cuda_index *of, struct oj_cuda_work *work,
            const struct oj_cuda_points *here)
        {
            return oj_cuda_resident_join_one_per_point(of, work, here, d_row,
                                                       d_measure);
        });
}

static oj_status pairs(struct oj_gpu_index *index,
                       const struct oj_gpu_points *points, int64_t *n_pairs,
                       double *seconds, struct oj_error *err)
{
    struct oj_cuda_device *device = &index->place[0].device;
    struct oj_cuda_pairs found = {};
    oj_status status = measure(
        index, points, seconds, err,
        [&](const struct oj_cuda_index *of, struct oj_cuda_work *work,
            const struct oj_cuda_points *here)
        {
            if (of->family->list == NULL)
                return oj_fail(err, OJ_ERR_UNSUPPORTED,
                               "this join gives no lists");
            return oj_cuda_list_pairs(of, work->stream, here, 0, &found, err);
        });
    *n_pairs = found.n_pairs;
    oj_cuda_pairs_free(device, device->stream, &found);
    return status;
}

/* Sums into copies of the words, as a batch does, and frees the copies. Plain
 * counts are added in place. */
static oj_status sum(struct oj_gpu_index *index,
                     const struct oj_gpu_points *points,
                     const struct oj_sum_request *request, int64_t *d_words,
                     double *seconds, struct oj_error *err)
{
    unsigned long long *to = (unsigned long long *)(void *)d_words;
    int64_t n_features = index->join_side->n_features;
    return measure(
        index, points, seconds, err,
        [=](const struct oj_cuda_index *of, struct oj_cuda_work *work,
            const struct oj_cuda_points *here)
        {
            struct oj_cuda_tally tally = {*request, 1, n_features, to};
            if (of->family->add == NULL)
                return oj_fail(err, OJ_ERR_UNSUPPORTED,
                               "pairs of this join are not %s by join feature",
                               request->n_words > 1 ? "summed" : "counted");
            if (request->n_words > 1)
                OJ_TRY(
                    oj_cuda_pair_sums_make(work, n_features, request, &tally));
            OJ_TRY(of->family->add(of, work, here, &tally));
            return request->n_words > 1
                       ? oj_cuda_pair_sums_add(work, &tally, 0, to)
                       : OJ_OK;
        });
}

static oj_status pin(const void *memory, int64_t bytes, struct oj_error *err)
{
    OJ_CUDA_TRY(cudaHostRegister((void *)memory, (size_t)bytes,
                                 cudaHostRegisterPortable),
                "pinning memory", err);
    return OJ_OK;
}

/* --- a kept index --------------------------------------------------------- */

/* Copies of arrays of the first device in the memory of other devices. */
struct copies
{
    int n = 0;
    void *at[5 * OJ_GPU_MAX_DEVICES];

    ~copies()
    {
        for (int i = 0; i < n; i++)
            (void)cudaFree(at[i]);
        (void)cudaGetLastError();
    }

    template <typename T>
    OJ_MUST_USE oj_status put(const struct oj_gpu_live *live, int part,
                              int64_t count, const T *from, const T **to,
                              struct oj_error *err)
    {
        *to = from;
        if (part == 0 || from == NULL || count == 0)
            return OJ_OK;
        OJ_TRY(oj_cuda_live_make_device_current(&live->part[part], err));
        OJ_CUDA_TRY(cudaMalloc(&at[n], (size_t)count * sizeof(T)),
                    "taking memory of the device", err);
        *to = (const T *)at[n];
        OJ_CUDA_TRY(cudaMemcpy(at[n++], from, (size_t)count * sizeof(T),
                               cudaMemcpyDefault),
                    "copying", err);
        /* copies between devices may still be running */
        OJ_CUDA_TRY(cudaDeviceSynchronize(), "copying", err);
        return OJ_OK;
    }
};

static oj_status apply_copies(struct oj_gpu_live *live,
                              const struct oj_cuda_live_given *given,
                              struct oj_cuda_live_changes *here,
                              const struct oj_cuda_live_changes *first,
                              double *x, double *y, double *seconds,
                              struct oj_error *err)
{
    struct copies copies;
    int64_t n = given->n;
    size_t bytes = (size_t)n * sizeof *x;
    OJ_CUDA_TRY(cudaMemcpy(x, first->x, bytes, cudaMemcpyDefault), "copying",
                err);
    OJ_CUDA_TRY(cudaMemcpy(y, first->y, bytes, cudaMemcpyDefault), "copying",
                err);
    for (int i = 0; i < live->n_parts; i++)
    {
        here[i].n = n;
        OJ_TRY(copies.put(live, i, n, first->id, &here[i].id, err));
        OJ_TRY(copies.put(live, i, n, first->x, &here[i].x, err));
        OJ_TRY(copies.put(live, i, n, first->y, &here[i].y, err));
    }
    *seconds = -oj_clock_seconds();
    OJ_TRY(oj_cuda_live_apply_changes(live, given, err));
    *seconds += oj_clock_seconds();
    return OJ_OK;
}

/* Applies a batch, which is in memory of the first device, to an index on
 * several devices. *seconds are wall-clock seconds. */
static oj_status apply_on_several(struct oj_gpu_live *live, int64_t n,
                                  const int64_t *id, const double *x,
                                  const double *y, double *seconds,
                                  struct oj_error *err)
{
    struct oj_cuda_live_changes here[OJ_GPU_MAX_DEVICES] = {}, first = {};
    double *host_x = (double *)oj_malloc(n, sizeof *x);
    double *host_y = (double *)oj_malloc(n, sizeof *y);
    const struct oj_cuda_live_given given = {n, NULL, host_x, host_y, here};
    oj_status status;
    first.id = id;
    first.x = x;
    first.y = y;
    if (host_x == NULL || host_y == NULL)
        status = oj_fail_nomem(err, n, 2 * sizeof *x);
    else
        status = apply_copies(live, &given, here, &first, host_x, host_y,
                              seconds, err);
    oj_free(host_x);
    oj_free(host_y);
    return status;
}

static oj_status live_apply(struct oj_gpu_live *live, int64_t n,
                            const int64_t *id, const double *x, const double *y,
                            double *seconds, struct oj_error *err)
{
    struct oj_cuda_live_part *part = &live->part[0];
    struct oj_cuda_live_plan plan = {};
    struct oj_cuda_live_region place = {0, live->regions};
    struct stopwatch watch;
    oj_status status;
    OJ_TRY(oj_cuda_live_make_device_current(part, err));
    if (live->n_parts > 1)
        return apply_on_several(live, n, id, x, y, seconds, err);
    struct oj_cuda_work work(&part->device, part->device.stream,
                             "changing a kept index", err);
    *seconds = 0.0;
    OJ_TRY(watch.start(work.stream, err));
    status = oj_cuda_live_begin_changes(part, &work, &place, n, &plan);
    if (status == OJ_OK)
        status = oj_cuda_live_prepare_changes(part, &work, id, x, y, &plan);
    if (status == OJ_OK)
        status = oj_cuda_live_commit_changes(part, &work, &plan);
    oj_cuda_live_abandon_changes(part, &work, &plan);
    return status == OJ_OK ? watch.stop(work.stream, seconds, err) : status;
}

static oj_status join_on_several(struct oj_gpu_live *live,
                                 const struct oj_relation *relation,
                                 const struct oj_cuda_live_rows *rows,
                                 struct oj_cuda_live_part_join *join,
                                 double *seconds, struct oj_error *err)
{
    struct copies copies;
    for (int i = 0; i < live->n_parts; i++)
    {
        struct oj_cuda_live_rows *to = &join[i].rows;
        to->n = rows->n;
        OJ_TRY(oj_cuda_live_begin_join(live, i, &join[i], err));
        OJ_TRY(copies.put(live, i, rows->n, rows->x, &to->x, err));
        OJ_TRY(copies.put(live, i, rows->n, rows->y, &to->y, err));
        OJ_TRY(copies.put(live, i, rows->n, rows->box, &to->box, err));
        OJ_TRY(copies.put(live, i, rows->n, rows->fid, &to->fid, err));
        OJ_TRY(copies.put(live, i, rows->n, rows->max_distance,
                          &to->max_distance, err));
    }
    *seconds = -oj_clock_seconds();
    OJ_TRY(oj_cuda_live_answer_rows(live, relation, join, err));
    *seconds += oj_clock_seconds();
    return OJ_OK;
}

static oj_status live_join(struct oj_gpu_live *live,
                           const struct oj_relation *relation,
                           const struct oj_gpu_live_rows *rows,
                           int64_t *n_pairs, double *seconds,
                           struct oj_error *err)
{
    const struct oj_cuda_live_rows here = {
        rows->n, rows->x, rows->y, rows->box, rows->fid, rows->max_distance};
    struct oj_cuda_live_part *part = &live->part[0];
    struct oj_cuda_live_found found;
    struct stopwatch watch;
    OJ_TRY(oj_cuda_live_make_device_current(part, err));
    if (live->n_parts > 1)
    {
        struct oj_cuda_live_part_join *join =
            (struct oj_cuda_live_part_join *)oj_calloc(live->n_parts,
                                                       sizeof *join);
        oj_status status;
        *n_pairs = 0;
        if (join == NULL)
            return oj_fail_nomem(err, live->n_parts, sizeof *join);
        status = join_on_several(live, relation, &here, join, seconds, err);
        for (int i = 0; i < live->n_parts; i++)
        {
            for (int k = 0; k < join[i].n_answers; k++)
                *n_pairs += join[i].answer[k].found.n;
        }
        oj_cuda_live_end_join(live, join);
        oj_free(join);
        return status;
    }
    struct oj_cuda_work work(&part->device, part->device.stream,
                             "joining with a kept index", err);
    *seconds = 0.0;
    OJ_TRY(watch.start(work.stream, err));
    OJ_TRY(oj_cuda_live_find_pairs(part, &work, relation, &here, &found));
    *n_pairs = found.n;
    return watch.stop(work.stream, seconds, err);
}

extern "C" OJ_EXPORT const struct gpu_resident oj_gpu_resident = {
    allocate, release, copy, rebuild,    join,
    pairs,    sum,     pin,  live_apply, live_join,
};
