#include "../../../algs/foundations/relation/oj_is_points_in_polygons.h"
#include "../../foundations/index/cuda_pair_listing.cuh"
#include "../../foundations/index/cuda_pair_sums_add.cuh"
#include "cuda_points_in_rings_query.cuh"

struct polygons_index : oj_cuda_index
{
    struct oj_cuda_ring_cells cells;
    unsigned accepted; /* bits 1 << enum oj_location of the locations that
                          match */
};

/* --- the join side -------------------------------------------------------- */

static oj_status build_polygon_cells(struct oj_cuda_index *index,
                                     struct oj_cuda_work *work)
{
    struct polygons_index *self = (struct polygons_index *)index;
    self->accepted = oj_point_locations_of_op(self->relation.op);
    return oj_cuda_ring_cells_build(work, self->layer, OJ_RING_FEATURES,
                                    &self->cells);
}

/* Returns the bytes that a batch of n points needs. Per point: a rank or count,
 * an offset, and some pairs; in addition the sums of chunks and the unsure
 * points. */
static int64_t batch_bytes(const struct oj_cuda_index *index, int64_t n)
{
    (void)index;
    return n * (4 + 8 + 16) + n / CHUNK * 32 + 8 * (n < SLICE ? n : SLICE) +
           4096;
}

/* --- points through the tree ---------------------------------------------- */

static struct points_in_rings_query
make_query_of_batch(const struct oj_cuda_index *index,
                    const struct oj_cuda_points *points)
{
    const struct polygons_index *self = (const struct polygons_index *)index;
    struct points_in_rings_query q =
        make_points_in_rings_query(self->cells.tree, self->accepted, points);
    q.ordinal_of = index->layer->ordinal_of.data;
    return q;
}

/* --- lists ---------------------------------------------------------------- */

/* The number of pairs of each chunk of points; it is counted before the
 * positions of the pairs in the result are known. `some` has a bit per point,
 * which is 1 if the point may have pairs. `few` has an entry for each such
 * point, in the order of points, from entry CHUNK * chunk on: the rank of the
 * feature (>= 0) if the point has a single pair, otherwise -1 - the number of
 * its pairs. */
struct chunk_pair_counts
{
    uint32_t *some;          /* [ROUNDS] words per chunk, a bit per lane */
    int32_t *few;            /* [CHUNK] per chunk */
    unsigned long long *sum; /* [chunks] number of pairs */
};

/* The chunks that have a point with several pairs. */
struct several
{
    uint32_t *chunk; /* [chunks] */
    unsigned *n;
};

/* Marks an unsure point in place of a rank, until the second pass decides it.
 */
#define DOUBTED INT32_MIN

struct pair_counter
{
    int32_t *of_chunk;
    int64_t first;
    unsigned long long n_pairs;

    __device__ __forceinline__ void
    accept_decided_point(const struct points_in_rings_query &, int64_t i,
                         int32_t rank)
    {
        if (i < 0)
            return;
        of_chunk[i - first] = rank;
        n_pairs += rank >= 0;
    }
    __device__ __forceinline__ void
    test_leaf_records(const struct points_in_rings_query &q, int64_t i,
                      struct oj_ring_place *place)
    {
        int32_t n = 0, only = OJ_RING_NONE, rank;
        uint32_t start = place->at;
        while ((rank = next_rank_or_unsure(q, place)) >= 0)
        {
            only = rank;
            n++;
        }
        if (rank == OJ_RING_UNSURE)
        {
            append_doubtful_point(q, i, start);
            of_chunk[i - first] = DOUBTED;
        }
        else if (i >= 0)
        {
            of_chunk[i - first] = n > 1 ? -1 - n : only;
            n_pairs += (unsigned)n;
        }
    }
};

struct few_settler
{
    struct chunk_pair_counts to;

