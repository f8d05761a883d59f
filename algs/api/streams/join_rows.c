#include "../../ogrjoin.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../arrow/oj_arrow_plain_values.h"
#include "../engine/oj_batch_parts.h"
#include "../library/api_join_crs.h"
#include "../rows/oj_aggregate_words.h"
#include "../rows/oj_rows_per_input.h"
#include "rows_output.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Joins two Arrow streams into a stream of rows.
 *
 *   join side --read--> struct ogrjoin_rows --> struct rows_index, kept for
 *                                                joins with equal settings
 *   input --batch--> layer --part--> pairs --picked, measured--> places
 *                                                 --> record batches
 */

enum
{
    MOST_PLACES = 1 << 16,      /* maximum rows of a record batch */
    MOST_BATCH_ROWS = 1 << 20,  /* maximum input rows joined together */
    LEAST_BATCH_ROWS = 1 << 14, /* minimum input rows of a batch for each
                                   thread, see choose_batch_rows() */
    KEPT_ROWS = 1 << 18,        /* after a batch of more rows, its working
                                   memory is freed before rows are output */
    MOST_PART_PAIRS = 1 << 22,  /* maximum pairs of a part */
    MOST_SAFE_PAIRS = 5 << 20 /* maximum pairs of a part if each row has at most
                                 k: those of the 5 nearest of MOST_BATCH_ROWS */
};

/* ---- the join side ------------------------------------------------------- */

/* The join side with an index for particular settings. Reference-counted. */
struct rows_index
{
    atomic_int n_users;
    struct ogrjoin_settings *settings; /* all settings, completed; distances are
                                          in the unit of the CRS */
    struct rows_side side;             /* which columns of the join side have
                                          which role */
    struct ogrjoin_layer *layer;
    struct ogrjoin_index *index;
    struct rows_classes_of_values classes;
};

struct ogrjoin_rows
{
    atomic_int n_users;
    struct ArrowSchema schema;
    struct rows_chunks chunks;
    struct ogrjoin_settings *settings;
    pthread_mutex_t lock;
    struct rows_index *kept; /* index of the last join, for the next; NULL:
                                none. Holds a reference */

    /* Features of the join side, and the settings that they were read with. A
     * join whose settings would read equal features reuses them. */
    struct ogrjoin_layer *layer;
    struct ogrjoin_settings *read_with;
};

static void release_index_reference(struct rows_index *index)
{
    if (index == NULL || atomic_fetch_sub(&index->n_users, 1) > 1)
        return;
    ogrjoin_index_free(index->index);
    ogrjoin_layer_free(index->layer);
    for (int i = 0; i < ROWS_N_CLASSES; i++)
    {
        oj_value_classes_free(&index->classes.classes[i]);
        oj_free(index->classes.comparison[i]);
    }
    rows_side_free(&index->side);
    ogrjoin_settings_free(index->settings);
    oj_free(index);
}

void ogrjoin_rows_free(struct ogrjoin_rows *rows)
{
    if (rows == NULL || atomic_fetch_sub(&rows->n_users, 1) > 1)
        return;
    release_index_reference(rows->kept);
    ogrjoin_layer_free(rows->layer);
    ogrjoin_settings_free(rows->read_with);
    rows_chunks_free(&rows->chunks);
    oj_arrow_schema_release(&rows->schema);
    ogrjoin_settings_free(rows->settings);
    pthread_mutex_destroy(&rows->lock);
    oj_free(rows);
}

int64_t ogrjoin_rows_count(const struct ogrjoin_rows *rows)
{
    return rows_chunks_count_rows(&rows->chunks);
}

/* Reads all arrays of a stream. If the CRS of the side or the type of its
 * geometries depends on the rows, takes them from the first array
 * with a geometry. */
static oj_status read_chunks(struct ArrowArrayStream *stream,
                             struct rows_side *side,
                             const struct ogrjoin_settings *settings,
                             struct rows_chunks *chunks, struct oj_error *err)
{
    for (;;)
    {
        struct ArrowArray array;
        oj_status status = OJ_OK;
        OJ_TRY(oj_check_cancel(settings->options.cancel, err));
        OJ_TRY(api_stream_next(stream, &array, err));
        if (array.release == NULL)
            return OJ_OK;
        if (array.length > 0 && (chunks->n == 0 || !side->srid.is_found) &&
            rows_side_depends_on_rows(side))
            status = rows_side_read_first_array(
                side, settings, &array, rows_chunks_count_rows(chunks), err);
        if (status == OJ_OK && array.length > 0)
            OJ_TRY(rows_chunks_add(chunks, side, &array, 0, err));
        else
            oj_arrow_array_release(&array);
        OJ_TRY(status);
    }
}

/* Finds the roles of columns (geometry, ids ..) for these settings, on a copy
 * of the schema. */
static oj_status find_columns_of_side(const struct ogrjoin_rows *rows,
                                      const struct ogrjoin_settings *settings,
                                      struct rows_side *side,
                                      struct oj_error *err)
{
    struct ArrowSchema copy;
    oj_status status = oj_arrow_schema_copy(&rows->schema, NULL, &copy, err);
    if (status != OJ_OK)
    {
        oj_arrow_schema_release(&copy);
        return status;
    }
    return rows_side_open(&copy, API_SIDE_RIGHT, settings, side, err);
}

static oj_status read_join_side(struct ogrjoin_rows *rows,
                                struct ArrowArrayStream *stream,
                                struct oj_error *err)
{
    struct rows_side side;
    oj_status status;
    OJ_TRY(api_settings_check_rows(rows->settings, err));
    OJ_TRY(api_stream_schema(stream, &rows->schema, err));
    OJ_TRY(find_columns_of_side(rows, rows->settings, &side, err));
    status = read_chunks(stream, &side, rows->settings, &rows->chunks, err);
    if (status == OJ_OK)
    {
        /* side.schema describes the chunks as they are now: geometries as WKB,
         * and a CRS that may come from their SRID */
        oj_arrow_schema_release(&rows->schema);
        rows->schema = side.schema;
        side.schema.release = NULL;
    }
    rows_side_free(&side);
    return status;
}

static oj_status read_rows_of_stream(struct ArrowArrayStream *stream,
                                     const struct ogrjoin_settings *settings,
                                     struct ogrjoin_rows **out,
                                     struct oj_error *err)
{
    struct ogrjoin_rows *rows;
    oj_status status;
    OJ_NEW_ZEROED(rows, 1, err);
    atomic_init(&rows->n_users, 1);
    pthread_mutex_init(&rows->lock, NULL);
    status = api_settings_copy(settings, &rows->settings, err);
    if (status == OJ_OK)
        status = read_join_side(rows, stream, err);
    if (status == OJ_OK)
        *out = rows;
    else
        ogrjoin_rows_free(rows);
    return status;
}

/* ---- settings of a join -------------------------------------------------- */

static oj_status set_exclusions_of_relation(struct ogrjoin_settings *s,
                                            struct oj_error *err)
{
    const char *at = api_setting_text_as_given(s, "exclude");
    while (at != NULL && at[0] != '\0')
    {
        const char *end = rows_exclusion_end(at);
        size_t n = (size_t)(end - at);
        if (n == 4 && strncasecmp(at, "self", n) == 0)
            s->relation.exclude_self = 1;
        else if (n == 13 && strncasecmp(at, "same_geometry", n) == 0)
            s->relation.exclude_same_geometry = 1;
        else if (strncasecmp(at, "field=", 6) != 0)
            return oj_fail(err, OJ_ERR_ARG,
                           "exclude is self, same_geometry or field=F, with "
                           "commas between them, not \"%.60s\"",
                           at);
        at = end + (*end == ',');
    }
    return OJ_OK;
}

