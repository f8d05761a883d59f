#include "oj_span_values.h"

#include "../../../flatten/base/oj_number.h"
#include "../../../flatten/text/oj_moment.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- how fields are read ------------------------------------------------- */

static const char *const side_names[2] = {"input", "join"};

static const char *name_of_field_kind(enum oj_span_field kind)
{
    static const char *const names[] = {"dates or datetimes",
                                        "times of a day",
                                        "numbers",
                                        "numbers",
                                        "texts",
                                        "no value",
                                        "neither times nor numbers"};
    return names[kind];
}

/* Returns 1 if fields of these kinds can be compared: equal kinds, or integers
 * with reals. */
static int are_kinds_comparable(enum oj_span_field a, enum oj_span_field b)
{
    return a == b || (a == OJ_SPAN_FIELD_INTEGER && b == OJ_SPAN_FIELD_REAL) ||
           (a == OJ_SPAN_FIELD_REAL && b == OJ_SPAN_FIELD_INTEGER);
}

/* Finds the common kind of all fields that are neither texts nor without any
 * value; OJ_SPAN_FIELD_TEXT if there is no such field. OJ_ERR_ARG if their
 * kinds cannot be compared. */
static oj_status find_common_kind(const struct oj_span_words *words,
                                  enum oj_span_field kind[2][2],
                                  enum oj_span_field *out, struct oj_error *err)
{
    int first = -1;
    *out = OJ_SPAN_FIELD_TEXT;
    for (int i = 0; i < 4; i++)
    {
        enum oj_span_field of = kind[i / 2][i % 2];
        if (of == OJ_SPAN_FIELD_OTHER)
            return oj_fail(err, OJ_ERR_ARG,
                           "%s%s: the field '%.100s' of the %s layer holds %s: "
                           "name a field of times, numbers or texts",
                           words->dash, words->option,
                           words->fields[i / 2][i % 2], side_names[i / 2],
                           name_of_field_kind(of));
        if (of == OJ_SPAN_FIELD_TEXT || of == OJ_SPAN_FIELD_NULL)
            continue;
        if (first >= 0 && !are_kinds_comparable(*out, of))
            return oj_fail(err, OJ_ERR_ARG,
                           "%s%s: the field '%.100s' of the %s layer holds %s, "
                           "'%.100s' of the %s layer %s: name "
                           "fields of one kind",
                           words->dash, words->option,
                           words->fields[first / 2][first % 2],
                           side_names[first / 2], name_of_field_kind(*out),
                           words->fields[i / 2][i % 2], side_names[i / 2],
                           name_of_field_kind(of));
        *out = first >= 0 && *out == OJ_SPAN_FIELD_REAL ? *out : of;
        first = first >= 0 ? first : i;
    }
    return OJ_OK;
}

oj_status oj_span_reading_plan(const struct oj_span_words *words,
                               enum oj_span_field kind[2][2],
                               struct oj_span_reading *out,
                               struct oj_error *err)
{
    struct oj_span_reading reading = {.is_window = words->is_window};
    enum oj_span_field common;
    int is_number;
    OJ_TRY(find_common_kind(words, kind, &common, err));
    reading.is_of_texts = common == OJ_SPAN_FIELD_TEXT;
    for (int i = 0; i < 4; i++)
        reading.has_texts[i / 2] |= kind[i / 2][i % 2] == OJ_SPAN_FIELD_TEXT;
    if (common == OJ_SPAN_FIELD_TEXT)
        common = words->is_window && !words->has_unit ? OJ_SPAN_FIELD_REAL
                                                      : OJ_SPAN_FIELD_MOMENT;
    /* A text can contain any number, so texts and integers have the scale of
     * reals. */
    for (int i = 0; i < 4; i++)
    {
        if (common == OJ_SPAN_FIELD_INTEGER &&
            kind[i / 2][i % 2] == OJ_SPAN_FIELD_TEXT)
            common = OJ_SPAN_FIELD_REAL;
    }
    is_number = common == OJ_SPAN_FIELD_INTEGER || common == OJ_SPAN_FIELD_REAL;
    if (words->is_window && is_number && words->has_unit)
        return oj_fail(err, OJ_ERR_ARG,
                       "%s%s: the field '%.100s' holds numbers: write the "
                       "window as a number without a unit",
                       words->dash, words->option, words->fields[0][0]);
    if (words->is_window && !is_number && !words->has_unit)
        return oj_fail(err, OJ_ERR_ARG,
                       "%s%s: the field '%.100s' holds %s: write the window "
                       "with a unit, as 30min (ms, s, min, h, d, w)",
                       words->dash, words->option, words->fields[0][0],
                       name_of_field_kind(common));
    memcpy(reading.is_instant, words->is_instant, sizeof reading.is_instant);
    reading.scale = (enum oj_span_scale)common;
    reading.real_window = words->window;
    /* Rounding the window down changes no pair of integers, because integers
     * differ by whole numbers. */
    reading.window =
        words->window < 9e18 ? (int64_t)floor(words->window) : INT64_MAX;
    *out = reading;
    return OJ_OK;
}

_Static_assert((int)OJ_SPAN_FIELD_REAL == (int)OJ_SPAN_REALS &&
                   (int)OJ_SPAN_FIELD_INTEGER == (int)OJ_SPAN_INTEGERS &&
                   (int)OJ_SPAN_FIELD_TIME == (int)OJ_SPAN_TIMES_OF_DAY,
               "a scale for each kind");

/* ---- ends ---------------------------------------------------------------- */

/* Returns an integer that sorts like the double; 0 and -0 give equal
 * integers. */
static int64_t number_in_order_of_double(double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits < 0 ? INT64_MIN - bits : bits;
}

