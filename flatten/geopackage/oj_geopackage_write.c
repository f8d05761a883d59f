#include "oj_geopackage_write.h"

#include "../base/oj_array.h"
#include "oj_geopackage_rtree.h"
#include "oj_sqlite.h"
#include "oj_sqlite_rows.h"
#include "oj_sqlite_statement.h"

#include <cpl_error.h>
#include <cpl_string.h>

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Columns of rows: FID, geometry, and from here on fields. */
enum
{
    FIRST_FIELD = 2
};

struct oj_geopackage_writer
{
    OGRLayerH layer;
    sqlite3 *db;
    const char *table, *fid, *geometry; /* the layer's */
    char *index;                        /* owned; its name; NULL: none */
    char **trigger_names;               /* owned: dropped, to be made again */
    char **triggers;                    /* owned: their texts */
    int32_t srs_id;
    sqlite3_stmt *insert, *compare, *find_box, *find_trigger, *update;
    const int *cancel;

    struct oj_gpkg_feed feed;
    struct oj_sqlite_rows rows; /* the feed's, as a table */
    char name[40];              /* of that table */
    int is_open;                /* it is there */
    int is_again;               /* it gives the row at hand, and no other */
    int has_row;                /* one was given and not yet taken */
    int is_blocked;             /* a trigger stands: rows are left to GDAL */
    struct oj_gpkg_row row;     /* that one */
    uint8_t *blob;              /* owned: its geometry */
    int64_t n_blob, cap_blob;

    struct oj_rtree tree;
    double box[4]; /* least and greatest x and y */
    int64_t n_rows, n_of_gdal, n_empty;
};

/* ---- open ---------------------------------------------------------------- */

/* The first value of the first row; 0 without one. */
static oj_status ask(sqlite3 *db, const char *text, const char *table,
                     int64_t *value, struct oj_error *err)
{
    sqlite3_stmt *statement = NULL;
    int code;
    OJ_TRY(oj_sqlite_prepare(db, &statement, err, text, table));
    code = sqlite3_step(statement);
    *value = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE
               ? OJ_OK
               : oj_sqlite_fail(db, "a statement failed", err);
}

static int is_known_type(OGRFieldType type)
{
    return type == OFTInteger || type == OFTInteger64 || type == OFTReal ||
           type == OFTString || type == OFTBinary || type == OFTDate ||
           type == OFTDateTime;
}

/* Defaults are for values that are not set, which is not told apart here. */
static int knows_fields(OGRLayerH layer)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    const char *fid = OGR_L_GetFIDColumn(layer);
    if (fid[0] == '\0' || OGR_L_GetGeometryColumn(layer)[0] == '\0' ||
        OGR_FD_GetGeomFieldCount(defn) != 1)
        return 0;
    for (int i = 0; i < OGR_FD_GetFieldCount(defn); i++)
    {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(defn, i);
        if (!is_known_type(OGR_Fld_GetType(field)) ||
            OGR_Fld_GetDefault(field) != NULL ||
            strcasecmp(OGR_Fld_GetNameRef(field), fid) == 0)
            return 0;
    }
    return 1;
}

/* A connection that may write what is behind the spatial index, inside of a
 * transaction. */
static int is_usable(sqlite3 *db)
{
    int is_defensive = 0;
#ifdef SQLITE_DBCONFIG_DEFENSIVE
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, -1, &is_defensive);
#endif
    return !is_defensive && !sqlite3_get_autocommit(db);
}

/* Those that keep the index up to date, by name. *fits is 0 when the table has
 * triggers that GDAL does not make. */
