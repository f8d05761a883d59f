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
};

struct oj_geopackage_rows
{
    struct oj_row_cursor *cursor;
    struct oj_geopackage_writer *writer;
    OGRFeatureH scratch;
    int n;
    struct row_column *column; /* [n] as in the cursor */
    uint8_t is_whose[OJ_GPKG_KINDS];

    /* The row that was put last. */
    struct oj_row_wkb work;
    struct oj_gpkg_shape shape;
    const uint8_t *wkb;
    int64_t n_wkb;
    int is_odd;  /* it has a value that OGR may change */
    int is_left; /* it has a value that is left to GDAL */
};

/* fields [n] gets their numbers in the layer. */
static oj_status take_columns(struct oj_geopackage_rows *rows,
                              OGRFeatureDefnH defn, int **fields,
                              struct oj_error *err)
{
    const struct oj_row_sources *sources = oj_row_cursor_sources(rows->cursor);
    rows->n = sources->options->n_columns;
    OJ_NEW_ZEROED(rows->column, rows->n, err);
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

oj_status oj_geopackage_rows_open(GDALDatasetH dataset, OGRLayerH layer,
                                  const int *cancel,
                                  struct oj_row_cursor *cursor,
                                  struct oj_geopackage_rows **out,
                                  struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    struct oj_geopackage_rows *rows;
    int *fields = NULL;
    oj_status status;
    *out = NULL;
    OJ_NEW_ZEROED(rows, 1, err);
    rows->cursor = cursor;
    rows->scratch = rows->work.scratch = OGR_F_Create(defn);
    status = rows->scratch == NULL ? oj_fail_nomem(err, 1, 1024)
                                   : take_columns(rows, defn, &fields, err);
    if (status == OJ_OK)
        status = oj_geopackage_write_open(dataset, layer, fields, rows->n,
                                          cancel, &rows->writer, err);
    oj_free(fields);
    if (status == OJ_OK && rows->writer != NULL)
        *out = rows;
    else
        oj_geopackage_rows_close(rows);
    return status;
}

void oj_geopackage_rows_close(struct oj_geopackage_rows *rows)
{
    if (rows == NULL)
        return;
    oj_geopackage_write_close(rows->writer);
    if (rows->scratch != NULL)
        OGR_F_Destroy(rows->scratch);
    oj_row_wkb_free(&rows->work);
    oj_free(rows->column);
    oj_free(rows);
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

/* Texts are checked by OGR where they can be too long or are no UTF-8. */
static int is_odd_text(const struct row_column *column, const char *text,
                       int64_t n)
{
    return (column->width > 0 && n > column->width) ||
           (!is_ascii(text, n) &&
            (column->width > 0 || !CPLIsUTF8(text, (int)n)));
}

static void bind_bytes(struct oj_geopackage_rows *rows, sqlite3_stmt *to, int i,
                       const struct oj_value *value)
{
    const struct row_column *column = &rows->column[i];
    sqlite3_destructor_type keep =
        column->is_fleeting ? SQLITE_TRANSIENT : SQLITE_STATIC;
    int64_t n;
    const char *bytes = oj_value_bytes(value, column->type, &n);
    if (column->type == OFTBinary)
    {
        sqlite3_bind_blob64(to, i + OJ_GPKG_FIRST, n > 0 ? bytes : "",
                            (sqlite3_uint64)n, keep);
        return;
    }
    n = (int64_t)strnlen(bytes, (size_t)n); /* as OGR has it */
    rows->is_odd |= is_odd_text(column, bytes, n);
    sqlite3_bind_text64(to, i + OJ_GPKG_FIRST, bytes, (sqlite3_uint64)n, keep,
                        SQLITE_UTF8);
}

static void bind_time(struct oj_geopackage_rows *rows, sqlite3_stmt *to, int i,
                      const struct oj_value *value)
{
    char text[80];
    int n = oj_value_xml_time(&value->raw, 1, text, sizeof text);
    if (rows->column[i].type == OFTDate)
        n = (int)strcspn(text, "T");
    sqlite3_bind_text(to, i + OJ_GPKG_FIRST, text, n, SQLITE_TRANSIENT);
}

static void bind_value(struct oj_geopackage_rows *rows, sqlite3_stmt *to, int i,
                       const struct oj_value *value)
{
    if (!oj_value_is_there(value))
    {
        sqlite3_bind_null(to, i + OJ_GPKG_FIRST);
        return;
    }
    rows->is_left |= rows->column[i].is_whose != OURS;
    switch (rows->column[i].type)
    {
        case OFTInteger:
            sqlite3_bind_int(to, i + OJ_GPKG_FIRST, value->raw.Integer);
            break;
        case OFTInteger64:
            sqlite3_bind_int64(to, i + OJ_GPKG_FIRST, value->raw.Integer64);
            break;
        case OFTReal:
            sqlite3_bind_double(to, i + OJ_GPKG_FIRST, value->raw.Real);
            break;
        case OFTString:
        case OFTBinary:
            bind_bytes(rows, to, i, value);
            break;
        default:
            bind_time(rows, to, i, value);
            break;
    }
}

static oj_status bind_values(struct oj_geopackage_rows *rows, sqlite3_stmt *to,
                             const struct oj_row_place *place,
                             struct oj_error *err)
{
    rows->is_odd = rows->is_left = 0;
    for (int i = 0; i < rows->n; i++)
    {
        struct oj_value value;
        OJ_TRY(oj_row_cursor_value(rows->cursor, i, place, rows->scratch,
                                   &value, err));
        bind_value(rows, to, i, &value);
    }
    return OJ_OK;
}

/* ---- rows ---------------------------------------------------------------- */

oj_status oj_geopackage_rows_put(struct oj_geopackage_rows *rows,
                                 const struct oj_row_place *place,
                                 int *is_written, int *is_empty,
                                 struct oj_error *err)
{
    struct oj_gpkg_shape *shape = &rows->shape;
    *is_written = 0;
    OJ_TRY(oj_row_wkb_make(&rows->work, rows->cursor, place, &rows->wkb,
                           &rows->n_wkb, err));
    oj_gpkg_look(rows->wkb, shape);
    if (shape->kind < 0 || rows->is_whose[shape->kind] != OURS)
        return OJ_OK;
    OJ_TRY(bind_values(rows, oj_geopackage_insert(rows->writer), place, err));
    if (rows->is_odd || rows->is_left)
        return OJ_OK;
    *is_empty = shape->is_empty;
    return oj_geopackage_write_row(rows->writer, place->fid, shape, rows->wkb,
                                   rows->n_wkb, is_written, err);
}

oj_status oj_geopackage_rows_took(struct oj_geopackage_rows *rows,
                                  const struct oj_row_place *place, int64_t fid,
                                  struct oj_error *err)
{
    int is_equal[2], kind = rows->shape.kind;
    OJ_TRY(bind_values(rows, oj_geopackage_compare(rows->writer), place, err));
    OJ_TRY(oj_geopackage_take_row(rows->writer, fid, &rows->shape, rows->wkb,
                                  rows->n_wkb, is_equal, err));
    if (kind >= 0 && rows->is_whose[kind] == UNSEEN)
        rows->is_whose[kind] = is_equal[0] ? OURS : GDALS;
    if (rows->is_odd) /* of no account for other values */
        return OJ_OK;
    for (int i = 0; i < rows->n && rows->is_left; i++)
    {
        struct oj_value value;
        OJ_TRY(oj_row_cursor_value(rows->cursor, i, place, rows->scratch,
                                   &value, err));
        if (oj_value_is_there(&value) && rows->column[i].is_whose == UNSEEN)
            rows->column[i].is_whose = is_equal[1] ? OURS : GDALS;
    }
    return OJ_OK;
}

oj_status oj_geopackage_rows_finish(struct oj_geopackage_rows *rows,
                                    struct oj_error *err)
{
    return oj_geopackage_write_finish(rows->writer, err);
}

#else

oj_status oj_geopackage_rows_open(GDALDatasetH dataset, OGRLayerH layer,
                                  const int *cancel,
                                  struct oj_row_cursor *cursor,
                                  struct oj_geopackage_rows **out,
                                  struct oj_error *err)
{
    (void)dataset;
    (void)layer;
    (void)cancel;
    (void)cursor;
    (void)err;
    *out = NULL;
    return OJ_OK;
}

/* Of none that was opened. */
oj_status oj_geopackage_rows_put(struct oj_geopackage_rows *rows,
                                 const struct oj_row_place *place,
                                 int *is_written, int *is_empty,
                                 struct oj_error *err)
{
    (void)rows;
    (void)place;
    (void)is_empty;
    (void)err;
    *is_written = 0;
    return OJ_OK;
}

oj_status oj_geopackage_rows_took(struct oj_geopackage_rows *rows,
                                  const struct oj_row_place *place, int64_t fid,
                                  struct oj_error *err)
{
    (void)rows;
    (void)place;
    (void)fid;
    (void)err;
    return OJ_OK;
}

oj_status oj_geopackage_rows_finish(struct oj_geopackage_rows *rows,
                                    struct oj_error *err)
{
    (void)rows;
    (void)err;
    return OJ_OK;
}

void oj_geopackage_rows_close(struct oj_geopackage_rows *rows)
{
    (void)rows;
}

#endif
