#include "cuda_family.h"
#include "cuda_ring_cells.h"

#include "../flatten/oj_array.h"

#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>

#include <string.h>

/* Points of a block: ROUNDS times BLOCK of them, one after another. */
#define BLOCK 256
#define ROUNDS 4
#define CHUNK (BLOCK * ROUNDS)

/* Join features whose counts fit into the shared memory of a block. */
#define SHARED_COUNTS 4096

/* What is known of a point after the first pass: -1 no pair, >= 0 the rank of
 * its only one, else -1 - the number of its pairs. */
#define FEW_NONE (-1)

struct oj_cuda_index
{
    struct oj_cuda_device *device;
    const struct oj_cuda_layer *layer;
    struct oj_cuda_ring_cells cells;
    unsigned accepted; /* bits 1 << enum oj_location */
};

/* --- the join side -------------------------------------------------------- */

/* Locations of a point in a feature at which the join holds; 0: a join that
 * asks for more. */
static unsigned accepted_locations(enum oj_op op)
{
    switch (op)
    {
        case OJ_OP_INTERSECTS:
        case OJ_OP_COVEREDBY:
            return 1u << OJ_INSIDE | 1u << OJ_ON_BOUNDARY;
        case OJ_OP_WITHIN:
            return 1u << OJ_INSIDE;
        case OJ_OP_TOUCHES:
            return 1u << OJ_ON_BOUNDARY;
        default:
            return 0;
    }
}

static int takes(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input)
{
    return accepted_locations(relation->op) != 0 &&
           !oj_flat_is_points(join_side) &&
           (join_side->part_kinds & ~(unsigned)OJ_PART_POLYGON) == 0 &&
           (input == NULL || oj_flat_is_points(input));
}

static oj_status make_index(struct oj_cuda_device *device,
                            const struct oj_cuda_layer *layer,
                            const struct oj_relation *relation,
                            struct oj_cuda_index **out, struct oj_error *err)
{
    struct oj_cuda_index *index =
        (struct oj_cuda_index *)oj_calloc(1, sizeof *index);
    oj_status status;
    if (index == NULL)
        return oj_fail_nomem(err, 1, sizeof *index);
    index->device = device;
    index->layer = layer;
    index->accepted = accepted_locations(relation->op);
    status = oj_cuda_ring_cells_build(device, layer, OJ_RING_FEATURES,
                                      &index->cells, err);
    if (status != OJ_OK)
    {
        oj_free(index);
        return status;
    }
    *out = index;
    return OJ_OK;
}

static void free_index(struct oj_cuda_index *index)
{
    if (index == NULL)
        return;
    oj_cuda_ring_cells_drop(index->device, &index->cells);
    oj_free(index);
}

static int64_t index_bytes(const struct oj_cuda_index *index)
{
    return oj_cuda_ring_cells_bytes(&index->cells);
}

/* A first answer and an offset each, sums of blocks, and some pairs. */
static int64_t batch_bytes(const struct oj_cuda_index *index, int64_t n)
{
    (void)index;
    return n * (4 + 8 + 16) + n / CHUNK * 16 + 4096;
}

/* --- one point ------------------------------------------------------------ */

/* The pairs of a point, one after another, in tie order. */
struct search
{
    struct oj_ring_place place;
    int32_t found;
};

static __device__ __forceinline__ struct search
begin(const struct oj_ring_tree &tree, unsigned accepted, double x, double y)
{
    struct search s;
    s.found = oj_ring_tree_find(&tree, x, y, &s.place);
    if (s.found >= 0 && !(accepted >> OJ_INSIDE & 1u))
        s.found = OJ_RING_NONE;
    return s;
}

/* The next pair's rank, or -1. */
static __device__ __forceinline__ int32_t next(const struct oj_ring_tree &tree,
                                               unsigned accepted, double x,
                                               double y, struct search *s)
{
    int32_t rank = s->found;
    uint32_t unit;
    if (rank != OJ_RING_ASK)
    {
        s->found = OJ_RING_NONE;
        return rank;
    }
    while (s->place.at < s->place.end)
    {
        enum oj_location at = oj_ring_tree_next(&tree, &s->place, x, y, &unit);
        if (accepted >> at & 1u)
            return (int32_t)unit;
    }
    return -1;
}

