#include "oj_run.h"

#include "../../flatten/base/oj_clock.h"
#include "../../flatten/base/oj_third_party_error_patterns.h"
#include "../../flatten/write/oj_layer_write.h"
#include "../base/oj_cancel.h"
#include "../base/oj_exit.h"
#include "../base/oj_message.h"
#include "../files/oj_text_file_write.h"

#include <string.h>

/* An output layer and its writer. */
struct target
{
    /* the layer, an element of output.layers; NULL if it is not requested */
    struct oj_output_layer *at;
    struct oj_schema schema;
    /* NULL if the layer is not requested or not open */
    struct oj_layer_writer *writer;
};

enum
{
    MAIN,
    UNMATCHED,      /* a separate layer of the input rows without a pair */
    UNMATCHED_JOIN, /* a separate layer of the join rows without a pair */
    N_TARGETS
};

/* Minimum seconds between two writes of the state of events. */
#define STATE_SECONDS 60.0

/* State of a run that writes an output. */
struct writing
{
    struct oj_command_run *run;
    struct oj_pass *pass; /* the pass of `run` */
    struct oj_output *output;
    struct target target[N_TARGETS];
    double state_saved; /* when the state of events was last written */
    /* side of the row with an infinite or NaN coordinate; NULL if there is no
     * such row */
    const char *infinite_side;
    int64_t infinite_fid;
};

static oj_status write_answer_if_open(struct oj_layer_writer *writer,
                                      const struct oj_answer *answer,
                                      const struct oj_pair_values *values,
                                      struct oj_error *err)
{
    return writer == NULL
               ? OJ_OK
               : oj_layer_writer_write(writer, answer->batch, answer->first_row,
                                       answer->matches, values, err);
}

static oj_status write_answer_to_layers(struct writing *w,
                                        const struct oj_answer *answer,
                                        struct oj_error *err)
{
    oj_row_cursor_set_join_side(oj_layer_writer_cursor(w->target[MAIN].writer),
                                answer->join_side, answer->join_table);
    OJ_TRY(write_answer_if_open(w->target[MAIN].writer, answer, answer->values,
                                err));
    return write_answer_if_open(w->target[UNMATCHED].writer, answer, NULL, err);
}

/* Writes unmatched join rows to the main layer and to their separate layer. */
static oj_status write_unmatched_join_rows(struct writing *w,
                                           const struct oj_answer *answer,
                                           struct oj_error *err)
{
    if (w->pass->rows.fields.has_other_rows)
        OJ_TRY(oj_layer_writer_write_join_rows(
            w->target[MAIN].writer, answer->batch, answer->is_matched, err));
    return write_answer_if_open(w->target[UNMATCHED_JOIN].writer, answer, NULL,
                                err);
}

/* Flushes the rows to the reader of a stream. Writes the state of events once a
 * minute, so that a killed run loses at most a minute. */
static oj_status flush_rows_and_save_state(struct writing *w,
                                           struct oj_error *err)
{
    const double now = oj_clock_seconds();
    if (w->output->kind != OJ_OUTPUT_STREAM)
        return OJ_OK;
    OJ_TRY(oj_output_flush(w->output, err));
    if (now - w->state_saved < STATE_SECONDS)
        return OJ_OK;
    w->state_saved = now;
    return oj_pass_events_save(&w->pass->events, err);
}

/* Writes the rows of all answers. Stores the time when the last input row was
 * written in *input_end. */
static oj_status write_answers(struct writing *w, double *input_end,
                               struct oj_error *err)
{
    const struct oj_answer *answer;
    for (;;)
    {
        OJ_TRY(oj_pass_next(w->pass, &answer, err));
        if (answer == NULL)
            return OJ_OK;
        if (answer->is_matched != NULL)
        {
            OJ_TRY(write_unmatched_join_rows(w, answer, err));
            continue;
        }
        OJ_TRY(write_answer_to_layers(w, answer, err));
        if (w->run->command->events != NULL)
            OJ_TRY(flush_rows_and_save_state(w, err));
        *input_end = oj_clock_seconds();
    }
}

