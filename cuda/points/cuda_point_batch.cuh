/** Points of a batch as kernels take them that go through a tree or cells with
 *  one thread for each point, and what launches have in common. */
#ifndef CUDA_POINT_BATCH_CUH
#define CUDA_POINT_BATCH_CUH

#include "../device/cuda_parallel_for.cuh"
#include "../index/cuda_feature_sums_add.cuh"
#include "../index/cuda_row_order.h"
#include "../tree/cuda_tree.h"

struct point_batch
{
    int64_t n;
    const double *x, *y;
    const int32_t *order;   /* [n] point of each thread, or NULL: its own */
    double least, most;     /* limits of distances */
    const double *own_most; /* [n] in place of most, or NULL */
    int takes_less; /* 1: own ones count where they are not more than most */
    const int32_t *ordinal_of; /* NULL: ranks are ordinals */
    struct oj_pair_rule rule;
};

static inline struct point_batch
point_batch_of(const struct oj_cuda_index *index,
               const struct oj_cuda_points *points,
               const struct oj_cuda_array<int32_t> &order)
{
    const struct oj_relation *relation = &index->relation;
    struct point_batch batch;
    batch.n = points->n;
    batch.x = points->x;
    batch.y = points->y;
    batch.order = order.data;
    batch.least = relation->min_distance;
    batch.most = relation->max_distance;
    batch.own_most = points->max_distance;
    batch.takes_less = relation->op == OJ_OP_NEAREST;
    batch.ordinal_of = index->layer->ordinal_of.data;
    batch.rule = oj_cuda_pair_rule(relation, index->layer, points);
    return batch;
}

static __device__ __forceinline__ int64_t
point_of(const struct point_batch &batch, int64_t thread)
{
    return batch.order != NULL ? batch.order[thread] : thread;
}

static __device__ __forceinline__ int32_t
ordinal_at(const struct point_batch &batch, int32_t rank)
{
    return batch.ordinal_of != NULL ? batch.ordinal_of[rank] : rank;
}

static __device__ __forceinline__ double
most_of(const struct point_batch &batch, int64_t i)
{
    double own = batch.own_most != NULL ? batch.own_most[i] : batch.most;
    return batch.takes_less && own > batch.most ? batch.most : own;
}

/* rank -1: none; measure may be NULL. */
static __device__ __forceinline__ void
answer_one(const struct point_batch &batch, int64_t i, int32_t rank,
           double distance, int32_t *row, double *measure)
{
    row[i] = rank >= 0 ? ordinal_at(batch, rank) : -1;
    if (measure != NULL)
        measure[i] = rank >= 0 ? distance : NAN;
}

/* Calls launch(order) for points in the order that order_points(&order) makes,
 * in order of stream. */
template <typename Order, typename Launch>
static oj_status
visit_in_order(const struct oj_cuda_index *index, cudaStream_t stream,
               const struct oj_cuda_points *points, Order order_points,
               Launch launch, const char *doing, struct oj_error *err)
{
    oj_cuda_array<int32_t> order = {NULL, 0};
    cudaError_t error;
    if (points->n == 0)
        return OJ_OK;
    OJ_TRY(order_points(&order));
    launch(order);
    error = cudaGetLastError();
    oj_cuda_drop(index->device, stream, &order);
    OJ_CUDA_TRY(error, doing, err);
    return OJ_OK;
}

/* The same in the order of tree. */
template <typename Launch>
static oj_status
visit_in_tree_order(const struct oj_cuda_index *index, cudaStream_t stream,
                    const struct oj_cuda_points *points,
                    const struct oj_device_tree *tree, Launch launch,
                    const char *doing, struct oj_error *err)
{
    return visit_in_order(
        index, stream, points,
        [&](struct oj_cuda_array<int32_t> *order)
        {
            return oj_cuda_point_order(index->device, stream, tree, points,
                                       order, err);
        },
        launch, doing, err);
}

/* --- counts and sums of pairs by feature ---------------------------------- */

#define POINT_BLOCK 128

/* Tells add(i, ordinal) of the pairs that look_around(side, batch, i, found)
 * finds; resident: blocks of a processor, or 0. */
template <int resident, typename Side, typename Add>
static __global__ void __launch_bounds__(POINT_BLOCK, resident)
    add_pairs(const __grid_constant__ Side side,
              const __grid_constant__ struct point_batch batch,
              const __grid_constant__ Add add)
{
    int64_t t = (int64_t)blockIdx.x * POINT_BLOCK + threadIdx.x, i;
    if (t >= batch.n)
        return;
    i = point_of(batch, t);
    look_around(
        side, batch, i,
        [&](int32_t rank, int64_t) { add(i, ordinal_at(batch, rank)); },
        []() { return true; });
}

struct add_one
{
    unsigned long long *count;

    __device__ __forceinline__ void operator()(int64_t, int32_t ordinal) const
    {
        atomicAdd(&count[ordinal], 1ull);
    }
};

struct add_values
{
    struct oj_cuda_tally tally;

    __device__ __forceinline__ void operator()(int64_t i, int32_t ordinal) const
    {
        add_pair(tally.request, i, words_of(tally, ordinal));
    }
};

/* What lists are made with; all but out goes back at the end. */
struct point_lists : oj_cuda_work
{
    const struct oj_cuda_points *points;
    int64_t max_pairs;
    struct point_batch batch;
    struct oj_cuda_array<int32_t> order;
    struct oj_cuda_pairs out;

    using oj_cuda_work::oj_cuda_work;
};

