#include "oj_join_layer.h"

#include "../../flatten/base/oj_array.h"
#include "../../flatten/read/oj_layer_arrow.h"
#include "../../flatten/read/oj_table.h"
#include "../../flatten/write/oj_row_cursor.h"
#include "../base/oj_driver.h"
#include "../base/oj_message.h"
#include "../base/oj_sql_inspect.h"
#include "../base/oj_words.h"
#include "../rows/oj_pass.h"
#include "../source/oj_where.h"
#include "oj_join_arrow.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The rows of a join as features, one after another, on the thread that asks
 * for them; the join runs ahead on threads of its own (oj_pass.h).
 *
 *   open -> next, next, ... [stop -> filter -> next, ...]
 *
 * Nothing is read before the first row is asked for.  While rows are under way
 * the datasets of the pass belong to its threads; after stop_rows() they are
 * the caller's.  Rows are of one state of the join side, which is read as a
 * whole before the first one; refresh(), between two runs, sees to it that the
 * next one is of the state that the files are in then.
 *
 * Zeroed memory is a valid closed one. An open one stays where it is. */
struct row_stream
{
    struct oj_pass pass; /* opened by oj_pass_open_shared() */
    const struct oj_join_layer *layer;
    OGRFeatureDefnH asked; /* the layer's fields; those ignored are not set */
    int skips;             /* 1: those ignored in asked when rows are begun are
                              not read, and asked does not change until the
                              stream is stopped; 0: between two rows that are
                              asked for by FID other fields can be ignored */
    int has_ended;         /* no more rows until it is stopped */
    struct oj_row_cursor *cursor; /* there while rows are read */
    struct oj_table *types;       /* the join side's columns, no rows */
    OGRFeatureH spare;            /* made, and not needed */
    int64_t position;             /* rows that were made or skipped */
};

struct oj_join_layer
{
    struct oj_command command;
    struct oj_join_about about; /* defn: of the features that are made */
    struct oj_schema schema;

    /* Rows one after another; and rows asked for by FID, which do not disturb
     * them: a job of its own on the same join side. */
    struct row_stream main, single;
    OGRFeatureDefnH asked_of_main, asked_of_single; /* owned */

    /* The reader's filters. */
    int has_box, has_where;
    OGREnvelope box;
    char *where;        /* owned: where the input layer may filter by it */
    char **used_fields; /* owned: of the reader's condition; NULL: not known */

    GIntBig n_rows;     /* without filters; -1: not known yet */
    int is_one_row;     /* no input row gives two rows */
    int has_stream;     /* an Arrow stream is open */
    OGRFeatureH peeked; /* the next row, read already; or NULL */

    /* What the input layer can do. */
    int has_random_read, has_fast_count, has_fast_extent, has_fast_box;
};

/* ---- errors ------------------------------------------------------------- */

/* One line, whatever a driver or a database put into its own. */
static void report(const struct oj_error *error)
{
    struct oj_error line = *error;
    oj_message_tidy(line.message);
    CPLError(CE_Failure, CPLE_AppDefined, "%s", line.message);
}

/* The end of what a caller asked for: 0 after an error, which is told. */
static int succeeds(oj_status status, const struct oj_error *error)
{
    if (status != OJ_OK)
        report(error);
    return status == OJ_OK;
}

/* ---- rows: start and stop ------------------------------------------------ */

static void close_cursor(struct row_stream *s)
{
    oj_row_cursor_close(s->cursor);
    oj_table_free(s->types);
    s->cursor = NULL;
    s->types = NULL;
}

/* What is ignored when rows are begun is not read; it stays so to the end. */
static void skip_ignored(struct row_stream *s)
{
    for (int i = 0; i < s->layer->schema.n_fields; i++)
    {
        const struct oj_column *column = &s->layer->schema.columns[i];
        if (column->origin == OJ_COLUMN_INPUT)
            oj_source_skip(&s->pass.job.input, column->source,
                           OGR_Fld_IsIgnored(
                               OGR_FD_GetFieldDefn(s->asked, column->target)));
    }
}

static void stop_rows(struct row_stream *stream)
{
    close_cursor(stream);
    (void)!oj_pass_stop(&stream->pass, OJ_OK, NULL);
    stream->has_ended = 0;
    stream->position = 0;
}

