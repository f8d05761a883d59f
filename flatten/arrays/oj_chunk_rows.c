#include "oj_chunk_rows.h"

#include "../base/oj_array.h"

/* Rows that tell what the others will be like, and most bytes that are made
 * room for before they are needed. */
#define SAMPLE_ROWS 256
#define MOST_AHEAD (INT64_C(32) << 20)

static int is_bytes(const struct oj_chunk_column *column)
{
    return column->format == 'U' || column->format == 'Z';
}

static oj_status init_column(struct oj_chunk_column *column, char format,
                             int64_t max_rows, size_t field_size,
                             struct oj_error *err)
{
    column->format = format;
    column->max_rows = max_rows;
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

static oj_status make_columns(int n, struct oj_chunk_rows **out,
                              struct oj_error *err)
{
    size_t size = sizeof **out + (size_t)n * sizeof(*(*out)->column);
    struct oj_chunk_rows *rows = oj_calloc(1, size);
    if (rows == NULL)
        return oj_fail_nomem(err, 1, size);
    rows->n_columns = n;
    *out = rows;
    return OJ_OK;
}

oj_status oj_chunk_rows_new(const char *format, int n_fields, int64_t max_rows,
                            size_t field_size, struct oj_chunk_rows **out,
                            struct oj_error *err)
{
    int n = OJ_CHUNK_FIELDS + n_fields;
    struct oj_chunk_rows *rows = NULL;
    oj_status status = OJ_OK;
    OJ_TRY(make_columns(n, &rows, err));
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

/* ---- parts --------------------------------------------------------------- */

oj_status oj_chunk_part_begin(const struct oj_chunk_rows *whole,
                              struct oj_chunk_rows **part, struct oj_error *err)
{
    if (*part == NULL)
        OJ_TRY(make_columns(whole->n_columns, part, err));
    for (int c = 0; c < whole->n_columns; c++)
    {
        struct oj_chunk_column *own = &(*part)->column[c];
        char *bytes = own->bytes;
        int64_t cap_bytes = own->cap_bytes;
        *own = whole->column[c];
        own->bytes = bytes;
        own->cap_bytes = cap_bytes;
        own->n_bytes = own->n_null = 0;
        own->max_rows = 0;
    }
    return OJ_OK;
}

oj_status oj_chunk_part_add(struct oj_chunk_rows *whole,
                            const struct oj_chunk_rows *part, int64_t row,
                            int64_t n_rows, struct oj_error *err)
{
    for (int c = 0; c < whole->n_columns; c++)
    {
        struct oj_chunk_column *to = &whole->column[c];
        const struct oj_chunk_column *from = &part->column[c];
        int64_t *end = (int64_t *)to->values + row + 1;
        to->n_null += from->n_null;
        if (!is_bytes(to))
            continue;
        OJ_TRY(oj_chunk_room(to, row + n_rows - 1, from->n_bytes, err));
        if (from->n_bytes > 0)
            memcpy(to->bytes + to->n_bytes, from->bytes, (size_t)from->n_bytes);
        for (int64_t i = 0; i < n_rows; i++)
            end[i] += to->n_bytes;
        to->n_bytes += from->n_bytes;
    }
    return OJ_OK;
}

void oj_chunk_part_free(struct oj_chunk_rows *part)
{
    for (int c = 0; part != NULL && c < part->n_columns; c++)
        oj_free(part->column[c].bytes);
    oj_free(part);
}

/* ---- chunks -------------------------------------------------------------- */

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

oj_status oj_chunk_room(struct oj_chunk_column *column, int64_t row, int64_t n,
                        struct oj_error *err)
{
    /* one more, so that there is memory where nothing has bytes */
    int64_t n_needed = column->n_bytes + n + 1;
    if (n_needed <= column->cap_bytes)
        return OJ_OK;
    if (row >= SAMPLE_ROWS && column->max_rows > row)
    {
        double more = 1.0625 * (double)n_needed / (double)row *
                      (double)(column->max_rows - row);
        n_needed += more < (double)MOST_AHEAD ? (int64_t)more : MOST_AHEAD;
    }
    return oj_reserve(&column->bytes, column->n_bytes, n_needed,
                      &column->cap_bytes, 1, err);
}

oj_status oj_chunk_add_bytes(struct oj_chunk_column *column, int64_t row,
                             const void *bytes, int64_t n, struct oj_error *err)
{
    OJ_TRY(oj_chunk_room(column, row, n, err));
    if (n > 0)
        memcpy(column->bytes + column->n_bytes, bytes, (size_t)n);
    oj_chunk_end_bytes(column, row, n);
    return OJ_OK;
}
