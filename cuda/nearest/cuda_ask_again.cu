#include "cuda_ask_again.h"

#include "../device/cuda_scratch.cuh"

#define BLOCK 256
#define FULL_WARP 0xFFFFFFFFu

/* One row of so many is open, as a rule. */
#define OPEN_OF 16

/* The open rows of a batch on their way. */
struct open_rows
{
    struct oj_cuda_device *device;
    cudaStream_t stream;
    int64_t n;
    struct oj_cuda_array<unsigned long long> count; /* [1] */
    struct oj_cuda_array<int32_t> at;               /* [n] row of each */
    struct oj_cuda_array<double> x, y;              /* [n] */
    struct oj_cuda_array<int32_t> row;              /* [n] one-to-one only */
    struct oj_cuda_array<double> measure;           /* [n] and lists' known */
    struct oj_cuda_array<uint8_t> scratch;
};

static __global__ void count_open(int64_t n, const int32_t *row,
                                  unsigned long long *count)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int n_block = __syncthreads_count(i < n && row[i] == OJ_CUDA_OPEN);
    if (threadIdx.x == 0 && n_block > 0)
        atomicAdd(count, (unsigned long long)n_block);
}

/* Lists the open rows, in any order: each answer goes to its own row. */
static __global__ void
list_open(const __grid_constant__ struct oj_cuda_points points,
          const int32_t *row, const double *measure,
          const __grid_constant__ struct open_rows open)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int is_open = i < points.n && row[i] == OJ_CUDA_OPEN;
    uint32_t votes = __ballot_sync(FULL_WARP, is_open);
    uint32_t lane = threadIdx.x % 32;
    unsigned long long first = 0;
    if (lane == 0 && votes != 0)
        first = atomicAdd(open.count.data, (unsigned long long)__popc(votes));
    first = __shfl_sync(FULL_WARP, first, 0);
    if (!is_open)
        return;
    first += (unsigned)__popc(votes & ((1u << lane) - 1u));
    open.at.data[first] = (int32_t)i;
    open.x.data[first] = points.x[i];
    open.y.data[first] = points.y[i];
    if (open.measure.data != NULL)
        open.measure.data[first] = measure[i];
}

/* measure NULL: those of open rows are not known. */
static oj_status find_open(struct open_rows *open,
                           const struct oj_cuda_points *points,
                           const int32_t *row, const double *measure,
                           struct oj_error *err)
{
    unsigned long long n = 0;
    if (points->n == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_make(open->device, open->stream, 1, &open->count, err));
    OJ_TRY(oj_cuda_clear(open->stream, &open->count, "joining", err));
    count_open<<<oj_blocks(points->n, BLOCK), BLOCK, 0, open->stream>>>(
        points->n, row, open->count.data);
    OJ_CUDA_TRY_LAUNCH("joining", err);
    OJ_TRY(oj_cuda_read(open->stream, open->count.data, (int)sizeof n, &n,
                        "joining", err));
    open->n = (int64_t)n;
    if (n == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_make(open->device, open->stream, open->n, &open->at,
                        &open->x, &open->y, err));
    if (measure != NULL)
        OJ_TRY(oj_cuda_make(open->device, open->stream, open->n, &open->measure,
                            err));
    OJ_TRY(oj_cuda_clear(open->stream, &open->count, "joining", err));
    list_open<<<oj_blocks(points->n, BLOCK), BLOCK, 0, open->stream>>>(
        *points, row, measure, *open);
    OJ_CUDA_TRY_LAUNCH("joining", err);
    return OJ_OK;
}

static struct oj_cuda_points points_of(const struct open_rows *open)
{
    struct oj_cuda_points points = {};
    points.n = open->n;
    points.x = open->x.data;
    points.y = open->y.data;
    return points;
}

static void drop_open(struct open_rows *open)
{
    oj_cuda_drop(open->device, open->stream, &open->count, &open->at, &open->x,
                 &open->y, &open->row, &open->measure, &open->scratch);
}

/* --- one each ------------------------------------------------------------- */

static __global__ void put_one(const __grid_constant__ struct open_rows open,
                               int32_t *row, double *measure)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= open.n)
        return;
    row[open.at.data[i]] = open.row.data[i];
    if (measure != NULL)
        measure[open.at.data[i]] = open.measure.data[i];
}

static oj_status answer_one(const struct oj_cuda_asked *asked,
                            struct open_rows *open, int32_t *row,
                            double *measure, struct oj_error *err)
{
    struct oj_cuda_points points = points_of(open);
    OJ_TRY(oj_cuda_make(open->device, open->stream, open->n, &open->row, err));
    if (measure != NULL)
        OJ_TRY(oj_cuda_make(open->device, open->stream, open->n, &open->measure,
                            err));
    OJ_TRY(asked->family->join_one(asked->index, open->stream, &points,
                                   open->row.data, open->measure.data, err));
    put_one<<<oj_blocks(open->n, BLOCK), BLOCK, 0, open->stream>>>(*open, row,
                                                                   measure);
    OJ_CUDA_TRY_LAUNCH("joining", err);
    return OJ_OK;
}