/* Sets the conditions within_time and during of the relation, and how the
 * columns of both sides are read. */
static oj_status read_span_conditions(struct ogrjoin_settings *s,
                                      const struct rows_side *input,
                                      const struct rows_side *join,
                                      struct oj_span_reading *out,
                                      struct oj_error *err)
{
    const struct rows_side *const side[2] = {input, join};
    struct oj_span_words words[OJ_MOST_SPANS];
    oj_status status =
        api_settings_parse_spans(s, words, &s->relation.n_spans, err);
    for (int i = 0; i < s->relation.n_spans && status == OJ_OK; i++)
    {
        enum oj_span_field kind[2][2];
        for (int f = 0; f < 4; f++)
            kind[f / 2][f % 2] = oj_field_kind_span(
                rows_side_field(side[f / 2], side[f / 2]->span[i][f % 2]).kind);
        s->relation.spans[i] = words[i].condition;
        status = oj_span_reading_plan(&words[i], kind, &out[i], err);
    }
    for (int i = 0; i < OJ_MOST_SPANS; i++)
        oj_span_words_free(&words[i]);
    return status;
}

static oj_status read_heading_condition(struct ogrjoin_settings *s,
                                        struct oj_error *err)
{
    struct oj_heading_condition *heading = &s->relation.heading;
    char *name;
    OJ_TRY(api_settings_parse_heading(s, &name, &heading->tolerance, err));
    heading->is_asked = name != NULL;
    oj_free(name);
    return OJ_OK;
}

/* Converts the user's distances to the unit of the join. *scale: factor for
 * distances that are in a column. */
static oj_status convert_distances(struct ogrjoin_settings *s,
                                   const struct rows_side *input,
                                   const struct rows_side *join, double *scale,
                                   struct oj_error *err)
{
    const struct rows_side *by_column = input->max_distance >= 0 ? input : join;
    const struct api_side_crs left = {input->crs_words, input->crs,
                                      rows_side_has_shapes(input)};
    const struct api_side_crs right = {join->crs_words, join->crs,
                                       rows_side_has_shapes(join)};
    struct oj_distance_frame frame;
    struct oj_crs_text crs;
    OJ_TRY(api_join_crs_choose(s, &left, &right, &crs, err));
    frame = api_join_crs_distance_frame(s, &crs);
    *scale = 1.0;
    if (by_column->max_distance >= 0)
        OJ_TRY(oj_distance_scale(
            &frame,
            by_column == input ? "max_distance_field"
                               : "join_max_distance_field",
            api_setting_text_as_given(s, by_column == input
                                             ? "max_distance_field"
                                             : "join_max_distance_field"),
            by_column->distance_unit, scale, err));
    return api_join_crs_convert_distances(s, &frame, err);
}

/* Fails if the values of the k-th column that on or exclude names cannot be
 * compared. */
static oj_status check_compared_column(const struct rows_side *side,
                                       enum rows_classes which, int k,
                                       struct oj_error *err)
{
    const struct oj_field_description field =
        rows_side_field(side, side->compared[which][k]);
    if (oj_field_kind_is_compared(field.kind))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_UNSUPPORTED,
                   "%s: column \"%.100s\" of the %s side has neither numbers, "
                   "texts, times nor binary values, which alone are compared: "
                   "convert it",
                   which == ROWS_ON ? "on" : "exclude", field.name,
                   rows_side_name(side));
}

static oj_status choose_value_comparisons(const struct rows_side *input,
                                          const struct rows_side *join,
                                          struct rows_classes_of_values *out,
                                          struct oj_error *err)
{
    for (int i = 0; i < ROWS_N_CLASSES; i++)
    {
        int n = input->n_compared[i];
        OJ_NEW(out->comparison[i], n, err);
        for (int k = 0; k < n; k++)
        {
            OJ_TRY(check_compared_column(input, (enum rows_classes)i, k, err));
            OJ_TRY(check_compared_column(join, (enum rows_classes)i, k, err));
            out->comparison[i][k] = oj_value_comparison_of(
                rows_side_field(input, input->compared[i][k]).kind,
                rows_side_field(join, join->compared[i][k]).kind);
        }
    }
    return OJ_OK;
}

/* ---- indexes ------------------------------------------------------------- */

static int are_indexes_alike(const struct rows_index *a,
                             const struct rows_index *b)
{
    const struct oj_relation *in_a = &a->settings->relation;
    const struct oj_relation *in_b = &b->settings->relation;
    for (int i = 0; i < ROWS_N_CLASSES; i++)
    {
        int n = a->side.n_compared[i];
        if (n != b->side.n_compared[i] ||
            (n > 0 && memcmp(a->classes.comparison[i], b->classes.comparison[i],
                             (size_t)n * sizeof **a->classes.comparison) != 0))
            return 0;
    }
    for (int i = 0; i < a->side.n_spans; i++)
    {
        if (a->classes.span[i].scale != b->classes.span[i].scale)
            return 0;
    }
    return in_a->max_distance == in_b->max_distance &&
           in_a->enough_pairs == in_b->enough_pairs &&
           in_a->min_distance == in_b->min_distance &&
           in_a->densify == in_b->densify &&
           api_settings_are_equal_for_pairs(a->settings, b->settings);
}

/* Returns 1 if features that were read with settings a can be used with
 * settings b. */
