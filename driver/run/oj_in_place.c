#include "oj_run.h"

#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_clock.h"
#include "../../flatten/base/oj_temporary_file.h"
#include "../../flatten/write/oj_row_lane.h"
#include "../base/oj_cancel.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_progress.h>
#include <cpl_string.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The result of an input row. It is stored in a file until all rows are joined.
 */
struct record
{
    int64_t fid;
    int64_t n_pairs;
    double measure;
    /* row of the join side, or with tiles the offset of its record; -1 if the
     * row has no pair */
    int64_t join_row;
    /* used only if the run needs values of pairs */
    double value[OJ_N_PAIR_VALUES];
};

enum
{
    MAX_HELD = 256 /* number of records per read or write of the file */
};

struct update
{
    const struct oj_command *command;
    struct oj_pass *pass;
    struct oj_schema schema;
    /* index of the first column that an earlier run has added; -1 if there is
     * none */
    int first_own;
    const char *layer; /* the layer's name */

    /* The records of all rows in their order. All are written before any is
     * read. */
    struct oj_temporary_file file;
    int64_t record_size; /* bytes per record in the file */
    int64_t n_records;

    /* Second handle of the layer, used for writing. */
    struct oj_output_options asked;
    struct oj_output *output; /* the output of the run */
    struct oj_row_cursor *cursor;
    /* writes rows directly into the table; NULL if they are written as features
     */
    void *table;

    /* With tiles: the join feature of the current row. */
    struct oj_feature_set fetched;
};

/* Checks whether the layer can be updated, before the join takes time. */
static oj_status check_layer_updatable(struct update *u, struct oj_error *err)
{
    OGRLayerH layer;
    const char *driver;
    OJ_TRY(oj_output_open_layer(&u->asked, u->layer, u->output, err));
    layer = u->output->layers[0].layer;
    driver = GDALGetDescription(u->output->driver);
    /* SQLite's driver detects the FID column when it reads the fields. */
    OGR_L_GetLayerDefn(layer);
    if (!OGR_L_TestCapability(layer, OLCRandomRead) ||
        !OGR_L_TestCapability(layer, OLCRandomWrite) ||
        !OGR_L_TestCapability(layer, OLCCreateField))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "-in_place: the driver %s cannot change rows and add "
                       "fields; write to a new file",
                       driver);
    if (!GDALDatasetTestCapability(u->output->dataset, ODsCTransactions) &&
        !u->command->in_place_unsafe)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "-in_place: the driver %s has no transactions, so an "
                       "interrupted run would leave the layer half-written; "
                       "write to a new file, or accept that with "
                       "-in_place_unsafe",
                       driver);
    oj_output_abort(u->output);
    return OJ_OK;
}

static const char *layer_field_name(OGRLayerH layer, int i)
{
    return OGR_Fld_GetNameRef(
        OGR_FD_GetFieldDefn(OGR_L_GetLayerDefn(layer), i));
}

/* Reserves the names of all fields of the layer, except the n fields from
 * `first` on. */
static void reserve_existing_field_names(struct update *u, int first, int n)
{
    const struct oj_source *input = &u->pass->job.input;
    OGRLayerH layer = input->layer;
    int n_fields = OGR_FD_GetFieldCount(OGR_L_GetLayerDefn(layer));
    oj_schema_reserve_layer_names(&u->schema,
                                  GDALGetDatasetDriver(input->dataset), layer);
    for (int i = 0; i < n_fields; i++)
    {
        if (i < first || i >= first + n)
            oj_schema_reserve_name(&u->schema, layer_field_name(layer, i));
    }
}

/* Returns 1 if the format may have shortened the name `planned` to `there`:
 * Shapefile keeps ten letters. */
static int matches_truncated_name(const char *there, const char *planned)
{
    size_t n = strlen(there);
    return strcasecmp(there, planned) == 0 ||
           (n >= 10 && strncasecmp(there, planned, n) == 0);
}

/* Returns 1 if the layer's fields from `first` on have the names and types of
 * the planned columns. */
static int are_columns_of_earlier_run(OGRLayerH layer, int first,
                                      const struct oj_schema *schema)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    if (first + schema->n_fields > OGR_FD_GetFieldCount(defn))
        return 0;
    for (int i = 0; i < (int)schema->n_fields; i++)
    {
        OGRFieldDefnH there = OGR_FD_GetFieldDefn(defn, first + i);
        if (!matches_truncated_name(OGR_Fld_GetNameRef(there),
                                    oj_schema_field_name(schema, i)) ||
            OGR_Fld_GetType(there) != schema->columns[i].type)
            return 0;
    }
    return 1;
}

