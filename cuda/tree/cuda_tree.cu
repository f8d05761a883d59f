#include "cuda_tree.h"

#include "../device/cuda_scratch.cuh"

#include <string.h>

#define BLOCK 256

/* --- a tree of boxes ------------------------------------------------------ */

static __global__ void
make_codes(const __grid_constant__ struct oj_device_tree tree,
           const struct oj_tree_box *box, uint64_t *code, int32_t *order)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= tree.n)
        return;
    code[i] = oj_tree_code(&tree, &box[i]);
    order[i] = (int32_t)i;
}

/* A thread for each child of the nodes of level 0. */
static __global__ void
set_entries(const __grid_constant__ struct oj_device_tree tree,
            const struct oj_tree_box *box, const int32_t *order,
            struct oj_device_tree_node *node)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < (int64_t)tree.level_n[0] * OJ_TREE_FANOUT)
        oj_tree_set_entry(&tree, &node[i / OJ_TREE_FANOUT],
                          (int)(i % OJ_TREE_FANOUT),
                          i < tree.n ? &box[order[i]] : NULL);
}

static __global__ void set_nodes(int64_t n, int64_t n_below,
                                 const struct oj_device_tree_node *below,
                                 struct oj_device_tree_node *node)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n * OJ_TREE_FANOUT)
        oj_tree_set_node(&node[i / OJ_TREE_FANOUT], (int)(i % OJ_TREE_FANOUT),
                         i < n_below ? &below[i] : NULL);
}

static oj_status fill_nodes(struct oj_cuda_device *device,
                            const struct oj_tree_box *box, int64_t n_nodes,
                            struct oj_cuda_tree *out, struct oj_error *err)
{
    cudaStream_t stream = device->stream;
    struct oj_device_tree *tree = &out->tree;
    OJ_TRY(oj_cuda_make(device, stream, n_nodes, &out->node, err));
    set_entries<<<oj_blocks((int64_t)tree->level_n[0] * OJ_TREE_FANOUT, BLOCK),
                  BLOCK, 0, stream>>>(*tree, box, out->order.data,
                                      out->node.data);
    OJ_CUDA_TRY_LAUNCH("packing boxes", err);
    for (int level = 1; level < tree->n_levels; level++)
    {
        int64_t n = tree->level_n[level];
        set_nodes<<<oj_blocks(n * OJ_TREE_FANOUT, BLOCK), BLOCK, 0, stream>>>(
            n, tree->level_n[level - 1],
            out->node.data + tree->level_first[level - 1],
            out->node.data + tree->level_first[level]);
        OJ_CUDA_TRY_LAUNCH("packing boxes", err);
    }
    tree->node = out->node.data;
    return OJ_OK;
}

oj_status
oj_cuda_tree_build(struct oj_cuda_device *device,
                   const struct oj_cuda_array<struct oj_tree_box> *box,
                   const struct oj_tree_box *extent, struct oj_cuda_tree *out,
                   struct oj_error *err)
{
    int64_t n_nodes = (int64_t)oj_tree_layout(&out->tree, box->n, extent);
    cudaStream_t stream = device->stream;
    if (box->n == 0)
        return OJ_OK;
    /* by code, and where codes are equal by number */
    OJ_TRY(oj_cuda_order_by<uint64_t>(
        device, stream, box->n, 64,
        [&](uint64_t *code, int32_t *number)
        {
            make_codes<<<oj_blocks(box->n, BLOCK), BLOCK, 0, stream>>>(
                out->tree, box->data, code, number);
        },
        &out->order, "ordering boxes", err));
    return fill_nodes(device, box->data, n_nodes, out, err);
}

void oj_cuda_tree_drop(struct oj_cuda_device *device, struct oj_cuda_tree *tree)
{
    oj_cuda_drop(device, device->stream, &tree->node, &tree->order);
    memset(tree, 0, sizeof *tree);
}

/* --- rings ---------------------------------------------------------------- */

static const struct oj_tree_segment *
segments_of(const struct oj_cuda_array<struct oj_cuda_segment> *segment)
{
    return (const struct oj_tree_segment *)(const void *)segment->data;
}

