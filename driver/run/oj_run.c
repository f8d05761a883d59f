#include "oj_run.h"

#include "../../flatten/base/oj_clock.h"
#include "../../flatten/base/oj_library_texts.h"
#include "../../flatten/write/oj_layer_write.h"
#include "../base/oj_cancel.h"
#include "../base/oj_message.h"
#include "../files/oj_text_file.h"
#include "../output/oj_output.h"
#include "../rows/oj_pass.h"
#include "../rows/oj_proof.h"
#include "../rows/oj_summary.h"

#include <string.h>

/* A layer that is written. */
struct target
{
    struct oj_output_layer *at; /* in output.layers; NULL: not wanted */
    struct oj_schema schema;
    struct oj_layer_writer *writer; /* NULL: not wanted, or not open */
};

enum
{
    MAIN,
    UNMATCHED,      /* input rows without a pair, alone */
    UNMATCHED_JOIN, /* join rows without a pair, alone */
    N_TARGETS
};

/* Everything that a run to a destination holds. */
struct command_run
{
    struct oj_pass pass;
    struct oj_output output;
    OGRwkbGeometryType type; /* of the main layer */
    struct target target[N_TARGETS];
    struct oj_proof *proof; /* NULL without -validate */
    double proof_s;         /* spent on it while writing */

    const char *infinite_side; /* of a row that is not finite; NULL: none */
    int64_t infinite_fid;
};

/* ---- rows --------------------------------------------------------------- */

static oj_status write_rows(struct oj_layer_writer *writer,
                            const struct oj_answer *answer,
                            const struct oj_pair_values *values,
                            struct oj_error *err)
{
    return writer == NULL
               ? OJ_OK
               : oj_layer_writer_write(writer, answer->batch, answer->first_row,
                                       answer->matches, values, err);
}

static oj_status write_answer(struct command_run *run,
                              const struct oj_answer *answer,
                              struct oj_error *err)
{
    double start;
    oj_status status;
    oj_row_cursor_set_join_side(
        oj_layer_writer_cursor(run->target[MAIN].writer), answer->join_side,
        answer->join_table);
    OJ_TRY(write_rows(run->target[MAIN].writer, answer, answer->values, err));
    OJ_TRY(write_rows(run->target[UNMATCHED].writer, answer, NULL, err));
    if (run->proof == NULL)
        return OJ_OK;
    start = oj_clock_seconds();
    status = oj_proof_batch(run->proof, answer->part->flat, &answer->side,
                            answer->pairs, err);
    run->proof_s += oj_clock_seconds() - start;
    return status;
}

/* Rows of the join layer, in the main layer and alone. */
static oj_status write_join_rows(struct command_run *run,
                                 const struct oj_answer *answer,
                                 struct oj_error *err)
{
    if (oj_rows_has_unmatched_join(&run->pass.rows))
        OJ_TRY(oj_layer_writer_write_join_rows(
            run->target[MAIN].writer, answer->batch, answer->is_matched, err));
    return write_rows(run->target[UNMATCHED_JOIN].writer, answer, NULL, err);
}

/* *input_end: when the last input row was written. */
static oj_status write_answers(struct command_run *run, double *input_end,
                               struct oj_error *err)
{
    const struct oj_answer *answer;
    for (;;)
    {
        OJ_TRY(oj_pass_next(&run->pass, &answer, err));
        if (answer == NULL)
            return OJ_OK;
        if (answer->is_matched != NULL)
        {
            OJ_TRY(write_join_rows(run, answer, err));
            continue;
        }
        OJ_TRY(write_answer(run, answer, err));
        *input_end = oj_clock_seconds();
    }
}

/* ---- layers ------------------------------------------------------------- */

/* Of a layer that holds rows of one side alone, as they are. */
static struct oj_schema_request request_alone(const struct oj_source *side)
{
    struct oj_schema_request request = {0};
    request.input = side;
    request.with_input = 1;
    request.one_row_per_input = 1;
    request.type = side->type;
    return request;
}

