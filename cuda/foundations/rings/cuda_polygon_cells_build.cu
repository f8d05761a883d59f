#include "cuda_polygon_cells_build.cuh"

#include <string.h>

/* Blocks per multiprocessor of the kernel that writes leaves. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ == 750
#define LEAF_BLOCKS 4 /* maximum for the number of threads of an sm_75 */
#else
#define LEAF_BLOCKS 5
#endif

/* A cell with more edges than this is split. */
#define MOST_EDGES 12

/* Maximum of the level `fine`, each of whose cells has a bit per sixteenth in
 * `occupied` (oj_ring_cells_search.h). `fine` is the first level with at least
 * four cells per edge of the layer, but at most this one, with 4^6 cells along
 * each axis, and at most one below the deepest level of the tree. */
#define MOST_FINE_LEVEL 6

/* A tree with more edges and records than LARGE_FACTOR * edges of the layer,
 * and than LARGE_LEAST, is large: it splits fewer cells. */
#define LARGE_FACTOR 12
#define LARGE_LEAST (1 << 22)

/* Maximum number of fragments, or of edges, of a level that is split: indices
 * have 32 bits, and a split makes up to 16 of each. */
#define MOST_PLACES ((int64_t)1 << 27)

/* --- a level as kernels see it ---------------------------------------------
 */

enum ring_node_kind
{
    KIND_NOTHING = 0, /* the node is empty or covered, so its slot needs no
                         records */
    KIND_SPLIT,
    KIND_LEAF
};

struct view
{
    struct oj_ring_tree tree; /* only its frame, units and part_feature are
                                 used */
    struct oj_cuda_ring_level level;
    double side, steps;
    float margin; /* oj_ring_edge_margin() */
    uint32_t n_nodes, n_fragments;
    const struct oj_cuda_segment *segment;
    uint32_t most;
    int is_large, may_split;

    /* Results of the kernels: */
    uint8_t *kind; /* [n_nodes] enum ring_node_kind */
    /* [n_nodes] prefix sums within the node's block of threads: leaves + 2^16 *
     * split nodes, fragments of split nodes, records, edges. */
    uint4 *of_node;
    /* [blocks + 1] prefix sums over the blocks of threads. */
    struct oj_cuda_ring_sums *of_block;
    /* [n_listed] fragments of the nodes that are split; NULL stands for all
     * fragments of the level. */
    uint32_t *list;
    uint32_t n_listed;
    /* [n_fragments] contributions to the codes of leaves
     * (oj_ring_code_contribution()) */
    uint32_t *contribution;
    struct oj_cuda_ring_marks marks;
};

static __device__ uint32_t thread_index(void)
{
    return blockIdx.x * BLOCK + threadIdx.x;
}

/* Returns fragment k of the list of fragments that are split, or fragment k of
 * the level if there is no list. */
static __device__ struct oj_ring_fragment
load_listed_fragment(const struct view &v, uint32_t k)
{
    return v.level.fragment[v.list != NULL ? v.list[k] : k];
}

static __device__ uint2 cell_coordinates_of_node(const struct view &v,
                                                 uint32_t node)
{
    uint2 p = v.level.parent[node / 16];
    if (v.level.depth > 0)
    {
        p.x = 4 * p.x + node % 4;
        p.y = 4 * p.y + node / 4 % 4;
    }
    return p;
}

static __device__ struct oj_ring_splitter splitter_of_node(const struct view &v,
                                                           uint32_t node)
{
    uint2 p;
    if (v.level.window != NULL)
    {
        p = v.level.window[node];
        return oj_ring_splitter_of_window(&v.tree.frame, p.x, p.y, v.side);
    }
    p = cell_coordinates_of_node(v, node);
    return oj_ring_splitter_of_children(&v.tree.frame, p.x, p.y, v.side,
                                        v.level.depth == 0);
}

/* --- nodes ---------------------------------------------------------------- */

/* Returns the number of edges of the node whose fragments are first .. end - 1.
 * They are contiguous in the level's edges, from *first_edge on. */
static __device__ uint32_t n_edges_of_node(const struct view &v, uint32_t first,
                                           uint32_t end, uint32_t *first_edge)
{
    struct oj_ring_fragment a, b;
    if (first == end)
        return 0;
    a = v.level.fragment[first];
    b = v.level.fragment[end - 1];
    *first_edge = a.first;
    return b.first + b.n - a.first;
}

/* Returns the code of a leaf with the fragments first .. end - 1. contribution
 * holds that of each fragment to the code (oj_ring_code_contribution()); NULL
 * means that no fragment has edges. */
