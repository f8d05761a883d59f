#include "rows_output.h"

#include "../../../flatten/arrays/oj_wkb.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_word_list.h"
#include "../arrow/arrow_values.h"
#include "../arrow/oj_arrow_column.h"
#include "../arrow/oj_arrow_iso_wkb.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Approximate maximum bytes of a record batch. */
#define MOST_BATCH_BYTES (INT64_C(256) << 20)

/* ---- fields of both sides ------------------------------------------------ */

static int is_computed_geometry(int geometry)
{
    return geometry == OJ_WRITE_NEAREST_POINT ||
           geometry == OJ_WRITE_CONNECTION || geometry == OJ_WRITE_SHAPE;
}

/* Returns 1 if the output has the input column. The place of the input's
 * geometry column is also kept for a computed geometry, which is then written
 * there. */
static int keeps_input_column(const struct rows_output *o, int64_t column)
{
    if (column != o->input->geometry)
        return 1;
    return o->geometry == OJ_WRITE_INPUT || is_computed_geometry(o->geometry);
}

/* Returns 1 if the join column is part of the output. Geometries are not,
 * except if the join side's geometry is the geometry of the rows. */
static int keeps_join_column(const struct rows_output *o, int64_t column)
{
    const struct rows_side *join = o->join;
    if (column == join->fid)
        return 0; /* FIDs are output as join_fid */
    return o->geometry == OJ_WRITE_JOIN ||
           (column != join->geometry &&
            !rows_side_is_geometry(join->schema.children[column]));
}

/* Makes *fields the array of the fields of a side that are in the output, and
 * *columns that of their columns in the side's schema; -1 is the computed
 * geometry. Adds their number to *n, which is 0. The caller frees both. */
static oj_status choose_fields(const struct rows_output *o,
                               const struct rows_side *side,
                               struct oj_field_description **fields,
                               int64_t **columns, int *n, struct oj_error *err)
{
    int is_input = side == o->input, has_computed = 0;
    OJ_NEW(*fields, side->n_selected + 1, err);
    OJ_NEW(*columns, side->n_selected + 1, err);
    for (int64_t i = 0; i < side->n_selected; i++)
    {
        int64_t column = side->selected[i];
        if (!(is_input ? keeps_input_column(o, column)
                       : keeps_join_column(o, column)))
            continue;
        (*fields)[*n] = rows_side_field(side, column);
        (*columns)[*n] = column;
        if (is_input && column == side->geometry &&
            is_computed_geometry(o->geometry))
        {
            (*columns)[*n] = -1;
            has_computed = 1;
        }
        ++*n;
    }
    if (is_input && is_computed_geometry(o->geometry) && !has_computed)
    {
        (*fields)[*n] =
            (struct oj_field_description){"geometry", OJ_FIELD_BYTES, 1};
        (*columns)[(*n)++] = -1;
    }
    return OJ_OK;
}

/* ---- the schema of the output -------------------------------------------- */

/* Makes the schema of a geoarrow.wkb column. Its CRS is that of the input, or
 * of the join side if the input has none. */
static oj_status make_wkb_schema(const struct rows_output *o, const char *name,
                                 struct ArrowSchema *out, struct oj_error *err)
{
    return oj_arrow_wkb_schema("z", name,
                               o->input->crs_words != NULL ? o->input->crs_words
                                                           : o->join->crs_words,
                               out, err);
}

static const char *format_of_computed(const struct oj_named_column *column)
{
    switch (column->kind)
    {
        case OJ_FIELD_INT32:
            return "i";
        case OJ_FIELD_INT64:
            return "l";
        case OJ_FIELD_TEXT:
            return "u";
        default:
            return "g";
    }
}

static oj_status make_field(const struct rows_output *o,
                            const struct oj_named_column *column,
                            struct ArrowSchema *out, struct oj_error *err)
{
    const struct rows_side *side =
        column->origin == OJ_COLUMN_INPUT ? o->input : o->join;
    int64_t source = column->source;
    if (column->origin == OJ_COLUMN_AGGREGATE)
        return rows_aggregates_schema(o->aggregates, column->source,
                                      column->name, out, err);
    if (column->origin != OJ_COLUMN_INPUT && column->origin != OJ_COLUMN_JOIN)
        return oj_arrow_schema_make(format_of_computed(column), column->name,
                                    NULL, ARROW_FLAG_NULLABLE, 0, out, err);
    source = column->origin == OJ_COLUMN_INPUT ? o->input_column[source]
                                               : o->join_column[source];
    if (source < 0 || (o->is_in_wkb && column->origin == OJ_COLUMN_INPUT &&
                       source == o->input->geometry))
        return make_wkb_schema(o, column->name, out, err);
    OJ_TRY(oj_arrow_schema_copy(side->schema.children[source], column->name,
                                out, err));
    if (column->is_nullable)
        out->flags |= ARROW_FLAG_NULLABLE;
    return OJ_OK;
}

