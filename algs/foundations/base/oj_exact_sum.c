#include "oj_exact_sum.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../kernels/oj_sum_limbs.h"

#include <math.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

enum
{
    /* A wide sum holds sums of up to 2^63 doubles or squares of doubles: from
     * 2^-2148, the smallest square, to 2^2111. WIDE_SCALE leaves 92 spare bits
     * below. */
    WIDE_LIMBS = 70,
    WIDE_SCALE = -2240,

    /* bits kept free below the first value of a narrow (192-bit) sum, for
     * smaller values that follow */
    ROOM_BELOW = 40,

    /* a narrow sum only accepts values below 2^(scale + WINDOW_BITS); with the
     * limit on the sum itself (top_bound) no addition overflows */
    WINDOW_BITS = 64 * OJ_SUM_LIMBS - 3,

    /* number of limbs and scale of n * squares - sum^2, for wide sums */
    SQUARE_LIMBS = 2 * WIDE_LIMBS + 4,
    SQUARE_SCALE = 2 * WIDE_SCALE
};

static const int64_t top_bound = INT64_C(1) << OJ_SUM_TOP_BITS;

static int bit_length(u128 m)
{
    uint64_t high = (uint64_t)(m >> 64), low = (uint64_t)m;
    if (high != 0)
        return 128 - __builtin_clzll(high);
    return low != 0 ? 64 - __builtin_clzll(low) : 0;
}

/* Adds m * 2^shift to n limbs in two's complement, or subtracts it if negative
 * is set. A carry out of the last limb is dropped. */
static inline void add_shifted_to_limbs(uint64_t *limb, int n, u128 m,
                                        int negative, int shift)
{
    int k = shift >> 6, s = shift & 63;
    uint64_t low = (uint64_t)m, high = (uint64_t)(m >> 64), part[3];
    part[0] = low << s;
    part[1] = s != 0 ? (low >> (64 - s)) | (high << s) : high;
    part[2] = s != 0 ? high >> (64 - s) : 0;
    if (negative)
    {
        unsigned borrow = 0;
        for (int i = k; i < n && (i < k + 3 || borrow != 0); i++)
        {
            uint64_t take = i < k + 3 ? part[i - k] : 0, old = limb[i];
            limb[i] = old - take - borrow;
            borrow = borrow != 0 ? old <= take : old < take;
        }
        return;
    }
    for (int i = k, carry = 0; i < n && (i < k + 3 || carry != 0); i++)
    {
        uint64_t give = i < k + 3 ? part[i - k] : 0;
        uint64_t first = limb[i] + give, second = first + (unsigned)carry;
        carry = first < give || second < first;
        limb[i] = second;
    }
}

/* Replaces n limbs in two's complement by their magnitude; returns 1 if they
 * were negative. */
static int negate_if_negative(uint64_t *limb, int n)
{
    unsigned carry = 1;
    if ((limb[n - 1] >> 63) == 0)
        return 0;
    for (int i = 0; i < n; i++)
    {
        limb[i] = ~limb[i] + carry;
        carry = carry != 0 && limb[i] == 0;
    }
    return 1;
}

/* Adds a narrow sum to the limbs of a wide one. */
static void add_narrow_sum_to_wide_limbs(const struct oj_exact_sum *sum,
                                         uint64_t *wide)
{
    uint64_t limb[OJ_SUM_LIMBS];
    int negative;
    memcpy(limb, sum->bits.limb, sizeof limb);
    negative = negate_if_negative(limb, OJ_SUM_LIMBS);
    for (int i = 0; i < OJ_SUM_LIMBS; i++)
        add_shifted_to_limbs(wide, WIDE_LIMBS, limb[i], negative,
                             sum->scale + 64 * i - WIDE_SCALE);
}

static oj_status widen_sum_to_all_exponents(struct oj_exact_sum *sum,
                                            struct oj_error *err)
{
    uint64_t *wide = oj_calloc(WIDE_LIMBS, sizeof *wide);
    if (wide == NULL)
        return oj_fail_nomem(err, WIDE_LIMBS, sizeof *wide);
    add_narrow_sum_to_wide_limbs(sum, wide);
    sum->bits.wide = wide;
    sum->scale = WIDE_SCALE;
    sum->is_wide = 1;
    return OJ_OK;
}

/* Returns 1 if m * 2^e can be added to a narrow (192-bit) sum. */
static int fits_in_narrow_sum(const struct oj_exact_sum *sum, u128 m, int e)
{
    int64_t top = (int64_t)sum->bits.limb[OJ_SUM_LIMBS - 1];
    return top < top_bound && top >= -top_bound &&
           e - sum->scale + bit_length(m) <= WINDOW_BITS &&
           (e >= sum->scale || e + bit_length(m & (~m + 1)) - 1 >= sum->scale);
}

