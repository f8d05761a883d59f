/* What a join layer is: open, close, describe. */
#include "oj_join_layer_state.h"

#include "../../flatten/base/oj_array.h"
#include "../base/oj_message.h"
#include "../base/oj_sql_words.h"
#include "../base/oj_words.h"
#include "../command/oj_command_parse.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>

#include <stdio.h>
#include <string.h>

/* ---- errors ------------------------------------------------------------- */

/* One line, whatever a driver or a database put into its own. */
void oj_join_layer_report(const struct oj_error *error)
{
    struct oj_error line = *error;
    oj_message_tidy(line.message);
    CPLError(CE_Failure, CPLE_AppDefined, "%s", line.message);
}

/* ---- the definition ----------------------------------------------------- */

/* The name of the input's FIDs or geometries, or "" where a field of the input
 * is called so, too: a client would take its values for FIDs. */
static const char *name_beside_fields(const struct oj_source *input,
                                      const char *name)
{
    return name == NULL || oj_schema_has_input_field(input, name) ? "" : name;
}

/* Fields of the output, under names that no format has to change for its FIDs
 * and geometries when the input came from the same one. */
static oj_status plan_fields(struct oj_join_layer *layer,
                             OGRwkbGeometryType type, struct oj_error *err)
{
    const struct oj_pass *pass = &layer->main.pass;
    const struct oj_source *input = &pass->job.input;
    const struct oj_schema_request request = oj_pass_request(pass, type);
    struct oj_schema *schema = &layer->schema;
    const char *fid =
        name_beside_fields(input, OGR_L_GetFIDColumn(input->layer));
    const char *geometry =
        name_beside_fields(input, OGR_L_GetGeometryColumn(input->layer));
    OJ_TRY(oj_schema_take_name(schema, fid, NULL, err));
    OJ_TRY(oj_schema_take_name(schema, geometry, NULL, err));
    OJ_TRY(oj_schema_plan(&request, schema, err));
    layer->is_one_row = request.one_row_per_input;
    schema->keep_fids = !request.has_other_rows && !input->is_result_set &&
                        !layer->command.unset_fid;
    OJ_NEW(schema->columns, schema->n_fields + 1, err);
    for (int64_t i = 0; i < schema->n_fields; i++)
    {
        oj_schema_column(schema, i, &schema->columns[i]);
        schema->columns[i].target = (int)i;
    }
    return OJ_OK;
}

/* The CRS is the definition's own: the job can be opened anew. */
static oj_status set_crs(OGRGeomFieldDefnH field, OGRSpatialReferenceH crs,
                         struct oj_error *err)
{
    OGRSpatialReferenceH own;
    if (crs == NULL)
        return OJ_OK;
    own = OSRClone(crs);
    if (own == NULL)
        return oj_fail(err, OJ_ERR_NOMEM, "out of memory: a CRS");
    OGR_GFld_SetSpatialRef(field, own);
    OSRRelease(own);
    return OJ_OK;
}

static oj_status define(const struct oj_join_layer *layer,
                        OGRwkbGeometryType type, OGRFeatureDefnH *out,
                        struct oj_error *err)
{
    const struct oj_job *job = &layer->main.pass.job;
    const char *geometry = name_beside_fields(
        &job->input, OGR_L_GetGeometryColumn(job->input.layer));
    OGRFeatureDefnH defn = OGR_FD_Create(layer->name);
    OGRGeomFieldDefnH field;
    if (defn == NULL)
        return oj_fail(err, OJ_ERR_NOMEM, "out of memory: a definition");
    OGR_FD_Reference(defn);
    *out = defn;
    for (int64_t i = 0; i < layer->schema.n_fields; i++)
    {
        /* No dataset of ours has domains. */
        OGR_Fld_SetDomainName(layer->schema.fields[i].defn, "");
        OGR_FD_AddFieldDefn(defn, layer->schema.fields[i].defn);
    }
    OGR_FD_SetGeomType(defn, oj_schema_layer_type(&layer->command, type));
    field = OGR_FD_GetGeomFieldDefn(defn, 0);
    if (field == NULL)
        return OJ_OK;
    OGR_GFld_SetName(field, geometry);
    return set_crs(field, job->crs.output, err);
}

