#include "../device/cuda_stream_work.cuh"
#include "cuda_tree.h"

#include <string.h>

/* --- a tree of boxes ------------------------------------------------------ */

static oj_status fill_nodes(struct oj_cuda_work *work, const struct oj_box *box,
                            struct oj_device_tree_node *nodes,
                            const struct oj_cuda_tree *out)
{
    const struct oj_device_tree tree = out->tree;
    const int32_t *order = out->order;
    for (int level = 0; level < tree.n_levels; level++)
    {
        struct oj_device_tree_node *node = nodes + tree.level_first[level];
        int64_t n_below = level == 0 ? tree.n : tree.level_n[level - 1];
        const struct oj_device_tree_node *below =
            level == 0 ? NULL : nodes + tree.level_first[level - 1];
        OJ_TRY(work->each(
            (int64_t)tree.level_n[level] * OJ_TREE_FANOUT,
            [=] __device__(int64_t i)
            {
                struct oj_device_tree_node *at = &node[i / OJ_TREE_FANOUT];
                int c = (int)(i % OJ_TREE_FANOUT);
                if (below == NULL)
                    oj_tree_set_entry(&tree, at, c,
                                      i < n_below ? &box[order[i]] : NULL);
                else
                    oj_tree_set_node(at, c, i < n_below ? &below[i] : NULL);
            }));
    }
    return OJ_OK;
}

oj_status oj_cuda_tree_build(struct oj_cuda_work *work,
                             const struct oj_cuda_layer *layer, int64_t n,
                             const struct oj_box *box, struct oj_cuda_tree *out)
{
    const struct oj_box extent = {layer->x0, layer->y0, layer->x1, layer->y1};
    struct oj_device_tree tree = {};
    struct oj_device_tree_node *node;
    out->n_nodes = (int64_t)oj_tree_set_layout(&tree, n, &extent);
    out->tree = tree;
    out->order = NULL;
    if (n == 0)
        return OJ_OK;
    OJ_TRY(work->order_by<uint64_t>(
        n, 64,
        [=] __device__(int64_t i)
        { return oj_tree_morton_code(&tree, &box[i]); },
        &out->order));
    OJ_TRY(work->make(out->n_nodes, &node));
    out->tree.node = node;
    return fill_nodes(work, box, node, out);
}

oj_status oj_cuda_tree_order_points(struct oj_cuda_work *work,
                                    const struct oj_device_tree *by,
                                    const struct oj_cuda_points *points,
                                    int32_t **order)
{
    const struct oj_device_tree tree = *by;
    const double *x = points->x, *y = points->y;
    oj_status status;
    *order = NULL;
    if (points->n < OJ_CUDA_FEW_POINTS || points->n > INT32_MAX || tree.n == 0)
        return OJ_OK;
    status = work->order_by<uint32_t>(
        points->n, 32,
        [=] __device__(int64_t i)
        {
            struct oj_box box = {x[i], y[i], x[i], y[i]};
            return (uint32_t)(oj_tree_morton_code(&tree, &box) >> 32);
        },
        order);
    return status == OJ_ERR_NOMEM ? OJ_OK : status;
}

/* --- rings ---------------------------------------------------------------- */

oj_status oj_cuda_tree_rings_make(struct oj_cuda_work *work,
                                  const struct oj_cuda_layer *layer,
                                  struct oj_tree_rings *rings)
{
    memset(rings, 0, sizeof *rings);
    rings->segment = layer->segment.data;
    rings->ring_offset = layer->ring_offset.data;
    rings->segment_offset = layer->segment_offset.data;
    rings->part_feature = layer->part_feature.data;
    rings->part_kind = layer->part_kind.data;
    rings->polygon_kind = OJ_PART_POLYGON;
    for (int level = 1; level <= OJ_TREE_CHAIN_LEVELS; level++)
    {
        const struct oj_tree_rings below = *rings;
        int64_t n = layer->n_segments >> (OJ_TREE_CHAIN_BITS * level);
        struct oj_box *box;
        if (n == 0)
            break;
        OJ_TRY(work->make(n, &box));
        rings->chain[level - 1] = box;
        OJ_TRY(work->each(n, [=] __device__(int64_t i)
                          { box[i] = oj_tree_chain_box(&below, level, i); }));
    }
    return OJ_OK;
}

