/** Rows of ours as a table of SQLite, for INSERT INTO ... SELECT: one statement
 *  for many rows, which opens its tables and looks up the latest rowid once.
 *  (A quarter of the instructions of a statement for each row.)
 */
#ifndef OJ_SQLITE_ROWS_H
#define OJ_SQLITE_ROWS_H

#include "../base/oj_status.h"

#include <sqlite3.h>

/** Where rows come from. */
struct oj_sqlite_rows
{
    int n_columns; /**< called c0, c1, ... */

    /** Goes to the next row; *there is 0 after the last. The row before it was
     *  taken. */
    oj_status (*next)(void *user, int *there, struct oj_error *err);

    /** Gives the value of a column to SQLite; what it points at lasts until
     *  next(). */
    void (*column)(void *user, int column, sqlite3_context *to);
    void *user;

    /** Set by next() where that fails; zeroed before a statement is run. */
    oj_status status;
    struct oj_error error;
    int there;
};

/** Makes rows, which outlive this, a table of that name on the connection. */
OJ_MUST_USE oj_status oj_sqlite_rows_open(sqlite3 *connection, const char *name,
                                          struct oj_sqlite_rows *rows,
                                          struct oj_error *err);

/** No statement may use it any more. */
void oj_sqlite_rows_close(sqlite3 *connection, const char *name);

#endif
