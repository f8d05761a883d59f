/** Answers made by hand, for the tests of rows: two layers with every field
 * type and shape, pairs that depend on row numbers only, and a layer in
 * memory that has the columns of the rows. */
#ifndef OJ_TEST_ROW_TRIAL_H
#define OJ_TEST_ROW_TRIAL_H

#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/read/oj_attribute_table.h"
#include "../../flatten/write/oj_layer_write.h"
#include "../../flatten/write/oj_row_cursor.h"

#include "layers.h"

#include <stdio.h>

static struct oj_error trial_error;

static inline void trial_ok(oj_status status)
{
    if (status != OJ_OK)
        ck_abort_msg("%s: %s", oj_status_name(status), trial_error.message);
}

/* Forms of answers. */
enum trial_form
{
    FORM_ONE,       /* one-to-one */
    FORM_LISTS,     /* up to 3 pairs per row */
    FORM_SCATTERED, /* like FORM_LISTS, in any order of the arrays */
    FORM_PICKED     /* lists of which one pair is picked */
};

enum
{
    MOST_BATCHES = 64,
    MOST_ANSWERS = 2 * MOST_BATCHES,
    TRIAL_JOIN_ROWS = N_SHAPES + 1,
    TRIAL_OWN = 6,
    TRIAL_CONVERTED = 8,
    TRIAL_COLUMNS = 2 * N_FIELDS + TRIAL_OWN + TRIAL_CONVERTED
};

struct trial_answer
{
    int batch;
    int64_t first_row;
    struct oj_matches matches;
    struct oj_pair_values values;
};

struct row_trial
{
    GDALDatasetH in, join, out;
    OGRLayerH in_layer, join_layer, out_layer;
    struct oj_layer_reader *reader, *join_reader;
    struct oj_batch batch[MOST_BATCHES], join_batch;
    int n_batches;
    struct oj_flat_buf flat;
    struct oj_flat side;
    struct oj_table *table;
    uint8_t is_matched[TRIAL_JOIN_ROWS];
    int fields[N_FIELDS];
    struct oj_column columns[TRIAL_COLUMNS];
    struct oj_write_options options;
    enum trial_form form;
    int with_join_rows; /* 1: join rows without pairs follow the answers */
    struct trial_answer answer[MOST_ANSWERS];
    /* number of answers, and index of the next one to return */
    int n_answers, at;
};

/* ---- layers ------------------------------------------------------------- */

/* The aggregate of a row: a text with `source` and the row, but NULL in every
 * third row. */
static inline oj_status trial_aggregate(void *user, int source, int64_t row,
                                        struct oj_value *value,
                                        struct oj_error *err)
{
    static char text[50];
    (void)user;
    (void)err;
    oj_value_set_zero(value);
    if (row % 3 == 1)
    {
        oj_value_set_null(value);
        return OJ_OK;
    }
    snprintf(text, sizeof text, "%d of %lld", source, (long long)row);
    value->raw.String = text;
    return OJ_OK;
}

static inline void trial_field(struct row_trial *t, const char *name,
                               OGRFieldType type, OGRFieldSubType subtype,
                               enum oj_column_origin origin, int source)
{
    struct oj_column *column = &t->columns[t->options.n_columns];
    OGRFieldDefnH defn = OGR_Fld_Create(name, type);
    OGR_Fld_SetSubType(defn, subtype);
    ck_assert_int_eq(OGR_L_CreateField(t->out_layer, defn, 1), OGRERR_NONE);
    OGR_Fld_Destroy(defn);
    column->origin = origin;
    column->source = source;
    column->target = t->options.n_columns++;
    if (origin == OJ_COLUMN_AGGREGATE)
        column->type = OFTString;
}

/* Adds the fields of both sides, computed columns, and some columns whose type
 * differs from that of their values. */