static oj_status open_target(struct command_run *run, struct target *target,
                             const struct oj_schema_request *request,
                             enum oj_how how, struct oj_error *err)
{
    struct oj_write_options options = {0};
    if (target->at == NULL)
        return OJ_OK;
    OJ_TRY(oj_schema_create(request, &run->pass.job.crs, &run->output,
                            target->at, &target->schema, err));
    oj_pass_fill_write_options(&run->pass, &options);
    if (target != &run->target[MAIN])
        options.geometry = OJ_WRITE_INPUT;
    options.how = how;
    options.columns = target->schema.columns;
    options.n_columns = (int)target->schema.n_fields;
    options.keep_fids = target->schema.keep_fids;
    return oj_layer_writer_open(target->at->layer, &options, &target->writer,
                                err);
}

static oj_status open_output(struct command_run *run, struct oj_error *err)
{
    const struct oj_job *job = &run->pass.job;
    const struct oj_schema_request pairs =
        oj_pass_request(&run->pass, run->type);
    const struct oj_schema_request input = request_alone(&job->input);
    const struct oj_schema_request join = request_alone(&job->join);
    struct target *target = run->target;
    OJ_TRY(oj_output_open(&run->output, err));
    OJ_TRY(
        open_target(run, &target[MAIN], &pairs, oj_pass_how(&run->pass), err));
    OJ_TRY(open_target(run, &target[UNMATCHED], &input, OJ_HOW_ANTI, err));
    return open_target(run, &target[UNMATCHED_JOIN], &join, OJ_HOW_ANTI, err);
}

static oj_status plan_beside(struct command_run *run, int which,
                             const char *option, const char *name,
                             struct oj_error *err)
{
    if (name == NULL)
        return OJ_OK;
    run->target[which].at = &run->output.layers[run->output.n_layers];
    return oj_output_plan_layer(&run->output, option, name, err);
}

static oj_status plan_output(struct command_run *run, struct oj_error *err)
{
    const struct oj_command *command = run->pass.job.command;
    const struct oj_job *job = &run->pass.job;
    OJ_TRY(oj_output_plan(command,
                          command->layer_name != NULL ? command->layer_name
                                                      : job->input.name,
                          &job->input, &job->join, &run->output, err));
    run->target[MAIN].at = &run->output.layers[0];
    OJ_TRY(plan_beside(run, UNMATCHED, "unmatched_layer",
                       command->unmatched_layer, err));
    OJ_TRY(plan_beside(run, UNMATCHED_JOIN, "unmatched_join_layer",
                       command->unmatched_join_layer, err));
    return oj_rows_type(&run->pass.rows, run->output.driver, &run->type, err);
}

/* ---- the end of writing ------------------------------------------------- */

static void warn_of_writing(const struct command_run *run)
{
    for (int i = 0; i < N_TARGETS; i++)
    {
        const char *first;
        int64_t n;
        if (run->target[i].writer == NULL)
            continue;
        n = oj_layer_writer_warnings(run->target[i].writer, &first);
        if (n > 0)
            oj_warn("writing %s: %s%s", run->pass.job.command->dst, first,
                    n > 1 ? " (and more warnings)" : "");
    }
    oj_rows_warn(&run->pass.rows);
}

/* What drivers say of such rows names none of them. */
static void find_infinite(struct command_run *run)
{
    for (int i = 0; i < N_TARGETS && run->infinite_side == NULL; i++)
    {
        if (run->target[i].writer == NULL)
            continue;
        run->infinite_side =
            oj_layer_writer_infinite(run->target[i].writer, &run->infinite_fid);
        if (run->infinite_side != NULL && i == UNMATCHED_JOIN)
            run->infinite_side = "join";
    }
}

/* A full disk is the reason that it is. */
static oj_status explain_infinite(const struct command_run *run,
                                  oj_status status, struct oj_error *err)
{
    const struct oj_error bare = *err;
    if (status != OJ_ERR_IO || run->infinite_side == NULL ||
        strncmp(bare.message, "cannot write", 12) == 0)
        return status;
    return oj_fail(err, status,
                   "%.600s; %s feature %lld has a coordinate that is not "
                   "finite, which not every format takes: leave it out with "
                   "-%swhere, or write FlatGeobuf",
                   bare.message, run->infinite_side,
                   (long long)run->infinite_fid,
                   run->infinite_side[0] == 'j' ? "join_" : "");
}

/* Says more than the driver does, where more is known. */
static oj_status explain(struct command_run *run, oj_status status,
                         struct oj_error *err)
{
    struct oj_error bare;
    find_infinite(run);
    if (status != OJ_ERR_IO || !run->target[MAIN].schema.keep_fids ||
        strstr(err->message, OJ_TEXT_FID_REPEATS) == NULL)
    {
        status = oj_output_explain(&run->output, status, err);
        return explain_infinite(run, status, err);
    }
    bare = *err;
    return oj_fail(err, status,
                   "%.600s; where FIDs of the input repeat, -unsetFid lets the "
                   "output number its rows",
                   bare.message);
}

