/** How values of fields become spans, for every door.
 *
 *   field               scale            number
 *   date, datetime      moments          microseconds since 1970 in UTC; a date
 *                                        is its midnight; a time without a zone
 *                                        counts as UTC
 *   time                times of a day   microseconds since midnight
 *   whole numbers       integers         themselves, without the outermost two
 *   any numbers         reals            bits of the double, in its order
 *   text                that of the other fields, reals for integers; of texts
 *                       alone moments (a time without a date on a day of its
 *                       own), or reals if the window has no unit
 *
 *  -within_time makes [a - W, a + W] of the input's value and [b, b] of the
 *  join feature's; both ends are exact.  A row has no span if its value is
 * NULL, or no value of the scale.  -during: NULL is an open end; a row has no
 * span if the begin is after the end, if an instant is NULL, or if an end is a
 * text that is no value of the scale.
 */
#ifndef OJ_SPAN_VALUES_H
#define OJ_SPAN_VALUES_H

#include "oj_compared_fields.h"

/** What a field holds, as far as spans can be made of it. */
enum oj_span_field
{
    OJ_SPAN_FIELD_MOMENT = 0, /**< dates, datetimes */
    OJ_SPAN_FIELD_TIME,       /**< times of a day */
    OJ_SPAN_FIELD_INTEGER,
    OJ_SPAN_FIELD_REAL,
    OJ_SPAN_FIELD_TEXT,
    OJ_SPAN_FIELD_OTHER
};

enum oj_span_scale
{
    OJ_SPAN_MOMENTS = 0,
    OJ_SPAN_TIMES_OF_DAY,
    OJ_SPAN_INTEGERS,
    OJ_SPAN_REALS
};

/** How the values of the fields of one condition are read. Plain values. */
struct oj_span_reading
{
    enum oj_span_scale scale;
    int is_window;
    int is_of_texts;   /**< 1: all fields are texts */
    int is_instant[2]; /**< [side] 1: both ends are one value */
    int64_t window;    /**< not for reals */
    double real_window;
};

/** Decides how to read fields of these kinds, [side][0: from, 1: until].
 * OJ_ERR_ARG: they cannot be compared with each other or with the window. */
OJ_MUST_USE oj_status oj_span_reading_plan(const struct oj_span_words *words,
                                           enum oj_span_field kind[2][2],
                                           struct oj_span_reading *out,
                                           struct oj_error *err);

/** One end of a span. */
struct oj_span_end
{
    enum
    {
        OJ_SPAN_END_NULL = 0,
        OJ_SPAN_END_IS_NONE, /**< a value that the scale does not have */
        OJ_SPAN_END_IS_THERE
    } state;
    int64_t at;
    double real; /**< for windows of reals */
};

/** An end of a value: microseconds of a moment or of a day, or a whole number.
 */
struct oj_span_end oj_span_end_of_integer(const struct oj_span_reading *reading,
                                          int64_t value);

/** An end of a number; NaN is NULL. */
struct oj_span_end oj_span_end_of_real(const struct oj_span_reading *reading,
                                       double value);

/** An end of a text of n bytes; an empty one is NULL. */
struct oj_span_end oj_span_end_of_text(const struct oj_span_reading *reading,
                                       const char *text, int64_t n);

/** Makes the span of a row of one side. end: [0] from, [1] until; for instants
 * end[0] alone. Returns 0 if the row has none: *from is then after *until. */
int oj_span_make(const struct oj_span_reading *reading, int side,
                 const struct oj_span_end end[2], int64_t *from,
                 int64_t *until);

/** 1 if *from and *until of a side are always equal where there is a span, so
 * that one array serves for both. */
static inline int
oj_span_reading_is_of_points(const struct oj_span_reading *reading, int side)
{
    return reading->is_instant[side] && !(reading->is_window && side == 0);
}

#endif
