#include "oj_gdal_sqlite.h"

#include "oj_sqlite_connection.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

sqlite3 *oj_sqlite_of_dataset(GDALDatasetH dataset)
{
    GDALDriverH driver = GDALGetDatasetDriver(dataset);
    return driver != NULL && strcmp(GDALGetDescription(driver), "GPKG") == 0 &&
                   oj_sqlite_connection_library_has(
                       "sqlite3_exec", (void (*)(void))sqlite3_exec)
               ? oj_sqlite_connection_of(dataset)
               : NULL;
}

/* ---- statements ---------------------------------------------------------- */

oj_status oj_sqlite_fail(sqlite3 *connection, const char *what,
                         struct oj_error *err)
{
    int code = sqlite3_errcode(connection) & 255;
    if (code == SQLITE_INTERRUPT)
        return oj_fail_cancelled(err);
    return oj_fail(err, code == SQLITE_NOMEM ? OJ_ERR_NOMEM : OJ_ERR_IO,
                   "%s: %s", what, sqlite3_errmsg(connection));
}

oj_status oj_sqlite_fail_statement(sqlite3 *connection, struct oj_error *err)
{
    const char *path = sqlite3_db_filename(connection, "main");
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    char what[300];
    snprintf(what, sizeof what, "a statement on the GeoPackage %.200s failed",
             slash != NULL  ? slash + 1
             : path != NULL ? path
                            : "in memory");
    return oj_sqlite_fail(connection, what, err);
}

static oj_status prepare_statement(sqlite3 *connection, sqlite3_stmt **out,
                                   struct oj_error *err, const char *format,
                                   va_list arguments)
{
    char *text = sqlite3_vmprintf(format, arguments);
    int code;
    if (text == NULL)
        return oj_fail(err, OJ_ERR_NOMEM,
                       "out of memory for an SQL statement: free memory");
    code = sqlite3_prepare_v3(connection, text, -1, SQLITE_PREPARE_PERSISTENT,
                              out, NULL);
    sqlite3_free(text);
    return code == SQLITE_OK ? OJ_OK
                             : oj_sqlite_fail_statement(connection, err);
}

oj_status oj_sqlite_prepare(sqlite3 *connection, sqlite3_stmt **out,
                            struct oj_error *err, const char *format, ...)
{
    va_list arguments;
    oj_status status;
    va_start(arguments, format);
    status = prepare_statement(connection, out, err, format, arguments);
    va_end(arguments);
    return status;
}

oj_status oj_sqlite_step(sqlite3_stmt *statement, struct oj_error *err)
{
    oj_status status = OJ_OK;
    if (sqlite3_step(statement) != SQLITE_DONE)
        status = oj_sqlite_fail_statement(sqlite3_db_handle(statement), err);
    sqlite3_reset(statement);
    return status;
}

oj_status oj_sqlite_run(sqlite3 *connection, struct oj_error *err,
                        const char *format, ...)
{
    va_list arguments;
    char *text;
    int code;
    va_start(arguments, format);
    text = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    if (text == NULL)
        return oj_fail(err, OJ_ERR_NOMEM,
                       "out of memory for an SQL statement: free memory");
    code = sqlite3_exec(connection, text, NULL, NULL, NULL);
    sqlite3_free(text);
    return code == SQLITE_OK ? OJ_OK
                             : oj_sqlite_fail_statement(connection, err);
}

oj_status oj_sqlite_read_numbers(sqlite3 *connection, int n, double *values,
                                 struct oj_error *err, const char *format, ...)
{
    sqlite3_stmt *statement = NULL;
    va_list arguments;
    oj_status status;
    int code = SQLITE_OK;
    va_start(arguments, format);
    status = prepare_statement(connection, &statement, err, format, arguments);
    va_end(arguments);
    if (status == OJ_OK)
        code = sqlite3_step(statement);
    for (int i = 0; code == SQLITE_ROW && i < n; i++)
        if (sqlite3_column_type(statement, i) != SQLITE_NULL)
            values[i] = sqlite3_column_double(statement, i);
    if (status == OJ_OK && code != SQLITE_ROW && code != SQLITE_DONE)
        status = oj_sqlite_fail_statement(connection, err);
    sqlite3_finalize(statement);
    return status;
}

