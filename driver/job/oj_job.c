#include "oj_job.h"

#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_clock.h"
#include "../../flatten/base/oj_compare.h"
#include "../../flatten/base/oj_parallel.h"
#include "../../flatten/read/oj_attribute_table.h"
#include "../base/oj_cancel.h"
#include "../base/oj_message.h"
#include "../base/oj_sql_volatility.h"
#include "../command/oj_option_table.h"
#include "../files/oj_path.h"
#include "../files/oj_text_file_write.h"
#include "../output/oj_output.h"
#include "../source/oj_plausibility_warnings.h"

#include <cpl_conv.h>
#include <cpl_multiproc.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#ifdef __GLIBC__
#endif

/* Maximum number of pairs of one answer; further rows come in the next answer.
 * Three answers are in memory at a time. */
#define MAX_BATCH_PAIRS (INT64_C(4) << 20)

/* -memory: estimated bytes per pair, with three answers in flight and the
 * intermediate answers of a join in tiles. */
#define BYTES_PER_PAIR 512
#define LEAST_BATCH_PAIRS 16384

/* -memory: estimated bytes per row with its answer and scratch memory.
 * BYTES_PER_BATCH_ROW is for three batches in flight, BYTES_PER_TILED_ROW for a
 * join in tiles, where one batch is joined at a time. */
#define BYTES_PER_BATCH_ROW 1024
#define BYTES_PER_TILED_ROW 512
#define LEAST_BATCH 4096

/* -one_to_one: maximum bytes of pairs in memory: MOST_HELD, or with -memory
 * 1/HELD_SHARE of its amount. Each join feature takes another BYTES_PER_CHOSEN
 * bytes. */
#define MOST_HELD (INT64_C(512) << 20)
#define HELD_SHARE 8
#define BYTES_PER_CHOSEN 48

/* -validate: the memory of a reference is at most this many times that of the
 * join. (GEOS objects of single points need that much.) */
#define REFERENCE_SHARE 5

static int64_t max_pairs_per_batch(const struct oj_command *command)
{
    int64_t most = command->memory / BYTES_PER_PAIR;
    if (command->memory == 0 || most > MAX_BATCH_PAIRS)
        return MAX_BATCH_PAIRS;
    return most > LEAST_BATCH_PAIRS ? most : LEAST_BATCH_PAIRS;
}

/* Returns the number of threads of the join, set by -threads or by
 * GDAL_NUM_THREADS. 0 means all processors. */
static int threads_of_command(const struct oj_command *command)
{
    const char *n = CPLGetConfigOption("GDAL_NUM_THREADS", "ALL_CPUS");
    int64_t threads = command->threads;
    if (!oj_command_has_option(command, "threads"))
        threads = atoi(n);
    return threads < 0 || threads > OJ_MAX_THREADS ? 0 : (int)threads;
}

struct oj_options oj_job_options(const struct oj_command *command)
{
    struct oj_options options = {0};
    options.n_threads = threads_of_command(command);
    options.quadrant_size = command->quadrant_size;
    options.cancel = oj_cancel_flag();
    options.max_batch_pairs = max_pairs_per_batch(command);
    options.gpus = command->gpus;
    options.gpu_memory = command->gpu_memory;
    options.gpu_batch = command->gpu_batch;
    return options;
}

/* Adds to an error that the destination is named first, if the destination
 * exists but the join dataset does not: the user has probably named the inputs
 * first, as in other programs. */
static oj_status explain_argument_order(const struct oj_command *command,
                                        oj_status status, struct oj_error *err)
{
    VSIStatBuf file;
    struct oj_error bare = *err;
    if (status == OJ_OK || command->output.dst == NULL ||
        command->output.overwrite || command->output.append ||
        command->output.update || VSIStat(command->output.dst, &file) != 0 ||
        strchr(command->join.dataset, ':') != NULL ||
        VSIStat(command->join.dataset, &file) == 0)
        return status;
    return oj_fail(err, status,
                   "%.800s; the destination comes first: ogrjoin dst_ds "
                   "input_ds join_ds",
                   bare.message);
}

/* Decides whether progress is shown, and counts the input rows for that. The
 * rows of a SELECT are counted only if -progress is given, because this can
 * take as long as reading them. */