/* Adds m * 2^e, m > 0. */
static oj_status add_integer_times_power_of_2(struct oj_exact_sum *sum, u128 m,
                                              int e, int negative,
                                              struct oj_error *err)
{
    if (!sum->has_value)
    {
        sum->has_value = 1;
        sum->scale = e - ROOM_BELOW;
    }
    if (!sum->is_wide && !fits_in_narrow_sum(sum, m, e))
        OJ_TRY(widen_sum_to_all_exponents(sum, err));
    if (e < sum->scale) /* the dropped bits are all 0: fits_in_narrow_sum() has
                           tested them, and a wide sum covers all doubles */
    {
        m >>= sum->scale - e;
        e = sum->scale;
    }
    add_shifted_to_limbs(sum->is_wide ? sum->bits.wide : sum->bits.limb,
                         sum->is_wide ? WIDE_LIMBS : OJ_SUM_LIMBS, m, negative,
                         e - sum->scale);
    return OJ_OK;
}

/* Splits x: |x| = *m * 2^*e, and *negative is 1 if x is negative. Returns 0 for
 * zero, infinities and NaN. Records infinities and NaN in sum. */
static int split_double(struct oj_exact_sum *sum, double x, uint64_t *m, int *e,
                        int *negative)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    *negative = bits >> 63 != 0;
    if ((bits >> 52 & 0x7ff) == 0x7ff)
    {
        sum->not_finite |= x != x ? 4 : *negative ? 2 : 1;
        return 0;
    }
    oj_limbs_split_double(bits, m, e);
    return *m != 0;
}

oj_status oj_exact_sum_add(struct oj_exact_sum *sum, double x,
                           struct oj_error *err)
{
    uint64_t m;
    int e, negative;
    if (!split_double(sum, x, &m, &e, &negative))
        return OJ_OK;
    return add_integer_times_power_of_2(sum, m, e, negative, err);
}

oj_status oj_exact_sum_add_square(struct oj_exact_sum *sum, double x,
                                  struct oj_error *err)
{
    uint64_t m;
    int e, negative;
    if (!split_double(sum, x, &m, &e, &negative))
        return OJ_OK;
    return add_integer_times_power_of_2(sum, (u128)m * m, 2 * e, 0, err);
}

static uint64_t absolute_value_as_unsigned(int64_t x)
{
    return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}

oj_status oj_exact_sum_add_integer(struct oj_exact_sum *sum, int64_t x,
                                   struct oj_error *err)
{
    return x != 0 ? add_integer_times_power_of_2(
                        sum, absolute_value_as_unsigned(x), 0, x < 0, err)
                  : OJ_OK;
}

oj_status oj_exact_sum_add_integer_square(struct oj_exact_sum *sum, int64_t x,
                                          struct oj_error *err)
{
    u128 m = absolute_value_as_unsigned(x);
    return x != 0 ? add_integer_times_power_of_2(sum, m * m, 0, 0, err) : OJ_OK;
}

/* Splits a finite factor: |x| = *m * 2^*e, and *negative is 1 if x is
 * negative. */
static void split_factor(struct oj_exact_factor x, uint64_t *m, int *e,
                         int *negative)
{
    uint64_t bits;
    if (x.is_integer)
    {
        *m = absolute_value_as_unsigned(x.integer);
        *e = 0;
        *negative = x.integer < 0;
        return;
    }
    memcpy(&bits, &x.real, sizeof bits);
    *negative = bits >> 63 != 0;
    oj_limbs_split_double(bits, m, e);
}

oj_status oj_exact_sum_add_product(struct oj_exact_sum *sum,
                                   struct oj_exact_factor x,
                                   struct oj_exact_factor y,
                                   struct oj_error *err)
{
    const double u = x.is_integer ? (double)x.integer : x.real;
    const double v = y.is_integer ? (double)y.integer : y.real;
    uint64_t m[2];
    int e[2], negative[2];
    if (!isfinite(u) || !isfinite(v))
        return oj_exact_sum_add(sum, u * v, err);
    split_factor(x, &m[0], &e[0], &negative[0]);
    split_factor(y, &m[1], &e[1], &negative[1]);
    if (m[0] == 0 || m[1] == 0)
        return OJ_OK;
    return add_integer_times_power_of_2(sum, (u128)m[0] * m[1], e[0] + e[1],
                                        negative[0] != negative[1], err);
}

