/** Sorts pairs in device memory: by row, and within a row by rank or
 *  measure. */
#ifndef CUDA_PAIR_ORDER_CUH
#define CUDA_PAIR_ORDER_CUH

#include "../device/cuda_stream_work.cuh"

/** Pairs of rows and ordinals of join features, in any order, without
 *  duplicates. *n counts all pairs; those beyond capacity were not stored. */
struct oj_cuda_found
{
    int64_t capacity;
    unsigned long long *n;
    int32_t *row, *feature; /**< [capacity] */
    double *measure;
};

enum oj_cuda_pair_order
{
    /** by rank of the feature, which occurs at most once per row */
    OJ_CUDA_BY_RANK,
    OJ_CUDA_BY_RANK_THEN_MEASURE,
    OJ_CUDA_BY_MEASURE_THEN_RANK
};

/** Sorts n <= 2^31 - 1 pairs by row (< n_rows), and within a row by `order`.
 *  rank holds the rank of each feature; if it is NULL, pairs.feature holds
 *  ranks. On return, the i-th pair of the order is number (*place)[i] of pairs,
 *  and its row is (*row)[i]. *work owns both arrays [n]. */
OJ_MUST_USE oj_status oj_cuda_sort_pairs(struct oj_cuda_work *work,
                                         int64_t n_rows, const int32_t *rank,
                                         enum oj_cuda_pair_order order,
                                         const struct oj_cuda_found &pairs,
                                         int64_t n, const int32_t **place,
                                         const uint32_t **row);

/** Lists of pairs, one per row, anywhere within larger arrays. */
struct oj_cuda_row_lists
{
    int64_t n;
    int64_t *first, *end; /**< [n] list i is [first[i], end[i]) */
    int32_t *rank;
    double *measure; /**< or NULL */
};

/** Sorts each list in place. Then replaces ranks by ordinal_of[rank], unless
 *  ordinal_of is NULL. Fails with OJ_ERR_NOMEM if all lists together have more
 *  than 2^31 - 1 pairs. */
OJ_MUST_USE oj_status oj_cuda_sort_row_lists(
    struct oj_cuda_work *work, const struct oj_cuda_row_lists *lists,
    enum oj_cuda_pair_order order, const int32_t *ordinal_of);

#endif
