#include "oj_run.h"

#include "../../flatten/read/oj_attribute_table.h"
#include "../../flatten/read/oj_layer_read.h"
#include "../base/oj_cancel.h"
#include "../base/oj_message.h"
#include "../base/oj_shell_words.h"
#include "../command/oj_option_table.h"
#include "../command/oj_parsed_command.h"

#include <cpl_string.h>

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum
{
    /* maximum number of rows of the join side that are read */
    MOST_JOIN_ROWS = 500000,
    SAMPLE_ROWS = 20000 /* number of input rows that are read */
};

struct explanation
{
    struct oj_command_run *run;
    struct oj_job *job; /* the job of `run` */
    /* numbers of rows; -1 if the number is not known before the layer is read
     */
    int64_t n_input, n_join;
    /* 1 if only the first rows of the join side were read */
    int is_part;
    struct oj_flat sample; /* the first rows of the input, and their answer */
    struct oj_matches *matches;
    /* the error with which a run would stop because the output exists and no
     * option allows changing it */
    struct oj_error missing;
};

static void print_line(const char *key, const char *format, ...)
    OJ_PRINTF(2, 3);

static void print_line(const char *key, const char *format, ...)
{
    va_list list;
    printf("%-12s ", key);
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    printf("\n");
}

/* ---- sides and options --------------------------------------------------- */

static void print_side(const char *key, const struct oj_source *source,
                       int64_t n)
{
    const struct oj_source_options *side = source->side;
    const char *crs = oj_crs_describe(source->srs);
    print_line(key, "%s, %s '%s': %s, %s, CRS %s%s%s", side->dataset,
               source->is_result_set ? "SELECT" : "layer", source->name,
               OGRGeometryTypeToName(source->type),
               n < 0 ? "a number of rows that is not known beforehand"
                     : oj_message_count_and_noun(n, "row", "rows"),
               crs, side->where != NULL ? ", filtered by: " : "",
               side->where != NULL ? side->where : "");
    if (source->n_hidden > 0)
        print_line("", "%s read for the join and not written",
                   oj_message_count_and_noun(source->n_hidden, "field is",
                                             "fields are"));
}

static void print_distances(const struct oj_job *job)
{
    const struct oj_command *command = job->command;
    const struct oj_relation *relation = &job->relation;
    const char *unit = job->crs.unit[0] != '\0' ? job->crs.unit : "unit";
    if (command->max_distance_field != NULL ||
        command->join_max_distance_field != NULL)
        print_line("distance", "up to the value of the %s layer's field %s",
                   command->max_distance_field != NULL ? "input" : "join",
                   command->max_distance_field != NULL
                       ? command->max_distance_field
                       : command->join_max_distance_field);
    else if (isinf(relation->max_distance))
        print_line("distance", "unbounded");
    else
        print_line("distance", "up to %.10g %s", relation->max_distance, unit);
    if (relation->min_distance > 0)
        print_line("", "at least %.10g %s", relation->min_distance, unit);
    if (relation->densify > 0)
        print_line("", "no segment longer than %.10g %s", relation->densify,
                   unit);
}

/* Prints the parameters of the join except distances, which are printed
 * elsewhere. */
static void print_parameters(const struct oj_relation *relation)
{
    const char *op = oj_op_get(relation->op)->name;
    const struct oj_parameter *parameter;
    char text[512] = "", value[64];
    for (int i = 0; (parameter = oj_parameter_at(i)) != NULL; i++)
    {
        if (parameter->kind == OJ_PARAMETER_DISTANCE ||
            oj_words_find(parameter->ops, op) < 0 ||
            (relation->k == OJ_EVERY_PAIR &&
             parameter->offset == offsetof(struct oj_relation, k)))
            continue;
        oj_parameter_write_value(parameter, relation, value, sizeof value);
        oj_message_append(text, sizeof text, "%s-%s %s",
                          text[0] != '\0' ? ", " : "", parameter->name, value);
    }
    if (text[0] != '\0')
        print_line("parameters", "%s", text);
}