/* Makes the schema of the output and finds its geometry column. The struct has
 * no metadata; columns that are copied keep their own. */
static oj_status make_schema(struct rows_output *o, struct oj_error *err)
{
    OJ_TRY(
        oj_arrow_schema_make("+s", "", NULL, 0, o->columns.n, &o->schema, err));
    o->geometry_at = -1;
    for (int64_t i = 0; i < o->columns.n; i++)
    {
        const struct oj_named_column *column = &o->columns.column[i];
        int64_t source = column->source;
        OJ_TRY(make_field(o, column, o->schema.children[i], err));
        if (column->origin == OJ_COLUMN_INPUT &&
            (o->input_column[source] == -1 ||
             o->input_column[source] == o->input->geometry))
            o->geometry_at = i;
        if (column->origin == OJ_COLUMN_JOIN &&
            o->join_column[source] == o->join->geometry)
            o->geometry_at = i;
    }
    return OJ_OK;
}

/* ---- choice of columns --------------------------------------------------- */

struct oj_row_column_words
rows_output_column_words(const struct ogrjoin_settings *s,
                         const struct oj_pair_request *request)
{
    struct oj_row_column_words words = {
        .dash = "",
        .relation = &request->relation,
        .choice = {.how = oj_how_of_input_rows((enum oj_how)s->rows.how),
                   .picks = request->pick != OJ_PICK_ALL,
                   .one_to_one = s->pairs.one_to_one},
        .name_fid = api_setting_text_as_given(s, "name_fid"),
        .name_distance = api_setting_text_as_given(s, "name_distance"),
        .name_rank = api_setting_text_as_given(s, "name_rank"),
        .name_count = api_setting_text_as_given(s, "name_count"),
        .name_similarity = api_setting_text_as_given(s, "name_similarity"),
        .name_difference = api_setting_text_as_given(s, "name_difference"),
        .overlap = api_setting_text_as_given(s, "overlap"),
        .nearest_point_fields = s->pairs.nearest_point,
        .bearing_field = s->pairs.bearing,
        .has_events = api_setting_text_as_given(s, "events") != NULL};
    for (int i = 0; i < OJ_N_NAMED_PAIR_VALUES; i++)
    {
        enum oj_pair_value which =
            (enum oj_pair_value)(OJ_FIRST_NAMED_PAIR_VALUE + i);
        words.named[i] =
            api_setting_text_as_given(s, oj_row_column_option(which));
        if (words.named[i] == NULL && s->pairs.named[i])
            words.named[i] = api_pairs_value_name(which);
    }
    return words;
}

static oj_status choose_computed_columns(const struct ogrjoin_settings *s,
                                         struct oj_pair_request *request,
                                         struct oj_computed_columns *computed,
                                         struct oj_error *err)
{
    struct oj_row_column_words words = rows_output_column_words(s, request);
    char overlap[40];
    if (words.overlap == NULL &&
        (s->pairs.overlap_area || s->pairs.overlap_length ||
         s->pairs.overlap_percent))
    {
        snprintf(overlap, sizeof overlap, "%s%s%s",
                 s->pairs.overlap_area ? "area," : "",
                 s->pairs.overlap_length ? "length," : "",
                 s->pairs.overlap_percent ? "percent" : "");
        words.overlap = overlap;
    }
    return oj_computed_columns_choose(&words, computed, request->want, err);
}

/* Makes the *n output columns *out of all aggregates; the caller frees *out. */
static oj_status choose_aggregate_columns(const struct rows_output *o,
                                          struct oj_computed_column **out,
                                          int *n, struct oj_error *err)
{
    const struct oj_aggregate_words *words =
        rows_aggregates_words(o->aggregates);
    OJ_NEW(*out, words->n, err);
    for (int i = 0; i < words->n; i++)
        (*out)[i] = oj_computed_column_of_aggregate(&words->word[i], i);
    *n = words->n;
    return OJ_OK;
}

static oj_status name_columns(struct rows_output *o,
                              const struct ogrjoin_settings *s,
                              struct oj_row_columns_request *request,
                              struct oj_field_description *fields[2],
                              struct oj_error *err)
{
    const char *prefix = api_setting_text_as_given(s, "prefix");
    OJ_TRY(choose_fields(o, o->input, &fields[0], &o->input_column,
                         &request->input.n, err));
    request->input.field = fields[0];
    if (!oj_how_is_at_most_one_row(o->how) && o->aggregates == NULL)
        OJ_TRY(choose_fields(o, o->join, &fields[1], &o->join_column,
                             &request->join.n, err));
    request->join.field = fields[1];
    request->dash = "";
    request->has_other_rows = oj_how_has_join_rows(o->how);
    request->prefix = prefix != NULL ? prefix : "join_";
    return oj_row_columns_plan(request, &o->columns, err);
}

