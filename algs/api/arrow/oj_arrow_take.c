#include "oj_arrow_take.h"

#include "../../../flatten/base/oj_alloc.h"
#include "arrow_values.h"
#include "oj_arrow_type.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- check of types ------------------------------------------------------ */

/* Returns the number of children that a type requires; -1: any number. */
static int64_t count_children_of_type(struct oj_arrow_type type)
{
    switch (type.storage)
    {
        case OJ_STORES_LISTS:
        case OJ_STORES_LIST_VIEWS:
        case OJ_STORES_FIXED_LISTS:
            return 1;
        case OJ_STORES_STRUCTS:
            return -1;
        case OJ_STORES_RUNS:
            return 2;
        default:
            return 0;
    }
}

static oj_status check_type_and_children(const struct ArrowSchema *schema,
                                         const char *name, struct oj_error *err)
{
    struct oj_arrow_type type;
    int64_t n;
    if (schema == NULL || schema->format == NULL || schema->n_children < 0 ||
        (schema->n_children > 0 && schema->children == NULL))
        return oj_fail(err, OJ_ERR_DATA, OJ_ARROW_SCHEMA_IS_BROKEN);
    if (!oj_arrow_type_read(schema->format, &type))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "column \"%.100s\": values in the Arrow format "
                       "\"%.40s\"%s cannot be joined: leave the column out",
                       name, schema->format,
                       strncmp(schema->format, "+u", 2) == 0 ? " (a union)"
                                                             : "");
    n = count_children_of_type(type);
    if ((n >= 0 && schema->n_children != n) ||
        (schema->dictionary != NULL && type.storage != OJ_STORES_FIXED) ||
        (schema->dictionary != NULL && type.size > 8))
        return oj_fail(err, OJ_ERR_DATA, OJ_ARROW_SCHEMA_IS_BROKEN);
    for (int64_t i = 0; i < schema->n_children; i++)
        OJ_TRY(check_type_and_children(schema->children[i], name, err));
    return schema->dictionary != NULL
               ? check_type_and_children(schema->dictionary, name, err)
               : OJ_OK;
}

oj_status oj_arrow_check_type(const struct ArrowSchema *schema,
                              struct oj_error *err)
{
    return check_type_and_children(
        schema, schema->name != NULL ? schema->name : "", err);
}

/* ---- check of arrays ----------------------------------------------------- */

static int64_t count_buffers_of_type(struct oj_arrow_type type)
{
    switch (type.storage)
    {
        case OJ_STORES_NOTHING:
        case OJ_STORES_RUNS:
            return 0;
        case OJ_STORES_FIXED_LISTS:
        case OJ_STORES_STRUCTS:
            return 1;
        case OJ_STORES_BYTES:
        case OJ_STORES_BYTE_VIEWS:
        case OJ_STORES_LIST_VIEWS:
            return 3;
        default:
            return 2;
    }
}

/* Fails if a buffer that has an entry for each element is NULL. */
static oj_status check_buffers(struct oj_arrow_type type,
                               const struct ArrowArray *array,
                               struct oj_error *err)
{
    int64_t n = count_buffers_of_type(type);
    int64_t n_needed =
        type.storage == OJ_STORES_BYTES || type.storage == OJ_STORES_BYTE_VIEWS
            ? 2
            : n;
    if (array->n_buffers < n || (n > 0 && array->buffers == NULL))
        return arrow_fail_mismatch(err);
    if (type.storage == OJ_STORES_FIXED && type.size == 0)
        return OJ_OK;
    for (int64_t i = 1; i < n_needed; i++)
    {
        if (array->buffers[i] == NULL && array->length > 0)
            return arrow_fail_mismatch(err);
    }
    return OJ_OK;
}

/* Checks that the children of a struct or of fixed-size lists are long enough.
 */
static oj_status check_length_of_children(struct oj_arrow_type type,
                                          const struct ArrowArray *array,
                                          struct oj_error *err)
{
    int64_t end = array->offset + array->length, least = 0;
    if (type.storage == OJ_STORES_STRUCTS)
        least = end;
    if (type.storage == OJ_STORES_FIXED_LISTS &&
        __builtin_mul_overflow(end, type.size, &least))
        return arrow_fail_mismatch(err);
    for (int64_t i = 0; i < array->n_children; i++)
    {
        if (array->children[i] == NULL || array->children[i]->length < least)
            return arrow_fail_mismatch(err);
    }
    return OJ_OK;
}

oj_status oj_arrow_check_array(const struct ArrowSchema *schema,
                               const struct ArrowArray *array,
                               struct oj_error *err)
{
    struct oj_arrow_type type = oj_arrow_type_of(schema);
    if (array == NULL || array->length < 0 || array->offset < 0 ||
        array->length > INT64_MAX - 1 - array->offset ||
        array->n_children != schema->n_children ||
        (array->n_children > 0 && array->children == NULL) ||
        (array->dictionary != NULL) != (schema->dictionary != NULL))
        return arrow_fail_mismatch(err);
    OJ_TRY(check_buffers(type, array, err));
    OJ_TRY(check_length_of_children(type, array, err));
    for (int64_t i = 0; i < array->n_children; i++)
        OJ_TRY(
            oj_arrow_check_array(schema->children[i], array->children[i], err));
    return schema->dictionary != NULL
               ? oj_arrow_check_array(schema->dictionary, array->dictionary,
                                      err)
               : OJ_OK;
}

/* The elements to take, as runs of consecutive elements. Also used for child
 * elements of lists. */
struct runs
{
    int64_t n;
    const int32_t *chunk; /* [n] chunk of each run; NULL: all are of chunk 0 */
    const int64_t *row;   /* [n] first element of each run; -1: all elements of
                             the run become NULL */
    const int64_t *count; /* [n] number of elements of each run; NULL: one
                             each */
    int64_t total;
};

static int32_t chunk_of_run(const struct runs *r, int64_t i)
{
    return r->chunk != NULL ? r->chunk[i] : 0;
}

static int64_t count_of_run(const struct runs *r, int64_t i)
{
    return r->count != NULL ? r->count[i] : 1;
}