static __device__ int32_t ordinal(const int32_t *ordinal_of, int32_t rank)
{
    return ordinal_of != NULL && rank >= 0 ? ordinal_of[rank] : rank;
}

/* --- one answer for each point -------------------------------------------- */

static __global__ void
find_first(const __grid_constant__ struct oj_ring_tree tree, unsigned accepted,
           struct oj_cuda_points points, const int32_t *ordinal_of,
           int32_t *row, double *measure)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    double x, y;
    struct search s;
    if (i >= points.n)
        return;
    x = points.x[i];
    y = points.y[i];
    s = begin(tree, accepted, x, y);
    row[i] = ordinal(ordinal_of, next(tree, accepted, x, y, &s));
    if (measure != NULL)
        measure[i] = nan("");
}

static oj_status join_one(struct oj_cuda_index *index, cudaStream_t stream,
                          const struct oj_cuda_points *points, int32_t *d_row,
                          double *d_measure, struct oj_error *err)
{
    if (points->n == 0)
        return OJ_OK;
    find_first<<<(unsigned)((points->n + BLOCK - 1) / BLOCK), BLOCK, 0,
                 stream>>>(index->cells.tree, index->accepted, *points,
                           index->layer->ordinal_of.data, d_row, d_measure);
    OJ_CUDA_TRY_LAUNCH("finding polygons of points", err);
    return OJ_OK;
}

/* --- lists ---------------------------------------------------------------- */

static __global__ void
count_pairs(const __grid_constant__ struct oj_ring_tree tree, unsigned accepted,
            struct oj_cuda_points points, int32_t *few, unsigned long long *sum)
{
    __shared__ unsigned long long of_block;
    unsigned long long mine = 0;
    if (threadIdx.x == 0)
        of_block = 0;
    __syncthreads();
    for (int r = 0; r < ROUNDS; r++)
    {
        int64_t i = (int64_t)blockIdx.x * CHUNK + r * BLOCK + threadIdx.x;
        double x, y;
        struct search s;
        int32_t first, rank, n = 0;
        if (i >= points.n)
            break;
        x = points.x[i];
        y = points.y[i];
        s = begin(tree, accepted, x, y);
        first = rank = next(tree, accepted, x, y, &s);
        while (rank >= 0)
        {
            n++;
            rank = next(tree, accepted, x, y, &s);
        }
        few[i] = n > 1 ? -1 - n : first;
        mine += (unsigned)n;
    }
    for (int step = 16; step > 0; step /= 2)
        mine += __shfl_xor_sync(0xffffffffu, mine, step);
    if (threadIdx.x % 32 == 0 && mine > 0)
        atomicAdd(&of_block, mine);
    __syncthreads();
    if (threadIdx.x == 0)
        sum[blockIdx.x] = of_block;
}

static __global__ void
put_pairs(const __grid_constant__ struct oj_ring_tree tree, unsigned accepted,
          struct oj_cuda_points points, const int32_t *ordinal_of,
          const int32_t *few, const unsigned long long *sum, int64_t *offset,
          int32_t *row)
{
    typedef cub::BlockScan<int64_t, BLOCK> scan;
    __shared__ typename scan::TempStorage storage;
    int64_t at = (int64_t)sum[blockIdx.x];
    if (blockIdx.x == 0 && threadIdx.x == 0)
        offset[0] = 0;
    for (int r = 0; r < ROUNDS; r++)
    {
        int64_t i = (int64_t)blockIdx.x * CHUNK + r * BLOCK + threadIdx.x;
        int32_t first = i < points.n ? few[i] : FEW_NONE;
        int64_t n = first >= 0 ? 1 : -1 - (int64_t)first, before, total;
        scan(storage).ExclusiveSum(n, before, total);
        __syncthreads();
        before += at;
        at += total;
        if (i >= points.n)
            continue;
        offset[i + 1] = before + n;
        if (first >= 0)
            row[before] = ordinal(ordinal_of, first);
        else if (n > 0)
        {
            double x = points.x[i], y = points.y[i];
            struct search s = begin(tree, accepted, x, y);
            for (int64_t k = 0; k < n; k++)
                row[before + k] =
                    ordinal(ordinal_of, next(tree, accepted, x, y, &s));
        }
    }
}

