/* A block has the rows of its threads, takes as many of them at once as fit
 * into its memory, and puts every pair behind those of its row whose rank is
 * less: so many steps as a row has pairs, of all threads side by side.  Rows
 * that do not fit are sorted by the whole device. */
#include "cuda_row_order.h"

#include "../device/cuda_cub.cuh"
#include "../device/cuda_offsets.cuh"

#include <cub/device/device_segmented_sort.cuh>

enum
{
    BLOCK = 128,
    MOST_PAIRS = 1536 /* of the rows that a block has at once */
};

struct row_lists
{
    int64_t n;
    const int64_t *offset;
    const int32_t *ordinal_of; /* NULL: ranks are ordinals */
    int32_t *rank;
    double *measure; /* or NULL */
};

/* Rows that do not fit. */
struct long_rows
{
    unsigned *n;          /* [1] */
    int64_t *first, *end; /* of pairs */
};

static __device__ int32_t ordinal_at(const struct row_lists &rows, int32_t rank)
{
    return rows.ordinal_of != NULL ? rows.ordinal_of[rank] : rank;
}

static __global__ void __launch_bounds__(BLOCK)
    order_short(const __grid_constant__ struct row_lists rows,
                const __grid_constant__ struct long_rows too_long)
{
    __shared__ int64_t offset[BLOCK + 1];
    __shared__ int32_t rank[MOST_PAIRS];
    __shared__ double measure[MOST_PAIRS];
    int64_t first_row = (int64_t)blockIdx.x * BLOCK;
    int t = (int)threadIdx.x;
    int n_rows = rows.n - first_row < BLOCK ? (int)(rows.n - first_row) : BLOCK;
    int row = 0, n;
    if (t < n_rows)
        offset[t + 1] = rows.offset[first_row + t + 1];
    if (t == 0)
        offset[0] = rows.offset[first_row];
    __syncthreads();
    for (; row < n_rows; row += n)
    {
        int64_t base = offset[row];
        n = __syncthreads_count(row + t < n_rows &&
                                offset[row + t + 1] - base <= MOST_PAIRS);
        if (n == 0)
        {
            if (t == 0)
            {
                unsigned at = atomicAdd(too_long.n, 1u);
                too_long.first[at] = base;
                too_long.end[at] = offset[row + 1];
            }
            n = 1;
            continue;
        }
        int n_pairs = (int)(offset[row + n] - base);
        for (int i = t; i < n_pairs; i += BLOCK)
        {
            rank[i] = rows.rank[base + i];
            if (rows.measure != NULL)
                measure[i] = rows.measure[base + i];
        }
        __syncthreads();
        for (int i = t; i < n_pairs; i += BLOCK)
        {
            int own = oj_cuda_owner_of(offset, row, row + n, base + i);
            int first = (int)(offset[own] - base);
            int end = (int)(offset[own + 1] - base);
            int32_t r = rank[i];
            int64_t place = base + first;
            for (int j = first; j < end; j++)
                place += rank[j] < r;
            rows.rank[place] = ordinal_at(rows, r);
            if (rows.measure != NULL)
                rows.measure[place] = measure[i];
        }
        __syncthreads();
    }
}

/* A block for each long row, whose pairs are in order elsewhere. */
static __global__ void __launch_bounds__(BLOCK)
    put_long(const __grid_constant__ struct row_lists rows,
             const __grid_constant__ struct long_rows too_long,
             const int32_t *rank, const double *measure)
{
    int64_t end = too_long.end[blockIdx.x];
    for (int64_t i = too_long.first[blockIdx.x] + threadIdx.x; i < end;
         i += BLOCK)
    {
        rows.rank[i] = ordinal_at(rows, rank[i]);
        if (rows.measure != NULL)
            rows.measure[i] = measure[i];
    }
}