static oj_status take_elements_of_runs(const struct oj_arrow_chunks *from,
                                       const struct runs *r,
                                       struct ArrowArray *out,
                                       struct oj_error *err);

/* ---- validity ------------------------------------------------------------ */

static const uint8_t *validity_of_array(const struct ArrowArray *array)
{
    return array->n_buffers > 0 ? arrow_validity(array) : NULL;
}

static int may_have_nulls(const struct oj_arrow_chunks *from,
                          const struct runs *r)
{
    for (int64_t i = 0; i < from->n; i++)
    {
        if (validity_of_array(from->array[i]) != NULL)
            return 1;
    }
    for (int64_t i = 0; i < r->n; i++)
    {
        if (r->row[i] < 0)
            return 1;
    }
    return 0;
}

/* Copies the bits of all runs from a buffer of bits: `which` 0 is the validity
 * bitmap, 1 the values of booleans. */
static void copy_bits(const struct oj_arrow_chunks *from, const struct runs *r,
                      int which, uint8_t *to)
{
    int64_t at = 0;
    for (int64_t i = 0; i < r->n; i++)
    {
        int64_t n = count_of_run(r, i), row = r->row[i];
        const struct ArrowArray *array =
            row >= 0 ? from->array[chunk_of_run(r, i)] : NULL;
        const uint8_t *bits = array == NULL ? NULL
                              : which == 0  ? validity_of_array(array)
                                            : array->buffers[which];
        for (int64_t k = 0; array != NULL && k < n; k++)
            arrow_set_zeroed_bit(to, at + k,
                                 arrow_bit(bits, array->offset + row + k));
        at += n;
    }
}

static oj_status take_validity(const struct oj_arrow_chunks *from,
                               const struct runs *r, struct ArrowArray *out,
                               struct oj_error *err)
{
    uint8_t *bits;
    out->length = r->total;
    if (!may_have_nulls(from, r))
        return OJ_OK;
    bits = oj_calloc(r->total / 8 + 1, 1);
    if (bits == NULL)
        return oj_fail_nomem(err, r->total / 8 + 1, 1);
    copy_bits(from, r, 0, bits);
    out->null_count = r->total - arrow_count_bits(bits, r->total);
    if (out->null_count > 0)
        out->buffers[0] = bits;
    else
        oj_free(bits);
    return OJ_OK;
}

/* ---- values of a fixed size ---------------------------------------------- */

/* Makes *out the array of the addresses of each chunk's first value, NULL for a
 * chunk without values. The caller frees *out. */
static oj_status list_first_values_of_chunks(const struct oj_arrow_chunks *from,
                                             int64_t size, const char ***out,
                                             struct oj_error *err)
{
    OJ_NEW(*out, from->n, err);
    for (int64_t i = 0; i < from->n; i++)
    {
        const char *values = from->array[i]->buffers[1];
        (*out)[i] =
            values != NULL ? values + from->array[i]->offset * size : NULL;
    }
    return OJ_OK;
}

/* Copies one value per run. A macro with the type as argument, because copies
 * of a constant size are faster. */
#define COPY_EACH(type)                                                        \
    do                                                                         \
    {                                                                          \
        type *to_ = (void *)to;                                                \
        for (int64_t i = 0; i < r->n; i++)                                     \
        {                                                                      \
            int64_t row = r->row[i];                                           \
            to_[i] = row < 0 ? 0                                               \
                             : ((const type *)(const void *)                   \
                                    values[chunk_of_run(r, i)])[row];          \
        }                                                                      \
    } while (0)

static void copy_runs(const char *const *values, const struct runs *r,
                      int64_t size, char *to)
{
    for (int64_t i = 0; i < r->n; i++)
    {
        size_t n = (size_t)(count_of_run(r, i) * size);
        if (r->row[i] < 0)
            memset(to, 0, n);
        else if (n > 0)
            memcpy(to, values[chunk_of_run(r, i)] + r->row[i] * size, n);
        to += n;
    }
}

static void copy_fixed_size_values(const char *const *values,
                                   const struct runs *r, int64_t size, char *to)
{
    if (r->count != NULL)
        copy_runs(values, r, size, to);
    else if (size == 8)
        COPY_EACH(uint64_t);
    else if (size == 4)
        COPY_EACH(uint32_t);
    else if (size == 2)
        COPY_EACH(uint16_t);
    else if (size == 1)
        COPY_EACH(uint8_t);
    else
        copy_runs(values, r, size, to);
}

static oj_status take_fixed_size_values(const struct oj_arrow_chunks *from,
                                        int64_t size, const struct runs *r,
                                        struct ArrowArray *out,
                                        struct oj_error *err)
{
    const char **values;
    char *to;
    int64_t n_bytes;
    OJ_TRY(oj_arrow_array_make(2, 0, out, err));
    OJ_TRY(take_validity(from, r, out, err));
    if (__builtin_mul_overflow(r->total, size, &n_bytes))
        return oj_fail_nomem(err, r->total, (size_t)size);
    OJ_NEW(to, n_bytes, err);
    out->buffers[1] = to;
    OJ_TRY(list_first_values_of_chunks(from, size, &values, err));
    copy_fixed_size_values(values, r, size, to);
    oj_free(values);
    return OJ_OK;
}

static oj_status take_boolean_values(const struct oj_arrow_chunks *from,
                                     const struct runs *r,
                                     struct ArrowArray *out,
                                     struct oj_error *err)
{
    uint8_t *to;
    OJ_TRY(oj_arrow_array_make(2, 0, out, err));
    OJ_TRY(take_validity(from, r, out, err));
    OJ_NEW_ZEROED(to, r->total / 8 + 1, err);
    out->buffers[1] = to;
    copy_bits(from, r, 1, to);
    return OJ_OK;
}

/* ---- offsets ------------------------------------------------------------- */

/* Computes the offsets (buffer 1) of the result. Sets first[i] and count[i] to
 * the range of child elements of run i, and *total to the sum of the counts.
 * most: [chunks] length of each chunk's child, which bounds its offsets; NULL:
 * the chunk's last offset is the bound. */
