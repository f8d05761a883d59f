#include "oj_row_cursor.h"
#include "../base/oj_array.h"
#include "../read/oj_attributes.h"
#include "../read/oj_table.h"
#include "oj_layer_row.h"
#include "oj_row_setters.h"

#include <math.h>
#include <string.h>

struct oj_row_cursor
{
    OGRFeatureDefnH defn;
    struct oj_write_options options;
    struct oj_flat join_side; /* the latest set, or not in use */
    struct oj_row_setters setters;
    OGRSpatialReferenceH crs;
    int64_t number; /* FID of the next row; < 0: none */
    int64_t stride; /* of FIDs of the input, where > 1 */
    struct oj_row_geometry geometry;
    int has_geometry; /* and it is not ignored */

    /* The answer: rows at .. n_rows - 1 are still to come, and before them the
     * places of entries entry .. end_entry - 1. */
    struct oj_row_sources sources;
    const struct oj_matches *matches; /* all pairs, picked or not */
    const uint8_t *is_matched;        /* of join rows */
    int64_t at, n_rows;
    int64_t entry, end_entry, first_entry;
    int64_t row, n_pairs; /* of these entries */

    /* The latest row that was made. */
    struct oj_write_pair pair;
    int64_t columns_of; /* row of the batch whose fields are set; -1: none */
    int64_t origin_fid;
};

/* ---- open and close ----------------------------------------------------- */

oj_status oj_row_cursor_open(OGRFeatureDefnH defn,
                             const struct oj_write_options *options,
                             struct oj_row_cursor **out, struct oj_error *err)
{
    struct oj_row_cursor *cursor;
    oj_status status;
    OJ_NEW(cursor, 1, err);
    memset(cursor, 0, sizeof *cursor);
    cursor->defn = defn;
    cursor->options = *options;
    cursor->options.columns = NULL; /* the caller's; copied */
    cursor->number = -1;
    cursor->geometry.promote_to_multi = options->promote_to_multi;
    cursor->geometry.multi_shapes = options->multi_shapes;
    status = oj_row_setters_init(&cursor->setters, defn, options, err);
    if (status == OJ_OK)
    {
        cursor->sources.options = &cursor->options;
        cursor->sources.columns = cursor->setters.column;
        *out = cursor;
    }
    else
        oj_row_cursor_close(cursor);
    return status;
}

void oj_row_cursor_close(struct oj_row_cursor *cursor)
{
    if (cursor == NULL)
        return;
    oj_row_setters_free(&cursor->setters);
    oj_free(cursor);
}

void oj_row_cursor_set_join_side(struct oj_row_cursor *cursor,
                                 const struct oj_flat *join_side,
                                 const struct oj_table *table)
{
    cursor->join_side = *join_side;
    cursor->options.join_side = &cursor->join_side;
    cursor->options.join_table = table;
}

void oj_row_cursor_number(struct oj_row_cursor *cursor, int64_t first)
{
    cursor->number = first;
}

void oj_row_cursor_spread(struct oj_row_cursor *cursor, int64_t stride)
{
    cursor->stride = stride;
}

void oj_row_cursor_set_crs(struct oj_row_cursor *cursor,
                           OGRSpatialReferenceH crs)
{
    cursor->crs = crs;
}

int64_t oj_row_cursor_rows_without_geometry(const struct oj_row_cursor *cursor)
{
    return cursor->geometry.n_without;
}

/* ---- answers ------------------------------------------------------------ */

void oj_row_cursor_end(struct oj_row_cursor *cursor)
{
    const struct oj_flat no_shapes = {0};
    cursor->sources.batch = NULL;
    cursor->sources.entries = NULL;
    cursor->sources.values = NULL;
    cursor->sources.shapes = no_shapes;
    cursor->matches = NULL;
    cursor->is_matched = NULL;
    cursor->at = cursor->n_rows = 0;
    cursor->entry = cursor->end_entry = 0;
    cursor->columns_of = -1;
}

static void begin(struct oj_row_cursor *cursor, const struct oj_batch *batch,
                  int is_join_rows, int64_t first_row, int64_t n_rows)
{
    oj_row_cursor_end(cursor);
    cursor->has_geometry = OGR_FD_GetGeomFieldCount(cursor->defn) > 0 &&
                           !OGR_FD_IsGeometryIgnored(cursor->defn);
    oj_row_setters_look_at_ignored(&cursor->setters);
    cursor->sources.batch = batch;
    cursor->sources.is_join_rows = is_join_rows;
    cursor->sources.first_row = first_row;
    cursor->n_rows = n_rows;
    for (int i = 0; i < OJ_N_PAIR_VALUES; i++)
        cursor->pair.value[i] = (double)NAN;
}

