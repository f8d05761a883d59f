/* Writes the output rows of a join directly into a GeoPackage table, within
 * GDAL's layer and transaction. */
#include "oj_row_lane.h"

#if OJ_HAVE_SQLITE
#include "../arrays/oj_wkb.h"
#include "../base/oj_alloc.h"
#include "../geopackage/oj_gdal_sqlite.h"
#include "../geopackage/oj_rtree_bulk_load.h"
#include "oj_row_wkb.h"

#include <cpl_error.h>
#include <cpl_string.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Columns of the virtual table of rows: FID, geometry, then the fields. */
#define FIRST_FIELD 2

#define POINT 1

enum
{
    N_KINDS = 8 * 4 * 2,
    MOST_HEAD = 8 + 6 * 8
};

/* Writer of a column's values, or of the rows with one kind of geometry: this
 * file or GDAL. */
enum
{
    /* undecided: GDAL writes the next value or row of this kind, which is then
     * compared with what this file would write */
    UNSEEN = 0,
    OURS,
    GDALS
};

struct row_column
{
    struct oj_row_column from;
    int target; /* index of the field in the layer */
    int width;  /* maximum width of texts; 0: no limit */
    /* UNSEEN, OURS or GDALS, for values of this column that are not NULL */
    uint8_t writer;
    /* 1: a text from this column is valid only until the next value is read, so
     * it must be copied */
    uint8_t needs_copy;
    char *copy; /* copy of a text, if needs_copy; owned */
    int64_t cap_copy;

    /* Value of the current row, from oj_row_column_value(). */
    const void *at;
    int64_t n;
    struct oj_value value;
};

/* Properties of a geometry, found without OGR. */
struct shape
{
    /* Type, dimensions and emptiness as one number, an index of
     * geopackage_rows.writer. 0: no geometry; -1: the row is left to GDAL
     * (curves, surfaces, coordinates that are not finite). */
    int kind;
    int type, has_z, is_empty;
    double box[6]; /* minimum and maximum x, y and z; unset if empty */
};

struct geopackage_rows
{
    OGRLayerH layer;
    sqlite3 *db;
    const char *table, *fid, *geometry; /* names, owned by the layer */
    /* name of the spatial index, owned; NULL: the table has no spatial index */
    char *index;
    /* statements that drop and recreate the triggers of the spatial index;
     * owned */
    char *drop, *restore;
    int32_t srs_id;
    sqlite3_stmt *insert, *compare, *update;
    const int *cancel;

    struct oj_row_cursor *cursor;
    OGRFeatureH scratch;
    int n;
    struct row_column *column; /* [n] as in the cursor */
    /* UNSEEN, OURS or GDALS, for rows with this kind of geometry */
    uint8_t writer[N_KINDS];
    /* 1: the table has a trigger that prevents direct inserts, so GDAL writes
     * all rows */
    int is_blocked;

    struct oj_sqlite_rows rows; /* this writer as a virtual table */
    char name[40];              /* name of the virtual table */
    char *columns;              /* owned; column definitions of the virtual
                                   table */
    int is_open;                /* the virtual table is registered */
    /* 1: the virtual table returns the current row, once, instead of the next
     * rows */
    int returns_current_row;
    int has_row; /* 1: a row was returned to SQLite and is not yet counted */

    /* The current row. */
    struct oj_row_place place;
    struct oj_layer_geometry work;
    const uint8_t *wkb; /* NULL: no geometry */
    int64_t n_wkb;
    struct shape shape;
    uint8_t *blob; /* the geometry in GeoPackage's encoding; owned */
    int64_t n_blob, cap_blob;
    int has_doubtful_text; /* 1: the row has a text that OGR may change */
    int is_left;           /* 1: GDAL has to write this row */

    struct oj_rtree tree;
    /* extent of the table: minimum and maximum x, minimum and maximum y */
    double box[4];
    int64_t n_before; /* rows of the table before this writer added any */
    int has_count;    /* 1: GDAL maintains a row count for the table */
    /* numbers of rows that this writer inserted, and that GDAL wrote or changed
     */
    int64_t n_rows, n_by_gdal;
    struct oj_rows_written *written; /* counts of the current answer */
};

/* ---- geometries ---------------------------------------------------------- */

/* Reads type, dimensions and box from little-endian, valid ISO WKB. wkb NULL:
 * there is no geometry. */
