#include "oj_output.h"

#include "../../flatten/base/oj_third_party_error_patterns.h"
#include "../../flatten/base/oj_word_list.h"
#include "../../flatten/read/oj_lane_table.h"
#include "../base/oj_cancel.h"
#include "../base/oj_gdal_driver.h"
#include "../base/oj_message.h"
#include "../base/oj_transaction.h"
#include "../files/oj_failed_writes.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* Rows of text formats can be counted only by reading them again, which is done
 * up to this number of rows. */
enum
{
    MAX_SLOW_COUNT = 1000000
};

/* ---- planning ------------------------------------------------------------ */

int oj_output_is_stdout(const char *dst)
{
    return strncmp(dst, "/vsistdout", 10) == 0 ||
           strcmp(dst, "/dev/stdout") == 0;
}

/* Refuses an output that is one of the inputs. */
static oj_status check_not_input(const struct oj_output *o,
                                 struct oj_error *err)
{
    for (int i = 0; i < 2; i++)
    {
        const struct oj_source *side = o->sides[i];
        /* Two tables of a database may be read and written at once, two layers
         * of a file may not. */
        int is_other_table = o->kind == OJ_OUTPUT_TRANSACTION &&
                             oj_driver_is_database(o->driver) &&
                             strcasecmp(side->name, o->layers[0].name) != 0;
        if (oj_source_has_file(side, o->path) && !is_other_table)
            return oj_fail(err, OJ_ERR_ARG,
                           "the output %s is the %s dataset; write to another "
                           "file, or add the columns to the input layer with "
                           "-in_place",
                           o->asked->dst, side->role);
    }
    return OJ_OK;
}

static oj_status check_transactions(const struct oj_output *o,
                                    struct oj_error *err)
{
    if (GDALDatasetTestCapability(o->dataset, ODsCTransactions))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_UNSUPPORTED,
                   "%s cannot be changed safely: its driver %s has no "
                   "transactions, so an interrupted run would leave it "
                   "half-written; write to a new file instead",
                   o->asked->dst, GDALGetDescription(o->driver));
}

static oj_status open_existing_dataset(struct oj_output *o, const char *path,
                                       struct oj_error *err)
{
    const struct oj_output_options *asked = o->asked;
    CPLErrorReset();
    o->dataset = GDALOpenEx(
        path, GDAL_OF_VECTOR | GDAL_OF_UPDATE | GDAL_OF_VERBOSE_ERROR, NULL,
        (const char *const *)asked->open_options, NULL);
    if (o->dataset == NULL)
        return oj_fail(err, OJ_ERR_IO, "cannot open %s for writing: %s",
                       o->asked->dst, CPLGetLastErrorMsg());
    o->driver = GDALGetDatasetDriver(o->dataset);
    return OJ_OK;
}

oj_status oj_output_open_layer(const struct oj_output_options *asked,
                               const char *layer_name, struct oj_output *o,
                               struct oj_error *err)
{
    oj_output_abort(o);
    o->asked = asked;
    o->kind = OJ_OUTPUT_TRANSACTION;
    OJ_TRY(open_existing_dataset(o, asked->dst, err));
    o->layers[0].name = layer_name;
    o->layers[0].layer = GDALDatasetGetLayerByName(o->dataset, layer_name);
    if (o->layers[0].layer == NULL)
        return oj_fail(
            err, OJ_ERR_IO,
            "%s has no layer '%s' when it is opened for writing: another "
            "program may have removed it; run the join again",
            asked->dst, layer_name);
    return OJ_OK;
}

static oj_status check_output_can_be_updated(const struct oj_output *o,
                                             struct oj_error *err)
{
    const struct oj_output_options *asked = o->asked;
    if (asked->format != NULL &&
        strcasecmp(asked->format, GDALGetDescription(o->driver)) != 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "%s exists in the format %s, but -f asks for %s: leave "
                       "-f out, or write to another file",
                       o->asked->dst, GDALGetDescription(o->driver),
                       asked->format);
    return check_transactions(o, err);
}

/* Returns the layer of this name; if the dataset has only one layer, that one.
 */
static OGRLayerH find_named_or_only_layer(GDALDatasetH dataset,
                                          const char *name)
{
    OGRLayerH layer = GDALDatasetGetLayerByName(dataset, name);
    if (layer == NULL && GDALDatasetGetLayerCount(dataset) == 1)
        layer = GDALDatasetGetLayer(dataset, 0);
    return layer;
}

static oj_status fail_layer_exists(const struct oj_output *o,
                                   const struct oj_output_layer *l,
                                   struct oj_error *err)
{
    if (l->option != NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "%s has a layer '%s' already: -overwrite replaces it, "
                       "or choose another name in -%s",
                       o->asked->dst, l->name, l->option);
    return oj_fail(err, OJ_ERR_ARG,
                   "%s has a layer '%s' already: -overwrite replaces it, "
                   "-append adds rows to it, -nln NAME writes another one",
                   o->asked->dst, l->name);
}