static void decide_progress_and_row_count(struct oj_job *job)
{
    const struct oj_command *command = job->command;
    job->n_expected = -1;
    job->show_progress = !command->quiet &&
                         (command->progress || isatty(STDOUT_FILENO)) &&
                         (command->output.dst == NULL ||
                          !oj_output_is_stdout(command->output.dst));
    if (!job->show_progress)
        return;
    if (command->progress || !job->input.is_result_set)
        job->n_expected = oj_source_count(&job->input, command->limit);
    if (job->n_expected < 0 && command->progress)
        oj_notice("no progress is shown: the number of input rows is unknown "
                  "beforehand");
    if (job->n_expected < 0)
        job->show_progress = 0;
}

/* Returns 1 if both names are one file, which need not exist. */
static int is_same_path(const char *a, const char *b)
{
    return oj_path_is_same_file(a, b) ||
           (strcmp(CPLGetFilename(a), CPLGetFilename(b)) == 0 &&
            oj_path_is_same_file(oj_path_folder(a, "."),
                                 oj_path_folder(b, ".")));
}

/* Refuses a report file that would overwrite an input or the output. */
static oj_status check_extra_output_file(const struct oj_job *job,
                                         const char *option, const char *path,
                                         struct oj_error *err)
{
    const char *dst = job->command->output.dst;
    if (path == NULL)
        return OJ_OK;
    if (oj_source_has_file(&job->input, path) ||
        oj_source_has_file(&job->join, path))
        return oj_fail(err, OJ_ERR_ARG,
                       "-%s would overwrite the input %s: name another file",
                       option, path);
    if (dst != NULL &&
        (is_same_path(dst, path) ||
         (oj_output_is_stdout(dst) && oj_text_file_is_stdout(path))))
        return oj_fail(err, OJ_ERR_ARG,
                       "-%s would overwrite the output %s: name another file",
                       option, path);
    return OJ_OK;
}

/* Returns 1 if rows of the side are read again after the join: unmatched join
 * rows, or input rows whose aggregates or chosen pairs are known only then. */
static int is_side_read_twice(const struct oj_command *command, int side)
{
    if (side == 0)
        return command->one_to_one != NULL || command->aggregates != NULL;
    return command->how == OJ_HOW_RIGHT || command->how == OJ_HOW_FULL ||
           command->output.unmatched_join_layer != NULL;
}

oj_status oj_job_open(const struct oj_command *command, int shares,
                      struct oj_job *job, struct oj_error *err)
{
    int64_t opened_ns = oj_join_files_clock_ns();
    memset(job, 0, sizeof *job);
    job->command = command;
    job->shares = shares;
    job->most_join_rows = -1;
    job->join_side = &job->own_join_side;
    job->n_slots = OJ_PIPELINE_SLOTS;
    OJ_TRY(oj_source_open(command, 0, &job->input, err));
    OJ_TRY(explain_argument_order(
        command, oj_source_open(command, 1, &job->join, err), err));
    OJ_TRY(check_extra_output_file(job, "json_summary", command->json_summary,
                                   err));
    OJ_TRY(check_extra_output_file(job, "state", command->state, err));
    OJ_TRY(check_extra_output_file(job, "validate_report",
                                   command->validate_report, err));
    OJ_TRY(check_extra_output_file(job, "benchmark_csv", command->benchmark_csv,
                                   err));
    job->relation = command->relation;
    OJ_TRY(oj_crs_choose(command, &job->input, &job->join, &job->crs,
                         &job->relation, err));
    job->sides.columns.n_threads = threads_of_command(command);
    OJ_TRY(oj_sides_open(command, &job->input, &job->join, &job->crs,
                         &job->sides, &job->relation, err));
    OJ_TRY(oj_relation_check(&job->relation, err));
    oj_plausibility_warn(command, &job->input, &job->join, &job->crs,
                         job->relation.max_distance);
    decide_progress_and_row_count(job);
    if (shares || is_side_read_twice(command, 0))
        oj_join_files_record(&job->input, opened_ns, &job->input_files);
    if (shares || is_side_read_twice(command, 1))
        oj_join_files_record(&job->join, opened_ns, &job->join_files);
    return OJ_OK;
}

int64_t oj_job_most_held_pairs(const struct oj_command *command)
{
    return command->memory > 0 ? command->memory / HELD_SHARE : MOST_HELD;
}

