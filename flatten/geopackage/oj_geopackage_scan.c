#include "oj_geopackage_scan.h"

#include "../arrays/oj_chunk_rows.h"
#include "../arrays/oj_wkb.h"
#include "../base/oj_array.h"

#include <cpl_error.h>
#include <sqlite3.h>

#include <limits.h>

/* A function takes at most 127 values. */
#define MOST_COLUMNS 120

/* Of a chunk, in one column: it ends, so that memory stays flat. */
#define MOST_BYTES (16 << 20)

/* What a scan is bound as, so that nobody else's SQL is taken for one. */
#define POINTER_TYPE "oj_geopackage_scan"

/* What a value becomes. */
enum kind
{
    KIND_INTEGER,
    KIND_BOOLEAN,
    KIND_INTEGER16,
    KIND_INTEGER64,
    KIND_REAL,
    KIND_TEXT,
    KIND_BINARY,
    KIND_DATE,
    KIND_TIME, /* with its date */
    N_KINDS
};

static const char formats[N_KINDS] = {'i', 'i', 'i', 'l', 'g',
                                      'U', 'Z', 'F', 'F'};

struct oj_geopackage_column
{
    enum kind kind;
    int to; /* of the chunk */
};

struct oj_geopackage_scan
{
    const struct oj_geopackage_plan *plan;
    sqlite3_stmt *rows;
    uint8_t *wkb; /* of one geometry */
    int64_t cap_wkb;

    int64_t fid, last; /* of the row before, of the range */
    struct oj_geopackage_ends ends;

    /* While SQLite is at work. */
    struct oj_chunk_rows *to;
    int64_t n_rows;
    const int *stop;
    int is_left; /* the row is GDAL's */
    oj_status status;
    struct oj_error *err;
};

/* ---- plan ---------------------------------------------------------------- */

static enum kind kind_of(OGRFieldDefnH field)
{
    OGRFieldSubType subtype = OGR_Fld_GetSubType(field);
    switch (OGR_Fld_GetType(field))
    {
        case OFTInteger:
            return subtype == OFSTBoolean ? KIND_BOOLEAN
                   : subtype == OFSTInt16 ? KIND_INTEGER16
                                          : KIND_INTEGER;
        case OFTInteger64:
            return KIND_INTEGER64;
        case OFTReal:
            return KIND_REAL;
        case OFTString:
            return KIND_TEXT;
        case OFTBinary:
            return KIND_BINARY;
        case OFTDate:
            return KIND_DATE;
        case OFTDateTime:
            return KIND_TIME;
        default:
            return N_KINDS;
    }
}

static oj_status take_fields(struct oj_geopackage_plan *plan,
                             OGRFeatureDefnH defn, const int *fields,
                             const unsigned char *skipped, int n_fields,
                             int *fits, struct oj_error *err)
{
    plan->n_fields = n_fields;
    OJ_NEW_ZEROED(plan->format, n_fields, err);
    OJ_NEW(plan->column, n_fields, err);
    for (int i = 0; *fits && i < n_fields; i++)
    {
        enum kind kind = kind_of(OGR_FD_GetFieldDefn(defn, fields[i]));
        if (skipped != NULL && skipped[i])
            continue;
        *fits = kind != N_KINDS && plan->n_columns < MOST_COLUMNS;
        if (!*fits)
            break;
        plan->format[i] = formats[kind];
        plan->column[plan->n_columns].kind = kind;
        plan->column[plan->n_columns++].to = OJ_CHUNK_FIELDS + i;
    }
    return OJ_OK;
}

static oj_status write_sql(struct oj_geopackage_plan *plan, OGRLayerH layer,
                           const int *fields, struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    const char *fid = OGR_L_GetFIDColumn(layer);
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendf(sql,
                        "SELECT 1 FROM \"%w\" m NOT INDEXED WHERE m.\"%w\" "
                        ">= ?2 AND ogrjoin_take(?1, m.\"%w\"",
                        OGR_L_GetName(layer), fid, fid);
    if (plan->has_geometry)
        sqlite3_str_appendf(sql, ", m.\"%w\"", OGR_L_GetGeometryColumn(layer));
    for (int c = 0; c < plan->n_columns; c++)
    {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(
            defn, fields[plan->column[c].to - OJ_CHUNK_FIELDS]);
        sqlite3_str_appendf(sql, ", m.\"%w\"", OGR_Fld_GetNameRef(field));
    }
    sqlite3_str_appendall(sql, ")");
    plan->sql = sqlite3_str_finish(sql);
    return plan->sql != NULL ? OJ_OK : oj_fail_nomem(err, 1, 1024);
}

