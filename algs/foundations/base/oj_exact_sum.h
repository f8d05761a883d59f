/** Sums of doubles that are exact until they are asked for.
 *
 *  A sum is an integer of 192 bits in two's complement times a power of two:
 *
 *     sign  limb[2] | limb[1] | limb[0]  * 2^scale
 *
 *  The scale is that of the first value less some bits; what does not fit into
 *  the window (values more than some twelve orders of magnitude smaller, or far
 *  larger) moves to an integer that spans all doubles and their squares.
 * Nothing is rounded before oj_exact_sum_value() rounds once, to nearest, ties
 * to even.  So the result does not depend on the order of the values.
 *
 *  A sum that has met a NaN, or both infinities, is NaN; one that has met one
 *  infinity is that infinity.
 */
#ifndef OJ_EXACT_SUM_H
#define OJ_EXACT_SUM_H

#include "../../../flatten/base/oj_status.h"

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OJ_SUM_LIMBS 3

/** The last limb is within +-2^OJ_SUM_TOP_BITS before a value is added. */
#define OJ_SUM_TOP_BITS 61

/** Digits of 32 bits between the smallest and the largest double. */
#define OJ_SUM_MOST_WORDS 66

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

/** Adds all that was added to other. */
OJ_MUST_USE oj_status oj_exact_sum_merge(struct oj_exact_sum *sum,
                                         const struct oj_exact_sum *other,
                                         struct oj_error *err);

/** Adds limb[0] * 2^scale + limb[1] * 2^(scale + 32) + ..., as oj_sum_limbs.h
 * has them; n <= OJ_SUM_MOST_WORDS.  OJ_ERR_NOMEM: it may be added in part. */
OJ_MUST_USE oj_status oj_exact_sum_add_limbs(struct oj_exact_sum *sum,
                                             const int64_t *limb, int n,
                                             int scale, struct oj_error *err);

/** Whether infinities or NaNs were among the values. */
void oj_exact_sum_meet(struct oj_exact_sum *sum, int plus_infinity,
                       int minus_infinity, int nan);

/** Adds x where that is simple, which it is for most values: 1; or does
 * nothing: 0.  A few instructions. */
static inline int oj_exact_sum_try(struct oj_exact_sum *sum, double x)
{
    uint64_t bits, m, low, high, top = sum->bits.limb[2];
    int exponent, shift;
    memcpy(&bits, &x, sizeof bits);
    exponent = (int)(bits >> 52 & 0x7ff);
    shift = exponent - 1075 - sum->scale;
    /* the top is as far from its sign bit as OJ_SUM_TOP_BITS say */
    if (!sum->has_value || sum->is_wide || exponent == 0 || exponent == 0x7ff ||
        shift < 0 || shift > 61 ||
        top + (UINT64_C(1) << OJ_SUM_TOP_BITS) >= UINT64_C(2)
                                                      << OJ_SUM_TOP_BITS)
        return 0;
    m = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    low = m << shift;
    high = shift > 0 ? m >> (64 - shift) : 0;
    if (bits >> 63 == 0)
    {
        uint64_t sum0 = sum->bits.limb[0] + low, sum1, carry = sum0 < low;
        high += carry; /* below 2^50: nothing is carried out */
        sum1 = sum->bits.limb[1] + high;
        sum->bits.limb[2] = top + (sum1 < high);
        sum->bits.limb[1] = sum1;
        sum->bits.limb[0] = sum0;
    }
    else
    {
        uint64_t borrow = sum->bits.limb[0] < low;
        sum->bits.limb[0] -= low;
        high += borrow;
        sum->bits.limb[2] = top - (sum->bits.limb[1] < high);
        sum->bits.limb[1] -= high;
    }
    return 1;
}

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
