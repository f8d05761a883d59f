/** The difference of two vectors of n numbers, for CPU and GPU engines:
 *
 *   l2    sqrt(sum (a - b)^2)     l1      sum |a - b|
 *   linf  max |a - b|             cosine  1 - a.b / (|a| |b|)
 *
 *  Every sum adds the dimensions in order. The rounded difference is both the
 *  number that is compared with limits and the number in the output.  The
 *  cosine difference is never below 0.  It is exactly 0 if one vector is a
 *  positive multiple of the other.
 */
#ifndef OJ_VECTOR_MEASURE_H
#define OJ_VECTOR_MEASURE_H

#include "oj_exact_product.h"

enum oj_vector_norm
{
    OJ_NORM_L2 = 0,
    OJ_NORM_L1,
    OJ_NORM_LINF,
    OJ_NORM_COSINE
};

/* Returns 1 if a and b, neither of them zero, are exact multiples of each
 * other. For most pairs a comparison of rounded products decides this without
 * exact arithmetic. */
OJ_FN_APART int oj_vectors_are_parallel(const double *a, const double *b,
                                        int64_t n)
{
    int64_t i, j = 0;
    for (i = 0; i < n && a[i] == b[i]; i++)
        ;
    if (i == n)
        return 1;
    while (j < n - 1 && a[j] == 0.0)
        j++;
    for (i = 0; i < n; i++)
    {
        if (a[i] * b[j] != a[j] * b[i] ||
            !oj_exact_products_equal(a[i], b[j], a[j], b[i]))
            return 0;
    }
    return 1;
}

/** Returns the cosine difference of two vectors, never below 0. */
OJ_FN double oj_vector_cosine(const double *a, const double *b, int64_t n)
{
    double of_a = 0.0, of_b = 0.0, of_both = 0.0, difference;
    for (int64_t i = 0; i < n; i++)
    {
        of_a += a[i] * a[i];
        of_b += b[i] * b[i];
        of_both += a[i] * b[i];
    }
    difference = 1.0 - of_both / (sqrt(of_a) * sqrt(of_b));
    /* The computed difference of parallel vectors is at most this bound (step 1
     * of the proof in oj_vector_frame.h), so greater ones need no exact test.
     */
    if (difference > (2.0 * (double)n + 8.0) * 0x1p-52)
        return difference;
    return difference < 0.0 || oj_vectors_are_parallel(a, b, n) ? 0.0
                                                                : difference;
}

/** Returns the difference of two vectors of n numbers. Preconditions: no number
 * exceeds OJ_FLAT_MOST; with OJ_NORM_COSINE both squared lengths are normal
 * numbers. O(n). */
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
