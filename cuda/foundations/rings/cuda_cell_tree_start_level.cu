#include "../device/cuda_offset_search.cuh"
#include "cuda_polygon_cells_build.cuh"

/* Maximum number of units for a start below the root: each unit adds at most
 * OJ_RING_WINDOW_EDGES windows or edges to prefix sums of 32 bits. */
#define MOST_UNITS (((int64_t)1 << 32) / OJ_RING_WINDOW_EDGES - 1)

/* A start level may have at most MOST_TIMES * (edges of the layer) + FEW_PLACES
 * windows and edges in total. */
#define MOST_TIMES 4
#define FEW_PLACES (1 << 20)

/* Maximum number of fragments, because the number of a fragment (28 bits) and
 * that of one of its 16 cells share 32 bits of an item. */
#define MOST_FRAGMENTS ((int64_t)1 << 28)

static __device__ int64_t thread_index(void)
{
    return (int64_t)blockIdx.x * BLOCK + threadIdx.x;
}

/* --- units ---------------------------------------------------------------- */

struct units
{
    int64_t n;
    int units; /* enum oj_ring_units */
    struct oj_cuda_layer layer;
    struct oj_ring_frame frame;
    int level; /* start level */
};

/* Prefix sums over the units, [n units + 1] each. Two 32-bit sums share a word,
 * so that one scan computes both. */
struct starts
{
    unsigned long long *fragments; /* low: fragments; high: windows */
    /* Low half: edges; high half: units that are not small at this level
     * (oj_ring_windows_of()). */
    unsigned long long *edges;
    /* [n units] the windows of each unit, packed by pack_windows(). */
    uint32_t *window;
};

/* Totals over all units; `others` are the units that are not small. */
struct all_units
{
    int64_t windows, fragments, edges, others;
};

/* Deepest start level; its cell numbers have 12 bits along each axis. */
#define PACKED_LEVEL 6

static __device__ uint32_t pack_windows(struct oj_ring_windows w)
{
    return w.ix | w.iy << 12 | (w.nx - 1) << 24 | (w.ny - 1) << 28;
}

static __device__ struct oj_ring_windows unpack_windows(uint32_t packed)
{
    struct oj_ring_windows w = {packed & 0xfffu, packed >> 12 & 0xfffu,
                                (packed >> 24 & 15u) + 1, (packed >> 28) + 1};
    return w;
}

static __device__ int64_t first_segment_of_unit(const struct units &u,
                                                int64_t i)
{
    if (u.units == OJ_RING_FEATURES)
        i = u.layer.part_offset.data[i];
    return u.layer.segment_offset.data[u.layer.ring_offset.data[i]];
}

static __device__ struct oj_ring_windows windows_of_unit(const struct units &u,
                                                         int64_t i)
{
    int64_t first = first_segment_of_unit(u, i),
            end = first_segment_of_unit(u, i + 1);
    struct oj_ring_chain chain = oj_ring_chain_make();
    if (end - first <= OJ_RING_WINDOW_EDGES)
    {
        for (int64_t e = first; e < end; e++)
        {
            const struct oj_cuda_segment g = u.layer.segment.data[e];
            oj_ring_chain_add(&chain, g.ax, g.ay, g.bx, g.by);
        }
    }
    return oj_ring_windows_of(&u.frame, &chain, u.level);
}

/* Computes for each unit (a feature or a polygon part) its windows of 4 x 4
 * cells at the start level (oj_ring_windows.h). Also computes its numbers of
 * fragments and edges, multiplied by its number of windows. At level 0, the
 * root, there are no windows, and the numbers are not multiplied. */
static __global__ void
count_windows_and_edges_of_units(const __grid_constant__ struct units u,
                                 struct starts starts)
{
    int64_t i = thread_index(), n;
    unsigned long long times = 1, others = 0;
    if (i > u.n)
        return;
    n = i < u.n ? first_segment_of_unit(u, i + 1) - first_segment_of_unit(u, i)
                : 0;
    if (i < u.n && u.units != OJ_RING_FEATURES &&
        u.layer.part_kind.data[i] != OJ_PART_POLYGON)
        n = 0;
    if (n > 0 && u.level > 0)
    {
        struct oj_ring_windows w = windows_of_unit(u, i);
        times = w.nx * w.ny;
        others = times == 0;
        starts.window[i] = times > 0 ? pack_windows(w) : 0;
    }
    starts.fragments[i] =
        (n > 0 && u.level > 0 ? times << 32 : 0) |
        times *
            (unsigned long long)((n + OJ_RING_FRAGMENT - 1) / OJ_RING_FRAGMENT);
    starts.edges[i] = others << 32 | times * (unsigned long long)n;
}

