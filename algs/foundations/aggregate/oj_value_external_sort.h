/** Values that an aggregate has to see together: all of a row, in order.
 *
 *  They come in any order and are given back sorted by row, and within a row by
 *  number, by bytes, or by the place of their join features.  What is too much
 *  for memory is put aside as sorted runs in a file and merged at the end:
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
    OJ_HELD_BY_NUMBER, /**< 16 bytes a value */
    OJ_HELD_BY_BYTES,  /**< as memcmp() says, the shorter first */
    OJ_HELD_BY_PLACE   /**< by (FID, place), which differ within a row */
};

/** Where runs go. */
struct oj_held_files
{
    /** An open file descriptor, for reading and writing, of an empty file that
     *  goes away when it is closed; < 0 with errno. */
    int (*open)(void *user);
    void *user;
};

/** A value, on its way in or out. */
struct oj_held_value
{
    int64_t row;
    uint64_t number;    /**< BY_NUMBER */
    int64_t fid, place; /**< BY_PLACE */
    const char *bytes;  /**< not BY_NUMBER; going out, valid until the next */
    int64_t n_bytes;
};

struct oj_value_sort;

/** An empty store. files outlives it; NULL: it cannot spill. */
OJ_MUST_USE oj_status oj_value_sort_open(enum oj_held_order order,
                                         const struct oj_held_files *files,
                                         struct oj_value_sort **out,
                                         struct oj_error *err);

OJ_MUST_USE oj_status oj_value_sort_add(struct oj_value_sort *held,
                                        const struct oj_held_value *value,
                                        struct oj_error *err);

/** Memory in use by values. */
int64_t oj_value_sort_bytes(const struct oj_value_sort *held);

/** Puts what is in memory aside as a sorted run, and gives the memory back. */
OJ_MUST_USE oj_status oj_value_sort_spill(struct oj_value_sort *held,
                                          struct oj_error *err);

/** Ends adding: the next value read is the first. */
OJ_MUST_USE oj_status oj_value_sort_rewind(struct oj_value_sort *held,
                                           struct oj_error *err);

/** The next value, without taking it; NULL after the last. */
const struct oj_held_value *
oj_value_sort_peek(const struct oj_value_sort *held);

/** Goes on to the value after it. */
OJ_MUST_USE oj_status oj_value_sort_skip(struct oj_value_sort *held,
                                         struct oj_error *err);

/** Empty again, ready for adding; keeps a moderate amount of memory. */
void oj_value_sort_clear(struct oj_value_sort *held);

/** Accepts NULL. */
void oj_value_sort_close(struct oj_value_sort *held);

/** < 0, 0, > 0: bytes as memcmp() orders them, the shorter first. */
int oj_bytes_compare(const char *a, int64_t n_a, const char *b, int64_t n_b);

#endif