/* Returns the maximum bytes of a tile with its index under -memory. The batches
 * with their answers get as many bytes. Each gets half of the memory that the
 * vocabulary and -one_to_one do not use, but at least an eighth of -memory. */
static int64_t memory_limit_of_tile_or_batches(const struct oj_job *job)
{
    const struct oj_command *command = job->command;
    int64_t left =
        command->memory - oj_vocabulary_bytes(job->sides.columns.vocabulary);
    if (command->one_to_one != NULL)
        left -= BYTES_PER_CHOSEN * job->join_side->counts.n_rows +
                oj_job_most_held_pairs(command);
    return left > command->memory / 4 ? left / 2 : command->memory / 8;
}

/* Returns the rows per batch: those of -batch, or as many as -memory allows. A
 * batch that is joined with tiles is as large as possible, because every tile
 * must be loaded for each batch. */
static int64_t choose_rows_per_batch(const struct oj_job *job)
{
    const struct oj_command *command = job->command;
    int64_t most = command->memory / BYTES_PER_BATCH_ROW;
    if (command->memory == 0 || oj_command_has_option(command, "batch"))
        return command->batch;
    if (job->tiled != NULL)
        most = memory_limit_of_tile_or_batches(job) /
               (BYTES_PER_TILED_ROW * job->n_slots);
    if (most > command->batch && job->n_slots > 1)
        most = command->batch;
    most = most < INT32_MAX ? most : INT32_MAX;
    return most > LEAST_BATCH ? most : LEAST_BATCH;
}

struct oj_read_options oj_job_read_options(const struct oj_job *job, int side,
                                           int with_fields)
{
    const struct oj_source *source = side == 0 ? &job->input : &job->join;
    struct oj_read_options options = {0};
    options.batch_rows = choose_rows_per_batch(job);
    options.limit = side == 0 ? job->command->limit : job->most_join_rows;
    options.keep_attributes =
        with_fields || oj_side_columns_are_needed(&job->sides.columns, side);
    options.fields = source->fields;
    if (options.keep_attributes)
        options.n_fields = source->n_fields + source->n_hidden;
    options.skipped = source->skipped;
    options.keeps_m = side == 1 && job->command->along == OJ_ALONG_BY_M;
    options.lanes = oj_source_lanes(source);
    options.file =
        source->dataset != NULL ? GDALGetDescription(source->dataset) : NULL;
    options.geopackage = source->dataset;
    options.all_rows_filter = oj_source_all_rows_filter(source);
    options.ignore_unwanted = !source->has_where;
    options.transformation = source->transformation;
    options.has_degrees = source->srs != NULL && OSRIsGeographic(source->srs) &&
                          !oj_relation_is_on_globe(&job->relation) &&
                          oj_command_needs_shapes(job->command);
    options.n_threads = threads_of_command(job->command);
    if (options.n_threads == 0)
        options.n_threads = oj_cpu_count();
    options.cancel = oj_cancel_flag();
    if (source->stream != NULL)
    {
        options.refill = oj_report_stream_refill;
        options.refill_user = source->stream;
    }
    return options;
}

oj_status oj_job_read_side(struct oj_job *job, int side, int insert,
                           struct oj_join_side *to,
                           int (*watch)(int64_t, void *), struct oj_error *err)
{
    struct oj_source *source = side == 0 ? &job->input : &job->join;
    struct oj_read_options reading = oj_job_read_options(job, side, side == 1);
    struct oj_attributes values = {0};
    double start = oj_clock_seconds();
    oj_status status;
    OJ_TRY(oj_source_begin_snapshot(source, err));
    oj_message_forget_errors();
    status = oj_layer_read_all(source->layer, &reading, &to->buf, &to->table,
                               &to->counts, watch, job, err);
    if (status != OJ_OK)
        return oj_message_add_reason(status, err);
    to->read_s = oj_clock_seconds() - start;
    OJ_TRY(
        oj_source_check_count(source, reading.limit, to->counts.n_rows, err));
    to->flat = oj_flat_buf_view(&to->buf);
    values.table = to->table;
    return oj_sides_preprocess_rows(&job->sides, side, insert, &values,
                                    &to->work, &to->flat, err);
}