static int can_features_be_reused_for(const struct ogrjoin_settings *a,
                                      const struct ogrjoin_settings *b)
{
    static const char *const names[] = {"right_column", "right_x", "right_y",
                                        "right_fid",    "similar", "vector",
                                        "along"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    {
        const char *in_a = api_setting_text_as_given(a, names[i]);
        const char *in_b = api_setting_text_as_given(b, names[i]);
        if ((in_a == NULL) != (in_b == NULL) ||
            (in_a != NULL && strcmp(in_a, in_b) != 0))
            return 0;
    }
    return api_compares_only_attributes(&a->relation) ==
           api_compares_only_attributes(&b->relation);
}

/* Reads the features of the join side, unless the layer of the last join can be
 * reused. */
static oj_status read_features(struct ogrjoin_rows *rows,
                               const struct rows_index *index,
                               struct oj_error *err)
{
    struct ogrjoin_layer *layer = NULL;
    struct ogrjoin_settings *settings = NULL;
    oj_status status;
    if (rows->layer != NULL &&
        can_features_be_reused_for(rows->read_with, index->settings))
        return OJ_OK;
    OJ_TRY(rows_side_make_layer(&index->side, &rows->chunks, 0, index->settings,
                                NULL, &layer, err));
    status = api_settings_copy(index->settings, &settings, err);
    if (status != OJ_OK)
    {
        ogrjoin_layer_free(layer);
        return status;
    }
    ogrjoin_layer_free(rows->layer);
    ogrjoin_settings_free(rows->read_with);
    rows->layer = layer;
    rows->read_with = settings;
    return OJ_OK;
}

/* Returns 1 if the caller's own index (may be NULL) can be used for this join.
 * It must be on the CPU, where join_part() limits the pairs of its copies. */
static int can_use_given_index(const struct ogrjoin_index *given,
                               const struct ogrjoin_rows *rows,
                               const struct rows_index *index)
{
    const struct rows_side *side = &index->side;
    return given != NULL && side->fid < 0 && side->max_distance < 0 &&
           side->n_compared[ROWS_ON] == 0 &&
           side->n_compared[ROWS_EXCLUDE] == 0 && side->n_spans == 0 &&
           given->flat.n_features == rows_chunks_count_rows(&rows->chunks) &&
           oj_join_is_on_cpu(given->join) &&
           api_index_matches_settings(given, index->settings);
}

static oj_status build_index(struct ogrjoin_rows *rows,
                             struct rows_index *index, double scale,
                             struct oj_error *err)
{
    static const struct api_pair_settings nothing;
    struct ogrjoin_settings *s = index->settings;
    const struct api_pair_settings pairs = s->pairs;
    const struct api_row_settings asked = s->rows;
    int64_t most = s->options.max_batch_pairs;
    oj_status status;
    OJ_TRY(read_features(rows, index, err));
    OJ_TRY(api_layer_share(rows->layer, &index->layer, err));
    OJ_TRY(rows_side_add_columns_to_layer(&index->side, &rows->chunks,
                                          &index->classes, 1, scale,
                                          index->layer, err));
    s->pairs = nothing; /* the stream computes the values of pairs, not the
                           index */
    s->rows.max_distance.unit = s->rows.min_distance.unit =
        s->rows.densify.unit = OJ_UNIT_CRS;
    s->options.max_batch_pairs = MOST_PART_PAIRS;
    status = api_index_new(index->layer, s, &index->index, err);
    s->pairs = pairs;
    s->rows = asked;
    s->options.max_batch_pairs = most;
    return status;
}

/* Replaces *index by the index of the last join if settings are equal;
 * otherwise builds *index. The caller gets a reference. If `given` (the
 * caller's own index) is used, the result is not kept for later joins. */
static oj_status find_or_build_index(struct ogrjoin_rows *rows,
                                     struct ogrjoin_index *given,
                                     struct rows_index **index, double scale,
                                     struct oj_error *err)
{
    oj_status status = OJ_OK;
    if (can_use_given_index(given, rows, *index))
    {
        atomic_fetch_add(&given->n_users, 1);
        (*index)->index = given;
        return OJ_OK;
    }
    pthread_mutex_lock(&rows->lock);
    if (rows->kept != NULL && are_indexes_alike(rows->kept, *index))
    {
        release_index_reference(*index);
        *index = rows->kept;
    }
    else
    {
        status = build_index(rows, *index, scale, err);
        if (status == OJ_OK)
        {
            release_index_reference(rows->kept);
            rows->kept = *index;
        }
    }
    if (status == OJ_OK)
        atomic_fetch_add(&(*index)->n_users, 1); /* a reference for the caller;
                                                    rows has one already */
    pthread_mutex_unlock(&rows->lock);
    return status;
}

/* ---- a stream of rows ---------------------------------------------------- */

enum stream_state
{
    STREAM_READS,  /* next step: read a batch of the input */
    STREAM_JOINS,  /* next step: join rows of the batch */
    STREAM_GIVES,  /* next step: make a record batch of the rows found */
    STREAM_OTHERS, /* like STREAM_GIVES, for join rows without pairs, after all
                      input */
    STREAM_ENDED
};

struct rows_stream
{
    struct ogrjoin_rows *rows;
    struct ogrjoin_settings *settings; /* all settings, completed */
    double scale;                      /* factor that converts distances in a
                                          column to the unit of the join */
    struct oj_span_reading span[OJ_MOST_SPANS]; /* within_time and during */
    struct ArrowArrayStream source;
    struct rows_side input;
    struct rows_side join; /* roles of the columns for this join */
    struct rows_index *index;
    struct rows_output output;
    struct oj_row_pick pick;
    int64_t *score;
    struct oj_pair_stage *stage; /* computes values and picks; NULL: none are
                                    wanted */
    struct oj_flat join_flat;    /* view of the join side, with its token sets
                                    and vectors */
    uint8_t *is_matched;         /* [join rows] 1: the row has a pair; NULL: not
                                    needed */

    enum stream_state state;
    int source_ended;
    struct oj_arrow_shared *large; /* array that is split over several batches,
                                      or was read ahead; NULL: none */
    int64_t large_at;              /* number of rows of `large` read so far */
    struct rows_chunks chunks;     /* arrays of the current batch */
    struct arrow_reach reach;      /* see are_only_features_in_reach_needed() */
    struct ogrjoin_layer *layer;   /* layer of the current batch */
    struct layer_sets sets;
    struct oj_flat flat;
    int64_t n_before, at; /* number of rows in earlier batches; number of rows
                             of this batch joined so far */
    int64_t n_pairs;      /* number of pairs so far */
    int64_t n_without_span[OJ_MOST_SPANS]; /* input rows without a span so far
                                            */
    struct oj_batch_parts parts;
    struct oj_flat_slice slice;
    struct oj_matches matches, chosen, added_up;
    struct oj_pair_values values;
    struct oj_row_places places;
    struct oj_row_place *place; /* [MOST_PLACES] the rows (places) of the next
                                   record batch */
    int64_t first_place, n_places;
    struct rows_answer answer;

    /* Members for events (setting events); events is NULL without it. */
    struct ogrjoin_events *events;
    int64_t key; /* column of the key in the input */
    int has_text_keys;
    struct oj_pair_values event_values;
    int64_t *key_number; /* keys of the batch: integers, or offsets of texts in
                            key_bytes */
    uint8_t *key_is_null;
    char *key_bytes;
    int64_t cap_key_number, cap_key_is_null, cap_key_bytes;

    struct oj_error error;
    oj_status failed; /* status of the call that failed; OJ_OK: none did */
};

static void close_stream(struct rows_stream *s)
{
    if (s == NULL)
        return;
    if (s->source.release != NULL)
        s->source.release(&s->source);
    oj_arrow_shared_release(s->large);
    oj_pair_stage_close(s->stage);
    rows_output_close(&s->output);
    api_layer_sets_free(&s->sets);
    ogrjoin_layer_free(s->layer);
    rows_chunks_free(&s->chunks);
    oj_reach_mask_free(&s->reach.mask);
    rows_side_free(&s->input);
    rows_side_free(&s->join);
    oj_batch_parts_free(&s->parts);
    oj_flat_slice_free(&s->slice);
    oj_matches_free(&s->matches);
    oj_matches_free(&s->chosen);
    oj_matches_free(&s->added_up);
    oj_pair_values_free(&s->values);
    oj_row_pick_free(&s->pick);
    ogrjoin_events_free(s->events);
    oj_free(s->key_number);
    oj_free(s->key_is_null);
    oj_free(s->key_bytes);
    oj_free(s->score);
    oj_free(s->is_matched);
    oj_free(s->place);
    release_index_reference(s->index);
    ogrjoin_settings_free(s->settings);
    ogrjoin_rows_free(s->rows);
    oj_free(s);
}

/* ---- opening the stream -------------------------------------------------- */

/* Opens the input. Also reads its first array, if the CRS or the type of the
 * geometries depends on the rows. */
static oj_status open_input(struct rows_stream *s, struct oj_error *err)
{
    struct ArrowSchema schema;
    struct ArrowArray array;
    OJ_TRY(api_stream_schema(&s->source, &schema, err));
    OJ_TRY(rows_side_open(&schema, API_SIDE_LEFT, s->settings, &s->input, err));
    while (rows_side_depends_on_rows(&s->input) && s->large == NULL)
    {
        OJ_TRY(oj_check_cancel(s->settings->options.cancel, err));
        OJ_TRY(api_stream_next(&s->source, &array, err));
        if (array.release == NULL)
        {
            s->source_ended = 1;
            return OJ_OK;
        }
        if (array.length == 0)
            oj_arrow_array_release(&array);
        else
            OJ_TRY(oj_arrow_shared_make(&array, &s->large, err));
    }
    if (s->large == NULL)
        return OJ_OK;
    OJ_TRY(rows_side_read_first_array(&s->input, s->settings,
                                      oj_arrow_shared_array(s->large), 0, err));
    s->input.srid.is_found = 1; /* the output has its CRS, or none */
    return OJ_OK;
}

static oj_status read_pick_scores(struct rows_stream *s, struct oj_error *err)
{
    const struct rows_chunks *chunks = &s->rows->chunks;
    int64_t n = rows_chunks_count_rows(chunks), column;
    struct oj_field_description field;
    struct oj_arrow_room room;
    OJ_TRY(
        rows_side_find_column(&s->join, "pick", s->pick.field, &column, err));
    field = rows_side_field(&s->join, column);
    OJ_TRY(oj_row_pick_check_field("", &field, err));
    OJ_NEW(s->score, n, err);
    for (int64_t row = 0; row < n; row++)
    {
        const struct ArrowSchema *schema = s->join.schema.children[column];
        struct oj_plain_value value = {OJ_PLAIN_NULL, 0, 0, NULL, 0};
        int64_t at;
        const struct ArrowArray *array =
            rows_chunks_locate_value(chunks, column, row, &at);
        if (at >= 0 && oj_field_kind_is_time(field.kind))
            OJ_TRY(oj_arrow_time_as_integer(schema, array, at, &value, err));
        else if (at >= 0)
            OJ_TRY(oj_arrow_plain_value(schema, array, at, &room, &value, err));
        s->score[row] = oj_row_pick_score(&s->pick, &value);
    }
    return OJ_OK;
}

static oj_status read_pick(struct rows_stream *s,
                           struct oj_pair_request *request,
                           struct oj_error *err)
{
    const char *rule = api_setting_text_as_given(s->settings, "pick");
    if (rule == NULL)
        return OJ_OK;
    OJ_TRY(oj_row_pick_read("", rule, &s->pick, err));
    request->pick = s->pick.rule;
    return s->pick.field != NULL ? read_pick_scores(s, err) : OJ_OK;
}

static oj_status
open_pair_stage_if_needed(struct rows_stream *s,
                          const struct oj_pair_request *request,
                          struct oj_error *err)
{
    struct oj_pair_side side = {&s->join_flat, &s->join_flat, s->score,
                                oj_join_tie_rank(s->index->index->join)};
    if (!oj_pair_request_is_needed(request))
        return OJ_OK;
    if (request->along_is_m && !s->settings->rows.right_is_part)
        OJ_TRY(oj_row_along_check_m("", "the right side",
                                    oj_flat_m_presence(&s->join_flat), err));
    OJ_TRY(oj_pair_stage_open(request, &s->stage, err));
    return oj_pair_stage_set_join_side(s->stage, &side, err);
}

static oj_status open_aggregates(struct rows_stream *s, const char *agg,
                                 struct oj_pair_request *request,
                                 struct rows_aggregates **out,
                                 struct oj_error *err)
{
    const struct oj_row_column_words names =
        rows_output_column_words(s->settings, request);
    const char *hidden = NULL;
    OJ_TRY(rows_aggregates_open(agg, &names, &s->join, &s->rows->chunks,
                                request->want, &hidden, out, err));
    if (hidden != NULL)
        api_settings_notify(
            s->settings,
            "agg: %s is read from the column of the right side, not from that "
            "of the pairs; rename one of them if you want the other",
            hidden);
    return OJ_OK;
}

static oj_status open_output(struct rows_stream *s, struct oj_error *err)
{
    const struct ogrjoin_settings *all = s->settings;
    struct oj_pair_request request;
    struct rows_aggregates *aggregates = NULL;
    const char *agg = api_setting_text_as_given(all, "agg");
    memset(&request, 0, sizeof request);
    request.relation = s->index->index->settings.relation;
    request.n_threads = api_settings_threads(all);
    request.cancel = all->options.cancel;
    request.along_is_m = all->pairs.along == OJ_ALONG_BY_M;
    if (!oj_how_is_at_most_one_row((enum oj_how)all->rows.how))
        OJ_TRY(read_pick(s, &request, err));
    if (agg != NULL)
        OJ_TRY(open_aggregates(s, agg, &request, &aggregates, err));
    OJ_TRY(rows_output_open(&s->input, &s->join, &s->rows->chunks, all,
                            aggregates, &request, &s->output, err));
    OJ_TRY(open_pair_stage_if_needed(s, &request, err));
    OJ_NEW(s->place, MOST_PLACES, err);
    if (oj_how_has_join_rows((enum oj_how)all->rows.how))
        OJ_NEW_ZEROED(s->is_matched, s->join_flat.n_features, err);
    s->places =
        oj_row_places_make(oj_how_of_input_rows((enum oj_how)all->rows.how));
    return OJ_OK;
}

/* ---- events -------------------------------------------------------------- */

/* Finds the input column with the key, and whether its values are integers or
 * texts. */
static oj_status find_event_key_column(struct rows_stream *s,
                                       struct oj_error *err)
{
    const char *name = api_setting_text_as_given(s->settings, "key");
    enum oj_field_kind kind;
    OJ_TRY(rows_side_find_column(&s->input, "key", name, &s->key, err));
    kind = rows_side_field(&s->input, s->key).kind;
    s->has_text_keys = kind == OJ_FIELD_TEXT;
    if (s->has_text_keys ||
        (oj_field_kind_is_integer(kind) && kind != OJ_FIELD_BOOLEAN))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "key \"%.100s\": keys are integers or texts, and this "
                   "column is neither: name another column, or convert it",
                   name);
}