/* Plans a layer in an existing dataset that is open. */
static oj_status plan_layer_in_open_dataset(const struct oj_output *o,
                                            struct oj_output_layer *l,
                                            struct oj_error *err)
{
    const struct oj_output_options *asked = o->asked;
    OGRLayerH there = GDALDatasetGetLayerByName(o->dataset, l->name);
    if (asked->append && l->option == NULL && asked->layer == NULL)
        there = find_named_or_only_layer(o->dataset, l->name);
    l->appends = there != NULL && asked->append;
    l->replaces = there != NULL && !asked->append;
    if (l->appends)
    {
        l->layer = there;
        if (l->option == NULL) /* the only layer of a dataset is found under any
                                  name */
            l->name = OGR_L_GetName(there);
        return OJ_OK;
    }
    if (l->replaces && !asked->overwrite)
        return fail_layer_exists(o, l, err);
    if (!GDALDatasetTestCapability(o->dataset, ODsCCreateLayer) ||
        (l->replaces &&
         !GDALDatasetTestCapability(o->dataset, ODsCDeleteLayer)))
        return oj_fail(
            err, OJ_ERR_UNSUPPORTED,
            "the driver %s cannot %s layers in %s: write to a new file",
            GDALGetDescription(o->driver), l->replaces ? "replace" : "add",
            asked->dst);
    return OJ_OK;
}

/* Plans the output as a transaction in an existing dataset or a database. */
static oj_status plan_transaction(struct oj_output *o, struct oj_error *err)
{
    o->kind = OJ_OUTPUT_TRANSACTION;
    OJ_TRY(open_existing_dataset(o, o->path, err));
    OJ_TRY(check_output_can_be_updated(o, err));
    return plan_layer_in_open_dataset(o, &o->layers[0], err);
}

/* Appends the names of the dataset's layers that this run does not write to
 * text. Returns their number. */
static int append_other_layers(const struct oj_output *o, GDALDatasetH dataset,
                               char *text, size_t size)
{
    int n = GDALDatasetGetLayerCount(dataset), n_others = 0;
    for (int i = 0; i < n; i++)
    {
        const char *name = OGR_L_GetName(GDALDatasetGetLayer(dataset, i));
        int is_other = 1;
        for (int j = 0; j < o->n_layers; j++)
            is_other = is_other && strcasecmp(name, o->layers[j].name) != 0;
        if (is_other)
            oj_message_append_name(text, size, name);
        n_others += is_other;
    }
    return n_others;
}

/* Prints a notice if -overwrite replaces only a layer, because the file has
 * other layers. Tables of a database are not listed. */
static void notice_layers_that_stay(const struct oj_output *o)
{
    const struct oj_output_options *asked = o->asked;
    char names[256] = "";
    int n;
    if (!asked->overwrite || asked->update || oj_driver_is_connection(o->path))
        return;
    n = append_other_layers(o, o->dataset, names, sizeof names);
    if (n > 0)
        oj_notice("%s %s %s in %s: -overwrite has replaced only the layers of "
                  "this run",
                  oj_word_one_or_many(n, "layer", "layers"), names,
                  oj_word_one_or_many(n, "stays", "stay"), asked->dst);
}

/* Returns 1 if the dataset contains other layers, or rasters, which would be
 * lost if the file were replaced. */
static int has_other_layers_or_rasters(GDALDatasetH dataset,
                                       const char *layer_name)
{
    int n = GDALDatasetGetLayerCount(dataset);
    if (GDALGetRasterCount(dataset) > 0 ||
        CSLCount(GDALGetMetadata(dataset, "SUBDATASETS")) > 0)
        return 1;
    if (n == 1)
        return strcasecmp(OGR_L_GetName(GDALDatasetGetLayer(dataset, 0)),
                          layer_name) != 0;
    return n > 1;
}

/* Plans -overwrite: replaces the whole file if the layer is all that it
 * contains, otherwise the layer in it. is_folder 1: the destination is a
 * folder, which is not replaced unless its name ends in .gdb. */
