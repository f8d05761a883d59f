/** Sums of doubles that are exact until they are asked for.
 *
 *  A sum is an integer of 192 bits in two's complement times a power of two:
 *
 *     sign  limb[2] | limb[1] | limb[0]  * 2^scale
 *
 *  The scale follows the values; what does not fit into the window (values more
 *  than some hundred binary orders of magnitude apart) moves to an integer that
 *  spans all doubles and their squares.  Nothing is rounded before
 *  oj_exact_sum_value() rounds once, to nearest, ties to even.  So the result
 *  does not depend on the order of the values.
 *
 *  A sum that has met a NaN, or both infinities, is NaN; one that has met one
 *  infinity is that infinity.
 */
#ifndef OJ_EXACT_SUM_H
#define OJ_EXACT_SUM_H

#include "../flatten/oj_status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OJ_SUM_LIMBS 3

/** Zeroed memory is a valid empty sum.  Owns memory only when it is wide. */
struct oj_exact_sum
{
    union
    {
        uint64_t limb[OJ_SUM_LIMBS];
        uint64_t *wide; /**< when is_wide */
    } bits;
    int32_t scale;
    uint8_t has_value; /**< a nonzero number was added */
    uint8_t is_wide;
    uint8_t not_finite; /**< 1 met +infinity, 2 -infinity, 4 NaN, or'ed */
};

/** Adds x.  Fails only when memory for a wide sum runs out; the sum is as
 *  before then.  Some nanoseconds. */
OJ_MUST_USE oj_status oj_exact_sum_add(struct oj_exact_sum *sum, double x,
                                       struct oj_error *err);

/** Adds x * x, not rounded. */
OJ_MUST_USE oj_status oj_exact_sum_add_square(struct oj_exact_sum *sum,
                                              double x, struct oj_error *err);

OJ_MUST_USE oj_status oj_exact_sum_add_integer(struct oj_exact_sum *sum,
                                               int64_t x, struct oj_error *err);

OJ_MUST_USE oj_status oj_exact_sum_add_integer_square(struct oj_exact_sum *sum,
                                                      int64_t x,
                                                      struct oj_error *err);

/** The sum as the nearest double; beyond the largest one, an infinity. An empty
 *  sum, and zeros of any sign, give +0. */
double oj_exact_sum_value(const struct oj_exact_sum *sum);

/** The standard deviation of the sample of n values whose sum is sum and whose
 *  squares' sum is squares: the root of (squares - sum^2 / n) / (n - 1). What
 *  is under the root is exact but for one rounding of its numerator and one of
 *  the division, and never negative.  NaN for n < 2, and where a value was not
 *  finite. */
double oj_exact_sum_deviation(const struct oj_exact_sum *sum,
                              const struct oj_exact_sum *squares, int64_t n);

/** Empty afterwards. */
void oj_exact_sum_clear(struct oj_exact_sum *sum);

#ifdef __cplusplus
}
#endif
#endif
