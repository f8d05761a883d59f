#include "oj_join_cursor.h"

#include "../../algs/pairs/oj_pair_filter.h"
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_clock.h"
#include "../../flatten/base/oj_hash_mix.h"
#include "../../flatten/read/oj_ogr_errors.h"
#include "../base/oj_cancel.h"
#include "oj_summary.h"

#include <cpl_conv.h>
#include <cpl_progress.h>
#include <cpl_string.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of the progress bar, what streaming the join layer takes. */
#define STREAM_SHARE 0.9

/* ---- on whose thread we are --------------------------------------------- */

/* What the calling thread had before it worked on the pass. */
struct entered_pass
{
    int is_shared;
    const int *flag;
    struct oj_message_sink sink;
};

/* Its messages go to pass->messages, and it looks at the flag of the pass; for
 * one that is for once both are those of the process. */
static void set_thread_cancel_and_messages(struct oj_pass *pass,
                                           struct entered_pass *stretch)
{
    stretch->is_shared = pass->command != NULL;
    if (!stretch->is_shared)
        return;
    stretch->flag = oj_cancel_use(&pass->cancel);
    oj_message_use_list(&pass->messages, &stretch->sink);
}

static void reset_thread_cancel_and_messages(struct entered_pass *stretch)
{
    if (!stretch->is_shared)
        return;
    oj_message_end_list();
    oj_cancel_use(stretch->flag);
}

/* The calling thread works on the pass from here to the end of the block. */
#define WORK_ON(pass)                                                          \
    __attribute__((cleanup(                                                    \
        reset_thread_cancel_and_messages))) struct entered_pass stretch;       \
    set_thread_cancel_and_messages(pass, &stretch)

/* ---- reading ------------------------------------------------------------ */

/* Shows the progress bar, too. One of the threads joins, meanwhile. (Sums of a
 * GeoPackage on two processors: 0.62 to 0.70 s, with both 0.68 to 0.80.) */
static oj_status open_reader(struct oj_pass *pass, struct oj_source *source,
                             const struct oj_read_options *reading,
                             struct oj_error *err)
{
    struct oj_read_options own = *reading;
    oj_status status;
    OJ_TRY(oj_source_hold(source, err));
    own.n_threads--;
    oj_message_forget_errors();
    status = oj_layer_reader_open(source->layer, &own, &pass->reader, err);
    if (status != OJ_OK)
        return oj_message_add_reason(status, err);
    if (pass->job.show_progress && !pass->progress_open)
        GDALTermProgress(0.0, NULL, NULL);
    pass->progress_open = pass->job.show_progress;
    return OJ_OK;
}

static int show_progress(int64_t n_rows, void *user)
{
    const struct oj_pass *pass = user;
    int64_t n = pass->job.n_expected;
    double share = pass->progress_share > 0 ? pass->progress_share : 1.0;
    double done = n == 0;
    if (n > 0)
        done = n_rows < n ? (double)n_rows / (double)n : 1.0;
    done = pass->progress_start + share * done;
    /* The last step is shown when the output is complete. */
    if (pass->job.show_progress)
        GDALTermProgress(done < 0.999 ? done : 0.999, NULL, NULL);
    return oj_is_cancelled();
}

static void run_pipeline_thread(void *user,
                                void (*stages)(struct oj_pipeline *),
                                struct oj_pipeline *pipeline)
{
    WORK_ON(user);
    stages(pipeline);
}

/* Nothing reads the layers any more. */
static void close_reader_and_batches(struct oj_pass *pass)
{
    for (int i = 0; i < OJ_PIPELINE_SLOTS; i++)
    {
        oj_batch_free(&pass->batches[i]);
        oj_side_work_free(&pass->batch_work[i]);
    }
    oj_layer_reader_close(pass->reader);
    pass->reader = NULL;
}

static oj_status fail_changed(const struct oj_source *source, const char *how,
                              struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_DATA, "the %s layer '%s' %s", source->role,
                   source->name, how);
}

/* ---- join features that match nothing ----------------------------------- */

/* Notes the join features of an answer. */
static void mark_matched_join_rows(struct oj_unmatched *unmatched,
                                   const struct oj_matches *matches,
                                   const struct oj_answer_side *side)
{
    if (unmatched->matched == NULL)
        return;
    for (int64_t i = 0; i < matches->n_entries; i++)
    {
        int64_t feature = matches->join_row[i];
        if (feature < 0)
            continue;
        if (side->ordinal != NULL)
            feature = side->ordinal[feature];
        unmatched->matched[feature / 64] |= UINT64_C(1) << feature % 64;
    }
}

/* Features that were never marked; 0 where nobody asks. */
static int64_t count_unmatched(const struct oj_unmatched *unmatched)
{
    int64_t n_words = unmatched->n_features / 64 + 1, n_matched = 0;
    if (unmatched->matched == NULL)
        return 0;
    for (int64_t i = 0; i < n_words; i++)
        n_matched += __builtin_popcountll(unmatched->matched[i]);
    return unmatched->n_features - n_matched;
}

static void free_unmatched_bitmap(struct oj_unmatched *unmatched)
{
    const struct oj_unmatched closed = {0};
    oj_matches_free(&unmatched->matches);
    oj_free(unmatched->is_matched);
    oj_free(unmatched->matched);
    *unmatched = closed;
}

static oj_status allocate_unmatched_bitmap(const struct oj_job *job,
                                           struct oj_unmatched *unmatched,
                                           struct oj_error *err)
{
    int64_t n = job->join_side->counts.n_rows;
    free_unmatched_bitmap(unmatched);
    OJ_NEW_ZEROED(unmatched->matched, n / 64 + 1, err);
    unmatched->n_features = n;
    return OJ_OK;
}

static oj_status fail_join_rows_changed(const struct oj_job *job,
                                        struct oj_error *err)
{
    return fail_changed(&job->join,
                        "has other rows, or another order, when it is read "
                        "again for those that match nothing",
                        err);
}