static oj_status plan_columns(struct rows_output *o,
                              const struct ogrjoin_settings *s,
                              struct oj_pair_request *request,
                              struct oj_error *err)
{
    struct oj_computed_columns computed;
    struct oj_computed_column *aggregates = NULL;
    struct oj_row_columns_request asked;
    struct oj_field_description *fields[2] = {NULL, NULL};
    oj_status status = OJ_OK;
    memset(&computed, 0, sizeof computed);
    memset(&asked, 0, sizeof asked);
    if (o->aggregates != NULL)
    {
        status =
            choose_aggregate_columns(o, &aggregates, &asked.n_computed, err);
        asked.computed = aggregates;
    }
    else if (!oj_how_is_at_most_one_row(o->how))
    {
        status = choose_computed_columns(s, request, &computed, err);
        asked.computed = computed.column;
        asked.n_computed = computed.n;
        if (is_computed_geometry(o->geometry))
        {
            oj_row_request_geometry_values((enum oj_write_geometry)o->geometry,
                                           request);
            o->is_multi = s->rows.parts > 0;
            if (o->is_multi)
                oj_row_request_kept_parts(s->rows.parts - 1, request);
        }
    }
    if (status == OJ_OK)
        status = name_columns(o, s, &asked, fields, err);
    if (status == OJ_OK)
        status = make_schema(o, err);
    oj_computed_columns_free(&computed);
    oj_free(aggregates);
    oj_free(fields[0]);
    oj_free(fields[1]);
    return status;
}

/* ---- geometries of join rows without an input row ------------------------ */

static int is_wkb_format(const struct ArrowSchema *schema)
{
    return strcmp(schema->format, "z") == 0 || strcmp(schema->format, "Z") == 0;
}

static int are_types_equal(const struct ArrowSchema *a,
                           const struct ArrowSchema *b)
{
    if (strcmp(a->format, b->format) != 0 || a->n_children != b->n_children ||
        (a->dictionary == NULL) != (b->dictionary == NULL))
        return 0;
    for (int64_t i = 0; i < a->n_children; i++)
    {
        if (!are_types_equal(a->children[i], b->children[i]))
            return 0;
    }
    return a->dictionary == NULL ||
           are_types_equal(a->dictionary, b->dictionary);
}

/* Returns the number of ordinates per coordinate (2 to 4) of a geoarrow
 * column. */
static int64_t count_ordinates(const struct ArrowSchema *schema)
{
    while (schema->format[0] == '+' &&
           (schema->format[1] == 'l' || schema->format[1] == 'L'))
        schema = schema->children[0];
    return schema->format[1] == 'w' ? schema->format[3] - '0'
                                    : schema->n_children;
}

/* Returns 1 if the geometries of a side lose nothing when they are converted to
 * WKB. */
static int keeps_all_as_wkb(const struct rows_side *side)
{
    return side->record.layout.storage == ARROW_WKB ||
           count_ordinates(side->schema.children[side->geometry]) == 2;
}

/* Checks that each side has the geometries that a geometry of both needs. */
static oj_status check_geometries_of_both(const struct rows_output *o,
                                          struct oj_error *err)
{
    const struct rows_side *lacks =
        rows_side_has_shapes(o->input) ? o->join : o->input;
    const char *side = rows_side_name(lacks);
    int n = 0;
    const char *word = oj_words_at(API_GEOMETRY_WORDS, o->geometry, &n);
    if (rows_side_has_shapes(lacks))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "geometry=%.*s needs geometries of both sides, but the %s "
                   "side has none: name its column with %s_column, or write "
                   "geometry=input or none",
                   n, word, side, side);
}

/* Checks that the output can have the geometry asked for. Sets o->is_in_wkb if
 * geometries must be converted to WKB. */
static oj_status check_geometry(struct rows_output *o, struct oj_error *err)
{
    const struct ArrowSchema *mine, *other;
    if (o->geometry != OJ_WRITE_INPUT && o->geometry != API_GEOMETRY_NONE)
        OJ_TRY(check_geometries_of_both(o, err));
    if (o->geometry == OJ_WRITE_JOIN && o->join->geometry < 0)
        return oj_fail(
            err, OJ_ERR_ARG,
            "geometry=join: the right side has points of right_x and right_y, "
            "but no column of geometries to write: give right_column in place "
            "of right_x and right_y, or write geometry=input");
    if (!oj_how_has_join_rows(o->how) || o->geometry != OJ_WRITE_INPUT ||
        o->input->geometry < 0 || o->join->geometry < 0)
        return OJ_OK;
    mine = o->input->schema.children[o->input->geometry];
    other = o->join->schema.children[o->join->geometry];
    if (is_wkb_format(mine) || are_types_equal(mine, other))
        return OJ_OK;
    o->is_in_wkb = keeps_all_as_wkb(o->input) && keeps_all_as_wkb(o->join);
    if (o->is_in_wkb)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_UNSUPPORTED,
                   "how=%s puts geometries of both sides into one column, but "
                   "their types differ and have Z or M: convert the left ones "
                   "to WKB (binary or large_binary), or both to one type",
                   o->how == OJ_HOW_RIGHT ? "right" : "full");
}

