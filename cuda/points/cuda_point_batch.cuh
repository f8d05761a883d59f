/** Points of a batch as kernels take them that go through a tree or cells with
 *  one thread for each point, and what launches have in common. */
#ifndef CUDA_POINT_BATCH_CUH
#define CUDA_POINT_BATCH_CUH

#include "../index/cuda_family.h"
#include "../tree/cuda_point_order.h"

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
static oj_status visit_by_tree(const struct oj_cuda_index *index,
                               cudaStream_t stream,
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

/* What lists are made with; all but out is dropped at the end. */
struct point_lists
{
    struct oj_cuda_device *device;
    cudaStream_t stream;
    const struct oj_cuda_points *points;
    int64_t max_pairs;
    struct oj_error *err;
    struct point_batch batch;
    struct oj_cuda_array<int32_t> order;
    struct oj_cuda_array<uint8_t> scratch;
    struct oj_cuda_array<double> distance; /* places, or candidates */
    struct oj_cuda_array<int32_t> rank;
    struct oj_cuda_array<double> reach;  /* [n] of each point, or empty */
    struct oj_cuda_array<int64_t> first; /* [n + 1] candidate of each point */
    struct oj_cuda_array<unsigned long long> total; /* [1] */
    struct oj_cuda_pairs out;
};

/* What make(&lists) puts into lists.out. */
template <typename Make>
static oj_status
make_lists(const struct oj_cuda_index *index, cudaStream_t stream,
           const struct oj_cuda_points *points, int64_t max_pairs, Make make,
           struct oj_cuda_pairs *out, struct oj_error *err)
{
    struct oj_cuda_device *device = index->device;
    struct point_lists l = {};
    oj_status status;
    l.device = device;
    l.stream = stream;
    l.points = points;
    l.max_pairs = max_pairs;
    l.err = err;
    status = make(&l);
    oj_cuda_drop(device, stream, &l.order, &l.scratch, &l.distance, &l.rank,
                 &l.reach, &l.first, &l.total);
    if (status != OJ_OK)
        oj_cuda_pairs_drop(device, stream, &l.out);
    else
        *out = l.out;
    return status;
}

#endif
