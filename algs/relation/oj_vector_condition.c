#include "oj_vector_condition.h"

#include <math.h>

oj_status oj_vector_condition_check(const struct oj_vector_condition *condition,
                                    struct oj_error *err)
{
    if (condition->is_asked &&
        ((int)condition->norm < OJ_NORM_L2 || condition->norm > OJ_NORM_COSINE))
        return oj_fail(err, OJ_ERR_ARG, "unknown norm of vectors %d",
                       (int)condition->norm);
    if (condition->is_asked && !(condition->max_difference >= 0.0))
        return oj_fail(err, OJ_ERR_ARG,
                       "the greatest difference must be 0 or more, not %g",
                       condition->max_difference);
    return OJ_OK;
}

static double cosine_difference(const double *a, const double *b, int64_t n)
{
    double of_a = 0.0, of_b = 0.0, of_both = 0.0;
    for (int64_t i = 0; i < n; i++)
    {
        of_a += a[i] * a[i];
        of_b += b[i] * b[i];
        of_both += a[i] * b[i];
    }
    return 1.0 - of_both / (sqrt(of_a) * sqrt(of_b));
}

double oj_vector_difference(enum oj_vector_norm norm, const double *a,
                            const double *b, int64_t n)
{
    double sum = 0.0;
    if (norm == OJ_NORM_COSINE)
        return cosine_difference(a, b, n);
    for (int64_t i = 0; i < n; i++)
    {
        double d = fabs(a[i] - b[i]);
        if (norm == OJ_NORM_LINF)
            sum = d > sum ? d : sum;
        else
            sum += norm == OJ_NORM_L2 ? d * d : d;
    }
    return norm == OJ_NORM_L2 ? sqrt(sum) : sum;
}
