#include "oj_geopackage_rows.h"

#if OJ_HAVE_SQLITE
#include "../base/oj_array.h"
#include "../geopackage/oj_geopackage_write.h"
#include "oj_row_wkb.h"

#include <cpl_string.h>

#include <string.h>

/* What is known of a column, or of rows with a kind of geometry. */
enum
{
    UNSEEN = 0, /* GDAL writes the first one, which is compared */
    OURS,
    GDALS
};

struct row_column
{
    OGRFieldType type;
    int width;        /* of texts: 0 any */
    int is_fleeting;  /* 1: its texts last until the next value */
    uint8_t is_whose; /* where it has a value */
    char *copy;       /* owned: a fleeting text */
    int64_t cap_copy;
};

struct oj_geopackage_rows
{
    struct oj_row_cursor *cursor;
    struct oj_geopackage_writer *writer;
    OGRFeatureH scratch;
    int n;
    struct row_column *column; /* [n] as in the cursor */
    uint8_t is_whose[OJ_GPKG_KINDS];

    /* The row at hand. */
    struct oj_row_place place;
    struct oj_row_wkb work;
    struct oj_gpkg_row row;
    struct oj_value *value; /* [n] owned */
    int is_odd;             /* it has a text that OGR may change */
    int is_left;            /* GDAL has to write it */
    int has_seen;           /* GDAL wrote a row */
};

/* fields [n] gets their numbers in the layer. */
static oj_status take_columns(struct oj_geopackage_rows *rows,
                              OGRFeatureDefnH defn, int **fields,
                              struct oj_error *err)
{
    const struct oj_row_sources *sources = oj_row_cursor_sources(rows->cursor);
    rows->n = sources->options->n_columns;
    OJ_NEW_ZEROED(rows->column, rows->n, err);
    OJ_NEW(rows->value, rows->n, err);
    OJ_NEW(*fields, rows->n, err);
    for (int c = 0; c < rows->n; c++)
    {
        int target = sources->columns[c].target;
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(defn, target);
        (*fields)[c] = target;
        rows->column[c].type = OGR_Fld_GetType(field);
        rows->column[c].width = OGR_Fld_GetWidth(field);
        rows->column[c].is_fleeting =
            sources->columns[c].origin == OJ_COLUMN_AGGREGATE;
    }
    return OJ_OK;
}

/* ---- values -------------------------------------------------------------- */

static int is_ascii(const char *text, int64_t n)
{
    uint64_t seen = 0, eight;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
    {
        memcpy(&eight, text + i, 8);
        seen |= eight;
    }
    for (; i < n; i++)
        seen |= (uint64_t)(unsigned char)text[i];
    return (seen & 0x8080808080808080u) == 0;
}

/* OGR looks at texts that can be too long, or are no UTF-8. */
static int is_odd_text(const struct row_column *column, const char *text,
                       int64_t n)
{
    return (column->width > 0 && n > column->width) ||
           (!is_ascii(text, n) &&
            (column->width > 0 || !CPLIsUTF8(text, (int)n)));
}

/* As OGR has it: up to the first zero. Sets its length. */
static oj_status take_text(struct oj_geopackage_rows *rows,
                           struct row_column *column, struct oj_value *value,
                           struct oj_error *err)
{
    int64_t n;
    const char *text = oj_value_bytes(value, OFTString, &n);
    if (value->n_text >= 0)
        n = (int64_t)strnlen(text, (size_t)n);
    value->n_text = n;
    if (column->is_fleeting)
    {
        OJ_ROOM(column->copy, 0, n + 1, column->cap_copy, err);
        memcpy(column->copy, text, (size_t)n);
        value->raw.String = column->copy;
    }
    rows->is_odd |= is_odd_text(column, text, n);
    return OJ_OK;
}

static oj_status take_values(struct oj_geopackage_rows *rows,
                             struct oj_error *err)
{
    rows->is_odd = 0;
    for (int i = 0; i < rows->n; i++)
    {
        struct row_column *column = &rows->column[i];
        struct oj_value *value = &rows->value[i];
        OJ_TRY(oj_row_cursor_value(rows->cursor, i, &rows->place, rows->scratch,
                                   value, err));
        if (!oj_value_is_there(value))
            continue;
        rows->is_left |= column->is_whose != OURS;
        if (column->type == OFTString)
            OJ_TRY(take_text(rows, column, value, err));
    }
    rows->is_left |= rows->is_odd;
    return OJ_OK;
}

static void give_bytes(const struct row_column *column,
                       const struct oj_value *value, sqlite3_context *to)
{
    int64_t n;
    const char *bytes = oj_value_bytes(value, column->type, &n);
    if (column->type == OFTString)
        sqlite3_result_text64(to, bytes, (sqlite3_uint64)n, SQLITE_STATIC,
                              SQLITE_UTF8);
    else
        sqlite3_result_blob64(to, n > 0 ? bytes : "", (sqlite3_uint64)n,
                              SQLITE_STATIC);
}

static void give_time(const struct row_column *column,
                      const struct oj_value *value, sqlite3_context *to)
{
    char text[80];
    int n = oj_value_xml_time(&value->raw, 1, text, sizeof text);
    if (column->type == OFTDate)
        n = (int)strcspn(text, "T");
    sqlite3_result_text(to, text, n, SQLITE_TRANSIENT);
}

