/** Makes Arrow arrays and schemas that own their memory, and arrays with shared
 *  ownership (reference-counted).
 *
 *  made    --release--> buffers and children freed
 *  shared  <--view, view, ..  each view and each of its children holds a
 *                             reference
 */
#ifndef OJ_ARROW_ARRAY_H
#define OJ_ARROW_ARRAY_H

#include "../../../flatten/base/oj_status.h"
#include "arrow_abi.h"

#include <stddef.h>

/** Makes an array with NULL buffers and zeroed children, which the caller
 * fills. array->release is set, also on failure; it frees the buffers with
 * oj_free(), the children and the dictionary. */
OJ_MUST_USE oj_status oj_arrow_array_make(int64_t n_buffers, int64_t n_children,
                                          struct ArrowArray *array,
                                          struct oj_error *err);

/** Adds a zeroed dictionary to an array made by oj_arrow_array_make(). */
OJ_MUST_USE oj_status oj_arrow_array_add_dictionary(struct ArrowArray *array,
                                                    struct oj_error *err);

/** Releases an array, unless it is released already. */
static inline void oj_arrow_array_release(struct ArrowArray *array)
{
    if (array->release != NULL)
        array->release(array);
    array->release = NULL;
}

/** A reference-counted array; views hold references. */
struct oj_arrow_shared;

/** Moves an array into a shared one with one reference. array is marked as
 * released, also on failure. */
OJ_MUST_USE oj_status oj_arrow_shared_make(struct ArrowArray *array,
                                           struct oj_arrow_shared **out,
                                           struct oj_error *err);

const struct ArrowArray *
oj_arrow_shared_array(const struct oj_arrow_shared *shared);

/** Drops a reference; shared may be NULL. */
void oj_arrow_shared_release(struct oj_arrow_shared *shared);

/** Makes a view of n elements of node, from `first` on. node is the shared
 * array or one of its descendants. Values are not copied. */
OJ_MUST_USE oj_status oj_arrow_array_view_rows(struct oj_arrow_shared *shared,
                                               const struct ArrowArray *node,
                                               int64_t first, int64_t n,
                                               struct ArrowArray *out,
                                               struct oj_error *err);

/** Makes a schema with zeroed children. Texts are copied; metadata may be NULL.
 * out->release is set, also on failure. */
OJ_MUST_USE oj_status oj_arrow_schema_make(const char *format, const char *name,
                                           const char *metadata, int64_t flags,
                                           int64_t n_children,
                                           struct ArrowSchema *out,
                                           struct oj_error *err);

/** Makes a deep copy of a schema, with another name unless name is NULL.
 * out->release is set, also on failure. */
OJ_MUST_USE oj_status oj_arrow_schema_copy(const struct ArrowSchema *from,
                                           const char *name,
                                           struct ArrowSchema *out,
                                           struct oj_error *err);

/** Releases a schema, unless it is released already. */
static inline void oj_arrow_schema_release(struct ArrowSchema *schema)
{
    if (schema->release != NULL)
        schema->release(schema);
    schema->release = NULL;
}

/** Returns the size in bytes of metadata of the Arrow C data interface; 0 for
 * NULL. */
int64_t oj_arrow_metadata_size(const char *metadata);

/** Returns the value of a key in metadata, *n bytes that are not
 * zero-terminated, or NULL if there is none. */
const char *oj_arrow_metadata_find(const char *metadata, const char *key,
                                   int64_t *n);

#endif
