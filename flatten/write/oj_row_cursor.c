#include "oj_row_cursor.h"
#include "../base/oj_alloc.h"
#include "../read/oj_attribute_table.h"
#include "oj_flat_to_ogr_geometry.h"

#include <math.h>
#include <string.h>

_Static_assert(OJ_NO_FID == OGRNullFID, "places have OGR's mark of no FID");

struct oj_row_cursor
{
    OGRFeatureDefnH defn;
    struct oj_write_options options;
    struct oj_flat join_side; /* copy of the current join side */

    /* The columns of output rows, and the setters of their values. */
    int n;
    struct oj_column *column; /* [n] copy */
    /* [n]; the setters of input columns are set up with the first batch */
    struct oj_setter *setter;
    /* fields of the input's reader; NULL: no batch yet */
    const struct oj_fields *fields;

    uint8_t *is_wanted; /* [n] 0: the column is ignored in defn */

    int has_geometry; /* 1: rows have a geometry that defn does not ignore */

    struct oj_row_places places;
    struct oj_row_sources sources; /* the current answer */

    int64_t origin_fid; /* FID of the feature from which the last row was
                           made */
};

/* ---- columns and their fields -------------------------------------------- */

static OGRFieldType type_of_pair_value(enum oj_pair_value which)
{
    static const OGRFieldType types[] = {[OJ_PAIR_KIND_REAL] = OFTReal,
                                         [OJ_PAIR_KIND_INTEGER] = OFTInteger64,
                                         [OJ_PAIR_KIND_TEXT] = OFTString};
    return types[oj_pair_value_kind(which)];
}

/* Initialises the setter of column i. Types of input columns are known only
 * with the first batch. */
static oj_status init_setter_of_column(struct oj_row_cursor *cursor, int i,
                                       struct oj_error *err)
{
    const struct oj_column *column = &cursor->column[i];
    OGRFieldType type = OFTInteger64;
    OGRFieldSubType subtype = OFSTNone;
    switch (column->origin)
    {
        case OJ_COLUMN_INPUT:
            /* The target is needed to set NULLs even before the type is known.
             */
            cursor->setter[i].target = column->target;
            if (cursor->fields == NULL)
                return OJ_OK;
            if (column->source < 0 || column->source >= cursor->fields->n)
                return oj_fail_internal(err, "the batch has no field %d",
                                        column->source);
            type = cursor->fields->field[column->source].type;
            subtype = cursor->fields->field[column->source].subtype;
            break;
        case OJ_COLUMN_JOIN:
            if (cursor->options.join_table == NULL || column->source < 0 ||
                column->source >= oj_table_columns(cursor->options.join_table))
                return oj_fail_internal(err, "the join table has no column %d",
                                        column->source);
            type = oj_table_type(cursor->options.join_table, column->source,
                                 &subtype);
            break;
        case OJ_COLUMN_MEASURE:
            type = OFTReal;
            break;
        case OJ_COLUMN_PAIR_VALUE:
            type = type_of_pair_value((enum oj_pair_value)column->source);
            break;
        case OJ_COLUMN_AGGREGATE:
            type = column->type;
            subtype = column->subtype;
            break;
        case OJ_COLUMN_EVENT:
            type = OFTString;
            break;
        default:
            break;
    }
    return oj_value_setter_init(&cursor->setter[i], type, subtype, cursor->defn,
                                column->target, err);
}

static oj_status init_setters(struct oj_row_cursor *cursor,
                              const struct oj_write_options *options,
                              struct oj_error *err)
{
    int n = cursor->n = options->n_columns;
    cursor->column = oj_calloc(n, sizeof *cursor->column);
    cursor->setter = oj_calloc(n, sizeof *cursor->setter);
    cursor->is_wanted = oj_calloc(n, sizeof *cursor->is_wanted);
    if (cursor->column == NULL || cursor->setter == NULL ||
        cursor->is_wanted == NULL)
        return oj_fail_nomem(err, n, sizeof *cursor->setter);
    for (int i = 0; i < n; i++)
    {
        cursor->column[i] = options->columns[i];
        OJ_TRY(init_setter_of_column(cursor, i, err));
    }
    return OJ_OK;
}