oj_status oj_job_preprocess_batch(struct oj_job *job, int side, int insert,
                                  const struct oj_batch *batch,
                                  struct oj_side_work *work,
                                  struct oj_flat *flat, struct oj_error *err)
{
    *flat = oj_flat_buf_view(&batch->flat);
    flat->n_features = batch->n_rows;
    if (batch->n_rows == 0)
        return OJ_OK;
    return oj_sides_preprocess_rows(&job->sides, side, insert,
                                    batch->attributes, work, flat, err);
}

/* ---- the engine ---------------------------------------------------------- */

/* Returns the options of the engine that joins the job's input. */
static struct oj_options make_engine_options(const struct oj_job *job)
{
    struct oj_options options = oj_job_options(job->command);
    if (!oj_reshape_makes_points(&job->sides.reshape[0]) &&
        !oj_source_can_hold_points(&job->input))
        options.input_kinds = OJ_PART_LINE | OJ_PART_POLYGON;
    /* -backend auto needs the number of input rows. The number is set if the
     * driver can count the rows without a scan. */
    if (!job->input.is_result_set &&
        OGR_L_TestCapability(job->input.layer, OLCFastFeatureCount))
        options.n_expected = oj_source_count(&job->input, job->command->limit);
    if (options.n_expected < 0)
        options.n_expected = 0;
    return options;
}

oj_status oj_job_open_engine(struct oj_job *job, const int *cancel,
                             struct oj_error *err)
{
    struct oj_options options = make_engine_options(job);
    options.cancel = cancel;
    return oj_join_open(&job->join_side->flat, &job->relation,
                        job->command->backend, &options,
                        &job->join_side->engine, err);
}

/* Returns the number of shares into which -memory is divided: one for the join,
 * more for a reference. */
static int64_t count_memory_shares(const struct oj_command *command)
{
    return command->validate != NULL ? 1 + REFERENCE_SHARE : 1;
}

/* Called while the join side is read. Returns 1, which stops the reading, if
 * the rows so far, with their index, need more than -memory. */
static int is_join_side_too_large(int64_t n_rows, void *user)
{
    const struct oj_job *job = user;
    const struct oj_read_counts *counts = &job->join_side->counts;
    /* upper bound: a text has at most one token per byte */
    int64_t most_tokens = job->relation.n_similar * counts->n_table_bytes;
    int64_t bytes = oj_join_tiles_estimate_bytes(
        job->relation.op,
        (job->command->along == OJ_ALONG_BY_M ? 24 : 16) * counts->n_vertices +
            24 * n_rows + counts->n_table_bytes +
            (int64_t)sizeof(uint32_t) * most_tokens,
        counts->n_vertices, most_tokens);
    return bytes > job->command->memory / count_memory_shares(job->command);
}

/* ---- under -memory: in tiles --------------------------------------------- */

/* State of writing a join side that exceeds -memory into tiles. */
struct spill
{
    struct oj_job *job;
    struct oj_read_options reading;
    struct oj_layer_reader *reader;
    struct oj_batch batch;
    struct oj_side_work work;
    /* [text][token] number of the token after the final renumbering */
    uint32_t *number[OJ_MOST_TEXTS];
    int64_t *fid; /* [n_fids] the FIDs of a SELECT */
    int64_t n_fids, cap_fids;
};

static oj_status open_tile_files(struct spill *spill, struct oj_error *err)
{
    struct oj_job *job = spill->job;
    const struct oj_command *command = job->command;
    job->tiles.op = job->relation.op;
    job->tiles.n_texts = job->relation.n_similar;
    job->tiles.has_vectors = job->relation.vector.is_asked;
    OJ_TRY(oj_table_new(job->join.layer, spill->reading.fields,
                        spill->reading.n_fields, &job->tiles.columns, err));
    return oj_join_tiles_open(
        &job->tiles,
        command->in_place ? command->input.dataset : command->output.dst,
        command->memory / count_memory_shares(command), err);
}

/* Collects the FIDs if the join side is a SELECT, whose FIDs can repeat. FIDs
 * of a layer are unique. */
static oj_status collect_fids_for_uniqueness_check(struct spill *spill,
                                                   const struct oj_flat *flat,
                                                   struct oj_error *err)
{
    if (!spill->job->join.is_result_set)
        return OJ_OK;
    OJ_ROOM(spill->fid, spill->n_fids, spill->n_fids + flat->n_features,
            spill->cap_fids, err);
    memcpy(spill->fid + spill->n_fids, flat->fid,
           (size_t)flat->n_features * sizeof *spill->fid);
    spill->n_fids += flat->n_features;
    return OJ_OK;
}

