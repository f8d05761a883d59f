#include "oj_layer_write.h"
#include "oj_array.h"
#include "oj_batch.h"
#include "oj_layer_row.h"
#include "oj_ogr_errors.h"
#include "oj_table.h"

#include <math.h>
#include <string.h>

struct way
{
    struct oj_column column;
    struct oj_setter setter;
};

struct oj_layer_writer
{
    OGRLayerH layer;
    struct oj_write_options options;
    struct oj_flat join_side; /* the latest set, or not in use */
    struct way *way;
    OGRFeatureH feature;            /* one for all rows */
    const struct oj_fields *fields; /* the reader's; NULL: not seen yet */
    struct oj_ogr_errors errors;
    struct oj_row_geometry geometry;
    int has_geometry;
    int64_t n_rows;
};

/* ---- open and close ----------------------------------------------------- */

/* Columns of the input get their setters with the first batch, which knows the
 * types. */
static oj_status init_way(struct oj_layer_writer *writer, struct way *way,
                          struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(writer->layer);
    OGRFieldType type = OFTInteger64;
    OGRFieldSubType subtype = OFSTNone;
    switch (way->column.origin)
    {
        case OJ_COLUMN_INPUT:
            if (writer->fields == NULL)
                return OJ_OK;
            if (way->column.source < 0 ||
                way->column.source >= writer->fields->n)
                return oj_fail(err, OJ_ERR_INTERNAL,
                               "the batch has no field %d", way->column.source);
            type = writer->fields->field[way->column.source].type;
            subtype = writer->fields->field[way->column.source].subtype;
            break;
        case OJ_COLUMN_JOIN:
            if (writer->options.join_table == NULL || way->column.source < 0 ||
                way->column.source >=
                    oj_table_columns(writer->options.join_table))
                return oj_fail(err, OJ_ERR_INTERNAL,
                               "the join table has no column %d",
                               way->column.source);
            type = oj_table_type(writer->options.join_table, way->column.source,
                                 &subtype);
            break;
        case OJ_COLUMN_MEASURE:
        case OJ_COLUMN_PAIR_VALUE:
            type = OFTReal;
            break;
        case OJ_COLUMN_AGGREGATE:
            type = way->column.type;
            subtype = way->column.subtype;
            break;
        default:
            break;
    }
    return oj_setter_init(&way->setter, type, subtype, defn, way->column.target,
                          err);
}

/* Once, or again when batches come from another reader. */
static oj_status set_fields(struct oj_layer_writer *writer,
                            const struct oj_fields *fields,
                            struct oj_error *err)
{
    writer->fields = fields;
    for (int i = 0; i < writer->options.n_columns; i++)
    {
        struct way *way = &writer->way[i];
        if (way->column.origin != OJ_COLUMN_INPUT)
            continue;
        oj_setter_free(&way->setter);
        OJ_TRY(init_way(writer, way, err));
    }
    return OJ_OK;
}

oj_status oj_layer_writer_open(OGRLayerH layer,
                               const struct oj_write_options *options,
                               struct oj_layer_writer **out,
                               struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    struct oj_layer_writer *writer;
    oj_status status = OJ_OK;
    OJ_NEW(writer, 1, err);
    memset(writer, 0, sizeof *writer);
    writer->layer = layer;
    writer->options = *options;
    writer->options.columns = NULL; /* the caller's; copied to way */
    writer->has_geometry = OGR_FD_GetGeomFieldCount(defn) > 0;
    writer->feature = OGR_F_Create(defn);
    writer->geometry.feature = writer->feature;
    writer->geometry.promote_to_multi = options->promote_to_multi;
    writer->geometry.multi_shapes = options->multi_shapes;
    writer->way = oj_calloc(options->n_columns, sizeof *writer->way);
    if (writer->way == NULL || writer->feature == NULL)
        status = oj_fail_nomem(err, options->n_columns, sizeof *writer->way);
    for (int i = 0; status == OJ_OK && i < options->n_columns; i++)
    {
        writer->way[i].column = options->columns[i];
        status = init_way(writer, &writer->way[i], err);
    }
    if (status == OJ_OK)
        *out = writer;
    else
        oj_layer_writer_close(writer);
    return status;
}

void oj_layer_writer_set_join_side(struct oj_layer_writer *writer,
                                   const struct oj_flat *join_side,
                                   const struct oj_table *table)
{
    writer->join_side = *join_side;
    writer->options.join_side = &writer->join_side;
    writer->options.join_table = table;
}