/* ---- layers -------------------------------------------------------------- */

/* Requests the fields of a layer that holds rows of one side unchanged. */
static struct oj_schema_request
schema_request_of_one_side(const struct oj_source *side)
{
    struct oj_schema_request request = {0};
    request.input = side;
    request.with_input = 1;
    request.one_row_per_input = 1;
    request.type = side->type;
    return request;
}

static oj_status open_output_layer(struct writing *w, struct target *target,
                                   const struct oj_schema_request *request,
                                   struct oj_error *err)
{
    struct oj_write_options options = {0};
    char path[OJ_PATH_MAX + 8];
    const struct oj_flatgeobuf_file file = {
        path, (char **)w->output->asked->layer_options, w->pass->job.crs.output,
        oj_job_threads(&w->pass->job)};
    if (target->at == NULL)
        return OJ_OK;
    OJ_TRY(oj_schema_create(request, &w->pass->job.crs, w->output, target->at,
                            &target->schema, err));
    oj_rows_fill_write_options(&w->pass->rows, &target->schema, &options);
    if (target != &w->target[MAIN])
    {
        options.geometry = OJ_WRITE_INPUT;
        options.promote_to_multi =
            w->run->command->output.layer_type == OJ_LAYER_MULTI;
        options.how = OJ_HOW_ANTI;
    }
    options.crs = w->pass->job.crs.output;
    if (oj_output_file_of_lane(w->output, path, (int)sizeof path))
        options.file = &file;
    options.dataset = oj_output_dataset_of_lane(w->output);
    return oj_layer_writer_open(target->at->layer, &options, &target->writer,
                                err);
}

static oj_status open_output(struct writing *w, struct oj_error *err)
{
    const struct oj_schema_request requests[N_TARGETS] = {
        w->pass->rows.fields, schema_request_of_one_side(&w->pass->job.input),
        schema_request_of_one_side(&w->pass->job.join)};
    OJ_TRY(oj_output_open(w->output, err));
    for (int i = 0; i < N_TARGETS; i++)
        OJ_TRY(open_output_layer(w, &w->target[i], &requests[i], err));
    return OJ_OK;
}

static oj_status plan_output(struct writing *w, struct oj_error *err)
{
    const struct oj_command *command = w->run->command;
    const struct
    {
        const char *option, *name;
    } beside[N_TARGETS] = {
        {NULL, NULL},
        {"unmatched_layer", command->output.unmatched_layer},
        {"unmatched_join_layer", command->output.unmatched_join_layer}};
    OJ_TRY(oj_run_plan_output(w->run, err));
    w->target[MAIN].at = &w->output->layers[0];
    for (int i = MAIN + 1; i < N_TARGETS; i++)
    {
        if (beside[i].name == NULL)
            continue;
        w->target[i].at = &w->output->layers[w->output->n_layers];
        OJ_TRY(oj_output_plan_layer(w->output, beside[i].option, beside[i].name,
                                    err));
    }
    return oj_rows_set_geometry_type(&w->pass->rows, w->output->driver, err);
}

/* ---- after the last row -------------------------------------------------- */

static void warn_of_writing(const struct writing *w)
{
    for (int i = 0; i < N_TARGETS; i++)
    {
        const struct oj_write_counts *counts;
        if (w->target[i].writer == NULL)
            continue;
        counts = oj_layer_writer_counts(w->target[i].writer);
        if (counts->n_warnings > 0)
            oj_warn("writing %s: %s%s", w->pass->job.command->output.dst,
                    counts->first_warning,
                    counts->n_warnings > 1 ? " (and more warnings)" : "");
    }
    oj_rows_warn_of_missing_values(&w->pass->rows);
}

/* Records the first row with an infinite coordinate, because drivers do not
 * name it in their errors. */
