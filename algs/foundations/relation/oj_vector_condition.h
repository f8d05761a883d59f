/** A condition on the vectors of two features: their difference is at most a
 *  number.
 */
#ifndef OJ_VECTOR_CONDITION_H
#define OJ_VECTOR_CONDITION_H

#include "../../../flatten/base/oj_status.h"
#include "../kernels/oj_vector_measure.h"

#define OJ_NORM_NAMES "l2|l1|linf|cosine"

/** Plain values. */
struct oj_vector_condition
{
    int is_asked; /**< 0: no vectors are compared */
    enum oj_vector_norm norm;
    double max_difference; /**< >= 0; INFINITY: any */
};

/** OJ_ERR_ARG: a value is not what is said above. */
OJ_MUST_USE oj_status oj_vector_condition_check(
    const struct oj_vector_condition *condition, struct oj_error *err);

/** 1 when n numbers, each times its weight, are a vector, which then is in out:
 *  none is NaN or beyond OJ_FLAT_MOST, and for a cosine the squared length is
 *  DBL_MIN at least.  n_weights: n, or 1: one for all. */
int oj_vector_weigh(enum oj_vector_norm norm, const double *number, int64_t n,
                    const double *weight, int64_t n_weights, double *out);

#endif
