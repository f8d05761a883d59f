/* Joins of points by distance that no special family has, by a packed tree over
 * the join side's segments: a thread walks it for each point, and the threads
 * of a warp for points that lie close together.  Nearest features get k places
 * a point; what has no such limit is counted first, then found again into its
 * place and put in order. */
#include "../device/cuda_scratch.cuh"
#include "../tree/cuda_long_rows.h"
#include "../tree/cuda_tree.h"
#include "cuda_point_batch.cuh"

#define BLOCK 128

/* Places of a point are searched one by one. */
#define MOST_K 128

struct tree_index : oj_cuda_index
{
    struct oj_cuda_tree_side side;
    int32_t k; /* no more than there are features */
};

/* Equal points are told from others by the ends of segments: that needs join
 * features that are points all, or none. */
static int has_some_points(const struct oj_flat *join_side)
{
    return !oj_flat_is_points(join_side) &&
           (join_side->part_kinds & OJ_PART_POINT) != 0;
}

/* The least distance of a feature of several segments is known at the end only:
 * too late for the k nearest that are not too near.  Without a greatest
 * distance of the join's, input features have their own. */
static int takes(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input)
{
    int64_t k = relation->k < join_side->n_features ? relation->k
                                                    : join_side->n_features;
    if (relation->metric != OJ_METRIC_PLANAR ||
        join_side->max_distance != NULL ||
        (input != NULL && !oj_flat_is_points(input)) ||
        (relation->exclude_same_geometry && has_some_points(join_side)))
        return 0;
    if (relation->op == OJ_OP_DWITHIN)
        return input == NULL || input->max_distance != NULL ||
               relation->max_distance < INFINITY;
    return relation->op == OJ_OP_NEAREST && k <= MOST_K &&
           (relation->min_distance == 0.0 || oj_flat_is_points(join_side));
}

static void drop(struct oj_cuda_index *index)
{
    oj_cuda_tree_side_drop(index->device, &((struct tree_index *)index)->side);
}

static oj_status build(struct oj_cuda_index *index, struct oj_error *err)
{
    struct tree_index *self = (struct tree_index *)index;
    int64_t k = self->relation.k, n = self->layer->n_features;
    self->k = (int32_t)(k < n ? k : n);
    return oj_cuda_tree_side_build(self->device, self->layer,
                                   self->relation.distance_to == OJ_TO_INTERIOR,
                                   self->k > 1, &self->side, err);
}

const struct oj_tree_side *
oj_cuda_tree_joins_side(const struct oj_cuda_index *wrapped)
{
    return &((const struct tree_index *)wrapped)->side.side;
}

static int64_t index_bytes(const struct oj_cuda_index *wrapped)
{
    const struct tree_index *self = (const struct tree_index *)wrapped;
    return oj_cuda_tree_side_bytes(&self->side);
}

/* Places and pairs of each point; of pairs within a distance, whose number is
 * not known, so many as seems usual. */
static int64_t batch_bytes(const struct oj_cuda_index *wrapped, int64_t n)
{
    const struct tree_index *self = (const struct tree_index *)wrapped;
    const int64_t pair_bytes = (int64_t)(sizeof(double) + sizeof(int32_t));
    int64_t n_pairs = self->relation.op == OJ_OP_NEAREST ? 2 * self->k : 16;
    int64_t bytes = OJ_CUDA_POINT_ORDER_BYTES + OJ_CUDA_POINT_COLUMN_BYTES;
    if (!oj_relation_gives_lists(&self->relation))
        return n * bytes;
    return n *
           (bytes + 4 * (int64_t)sizeof(int64_t) + 2 * n_pairs * pair_bytes);
}

/* --- one each ------------------------------------------------------------- */

/* A distance that is negative or NaN is one at which nothing counts. */
static __device__ int asks(double x, double y, double most)
{
    return isfinite(x) && isfinite(y) && most >= 0.0;
}

