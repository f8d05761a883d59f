#include "cuda_ring_cells.h"

#include "cuda_ring_levels.h"

#include <cub/device/device_scan.cuh>

#include <string.h>

#define BLOCK 256

/* Edges of a cell that is not split. */
#define MOST_EDGES 12

/* Bits say of sixteenths of the cells of a level whether they are occupied:
 * about four such cells for each edge, and at most 4^6 along each axis. */
#define MOST_FINE_LEVEL 6

/* A tree of so many times the edges of the layer is large, if it is no small
 * one. */
#define LARGE_FACTOR 12
#define LARGE_LEAST (1 << 22)

/* Places of a level are 32 bits; one step makes at most 16 of one. */
#define MOST_PLACES ((int64_t)1 << 27)

static unsigned blocks_of(int64_t n)
{
    return (unsigned)((n + BLOCK - 1) / BLOCK);
}

/* --- the root ------------------------------------------------------------- */

struct units
{
    int64_t n;
    int units; /* enum oj_ring_units */
    int64_t n_parts;
    const int64_t *part_offset, *ring_offset, *segment_offset;
    const uint8_t *part_kind;
    uint32_t *ring_part;
};

static __device__ int64_t last_at_most(const int64_t *offset, int64_t n,
                                       int64_t at)
{
    int64_t low = 0, high = n;
    while (high - low > 1)
    {
        int64_t middle = low + (high - low) / 2;
        if (offset[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static __device__ int64_t first_of_unit(const struct units &u, int64_t i)
{
    if (u.units == OJ_RING_FEATURES)
        i = u.ring_offset[u.part_offset[i]];
    return u.segment_offset[i];
}

/* Fragments of each unit; part and role of each ring. */
static __global__ void count_fragments(struct units u, uint32_t *count)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, n;
    if (i > u.n)
        return;
    if (i == u.n)
    {
        count[i] = 0;
        return;
    }
    n = first_of_unit(u, i + 1) - first_of_unit(u, i);
    if (u.units == OJ_RING_PARTS)
    {
        int64_t part = last_at_most(u.ring_offset, u.n_parts, i);
        u.ring_part[i] = 2 * (uint32_t)part + (u.ring_offset[part] < i);
        if (u.part_kind[part] != OJ_PART_POLYGON)
            n = 0;
    }
    count[i] = (uint32_t)((n + OJ_RING_FRAGMENT - 1) / OJ_RING_FRAGMENT);
}

static __global__ void make_root(struct units u, const uint32_t *first,
                                 struct oj_cuda_ring_level root)
{
    int64_t k = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int64_t low = 0, high = u.n, begin, end;
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
        if (first[middle] <= (uint32_t)k)
            low = middle;
        else
            high = middle;
    }
    begin = first_of_unit(u, low) +
            OJ_RING_FRAGMENT * (int64_t)((uint32_t)k - first[low]);
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
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        out[i] = (uint32_t)i;
}

static oj_status make_units(struct oj_cuda_ring_making *m,
                            struct oj_cuda_ring_cells *cells, struct units *u)
{
    const struct oj_cuda_layer *layer = m->layer;
    memset(u, 0, sizeof *u);
    u->units = m->tree.units;
    u->n = u->units == OJ_RING_FEATURES ? layer->n_features : layer->n_rings;
    if (layer->short_points)
        u->n = 0;
    u->n_parts = layer->n_parts;
    u->part_offset = layer->part_offset.data;
    u->ring_offset = layer->ring_offset.data;
    u->segment_offset = layer->segment_offset.data;
    u->part_kind = layer->part_kind.data;
    if (u->units == OJ_RING_PARTS)
    {
        OJ_TRY(oj_cuda_make(m->device, m->device->stream, u->n,
                            &cells->ring_part, m->err));
        u->ring_part = cells->ring_part.data;
        m->tree.ring_part = cells->ring_part.data;
        m->tree.part_feature = layer->part_feature.data;
    }
    return OJ_OK;
}

static oj_status fill_root(struct oj_cuda_ring_making *m, const struct units *u,
                           struct oj_cuda_array<uint32_t> *count,
                           struct oj_cuda_array<uint8_t> *scratch,
                           struct oj_cuda_ring_level *root)
{
    cudaStream_t stream = m->device->stream;
    size_t bytes = 0;
    uint32_t n_fragments = 0;
    OJ_TRY(oj_cuda_make(m->device, stream, u->n + 1, count, m->err));
    count_fragments<<<blocks_of(u->n + 1), BLOCK, 0, stream>>>(*u, count->data);
    OJ_CUDA_TRY_LAUNCH("counting rings", m->err);
    OJ_CUDA_TRY(cub::DeviceScan::ExclusiveSum(NULL, bytes, count->data,
                                              count->data, u->n + 1, stream),
                "counting rings", m->err);
    OJ_TRY(oj_cuda_make(m->device, stream, (int64_t)bytes, scratch, m->err));
    OJ_CUDA_TRY(cub::DeviceScan::ExclusiveSum(scratch->data, bytes, count->data,
                                              count->data, u->n + 1, stream),
                "counting rings", m->err);
    OJ_CUDA_TRY(cudaMemcpyAsync(&n_fragments, count->data + u->n, 4,
                                cudaMemcpyDeviceToHost, stream),
                "counting rings", m->err);
    OJ_CUDA_TRY(cudaStreamSynchronize(stream), "counting rings", m->err);
    root->n_nodes = 1;
    root->n_fragments = n_fragments;
    root->n_edges = m->layer->n_segments;
    OJ_TRY(oj_cuda_make(m->device, stream, 1, &root->parent, m->err));
    OJ_TRY(oj_cuda_make(m->device, stream, 1, &root->replication, m->err));
    OJ_TRY(oj_cuda_make(m->device, stream, 2, &root->node_first, m->err));
    OJ_TRY(
        oj_cuda_make(m->device, stream, n_fragments, &root->fragment, m->err));
    OJ_TRY(oj_cuda_make(m->device, stream, root->n_edges, &root->edge, m->err));
    make_root<<<blocks_of(n_fragments + 1), BLOCK, 0, stream>>>(*u, count->data,
                                                                *root);
    OJ_CUDA_TRY_LAUNCH("making the root of rings", m->err);
    count_up<<<blocks_of(root->n_edges + 1), BLOCK, 0, stream>>>(
        root->n_edges, root->edge.data);
    OJ_CUDA_TRY_LAUNCH("making the root of rings", m->err);
    return OJ_OK;
}

/* --- levels --------------------------------------------------------------- */

struct parts
{
    int n;
    struct oj_cuda_ring_part part[OJ_RING_CELL_LEVELS + 1];
};

/* The level's part of the tree, and the next level. Where memory for that is
 * short, the level is the last one. */
static oj_status go_down(struct oj_cuda_ring_making *m,
                         struct oj_cuda_ring_level *level,
                         struct oj_cuda_ring_part *part,
                         struct oj_cuda_ring_level *next)
{
    struct oj_cuda_ring_part bases = *part;
    int64_t n = level->n_edges + level->n_fragments;
    int is_large =
        (int64_t)part->first_edge + part->first_record + n > m->large;
    int may_split = n < MOST_PLACES && level->n_nodes < MOST_PLACES / 4;
    oj_status status =
        oj_cuda_ring_level_down(m, level, is_large, may_split, part, next);
    if (status != OJ_ERR_NOMEM || level->depth == 0)
        return status;
    oj_cuda_ring_part_drop(m->device, part);
    oj_cuda_ring_level_drop(m->device, next);
    *part = bases;
    return oj_cuda_ring_level_down(m, level, is_large, 0, part, next);
}

static oj_status make_levels(struct oj_cuda_ring_making *m,
                             struct oj_cuda_ring_level *root,
                             struct parts *parts)
{
    struct oj_cuda_ring_level level = *root, next;
    oj_status status = OJ_OK;
    memset(root, 0, sizeof *root);
    while (status == OJ_OK && level.n_nodes > 0)
    {
        struct oj_cuda_ring_part *part = &parts->part[parts->n];
        memset(&next, 0, sizeof next);
        if (m->device->cancel != NULL &&
            __atomic_load_n(m->device->cancel, __ATOMIC_RELAXED))
        {
            status = oj_fail(m->err, OJ_ERR_CANCELLED, "cancelled");
            break;
        }
        if (parts->n > 0)
        {
            const struct oj_cuda_ring_part *above = part - 1;
            part->first_slot = above->first_slot +
                               (uint32_t)(parts->n == 1 ? 16 : above->slot.n);
            part->first_leaf = above->first_leaf + above->sums.leaves;
            part->first_record = above->first_record + above->sums.records;
            part->first_edge = above->first_edge + above->sums.edges;
        }
        parts->n++;
        status = go_down(m, &level, part, &next);
        oj_cuda_ring_level_drop(m->device, &level);
        level = next;
    }
    oj_cuda_ring_level_drop(m->device, &level);
    return status;
}

/* --- the whole ------------------------------------------------------------ */

/* Appends the levels' arrays of one kind. */
template <typename T>
static oj_status join_up(struct oj_cuda_ring_making *m, T *to, uint32_t first,
                         const struct oj_cuda_array<T> *from)
{
    if (from->n == 0)
        return OJ_OK;
    OJ_CUDA_TRY(cudaMemcpyAsync(to + first, from->data,
                                (size_t)from->n * sizeof(T),
                                cudaMemcpyDeviceToDevice, m->device->stream),
                "joining levels of rings", m->err);
    return OJ_OK;
}

static __global__ void end_records(struct oj_ring_record *last, uint32_t edge)
{
    last->unit = 0;
    last->first = edge;
}

static oj_status join_levels(struct oj_cuda_ring_making *m, struct parts *parts,
                             struct oj_cuda_ring_cells *cells)
{
    cudaStream_t stream = m->device->stream;
    const struct oj_cuda_ring_part *last = &parts->part[parts->n - 1];
    cells->n_slots = (int64_t)last->first_slot + last->slot.n;
    if (cells->n_slots < 16)
        cells->n_slots = 16;
    cells->n_leaves = (int64_t)last->first_leaf + last->sums.leaves;
    cells->n_records = (int64_t)last->first_record + last->sums.records;
    cells->n_edges = (int64_t)last->first_edge + last->sums.edges;
    cells->n_levels = parts->n;
    OJ_TRY(
        oj_cuda_make(m->device, stream, cells->n_slots, &cells->slot, m->err));
    OJ_TRY(
        oj_cuda_make(m->device, stream, cells->n_leaves, &cells->leaf, m->err));
    OJ_TRY(oj_cuda_make(m->device, stream, cells->n_records + 1, &cells->record,
                        m->err));
    OJ_TRY(
        oj_cuda_make(m->device, stream, cells->n_edges, &cells->edge, m->err));
    OJ_TRY(oj_cuda_make(m->device, stream, cells->n_edges, &cells->edge_segment,
                        m->err));
    for (int i = 0; i < parts->n; i++)
    {
        struct oj_cuda_ring_part *p = &parts->part[i];
        OJ_TRY(join_up(m, cells->slot.data, p->first_slot, &p->slot));
        OJ_TRY(join_up(m, cells->leaf.data, p->first_leaf, &p->leaf));
        OJ_TRY(join_up(m, cells->record.data, p->first_record, &p->record));
        OJ_TRY(join_up(m, cells->edge.data, p->first_edge, &p->edge));
        OJ_TRY(join_up(m, cells->edge_segment.data, p->first_edge,
                       &p->edge_segment));
        oj_cuda_ring_part_drop(m->device, p);
    }
    end_records<<<1, 1, 0, stream>>>(cells->record.data + cells->n_records,
                                     (uint32_t)cells->n_edges);
    OJ_CUDA_TRY_LAUNCH("joining levels of rings", m->err);
    return OJ_OK;
}

/* The slots of 16 children each: those of one node, or copies of what a node
 * above them is. */
static __global__ void make_directory(const uint32_t *slot, int level,
                                      uint32_t *directory)
{
    uint32_t i = blockIdx.x * BLOCK + threadIdx.x, x, y, s = slot[0];
    int shift = 2 * level - 2;
    if (level == 0)
    {
        directory[0] = s;
        return;
    }
    if (i >> (2 * shift) != 0)
        return;
    x = i & ((1u << shift) - 1);
    y = i >> shift;
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

static __global__ void
make_occupied(const __grid_constant__ struct oj_ring_tree tree,
              uint16_t *occupied)
{
    uint32_t i = blockIdx.x * BLOCK + threadIdx.x;
    int level = tree.directory_level + 1, shift = 2 * level - 2;
    uint32_t parent_x = i >> 4 & ((1u << shift) - 1), parent_y;
    if ((uint64_t)i >> (4 * level) != 0)
        return;
    parent_y = i >> (4 + shift);
    occupied[i] = (uint16_t)oj_ring_occupied(&tree, 4 * parent_x + i % 4,
                                             4 * parent_y + i / 4 % 4);
}

static oj_status add_directory(struct oj_cuda_ring_making *m, int level,
                               struct oj_cuda_ring_cells *cells)
{
    cudaStream_t stream = m->device->stream;
    int64_t n = (int64_t)1 << (4 * level);
    OJ_TRY(oj_cuda_make(m->device, stream, n, &cells->directory, m->err));
    OJ_TRY(oj_cuda_make(m->device, stream, 16 * n, &cells->occupied, m->err));
    make_directory<<<blocks_of((n + 15) / 16), BLOCK, 0, stream>>>(
        cells->slot.data, level, cells->directory.data);
    OJ_CUDA_TRY_LAUNCH("making the directory of rings", m->err);
    cells->tree.directory_level = level;
    cells->tree.directory = cells->directory.data;
    make_occupied<<<blocks_of(16 * n), BLOCK, 0, stream>>>(
        cells->tree, cells->occupied.data);
    OJ_CUDA_TRY_LAUNCH("making the directory of rings", m->err);
    cells->tree.occupied = cells->occupied.data;
    return OJ_OK;
}

static oj_status build(struct oj_cuda_ring_making *m, int directory_level,
                       struct oj_cuda_ring_cells *cells,
                       struct oj_cuda_ring_level *root, struct parts *parts)
{
    struct oj_cuda_array<uint32_t> count =
    {
        NULL, 0
    };
    struct oj_cuda_array<uint8_t> scratch =
    {
        NULL, 0
    };
    struct units units;
    oj_status status = make_units(m, cells, &units);
    if (status == OJ_OK)
        status = fill_root(m, &units, &count, &scratch, root);
    oj_cuda_drop(m->device, m->device->stream, &count);
    oj_cuda_drop(m->device, m->device->stream, &scratch);
    OJ_TRY(status);
    OJ_TRY(make_levels(m, root, parts));
    OJ_TRY(join_levels(m, parts, cells));
    cells->tree = m->tree;
    cells->tree.slot = cells->slot.data;
    cells->tree.leaf = cells->leaf.data;
    cells->tree.record = cells->record.data;
    cells->tree.edge = cells->edge.data;
    cells->tree.edge_segment = cells->edge_segment.data;
    cells->tree.segment =
        (const struct oj_ring_segment *)m->layer->segment.data;
    if (directory_level >= parts->n)
        directory_level = parts->n - 1;
    return add_directory(m, directory_level, cells);
}

static int choose_directory(int64_t n_edges)
{
    int fine = 1;
    while (fine < MOST_FINE_LEVEL && (int64_t)1 << (4 * fine) < 4 * n_edges)
        fine++;
    return fine - 1;
}

oj_status oj_cuda_ring_cells_build_as(struct oj_cuda_device *device,
                                      const struct oj_cuda_layer *layer,
                                      enum oj_ring_units units, uint32_t most,
                                      int directory_level,
                                      struct oj_cuda_ring_cells *out,
                                      struct oj_error *err)
{
    struct oj_cuda_ring_cells cells;
    struct oj_cuda_ring_making m;
    struct oj_cuda_ring_level root;
    struct parts parts;
    oj_status status;
    memset(&cells, 0, sizeof cells);
    memset(&m, 0, sizeof m);
    memset(&root, 0, sizeof root);
    memset(&parts, 0, sizeof parts);
    if ((layer->x0 <= layer->x1 && layer->magnitude > 1e140) ||
        layer->n_rings > OJ_RING_SLOT_MAX / 2 ||
        layer->n_features > OJ_RING_SLOT_MAX ||
        layer->n_segments > ((int64_t)1 << 31) - 16)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "polygons that CUDA kernels do not hold");
    m.device = device;
    m.layer = layer;
    m.err = err;
    m.most = most;
    m.fine = directory_level + 1;
    m.large = LARGE_FACTOR * layer->n_segments;
    if (m.large < LARGE_LEAST)
        m.large = LARGE_LEAST;
    m.tree.units = units;
    m.tree.frame =
        layer->x0 <= layer->x1
            ? oj_ring_frame_around(layer->x0, layer->y0, layer->x1, layer->y1)
            : oj_ring_frame_around(0.0, 0.0, 0.0, 0.0);
    status = build(&m, directory_level, &cells, &root, &parts);
    oj_cuda_ring_level_drop(device, &root);
    for (int i = 0; i < parts.n; i++)
        oj_cuda_ring_part_drop(device, &parts.part[i]);
    if (status != OJ_OK)
    {
        oj_cuda_ring_cells_drop(device, &cells);
        return status;
    }
    *out = cells;
    return OJ_OK;
}

oj_status oj_cuda_ring_cells_build(struct oj_cuda_device *device,
                                   const struct oj_cuda_layer *layer,
                                   enum oj_ring_units units,
                                   struct oj_cuda_ring_cells *out,
                                   struct oj_error *err)
{
    return oj_cuda_ring_cells_build_as(device, layer, units, MOST_EDGES,
                                       choose_directory(layer->n_segments), out,
                                       err);
}

void oj_cuda_ring_cells_drop(struct oj_cuda_device *device,
                             struct oj_cuda_ring_cells *cells)
{
    cudaStream_t stream = device->stream;
    oj_cuda_drop(device, stream, &cells->directory);
    oj_cuda_drop(device, stream, &cells->occupied);
    oj_cuda_drop(device, stream, &cells->slot);
    oj_cuda_drop(device, stream, &cells->leaf);
    oj_cuda_drop(device, stream, &cells->record);
    oj_cuda_drop(device, stream, &cells->edge);
    oj_cuda_drop(device, stream, &cells->edge_segment);
    oj_cuda_drop(device, stream, &cells->ring_part);
    memset(cells, 0, sizeof *cells);
}

int64_t oj_cuda_ring_cells_bytes(const struct oj_cuda_ring_cells *cells)
{
    return 4 * (cells->directory.n + cells->slot.n + cells->edge_segment.n +
                cells->ring_part.n) +
           2 * cells->occupied.n +
           (int64_t)sizeof(struct oj_ring_leaf) * cells->leaf.n +
           8 * (cells->record.n + cells->edge.n);
}
