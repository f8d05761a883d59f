/* Pairs of points with points within distances of their own, or with boxes: in
 * the envelope of a feature.  A thread walks the packed tree of the join side
 * for each point, and the threads of a warp for points that lie close together:
 * once to count, once to write.  Then the pairs of each row are put in the
 * order of ranks, where that is asked for, and get their distances. */
#include "../device/cuda_offsets.cuh"
#include "../device/cuda_scratch.cuh"
#include "../index/cuda_row_order.h"
#include "../index/cuda_value_sums.cuh"
#include "cuda_point_batch.cuh"
#include "cuda_point_side.h"

#define BLOCK 128

struct pairs_index : oj_cuda_index
{
    struct oj_cuda_point_side side;
    int is_near; /* pairs have distances */
};

/* --- which joins ---------------------------------------------------------- */

static int takes(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input)
{
    int only_points = oj_flat_is_points(join_side);
    if (relation->metric != OJ_METRIC_PLANAR ||
        join_side->max_distance != NULL ||
        (input != NULL && !oj_flat_is_points(input)))
        return 0;
    if (relation->op == OJ_OP_BBOX)
        return !only_points && !relation->exclude_same_geometry;
    return relation->op == OJ_OP_DWITHIN && only_points &&
           (input == NULL || input->max_distance != NULL);
}

/* --- the join side -------------------------------------------------------- */

static void drop(struct oj_cuda_index *index)
{
    oj_cuda_point_side_drop(index->device,
                            &((struct pairs_index *)index)->side);
}

static int64_t index_bytes(const struct oj_cuda_index *index)
{
    return oj_cuda_point_side_bytes(&((const struct pairs_index *)index)->side);
}

static oj_status build(struct oj_cuda_index *index, struct oj_error *err)
{
    struct pairs_index *self = (struct pairs_index *)index;
    self->is_near = self->relation.op == OJ_OP_DWITHIN;
    return oj_cuda_point_side_build(
        self->device, self->layer,
        self->is_near ? OJ_POINT_NEAR : OJ_POINT_IN_BOX,
        self->relation.min_distance, &self->side, err);
}

/* Of pairs, whose number is not known, so many as seems usual. */
static int64_t batch_bytes(const struct oj_cuda_index *wrapped, int64_t n)
{
    const int64_t pair_bytes = 2 * (int64_t)(sizeof(double) + sizeof(int32_t));
    (void)wrapped;
    return n * (OJ_CUDA_POINT_ORDER_BYTES + OJ_CUDA_POINT_COLUMN_BYTES +
                2 * (int64_t)sizeof(int64_t) + 16 * pair_bytes);
}

/* --- walking -------------------------------------------------------------- */

static struct point_batch batch_of(const struct pairs_index *self,
                                   const struct oj_cuda_points *points,
                                   const struct oj_cuda_array<int32_t> &order)
{
    struct point_batch batch = point_batch_of(self, points, order);
    if (!self->is_near)
    {
        batch.most = 0.0;
        batch.own_most = NULL;
    }
    return batch;
}

static __device__ int start_visit(struct oj_point_visit *visit,
                                  const struct oj_point_side &side,
                                  const struct point_batch &batch, int64_t i)
{
    return oj_point_visit_start(visit, &side, i, batch.x[i], batch.y[i],
                                most_of(batch, i));
}

/* count [n + 1], the last one 0. */
static __global__ void __launch_bounds__(BLOCK, 6)
    count_pairs(const __grid_constant__ struct oj_point_side side,
                const __grid_constant__ struct point_batch batch,
                int64_t *count)
{
    int64_t t = (int64_t)blockIdx.x * BLOCK + threadIdx.x, i, n = 0;
    struct oj_point_visit visit;
    if (t == batch.n)
        count[t] = 0;
    if (t >= batch.n)
        return;
    i = point_of(batch, t);
    if (start_visit(&visit, side, batch, i))
    {
        while (oj_point_visit_next(&visit, &side, &batch.rule) >= 0)
            n++;
    }
    count[i] = n;
}

static __global__ void __launch_bounds__(BLOCK, 6)
    put_ranks(const __grid_constant__ struct oj_point_side side,
              const __grid_constant__ struct point_batch batch,
              const int64_t *offset, int32_t *rank)
{
    int64_t t = (int64_t)blockIdx.x * BLOCK + threadIdx.x, i, at;
    struct oj_point_visit visit;
    int32_t r;
    if (t >= batch.n)
        return;
    i = point_of(batch, t);
    at = offset[i];
    if (at == offset[i + 1] || !start_visit(&visit, side, batch, i))
        return;
    while ((r = oj_point_visit_next(&visit, &side, &batch.rule)) >= 0)
        rank[at++] = r;
}

static __global__ void __launch_bounds__(BLOCK, 6)
    count_by_feature(const __grid_constant__ struct oj_point_side side,
                     const __grid_constant__ struct point_batch batch,
                     unsigned long long *count)
{
    int64_t t = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    struct oj_point_visit visit;
    int32_t r;
    if (t >= batch.n || !start_visit(&visit, side, batch, point_of(batch, t)))
        return;
    while ((r = oj_point_visit_next(&visit, &side, &batch.rule)) >= 0)
        atomicAdd(&count[ordinal_at(batch, r)], 1ull);
}

