/** The pairs of points with the features that they are in, as lists. */
#ifndef CUDA_POINT_LISTS_CUH
#define CUDA_POINT_LISTS_CUH

#include "cuda_point_query.cuh"

/* What is known of a chunk's points before there is room for their pairs: a bit
 * for each that may have some, and for those, in their order from the chunk's
 * place on, the rank of the only pair (>= 0), or -1 - the number of pairs. */
struct found
{
    uint32_t *some;          /* [ROUNDS] of each chunk, a bit for each lane */
    int32_t *few;            /* [CHUNK] of each chunk */
    unsigned long long *sum; /* of each chunk: pairs */
    unsigned long long *several; /* 1: a point has more than one pair */
};

/* In the place of a rank, until it is settled. */
#define DOUBTED INT32_MIN

struct few_answer
{
    int32_t *of_chunk;
    int64_t first;
    unsigned long long n_pairs;
    int has_several;

    __device__ __forceinline__ void sure(const struct query &, int64_t i,
                                         int32_t rank)
    {
        if (i < 0)
            return;
        of_chunk[i - first] = rank;
        n_pairs += rank >= 0;
    }
    __device__ __forceinline__ void ask(const struct query &q, int64_t i,
                                        struct oj_ring_place *place)
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
            has_several |= n > 1;
        }
    }
};

struct few_settler
{
    struct found to;

    __device__ __forceinline__ void settle(const struct query &q, int64_t i,
                                           double x, double y,
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
        if (n > 1)
            *to.several = 1;
        if (n > 0)
            atomicAdd(&to.sum[chunk], (unsigned long long)n);
    }
};

static __global__ void __launch_bounds__(BLOCK, RESIDENT)
    count_pairs(const __grid_constant__ struct query q, int64_t n_chunks,
                struct found to)
{
    int64_t chunk = warp_of(), at = chunk * CHUNK;
    struct few_answer answer = {ranks_of_chunk(), at, 0, 0};
    if (chunk >= n_chunks)
        return;
    ask_chunk(q, chunk, answer);
    for (int step = LANES / 2; step > 0; step /= 2)
        answer.n_pairs += __shfl_xor_sync(ALL_LANES, answer.n_pairs, step);
    if (lane_of() == 0)
        to.sum[chunk] = answer.n_pairs;
    if (answer.has_several)
        *to.several = 1;
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

static __global__ void settle_pairs(const __grid_constant__ struct query q,
                                    struct found to)
{
    struct few_settler answer = {to};
    settle_doubts(q, answer);
}

/* Pairs of the lanes before this one, and of all lanes. */
static __device__ __forceinline__ int64_t scan_lanes(int64_t n, int64_t *all)
{
    unsigned lane = lane_of();
    int64_t sum = n;
    if (!__any_sync(ALL_LANES, n > 1))
    {
        unsigned ones = __ballot_sync(ALL_LANES, n != 0);
        *all = __popc(ones);
        return __popc(ones & ((1u << lane) - 1u));
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

static __global__ void __launch_bounds__(BLOCK, RESIDENT)
    put_pairs(const __grid_constant__ struct query q, int64_t n_chunks,
              const struct found from, int64_t *offset, int32_t *row)
{
    int64_t chunk = warp_of(), at, few = chunk * CHUNK;
    uint32_t some[ROUNDS];
    if (chunk >= n_chunks)
        return;
    at = (int64_t)from.sum[chunk];
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
        some[r] = from.some[chunk * ROUNDS + r];
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
    {
        int64_t i = chunk * CHUNK + r * LANES + lane_of(), n, all, before;
        int32_t only = OJ_RING_NONE;
        if (some[r] >> lane_of() & 1u)
            only = from.few[few + __popc(some[r] & ((1u << lane_of()) - 1u))];
        few += __popc(some[r]);
        n = only >= 0 ? 1 : -1 - (int64_t)only;
        before = at + scan_lanes(n, &all);
        at += all;
        if (i >= q.n)
            continue;
        offset[i] = before;
        if (i == q.n - 1)
            offset[q.n] = before + n;
        if (only >= 0)
            row[before] = ordinal(q.ordinal_of, only);
    }
}

/* The rows of points that have several; a kernel of its own, since asking again
 * takes many registers. */
static __global__ void put_several(const __grid_constant__ struct query q,
                                   int64_t n_chunks, const struct found from,
                                   const int64_t *offset, int32_t *row)
{
    int64_t chunk = warp_of(), few = chunk * CHUNK;
    if (chunk >= n_chunks)
        return;
    for (int r = 0; r < ROUNDS; r++)
    {
        int64_t i = chunk * CHUNK + r * LANES + lane_of();
        uint32_t some = from.some[chunk * ROUNDS + r];
        uint32_t before = __popc(some & ((1u << lane_of()) - 1u));
        if ((some >> lane_of() & 1u) && from.few[few + before] < OJ_RING_NONE)
        {
            double x = q.x[i], y = q.y[i];
            struct oj_ring_place place;
            oj_ring_tree_find(&q.tree, x, y, &place);
            for (int64_t k = offset[i]; k < offset[i + 1]; k++)
                row[k] = ordinal(q.ordinal_of, next(q, x, y, &place));
        }
        few += __popc(some);
    }
}

#endif
