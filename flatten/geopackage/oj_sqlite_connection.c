#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include "oj_sqlite_connection.h"

#include <cpl_error.h>

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

/* SQLite's functions, as found in GDAL's library. */
static struct
{
    int (*exec)(void *, const char *, void *, void *, char **);
    const char *(*errmsg)(void *);
    int (*get_autocommit)(void *);
    void (*interrupt)(void *);
    void *(*commit_hook)(void *, int (*)(void *), void *);
    void *(*rollback_hook)(void *, void (*)(void *), void *);
    int (*auto_extension)(void (*)(void));
    int (*cancel_auto_extension)(void (*)(void));
} sqlite;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int is_library_of_gdal;

/* Set when the SQLite library that was found calls our extension on this thread
 * while GDAL opens a database: GDAL then uses this library. Per thread, so that
 * connections opened by other threads do not count. */
static _Thread_local int was_callback_called;

/* ---- the library --------------------------------------------------------- */

static int find_sqlite_functions(void)
{
    const struct
    {
        const char *name;
        void *function;
    } wanted[] = {
        {"sqlite3_exec", &sqlite.exec},
        {"sqlite3_errmsg", &sqlite.errmsg},
        {"sqlite3_get_autocommit", &sqlite.get_autocommit},
        {"sqlite3_interrupt", &sqlite.interrupt},
        {"sqlite3_commit_hook", &sqlite.commit_hook},
        {"sqlite3_rollback_hook", &sqlite.rollback_hook},
        {"sqlite3_auto_extension", &sqlite.auto_extension},
        {"sqlite3_cancel_auto_extension", &sqlite.cancel_auto_extension}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
    {
        void *found = dlsym(RTLD_DEFAULT, wanted[i].name);
        if (found == NULL)
            return 0;
        memcpy(wanted[i].function, &found, sizeof found);
    }
    return 1;
}

static int mark_callback_called(void *db, char **text, const void *functions)
{
    (void)db;
    (void)text;
    (void)functions;
    was_callback_called = 1;
    return 0;
}

/* Opens a database in memory by the driver SQLite or GPKG, whichever exists. */
static GDALDatasetH open_database_in_memory(void)
{
    GDALDriverH driver = GDALGetDriverByName("SQLite");
    if (driver == NULL)
        driver = GDALGetDriverByName("GPKG");
    return driver != NULL
               ? GDALCreate(driver, ":memory:", 0, 0, 0, GDT_Unknown, NULL)
               : NULL;
}

static void check_gdal_uses_this_sqlite(void)
{
    void (*callback)(void) = (void (*)(void))mark_callback_called;
    GDALDatasetH dataset;
    if (!find_sqlite_functions() || sqlite.auto_extension(callback) != 0)
        return;
    was_callback_called = 0;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    dataset = open_database_in_memory();
    if (dataset != NULL)
        GDALClose(dataset);
    CPLPopErrorHandler();
    sqlite.cancel_auto_extension(callback);
    is_library_of_gdal = was_callback_called;
}

void *oj_sqlite_connection_of(GDALDatasetH dataset)
{
    GDALDriverH driver = GDALGetDatasetDriver(dataset);
    const char *name = driver != NULL ? GDALGetDescription(driver) : "";
    if ((strcmp(name, "GPKG") != 0 && strcmp(name, "SQLite") != 0) ||
        pthread_once(&once, check_gdal_uses_this_sqlite) != 0 ||
        !is_library_of_gdal)
        return NULL;
    return GDALGetInternalHandle(dataset, "SQLITE_HANDLE");
}

int oj_sqlite_connection_library_has(const char *name, void (*function)(void))
{
    void *found = dlsym(RTLD_DEFAULT, name);
    return memcmp(&found, &function, sizeof found) == 0;
}

/* ---- statements ---------------------------------------------------------- */

int oj_sqlite_connection_run(void *connection, const char *sql)
{
    return sqlite.exec(connection, sql, NULL, NULL, NULL) == 0;
}

int oj_sqlite_connection_in_transaction(void *connection)
{
    return !sqlite.get_autocommit(connection);
}

void oj_sqlite_connection_interrupt(void *connection)
{
    sqlite.interrupt(connection);
}

/* ---- reading ------------------------------------------------------------- */

/* BEGIN alone takes no lock: the transaction's state is fixed by the first
 * read. */
oj_status oj_sqlite_connection_begin_reading(void *connection,
                                             struct oj_error *err)
{
    oj_status status = OJ_OK;
    if (!oj_sqlite_connection_run(connection, "BEGIN") ||
        !oj_sqlite_connection_run(connection,
                                  "SELECT 1 FROM sqlite_master LIMIT 1"))
        status = oj_fail(err, OJ_ERR_IO, "%s", sqlite.errmsg(connection));
    if (status != OJ_OK)
        oj_sqlite_connection_end_reading(connection);
    return status;
}

void oj_sqlite_connection_end_reading(void *connection)
{
    if (oj_sqlite_connection_in_transaction(connection))
        (void)oj_sqlite_connection_run(connection, "COMMIT");
}

/* ---- writing ------------------------------------------------------------- */

static int refuse_commit_unless_allowed(void *user)
{
    const struct oj_sqlite_guard *guard = user;
    return !guard->may_commit || guard->is_undone ||
           CPLGetLastErrorType() == CE_Failure;
}

static void note_rollback(void *user)
{
    struct oj_sqlite_guard *guard = user;
    guard->is_undone = 1;
}

void oj_sqlite_connection_guard_commits(void *connection,
                                        struct oj_sqlite_guard *guard)
{
    sqlite.commit_hook(connection, refuse_commit_unless_allowed, guard);
    sqlite.rollback_hook(connection, note_rollback, guard);
}

void oj_sqlite_connection_release(void *connection)
{
    sqlite.commit_hook(connection, NULL, NULL);
    sqlite.rollback_hook(connection, NULL, NULL);
}