/* Makes room for a value of n bytes in row i. */
static oj_status make_room_for_value(struct oj_arrow_column *column, int64_t i,
                                     int64_t n, char **to, struct oj_error *err)
{
    OJ_TRY(oj_arrow_column_put_bytes(column, i, n, to, err));
    return *to != NULL ? OJ_OK : arrow_fail_limit(err);
}

/* Writes the WKB of a feature to row i, or NULL if the feature has no geometry.
 * multi 1: a single geometry becomes a multi-geometry. */
static oj_status put_wkb_of_feature(struct oj_arrow_column *column, int64_t i,
                                    const struct oj_flat *flat, int64_t feature,
                                    int multi, struct oj_error *err)
{
    int64_t size = feature >= 0 ? oj_wkb_size(flat, feature, multi) : 0;
    char *to;
    if (size <= 0)
        return oj_arrow_column_put_null(column, i, err);
    OJ_TRY(make_room_for_value(column, i, size, &to, err));
    oj_wkb_write(flat, feature, multi, (uint8_t *)to);
    return OJ_OK;
}

/* ---- values of the output ------------------------------------------------ */

/* State of one record batch. */
struct batch
{
    const struct rows_output *output;
    const struct rows_answer *answer;
    const struct oj_row_place *place;
    int64_t n;

    /* Where output row i is taken from, in the input [0] and the join side [1]:
     * chunk [n] (NULL: all from chunk 0), row [n] in the chunk (-1: NULL).
     * `rows` is a view of both for oj_arrow_take(). */
    struct oj_arrow_places rows[2];
    int32_t *chunk[2];
    int64_t *row[2];
};

/* Returns the row of a side that output row i is made from, or -1 if there is
 * none. */
static int64_t row_of_side(const struct batch *b, int side, int64_t i)
{
    if (b->answer->is_join_rows)
        return side == 1 ? b->place[i].row : -1;
    return side == 1 ? b->place[i].join_row : b->place[i].row;
}

static const struct rows_chunks *chunks_of_side(const struct batch *b, int side)
{
    return side == 1 ? b->output->join_chunks : b->answer->input;
}

/* Finds the chunks of all rows of a side. Input rows are ascending, so each is
 * first looked for in the chunk of the one before. */
static oj_status find_chunks_of_rows(struct batch *b, int side,
                                     struct oj_error *err)
{
    const struct rows_chunks *chunks = chunks_of_side(b, side);
    int64_t at = 0, n_chunks = chunks != NULL ? chunks->n : 0;
    OJ_NEW(b->row[side], b->n, err);
    if (n_chunks > 1)
        OJ_NEW(b->chunk[side], b->n, err);
    for (int64_t i = 0; i < b->n; i++)
    {
        int64_t row = row_of_side(b, side, i);
        const struct ArrowArray *record;
        b->row[side][i] = -1;
        if (b->chunk[side] != NULL)
            b->chunk[side][i] = (int32_t)at;
        if (row < 0 || n_chunks == 0)
            continue;
        if (row < chunks->first[at] || row >= chunks->first[at + 1])
            at = rows_chunks_find(chunks, row);
        record = oj_arrow_shared_array(chunks->shared[at]);
        row += record->offset - chunks->first[at];
        if (arrow_bit(arrow_validity(record), row))
            b->row[side][i] = row;
        if (b->chunk[side] != NULL)
            b->chunk[side][i] = (int32_t)at;
    }
    b->rows[side] =
        (struct oj_arrow_places){b->n, b->chunk[side], b->row[side]};
    return OJ_OK;
}

static oj_status take_column(const struct batch *b, int side, int64_t column,
                             struct ArrowArray *out, struct oj_error *err)
{
    static const struct rows_chunks none;
    const struct rows_chunks *chunks = chunks_of_side(b, side);
    const struct rows_side *of = side == 1 ? b->output->join : b->output->input;
    struct oj_arrow_chunks from;
    const struct ArrowArray **arrays;
    oj_status status;
    OJ_TRY(rows_chunks_column(chunks != NULL ? chunks : &none, of, column,
                              &from, &arrays, err));
    status = oj_arrow_take(&from, &b->rows[side], out, err);
    oj_free(arrays);
    return status;
}

/* Copies the WKB of a row of array to row i of column. The row must not be
 * NULL. */
