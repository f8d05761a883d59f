#include "oj_chunk_rows.h"

#include "../base/oj_array.h"

static int is_bytes(const struct oj_chunk_column *column)
{
    return column->format == 'U' || column->format == 'Z';
}

static oj_status init_column(struct oj_chunk_column *column, char format,
                             int64_t max_rows, size_t field_size,
                             struct oj_error *err)
{
    column->format = format;
    column->size = format == 'i' ? 4 : format == 'F' ? field_size : 8;
    if (format == 0)
        return OJ_OK;
    OJ_NEW_ZEROED(column->bits, (max_rows + 7) / 8, err);
    column->values = oj_malloc(max_rows + 1, column->size);
    if (column->values == NULL)
        return oj_fail_nomem(err, max_rows + 1, column->size);
    if (is_bytes(column))
        *(int64_t *)column->values = 0;
    return OJ_OK;
}

oj_status oj_chunk_rows_new(const char *format, int n_fields, int64_t max_rows,
                            size_t field_size, struct oj_chunk_rows **out,
                            struct oj_error *err)
{
    int n = OJ_CHUNK_FIELDS + n_fields;
    size_t size =
        sizeof(struct oj_chunk_rows) + (size_t)n * sizeof(*(*out)->column);
    struct oj_chunk_rows *rows = oj_calloc(1, size);
    oj_status status = OJ_OK;
    if (rows == NULL)
        return oj_fail_nomem(err, 1, size);
    rows->n_columns = n;
    rows->max_rows = max_rows;
    for (int c = 0; status == OJ_OK && c < n; c++)
    {
        char own = c == OJ_CHUNK_FID        ? 'l'
                   : c == OJ_CHUNK_GEOMETRY ? 'Z'
                                            : format[c - OJ_CHUNK_FIELDS];
        status = init_column(&rows->column[c], own, max_rows, field_size, err);
    }
    if (status == OJ_OK)
        *out = rows;
    else
        oj_chunk_rows_free(rows);
    return status;
}

static void free_rows(void *owner)
{
    struct oj_chunk_rows *rows = owner;
    if (rows == NULL)
        return;
    for (int c = 0; c < rows->n_columns; c++)
    {
        oj_free(rows->column[c].bits);
        oj_free(rows->column[c].values);
        oj_free(rows->column[c].bytes);
    }
    oj_free(rows);
}

void oj_chunk_rows_free(struct oj_chunk_rows *rows)
{
    free_rows(rows);
}

oj_status oj_chunk_rows_finish(struct oj_chunk_rows *rows, int64_t n_rows,
                               struct oj_chunk **out, struct oj_error *err)
{
    OJ_TRY(oj_chunk_new(rows->n_columns - OJ_CHUNK_FIELDS, rows, free_rows, out,
                        err));
    (*out)->n_rows = n_rows;
    for (int c = 0; c < rows->n_columns; c++)
    {
        const struct oj_chunk_column *from = &rows->column[c];
        struct oj_column_view *view = &(*out)->column[c];
        view->format = from->format;
        view->bits = from->n_null > 0 ? from->bits : NULL;
        view->values = from->values;
        view->bytes = from->bytes != NULL ? from->bytes : "";
    }
    return OJ_OK;
}

void oj_chunk_add_null(struct oj_chunk_column *column, int64_t row)
{
    column->n_null++;
    if (is_bytes(column))
        ((int64_t *)column->values)[row + 1] = column->n_bytes;
    else
        memset((char *)column->values + (size_t)row * column->size, 0,
               column->size);
}

oj_status oj_chunk_add_bytes(struct oj_chunk_column *column, int64_t row,
                             const void *bytes, int64_t n, struct oj_error *err)
{
    /* one more, so that there is memory where nothing has bytes */
    OJ_ROOM(column->bytes, column->n_bytes, column->n_bytes + n + 1,
            column->cap_bytes, err);
    if (n > 0)
        memcpy(column->bytes + column->n_bytes, bytes, (size_t)n);
    column->n_bytes += n;
    ((int64_t *)column->values)[row + 1] = column->n_bytes;
    oj_chunk_mark(column, row);
    return OJ_OK;
}
