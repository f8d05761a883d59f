/** Exact sums of products of doubles, as the truth for orientation signs: a
 *  fixed-point number wide enough for every product of two finite doubles.
 *  Slow and plain.  Include once, in a test program. */
#ifndef EXACT_SIGN_H
#define EXACT_SIGN_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Word 0, bit 0 stands for 2^-2148, the smallest bit a product can have; two's
 * complement. 2148 + 2048 bits and room for carries: 68 words. */
#define EXACT_WORDS 68
#define EXACT_LOWEST 2148

struct exact
{
    uint64_t word[EXACT_WORDS];
};

/* Adds or subtracts magnitude * 2^(64 * at). */
static inline void exact_add_word(struct exact *sum, int at, uint64_t magnitude,
                                  int negative)
{
    for (; magnitude != 0 && at < EXACT_WORDS; at++)
    {
        uint64_t old = sum->word[at];
        uint64_t now = negative ? old - magnitude : old + magnitude;
        sum->word[at] = now;
        magnitude = negative ? now > old : now < old; /* the carry */
    }
}

/* |v| = mantissa * 2^exponent, mantissa < 2^53. */
static inline uint64_t exact_split(double v, int *exponent)
{
    double fraction = frexp(fabs(v), exponent);
    *exponent -= 53;
    return (uint64_t)ldexp(fraction, 53);
}

/* sum += a * b */
static inline void exact_add_product(struct exact *sum, double a, double b)
{
    int a_exponent, b_exponent, shift, at, negative;
    uint64_t a_mantissa, b_mantissa, part[3];
    unsigned __int128 product;
    if (a == 0.0 || b == 0.0)
        return;
    a_mantissa = exact_split(a, &a_exponent);
    b_mantissa = exact_split(b, &b_exponent);
    negative = (a < 0.0) != (b < 0.0);
    product = (unsigned __int128)a_mantissa * b_mantissa;
    shift = a_exponent + b_exponent + EXACT_LOWEST;
    if (shift < 0) /* of a subnormal; its lowest bits are zeros */
    {
        product >>= -shift;
        shift = 0;
    }
    at = shift / 64;
    shift %= 64;
    part[0] = (uint64_t)(product << shift);
    part[1] = (uint64_t)(shift > 0 ? product >> (64 - shift) : product >> 64);
    part[2] = (uint64_t)(shift > 0 ? product >> 64 >> (64 - shift) : 0);
    for (int i = 0; i < 3; i++)
        exact_add_word(sum, at + i, part[i], negative);
}

static inline int exact_sum_sign(const struct exact *sum)
{
    if (sum->word[EXACT_WORDS - 1] >> 63)
        return -1;
    for (int i = 0; i < EXACT_WORDS; i++)
    {
        if (sum->word[i] != 0)
            return 1;
    }
    return 0;
}

/* On which side of a -> b c lies: 1 left, -1 right, 0 on the line. */
static inline int exact_orientation(double ax, double ay, double bx, double by,
                                    double cx, double cy)
{
    struct exact sum;
    memset(&sum, 0, sizeof sum);
    exact_add_product(&sum, ax, by);
    exact_add_product(&sum, -ax, cy);
    exact_add_product(&sum, bx, cy);
    exact_add_product(&sum, -bx, ay);
    exact_add_product(&sum, cx, ay);
    exact_add_product(&sum, -cx, by);
    return exact_sum_sign(&sum);
}

#endif
