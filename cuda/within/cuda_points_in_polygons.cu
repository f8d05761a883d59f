#include "../../algs/relation/oj_point_rule.h"
#include "../device/cuda_scratch.cuh"
#include "../index/cuda_family.h"
#include "cuda_point_counts.cuh"
#include "cuda_point_lists.cuh"
#include "cuda_point_sums.cuh"

struct polygons_index : oj_cuda_index
{
    struct oj_cuda_ring_cells cells;
    unsigned accepted; /* bits 1 << enum oj_location */
};

/* --- the join side -------------------------------------------------------- */

static oj_status build(struct oj_cuda_index *index, struct oj_error *err)
{
    struct polygons_index *self = (struct polygons_index *)index;
    self->accepted = oj_point_locations(self->relation.op);
    return oj_cuda_ring_cells_build(self->device, self->layer, OJ_RING_FEATURES,
                                    &self->cells, err);
}

static void drop(struct oj_cuda_index *index)
{
    oj_cuda_ring_cells_drop(index->device,
                            &((struct polygons_index *)index)->cells);
}

static int64_t index_bytes(const struct oj_cuda_index *index)
{
    return oj_cuda_ring_cells_bytes(
        &((const struct polygons_index *)index)->cells);
}

/* A first answer and an offset each, sums of blocks, and some pairs. */
static int64_t batch_bytes(const struct oj_cuda_index *index, int64_t n)
{
    (void)index;
    return n * (4 + 8 + 16) + n / CHUNK * 32 + 8 * (n < SLICE ? n : SLICE) +
           4096;
}

/* --- points through the tree ---------------------------------------------- */

static struct points_in_rings_query
query_of(const struct oj_cuda_index *index, const struct oj_cuda_points *points)
{
    const struct polygons_index *self = (const struct polygons_index *)index;
    struct points_in_rings_query q;
    q.tree = self->cells.tree;
    q.accepted = self->accepted;
    q.n = points->n;
    q.x = points->x;
    q.y = points->y;
    q.ordinal_of = index->layer->ordinal_of.data;
    q.doubt = NULL;
    q.n_doubts = NULL;
    return q;
}

/* --- one answer for each point -------------------------------------------- */

struct first_answer
{
    int32_t *of_chunk;
    int64_t first;

    __device__ __forceinline__ void sure(const struct points_in_rings_query &,
                                         int64_t i, int32_t rank)
    {
        if (i >= 0)
            of_chunk[i - first] = rank;
    }
    __device__ __forceinline__ void ask(const struct points_in_rings_query &q,
                                        int64_t i, struct oj_ring_place *place)
    {
        int32_t rank = next_surely(q, place);
        if (rank == OJ_RING_UNSURE)
            put_doubt(q, i, place->at);
        else if (i >= 0)
            of_chunk[i - first] = rank;
    }
};

struct first_settler
{
    int32_t *row;

    __device__ __forceinline__ void
    settle(const struct points_in_rings_query &q, int64_t i, double x, double y,
           struct oj_ring_place *place)
    {
        row[i] = ordinal(q.ordinal_of, next(q, x, y, place));
    }
};

static __global__ void __launch_bounds__(BLOCK, RESIDENT)
    find_first(const __grid_constant__ struct points_in_rings_query q,
               int32_t *row, double *measure)
{
    int64_t chunk = warp_of(), first = chunk * CHUNK;
    struct first_answer answer = {ranks_of_chunk(), first};
    ask_chunk(q, chunk, answer);
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
    {
        int64_t k = r * LANES + lane_of(), i = first + k;
        if (i >= q.n)
            continue;
        row[i] = ordinal(q.ordinal_of, answer.of_chunk[k]);
        if (measure != NULL)
            measure[i] = nan("");
    }
}

static __global__ void
settle_first(const __grid_constant__ struct points_in_rings_query q,
             int32_t *row)
{
    struct first_settler answer = {row};
    settle_doubts(q, answer);
}

/* Blocks of the second pass, which mostly has little to do. */
static unsigned settling_blocks(const struct oj_cuda_index *index)
{
    return 2 * (unsigned)index->device->n_processors;
}

