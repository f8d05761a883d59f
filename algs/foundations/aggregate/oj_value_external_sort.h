/** External sort for aggregates that need all values of a row in order.
 *
 *  Values are added in any order and read sorted by row, and within a row by
 *  number, by bytes, or by the (FID, reading position) of their join features.
 *  When the caller asks for it (oj_value_sort_spill()), the values in memory
 *  are written to a file as a sorted run; the runs are merged at the end:
 *
 *     add, add, ... -> [memory] --spill--> run 0 | run 1 | run 2 ...
 *                          \___________________________/
 *                                merged by rewind, next
 */
#ifndef OJ_VALUE_EXTERNAL_SORT_H
#define OJ_VALUE_EXTERNAL_SORT_H

#include "../../../flatten/base/oj_status.h"

#include <stdint.h>

/** How the values of a row are sorted. */
enum oj_value_sort_order
{
    OJ_VALUE_SORT_BY_NUMBER, /**< by `number`; takes 16 bytes per value */
    OJ_VALUE_SORT_BY_BYTES,  /**< by bytes, as oj_bytes_compare() orders them */
    OJ_VALUE_SORT_BY_PLACE /**< by (FID, reading position) of the join feature,
                                which are unique within a row */
};

/** Provides files for the sorted runs. */
struct oj_value_sort_files
{
    /** Opens an empty file for reading and writing that is deleted when it is
     * closed. Returns its descriptor; < 0 with errno on failure. */
    int (*open)(void *user);
    void *user;
};

/** A value with its row, to be added or as read. */
struct oj_value_sort_value
{
    int64_t row;
    uint64_t number;    /**< set with OJ_VALUE_SORT_BY_NUMBER */
    int64_t fid, place; /**< FID and reading position of the join feature; set
                             with OJ_VALUE_SORT_BY_PLACE */
    const char *bytes;  /**< NULL with OJ_VALUE_SORT_BY_NUMBER; when read, valid
                             until the next value is read */
    int64_t n_bytes;
};

struct oj_value_sort;

/** Makes an empty store. files must outlive the store; with NULL all values
 * stay in memory. */
OJ_MUST_USE oj_status oj_value_sort_open(
    enum oj_value_sort_order order, const struct oj_value_sort_files *files,
    struct oj_value_sort **out, struct oj_error *err);

/** Adds a value; its bytes are copied. */
OJ_MUST_USE oj_status oj_value_sort_add(struct oj_value_sort *held,
                                        const struct oj_value_sort_value *value,
                                        struct oj_error *err);

/** Returns the bytes of memory that the values use. */
int64_t oj_value_sort_bytes(const struct oj_value_sort *held);

/** Moves the values in memory to a file, as a sorted run. Does nothing if there
 * are no values or no files. */
OJ_MUST_USE oj_status oj_value_sort_spill(struct oj_value_sort *held,
                                          struct oj_error *err);

/** Ends the adding of values and moves the cursor to the first value in sorted
 *  order.
 */
OJ_MUST_USE oj_status oj_value_sort_rewind(struct oj_value_sort *held,
                                           struct oj_error *err);

/** Returns the value at the cursor, or NULL at the end. */
const struct oj_value_sort_value *
oj_value_sort_peek(const struct oj_value_sort *held);

/** Moves the cursor to the next value. */
OJ_MUST_USE oj_status oj_value_sort_skip(struct oj_value_sort *held,
                                         struct oj_error *err);

/** Removes all values; keeps up to 1 MiB of memory for new ones. */
void oj_value_sort_clear(struct oj_value_sort *held);

/** Frees the store, which may be NULL. */
void oj_value_sort_close(struct oj_value_sort *held);

/** Compares bytes like memcmp() and returns < 0, 0 or > 0. If one sequence is a
 * prefix of the other, the shorter sequence is first. */
int oj_bytes_compare(const char *a, int64_t n_a, const char *b, int64_t n_b);

#endif
