#include "oj_arrow_column.h"

#include "../../../flatten/base/oj_alloc.h"

#include <string.h>

/* ---- open and close ------------------------------------------------------ */

static int has_offsets(const struct oj_arrow_column *column)
{
    return column->type.storage == OJ_STORES_BYTES ||
           column->type.storage == OJ_STORES_LISTS;
}

static int can_be_built(const struct ArrowSchema *schema,
                        const struct oj_arrow_type *type)
{
    if (schema->dictionary != NULL)
        return 0;
    switch (type->storage)
    {
        case OJ_STORES_BITS:
        case OJ_STORES_BYTES:
            return 1;
        case OJ_STORES_FIXED:
            return type->size == 1 || type->size == 2 || type->size == 4 ||
                   type->size == 8;
        case OJ_STORES_LISTS:
            return schema->n_children == 1;
        default:
            return 0;
    }
}

static oj_status open_column(const struct ArrowSchema *schema,
                             int64_t n_expected, struct oj_arrow_column *out,
                             struct oj_error *err)
{
    if (!oj_arrow_type_read(schema->format, &out->type) ||
        !can_be_built(schema, &out->type))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "columns of the Arrow format \"%.40s\" cannot be "
                       "written: leave such columns out, or convert them",
                       schema->format);
    out->is_nullable = (schema->flags & ARROW_FLAG_NULLABLE) != 0;
    out->limit = out->type.size == 4 ? INT32_MAX : INT64_MAX;
    out->n_expected = n_expected;
    if (out->type.storage != OJ_STORES_LISTS)
        return OJ_OK;
    OJ_NEW_ZEROED(out->item, 1, err);
    return open_column(schema->children[0], 0, out->item, err);
}

oj_status oj_arrow_column_open(const struct ArrowSchema *schema,
                               int64_t n_expected, struct oj_arrow_column *out,
                               struct oj_error *err)
{
    oj_status status;
    memset(out, 0, sizeof *out);
    status = open_column(schema, n_expected, out, err);
    if (status != OJ_OK)
        oj_arrow_column_free(out);
    return status;
}

oj_status oj_arrow_column_open_format(const char *format, int64_t n_expected,
                                      struct oj_arrow_column *out,
                                      struct oj_error *err)
{
    const struct ArrowSchema schema = {.format = format,
                                       .flags = ARROW_FLAG_NULLABLE};
    return oj_arrow_column_open(&schema, n_expected, out, err);
}

void oj_arrow_column_free(struct oj_arrow_column *column)
{
    if (column->item != NULL)
        oj_arrow_column_free(column->item);
    oj_free(column->item);
    oj_free(column->values);
    oj_free(column->bytes);
    oj_free(column->valid);
    memset(column, 0, sizeof *column);
}

/* ---- storing rows -------------------------------------------------------- */

oj_status oj_arrow_column_make_room(struct oj_arrow_column *column,
                                    int64_t first, int64_t n,
                                    struct oj_error *err)
{
    int is_new = column->values == NULL;
    int is_bits = column->type.storage == OJ_STORES_BITS;
    int64_t end = first + n;
    if (end <= column->n_room)
        return OJ_OK;
    end = end > column->n_expected ? end : column->n_expected;
    if (is_bits)
        OJ_TRY(oj_reserve(&column->values, (first + 7) / 8, end / 8 + 1,
                          &column->cap_values, 1, err));
    else /* columns of texts or lists have one offset more than rows; first + 1
            offsets are in use */
        OJ_TRY(oj_reserve(&column->values, first + has_offsets(column),
                          end + has_offsets(column), &column->cap_values,
                          (size_t)column->type.size, err));
    column->n_room = is_bits ? 8 * column->cap_values
                             : column->cap_values - has_offsets(column);
    if (is_new && has_offsets(column))
        arrow_put_offset(column->values, column->type.size, 0, 0);
    return OJ_OK;
}

/* Enlarges the validity bitmap to n rows or to the rows that `values` has room
 * for, whichever is more. New bits are 1 (not NULL). */
static oj_status enlarge_validity_bitmap(struct oj_arrow_column *column,
                                         int64_t n, struct oj_error *err)
{
    int64_t before = column->cap_valid;
    n = n > column->n_room ? n : column->n_room;
    OJ_ROOM(column->valid, before, n / 8 + 1, column->cap_valid, err);
    memset(column->valid + before, 0xff, (size_t)(column->cap_valid - before));
    return OJ_OK;
}

oj_status oj_arrow_column_put_null(struct oj_arrow_column *column, int64_t row,
                                   struct oj_error *err)
{
    const int64_t size = column->type.size;
    OJ_TRY(oj_arrow_column_make_room(column, row, 1, err));
    if (column->is_nullable && row >= 8 * column->cap_valid)
        OJ_TRY(enlarge_validity_bitmap(column, row + 1, err));
    if (column->is_nullable)
        arrow_put_bit(column->valid, row, 0);
    if (has_offsets(column))
        arrow_put_offset(column->values, size, row + 1,
                         arrow_offset_at(column->values, size == 8, row));
    else if (column->type.storage == OJ_STORES_BITS)
        arrow_put_bit(column->values, row, 0);
    else
        memset((char *)column->values + row * size, 0, (size_t)size);
    return OJ_OK;
}

