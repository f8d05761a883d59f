#include "oj_arrow_array.h"

#include "../../../flatten/base/oj_alloc.h"

#include <stdatomic.h>
#include <string.h>

/* ---- arrays that own their buffers --------------------------------------- */

static void release_children(struct ArrowArray *array)
{
    for (int64_t i = 0; i < array->n_children; i++)
    {
        oj_arrow_array_release(array->children[i]);
        oj_free(array->children[i]);
    }
    oj_free(array->children);
    if (array->dictionary != NULL)
        oj_arrow_array_release(array->dictionary);
    oj_free(array->dictionary);
}

static void release_made_array(struct ArrowArray *array)
{
    release_children(array);
    for (int64_t i = 0; i < array->n_buffers; i++)
        oj_free((void *)array->buffers[i]);
    oj_free(array->buffers);
    memset(array, 0, sizeof *array);
}

static oj_status make_children(int64_t n, struct ArrowArray *array,
                               struct oj_error *err)
{
    if (n == 0)
        return OJ_OK;
    OJ_NEW_ZEROED(array->children, n, err);
    for (; array->n_children < n; array->n_children++)
        OJ_NEW_ZEROED(array->children[array->n_children], 1, err);
    return OJ_OK;
}

oj_status oj_arrow_array_make(int64_t n_buffers, int64_t n_children,
                              struct ArrowArray *array, struct oj_error *err)
{
    memset(array, 0, sizeof *array);
    array->release = release_made_array;
    OJ_NEW_ZEROED(array->buffers, n_buffers, err);
    array->n_buffers = n_buffers;
    return make_children(n_children, array, err);
}

oj_status oj_arrow_array_add_dictionary(struct ArrowArray *array,
                                        struct oj_error *err)
{
    OJ_NEW_ZEROED(array->dictionary, 1, err);
    return OJ_OK;
}

/* ---- arrays with shared ownership ---------------------------------------- */

struct oj_arrow_shared
{
    atomic_int n_users;
    struct ArrowArray array;
};

oj_status oj_arrow_shared_make(struct ArrowArray *array,
                               struct oj_arrow_shared **out,
                               struct oj_error *err)
{
    struct oj_arrow_shared *shared = oj_calloc(1, sizeof *shared);
    if (shared == NULL)
    {
        oj_arrow_array_release(array);
        return oj_fail_nomem(err, 1, sizeof *shared);
    }
    atomic_init(&shared->n_users, 1);
    shared->array = *array;
    array->release = NULL;
    *out = shared;
    return OJ_OK;
}

const struct ArrowArray *
oj_arrow_shared_array(const struct oj_arrow_shared *shared)
{
    return &shared->array;
}

void oj_arrow_shared_release(struct oj_arrow_shared *shared)
{
    if (shared == NULL || atomic_fetch_sub(&shared->n_users, 1) > 1)
        return;
    oj_arrow_array_release(&shared->array);
    oj_free(shared);
}

static void release_view(struct ArrowArray *array)
{
    struct oj_arrow_shared *shared = array->private_data;
    release_children(array);
    memset(array, 0, sizeof *array);
    oj_arrow_shared_release(shared);
}

/* Makes a view of an array and of its children. Each child holds its own
 * reference to the shared array, because consumers may move a child out of its
 * parent. */
static oj_status view_array_and_children(struct oj_arrow_shared *shared,
                                         const struct ArrowArray *node,
                                         struct ArrowArray *out,
                                         struct oj_error *err)
{
    *out = *node;
    out->n_children = 0;
    out->children = NULL;
    out->dictionary = NULL;
    out->private_data = shared;
    out->release = release_view;
    atomic_fetch_add(&shared->n_users, 1);
    OJ_TRY(make_children(node->n_children, out, err));
    for (int64_t i = 0; i < node->n_children; i++)
        OJ_TRY(view_array_and_children(shared, node->children[i],
                                       out->children[i], err));
    if (node->dictionary == NULL)
        return OJ_OK;
    OJ_TRY(oj_arrow_array_add_dictionary(out, err));
    return view_array_and_children(shared, node->dictionary, out->dictionary,
                                   err);
}

