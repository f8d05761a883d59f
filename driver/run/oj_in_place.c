#include "oj_run.h"

#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "../../flatten/write/oj_row_cursor.h"
#include "../base/oj_cancel.h"
#include "../base/oj_driver.h"
#include "../base/oj_message.h"
#include "../base/oj_transaction.h"
#include "../files/oj_temporary.h"
#include "../output/oj_index_triggers.h"
#include "../output/oj_schema.h"
#include "../rows/oj_pass.h"
#include "../rows/oj_proof.h"
#include "../rows/oj_summary.h"

#include <cpl_error.h>
#include <cpl_progress.h>
#include <cpl_string.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Records between two accesses to their file. */
#define MAX_HELD 256

/* What is kept of a row of the input until all rows are joined. */
struct record
{
    int64_t fid;
    int64_t n_pairs;
    double measure;
    int64_t join_row; /* or its place in tiles; -1: nothing matched */
    double value[OJ_N_PAIR_VALUES]; /* not in the file unless asked for */
};

/* Records in the order of rows: written, then read once. */
struct records
{
    struct oj_temporary_file file;
    size_t size; /* of one in the file */
    int64_t n;
    char held[MAX_HELD * sizeof(struct record)];
};

struct update
{
    struct oj_pass pass;
    struct oj_schema schema;
    int refreshes;      /* the columns are there from an earlier run */
    int first_own;      /* place of the first of them */
    char layer[256];    /* name of the layer */
    int join_is_inside; /* the join layer lies in the same dataset */
    struct oj_proof *proof;
    struct records records;

    /* The second handle, which writes. */
    GDALDatasetH dataset;
    OGRLayerH target;
    int in_transaction;
    struct oj_row_cursor *cursor;

    /* The join feature at hand, where they lie in tiles. */
    struct oj_feature_set fetched;
    struct oj_bytes piece; /* scratch, to read them */
    int64_t fetched_place; /* -1: none */
};

static oj_status open_for_update(struct update *u, struct oj_error *err)
{
    const struct oj_source_options *side = &u->pass.job.command->input;
    CPLErrorReset();
    u->dataset = GDALOpenEx(
        side->dataset, GDAL_OF_VECTOR | GDAL_OF_UPDATE | GDAL_OF_VERBOSE_ERROR,
        NULL, (const char *const *)side->open_options, NULL);
    if (u->dataset == NULL)
        return oj_fail(err, OJ_ERR_IO, "cannot open %s for writing: %s",
                       side->dataset, CPLGetLastErrorMsg());
    u->target = GDALDatasetGetLayerByName(u->dataset, u->layer);
    if (u->target == NULL)
        return oj_fail(err, OJ_ERR_IO,
                       "%s has no layer '%s' when opened for "
                       "writing",
                       side->dataset, u->layer);
    return OJ_OK;
}

static void close_update(struct update *u)
{
    oj_row_cursor_close(u->cursor);
    u->cursor = NULL;
    if (u->dataset != NULL && u->in_transaction)
        oj_transaction_drop(u->dataset);
    else if (u->dataset != NULL)
        GDALClose(u->dataset);
    u->in_transaction = 0;
    u->dataset = NULL;
    u->target = NULL;
}

/* Said before the join, not after it. */
static oj_status check_target(struct update *u, struct oj_error *err)
{
    const struct oj_command *command = u->pass.job.command;
    const char *driver;
    OJ_TRY(open_for_update(u, err));
    driver = GDALGetDescription(GDALGetDatasetDriver(u->dataset));
    /* SQLite's driver knows that there are FIDs only when it knows the fields.
     */
    OGR_L_GetLayerDefn(u->target);
    if (!OGR_L_TestCapability(u->target, OLCRandomRead) ||
        !OGR_L_TestCapability(u->target, OLCRandomWrite) ||
        !OGR_L_TestCapability(u->target, OLCCreateField))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "-in_place: the driver %s cannot change rows and add "
                       "fields; write to a new file",
                       driver);
    if (!oj_transaction_is_possible(u->dataset) && !command->in_place_unsafe)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "-in_place: the driver %s has no transactions, so an "
                       "interrupted run would leave the layer half-written; "
                       "write to a new file, or accept that with "
                       "-in_place_unsafe",
                       driver);
    close_update(u);
    return OJ_OK;
}

