#include "exact_integer.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

/* Splits |value| into mantissa * 2^*exponent, and returns the mantissa, an
 * integer below 2^53. */
static uint64_t split_double(double value, int *exponent)
{
    double fraction = frexp(fabs(value), exponent);
    *exponent -= 53;
    return (uint64_t)ldexp(fraction, 53);
}

int oj_integer_exponent(double value)
{
    int exponent;
    uint64_t mantissa = split_double(value, &exponent);
    if (mantissa == 0)
        return INT_MAX;
    for (; (mantissa & 1) == 0; mantissa >>= 1)
        exponent++;
    return exponent;
}

/* Removes the most significant limbs that are 0. */
static void trim_top_zeros(struct oj_integer *out)
{
    while (out->n > 0 && out->limb[out->n - 1] == 0)
        out->n--;
    if (out->n == 0)
        out->sign = 0;
}

void oj_integer_set(struct oj_integer *out, double value, int exponent)
{
    int own, zeros;
    uint64_t mantissa = split_double(value, &own);
    out->sign = (value > 0.0) - (value < 0.0);
    out->n = 0;
    if (mantissa == 0)
        return;
    for (; own < exponent; own++)
    {
        assert((mantissa & 1) == 0);
        mantissa >>= 1;
    }
    zeros = own - exponent;
    assert(zeros / 32 + 3 <= OJ_INTEGER_LIMBS);
    for (; out->n < zeros / 32; out->n++)
        out->limb[out->n] = 0;
    zeros %= 32;
    out->limb[out->n++] = (uint32_t)(mantissa << zeros);
    /* the shift is from 1 to 32, because zeros is below 32 */
    mantissa = mantissa >> (32 - zeros);
    out->limb[out->n++] = (uint32_t)mantissa;
    out->limb[out->n++] = (uint32_t)(mantissa >> 32);
    trim_top_zeros(out);
}

void oj_integer_set_small(struct oj_integer *out, int32_t value)
{
    out->sign = (value > 0) - (value < 0);
    out->n = value != 0;
    out->limb[0] = (uint32_t)(value < 0 ? -(int64_t)value : value);
}

void oj_integer_copy(struct oj_integer *out, const struct oj_integer *a)
{
    out->sign = a->sign;
    out->n = a->n;
    memmove(out->limb, a->limb, (size_t)a->n * sizeof *a->limb);
}

/* Compares |a| with |b|. */
static int compare_magnitudes(const struct oj_integer *a,
                              const struct oj_integer *b)
{
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (int i = a->n - 1; i >= 0; i--)
    {
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i] ? -1 : 1;
    }
    return 0;
}

int oj_integer_compare(const struct oj_integer *a, const struct oj_integer *b)
{
    if (a->sign != b->sign)
        return a->sign < b->sign ? -1 : 1;
    return a->sign < 0 ? -compare_magnitudes(a, b) : compare_magnitudes(a, b);
}