static void close_rows(struct row_stream *stream)
{
    const struct row_stream closed = {0};
    stop_rows(stream);
    if (stream->spare != NULL)
        OGR_F_Destroy(stream->spare);
    oj_pass_close(&stream->pass);
    *stream = closed;
}

/* ---- answers ------------------------------------------------------------ */

/* The types of columns are known before the join side is. */
static oj_status open_cursor(struct row_stream *s, struct oj_error *err)
{
    const struct oj_source *join = &s->pass.job.join;
    struct oj_write_options options = {0};
    OJ_TRY(oj_table_new(join->layer, join->fields,
                        join->n_fields + join->n_hidden, &s->types, err));
    oj_rows_fill_write_options(&s->pass.rows, &options);
    options.join_table = s->types;
    options.columns = s->layer->schema.columns;
    options.n_columns = (int)s->layer->schema.n_fields;
    options.keep_fids = s->layer->schema.keep_fids;
    options.crs = OGR_GFld_GetSpatialRef(
        OGR_FD_GetGeomFieldDefn(s->layer->about.defn, 0));
    options.cancel = NULL; /* rows are made when they are asked for */
    OJ_TRY(oj_row_cursor_open(s->asked, &options, &s->cursor, err));
    oj_row_cursor_number(s->cursor, 0);
    return OJ_OK;
}

static oj_status begin_answer(struct row_stream *s,
                              const struct oj_answer *answer,
                              struct oj_error *err)
{
    oj_row_cursor_set_join_side(s->cursor, answer->join_side,
                                answer->join_table);
    oj_row_cursor_spread(s->cursor, oj_pass_most_rows(&s->pass));
    if (answer->is_matched != NULL)
        return oj_row_cursor_begin_join_rows(s->cursor, answer->batch,
                                             answer->is_matched, err);
    return oj_row_cursor_begin(s->cursor, answer->batch, answer->first_row,
                               answer->matches, answer->values, err);
}

static oj_status begin_rows(struct row_stream *stream, struct oj_error *err)
{
    oj_status status;
    if (stream->cursor != NULL)
        return OJ_OK;
    OJ_TRY(oj_pass_reopen(&stream->pass, err));
    status = open_cursor(stream, err);
    if (status != OJ_OK)
        close_cursor(stream);
    return status;
}

/* After the last row, or an error. */
static oj_status end_rows(struct row_stream *s, oj_status status,
                          struct oj_error *err)
{
    s->has_ended = 1;
    oj_row_cursor_end(s->cursor);
    return oj_pass_stop(&s->pass, status, err);
}

static oj_status advance(struct row_stream *stream, int *there,
                         struct oj_error *err)
{
    struct oj_pass *pass = &stream->pass;
    const struct oj_answer *answer = NULL;
    oj_status status;
    *there = 0;
    if (stream->has_ended)
        return OJ_OK;
    if (!pass->is_running && stream->skips)
        skip_ignored(stream);
    oj_row_cursor_end(stream->cursor);
    status = oj_pass_next(pass, &answer, err);
    if (status == OJ_OK && answer != NULL)
        status = begin_answer(stream, answer, err);
    *there = status == OJ_OK && answer != NULL;
    if (!*there)
        status = end_rows(stream, status, err);
    oj_message_list_report(&pass->messages);
    return status;
}

/* A driver's stream knows no fields that are not set, its features do: they
 * are NULL either way. */
static void set_all(const struct row_stream *s, OGRFeatureH feature)
{
    for (int i = 0; i < s->layer->schema.n_fields; i++)
    {
        if (!OGR_F_IsFieldSet(feature, i) &&
            !OGR_Fld_IsIgnored(OGR_FD_GetFieldDefn(s->asked, i)))
            OGR_F_SetFieldNull(feature, i);
    }
}

static oj_status make_spare(struct row_stream *s, struct oj_error *err)
{
    if (s->spare == NULL)
        s->spare = OGR_F_Create(s->layer->about.defn);
    if (s->spare == NULL)
        return oj_fail(err, OJ_ERR_NOMEM, "out of memory: a feature");
    return OJ_OK;
}

/* Gives the row that was made. */
static OGRFeatureH give_spare(struct row_stream *s)
{
    OGRFeatureH feature = s->spare;
    set_all(s, feature);
    s->spare = NULL;
    return feature;
}

