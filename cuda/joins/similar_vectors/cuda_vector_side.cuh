/** Vectors of one side in device memory, in tiles of vectors that are near each
 *  other.
 *
 *   place    0 .. 127     128 .. 255   ..      rows that have a vector
 *   tile     0            1            ..      a box of 16 dimensions each
 *
 *  Tiles are the leaves of a tree whose nodes are split at their median place,
 *  along the longest side of the node's box: tiles whose numbers differ in low
 *  bits only are near each other.
 *
 *  A pair is compared by differences of floats (oj_vector_frame.h), or by
 *  products of halves with sums in single precision.
 *
 *  No pair is lost by products. Coordinates, times half_scale, are rounded to
 *  halves, which leaves a rest of length rest(a) for vector a. So the halves of
 *  two vectors at a distance of at most D are at most R = D + rest(a) + rest(b)
 *  apart, and a.b >= (|a|^2 + |b|^2 - R^2) / 2. The sum of products on a device
 *  has an error of at most error |a| |b| <= error (|a|^2 + |b|^2) / 2: products
 *  are exact; of 16 products and the sum so far each is truncated to 24 bits of
 *  the greatest, and so is their sum, in total 18 times 2^-23 |a| |b|; error is
 *  n 2^-22, nearly twice that. With size(a) = (1 - error) |a|^2 / 2 the sum is
 *  at least size(a) + size(b) - R^2 / 2.
 *
 *  Source: Gowanlock and Karsin 2019 (boxes of the dimensions with the greatest
 *  spread); Fasi, Higham, Mikaitis and Pranesh 2021 (errors of such sums); the
 *  bound is ours.
 */
#ifndef CUDA_VECTOR_SIDE_CUH
#define CUDA_VECTOR_SIDE_CUH

#include "../../../algs/foundations/kernels/oj_vector_frame.h"
#include "../../foundations/index/cuda_row_shares.cuh"

enum
{
    OJ_VECTOR_TILE = 128,
    OJ_VECTOR_BOX = 16 /* number of dimensions of a box */
};

/** Order and scale of dimensions, equal for both sides. The arrays are in
 *  device memory. Owns nothing. */
struct oj_cuda_vector_frame
{
    enum oj_vector_norm norm;
    int64_t n_dimensions;
    const int32_t *dimension; /**< [n_dimensions] by descending spread */
    const double *centre;     /**< [n_dimensions] in the order of `dimension` */
    double scale, half_scale;
    int is_of_halves;
    /** Number of dimensions, rounded up to a multiple of 32 (halves) or 8
     *  (floats). */
    int n_padded;
    double error; /**< relative error of sums of products */
};

/** The vectors of a side. Owns nothing. */
struct oj_cuda_vector_side
{
    int64_t n_rows, n_dimensions;
    const double *vector; /**< [n_rows][n_dimensions] as on the host */
    const double *length; /**< [n_rows] for cosines, else NULL */
    struct oj_cuda_columns columns; /**< by row */

    int64_t n, n_tiles;
    const int32_t *order; /**< [n] row at each place */
    /** [n_tiles][2][OJ_VECTOR_BOX] of each tile the lower bounds, then the
     *  upper bounds. */
    const float *box;

    const float *value; /**< [n_tiles][n_padded][OJ_VECTOR_TILE], or NULL */

    const uint16_t *half;      /**< [n_tiles][OJ_VECTOR_TILE][n_padded] */
    const float *size, *rest;  /**< [n_tiles * OJ_VECTOR_TILE] */
    const unsigned *most_rest; /**< [n_tiles] bits of the maximum of rest */

    __device__ double coordinate_of_row(int64_t row, int64_t dimension) const
    {
        double x = vector[row * n_dimensions + dimension];
        return length != NULL ? x / length[row] : x;
    }
};

/** Prepares the vectors of features first .. first + n - 1, of which some may
 *  have none. *work owns the arrays. If frame->dimension is NULL and there is a
 *  vector, first makes *frame from these vectors and the maximum difference of
 *  relation. */
OJ_MUST_USE oj_status oj_cuda_vector_side_make(
    struct oj_cuda_work *work, const struct oj_flat *flat, int64_t first,
    int64_t n, const struct oj_relation *relation,
    struct oj_cuda_vector_frame *frame, struct oj_cuda_vector_side *out);

#endif