static __global__ void
make_chains(int64_t n, int level,
            const __grid_constant__ struct oj_tree_rings rings,
            struct oj_tree_box *out)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        out[i] = oj_tree_chain_box(&rings, level, i);
}

oj_status oj_cuda_rings_make(struct oj_cuda_device *device, cudaStream_t stream,
                             const struct oj_cuda_layer *layer,
                             struct oj_cuda_rings *out, struct oj_error *err)
{
    struct oj_tree_rings *rings = &out->rings;
    rings->segment = segments_of(&layer->segment);
    rings->ring_offset = layer->ring_offset.data;
    rings->segment_offset = layer->segment_offset.data;
    rings->part_feature = layer->part_feature.data;
    rings->part_kind = layer->part_kind.data;
    rings->polygon_kind = OJ_PART_POLYGON;
    for (int level = 1; level <= OJ_TREE_CHAIN_LEVELS; level++)
    {
        struct oj_cuda_array<struct oj_tree_box> *chain =
            &out->chain[level - 1];
        int64_t n = layer->n_segments >> (OJ_TREE_CHAIN_BITS * level);
        if (n == 0)
            break;
        OJ_TRY(oj_cuda_make(device, stream, n, chain, err));
        make_chains<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(n, level, *rings,
                                                               chain->data);
        OJ_CUDA_TRY_LAUNCH("measuring rings", err);
        rings->chain[level - 1] = chain->data;
    }
    return OJ_OK;
}

void oj_cuda_rings_drop(struct oj_cuda_device *device, cudaStream_t stream,
                        struct oj_cuda_rings *rings)
{
    for (int i = 0; i < OJ_TREE_CHAIN_LEVELS; i++)
        oj_cuda_drop(device, stream, &rings->chain[i]);
    memset(rings, 0, sizeof *rings);
}

int64_t oj_cuda_rings_bytes(const struct oj_cuda_rings *rings)
{
    int64_t n = 0;
    for (int i = 0; i < OJ_TREE_CHAIN_LEVELS; i++)
        n += rings->chain[i].n;
    return n * (int64_t)sizeof(struct oj_tree_box);
}

/* --- the join side -------------------------------------------------------- */

static __global__ void make_reach_boxes(int64_t n,
                                        const struct oj_tree_segment *segment,
                                        struct oj_tree_box *box)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        box[i] = oj_tree_reach_box(&segment[i]);
}

static __global__ void gather_segments(int64_t n, const int32_t *order,
                                       const struct oj_cuda_segment *segment,
                                       const int32_t *feature,
                                       struct oj_cuda_segment *out,
                                       int32_t *rank)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    out[i] = segment[order[i]];
    rank[i] = feature[order[i]];
}

static __global__ void
make_polygon_boxes(int64_t n,
                   const __grid_constant__ struct oj_tree_rings rings,
                   struct oj_tree_box *box)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        box[i] = oj_tree_polygon_box(&rings, i);
}

struct tree_side_build
{
    struct oj_cuda_device *device;
    const struct oj_cuda_layer *layer;
    struct oj_tree_box extent;
    struct oj_cuda_array<struct oj_tree_box> box;
    struct oj_cuda_tree_side *made;
    struct oj_error *err;
};

static oj_status make_segments(struct tree_side_build *m)
{
    struct oj_cuda_tree_side *made = m->made;
    const struct oj_cuda_layer *layer = m->layer;
    cudaStream_t stream = m->device->stream;
    int64_t n = layer->n_segments;
    OJ_TRY(oj_cuda_make(m->device, stream, n, &m->box, m->err));
    make_reach_boxes<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(
        n, segments_of(&layer->segment), m->box.data);
    OJ_CUDA_TRY_LAUNCH("measuring segments", m->err);
    OJ_TRY(oj_cuda_tree_build(m->device, &m->box, &m->extent, &made->segments,
                              m->err));
    oj_cuda_drop(m->device, stream, &m->box);
    OJ_TRY(oj_cuda_make(m->device, stream, n, &made->segment, &made->rank,
                        m->err));
    gather_segments<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(
        n, made->segments.order.data, layer->segment.data,
        layer->segment_feature.data, made->segment.data, made->rank.data);
    OJ_CUDA_TRY_LAUNCH("gathering segments", m->err);
    oj_cuda_drop(m->device, stream, &made->segments.order);
    made->side.segments = made->segments.tree;
    made->side.segment = segments_of(&made->segment);
    made->side.rank = made->rank.data;
    return OJ_OK;
}

