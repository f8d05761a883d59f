/** A round of oj_cuda_cells_build(): what its kernels share. */
#ifndef CUDA_CELLS_ROUND_CUH
#define CUDA_CELLS_ROUND_CUH

#include "../device/oj_cuda.h"
#include "oj_near_entry.h"

/** Lists up to these lengths are short, or long; the others are huge. */
#define OJ_CELLS_SHORT 59
#define OJ_CELLS_LONG 1024

enum oj_cells_class
{
    OJ_CELLS_OF_SHORT = 0,
    OJ_CELLS_OF_LONG,
    OJ_CELLS_OF_HUGE,
    OJ_CELLS_CLASSES
};

/** A counter that many blocks add to: a cache line of its own. */
struct alignas(128) oj_cells_counter
{
    unsigned long long n;
};

struct oj_cells_counters
{
    struct oj_cells_counter headers, words, ids, nodes[OJ_CELLS_CLASSES];
    struct oj_cells_counter pool_full, crowded, lost, spread;
};

/** What the kernels of a round share. */
struct oj_cells_round
{
    struct oj_near_square square;
    uint32_t leaf_size;
    int marks_ties; /**< 1: those that stand for others are told apart */
    const double *segment;
    const int32_t *rank;
    unsigned long long max_headers, max_words, max_ids;
    unsigned long long max_nodes[OJ_CELLS_CLASSES];
    uint32_t *id;      /**< lists of this round */
    uint16_t *mask;    /**< parallel to id */
    uint32_t *next_id; /**< lists of the next one */
    const struct oj_near_node *node[OJ_CELLS_CLASSES];
    struct oj_near_node *next_node[OJ_CELLS_CLASSES];
    struct oj_near_header *tree;
    uint64_t *pool;
    struct oj_cells_counters *counters;
};

/** A node that a block, or many, are at work on. */
struct oj_cells_plan
{
    uint32_t bound[OJ_NEAR_CHILDREN]; /**< upper bounds squared, by their bits
                                           (>= 0: ordered as integers are) */
    uint32_t count[OJ_NEAR_CHILDREN];
    uint32_t cursor[OJ_NEAR_CHILDREN]; /**< in next_id */
    uint32_t kept, leaf, first, at;    /**< of a leaf: in the pool */
    float greatest;
};

#define FULL_WARP 0xFFFFFFFFu

/* Of no list: its other numbers are looked at before that is known. */
static __device__ __forceinline__ struct oj_near_node oj_cells_no_node(void)
{
    struct oj_near_node node = {0, 0, 0, 0, 0, 0, 0};
    return node;
}

static __device__ uint32_t scan_warp(uint32_t v, int lane)
{
    for (int step = 1; step < 32; step *= 2)
    {
        uint32_t other = __shfl_up_sync(FULL_WARP, v, step);
        v += lane >= step ? other : 0;
    }
    return v;
}

/* One step on the way to the least of each of 2 half numbers over the lanes of
 * a warp or a part of it: lanes that differ in bit exchange halves. */
template <int half>
static __device__ void halve_least(float *v, uint32_t lane, uint32_t bit)
{
    int upper = (lane & bit) != 0;
#pragma unroll
    for (int i = 0; i < half; i++)
    {
        float keep = upper ? v[i + half] : v[i];
        float send = upper ? v[i] : v[i + half];
        v[i] = fminf(keep, __shfl_xor_sync(FULL_WARP, send, (int)bit));
    }
}

/* Entry i of the lists of this round, without its mark. */
static __device__ __forceinline__ uint32_t id_at(const struct oj_cells_round &r,
                                                 uint32_t i)
{
    return r.id[i] & ~OJ_NEAR_SHARED;
}

static __device__ struct oj_near_piece
piece_of(const struct oj_cells_round &r, const struct oj_near_frame &frame,
         uint32_t id, struct oj_cuda_segment *s)
{
    const double2 *at = (const double2 *)(r.segment + 4 * (int64_t)id);
    double2 a = __ldg(at), b = __ldg(at + 1);
    s->ax = a.x;
    s->ay = a.y;
    s->bx = b.x;
    s->by = b.y;
    return oj_near_piece(&frame, a.x, a.y, b.x, b.y);
}