/* Writes as a text the settings that decide pairs but are not in the relation.
 * A state file contains this text. */
static oj_status
write_conditions_as_text(const struct ogrjoin_settings *settings, char *text,
                         size_t size, struct oj_error *err)
{
    static const char *const names[] = {
        "key",         "on",     "exclude", "max_distance_field",
        "within_time", "during", "heading", "heading_both_ways"};
    size_t n = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    {
        const char *word = api_setting_text_as_given(settings, names[i]);
        if (word == NULL)
            continue;
        n += (size_t)snprintf(text + n, size - n, "%s%s %s", n > 0 ? " " : "",
                              names[i], word);
        if (n >= size)
            return oj_fail(err, OJ_ERR_LIMIT,
                           "the text of the setting %s is too long for events: "
                           "write fewer conditions",
                           names[i]);
    }
    return OJ_OK;
}

static oj_status open_events(struct rows_stream *s, struct oj_error *err)
{
    const char *which = api_setting_text_as_given(s->settings, "events");
    const char *state = api_setting_text_as_given(s->settings, "state");
    char conditions[400] = "";
    int with_stays, is_there;
    if (which == NULL)
        return OJ_OK;
    OJ_TRY(api_events_read_setting(which, &with_stays, err));
    OJ_TRY(find_event_key_column(s, err));
    OJ_TRY(write_conditions_as_text(s->settings, conditions, sizeof conditions,
                                    err));
    OJ_TRY(api_events_new(s->index->index, with_stays, s->has_text_keys,
                          conditions, &s->events, err));
    s->event_values.event_name = oj_event_names;
    if (state == NULL)
        return OJ_OK;
    OJ_TRY(api_events_load(s->events, state, &is_there, err));
    if (!is_there)
        api_settings_notify(s->settings,
                            "the state file %.400s does not exist yet: the "
                            "events begin without earlier rows",
                            state);
    return OJ_OK;
}