static oj_status find_triggers(struct oj_geopackage_writer *w, int *fits,
                               struct oj_error *err)
{
    sqlite3_stmt *statement = NULL;
    size_t n_index = strlen(w->index);
    int code;
    OJ_TRY(oj_sqlite_prepare(w->db, &statement, err,
                             "SELECT name, sql FROM sqlite_master WHERE type = "
                             "'trigger' AND lower(tbl_name) = lower(%Q)",
                             w->table));
    while ((code = sqlite3_step(statement)) == SQLITE_ROW)
    {
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        const char *text = (const char *)sqlite3_column_text(statement, 1);
        if (strncmp(name, w->index, n_index) == 0 && name[n_index] == '_')
        {
            w->trigger_names = CSLAddString(w->trigger_names, name);
            w->triggers = CSLAddString(w->triggers, text);
        }
        else if (strncmp(name, "trigger_insert_feature_count_", 29) != 0 &&
                 strncmp(name, "trigger_delete_feature_count_", 29) != 0)
            *fits = 0;
    }
    sqlite3_finalize(statement);
    return code == SQLITE_DONE
               ? OJ_OK
               : oj_sqlite_fail(w->db, "a statement failed", err);
}

static oj_status drop_triggers(const struct oj_geopackage_writer *w,
                               struct oj_error *err)
{
    for (int i = 0; i < CSLCount(w->trigger_names); i++)
        OJ_TRY(oj_sqlite_run(w->db, err, "DROP TRIGGER \"%w\"",
                             w->trigger_names[i]));
    return OJ_OK;
}

/* *fits is 0 for a table with triggers on updates, one of which can hang on
 * which columns are written, and without columns. */
static oj_status look_for_triggers(struct oj_geopackage_writer *w, int n,
                                   int *fits, struct oj_error *err)
{
    int64_t n_triggers;
    OJ_TRY(ask(w->db,
               "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND "
               "lower(tbl_name) = lower(%Q) AND sql LIKE '%%UPDATE%%' AND name "
               "NOT LIKE 'trigger_%%_feature_count_%%'",
               w->table, &n_triggers, err));
    *fits = n_triggers == 0 && n > 0;
    return OJ_OK;
}

/* *fits is 0 when the table is not a new one as GDAL makes it. */
static oj_status look_at_table(struct oj_geopackage_writer *w, int *fits,
                               struct oj_error *err)
{
    sqlite3 *db = w->db;
    int64_t n, srs_id;
    w->index = CPLStrdup(CPLSPrintf("rtree_%s_%s", w->table, w->geometry));
    OJ_TRY(ask(db, "SELECT 1 FROM \"%w\" LIMIT 1", w->table, &n, err));
    *fits = n == 0;
    OJ_TRY(ask(db,
               "SELECT srs_id FROM gpkg_geometry_columns WHERE "
               "lower(table_name) = lower(%Q)",
               w->table, &srs_id, err));
    w->srs_id = (int32_t)srs_id;
    OJ_TRY(find_triggers(w, fits, err));
    OJ_TRY(ask(db, "SELECT count(*) FROM sqlite_master WHERE name = %Q",
               w->index, &n, err));
    if (n == 1 && *fits)
    {
        OJ_TRY(
            ask(db, "SELECT 1 FROM \"%w_rowid\" LIMIT 1", w->index, &n, err));
        *fits = n == 0;
    }
    else
    {
        CPLFree(w->index);
        w->index = NULL;
    }
    return OJ_OK;
}

/* ---- rows as a table ----------------------------------------------------- */

static oj_status make_blob(struct oj_geopackage_writer *w, struct oj_error *err)
{
    const struct oj_gpkg_row *row = &w->row;
    int n_head;
    if (row->shape.kind <= 0)
        return OJ_OK;
    OJ_ROOM(w->blob, 0, row->n_wkb + OJ_GPKG_MOST_HEAD, w->cap_blob, err);
    n_head = oj_gpkg_head(&row->shape, w->srs_id, w->blob);
    memcpy(w->blob + n_head, row->wkb, (size_t)row->n_wkb);
    w->n_blob = n_head + row->n_wkb;
    return OJ_OK;
}

/* A row with a box has come into the layer. */
static oj_status add_box(struct oj_geopackage_writer *w, int64_t fid,
                         const double box[4], struct oj_error *err)
{
    for (int i = 0; i < 4; i += 2)
    {
        w->box[i] = box[i] < w->box[i] ? box[i] : w->box[i];
        w->box[i + 1] = box[i + 1] > w->box[i + 1] ? box[i + 1] : w->box[i + 1];
    }
    return w->index != NULL ? oj_rtree_add(&w->tree, fid, box, err) : OJ_OK;
}

