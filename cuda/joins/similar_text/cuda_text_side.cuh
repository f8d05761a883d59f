/** Texts of one side on a device.
 */
#ifndef CUDA_TEXT_SIDE_CUH
#define CUDA_TEXT_SIDE_CUH

#include "../../../algs/foundations/kernels/oj_text_measure.h"
#include "../../foundations/index/cuda_row_shares.cuh"

/** Sets on the device, and their order. Owns nothing. */
struct oj_cuda_text_side
{
    int64_t n, first_token;         /**< offset[0] */
    uint32_t n_tokens;              /**< different ones: greatest + 1 */
    const int64_t *offset;          /**< [n + 1] by row, as the host has them */
    const uint32_t *token;          /**< from first_token on */
    const int32_t *size;            /**< [n] by row */
    const int32_t *order;           /**< [n] rows by size, then by number */
    struct oj_cuda_columns columns; /**< by row */

    __device__ int known(int32_t row) const
    {
        return (int)(offset[row + 1] - offset[row]);
    }
    __device__ const uint32_t *tokens(int32_t row) const
    {
        return token + (offset[row] - first_token);
    }
};

/** Sets of texts[0] of features first .. first + n - 1; arrays are work's.  The
 *  host's arrays stay as they are until the stream has got there. */
OJ_MUST_USE oj_status oj_cuda_text_side_make(struct oj_cuda_work *work,
                                             const struct oj_flat *flat,
                                             int64_t first, int64_t n,
                                             const struct oj_relation *relation,
                                             struct oj_cuda_text_side *out);

/** For families: 1 for pairs by one condition on texts. */
int oj_cuda_texts_take(const struct oj_relation *relation,
                       const struct oj_flat *join_side,
                       const struct oj_flat *input);

/** An index of the join side. */
struct oj_cuda_text_index
{
    struct oj_cuda_index base;
    struct oj_cuda_text_side side;
};

OJ_MUST_USE oj_status oj_cuda_text_index_build(struct oj_cuda_index *index,
                                               struct oj_cuda_work *work);

#endif
