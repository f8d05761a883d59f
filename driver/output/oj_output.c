#include "oj_output.h"

#include "../base/oj_cancel.h"
#include "../base/oj_driver.h"
#include "../base/oj_message.h"
#include "../base/oj_transaction.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Text formats are counted by reading them again; only up to so many rows. */
enum
{
    MAX_SLOW_COUNT = 1000000
};

static oj_status fail_gdal(struct oj_error *err, const char *what,
                           const char *path)
{
    return oj_fail(err, OJ_ERR_IO, "%s %s%s%s", what, path,
                   CPLGetLastErrorMsg()[0] != '\0' ? ": " : "",
                   CPLGetLastErrorMsg());
}

/* New files are written in a transaction, too: it is faster. */
static oj_status begin(struct oj_output *o, struct oj_error *err)
{
    if (o->kind == OJ_OUTPUT_TRANSACTION)
    {
        OJ_TRY(oj_transaction_begin(o->dataset, o->command->dst, err));
    }
    else
    {
        CPLErrorReset();
        if (!oj_transaction_is_possible(o->dataset))
            return OJ_OK;
        if (GDALDatasetStartTransaction(o->dataset, 0) != OGRERR_NONE)
            return fail_gdal(err, "cannot begin a transaction in",
                             o->command->dst);
    }
    o->in_transaction = 1;
    return OJ_OK;
}

static oj_status delete_layer(const struct oj_output *o, const char *name,
                              struct oj_error *err)
{
    int n = GDALDatasetGetLayerCount(o->dataset);
    for (int i = 0; i < n; i++)
    {
        OGRLayerH layer = GDALDatasetGetLayer(o->dataset, i);
        if (!EQUAL(OGR_L_GetName(layer), name))
            continue;
        CPLErrorReset();
        if (GDALDatasetDeleteLayer(o->dataset, i) != OGRERR_NONE)
            return fail_gdal(err, "cannot replace the layer in",
                             o->command->dst);
        return OJ_OK;
    }
    return oj_fail(err, OJ_ERR_IO, "the layer '%s' is gone from %s", name,
                   o->command->dst);
}

/* What is replaced goes, and what is added to is counted. */
static oj_status open_layers(struct oj_output *o, struct oj_error *err)
{
    if (o->appends)
        o->rows_before = OGR_L_GetFeatureCount(o->layer, 1);
    if (o->replaces)
        OJ_TRY(delete_layer(o, o->layer_name, err));
    for (int i = 0; i < o->n_beside; i++)
    {
        struct oj_beside *beside = &o->beside[i];
        if (beside->appends)
            beside->rows_before = OGR_L_GetFeatureCount(beside->layer, 1);
        if (beside->replaces)
            OJ_TRY(delete_layer(o, beside->name, err));
    }
    return OJ_OK;
}

static oj_status create_dataset(struct oj_output *o, const char *path,
                                struct oj_error *err)
{
    CPLErrorReset();
    o->dataset = GDALCreate(o->driver, path, 0, 0, 0, GDT_Unknown,
                            (CSLConstList)o->command->dataset_options);
    if (o->dataset == NULL)
        return fail_gdal(err, "cannot create", o->command->dst);
    return begin(o, err);
}

/* Messages of drivers then name the file that the user named. */
static void show_destination(const struct oj_output *o)
{
    const char *dst = o->command->dst, *slash = strrchr(dst, '/');
    char hidden[OJ_PATH_MAX + 1], shown[OJ_PATH_MAX];
    snprintf(hidden, sizeof hidden, "%s/", o->temporary.folder);
    snprintf(shown, sizeof shown, "%.*s",
             slash != NULL ? (int)(slash + 1 - dst) : 0, dst);
    oj_message_show_as(hidden, shown);
}