static __device__ uint64_t leaf_code_of_fragments(const struct view &v,
                                                  uint32_t first, uint32_t end,
                                                  const uint32_t *contribution)
{
    struct oj_ring_coder coder = oj_ring_coder_make(v.tree.units);
    if (end - first > OJ_RING_CODED_RECORDS)
        return UINT64_MAX;
    for (uint32_t k = first; k < end; k++)
    {
        struct oj_ring_split none = {0, 0};
        uint32_t unit_and_bit = v.level.fragment[k].unit_and_bit;
        oj_ring_coder_add(&coder, unit_and_bit >> 1,
                          contribution != NULL
                              ? contribution[k]
                              : oj_ring_code_contribution(unit_and_bit, none));
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

/* Returns the prefix sums of node i. */
static __device__ struct oj_cuda_ring_sums
node_prefix_sums(const struct view &v, uint32_t i)
{
    return v.of_block[i / BLOCK] + unpack_sums(v.of_node[i]);
}

static __device__ uint4 operator+(uint4 a, uint4 b)
{
    return make_uint4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/* Returns the exclusive prefix sum of n over the threads of a block; *all
 * becomes the total. */
static __device__ uint4 block_prefix_sum(uint4 n, uint4 *all)
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

static __device__ void store_prefix_sums(const struct view &v, uint32_t i,
                                         const struct oj_cuda_ring_sums &s)
{
    uint4 all, before = block_prefix_sum(make_uint4(s.split << 16 | s.leaves,
                                                    s.split_fragments,
                                                    s.records, s.edges),
                                         &all);
    if (i < v.n_nodes)
        v.of_node[i] = before;
    if (threadIdx.x == 0)
        v.of_block[blockIdx.x] = unpack_sums(all);
}

/* Returns the kind of node i. Sets in *s, which is zero on entry, what it
 * needs: a split and its fragments, or a leaf with its records and edges. A
 * node that is not split, has no edges and is covered by at most one unit needs
 * nothing: KIND_NOTHING. If a unit covers it, *slot becomes its slot
 * (OJ_RING_COVERED, rank of the unit's feature); else it stays unchanged. */
static __device__ enum ring_node_kind
decide_node_kind(const struct view &v, uint32_t i, struct oj_cuda_ring_sums *s,
                 uint32_t *slot)
{
    uint32_t first = v.level.node_first[i], end = v.level.node_first[i + 1],
             unused, of;
    uint32_t n = n_edges_of_node(v, first, end, &unused);
    if (v.may_split &&
        oj_ring_node_splits(n, v.most, v.level.depth, v.tree.frame.levels,
                            v.level.replication[i / 16], v.is_large))
    {
        s->split = 1;
        s->split_fragments = end - first;
        return KIND_SPLIT;
    }
    if (end == first)
        return KIND_NOTHING;
    of = n > 0 ? OJ_RING_CODE_ASK
               : (uint32_t)(leaf_code_of_fragments(v, first, end, NULL) & 15u);
    if (of == OJ_RING_CODE_ASK)
    {
        s->leaves = 1;
        s->records = end - first;
        s->edges = n;
        return KIND_LEAF;
    }
    if (of > 0)
        *slot = oj_ring_slot_make(
            OJ_RING_COVERED,
            (uint32_t)oj_ring_unit_rank(
                &v.tree, v.level.fragment[first + of - 1].unit_and_bit >> 1));
    return KIND_NOTHING;
}

static __global__ void choose_node_kinds(const __grid_constant__ struct view v,
                                         uint32_t *slot)
{
    uint32_t i = thread_index(), slot_of_node = 0;
    struct oj_cuda_ring_sums s = {0, 0, 0, 0, 0};
    if (i < v.n_nodes)
    {
        v.kind[i] = (uint8_t)decide_node_kind(v, i, &s, &slot_of_node);
        slot[i] = slot_of_node;
    }
    store_prefix_sums(v, i, s);
}

/* --- fragments ------------------------------------------------------------ */

/* Sets head[k] = k if fragment k of the list is the first of its unit in its
 * node, otherwise 0. A prefix maximum then fills in the zeros. */
struct write_heads
{
    struct view v;

    __device__ void operator()(int64_t k) const
    {
        const struct oj_ring_fragment *fragment = v.level.fragment;
        struct oj_ring_fragment f, before;
        v.marks.head[k] = 0;
        if (k == 0)
            return;
        f = fragment[v.list != NULL ? v.list[k] : k];
        before = fragment[v.list != NULL ? v.list[k - 1] : k - 1];
        if (f.node != before.node ||
            f.unit_and_bit >> 1 != before.unit_and_bit >> 1)
            v.marks.head[k] = (uint32_t)k;
    }
};

/* Marks the children that need fragment k of the list, and returns 1. If
 * `exactly` is false and exact signs are needed, returns 0 instead; the
 * fragment must then be marked again. */
template <bool exactly>
static __device__ __forceinline__ int
mark_children_of_fragment(const struct view &v, uint32_t k)
{
    struct oj_ring_fragment f = load_listed_fragment(v, k);
    const struct oj_cuda_ring_marks &to = v.marks;
    struct oj_ring_masks m = {0, 0, 0};
    int unsure = 0;
    if (f.n > 0)
    {
        struct oj_ring_splitter s = splitter_of_node(v, f.node);
        for (uint32_t e = f.first; e < f.first + f.n; e++)
        {
            const struct oj_cuda_segment g = v.segment[v.level.edge[e]];
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
        uint32_t inside = oj_ring_masks_inside(&m, f.unit_and_bit) & ~m.touched;
        if (inside != 0)
            atomicXor(&to.lost[to.head[k]], inside);
    }
    return 1;
}

static __global__ void __launch_bounds__(BLOCK, 3)
    mark_children_or_note_doubt(const __grid_constant__ struct view v)
{
    uint32_t k = thread_index();
    uint32_t *doubt = v.marks.doubt;
    if (k < v.n_listed && !mark_children_of_fragment<false>(v, k))
        doubt[1 + atomicAdd(doubt, 1u)] = k;
}

/* Marks the children for those fragments that need exact signs. This is a
 * separate kernel, because exact signs need many registers, and few fragments
 * need them. */
static __global__ void
mark_unsure_fragments_exactly(const __grid_constant__ struct view v)
{
    const uint32_t *doubt = v.marks.doubt;
    for (uint32_t d = thread_index(); d < doubt[0]; d += gridDim.x * BLOCK)
        mark_children_of_fragment<true>(v, doubt[1 + d]);
}

/* --- leaves --------------------------------------------------------------- */

/* Lists the fragments of nodes that are split. Turns the fragments of leaves
 * into records and short edges, and computes their contributions to the codes
 * of the leaves (oj_ring_code_contribution()): first a thread per fragment,
 * then a thread per edge of the block. LEAF_BLOCKS blocks per multiprocessor
 * leave each thread the registers that it needs. */
static __global__ void __launch_bounds__(BLOCK, LEAF_BLOCKS)
    write_leaf_fragments_and_edges(
        const __grid_constant__ struct view v,
        const __grid_constant__ struct oj_cuda_ring_cells cells,
        const __grid_constant__ struct oj_cuda_ring_part to)
{
    /* [edge of the block] number of the fragment to which the edge belongs. */
    __shared__ uint8_t owner[OJ_RING_FRAGMENT * BLOCK];
    __shared__ uint32_t from[BLOCK];
    __shared__ uint32_t shift[BLOCK];
    __shared__ double reference_x[BLOCK];
    __shared__ double reference_y[BLOCK];
    __shared__ uint32_t touched[BLOCK];
    __shared__ uint32_t toggled[BLOCK];
    uint32_t k = thread_index(), mine = threadIdx.x, at, n = 0;
    uint4 n_edges;
    enum ring_node_kind is = KIND_NOTHING;
    struct oj_ring_fragment f = {0, 0, 0, 0};
    if (k < v.n_fragments)
    {
        f = v.level.fragment[k];
        is = (enum ring_node_kind)v.kind[f.node];
    }
    if (is != KIND_NOTHING)
    {
        struct oj_cuda_ring_sums s = node_prefix_sums(v, f.node);
        uint32_t first = v.level.node_first[f.node];
        if (is == KIND_SPLIT)
            v.list[s.split_fragments + k - first] = k;
        else
        {
            struct oj_ring_record r;
            n = f.n;
            uint2 place = cell_coordinates_of_node(v, f.node);
            oj_ring_cell_reference(&v.tree.frame, place.x, place.y, v.side,
                                   &reference_x[mine], &reference_y[mine]);
            shift[mine] =
                to.first_edge + s.edges - v.level.fragment[first].first;
            r.unit_and_bit = f.unit_and_bit;
            r.first = shift[mine] + f.first;
            cells.record.data[to.first_record + s.records + k - first] = r;
        }
    }
    touched[mine] = toggled[mine] = 0;
    at = block_prefix_sum(make_uint4(n, 0, 0, 0), &n_edges).x;
    from[mine] = f.first - at;
    for (uint32_t e = at; e < at + n; e++)
        owner[e] = (uint8_t)mine;
    __syncthreads();
    for (uint32_t i = mine; i < n_edges.x; i += BLOCK)
    {
        uint32_t of = owner[i], e = from[of] + i, id = v.level.edge[e];
        const struct oj_cuda_segment g = v.segment[id];
        struct oj_ring_edge16 edge;
        struct oj_ring_split split;
        edge = oj_ring_edge_pack(g.ax, g.ay, g.bx, g.by, reference_x[of],
                                 reference_y[of], v.steps);
        split = oj_ring_edge_split_sixteenths(edge, v.margin);
        cells.edge.data[shift[of] + e] = edge;
        cells.edge_segment.data[shift[of] + e] = id;
        atomicOr(&touched[of], split.touched);
        atomicXor(&toggled[of], split.toggled);
    }
    __syncthreads();
    if (is == KIND_LEAF)
    {
        struct oj_ring_split all = {touched[mine], toggled[mine]};
        v.contribution[k] = oj_ring_code_contribution(f.unit_and_bit, all);
    }
}

static __global__ void write_leaf_codes_and_slots(
    const __grid_constant__ struct view v,
    const __grid_constant__ struct oj_cuda_ring_cells cells,
    const __grid_constant__ struct oj_cuda_ring_part to)
{
    uint32_t i = thread_index(), first, end;
    struct oj_cuda_ring_sums s;
    struct oj_ring_leaf leaf;
    if (i >= v.n_nodes || v.kind[i] != KIND_LEAF)
        return;
    first = v.level.node_first[i];
    end = v.level.node_first[i + 1];
    s = node_prefix_sums(v, i);
    leaf.code = leaf_code_of_fragments(v, first, end, v.contribution);
    leaf.first = to.first_record + s.records;
    leaf.n = 16 * (end - first) + (uint32_t)v.level.depth;
    cells.leaf.data[to.first_leaf + s.leaves] = leaf;
    cells.slot.data[to.first_slot + i] =
        oj_ring_slot_make(OJ_RING_LEAF, to.first_leaf + s.leaves);
}

/* --- children ------------------------------------------------------------- */

/* Counts what each child of a split node receives, in one byte per fragment and
 * child. A node has n fragments, from number `first` of the list on. For its
 * fragment number k, from 0, and its child c, byte 16 first + c n + k is the
 * number of edges that the child receives from the fragment, plus 128 if it
 * receives the fragment at all. The prefix sums of these counts are the places
 * in the next level: those of fragments in the high half, those of edges in the
 * low half. */
struct child_counts
{
    uint32_t first, n; /* fragments of the node, in the list */
    /* Index of the byte for this fragment and child 0; the byte for child c is
     * at index `at` + c * n. */
    uint64_t at;
};

static __device__ struct child_counts
index_of_child_counts(const struct view &v, uint32_t node, uint32_t k)
{
    struct child_counts f;
    f.first = v.of_block[node / BLOCK].split_fragments + v.of_node[node].y;
    f.n = v.level.node_first[node + 1] - v.level.node_first[node];
    f.at = 15 * (uint64_t)f.first + k;
    return f;
}

static __global__ void
count_fragments_per_child(const __grid_constant__ struct view v, uint8_t *count)
{
    uint32_t k = thread_index(), receivers;
    struct oj_ring_fragment f;
    struct child_counts counts;
    if (k >= v.n_listed)
        return;
    f = load_listed_fragment(v, k);
    counts = index_of_child_counts(v, f.node, k);
    receivers =
        oj_cuda_ring_mask_of_receiving_children(v.marks, k, f.unit_and_bit);
    for (uint32_t c = 0; c < OJ_RING_CELL_CHILDREN; c++)
        count[counts.at + (uint64_t)c * counts.n] =
            (uint8_t)((receivers >> c & 1u) << 7 |
                      (uint32_t)(v.marks.masks[k].counts >> (4 * c) & 15u));
}

/* Returns the counts of byte i for the prefix sum: 1 for a fragment in the high
 * half, the number of edges in the low half. */
struct fragment_and_edge_counts
{
    const uint8_t *byte;

    __device__ unsigned long long operator()(ptrdiff_t i) const
    {
        return (unsigned long long)(byte[i] >> 7) << 32 | (byte[i] & 15u);
    }
};

static __global__ void scatter_fragments_to_children(
    const __grid_constant__ struct view v, const unsigned long long *place,
    const __grid_constant__ struct oj_cuda_ring_level next)
{
    uint32_t k = thread_index(), inside, split;
    struct oj_ring_fragment f;
    struct child_counts counts;
    uint64_t done = 0;
    if (k >= v.n_listed)
        return;
    f = load_listed_fragment(v, k);
    counts = index_of_child_counts(v, f.node, k);
    split = node_prefix_sums(v, f.node).split;
    inside = oj_cuda_ring_mask_of_inside_children(v.marks, k, f.unit_and_bit);
    for (uint32_t left = oj_cuda_ring_mask_of_receiving_children(
             v.marks, k, f.unit_and_bit);
         left != 0; left &= left - 1)
    {
        uint32_t c = (uint32_t)__ffs((int)left) - 1;
        unsigned long long to = place[counts.at + (uint64_t)c * counts.n];
        next.fragment[to >> 32] = {
            (f.unit_and_bit & ~1u) | (inside >> c & 1u), (uint32_t)to,
            (uint32_t)(v.marks.masks[k].counts >> (4 * c) & 15u),
            16 * split + c};
    }
    for (uint32_t e = f.first; e < f.first + f.n; e++)
    {
        uint32_t id = v.level.edge[e];
        for (uint32_t left = v.marks.touched[e]; left != 0; left &= left - 1)
        {
            uint32_t c = (uint32_t)__ffs((int)left) - 1;
            uint32_t to = (uint32_t)place[counts.at + (uint64_t)c * counts.n] +
                          (uint32_t)(done >> (4 * c) & 15u);
            next.edge[to] = id;
            done += (uint64_t)1 << (4 * c);
        }
    }
}

/* Writes the children of each split node. The thread of the node's first
 * fragment does this. */
static __global__ void
write_child_nodes(const __grid_constant__ struct view v,
                  const unsigned long long *place, uint32_t first_group,
                  uint32_t *slot,
                  const __grid_constant__ struct oj_cuda_ring_level next)
{
    uint32_t k = thread_index(), node, edges, unused, split;
    struct child_counts f;
    unsigned long long all;
    if (k >= v.n_listed)
        return;
    node = load_listed_fragment(v, k).node;
    f = index_of_child_counts(v, node, k);
    if (k != f.first)
        return;
    split = node_prefix_sums(v, node).split;
    edges = n_edges_of_node(v, v.level.node_first[node],
                            v.level.node_first[node + 1], &unused);
    all = place[f.at + 16 * (uint64_t)f.n] - place[f.at];
    for (uint32_t c = 0; c < OJ_RING_CELL_CHILDREN; c++)
        next.node_first[16 * split + c] =
            (uint32_t)(place[f.at + (uint64_t)c * f.n] >> 32);
    next.parent[split] = cell_coordinates_of_node(v, node);
    next.replication[split] =
        v.level.replication[node / 16] *
        ((float)(uint32_t)all + (float)(uint32_t)(all >> 32)) /
        ((float)edges + (float)f.n);
    slot[node] = oj_ring_slot_make(OJ_RING_INNER, first_group + split);
    if (split == 0) /* one of the threads also writes the end of the array of
                       all nodes */
        next.node_first[next.n_nodes] = (uint32_t)next.n_fragments;
}

/* --- steps ---------------------------------------------------------------- */

static struct view make_level_view(const struct oj_cuda_ring_making *m,
                                   const struct oj_cuda_ring_level *level,
                                   int is_large, int may_split)
{
    struct view v = {};
    v.tree = m->tree;
    v.level = *level;
    v.side = m->tree.frame.side[level->depth];
    v.steps = m->tree.frame.steps[level->depth];
    v.margin = oj_ring_edge_margin(&m->tree.frame, v.steps);
    v.n_nodes = (uint32_t)level->n_nodes;
    v.n_fragments = v.n_listed = (uint32_t)level->n_fragments;
    v.segment = m->layer->segment.data;
    v.most = oj_ring_node_max_edges(MOST_EDGES, level->depth, m->fine);
    v.is_large = is_large;
    v.may_split = may_split;
    return v;
}

/* Decides the kinds of all nodes, and sums up what they add to the tree into
 * part->sums. Waits for the stream. */
static oj_status decide_node_kinds_of_level(const struct oj_cuda_ring_making *m,
                                            struct oj_cuda_work *work,
                                            struct view *v,
                                            struct oj_cuda_ring_part *part)
{
    int64_t n = v->n_nodes, n_blocks = oj_cuda_count_blocks(n, BLOCK);
    part->n_slots = (v->n_nodes + 15) / 16 * 16;
    OJ_TRY(work->make(n, &v->kind));
    OJ_TRY(work->make(n, &v->of_node));
    OJ_TRY(work->make(n_blocks + 1, &v->of_block));
    OJ_TRY(oj_cuda_ring_grow_array(m->keep, &m->cells->slot, part->first_slot,
                                   part->n_slots));
    OJ_TRY(work->run<BLOCK>(n, choose_node_kinds, *v,
                            m->cells->slot.data + part->first_slot));
    OJ_TRY(work->clear(v->of_block + n_blocks, 1));
    OJ_TRY(work->scan_groups_of_five((uint32_t(*)[5])v->of_block, n_blocks));
    return work->read(v->of_block + n_blocks, &part->sums);
}

/* Writes records and edges of leaves, and the list of fragments to split. */
static oj_status write_leaves_of_level(const struct oj_cuda_ring_making *m,
                                       struct oj_cuda_work *work,
                                       struct view *v,
                                       const struct oj_cuda_ring_part *part)
{
    struct oj_cuda_ring_cells *cells = m->cells;
    const struct oj_cuda_ring_sums *s = &part->sums;
    if (v->n_fragments == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_ring_grow_array(m->keep, &cells->leaf, part->first_leaf,
                                   s->leaves));
    OJ_TRY(oj_cuda_ring_grow_array(m->keep, &cells->record, part->first_record,
                                   s->records));
    OJ_TRY(oj_cuda_ring_grow_array(m->keep, &cells->edge, part->first_edge,
                                   s->edges));
    OJ_TRY(oj_cuda_ring_grow_array(m->keep, &cells->edge_segment,
                                   part->first_edge, s->edges));
    OJ_TRY(work->make(s->split_fragments, &v->list));
    OJ_TRY(work->make(v->n_fragments, &v->contribution));
    OJ_TRY(work->run<BLOCK>(v->n_fragments, write_leaf_fragments_and_edges, *v,
                            *cells, *part));
    OJ_TRY(work->run<BLOCK>(v->n_nodes, write_leaf_codes_and_slots, *v, *cells,
                            *part));
    v->n_listed = s->split_fragments;
    return OJ_OK;
}

/* Marks the children of all listed fragments, in stream order. */
static oj_status mark_children_of_fragments(struct oj_cuda_work *work,
                                            struct view *v)
{
    struct oj_cuda_ring_marks *marks = &v->marks;
    int64_t n = v->n_listed;
    if (n == 0)
        return OJ_OK;
    OJ_TRY(work->make(n, &marks->head));
    OJ_TRY(work->allocate_zeros(n, &marks->lost));
    OJ_TRY(work->make(n, &marks->masks));
    OJ_TRY(work->make(v->level.n_edges, &marks->touched));
    OJ_TRY(work->make(n + 1, &marks->doubt));
    OJ_TRY(work->clear(marks->doubt, 1));
    OJ_TRY(work->each(n, write_heads{*v}));
    OJ_TRY(work->scan_running_maximum(marks->head, n));
    OJ_TRY(work->run<BLOCK>(n, mark_children_or_note_doubt, *v));
    return work->launch_blocks<BLOCK>((unsigned)work->device->n_processors,
                                      mark_unsure_fragments_exactly, *v);
}

oj_status oj_cuda_ring_mark_children(const struct oj_cuda_ring_making *m,
                                     struct oj_cuda_work *work,
                                     const struct oj_cuda_ring_level *level,
                                     struct oj_cuda_ring_marks *out)
{
    struct view v = make_level_view(m, level, 0, 0);
    OJ_TRY(mark_children_of_fragments(work, &v));
    *out = v.marks;
    return OJ_OK;
}

/* Makes the level *next from the listed fragments; *below owns its arrays. */
static oj_status split_nodes_into_next_level(
    const struct oj_cuda_ring_making *m, struct oj_cuda_work *work,
    struct oj_cuda_work *below, struct view *v,
    const struct oj_cuda_ring_part *part, struct oj_cuda_ring_level *next)
{
    int64_t n = 16 * (int64_t)part->sums.split_fragments;
    uint32_t first_group = (part->first_slot + part->n_slots) / 16;
    uint8_t *count;
    unsigned long long *place, all = 0;
    OJ_TRY(mark_children_of_fragments(work, v));
    OJ_TRY(work->make(n + 1, &count));
    OJ_TRY(work->clear(count + n, 1));
    OJ_TRY(work->run<BLOCK>(v->n_listed, count_fragments_per_child, *v, count));
    OJ_TRY(work->scan_of_computed_values(n, fragment_and_edge_counts{count},
                                         &place, &all));
    next->depth = v->level.depth + 1;
    OJ_TRY(oj_cuda_ring_level_make(below, part->sums.split, all, next));
    OJ_TRY(work->run<BLOCK>(v->n_listed, write_child_nodes, *v, place,
                            first_group, m->cells->slot.data + part->first_slot,
                            *next));
    return work->run<BLOCK>(v->n_listed, scatter_fragments_to_children, *v,
                            place, *next);
}

/* Ends a level. Nodes that are not split become slots and leaves of *part,
 * whose first_* are set. All others are split into the nodes of *next, whose
 * arrays *below owns; next->n_nodes stays 0 if no node was split. If may_split
 * is 0, no node is split. Waits for the stream. */
static oj_status finish_leaves_and_split_level(
    const struct oj_cuda_ring_making *m, struct oj_cuda_work *below,
    const struct oj_cuda_ring_level *level, int is_large, int may_split,
    struct oj_cuda_ring_part *part, struct oj_cuda_ring_level *next)
{
    struct oj_cuda_work work(below);
    struct view v = make_level_view(m, level, is_large, may_split);
    OJ_TRY(decide_node_kinds_of_level(m, &work, &v, part));
    OJ_TRY(write_leaves_of_level(m, &work, &v, part));
    return part->sums.split > 0
               ? split_nodes_into_next_level(m, &work, below, &v, part, next)
               : OJ_OK;
}

/* --- levels --------------------------------------------------------------- */

/* Parts of the tree, one per level; part[0] is level `top`. */
struct parts
{
    int top, n;
    struct oj_cuda_ring_part part[OJ_RING_CELL_LEVELS + 1];
};

/* Adds a level to the tree and makes the next one. If memory for the next level
 * is missing, no node of this level is split. */
static oj_status build_level_within_memory(
    const struct oj_cuda_ring_making *m, struct oj_cuda_work *below,
    const struct oj_cuda_ring_level *level, struct oj_cuda_ring_part *part,
    struct oj_cuda_ring_level *next)
{
    struct oj_cuda_ring_part bases = *part;
    int64_t n = level->n_edges + level->n_fragments;
    int is_large =
        (int64_t)part->first_edge + part->first_record + n > m->large;
    int may_split = n < MOST_PLACES && level->n_nodes < MOST_PLACES / 4;
    oj_status status = finish_leaves_and_split_level(m, below, level, is_large,
                                                     may_split, part, next);
    if (status != OJ_ERR_NOMEM || level->depth == 0)
        return status;
    below->release();
    *part = bases;
    *next = {};
    return finish_leaves_and_split_level(m, below, level, is_large, 0, part,
                                         next);
}

/* Begins the part of the next level: its slots, leaves, records and edges
 * follow those of the level above. */
static struct oj_cuda_ring_part *begin_part_of_next_level(struct parts *parts)
{
    struct oj_cuda_ring_part *part = &parts->part[parts->n];
    if (parts->n > 0)
    {
        const struct oj_cuda_ring_part *above = part - 1;
        part->first_slot = above->first_slot + above->n_slots;
        part->first_leaf = above->first_leaf + above->sums.leaves;
        part->first_record = above->first_record + above->sums.records;
        part->first_edge = above->first_edge + above->sums.edges;
    }
    parts->n++;
    return part;
}

static oj_status build_levels_of_tree(struct oj_cuda_ring_making *m,
                                      struct parts *parts)
{
    struct oj_cuda_work even(m->keep), odd(m->keep);
    struct oj_cuda_work *has = &even, *below = &odd;
    struct oj_cuda_ring_level level = {}, next;
    OJ_TRY(oj_cuda_ring_make_start_level(m, has, &parts->part[0], &level));
    if (level.depth > 0)
    {
        parts->top = level.depth - 1;
        parts->n = 1;
    }
    for (; level.n_nodes > 0; level = next)
    {
        struct oj_cuda_work *done = has;
        next = {};
        OJ_TRY(oj_check_cancel(has->device->cancel, has->err));
        OJ_TRY(build_level_within_memory(
            m, below, &level, begin_part_of_next_level(parts), &next));
        done->release();
        has = below;
        below = done;
    }
    return OJ_OK;
}

/* --- the whole ------------------------------------------------------------ */

static oj_status terminate_records_and_set_tree(struct oj_cuda_ring_making *m,
                                                const struct parts *parts)
{
    const struct oj_cuda_ring_part *last = &parts->part[parts->n - 1];
    struct oj_cuda_ring_cells *cells = m->cells;
    int64_t n_records = (int64_t)last->first_record + last->sums.records;
    uint32_t n_edges = last->first_edge + last->sums.edges;
    OJ_TRY(oj_cuda_ring_grow_array(m->keep, &cells->record, n_records, 1));
    struct oj_ring_record *end = cells->record.data + n_records;
    OJ_TRY(m->keep->each(1, [=] __device__(int64_t) { *end = {0, n_edges}; }));
    cells->tree = m->tree;
    cells->tree.slot = cells->slot.data;
    cells->tree.leaf = cells->leaf.data;
    cells->tree.record = cells->record.data;
    cells->tree.edge = cells->edge.data;
    cells->tree.edge_segment = cells->edge_segment.data;
    cells->tree.segment = m->layer->segment.data;
    return OJ_OK;
}

/* Makes the directory. Each thread writes the 16 slots of one node of level
 * `level` - 1: those of its children or, if an ancestor without children covers
 * the node, 16 copies of the ancestor's slot. In `slot`, the slots of level
 * `top` come first, in the order of the directory. */
static __global__ void make_directory(const uint32_t *slot, int top, int level,
                                      uint32_t *directory)
{
    uint32_t i = blockIdx.x * BLOCK + threadIdx.x, x, y, s;
    int shift = 2 * (level - 1 - top);
    if (i >> (4 * level - 4) != 0)
        return;
    x = i & ((1u << (2 * level - 2)) - 1);
    y = i >> (2 * level - 2);
    s = slot[oj_ring_directory_index(x >> shift, y >> shift, top)];
    while (s >> OJ_RING_SLOT_BITS == OJ_RING_INNER && shift > 0)
    {
        shift -= 2;
        s = slot[(s & OJ_RING_SLOT_MAX) * (uint64_t)16 + (y >> shift & 3u) * 4 +
                 (x >> shift & 3u)];
    }
    for (uint32_t c = 0; c < 16; c += 4)
    {
        uint4 four = make_uint4(s, s, s, s);
        if (s >> OJ_RING_SLOT_BITS == OJ_RING_INNER)
            four = *(
                const uint4 *)&slot[(s & OJ_RING_SLOT_MAX) * (uint64_t)16 + c];
        *(uint4 *)&directory[(uint64_t)i * 16 + c] = four;
    }
}

/* Computes the bits of `occupied`, four adjacent cells per thread. */
static __global__ void
make_occupied_bits(const __grid_constant__ struct oj_ring_tree tree,
                   uint16_t *occupied)
{
    uint32_t i = 4 * (blockIdx.x * BLOCK + threadIdx.x), bits[4];
    int level = tree.directory_level + 1, shift = 2 * level - 2;
    uint32_t parent_x = i >> 4 & ((1u << shift) - 1), parent_y;
    if ((uint64_t)i >> (4 * level) != 0)
        return;
    parent_y = i >> (4 + shift);
    for (uint32_t c = 0; c < 4; c++)
        bits[c] = oj_ring_occupied_bits(&tree, 4 * parent_x + c,
                                        4 * parent_y + i / 4 % 4);
    *(uint2 *)&occupied[i] =
        make_uint2(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16);
}

static oj_status add_directory(struct oj_cuda_work *keep, int top, int level,
                               struct oj_cuda_ring_cells *cells)
{
    int64_t n = (int64_t)1 << (4 * level);
    uint32_t *directory;
    uint16_t *occupied;
    OJ_TRY(keep->make(n, &directory));
    OJ_TRY(keep->make(16 * n, &occupied));
    if (level == top)
        OJ_TRY(keep->check(
            cudaMemcpyAsync(directory, cells->slot.data, 4 * (size_t)n,
                            cudaMemcpyDeviceToDevice, keep->stream)));
    else
        OJ_TRY(keep->run<BLOCK>(n / 16, make_directory, cells->slot.data, top,
                                level, directory));
    cells->tree.directory_level = level;
    cells->tree.directory = directory;
    OJ_TRY(keep->run<BLOCK>(4 * n, make_occupied_bits, cells->tree, occupied));
    cells->tree.occupied = occupied;
    return OJ_OK;
}

static int choose_directory_level(int64_t n_edges)
{
    int fine = 1;
    while (fine < MOST_FINE_LEVEL && (int64_t)1 << (4 * fine) < 4 * n_edges)
        fine++;
    return fine - 1;
}

oj_status oj_cuda_ring_cells_build(struct oj_cuda_work *work,
                                   const struct oj_cuda_layer *layer,
                                   enum oj_ring_units units,
                                   struct oj_cuda_ring_cells *out)
{
    int level = choose_directory_level(layer->n_segments);
    struct oj_cuda_ring_making m = {work, layer, out, {}, level + 1, 0};
    struct parts parts = {};
    if ((layer->x0 <= layer->x1 && layer->magnitude > 1e140) ||
        layer->n_rings > OJ_RING_SLOT_MAX / 2 ||
        layer->n_features > OJ_RING_SLOT_MAX ||
        layer->n_segments > ((int64_t)1 << 31) - 16)
        return oj_fail(work->err, OJ_ERR_UNSUPPORTED,
                       "the polygons have too many rings or segments, or too "
                       "large coordinates, for the GPU; -memory SIZE makes "
                       "tiles, which have fewer");
    m.large = LARGE_FACTOR * layer->n_segments;
    if (m.large < LARGE_LEAST)
        m.large = LARGE_LEAST;
    m.tree.units = units;
    m.tree.frame =
        layer->x0 <= layer->x1
            ? oj_ring_frame_around(layer->x0, layer->y0, layer->x1, layer->y1)
            : oj_ring_frame_around(0.0, 0.0, 0.0, 0.0);
    OJ_TRY(build_levels_of_tree(&m, &parts));
    OJ_TRY(terminate_records_and_set_tree(&m, &parts));
    if (level >= parts.top + parts.n)
        level = parts.top + parts.n - 1;
    return add_directory(work, parts.top, level, out);
}