/* Memory for what is long. */
struct ordering
{
    struct oj_cuda_device *device;
    cudaStream_t stream;
    int64_t n_pairs;
    struct row_lists rows;
    struct oj_error *err;
    struct oj_cuda_array<int64_t> first, end; /* [rows that may be long] */
    struct oj_cuda_array<unsigned> n_long;    /* [1] */
    struct oj_cuda_array<int32_t> rank;
    struct oj_cuda_array<double> measure;
    struct oj_cuda_array<uint8_t> scratch;
};

static cudaError_t sort_segments(struct ordering *o, int n, void *memory,
                                 size_t &bytes)
{
    const int64_t *first = o->first.data, *end = o->end.data;
    const int32_t *rank = o->rows.rank;
    const double *measure = o->rows.measure;
    if (measure == NULL)
        return cub::DeviceSegmentedSort::SortKeys(memory, bytes, rank,
                                                  o->rank.data, (int)o->n_pairs,
                                                  n, first, end, o->stream);
    return cub::DeviceSegmentedSort::SortPairs(
        memory, bytes, rank, o->rank.data, measure, o->measure.data,
        (int)o->n_pairs, n, first, end, o->stream);
}

static oj_status order_long(struct ordering *o,
                            const struct long_rows &too_long, unsigned n)
{
    if (o->n_pairs > INT32_MAX)
        return oj_fail(o->err, OJ_ERR_NOMEM,
                       "%lld pairs are too many to be sorted at once",
                       (long long)o->n_pairs);
    OJ_TRY(oj_cuda_make(o->device, o->stream, o->n_pairs, &o->rank, o->err));
    if (o->rows.measure != NULL)
        OJ_TRY(oj_cuda_make(o->device, o->stream, o->n_pairs, &o->measure,
                            o->err));
    OJ_TRY(oj_cuda_with_scratch(
        o->device, o->stream, &o->scratch,
        [&](void *memory, size_t &bytes)
        { return sort_segments(o, (int)n, memory, bytes); },
        "ordering pairs", o->err));
    put_long<<<n, BLOCK, 0, o->stream>>>(o->rows, too_long, o->rank.data,
                                         o->measure.data);
    OJ_CUDA_TRY_LAUNCH("ordering pairs", o->err);
    return OJ_OK;
}

static oj_status order(struct ordering *o)
{
    int64_t most_long = o->n_pairs / MOST_PAIRS;
    struct long_rows too_long;
    unsigned n = 0;
    OJ_TRY(oj_cuda_make(o->device, o->stream, most_long, &o->first, &o->end,
                        o->err));
    OJ_TRY(oj_cuda_make(o->device, o->stream, 1, &o->n_long, o->err));
    too_long.n = o->n_long.data;
    too_long.first = o->first.data;
    too_long.end = o->end.data;
    OJ_TRY(oj_cuda_clear(o->stream, &o->n_long, "ordering pairs", o->err));
    order_short<<<oj_blocks(o->rows.n, BLOCK), BLOCK, 0, o->stream>>>(o->rows,
                                                                      too_long);
    OJ_CUDA_TRY_LAUNCH("ordering pairs", o->err);
    if (most_long == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_read(o->stream, too_long.n, (int)sizeof n, &n,
                        "ordering pairs", o->err));
    return n > 0 ? order_long(o, too_long, n) : OJ_OK;
}

oj_status oj_cuda_order_rows(struct oj_cuda_device *device, cudaStream_t stream,
                             int64_t n_rows, const int32_t *ordinal_of,
                             struct oj_cuda_pairs *pairs, struct oj_error *err)
{
    struct ordering o = {};
    oj_status status;
    if (pairs->n_pairs == 0)
        return OJ_OK;
    o.device = device;
    o.stream = stream;
    o.n_pairs = pairs->n_pairs;
    o.rows.n = n_rows;
    o.rows.offset = pairs->offset.data;
    o.rows.ordinal_of = ordinal_of;
    o.rows.rank = pairs->row.data;
    o.rows.measure = pairs->measure.data;
    o.err = err;
    status = order(&o);
    oj_cuda_drop(device, stream, &o.first, &o.end, &o.n_long, &o.rank,
                 &o.measure, &o.scratch);
    return status;
}
