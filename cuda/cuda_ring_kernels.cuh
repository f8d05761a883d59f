/** Kernels of one level of the tree of cells over rings; cuda_ring_levels.cu
 *  runs them. */
#ifndef CUDA_RING_KERNELS_CUH
#define CUDA_RING_KERNELS_CUH

#include "cuda_ring_levels.h"

#include <iterator>

#define BLOCK 256

/* --- what kernels read of a level ----------------------------------------- */

enum kind
{
    KIND_NOTHING = 0, /* the slot says it all */
    KIND_SPLIT,
    KIND_LEAF
};

struct view
{
    struct oj_ring_tree tree; /* frame, units, ring_part, part_feature */
    int depth;
    double side;
    uint32_t n_nodes, n_fragments;
    const uint2 *parent;
    const float *replication;
    const uint32_t *node_first;
    const struct oj_ring_fragment *fragment;
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
    struct oj_ring_coder coder = oj_ring_coder_make();
    const uint32_t *ring_part =
        v.tree.units == OJ_RING_PARTS ? v.tree.ring_part : NULL;
    if (end - first > OJ_RING_CODED_RECORDS)
        return UINT64_MAX;
    for (uint32_t k = first; k < end; k++)
    {
        struct oj_ring_split none = {0, 0};
        uint32_t unit = v.fragment[k].unit;
        oj_ring_coder_add(&coder, unit >> 1,
                          said != NULL ? said[k] : oj_ring_said_of(unit, none),
                          ring_part);
    }
    return oj_ring_coder_end(&coder, ring_part);
}

/* What the nodes before each add up to, [nodes + 1] each, after a scan; before
 * it what the node itself adds. Numbers are scanned two by two, as halves of
 * one. */
struct node_sums
{
    unsigned long long *leaf_split;  /* high: leaves */
    unsigned long long *record_edge; /* high: records */
    uint32_t *split_fragment;
};

static __device__ void set_sums(const struct node_sums &to, uint32_t i,
                                const struct oj_cuda_ring_sums &s)
{
    to.leaf_split[i] = (unsigned long long)s.leaves << 32 | s.split;
    to.record_edge[i] = (unsigned long long)s.records << 32 | s.edges;
    to.split_fragment[i] = s.split_fragments;
}

static __host__ __device__ struct oj_cuda_ring_sums
sums_of(unsigned long long leaf_split, unsigned long long record_edge,
        uint32_t split_fragment)
{
    struct oj_cuda_ring_sums s;
    s.split = (uint32_t)leaf_split;
    s.split_fragments = split_fragment;
    s.leaves = (uint32_t)(leaf_split >> 32);
    s.records = (uint32_t)(record_edge >> 32);
    s.edges = (uint32_t)record_edge;
    return s;
}

static __device__ struct oj_cuda_ring_sums sums_at(const struct node_sums &from,
                                                   uint32_t i)
{
    return sums_of(from.leaf_split[i], from.record_edge[i],
                   from.split_fragment[i]);
}

static __global__ void judge_nodes(struct view v, uint8_t *kind,
                                   struct node_sums sums, uint32_t *slot)
{
    uint32_t i = at_thread(), first, end, n, unused;
    struct oj_cuda_ring_sums s = {0, 0, 0, 0, 0};
    enum kind is = KIND_NOTHING;
    uint32_t says = 0;
    if (i > v.n_nodes)
        return;
    if (i == v.n_nodes)
    {
        set_sums(sums, i, s);
        return;
    }
    first = v.node_first[i];
    end = v.node_first[i + 1];
    n = edges_of(v, first, end, &unused);
    if (v.may_split &&
        oj_ring_node_splits(n, v.most, v.depth, v.tree.frame.levels,
                            v.replication[i / 16], v.is_large))
    {
        is = KIND_SPLIT;
        s.split = 1;
        s.split_fragments = end - first;
    }
    else if (end > first)
    {
        uint64_t code = n > 0 ? UINT64_MAX : code_of(v, first, end, NULL);
        uint32_t of = (uint32_t)(code & 15u);
        if (of == OJ_RING_CODE_ASK)
        {
            is = KIND_LEAF;
            s.leaves = 1;
            s.records = end - first;
            s.edges = n;
        }
        else if (of > 0)
            says = oj_ring_slot_make(
                OJ_RING_COVERED,
                (uint32_t)oj_ring_record_rank(
                    &v.tree, v.fragment[first + of - 1].unit >> 1));
    }
    kind[i] = (uint8_t)is;
    set_sums(sums, i, s);
    slot[i] = says;
}

/* --- fragments ------------------------------------------------------------ */