static const char *field_name(OGRLayerH layer, int i)
{
    return OGR_Fld_GetNameRef(
        OGR_FD_GetFieldDefn(OGR_L_GetLayerDefn(layer), i));
}

/* All names of the layer but those of fields [first, first + n). */
static oj_status take_names(OGRLayerH layer, int first, int n,
                            struct oj_schema *schema, struct oj_error *err)
{
    int n_fields = OGR_FD_GetFieldCount(OGR_L_GetLayerDefn(layer));
    OJ_TRY(oj_schema_take_name(schema, OGR_L_GetFIDColumn(layer), NULL, err));
    OJ_TRY(
        oj_schema_take_name(schema, OGR_L_GetGeometryColumn(layer), NULL, err));
    for (int i = 0; i < n_fields; i++)
    {
        if (i < first || i >= first + n)
            OJ_TRY(
                oj_schema_take_name(schema, field_name(layer, i), NULL, err));
    }
    return OJ_OK;
}

/* 1 when a format may have made the name out of the planned one: Shapefile
 * keeps ten letters. */
static int is_name(const char *there, const char *planned)
{
    size_t n = strlen(there);
    return strcasecmp(there, planned) == 0 ||
           (n >= 10 && strncasecmp(there, planned, n) == 0);
}

/* 1 when the fields of the layer from first on are the planned ones. */
static int are_ours(OGRLayerH layer, int first, const struct oj_schema *schema)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    if (first + schema->n_fields > OGR_FD_GetFieldCount(defn))
        return 0;
    for (int i = 0; i < (int)schema->n_fields; i++)
    {
        OGRFieldDefnH there = OGR_FD_GetFieldDefn(defn, first + i);
        const struct oj_planned_field *field = &schema->fields[i];
        if (!is_name(OGR_Fld_GetNameRef(there), field->name) ||
            OGR_Fld_GetType(there) != OGR_Fld_GetType(field->defn))
            return 0;
    }
    return 1;
}

static oj_status fail_foreign(const struct update *u, int field,
                              struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_ARG,
                   "-in_place: the layer '%s' has a column '%s' that is not "
                   "from an earlier run of this join (whose columns follow "
                   "each other with the same names and types); rename or drop "
                   "it, or write to a new file",
                   u->layer, field_name(u->pass.job.input.layer, field));
}

/* Place of the first of our columns in the layer, from an earlier run; -1: it
 * has none of them. One without the first is somebody else's. */
static oj_status find_own(const struct update *u,
                          const struct oj_schema_request *request, int *first,
                          struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(u->pass.job.input.layer);
    *first = -1;
    for (int i = 0; i < request->n_own; i++)
    {
        int place = OGR_FD_GetFieldIndex(defn, request->own[i].name);
        if (i == 0)
            *first = place;
        else if (place >= 0 && *first < 0)
            return fail_foreign(u, place, err);
    }
    return OJ_OK;
}

/* Plans the columns and finds out whether they are there already. */
static oj_status plan_columns(struct update *u, struct oj_error *err)
{
    OGRLayerH layer = u->pass.job.input.layer;
    struct oj_schema_request request = oj_pass_request(&u->pass, wkbNone);
    int first;
    request.with_input = 0;
    OJ_TRY(find_own(u, &request, &first, err));
    OJ_TRY(oj_schema_take_name(
        &u->schema,
        oj_driver_hidden_name(GDALGetDatasetDriver(u->pass.job.input.dataset)),
        NULL, err));
    if (first < 0)
    {
        OJ_TRY(take_names(layer, 0, 0, &u->schema, err));
        return oj_schema_plan(&request, &u->schema, err);
    }
    OJ_TRY(take_names(layer, first, request.n_own + u->pass.job.join.n_fields,
                      &u->schema, err));
    OJ_TRY(oj_schema_plan(&request, &u->schema, err));
    if (!are_ours(layer, first, &u->schema))
        return fail_foreign(u, first, err);
    u->refreshes = 1;
    u->first_own = first;
    return OJ_OK;
}

