/** Adds values of points to the sums of a join feature. */
#ifndef CUDA_PAIR_SUMS_ADD_CUH
#define CUDA_PAIR_SUMS_ADD_CUH

#include "../../../algs/foundations/kernels/oj_sum_limbs.h"
#include "cuda_family.h"

/* Splits value i of a column into *limbs. Returns what the value adds to a sum:
 * nothing, limbs, an infinity or NaN. */
static __device__ __forceinline__ enum oj_limb_kind
split_value_into_limbs(const struct oj_sum_column &column, int64_t i,
                       struct oj_limbs *limbs)
{
    uint64_t bits = column.value[i];
    return column.is_integer
               ? oj_limbs_of_integer((int64_t)bits, column.n_limbs, limbs)
               : oj_limbs_of_real(bits, column.base, limbs);
}

static __device__ __forceinline__ bool
is_column_summed(const struct oj_sum_column &column)
{
    return column.n_limbs > 0 || column.nonfinite_at > 0;
}

static __device__ __forceinline__ bool
has_value(const struct oj_sum_column &column, int64_t i)
{
    return column.is_null == NULL || column.is_null[i] == 0;
}

static __device__ __forceinline__ void
count_nan_or_infinity(const struct oj_sum_column &column,
                      enum oj_limb_kind kind, unsigned long long *words)
{
    atomicAdd(&words[column.nonfinite_at + (int)kind - OJ_LIMBS_PLUS_INFINITY],
              1ull);
}

/* Adds a pair of point i to the sums of a feature: 1 to the number of pairs,
 * words[0], and the point's values to the sums of the columns. `words` are
 * those of the feature. */
static __device__ __forceinline__ void
add_pair_to_feature_sums(const struct oj_sum_request &request, int64_t i,
                         unsigned long long *words)
{
    atomicAdd(&words[0], 1ull);
    for (int c = 0; c < request.n_columns; c++)
    {
        const struct oj_sum_column &column = request.column[c];
        struct oj_limbs limbs;
        enum oj_limb_kind kind;
        if (!has_value(column, i))
            continue;
        if (column.n_at > 0)
            atomicAdd(&words[column.n_at], 1ull);
        if (!is_column_summed(column))
            continue;
        kind = split_value_into_limbs(column, i, &limbs);
        for (int d = 0; kind == OJ_LIMBS_DIGITS && d < 3; d++)
        {
            if (limbs.digit[d] != 0)
                atomicAdd(&words[column.limb_at + limbs.first + d],
                          (unsigned long long)limbs.digit[d]);
        }
        if (kind > OJ_LIMBS_DIGITS)
            count_nan_or_infinity(column, kind, words);
    }
}

/* Returns the words of feature f in the copy to which this block adds. */
static __device__ __forceinline__ unsigned long long *
sum_words_of_feature(const struct oj_cuda_tally &tally, int64_t f)
{
    int64_t copy = blockIdx.x & (tally.n_copies - 1u);
    return tally.words + copy * tally.copy_words + f * tally.request.n_words;
}

/* Returns the tally for a slice of points: its columns begin at row `first`. */
static inline struct oj_cuda_tally
view_tally_of_point_slice(const struct oj_cuda_tally &all, int64_t first)
{
    struct oj_cuda_tally tally = all;
    for (int c = 0; c < tally.request.n_columns; c++)
    {
        struct oj_sum_column *column = &tally.request.column[c];
        if (column->value != NULL)
            column->value += first;
        if (column->is_null != NULL)
            column->is_null += first;
    }
    return tally;
}

#endif
