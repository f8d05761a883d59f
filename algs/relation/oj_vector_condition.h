/** A condition on the vectors of two features: their difference is at most a
 *  number.
 */
#ifndef OJ_VECTOR_CONDITION_H
#define OJ_VECTOR_CONDITION_H

#include "../../flatten/base/oj_status.h"
#include "../kernels/oj_vector_measure.h"

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

#endif
