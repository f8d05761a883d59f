#include "oj_vector_condition.h"

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