static int fids_are_unique(struct spill *spill)
{
    if (spill->n_fids > 0)
        qsort(spill->fid, (size_t)spill->n_fids, sizeof *spill->fid,
              oj_compare_int64);
    for (int64_t i = 1; i < spill->n_fids; i++)
    {
        if (spill->fid[i] == spill->fid[i - 1])
            return 0;
    }
    return 1;
}

static oj_status write_batch_to_tiles(struct spill *spill, struct oj_error *err)
{
    struct oj_job *job = spill->job;
    struct oj_flat flat;
    OJ_TRY(oj_job_preprocess_batch(job, 1, OJ_INSERT_SOME, &spill->batch,
                                   &spill->work, &flat, err));
    OJ_TRY(collect_fids_for_uniqueness_check(spill, &flat, err));
    return oj_join_tiles_add(&job->tiles, &flat, spill->batch.attributes,
                             spill->batch.first_row, err);
}

static oj_status write_join_layer_to_tiles(struct spill *spill,
                                           struct oj_error *err)
{
    struct oj_job *job = spill->job;
    OJ_TRY(open_tile_files(spill, err));
    OJ_TRY(oj_layer_reader_open(job->join.layer, &spill->reading,
                                &spill->reader, err));
    for (;;)
    {
        OJ_TRY(oj_layer_reader_next(spill->reader, &spill->batch, err));
        if (spill->batch.n_rows == 0)
            break;
        OJ_TRY(write_batch_to_tiles(spill, err));
        OJ_TRY(oj_cancel_check(err));
    }
    job->join_side->counts = *oj_layer_reader_counts(spill->reader);
    OJ_TRY(oj_side_columns_renumber_tokens(&job->sides.columns, spill->number,
                                           err));
    return oj_join_tiles_finish(&job->tiles,
                                memory_limit_of_tile_or_batches(job) /
                                    count_memory_shares(job->command),
                                spill->number, err);
}

static void close_join_layer_reader(struct spill *spill)
{
    oj_batch_free(&spill->batch);
    oj_side_work_free(&spill->work);
    oj_layer_reader_close(spill->reader);
    for (int i = 0; i < OJ_MOST_TEXTS; i++)
        oj_free(spill->number[i]);
    oj_free(spill->fid);
}

static oj_status prepare_tiles(struct oj_job *job, struct oj_error *err)
{
    const struct oj_options options = make_engine_options(job);
    struct spill spill = {0};
    double start = oj_clock_seconds();
    int unique;
    oj_status status;
    spill.job = job;
    spill.reading = oj_job_read_options(job, 1, 1);
    status = write_join_layer_to_tiles(&spill, err);
    unique = status == OJ_OK && fids_are_unique(&spill);
    close_join_layer_reader(&spill);
    if (status != OJ_OK)
        return oj_message_add_reason(status, err);
    job->join_side->read_s = oj_clock_seconds() - start;
    OJ_TRY(oj_source_check_count(&job->join, -1, job->join_side->counts.n_rows,
                                 err));
    job->n_slots = 1;
    /* This table has columns but no rows: with tiles, the attributes of join
     * features come with each answer. */
    OJ_TRY(oj_table_new_like(job->tiles.columns, &job->join_side->table, err));
    return oj_tiled_join_open(&job->tiles, &job->relation,
                              job->command->backend, &options, unique,
                              &job->tiled, err);
}

static oj_status read_join_side_or_tiles(struct oj_job *job,
                                         struct oj_error *err)
{
    int is_bounded = job->command->memory > 0;
    oj_status status;
    status = oj_job_read_side(job, 1, 1, job->join_side,
                              is_bounded ? is_join_side_too_large : NULL, err);
    if (status == OJ_ERR_CANCELLED && is_bounded && !oj_is_cancelled())
        return prepare_tiles(job, err);
    return status != OJ_OK ? status
                           : oj_job_open_engine(job, oj_cancel_flag(), err);
}

/* ---- key of a join side in the cache ------------------------------------- */