static oj_status count_windows_of_level(struct oj_cuda_work *work,
                                        const struct units *u,
                                        const struct starts *starts,
                                        struct all_units *all)
{
    unsigned long long fragments = 0, edges = 0;
    OJ_TRY(work->run<BLOCK>(u->n + 1, count_windows_and_edges_of_units, *u,
                            *starts));
    OJ_TRY(work->scan_and_read_total(starts->fragments, u->n, &fragments));
    OJ_TRY(work->scan_and_read_total(starts->edges, u->n, &edges));
    all->windows = (int64_t)(fragments >> 32);
    all->fragments = (int64_t)(fragments & 0xffffffffu);
    all->edges = (int64_t)(edges & 0xffffffffu);
    all->others = (int64_t)(edges >> 32);
    return OJ_OK;
}

/* --- the root ------------------------------------------------------------- */

/* Returns fragment k of the root. */
static __device__ struct oj_ring_fragment
root_fragment_at(const struct units &u, const struct starts &s, int64_t k)
{
    int64_t i = oj_cuda_list_of_entry<int64_t>(s.fragments, 0, u.n, k);
    int64_t begin = first_segment_of_unit(u, i) +
                    (k - (int64_t)s.fragments[i]) * OJ_RING_FRAGMENT;
    int64_t n = first_segment_of_unit(u, i + 1) - begin;
    return {2 * (uint32_t)i, (uint32_t)begin,
            (uint32_t)(n < OJ_RING_FRAGMENT ? n : OJ_RING_FRAGMENT), 0};
}

static oj_status
make_root_level(struct oj_cuda_work *work, const struct oj_cuda_layer *layer,
                const struct units &units, const struct starts &starts,
                int64_t n_fragments, struct oj_cuda_ring_level *out)
{
    const struct units u = units;
    const struct starts s = starts;
    struct oj_cuda_ring_level root = {};
    root.n_nodes = 1;
    root.n_fragments = n_fragments;
    root.n_edges = layer->n_segments;
    OJ_TRY(work->make(1, &root.parent));
    OJ_TRY(work->make(1, &root.replication));
    OJ_TRY(work->make(2, &root.node_first));
    OJ_TRY(work->make(n_fragments, &root.fragment));
    OJ_TRY(work->make(root.n_edges, &root.edge));
    *out = root;
    OJ_TRY(work->each(1,
                      [=] __device__(int64_t)
                      {
                          *root.parent = make_uint2(0, 0);
                          *root.replication = 1.0f;
                          root.node_first[0] = 0;
                          root.node_first[1] = (uint32_t)n_fragments;
                      }));
    OJ_TRY(work->each(n_fragments, [=] __device__(int64_t k)
                      { root.fragment[k] = root_fragment_at(u, s, k); }));
    return work->each(root.n_edges, [=] __device__(int64_t i)
                      { root.edge[i] = (uint32_t)i; });
}

/* --- windows -------------------------------------------------------------- */

/* Writes the windows of each unit, and for each window all fragments of the
 * unit. */
static __global__ void
write_windows_and_fragments(const __grid_constant__ struct units u,
                            struct starts starts,
                            struct oj_cuda_ring_level level)
{
    int64_t i = thread_index();
    struct oj_ring_windows w;
    uint32_t first, end, node, at, edge;
    if (i >= u.n)
        return;
    node = (uint32_t)(starts.fragments[i] >> 32);
    if ((uint32_t)(starts.fragments[i + 1] >> 32) == node)
        return;
    w = unpack_windows(starts.window[i]);
    first = (uint32_t)first_segment_of_unit(u, i);
    end = (uint32_t)first_segment_of_unit(u, i + 1);
    at = (uint32_t)starts.fragments[i];
    edge = (uint32_t)starts.edges[i];
    for (uint32_t k = 0; k < w.nx * w.ny; k++, node++)
    {
        level.window[node] = make_uint2(w.ix + OJ_RING_CELL_SPLIT * (k % w.nx),
                                        w.iy + OJ_RING_CELL_SPLIT * (k / w.nx));
        for (uint32_t e = first; e < end; e += OJ_RING_FRAGMENT, at++)
        {
            uint32_t n =
                end - e < OJ_RING_FRAGMENT ? end - e : OJ_RING_FRAGMENT;
            level.fragment[at] = {2 * (uint32_t)i, edge, n, node};
            for (uint32_t j = 0; j < n; j++)
                level.edge[edge++] = e + j;
        }
    }
}

