/** Arrow arrays and schemas that own their memory, and arrays that several own.
 *
 *  made    --release--> buffers and children freed
 *  shared  <--view, view, ..  each view and each of its children keeps it
 */
#ifndef OJ_ARROW_ARRAY_H
#define OJ_ARROW_ARRAY_H

#include "../../../flatten/base/oj_status.h"
#include "arrow_abi.h"

#include <stddef.h>

/** An array with buffers that are NULL and zeroed children, to be filled.
 *  array->release is set in any case, and frees the buffers by oj_free(), the
 *  children and the dictionary. */
OJ_MUST_USE oj_status oj_arrow_array_make(int64_t n_buffers, int64_t n_children,
                                          struct ArrowArray *array,
                                          struct oj_error *err);

/** Adds a zeroed dictionary to an array that was made. */
OJ_MUST_USE oj_status oj_arrow_array_add_dictionary(struct ArrowArray *array,
                                                    struct oj_error *err);

/** Accepts a released one. */
static inline void oj_arrow_array_release(struct ArrowArray *array)
{
    if (array->release != NULL)
        array->release(array);
    array->release = NULL;
}

/** An array that parts of it keep. */
struct oj_arrow_shared;

/** Moves array, in any case: it is marked as released. */
OJ_MUST_USE oj_status oj_arrow_share(struct ArrowArray *array,
                                     struct oj_arrow_shared **out,
                                     struct oj_error *err);

const struct ArrowArray *
oj_arrow_shared_array(const struct oj_arrow_shared *shared);

/** Gives a use back; accepts NULL. */
void oj_arrow_unshare(struct oj_arrow_shared *shared);

/** n elements of node, which is the shared array or one below it, from first
 *  on.  Values stay where they are. */
OJ_MUST_USE oj_status oj_arrow_view(struct oj_arrow_shared *shared,
                                    const struct ArrowArray *node,
                                    int64_t first, int64_t n,
                                    struct ArrowArray *out,
                                    struct oj_error *err);

/** A schema with zeroed children. Texts are copied; metadata may be NULL.
 *  out->release is set in any case. */
OJ_MUST_USE oj_status oj_arrow_schema_make(const char *format, const char *name,
                                           const char *metadata, int64_t flags,
                                           int64_t n_children,
                                           struct ArrowSchema *out,
                                           struct oj_error *err);

/** A copy, with its children, under another name; name NULL: its own.
 *  out->release is set in any case. */
OJ_MUST_USE oj_status oj_arrow_schema_copy(const struct ArrowSchema *from,
                                           const char *name,
                                           struct ArrowSchema *out,
                                           struct oj_error *err);

/** Accepts a released one. */
static inline void oj_arrow_schema_release(struct ArrowSchema *schema)
{
    if (schema->release != NULL)
        schema->release(schema);
    schema->release = NULL;
}

/** Bytes of metadata as the C data interface writes it; NULL has none. */
int64_t oj_arrow_metadata_size(const char *metadata);

/** The value of a key, *n bytes without a zero behind them; NULL: there is
 *  none. */
const char *oj_arrow_metadata_find(const char *metadata, const char *key,
                                   int64_t *n);

#endif
