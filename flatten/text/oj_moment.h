/** Parses moments and times of a day from texts, and converts dates to days,
 *  without the C library's functions for time. */
#ifndef OJ_MOMENT_H
#define OJ_MOMENT_H

#include <stdint.h>

#define OJ_MICROSECONDS_PER_SECOND INT64_C(1000000)
#define OJ_MICROSECONDS_PER_DAY INT64_C(86400000000)

/** Returns the days from 1970-01-01 to a date of the Gregorian calendar, years
 *  above -400000.  Counts years from March, so that a leap day is the last day
 *  of a year. */
static inline int64_t oj_moment_days(int64_t year, int month, int day)
{
    int64_t from_march = (month + 9) % 12;
    int64_t since = year - (month < 3) + 400000;
    int64_t leap_days = since / 4 - since / 100 + since / 400;
    /* days since March of the year -400000 */
    const int64_t first_of_1970 = 146816468;
    return since * 365 + leap_days + (153 * from_march + 2) / 5 + day - 1 -
           first_of_1970;
}

/** Parses n bytes as a date, 2026-11-29 or 2026/11/29, optionally followed by T
 *  or a space and a time, 18:00[:00[.123456]], and by a zone, Z or +01[:00].
 *  *out: microseconds since 1970 in UTC; without a zone the time counts as UTC.
 *  Ignores surrounding white space. Returns 0 if the text has no such form. */
int oj_moment_read(const char *text, int64_t n, int64_t *out);

/** Parses n bytes as a time of a day, 18:00[:00[.123456]], at most 24:00:00;
 *  *out: microseconds since midnight. Returns 0 if the text has no such form.
 */
int oj_moment_of_day_read(const char *text, int64_t n, int64_t *out);

#endif