static oj_status plan_overwrite(struct oj_output *o, int is_folder,
                                struct oj_error *err)
{
    GDALDatasetH old;
    GDALDriverH driver;
    int more;
    if (is_folder && !EQUAL(CPLGetExtension(o->path), "gdb"))
        return oj_fail(err, OJ_ERR_ARG,
                       "%s is a folder, and -overwrite replaces no folders: "
                       "name the file in it",
                       o->asked->dst);
    CPLErrorReset();
    old = GDALOpenEx(o->path, GDAL_OF_READONLY, NULL, NULL, NULL);
    if (old == NULL && oj_transaction_recover(o->path, NULL))
        old = GDALOpenEx(o->path, GDAL_OF_READONLY, NULL, NULL, NULL);
    if (old == NULL)
        return oj_fail(
            err, OJ_ERR_IO,
            "%s exists and is not a dataset that GDAL can open, so it "
            "is not overwritten; remove it or write elsewhere",
            o->asked->dst);
    driver = GDALGetDatasetDriver(old);
    more = GDALGetMetadataItem(driver, GDAL_DCAP_MULTIPLE_VECTOR_LAYERS,
                               NULL) != NULL &&
           has_other_layers_or_rasters(old, o->layers[0].name);
    if (!more && !is_folder)
        o->old_members = GDALGetFileList(old);
    GDALClose(old);
    if (more)
        return plan_transaction(o, err);
    o->old_members = CSLAddString(o->old_members, o->path);
    o->layers[0].replaces = 1;
    return OJ_OK;
}

/* Fails because the output exists and no option allows changing it. Opens the
 * file for the message only if its driver supports several layers, because text
 * formats would be read completely. */
static oj_status fail_output_exists(const struct oj_output *o,
                                    struct oj_error *err)
{
    GDALDriverH driver = GDALIdentifyDriver(o->path, NULL);
    GDALDatasetH old = NULL;
    char names[256] = "";
    if (driver != NULL &&
        GDALGetMetadataItem(driver, GDAL_DCAP_MULTIPLE_VECTOR_LAYERS, NULL) !=
            NULL)
    {
        CPLPushErrorHandler(CPLQuietErrorHandler);
        old = GDALOpenEx(o->path, GDAL_OF_VECTOR | GDAL_OF_READONLY, NULL, NULL,
                         NULL);
        CPLPopErrorHandler();
    }
    if (old != NULL)
    {
        append_other_layers(o, old, names, sizeof names);
        GDALClose(old);
    }
    if (names[0] != '\0')
        return oj_fail(err, OJ_ERR_ARG,
                       "%s exists, with other layers (%s): -overwrite writes "
                       "layer '%s' anew and keeps the others, -append adds "
                       "rows to its layer, -update adds a layer",
                       o->asked->dst, names, o->layers[0].name);
    return oj_fail(err, OJ_ERR_ARG,
                   "%s exists: -overwrite replaces it, -append adds rows to "
                   "its layer, -update adds a layer",
                   o->asked->dst);
}

static oj_status plan_change_of_existing(struct oj_output *o, int is_folder,
                                         struct oj_error *err)
{
    const struct oj_output_options *asked = o->asked;
    char resolved[OJ_PATH_MAX];
    if (realpath(o->path, resolved) != NULL)
        snprintf(o->path, sizeof o->path, "%s", resolved);
    if (asked->append || (asked->update && !asked->overwrite))
        return plan_transaction(o, err);
    if (asked->overwrite)
        return plan_overwrite(o, is_folder, err);
    if (is_folder && !EQUAL(CPLGetExtension(o->path), "gdb"))
        return oj_fail(err, OJ_ERR_ARG, "%s is a folder: name the file in it",
                       asked->dst);
    return fail_output_exists(o, err);
}

static oj_status plan_virtual_destination(struct oj_output *o,
                                          struct oj_error *err)
{
    VSILFILE *file =
        oj_output_is_stdout(o->path) ? NULL : VSIFOpenL(o->path, "rb");
    o->kind = OJ_OUTPUT_STREAM;
    if (file == NULL)
        return OJ_OK;
    VSIFCloseL(file);
    return oj_fail(err, OJ_ERR_ARG,
                   "%s exists, and files under /vsi names cannot be replaced "
                   "safely: remove it first",
                   o->asked->dst);
}

/* Sets o->kind: a new file, unless the destination is a stream, a database, or
 * a dataset that is changed. */
static oj_status choose_how_output_is_written(struct oj_output *o,
                                              struct oj_error *err)
{
    const struct oj_output_options *asked = o->asked;
    struct stat info;
    /* Datasets in memory have no files that could be moved or read again. */
    if (asked->format != NULL &&
        oj_words_find("Memory|MEM", asked->format) >= 0)
    {
        o->kind = OJ_OUTPUT_STREAM;
        return OJ_OK;
    }
    if (oj_driver_is_connection(o->path))
        return plan_transaction(o, err);
    if (strncmp(o->path, "/vsi", 4) == 0)
        return plan_virtual_destination(o, err);
    if (lstat(o->path, &info) == 0)
    {
        if (stat(o->path, &info) != 0)
            return oj_fail(err, OJ_ERR_IO,
                           "%s is a link without a target: remove it, or name "
                           "another output",
                           asked->dst);
        if (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode))
            return plan_change_of_existing(o, S_ISDIR(info.st_mode), err);
        o->kind = OJ_OUTPUT_STREAM; /* the destination is a device or a pipe */
    }
    else if (asked->update && !asked->overwrite)
        return oj_fail(
            err, OJ_ERR_IO,
            "%s does not exist, so -update cannot add a layer to it: leave "
            "-update out to write a new file",
            asked->dst);
    return OJ_OK;
}

