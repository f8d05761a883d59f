#include "oj_vector_condition.h"

#include "../../../flatten/arrays/oj_flat.h"

#include <float.h>
#include <math.h>

oj_status oj_vector_condition_check(const struct oj_vector_condition *condition,
                                    struct oj_error *err)
{
    if (condition->is_asked &&
        ((int)condition->norm < OJ_NORM_L2 || condition->norm > OJ_NORM_COSINE))
        return oj_fail(err, OJ_ERR_ARG,
                       "there is no norm of vectors number %d: use a value of "
                       "enum oj_vector_norm",
                       (int)condition->norm);
    if (condition->is_asked && !(condition->max_difference >= 0.0))
        return oj_fail(err, OJ_ERR_ARG,
                       "the maximum difference must be 0 or more, not %g",
                       condition->max_difference);
    return OJ_OK;
}

int oj_vector_apply_weights(enum oj_vector_norm norm, const double *number,
                            int64_t n, const double *weight, int64_t n_weights,
                            double *out)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++)
    {
        double x = number[i] * weight[n_weights > 1 ? i : 0];
        if (!(fabs(x) <= OJ_FLAT_MOST))
            return 0;
        sum += x * x;
        out[i] = x;
    }
    return norm != OJ_NORM_COSINE || sum >= DBL_MIN;
}
