#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include "oj_transaction.h"

#include "oj_cancel.h"
#include "oj_gdal_driver.h"
#include "oj_message.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <ogr_api.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* GDAL 3.6 builds large spatial indexes on another thread in a database of
 * their own, and commits the transaction of ours to bring them in. */
static const char threaded_index[] = "OGR_GPKG_ALLOW_THREADED_RTREE";

typedef int (*execute_function)(void *, const char *, void *, void *, char **);

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

/* The connection under GDAL's feet, where it is SQLite's, and the function for
 * statements on it. GDAL brings the library along; it is looked up at run time,
 * so that it need not be installed for development. */
static void *find_sqlite_connection(GDALDatasetH dataset,
                                    execute_function *execute)
{
    if (!oj_driver_is(GDALGetDatasetDriver(dataset), "GPKG|SQLite"))
        return NULL;
    *(void **)execute = dlsym(RTLD_DEFAULT, "sqlite3_exec");
    if (*execute == NULL)
        return NULL;
    return GDALGetInternalHandle(dataset, "SQLITE_HANDLE");
}

static void make_sqlite_read_only(void *dataset)
{
    execute_function execute;
    void *connection = find_sqlite_connection(dataset, &execute);
    if (connection != NULL)
        (void)execute(connection, "PRAGMA query_only = ON", NULL, NULL, NULL);
}

/* A statement of GDAL's that takes long, as one that builds an index, ends with
 * an error when the run is interrupted, and the transaction is undone. */
static void register_interrupt(GDALDatasetH dataset)
{
    execute_function execute;
    void (*interrupt)(void *);
    void *connection = find_sqlite_connection(dataset, &execute);
    *(void **)&interrupt = dlsym(RTLD_DEFAULT, "sqlite3_interrupt");
    if (connection != NULL && interrupt != NULL)
        oj_cancel_interrupt_by(interrupt, connection);
}

oj_status oj_transaction_begin(GDALDatasetH dataset, const char *name,
                               struct oj_error *err)
{
    CPLErrorReset();
    if (CPLGetConfigOption(threaded_index, NULL) == NULL)
        CPLSetThreadLocalConfigOption(threaded_index, "NO");
    if (GDALDatasetStartTransaction(dataset, 0) != OGRERR_NONE)
        return oj_fail(err, OJ_ERR_IO, "cannot begin a transaction in %s: %s",
                       name, CPLGetLastErrorMsg());
    oj_message_on_error(make_sqlite_read_only, dataset);
    register_interrupt(dataset);
    return OJ_OK;
}

oj_status oj_transaction_flush(GDALDatasetH dataset, const char *name,
                               struct oj_error *err)
{
    char text[512];
    oj_message_forget_errors();
    CPLErrorReset();
    GDALFlushCache(dataset);
    if (oj_message_errors(text, (int)sizeof text) > 0)
        return oj_fail(err, OJ_ERR_IO, "writing to %s failed: %s", name, text);
    return OJ_OK;
}

oj_status oj_transaction_commit(GDALDatasetH dataset, const char *name,
                                struct oj_error *err)
{
    char text[512];
    OGRErr result;
    oj_message_forget_errors();
    CPLErrorReset();
    result = GDALDatasetCommitTransaction(dataset);
    if (oj_message_errors(text, (int)sizeof text) > 0 || result != OGRERR_NONE)
        return oj_fail(err, OJ_ERR_IO, "cannot commit to %s%s%s", name,
                       text[0] != '\0' ? ": " : "", text);
    oj_cancel_interrupt_by(NULL, NULL);
    oj_message_on_error(NULL, NULL);
    return OJ_OK;
}

void oj_transaction_drop(GDALDatasetH dataset)
{
    execute_function execute;
    void *connection = find_sqlite_connection(dataset, &execute);
    oj_cancel_interrupt_by(NULL, NULL);
    oj_message_on_error(NULL, NULL);
    if (connection != NULL)
    {
        /* GDAL's own way back begins with writing. */
        make_sqlite_read_only(dataset);
        (void)execute(connection, "ROLLBACK", NULL, NULL, NULL);
        /* What a full disk kept from being undone is undone by a reader. */
        (void)execute(connection, "PRAGMA schema_version", NULL, NULL, NULL);
    }
    else
    {
        GDALDatasetRollbackTransaction(dataset);
    }
    GDALClose(dataset);
}
