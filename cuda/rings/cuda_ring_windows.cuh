/** Kernels that bring units from windows (oj_ring_start.h) into the cells of a
 *  level; cuda_ring_start.cu runs them. */
#ifndef CUDA_RING_WINDOWS_CUH
#define CUDA_RING_WINDOWS_CUH

#include "cuda_ring_tree.h"

#define BLOCK 256

static __device__ int64_t at_thread(void)
{
    return (int64_t)blockIdx.x * BLOCK + threadIdx.x;
}

struct windows
{
    int level;
    uint32_t n;
    const uint2 *window;
    const struct oj_ring_fragment *fragment;
    const uint32_t *edge;
    const uint32_t *head, *lost;
    const struct oj_ring_masks *masks;
    const uint16_t *touched;
};

static __device__ uint32_t inside_of(const struct windows &v, uint32_t k)
{
    uint32_t inside = oj_ring_masks_inside(&v.masks[k], v.fragment[k].unit);
    return v.head[k] == k ? inside ^ v.lost[k] : inside;
}

/* The cells of its window in which fragment k is. */
static __device__ uint32_t cells_of(const struct windows &v, uint32_t k)
{
    uint32_t there = v.masks[k].touched;
    return v.head[k] == k ? there | inside_of(v, k) : there;
}

static __global__ void count_items(const __grid_constant__ struct windows v,
                                   unsigned long long *place)
{
    uint32_t k = (uint32_t)at_thread();
    if (k <= v.n)
        place[k] = k < v.n ? (unsigned)__popc(cells_of(v, k)) : 0;
}

/* An item: a fragment in a cell. From the lowest bit: that of the cell in its
 * window, the fragment, the cell, which items are sorted by, the number of the
 * fragment's edges in it, and the fragment's bit there. */
#define ITEM_FRAGMENT 4
#define ITEM_CELL 32
#define ITEM_EDGES 56
#define ITEM_INSIDE 60

static __device__ uint32_t cell_of(unsigned long long item)
{
    return (uint32_t)(item >> ITEM_CELL) & 0xffffffu;
}

static __device__ uint32_t edges_of(unsigned long long item)
{
    return (uint32_t)(item >> ITEM_EDGES) & 15u;
}

/* Items of a block go out side by side. */
static __global__ void put_items(const __grid_constant__ struct windows v,
                                 const unsigned long long *place,
                                 unsigned long long *item)
{
    __shared__ unsigned long long made[OJ_RING_CELL_CHILDREN * BLOCK];
    uint32_t k = (uint32_t)at_thread(), first = blockIdx.x * BLOCK;
    uint32_t end = first + BLOCK < v.n ? first + BLOCK : v.n, at, n;
    n = (uint32_t)(place[end] - place[first]);
    if (k < v.n)
    {
        uint2 p = v.window[v.fragment[k].node];
        uint32_t inside = inside_of(v, k);
        at = (uint32_t)(place[k] - place[first]);
        for (uint32_t left = cells_of(v, k); left != 0; left &= left - 1, at++)
        {
            uint32_t c = (uint32_t)__ffs((int)left) - 1;
            made[at] = (unsigned long long)(inside >> c & 1u) << ITEM_INSIDE |
                       (v.masks[k].counts >> (4 * c) & 15u) << ITEM_EDGES |
                       oj_ring_directory_at(p.x + c % 4, p.y + c / 4, v.level)
                           << ITEM_CELL |
                       (unsigned long long)k << ITEM_FRAGMENT | c;
        }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n; i += BLOCK)
        item[place[first] + i] = made[i];
}

static __device__ int is_first_of_group(const unsigned long long *item,
                                        uint32_t j)
{
    return j == 0 || cell_of(item[j]) / 16 != cell_of(item[j - 1]) / 16;
}

/* What items, by cell, add: high half groups of 16 cells, low half edges; and
 * nothing behind them. */
struct put_sums
{
    const unsigned long long *item;
    ptrdiff_t n;

    __device__ unsigned long long operator()(ptrdiff_t i) const
    {
        if (i >= n)
            return 0;
        return (unsigned long long)is_first_of_group(item, (uint32_t)i) << 32 |
               edges_of(item[i]);
    }
};

static __global__ void fill_cells(const __grid_constant__ struct windows v,
                                  uint32_t n, const unsigned long long *item,
                                  const unsigned long long *put,
                                  uint32_t first_group, uint32_t *slot,
                                  struct oj_cuda_ring_level level)
{
    uint32_t j = (uint32_t)at_thread(), c, cell, is_first, group, node;
    uint32_t before, to, shift = 2 * (uint32_t)v.level - 2;
    struct oj_ring_fragment f;
    if (j >= n)
        return;
    c = (uint32_t)item[j] % 16;
    cell = cell_of(item[j]);
    is_first = (uint32_t)is_first_of_group(item, j);
    group = (uint32_t)(put[j] >> 32) + is_first - 1;
    node = 16 * group + cell % 16;
    to = (uint32_t)put[j];
    f = v.fragment[(uint32_t)item[j] >> ITEM_FRAGMENT];
    *(uint4 *)&level.fragment.data[j] =
        make_uint4((f.unit & ~1u) | ((uint32_t)(item[j] >> ITEM_INSIDE) & 1u),
                   to, edges_of(item[j]), node);
    for (uint32_t e = f.first; e < f.first + f.n; e++)
    {
        if (v.touched[e] >> c & 1u)
            level.edge.data[to++] = v.edge[e];
    }
    before = j == 0 ? UINT32_MAX
                    : 16 * (group - is_first) + cell_of(item[j - 1]) % 16;
    for (uint32_t i = before + 1; i != node + 1; i++)
        level.node_first.data[i] = j;
    if (j == n - 1)
    {
        for (uint32_t i = node + 1; i <= 16 * (group + 1); i++)
            level.node_first.data[i] = n;
    }
    if (is_first)
    {
        uint32_t parent = cell / 16;
        level.parent.data[group] =
            make_uint2(parent & ((1u << shift) - 1), parent >> shift);
        level.replication.data[group] = 1.0f;
        slot[oj_ring_directory_at(level.parent.data[group].x,
                                  level.parent.data[group].y, v.level - 1)] =
            oj_ring_slot_make(OJ_RING_INNER, first_group + group);
    }
}

#endif