static void describe_wkb_shape(const uint8_t *wkb, struct shape *shape)
{
    struct oj_wkb_walk walk = {.at = wkb, .box = shape->box};
    int code;
    shape->kind = 0;
    shape->is_empty = 1;
    if (wkb == NULL)
        return;
    for (int k = 0; k < 3; k++)
    {
        shape->box[2 * k] = (double)INFINITY;
        shape->box[2 * k + 1] = (double)-INFINITY;
    }
    code = wkb[1] | wkb[2] << 8;
    shape->type = code % 1000;
    shape->has_z = code / 1000 % 2 == 1;
    oj_wkb_walk_geometry(&walk);
    shape->is_empty = walk.n_vertices == 0;
    shape->kind = (shape->type * 4 + code / 1000) * 2 + shape->is_empty;
    if (walk.has_curves ||
        (isnan(walk.doubt) && !(shape->type == POINT && shape->is_empty)))
        shape->kind = -1;
}

/* Writes the header that precedes the WKB and returns its length. Points and
 * empty geometries get no envelope, as in GDAL.
 *
 *   "GP" | version 0 | flags | i32 srs_id | envelope | WKB
 *   flags   1: little-endian; 0, 2 or 4: envelope of nothing, of x and y, or
 *           of x, y and z; 16: empty
 *
 * Source: OGC 12-128r18, 2.1.3. */
static int put_geopackage_head(const struct shape *shape, int32_t srs_id,
                               uint8_t head[MOST_HEAD])
{
    int n = shape->is_empty || shape->type == POINT ? 0 : 2 + shape->has_z;
    memcpy(head, "GP", 3);
    head[3] = (uint8_t)(1 | (n > 0 ? n - 1 : 0) << 1 | shape->is_empty << 4);
    memcpy(head + 4, &srs_id, 4);
    memcpy(head + 8, shape->box, 16 * (size_t)n);
    return 8 + 16 * n;
}

static oj_status make_geometry_blob(struct geopackage_rows *w,
                                    struct oj_error *err)
{
    int n_head;
    if (w->shape.kind <= 0)
        return OJ_OK;
    OJ_ROOM(w->blob, 0, w->n_wkb + MOST_HEAD, w->cap_blob, err);
    n_head = put_geopackage_head(&w->shape, w->srs_id, w->blob);
    memcpy(w->blob + n_head, w->wkb, (size_t)w->n_wkb);
    w->n_blob = n_head + w->n_wkb;
    return OJ_OK;
}

/* Adds the box of a row to the spatial index and to the extent of the table. */
static oj_status add_box_to_rtree_and_extent(struct geopackage_rows *w,
                                             int64_t fid, const double box[4],
                                             struct oj_error *err)
{
    for (int i = 0; i < 4; i += 2)
    {
        w->box[i] = box[i] < w->box[i] ? box[i] : w->box[i];
        w->box[i + 1] = box[i + 1] > w->box[i + 1] ? box[i + 1] : w->box[i + 1];
    }
    return w->index != NULL ? oj_rtree_add_row(&w->tree, fid, box, err) : OJ_OK;
}

/* ---- values -------------------------------------------------------------- */

/* Returns 1 if OGR may change the text when it writes it, because it may be too
 * long for the field or is invalid UTF-8. */
static int needs_ogr_text_check(const struct row_column *column,
                                const char *text, int64_t n)
{
    return (column->width > 0 && n > column->width) || !CPLIsUTF8(text, (int)n);
}

/* Copies a text that is valid only until the next value is read. */
static oj_status fetch_text_value(struct geopackage_rows *rows,
                                  struct row_column *column,
                                  struct oj_error *err)
{
    if (column->needs_copy)
    {
        OJ_ROOM(column->copy, 0, column->n + 1, column->cap_copy, err);
        memcpy(column->copy, column->at, (size_t)column->n);
        column->at = column->copy;
    }
    rows->has_doubtful_text |=
        needs_ogr_text_check(column, column->at, column->n);
    return OJ_OK;
}

/* Reads the values of the current row. */
static oj_status fetch_row_values(struct geopackage_rows *rows,
                                  struct oj_error *err)
{
    rows->has_doubtful_text = 0;
    for (int i = 0; i < rows->n; i++)
    {
        struct row_column *column = &rows->column[i];
        OJ_TRY(oj_row_column_value(&column->from, rows->cursor, &rows->place,
                                   rows->scratch, &column->value, &column->at,
                                   &column->n, err));
        if (column->at == NULL)
            continue;
        rows->is_left |= column->writer != OURS;
        if (column->from.type == OFTString)
            OJ_TRY(fetch_text_value(rows, column, err));
    }
    rows->is_left |= rows->has_doubtful_text;
    return OJ_OK;
}