static oj_status open_records(struct records *records, int with_values,
                              struct oj_error *err)
{
    records->size =
        with_values ? sizeof(struct record) : offsetof(struct record, value);
    return oj_temporary_file_open(NULL, "results", &records->file, err);
}

/* Writes those that are held after the last full MAX_HELD. */
static oj_status flush_records(struct records *records, struct oj_error *err)
{
    int64_t n_held = records->n % MAX_HELD;
    return oj_temporary_file_write(&records->file, records->held,
                                   n_held * (int64_t)records->size, err);
}

static oj_status add_record(struct records *records,
                            const struct record *record, struct oj_error *err)
{
    int64_t at = records->n % MAX_HELD;
    memcpy(records->held + (size_t)at * records->size, record, records->size);
    records->n++;
    if (at < MAX_HELD - 1)
        return OJ_OK;
    return oj_temporary_file_write(&records->file, records->held,
                                   MAX_HELD * (int64_t)records->size, err);
}

/* Row by row, from the first on, after flush_records(). */
static oj_status read_record(struct records *records, int64_t row,
                             struct record *record, struct oj_error *err)
{
    int64_t at = row % MAX_HELD, size = (int64_t)records->size;
    int64_t n = records->n - row < MAX_HELD ? records->n - row : MAX_HELD;
    if (at == 0)
        OJ_TRY(oj_temporary_file_read(&records->file, row * size, records->held,
                                      n * size, err));
    memcpy(record, records->held + at * size, records->size);
    return OJ_OK;
}

static oj_status keep_row(struct update *u, int64_t fid,
                          const struct oj_matches *matches,
                          const struct oj_pair_values *values,
                          const struct oj_answer_side *side, int64_t row,
                          struct oj_error *err)
{
    const struct oj_matches *entries = oj_pair_values_matches(values, matches);
    int64_t entry = oj_matches_first(entries, row);
    struct record record = {0};
    record.fid = fid;
    record.n_pairs =
        oj_matches_end(matches, row) - oj_matches_first(matches, row);
    record.join_row = -1;
    if (oj_matches_end(entries, row) > entry)
    {
        record.join_row = entries->join_row[entry];
        if (side->place != NULL && record.join_row >= 0)
            record.join_row = side->place[record.join_row];
        record.measure = entries->measure[entry];
        for (int i = 0; values != NULL && i < OJ_N_PAIR_VALUES; i++)
        {
            if (values->value[i] != NULL)
                record.value[i] = values->value[i][entry];
        }
    }
    return add_record(&u->records, &record, err);
}

static oj_status keep_batch(void *user, const struct oj_pipeline_part *part,
                            const struct oj_matches *matches,
                            struct oj_error *err)
{
    struct update *u = user;
    const struct oj_flat *flat = part->flat;
    const struct oj_answer_side side =
        oj_job_answer_side(&u->pass.job, part->answer);
    const struct oj_pair_values *values =
        oj_rows_values(&u->pass.rows, part->answer);
    if (flat->fid == NULL)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "-in_place: the rows of layer '%s' have no FIDs",
                       u->layer);
    if (u->pass.aggregation != NULL && u->pass.stream == NULL)
        OJ_TRY(oj_aggregation_keep(u->pass.aggregation, u->records.n, matches,
                                   &side, values, err));
    for (int64_t row = 0; row < matches->n_rows; row++)
        OJ_TRY(keep_row(u, flat->fid[row], matches, values, &side, row, err));
    if (u->proof == NULL)
        return OJ_OK;
    return oj_proof_batch(u->proof, flat, &side, matches, err);
}

static oj_status join_and_keep(struct update *u, struct oj_error *err)
{
    const struct oj_pipeline_sink sink = {keep_batch, u};
    struct oj_pass *pass = &u->pass;
    OJ_TRY(oj_pass_prepare(pass, err));
    if (pass->job.command->validate != NULL)
        OJ_TRY(oj_proof_open(&pass->job, &u->proof, err));
    OJ_TRY(oj_pass_start(pass, 0, err));
    OJ_TRY(open_records(&u->records, pass->rows.stage != NULL, err));
    if (pass->stream == NULL)
        pass->job.progress_share = 0.5;
    if (pass->aggregation != NULL && pass->stream == NULL)
        OJ_TRY(oj_aggregation_start(pass->aggregation, 0, err));
    OJ_TRY(oj_pass_stream_pairs(pass, &sink, err));
    if (pass->aggregation != NULL && pass->stream == NULL)
        OJ_TRY(oj_aggregation_finish(pass->aggregation, err));
    return flush_records(&u->records, err);
}

