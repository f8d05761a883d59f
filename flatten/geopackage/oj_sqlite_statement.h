/** Statements of SQLite, with its failures as ours. */
#ifndef OJ_SQLITE_STATEMENT_H
#define OJ_SQLITE_STATEMENT_H

#include "../base/oj_status.h"

#include <sqlite3.h>

/** What failed last on the connection: OJ_ERR_IO, or OJ_ERR_CANCELLED after an
 *  interrupt, or OJ_ERR_NOMEM. */
oj_status oj_sqlite_fail(sqlite3 *connection, const char *what,
                         struct oj_error *err);

/** Runs a statement that gives no rows. The text is made as by
 *  sqlite3_mprintf(). */
OJ_MUST_USE oj_status oj_sqlite_run(sqlite3 *connection, struct oj_error *err,
                                    const char *format, ...);

/** A statement for sqlite3_finalize(). */
OJ_MUST_USE oj_status oj_sqlite_prepare(sqlite3 *connection, sqlite3_stmt **out,
                                        struct oj_error *err,
                                        const char *format, ...);

/** Runs a statement that gives no rows, and makes it ready for the next time.
 */
OJ_MUST_USE oj_status oj_sqlite_step(sqlite3_stmt *statement,
                                     struct oj_error *err);

#endif