/* A side that is read for the second time: of the state of its first reading,
 * where that is still held; else its files show whether it has changed. */
static oj_status check_read_again_unchanged(const struct oj_pass *pass,
                                            int side, struct oj_error *err)
{
    const struct oj_job *job = &pass->job;
    const struct oj_join_files *files =
        side == 0 ? &job->input_files : &job->join_files;
    if (pass->was_held[side] || !oj_join_files_differ(files))
        return OJ_OK;
    return fail_changed(side == 0 ? &job->input : &job->join,
                        "was changed while it was read; read it again", err);
}

/* Before the second reading, or as soon as it is known that there is one: a
 * side that was not held yet comes from an earlier pass, or from another job.
 */
static oj_status hold_side_to_read_again(struct oj_pass *pass, int side,
                                         struct oj_error *err)
{
    struct oj_source *source = side == 0 ? &pass->job.input : &pass->job.join;
    pass->was_held[side] = source->is_held;
    OJ_TRY(oj_source_hold(source, err));
    OJ_TRY(check_read_again_unchanged(pass, side, err));
    pass->was_held[side] = source->is_held;
    return OJ_OK;
}

/* Of a batch, where the FIDs that were read first are still there. */
static oj_status mark_unmatched_rows_of_batch(struct oj_unmatched *unmatched,
                                              const struct oj_job *job,
                                              const struct oj_batch *batch,
                                              struct oj_error *err)
{
    const struct oj_flat_buf *before = &job->join_side->buf;
    int64_t first = batch->first_row, n = batch->n_rows;
    if (first + n > unmatched->n_features ||
        (before->fid != NULL && first + n <= before->n_features &&
         memcmp(before->fid + first, batch->flat.fid,
                (size_t)n * sizeof *before->fid) != 0))
        return fail_join_rows_changed(job, err);
    OJ_ROOM(unmatched->is_matched, 0, n, unmatched->cap_is_matched, err);
    OJ_TRY(oj_matches_reserve(&unmatched->matches, n, n, 0, err));
    for (int64_t i = 0; i < n; i++)
    {
        int64_t feature = first + i;
        unmatched->is_matched[i] =
            unmatched->matched[feature / 64] >> feature % 64 & 1;
        unmatched->matches.join_row[i] = unmatched->is_matched[i] ? 0 : -1;
        unmatched->matches.measure[i] = (double)NAN;
    }
    return OJ_OK;
}

/* The input layer has been read. */
static oj_status open_join_reader(struct oj_pass *pass, struct oj_error *err)
{
    struct oj_job *job = &pass->job;
    struct oj_read_options reading = oj_job_read_options(job, 1, 1);
    reading.skipped = NULL; /* not by the join, but these rows are written */
    OJ_TRY(check_read_again_unchanged(pass, 1, err));
    return oj_layer_reader_open(job->join.layer, &reading, &pass->reader, err);
}

/* Reads the next batch of all join rows; *there 0: there is none any more.
 * OJ_ERR_DATA when the layer is no longer as it was. */
static oj_status read_next_unmatched_batch(struct oj_pass *pass, int *there,
                                           struct oj_error *err)
{
    struct oj_unmatched *unmatched = &pass->unmatched;
    struct oj_batch *batch = &pass->batches[0];
    if (pass->reader == NULL)
        OJ_TRY(open_join_reader(pass, err));
    OJ_TRY(oj_layer_reader_next(pass->reader, batch, err));
    *there = batch->n_rows > 0;
    if (*there)
        return mark_unmatched_rows_of_batch(unmatched, &pass->job, batch, err);
    if (oj_layer_reader_counts(pass->reader)->n_rows != unmatched->n_features)
        return fail_join_rows_changed(&pass->job, err);
    return check_read_again_unchanged(pass, 1, err);
}

/* ---- the choice of -one_to_one ------------------------------------------- */

static void close_one_to_one_choice(struct oj_choice *choice)
{
    const struct oj_choice closed = {0};
    oj_one_to_one_close(choice->pairs);
    oj_pair_ranks_free(&choice->ranks);
    oj_free(choice->place);
    oj_free(choice->found);
    oj_free(choice->found_place);
    *choice = closed;
}

/* Pairs of the job, which is prepared, can be added. */
static oj_status open_one_to_one_choice(struct oj_pass *pass,
                                        struct oj_error *err)
{
    const struct oj_job *job = &pass->job;
    struct oj_choice *choice = &pass->choice;
    const int64_t n = job->join_side->counts.n_rows;
    close_one_to_one_choice(choice);
    choice->by_fid = pass->command != NULL && !job->input.is_result_set;
    OJ_TRY(oj_one_to_one_open(n, oj_job_most_held_pairs(job->command),
                              job->command->output.dst, &choice->pairs, err));
    if (job->tiled != NULL)
        OJ_NEW(choice->place, n, err);
    return OJ_OK;
}

/* FIDs, and coordinates, as rows of a SELECT are numbered whatever they are;
 * flat begins with row first_row of all. */
static void hash_batch(uint64_t *sum, const struct oj_flat *flat,
                       int64_t first_row)
{
    if (first_row == 0)
        *sum = 0;
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        int64_t first, end;
        oj_flat_vertices(flat, i, &first, &end);
        if (flat->fid != NULL)
            *sum = oj_hash_mix(*sum, &flat->fid[i]);
        if (first < end)
            *sum = oj_hash_mix(oj_hash_mix(*sum, &flat->x[first]),
                               &flat->y[first]);
    }
}

/* Fetches the join features of an answer out of the tiles, by found. */
static oj_status fetch_answer_features(struct oj_choice *choice,
                                       struct oj_job *job, int answer,
                                       struct oj_matches *out,
                                       struct oj_error *err)
{
    const int64_t n = out->n_pairs;
    const struct oj_keyed *found =
        oj_radix_sort(choice->found, choice->found + n, n);
    OJ_ROOM(choice->found_place, 0, n, choice->cap_found_place, err);
    for (int64_t i = 0; i < n; i++)
    {
        choice->found_place[i] = (int64_t)found[i].key;
        out->join_row[found[i].value] = (int32_t)i;
    }
    return oj_tiles_fetch(&job->tiles, choice->found_place, n, 1,
                          &job->answer_side[answer], err);
}

