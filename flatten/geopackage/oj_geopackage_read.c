#include "oj_geopackage_read.h"

#include "../arrays/oj_chunk_rows.h"
#include "../arrays/oj_wkb.h"
#include "../base/oj_array.h"
#include "../base/oj_threads.h"
#include "oj_sqlite.h"

#include <cpl_error.h>
#include <limits.h>

/* A function takes at most 127 values. */
#define MOST_COLUMNS 120

/* Of a chunk, in one column: it ends, so that memory stays flat. */
#define MOST_BYTES (16 << 20)

/* One thread makes rows of a fifth of the points that the caller can take. */
#define MOST_SCANS 8

/* Rows of a range, however many threads there are: less is more to hand over
 * than to read. */
#define LEAST_ROWS 32768

/* What a scan is bound as, so that nobody else's SQL is taken for one. */
#define POINTER_TYPE "oj_geopackage_scan"

struct value_column
{
    OGRFieldType type;
    OGRFieldSubType subtype;
    int to; /* of the chunk */
};

enum state
{
    MORE,
    END, /* of the range */
    LEFT /* what GDAL would complain of: a broken geometry, a text that is no
            proper date, a page that cannot be read, rows out of order; this row
            and all later ones are left to it */
};

/* The rows around a range, which prove that two ranges, read apart, have all
 * rows of the two together even where the file is broken. */
struct range_ends
{
    int has_begin, has_beyond;
    int64_t begin;  /* FID of the first row from the range's start on */
    int64_t beyond; /* that of the first row after it; known at its end */
};

/* A connection and what it has read of its range. */
struct scan
{
    const struct oj_geopackage_reader *reader;
    sqlite3 *db;
    sqlite3_stmt *rows;
    uint8_t *wkb; /* of one geometry */
    int64_t cap_wkb;
    int64_t fid, last; /* of the row before, of the range */
    struct range_ends ends;

    struct oj_chunk *chunk; /* owned; for the caller, then the state counts */
    enum state state;
    oj_status status;
    struct oj_error err;

    /* While SQLite is at work. */
    struct oj_chunk_rows *to;
    int64_t n_rows;
    int is_left; /* the row is GDAL's */
};

struct oj_geopackage_reader
{
    /* What is taken of each row. */
    const char *table, *fid; /* the layer's */
    char *sql;               /* of the statement */
    int has_geometry;
    int n_columns;
    struct value_column *column; /* [n_columns] */
    int n_fields;
    char *format;       /* [n_fields] of the chunk; 0: nobody looks at it */
    int64_t batch_rows; /* most rows of a chunk */
    int n_threads;

    int is_started, is_left;
    sqlite3_stmt *anchor; /* stands at a row, so that scan 0 sees one state */
    int n_scans;          /* the first one has GDAL's connection */
    struct scan scan[MOST_SCANS];

    /* Ranges, as many at once as there are scans. */
    int n_ranges, at; /* of these ranges: how many, the caller's */
    int has_more;     /* FIDs that nobody took */
    int64_t first, next_fid, last, width;
    int64_t n_done;         /* ranges that the caller has behind him */
    struct range_ends ends; /* of the last of these */
};

/* ---- values -------------------------------------------------------------- */

/* The number of digits up to the next other character. */
static int number_at(const char *text)
{
    int number = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        number = 10 * number + *text - '0';
    return number;
}

/* The only forms that the format has: YYYY-MM-DD and, for moments,
 * YYYY-MM-DDThh:mm:ss.sssZ. 0 for all others. */
static int parse_moment(const char *text, int n, OGRFieldType type,
                        OGRField *field)
{
    static const char form[] = "0000-00-00T00:00:00.000Z";
    int month, day, hour, minute, second;
    if (n != (type == OFTDate ? 10 : 24))
        return 0;
    for (int i = 0; i < n; i++)
        if (form[i] == '0' ? text[i] < '0' || text[i] > '9'
                           : text[i] != form[i])
            return 0;
    month = number_at(text + 5);
    day = number_at(text + 8);
    memset(field, 0, sizeof *field);
    field->Date.Year = (GInt16)number_at(text);
    field->Date.Month = (GByte)month;
    field->Date.Day = (GByte)day;
    if (month < 1 || month > 12 || day < 1 || day > 31 || type == OFTDate)
        return month >= 1 && month <= 12 && day >= 1 && day <= 31;
    hour = number_at(text + 11);
    minute = number_at(text + 14);
    second = number_at(text + 17);
    field->Date.Hour = (GByte)hour;
    field->Date.Minute = (GByte)minute;
    field->Date.Second =
        (float)((second * 1000 + number_at(text + 20)) / 1000.0);
    field->Date.TZFlag = 100;
    return hour < 24 && minute < 60 && second < 60;
}