    __device__ __forceinline__ void
    resolve_doubtful_points(const struct points_in_rings_query &q, int64_t i,
                            double x, double y,
                            struct oj_ring_place *place) const
    {
        int64_t chunk = i / CHUNK, at = chunk * CHUNK;
        int round = (int)(i % CHUNK / LANES), lane = (int)(i % LANES);
        int32_t n = 0, only = OJ_RING_NONE, rank;
        while ((rank = next_rank_exactly(q, x, y, place)) >= 0)
        {
            only = rank;
            n++;
        }
        for (int r = 0; r < round; r++)
            at += __popc(to.some[chunk * ROUNDS + r]);
        at += __popc(to.some[chunk * ROUNDS + round] & ((1u << lane) - 1u));
        to.few[at] = n > 1 ? -1 - n : only;
        if (n > 0)
            atomicAdd(&to.sum[chunk], (unsigned long long)n);
    }
};

static __global__ void __launch_bounds__(BLOCK, RESIDENT)
    count_pairs(const __grid_constant__ struct points_in_rings_query q,
                int64_t n_chunks, struct chunk_pair_counts to)
{
    int64_t chunk = warp_in_grid(), at = chunk * CHUNK;
    struct pair_counter answer = {shared_ranks_of_chunk(), at, 0};
    if (chunk >= n_chunks)
        return;
    locate_chunk_of_points<true>(q, chunk, answer);
    for (int step = LANES / 2; step > 0; step /= 2)
        answer.n_pairs += __shfl_xor_sync(ALL_LANES, answer.n_pairs, step);
    if (lane_in_warp() == 0)
        to.sum[chunk] = answer.n_pairs;
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
    {
        int32_t few = answer.of_chunk[r * LANES + lane_in_warp()];
        unsigned some = __ballot_sync(ALL_LANES, few != OJ_RING_NONE);
        if (few != OJ_RING_NONE)
            to.few[at + __popc(some & ((1u << lane_in_warp()) - 1u))] = few;
        if (lane_in_warp() == 0)
            to.some[chunk * ROUNDS + r] = some;
        at += __popc(some);
    }
}

/* Returns the exclusive prefix sum, over the warp, of the pairs of each lane's
 * two points; *all becomes the total. */
static __device__ __forceinline__ int64_t prefix_sum_over_warp(int64_t first,
                                                               int64_t second,
                                                               int64_t *all)
{
    unsigned lane = lane_in_warp();
    int64_t n = first + second, sum = n;
    if (!__any_sync(ALL_LANES, first > 1 || second > 1))
    {
        unsigned ones = __ballot_sync(ALL_LANES, first != 0);
        unsigned others = __ballot_sync(ALL_LANES, second != 0);
        unsigned below = (1u << lane) - 1u;
        *all = __popc(ones) + __popc(others);
        return __popc(ones & below) + __popc(others & below);
    }
    for (unsigned step = 1; step < LANES; step *= 2)
    {
        int64_t before = __shfl_up_sync(ALL_LANES, sum, step);
        if (lane >= step)
            sum += before;
    }
    *all = __shfl_sync(ALL_LANES, sum, LANES - 1);
    return sum - n;
}

/* Returns the number of pairs of a point from its entry of
 * chunk_pair_counts.few: 1 for a rank (>= 0), otherwise -1 - entry. */
static __device__ __forceinline__ int64_t decode_pair_count(int32_t few)
{
    return few >= 0 ? 1 : -1 - (int64_t)few;
}

/* Writes offsets and single pairs. A thread takes two adjacent points, so that
 * their offsets are stored at once. All loads precede all stores, so that no
 * load waits for another. */
