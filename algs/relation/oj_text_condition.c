#include "oj_text_condition.h"

#include <math.h>

/* Sets have 2^20 tokens at most, fractions parts of 10^9: all but squares stay
 * below 2^52. */
__extension__ typedef unsigned __int128 u128;

oj_status oj_text_condition_check(const struct oj_text_condition *condition,
                                  struct oj_error *err)
{
    int64_t p = condition->numerator, q = condition->denominator;
    if ((int)condition->measure < 0 || condition->measure > OJ_TEXT_OVERLAP)
        return oj_fail(err, OJ_ERR_ARG, "unknown measure of texts %d",
                       (int)condition->measure);
    if (p < 0 || p > q || q < 1 || q > 1000000000)
        return oj_fail(err, OJ_ERR_ARG,
                       "the least similarity must be from 0 to 1, with 9 "
                       "digits at most, not %lld/%lld",
                       (long long)p, (long long)q);
    return OJ_OK;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int oj_text_is_similar(const struct oj_text_condition *condition, int64_t o,
                       int64_t a, int64_t b)
{
    int64_t p = condition->numerator, q = condition->denominator;
    u128 left, right;
    switch (condition->measure)
    {
        case OJ_TEXT_JACCARD:
            return o * q >= p * (a + b - o);
        case OJ_TEXT_DICE:
            return 2 * o * q >= p * (a + b);
        case OJ_TEXT_OVERLAP:
            return o * q >= p * least(a, b);
        case OJ_TEXT_COSINE:
            break;
    }
    left = (uint64_t)(o * q);
    right = (uint64_t)(p * p);
    return left * left >= right * (uint64_t)(a * b);
}

int64_t oj_text_least_common(const struct oj_text_condition *condition,
                             int64_t a, int64_t b)
{
    int64_t p = condition->numerator, q = condition->denominator, o = 0;
    switch (condition->measure)
    {
        case OJ_TEXT_JACCARD:
            o = (p * (a + b) + p + q - 1) / (p + q);
            break;
        case OJ_TEXT_DICE:
            o = (p * (a + b) + 2 * q - 1) / (2 * q);
            break;
        case OJ_TEXT_OVERLAP:
            o = (p * least(a, b) + q - 1) / q;
            break;
        case OJ_TEXT_COSINE: /* near it, and then exactly */
            o = (int64_t)((double)p / (double)q * sqrt((double)(a * b)));
            while (o > 0 && oj_text_is_similar(condition, o - 1, a, b))
                o--;
            while (!oj_text_is_similar(condition, o, a, b))
                o++;
    }
    return o > 0 ? o : 1;
}

/* 1 when o / sqrt(ab) is greater than half_units * 2^(exponent - 1), of 54
 * bits and below 2; o, sqrt(ab) from 1 to 2^20. */
static int exceeds(int64_t o, int64_t ab, int64_t half_units, int exponent)
{
    u128 units = (uint64_t)half_units, square = units * units;
    u128 product = (uint64_t)ab, common = (uint64_t)(o * o);
    u128 low = (uint64_t)square * product;
    u128 high = (square >> 64) * product + (low >> 64);
    /* o^2 as many bits further left: 64 bits of zeros at least */
    return common << (2 * (1 - exponent) - 64) > high;
}

/* o / sqrt(a b) to the nearest double: the root and the quotient are rounded
 * each, so it is off by one at times. No quotient lies between two doubles at
 * exactly half. */
static double cosine(int64_t o, int64_t ab)
{
    int exponent;
    int64_t units =
        (int64_t)ldexp(frexp((double)o / sqrt((double)ab), &exponent), 53);
    exponent -= 53;
    while (exceeds(o, ab, 2 * units + 1, exponent))
        units++;
    while (!exceeds(o, ab, 2 * units - 1, exponent))
        units--;
    return ldexp((double)units, exponent);
}

double oj_text_similarity(enum oj_text_measure measure, int64_t o, int64_t a,
                          int64_t b)
{
    switch (measure)
    {
        case OJ_TEXT_JACCARD:
            return (double)o / (double)(a + b - o);
        case OJ_TEXT_DICE:
            return (double)(2 * o) / (double)(a + b);
        case OJ_TEXT_OVERLAP:
            return (double)o / (double)least(a, b);
        case OJ_TEXT_COSINE:
            break;
    }
    return cosine(o, a * b);
}
