#include "cuda_feature_sums.h"
#include "cuda_index.h"

/* Points, answers and counts that stay on the device: the index's first. */

static oj_status use_first(struct oj_gpu_index *index, struct oj_error *err)
{
    OJ_CUDA_TRY(cudaSetDevice(index->place[0].device.ordinal),
                "choosing a device", err);
    return OJ_OK;
}

/* Time between two points of the device's stream. */
struct stopwatch
{
    cudaEvent_t begin, end;
};

static void free_watch(struct stopwatch *watch)
{
    if (watch->begin != NULL)
        (void)cudaEventDestroy(watch->begin);
    if (watch->end != NULL)
        (void)cudaEventDestroy(watch->end);
}

static oj_status start_watch(struct stopwatch *watch, cudaStream_t stream,
                             struct oj_error *err)
{
    cudaError_t error;
    watch->begin = watch->end = NULL;
    error = cudaEventCreate(&watch->begin);
    if (error == cudaSuccess)
        error = cudaEventCreate(&watch->end);
    if (error == cudaSuccess)
        error = cudaEventRecord(watch->begin, stream);
    if (error == cudaSuccess)
        return OJ_OK;
    free_watch(watch);
    return oj_cuda_fail(err, error, "taking the time");
}

/* Waits for the stream. *seconds may be wanted or not. Ends the watch. */
static oj_status stop_watch(struct stopwatch *watch, cudaStream_t stream,
                            oj_status status, double *seconds,
                            struct oj_error *err)
{
    float milliseconds = 0.0f;
    cudaError_t error = cudaEventRecord(watch->end, stream);
    if (error == cudaSuccess)
        error = cudaEventSynchronize(watch->end);
    if (error == cudaSuccess)
        error = cudaEventElapsedTime(&milliseconds, watch->begin, watch->end);
    free_watch(watch);
    if (status != OJ_OK)
    {
        (void)cudaGetLastError();
        return status;
    }
    OJ_CUDA_TRY(error, "joining", err);
    if (seconds != NULL)
        *seconds = 1e-3 * (double)milliseconds;
    return OJ_OK;
}

oj_status oj_cuda_resident_allocate(struct oj_gpu_index *index, int64_t bytes,
                                    void **out, struct oj_error *err)
{
    OJ_TRY(use_first(index, err));
    OJ_CUDA_TRY(cudaMalloc(out, (size_t)bytes), "taking memory of the device",
                err);
    return OJ_OK;
}

void oj_cuda_resident_release(struct oj_gpu_index *index, void *memory)
{
    (void)cudaSetDevice(index->place[0].device.ordinal);
    (void)cudaFree(memory);
    (void)cudaGetLastError();
}

oj_status oj_cuda_resident_copy(struct oj_gpu_index *index, void *to,
                                const void *from, int64_t bytes,
                                struct oj_error *err)
{
    OJ_TRY(use_first(index, err));
    OJ_CUDA_TRY(cudaMemcpy(to, from, (size_t)bytes, cudaMemcpyDefault),
                "copying", err);
    OJ_CUDA_TRY(cudaDeviceSynchronize(), "copying", err);
    return OJ_OK;
}

/* The family that answers, whose index is ready. */
static oj_status find_family(struct oj_gpu_index *index, int *number,
                             const struct oj_cuda_family **out,
                             struct oj_error *err)
{
    const struct oj_cuda_family *family = oj_cuda_chosen(index, NULL, number);
    if (family == NULL || index->place[0].of[*number] == NULL)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the join side is not ready on the device");
    *out = family;
    return OJ_OK;
}

/* Of the columns that joins look at, only FIDs come from callers. */
static oj_status points_of(const struct oj_gpu_index *index,
                           const struct oj_gpu_points *points,
                           struct oj_cuda_points *out, struct oj_error *err)
{
    const struct oj_relation *relation = &index->relation;
    const struct oj_flat *join_side = index->join_side;
    struct oj_cuda_points here = {};
    int asks_fids = relation->exclude_self || relation->unordered_pairs != 0;
    if ((asks_fids && points->fid == NULL) || join_side->on_class != NULL ||
        join_side->exclude_class != NULL)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "this join asks for columns of the points");
    here.n = points->n;
    here.x = points->x;
    here.y = points->y;
    here.fid = points->fid;
    *out = here;
    return OJ_OK;
}

/* Without its layer an index has no answers: no family is asked any more. */
static oj_status make_layer_again(struct oj_gpu_index *index,
                                  struct oj_error *err)
{
    struct oj_cuda_place *place = &index->place[0];
    oj_status status;
    oj_cuda_layer_drop(&place->device, &place->layer);
    status = oj_cuda_layer_make(&place->device, index->join_side,
                                index->join_side->overlaps, index->tie_rank,
                                &place->layer, err);
    if (status == OJ_OK)
        status = oj_cuda_columns_make(&place->device, index->join_side,
                                      &index->relation, &place->layer, err);
    if (status == OJ_OK)
        return OJ_OK;
    index->refused = ~0u;
    if (index->why_refused.status == OJ_OK)
        index->why_refused = *err;
    return status;
}

