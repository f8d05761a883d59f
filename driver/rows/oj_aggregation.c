#include "oj_aggregation.h"

#include "../../algs/base/oj_point_order.h"
#include "../../algs/pairs/oj_measures.h"
#include "../../flatten/base/oj_array.h"
#include "../../flatten/read/oj_table.h"
#include "../base/oj_cancel.h"
#include "../base/oj_message.h"
#include "../files/oj_temporary.h"
#include "oj_aggregate_list.h"
#include "oj_aggregate_values.h"

#include <cpl_conv.h>

#include <math.h>
#include <string.h>
#include <strings.h>

/* Of -memory, the share of values that are held to be sorted; the rest is for
 * the side in memory and the batches. */
#define MEMORY_SHARE 4

/* Of the progress bar, what streaming the join layer takes. */
#define STREAM_SHARE 0.9

enum
{
    BLOCK_FEATURES = 1024,
    BLOCK_PAIRS = 4096
};

/* Pairs on their way into aggregates, many at once. */
struct block
{
    struct oj_row_values source; /* of the features */
    const int64_t *fid;          /* of the source's features, or NULL */
    const int64_t *ordinal;      /* their places in the join layer, or NULL: */
    int64_t first_place;         /* that of the first, others follow */

    struct oj_aggregate_columns columns;
    int64_t n_features, n_pairs;
    int32_t feature[BLOCK_FEATURES]; /* in source */
    int64_t fids[BLOCK_FEATURES], places[BLOCK_FEATURES];
    int64_t row[BLOCK_PAIRS];
    int32_t at[BLOCK_PAIRS]; /* in feature */
    double share[BLOCK_PAIRS];
};

struct oj_aggregation
{
    const struct oj_command *command;
    struct oj_aggregate_list list;
    struct oj_aggregate *aggregates; /* [list.n] */
    struct oj_own_column *columns;   /* [list.n] */
    struct oj_value_way *ways;       /* [n_ways] */
    enum oj_aggregate_type *types;   /* [n_ways] */
    int n_ways;
    int needs_overlap, needs_places;
    struct oj_held_files files;
    struct oj_aggregate_plan plan;
    struct oj_aggregates *state;
    struct block *block;
    struct oj_matches rows; /* of the last answer */
    int64_t first_row;

    /* The join layer, streamed. */
    int64_t n_rows;
    const struct oj_shared_lists *shared; /* list l is row n_rows + l */
    struct oj_aggregates *sums;           /* without pairs; NULL: none */
    struct oj_aggregate_columns summed;
};

/* ---- the list, bound to fields ------------------------------------------ */

static oj_status fail_type(const struct oj_aggregate_word *word,
                           const char *needs, OGRFieldType type,
                           struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_ARG, "-agg: %s(%s) needs %s; the field is %s%s",
                   oj_aggregate_name(word->kind), word->field, needs,
                   OGR_GetFieldTypeName(type),
                   type == OFTString
                       ? ", which -join_sql can CAST; of CSV files "
                         "-joo AUTODETECT_TYPE=YES tells the types"
                       : "");
}

static oj_status choose_form(const struct oj_aggregate_word *word,
                             OGRFieldType type, enum oj_value_form *form,
                             struct oj_error *err)
{
    switch (word->kind)
    {
        case OJ_AGG_COUNT_VALUES:
            *form = oj_type_is_number(type) ? OJ_FORM_NUMBER : OJ_FORM_PRESENCE;
            return OJ_OK;
        case OJ_AGG_CONCAT:
            *form = type == OFTString ? OJ_FORM_TEXT : OJ_FORM_AS_TEXT;
            return type != OFTBinary
                       ? OJ_OK
                       : fail_type(word, "a text, numbers or dates", type, err);
        case OJ_AGG_SUM:
        case OJ_AGG_MEAN:
        case OJ_AGG_MEDIAN:
        case OJ_AGG_STDDEV:
        case OJ_AGG_WEIGHTED_SUM:
            *form = OJ_FORM_NUMBER;
            return oj_type_is_number(type)
                       ? OJ_OK
                       : fail_type(word, "numbers", type, err);
        default:
            *form = oj_type_is_number(type) ? OJ_FORM_NUMBER
                    : oj_type_is_time(type) ? OJ_FORM_TIME
                                            : OJ_FORM_TEXT;
            return oj_type_is_number(type) || oj_type_is_time(type) ||
                           type == OFTString
                       ? OJ_OK
                       : fail_type(word, "numbers, texts, dates or times", type,
                                   err);
    }
}