void oj_layer_writer_close(struct oj_layer_writer *writer)
{
    if (writer == NULL)
        return;
    for (int i = 0; writer->way != NULL && i < writer->options.n_columns; i++)
        oj_setter_free(&writer->way[i].setter);
    if (writer->feature != NULL)
        OGR_F_Destroy(writer->feature);
    oj_free(writer->way);
    oj_free(writer);
}

int64_t oj_layer_writer_rows(const struct oj_layer_writer *writer)
{
    return writer->n_rows;
}

int64_t
oj_layer_writer_rows_without_geometry(const struct oj_layer_writer *writer)
{
    return writer->geometry.n_without;
}

int64_t oj_layer_writer_warnings(const struct oj_layer_writer *writer,
                                 const char **first)
{
    *first = writer->errors.warning;
    return writer->errors.n_warnings;
}

/* ---- geometry ----------------------------------------------------------- */

/* Rows without pair have no such geometry. */
static oj_status geometry_of_pair(struct oj_layer_writer *writer,
                                  const struct oj_write_pair *pair,
                                  const struct oj_flat *shapes, int64_t entry,
                                  int64_t fid, struct oj_error *err)
{
    const double *value = pair->value;
    int has_point = pair->join_row >= 0 && !isnan(value[OJ_PAIR_NEAREST_X]);
    switch (writer->options.geometry)
    {
        case OJ_WRITE_JOIN:
            if (pair->join_row >= 0)
                return oj_row_geometry_set_flat(&writer->geometry,
                                                writer->options.join_side,
                                                pair->join_row, fid, err);
            break;
        case OJ_WRITE_SHAPE:
            if (pair->join_row >= 0)
                return oj_row_geometry_set_flat(&writer->geometry, shapes,
                                                entry, fid, err);
            break;
        case OJ_WRITE_NEAREST_POINT:
            if (has_point)
                return oj_row_geometry_set_point(
                    &writer->geometry, value[OJ_PAIR_NEAREST_X],
                    value[OJ_PAIR_NEAREST_Y], fid, err);
            break;
        case OJ_WRITE_CONNECTION:
            if (has_point)
                return oj_row_geometry_set_line(
                    &writer->geometry, value[OJ_PAIR_FROM_X],
                    value[OJ_PAIR_FROM_Y], value[OJ_PAIR_NEAREST_X],
                    value[OJ_PAIR_NEAREST_Y], fid, err);
            break;
        case OJ_WRITE_INPUT:
            break;
    }
    return oj_row_geometry_set_null(&writer->geometry, err);
}

/* ---- columns ------------------------------------------------------------ */

static oj_status set_input_columns(struct oj_layer_writer *writer,
                                   const struct oj_batch *batch, int64_t row,
                                   struct oj_error *err)
{
    for (int i = 0; i < writer->options.n_columns; i++)
    {
        struct way *way = &writer->way[i];
        struct oj_value value;
        if (way->column.origin != OJ_COLUMN_INPUT)
            continue;
        oj_attributes_value(batch->attributes, way->column.source, row, &value);
        OJ_TRY(oj_setter_set(&way->setter, writer->feature, &value, err));
    }
    return OJ_OK;
}

static oj_status find_value(const struct oj_layer_writer *writer,
                            const struct oj_column *column,
                            const struct oj_write_pair *pair,
                            struct oj_value *value, struct oj_error *err)
{
    const struct oj_flat *side = writer->options.join_side;
    oj_value_set_zero(value);
    if (column->origin == OJ_COLUMN_COUNT)
    {
        value->raw.Integer64 = pair->n_pairs;
        return OJ_OK;
    }
    if (column->origin == OJ_COLUMN_AGGREGATE)
        return writer->options.aggregate(writer->options.aggregate_user,
                                         column->source, pair->row, value, err);
    if (pair->join_row < 0)
    {
        oj_value_set_null(value);
        return OJ_OK;
    }
    switch (column->origin)
    {
        case OJ_COLUMN_JOIN:
            oj_table_value(writer->options.join_table, pair->join_row,
                           column->source, value);
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
            value->raw.Integer64 =
                side->fid != NULL ? side->fid[pair->join_row] : pair->join_row;
            break;
    }
    return OJ_OK;
}

oj_status oj_layer_writer_set_columns(const struct oj_layer_writer *writer,
                                      OGRFeatureH feature,
                                      const struct oj_write_pair *pair,
                                      struct oj_error *err)
{
    for (int i = 0; i < writer->options.n_columns; i++)
    {
        struct way *way = &writer->way[i];
        struct oj_value value;
        if (way->column.origin == OJ_COLUMN_INPUT)
            continue;
        OJ_TRY(find_value(writer, &way->column, pair, &value, err));
        OJ_TRY(oj_setter_set(&way->setter, feature, &value, err));
    }
    return OJ_OK;
}

/* ---- rows --------------------------------------------------------------- */