static oj_status take_offsets(const struct oj_arrow_chunks *from, int64_t size,
                              const struct runs *r, const int64_t *most,
                              struct ArrowArray *out, int64_t *first,
                              int64_t *count, int64_t *total,
                              struct oj_error *err)
{
    int64_t n = 0, at = 0;
    void *offset = oj_malloc(r->total + 1, (size_t)size);
    if (offset == NULL)
        return oj_fail_nomem(err, r->total + 1, (size_t)size);
    out->buffers[1] = offset;
    arrow_put_offset(offset, size, 0, 0);
    for (int64_t i = 0; i < r->n; i++)
    {
        int64_t elements = count_of_run(r, i), row = r->row[i], end = -1;
        const struct ArrowArray *array = NULL;
        const void *there = NULL;
        first[i] = -1;
        count[i] = 0;
        if (row >= 0 && elements > 0) /* an array without elements may lack the
                                         offsets */
        {
            int64_t chunk = chunk_of_run(r, i), last;
            array = from->array[chunk];
            there = array->buffers[1];
            row += array->offset;
            last = most != NULL
                       ? most[chunk]
                       : arrow_offset_at(there, size == 8,
                                         array->offset + array->length);
            first[i] = arrow_offset_at(there, size == 8, row);
            end = arrow_offset_at(there, size == 8, row + elements);
            if (first[i] < 0 || end < first[i] || end > last)
                return arrow_fail_offsets(err);
            count[i] = end - first[i];
        }
        for (int64_t k = 1; k <= elements; k++)
        {
            int64_t here =
                array == NULL ? 0
                : k == elements
                    ? count[i]
                    : arrow_offset_at(there, size == 8, row + k) - first[i];
            if (here < 0 || here > count[i])
                return arrow_fail_offsets(err);
            arrow_put_offset(offset, size, ++n, at + here);
        }
        if (__builtin_add_overflow(at, count[i], &at) ||
            (size == 4 && at > INT32_MAX))
            return arrow_fail_limit(err);
    }
    *total = at;
    return OJ_OK;
}

/* Allocates the arrays first and count of take_offsets(), an element for each
 * run, in one block: the caller frees only *first. */
static oj_status allocate_ranges(const struct runs *r, int64_t **first,
                                 int64_t **count, struct oj_error *err)
{
    OJ_NEW(*first, 2 * r->n, err);
    *count = *first + r->n;
    return OJ_OK;
}

/* ---- texts and binaries -------------------------------------------------- */

static oj_status copy_bytes(const struct oj_arrow_chunks *from,
                            const struct runs *r, const int64_t *first,
                            const int64_t *count, int64_t total,
                            struct ArrowArray *out, struct oj_error *err)
{
    char *to;
    OJ_NEW(to, total, err);
    out->buffers[2] = to;
    for (int64_t i = 0; i < r->n; i++)
    {
        const char *bytes;
        if (count[i] == 0)
            continue;
        bytes = from->array[chunk_of_run(r, i)]->buffers[2];
        if (bytes == NULL)
            return arrow_fail_mismatch(err);
        memcpy(to, bytes + first[i], (size_t)count[i]);
        to += count[i];
    }
    return OJ_OK;
}

static oj_status take_bytes(const struct oj_arrow_chunks *from, int64_t size,
                            const struct runs *r, struct ArrowArray *out,
                            struct oj_error *err)
{
    int64_t *first, *count = NULL, total = 0;
    oj_status status;
    OJ_TRY(oj_arrow_array_make(3, 0, out, err));
    OJ_TRY(take_validity(from, r, out, err));
    OJ_TRY(allocate_ranges(r, &first, &count, err));
    status = take_offsets(from, size, r, NULL, out, first, count, &total, err);
    if (status == OJ_OK)
        status = copy_bytes(from, r, first, count, total, out, err);
    oj_free(first);
    return status;
}

static int64_t bytes_of_view_in_blocks(const struct ArrowArray *array,
                                       const char *view)
{
    int64_t n_blocks = array->n_buffers - 3;
    return arrow_view_count_block_bytes(
        view, n_blocks, (const uint8_t *const *)(array->buffers + 2),
        array->buffers[array->n_buffers - 1]);
}

/* Replaces the views of NULL elements, which Arrow leaves undefined, by empty
 * views. Sets *n_bytes to the number of bytes that the other views have in
 * blocks. */
static oj_status
empty_views_of_null_elements(const struct oj_arrow_chunks *from,
                             const struct runs *r, const uint8_t *valid,
                             char *view, int64_t *n_bytes, struct oj_error *err)
{
    int64_t at = 0;
    *n_bytes = 0;
    for (int64_t i = 0; i < r->n; i++)
    {
        int64_t n = count_of_run(r, i);
        for (int64_t k = 0; k < n; k++, at++)
        {
            int64_t here;
            if (!arrow_bit(valid, at))
            {
                memset(view + at * ARROW_VIEW_BYTES, 0, ARROW_VIEW_BYTES);
                continue;
            }
            here = bytes_of_view_in_blocks(from->array[chunk_of_run(r, i)],
                                           view + at * ARROW_VIEW_BYTES);
            if (here < 0)
                return arrow_fail_views(err);
            *n_bytes += here;
            if (*n_bytes > INT32_MAX)
                return arrow_fail_limit(err);
        }
    }
    return OJ_OK;
}

static void copy_bytes_of_views(const struct oj_arrow_chunks *from,
                                const struct runs *r, char *view, char *to)
{
    int64_t at = 0;
    int32_t n_bytes = 0, zero = 0;
    for (int64_t i = 0; i < r->n; i++)
    {
        int64_t n = count_of_run(r, i);
        for (int64_t k = 0; k < n; k++, at++, view += ARROW_VIEW_BYTES)
        {
            const struct arrow_view v = arrow_view_read(view);
            if (v.length <= ARROW_MOST_INSIDE)
                continue;
            memcpy(to + n_bytes,
                   (const char *)from->array[chunk_of_run(r, i)]
                           ->buffers[2 + v.block] +
                       v.at,
                   (size_t)v.length);
            memcpy(view + 8, &zero, sizeof zero);
            memcpy(view + 12, &n_bytes, sizeof n_bytes);
            n_bytes += v.length;
        }
    }
}

