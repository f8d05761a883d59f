/** Pairs of a device in the order of answers: by row, and those of a row by
 * rank or by measure. */
#ifndef CUDA_PAIR_ORDER_CUH
#define CUDA_PAIR_ORDER_CUH

#include "../device/cuda_stream_work.cuh"

/** Pairs of rows 0 .. with ordinals of join features, in any order, each once;
 *  those beyond capacity are only counted. */
struct oj_cuda_found
{
    int64_t capacity;
    unsigned long long *n;
    int32_t *row, *feature; /**< [capacity] */
    double *measure;
};

enum oj_cuda_pair_order
{
    OJ_CUDA_BY_RANK, /**< of the feature; each once in a row */
    OJ_CUDA_BY_RANK_THEN_MEASURE,
    OJ_CUDA_BY_MEASURE_THEN_RANK
};

/** The n pairs by row (< n_rows), and in a row in this order; rank NULL:
 *  features are ranks. *place [n]: where they are, in
 *  this order; *row [n]: the rows of these. At most 2^31 - 1 pairs. */
OJ_MUST_USE oj_status oj_cuda_sort_pairs(struct oj_cuda_work *work,
                                         int64_t n_rows, const int32_t *rank,
                                         enum oj_cuda_pair_order order,
                                         const struct oj_cuda_found &pairs,
                                         int64_t n, const int32_t **place,
                                         const uint32_t **row);

/** Lists that lie in arrays. */
struct oj_cuda_row_lists
{
    int64_t n;
    int64_t *first, *end; /**< [n] list i: first[i] to before end[i] */
    int32_t *rank;
    double *measure; /**< or NULL */
};

/** Sorts each list where it is. Then ranks become
 *  ordinals, ordinal_of[rank], where it is not NULL. More than 2^31 - 1 pairs
 * in all lists: OJ_ERR_NOMEM. */
OJ_MUST_USE oj_status oj_cuda_sort_row_lists(
    struct oj_cuda_work *work, const struct oj_cuda_row_lists *lists,
    enum oj_cuda_pair_order order, const int32_t *ordinal_of);

#endif
