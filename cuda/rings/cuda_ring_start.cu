#include "cuda_ring_levels.cuh"

#include <string.h>

/* Most units that may start below the root: their windows and edges are counted
 * in 32 bits. */
#define MOST_UNITS (((int64_t)1 << 32) / OJ_RING_WINDOW_EDGES - 1)

/* Windows, fragments and edges of all units together are at most so many times
 * the edges, if they are not few. */
#define MOST_TIMES 4
#define FEW_PLACES (1 << 20)

/* Fragments that a number of 32 bits has room for beside one of 16 cells. */
#define MOST_FRAGMENTS ((int64_t)1 << 28)

static __device__ int64_t at_thread(void)
{
    return (int64_t)blockIdx.x * BLOCK + threadIdx.x;
}

/* --- units ---------------------------------------------------------------- */

struct units
{
    int64_t n;
    int units; /* enum oj_ring_units */
    const int64_t *part_offset, *ring_offset, *segment_offset;
    const uint8_t *part_kind;
    const struct oj_cuda_segment *segment;
    struct oj_ring_frame frame;
    int level; /* to start at */
};

/* What comes before each unit, [units + 1] each: low and high halves, so that
 * there is no more to add up than needs be. */
struct starts
{
    unsigned long long *fragments; /* high: windows */
    unsigned long long *edges;     /* high: units that do not start here */
    uint32_t *window;              /* of the unit itself; see pack_windows() */
};

/* Of levels whose cells are counted in 12 bits along each axis. */
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

static __device__ int64_t first_of_unit(const struct units &u, int64_t i)
{
    if (u.units == OJ_RING_FEATURES)
        i = u.part_offset[i];
    return u.segment_offset[u.ring_offset[i]];
}

static __device__ struct oj_ring_windows windows_of(const struct units &u,
                                                    int64_t i)
{
    int64_t first = first_of_unit(u, i), end = first_of_unit(u, i + 1);
    struct oj_ring_chain chain = oj_ring_chain_make();
    if (end - first <= OJ_RING_WINDOW_EDGES)
    {
        for (int64_t e = first; e < end; e++)
        {
            const struct oj_cuda_segment g = u.segment[e];
            oj_ring_chain_add(&chain, g.ax, g.ay, g.bx, g.by);
        }
    }
    return oj_ring_windows_of(&u.frame, &chain, u.level);
}

