/* Pairs of points with points within distances of their own, or with boxes: in
 * the envelope of a feature.  A thread walks the packed tree of the join side
 * for each point, and the threads of a warp for points that lie close together:
 * once to count, once to write.  Then the pairs of each row are put in the
 * order of ranks, where that is asked for, and get their distances. */
#include "../device/cuda_scratch.cuh"
#include "../index/cuda_family.h"
#include "../index/cuda_row_order.h"
#include "../index/cuda_value_sums.cuh"
#include "../tree/cuda_point_order.h"
#include "cuda_point_side.h"

#include "../../flatten/base/oj_array.h"

#define BLOCK 128

/* What struct oj_cuda_index is for this family. */
struct pairs_index
{
    struct oj_cuda_device *device;
    const struct oj_cuda_layer *layer;
    struct oj_relation relation;
    struct oj_cuda_point_side side;
    int is_near; /* pairs have distances */
};

static struct pairs_index *unwrap(struct oj_cuda_index *index)
{
    return (struct pairs_index *)index;
}

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

static enum oj_point_test test_of(const struct oj_relation *relation)
{
    return relation->op == OJ_OP_DWITHIN ? OJ_POINT_NEAR : OJ_POINT_IN_BOX;
}

/* --- the join side -------------------------------------------------------- */

static void free_index(struct oj_cuda_index *wrapped)
{
    struct pairs_index *self = unwrap(wrapped);
    if (self == NULL)
        return;
    oj_cuda_point_side_drop(self->device, &self->side);
    oj_free(self);
}

static int64_t index_bytes(const struct oj_cuda_index *wrapped)
{
    return oj_cuda_point_side_bytes(
        &((const struct pairs_index *)wrapped)->side);
}

static oj_status make_index(struct oj_cuda_device *device,
                            const struct oj_cuda_layer *layer,
                            const struct oj_relation *relation,
                            struct oj_cuda_index **out, struct oj_error *err)
{
    struct pairs_index *self = (struct pairs_index *)oj_calloc(1, sizeof *self);
    oj_status status;
    if (self == NULL)
        return oj_fail_nomem(err, 1, sizeof *self);
    self->device = device;
    self->layer = layer;
    self->relation = *relation;
    self->is_near = relation->op == OJ_OP_DWITHIN;
    status = oj_cuda_point_side_build(device, layer, test_of(relation),
                                      relation->min_distance, &self->side, err);
    if (status != OJ_OK)
    {
        oj_free(self);
        return status;
    }
    *out = (struct oj_cuda_index *)self;
    return OJ_OK;
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

struct pairs_batch
{
    int64_t n;
    const double *x, *y;
    const int32_t *order; /* [n] point of each thread, or NULL: its own */
    double reach;
    const double *own_reach;   /* [n] in place of reach, or NULL */
    const int32_t *ordinal_of; /* NULL: ranks are ordinals */
    struct oj_pair_rule rule;
};

static struct pairs_batch batch_of(const struct pairs_index *self,
                                   const struct oj_cuda_points *points,
                                   const struct oj_cuda_array<int32_t> *order)
{
    struct pairs_batch batch;
    batch.n = points->n;
    batch.x = points->x;
    batch.y = points->y;
    batch.order = order->data;
    batch.reach = self->is_near ? self->relation.max_distance : 0.0;
    batch.own_reach = self->is_near ? points->max_distance : NULL;
    batch.ordinal_of = self->layer->ordinal_of.data;
    batch.rule = oj_cuda_pair_rule(&self->relation, self->layer, points);
    return batch;
}

static __device__ int64_t point_of(const struct pairs_batch &batch,
                                   int64_t thread)
{
    return batch.order != NULL ? batch.order[thread] : thread;
}

static __device__ int32_t ordinal_at(const struct pairs_batch &batch,
                                     int32_t rank)
{
    return batch.ordinal_of != NULL ? batch.ordinal_of[rank] : rank;
}

static __device__ int start_visit(struct oj_point_visit *visit,
                                  const struct oj_point_side &side,
                                  const struct pairs_batch &batch, int64_t i)
{
    double reach = batch.own_reach != NULL ? batch.own_reach[i] : batch.reach;
    return oj_point_visit_start(visit, &side, i, batch.x[i], batch.y[i], reach);
}

/* count [n + 1], the last one 0. */
static __global__ void __launch_bounds__(BLOCK, 6)
    count_pairs(const __grid_constant__ struct oj_point_side side,
                const __grid_constant__ struct pairs_batch batch,
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
              const __grid_constant__ struct pairs_batch batch,
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
                     const __grid_constant__ struct pairs_batch batch,
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
                   const __grid_constant__ struct pairs_batch batch,
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

/* The last row of first .. end - 1 that begins at or before a pair. */
static __device__ int64_t row_of(const int64_t *offset, int64_t first,
                                 int64_t end, int64_t pair)
{
    while (end - first > 1)
    {
        int64_t middle = first + (end - first) / 2;
        if (offset[middle] <= pair)
            first = middle;
        else
            end = middle;
    }
    return first;
}

/* Ranks become ordinals, with the distance of each pair; place_of NULL: none is
 * asked for.  A thread for each pair; the rows of a block's pairs are few. */
static __global__ void __launch_bounds__(BLOCK)
    finish_pairs(const __grid_constant__ struct pairs_batch batch,
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
            edge[threadIdx.x] = row_of(offset, 0, batch.n, at);
        }
        __syncthreads();
    }
    if (p >= n_pairs)
        return;
    if (place_of != NULL)
    {
        int64_t i = row_of(offset, edge[0], edge[1] + 1, p);
        struct oj_point_place q = place_of[row[p]];
        measure[p] = oj_point_distance(batch.x[i], batch.y[i], q.x, q.y);
    }
    row[p] = ordinal_at(batch, row[p]);
}