static void return_time_to_sqlite(const struct row_column *column,
                                  sqlite3_context *to)
{
    char text[80];
    int n = oj_value_format_xml_time(column->at, 1, text, sizeof text);
    if (column->from.type == OFTDate)
        n = (int)strcspn(text, "T");
    sqlite3_result_text(to, text, n, SQLITE_TRANSIENT);
}

static void return_value_to_sqlite(const struct row_column *column,
                                   sqlite3_context *to)
{
    const void *at = column->at;
    sqlite3_uint64 n = (sqlite3_uint64)column->n;
    if (at == NULL)
        return; /* NULL */
    switch (column->from.type)
    {
        case OFTInteger:
            sqlite3_result_int(to, *(const int32_t *)at);
            break;
        case OFTInteger64:
            sqlite3_result_int64(to, *(const sqlite3_int64 *)at);
            break;
        case OFTReal:
            sqlite3_result_double(to, *(const double *)at);
            break;
        case OFTString:
            sqlite3_result_text64(to, at, n, SQLITE_STATIC, SQLITE_UTF8);
            break;
        case OFTBinary:
            sqlite3_result_blob64(to, n > 0 ? at : "", n, SQLITE_STATIC);
            break;
        default:
            return_time_to_sqlite(column, to);
            break;
    }
}

/* ---- rows as a table ----------------------------------------------------- */

/* Makes the next row current; *there is 0 if the answer has no more rows, or if
 * GDAL has to write this row before the following ones. */
static oj_status fetch_next_row(struct geopackage_rows *rows, int *there,
                                struct oj_error *err)
{
    *there = 0;
    rows->is_left = 0;
    if (oj_row_cursor_next_places(rows->cursor, &rows->place, 1) == 0)
        return OJ_OK;
    oj_row_cursor_prefetch(rows->cursor, &rows->place);
    OJ_TRY(oj_row_wkb_make(&rows->work, rows->cursor, &rows->place, &rows->wkb,
                           &rows->n_wkb, err));
    describe_wkb_shape(rows->wkb, &rows->shape);
    rows->is_left = rows->is_blocked || rows->shape.kind < 0 ||
                    rows->writer[rows->shape.kind] != OURS;
    OJ_TRY(fetch_row_values(rows, err));
    *there = !rows->is_left;
    return OJ_OK;
}

/* Called after SQLite has inserted the current row: counts the row, and adds
 * its box to the index and to the extent. */
static oj_status count_inserted_row(struct geopackage_rows *w,
                                    struct oj_error *err)
{
    w->has_row = 0;
    w->n_rows++;
    w->written->n_rows++;
    w->written->n_empty += w->shape.is_empty;
    return w->shape.is_empty
               ? OJ_OK
               : add_box_to_rtree_and_extent(
                     w, sqlite3_last_insert_rowid(w->db), w->shape.box, err);
}

static oj_status advance_to_next_row(void *user, int *there,
                                     struct oj_error *err)
{
    struct geopackage_rows *rows = user;
    if (rows->returns_current_row)
    {
        *there = rows->returns_current_row++ == 1;
        return OJ_OK;
    }
    if (rows->has_row)
        OJ_TRY(count_inserted_row(rows, err));
    if (rows->n_rows % 1024 == 0)
        OJ_TRY(oj_check_cancel(rows->cancel, err));
    OJ_TRY(fetch_next_row(rows, there, err));
    rows->has_row = *there;
    return *there ? make_geometry_blob(rows, err) : OJ_OK;
}

static void return_column_to_sqlite(void *user, int column, sqlite3_context *to)
{
    const struct geopackage_rows *rows = user;
    if (column >= FIRST_FIELD)
        return_value_to_sqlite(&rows->column[column - FIRST_FIELD], to);
    else if (column == 0 && rows->place.fid != OGRNullFID)
        sqlite3_result_int64(to, rows->place.fid);
    else if (column == 1 && rows->shape.kind > 0)
        sqlite3_result_blob64(to, rows->blob, (sqlite3_uint64)rows->n_blob,
                              SQLITE_STATIC);
}

/* ---- the table ----------------------------------------------------------- */

/* Returns 0 if GDAL has to write the layer, because its table has no FID, not
 * exactly one geometry, or a field that this writer does not support: a time of
 * day, a list, a field with the name of the FID, or a field with a default
 * (which an unset value would take, and unset is written as NULL here). */