static void give_value(void *user, int i, sqlite3_context *to)
{
    const struct oj_geopackage_rows *rows = user;
    const struct row_column *column = &rows->column[i];
    const struct oj_value *value = &rows->value[i];
    if (!oj_value_is_there(value))
        return; /* NULL */
    switch (column->type)
    {
        case OFTInteger:
            sqlite3_result_int(to, value->raw.Integer);
            break;
        case OFTInteger64:
            sqlite3_result_int64(to, value->raw.Integer64);
            break;
        case OFTReal:
            sqlite3_result_double(to, value->raw.Real);
            break;
        case OFTString:
        case OFTBinary:
            give_bytes(column, value, to);
            break;
        default:
            give_time(column, value, to);
            break;
    }
}

/* ---- rows ---------------------------------------------------------------- */

static oj_status next_row(void *user, struct oj_gpkg_row *row, int *there,
                          struct oj_error *err)
{
    struct oj_geopackage_rows *rows = user;
    *there = 0;
    rows->is_left = 0;
    if (oj_row_cursor_take(rows->cursor, &rows->place, 1) == 0)
        return OJ_OK;
    oj_row_cursor_fetch(rows->cursor, &rows->place);
    OJ_TRY(oj_row_wkb_make(&rows->work, rows->cursor, &rows->place,
                           &rows->row.wkb, &rows->row.n_wkb, err));
    oj_gpkg_look(rows->row.wkb, &rows->row.shape);
    rows->row.fid = rows->place.fid;
    rows->is_left = rows->row.shape.kind < 0 ||
                    rows->is_whose[rows->row.shape.kind] != OURS;
    OJ_TRY(take_values(rows, err));
    *row = rows->row;
    *there = !rows->is_left;
    return OJ_OK;
}

static oj_status write_rows(struct oj_geopackage_rows *rows,
                            struct oj_row_place *place, int *is_left,
                            struct oj_error *err)
{
    int is_refused = 0;
    oj_status status = oj_geopackage_write_rows(rows->writer, &is_refused, err);
    *place = rows->place;
    *is_left = rows->is_left || is_refused;
    return status;
}

static oj_status update_row(struct oj_geopackage_rows *rows, int64_t fid,
                            const struct oj_row_place *place,
                            const struct oj_matches *entries,
                            const struct oj_pair_values *values, int *is_left,
                            struct oj_error *err)
{
    oj_status status;
    rows->place = *place;
    rows->row.shape.kind = -1;
    rows->is_left = !rows->has_seen; /* GDAL then notes the change */
    oj_row_cursor_begin_pair(rows->cursor, entries, values);
    status = take_values(rows, err);
    oj_row_cursor_end(rows->cursor);
    *is_left = rows->is_left;
    return status == OJ_OK && !rows->is_left
               ? oj_geopackage_update_row(rows->writer, fid, is_left, err)
               : status;
}

static int64_t count_rows(const struct oj_geopackage_rows *rows,
                          int64_t *n_empty)
{
    return oj_geopackage_rows_written(rows->writer, n_empty);
}

static oj_status take_row(struct oj_geopackage_rows *rows, int64_t fid,
                          struct oj_error *err)
{
    int is_equal[2], kind = rows->row.shape.kind;
    rows->has_seen = 1;
    OJ_TRY(
        oj_geopackage_take_row(rows->writer, &rows->row, fid, is_equal, err));
    if (kind >= 0 && rows->is_whose[kind] == UNSEEN)
        rows->is_whose[kind] = is_equal[0] ? OURS : GDALS;
    for (int i = 0; i < rows->n && !rows->is_odd; i++)
    {
        struct row_column *column = &rows->column[i];
        if (column->is_whose == UNSEEN && oj_value_is_there(&rows->value[i]))
            column->is_whose = is_equal[1] ? OURS : GDALS;
    }
    return OJ_OK;
}

/* ---- open and close ------------------------------------------------------ */

static void close_rows(struct oj_geopackage_rows *rows)
{
    if (rows == NULL)
        return;
    oj_geopackage_write_close(rows->writer);
    if (rows->scratch != NULL)
        OGR_F_Destroy(rows->scratch);
    oj_row_wkb_free(&rows->work);
    for (int i = 0; rows->column != NULL && i < rows->n; i++)
        oj_free(rows->column[i].copy);
    oj_free(rows->column);
    oj_free(rows->value);
    oj_free(rows);
}

static oj_status open_rows(GDALDatasetH dataset, OGRLayerH layer, int is_update,
                           const int *cancel, struct oj_row_cursor *cursor,
                           struct oj_geopackage_rows **out,
                           struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    struct oj_gpkg_feed feed = {NULL, next_row, give_value};
    struct oj_geopackage_rows *rows;
    int *fields = NULL;
    oj_status status;
    *out = NULL;
    OJ_NEW_ZEROED(rows, 1, err);
    feed.user = rows;
    rows->cursor = cursor;
    rows->scratch = rows->work.scratch = OGR_F_Create(defn);
    status = rows->scratch == NULL ? oj_fail_nomem(err, 1, 1024)
                                   : take_columns(rows, defn, &fields, err);
    if (status == OJ_OK)
        status =
            oj_geopackage_write_open(dataset, layer, is_update, fields, rows->n,
                                     &feed, cancel, &rows->writer, err);
    oj_free(fields);
    if (status == OJ_OK && rows->writer != NULL)
        *out = rows;
    else
        close_rows(rows);
    return status;
}

static oj_status finish_rows(struct oj_geopackage_rows *rows,
                             struct oj_error *err)
{
    return oj_geopackage_write_finish(rows->writer, err);
}

static const struct oj_geopackage_way way = {open_rows, write_rows, update_row,
                                             take_row,  count_rows, finish_rows,
                                             close_rows};
const struct oj_geopackage_way *const oj_geopackage_way = &way;

#else

const struct oj_geopackage_way *const oj_geopackage_way = NULL;

#endif