static __global__ void __launch_bounds__(BLOCK, RESIDENT)
    write_offsets_and_single_pairs(
        const __grid_constant__ struct points_in_rings_query q,
        int64_t n_chunks, const struct chunk_pair_counts from, int64_t *offset,
        int32_t *row, struct several several)
{
    int64_t chunk = warp_in_grid(), at, few = chunk * CHUNK;
    uint32_t some[ROUNDS], shift = 2 * lane_in_warp() % LANES;
    /* Entries of `few` of this lane's points; ranks are then replaced by
     * ordinals. */
    int32_t known[ROUNDS];
    int has_several = 0;
    if (chunk >= n_chunks)
        return;
    at = (int64_t)from.sum[chunk];
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
        some[r] = from.some[chunk * ROUNDS + r];
#pragma unroll
    for (int r = 0; r < ROUNDS; r += 2)
    {
        uint32_t mine = lane_in_warp() < LANES / 2 ? some[r] : some[r + 1];
        int64_t next = few + __popc(mine & ((1u << shift) - 1u)) +
                       (lane_in_warp() < LANES / 2 ? 0 : __popc(some[r]));
        known[r] = known[r + 1] = OJ_RING_NONE;
        if (mine >> shift & 1u)
            known[r] = from.few[next++];
        if (mine >> shift & 2u)
            known[r + 1] = from.few[next];
        few += __popc(some[r]) + __popc(some[r + 1]);
    }
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
    {
        has_several |= known[r] < OJ_RING_NONE;
        known[r] = ordinal_of_rank(q.ordinal_of, known[r]);
    }
#pragma unroll
    for (int r = 0; r < ROUNDS; r += 2)
    {
        int64_t i = chunk * CHUNK + r * LANES + 2 * lane_in_warp(), all, before;
        int64_t n = decode_pair_count(known[r]);
        before =
            at + prefix_sum_over_warp(n, decode_pair_count(known[r + 1]), &all);
        at += all;
        if (i + 1 < q.n)
            *(uint4 *)&offset[i] = make_uint4(
                (uint32_t)before, (uint32_t)(before >> 32),
                (uint32_t)(before + n), (uint32_t)((before + n) >> 32));
        else if (i < q.n)
            offset[i] = before;
        if (known[r] >= 0)
            row[before] = known[r];
        if (known[r + 1] >= 0)
            row[before + n] = known[r + 1];
    }
    if (lane_in_warp() == 0 && chunk == n_chunks - 1)
        offset[q.n] = at;
    if (__any_sync(ALL_LANES, has_several) && lane_in_warp() == 0)
        several.chunk[atomicAdd(several.n, 1u)] = (uint32_t)chunk;
}

/* Writes the pairs of points in several polygons. This is a separate kernel,
 * because the second search needs many registers. */
static __global__ void write_points_in_several_polygons(
    const __grid_constant__ struct points_in_rings_query q,
    const struct chunk_pair_counts from, const int64_t *offset, int32_t *row,
    const struct several several)
{
    for (int64_t k = warp_in_grid(); k < *several.n;
         k += (int64_t)gridDim.x * (BLOCK / LANES))
    {
        int64_t chunk = several.chunk[k], few = chunk * CHUNK;
        for (int r = 0; r < ROUNDS; r++)
        {
            int64_t i = chunk * CHUNK + r * LANES + lane_in_warp();
            uint32_t some = from.some[chunk * ROUNDS + r];
            uint32_t before = __popc(some & ((1u << lane_in_warp()) - 1u));
            if ((some >> lane_in_warp() & 1u) &&
                from.few[few + before] < OJ_RING_NONE)
            {
                double x = q.x[i], y = q.y[i];
                struct oj_ring_place place;
                oj_ring_tree_find(&q.tree, x, y, &place);
                for (int64_t p = offset[i]; p < offset[i + 1]; p++)
                    row[p] = ordinal_of_rank(
                        q.ordinal_of, next_rank_exactly(q, x, y, &place));
            }
            few += __popc(some);
        }
    }
}

/* Counts the pairs of all chunks, slice by slice; a slice consists of whole
 * chunks. */
static oj_status
count_pairs_of_all_chunks(struct oj_cuda_work *work,
                          const struct points_in_rings_query *all,
                          const struct chunk_pair_counts *to)
{
    return run_for_each_slice_of_points(
        work, all,
        [&](const struct points_in_rings_query &q, int64_t first) -> oj_status
        {
            int64_t n_chunks = count_chunks(q.n);
            struct chunk_pair_counts here = {to->some + first / LANES,
                                             to->few + first,
                                             to->sum + first / CHUNK};
            OJ_TRY(
                work->launch_blocks<BLOCK>(blocks_needed_for_chunks(n_chunks),
                                           count_pairs, q, n_chunks, here));
            return resolve_doubtful_points(work, q, few_settler{here});
        });
}