static void note_infinite_row_of_writers(struct writing *w)
{
    for (int i = 0; i < N_TARGETS && w->infinite_side == NULL; i++)
    {
        const struct oj_write_counts *counts;
        if (w->target[i].writer == NULL)
            continue;
        counts = oj_layer_writer_counts(w->target[i].writer);
        w->infinite_side = counts->infinite_side;
        w->infinite_fid = counts->infinite_fid;
        if (w->infinite_side != NULL && i == UNMATCHED_JOIN)
            w->infinite_side = "join";
    }
}

/* Names the row with an infinite coordinate in an error, unless the cause is a
 * full disk. */
static oj_status explain_infinite_coordinate(const struct writing *w,
                                             oj_status status,
                                             struct oj_error *err)
{
    const struct oj_error bare = *err;
    if (status != OJ_ERR_IO || w->infinite_side == NULL ||
        strncmp(bare.message, "cannot write", 12) == 0)
        return status;
    return oj_fail(err, status,
                   "%.600s; %s feature %lld has a coordinate that is not "
                   "finite, which not every format takes: leave it out with "
                   "-%swhere, or write FlatGeobuf",
                   bare.message, w->infinite_side, (long long)w->infinite_fid,
                   w->infinite_side[0] == 'j' ? "join_" : "");
}

/* Adds the likely cause to a driver's error. */
static oj_status explain_failed_write(struct writing *w, oj_status status,
                                      struct oj_error *err)
{
    struct oj_error bare;
    note_infinite_row_of_writers(w);
    if (status != OJ_ERR_IO || !w->target[MAIN].schema.keep_fids ||
        strstr(err->message, OJ_TEXT_FID_REPEATS) == NULL)
    {
        status = oj_output_explain_full_disk(w->output, status, err);
        return explain_infinite_coordinate(w, status, err);
    }
    bare = *err;
    return oj_fail(err, status,
                   "%.600s; if FIDs of the input repeat, -unsetFid makes the "
                   "output number its rows",
                   bare.message);
}

static void close_writers(struct writing *w)
{
    for (int i = 0; i < N_TARGETS; i++)
    {
        struct target *target = &w->target[i];
        if (target->writer != NULL)
        {
            const struct oj_write_counts *counts =
                oj_layer_writer_counts(target->writer);
            target->at->n_rows = counts->n_rows;
            target->at->n_no_geometry = counts->n_without_geometry;
            target->at->lane = counts->lane;
        }
        oj_layer_writer_close(target->writer);
        target->writer = NULL;
    }
}

static void notice_extra_layer_rows(const struct oj_output *output)
{
    for (int i = 1; i < output->n_layers; i++)
        oj_notice("layer '%s': %s written", output->layers[i].name,
                  oj_message_count_and_noun(output->layers[i].n_rows,
                                            "unmatched row", "unmatched rows"));
}

/* Saves the state of events after the rows are in place. If the run ends before
 * this, the file holds the old state, with which the reports can be read again.
 */
static oj_status save_event_state(const struct writing *w, struct oj_error *err)
{
    struct oj_error bare;
    oj_status status = oj_pass_events_save(&w->pass->events, &bare);
    if (status == OJ_OK)
        return OJ_OK;
    return oj_fail(err, status, "%.700s; all rows are written to %.250s",
                   bare.message, w->run->command->output.dst);
}

/* Writes the rows and closes the output. Prints the summary last, because
 * closing can fail, too. */
