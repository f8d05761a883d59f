/** Converts values of fields to spans, for the command, JOIN:, the library and
 *  Python.
 *
 *   field               scale            number
 *   date, datetime      moments          microseconds since 1970 in UTC; a date
 *                                        is its midnight; a time without a zone
 *                                        counts as UTC
 *   time                times of a day   microseconds since midnight
 *   whole numbers       integers         the value; but INT64_MIN and INT64_MAX
 *                                        mark open ends (oj_spans.h), so these
 *                                        two values are moved by 1 towards 0
 *   any numbers         reals            an integer that sorts like the double
 *
 *  All fields of a condition have one scale.  Texts are read on the scale of
 *  the other fields; if these are whole numbers, the scale is reals, because a
 *  text can contain any number.  If all fields are texts, the scale is reals
 *  for a window without a unit, and otherwise moments, where a text that is
 *  only a time of a day counts as one of 1970-01-01.
 *
 *  -within_time with window W converts the input's value a to the span [a - W,
 *  a + W], and the join feature's value b to [b, b]; both ends are exact.  A
 *  row has no span if its value is NULL or does not fit the scale.
 *
 *  -during names two fields of a side, the ends of its spans, of which NULL is
 *  an open end; or one field, an instant, which is both ends.  A row has no
 *  span if its begin is after its end, if its instant is NULL, or if an end is
 *  a text that does not fit the scale.
 */
#ifndef OJ_SPAN_VALUES_H
#define OJ_SPAN_VALUES_H

#include "oj_compared_fields.h"

#include <stddef.h>

/** Kind of a field, as far as its values can become ends of spans. */
enum oj_span_field
{
    OJ_SPAN_FIELD_MOMENT = 0, /**< dates, datetimes */
    OJ_SPAN_FIELD_TIME,       /**< times of a day */
    OJ_SPAN_FIELD_INTEGER,
    OJ_SPAN_FIELD_REAL,
    OJ_SPAN_FIELD_TEXT,
    OJ_SPAN_FIELD_NULL, /**< without any value: fits fields of every kind */
    OJ_SPAN_FIELD_OTHER
};

/** The numbers to which fields are converted (see the table above). */
enum oj_span_scale
{
    OJ_SPAN_MOMENTS = 0,
    OJ_SPAN_TIMES_OF_DAY,
    OJ_SPAN_INTEGERS,
    OJ_SPAN_REALS
};

/** How to convert the values of one condition's fields. Plain values. */
struct oj_span_reading
{
    enum oj_span_scale scale;
    int is_window;      /**< 1: the condition is -within_time */
    int is_of_texts;    /**< 1: all fields are texts, or without any value */
    int has_texts[2];   /**< [side] 1: a field of the side is a text */
    int is_instant[2];  /**< [side] 1: the side has one field, whose value is
                             both ends */
    int64_t window;     /**< window of times in microseconds, or window of
                             integers, rounded down; unused for reals */
    double real_window; /**< the window as it was given, for reals */
};

/** Chooses the scale of a condition for fields of the kinds kind[side][end],
 * where end 0 is "from" and 1 is "until". Returns OJ_ERR_ARG if the kinds
 * cannot be compared with each other or with the window. */
OJ_MUST_USE oj_status oj_span_reading_plan(const struct oj_span_words *words,
                                           enum oj_span_field kind[2][2],
                                           struct oj_span_reading *out,
                                           struct oj_error *err);

/** One end of a span, converted from a field. */
struct oj_span_end
{
    enum
    {
        OJ_SPAN_END_NULL = 0,
        OJ_SPAN_END_IS_NONE, /**< the value does not fit the scale */
        OJ_SPAN_END_IS_THERE
    } state;
    int64_t at;  /**< the end as a number of the scale */
    double real; /**< the value itself, for windows of reals */
};

/** Converts an integer: microseconds of a moment or of a day, or a whole
 * number. */
struct oj_span_end oj_span_end_of_integer(const struct oj_span_reading *reading,
                                          int64_t value);

/** Converts a number; NaN counts as NULL. */
struct oj_span_end oj_span_end_of_real(const struct oj_span_reading *reading,
                                       double value);

/** Converts a text of n bytes; an empty text counts as NULL. */
struct oj_span_end oj_span_end_of_text(const struct oj_span_reading *reading,
                                       const char *text, int64_t n);

/** Makes the span of a row of one side (0: input, 1: join side) from its ends:
 * end[0] is "from", end[1] is "until". If fields of the side are instants, only
 * end[0] is read. Returns 1, or 0 if the row has no span. Then *from is greater
 * than *until. */
int oj_span_make(const struct oj_span_reading *reading, int side,
                 const struct oj_span_end end[2], int64_t *from,
                 int64_t *until);

/** Writes a warning if a side has a field of texts and more than half of its
 * n_rows rows have no span, as when the texts are not times: "5 of 8 rows have
 * no text that is a time, and match nothing; .." Returns 0, and writes "", if
 * there is nothing to warn of. */
int oj_span_reading_describe_missing(const struct oj_span_reading *reading,
                                     int side, int64_t n_without,
                                     int64_t n_rows, char *text, size_t size);

/** Returns 1 if *from and *until of each span of a side are equal, so that one
 * array serves for both. */
static inline int
oj_span_reading_is_of_instants(const struct oj_span_reading *reading, int side)
{
    return reading->is_instant[side] && !(reading->is_window && side == 0);
}

#endif