/* Warns of options for creating or opening that have no effect. They are no
 * error, because a script that appends in a loop creates the output only the
 * first time. */
static void warn_ignored_options(const struct oj_output *o)
{
    const struct oj_output_options *asked = o->asked;
    int has_beside =
        asked->unmatched_layer != NULL || asked->unmatched_join_layer != NULL;
    if (o->dataset != NULL && asked->dataset_options != NULL)
        oj_warn("-dsco has no effect, because %s exists: leave it out, or "
                "write to a new file",
                asked->dst);
    if (o->dataset == NULL && asked->open_options != NULL)
        oj_warn("-doo has no effect, because %s is written anew: leave it out, "
                "or write -dsco",
                asked->dst);
    if (o->layers[0].appends && !has_beside && asked->layer_options != NULL)
        oj_warn("-lco has no effect, because the layer '%s' exists: leave it "
                "out, or write another layer",
                o->layers[0].name);
}

oj_status oj_output_plan(const struct oj_output_options *asked,
                         const char *layer_name, const struct oj_source *input,
                         const struct oj_source *join, struct oj_output *output,
                         struct oj_error *err)
{
    struct oj_output o = {0};
    oj_status status;
    o.asked = asked;
    o.sides[0] = input;
    o.sides[1] = join;
    o.layers[0].name = layer_name;
    o.layers[0].rows_before = -1;
    o.n_layers = 1;
    o.temporary.lock = -1;
    /* A regular file to which stdout is redirected would count as an existing
     * output under the name /dev/stdout. */
    snprintf(o.path, sizeof o.path, "%s",
             strcmp(asked->dst, "/dev/stdout") == 0 ? "/vsistdout/"
                                                    : asked->dst);
    if (strlen(asked->dst) >= sizeof o.path)
        return oj_fail(err, OJ_ERR_ARG,
                       "the name of the output is longer than %d bytes: "
                       "write to a shorter path",
                       (int)sizeof o.path - 1);
    status = choose_how_output_is_written(&o, err);
    if (status == OJ_OK && o.kind != OJ_OUTPUT_TRANSACTION)
        status = oj_driver_choose(asked->format, o.path, &o.driver, err);
    if (status == OJ_OK || status == OJ_ERR_ARG)
    {
        /* Reported before other errors, which would mislead if the destination
         * exists because it is an input. */
        oj_status same = check_not_input(&o, err);
        status = same != OJ_OK ? same : status;
    }
    if (status != OJ_OK)
    {
        oj_output_abort(&o);
        return status;
    }
    warn_ignored_options(&o);
    *output = o;
    return OJ_OK;
}

/* ---- further layers ------------------------------------------------------ */

/* Drivers that can write to several layers of a dataset in turns. */
static const char many_layers[] =
    "GPKG|SQLite|LIBKML|XLSX|ODS|Memory|PostgreSQL|MySQL|MSSQLSpatial|"
    "OpenFileGDB";

/* Returns 1 for drivers whose datasets are folders with a file per layer. */
static int writes_layer_folders(GDALDriverH driver)
{
    return oj_driver_is(driver, "ESRI Shapefile|CSV");
}

/* Returns 1 if further layers become files beside the first one, because the
 * destination is a file. */
static int adds_layers_as_files(const struct oj_output *o)
{
    return writes_layer_folders(o->driver) &&
           (EQUAL(CPLGetExtension(o->path), "shp") ||
            EQUAL(CPLGetExtension(o->path), "csv"));
}

/* Returns 1 if the output is a folder of layers. (An archive takes only one
 * layer.) */
static int is_output_layer_folder(const struct oj_output *o)
{
    return writes_layer_folders(o->driver) &&
           CPLGetExtension(o->path)[0] == '\0';
}

/* Adds an existing file to those that are replaced together with the dataset.
 */
static oj_status plan_file_replacement(struct oj_output *o, const char *path,
                                       struct oj_error *err)
{
    GDALDatasetH old =
        GDALOpenEx(path, GDAL_OF_VECTOR | GDAL_OF_READONLY, NULL, NULL, NULL);
    char **files;
    if (old == NULL)
        return oj_fail(
            err, OJ_ERR_IO,
            "%s exists and is not a dataset that GDAL can open, so it "
            "is not overwritten; remove it, or choose another layer name",
            path);
    files = GDALGetFileList(old);
    o->old_members = CSLInsertStrings(o->old_members, -1, files);
    o->old_members = CSLAddString(o->old_members, path);
    CSLDestroy(files);
    GDALClose(old);
    return OJ_OK;
}

