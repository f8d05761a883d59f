#include "oj_summary.h"

#include "../../flatten/base/oj_clock.h"
#include "../base/oj_gdal_driver.h"
#include "../base/oj_message.h"
#include "../command/oj_parsed_command.h"
#include "../files/oj_text_file_write.h"

#include <cpl_string.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* room for all reasons, with numbers of 19 digits */
#define SKIPPED_SIZE 512

/* A reason why features match nothing, and the number of such features. */
struct reason
{
    int64_t n;
    const char *words; /* text in the summary */
    const char *key;   /* key in JSON */
};

enum
{
    N_REASONS = 10
};

static int64_t count_rows_without_span(const struct oj_missing_values *missing)
{
    int64_t n = 0;
    for (int i = 0; i < OJ_MOST_SPANS; i++)
        n += missing->n_no_span[i];
    return n;
}

static void fill_skip_reasons(const struct oj_job *job, int side,
                              struct reason reasons[N_REASONS])
{
    const struct oj_read_counts *counts =
        side == 0 ? &job->input_counts : &job->join_side->counts;
    const struct oj_reshape *reshape = &job->sides.reshape[side];
    const struct reason all[N_REASONS] = {
        {counts->shapes.n_null, "without geometry", "null"},
        {counts->shapes.n_empty, "empty", "empty"},
        {counts->shapes.n_not_finite,
         "with a coordinate that is not finite or beyond 1e150", "not_finite"},
        {counts->n_not_transformed, "that could not be reprojected",
         "not_reprojected"},
        {reshape->invalid == OJ_INVALID_SKIP ? reshape->found.n_invalid
                                             : reshape->found.n_not_fixed,
         "not valid", "invalid"},
        {reshape->found.n_no_point, "without such a point", "no_point"},
        {reshape->found.n_beyond_poles, "with a latitude beyond 90",
         "beyond_poles"},
        {reshape->found.missing.n_no_text, "without text", "no_text"},
        {reshape->found.missing.n_no_vector, "without vector", "no_vector"},
        {count_rows_without_span(&reshape->found.missing),
         "without a time that is compared", "no_time"},
    };
    memcpy(reasons, all, sizeof all);
    if (!oj_command_needs_shapes(
            /* features without geometry match by their attributes */
            job->command))
        reasons[0].n = reasons[1].n = reasons[2].n = 0;
}

/* Writes `before` and "3 skipped (2 without geometry, 1 empty)" to text, or ""
 * if no feature is skipped. */
static void format_skipped_counts(const struct oj_job *job, int side,
                                  const char *before, char *text, size_t size)
{
    struct reason reasons[N_REASONS];
    const char *separator = "";
    int64_t n = 0;
    fill_skip_reasons(job, side, reasons);
    for (int i = 0; i < N_REASONS; i++)
        n += reasons[i].n;
    text[0] = '\0';
    if (n == 0)
        return;
    oj_message_append(text, size, "%s%lld skipped (", before, (long long)n);
    for (int i = 0; i < N_REASONS; i++)
    {
        if (reasons[i].n == 0)
            continue;
        oj_message_append(text, size, "%s%lld %s", separator,
                          (long long)reasons[i].n, reasons[i].words);
        separator = ", ";
    }
    oj_message_append(text, size, ")");
}

/* Warns of texts that are not UTF-8. Like ogr2ogr, ogrjoin copies them
 * unchanged, unless OGR recodes them. */
static void warn_of_bad_texts(const struct oj_source *source, int64_t n)
{
    GDALDriverH driver = GDALGetDatasetDriver(source->dataset);
    if (n == 0)
        return;
    oj_warn(
        "%s layer '%s': %s not UTF-8, and compared and written as %s; %s",
        source->role, source->name,
        oj_message_count_and_noun(n, "text value is", "text values are"),
        oj_word_one_or_many(n, "it is", "they are"),
        oj_driver_has_open_option(driver, "ENCODING")
            ? CPLSPrintf(
                  "name its encoding, for example with -%s ENCODING=ISO-8859-1",
                  source->role[0] == 'i' ? "oo" : "joo")
            : "recode the file first, for example with iconv -f ISO-8859-1 -t "
              "UTF-8");
}

