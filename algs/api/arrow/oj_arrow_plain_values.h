/** Values of Arrow columns one by one: which kind of field a column is, and
 * what a row holds as a plain value, a time as a number, or a text.
 *
 *   column                   kind       plain value
 *   uint8, int32, bool ...   integers   integer
 *   float, decimal           reals      real, a decimal rounded once
 *   utf8, views              text       text
 *   dictionary, run ends     that of their values
 *   date, time, timestamp    times      text as OGR writes it
 *   all others               bytes ...  none that is compared
 */
#ifndef OJ_ARROW_PLAIN_VALUES_H
#define OJ_ARROW_PLAIN_VALUES_H

#include "../rows/oj_field_kind.h"
#include "../rows/oj_plain_value.h"
#include "arrow_abi.h"

enum oj_field_kind oj_arrow_kind(const struct ArrowSchema *schema);

/** The column that holds the values: that of dictionaries or run ends. */
const struct ArrowSchema *
oj_arrow_value_schema(const struct ArrowSchema *schema);

/** Room for what a value borrows; of one thread, for one value at a time. */
struct oj_arrow_room
{
    char text[80];
};

/** The value of a row of an array that oj_arrow_check_array() has taken; NULL
 *  for kinds that have none. OJ_ERR_DATA: offsets or places are broken. */
OJ_MUST_USE oj_status oj_arrow_plain_value(const struct ArrowSchema *schema,
                                           const struct ArrowArray *array,
                                           int64_t row,
                                           struct oj_arrow_room *room,
                                           struct oj_plain_value *out,
                                           struct oj_error *err);

/** The time of a row in the unit of its column, as an integer; NULL: it is none
 *  or another kind. */
OJ_MUST_USE oj_status oj_arrow_time(const struct ArrowSchema *schema,
                                    const struct ArrowArray *array, int64_t row,
                                    struct oj_plain_value *out,
                                    struct oj_error *err);

/** 1 when a row has a value. */
OJ_MUST_USE oj_status oj_arrow_has_value(const struct ArrowSchema *schema,
                                         const struct ArrowArray *array,
                                         int64_t row, int *out,
                                         struct oj_error *err);

/** The number of a row; NaN: NULL, or no number. */
OJ_MUST_USE oj_status oj_arrow_number(const struct ArrowSchema *schema,
                                      const struct ArrowArray *array,
                                      int64_t row, double *out,
                                      struct oj_error *err);

#endif