oj_status oj_row_cursor_begin(struct oj_row_cursor *cursor,
                              const struct oj_batch *batch, int64_t first_row,
                              const struct oj_matches *matches,
                              const struct oj_pair_values *values,
                              struct oj_error *err)
{
    const struct oj_matches *entries = oj_pair_values_matches(values, matches);
    oj_row_cursor_end(cursor);
    if (matches->n_rows == 0)
        return OJ_OK;
    if (batch->attributes == NULL || first_row < 0 ||
        matches->n_rows > batch->n_rows - first_row ||
        entries->n_rows != matches->n_rows)
        return oj_fail(
            err, OJ_ERR_INTERNAL, "%lld answers for %lld rows of a batch",
            (long long)matches->n_rows, (long long)(batch->n_rows - first_row));
    OJ_TRY(oj_row_setters_set_fields(&cursor->setters,
                                     batch->attributes->fields, err));
    begin(cursor, batch, 0, first_row, matches->n_rows);
    cursor->matches = matches;
    cursor->sources.entries = entries;
    cursor->sources.values = values;
    if (values != NULL)
        cursor->sources.shapes = oj_flat_buf_view(&values->shapes);
    return OJ_OK;
}

oj_status oj_row_cursor_begin_join_rows(struct oj_row_cursor *cursor,
                                        const struct oj_batch *batch,
                                        const uint8_t *is_matched,
                                        struct oj_error *err)
{
    oj_row_cursor_end(cursor);
    if (batch->n_rows > 0 && batch->attributes == NULL)
        return oj_fail(err, OJ_ERR_INTERNAL, "join rows without attributes");
    begin(cursor, batch, 1, 0, batch->n_rows);
    cursor->is_matched = is_matched;
    return OJ_OK;
}

/* ---- places ------------------------------------------------------------- */

/* Goes to row at; it gives no place when entry is end_entry afterwards. */
static void enter_row(struct oj_row_cursor *cursor)
{
    int64_t row = cursor->at++;
    enum oj_how how = cursor->options.how;
    int64_t first = 0, end = 0;
    cursor->row = cursor->sources.first_row + row;
    cursor->n_pairs = 0;
    if (cursor->sources.is_join_rows)
    {
        if (cursor->is_matched[row])
            return;
    }
    else
    {
        first = oj_matches_first(cursor->sources.entries, row);
        end = oj_matches_end(cursor->sources.entries, row);
        if (first == end ? how == OJ_HOW_INNER || how == OJ_HOW_SEMI
                         : how == OJ_HOW_ANTI)
            return;
        cursor->n_pairs = end - first;
        if (cursor->matches != cursor->sources.entries)
            cursor->n_pairs = oj_matches_end(cursor->matches, row) -
                              oj_matches_first(cursor->matches, row);
    }
    if (first == end || how == OJ_HOW_SEMI) /* one place without entry */
    {
        first = -1;
        end = 0;
    }
    cursor->entry = cursor->first_entry = first;
    cursor->end_entry = end;
}

/* What 64 bits cannot hold has no FID. */
static int64_t spread_fid(const struct oj_row_cursor *cursor, int64_t fid,
                          int32_t rank)
{
    int64_t stride = cursor->stride;
    if (stride <= 1)
        return fid;
    if (fid < 0 || fid > INT64_MAX / stride - 1)
        return OGRNullFID;
    return fid * stride + (rank > 0 ? rank - 1 : 0);
}

/* Of the current entry, which is then done. */
static void make_place(struct oj_row_cursor *cursor, struct oj_row_place *place)
{
    int64_t entry = cursor->entry++;
    place->row = cursor->row;
    place->entry = entry;
    place->n_pairs = cursor->n_pairs;
    place->rank = 0;
    place->join_row = -1;
    if (entry >= 0)
    {
        place->rank = (int32_t)(entry - cursor->first_entry + 1);
        place->join_row = cursor->sources.entries->join_row[entry];
    }
    place->fid = OGRNullFID;
    if (cursor->options.keep_fids && !cursor->sources.is_join_rows)
        place->fid = spread_fid(
            cursor, cursor->sources.batch->flat.fid[place->row], place->rank);
    else if (cursor->number >= 0)
        place->fid = cursor->number++;
}