/* The way of this field in this form, made when there is none yet. */
static oj_status find_way(struct oj_aggregation *a, int field,
                          OGRFieldDefnH defn, enum oj_value_form form,
                          int *column, struct oj_error *err)
{
    struct oj_value_way *way = a->ways;
    for (int i = 0; i < a->n_ways; i++, way++)
    {
        if (way->field == field && way->form == form)
        {
            *column = i;
            return OJ_OK;
        }
    }
    way->field = field;
    way->type = OGR_Fld_GetType(defn);
    way->subtype = OGR_Fld_GetSubType(defn);
    way->form = form;
    *column = a->n_ways++;
    a->types[*column] = oj_value_way_type(way);
    return oj_value_way_open(way, err);
}

/* The column of a result. from: the field; NULL for counts of pairs. Results
 * that are values of the field are of its type. */
static oj_status define_column(struct oj_aggregation *a, int i,
                               OGRFieldDefnH from, struct oj_error *err)
{
    const struct oj_aggregate *what = &a->aggregates[i];
    struct oj_own_column *column = &a->columns[i];
    enum oj_aggregate_type result = oj_aggregate_type(
        what->kind,
        what->kind != OJ_AGG_COUNT ? a->types[what->column] : OJ_AGG_INTEGER);
    int is_value = what->kind == OJ_AGG_MIN || what->kind == OJ_AGG_MAX ||
                   what->kind == OJ_AGG_FIRST || what->kind == OJ_AGG_LAST ||
                   what->kind == OJ_AGG_MODE;
    OGRFieldType type = result == OJ_AGG_INTEGER ? OFTInteger64
                        : result == OJ_AGG_REAL  ? OFTReal
                                                 : OFTString;
    if (is_value)
        type = OGR_Fld_GetType(from);
    column->origin = OJ_COLUMN_AGGREGATE;
    column->source = i;
    column->type = type;
    column->subtype = is_value ? OGR_Fld_GetSubType(from) : OFSTNone;
    column->name = a->list.word[i].name;
    column->option = a->list.word[i].is_named ? "agg" : NULL;
    for (int k = 0; k < i; k++)
    {
        if (strcasecmp(column->name, a->columns[k].name) == 0)
            return oj_fail(err, OJ_ERR_ARG,
                           "-agg: two columns would be called '%s'; name one "
                           "of them, as in \"%s as NAME\"",
                           column->name, oj_aggregate_name(what->kind));
    }
    return OJ_OK;
}

static oj_status bind(struct oj_aggregation *a, struct oj_source *join, int i,
                      struct oj_error *err)
{
    const struct oj_aggregate_word *word = &a->list.word[i];
    struct oj_aggregate *what = &a->aggregates[i];
    enum oj_value_form form;
    OGRFieldDefnH field;
    int place;
    what->kind = word->kind;
    what->separator = word->separator;
    if (word->field == NULL)
        return define_column(a, i, NULL, err);
    OJ_TRY(oj_source_need_field(join, word->field, "agg", &place, err));
    field = OGR_FD_GetFieldDefn(OGR_L_GetLayerDefn(join->layer),
                                join->fields[place]);
    OJ_TRY(choose_form(word, OGR_Fld_GetType(field), &form, err));
    OJ_TRY(find_way(a, place, field, form, &what->column, err));
    return define_column(a, i, field, err);
}

static int is_of_points(const struct oj_source *join)
{
    OGRwkbGeometryType type = wkbFlatten(join->type);
    return type == wkbPoint || type == wkbMultiPoint;
}

/* ---- open --------------------------------------------------------------- */