static inline void trial_fields(struct row_trial *t)
{
    char name[50];
    for (int f = 0; f < N_FIELDS; f++)
    {
        const struct test_field *field = &test_fields[f];
        trial_field(t, field->name, field->type, field->subtype,
                    OJ_COLUMN_INPUT, f);
        snprintf(name, sizeof name, "join_%s", field->name);
        trial_field(t, name, field->type, field->subtype, OJ_COLUMN_JOIN, f);
    }
    trial_field(t, "join_fid", OFTInteger64, OFSTNone, OJ_COLUMN_JOIN_FID, 0);
    trial_field(t, "dist", OFTReal, OFSTNone, OJ_COLUMN_MEASURE, 0);
    trial_field(t, "rank", OFTInteger64, OFSTNone, OJ_COLUMN_RANK, 0);
    trial_field(t, "n", OFTInteger64, OFSTNone, OJ_COLUMN_COUNT, 0);
    trial_field(t, "bearing", OFTReal, OFSTNone, OJ_COLUMN_PAIR_VALUE,
                OJ_PAIR_BEARING);
    trial_field(t, "agg", OFTString, OFSTNone, OJ_COLUMN_AGGREGATE, 7);
    trial_field(t, "i64_as_int", OFTInteger, OFSTNone, OJ_COLUMN_INPUT, 2);
    trial_field(t, "i64_as_text", OFTString, OFSTNone, OJ_COLUMN_JOIN, 2);
    trial_field(t, "f64_as_int", OFTInteger64, OFSTNone, OJ_COLUMN_INPUT, 4);
    trial_field(t, "i32_as_i16", OFTInteger, OFSTInt16, OJ_COLUMN_JOIN, 1);
    trial_field(t, "text_as_blob", OFTBinary, OFSTNone, OJ_COLUMN_INPUT, 5);
    trial_field(t, "i32_as_bool", OFTInteger, OFSTBoolean, OJ_COLUMN_INPUT, 1);
    trial_field(t, "rank_as_text", OFTString, OFSTNone, OJ_COLUMN_RANK, 0);
    trial_field(t, "dist_as_f32", OFTReal, OFSTFloat32, OJ_COLUMN_MEASURE, 0);
}

static inline struct oj_read_options trial_reading(const struct row_trial *t,
                                                   int64_t batch_rows)
{
    struct oj_read_options options = {0};
    options.batch_rows = batch_rows;
    options.limit = -1;
    options.fields = t->fields;
    options.n_fields = N_FIELDS;
    options.keep_attributes = 1;
    options.lanes = OJ_LANES_ALL;
    return options;
}

/* Opens an input layer with the first fields, which a stream can carry. Some
 * drivers lack the other types. */
static inline void trial_open_input(struct row_trial *t, const char *driver,
                                    int n_points)
{
    const char *path = EQUAL(driver, "GPKG") ? "/vsimem/row_trial.gpkg"
                                             : "/vsimem/row_trial.fgb";
    /* with a spatial index, FlatGeobuf refuses rows without geometry */
    const char *const options[] = {"SPATIAL_INDEX=NO", NULL};
    int in_memory = EQUAL(driver, "Memory");
    t->in = make_layer(driver, in_memory ? "" : path,
                       in_memory ? N_FIELDS : N_SIMPLE_FIELDS, wkbUnknown,
                       in_memory ? NULL : options);
    t->in_layer = first_layer(t->in);
    if (n_points > 0)
        add_points(t->in_layer, n_points, 1);
    else if (n_points < 0)
        add_shapes(t->in_layer, N_SHAPES);
    if (!in_memory)
    {
        t->in = reopen(t->in, path);
        t->in_layer = first_layer(t->in);
    }
}

/* Opens a trial. n_points is the number of rows of the input layer; if
 * negative, the layer has one row of every shape. */