/* A binary value of no bytes has no address either. */
static oj_status add_bytes(sqlite3_value *value, OGRFieldType type,
                           struct oj_chunk_column *column, int64_t row,
                           struct oj_error *err)
{
    const char *text;
    if (type == OFTBinary)
    {
        const void *bytes = sqlite3_value_blob(value);
        return oj_chunk_add_bytes(column, row, bytes,
                                  sqlite3_value_bytes(value), err);
    }
    text = (const char *)sqlite3_value_text(value);
    if (text == NULL)
        return oj_fail_nomem(err, sqlite3_value_bytes(value), 1);
    return oj_chunk_add_bytes(column, row, text, (int64_t)strlen(text), err);
}

static int add_moment(sqlite3_value *value, OGRFieldType type,
                      struct oj_chunk_column *column, int64_t row)
{
    OGRField *field = (OGRField *)column->values + row;
    const char *text = NULL;
    if (sqlite3_value_type(value) == SQLITE_TEXT)
        text = (const char *)sqlite3_value_text(value);
    return text != NULL &&
           parse_moment(text, sqlite3_value_bytes(value), type, field);
}

/* Values are asked of SQLite as GDAL asks for them, whatever a row has stored
 * in a column of another type. GDAL's versions differ in what they make of a
 * number that its subtype does not have. *fits is 0 when the row is GDAL's. */
static oj_status add_value(sqlite3_value *value,
                           const struct value_column *from,
                           struct oj_chunk_column *column, int64_t row,
                           int *fits, struct oj_error *err)
{
    int number;
    if (sqlite3_value_type(value) == SQLITE_NULL)
    {
        oj_chunk_add_null(column, row);
        return OJ_OK;
    }
    switch (from->type)
    {
        case OFTInteger64:
            ((int64_t *)column->values)[row] = sqlite3_value_int64(value);
            break;
        case OFTReal:
            ((double *)column->values)[row] = sqlite3_value_double(value);
            break;
        case OFTString:
        case OFTBinary:
            return add_bytes(value, from->type, column, row, err);
        case OFTDate:
        case OFTDateTime:
            *fits = add_moment(value, from->type, column, row);
            break;
        default:
            number = sqlite3_value_int(value);
            ((int32_t *)column->values)[row] = number;
            *fits = from->subtype == OFSTBoolean ? number == 0 || number == 1
                    : from->subtype == OFSTInt16
                        ? number >= INT16_MIN && number <= INT16_MAX
                        : 1;
            break;
    }
    oj_chunk_mark(column, row);
    return OJ_OK;
}

/* ---- geometries ---------------------------------------------------------- */

/* Where the WKB of a blob starts; 0: this is none that is known. */
static int64_t header_bytes(const uint8_t *blob, int64_t n)
{
    static const uint8_t envelope[8] = {0, 32, 48, 48, 64};
    int64_t size;
    if (n < 8 || blob[0] != 'G' || blob[1] != 'P' || blob[2] != 0 ||
        (blob[3] & 0xe0) != 0 || (blob[3] >> 1 & 7) > 4)
        return 0;
    size = 8 + envelope[blob[3] >> 1 & 7];
    return size < n ? size : 0;
}

/* 1 when the bytes can stay as they are. */
static int is_plain(const uint8_t *wkb, int64_t n)
{
    const uint8_t *point = oj_wkb_plain_point(wkb, (size_t)n);
    double x, y;
    if (point == NULL)
        return oj_wkb_is_iso(wkb, (size_t)n);
    x = oj_wkb_double(point);
    y = oj_wkb_double(point + 8);
    return x == x && y == y;
}

/* As OGR would write it: curves, empty ones, other byte orders and types. NULL:
 * it cannot. */
