#include "cuda_ring_levels.cuh"

#include <string.h>

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
    const uint32_t *edge;
    const uint2 *window; /* NULL: nodes are cells */
    const struct oj_cuda_segment *segment;
    uint32_t most;
    int is_large, may_split;

    /* What is found out of it. */
    uint8_t *kind;  /* [nodes] */
    uint4 *of_node; /* what the nodes of its block before each add up to: leaves
                       and 2^16 * split, split_fragments, records, edges */
    struct oj_cuda_ring_sums *of_block; /* of blocks before, [blocks + 1] */
    uint32_t *list; /* fragments of nodes that are split; NULL: all */
    uint32_t n_listed;
    uint32_t *said; /* [fragments] */
    struct oj_cuda_ring_marks marks;
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

/* What the nodes before node i add up to. */
static __device__ struct oj_cuda_ring_sums sums_at(const struct view &v,
                                                   uint32_t i)
{
    return v.of_block[i / BLOCK] + unpack_sums(v.of_node[i]);
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

static __device__ void set_sums(const struct view &v, uint32_t i,
                                const struct oj_cuda_ring_sums &s)
{
    uint4 all,
        before = sum_before(make_uint4(s.split << 16 | s.leaves,
                                       s.split_fragments, s.records, s.edges),
                            &all);
    if (i < v.n_nodes)
        v.of_node[i] = before;
    if (threadIdx.x == 0)
        v.of_block[blockIdx.x] = unpack_sums(all);
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

static __global__ void judge_nodes(const __grid_constant__ struct view v,
                                   uint32_t *slot)
{
    uint32_t i = at_thread(), says = 0;
    struct oj_cuda_ring_sums s = {0, 0, 0, 0, 0};
    if (i < v.n_nodes)
    {
        v.kind[i] = (uint8_t)judge_node(v, i, &s, &says);
        slot[i] = says;
    }
    set_sums(v, i, s);
}

/* --- fragments ------------------------------------------------------------ */

/* Where the unit of fragment k of the list begins in its node, as far as the
 * one before tells: else 0. */
struct head_of
{
    const struct oj_ring_fragment *fragment;
    const uint32_t *list;

    __device__ uint32_t operator()(ptrdiff_t k) const
    {
        struct oj_ring_fragment f, before;
        if (k == 0)
            return 0;
        f = load_fragment(&fragment[list != NULL ? list[k] : k]);
        before = load_fragment(&fragment[list != NULL ? list[k - 1] : k - 1]);
        return f.node == before.node && f.unit >> 1 == before.unit >> 1
                   ? 0
                   : (uint32_t)k;
    }
};

struct greater
{
    __device__ uint32_t operator()(uint32_t a, uint32_t b) const
    {
        return a > b ? a : b;
    }
};

/* Marks fragment k of the list, or finds that exact signs are needed for it:
 * returns 0. */
template <bool exactly>
static __device__ __forceinline__ int mark_fragment(const struct view &v,
                                                    uint32_t k)
{
    struct oj_ring_fragment f = load_listed(v, k);
    const struct oj_cuda_ring_marks &to = v.marks;
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
            to.touched.data[e] = (uint16_t)split.touched;
            oj_ring_masks_add(&m, split);
        }
    }
    if (unsure)
        return 0;
    to.masks.data[k] = m;
    if (to.head.data[k] != k)
    {
        uint32_t inside = oj_ring_masks_inside(&m, f.unit) & ~m.touched;
        if (inside != 0)
            atomicXor(&to.lost.data[to.head.data[k]], inside);
    }
    return 1;
}

static __global__ void __launch_bounds__(BLOCK, 3)
    mark_fragments(const __grid_constant__ struct view v)
{
    uint32_t k = at_thread();
    uint32_t *doubt = v.marks.doubt.data;
    if (k < v.n_listed && !mark_fragment<false>(v, k))
        doubt[1 + atomicAdd(doubt, 1u)] = k;
}

/* Few, as a rule; exact signs take many registers. */
static __global__ void settle_fragments(const __grid_constant__ struct view v)
{
    const uint32_t *doubt = v.marks.doubt.data;
    for (uint32_t d = at_thread(); d < doubt[0]; d += gridDim.x * BLOCK)
        mark_fragment<true>(v, doubt[1 + d]);
}

/* --- leaves --------------------------------------------------------------- */

/* Fragments of nodes that are split are listed; those of leaves become records
 * and short edges, and it is said what the leaves' codes are made of.  A thread
 * for each fragment, and then for each edge that the block has. Five blocks on
 * a processor: as many as leave it all registers that it needs. */