/* The part of a batch that is being written. */
struct part
{
    const struct oj_batch *batch;
    int64_t first_row;
    const struct oj_matches *matches; /* all pairs */
    const struct oj_matches *entries; /* those to be written */
    const struct oj_pair_values *values;
    struct oj_flat shapes;
};

static oj_status create_row(struct oj_layer_writer *writer, int64_t from,
                            int64_t fid, const char *side, struct oj_error *err)
{
    OGRErr code;
    OGR_F_SetFID(writer->feature, fid);
    code = OGR_L_CreateFeature(writer->layer, writer->feature);
    if (code != OGRERR_NONE || writer->errors.n_failures > 0)
        return oj_fail(err, OJ_ERR_IO,
                       "the row of %s feature %lld cannot be written to "
                       "layer %s: %s",
                       side, (long long)from, OGR_L_GetName(writer->layer),
                       oj_ogr_errors_text(&writer->errors));
    writer->n_rows++;
    return OJ_OK;
}

/* entry: of the pair, where there is one. */
static oj_status write_pair(struct oj_layer_writer *writer,
                            const struct part *part,
                            const struct oj_write_pair *pair, int64_t entry,
                            struct oj_error *err)
{
    int64_t row = part->first_row + pair->row;
    int64_t fid = part->batch->flat.fid[row];
    OJ_TRY(oj_layer_writer_set_columns(writer, writer->feature, pair, err));
    if (writer->has_geometry && writer->options.geometry == OJ_WRITE_INPUT)
        OJ_TRY(oj_row_geometry_set_batch(&writer->geometry, part->batch, row,
                                         err));
    else if (writer->has_geometry)
        OJ_TRY(geometry_of_pair(writer, pair, &part->shapes, entry, fid, err));
    return create_row(writer, fid, writer->options.keep_fids ? fid : OGRNullFID,
                      "input", err);
}

static void fill_pair(const struct part *part, int64_t entry, int64_t rank,
                      struct oj_write_pair *pair)
{
    pair->join_row = part->entries->join_row[entry];
    pair->measure = part->entries->measure[entry];
    pair->rank = rank;
    for (int i = 0; part->values != NULL && i < OJ_N_PAIR_VALUES; i++)
    {
        if (part->values->value[i] != NULL)
            pair->value[i] = part->values->value[i][entry];
    }
}

static oj_status write_row(struct oj_layer_writer *writer,
                           const struct part *part, int64_t row,
                           struct oj_error *err)
{
    int64_t first = oj_matches_first(part->entries, row);
    int64_t end = oj_matches_end(part->entries, row);
    enum oj_how how = writer->options.how;
    struct oj_write_pair pair = {0};
    if (first == end ? how == OJ_HOW_INNER || how == OJ_HOW_SEMI
                     : how == OJ_HOW_ANTI)
        return OJ_OK;
    OJ_TRY(set_input_columns(writer, part->batch, part->first_row + row, err));
    pair.row = row;
    pair.n_pairs = oj_matches_end(part->matches, row) -
                   oj_matches_first(part->matches, row);
    pair.join_row = -1;
    for (int i = 0; i < OJ_N_PAIR_VALUES; i++)
        pair.value[i] = (double)NAN;
    if (first == end || how == OJ_HOW_SEMI)
        return write_pair(writer, part, &pair, -1, err);
    for (int64_t p = first; p < end; p++)
    {
        fill_pair(part, p, p - first + 1, &pair);
        OJ_TRY(write_pair(writer, part, &pair, p, err));
    }
    return OJ_OK;
}

/* Rows of the join side come in no order: what the writer will need of them is
 * fetched some rows ahead, in two steps because texts hang on their offsets. */
#define FETCH_AHEAD 16

static void fetch_ahead(const struct oj_layer_writer *writer,
                        const struct oj_matches *matches, int64_t row)
{
    const struct oj_write_options *options = &writer->options;
    if (matches->offset != NULL || options->join_table == NULL)
        return;
    for (int stage = 0; stage < 2; stage++)
    {
        int64_t ahead = row + FETCH_AHEAD * (2 - stage);
        if (ahead >= matches->n_rows || matches->join_row[ahead] < 0)
            continue;
        oj_table_prefetch(options->join_table, matches->join_row[ahead], stage);
        if (stage == 0 && options->join_side->fid != NULL)
            __builtin_prefetch(
                &options->join_side->fid[matches->join_row[ahead]]);
    }
}

/* Asked now and then: a batch can take a second to write. */
static int is_cancelled(const struct oj_layer_writer *writer, int64_t row)
{
    const int *cancel = writer->options.cancel;
    return row % 1024 == 0 && cancel != NULL &&
           __atomic_load_n(cancel, __ATOMIC_RELAXED) != 0;
}