static oj_status add_key_text(struct rows_stream *s, int64_t row,
                              const struct oj_plain_value *value,
                              struct oj_error *err)
{
    const int64_t at = s->key_number[row];
    const int64_t n = value->form == OJ_PLAIN_TEXT ? value->n : 0;
    OJ_ROOM(s->key_bytes, at, at + n, s->cap_key_bytes, err);
    if (n > 0)
        memcpy(s->key_bytes + at, value->text, (size_t)n);
    s->key_number[row + 1] = at + n;
    return OJ_OK;
}

/* Reads the keys of n rows of the batch. */
static oj_status read_event_keys(struct rows_stream *s, int64_t first,
                                 int64_t n, struct oj_event_keys *keys,
                                 struct oj_error *err)
{
    const struct ArrowSchema *schema = s->input.schema.children[s->key];
    struct oj_arrow_room room;
    OJ_ROOM(s->key_number, 0, n + 1, s->cap_key_number, err);
    OJ_ROOM(s->key_is_null, 0, n, s->cap_key_is_null, err);
    s->key_number[0] = 0;
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_plain_value value = {OJ_PLAIN_NULL, 0, 0, NULL, 0};
        int64_t at;
        const struct ArrowArray *array =
            rows_chunks_locate_value(&s->chunks, s->key, first + i, &at);
        if (at >= 0)
            OJ_TRY(oj_arrow_plain_value(schema, array, at, &room, &value, err));
        s->key_is_null[i] = value.form == OJ_PLAIN_NULL;
        if (s->has_text_keys)
            OJ_TRY(add_key_text(s, i, &value, err));
        else if (value.form == OJ_PLAIN_REAL)
            return oj_fail(err, OJ_ERR_DATA,
                           "key: the number %.17g in row %lld of the left side "
                           "does not fit into a signed 64-bit integer: convert "
                           "the column to text",
                           value.real, (long long)(first + i));
        else
            s->key_number[i] = value.integer;
    }
    keys->is_null = s->key_is_null;
    keys->integer = s->has_text_keys ? NULL : s->key_number;
    keys->offset = s->has_text_keys ? s->key_number : NULL;
    keys->bytes = s->key_bytes;
    return OJ_OK;
}

/* Replaces *pairs, the pairs of a part, by the events that follow from them. */
static oj_status replace_pairs_by_events(struct rows_stream *s,
                                         const struct oj_flat *part,
                                         int64_t first,
                                         const struct oj_matches **pairs,
                                         struct oj_error *err)
{
    struct oj_event_keys keys = {NULL, NULL, NULL, NULL};
    OJ_TRY(read_event_keys(s, first, part->n_features, &keys, err));
    OJ_TRY(oj_events_add(s->events->events, &keys, part, *pairs,
                         &s->events->rows, err));
    s->event_values.event = s->events->rows.kind;
    s->answer.values = &s->event_values;
    *pairs = &s->events->rows.rows;
    return OJ_OK;
}

static oj_status save_events(const struct rows_stream *s, struct oj_error *err)
{
    const char *state = api_setting_text_as_given(s->settings, "state");
    return s->events != NULL && state != NULL
               ? api_events_save(s->events, state, err)
               : OJ_OK;
}

static oj_status make_rows_index(struct rows_stream *s,
                                 struct ogrjoin_index *given,
                                 struct oj_error *err)
{
    struct rows_index *index;
    oj_status status;
    OJ_NEW_ZEROED(index, 1, err);
    atomic_init(&index->n_users, 1);
    status = api_settings_copy(s->settings, &index->settings, err);
    if (status == OJ_OK)
    {
        index->settings->relation = s->settings->relation;
        status = find_columns_of_side(s->rows, s->settings, &index->side, err);
    }
    if (status == OJ_OK)
        status = choose_value_comparisons(&s->input, &index->side,
                                          &index->classes, err);
    memcpy(index->classes.span, s->span, sizeof s->span);
    if (status == OJ_OK)
        status = find_or_build_index(s->rows, given, &index, s->scale, err);
    if (status == OJ_OK)
        s->index = index;
    else
        release_index_reference(index);
    return status;
}

/* Sets *are_counts to 1 if the setting agg has only numbers of pairs. */
static oj_status find_if_aggregates_are_counts(const struct ogrjoin_settings *s,
                                               int *are_counts,
                                               struct oj_error *err)
{
    const char *agg = api_setting_text_as_given(s, "agg");
    struct oj_aggregate_words words = {0};
    *are_counts = 0;
    if (agg == NULL)
        return OJ_OK;
    OJ_TRY(oj_aggregate_words_parse("", agg, &words, err));
    *are_counts = oj_aggregate_words_are_counts(&words);
    oj_aggregate_words_free(&words);
    return OJ_OK;
}

/* Lets the join list one pair of each row, if the rows need no more. */
static oj_status choose_enough_pairs(struct ogrjoin_settings *s,
                                     struct oj_error *err)
{
    struct oj_row_choice choice = {
        .how = (enum oj_how)s->rows.how,
        .one_to_one = s->pairs.one_to_one,
        .aggregates = api_setting_text_as_given(s, "agg") != NULL,
        .counts_pairs = api_setting_text_as_given(s, "name_count") != NULL};
    int are_counts;
    OJ_TRY(find_if_aggregates_are_counts(s, &are_counts, err));
    choice.takes_first = are_counts || s->pairs.pick == (int)OJ_PICK_FIRST;
    s->relation.enough_pairs =
        api_setting_text_as_given(s, "events") == NULL
            ? (int)oj_rows_per_input_enough_pairs(&s->relation, &choice)
            : (int)OJ_ENOUGH_ALL;
    return OJ_OK;
}

static oj_status join_part(void *user, const struct oj_flat *rows,
                           struct oj_matches *out, struct oj_error *err);