static oj_status copy_wkb(const struct ArrowArray *array, const char *format,
                          int64_t row, struct oj_arrow_column *column,
                          int64_t i, struct oj_error *err)
{
    struct arrow_bytes bytes;
    const uint8_t *from;
    char *to;
    size_t n;
    OJ_TRY(arrow_bytes_read(array, format, row, 1, &bytes, err));
    OJ_TRY(arrow_bytes_of_row(&bytes, 0, &from, &n, err));
    OJ_TRY(make_room_for_value(column, i, (int64_t)n, &to, err));
    if (n > 0)
        memcpy(to, from, n);
    return OJ_OK;
}

/* Fills the column with the geometries of a side: the WKB of its column, or WKB
 * made of the features. */
static oj_status fill_wkb_of_side(const struct batch *b, int side,
                                  struct oj_arrow_column *column,
                                  struct oj_error *err)
{
    const struct rows_output *o = b->output;
    const struct rows_side *of = side == 1 ? o->join : o->input;
    const struct oj_flat *flat =
        side == 1 ? b->answer->join_side : b->answer->input_side;
    const char *format = of->schema.children[of->geometry]->format;
    for (int64_t i = 0; i < b->n; i++)
    {
        int64_t row = row_of_side(b, side, i), at;
        const struct ArrowArray *array;
        if (of->record.layout.storage != ARROW_WKB)
        {
            OJ_TRY(put_wkb_of_feature(column, i, flat, row, 0, err));
            continue;
        }
        array = rows_chunks_locate_value(chunks_of_side(b, side), of->geometry,
                                         row, &at);
        if (at < 0 || !arrow_bit(arrow_validity(array), array->offset + at))
            OJ_TRY(oj_arrow_column_put_null(column, i, err));
        else
            OJ_TRY(copy_wkb(array, format, at, column, i, err));
    }
    return OJ_OK;
}

/* Returns the side whose geometries are written: the input side, or the join
 * side for join rows without an input row. */
static int side_of_geometry(const struct batch *b)
{
    return b->answer->is_join_rows && b->output->join->geometry >= 0;
}

/* Returns 1 if the geometries to write are of the output column's type, so that
 * they are copied without conversion. */
static int is_geometry_copied(const struct batch *b)
{
    const struct rows_output *o = b->output;
    return !o->is_in_wkb &&
           (side_of_geometry(b) == 0 ||
            are_types_equal(o->input->schema.children[o->input->geometry],
                            o->join->schema.children[o->join->geometry]));
}

static oj_status take_geometry(const struct batch *b, struct ArrowArray *out,
                               struct oj_error *err)
{
    const struct rows_output *o = b->output;
    int side = side_of_geometry(b);
    return take_column(b, side, (side == 1 ? o->join : o->input)->geometry, out,
                       err);
}

static double pair_value(const struct batch *b, int which, int64_t i)
{
    const struct oj_pair_values *values = b->answer->values;
    int64_t entry = b->place[i].entry;
    if (b->answer->is_join_rows || b->place[i].join_row < 0 || values == NULL ||
        values->value[which] == NULL)
        return (double)NAN;
    return values->value[which][entry];
}

/* Writes the nearest point of a pair, or the line to it, to row i. */
static oj_status put_point_or_line(const struct batch *b, int64_t i,
                                   struct oj_arrow_column *column,
                                   struct oj_error *err)
{
    static const int64_t one[] = {0, 1}, two[] = {0, 2};
    static const uint8_t line = OJ_PART_LINE;
    int is_line = b->output->geometry == OJ_WRITE_CONNECTION;
    double x[2], y[2];
    struct oj_flat flat;
    memset(&flat, 0, sizeof flat);
    x[0] = pair_value(b, OJ_PAIR_FROM_X, i);
    y[0] = pair_value(b, OJ_PAIR_FROM_Y, i);
    x[is_line] = pair_value(b, OJ_PAIR_NEAREST_X, i);
    y[is_line] = pair_value(b, OJ_PAIR_NEAREST_Y, i);
    flat.n_features = 1;
    flat.x = x;
    flat.y = y;
    flat.n_vertices = 1 + is_line;
    if (is_line)
    {
        flat.part_offset = flat.ring_offset = one;
        flat.part_kind = &line;
        flat.vertex_offset = two;
        flat.n_parts = flat.n_rings = 1;
    }
    return put_wkb_of_feature(column, i, &flat, isnan(x[is_line]) ? -1 : 0, 0,
                              err);
}

static oj_status fill_computed_geometries(const struct batch *b,
                                          struct oj_arrow_column *column,
                                          struct oj_error *err)
{
    const struct oj_pair_values *values = b->answer->values;
    struct oj_flat shapes;
    memset(&shapes, 0, sizeof shapes);
    if (values != NULL)
        shapes = oj_flat_buf_view(&values->shapes);
    for (int64_t i = 0; i < b->n; i++)
    {
        int has_pair = !b->answer->is_join_rows && b->place[i].join_row >= 0;
        if (b->output->geometry == OJ_WRITE_SHAPE)
            OJ_TRY(put_wkb_of_feature(column, i, &shapes,
                                      has_pair ? b->place[i].entry : -1,
                                      b->output->is_multi, err));
        else
            OJ_TRY(put_point_or_line(b, i, column, err));
    }
    return OJ_OK;
}