int64_t oj_row_cursor_take(struct oj_row_cursor *cursor,
                           struct oj_row_place *places, int64_t n)
{
    int64_t n_taken = 0;
    cursor->columns_of = -1;
    while (n_taken < n)
    {
        if (cursor->entry != cursor->end_entry)
            make_place(cursor, &places[n_taken++]);
        else if (cursor->at < cursor->n_rows)
            enter_row(cursor);
        else
            break;
    }
    return n_taken;
}

const struct oj_row_sources *
oj_row_cursor_sources(const struct oj_row_cursor *cursor)
{
    return &cursor->sources;
}

/* ---- geometry ----------------------------------------------------------- */

/* Rows without pair have no such geometry. */
static oj_status geometry_of_pair(struct oj_row_cursor *cursor, int64_t entry,
                                  int64_t fid, struct oj_error *err)
{
    struct oj_row_geometry *geometry = &cursor->geometry;
    const double *value = cursor->pair.value;
    int64_t join_row = cursor->pair.join_row;
    int has_point = join_row >= 0 && !isnan(value[OJ_PAIR_NEAREST_X]);
    switch (cursor->options.geometry)
    {
        case OJ_WRITE_JOIN:
            if (join_row >= 0)
                return oj_row_geometry_set_flat(
                    geometry, cursor->options.join_side, join_row, fid, err);
            break;
        case OJ_WRITE_SHAPE:
            if (join_row >= 0)
                return oj_row_geometry_set_flat(
                    geometry, &cursor->sources.shapes, entry, fid, err);
            break;
        case OJ_WRITE_NEAREST_POINT:
            if (has_point)
                return oj_row_geometry_set_point(
                    geometry, value[OJ_PAIR_NEAREST_X],
                    value[OJ_PAIR_NEAREST_Y], fid, err);
            break;
        case OJ_WRITE_CONNECTION:
            if (has_point)
                return oj_row_geometry_set_line(
                    geometry, value[OJ_PAIR_FROM_X], value[OJ_PAIR_FROM_Y],
                    value[OJ_PAIR_NEAREST_X], value[OJ_PAIR_NEAREST_Y], fid,
                    err);
            break;
        case OJ_WRITE_INPUT:
            break;
    }
    return oj_row_geometry_set_null(geometry, err);
}

static oj_status set_geometry(struct oj_row_cursor *cursor, int64_t row,
                              int64_t entry, int64_t fid, struct oj_error *err)
{
    const struct oj_batch *batch = cursor->sources.batch;
    enum oj_write_geometry from = cursor->options.geometry;
    if (from == OJ_WRITE_INPUT)
        return oj_row_geometry_set_batch(&cursor->geometry, batch, row, err);
    if (!cursor->sources.is_join_rows)
        return geometry_of_pair(cursor, entry, fid, err);
    if (from == OJ_WRITE_JOIN)
    {
        const struct oj_flat flat = oj_flat_buf_view(&batch->flat);
        return oj_row_geometry_set_flat(&cursor->geometry, &flat, row, fid,
                                        err);
    }
    return oj_row_geometry_set_null(&cursor->geometry, err);
}

/* ---- columns ------------------------------------------------------------ */

/* Of a column that is not the input's, in a row with an input feature. */
static oj_status find_value(const struct oj_row_cursor *cursor,
                            const struct oj_column *column,
                            const struct oj_write_pair *pair,
                            struct oj_value *value, struct oj_error *err)
{
    const struct oj_write_options *options = &cursor->options;
    oj_value_set_zero(value);
    if (column->origin == OJ_COLUMN_COUNT)
    {
        value->raw.Integer64 = pair->n_pairs;
        return OJ_OK;
    }
    if (column->origin == OJ_COLUMN_AGGREGATE)
        return options->aggregate(options->aggregate_user, column->source,
                                  pair->row, value, err);
    if (pair->join_row < 0)
    {
        oj_value_set_null(value);
        return OJ_OK;
    }
    switch (column->origin)
    {
        case OJ_COLUMN_JOIN:
            oj_table_value(options->join_table, pair->join_row, column->source,
                           value);
            break;
        case OJ_COLUMN_MEASURE:
            value->raw.Real = pair->measure;
            break;
        case OJ_COLUMN_RANK:
            value->raw.Integer64 = pair->rank;
            break;
        case OJ_COLUMN_PAIR_VALUE:
            if (isnan(pair->value[column->source]))
                oj_value_set_null(value);
            else
                value->raw.Real = pair->value[column->source];
            break;
        default:
            value->raw.Integer64 = options->join_side->fid != NULL
                                       ? options->join_side->fid[pair->join_row]
                                       : pair->join_row;
            break;
    }
    return OJ_OK;
}