/* Takes binary views. The result has the buffers validity, views, one block of
 * data, and the size of the block. */
static oj_status take_byte_views(const struct oj_arrow_chunks *from,
                                 const struct runs *r, struct ArrowArray *out,
                                 struct oj_error *err)
{
    const char **values;
    char *view, *block;
    int64_t *n_bytes;
    OJ_TRY(oj_arrow_array_make(4, 0, out, err));
    OJ_TRY(take_validity(from, r, out, err));
    OJ_NEW(view, r->total * ARROW_VIEW_BYTES, err);
    out->buffers[1] = view;
    OJ_NEW_ZEROED(n_bytes, 1, err);
    out->buffers[3] = n_bytes;
    OJ_TRY(list_first_values_of_chunks(from, ARROW_VIEW_BYTES, &values, err));
    copy_runs(values, r, ARROW_VIEW_BYTES, view);
    oj_free(values);
    OJ_TRY(empty_views_of_null_elements(from, r, out->buffers[0], view, n_bytes,
                                        err));
    OJ_NEW(block, *n_bytes, err);
    out->buffers[2] = block;
    copy_bytes_of_views(from, r, view, block);
    return OJ_OK;
}

/* ---- lists and structs --------------------------------------------------- */

/* Makes *out the list of child i of each chunk. The caller frees *children with
 * oj_free(). */
static oj_status list_child_of_chunks(const struct oj_arrow_chunks *from,
                                      int64_t i, struct oj_arrow_chunks *out,
                                      const struct ArrowArray ***children,
                                      struct oj_error *err)
{
    OJ_NEW(*children, from->n, err);
    for (int64_t k = 0; k < from->n; k++)
        (*children)[k] = from->array[k]->children[i];
    *out = (struct oj_arrow_chunks){from->schema->children[i], *children,
                                    from->shared, from->n};
    return OJ_OK;
}

static oj_status take_child(const struct oj_arrow_chunks *from, int64_t i,
                            const struct runs *r, struct ArrowArray *out,
                            struct oj_error *err)
{
    const struct ArrowArray **children;
    struct oj_arrow_chunks below;
    oj_status status;
    OJ_TRY(list_child_of_chunks(from, i, &below, &children, err));
    status = take_elements_of_runs(&below, r, out, err);
    oj_free(children);
    return status;
}

static oj_status find_lengths_of_children(const struct oj_arrow_chunks *from,
                                          int64_t **out, struct oj_error *err)
{
    OJ_NEW(*out, from->n, err);
    for (int64_t i = 0; i < from->n; i++)
        (*out)[i] = from->array[i]->children[0]->length;
    return OJ_OK;
}

static oj_status take_lists(const struct oj_arrow_chunks *from, int64_t size,
                            const struct runs *r, struct ArrowArray *out,
                            struct oj_error *err)
{
    int64_t *first, *count = NULL, *most, total = 0;
    oj_status status;
    OJ_TRY(oj_arrow_array_make(2, 1, out, err));
    OJ_TRY(take_validity(from, r, out, err));
    OJ_TRY(find_lengths_of_children(from, &most, err));
    status = allocate_ranges(r, &first, &count, err);
    if (status == OJ_OK)
    {
        status =
            take_offsets(from, size, r, most, out, first, count, &total, err);
        if (status == OJ_OK)
        {
            struct runs below = {r->n, r->chunk, first, count, total};
            status = take_child(from, 0, &below, out->children[0], err);
        }
        oj_free(first);
    }
    oj_free(most);
    return status;
}

/* Sets *below to the child elements to take: one run for each list view in r,
 * with chunk[i], first[i] and count[i]; the run of a NULL is empty. Also writes
 * the offsets and sizes of the new views (buffers 1 and 2 of out). */
static oj_status find_viewed_lists(const struct oj_arrow_chunks *from,
                                   int64_t size, const struct runs *r,
                                   struct ArrowArray *out, int32_t *chunk,
                                   struct runs *below, int64_t *first,
                                   int64_t *count, struct oj_error *err)
{
    int64_t at = 0;
    for (int64_t i = 0; i < r->n; i++)
    {
        int64_t n = count_of_run(r, i);
        const struct ArrowArray *array =
            r->row[i] >= 0 ? from->array[chunk_of_run(r, i)] : NULL;
        for (int64_t k = 0; k < n; k++, at++)
        {
            first[at] = -1;
            count[at] = 0;
            chunk[at] = chunk_of_run(r, i);
            if (array != NULL && arrow_bit(out->buffers[0], at))
            {
                int64_t row = array->offset + r->row[i] + k;
                first[at] = arrow_offset_at(array->buffers[1], size == 8, row);
                count[at] = arrow_offset_at(array->buffers[2], size == 8, row);
                if (first[at] < 0 || count[at] < 0 ||
                    first[at] > array->children[0]->length - count[at])
                    return arrow_fail_offsets(err);
            }
            arrow_put_offset((void *)out->buffers[1], size, at, below->total);
            arrow_put_offset((void *)out->buffers[2], size, at, count[at]);
            if (__builtin_add_overflow(below->total, count[at],
                                       &below->total) ||
                (size == 4 && below->total > INT32_MAX))
                return arrow_fail_limit(err);
        }
    }
    below->n = at;
    return OJ_OK;
}