struct oj_span_end oj_span_end_of_integer(const struct oj_span_reading *reading,
                                          int64_t value)
{
    if (reading->scale == OJ_SPAN_REALS)
        return oj_span_end_of_real(reading, (double)value);
    /* INT64_MIN and INT64_MAX are reserved for open ends and missing spans. */
    value = value == INT64_MAX ? INT64_MAX - 1 : value;
    value = value == INT64_MIN ? INT64_MIN + 1 : value;
    return (struct oj_span_end){OJ_SPAN_END_IS_THERE, value, 0.0};
}

struct oj_span_end oj_span_end_of_real(const struct oj_span_reading *reading,
                                       double value)
{
    struct oj_span_end end = {OJ_SPAN_END_IS_THERE, 0, value};
    if (isnan(value))
        return (struct oj_span_end){OJ_SPAN_END_NULL, 0, 0.0};
    if (reading->scale == OJ_SPAN_REALS)
        end.at = number_in_order_of_double(value);
    else /* A field of unsigned 64-bit integers is read as reals, which may
            exceed int64_t. */
        end.at = value < 0x1p63 ? (int64_t)value : INT64_MAX - 1;
    return end;
}

struct oj_span_end oj_span_end_of_text(const struct oj_span_reading *reading,
                                       const char *text, int64_t n)
{
    struct oj_span_end end = {OJ_SPAN_END_IS_NONE, 0, 0.0};
    double number;
    if (n == 0)
        end.state = OJ_SPAN_END_NULL;
    else if (reading->scale == OJ_SPAN_MOMENTS)
    {
        if (oj_moment_read(text, n, &end.at) ||
            (reading->is_of_texts && oj_moment_of_day_read(text, n, &end.at)))
            end.state = OJ_SPAN_END_IS_THERE;
    }
    else if (reading->scale == OJ_SPAN_TIMES_OF_DAY)
    {
        if (oj_moment_of_day_read(text, n, &end.at))
            end.state = OJ_SPAN_END_IS_THERE;
    }
    else if (!isnan(number = oj_text_number(text, n)))
        return oj_span_end_of_real(reading, number);
    return end;
}

/* ---- spans --------------------------------------------------------------- */

/* Returns a + b, clamped to the range of int64_t. */
static int64_t add_clamped_to_int64(int64_t a, int64_t b)
{
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum))
        return sum;
    return a < 0 ? INT64_MIN : INT64_MAX;
}

/* Returns the greatest double that does not exceed the exact sum a + b. The
 * error of the rounded sum is computed exactly (Knuth's TwoSum). */
static double greatest_double_up_to_sum(double a, double b)
{
    double sum = a + b, of_b = sum - a;
    double error = (a - (sum - of_b)) + (b - of_b);
    if (isinf(sum) && !isinf(a)) /* The exact sum exceeds all doubles. */
        return DBL_MAX;
    return error < 0.0 ? nextafter(sum, -(double)INFINITY) : sum;
}

static void make_span_around_value(const struct oj_span_reading *reading,
                                   const struct oj_span_end *end, int64_t *from,
                                   int64_t *until)
{
    double w = reading->real_window;
    if (reading->scale == OJ_SPAN_REALS)
    {
        *until =
            number_in_order_of_double(greatest_double_up_to_sum(end->real, w));
        *from = number_in_order_of_double(
            -greatest_double_up_to_sum(-end->real, w));
        return;
    }
    *from = add_clamped_to_int64(end->at, -reading->window);
    *until = add_clamped_to_int64(end->at, reading->window);
}

int oj_span_make(const struct oj_span_reading *reading, int side,
                 const struct oj_span_end end[2], int64_t *from, int64_t *until)
{
    const struct oj_span_end *last = &end[reading->is_instant[side] ? 0 : 1];
    int is_there =
        end[0].state != OJ_SPAN_END_IS_NONE &&
        last->state != OJ_SPAN_END_IS_NONE &&
        !(reading->is_instant[side] && end[0].state == OJ_SPAN_END_NULL);
    if (is_there && reading->is_window && side == 0)
        make_span_around_value(reading, &end[0], from, until);
    else if (is_there)
    {
        *from = end[0].state == OJ_SPAN_END_NULL ? INT64_MIN : end[0].at;
        *until = last->state == OJ_SPAN_END_NULL ? INT64_MAX : last->at;
        is_there = *from <= *until;
    }
    if (is_there)
        return 1;
    *from = INT64_MAX;
    *until = INT64_MIN;
    return 0;
}

/* ---- warnings ------------------------------------------------------------ */

int oj_span_reading_describe_missing(const struct oj_span_reading *reading,
                                     int side, int64_t n_without,
                                     int64_t n_rows, char *text, size_t size)
{
    static const char *const what[] = {[OJ_SPAN_MOMENTS] = "a time",
                                       [OJ_SPAN_TIMES_OF_DAY] =
                                           "a time of a day",
                                       [OJ_SPAN_INTEGERS] = "a number",
                                       [OJ_SPAN_REALS] = "a number"};
    static const char *const example[] = {
        [OJ_SPAN_MOMENTS] = "; times are written as 2026-11-29T18:00:00Z",
        [OJ_SPAN_TIMES_OF_DAY] = "; these are written as 18:00:00",
        [OJ_SPAN_INTEGERS] = "",
        [OJ_SPAN_REALS] = ""};
    text[0] = '\0';
    if (!reading->has_texts[side] || n_without <= n_rows / 2)
        return 0;
    snprintf(text, size,
             "%lld of %lld rows have no text that is %s, and match nothing%s",
             (long long)n_without, (long long)n_rows, what[reading->scale],
             example[reading->scale]);
    return 1;
}
