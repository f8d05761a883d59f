/** The values of an Arrow array, as columns of all kinds have them: which are
 *  there, offsets, and texts or bytes one after another or in views.
 *  Arrow does not state the lengths of buffers, so that they cannot be checked;
 *  all else is checked.
 *  Source: https://arrow.apache.org/docs/format/Columnar.html.
 */
#ifndef ARROW_VALUES_H
#define ARROW_VALUES_H

#include "../../../flatten/base/oj_status.h"
#include "arrow_abi.h"

#include <stddef.h>
#include <stdint.h>

/** OJ_ERR_DATA: an array is not what its schema says. */
oj_status arrow_fail(struct oj_error *err);

/** An array that is there, with these counts, or with more buffers. */
OJ_MUST_USE oj_status arrow_check(const struct ArrowArray *array,
                                  int64_t n_buffers, int64_t n_children,
                                  struct oj_error *err);

/** A bit for each element of the buffers, or NULL: all are there. */
static inline const uint8_t *arrow_validity(const struct ArrowArray *array)
{
    return array->null_count == 0 ? NULL : (const uint8_t *)array->buffers[0];
}

static inline int arrow_bit(const uint8_t *bits, int64_t i)
{
    return bits == NULL || (bits[i >> 3] >> (i & 7) & 1) != 0;
}

/** Which rows of a column are there. */
struct arrow_presence
{
    const uint8_t *valid, *outer_valid; /**< of it, and of the struct around */
    int64_t first;   /**< number of row 0 in the buffers of the column */
    int64_t skipped; /**< elements of the column before it: those of the struct
                          before its first, too */
};

static inline int arrow_is_there(const struct arrow_presence *p, int64_t row)
{
    return arrow_bit(p->valid, p->first + row) &&
           arrow_bit(p->outer_valid, p->skipped + row);
}

/** Finds child number child of a struct, or -1: array itself, with as many rows
 *  as array has. */
OJ_MUST_USE oj_status arrow_find_column(const struct ArrowArray *array,
                                        int64_t child,
                                        const struct ArrowArray **column,
                                        struct arrow_presence *presence,
                                        struct oj_error *err);

static inline int64_t arrow_offset_at(const void *offset, int is_large,
                                      int64_t i)
{
    return is_large ? ((const int64_t *)offset)[i]
                    : ((const int32_t *)offset)[i];
}

struct arrow_list
{
    const void *offset; /**< [first + length + 1] */
    int is_large;
    int64_t first, length; /**< of the array that is a list of lists */
};

/** An array of lists, whose offsets lie in what they hold. */
OJ_MUST_USE oj_status arrow_list_read(const struct ArrowArray *array,
                                      int is_large, struct arrow_list *out,
                                      struct oj_error *err);

/** The first of what element at holds, and the end of it. */
static inline int64_t arrow_list_range(const struct arrow_list *list,
                                       int64_t at, int64_t *end)
{
    *end = arrow_offset_at(list->offset, list->is_large, list->first + at + 1);
    return arrow_offset_at(list->offset, list->is_large, list->first + at);
}

/** Texts or binaries; views have no bytes but blocks of them. */
struct arrow_bytes
{
    int is_view, is_large;
    int64_t first; /* number of row 0 in the buffers */
    const void *offset;
    const uint8_t *bytes;
    int64_t n_bytes; /* up to the end of the last row */
    const uint8_t *const *block;
    const int64_t *block_bytes;
    int64_t n_blocks;
};

/** n_rows of an array of this Arrow format (z Z vz u U vu), from element
 *  skipped of it on. */
OJ_MUST_USE oj_status arrow_bytes_read(const struct ArrowArray *array,
                                       const char *format, int64_t skipped,
                                       int64_t n_rows, struct arrow_bytes *out,
                                       struct oj_error *err);

/** The bytes of a row that is there. */
OJ_MUST_USE oj_status arrow_bytes_find(const struct arrow_bytes *b, int64_t row,
                                       const uint8_t **bytes, size_t *n,
                                       struct oj_error *err);

/** Bytes of the ends of runs, by their format: s, i or l. */
int64_t arrow_run_end_size(const char *format);

/** Where run i ends. */
int64_t arrow_run_end(const struct ArrowArray *ends, int64_t size, int64_t i);

/** The first run that ends behind element at, counted behind the offset of the
 *  array of runs. O(log runs). */
int64_t arrow_run_find(const struct ArrowArray *ends, int64_t size, int64_t at);

#endif