/* Counts [batch.n + 1], the last one 0, become offsets; waits for their sum. */
static inline oj_status sum_counts(struct point_lists *l, int64_t *count,
                                   int64_t *total)
{
    return oj_cuda_scan_total(l->device, l->stream, &l->scratch, count,
                              l->batch.n, total, "summing counts", l->err);
}

/* The counts in l->out.offset become offsets; OJ_ERR_TOO_MANY_PAIRS as in
 * join_lists() of struct oj_cuda_family. */
static inline oj_status sum_pairs(struct point_lists *l)
{
    OJ_TRY(sum_counts(l, l->out.offset.data, &l->out.n_pairs));
    return oj_cuda_pairs_fit(l->batch.n, l->out.n_pairs, l->max_pairs, l->err);
}

/* Room for the pairs of l->out. */
static inline oj_status make_pairs(struct point_lists *l, int has_measure)
{
    struct oj_cuda_pairs *out = &l->out;
    OJ_TRY(oj_cuda_make(l->device, l->stream, out->n_pairs, &out->row, l->err));
    if (has_measure)
        OJ_TRY(oj_cuda_make(l->device, l->stream, out->n_pairs, &out->measure,
                            l->err));
    return OJ_OK;
}

/* Words behind the counts of a batch, for what is read together with their
 * sum. */
#define SPARE_COUNTS 2

/* What make(&lists) puts into lists.out, where lists.out.offset has room for
 * counts. */
template <typename Make>
static oj_status
make_lists(const struct oj_cuda_index *index, cudaStream_t stream,
           const struct oj_cuda_points *points, int64_t max_pairs, Make make,
           struct oj_cuda_pairs *out, struct oj_error *err)
{
    struct point_lists l(index->device, stream, err);
    oj_status status;
    l.points = points;
    l.max_pairs = max_pairs;
    l.batch.n = points->n;
    l.order = {};
    l.out = {};
    status = oj_cuda_make(l.device, stream, points->n + 1 + SPARE_COUNTS,
                          &l.out.offset, err);
    if (status == OJ_OK)
        status = make(&l);
    oj_cuda_drop(l.device, stream, &l.order);
    if (status != OJ_OK)
        oj_cuda_pairs_drop(l.device, stream, &l.out);
    else
        *out = l.out;
    return status;
}

/* --- lists of pairs that are looked for twice ----------------------------- */

/* So many pairs a thread finds before it looks whether all are too many. */
#define LOOK_EVERY 65536

/* count [n + 1], the last one 0. Stops when *total, of threads that have found
 * many, is more than most. */
template <int resident, typename Side>
static __global__ void __launch_bounds__(POINT_BLOCK, resident)
    count_pairs(const __grid_constant__ Side side,
                const __grid_constant__ struct point_batch batch, int64_t most,
                unsigned long long *total, int64_t *count)
{
    int64_t t = (int64_t)blockIdx.x * POINT_BLOCK + threadIdx.x, i;
    uint32_t n = 0, told = 0;
    if (t == batch.n)
        count[t] = 0;
    if (t >= batch.n)
        return;
    i = point_of(batch, t);
    look_around(
        side, batch, i, [&](int32_t, int64_t) { n++; },
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
template <int resident, typename Side>
static __global__ void __launch_bounds__(POINT_BLOCK, resident)
    put_pairs(const __grid_constant__ Side side,
              const __grid_constant__ struct point_batch batch, int as_ordinals,
              const int64_t *offset, int32_t *row, double *measure)
{
    int64_t t = (int64_t)blockIdx.x * POINT_BLOCK + threadIdx.x, i, at;
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
        [&](int32_t rank, int64_t entry)
        {
            row[at] = as_ordinals ? ordinal_at(batch, rank) : rank;
            if (measure != NULL)
                measure[at] = distance_of(side, x, y, entry);
            at++;
        },
        []() { return true; });
}

/* Lists the pairs of l->batch that look_around(side, ..) finds, once to count
 * and once to write, with what distance_of(side, ..) says where has_measure is
 * 1.  in_order: they may stay as they are found; else those of each row are put
 * in the order of ranks.  most: that fit into the memory of the device. */
template <int resident, typename Side>
static oj_status list_found(struct point_lists *l, const Side &side,
                            int64_t most, int has_measure, int in_order)
{
    int64_t n = l->batch.n;
    unsigned long long *total = NULL;
    OJ_TRY(l->make_zeros(1, &total, "counting pairs"));
    count_pairs<resident, Side>
        <<<oj_blocks(n + 1, POINT_BLOCK), POINT_BLOCK, 0, l->stream>>>(
            side, l->batch,
            l->max_pairs > 0 && n > 1 && l->max_pairs < most ? l->max_pairs
                                                             : most,
            total, l->out.offset.data);
    OJ_CUDA_TRY_LAUNCH("counting pairs", l->err);
    OJ_TRY(sum_pairs(l));
    if (l->out.n_pairs > most)
        return oj_fail(l->err, OJ_ERR_NOMEM,
                       "the device has no memory for %lld pairs or more",
                       (long long)l->out.n_pairs);
    if (l->out.n_pairs == 0)
        return OJ_OK;
    OJ_TRY(make_pairs(l, has_measure));
    put_pairs<resident, Side>
        <<<oj_blocks(n, POINT_BLOCK), POINT_BLOCK, 0, l->stream>>>(
            side, l->batch, in_order, l->out.offset.data, l->out.row.data,
            l->out.measure.data);
    OJ_CUDA_TRY_LAUNCH("joining", l->err);
    if (in_order)
        return OJ_OK;
    return oj_cuda_order_rows(l->device, l->stream, n, l->batch.ordinal_of,
                              &l->out, l->err);
}

#endif