static oj_status take_list_views(const struct oj_arrow_chunks *from,
                                 int64_t size, const struct runs *r,
                                 struct ArrowArray *out, struct oj_error *err)
{
    int64_t *first;
    int32_t *chunk;
    struct runs below = {0, NULL, NULL, NULL, 0};
    oj_status status;
    OJ_TRY(oj_arrow_array_make(3, 1, out, err));
    OJ_TRY(take_validity(from, r, out, err));
    for (int i = 1; i < 3; i++)
    {
        out->buffers[i] = oj_malloc(r->total, (size_t)size);
        if (out->buffers[i] == NULL)
            return oj_fail_nomem(err, r->total, (size_t)size);
    }
    OJ_NEW(first, 2 * r->total, err);
    chunk = oj_malloc(r->total, sizeof *chunk);
    status = chunk != NULL
                 ? find_viewed_lists(from, size, r, out, chunk, &below, first,
                                     first + r->total, err)
                 : oj_fail_nomem(err, r->total, sizeof *chunk);
    below.chunk = chunk;
    below.row = first;
    below.count = first + r->total;
    if (status == OJ_OK)
        status = take_child(from, 0, &below, out->children[0], err);
    oj_free(chunk);
    oj_free(first);
    return status;
}

/* Takes the child elements of all elements in r; each element has n_each of
 * them. The children of element i are numbers (offset + i) * n_each and
 * following, where offset is that of the parent array. */
static oj_status
take_children_of_fixed_count(const struct oj_arrow_chunks *from, int64_t n_each,
                             const struct runs *r, struct ArrowArray *out,
                             struct oj_error *err)
{
    struct runs below = {r->n, r->chunk, NULL, r->count, 0};
    int64_t *row, *count = NULL;
    oj_status status = OJ_OK;
    if (__builtin_mul_overflow(r->total, n_each, &below.total))
        return arrow_fail_limit(err);
    OJ_TRY(allocate_ranges(r, &row, &count, err));
    for (int64_t i = 0; i < r->n; i++)
    {
        const struct ArrowArray *array =
            r->row[i] >= 0 ? from->array[chunk_of_run(r, i)] : NULL;
        row[i] = array != NULL ? (array->offset + r->row[i]) * n_each : -1;
        count[i] = count_of_run(r, i) * n_each;
    }
    below.row = row;
    if (n_each != 1)
        below.count = count;
    for (int64_t i = 0; i < out->n_children && status == OJ_OK; i++)
        status = take_child(from, i, &below, out->children[i], err);
    oj_free(row);
    return status;
}

static oj_status take_fixed_lists(const struct oj_arrow_chunks *from,
                                  int64_t n_each, const struct runs *r,
                                  struct ArrowArray *out, struct oj_error *err)
{
    OJ_TRY(oj_arrow_array_make(1, 1, out, err));
    OJ_TRY(take_validity(from, r, out, err));
    return take_children_of_fixed_count(from, n_each, r, out, err);
}

static oj_status take_structs(const struct oj_arrow_chunks *from,
                              const struct runs *r, struct ArrowArray *out,
                              struct oj_error *err)
{
    OJ_TRY(oj_arrow_array_make(1, from->schema->n_children, out, err));
    OJ_TRY(take_validity(from, r, out, err));
    return take_children_of_fixed_count(from, 1, r, out, err);
}

/* ---- runs of equal values ------------------------------------------------ */

/* Output of run-end encoded columns: the values of runs, and the end of each
 * run. */
struct taken_runs
{
    int32_t *chunk;
    int64_t *value, *end;
    int64_t n, cap_chunk, cap_value, cap_end;
};

static oj_status add_taken_run(struct taken_runs *t, int32_t chunk,
                               int64_t value, int64_t n, struct oj_error *err)
{
    int64_t before = t->n > 0 ? t->end[t->n - 1] : 0;
    if (t->n > 0 && t->value[t->n - 1] == value &&
        (value < 0 || t->chunk[t->n - 1] == chunk))
    {
        t->end[t->n - 1] += n;
        return OJ_OK;
    }
    OJ_ROOM(t->chunk, t->n, t->n + 1, t->cap_chunk, err);
    OJ_ROOM(t->value, t->n, t->n + 1, t->cap_value, err);
    OJ_ROOM(t->end, t->n, t->n + 1, t->cap_end, err);
    t->chunk[t->n] = chunk;
    t->value[t->n] = value;
    t->end[t->n++] = before + n;
    return OJ_OK;
}

static oj_status find_runs_of_values(const struct oj_arrow_chunks *from,
                                     int64_t size, const struct runs *r,
                                     struct taken_runs *t, struct oj_error *err)
{
    for (int64_t i = 0; i < r->n; i++)
    {
        int64_t n = count_of_run(r, i), row = r->row[i];
        const struct ArrowArray *array, *ends;
        if (row < 0)
        {
            OJ_TRY(add_taken_run(t, 0, -1, n, err));
            continue;
        }
        array = from->array[chunk_of_run(r, i)];
        ends = array->children[0];
        row += array->offset;
        while (n > 0)
        {
            int64_t value = arrow_run_find(ends, size, row), here;
            if (value >= ends->length || value >= array->children[1]->length)
                return arrow_fail_mismatch(err);
            here = arrow_run_end(ends, size, value) - row;
            here = here < n ? here : n;
            OJ_TRY(add_taken_run(t, chunk_of_run(r, i), value, here, err));
            row += here;
            n -= here;
        }
    }
    return OJ_OK;
}

static oj_status write_run_ends(const struct taken_runs *t, int64_t size,
                                struct ArrowArray *out, struct oj_error *err)
{
    char *to;
    OJ_TRY(oj_arrow_array_make(2, 0, out, err));
    OJ_NEW(to, t->n * size, err);
    out->buffers[1] = to;
    out->length = t->n;
    for (int64_t i = 0; i < t->n; i++)
    {
        if (size == 8)
            ((int64_t *)(void *)to)[i] = t->end[i];
        else if (size == 4)
            ((int32_t *)(void *)to)[i] = (int32_t)t->end[i];
        else
            ((int16_t *)(void *)to)[i] = (int16_t)t->end[i];
    }
    return OJ_OK;
}