/* --- the join side -------------------------------------------------------- */

oj_status oj_cuda_tree_of_segments(struct oj_cuda_work *keep,
                                   struct oj_cuda_work *work,
                                   const struct oj_cuda_layer *layer,
                                   struct oj_cuda_tree *out)
{
    const struct oj_cuda_segment *from = layer->segment.data;
    struct oj_box *box;
    OJ_TRY(work->make(layer->n_segments, &box));
    OJ_TRY(work->each(layer->n_segments, [=] __device__(int64_t i)
                      { box[i] = oj_cuda_segment_box(&from[i]); }));
    OJ_TRY(oj_cuda_tree_build(keep, layer, layer->n_segments, box, out));
    keep->move_array_to(out->order, work);
    return OJ_OK;
}

static oj_status make_segment_tree(struct oj_cuda_work *keep,
                                   const struct oj_cuda_layer *layer,
                                   struct oj_cuda_tree *tree,
                                   struct oj_tree_side *side)
{
    struct oj_cuda_work work(keep);
    int64_t n = layer->n_segments;
    OJ_TRY(oj_cuda_tree_of_segments(keep, &work, layer, tree));
    side->segments = tree->tree;
    OJ_TRY(keep->gather(n, layer->segment.data, tree->order, &side->segment));
    return keep->gather(n, layer->segment_feature.data, tree->order,
                        &side->rank);
}

/* Computes two values for each node: the rank of the entries below it if all
 * have one rank, otherwise OJ_TREE_SEVERAL; and the smallest rank below it. */
static oj_status mark_ranks_of_nodes(struct oj_cuda_work *work, int64_t n_nodes,
                                     struct oj_tree_side *side)
{
    const struct oj_device_tree *tree = &side->segments;
    const int32_t *only_below = side->rank, *least_below = side->rank;
    int64_t n_below = tree->n;
    int32_t *only_rank, *least_rank;
    OJ_TRY(work->make(n_nodes, &only_rank));
    OJ_TRY(work->make(n_nodes, &least_rank));
    side->only_rank = only_rank;
    side->least_rank = least_rank;
    for (int level = 0; level < tree->n_levels; level++)
    {
        int32_t *only = only_rank + tree->level_first[level];
        int32_t *least = least_rank + tree->level_first[level];
        OJ_TRY(work->each(
            tree->level_n[level],
            [=] __device__(int64_t i)
            {
                only[i] = oj_tree_node_only_rank(only_below, n_below, i);
                least[i] = oj_tree_node_least_rank(least_below, n_below, i);
            }));
        only_below = only;
        least_below = least;
        n_below = tree->level_n[level];
    }
    return OJ_OK;
}

static oj_status make_rings_and_polygon_tree(struct oj_cuda_work *keep,
                                             const struct oj_cuda_layer *layer,
                                             struct oj_tree_rings *out)
{
    struct oj_cuda_work work(keep);
    struct oj_tree_rings rings;
    struct oj_cuda_tree polygons;
    struct oj_box *box;
    OJ_TRY(oj_cuda_tree_rings_make(keep, layer, &rings));
    OJ_TRY(work.make(layer->n_parts, &box));
    OJ_TRY(work.each(layer->n_parts, [=] __device__(int64_t i)
                     { box[i] = oj_tree_polygon_box(&rings, i); }));
    OJ_TRY(oj_cuda_tree_build(keep, layer, layer->n_parts, box, &polygons));
    *out = rings;
    out->polygons = polygons.tree;
    out->polygon_part = polygons.order;
    return OJ_OK;
}

oj_status oj_cuda_tree_side_build(struct oj_cuda_work *work,
                                  const struct oj_cuda_layer *layer,
                                  int to_interior, int finds_several,
                                  struct oj_tree_side *out)
{
    struct oj_cuda_tree segments;
    if (layer->n_segments == 0)
        return OJ_OK;
    OJ_TRY(make_segment_tree(work, layer, &segments, out));
    if (finds_several)
        OJ_TRY(mark_ranks_of_nodes(work, segments.n_nodes, out));
    if (to_interior && layer->segment_part.n > 0)
        OJ_TRY(make_rings_and_polygon_tree(work, layer, &out->rings));
    return OJ_OK;
}
