#include "cuda_tree.h"

#include "../device/cuda_parallel_for.cuh"

#include <string.h>

/* --- a tree of boxes ------------------------------------------------------ */

static oj_status fill_nodes(struct oj_cuda_device *device,
                            const struct oj_tree_box *box, int64_t n_nodes,
                            struct oj_cuda_tree *out, struct oj_error *err)
{
    cudaStream_t stream = device->stream;
    const struct oj_device_tree tree = out->tree;
    const int32_t *order = out->order.data;
    OJ_TRY(oj_cuda_make(device, stream, n_nodes, &out->node, err));
    for (int level = 0; level < tree.n_levels; level++)
    {
        struct oj_device_tree_node *node =
            out->node.data + tree.level_first[level];
        int64_t n_below = level == 0 ? tree.n : tree.level_n[level - 1];
        const struct oj_device_tree_node *below =
            level == 0 ? NULL : out->node.data + tree.level_first[level - 1];
        OJ_TRY(oj_cuda_each(
            stream, (int64_t)tree.level_n[level] * OJ_TREE_FANOUT,
            [=] __device__(int64_t i)
            {
                struct oj_device_tree_node *at = &node[i / OJ_TREE_FANOUT];
                int c = (int)(i % OJ_TREE_FANOUT);
                if (below == NULL)
                    oj_tree_set_entry(&tree, at, c,
                                      i < n_below ? &box[order[i]] : NULL);
                else
                    oj_tree_set_node(at, c, i < n_below ? &below[i] : NULL);
            },
            "packing boxes", err));
    }
    out->tree.node = out->node.data;
    return OJ_OK;
}

oj_status
oj_cuda_tree_build(struct oj_cuda_device *device,
                   const struct oj_cuda_array<struct oj_tree_box> *boxes,
                   const struct oj_tree_box *extent, struct oj_cuda_tree *out,
                   struct oj_error *err)
{
    int64_t n = boxes->n;
    int64_t n_nodes = (int64_t)oj_tree_layout(&out->tree, n, extent);
    const struct oj_device_tree tree = out->tree;
    const struct oj_tree_box *box = boxes->data;
    if (n == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_order_by<uint64_t>(
        device, device->stream, n, 64,
        [=] __device__(int64_t i) { return oj_tree_code(&tree, &box[i]); },
        &out->order, "ordering boxes", err));
    return fill_nodes(device, box, n_nodes, out, err);
}

void oj_cuda_tree_drop(struct oj_cuda_device *device, struct oj_cuda_tree *tree)
{
    oj_cuda_drop(device, device->stream, &tree->node, &tree->order);
    memset(tree, 0, sizeof *tree);
}

oj_status oj_cuda_point_order(struct oj_cuda_device *device,
                              cudaStream_t stream,
                              const struct oj_device_tree *by,
                              const struct oj_cuda_points *points,
                              struct oj_cuda_array<int32_t> *order,
                              struct oj_error *err)
{
    const struct oj_device_tree tree = *by;
    const double *x = points->x, *y = points->y;
    int64_t n = points->n;
    oj_status status;
    if (n < OJ_CUDA_FEW_POINTS || n > INT32_MAX || tree.n == 0)
        return OJ_OK;
    status = oj_cuda_order_by<uint32_t>(
        device, stream, n, 32,
        [=] __device__(int64_t i)
        {
            struct oj_tree_box box = {x[i], y[i], x[i], y[i]};
            return (uint32_t)(oj_tree_code(&tree, &box) >> 32);
        },
        order, "ordering points", err);
    return status == OJ_ERR_NOMEM ? OJ_OK : status;
}

/* --- rings ---------------------------------------------------------------- */