/* As oj_job_join(): the chosen pairs of a part, the first row of which is row
 * first of all. */
static oj_status answer_with_chosen_pairs(struct oj_choice *choice,
                                          struct oj_job *job,
                                          const struct oj_pipeline_part *part,
                                          int64_t first, struct oj_matches *out,
                                          struct oj_error *err)
{
    const struct oj_flat *flat = part->flat;
    const int64_t n = flat->n_features;
    OJ_TRY(oj_matches_reserve(out, n, n, 0, err));
    if (choice->place != NULL)
        OJ_ROOM(choice->found, 0, 2 * n, choice->cap_found, err);
    for (int64_t i = 0; i < n; i++)
    {
        const struct oj_one_pair *pair = oj_one_to_one_find(
            choice->pairs, choice->by_fid ? flat->fid[i] : first + i,
            &choice->hint);
        out->join_row[i] = -1;
        out->measure[i] = (double)NAN;
        if (pair == NULL)
            continue;
        out->measure[i] = pair->measure;
        if (choice->place == NULL)
            out->join_row[i] = (int32_t)pair->join;
        else
            choice->found[out->n_pairs] =
                (struct oj_keyed){(uint64_t)choice->place[pair->join], i};
        out->n_pairs++;
    }
    out->n_matched = out->n_pairs;
    return choice->place == NULL
               ? OJ_OK
               : fetch_answer_features(choice, job, part->answer, out, err);
}

/* ---- open --------------------------------------------------------------- */

oj_status oj_pass_open(const struct oj_command *command, struct oj_pass *pass,
                       struct oj_error *err)
{
    OJ_TRY(oj_job_open(command, 0, &pass->job, err));
    return oj_rows_plan(&pass->job, &pass->rows, err);
}

/* The columns of a reader name fields by their places, which a changed file may
 * have filled with others; further ones at the end do no harm.
 * before: of the side when it was first opened; NULL: now. */
static oj_status check_fields_unchanged(const struct oj_source *source,
                                        char ***before, struct oj_error *err)
{
    char **now = oj_source_describe_fields(source, source->n_fields);
    int n = CSLCount(*before), i = 0;
    if (*before == NULL)
    {
        *before = now;
        return OJ_OK;
    }
    while (i < n && now != NULL && now[i] != NULL &&
           strcmp(now[i], (*before)[i]) == 0)
        i++;
    CSLDestroy(now);
    if (i == n)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_DATA,
                   "the %s layer '%s' has other fields than when the join was "
                   "opened; open it anew",
                   source->role, source->name);
}

static oj_status open_sides(struct oj_pass *pass, struct oj_error *err)
{
    WORK_ON(pass);
    pass->is_broken = 1;
    OJ_TRY(oj_job_open(pass->command, 1, &pass->job, err));
    OJ_TRY(oj_rows_plan(&pass->job, &pass->rows, err));
    OJ_TRY(check_fields_unchanged(&pass->job.input, &pass->fields[0], err));
    OJ_TRY(check_fields_unchanged(&pass->job.join, &pass->fields[1], err));
    pass->is_broken = 0;
    return OJ_OK;
}

oj_status oj_pass_open_shared(const struct oj_command *command,
                              const struct oj_pass *like, struct oj_pass *pass,
                              struct oj_error *err)
{
    pass->command = command;
    pass->like = like;
    for (int i = 0; like != NULL && i < 2; i++)
        pass->fields[i] = CSLDuplicate(like->fields[i]);
    return open_sides(pass, err);
}

static oj_status plan_output_schema(struct oj_pass *pass,
                                    struct oj_schema *schema,
                                    struct oj_error *err)
{
    const struct oj_source *input = &pass->job.input;
    const struct oj_schema_request *request = &pass->rows.fields;
    const char *const names[] = {OGR_L_GetFIDColumn(input->layer),
                                 OGR_L_GetGeometryColumn(input->layer)};
    WORK_ON(pass);
    OJ_TRY(oj_rows_type(&pass->rows, NULL, err));
    for (int i = 0; i < 2; i++)
        oj_schema_take_name(schema, oj_schema_name_beside(input, names[i]));
    OJ_TRY(oj_schema_plan(request, schema, err));
    schema->keep_fids = !request->has_other_rows && !input->is_result_set &&
                        !pass->command->output.unset_fid;
    return OJ_OK;
}

oj_status oj_pass_open_layer(const struct oj_command *command,
                             struct oj_pass *pass, struct oj_schema *schema,
                             struct oj_error *err)
{
    if (command->output.layer_type == OJ_LAYER_NONE)
        return oj_fail(err, OJ_ERR_ARG,
                       "-nlt NONE is for runs that write a dataset; who reads "
                       "rows of a join chooses what to read of them");
    OJ_TRY(oj_pass_open_shared(command, NULL, pass, err));
    return plan_output_schema(pass, schema, err);
}

/* The job can be prepared anew. */
static void forget_streamed_join(struct oj_pass *pass)
{
    if (pass->streams == OJ_STREAMS_INPUT)
        return;
    close_reader_and_batches(pass);
    oj_join_close(pass->job.join_side->engine);
    pass->job.join_side->engine = NULL;
    oj_join_side_free(&pass->held_input);
    pass->streams = OJ_STREAMS_INPUT;
}

static void close_sides(struct oj_pass *pass)
{
    close_reader_and_batches(pass);
    forget_streamed_join(pass);
    free_unmatched_bitmap(&pass->unmatched);
    close_one_to_one_choice(&pass->choice);
    oj_rows_close(&pass->rows);
    oj_matches_free(&pass->one);
    oj_job_close(&pass->job);
    pass->is_prepared = pass->is_started = 0;
}