oj_status oj_arrow_column_put_integer(struct oj_arrow_column *column,
                                      int64_t row, int64_t value,
                                      struct oj_error *err)
{
    OJ_TRY(oj_arrow_column_begin_value(column, row, err));
    if (column->type.storage == OJ_STORES_BITS)
        arrow_put_bit(column->values, row, value != 0);
    else if (column->type.size == 8)
        ((int64_t *)column->values)[row] = value;
    else if (column->type.size == 4)
        ((int32_t *)column->values)[row] = (int32_t)value;
    else if (column->type.size == 2)
        ((int16_t *)column->values)[row] = (int16_t)value;
    else
        ((int8_t *)column->values)[row] = (int8_t)value;
    return OJ_OK;
}

oj_status oj_arrow_column_put_real(struct oj_arrow_column *column, int64_t row,
                                   double value, struct oj_error *err)
{
    OJ_TRY(oj_arrow_column_begin_value(column, row, err));
    if (column->type.size == 8)
        ((double *)column->values)[row] = value;
    else
        ((float *)column->values)[row] = (float)value;
    return OJ_OK;
}

/* Writes the offset that ends a row of n bytes or list values, and sets *first
 * to the start of the row's data. If the data would exceed the limit of the
 * column, writes nothing and sets *first to -1. */
static oj_status put_end_offset(struct oj_arrow_column *column, int64_t row,
                                int64_t n, int64_t *first, struct oj_error *err)
{
    const int64_t size = column->type.size;
    OJ_TRY(oj_arrow_column_begin_value(column, row, err));
    *first = arrow_offset_at(column->values, size == 8, row);
    if (n > column->limit - *first)
        *first = -1;
    else
        arrow_put_offset(column->values, size, row + 1, *first + n);
    return OJ_OK;
}

oj_status oj_arrow_column_put_bytes(struct oj_arrow_column *column, int64_t row,
                                    int64_t n, char **to, struct oj_error *err)
{
    int64_t first, end;
    OJ_TRY(put_end_offset(column, row, n, &first, err));
    *to = NULL;
    if (first < 0)
        return OJ_OK;
    end = first + n;
    if (end >= column->cap_bytes)
        OJ_ROOM(column->bytes, first,
                end < column->n_expected_bytes ? column->n_expected_bytes
                                               : end + 1,
                column->cap_bytes, err);
    *to = column->bytes + first;
    return OJ_OK;
}

oj_status oj_arrow_column_put_list(struct oj_arrow_column *column, int64_t row,
                                   int64_t n, int64_t *first,
                                   struct oj_error *err)
{
    return put_end_offset(column, row, n, first, err);
}

/* ---- arrays -------------------------------------------------------------- */

/* Moves the validity bitmap to the array, unless no row is NULL. */
static oj_status move_validity_to_array(struct oj_arrow_column *column,
                                        int64_t n_rows, struct ArrowArray *out,
                                        struct oj_error *err)
{
    out->null_count = 0;
    if (column->valid == NULL)
        return OJ_OK;
    if (n_rows > 8 * column->cap_valid)
        OJ_TRY(enlarge_validity_bitmap(column, n_rows, err));
    out->null_count = n_rows - arrow_count_bits(column->valid, n_rows);
    if (out->null_count > 0)
        out->buffers[0] = column->valid;
    else
        oj_free(column->valid);
    column->valid = NULL;
    column->cap_valid = 0;
    return OJ_OK;
}

static oj_status move_bytes_to_array(struct oj_arrow_column *column,
                                     int64_t n_bytes, struct ArrowArray *out,
                                     struct oj_error *err)
{
    OJ_ROOM(column->bytes, 0, 1, column->cap_bytes, err);
    column->n_expected_bytes = n_bytes + n_bytes / 16;
    out->buffers[2] = column->bytes;
    column->bytes = NULL;
    column->cap_bytes = 0;
    return OJ_OK;
}

oj_status oj_arrow_column_finish(struct oj_arrow_column *column, int64_t n_rows,
                                 struct ArrowArray *out, struct oj_error *err)
{
    const int is_bytes = column->type.storage == OJ_STORES_BYTES;
    OJ_TRY(
        oj_arrow_array_make(is_bytes ? 3 : 2, column->item != NULL, out, err));
    OJ_TRY(oj_arrow_column_make_room(column, n_rows, 0, err));
    if (column->values == NULL) /* Arrow requires the buffer of values even
                                   without rows */
        OJ_TRY(oj_arrow_column_make_room(column, 0, 1, err));
    if (has_offsets(column))
    {
        int64_t end =
            arrow_offset_at(column->values, column->type.size == 8, n_rows);
        OJ_TRY(is_bytes ? move_bytes_to_array(column, end, out, err)
                        : oj_arrow_column_finish(column->item, end,
                                                 out->children[0], err));
    }
    OJ_TRY(move_validity_to_array(column, n_rows, out, err));
    out->length = n_rows;
    out->buffers[1] = column->values;
    column->values = NULL;
    column->cap_values = column->n_room = 0;
    column->n_expected = n_rows;
    return OJ_OK;
}