static oj_status fail_foreign_column(const struct update *u, int field,
                                     struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_ARG,
                   "-in_place: the layer '%s' has a column '%s' that is not "
                   "from an earlier run of this join (whose columns follow "
                   "each other with the same names and types); rename or drop "
                   "it, or write to a new file",
                   u->layer, layer_field_name(u->pass->job.input.layer, field));
}

/* Plans the columns and finds those of an earlier run. Fails if a field of the
 * layer has a planned name, but is not a column of an earlier run. */
static oj_status plan_columns_or_reuse_earlier(struct update *u,
                                               struct oj_error *err)
{
    OGRLayerH layer = u->pass->job.input.layer;
    struct oj_schema_request request = u->pass->rows.fields;
    int first = -1, n;
    request.with_input = 0;
    for (int i = 0; i < request.n_own; i++)
    {
        int place = OGR_FD_GetFieldIndex(OGR_L_GetLayerDefn(layer),
                                         request.own[i].name);
        if (i == 0)
            first = place;
        else if (place >= 0 && first < 0)
            return fail_foreign_column(u, place, err);
    }
    n = first >= 0 ? request.n_own + u->pass->job.join.n_fields : 0;
    reserve_existing_field_names(u, first, n);
    OJ_TRY(oj_schema_plan(&request, &u->schema, err));
    if (first >= 0 && !are_columns_of_earlier_run(layer, first, &u->schema))
        return fail_foreign_column(u, first, err);
    u->first_own = first;
    return OJ_OK;
}

static void fill_update_record_of_row(const struct oj_answer *answer,
                                      int64_t row, struct record *record)
{
    const struct record empty = {0};
    const struct oj_matches *pairs = answer->pairs;
    const struct oj_pair_values *values = answer->values;
    const struct oj_matches *entries = oj_pair_values_matches(values, pairs);
    int64_t entry = oj_matches_first(entries, row);
    *record = empty;
    record->fid = answer->part->flat->fid[row];
    record->n_pairs = oj_matches_end(pairs, row) - oj_matches_first(pairs, row);
    record->join_row = -1;
    if (oj_matches_end(entries, row) <= entry)
        return;
    record->join_row = entries->join_row[entry];
    if (answer->side.place != NULL && record->join_row >= 0)
        record->join_row = answer->side.place[record->join_row];
    record->measure = entries->measure[entry];
    for (int i = 0; values != NULL && i < OJ_N_PAIR_VALUES; i++)
    {
        if (values->value[i] != NULL)
            record->value[i] = values->value[i][entry];
    }
}

static oj_status write_update_records_to_file(struct update *u,
                                              const struct oj_answer *answer,
                                              struct oj_error *err)
{
    char held[MAX_HELD * sizeof(struct record)];
    int64_t n = answer->pairs->n_rows, n_held = 0;
    for (int64_t row = 0; row < n; row++)
    {
        struct record record;
        fill_update_record_of_row(answer, row, &record);
        memcpy(held + n_held++ * u->record_size, &record,
               (size_t)u->record_size);
        if (n_held < MAX_HELD && row + 1 < n)
            continue;
        OJ_TRY(oj_temporary_file_write(&u->file, held, n_held * u->record_size,
                                       err));
        n_held = 0;
    }
    u->n_records += n;
    return OJ_OK;
}

/* Returns the aggregation to which answers are added one by one. Returns NULL
 * without -agg, and if the join layer is streamed. */
static struct oj_aggregation *aggregation_fed_by_answers(const struct update *u)
{
    struct oj_aggregation *aggregation = u->pass->rows.aggregation;
    return u->pass->answers_from == OJ_ANSWERS_ADDED_UP ? NULL : aggregation;
}