static oj_status list_pairs(const struct oj_cuda_index *index,
                            struct oj_cuda_listing *l)
{
    struct points_in_rings_query q = make_query_of_batch(index, l->points);
    struct chunk_pair_counts found;
    int64_t n = l->points->n, n_chunks = count_chunks(n);
    int64_t *offset = l->out.offset.data;
    struct several several;
    if (n == 0)
        return l->clear(offset, 1);
    OJ_TRY(l->make(n_chunks * ROUNDS, &found.some));
    OJ_TRY(l->make(n_chunks * CHUNK, &found.few));
    OJ_TRY(l->make(n_chunks + 1, &found.sum));
    OJ_TRY(l->make(n_chunks, &several.chunk));
    OJ_TRY(l->allocate_zeros(1, &several.n));
    OJ_TRY(l->clear(found.sum + n_chunks, 1));
    OJ_TRY(allocate_doubtful_points(l, &q));
    OJ_TRY(count_pairs_of_all_chunks(l, &q, &found));
    OJ_TRY(l->scan(found.sum, n_chunks));
    OJ_TRY(l->read(found.sum + n_chunks, &l->out.n_pairs));
    OJ_TRY(l->fail_if_too_many_pairs());
    OJ_TRY(l->allocate_pairs(0));
    OJ_TRY(l->launch_blocks<BLOCK>(blocks_needed_for_chunks(n_chunks),
                                   write_offsets_and_single_pairs, q, n_chunks,
                                   found, offset, l->out.row.data, several));
    return l->launch_blocks<BLOCK>(2 * (unsigned)l->device->n_processors,
                                   write_points_in_several_polygons, q, found,
                                   offset, l->out.row.data, several);
}

/* --- pairs added up per feature, without writing them --------------------- */

/* Base class of answers that add up pairs. The derived class Own has add(q, i,
 * rank), which all lanes of a warp call, with a negative rank if they have no
 * pair, and add_one(q, i, rank). */
template <typename Own> struct adding_answer
{
    __device__ __forceinline__ const Own &derived_answer() const
    {
        return *(const Own *)this;
    }
    __device__ __forceinline__ void
    accept_decided_point(const struct points_in_rings_query &q, int64_t i,
                         int32_t rank) const
    {
        derived_answer().add(q, i, rank);
    }
    __device__ __forceinline__ void
    test_leaf_records(const struct points_in_rings_query &q, int64_t i,
                      struct oj_ring_place *place) const
    {
        int32_t rank = next_rank_or_unsure(q, place);
        while (__any_sync(ALL_LANES, rank >= 0))
        {
            derived_answer().add(q, i, rank);
            if (rank >= 0)
                rank = next_rank_or_unsure(q, place);
        }
        if (rank == OJ_RING_UNSURE)
            append_doubtful_point(q, i, place->at);
    }
    __device__ __forceinline__ void
    resolve_doubtful_points(const struct points_in_rings_query &q, int64_t i,
                            double x, double y,
                            struct oj_ring_place *place) const
    {
        int32_t rank;
        while ((rank = next_rank_exactly(q, x, y, place)) >= 0)
            derived_answer().add_one(q, i, rank);
    }
};

/* Passes each point and the features that contain it to answer, which adds them
 * up. `resident` is the minimum number of blocks per multiprocessor. It is
 * lower than for the query alone, because adding values needs further
 * registers. */
template <int resident, typename answer_t>
static __global__ void __launch_bounds__(BLOCK, resident)
    add_pairs_by_feature(const __grid_constant__ struct points_in_rings_query q,
                         const __grid_constant__ answer_t answer)
{
    locate_chunk_of_points(q, warp_in_grid(), answer);
}

/* Maximum number of join features for which a block counts in shared memory. */
#define SHARED_COUNTS 4096

/* Counts pairs per feature; if features are few, each block first counts in
 * shared memory, by rank. */