static __global__ void __launch_bounds__(BLOCK)
    find_one(const __grid_constant__ struct oj_tree_side side,
             const __grid_constant__ struct point_batch batch, int32_t *row,
             double *measure)
{
    int64_t t = (int64_t)blockIdx.x * BLOCK + threadIdx.x, i;
    struct oj_tree_best best;
    double x, y, distance = 0.0;
    int32_t rank = -1;
    if (t >= batch.n)
        return;
    i = point_of(batch, t);
    x = batch.x[i];
    y = batch.y[i];
    best.k = 1;
    best.n = 0;
    best.stride = 1;
    best.least = batch.least;
    best.most = most_of(batch, i);
    best.distance = &distance;
    best.rank = &rank;
    if (asks(x, y, best.most))
        oj_tree_nearest(&side, &batch.rule, i, x, y, &best);
    answer_one(batch, i, best.n > 0 ? rank : -1, distance, row, measure);
}

static struct point_batch batch_of(const struct oj_cuda_index *index,
                                   const struct oj_cuda_points *points,
                                   const struct oj_cuda_array<int32_t> &order)
{
    struct point_batch batch = point_batch_of(index, points, order);
    batch.rule.excludes_same &= index->layer->only_points;
    return batch;
}

static oj_status join_one(struct oj_cuda_index *index, cudaStream_t stream,
                          const struct oj_cuda_points *points, int32_t *d_row,
                          double *d_measure, struct oj_error *err)
{
    const struct tree_index *self = (const struct tree_index *)index;
    if (oj_relation_gives_lists(&self->relation))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "this join gives lists, not one answer for each point");
    return visit_by_tree(
        self, stream, points, &self->side.segments.tree,
        [&](const struct oj_cuda_array<int32_t> &order)
        {
            find_one<<<oj_blocks(points->n, BLOCK), BLOCK, 0, stream>>>(
                self->side.side, batch_of(self, points, order), d_row,
                d_measure);
        },
        "joining", err);
}

/* --- lists ---------------------------------------------------------------- */

/* Counts [n + 1] become offsets; waits for their sum. */
static oj_status sum_counts(struct point_lists *l, int64_t *count,
                            int64_t *total)
{
    return oj_cuda_scan_total(l->device, l->stream, &l->scratch, count,
                              l->batch.n, total, "summing counts", l->err);
}

/* Makes out->offset of the counts in it, and room for the pairs. */
static oj_status make_pairs(struct point_lists *l)
{
    struct oj_cuda_device *device = l->device;
    OJ_TRY(sum_counts(l, l->out.offset.data, &l->out.n_pairs));
    OJ_TRY(oj_cuda_pairs_fit(l->batch.n, l->out.n_pairs, l->max_pairs, l->err));
    OJ_TRY(
        oj_cuda_make(device, l->stream, l->out.n_pairs, &l->out.row, l->err));
    return oj_cuda_make(device, l->stream, l->out.n_pairs, &l->out.measure,
                        l->err);
}

/* The nearest k: place j of thread t's point is at j * n + t.  count [n + 1] or
 * reach, the distance of the last one or -1, may be NULL. */
static __global__ void __launch_bounds__(BLOCK)
    find_nearest(const __grid_constant__ struct oj_tree_side side,
                 const __grid_constant__ struct point_batch batch, int32_t k,
                 double *distance, int32_t *rank, int64_t *count, double *reach)
{
    int64_t t = (int64_t)blockIdx.x * BLOCK + threadIdx.x, i;
    struct oj_tree_best best;
    double x, y;
    if (t == batch.n && count != NULL)
        count[t] = 0;
    if (t >= batch.n)
        return;
    i = point_of(batch, t);
    x = batch.x[i];
    y = batch.y[i];
    best.k = k;
    best.n = 0;
    best.stride = batch.n;
    best.least = batch.least;
    best.most = most_of(batch, i);
    best.distance = distance + t;
    best.rank = rank + t;
    if (asks(x, y, best.most) && k > 0)
        oj_tree_nearest(&side, &batch.rule, i, x, y, &best);
    if (count != NULL)
        count[i] = best.n;
    if (reach != NULL)
        reach[i] = best.n > 0 ? best.distance[(best.n - 1) * batch.n] : -1.0;
}

static __global__ void
put_nearest(const __grid_constant__ struct point_batch batch,
            const double *distance, const int32_t *rank, const int64_t *offset,
            int32_t *row, double *measure)
{
    int64_t t = (int64_t)blockIdx.x * BLOCK + threadIdx.x, i;
    int64_t first, n;
    if (t >= batch.n)
        return;
    i = point_of(batch, t);
    first = offset[i];
    n = offset[i + 1] - first;
    for (int64_t j = 0; j < n; j++)
    {
        row[first + j] = ordinal_at(batch, rank[j * batch.n + t]);
        measure[first + j] = distance[j * batch.n + t];
    }
}