static void warn_of_antimeridian(const struct oj_source *source,
                                 const struct oj_read_counts *counts)
{
    if (counts->n_cut > 0)
        oj_notice("%s layer '%s': %s the antimeridian of the CRS of the join, "
                  "and %s cut there",
                  source->role, source->name,
                  oj_message_count_and_noun(counts->n_cut, "feature crosses",
                                            "features cross"),
                  oj_word_one_or_many(counts->n_cut, "was", "were"));
    if (counts->n_torn > 0)
        oj_warn("%s layer '%s': %s the antimeridian of the CRS of the join and "
                "cannot be cut there, so that the reprojection tears %s: cut "
                "%s before, for example with ogr2ogr -wrapdateline -makevalid, "
                "or join "
                "with -metric sphere",
                source->role, source->name,
                oj_message_count_and_noun(counts->n_torn, "feature crosses",
                                          "features cross"),
                oj_word_one_or_many(counts->n_torn, "it", "them"),
                oj_word_one_or_many(counts->n_torn, "it", "them"));
    if (counts->n_wide > 0)
        oj_warn("%s layer '%s': %s from 350 to 360 degrees wide, as when a "
                "shape across the antimeridian is taken the other way around "
                "the Earth; -metric sphere takes the short way, ogr2ogr "
                "-wrapdateline cuts such shapes",
                source->role, source->name,
                oj_message_count_and_noun(counts->n_wide, "feature is",
                                          "features are"));
}

static void warn_of_reading(const struct oj_source *source,
                            const struct oj_read_counts *counts)
{
    if (counts->n_warnings > 0)
        oj_warn("reading %s layer '%s': %s%s", source->role, source->name,
                counts->first_warning,
                counts->n_warnings > 1 ? " (and more warnings)" : "");
    warn_of_bad_texts(source, counts->n_bad_texts);
    warn_of_antimeridian(source, counts);
}

/* Warns if most rows of a side have a text that is no time, for example a
 * number. */
static void warn_of_texts_without_times(const struct oj_job *job)
{
    const struct oj_side_columns *columns = &job->sides.columns;
    for (int i = 0; i < 2 * columns->n_spans; i++)
    {
        const int side = i % 2;
        const struct oj_source *source = side == 0 ? &job->input : &job->join;
        const struct oj_missing_values *missing =
            &job->sides.reshape[side].found.missing;
        char text[256];
        if (oj_span_reading_describe_missing(
                &columns->span[i / 2], side, missing->n_no_span[i / 2],
                side == 0 ? job->input_counts.n_rows
                          : job->join_side->counts.n_rows,
                text, sizeof text))
            oj_warn("%s layer '%s': %s; numbers of a CSV file need -%s "
                    "AUTODETECT_TYPE=YES",
                    source->role, source->name, text, side == 0 ? "oo" : "joo");
    }
}

/* Warns if the join layer has no features. (With -window it always has some.)
 */
static void warn_of_empty_join_layer(const struct oj_job *job)
{
    if (job->join_side->counts.n_rows == 0)
        oj_warn("join layer '%s' has no features%s: nothing can match",
                job->join.name,
                oj_source_is_filtered(&job->join) ? " under its filters" : "");
}

void oj_summary_warn_of_reading(const struct oj_job *job)
{
    warn_of_reading(&job->input, &job->input_counts);
    warn_of_reading(&job->join, &job->join_side->counts);
    warn_of_texts_without_times(job);
    warn_of_empty_join_layer(job);
}

static void report_side_notices(const struct oj_source *source,
                                const struct oj_read_counts *counts)
{
    const struct oj_flat_counts *shapes = &counts->shapes;
    warn_of_reading(source, counts);
    if (shapes->n_linearized > 0)
        oj_notice("%s layer '%s': the curves or surfaces of %s were "
                  "taken as line strings or polygons",
                  source->role, source->name,
                  oj_message_count_and_noun(shapes->n_linearized, "feature",
                                            "features"));
    if (shapes->n_empty_members > 0)
        oj_notice(
            "%s layer '%s': %lld empty %s of multi-geometries left out",
            source->role, source->name, (long long)shapes->n_empty_members,
            oj_word_one_or_many(shapes->n_empty_members, "member", "members"));
    if (shapes->n_rings_closed > 0)
        oj_notice("%s layer '%s': %lld polygon %s not closed, and closed for "
                  "the join",
                  source->role, source->name, (long long)shapes->n_rings_closed,
                  oj_word_one_or_many(shapes->n_rings_closed, "ring was",
                                      "rings were"));
}