static int is_layer_supported(OGRLayerH layer)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    const char *fid = OGR_L_GetFIDColumn(layer);
    if (fid[0] == '\0' || OGR_L_GetGeometryColumn(layer)[0] == '\0' ||
        OGR_FD_GetGeomFieldCount(defn) != 1)
        return 0;
    for (int i = 0; i < OGR_FD_GetFieldCount(defn); i++)
    {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(defn, i);
        OGRFieldType type = OGR_Fld_GetType(field);
        if (type == OFTTime || oj_type_is_list(type) ||
            OGR_Fld_GetDefault(field) != NULL ||
            strcasecmp(OGR_Fld_GetNameRef(field), fid) == 0)
            return 0;
    }
    return 1;
}

/* Returns 1 for a writable connection within a transaction, which is allowed to
 * write to the tables of the spatial index. */
static int may_write_index_tables(sqlite3 *db)
{
    int is_defensive = 0;
#ifdef SQLITE_DBCONFIG_DEFENSIVE
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, -1, &is_defensive);
#endif
    return !is_defensive && !sqlite3_get_autocommit(db);
}

/* Indices of the numbers that read_table_facts() reads about the table and the
 * GeoPackage's metadata: counts, or 0 and 1. */
enum
{
    IS_TABLE,
    HAS_ROWS,
    SRS_ID,
    N_INDEX_TABLES, /* counts the spatial index and its trigger on inserts */
    N_COUNT_TABLES,
    N_OTHER_TRIGGERS, /* counts the triggers on the table that GDAL does not
                         create */
    N_FACTS
};

static oj_status read_table_facts(const struct geopackage_rows *w,
                                  int is_update, double facts[N_FACTS],
                                  struct oj_error *err)
{
    return oj_sqlite_read_numbers(
        w->db, N_FACTS, facts, err,
        "WITH own(t, i) AS (SELECT %Q, %Q) SELECT "
        "EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND "
        "name = t), EXISTS (SELECT 1 FROM \"%w\"), "
        "(SELECT srs_id FROM gpkg_geometry_columns WHERE "
        "lower(table_name) = lower(t)), "
        "(SELECT count(*) FROM sqlite_master WHERE name IN (i, i || "
        "'_insert')), "
        "(SELECT count(*) FROM sqlite_master WHERE name = "
        "'gpkg_ogr_contents'), "
        "(SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND "
        "lower(tbl_name) = lower(t) AND sql LIKE %Q AND "
        "substr(name, 1, length(i || %Q)) <> i || %Q AND substr(name, 1, 29) "
        "NOT IN ('trigger_insert_feature_count_', "
        "'trigger_delete_feature_count_')) FROM own",
        w->table, w->index, w->table, is_update ? "%UPDATE%" : "%",
        is_update ? "_update" : "_", is_update ? "_update" : "_");
}

static oj_status read_count_and_extent(struct geopackage_rows *w,
                                       struct oj_error *err)
{
    double found[] = {0, w->box[0], w->box[1], w->box[2], w->box[3]};
    OJ_TRY(oj_sqlite_read_numbers(
        w->db, 5, found, err,
        "SELECT feature_count, min_x, max_x, min_y, max_y FROM gpkg_contents "
        "c, gpkg_ogr_contents o WHERE lower(c.table_name) = lower(%Q) AND "
        "lower(o.table_name) = lower(%Q)",
        w->table, w->table));
    w->n_before = (int64_t)found[0];
    memcpy(w->box, found + 1, sizeof w->box);
    return OJ_OK;
}

/* Checks whether this file can write the table. *fits is 0 if the table differs
 * from those that GDAL creates, if its row count is unknown, or if it has
 * triggers of its own, which can depend on the statement's columns. */
static oj_status check_table(struct geopackage_rows *w, int is_update,
                             int *fits, struct oj_error *err)
{
    double facts[N_FACTS] = {0};
    w->index = CPLStrdup(CPLSPrintf("rtree_%s_%s", w->table, w->geometry));
    OJ_TRY(read_table_facts(w, is_update, facts, err));
    *fits = facts[IS_TABLE] > 0 && facts[N_OTHER_TRIGGERS] == 0;
    if (is_update || !*fits)
        return OJ_OK;
    w->has_count = facts[N_COUNT_TABLES] > 0;
    if (facts[HAS_ROWS] > 0 && w->has_count)
        OJ_TRY(read_count_and_extent(w, err));
    *fits = facts[HAS_ROWS] == 0 || w->n_before > 0;
    w->srs_id = (int32_t)facts[SRS_ID];
    /* Makes GDAL test for the spatial index now, while all its tables and
     * triggers exist. */
    (void)OGR_L_TestCapability(w->layer, OLCFastSpatialFilter);
    /* A table with rows whose index has no triggers: no writer maintains this
     * index, so this file does not either. */
    if (facts[N_INDEX_TABLES] < (w->n_before > 0 ? 2 : 1))
    {
        CPLFree(w->index);
        w->index = NULL;
    }
    return OJ_OK;
}