/* In a row without input feature. */
static void find_join_value(const struct oj_row_cursor *cursor,
                            const struct oj_column *column, int64_t row,
                            struct oj_value *value)
{
    const struct oj_batch *batch = cursor->sources.batch;
    oj_value_set_zero(value);
    if (column->origin == OJ_COLUMN_JOIN)
        oj_attributes_value(batch->attributes, column->source, row, value);
    else if (column->origin == OJ_COLUMN_JOIN_FID)
        value->raw.Integer64 = batch->flat.fid[row];
    else
        oj_value_set_null(value);
}

static void fill_pair(const struct oj_row_cursor *cursor,
                      const struct oj_row_place *place,
                      struct oj_write_pair *pair)
{
    const struct oj_row_sources *sources = &cursor->sources;
    pair->row = place->row - sources->first_row;
    pair->n_pairs = place->n_pairs;
    pair->join_row = place->join_row;
    pair->rank = place->rank;
    if (place->entry < 0)
        return;
    pair->measure = sources->entries->measure[place->entry];
    for (int i = 0; sources->values != NULL && i < OJ_N_PAIR_VALUES; i++)
    {
        if (sources->values->value[i] != NULL)
            pair->value[i] = sources->values->value[i][place->entry];
    }
}

oj_status oj_row_cursor_value(const struct oj_row_cursor *cursor, int column,
                              const struct oj_row_place *place,
                              struct oj_value *value, struct oj_error *err)
{
    const struct oj_column *from = &cursor->setters.column[column];
    struct oj_write_pair pair;
    if (cursor->sources.is_join_rows)
    {
        find_join_value(cursor, from, place->row, value);
        return OJ_OK;
    }
    if (from->origin == OJ_COLUMN_INPUT)
    {
        oj_attributes_value(cursor->sources.batch->attributes, from->source,
                            place->row, value);
        return OJ_OK;
    }
    pair = cursor->pair; /* values that are not there are NaN in it */
    fill_pair(cursor, place, &pair);
    return find_value(cursor, from, &pair, value, err);
}

int oj_row_cursor_is_plain(const struct oj_row_cursor *cursor, int column)
{
    return cursor->setters.setter[column].is_same;
}

oj_status oj_row_cursor_convert(const struct oj_row_cursor *cursor, int column,
                                OGRFeatureH feature, struct oj_value *value,
                                struct oj_error *err)
{
    struct oj_setter *setter = &cursor->setters.setter[column];
    if (OGR_RawField_IsNull(&value->raw) || OGR_RawField_IsUnset(&value->raw))
        return OJ_OK;
    OJ_TRY(oj_setter_set(setter, feature, value, err));
    value->raw = *OGR_F_GetRawFieldRef(feature, setter->target);
    value->n_text = -1;
    return OJ_OK;
}

oj_status oj_row_cursor_set_columns(const struct oj_row_cursor *cursor,
                                    OGRFeatureH feature,
                                    const struct oj_write_pair *pair,
                                    struct oj_error *err)
{
    const struct oj_row_setters *setters = &cursor->setters;
    const int *wanted = setters->wanted + setters->n_input_wanted;
    for (int k = 0; k < setters->n_other_wanted; k++)
    {
        int i = wanted[k];
        struct oj_value value;
        OJ_TRY(find_value(cursor, &setters->column[i], pair, &value, err));
        OJ_TRY(oj_setter_set(&setters->setter[i], feature, &value, err));
    }
    return OJ_OK;
}