static oj_status check_command(const struct oj_command *command,
                               struct oj_error *err)
{
    if (command->how != OJ_HOW_LEFT && command->how != OJ_HOW_INNER)
        return oj_fail(err, OJ_ERR_ARG,
                       "-agg gives one row for each input row: -how can be "
                       "left, or inner for those with pairs only");
    if (command->name_count != NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "-agg names its columns itself: write \"count as %s\"",
                       command->name_count);
    return OJ_OK;
}

/* Beside the output, whose disk has to have room anyway. */
static int open_scratch(void *user)
{
    const struct oj_aggregation *a = user;
    struct oj_temporary_file file = {0};
    struct oj_error error;
    const char *near = a->command->dst;
    if (near == NULL)
        near = a->command->input.dataset;
    if (oj_temporary_file_open(near, "data", &file, &error) != OJ_OK)
        return -1;
    return file.descriptor;
}

static oj_status make(struct oj_aggregation *a, struct oj_source *join,
                      struct oj_error *err)
{
    int64_t n;
    OJ_TRY(check_command(a->command, err));
    OJ_TRY(oj_aggregate_list_parse(a->command->aggregates, &a->list, err));
    n = a->list.n;
    a->aggregates = oj_calloc(n, sizeof *a->aggregates);
    a->columns = oj_calloc(n, sizeof *a->columns);
    a->ways = oj_calloc(n, sizeof *a->ways);
    a->types = oj_calloc(n, sizeof *a->types);
    a->block = oj_calloc(1, sizeof *a->block);
    if (a->aggregates == NULL || a->columns == NULL || a->ways == NULL ||
        a->types == NULL || a->block == NULL)
        return oj_fail_nomem(err, n, sizeof *a->ways);
    for (int i = 0; i < (int)n; i++)
    {
        enum oj_aggregate_kind kind;
        OJ_TRY(bind(a, join, i, err));
        kind = a->aggregates[i].kind;
        if (kind == OJ_AGG_WEIGHTED_SUM)
            a->needs_overlap = !is_of_points(join);
        a->needs_places |= kind == OJ_AGG_FIRST || kind == OJ_AGG_LAST ||
                           kind == OJ_AGG_CONCAT;
    }
    a->files.open = open_scratch;
    a->files.user = a;
    a->plan.aggregates = a->aggregates;
    a->plan.n_aggregates = (int)n;
    a->plan.types = a->types;
    a->plan.n_columns = a->n_ways;
    a->plan.memory = a->command->memory / MEMORY_SHARE;
    if (a->plan.memory == 0 && a->command->memory > 0)
        a->plan.memory = 1;
    a->plan.files = &a->files;
    return oj_aggregates_open(&a->plan, &a->state, err);
}

oj_status oj_aggregation_open(const struct oj_command *command,
                              struct oj_source *join,
                              struct oj_aggregation **out, struct oj_error *err)
{
    struct oj_aggregation *a = oj_calloc(1, sizeof *a);
    oj_status status;
    if (a == NULL)
        return oj_fail_nomem(err, 1, sizeof *a);
    a->command = command;
    status = make(a, join, err);
    if (status == OJ_OK)
        *out = a;
    else
        oj_aggregation_close(a);
    return status;
}

void oj_aggregation_close(struct oj_aggregation *a)
{
    if (a == NULL)
        return;
    oj_aggregates_close(a->state);
    for (int i = 0; i < a->n_ways; i++)
        oj_value_way_free(&a->ways[i]);
    oj_matches_free(&a->rows);
    oj_aggregates_close(a->sums);
    oj_aggregate_columns_free(&a->summed);
    if (a->block != NULL)
        oj_aggregate_columns_free(&a->block->columns);
    oj_free(a->block);
    oj_free(a->types);
    oj_free(a->ways);
    oj_free(a->columns);
    oj_free(a->aggregates);
    oj_aggregate_list_free(&a->list);
    oj_free(a);
}

const struct oj_own_column *
oj_aggregation_columns(const struct oj_aggregation *a, int *n)
{
    *n = (int)a->list.n;
    return a->columns;
}