/* Nothing may read the dataset while the transaction is open. */
static void close_readers(struct update *u)
{
    struct oj_job *job = &u->pass.job;
    oj_job_end_reading(job);
    oj_source_close_dataset(&job->input);
    if (u->join_is_inside)
        oj_source_close_dataset(&job->join);
}

static oj_status create_columns(struct update *u, struct oj_error *err)
{
    struct oj_schema *schema = &u->schema;
    for (int i = 0; i < (int)schema->n_fields; i++)
    {
        struct oj_column *column = &schema->columns[i];
        column->target = u->first_own + i;
        if (!u->refreshes)
            OJ_TRY(oj_schema_create_field(u->dataset, u->target,
                                          &schema->fields[i], &column->target,
                                          err));
    }
    return OJ_OK;
}

static oj_status open_cursor(struct update *u, struct oj_error *err)
{
    struct oj_write_options options = {0};
    oj_pass_fill_write_options(&u->pass, &options);
    options.columns = u->schema.columns;
    options.n_columns = (int)u->schema.n_fields;
    return oj_row_cursor_open(OGR_L_GetLayerDefn(u->target), &options,
                              &u->cursor, err);
}

/* Makes row 0 of the cursor's join side the feature at place. */
static oj_status fetch(struct update *u, int64_t place, struct oj_error *err)
{
    struct oj_flat side;
    if (place == u->fetched_place)
        return OJ_OK;
    OJ_TRY(oj_feature_set_clear(&u->fetched, err));
    OJ_TRY(
        oj_tiles_fetch(&u->pass.job.tiles, place, &u->piece, &u->fetched, err));
    side = oj_feature_set_view(&u->fetched);
    oj_row_cursor_set_join_side(u->cursor, &side, u->fetched.table);
    u->fetched_place = place;
    return OJ_OK;
}

static oj_status update_row(struct update *u, int64_t row,
                            struct record *record, struct oj_error *err)
{
    struct oj_row_place place = {0};
    struct oj_matches entries = {0};
    struct oj_pair_values values = {0};
    OGRFeatureH feature;
    oj_status status;
    if (u->pass.job.tiled != NULL && record->join_row >= 0)
        OJ_TRY(fetch(u, record->join_row, err));
    CPLErrorReset();
    feature = OGR_L_GetFeature(u->target, record->fid);
    if (feature == NULL)
        return oj_fail(err, OJ_ERR_IO,
                       "the feature %lld of layer '%s' is gone: %s",
                       (long long)record->fid, u->layer, CPLGetLastErrorMsg());
    place.row = row;
    place.n_pairs = record->n_pairs;
    place.join_row = u->pass.job.tiled != NULL && record->join_row >= 0
                         ? 0
                         : (int32_t)record->join_row;
    place.rank = 1;
    entries.measure = &record->measure;
    for (int i = 0; i < OJ_N_PAIR_VALUES; i++)
        values.value[i] = &record->value[i];
    status = oj_row_cursor_set_columns(u->cursor, feature, &place, &entries,
                                       &values, err);
    if (status == OJ_OK && OGR_L_SetFeature(u->target, feature) != OGRERR_NONE)
        status =
            oj_fail(err, OJ_ERR_IO,
                    "the feature %lld of layer '%s' cannot be changed: %s",
                    (long long)record->fid, u->layer, CPLGetLastErrorMsg());
    OGR_F_Destroy(feature);
    return status;
}

