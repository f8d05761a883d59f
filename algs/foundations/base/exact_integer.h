/** Signed integers of fixed maximum width for the exact reference: no rounding,
 *  no allocation, no failure.
 *
 *  The coordinates of a pair of features (any finite doubles), scaled to
 *  integers, have up to L = 2,098 bits. An intersection point of two segments
 *  needs up to 3 L + 5 bits, the midpoint of two such points 5 L + 10, and the
 *  orientation of that midpoint to a segment 6 L + 14, which is 12,602 bits.
 *
 *  Time is proportional to the limbs in use, not to the maximum width.
 *
 *  Source: ours; schoolbook arithmetic (Knuth, volume 2, section 4.3.1).
 */
#ifndef EXACT_INTEGER_H
#define EXACT_INTEGER_H

#include <stdint.h>

enum
{
    OJ_INTEGER_LIMBS = 400 /* 12,800 bits */
};

/** A signed integer.  Assignment copies all limbs: pass it by pointer. Needs no
 * initial value and is never freed. */
struct oj_integer
{
    int sign;                        /* -1, 0, 1 */
    int n;                           /* number of limbs in use; the last of them
                                        is not 0 */
    uint32_t limb[OJ_INTEGER_LIMBS]; /* least significant first */
};

/** Returns the largest exponent e for which value / 2^e is an integer, or
 * INT_MAX for 0. value must be finite. */
int oj_integer_exponent(double value);

/** out = value / 2^exponent, which must be an integer. */
void oj_integer_set(struct oj_integer *out, double value, int exponent);

/** out = value */
void oj_integer_set_small(struct oj_integer *out, int32_t value);

/** out = a; out may be a. */
void oj_integer_copy(struct oj_integer *out, const struct oj_integer *a);

/** out = a + b, a - b; out may be a or b. */
void oj_integer_add(struct oj_integer *out, const struct oj_integer *a,
                    const struct oj_integer *b);
void oj_integer_subtract(struct oj_integer *out, const struct oj_integer *a,
                         const struct oj_integer *b);

/** out = a * b; out is neither a nor b. */
void oj_integer_multiply(struct oj_integer *out, const struct oj_integer *a,
                         const struct oj_integer *b);

/** out = (to - from) / 2^exponent, which must be an integer. */
void oj_integer_difference(struct oj_integer *out, double to, double from,
                           int exponent);

/** out = a * b + c * d, or a * b - c * d (oj_integer_cross()); out is none of
 * the operands. */
void oj_integer_add_products(struct oj_integer *out, const struct oj_integer *a,
                             const struct oj_integer *b,
                             const struct oj_integer *c,
                             const struct oj_integer *d);
void oj_integer_cross(struct oj_integer *out, const struct oj_integer *a,
                      const struct oj_integer *b, const struct oj_integer *c,
                      const struct oj_integer *d);

/** out = -out */
void oj_integer_negate(struct oj_integer *out);

/** Returns -1, 0 or 1: a is less than, equal to or greater than b. */
int oj_integer_compare(const struct oj_integer *a, const struct oj_integer *b);

/** Approximates a / b, b > 0, as *mantissa * 2^*exponent. The mantissa has a
 * relative error of at most 2^-50; it is exactly 0 for a = 0. */
void oj_integer_ratio(const struct oj_integer *a, const struct oj_integer *b,
                      double *mantissa, int *exponent);

#endif