/* Plans a layer that becomes a file in the folder of the output. */
static oj_status plan_layer_file(struct oj_output *o, struct oj_output_layer *l,
                                 struct oj_error *err)
{
    const char *slash = strrchr(o->path, '/');
    int n_folder = slash != NULL ? (int)(slash + 1 - o->path) : 0;
    char path[2 * OJ_PATH_MAX];
    struct stat info;
    l->has_file = 1;
    snprintf(path, sizeof path, "%.*s%s.%s", n_folder, o->path, l->name,
             CPLGetExtension(o->path));
    if (strchr(l->name, '/') != NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "-%s: '%s' becomes the name of a file and cannot hold a "
                       "slash: write a name without one",
                       l->option, l->name);
    if (strcasecmp(path, o->path) == 0 ||
        oj_source_has_file(o->sides[0], path) ||
        oj_source_has_file(o->sides[1], path))
        return oj_fail(err, OJ_ERR_ARG,
                       "-%s: the layer '%s' would be written to %s, which is "
                       "in use; choose another name",
                       l->option, l->name, path);
    if (lstat(path, &info) != 0)
        return OJ_OK;
    if (!o->asked->overwrite)
        return oj_fail(err, OJ_ERR_ARG,
                       "%s exists: -overwrite replaces it, or choose another "
                       "name in -%s",
                       path, l->option);
    return plan_file_replacement(o, path, err);
}

static oj_status check_extra_layer_name(const struct oj_output *o,
                                        const struct oj_output_layer *l,
                                        struct oj_error *err)
{
    if (l->name[0] == '\0')
        return oj_fail(err, OJ_ERR_ARG,
                       "-%s: the layer needs a name: write -%s NAME", l->option,
                       l->option);
    for (int i = 0; i < o->n_layers; i++)
    {
        if (strcasecmp(l->name, o->layers[i].name) == 0)
            return oj_fail(err, OJ_ERR_ARG,
                           "-%s: another layer of the output is called '%s'; "
                           "choose another name",
                           l->option, l->name);
    }
    for (int i = 0; i < 2; i++)
    {
        if (oj_source_has_file(o->sides[i], o->path) &&
            strcasecmp(o->sides[i]->name, l->name) == 0)
            return oj_fail(err, OJ_ERR_ARG,
                           "-%s: '%s' is an input of the join; choose another "
                           "name",
                           l->option, l->name);
    }
    return OJ_OK;
}

oj_status oj_output_plan_layer(struct oj_output *o, const char *option,
                               const char *name, struct oj_error *err)
{
    struct oj_output_layer *l = &o->layers[o->n_layers];
    l->option = option;
    l->name = name;
    l->rows_before = -1;
    OJ_TRY(check_extra_layer_name(o, l, err));
    if (o->kind == OJ_OUTPUT_STREAM)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "-%s: %s is a stream and takes one layer; "
                       "write to a file",
                       option, o->asked->dst);
    if (o->kind == OJ_OUTPUT_TRANSACTION)
        OJ_TRY(plan_layer_in_open_dataset(o, l, err));
    else if (adds_layers_as_files(o))
        OJ_TRY(plan_layer_file(o, l, err));
    else if (!oj_driver_is(o->driver, many_layers) &&
             !is_output_layer_folder(o))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "-%s: the format %s does not take several layers at a "
                       "time; write GPKG, SQLite, Shapefile or CSV",
                       option, GDALGetDescription(o->driver));
    o->n_layers++;
    return OJ_OK;
}

/* ---- open ---------------------------------------------------------------- */

static oj_status fail_with_reason_of_gdal(struct oj_error *err,
                                          const char *what, const char *path)
{
    return oj_fail(err, OJ_ERR_IO, "%s %s: %s", what, path,
                   CPLGetLastErrorMsg()[0] != '\0'
                       ? CPLGetLastErrorMsg()
                       : "GDAL gives no reason; write another format (-f)");
}

/* Begins a transaction. New files are written in one, too, since this is
 * faster. */
static oj_status begin_transaction(struct oj_output *o, struct oj_error *err)
{
    CPLErrorReset();
    if (!GDALDatasetTestCapability(o->dataset, ODsCTransactions))
        return OJ_OK;
    if (o->kind == OJ_OUTPUT_TRANSACTION)
        OJ_TRY(oj_transaction_begin(o->dataset, o->asked->dst, err));
    else if (GDALDatasetStartTransaction(o->dataset, 0) != OGRERR_NONE)
        return fail_with_reason_of_gdal(err, "cannot begin a transaction in",
                                        o->asked->dst);
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
            return oj_fail(err, OJ_ERR_IO,
                           "cannot replace the layer '%s' in %s: %s; write to "
                           "a new file",
                           name, o->asked->dst,
                           CPLGetLastErrorMsg()[0] != '\0'
                               ? CPLGetLastErrorMsg()
                               : "GDAL gives no reason");
        return OJ_OK;
    }
    return oj_fail(err, OJ_ERR_IO,
                   "the layer '%s' has disappeared from %s: another program "
                   "may have removed it; run the join again",
                   name, o->asked->dst);
}

