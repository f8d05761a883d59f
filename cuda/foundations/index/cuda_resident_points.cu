/* Joins points that are already in device memory, on a stream of the caller.
 * Nothing is copied to the host; only the number of pairs of lists is read. */
#include "cuda_resident_points.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../device/cuda_stream_work.cuh"
#include "cuda_pair_listing.cuh"

/* Restores the caller's current device at the end of the scope. */
struct current_device
{
    int before = -1;

    OJ_MUST_USE oj_status make_device_current(int ordinal, struct oj_error *err)
    {
        OJ_CUDA_TRY(cudaGetDevice(&before), "querying the device", err);
        OJ_CUDA_TRY(cudaSetDevice(ordinal), "choosing a device", err);
        return OJ_OK;
    }
    ~current_device()
    {
        if (before >= 0)
            (void)cudaSetDevice(before);
        (void)cudaGetLastError();
    }
};

/* --- choice of the family ------------------------------------------------- */

/* Makes an index for points that are already in device memory. Families that
 * leave tied rows to another family are refused, because the lists of such rows
 * are assembled on the host. */
oj_status oj_cuda_index_make_resident(
    const struct oj_flat *join_side, const int32_t *tie_rank,
    const struct oj_relation *relation, const struct oj_options *options,
    struct oj_gpu_index **out, struct oj_stats *stats, struct oj_error *err)
{
    int lists = oj_relation_allows_many_pairs(relation);
    const struct oj_cuda_family *family;
    unsigned refused = OJ_CUDA_PAPERS;
    for (int i = 0; (family = oj_cuda_family_at(i)) != NULL; i++)
    {
        if (lists ? family->list == NULL : family->join_one == NULL)
            refused |= 1u << i;
    }
    return oj_cuda_index_make_without_families(
        refused, join_side, tie_rank, relation, options, out, stats, err);
}

oj_status oj_cuda_resident_choose_index(const struct oj_gpu_index *index,
                                        const struct oj_cuda_index **out,
                                        struct oj_error *err)
{
    int number = oj_cuda_index_chosen_family(index, NULL);
    if (number < 0 || index->place[0].of[number] == NULL)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the join side has no index on this GPU: pass the "
                       "points in host memory");
    *out = index->place[0].of[number];
    return OJ_OK;
}

oj_status oj_cuda_resident_prepare_points(const struct oj_gpu_index *index,
                                          struct oj_cuda_work *work,
                                          const struct oj_gpu_points *points,
                                          struct oj_cuda_points *out)
{
    const struct oj_relation *relation = &index->relation;
    const struct oj_flat *join_side = index->join_side;
    int asks_fids = relation->exclude_self || relation->unordered_pairs != 0;
    int64_t stride = points->stride;
    const double *from_x = points->x, *from_y = points->y;
    double *x, *y;
    if ((asks_fids && points->fid == NULL) || join_side->on_class != NULL ||
        join_side->exclude_class != NULL)
        return oj_fail(work->err, OJ_ERR_UNSUPPORTED,
                       "this join needs columns of the points, which points "
                       "in device memory do not have; pass the points in host "
                       "memory");
    *out = {};
    out->n = points->n;
    out->fid = points->fid;
    out->x = from_x;
    out->y = from_y;
    if (stride <= 1)
        return OJ_OK;
    OJ_TRY(work->make(points->n, &x, &y));
    out->x = x;
    out->y = y;
    return work->each(points->n,
                      [=] __device__(int64_t i)
                      {
                          x[i] = from_x[i * stride];
                          y[i] = from_y[i * stride];
                      });
}

oj_status oj_cuda_resident_join_one_per_point(
    const struct oj_cuda_index *of, struct oj_cuda_work *work,
    const struct oj_cuda_points *points, int32_t *d_row, double *d_measure)
{
    if (of->family->join_one == NULL ||
        oj_relation_allows_many_pairs(&of->relation))
        return oj_fail(
            work->err, OJ_ERR_UNSUPPORTED,
            "this join can give several pairs per point, and was asked for one "
            "answer per point: pass the points in host memory");
    return of->family->join_one(of, work, points, d_row, d_measure);
}

/* --- joins -----------------------------------------------------------------
 */

static oj_status list_pairs_on_device(const struct oj_gpu_index *index,
                                      const struct oj_cuda_index *of,
                                      struct oj_cuda_work *work,
                                      const struct oj_cuda_points *points,
                                      struct oj_gpu_pairs *out)
{
    struct oj_cuda_pairs found = {};
    OJ_TRY(oj_cuda_list_pairs(of, work->stream, points,
                              index->options.max_batch_pairs, &found,
                              work->err));
    out->n_pairs = found.n_pairs;
    out->offset = found.offset.data;
    out->row = found.row.data;
    out->measure = found.measure.data;
    return OJ_OK;
}