oj_status oj_geopackage_plan_init(struct oj_geopackage_plan *plan,
                                  OGRLayerH layer, const int *fields,
                                  const unsigned char *skipped, int n_fields,
                                  int64_t batch_rows, int *fits,
                                  struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    plan->has_geometry = OGR_FD_GetGeomFieldCount(defn) > 0;
    plan->batch_rows = batch_rows;
    *fits = OGR_FD_GetGeomFieldCount(defn) <= 1 &&
            OGR_L_GetFIDColumn(layer)[0] != '\0';
    if (*fits)
        OJ_TRY(take_fields(plan, defn, fields, skipped, n_fields, fits, err));
    if (*fits)
        OJ_TRY(write_sql(plan, layer, fields, err));
    return OJ_OK;
}

void oj_geopackage_plan_free(struct oj_geopackage_plan *plan)
{
    sqlite3_free(plan->sql);
    oj_free(plan->column);
    oj_free(plan->format);
    memset(plan, 0, sizeof *plan);
}

/* ---- values -------------------------------------------------------------- */

/* The number of n digits; -1: they are not all digits. */
static int digits(const char *text, int n)
{
    int number = 0;
    for (int i = 0; i < n; i++)
    {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        number = 10 * number + text[i] - '0';
    }
    return number;
}

static int parse_date(const char *text, OGRField *field)
{
    int year = digits(text, 4), month = digits(text + 5, 2),
        day = digits(text + 8, 2);
    memset(field, 0, sizeof *field);
    field->Date.Year = (GInt16)year;
    field->Date.Month = (GByte)month;
    field->Date.Day = (GByte)day;
    return year >= 0 && text[4] == '-' && month >= 1 && month <= 12 &&
           text[7] == '-' && day >= 1 && day <= 31;
}

/* The only forms that the format has: YYYY-MM-DD and, for moments,
 * YYYY-MM-DDThh:mm:ss.sssZ. 0 for all others. */
static int parse_moment(const char *text, int64_t n, enum kind kind,
                        OGRField *field)
{
    int hour, minute, second, part;
    if (n != (kind == KIND_DATE ? 10 : 24) || !parse_date(text, field))
        return 0;
    if (kind == KIND_DATE)
        return 1;
    hour = digits(text + 11, 2);
    minute = digits(text + 14, 2);
    second = digits(text + 17, 2);
    part = digits(text + 20, 3);
    field->Date.Hour = (GByte)hour;
    field->Date.Minute = (GByte)minute;
    field->Date.Second = (float)((second * 1000 + part) / 1000.0);
    field->Date.TZFlag = 100;
    return text[10] == 'T' && hour >= 0 && hour < 24 && text[13] == ':' &&
           minute >= 0 && minute < 60 && text[16] == ':' && second >= 0 &&
           second < 60 && text[19] == '.' && part >= 0 && text[23] == 'Z';
}

static oj_status add_text(sqlite3_value *value, struct oj_chunk_column *column,
                          int64_t row, struct oj_error *err)
{
    const char *text = (const char *)sqlite3_value_text(value);
    if (text == NULL)
        return oj_fail_nomem(err, sqlite3_value_bytes(value), 1);
    return oj_chunk_add_bytes(column, row, text, (int64_t)strlen(text), err);
}

/* A value of no bytes has no address either. */
static oj_status add_binary(sqlite3_value *value,
                            struct oj_chunk_column *column, int64_t row,
                            struct oj_error *err)
{
    const void *bytes = sqlite3_value_blob(value);
    return oj_chunk_add_bytes(column, row, bytes, sqlite3_value_bytes(value),
                              err);
}

