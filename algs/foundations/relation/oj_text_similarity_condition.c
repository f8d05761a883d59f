#include "oj_text_similarity_condition.h"

oj_status oj_text_condition_check(const struct oj_text_condition *condition,
                                  struct oj_error *err)
{
    int64_t p = condition->numerator, q = condition->denominator;
    if ((int)condition->measure < 0 || condition->measure > OJ_TEXT_OVERLAP)
        return oj_fail(err, OJ_ERR_ARG,
                       "there is no measure of texts number %d: use a value of "
                       "enum oj_text_measure",
                       (int)condition->measure);
    if (p < 0 || p > q || q < 1 || q > 1000000000)
        return oj_fail(err, OJ_ERR_ARG,
                       "the minimum similarity must be from 0 to 1, with 9 "
                       "digits at most, not %lld/%lld",
                       (long long)p, (long long)q);
    return OJ_OK;
}

enum
{
    MOST_DIGITS = 9 /* maximum digits after the decimal point, or in numerator
                       and denominator */
};

/* Appends up to `most` decimal digits to *number, and advances *at behind them.
 * Returns how many digits were read.
 */
static int read_digits(const char **at, int most, int64_t *number)
{
    int n = 0;
    for (; n < most && **at >= '0' && **at <= '9'; (*at)++, n++)
        *number = 10 * *number + (**at - '0');
    return n;
}

oj_status oj_text_threshold_parse(const char *dash, const char *option,
                                  const char *text, int64_t *numerator,
                                  int64_t *denominator, struct oj_error *err)
{
    const char *at = text;
    int64_t over = 0, under = 0;
    int n = read_digits(&at, MOST_DIGITS, &over);
    if (*at == '/' && n > 0)
    {
        at++;
        read_digits(&at, MOST_DIGITS, &under);
    }
    else
    {
        int is_decimal = *at == '.', n_after = 0;
        at += is_decimal;
        if (is_decimal && n <= 1)
            n_after = read_digits(&at, MOST_DIGITS, &over);
        under = n + n_after > 0;
        for (; n_after > 0; n_after--)
            under *= 10;
    }
    if (*at != '\0' || over <= 0 || over > under)
        return oj_fail(err, OJ_ERR_ARG,
                       "%s%s: a similarity is above 0 and at most 1, a decimal "
                       "of up to %d digits or a fraction, as 0.6 or 3/4, not "
                       "'%.60s'",
                       dash, option, MOST_DIGITS, text);
    *numerator = over;
    *denominator = under;
    return OJ_OK;
}