int oj_pass_is_outdated(struct oj_pass *pass)
{
    if (!pass->is_running && oj_job_is_outdated(&pass->job))
        pass->is_broken = 1;
    return !pass->is_running && pass->is_broken;
}

oj_status oj_pass_reopen(struct oj_pass *pass, struct oj_error *err)
{
    if (pass->is_running || !pass->is_broken)
        return OJ_OK;
    close_sides(pass);
    return open_sides(pass, err);
}

static oj_status set_filters(struct oj_pass *pass, struct oj_error *err)
{
    close_reader_and_batches(pass);
    return oj_source_filter(&pass->job.input, pass->box, pass->where, err);
}

/* ---- the join side ------------------------------------------------------ */

/* A row without pair is one, too. */
int64_t oj_pass_most_rows(const struct oj_pass *pass)
{
    const struct oj_relation *relation = &pass->job.relation;
    int64_t n = pass->job.join_side->counts.n_rows;
    if (pass->rows.fields.one_row_per_input)
        return 1;
    if (oj_relation_sorts_by_measure(relation) &&
        relation->ties == OJ_TIES_FIRST && relation->k < n)
        n = relation->k;
    return n > 1 ? n : 1;
}

/* 1 when the join layer was streamed, and the aggregates of all input rows are
 * there. */
static int was_join_streamed(const struct oj_pass *pass)
{
    return pass->streams != OJ_STREAMS_INPUT;
}

/* 1 when the answers of its rows are known already. */
static int is_input_read_again(const struct oj_pass *pass)
{
    return was_join_streamed(pass) || pass->choice.is_made;
}

/* Runs on the join thread. */
static oj_status
join_rows_on_pipeline_thread(void *user, const struct oj_pipeline_part *part,
                             struct oj_matches *out, struct oj_error *err)
{
    struct oj_pass *pass = user;
    struct oj_job *job = &pass->job;
    struct oj_aggregation *aggregation = pass->rows.aggregation;
    const struct oj_batch *batch = &pass->batches[part->slot];
    const struct oj_flat *input = &pass->held_input.flat;
    int64_t n = part->flat->n_features;
    int64_t first = batch->first_row + part->first_row;
    switch (pass->streams)
    {
        case OJ_STREAMS_JOIN:
            return oj_aggregation_join(aggregation, job->join_side->engine,
                                       part, batch, out, err);
        case OJ_STREAMS_AS_READ:
            if (first + n > input->n_features ||
                memcmp(part->flat->fid, input->fid + first,
                       (size_t)n * sizeof *input->fid) != 0)
                return fail_changed(&job->input, "changed while it was read",
                                    err);
            return oj_aggregation_rows(aggregation, first, n, out, err);
        case OJ_STREAMS_INPUT:
            break;
    }
    if (pass->choice.is_made)
        OJ_TRY(answer_with_chosen_pairs(&pass->choice, job, part, first, out,
                                        err));
    else
        OJ_TRY(oj_job_join(job, part->flat, part->answer, !pass->is_choosing,
                           out, err));
    return pass->is_choosing
               ? OJ_OK
               : oj_rows_after_join(&pass->rows, part, &batch->flat, out, err);
}

/* Both run on the join thread. */
static int may_sample_on_pipeline_thread(void *user)
{
    const struct oj_pass *pass = user;
    return pass->streams != OJ_STREAMS_AS_READ && !pass->choice.is_made &&
           oj_job_may_sample(&pass->job);
}

static oj_status sample_rows_on_pipeline_thread(void *user,
                                                const struct oj_flat *rows,
                                                struct oj_matches *out,
                                                struct oj_error *err)
{
    struct oj_pass *pass = user;
    return oj_job_join(&pass->job, rows, 0, 0, out, err);
}

static oj_status read_batch_on_reader_thread(void *user, int slot,
                                             struct oj_flat *flat,
                                             struct oj_error *err);

static struct oj_pipeline_work make_pipeline_callbacks(struct oj_pass *pass)
{
    const struct oj_options options = oj_job_options(pass->job.command);
    const struct oj_pipeline_work work = {read_batch_on_reader_thread,
                                          join_rows_on_pipeline_thread,
                                          show_progress,
                                          run_pipeline_thread,
                                          pass,
                                          oj_cancel_flag(),
                                          0,
                                          &pass->job.n_slots,
                                          options.max_batch_pairs,
                                          sample_rows_on_pipeline_thread,
                                          may_sample_on_pipeline_thread};
    return work;
}

/* Reads the input layer and indexes it. */
static oj_status read_and_index_input(struct oj_pass *pass,
                                      struct oj_error *err)
{
    struct oj_job *job = &pass->job;
    struct oj_aggregation *aggregation = pass->rows.aggregation;
    struct oj_join_side *input = &pass->held_input;
    struct oj_options options = oj_job_options(job->command);
    struct oj_relation exchanged = oj_relation_transpose(&job->relation);
    int64_t n_join;
    OJ_TRY(oj_job_read_side(job, 0, 1, input, NULL, err));
    n_join = oj_source_count(&job->join, -1);
    exchanged.any_order = 1;
    options.n_expected = n_join > 0 ? n_join : 0;
    OJ_TRY(oj_join_open(&input->flat, &exchanged, job->command->backend,
                        &options, &job->join_side->engine, err));
    return oj_aggregation_start(aggregation, input->flat.n_features, err);
}

static oj_status validate_answer(struct oj_pass *pass,
                                 const struct oj_answer *answer,
                                 struct oj_error *err)
{
    double start = oj_clock_seconds();
    if (pass->proof == NULL)
        return OJ_OK;
    OJ_TRY(oj_proof_batch(pass->proof, answer->part->flat, &answer->side,
                          answer->pairs, err));
    if (!pass->is_choosing)
        pass->proof_s += oj_clock_seconds() - start;
    return OJ_OK;
}