/* The row at hand was inserted. */
static oj_status count_row(struct oj_geopackage_writer *w, struct oj_error *err)
{
    w->has_row = 0;
    w->n_rows++;
    w->n_empty += w->row.shape.is_empty;
    return w->row.shape.is_empty ? OJ_OK
                                 : add_box(w, sqlite3_last_insert_rowid(w->db),
                                           w->row.shape.box, err);
}

static oj_status next_row(void *user, int *there, struct oj_error *err)
{
    struct oj_geopackage_writer *w = user;
    if (w->is_again)
    {
        *there = w->is_again++ == 1;
        return OJ_OK;
    }
    if (w->has_row)
        OJ_TRY(count_row(w, err));
    if (w->n_rows % 1024 == 0)
        OJ_TRY(oj_check_cancel(w->cancel, err));
    OJ_TRY(w->feed.next(w->feed.user, &w->row, there, err));
    w->has_row = *there;
    *there = *there && !w->is_blocked;
    return *there ? make_blob(w, err) : OJ_OK;
}

static void give_value(void *user, int column, sqlite3_context *to)
{
    struct oj_geopackage_writer *w = user;
    if (column >= FIRST_FIELD)
        w->feed.value(w->feed.user, column - FIRST_FIELD, to);
    else if (column == 0 && w->row.fid != OGRNullFID)
        sqlite3_result_int64(to, w->row.fid);
    else if (column == 1 && w->row.shape.kind > 0)
        sqlite3_result_blob64(to, w->blob, (sqlite3_uint64)w->n_blob,
                              SQLITE_STATIC);
}

/* ---- statements ---------------------------------------------------------- */

static oj_status prepare(const struct oj_geopackage_writer *w,
                         sqlite3_str *text, sqlite3_stmt **out,
                         struct oj_error *err)
{
    char *finished = sqlite3_str_finish(text);
    oj_status status;
    if (finished == NULL)
        return oj_fail(err, OJ_ERR_NOMEM, "out of memory: a statement");
    status = oj_sqlite_prepare(w->db, out, err, "%s", finished);
    sqlite3_free(finished);
    return status;
}

/* Statements of rows that are a table themselves:
 *  INSERT INTO t (fid, geometry, a, ...) SELECT c0, c1, c2, ... FROM rows
 *  SELECT geometry IS c1, 1 AND a IS c2 ... FROM rows, t WHERE fid = ?1
 * The first keeps the rows before one that is refused. */
static oj_status prepare_rows(struct oj_geopackage_writer *w, const int *fields,
                              int n, struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(w->layer);
    sqlite3_str *insert = sqlite3_str_new(w->db);
    sqlite3_str *compare = sqlite3_str_new(w->db);
    oj_status status;
    sqlite3_str_appendf(insert, "INSERT OR FAIL INTO \"%w\" (\"%w\", \"%w\"",
                        w->table, w->fid, w->geometry);
    sqlite3_str_appendf(compare, "SELECT t.\"%w\" IS c1, 1", w->geometry);
    for (int i = 0; i < n; i++)
    {
        const char *name =
            OGR_Fld_GetNameRef(OGR_FD_GetFieldDefn(defn, fields[i]));
        sqlite3_str_appendf(insert, ", \"%w\"", name);
        sqlite3_str_appendf(compare, " AND t.\"%w\" IS r.c%d", name,
                            i + FIRST_FIELD);
    }
    sqlite3_str_appendf(insert, ") SELECT c0");
    for (int i = 1; i < n + FIRST_FIELD; i++)
        sqlite3_str_appendf(insert, ", c%d", i);
    sqlite3_str_appendf(insert, " FROM %s", w->name);
    sqlite3_str_appendf(compare,
                        " FROM %s r CROSS JOIN \"%w\" t WHERE t.\"%w\" = ?1",
                        w->name, w->table, w->fid);
    status = prepare(w, insert, &w->insert, err);
    if (status != OJ_OK)
    {
        sqlite3_free(sqlite3_str_finish(compare));
        return status;
    }
    return prepare(w, compare, &w->compare, err);
}