int oj_aggregation_needs_overlap(const struct oj_aggregation *a)
{
    return a->needs_overlap;
}

/* ---- adding ------------------------------------------------------------- */

/* What part of the join feature the pair's input feature has: of its area, or
 * of its length where it has no polygons; a point is there as a whole. */
static double share_of(const struct oj_flat *flat, int32_t feature,
                       const struct oj_pair_values *values, int64_t entry)
{
    unsigned kinds = oj_flat_kinds(flat, feature);
    double whole, part;
    if ((kinds & OJ_PART_POLYGON) != 0)
    {
        whole = values->value[OJ_PAIR_JOIN_AREA][entry];
        part = values->value[OJ_PAIR_OVERLAP_AREA][entry];
    }
    else if ((kinds & OJ_PART_LINE) != 0)
    {
        whole = oj_flat_length(flat, feature);
        part = values->value[OJ_PAIR_OVERLAP_LENGTH][entry];
    }
    else
        return 1.0;
    if (isnan(part))
        return 0.0; /* GEOS could not say; the stage counts these */
    if (!(part < whole))
        return 1.0;
    return part / whole;
}

/* Hands over the pairs that are waiting. */
static oj_status flush(struct oj_aggregation *a, struct oj_error *err)
{
    struct block *block = a->block;
    const int64_t n = block->n_features;
    struct oj_aggregate_pairs pairs = {0};
    pairs.n = block->n_pairs;
    block->n_features = block->n_pairs = 0;
    if (pairs.n == 0)
        return OJ_OK;
    OJ_TRY(oj_aggregate_columns_read(&block->columns, a->ways, a->n_ways,
                                     block->source, 0, n, block->feature, err));
    for (int64_t i = 0; a->needs_places && i < n; i++)
    {
        int32_t feature = block->feature[i];
        block->places[i] = block->ordinal != NULL
                               ? block->ordinal[feature]
                               : block->first_place + feature;
        block->fids[i] =
            block->fid != NULL ? block->fid[feature] : block->places[i];
    }
    pairs.row = block->row;
    pairs.at = block->at;
    pairs.columns = block->columns.column;
    pairs.fid = block->fids;
    pairs.place = block->places;
    pairs.share = a->needs_overlap ? block->share : NULL;
    return oj_aggregates_add(a->state, &pairs, err);
}

static inline oj_status put(struct oj_aggregation *a, int64_t row,
                            int32_t feature, double share, struct oj_error *err)
{
    struct block *block = a->block;
    if (block->n_features == 0 ||
        block->feature[block->n_features - 1] != feature)
    {
        if (block->n_features == BLOCK_FEATURES)
            OJ_TRY(flush(a, err));
        block->feature[block->n_features++] = feature;
    }
    block->row[block->n_pairs] = row;
    block->at[block->n_pairs] = (int32_t)block->n_features - 1;
    block->share[block->n_pairs++] = share;
    return block->n_pairs < BLOCK_PAIRS ? OJ_OK : flush(a, err);
}

/* What is still there after a failure is not of this source. */
static void start_block(struct block *block, const struct oj_table *table,
                        const struct oj_attributes *attributes,
                        const int64_t *fid)
{
    block->source.table = table;
    block->source.attributes = attributes;
    block->fid = fid;
    block->ordinal = NULL;
    block->first_place = 0;
    block->n_features = block->n_pairs = 0;
}

oj_status oj_aggregation_keep(struct oj_aggregation *a, int64_t first,
                              const struct oj_matches *matches,
                              const struct oj_answer_side *side,
                              const struct oj_pair_values *values,
                              struct oj_error *err)
{
    if (a->needs_overlap &&
        (values == NULL || values->value[OJ_PAIR_OVERLAP_AREA] == NULL ||
         values->value[OJ_PAIR_JOIN_AREA] == NULL ||
         values->value[OJ_PAIR_OVERLAP_LENGTH] == NULL))
        return oj_fail(err, OJ_ERR_INTERNAL, "there are no overlaps");
    OJ_TRY(oj_aggregates_extend(a->state, first + matches->n_rows, err));
    start_block(a->block, side->table, NULL, side->flat.fid);
    a->block->ordinal = side->ordinal;
    for (int64_t row = 0; row < matches->n_rows; row++)
    {
        int64_t end = oj_matches_end(matches, row);
        for (int64_t p = oj_matches_first(matches, row); p < end; p++)
        {
            int32_t feature = matches->join_row[p];
            OJ_TRY(put(a, first + row, feature,
                       a->needs_overlap
                           ? share_of(&side->flat, feature, values, p)
                           : 1.0,
                       err));
        }
    }
    return flush(a, err);
}

