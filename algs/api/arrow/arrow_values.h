/** Access to the values of Arrow arrays: validity, offsets, and texts or bytes,
 * contiguous or in views. Everything is checked except the lengths of buffers,
 * which Arrow does not state. Source:
 * https://arrow.apache.org/docs/format/Columnar.html. */
#ifndef ARROW_VALUES_H
#define ARROW_VALUES_H

#include "../../../flatten/base/oj_status.h"
#include "arrow_abi.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Fails with OJ_ERR_DATA: an array does not match its schema. */
oj_status arrow_fail_mismatch(struct oj_error *err);

/** Fails with OJ_ERR_DATA: the offsets of an array are invalid. */
oj_status arrow_fail_offsets(struct oj_error *err);

/** Fails with OJ_ERR_LIMIT: a row is too large for the offsets or indices of
 * its type. */
oj_status arrow_fail_limit(struct oj_error *err);

/** Checks that an array is not NULL, has at least n_buffers buffers, and has
 * n_children children. */
OJ_MUST_USE oj_status arrow_check_layout(const struct ArrowArray *array,
                                         int64_t n_buffers, int64_t n_children,
                                         struct oj_error *err);

/** Returns the validity bitmap; NULL if all elements are valid. */
static inline const uint8_t *arrow_validity(const struct ArrowArray *array)
{
    return array->null_count == 0 ? NULL : (const uint8_t *)array->buffers[0];
}

static inline int arrow_bit(const uint8_t *bits, int64_t i)
{
    return bits == NULL || (bits[i >> 3] >> (i & 7) & 1) != 0;
}

/** Sets bit i, which must be 0 before, to value. */
static inline void arrow_set_zeroed_bit(uint8_t *bits, int64_t i, int value)
{
    bits[i >> 3] = (uint8_t)(bits[i >> 3] | (unsigned)value << (i & 7));
}

/** Sets bit i to value. */
static inline void arrow_put_bit(uint8_t *bits, int64_t i, int value)
{
    bits[i >> 3] = (uint8_t)(bits[i >> 3] & ~(1u << (i & 7)));
    arrow_set_zeroed_bit(bits, i, value);
}

/** Returns the number of 1 bits among the first n. */
int64_t arrow_count_bits(const uint8_t *bits, int64_t n);

/** Validity of the rows of a column, which may be in a struct. */
struct arrow_presence
{
    const uint8_t *valid, *outer_valid; /**< validity bitmaps of the column, and
                                             of the struct that contains it;
                                             NULL: all valid */
    int64_t first;   /**< index of row 0 in the buffers of the column: the
                          column's own offset plus `skipped` */
    int64_t skipped; /**< elements of the column before row 0: the offset of the
                          surrounding struct; 0 without one */
};

static inline int arrow_is_valid(const struct arrow_presence *p, int64_t row)
{
    return arrow_bit(p->valid, p->first + row) &&
           arrow_bit(p->outer_valid, p->skipped + row);
}

/** Returns integer i of an array of one of Arrow's formats c C s S i I l L.
 * Integers of format L beyond INT64_MAX become negative. */
int64_t arrow_integer_at(char format, const void *integers, int64_t i);

/** Sets *column to a child of the struct `array`, or to array itself if child
 * is -1, and *presence to the validity of its rows. Checks that the column has
 * at least as many rows as array. */
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

/** Writes entry i of an array of offsets of 4 or 8 bytes. */
static inline void arrow_put_offset(void *offset, int64_t size, int64_t i,
                                    int64_t value)
{
    if (size == 8)
        ((int64_t *)offset)[i] = value;
    else
        ((int32_t *)offset)[i] = (int32_t)value;
}

struct arrow_list
{
    const void *offset; /**< [first + length + 1] offsets of 4 or 8 bytes */
    int is_large;
    int64_t first, length; /**< elements first .. first + length - 1 of the
                                array */
};

/** Reads an array of lists. Checks its offsets against the length of its child.
 * is_large: 1: offsets have 64 bits; 0: 32 bits. */
OJ_MUST_USE oj_status arrow_list_read(const struct ArrowArray *array,
                                      int is_large, struct arrow_list *out,
                                      struct oj_error *err);

/** Returns the first child element of list `at` and sets *end to the element
 * after the list's last. */
static inline int64_t arrow_list_range(const struct arrow_list *list,
                                       int64_t at, int64_t *end)
{
    *end = arrow_offset_at(list->offset, list->is_large, list->first + at + 1);
    return arrow_offset_at(list->offset, list->is_large, list->first + at);
}

/** Column of texts or binaries. For contiguous values, offset, bytes and
 * n_bytes are set. For views, offset points to the views, and block,
 * block_bytes and n_blocks are set. */
struct arrow_bytes
{
    int is_view, is_large;
    int64_t first; /* index of row 0 in the buffers */
    const void *offset;
    const uint8_t *bytes;
    int64_t n_bytes; /* end of the last row's bytes in `bytes` */
    const uint8_t *const *block;
    const int64_t *block_bytes;
    int64_t n_blocks;
};

/** Reads n_rows strings or binaries, starting at element `skipped` of array.
 * format: Arrow's format string: z Z vz (binary) or u U vu (text). */
OJ_MUST_USE oj_status arrow_bytes_read(const struct ArrowArray *array,
                                       const char *format, int64_t skipped,
                                       int64_t n_rows, struct arrow_bytes *out,
                                       struct oj_error *err);

/** Sets *bytes and *n to the bytes of a row and their number. Precondition: the
 * row is not NULL. */
OJ_MUST_USE oj_status arrow_bytes_of_row(const struct arrow_bytes *b,
                                         int64_t row, const uint8_t **bytes,
                                         size_t *n, struct oj_error *err);

enum
{
    ARROW_VIEW_BYTES = 16, /**< size of an Arrow binary view. Short values:
                                length and up to 12 bytes of data. Others:
                                length, first 4 bytes, block number, offset in
                                the block */
    ARROW_MOST_INSIDE = 12 /**< maximum length of data stored in the view
                                itself */
};

struct arrow_view
{
    int32_t length;
    int32_t block, at; /**< block number and offset, if length >
                            ARROW_MOST_INSIDE */
};

static inline struct arrow_view arrow_view_read(const void *view)
{
    struct arrow_view v;
    memcpy(&v.length, view, sizeof v.length);
    memcpy(&v.block, (const char *)view + 8, sizeof v.block);
    memcpy(&v.at, (const char *)view + 12, sizeof v.at);
    return v;
}

/** Returns the number of bytes of a view's value that are stored in a block; 0
 * if the value is in the view itself; -1 if the view is invalid. */
int64_t arrow_view_count_block_bytes(const void *view, int64_t n_blocks,
                                     const uint8_t *const *block,
                                     const int64_t *block_bytes);

/** Fails with OJ_ERR_DATA: the views of an array are invalid. */
oj_status arrow_fail_views(struct oj_error *err);

/** Returns the size in bytes of the run ends of a run-end encoded array, by
 * Arrow format s, i or l. */
int64_t arrow_run_end_size(const char *format);

/** Returns the end (exclusive) of run i, as an element index. */
int64_t arrow_run_end(const struct ArrowArray *ends, int64_t size, int64_t i);

/** Returns the index of the run that contains element `at`. The array's offset
 * must have been added to `at`. O(log runs). */
int64_t arrow_run_find(const struct ArrowArray *ends, int64_t size, int64_t at);

#endif