static __global__ void set_only_ranks(int64_t n, const int32_t *below,
                                      int64_t n_below, int32_t *only_rank)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        only_rank[i] = oj_tree_only_rank(below, n_below, i);
}

static oj_status make_only_ranks(struct tree_side_build *m)
{
    struct oj_cuda_tree_side *made = m->made;
    const struct oj_device_tree *tree = &made->segments.tree;
    cudaStream_t stream = m->device->stream;
    const int32_t *below = made->rank.data;
    int64_t n_below = tree->n;
    OJ_TRY(oj_cuda_make(m->device, stream, made->segments.node.n,
                        &made->only_rank, m->err));
    for (int level = 0; level < tree->n_levels; level++)
    {
        int64_t n = tree->level_n[level];
        int32_t *here = made->only_rank.data + tree->level_first[level];
        set_only_ranks<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(
            n, below, n_below, here);
        OJ_CUDA_TRY_LAUNCH("packing boxes", m->err);
        below = here;
        n_below = n;
    }
    made->side.only_rank = made->only_rank.data;
    return OJ_OK;
}

static oj_status make_rings(struct tree_side_build *m)
{
    struct oj_cuda_tree_side *made = m->made;
    const struct oj_cuda_layer *layer = m->layer;
    struct oj_tree_rings *rings = &made->side.rings;
    cudaStream_t stream = m->device->stream;
    int64_t n = layer->n_parts;
    OJ_TRY(oj_cuda_rings_make(m->device, stream, layer, &made->rings, m->err));
    *rings = made->rings.rings;
    OJ_TRY(oj_cuda_make(m->device, stream, n, &m->box, m->err));
    make_polygon_boxes<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(n, *rings,
                                                                  m->box.data);
    OJ_CUDA_TRY_LAUNCH("measuring rings", m->err);
    OJ_TRY(oj_cuda_tree_build(m->device, &m->box, &m->extent, &made->polygons,
                              m->err));
    rings->polygons = made->polygons.tree;
    rings->polygon_part = made->polygons.order.data;
    return OJ_OK;
}

oj_status oj_cuda_tree_side_build(struct oj_cuda_device *device,
                                  const struct oj_cuda_layer *layer,
                                  int to_interior, int several,
                                  struct oj_cuda_tree_side *out,
                                  struct oj_error *err)
{
    struct tree_side_build m = {};
    oj_status status = OJ_OK;
    m.device = device;
    m.layer = layer;
    m.made = out;
    m.err = err;
    m.extent.x0 = layer->x0;
    m.extent.y0 = layer->y0;
    m.extent.x1 = layer->x1;
    m.extent.y1 = layer->y1;
    if (layer->n_segments > 0)
        status = make_segments(&m);
    if (status == OJ_OK && several && layer->n_segments > 0)
        status = make_only_ranks(&m);
    if (status == OJ_OK && to_interior && layer->segment_part.n > 0)
        status = make_rings(&m);
    oj_cuda_drop(device, device->stream, &m.box);
    return status;
}

void oj_cuda_tree_side_drop(struct oj_cuda_device *device,
                            struct oj_cuda_tree_side *side)
{
    oj_cuda_tree_drop(device, &side->segments);
    oj_cuda_tree_drop(device, &side->polygons);
    oj_cuda_drop(device, device->stream, &side->segment, &side->rank,
                 &side->only_rank);
    oj_cuda_rings_drop(device, device->stream, &side->rings);
    memset(side, 0, sizeof *side);
}

int64_t oj_cuda_tree_side_bytes(const struct oj_cuda_tree_side *side)
{
    return oj_cuda_bytes(&side->segments.node, &side->segments.order,
                         &side->polygons.node, &side->polygons.order,
                         &side->segment, &side->rank, &side->only_rank) +
           oj_cuda_rings_bytes(&side->rings);
}
