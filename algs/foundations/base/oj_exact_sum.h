/** Exact sums of doubles, rounded once when the result is read.
 *
 *  A sum is an integer of 192 bits in two's complement times a power of two:
 *
 *     sign  limb[2] | limb[1] | limb[0]  * 2^scale
 *
 *  The first value determines the scale. When a value does not fit (about
 *  twelve orders of magnitude smaller, or far larger), the sum is converted to
 *  a wide integer for all doubles and their squares.  Only the functions that
 *  read a result round: oj_exact_sum_value() once, to nearest, ties to even.
 *  So the result does not depend on the order of the values.
 *
 *  After a NaN or infinities of both signs the sum is NaN; after infinities of
 *  one sign it is that infinity.
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

/** Limit for the fast path: the top limb, read as signed, must be in
 * [-2^OJ_SUM_TOP_BITS, 2^OJ_SUM_TOP_BITS), so that adding one value cannot
 * overflow it. */
#define OJ_SUM_TOP_BITS 61

/** Maximum number of 32-bit limbs (oj_sum_limbs.h) that cover all doubles. */
#define OJ_SUM_MOST_WORDS 66

/** An exact sum. Zeroed memory is a valid empty sum. Only a wide sum owns
 * memory. */
struct oj_exact_sum
{
    union
    {
        uint64_t limb[OJ_SUM_LIMBS];
        uint64_t *wide; /**< used when is_wide is set */
    } bits;
    int32_t scale;
    uint8_t has_value; /**< 1: a number other than 0 was added */
    uint8_t is_wide;
    uint8_t not_finite; /**< bits or'ed: 1 +infinity, 2 -infinity, 4 NaN was
                             added */
};

/** Adds x in a few nanoseconds. Fails only if memory for a wide sum runs out;
 * the sum is then unchanged. */
OJ_MUST_USE oj_status oj_exact_sum_add(struct oj_exact_sum *sum, double x,
                                       struct oj_error *err);

/** Adds x * x without rounding. */
OJ_MUST_USE oj_status oj_exact_sum_add_square(struct oj_exact_sum *sum,
                                              double x, struct oj_error *err);

OJ_MUST_USE oj_status oj_exact_sum_add_integer(struct oj_exact_sum *sum,
                                               int64_t x, struct oj_error *err);

OJ_MUST_USE oj_status oj_exact_sum_add_integer_square(struct oj_exact_sum *sum,
                                                      int64_t x,
                                                      struct oj_error *err);

/** A factor of a product: the integer if is_integer, otherwise the double. */
struct oj_exact_factor
{
    double real;
    int64_t integer;
    int is_integer;
};

/** Adds x * y without rounding. If a factor is not finite, adds their product
 * in double arithmetic (an infinity or NaN). */
OJ_MUST_USE oj_status oj_exact_sum_add_product(struct oj_exact_sum *sum,
                                               struct oj_exact_factor x,
                                               struct oj_exact_factor y,
                                               struct oj_error *err);

/** Adds another sum without rounding. After OJ_ERR_NOMEM *sum may contain a
 * part of it. */
OJ_MUST_USE oj_status oj_exact_sum_merge(struct oj_exact_sum *sum,
                                         const struct oj_exact_sum *other,
                                         struct oj_error *err);

/** Adds limb[0] * 2^scale + limb[1] * 2^(scale + 32) + ..., a sum in the layout
 * of oj_sum_limbs.h; n <= OJ_SUM_MOST_WORDS. After OJ_ERR_NOMEM the sum may
 * contain some of these limbs. */
OJ_MUST_USE oj_status oj_exact_sum_add_limbs(struct oj_exact_sum *sum,
                                             const int64_t *limb, int n,
                                             int scale, struct oj_error *err);

/** Adds infinities or NaN, which were found among values whose finite part was
 * added by oj_exact_sum_add_limbs(). Each of plus_infinity, minus_infinity and
 * nan is nonzero if there was at least one such value. */
void oj_exact_sum_add_nonfinite(struct oj_exact_sum *sum, int plus_infinity,
                                int minus_infinity, int nan);

/** Adds x and returns 1 if x is a normal number that fits into a narrow sum;
 * otherwise does nothing and returns 0. The fast path of oj_exact_sum_add(). */
static inline int oj_exact_sum_add_fast(struct oj_exact_sum *sum, double x)
{
    uint64_t bits, m, low, high, top = sum->bits.limb[2];
    int exponent, shift;
    memcpy(&bits, &x, sizeof bits);
    exponent = (int)(bits >> 52 & 0x7ff);
    shift = exponent - 1075 - sum->scale;
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
        high += carry; /* high is below 2^50, so adding the carry cannot
                          overflow */
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

/** Returns the sum rounded to the nearest double, or an infinity beyond the
 * largest double. An empty sum and a sum of zeros are +0. */
double oj_exact_sum_value(const struct oj_exact_sum *sum);

/** Returns sum / divisor. Both are rounded to 53 bits, and then their quotient.
 * Sums beyond the range of doubles are allowed. NaN for 0 / 0. */
double oj_exact_sum_ratio(const struct oj_exact_sum *sum,
                          const struct oj_exact_sum *divisor);

/** Returns the sample standard deviation sqrt((squares - sum^2 / n) / (n - 1))
 * of n values, from their sum and their sum of squares. The difference is
 * computed exactly, so it is never negative. NaN for n < 2 or if a value was
 * not finite.
 */
double oj_exact_sum_deviation(const struct oj_exact_sum *sum,
                              const struct oj_exact_sum *squares, int64_t n);

/** Returns the sample variance, (squares - sum^2 / n) / (n - 1). */
double oj_exact_sum_variance(const struct oj_exact_sum *sum,
                             const struct oj_exact_sum *squares, int64_t n);

/** Returns 1 and sets *out if the sum is an integer of 64 bits, otherwise 0. */
int oj_exact_sum_integer(const struct oj_exact_sum *sum, int64_t *out);

/** Maximum number of words that oj_exact_sum_write_words() writes. */
#define OJ_SUM_MOST_LONG_WORDS 71

/** Serialises the sum to 64-bit words, and returns their number: 0 for a sum of
 * 0. Equal sums have equal words, however they were added up.
 *
 *     word[0]        place | not_finite << 8
 *     word[1 .. n)   an integer in two's complement, the lowest word first,
 *                    without redundant words at either end
 *     sum            integer * 2^(64 * place - 2240)
 *
 *  If n is 1, the integer is 0. */
int oj_exact_sum_write_words(const struct oj_exact_sum *sum, uint64_t *word);

/** Adds a sum that oj_exact_sum_write_words() has written as n words.
 * OJ_ERR_DATA if they are invalid; the sum is then unchanged. */
OJ_MUST_USE oj_status oj_exact_sum_add_words(struct oj_exact_sum *sum,
                                             const uint64_t *word, int64_t n,
                                             struct oj_error *err);

/** Frees a wide sum's memory and makes the sum empty. */
void oj_exact_sum_clear(struct oj_exact_sum *sum);

#ifdef __cplusplus
}
#endif
#endif