static const char *choice_word_of_option(const char *option, int value)
{
    return oj_option_choice_word(oj_option_at(oj_option_find(option)), value);
}

static void print_similar(const struct oj_command *command,
                          const struct oj_relation *relation, int i)
{
    const struct oj_text_condition *condition = &relation->similar[i];
    double least =
        (double)condition->numerator / (double)condition->denominator;
    print_line("only where", "texts are similar: %s, %s of %s, %s",
               command->similar[i],
               choice_word_of_option("measure", (int)condition->measure),
               choice_word_of_option("tokens", command->tokens),
               least > 0.0 ? CPLSPrintf("%.9g or more", least)
                           : "any token in common");
}

static void print_vector(const struct oj_command *command,
                         const struct oj_vector_condition *condition)
{
    print_line("only where", "vectors are near: %s, %s%s", command->vector,
               choice_word_of_option("norm", (int)condition->norm),
               isinf(condition->max_difference)
                   ? ""
                   : CPLSPrintf(", %.9g or less", condition->max_difference));
}

static void print_conditions(const struct oj_job *job)
{
    const struct oj_command *command = job->command;
    static const char *const shapes[] = {
        "", "the centroids", "points on the surface", "the envelopes"};
    static const char *const invalid[] = {"taken as they are", "skipped",
                                          "made valid for the join",
                                          "an error at the first"};
    if (command->on != NULL)
        print_line("only where", "fields are equal: %s", command->on);
    if (command->within_time != NULL)
        print_line("only where", "times are near: %s", command->within_time);
    if (command->heading != NULL)
        print_line(
            "only where", "segments fit the heading: %s%s", command->heading,
            command->relation.heading.both_ways ? ", or its reverse" : "");
    if (command->during != NULL)
        print_line("only where", "spans are related: %s", command->during);
    for (int i = 0; i < job->relation.n_similar; i++)
        print_similar(command, &job->relation, i);
    if (job->relation.vector.is_asked)
        print_vector(command, &job->relation.vector);
    if (job->relation.exclude_self)
        print_line("left out", "a feature and itself%s",
                   job->sides.is_self_join ? " (both sides are one layer)"
                                           : "");
    if (job->relation.unordered_pairs)
        print_line("left out", "pairs whose input FID is not the smaller one");
    if (job->relation.exclude_same_geometry)
        print_line("left out", "pairs of equal geometries");
    for (const char **word = command->exclude; word != NULL && *word != NULL;
         word++)
    {
        if (strchr(*word, '=') != NULL)
            print_line("left out", "pairs that are equal in: %s",
                       strchr(*word, '=') + 1);
    }
    for (int side = 0; side < 2; side++)
    {
        if (job->sides.reshape[side].shape != OJ_SHAPE_AS_READ)
            print_line("joined are", "%s of the %s layer",
                       shapes[job->sides.reshape[side].shape],
                       job->sides.reshape[side].role);
    }
    if (command->invalid != OJ_INVALID_USE)
        print_line("invalid", "polygons are %s", invalid[command->invalid]);
}

static void print_join_and_conditions(const struct explanation *e)
{
    const struct oj_job *job = e->job;
    const struct oj_command *command = job->command;
    const struct oj_op_info *op = oj_op_get(job->relation.op);
    print_line("join", "%s: %s", oj_command_op_name(command),
               command->is_window
                   ? "the input feature has a point in common with a "
                     "box"
                   : op->description);
    print_parameters(&job->relation);
    if ((op->takes & OJ_TAKES_DISTANCE) != 0 ||
        oj_command_has_option(command, "max_distance"))
        print_distances(job);
    print_conditions(job);
    print_side("input side", &job->input, e->n_input);
    print_side("join side", &job->join, e->n_join);
    print_line(
        "joined in", "%s%s%s%s", oj_crs_describe(job->crs.join),
        job->input.transformation != NULL ? "; the input is reprojected" : "",
        job->join.transformation != NULL ? "; the join side is reprojected"
                                         : "",
        job->crs.join != NULL && OSRIsGeographic(job->crs.join) &&
                command->relation.metric == OJ_METRIC_PLANAR
            ? "; degrees are taken as a plane"
            : "");
}

