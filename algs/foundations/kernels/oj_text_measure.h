/** How similar two sets of tokens are, decided in integers: for the engines of
 *  the CPU and of the GPU.
 *
 *  Of sets with a and b tokens, o of them in both:
 *
 *   jaccard  o / (a + b - o)     dice     2 o / (a + b)
 *   cosine   o / sqrt(a b)       overlap  o / min(a, b)
 *
 *  Sets have 2^20 tokens at most, fractions parts of 10^9: all but squares stay
 *  below 2^52.
 */
#ifndef OJ_TEXT_MEASURE_H
#define OJ_TEXT_MEASURE_H

#include "oj_kernel.h"

enum oj_text_measure
{
    OJ_TEXT_JACCARD = 0,
    OJ_TEXT_DICE,
    OJ_TEXT_COSINE,
    OJ_TEXT_OVERLAP
};

#define OJ_TEXT_MEASURE_NAMES "jaccard|dice|cosine|overlap"

/** Plain values. */
struct oj_text_condition
{
    enum oj_text_measure measure;
    /** The least similarity, 0 < numerator <= denominator <= 10^9; numerator
     *  0: any token in common. */
    int64_t numerator, denominator;
};

__extension__ typedef unsigned __int128 oj_text_u128;

OJ_FN int64_t oj_text_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/** 1 when sets of a and b tokens, 1 to 2^20 each, with o > 0 in common fulfil
 *  the condition. */
OJ_FN int oj_text_is_similar(const struct oj_text_condition *condition,
                             int64_t o, int64_t a, int64_t b)
{
    int64_t p = condition->numerator, q = condition->denominator;
    oj_text_u128 left, right;
    switch (condition->measure)
    {
        case OJ_TEXT_JACCARD:
            return o * q >= p * (a + b - o);
        case OJ_TEXT_DICE:
            return 2 * o * q >= p * (a + b);
        case OJ_TEXT_OVERLAP:
            return o * q >= p * oj_text_smaller(a, b);
        case OJ_TEXT_COSINE:
            break;
    }
    left = (uint64_t)(o * q);
    right = (uint64_t)(p * p);
    return left * left >= right * (uint64_t)(a * b);
}

/** The least o for which they do, or more than min(a, b): for none. */
OJ_FN int64_t oj_text_least_common(const struct oj_text_condition *condition,
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
            o = (p * oj_text_smaller(a, b) + q - 1) / q;
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
OJ_FN int oj_text_exceeds(int64_t o, int64_t ab, int64_t half_units,
                          int exponent)
{
    oj_text_u128 units = (uint64_t)half_units, square = units * units;
    oj_text_u128 product = (uint64_t)ab, common = (uint64_t)(o * o);
    oj_text_u128 low = (uint64_t)square * product;
    oj_text_u128 high = (square >> 64) * product + (low >> 64);
    /* o^2 as many bits further left: 64 bits of zeros at least */
    return common << (2 * (1 - exponent) - 64) > high;
}

/* o / sqrt(a b) to the nearest double: the root and the quotient are rounded
 * each, so it is off by one at times. No quotient lies between two doubles at
 * exactly half. */
OJ_FN_APART double oj_text_cosine(int64_t o, int64_t ab)
{
    int exponent;
    int64_t units =
        (int64_t)ldexp(frexp((double)o / sqrt((double)ab), &exponent), 53);
    exponent -= 53;
    while (oj_text_exceeds(o, ab, 2 * units + 1, exponent))
        units++;
    while (!oj_text_exceeds(o, ab, 2 * units - 1, exponent))
        units--;
    return ldexp((double)units, exponent);
}

/** The similarity, rounded once. */
OJ_FN double oj_text_similarity(enum oj_text_measure measure, int64_t o,
                                int64_t a, int64_t b)
{
    switch (measure)
    {
        case OJ_TEXT_JACCARD:
            return (double)o / (double)(a + b - o);
        case OJ_TEXT_DICE:
            return (double)(2 * o) / (double)(a + b);
        case OJ_TEXT_OVERLAP:
            return (double)o / (double)oj_text_smaller(a, b);
        case OJ_TEXT_COSINE:
            break;
    }
    return oj_text_cosine(o, a * b);
}

#endif