static oj_status open_rows_stream(struct rows_stream *s,
                                  struct ogrjoin_index *given,
                                  struct oj_error *err)
{
    OJ_TRY(api_settings_check_rows(s->settings, err));
    OJ_TRY(set_exclusions_of_relation(s->settings, err));
    OJ_TRY(read_heading_condition(s->settings, err));
    if (api_setting_text_as_given(s->settings, "events") != NULL)
        s->settings->rows.how = OJ_HOW_INNER;
    OJ_TRY(open_input(s, err));
    OJ_TRY(find_columns_of_side(s->rows, s->settings, &s->join, err));
    OJ_TRY(convert_distances(s->settings, &s->input, &s->join, &s->scale, err));
    OJ_TRY(
        read_span_conditions(s->settings, &s->input, &s->join, s->span, err));
    OJ_TRY(choose_enough_pairs(s->settings, err));
    OJ_TRY(make_rows_index(s, given, err));
    s->join_flat = s->index->index->flat;
    s->reach.join_side = &s->join_flat;
    s->parts.most_per_row =
        oj_relation_most_pairs_of_row(&s->index->index->settings.relation);
    s->parts.max_pairs =
        s->parts.most_per_row > 0 ? MOST_SAFE_PAIRS : MOST_PART_PAIRS;
    s->parts.sample =
        oj_join_may_sample(s->index->index->join) ? join_part : NULL;
    s->parts.user = s;
    OJ_TRY(open_output(s, err));
    return open_events(s, err);
}

/* ---- reading the input --------------------------------------------------- */

/* Reads the next array of the source, or n rows of it if it is larger. out is
 * released at the end of the stream. */
static oj_status read_next_array(struct rows_stream *s, int64_t n,
                                 struct ArrowArray *out, struct oj_error *err)
{
    const struct ArrowArray *large;
    int64_t n_left;
    if (s->large == NULL)
    {
        OJ_TRY(api_stream_next(&s->source, out, err));
        if (out->release == NULL || out->length <= n)
            return OJ_OK;
        OJ_TRY(oj_arrow_shared_make(out, &s->large, err));
        s->large_at = 0;
    }
    large = oj_arrow_shared_array(s->large);
    n_left = large->length - s->large_at;
    OJ_TRY(oj_arrow_array_view_rows(s->large, large, s->large_at,
                                    n < n_left ? n : n_left, out, err));
    s->large_at += out->length;
    if (n >= n_left)
    {
        oj_arrow_shared_release(s->large);
        s->large = NULL;
    }
    return OJ_OK;
}

/* Chooses the number of rows of a batch. Distances are found faster for many
 * points, which are then close to each other, and a device needs much work. On
 * the CPU a batch has no more rows than can be joined in one part: joined in
 * two halves, the 5 nearest of a million points take 15 % longer. Predicates on
 * the CPU gain nothing: for a million points in lots, 65,536 at a time need no
 * more time and half of the memory. Aggregates make few rows of many pairs. */
static int64_t choose_batch_rows(const struct rows_stream *s)
{
    const struct ogrjoin_settings *all = s->settings;
    const struct oj_relation *relation = &s->index->index->settings.relation;
    const int is_on_cpu = oj_join_is_on_cpu(s->index->index->join);
    int64_t most = LEAST_BATCH_ROWS * (int64_t)api_settings_threads(all);
    if (all->pairs.one_to_one)
        return INT64_MAX;
    if (all->rows.batch_rows > 0)
        return all->rows.batch_rows;
    if (!oj_relation_needs_contact(relation) ||
        oj_relation_compares_attributes(relation) || !is_on_cpu)
    {
        int64_t rows = s->parts.most_per_row > 0 && is_on_cpu
                           ? s->parts.max_pairs / s->parts.most_per_row
                           : MOST_BATCH_ROWS;
        most = rows > most ? rows : most;
    }
    else if (s->output.aggregates == NULL)
        most *= 4;
    return most < MOST_BATCH_ROWS ? most : MOST_BATCH_ROWS;
}

/* Reads the arrays of the next batch; none at the end of the input. With
 * events, a batch is a single array, so that its events are output before the
 * next array is waited for. */
static oj_status read_arrays_of_batch(struct rows_stream *s,
                                      struct oj_error *err)
{
    const struct ogrjoin_settings *all = s->settings;
    int64_t most = choose_batch_rows(s);
    rows_chunks_clear(&s->chunks);
    while (!s->source_ended && rows_chunks_count_rows(&s->chunks) < most &&
           (s->events == NULL || rows_chunks_count_rows(&s->chunks) == 0))
    {
        struct ArrowArray array;
        OJ_TRY(oj_check_cancel(all->options.cancel, err));
        OJ_TRY(read_next_array(s, most - rows_chunks_count_rows(&s->chunks),
                               &array, err));
        if (array.release == NULL)
            s->source_ended = 1;
        else if (array.length == 0)
            oj_arrow_array_release(&array);
        else
            OJ_TRY(rows_chunks_add(&s->chunks, &s->input, &array, s->n_before,
                                   err));
    }
    return OJ_OK;
}

static void free_batch(struct rows_stream *s)
{
    static const struct layer_sets none;
    api_layer_sets_free(&s->sets);
    s->sets = none;
    ogrjoin_layer_free(s->layer);
    s->layer = NULL;
}

static oj_status report_progress(struct rows_stream *s, struct oj_error *err)
{
    const struct api_row_settings *r = &s->settings->rows;
    if (r->report == NULL ||
        r->report(r->report_user, s->n_before + s->at,
                  r->input_rows > 0 ? r->input_rows : -1) == 0)
        return OJ_OK;
    return oj_fail_cancelled(err);
}

/* Returns 1 if only features whose envelopes meet a part of the join side can
 * have pairs, and nothing else in the output depends on their shapes. Not for
 * op bbox: the envelopes of whole features may meet where no part lies. */
static int are_only_features_in_reach_needed(const struct rows_stream *s)
{
    const struct oj_relation *relation = &s->index->index->settings.relation;
    return oj_relation_needs_contact(relation) &&
           !oj_relation_is_bbox(relation) && s->stage == NULL;
}

/* Reads the next batch and makes a layer of it. */
static oj_status read_batch(struct rows_stream *s, struct oj_error *err)
{
    s->n_before += s->at;
    s->at = 0;
    free_batch(s);
    OJ_TRY(read_arrays_of_batch(s, err));
    s->state = STREAM_JOINS;
    if (rows_chunks_count_rows(&s->chunks) == 0)
    {
        s->state = s->is_matched != NULL ? STREAM_OTHERS : STREAM_ENDED;
        return OJ_OK;
    }
    OJ_TRY(rows_side_make_layer(&s->input, &s->chunks, s->n_before, s->settings,
                                are_only_features_in_reach_needed(s) ? &s->reach
                                                                     : NULL,
                                &s->layer, err));
    OJ_TRY(rows_side_add_columns_to_layer(
        &s->input, &s->chunks, &s->index->classes, 0, s->scale, s->layer, err));
    for (int i = 0; i < s->input.n_spans; i++)
        s->n_without_span[i] += s->layer->n_without_span[i];
    s->answer.most_bytes =
        rows_output_max_row_bytes(&s->output, &s->input, &s->chunks);
    return api_index_view_input(s->index->index, s->layer, &s->sets, &s->flat,
                                err);
}

/* ---- pairs --------------------------------------------------------------- */

static oj_status join_part(void *user, const struct oj_flat *rows,
                           struct oj_matches *out, struct oj_error *err)
{
    struct rows_stream *s = user;
    struct oj_join *join;
    oj_status status;
    OJ_TRY(oj_check_cancel(s->settings->options.cancel, err));
    OJ_TRY(oj_join_acquire_bounded(s->index->index->join,
                                   s->settings->options.cancel,
                                   s->parts.max_pairs, &join, err));
    status = oj_join_batch(join, rows, out, err);
    oj_join_release(join);
    return status;
}