static oj_status take_run_ends(const struct oj_arrow_chunks *from,
                               const struct runs *r, struct ArrowArray *out,
                               struct oj_error *err)
{
    int64_t size = oj_arrow_type_of(from->schema->children[0]).size;
    struct taken_runs t = {NULL, NULL, NULL, 0, 0, 0, 0};
    oj_status status;
    OJ_TRY(oj_arrow_array_make(0, 2, out, err));
    out->length = r->total;
    if (size < 8 && r->total > (size == 4 ? INT32_MAX : INT16_MAX))
        return arrow_fail_limit(err);
    status = find_runs_of_values(from, size, r, &t, err);
    if (status == OJ_OK)
        status = write_run_ends(&t, size, out->children[0], err);
    if (status == OJ_OK)
    {
        struct runs below = {t.n, t.chunk, t.value, NULL, t.n};
        status = take_child(from, 1, &below, out->children[1], err);
    }
    oj_free(t.chunk);
    oj_free(t.value);
    oj_free(t.end);
    return status;
}

/* ---- dictionaries -------------------------------------------------------- */

/* Returns 1 if two arrays have identical buffers, offset and length. */
static int are_arrays_identical(const struct ArrowArray *a,
                                const struct ArrowArray *b)
{
    if (a->length != b->length || a->offset != b->offset ||
        a->n_buffers != b->n_buffers || a->n_children != b->n_children)
        return 0;
    for (int64_t i = 0; i < a->n_buffers; i++)
    {
        if (a->buffers[i] != b->buffers[i])
            return 0;
    }
    for (int64_t i = 0; i < a->n_children; i++)
    {
        if (!are_arrays_identical(a->children[i], b->children[i]))
            return 0;
    }
    return (a->dictionary == NULL && b->dictionary == NULL) ||
           (a->dictionary != NULL && b->dictionary != NULL &&
            are_arrays_identical(a->dictionary, b->dictionary));
}

/* Returns 1 if two dictionaries have equal bytes. Types other than texts,
 * binaries and fixed-size values are never equal. */
static int are_equal_values(const struct ArrowSchema *schema,
                            const struct ArrowArray *a,
                            const struct ArrowArray *b)
{
    struct oj_arrow_type type = oj_arrow_type_of(schema);
    int is_fixed = type.storage == OJ_STORES_FIXED;
    if (a->length != b->length || schema->dictionary != NULL ||
        (!is_fixed && type.storage != OJ_STORES_BYTES))
        return 0;
    for (int64_t i = 0; i < a->length; i++)
    {
        int64_t at = a->offset + i, other = b->offset + i, n = type.size;
        const char *in_a = a->buffers[1], *in_b = b->buffers[1];
        if (arrow_bit(validity_of_array(a), at) !=
            arrow_bit(validity_of_array(b), other))
            return 0;
        if (!arrow_bit(validity_of_array(a), at))
            continue;
        if (is_fixed)
        {
            at *= n;
            other *= n;
        }
        else
        {
            int64_t end = arrow_offset_at(in_a, n == 8, at + 1);
            int64_t end_b = arrow_offset_at(in_b, n == 8, other + 1);
            at = arrow_offset_at(in_a, n == 8, at);
            other = arrow_offset_at(in_b, n == 8, other);
            n = end - at;
            if (at < 0 || other < 0 || n < 0 || end_b - other != n)
                return 0;
            in_a = a->buffers[2];
            in_b = b->buffers[2];
        }
        if (n > 0 && memcmp(in_a + at, in_b + other, (size_t)n) != 0)
            return 0;
    }
    return 1;
}

/* A common dictionary for all chunks: a concatenation of the dictionaries of
 * the chunks, without duplicates. */
struct common_dictionary
{
    int64_t *first; /* [chunks] index in the common dictionary of the chunk's
                       first value; -1: no row of the chunk is taken */
    int32_t *chunk; /* [n] chunk of each concatenated dictionary */
    int64_t *row, *count;
    int64_t n, total;
};

static void free_common_dictionary(struct common_dictionary *d)
{
    oj_free(d->first);
    oj_free(d->chunk);
    oj_free(d->row);
    oj_free(d->count);
}

static void mark_used_chunks(const struct runs *r, int64_t *first)
{
    for (int64_t i = 0; i < r->n; i++)
    {
        if (r->row[i] >= 0)
            first[chunk_of_run(r, i)] = 0;
    }
}

/* Returns the index of an equal dictionary among those listed so far, or -1 if
 * there is none. */
static int64_t find_equal_dictionary(const struct oj_arrow_chunks *from,
                                     const struct common_dictionary *d,
                                     int64_t chunk)
{
    const struct ArrowArray *values = from->array[chunk]->dictionary;
    for (int64_t i = d->n; i-- > 0;)
    {
        const struct ArrowArray *other = from->array[d->chunk[i]]->dictionary;
        if (are_arrays_identical(values, other) ||
            are_equal_values(from->schema->dictionary, values, other))
            return i;
    }
    return -1;
}

static oj_status find_common_dictionary(const struct oj_arrow_chunks *from,
                                        const struct runs *r,
                                        struct common_dictionary *d,
                                        struct oj_error *err)
{
    OJ_NEW(d->first, from->n, err);
    OJ_NEW(d->chunk, from->n, err);
    OJ_NEW_ZEROED(d->row, from->n, err);
    OJ_NEW(d->count, from->n, err);
    for (int64_t i = 0; i < from->n; i++)
        d->first[i] = -1;
    mark_used_chunks(r, d->first);
    for (int64_t i = 0; i < from->n; i++)
    {
        int64_t equal;
        if (d->first[i] < 0)
            continue;
        equal = find_equal_dictionary(from, d, i);
        if (equal >= 0)
        {
            d->first[i] = d->first[d->chunk[equal]];
            continue;
        }
        d->first[i] = d->total;
        d->chunk[d->n] = (int32_t)i;
        d->count[d->n] = from->array[i]->dictionary->length;
        d->total += d->count[d->n++];
    }
    return OJ_OK;
}

/* Returns the maximum index of an index type, given by its Arrow format. */
static int64_t greatest_dictionary_index(const char *format)
{
    switch (format[0])
    {
        case 'c':
            return INT8_MAX;
        case 'C':
            return UINT8_MAX;
        case 's':
            return INT16_MAX;
        case 'S':
            return UINT16_MAX;
        case 'i':
            return INT32_MAX;
        case 'I':
            return UINT32_MAX;
        default:
            return INT64_MAX;
    }
}