static oj_status write_output(struct writing *w, struct oj_error *err)
{
    double start = oj_clock_seconds();
    oj_status status = write_answers(w, &start, err);
    status = oj_pass_stop(w->pass, status, err);
    for (int i = 0; i < N_TARGETS && status == OJ_OK; i++)
    {
        struct target *target = &w->target[i];
        if (target->writer != NULL)
            status = oj_layer_writer_finish(target->writer,
                                            &target->at->rows_in_file, err);
    }
    if (status != OJ_OK)
        return explain_failed_write(w, status, err);
    warn_of_writing(w);
    note_infinite_row_of_writers(w);
    close_writers(w);
    status = oj_output_finish(w->output, err);
    if (status != OJ_OK)
        return explain_infinite_coordinate(w, status, err);
    w->run->summary.write_s = w->pass->job.counts.write_s - w->pass->proof_s +
                              oj_clock_seconds() - start;
    oj_pass_end_progress(w->pass);
    OJ_TRY(save_event_state(w, err));
    notice_extra_layer_rows(w->output);
    return OJ_OK;
}

static oj_status join_and_write_output(struct writing *w, struct oj_error *err)
{
    OJ_TRY(plan_output(w, err));
    OJ_TRY(oj_pass_prepare(w->pass, err));
    OJ_TRY(oj_pass_start(w->pass, w->target[UNMATCHED_JOIN].at != NULL, err));
    OJ_TRY(open_output(w, err));
    if (w->run->command->events != NULL)
    {
        oj_cancel_end_input_first();
        w->state_saved = oj_clock_seconds();
    }
    return write_output(w, err);
}

static oj_status write_join_output(struct oj_command_run *run,
                                   struct oj_error *err)
{
    struct writing w = {.run = run, .pass = &run->pass, .output = &run->output};
    oj_status status = join_and_write_output(&w, err);
    close_writers(&w);
    for (int i = 0; i < N_TARGETS; i++)
        oj_schema_free(&w.target[i].schema);
    return status;
}

/* ---- common to all ways of running --------------------------------------- */

static oj_status plan_main_layer(struct oj_command_run *run,
                                 const struct oj_output_options *asked,
                                 struct oj_error *err)
{
    const struct oj_job *job = &run->pass.job;
    return oj_output_plan(asked,
                          asked->layer != NULL ? asked->layer : job->input.name,
                          &job->input, &job->join, &run->output, err);
}

oj_status oj_run_plan_output_with_overwrite(struct oj_command_run *run,
                                            struct oj_error *err)
{
    run->explained = run->command->output;
    run->explained.overwrite = 1;
    return plan_main_layer(run, &run->explained, err);
}

oj_status oj_run_plan_output(struct oj_command_run *run, struct oj_error *err)
{
    return plan_main_layer(run, &run->command->output, err);
}

static oj_status run_command(struct oj_command_run *run, struct oj_error *err)
{
    const struct oj_command *command = run->command;
    if (command->json_summary != NULL)
        OJ_TRY(oj_text_file_check(command->json_summary, "json_summary", err));
    if (command->benchmark_csv != NULL)
        OJ_TRY(
            oj_text_file_check(command->benchmark_csv, "benchmark_csv", err));
    if (command->benchmark)
    {
        OJ_TRY(oj_job_open(command, 0, &run->pass.job, err));
        return oj_benchmark_run(run, err);
    }
    OJ_TRY(oj_pass_open(command, &run->pass, err));
    if (command->explain)
        return oj_explain_run(run, err);
    OJ_TRY(command->in_place ? oj_in_place_run(run, err)
                             : write_join_output(run, err));
    return oj_summary_end(&run->summary, run->pass.proof, &run->is_different,
                          err);
}

oj_status oj_run(const struct oj_command *command, int *exit_code,
                 struct oj_error *err)
{
    struct oj_command_run run = {.command = command};
    oj_status status;
    run.summary.job = &run.pass.job;
    run.summary.written = &run.output.layers[0];
    run.summary.events = &run.pass.events;
    run.summary.start = oj_clock_seconds();
    status = run_command(&run, err);
    oj_output_abort(&run.output);
    oj_pass_close(&run.pass);
    if (status == OJ_OK)
        *exit_code = run.is_different              ? OJ_EXIT_DIFFERENCE
                     : oj_cancel_input_has_ended() ? OJ_EXIT_INTERRUPTED
                                                   : OJ_EXIT_COMPLETE;
    return status;
}