oj_status oj_arrow_array_view_rows(struct oj_arrow_shared *shared,
                                   const struct ArrowArray *node, int64_t first,
                                   int64_t n, struct ArrowArray *out,
                                   struct oj_error *err)
{
    oj_status status = view_array_and_children(shared, node, out, err);
    if (status != OJ_OK)
    {
        oj_arrow_array_release(out);
        return status;
    }
    if (first == 0 && n == node->length)
        return OJ_OK;
    out->offset += first;
    out->length = n;
    out->null_count = node->null_count == 0 ? 0 : -1;
    return OJ_OK;
}

/* ---- schemas ------------------------------------------------------------- */

static void release_schema(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++)
    {
        oj_arrow_schema_release(schema->children[i]);
        oj_free(schema->children[i]);
    }
    oj_free(schema->children);
    if (schema->dictionary != NULL)
        oj_arrow_schema_release(schema->dictionary);
    oj_free(schema->dictionary);
    oj_free(schema->private_data);
    memset(schema, 0, sizeof *schema);
}

/* Returns the length of a key or value at *at, and advances *at past the
 * length. */
static int32_t read_metadata_length(const char **at)
{
    int32_t n;
    memcpy(&n, *at, sizeof n);
    *at += sizeof n;
    return n;
}

int64_t oj_arrow_metadata_size(const char *metadata)
{
    const char *at = metadata;
    if (metadata == NULL)
        return 0;
    for (int32_t n = 2 * read_metadata_length(&at); n > 0; n--)
    {
        int32_t length = read_metadata_length(&at);
        at += length > 0 ? length : 0;
    }
    return at - metadata;
}

const char *oj_arrow_metadata_find(const char *metadata, const char *key,
                                   int64_t *n)
{
    const char *at = metadata;
    size_t length = strlen(key);
    *n = 0;
    if (metadata == NULL)
        return NULL;
    for (int32_t i = read_metadata_length(&at); i > 0; i--)
    {
        int32_t n_key = read_metadata_length(&at), n_value;
        const char *here = at;
        if (n_key < 0)
            return NULL;
        at += n_key;
        n_value = read_metadata_length(&at);
        if (n_value < 0)
            return NULL;
        if ((size_t)n_key == length && memcmp(here, key, length) == 0)
        {
            *n = n_value;
            return at;
        }
        at += n_value;
    }
    return NULL;
}

static char *append_bytes(char *to, const void *from, size_t n)
{
    if (n > 0)
        memcpy(to, from, n);
    return to + n;
}

oj_status oj_arrow_schema_make(const char *format, const char *name,
                               const char *metadata, int64_t flags,
                               int64_t n_children, struct ArrowSchema *out,
                               struct oj_error *err)
{
    size_t n_format = strlen(format) + 1, n_name;
    size_t n_metadata = (size_t)oj_arrow_metadata_size(metadata);
    char *texts;
    name = name != NULL ? name : "";
    n_name = strlen(name) + 1;
    memset(out, 0, sizeof *out);
    out->release = release_schema;
    out->flags = flags;
    OJ_NEW(texts, (int64_t)(n_metadata + n_format + n_name), err);
    out->private_data = texts;
    out->metadata = n_metadata > 0 ? texts : NULL;
    out->format = append_bytes(texts, metadata, n_metadata);
    out->name = append_bytes(texts + n_metadata, format, n_format);
    append_bytes(texts + n_metadata + n_format, name, n_name);
    if (n_children == 0)
        return OJ_OK;
    OJ_NEW_ZEROED(out->children, n_children, err);
    for (; out->n_children < n_children; out->n_children++)
        OJ_NEW_ZEROED(out->children[out->n_children], 1, err);
    return OJ_OK;
}

oj_status oj_arrow_schema_copy(const struct ArrowSchema *from, const char *name,
                               struct ArrowSchema *out, struct oj_error *err)
{
    OJ_TRY(oj_arrow_schema_make(from->format, name != NULL ? name : from->name,
                                from->metadata, from->flags, from->n_children,
                                out, err));
    for (int64_t i = 0; i < from->n_children; i++)
        OJ_TRY(oj_arrow_schema_copy(from->children[i], NULL, out->children[i],
                                    err));
    if (from->dictionary == NULL)
        return OJ_OK;
    OJ_NEW_ZEROED(out->dictionary, 1, err);
    return oj_arrow_schema_copy(from->dictionary, NULL, out->dictionary, err);
}