/* ---- the sample ---------------------------------------------------------- */

/* Reads the join side, or only its first rows if it is too large. */
static oj_status read_join_side_or_first_rows(struct explanation *e,
                                              struct oj_error *err)
{
    struct oj_job *job = e->job;
    job->most_join_rows = MOST_JOIN_ROWS;
    OJ_TRY(oj_job_read_side(job, 1, 1, job->join_side, NULL, err));
    e->is_part = e->n_join < 0 ? job->join_side->counts.n_rows == MOST_JOIN_ROWS
                               : e->n_join > MOST_JOIN_ROWS;
    return OJ_OK;
}

/* Reads the first rows of the input, in one batch. */
static oj_status read_first_input_rows(struct explanation *e,
                                       struct oj_error *err)
{
    struct oj_job *job = e->job;
    struct oj_pass *pass = &e->run->pass;
    struct oj_read_options reading = oj_job_read_options(job, 0, 0);
    reading.batch_rows = SAMPLE_ROWS;
    if (reading.limit < 0 || reading.limit > SAMPLE_ROWS)
        reading.limit = SAMPLE_ROWS;
    OJ_TRY(
        oj_layer_reader_open(job->input.layer, &reading, &pass->reader, err));
    OJ_TRY(oj_layer_reader_next(pass->reader, &pass->batches[0], err));
    return oj_job_preprocess_batch(job, 0, 0, &pass->batches[0],
                                   &pass->batch_work[0], &e->sample, err);
}

static oj_status join_rows_of_sample(void *user, const struct oj_flat *rows,
                                     struct oj_matches *out,
                                     struct oj_error *err)
{
    return oj_join_batch(user, rows, out, err);
}

/* Joins the sample; if that has too many pairs, only its first rows. */
static oj_status join_sample(struct explanation *e, struct oj_error *err)
{
    struct oj_batch_parts parts = {
        .max_pairs = oj_job_options(e->job->command).max_batch_pairs};
    struct oj_flat_slice slice = {0};
    int64_t n = 0;
    oj_status status =
        oj_batch_parts_join(&parts, &e->sample, 0, &slice, join_rows_of_sample,
                            e->job->join_side->engine, e->matches, &n, err);
    e->sample.n_features = n;
    oj_flat_slice_free(&slice);
    oj_batch_parts_free(&parts);
    return status;
}

static oj_status read_and_join_sample(struct explanation *e,
                                      struct oj_error *err)
{
    OJ_TRY(read_join_side_or_first_rows(e, err));
    OJ_TRY(oj_job_open_engine(e->job, oj_cancel_flag(), err));
    OJ_TRY(read_first_input_rows(e, err));
    if (e->sample.n_features == 0)
        return OJ_OK;
    return join_sample(e, err);
}

/* ---- results ------------------------------------------------------------- */

static const char *format_bytes(double bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    int i = 0;
    for (; bytes >= 1000.0 && i < 4; i++)
        bytes /= 1000.0;
    return CPLSPrintf("%.*f %s", i > 0, bytes, units[i]);
}

/* Returns the bytes of coordinates and offsets of a layer. Points in the short
 * form have no parts and rings. */
static double coordinate_bytes(const struct oj_flat *flat)
{
    double bytes = 16.0 * (double)flat->n_vertices +
                   8.0 * (double)flat->n_features; /* FIDs */
    if (!oj_flat_is_points(flat))
        bytes += 8.0 * (double)(flat->n_features + flat->n_rings) +
                 9.0 * (double)flat->n_parts;
    return bytes;
}

/* Returns 1 if the exchanged join would aggregate the sample on a GPU without
 * returning pairs. */
