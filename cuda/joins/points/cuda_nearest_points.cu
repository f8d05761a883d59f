/* The nearest point of each point, with conditions on pairs (such as: not the
 * feature itself) or without maximum distance. The points of a warp lie close
 * together, and its threads walk the packed tree of the join side together
 * (oj_nearest_point_walk.h). */
#include "cuda_point_pair_kernels.cuh"
#include "oj_nearest_point_walk.h"

enum
{
    BLOCK = 128,
    LANES = 32
};

struct near_points_index : oj_cuda_index
{
    struct oj_near_others others;
};

static int supports_nearest_points_join(const struct oj_relation *relation,
                                        const struct oj_flat *join_side,
                                        const struct oj_flat *input)
{
    (void)input;
    return oj_relation_is_nearest(relation) && relation->k == 1 &&
           relation->ties == OJ_TIES_FIRST && oj_flat_is_points(join_side) &&
           join_side->max_distance == NULL;
}

/* --- the join side -------------------------------------------------------- */

/* Builds the tree and its entries. A point feature is a segment with equal
 * ends. */
static oj_status make_point_tree_and_entries(struct oj_cuda_work *keep,
                                             const struct oj_cuda_layer *layer,
                                             struct oj_cuda_tree *tree,
                                             struct oj_near_others *others)
{
    struct oj_cuda_work work(keep);
    const struct oj_cuda_segment *segment = layer->segment.data;
    const int32_t *feature = layer->segment_feature.data, *order;
    struct oj_point_place *place;
    int32_t *rank;
    OJ_TRY(oj_cuda_tree_of_segments(keep, &work, layer, tree));
    OJ_TRY(keep->make(layer->n_segments, &place, &rank));
    order = tree->order;
    others->tree = tree->tree;
    others->place = place;
    others->rank = rank;
    return work.each(layer->n_segments,
                     [=] __device__(int64_t i)
                     {
                         place[i].x = segment[order[i]].ax;
                         place[i].y = segment[order[i]].ay;
                         rank[i] = feature[order[i]];
                     });
}

static oj_status build_nearest_points(struct oj_cuda_index *index,
                                      struct oj_cuda_work *work)
{
    struct oj_near_others *out = &((struct near_points_index *)index)->others;
    struct oj_cuda_tree tree = {};
    struct oj_near_others others;
    int32_t *least_rank;
    if (index->layer->n_segments > 0)
        OJ_TRY(make_point_tree_and_entries(work, index->layer, &tree, out));
    OJ_TRY(work->make(tree.n_nodes, &least_rank));
    out->least_rank = least_rank;
    others = *out;
    for (int level = 0; level < others.tree.n_levels; level++)
    {
        int32_t *least = least_rank + others.tree.level_first[level];
        OJ_TRY(work->each(others.tree.level_n[level],
                          [=] __device__(int64_t i) {
                              least[i] = oj_nearest_point_least_rank(
                                  &others, level, (uint32_t)i);
                          }));
    }
    return OJ_OK;
}

static int64_t batch_bytes(const struct oj_cuda_index *wrapped, int64_t n)
{
    (void)wrapped;
    return n * (OJ_CUDA_POINT_ORDER_BYTES + OJ_CUDA_POINT_COLUMN_BYTES);
}

/* --- walk through the tree ------------------------------------------------ */

/* Boxes of a node's children, in shared memory of a warp. */
struct point_node_boxes
{
    double x0[OJ_TREE_FANOUT], y0[OJ_TREE_FANOUT];
    double x1[OJ_TREE_FANOUT], y1[OJ_TREE_FANOUT];
};

struct point_warp_memory
{
    struct point_node_boxes boxes;
    int32_t least_rank[OJ_TREE_FANOUT];
    /* nodes to visit, like the stack in struct oj_tree_walk */
    uint32_t stack[OJ_TREE_STACK];
};

static_assert(sizeof(struct oj_device_tree_node) == LANES * sizeof(float) &&
                  sizeof(struct point_node_boxes) == LANES * sizeof(double),
              "a thread for each number of a node");

/* Pushes the children of node i of a level that at least one thread needs, so
 * that the first of them is popped first. Returns the new depth of the
 * stack. */
