#include "../device/cuda_cub.cuh"
#include "cuda_meet.h"

#include <string.h>

/* Level by level: a list of (row, node), each of which becomes the children
 * that the row's box meets.  Lists keep the order of rows, so pairs come out
 * row by row; every entry is the same small piece of work, however large the
 * boxes are. */
#define BLOCK 256

struct level
{
    int64_t n;           /* entries */
    const int32_t *row;  /* [n] */
    const int32_t *node; /* [n] */
    int number;          /* 0: their children are features */
};

struct box_question
{
    struct oj_device_tree tree;
    const int32_t *order; /* of the tree's entries */
    const struct oj_meet_feature *features, *rows;
    enum oj_box_test test;
};

static __global__ void begin(int64_t n, int64_t first, int32_t *row,
                             int32_t *node)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    row[i] = (int32_t)(first + i);
    node[i] = 0;
}

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
    visit(const __grid_constant__ struct box_question q,
          const __grid_constant__ struct level level, uint8_t *mask,
          int64_t *count)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    const struct oj_meet_feature *row;
    struct oj_meet_image image;
    struct oj_device_tree_node node;
    int64_t first, below;
    uint32_t hits;
    if (i == level.n)
        count[i] = 0;
    if (i >= level.n)
        return;
    row = &q.rows[level.row[i]];
    image = oj_meet_image_of(&row->box, q.tree.x0, q.tree.y0);
    node = load_node(q.tree.node + q.tree.level_first[level.number] +
                     level.node[i]);
    first = (int64_t)level.node[i] * OJ_TREE_FANOUT;
    below =
        level.number > 0 ? (int64_t)q.tree.level_n[level.number - 1] : q.tree.n;
    hits = oj_meet_children(
        &node,
        below - first < OJ_TREE_FANOUT ? (int)(below - first) : OJ_TREE_FANOUT,
        &image);
    for (uint32_t left = level.number == 0 ? hits : 0; left != 0;
         left &= left - 1)
    {
        int c = __ffs((int)left) - 1;
        if (!oj_meet_passes(q.test, row, &q.features[q.order[first + c]]))
            hits &= ~(1u << c);
    }
    mask[i] = (uint8_t)hits;
    count[i] = __popc(hits);
}

static __global__ void descend(const __grid_constant__ struct level level,
                               const uint8_t *mask, const int64_t *offset,
                               const int32_t *order, int32_t *row,
                               int32_t *child)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, at;
    if (i >= level.n)
        return;
    at = offset[i];
    for (uint32_t left = mask[i]; left != 0; left &= left - 1, at++)
    {
        int32_t c = level.node[i] * OJ_TREE_FANOUT + __ffs((int)left) - 1;
        row[at] = level.row[i];
        child[at] = level.number == 0 ? order[c] : c;
    }
}

struct box_pairs_walk : oj_cuda_job
{
    struct box_question question;
    int64_t most;
    struct oj_cuda_box_pairs now, next;
    struct oj_cuda_array<uint8_t> mask;
    struct oj_cuda_array<int64_t> offset;
};

static oj_status step(struct box_pairs_walk *w, int number)
{
    struct level level = {w->now.row.n, w->now.row.data, w->now.feature.data,
                          number};
    int64_t total = 0;
    OJ_TRY(w->make(level.n, &w->mask));
    OJ_TRY(w->make(level.n + 1, &w->offset));
    OJ_TRY(w->run(level.n + 1, "finding candidates", visit, w->question, level,
                  w->mask.data, w->offset.data));
    OJ_TRY(
        w->scan_total(w->offset.data, level.n, &total, "finding candidates"));
    if (total > w->most)
        return oj_fail(w->err, OJ_ERR_NOMEM,
                       "more candidates than are taken at a time");
    OJ_TRY(w->make(total, &w->next.row, &w->next.feature));
    if (total > 0)
        OJ_TRY(w->run(level.n, "finding candidates", descend, level,
                      w->mask.data, w->offset.data, w->question.order,
                      w->next.row.data, w->next.feature.data));
    w->drop(&w->mask, &w->offset, &w->now.row, &w->now.feature);
    w->now = w->next;
    memset(&w->next, 0, sizeof w->next);
    return OJ_OK;
}

static oj_status find(struct box_pairs_walk *w, int64_t first, int64_t n)
{
    if (n == 0 || w->question.tree.n == 0)
        return OJ_OK;
    OJ_TRY(w->make(n, &w->now.row, &w->now.feature));
    OJ_TRY(w->run(n, "finding candidates", begin, n, first, w->now.row.data,
                  w->now.feature.data));
    for (int level = w->question.tree.n_levels - 1;
         level >= 0 && w->now.row.n > 0; level--)
        OJ_TRY(step(w, level));
    return OJ_OK;
}

oj_status
oj_cuda_box_pairs_find(struct oj_cuda_device *device, cudaStream_t stream,
                       const struct oj_cuda_tree *tree,
                       const struct oj_meet_feature *features,
                       const struct oj_meet_feature *rows, int64_t first,
                       int64_t n, enum oj_box_test test, int64_t most,
                       struct oj_cuda_box_pairs *out, struct oj_error *err)
{
    struct box_pairs_walk w = {};
    oj_status status;
    w.device = device;
    w.stream = stream;
    w.question.tree = tree->tree;
    w.question.order = tree->order;
    w.question.features = features;
    w.question.rows = rows;
    w.question.test = test;
    w.most = most;
    w.err = err;
    status = find(&w, first, n);
    w.drop(&w.mask, &w.offset, &w.scratch, &w.next.row, &w.next.feature);
    if (status != OJ_OK)
    {
        oj_cuda_box_pairs_drop(device, stream, &w.now);
        return status;
    }
    *out = w.now;
    return OJ_OK;
}

void oj_cuda_box_pairs_drop(struct oj_cuda_device *device, cudaStream_t stream,
                            struct oj_cuda_box_pairs *pairs)
{
    oj_cuda_drop(device, stream, &pairs->row, &pairs->feature);
}
