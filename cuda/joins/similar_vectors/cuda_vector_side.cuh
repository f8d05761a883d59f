/** Vectors of one side on a device, in tiles: those of a tile are near one
 *  another.
 *
 *   place    0 .. 127     128 .. 255   ..      rows that have a vector
 *   tile     0            1            ..      a box of 16 dimensions each
 *
 *  Tiles are the leaves of a tree whose nodes are split at their middle place,
 *  along the longest side of the node's box: those whose numbers differ in low
 *  bits only are near one another, too.
 *
 *  A pair is compared by differences of floats (oj_vector_frame.h), or by
 *  products of halves, with sums in single precision.
 *
 *  Products lose no pair either.  The coordinates, times half_scale, are
 *  rounded to halves: of a vector a that leaves a rest of length rest(a).  So
 *  the halves of a pair at a distance of at most D have one of at most
 *  R = D + rest(a) + rest(b), and a.b >= (|a|^2 + |b|^2 - R^2) / 2.  What adds
 *  up products of halves on a device makes an error of at most
 *  error |a| |b| <= error (|a|^2 + |b|^2) / 2: products are exact, and of 16 of
 *  them and the sum so far each is cut to 24 bits of the greatest, and so is
 *  their sum, which is 18 times 2^-23 |a| |b|; error is n 2^-22, nearly twice
 *  that.  With size(a) = (1 - error) |a|^2 / 2 the sum is at least
 *  size(a) + size(b) - R^2 / 2.
 *
 *  Source: Gowanlock and Karsin 2019 (boxes of the dimensions with the greatest
 *  spread); Fasi, Higham, Mikaitis and Pranesh 2021 (errors of such sums);
 *  the bound is ours. */
#ifndef CUDA_VECTOR_SIDE_CUH
#define CUDA_VECTOR_SIDE_CUH

#include "../../../algs/foundations/kernels/oj_vector_frame.h"
#include "../../foundations/index/cuda_row_shares.cuh"

enum
{
    OJ_VECTOR_TILE = 128,
    OJ_VECTOR_BOX = 16 /* dimensions */
};

/** What both sides have. Arrays are on the device. Owns nothing. */
struct oj_cuda_vector_frame
{
    enum oj_vector_norm norm;
    int64_t n_dimensions;
    const int32_t *dimension; /**< [n_dimensions] by falling spread */
    const double *centre;     /**< [n_dimensions], in that order */
    double scale, half_scale;
    int is_of_halves;
    int n_padded; /**< a multiple of 32 halves, or of 8 floats */
    double error; /**< of products */
};

/** Owns nothing. */
struct oj_cuda_vector_side
{
    int64_t n_rows, n_dimensions;
    const double *vector; /**< [n_rows][n_dimensions] as on the host */
    const double *length; /**< [n_rows] for cosines, else NULL */
    struct oj_cuda_columns columns; /**< by row */

    int64_t n, n_tiles;
    const int32_t *order; /**< [n] rows, by place */
    const float *box;     /**< [n_tiles][2][OJ_VECTOR_BOX] low, high */

    const float *value; /**< [n_tiles][n_padded][OJ_VECTOR_TILE], or NULL */

    const uint16_t *half;      /**< [n_tiles][OJ_VECTOR_TILE][n_padded] */
    const float *size, *rest;  /**< [n_tiles * OJ_VECTOR_TILE] */
    const unsigned *most_rest; /**< [n_tiles] bits of the greatest rest */

    __device__ double number(int64_t row, int64_t dimension) const
    {
        double x = vector[row * n_dimensions + dimension];
        return length != NULL ? x / length[row] : x;
    }
};

/** Vectors of features first .. first + n - 1, which have some; arrays are
 *  work's.  frame->dimension NULL: the frame is made of them, where there is a
 *  vector, for the differences of relation. */
OJ_MUST_USE oj_status oj_cuda_vector_side_make(
    struct oj_cuda_work *work, const struct oj_flat *flat, int64_t first,
    int64_t n, const struct oj_relation *relation,
    struct oj_cuda_vector_frame *frame, struct oj_cuda_vector_side *out);

#endif