static int aggregates_on_gpu(const struct explanation *e)
{
    const struct oj_job *job = e->job;
    struct oj_options options = oj_job_options(job->command);
    struct oj_relation exchanged = oj_relation_transpose(&job->relation);
    struct oj_join *join = NULL;
    struct oj_error ignored;
    int yes = 0;
    if (!e->run->pass.rows.streams_join ||
        !oj_aggregation_needs_only_sums(e->run->pass.rows.aggregation))
        return 0;
    options.n_expected = e->n_join > 0 ? e->n_join : 0;
    if (oj_join_open(&e->sample, &exchanged, job->command->backend, &options,
                     &join, &ignored) == OJ_OK)
        yes = oj_join_should_sum_pairs(join, &job->join_side->flat);
    oj_join_close(join);
    return yes;
}

static void print_aggregation(const struct explanation *e)
{
    print_line("aggregates",
               e->run->pass.rows.streams_join
                   ? "the join layer, the larger side, streams past "
                     "the input layer, which is held with its index "
                     "and read again for the output"
                   : "the input layer streams past the join layer, "
                     "which is held with its index");
    if (aggregates_on_gpu(e))
        print_line("", "the GPU adds up pairs, without a list of them");
}

static void print_memory(const struct explanation *e)
{
    const struct oj_join_side *side = e->job->join_side;
    const struct oj_stats *stats = oj_join_stats(side->engine);
    int64_t n = side->flat.n_features;
    double scale = e->is_part && e->n_join > n && n > 0
                       ? (double)e->n_join / (double)n
                       : 1.0;
    print_line("memory", "%s: %s of coordinates, %s of index%s%s",
               scale > 1.0 ? "join side, estimated from its first rows"
                           : "join side",
               format_bytes(scale * coordinate_bytes(&side->flat)),
               format_bytes(scale * (double)stats->index_bytes),
               side->table != NULL ? ", attributes " : "",
               side->table != NULL
                   ? format_bytes(scale * (double)oj_table_bytes(side->table))
                   : "");
    if (e->is_part)
        print_line("",
                   "only its first %lld features were read for this estimate",
                   (long long)n);
    if (e->job->command->memory > 0)
        print_line(
            "",
            "-memory bounds this to %s; a larger join side is split into "
            "tiles on disk",
            format_bytes((double)e->job->command->memory));
}

static void print_engine(const struct explanation *e)
{
    const struct oj_join *engine = e->job->join_side->engine;
    const char *method =
        oj_join_method(engine, e->sample.n_features > 0 ? &e->sample : NULL);
    print_line("backend", "%s (%s), %s", oj_join_backend(engine)->name,
               e->run->pass.rows.streams_join ? "sides exchanged" : method,
               oj_message_count_and_noun(oj_join_threads(engine), "thread",
                                         "threads"));
    if (oj_join_reason_for_backend(engine)[0] != '\0')
        print_line("", "%s", oj_join_reason_for_backend(engine));
    if (oj_join_stats(engine)->choice[0] != '\0')
        print_line("", "%s", oj_join_stats(engine)->choice);
    if (e->run->pass.rows.aggregation != NULL)
        print_aggregation(e);
    if (!e->run->pass.rows.streams_join)
        print_memory(e);
}

static void print_estimate_from_sample(const struct explanation *e)
{
    const struct oj_stats *stats = oj_join_stats(e->job->join_side->engine);
    const struct oj_matches *matches = e->matches;
    int64_t n = e->sample.n_features;
    int is_all = n == e->n_input;
    const char *candidates;
    if (n == 0)
    {
        print_line("sample", "the input has no rows");
        return;
    }
    candidates = CPLSPrintf("%.3g", (double)stats->n_candidates / (double)n);
    print_line("sample",
               "of %s %lld input %s %lld %s, with %s (%.3g per row); %s %s per "
               "row %s looked at",
               is_all ? "all" : "the first", (long long)n,
               oj_word_one_or_many(n, "row", "rows"),
               (long long)matches->n_matched,
               oj_word_one_or_many(matches->n_matched, "matches", "match"),
               oj_message_count_and_noun(matches->n_pairs, "pair", "pairs"),
               (double)matches->n_pairs / (double)n, candidates,
               strcmp(candidates, "1") == 0 ? "candidate" : "candidates",
               strcmp(candidates, "1") == 0 ? "was" : "were");
    if (e->n_input > 0 && !is_all && !e->is_part)
        print_line("expected",
                   "about %.3g pairs in all, if the other rows are like these",
                   (double)matches->n_pairs / (double)n * (double)e->n_input);
}