static void append_source_to_cache_key(char ***key,
                                       const struct oj_source *join)
{
    GDALDriverH driver = GDALGetDatasetDriver(join->dataset);
    char *path = realpath(join->side->dataset, NULL);
    *key = CSLAddNameValue(*key, "dataset",
                           path != NULL ? path : join->side->dataset);
    free(path);
    if (driver != NULL)
        *key = CSLAddNameValue(*key, "driver", GDALGetDescription(driver));
    *key = CSLAddNameValue(*key, "layer", OGR_L_GetName(join->layer));
}

/* Adds the options that can change a join side, if they are given. For an
 * option that names a file, adds the content of the file. */
static void append_options_to_cache_key(char ***key,
                                        const struct oj_command *command)
{
    for (const char **word = command->words; *word != NULL; word++)
    {
        const struct oj_option *option = oj_option_of_word(*word);
        int n = option != NULL ? oj_option_count_words(option) : 0;
        int counts = option != NULL && oj_option_is_of_join_side(option);
        const char *held = NULL;
        if (counts)
            *key = CSLAddNameValue(*key, "option", option->name);
        if (counts && (option->kind == OJ_OPTION_FILE ||
                       option->kind == OJ_OPTION_TEXT_OR_FILE))
            held =
                *(const char *const *)((const char *)command + option->offset);
        for (; n > 0; n--)
        {
            word++;
            if (counts)
                *key =
                    CSLAddNameValue(*key, "word", held != NULL ? held : *word);
        }
    }
}

static void append_list_to_cache_key(char ***key, const char *what, char **list)
{
    for (int i = 0; i < CSLCount(list); i++)
        *key = CSLAddNameValue(*key, what, list[i]);
    CSLDestroy(list);
}

static void append_crs_to_cache_key(char ***key, OGRSpatialReferenceH srs)
{
    const char *const options[] = {"FORMAT=WKT2_2019", NULL};
    char *text = NULL;
    const int *axes;
    int n_axes = 0;
    if (srs != NULL && OSRExportToWktEx(srs, &text, options) != OGRERR_NONE)
    {
        CPLFree(text);
        text = NULL;
        OSRExportToProj4(srs, &text);
    }
    *key = CSLAddNameValue(*key, "crs", text != NULL ? text : "");
    CPLFree(text);
    if (srs == NULL)
        return;
    axes = OSRGetDataAxisToSRSAxisMapping(srs, &n_axes);
    for (int i = 0; i < n_axes; i++)
        *key = CSLAddNameValue(*key, "axis", CPLSPrintf("%d", axes[i]));
    *key = CSLAddNameValue(*key, "epoch",
                           CPLSPrintf("%.17g", OSRGetCoordinateEpoch(srs)));
}

/* Adds the parts of the relation that depend on both sides: distances in the
 * CRS of the join, whether this is a self join, and the compared fields in
 * order. */
static void append_relation_to_cache_key(char ***key, const struct oj_job *job)
{
    const struct oj_sides *sides = &job->sides;
    const struct oj_relation *r = &job->relation;
    *key = CSLAddNameValue(*key, "relation",
                           CPLSPrintf("%d %d %d %.17g %.17g %.17g %u", r->op,
                                      r->exclude_self, r->enough_pairs,
                                      r->max_distance, r->min_distance,
                                      sides->columns.distance_scale,
                                      make_engine_options(job).input_kinds));
    *key =
        CSLAddNameValue(*key, "along", CPLSPrintf("%d", job->command->along));
    for (int made = OJ_MADE_ON_CLASS; made <= OJ_MADE_EXCLUDE_CLASS; made++)
    {
        const struct oj_side_fields *fields = sides->columns.fields[made];
        for (int i = 0; i < fields[1].n; i++)
            *key = CSLAddNameValue(
                *key, "class",
                CPLSPrintf("%d %d %d", made, fields[1].field[i].column,
                           oj_type_is_number(fields[0].field[i].type)));
    }
    for (int i = 0; i < sides->columns.n_spans; i++)
        *key = CSLAddNameValue(*key, "span",
                               CPLSPrintf("%d", sides->columns.span[i].scale));
}

/* Returns 1 for options of messages and of this cache, which do not change what
 * a driver reads. */
