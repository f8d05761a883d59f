#include "oj_chunk.h"

#include "../base/oj_alloc.h"
#include "../base/oj_parallel.h"
#include "../base/oj_utf8.h"
#include "oj_wkb.h"

/* A chunk ends when one of its columns has this many bytes; this bounds its
 * memory. */
#define MOST_BYTES (INT64_C(48) << 20)

/* Result of a thread that decodes a piece. */
struct chunk_work
{
    struct oj_chunk_rows *part; /* the decoded rows; owned, or NULL */
    int64_t n;                  /* number of decoded rows */
};

oj_status oj_chunk_new(int n_fields, void *owner, void (*free_owner)(void *),
                       struct oj_chunk **out, struct oj_error *err)
{
    size_t size =
        sizeof(struct oj_chunk) +
        (size_t)(OJ_CHUNK_FIELDS + n_fields) * sizeof(struct oj_column_view);
    struct oj_chunk *chunk = oj_calloc(1, size);
    if (chunk == NULL)
        return oj_fail_nomem(err, 1, size);
    chunk->n_users = 1;
    chunk->may_have_bad_texts = 1;
    chunk->owner = owner;
    chunk->free_owner = free_owner;
    *out = chunk;
    return OJ_OK;
}

struct oj_slice oj_slice_cut(struct oj_slice *rest, int64_t max_rows)
{
    struct oj_slice slice = *rest;
    if (slice.n_rows > max_rows)
        slice.n_rows = max_rows;
    rest->first += slice.n_rows;
    rest->n_rows -= slice.n_rows;
    if (rest->n_rows == 0) /* the last slice takes over the reference */
        memset(rest, 0, sizeof *rest);
    else
        __atomic_fetch_add(&slice.chunk->n_users, 1, __ATOMIC_RELAXED);
    return slice;
}

void oj_slice_free(struct oj_slice *slice)
{
    struct oj_chunk *chunk = slice->chunk;
    if (chunk != NULL &&
        __atomic_fetch_sub(&chunk->n_users, 1, __ATOMIC_ACQ_REL) == 1)
    {
        chunk->free_owner(chunk->owner);
        oj_free(chunk);
    }
    memset(slice, 0, sizeof *slice);
}

/* Counts the texts that are not UTF-8 among rows first .. first + n - 1, whose
 * bytes are contiguous. */
static int64_t count_bad_texts_of_column(const struct oj_column_view *column,
                                         int64_t first, int64_t n)
{
    int64_t n_bad = 0, n_last, n_here;
    const char *start = oj_column_bytes(column, first, &n_here);
    const char *end = oj_column_bytes(column, first + n - 1, &n_last) + n_last;
    if (oj_utf8_is_ascii(start, end - start))
        return 0;
    for (int64_t row = first; row < first + n; row++)
    {
        if (!oj_column_has_value(column, row))
            continue;
        start = oj_column_bytes(column, row, &n_here);
        n_bad += !oj_utf8_is_valid(start, n_here);
    }
    return n_bad;
}

int64_t oj_slice_count_bad_texts(const struct oj_slice *slice, int n_fields)
{
    int64_t n_bad = 0;
    if (slice->n_rows == 0 || !slice->chunk->may_have_bad_texts)
        return 0;
    for (int i = 0; i < n_fields; i++)
    {
        const struct oj_column_view *column =
            &slice->chunk->column[OJ_CHUNK_FIELDS + i];
        if (column->format == 'u' || column->format == 'U')
            n_bad +=
                count_bad_texts_of_column(column, slice->first, slice->n_rows);
    }
    return n_bad;
}

/* ---- columns ------------------------------------------------------------- */

static int is_bytes(const struct oj_chunk_column *column)
{
    return column->format == 'U' || column->format == 'Z';
}