/* The level of windows and its marks; *work owns the arrays. */
struct windows
{
    struct oj_cuda_ring_level level;
    struct oj_cuda_ring_marks marks;
};

static oj_status make_window_level(const struct oj_cuda_ring_making *m,
                                   struct oj_cuda_work *work,
                                   const struct units *u,
                                   const struct starts *starts,
                                   const struct all_units *all,
                                   struct windows *out)
{
    struct oj_cuda_ring_level *level = &out->level;
    level->depth = u->level;
    level->n_nodes = all->windows;
    level->n_fragments = all->fragments;
    level->n_edges = all->edges;
    OJ_TRY(work->make(level->n_nodes, &level->window));
    OJ_TRY(work->make(level->n_fragments, &level->fragment));
    OJ_TRY(work->make(level->n_edges, &level->edge));
    OJ_TRY(work->run<BLOCK>(u->n, write_windows_and_fragments, *u, *starts,
                            *level));
    return oj_cuda_ring_mark_children(m, work, level, &out->marks);
}

/* --- from windows to cells ------------------------------------------------ */

/* Returns the mask of those cells of its window that need fragment k: cells in
 * which the fragment has edges, or in which its bit is 1. */
static __device__ uint32_t cells_of_fragment(const struct windows &v,
                                             uint32_t k)
{
    return oj_cuda_ring_mask_of_receiving_children(
        v.marks, k, v.level.fragment[k].unit_and_bit);
}

struct items_of
{
    struct windows v;

    __device__ unsigned long long operator()(ptrdiff_t k) const
    {
        return k < v.level.n_fragments
                   ? (unsigned)__popc(cells_of_fragment(v, (uint32_t)k))
                   : 0;
    }
};

/* An item, a 64-bit number, stands for a fragment in a cell. These are the
 * first bits of its fields: (from bit 0) cell within the window; fragment; cell
 * of the level, which is the sort key; number of the fragment's edges in the
 * cell; the fragment's bit in the cell. */
#define ITEM_FRAGMENT 4
#define ITEM_CELL 32
#define ITEM_EDGES 56
#define ITEM_INSIDE 60

static __device__ uint32_t cell_number_of_item(unsigned long long item)
{
    return (uint32_t)(item >> ITEM_CELL) & 0xffffffu;
}

static __device__ uint32_t n_edges_of_item(unsigned long long item)
{
    return (uint32_t)(item >> ITEM_EDGES) & 15u;
}

/* Writes the items of fragment k to item from place[k] on. A block collects its
 * items in shared memory and stores them contiguously. */
static __global__ void
write_cell_items(const __grid_constant__ struct windows v,
                 const unsigned long long *place, unsigned long long *item)
{
    __shared__ unsigned long long made[OJ_RING_CELL_CHILDREN * BLOCK];
    uint32_t k = (uint32_t)thread_index(), first = blockIdx.x * BLOCK;
    uint32_t all = (uint32_t)v.level.n_fragments, at, n;
    uint32_t end = first + BLOCK < all ? first + BLOCK : all;
    n = (uint32_t)(place[end] - place[first]);
    if (k < all)
    {
        uint2 p = v.level.window[v.level.fragment[k].node];
        uint32_t inside = oj_cuda_ring_mask_of_inside_children(
            v.marks, k, v.level.fragment[k].unit_and_bit);
        at = (uint32_t)(place[k] - place[first]);
        for (uint32_t left = cells_of_fragment(v, k); left != 0;
             left &= left - 1, at++)
        {
            uint32_t c = (uint32_t)__ffs((int)left) - 1;
            made[at] =
                (unsigned long long)(inside >> c & 1u) << ITEM_INSIDE |
                (v.marks.masks[k].counts >> (4 * c) & 15u) << ITEM_EDGES |
                oj_ring_directory_index(p.x + c % 4, p.y + c / 4, v.level.depth)
                    << ITEM_CELL |
                (unsigned long long)k << ITEM_FRAGMENT | c;
        }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n; i += BLOCK)
        item[place[first] + i] = made[i];
}