/* Converts dictionary indices of each chunk to indices in the common
 * dictionary. */
static void shift_dictionary_indices(const struct runs *r, const int64_t *first,
                                     int64_t size, char *to)
{
    for (int64_t i = 0; i < r->n; i++)
    {
        int64_t n = count_of_run(r, i);
        int64_t by = r->row[i] >= 0 ? first[chunk_of_run(r, i)] : 0;
        for (int64_t k = 0; by > 0 && k < n; k++)
        {
            uint64_t place = 0;
            memcpy(&place, to + k * size, (size_t)size);
            place += (uint64_t)by;
            memcpy(to + k * size, &place, (size_t)size);
        }
        to += n * size;
    }
}

static oj_status take_values_of_dictionary(const struct oj_arrow_chunks *from,
                                           const struct common_dictionary *d,
                                           struct ArrowArray *out,
                                           struct oj_error *err)
{
    const struct ArrowArray **values;
    struct runs all = {d->n, d->chunk, d->row, d->count, d->total};
    struct oj_arrow_chunks below = {from->schema->dictionary, NULL,
                                    from->shared, from->n};
    oj_status status;
    if (d->n == 1 && from->shared != NULL)
    {
        const struct ArrowArray *only = from->array[d->chunk[0]]->dictionary;
        return oj_arrow_array_view_rows(from->shared[d->chunk[0]], only, 0,
                                        only->length, out, err);
    }
    OJ_NEW(values, from->n, err);
    for (int64_t i = 0; i < from->n; i++)
        values[i] = from->array[i]->dictionary;
    below.array = values;
    status = take_elements_of_runs(&below, &all, out, err);
    oj_free(values);
    return status;
}

static oj_status take_dictionary_indices(const struct oj_arrow_chunks *from,
                                         const struct runs *r,
                                         struct common_dictionary *d,
                                         struct ArrowArray *out,
                                         struct oj_error *err)
{
    int64_t size = oj_arrow_type_of(from->schema).size;
    OJ_TRY(find_common_dictionary(from, r, d, err));
    if (d->n > 1 &&
        d->total - 1 > greatest_dictionary_index(from->schema->format))
        return arrow_fail_limit(err);
    if (d->n > 1)
        shift_dictionary_indices(r, d->first, size, (char *)out->buffers[1]);
    OJ_TRY(oj_arrow_array_add_dictionary(out, err));
    return take_values_of_dictionary(from, d, out->dictionary, err);
}

static oj_status take_dictionary(const struct oj_arrow_chunks *from,
                                 const struct runs *r, struct ArrowArray *out,
                                 struct oj_error *err)
{
    struct common_dictionary d = {NULL, NULL, NULL, NULL, 0, 0};
    oj_status status;
    OJ_TRY(take_fixed_size_values(from, oj_arrow_type_of(from->schema).size, r,
                                  out, err));
    status = take_dictionary_indices(from, r, &d, out, err);
    free_common_dictionary(&d);
    return status;
}

/* ---- any type ------------------------------------------------------------ */

static oj_status take_null_array(const struct runs *r, struct ArrowArray *out,
                                 struct oj_error *err)
{
    OJ_TRY(oj_arrow_array_make(0, 0, out, err));
    out->length = out->null_count = r->total;
    return OJ_OK;
}

/* On an error out->release may be set, so that the caller must release out. */
static oj_status take_elements_of_runs(const struct oj_arrow_chunks *from,
                                       const struct runs *r,
                                       struct ArrowArray *out,
                                       struct oj_error *err)
{
    struct oj_arrow_type type = oj_arrow_type_of(from->schema);
    if (from->schema->dictionary != NULL)
        return take_dictionary(from, r, out, err);
    switch (type.storage)
    {
        case OJ_STORES_NOTHING:
            return take_null_array(r, out, err);
        case OJ_STORES_BITS:
            return take_boolean_values(from, r, out, err);
        case OJ_STORES_FIXED:
            return take_fixed_size_values(from, type.size, r, out, err);
        case OJ_STORES_BYTES:
            return take_bytes(from, type.size, r, out, err);
        case OJ_STORES_BYTE_VIEWS:
            return take_byte_views(from, r, out, err);
        case OJ_STORES_LISTS:
            return take_lists(from, type.size, r, out, err);
        case OJ_STORES_LIST_VIEWS:
            return take_list_views(from, type.size, r, out, err);
        case OJ_STORES_FIXED_LISTS:
            return take_fixed_lists(from, type.size, r, out, err);
        case OJ_STORES_STRUCTS:
            return take_structs(from, r, out, err);
        case OJ_STORES_RUNS:
            return take_run_ends(from, r, out, err);
    }
    return arrow_fail_mismatch(err);
}

/* If all places are consecutive rows of one chunk, returns the chunk; otherwise
 * -1. */
static int64_t chunk_of_consecutive_rows(const struct oj_arrow_places *places)
{
    int32_t chunk;
    if (places->n == 0 || places->row[0] < 0)
        return -1;
    chunk = places->chunk != NULL ? places->chunk[0] : 0;
    if (places->row[places->n - 1] - places->row[0] != places->n - 1)
        return -1;
    for (int64_t i = 1; i < places->n; i++)
    {
        if (places->row[i] != places->row[0] + i ||
            (places->chunk != NULL && places->chunk[i] != chunk))
            return -1;
    }
    return chunk;
}

oj_status oj_arrow_take(const struct oj_arrow_chunks *chunks,
                        const struct oj_arrow_places *places,
                        struct ArrowArray *out, struct oj_error *err)
{
    struct runs r = {places->n, places->chunk, places->row, NULL, places->n};
    int64_t chunk =
        chunks->shared != NULL ? chunk_of_consecutive_rows(places) : -1;
    oj_status status;
    memset(out, 0, sizeof *out);
    if (chunk >= 0 && places->n >= chunks->array[chunk]->length / 16)
        return oj_arrow_array_view_rows(chunks->shared[chunk],
                                        chunks->array[chunk], places->row[0],
                                        places->n, out, err);
    status = take_elements_of_runs(chunks, &r, out, err);
    if (status != OJ_OK)
        oj_arrow_array_release(out);
    return status;
}