template <typename count_t>
struct count_answer : adding_answer<count_answer<count_t>>
{
    const int32_t *ordinal_of; /* NULL if count is the block's, which is indexed
                                  by rank */
    count_t *count;

    __host__ __device__ __forceinline__ count_answer(const int32_t *of,
                                                     count_t *to)
        : ordinal_of(of), count(to)
    {
    }

    /* Counts the pairs of a warp: one addition for all lanes with equal
     * features. */
    __device__ __forceinline__ void add(const struct points_in_rings_query &,
                                        int64_t, int32_t rank) const
    {
        unsigned some = __ballot_sync(ALL_LANES, rank >= 0);
        if (rank >= 0)
        {
            unsigned same = __match_any_sync(some, rank);
            if ((int)lane_in_warp() == __ffs((int)same) - 1)
                atomicAdd(&count[ordinal_of_rank(ordinal_of, rank)],
                          (count_t)__popc(same));
        }
    }
    __device__ __forceinline__ void
    add_one(const struct points_in_rings_query &, int64_t, int32_t rank) const
    {
        atomicAdd(&count[ordinal_of_rank(ordinal_of, rank)], (count_t)1);
    }
};

typedef struct count_answer<unsigned long long> count_all_answer;

static __global__ void __launch_bounds__(BLOCK, RESIDENT)
    count_pairs_in_shared_memory(
        const __grid_constant__ struct points_in_rings_query q,
        int32_t n_features, int64_t n_chunks, unsigned long long *count)
{
    __shared__ unsigned of_block[SHARED_COUNTS];
    struct count_answer<unsigned> answer(NULL, of_block);
    for (int f = (int)threadIdx.x; f < n_features; f += BLOCK)
        of_block[f] = 0;
    __syncthreads();
    for (int64_t chunk = warp_in_grid(); chunk < n_chunks;
         chunk += (int64_t)gridDim.x * (BLOCK / LANES))
    {
        locate_chunk_of_points(q, chunk, answer);
        __syncwarp();
    }
    __syncthreads();
    for (int f = (int)threadIdx.x; f < n_features; f += BLOCK)
    {
        if (of_block[f] > 0)
            atomicAdd(&count[ordinal_of_rank(q.ordinal_of, f)],
                      (unsigned long long)of_block[f]);
    }
}

/* Minimum number of lanes with equal features that the warp sums first, before
 * one lane adds the sum. */
#define TOGETHER 8

#define SUMS_RESIDENT 4

static __device__ __forceinline__ int64_t sum_of_warp(int64_t x)
{
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(ALL_LANES, x, step);
    return x;
}

/* Adds point i of each lane in the mask members to the words of one feature.
 * All lanes of a warp must call it. */
static __device__ __forceinline__ void
add_warp_sums(const struct oj_sum_request &request, int64_t i, unsigned members,
              unsigned long long *words)
{
    bool member = (members >> lane_in_warp() & 1u) != 0;
    bool leads = (int)lane_in_warp() == __ffs((int)members) - 1;
    if (leads)
        atomicAdd(&words[0], (unsigned long long)__popc(members));
    for (int c = 0; c < request.n_columns; c++)
    {
        const struct oj_sum_column &column = request.column[c];
        bool has = member && has_value(column, i);
        unsigned having = __ballot_sync(ALL_LANES, has);
        enum oj_limb_kind kind = OJ_LIMBS_NONE;
        struct oj_limbs limbs = {0, {0, 0, 0}};
        if (leads && column.n_at > 0 && having != 0)
            atomicAdd(&words[column.n_at], (unsigned long long)__popc(having));
        if (!is_column_summed(column))
            continue;
        if (has)
            kind = split_value_into_limbs(column, i, &limbs);
        if (kind > OJ_LIMBS_DIGITS)
            count_nan_or_infinity(column, kind, words);
        for (int k = 0; k < column.n_limbs; k++)
        {
            int64_t digit =
                kind == OJ_LIMBS_DIGITS ? oj_limbs_digit(&limbs, k) : 0;
            if (!__any_sync(ALL_LANES, digit != 0))
                continue;
            digit = sum_of_warp(digit);
            if (leads && digit != 0)
                atomicAdd(&words[column.limb_at + k],
                          (unsigned long long)digit);
        }
    }
}

