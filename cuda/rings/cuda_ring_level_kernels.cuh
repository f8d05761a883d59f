/** Kernels of one level of the tree of cells over rings; cuda_ring_levels.cu
 *  runs them. */
#ifndef CUDA_RING_LEVEL_KERNELS_CUH
#define CUDA_RING_LEVEL_KERNELS_CUH

#include "cuda_ring_tree.h"

#define BLOCK 256

/* --- what kernels read of a level ----------------------------------------- */

enum ring_node_kind
{
    KIND_NOTHING = 0, /* the slot says it all */
    KIND_SPLIT,
    KIND_LEAF
};

struct view
{
    struct oj_ring_tree tree; /* frame, units, part_feature */
    int depth;
    double side, steps;
    float margin; /* oj_ring_edge_margin() */
    uint32_t n_nodes, n_fragments;
    const uint2 *parent;
    const float *replication;
    const uint32_t *node_first;
    const struct oj_ring_fragment *fragment;
    const uint32_t *list; /* those of nodes that are split; NULL: all */
    uint32_t n_listed;
    const uint32_t *edge;
    const uint2 *window; /* NULL: nodes are cells */
    const struct oj_cuda_segment *segment;
    uint32_t most;
    int is_large, may_split;
};

static __device__ uint32_t at_thread(void)
{
    return blockIdx.x * BLOCK + threadIdx.x;
}

static __device__ struct oj_ring_fragment
load_fragment(const struct oj_ring_fragment *f)
{
    struct oj_ring_fragment r;
    uint4 v = *(const uint4 *)f;
    r.unit = v.x;
    r.first = v.y;
    r.n = v.z;
    r.node = v.w;
    return r;
}

/* Number k of those that go to children. */
static __device__ struct oj_ring_fragment load_listed(const struct view &v,
                                                      uint32_t k)
{
    return load_fragment(&v.fragment[v.list != NULL ? v.list[k] : k]);
}

static __device__ uint2 place_of(const struct view &v, uint32_t node)
{
    uint2 p = v.parent[node / 16];
    if (v.depth > 0)
    {
        p.x = 4 * p.x + node % 4;
        p.y = 4 * p.y + node / 4 % 4;
    }
    return p;
}

static __device__ struct oj_ring_splitter splitter_of(const struct view &v,
                                                      uint32_t node)
{
    uint2 p;
    if (v.window != NULL)
    {
        p = v.window[node];
        return oj_ring_splitter_of_window(&v.tree.frame, p.x, p.y, v.side);
    }
    p = place_of(v, node);
    return oj_ring_splitter_of(&v.tree.frame, p.x, p.y, v.side, v.depth == 0);
}

/* --- nodes ---------------------------------------------------------------- */

/* Edges of a node, which are one after another. */
static __device__ uint32_t edges_of(const struct view &v, uint32_t first,
                                    uint32_t end, uint32_t *first_edge)
{
    struct oj_ring_fragment a, b;
    if (first == end)
        return 0;
    a = load_fragment(&v.fragment[first]);
    b = load_fragment(&v.fragment[end - 1]);
    *first_edge = a.first;
    return b.first + b.n - a.first;
}

/* said: of each fragment; NULL: they have no edges. */
static __device__ uint64_t code_of(const struct view &v, uint32_t first,
                                   uint32_t end, const uint32_t *said)
{
    struct oj_ring_coder coder = oj_ring_coder_make(v.tree.units);
    if (end - first > OJ_RING_CODED_RECORDS)
        return UINT64_MAX;
    for (uint32_t k = first; k < end; k++)
    {
        struct oj_ring_split none = {0, 0};
        uint32_t unit = v.fragment[k].unit;
        oj_ring_coder_add(&coder, unit >> 1,
                          said != NULL ? said[k] : oj_ring_said_of(unit, none));
    }
    return oj_ring_coder_end(&coder);
}

/* What the nodes before each add up to: of those of its block, and of the
 * blocks before, [blocks + 1] after a scan. */
struct node_sums
{
    uint4 *of_node; /* leaves and 2^16 * split, split_fragments, records,
                       edges */
    struct oj_cuda_ring_sums *of_block;
};