static oj_status update_rows(struct update *u, struct oj_error *err)
{
    int64_t n = u->records.n;
    for (int64_t i = 0; i < n; i++)
    {
        struct record record = {0};
        OJ_TRY(oj_cancel_check(err));
        OJ_TRY(read_record(&u->records, i, &record, err));
        OJ_TRY(update_row(u, i, &record, err));
        if (i % 4096 == 0 && u->pass.job.progress_open)
            GDALTermProgress(0.5 + 0.499 * (double)i / (double)n, NULL, NULL);
    }
    return oj_cancel_check(err);
}

static oj_status begin(struct update *u, struct oj_error *err)
{
    if (!oj_transaction_is_possible(u->dataset))
        return OJ_OK;
    OJ_TRY(oj_transaction_begin(u->dataset, u->pass.job.command->input.dataset,
                                err));
    u->in_transaction = 1;
    return OJ_OK;
}

static oj_status commit_and_close(struct update *u, struct oj_error *err)
{
    const char *name = u->pass.job.command->input.dataset;
    char text[512];
    if (u->in_transaction)
    {
        OJ_TRY(oj_transaction_flush(u->dataset, name, err));
        OJ_TRY(oj_cancel_check(err));
        OJ_TRY(oj_transaction_commit(u->dataset, name, err));
    }
    u->in_transaction = 0;
    oj_message_forget_errors();
    close_update(u);
    if (oj_message_errors(text, (int)sizeof text) > 0)
        return oj_fail(err, OJ_ERR_IO, "closing %s failed: %s", name, text);
    return OJ_OK;
}

/* Geometries stay, so their index need not be looked after meanwhile. */
static oj_status update_rows_quickly(struct update *u, struct oj_error *err)
{
    char **triggers = NULL;
    oj_status status = OJ_OK;
    if (u->in_transaction)
        status = oj_index_triggers_drop(u->dataset, u->layer, &triggers, err);
    if (status == OJ_OK)
        status = update_rows(u, err);
    if (status == OJ_OK)
        status = oj_index_triggers_restore(u->dataset, triggers, err);
    CSLDestroy(triggers);
    return status;
}

static oj_status write_back(struct update *u, struct oj_error *err)
{
    close_readers(u);
    OJ_TRY(open_for_update(u, err));
    OJ_TRY(begin(u, err));
    OJ_TRY(create_columns(u, err));
    OJ_TRY(open_cursor(u, err));
    OJ_TRY(update_rows_quickly(u, err));
    return commit_and_close(u, err);
}

static oj_status update_in_place(struct update *u,
                                 const struct oj_command *command,
                                 int *exit_code, struct oj_error *err)
{
    struct oj_job *job = &u->pass.job;
    struct oj_summary summary = {0};
    double start = oj_clock_seconds(), write_start;
    OJ_TRY(oj_pass_open(command, &u->pass, err));
    snprintf(u->layer, sizeof u->layer, "%s", job->input.name);
    if (!oj_rows_one_per_input(&u->pass.rows))
        return oj_fail(
            err, OJ_ERR_ARG,
            "-in_place has room for one join feature per row: choose "
            "one with -pick");
    u->join_is_inside = oj_source_is_behind(&job->join, command->input.dataset);
    OJ_TRY(plan_columns(u, err));
    OJ_TRY(check_target(u, err));
    OJ_TRY(join_and_keep(u, err));
    write_start = oj_clock_seconds();
    OJ_TRY(write_back(u, err));
    oj_rows_warn(&u->pass.rows);
    oj_job_end_progress(job);

    summary.job = job;
    summary.destination = command->input.dataset;
    summary.n_rows_written = u->records.n;
    summary.n_rows_checked = -1;
    summary.write_s = oj_clock_seconds() - write_start + job->counts.write_s;
    return oj_summary_end(&summary, u->proof, start, exit_code, err);
}

oj_status oj_in_place_run(const struct oj_command *command, int *exit_code,
                          struct oj_error *err)
{
    struct update u = {.fetched_place = -1};
    oj_status status = update_in_place(&u, command, exit_code, err);
    close_update(&u);
    oj_temporary_file_close(&u.records.file);
    oj_proof_close(u.proof);
    oj_feature_set_free(&u.fetched);
    oj_free(u.piece.byte);
    oj_schema_free(&u.schema);
    oj_pass_close(&u.pass);
    return status;
}