/* --- lists ---------------------------------------------------------------- */

/* Memory of a batch. */
struct pairs_batch_memory
{
    struct pairs_index *self;
    cudaStream_t stream;
    struct pairs_batch batch;
    struct oj_error *err;
    struct oj_cuda_array<int32_t> order;
    struct oj_cuda_array<uint8_t> scratch;
    struct oj_cuda_pairs out;
};

static oj_status list_pairs(struct pairs_batch_memory *l,
                            const struct oj_cuda_points *points,
                            int64_t max_pairs)
{
    struct pairs_index *self = l->self;
    struct oj_cuda_device *device = self->device;
    int64_t n = points->n;
    OJ_TRY(oj_cuda_point_order(device, l->stream, &self->side.side.tree, points,
                               &l->order, l->err));
    l->batch = batch_of(self, points, &l->order);
    OJ_TRY(oj_cuda_make(device, l->stream, n + 1, &l->out.offset, l->err));
    count_pairs<<<oj_blocks(n + 1, BLOCK), BLOCK, 0, l->stream>>>(
        self->side.side, l->batch, l->out.offset.data);
    OJ_CUDA_TRY_LAUNCH("counting pairs", l->err);
    OJ_TRY(oj_cuda_scan_total(device, l->stream, &l->scratch,
                              l->out.offset.data, n, &l->out.n_pairs,
                              "summing counts", l->err));
    OJ_TRY(oj_cuda_pairs_fit(n, l->out.n_pairs, max_pairs, l->err));
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

static oj_status join_lists(struct oj_cuda_index *wrapped, cudaStream_t stream,
                            const struct oj_cuda_points *points,
                            int64_t max_pairs, struct oj_cuda_pairs *out,
                            struct oj_error *err)
{
    struct oj_cuda_device *device = unwrap(wrapped)->device;
    struct pairs_batch_memory l = {};
    oj_status status;
    l.self = unwrap(wrapped);
    l.stream = stream;
    l.err = err;
    status = list_pairs(&l, points, max_pairs);
    oj_cuda_drop(device, stream, &l.order, &l.scratch);
    if (status != OJ_OK)
        oj_cuda_pairs_drop(device, stream, &l.out);
    else
        *out = l.out;
    return status;
}

/* --- counts and sums ------------------------------------------------------ */

/* tally NULL: only counts. */
static oj_status visit_all(struct pairs_index *self, cudaStream_t stream,
                           const struct oj_cuda_points *points,
                           unsigned long long *d_count,
                           const struct oj_cuda_tally *tally,
                           struct oj_error *err)
{
    oj_cuda_array<int32_t> order = {NULL, 0};
    cudaError_t error;
    if (points->n == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_point_order(self->device, stream, &self->side.side.tree,
                               points, &order, err));
    if (tally != NULL)
        sum_by_feature<<<oj_blocks(points->n, BLOCK), BLOCK, 0, stream>>>(
            self->side.side, batch_of(self, points, &order), *tally);
    else
        count_by_feature<<<oj_blocks(points->n, BLOCK), BLOCK, 0, stream>>>(
            self->side.side, batch_of(self, points, &order), d_count);
    error = cudaGetLastError();
    oj_cuda_drop(self->device, stream, &order);
    OJ_CUDA_TRY(error, "counting pairs", err);
    return OJ_OK;
}

static oj_status count(struct oj_cuda_index *index, cudaStream_t stream,
                       const struct oj_cuda_points *points,
                       unsigned long long *d_count, struct oj_error *err)
{
    return visit_all(unwrap(index), stream, points, d_count, NULL, err);
}

static oj_status sum(struct oj_cuda_index *index, cudaStream_t stream,
                     const struct oj_cuda_points *points,
                     const struct oj_cuda_tally *tally, struct oj_error *err)
{
    return visit_all(unwrap(index), stream, points, NULL, tally, err);
}

const struct oj_cuda_family oj_cuda_point_pairs = {
    "pairs of points, by a packed tree",
    takes,
    make_index,
    free_index,
    index_bytes,
    batch_bytes,
    NULL,
    join_lists,
    count,
    1,
    sum,
};
