#include "oj_number.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static locale_t c_locale; /* the locale "C"; 0: it could not be allocated */
static pthread_once_t is_made = PTHREAD_ONCE_INIT;

static void make_locale(void)
{
    c_locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
}

double oj_number_read(const char *text, char **end)
{
    locale_t before;
    double number;
    pthread_once(&is_made, make_locale);
    if (c_locale == (locale_t)0)
        return strtod(text, end);
    before = uselocale(c_locale);
    number = strtod(text, end);
    uselocale(before);
    return number;
}

/* Returns the end of the number that starts at `at`, or NULL if no number
 * starts there. *digits: the digits without the point, as an integer, if they
 * are at most 15 and no exponent follows; else -1. *n_decimals: number of
 * digits after the point. */
static const char *find_end_of_decimal(const char *at, const char *end,
                                       int64_t *digits, int *n_decimals)
{
    int n = 0, has_point = 0, n_exponent = 0;
    const char *exponent;
    *digits = 0;
    *n_decimals = 0;
    for (; at < end && ((*at >= '0' && *at <= '9') || *at == '.'); at++)
    {
        if (*at == '.' && has_point++)
            return NULL;
        if (*at == '.')
            continue;
        *n_decimals += has_point;
        if (++n <= 15)
            *digits = 10 * *digits + (*at - '0');
    }
    if (n > 15)
        *digits = -1;
    if (n == 0)
        return NULL;
    if (at == end || (*at != 'e' && *at != 'E'))
        return at;
    exponent = at + 1;
    if (exponent < end && (*exponent == '+' || *exponent == '-'))
        exponent++;
    for (; exponent < end && *exponent >= '0' && *exponent <= '9'; exponent++)
        n_exponent++;
    if (n_exponent == 0)
        return at;
    *digits = -1;
    return exponent;
}

/* Returns the end of the word nan, inf or infinity, in any case, that starts at
 * `at`; NULL: there is no such word. */
static const char *find_end_of_no_number(const char *at, const char *end)
{
    static const char *const words[] = {"infinity", "inf", "nan"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    {
        size_t n = strlen(words[i]);
        if ((size_t)(end - at) >= n && strncasecmp(at, words[i], n) == 0)
            return at + n;
    }
    return NULL;
}

const char *oj_number_scan(const char *text, const char *end, double *out)
{
    /* digits and a power of ten up to 1e15 are integers below 2^53, so doubles
     * hold them exactly. Their quotient is rounded once, and so correctly. */
    static const double power[] = {1,    1e1,  1e2,  1e3, 1e4,  1e5,
                                   1e6,  1e7,  1e8,  1e9, 1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15};
    char copy[1002], *stop;
    const char *at = text + (text < end && (*text == '-' || *text == '+'));
    const char *to;
    int64_t digits;
    int n_decimals;
    to = find_end_of_decimal(at, end, &digits, &n_decimals);
    if (to == NULL)
    {
        to = find_end_of_no_number(at, end);
        digits = -1;
    }
    if (to == NULL || to - text >= (ptrdiff_t)sizeof copy)
        return NULL;
    if (digits >= 0)
    {
        *out = (double)digits / power[n_decimals];
        if (*text == '-')
            *out = -*out;
        return to;
    }
    memcpy(copy, text, (size_t)(to - text));
    copy[to - text] = '\0';
    *out = oj_number_read(copy, &stop);
    return to;
}

int oj_number_write(double number, int digits, char *text, size_t size)
{
    locale_t before;
    int n;
    pthread_once(&is_made, make_locale);
    if (c_locale == (locale_t)0)
        return snprintf(text, size, "%.*g", digits, number);
    before = uselocale(c_locale);
    n = snprintf(text, size, "%.*g", digits, number);
    uselocale(before);
    return n;
}

double oj_text_number(const char *text, int64_t n_text)
{
    char copy[64], *end;
    size_t n = (size_t)n_text;
    double number;
    if (n == 0 || n >= sizeof copy)
        return NAN;
    memcpy(copy, text, n);
    copy[n] = '\0';
    number = oj_number_read(copy, &end);
    while (*end == ' ')
        end++;
    return end != copy && *end == '\0' ? number : NAN;
}

int64_t oj_text_numbers(const char *text, int64_t n_text, int64_t most,
                        double *out)
{
    const char *end = text + n_text, *from;
    int64_t n = 0;
    while (text < end && *text == ' ')
        text++;
    if (text == end || *text != '[')
    {
        out[0] = oj_text_number(text, end - text);
        return 1;
    }
    while (n < most && text < end && *text != ']')
    {
        from = ++text;
        while (text < end && *text != ',' && *text != ']')
            text++;
        out[n++] = text < end ? oj_text_number(from, text - from) : NAN;
    }
    if (n > 0 && text < end && *text == ']')
    {
        do
            text++;
        while (text < end &&
               (*text == ' ' || (*text >= '\t' && *text <= '\r')));
        if (text < end)
            out[n - 1] = NAN;
    }
    return n;
}
