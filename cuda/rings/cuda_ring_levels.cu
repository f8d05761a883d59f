#include "cuda_ring_levels.h"

#include "../device/cuda_cub.cuh"
#include "cuda_ring_level_kernels.cuh"

#include <string.h>

/* What is found out about a level, of its own. */
struct ring_level_work
{
    struct oj_cuda_array<uint8_t> kind;  /* [nodes] */
    struct oj_cuda_array<uint4> of_node; /* see node_sums */
    struct oj_cuda_array<struct oj_cuda_ring_sums> of_block;
    struct oj_cuda_array<uint32_t> list;  /* fragments of nodes that split */
    struct oj_cuda_array<uint32_t> said;  /* [fragments] */
    struct oj_cuda_ring_marks marks;      /* [listed] */
    struct oj_cuda_array<uint32_t> doubt; /* [listed + 1] */
    struct oj_cuda_array<uint8_t> count;  /* see put_counts() */
    struct oj_cuda_array<unsigned long long> place;
    struct oj_cuda_array<uint8_t> scratch;
};

/* --- steps ---------------------------------------------------------------- */

static struct view view_of(const struct oj_cuda_ring_making *m,
                           const struct oj_cuda_ring_level *level, int is_large,
                           int may_split)
{
    struct view v;
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
    v.list = NULL;
    v.n_listed = v.n_fragments;
    v.edge = level->edge.data;
    v.window = level->window.data;
    v.segment = m->layer->segment.data;
    v.most = oj_ring_node_most(m->most, level->depth, m->fine);
    v.is_large = is_large;
    v.may_split = may_split;
    return v;
}

static struct node_sums sums_of_nodes(const struct ring_level_work *w)
{
    struct node_sums sums = {w->of_node.data, w->of_block.data};
    return sums;
}

static struct ring_tree_arrays made_by(const struct oj_cuda_ring_cells *cells,
                                       const struct oj_cuda_ring_part *part)
{
    struct ring_tree_arrays to = {cells->leaf.data, cells->record.data,
                                  cells->edge.data, cells->edge_segment.data,
                                  part->first_leaf, part->first_record,
                                  part->first_edge};
    return to;
}

/* What becomes of the nodes; waits for the stream. */
static oj_status judge(struct oj_cuda_ring_making *m, const struct view *v,
                       struct ring_level_work *w,
                       struct oj_cuda_ring_part *part)
{
    cudaStream_t stream = m->device->stream;
    int64_t n = v->n_nodes, n_blocks = oj_blocks(n, BLOCK);
    part->n_slots = (v->n_nodes + 15) / 16 * 16;
    OJ_TRY(oj_cuda_make(m->device, stream, n, &w->kind, &w->of_node, m->err));
    OJ_TRY(oj_cuda_make(m->device, stream, n_blocks + 1, &w->of_block, m->err));
    OJ_TRY(oj_cuda_ring_extend(m, &m->cells->slot, part->first_slot,
                               part->n_slots));
    judge_nodes<<<(unsigned)n_blocks, BLOCK, 0, stream>>>(
        *v, w->kind.data, sums_of_nodes(w),
        m->cells->slot.data + part->first_slot);
    OJ_CUDA_TRY_LAUNCH("judging cells of rings", m->err);
    OJ_CUDA_TRY(cudaMemsetAsync(w->of_block.data + n_blocks, 0,
                                sizeof *w->of_block.data, stream),
                "judging cells of rings", m->err);
    return oj_cuda_scan_total(m->device, stream, &w->scratch, w->of_block.data,
                              n_blocks, &part->sums, "judging cells of rings",
                              m->err);
}