/* With ties only the reach of each point is wanted of its places. */
static oj_status list_nearest(const struct tree_index *self,
                              struct point_lists *l)
{
    struct oj_cuda_device *device = l->device;
    int64_t n = l->batch.n, n_places = n * self->k;
    int all = self->relation.ties == OJ_TIES_ALL;
    OJ_TRY(oj_cuda_make(device, l->stream, n_places, &l->distance, &l->rank,
                        l->err));
    if (all)
        OJ_TRY(oj_cuda_make(device, l->stream, n, &l->reach, l->err));
    find_nearest<<<oj_blocks(n + 1, BLOCK), BLOCK, 0, l->stream>>>(
        self->side.side, l->batch, self->k, l->distance.data, l->rank.data,
        all ? NULL : l->out.offset.data, l->reach.data);
    OJ_CUDA_TRY_LAUNCH("joining", l->err);
    if (all)
    {
        oj_cuda_drop(device, l->stream, &l->distance, &l->rank);
        return OJ_OK;
    }
    OJ_TRY(make_pairs(l));
    put_nearest<<<oj_blocks(n + 1, BLOCK), BLOCK, 0, l->stream>>>(
        l->batch, l->distance.data, l->rank.data, l->out.offset.data,
        l->out.row.data, l->out.measure.data);
    OJ_CUDA_TRY_LAUNCH("joining", l->err);
    return OJ_OK;
}

/* Candidates of each point: counted, where distance is NULL, else put behind
 * first. */
static __global__ void __launch_bounds__(BLOCK, 6)
    find_within(const __grid_constant__ struct oj_tree_side side,
                const __grid_constant__ struct point_batch batch,
                const double *reach, int64_t *first, double *distance,
                int32_t *rank)
{
    int64_t t = (int64_t)blockIdx.x * BLOCK + threadIdx.x, i;
    struct oj_tree_found found;
    double x, y, most;
    if (t == batch.n && distance == NULL)
        first[t] = 0;
    if (t >= batch.n)
        return;
    i = point_of(batch, t);
    x = batch.x[i];
    y = batch.y[i];
    found = distance != NULL
                ? oj_tree_found_start(first[i + 1] - first[i],
                                      distance + first[i], rank + first[i])
                : oj_tree_found_start(0, NULL, NULL);
    most = reach != NULL ? reach[i] : most_of(batch, i);
    if (asks(x, y, most))
        oj_tree_within(&side, &batch.rule, i, x, y, most, &found);
    if (distance == NULL)
        first[i] = found.n;
}

/* Long rows come in the order of ranks, and may leave in it. */
static __global__ void settle(const __grid_constant__ struct point_batch batch,
                              enum oj_tree_order order, const int64_t *first,
                              double *distance, int32_t *rank, int64_t *count)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, n;
    if (i == batch.n)
        count[i] = 0;
    if (i >= batch.n)
        return;
    n = first[i + 1] - first[i];
    distance += first[i];
    rank += first[i];
    if (n <= OJ_CUDA_SHORT_ROW)
    {
        count[i] = oj_tree_settle(order, batch.least, n, distance, rank);
        return;
    }
    n = oj_tree_fold(batch.least, n, distance, rank);
    if (order == OJ_TREE_BY_DISTANCE && n <= OJ_CUDA_SHORT_ROW)
        oj_tree_sort(order, n, distance, rank);
    count[i] = n;
}

static __global__ void
put_settled(const __grid_constant__ struct point_batch batch,
            const int64_t *first, const double *distance, const int32_t *rank,
            const int64_t *offset, int32_t *row, double *measure)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int64_t from, to, n;
    if (i >= batch.n)
        return;
    from = first[i];
    to = offset[i];
    n = offset[i + 1] - to;
    for (int64_t j = 0; j < n; j++)
    {
        row[to + j] = ordinal_at(batch, rank[from + j]);
        measure[to + j] = distance[from + j];
    }
}