/* out = |a| + |b|; a has at least as many limbs as b. */
static void add_magnitudes(struct oj_integer *out, const struct oj_integer *a,
                           const struct oj_integer *b)
{
    int n = a->n, n_short = b->n;
    uint64_t carry = 0;
    for (int i = 0; i < n; i++)
    {
        carry += (uint64_t)a->limb[i] + (i < n_short ? b->limb[i] : 0);
        out->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    out->n = n;
    if (carry != 0)
    {
        assert(n < OJ_INTEGER_LIMBS);
        out->limb[out->n++] = (uint32_t)carry;
    }
}

/* out = |a| - |b|; |a| >= |b|. */
static void subtract_magnitudes(struct oj_integer *out,
                                const struct oj_integer *a,
                                const struct oj_integer *b)
{
    int n = a->n, n_short = b->n;
    uint32_t borrow = 0;
    for (int i = 0; i < n; i++)
    {
        uint64_t take = (uint64_t)(i < n_short ? b->limb[i] : 0) + borrow;
        uint64_t from = a->limb[i];
        borrow = from < take;
        out->limb[i] = (uint32_t)(from - take);
    }
    out->n = n;
}

/* out = a + b, where b has the sign b_sign instead of b->sign. */
static void add_with_sign_of_second(struct oj_integer *out,
                                    const struct oj_integer *a,
                                    const struct oj_integer *b, int b_sign)
{
    int sign = a->sign;
    if (a->sign == 0 || b_sign == 0 || a->sign == b_sign)
    {
        sign = a->sign != 0 ? a->sign : b_sign;
        if (a->n >= b->n)
            add_magnitudes(out, a, b);
        else
            add_magnitudes(out, b, a);
    }
    else if (compare_magnitudes(a, b) >= 0)
        subtract_magnitudes(out, a, b);
    else
    {
        sign = b_sign;
        subtract_magnitudes(out, b, a);
    }
    out->sign = sign;
    trim_top_zeros(out);
}

void oj_integer_add(struct oj_integer *out, const struct oj_integer *a,
                    const struct oj_integer *b)
{
    add_with_sign_of_second(out, a, b, b->sign);
}

void oj_integer_subtract(struct oj_integer *out, const struct oj_integer *a,
                         const struct oj_integer *b)
{
    add_with_sign_of_second(out, a, b, -b->sign);
}

void oj_integer_multiply(struct oj_integer *out, const struct oj_integer *a,
                         const struct oj_integer *b)
{
    assert(out != a && out != b);
    out->sign = a->sign * b->sign;
    out->n = 0;
    if (out->sign == 0)
        return;
    out->n = a->n + b->n;
    assert(out->n <= OJ_INTEGER_LIMBS);
    memset(out->limb, 0, (size_t)out->n * sizeof *out->limb);
    for (int i = 0; i < a->n; i++)
    {
        uint64_t carry = 0;
        for (int j = 0; j < b->n; j++)
        {
            carry += (uint64_t)a->limb[i] * b->limb[j] + out->limb[i + j];
            out->limb[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        out->limb[i + b->n] = (uint32_t)carry;
    }
    trim_top_zeros(out);
}

void oj_integer_difference(struct oj_integer *out, double to, double from,
                           int exponent)
{
    struct oj_integer less;
    oj_integer_set(out, to, exponent);
    oj_integer_set(&less, from, exponent);
    oj_integer_subtract(out, out, &less);
}

void oj_integer_add_products(struct oj_integer *out, const struct oj_integer *a,
                             const struct oj_integer *b,
                             const struct oj_integer *c,
                             const struct oj_integer *d)
{
    struct oj_integer other;
    oj_integer_multiply(out, a, b);
    oj_integer_multiply(&other, c, d);
    oj_integer_add(out, out, &other);
}

void oj_integer_cross(struct oj_integer *out, const struct oj_integer *a,
                      const struct oj_integer *b, const struct oj_integer *c,
                      const struct oj_integer *d)
{
    struct oj_integer other;
    oj_integer_multiply(out, a, b);
    oj_integer_multiply(&other, c, d);
    oj_integer_subtract(out, out, &other);
}

void oj_integer_negate(struct oj_integer *out)
{
    out->sign = -out->sign;
}

/* Approximates |a| by the returned number times 2^*exponent, from the three
 * highest limbs. The relative error is below 2^-51. a is not 0. */
static double approximate_magnitude(const struct oj_integer *a, int *exponent)
{
    double value = 0.0;
    int last = a->n > 3 ? a->n - 3 : 0;
    for (int i = a->n - 1; i >= last; i--)
        value = value * 0x1p32 + (double)a->limb[i];
    *exponent = 32 * last;
    return value;
}

void oj_integer_ratio(const struct oj_integer *a, const struct oj_integer *b,
                      double *mantissa, int *exponent)
{
    int a_exponent, b_exponent;
    *mantissa = 0.0;
    *exponent = 0;
    if (a->sign == 0)
        return;
    *mantissa = a->sign * approximate_magnitude(a, &a_exponent) /
                approximate_magnitude(b, &b_exponent);
    *exponent = a_exponent - b_exponent;
}