static __device__ int starts_new_group_of_cells(const unsigned long long *item,
                                                uint32_t j)
{
    return j == 0 || cell_number_of_item(item[j]) / 16 !=
                         cell_number_of_item(item[j - 1]) / 16;
}

/* Counts for the prefix sum over items, which are sorted by cell. High half: 1
 * if item i is the first of a group of 16 cells; low half: its edges. Behind
 * the last item both are 0. */
struct cell_item_counts
{
    const unsigned long long *item;
    ptrdiff_t n;

    __device__ unsigned long long operator()(ptrdiff_t i) const
    {
        if (i >= n)
            return 0;
        return (unsigned long long)starts_new_group_of_cells(item, (uint32_t)i)
                   << 32 |
               n_edges_of_item(item[i]);
    }
};

static __global__ void write_cell_nodes_and_fragments(
    const __grid_constant__ struct windows v, uint32_t n,
    const unsigned long long *item, const unsigned long long *put,
    uint32_t first_group, uint32_t *slot, struct oj_cuda_ring_level level)
{
    uint32_t j = (uint32_t)thread_index(), c, cell, is_first, group, node;
    uint32_t before, to, shift = 2 * (uint32_t)v.level.depth - 2;
    struct oj_ring_fragment f;
    if (j >= n)
        return;
    c = (uint32_t)item[j] % 16;
    cell = cell_number_of_item(item[j]);
    is_first = (uint32_t)starts_new_group_of_cells(item, j);
    group = (uint32_t)(put[j] >> 32) + is_first - 1;
    node = 16 * group + cell % 16;
    to = (uint32_t)put[j];
    f = v.level.fragment[(uint32_t)item[j] >> ITEM_FRAGMENT];
    level.fragment[j] = {(f.unit_and_bit & ~1u) |
                             ((uint32_t)(item[j] >> ITEM_INSIDE) & 1u),
                         to, n_edges_of_item(item[j]), node};
    for (uint32_t e = f.first; e < f.first + f.n; e++)
    {
        if (v.marks.touched[e] >> c & 1u)
            level.edge[to++] = v.level.edge[e];
    }
    before = j == 0 ? UINT32_MAX
                    : 16 * (group - is_first) +
                          cell_number_of_item(item[j - 1]) % 16;
    for (uint32_t i = before + 1; i != node + 1; i++)
        level.node_first[i] = j;
    if (j == n - 1)
    {
        for (uint32_t i = node + 1; i <= 16 * (group + 1); i++)
            level.node_first[i] = n;
    }
    if (is_first)
    {
        uint32_t parent = cell / 16;
        level.parent[group] =
            make_uint2(parent & ((1u << shift) - 1), parent >> shift);
        level.replication[group] = 1.0f;
        slot[oj_ring_directory_index(
            level.parent[group].x, level.parent[group].y, v.level.depth - 1)] =
            oj_ring_slot_make(OJ_RING_INNER, first_group + group);
    }
}

/* Makes *out [*n_items], owned by *work, the items sorted by cell and then
 * unit. */
static oj_status list_and_sort_cell_items(struct oj_cuda_work *work,
                                          const struct windows &v,
                                          unsigned long long **out,
                                          unsigned long long *n_items)
{
    struct oj_cuda_work own(work);
    unsigned long long *place = NULL, *item = NULL;
    int64_t n;
    OJ_TRY(own.scan_of_computed_values(v.level.n_fragments, items_of{v}, &place,
                                       n_items));
    if (*n_items >= ((unsigned long long)1 << 31))
        return oj_fail(work->err, OJ_ERR_NOMEM,
                       "the polygons are in more than 2^31 cells, too many for "
                       "the GPU: join "
                       "on the CPU (backend cpu)");
    n = (int64_t)*n_items;
    OJ_TRY(work->make(n, out));
    OJ_TRY(own.make(n, &item));
    OJ_TRY(
        own.run<BLOCK>(v.level.n_fragments, write_cell_items, v, place, item));
    return own.sort_keys(n, ITEM_CELL, ITEM_CELL + 4 * v.level.depth,
                         (const uint64_t *)item, (uint64_t *)*out);
}

/* Makes the level *first of the tree from the windows, and the slots of the
 * level above it; *below owns the arrays of *first. */
