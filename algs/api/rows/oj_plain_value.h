/** One value of a field, independent of OGR and Arrow: an integer, a number or
 *  a text.
 *
 *   boolean, int16, int32, int64   OJ_PLAIN_INTEGER
 *   uint64 from 2^63 on            OJ_PLAIN_REAL, rounded; integer has its bits
 *   float32, float64               OJ_PLAIN_REAL
 *   decimal                        OJ_PLAIN_REAL, rounded; if values are
 *                                  compared also OJ_PLAIN_INTEGER, and
 *                                  OJ_PLAIN_DECIMAL if %.15g lacks digits or
 *                                  writes an exponent
 *   text                           OJ_PLAIN_TEXT
 *   date, time, datetime           OJ_PLAIN_REAL or _INTEGER, in chronological
 *                                  order, if only the order matters;
 *                                  OJ_PLAIN_TEXT if values are compared
 *   all others                     OJ_PLAIN_TEXT, as they are written
 */
#ifndef OJ_PLAIN_VALUE_H
#define OJ_PLAIN_VALUE_H

#include "../../../flatten/base/oj_status.h"

#include <stddef.h>
#include <stdint.h>

enum oj_plain_form
{
    OJ_PLAIN_NULL = 0,
    OJ_PLAIN_INTEGER,
    OJ_PLAIN_REAL,
    OJ_PLAIN_TEXT,
    OJ_PLAIN_DECIMAL
};

/** A value; its text is borrowed. Zeroed memory is NULL. */
struct oj_plain_value
{
    enum oj_plain_form form; /**< which of the members is valid */
    int64_t integer; /**< if form is OJ_PLAIN_REAL: the 64 bits of an unsigned
                          integer from 2^63 on, which real rounds; otherwise
                          0 */
    double real;     /**< if form is OJ_PLAIN_DECIMAL: the double whose shortest
                          decimal is the value, or NaN if there is none */
    const char *text; /**< [n] bytes, not zero-terminated; the digits of an
                           OJ_PLAIN_DECIMAL without needless zeros */
    int64_t n;
};

/** Function that reads the values of a table. It sets *value to the value of a
 * field in a row. If that value is NULL, it leaves *value unchanged, which the
 * caller has initialised to NULL. Texts are valid until the next call. */
struct oj_plain_reader
{
    oj_status (*read)(void *user, int field, int64_t row,
                      struct oj_plain_value *value, struct oj_error *err);
    void *user;
};

static inline struct oj_plain_value oj_plain_integer(int64_t integer)
{
    struct oj_plain_value value = {OJ_PLAIN_INTEGER, integer, 0.0, NULL, 0};
    return value;
}

static inline struct oj_plain_value oj_plain_real(double real)
{
    struct oj_plain_value value = {OJ_PLAIN_REAL, 0, real, NULL, 0};
    return value;
}

/** Returns the value of an unsigned integer from 2^63 on. */
static inline struct oj_plain_value oj_plain_large_unsigned(uint64_t integer)
{
    struct oj_plain_value value = {OJ_PLAIN_REAL, (int64_t)integer,
                                   (double)integer, NULL, 0};
    return value;
}

static inline struct oj_plain_value oj_plain_text(const char *text, int64_t n)
{
    struct oj_plain_value value = {OJ_PLAIN_TEXT, 0, 0.0, text, n};
    return value;
}

enum
{
    OJ_PLAIN_TEXT_BYTES = 40, /* size of a buffer for a number as text, with its
                                 final zero */

    /* Digits of reals that are written, as OGR writes them: of a field, of a
     * list, and of a field or list of single precision. */
    OJ_PLAIN_DIGITS = 15,
    OJ_PLAIN_DIGITS_OF_LIST = 16,
    OJ_PLAIN_DIGITS_OF_FLOAT32 = 8
};

/** Writes an integer or real (%d, %.15g with 15 digits) to text
 * [OJ_PLAIN_TEXT_BYTES], an unsigned integer with all its digits; returns the
 * length. */
int64_t oj_plain_value_write(const struct oj_plain_value *value, int digits,
                             char *text);

/** A list as text, as OGR writes it: "(3:1.5,2,)" of 1.5, 2 and NULL. Texts are
 * written without quotes. Owner; zeroed memory is valid. */
struct oj_plain_list
{
    char *text; /**< [n] bytes, not zero-terminated */
    int64_t n;
    int64_t cap, n_added;
};

/** Replaces the text by the beginning of a list of n elements. */
OJ_MUST_USE oj_status oj_plain_list_begin(struct oj_plain_list *list, int64_t n,
                                          struct oj_error *err);

/** Appends an element; reals are written with this number of digits. */
OJ_MUST_USE oj_status oj_plain_list_add(struct oj_plain_list *list,
                                        const struct oj_plain_value *element,
                                        int digits, struct oj_error *err);

/** Appends the end of the list. */
OJ_MUST_USE oj_status oj_plain_list_end(struct oj_plain_list *list,
                                        struct oj_error *err);

void oj_plain_list_free(struct oj_plain_list *list);

#endif