static int add_moment(sqlite3_value *value, enum kind kind,
                      struct oj_chunk_column *column, int64_t row)
{
    OGRField *field = (OGRField *)column->values + row;
    const char *text = NULL;
    if (sqlite3_value_type(value) == SQLITE_TEXT)
        text = (const char *)sqlite3_value_text(value);
    if (text == NULL ||
        !parse_moment(text, sqlite3_value_bytes(value), kind, field))
        return 0;
    oj_chunk_mark(column, row);
    return 1;
}

/* GDAL's versions differ in what they make of a number that its subtype does
 * not have. */
static int add_integer(sqlite3_value *value, enum kind kind,
                       struct oj_chunk_column *column, int64_t row)
{
    int number = sqlite3_value_int(value);
    ((int32_t *)column->values)[row] = number;
    oj_chunk_mark(column, row);
    return kind == KIND_INTEGER ||
           (kind == KIND_BOOLEAN ? number == 0 || number == 1
                                 : number >= INT16_MIN && number <= INT16_MAX);
}

/* *fits is 0 when the row is GDAL's. */
static oj_status add_value(sqlite3_value *value, enum kind kind,
                           struct oj_chunk_column *column, int64_t row,
                           int *fits, struct oj_error *err)
{
    if (sqlite3_value_type(value) == SQLITE_NULL)
    {
        oj_chunk_add_null(column, row);
        return OJ_OK;
    }
    switch (kind)
    {
        case KIND_INTEGER64:
            ((int64_t *)column->values)[row] = sqlite3_value_int64(value);
            oj_chunk_mark(column, row);
            return OJ_OK;
        case KIND_REAL:
            ((double *)column->values)[row] = sqlite3_value_double(value);
            oj_chunk_mark(column, row);
            return OJ_OK;
        case KIND_TEXT:
            return add_text(value, column, row, err);
        case KIND_BINARY:
            return add_binary(value, column, row, err);
        case KIND_DATE:
        case KIND_TIME:
            *fits = add_moment(value, kind, column, row);
            return OJ_OK;
        default:
            *fits = add_integer(value, kind, column, row);
            return OJ_OK;
    }
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

static oj_status add_odd_geometry(struct oj_geopackage_scan *s,
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

static oj_status add_geometry(struct oj_geopackage_scan *s,
                              sqlite3_value *value,
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
static oj_status add_row(struct oj_geopackage_scan *s, sqlite3_value **value,
                         int *fits, struct oj_error *err)
{
    const struct oj_geopackage_plan *plan = s->plan;
    struct oj_chunk_column *column = s->to->column;
    int64_t row = s->n_rows;
    ((int64_t *)column[OJ_CHUNK_FID].values)[row] = s->fid;
    if (plan->has_geometry)
        OJ_TRY(add_geometry(s, *value++, &column[OJ_CHUNK_GEOMETRY], row, fits,
                            err));
    else
        oj_chunk_add_null(&column[OJ_CHUNK_GEOMETRY], row);
    for (int c = 0; *fits && c < plan->n_columns; c++)
        OJ_TRY(add_value(value[c], plan->column[c].kind,
                         &column[plan->column[c].to], row, fits, err));
    return OJ_OK;
}

static int is_full(const struct oj_geopackage_scan *s)
{
    const struct oj_chunk_rows *to = s->to;
    int full = s->n_rows == to->max_rows ||
               to->column[OJ_CHUNK_GEOMETRY].n_bytes > MOST_BYTES;
    if (full || s->n_rows % 32 != 0) /* texts are smaller than geometries */
        return full;
    for (int c = OJ_CHUNK_FIELDS; c < to->n_columns; c++)
        full = full || to->column[c].n_bytes > MOST_BYTES;
    return full || __atomic_load_n(s->stop, __ATOMIC_RELAXED) != 0;
}

/* Notes where the row lies. 0: out of order, which is a broken file's. */
static int note_fid(struct oj_geopackage_scan *s, int64_t fid)
{
    int is_first = !s->ends.has_begin, is_after = is_first || fid > s->fid;
    if (is_first)
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
    struct oj_geopackage_scan *s =
        n > 1 ? sqlite3_value_pointer(value[0], POINTER_TYPE) : NULL;
    int fits;
    if (s == NULL)
        return;
    fits = note_fid(s, sqlite3_value_int64(value[1]));
    if (fits && !s->ends.has_beyond)
        s->status = add_row(s, value + 2, &fits, s->err);
    s->is_left = !fits;
    s->n_rows += s->status == OJ_OK && fits && !s->ends.has_beyond;
    sqlite3_result_int(context, s->status != OJ_OK || !fits ||
                                    s->ends.has_beyond || is_full(s));
}

/* The rows are found by their numbers, so that they come in that order. */
static int has_plan(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *plan = NULL;
    char *text = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql);
    int has = 0;
    if (text != NULL &&
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

/* Not a view, whose own condition might be looked at after ours. */
static int is_table(sqlite3 *db, const char *name)
{
    sqlite3_stmt *found = NULL;
    int is =
        sqlite3_prepare_v2(db,
                           "SELECT 1 FROM sqlite_master WHERE name = ?1 "
                           "AND type = 'table' AND rootpage > 0",
                           -1, &found, NULL) == SQLITE_OK &&
        sqlite3_bind_text(found, 1, name, -1, SQLITE_TRANSIENT) == SQLITE_OK &&
        sqlite3_step(found) == SQLITE_ROW;
    sqlite3_finalize(found);
    return is;
}

/* Whoever made the function before on this connection: it is ours. */
static int can_take(sqlite3 *db)
{
    int rc = sqlite3_create_function_v2(db, "ogrjoin_take", -1,
                                        SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL,
                                        take, NULL, NULL, NULL);
    return rc == SQLITE_OK || rc == SQLITE_BUSY;
}

oj_status oj_geopackage_scan_open(const struct oj_geopackage_plan *plan,
                                  struct sqlite3 *db, const char *table,
                                  struct oj_geopackage_scan **out,
                                  struct oj_error *err)
{
    struct oj_geopackage_scan *s;
    int rc = SQLITE_ERROR;
    *out = NULL;
    OJ_NEW_ZEROED(s, 1, err);
    s->plan = plan;
    if (can_take(db) && is_table(db, table) && has_plan(db, plan->sql))
        rc = sqlite3_prepare_v2(db, plan->sql, -1, &s->rows, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_pointer(s->rows, 1, s, POINTER_TYPE, NULL);
    if (rc == SQLITE_OK)
        *out = s;
    else
        oj_geopackage_scan_close(s);
    return rc == SQLITE_NOMEM ? oj_fail_nomem(err, 1, 1024) : OJ_OK;
}

void oj_geopackage_scan_close(struct oj_geopackage_scan *scan)
{
    if (scan == NULL)
        return;
    sqlite3_finalize(scan->rows);
    oj_free(scan->wkb);
    oj_free(scan);
}

void oj_geopackage_scan_range(struct oj_geopackage_scan *s, int64_t first,
                              int64_t last)
{
    sqlite3_reset(s->rows);
    sqlite3_bind_int64(s->rows, 2, first);
    s->last = last;
    memset(&s->ends, 0, sizeof s->ends);
}

oj_status oj_geopackage_scan_next(struct oj_geopackage_scan *s, const int *stop,
                                  struct oj_chunk **chunk,
                                  enum oj_geopackage_state *state,
                                  struct oj_geopackage_ends *ends,
                                  struct oj_error *err)
{
    int rc;
    oj_status status;
    *chunk = NULL;
    OJ_TRY(oj_chunk_rows_new(s->plan->format, s->plan->n_fields,
                             s->plan->batch_rows, sizeof(OGRField), &s->to,
                             err));
    s->n_rows = 0;
    s->is_left = 0;
    s->status = OJ_OK;
    s->err = err;
    s->stop = stop;
    rc = sqlite3_step(s->rows);
    status = s->status;
    if (status == OJ_OK && rc == SQLITE_NOMEM)
        status = oj_fail_nomem(err, 1, 1024);
    *state = s->is_left || (rc != SQLITE_DONE && rc != SQLITE_ROW)
                 ? OJ_GEOPACKAGE_LEFT
             : rc == SQLITE_DONE || s->ends.has_beyond ? OJ_GEOPACKAGE_END
                                                       : OJ_GEOPACKAGE_MORE;
    *ends = s->ends;
    if (status == OJ_OK && s->n_rows > 0)
        status = oj_chunk_rows_finish(s->to, s->n_rows, chunk, err);
    if (*chunk == NULL)
        oj_chunk_rows_free(s->to);
    return status;
}