static OGRGeometryH read_geometry(const uint8_t *wkb, int64_t n)
{
    OGRGeometryH geometry = NULL;
    CPLPushErrorHandler(CPLQuietErrorHandler); /* GDAL will say it again */
    if (n > INT_MAX ||
        OGR_G_CreateFromWkb(wkb, NULL, &geometry, (int)n) != OGRERR_NONE)
        geometry = NULL;
    CPLPopErrorHandler();
    return geometry;
}

static oj_status add_odd_geometry(struct scan *s,
                                  struct oj_chunk_column *column, int64_t row,
                                  const uint8_t *wkb, int64_t n, int *fits,
                                  struct oj_error *err)
{
    OGRGeometryH geometry = read_geometry(wkb, n);
    int n_out = geometry != NULL ? OGR_G_WkbSize(geometry) : 0;
    oj_status status = OJ_OK;
    *fits = n_out > 0;
    if (*fits)
        status = oj_reserve(&s->wkb, 0, n_out, &s->cap_wkb, 1, err);
    if (*fits && status == OJ_OK)
        *fits = OGR_G_ExportToIsoWkb(geometry, wkbNDR, s->wkb) == OGRERR_NONE;
    OGR_G_DestroyGeometry(geometry);
    if (!*fits || status != OJ_OK)
        return status;
    return oj_chunk_add_bytes(column, row, s->wkb, n_out, err);
}

static oj_status add_geometry(struct scan *s, sqlite3_value *value,
                              struct oj_chunk_column *column, int64_t row,
                              int *fits, struct oj_error *err)
{
    const uint8_t *blob;
    int64_t n, start;
    if (sqlite3_value_type(value) == SQLITE_NULL)
    {
        oj_chunk_add_null(column, row);
        return OJ_OK;
    }
    blob = sqlite3_value_blob(value);
    n = sqlite3_value_bytes(value);
    start = blob != NULL ? header_bytes(blob, n) : 0;
    *fits = start > 0;
    if (!*fits)
        return OJ_OK;
    if (!is_plain(blob + start, n - start))
        return add_odd_geometry(s, column, row, blob + start, n - start, fits,
                                err);
    return oj_chunk_add_bytes(column, row, blob + start, n - start, err);
}

/* ---- rows ---------------------------------------------------------------- */

/* value: geometry if there is one, columns. */
static oj_status add_row(struct scan *s, sqlite3_value **value, int *fits,
                         struct oj_error *err)
{
    const struct oj_geopackage_reader *r = s->reader;
    struct oj_chunk_column *column = s->to->column;
    int64_t row = s->n_rows;
    ((int64_t *)column[OJ_CHUNK_FID].values)[row] = s->fid;
    if (r->has_geometry)
        OJ_TRY(add_geometry(s, *value++, &column[OJ_CHUNK_GEOMETRY], row, fits,
                            err));
    else
        oj_chunk_add_null(&column[OJ_CHUNK_GEOMETRY], row);
    for (int c = 0; *fits && c < r->n_columns; c++)
        OJ_TRY(add_value(value[c], &r->column[c], &column[r->column[c].to], row,
                         fits, err));
    return OJ_OK;
}

static int is_full(const struct scan *s)
{
    const struct oj_chunk_rows *to = s->to;
    int full = s->n_rows == to->max_rows ||
               to->column[OJ_CHUNK_GEOMETRY].n_bytes > MOST_BYTES;
    if (s->n_rows % 32 == 0) /* texts are smaller than geometries */
        for (int c = OJ_CHUNK_FIELDS; c < to->n_columns; c++)
            full |= to->column[c].n_bytes > MOST_BYTES;
    return full;
}

/* Notes where the row lies. 0: out of order, which is a broken file's. */
static int note_fid(struct scan *s, int64_t fid)
{
    int is_after = !s->ends.has_begin || fid > s->fid;
    if (!s->ends.has_begin)
        s->ends.begin = fid;
    s->ends.has_begin = 1;
    s->ends.has_beyond = fid > s->last;
    s->ends.beyond = fid;
    s->fid = fid;
    return is_after;
}