struct sum_answer : adding_answer<sum_answer>
{
    struct oj_cuda_tally tally;

    sum_answer(const struct oj_cuda_tally &to) : tally(to)
    {
    }
    __device__ __forceinline__ unsigned long long *
    sum_words_of_rank(const struct points_in_rings_query &q, int32_t rank) const
    {
        return sum_words_of_feature(tally, ordinal_of_rank(q.ordinal_of, rank));
    }
    __device__ __forceinline__ void add(const struct points_in_rings_query &q,
                                        int64_t i, int32_t rank) const
    {
        unsigned some = __ballot_sync(ALL_LANES, rank >= 0), same = 0, many;
        if (rank >= 0)
            same = __match_any_sync(some, rank);
        many = __ballot_sync(ALL_LANES, __popc(same) >= TOGETHER);
        if (rank >= 0 && __popc(same) < TOGETHER)
            add_one(q, i, rank);
        while (many != 0)
        {
            int first = __ffs((int)many) - 1;
            unsigned members = __shfl_sync(ALL_LANES, same, first);
            int32_t theirs = __shfl_sync(ALL_LANES, rank, first);
            add_warp_sums(tally.request, i, members,
                          sum_words_of_rank(q, theirs));
            many &= ~members;
        }
    }
    __device__ __forceinline__ void
    add_one(const struct points_in_rings_query &q, int64_t i,
            int32_t rank) const
    {
        add_pair_to_feature_sums(tally.request, i, sum_words_of_rank(q, rank));
    }
};

static oj_status count_points_per_polygon(struct oj_cuda_work *work,
                                          int64_t n_features,
                                          const struct points_in_rings_query &q,
                                          unsigned long long *d_count)
{
    count_all_answer answer(q.ordinal_of, d_count);
    int64_t n_chunks = count_chunks(q.n),
            blocks = blocks_needed_for_chunks(n_chunks);
    int64_t most = 4 * RESIDENT * (int64_t)work->device->n_processors;
    if (n_features <= SHARED_COUNTS)
        OJ_TRY(work->launch_blocks<BLOCK>(
            (unsigned)(blocks < most ? blocks : most),
            count_pairs_in_shared_memory, q, (int32_t)n_features, n_chunks,
            d_count));
    else
        OJ_TRY(work->launch_blocks<BLOCK>(
            (unsigned)blocks, add_pairs_by_feature<RESIDENT, count_all_answer>,
            q, answer));
    return resolve_doubtful_points(work, q, answer);
}

static oj_status sum_columns_per_polygon(struct oj_cuda_work *work,
                                         const struct points_in_rings_query &q,
                                         const struct oj_cuda_tally &tally)
{
    struct sum_answer answer(tally);
    OJ_TRY(work->launch_blocks<BLOCK>(
        blocks_needed_for_chunks(count_chunks(q.n)),
        add_pairs_by_feature<SUMS_RESIDENT, sum_answer>, q, answer));
    return resolve_doubtful_points(work, q, answer);
}

static oj_status sum_or_count_points_in_polygons(
    const struct oj_cuda_index *index, struct oj_cuda_work *work,
    const struct oj_cuda_points *points, const struct oj_cuda_tally *tally)
{
    return run_for_slices_with_doubts(
        work, make_query_of_batch(index, points),
        [&](const struct points_in_rings_query &q, int64_t first)
        {
            if (tally->request.n_words == 1)
                return count_points_per_polygon(work, index->layer->n_features,
                                                q, tally->words);
            return sum_columns_per_polygon(
                work, q, view_tally_of_point_slice(*tally, first));
        });
}

const struct oj_cuda_family oj_cuda_points_in_polygons = {
    "points in cells of polygons",
    oj_is_points_in_polygons,
    sizeof(struct polygons_index),
    build_polygon_cells,
    0,
    NULL,
    batch_bytes,
    NULL,
    list_pairs,
    sum_or_count_points_in_polygons,
};