oj_status oj_aggregation_answer(struct oj_aggregation *a,
                                const struct oj_matches *matches,
                                const struct oj_answer_side *side,
                                const struct oj_pair_values *values,
                                const struct oj_matches **rows,
                                struct oj_error *err)
{
    OJ_TRY(oj_aggregates_start(a->state, matches->n_rows, err));
    OJ_TRY(oj_aggregation_keep(a, 0, matches, side, values, err));
    OJ_TRY(oj_aggregates_rewind(a->state, err));
    a->first_row = 0;
    OJ_TRY(oj_aggregation_rows(a, 0, matches->n_rows, &a->rows, err));
    *rows = &a->rows;
    return OJ_OK;
}

oj_status oj_aggregation_start(struct oj_aggregation *a, int64_t n_rows,
                               struct oj_error *err)
{
    a->n_rows = n_rows;
    a->shared = NULL;
    oj_aggregates_close(a->sums);
    a->sums = NULL;
    return oj_aggregates_start(a->state, n_rows, err);
}

int oj_aggregation_takes_sums(const struct oj_aggregation *a)
{
    return oj_aggregates_take_sums(a->state);
}

/* What came by shared lists goes to the rows on them. */
static oj_status merge_lists(struct oj_aggregation *a, struct oj_error *err)
{
    for (int64_t l = 1; a->shared != NULL && l < a->shared->n; l++)
    {
        for (int64_t i = a->shared->offset[l]; i < a->shared->offset[l + 1];
             i++)
            OJ_TRY(oj_aggregates_merge(a->state, a->shared->feature[i],
                                       a->state, a->n_rows + l, err));
    }
    a->shared = NULL;
    return OJ_OK;
}

static oj_status merge_sums(struct oj_aggregation *a, struct oj_error *err)
{
    for (int64_t row = 0; a->sums != NULL && row < a->n_rows; row++)
        OJ_TRY(oj_aggregates_merge(a->state, row, a->sums, row, err));
    oj_aggregates_close(a->sums);
    a->sums = NULL;
    return OJ_OK;
}

oj_status oj_aggregation_finish(struct oj_aggregation *a, struct oj_error *err)
{
    OJ_TRY(merge_lists(a, err));
    OJ_TRY(merge_sums(a, err));
    return oj_aggregates_rewind(a->state, err);
}

/* ---- reading ------------------------------------------------------------ */

oj_status oj_aggregation_rows(const struct oj_aggregation *a, int64_t first,
                              int64_t n, struct oj_matches *out,
                              struct oj_error *err)
{
    OJ_TRY(oj_matches_reserve(out, n, n, 0, err));
    for (int64_t i = 0; i < n; i++)
    {
        int64_t n_pairs = oj_aggregates_pairs(a->state, first + i);
        out->join_row[i] = n_pairs > 0 ? 0 : -1;
        out->measure[i] = (double)NAN;
        out->n_pairs += n_pairs;
        out->n_matched += n_pairs > 0;
    }
    return OJ_OK;
}

void oj_aggregation_set_first_row(struct oj_aggregation *a, int64_t first)
{
    a->first_row = first;
}

