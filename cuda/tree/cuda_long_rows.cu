#include "cuda_long_rows.h"

#include "../device/cuda_scratch.cuh"

#include <cub/device/device_segmented_sort.cuh>

#define BLOCK 256

/* What sorting needs; all of it is dropped at its end. */
struct long_rows_sorting
{
    struct oj_cuda_device *device;
    cudaStream_t stream;
    struct oj_cuda_candidates rows;
    struct oj_error *err;
    struct oj_cuda_array<int64_t> first, end; /* of rows that may be long */
    struct oj_cuda_array<unsigned> n_long;    /* [1] */
    struct oj_cuda_array<double> distance;
    struct oj_cuda_array<int32_t> rank;
    struct oj_cuda_array<uint8_t> scratch;
};

static __global__ void
list_long(const __grid_constant__ struct oj_cuda_candidates rows,
          unsigned *n_long, int64_t *first, int64_t *end)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, n;
    unsigned at;
    if (i >= rows.n_rows)
        return;
    n = rows.count != NULL ? rows.count[i] : rows.first[i + 1] - rows.first[i];
    if (n <= OJ_CUDA_SHORT_ROW)
        return;
    at = atomicAdd(n_long, 1u);
    first[at] = rows.first[i];
    end[at] = rows.first[i] + n;
}

/* How many rows are long. */
static oj_status find_long(struct long_rows_sorting *s, unsigned *n)
{
    int64_t most = s->rows.n / OJ_CUDA_SHORT_ROW;
    *n = 0;
    if (most == 0)
        return OJ_OK;
    OJ_TRY(
        oj_cuda_make(s->device, s->stream, most, &s->first, &s->end, s->err));
    OJ_TRY(oj_cuda_make(s->device, s->stream, 1, &s->n_long, s->err));
    OJ_TRY(oj_cuda_clear(s->stream, &s->n_long, "ordering pairs", s->err));
    list_long<<<oj_blocks(s->rows.n_rows, BLOCK), BLOCK, 0, s->stream>>>(
        s->rows, s->n_long.data, s->first.data, s->end.data);
    OJ_CUDA_TRY_LAUNCH("ordering pairs", s->err);
    return oj_cuda_read(s->stream, s->n_long.data, (int)sizeof *n, n,
                        "ordering pairs", s->err);
}

/* Sorts long rows by keys, with their values, to elsewhere. */
template <typename K, typename V>
static oj_status sort_rows(struct long_rows_sorting *s, unsigned n_long,
                           const K *keys, K *sorted_keys, const V *values,
                           V *sorted_values)
{
    const int64_t *first = s->first.data, *end = s->end.data;
    return oj_cuda_with_scratch(
        s->device, s->stream, &s->scratch,
        [&](void *memory, size_t &bytes)
        {
            return cub::DeviceSegmentedSort::StableSortPairs(
                memory, bytes, keys, sorted_keys, values, sorted_values,
                (int)s->rows.n, (int)n_long, first, end, s->stream);
        },
        "ordering pairs", s->err);
}

/* By the lesser key first, then by the greater one, which keeps that order. */
static oj_status sort_long(struct long_rows_sorting *s,
                           enum oj_tree_order order)
{
    double *distance = s->rows.distance;
    int32_t *rank = s->rows.rank;
    unsigned n_long;
    OJ_TRY(find_long(s, &n_long));
    if (n_long == 0)
        return OJ_OK;
    if (s->rows.n > INT32_MAX)
        return oj_fail(s->err, OJ_ERR_NOMEM,
                       "%lld pairs are too many to be sorted at once",
                       (long long)s->rows.n);
    OJ_TRY(oj_cuda_make(s->device, s->stream, s->rows.n, &s->distance, &s->rank,
                        s->err));
    if (order == OJ_TREE_BY_RANK)
    {
        OJ_TRY(sort_rows(s, n_long, (const double *)distance, s->distance.data,
                         (const int32_t *)rank, s->rank.data));
        return sort_rows(s, n_long, (const int32_t *)s->rank.data, rank,
                         (const double *)s->distance.data, distance);
    }
    OJ_TRY(sort_rows(s, n_long, (const int32_t *)rank, s->rank.data,
                     (const double *)distance, s->distance.data));
    return sort_rows(s, n_long, (const double *)s->distance.data, distance,
                     (const int32_t *)s->rank.data, rank);
}

oj_status oj_cuda_sort_long_rows(struct oj_cuda_device *device,
                                 cudaStream_t stream, enum oj_tree_order order,
                                 const struct oj_cuda_candidates *candidates,
                                 struct oj_error *err)
{
    struct long_rows_sorting s = {};
    oj_status status;
    s.device = device;
    s.stream = stream;
    s.rows = *candidates;
    s.err = err;
    status = sort_long(&s, order);
    oj_cuda_drop(device, stream, &s.first, &s.end, &s.n_long, &s.distance,
                 &s.rank, &s.scratch);
    return status;
}
