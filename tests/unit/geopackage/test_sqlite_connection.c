/* GDAL's connection to a database. Tests which commits a guard allows, which
 * state a reader sees while others write, and what the error is if SQLite has
 * rolled a transaction back.
 * Kind: unit. */
#include "../layer_copy.h"

#include "../../../driver/base/oj_message.h"
#include "../../../driver/base/oj_transaction.h"
#include "../../../flatten/geopackage/oj_sqlite_connection.h"

#include <stdio.h>
#include <unistd.h>

static const char *file_name(const char *end)
{
    static char name[100];
    CPLsnprintf(name, sizeof name, "test_sqlite_connection_%d.%s",
                (int)getpid(), end);
    return name;
}

/* Makes a database with three rows. It has no spatial index, because the
 * triggers of one would count as statements, too. */
static GDALDatasetH make_database(const char *driver, const char *end)
{
    GDALDatasetH dataset;
    VSIUnlink(file_name(end));
    dataset = make_layer(driver, file_name(end), 1, wkbNone, NULL);
    for (int i = 0; i < 3; i++)
        add_row(first_layer(dataset), i, NULL);
    return reopen(dataset, file_name(end));
}

static GDALDatasetH open_database(const char *end, int flags)
{
    GDALDatasetH dataset = GDALOpenEx(
        file_name(end), GDAL_OF_VECTOR | (unsigned)flags, NULL, NULL, NULL);
    ck_assert_ptr_nonnull(dataset);
    return dataset;
}

static int64_t count_rows(const char *end)
{
    GDALDatasetH dataset = open_database(end, GDAL_OF_READONLY);
    OGRLayerH result = GDALDatasetExecuteSQL(
        dataset, "SELECT count(*) FROM things", NULL, NULL);
    OGRFeatureH feature = OGR_L_GetNextFeature(result);
    int64_t n = OGR_F_GetFieldAsInteger64(feature, 0);
    OGR_F_Destroy(feature);
    GDALDatasetReleaseResultSet(dataset, result);
    GDALClose(dataset);
    return n;
}

static const char delete_one[] =
    "DELETE FROM things WHERE rowid = (SELECT min(rowid) FROM things)";

TEST_LOOP(unit_guard_refuses_commits, 0, 2)
{
    const char *end = _i == 0 ? "gpkg" : "sqlite";
    struct oj_sqlite_guard guard = {0};
    GDALDatasetH dataset;
    void *connection;
    GDALClose(make_database(_i == 0 ? "GPKG" : "SQLite", end));
    dataset = open_database(end, GDAL_OF_UPDATE);
    connection = oj_sqlite_connection_of(dataset);
    ck_assert_ptr_nonnull(connection);
    ck_assert(!oj_sqlite_connection_in_transaction(connection));
    ck_assert(oj_sqlite_connection_run(connection, "BEGIN"));
    oj_sqlite_connection_guard_commits(connection, &guard);
    ck_assert(oj_sqlite_connection_in_transaction(connection));
    ck_assert(oj_sqlite_connection_run(connection, delete_one));

    /* SQLite's own rollback after a failed write, and GDAL's rollback after
     * that */
    ck_assert(oj_sqlite_connection_run(connection, "ROLLBACK"));
    ck_assert_int_eq(guard.is_undone, 1);
    ck_assert(!oj_sqlite_connection_run(connection, delete_one));
    guard.may_commit = 1;
    ck_assert(!oj_sqlite_connection_run(connection, delete_one));
    ck_assert(oj_sqlite_connection_run(connection, "BEGIN"));
    ck_assert(oj_sqlite_connection_run(connection, delete_one));
    ck_assert(!oj_sqlite_connection_run(connection, "COMMIT"));
    ck_assert_int_eq(count_rows(end), 3);

    /* no commit after an error of GDAL, and no commit without permission */
    guard.is_undone = 0;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    CPLError(CE_Failure, CPLE_AppDefined, "a failure");
    CPLPopErrorHandler();
    ck_assert(!oj_sqlite_connection_run(connection, delete_one));
    CPLErrorReset();
    guard.is_undone = guard.may_commit = 0;
    ck_assert(!oj_sqlite_connection_run(connection, delete_one));
    guard.is_undone = 0;
    guard.may_commit = 1;
    ck_assert(oj_sqlite_connection_run(connection, delete_one));
    GDALClose(dataset);
    ck_assert_int_eq(count_rows(end), 2);
    VSIUnlink(file_name(end));
}