/* Deletes the layers that are replaced, and counts the rows of layers to which
 * rows are appended. */
static oj_status clear_replaced_layers(struct oj_output *o,
                                       struct oj_error *err)
{
    for (int i = 0; i < o->n_layers; i++)
    {
        struct oj_output_layer *l = &o->layers[i];
        if (l->appends)
            l->rows_before = OGR_L_GetFeatureCount(l->layer, 1);
        if (l->replaces)
            OJ_TRY(delete_layer(o, l->name, err));
    }
    return OJ_OK;
}

static oj_status create_dataset(struct oj_output *o, const char *path,
                                struct oj_error *err)
{
    CPLErrorReset();
    o->dataset = GDALCreate(o->driver, path, 0, 0, 0, GDT_Unknown,
                            (CSLConstList)o->asked->dataset_options);
    if (o->dataset == NULL)
        return fail_with_reason_of_gdal(err, "cannot create", o->asked->dst);
    return begin_transaction(o, err);
}

/* Makes messages of drivers show the destination instead of the temporary path.
 */
static void hide_temporary_path(const struct oj_output *o)
{
    const char *dst = o->asked->dst, *slash = strrchr(dst, '/');
    char folder[OJ_PATH_MAX + 1], access_path[OJ_PATH_MAX + 1],
        shown[OJ_PATH_MAX];
    snprintf(folder, sizeof folder, "%s/", o->temporary.folder);
    snprintf(access_path, sizeof access_path, "%s/", o->temporary.access_path);
    snprintf(shown, sizeof shown, "%.*s",
             slash != NULL ? (int)(slash + 1 - dst) : 0, dst);
    oj_message_replace_path(folder, access_path, shown);
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
            hide_temporary_path(o);
            oj_temporary_path(&o->temporary, path, (int)sizeof path);
            return create_dataset(o, path, err);
        case OJ_OUTPUT_TRANSACTION:
            break;
    }
    OJ_TRY(begin_transaction(o, err));
    return clear_replaced_layers(o, err);
}

/* ---- finish -------------------------------------------------------------- */

/* Returns the lane that can write the rows of this output, or NULL. */
static const struct oj_lane_row *find_lane(const struct oj_output *o)
{
    struct oj_lane_dataset dataset = {.driver = o->driver, .path = o->path};
    if (o->kind == OJ_OUTPUT_FILE)
        dataset.facts |= OJ_LANE_NEW_FILE;
    if (o->n_layers == 1)
        dataset.facts |= OJ_LANE_SOLE_LAYER;
    return oj_lane_that_writes(&dataset);
}

static int output_is_target_of_lane(const struct oj_output *o,
                                    enum oj_lane_target target)
{
    const struct oj_lane_row *lane = find_lane(o);
    return lane != NULL && lane->writes == target;
}

GDALDatasetH oj_output_dataset_of_lane(const struct oj_output *o)
{
    return output_is_target_of_lane(o, OJ_LANE_WRITES_DATASET) ? o->dataset
                                                               : NULL;
}

int oj_output_file_of_lane(const struct oj_output *o, char *path, int size)
{
    int n;
    if (!output_is_target_of_lane(o, OJ_LANE_WRITES_FILE))
        return 0;
    oj_temporary_path(&o->temporary, path, size);
    n = (int)strlen(path);
    return snprintf(path + n, (size_t)(size - n), ".rows") == 5;
}

const char *oj_output_lane(const struct oj_output *o)
{
    const struct oj_lane_row *lane = find_lane(o);
    return lane != NULL ? lane->name : NULL;
}

/* Replaces the driver's file, which has no rows, by the file that the lane
 * wrote. */
static oj_status move_rows_file_into_place(const struct oj_output *o,
                                           struct oj_error *err)
{
    char rows[OJ_PATH_MAX + 8], path[OJ_PATH_MAX];
    if (!oj_output_file_of_lane(o, rows, (int)sizeof rows))
        return OJ_OK;
    oj_temporary_path(&o->temporary, path, (int)sizeof path);
    if (!o->layers[0].rows_in_file)
        unlink(rows);
    else if (rename(rows, path) != 0)
        return oj_fail(err, OJ_ERR_IO, "cannot write %s: %s", o->asked->dst,
                       strerror(errno));
    return OJ_OK;
}