static void close_writers(struct command_run *run)
{
    for (int i = 0; i < N_TARGETS; i++)
    {
        struct target *target = &run->target[i];
        if (target->writer != NULL)
        {
            target->at->n_rows = oj_layer_writer_rows(target->writer);
            target->at->n_no_geometry = oj_row_cursor_rows_without_geometry(
                oj_layer_writer_cursor(target->writer));
        }
        oj_layer_writer_close(target->writer);
        target->writer = NULL;
    }
}

static void note_beside(const struct oj_output *output)
{
    for (int i = 1; i < output->n_layers; i++)
        oj_notice("%lld %s nothing written to layer '%s'",
                  (long long)output->layers[i].n_rows,
                  oj_word_for(output->layers[i].n_rows, "row that matches",
                              "rows that match"),
                  output->layers[i].name);
}

/* The rows, then the close that can fail, and only then the last word. */
static oj_status write_output(struct command_run *run,
                              struct oj_summary *summary, struct oj_error *err)
{
    const struct oj_output_layer *layer = &run->output.layers[0];
    double start = oj_clock_seconds();
    oj_status status = write_answers(run, &start, err);
    status = oj_pass_stop(&run->pass, status, err);
    if (status != OJ_OK)
        return explain(run, status, err);
    warn_of_writing(run);
    find_infinite(run);
    close_writers(run);
    status = oj_output_finish(&run->output, err);
    if (status != OJ_OK)
        return explain_infinite(run, status, err);
    summary->write_s = run->pass.job.counts.write_s - run->proof_s +
                       oj_clock_seconds() - start;
    summary->n_rows_written = layer->n_rows;
    summary->n_rows_left_out = layer->n_left_out;
    summary->n_rows_checked = layer->n_checked;
    oj_job_end_progress(&run->pass.job);
    note_beside(&run->output);
    return OJ_OK;
}

/* ---- the run ------------------------------------------------------------ */

static oj_status join_to_output(struct command_run *run,
                                const struct oj_command *command,
                                int *exit_code, struct oj_error *err)
{
    struct oj_job *job = &run->pass.job;
    struct oj_summary summary = {0};
    double start = oj_clock_seconds();
    OJ_TRY(oj_pass_open(command, &run->pass, err));
    OJ_TRY(plan_output(run, err));
    OJ_TRY(oj_pass_prepare(&run->pass, err));
    if (command->validate != NULL)
        OJ_TRY(oj_proof_open(job, &run->proof, err));
    OJ_TRY(
        oj_pass_start(&run->pass, run->target[UNMATCHED_JOIN].at != NULL, err));
    OJ_TRY(open_output(run, err));
    OJ_TRY(write_output(run, &summary, err));

    summary.job = job;
    summary.destination = command->dst;
    return oj_summary_end(&summary, run->proof, start, exit_code, err);
}

static oj_status run_to_output(const struct oj_command *command, int *exit_code,
                               struct oj_error *err)
{
    struct command_run run = {0};
    oj_status status = join_to_output(&run, command, exit_code, err);
    for (int i = 0; i < N_TARGETS; i++)
        oj_layer_writer_close(run.target[i].writer);
    oj_output_abort(&run.output);
    oj_proof_close(run.proof);
    for (int i = 0; i < N_TARGETS; i++)
        oj_schema_free(&run.target[i].schema);
    oj_pass_close(&run.pass);
    return status;
}

oj_status oj_run(const struct oj_command *command, int *exit_code,
                 struct oj_error *err)
{
    if (command->json_summary != NULL)
        OJ_TRY(oj_text_file_check(command->json_summary, "json_summary", err));
    if (command->benchmark_csv != NULL)
        OJ_TRY(
            oj_text_file_check(command->benchmark_csv, "benchmark_csv", err));
    if (command->explain)
        return oj_explain_run(command, exit_code, err);
    if (command->benchmark)
        return oj_benchmark_run(command, exit_code, err);
    if (command->in_place)
        return oj_in_place_run(command, exit_code, err);
    return run_to_output(command, exit_code, err);
}