/* Prepares the setters of input columns, again if the input's reader has
 * changed. */
static oj_status set_input_fields_of_reader(struct oj_row_cursor *cursor,
                                            const struct oj_fields *fields,
                                            struct oj_error *err)
{
    if (cursor->fields == fields)
        return OJ_OK;
    cursor->fields = fields;
    for (int i = 0; i < cursor->n; i++)
    {
        if (cursor->column[i].origin != OJ_COLUMN_INPUT)
            continue;
        oj_value_setter_free(&cursor->setter[i]);
        OJ_TRY(init_setter_of_column(cursor, i, err));
    }
    return OJ_OK;
}

static void mark_wanted_columns(struct oj_row_cursor *cursor)
{
    for (int i = 0; i < cursor->n; i++)
        cursor->is_wanted[i] = !OGR_Fld_IsIgnored(
            OGR_FD_GetFieldDefn(cursor->defn, cursor->column[i].target));
}

/* ---- open and close ------------------------------------------------------ */

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
    cursor->options.columns = NULL; /* the caller owns it; copied above */
    cursor->places = oj_row_places_make(options->how);
    status = init_setters(cursor, options, err);
    if (status == OJ_OK)
    {
        mark_wanted_columns(cursor);
        cursor->sources.options = &cursor->options;
        cursor->sources.columns = cursor->column;
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
    for (int i = 0; cursor->setter != NULL && i < cursor->n; i++)
        oj_value_setter_free(&cursor->setter[i]);
    oj_free(cursor->column);
    oj_free(cursor->setter);
    oj_free(cursor->is_wanted);
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

void oj_row_cursor_set_first_fid(struct oj_row_cursor *cursor, int64_t first)
{
    oj_row_places_set_first_fid(&cursor->places, first);
}

void oj_row_cursor_set_fid_stride(struct oj_row_cursor *cursor, int64_t stride)
{
    oj_row_places_set_fid_stride(&cursor->places, stride);
}

/* ---- answers ------------------------------------------------------------- */

void oj_row_cursor_end_answer(struct oj_row_cursor *cursor)
{
    const struct oj_flat no_shapes = {0};
    cursor->sources.batch = NULL;
    cursor->sources.entries = NULL;
    cursor->sources.values = NULL;
    cursor->sources.shapes = no_shapes;
    oj_row_places_end(&cursor->places);
}

static void begin_input_batch(struct oj_row_cursor *cursor,
                              const struct oj_batch *batch, int is_join_rows,
                              int64_t first_row)
{
    oj_row_cursor_end_answer(cursor);
    cursor->has_geometry = OGR_FD_GetGeomFieldCount(cursor->defn) > 0 &&
                           !OGR_FD_IsGeometryIgnored(cursor->defn);
    mark_wanted_columns(cursor);
    cursor->sources.batch = batch;
    cursor->sources.is_join_rows = is_join_rows;
    cursor->sources.first_row = first_row;
}

oj_status oj_row_cursor_begin_answer(struct oj_row_cursor *cursor,
                                     const struct oj_batch *batch,
                                     int64_t first_row,
                                     const struct oj_matches *matches,
                                     const struct oj_pair_values *values,
                                     struct oj_error *err)
{
    const struct oj_matches *entries = oj_pair_values_matches(values, matches);
    oj_row_cursor_end_answer(cursor);
    if (matches->n_rows == 0)
        return OJ_OK;
    if (batch->attributes == NULL || first_row < 0 ||
        matches->n_rows > batch->n_rows - first_row ||
        entries->n_rows != matches->n_rows)
        return oj_fail_internal(err, "%lld answers for %lld rows of a batch",
                                (long long)matches->n_rows,
                                (long long)(batch->n_rows - first_row));
    OJ_TRY(set_input_fields_of_reader(cursor, batch->attributes->fields, err));
    begin_input_batch(cursor, batch, 0, first_row);
    oj_row_places_begin(&cursor->places, entries, matches, first_row,
                        cursor->options.keep_fids ? batch->flat.fid : NULL);
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
    oj_row_cursor_end_answer(cursor);
    if (batch->n_rows > 0 && batch->attributes == NULL)
        return oj_fail_internal(err,
                                "rows of the join layer have no attributes");
    begin_input_batch(cursor, batch, 1, 0);
    oj_row_places_begin_unmatched(&cursor->places, batch->n_rows, is_matched);
    return OJ_OK;
}

/* ---- places -------------------------------------------------------------- */

/* Join features are accessed in random order, so they are prefetched some rows
 * ahead, in two steps: first the offsets of texts, then the texts. */
#define FETCH_AHEAD 16

void oj_row_cursor_prefetch(const struct oj_row_cursor *cursor,
                            const struct oj_row_place *place)
{
    const struct oj_write_options *options = &cursor->options;
    const struct oj_matches *entries = cursor->sources.entries;
    if (place->entry < 0 || entries->scattered || options->join_table == NULL)
        return;
    for (int stage = 0; stage < 2; stage++)
    {
        int64_t ahead = place->entry + FETCH_AHEAD * (2 - stage);
        if (ahead >= entries->n_entries || entries->join_row[ahead] < 0)
            continue;
        oj_table_prefetch(options->join_table, entries->join_row[ahead], stage);
        if (stage == 0 && options->join_side->fid != NULL)
            __builtin_prefetch(
                &options->join_side->fid[entries->join_row[ahead]]);
    }
}

int64_t oj_row_cursor_next_places(struct oj_row_cursor *cursor,
                                  struct oj_row_place *places, int64_t n)
{
    return oj_row_places_next(&cursor->places, places, n);
}

const struct oj_row_sources *
oj_row_cursor_sources(const struct oj_row_cursor *cursor)
{
    return &cursor->sources;
}

/* ---- geometry ------------------------------------------------------------ */

/* Returns a value of the pair at this entry; NaN: the pair does not have this
 * value. */
static double pair_value(const struct oj_row_sources *sources,
                         enum oj_pair_value which, int64_t entry)
{
    const struct oj_pair_values *values = sources->values;
    if (entry < 0 || values == NULL || values->value[which] == NULL)
        return (double)NAN;
    return values->value[which][entry];
}

/* Makes the nearest point of a pair, or the line that connects its nearest
 * points. */
static void make_nearest_point_or_line(const struct oj_row_cursor *cursor,
                                       int64_t entry,
                                       struct oj_row_geometry *shape)
{
    static const int64_t one[] = {0, 1}, two[] = {0, 2};
    static const uint8_t line = OJ_PART_LINE;
    const struct oj_row_sources *sources = &cursor->sources;
    const struct oj_flat empty = {0};
    int is_line = cursor->options.geometry == OJ_WRITE_CONNECTION;
    shape->x[is_line] = pair_value(sources, OJ_PAIR_NEAREST_X, entry);
    shape->y[is_line] = pair_value(sources, OJ_PAIR_NEAREST_Y, entry);
    if (isnan(shape->x[is_line]))
        return;
    shape->own = empty;
    shape->own.x = shape->x;
    shape->own.y = shape->y;
    shape->flat = &shape->own;
    if (!is_line)
        return;
    shape->x[0] = pair_value(sources, OJ_PAIR_FROM_X, entry);
    shape->y[0] = pair_value(sources, OJ_PAIR_FROM_Y, entry);
    shape->own.part_offset = shape->own.ring_offset = one;
    shape->own.part_kind = &line;
    shape->own.vertex_offset = two;
}

void oj_row_cursor_geometry(const struct oj_row_cursor *cursor,
                            const struct oj_row_place *place,
                            struct oj_row_geometry *shape)
{
    const struct oj_row_sources *sources = &cursor->sources;
    const struct oj_write_options *options = &cursor->options;
    enum oj_write_geometry from = options->geometry;
    shape->multi = options->promote_to_multi;
    shape->is_as_read = from == OJ_WRITE_INPUT;
    shape->flat = NULL;
    shape->feature = 0;
    if (from == OJ_WRITE_JOIN || from == OJ_WRITE_SHAPE)
        shape->multi |= options->multi_shapes;
    if (sources->is_join_rows && from == OJ_WRITE_JOIN)
    {
        shape->own = oj_flat_buf_view(&sources->batch->flat);
        shape->flat = &shape->own;
        shape->feature = place->row;
    }
    if (place->join_row < 0 || shape->is_as_read)
        return;
    if (from == OJ_WRITE_JOIN)
    {
        shape->flat = options->join_side;
        shape->feature = place->join_row;
    }
    else if (from == OJ_WRITE_SHAPE)
    {
        shape->flat = &sources->shapes;
        shape->feature = place->entry;
    }
    else
        make_nearest_point_or_line(cursor, place->entry, shape);
}

/* ---- columns ------------------------------------------------------------- */

/* Returns 1 if entries are events. The measure of an event may be NaN, which is
 * written as NULL: a feature that a key has left is in no pair any more. */
static int are_entries_events(const struct oj_row_sources *sources)
{
    return sources->values != NULL && sources->values->event != NULL;
}

static void find_event_name(const struct oj_row_sources *sources,
                            const struct oj_row_place *place,
                            struct oj_value *value)
{
    const struct oj_pair_values *values = sources->values;
    if (are_entries_events(sources) && place->entry >= 0)
        value->raw.String =
            (char *)values->event_name[values->event[place->entry]];
    else
        oj_value_set_null(value);
}

static void set_pair_value(const struct oj_row_sources *sources,
                           enum oj_pair_value which, int64_t entry,
                           struct oj_value *value)
{
    const double number = pair_value(sources, which, entry);
    const enum oj_pair_kind kind = oj_pair_value_kind(which);
    if (isnan(number))
        oj_value_set_null(value);
    else if (kind == OJ_PAIR_KIND_REAL)
        value->raw.Real = number;
    else if (kind == OJ_PAIR_KIND_INTEGER)
        value->raw.Integer64 = (int64_t)number;
    else
        value->raw.String = (char *)oj_pair_value_text(which, number);
}

/* Sets *value to the value of a column for a row that has a pair. */
static void find_pair_value(const struct oj_row_cursor *cursor,
                            const struct oj_column *column,
                            const struct oj_row_place *place,
                            struct oj_value *value)
{
    const struct oj_write_options *options = &cursor->options;
    const struct oj_row_sources *sources = &cursor->sources;
    switch (column->origin)
    {
        case OJ_COLUMN_JOIN:
            oj_table_value(options->join_table, place->join_row, column->source,
                           value);
            break;
        case OJ_COLUMN_MEASURE:
            value->raw.Real = sources->entries->measure[place->entry];
            if (are_entries_events(sources) && isnan(value->raw.Real))
                oj_value_set_null(value);
            break;
        case OJ_COLUMN_RANK:
            value->raw.Integer64 = place->rank;
            break;
        case OJ_COLUMN_PAIR_VALUE:
            set_pair_value(sources, (enum oj_pair_value)column->source,
                           place->entry, value);
            break;
        default:
            value->raw.Integer64 =
                options->join_side->fid != NULL
                    ? options->join_side->fid[place->join_row]
                    : place->join_row;
            break;
    }
}

static oj_status find_value_of_column(const struct oj_row_cursor *cursor,
                                      const struct oj_column *column,
                                      const struct oj_row_place *place,
                                      struct oj_value *value,
                                      struct oj_error *err)
{
    const struct oj_write_options *options = &cursor->options;
    const struct oj_row_sources *sources = &cursor->sources;
    int is_join_row = sources->is_join_rows;
    if (column->origin == (is_join_row ? OJ_COLUMN_JOIN : OJ_COLUMN_INPUT))
    {
        oj_attributes_value(sources->batch->attributes, column->source,
                            place->row, value);
        return OJ_OK;
    }
    oj_value_set_zero(value);
    if (!is_join_row && column->origin == OJ_COLUMN_AGGREGATE)
        return options->aggregate(options->aggregate_user, column->source,
                                  place->row - sources->first_row, value, err);
    if (!is_join_row && column->origin == OJ_COLUMN_EVENT)
        find_event_name(sources, place, value);
    else if (!is_join_row && column->origin == OJ_COLUMN_COUNT)
        value->raw.Integer64 = place->n_pairs;
    else if (is_join_row && column->origin == OJ_COLUMN_JOIN_FID)
        value->raw.Integer64 = sources->batch->flat.fid[place->row];
    else if (place->join_row < 0)
        oj_value_set_null(value);
    else
        find_pair_value(cursor, column, place, value);
    return OJ_OK;
}

oj_status oj_row_cursor_value(const struct oj_row_cursor *cursor, int column,
                              const struct oj_row_place *place,
                              OGRFeatureH scratch, struct oj_value *value,
                              struct oj_error *err)
{
    struct oj_setter *setter = &cursor->setter[column];
    OJ_TRY(find_value_of_column(cursor, &cursor->column[column], place, value,
                                err));
    if (setter->is_same || !oj_value_is_there(value))
        return OJ_OK;
    OJ_TRY(oj_value_setter_set(setter, scratch, value, err));
    value->raw = *OGR_F_GetRawFieldRef(scratch, setter->target);
    value->n_text = -1;
    return OJ_OK;
}

int oj_row_cursor_needs_no_conversion(const struct oj_row_cursor *cursor,
                                      int column)
{
    return cursor->setter[column].is_same &&
           cursor->column[column].origin != OJ_COLUMN_AGGREGATE;
}

static void set_number_view(struct oj_row_view *found, enum oj_row_number by,
                            char format, const void *values)
{
    found->by = by;
    found->view.format = values != NULL ? format : 0;
    found->view.values = values;
}

static struct oj_row_view
view_column_of_answer(const struct oj_row_cursor *cursor, int c)
{
    const struct oj_row_sources *sources = &cursor->sources;
    const struct oj_write_options *options = &cursor->options;
    const struct oj_slice *slice = &sources->batch->attributes->slice;
    const struct oj_column *column = &cursor->column[c];
    struct oj_row_view found = {.by = OJ_BY_ROW};
    int is_join_row = sources->is_join_rows;
    if (column->origin == (is_join_row ? OJ_COLUMN_JOIN : OJ_COLUMN_INPUT))
    {
        if (slice->chunk == NULL)
            return found;
        found.view = slice->chunk->column[OJ_CHUNK_FIELDS + column->source];
        found.view.first += slice->first;
    }
    else if (!is_join_row && column->origin == OJ_COLUMN_JOIN)
    {
        found.by = OJ_BY_JOIN_ROW;
        found.view = oj_table_view(options->join_table, column->source);
    }
    else if (!is_join_row && column->origin == OJ_COLUMN_JOIN_FID)
        set_number_view(&found, OJ_BY_JOIN_ROW, 'l', options->join_side->fid);
    else if (!is_join_row && column->origin == OJ_COLUMN_MEASURE &&
             !are_entries_events(sources))
        set_number_view(&found, OJ_BY_ENTRY, 'g', sources->entries->measure);
    else if (!is_join_row && column->origin == OJ_COLUMN_PAIR_VALUE &&
             sources->values != NULL &&
             oj_pair_value_kind((enum oj_pair_value)column->source) ==
                 OJ_PAIR_KIND_REAL)
    {
        set_number_view(&found, OJ_BY_ENTRY, 'g',
                        sources->values->value[column->source]);
        found.is_nan_null = 1;
    }
    return found;
}

/* For a column of pair values of kind OJ_PAIR_KIND_TEXT: sets column->code_of
 * to the kind of value and column->codes to its codes, by entry. */
static void view_text_codes(const struct oj_row_cursor *cursor,
                            struct oj_row_column *column)
{
    const struct oj_column *of = &cursor->column[column->number];
    const struct oj_pair_values *values = cursor->sources.values;
    if (of->origin != OJ_COLUMN_PAIR_VALUE || values == NULL ||
        cursor->sources.is_join_rows)
        return;
    column->code_of = (enum oj_pair_value)of->source;
    if (oj_pair_value_kind(column->code_of) == OJ_PAIR_KIND_TEXT)
        column->codes = values->value[column->code_of];
}

void oj_row_column_begin_answer(struct oj_row_column *column,
                                const struct oj_row_cursor *cursor)
{
    char own = oj_format_of_type(column->type),
         *format = &column->values.view.format;
    *format = 0;
    column->codes = NULL;
    if (column->number >= 0 &&
        oj_row_cursor_needs_no_conversion(cursor, column->number))
    {
        column->values = view_column_of_answer(cursor, column->number);
        view_text_codes(cursor, column);
    }
    if (own == 'F' || (*format != own && *format != own + 'a' - 'A'))
        *format = 0;
}

static oj_status set_columns_of_feature(const struct oj_row_cursor *cursor,
                                        OGRFeatureH feature, int with_input,
                                        const struct oj_row_place *place,
                                        struct oj_error *err)
{
    for (int i = 0; i < cursor->n; i++)
    {
        const struct oj_column *column = &cursor->column[i];
        struct oj_value value;
        if (!cursor->is_wanted[i] ||
            (!with_input && column->origin == OJ_COLUMN_INPUT))
            continue;
        OJ_TRY(find_value_of_column(cursor, column, place, &value, err));
        OJ_TRY(oj_value_setter_set(&cursor->setter[i], feature, &value, err));
    }
    return OJ_OK;
}

void oj_row_cursor_begin_pair(struct oj_row_cursor *cursor,
                              const struct oj_matches *entries,
                              const struct oj_pair_values *values)
{
    oj_row_cursor_end_answer(cursor);
    cursor->sources.is_join_rows = 0;
    cursor->sources.first_row = 0;
    cursor->sources.entries = entries;
    cursor->sources.values = values;
}

oj_status oj_row_cursor_set_join_fields(const struct oj_row_cursor *cursor,
                                        OGRFeatureH feature,
                                        const struct oj_row_place *place,
                                        struct oj_error *err)
{
    return set_columns_of_feature(cursor, feature, 0, place, err);
}

/* ---- rows ---------------------------------------------------------------- */

oj_status oj_row_cursor_fill_feature(struct oj_row_cursor *cursor,
                                     const struct oj_row_place *place,
                                     OGRFeatureH feature, struct oj_error *err)
{
    struct oj_row_geometry shape;
    OGRGeometryH geometry;
    cursor->origin_fid = cursor->sources.batch->flat.fid[place->row];
    OJ_TRY(set_columns_of_feature(cursor, feature, 1, place, err));
    if (cursor->has_geometry)
    {
        oj_row_cursor_geometry(cursor, place, &shape);
        OJ_TRY(oj_row_geometry_make(cursor->sources.batch, place->row, &shape,
                                    &geometry, err));
        if (cursor->options.crs != NULL && geometry != NULL)
            OGR_G_AssignSpatialReference(geometry, cursor->options.crs);
        OGR_F_SetGeometryDirectly(feature, geometry);
    }
    OGR_F_SetFID(feature, place->fid);
    return OJ_OK;
}

oj_status oj_row_cursor_next(struct oj_row_cursor *cursor, OGRFeatureH feature,
                             int *there, struct oj_error *err)
{
    struct oj_row_place place;
    *there = 0;
    if (oj_row_cursor_next_places(cursor, &place, 1) == 0)
        return OJ_OK;
    OJ_TRY(oj_check_cancel(cursor->options.cancel, err));
    oj_row_cursor_prefetch(cursor, &place);
    OJ_TRY(oj_row_cursor_fill_feature(cursor, &place, feature, err));
    *there = 1;
    return OJ_OK;
}

int64_t oj_row_cursor_source_fid(const struct oj_row_cursor *cursor,
                                 const char **side)
{
    *side = cursor->sources.is_join_rows ? "join" : "input";
    return cursor->origin_fid;
}