/* ogrjoin_take(scan, FID, ...): 1 when SQLite shall come back. */
static void take(sqlite3_context *context, int n, sqlite3_value **value)
{
    struct scan *s =
        n > 1 ? sqlite3_value_pointer(value[0], POINTER_TYPE) : NULL;
    int fits;
    if (s == NULL)
        return;
    fits = note_fid(s, sqlite3_value_int64(value[1]));
    if (fits && !s->ends.has_beyond)
        s->status = add_row(s, value + 2, &fits, &s->err);
    s->is_left = !fits;
    s->n_rows += s->status == OJ_OK && fits && !s->ends.has_beyond;
    sqlite3_result_int(context, s->status != OJ_OK || !fits ||
                                    s->ends.has_beyond || is_full(s));
}

/* Reads up to batch_rows rows; the chunk is NULL when there are none before
 * the state. */
static void read_chunk(int64_t task, int thread, void *scans)
{
    struct scan *s = (struct scan *)scans + task;
    const struct oj_geopackage_reader *r = s->reader;
    int code;
    (void)thread;
    s->n_rows = 0;
    s->is_left = 0;
    s->status = oj_chunk_rows_new(r->format, r->n_fields, r->batch_rows,
                                  sizeof(OGRField), &s->to, &s->err);
    if (s->status != OJ_OK)
        return;
    code = sqlite3_step(s->rows);
    if (s->status == OJ_OK && code == SQLITE_NOMEM)
        s->status = oj_fail_nomem(&s->err, 1, 1024);
    s->state = s->is_left || (code != SQLITE_DONE && code != SQLITE_ROW) ? LEFT
               : code == SQLITE_DONE || s->ends.has_beyond               ? END
                                                                         : MORE;
    if (s->status == OJ_OK && s->n_rows > 0)
        s->status = oj_chunk_rows_finish(s->to, s->n_rows, &s->chunk, &s->err);
    if (s->chunk == NULL)
        oj_chunk_rows_free(s->to);
}

/* ---- connections --------------------------------------------------------- */

/* The two numbers of the statement's only row; 0: there are none. */
static int read_numbers(sqlite3 *db, char *sql, int64_t *a, int64_t *b)
{
    sqlite3_stmt *row = NULL;
    int has = sql != NULL &&
              sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK &&
              sqlite3_step(row) == SQLITE_ROW &&
              sqlite3_column_type(row, 0) == SQLITE_INTEGER;
    if (has)
    {
        *a = sqlite3_column_int64(row, 0);
        *b = sqlite3_column_int64(row, 1);
    }
    sqlite3_finalize(row);
    sqlite3_free(sql);
    return has;
}

/* The version of the state that db sees; -1: none. */
static int64_t version(sqlite3 *db)
{
    int64_t number, unused;
    char *sql = sqlite3_mprintf("PRAGMA data_version");
    return read_numbers(db, sql, &number, &unused) ? number : -1;
}

/* The statement of a scan on its connection. *is_open is 0 where SQLite
 * refuses it. Whoever made the function before on this connection: it is
 * ours. */
