/** Selects rows of Arrow columns of any type by chunk and row number, like
 *  Arrow's compute function take.
 *
 *   chunk 0: a b c     chunk 1: d e
 *   places   (1, 0) (0, 2) (0, -1) (0, 2)
 *   taken    d c NULL c
 *
 *  Supported types: values of a fixed size, booleans, texts and binaries and
 *  their views, lists and list views, fixed-size lists, structs, maps,
 *  dictionaries, run-end encoding and nulls, nested in any way; extension types
 *  by their storage type.  Not supported: unions.
 *
 *  Offsets and row numbers are checked.  The lengths of buffers are not,
 *  because Arrow does not state them. Source:
 *  https://arrow.apache.org/docs/format/Columnar.html.
 */
#ifndef OJ_ARROW_TAKE_H
#define OJ_ARROW_TAKE_H

#include "oj_arrow_array.h"

/** Fails with OJ_ERR_UNSUPPORTED and the column's name if the type of the
 * column is not supported, and with OJ_ERR_DATA if the schema is invalid. */
OJ_MUST_USE oj_status oj_arrow_check_type(const struct ArrowSchema *schema,
                                          struct oj_error *err);

/** Checks an array of a type that oj_arrow_check_type() has accepted. Fails
 * with OJ_ERR_DATA if it lacks buffers, children or elements. */
OJ_MUST_USE oj_status oj_arrow_check_array(const struct ArrowSchema *schema,
                                           const struct ArrowArray *array,
                                           struct oj_error *err);

/** The chunks of a column, all checked. */
struct oj_arrow_chunks
{
    const struct ArrowSchema *schema;
    const struct ArrowArray *const *array; /**< [n] array of each chunk */
    struct oj_arrow_shared *const *shared; /**< [n] reference-counted owners
                                                of the arrays; NULL: never
                                                make views of the arrays,
                                                always copy */
    int64_t n;
};

/** The rows to take. Row numbers are relative to the array's offset. */
struct oj_arrow_places
{
    int64_t n;
    const int32_t *chunk; /**< [n] chunk of each row; NULL: all are of chunk
                               0 */
    const int64_t *row;   /**< [n] row number within the chunk; -1: NULL */
};

/** Makes *out an array of places->n rows. If the rows are consecutive rows of a
 *  chunk, and at least a sixteenth of it, *out is a view of the chunk;
 *  otherwise they are copied.
 *
 *  Errors: OJ_ERR_DATA; OJ_ERR_NOMEM; OJ_ERR_LIMIT if the rows do not fit into
 *  one array (32-bit offsets, dictionary indices, run ends): take fewer rows. A
 *  single row of up to 2 GB always fits.
 */
OJ_MUST_USE oj_status oj_arrow_take(const struct oj_arrow_chunks *chunks,
                                    const struct oj_arrow_places *places,
                                    struct ArrowArray *out,
                                    struct oj_error *err);

/** Returns the approximate size in bytes of n rows of an array, from row
 * `first` on; used to limit batches. */
int64_t oj_arrow_estimate_bytes(const struct ArrowSchema *schema,
                                const struct ArrowArray *array, int64_t first,
                                int64_t n);

/** Returns an upper bound of the size in bytes of the largest of n rows, from
 * row `first` on. O(rows and elements of their lists). */
int64_t oj_arrow_max_row_bytes(const struct ArrowSchema *schema,
                               const struct ArrowArray *array, int64_t first,
                               int64_t n);

#endif