static oj_status count_pairs_and_check_limit(struct rows_stream *s, int64_t n,
                                             struct oj_error *err)
{
    int64_t n_before = s->n_pairs;
    s->n_pairs += n;
    return api_check_max_pairs(OJ_OK, s->settings->options.max_batch_pairs,
                               n_before, n, err);
}

/* Joins the next rows of the batch; *n is their number. Frees the working
 * memory of a large batch after its last rows. */
static oj_status join_next_part(struct rows_stream *s, int64_t *n,
                                struct oj_error *err)
{
    OJ_TRY(oj_batch_parts_join(&s->parts, &s->flat, s->at, &s->slice, join_part,
                               s, &s->matches, n, err));
    if (s->at + *n == s->flat.n_features && *n > KEPT_ROWS)
        oj_join_free_unused_copies(s->index->index->join, 0);
    return count_pairs_and_check_limit(s, s->matches.n_pairs, err);
}

static oj_status add_batch_to_one_to_one(struct rows_stream *s,
                                         struct oj_one_to_one *choice,
                                         struct oj_pair_ranks *ranks,
                                         struct oj_error *err)
{
    const struct oj_relation *relation = &s->index->index->settings.relation;
    while (s->at < s->flat.n_features)
    {
        int64_t n = 0;
        const struct oj_flat *part;
        OJ_TRY(join_next_part(s, &n, err));
        part = n == s->flat.n_features ? &s->flat : &s->slice.flat;
        OJ_TRY(oj_pair_ranks_make(relation, part, &s->join_flat, &s->matches,
                                  api_settings_threads(s->settings), ranks,
                                  err));
        OJ_TRY(oj_one_to_one_add_matches(choice, &s->matches, ranks, NULL, NULL,
                                         err));
        s->at += n;
    }
    return OJ_OK;
}

static void report_large_groups(const struct rows_stream *s,
                                const struct oj_one_to_one *choice)
{
    int64_t n_groups, n_pairs;
    oj_one_to_one_large_groups(choice, &n_groups, &n_pairs);
    if (n_groups > 0)
        api_settings_notify(
            s->settings,
            "one_to_one best: %lld groups of more than %lld connected pairs "
            "(%lld in all) were chosen greedily, best pairs first; a smaller "
            "max_distance makes smaller groups",
            (long long)n_groups, (long long)OJ_ONE_TO_ONE_MOST_GROUP_PAIRS,
            (long long)n_pairs);
}

/* Joins the whole input and chooses pairs one to one. */
static oj_status choose_one_to_one(struct rows_stream *s, struct oj_error *err)
{
    struct oj_one_to_one *choice;
    struct oj_pair_ranks ranks;
    oj_status status;
    memset(&ranks, 0, sizeof ranks);
    OJ_TRY(oj_one_to_one_open(
        s->join_flat.n_features,
        (enum oj_one_to_one_rule)s->settings->pairs.one_to_one,
        API_MOST_ONE_TO_ONE_BYTES, NULL, &choice, err));
    status = add_batch_to_one_to_one(s, choice, &ranks, err);
    if (status == OJ_OK)
        status = oj_one_to_one_choose_pairs(choice, s->settings->options.cancel,
                                            err);
    if (status == OJ_OK)
        report_large_groups(s, choice);
    if (status == OJ_OK)
        status = api_convert_choice_to_matches(choice, s->flat.n_features,
                                               &s->chosen, err);
    oj_pair_ranks_free(&ranks);
    oj_one_to_one_close(choice);
    return status;
}

static void mark_matched_join_rows(struct rows_stream *s,
                                   const struct oj_matches *pairs)
{
    for (int64_t row = 0; s->is_matched != NULL && row < pairs->n_rows; row++)
    {
        int64_t end = oj_matches_end(pairs, row);
        for (int64_t p = oj_matches_first(pairs, row); p < end; p++)
            s->is_matched[pairs->join_row[p]] = 1;
    }
}

/* Computes, from a part's pairs, the values, events or aggregates that the user
 * wants; marks the join rows with pairs; begins the output of the part's rows.
 * The part has n rows, from row `first` of the batch on. */
static oj_status compute_values_and_begin_rows(struct rows_stream *s,
                                               const struct oj_flat *part,
                                               int64_t first,
                                               const struct oj_matches *pairs,
                                               struct oj_error *err)
{
    const struct oj_matches *entries = pairs;
    struct oj_pair_side side = {part, part, NULL, NULL};
    s->answer.values = NULL;
    if (s->stage != NULL)
    {
        OJ_TRY(oj_pair_stage_run(s->stage, &side, pairs, &s->values, err));
        s->answer.values = &s->values;
        entries = oj_pair_values_matches(&s->values, pairs);
    }
    if (s->answer.values != NULL && s->answer.values->is_kept)
        pairs = entries; /* pairs that were dropped do not count as matches */
    mark_matched_join_rows(s, pairs);
    if (s->events != NULL)
    {
        OJ_TRY(replace_pairs_by_events(s, part, first, &pairs, err));
        entries = pairs;
    }
    if (s->output.aggregates != NULL)
    {
        OJ_TRY(rows_aggregates_add(s->output.aggregates, part, entries,
                                   s->settings->relation.enough_pairs,
                                   &s->join_flat, s->answer.values,
                                   &s->added_up, err));
        entries = pairs = &s->added_up;
    }
    s->answer.input = &s->chunks;
    s->answer.is_join_rows = 0;
    s->answer.entries = entries;
    s->answer.input_side = &s->flat;
    s->answer.join_side = &s->join_flat;
    s->answer.first_row = first;
    oj_row_places_begin(&s->places, entries, pairs, first, NULL);
    s->state = STREAM_GIVES;
    return OJ_OK;
}

static oj_status join_rows_of_batch(struct rows_stream *s, struct oj_error *err)
{
    int64_t first = s->at, n = 0;
    if (first >= s->flat.n_features)
    {
        s->state = STREAM_READS;
        return OJ_OK;
    }
    if (s->settings->pairs.one_to_one)
    {
        OJ_TRY(choose_one_to_one(s, err));
        OJ_TRY(compute_values_and_begin_rows(s, &s->flat, 0, &s->chosen, err));
    }
    else
    {
        OJ_TRY(join_next_part(s, &n, err));
        s->at += n;
        OJ_TRY(compute_values_and_begin_rows(
            s, n == s->flat.n_features ? &s->flat : &s->slice.flat, first,
            &s->matches, err));
    }
    return report_progress(s, err);
}

/* Starts the output of join rows without pairs. */
static void begin_unmatched_join_rows(struct rows_stream *s)
{
    free_batch(s);
    s->answer =
        (struct rows_answer){.is_join_rows = 1, .join_side = &s->join_flat};
    oj_row_places_begin_unmatched(&s->places, s->join_flat.n_features,
                                  s->is_matched);
}

/* ---- output of rows ------------------------------------------------------ */