/* What two segments that hash alike are to each other. */
enum oj_cells_kinship
{
    OJ_CELLS_STRANGERS,
    OJ_CELLS_FIRST_STANDS, /* for both */
    OJ_CELLS_SECOND_STANDS
};

/* ends: of oj_near_end(). */
static __device__ enum oj_cells_kinship kinship(const struct oj_cells_round &r,
                                                uint32_t i, int end_i,
                                                uint32_t j, int end_j)
{
    const double2 *s = (const double2 *)(r.segment + 4 * (int64_t)i);
    const double2 *t = (const double2 *)(r.segment + 4 * (int64_t)j);
    struct oj_near_key k = oj_near_key(end_i, s[0].x, s[0].y, s[1].x, s[1].y);
    struct oj_near_key l = oj_near_key(end_j, t[0].x, t[0].y, t[1].x, t[1].y);
    if (!oj_near_same_key(&k, &l))
        return OJ_CELLS_STRANGERS;
    return oj_near_drops(r.rank[i], (int32_t)i, r.rank[j], (int32_t)j)
               ? OJ_CELLS_FIRST_STANDS
               : OJ_CELLS_SECOND_STANDS;
}

/* 1 when one that stands for the entry `other` of a list, whose feature has
 * rank, is to be marked. */
static __device__ int makes_tie(const struct oj_cells_round &r, int32_t rank,
                                uint32_t other)
{
    return (other & OJ_NEAR_SHARED) != 0 ||
           r.rank[other & ~OJ_NEAR_SHARED] != rank;
}

static __device__ uint64_t long_entry(const struct oj_cells_round &r,
                                      const struct oj_near_frame &frame,
                                      const struct oj_near_scale &scale,
                                      uint32_t id)
{
    const double2 *s = (const double2 *)(r.segment + 4 * (int64_t)id);
    double2 a = __ldg(s), b = __ldg(s + 1);
    return oj_near_entry(&frame, &scale, a.x, a.y, b.x, b.y);
}

/* Entry number at, of segment id with its mark, of the n of the leaf at first
 * in the pool. */
static __device__ void put_words(const struct oj_cells_round &r, uint32_t first,
                                 uint32_t n, uint32_t at, uint32_t id,
                                 uint64_t entry)
{
    uint64_t *to = r.pool + first + (n >= OJ_NEAR_COUNT ? 2 : 0);
    to[at] = entry;
    uint32_t tied = (id & OJ_NEAR_SHARED) != 0 ? OJ_NEAR_TIED : 0u;
    id &= ~OJ_NEAR_SHARED;
    to[((n + 1u) & ~1u) + at] = oj_near_pack(id, (uint32_t)r.rank[id] | tied);
}

static __device__ void put_header(const struct oj_cells_round &r,
                                  uint32_t where, uint32_t first, uint32_t info)
{
    uint2 v = make_uint2(first, info);
    *(uint2 *)(r.tree + where) = v;
}

/* The header of a leaf, and what of its words is not entries. */
static __device__ void put_leaf(const struct oj_cells_round &r,
                                const struct oj_near_node &node, uint32_t first,
                                uint32_t kept, uint32_t exponent)
{
    put_header(r, node.header, first,
               oj_near_leaf_info(kept, node.level, exponent));
    if (kept >= OJ_NEAR_COUNT)
    {
        r.pool[first] = kept;
        first += 2;
    }
    if (kept & 1u)
        r.pool[first + kept] = 0;
}

static __device__ enum oj_cells_class class_of(uint32_t n)
{
    return n <= OJ_CELLS_SHORT  ? OJ_CELLS_OF_SHORT
           : n <= OJ_CELLS_LONG ? OJ_CELLS_OF_LONG
                                : OJ_CELLS_OF_HUGE;
}

#endif
