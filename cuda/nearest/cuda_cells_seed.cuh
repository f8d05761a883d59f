/** Segments into the cells that a build begins with (oj_near_seed.h). */
#ifndef CUDA_CELLS_SEED_CUH
#define CUDA_CELLS_SEED_CUH

#include "cuda_cells_round.cuh"

#include "oj_near_seed.h"

#define SEED_BLOCK 256
/* A segment that is in more cells than this ends the attempt, and so do more
 * cells a segment than that. Sums of lengths stay below 2^32. */
#define SEED_MOST_CELLS 31u
#define SEED_MEAN_CELLS 6u

struct seed
{
    int level; /* even */
    double x0, y0, per_cell, widen;
    int64_t n;
    const struct oj_cuda_segment *segment;
    uint32_t *cursor; /* of each cell: length, then end of its list */
};

static __device__ struct oj_near_cells_of seed_range(const struct seed &s,
                                                     double low, double high)
{
    return oj_near_seed_range(s.level, s.per_cell, s.widen, low, high);
}

/* Counts the segments of each cell, or lists them. */
template <int fill>
static __global__ void __launch_bounds__(SEED_BLOCK)
    seed_lists(struct seed s, uint32_t *id, struct oj_cells_counters *counters)
{
    int64_t i = (int64_t)blockIdx.x * SEED_BLOCK + threadIdx.x;
    uint32_t lane = threadIdx.x % 32, n = 0;
    struct oj_near_cells_of x = {0, 0}, y = {0, 0};
    if (i < s.n)
    {
        struct oj_cuda_segment g = s.segment[i];
        x = seed_range(s, fmin(g.ax, g.bx) - s.x0, fmax(g.ax, g.bx) - s.x0);
        y = seed_range(s, fmin(g.ay, g.by) - s.y0, fmax(g.ay, g.by) - s.y0);
        if (!fill && oj_near_is_lost(g.ax, g.ay, g.bx, g.by))
            counters->lost.n = 1;
        n = (x.last - x.first + 1) * (y.last - y.first + 1);
        if (n > SEED_MOST_CELLS)
        {
            counters->spread.n = 1;
            n = 0;
        }
    }
    for (uint32_t k = 0; __any_sync(FULL_WARP, k < n); k++)
    {
        uint32_t width = x.last - x.first + 1, base = 0;
        uint32_t cell = k < n ? oj_near_seed_cell(s.level, x.first + k % width,
                                                  y.first + k / width)
                              : UINT32_MAX;
        uint32_t peers = __match_any_sync(FULL_WARP, cell);
        int leader = __ffs((int)peers) - 1;
        if (k < n && (int)lane == leader)
            base = atomicAdd(&s.cursor[cell], (uint32_t)__popc(peers));
        base = __shfl_sync(FULL_WARP, base, leader);
        if (fill && k < n)
            id[base + (uint32_t)__popc(peers & ((1u << lane) - 1u))] =
                (uint32_t)i;
    }
}

/* The nodes of the cells, with room for their lists. */
static __global__ void __launch_bounds__(SEED_BLOCK)
    seed_nodes(struct seed s, struct oj_cells_round r)
{
    uint32_t cell = blockIdx.x * SEED_BLOCK + threadIdx.x;
    int lane = (int)(threadIdx.x % 32);
    uint32_t n = s.cursor[cell], sum = scan_warp(n, lane);
    uint32_t all = __shfl_sync(FULL_WARP, sum, 31);
    enum oj_cells_class mine = class_of(n);
    unsigned long long first = 0, at = 0;
    struct oj_near_node node = oj_near_seed_node(s.level, cell, n);
    if (lane == 0)
        first = atomicAdd(&r.counters->ids.n, (unsigned long long)all);
    first = __shfl_sync(FULL_WARP, first, 0) + sum - n;
    for (int k = 0; k < OJ_CELLS_CLASSES; k++)
    {
        uint32_t votes = __ballot_sync(FULL_WARP, n > 0 && mine == k);
        unsigned long long base = 0;
        if (lane == 0 && votes != 0)
            base = atomicAdd(&r.counters->nodes[k].n,
                             (unsigned long long)__popc(votes));
        base = __shfl_sync(FULL_WARP, base, 0);
        if (mine == k)
            at = base + (unsigned)__popc(votes & ((1u << lane) - 1u));
    }
    node.first = (uint32_t)first;
    s.cursor[cell] = node.first;
    if (n == 0)
        put_header(r, node.header, 0, oj_near_leaf_info(0, s.level, 127));
    else if (at < r.max_nodes[mine])
        r.next_node[mine][at] = node;
}

/* What is above the cells. */
static __global__ void __launch_bounds__(SEED_BLOCK)
    seed_headers(struct seed s, struct oj_cells_round r)
{
    uint32_t i = blockIdx.x * SEED_BLOCK + threadIdx.x;
    struct oj_near_header h;
    if (i >= oj_near_seed_above(s.level))
        return;
    h = oj_near_seed_header(i);
    put_header(r, i, h.first, h.info);
    if (i == 0)
        r.counters->headers.n = oj_near_seed_above(s.level + 2);
}

#endif