struct listing
{
    struct oj_cuda_array<int32_t> few;
    struct oj_cuda_array<unsigned long long> sum; /* [blocks + 1] */
    struct oj_cuda_array<uint8_t> scratch;
};

static oj_status list_pairs(struct oj_cuda_index *index, cudaStream_t stream,
                            const struct oj_cuda_points *points,
                            int64_t max_pairs, struct listing *l,
                            struct oj_cuda_pairs *out, struct oj_error *err)
{
    struct oj_cuda_device *device = index->device;
    int64_t n = points->n, n_blocks = (n + CHUNK - 1) / CHUNK;
    unsigned long long n_pairs = 0;
    size_t bytes = 0;
    OJ_TRY(oj_cuda_make(device, stream, n + 1, &out->offset, err));
    if (n == 0)
    {
        OJ_CUDA_TRY(cudaMemsetAsync(out->offset.data, 0, 8, stream),
                    "listing polygons of points", err);
        return OJ_OK;
    }
    OJ_TRY(oj_cuda_make(device, stream, n, &l->few, err));
    OJ_TRY(oj_cuda_make(device, stream, n_blocks + 1, &l->sum, err));
    OJ_CUDA_TRY(cudaMemsetAsync(l->sum.data + n_blocks, 0, 8, stream),
                "listing polygons of points", err);
    count_pairs<<<(unsigned)n_blocks, BLOCK, 0, stream>>>(
        index->cells.tree, index->accepted, *points, l->few.data, l->sum.data);
    OJ_CUDA_TRY_LAUNCH("counting polygons of points", err);
    OJ_CUDA_TRY(cub::DeviceScan::ExclusiveSum(NULL, bytes, l->sum.data,
                                              l->sum.data, n_blocks + 1,
                                              stream),
                "counting polygons of points", err);
    OJ_TRY(oj_cuda_make(device, stream, (int64_t)bytes, &l->scratch, err));
    OJ_CUDA_TRY(cub::DeviceScan::ExclusiveSum(l->scratch.data, bytes,
                                              l->sum.data, l->sum.data,
                                              n_blocks + 1, stream),
                "counting polygons of points", err);
    OJ_CUDA_TRY(cudaMemcpyAsync(&n_pairs, l->sum.data + n_blocks, 8,
                                cudaMemcpyDeviceToHost, stream),
                "counting polygons of points", err);
    OJ_CUDA_TRY(cudaStreamSynchronize(stream), "counting polygons of points",
                err);
    if (max_pairs > 0 && n > 1 && (int64_t)n_pairs > max_pairs)
        return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                       "the batch has more pairs than fit");
    out->n_pairs = (int64_t)n_pairs;
    OJ_TRY(oj_cuda_make(device, stream, out->n_pairs, &out->row, err));
    put_pairs<<<(unsigned)n_blocks, BLOCK, 0, stream>>>(
        index->cells.tree, index->accepted, *points,
        index->layer->ordinal_of.data, l->few.data, l->sum.data,
        out->offset.data, out->row.data);
    OJ_CUDA_TRY_LAUNCH("listing polygons of points", err);
    return OJ_OK;
}

static oj_status join_lists(struct oj_cuda_index *index, cudaStream_t stream,
                            const struct oj_cuda_points *points,
                            int64_t max_pairs, struct oj_cuda_pairs *out,
                            struct oj_error *err)
{
    struct oj_cuda_device *device = index->device;
    struct oj_cuda_pairs pairs;
    struct listing l;
    oj_status status;
    memset(&pairs, 0, sizeof pairs);
    memset(&l, 0, sizeof l);
    status = list_pairs(index, stream, points, max_pairs, &l, &pairs, err);
    oj_cuda_drop(device, stream, &l.few);
    oj_cuda_drop(device, stream, &l.sum);
    oj_cuda_drop(device, stream, &l.scratch);
    if (status != OJ_OK)
    {
        oj_cuda_drop(device, stream, &pairs.offset);
        oj_cuda_drop(device, stream, &pairs.row);
        return status;
    }
    *out = pairs;
    return OJ_OK;
}

/* --- counts --------------------------------------------------------------- */