static oj_status fill_fids(const struct batch *b,
                           struct oj_arrow_column *column, struct oj_error *err)
{
    const int64_t *fid = b->answer->join_side->fid;
    int64_t *to = column->values;
    for (int64_t i = 0; i < b->n; i++)
    {
        int64_t row = row_of_side(b, 1, i);
        if (row < 0)
            OJ_TRY(oj_arrow_column_put_null(column, i, err));
        else
            to[i] = fid != NULL ? fid[row] : row;
    }
    return OJ_OK;
}

/* Fills a column with measures (which -1) or with a value of pairs. */
static oj_status fill_reals(const struct batch *b, int which,
                            struct oj_arrow_column *column,
                            struct oj_error *err)
{
    double *to = column->values;
    for (int64_t i = 0; i < b->n; i++)
    {
        to[i] = which >= 0 ? pair_value(b, which, i)
                : b->answer->is_join_rows || b->place[i].join_row < 0
                    ? (double)NAN
                    : b->answer->entries->measure[b->place[i].entry];
        if (isnan(to[i]))
            OJ_TRY(oj_arrow_column_put_null(column, i, err));
    }
    return OJ_OK;
}

static oj_status fill_ranks(const struct batch *b,
                            struct oj_arrow_column *column,
                            struct oj_error *err)
{
    int32_t *to = column->values;
    for (int64_t i = 0; i < b->n; i++)
    {
        to[i] = b->place[i].rank;
        if (b->answer->is_join_rows || b->place[i].join_row < 0)
            OJ_TRY(oj_arrow_column_put_null(column, i, err));
    }
    return OJ_OK;
}

static oj_status fill_counts(const struct batch *b,
                             struct oj_arrow_column *column,
                             struct oj_error *err)
{
    int64_t *to = column->values;
    for (int64_t i = 0; i < b->n; i++)
    {
        to[i] = b->place[i].n_pairs;
        if (b->answer->is_join_rows)
            OJ_TRY(oj_arrow_column_put_null(column, i, err));
    }
    return OJ_OK;
}

static oj_status fill_integers(const struct batch *b, int which,
                               struct oj_arrow_column *column,
                               struct oj_error *err)
{
    int64_t *to = column->values;
    for (int64_t i = 0; i < b->n; i++)
    {
        double value = pair_value(b, which, i);
        if (isnan(value))
            OJ_TRY(oj_arrow_column_put_null(column, i, err));
        else
            to[i] = (int64_t)value;
    }
    return OJ_OK;
}

static oj_status fill_texts(const struct batch *b, enum oj_pair_value which,
                            struct oj_arrow_column *column,
                            struct oj_error *err)
{
    for (int64_t i = 0; i < b->n; i++)
    {
        const double code = pair_value(b, (int)which, i);
        int64_t n = 0;
        const char *text = which == OJ_PAIR_SIDE
                               ? oj_pair_side_text(code, &n)
                               : oj_pair_value_text(which, code);
        char *to;
        if (text == NULL)
        {
            OJ_TRY(oj_arrow_column_put_null(column, i, err));
            continue;
        }
        if (which != OJ_PAIR_SIDE)
            n = (int64_t)strlen(text);
        OJ_TRY(make_room_for_value(column, i, n, &to, err));
        memcpy(to, text, (size_t)n);
    }
    return OJ_OK;
}

static oj_status fill_pair_values(const struct batch *b,
                                  enum oj_pair_value which,
                                  struct oj_arrow_column *column,
                                  struct oj_error *err)
{
    switch (oj_pair_value_kind(which))
    {
        case OJ_PAIR_KIND_INTEGER:
            return fill_integers(b, (int)which, column, err);
        case OJ_PAIR_KIND_TEXT:
            return fill_texts(b, which, column, err);
        default:
            return fill_reals(b, (int)which, column, err);
    }
}

static oj_status fill_event_names(const struct batch *b,
                                  struct oj_arrow_column *column,
                                  struct oj_error *err)
{
    const struct oj_pair_values *values = b->answer->values;
    for (int64_t i = 0; i < b->n; i++)
    {
        const char *name = values->event_name[values->event[b->place[i].entry]];
        const size_t n = strlen(name);
        char *to;
        OJ_TRY(make_room_for_value(column, i, (int64_t)n, &to, err));
        memcpy(to, name, n);
    }
    return OJ_OK;
}

/* Fills a column that is computed or converted. The column must have room for
 * all rows. */
