/** Sums that do not depend on the order of adding, for many threads at once:
 *  values are cut into digits of 32 bits, and digits of one place are added as
 *  whole numbers of 64 bits.
 *
 *   value             | digit 2 | digit 1 | digit 0 |  * 2^base
 *   limbs of a sum    | sum of digits 2 | sum of digits 1 | sum of digits 0 |
 *
 *  A digit has the sign of its value.  With fewer than 2^31 values no limb
 *  overflows.  Limbs overlap: the reader must propagate carries
 *  (oj_exact_sum_add_limbs()).
 */
#ifndef OJ_SUM_LIMBS_H
#define OJ_SUM_LIMBS_H

#include "oj_kernel.h"

#define OJ_LIMB_BITS 32

/** The digits of a value: at most three, adjacent. */
struct oj_limbs
{
    int first; /**< the limb that digit[0] is added to */
    int64_t digit[3];
};

enum oj_limb_kind
{
    OJ_LIMBS_NONE = 0, /**< zero: nothing to add */
    OJ_LIMBS_DIGITS,
    OJ_LIMBS_PLUS_INFINITY,
    OJ_LIMBS_MINUS_INFINITY,
    OJ_LIMBS_NAN
};

#define OJ_LIMBS_MANTISSA (((uint64_t)1 << 52) - 1)

/** Splits a finite double, given as bits: |x| = *m * 2^*e. */
OJ_FN void oj_limbs_split(uint64_t bits, uint64_t *m, int *e)
{
    int exponent = (int)(bits >> 52 & 0x7ff);
    *m = bits & OJ_LIMBS_MANTISSA;
    if (exponent > 0)
        *m |= OJ_LIMBS_MANTISSA + 1;
    *e = (exponent > 0 ? exponent : 1) - 1075;
}

/** Cuts a double, given as bits, into digits. It must have no bit below 2^base.
 */
OJ_FN enum oj_limb_kind oj_limbs_of_real(uint64_t bits, int base,
                                         struct oj_limbs *out)
{
    int64_t sign = bits >> 63 != 0 ? -1 : 1;
    uint64_t m, low;
    int shift;
    if ((bits >> 52 & 0x7ff) == 0x7ff)
    {
        if ((bits & OJ_LIMBS_MANTISSA) != 0)
            return OJ_LIMBS_NAN;
        return sign > 0 ? OJ_LIMBS_PLUS_INFINITY : OJ_LIMBS_MINUS_INFINITY;
    }
    oj_limbs_split(bits, &m, &shift);
    if (m == 0)
        return OJ_LIMBS_NONE;
    shift -= base;
    if (shift < 0) /* the bits that are dropped are zeros */
    {
        m >>= -shift;
        shift = 0;
    }
    out->first = shift / OJ_LIMB_BITS;
    shift %= OJ_LIMB_BITS;
    low = m << shift;
    out->digit[0] = sign * (int64_t)(low & 0xffffffffu);
    out->digit[1] = sign * (int64_t)(low >> 32);
    out->digit[2] = shift > 0 ? sign * (int64_t)(m >> (64 - shift)) : 0;
    return OJ_LIMBS_DIGITS;
}

/** Cuts an integer into digits; base is 0. n_limbs 1: x must be in [-2^31,
 * 2^31); 2: any x. Here only the last digit has the sign. */
OJ_FN enum oj_limb_kind oj_limbs_of_integer(int64_t x, int n_limbs,
                                            struct oj_limbs *out)
{
    int64_t low = (int64_t)((uint64_t)x & 0xffffffffu);
    out->first = 0;
    out->digit[0] = n_limbs > 1 ? low : x;
    out->digit[1] = n_limbs > 1 ? (x - low) / ((int64_t)1 << 32) : 0;
    out->digit[2] = 0;
    return x != 0 ? OJ_LIMBS_DIGITS : OJ_LIMBS_NONE;
}

/** The digit to add to limb k; 0 if there is none. */
OJ_FN int64_t oj_limbs_digit(const struct oj_limbs *limbs, int k)
{
    int i = k - limbs->first;
    int64_t digit = i == 0 ? limbs->digit[0] : 0;
    if (i == 1)
        digit = limbs->digit[1];
    return i == 2 ? limbs->digit[2] : digit;
}

#endif