static oj_status add_pairs_to_one_to_one(struct oj_pass *pass,
                                         const struct oj_pipeline_part *part,
                                         const struct oj_matches *matches,
                                         struct oj_error *err)
{
    struct oj_choice *choice = &pass->choice;
    struct oj_answer answer = {0};
    answer.part = part;
    answer.pairs = matches;
    answer.side = oj_job_answer_side(&pass->job, part->answer);
    OJ_TRY(validate_answer(pass, &answer, err));
    OJ_TRY(oj_pair_ranks_make(&pass->job.relation, part->flat,
                              &answer.side.flat, matches,
                              oj_job_threads(&pass->job), &choice->ranks, err));
    for (int64_t i = 0;
         choice->place != NULL && i < answer.side.flat.n_features; i++)
        choice->place[answer.side.ordinal[i]] = answer.side.place[i];
    return oj_one_to_one_add(choice->pairs, matches, &choice->ranks,
                             answer.side.ordinal,
                             choice->by_fid ? part->flat->fid : NULL, err);
}

/* Joins all rows of a side: of the join layer what it streams, of the input
 * what -one_to_one chooses from; the calling thread takes the answers. */
static oj_status stream_rows(struct oj_pass *pass, int side,
                             const struct oj_read_options *reading,
                             struct oj_pipeline_counts *counts,
                             struct oj_read_counts *read, struct oj_error *err)
{
    struct oj_job *job = &pass->job;
    struct oj_source *source = side == 0 ? &job->input : &job->join;
    struct oj_pipeline_work work = make_pipeline_callbacks(pass);
    const struct oj_pipeline_part *part;
    const struct oj_matches *matches;
    struct oj_pipeline *pipeline;
    oj_status status;
    work.max_pairs = job->command->max_pairs;
    OJ_TRY(open_reader(pass, source, reading, err));
    OJ_TRY(oj_pipeline_open(&work, &pipeline, err));
    do
    {
        status = oj_pipeline_next(pipeline, &part, &matches, err);
        if (status == OJ_OK && part != NULL)
            status = pass->is_choosing
                         ? add_pairs_to_one_to_one(pass, part, matches, err)
                         : oj_aggregation_add_streamed(
                               pass->rows.aggregation, part,
                               &pass->batches[part->slot], matches, err);
    } while (status == OJ_OK && part != NULL);
    status = oj_pipeline_close(pipeline, status, counts, err);
    *read = *oj_layer_reader_counts(pass->reader);
    if (status != OJ_OK)
        return oj_message_add_reason(status, err);
    close_reader_and_batches(pass);
    return oj_source_check_count(source, reading->limit, read->n_rows, err);
}

static oj_status stream_join_layer(struct oj_pass *pass, struct oj_error *err)
{
    struct oj_job *job = &pass->job;
    struct oj_read_options reading = oj_job_read_options(job, 1, 1);
    OJ_TRY(read_and_index_input(pass, err));
    reading.fields_only = 1;
    job->n_expected = job->show_progress ? oj_source_count(&job->join, -1) : -1;
    pass->progress_share = STREAM_SHARE;
    OJ_TRY(stream_rows(pass, 1, &reading, &job->counts, &job->join_side->counts,
                       err));
    job->join_side->read_s = pass->held_input.read_s + job->counts.read_s;
    pass->join_s = job->counts.join_s + job->counts.write_s;
    pass->streams = OJ_STREAMS_AS_READ; /* the input layer, read again */
    job->n_expected = pass->held_input.flat.n_features;
    pass->progress_start = STREAM_SHARE;
    pass->progress_share = 1.0 - STREAM_SHARE;
    return OJ_OK;
}

static void release_sides(struct oj_pass *pass)
{
    oj_source_release(&pass->job.input);
    oj_source_release(&pass->job.join);
}

/* single: rows are asked for by their FIDs; what was added up for all rows is
 * no help for one of them. */
static oj_status prepare_job_for_reading(struct oj_pass *pass, int single,
                                         struct oj_error *err)
{
    const struct oj_pass *like = pass->like;
    oj_status status;
    if (pass->is_prepared && (!single || !was_join_streamed(pass)))
        return OJ_OK;
    forget_streamed_join(pass);
    pass->is_prepared = pass->is_started = 0;
    if (!single && pass->rows.streams_join)
    {
        pass->streams = OJ_STREAMS_JOIN;
        status = stream_join_layer(pass, err);
        if (status != OJ_OK)
            forget_streamed_join(pass);
    }
    else
    {
        if (like != NULL && (!like->is_prepared || was_join_streamed(like)))
            like = NULL;
        status =
            oj_job_prepare(&pass->job, like != NULL ? &like->job : NULL, err);
    }
    pass->is_prepared = status == OJ_OK;
    if (status != OJ_OK)
        release_sides(pass);
    return status;
}

oj_status oj_pass_prepare(struct oj_pass *pass, struct oj_error *err)
{
    OJ_TRY(prepare_job_for_reading(pass, 0, err));
    return pass->job.command->validate != NULL
               ? oj_proof_open(&pass->job, &pass->proof, err)
               : OJ_OK;
}

/* ---- the pairs of -one_to_one -------------------------------------------- */

static oj_status join_all_for_one_to_one(struct oj_pass *pass,
                                         struct oj_error *err)
{
    struct oj_job *job = &pass->job;
    const struct oj_read_options reading = oj_job_read_options(job, 0, 0);
    struct oj_pipeline_counts *counts = &pass->choice.counts;
    struct oj_read_counts read;
    OJ_TRY(open_one_to_one_choice(pass, err));
    pass->progress_share = job->command->in_place ? 0.25 : 0.5;
    OJ_TRY(stream_rows(pass, 0, &reading, counts, &read, err));
    pass->progress_start = pass->progress_share;
    job->n_pairs_joined = counts->n_pairs;
    oj_job_end_joining(job);
    OJ_TRY(oj_one_to_one_finish(pass->choice.pairs, err));
    pass->choice.is_made = 1;
    return OJ_OK;
}

/* What is joined of the input is made once more, for measures of the pairs. */
static int needs_values_of_chosen_pairs(const struct oj_pass *pass)
{
    return oj_pair_request_is_needed(&pass->rows.request);
}