static oj_status write_rows(struct oj_layer_writer *writer,
                            const struct part *part, struct oj_error *err)
{
    if (writer->fields != part->batch->attributes->fields)
        OJ_TRY(set_fields(writer, part->batch->attributes->fields, err));
    for (int64_t i = 0; i < part->matches->n_rows; i++)
    {
        if (is_cancelled(writer, i))
            return oj_fail(err, OJ_ERR_CANCELLED, "interrupted");
        fetch_ahead(writer, part->entries, i);
        OJ_TRY(write_row(writer, part, i, err));
    }
    return OJ_OK;
}

oj_status oj_layer_writer_write(struct oj_layer_writer *writer,
                                const struct oj_batch *batch, int64_t first_row,
                                const struct oj_matches *matches,
                                const struct oj_pair_values *values,
                                struct oj_error *err)
{
    struct part part = {0};
    oj_status status;
    part.batch = batch;
    part.first_row = first_row;
    part.matches = matches;
    part.entries = oj_pair_values_matches(values, matches);
    part.values = values;
    if (matches->n_rows == 0)
        return OJ_OK;
    if (batch->attributes == NULL || first_row < 0 ||
        matches->n_rows > batch->n_rows - first_row ||
        part.entries->n_rows != matches->n_rows)
        return oj_fail(
            err, OJ_ERR_INTERNAL, "%lld answers for %lld rows of a batch",
            (long long)matches->n_rows, (long long)(batch->n_rows - first_row));
    if (values != NULL)
        part.shapes = oj_flat_buf_view(&values->shapes);
    oj_ogr_errors_begin(&writer->errors);
    status = write_rows(writer, &part, err);
    oj_ogr_errors_end(&writer->errors);
    return status;
}

/* ---- rows of the join layer --------------------------------------------- */

static oj_status set_unmatched_columns(struct oj_layer_writer *writer,
                                       const struct oj_batch *batch,
                                       int64_t row, struct oj_error *err)
{
    for (int i = 0; i < writer->options.n_columns; i++)
    {
        struct way *way = &writer->way[i];
        struct oj_value value;
        oj_value_set_zero(&value);
        if (way->column.origin == OJ_COLUMN_JOIN)
            oj_attributes_value(batch->attributes, way->column.source, row,
                                &value);
        else if (way->column.origin == OJ_COLUMN_JOIN_FID)
            value.raw.Integer64 = batch->flat.fid[row];
        else if (way->column.origin == OJ_COLUMN_INPUT)
        {
            /* Unless rows of the input came first, there is no setter yet. */
            OGR_F_SetFieldNull(writer->feature, way->column.target);
            continue;
        }
        else
            oj_value_set_null(&value);
        OJ_TRY(oj_setter_set(&way->setter, writer->feature, &value, err));
    }
    return OJ_OK;
}

static oj_status write_join_row(struct oj_layer_writer *writer,
                                const struct oj_batch *batch, int64_t row,
                                struct oj_error *err)
{
    const struct oj_flat flat = oj_flat_buf_view(&batch->flat);
    int64_t fid = batch->flat.fid[row];
    OJ_TRY(set_unmatched_columns(writer, batch, row, err));
    if (writer->has_geometry && writer->options.geometry == OJ_WRITE_INPUT)
        OJ_TRY(oj_row_geometry_set_batch(&writer->geometry, batch, row, err));
    else if (writer->has_geometry && writer->options.geometry == OJ_WRITE_JOIN)
        OJ_TRY(
            oj_row_geometry_set_flat(&writer->geometry, &flat, row, fid, err));
    else if (writer->has_geometry)
        OJ_TRY(oj_row_geometry_set_null(&writer->geometry, err));
    return create_row(writer, fid, OGRNullFID, "join", err);
}

oj_status oj_layer_writer_write_join_rows(struct oj_layer_writer *writer,
                                          const struct oj_batch *batch,
                                          const uint8_t *is_matched,
                                          struct oj_error *err)
{
    oj_status status = OJ_OK;
    if (batch->n_rows > 0 && batch->attributes == NULL)
        return oj_fail(err, OJ_ERR_INTERNAL, "join rows without attributes");
    oj_ogr_errors_begin(&writer->errors);
    for (int64_t i = 0; status == OJ_OK && i < batch->n_rows; i++)
    {
        if (is_cancelled(writer, i))
            status = oj_fail(err, OJ_ERR_CANCELLED, "interrupted");
        else if (!is_matched[i])
            status = write_join_row(writer, batch, i, err);
    }
    oj_ogr_errors_end(&writer->errors);
    return status;
}