oj_status oj_cuda_resident_rebuild(struct oj_gpu_index *index,
                                   double seconds[2], struct oj_error *err)
{
    struct oj_cuda_place *place = &index->place[0];
    struct stopwatch watch;
    int number = 0;
    const struct oj_cuda_family *family = NULL;
    double index_s = 0.0;
    oj_status status;
    OJ_TRY(find_family(index, &number, &family, err));
    OJ_TRY(use_first(index, err));
    for (int i = 0; i < OJ_CUDA_MOST_FAMILIES; i++)
    {
        if (i != number && place->of[i] != NULL)
            return oj_fail(err, OJ_ERR_UNSUPPORTED,
                           "the index holds more than one family's");
    }
    oj_cuda_family_free(family, place->of[number]);
    place->of[number] = NULL;
    OJ_TRY(make_layer_again(index, err));
    OJ_CUDA_TRY(cudaDeviceSynchronize(), "waiting", err);
    OJ_TRY(start_watch(&watch, place->device.stream, err));
    status = oj_cuda_family_index(family, &place->device, &place->layer,
                                  &index->relation, &place->of[number], err);
    OJ_TRY(stop_watch(&watch, place->device.stream, status, &index_s, err));
    seconds[0] = place->layer.make_s;
    seconds[1] = index_s;
    return OJ_OK;
}

/* A join of points on the device, ready to be timed. */
struct measurement
{
    struct oj_cuda_place *place;
    const struct oj_cuda_family *family;
    struct oj_cuda_index *of; /* the family's */
    struct oj_cuda_points points;
    cudaStream_t stream;
};

static oj_status prepare(struct oj_gpu_index *index,
                         const struct oj_gpu_points *points,
                         struct measurement *m, struct oj_error *err)
{
    int number = 0;
    OJ_TRY(find_family(index, &number, &m->family, err));
    m->place = &index->place[0];
    m->of = m->place->of[number];
    m->stream = m->place->device.stream;
    OJ_TRY(points_of(index, points, &m->points, err));
    return use_first(index, err);
}

oj_status oj_cuda_resident_join(struct oj_gpu_index *index,
                                const struct oj_gpu_points *points,
                                int32_t *d_row, double *d_measure,
                                double *seconds, struct oj_error *err)
{
    struct measurement m;
    struct stopwatch watch;
    oj_status status;
    OJ_TRY(prepare(index, points, &m, err));
    if (m.family->join_one == NULL)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "this join gives lists, not one answer for each point");
    OJ_TRY(start_watch(&watch, m.stream, err));
    status =
        m.family->join_one(m.of, m.stream, &m.points, d_row, d_measure, err);
    return stop_watch(&watch, m.stream, status, seconds, err);
}

oj_status oj_cuda_resident_pairs(struct oj_gpu_index *index,
                                 const struct oj_gpu_points *points,
                                 int64_t *n_pairs, double *seconds,
                                 struct oj_error *err)
{
    struct measurement m;
    struct oj_cuda_pairs found = {};
    struct stopwatch watch;
    oj_status status;
    OJ_TRY(prepare(index, points, &m, err));
    if (m.family->join_lists == NULL)
        return oj_fail(err, OJ_ERR_UNSUPPORTED, "this join gives no lists");
    OJ_TRY(start_watch(&watch, m.stream, err));
    status = m.family->join_lists(m.of, m.stream, &m.points, 0, &found, err);
    status = stop_watch(&watch, m.stream, status, seconds, err);
    *n_pairs = found.n_pairs;
    oj_cuda_pairs_drop(&m.place->device, m.stream, &found);
    return status;
}

oj_status oj_cuda_resident_count(struct oj_gpu_index *index,
                                 const struct oj_gpu_points *points,
                                 int64_t *d_count, double *seconds,
                                 struct oj_error *err)
{
    struct measurement m;
    struct stopwatch watch;
    oj_status status;
    OJ_TRY(prepare(index, points, &m, err));
    if (m.family->count == NULL)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "pairs of this join are not counted by join feature");
    OJ_TRY(start_watch(&watch, m.stream, err));
    status = m.family->count(m.of, m.stream, &m.points,
                             (unsigned long long *)d_count, err);
    return stop_watch(&watch, m.stream, status, seconds, err);
}

/* Copies of the words are made, folded and given back as for a batch. */
static oj_status sum_points(const struct measurement *m,
                            const struct oj_sum_request *request,
                            int64_t n_features, int64_t *d_words,
                            struct oj_error *err)
{
    struct oj_cuda_device *device = &m->place->device;
    struct oj_cuda_tally_words words = {};
    oj_status status;
    status = oj_cuda_tally_make(device, n_features, request, &words, err);
    if (status == OJ_OK)
        status =
            m->family->sum(m->of, m->stream, &m->points, &words.tally, err);
    if (status == OJ_OK)
        status = oj_cuda_tally_add(device, &words, d_words, err);
    oj_cuda_tally_drop(device, &words);
    return status;
}

oj_status oj_cuda_resident_sum(struct oj_gpu_index *index,
                               const struct oj_gpu_points *points,
                               const struct oj_sum_request *request,
                               int64_t *d_words, double *seconds,
                               struct oj_error *err)
{
    struct measurement m;
    struct stopwatch watch;
    oj_status status;
    OJ_TRY(prepare(index, points, &m, err));
    if (m.family->sum == NULL)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "pairs of this join are not summed by join feature");
    OJ_TRY(start_watch(&watch, m.stream, err));
    status =
        sum_points(&m, request, index->join_side->n_features, d_words, err);
    return stop_watch(&watch, m.stream, status, seconds, err);
}

oj_status oj_cuda_pin(const void *memory, int64_t bytes, struct oj_error *err)
{
    OJ_CUDA_TRY(cudaHostRegister((void *)memory, (size_t)bytes,
                                 cudaHostRegisterPortable),
                "pinning memory", err);
    return OJ_OK;
}

void oj_cuda_unpin(const void *memory)
{
    (void)cudaHostUnregister((void *)memory);
    (void)cudaGetLastError();
}