static __device__ struct oj_cuda_ring_sums
operator+(const struct oj_cuda_ring_sums &a, const struct oj_cuda_ring_sums &b)
{
    struct oj_cuda_ring_sums s;
    s.split = a.split + b.split;
    s.split_fragments = a.split_fragments + b.split_fragments;
    s.leaves = a.leaves + b.leaves;
    s.records = a.records + b.records;
    s.edges = a.edges + b.edges;
    return s;
}

static __device__ struct oj_cuda_ring_sums unpack_sums(uint4 packed)
{
    struct oj_cuda_ring_sums s;
    s.split = packed.x >> 16;
    s.split_fragments = packed.y;
    s.leaves = packed.x & 0xffffu;
    s.records = packed.z;
    s.edges = packed.w;
    return s;
}

static __device__ struct oj_cuda_ring_sums sums_at(const struct node_sums &from,
                                                   uint32_t i)
{
    return from.of_block[i / BLOCK] + unpack_sums(from.of_node[i]);
}

static __device__ uint4 operator+(uint4 a, uint4 b)
{
    return make_uint4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/* What the threads of a block before this one have, and all. */
static __device__ uint4 sum_before(uint4 n, uint4 *all)
{
    __shared__ uint4 of_warp[BLOCK / 32];
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint4 sum = n, none = make_uint4(0, 0, 0, 0);
    for (unsigned step = 1; step < 32; step *= 2)
    {
        uint4 before = make_uint4(__shfl_up_sync(0xffffffffu, sum.x, step),
                                  __shfl_up_sync(0xffffffffu, sum.y, step),
                                  __shfl_up_sync(0xffffffffu, sum.z, step),
                                  __shfl_up_sync(0xffffffffu, sum.w, step));
        sum = sum + (lane >= step ? before : none);
    }
    if (lane == 31)
        of_warp[warp] = sum;
    __syncthreads();
    *all = none;
    for (uint32_t w = 0; w < BLOCK / 32; w++)
    {
        sum = sum + (w < warp ? of_warp[w] : none);
        *all = *all + of_warp[w];
    }
    return make_uint4(sum.x - n.x, sum.y - n.y, sum.z - n.z, sum.w - n.w);
}

static __device__ void set_sums(const struct node_sums &to, uint32_t i,
                                uint32_t n_nodes,
                                const struct oj_cuda_ring_sums &s)
{
    uint4 all,
        before = sum_before(make_uint4(s.split << 16 | s.leaves,
                                       s.split_fragments, s.records, s.edges),
                            &all);
    if (i < n_nodes)
        to.of_node[i] = before;
    if (threadIdx.x == 0)
        to.of_block[blockIdx.x] = unpack_sums(all);
}

/* What becomes of a node, and what that adds. *says: its slot, where that says
 * it all. */
static __device__ enum ring_node_kind judge_node(const struct view &v,
                                                 uint32_t i,
                                                 struct oj_cuda_ring_sums *s,
                                                 uint32_t *says)
{
    uint32_t first = v.node_first[i], end = v.node_first[i + 1], unused, of;
    uint32_t n = edges_of(v, first, end, &unused);
    if (v.may_split &&
        oj_ring_node_splits(n, v.most, v.depth, v.tree.frame.levels,
                            v.replication[i / 16], v.is_large))
    {
        s->split = 1;
        s->split_fragments = end - first;
        return KIND_SPLIT;
    }
    if (end == first)
        return KIND_NOTHING;
    of = n > 0 ? OJ_RING_CODE_ASK
               : (uint32_t)(code_of(v, first, end, NULL) & 15u);
    if (of == OJ_RING_CODE_ASK)
    {
        s->leaves = 1;
        s->records = end - first;
        s->edges = n;
        return KIND_LEAF;
    }
    if (of > 0)
        *says = oj_ring_slot_make(
            OJ_RING_COVERED,
            (uint32_t)oj_ring_record_rank(
                &v.tree, v.fragment[first + of - 1].unit >> 1));
    return KIND_NOTHING;
}

static __global__ void judge_nodes(struct view v, uint8_t *kind,
                                   struct node_sums sums, uint32_t *slot)
{
    uint32_t i = at_thread(), says = 0;
    struct oj_cuda_ring_sums s = {0, 0, 0, 0, 0};
    if (i < v.n_nodes)
    {
        kind[i] = (uint8_t)judge_node(v, i, &s, &says);
        slot[i] = says;
    }
    set_sums(sums, i, v.n_nodes, s);
}

/* --- fragments ------------------------------------------------------------ */

static __global__ void find_heads(struct view v, uint32_t *head)
{
    uint32_t k = at_thread();
    struct oj_ring_fragment f, before;
    if (k >= v.n_listed)
        return;
    head[k] = k;
    if (k == 0)
        return;
    f = load_listed(v, k);
    before = load_listed(v, k - 1);
    if (f.node == before.node && f.unit >> 1 == before.unit >> 1)
        head[k] = 0;
}

struct greater
{
    __device__ uint32_t operator()(uint32_t a, uint32_t b) const
    {
        return a > b ? a : b;
    }
};

struct marks
{
    const uint32_t *head;        /* [listed] */
    struct oj_ring_masks *masks; /* [listed] */
    uint16_t *touched;           /* [edges] */
    uint32_t *lost;              /* [listed] */
    uint32_t *doubt;             /* fragments that need exact signs */
    uint32_t *n_doubts;
};

/* Marks fragment k of the list, or finds that exact signs are needed for it:
 * returns 0. */
template <bool exactly>
static __device__ __forceinline__ int mark_fragment(const struct view &v,
                                                    uint32_t k, struct marks to)
{
    struct oj_ring_fragment f = load_listed(v, k);
    struct oj_ring_masks m = {0, 0, 0};
    int unsure = 0;
    if (f.n > 0)
    {
        struct oj_ring_splitter s = splitter_of(v, f.node);
        for (uint32_t e = f.first; e < f.first + f.n; e++)
        {
            const struct oj_cuda_segment g = v.segment[v.edge[e]];
            struct oj_ring_split split = oj_ring_split_edge(
                &s, g.ax, g.ay, g.bx, g.by, exactly ? NULL : &unsure);
            to.touched[e] = (uint16_t)split.touched;
            oj_ring_masks_add(&m, split);
        }
    }
    if (unsure)
        return 0;
    to.masks[k] = m;
    if (to.head[k] != k)
    {
        uint32_t inside = oj_ring_masks_inside(&m, f.unit) & ~m.touched;
        if (inside != 0)
            atomicXor(&to.lost[to.head[k]], inside);
    }
    return 1;
}

static __global__ void __launch_bounds__(BLOCK, 3)
    mark_fragments(struct view v, struct marks to)
{
    uint32_t k = at_thread();
    if (k < v.n_listed && !mark_fragment<false>(v, k, to))
        to.doubt[atomicAdd(to.n_doubts, 1u)] = k;
}

/* Few, as a rule; exact signs take many registers. */
static __global__ void settle_fragments(struct view v, struct marks to)
{
    uint32_t n = *to.n_doubts;
    for (uint32_t d = at_thread(); d < n; d += gridDim.x * BLOCK)
        mark_fragment<true>(v, to.doubt[d], to);
}

/* --- leaves --------------------------------------------------------------- */

/* The tree's arrays, and where those of a level begin. */
struct ring_tree_arrays
{
    struct oj_ring_leaf *leaf;
    struct oj_ring_record *record;
    struct oj_ring_edge16 *edge;
    uint32_t *edge_segment;
    uint32_t first_leaf, first_record, first_edge;
};

/* Fragments of nodes that are split are listed; those of leaves become records
 * and short edges, and it is said what the leaves' codes are made of.  A thread
 * for each fragment, and then for each edge that the block has. Five blocks on
 * a processor: as many as leave it all registers that it needs. */
static __global__ void __launch_bounds__(BLOCK, 5)
    put_records(const __grid_constant__ struct view v, const uint8_t *kind,
                struct node_sums sums, struct ring_tree_arrays to,
                uint32_t *list, uint32_t *said)
{
    __shared__ uint8_t owner[OJ_RING_FRAGMENT * BLOCK]; /* of each edge */
    __shared__ uint32_t from[BLOCK];
    __shared__ uint32_t shift[BLOCK];
    __shared__ double reference_x[BLOCK];
    __shared__ double reference_y[BLOCK];
    __shared__ uint32_t touched[BLOCK];
    __shared__ uint32_t toggled[BLOCK];
    uint32_t k = at_thread(), mine = threadIdx.x, at, n = 0;
    uint4 n_edges;
    enum ring_node_kind is = KIND_NOTHING;
    struct oj_ring_fragment f = {0, 0, 0, 0};
    if (k < v.n_fragments)
    {
        f = load_fragment(&v.fragment[k]);
        is = (enum ring_node_kind)kind[f.node];
    }
    if (is != KIND_NOTHING)
    {
        struct oj_cuda_ring_sums s = sums_at(sums, f.node);
        uint32_t first = v.node_first[f.node];
        if (is == KIND_SPLIT)
            list[s.split_fragments + k - first] = k;
        else
        {
            struct oj_ring_record r;
            n = f.n;
            uint2 place = place_of(v, f.node);
            oj_ring_cell_reference(&v.tree.frame, place.x, place.y, v.side,
                                   &reference_x[mine], &reference_y[mine]);
            shift[mine] = to.first_edge + s.edges - v.fragment[first].first;
            r.unit = f.unit;
            r.first = shift[mine] + f.first;
            to.record[to.first_record + s.records + k - first] = r;
        }
    }
    touched[mine] = toggled[mine] = 0;
    at = sum_before(make_uint4(n, 0, 0, 0), &n_edges).x;
    from[mine] = f.first - at;
    for (uint32_t e = at; e < at + n; e++)
        owner[e] = (uint8_t)mine;
    __syncthreads();
    for (uint32_t i = mine; i < n_edges.x; i += BLOCK)
    {
        uint32_t of = owner[i], e = from[of] + i, id = v.edge[e];
        const struct oj_cuda_segment g = v.segment[id];
        struct oj_ring_edge16 edge;
        struct oj_ring_split split;
        edge = oj_ring_edge_of(g.ax, g.ay, g.bx, g.by, reference_x[of],
                               reference_y[of], v.steps);
        split = oj_ring_edge_sixteenths(edge, v.margin);
        to.edge[shift[of] + e] = edge;
        to.edge_segment[shift[of] + e] = id;
        atomicOr(&touched[of], split.touched);
        atomicXor(&toggled[of], split.toggled);
    }
    __syncthreads();
    if (is == KIND_LEAF)
    {
        struct oj_ring_split all = {touched[mine], toggled[mine]};
        said[k] = oj_ring_said_of(f.unit, all);
    }
}

static __global__ void make_leaves(struct view v, const uint8_t *kind,
                                   struct node_sums sums, const uint32_t *said,
                                   struct ring_tree_arrays to, uint32_t *slot)
{
    uint32_t i = at_thread(), first, end;
    struct oj_cuda_ring_sums s;
    struct oj_ring_leaf leaf;
    if (i >= v.n_nodes || kind[i] != KIND_LEAF)
        return;
    first = v.node_first[i];
    end = v.node_first[i + 1];
    s = sums_at(sums, i);
    leaf.code = code_of(v, first, end, said);
    leaf.first = to.first_record + s.records;
    leaf.n = 16 * (end - first) + (uint32_t)v.depth;
    to.leaf[to.first_leaf + s.leaves] = leaf;
    slot[i] = oj_ring_slot_make(OJ_RING_LEAF, to.first_leaf + s.leaves);
}

/* --- children ------------------------------------------------------------- */

/* Children of a split node of n fragments from number `first` of the list on:
 * bytes [16 first + c n + k], 128 for a fragment k that child c gets and the
 * number of its edges there. Their sums are places in the next level: high half
 * fragments, low half edges. */
struct family
{
    uint32_t first, n; /* fragments of the node */
    uint64_t at;       /* of fragment k and child 0; child c: c n later */
};

static __device__ struct family family_of(const struct view &v,
                                          const struct node_sums &sums,
                                          uint32_t node, uint32_t k)
{
    struct family f;
    f.first =
        sums.of_block[node / BLOCK].split_fragments + sums.of_node[node].y;
    f.n = v.node_first[node + 1] - v.node_first[node];
    f.at = 15 * (uint64_t)f.first + k;
    return f;
}

static __global__ void put_counts(struct view v, struct node_sums sums,
                                  const uint32_t *head, const uint32_t *lost,
                                  const struct oj_ring_masks *masks,
                                  uint8_t *count)
{
    uint32_t k = at_thread(), there;
    struct oj_ring_fragment f;
    struct oj_ring_masks m;
    struct family family;
    if (k >= v.n_listed)
        return;
    f = load_listed(v, k);
    family = family_of(v, sums, f.node, k);
    m = masks[k];
    there = m.touched;
    if (head[k] == k)
        there |= oj_ring_masks_inside(&m, f.unit) ^ lost[k];
    for (uint32_t c = 0; c < OJ_RING_CELL_CHILDREN; c++)
        count[family.at + (uint64_t)c * family.n] =
            (uint8_t)((there >> c & 1u) << 7 |
                      (uint32_t)(m.counts >> (4 * c) & 15u));
}

/* The bytes as what they add. */
struct counts
{
    const uint8_t *byte;

    __device__ unsigned long long operator()(ptrdiff_t i) const
    {
        return (unsigned long long)(byte[i] >> 7) << 32 | (byte[i] & 15u);
    }
};

static __global__ void
put_fragments(struct view v, struct node_sums sums, const uint32_t *head,
              const uint32_t *lost, const struct oj_ring_masks *masks,
              const uint16_t *touched, const unsigned long long *place,
              struct oj_ring_fragment *fragment, uint32_t *edge)
{
    uint32_t k = at_thread(), there, inside, split;
    struct oj_ring_fragment f;
    struct oj_ring_masks m;
    struct family family;
    uint64_t done = 0;
    if (k >= v.n_listed)
        return;
    f = load_listed(v, k);
    family = family_of(v, sums, f.node, k);
    split = sums_at(sums, f.node).split;
    m = masks[k];
    inside = oj_ring_masks_inside(&m, f.unit);
    there = m.touched;
    if (head[k] == k)
    {
        inside ^= lost[k];
        there |= inside;
    }
    for (uint32_t left = there; left != 0; left &= left - 1)
    {
        uint32_t c = (uint32_t)__ffs((int)left) - 1;
        unsigned long long to = place[family.at + (uint64_t)c * family.n];
        uint4 made;
        made.x = (f.unit & ~1u) | (inside >> c & 1u);
        made.y = (uint32_t)to;
        made.z = (uint32_t)(m.counts >> (4 * c) & 15u);
        made.w = 16 * split + c;
        *(uint4 *)&fragment[to >> 32] = made;
    }
    for (uint32_t e = f.first; e < f.first + f.n; e++)
    {
        uint32_t id = v.edge[e];
        for (uint32_t left = touched[e]; left != 0; left &= left - 1)
        {
            uint32_t c = (uint32_t)__ffs((int)left) - 1;
            uint32_t to = (uint32_t)place[family.at + (uint64_t)c * family.n] +
                          (uint32_t)(done >> (4 * c) & 15u);
            edge[to] = id;
            done += (uint64_t)1 << (4 * c);
        }
    }
}

/* By the first fragment of each node that is split. */
static __global__ void put_nodes(struct view v, struct node_sums sums,
                                 const unsigned long long *place,
                                 uint32_t first_group, uint32_t *slot,
                                 struct oj_cuda_ring_level next)
{
    uint32_t k = at_thread(), node, edges, unused, split;
    struct family f;
    unsigned long long all;
    if (k >= v.n_listed)
        return;
    node = load_listed(v, k).node;
    f = family_of(v, sums, node, k);
    if (k != f.first)
        return;
    split = sums_at(sums, node).split;
    edges = edges_of(v, v.node_first[node], v.node_first[node + 1], &unused);
    all = place[f.at + 16 * (uint64_t)f.n] - place[f.at];
    for (uint32_t c = 0; c < OJ_RING_CELL_CHILDREN; c++)
        next.node_first.data[16 * split + c] =
            (uint32_t)(place[f.at + (uint64_t)c * f.n] >> 32);
    next.parent.data[split] = place_of(v, node);
    next.replication.data[split] =
        v.replication[node / 16] *
        ((float)(uint32_t)all + (float)(uint32_t)(all >> 32)) /
        ((float)edges + (float)f.n);
    slot[node] = oj_ring_slot_make(OJ_RING_INNER, first_group + split);
    if (split == 0) /* the first of all ends the list, too */
        next.node_first.data[next.n_nodes] = (uint32_t)next.n_fragments;
}

#endif