static int is_irrelevant_config(const char *option)
{
    return strncasecmp(option, "OGRJOIN_", 8) == 0 ||
           strncasecmp(option, "CPL_DEBUG", 9) == 0 ||
           strncasecmp(option, "CPL_LOG", 7) == 0 ||
           strncasecmp(option, "CPL_TIMESTAMP", 13) == 0;
}

/* Returns those options of a list of configuration options that may change what
 * a driver reads, in their order; frees the list. */
static char **keep_relevant_config(char **list)
{
    char **relevant = NULL;
    for (int i = 0; i < CSLCount(list); i++)
    {
        if (!is_irrelevant_config(list[i]))
            relevant = CSLAddString(relevant, list[i]);
    }
    CSLDestroy(list);
    return relevant;
}

/* Returns 0 if the join side can change although its files do not (a SELECT
 * that uses the time or other files), or if it is too cheap to cache (the boxes
 * of -window). */
static int is_join_side_cacheable(const struct oj_job *job)
{
    const struct oj_source_options *side = &job->command->join;
    GDALDriverH driver = GDALGetDatasetDriver(job->join.dataset);
    if (job->command->n_windows > 0 || oj_join_cache_limit() <= 0 ||
        !oj_join_files_are_unchanged(&job->join_files))
        return 0;
    /* The prelude statements of GPKG and SQLite, which are open options, can
     * attach databases. */
    for (const char **o = side->open_options; o != NULL && *o != NULL; o++)
    {
        if (strncasecmp(*o, "PRELUDE", 7) == 0)
            return 0;
    }
    if (side->where != NULL && oj_sql_select_may_vary(side->where))
        return 0;
    return side->sql == NULL ||
           (!oj_sql_select_may_vary(side->sql) &&
            !oj_sql_select_may_read_other_files(
                side->sql, side->dialect,
                driver != NULL ? GDALGetDescription(driver) : ""));
}

/* Makes the key of the cache. It also contains those facts about the input on
 * which the join side depends: the CRS of the input, the kinds of its features,
 * which of its fields in -on and -exclude are numeric, and how its fields in
 * -within_time and -during are read. */
static struct oj_join_key make_cache_key(const struct oj_job *job)
{
    struct oj_join_key key = {NULL, CSLDuplicate(job->join_files.state)};
    OGRCoordinateTransformationH transformation = job->join.transformation;
    append_source_to_cache_key(&key.identity, &job->join);
    append_options_to_cache_key(&key.identity, job->command);
    append_list_to_cache_key(
        &key.identity, "field",
        oj_source_describe_fields(&job->join,
                                  job->join.n_fields + job->join.n_hidden));
    if (transformation != NULL)
    {
        append_crs_to_cache_key(&key.identity, OCTGetSourceCS(transformation));
        append_crs_to_cache_key(&key.identity, OCTGetTargetCS(transformation));
    }
    append_relation_to_cache_key(&key.identity, job);
    append_list_to_cache_key(&key.identity, "config",
                             keep_relevant_config(CPLGetConfigOptions()));
    append_list_to_cache_key(
        &key.identity, "thread",
        keep_relevant_config(CPLGetThreadLocalConfigOptions()));
    return key;
}

int oj_job_is_outdated(const struct oj_job *job)
{
    return oj_join_files_may_have_changed(&job->input_files) ||
           oj_join_files_may_have_changed(&job->join_files);
}

/* Reads and indexes the join side into *side, which belongs to the cache. Sets
 * *keep to 1 if its files have not changed in the meantime, so that the cache
 * may keep it. */
static oj_status build_join_side(void *user, struct oj_join_side *side,
                                 const int *cancel, int *keep,
                                 struct oj_error *err)
{
    const struct oj_side_findings nothing = {0};
    struct oj_job *job = user;
    job->join_side = side;
    /* drops the statistics of a failed attempt */
    job->sides.reshape[1].found = nothing;
    OJ_TRY(oj_job_read_side(job, 1, 1, side, NULL, err));
    OJ_TRY(oj_job_open_engine(job, cancel, err));
    oj_join_side_copy_from_sides(side, &job->sides);
    *keep = oj_join_files_are_unchanged(&job->join_files);
    return OJ_OK;
}

