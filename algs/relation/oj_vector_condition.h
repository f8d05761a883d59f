/** A condition on the vectors of two features: their difference is at most a
 *  number.
 *
 *   l2  sqrt(sum (a - b)^2)     l1      sum |a - b|
 *   linf  max |a - b|           cosine  1 - a.b / (|a| |b|)
 *
 *  Every sum is made in the order of dimensions, in double precision without
 *  contraction, and the rounded difference is what is compared and written.
 */
#ifndef OJ_VECTOR_CONDITION_H
#define OJ_VECTOR_CONDITION_H

#include "../../flatten/base/oj_status.h"

#include <stdint.h>

enum oj_vector_norm
{
    OJ_NORM_L2 = 0,
    OJ_NORM_L1,
    OJ_NORM_LINF,
    OJ_NORM_COSINE
};

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

/** The difference of two vectors of n numbers, none beyond OJ_FLAT_MOST.  With
 *  OJ_NORM_COSINE both squared lengths are normal numbers. O(n). */
double oj_vector_difference(enum oj_vector_norm norm, const double *a,
                            const double *b, int64_t n);

#endif