/* Boxes by GDAL's functions, as its triggers ask. */
static oj_status prepare_questions(struct oj_geopackage_writer *w,
                                   struct oj_error *err)
{
    const char *g = w->geometry;
    OJ_TRY(oj_sqlite_prepare(w->db, &w->find_trigger, err,
                             "SELECT 1 FROM sqlite_master WHERE type = "
                             "'trigger' AND lower(tbl_name) = lower(%Q) AND "
                             "sql LIKE '%% AFTER INSERT ON %%'",
                             w->table));
    return oj_sqlite_prepare(
        w->db, &w->find_box, err,
        "SELECT ST_MinX(\"%w\"), ST_MaxX(\"%w\"), ST_MinY(\"%w\"), "
        "ST_MaxY(\"%w\") FROM \"%w\" WHERE \"%w\" = ?1 AND \"%w\" NOT NULL AND "
        "NOT ST_IsEmpty(\"%w\")",
        g, g, g, g, w->table, w->fid, g, g);
}

static oj_status open_rows(struct oj_geopackage_writer *w, int n,
                           struct oj_error *err)
{
    /* Layers of a dataset can be written in turn, on one connection. */
    snprintf(w->name, sizeof w->name, "ogrjoin_rows_%llx",
             (unsigned long long)(uintptr_t)w);
    w->rows.n_columns = n + FIRST_FIELD;
    w->rows.next = next_row;
    w->rows.column = give_value;
    w->rows.user = w;
    OJ_TRY(oj_sqlite_rows_open(w->db, w->name, &w->rows, err));
    w->is_open = 1;
    return OJ_OK;
}

/* UPDATE t SET (a, ...) = (SELECT c2, ... FROM rows) WHERE fid = ?1 */
static oj_status prepare_update(struct oj_geopackage_writer *w,
                                const int *fields, int n, struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(w->layer);
    sqlite3_str *text = sqlite3_str_new(w->db);
    sqlite3_str_appendf(text, "UPDATE \"%w\" SET (", w->table);
    for (int i = 0; i < n; i++)
        sqlite3_str_appendf(
            text, "%s\"%w\"", i > 0 ? ", " : "",
            OGR_Fld_GetNameRef(OGR_FD_GetFieldDefn(defn, fields[i])));
    for (int i = 0; i < n; i++)
        sqlite3_str_appendf(text, "%s c%d", i > 0 ? "," : ") = (SELECT",
                            i + FIRST_FIELD);
    sqlite3_str_appendf(text, " FROM %s) WHERE \"%w\" = ?1", w->name, w->fid);
    return prepare(w, text, &w->update, err);
}

static oj_status begin(struct oj_geopackage_writer *w, int is_update,
                       const int *fields, int n, int *fits,
                       struct oj_error *err)
{
    int64_t n_tables;
    OJ_TRY(ask(w->db,
               "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND "
               "name = %Q",
               w->table, &n_tables, err));
    *fits = n_tables == 1 &&
            n + FIRST_FIELD <= sqlite3_limit(w->db, SQLITE_LIMIT_COLUMN, -1);
    if (*fits && is_update)
        OJ_TRY(look_for_triggers(w, n, fits, err));
    else if (*fits)
        OJ_TRY(look_at_table(w, fits, err));
    if (!*fits)
        return OJ_OK;
    OJ_TRY(open_rows(w, n, err));
    OJ_TRY(prepare_rows(w, fields, n, err));
    OJ_TRY(prepare_questions(w, err));
    if (is_update)
        return prepare_update(w, fields, n, err);
    return w->index != NULL ? drop_triggers(w, err) : OJ_OK;
}

