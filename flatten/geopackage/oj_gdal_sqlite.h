/** SQLite: GDAL's own library and connection, statements with failures as ours,
 *  rows of ours as a table.
 *
 *  A build without SQLite's header (OJ_HAVE_SQLITE is 0) has nothing of this.
 */
#ifndef OJ_GDAL_SQLITE_H
#define OJ_GDAL_SQLITE_H

#include "../base/oj_status.h"

#include <gdal.h>
#include <sqlite3.h>

/** GDAL's own connection to a GeoPackage, as oj_sqlite_connection_of(); NULL
 *  also where the library is not the one that we are linked with. */
sqlite3 *oj_sqlite_of(GDALDatasetH dataset);

/* ---- statements ---------------------------------------------------------- */

/** What failed last on the connection: OJ_ERR_IO, or OJ_ERR_CANCELLED after an
 *  interrupt, or OJ_ERR_NOMEM. */
oj_status oj_sqlite_fail(sqlite3 *connection, const char *what,
                         struct oj_error *err);

/** Runs statements that give no rows. The text is made as by
 *  sqlite3_mprintf(). */
OJ_MUST_USE oj_status oj_sqlite_run(sqlite3 *connection, struct oj_error *err,
                                    const char *format, ...);

/** A statement for sqlite3_finalize(). */
OJ_MUST_USE oj_status oj_sqlite_prepare(sqlite3 *connection, sqlite3_stmt **out,
                                        struct oj_error *err,
                                        const char *format, ...);

/** The first n values of the first row; those that are NULL, or without a row,
 *  stay as they are. */
OJ_MUST_USE oj_status oj_sqlite_numbers(sqlite3 *connection, int n,
                                        double *values, struct oj_error *err,
                                        const char *format, ...);

/** Runs a statement that gives no rows, and makes it ready for the next time.
 */
OJ_MUST_USE oj_status oj_sqlite_step(sqlite3_stmt *statement,
                                     struct oj_error *err);

/* ---- rows as a table ----------------------------------------------------- */

/** Where rows come from that INSERT INTO ... SELECT takes: one statement for
 *  many rows, which opens its tables and looks up the latest rowid once. (A
 *  quarter of the instructions of a statement for each row.) */
struct oj_sqlite_rows
{
    const char *columns; /**< their names, in SQL */

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
