/** Adds one value to the words of a join feature, as a device does. */
#ifndef PLAIN_SUMS_H
#define PLAIN_SUMS_H

#include "../../algs/foundations/aggregate/oj_sum_request.h"
#include "../../algs/foundations/kernels/oj_sum_limbs.h"

#include <stddef.h>

static inline void plain_add_value(const struct oj_sum_column *column,
                                   int64_t i, int64_t *words)
{
    struct oj_limbs limbs;
    enum oj_limb_kind kind;
    if (column->is_null != NULL && column->is_null[i])
        return;
    if (column->n_at > 0)
        words[column->n_at]++;
    if (column->n_limbs == 0 && column->nonfinite_at == 0)
        return;
    kind = column->is_integer
               ? oj_limbs_of_integer((int64_t)column->value[i], column->n_limbs,
                                     &limbs)
               : oj_limbs_of_real(column->value[i], column->base, &limbs);
    for (int k = 0; kind == OJ_LIMBS_DIGITS && k < column->n_limbs; k++)
        words[column->limb_at + k] += oj_limbs_digit(&limbs, k);
    if (kind > OJ_LIMBS_DIGITS)
        words[column->nonfinite_at + (int)kind - OJ_LIMBS_PLUS_INFINITY]++;
}

static inline void plain_add_pair(const struct oj_sum_request *request,
                                  int64_t i, int64_t *words)
{
    words[0]++;
    for (int c = 0; c < request->n_columns; c++)
        plain_add_value(&request->column[c], i, words);
}

#endif
