#include "oj_arrow_plain_values.h"

#include "../../../flatten/base/oj_number.h"
#include "../../../flatten/text/oj_moment.h"
#include "arrow_values.h"
#include "oj_arrow_type.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- kinds of values ----------------------------------------------------- */

static enum oj_field_kind kind_of_time(const char *format)
{
    return format[1] == 'd'   ? OJ_FIELD_DATE
           : format[1] == 't' ? OJ_FIELD_TIME
           : format[1] == 's' ? OJ_FIELD_DATETIME
                              : OJ_FIELD_OTHER;
}

static enum oj_field_kind kind_of_list(const struct ArrowSchema *schema)
{
    switch (oj_arrow_field_kind(schema->children[0]))
    {
        case OJ_FIELD_BOOLEAN:
        case OJ_FIELD_INT16:
        case OJ_FIELD_INT32:
            return OJ_FIELD_INT32_LIST;
        case OJ_FIELD_INT64:
            return OJ_FIELD_INT64_LIST;
        case OJ_FIELD_FLOAT32:
        case OJ_FIELD_FLOAT64:
            return OJ_FIELD_FLOAT64_LIST;
        case OJ_FIELD_TEXT:
            return OJ_FIELD_TEXT_LIST;
        default:
            return OJ_FIELD_OTHER;
    }
}

const struct ArrowSchema *
oj_arrow_schema_of_decoded_values(const struct ArrowSchema *schema)
{
    while (schema->dictionary != NULL || strcmp(schema->format, "+r") == 0)
        schema = schema->dictionary != NULL ? schema->dictionary
                                            : schema->children[1];
    return schema;
}

enum oj_field_kind oj_arrow_field_kind(const struct ArrowSchema *schema)
{
    const char *format;
    schema = oj_arrow_schema_of_decoded_values(schema);
    format = schema->format;
    switch (format[0])
    {
        case 'b':
            return OJ_FIELD_BOOLEAN;
        case 'c':
        case 'C':
        case 's':
            return OJ_FIELD_INT16;
        case 'S':
        case 'i':
            return OJ_FIELD_INT32;
        case 'I':
        case 'l':
        case 'L':
            return OJ_FIELD_INT64;
        case 'e':
        case 'f':
            return OJ_FIELD_FLOAT32;
        case 'g':
        case 'd':
            return OJ_FIELD_FLOAT64;
        case 'u':
        case 'U':
            return OJ_FIELD_TEXT;
        case 'v':
            return format[1] == 'u' ? OJ_FIELD_TEXT : OJ_FIELD_BYTES;
        case 'z':
        case 'Z':
        case 'w':
            return OJ_FIELD_BYTES;
        case 't':
            return kind_of_time(format);
        case 'n':
            return OJ_FIELD_NULL;
        case '+':
            return format[1] == 'l' || format[1] == 'L' || format[1] == 'w'
                       ? kind_of_list(schema)
                       : OJ_FIELD_OTHER;
        default:
            return OJ_FIELD_OTHER;
    }
}

int oj_arrow_is_decimal(const struct ArrowSchema *schema)
{
    return oj_arrow_schema_of_decoded_values(schema)->format[0] == 'd';
}

/* ---- dictionaries and run ends ------------------------------------------- */

static int is_null_at(const struct ArrowArray *array, int64_t row)
{
    return array->n_buffers > 0 &&
           !arrow_bit(arrow_validity(array), array->offset + row);
}

/* Follows dictionaries and run-end encoding to the array that stores the value
 * of row *row. *row becomes the row in that array; -1 if the value is NULL. */