static oj_status init_column(struct oj_chunk_column *column, char format,
                             int64_t max_rows, size_t field_size,
                             struct oj_error *err)
{
    column->format = format;
    column->size = format == 'i'   ? 4
                   : format == 'P' ? 16
                   : format == 'F' ? field_size
                                   : 8;
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

static void free_rows(void *owner)
{
    struct oj_chunk_rows *rows = owner;
    for (int c = 0; rows != NULL && c < rows->n_columns; c++)
    {
        oj_free(rows->column[c].bits);
        oj_free(rows->column[c].values);
        oj_free(rows->column[c].bytes);
    }
    oj_free(rows);
}

/* Allocates columns for max_rows rows. */
static oj_status make_rows(const struct oj_chunk_maker *maker, int64_t max_rows,
                           struct oj_chunk_rows **out, struct oj_error *err)
{
    int n = OJ_CHUNK_FIELDS + maker->request.n_fields;
    struct oj_chunk_rows *rows = NULL;
    oj_status status = OJ_OK;
    OJ_TRY(make_columns(n, &rows, err));
    for (int c = 0; status == OJ_OK && c < n; c++)
    {
        char own = c == OJ_CHUNK_FID ? 'l'
                   : c == OJ_CHUNK_GEOMETRY
                       ? (maker->request.are_points ? 'P' : 'Z')
                       : maker->request.formats[c - OJ_CHUNK_FIELDS];
        status = init_column(&rows->column[c], own, max_rows, maker->field_size,
                             err);
    }
    if (status == OJ_OK)
        *out = rows;
    else
        free_rows(rows);
    return status;
}

/* Makes *part a view of whole for the rows of one piece: it shares the validity
 * bits and fixed-size values of whole, but has its own memory for texts. The
 * first row of the piece must be a multiple of 8, because no two threads may
 * change one byte of validity bits. *part is NULL, or an earlier part whose
 * memory is reused. */
static oj_status begin_part(const struct oj_chunk_rows *whole,
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
        own->n_bytes = own->n_null = own->has_bad_text = 0;
    }
    return OJ_OK;
}

/* Appends the texts of a part, whose n_rows rows start at `row`, to whole.
 * Parts must be appended in row order. */
static oj_status append_rows_of_part(struct oj_chunk_rows *whole,
                                     const struct oj_chunk_rows *part,
                                     int64_t row, int64_t n_rows,
                                     struct oj_error *err)
{
    for (int c = 0; c < whole->n_columns; c++)
    {
        struct oj_chunk_column *to = &whole->column[c];
        const struct oj_chunk_column *from = &part->column[c];
        int64_t *end = (int64_t *)to->values + row + 1;
        to->n_null += from->n_null;
        to->has_bad_text |= from->has_bad_text;
        if (!is_bytes(to))
            continue;
        OJ_TRY(oj_chunk_reserve(to, from->n_bytes, err));
        if (from->n_bytes > 0)
            memcpy(to->bytes + to->n_bytes, from->bytes, (size_t)from->n_bytes);
        for (int64_t i = 0; i < n_rows; i++)
            end[i] += to->n_bytes;
        to->n_bytes += from->n_bytes;
    }
    return OJ_OK;
}

/* Counts the NULLs among rows row .. row + n - 1, adds them to column->n_null,
 * and sets their values to 0 or makes their texts empty. */
static void count_nulls_and_fill_offsets(struct oj_chunk_column *column,
                                         int64_t row, int64_t n)
{
    for (int64_t i = row; i < row + n; i++)
    {
        if (i % 8 == 0 && column->bits[i >> 3] == 255)
            i += 7;
        else if (!oj_chunk_has_value(column, i))
        {
            column->n_null++;
            if (is_bytes(column))
                ((int64_t *)column->values)[i + 1] =
                    i > row ? ((int64_t *)column->values)[i] : column->n_before;
            else
                memset((char *)column->values + (size_t)i * column->size, 0,
                       column->size);
        }
    }
}

/* Returns 1 if one of the n texts from `row` on is not valid UTF-8. Their
 * contiguous bytes are first checked as one text. If that is valid, only a text
 * that begins in the middle of a character can be invalid. */
static int has_bad_text(const struct oj_chunk_column *column, int64_t row,
                        int64_t n)
{
    const int64_t *start = column->values;
    const char *bytes = column->bytes + column->n_before;
    int64_t n_bytes = column->n_bytes - column->n_before;
    if (n_bytes == 0 || oj_utf8_is_ascii(bytes, n_bytes))
        return 0;
    if (!oj_utf8_is_valid(bytes, n_bytes))
        return 1;
    for (int64_t i = row + 1; i < row + n; i++)
    {
        if (start[i] < column->n_bytes &&
            (column->bytes[start[i]] & 0xC0) == 0x80)
            return 1;
    }
    return 0;
}

/* Decodes a piece: into the thread's own part, or directly into the chunk if
 * there is only one thread. */