static __global__ void find_heads(struct view v, uint32_t *head)
{
    uint32_t k = at_thread();
    struct oj_ring_fragment f, before;
    if (k >= v.n_fragments)
        return;
    head[k] = k;
    if (k == 0)
        return;
    f = load_fragment(&v.fragment[k]);
    before = load_fragment(&v.fragment[k - 1]);
    if (f.node == before.node && f.unit >> 1 == before.unit >> 1)
        head[k] = 0;
}

struct greater
{
    __host__ __device__ uint32_t operator()(uint32_t a, uint32_t b) const
    {
        return a > b ? a : b;
    }
};

struct marks
{
    const uint8_t *kind;         /* [nodes]: only those that split; NULL: all */
    const uint32_t *head;        /* [fragments] */
    struct oj_ring_masks *masks; /* [fragments] */
    uint16_t *touched;           /* [edges] */
    uint32_t *lost;              /* [fragments] */
    uint32_t *doubt;             /* fragments that need exact signs */
    uint32_t *n_doubts;
};

/* Marks fragment k, or finds that exact signs are needed for it: returns 0. */
template <bool exactly>
static __device__ __forceinline__ int mark_fragment(const struct view &v,
                                                    uint32_t k, struct marks to)
{
    struct oj_ring_fragment f = load_fragment(&v.fragment[k]);
    struct oj_ring_masks m = {0, 0, 0};
    int unsure = 0;
    if (to.kind != NULL && to.kind[f.node] != KIND_SPLIT)
        return 1;
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
    if (k < v.n_fragments && !mark_fragment<false>(v, k, to))
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

/* Records and edges of leaves, and what the leaves' codes are made of. */
static __global__ void make_records(struct view v, const uint8_t *kind,
                                    struct node_sums sums,
                                    struct oj_cuda_ring_part part,
                                    uint32_t *said)
{
    uint32_t k = at_thread(), first, first_edge, at;
    struct oj_ring_fragment f;
    struct oj_cuda_ring_sums s;
    struct oj_ring_record r;
    struct oj_ring_split all = {0, 0};
    double rx, ry;
    float margin;
    uint2 p;
    if (k >= v.n_fragments)
        return;
    f = load_fragment(&v.fragment[k]);
    if (kind[f.node] != KIND_LEAF)
        return;
    s = sums_at(sums, f.node);
    first = v.node_first[f.node];
    first_edge = v.fragment[first].first;
    at = s.edges + f.first - first_edge;
    r.unit = f.unit;
    r.first = part.first_edge + at;
    part.record.data[s.records + k - first] = r;
    p = place_of(v, f.node);
    oj_ring_cell_reference(&v.tree.frame, p.x, p.y, v.side, &rx, &ry);
    margin = oj_ring_edge_margin(&v.tree.frame, v.side);
    for (uint32_t e = f.first; e < f.first + f.n; e++, at++)
    {
        uint32_t id = v.edge[e];
        const struct oj_cuda_segment g = v.segment[id];
        struct oj_ring_edge16 edge =
            oj_ring_edge_of(g.ax, g.ay, g.bx, g.by, rx, ry, v.side);
        struct oj_ring_split split = oj_ring_edge_sixteenths(edge, margin);
        all.touched |= split.touched;
        all.toggled ^= split.toggled;
        part.edge.data[at] = edge;
        part.edge_segment.data[at] = id;
    }
    said[k] = oj_ring_said_of(f.unit, all);
}

static __global__ void make_leaves(struct view v, const uint8_t *kind,
                                   struct node_sums sums, const uint32_t *said,
                                   struct oj_cuda_ring_part part)
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
    leaf.first = part.first_record + s.records;
    leaf.n = 16 * (end - first) + (uint32_t)v.depth;
    part.leaf.data[s.leaves] = leaf;
    part.slot.data[i] =
        oj_ring_slot_make(OJ_RING_LEAF, part.first_leaf + s.leaves);
}

/* --- children ------------------------------------------------------------- */

/* Children of a split node of n fragments from `first` on among those of split
 * nodes: bytes [16 first + c n + k], 128 for a fragment k that child c gets and
 * the number of its edges there. Their sums are places in the next level: high
 * half fragments, low half edges. */
static __global__ void put_counts(struct view v, const uint8_t *kind,
                                  struct node_sums sums, const uint32_t *head,
                                  const uint32_t *lost,
                                  const struct oj_ring_masks *masks,
                                  uint8_t *count)
{
    uint32_t k = at_thread(), n, first;
    struct oj_ring_fragment f;
    struct oj_ring_masks m;
    uint32_t there;
    uint64_t at;
    if (k >= v.n_fragments)
        return;
    f = load_fragment(&v.fragment[k]);
    if (kind[f.node] != KIND_SPLIT)
        return;
    m = masks[k];
    there = m.touched;
    if (head[k] == k)
        there |= oj_ring_masks_inside(&m, f.unit) ^ lost[k];
    first = v.node_first[f.node];
    n = v.node_first[f.node + 1] - first;
    at = 16 * (uint64_t)sums.split_fragment[f.node] + (k - first);
    for (int c = 0; c < OJ_RING_CELL_CHILDREN; c++, at += n)
        count[at] = (uint8_t)((there >> c & 1u) << 7 |
                              (uint32_t)(m.counts >> (4 * c) & 15u));
}