/* Copies the limbs, in two's complement, and the scale of a sum. Returns the
 * number of limbs. */
static int copy_limbs(const struct oj_exact_sum *sum, uint64_t *limb,
                      int *scale)
{
    int n = sum->is_wide ? WIDE_LIMBS : OJ_SUM_LIMBS;
    memcpy(limb, sum->is_wide ? sum->bits.wide : sum->bits.limb,
           (size_t)n * sizeof *limb);
    *scale = sum->scale;
    return n;
}

oj_status oj_exact_sum_merge(struct oj_exact_sum *sum,
                             const struct oj_exact_sum *other,
                             struct oj_error *err)
{
    uint64_t limb[WIDE_LIMBS];
    int n, scale, negative;
    sum->not_finite |= other->not_finite;
    if (!other->has_value)
        return OJ_OK;
    n = copy_limbs(other, limb, &scale);
    negative = negate_if_negative(limb, n);
    for (int i = 0; i < n; i++)
    {
        if (limb[i] != 0)
            OJ_TRY(add_integer_times_power_of_2(sum, limb[i], scale + 64 * i,
                                                negative, err));
    }
    return OJ_OK;
}

oj_status oj_exact_sum_add_limbs(struct oj_exact_sum *sum, const int64_t *limb,
                                 int n, int scale, struct oj_error *err)
{
    for (int i = 0; i < n; i++)
    {
        if (limb[i] != 0)
            OJ_TRY(add_integer_times_power_of_2(
                sum, absolute_value_as_unsigned(limb[i]), scale + 32 * i,
                limb[i] < 0, err));
    }
    return OJ_OK;
}

void oj_exact_sum_add_nonfinite(struct oj_exact_sum *sum, int plus_infinity,
                                int minus_infinity, int nan)
{
    sum->not_finite |= (uint8_t)((plus_infinity ? 1 : 0) |
                                 (minus_infinity ? 2 : 0) | (nan ? 4 : 0));
}

/* Returns the most significant 64 bits of an unsigned number, and sets *scale
 * to the exponent of the lowest of them. Returns 0 for zero. The lowest bit is
 * also set if any bit below it is set (sticky bit). */
static uint64_t top_64_bits_of_limbs(const uint64_t *limb, int n, int *scale)
{
    uint64_t top, rest = 0;
    int k = n - 1, s;
    while (k >= 0 && limb[k] == 0)
        k--;
    if (k < 0)
        return 0;
    s = __builtin_clzll(limb[k]);
    top = limb[k] << s;
    *scale += 64 * k - s;
    if (s > 0 && k > 0)
    {
        top |= limb[k - 1] >> (64 - s);
        rest = limb[k - 1] << s;
    }
    else if (k > 0)
        rest = limb[k - 1];
    for (int i = k - 2; i >= 0; i--)
        rest |= limb[i];
    return top | (rest != 0);
}

/* Returns top, whose highest bit is set, without its lowest `drop` bits,
 * rounded to nearest, ties to even. */
static uint64_t round_to_even_dropping_bits(uint64_t top, int drop)
{
    uint64_t kept, rest, half;
    if (drop >= 65)
        return 0;
    if (drop == 64)
        return top > UINT64_C(1) << 63;
    kept = top >> drop;
    rest = top - (kept << drop);
    half = UINT64_C(1) << (drop - 1);
    return kept + (rest > half || (rest == half && (kept & 1) != 0));
}

/* Returns x * 2^e for an integer x up to 2^53. If 2^e is a normal number, this
 * is a multiplication, which is faster than ldexp(); the product is then exact
 * or infinite. */
static double multiply_by_power_of_2(double x, int e)
{
    uint64_t bits;
    double power;
    if (e < -1022 || e > 1023)
        return ldexp(x, e);
    bits = (uint64_t)(e + 1023) << 52;
    memcpy(&power, &bits, sizeof power);
    return x * power;
}

static double magnitude_to_double(const uint64_t *limb, int n, int scale)
{
    uint64_t top = top_64_bits_of_limbs(limb, n, &scale);
    int drop = 11; /* 64 - 53: the bits beyond a double's mantissa */
    if (top == 0)
        return 0.0;
    if (scale + drop < -1074)
        drop = -1074 - scale;
    return multiply_by_power_of_2(
        (double)round_to_even_dropping_bits(top, drop), scale + drop);
}

/* Returns the double nearest to limbs * 2^scale. The limbs are in two's
 * complement, and are overwritten. */
static double signed_limbs_to_double(uint64_t *limb, int n, int scale)
{
    int negative = negate_if_negative(limb, n);
    double value = magnitude_to_double(limb, n, scale);
    return negative && value != 0.0 ? -value : value;
}