oj_status oj_geopackage_write_open(GDALDatasetH dataset, OGRLayerH layer,
                                   int is_update, const int *fields, int n,
                                   const struct oj_gpkg_feed *feed,
                                   const int *cancel,
                                   struct oj_geopackage_writer **out,
                                   struct oj_error *err)
{
    struct oj_geopackage_writer *w;
    sqlite3 *db = oj_sqlite_of(dataset);
    int fits = 0;
    oj_status status;
    *out = NULL;
    if (db == NULL || !is_usable(db) || !knows_fields(layer))
        return OJ_OK;
    /* GDAL makes the tables of a new layer now, while they are empty. */
    CPLErrorReset();
    if (OGR_L_SyncToDisk(layer) != OGRERR_NONE)
        return oj_fail(err, OJ_ERR_IO, "%s", CPLGetLastErrorMsg());
    OJ_NEW_ZEROED(w, 1, err);
    w->layer = layer;
    w->db = db;
    w->table = OGR_L_GetName(layer);
    w->fid = OGR_L_GetFIDColumn(layer);
    w->geometry = OGR_L_GetGeometryColumn(layer);
    w->feed = *feed;
    w->cancel = cancel;
    w->box[0] = w->box[2] = (double)INFINITY;
    w->box[1] = w->box[3] = (double)-INFINITY;
    status = begin(w, is_update, fields, n, &fits, err);
    *out = status == OJ_OK && fits ? w : NULL;
    if (*out == NULL)
        oj_geopackage_write_close(w);
    return status;
}

void oj_geopackage_write_close(struct oj_geopackage_writer *w)
{
    if (w == NULL)
        return;
    sqlite3_finalize(w->insert);
    sqlite3_finalize(w->compare);
    sqlite3_finalize(w->find_box);
    sqlite3_finalize(w->find_trigger);
    sqlite3_finalize(w->update);
    if (w->is_open)
        oj_sqlite_rows_close(w->db, w->name);
    oj_rtree_free(&w->tree);
    CPLFree(w->index);
    CSLDestroy(w->trigger_names);
    CSLDestroy(w->triggers);
    oj_free(w->blob);
    oj_free(w);
}

/* ---- rows ---------------------------------------------------------------- */

oj_status oj_geopackage_write_rows(struct oj_geopackage_writer *w,
                                   int *is_refused, struct oj_error *err)
{
    int code;
    /* With a trigger SQLite takes all rows before it inserts the first. GDAL
     * sets the one that counts rows aside when it writes one. */
    w->is_blocked = sqlite3_step(w->find_trigger) != SQLITE_DONE;
    sqlite3_reset(w->find_trigger);
    w->has_row = 0;
    w->rows.status = OJ_OK;
    code = sqlite3_step(w->insert);
    sqlite3_reset(w->insert);
    *is_refused = w->has_row; /* while blocked */
    if (code == SQLITE_DONE)
        return OJ_OK;
    if (w->rows.status != OJ_OK)
        return oj_fail(err, w->rows.status, "%s", w->rows.error.message);
    /* A full disk and the like can end the transaction: nothing may follow. */
    if ((code & 255) != SQLITE_CONSTRAINT || sqlite3_get_autocommit(w->db))
        return oj_sqlite_fail(w->db, "failed to execute insert", err);
    *is_refused = 1;
    return OJ_OK;
}

oj_status oj_geopackage_update_row(struct oj_geopackage_writer *w, int64_t fid,
                                   int *is_refused, struct oj_error *err)
{
    int code;
    sqlite3_bind_int64(w->update, 1, fid);
    w->is_again = 1;
    code = sqlite3_step(w->update);
    sqlite3_reset(w->update);
    w->is_again = 0;
    if (code != SQLITE_DONE &&
        ((code & 255) != SQLITE_CONSTRAINT || sqlite3_get_autocommit(w->db)))
        return oj_sqlite_fail(w->db, "failed to execute update", err);
    *is_refused = code != SQLITE_DONE || sqlite3_changes(w->db) != 1;
    return OJ_OK;
}

int64_t oj_geopackage_rows_written(const struct oj_geopackage_writer *w,
                                   int64_t *n_empty)
{
    *n_empty = w->n_empty;
    return w->n_rows;
}

/* The box that GDAL's functions give for the row, if any. */
static oj_status take_box(struct oj_geopackage_writer *w, int64_t fid,
                          struct oj_error *err)
{
    double box[4];
    int code;
    sqlite3_bind_int64(w->find_box, 1, fid);
    code = sqlite3_step(w->find_box);
    for (int i = 0; i < 4 && code == SQLITE_ROW; i++)
        box[i] = sqlite3_column_double(w->find_box, i);
    sqlite3_reset(w->find_box);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return oj_sqlite_fail(w->db, "a statement failed", err);
    return code == SQLITE_ROW ? add_box(w, fid, box, err) : OJ_OK;
}