/* Of all rows: filters of the pass are for those that are asked for. */
static oj_status choose_one_to_one_pairs(struct oj_pass *pass,
                                         struct oj_error *err)
{
    const struct oj_side_findings nothing = {0};
    int is_shared = pass->command != NULL;
    oj_status status;
    if (!pass->job.command->one_to_one || pass->choice.is_made)
        return OJ_OK;
    if (is_shared)
        OJ_TRY(oj_source_filter(&pass->job.input, NULL, NULL, err));
    pass->is_choosing = 1;
    status = join_all_for_one_to_one(pass, err);
    pass->is_choosing = 0;
    close_reader_and_batches(pass);
    if (needs_values_of_chosen_pairs(pass)) /* it is found once more */
        pass->job.sides.reshape[0].found = nothing;
    if (status != OJ_OK)
        close_one_to_one_choice(&pass->choice);
    return status == OJ_OK && is_shared ? set_filters(pass, err) : status;
}

oj_status oj_pass_start(struct oj_pass *pass, int marks, struct oj_error *err)
{
    int reads_join_again = marks || pass->rows.fields.has_other_rows;
    if (reads_join_again)
        OJ_TRY(hold_side_to_read_again(pass, 1, err));
    else
        oj_source_release(&pass->job.join);
    OJ_TRY(choose_one_to_one_pairs(pass, err));
    if (!pass->is_started)
        OJ_TRY(oj_rows_open(&pass->rows, err));
    pass->is_started = 1;
    if (!reads_join_again)
        return OJ_OK;
    return allocate_unmatched_bitmap(&pass->job, &pass->unmatched, err);
}

/* ---- the pipeline ------------------------------------------------------- */

static oj_status open_input_reader_on_thread(struct oj_pass *pass,
                                             struct oj_error *err)
{
    struct oj_job *job = &pass->job;
    struct oj_read_options reading;
    if (pass->command != NULL)
    {
        CPLSetThreadLocalConfigOptions((const char *const *)pass->settings);
        OJ_TRY(prepare_job_for_reading(pass, 0, err));
        OJ_TRY(oj_pass_start(pass, 0, err));
    }
    pass->has_begun = 1;
    if (was_join_streamed(pass))
        OJ_TRY(oj_aggregation_finish(pass->rows.aggregation, err));
    if (is_input_read_again(pass))
        OJ_TRY(hold_side_to_read_again(pass, 0, err));
    reading = oj_job_read_options(job, 0, !pass->pairs_only);
    return open_reader(pass, &job->input, &reading, err);
}

/* Runs on the reader thread. */
static oj_status read_batch_on_reader_thread(void *user, int slot,
                                             struct oj_flat *flat,
                                             struct oj_error *err)
{
    struct oj_pass *pass = user;
    struct oj_batch *batch = &pass->batches[slot];
    int is_join = pass->streams == OJ_STREAMS_JOIN;
    /* Nor while the join layer streams, or pairs are chosen. */
    if (!pass->has_begun && !is_join && !pass->is_choosing)
        OJ_TRY(open_input_reader_on_thread(pass, err));
    OJ_TRY(oj_layer_reader_next(pass->reader, batch, err));
    *flat = oj_flat_buf_view(&batch->flat);
    flat->n_features = batch->n_rows;
    if (pass->choice.pairs != NULL)
        hash_batch(&pass->choice.seen[pass->choice.is_made], flat,
                   batch->first_row);
    if (batch->n_rows == 0 || pass->streams == OJ_STREAMS_AS_READ ||
        (pass->choice.is_made && !needs_values_of_chosen_pairs(pass)))
        return OJ_OK;
    return oj_job_make_flat(&pass->job, is_join, 0, batch,
                            &pass->batch_work[slot], flat, err);
}

/* What the calling thread gives to those of the pipeline. */
static oj_status copy_config_and_set_filters(struct oj_pass *pass,
                                             struct oj_error *err)
{
    WORK_ON(pass);
    if (pass->command == NULL)
        return OJ_OK;
    CSLDestroy(pass->settings);
    pass->settings = CPLGetThreadLocalConfigOptions();
    return set_filters(pass, err);
}

static oj_status start_input_pipeline(struct oj_pass *pass,
                                      struct oj_error *err)
{
    struct oj_pipeline_work work = make_pipeline_callbacks(pass);
    int streams =
        pass->is_prepared ? was_join_streamed(pass) : pass->rows.streams_join;
    if (!streams) /* else they were bounded when they were added up */
        work.max_pairs = pass->job.command->max_pairs;
    OJ_TRY(copy_config_and_set_filters(pass, err));
    pass->has_begun = 0;
    OJ_TRY(oj_pipeline_open(&work, &pass->pipeline, err));
    pass->is_running = 1;
    return OJ_OK;
}

/* At the end, and before it: its threads end, and nothing reads. */
static oj_status close_pipeline(struct oj_pass *pass, oj_status status,
                                struct oj_error *err)
{
    struct oj_job *job = &pass->job;
    __atomic_store_n(&pass->cancel, 1, __ATOMIC_RELAXED);
    oj_job_stop(job);
    status = oj_pipeline_close(pass->pipeline, status, &job->counts, err);
    pass->pipeline = NULL;
    if (job->counts.n_pairs_again > 0)
        CPLDebug("OGRJOIN", "about %lld pairs were found and thrown away",
                 (long long)job->counts.n_pairs_again);
    __atomic_store_n(&pass->cancel, 0, __ATOMIC_RELAXED);
    return status;
}