static inline void trial_open(struct row_trial *t, const char *driver,
                              int n_points, enum oj_how how,
                              enum trial_form form, int64_t batch_rows)
{
    struct oj_read_options reading;
    struct oj_read_counts counts;
    int n_fields = EQUAL(driver, "Memory") ? N_FIELDS : N_SIMPLE_FIELDS;
    memset(t, 0, sizeof *t);
    t->form = form;
    for (int f = 0; f < N_FIELDS; f++)
        t->fields[f] = f;
    trial_open_input(t, driver, n_points);
    t->join = make_layer("Memory", "", N_FIELDS, wkbUnknown, NULL);
    t->join_layer = first_layer(t->join);
    add_shapes(t->join_layer, N_SHAPES);
    t->out = GDALCreate(GDALGetDriverByName("Memory"), "", 0, 0, 0, GDT_Unknown,
                        NULL);
    t->out_layer =
        GDALDatasetCreateLayer(t->out, "rows", NULL, wkbUnknown, NULL);
    trial_fields(t);
    reading = trial_reading(t, TRIAL_JOIN_ROWS);
    trial_ok(oj_layer_read_all(t->join_layer, &reading, &t->flat, &t->table,
                               &counts, NULL, NULL, &trial_error));
    t->side = oj_flat_buf_view(&t->flat);
    trial_ok(oj_layer_reader_open(t->join_layer, &reading, &t->join_reader,
                                  &trial_error));
    trial_ok(
        oj_layer_reader_next(t->join_reader, &t->join_batch, &trial_error));
    reading = trial_reading(t, batch_rows);
    reading.n_fields = n_fields;
    trial_ok(
        oj_layer_reader_open(t->in_layer, &reading, &t->reader, &trial_error));
    do
        trial_ok(oj_layer_reader_next(t->reader, &t->batch[t->n_batches],
                                      &trial_error));
    while (t->batch[t->n_batches].n_rows > 0 && ++t->n_batches < MOST_BATCHES);
    ck_assert_int_lt(t->n_batches, MOST_BATCHES);
    for (int c = 0; c < TRIAL_COLUMNS; c++)
    {
        /* columns of fields that the driver lacks show a field that it has */
        if (t->columns[c].origin == OJ_COLUMN_INPUT)
            t->columns[c].source %= n_fields;
    }
    for (int i = 0; i < TRIAL_JOIN_ROWS; i++)
        t->is_matched[i] = i % 4 == 1;
    t->options.how = how;
    t->options.columns = t->columns;
    t->options.join_side = &t->side;
    t->options.join_table = t->table;
    t->options.aggregate = trial_aggregate;
}

static inline void trial_close(struct row_trial *t)
{
    for (int i = 0; i < t->n_answers; i++)
    {
        oj_matches_free(&t->answer[i].matches);
        oj_pair_values_free(&t->answer[i].values);
    }
    for (int i = 0; i <= t->n_batches && i < MOST_BATCHES; i++)
        oj_batch_free(&t->batch[i]);
    oj_batch_free(&t->join_batch);
    oj_layer_reader_close(t->reader);
    oj_layer_reader_close(t->join_reader);
    oj_table_free(t->table);
    oj_flat_buf_free(&t->flat);
    GDALClose(t->in);
    if (t->join != NULL)
        GDALClose(t->join);
    GDALClose(t->out);
    VSIUnlink("/vsimem/row_trial.gpkg");
    VSIUnlink("/vsimem/row_trial.fgb");
}

/* Opens a join without pairs. Its rows are those of the only layer of in. `in`
 * then belongs to t. */
