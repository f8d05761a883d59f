#include "oj_arrow_column.h"

#include "../../../flatten/base/oj_alloc.h"

#include <string.h>

oj_status oj_arrow_column_numbers(int64_t n, size_t size,
                                  struct ArrowArray *out, void **values,
                                  struct oj_error *err)
{
    OJ_TRY(oj_arrow_array_make(2, 0, out, err));
    *values = oj_malloc(n, size);
    if (*values == NULL)
        return oj_fail_nomem(err, n, size);
    out->buffers[1] = *values;
    out->length = n;
    return OJ_OK;
}

oj_status oj_arrow_column_set_null(struct ArrowArray *array, int64_t i,
                                   struct oj_error *err)
{
    uint8_t *valid = (uint8_t *)array->buffers[0];
    if (valid == NULL)
    {
        int64_t n = array->length / 8 + 1;
        OJ_NEW(valid, n, err);
        memset(valid, 0xff, (size_t)n);
        array->buffers[0] = valid;
    }
    array->null_count += valid[i >> 3] >> (i & 7) & 1;
    valid[i >> 3] = (uint8_t)(valid[i >> 3] & ~(1u << (i & 7)));
    return OJ_OK;
}

static oj_status put_offset(struct oj_arrow_bytes_column *c, int64_t i,
                            int64_t value, struct oj_error *err)
{
    size_t size = c->is_large ? 8 : 4;
    OJ_TRY(oj_reserve(&c->offset, i, i + 1, &c->cap_offset, size, err));
    if (c->is_large)
        ((int64_t *)c->offset)[i] = value;
    else
        ((int32_t *)c->offset)[i] = (int32_t)value;
    return OJ_OK;
}

oj_status oj_arrow_bytes_column_add(struct oj_arrow_bytes_column *column,
                                    int64_t n, char **to, struct oj_error *err)
{
    int64_t row = column->n, end = column->n_bytes + (n > 0 ? n : 0);
    if (!column->is_large && end > INT32_MAX)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "a row has more than an Arrow array can hold");
    if (row == 0)
        OJ_TRY(put_offset(column, 0, 0, err));
    OJ_TRY(put_offset(column, row + 1, end, err));
    OJ_ROOM(column->bytes, column->n_bytes, end + 1, column->cap_bytes, err);
    OJ_ROOM(column->valid, (row + 7) / 8, row / 8 + 1, column->cap_valid, err);
    if (row % 8 == 0)
        column->valid[row / 8] = 0;
    column->valid[row / 8] =
        (uint8_t)(column->valid[row / 8] | (unsigned)(n >= 0) << row % 8);
    column->n_null += n < 0;
    *to = column->bytes + column->n_bytes;
    column->n_bytes = end;
    column->n++;
    return OJ_OK;
}

oj_status oj_arrow_bytes_column_finish(struct oj_arrow_bytes_column *column,
                                       struct ArrowArray *out,
                                       struct oj_error *err)
{
    OJ_TRY(oj_arrow_array_make(3, 0, out, err));
    if (column->n == 0)
        OJ_TRY(put_offset(column, 0, 0, err));
    OJ_ROOM(column->bytes, column->n_bytes, column->n_bytes + 1,
            column->cap_bytes, err);
    out->length = column->n;
    out->null_count = column->n_null;
    if (column->n_null > 0)
    {
        out->buffers[0] = column->valid;
        column->valid = NULL;
    }
    out->buffers[1] = column->offset;
    out->buffers[2] = column->bytes;
    column->offset = NULL;
    column->bytes = NULL;
    oj_arrow_bytes_column_free(column);
    return OJ_OK;
}

void oj_arrow_bytes_column_free(struct oj_arrow_bytes_column *column)
{
    int is_large = column->is_large;
    oj_free(column->offset);
    oj_free(column->bytes);
    oj_free(column->valid);
    memset(column, 0, sizeof *column);
    column->is_large = is_large;
}