/* Reports what -invalid and the representative points changed. */
static void report_reshaped_features(const struct oj_reshape *r)
{
    const struct oj_side_findings *found = &r->found;
    if (found->n_invalid > 0)
        oj_notice(
            "%s layer '%s': %lld of %lld features with polygons are not "
            "valid and were %s%s; the first is %lld (%s)",
            r->role, r->name, (long long)found->n_invalid,
            (long long)found->n_tested,
            r->invalid == OJ_INVALID_FIX ? "made so for the join" : "skipped",
            found->n_not_fixed > 0
                ? CPLSPrintf(", but %lld of them cannot be and were skipped",
                             (long long)found->n_not_fixed)
                : "",
            (long long)found->first_invalid, found->reason);
    if (found->n_no_point > 0)
        oj_notice("%s layer '%s': %s no %s, and %s skipped", r->role, r->name,
                  oj_message_count_and_noun(found->n_no_point, "feature has",
                                            "features have"),
                  r->shape == OJ_SHAPE_CENTROID ? "centroid"
                                                : "point on surface",
                  oj_word_one_or_many(found->n_no_point, "was", "were"));
}

static void notice_rows_without_distance(const struct oj_job *job)
{
    for (int side = 0; side < 2; side++)
    {
        int64_t n = job->sides.reshape[side].found.missing.n_no_reach;
        if (n > 0)
            oj_notice("%s of the %s layer %s nothing, because the distance of "
                      "-%s %s is NULL, negative or no number",
                      oj_message_count_and_noun(n, "row", "rows"),
                      side == 0 ? "input" : "join",
                      oj_word_one_or_many(n, "matches", "match"),
                      side == 0 ? "max_distance_field"
                                : "join_max_distance_field",
                      side == 0 ? job->command->max_distance_field
                                : job->command->join_max_distance_field);
    }
}

static void notice_rows_without_heading(const struct oj_job *job)
{
    int64_t n = job->sides.reshape[0].found.missing.n_no_heading;
    if (n > 0)
        oj_notice("%s of the input layer %s no heading (the value of -heading "
                  "%s is NULL, no number, or beyond 360 degrees): every "
                  "direction fits %s",
                  oj_message_count_and_noun(n, "row", "rows"),
                  oj_word_one_or_many(n, "has", "have"),
                  job->command->heading_field,
                  oj_word_one_or_many(n, "it", "them"));
}

static void warn_undecided(const struct oj_job *job)
{
    const struct oj_stats *stats = oj_job_stats(job);
    if (stats->n_undecided_pairs > 0)
        oj_warn("GEOS cannot decide whether %s left out (%.*s)%s",
                oj_message_count_and_noun(stats->n_undecided_pairs,
                                          "pair matches, and it is",
                                          "pairs match, and they are"),
                oj_message_reason_length(stats->undecided_text),
                stats->undecided_text,
                job->command->invalid == OJ_INVALID_USE
                    ? "; -invalid fix makes polygons valid first"
                    : "");
}

static void notice_rounding_backend(const struct oj_job *job)
{
    const struct oj_backend *backend = oj_job_backend(job);
    if (backend->uses_rounded_arithmetic)
        oj_notice("backend %s: its answers have GEOS's rounding errors; where "
                  "shapes nearly touch, -backend cpu decides exactly",
                  backend->name);
}

static void print_notices_and_skipped_rows(const struct oj_job *job)
{
    char skipped[SKIPPED_SIZE];
    notice_rounding_backend(job);
    report_side_notices(&job->input, &job->input_counts);
    oj_report_stream_warn(job->input.stream);
    report_side_notices(&job->join, &job->join_side->counts);
    warn_of_texts_without_times(job);
    warn_of_empty_join_layer(job);
    report_reshaped_features(&job->sides.reshape[0]);
    report_reshaped_features(&job->sides.reshape[1]);
    notice_rows_without_distance(job);
    notice_rows_without_heading(job);
    warn_undecided(job);
    format_skipped_counts(job, 1, "", skipped, sizeof skipped);
    if (skipped[0] != '\0')
        oj_notice("join layer '%s': %s", job->join.name, skipped);
}