/* OJ_ERR_DATA where rows are missing. */
static oj_status check_input_unchanged(struct oj_pass *pass, oj_status status,
                                       struct oj_error *err)
{
    struct oj_job *job = &pass->job;
    if (was_join_streamed(pass))
    {
        job->counts.join_s = pass->join_s;
        if (status == OJ_OK &&
            job->counts.n_rows != pass->held_input.flat.n_features)
            return fail_changed(&job->input, "changed while it was read", err);
    }
    if (pass->choice.is_made)
    {
        job->counts.read_s += pass->choice.counts.read_s;
        job->counts.join_s +=
            pass->choice.counts.join_s + pass->choice.counts.write_s;
        if (status == OJ_OK && !pass->choice.by_fid &&
            pass->choice.seen[0] != pass->choice.seen[1])
            return fail_changed(&job->input,
                                "has other rows, or another order, when it is "
                                "read again for the pairs of -one_to_one",
                                err);
    }
    if (status == OJ_OK && is_input_read_again(pass))
        status = check_read_again_unchanged(pass, 0, err);
    if (pass->reader != NULL)
        job->input_counts = *oj_layer_reader_counts(pass->reader);
    if (status != OJ_OK)
        return oj_message_add_reason(status, err);
    return oj_source_check_count(&job->input, job->command->limit,
                                 job->input_counts.n_rows, err);
}

/* After the last answer, or an error. */
static oj_status close_input(struct oj_pass *pass, oj_status status,
                             struct oj_error *err)
{
    if (pass->pipeline == NULL)
        return status;
    status = close_pipeline(pass, status, err);
    if (pass->has_begun)
        status = check_input_unchanged(pass, status, err);
    close_reader_and_batches(pass);
    return status;
}

/* ---- answers ------------------------------------------------------------ */

/* Of aggregates, one row per input row. */
static oj_status make_aggregate_answer(struct oj_pass *pass,
                                       struct oj_answer *answer,
                                       struct oj_error *err)
{
    struct oj_aggregation *aggregation = pass->rows.aggregation;
    const struct oj_pair_values *values = answer->values;
    answer->values = NULL;
    if (!was_join_streamed(pass))
        return oj_aggregation_answer(aggregation, answer->pairs, &answer->side,
                                     values, &answer->matches, err);
    oj_aggregation_set_first_row(aggregation,
                                 answer->batch->first_row + answer->first_row);
    return OJ_OK;
}

static oj_status make_answer(struct oj_pass *pass,
                             const struct oj_pipeline_part *part,
                             const struct oj_matches *pairs,
                             struct oj_answer *answer, struct oj_error *err)
{
    const struct oj_answer empty = {0};
    *answer = empty;
    answer->part = part;
    answer->pairs = answer->matches = pairs;
    answer->side = oj_job_answer_side(&pass->job, part->answer);
    answer->batch = &pass->batches[part->slot];
    answer->first_row = part->first_row;
    if (pass->rows.stage != NULL)
        answer->values = &pass->rows.values[part->answer];
    answer->join_side = answer->side.ordinal == NULL ? &pass->rows.join_as_read
                                                     : &answer->side.flat;
    answer->join_table = answer->side.table;
    mark_matched_join_rows(&pass->unmatched, pairs, &answer->side);
    return pass->rows.aggregation == NULL || pass->pairs_only
               ? OJ_OK
               : make_aggregate_answer(pass, answer, err);
}

static oj_status next_unmatched_answer(struct oj_pass *pass,
                                       const struct oj_answer **answer,
                                       struct oj_error *err)
{
    const struct oj_answer empty = {0};
    const struct oj_unmatched *unmatched = &pass->unmatched;
    int there;
    if (pass->pairs_only || unmatched->matched == NULL)
        return OJ_OK;
    OJ_TRY(read_next_unmatched_batch(pass, &there, err));
    if (!there)
        return OJ_OK;
    pass->answer = empty;
    pass->answer.batch = &pass->batches[0];
    pass->answer.is_matched = unmatched->is_matched;
    pass->answer.matches = &unmatched->matches;
    pass->answer.join_side = &pass->rows.join_as_read;
    pass->answer.join_table = pass->job.join_side->table;
    *answer = &pass->answer;
    return OJ_OK;
}

static oj_status next_answer(struct oj_pass *pass,
                             const struct oj_answer **answer,
                             struct oj_error *err)
{
    const struct oj_pipeline_part *part;
    const struct oj_matches *pairs;
    if (!pass->is_running)
        OJ_TRY(start_input_pipeline(pass, err));
    if (pass->pipeline == NULL)
        return next_unmatched_answer(pass, answer, err);
    OJ_TRY(oj_pipeline_next(pass->pipeline, &part, &pairs, err));
    if (part == NULL)
    {
        OJ_TRY(close_input(pass, OJ_OK, err));
        return next_unmatched_answer(pass, answer, err);
    }
    OJ_TRY(make_answer(pass, part, pairs, &pass->answer, err));
    *answer = &pass->answer;
    return pass->choice.is_made ? OJ_OK : validate_answer(pass, *answer, err);
}

oj_status oj_pass_next(struct oj_pass *pass, const struct oj_answer **answer,
                       struct oj_error *err)
{
    WORK_ON(pass);
    *answer = NULL;
    OJ_TRY(next_answer(pass, answer, err));
    if (*answer == NULL && pass->command != NULL && !pass->pairs_only)
    {
        oj_rows_warn(&pass->rows);
        oj_summary_warn_of_reading(&pass->job);
    }
    return OJ_OK;
}

oj_status oj_pass_stop(struct oj_pass *pass, oj_status status,
                       struct oj_error *err)
{
    WORK_ON(pass);
    pass->is_broken |= status != OJ_OK;
    if (!pass->is_running)
        return status;
    if (status != OJ_OK)
        status = close_input(pass, status, err);
    else if (pass->pipeline != NULL)
        (void)!close_pipeline(pass, OJ_OK, NULL);
    close_reader_and_batches(pass);
    release_sides(pass);
    pass->is_running = 0;
    pass->is_broken |= !pass->is_started; /* its join side was being made */
    return status;
}

/* ---- counts ------------------------------------------------------------- */