static oj_status spill_answers(struct update *u, struct oj_error *err)
{
    struct oj_aggregation *aggregation = aggregation_fed_by_answers(u);
    const struct oj_answer *answer;
    for (;;)
    {
        OJ_TRY(oj_pass_next(u->pass, &answer, err));
        if (answer == NULL)
            return OJ_OK;
        if (answer->part->flat->fid == NULL)
            return oj_fail(err, OJ_ERR_UNSUPPORTED,
                           "-in_place: the rows of layer '%s' have no FIDs, by "
                           "which they are updated: write to a new file",
                           u->layer);
        if (aggregation != NULL)
            OJ_TRY(oj_aggregation_add(aggregation, u->n_records,
                                      answer->part->flat, answer->pairs,
                                      &answer->side, answer->values, err));
        OJ_TRY(write_update_records_to_file(u, answer, err));
    }
}

static oj_status join_and_spill_answers(struct update *u, struct oj_error *err)
{
    struct oj_pass *pass = u->pass;
    OJ_TRY(oj_pass_start(pass, 0, err));
    u->record_size = pass->rows.stage != NULL
                         ? (int64_t)sizeof(struct record)
                         : (int64_t)offsetof(struct record, value);
    OJ_TRY(oj_temporary_file_open(NULL, "results", &u->file, err));
    if (pass->answers_from == OJ_ANSWERS_JOINED)
        pass->progress_share = 0.5;
    pass->pairs_only = 1;
    OJ_TRY(oj_pass_stop(pass, spill_answers(u, err), err));
    return aggregation_fed_by_answers(u) != NULL
               ? oj_aggregation_finish(aggregation_fed_by_answers(u), err)
               : OJ_OK;
}

/* Closes the input layer's dataset, and that of the join layer if both are in
 * one file: no other handle may be open during the transaction. */
static void close_readers(struct update *u)
{
    struct oj_job *job = &u->pass->job;
    int join_is_inside =
        oj_source_has_file(&job->join, u->command->input.dataset);
    oj_source_close_dataset(&job->input);
    if (join_is_inside)
        oj_source_close_dataset(&job->join);
}

static oj_status create_columns(struct update *u, struct oj_error *err)
{
    struct oj_schema *schema = &u->schema;
    for (int i = 0; i < (int)schema->n_fields; i++)
    {
        schema->columns[i].target = u->first_own + i;
        if (u->first_own < 0)
            OJ_TRY(oj_schema_create_field(u->output->dataset,
                                          u->output->layers[0].layer, schema, i,
                                          err));
    }
    return OJ_OK;
}

/* Loads the join feature at this offset as row 0 of the cursor's join side. */
static oj_status load_join_feature_from_tiles(struct update *u, int64_t place,
                                              struct oj_error *err)
{
    struct oj_flat side;
    if (u->fetched.buf.n_features > 0 && place == u->fetched.place[0])
        return OJ_OK;
    OJ_TRY(oj_join_tiles_read_features(&u->pass->job.tiles, &place, 1, 1,
                                       &u->fetched, err));
    side = oj_feature_set_view(&u->fetched);
    oj_row_cursor_set_join_side(u->cursor, &side, u->fetched.table);
    return OJ_OK;
}

static oj_status update_row(struct update *u, int64_t row,
                            struct record *record, struct oj_error *err)
{
    struct oj_row_place place = {0};
    struct oj_matches entries = {0};
    struct oj_pair_values values = {0};
    OGRLayerH layer = u->output->layers[0].layer;
    OGRFeatureH feature;
    int is_left = 1;
    oj_status status;
    if (u->pass->job.tiled != NULL && record->join_row >= 0)
        OJ_TRY(load_join_feature_from_tiles(u, record->join_row, err));
    place.row = row;
    place.n_pairs = record->n_pairs;
    place.join_row = u->pass->job.tiled != NULL && record->join_row >= 0
                         ? 0
                         : (int32_t)record->join_row;
    place.rank = 1;
    entries.measure = &record->measure;
    for (int i = 0; i < OJ_N_PAIR_VALUES; i++)
        values.value[i] = &record->value[i];
    oj_row_cursor_begin_pair(u->cursor, &entries, &values);
    if (u->table != NULL)
        OJ_TRY(oj_geopackage_rows->update(u->table, record->fid, &place,
                                          &is_left, err));
    if (!is_left)
        return OJ_OK;
    CPLErrorReset();
    feature = OGR_L_GetFeature(layer, record->fid);
    if (feature == NULL)
        return oj_fail(
            err, OJ_ERR_IO,
            "the feature %lld of layer '%s' has disappeared, as after a change "
            "by another program (%s): run the join again",
            (long long)record->fid, u->layer, CPLGetLastErrorMsg());
    status = oj_row_cursor_set_join_fields(u->cursor, feature, &place, err);
    if (status == OJ_OK && OGR_L_SetFeature(layer, feature) != OGRERR_NONE)
        status =
            oj_fail(err, OJ_ERR_IO,
                    "the feature %lld of layer '%s' cannot be changed: %s",
                    (long long)record->fid, u->layer, CPLGetLastErrorMsg());
    if (status == OJ_OK && u->table != NULL)
        status = oj_geopackage_rows->took(u->table, feature, err);
    OGR_F_Destroy(feature);
    return status;
}

