/** GDAL's own connection to an SQLite database (GeoPackage, SpatiaLite): one
 *  read transaction around all reading, and a guard for the connection that
 *  writes.
 *
 *  SQLite's functions are looked up at run time in GDAL's library, so this also
 *  works in builds without SQLite's header.  Use a connection only on the
 *  thread that uses its dataset. */
#ifndef OJ_SQLITE_CONNECTION_H
#define OJ_SQLITE_CONNECTION_H

#include "../base/oj_status.h"

#include <gdal.h>

/** Returns the connection, a sqlite3 *. NULL if the dataset's driver does not
 *  use SQLite, or if the SQLite library found is not GDAL's: two copies of
 *  SQLite in one process break each other's locks. This is tested once per
 *  process. */
void *oj_sqlite_connection_of(GDALDatasetH dataset);

/** Returns 1 if `function`, to which the caller is linked, is the function
 *  found under this name in GDAL's library. */
int oj_sqlite_connection_library_has(const char *name, void (*function)(void));

/** Runs statements. Returns 1, or 0 if one has failed. */
int oj_sqlite_connection_run(void *connection, const char *sql);

/** Returns 1 if a transaction is open; an error can end a transaction, too. */
int oj_sqlite_connection_in_transaction(void *connection);

/** Aborts the current statement, on any thread. */
void oj_sqlite_connection_interrupt(void *connection);

/** Begins a read transaction: until oj_sqlite_connection_end_reading(),
 *  everything that is read by pages or statements belongs to one state of the
 *  database. With a rollback journal, other connections cannot commit until
 *  then. After a failure, OJ_ERR_IO with SQLite's reason, no transaction has
 *  begun. */
OJ_MUST_USE oj_status oj_sqlite_connection_begin_reading(void *connection,
                                                         struct oj_error *err);
void oj_sqlite_connection_end_reading(void *connection);

/** What a guarded connection may do. */
struct oj_sqlite_guard
{
    int may_commit; /**< set by the owner; 0: commits are refused */
    /** set when a transaction was rolled back, by SQLite or by a statement;
     *  commits are then refused */
    int is_undone;
};

/** Guards a connection: it refuses every commit, of a transaction or of a
 *  single statement, unless guard->may_commit is set and GDAL's last error on
 *  the thread is not a failure. guard must outlive the connection, or its
 *  release. */
void oj_sqlite_connection_guard_commits(void *connection,
                                        struct oj_sqlite_guard *guard);

/** Removes the guard: the connection then commits as any other. */
void oj_sqlite_connection_release(void *connection);

#endif
