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
 *  end of the number, or NULL if there is none, or one of more than 1000
 *  characters. */
const char *oj_number_scan(const char *text, const char *end, double *out);

/** Writes number with up to `digits` digits, like printf's %g; returns the
 *  length. text [size] is zero-terminated; digits + 8 bytes are always enough.
 *  If size is less, the text is truncated, but the returned length is that of
 *  the whole number. */
int oj_number_write(double number, int digits, char *text, size_t size);

/** Returns the number that n bytes spell, ignoring white space around it, or
 *  NaN if they are not a number. */
double oj_text_number(const char *text, int64_t n);

/** Parses a list of numbers, "[1, 2.5]", or a single number, and writes the
 *  first `most` (>= 1) of them to out. Returns how many it has written. An item
 *  that is no number, and the last item if the list has no end or text follows
 *  it, is NaN. */
int64_t oj_text_numbers(const char *text, int64_t n, int64_t most, double *out);

#endif