static inline void trial_open_alone(struct row_trial *t, GDALDatasetH in,
                                    OGRwkbGeometryType type)
{
    OGRFeatureDefnH defn;
    struct oj_read_options reading;
    memset(t, 0, sizeof *t);
    t->in = in;
    t->in_layer = first_layer(in);
    t->out = GDALCreate(GDALGetDriverByName("Memory"), "", 0, 0, 0, GDT_Unknown,
                        NULL);
    t->out_layer = GDALDatasetCreateLayer(t->out, "rows", NULL, type, NULL);
    defn = OGR_L_GetLayerDefn(t->in_layer);
    t->options.n_columns = OGR_FD_GetFieldCount(defn);
    t->options.columns = t->columns;
    for (int f = 0; f < t->options.n_columns; f++)
    {
        ck_assert_int_eq(
            OGR_L_CreateField(t->out_layer, OGR_FD_GetFieldDefn(defn, f), 0),
            OGRERR_NONE);
        t->columns[f].origin = OJ_COLUMN_INPUT;
        t->columns[f].source = t->columns[f].target = t->fields[f] = f;
    }
    reading = trial_reading(t, 1000);
    reading.n_fields = t->options.n_columns;
    trial_ok(
        oj_layer_reader_open(t->in_layer, &reading, &t->reader, &trial_error));
    trial_ok(oj_layer_reader_next(t->reader, &t->batch[0], &trial_error));
    t->n_batches = 1;
    t->n_answers = 1;
    trial_ok(oj_matches_reserve(&t->answer[0].matches, t->batch[0].n_rows,
                                t->batch[0].n_rows, 0, &trial_error));
    for (int64_t i = 0; i < t->batch[0].n_rows; i++)
    {
        t->answer[0].matches.join_row[i] = -1;
        t->answer[0].matches.measure[i] = (double)NAN;
    }
}

/* ---- answers ------------------------------------------------------------ */

static inline int trial_pairs_of(int64_t row)
{
    return (int)(row * 7 % 5) % 4;
}

static inline int32_t trial_join_row(int64_t row, int pair)
{
    return (int32_t)((row * 31 + pair * 11) % TRIAL_JOIN_ROWS);
}

static inline void trial_pair(struct oj_matches *m, int64_t entry, int64_t row,
                              int pair)
{
    m->join_row[entry] = trial_join_row(row, pair);
    m->measure[entry] = (double)(row + pair) / 7.0;
    m->n_pairs++;
}

static inline void trial_fill_one(struct oj_matches *m, int64_t first,
                                  int64_t n)
{
    trial_ok(oj_matches_reserve(m, n, n, 0, &trial_error));
    for (int64_t i = 0; i < n; i++)
    {
        m->join_row[i] = -1;
        m->measure[i] = NAN;
        if (trial_pairs_of(first + i) > 0)
            trial_pair(m, i, first + i, 0);
    }
}

static inline void trial_fill_lists(struct oj_matches *m, int64_t first,
                                    int64_t n, int scattered)
{
    int64_t room = 4 * n + 4, at = scattered ? room : 0;
    if (scattered)
        trial_ok(oj_matches_reserve_scattered(m, n, room, &trial_error));
    else
        trial_ok(oj_matches_reserve(m, n, room, 1, &trial_error));
    for (int64_t i = 0; i < room; i++)
    {
        m->join_row[i] = 0;
        m->measure[i] = 0.0;
    }
    m->offset[0] = 0;
    for (int64_t i = 0; i < n; i++)
    {
        int pairs = trial_pairs_of(first + i);
        if (scattered)
            at -= pairs;
        m->offset[scattered ? 2 * i : i] = at;
        for (int p = 0; p < pairs; p++)
            trial_pair(m, at + p, first + i, p);
        if (!scattered)
            at += pairs;
        m->offset[scattered ? 2 * i + 1 : i + 1] = scattered ? at + pairs : at;
    }
    if (!scattered)
        m->n_entries = at;
}

/* Fills the values of pairs. The shape of each pair is that of the join
 * feature. */