static int64_t count_output_rows(enum oj_how how,
                                 const struct oj_matches *entries)
{
    int64_t n = 0;
    for (int64_t i = 0; i < entries->n_rows; i++)
    {
        int64_t n_pairs =
            oj_matches_end(entries, i) - oj_matches_first(entries, i);
        if (how == OJ_HOW_SEMI || how == OJ_HOW_ANTI)
            n += (n_pairs > 0) == (how == OJ_HOW_SEMI);
        else
            n += n_pairs > 0 || how == OJ_HOW_INNER ? n_pairs : 1;
    }
    return n;
}

/* A row of aggregates stands for all pairs. */
static int64_t count_output_rows_of_answer(const struct oj_pass *pass,
                                           const struct oj_answer *answer)
{
    const struct oj_matches *entries =
        oj_pair_values_matches(answer->values, answer->pairs);
    enum oj_how how = pass->rows.how;
    if (pass->rows.aggregation == NULL)
        return count_output_rows(how, entries);
    return how == OJ_HOW_INNER ? count_output_rows(OJ_HOW_SEMI, entries)
                               : entries->n_rows;
}

oj_status oj_pass_count(struct oj_pass *pass, int64_t *n, struct oj_error *err)
{
    const struct oj_answer *answer = NULL;
    int64_t n_rows = 0;
    oj_status status;
    pass->pairs_only = 1;
    do
    {
        status = oj_pass_next(pass, &answer, err);
        if (status == OJ_OK && answer != NULL)
            n_rows += count_output_rows_of_answer(pass, answer);
    } while (status == OJ_OK && answer != NULL);
    status = oj_pass_stop(pass, status, err);
    pass->pairs_only = 0;
    if (status == OJ_OK)
        *n = n_rows + count_unmatched(&pass->unmatched);
    return status;
}

/* ---- what the input layer knows ------------------------------------------ */

oj_status oj_pass_ask_input(struct oj_pass *pass, int force, int64_t *n,
                            OGREnvelope *extent, struct oj_error *err)
{
    const struct oj_source *input = &pass->job.input;
    int64_t limit = pass->job.command->limit;
    WORK_ON(pass);
    OJ_TRY(set_filters(pass, err));
    if (extent != NULL)
    {
        *n = OGR_L_GetExtent(input->layer, extent, force) == OGRERR_NONE;
        oj_ogr_errors_clear_harmless();
        return OJ_OK;
    }
    *n = oj_source_count(input, limit);
    if (*n < 0 && force)
        *n = OGR_L_GetFeatureCount(input->layer, 1);
    oj_ogr_errors_clear_harmless();
    if (limit >= 0 && *n > limit)
        *n = limit;
    return OJ_OK;
}

/* ---- single rows -------------------------------------------------------- */

/* Of the input, into batch 0: by the filters on the layer, which let through
 * this row at most, or by random access. */
static oj_status read_input_row_by_fid(struct oj_pass *pass, int64_t fid,
                                       struct oj_error *err)
{
    struct oj_job *job = &pass->job;
    struct oj_batch *batch = &pass->batches[0];
    struct oj_read_options reading = oj_job_read_options(job, 0, 1);
    int is_filtered = oj_source_is_filtered(&job->input);
    reading.limit = -1;
    reading.use_arrow = 0;
    reading.batch_rows = 1;
    reading.all_rows_filter = NULL; /* would replace that of the FID */
    if (is_filtered)
    {
        OJ_TRY(oj_source_filter_fid(&job->input, fid, err));
        close_reader_and_batches(pass); /* of the last row */
    }
    if (pass->reader == NULL)
        OJ_TRY(oj_layer_reader_open(job->input.layer, &reading, &pass->reader,
                                    err));
    if (!is_filtered)
        return oj_layer_reader_get(pass->reader, fid, batch, err);
    OJ_TRY(oj_layer_reader_next(pass->reader, batch, err));
    if (batch->n_rows > 0 && batch->flat.fid[0] != fid)
        batch->n_rows = 0;
    return OJ_OK;
}

oj_status oj_pass_one(struct oj_pass *pass, int64_t *fid,
                      struct oj_answer *answer, int *there,
                      struct oj_error *err)
{
    struct oj_pipeline_part part = {0};
    struct oj_flat flat;
    int64_t feature;
    oj_status status;
    WORK_ON(pass);
    part.flat = &flat;
    *there = 0;
    pass->is_broken = 1;
    OJ_TRY(prepare_job_for_reading(pass, 1, err));
    status = oj_pass_start(pass, 0, err);
    if (!pass->is_running) /* single rows are read once */
        release_sides(pass);
    OJ_TRY(status);
    feature = oj_row_cursor_unspread(*fid, oj_pass_most_rows(pass), fid);
    status = read_input_row_by_fid(pass, feature, err);
    if (status != OJ_OK)
        return oj_message_add_reason(status, err);
    *there = pass->batches[0].n_rows > 0;
    if (*there)
    {
        OJ_TRY(oj_job_make_flat(&pass->job, 0, 0, &pass->batches[0],
                                &pass->batch_work[0], &flat, err));
        OJ_TRY(join_rows_on_pipeline_thread(pass, &part, &pass->one, err));
        OJ_TRY(make_answer(pass, &part, &pass->one, answer, err));
        answer->part = NULL; /* it ends here */
    }
    pass->is_broken = 0;
    return OJ_OK;
}

/* ---- the end ------------------------------------------------------------ */

void oj_pass_end_progress(struct oj_pass *pass)
{
    if (pass->progress_open)
    {
        GDALTermProgress(1.0, NULL, NULL);
        fflush(stdout); /* before the summary, also where both go to a file */
    }
    pass->progress_open = 0;
}

void oj_pass_close(struct oj_pass *pass)
{
    const struct oj_pass closed = {0};
    struct oj_error ignored;
    /* An error is reported on a line of its own. */
    if (pass->progress_open)
        printf("\n");
    (void)!oj_pass_stop(pass, OJ_OK, &ignored);
    oj_proof_close(pass->proof);
    close_sides(pass);
    CSLDestroy(pass->fields[0]);
    CSLDestroy(pass->fields[1]);
    CSLDestroy(pass->settings);
    *pass = closed;
}
