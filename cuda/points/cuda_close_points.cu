/* Pairs of points with points, within a distance of the join's or at the same
 * place, by cells.  Threads take the points of a batch in the order of the
 * cells, so that those of a warp look at the same entries: once to count, once
 * to write.  Then the pairs of each row are put in the order of ranks, where
 * that is asked for. */
#include "../device/cuda_scratch.cuh"
#include "../index/cuda_row_order.h"
#include "../index/cuda_value_sums.cuh"
#include "cuda_close_side.h"
#include "cuda_point_batch.cuh"

#define BLOCK 128

/* So many pairs a thread finds before it looks whether all are too many. */
#define LOOK_EVERY 65536

struct close_index : oj_cuda_index
{
    struct oj_cuda_close_side side;
    int is_near;        /* pairs have distances */
    int64_t most_pairs; /* that fit into the memory of the device */
};

/* --- which joins ---------------------------------------------------------- */

/* Joins that ask of points whether they are equal. */
static int asks_equality(enum oj_op op)
{
    switch (op)
    {
        case OJ_OP_BBOX:
        case OJ_OP_INTERSECTS:
        case OJ_OP_WITHIN:
        case OJ_OP_CONTAINS:
        case OJ_OP_COVERS:
        case OJ_OP_COVEREDBY:
        case OJ_OP_CONTAINS_PROPERLY:
        case OJ_OP_EQUALS:
            return 1;
        default:
            return 0;
    }
}

static int takes(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input)
{
    if (relation->metric != OJ_METRIC_PLANAR || !oj_flat_is_points(join_side) ||
        join_side->max_distance != NULL ||
        (input != NULL && !oj_flat_is_points(input)))
        return 0;
    if (relation->op == OJ_OP_DWITHIN)
        return relation->max_distance < INFINITY &&
               (input == NULL || input->max_distance == NULL);
    return asks_equality(relation->op);
}

/* --- the join side -------------------------------------------------------- */

static void drop(struct oj_cuda_index *index)
{
    oj_cuda_close_side_drop(index->device,
                            &((struct close_index *)index)->side);
}

static int64_t index_bytes(const struct oj_cuda_index *index)
{
    return oj_cuda_close_side_bytes(&((const struct close_index *)index)->side);
}

static oj_status build(struct oj_cuda_index *index, struct oj_error *err)
{
    struct close_index *self = (struct close_index *)index;
    size_t free_bytes = 0, total_bytes = 0;
    self->is_near = self->relation.op == OJ_OP_DWITHIN;
    self->most_pairs = INT64_MAX;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess)
        self->most_pairs = (int64_t)(total_bytes / sizeof(int32_t));
    else
        (void)cudaGetLastError();
    return oj_cuda_close_side_build(
        self->device, self->layer, !self->is_near, self->relation.min_distance,
        self->relation.max_distance, &self->side, err);
}

/* Of pairs, whose number is not known, so many as seems usual. */
static int64_t batch_bytes(const struct oj_cuda_index *wrapped, int64_t n)
{
    const int64_t pair_bytes = (int64_t)(sizeof(double) + sizeof(int32_t));
    (void)wrapped;
    return n * (OJ_CUDA_CLOSE_ORDER_BYTES + OJ_CUDA_POINT_COLUMN_BYTES +
                2 * (int64_t)sizeof(int64_t) + 16 * pair_bytes);
}

/* --- looking -------------------------------------------------------------- */

/* The rule is one of entries. */
static struct point_batch batch_of(const struct close_index *self,
                                   const struct oj_cuda_points *points,
                                   const struct oj_cuda_array<int32_t> &order)
{
    const struct oj_cuda_columns *columns = &self->side.columns;
    struct point_batch batch = point_batch_of(self, points, order);
    batch.rule.fid = columns->fid.data;
    batch.rule.on_class = columns->on_class.data;
    batch.rule.exclude_class = columns->exclude_class.data;
    return batch;
}

/* Tells found(entry) of each partner of point i; goes_on() is asked every few
 * entries. */