/* Threads of a warp that count for one feature do it once. rank < 0: none. */
static __device__ __forceinline__ void
add_for_warp(const int32_t *ordinal_of, int32_t rank, unsigned long long *count)
{
    unsigned same = __match_any_sync(0xffffffffu, rank);
    if (rank >= 0 && (int)(threadIdx.x % 32) == __ffs((int)same) - 1)
        atomicAdd(&count[ordinal(ordinal_of, rank)],
                  (unsigned long long)__popc(same));
}

static __global__ void
count_by_feature(const __grid_constant__ struct oj_ring_tree tree,
                 unsigned accepted, struct oj_cuda_points points,
                 const int32_t *ordinal_of, unsigned long long *count)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    double x = i < points.n ? points.x[i] : nan("");
    double y = i < points.n ? points.y[i] : nan("");
    struct search s = begin(tree, accepted, x, y);
    int32_t rank = next(tree, accepted, x, y, &s);
    while (__any_sync(0xffffffffu, rank >= 0))
    {
        add_for_warp(ordinal_of, rank, count);
        if (rank >= 0)
            rank = next(tree, accepted, x, y, &s);
    }
}

/* Few features: every block counts for itself first. */
static __global__ void
count_by_few(const __grid_constant__ struct oj_ring_tree tree,
             unsigned accepted, struct oj_cuda_points points,
             int32_t n_features, const int32_t *ordinal_of,
             unsigned long long *count)
{
    __shared__ unsigned of_block[SHARED_COUNTS];
    int64_t step = (int64_t)gridDim.x * BLOCK;
    for (int f = (int)threadIdx.x; f < n_features; f += BLOCK)
        of_block[f] = 0;
    __syncthreads();
    for (int64_t first = (int64_t)blockIdx.x * BLOCK; first < points.n;
         first += step)
    {
        int64_t i = first + threadIdx.x;
        double x = i < points.n ? points.x[i] : nan("");
        double y = i < points.n ? points.y[i] : nan("");
        struct search s = begin(tree, accepted, x, y);
        int32_t rank = next(tree, accepted, x, y, &s);
        while (__any_sync(0xffffffffu, rank >= 0))
        {
            unsigned same = __match_any_sync(0xffffffffu, rank);
            if (rank >= 0)
            {
                if ((int)(threadIdx.x % 32) == __ffs((int)same) - 1)
                    atomicAdd(&of_block[rank], (unsigned)__popc(same));
                rank = next(tree, accepted, x, y, &s);
            }
        }
    }
    __syncthreads();
    for (int f = (int)threadIdx.x; f < n_features; f += BLOCK)
    {
        if (of_block[f] > 0)
            atomicAdd(&count[ordinal(ordinal_of, f)],
                      (unsigned long long)of_block[f]);
    }
}

static oj_status count(struct oj_cuda_index *index, cudaStream_t stream,
                       const struct oj_cuda_points *points,
                       unsigned long long *d_count, struct oj_error *err)
{
    int64_t n = points->n, n_features = index->layer->n_features;
    const int32_t *ordinal_of = index->layer->ordinal_of.data;
    if (n == 0)
        return OJ_OK;
    if (n_features <= SHARED_COUNTS && n < (int64_t)1 << 40)
    {
        int64_t blocks = (n + BLOCK - 1) / BLOCK;
        int64_t most = 16 * (int64_t)index->device->n_processors;
        if (blocks > most)
            blocks = most;
        count_by_few<<<(unsigned)blocks, BLOCK, 0, stream>>>(
            index->cells.tree, index->accepted, *points, (int32_t)n_features,
            ordinal_of, d_count);
    }
    else
        count_by_feature<<<(unsigned)((n + BLOCK - 1) / BLOCK), BLOCK, 0,
                           stream>>>(index->cells.tree, index->accepted,
                                     *points, ordinal_of, d_count);
    OJ_CUDA_TRY_LAUNCH("counting points of polygons", err);
    return OJ_OK;
}

const struct oj_cuda_family oj_cuda_points_in_polygons = {
    "points in cells of polygons",
    takes,
    make_index,
    free_index,
    index_bytes,
    batch_bytes,
    join_one,
    join_lists,
    count};