static oj_status open_statement(struct scan *s, int *is_open,
                                struct oj_error *err)
{
    int code = sqlite3_create_function_v2(s->db, "ogrjoin_take", -1,
                                          SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL,
                                          take, NULL, NULL, NULL);
    if (code == SQLITE_OK || code == SQLITE_BUSY)
        code = sqlite3_prepare_v2(s->db, s->reader->sql, -1, &s->rows, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_bind_pointer(s->rows, 1, s, POINTER_TYPE, NULL);
    *is_open = code == SQLITE_OK;
    return code == SQLITE_NOMEM ? oj_fail_nomem(err, 1, 1024) : OJ_OK;
}

/* GDAL's connection stays open. */
static void close_scan(struct scan *s)
{
    struct oj_slice rest = {.chunk = s->chunk};
    oj_slice_free(&rest);
    sqlite3_finalize(s->rows);
    if (s != s->reader->scan)
        sqlite3_close(s->db);
    oj_free(s->wkb);
    memset(s, 0, sizeof *s);
}

static void close_scans(struct oj_geopackage_reader *r, int from)
{
    for (; r->n_scans > from; r->n_scans--)
        close_scan(&r->scan[r->n_scans - 1]);
}

/* Connections of our own, each within a transaction, up to n scans: fewer where
 * there are none to be had: another process is about to write, say. */
static oj_status open_connections(struct oj_geopackage_reader *r, int n,
                                  struct oj_error *err)
{
    const char *file = sqlite3_db_filename(r->scan->db, "main");
    int is_open = 1;
    while (is_open && r->n_scans < n)
    {
        struct scan *s = &r->scan[r->n_scans++];
        s->reader = r;
        is_open =
            sqlite3_open_v2(file, &s->db,
                            SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX,
                            NULL) == SQLITE_OK &&
            sqlite3_exec(s->db, "BEGIN; SELECT 1 FROM sqlite_master LIMIT 1",
                         NULL, NULL, NULL) == SQLITE_OK;
        if (is_open)
            OJ_TRY(open_statement(s, &is_open, err));
    }
    if (!is_open)
        close_scans(r, r->n_scans - 1);
    return OJ_OK;
}

/* A file of the system's own, which others can be asked to open, too. */
static int is_plain_file(sqlite3 *db)
{
    const char *file = sqlite3_db_filename(db, "main");
    sqlite3_vfs *vfs = NULL;
    return file != NULL && file[0] == '/' && sqlite3_threadsafe() &&
           sqlite3_file_control(db, "main", SQLITE_FCNTL_VFS_POINTER, &vfs) ==
               SQLITE_OK &&
           vfs == sqlite3_vfs_find(NULL);
}

/* 1 when db has the file that is found under its name now. */
static int is_in_place(sqlite3 *db)
{
    int has_moved = 1;
    return sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED,
                                &has_moved) == SQLITE_OK &&
           !has_moved;
}

/* As many as the rows are worth. */
static int choose_scans(struct oj_geopackage_reader *r)
{
    int n = r->n_threads < MOST_SCANS ? r->n_threads : MOST_SCANS;
    uint64_t span = (uint64_t)r->last - (uint64_t)r->first;
    if (n < 2 || span < 2 * LEAST_ROWS || !is_plain_file(r->scan->db))
        return 1;
    span /= 2 * (uint64_t)n;
    if (span < (uint64_t)r->batch_rows)
        r->batch_rows = span > LEAST_ROWS ? (int64_t)span : LEAST_ROWS;
    return n;
}

/* Has scan 0 see what it sees now until the anchor is closed. */
static oj_status start(struct oj_geopackage_reader *r, struct oj_error *err)
{
    sqlite3 *db = r->scan->db;
    int64_t before = version(db);
    char *bounds = sqlite3_mprintf("SELECT (SELECT min(\"%w\") FROM \"%w\"), "
                                   "(SELECT max(\"%w\") FROM \"%w\")",
                                   r->fid, r->table, r->fid, r->table);
    r->is_started = 1;
    r->has_more = 1;
    if (read_numbers(db, bounds, &r->first, &r->last))
        OJ_TRY(open_connections(r, choose_scans(r), err));
    r->is_left = sqlite3_prepare_v2(db, "SELECT 1 FROM sqlite_master", -1,
                                    &r->anchor, NULL) != SQLITE_OK ||
                 sqlite3_step(r->anchor) != SQLITE_ROW;
    if (version(db) != before || !is_in_place(db))
        close_scans(r, 1);
    r->next_fid = r->first;
    r->width = r->batch_rows;
    return OJ_OK;
}

/* ---- ranges -------------------------------------------------------------- */

/* The scan's next range; 0: there is none. The first and the last one have no
 * bounds, and a scan alone has one range. */
static int take_range(struct oj_geopackage_reader *r, struct scan *s)
{
    int64_t first = r->n_done + r->n_ranges > 0 ? r->next_fid : INT64_MIN;
    if (!r->has_more)
        return 0;
    r->has_more = r->n_scans > 1 && (uint64_t)r->last - (uint64_t)r->next_fid >=
                                        (uint64_t)r->width;
    s->last = r->has_more ? r->next_fid + (r->width - 1) : INT64_MAX;
    if (r->has_more)
        r->next_fid = s->last + 1;
    sqlite3_reset(s->rows);
    sqlite3_bind_int64(s->rows, 2, first);
    memset(&s->ends, 0, sizeof s->ends);
    return 1;
}