oj_status oj_aggregation_value(void *user, int source, int64_t row,
                               struct oj_value *value, struct oj_error *err)
{
    struct oj_aggregation *a = user;
    const struct oj_aggregate *what = &a->aggregates[source];
    struct oj_aggregate_value result;
    struct oj_error why;
    oj_status status = oj_aggregates_result(a->state, a->first_row + row,
                                            source, &result, &why);
    if (status != OJ_OK)
        return oj_fail(err, status, "-agg: column '%.200s': %.700s",
                       a->columns[source].name, why.message);
    oj_value_of_result(
        &result,
        oj_aggregate_type(what->kind, what->kind != OJ_AGG_COUNT
                                          ? a->types[what->column]
                                          : OJ_AGG_INTEGER),
        a->columns[source].type, value);
    return OJ_OK;
}

/* ---- the join layer streamed: which way -------------------------------- */

struct oj_aggregate_stream
{
    struct oj_job *job;
    struct oj_aggregation *aggregation;

    struct oj_join_side input; /* all of it, but for its engine: the job's */
    struct oj_point_order order[OJ_PIPELINE_SLOTS]; /* of join features */
    double join_s; /* of all that was done with them */
};

static int reads_once(const struct oj_source *source)
{
    return strncmp(source->side->dataset, "/vsistdin", 9) == 0;
}

/* The k of nearest belong to input rows; the overlaps behind weighted sums are
 * computed for input rows; the reference joins input rows. */
static int may_stream_join(const struct oj_job *job,
                           const struct oj_aggregation *aggregation)
{
    return job->relation.op != OJ_OP_NEAREST &&
           job->relation.metric == OJ_METRIC_PLANAR &&
           !oj_aggregation_needs_overlap(aggregation) &&
           job->command->validate == NULL && job->command->n_windows == 0 &&
           job->command->unmatched_join_layer == NULL &&
           !reads_once(&job->input);
}

int oj_aggregate_streams_join(const struct oj_job *job,
                              const struct oj_aggregation *aggregation)
{
    const char *wish = CPLGetConfigOption("OGRJOIN_AGG_STREAM", "");
    int64_t n_input, n_join;
    if (!may_stream_join(job, aggregation))
        return 0;
    if (strcasecmp(wish, "join") == 0)
        return 1;
    if (strcasecmp(wish, "input") == 0)
        return 0;
    n_input = oj_source_count(&job->input, job->command->limit);
    n_join = oj_source_count(&job->join, -1);
    return n_input >= 0 && n_join > n_input;
}

/* ---- the input layer, indexed ------------------------------------------- */

static oj_status index_input(struct oj_aggregate_stream *s,
                             struct oj_error *err)
{
    struct oj_job *job = s->job;
    struct oj_options options = oj_job_options(job->command);
    struct oj_relation exchanged = oj_relation_transpose(&job->relation);
    int64_t n_input = oj_source_count(&job->join, -1);
    exchanged.any_order = 1;
    exchanged.share_lists = oj_aggregates_can_merge(s->aggregation->state);
    options.n_input = options.n_expected = n_input > 0 ? n_input : 0;
    return oj_join_open(&s->input.flat, &exchanged, job->command->backend,
                        &options, &job->join_side->engine, err);
}

/* ---- the join layer, streamed ------------------------------------------- */

/* Runs on the reader thread. */
static oj_status read_features(void *user, int slot, struct oj_flat *flat,
                               struct oj_error *err)
{
    struct oj_aggregate_stream *s = user;
    OJ_TRY(oj_job_read_batch(s->job, slot, flat, err));
    if (flat->n_features == 0)
        return OJ_OK;
    return oj_point_order_apply(&s->order[slot], flat, err);
}

/* Of a part, in the order of its points; NULL: as read. */
static const int32_t *order_of(const struct oj_aggregate_stream *s,
                               const struct oj_pipeline_part *part)
{
    const struct oj_point_order *order = &s->order[part->slot];
    return order->n > 0 ? order->row : NULL;
}

/* Summed by the join without pairs; *n_pairs: how many they are. On another
 * thread than add_pairs(). OJ_ERR_UNSUPPORTED: the join has to give pairs. */