static __device__ __forceinline__ int push_wanted_children(
    const struct oj_near_others &others, struct point_warp_memory &group,
    const struct oj_near_other &o, int level, uint32_t i, int depth)
{
    const struct oj_device_tree *tree = &others.tree;
    const struct oj_device_tree_node *node =
        tree->node + tree->level_first[level] + i;
    uint32_t first = i * OJ_TREE_FANOUT, lane = threadIdx.x % LANES;
    uint32_t left = tree->level_n[level - 1] - first;
    int n = left < OJ_TREE_FANOUT ? (int)left : OJ_TREE_FANOUT;
    ((double *)&group.boxes)[lane] = (double)((const float *)node)[lane];
    if ((int)lane < n)
        group.least_rank[lane] =
            others.least_rank[tree->level_first[level - 1] + first + lane];
    __syncwarp();
    for (int c = n - 1; c >= 0; c--)
    {
        const struct point_node_boxes &b = group.boxes;
        int wants = oj_nearest_point_can_improve(&o, b.x0[c], b.y0[c], b.x1[c],
                                                 b.y1[c], group.least_rank[c]);
        if (__any_sync(0xffffffffu, wants))
        {
            if (lane == 0)
                group.stack[depth] = (uint32_t)(level - 1)
                                         << OJ_TREE_INDEX_BITS |
                                     (first + (uint32_t)c);
            depth++;
        }
    }
    __syncwarp();
    return depth;
}

/* Offers the entries of a leaf to all threads. */
static __device__ __forceinline__ void
visit_leaf(const struct oj_near_others &others, const struct oj_pair_rule &rule,
           struct oj_near_other *o, uint32_t i)
{
    int n = oj_nearest_point_n_entries(&others, i);
    int64_t first = (int64_t)i * OJ_TREE_FANOUT;
    for (int c = 0; c < n; c++)
    {
        struct oj_point_place q = others.place[first + c];
        oj_nearest_point_offer(o, &rule, q.x, q.y, others.rank[first + c]);
    }
}

static __global__ void __launch_bounds__(BLOCK)
    find_nearest(const __grid_constant__ struct oj_near_others others,
                 const __grid_constant__ struct point_batch batch, int32_t *row,
                 double *measure)
{
    __shared__ struct point_warp_memory groups[BLOCK / LANES];
    struct point_warp_memory &group = groups[threadIdx.x / LANES];
    int64_t t = (int64_t)blockIdx.x * BLOCK + threadIdx.x, i = 0;
    double x = NAN, y = NAN, most = batch.most;
    struct oj_near_other o;
    int depth = 0;
    if (t < batch.n)
    {
        i = point_of_thread(batch, t);
        x = batch.x[i];
        y = batch.y[i];
        most = max_distance_of_point(
            batch, i); /* a distance below 0, or NaN, matches nothing */
    }
    oj_nearest_point_start(&o, &others, i, x, y, batch.least, most);
    oj_nearest_point_search_nearest_leaf(&o, &others, &batch.rule);
    if (others.tree.n > 0)
    {
        if (threadIdx.x % LANES == 0)
            group.stack[0] = (uint32_t)(others.tree.n_levels - 1)
                             << OJ_TREE_INDEX_BITS;
        depth = 1;
    }
    __syncwarp();
    while (depth > 0)
    {
        uint32_t at = group.stack[--depth];
        int level = (int)(at >> OJ_TREE_INDEX_BITS);
        uint32_t node = at & ((1u << OJ_TREE_INDEX_BITS) - 1u);
        if (level > 0)
            depth = push_wanted_children(others, group, o, level, node, depth);
        else
            visit_leaf(others, batch.rule, &o, node);
        __syncwarp();
    }
    if (t < batch.n)
        write_single_answer(batch, i, o.rank, o.distance, row, measure);
}

static oj_status find_nearest_point_of_each(const struct oj_cuda_index *index,
                                            struct oj_cuda_work *work,
                                            const struct oj_cuda_points *points,
                                            int32_t *d_row, double *d_measure)
{
    const struct oj_near_others *others =
        &((const struct near_points_index *)index)->others;
    int32_t *order;
    if (points->n == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_tree_order_points(work, &others->tree, points, &order));
    return work->run<BLOCK>(points->n, find_nearest, *others,
                            make_point_join_batch(index, points, order), d_row,
                            d_measure);
}

const struct oj_cuda_family oj_cuda_near_points = {
    "nearest points, by a packed tree",
    supports_nearest_points_join,
    sizeof(struct near_points_index),
    build_nearest_points,
    1,
    NULL,
    batch_bytes,
    find_nearest_point_of_each,
};
