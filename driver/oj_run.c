#include "oj_run.h"

#include "../flatten/oj_layer_write.h"
#include "oj_benchmark.h"
#include "oj_cancel.h"
#include "oj_explain.h"
#include "oj_in_place.h"
#include "oj_job.h"
#include "oj_message.h"
#include "oj_output.h"
#include "oj_proof.h"
#include "oj_schema.h"
#include "oj_summary.h"

#include <string.h>

/* Everything that a run to a destination holds. */
struct run
{
    struct oj_job job;
    struct oj_output output;
    struct oj_schema schema;
    struct oj_layer_writer *writer;
    struct oj_proof *proof; /* NULL without -validate */
    double proof_s;         /* spent on it while writing */
};

/* Runs on the calling thread, as all of the output does. */
static oj_status write_batch(void *user, const struct oj_pipeline_part *part,
                             const struct oj_matches *matches,
                             struct oj_error *err)
{
    struct run *run = user;
    const struct oj_answer_side side =
        oj_job_answer_side(&run->job, part->answer);
    double start;
    oj_status status;
    oj_layer_writer_set_join_side(run->writer, &side.flat, side.table);
    OJ_TRY(oj_layer_writer_write(run->writer, &run->job.batches[part->slot],
                                 part->first_row, matches, NULL, err));
    if (run->proof == NULL)
        return OJ_OK;
    start = oj_now_s();
    status = oj_proof_batch(run->proof, part->flat, matches, err);
    run->proof_s += oj_now_s() - start;
    return status;
}

static struct oj_schema_request make_request(const struct run *run)
{
    const struct oj_command *command = run->job.command;
    struct oj_schema_request request = {0};
    request.input = &run->job.input;
    request.join = &run->job.join;
    request.with_input = 1;
    request.with_join =
        command->how == OJ_KEEP_LEFT || command->how == OJ_KEEP_INNER;
    request.with_rank =
        request.with_join && oj_relation_gives_lists(&run->job.relation);
    request.prefix = command->prefix;
    return request;
}

static oj_status open_output(struct run *run, struct oj_error *err)
{
    const struct oj_command *command = run->job.command;
    const struct oj_schema_request request = make_request(run);
    struct oj_write_options options = {0};
    OJ_TRY(oj_output_open(&run->output, err));
    OJ_TRY(oj_schema_create(&request, &run->job.crs, &run->output, &run->schema,
                            err));
    options.how = (enum oj_how)command->how;
    options.columns = run->schema.columns;
    options.n_columns = (int)run->schema.n_fields;
    options.keep_fids = run->schema.keep_fids;
    options.promote_to_multi = command->promote_to_multi;
    options.join_side = &run->job.join_flat;
    options.join_table = run->job.join_table;
    options.cancel = oj_cancel_flag();
    return oj_layer_writer_open(run->output.layer, &options, &run->writer, err);
}

static void warn_of_writing(const struct run *run)
{
    const char *first;
    int64_t n = oj_layer_writer_warnings(run->writer, &first);
    if (n > 0)
        oj_warn("writing %s: %s%s", run->job.command->dst, first,
                n > 1 ? " (and more warnings)" : "");
}

/* Says more than the driver does, where more is known. */
static oj_status explain(const struct run *run, oj_status status,
                         struct oj_error *err)
{
    struct oj_error bare;
    if (status != OJ_ERR_IO || !run->schema.keep_fids ||
        strstr(err->message, "UNIQUE") == NULL)
        return oj_output_explain(&run->output, status, err);
    bare = *err;
    return oj_fail(err, status,
                   "%.600s; where FIDs of the input repeat, -unsetFid lets the "
                   "output number its rows",
                   bare.message);
}

/* The rows, then the close that can fail, and only then the last word. */
static oj_status write_output(struct run *run, struct oj_summary *summary,
                              struct oj_error *err)
{
    const struct oj_pipeline_sink sink = {write_batch, run};
    struct oj_output_counts counts;
    int64_t n_no_geometry;
    double start;
    oj_status status = oj_job_stream(&run->job, 1, &sink, err);
    if (status != OJ_OK)
        return explain(run, status, err);
    start = oj_now_s();
    summary->n_rows_written = oj_layer_writer_rows(run->writer);
    n_no_geometry = oj_layer_writer_rows_without_geometry(run->writer);
    warn_of_writing(run);
    oj_layer_writer_close(run->writer);
    run->writer = NULL;
    OJ_TRY(oj_output_finish(&run->output, summary->n_rows_written,
                            n_no_geometry, &counts, err));
    summary->write_s =
        run->job.counts.write_s - run->proof_s + oj_now_s() - start;
    summary->n_rows_left_out = counts.n_left_out;
    summary->n_rows_checked = counts.n_rows_checked;
    oj_job_end_progress(&run->job);
    return OJ_OK;
}

static oj_status join_to_output(struct run *run,
                                const struct oj_command *command,
                                int *exit_code, struct oj_error *err)
{
    struct oj_job *job = &run->job;
    struct oj_summary summary = {0};
    double start = oj_now_s();
    OJ_TRY(oj_job_open(command, job, err));
    OJ_TRY(oj_output_plan(command,
                          command->layer_name != NULL ? command->layer_name
                                                      : job->input.name,
                          &job->input, &job->join, &run->output, err));
    OJ_TRY(oj_job_prepare(job, err));
    if (command->validate != NULL)
        OJ_TRY(oj_proof_open(job, &run->proof, err));
    OJ_TRY(open_output(run, err));
    OJ_TRY(write_output(run, &summary, err));

    summary.job = job;
    summary.destination = command->dst;
    summary.n_rows_validated = -1;
    summary.n_rows_different = 0;
    if (run->proof != NULL)
        OJ_TRY(oj_proof_finish(run->proof, &summary.n_rows_validated,
                               &summary.n_rows_different, err));
    summary.total_s = oj_now_s() - start;
    oj_summary_print(&summary);
    if (command->json_summary != NULL)
        OJ_TRY(oj_summary_write_json(&summary, command->json_summary, err));
    *exit_code =
        summary.n_rows_different > 0 ? OJ_EXIT_DIFFERENCE : OJ_EXIT_COMPLETE;
    return OJ_OK;
}

static oj_status run_to_output(const struct oj_command *command, int *exit_code,
                               struct oj_error *err)
{
    struct run run = {0};
    oj_status status = join_to_output(&run, command, exit_code, err);
    oj_layer_writer_close(run.writer);
    oj_output_abort(&run.output);
    oj_proof_close(run.proof);
    oj_schema_free(&run.schema);
    oj_job_close(&run.job);
    return status;
}

oj_status oj_run(const struct oj_command *command, int *exit_code,
                 struct oj_error *err)
{
    if (command->explain)
        return oj_explain_run(command, exit_code, err);
    if (command->benchmark)
        return oj_benchmark_run(command, exit_code, err);
    if (command->in_place)
        return oj_in_place_run(command, exit_code, err);
    return run_to_output(command, exit_code, err);
}