static oj_status sum_pairs(struct oj_aggregation *a, struct oj_join *join,
                           const struct oj_flat *flat,
                           const struct oj_batch *batch, int64_t first,
                           const int32_t *order, int64_t *n_pairs,
                           struct oj_error *err)
{
    const struct oj_row_values source = {NULL, batch->attributes};
    if (!oj_aggregates_take_sums(a->state) ||
        (a->n_ways > 0 && !oj_join_sums(join, flat)))
        return oj_fail(err, OJ_ERR_UNSUPPORTED, "pairs are not summed");
    if (a->sums == NULL)
    {
        OJ_TRY(oj_aggregates_open(&a->plan, &a->sums, err));
        OJ_TRY(oj_aggregates_start(a->sums, a->n_rows, err));
    }
    OJ_TRY(oj_aggregate_columns_read(&a->summed, a->ways, a->n_ways, source,
                                     first, flat->n_features, order, err));
    return oj_join_sum_pairs(join, flat, a->summed.column, a->sums, n_pairs,
                             err);
}

/* Runs on the join thread. Pairs that are summed are none of the answer, but in
 * its number. */
static oj_status join_features(void *user, const struct oj_pipeline_part *part,
                               struct oj_matches *out, struct oj_error *err)
{
    struct oj_aggregate_stream *s = user;
    struct oj_join *join = s->job->join_side->engine;
    int64_t n = part->flat->n_features, n_pairs = 0;
    oj_status status = sum_pairs(s->aggregation, join, part->flat,
                                 &s->job->batches[part->slot], part->first_row,
                                 order_of(s, part), &n_pairs, err);
    if (status == OJ_ERR_UNSUPPORTED)
        return oj_join_batch(join, part->flat, out, err);
    OJ_TRY(status);
    OJ_TRY(oj_matches_reserve(out, n, 0, 1, err));
    memset(out->offset, 0, (size_t)(n + 1) * sizeof *out->offset);
    out->n_pairs = n_pairs;
    return OJ_OK;
}

/* Runs on the calling thread. */
static oj_status add_pairs(void *user, const struct oj_pipeline_part *part,
                           const struct oj_matches *matches,
                           struct oj_error *err)
{
    const struct oj_aggregate_stream *s = user;
    struct oj_aggregation *a = s->aggregation;
    const struct oj_batch *batch = &s->job->batches[part->slot];
    const int32_t *order = order_of(s, part);
    if (matches->shared == NULL && matches->n_entries == 0)
        return OJ_OK;
    if (matches->shared != NULL)
    {
        a->shared = matches->shared;
        OJ_TRY(oj_aggregates_extend(a->state, a->n_rows + a->shared->n, err));
    }
    start_block(a->block, NULL, batch->attributes, batch->flat.fid);
    a->block->first_place = batch->first_row;
    for (int64_t i = 0; i < matches->n_rows; i++)
    {
        int64_t at = part->first_row + i, end = oj_matches_end(matches, i);
        int32_t feature = order != NULL ? order[at] : (int32_t)at;
        if (matches->shared != NULL && matches->list[i] > 0)
            OJ_TRY(put(a, a->n_rows + matches->list[i], feature, 1.0, err));
        for (int64_t p = oj_matches_first(matches, i); p < end; p++)
            OJ_TRY(put(a, matches->join_row[p], feature, 1.0, err));
    }
    return flush(a, err);
}

static int show_streaming(int64_t n_rows, void *user)
{
    const struct oj_aggregate_stream *s = user;
    return oj_job_show_progress(s->job, n_rows);
}

static void on_thread(void *user, void (*stages)(struct oj_pipeline *),
                      struct oj_pipeline *pipeline)
{
    const struct oj_aggregate_stream *s = user;
    oj_job_on_thread(s->job, stages, pipeline);
}

