/* Pairs of points with the features whose envelopes they are in.  A thread
 * walks the packed tree of the envelopes for each point, and the threads of a
 * warp for points that lie close together: once to count, once to write.  Then
 * the pairs of each row are put in the order of ranks, where that is asked
 * for. */
#include "cuda_point_batch.cuh"

#define BLOCK POINT_BLOCK

/* Threads that find the box of a feature together. */
#define LANES 32

/* What kernels read of the join side: an entry is a feature. */
struct envelopes
{
    struct oj_device_tree tree;
    const struct oj_tree_box *box; /* [tree.n] */
    const int32_t *rank;           /* [tree.n] */
};

struct pairs_index : oj_cuda_index
{
    struct envelopes side;
    struct oj_cuda_tree tree; /* its order is the ranks of the entries */
    struct oj_cuda_array<struct oj_tree_box> box;
};

static int takes(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input)
{
    return relation->op == OJ_OP_BBOX && relation->metric == OJ_METRIC_PLANAR &&
           !oj_flat_is_points(join_side) && !relation->exclude_same_geometry &&
           join_side->max_distance == NULL &&
           (input == NULL || oj_flat_is_points(input));
}

/* --- the join side -------------------------------------------------------- */

static void drop(struct oj_cuda_index *index)
{
    struct pairs_index *self = (struct pairs_index *)index;
    oj_cuda_tree_drop(self->device, &self->tree);
    oj_cuda_drop(self->device, self->device->stream, &self->box);
}

static int64_t index_bytes(const struct oj_cuda_index *index)
{
    const struct pairs_index *self = (const struct pairs_index *)index;
    return oj_cuda_bytes(&self->tree.node, &self->tree.order, &self->box);
}

static __device__ double least_of_lanes(double v)
{
    for (int step = LANES / 2; step > 0; step /= 2)
    {
        double other = __shfl_xor_sync(0xffffffffu, v, step);
        v = other < v ? other : v;
    }
    return v;
}

/* A warp for each feature; its segments are one run. */
static __global__ void
make_feature_boxes(const __grid_constant__ struct oj_cuda_layer layer,
                   struct oj_tree_box *box)
{
    const int64_t *part = layer.part_offset.data,
                  *ring = layer.ring_offset.data;
    int64_t f = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / LANES;
    int lane = (int)(threadIdx.x % LANES);
    double x0 = INFINITY, y0 = INFINITY, x1 = INFINITY, y1 = INFINITY;
    int64_t at, end;
    if (f >= layer.n_features)
        return;
    at = layer.segment_offset.data[ring[part[f]]];
    end = layer.segment_offset.data[ring[part[f + 1]]];
    for (at += lane; at < end; at += LANES)
    {
        const struct oj_cuda_segment *s = &layer.segment.data[at];
        x0 = fmin(x0, fmin(s->ax, s->bx));
        y0 = fmin(y0, fmin(s->ay, s->by));
        x1 = fmin(x1, fmin(-s->ax, -s->bx));
        y1 = fmin(y1, fmin(-s->ay, -s->by));
    }
    x0 = least_of_lanes(x0);
    y0 = least_of_lanes(y0);
    x1 = least_of_lanes(x1);
    y1 = least_of_lanes(y1);
    if (lane == 0)
    {
        box[f].x0 = x0;
        box[f].y0 = y0;
        box[f].x1 = -x1;
        box[f].y1 = -y1;
    }
}

static oj_status build(struct oj_cuda_index *index, struct oj_error *err)
{
    struct pairs_index *self = (struct pairs_index *)index;
    const struct oj_cuda_layer *layer = self->layer;
    struct oj_cuda_work work(self->device, self->device->stream, err);
    struct oj_tree_box extent = {layer->x0, layer->y0, layer->x1, layer->y1};
    struct oj_cuda_array<struct oj_tree_box> boxes =
    {
        NULL, layer->n_features
    };
    const struct oj_tree_box *from;
    const int32_t *order;
    struct oj_tree_box *box;
    if (layer->n_segments == 0)
        return OJ_OK;
    OJ_TRY(work.make(boxes.n, &boxes.data));
    make_feature_boxes<<<oj_blocks(boxes.n * LANES, BLOCK), BLOCK, 0,
                         work.stream>>>(*layer, boxes.data);
    OJ_CUDA_TRY_LAUNCH("measuring features", err);
    OJ_TRY(oj_cuda_tree_build(self->device, &boxes, &extent, &self->tree, err));
    OJ_TRY(oj_cuda_make(self->device, work.stream, boxes.n, &self->box, err));
    from = boxes.data;
    self->side.rank = order = self->tree.order.data;
    self->side.box = box = self->box.data;
    self->side.tree = self->tree.tree;
    return work.each(
        boxes.n, [=] __device__(int64_t i) { box[i] = from[order[i]]; },
        "gathering boxes");
}