/* Drops the triggers that maintain the spatial index; before updates, which do
 * not change geometries, only the triggers on updates. They are recreated in
 * this transaction, so that other connections never see them missing. */
static oj_status drop_index_triggers(struct geopackage_rows *w, int is_update,
                                     struct oj_error *err)
{
    sqlite3_stmt *statement = NULL;
    OJ_TRY(oj_sqlite_prepare(
        w->db, &statement, err,
        "WITH own(i) AS (SELECT %Q) SELECT coalesce(group_concat(printf('DROP "
        "TRIGGER \"%%w\"', name), ';'), ''), coalesce(group_concat('CREATE "
        "TRIGGER IF NOT EXISTS ' || substr(sql, 16), ';'), '') FROM "
        "sqlite_master, own WHERE type = 'trigger' AND lower(tbl_name) = "
        "lower(%Q) AND sql LIKE %Q AND substr(name, 1, length(i)) = i",
        w->index, w->table, is_update ? "%UPDATE%" : "%"));
    if (sqlite3_step(statement) == SQLITE_ROW)
    {
        w->drop = CPLStrdup((const char *)sqlite3_column_text(statement, 0));
        w->restore = CPLStrdup((const char *)sqlite3_column_text(statement, 1));
    }
    sqlite3_finalize(statement);
    return w->drop != NULL ? oj_sqlite_run(w->db, err, "%s", w->drop)
                           : oj_sqlite_fail_statement(w->db, err);
}

/* ---- statements ---------------------------------------------------------- */

/* Creates the virtual table with the columns of the layer's table, whose fields
 * are a, ..., and prepares these statements:
 *   INSERT INTO t (fid, geometry, a, ...) SELECT fid, geometry, a, ... FROM
 *   rows
 *   SELECT geometry IS ..., (fid, a, ...) IS (?1, a, ...) FROM rows
 *   UPDATE t SET (a, ...) = (SELECT a, ... FROM rows) WHERE fid = ?1
 * If the INSERT fails at a row, the rows before it are kept.
 */
static oj_status prepare_row_statements(struct geopackage_rows *w,
                                        int is_update, struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(w->layer);
    sqlite3_str *names = sqlite3_str_new(w->db);
    const char *g = w->geometry, *fields;
    int n_first;
    sqlite3_str_appendf(names, "\"%w\",\"%w\"", w->fid, g);
    n_first = sqlite3_str_length(names);
    for (int i = 0; i < w->n; i++)
        sqlite3_str_appendf(
            names, ",\"%w\"",
            OGR_Fld_GetNameRef(OGR_FD_GetFieldDefn(defn, w->column[i].target)));
    w->rows.columns = w->columns = sqlite3_str_finish(names);
    if (w->columns == NULL)
        return oj_fail(err, OJ_ERR_NOMEM,
                       "out of memory for an SQL statement: free memory");
    fields = w->columns + n_first;
    /* The name is unique, because several layers can be written alternately on
     * one connection. */
    snprintf(w->name, sizeof w->name, "ogrjoin_rows_%llx",
             (unsigned long long)(uintptr_t)w);
    w->rows.next = advance_to_next_row;
    w->rows.column = return_column_to_sqlite;
    w->rows.user = w;
    OJ_TRY(oj_sqlite_rows_register(w->db, w->name, &w->rows, err));
    w->is_open = 1;
    OJ_TRY(
        oj_sqlite_prepare(w->db, &w->insert, err,
                          "INSERT OR FAIL INTO \"%w\" (%s) SELECT %s FROM %s",
                          w->table, w->columns, w->columns, w->name));
    OJ_TRY(oj_sqlite_prepare(
        w->db, &w->compare, err,
        "SELECT (SELECT \"%w\" FROM \"%w\" WHERE \"%w\" = ?1) IS \"%w\", "
        "(SELECT \"%w\"%s FROM \"%w\" WHERE \"%w\" = ?1) IS (?1%s) FROM %s",
        g, w->table, w->fid, g, w->fid, fields, w->table, w->fid, fields,
        w->name));
    return !is_update
               ? OJ_OK
               : oj_sqlite_prepare(w->db, &w->update, err,
                                   "UPDATE \"%w\" SET (%s) = (SELECT %s FROM "
                                   "%s) WHERE \"%w\" = ?1",
                                   w->table, fields + 1, fields + 1, w->name,
                                   w->fid);
}