static __global__ void __launch_bounds__(BLOCK, 5)
    put_records(const __grid_constant__ struct view v,
                const __grid_constant__ struct oj_cuda_ring_cells cells,
                const __grid_constant__ struct oj_cuda_ring_part to)
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
        is = (enum ring_node_kind)v.kind[f.node];
    }
    if (is != KIND_NOTHING)
    {
        struct oj_cuda_ring_sums s = sums_at(v, f.node);
        uint32_t first = v.node_first[f.node];
        if (is == KIND_SPLIT)
            v.list[s.split_fragments + k - first] = k;
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
            cells.record.data[to.first_record + s.records + k - first] = r;
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
        cells.edge.data[shift[of] + e] = edge;
        cells.edge_segment.data[shift[of] + e] = id;
        atomicOr(&touched[of], split.touched);
        atomicXor(&toggled[of], split.toggled);
    }
    __syncthreads();
    if (is == KIND_LEAF)
    {
        struct oj_ring_split all = {touched[mine], toggled[mine]};
        v.said[k] = oj_ring_said_of(f.unit, all);
    }
}

static __global__ void
make_leaves(const __grid_constant__ struct view v,
            const __grid_constant__ struct oj_cuda_ring_cells cells,
            const __grid_constant__ struct oj_cuda_ring_part to)
{
    uint32_t i = at_thread(), first, end;
    struct oj_cuda_ring_sums s;
    struct oj_ring_leaf leaf;
    if (i >= v.n_nodes || v.kind[i] != KIND_LEAF)
        return;
    first = v.node_first[i];
    end = v.node_first[i + 1];
    s = sums_at(v, i);
    leaf.code = code_of(v, first, end, v.said);
    leaf.first = to.first_record + s.records;
    leaf.n = 16 * (end - first) + (uint32_t)v.depth;
    cells.leaf.data[to.first_leaf + s.leaves] = leaf;
    cells.slot.data[to.first_slot + i] =
        oj_ring_slot_make(OJ_RING_LEAF, to.first_leaf + s.leaves);
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

static __device__ struct family family_of(const struct view &v, uint32_t node,
                                          uint32_t k)
{
    struct family f;
    f.first = v.of_block[node / BLOCK].split_fragments + v.of_node[node].y;
    f.n = v.node_first[node + 1] - v.node_first[node];
    f.at = 15 * (uint64_t)f.first + k;
    return f;
}

static __global__ void put_counts(const __grid_constant__ struct view v,
                                  uint8_t *count)
{
    uint32_t k = at_thread(), there;
    struct oj_ring_fragment f;
    struct family family;
    if (k >= v.n_listed)
        return;
    f = load_listed(v, k);
    family = family_of(v, f.node, k);
    there = oj_cuda_ring_there(v.marks, k, f.unit);
    for (uint32_t c = 0; c < OJ_RING_CELL_CHILDREN; c++)
        count[family.at + (uint64_t)c * family.n] =
            (uint8_t)((there >> c & 1u) << 7 |
                      (uint32_t)(v.marks.masks.data[k].counts >> (4 * c) &
                                 15u));
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
put_fragments(const __grid_constant__ struct view v,
              const unsigned long long *place,
              const __grid_constant__ struct oj_cuda_ring_level next)
{
    uint32_t k = at_thread(), inside, split;
    struct oj_ring_fragment f;
    struct family family;
    uint64_t done = 0;
    if (k >= v.n_listed)
        return;
    f = load_listed(v, k);
    family = family_of(v, f.node, k);
    split = sums_at(v, f.node).split;
    inside = oj_cuda_ring_inside(v.marks, k, f.unit);
    for (uint32_t left = oj_cuda_ring_there(v.marks, k, f.unit); left != 0;
         left &= left - 1)
    {
        uint32_t c = (uint32_t)__ffs((int)left) - 1;
        unsigned long long to = place[family.at + (uint64_t)c * family.n];
        uint4 made;
        made.x = (f.unit & ~1u) | (inside >> c & 1u);
        made.y = (uint32_t)to;
        made.z = (uint32_t)(v.marks.masks.data[k].counts >> (4 * c) & 15u);
        made.w = 16 * split + c;
        *(uint4 *)&next.fragment.data[to >> 32] = made;
    }
    for (uint32_t e = f.first; e < f.first + f.n; e++)
    {
        uint32_t id = v.edge[e];
        for (uint32_t left = v.marks.touched.data[e]; left != 0;
             left &= left - 1)
        {
            uint32_t c = (uint32_t)__ffs((int)left) - 1;
            uint32_t to = (uint32_t)place[family.at + (uint64_t)c * family.n] +
                          (uint32_t)(done >> (4 * c) & 15u);
            next.edge.data[to] = id;
            done += (uint64_t)1 << (4 * c);
        }
    }
}

/* By the first fragment of each node that is split. */
static __global__ void
put_nodes(const __grid_constant__ struct view v,
          const unsigned long long *place, uint32_t first_group, uint32_t *slot,
          const __grid_constant__ struct oj_cuda_ring_level next)
{
    uint32_t k = at_thread(), node, edges, unused, split;
    struct family f;
    unsigned long long all;
    if (k >= v.n_listed)
        return;
    node = load_listed(v, k).node;
    f = family_of(v, node, k);
    if (k != f.first)
        return;
    split = sums_at(v, node).split;
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

/* What is found out about a level, of its own; see struct view. */
struct ring_level_work
{
    struct oj_cuda_array<uint8_t> kind;
    struct oj_cuda_array<uint4> of_node;
    struct oj_cuda_array<struct oj_cuda_ring_sums> of_block;
    struct oj_cuda_array<uint32_t> list, said;
    struct oj_cuda_array<uint8_t> count; /* see put_counts() */
    struct oj_cuda_array<unsigned long long> place;
};

/* --- steps ---------------------------------------------------------------- */

static struct view view_of(const struct oj_cuda_ring_making *m,
                           const struct oj_cuda_ring_level *level, int is_large,
                           int may_split)
{
    struct view v = {};
    v.tree = m->tree;
    v.depth = level->depth;
    v.side = m->tree.frame.side[level->depth];
    v.steps = m->tree.frame.steps[level->depth];
    v.margin = oj_ring_edge_margin(&m->tree.frame, v.steps);
    v.n_nodes = (uint32_t)level->n_nodes;
    v.n_fragments = (uint32_t)level->n_fragments;
    v.parent = level->parent.data;
    v.replication = level->replication.data;
    v.node_first = level->node_first.data;
    v.fragment = level->fragment.data;
    v.n_listed = v.n_fragments;
    v.edge = level->edge.data;
    v.window = level->window.data;
    v.segment = m->layer->segment.data;
    v.most = oj_ring_node_most(m->most, level->depth, m->fine);
    v.is_large = is_large;
    v.may_split = may_split;
    return v;
}

/* What becomes of the nodes; waits for the stream. */
static oj_status judge(struct oj_cuda_ring_making *m, struct view *v,
                       struct ring_level_work *w,
                       struct oj_cuda_ring_part *part)
{
    int64_t n = v->n_nodes, n_blocks = oj_blocks(n, BLOCK);
    part->n_slots = (v->n_nodes + 15) / 16 * 16;
    OJ_TRY(m->make(n, &w->kind, &w->of_node));
    OJ_TRY(m->make(n_blocks + 1, &w->of_block));
    OJ_TRY(oj_cuda_ring_extend(m, &m->cells->slot, part->first_slot,
                               part->n_slots));
    v->kind = w->kind.data;
    v->of_node = w->of_node.data;
    v->of_block = w->of_block.data;
    OJ_TRY(m->run(n, "judging cells of rings", judge_nodes, *v,
                  m->cells->slot.data + part->first_slot));
    OJ_CUDA_TRY(cudaMemsetAsync(w->of_block.data + n_blocks, 0,
                                sizeof *w->of_block.data, m->stream),
                "judging cells of rings", m->err);
    return m->scan_total(w->of_block.data, n_blocks, &part->sums,
                         "judging cells of rings");
}

/* Records and edges of leaves, and the list of what is split. */
static oj_status finish(struct oj_cuda_ring_making *m, struct view *v,
                        struct ring_level_work *w,
                        const struct oj_cuda_ring_part *part)
{
    struct oj_cuda_ring_cells *cells = m->cells;
    const struct oj_cuda_ring_sums *s = &part->sums;
    if (v->n_fragments == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_ring_extend(m, &cells->leaf, part->first_leaf, s->leaves));
    OJ_TRY(
        oj_cuda_ring_extend(m, &cells->record, part->first_record, s->records));
    OJ_TRY(oj_cuda_ring_extend(m, &cells->edge, part->first_edge, s->edges));
    OJ_TRY(oj_cuda_ring_extend(m, &cells->edge_segment, part->first_edge,
                               s->edges));
    OJ_TRY(m->make(s->split_fragments, &w->list));
    OJ_TRY(m->make(v->n_fragments, &w->said));
    v->list = w->list.data;
    v->said = w->said.data;
    OJ_TRY(m->run(v->n_fragments, "making cells of rings", put_records, *v,
                  *cells, *part));
    OJ_TRY(m->run(v->n_nodes, "making cells of rings", make_leaves, *v, *cells,
                  *part));
    v->n_listed = s->split_fragments;
    return OJ_OK;
}

/* Marks what is listed, in stream order. */
static oj_status mark(struct oj_cuda_ring_making *m, struct view *v,
                      int64_t n_edges, struct oj_cuda_ring_marks *marks)
{
    int64_t n = v->n_listed;
    if (n == 0)
        return OJ_OK;
    OJ_TRY(m->make(n, &marks->head, &marks->lost, &marks->masks));
    OJ_TRY(m->make(n_edges, &marks->touched));
    OJ_TRY(m->make(n + 1, &marks->doubt));
    OJ_CUDA_TRY(cudaMemsetAsync(marks->doubt.data, 0, 4, m->stream),
                "marking rings", m->err);
    OJ_TRY(m->clear(&marks->lost, "marking rings"));
    OJ_TRY(m->with_scratch(
        [&](void *memory, size_t &bytes)
        {
            oj_cuda_computed<uint32_t, struct head_of> heads = {
                {v->fragment, v->list}, 0};
            return cub::DeviceScan::InclusiveScan(memory, bytes, heads,
                                                  marks->head.data, greater(),
                                                  n, m->stream);
        },
        "marking rings"));
    v->marks = *marks;
    OJ_TRY(m->run(n, "marking rings", mark_fragments, *v));
    return m->run((int64_t)m->device->n_processors * BLOCK, "marking rings",
                  settle_fragments, *v);
}

static oj_status split(struct oj_cuda_ring_making *m, const struct view *v,
                       struct ring_level_work *w,
                       const struct oj_cuda_ring_part *part,
                       struct oj_cuda_ring_level *next)
{
    int64_t n = 16 * (int64_t)part->sums.split_fragments;
    uint32_t first_group = (part->first_slot + part->n_slots) / 16;
    unsigned long long all = 0;
    if (part->sums.split == 0)
        return OJ_OK;
    OJ_TRY(m->make(n + 1, &w->count));
    OJ_CUDA_TRY(cudaMemsetAsync(w->count.data + n, 0, 1, m->stream),
                "splitting cells of rings", m->err);
    OJ_TRY(m->run(v->n_listed, "splitting cells of rings", put_counts, *v,
                  w->count.data));
    OJ_TRY(oj_cuda_ring_places(m, counts{w->count.data}, n, &w->place, &all,
                               "splitting cells of rings"));
    next->depth = v->depth + 1;
    OJ_TRY(oj_cuda_ring_level_make(m, part->sums.split, all >> 32,
                                   all & 0xffffffffu, next));
    OJ_TRY(m->run(v->n_listed, "splitting cells of rings", put_nodes, *v,
                  w->place.data, first_group,
                  m->cells->slot.data + part->first_slot, *next));
    return m->run(v->n_listed, "splitting cells of rings", put_fragments, *v,
                  w->place.data, *next);
}

oj_status oj_cuda_ring_level_down(struct oj_cuda_ring_making *m,
                                  const struct oj_cuda_ring_level *level,
                                  int is_large, int may_split,
                                  struct oj_cuda_ring_part *part,
                                  struct oj_cuda_ring_level *next)
{
    struct view v = view_of(m, level, is_large, may_split);
    struct ring_level_work w = {};
    struct oj_cuda_ring_marks marks = {};
    oj_status status;
    status = judge(m, &v, &w, part);
    if (status == OJ_OK)
        status = finish(m, &v, &w, part);
    if (status == OJ_OK && part->sums.split > 0)
        status = mark(m, &v, level->n_edges, &marks);
    if (status == OJ_OK)
        status = split(m, &v, &w, part, next);
    m->drop(&w.kind, &w.of_node, &w.of_block, &w.list, &w.said, &w.count,
            &w.place);
    oj_cuda_ring_marks_drop(m, &marks);
    return status;
}

oj_status oj_cuda_ring_mark(struct oj_cuda_ring_making *m,
                            const struct oj_cuda_ring_level *level,
                            struct oj_cuda_ring_marks *out)
{
    struct view v = view_of(m, level, 0, 0);
    return mark(m, &v, level->n_edges, out);
}

void oj_cuda_ring_marks_drop(struct oj_cuda_ring_making *m,
                             struct oj_cuda_ring_marks *marks)
{
    m->drop(&marks->head, &marks->lost, &marks->masks, &marks->touched,
            &marks->doubt);
}

void oj_cuda_ring_level_drop(struct oj_cuda_ring_making *m,
                             struct oj_cuda_ring_level *level)
{
    m->drop(&level->parent, &level->replication, &level->node_first,
            &level->fragment, &level->edge, &level->window);
    memset(level, 0, sizeof *level);
}
