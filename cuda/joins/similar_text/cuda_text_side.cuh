/** The texts of one side in device memory, as sets of tokens. */
#ifndef CUDA_TEXT_SIDE_CUH
#define CUDA_TEXT_SIDE_CUH

#include "../../../algs/foundations/kernels/oj_text_measure.h"
#include "../../foundations/index/cuda_row_shares.cuh"

/** Sets of tokens and their order by size. Owns nothing. */
struct oj_cuda_text_side
{
    int64_t n, first_token; /**< first_token: offset[0] */
    /** Number of distinct tokens: the greatest token number + 1. */
    uint32_t n_tokens;
    const int64_t *offset;          /**< [n + 1] by row; as on the host, so
                                         the first offset may exceed 0 */
    const uint32_t *token;          /**< tokens from first_token on */
    const int32_t *size;            /**< [n] by row: number of tokens, also of
                                         those that have no number */
    const int32_t *order;           /**< [n] rows sorted by size, rows of equal
                                         size by number */
    struct oj_cuda_columns columns; /**< by row */

    /** Returns how many tokens of the row have a number. */
    __device__ int count_known_tokens(int32_t row) const
    {
        return (int)(offset[row + 1] - offset[row]);
    }
    __device__ const uint32_t *tokens_of_row(int32_t row) const
    {
        return token + (offset[row] - first_token);
    }
};

/** Copies the token sets of texts[0] of features first .. first + n - 1; *work
 *  owns the arrays. The host's arrays must stay unchanged until the stream has
 *  reached the copies. */
OJ_MUST_USE oj_status oj_cuda_text_side_make(struct oj_cuda_work *work,
                                             const struct oj_flat *flat,
                                             int64_t first, int64_t n,
                                             const struct oj_relation *relation,
                                             struct oj_cuda_text_side *out);

/** Returns 1 if the join's only condition is one on texts; this family answers
 *  such joins. */
int oj_cuda_text_side_supports_join(const struct oj_relation *relation,
                                    const struct oj_flat *join_side,
                                    const struct oj_flat *input);

/** Index of the join side. */
struct oj_cuda_text_index
{
    struct oj_cuda_index base;
    struct oj_cuda_text_side side;
};

OJ_MUST_USE oj_status oj_cuda_text_index_build(struct oj_cuda_index *index,
                                               struct oj_cuda_work *work);

#endif