/* ---- sizes --------------------------------------------------------------- */

static int64_t bytes_of_views(const struct ArrowArray *array, int64_t first,
                              int64_t n)
{
    const char *view = (const char *)array->buffers[1] +
                       (array->offset + first) * ARROW_VIEW_BYTES;
    int64_t sum = n * ARROW_VIEW_BYTES;
    for (int64_t i = 0; i < n; i++, view += ARROW_VIEW_BYTES)
    {
        int64_t outside = bytes_of_view_in_blocks(array, view);
        sum += outside > 0 ? outside : 0;
    }
    return sum;
}

/* Returns the number of child elements or bytes from offset `first` to offset
 * first + n, and sets *begin to the first of them. Returns 0 if the offsets are
 * invalid. */
static int64_t count_between_offsets(const struct ArrowArray *array,
                                     int64_t size, int64_t first, int64_t n,
                                     int64_t *begin)
{
    int64_t end;
    first += array->offset;
    *begin = arrow_offset_at(array->buffers[1], size == 8, first);
    end = arrow_offset_at(array->buffers[1], size == 8, first + n);
    return *begin >= 0 && end > *begin ? end - *begin : 0;
}

/* Returns the bytes of rows first .. first + n - 1 in all children. n < 0: the
 * bytes of all rows. */
static int64_t bytes_of_children(const struct ArrowSchema *schema,
                                 const struct ArrowArray *array, int64_t first,
                                 int64_t n)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < schema->n_children; i++)
        sum += oj_arrow_estimate_bytes(schema->children[i], array->children[i],
                                       first,
                                       n < 0 ? array->children[i]->length : n);
    return sum;
}

int64_t oj_arrow_estimate_bytes(const struct ArrowSchema *schema,
                                const struct ArrowArray *array, int64_t first,
                                int64_t n)
{
    struct oj_arrow_type type = oj_arrow_type_of(schema);
    int64_t sum = 0, begin, size = type.size;
    if (n == 0)
        return 0;
    switch (type.storage)
    {
        case OJ_STORES_NOTHING:
            return 0;
        case OJ_STORES_BITS:
            return n / 8 + 1;
        case OJ_STORES_FIXED:
            return n * size;
        case OJ_STORES_BYTES:
            return n * size +
                   count_between_offsets(array, size, first, n, &begin);
        case OJ_STORES_BYTE_VIEWS:
            return bytes_of_views(array, first, n);
        case OJ_STORES_LISTS:
            sum = count_between_offsets(array, size, first, n, &begin);
            if (sum > array->children[0]->length - begin)
                return n * size;
            return n * size + oj_arrow_estimate_bytes(schema->children[0],
                                                      array->children[0], begin,
                                                      sum);
        case OJ_STORES_FIXED_LISTS:
            return oj_arrow_estimate_bytes(
                schema->children[0], array->children[0],
                (array->offset + first) * size, n * size);
        case OJ_STORES_STRUCTS:
            return bytes_of_children(schema, array, array->offset + first, n);
        default: /* an estimate, as if all elements had equally many values */
            sum = bytes_of_children(schema, array, 0, -1);
            return (int64_t)((double)sum /
                             (double)(array->length > 0 ? array->length : 1) *
                             (double)n) +
                   2 * n * size;
    }
}

/* Returns the number of bytes or list values of the longest of n rows, by their
 * offsets. */
static int64_t longest_between_offsets(const struct ArrowArray *array,
                                       int64_t size, int64_t first, int64_t n)
{
    int64_t most = 0;
    first += array->offset;
    for (int64_t i = first; i < first + n; i++)
    {
        int64_t here = arrow_offset_at(array->buffers[1], size == 8, i + 1) -
                       arrow_offset_at(array->buffers[1], size == 8, i);
        most = here > most ? here : most;
    }
    return most;
}

static int64_t longest_view(const struct ArrowArray *array, int64_t first,
                            int64_t n)
{
    int64_t most = 0;
    for (int64_t i = first; i < first + n; i++)
    {
        int64_t here = bytes_of_views(array, i, 1);
        most = here > most ? here : most;
    }
    return most;
}

int64_t oj_arrow_max_row_bytes(const struct ArrowSchema *schema,
                               const struct ArrowArray *array, int64_t first,
                               int64_t n)
{
    struct oj_arrow_type type = oj_arrow_type_of(schema);
    int64_t sum = 0, size = type.size;
    const struct ArrowArray *child =
        array->n_children > 0 ? array->children[0] : NULL;
    if (n == 0)
        return 0;
    switch (type.storage)
    {
        case OJ_STORES_NOTHING:
            return 0;
        case OJ_STORES_BITS:
            return 1;
        case OJ_STORES_FIXED:
            return size;
        case OJ_STORES_BYTES:
            return size + longest_between_offsets(array, size, first, n);
        case OJ_STORES_BYTE_VIEWS:
            return longest_view(array, first, n);
        case OJ_STORES_LISTS:
            return size + longest_between_offsets(array, size, first, n) *
                              oj_arrow_max_row_bytes(schema->children[0], child,
                                                     0, child->length);
        case OJ_STORES_FIXED_LISTS:
            return size * oj_arrow_max_row_bytes(schema->children[0], child, 0,
                                                 child->length);
        case OJ_STORES_STRUCTS:
            for (int64_t i = 0; i < schema->n_children; i++)
                sum += oj_arrow_max_row_bytes(schema->children[i],
                                              array->children[i],
                                              array->offset + first, n);
            return sum;
        case OJ_STORES_RUNS:
            return oj_arrow_max_row_bytes(schema->children[1],
                                          array->children[1], 0,
                                          array->children[1]->length);
        default:
            return INT32_MAX; /* list views may overlap, so their total size has
                                 no useful bound */
    }
}
