/** Rows of Arrow columns of any type, by their places: what Arrow calls take.
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

/** OJ_ERR_UNSUPPORTED: a type that is not taken, with the column's name.
 *  OJ_ERR_DATA: the schema is broken. */
OJ_MUST_USE oj_status oj_arrow_check_type(const struct ArrowSchema *schema,
                                          struct oj_error *err);

/** OJ_ERR_DATA: an array does not have the buffers, children and length that
 *  its schema, which was checked, asks for. */
OJ_MUST_USE oj_status oj_arrow_check_array(const struct ArrowSchema *schema,
                                           const struct ArrowArray *array,
                                           struct oj_error *err);

/** Chunks of one column, all checked. */
struct oj_arrow_chunks
{
    const struct ArrowSchema *schema;
    const struct ArrowArray *const *array; /**< [n] */
    struct oj_arrow_shared *const *shared; /**< [n] whose parts they are, or
                                                NULL: nothing may be kept */
    int64_t n;
};

/** Which rows; rows of an array are counted behind its offset. */
struct oj_arrow_places
{
    int64_t n;
    const int32_t *chunk; /**< [n]; NULL: chunk 0 throughout */
    const int64_t *row;   /**< [n]; -1: none, which is NULL */
};

/** *out becomes an array of places->n rows.  Rows that follow each other and
 *  are most of one chunk stay where they are: *out keeps the chunk.
 *  Errors  OJ_ERR_LIMIT: they do not fit into one array (32-bit offsets, places
 *          in dictionaries, run ends): to be taken in smaller parts, of which
 *          one row fits always unless it alone has more than 2 GB;
 *          OJ_ERR_DATA; OJ_ERR_NOMEM */
OJ_MUST_USE oj_status oj_arrow_take(const struct oj_arrow_chunks *chunks,
                                    const struct oj_arrow_places *places,
                                    struct ArrowArray *out,
                                    struct oj_error *err);

/** Bytes that n rows of an array take up, from row first on, about: what
 *  bounds a batch. */
int64_t oj_arrow_bytes(const struct ArrowSchema *schema,
                       const struct ArrowArray *array, int64_t first,
                       int64_t n);

/** No row of n rows takes up more. O(rows of it and of what lists hold). */
int64_t oj_arrow_most_bytes(const struct ArrowSchema *schema,
                            const struct ArrowArray *array, int64_t first,
                            int64_t n);

#endif