static oj_status decode_rows_of_piece(int64_t task, int thread, void *user,
                                      struct oj_error *err)
{
    struct oj_chunk_maker *maker = user;
    const struct oj_chunk_piece *piece = &maker->piece[task];
    struct chunk_work *work = &maker->work[thread];
    struct oj_chunk_rows *to = maker->rows;
    oj_status status;
    work->n = 0;
    if (maker->request.n_threads > 1)
    {
        OJ_TRY(begin_part(maker->rows, &work->part, err));
        to = work->part;
    }
    for (int c = 0; c < to->n_columns; c++)
        to->column[c].n_before = to->column[c].n_bytes;
    status = maker->add(maker, thread, piece, to, &work->n, err);
    for (int c = OJ_CHUNK_GEOMETRY; work->n > 0 && c < to->n_columns; c++)
    {
        struct oj_chunk_column *column = &to->column[c];
        if (column->format != 0)
            count_nulls_and_fill_offsets(column, piece->row, work->n);
        if (column->format == 'U')
            column->has_bad_text |= has_bad_text(column, piece->row, work->n);
    }
    return status;
}

/* Appends a decoded piece to the chunk. A row that cannot be decoded ends the
 * chunk. */
static oj_status append_piece(int64_t task, int thread, oj_status status,
                              void *user, struct oj_error *err)
{
    struct oj_chunk_maker *maker = user;
    const struct chunk_work *work = &maker->work[thread];
    if (maker->request.n_threads > 1 && work->n > 0)
        OJ_TRY(append_rows_of_part(maker->rows, work->part,
                                   maker->piece[task].row, work->n, err));
    maker->n_rows += work->n;
    return status;
}

oj_status oj_chunk_begin_piece(struct oj_chunk_maker *maker, int64_t at,
                               int64_t row, struct oj_error *err)
{
    struct oj_chunk_piece piece = {at, row};
    OJ_ROOM(maker->piece, maker->n_pieces, maker->n_pieces + 1,
            maker->cap_pieces, err);
    maker->piece[maker->n_pieces++] = piece;
    return OJ_OK;
}

/* ---- filter -------------------------------------------------------------- */

static oj_status is_row_wanted(const struct oj_chunk_maker *maker, int64_t row,
                               int *is_wanted, struct oj_error *err)
{
    const struct oj_lane_request *request = &maker->request;
    const struct oj_chunk_column *shapes =
        &maker->rows->column[OJ_CHUNK_GEOMETRY];
    const int64_t *start = (const int64_t *)shapes->values + row;
    uint8_t point[OJ_WKB_POINT_BYTES] = {1, 1};
    if (!oj_chunk_has_value(shapes, row))
        return request->meets(request->user, NULL, 0, is_wanted, err);
    if (shapes->format != 'P')
        return request->meets(request->user,
                              (const uint8_t *)shapes->bytes + start[0],
                              (size_t)(start[1] - start[0]), is_wanted, err);
    memcpy(point + 5, (const uint8_t *)shapes->values + 16 * row, 16);
    return request->meets(request->user, point, sizeof point, is_wanted, err);
}

/* Moves a value from row `from` to row `to`, to <= from. */
static void move_value_to_earlier_row(struct oj_chunk_column *column,
                                      int64_t from, int64_t to)
{
    int64_t *start = column->values;
    int has = oj_chunk_has_value(column, from);
    column->bits[to >> 3] &= (uint8_t) ~(1u << (to & 7));
    if (has)
        oj_chunk_set_valid(column, to);
    if (!is_bytes(column))
    {
        memmove((char *)column->values + (size_t)to * column->size,
                (char *)column->values + (size_t)from * column->size,
                column->size);
        return;
    }
    column->n_bytes = start[to] + start[from + 1] - start[from];
    /* `bytes` may be NULL if no row has a value, and memmove() requires a valid
     * pointer. */
    if (start[from + 1] > start[from])
        memmove(column->bytes + start[to], column->bytes + start[from],
                (size_t)(start[from + 1] - start[from]));
    start[to + 1] = column->n_bytes;
}

/* Removes, from row `first` on, the rows that the filter refuses. */
static oj_status drop_unwanted_rows(struct oj_chunk_maker *maker, int64_t first,
                                    struct oj_error *err)
{
    int64_t n = first;
    oj_status status = OJ_OK;
    for (int64_t row = first; status == OJ_OK && row < maker->n_rows; row++)
    {
        int is_wanted = 0;
        status = is_row_wanted(maker, row, &is_wanted, err);
        for (int c = 0; is_wanted && c < maker->rows->n_columns; c++)
            if (maker->rows->column[c].format != 0)
                move_value_to_earlier_row(&maker->rows->column[c], row, n);
        n += is_wanted;
    }
    for (int c = 0; c < maker->rows->n_columns; c++)
    {
        struct oj_chunk_column *column = &maker->rows->column[c];
        if (is_bytes(column))
            column->n_bytes = ((int64_t *)column->values)[n];
        for (int64_t row = n; column->format != 0 && row < maker->n_rows; row++)
            column->bits[row >> 3] &= (uint8_t) ~(1u << (row & 7));
    }
    maker->n_rows = n;
    return status;
}

