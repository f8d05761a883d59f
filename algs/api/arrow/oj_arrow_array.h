/** Arrow arrays and schemas that own their memory, and reference-counted
 *  arrays.
 *
 *  made    --release--> buffers and children freed
 *  shared  <--view, view, ..  each view and each of its children keeps it
 */
#ifndef OJ_ARROW_ARRAY_H
#define OJ_ARROW_ARRAY_H

#include "../../../flatten/base/oj_status.h"
#include "arrow_abi.h"

#include <stddef.h>

/** Makes an array whose buffers are NULL and whose children are zeroed; the
 * caller fills them. array->release is set also on failure: it frees the
 * buffers with oj_free(), the children and the dictionary. */
OJ_MUST_USE oj_status oj_arrow_array_make(int64_t n_buffers, int64_t n_children,
                                          struct ArrowArray *array,
                                          struct oj_error *err);

/** Adds a zeroed dictionary to an array of oj_arrow_array_make(). */
OJ_MUST_USE oj_status oj_arrow_array_add_dictionary(struct ArrowArray *array,
                                                    struct oj_error *err);

/** Releases an array; accepts a released one. */
static inline void oj_arrow_array_release(struct ArrowArray *array)
{
    if (array->release != NULL)
        array->release(array);
    array->release = NULL;
}

/** An array that views of it keep alive. */
struct oj_arrow_shared;

/** Moves array into a shared one, also on failure: it is marked as released. */
OJ_MUST_USE oj_status oj_arrow_share(struct ArrowArray *array,
                                     struct oj_arrow_shared **out,
                                     struct oj_error *err);

const struct ArrowArray *
oj_arrow_shared_array(const struct oj_arrow_shared *shared);

/** Drops one reference; accepts NULL. */
void oj_arrow_unshare(struct oj_arrow_shared *shared);

/** Makes a view of n elements, from `first` on, of node, which is the shared
 * array or a descendant of it.  Values are not copied. */
OJ_MUST_USE oj_status oj_arrow_view(struct oj_arrow_shared *shared,
                                    const struct ArrowArray *node,
                                    int64_t first, int64_t n,
                                    struct ArrowArray *out,
                                    struct oj_error *err);

/** Makes a schema with zeroed children. Texts are copied; metadata may be NULL.
 * out->release is set also on failure. */
OJ_MUST_USE oj_status oj_arrow_schema_make(const char *format, const char *name,
                                           const char *metadata, int64_t flags,
                                           int64_t n_children,
                                           struct ArrowSchema *out,
                                           struct oj_error *err);

/** Makes a deep copy with another name; name NULL: its own name. out->release
 * is set also on failure. */
OJ_MUST_USE oj_status oj_arrow_schema_copy(const struct ArrowSchema *from,
                                           const char *name,
                                           struct ArrowSchema *out,
                                           struct oj_error *err);

/** Releases a schema; accepts a released one. */
static inline void oj_arrow_schema_release(struct ArrowSchema *schema)
{
    if (schema->release != NULL)
        schema->release(schema);
    schema->release = NULL;
}

/** Size in bytes of metadata in the format of the C data interface; 0 for NULL.
 */
int64_t oj_arrow_metadata_size(const char *metadata);

/** The value of a key: *n bytes, not zero-terminated; NULL: there is none. */
const char *oj_arrow_metadata_find(const char *metadata, const char *key,
                                   int64_t *n);

#endif