/* Of pairs, whose number is not known, so many as seems usual. */
static int64_t batch_bytes(const struct oj_cuda_index *index, int64_t n)
{
    const int64_t pair_bytes = 2 * (int64_t)(sizeof(double) + sizeof(int32_t));
    (void)index;
    return n * (OJ_CUDA_POINT_ORDER_BYTES + OJ_CUDA_POINT_COLUMN_BYTES +
                2 * (int64_t)sizeof(int64_t) + 16 * pair_bytes);
}

/* --- walking -------------------------------------------------------------- */

/* Tells found(rank, entry) of each envelope around point i. */
template <typename Found, typename GoesOn>
static __device__ __forceinline__ void
look_around(const struct envelopes &side, const struct point_batch &batch,
            int64_t i, Found found, GoesOn)
{
    double x = batch.x[i], y = batch.y[i];
    struct oj_tree_walk walk;
    int64_t entry;
    if (!isfinite(x) || !isfinite(y))
        return;
    oj_tree_walk_start(&walk, &side.tree, x, y, 0.0);
    while ((entry = oj_tree_walk_next(&walk, &side.tree)) >= 0)
    {
        const struct oj_tree_box *box = &side.box[entry];
        int32_t rank = side.rank[entry];
        if (box->x0 <= x && x <= box->x1 && box->y0 <= y && y <= box->y1 &&
            oj_pair_rule_passes(&batch.rule, i, rank, 0))
            found(rank, entry);
    }
}

/* Such pairs have no distance. */
static __device__ __forceinline__ double distance_of(const struct envelopes &,
                                                     double, double, int64_t)
{
    return NAN;
}

static oj_status list_pairs(const struct pairs_index *self,
                            struct point_lists *l)
{
    OJ_TRY(oj_cuda_point_order(l->device, l->stream, &self->side.tree,
                               l->points, &l->order, l->err));
    l->batch = point_batch_of(self, l->points, l->order);
    return list_found<6>(l, self->side, INT64_MAX, 0, self->relation.any_order);
}

static oj_status join_lists(struct oj_cuda_index *index, cudaStream_t stream,
                            const struct oj_cuda_points *points,
                            int64_t max_pairs, struct oj_cuda_pairs *out,
                            struct oj_error *err)
{
    return make_lists(
        index, stream, points, max_pairs,
        [&](struct point_lists *l)
        { return list_pairs((struct pairs_index *)index, l); },
        out, err);
}

/* --- counts and sums ------------------------------------------------------ */

template <typename Add>
static oj_status add_all(const struct oj_cuda_index *index, cudaStream_t stream,
                         const struct oj_cuda_points *points, Add add,
                         struct oj_error *err)
{
    const struct envelopes *side = &((const struct pairs_index *)index)->side;
    return visit_in_tree_order(
        index, stream, points, &side->tree,
        [&](const struct oj_cuda_array<int32_t> &order)
        {
            add_pairs<6, struct envelopes, Add>
                <<<oj_blocks(points->n, BLOCK), BLOCK, 0, stream>>>(
                    *side, point_batch_of(index, points, order), add);
        },
        "counting pairs", err);
}

static oj_status count(struct oj_cuda_index *index, cudaStream_t stream,
                       const struct oj_cuda_points *points,
                       unsigned long long *d_count, struct oj_error *err)
{
    return add_all(index, stream, points, add_one{d_count}, err);
}

static oj_status sum(struct oj_cuda_index *index, cudaStream_t stream,
                     const struct oj_cuda_points *points,
                     const struct oj_cuda_tally *tally, struct oj_error *err)
{
    return add_all(index, stream, points, add_values{*tally}, err);
}

const struct oj_cuda_family oj_cuda_point_pairs = {
    "pairs of points, by a packed tree",
    takes,
    sizeof(struct pairs_index),
    build,
    drop,
    index_bytes,
    batch_bytes,
    NULL,
    join_lists,
    count,
    1,
    sum,
};