double oj_exact_sum_value(const struct oj_exact_sum *sum)
{
    uint64_t limb[OJ_SUM_LIMBS], wide[WIDE_LIMBS];
    if ((sum->not_finite & 4) != 0 || sum->not_finite == 3)
        return (double)NAN;
    if (sum->not_finite != 0)
        return sum->not_finite == 1 ? (double)INFINITY : -(double)INFINITY;
    if (!sum->has_value)
        return 0.0;
    if (sum->is_wide)
    {
        memcpy(wide, sum->bits.wide, sizeof wide);
        return signed_limbs_to_double(wide, WIDE_LIMBS, sum->scale);
    }
    memcpy(limb, sum->bits.limb, sizeof limb);
    return signed_limbs_to_double(limb, OJ_SUM_LIMBS, sum->scale);
}

/* Rounds |sum| to 53 bits: the rounded sum is the returned number times
 * 2^*scale. Sets *negative to 1 if the sum is negative. */
static uint64_t round_sum_to_53_bits(const struct oj_exact_sum *sum, int *scale,
                                     int *negative)
{
    uint64_t limb[WIDE_LIMBS], top;
    int n;
    *negative = *scale = 0;
    if (!sum->has_value)
        return 0;
    n = copy_limbs(sum, limb, scale);
    *negative = negate_if_negative(limb, n);
    top = top_64_bits_of_limbs(limb, n, scale);
    if (top == 0)
        return 0;
    *scale += 11;
    return round_to_even_dropping_bits(top, 11);
}

double oj_exact_sum_ratio(const struct oj_exact_sum *sum,
                          const struct oj_exact_sum *divisor)
{
    int scale[2], negative[2];
    uint64_t m[2];
    double ratio;
    if (sum->not_finite != 0 || divisor->not_finite != 0)
        return oj_exact_sum_value(sum) / oj_exact_sum_value(divisor);
    m[0] = round_sum_to_53_bits(sum, &scale[0], &negative[0]);
    m[1] = round_sum_to_53_bits(divisor, &scale[1], &negative[1]);
    if (m[0] == 0 && m[1] == 0)
        return (double)NAN;
    if (m[0] == 0)
        return 0.0;
    ratio = ldexp((double)m[0] / (double)m[1], scale[0] - scale[1]);
    return negative[0] != negative[1] ? -ratio : ratio;
}

/* Rounds n * squares - sum^2, the numerator of the variance, to 53 bits: the
 * rounded number is the returned number times 2^*scale. Precondition: all
 * values were finite. */
static uint64_t
round_variance_numerator_to_53_bits(const struct oj_exact_sum *sum,
                                    const struct oj_exact_sum *squares,
                                    int64_t n, int *scale)
{
    uint64_t a[WIDE_LIMBS], b[WIDE_LIMBS], d[SQUARE_LIMBS] = {0};
    uint64_t top;
    int scale_a, scale_b, n_a, n_b;
    *scale = SQUARE_SCALE;
    n_a = copy_limbs(sum, a, &scale_a);
    n_b = copy_limbs(squares, b, &scale_b);
    negate_if_negative(a, n_a);
    for (int i = 0; i < n_b; i++)
    {
        if (b[i] != 0)
            add_shifted_to_limbs(d, SQUARE_LIMBS, (u128)b[i] * (uint64_t)n, 0,
                                 scale_b + 64 * i - SQUARE_SCALE);
    }
    for (int i = 0; i < n_a; i++)
    {
        for (int j = 0; j < n_a; j++)
        {
            if (a[i] != 0 && a[j] != 0)
                add_shifted_to_limbs(d, SQUARE_LIMBS, (u128)a[i] * a[j], 1,
                                     2 * scale_a + 64 * (i + j) - SQUARE_SCALE);
        }
    }
    top = top_64_bits_of_limbs(d, SQUARE_LIMBS, scale);
    if (top == 0)
        return 0;
    *scale += 11;
    return round_to_even_dropping_bits(top, 11);
}

static double divisor_of_variance(int64_t n)
{
    return (double)n * (double)(n - 1);
}

static int is_deviation_defined(const struct oj_exact_sum *sum,
                                const struct oj_exact_sum *squares, int64_t n)
{
    return n >= 2 && sum->not_finite == 0 && squares->not_finite == 0;
}