static oj_status set_input_columns(struct oj_row_cursor *cursor,
                                   OGRFeatureH feature, int64_t row,
                                   struct oj_error *err)
{
    const struct oj_attributes *attributes = cursor->sources.batch->attributes;
    const struct oj_row_setters *setters = &cursor->setters;
    for (int k = 0; k < setters->n_input_wanted; k++)
    {
        int i = setters->wanted[k];
        struct oj_value value;
        oj_attributes_value(attributes, setters->column[i].source, row, &value);
        OJ_TRY(oj_setter_set(&setters->setter[i], feature, &value, err));
    }
    return OJ_OK;
}

static oj_status set_join_columns(struct oj_row_cursor *cursor,
                                  OGRFeatureH feature, int64_t row,
                                  struct oj_error *err)
{
    const struct oj_row_setters *setters = &cursor->setters;
    for (int k = 0; k < setters->n_input_wanted + setters->n_other_wanted; k++)
    {
        int i = setters->wanted[k];
        struct oj_value value;
        if (k < setters->n_input_wanted)
        {
            /* Unless rows of the input came first, there is no setter yet. */
            OGR_F_SetFieldNull(feature, setters->column[i].target);
            continue;
        }
        find_join_value(cursor, &setters->column[i], row, &value);
        OJ_TRY(oj_setter_set(&setters->setter[i], feature, &value, err));
    }
    return OJ_OK;
}

/* ---- rows --------------------------------------------------------------- */

/* Rows of the join side come in no order: what will be needed of them is
 * fetched some rows ahead, in two steps because texts hang on their offsets. */
#define FETCH_AHEAD 16

static void fetch_ahead(const struct oj_row_cursor *cursor, int64_t row)
{
    const struct oj_write_options *options = &cursor->options;
    const struct oj_matches *entries = cursor->sources.entries;
    if (entries == NULL || entries->offset != NULL ||
        options->join_table == NULL)
        return;
    for (int stage = 0; stage < 2; stage++)
    {
        int64_t ahead = row + FETCH_AHEAD * (2 - stage);
        if (ahead >= entries->n_rows || entries->join_row[ahead] < 0)
            continue;
        oj_table_prefetch(options->join_table, entries->join_row[ahead], stage);
        if (stage == 0 && options->join_side->fid != NULL)
            __builtin_prefetch(
                &options->join_side->fid[entries->join_row[ahead]]);
    }
}

static oj_status fill_columns(struct oj_row_cursor *cursor, OGRFeatureH feature,
                              const struct oj_row_place *place, int is_again,
                              struct oj_error *err)
{
    if (cursor->sources.is_join_rows)
        return set_join_columns(cursor, feature, place->row, err);
    if (!is_again || cursor->columns_of != place->row)
        OJ_TRY(set_input_columns(cursor, feature, place->row, err));
    cursor->columns_of = place->row;
    return oj_row_cursor_set_columns(cursor, feature, &cursor->pair, err);
}

static void set_crs(const struct oj_row_cursor *cursor, OGRFeatureH feature)
{
    OGRGeometryH geometry = OGR_F_GetGeometryRef(feature);
    if (geometry != NULL)
        OGR_G_AssignSpatialReference(geometry, cursor->crs);
}

oj_status oj_row_cursor_next(struct oj_row_cursor *cursor, OGRFeatureH feature,
                             int is_again, int *there, struct oj_error *err)
{
    struct oj_row_place place;
    *there = 0;
    while (cursor->entry == cursor->end_entry)
    {
        if (cursor->at == cursor->n_rows)
            return OJ_OK;
        /* now and then: an answer can take a second to write */
        if ((cursor->at & 1023) == 0)
            OJ_TRY(oj_check_cancel(cursor->options.cancel, err));
        fetch_ahead(cursor, cursor->at);
        enter_row(cursor);
    }
    make_place(cursor, &place);
    fill_pair(cursor, &place, &cursor->pair);
    cursor->origin_fid = cursor->sources.batch->flat.fid[place.row];
    cursor->geometry.feature = feature;
    OJ_TRY(fill_columns(cursor, feature, &place, is_again, err));
    if (cursor->has_geometry)
    {
        OJ_TRY(set_geometry(cursor, place.row, place.entry, cursor->origin_fid,
                            err));
        if (cursor->crs != NULL)
            set_crs(cursor, feature);
    }
    OGR_F_SetFID(feature, place.fid);
    *there = 1;
    return OJ_OK;
}

int64_t oj_row_cursor_origin(const struct oj_row_cursor *cursor,
                             const char **side)
{
    *side = cursor->sources.is_join_rows ? "join" : "input";
    return cursor->origin_fid;
}
