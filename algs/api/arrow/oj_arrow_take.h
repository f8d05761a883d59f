/** Takes rows of Arrow columns of any type by their places, like Arrow's
 *  compute function take.
 *
 *   chunk 0: a b c     chunk 1: d e
 *   places   (1, 0) (0, 2) (0, -1) (0, 2)
 *   taken    d c NULL c
 *
 *  Taken are values of a fixed size, booleans, texts and binaries, their views,
 *  lists, their views, lists of a fixed size, structs, maps, dictionaries,
 *  run-end encoded values and NULLs, nested in any way; extension types are
 *  what they are stored as.  Unions are not.
 *
 *  Arrow does not state the lengths of buffers, so that they cannot be checked;
 *  offsets and places inside of arrays are checked.
 *  Source: https://arrow.apache.org/docs/format/Columnar.html.
 */
#ifndef OJ_ARROW_TAKE_H
#define OJ_ARROW_TAKE_H

#include "oj_arrow_array.h"

/** Checks that a type is supported; otherwise OJ_ERR_UNSUPPORTED with the
 * column's name. OJ_ERR_DATA: the schema is invalid. */
OJ_MUST_USE oj_status oj_arrow_check_type(const struct ArrowSchema *schema,
                                          struct oj_error *err);

/** Checks an array: OJ_ERR_DATA if it lacks buffers, children or elements that
 * its schema (already checked) requires. */
OJ_MUST_USE oj_status oj_arrow_check_array(const struct ArrowSchema *schema,
                                           const struct ArrowArray *array,
                                           struct oj_error *err);

/** The chunks of one column, all checked. */
struct oj_arrow_chunks
{
    const struct ArrowSchema *schema;
    const struct ArrowArray *const *array; /**< [n] */
    struct oj_arrow_shared *const *shared; /**< [n] owners of the chunks;
                                                NULL: chunks must not be kept */
    int64_t n;
};

/** The rows to take; row numbers do not include the array's offset. */
struct oj_arrow_places
{
    int64_t n;
    const int32_t *chunk; /**< [n]; NULL: always chunk 0 */
    const int64_t *row;   /**< [n]; -1: NULL */
};

/** Makes *out an array of places->n rows.  Consecutive rows that are most of
 * one chunk are not copied: *out then keeps the chunk alive. Errors:
 * OJ_ERR_LIMIT if they do not fit into one array (32-bit offsets, dictionary
 * indices, run ends): take fewer rows; one row always fits, unless it has more
 * than 2 GB; OJ_ERR_DATA; OJ_ERR_NOMEM */
OJ_MUST_USE oj_status oj_arrow_take(const struct oj_arrow_chunks *chunks,
                                    const struct oj_arrow_places *places,
                                    struct ArrowArray *out,
                                    struct oj_error *err);

/** Approximate bytes of n rows of an array, from row `first` on; used to limit
 * batches. */
int64_t oj_arrow_bytes(const struct ArrowSchema *schema,
                       const struct ArrowArray *array, int64_t first,
                       int64_t n);

/** Upper bound of the bytes of a single row among n rows. O(rows, and elements
 * of their lists). */
int64_t oj_arrow_most_bytes(const struct ArrowSchema *schema,
                            const struct ArrowArray *array, int64_t first,
                            int64_t n);

#endif
