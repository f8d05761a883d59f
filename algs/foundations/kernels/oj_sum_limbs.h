/** Sums of doubles that do not depend on the order of adding, so that many
 *  threads can add at once: values are cut into 32-bit digits, and the digits
 *  of each position are added as 64-bit integers (limbs).
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

/** The digits of a value: at most three, in adjacent positions. */
struct oj_limbs
{
    int first; /**< index of the limb to which digit[0] is added */
    int64_t digit[3];
};

/** What a value adds to a sum. */
enum oj_limb_kind
{
    OJ_LIMBS_NONE = 0, /**< zero: nothing to add */
    OJ_LIMBS_DIGITS,
    OJ_LIMBS_PLUS_INFINITY,
    OJ_LIMBS_MINUS_INFINITY,
    OJ_LIMBS_NAN
};

#define OJ_LIMBS_MANTISSA (((uint64_t)1 << 52) - 1)

/** Splits a finite double, given by its bits: |x| = *m * 2^*e. */
OJ_FN void oj_limbs_split_double(uint64_t bits, uint64_t *m, int *e)
{
    int exponent = (int)(bits >> 52 & 0x7ff);
    *m = bits & OJ_LIMBS_MANTISSA;
    if (exponent > 0)
        *m |= OJ_LIMBS_MANTISSA + 1;
    *e = (exponent > 0 ? exponent : 1) - 1075;
}

/** Cuts a double, given by its bits, into digits. Returns OJ_LIMBS_DIGITS if
 * *out was filled, otherwise why the double has no digits: it is 0, infinite or
 * NaN. Precondition: a finite double is a multiple of 2^base. */
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
    oj_limbs_split_double(bits, &m, &shift);
    if (m == 0)
        return OJ_LIMBS_NONE;
    shift -= base;
    if (shift < 0) /* the dropped bits are 0 */
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

/** Cuts an integer into digits, for base 0. Returns OJ_LIMBS_DIGITS, or
 * OJ_LIMBS_NONE for 0. n_limbs 1: x must be in [-2^31, 2^31); 2: any x. Only
 * the last digit is signed here. */
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

/** Returns the digit to be added to limb k, or 0 if the value has no digit for
 * this limb. */
OJ_FN int64_t oj_limbs_digit(const struct oj_limbs *limbs, int k)
{
    int i = k - limbs->first;
    int64_t digit = i == 0 ? limbs->digit[0] : 0;
    if (i == 1)
        digit = limbs->digit[1];
    return i == 2 ? limbs->digit[2] : digit;
}

#endif
