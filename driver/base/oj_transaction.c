#include "oj_transaction.h"

#include "../../flatten/geopackage/oj_sqlite_connection.h"
#include "oj_cancel.h"
#include "oj_message.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <ogr_api.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Option that is set to NO in a transaction unless the user has set it:
 * otherwise GDAL 3.6 builds large spatial indexes on a second thread in a
 * separate database, and commits our transaction to copy them into the file. */
static const char threaded_index[] = "OGR_GPKG_ALLOW_THREADED_RTREE";

int oj_transaction_recover(const char *name, const char *const *open_options)
{
    char journal[4096];
    struct stat info;
    GDALDatasetH dataset;
    if (snprintf(journal, sizeof journal, "%s-journal", name) >=
            (int)sizeof journal ||
        stat(journal, &info) != 0 || info.st_size == 0)
        return 0;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    dataset = GDALOpenEx(name, GDAL_OF_VECTOR | GDAL_OF_UPDATE, NULL,
                         open_options, NULL);
    GDALClose(dataset);
    CPLPopErrorHandler();
    return dataset != NULL;
}

/* Refuses commits that oj_transaction_commit() has not asked for. There is only
 * one transaction at a time, so one guard is enough. */
static struct oj_sqlite_guard guard;

/* The first GDAL error of the transaction, which may be why SQLite has rolled
 * it back; "" if there was none. */
static char first_error[512];

/* Forgets the GDAL errors reported so far, but keeps the first of them in
 * first_error. */
static void keep_first_error(void)
{
    char text[sizeof first_error];
    if (oj_message_take_errors(text, (int)sizeof text) > 0 &&
        first_error[0] == '\0')
        memcpy(first_error, text, sizeof text);
}

/* Makes the connection refuse commits until oj_transaction_commit(), and makes
 * a cancellation abort the current SQLite statement (e.g. one that builds an
 * index); the transaction is then rolled back. */
static oj_status guard_connection(void *connection, const char *name,
                                  struct oj_error *err)
{
    const struct oj_sqlite_guard closed = {0};
    guard = closed;
    oj_sqlite_connection_guard_commits(connection, &guard);
    if (!oj_sqlite_connection_in_transaction(connection))
        return oj_fail(err, OJ_ERR_IO,
                       "cannot begin a transaction in %s, because SQLite has "
                       "not begun it: end other programs that use it",
                       name);
    oj_cancel_set_interrupt_callback(oj_sqlite_connection_interrupt,
                                     connection);
    return OJ_OK;
}

oj_status oj_transaction_begin(GDALDatasetH dataset, const char *name,
                               struct oj_error *err)
{
    void *connection = oj_sqlite_connection_of(dataset);
    first_error[0] = '\0';
    oj_message_forget_errors();
    CPLErrorReset();
    if (CPLGetConfigOption(threaded_index, NULL) == NULL)
        CPLSetThreadLocalConfigOption(threaded_index, "NO");
    if (GDALDatasetStartTransaction(dataset, 0) != OGRERR_NONE)
        return oj_fail(err, OJ_ERR_IO,
                       "cannot begin a transaction in %s: %s (end other "
                       "programs that use it)",
                       name, CPLGetLastErrorMsg());
    return connection != NULL ? guard_connection(connection, name, err) : OJ_OK;
}

oj_status oj_transaction_flush(GDALDatasetH dataset, const char *name,
                               struct oj_error *err)
{
    char text[512];
    keep_first_error();
    CPLErrorReset();
    GDALFlushCache(dataset);
    if (oj_message_take_errors(text, (int)sizeof text) > 0)
        return oj_fail(err, OJ_ERR_IO, "writing to %s failed: %s", name, text);
    return OJ_OK;
}

static oj_status fail_commit(const char *name, const char *why,
                             struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO, "cannot commit to %s%s%s", name,
                   why[0] != '\0' ? ": " : "", why);
}

/* Commits. Afterwards the output is complete, and the guard is released: when
 * GDAL closes a SpatiaLite file, it writes the statistics of its layers by
 * statements of their own. */
static oj_status commit_guarded(GDALDatasetH dataset, void *connection,
                                const char *name, struct oj_error *err)
{
    OGRErr result;
    if (guard.is_undone || !oj_sqlite_connection_in_transaction(connection))
        return oj_fail(
            err, OJ_ERR_IO,
            "cannot commit to %s: SQLite has rolled the transaction back, so "
            "nothing of this run is in it: most often the disk is full; free "
            "space, then run again%s%s%s",
            name, first_error[0] != '\0' ? " (GDAL: " : "", first_error,
            first_error[0] != '\0' ? ")" : "");
    guard.may_commit = 1;
    result = GDALDatasetCommitTransaction(dataset);
    guard.may_commit = 0;
    if (result == OGRERR_NONE && !guard.is_undone &&
        !oj_sqlite_connection_in_transaction(connection))
    {
        oj_sqlite_connection_release(connection);
        return OJ_OK;
    }
    return fail_commit(name, CPLGetLastErrorMsg(), err);
}

oj_status oj_transaction_commit(GDALDatasetH dataset, const char *name,
                                struct oj_error *err)
{
    void *connection = oj_sqlite_connection_of(dataset);
    char text[512];
    OGRErr result;
    keep_first_error();
    CPLErrorReset();
    if (connection != NULL)
    {
        OJ_TRY(commit_guarded(dataset, connection, name, err));
    }
    else
    {
        result = GDALDatasetCommitTransaction(dataset);
        if (oj_message_take_errors(text, (int)sizeof text) > 0 ||
            result != OGRERR_NONE)
            return fail_commit(name, text, err);
    }
    oj_cancel_set_interrupt_callback(NULL, NULL);
    return OJ_OK;
}

void oj_transaction_roll_back(GDALDatasetH dataset)
{
    void *connection = oj_sqlite_connection_of(dataset);
    oj_cancel_set_interrupt_callback(NULL, NULL);
    if (connection != NULL)
    {
        /* GDALDatasetRollbackTransaction() would first write deferred changes,
         * so writing is disabled and SQLite itself rolls back. */
        (void)oj_sqlite_connection_run(connection, "PRAGMA query_only = ON");
        (void)oj_sqlite_connection_run(connection, "ROLLBACK");
        /* If the disk was full during the rollback, this read rolls back from
         * the journal. */
        (void)oj_sqlite_connection_run(connection, "PRAGMA schema_version");
    }
    else
    {
        GDALDatasetRollbackTransaction(dataset);
    }
    GDALClose(dataset);
}
