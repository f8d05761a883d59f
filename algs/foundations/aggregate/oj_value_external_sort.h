/** External sort of the values of aggregates that need all values of a row, in
 *  order.
 *
 *  Values are added in any order and read sorted by row, and within a row by
 *  number, by bytes, or by the (FID, place) of their join features.  If memory
 *  is short, sorted runs are written to a file and merged at the end:
 *
 *     add, add, ... -> [memory] --spill--> run 0 | run 1 | run 2 ...
 *                          \___________________________/
 *                                merged by rewind, next
 */
#ifndef OJ_VALUE_EXTERNAL_SORT_H
#define OJ_VALUE_EXTERNAL_SORT_H

#include "../../../flatten/base/oj_status.h"

#include <stdint.h>

enum oj_held_order
{
    OJ_HELD_BY_NUMBER, /**< numbers; 16 bytes per value */
    OJ_HELD_BY_BYTES,  /**< bytes in the order of memcmp(), the shorter first */
    OJ_HELD_BY_PLACE   /**< by (FID, place), unique within a row */
};

/** Provides files for the runs. */
struct oj_held_files
{
    /** Returns a descriptor, open for reading and writing, of an empty file
     * that is deleted when it is closed; < 0 with errno on failure. */
    int (*open)(void *user);
    void *user;
};

/** A value that is added or read. */
struct oj_held_value
{
    int64_t row;
    uint64_t number;    /**< BY_NUMBER */
    int64_t fid, place; /**< BY_PLACE */
    const char *bytes;  /**< not with BY_NUMBER; when read, valid until the
                             next value is read */
    int64_t n_bytes;
};

struct oj_value_sort;

/** Opens an empty store. files must outlive it; NULL: it cannot spill. */
OJ_MUST_USE oj_status oj_value_sort_open(enum oj_held_order order,
                                         const struct oj_held_files *files,
                                         struct oj_value_sort **out,
                                         struct oj_error *err);

OJ_MUST_USE oj_status oj_value_sort_add(struct oj_value_sort *held,
                                        const struct oj_held_value *value,
                                        struct oj_error *err);

/** Memory used by the values, in bytes. */
int64_t oj_value_sort_bytes(const struct oj_value_sort *held);

/** Writes the values in memory to a file as a sorted run, and frees the memory.
 */
OJ_MUST_USE oj_status oj_value_sort_spill(struct oj_value_sort *held,
                                          struct oj_error *err);

/** Ends adding and moves the cursor to the first value. */
OJ_MUST_USE oj_status oj_value_sort_rewind(struct oj_value_sort *held,
                                           struct oj_error *err);

/** The value at the cursor; NULL after the last. */
const struct oj_held_value *
oj_value_sort_peek(const struct oj_value_sort *held);

/** Moves the cursor to the next value. */
OJ_MUST_USE oj_status oj_value_sort_skip(struct oj_value_sort *held,
                                         struct oj_error *err);

/** Empties the store for new values; keeps a moderate amount of memory. */
void oj_value_sort_clear(struct oj_value_sort *held);

/** Accepts NULL. */
void oj_value_sort_close(struct oj_value_sort *held);

/** Compares bytes in the order of memcmp(), the shorter first: < 0, 0 or > 0.
 */
int oj_bytes_compare(const char *a, int64_t n_a, const char *b, int64_t n_b);

#endif