static int64_t count_features(GDALDatasetH dataset)
{
    int64_t n = 0;
    OGRFeatureH feature;
    OGR_L_ResetReading(first_layer(dataset));
    while ((feature = OGR_L_GetNextFeature(first_layer(dataset))) != NULL)
    {
        OGR_F_Destroy(feature);
        n++;
    }
    return n;
}

TEST(unit_reading_sees_one_state)
{
    struct oj_error err;
    char other[120];
    GDALDatasetH reader, writer;
    void *connection;
    GDALClose(make_database("GPKG", "gpkg"));
    writer = open_database("gpkg", GDAL_OF_UPDATE);
    ck_assert(oj_sqlite_connection_run(oj_sqlite_connection_of(writer),
                                       "PRAGMA journal_mode = wal"));
    reader = open_database("gpkg", GDAL_OF_READONLY);
    connection = oj_sqlite_connection_of(reader);
    ck_assert_int_eq(oj_sqlite_connection_begin_reading(connection, &err),
                     OJ_OK);
    for (int i = 0; i < 2; i++)
    {
        ck_assert(oj_sqlite_connection_run(oj_sqlite_connection_of(writer),
                                           delete_one));
        ck_assert_int_eq(count_features(reader), 3);
    }
    oj_sqlite_connection_end_reading(connection);
    ck_assert_int_eq(count_features(reader), 1);
    GDALClose(reader);
    GDALClose(writer);
    VSIUnlink(file_name("gpkg"));
    CPLsnprintf(other, sizeof other, "%s-wal", file_name("gpkg"));
    VSIUnlink(other);
    CPLsnprintf(other, sizeof other, "%s-shm", file_name("gpkg"));
    VSIUnlink(other);
}

/* The message names the first error of GDAL in the transaction, before or after
 * deferred changes are written, and none if there was none. */
TEST_LOOP(unit_commit_after_a_rollback, 0, 3)
{
    static struct oj_message_list list;
    struct oj_message_sink sink;
    struct oj_error err;
    GDALDatasetH dataset;
    GDALClose(make_database("GPKG", "gpkg"));
    dataset = open_database("gpkg", GDAL_OF_UPDATE);
    oj_message_redirect_to_list(&list, &sink);
    ck_assert_int_eq(oj_transaction_begin(dataset, "a.gpkg", &err), OJ_OK);
    ck_assert(
        oj_sqlite_connection_run(oj_sqlite_connection_of(dataset), "ROLLBACK"));
    if (_i == 1)
        CPLError(CE_Failure, CPLE_FileIO, "disk I/O error");
    ck_assert_int_eq(oj_transaction_flush(dataset, "a.gpkg", &err), OJ_OK);
    if (_i == 2)
        CPLError(CE_Failure, CPLE_FileIO, "disk I/O error");
    ck_assert_int_eq(oj_transaction_commit(dataset, "a.gpkg", &err), OJ_ERR_IO);
    oj_transaction_roll_back(dataset);
    oj_message_end_redirection();
    ck_assert_ptr_nonnull(
        strstr(err.message, "cannot commit to a.gpkg: SQLite has rolled the "
                            "transaction back"));
    ck_assert_int_eq(strstr(err.message, "(GDAL: disk I/O error)") != NULL,
                     _i > 0);
    ck_assert_int_eq(strstr(err.message, "GDAL") != NULL, _i > 0);
    ck_assert_int_eq(count_rows("gpkg"), 3);
    VSIUnlink(file_name("gpkg"));
}

TEST(unit_others_have_no_connection)
{
    GDALDatasetH dataset = make_layer("Memory", "", 1, wkbPoint, NULL);
    ck_assert_ptr_null(oj_sqlite_connection_of(dataset));
    GDALClose(dataset);
}

int main(void)
{
    tests_open("geopackage");
    GDALAllRegister();
    return tests_run();
}