oj_status oj_output_open(struct oj_output *o, struct oj_error *err)
{
    char path[OJ_PATH_MAX];
    switch (o->kind)
    {
        case OJ_OUTPUT_STREAM:
            return create_dataset(o, o->path, err);
        case OJ_OUTPUT_FILE:
            OJ_TRY(oj_temporary_make(o->path, &o->temporary, err));
            show_destination(o);
            oj_temporary_path(&o->temporary, path, (int)sizeof path);
            return create_dataset(o, path, err);
        case OJ_OUTPUT_TRANSACTION:
            break;
    }
    OJ_TRY(begin(o, err));
    return open_layers(o, err);
}

/* Some drivers tell of failed writes only while they close. */
static oj_status close_dataset(struct oj_output *o, struct oj_error *err)
{
    GDALDatasetH dataset = o->dataset;
    char text[512];
    int failed;
    o->dataset = NULL;
    o->layer = NULL;
    for (int i = 0; i < o->n_beside; i++)
        o->beside[i].layer = NULL;
    oj_message_forget_errors();
    CPLErrorReset();
#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 7, 0)
    failed = GDALClose(dataset) != CE_None;
#else
    GDALClose(dataset);
    failed = 0;
#endif
    failed = failed || CPLGetLastErrorType() == CE_Failure;
    failed = oj_message_errors(text, (int)sizeof text) > 0 || failed;
    if (failed)
        return oj_fail(err, OJ_ERR_IO, "closing %s failed: %s", o->command->dst,
                       text[0] != '\0' ? text : CPLGetLastErrorMsg());
    return OJ_OK;
}

static oj_status commit(struct oj_output *o, struct oj_error *err)
{
    if (!o->in_transaction)
        return OJ_OK;
    CPLErrorReset();
    o->in_transaction = 0;
    if (GDALDatasetCommitTransaction(o->dataset) != OGRERR_NONE)
        return fail_gdal(err, "cannot commit to", o->command->dst);
    return OJ_OK;
}

static oj_status check_count(const struct oj_output *o, int64_t n_found,
                             int64_t n_rows, int64_t n_no_geometry,
                             struct oj_output_counts *counts,
                             struct oj_error *err)
{
    counts->n_rows_checked = n_found;
    if (n_found == n_rows)
        return OJ_OK;
    if (n_found == n_rows - n_no_geometry)
    {
        counts->n_left_out = n_no_geometry;
        return OJ_OK;
    }
    return oj_fail(err, OJ_ERR_IO,
                   "%lld rows were written to %s, but it holds %lld after "
                   "closing",
                   (long long)n_rows, o->command->dst, (long long)n_found);
}

/* A layer that is expected in the finished dataset. */
struct expected_layer
{
    const char *name;
    int64_t n_rows, n_no_geometry;
};

static oj_status check_layer(const struct oj_output *o, OGRLayerH layer,
                             const struct expected_layer *expected,
                             struct oj_output_counts *counts,
                             struct oj_error *err)
{
    int is_fast =
        layer != NULL && OGR_L_TestCapability(layer, OLCFastFeatureCount);
    if (layer == NULL && expected->n_rows > expected->n_no_geometry)
        return oj_fail(err, OJ_ERR_IO, "%s has no layer '%s' after closing",
                       o->command->dst, expected->name);
    if (layer == NULL || (!is_fast && expected->n_rows > MAX_SLOW_COUNT))
        return OJ_OK;
    return check_count(o, OGR_L_GetFeatureCount(layer, 1), expected->n_rows,
                       expected->n_no_geometry, counts, err);
}

/* The layer of that name, or the only one. */
static OGRLayerH find_layer(GDALDatasetH dataset, const char *name)
{
    OGRLayerH layer = GDALDatasetGetLayerByName(dataset, name);
    if (layer == NULL && GDALDatasetGetLayerCount(dataset) == 1)
        layer = GDALDatasetGetLayer(dataset, 0);
    return layer;
}