/* Closes the dataset. Some drivers report failed writes only then. */
static oj_status close_dataset(struct oj_output *o, struct oj_error *err)
{
    GDALDatasetH dataset = o->dataset;
    char text[512];
    int failed;
    o->dataset = NULL;
    for (int i = 0; i < o->n_layers; i++)
        o->layers[i].layer = NULL;
    oj_message_forget_errors();
    CPLErrorReset();
#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 7, 0)
    failed = GDALClose(dataset) != CE_None;
#else
    GDALClose(dataset);
    failed = 0;
#endif
    failed = failed || CPLGetLastErrorType() == CE_Failure;
    failed = oj_message_take_errors(text, (int)sizeof text) > 0 || failed;
    if (failed)
        return oj_fail(err, OJ_ERR_IO, "closing %s failed: %s", o->asked->dst,
                       text[0] != '\0' ? text : CPLGetLastErrorMsg());
    failed = o->kind == OJ_OUTPUT_FILE
                 ? oj_failed_writes_errno(o->temporary.access_path)
                 : 0;
    if (failed != 0)
        return oj_fail(err, OJ_ERR_IO, "writing %s failed: %s", o->asked->dst,
                       strerror(failed));
    return OJ_OK;
}

static oj_status commit_transaction(struct oj_output *o, struct oj_error *err)
{
    if (!o->in_transaction)
        return OJ_OK;
    CPLErrorReset();
    o->in_transaction = 0;
    if (GDALDatasetCommitTransaction(o->dataset) != OGRERR_NONE)
        return fail_with_reason_of_gdal(err, "cannot commit to", o->asked->dst);
    return OJ_OK;
}

static oj_status check_row_count_of_layer(const struct oj_output *o,
                                          struct oj_output_layer *l,
                                          int64_t n_found, struct oj_error *err)
{
    int64_t n_rows = l->n_rows + (l->appends ? l->rows_before : 0);
    l->n_checked = n_found;
    l->n_left_out = n_rows - n_found;
    if (n_found == n_rows || l->n_left_out == l->n_no_geometry)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_IO,
                   "%lld rows were written to %s, but it holds %lld after "
                   "closing: run the join again, or write another format (-f)",
                   (long long)n_rows, o->asked->dst, (long long)n_found);
}

static oj_status check_written_layer(const struct oj_output *o,
                                     struct oj_output_layer *l, OGRLayerH layer,
                                     struct oj_error *err)
{
    int is_fast =
        layer != NULL && OGR_L_TestCapability(layer, OLCFastFeatureCount);
    if (layer == NULL && l->n_rows > l->n_no_geometry)
        return oj_fail(err, OJ_ERR_IO,
                       "%s has no layer '%s' after closing: run the join "
                       "again, or write another format (-f)",
                       o->asked->dst, l->name);
    if (layer == NULL || (!is_fast && l->n_rows > MAX_SLOW_COUNT))
        return OJ_OK;
    return check_row_count_of_layer(o, l, OGR_L_GetFeatureCount(layer, 1), err);
}

/* Warns that the file may not open: in some formats a file without rows cannot
 * be opened. */
static void warn_empty_unreadable(const struct oj_output *o)
{
    oj_warn("no rows were written, and a file of the driver %s without rows "
            "cannot be opened%s",
            GDALGetDescription(o->driver),
            oj_driver_is(o->driver, "FlatGeobuf")
                ? "; without -lco SPATIAL_INDEX=NO it can"
                : "; write another format (-f) to keep the layer");
}

/* Opens the finished file of a layer again. If the file of an empty layer
 * cannot be opened, warns and sets *dataset to NULL. */
static oj_status open_finished(const struct oj_output *o,
                               const struct oj_output_layer *l,
                               GDALDatasetH *dataset, struct oj_error *err)
{
    char path[2 * OJ_PATH_MAX];
    oj_temporary_path(&o->temporary, path, (int)sizeof path);
    if (l->has_file)
        snprintf(path, sizeof path, "%s/%s.%s", o->temporary.access_path,
                 l->name, CPLGetExtension(o->path));
    CPLErrorReset();
    *dataset =
        GDALOpenEx(path, GDAL_OF_VECTOR | GDAL_OF_READONLY, NULL, NULL, NULL);
    if (*dataset == NULL && l->n_rows != l->n_no_geometry)
        return fail_with_reason_of_gdal(err, "cannot read back the output",
                                        o->asked->dst);
    if (*dataset == NULL)
        warn_empty_unreadable(o);
    return OJ_OK;
}

/* Opens the finished files again and counts their rows. Further layers are in
 * the first file or in files of their own. */
static oj_status reopen_and_check_files(struct oj_output *o,
                                        struct oj_error *err)
{
    GDALDatasetH first = NULL;
    oj_status status = OJ_OK;
    if (GDALGetMetadataItem(o->driver, GDAL_DCAP_OPEN, NULL) == NULL)
        return OJ_OK;
    for (int i = 0; i < o->n_layers && status == OJ_OK; i++)
    {
        struct oj_output_layer *l = &o->layers[i];
        int is_alone = i == 0 || l->has_file;
        GDALDatasetH at = first;
        if (is_alone)
            status = open_finished(o, l, &at, err);
        if (status == OJ_OK && at != NULL)
            status = check_written_layer(
                o, l,
                is_alone ? find_named_or_only_layer(at, l->name)
                         : GDALDatasetGetLayerByName(at, l->name),
                err);
        if (i == 0)
            first = at;
        else if (is_alone && at != NULL)
            GDALClose(at);
    }
    if (first != NULL)
        GDALClose(first);
    return status;
}