/* Holes in the FIDs make ranges wider, and are passed over where they were
 * seen. */
static void learn(struct oj_geopackage_reader *r)
{
    const struct range_ends *ends = &r->scan[r->n_ranges - 1].ends;
    int64_t n_rows = 0;
    int has_more = 0;
    for (int i = 0; i < r->n_ranges; i++)
    {
        n_rows += r->scan[i].n_rows;
        has_more |= r->scan[i].state == MORE;
    }
    if (ends->has_beyond && ends->beyond > r->next_fid &&
        ends->beyond <= r->last)
        r->next_fid = ends->beyond;
    if (has_more && r->width > r->batch_rows)
        r->width /= 2;
    else if (n_rows <= r->n_ranges * (r->batch_rows / 2) &&
             r->width < INT64_MAX / 4)
        r->width *= 2;
}

/* The first chunks of the next ranges, on as many threads. */
static void read_ranges(struct oj_geopackage_reader *r)
{
    r->at = r->n_ranges = 0;
    while (r->n_ranges < r->n_scans && take_range(r, &r->scan[r->n_ranges]))
        r->n_ranges++;
    oj_parallel_for(r->n_ranges, r->n_ranges, read_chunk, r->scan);
    if (r->n_ranges > 0)
        learn(r);
}

/* A range starts with the row that was seen after the one before. */
static int follows(const struct oj_geopackage_reader *r, const struct scan *s)
{
    return r->n_done == 0 ||
           (r->ends.has_beyond == s->ends.has_begin &&
            (!r->ends.has_beyond || r->ends.beyond == s->ends.begin));
}

/* The next chunk; *out is NULL at the end, and where GDAL has to go on. */
static oj_status take_chunk(struct oj_geopackage_reader *r,
                            struct oj_chunk **out, struct oj_error *err)
{
    struct scan *s = &r->scan[r->at];
    if (s->status == OJ_OK && s->chunk == NULL && s->state == MORE)
        read_chunk(0, 0, s);
    if (s->status != OJ_OK)
    {
        *err = s->err;
        return s->status;
    }
    r->is_left = !follows(r, s);
    if (r->is_left)
        return OJ_OK;
    *out = s->chunk;
    s->chunk = NULL;
    if (s->state == END)
    {
        r->ends = s->ends;
        r->n_done++;
        r->at++;
    }
    else if (*out == NULL)
        r->is_left = 1;
    return OJ_OK;
}

static oj_status next(void *stream, struct oj_chunk **out, const char **text,
                      struct oj_error *err)
{
    struct oj_geopackage_reader *r = stream;
    *text = NULL;
    *out = NULL;
    if (!r->is_started)
        OJ_TRY(start(r, err));
    while (*out == NULL && !r->is_left)
    {
        if (r->at == r->n_ranges)
            read_ranges(r);
        if (r->n_ranges == 0)
            return OJ_OK;
        OJ_TRY(take_chunk(r, out, err));
    }
    if (!r->is_left)
        return OJ_OK;
    close_scans(r, 1);
    return oj_fail(err, OJ_ERR_UNSUPPORTED, "left to GDAL");
}

/* ---- open and close ------------------------------------------------------ */

/* Of the chunk; 0: a type that is not known. */
static char format_of(OGRFieldType type)
{
    return type == OFTInteger                       ? 'i'
           : type == OFTInteger64                   ? 'l'
           : type == OFTReal                        ? 'g'
           : type == OFTString                      ? 'U'
           : type == OFTBinary                      ? 'Z'
           : type == OFTDate || type == OFTDateTime ? 'F'
                                                    : 0;
}

/* What is read of the layer, and the statement:
 *    SELECT 1 FROM "t" m WHERE m."fid" >= ?2
 *                          AND ogrjoin_take(?1, m."fid", m."geom", m."a", ...)
 * *fits is 0 when a field has a type that is not known, or there are more of
 * them than a function takes. */
