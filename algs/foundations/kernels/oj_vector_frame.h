/** A filter in single precision for pairs of vectors, for CPU and GPU engines.
 *  Vectors are shifted and scaled so that the join side fills [-1, 1] (the
 *  frame).
 *
 *  A sum in single precision is compared with a limit; oj_vector_difference()
 *  decides the pairs that pass.  No pair is lost; proof, with n dimensions, u =
 *  2^-24, and real arithmetic where no rounding is named:
 *
 *  1. Of a pair whose rounded difference is v, the difference of the numbers
 *     themselves is at most v (1 + (n + 4) 2^-52) + sqrt(n) 2^-536: sums of n
 *     terms round n + 3 times, squares that underflow lose 2^-1075 each.
 *     Cosines: v is within (2 n + 8) 2^-52 of 1 - cos, as every sum is within
 *     n 2^-53 |a| |b|, underflow included; the vectors are divided by their
 *     lengths, which leaves an error of (n + 4) 2^-53 of each, and then have
 *     the distance sqrt(2 (1 - cos)).  Let L be the bound of the difference
 *     times scale (step 2).
 *  2. value = float((x - centre) scale), where scale is a power of two that
 *     takes the join side into [-1, 1].  Its error is at most u (1 + 2^-20) of
 *     its size, and below 2^-148 where it is subnormal.  That is at most 2^-23
 *     on the join side and 2^-23 (1 + L) on the input side, because the
 *     coordinates of the pair differ by at most L.  So each difference of
 *     coordinates is wrong by at most e = 2^-23 (2 + L), the l2 distance by
 *     sqrt(n) e, l1 by n e, linf by e.
 *  3. The sum in single precision of terms >= 0, in any order, of some or all
 *     dimensions, is at most the true sum times (1 + u)^(n + 2), plus 2^-139.
 *     In the sum for a box, or between two boxes, no term is larger than the
 *     term of any vector in the box, since rounding is monotone.
 *  4. So limit = (L + sqrt(n) e)^2, L + n e or L + e, times 1 + (n + 64) 2^-23,
 *     plus 2^-130, rounded up: half of the factor allows for step 3, the rest
 *     for the rounding of the limit itself.  If the limit exceeds the range of
 *     float, all pairs pass.
 *  5. Input coordinates beyond float are clamped to the greatest float: they
 *     are farther than L from the join side, or all pairs pass.
 */
#ifndef OJ_VECTOR_FRAME_H
#define OJ_VECTOR_FRAME_H

#include "oj_vector_measure.h"

#include <float.h>
#include <stdlib.h>

/** Range and scatter of the join side's vectors in one dimension. */
struct oj_vector_spread
{
    double apart; /**< scatter: sum of the distances of all coordinates to the
                       first vector's */
    double low, high;
    int32_t dimension;
};

/** Converts a coordinate to the frame in single precision (steps 2 and 5 of the
 * proof). */
OJ_FN float oj_vector_coordinate(double x, double centre, double scale)
{
    double at = (x - centre) * scale;
    at = at < (double)FLT_MAX ? at : (double)FLT_MAX;
    return (float)(at > -(double)FLT_MAX ? at : -(double)FLT_MAX);
}

/** Returns an upper bound, in units of the frame, of the true difference of two
 * vectors whose computed difference is at most `most` (L of the proof
 * above). */
OJ_FN double oj_vector_max_true_difference(enum oj_vector_norm norm,
                                           int64_t n_dimensions, double scale,
                                           double most)
{
    double n = (double)n_dimensions;
    if (norm == OJ_NORM_COSINE)
        most = sqrt(2.0 *
                    ((most > 0.0 ? most : 0.0) + (2.0 * n + 8.0) * 0x1p-52)) +
               (n + 5.0) * 0x1p-51;
    else
        most = most * (1.0 + (n + 4.0) * 0x1p-52) + sqrt(n) * 0x1p-536;
    return most * scale;
}

/** Returns an upper bound of the computed l2 distance, in the frame, of two
 * vectors whose difference is at most reach (in units of the frame). */
OJ_FN double oj_vector_max_computed_l2(int64_t n_dimensions, double reach)
{
    return reach + sqrt((double)n_dimensions) * (0x1p-23 * (2.0 + reach));
}

/** Returns the limit of the proof above: two vectors with a difference of at
 * most `most` have a single-precision sum of at most this limit. */
OJ_FN float oj_vector_max_single_precision_sum(enum oj_vector_norm norm,
                                               int64_t n_dimensions,
                                               double scale, double most)
{
    double n = (double)n_dimensions, limit;
    double reach =
        oj_vector_max_true_difference(norm, n_dimensions, scale, most);
    double e = 0x1p-23 * (2.0 + reach);
    if (norm == OJ_NORM_L1 || norm == OJ_NORM_LINF)
        limit = reach + (norm == OJ_NORM_L1 ? n * e : e);
    else
    {
        limit = oj_vector_max_computed_l2(n_dimensions, reach);
        limit *= limit;
    }
    limit = limit * (1.0 + (n + 64.0) * 0x1p-23) + 0x1p-130;
    return limit < (double)FLT_MAX / 2.0
               ? nextafterf((float)limit, (float)INFINITY)
               : (float)INFINITY;
}

/* Comparison for qsort(): descending scatter. Dimensions with much scatter
 * reject most pairs, so they are tested first. Host only. */

static inline int oj_vector_compare_spreads(const void *left, const void *right)
{
    const struct oj_vector_spread *a = (const struct oj_vector_spread *)left;
    const struct oj_vector_spread *b = (const struct oj_vector_spread *)right;
    if (a->apart != b->apart)
        return a->apart > b->apart ? -1 : 1;
    return (int)(a->dimension - b->dimension);
}

/** Sorts the n elements of spread by descending scatter, and sets dimension[i]
 * and centre[i] to the dimension and the centre of element i in this order.
 * Returns the scale of the frame. */
static inline double oj_vector_frame_make(struct oj_vector_spread *spread,
                                          int64_t n, int32_t *dimension,
                                          double *centre)
{
    enum
    {
        LEAST_EXPONENT = -900 /* exponents of extents below this minimum are
                                 raised to it, since the scale could overflow */
    };
    double most = 0.0;
    int exponent;
    qsort(spread, (size_t)n, sizeof *spread, oj_vector_compare_spreads);
    for (int64_t p = 0; p < n; p++)
    {
        double low = spread[p].low, high = spread[p].high;
        double middle = low + (high - low) / 2.0;
        most = fmax(most, fmax(high - middle, middle - low));
        dimension[p] = spread[p].dimension;
        centre[p] = middle;
    }
    frexp(most, &exponent);
    return ldexp(1.0, -(exponent > LEAST_EXPONENT ? exponent : LEAST_EXPONENT));
}

#endif