static oj_status join_one(struct oj_cuda_index *index, cudaStream_t stream,
                          const struct oj_cuda_points *points, int32_t *d_row,
                          double *d_measure, struct oj_error *err)
{
    return ask_slices(
        index->device, stream, query_of(index, points),
        [&](const struct points_in_rings_query &q, int64_t first) -> oj_status
        {
            double *measure = d_measure != NULL ? d_measure + first : NULL;
            find_first<<<blocks_of_chunks(chunks_of(q.n)), BLOCK, 0, stream>>>(
                q, d_row + first, measure);
            OJ_CUDA_TRY_LAUNCH("finding polygons of points", err);
            settle_first<<<settling_blocks(index), BLOCK, 0, stream>>>(
                q, d_row + first);
            OJ_CUDA_TRY_LAUNCH("finding polygons of points", err);
            return OJ_OK;
        },
        err);
}

/* --- lists ---------------------------------------------------------------- */

/* SLICE is of whole chunks. */
static oj_status count_all(struct oj_cuda_index *index, cudaStream_t stream,
                           const struct points_in_rings_query *all,
                           const struct chunk_pair_counts *to,
                           struct oj_error *err)
{
    return each_slice(
        all, stream,
        [&](const struct points_in_rings_query &q, int64_t first) -> oj_status
        {
            int64_t n_chunks = chunks_of(q.n);
            struct chunk_pair_counts here = {to->some + first / LANES,
                                             to->few + first,
                                             to->sum + first / CHUNK};
            count_pairs<<<blocks_of_chunks(n_chunks), BLOCK, 0, stream>>>(
                q, n_chunks, here);
            OJ_CUDA_TRY_LAUNCH("counting polygons of points", err);
            settle_pairs<<<settling_blocks(index), BLOCK, 0, stream>>>(q, here);
            OJ_CUDA_TRY_LAUNCH("counting polygons of points", err);
            return OJ_OK;
        },
        err);
}

struct listing
{
    struct doubts doubts;
    struct oj_cuda_array<uint32_t> some;          /* [chunks * ROUNDS] */
    struct oj_cuda_array<int32_t> few;            /* [chunks * CHUNK] */
    struct oj_cuda_array<unsigned long long> sum; /* [chunks + 1] */
    struct oj_cuda_array<uint32_t> several;       /* [chunks + 1] */
    struct oj_cuda_array<uint8_t> scratch;
};

static oj_status list_pairs(struct oj_cuda_index *index, cudaStream_t stream,
                            const struct oj_cuda_points *points,
                            int64_t max_pairs, struct listing *l,
                            struct oj_cuda_pairs *out, struct oj_error *err)
{
    struct oj_cuda_device *device = index->device;
    struct points_in_rings_query q = query_of(index, points);
    struct chunk_pair_counts found;
    int64_t n = points->n, n_chunks = chunks_of(n);
    struct several several;
    unsigned long long n_pairs = 0;
    OJ_TRY(oj_cuda_make(device, stream, n + 1, &out->offset, err));
    if (n == 0)
        return oj_cuda_clear(stream, &out->offset, "listing polygons of points",
                             err);
    OJ_TRY(oj_cuda_make(device, stream, n_chunks * ROUNDS, &l->some, err));
    OJ_TRY(oj_cuda_make(device, stream, n_chunks * CHUNK, &l->few, err));
    OJ_TRY(
        oj_cuda_make(device, stream, n_chunks + 1, &l->sum, &l->several, err));
    OJ_CUDA_TRY(cudaMemsetAsync(l->sum.data + n_chunks, 0, 8, stream),
                "listing polygons of points", err);
    OJ_CUDA_TRY(cudaMemsetAsync(l->several.data, 0, 4, stream),
                "listing polygons of points", err);
    OJ_TRY(make_doubts(device, stream, &q, &l->doubts, err));
    found.some = l->some.data;
    found.few = l->few.data;
    found.sum = l->sum.data;
    several.n = l->several.data;
    several.chunk = l->several.data + 1;
    OJ_TRY(count_all(index, stream, &q, &found, err));
    OJ_TRY(oj_cuda_scan_total(device, stream, &l->scratch, l->sum.data,
                              n_chunks, &n_pairs, "counting polygons of points",
                              err));
    out->n_pairs = (int64_t)n_pairs;
    OJ_TRY(oj_cuda_pairs_fit(n, out->n_pairs, max_pairs, err));
    OJ_TRY(oj_cuda_make(device, stream, out->n_pairs, &out->row, err));
    put_pairs<<<blocks_of_chunks(n_chunks), BLOCK, 0, stream>>>(
        q, n_chunks, found, out->offset.data, out->row.data, several);
    OJ_CUDA_TRY_LAUNCH("listing polygons of points", err);
    put_several<<<settling_blocks(index), BLOCK, 0, stream>>>(
        q, found, out->offset.data, out->row.data, several);
    OJ_CUDA_TRY_LAUNCH("listing polygons of points", err);
    return OJ_OK;
}

