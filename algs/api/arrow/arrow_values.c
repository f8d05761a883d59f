#include "arrow_values.h"

#include <string.h>

oj_status arrow_fail_mismatch(struct oj_error *err)
{
    return oj_fail(
        err, OJ_ERR_DATA,
        "an Arrow array does not match its schema, because a buffer, a child "
        "or elements are missing: export the array together with its schema");
}

oj_status arrow_fail_offsets(struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_DATA,
                   "the offsets of an Arrow array are invalid: give offsets of "
                   "0 or more that do not decrease and end inside of its data");
}

oj_status arrow_fail_limit(struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_LIMIT,
                   "a column has more values, or a longer one, than its Arrow "
                   "type can count: give it as large_binary, large_utf8 or "
                   "large_list, with dictionary indices of 64 bits");
}

int64_t arrow_integer_at(char format, const void *integers, int64_t i)
{
    switch (format)
    {
        case 'c':
            return ((const int8_t *)integers)[i];
        case 'C':
            return ((const uint8_t *)integers)[i];
        case 's':
            return ((const int16_t *)integers)[i];
        case 'S':
            return ((const uint16_t *)integers)[i];
        case 'i':
            return ((const int32_t *)integers)[i];
        case 'I':
            return ((const uint32_t *)integers)[i];
        default:
            return ((const int64_t *)integers)[i];
    }
}

int64_t arrow_count_bits(const uint8_t *bits, int64_t n)
{
    int64_t n_set = 0;
    for (int64_t i = 0; i < n / 8; i++)
        n_set += __builtin_popcount(bits[i]);
    if (n % 8 > 0)
        n_set += __builtin_popcount(bits[n / 8] & ((1u << n % 8) - 1));
    return n_set;
}

oj_status arrow_check_layout(const struct ArrowArray *array, int64_t n_buffers,
                             int64_t n_children, struct oj_error *err)
{
    if (array == NULL || array->length < 0 || array->offset < 0 ||
        array->length > INT64_MAX - 1 - array->offset ||
        array->n_buffers < n_buffers || array->n_children != n_children ||
        array->buffers == NULL || (n_children > 0 && array->children == NULL))
        return arrow_fail_mismatch(err);
    return OJ_OK;
}

oj_status arrow_find_column(const struct ArrowArray *array, int64_t child,
                            const struct ArrowArray **column,
                            struct arrow_presence *presence,
                            struct oj_error *err)
{
    struct arrow_presence p = {NULL, NULL, 0, 0};
    OJ_TRY(arrow_check_layout(array, 1, array->n_children, err));
    *column = array;
    if (child >= 0)
    {
        if (child >= array->n_children)
            return arrow_fail_mismatch(err);
        *column = array->children[child];
        p.outer_valid = arrow_validity(array);
        p.skipped = array->offset;
        OJ_TRY(arrow_check_layout(
            *column, 1, *column == NULL ? 0 : (*column)->n_children, err));
    }
    if ((*column)->length - p.skipped < array->length)
        return arrow_fail_mismatch(err);
    p.valid = arrow_validity(*column);
    p.first = (*column)->offset + p.skipped;
    *presence = p;
    return OJ_OK;
}

/* Checks that the offsets first .. first + n, of 64 bits if is_large, of 32
 * otherwise, are not negative, do not decrease, and do not exceed `most`. */
static oj_status check_offsets(const void *offset, int is_large, int64_t first,
                               int64_t n, int64_t most, struct oj_error *err)
{
    int64_t before = 0;
    for (int64_t i = 0; i <= n; i++)
    {
        int64_t at = arrow_offset_at(offset, is_large, first + i);
        if (at < before || at > most)
            return arrow_fail_offsets(err);
        before = at;
    }
    return OJ_OK;
}

/* Returns the buffer of offsets or, for an array without rows, which may lack
 * the buffer, a single offset 0. */
static const void *offset_buffer_or_zero(const struct ArrowArray *array)
{
    static const int64_t none[1] = {0};
    return array->length == 0 && array->offset == 0 ? none : array->buffers[1];
}

oj_status arrow_list_read(const struct ArrowArray *array, int is_large,
                          struct arrow_list *out, struct oj_error *err)
{
    OJ_TRY(arrow_check_layout(array, 2, 1, err));
    out->offset = offset_buffer_or_zero(array);
    out->is_large = is_large;
    out->first = array->offset;
    out->length = array->length;
    if (out->offset == NULL || array->children[0] == NULL)
        return arrow_fail_mismatch(err);
    return check_offsets(out->offset, is_large, out->first, out->length,
                         array->children[0]->length, err);
}

