/** A condition on the vectors of two features: their difference is at most a
 * given number. */
#ifndef OJ_VECTOR_CONDITION_H
#define OJ_VECTOR_CONDITION_H

#include "../../../flatten/base/oj_status.h"
#include "../kernels/oj_vector_measure.h"

#define OJ_NORM_NAMES "l2|l1|linf|cosine"

/** Norm and maximum of the difference. Plain values. */
struct oj_vector_condition
{
    int is_asked; /**< 1: vectors are compared; 0: there is no condition on
                       vectors */
    enum oj_vector_norm norm;
    double max_difference; /**< >= 0; INFINITY: any difference */
};

/** OJ_ERR_ARG if the norm or the maximum difference is invalid. */
OJ_MUST_USE oj_status oj_vector_condition_check(
    const struct oj_vector_condition *condition, struct oj_error *err);

/** Sets out[i] to number[i] times its weight, for all i < n. n_weights is n, or
 * 1 for a common weight. Returns 1 if out is a valid vector: no NaN, no number
 * beyond OJ_FLAT_MOST, and for cosines a squared length of at least DBL_MIN.
 * Otherwise returns 0, and out may be incomplete. */
int oj_vector_apply_weights(enum oj_vector_norm norm, const double *number,
                            int64_t n, const double *weight, int64_t n_weights,
                            double *out);

#endif