static oj_status next_row(struct row_stream *stream, OGRFeatureH *feature,
                          struct oj_error *err)
{
    int there = 1;
    *feature = NULL;
    if (stream->has_ended)
        return OJ_OK;
    OJ_TRY(begin_rows(stream, err));
    OJ_TRY(make_spare(stream, err));
    while (there)
    {
        int is_made = 0;
        oj_status status =
            oj_row_cursor_next(stream->cursor, stream->spare, 0, &is_made, err);
        if (status != OJ_OK)
            return end_rows(stream, status, err);
        if (is_made)
        {
            *feature = give_spare(stream);
            stream->position++;
            return OJ_OK;
        }
        OJ_TRY(advance(stream, &there, err));
    }
    return OJ_OK;
}

static oj_status skip_rows(struct row_stream *stream, int64_t n,
                           int64_t *n_passed, struct oj_error *err)
{
    struct oj_row_place places[256];
    const int64_t most = (int64_t)(sizeof places / sizeof *places);
    int there = 1;
    *n_passed = 0;
    if (stream->has_ended)
        return OJ_OK;
    OJ_TRY(begin_rows(stream, err));
    while (*n_passed < n && there)
    {
        int64_t left = n - *n_passed;
        int64_t taken = oj_row_cursor_take(stream->cursor, places,
                                           left < most ? left : most);
        *n_passed += taken;
        stream->position += taken;
        if (taken == 0)
            OJ_TRY(advance(stream, &there, err));
    }
    return OJ_OK;
}

/* ---- single rows -------------------------------------------------------- */

/* Row n of the answer. */
static oj_status make_row(struct row_stream *s, int64_t n, OGRFeatureH *feature,
                          struct oj_error *err)
{
    struct oj_row_place place;
    int there = 1;
    while (n > 0 && there)
    {
        there = oj_row_cursor_take(s->cursor, &place, 1) > 0;
        n--;
    }
    if (!there)
        return OJ_OK;
    OJ_TRY(make_spare(s, err));
    OJ_TRY(oj_row_cursor_next(s->cursor, s->spare, 0, &there, err));
    if (!there)
        return OJ_OK;
    *feature = give_spare(s);
    return OJ_OK;
}