static void warn_rows_without_geometry_lost(int64_t n)
{
    if (n > 0)
        oj_warn("%s without geometry %s left out: this format cannot "
                "hold %s; write GPKG to keep %s",
                oj_message_count_and_noun(n, "row", "rows"),
                oj_word_one_or_many(n, "was", "were"),
                oj_word_one_or_many(n, "it", "them"),
                oj_word_one_or_many(n, "it", "them"));
}

/* Returns the seconds of indexing and joining. With tiles join_s already
 * includes the indexing. */
static double join_seconds(const struct oj_job *job)
{
    double index_s = job->tiled != NULL ? 0.0 : oj_job_stats(job)->index_s;
    return index_s + job->counts.join_s;
}

/* Returns the name of the backend, with the reason for the choice if a GPU was
 * used, or was asked for but not used. */
static const char *describe_backend(const struct oj_job *job)
{
    const struct oj_backend *backend = oj_job_backend(job);
    const char *reason = oj_job_backend_reason(job);
    if (reason[0] == '\0' ||
        (backend == oj_backend_at(0) && strncmp(reason, "no GPU", 6) != 0))
        return backend->name;
    return CPLSPrintf("%s (%s)", backend->name, reason);
}

/* Returns a text about pairs that were summed on a GPU without being returned,
 * or "". */
static const char *describe_pairs_summed_on_gpu(const struct oj_job *job)
{
    int64_t n = oj_job_stats(job)->n_pairs_not_stored;
    if (n == 0)
        return "";
    return n < job->counts.n_pairs ? ", most of them added up on the GPU"
                                   : ", added up on the GPU";
}

/* Returns a text about the pairs that -one_to_one or -nlt keeps, or NULL if no
 * pairs are dropped. */
static const char *describe_choice_of_pairs(const struct oj_command *command)
{
    static const char *const parts[] = {"with polygons in common",
                                        "with lines in common",
                                        "with points in common"};
    const int layer_type = command->output.layer_type;
    return command->one_to_one != NULL ? "one to one"
           : oj_layer_type_keeps_parts(layer_type)
               ? parts[layer_type - OJ_LAYER_POLYGON]
               : NULL;
}

static const char *describe_pairs(const struct oj_job *job)
{
    const char *choice = describe_choice_of_pairs(job->command);
    int64_t n = job->counts.n_pairs;
    return choice == NULL
               ? oj_message_count_and_noun(n, "pair", "pairs")
               : CPLSPrintf("%s, of which %lld %s",
                            oj_message_count_and_noun(job->n_pairs_joined,
                                                      "pair", "pairs"),
                            (long long)n, choice);
}

/* Prints the counts of those events that occurred, as "3 enter, 2 exit". */
static void notice_events(const struct oj_summary *summary)
{
    const int64_t n_unread =
        oj_report_stream_count_unread(summary->job->input.stream);
    struct oj_event_counts counts;
    char text[256] = "", unread[64] = "";
    if (!summary->events->is_open)
        return;
    oj_events_count(summary->events->events, &counts);
    for (int i = 0; i < OJ_N_EVENTS; i++)
    {
        if (counts.n_events[i] > 0)
            oj_message_append(text, sizeof text, "%s%lld %s",
                              text[0] != '\0' ? ", " : "",
                              (long long)counts.n_events[i], oj_event_names[i]);
    }
    if (n_unread > 0)
        snprintf(unread, sizeof unread, ", %lld that cannot be read",
                 (long long)n_unread);
    oj_notice("events: %s; %lld reports without a key, %lld without a "
              "geometry%s; %s inside of join features",
              text[0] != '\0' ? text : "none", (long long)counts.n_without_key,
              (long long)counts.n_without_place, unread,
              oj_message_count_and_noun(counts.n_inside, "key is", "keys are"));
}

static void write_json_events(FILE *file, const struct oj_summary *summary)
{
    struct oj_event_counts counts;
    if (!summary->events->is_open)
    {
        fprintf(file, "  \"events\": null,\n");
        return;
    }
    oj_events_count(summary->events->events, &counts);
    fprintf(file, "  \"events\": {");
    for (int i = 0; i < OJ_N_EVENTS; i++)
        fprintf(file, "\"%s\": %lld, ", oj_event_names[i],
                (long long)counts.n_events[i]);
    fprintf(
        file,
        "\"without_key\": %lld, \"without_geometry\": %lld, "
        "\"unread\": %lld, \"inside\": %lld},\n",
        (long long)counts.n_without_key, (long long)counts.n_without_place,
        (long long)oj_report_stream_count_unread(summary->job->input.stream),
        (long long)counts.n_inside);
}