/* ---- rows as a virtual table --------------------------------------------- */

struct row_table
{
    sqlite3_vtab base;
    struct oj_sqlite_rows *rows;
};

static struct oj_sqlite_rows *rows_of_cursor(sqlite3_vtab_cursor *cursor)
{
    return ((struct row_table *)cursor->pVtab)->rows;
}

static int connect_table(sqlite3 *connection, void *user, int n,
                         const char *const *words, sqlite3_vtab **out,
                         char **text)
{
    struct oj_sqlite_rows *rows = user;
    struct row_table *table;
    char *declaration = sqlite3_mprintf("CREATE TABLE x(%s)", rows->columns);
    int code = SQLITE_NOMEM;
    (void)n;
    (void)words;
    (void)text;
    if (declaration != NULL)
        code = sqlite3_declare_vtab(connection, declaration);
    sqlite3_free(declaration);
    if (code != SQLITE_OK)
        return code;
    table = sqlite3_malloc(sizeof *table);
    if (table == NULL)
        return SQLITE_NOMEM;
    memset(table, 0, sizeof *table);
    table->rows = rows;
    *out = &table->base;
    return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *table)
{
    sqlite3_free(table);
    return SQLITE_OK;
}

static int choose_virtual_table_cost(sqlite3_vtab *table,
                                     sqlite3_index_info *info)
{
    (void)table;
    info->estimatedCost = 1.0; /* low, so that SQLite makes this the outer table
                                  of every join */
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **out)
{
    (void)table;
    *out = sqlite3_malloc(sizeof **out);
    if (*out == NULL)
        return SQLITE_NOMEM;
    memset(*out, 0, sizeof **out);
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int advance_cursor(sqlite3_vtab_cursor *cursor)
{
    struct oj_sqlite_rows *rows = rows_of_cursor(cursor);
    rows->there = 0;
    rows->status = rows->next(rows->user, &rows->there, &rows->error);
    return rows->status == OJ_OK ? SQLITE_OK : SQLITE_ERROR;
}

static int begin_cursor(sqlite3_vtab_cursor *cursor, int number,
                        const char *text, int n, sqlite3_value **values)
{
    (void)number;
    (void)text;
    (void)n;
    (void)values;
    return advance_cursor(cursor);
}

static int is_at_end(sqlite3_vtab_cursor *cursor)
{
    return !rows_of_cursor(cursor)->there;
}

static int return_column_value(sqlite3_vtab_cursor *cursor, sqlite3_context *to,
                               int column)
{
    struct oj_sqlite_rows *rows = rows_of_cursor(cursor);
    rows->column(rows->user, column, to);
    return SQLITE_OK;
}

static int return_zero_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *rowid)
{
    (void)cursor;
    *rowid = 0;
    return SQLITE_OK;
}

static const sqlite3_module module = {.xConnect = connect_table,
                                      .xBestIndex = choose_virtual_table_cost,
                                      .xDisconnect = disconnect_table,
                                      .xOpen = open_cursor,
                                      .xClose = close_cursor,
                                      .xFilter = begin_cursor,
                                      .xNext = advance_cursor,
                                      .xEof = is_at_end,
                                      .xColumn = return_column_value,
                                      .xRowid = return_zero_rowid};

oj_status oj_sqlite_rows_register(sqlite3 *connection, const char *name,
                                  struct oj_sqlite_rows *rows,
                                  struct oj_error *err)
{
    return sqlite3_create_module(connection, name, &module, rows) == SQLITE_OK
               ? OJ_OK
               : oj_sqlite_fail(connection, "a table of rows", err);
}

void oj_sqlite_rows_unregister(sqlite3 *connection, const char *name)
{
    (void)sqlite3_create_module(connection, name, NULL, NULL);
}
