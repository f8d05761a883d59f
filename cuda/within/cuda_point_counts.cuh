/** Points counted by the features that they are in, without writing pairs. */
#ifndef CUDA_POINT_COUNTS_CUH
#define CUDA_POINT_COUNTS_CUH

#include "cuda_point_query.cuh"

/* Join features whose counts fit into the shared memory of a block. */
#define SHARED_COUNTS 4096

/* Lanes that count for one feature do it once. rank < 0: none. */
template <typename count_t>
static __device__ __forceinline__ void add_for_warp(int32_t rank, int64_t at,
                                                    count_t *count)
{
    unsigned some = __ballot_sync(ALL_LANES, rank >= 0);
    if (rank >= 0)
    {
        unsigned same = __match_any_sync(some, rank);
        if ((int)lane_of() == __ffs((int)same) - 1)
            atomicAdd(&count[at], (count_t)__popc(same));
    }
}

/* Few: every block counts for itself first, by rank. */
template <typename count_t> struct count_answer
{
    const int32_t *ordinal_of; /* NULL for the count of a block */
    count_t *count;

    __device__ __forceinline__ void add(int32_t rank)
    {
        add_for_warp(rank, ordinal(ordinal_of, rank), count);
    }
    __device__ __forceinline__ void sure(const struct points_in_rings_query &,
                                         int64_t, int32_t rank)
    {
        add(rank);
    }
    __device__ __forceinline__ void ask(const struct points_in_rings_query &q,
                                        int64_t i, struct oj_ring_place *place)
    {
        int32_t rank = next_surely(q, place);
        while (__any_sync(ALL_LANES, rank >= 0))
        {
            add(rank);
            if (rank >= 0)
                rank = next_surely(q, place);
        }
        if (rank == OJ_RING_UNSURE)
            put_doubt(q, i, place->at);
    }
    __device__ __forceinline__ void
    settle(const struct points_in_rings_query &q, int64_t, double x, double y,
           struct oj_ring_place *place)
    {
        int32_t rank;
        while ((rank = next(q, x, y, place)) >= 0)
            atomicAdd(&count[ordinal(ordinal_of, rank)], (count_t)1);
    }
};

static __global__ void __launch_bounds__(BLOCK, RESIDENT)
    count_by_feature(const __grid_constant__ struct points_in_rings_query q,
                     unsigned long long *count)
{
    struct count_answer<unsigned long long> answer =
    {
        q.ordinal_of, count
    };
    ask_chunk(q, warp_of(), answer);
}

static __global__ void
settle_counts(const __grid_constant__ struct points_in_rings_query q,
              unsigned long long *count)
{
    struct count_answer<unsigned long long> answer =
    {
        q.ordinal_of, count
    };
    settle_doubts(q, answer);
}

static __global__ void __launch_bounds__(BLOCK, RESIDENT)
    count_by_few(const __grid_constant__ struct points_in_rings_query q,
                 int32_t n_features, int64_t n_chunks,
                 unsigned long long *count)
{
    __shared__ unsigned of_block[SHARED_COUNTS];
    struct count_answer<unsigned> answer =
    {
        NULL, of_block
    };
    for (int f = (int)threadIdx.x; f < n_features; f += BLOCK)
        of_block[f] = 0;
    __syncthreads();
    for (int64_t chunk = warp_of(); chunk < n_chunks;
         chunk += (int64_t)gridDim.x * (BLOCK / LANES))
    {
        ask_chunk(q, chunk, answer);
        __syncwarp();
    }
    __syncthreads();
    for (int f = (int)threadIdx.x; f < n_features; f += BLOCK)
    {
        if (of_block[f] > 0)
            atomicAdd(&count[ordinal(q.ordinal_of, f)],
                      (unsigned long long)of_block[f]);
    }
}

#endif
