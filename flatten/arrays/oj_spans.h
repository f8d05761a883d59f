/** Spans of features: an interval of time, or of numbers, per row.
 *
 *   row     0     1     2           3
 *   from    10    12    INT64_MIN   INT64_MAX    row 2 began at no known time,
 *   until   20    12    15          INT64_MIN    row 3 has no span
 *
 *  Both ends belong to the span.  Moments are microseconds since 1970 in UTC,
 *  times of a day microseconds since midnight; numbers keep their order
 *  (algs/foundations/relation/oj_span_values.h).
 */
#ifndef OJ_SPANS_H
#define OJ_SPANS_H

#include <stdint.h>

enum
{
    OJ_MOST_SPANS = 2 /* spans of a row: -within_time and -during */
};

/** A view: owns nothing. Spans without duration may have one array for both
 * members. */
struct oj_spans
{
    const int64_t *from;  /**< [n_rows]; INT64_MIN: no known start; INT64_MAX:
                               no span */
    const int64_t *until; /**< [n_rows]; INT64_MAX: no known end */
};

/** Returns 1 if these are the ends of a span; a row without a span matches
 *  nothing. */
static inline int oj_span_exists(int64_t from, int64_t until)
{
    return from <= until && from < INT64_MAX;
}

static inline int oj_span_is_there(const struct oj_spans *spans, int64_t row)
{
    return oj_span_exists(spans->from[row], spans->until[row]);
}

#endif