static oj_status join_lists(struct oj_cuda_index *index, cudaStream_t stream,
                            const struct oj_cuda_points *points,
                            int64_t max_pairs, struct oj_cuda_pairs *out,
                            struct oj_error *err)
{
    struct oj_cuda_device *device = index->device;
    struct oj_cuda_pairs pairs = {};
    struct listing l = {};
    oj_status status;
    status = list_pairs(index, stream, points, max_pairs, &l, &pairs, err);
    oj_cuda_drop(device, stream, &l.doubts.list, &l.doubts.n, &l.some, &l.few,
                 &l.sum, &l.several, &l.scratch);
    if (status != OJ_OK)
        oj_cuda_pairs_drop(device, stream, &pairs);
    else
        *out = pairs;
    return status;
}

/* --- counts --------------------------------------------------------------- */

static oj_status count(struct oj_cuda_index *index, cudaStream_t stream,
                       const struct oj_cuda_points *points,
                       unsigned long long *d_count, struct oj_error *err)
{
    int64_t n_features = index->layer->n_features;
    int64_t most = 4 * RESIDENT * (int64_t)index->device->n_processors;
    return ask_slices(
        index->device, stream, query_of(index, points),
        [&](const struct points_in_rings_query &q, int64_t) -> oj_status
        {
            int64_t n_chunks = chunks_of(q.n);
            int64_t blocks = blocks_of_chunks(n_chunks);
            if (n_features <= SHARED_COUNTS)
                count_by_few<<<(unsigned)(blocks < most ? blocks : most), BLOCK,
                               0, stream>>>(q, (int32_t)n_features, n_chunks,
                                            d_count);
            else
                count_by_feature<<<(unsigned)blocks, BLOCK, 0, stream>>>(
                    q, d_count);
            OJ_CUDA_TRY_LAUNCH("counting points of polygons", err);
            settle_counts<<<settling_blocks(index), BLOCK, 0, stream>>>(
                q, d_count);
            OJ_CUDA_TRY_LAUNCH("counting points of polygons", err);
            return OJ_OK;
        },
        err);
}

static oj_status sum(struct oj_cuda_index *index, cudaStream_t stream,
                     const struct oj_cuda_points *points,
                     const struct oj_cuda_tally *tally, struct oj_error *err)
{
    return ask_slices(
        index->device, stream, query_of(index, points),
        [&](const struct points_in_rings_query &q, int64_t first) -> oj_status
        {
            struct oj_cuda_tally here = tally_from(*tally, first);
            sum_by_feature<<<blocks_of_chunks(chunks_of(q.n)), BLOCK, 0,
                             stream>>>(q, here);
            OJ_CUDA_TRY_LAUNCH("summing points of polygons", err);
            settle_sums<<<settling_blocks(index), BLOCK, 0, stream>>>(q, here);
            OJ_CUDA_TRY_LAUNCH("summing points of polygons", err);
            return OJ_OK;
        },
        err);
}

const struct oj_cuda_family oj_cuda_points_in_polygons = {
    "points in cells of polygons",
    oj_is_points_in_polygons,
    sizeof(struct polygons_index),
    build,
    drop,
    index_bytes,
    batch_bytes,
    join_one,
    join_lists,
    count,
    0,
    sum};