static oj_status fill_computed_column(const struct batch *b,
                                      const struct oj_named_column *named,
                                      struct oj_arrow_column *column,
                                      struct oj_error *err)
{
    switch (named->origin)
    {
        case OJ_COLUMN_INPUT: /* the geometry column */
            return b->output->input_column[named->source] < 0
                       ? fill_computed_geometries(b, column, err)
                       : fill_wkb_of_side(b, side_of_geometry(b), column, err);
        case OJ_COLUMN_JOIN_FID:
            return fill_fids(b, column, err);
        case OJ_COLUMN_MEASURE:
            return fill_reals(b, -1, column, err);
        case OJ_COLUMN_RANK:
            return fill_ranks(b, column, err);
        case OJ_COLUMN_COUNT:
            return fill_counts(b, column, err);
        case OJ_COLUMN_PAIR_VALUE:
            return fill_pair_values(b, (enum oj_pair_value)named->source,
                                    column, err);
        case OJ_COLUMN_EVENT:
            return fill_event_names(b, column, err);
        case OJ_COLUMN_JOIN:
        case OJ_COLUMN_AGGREGATE:
            break;
    }
    return OJ_OK;
}

/* Builds column i of the output. */
static oj_status build_column(const struct batch *b, int64_t i,
                              struct ArrowArray *out, struct oj_error *err)
{
    const struct rows_output *o = b->output;
    struct oj_arrow_column column;
    oj_status status;
    OJ_TRY(oj_arrow_column_open(o->schema.children[i], b->n, &column, err));
    status = oj_arrow_column_make_room(&column, 0, b->n, err);
    if (status == OJ_OK)
        status = fill_computed_column(b, &o->columns.column[i], &column, err);
    if (status == OJ_OK)
        status = oj_arrow_column_finish(&column, b->n, out, err);
    oj_arrow_column_free(&column);
    return status;
}

static oj_status make_column(const struct batch *b, int64_t i,
                             struct ArrowArray *out, struct oj_error *err)
{
    const struct rows_output *o = b->output;
    const struct oj_named_column *column = &o->columns.column[i];
    int64_t source = column->source;
    if (column->origin == OJ_COLUMN_AGGREGATE)
        return OJ_OK; /* make_aggregate_columns() makes the columns of all
                         aggregates together */
    if (column->origin == OJ_COLUMN_JOIN)
        return take_column(b, 1, o->join_column[source], out, err);
    if (column->origin != OJ_COLUMN_INPUT || o->input_column[source] < 0)
        return build_column(b, i, out, err);
    if (o->input_column[source] != o->input->geometry)
        return take_column(b, 0, o->input_column[source], out, err);
    return is_geometry_copied(b) ? take_geometry(b, out, err)
                                 : build_column(b, i, out, err);
}

static oj_status make_aggregate_columns(const struct batch *b,
                                        struct ArrowArray *out,
                                        struct oj_error *err)
{
    const struct rows_output *o = b->output;
    struct ArrowArray **columns;
    int64_t *rows;
    oj_status status = OJ_OK;
    int n = 0;
    OJ_NEW(columns, o->columns.n, err);
    rows = oj_malloc(b->n, sizeof *rows);
    if (rows == NULL)
        status = oj_fail_nomem(err, b->n, sizeof *rows);
    for (int64_t i = 0; i < b->n && rows != NULL; i++)
        rows[i] = b->place[i].row - b->answer->first_row;
    for (int64_t i = 0; i < o->columns.n; i++)
    {
        if (o->columns.column[i].origin == OJ_COLUMN_AGGREGATE)
            columns[n++] = out->children[i];
    }
    if (status == OJ_OK)
        status =
            rows_aggregates_results(o->aggregates, rows, b->n, columns, err);
    oj_free(columns);
    oj_free(rows);
    return status;
}

/* ---- record batches ------------------------------------------------------ */

int64_t rows_output_max_row_bytes(const struct rows_output *o,
                                  const struct rows_side *side,
                                  const struct rows_chunks *chunks)
{
    const int64_t *columns =
        side == o->input ? o->input_column : o->join_column;
    int64_t most = 0;
    for (int64_t i = 0; i < o->columns.n; i++)
    {
        const struct oj_named_column *column = &o->columns.column[i];
        int64_t most_here = 0, source;
        if (column->origin !=
            (side == o->input ? OJ_COLUMN_INPUT : OJ_COLUMN_JOIN))
            continue;
        source = columns[column->source];
        for (int64_t k = 0; source >= 0 && k < chunks->n; k++)
        {
            const struct ArrowArray *record =
                oj_arrow_shared_array(chunks->shared[k]);
            int64_t here = oj_arrow_max_row_bytes(
                side->schema.children[source], record->children[source],
                record->offset, record->length);
            most_here = here > most_here ? here : most_here;
        }
        most += most_here;
    }
    return most;
}