static const char *text_of_reading_method(const char *lane)
{
    return lane != NULL ? CPLSPrintf("lane %s", lane) : "features of GDAL";
}

/* Prints the lanes by which the rows are read. */
static void print_reading_methods(const struct explanation *e)
{
    const struct oj_layer_reader *reader = e->run->pass.reader;
    print_line("read by", "input: %s",
               text_of_reading_method(oj_layer_reader_counts(reader)->lane));
    print_line("", "join: %s",
               text_of_reading_method(e->job->join_side->counts.lane));
}

static void print_output(const struct explanation *e)
{
    static const char *const kept[] = {
        "every input row, matched or not",
        "input rows that match",
        "input rows that match, once each, without the join's columns",
        "input rows that match nothing",
        "input rows that match, then join rows that match nothing",
        "every input row, then join rows that match nothing"};
    const struct oj_command *command = e->job->command;
    const struct oj_output_layer *layer = &e->run->output.layers[0];
    print_line("rows", "%s%s%s%s%s%s", kept[command->how],
               command->one_to_one == NULL ? ""
               : strcasecmp(command->one_to_one, "best") == 0
                   ? "; one to one, most pairs of least sum"
                   : "; one to one, best pairs first",
               command->pick != NULL ? "; one per input row: " : "",
               command->pick != NULL ? command->pick : "",
               command->aggregates != NULL ? "; one per input row, with " : "",
               command->aggregates != NULL ? command->aggregates : "");
    if (command->one_to_one != NULL)
        print_line("",
                   "the input is read twice: for all pairs, then for the rows");
    if (command->in_place)
        print_line("output", "columns of the input layer itself");
    else
        print_line("output", "%s layer '%s' in %s%s",
                   GDALGetDescription(e->run->output.driver), layer->name,
                   command->output.dst,
                   layer->appends                  ? ", rows added"
                   : e->missing.message[0] != '\0' ? ""
                   : layer->replaces ? ", which replaces what is there"
                                     : "");
    if (e->missing.message[0] != '\0')
        print_line("", "a run would stop: %s", e->missing.message);
    if (!command->in_place)
        print_line("written by", "%s",
                   text_of_reading_method(oj_output_lane(&e->run->output)));
    print_line("", "nothing was written");
}

/* Plans the output. If the run would fail only because -overwrite, -append or
 * -update is missing, keeps that error, to print it as a line of the
 * explanation. */
static oj_status plan_output(struct explanation *e, struct oj_error *err)
{
    const struct oj_output_options *asked = &e->job->command->output;
    oj_status status = oj_run_plan_output(e->run, err);
    struct oj_error with_overwrite = {OJ_OK, ""};
    if (status != OJ_ERR_ARG || asked->overwrite || asked->append ||
        oj_run_plan_output_with_overwrite(e->run, &with_overwrite) != OJ_OK)
        return status;
    e->missing = *err;
    return OJ_OK;
}

oj_status oj_explain_run(struct oj_command_run *run, struct oj_error *err)
{
    const struct oj_command *command = run->command;
    struct oj_job *job = &run->pass.job;
    struct explanation e = {.run = run, .job = job, .matches = &run->pass.one};
    if (command->output.dst != NULL)
        OJ_TRY(plan_output(&e, err));
    e.n_input = oj_source_count(&job->input, command->limit);
    e.n_join = oj_source_count(&job->join, -1);
    print_join_and_conditions(&e);
    fflush(stdout);
    OJ_TRY(read_and_join_sample(&e, err));
    print_engine(&e);
    print_estimate_from_sample(&e);
    print_reading_methods(&e);
    print_output(&e);
    fflush(stdout); /* flushed before the next messages on stderr */
    job->input_counts = *oj_layer_reader_counts(run->pass.reader);
    oj_summary_warn_of_reading(job);
    return OJ_OK;
}