static oj_status join_one_each_on_device(const struct oj_cuda_index *of,
                                         struct oj_cuda_work *work,
                                         const struct oj_cuda_points *points,
                                         struct oj_gpu_pairs *out)
{
    struct oj_cuda_work own(work);
    struct oj_cuda_memory callers = {};
    OJ_TRY(own.make(points->n, &out->row));
    if (oj_relation_is_by_distance(&of->relation))
        OJ_TRY(own.make(points->n, &out->measure));
    if (points->n > 0)
        OJ_TRY(oj_cuda_resident_join_one_per_point(of, work, points, out->row,
                                                   out->measure));
    oj_cuda_move_ownership(&own.memory, NULL, &callers);
    out->n_pairs = points->n;
    return OJ_OK;
}

oj_status oj_cuda_index_join_resident(struct oj_gpu_index *index,
                                      const struct oj_gpu_points *points,
                                      void *stream, struct oj_gpu_pairs *out,
                                      struct oj_error *err)
{
    struct oj_cuda_device *device = &index->place[0].device;
    struct current_device current;
    const struct oj_cuda_index *of;
    struct oj_cuda_points here;
    struct oj_gpu_pairs pairs = {};
    OJ_TRY(current.make_device_current(device->ordinal, err));
    struct oj_cuda_work work(device, (cudaStream_t)stream, "joining", err);
    OJ_TRY(oj_cuda_resident_choose_index(index, &of, err));
    OJ_TRY(oj_cuda_resident_prepare_points(index, &work, points, &here));
    pairs.n_points = points->n;
    OJ_TRY(oj_relation_allows_many_pairs(&index->relation)
               ? list_pairs_on_device(index, of, &work, &here, &pairs)
               : join_one_each_on_device(of, &work, &here, &pairs));
    *out = pairs;
    return OJ_OK;
}

/* Waits for all streams, because each of them may still read the pairs. */
void oj_cuda_index_free_resident(struct oj_gpu_index *index,
                                 struct oj_gpu_pairs *pairs)
{
    struct oj_cuda_device *device = &index->place[0].device;
    struct oj_error unwanted;
    struct current_device current;
    if (current.make_device_current(device->ordinal, &unwanted) != OJ_OK)
        return;
    (void)cudaDeviceSynchronize();
    oj_cuda_free_bytes(device, device->stream, pairs->offset,
                       pairs->n_points + 1, sizeof *pairs->offset);
    oj_cuda_free_bytes(device, device->stream, pairs->row, pairs->n_pairs,
                       sizeof *pairs->row);
    oj_cuda_free_bytes(device, device->stream, pairs->measure, pairs->n_pairs,
                       sizeof *pairs->measure);
    *pairs = {};
}

/* --- the caller's memory and streams ---------------------------------------
 */

oj_status oj_cuda_resident_device_of_array(const void *memory, int *ordinal,
                                           struct oj_error *err)
{
    struct cudaPointerAttributes what = {};
    OJ_CUDA_TRY(cudaPointerGetAttributes(&what, memory), "querying a pointer",
                err);
    if (what.type != cudaMemoryTypeDevice && what.type != cudaMemoryTypeManaged)
        return oj_fail(err, OJ_ERR_ARG,
                       "the array is not in the memory of a CUDA device: copy "
                       "it there, or join points in host memory by a function "
                       "without _device");
    if (what.device < 0 || what.device >= OJ_GPU_MAX_DEVICES)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the array is on GPU %d, but only the GPUs 0 to %d can "
                       "be used: copy it to one of these",
                       what.device, OJ_GPU_MAX_DEVICES - 1);
    *ordinal = what.device;
    return OJ_OK;
}

oj_status oj_cuda_resident_make_stream_wait(int ordinal, void *first,
                                            void *then, struct oj_error *err)
{
    struct current_device current;
    cudaEvent_t event;
    cudaError_t error;
    OJ_TRY(current.make_device_current(ordinal, err));
    OJ_CUDA_TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                "ordering streams", err);
    error = cudaEventRecord(event, (cudaStream_t)first);
    if (error == cudaSuccess)
        error = cudaStreamWaitEvent((cudaStream_t)then, event, 0);
    (void)cudaEventDestroy(event); /* CUDA frees it when the event has
                                      occurred */
    OJ_CUDA_TRY(error, "ordering streams", err);
    return OJ_OK;
}
