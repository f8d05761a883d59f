/** The pairs of points with the features that they are in, as lists. */
#ifndef CUDA_POINT_LISTS_CUH
#define CUDA_POINT_LISTS_CUH

#include "cuda_point_query.cuh"

/* What is known of a chunk's points before there is room for their pairs: a bit
 * for each that may have some, and for those, in their order from the chunk's
 * place on, the rank of the only pair (>= 0), or -1 - the number of pairs. */
struct chunk_pair_counts
{
    uint32_t *some;          /* [ROUNDS] of each chunk, a bit for each lane */
    int32_t *few;            /* [CHUNK] of each chunk */
    unsigned long long *sum; /* of each chunk: pairs */
};

/* Chunks with a point that has more than one pair. */
struct several
{
    uint32_t *chunk; /* [chunks] */
    unsigned *n;
};

/* In the place of a rank, until it is settled. */
#define DOUBTED INT32_MIN

struct few_answer
{
    int32_t *of_chunk;
    int64_t first;
    unsigned long long n_pairs;

    __device__ __forceinline__ void sure(const struct points_in_rings_query &,
                                         int64_t i, int32_t rank)
    {
        if (i < 0)
            return;
        of_chunk[i - first] = rank;
        n_pairs += rank >= 0;
    }
    __device__ __forceinline__ void ask(const struct points_in_rings_query &q,
                                        int64_t i, struct oj_ring_place *place)
    {
        int32_t n = 0, only = OJ_RING_NONE, rank;
        uint32_t start = place->at;
        while ((rank = next_surely(q, place)) >= 0)
        {
            only = rank;
            n++;
        }
        if (rank == OJ_RING_UNSURE)
        {
            put_doubt(q, i, start);
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
    settle(const struct points_in_rings_query &q, int64_t i, double x, double y,
           struct oj_ring_place *place)
    {
        int64_t chunk = i / CHUNK, at = chunk * CHUNK;
        int round = (int)(i % CHUNK / LANES), lane = (int)(i % LANES);
        int32_t n = 0, only = OJ_RING_NONE, rank;
        while ((rank = next(q, x, y, place)) >= 0)
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
    int64_t chunk = warp_of(), at = chunk * CHUNK;
    struct few_answer answer = {ranks_of_chunk(), at, 0};
    if (chunk >= n_chunks)
        return;
    ask_chunk<true>(q, chunk, answer);
    for (int step = LANES / 2; step > 0; step /= 2)
        answer.n_pairs += __shfl_xor_sync(ALL_LANES, answer.n_pairs, step);
    if (lane_of() == 0)
        to.sum[chunk] = answer.n_pairs;
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
    {
        int32_t few = answer.of_chunk[r * LANES + lane_of()];
        unsigned some = __ballot_sync(ALL_LANES, few != OJ_RING_NONE);
        if (few != OJ_RING_NONE)
            to.few[at + __popc(some & ((1u << lane_of()) - 1u))] = few;
        if (lane_of() == 0)
            to.some[chunk * ROUNDS + r] = some;
        at += __popc(some);
    }
}

static __global__ void
settle_pairs(const __grid_constant__ struct points_in_rings_query q,
             struct chunk_pair_counts to)
{
    struct few_settler answer = {to};
    settle_doubts(q, answer);
}

/* Pairs that a lane has of two points: those of the lanes before, and all. */
static __device__ __forceinline__ int64_t scan_lanes(int64_t first,
                                                     int64_t second,
                                                     int64_t *all)
{
    unsigned lane = lane_of();
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

/* Pairs of a point of which few is known. */
static __device__ __forceinline__ int64_t pairs_of(int32_t few)
{
    return few >= 0 ? 1 : -1 - (int64_t)few;
}

/* Two points of a thread lie side by side, so that their offsets are written as
 * one; all that is known is read before anything is written, so that reads do
 * not wait for one another. */
static __global__ void __launch_bounds__(BLOCK, RESIDENT)
    put_pairs(const __grid_constant__ struct points_in_rings_query q,
              int64_t n_chunks, const struct chunk_pair_counts from,
              int64_t *offset, int32_t *row, struct several several)
{
    int64_t chunk = warp_of(), at, few = chunk * CHUNK;
    uint32_t some[ROUNDS], shift = 2 * lane_of() % LANES;
    int32_t known[ROUNDS]; /* then ordinals, where it is a rank */
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
        uint32_t mine = lane_of() < LANES / 2 ? some[r] : some[r + 1];
        int64_t next = few + __popc(mine & ((1u << shift) - 1u)) +
                       (lane_of() < LANES / 2 ? 0 : __popc(some[r]));
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
        known[r] = ordinal(q.ordinal_of, known[r]);
    }
#pragma unroll
    for (int r = 0; r < ROUNDS; r += 2)
    {
        int64_t i = chunk * CHUNK + r * LANES + 2 * lane_of(), all, before;
        int64_t n = pairs_of(known[r]);
        before = at + scan_lanes(n, pairs_of(known[r + 1]), &all);
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
    if (lane_of() == 0 && chunk == n_chunks - 1)
        offset[q.n] = at;
    if (__any_sync(ALL_LANES, has_several) && lane_of() == 0)
        several.chunk[atomicAdd(several.n, 1u)] = (uint32_t)chunk;
}

/* The rows of points that have several; a kernel of its own, since asking again
 * takes many registers. */
static __global__ void
put_several(const __grid_constant__ struct points_in_rings_query q,
            const struct chunk_pair_counts from, const int64_t *offset,
            int32_t *row, const struct several several)
{
    for (int64_t k = warp_of(); k < *several.n;
         k += (int64_t)gridDim.x * (BLOCK / LANES))
    {
        int64_t chunk = several.chunk[k], few = chunk * CHUNK;
        for (int r = 0; r < ROUNDS; r++)
        {
            int64_t i = chunk * CHUNK + r * LANES + lane_of();
            uint32_t some = from.some[chunk * ROUNDS + r];
            uint32_t before = __popc(some & ((1u << lane_of()) - 1u));
            if ((some >> lane_of() & 1u) &&
                from.few[few + before] < OJ_RING_NONE)
            {
                double x = q.x[i], y = q.y[i];
                struct oj_ring_place place;
                oj_ring_tree_find(&q.tree, x, y, &place);
                for (int64_t p = offset[i]; p < offset[i + 1]; p++)
                    row[p] = ordinal(q.ordinal_of, next(q, x, y, &place));
            }
            few += __popc(some);
        }
    }
}

#endif