static oj_status find_stored_value(const struct ArrowSchema **schema,
                                   const struct ArrowArray **array,
                                   int64_t *row, struct oj_error *err)
{
    for (;;)
    {
        const struct ArrowArray *here = *array;
        int is_runs = strcmp((*schema)->format, "+r") == 0;
        if ((*schema)->format[0] == 'n' || is_null_at(here, *row))
        {
            *row = -1;
            return OJ_OK;
        }
        if ((*schema)->dictionary == NULL && !is_runs)
            return OJ_OK;
        if (is_runs)
        {
            *row = arrow_run_find(
                here->children[0],
                arrow_run_end_size((*schema)->children[0]->format),
                here->offset + *row);
            *array = here->children[1];
            *schema = (*schema)->children[1];
        }
        else
        {
            *row = arrow_integer_at((*schema)->format[0], here->buffers[1],
                                    here->offset + *row);
            *array = here->dictionary;
            *schema = (*schema)->dictionary;
        }
        if (*row < 0 || *row >= (*array)->length)
            return arrow_fail_mismatch(err);
    }
}

/* ---- numbers ------------------------------------------------------------- */

static double half_to_double(uint16_t half)
{
    int exponent = half >> 10 & 31;
    double fraction = half & 1023;
    double value = exponent == 0 ? ldexp(fraction, -24)
                   : exponent == 31
                       ? (half & 1023) != 0 ? (double)NAN : (double)INFINITY
                       : ldexp(1024 + fraction, exponent - 25);
    return half >> 15 ? -value : value;
}

enum
{
    MOST_WORDS = 8,       /* 32-bit words of a decimal of 256 bits */
    MOST_DIGITS = 80,     /* maximum digits of a decimal of 256 bits */
    MOST_REAL_DIGITS = 17 /* digits that distinguish all doubles */
};

/* Writes the decimal digits of an integer of n words, the last digit first, and
 * returns their number. Sets the integer to 0. */
static int write_digits(uint32_t *word, int n, char *to)
{
    int n_digits = 0;
    for (;;)
    {
        uint64_t rest = 0, any = 0;
        for (int i = n; i-- > 0;)
        {
            rest = rest << 32 | word[i];
            word[i] = (uint32_t)(rest / 10);
            rest %= 10;
            any |= word[i];
        }
        to[n_digits++] = (char)('0' + rest);
        if (any == 0)
            return n_digits;
    }
}

/* Computes an integer of n words divided by 10^scale. If both numbers are exact
 * as doubles, so that the quotient is rounded once, sets *out and returns 1;
 * otherwise returns 0. */