oj_status oj_output_explain_full_disk(const struct oj_output *o,
                                      oj_status status, struct oj_error *err)
{
    struct oj_error full, bare;
    if (status != OJ_OK && err != NULL && o->kind == OJ_OUTPUT_TRANSACTION &&
        strstr(err->message, OJ_TEXT_LOCKED) != NULL)
    {
        bare = *err;
        return oj_fail(
            err, status,
            "%.800s; another program writes to it: run the join again "
            "after its end",
            bare.message);
    }
    if (status == OJ_ERR_IO && o->temporary.folder[0] != '\0' &&
        oj_temporary_check_writable(&o->temporary, &full) != OJ_OK &&
        err != NULL)
        *err = full;
    return status;
}

/* Closes the dataset after the commit. The output is complete then, so an error
 * becomes a warning. */
static void close_committed_dataset(struct oj_output *o)
{
    struct oj_error late;
    if (close_dataset(o, &late) != OJ_OK)
        oj_warn("%s; all rows were committed before", late.message);
}

static oj_status finish_transaction(struct oj_output *o, struct oj_error *err)
{
    if (!o->in_transaction) /* -in_place changed a layer whose driver has no
                               transactions */
        return close_dataset(o, err);
    OJ_TRY(oj_transaction_flush(o->dataset, o->asked->dst, err));
    for (int i = 0; i < o->n_layers; i++)
        OJ_TRY(check_row_count_of_layer(
            o, &o->layers[i], OGR_L_GetFeatureCount(o->layers[i].layer, 1),
            err));
    OJ_TRY(oj_cancel_check(err));
    OJ_TRY(oj_transaction_commit(o->dataset, o->asked->dst, err));
    o->in_transaction = 0;
    notice_layers_that_stay(o);
    close_committed_dataset(o);
    return OJ_OK;
}

/* Flushes stdout and reports a write error. */
static oj_status check_stdout(const struct oj_output *o, struct oj_error *err)
{
    if (oj_output_is_stdout(o->path) && (fflush(stdout) != 0 || ferror(stdout)))
        return oj_fail(err, OJ_ERR_IO, "cannot write to stdout: %s",
                       strerror(errno));
    return OJ_OK;
}

oj_status oj_output_flush(const struct oj_output *o, struct oj_error *err)
{
    if (o->kind != OJ_OUTPUT_STREAM || o->layers[0].layer == NULL)
        return OJ_OK;
    (void)OGR_L_SyncToDisk(o->layers[0].layer);
    return check_stdout(o, err);
}

static oj_status commit_check_and_move_output(struct oj_output *o,
                                              struct oj_error *err)
{
    oj_status status;
    if (o->kind == OJ_OUTPUT_TRANSACTION)
        return finish_transaction(o, err);
    status = oj_cancel_check(err);
    if (status == OJ_OK)
        status = commit_transaction(o, err);
    if (status == OJ_OK)
        status = close_dataset(o, err);
    if (status == OJ_OK)
        status = move_rows_file_into_place(o, err);
    if (status != OJ_OK)
        return oj_output_explain_full_disk(o, status, err);
    if (o->kind == OJ_OUTPUT_STREAM)
        return check_stdout(o, err);
    OJ_TRY(oj_cancel_check(err));
    OJ_TRY(oj_temporary_check_writable(&o->temporary, err));
    OJ_TRY(reopen_and_check_files(o, err));
    OJ_TRY(oj_temporary_move_into_place(&o->temporary, o->old_members, err));
    oj_temporary_remove(&o->temporary);
    return OJ_OK;
}

oj_status oj_output_finish(struct oj_output *o, struct oj_error *err)
{
    struct oj_output finished = {0};
    oj_status status;
    for (int i = 0; i < o->n_layers; i++)
        o->layers[i].n_checked = -1;
    status = commit_check_and_move_output(o, err);
    memcpy(finished.layers, o->layers, sizeof finished.layers);
    finished.n_layers = o->n_layers;
    finished.temporary.lock = -1;
    oj_output_abort(o);
    *o = finished;
    return status;
}

void oj_output_abort(struct oj_output *o)
{
    const struct oj_output closed = {0};
    int made_here = o->kind == OJ_OUTPUT_STREAM && o->dataset != NULL &&
                    strncmp(o->path, "/vsi", 4) == 0 &&
                    !oj_output_is_stdout(o->path);
    if (o->dataset != NULL && o->in_transaction)
        oj_transaction_roll_back(o->dataset);
    else if (o->dataset != NULL)
        GDALClose(o->dataset);
    if (made_here)
        VSIUnlink(o->path);
    oj_temporary_remove(&o->temporary);
    CSLDestroy(o->old_members);
    *o = closed;
    o->temporary.lock = -1;
}