/* ---- open and close ------------------------------------------------------ */

/* Opens the writer. *fits is 0 if GDAL has to write the whole layer. */
static oj_status open_if_table_is_suitable(struct geopackage_rows *w,
                                           int is_update, int *fits,
                                           struct oj_error *err)
{
    if ((is_update && w->n == 0) ||
        w->n + FIRST_FIELD > sqlite3_limit(w->db, SQLITE_LIMIT_COLUMN, -1))
        return OJ_OK;
    OJ_TRY(check_table(w, is_update, fits, err));
    if (!*fits)
        return OJ_OK;
    OJ_TRY(prepare_row_statements(w, is_update, err));
    return w->index != NULL ? drop_index_triggers(w, is_update, err) : OJ_OK;
}

static oj_status init_row_columns(struct geopackage_rows *rows,
                                  OGRFeatureDefnH defn, struct oj_error *err)
{
    const struct oj_row_sources *sources = oj_row_cursor_sources(rows->cursor);
    rows->n = sources->options->n_columns;
    OJ_NEW_ZEROED(rows->column, rows->n, err);
    for (int c = 0; c < rows->n; c++)
    {
        struct row_column *column = &rows->column[c];
        OGRFieldDefnH field;
        column->target = sources->columns[c].target;
        field = OGR_FD_GetFieldDefn(defn, column->target);
        column->from.number = c;
        column->from.type = OGR_Fld_GetType(field);
        column->width = OGR_Fld_GetWidth(field);
        column->needs_copy = sources->columns[c].origin == OJ_COLUMN_AGGREGATE;
    }
    rows->scratch = OGR_F_Create(defn);
    return rows->scratch != NULL ? OJ_OK : oj_fail_nomem(err, 1, 1024);
}

/* Makes GDAL create the table of a new layer and write its metadata. */
static oj_status sync_layer(OGRLayerH layer, struct oj_error *err)
{
    CPLErrorReset();
    return OGR_L_SyncToDisk(layer) == OGRERR_NONE
               ? OJ_OK
               : oj_fail(err, OJ_ERR_IO, "%s", CPLGetLastErrorMsg());
}

static void close_geopackage_writer(void *rows)
{
    struct geopackage_rows *w = rows;
    if (w == NULL)
        return;
    sqlite3_finalize(w->insert);
    sqlite3_finalize(w->compare);
    sqlite3_finalize(w->update);
    if (w->is_open)
        oj_sqlite_rows_unregister(w->db, w->name);
    if (w->scratch != NULL)
        OGR_F_Destroy(w->scratch);
    oj_layer_geometry_free(&w->work);
    oj_rtree_free(&w->tree);
    sqlite3_free(w->columns);
    CPLFree(w->index);
    CPLFree(w->drop);
    CPLFree(w->restore);
    for (int i = 0; w->column != NULL && i < w->n; i++)
        oj_free(w->column[i].copy);
    oj_free(w->column);
    oj_free(w->blob);
    oj_free(w);
}

static oj_status open_geopackage_writer(OGRLayerH layer, int is_update,
                                        struct oj_row_cursor *cursor,
                                        void **out, struct oj_error *err)
{
    const struct oj_write_options *options =
        oj_row_cursor_sources(cursor)->options;
    struct geopackage_rows *w;
    sqlite3 *db = oj_sqlite_of_dataset(options->dataset);
    int fits = 0;
    oj_status status;
    *out = NULL;
    if (db == NULL || !may_write_index_tables(db) || !is_layer_supported(layer))
        return OJ_OK;
    OJ_TRY(sync_layer(layer, err));
    OJ_NEW_ZEROED(w, 1, err);
    w->layer = layer;
    w->db = db;
    w->table = OGR_L_GetName(layer);
    w->fid = OGR_L_GetFIDColumn(layer);
    w->geometry = OGR_L_GetGeometryColumn(layer);
    w->cursor = cursor;
    w->cancel = options->cancel;
    w->box[0] = w->box[2] = (double)INFINITY;
    w->box[1] = w->box[3] = (double)-INFINITY;
    status = init_row_columns(w, OGR_L_GetLayerDefn(layer), err);
    if (status == OJ_OK)
        status = open_if_table_is_suitable(w, is_update, &fits, err);
    if (status == OJ_OK && fits)
        *out = w;
    else
        close_geopackage_writer(w);
    return status;
}