oj_status oj_geopackage_take_row(struct oj_geopackage_writer *w,
                                 const struct oj_gpkg_row *row, int64_t fid,
                                 int is_equal[2], struct oj_error *err)
{
    int code;
    w->n_of_gdal++;
    if (fid == OGRNullFID) /* GDAL 3.6 forgets 0 */
        fid = sqlite3_last_insert_rowid(w->db);
    OJ_TRY(take_box(w, fid, err));
    w->row = *row;
    w->is_again = 1;
    w->rows.status = OJ_OK;
    OJ_TRY(make_blob(w, err));
    sqlite3_bind_int64(w->compare, 1, fid);
    code = sqlite3_step(w->compare);
    for (int i = 0; i < 2; i++)
        is_equal[i] = code == SQLITE_ROW && sqlite3_column_int(w->compare, i);
    sqlite3_reset(w->compare);
    w->is_again = 0;
    return code == SQLITE_ROW || code == SQLITE_DONE
               ? OJ_OK
               : oj_sqlite_fail(w->db, "a statement failed", err);
}

/* ---- finish -------------------------------------------------------------- */

static oj_status restore_triggers(const struct oj_geopackage_writer *w,
                                  struct oj_error *err)
{
    for (int i = 0; i < CSLCount(w->trigger_names); i++)
    {
        int64_t n;
        OJ_TRY(ask(w->db,
                   "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' "
                   "AND name = %Q",
                   w->trigger_names[i], &n, err));
        if (n == 0)
            OJ_TRY(oj_sqlite_run(w->db, err, "%s", w->triggers[i]));
    }
    return OJ_OK;
}

/* In the digits that GDAL's own statement has. */
static oj_status set_extent(const struct oj_geopackage_writer *w,
                            struct oj_error *err)
{
    const double *b = w->box;
    if (!(b[0] <= b[1]))
        return OJ_OK;
    if (!isfinite(b[0]) || !isfinite(b[1]) || !isfinite(b[2]) ||
        !isfinite(b[3])) /* GDAL fails, too */
        return oj_fail(err, OJ_ERR_IO, "the extent of %s is not finite",
                       w->table);
    return oj_sqlite_run(w->db, err,
                         "UPDATE gpkg_contents SET min_x = %.18g, min_y = "
                         "%.18g, max_x = %.18g, max_y = %.18g WHERE "
                         "lower(table_name) = lower(%Q)",
                         b[0], b[2], b[1], b[3], w->table);
}

/* GDAL counted the rows that it wrote itself; where it keeps no count there is
 * none. */
static oj_status set_count(const struct oj_geopackage_writer *w,
                           struct oj_error *err)
{
    int64_t n, n_rows = w->n_rows + w->n_of_gdal;
    OJ_TRY(ask(w->db, "SELECT count(*) FROM sqlite_master WHERE name = %Q",
               "gpkg_ogr_contents", &n, err));
    return n == 0 || n_rows == 0
               ? OJ_OK
               : oj_sqlite_run(w->db, err,
                               "UPDATE gpkg_ogr_contents SET feature_count = "
                               "%lld WHERE lower(table_name) = lower(%Q)",
                               (long long)n_rows, w->table);
}

oj_status oj_geopackage_write_finish(struct oj_geopackage_writer *w,
                                     struct oj_error *err)
{
    CPLErrorReset();
    if (OGR_L_SyncToDisk(w->layer) != OGRERR_NONE)
        return oj_fail(err, OJ_ERR_IO, "%s", CPLGetLastErrorMsg());
    if (w->index != NULL)
        OJ_TRY(oj_rtree_write(&w->tree, w->db, w->index, w->cancel, err));
    OJ_TRY(restore_triggers(w, err));
    OJ_TRY(set_extent(w, err));
    OJ_TRY(set_count(w, err));
    /* Under a condition the layer counts what is in the table. */
    OGR_L_SetAttributeFilter(w->layer, "1 = 1");
    return OJ_OK;
}