template <typename Found, typename GoesOn>
static __device__ __forceinline__ void
look_around(const struct oj_close_side &side, const struct point_batch &batch,
            int64_t i, Found found, GoesOn goes_on)
{
    struct oj_close_visit visit;
    uint32_t first, n;
    if (!oj_close_visit_start(&visit, &side, batch.x[i], batch.y[i]))
        return;
    while ((n = oj_close_visit_next(&visit, &side, &first)) > 0 && goes_on())
    {
        uint32_t bits = oj_close_bits(&side, &visit, first, n);
        for (; bits != 0; bits &= bits - 1u)
        {
            uint32_t entry = first + (uint32_t)(__ffs((int)bits) - 1);
            if (oj_close_may_pair(&side, &visit, &batch.rule, i, entry))
                found(entry);
        }
    }
}

/* count [n + 1], the last one 0. Stops when *total, of threads that have found
 * many, is more than most. */
static __global__ void __launch_bounds__(BLOCK)
    count_pairs(const __grid_constant__ struct oj_close_side side,
                const __grid_constant__ struct point_batch batch, int64_t most,
                unsigned long long *total, int64_t *count)
{
    int64_t t = (int64_t)blockIdx.x * BLOCK + threadIdx.x, i;
    uint32_t n = 0, told = 0;
    if (t == batch.n)
        count[t] = 0;
    if (t >= batch.n)
        return;
    i = point_of(batch, t);
    look_around(
        side, batch, i, [&](uint32_t) { n++; },
        [&]()
        {
            uint32_t more = n - told;
            if (more < LOOK_EVERY)
                return true;
            told = n;
            return (int64_t)atomicAdd(total, (unsigned long long)more) + more <=
                   most;
        });
    count[i] = n;
}

/* Ranks, or with as_ordinals ordinals; measure may be NULL. */
static __global__ void __launch_bounds__(BLOCK)
    put_pairs(const __grid_constant__ struct oj_close_side side,
              const __grid_constant__ struct point_batch batch, int as_ordinals,
              const int64_t *offset, int32_t *row, double *measure)
{
    int64_t t = (int64_t)blockIdx.x * BLOCK + threadIdx.x, i, at;
    double x, y;
    if (t >= batch.n)
        return;
    i = point_of(batch, t);
    at = offset[i];
    if (at == offset[i + 1])
        return;
    x = batch.x[i];
    y = batch.y[i];
    look_around(
        side, batch, i,
        [&](uint32_t entry)
        {
            int32_t rank = side.rank[entry];
            row[at] = as_ordinals ? ordinal_at(batch, rank) : rank;
            if (measure != NULL)
                measure[at] = oj_close_distance(&side, x, y, entry);
            at++;
        },
        []() { return true; });
}

static __global__ void __launch_bounds__(BLOCK)
    count_by_feature(const __grid_constant__ struct oj_close_side side,
                     const __grid_constant__ struct point_batch batch,
                     unsigned long long *count)
{
    int64_t t = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (t >= batch.n)
        return;
    look_around(
        side, batch, point_of(batch, t),
        [&](uint32_t entry)
        {
            int32_t rank = side.rank[entry];
            atomicAdd(&count[ordinal_at(batch, rank)], 1ull);
        },
        []() { return true; });
}

static __global__ void __launch_bounds__(BLOCK)
    sum_by_feature(const __grid_constant__ struct oj_close_side side,
                   const __grid_constant__ struct point_batch batch,
                   const __grid_constant__ struct oj_cuda_tally tally)
{
    int64_t t = (int64_t)blockIdx.x * BLOCK + threadIdx.x, i;
    if (t >= batch.n)
        return;
    i = point_of(batch, t);
    look_around(
        side, batch, i,
        [&](uint32_t entry)
        {
            int32_t ordinal = ordinal_at(batch, side.rank[entry]);
            add_pair(tally.request, i, words_of(tally, ordinal));
        },
        []() { return true; });
}

/* --- lists ---------------------------------------------------------------- */

/* Counts become offsets; waits for their sum. */
static oj_status sum_counts(const struct close_index *self,
                            struct point_lists *l)
{
    OJ_TRY(oj_cuda_scan_total(self->device, l->stream, &l->scratch,
                              l->out.offset.data, l->batch.n, &l->out.n_pairs,
                              "summing counts", l->err));
    OJ_TRY(oj_cuda_pairs_fit(l->batch.n, l->out.n_pairs, l->max_pairs, l->err));
    if (l->out.n_pairs > self->most_pairs)
        return oj_fail(l->err, OJ_ERR_NOMEM,
                       "the device has no memory for %lld pairs or more",
                       (long long)l->out.n_pairs);
    return OJ_OK;
}

