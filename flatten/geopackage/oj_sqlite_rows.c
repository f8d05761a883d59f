#include "oj_sqlite_rows.h"

#include "oj_sqlite_statement.h"

#include <stddef.h>
#include <string.h>

struct row_table
{
    sqlite3_vtab base;
    struct oj_sqlite_rows *rows;
};

static struct oj_sqlite_rows *rows_of(sqlite3_vtab_cursor *cursor)
{
    return ((struct row_table *)cursor->pVtab)->rows;
}

static int connect_table(sqlite3 *connection, void *user, int n,
                         const char *const *words, sqlite3_vtab **out,
                         char **text)
{
    struct oj_sqlite_rows *rows = user;
    sqlite3_str *declaration = sqlite3_str_new(connection);
    struct row_table *table;
    char *finished;
    int code = SQLITE_NOMEM;
    (void)n;
    (void)words;
    (void)text;
    for (int i = 0; i < rows->n_columns; i++)
        sqlite3_str_appendf(declaration, "%s c%d",
                            i == 0 ? "CREATE TABLE x(" : ",", i);
    sqlite3_str_appendall(declaration, ")");
    finished = sqlite3_str_finish(declaration);
    if (finished != NULL)
        code = sqlite3_declare_vtab(connection, finished);
    sqlite3_free(finished);
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

static int choose_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table;
    info->estimatedCost = 1.0; /* first in every join */
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

static int go_on(sqlite3_vtab_cursor *cursor)
{
    struct oj_sqlite_rows *rows = rows_of(cursor);
    rows->there = 0;
    rows->status = rows->next(rows->user, &rows->there, &rows->error);
    return rows->status == OJ_OK ? SQLITE_OK : SQLITE_ERROR;
}

static int begin(sqlite3_vtab_cursor *cursor, int number, const char *text,
                 int n, sqlite3_value **values)
{
    (void)number;
    (void)text;
    (void)n;
    (void)values;
    return go_on(cursor);
}

static int is_at_end(sqlite3_vtab_cursor *cursor)
{
    return !rows_of(cursor)->there;
}

static int give_column(sqlite3_vtab_cursor *cursor, sqlite3_context *to,
                       int column)
{
    struct oj_sqlite_rows *rows = rows_of(cursor);
    rows->column(rows->user, column, to);
    return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *rowid)
{
    (void)cursor;
    *rowid = 0;
    return SQLITE_OK;
}

static const sqlite3_module module = {.xConnect = connect_table,
                                      .xBestIndex = choose_index,
                                      .xDisconnect = disconnect_table,
                                      .xOpen = open_cursor,
                                      .xClose = close_cursor,
                                      .xFilter = begin,
                                      .xNext = go_on,
                                      .xEof = is_at_end,
                                      .xColumn = give_column,
                                      .xRowid = give_rowid};

oj_status oj_sqlite_rows_open(sqlite3 *connection, const char *name,
                              struct oj_sqlite_rows *rows, struct oj_error *err)
{
    return sqlite3_create_module(connection, name, &module, rows) == SQLITE_OK
               ? OJ_OK
               : oj_sqlite_fail(connection, "a table of rows", err);
}

void oj_sqlite_rows_close(sqlite3 *connection, const char *name)
{
    (void)sqlite3_create_module(connection, name, NULL, NULL);
}