static oj_status update_rows(struct update *u, struct oj_error *err)
{
    char held[MAX_HELD * sizeof(struct record)];
    const int64_t n = u->n_records, size = u->record_size;
    for (int64_t i = 0; i < n; i++)
    {
        int64_t at = i % MAX_HELD, n_held = n - i < MAX_HELD ? n - i : MAX_HELD;
        struct record record = {0};
        OJ_TRY(oj_cancel_check(err));
        if (at == 0)
            OJ_TRY(oj_temporary_file_read(&u->file, i * size, held,
                                          n_held * size, err));
        memcpy(&record, held + at * size, (size_t)size);
        OJ_TRY(update_row(u, i, &record, err));
        if (i % 4096 == 0 && u->pass->progress_open)
            GDALTermProgress(0.5 + 0.499 * (double)i / (double)n, NULL, NULL);
    }
    return oj_cancel_check(err);
}

static oj_status update_table(struct update *u, struct oj_error *err)
{
    oj_status status = OJ_OK;
    int has_file;
    if (oj_geopackage_rows != NULL &&
        oj_output_dataset_of_lane(u->output) != NULL)
        status = oj_geopackage_rows->open(u->output->layers[0].layer, 1,
                                          u->cursor, &u->table, err);
    if (status == OJ_OK)
        status = update_rows(u, err);
    if (status == OJ_OK && u->table != NULL)
        status = oj_geopackage_rows->finish(u->table, &has_file, err);
    if (u->table != NULL)
        oj_geopackage_rows->close(u->table);
    u->table = NULL;
    return status;
}

static oj_status update_layer_from_records(struct update *u,
                                           struct oj_error *err)
{
    struct oj_write_options options = {0};
    close_readers(u);
    OJ_TRY(oj_output_open_layer(&u->asked, u->layer, u->output, err));
    OJ_TRY(oj_output_open(u->output, err));
    OJ_TRY(create_columns(u, err));
    oj_rows_fill_write_options(&u->pass->rows, &u->schema, &options);
    options.dataset = oj_output_dataset_of_lane(u->output);
    OJ_TRY(oj_row_cursor_open(OGR_L_GetLayerDefn(u->output->layers[0].layer),
                              &options, &u->cursor, err));
    OJ_TRY(update_table(u, err));
    oj_row_cursor_close(u->cursor);
    u->cursor = NULL;
    return oj_output_finish(u->output, err);
}

static oj_status update_in_place(struct update *u, struct oj_command_run *run,
                                 struct oj_error *err)
{
    struct oj_job *job = &u->pass->job;
    double write_start;
    u->layer = job->input.name;
    OJ_TRY(plan_columns_or_reuse_earlier(u, err));
    OJ_TRY(check_layer_updatable(u, err));
    OJ_TRY(oj_pass_prepare(u->pass, err));
    OJ_TRY(join_and_spill_answers(u, err));
    write_start = oj_clock_seconds();
    OJ_TRY(update_layer_from_records(u, err));
    oj_rows_warn_of_missing_values(&u->pass->rows);
    oj_pass_end_progress(u->pass);
    u->output->layers[0].n_rows = u->n_records;
    u->output->layers[0].n_checked = -1;
    run->summary.write_s =
        oj_clock_seconds() - write_start + job->counts.write_s;
    return OJ_OK;
}

oj_status oj_in_place_run(struct oj_command_run *run, struct oj_error *err)
{
    const struct oj_source_options *side = &run->command->input;
    struct update u = {
        .command = run->command,
        .pass = &run->pass,
        .output = &run->output,
        .asked = {.dst = side->dataset, .open_options = side->open_options}};
    oj_status status = update_in_place(&u, run, err);
    oj_row_cursor_close(u.cursor);
    oj_temporary_file_close(&u.file);
    oj_feature_set_free(&u.fetched);
    oj_schema_free(&u.schema);
    return status;
}
