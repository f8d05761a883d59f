#include "oj_sqlite.h"

#include <cpl_error.h>

#include <pthread.h>
#include <sqlite3.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int is_gdals;

/* Connections of other threads are none of GDAL's that is looked at. */
static _Thread_local int was_called;

static int note_connection(sqlite3 *db, char **text, const void *functions)
{
    (void)db;
    (void)text;
    (void)functions;
    was_called = 1;
    return SQLITE_OK;
}

static void ask_gdal(void)
{
    static const char *const drivers[] = {"SQLite", NULL};
    void (*callback)(void) = (void (*)(void))note_connection;
    GDALDatasetH dataset;
    if (sqlite3_auto_extension(callback) != SQLITE_OK)
        return;
    was_called = 0;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    dataset = GDALOpenEx(":memory:", GDAL_OF_VECTOR | GDAL_OF_UPDATE, drivers,
                         NULL, NULL);
    if (dataset != NULL)
        GDALClose(dataset);
    CPLPopErrorHandler();
    sqlite3_cancel_auto_extension(callback);
    is_gdals = was_called;
}

int oj_sqlite_is_gdals(void)
{
    return pthread_once(&once, ask_gdal) == 0 && is_gdals;
}

struct sqlite3 *oj_sqlite_of(GDALDatasetH dataset)
{
    GDALDriverH driver = GDALGetDatasetDriver(dataset);
    if (driver == NULL || strcmp(GDALGetDescription(driver), "GPKG") != 0 ||
        !oj_sqlite_is_gdals())
        return NULL;
    return GDALGetInternalHandle(dataset, "SQLITE_HANDLE");
}