/* Returns the number of bytes of a row of one side, over its columns in the
 * output. */
static int64_t bytes_of_side_row(const struct rows_output *o,
                                 const struct rows_side *side,
                                 const struct rows_chunks *chunks, int64_t row)
{
    const int64_t *columns =
        side == o->input ? o->input_column : o->join_column;
    int64_t sum = 0;
    for (int64_t i = 0; i < o->columns.n && row >= 0; i++)
    {
        const struct oj_named_column *column = &o->columns.column[i];
        int64_t source, at;
        const struct ArrowArray *array;
        if (column->origin !=
            (side == o->input ? OJ_COLUMN_INPUT : OJ_COLUMN_JOIN))
            continue;
        source = columns[column->source];
        if (source < 0)
            continue;
        array = rows_chunks_locate_value(chunks, source, row, &at);
        if (at >= 0)
            sum += oj_arrow_estimate_bytes(side->schema.children[source], array,
                                           at, 1);
    }
    return sum;
}

/* Returns how many of the n rows (places) fit into a record batch, but at least
 * 1. */
static int64_t count_rows_that_fit(const struct rows_output *o,
                                   const struct rows_answer *answer,
                                   const struct oj_row_place *place, int64_t n)
{
    int64_t sum = 0, fixed = 16 * o->columns.n;
    struct batch b = {.output = o, .answer = answer, .place = place, .n = n};
    if (answer->most_bytes + o->most_bytes + fixed <=
        MOST_BATCH_BYTES / (n > 0 ? n : 1))
        return n;
    for (int64_t i = 0; i < n; i++)
    {
        sum += fixed + bytes_of_side_row(o, o->join, o->join_chunks,
                                         row_of_side(&b, 1, i));
        if (answer->input != NULL)
            sum += bytes_of_side_row(o, o->input, answer->input,
                                     row_of_side(&b, 0, i));
        if (sum > MOST_BATCH_BYTES)
            return i > 0 ? i : 1;
    }
    return n;
}

static oj_status fill_batch(struct batch *b, struct ArrowArray *out,
                            struct oj_error *err)
{
    OJ_TRY(find_chunks_of_rows(b, 0, err));
    OJ_TRY(find_chunks_of_rows(b, 1, err));
    OJ_TRY(oj_arrow_array_make(1, b->output->columns.n, out, err));
    out->length = b->n;
    for (int64_t i = 0; i < b->output->columns.n; i++)
        OJ_TRY(make_column(b, i, out->children[i], err));
    return b->output->aggregates != NULL ? make_aggregate_columns(b, out, err)
                                         : OJ_OK;
}

oj_status rows_output_make_batch(const struct rows_output *output,
                                 const struct rows_answer *answer,
                                 const struct oj_row_place *places, int64_t *n,
                                 struct ArrowArray *out, struct oj_error *err)
{
    int64_t n_rows = count_rows_that_fit(output, answer, places, *n);
    for (;;)
    {
        struct batch b = {
            .output = output, .answer = answer, .place = places, .n = n_rows};
        oj_status status;
        memset(out, 0, sizeof *out);
        status = fill_batch(&b, out, err);
        for (int side = 0; side < 2; side++)
        {
            oj_free(b.chunk[side]);
            oj_free(b.row[side]);
        }
        *n = n_rows;
        if (status == OJ_OK)
            return OJ_OK;
        oj_arrow_array_release(out);
        if (status != OJ_ERR_LIMIT || n_rows == 1)
            return status;
        n_rows = (n_rows + 1) / 2;
    }
}

oj_status rows_output_open(const struct rows_side *input,
                           const struct rows_side *join,
                           const struct rows_chunks *join_chunks,
                           const struct ogrjoin_settings *settings,
                           struct rows_aggregates *aggregates,
                           struct oj_pair_request *request,
                           struct rows_output *out, struct oj_error *err)
{
    oj_status status;
    memset(out, 0, sizeof *out);
    out->input = input;
    out->join = join;
    out->join_chunks = join_chunks;
    out->how = (enum oj_how)settings->rows.how;
    out->geometry = settings->rows.geometry;
    out->aggregates = aggregates;
    status = check_geometry(out, err);
    if (status == OJ_OK)
        status = plan_columns(out, settings, request, err);
    if (status != OJ_OK)
    {
        rows_output_close(out);
        return status;
    }
    out->most_bytes = rows_output_max_row_bytes(out, join, join_chunks);
    return OJ_OK;
}

void rows_output_close(struct rows_output *output)
{
    rows_aggregates_close(output->aggregates);
    oj_row_columns_free(&output->columns);
    oj_free(output->input_column);
    oj_free(output->join_column);
    oj_arrow_schema_release(&output->schema);
    memset(output, 0, sizeof *output);
}
