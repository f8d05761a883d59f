/** Numbers in texts, written as in C whatever the locale. */
#ifndef OJ_NUMBER_H
#define OJ_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/** As strtod(), with a point in any locale. */
double oj_number_read(const char *text, char **end);

/** Writes number with up to so many digits, as printf's %g; returns the length
 *  of text [size], which is zero-terminated and long enough for it. */
int oj_number_write(double number, int digits, char *text, size_t size);

/** The number that n bytes of text are, blanks around it aside; NaN: none. */
double oj_text_number(const char *text, int64_t n);

/** The numbers of a list, "[1, 2.5]"; what is no list is one number.  Returns
 *  how many; of more than most, which is 1 or more, the first ones are read. */
int64_t oj_text_numbers(const char *text, int64_t n, int64_t most, double *out);

#endif