static oj_status get_row(struct row_stream *stream, int64_t fid,
                         OGRFeatureH *feature, struct oj_error *err)
{
    struct oj_answer answer;
    oj_status status;
    int there;
    *feature = NULL;
    OJ_TRY(begin_rows(stream, err));
    status = oj_pass_one(&stream->pass, &fid, &answer, &there, err);
    if (status == OJ_OK && there)
    {
        status = begin_answer(stream, &answer, err);
        if (status == OJ_OK)
            status = make_row(stream, fid, feature, err);
        oj_row_cursor_end(stream->cursor);
        stream->pass.is_broken = status != OJ_OK;
    }
    oj_message_list_report(&stream->pass.messages);
    return status;
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
static oj_status plan_fields(struct oj_join_layer *layer, struct oj_error *err)
{
    const struct oj_pass *pass = &layer->main.pass;
    const struct oj_source *input = &pass->job.input;
    const struct oj_schema_request *request = &pass->rows.fields;
    struct oj_schema *schema = &layer->schema;
    const char *fid =
        name_beside_fields(input, OGR_L_GetFIDColumn(input->layer));
    const char *geometry =
        name_beside_fields(input, OGR_L_GetGeometryColumn(input->layer));
    OJ_TRY(oj_schema_take_name(schema, fid, err));
    OJ_TRY(oj_schema_take_name(schema, geometry, err));
    OJ_TRY(oj_schema_plan(request, schema, err));
    layer->is_one_row = request->one_row_per_input;
    schema->keep_fids = !request->has_other_rows && !input->is_result_set &&
                        !layer->command.output.unset_fid;
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

static oj_status define(const struct oj_join_layer *layer, OGRFeatureDefnH *out,
                        struct oj_error *err)
{
    const struct oj_job *job = &layer->main.pass.job;
    OGRwkbGeometryType type = layer->main.pass.rows.fields.type;
    const char *geometry = name_beside_fields(
        &job->input, OGR_L_GetGeometryColumn(job->input.layer));
    OGRFeatureDefnH defn = OGR_FD_Create(layer->about.name);
    OGRGeomFieldDefnH field;
    if (defn == NULL)
        return oj_fail(err, OJ_ERR_NOMEM, "out of memory: a definition");
    OGR_FD_Reference(defn);
    *out = defn;
    for (int i = 0; i < (int)layer->schema.n_fields; i++)
    {
        /* No dataset of ours has domains. */
        OGR_FD_AddFieldDefn(defn, OGR_FD_GetFieldDefn(layer->schema.defn, i));
        OGR_Fld_SetDomainName(OGR_FD_GetFieldDefn(defn, i), "");
    }
    OGR_FD_SetGeomType(defn,
                       oj_schema_layer_type(&layer->command.output, type));
    field = OGR_FD_GetGeomFieldDefn(defn, 0);
    if (field == NULL)
        return OJ_OK;
    OGR_GFld_SetName(field, geometry);
    return set_crs(field, job->crs.output, err);
}

static void choose_names(struct oj_join_layer *layer)
{
    const struct oj_source *input = &layer->main.pass.job.input;
    const char *given = layer->command.output.layer;
    const char *fid =
        name_beside_fields(input, OGR_L_GetFIDColumn(input->layer));
    int is_reserved = given == NULL && oj_sql_is_keyword(input->name);
    layer->about.name =
        CPLStrdup(is_reserved     ? CPLSPrintf("%s_joined", input->name)
                  : given != NULL ? given
                                  : input->name);
    layer->about.fid_column =
        CPLStrdup(layer->schema.keep_fids && layer->is_one_row ? fid : "");
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
    list = CSLSetNameValue(list, "OPERATION", oj_command_op_name(command));
    list = add_side(list, &job->input, "INPUT");
    list = add_side(list, &job->join, "JOIN");
    if (job->crs.unit[0] != '\0')
        list = CSLSetNameValue(list, "DISTANCE_UNIT", job->crs.unit);
    layer->about.metadata = list;
    if (command->words != NULL)
    {
        char *line = NULL;
        OJ_TRY(oj_words_join(command->words, &line, err));
        layer->about.metadata = CSLSetNameValue(list, "COMMAND_LINE", line);
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
            if (CSLFindString(layer->about.files, files[j]) < 0)
                layer->about.files = CSLAddString(layer->about.files, files[j]);
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
    OJ_TRY(oj_rows_type(&layer->main.pass.rows, NULL, err));
    OJ_TRY(plan_fields(layer, err));
    choose_names(layer);
    OJ_TRY(define(layer, &layer->about.defn, err));
    OJ_TRY(define(layer, &layer->asked_of_main, err));
    OJ_TRY(define(layer, &layer->asked_of_single, err));
    layer->main.asked = layer->asked_of_main;
    list_files(layer);
    ask_input(layer);
    return describe(layer, err);
}

/* Notices of the plan go where those of the pass went. */
static oj_status open_layer(struct oj_join_layer *layer, struct oj_error *err)
{
    struct oj_message_sink sink;
    oj_status status;
    if (layer->command.output.layer_type == OJ_LAYER_NONE)
        return oj_fail(err, OJ_ERR_ARG,
                       "-nlt NONE is for runs that write a dataset; who reads "
                       "rows of a join chooses what to read of them");
    OJ_TRY(oj_pass_open_shared(&layer->command, NULL, &layer->main.pass, err));
    oj_pass_hear(&layer->main.pass, &sink);
    status = plan(layer, err);
    oj_message_end_list();
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
    layer->main.layer = layer;
    layer->main.skips = 1;
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
    report(&error);
    return NULL;
}

void oj_join_layer_close(struct oj_join_layer *layer)
{
    if (layer == NULL)
        return;
    if (layer->peeked != NULL)
        OGR_F_Destroy(layer->peeked);
    /* Its thread may look at the other one. */
    stop_rows(&layer->main);
    close_rows(&layer->single);
    close_rows(&layer->main);
    if (layer->about.defn != NULL)
        OGR_FD_Release(layer->about.defn);
    if (layer->asked_of_main != NULL)
        OGR_FD_Release(layer->asked_of_main);
    if (layer->asked_of_single != NULL)
        OGR_FD_Release(layer->asked_of_single);
    oj_schema_free(&layer->schema);
    CSLDestroy(layer->about.metadata);
    CSLDestroy(layer->about.files);
    CSLDestroy(layer->used_fields);
    CPLFree(layer->where);
    CPLFree(layer->about.name);
    CPLFree(layer->about.fid_column);
    oj_command_free(&layer->command);
    oj_free(layer);
}

void oj_join_layer_unload(void)
{
    oj_join_cache_clear();
}

/* ---- what it is --------------------------------------------------------- */

const struct oj_join_about *
oj_join_layer_about(const struct oj_join_layer *layer)
{
    return &layer->about;
}

static int is_one_to_one(const struct oj_join_layer *layer)
{
    return layer->is_one_row && layer->command.how == OJ_HOW_LEFT;
}

/* ---- what is ignored ---------------------------------------------------- */

static int is_used(const struct oj_join_layer *layer, const char *name)
{
    return CSLFindString(layer->used_fields, name) >= 0;
}

/* What the reader's filters look at is set though it is ignored. */
static void look_at_ignored(const struct oj_join_layer *layer,
                            OGRFeatureDefnH asked)
{
    OGRFeatureDefnH defn = layer->about.defn;
    int all = layer->has_where && layer->used_fields == NULL;
    int n = OGR_FD_GetFieldCount(defn);
    for (int i = 0; i < n; i++)
    {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(defn, i);
        int is_ignored =
            OGR_Fld_IsIgnored(field) && !all &&
            !(layer->has_where && is_used(layer, OGR_Fld_GetNameRef(field)));
        OGR_Fld_SetIgnored(OGR_FD_GetFieldDefn(asked, i), is_ignored);
    }
    OGR_FD_SetGeometryIgnored(asked, OGR_FD_IsGeometryIgnored(defn) &&
                                         !layer->has_box && !layer->has_where);
}

/* ---- what may go down --------------------------------------------------- */

/* 0 after a side could not be opened anew: then nothing is known of the input,
 * and no filter goes down to it. */
static int is_open(const struct oj_join_layer *layer)
{
    return layer->main.pass.rows.job != NULL;
}

/* 1 when leaving out rows of the input changes no other row: not their FIDs,
 * not which join rows match nothing, not which rows are the first ones. What
 * was added up while the join layer streamed is there for all rows at once. */
static int may_leave_out(const struct oj_join_layer *layer)
{
    const struct oj_pass *pass = &layer->main.pass;
    return is_open(layer) && layer->schema.keep_fids &&
           layer->command.limit < 0 && !pass->rows.fields.has_other_rows &&
           !pass->rows.streams_join;
}

/* Rows have the input's geometry, in the input's CRS. */
static int has_input_geometry(const struct oj_join_layer *layer)
{
    const struct oj_pass *pass = &layer->main.pass;
    return is_open(layer) && pass->rows.geometry == OJ_WRITE_INPUT &&
           pass->job.input.transformation == NULL;
}

/* 1 when name is, in rows and in the input layer, the same field. */
static int is_input_field(const struct oj_join_layer *layer, const char *name)
{
    const struct oj_source *input = &layer->main.pass.job.input;
    OGRFeatureDefnH theirs = OGR_L_GetLayerDefn(input->layer);
    int i = OGR_FD_GetFieldIndex(layer->about.defn, name);
    const struct oj_column *column = i >= 0 ? &layer->schema.columns[i] : NULL;
    return column != NULL && column->origin == OJ_COLUMN_INPUT &&
           OGR_FD_GetFieldIndex(theirs, name) == input->fields[column->source];
}

/* Drivers that leave conditions to OGR: they mean there what they mean here. */
static int asks_ogr(const struct oj_source *input)
{
    static const char *const names[] = {"ESRI Shapefile",
                                        "FlatGeobuf",
                                        "GeoJSON",
                                        "GeoJSONSeq",
                                        "CSV",
                                        "Memory",
                                        "MEM",
                                        "MapInfo File",
                                        "KML",
                                        "GML",
                                        NULL};
    return CSLFindString(
               (CSLConstList)names,
               GDALGetDescription(GDALGetDatasetDriver(input->dataset))) >= 0;
}

static int may_push_where(const struct oj_join_layer *layer, const char *where,
                          char **used_fields)
{
    const struct oj_source *input = &layer->main.pass.job.input;
    if (input->layer == NULL || used_fields == NULL || !may_leave_out(layer))
        return 0;
    for (int i = 0; used_fields[i] != NULL; i++)
    {
        if (!is_input_field(layer, used_fields[i]))
            return 0;
    }
    if (oj_driver_is_database(GDALGetDatasetDriver(input->dataset)))
        return 0;
    return asks_ogr(input) ||
           oj_where_is_plain(where, OGR_L_GetLayerDefn(input->layer));
}

/* ---- filters ------------------------------------------------------------ */

/* What is no number has no place in a driver's SQL. */
static int pushes_box(const struct oj_join_layer *layer)
{
    const OGREnvelope *box = &layer->box;
    return layer->has_box && may_leave_out(layer) &&
           has_input_geometry(layer) && isfinite(box->MinX) &&
           isfinite(box->MinY) && isfinite(box->MaxX) && isfinite(box->MaxY);
}

/* Has the input layer filter by what the reader asks, as far as it may. */
static void push_filters(struct oj_join_layer *layer)
{
    struct oj_pass *pass = &layer->main.pass;
    layer->single.pass.where = NULL;
    if (layer->has_stream)
        return;
    stop_rows(&layer->main);
    pass->box = pushes_box(layer) ? &layer->box : NULL;
    pass->where = layer->where;
}

/* ---- one after another -------------------------------------------------- */

/* Before something is read from the start: opens both sides anew where one of
 * their files has changed, or something failed. Does nothing while rows are
 * read. OJ_ERR_DATA: their fields are others than those of the layer. */
static oj_status refresh(struct oj_join_layer *layer, struct oj_error *err)
{
    oj_status status;
    if (!oj_pass_is_outdated(&layer->main.pass))
        return OJ_OK;
    close_cursor(&layer->main);
    status = oj_pass_reopen(&layer->main.pass, err);
    layer->n_rows = -1;
    close_rows(&layer->single);
    return status;
}

/* Before rows are read: what is in the files and what is ignored now counts. */
static oj_status begin(struct oj_join_layer *layer, struct oj_error *err)
{
    if (layer->main.cursor != NULL)
        return OJ_OK;
    look_at_ignored(layer, layer->asked_of_main);
    return refresh(layer, err);
}

/* The same for those who tell errors: there are no rows after one. */
static int begins(struct oj_join_layer *layer)
{
    struct oj_error error = {OJ_OK, ""};
    layer->main.has_ended = !succeeds(begin(layer, &error), &error);
    return !layer->main.has_ended;
}

/* The next row of the main stream; NULL at the end or after an error, which is
 * told. */
static OGRFeatureH read_next(struct oj_join_layer *layer)
{
    struct oj_error error = {OJ_OK, ""};
    OGRFeatureH feature = NULL;
    if (layer->main.has_ended || !begins(layer))
        return NULL;
    if (!succeeds(next_row(&layer->main, &feature, &error), &error))
        return NULL;
    if (feature == NULL && !layer->has_box && !layer->has_where)
        layer->n_rows = layer->main.position;
    return feature;
}

OGRFeatureH oj_join_layer_next(struct oj_join_layer *layer)
{
    OGRFeatureH feature = layer->peeked;
    layer->peeked = NULL;
    if (layer->has_stream)
        return NULL;
    return feature != NULL ? feature : read_next(layer);
}

void oj_join_layer_reset(struct oj_join_layer *layer)
{
    if (layer->peeked != NULL)
        OGR_F_Destroy(layer->peeked);
    layer->peeked = NULL;
    if (!layer->has_stream)
        stop_rows(&layer->main);
}

int oj_join_layer_skip_to(struct oj_join_layer *layer, GIntBig index)
{
    struct oj_error error = {OJ_OK, ""};
    int64_t n_passed = 0, n;
    if (layer->has_stream)
        return 0;
    if (layer->peeked != NULL || layer->main.has_ended ||
        index < layer->main.position)
        oj_join_layer_reset(layer);
    if (index < 0)
    {
        layer->main.has_ended = 1;
        return 0;
    }
    if (!begins(layer))
        return 0;
    n = index - layer->main.position;
    if (!succeeds(skip_rows(&layer->main, n, &n_passed, &error), &error))
        return 0;
    layer->peeked = n_passed == n ? read_next(layer) : NULL;
    return layer->peeked != NULL;
}

/* ---- by FID ------------------------------------------------------------- */

static oj_status open_single(struct oj_join_layer *layer, struct oj_error *err)
{
    struct row_stream *single = &layer->single;
    oj_status status;
    if (single->layer != NULL)
        return OJ_OK;
    status = oj_pass_open_shared(&layer->command, &layer->main.pass,
                                 &single->pass, err);
    if (status != OJ_OK)
    {
        close_rows(single);
        return status;
    }
    /* Messages of the plan were reported before. */
    oj_message_list_drop(&single->pass.messages);
    single->layer = layer;
    single->asked = layer->asked_of_single;
    layer->main.pass.like = &single->pass;
    return OJ_OK;
}

/* Rows are numbered: passes over those before. */
static oj_status get_numbered(struct row_stream *s, int64_t fid,
                              OGRFeatureH *feature, struct oj_error *err)
{
    int64_t n_passed = 0, n;
    if (s->has_ended || fid < s->position)
        stop_rows(s);
    n = fid - s->position;
    OJ_TRY(skip_rows(s, n, &n_passed, err));
    return n_passed == n ? next_row(s, feature, err) : OJ_OK;
}

/* With -limit a row counts only where it comes before the end. */
static oj_status get_searched(struct row_stream *s, int64_t fid,
                              OGRFeatureH *feature, struct oj_error *err)
{
    stop_rows(s);
    for (;;)
    {
        OJ_TRY(next_row(s, feature, err));
        if (*feature == NULL || OGR_F_GetFID(*feature) == fid)
            return OJ_OK;
        OGR_F_Destroy(*feature);
        *feature = NULL;
    }
}

static oj_status get(struct oj_join_layer *layer, int64_t fid,
                     OGRFeatureH *feature, struct oj_error *err)
{
    OJ_TRY(refresh(layer, err));
    OJ_TRY(open_single(layer, err));
    look_at_ignored(layer, layer->asked_of_single);
    if (!layer->schema.keep_fids)
        return get_numbered(&layer->single, fid, feature, err);
    if (layer->command.limit >= 0)
        return get_searched(&layer->single, fid, feature, err);
    return get_row(&layer->single, fid, feature, err);
}

OGRFeatureH oj_join_layer_get(struct oj_join_layer *layer, GIntBig fid)
{
    struct oj_error error = {OJ_OK, ""};
    OGRFeatureH feature = NULL;
    if (fid < 0)
        return NULL;
    if (succeeds(get(layer, fid, &feature, &error), &error))
        return feature;
    if (feature != NULL)
        OGR_F_Destroy(feature);
    return NULL;
}

/* ---- filters ----------------------------------------------------------- */

void oj_join_layer_filter_box(struct oj_join_layer *layer,
                              const OGREnvelope *box)
{
    oj_join_layer_reset(layer);
    layer->has_box = box != NULL;
    if (box != NULL)
        layer->box = *box;
    push_filters(layer);
}

int oj_join_layer_filter_where(struct oj_join_layer *layer, const char *where,
                               char **used_fields)
{
    oj_join_layer_reset(layer);
    CPLFree(layer->where);
    layer->where = NULL;
    CSLDestroy(layer->used_fields);
    layer->used_fields = CSLDuplicate(used_fields);
    layer->has_where = where != NULL;
    if (where != NULL && !layer->has_stream &&
        may_push_where(layer, where, used_fields))
        layer->where = CPLStrdup(where);
    push_filters(layer);
    return layer->where != NULL;
}

/* ---- counts ------------------------------------------------------------- */

/* A pass whose datasets are not in use. */
static oj_status idle_pass(struct oj_join_layer *layer, struct oj_pass **pass,
                           struct oj_error *err)
{
    struct row_stream *stream = &layer->main;
    *pass = &stream->pass;
    if (!stream->pass.is_running && !layer->has_stream)
        return OJ_OK;
    OJ_TRY(open_single(layer, err));
    stream = &layer->single;
    *pass = &stream->pass;
    stop_rows(stream);
    stream->pass.where = layer->where;
    return oj_pass_reopen(*pass, err);
}

static oj_status count(struct oj_join_layer *layer, int force, int64_t *n,
                       struct oj_error *err)
{
    int is_known = is_one_to_one(layer);
    struct oj_pass *pass;
    oj_status status;
    *n = -1;
    if ((layer->has_where && layer->where == NULL) ||
        (!force && !(is_known && layer->has_fast_count)))
        return OJ_OK;
    OJ_TRY(idle_pass(layer, &pass, err));
    status = is_known ? oj_pass_ask_input(pass, force, n, NULL, err)
                      : oj_pass_count(pass, n, err);
    oj_message_list_report(&pass->messages);
    return status;
}

GIntBig oj_join_layer_count(struct oj_join_layer *layer, int force)
{
    struct oj_error error = {OJ_OK, ""};
    int has_filter = layer->has_box || layer->has_where;
    int64_t n = -1;
    if (layer->has_box)
        return -1;
    if (!succeeds(refresh(layer, &error), &error))
        return -1;
    if (!has_filter && layer->n_rows >= 0)
        return layer->n_rows;
    if (!succeeds(count(layer, force, &n, &error), &error))
        return -1;
    if (!has_filter && n >= 0)
        layer->n_rows = n;
    return n;
}

/* ---- where rows are ----------------------------------------------------- */

/* Every feature of the input has a row, with its geometry. */
static int has_input_extent(const struct oj_join_layer *layer)
{
    return has_input_geometry(layer) && layer->command.how == OJ_HOW_LEFT &&
           layer->command.limit < 0 &&
           !oj_source_is_filtered(&layer->main.pass.job.input);
}

int oj_join_layer_extent(struct oj_join_layer *layer, OGREnvelope *extent,
                         int force)
{
    struct oj_error error = {OJ_OK, ""};
    struct oj_pass *pass;
    oj_status status;
    int64_t there = 0;
    if (!has_input_extent(layer) || (!force && !layer->has_fast_extent))
        return 0;
    status = refresh(layer, &error);
    if (status == OJ_OK)
        status = idle_pass(layer, &pass, &error);
    if (status == OJ_OK)
    {
        status = oj_pass_ask_input(pass, force, &there, extent, &error);
        oj_message_list_report(&pass->messages);
    }
    (void)succeeds(status, &error);
    return there > 0;
}

/* ---- capabilities ------------------------------------------------------- */

static int has_rows_by_fid(const struct oj_join_layer *layer)
{
    return is_open(layer) && layer->schema.keep_fids &&
           layer->command.limit < 0 && layer->has_random_read &&
           !oj_source_is_filtered(&layer->main.pass.job.input);
}

int oj_join_layer_has(struct oj_join_layer *layer, const char *capability)
{
    int has_filter = layer->has_box || layer->has_where;
    if (strcasecmp(capability, OLCRandomRead) == 0)
        return has_rows_by_fid(layer);
    if (strcasecmp(capability, OLCFastFeatureCount) == 0)
        return !has_filter && (layer->n_rows >= 0 ||
                               (is_one_to_one(layer) && layer->has_fast_count));
    if (strcasecmp(capability, OLCFastGetExtent) == 0)
        return has_input_extent(layer) && layer->has_fast_extent;
    if (strcasecmp(capability, OLCFastSpatialFilter) == 0)
        return may_leave_out(layer) && has_input_geometry(layer) &&
               layer->has_fast_box;
    if (strcasecmp(capability, OLCFastSetNextByIndex) == 0)
        return !has_filter;
#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 6, 0)
    if (strcasecmp(capability, OLCFastGetArrowStream) == 0)
        return !has_filter;
#endif
    return strcasecmp(capability, OLCStringsAsUTF8) == 0 ||
           strcasecmp(capability, OLCIgnoreFields) == 0 ||
           strcasecmp(capability, OLCCurveGeometries) == 0 ||
           strcasecmp(capability, OLCMeasuredGeometries) == 0 ||
           strcasecmp(capability, "ZGeometries") == 0;
}

/* ---- Arrow -------------------------------------------------------------- */

#if OJ_HAVE_ARROW

static oj_status advance_main(void *user, int *there, struct oj_error *err)
{
    struct oj_join_layer *layer = user;
    return advance(&layer->main, there, err);
}

/* Filters that were set meanwhile count from now on. */
static void close_arrow(void *user)
{
    struct oj_join_layer *layer = user;
    layer->has_stream = 0;
    stop_rows(&layer->main);
    push_filters(layer);
}

int oj_join_layer_arrow(struct oj_join_layer *layer,
                        struct ArrowArrayStream *stream, char **options)
{
    struct oj_error error = {OJ_OK, ""};
    struct oj_arrow_rows rows = {0};
    if (layer->has_stream || layer->has_box || layer->has_where)
        return 0;
    oj_join_layer_reset(layer);
    if (begin(layer, &error) != OJ_OK ||
        begin_rows(&layer->main, &error) != OJ_OK)
        return 0; /* who reads features instead is told */
    rows.cursor = layer->main.cursor;
    rows.advance = advance_main;
    rows.closed = close_arrow;
    rows.user = layer;
    layer->has_stream =
        oj_join_arrow_open(layer->about.defn, &rows, options, stream);
    if (!layer->has_stream)
        oj_join_layer_reset(layer);
    return layer->has_stream;
}

#endif