double oj_exact_sum_deviation(const struct oj_exact_sum *sum,
                              const struct oj_exact_sum *squares, int64_t n)
{
    uint64_t top;
    int scale;
    if (!is_deviation_defined(sum, squares, n))
        return (double)NAN;
    top = round_variance_numerator_to_53_bits(sum, squares, n, &scale);
    /* The square root needs an even exponent. */
    if (scale % 2 != 0)
    {
        top <<= 1;
        scale--;
    }
    return ldexp(sqrt((double)top / divisor_of_variance(n)), scale / 2);
}

double oj_exact_sum_variance(const struct oj_exact_sum *sum,
                             const struct oj_exact_sum *squares, int64_t n)
{
    uint64_t top;
    int scale;
    if (!is_deviation_defined(sum, squares, n))
        return (double)NAN;
    top = round_variance_numerator_to_53_bits(sum, squares, n, &scale);
    return ldexp((double)top / divisor_of_variance(n), scale);
}

/* ---- serialisation to words ---------------------------------------------- */

enum
{
    WORD_ZERO = -WIDE_SCALE / 64, /* limb of a wide sum whose unit is 1 */
    FINITE_BITS = 7               /* all bits of not_finite */
};

_Static_assert(WIDE_SCALE % 64 == 0, "limbs of wide sums begin at 2^(64 i)");
_Static_assert(OJ_SUM_MOST_LONG_WORDS == WIDE_LIMBS + 1,
               "the limbs of a wide sum, and a word before them");

/* Writes the sum in the layout of a wide sum; wide must be zeroed. The value is
 * in limbs [*first, *end), the highest bit of which is the sign. For the value
 * 0, *first == *end. */
static void copy_as_wide_limbs(const struct oj_exact_sum *sum, uint64_t *wide,
                               int *first, int *end)
{
    if (sum->is_wide)
        memcpy(wide, sum->bits.wide, WIDE_LIMBS * sizeof *wide);
    else if (sum->has_value)
        add_narrow_sum_to_wide_limbs(sum, wide);
    *first = 0;
    *end = WIDE_LIMBS;
    while (*first < WIDE_LIMBS && wide[*first] == 0)
        (*first)++;
    if (*first == WIDE_LIMBS)
        return;
    while (*end - 1 > *first && wide[*end - 1] == 0 - (wide[*end - 2] >> 63))
        (*end)--;
}

int oj_exact_sum_integer(const struct oj_exact_sum *sum, int64_t *out)
{
    uint64_t wide[WIDE_LIMBS] = {0};
    int first, end;
    if (sum->not_finite != 0)
        return 0;
    copy_as_wide_limbs(sum, wide, &first, &end);
    if (first < end && (first < WORD_ZERO || end > WORD_ZERO + 1))
        return 0;
    *out = (int64_t)wide[WORD_ZERO];
    return 1;
}

int oj_exact_sum_write_words(const struct oj_exact_sum *sum, uint64_t *word)
{
    uint64_t wide[WIDE_LIMBS] = {0};
    int first, end;
    copy_as_wide_limbs(sum, wide, &first, &end);
    if (first == end)
        first = end = 0;
    word[0] = (uint64_t)first | (uint64_t)sum->not_finite << 8;
    memcpy(word + 1, wide + first, (size_t)(end - first) * sizeof *word);
    return word[0] == 0 && first == end ? 0 : 1 + end - first;
}

oj_status oj_exact_sum_add_words(struct oj_exact_sum *sum, const uint64_t *word,
                                 int64_t n, struct oj_error *err)
{
    uint64_t limb[WIDE_LIMBS];
    int place, negative;
    if (n == 0)
        return OJ_OK;
    place = (int)(word[0] & 0xff);
    if (word[0] >> 8 > FINITE_BITS || n < 0 || n - 1 > WIDE_LIMBS - place)
        return oj_fail(err, OJ_ERR_DATA,
                       "%lld words, the first of them %llu, are no exact sum: "
                       "pass all words of a sum, unchanged and in order",
                       (long long)n, (unsigned long long)word[0]);
    sum->not_finite |= (uint8_t)(word[0] >> 8);
    if (n == 1)
        return OJ_OK;
    memcpy(limb, word + 1, (size_t)(n - 1) * sizeof *limb);
    negative = negate_if_negative(limb, (int)n - 1);
    for (int i = 0; i < (int)n - 1; i++)
    {
        if (limb[i] != 0)
            OJ_TRY(add_integer_times_power_of_2(
                sum, limb[i], WIDE_SCALE + 64 * (place + i), negative, err));
    }
    return OJ_OK;
}

void oj_exact_sum_clear(struct oj_exact_sum *sum)
{
    if (sum->is_wide)
        oj_free(sum->bits.wide);
    memset(sum, 0, sizeof *sum);
}
