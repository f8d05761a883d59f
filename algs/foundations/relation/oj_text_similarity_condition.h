/** A condition on the texts of two features, compared as sets of tokens: their
 * similarity must be at least a given fraction. Decided in integers. */
#ifndef OJ_TEXT_SIMILARITY_CONDITION_H
#define OJ_TEXT_SIMILARITY_CONDITION_H

#include "../../../flatten/base/oj_status.h"
#include "../kernels/oj_text_measure.h"

#include <stdint.h>

enum
{
    OJ_MOST_TEXTS = 8 /* maximum conditions on texts of a join */
};

/** OJ_ERR_ARG if the measure or the minimum similarity is invalid. */
OJ_MUST_USE oj_status oj_text_condition_check(
    const struct oj_text_condition *condition, struct oj_error *err);

/** Parses a minimum similarity exactly: a decimal of up to nine digits or a
 * fraction. Error messages begin with dash and option. */
OJ_MUST_USE oj_status oj_text_threshold_parse(
    const char *dash, const char *option, const char *text, int64_t *numerator,
    int64_t *denominator, struct oj_error *err);

#endif
