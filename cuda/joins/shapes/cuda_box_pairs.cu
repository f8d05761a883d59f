#include "../../foundations/device/cuda_stream_work.cuh"
#include "cuda_intersects.h"

/* Finds pairs of intersecting boxes: descends the packed tree level by level
 * with a list of pairs (row, node). Each pair is replaced by pairs of the row
 * with those children of the node whose boxes intersect the row's box. The
 * lists stay sorted by row, and so do the resulting pairs. All list entries
 * take about equal time, however large the boxes are. */
#define BLOCK 256

struct level
{
    /* number of the level; 0: the children of its nodes are features. */
    int number;
    struct oj_cuda_box_pairs entry; /* the pairs of rows and nodes */
};

struct box_question
{
    struct oj_device_tree tree;
    const int32_t *order; /* [entries of the tree] number of each entry's box */
    const struct oj_meet_feature *features, *rows;
    enum oj_box_test test;
};

static __device__ struct oj_device_tree_node
load_node(const struct oj_device_tree_node *from)
{
    struct oj_device_tree_node node;
    const float4 *f = (const float4 *)(const void *)from;
    float4 *t = (float4 *)(void *)&node;
    for (int i = 0; i < (int)(sizeof node / sizeof *f); i++)
        t[i] = f[i];
    return node;
}

static __global__ void __launch_bounds__(BLOCK)
    test_child_boxes(const __grid_constant__ struct box_question q,
                     const __grid_constant__ struct level level, uint8_t *mask,
                     int64_t *count)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    const struct oj_meet_feature *row;
    struct oj_meet_image image;
    struct oj_device_tree_node node;
    int64_t first, below;
    uint32_t hits;
    if (i == level.entry.n)
        count[i] = 0;
    if (i >= level.entry.n)
        return;
    row = &q.rows[level.entry.row[i]];
    image = oj_meet_image_of_box(&row->box, q.tree.x0, q.tree.y0);
    node = load_node(q.tree.node + q.tree.level_first[level.number] +
                     level.entry.feature[i]);
    first = (int64_t)level.entry.feature[i] * OJ_TREE_FANOUT;
    below =
        level.number > 0 ? (int64_t)q.tree.level_n[level.number - 1] : q.tree.n;
    hits = oj_meet_child_mask(
        &node,
        below - first < OJ_TREE_FANOUT ? (int)(below - first) : OJ_TREE_FANOUT,
        &image);
    for (uint32_t left = level.number == 0 ? hits : 0; left != 0;
         left &= left - 1)
    {
        int c = __ffs((int)left) - 1;
        if (!oj_meet_boxes_pass(q.test, row, &q.features[q.order[first + c]]))
            hits &= ~(1u << c);
    }
    mask[i] = (uint8_t)hits;
    count[i] = __popc(hits);
}

static __global__ void
write_child_pairs_of_level(const __grid_constant__ struct level level,
                           const uint8_t *mask, const int64_t *offset,
                           const int32_t *order, int32_t *row, int32_t *child)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, at;
    if (i >= level.entry.n)
        return;
    at = offset[i];
    for (uint32_t left = mask[i]; left != 0; left &= left - 1, at++)
    {
        int32_t c =
            level.entry.feature[i] * OJ_TREE_FANOUT + __ffs((int)left) - 1;
        row[at] = level.entry.row[i];
        child[at] = level.number == 0 ? order[c] : c;
    }
}

/* Replaces the pairs of a level by those of the level below, or by pairs of
 * features. */
static oj_status descend_to_next_tree_level(struct oj_cuda_work *work,
                                            const struct box_question &q,
                                            int number, int64_t most,
                                            struct oj_cuda_box_pairs *entries)
{
    struct oj_cuda_work own(work);
    const struct level level = {number, *entries};
    struct oj_cuda_box_pairs next = {};
    int64_t n = entries->n, *offset;
    uint8_t *mask;
    OJ_TRY(own.make(n, &mask));
    OJ_TRY(own.make(n + 1, &offset));
    OJ_TRY(own.run<BLOCK>(n + 1, test_child_boxes, q, level, mask, offset));
    OJ_TRY(own.scan_and_read_total(offset, n, &next.n));
    if (next.n > most)
        return oj_fail(work->err, OJ_ERR_NOMEM,
                       "the GPU cannot hold all candidates of the rows at a "
                       "time; use smaller batches");
    OJ_TRY(work->make(next.n, &next.row, &next.feature));
    if (next.n > 0)
        OJ_TRY(own.run<BLOCK>(n, write_child_pairs_of_level, level, mask,
                              offset, q.order, next.row, next.feature));
    work->drop(entries->row);
    work->drop(entries->feature);
    *entries = next;
    return OJ_OK;
}

oj_status oj_cuda_box_pairs_find(struct oj_cuda_work *work,
                                 const struct oj_cuda_tree *tree,
                                 const struct oj_meet_feature *features,
                                 const struct oj_meet_feature *rows, int64_t n,
                                 enum oj_box_test test, int64_t most,
                                 struct oj_cuda_box_pairs *out)
{
    const struct box_question q = {tree->tree, tree->order, features, rows,
                                   test};
    struct oj_cuda_box_pairs entries = {n, NULL, NULL};
    int level = q.tree.n_levels - 1;
    *out = {};
    if (n == 0 || q.tree.n == 0)
        return OJ_OK;
    OJ_TRY(work->make(n, &entries.row, &entries.feature));
    const struct oj_cuda_box_pairs all = entries;
    OJ_TRY(work->each(n,
                      [=] __device__(int64_t i)
                      {
                          all.row[i] = (int32_t)i;
                          all.feature[i] = 0;
                      }));
    for (; level >= 0 && entries.n > 0; level--)
        OJ_TRY(descend_to_next_tree_level(work, q, level, most, &entries));
    *out = entries;
    return OJ_OK;
}