static oj_status count_rows(const struct close_index *self,
                            struct point_lists *l)
{
    int64_t n = l->batch.n, most = self->most_pairs;
    if (l->max_pairs > 0 && n > 1 && l->max_pairs < most)
        most = l->max_pairs;
    OJ_TRY(oj_cuda_make(l->device, l->stream, n + 1, &l->out.offset, l->err));
    OJ_TRY(oj_cuda_make(l->device, l->stream, 1, &l->total, l->err));
    OJ_TRY(oj_cuda_clear(l->stream, &l->total, "counting pairs", l->err));
    count_pairs<<<oj_blocks(n + 1, BLOCK), BLOCK, 0, l->stream>>>(
        self->side.side, l->batch, most, l->total.data, l->out.offset.data);
    OJ_CUDA_TRY_LAUNCH("counting pairs", l->err);
    return sum_counts(self, l);
}

/* Entries at one place stand in the order of ranks. */
static oj_status list_pairs(const struct close_index *self,
                            struct point_lists *l)
{
    int in_order = self->relation.any_order || !self->is_near;
    OJ_TRY(oj_cuda_close_order(l->device, l->stream, &self->side.side,
                               l->points, &l->order, l->err));
    l->batch = batch_of(self, l->points, l->order);
    OJ_TRY(count_rows(self, l));
    if (l->out.n_pairs == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_make(l->device, l->stream, l->out.n_pairs, &l->out.row,
                        l->err));
    if (self->is_near)
        OJ_TRY(oj_cuda_make(l->device, l->stream, l->out.n_pairs,
                            &l->out.measure, l->err));
    put_pairs<<<oj_blocks(l->batch.n, BLOCK), BLOCK, 0, l->stream>>>(
        self->side.side, l->batch, in_order, l->out.offset.data,
        l->out.row.data, l->out.measure.data);
    OJ_CUDA_TRY_LAUNCH("joining", l->err);
    if (in_order)
        return OJ_OK;
    return oj_cuda_order_rows(l->device, l->stream, l->batch.n,
                              l->batch.ordinal_of, &l->out, l->err);
}

static oj_status join_lists(struct oj_cuda_index *index, cudaStream_t stream,
                            const struct oj_cuda_points *points,
                            int64_t max_pairs, struct oj_cuda_pairs *out,
                            struct oj_error *err)
{
    return make_lists(
        index, stream, points, max_pairs,
        [&](struct point_lists *l)
        { return list_pairs((struct close_index *)index, l); },
        out, err);
}

/* --- counts and sums ------------------------------------------------------ */

template <typename Launch>
static oj_status visit_all(const struct close_index *self, cudaStream_t stream,
                           const struct oj_cuda_points *points, Launch launch,
                           struct oj_error *err)
{
    return visit_in_order(
        self, stream, points,
        [&](struct oj_cuda_array<int32_t> *order)
        {
            return oj_cuda_close_order(self->device, stream, &self->side.side,
                                       points, order, err);
        },
        [&](const struct oj_cuda_array<int32_t> &order)
        { launch(batch_of(self, points, order)); },
        "counting pairs", err);
}

static oj_status count(struct oj_cuda_index *index, cudaStream_t stream,
                       const struct oj_cuda_points *points,
                       unsigned long long *d_count, struct oj_error *err)
{
    const struct close_index *self = (const struct close_index *)index;
    return visit_all(
        self, stream, points,
        [&](const struct point_batch &batch)
        {
            count_by_feature<<<oj_blocks(batch.n, BLOCK), BLOCK, 0, stream>>>(
                self->side.side, batch, d_count);
        },
        err);
}

static oj_status sum(struct oj_cuda_index *index, cudaStream_t stream,
                     const struct oj_cuda_points *points,
                     const struct oj_cuda_tally *tally, struct oj_error *err)
{
    const struct close_index *self = (const struct close_index *)index;
    return visit_all(
        self, stream, points,
        [&](const struct point_batch &batch)
        {
            sum_by_feature<<<oj_blocks(batch.n, BLOCK), BLOCK, 0, stream>>>(
                self->side.side, batch, *tally);
        },
        err);
}

const struct oj_cuda_family oj_cuda_close_points = {
    "pairs of points, by cells",
    takes,
    sizeof(struct close_index),
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