static const char *name_destination(const struct oj_job *job)
{
    return job->command->in_place ? job->command->input.dataset
                                  : job->command->output.dst;
}

static void print_summary_line(const struct oj_summary *summary)
{
    const struct oj_job *job = summary->job;
    const struct oj_pipeline_counts *counts = &job->counts;
    int64_t n_written = summary->written->n_rows - summary->written->n_left_out;
    int64_t n_tiles = job->tiles.n_tiles;
    char skipped[SKIPPED_SIZE];
    format_skipped_counts(job, 0, ", of which ", skipped, sizeof skipped);
    oj_notice(
        "%s in: %lld matched, %lld unmatched%s; %s%s; %s written to %s; "
        "read %.2f s, join %.2f s, write %.2f s, total %.2f s; backend %s, "
        "%s%s%s",
        oj_message_count_and_noun(counts->n_rows, "row", "rows"),
        (long long)counts->n_matched,
        (long long)(counts->n_rows - counts->n_matched), skipped,
        describe_pairs(job), describe_pairs_summed_on_gpu(job),
        oj_message_count_and_noun(n_written, "row", "rows"),
        name_destination(job), job->join_side->read_s + counts->read_s,
        join_seconds(job), summary->write_s, summary->total_s,
        describe_backend(job),
        oj_message_count_and_noun(oj_job_threads(job), "thread", "threads"),
        job->tiled != NULL ? ", the join side in " : "",
        job->tiled != NULL ? oj_message_count_and_noun(n_tiles, "tile", "tiles")
                           : "");
}

static void write_json_count(FILE *file, const char *key, int64_t n)
{
    fprintf(file, "  \"%s\": %lld,\n", key, (long long)n);
}

static void write_text(FILE *file, const char *key, const char *text)
{
    fprintf(file, "  \"%s\": ", key);
    oj_text_file_put_json(file, text);
    fprintf(file, ",\n");
}

static void write_side(FILE *file, const char *key, const struct oj_job *job,
                       int side)
{
    const struct oj_source *source = side == 0 ? &job->input : &job->join;
    const struct oj_read_counts *counts =
        side == 0 ? &job->input_counts : &job->join_side->counts;
    const struct oj_reshape *reshape = &job->sides.reshape[side];
    struct reason reasons[N_REASONS];
    fill_skip_reasons(job, side, reasons);
    fprintf(file, "  \"%s\": {\"dataset\": ", key);
    oj_text_file_put_json(file, source->side->dataset);
    fprintf(file, ", \"layer\": ");
    oj_text_file_put_json(file, source->name);
    fprintf(file, ", \"rows\": %lld, \"skipped\": {",
            (long long)counts->n_rows);
    for (int i = 0; i < N_REASONS; i++)
        fprintf(file, "%s\"%s\": %lld", i > 0 ? ", " : "", reasons[i].key,
                (long long)reasons[i].n);
    fprintf(file,
            "}, \"linearized\": %lld, \"empty_members\": %lld, "
            "\"rings_closed\": %lld, \"invalid\": %s, \"lane\": \"%s\"},\n",
            (long long)counts->shapes.n_linearized,
            (long long)counts->shapes.n_empty_members,
            (long long)counts->shapes.n_rings_closed,
            reshape->invalid == OJ_INVALID_USE
                ? "null"
                : CPLSPrintf("%lld", (long long)reshape->found.n_invalid),
            counts->lane != NULL ? counts->lane : "features");
}

static void write_number_or_null(FILE *file, const char *key, double value,
                                 int is_there)
{
    if (is_there)
        fprintf(file, "  \"%s\": %.17g,\n", key, value);
    else
        fprintf(file, "  \"%s\": null,\n", key);
}