/* ---- chunks -------------------------------------------------------------- */

static int is_chunk_byte_limit_reached(const struct oj_chunk_rows *rows)
{
    int full = 0;
    for (int c = 0; c < rows->n_columns; c++)
        full |= rows->column[c].n_bytes > MOST_BYTES;
    return full;
}

static oj_status decode_rows_until_full(struct oj_chunk_maker *maker,
                                        int64_t max_rows, struct oj_error *err)
{
    maker->n_rows = 0;
    while (maker->n_rows < max_rows &&
           !is_chunk_byte_limit_reached(maker->rows))
    {
        int64_t first = maker->n_rows;
        oj_status status;
        maker->n_pieces = 0;
        OJ_TRY(oj_check_cancel(maker->request.cancel, err));
        OJ_TRY(maker->read(maker, first, max_rows, err));
        if (maker->n_pieces == 0)
            break;
        status = oj_parallel_in_order(maker->request.n_threads,
                                      maker->n_pieces - 1, decode_rows_of_piece,
                                      append_piece, maker, err);
        if (maker->request.box != NULL)
            OJ_TRY(drop_unwanted_rows(maker, first, err));
        OJ_TRY(status);
    }
    return OJ_OK;
}

static oj_status make_chunk_of_rows(struct oj_chunk_maker *maker,
                                    struct oj_chunk **out, struct oj_error *err)
{
    OJ_TRY(oj_chunk_new(maker->request.n_fields, maker->rows, free_rows, out,
                        err));
    (*out)->n_rows = maker->n_rows;
    (*out)->may_have_bad_texts = 0;
    for (int c = 0; c < maker->rows->n_columns; c++)
    {
        const struct oj_chunk_column *from = &maker->rows->column[c];
        struct oj_column_view *view = &(*out)->column[c];
        view->format = from->format;
        view->bits = from->n_null > 0 ? from->bits : NULL;
        view->values = from->values;
        view->bytes = from->bytes != NULL ? from->bytes : "";
        (*out)->may_have_bad_texts |= from->has_bad_text;
    }
    return OJ_OK;
}

oj_status oj_chunk_make(void *stream, struct oj_chunk **out, const char **text,
                        struct oj_error *err)
{
    struct oj_chunk_maker *maker = stream;
    oj_status status;
    *out = NULL;
    *text = NULL;
    if (maker->is_left)
        return oj_lane_leave_to_gdal(err);
    OJ_TRY(make_rows(maker, maker->request.batch_rows, &maker->rows, err));
    status = decode_rows_until_full(maker, maker->request.batch_rows, err);
    maker->is_left = status == OJ_ERR_UNSUPPORTED;
    if (status == OJ_ERR_IO)
        *text = maker->broken;
    if (maker->n_rows > 0 && (status == OJ_OK || maker->is_left))
        status = make_chunk_of_rows(maker, out, err);
    if (*out == NULL)
        free_rows(maker->rows);
    return status;
}

oj_status oj_chunk_maker_open(struct oj_chunk_maker *maker,
                              const struct oj_lane_request *request,
                              struct oj_error *err)
{
    maker->request = *request;
    if (request->n_threads < 1)
        maker->request.n_threads = 1;
    OJ_NEW_ZEROED(maker->work, maker->request.n_threads, err);
    return OJ_OK;
}

void oj_chunk_maker_free(struct oj_chunk_maker *maker)
{
    for (int i = 0; maker->work != NULL && i < maker->request.n_threads; i++)
    {
        struct oj_chunk_rows *part = maker->work[i].part;
        for (int c = 0; part != NULL && c < part->n_columns; c++)
            oj_free(part->column[c].bytes);
        oj_free(part);
    }
    oj_free(maker->work);
    oj_free(maker->piece);
}

/* ---- values -------------------------------------------------------------- */

oj_status oj_chunk_reserve(struct oj_chunk_column *column, int64_t n,
                           struct oj_error *err)
{
    /* one byte more than needed, so that `bytes` is not NULL even if all texts
     * are empty */
    int64_t n_needed = column->n_bytes + n + 1;
    if (n_needed <= column->cap_bytes)
        return OJ_OK;
    return oj_reserve(&column->bytes, column->n_bytes, n_needed,
                      &column->cap_bytes, 1, err);
}
