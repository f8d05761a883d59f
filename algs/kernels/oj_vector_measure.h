/** The difference of two vectors of n numbers, for the engines of the CPU and
 *  of the GPU:
 *
 *   l2    sqrt(sum (a - b)^2)     l1      sum |a - b|
 *   linf  max |a - b|             cosine  1 - a.b / (|a| |b|)
 *
 *  Every sum is made in the order of dimensions, and the rounded difference is
 *  what is compared and written.
 */
#ifndef OJ_VECTOR_MEASURE_H
#define OJ_VECTOR_MEASURE_H

#include "oj_kernel.h"

enum oj_vector_norm
{
    OJ_NORM_L2 = 0,
    OJ_NORM_L1,
    OJ_NORM_LINF,
    OJ_NORM_COSINE
};

OJ_FN double oj_vector_cosine(const double *a, const double *b, int64_t n)
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

/** No number is beyond OJ_FLAT_MOST.  With OJ_NORM_COSINE both squared lengths
 *  are normal numbers. O(n). */
OJ_FN double oj_vector_difference(enum oj_vector_norm norm, const double *a,
                                  const double *b, int64_t n)
{
    double sum = 0.0;
    if (norm == OJ_NORM_COSINE)
        return oj_vector_cosine(a, b, n);
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

#endif
