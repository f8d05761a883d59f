/** Rows of so many candidates that one thread would take long to sort them. */
#ifndef CUDA_LONG_ROWS_H
#define CUDA_LONG_ROWS_H

#include "../device/oj_cuda.h"
#include "oj_tree_join.h"

/** Candidates of a row up to which a thread sorts them. */
#define OJ_CUDA_SHORT_ROW 256

/** Candidates row by row, on a device. */
struct oj_cuda_candidates
{
    int64_t n_rows, n;
    const int64_t *first; /**< [n_rows + 1] */
    const int64_t *count; /**< [n_rows] how many of them, or NULL: all */
    double *distance;     /**< [n] */
    int32_t *rank;        /**< [n] */
};

/** Puts the candidates of each row of more than OJ_CUDA_SHORT_ROW in order, and
 *  leaves the others. OJ_ERR_NOMEM also for 2^31 candidates or more, where some
 *  row is long. Waits for the stream where rows may be. */
OJ_MUST_USE oj_status oj_cuda_sort_long_rows(
    struct oj_cuda_device *device, cudaStream_t stream,
    enum oj_tree_order order, const struct oj_cuda_candidates *candidates,
    struct oj_error *err);

#endif
