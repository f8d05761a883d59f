/** Reads single values of Arrow columns: the kind of a column, and the value of
 *  a row as a plain value, a time as a number, or a text.
 *
 *   column                   kind       plain value
 *   uint8, int32, bool ...   integers   integer
 *   float, decimal           reals      real, a decimal rounded once
 *   utf8, views              text       text
 *   dictionary, run ends     that of their values
 *   date, time, timestamp    times      text as OGR writes it
 *   all others               bytes ...  none: not compared
 */
#ifndef OJ_ARROW_PLAIN_VALUES_H
#define OJ_ARROW_PLAIN_VALUES_H

#include "../rows/oj_field_kind.h"
#include "../rows/oj_plain_value.h"
#include "arrow_abi.h"

enum oj_field_kind oj_arrow_field_kind(const struct ArrowSchema *schema);

/** Returns the type of the values that are encoded by a dictionary or by runs;
 * for other columns schema itself. */
const struct ArrowSchema *
oj_arrow_schema_of_decoded_values(const struct ArrowSchema *schema);

/** Returns 1 if the values of a column are decimals. */
int oj_arrow_is_decimal(const struct ArrowSchema *schema);

/** Buffer for the text of one value; one per thread. */
struct oj_arrow_room
{
    char text[200];
};

/** Reads the value of a row. Precondition: oj_arrow_check_array() has accepted
 * the array. The result is NULL for kinds without plain values. Fails with
 * OJ_ERR_DATA if offsets or indices are invalid. */
OJ_MUST_USE oj_status oj_arrow_plain_value(const struct ArrowSchema *schema,
                                           const struct ArrowArray *array,
                                           int64_t row,
                                           struct oj_arrow_room *room,
                                           struct oj_plain_value *out,
                                           struct oj_error *err);

/** Reads the time of a row as an integer in the unit of its column. The result
 * is NULL if the row is NULL or the column has no times. */
OJ_MUST_USE oj_status oj_arrow_time_as_integer(const struct ArrowSchema *schema,
                                               const struct ArrowArray *array,
                                               int64_t row,
                                               struct oj_plain_value *out,
                                               struct oj_error *err);

/** Reads the time of a row as oj_arrow_time_as_integer(), but in microseconds;
 * finer units are rounded down. */
OJ_MUST_USE oj_status oj_arrow_time_as_microseconds(
    const struct ArrowSchema *schema, const struct ArrowArray *array,
    int64_t row, struct oj_plain_value *out, struct oj_error *err);

/** Reads the value of a row like oj_arrow_plain_value(), so that values are
 * equal exactly if what is read is equal: a decimal becomes an integer, or an
 * unsigned integer of 64 bits, if it is one, otherwise a real if %.15g writes
 * all its digits without an exponent, and else an OJ_PLAIN_DECIMAL; a binary
 * value becomes a text of its bytes. is_moment 1: dates and datetimes are read
 * by oj_arrow_time_as_microseconds(), since their texts have only milliseconds.
 */
OJ_MUST_USE oj_status oj_arrow_compared_value(const struct ArrowSchema *schema,
                                              const struct ArrowArray *array,
                                              int64_t row, int is_moment,
                                              struct oj_arrow_room *room,
                                              struct oj_plain_value *out,
                                              struct oj_error *err);

/** Returns the number of digits with which reals of a column, or of lists in
 * it, are written (oj_plain_value_write()). */
int oj_arrow_digits(const struct ArrowSchema *schema);

/** Writes the list of a row, of a column whose kind is a list, to *list.
 * *is_there becomes 0 if it is NULL, otherwise 1. */
OJ_MUST_USE oj_status oj_arrow_write_list(const struct ArrowSchema *schema,
                                          const struct ArrowArray *array,
                                          int64_t row,
                                          struct oj_plain_list *list,
                                          int *is_there, struct oj_error *err);

/** Sets *out to 1 if the row is not NULL, otherwise to 0. */
OJ_MUST_USE oj_status oj_arrow_has_value(const struct ArrowSchema *schema,
                                         const struct ArrowArray *array,
                                         int64_t row, int *out,
                                         struct oj_error *err);

/** Sets *out to the number of a row as a double, or to NaN if it is NULL or no
 * number. */
OJ_MUST_USE oj_status oj_arrow_number(const struct ArrowSchema *schema,
                                      const struct ArrowArray *array,
                                      int64_t row, double *out,
                                      struct oj_error *err);

#endif