oj_status oj_cuda_ask_again_one(const struct oj_cuda_asked *asked,
                                cudaStream_t stream,
                                const struct oj_cuda_points *points,
                                int32_t *row, double *measure,
                                struct oj_error *err)
{
    struct open_rows open = {};
    oj_status status;
    open.device = asked->device;
    open.stream = stream;
    status = find_open(&open, points, row, NULL, err);
    if (status == OJ_OK && open.n > 0)
        status = answer_one(asked, &open, row, measure, err);
    drop_open(&open);
    return status;
}

/* --- lists ---------------------------------------------------------------- */

static __global__ void count_pairs(int64_t n, const int32_t *row,
                                   int64_t *count)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i <= n)
        count[i] = i < n && row[i] >= 0;
}

static __global__ void count_open_pairs(int64_t n, const int32_t *at,
                                        const int64_t *its_offset,
                                        int64_t *count)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        count[at[i]] = its_offset[i + 1] - its_offset[i];
}

static __global__ void put_pairs(int64_t n, const int32_t *row,
                                 const double *measure, struct oj_cuda_pairs to)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, at;
    if (i >= n || row[i] < 0)
        return;
    at = to.offset.data[i];
    to.row.data[at] = row[i];
    to.measure.data[at] = measure[i];
}

/* A warp for each open row, which may have many. */
static __global__ void put_open_pairs(int64_t n, const int32_t *at,
                                      struct oj_cuda_pairs found,
                                      struct oj_cuda_pairs pairs)
{
    int64_t i = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / 32, to, end;
    if (i >= n)
        return;
    to = pairs.offset.data[at[i]] - found.offset.data[i];
    end = found.offset.data[i + 1];
    for (int64_t j = found.offset.data[i] + threadIdx.x % 32; j < end; j += 32)
    {
        pairs.row.data[to + j] = found.row.data[j];
        pairs.measure.data[to + j] = found.measure.data[j];
    }
}

static oj_status put_lists(struct open_rows *open,
                           const struct oj_cuda_points *points,
                           const int32_t *row, const double *measure,
                           const struct oj_cuda_pairs *found, int64_t max_pairs,
                           struct oj_cuda_pairs *out, struct oj_error *err)
{
    struct oj_cuda_device *device = open->device;
    cudaStream_t stream = open->stream;
    int64_t n = points->n;
    OJ_TRY(oj_cuda_make(device, stream, n + 1, &out->offset, err));
    count_pairs<<<oj_blocks(n + 1, BLOCK), BLOCK, 0, stream>>>(
        n, row, out->offset.data);
    if (open->n > 0)
        count_open_pairs<<<oj_blocks(open->n, BLOCK), BLOCK, 0, stream>>>(
            open->n, open->at.data, found->offset.data, out->offset.data);
    OJ_CUDA_TRY_LAUNCH("joining", err);
    OJ_TRY(oj_cuda_scan_total(device, stream, &open->scratch, out->offset.data,
                              n, &out->n_pairs, "summing counts", err));
    OJ_TRY(oj_cuda_pairs_fit(n, out->n_pairs, max_pairs, err));
    OJ_TRY(oj_cuda_make(device, stream, out->n_pairs, &out->row, &out->measure,
                        err));
    if (out->n_pairs == 0)
        return OJ_OK;
    put_pairs<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(n, row, measure, *out);
    if (open->n > 0)
        put_open_pairs<<<oj_blocks(32 * open->n, BLOCK), BLOCK, 0, stream>>>(
            open->n, open->at.data, *found, *out);
    OJ_CUDA_TRY_LAUNCH("joining", err);
    return OJ_OK;
}

oj_status oj_cuda_ask_again_lists(const struct oj_cuda_asked *asked,
                                  cudaStream_t stream,
                                  const struct oj_cuda_points *points,
                                  const int32_t *row, const double *measure,
                                  int64_t max_pairs, struct oj_cuda_pairs *out,
                                  struct oj_error *err)
{
    struct open_rows open = {};
    struct oj_cuda_pairs made = {};
    struct oj_cuda_pairs found = {};
    oj_status status;
    open.device = asked->device;
    open.stream = stream;
    status = find_open(&open, points, row,
                       asked->knows_distance ? measure : NULL, err);
    if (status == OJ_OK && open.n > 0)
    {
        struct oj_cuda_points its = points_of(&open);
        its.max_distance = open.measure.data;
        status = asked->family->join_lists(asked->index, stream, &its,
                                           max_pairs, &found, err);
    }
    if (status == OJ_OK)
        status = put_lists(&open, points, row, measure, &found, max_pairs,
                           &made, err);
    oj_cuda_pairs_drop(asked->device, stream, &found);
    drop_open(&open);
    if (status != OJ_OK)
        oj_cuda_pairs_drop(asked->device, stream, &made);
    else
        *out = made;
    return status;
}

int64_t oj_cuda_ask_again_bytes(const struct oj_cuda_asked *asked, int64_t n,
                                int lists)
{
    int64_t n_open = n / OPEN_OF;
    int64_t bytes =
        n_open * 32 + asked->family->batch_bytes(asked->index, n_open);
    /* offsets and pairs, and what scans take */
    return lists ? bytes + n * 24 : bytes;
}