static oj_status choose_name(struct oj_join_layer *layer, struct oj_error *err)
{
    const char *given = layer->command.layer_name;
    const char *name = given != NULL ? given : layer->main.pass.job.input.name;
    int is_reserved = given == NULL && oj_sql_is_keyword(name);
    size_t size = strlen(name) + 16;
    OJ_NEW(layer->name, (int64_t)size, err);
    snprintf(layer->name, size, "%s%s", name, is_reserved ? "_joined" : "");
    return OJ_OK;
}

static oj_status choose_fid_column(struct oj_join_layer *layer,
                                   struct oj_error *err)
{
    const struct oj_source *input = &layer->main.pass.job.input;
    const char *name =
        name_beside_fields(input, OGR_L_GetFIDColumn(input->layer));
    size_t size;
    if (!layer->schema.keep_fids || !layer->is_one_row)
        name = "";
    size = strlen(name) + 1;
    OJ_NEW(layer->fid_column, (int64_t)size, err);
    memcpy(layer->fid_column, name, size);
    return OJ_OK;
}

/* ---- metadata ----------------------------------------------------------- */

static char **add_side(char **list, const struct oj_source *source,
                       const char *role)
{
    const struct oj_source_options *side = source->side;
    const struct
    {
        const char *what, *value;
    } of[] = {{"DATASET", side->dataset},
              {"LAYER", side->sql == NULL ? source->name : NULL},
              {"SQL", side->sql},
              {"WHERE", side->where}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
    {
        char key[32];
        snprintf(key, sizeof key, "%s_%s", role, of[i].what);
        if (of[i].value != NULL)
            list = CSLSetNameValue(list, key, of[i].value);
    }
    return list;
}

static oj_status describe(struct oj_join_layer *layer, struct oj_error *err)
{
    const struct oj_job *job = &layer->main.pass.job;
    const struct oj_command *command = &layer->command;
    char **list = NULL;
    list = CSLSetNameValue(
        list, "OPERATION",
        command->is_window ? "window" : oj_op_get(job->relation.op)->name);
    list = add_side(list, &job->input, "INPUT");
    list = add_side(list, &job->join, "JOIN");
    if (job->crs.unit[0] != '\0')
        list = CSLSetNameValue(list, "DISTANCE_UNIT", job->crs.unit);
    layer->metadata = list;
    if (command->words != NULL)
    {
        char *line = NULL;
        OJ_TRY(oj_words_join(command->words, &line, err));
        layer->metadata = CSLSetNameValue(list, "COMMAND_LINE", line);
        oj_free(line);
    }
    return OJ_OK;
}

/* Before rows are asked for: then the datasets are in the hands of a thread. */
static void list_files(struct oj_join_layer *layer)
{
    const struct oj_source *sides[2] = {&layer->main.pass.job.input,
                                        &layer->main.pass.job.join};
    for (int i = 0; i < 2; i++)
    {
        char **files = GDALGetFileList(sides[i]->dataset);
        for (int j = 0; files != NULL && files[j] != NULL; j++)
        {
            if (CSLFindString(layer->files, files[j]) < 0)
                layer->files = CSLAddString(layer->files, files[j]);
        }
        CSLDestroy(files);
    }
}

/* The same. */
static void ask_input(struct oj_join_layer *layer)
{
    OGRLayerH input = layer->main.pass.job.input.layer;
    layer->has_random_read = OGR_L_TestCapability(input, OLCRandomRead);
    layer->has_fast_count = OGR_L_TestCapability(input, OLCFastFeatureCount);
    layer->has_fast_extent = OGR_L_TestCapability(input, OLCFastGetExtent);
    layer->has_fast_box = OGR_L_TestCapability(input, OLCFastSpatialFilter);
}

/* ---- open and close ----------------------------------------------------- */

static oj_status plan(struct oj_join_layer *layer, struct oj_error *err)
{
    struct oj_pass *pass = &layer->main.pass;
    OGRwkbGeometryType type = wkbUnknown;
    OJ_TRY(oj_rows_type(&pass->rows, NULL, &type, err));
    OJ_TRY(choose_name(layer, err));
    OJ_TRY(plan_fields(layer, type, err));
    OJ_TRY(choose_fid_column(layer, err));
    OJ_TRY(define(layer, type, &layer->shape.defn, err));
    OJ_TRY(define(layer, type, &layer->shape.asked, err));
    layer->shape.columns = layer->schema.columns;
    layer->shape.n_columns = (int)layer->schema.n_fields;
    layer->shape.crs =
        OGR_GFld_GetSpatialRef(OGR_FD_GetGeomFieldDefn(layer->shape.defn, 0));
    layer->shape.keep_fids = layer->schema.keep_fids;
    oj_row_stream_shape(&layer->main, &layer->shape, 1);
    layer->shape_of_single = layer->shape;
    layer->shape_of_single.asked = NULL;
    OJ_TRY(define(layer, type, &layer->shape_of_single.asked, err));
    list_files(layer);
    ask_input(layer);
    return describe(layer, err);
}

/* Notices of the plan go where those of the pass went. */
static oj_status open_layer(struct oj_join_layer *layer, struct oj_error *err)
{
    struct oj_message_sink sink;
    oj_status status;
    if (layer->command.layer_type == OJ_LAYER_NONE)
        return oj_fail(err, OJ_ERR_ARG,
                       "-nlt NONE is for runs that write a dataset; who reads "
                       "rows of a join chooses what to read of them");
    OJ_TRY(oj_pass_open_shared(&layer->command, NULL, &layer->main.pass, err));
    oj_pass_hear(&layer->main.pass, &sink);
    status = plan(layer, err);
    oj_message_use(NULL);
    return status;
}

struct oj_join_layer *oj_join_layer_open(struct oj_command *command)
{
    const struct oj_command empty = {0};
    struct oj_join_layer *layer = oj_calloc(1, sizeof *layer);
    struct oj_error error = {OJ_OK, ""};
    oj_status status;
    if (layer == NULL)
    {
        oj_command_free(command);
        *command = empty;
        CPLError(CE_Failure, CPLE_OutOfMemory, "out of memory: a layer");
        return NULL;
    }
    layer->command = *command;
    *command = empty;
    layer->command.quiet = 1;
    layer->n_rows = -1;
    CPLErrorReset();
    status = open_layer(layer, &error);
    if (status == OJ_OK)
    {
        /* What GDAL tried in vain on the way is no failure of ours. */
        CPLErrorReset();
        oj_message_list_report(&layer->main.pass.messages);
        return layer;
    }
    oj_join_layer_close(layer);
    oj_join_layer_report(&error);
    return NULL;
}

void oj_join_layer_close(struct oj_join_layer *layer)
{
    if (layer == NULL)
        return;
    if (layer->peeked != NULL)
        OGR_F_Destroy(layer->peeked);
    /* Its thread may look at the other one. */
    oj_row_stream_stop(&layer->main);
    oj_row_stream_close(&layer->single);
    oj_row_stream_close(&layer->main);
    if (layer->shape.defn != NULL)
        OGR_FD_Release(layer->shape.defn);
    if (layer->shape.asked != NULL)
        OGR_FD_Release(layer->shape.asked);
    if (layer->shape_of_single.asked != NULL)
        OGR_FD_Release(layer->shape_of_single.asked);
    oj_schema_free(&layer->schema);
    CSLDestroy(layer->metadata);
    CSLDestroy(layer->files);
    CSLDestroy(layer->used_fields);
    oj_free(layer->where);
    oj_free(layer->name);
    oj_free(layer->fid_column);
    oj_command_free(&layer->command);
    oj_free(layer);
}

/* ---- what it is --------------------------------------------------------- */

const char *oj_join_layer_name(const struct oj_join_layer *layer)
{
    return layer->name;
}

OGRFeatureDefnH oj_join_layer_defn(const struct oj_join_layer *layer)
{
    return layer->shape.defn;
}

const char *oj_join_layer_fid_column(const struct oj_join_layer *layer)
{
    return layer->fid_column;
}

char **oj_join_layer_metadata(const struct oj_join_layer *layer)
{
    return layer->metadata;
}

char **oj_join_layer_files(const struct oj_join_layer *layer)
{
    return CSLDuplicate(layer->files);
}

int oj_join_layer_is_one_to_one(const struct oj_join_layer *layer)
{
    return layer->is_one_row && layer->command.how == OJ_HOW_LEFT;
}
