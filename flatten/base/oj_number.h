/** Converts numbers from and to text, in C notation and independent of the
 *  locale. */
#ifndef OJ_NUMBER_H
#define OJ_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/** Like strtod(), but with a decimal point in any locale. */
double oj_number_read(const char *text, char **end);

/** Reads the decimal number with which text [.. end) begins, which need not be
 *  zero-terminated: an optional sign, digits with at most one decimal point, an
 *  exponent; or nan, inf, infinity in any case. Correctly rounded. Returns the
 *  end of the number; NULL: there is no number, or it has more than 1000
 *  characters. */
const char *oj_number_scan(const char *text, const char *end, double *out);

/** Writes number with up to `digits` digits, like printf's %g; returns the
 *  length. text [size] must be large enough; it is zero-terminated. */
int oj_number_write(double number, int digits, char *text, size_t size);

/** Returns the number that n bytes spell, ignoring white space around it, or
 *  NaN if they are not a number. */
double oj_text_number(const char *text, int64_t n);

/** Parses a list of numbers, "[1, 2.5]", or a single number. Writes the first
 *  numbers, at most `most` (>= 1), to out and returns how many it has written.
 *  An element that is no number is written as NaN. */
int64_t oj_text_numbers(const char *text, int64_t n, int64_t most, double *out);

#endif