static oj_status read_binary_view_buffers(const struct ArrowArray *array,
                                          int64_t n_rows,
                                          struct arrow_bytes *out,
                                          struct oj_error *err)
{
    out->n_blocks = array->n_buffers - 3;
    out->block = (const uint8_t *const *)(array->buffers + 2);
    out->block_bytes = array->buffers[array->n_buffers - 1];
    out->offset = array->buffers[1];
    if ((out->n_blocks > 0 && out->block_bytes == NULL) ||
        (n_rows > 0 && out->offset == NULL))
        return arrow_fail_mismatch(err);
    return OJ_OK;
}

oj_status arrow_bytes_read(const struct ArrowArray *array, const char *format,
                           int64_t skipped, int64_t n_rows,
                           struct arrow_bytes *out, struct oj_error *err)
{
    OJ_TRY(arrow_check_layout(array, 3, 0, err));
    memset(out, 0, sizeof *out);
    out->is_view = format[0] == 'v';
    out->is_large = format[0] == 'Z' || format[0] == 'U';
    out->first = array->offset + skipped;
    if (out->is_view)
        return read_binary_view_buffers(array, n_rows, out, err);
    out->offset = offset_buffer_or_zero(array);
    out->bytes = array->buffers[2];
    if (out->offset == NULL)
        return arrow_fail_mismatch(err);
    out->n_bytes =
        arrow_offset_at(out->offset, out->is_large, out->first + n_rows);
    if (out->bytes != NULL)
        return OJ_OK; /* arrow_bytes_of_row() checks the offsets of each row */
    return check_offsets(
        out->offset, out->is_large, out->first, n_rows,
        arrow_offset_at(out->offset, out->is_large, out->first), err);
}

oj_status arrow_fail_views(struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_DATA,
                   "a view of an Arrow array lies outside of its data "
                   "buffers: export the array with all its buffers");
}

int64_t arrow_view_count_block_bytes(const void *view, int64_t n_blocks,
                                     const uint8_t *const *block,
                                     const int64_t *block_bytes)
{
    const struct arrow_view v = arrow_view_read(view);
    if (v.length >= 0 && v.length <= ARROW_MOST_INSIDE)
        return 0;
    if (v.length < 0 || v.block < 0 || v.block >= n_blocks || v.at < 0 ||
        block[v.block] == NULL || block_bytes == NULL ||
        (int64_t)v.at + v.length > block_bytes[v.block])
        return -1;
    return v.length;
}

static oj_status find_bytes_of_binary_view(const struct arrow_bytes *b,
                                           int64_t row, const uint8_t **bytes,
                                           size_t *n, struct oj_error *err)
{
    const uint8_t *view =
        (const uint8_t *)b->offset + (b->first + row) * ARROW_VIEW_BYTES;
    const struct arrow_view v = arrow_view_read(view);
    int64_t outside = arrow_view_count_block_bytes(view, b->n_blocks, b->block,
                                                   b->block_bytes);
    if (outside < 0)
        return arrow_fail_views(err);
    *bytes = outside > 0 ? b->block[v.block] + v.at : view + 4;
    *n = (size_t)v.length;
    return OJ_OK;
}

oj_status arrow_bytes_of_row(const struct arrow_bytes *b, int64_t row,
                             const uint8_t **bytes, size_t *n,
                             struct oj_error *err)
{
    int64_t at, end;
    if (b->is_view)
        return find_bytes_of_binary_view(b, row, bytes, n, err);
    at = arrow_offset_at(b->offset, b->is_large, b->first + row);
    end = arrow_offset_at(b->offset, b->is_large, b->first + row + 1);
    if (at < 0 || at > end || end > b->n_bytes)
        return arrow_fail_offsets(err);
    *bytes = b->bytes + at;
    *n = (size_t)(end - at);
    return OJ_OK;
}

int64_t arrow_run_end_size(const char *format)
{
    return format[0] == 's' ? 2 : format[0] == 'i' ? 4 : 8;
}

int64_t arrow_run_end(const struct ArrowArray *ends, int64_t size, int64_t i)
{
    const void *values = ends->buffers[1];
    i += ends->offset;
    return size == 8   ? ((const int64_t *)values)[i]
           : size == 4 ? ((const int32_t *)values)[i]
                       : ((const int16_t *)values)[i];
}

int64_t arrow_run_find(const struct ArrowArray *ends, int64_t size, int64_t at)
{
    int64_t low = 0, high = ends->length;
    while (low < high)
    {
        int64_t middle = low + (high - low) / 2;
        if (arrow_run_end(ends, size, middle) > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}
