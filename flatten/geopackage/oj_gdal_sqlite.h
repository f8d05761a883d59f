/** SQLite through GDAL's own library and connection: statements with our
 *  errors, and rows of ours as a virtual table.
 *
 *  Empty in a build without SQLite's header (OJ_HAVE_SQLITE is 0).
 */
#ifndef OJ_GDAL_SQLITE_H
#define OJ_GDAL_SQLITE_H

#include "../base/oj_status.h"

#include <gdal.h>
#include <sqlite3.h>

/** Returns GDAL's own connection to a GeoPackage (see
 *  oj_sqlite_connection_of()); NULL also if GDAL uses another copy of SQLite
 *  than the one linked here. */
sqlite3 *oj_sqlite_of_dataset(GDALDatasetH dataset);

/* ---- statements ---------------------------------------------------------- */

/** Fails with the last error of the connection: OJ_ERR_IO, OJ_ERR_CANCELLED
 *  after an interrupt, or OJ_ERR_NOMEM. */
oj_status oj_sqlite_fail(sqlite3 *connection, const char *what,
                         struct oj_error *err);

/** As oj_sqlite_fail(), with a message that names the file of the connection.
 */
oj_status oj_sqlite_fail_statement(sqlite3 *connection, struct oj_error *err);

/** Runs statements without result rows. The text is formatted by
 *  sqlite3_mprintf(). */
OJ_MUST_USE oj_status oj_sqlite_run(sqlite3 *connection, struct oj_error *err,
                                    const char *format, ...);

/** Prepares a statement; free it by sqlite3_finalize(). */
OJ_MUST_USE oj_status oj_sqlite_prepare(sqlite3 *connection, sqlite3_stmt **out,
                                        struct oj_error *err,
                                        const char *format, ...);

/** Reads the first n columns of the first result row. values stays unchanged
 *  where a column is NULL, or if there is no row. */
OJ_MUST_USE oj_status oj_sqlite_read_numbers(sqlite3 *connection, int n,
                                             double *values,
                                             struct oj_error *err,
                                             const char *format, ...);

/** Runs a statement without result rows and resets it. */
OJ_MUST_USE oj_status oj_sqlite_step(sqlite3_stmt *statement,
                                     struct oj_error *err);

/* ---- rows as a virtual table --------------------------------------------- */

/** A source of rows for INSERT INTO ... SELECT. One statement for many rows
 *  opens its tables and looks up the last rowid only once: a quarter of the
 *  instructions of one statement per row. */
struct oj_sqlite_rows
{
    const char *columns; /**< column definitions, in SQL */

    /** Advances to the next row; *there is 0 after the last one. When it is
     *  called, SQLite has inserted the previous row. */
    oj_status (*next)(void *user, int *there, struct oj_error *err);

    /** Passes the value of a column to SQLite, which may borrow it until
     *  next(). */
    void (*column)(void *user, int column, sqlite3_context *to);
    void *user;

    /** Set when next() fails. Set it to OJ_OK before running a statement. */
    oj_status status;
    struct oj_error error;
    int there;
};

/** Registers rows as a virtual table with this name. rows must outlive it. */
OJ_MUST_USE oj_status oj_sqlite_rows_register(sqlite3 *connection,
                                              const char *name,
                                              struct oj_sqlite_rows *rows,
                                              struct oj_error *err);

/** Unregisters the virtual table. No statement may use it any more. */
void oj_sqlite_rows_unregister(sqlite3 *connection, const char *name);

#endif
