/** Values of points summed by the features that they are in, without writing
 *  pairs. */
#ifndef CUDA_POINT_SUMS_CUH
#define CUDA_POINT_SUMS_CUH

#include "../index/cuda_value_sums.cuh"
#include "cuda_point_query.cuh"

/* Lanes of one feature that add up among themselves first; fewer each go to
 * memory. */
#define TOGETHER 8

/* Adding takes registers that the query does not. */
#define SUMS_RESIDENT 4

static __device__ __forceinline__ int64_t sum_of_warp(int64_t x)
{
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(ALL_LANES, x, step);
    return x;
}

/* Pairs of one feature, which has these words, with the points i of the lanes
 * that are members; for all lanes of a warp. */
static __device__ __forceinline__ void
add_together(const struct oj_sum_request &request, int64_t i, unsigned members,
             unsigned long long *words)
{
    bool member = (members >> lane_of() & 1u) != 0;
    bool leads = (int)lane_of() == __ffs((int)members) - 1;
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
        if (!is_summed(column))
            continue;
        if (has)
            kind = cut_value(column, i, &limbs);
        if (kind > OJ_LIMBS_DIGITS)
            add_odd(column, kind, words);
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

struct sum_answer
{
    const struct oj_cuda_tally *tally;

    __device__ __forceinline__ unsigned long long *
    words(const struct points_in_rings_query &q, int32_t rank)
    {
        return words_of(*tally, ordinal(q.ordinal_of, rank));
    }
    __device__ __forceinline__ void add(const struct points_in_rings_query &q,
                                        int64_t i, int32_t rank)
    {
        unsigned some = __ballot_sync(ALL_LANES, rank >= 0), same = 0, many;
        if (rank >= 0)
            same = __match_any_sync(some, rank);
        many = __ballot_sync(ALL_LANES, __popc(same) >= TOGETHER);
        if (rank >= 0 && __popc(same) < TOGETHER)
            add_pair(tally->request, i, words(q, rank));
        while (many != 0)
        {
            int first = __ffs((int)many) - 1;
            unsigned members = __shfl_sync(ALL_LANES, same, first);
            int32_t theirs = __shfl_sync(ALL_LANES, rank, first);
            add_together(tally->request, i, members, words(q, theirs));
            many &= ~members;
        }
    }
    __device__ __forceinline__ void sure(const struct points_in_rings_query &q,
                                         int64_t i, int32_t rank)
    {
        add(q, i, rank);
    }
    __device__ __forceinline__ void ask(const struct points_in_rings_query &q,
                                        int64_t i, struct oj_ring_place *place)
    {
        int32_t rank = next_surely(q, place);
        while (__any_sync(ALL_LANES, rank >= 0))
        {
            add(q, i, rank);
            if (rank >= 0)
                rank = next_surely(q, place);
        }
        if (rank == OJ_RING_UNSURE)
            put_doubt(q, i, place->at);
    }
    __device__ __forceinline__ void
    settle(const struct points_in_rings_query &q, int64_t i, double x, double y,
           struct oj_ring_place *place)
    {
        int32_t rank;
        while ((rank = next(q, x, y, place)) >= 0)
            add_pair(tally->request, i, words(q, rank));
    }
};

static __global__ void __launch_bounds__(BLOCK, SUMS_RESIDENT)
    sum_by_feature(const __grid_constant__ struct points_in_rings_query q,
                   const __grid_constant__ struct oj_cuda_tally tally)
{
    struct sum_answer answer = {&tally};
    ask_chunk(q, warp_of(), answer);
}

static __global__ void
settle_sums(const __grid_constant__ struct points_in_rings_query q,
            const __grid_constant__ struct oj_cuda_tally tally)
{
    struct sum_answer answer = {&tally};
    settle_doubts(q, answer);
}

#endif
