/** Points of a batch as arguments of kernels that use one thread per point, and
 *  the launches of such kernels. A file that finds pairs by these kernels
 *  defines visit_matches_of_point() and, for lists with a measure,
 *  distance_to_entry(). */
#ifndef CUDA_POINT_PAIR_KERNELS_CUH
#define CUDA_POINT_PAIR_KERNELS_CUH

#include "../../foundations/index/cuda_pair_listing.cuh"
#include "../../foundations/index/cuda_pair_sums_add.cuh"
#include "../../foundations/tree/cuda_tree.h"

struct point_batch
{
    int64_t n;
    const double *x, *y;
    /* [n] point of each thread; NULL: thread i takes point i. */
    const int32_t *order;
    double least, most; /* minimum and maximum distance */
    /* [n] maximum distance of each point, which replaces `most`; or NULL. */
    const double *own_most;
    int takes_less; /* 1: the smaller of own_most and `most` counts */
    const int32_t *ordinal_of; /* [ranks] ordinal of each rank; NULL: ranks are
                                  ordinals */
    struct oj_pair_rule rule;
};

static inline struct point_batch
make_point_join_batch(const struct oj_cuda_index *index,
                      const struct oj_cuda_points *points, const int32_t *order)
{
    const struct oj_relation *relation = &index->relation;
    struct point_batch batch;
    batch.n = points->n;
    batch.x = points->x;
    batch.y = points->y;
    batch.order = order;
    batch.least = relation->min_distance;
    batch.most = relation->max_distance;
    batch.own_most = points->max_distance;
    batch.takes_less = oj_relation_is_nearest(relation);
    batch.ordinal_of = index->layer->ordinal_of.data;
    batch.rule = oj_cuda_family_pair_rule(relation, index->layer, points);
    return batch;
}

static __device__ __forceinline__ int64_t
point_of_thread(const struct point_batch &batch, int64_t thread)
{
    return batch.order != NULL ? batch.order[thread] : thread;
}

static __device__ __forceinline__ int32_t
ordinal_of_rank(const struct point_batch &batch, int32_t rank)
{
    return batch.ordinal_of != NULL ? batch.ordinal_of[rank] : rank;
}

static __device__ __forceinline__ double
max_distance_of_point(const struct point_batch &batch, int64_t i)
{
    double own = batch.own_most != NULL ? batch.own_most[i] : batch.most;
    return batch.takes_less && own > batch.most ? batch.most : own;
}

/* Writes the answer of point i. rank is -1 if the point has no pair; measure
 * may be NULL. */
static __device__ __forceinline__ void
write_single_answer(const struct point_batch &batch, int64_t i, int32_t rank,
                    double distance, int32_t *row, double *measure)
{
    row[i] = rank >= 0 ? ordinal_of_rank(batch, rank) : -1;
    if (measure != NULL)
        measure[i] = rank >= 0 ? distance : NAN;
}

/* --- counts and sums of pairs per feature --------------------------------- */

#define POINT_BLOCK 128

/* Calls add(i, ordinal) for each pair that visit_matches_of_point() finds.
 * `resident` is the minimum number of blocks per multiprocessor, or 0. */
template <int resident, typename Side, typename Add>
static __global__ void __launch_bounds__(POINT_BLOCK, resident)
    call_for_each_pair(const __grid_constant__ Side side,
                       const __grid_constant__ struct point_batch batch,
                       const __grid_constant__ Add add)
{
    int64_t t = (int64_t)blockIdx.x * POINT_BLOCK + threadIdx.x, i;
    if (t >= batch.n)
        return;
    i = point_of_thread(batch, t);
    visit_matches_of_point(
        side, batch, i,
        [&](int32_t rank, int64_t) { add(i, ordinal_of_rank(batch, rank)); },
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
        add_pair_to_feature_sums(tally.request, i,
                                 sum_words_of_feature(tally, ordinal));
    }
};

/* Adds the pairs that visit_matches_of_point() finds to *tally. */
template <int resident, typename Side>
static oj_status add_found_pairs_to_sums(struct oj_cuda_work *work,
                                         const Side &side,
                                         const struct point_batch &batch,
                                         const struct oj_cuda_tally *tally)
{
    if (batch.n == 0)
        return OJ_OK;
    if (tally->request.n_words == 1)
        return work->run<POINT_BLOCK>(
            batch.n, call_for_each_pair<resident, Side, add_one>, side, batch,
            add_one{tally->words});
    return work->run<POINT_BLOCK>(
        batch.n, call_for_each_pair<resident, Side, add_values>, side, batch,
        add_values{*tally});
}

