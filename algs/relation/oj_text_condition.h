/** A condition on the texts of two features, as sets of tokens: their
 *  similarity is at least a fraction, decided in integers.
 *
 *  Of sets with a and b tokens, o of them in both:
 *
 *   jaccard  o / (a + b - o)     dice     2 o / (a + b)
 *   cosine   o / sqrt(a b)       overlap  o / min(a, b)
 */
#ifndef OJ_TEXT_CONDITION_H
#define OJ_TEXT_CONDITION_H

#include "../../flatten/base/oj_status.h"

#include <stdint.h>

enum oj_text_measure
{
    OJ_TEXT_JACCARD = 0,
    OJ_TEXT_DICE,
    OJ_TEXT_COSINE,
    OJ_TEXT_OVERLAP
};

enum
{
    OJ_MOST_TEXTS = 8 /* conditions of one join */
};

/** Plain values. */
struct oj_text_condition
{
    enum oj_text_measure measure;
    /** The least similarity, 0 < numerator <= denominator <= 10^9; numerator
     *  0: any token in common. */
    int64_t numerator, denominator;
};

/** OJ_ERR_ARG: a similarity is not what is said above. */
OJ_MUST_USE oj_status oj_text_condition_check(
    const struct oj_text_condition *condition, struct oj_error *err);

/** 1 when sets of a and b tokens, 1 to 2^20 each, with o > 0 in common fulfil
 *  the condition. */
int oj_text_is_similar(const struct oj_text_condition *condition, int64_t o,
                       int64_t a, int64_t b);

/** The least o for which they do, or more than min(a, b): for none. */
int64_t oj_text_least_common(const struct oj_text_condition *condition,
                             int64_t a, int64_t b);

/** The similarity, rounded once. */
double oj_text_similarity(enum oj_text_measure measure, int64_t o, int64_t a,
                          int64_t b);

#endif