static oj_status stream_join(struct oj_aggregate_stream *s,
                             struct oj_error *err)
{
    struct oj_job *job = s->job;
    struct oj_read_options reading = oj_job_read_options(job, &job->join);
    const struct oj_pipeline_work work = {
        read_features,    join_features,          show_streaming, on_thread, s,
        oj_cancel_flag(), job->command->max_pairs};
    const struct oj_pipeline_sink sink = {add_pairs, s};
    oj_status status;
    reading.keep_attributes = 1;
    reading.fields_only = 1;
    job->streams = OJ_STREAMS_JOIN;
    job->n_expected = job->show_progress ? oj_source_count(&job->join, -1) : -1;
    job->progress_share = STREAM_SHARE;
    OJ_TRY(oj_job_open_reader(job, &job->join, &reading, err));
    status = oj_pipeline_run(&work, &sink, &job->counts, err);
    job->join_side->counts = *oj_layer_reader_counts(job->reader);
    if (status != OJ_OK)
        return oj_message_add_reason(status, err);
    return oj_source_check_count(&job->join, -1, job->join_side->counts.n_rows,
                                 err);
}

static void free_orders(struct oj_aggregate_stream *s)
{
    for (int i = 0; i < OJ_PIPELINE_SLOTS; i++)
        oj_point_order_free(&s->order[i]);
}

/* What follows is the input layer, read again. */
static void end_streaming(struct oj_aggregate_stream *s)
{
    struct oj_job *job = s->job;
    oj_job_end_reading(job);
    free_orders(s);
    job->streams = OJ_STREAMS_AS_READ;
    job->n_expected = s->input.flat.n_features;
    job->progress_start = STREAM_SHARE;
    job->progress_share = 1.0 - STREAM_SHARE;
    s->join_s = job->counts.join_s + job->counts.write_s;
}

static oj_status fill(struct oj_aggregate_stream *s, struct oj_error *err)
{
    struct oj_job *job = s->job;
    OJ_TRY(oj_job_read_side(job, 0, &s->input, oj_is_cancelled_at, NULL, err));
    OJ_TRY(index_input(s, err));
    OJ_TRY(oj_aggregation_start(s->aggregation, s->input.flat.n_features, err));
    OJ_TRY(stream_join(s, err));
    job->join_side->read_s = s->input.read_s + job->counts.read_s;
    end_streaming(s);
    return OJ_OK;
}

oj_status oj_aggregate_stream_open(struct oj_job *job,
                                   struct oj_aggregation *aggregation,
                                   struct oj_aggregate_stream **out,
                                   struct oj_error *err)
{
    struct oj_aggregate_stream *s = oj_calloc(1, sizeof *s);
    oj_status status;
    if (s == NULL)
        return oj_fail_nomem(err, 1, sizeof *s);
    s->job = job;
    s->aggregation = aggregation;
    status = fill(s, err);
    if (status == OJ_OK)
        *out = s;
    else
        oj_aggregate_stream_close(s);
    return status;
}

/* ---- the input layer, written ------------------------------------------- */

oj_status oj_aggregate_stream_join(const struct oj_aggregate_stream *s,
                                   const struct oj_pipeline_part *part,
                                   struct oj_matches *out, struct oj_error *err)
{
    int64_t n = part->flat->n_features;
    int64_t first = s->job->batches[part->slot].first_row + part->first_row;
    if (first + n > s->input.flat.n_features ||
        memcmp(part->flat->fid, s->input.flat.fid + first,
               (size_t)n * sizeof *s->input.flat.fid) != 0)
        return oj_fail(err, OJ_ERR_DATA,
                       "the input layer '%s' changed while it was read",
                       s->job->input.name);
    return oj_aggregation_rows(s->aggregation, first, n, out, err);
}

oj_status oj_aggregate_stream_end(struct oj_aggregate_stream *s,
                                  oj_status status, struct oj_error *err)
{
    struct oj_job *job = s->job;
    job->counts.join_s = s->join_s;
    if (status == OJ_OK && job->counts.n_rows != s->input.flat.n_features)
        return oj_fail(err, OJ_ERR_DATA,
                       "the input layer '%s' changed while it was read",
                       job->input.name);
    return oj_job_end_input(job, status, err);
}

void oj_aggregate_stream_close(struct oj_aggregate_stream *s)
{
    if (s == NULL)
        return;
    oj_job_end_reading(s->job);
    free_orders(s);
    oj_join_close(s->job->join_side->engine);
    s->job->join_side->engine = NULL;
    s->job->streams = OJ_STREAMS_INPUT;
    oj_join_side_free(&s->input);
    oj_free(s);
}