/* What each unit starts with. */
static __global__ void measure_units(const __grid_constant__ struct units u,
                                     struct starts starts)
{
    int64_t i = at_thread(), n;
    unsigned long long times = 1, others = 0;
    if (i > u.n)
        return;
    n = i < u.n ? first_of_unit(u, i + 1) - first_of_unit(u, i) : 0;
    if (i < u.n && u.units != OJ_RING_FEATURES &&
        u.part_kind[i] != OJ_PART_POLYGON)
        n = 0;
    if (n > 0 && u.level > 0)
    {
        struct oj_ring_windows w = windows_of(u, i);
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

/* What all units add up to. */
struct all_units
{
    int64_t windows, fragments, edges, others;
};

struct ring_start_work
{
    struct oj_cuda_array<unsigned long long> fragments, edges; /* starts */
    struct oj_cuda_array<uint32_t> window;
    struct oj_cuda_ring_level windows;
    struct oj_cuda_ring_marks marks;
    struct oj_cuda_array<unsigned long long> place;   /* [fragments + 1] */
    struct oj_cuda_array<unsigned long long> item[2]; /* see put_items() */
    struct oj_cuda_array<unsigned long long> put;     /* [items + 1] */
};

static void drop_working(struct oj_cuda_ring_making *m,
                         struct ring_start_work *w)
{
    m->drop(&w->fragments, &w->edges, &w->window, &w->place, &w->item[0],
            &w->item[1], &w->put);
    oj_cuda_ring_level_drop(m, &w->windows);
    oj_cuda_ring_marks_drop(m, &w->marks);
}

static struct starts starts_of(const struct ring_start_work *w)
{
    struct starts s = {w->fragments.data, w->edges.data, w->window.data};
    return s;
}

static oj_status measure(struct oj_cuda_ring_making *m, const struct units *u,
                         struct ring_start_work *w, struct all_units *all)
{
    unsigned long long fragments = 0, edges = 0;
    if (w->fragments.n == 0)
    {
        OJ_TRY(m->make(u->n + 1, &w->fragments, &w->edges));
        OJ_TRY(m->make(u->n, &w->window));
    }
    OJ_TRY(m->run(u->n + 1, "counting rings", measure_units, *u, starts_of(w)));
    OJ_TRY(
        m->scan_total(w->fragments.data, u->n, &fragments, "counting rings"));
    OJ_TRY(m->scan_total(w->edges.data, u->n, &edges, "counting rings"));
    all->windows = (int64_t)(fragments >> 32);
    all->fragments = (int64_t)(fragments & 0xffffffffu);
    all->edges = (int64_t)(edges & 0xffffffffu);
    all->others = (int64_t)(edges >> 32);
    return OJ_OK;
}

/* --- the root ------------------------------------------------------------- */

static __global__ void make_root(const __grid_constant__ struct units u,
                                 struct starts starts,
                                 struct oj_cuda_ring_level root)
{
    int64_t k = at_thread(), low = 0, high = u.n, begin, end;
    struct oj_ring_fragment f;
    if (k == 0)
    {
        root.parent.data[0] = make_uint2(0, 0);
        root.replication.data[0] = 1.0f;
        root.node_first.data[0] = 0;
        root.node_first.data[1] = (uint32_t)root.n_fragments;
    }
    if (k >= root.n_fragments)
        return;
    while (high - low > 1)
    {
        int64_t middle = low + (high - low) / 2;
        if ((int64_t)(uint32_t)starts.fragments[middle] <= k)
            low = middle;
        else
            high = middle;
    }
    begin = first_of_unit(u, low) +
            (k - (int64_t)(uint32_t)starts.fragments[low]) * OJ_RING_FRAGMENT;
    end = first_of_unit(u, low + 1);
    f.unit = 2 * (uint32_t)low;
    f.first = (uint32_t)begin;
    f.n = (uint32_t)(end - begin < OJ_RING_FRAGMENT ? end - begin
                                                    : OJ_RING_FRAGMENT);
    f.node = 0;
    root.fragment.data[k] = f;
}

static __global__ void count_up(int64_t n, uint32_t *out)
{
    int64_t i = at_thread();
    if (i < n)
        out[i] = (uint32_t)i;
}

static oj_status fill_root(struct oj_cuda_ring_making *m, const struct units *u,
                           const struct ring_start_work *w, int64_t n_fragments,
                           struct oj_cuda_ring_level *root)
{
    root->n_nodes = 1;
    root->n_fragments = n_fragments;
    root->n_edges = m->layer->n_segments;
    OJ_TRY(m->make(1, &root->parent, &root->replication));
    OJ_TRY(m->make(2, &root->node_first));
    OJ_TRY(m->make(n_fragments, &root->fragment));
    OJ_TRY(m->make(root->n_edges, &root->edge));
    OJ_TRY(m->run(n_fragments + 1, "making the root of rings", make_root, *u,
                  starts_of(w), *root));
    return m->run(root->n_edges + 1, "making the root of rings", count_up,
                  root->n_edges, root->edge.data);
}

/* --- windows -------------------------------------------------------------- */

/* The windows of a unit one after the other, and in each all its fragments. */
static __global__ void make_windows(const __grid_constant__ struct units u,
                                    struct starts starts,
                                    struct oj_cuda_ring_level level)
{
    int64_t i = at_thread();
    struct oj_ring_windows w;
    uint32_t first, end, node, at, edge;
    if (i >= u.n)
        return;
    node = (uint32_t)(starts.fragments[i] >> 32);
    if ((uint32_t)(starts.fragments[i + 1] >> 32) == node)
        return;
    w = unpack_windows(starts.window[i]);
    first = (uint32_t)first_of_unit(u, i);
    end = (uint32_t)first_of_unit(u, i + 1);
    at = (uint32_t)starts.fragments[i];
    edge = (uint32_t)starts.edges[i];
    for (uint32_t k = 0; k < w.nx * w.ny; k++, node++)
    {
        level.window.data[node] =
            make_uint2(w.ix + OJ_RING_CELL_SPLIT * (k % w.nx),
                       w.iy + OJ_RING_CELL_SPLIT * (k / w.nx));
        for (uint32_t e = first; e < end; e += OJ_RING_FRAGMENT, at++)
        {
            uint32_t n =
                end - e < OJ_RING_FRAGMENT ? end - e : OJ_RING_FRAGMENT;
            *(uint4 *)&level.fragment.data[at] =
                make_uint4(2 * (uint32_t)i, edge, n, node);
            for (uint32_t j = 0; j < n; j++)
                level.edge.data[edge++] = e + j;
        }
    }
}

static oj_status fill_windows(struct oj_cuda_ring_making *m,
                              const struct units *u,
                              const struct all_units *all,
                              struct ring_start_work *w)
{
    struct oj_cuda_ring_level *level = &w->windows;
    level->depth = u->level;
    level->n_nodes = all->windows;
    level->n_fragments = all->fragments;
    level->n_edges = all->edges;
    OJ_TRY(m->make(level->n_nodes, &level->window));
    OJ_TRY(m->make(level->n_fragments, &level->fragment));
    OJ_TRY(m->make(level->n_edges, &level->edge));
    OJ_TRY(m->run(u->n, "making windows of rings", make_windows, *u,
                  starts_of(w), *level));
    return oj_cuda_ring_mark(m, level, &w->marks);
}

/* --- from windows to cells ------------------------------------------------ */

struct windows
{
    int level;
    uint32_t n;
    const uint2 *window;
    const struct oj_ring_fragment *fragment;
    const uint32_t *edge;
    struct oj_cuda_ring_marks marks;
};

/* The cells of its window in which fragment k is. */
static __device__ uint32_t cells_of(const struct windows &v, uint32_t k)
{
    return oj_cuda_ring_there(v.marks, k, v.fragment[k].unit);
}

struct items_of
{
    struct windows v;

    __device__ unsigned long long operator()(ptrdiff_t k) const
    {
        return k < v.n ? (unsigned)__popc(cells_of(v, (uint32_t)k)) : 0;
    }
};

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
        uint32_t inside = oj_cuda_ring_inside(v.marks, k, v.fragment[k].unit);
        at = (uint32_t)(place[k] - place[first]);
        for (uint32_t left = cells_of(v, k); left != 0; left &= left - 1, at++)
        {
            uint32_t c = (uint32_t)__ffs((int)left) - 1;
            made[at] = (unsigned long long)(inside >> c & 1u) << ITEM_INSIDE |
                       (v.marks.masks.data[k].counts >> (4 * c) & 15u)
                           << ITEM_EDGES |
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
        if (v.marks.touched.data[e] >> c & 1u)
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

static struct windows view_of(const struct ring_start_work *w)
{
    struct windows v;
    v.level = w->windows.depth;
    v.n = (uint32_t)w->windows.n_fragments;
    v.window = w->windows.window.data;
    v.fragment = w->windows.fragment.data;
    v.edge = w->windows.edge.data;
    v.marks = w->marks;
    return v;
}

/* Items by cell, and by unit in each: in w->item[0]. */
static oj_status sort_items(struct oj_cuda_ring_making *m,
                            struct ring_start_work *w,
                            unsigned long long *n_items)
{
    struct windows v = view_of(w);
    OJ_TRY(oj_cuda_ring_places(m, items_of{v}, v.n, &w->place, n_items,
                               "filling cells of rings"));
    if (*n_items >= ((unsigned long long)1 << 31))
        return oj_fail(m->err, OJ_ERR_NOMEM, "too many parts of polygons");
    OJ_TRY(m->make((int64_t)*n_items, &w->item[0], &w->item[1]));
    OJ_TRY(m->run(v.n, "filling cells of rings", put_items, v, w->place.data,
                  w->item[1].data));
    return m->with_scratch(
        [&](void *memory, size_t &bytes)
        {
            return cub::DeviceRadixSort::SortKeys(
                memory, bytes, w->item[1].data, w->item[0].data,
                (int64_t)*n_items, ITEM_CELL, ITEM_CELL + 4 * v.level,
                m->stream);
        },
        "sorting cells of rings");
}

static oj_status fill_first(struct oj_cuda_ring_making *m,
                            struct ring_start_work *w,
                            struct oj_cuda_ring_part *above,
                            struct oj_cuda_ring_level *first)
{
    struct windows v = view_of(w);
    struct oj_cuda_array<uint32_t> *slot = &m->cells->slot;
    unsigned long long n = 0, all = 0;
    OJ_TRY(sort_items(m, w, &n));
    OJ_TRY(oj_cuda_ring_places(m, put_sums{w->item[0].data, (ptrdiff_t)n},
                               (int64_t)n, &w->put, &all,
                               "filling cells of rings"));
    above->n_slots = v.level > 1 ? 1u << (4 * v.level - 4) : 16;
    OJ_TRY(oj_cuda_ring_extend(m, slot, 0, above->n_slots));
    OJ_CUDA_TRY(
        cudaMemsetAsync(slot->data, 0, 4 * (size_t)above->n_slots, m->stream),
        "filling cells of rings", m->err);
    first->depth = v.level;
    OJ_TRY(oj_cuda_ring_level_make(m, (int64_t)(all >> 32), n,
                                   all & 0xffffffffu, first));
    return m->run((int64_t)n, "filling cells of rings", fill_cells, v,
                  (uint32_t)n, w->item[0].data, w->put.data,
                  above->n_slots / 16, slot->data, *first);
}

/* --- the whole ------------------------------------------------------------ */

static void list_units(struct oj_cuda_ring_making *m, struct units *u)
{
    const struct oj_cuda_layer *layer = m->layer;
    memset(u, 0, sizeof *u);
    u->units = m->tree.units;
    u->n = u->units == OJ_RING_FEATURES ? layer->n_features : layer->n_parts;
    if (layer->short_points)
        u->n = 0;
    u->part_offset = layer->part_offset.data;
    u->ring_offset = layer->ring_offset.data;
    u->segment_offset = layer->segment_offset.data;
    u->part_kind = layer->part_kind.data;
    u->segment = layer->segment.data;
    u->frame = m->tree.frame;
    if (u->units != OJ_RING_FEATURES)
        m->tree.part_feature = layer->part_feature.data;
}

/* 1 when all units are small at the level, and not cut into too much. */
static int is_fine(const struct oj_cuda_ring_making *m,
                   const struct all_units *all)
{
    return all->windows > 0 && all->others == 0 &&
           all->windows + all->edges <=
               MOST_TIMES * m->layer->n_segments + FEW_PLACES &&
           all->fragments < MOST_FRAGMENTS;
}

static oj_status start_below(struct oj_cuda_ring_making *m, struct units *u,
                             struct ring_start_work *w,
                             struct oj_cuda_ring_part *above,
                             struct oj_cuda_ring_level *first)
{
    struct all_units all = {0, 0, 0, 0};
    int deepest = m->fine < u->frame.levels ? m->fine : (int)u->frame.levels;
    if (deepest > PACKED_LEVEL)
        deepest = PACKED_LEVEL;
    u->level = oj_ring_start_level(m->layer->n_segments, deepest);
    if (u->n > MOST_UNITS)
        u->level = 0;
    for (; u->level > 0; u->level--)
    {
        OJ_TRY(measure(m, u, w, &all));
        if (is_fine(m, &all))
            break;
    }
    if (u->level == 0)
        return OJ_OK;
    OJ_TRY(fill_windows(m, u, &all, w));
    return fill_first(m, w, above, first);
}

oj_status oj_cuda_ring_start(struct oj_cuda_ring_making *m,
                             struct oj_cuda_ring_part *above,
                             struct oj_cuda_ring_level *first)
{
    struct units units;
    struct ring_start_work w = {};
    struct all_units all = {0, 0, 0, 0};
    oj_status status;
    list_units(m, &units);
    status = start_below(m, &units, &w, above, first);
    if (status == OJ_ERR_NOMEM) /* the root takes less */
    {
        memset(above, 0, sizeof *above);
        oj_cuda_ring_level_drop(m, first);
        drop_working(m, &w);
        memset(&w, 0, sizeof w);
        status = OJ_OK;
        units.level = 0;
    }
    if (status == OJ_OK && units.level == 0)
    {
        status = measure(m, &units, &w, &all);
        if (status == OJ_OK)
            status = fill_root(m, &units, &w, all.fragments, first);
    }
    drop_working(m, &w);
    return status;
}