/* Warns of sides whose texts are mostly no times. */
static void report_texts_without_times(const struct rows_stream *s)
{
    char text[256];
    for (int i = 0; i < s->input.n_spans; i++)
    {
        if (oj_span_reading_describe_missing(&s->span[i], 0,
                                             s->n_without_span[i], s->n_before,
                                             text, sizeof text))
            api_settings_notify(s->settings, "left side: %s", text);
        if (oj_span_reading_describe_missing(
                &s->span[i], 1, s->index->layer->n_without_span[i],
                s->join_flat.n_features, text, sizeof text))
            api_settings_notify(s->settings, "right side: %s", text);
    }
}

/* Reports, once all rows are joined, which values are missing. */
static oj_status report_missing_values(const struct rows_stream *s)
{
    char text[512];
    report_texts_without_times(s);
    if (s->stage != NULL &&
        oj_pair_stage_describe_undecided(s->stage, text, sizeof text))
        api_settings_notify(s->settings, "%s", text);
    if (s->stage != NULL &&
        oj_pair_stage_describe_missing_m(s->stage, text, sizeof text))
        api_settings_notify(s->settings, "along=m: %s", text);
    return OJ_OK;
}

/* Finds the next rows of output (places). If there are none left, changes to
 * the next state. */
static oj_status find_next_output_rows(struct rows_stream *s,
                                       struct oj_error *err)
{
    int is_last = s->state == STREAM_OTHERS;
    s->first_place = 0;
    s->n_places = oj_row_places_next(&s->places, s->place, MOST_PLACES);
    if (s->n_places > 0)
        return OJ_OK;
    oj_row_places_end(&s->places);
    s->state = is_last ? STREAM_ENDED : STREAM_JOINS;
    return s->state == STREAM_ENDED
               ? report_missing_values(s)
               : oj_check_cancel(s->settings->options.cancel, err);
}

/* Advances the state machine until there are rows to output, or to the end. */
static oj_status advance_until_rows(struct rows_stream *s, struct oj_error *err)
{
    while (s->n_places == 0 && s->state != STREAM_ENDED)
    {
        switch (s->state)
        {
            case STREAM_READS:
                OJ_TRY(read_batch(s, err));
                if (s->state == STREAM_OTHERS)
                    begin_unmatched_join_rows(s);
                if (s->state == STREAM_ENDED)
                {
                    OJ_TRY(report_missing_values(s));
                    OJ_TRY(save_events(s, err));
                }
                break;
            case STREAM_JOINS:
                OJ_TRY(join_rows_of_batch(s, err));
                break;
            case STREAM_GIVES:
            case STREAM_OTHERS:
                OJ_TRY(find_next_output_rows(s, err));
                break;
            case STREAM_ENDED:
                break;
        }
    }
    return OJ_OK;
}

/* Makes the next record batch; out->release is NULL at the end. */
static oj_status next_rows(struct rows_stream *s, struct ArrowArray *out,
                           struct oj_error *err)
{
    int64_t n;
    OJ_TRY(oj_check_cancel(s->settings->options.cancel, err));
    OJ_TRY(advance_until_rows(s, err));
    if (s->state == STREAM_ENDED)
        return OJ_OK;
    n = s->n_places;
    OJ_TRY(rows_output_make_batch(&s->output, &s->answer,
                                  s->place + s->first_place, &n, out, err));
    s->first_place += n;
    s->n_places -= n;
    return OJ_OK;
}

/* ---- callbacks of the output stream -------------------------------------- */

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    struct rows_stream *s = stream->private_data;
    oj_status status =
        oj_arrow_schema_copy(&s->output.schema, NULL, out, &s->error);
    if (status != OJ_OK)
        oj_arrow_schema_release(out);
    return api_errno_of(status);
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct rows_stream *s = stream->private_data;
    oj_status status;
    memset(out, 0, sizeof *out);
    if (s->failed != OJ_OK) /* an earlier call has failed */
        return api_errno_of(s->failed);
    status = next_rows(s, out, &s->error);
    s->failed = status;
    if (status == OJ_OK) /* a step may have failed and then succeeded in another
                            way */
        s->error.message[0] = '\0';
    return api_errno_of(status);
}

static const char *get_last_error(struct ArrowArrayStream *stream)
{
    const struct rows_stream *s = stream->private_data;
    return s->error.message[0] != '\0' ? s->error.message : NULL;
}

static void release_stream(struct ArrowArrayStream *stream)
{
    close_stream(stream->private_data);
    memset(stream, 0, sizeof *stream);
}

/* Opens the output stream. input is moved, also on failure. */
static oj_status open_stream(struct ogrjoin_rows *rows,
                             struct ogrjoin_index *given,
                             struct ArrowArrayStream *input,
                             const struct ogrjoin_settings *settings,
                             struct ArrowArrayStream *out, struct oj_error *err)
{
    struct rows_stream *s = oj_calloc(1, sizeof *s);
    oj_status status;
    if (s == NULL)
    {
        if (input->release != NULL)
            input->release(input);
        input->release = NULL;
        return oj_fail_nomem(err, 1, sizeof *s);
    }
    s->source = *input;
    input->release = NULL;
    s->rows = rows;
    atomic_fetch_add(&rows->n_users, 1);
    status = api_settings_copy(settings != NULL ? settings : rows->settings,
                               &s->settings, err);
    if (status == OJ_OK)
        status = open_rows_stream(s, given, err);
    if (status != OJ_OK)
    {
        close_stream(s);
        return status;
    }
    out->get_schema = get_schema;
    out->get_next = get_next;
    out->get_last_error = get_last_error;
    out->release = release_stream;
    out->private_data = s;
    return OJ_OK;
}

/* ---- public functions ---------------------------------------------------- */

static void release_input(struct ArrowArrayStream *stream)
{
    if (stream->release != NULL)
        stream->release(stream);
    stream->release = NULL;
}

int ogrjoin_rows_open(struct ArrowArrayStream *join_side,
                      const struct ogrjoin_settings *settings,
                      struct ogrjoin_rows **out, struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    oj_status status = read_rows_of_stream(join_side, settings, out, &why);
    release_input(join_side);
    return api_error_export(status, &why, err);
}

int ogrjoin_rows_join(struct ogrjoin_rows *rows, struct ArrowArrayStream *input,
                      const struct ogrjoin_settings *settings,
                      struct ArrowArrayStream *out, struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(open_stream(rows, NULL, input, settings, out, &why),
                            &why, err);
}

int ogrjoin_rows_join_index(struct ogrjoin_rows *rows,
                            struct ogrjoin_index *index,
                            struct ArrowArrayStream *input,
                            const struct ogrjoin_settings *settings,
                            struct ArrowArrayStream *out,
                            struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(
        open_stream(rows, index, input, settings, out, &why), &why, err);
}

int ogrjoin_join_rows(struct ArrowArrayStream *input,
                      struct ArrowArrayStream *join_side,
                      const struct ogrjoin_settings *settings,
                      struct ArrowArrayStream *out, struct ogrjoin_error *err)
{
    struct ogrjoin_rows *rows = NULL;
    int code = ogrjoin_rows_open(join_side, settings, &rows, err);
    if (code == OGRJOIN_OK)
        code = ogrjoin_rows_join(rows, input, NULL, out, err);
    release_input(input);
    ogrjoin_rows_free(rows);
    return code;
}

int64_t ogrjoin_rows_geometry(const struct ArrowArrayStream *stream)
{
    const struct rows_stream *s = stream->private_data;
    return stream->release == release_stream ? s->output.geometry_at : -1;
}