/* Records and edges of leaves, and the list of what is split. */
static oj_status finish(struct oj_cuda_ring_making *m, struct view *v,
                        struct ring_level_work *w,
                        const struct oj_cuda_ring_part *part)
{
    cudaStream_t stream = m->device->stream;
    struct oj_cuda_ring_cells *cells = m->cells;
    const struct oj_cuda_ring_sums *s = &part->sums;
    struct ring_tree_arrays to;
    if (v->n_fragments == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_ring_extend(m, &cells->leaf, part->first_leaf, s->leaves));
    OJ_TRY(
        oj_cuda_ring_extend(m, &cells->record, part->first_record, s->records));
    OJ_TRY(oj_cuda_ring_extend(m, &cells->edge, part->first_edge, s->edges));
    OJ_TRY(oj_cuda_ring_extend(m, &cells->edge_segment, part->first_edge,
                               s->edges));
    OJ_TRY(
        oj_cuda_make(m->device, stream, s->split_fragments, &w->list, m->err));
    OJ_TRY(oj_cuda_make(m->device, stream, v->n_fragments, &w->said, m->err));
    to = made_by(cells, part);
    put_records<<<oj_blocks(v->n_fragments, BLOCK), BLOCK, 0, stream>>>(
        *v, w->kind.data, sums_of_nodes(w), to, w->list.data, w->said.data);
    OJ_CUDA_TRY_LAUNCH("making cells of rings", m->err);
    make_leaves<<<oj_blocks(v->n_nodes, BLOCK), BLOCK, 0, stream>>>(
        *v, w->kind.data, sums_of_nodes(w), w->said.data, to,
        cells->slot.data + part->first_slot);
    OJ_CUDA_TRY_LAUNCH("making cells of rings", m->err);
    v->list = w->list.data;
    v->n_listed = s->split_fragments;
    return OJ_OK;
}

/* Marks; the list of doubts and the scan's memory are the caller's to drop. */
static oj_status mark(struct oj_cuda_ring_making *m, const struct view *v,
                      int64_t n_edges, struct ring_level_work *w)
{
    cudaStream_t stream = m->device->stream;
    int64_t n = v->n_listed;
    struct oj_cuda_ring_marks *marks = &w->marks;
    struct marks to;
    if (n == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_make(m->device, stream, n, &marks->head, &marks->lost,
                        &marks->masks, m->err));
    OJ_TRY(oj_cuda_make(m->device, stream, n_edges, &marks->touched, m->err));
    OJ_TRY(oj_cuda_make(m->device, stream, n + 1, &w->doubt, m->err));
    OJ_CUDA_TRY(cudaMemsetAsync(w->doubt.data, 0, 4, stream), "marking rings",
                m->err);
    OJ_TRY(oj_cuda_clear(stream, &marks->lost, "marking rings", m->err));
    find_heads<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(*v, marks->head.data);
    OJ_CUDA_TRY_LAUNCH("marking rings", m->err);
    OJ_TRY(oj_cuda_with_scratch(
        m->device, stream, &w->scratch,
        [&](void *memory, size_t &bytes)
        {
            return cub::DeviceScan::InclusiveScan(
                memory, bytes, marks->head.data, marks->head.data, greater(), n,
                stream);
        },
        "marking rings", m->err));
    to.head = marks->head.data;
    to.masks = marks->masks.data;
    to.touched = marks->touched.data;
    to.lost = marks->lost.data;
    to.doubt = w->doubt.data + 1;
    to.n_doubts = w->doubt.data;
    mark_fragments<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(*v, to);
    OJ_CUDA_TRY_LAUNCH("marking rings", m->err);
    settle_fragments<<<(unsigned)m->device->n_processors, BLOCK, 0, stream>>>(
        *v, to);
    OJ_CUDA_TRY_LAUNCH("marking rings", m->err);
    return OJ_OK;
}