static inline void trial_fill_values(struct row_trial *t,
                                     struct trial_answer *a)
{
    const struct oj_matches *entries =
        oj_pair_values_matches(&a->values, &a->matches);
    int64_t n = entries->n_entries;
    for (int v = 0; v < OJ_N_PAIR_VALUES; v++)
    {
        trial_ok(oj_reserve(&a->values.value[v], 0, n + 1,
                            &a->values.capacity[v], sizeof(double),
                            &trial_error));
        for (int64_t i = 0; i < n; i++)
            a->values.value[v][i] =
                i % 5 == 2 ? (double)NAN : (double)i * 0.7 + v;
    }
    a->values.n_entries = n;
    for (int64_t i = 0; i < n; i++)
    {
        int64_t from = entries->join_row[i];
        struct oj_flat_buf *shapes = &a->values.shapes;
        if (from < 0 || i % 6 == 4)
        {
            trial_ok(oj_flat_buf_add_null(shapes, i, &trial_error));
            continue;
        }
        trial_ok(oj_flat_buf_begin_feature(shapes, i, &trial_error));
        for (int64_t p = t->side.part_offset[from];
             p < t->side.part_offset[from + 1]; p++)
            trial_ok(oj_flat_buf_copy_part(shapes, &t->side, p, &trial_error));
        trial_ok(oj_flat_buf_end_feature(shapes, &trial_error));
    }
}

static inline void trial_add_answer(struct row_trial *t, int batch,
                                    int64_t first_row, int64_t n)
{
    struct trial_answer *a = &t->answer[t->n_answers++];
    int64_t first = t->batch[batch].first_row + first_row;
    a->batch = batch;
    a->first_row = first_row;
    if (t->form == FORM_ONE)
        trial_fill_one(&a->matches, first, n);
    else
        trial_fill_lists(&a->matches, first, n, t->form == FORM_SCATTERED);
    if (t->form == FORM_PICKED)
    {
        a->values.is_picked = 1;
        trial_fill_one(&a->values.picked, first, n);
    }
    trial_fill_values(t, a);
}

/* Makes two answers for each batch. The first has a third of the batch's
 * rows. */
static inline void trial_make_answers(struct row_trial *t)
{
    if (t->n_answers > 0)
        return;
    for (int b = 0; b < t->n_batches; b++)
    {
        int64_t n = t->batch[b].n_rows;
        trial_add_answer(t, b, 0, n / 3);
        trial_add_answer(t, b, n / 3, n - n / 3);
    }
}

/* State of a stream that asks for one answer after the other. */
struct trial_stream
{
    struct row_trial *trial;
    struct oj_row_cursor *cursor;
    GDALDatasetH generic; /* GDAL's stream for the schema; or NULL */
    int n_closed;
};

static inline oj_status trial_advance(void *user, int *there,
                                      struct oj_error *err)
{
    struct trial_stream *s = user;
    struct row_trial *t = s->trial;
    struct trial_answer *a = &t->answer[t->at];
    *there = t->at < t->n_answers + (t->with_join_rows != 0);
    if (!*there)
        return OJ_OK;
    if (t->at++ == t->n_answers)
        return oj_row_cursor_begin_join_rows(s->cursor, &t->join_batch,
                                             t->is_matched, err);
    return oj_row_cursor_begin_answer(s->cursor, &t->batch[a->batch],
                                      a->first_row, &a->matches, &a->values,
                                      err);
}

/* Writes all rows to the output layer. */
static inline void trial_write(struct row_trial *t)
{
    struct oj_layer_writer *writer;
    trial_ok(
        oj_layer_writer_open(t->out_layer, &t->options, &writer, &trial_error));
    for (int i = 0; i < t->n_answers; i++)
    {
        const struct trial_answer *a = &t->answer[i];
        trial_ok(oj_layer_writer_write(writer, &t->batch[a->batch],
                                       a->first_row, &a->matches, &a->values,
                                       &trial_error));
    }
    if (t->with_join_rows)
        trial_ok(oj_layer_writer_write_join_rows(writer, &t->join_batch,
                                                 t->is_matched, &trial_error));
    oj_layer_writer_close(writer);
}

#endif
