/** GDAL's own connection to an SQLite database (GeoPackage, SpatiaLite): one
 *  read transaction for all readings, and a guard of the one that writes.
 *
 *  SQLite is looked up at run time among what GDAL brought along, so builds
 *  without its header have this, too.  A connection is used on the thread that
 *  uses the dataset.
 */
#ifndef OJ_SQLITE_CONNECTION_H
#define OJ_SQLITE_CONNECTION_H

#include "../base/oj_status.h"

#include <gdal.h>

/** The connection, a sqlite3; NULL where the dataset is of another driver, or
 *  the library that is found is not the one that GDAL uses: two copies in one
 *  process break each other's locks. GDAL is asked that once per process. */
void *oj_sqlite_connection_of(GDALDatasetH dataset);

/** 1 when a function of SQLite that a caller is linked with, of that name, is
 *  the one that was found. */
int oj_sqlite_connection_library_has(const char *name, void (*function)(void));

/** Runs statements; 0: they failed. What fails later is never reported. */
int oj_sqlite_connection_run(void *connection, const char *sql);

/** 1 between a BEGIN and its end, which an error can be. */
int oj_sqlite_connection_in_transaction(void *connection);

/** Ends a statement that another thread runs. */
void oj_sqlite_connection_interrupt(void *connection);

/** All that is read from now on, by pages or by statements, is of one state of
 *  the database, until oj_sqlite_connection_end_reading().  Under a rollback
 *  journal others cannot commit until then.  OJ_ERR_IO with SQLite's reason;
 *  nothing has begun then. */
OJ_MUST_USE oj_status oj_sqlite_connection_begin_reading(void *connection,
                                                         struct oj_error *err);
void oj_sqlite_connection_end_reading(void *connection);

/** What a guarded connection may do. One that is guarded stays so until it is
 *  closed. */
struct oj_sqlite_guard
{
    int may_commit; /**< set by the owner; 0: commits are refused */
    int is_undone;  /**< a transaction was rolled back since it was guarded, by
                         SQLite itself or by a statement: commits are refused */
};

/** From now on the connection commits nothing, neither a transaction nor a
 *  statement outside of one, unless the guard, which outlives it, lets it, and
 *  GDAL's last error on the thread is no failure. */
void oj_sqlite_connection_guard(void *connection,
                                struct oj_sqlite_guard *guard);

#endif
