#include "oj_index_triggers.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <ogr_api.h>

#include <string.h>

static oj_status execute(GDALDatasetH dataset, const char *statement,
                         struct oj_error *err)
{
    OGRLayerH result;
    CPLErrorReset();
    result = GDALDatasetExecuteSQL(dataset, statement, NULL, NULL);
    if (result != NULL)
        GDALDatasetReleaseResultSet(dataset, result);
    if (CPLGetLastErrorType() == CE_Failure)
        return oj_fail(err, OJ_ERR_IO, "'%.80s ...' failed: %s", statement,
                       CPLGetLastErrorMsg());
    return OJ_OK;
}

/* Names and statements of the triggers, in two lists of the same length. */
static oj_status find(GDALDatasetH dataset, const char *layer, char ***names,
                      char ***statements, struct oj_error *err)
{
    char *escaped = CPLEscapeString(layer, -1, CPLES_SQL);
    const char *query = CPLSPrintf(
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND "
        "lower(tbl_name) = lower('%s') AND name LIKE 'rtree_%%_update%%'",
        escaped);
    OGRLayerH result;
    OGRFeatureH row;
    CPLErrorReset();
    result = GDALDatasetExecuteSQL(dataset, query, NULL, NULL);
    CPLFree(escaped);
    if (result == NULL)
        return CPLGetLastErrorType() == CE_Failure
                   ? oj_fail(err, OJ_ERR_IO, "%s", CPLGetLastErrorMsg())
                   : OJ_OK;
    while ((row = OGR_L_GetNextFeature(result)) != NULL)
    {
        *names = CSLAddString(*names, OGR_F_GetFieldAsString(row, 0));
        *statements = CSLAddString(*statements, OGR_F_GetFieldAsString(row, 1));
        OGR_F_Destroy(row);
    }
    GDALDatasetReleaseResultSet(dataset, result);
    return OJ_OK;
}

static oj_status drop_all(GDALDatasetH dataset, char **names,
                          struct oj_error *err)
{
    for (int i = 0; names != NULL && names[i] != NULL; i++)
    {
        char *escaped = CPLEscapeString(names[i], -1, CPLES_SQLI);
        oj_status status =
            execute(dataset, CPLSPrintf("DROP TRIGGER \"%s\"", escaped), err);
        CPLFree(escaped);
        if (status != OJ_OK)
            return status;
    }
    return OJ_OK;
}

oj_status oj_index_triggers_drop(GDALDatasetH dataset, const char *layer,
                                 char ***statements, struct oj_error *err)
{
    GDALDriverH driver = GDALGetDatasetDriver(dataset);
    char **names = NULL;
    oj_status status;
    *statements = NULL;
    if (strcmp(GDALGetDescription(driver), "GPKG") != 0)
        return OJ_OK;
    status = find(dataset, layer, &names, statements, err);
    if (status == OJ_OK)
        status = drop_all(dataset, names, err);
    CSLDestroy(names);
    return status;
}

oj_status oj_index_triggers_restore(GDALDatasetH dataset, char **statements,
                                    struct oj_error *err)
{
    for (int i = 0; statements != NULL && statements[i] != NULL; i++)
        OJ_TRY(execute(dataset, statements[i], err));
    return OJ_OK;
}