static oj_status plan(struct oj_geopackage_reader *r, OGRLayerH layer,
                      const int *fields, const unsigned char *skipped,
                      int *fits, struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    sqlite3_str *sql;
    r->table = OGR_L_GetName(layer);
    r->fid = OGR_L_GetFIDColumn(layer);
    r->has_geometry = OGR_FD_GetGeomFieldCount(defn) > 0;
    *fits = OGR_FD_GetGeomFieldCount(defn) <= 1 && r->fid[0] != '\0';
    OJ_NEW_ZEROED(r->format, r->n_fields, err);
    OJ_NEW(r->column, r->n_fields, err);
    sql = sqlite3_str_new(NULL);
    sqlite3_str_appendf(sql,
                        "SELECT 1 FROM \"%w\" m NOT INDEXED WHERE m.\"%w\" "
                        ">= ?2 AND ogrjoin_take(?1, m.\"%w\"",
                        r->table, r->fid, r->fid);
    if (r->has_geometry)
        sqlite3_str_appendf(sql, ", m.\"%w\"", OGR_L_GetGeometryColumn(layer));
    for (int i = 0; *fits && i < r->n_fields; i++)
    {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(defn, fields[i]);
        struct value_column *column = &r->column[r->n_columns];
        if (skipped != NULL && skipped[i])
            continue;
        column->type = OGR_Fld_GetType(field);
        column->subtype = OGR_Fld_GetSubType(field);
        column->to = OJ_CHUNK_FIELDS + i;
        r->format[i] = format_of(column->type);
        *fits = r->format[i] != 0 && ++r->n_columns <= MOST_COLUMNS;
        sqlite3_str_appendf(sql, ", m.\"%w\"", OGR_Fld_GetNameRef(field));
    }
    sqlite3_str_appendall(sql, ")");
    r->sql = sqlite3_str_finish(sql);
    return r->sql != NULL ? OJ_OK : oj_fail_nomem(err, 1, 1024);
}

/* Not a view, whose own condition might be looked at after ours; rows are found
 * by their numbers, so that they come in that order. */
static int is_plain_table(const struct oj_geopackage_reader *r, sqlite3 *db)
{
    sqlite3_stmt *plan = NULL;
    char *text = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", r->sql);
    int has = 0;
    if (text != NULL &&
        sqlite3_table_column_metadata(db, "main", r->table, NULL, NULL, NULL,
                                      NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, text, -1, &plan, NULL) == SQLITE_OK &&
        sqlite3_step(plan) == SQLITE_ROW)
    {
        const char *detail = (const char *)sqlite3_column_text(plan, 3);
        has = detail != NULL &&
              strstr(detail, "USING INTEGER PRIMARY KEY (rowid>") != NULL;
        has = has && sqlite3_step(plan) == SQLITE_DONE;
    }
    sqlite3_finalize(plan);
    sqlite3_free(text);
    return has;
}

static void close_reader(void *reader)
{
    struct oj_geopackage_reader *r = reader;
    if (r == NULL)
        return;
    close_scans(r, 0);
    sqlite3_finalize(r->anchor);
    sqlite3_free(r->sql);
    oj_free(r->column);
    oj_free(r->format);
    oj_free(r);
}

oj_status oj_geopackage_read_open(GDALDatasetH dataset, OGRLayerH layer,
                                  const int *fields,
                                  const unsigned char *skipped, int n_fields,
                                  int64_t batch_rows, int n_threads,
                                  struct oj_geopackage_reader **out,
                                  struct oj_error *err)
{
    struct oj_geopackage_reader *r;
    sqlite3 *db = oj_sqlite_of(dataset);
    oj_status status;
    int fits;
    *out = NULL;
    /* A connection that writes has changes of its own. */
    if (db == NULL || sqlite3_db_readonly(db, "main") != 1 ||
        !sqlite3_get_autocommit(db))
        return OJ_OK;
    OJ_NEW_ZEROED(r, 1, err);
    r->n_threads = n_threads;
    r->n_fields = n_fields;
    r->batch_rows = batch_rows;
    r->n_scans = 1;
    r->scan->reader = r;
    r->scan->db = db;
    status = plan(r, layer, fields, skipped, &fits, err);
    if (status == OJ_OK && fits)
        status = open_statement(r->scan, &fits, err);
    if (status == OJ_OK && fits && is_plain_table(r, db))
        *out = r;
    else
        close_reader(r);
    return status;
}

const struct oj_lane oj_geopackage_lane = {"GeoPackage", 1, next, close_reader,
                                           1};