static __global__ void __launch_bounds__(BLOCK, 4)
    sum_by_feature(const __grid_constant__ struct oj_point_side side,
                   const __grid_constant__ struct point_batch batch,
                   const __grid_constant__ struct oj_cuda_tally tally)
{
    int64_t t = (int64_t)blockIdx.x * BLOCK + threadIdx.x, i;
    struct oj_point_visit visit;
    int32_t r;
    if (t >= batch.n)
        return;
    i = point_of(batch, t);
    if (!start_visit(&visit, side, batch, i))
        return;
    while ((r = oj_point_visit_next(&visit, &side, &batch.rule)) >= 0)
        add_pair(tally.request, i, words_of(tally, ordinal_at(batch, r)));
}

/* Ranks become ordinals, with the distance of each pair; place_of NULL: none is
 * asked for.  A thread for each pair; the rows of a block's pairs are few. */
static __global__ void __launch_bounds__(BLOCK)
    finish_pairs(const __grid_constant__ struct point_batch batch,
                 const struct oj_point_place *place_of, const int64_t *offset,
                 int64_t n_pairs, int32_t *row, double *measure)
{
    __shared__ int64_t edge[2];
    int64_t first = (int64_t)blockIdx.x * BLOCK, p = first + threadIdx.x;
    if (place_of != NULL)
    {
        if (threadIdx.x < 2)
        {
            int64_t at = threadIdx.x == 0 ? first : first + BLOCK - 1;
            at = at < n_pairs ? at : n_pairs - 1;
            edge[threadIdx.x] =
                oj_cuda_owner_of<int64_t>(offset, 0, batch.n, at);
        }
        __syncthreads();
    }
    if (p >= n_pairs)
        return;
    if (place_of != NULL)
    {
        int64_t i = oj_cuda_owner_of(offset, edge[0], edge[1] + 1, p);
        struct oj_point_place q = place_of[row[p]];
        measure[p] = oj_point_distance(batch.x[i], batch.y[i], q.x, q.y);
    }
    row[p] = ordinal_at(batch, row[p]);
}

/* --- lists ---------------------------------------------------------------- */

static oj_status list_pairs(const struct pairs_index *self,
                            struct point_lists *l)
{
    struct oj_cuda_device *device = l->device;
    int64_t n = l->points->n;
    OJ_TRY(oj_cuda_point_order(device, l->stream, &self->side.side.tree,
                               l->points, &l->order, l->err));
    l->batch = batch_of(self, l->points, l->order);
    OJ_TRY(oj_cuda_make(device, l->stream, n + 1, &l->out.offset, l->err));
    count_pairs<<<oj_blocks(n + 1, BLOCK), BLOCK, 0, l->stream>>>(
        self->side.side, l->batch, l->out.offset.data);
    OJ_CUDA_TRY_LAUNCH("counting pairs", l->err);
    OJ_TRY(oj_cuda_scan_total(device, l->stream, &l->scratch,
                              l->out.offset.data, n, &l->out.n_pairs,
                              "summing counts", l->err));
    OJ_TRY(oj_cuda_pairs_fit(n, l->out.n_pairs, l->max_pairs, l->err));
    if (l->out.n_pairs == 0)
        return OJ_OK;
    OJ_TRY(
        oj_cuda_make(device, l->stream, l->out.n_pairs, &l->out.row, l->err));
    put_ranks<<<oj_blocks(n, BLOCK), BLOCK, 0, l->stream>>>(
        self->side.side, l->batch, l->out.offset.data, l->out.row.data);
    OJ_CUDA_TRY_LAUNCH("joining", l->err);
    if (!self->relation.any_order)
        OJ_TRY(oj_cuda_order_rows(device, l->stream, n, NULL, &l->out, l->err));
    if (self->is_near)
        OJ_TRY(oj_cuda_make(device, l->stream, l->out.n_pairs, &l->out.measure,
                            l->err));
    if (self->is_near || l->batch.ordinal_of != NULL)
        finish_pairs<<<oj_blocks(l->out.n_pairs, BLOCK), BLOCK, 0, l->stream>>>(
            l->batch, self->side.place_of.data, l->out.offset.data,
            l->out.n_pairs, l->out.row.data, l->out.measure.data);
    OJ_CUDA_TRY_LAUNCH("measuring pairs", l->err);
    return OJ_OK;
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

static oj_status count(struct oj_cuda_index *index, cudaStream_t stream,
                       const struct oj_cuda_points *points,
                       unsigned long long *d_count, struct oj_error *err)
{
    const struct pairs_index *self = (const struct pairs_index *)index;
    return visit_by_tree(
        self, stream, points, &self->side.side.tree,
        [&](const struct oj_cuda_array<int32_t> &order)
        {
            count_by_feature<<<oj_blocks(points->n, BLOCK), BLOCK, 0, stream>>>(
                self->side.side, batch_of(self, points, order), d_count);
        },
        "counting pairs", err);
}

static oj_status sum(struct oj_cuda_index *index, cudaStream_t stream,
                     const struct oj_cuda_points *points,
                     const struct oj_cuda_tally *tally, struct oj_error *err)
{
    const struct pairs_index *self = (const struct pairs_index *)index;
    return visit_by_tree(
        self, stream, points, &self->side.side.tree,
        [&](const struct oj_cuda_array<int32_t> &order)
        {
            sum_by_feature<<<oj_blocks(points->n, BLOCK), BLOCK, 0, stream>>>(
                self->side.side, batch_of(self, points, order), *tally);
        },
        "counting pairs", err);
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
