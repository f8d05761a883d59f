#include "cuda_ring_levels.cuh"

#include <string.h>

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

/* --- levels --------------------------------------------------------------- */

/* Of one level each, the first of which is that of level `top`. */
struct parts
{
    int top, n;
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
    oj_cuda_ring_level_drop(m, next);
    *part = bases;
    return oj_cuda_ring_level_down(m, level, is_large, 0, part, next);
}

/* Begins where the next level's things go. */
static struct oj_cuda_ring_part *next_part(struct parts *parts)
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

static oj_status make_levels(struct oj_cuda_ring_making *m, struct parts *parts)
{
    struct oj_cuda_ring_level next;
    struct oj_cuda_ring_level level = {};
    oj_status status;
    status = oj_cuda_ring_start(m, &parts->part[0], &level);
    if (level.depth > 0)
    {
        parts->top = level.depth - 1;
        parts->n = 1;
    }
    while (status == OJ_OK && level.n_nodes > 0)
    {
        memset(&next, 0, sizeof next);
        status = oj_check_cancel(m->device->cancel, m->err);
        if (status != OJ_OK)
            break;
        status = go_down(m, &level, next_part(parts), &next);
        oj_cuda_ring_level_drop(m, &level);
        level = next;
    }
    oj_cuda_ring_level_drop(m, &level);
    return status;
}

/* --- the whole ------------------------------------------------------------ */

static __global__ void end_records(struct oj_ring_record *last, uint32_t edge)
{
    last->unit = 0;
    last->first = edge;
}

static oj_status end_levels(struct oj_cuda_ring_making *m,
                            const struct parts *parts)
{
    const struct oj_cuda_ring_part *last = &parts->part[parts->n - 1];
    struct oj_cuda_ring_cells *cells = m->cells;
    cells->n_slots = (int64_t)last->first_slot + last->n_slots;
    cells->n_leaves = (int64_t)last->first_leaf + last->sums.leaves;
    cells->n_records = (int64_t)last->first_record + last->sums.records;
    cells->n_edges = (int64_t)last->first_edge + last->sums.edges;
    cells->n_levels = parts->n;
    OJ_TRY(oj_cuda_ring_extend(m, &cells->record, cells->n_records, 1));
    OJ_TRY(m->run<1>(1, "ending cells of rings", end_records,
                     cells->record.data + cells->n_records,
                     (uint32_t)cells->n_edges));
    cells->tree = m->tree;
    cells->tree.slot = cells->slot.data;
    cells->tree.leaf = cells->leaf.data;
    cells->tree.record = cells->record.data;
    cells->tree.edge = cells->edge.data;
    cells->tree.edge_segment = cells->edge_segment.data;
    cells->tree.segment =
        (const struct oj_ring_segment *)m->layer->segment.data;
    return OJ_OK;
}

/* The slots of 16 children each: those of one node, or copies of what a node
 * above them is.  slot: those of level `top` come first, in the same order. */
static __global__ void make_directory(const uint32_t *slot, int top, int level,
                                      uint32_t *directory)
{
    uint32_t i = blockIdx.x * BLOCK + threadIdx.x, x, y, s;
    int shift = 2 * (level - 1 - top);
    if (i >> (4 * level - 4) != 0)
        return;
    x = i & ((1u << (2 * level - 2)) - 1);
    y = i >> (2 * level - 2);
    s = slot[oj_ring_directory_at(x >> shift, y >> shift, top)];
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

/* Four cells side by side. */
static __global__ void
make_occupied(const __grid_constant__ struct oj_ring_tree tree,
              uint16_t *occupied)
{
    uint32_t i = 4 * (blockIdx.x * BLOCK + threadIdx.x), bits[4];
    int level = tree.directory_level + 1, shift = 2 * level - 2;
    uint32_t parent_x = i >> 4 & ((1u << shift) - 1), parent_y;
    if ((uint64_t)i >> (4 * level) != 0)
        return;
    parent_y = i >> (4 + shift);
    for (uint32_t c = 0; c < 4; c++)
        bits[c] =
            oj_ring_occupied(&tree, 4 * parent_x + c, 4 * parent_y + i / 4 % 4);
    *(uint2 *)&occupied[i] =
        make_uint2(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16);
}

static oj_status add_directory(struct oj_cuda_ring_making *m, int top,
                               int level, struct oj_cuda_ring_cells *cells)
{
    int64_t n = (int64_t)1 << (4 * level);
    OJ_TRY(m->make(n, &cells->directory));
    OJ_TRY(m->make(16 * n, &cells->occupied));
    if (level == top)
        OJ_CUDA_TRY(cudaMemcpyAsync(cells->directory.data, cells->slot.data,
                                    4 * (size_t)n, cudaMemcpyDeviceToDevice,
                                    m->stream),
                    "making the directory of rings", m->err);
    else
        OJ_TRY(m->run(n / 16, "making the directory of rings", make_directory,
                      cells->slot.data, top, level, cells->directory.data));
    cells->tree.directory_level = level;
    cells->tree.directory = cells->directory.data;
    OJ_TRY(m->run(4 * n, "making the directory of rings", make_occupied,
                  cells->tree, cells->occupied.data));
    cells->tree.occupied = cells->occupied.data;
    return OJ_OK;
}

static oj_status build(struct oj_cuda_ring_making *m, int directory_level,
                       struct parts *parts)
{
    OJ_TRY(make_levels(m, parts));
    OJ_TRY(end_levels(m, parts));
    if (directory_level >= parts->top + parts->n)
        directory_level = parts->top + parts->n - 1;
    return add_directory(m, parts->top, directory_level, m->cells);
}

static int choose_directory(int64_t n_edges)
{
    int fine = 1;
    while (fine < MOST_FINE_LEVEL && (int64_t)1 << (4 * fine) < 4 * n_edges)
        fine++;
    return fine - 1;
}

oj_status oj_cuda_ring_cells_build(struct oj_cuda_device *device,
                                   const struct oj_cuda_layer *layer,
                                   enum oj_ring_units units,
                                   struct oj_cuda_ring_cells *out,
                                   struct oj_error *err)
{
    int directory_level = choose_directory(layer->n_segments);
    struct oj_cuda_ring_making m = {};
    struct parts parts = {};
    if ((layer->x0 <= layer->x1 && layer->magnitude > 1e140) ||
        layer->n_rings > OJ_RING_SLOT_MAX / 2 ||
        layer->n_features > OJ_RING_SLOT_MAX ||
        layer->n_segments > ((int64_t)1 << 31) - 16)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "polygons that CUDA kernels do not hold");
    oj_status status;
    m.device = device;
    m.stream = device->stream;
    m.layer = layer;
    m.cells = out;
    m.err = err;
    m.most = MOST_EDGES;
    m.fine = directory_level + 1;
    m.large = LARGE_FACTOR * layer->n_segments;
    if (m.large < LARGE_LEAST)
        m.large = LARGE_LEAST;
    m.tree.units = units;
    m.tree.frame =
        layer->x0 <= layer->x1
            ? oj_ring_frame_around(layer->x0, layer->y0, layer->x1, layer->y1)
            : oj_ring_frame_around(0.0, 0.0, 0.0, 0.0);
    status = build(&m, directory_level, &parts);
    m.drop(&m.scratch);
    return status;
}