static oj_status make_first_level_from_windows(
    const struct oj_cuda_ring_making *m, struct oj_cuda_work *work,
    struct oj_cuda_work *below, const struct windows &v,
    struct oj_cuda_ring_part *above, struct oj_cuda_ring_level *first)
{
    struct oj_cuda_array<uint32_t> *slot = &m->cells->slot;
    unsigned long long *item = NULL, *put = NULL, n = 0, all = 0;
    int level = v.level.depth;
    OJ_TRY(list_and_sort_cell_items(work, v, &item, &n));
    OJ_TRY(work->scan_of_computed_values(
        (int64_t)n, cell_item_counts{item, (ptrdiff_t)n}, &put, &all));
    above->n_slots = level > 1 ? 1u << (4 * level - 4) : 16;
    OJ_TRY(oj_cuda_ring_grow_array(m->keep, slot, 0, above->n_slots));
    OJ_TRY(work->clear(slot->data, above->n_slots));
    first->depth = level;
    OJ_TRY(oj_cuda_ring_level_make(below, (int64_t)(all >> 32),
                                   n << 32 | (all & 0xffffffffu), first));
    return work->run<BLOCK>((int64_t)n, write_cell_nodes_and_fragments, v,
                            (uint32_t)n, item, put, above->n_slots / 16,
                            slot->data, *first);
}

/* --- the whole ------------------------------------------------------------ */

static struct units describe_polygon_units(struct oj_cuda_ring_making *m)
{
    const struct oj_cuda_layer *layer = m->layer;
    struct units u = {};
    u.units = m->tree.units;
    u.n = u.units == OJ_RING_FEATURES ? layer->n_features : layer->n_parts;
    if (layer->short_points)
        u.n = 0;
    u.layer = *layer;
    u.frame = m->tree.frame;
    if (u.units != OJ_RING_FEATURES)
        m->tree.part_feature = layer->part_feature.data;
    return u;
}

/* Returns 1 if all units are small at the level (oj_ring_windows_of()), and the
 * level does not have too many windows, edges or fragments. */
static int is_start_level_affordable(const struct oj_cuda_ring_making *m,
                                     const struct all_units *all)
{
    return all->windows > 0 && all->others == 0 &&
           all->windows + all->edges <=
               MOST_TIMES * m->layer->n_segments + FEW_PLACES &&
           all->fragments < MOST_FRAGMENTS;
}

/* Chooses u->level and makes *first at that level. If no level below the root
 * is affordable, u->level is 0 and *first is not made. */
static oj_status choose_and_make_start_level(
    const struct oj_cuda_ring_making *m, struct units *u,
    const struct starts *starts, struct oj_cuda_work *below,
    struct oj_cuda_ring_part *above, struct oj_cuda_ring_level *first)
{
    struct oj_cuda_work work(below);
    struct all_units all = {};
    struct windows windows = {};
    int deepest = m->fine < u->frame.levels ? m->fine : (int)u->frame.levels;
    if (deepest > PACKED_LEVEL)
        deepest = PACKED_LEVEL;
    u->level = oj_ring_start_level(m->layer->n_segments, deepest);
    if (u->n > MOST_UNITS)
        u->level = 0;
    for (; u->level > 0; u->level--)
    {
        OJ_TRY(count_windows_of_level(&work, u, starts, &all));
        if (is_start_level_affordable(m, &all))
            break;
    }
    if (u->level == 0)
        return OJ_OK;
    OJ_TRY(make_window_level(m, &work, u, starts, &all, &windows));
    return make_first_level_from_windows(m, &work, below, windows, above,
                                         first);
}

oj_status oj_cuda_ring_make_start_level(struct oj_cuda_ring_making *m,
                                        struct oj_cuda_work *below,
                                        struct oj_cuda_ring_part *above,
                                        struct oj_cuda_ring_level *first)
{
    struct oj_cuda_work work(below);
    struct units units = describe_polygon_units(m);
    struct starts starts;
    struct all_units all = {};
    oj_status status;
    OJ_TRY(work.make(units.n + 1, &starts.fragments));
    OJ_TRY(work.make(units.n + 1, &starts.edges));
    OJ_TRY(work.make(units.n, &starts.window));
    status =
        choose_and_make_start_level(m, &units, &starts, below, above, first);
    if (status != OJ_ERR_NOMEM && (status != OJ_OK || units.level > 0))
        return status;
    /* not enough memory, or no such level: starts at the root, which needs less
     */
    below->release();
    *above = {};
    *first = {};
    units.level = 0;
    OJ_TRY(count_windows_of_level(&work, &units, &starts, &all));
    return make_root_level(below, m->layer, units, starts, all.fragments,
                           first);
}