/* ---- rows ---------------------------------------------------------------- */

static oj_status insert_rows_of_answer(void *rows,
                                       struct oj_rows_written *written,
                                       struct oj_row_place *left, int *is_left,
                                       struct oj_error *err)
{
    struct geopackage_rows *w = rows;
    const struct oj_rows_written nothing = {0};
    int code;
    *written = nothing;
    w->written = written;
    w->has_row = 0;
    w->rows.status = OJ_OK;
    for (int i = 0; i < w->n; i++)
        oj_row_column_begin_answer(&w->column[i].from, w->cursor);
    code = sqlite3_step(w->insert);
    sqlite3_reset(w->insert);
    *left = w->place;
    *is_left = w->is_left;
    written->has_failed = code != SQLITE_DONE;
    written->failed_fid =
        oj_row_cursor_sources(w->cursor)->batch->flat.fid[w->place.row];
    if (code == SQLITE_DONE)
        return OJ_OK;
    if (w->rows.status != OJ_OK)
        return oj_fail(err, w->rows.status, "%s", w->rows.error.message);
    /* An error such as a full disk can end the transaction; nothing may be
     * written after that. */
    if ((code & 255) != SQLITE_CONSTRAINT || sqlite3_get_autocommit(w->db))
        return oj_sqlite_fail(w->db, "failed to execute insert", err);
    *is_left = 1; /* GDAL reports why the row is refused */
    return OJ_OK;
}

static oj_status update_row(void *rows, int64_t fid,
                            const struct oj_row_place *place, int *is_left,
                            struct oj_error *err)
{
    struct geopackage_rows *w = rows;
    int code;
    w->place = *place;
    w->shape.kind = -1;
    /* GDAL must change one row itself, so that it marks the layer as changed */
    w->is_left = w->n_by_gdal == 0;
    OJ_TRY(fetch_row_values(w, err));
    *is_left = w->is_left;
    if (w->is_left)
        return OJ_OK;
    sqlite3_bind_int64(w->update, 1, fid);
    w->returns_current_row = 1;
    code = sqlite3_step(w->update);
    sqlite3_reset(w->update);
    w->returns_current_row = 0;
    if (code != SQLITE_DONE &&
        ((code & 255) != SQLITE_CONSTRAINT || sqlite3_get_autocommit(w->db)))
        return oj_sqlite_fail(w->db, "failed to execute update", err);
    /* no such row, or SQLite refuses the change: GDAL reports why */
    *is_left = code != SQLITE_DONE || sqlite3_changes(w->db) != 1;
    return OJ_OK;
}

static oj_status add_box_of_ogr_geometry(struct geopackage_rows *w, int64_t fid,
                                         OGRGeometryH geometry,
                                         struct oj_error *err)
{
    OGREnvelope box;
    if (geometry == NULL || OGR_G_IsEmpty(geometry))
        return OJ_OK;
    OGR_G_GetEnvelope(geometry, &box);
    return add_box_to_rtree_and_extent(
        w, fid, (double[]){box.MinX, box.MaxX, box.MinY, box.MaxY}, err);
}

/* Called after GDAL wrote its first row. GDAL then has dropped its trigger that
 * counts rows; if another trigger on inserts remains, direct inserts are not
 * used, because with a trigger SQLite would read all our rows before it inserts
 * the first. */
static oj_status check_insert_triggers(struct geopackage_rows *w,
                                       struct oj_error *err)
{
    double n = 0;
    OJ_TRY(oj_sqlite_read_numbers(
        w->db, 1, &n, err,
        "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND "
        "lower(tbl_name) = lower(%Q) AND sql LIKE '%% AFTER INSERT ON %%'",
        w->table));
    w->is_blocked = n > 0;
    return OJ_OK;
}

/* Compares the current row with what GDAL wrote for feature fid: is_equal[0]:
 * the geometry, is_equal[1]: all other columns. */
static oj_status compare_with_row_of_gdal(struct geopackage_rows *w,
                                          int64_t fid, int is_equal[2],
                                          struct oj_error *err)
{
    int code;
    OJ_TRY(make_geometry_blob(w, err));
    w->returns_current_row = 1;
    w->rows.status = OJ_OK;
    sqlite3_bind_int64(w->compare, 1, fid);
    code = sqlite3_step(w->compare);
    for (int i = 0; i < 2; i++)
        is_equal[i] = code == SQLITE_ROW && sqlite3_column_int(w->compare, i);
    sqlite3_reset(w->compare);
    w->returns_current_row = 0;
    return code == SQLITE_ROW ? OJ_OK : oj_sqlite_fail_statement(w->db, err);
}

