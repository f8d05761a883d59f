#include "cuda_around.h"

#include "../within/cuda_point_query.cuh"

/* Blocks for the points in doubt, which are few. */
#define DOUBT_BLOCKS 264

/* ties: 1 for OJ_RING_ALL_PARTS. */
template <int ties> struct around_answer
{
    int32_t *of_chunk;
    int64_t first;

    __device__ __forceinline__ void sure(const struct points_in_rings_query &,
                                         int64_t i, int32_t found)
    {
        if (i >= 0)
            of_chunk[i - first] = found;
    }

    /* A part that holds the point. 1 when no other one matters. */
    static __device__ __forceinline__ int add(int32_t feature, int32_t *found)
    {
        if (*found < 0)
            *found = feature;
        else if (feature != *found)
            *found |= OJ_NEAR_TIED;
        return !ties || (*found & OJ_NEAR_TIED) != 0;
    }

    /* Parts in tie order. */
    __device__ __forceinline__ void ask(const struct points_in_rings_query &q,
                                        int64_t i, struct oj_ring_place *place)
    {
        const struct oj_ring_tree *t = &q.tree;
        int32_t found = OJ_RING_NONE;
        uint32_t unit, end;
        while (place->at < place->end)
        {
            int location = oj_ring_tree_next_surely(t, place, &unit, &end);
            if (location == OJ_RING_UNSURE)
            {
                put_doubt(q, i, place->at);
                return;
            }
            if (location != OJ_OUTSIDE && add(t->part_feature[unit], &found))
                break;
        }
        if (i >= 0)
            of_chunk[i - first] = found;
    }
};

/* Doubts are few: what is around such a point counts as one of several. */
template <int ties> struct around_settler
{
    int32_t *rank;

    __device__ __forceinline__ void
    settle(const struct points_in_rings_query &q, int64_t i, double x, double y,
           struct oj_ring_place *place)
    {
        int32_t found = oj_ring_tree_first_around(&q.tree, x, y);
        (void)place;
        rank[i] = ties && found >= 0 ? found | OJ_NEAR_TIED : found;
    }
};

template <int ties>
static __global__ void __launch_bounds__(BLOCK, RESIDENT)
    find_around(const __grid_constant__ struct points_in_rings_query q,
                int32_t *rank)
{
    int64_t chunk = warp_of(), first = chunk * CHUNK;
    struct around_answer<ties> answer =
    {
        ranks_of_chunk(), first
    };
    ask_chunk(q, chunk, answer);
    for (int64_t k = lane_of(); k < CHUNK && first + k < q.n; k += LANES)
        rank[first + k] = answer.of_chunk[k];
}

template <int ties>
static __global__ void
settle_around(const __grid_constant__ struct points_in_rings_query q,
              int32_t *rank)
{
    struct around_settler<ties> answer =
    {
        rank
    };
    settle_doubts(q, answer);
}

template <int ties>
static oj_status ask_around(cudaStream_t stream,
                            const struct points_in_rings_query &q,
                            int32_t *rank, struct oj_error *err)
{
    find_around<ties>
        <<<blocks_of_chunks(chunks_of(q.n)), BLOCK, 0, stream>>>(q, rank);
    settle_around<ties><<<DOUBT_BLOCKS, BLOCK, 0, stream>>>(q, rank);
    OJ_CUDA_TRY_LAUNCH("joining", err);
    return OJ_OK;
}

oj_status oj_cuda_find_around(struct oj_cuda_device *device,
                              const struct oj_cuda_ring_cells *cells,
                              cudaStream_t stream,
                              const struct oj_cuda_points *points,
                              int32_t *rank, struct oj_error *err)
{
    struct points_in_rings_query all = {};
    all.tree = cells->tree;
    all.accepted = 1u << OJ_INSIDE | 1u << OJ_ON_BOUNDARY;
    all.n = points->n;
    all.x = points->x;
    all.y = points->y;
    return ask_slices(
        device, stream, all,
        [&](const struct points_in_rings_query &q, int64_t first)
        {
            return cells->tree.units == OJ_RING_ALL_PARTS
                       ? ask_around<1>(stream, q, rank + first, err)
                       : ask_around<0>(stream, q, rank + first, err);
        },
        err);
}

int64_t oj_cuda_around_bytes(int64_t n)
{
    return (n < SLICE ? n : SLICE) * (int64_t)sizeof(struct doubt) + 4096;
}