static oj_status split(struct oj_cuda_ring_making *m, const struct view *v,
                       struct ring_level_work *w,
                       const struct oj_cuda_ring_part *part,
                       struct oj_cuda_ring_level *next)
{
    cudaStream_t stream = m->device->stream;
    int64_t n = 16 * (int64_t)part->sums.split_fragments;
    int64_t n_groups = part->sums.split;
    uint32_t first_group = (part->first_slot + part->n_slots) / 16;
    unsigned long long all = 0;
    if (n_groups == 0)
        return OJ_OK;
    OJ_TRY(
        oj_cuda_make(m->device, stream, n + 1, &w->count, &w->place, m->err));
    OJ_CUDA_TRY(cudaMemsetAsync(w->count.data + n, 0, 1, stream),
                "splitting cells of rings", m->err);
    put_counts<<<oj_blocks(v->n_listed, BLOCK), BLOCK, 0, stream>>>(
        *v, sums_of_nodes(w), w->marks.head.data, w->marks.lost.data,
        w->marks.masks.data, w->count.data);
    OJ_CUDA_TRY_LAUNCH("splitting cells of rings", m->err);
    OJ_TRY(oj_cuda_with_scratch(
        m->device, stream, &w->scratch,
        [&](void *memory, size_t &bytes)
        {
            oj_cuda_computed<unsigned long long, struct counts> counts = {
                {w->count.data}, 0};
            return cub::DeviceScan::ExclusiveSum(memory, bytes, counts,
                                                 w->place.data, n + 1, stream);
        },
        "splitting cells of rings", m->err));
    OJ_TRY(oj_cuda_read(stream, w->place.data + n, (int)sizeof all, &all,
                        "splitting cells of rings", m->err));
    next->depth = v->depth + 1;
    next->n_fragments = (int64_t)(all >> 32);
    next->n_edges = (int64_t)(all & 0xffffffffu);
    OJ_TRY(oj_cuda_make(m->device, stream, n_groups, &next->parent,
                        &next->replication, m->err));
    OJ_TRY(oj_cuda_make(m->device, stream, 16 * n_groups + 1, &next->node_first,
                        m->err));
    OJ_TRY(oj_cuda_make(m->device, stream, next->n_fragments, &next->fragment,
                        m->err));
    OJ_TRY(oj_cuda_make(m->device, stream, next->n_edges, &next->edge, m->err));
    next->n_nodes = 16 * n_groups;
    put_nodes<<<oj_blocks(v->n_listed, BLOCK), BLOCK, 0, stream>>>(
        *v, sums_of_nodes(w), w->place.data, first_group,
        m->cells->slot.data + part->first_slot, *next);
    OJ_CUDA_TRY_LAUNCH("splitting cells of rings", m->err);
    put_fragments<<<oj_blocks(v->n_listed, BLOCK), BLOCK, 0, stream>>>(
        *v, sums_of_nodes(w), w->marks.head.data, w->marks.lost.data,
        w->marks.masks.data, w->marks.touched.data, w->place.data,
        next->fragment.data, next->edge.data);
    OJ_CUDA_TRY_LAUNCH("splitting cells of rings", m->err);
    return OJ_OK;
}

static void drop_working(struct oj_cuda_device *device,
                         struct ring_level_work *w)
{
    cudaStream_t stream = device->stream;
    oj_cuda_drop(device, stream, &w->kind, &w->of_node, &w->of_block, &w->list,
                 &w->said);
    oj_cuda_ring_marks_drop(device, &w->marks);
    oj_cuda_drop(device, stream, &w->doubt, &w->count, &w->place, &w->scratch);
}

oj_status oj_cuda_ring_level_down(struct oj_cuda_ring_making *m,
                                  const struct oj_cuda_ring_level *level,
                                  int is_large, int may_split,
                                  struct oj_cuda_ring_part *part,
                                  struct oj_cuda_ring_level *next)
{
    struct view v = view_of(m, level, is_large, may_split);
    struct ring_level_work w = {};
    oj_status status;
    status = judge(m, &v, &w, part);
    if (status == OJ_OK)
        status = finish(m, &v, &w, part);
    if (status == OJ_OK && part->sums.split > 0)
        status = mark(m, &v, level->n_edges, &w);
    if (status == OJ_OK)
        status = split(m, &v, &w, part, next);
    drop_working(m->device, &w);
    return status;
}

oj_status oj_cuda_ring_mark(struct oj_cuda_ring_making *m,
                            const struct oj_cuda_ring_level *level,
                            struct oj_cuda_ring_marks *out)
{
    struct view v = view_of(m, level, 0, 0);
    struct ring_level_work w = {};
    oj_status status;
    status = mark(m, &v, level->n_edges, &w);
    *out = w.marks;
    memset(&w.marks, 0, sizeof w.marks);
    drop_working(m->device, &w);
    return status;
}

void oj_cuda_ring_marks_drop(struct oj_cuda_device *device,
                             struct oj_cuda_ring_marks *marks)
{
    cudaStream_t stream = device->stream;
    oj_cuda_drop(device, stream, &marks->head, &marks->lost, &marks->masks,
                 &marks->touched);
}

void oj_cuda_ring_level_drop(struct oj_cuda_device *device,
                             struct oj_cuda_ring_level *level)
{
    cudaStream_t stream = device->stream;
    oj_cuda_drop(device, stream, &level->parent, &level->replication,
                 &level->node_first, &level->fragment, &level->edge,
                 &level->window);
    memset(level, 0, sizeof *level);
}
