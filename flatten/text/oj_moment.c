#include "oj_moment.h"

/* The rest of a text: its next unread byte and its end. */
struct unread_text
{
    const char *at, *end;
};

static int is_digit(const struct unread_text *l)
{
    return l->at < l->end && *l->at >= '0' && *l->at <= '9';
}

static int is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Reads a whole number of `least` to `most` digits into *out; returns 0 if it
 * has fewer. */
static int read_digits(struct unread_text *l, int least, int most, int *out)
{
    int n = 0;
    *out = 0;
    for (; n < most && is_digit(l); n++)
        *out = 10 * *out + (*l->at++ - '0');
    return n >= least;
}

static int read_letter(struct unread_text *l, char a, char b)
{
    if (l->at == l->end || (*l->at != a && *l->at != b))
        return 0;
    l->at++;
    return 1;
}

/* Reads the digits after a decimal point and returns them as microseconds;
 * further digits are dropped. */
static int64_t read_fraction(struct unread_text *l)
{
    int64_t microseconds = 0, place = OJ_MICROSECONDS_PER_SECOND / 10;
    for (; is_digit(l); l->at++, place /= 10)
        microseconds += place * (*l->at - '0');
    return microseconds;
}

static int read_time(struct unread_text *l, int64_t *out)
{
    const int64_t most = OJ_MICROSECONDS_PER_DAY;
    int hour, minute, second = 0;
    int64_t microseconds = 0;
    if (!read_digits(l, 1, 2, &hour) || !read_letter(l, ':', ':') ||
        !read_digits(l, 2, 2, &minute))
        return 0;
    if (read_letter(l, ':', ':'))
    {
        if (!read_digits(l, 2, 2, &second))
            return 0;
        if (read_letter(l, '.', ','))
            microseconds = read_fraction(l);
    }
    *out = (hour * INT64_C(3600) + minute * 60 + second) *
               OJ_MICROSECONDS_PER_SECOND +
           microseconds;
    return *out <= most && minute < 60 && second <= 60;
}

/* Reads a time zone: Z, +01, +01:30, +0130, or nothing, which counts as Z.
 * *out: microseconds east of UTC. Returns 0 if the text has another form. */
static int read_zone(struct unread_text *l, int64_t *out)
{
    int hours, minutes = 0, is_west;
    *out = 0;
    while (l->at < l->end && *l->at == ' ')
        l->at++;
    if (l->at == l->end || read_letter(l, 'Z', 'z'))
        return 1;
    is_west = *l->at == '-';
    if (!read_letter(l, '+', '-') || !read_digits(l, 2, 2, &hours))
        return 0;
    if (l->at < l->end)
    {
        (void)read_letter(l, ':', ':');
        if (!read_digits(l, 2, 2, &minutes))
            return 0;
    }
    *out = (hours * 60 + minutes) * 60 * OJ_MICROSECONDS_PER_SECOND;
    *out = is_west ? -*out : *out;
    return hours <= 15 && minutes < 60;
}

static struct unread_text trim_spaces(const char *text, int64_t n)
{
    struct unread_text l = {text, text + n};
    while (l.at < l.end && is_space(*l.at))
        l.at++;
    while (l.end > l.at && is_space(l.end[-1]))
        l.end--;
    return l;
}

static int days_of_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && is_leap);
}

static int read_date(struct unread_text *l, int64_t *out)
{
    int year, month, day;
    char between;
    if (!read_digits(l, 4, 4, &year) || l->at == l->end)
        return 0;
    between = *l->at;
    if ((between != '-' && between != '/') ||
        !read_letter(l, between, between) || !read_digits(l, 1, 2, &month) ||
        !read_letter(l, between, between) || !read_digits(l, 1, 2, &day) ||
        month < 1 || month > 12 || day < 1 || day > days_of_month(year, month))
        return 0;
    *out = oj_moment_days(year, month, day);
    return 1;
}

int oj_moment_read(const char *text, int64_t n, int64_t *out)
{
    struct unread_text l = trim_spaces(text, n);
    int64_t days, of_day = 0, zone = 0;
    if (!read_date(&l, &days))
        return 0;
    if (l.at < l.end)
    {
        if (!read_letter(&l, 'T', ' ') && !read_letter(&l, 't', 't'))
            return 0;
        while (l.at < l.end && *l.at == ' ')
            l.at++;
        if (!read_time(&l, &of_day) || !read_zone(&l, &zone) || l.at < l.end)
            return 0;
    }
    *out = days * OJ_MICROSECONDS_PER_DAY + of_day - zone;
    return 1;
}

int oj_moment_of_day_read(const char *text, int64_t n, int64_t *out)
{
    struct unread_text l = trim_spaces(text, n);
    return read_time(&l, out) && l.at == l.end;
}