oj_status oj_job_prepare(struct oj_job *job, const struct oj_job *like,
                         struct oj_error *err)
{
    struct oj_join_key key = {0};
    oj_status status;
    int is_mine, may_keep;
    if (!job->shares || job->command->memory > 0)
        return read_join_side_or_tiles(job, err);
    may_keep = is_join_side_cacheable(job);
    /* If join rows are read a second time, both readings must see one state of
     * the files. So the join side of `like` is not used if a file may have
     * changed. */
    if (like != NULL && is_side_read_twice(job->command, 1) &&
        (oj_join_files_may_have_changed(&job->join_files) ||
         oj_join_files_may_have_changed(&like->join_files)))
        like = NULL;
    if (may_keep)
        key = make_cache_key(job);
    status = oj_join_cache_find_or_build(
        like != NULL ? &like->join_use : NULL, may_keep ? &key : NULL,
        build_join_side, job, oj_cancel_flag(), &job->join_use, &is_mine, err);
    oj_join_key_free(&key);
    if (status != OJ_OK)
    {
        /* the cache has freed its join side after the failure */
        job->join_side = &job->own_join_side;
        return status;
    }
    job->join_side = oj_join_use_side(&job->join_use);
    if (!is_mine)
        oj_join_side_copy_to_sides(job->join_side, &job->sides);
    return OJ_OK;
}

void oj_job_stop_engine(struct oj_job *job)
{
    oj_join_use_stop(&job->join_use);
}

/* ---- joined -------------------------------------------------------------- */

oj_status oj_job_join(struct oj_job *job, const struct oj_flat *input,
                      int answer, int with_attributes, struct oj_matches *out,
                      struct oj_error *err)
{
    if (job->tiled != NULL)
        return oj_tiled_join_batch(job->tiled, input, NULL, with_attributes,
                                   out, &job->answer_side[answer], err);
    if (job->join_use.entry != NULL)
        return oj_join_use_join_batch(&job->join_use, input, out, err);
    return oj_join_batch(job->join_side->engine, input, out, err);
}

int oj_job_may_sample(const struct oj_job *job)
{
    const struct oj_join *engine = job->join_side->engine;
    return job->tiled == NULL && engine != NULL && oj_join_may_sample(engine);
}

void oj_job_end_joining(struct oj_job *job)
{
    job->n_slots = OJ_PIPELINE_SLOTS;
    if (job->tiled != NULL)
        oj_tiled_join_unload(job->tiled);
}

struct oj_answer_side oj_job_answer_side(const struct oj_job *job, int answer)
{
    struct oj_answer_side side = {job->join_side->flat, job->join_side->table,
                                  NULL, NULL};
    if (job->tiled != NULL)
    {
        const struct oj_feature_set *own = &job->answer_side[answer];
        side.flat = oj_feature_set_view(own);
        side.table = own->table;
        side.ordinal = own->ordinal;
        side.place = own->place;
    }
    return side;
}

const struct oj_stats *oj_job_stats(const struct oj_job *job)
{
    if (job->join_use.entry != NULL)
        return &job->join_use.stats;
    return job->tiled != NULL ? &job->tiled->total
                              : oj_join_stats(job->join_side->engine);
}

const struct oj_backend *oj_job_backend(const struct oj_job *job)
{
    return job->tiled != NULL ? job->tiled->used
                              : oj_join_backend(job->join_side->engine);
}

const char *oj_job_backend_reason(const struct oj_job *job)
{
    return job->tiled != NULL
               ? ""
               : oj_join_reason_for_backend(job->join_side->engine);
}

int oj_job_threads(const struct oj_job *job)
{
    return job->tiled != NULL ? job->tiled->n_threads
                              : oj_join_threads(job->join_side->engine);
}

/* ---- the end ------------------------------------------------------------- */

void oj_job_close(struct oj_job *job)
{
    oj_join_side_free(&job->own_join_side);
    oj_join_use_release(&job->join_use);
    oj_join_files_free(&job->input_files);
    oj_join_files_free(&job->join_files);
    oj_tiled_join_close(job->tiled);
    oj_join_tiles_close(&job->tiles);
    for (int i = 0; i < OJ_PIPELINE_SLOTS; i++)
        oj_feature_set_free(&job->answer_side[i]);
    oj_sides_close(&job->sides);
    oj_crs_free(&job->crs);
    oj_source_close(&job->join);
    oj_source_close(&job->input);
    memset(job, 0, sizeof *job);
}
