#include "oj_number.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    return n;
}