/* The bytes as what they add. */
struct counts
{
    typedef std::random_access_iterator_tag iterator_category;
    typedef unsigned long long value_type;
    typedef ptrdiff_t difference_type;
    typedef const unsigned long long *pointer;
    typedef unsigned long long reference;
    const uint8_t *byte;

    __host__ __device__ unsigned long long operator*() const
    {
        return (unsigned long long)(*byte >> 7) << 32 | (*byte & 15u);
    }
    __host__ __device__ unsigned long long operator[](ptrdiff_t i) const
    {
        return *(*this + i);
    }
    __host__ __device__ struct counts operator+(ptrdiff_t i) const
    {
        struct counts moved = {byte + i};
        return moved;
    }
};

static __global__ void
put_fragments(struct view v, const uint8_t *kind, struct node_sums sums,
              const uint32_t *head, const uint32_t *lost,
              const struct oj_ring_masks *masks, const uint16_t *touched,
              const unsigned long long *place,
              struct oj_ring_fragment *fragment, uint32_t *edge)
{
    uint32_t k = at_thread(), n, first, there, inside;
    struct oj_ring_fragment f;
    struct oj_ring_masks m;
    struct oj_cuda_ring_sums s;
    uint64_t at, done = 0;
    if (k >= v.n_fragments)
        return;
    f = load_fragment(&v.fragment[k]);
    if (kind[f.node] != KIND_SPLIT)
        return;
    m = masks[k];
    inside = oj_ring_masks_inside(&m, f.unit);
    there = m.touched;
    if (head[k] == k)
    {
        inside ^= lost[k];
        there |= inside;
    }
    first = v.node_first[f.node];
    n = v.node_first[f.node + 1] - first;
    s = sums_at(sums, f.node);
    at = 16 * (uint64_t)s.split_fragments + (k - first);
    for (uint32_t left = there; left != 0; left &= left - 1)
    {
        uint32_t c = (uint32_t)__ffs((int)left) - 1;
        unsigned long long to = place[at + (uint64_t)c * n];
        uint4 made;
        made.x = (f.unit & ~1u) | (inside >> c & 1u);
        made.y = (uint32_t)to;
        made.z = (uint32_t)(m.counts >> (4 * c) & 15u);
        made.w = 16 * s.split + c;
        *(uint4 *)&fragment[to >> 32] = made;
    }
    for (uint32_t e = f.first; e < f.first + f.n; e++)
    {
        uint32_t id = v.edge[e];
        for (uint32_t left = touched[e]; left != 0; left &= left - 1)
        {
            uint32_t c = (uint32_t)__ffs((int)left) - 1;
            uint32_t to = (uint32_t)place[at + (uint64_t)c * n] +
                          (uint32_t)(done >> (4 * c) & 15u);
            edge[to] = id;
            done += (uint64_t)1 << (4 * c);
        }
    }
}

static __global__ void put_nodes(struct view v, const uint8_t *kind,
                                 struct node_sums sums,
                                 const unsigned long long *place,
                                 uint32_t first_group, uint32_t *slot,
                                 struct oj_cuda_ring_level next)
{
    uint32_t i = at_thread(), first, n, edges, unused;
    struct oj_cuda_ring_sums s;
    uint64_t at;
    unsigned long long all;
    if (i >= v.n_nodes || kind[i] != KIND_SPLIT)
        return;
    s = sums_at(sums, i);
    first = v.node_first[i];
    n = v.node_first[i + 1] - first;
    edges = edges_of(v, first, first + n, &unused);
    at = 16 * (uint64_t)s.split_fragments;
    all = place[at + 16 * (uint64_t)n] - place[at];
    for (uint32_t c = 0; c < OJ_RING_CELL_CHILDREN; c++)
        next.node_first.data[16 * s.split + c] =
            (uint32_t)(place[at + (uint64_t)c * n] >> 32);
    next.parent.data[s.split] = place_of(v, i);
    next.replication.data[s.split] =
        v.replication[i / 16] *
        ((float)(uint32_t)all + (float)(uint32_t)(all >> 32)) /
        ((float)edges + (float)n);
    slot[i] = oj_ring_slot_make(OJ_RING_INNER, first_group + s.split);
    if (s.split == 0) /* the first of all ends the list, too */
        next.node_first.data[next.n_nodes] = (uint32_t)next.n_fragments;
}

#endif