/* Called after GDAL wrote the current row, or changed an existing one
 * (w->shape.kind is then -1). Compares GDAL's row with ours, and decides which
 * columns and kinds of geometry this file writes from now on. */
static oj_status account_for_row_written_by_gdal(void *rows,
                                                 OGRFeatureH feature,
                                                 struct oj_error *err)
{
    struct geopackage_rows *w = rows;
    int is_equal[2], kind = w->shape.kind;
    int64_t fid = OGR_F_GetFID(feature);
    if (w->update == NULL && w->n_by_gdal == 0)
        OJ_TRY(check_insert_triggers(w, err));
    w->n_by_gdal++;
    if (fid == OGRNullFID) /* GDAL 3.6 does not return FID 0 */
        fid = sqlite3_last_insert_rowid(w->db);
    if (w->update == NULL)
        OJ_TRY(add_box_of_ogr_geometry(w, fid, OGR_F_GetGeometryRef(feature),
                                       err));
    OJ_TRY(compare_with_row_of_gdal(w, fid, is_equal, err));
    if (kind >= 0 && w->writer[kind] == UNSEEN)
        w->writer[kind] = is_equal[0] ? OURS : GDALS;
    for (int i = 0; i < w->n && !w->has_doubtful_text; i++)
    {
        struct row_column *column = &w->column[i];
        if (column->writer == UNSEEN && column->at != NULL)
            column->writer = is_equal[1] ? OURS : GDALS;
    }
    return OJ_OK;
}

/* Writes the extent of the layer with as many digits as GDAL does. */
static oj_status set_extent(const struct geopackage_rows *w,
                            struct oj_error *err)
{
    const double *b = w->box;
    if (!(b[0] <= b[1]))
        return OJ_OK;
    if (!isfinite(b[0]) || !isfinite(b[1]) || !isfinite(b[2]) ||
        !isfinite(b[3])) /* GDAL fails in this case, too */
        return oj_fail(err, OJ_ERR_IO,
                       "the extent of %s is not finite, because a geometry has "
                       "infinite coordinates: repair it, or leave its row out",
                       w->table);
    return oj_sqlite_run(w->db, err,
                         "UPDATE gpkg_contents SET min_x = %.18g, min_y = "
                         "%.18g, max_x = %.18g, max_y = %.18g WHERE "
                         "lower(table_name) = lower(%Q)",
                         b[0], b[2], b[1], b[3], w->table);
}

/* If GDAL maintains a row count for the table, sets it to the number of rows
 * that were there before, were inserted here or were written by GDAL. */
static oj_status update_feature_count(const struct geopackage_rows *w,
                                      struct oj_error *err)
{
    int64_t n_rows = w->n_before + w->n_rows + w->n_by_gdal;
    return !w->has_count || n_rows == 0
               ? OJ_OK
               : oj_sqlite_run(w->db, err,
                               "UPDATE gpkg_ogr_contents SET feature_count = "
                               "%lld WHERE lower(table_name) = lower(%Q)",
                               (long long)n_rows, w->table);
}

static oj_status write_rtree_count_and_extent(void *rows, int *has_file,
                                              struct oj_error *err)
{
    struct geopackage_rows *w = rows;
    *has_file = 0;
    if (w->update != NULL)
        return oj_sqlite_run(w->db, err, "%s", w->restore);
    OJ_TRY(sync_layer(w->layer, err));
    if (w->index != NULL)
    {
        OJ_TRY(oj_rtree_write(&w->tree, w->db, w->index, w->cancel, err));
        OJ_TRY(oj_sqlite_run(w->db, err, "%s", w->restore));
    }
    OJ_TRY(set_extent(w, err));
    OJ_TRY(update_feature_count(w, err));
    /* With an attribute filter, GDAL counts the rows of the table instead of
     * using an outdated count. */
    OGR_L_SetAttributeFilter(w->layer, "1 = 1");
    return OJ_OK;
}

static const struct oj_row_lane lane = {OJ_LANE_GEOPACKAGE,
                                        open_geopackage_writer,
                                        insert_rows_of_answer,
                                        update_row,
                                        account_for_row_written_by_gdal,
                                        write_rtree_count_and_extent,
                                        close_geopackage_writer};
const struct oj_row_lane *const oj_geopackage_rows = &lane;

#else

const struct oj_row_lane *const oj_geopackage_rows = NULL;

#endif
