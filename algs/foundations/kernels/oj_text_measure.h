/** Similarity of two token sets, decided in integers, for CPU and GPU engines.
 *
 *  For sets of a and b tokens with o common ones:
 *
 *   jaccard  o / (a + b - o)     dice     2 o / (a + b)
 *   cosine   o / sqrt(a b)       overlap  o / min(a, b)
 *
 *  Sets have at most 2^20 tokens and denominators are at most 10^9: all numbers
 *  except squares stay below 2^52.
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

/** A condition on texts: their minimum similarity. Plain values. */
struct oj_text_condition
{
    enum oj_text_measure measure;
    /** The minimum similarity as a fraction, 0 <= numerator <= denominator <=
     * 10^9. numerator 0: one common token suffices. */
    int64_t numerator, denominator;
};

__extension__ typedef unsigned __int128 oj_text_u128;

OJ_FN int64_t oj_text_min_count(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/** Returns 1 if sets of a and b tokens (1 to 2^20 each) with o > 0 common
 * tokens have the minimum similarity. */
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
            return o * q >= p * oj_text_min_count(a, b);
        case OJ_TEXT_COSINE:
            break;
    }
    left = (uint64_t)(o * q);
    right = (uint64_t)(p * p);
    return left * left >= right * (uint64_t)(a * b);
}

/** Returns the smallest o > 0 for which sets of a and b tokens with o common
 * tokens have the minimum similarity. The result exceeds min(a, b) if no number
 * of common tokens suffices. */
OJ_FN int64_t oj_text_min_common_tokens(
    const struct oj_text_condition *condition, int64_t a, int64_t b)
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
            o = (p * oj_text_min_count(a, b) + q - 1) / q;
            break;
        case OJ_TEXT_COSINE: /* start with an estimate and correct it by the
                                exact test */
            o = (int64_t)((double)p / (double)q * sqrt((double)(a * b)));
            while (o > 0 && oj_text_is_similar(condition, o - 1, a, b))
                o--;
            while (!oj_text_is_similar(condition, o, a, b))
                o++;
    }
    return o > 0 ? o : 1;
}

/* Returns 1 if o / sqrt(ab) > half_units * 2^(exponent - 1), decided by 128-bit
 * integers. Preconditions: half_units has 54 bits, the right side is below 2,
 * and o and sqrt(ab) are from 1 to 2^20. */
OJ_FN int oj_text_cosine_exceeds(int64_t o, int64_t ab, int64_t half_units,
                                 int exponent)
{
    oj_text_u128 units = (uint64_t)half_units, square = units * units;
    oj_text_u128 product = (uint64_t)ab, common = (uint64_t)(o * o);
    oj_text_u128 low = (uint64_t)square * product;
    oj_text_u128 high = (square >> 64) * product + (low >> 64);
    return common << (2 * (1 - exponent) - 64) > high;
}

/* Returns o / sqrt(ab), rounded to the nearest double. The quotient in double
 * arithmetic is rounded twice, so it may be wrong by one unit; exact tests
 * correct it. No quotient lies exactly midway between two doubles. */
OJ_FN_APART double oj_text_cosine(int64_t o, int64_t ab)
{
    int exponent;
    int64_t units =
        (int64_t)ldexp(frexp((double)o / sqrt((double)ab), &exponent), 53);
    exponent -= 53;
    while (oj_text_cosine_exceeds(o, ab, 2 * units + 1, exponent))
        units++;
    while (!oj_text_cosine_exceeds(o, ab, 2 * units - 1, exponent))
        units--;
    return ldexp((double)units, exponent);
}

/** Returns the similarity, rounded correctly to the nearest double. */
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
            return (double)o / (double)oj_text_min_count(a, b);
        case OJ_TEXT_COSINE:
            break;
    }
    return oj_text_cosine(o, a * b);
}

#endif