/* Each row's pairs first among its candidates, and their number. */
static oj_status settle_all(struct point_lists *l, int64_t n_candidates,
                            enum oj_tree_order order)
{
    struct oj_cuda_device *device = l->device;
    struct oj_cuda_candidates rows = {l->batch.n,       n_candidates,
                                      l->first.data,    NULL,
                                      l->distance.data, l->rank.data};
    OJ_TRY(oj_cuda_sort_long_rows(device, l->stream, OJ_TREE_BY_RANK, &rows,
                                  l->err));
    settle<<<oj_blocks(l->batch.n + 1, BLOCK), BLOCK, 0, l->stream>>>(
        l->batch, order, l->first.data, l->distance.data, l->rank.data,
        l->out.offset.data);
    OJ_CUDA_TRY_LAUNCH("ordering pairs", l->err);
    if (order == OJ_TREE_BY_RANK)
        return OJ_OK;
    rows.count = l->out.offset.data;
    return oj_cuda_sort_long_rows(device, l->stream, order, &rows, l->err);
}

static oj_status list_within(const struct tree_index *self,
                             struct point_lists *l)
{
    struct oj_cuda_device *device = l->device;
    enum oj_tree_order order = self->relation.op == OJ_OP_NEAREST
                                   ? OJ_TREE_BY_DISTANCE
                                   : OJ_TREE_BY_RANK;
    int64_t n = l->batch.n, n_candidates = 0;
    OJ_TRY(oj_cuda_make(device, l->stream, n + 1, &l->first, l->err));
    find_within<<<oj_blocks(n + 1, BLOCK), BLOCK, 0, l->stream>>>(
        self->side.side, l->batch, l->reach.data, l->first.data, NULL, NULL);
    OJ_CUDA_TRY_LAUNCH("counting pairs", l->err);
    OJ_TRY(sum_counts(l, l->first.data, &n_candidates));
    if (n_candidates == 0)
        return oj_cuda_clear(l->stream, &l->out.offset, "joining", l->err);
    OJ_TRY(oj_cuda_make(device, l->stream, n_candidates, &l->distance, &l->rank,
                        l->err));
    find_within<<<oj_blocks(n + 1, BLOCK), BLOCK, 0, l->stream>>>(
        self->side.side, l->batch, l->reach.data, l->first.data,
        l->distance.data, l->rank.data);
    OJ_CUDA_TRY_LAUNCH("joining", l->err);
    OJ_TRY(settle_all(l, n_candidates, order));
    OJ_TRY(make_pairs(l));
    put_settled<<<oj_blocks(n + 1, BLOCK), BLOCK, 0, l->stream>>>(
        l->batch, l->first.data, l->distance.data, l->rank.data,
        l->out.offset.data, l->out.row.data, l->out.measure.data);
    OJ_CUDA_TRY_LAUNCH("ordering pairs", l->err);
    return OJ_OK;
}

static oj_status list_pairs(const struct tree_index *self,
                            struct point_lists *l)
{
    const struct oj_relation *relation = &self->relation;
    OJ_TRY(oj_cuda_point_order(l->device, l->stream, &self->side.segments.tree,
                               l->points, &l->order, l->err));
    l->batch = batch_of(self, l->points, l->order);
    OJ_TRY(oj_cuda_make(l->device, l->stream, l->batch.n + 1, &l->out.offset,
                        l->err));
    if (relation->op == OJ_OP_NEAREST)
        OJ_TRY(list_nearest(self, l));
    if (relation->op == OJ_OP_NEAREST && relation->ties == OJ_TIES_FIRST)
        return OJ_OK;
    return list_within(self, l);
}

static oj_status join_lists(struct oj_cuda_index *index, cudaStream_t stream,
                            const struct oj_cuda_points *points,
                            int64_t max_pairs, struct oj_cuda_pairs *out,
                            struct oj_error *err)
{
    return make_lists(
        index, stream, points, max_pairs,
        [&](struct point_lists *l)
        { return list_pairs((struct tree_index *)index, l); },
        out, err);
}

const struct oj_cuda_family oj_cuda_tree_joins = {
    "distances of points, by a packed tree",
    takes,
    sizeof(struct tree_index),
    build,
    drop,
    index_bytes,
    batch_bytes,
    join_one,
    join_lists,
    NULL,
    1,
};