/* --- lists of pairs: one pass counts, the next one writes ----------------- */

/* Number of pairs after which a thread checks whether all threads together have
 * found too many. */
#define LOOK_EVERY 65536

/* Counts the pairs of each point: count [n + 1], whose last element is 0.
 * Threads with many pairs add to *total and stop when it exceeds most. */
template <int resident, typename Side>
static __global__ void __launch_bounds__(POINT_BLOCK, resident)
    count_pairs_of_points(const __grid_constant__ Side side,
                          const __grid_constant__ struct point_batch batch,
                          int64_t most, unsigned long long *total,
                          int64_t *count)
{
    int64_t t = (int64_t)blockIdx.x * POINT_BLOCK + threadIdx.x, i;
    uint32_t n = 0, n_added = 0;
    if (t == batch.n)
        count[t] = 0;
    if (t >= batch.n)
        return;
    i = point_of_thread(batch, t);
    visit_matches_of_point(
        side, batch, i, [&](int32_t, int64_t) { n++; },
        [&]()
        {
            uint32_t more = n - n_added;
            if (more < LOOK_EVERY)
                return true;
            n_added = n;
            return (int64_t)atomicAdd(total, (unsigned long long)more) + more <=
                   most;
        });
    count[i] = n;
}

/* Writes the pairs of point i to row, and their measures to measure unless it
 * is NULL, from element offset[i] on. The join features are written as ranks,
 * or as ordinals if as_ordinals is 1. */
template <int resident, typename Side>
static __global__ void __launch_bounds__(POINT_BLOCK, resident)
    write_pairs_of_points(const __grid_constant__ Side side,
                          const __grid_constant__ struct point_batch batch,
                          int as_ordinals, const int64_t *offset, int32_t *row,
                          double *measure)
{
    int64_t t = (int64_t)blockIdx.x * POINT_BLOCK + threadIdx.x, i, at;
    double x, y;
    if (t >= batch.n)
        return;
    i = point_of_thread(batch, t);
    at = offset[i];
    if (at == offset[i + 1])
        return;
    x = batch.x[i];
    y = batch.y[i];
    visit_matches_of_point(
        side, batch, i,
        [&](int32_t rank, int64_t entry)
        {
            row[at] = as_ordinals ? ordinal_of_rank(batch, rank) : rank;
            if (measure != NULL)
                measure[at] = distance_to_entry(side, x, y, entry);
            at++;
        },
        []() { return true; });
}

/* Lists the pairs of batch that visit_matches_of_point() finds. If has_measure
 * is 1, their measure is that of distance_to_entry(). If in_order is 1, the
 * pairs of a row stay as they were found, because that is their final order or
 * any order will do; otherwise they are sorted by rank. most is the maximum
 * number of pairs that fit into device memory. */
template <int resident, typename Side>
static oj_status list_found_pairs(struct oj_cuda_listing *l, const Side &side,
                                  const struct point_batch &batch, int64_t most,
                                  int has_measure, int in_order)
{
    int64_t n = batch.n, *offset = l->out.offset.data;
    int64_t limit =
        l->max_pairs > 0 && n > 1 && l->max_pairs < most ? l->max_pairs : most;
    unsigned long long *total = NULL;
    OJ_TRY(l->allocate_zeros(1, &total));
    OJ_TRY(l->run<POINT_BLOCK>(n + 1, count_pairs_of_points<resident, Side>,
                               side, batch, limit, total, offset));
    OJ_TRY(l->turn_counts_into_offsets());
    if (l->out.n_pairs > most)
        return oj_fail(l->err, OJ_ERR_NOMEM,
                       "the GPU has no memory for %lld pairs or more; use "
                       "smaller batches",
                       (long long)l->out.n_pairs);
    if (l->out.n_pairs == 0)
        return OJ_OK;
    OJ_TRY(l->allocate_pairs(has_measure));
    OJ_TRY(l->run<POINT_BLOCK>(n, write_pairs_of_points<resident, Side>, side,
                               batch, in_order, offset, l->out.row.data,
                               l->out.measure.data));
    return in_order ? OJ_OK : oj_cuda_order_pairs_of_rows(l, batch.ordinal_of);
}

#endif
