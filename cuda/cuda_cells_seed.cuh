/** Where reaches are short, the first rounds find nothing to leave out but what
 *  is out of reach: then one step puts the segments into the cells of a lower
 *  level at once, by their boxes. */
#ifndef CUDA_CELLS_SEED_CUH
#define CUDA_CELLS_SEED_CUH

#include "cuda_cells_round.cuh"

#define SEED_BLOCK 256
/* A segment that is in more cells than this ends the attempt. Sums of lengths
 * stay below 2^32. */
#define SEED_MOST_CELLS 16u
/* Segments to a cell at least, and how much wider than the reach a cell is. */
#define SEED_SEGMENTS 16
#define SEED_REACHES 4.0

/* Cells are numbered by their way down the tree, four bits for two levels, so
 * that the children of a node follow each other. */
struct seed
{
    int level; /* even */
    double x0, y0, per_cell;
    double widen; /* reach, and what rounding may do */
    int64_t n;
    const struct oj_cuda_segment *segment;
    uint32_t *cursor; /* of each cell: length, then end of its list */
};

/* The level to begin with; below 4: not worth it. */
static int seed_level(const struct oj_near_square *square, int64_t n)
{
    int level = 0;
    while (level + 6 <= square->max_level && level < 12 &&
           ldexp(square->side, -level - 2) >= SEED_REACHES * square->reach &&
           ((int64_t)SEED_SEGMENTS << (2 * (level + 2))) <= n)
        level += 2;
    return level;
}

/* How many headers the levels above one have. */
static __host__ __device__ uint32_t seed_headers_above(int level)
{
    return ((1u << (2 * level)) - 1u) / 15u;
}

static __device__ uint32_t seed_cell(const struct seed &s, uint32_t ix,
                                     uint32_t iy)
{
    uint32_t cell = 0;
    for (int shift = s.level - 2; shift >= 0; shift -= 2)
        cell = (cell << 4) | (((iy >> shift) & 3u) << 2) | ((ix >> shift) & 3u);
    return cell;
}

/* The cells from low to high of the row or column of them. */
static __device__ uint2 seed_range(const struct seed &s, double low,
                                   double high)
{
    double last = (double)((1u << s.level) - 1u);
    low = (low - s.widen) * s.per_cell;
    high = (high + s.widen) * s.per_cell;
    return make_uint2((uint32_t)fmin(fmax(low, 0.0), last),
                      (uint32_t)fmin(fmax(high, 0.0), last));
}

/* Counts the segments of each cell, or lists them. */
template <int fill>
static __global__ void __launch_bounds__(SEED_BLOCK)
    seed_lists(struct seed s, uint32_t *id, struct oj_cells_counters *counters)
{
    int64_t i = (int64_t)blockIdx.x * SEED_BLOCK + threadIdx.x;
    uint32_t lane = threadIdx.x % 32, n = 0;
    uint2 x = make_uint2(0, 0), y = x;
    if (i < s.n)
    {
        struct oj_cuda_segment g = s.segment[i];
        x = seed_range(s, fmin(g.ax, g.bx) - s.x0, fmax(g.ax, g.bx) - s.x0);
        y = seed_range(s, fmin(g.ay, g.by) - s.y0, fmax(g.ay, g.by) - s.y0);
        if (!fill && oj_near_is_lost(g.ax, g.ay, g.bx, g.by))
            counters->lost.n = 1;
        n = (x.y - x.x + 1) * (y.y - y.x + 1);
        if (n > SEED_MOST_CELLS)
        {
            counters->spread.n = 1;
            n = 0;
        }
    }
    for (uint32_t k = 0; __any_sync(FULL_WARP, k < n); k++)
    {
        uint32_t width = x.y - x.x + 1, base = 0;
        uint32_t cell =
            k < n ? seed_cell(s, x.x + k % width, y.x + k / width) : UINT32_MAX;
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
    struct oj_near_node node = {0, n, 0, 0, 0, (uint8_t)s.level, 0};
    for (int digit = 0; digit < s.level / 2; digit++)
    {
        uint32_t path = cell >> (4 * digit);
        node.ix |= (path & 3u) << (2 * digit);
        node.iy |= ((path >> 2) & 3u) << (2 * digit);
    }
    node.header = seed_headers_above(s.level) + cell;
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
    int level = 0;
    if (i >= seed_headers_above(s.level))
        return;
    while (i >= seed_headers_above(level + 2))
        level += 2;
    put_header(r, i,
               seed_headers_above(level + 2) +
                   16u * (i - seed_headers_above(level)),
               oj_near_inner_info(level + 2, 2));
    if (i == 0)
        r.counters->headers.n = seed_headers_above(s.level + 2);
}

#endif