/* Writes the counts of -validate, or null if there was no validation. */
static void write_validation(FILE *file, const struct oj_validation *found)
{
    static const struct oj_validation none = {0};
    const struct oj_validation *v = found != NULL ? found : &none;
    const struct
    {
        const char *key;
        int64_t n;
    } counts[] = {
        {"rows_validated", v->n_rows},
        {"rows_different", v->n_rows_different},
        {"pairs_validated", v->n_pairs},
        {"rows_proved", v->n_rows_proved},
        {"rows_within_rounding", v->n_rows_rounding},
        {"rows_left_out_of_validation", v->n_undecided},
        {"pairs_left_out_of_validation", v->n_undecided_pairs},
        {"undecided_pairs_proved", v->n_undecided_proved},
        {"pairs_within_ulps", v->n_within_ulps},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        write_number_or_null(file, counts[i].key, (double)counts[i].n,
                             found != NULL);
}

static void write_json(FILE *file, const void *user)
{
    const struct oj_summary *summary = user;
    const struct oj_job *job = summary->job;
    const struct oj_pipeline_counts *counts = &job->counts;
    const struct oj_stats *stats = oj_job_stats(job);
    double reach = job->relation.max_distance;
    fprintf(file, "{\n");
    write_text(file, "version", oj_version());
    write_text(file, "op", oj_command_op_name(job->command));
    write_number_or_null(file, "max_distance", reach, isfinite(reach));
    write_text(file, "unit", job->crs.unit);
    write_side(file, "input", job, 0);
    write_side(file, "join", job, 1);
    write_json_count(file, "rows_in", counts->n_rows);
    write_json_count(file, "matched", counts->n_matched);
    write_json_count(file, "unmatched", counts->n_rows - counts->n_matched);
    write_json_count(file, "pairs", counts->n_pairs);
    write_json_count(file, "pairs_joined",
                     describe_choice_of_pairs(job->command) != NULL
                         ? job->n_pairs_joined
                         : counts->n_pairs);
    write_json_count(file, "groups_chosen_greedily", job->n_large_groups);
    write_json_count(file, "pairs_not_made", stats->n_pairs_not_stored);
    write_json_count(file, "undecided_pairs", stats->n_undecided_pairs);
    write_json_count(file, "rows_without_heading",
                     job->sides.reshape[0].found.missing.n_no_heading);
    fprintf(file, "  \"self_join\": %s,\n",
            job->sides.is_self_join ? "true" : "false");
    write_text(file, "destination", name_destination(job));
    write_text(file, "lane",
               summary->written->lane != NULL ? summary->written->lane
                                              : "features");
    write_json_count(file, "rows_written", summary->written->n_rows);
    write_json_count(file, "rows_left_out", summary->written->n_left_out);
    write_number_or_null(file, "rows_counted_after_closing",
                         (double)summary->written->n_checked,
                         summary->written->n_checked >= 0);
    write_json_events(file, summary);
    write_validation(file, summary->validation);
    fprintf(file,
            "  \"seconds\": {\"read\": %.6f, \"join\": %.6f, \"write\": %.6f, "
            "\"total\": %.6f},\n",
            job->join_side->read_s + counts->read_s, join_seconds(job),
            summary->write_s, summary->total_s);
    write_text(file, "backend", oj_job_backend(job)->name);
    write_text(file, "backend_reason", oj_job_backend_reason(job));
    write_json_count(file, "threads", oj_job_threads(job));
    fprintf(file, "  \"tiles\": %lld\n}\n", (long long)job->tiles.n_tiles);
}

static oj_status print_and_write_summary(struct oj_summary *summary,
                                         struct oj_proof *proof,
                                         int *is_different,
                                         struct oj_error *err)
{
    const char *path = summary->job->command->json_summary;
    if (proof != NULL)
    {
        OJ_TRY(oj_validation_run_finish(proof, &summary->validation, err));
        *is_different = summary->validation->n_rows_different > 0;
    }
    summary->total_s = oj_clock_seconds() - summary->start;
    print_notices_and_skipped_rows(summary->job);
    warn_rows_without_geometry_lost(summary->written->n_left_out);
    notice_events(summary);
    print_summary_line(summary);
    return path == NULL ? OJ_OK
                        : oj_text_file_write(path, "json_summary", write_json,
                                             summary, err);
}

oj_status oj_summary_end(struct oj_summary *summary, struct oj_proof *proof,
                         int *is_different, struct oj_error *err)
{
    struct oj_error bare;
    oj_status status =
        print_and_write_summary(summary, proof, is_different, err);
    if (status == OJ_OK || err == NULL)
        return status;
    /* The output was written without an error, so *err holds only the error of
     * the summary. */
    bare = *err;
    return oj_fail(err, status, "%.700s; all rows are written to %.250s",
                   bare.message, name_destination(summary->job));
}