static const struct oj_tree_segment *
segments_of(const struct oj_cuda_array<struct oj_cuda_segment> *segment)
{
    return (const struct oj_tree_segment *)(const void *)segment->data;
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
        const struct oj_tree_rings below = *rings;
        struct oj_cuda_array<struct oj_tree_box> *chain =
            &out->chain[level - 1];
        int64_t n = layer->n_segments >> (OJ_TREE_CHAIN_BITS * level);
        struct oj_tree_box *box;
        if (n == 0)
            break;
        OJ_TRY(oj_cuda_make(device, stream, n, chain, err));
        rings->chain[level - 1] = box = chain->data;
        OJ_TRY(oj_cuda_each(
            stream, n,
            [=] __device__(int64_t i)
            { box[i] = oj_tree_chain_box(&below, level, i); },
            "measuring rings", err));
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

static oj_status make_segments(struct oj_cuda_device *device,
                               const struct oj_cuda_layer *layer,
                               const struct oj_tree_box *extent,
                               struct oj_cuda_tree_side *made,
                               struct oj_error *err)
{
    struct oj_cuda_work work(device, device->stream, err);
    const struct oj_tree_segment *from = segments_of(&layer->segment);
    const int32_t *feature = layer->segment_feature.data, *order;
    struct oj_cuda_array<struct oj_tree_box> boxes =
    {
        NULL, layer->n_segments
    };
    struct oj_tree_segment *segment;
    struct oj_tree_box *box;
    int32_t *rank;
    OJ_TRY(work.make(boxes.n, &boxes.data));
    box = boxes.data;
    OJ_TRY(work.each(
        boxes.n,
        [=] __device__(int64_t i) { box[i] = oj_tree_reach_box(&from[i]); },
        "measuring segments"));
    OJ_TRY(oj_cuda_tree_build(device, &boxes, extent, &made->segments, err));
    OJ_TRY(oj_cuda_make(device, device->stream, boxes.n, &made->segment,
                        &made->rank, err));
    order = made->segments.order.data;
    segment = (struct oj_tree_segment *)(void *)made->segment.data;
    rank = made->rank.data;
    OJ_TRY(work.each(
        boxes.n,
        [=] __device__(int64_t i)
        {
            segment[i] = from[order[i]];
            rank[i] = feature[order[i]];
        },
        "gathering segments"));
    oj_cuda_drop(device, device->stream, &made->segments.order);
    made->side.segments = made->segments.tree;
    made->side.segment = segment;
    made->side.rank = rank;
    return OJ_OK;
}

static oj_status make_only_ranks(struct oj_cuda_device *device,
                                 struct oj_cuda_tree_side *made,
                                 struct oj_error *err)
{
    const struct oj_device_tree *tree = &made->segments.tree;
    const int32_t *below = made->rank.data;
    int64_t n_below = tree->n;
    OJ_TRY(oj_cuda_make(device, device->stream, made->segments.node.n,
                        &made->only_rank, err));
    for (int level = 0; level < tree->n_levels; level++)
    {
        int32_t *here = made->only_rank.data + tree->level_first[level];
        OJ_TRY(oj_cuda_each(
            device->stream, tree->level_n[level],
            [=] __device__(int64_t i)
            { here[i] = oj_tree_only_rank(below, n_below, i); },
            "packing boxes", err));
        below = here;
        n_below = tree->level_n[level];
    }
    made->side.only_rank = made->only_rank.data;
    return OJ_OK;
}

static oj_status make_rings(struct oj_cuda_device *device,
                            const struct oj_cuda_layer *layer,
                            const struct oj_tree_box *extent,
                            struct oj_cuda_tree_side *made,
                            struct oj_error *err)
{
    struct oj_cuda_work work(device, device->stream, err);
    struct oj_cuda_array<struct oj_tree_box> boxes =
    {
        NULL, layer->n_parts
    };
    struct oj_tree_rings rings;
    struct oj_tree_box *box;
    OJ_TRY(
        oj_cuda_rings_make(device, device->stream, layer, &made->rings, err));
    OJ_TRY(work.make(boxes.n, &boxes.data));
    rings = made->rings.rings;
    box = boxes.data;
    OJ_TRY(work.each(
        boxes.n,
        [=] __device__(int64_t i) { box[i] = oj_tree_polygon_box(&rings, i); },
        "measuring rings"));
    OJ_TRY(oj_cuda_tree_build(device, &boxes, extent, &made->polygons, err));
    rings.polygons = made->polygons.tree;
    rings.polygon_part = made->polygons.order.data;
    made->side.rings = rings;
    return OJ_OK;
}

oj_status oj_cuda_tree_side_build(struct oj_cuda_device *device,
                                  const struct oj_cuda_layer *layer,
                                  int to_interior, int several,
                                  struct oj_cuda_tree_side *out,
                                  struct oj_error *err)
{
    const struct oj_tree_box extent = {layer->x0, layer->y0, layer->x1,
                                       layer->y1};
    if (layer->n_segments == 0)
        return OJ_OK;
    OJ_TRY(make_segments(device, layer, &extent, out, err));
    if (several)
        OJ_TRY(make_only_ranks(device, out, err));
    if (to_interior && layer->segment_part.n > 0)
        OJ_TRY(make_rings(device, layer, &extent, out, err));
    return OJ_OK;
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
