/** Kernels that bring units from windows (oj_ring_start.h) into the cells of a
 *  level; cuda_ring_start.cu runs them. */
#ifndef CUDA_RING_WINDOWS_CUH
#define CUDA_RING_WINDOWS_CUH

#include "cuda_ring_levels.h"

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

/* An item: a fragment in a cell; the cell's number in the high half, and the
 * fragment's times 16 and that of the cell in its window in the low half. */
static __global__ void put_items(const __grid_constant__ struct windows v,
                                 const unsigned long long *place,
                                 unsigned long long *item)
{
    uint32_t k = (uint32_t)at_thread();
    uint64_t at;
    uint2 p;
    if (k >= v.n)
        return;
    at = place[k];
    p = v.window[v.fragment[k].node];
    for (uint32_t left = cells_of(v, k); left != 0; left &= left - 1, at++)
    {
        uint32_t c = (uint32_t)__ffs((int)left) - 1;
        item[at] = (unsigned long long)oj_ring_directory_at(
                       p.x + c % 4, p.y + c / 4, v.level)
                       << 32 |
                   (16 * k + c);
    }
}

static __device__ uint32_t cell_of(unsigned long long item)
{
    return (uint32_t)(item >> 32);
}

static __device__ uint32_t edges_of(const struct windows &v,
                                    unsigned long long item)
{
    uint32_t k = (uint32_t)item / 16, c = (uint32_t)item % 16;
    return (uint32_t)(v.masks[k].counts >> (4 * c) & 15u);
}

static __device__ int is_first_of_group(const unsigned long long *item,
                                        uint32_t j)
{
    return j == 0 || cell_of(item[j]) / 16 != cell_of(item[j - 1]) / 16;
}

/* What items, by cell, add: high half groups of 16 cells, low half edges. */
static __global__ void count_puts(const __grid_constant__ struct windows v,
                                  uint32_t n, const unsigned long long *item,
                                  unsigned long long *put)
{
    uint32_t j = (uint32_t)at_thread();
    if (j > n)
        return;
    put[j] = j == n ? 0
                    : (unsigned long long)is_first_of_group(item, j) << 32 |
                          edges_of(v, item[j]);
}

static __global__ void fill_cells(const __grid_constant__ struct windows v,
                                  uint32_t n, const unsigned long long *item,
                                  const unsigned long long *put,
                                  uint32_t first_group, uint32_t *slot,
                                  struct oj_cuda_ring_level level)
{
    uint32_t j = (uint32_t)at_thread(), k, c, cell, is_first, group, node;
    uint32_t before, to, edge, shift = 2 * (uint32_t)v.level - 2;
    struct oj_ring_fragment f;
    if (j >= n)
        return;
    k = (uint32_t)item[j] / 16;
    c = (uint32_t)item[j] % 16;
    cell = cell_of(item[j]);
    is_first = (uint32_t)is_first_of_group(item, j);
    group = (uint32_t)(put[j] >> 32) + is_first - 1;
    node = 16 * group + cell % 16;
    to = (uint32_t)put[j];
    f = v.fragment[k];
    *(uint4 *)&level.fragment.data[j] =
        make_uint4((f.unit & ~1u) | (inside_of(v, k) >> c & 1u), to,
                   edges_of(v, item[j]), node);
    edge = f.first;
    for (uint32_t e = 0; e < f.n; e++)
    {
        if (v.touched[edge + e] >> c & 1u)
            level.edge.data[to++] = v.edge[edge + e];
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