static int divide_exact_decimal(const uint32_t *word, int n, int scale,
                                double *out)
{
    static const double power[] = {
        1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const uint64_t low = (uint64_t)word[1] << 32 | word[0];
    uint32_t high = 0;
    for (int i = 2; i < n; i++)
        high |= word[i];
    if (high != 0 || low > UINT64_C(1) << 53 || scale < 0 ||
        scale >= (int)(sizeof power / sizeof *power))
        return 0;
    *out = (double)low / power[scale];
    return 1;
}

/* A decimal: words of its absolute value without the scale. */
struct decimal
{
    uint32_t word[MOST_WORDS];
    int n; /* words in use */
    int scale, is_negative;
};

/* Reads a decimal of the format "d:precision,scale[,bits]". */
static struct decimal decimal_at_row(const struct ArrowArray *array,
                                     const char *format, int64_t row)
{
    const char *comma = strchr(format, ',');
    struct oj_arrow_type type = {OJ_STORES_FIXED, 16};
    struct decimal d = {.scale = comma != NULL ? atoi(comma + 1) : 0};
    int size;
    (void)oj_arrow_type_read(format, &type); /* cannot fail: the schema was
                                                checked */
    size = (int)type.size;
    d.n = size / 4;
    memcpy(d.word,
           (const char *)array->buffers[1] + (array->offset + row) * size,
           (size_t)size);
    d.is_negative = d.word[d.n - 1] >> 31 != 0;
    for (int i = 0, carry = 1; d.is_negative && i < d.n; i++)
    {
        d.word[i] = ~d.word[i] + (uint32_t)carry;
        carry = carry && d.word[i] == 0;
    }
    return d;
}

/* Returns a number, `digits` [n] times 10^exponent, as a double that is rounded
 * once. */
static double number_of_digits(int is_negative, const char *digits, int n,
                               int64_t exponent)
{
    char text[MOST_DIGITS + 24];
    text[0] = is_negative ? '-' : '+';
    memcpy(text + 1, digits, (size_t)n);
    snprintf(text + 1 + n, 24, "e%lld", (long long)exponent);
    return oj_number_read(text, NULL);
}

/* Writes the digits of a decimal, the first digit first, and returns their
 * number. */
static int digits_of_decimal(const struct decimal *d, char *to)
{
    struct decimal copy = *d;
    char backwards[MOST_DIGITS];
    int n = write_digits(copy.word, copy.n, backwards);
    for (int i = 0; i < n; i++)
        to[i] = backwards[n - 1 - i];
    return n;
}

/* Returns a decimal as a double that is rounded once. */
static double real_of_decimal(const struct decimal *d)
{
    double value;
    char digits[MOST_DIGITS];
    if (divide_exact_decimal(d->word, d->n, d->scale, &value))
        return d->is_negative ? -value : value;
    return number_of_digits(d->is_negative, digits,
                            digits_of_decimal(d, digits), -(int64_t)d->scale);
}

/* Returns 1 if the digits, without needless zeros, are those of the shortest
 * decimal that reads back as the double. */
static int is_shortest_decimal(double real, const char *digits, int n)
{
    char text[OJ_PLAIN_TEXT_BYTES], shortest[OJ_PLAIN_TEXT_BYTES];
    int n_shortest = 0;
    for (int most = OJ_PLAIN_DIGITS; most <= MOST_REAL_DIGITS; most++)
    {
        oj_number_write(real, most, text, sizeof text);
        if (oj_number_read(text, NULL) == real)
            break;
    }
    for (const char *at = text; *at != '\0' && *at != 'e'; at++)
    {
        if (*at >= '0' && *at <= '9' && (n_shortest > 0 || *at != '0'))
            shortest[n_shortest++] = *at;
    }
    while (n_shortest > 0 && shortest[n_shortest - 1] == '0')
        n_shortest--;
    return n_shortest == n && memcmp(shortest, digits, (size_t)n) == 0;
}

/* Sets *out to `digits` [n] times 10^exponent if it is an integer of 64 bits,
 * with or without sign, and returns 1; otherwise returns 0. */
static int integer_of_digits(int is_negative, const char *digits, int n,
                             int64_t exponent, struct oj_plain_value *out)
{
    const uint64_t most = is_negative ? UINT64_C(1) << 63 : UINT64_MAX;
    uint64_t integer = 0;
    if (exponent < 0 || n + exponent > 20)
        return 0;
    for (int64_t i = 0; i < n + exponent; i++)
    {
        const uint64_t digit = i < n ? (uint64_t)(digits[i] - '0') : 0;
        if (integer > (most - digit) / 10)
            return 0;
        integer = integer * 10 + digit;
    }
    *out =
        !is_negative && integer > INT64_MAX
            ? oj_plain_large_unsigned(integer)
            : oj_plain_integer((int64_t)(is_negative ? 0 - integer : integer));
    return 1;
}

/* Writes `digits` [n] times 10^exponent without an exponent, unless the text
 * would have more than MOST_DIGITS zeros. Returns its length. */
static int64_t write_decimal(int is_negative, const char *digits, int n,
                             int64_t exponent, char *to)
{
    const int64_t point = n + exponent; /* digits before the decimal point */
    int64_t length = 0;
    if (is_negative)
        to[length++] = '-';
    if (point < -MOST_DIGITS || point > n + MOST_DIGITS)
    {
        memcpy(to + length, digits, (size_t)n);
        return length + n +
               snprintf(to + length + n, 24, "e%lld", (long long)exponent);
    }
    if (point <= 0)
        to[length++] = '0';
    for (int64_t i = point < 0 ? point : 0; i < n || i < point; i++)
    {
        if (i == point)
            to[length++] = '.';
        to[length++] = i < 0 || i >= n ? '0' : digits[i];
    }
    return length;
}

/* Returns 1 if %.15g writes a real without an exponent. */
static int is_written_plainly(double real)
{
    return fabs(real) >= 1e-4 && fabs(real) < 1e15;
}

/* Sets *out to a decimal of up to 15 digits, and returns 1, without its digits.
 * Returns 0 for a decimal that needs them. */
static int read_short_decimal(const struct decimal *d,
                              struct oj_plain_value *out)
{
    const uint64_t most = UINT64_C(999999999999999);
    const uint64_t low = (uint64_t)d->word[1] << 32 | d->word[0];
    double value;
    for (int i = 2; i < d->n; i++)
    {
        if (d->word[i] != 0)
            return 0;
    }
    if (low > most || !divide_exact_decimal(d->word, d->n, d->scale, &value))
        return 0;
    value = d->is_negative ? -value : value;
    *out = value == floor(value) ? oj_plain_integer((int64_t)value)
                                 : oj_plain_real(value);
    return out->form == OJ_PLAIN_INTEGER || is_written_plainly(value);
}

/* Reads a decimal for comparison; see oj_arrow_compared_value(). */
static void compared_decimal_at_row(const struct ArrowArray *array,
                                    const char *format, int64_t row,
                                    struct oj_arrow_room *room,
                                    struct oj_plain_value *out)
{
    const struct decimal d = decimal_at_row(array, format, row);
    char digits[MOST_DIGITS];
    int64_t exponent = -(int64_t)d.scale;
    int n;
    if (read_short_decimal(&d, out))
        return;
    n = digits_of_decimal(&d, digits);
    while (n > 1 && digits[n - 1] == '0')
    {
        n--;
        exponent++;
    }
    if (digits[0] == '0')
    {
        *out = oj_plain_integer(0);
        return;
    }
    if (integer_of_digits(d.is_negative, digits, n, exponent, out))
        return;
    *out = oj_plain_real(number_of_digits(d.is_negative, digits, n, exponent));
    if (n <= OJ_PLAIN_DIGITS && is_written_plainly(out->real))
        return;
    out->form = OJ_PLAIN_DECIMAL;
    out->text = room->text;
    out->n = write_decimal(d.is_negative, digits, n, exponent, room->text);
    if (n > MOST_REAL_DIGITS || !is_shortest_decimal(out->real, digits, n))
        out->real = (double)NAN;
}

static double real_at_row(const struct ArrowArray *array, const char *format,
                          int64_t row)
{
    const void *values = array->buffers[1];
    int64_t at = array->offset + row;
    if (format[0] == 'e')
        return half_to_double(((const uint16_t *)values)[at]);
    if (format[0] == 'f')
        return (double)((const float *)values)[at];
    if (format[0] == 'd')
    {
        const struct decimal d = decimal_at_row(array, format, row);
        return real_of_decimal(&d);
    }
    return ((const double *)values)[at];
}

/* Returns the number of a row. An unsigned integer above INT64_MAX becomes a
 * real that also holds the integer's 64 bits. */
static struct oj_plain_value number_at_row(const struct ArrowArray *array,
                                           const char *format, int64_t row)
{
    int64_t integer;
    if (strchr("efgd", format[0]) != NULL)
        return oj_plain_real(real_at_row(array, format, row));
    if (format[0] == 'b')
        return oj_plain_integer(
            arrow_bit(array->buffers[1], array->offset + row));
    integer =
        arrow_integer_at(format[0], array->buffers[1], array->offset + row);
    if (format[0] == 'L' && integer < 0)
        return oj_plain_large_unsigned((uint64_t)integer);
    return oj_plain_integer(integer);
}

/* ---- times --------------------------------------------------------------- */

/* Returns the size in bytes of a time, and sets *per_second to its units per
 * second, or to 0 if the unit is a day. */
static int size_and_unit_of_time(const char *format, int64_t *per_second)
{
    static const char units[] = "smun";
    static const int64_t per[] = {1, 1000, 1000000, 1000000000};
    const char *at;
    *per_second = 0;
    if (format[1] == 'd')
    {
        *per_second = format[2] == 'm' ? 1000 : 0;
        return format[2] == 'm' ? 8 : 4;
    }
    at = strchr(units, format[2]);
    *per_second = at != NULL && *at != '\0' ? per[at - units] : 1;
    return format[1] == 't' && (format[2] == 's' || format[2] == 'm') ? 4 : 8;
}

static int64_t time_at_row(const struct ArrowArray *array, const char *format,
                           int64_t row)
{
    int64_t per_second;
    return size_and_unit_of_time(format, &per_second) == 4
               ? ((const int32_t *)array->buffers[1])[array->offset + row]
               : ((const int64_t *)array->buffers[1])[array->offset + row];
}

static int64_t divide_rounding_down(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Computes year, month and day from days since 1970-01-01. Source: Hinnant,
 * chrono-compatible low-level date algorithms, civil_from_days. */
static void date_of_days(int64_t days, int64_t *year, int *month, int *day)
{
    int64_t era, of_era, year_of_era, of_year, m;
    days += 719468;
    era = divide_rounding_down(days, 146097);
    of_era = days - era * 146097;
    year_of_era =
        (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    of_year =
        of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    m = (5 * of_year + 2) / 153;
    *day = (int)(of_year - (153 * m + 2) / 5 + 1);
    *month = (int)(m < 10 ? m + 3 : m - 9);
    *year = year_of_era + era * 400 + (*month <= 2);
}

/* Writes a time like OGR: 2020/01/31, 12:30:00, or both. Milliseconds are
 * written unless they are 0, and +00 if the type has a time zone. Returns the
 * length of the text. */
static int64_t write_time(int64_t time, const char *format, char *to,
                          size_t size)
{
    int64_t per_second, days = 0, second = 0, year, thousandths = 0;
    int month, day, n = 0;
    size_and_unit_of_time(format, &per_second);
    if (per_second == 0)
        days = time;
    else
    {
        second = divide_rounding_down(time, per_second);
        thousandths = (time - second * per_second) * 1000 / per_second;
        days = divide_rounding_down(second, 86400);
        second -= days * 86400;
    }
    date_of_days(days, &year, &month, &day);
    if (format[1] != 't')
        n = snprintf(to, size, "%04lld/%02d/%02d", (long long)year, month, day);
    if (format[1] == 'd')
        return n;
    n += snprintf(to + n, size - (size_t)n, "%s%02d:%02d:%02d",
                  n > 0 ? " " : "", (int)(second / 3600),
                  (int)(second / 60 % 60), (int)(second % 60));
    if (thousandths > 0)
        n += snprintf(to + n, size - (size_t)n, ".%03d", (int)thousandths);
    if (format[1] == 's' && format[3] == ':' && format[4] != '\0')
        n += snprintf(to + n, size - (size_t)n, "+00");
    return n;
}

/* ---- values -------------------------------------------------------------- */

static oj_status text_at_row(const struct ArrowArray *array, const char *format,
                             int64_t row, struct oj_plain_value *out,
                             struct oj_error *err)
{
    struct arrow_bytes bytes;
    const uint8_t *text;
    size_t n;
    OJ_TRY(arrow_bytes_read(array, format, row, 1, &bytes, err));
    if (bytes.bytes != NULL && !bytes.is_view)
        bytes.n_bytes = arrow_offset_at(bytes.offset, bytes.is_large,
                                        array->offset + array->length);
    OJ_TRY(arrow_bytes_of_row(&bytes, 0, &text, &n, err));
    *out = oj_plain_text((const char *)text, (int64_t)n);
    return OJ_OK;
}

oj_status oj_arrow_plain_value(const struct ArrowSchema *schema,
                               const struct ArrowArray *array, int64_t row,
                               struct oj_arrow_room *room,
                               struct oj_plain_value *out, struct oj_error *err)
{
    enum oj_field_kind kind;
    memset(out, 0, sizeof *out);
    OJ_TRY(find_stored_value(&schema, &array, &row, err));
    if (row < 0)
        return OJ_OK;
    kind = oj_arrow_field_kind(schema);
    if (kind == OJ_FIELD_TEXT)
        return text_at_row(array, schema->format, row, out, err);
    if (oj_field_kind_is_number(kind))
        *out = number_at_row(array, schema->format, row);
    else if (oj_field_kind_is_time(kind))
        *out = oj_plain_text(room->text,
                             write_time(time_at_row(array, schema->format, row),
                                        schema->format, room->text,
                                        sizeof room->text));
    return OJ_OK;
}

oj_status oj_arrow_time_as_integer(const struct ArrowSchema *schema,
                                   const struct ArrowArray *array, int64_t row,
                                   struct oj_plain_value *out,
                                   struct oj_error *err)
{
    memset(out, 0, sizeof *out);
    OJ_TRY(find_stored_value(&schema, &array, &row, err));
    if (row >= 0 && oj_field_kind_is_time(oj_arrow_field_kind(schema)))
        *out = oj_plain_integer(time_at_row(array, schema->format, row));
    return OJ_OK;
}

oj_status oj_arrow_time_as_microseconds(const struct ArrowSchema *schema,
                                        const struct ArrowArray *array,
                                        int64_t row, struct oj_plain_value *out,
                                        struct oj_error *err)
{
    const int64_t most = OJ_MICROSECONDS_PER_SECOND;
    int64_t per_second, in_a_unit, microseconds;
    OJ_TRY(oj_arrow_time_as_integer(schema, array, row, out, err));
    if (out->form == OJ_PLAIN_NULL)
        return OJ_OK;
    size_and_unit_of_time(oj_arrow_schema_of_decoded_values(schema)->format,
                          &per_second);
    if (per_second > most)
    {
        out->integer = divide_rounding_down(out->integer, per_second / most);
        return OJ_OK;
    }
    in_a_unit = per_second == 0 ? OJ_MICROSECONDS_PER_DAY : most / per_second;
    if (__builtin_mul_overflow(out->integer, in_a_unit, &microseconds))
        return oj_fail(
            err, OJ_ERR_DATA,
            "column \"%.100s\": the time %lld (Arrow format "
            "\"%.20s\") is more than 292,000 years away from 1970 "
            "and cannot be compared in microseconds: set it to NULL, "
            "or remove its row",
            schema->name != NULL ? schema->name : "", (long long)out->integer,
            oj_arrow_schema_of_decoded_values(schema)->format);
    out->integer = microseconds;
    return OJ_OK;
}

/* Reads the bytes of a binary value. */
static oj_status bytes_at_row(const struct ArrowSchema *schema,
                              const struct ArrowArray *array, int64_t row,
                              struct oj_plain_value *out, struct oj_error *err)
{
    struct oj_arrow_type type = {OJ_STORES_FIXED, 0};
    memset(out, 0, sizeof *out);
    OJ_TRY(find_stored_value(&schema, &array, &row, err));
    if (row < 0)
        return OJ_OK;
    if (schema->format[0] != 'w')
        return text_at_row(array, schema->format, row, out, err);
    (void)oj_arrow_type_read(schema->format, &type); /* cannot fail: the schema
                                                        was checked */
    *out = oj_plain_text((const char *)array->buffers[1] +
                             (array->offset + row) * type.size,
                         type.size);
    return OJ_OK;
}

oj_status oj_arrow_compared_value(const struct ArrowSchema *schema,
                                  const struct ArrowArray *array, int64_t row,
                                  int is_moment, struct oj_arrow_room *room,
                                  struct oj_plain_value *out,
                                  struct oj_error *err)
{
    enum oj_field_kind kind = oj_arrow_field_kind(schema);
    if (is_moment && oj_field_kind_is_moment(kind))
        return oj_arrow_time_as_microseconds(schema, array, row, out, err);
    if (kind == OJ_FIELD_BYTES)
        return bytes_at_row(schema, array, row, out, err);
    if (oj_arrow_is_decimal(schema))
    {
        memset(out, 0, sizeof *out);
        OJ_TRY(find_stored_value(&schema, &array, &row, err));
        if (row >= 0)
            compared_decimal_at_row(array, schema->format, row, room, out);
        return OJ_OK;
    }
    return oj_arrow_plain_value(schema, array, row, room, out, err);
}

int oj_arrow_digits(const struct ArrowSchema *schema)
{
    const struct ArrowSchema *value = oj_arrow_schema_of_decoded_values(schema);
    const int is_list = oj_field_kind_is_list(oj_arrow_field_kind(value));
    if (is_list)
        value = oj_arrow_schema_of_decoded_values(value->children[0]);
    return oj_arrow_field_kind(value) == OJ_FIELD_FLOAT32
               ? OJ_PLAIN_DIGITS_OF_FLOAT32
           : is_list ? OJ_PLAIN_DIGITS_OF_LIST
                     : OJ_PLAIN_DIGITS;
}

/* Finds the elements of a list, from *first to *end - 1 of the array's child.
 * Checks the offsets of this row alone: those of all rows would take quadratic
 * time, since each row is read by a call. */
static oj_status find_elements(const struct ArrowSchema *schema,
                               const struct ArrowArray *array, int64_t row,
                               int64_t *first, int64_t *end,
                               struct oj_error *err)
{
    struct ArrowArray one_row = *array;
    struct arrow_list list;
    if (schema->format[1] == 'w')
    {
        *first = (array->offset + row) * oj_arrow_type_of(schema).size;
        *end = *first + oj_arrow_type_of(schema).size;
        return OJ_OK;
    }
    one_row.offset += row;
    one_row.length = 1;
    OJ_TRY(arrow_list_read(&one_row, schema->format[1] == 'L', &list, err));
    *first = arrow_list_range(&list, 0, end);
    return OJ_OK;
}

oj_status oj_arrow_write_list(const struct ArrowSchema *schema,
                              const struct ArrowArray *array, int64_t row,
                              struct oj_plain_list *list, int *is_there,
                              struct oj_error *err)
{
    const int digits = oj_arrow_digits(schema);
    int64_t first, end;
    OJ_TRY(find_stored_value(&schema, &array, &row, err));
    *is_there = row >= 0;
    if (row < 0)
        return OJ_OK;
    OJ_TRY(find_elements(schema, array, row, &first, &end, err));
    if (first > end || end > array->children[0]->length)
        return arrow_fail_mismatch(err);
    OJ_TRY(oj_plain_list_begin(list, end - first, err));
    for (int64_t i = first; i < end; i++)
    {
        struct oj_arrow_room room;
        struct oj_plain_value element;
        OJ_TRY(oj_arrow_plain_value(schema->children[0], array->children[0], i,
                                    &room, &element, err));
        OJ_TRY(oj_plain_list_add(list, &element, digits, err));
    }
    return oj_plain_list_end(list, err);
}

oj_status oj_arrow_has_value(const struct ArrowSchema *schema,
                             const struct ArrowArray *array, int64_t row,
                             int *out, struct oj_error *err)
{
    OJ_TRY(find_stored_value(&schema, &array, &row, err));
    *out = row >= 0;
    return OJ_OK;
}

oj_status oj_arrow_number(const struct ArrowSchema *schema,
                          const struct ArrowArray *array, int64_t row,
                          double *out, struct oj_error *err)
{
    struct oj_plain_value value;
    *out = (double)NAN;
    OJ_TRY(find_stored_value(&schema, &array, &row, err));
    if (row < 0 || !oj_field_kind_is_number(oj_arrow_field_kind(schema)))
        return OJ_OK;
    value = number_at_row(array, schema->format, row);
    *out = value.form == OJ_PLAIN_REAL ? value.real : (double)value.integer;
    return OJ_OK;
}