/* An empty layer is no dataset to the readers of some formats. */
static void warn_unreadable(const struct oj_output *o)
{
    const char *driver = GDALGetDescription(o->driver);
    oj_warn("no rows were written, and a file of the driver %s without rows "
            "cannot be opened%s",
            driver,
            strcasecmp(driver, "FlatGeobuf") == 0
                ? "; without -lco SPATIAL_INDEX=NO it can"
                : "");
}

/* Opens a finished file again; no dataset, a warning and no error where the
 * layer is empty and cannot be opened. */
static oj_status open_finished(const struct oj_output *o, const char *path,
                               const struct expected_layer *expected,
                               GDALDatasetH *dataset, struct oj_error *err)
{
    CPLErrorReset();
    *dataset =
        GDALOpenEx(path, GDAL_OF_VECTOR | GDAL_OF_READONLY, NULL, NULL, NULL);
    if (*dataset == NULL && expected->n_rows != expected->n_no_geometry)
        return fail_gdal(err,
                         "the output cannot be read back:", o->command->dst);
    if (*dataset == NULL)
        warn_unreadable(o);
    return OJ_OK;
}

/* A layer beside the main one, of dataset or in its own file. */
static oj_status check_beside(const struct oj_output *o, GDALDatasetH dataset,
                              const struct oj_beside *beside,
                              struct oj_error *err)
{
    const struct expected_layer expected = {beside->name, beside->n_rows,
                                            beside->n_no_geometry};
    struct oj_output_counts counts = {-1, 0};
    GDALDatasetH own = NULL;
    oj_status status = OJ_OK;
    char path[2 * OJ_PATH_MAX];
    if (beside->has_file)
    {
        snprintf(path, sizeof path, "%s/%s.%s", o->temporary.folder,
                 beside->name, CPLGetExtension(o->path));
        status = open_finished(o, path, &expected, &own, err);
        dataset = own;
    }
    if (status == OJ_OK && dataset != NULL)
        status = check_layer(
            o,
            beside->has_file ? find_layer(dataset, beside->name)
                             : GDALDatasetGetLayerByName(dataset, beside->name),
            &expected, &counts, err);
    if (own != NULL)
        GDALClose(own);
    return status;
}

/* Opens the finished file again and counts. */
static oj_status check_file(const struct oj_output *o, int64_t n_rows,
                            int64_t n_no_geometry,
                            struct oj_output_counts *counts,
                            struct oj_error *err)
{
    const struct expected_layer expected = {o->layer_name, n_rows,
                                            n_no_geometry};
    char path[OJ_PATH_MAX];
    GDALDatasetH dataset;
    oj_status status = OJ_OK;
    if (GDALGetMetadataItem(o->driver, GDAL_DCAP_OPEN, NULL) == NULL)
        return OJ_OK;
    oj_temporary_path(&o->temporary, path, (int)sizeof path);
    OJ_TRY(open_finished(o, path, &expected, &dataset, err));
    if (dataset != NULL)
        status = check_layer(o, find_layer(dataset, o->layer_name), &expected,
                             counts, err);
    for (int i = 0; status == OJ_OK && i < o->n_beside; i++)
        status = check_beside(o, dataset, &o->beside[i], err);
    if (dataset != NULL)
        GDALClose(dataset);
    return status;
}

oj_status oj_output_explain(const struct oj_output *o, oj_status status,
                            struct oj_error *err)
{
    struct oj_error full, bare;
    if (status != OJ_OK && err != NULL && o->kind == OJ_OUTPUT_TRANSACTION &&
        strstr(err->message, "database is locked") != NULL)
    {
        bare = *err;
        return oj_fail(err, status, "%.800s; another program writes to it",
                       bare.message);
    }
    if (status == OJ_ERR_IO && o->temporary.folder[0] != '\0' &&
        oj_temporary_probe(&o->temporary, &full) != OJ_OK && err != NULL)
        *err = full;
    return status;
}

static oj_status finish_file(struct oj_output *o, int64_t n_rows,
                             int64_t n_no_geometry,
                             struct oj_output_counts *counts,
                             struct oj_error *err)
{
    oj_status status = oj_cancel_check(err);
    if (status == OJ_OK)
        status = commit(o, err);
    if (status == OJ_OK)
        status = close_dataset(o, err);
    if (status != OJ_OK)
        return oj_output_explain(o, status, err);
    OJ_TRY(oj_cancel_check(err));
    OJ_TRY(oj_temporary_probe(&o->temporary, err));
    OJ_TRY(check_file(o, n_rows, n_no_geometry, counts, err));
    OJ_TRY(oj_temporary_move(&o->temporary, o->old_members, err));
    oj_temporary_remove(&o->temporary);
    return OJ_OK;
}

static oj_status finish_transaction(struct oj_output *o, int64_t n_rows,
                                    int64_t n_no_geometry,
                                    struct oj_output_counts *counts,
                                    struct oj_error *err)
{
    int64_t n_before = o->appends ? o->rows_before : 0;
    OJ_TRY(oj_transaction_flush(o->dataset, o->command->dst, err));
    OJ_TRY(check_count(o, OGR_L_GetFeatureCount(o->layer, 1), n_before + n_rows,
                       n_no_geometry, counts, err));
    for (int i = 0; i < o->n_beside; i++)
    {
        const struct oj_beside *beside = &o->beside[i];
        struct oj_output_counts other = {-1, 0};
        int64_t before = beside->appends ? beside->rows_before : 0;
        OJ_TRY(check_count(o, OGR_L_GetFeatureCount(beside->layer, 1),
                           before + beside->n_rows, beside->n_no_geometry,
                           &other, err));
    }
    OJ_TRY(oj_cancel_check(err));
    OJ_TRY(oj_transaction_commit(o->dataset, o->command->dst, err));
    o->in_transaction = 0;
    return close_dataset(o, err);
}

/* What was written to stdout may still wait there. */
static oj_status check_stdout(const struct oj_output *o, struct oj_error *err)
{
    if (oj_output_is_stdout(o->path) && (fflush(stdout) != 0 || ferror(stdout)))
        return oj_fail(err, OJ_ERR_IO, "cannot write to stdout: %s",
                       strerror(errno));
    return OJ_OK;
}

static oj_status finish(struct oj_output *o, int64_t n_rows,
                        int64_t n_no_geometry, struct oj_output_counts *counts,
                        struct oj_error *err)
{
    switch (o->kind)
    {
        case OJ_OUTPUT_FILE:
            return finish_file(o, n_rows, n_no_geometry, counts, err);
        case OJ_OUTPUT_TRANSACTION:
            return finish_transaction(o, n_rows, n_no_geometry, counts, err);
        case OJ_OUTPUT_STREAM:
            break;
    }
    OJ_TRY(oj_cancel_check(err));
    OJ_TRY(commit(o, err));
    OJ_TRY(close_dataset(o, err));
    return check_stdout(o, err);
}

oj_status oj_output_finish(struct oj_output *o, int64_t n_rows,
                           int64_t n_no_geometry,
                           struct oj_output_counts *counts,
                           struct oj_error *err)
{
    oj_status status;
    counts->n_rows_checked = -1;
    counts->n_left_out = 0;
    status = finish(o, n_rows, n_no_geometry, counts, err);
    oj_output_abort(o);
    return status;
}

void oj_output_abort(struct oj_output *o)
{
    const struct oj_output closed = {0};
    int made_here = o->kind == OJ_OUTPUT_STREAM && o->dataset != NULL &&
                    strncmp(o->path, "/vsi", 4) == 0 &&
                    !oj_output_is_stdout(o->path);
    if (o->dataset != NULL && o->in_transaction)
        oj_transaction_drop(o->dataset);
    else if (o->dataset != NULL)
        GDALClose(o->dataset);
    if (made_here)
        VSIUnlink(o->path);
    oj_temporary_remove(&o->temporary);
    CSLDestroy(o->old_members);
    *o = closed;
    o->temporary.lock = -1;
}
