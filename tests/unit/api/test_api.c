/* The library as other programs use it. Arrow arrays of every format give the
 * layer of their rows, pairs equal those of the engine, and invalid input gives
 * an error. */
#include "../../../algs/api/engine/oj_join.h"
#include "../../../algs/api/library/arrow_features.h"
#include "../../../algs/ogrjoin.h"

#include "../run_tests.h"

#include "arrow_rows.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>

/* --- layers ----------------------------------------------------------------
 */

static int64_t n_parts_of(const struct oj_flat *flat, int64_t row)
{
    if (oj_flat_is_points(flat))
        return flat->x[row] == flat->x[row];
    return flat->part_offset[row + 1] - flat->part_offset[row];
}

static void same_vertices(const struct oj_flat *a, int64_t v,
                          const struct oj_flat *b, int64_t w, int64_t n)
{
    ck_assert_mem_eq(a->x + v, b->x + w, (size_t)n * sizeof *a->x);
    ck_assert_mem_eq(a->y + v, b->y + w, (size_t)n * sizeof *a->y);
}

static void same_part(const struct oj_flat *a, int64_t p,
                      const struct oj_flat *b, int64_t q)
{
    int64_t n_rings = a->ring_offset[p + 1] - a->ring_offset[p];
    ck_assert_int_eq(a->part_kind[p], b->part_kind[q]);
    ck_assert_int_eq(b->ring_offset[q + 1] - b->ring_offset[q], n_rings);
    for (int64_t i = 0; i < n_rings; i++)
    {
        int64_t r = a->ring_offset[p] + i, s = b->ring_offset[q] + i;
        int64_t n = a->vertex_offset[r + 1] - a->vertex_offset[r];
        ck_assert_int_eq(b->vertex_offset[s + 1] - b->vertex_offset[s], n);
        same_vertices(a, a->vertex_offset[r], b, b->vertex_offset[s], n);
    }
}

static void same_feature(const struct oj_flat *a, int64_t row,
                         const struct oj_flat *b, int64_t other)
{
    int64_t n = n_parts_of(a, row), v, v_end, w, w_end;
    ck_assert_int_eq(n_parts_of(b, other), n);
    if (!oj_flat_is_points(a) && !oj_flat_is_points(b))
    {
        for (int64_t i = 0; i < n; i++)
            same_part(a, a->part_offset[row] + i, b, b->part_offset[other] + i);
        return;
    }
    oj_flat_vertex_range(a, row, &v, &v_end);
    oj_flat_vertex_range(b, other, &w, &w_end);
    ck_assert_int_eq(v_end - v, w_end - w);
    ck_assert_int_eq(v_end - v, n); /* the feature is one point, or empty */
    same_vertices(a, v, b, w, n);
}

/* Makes a flat layer of the rows. A NULL row becomes a feature without
 * geometry. */
static void flatten_rows(struct arrow_rows *rows,
                         const struct arrow_options *options,
                         struct oj_flat_buf *buf)
{
    for (int row = 0; row < rows->n_rows; row++)
    {
        struct oj_flat flat;
        if (options->has_nulls && rows->is_null[row])
        {
            ck_assert_int_eq(oj_flat_buf_add_null(buf, row, NULL), OJ_OK);
            continue;
        }
        flatten_row(rows, row, row, buf);
        flat = oj_flat_buf_view(buf);
        if (n_parts_of(&flat, row) == 0)
            rows->is_null[row] = 1;
    }
}

static void read_features(const struct arrow_rows *rows,
                          const struct arrow_options *options, int times,
                          struct arrow_features *out)
{
    struct arrow_schema schema;
    struct arrow_layout layout;
    struct oj_error err = {OJ_OK, ""};
    make_schema(rows, options, &schema);
    ck_assert_msg(arrow_layout_read(&schema.node[0],
                                    options->is_column ? "shape" : NULL, 0,
                                    &layout, &err) == OJ_OK,
                  "%s", err.message);
    memset(out, 0, sizeof *out);
    for (int i = 0; i < times; i++)
    {
        struct ArrowArray array;
        make_array(rows, options, &array);
        ck_assert_msg(arrow_features_add(out, &layout, &array, &err) == OJ_OK,
                      "%s", err.message);
        ck_assert_ptr_null(array.release);
    }
    ck_assert_int_eq(arrow_features_make_layer(out, 2, NULL, &err), OJ_OK);
}

static void compare_features(struct arrow_rows *rows,
                             const struct arrow_options *options, int times)
{
    struct oj_flat_buf buf = {0};
    struct arrow_features features;
    struct oj_flat expected;
    int n = rows->n_rows - options->skip;
    flatten_rows(rows, options, &buf);
    expected = oj_flat_buf_view(&buf);
    read_features(rows, options, times, &features);
    ck_assert_int_eq(features.flat.n_features, (int64_t)times * n);
    for (int64_t i = 0; i < features.flat.n_features; i++)
    {
        same_feature(&expected, options->skip + i % n, &features.flat, i);
        if (features.flat.fid != NULL)
            ck_assert_int_eq(features.flat.fid[i], i);
    }
    arrow_features_free(&features);
    oj_flat_buf_free(&buf);
}

static void choose_rows(struct arrow_rows *rows, int is_clean)
{
    static const enum oj_part_kind kinds[] = {OJ_PART_POINT, OJ_PART_LINE,
                                              OJ_PART_POLYGON};
    make_rows(rows, kinds[pick(3)], pick(2), 1 + pick(MOST_ROWS - 1), is_clean);
}

TEST_LOOP(formats, 0, 5)
{
    for (int trial = 0; trial < 300; trial++)
    {
        struct arrow_rows rows;
        struct arrow_options options = {0};
        random_state = (uint64_t)(1000 * _i + trial);
        choose_rows(&rows, pick(2));
        options.form = (enum arrow_form)_i;
        options.n_ordinates = 2 + pick(3);
        options.is_large = pick(2);
        options.skip = pick(2) ? pick(rows.n_rows) : 0;
        options.is_column = pick(2);
        options.has_nulls = options.form < FORM_SEPARATED || pick(2);
        if (options.has_nulls)
        {
            struct oj_flat_buf buf = {0};
            struct arrow_options all = options;
            all.has_nulls = 0;
            flatten_rows(&rows, &all, &buf);
            oj_flat_buf_free(&buf);
        }
        compare_features(&rows, &options, 1 + pick(3));
    }
}

/* Coordinates that need no repair are used in place, without a copy. */
TEST(in_place)
{
    for (int trial = 0; trial < 200; trial++)
    {
        struct arrow_rows rows;
        struct arrow_options options = {FORM_SEPARATED, 2, 0, 0, 0, 0};
        struct arrow_features features;
        random_state = (uint64_t)trial;
        choose_rows(&rows, 1);
        options.is_large = pick(2);
        options.skip = pick(rows.n_rows);
        read_features(&rows, &options, 1, &features);
        if (rows.vertex[rows.ring[rows.part[rows.n_rows]]] > 0)
            ck_assert_ptr_nonnull(features.held);
        arrow_features_free(&features);
        compare_features(&rows, &options, 1);
    }
}

/* --- joins ------------------------------------------------------------------
 */

/* An error of a stream of two arrays. */
struct bad_stream
{
    enum arrow_form form;
    /* what get_schema() returns, and what get_next() returns from its second
     * call on */
    int schema_code, code;
    const char *message;
    struct array_spoil array; /* change to the second array */
    int cancels;       /* 1: cancelled when the second array is requested */
    int status, error; /* expected status of a layer; expected errno of a stream
                          of pairs */
    const char *text;
};

static int cancel_flag;

/* A stream that repeats its rows several times. */
struct arrow_rows_stream
{
    /* `rows`: the rows of each array; `first`: the rows of the first array, if
     * they differ, else NULL */
    const struct arrow_rows *rows, *first;
    struct arrow_options options;
    int n;
    const struct bad_stream *bad; /* or NULL */
    struct arrow_schema schema;
    struct ArrowArray array[3];
    int n_given, n_released;
};

static int get_row_schema(struct ArrowArrayStream *stream,
                          struct ArrowSchema *out)
{
    struct arrow_rows_stream *self = stream->private_data;
    *out = self->schema.node[0];
    return self->bad != NULL ? self->bad->schema_code : 0;
}

static int get_row_array(struct ArrowArrayStream *stream,
                         struct ArrowArray *out)
{
    struct arrow_rows_stream *self = stream->private_data;
    int code = self->bad != NULL && self->n_given > 0 ? self->bad->code : 0;
    memset(out, 0, sizeof *out);
    cancel_flag = self->bad != NULL && self->n_given > 0 && self->bad->cancels;
    if (self->n_given < self->n && code == 0)
        *out = self->array[self->n_given++];
    return code;
}

static const char *get_row_error(struct ArrowArrayStream *stream)
{
    const struct arrow_rows_stream *self = stream->private_data;
    return self->bad != NULL ? self->bad->message : NULL;
}

static void release_rows(struct ArrowArrayStream *stream)
{
    struct arrow_rows_stream *self = stream->private_data;
    for (; self->n_given < self->n; self->n_given++)
        self->array[self->n_given].release(&self->array[self->n_given]);
    self->n_released++;
    stream->release = NULL;
}

static struct ArrowArrayStream open_rows(struct arrow_rows_stream *self)
{
    struct ArrowArrayStream stream = {get_row_schema, get_row_array,
                                      get_row_error, release_rows, self};
    const struct arrow_rows *first = self->first;
    self->n_given = 0;
    make_schema(self->rows, &self->options, &self->schema);
    for (int i = 0; i < self->n; i++)
        make_array(i == 0 && first != NULL ? first : self->rows, &self->options,
                   &self->array[i]);
    if (self->bad != NULL)
        spoil_array(&self->array[1], &self->bad->array);
    return stream;
}

static _Thread_local struct ogrjoin_error err;

static void must(int status)
{
    ck_assert_msg(status == OGRJOIN_OK, "%s", err.message);
}

static struct ogrjoin_layer *layer_of(const struct arrow_rows *rows,
                                      const struct arrow_options *options)
{
    struct ogrjoin_layer *layer = NULL;
    struct arrow_schema schema;
    struct ArrowArray array;
    make_schema(rows, options, &schema);
    make_array(rows, options, &array);
    must(ogrjoin_layer_from_array(&schema.node[0], &array, NULL, NULL, &layer,
                                  &err));
    return layer;
}

static struct ogrjoin_settings *settings_of(const char *op, double distance)
{
    struct ogrjoin_settings *settings = ogrjoin_settings_new();
    must(ogrjoin_set_text(settings, "op", op, &err));
    must(ogrjoin_set_text(settings, "backend", "cpu", &err));
    must(ogrjoin_set_number(settings, "threads", 2, &err));
    if (distance >= 0)
        must(ogrjoin_set_number(settings, "max_distance", distance, &err));
    return settings;
}

/* Checks that the pairs equal those of the engine for the flat layers, row by
 * row. */
static void same_pairs(const struct ogrjoin_pairs *pairs,
                       struct arrow_rows *left, struct arrow_rows *right,
                       enum oj_op op, double distance)
{
    struct oj_relation relation = oj_relation_default();
    struct oj_options options = {.n_threads = 1};
    struct arrow_options none = {0};
    struct oj_flat_buf input = {0}, join_side = {0};
    struct oj_flat input_flat, join_flat;
    struct oj_matches matches = {0};
    struct oj_join *join;
    struct oj_error error;
    int64_t n = 0;
    flatten_rows(left, &none, &input);
    flatten_rows(right, &none, &join_side);
    input_flat = oj_flat_buf_view(&input);
    join_flat = oj_flat_buf_view(&join_side);
    relation.op = op;
    if (distance >= 0)
        relation.max_distance = distance;
    ck_assert_int_eq(
        oj_join_open(&join_flat, &relation, "cpu", &options, &join, &error),
        OJ_OK);
    ck_assert_int_eq(oj_join_batch(join, &input_flat, &matches, &error), OJ_OK);
    ck_assert_int_eq(ogrjoin_pairs_count(pairs), matches.n_pairs);
    for (int64_t row = 0; row < matches.n_rows; row++)
    {
        for (int64_t p = oj_matches_first(&matches, row);
             p < oj_matches_end(&matches, row); p++, n++)
        {
            ck_assert_int_eq(ogrjoin_pairs_left(pairs)[n], row);
            ck_assert_int_eq(ogrjoin_pairs_right(pairs)[n],
                             matches.join_row[p]);
            ck_assert_mem_eq(&ogrjoin_pairs_measure(pairs)[n],
                             &matches.measure[p], sizeof *matches.measure);
        }
    }
    oj_matches_free(&matches);
    oj_join_close(join);
    oj_flat_buf_free(&input);
    oj_flat_buf_free(&join_side);
}

static const struct
{
    const char *name;
    enum oj_op op;
    double distance;
} joins[] = {{"nearest", OJ_OP_NEAREST, 20},
             {"intersects", OJ_OP_INTERSECTS, -1},
             {"dwithin", OJ_OP_DWITHIN, 3},
             {"nearest", OJ_OP_NEAREST, -1}};

TEST_LOOP(pairs, 0, 4)
{
    for (int trial = 0; trial < 60; trial++)
    {
        struct arrow_rows left, right;
        struct arrow_options options = {FORM_SEPARATED, 2, 0, 0, 0, 0};
        struct ogrjoin_settings *settings =
            settings_of(joins[_i].name, joins[_i].distance);
        struct ogrjoin_layer *input, *join_side;
        struct ogrjoin_index *index = NULL;
        struct ogrjoin_pairs *found = NULL;
        random_state = (uint64_t)(9000 + 100 * _i + trial);
        choose_rows(&left, 1);
        choose_rows(&right, 1);
        input = layer_of(&left, &options);
        options.form = FORM_INTERLEAVED;
        join_side = layer_of(&right, &options);
        must(ogrjoin_index_new(join_side, settings, &index, &err));
        ogrjoin_layer_free(join_side); /* the index holds a reference */
        ogrjoin_settings_free(settings);
        ck_assert_str_eq(ogrjoin_index_backend(index), "cpu");
        must(ogrjoin_join(index, input, &found, &err));
        ogrjoin_index_free(index);
        ck_assert_int_eq(ogrjoin_layer_count(input), left.n_rows);
        ogrjoin_layer_free(input);
        same_pairs(found, &left, &right, joins[_i].op, joins[_i].distance);
        ogrjoin_pairs_free(found);
    }
}

static int64_t count_batch(const struct ArrowArray *batch, int64_t first_row,
                           int64_t n_rows, int has_measure)
{
    const int64_t *left = batch->children[0]->buffers[1];
    ck_assert_int_eq(batch->n_children, 3);
    for (int64_t i = 0; i < batch->length; i++)
        ck_assert(left[i] >= first_row && left[i] < first_row + n_rows);
    ck_assert_int_eq(batch->children[2]->null_count,
                     has_measure ? 0 : batch->length);
    return batch->length;
}

/* Reads all batches of a stream, and moves a column out of each, as a consumer
 * may. There must be n_arrays batches. Returns the number of pairs. */
static int64_t read_pairs(struct ArrowArrayStream *stream, int n_arrays,
                          int64_t n_rows, int has_measure)
{
    int64_t n = 0;
    struct ArrowSchema schema;
    ck_assert_int_eq(stream->get_schema(stream, &schema), 0);
    ck_assert_str_eq(schema.format, "+s");
    ck_assert_str_eq(schema.children[1]->name, "right");
    schema.release(&schema);
    for (int i = 0;; i++)
    {
        struct ArrowArray batch, column;
        ck_assert_int_eq(stream->get_next(stream, &batch), 0);
        if (batch.release == NULL)
        {
            ck_assert_int_eq(i, n_arrays);
            return n;
        }
        n += count_batch(&batch, i * n_rows, n_rows, has_measure);
        column = *batch.children[i % 3];
        batch.children[i % 3]->release = NULL;
        batch.release(&batch);
        column.release(&column);
    }
}

TEST_LOOP(streams, 0, 4)
{
    for (int trial = 0; trial < 20; trial++)
    {
        struct arrow_rows left, right;
        struct arrow_options options = {FORM_VIEW, 2, 0, 0, 1, 1};
        struct arrow_options of_right = {FORM_SEPARATED, 2, 0, 0, 0, 0};
        struct ogrjoin_settings *settings =
            settings_of(joins[_i].name, joins[_i].distance);
        struct ogrjoin_layer *join_side, *input = NULL;
        struct ogrjoin_index *index = NULL;
        struct ogrjoin_pairs *whole = NULL;
        struct oj_flat_buf buf = {0};
        struct arrow_rows_stream rows = {
            .rows = &left, .options = options, .n = 3};
        struct ArrowArrayStream in, out;
        int n_arrays = 3;
        int64_t n;
        random_state = (uint64_t)(7000 + 100 * _i + trial);
        choose_rows(&left, 1);
        choose_rows(&right, 1);
        flatten_rows(&left, &(struct arrow_options){0}, &buf);
        oj_flat_buf_free(&buf);
        join_side = layer_of(&right, &of_right);
        must(ogrjoin_index_new(join_side, settings, &index, &err));
        in = open_rows(&rows);
        must(ogrjoin_join_stream(index, &in, NULL, &out, &err));
        ck_assert_ptr_null(in.release);
        ogrjoin_index_free(index);
        n = read_pairs(&out, n_arrays, left.n_rows,
                       joins[_i].op != OJ_OP_INTERSECTS);
        out.release(&out);
        ck_assert_int_eq(rows.n_released, 1);
        in = open_rows(&rows);
        must(ogrjoin_layer_from_stream(&in, "shape", settings, &input, &err));
        ck_assert_int_eq(rows.n_released, 2);
        must(ogrjoin_index_new(join_side, settings, &index, &err));
        must(ogrjoin_join(index, input, &whole, &err));
        ck_assert_int_eq(ogrjoin_pairs_count(whole), n);
        ogrjoin_pairs_free(whole);
        ogrjoin_index_free(index);
        ogrjoin_layer_free(input);
        ogrjoin_layer_free(join_side);
        ogrjoin_settings_free(settings);
    }
}

/* Checks that the pairs of `lists`, whose row 0 is row `first` of `whole`,
 * equal those of `whole`, which holds pairs as columns. Returns n_before plus
 * the number of pairs in the lists. */
static int64_t same_lists(const struct ogrjoin_pairs *whole,
                          const struct ogrjoin_pairs *lists, int64_t first,
                          int64_t n_before)
{
    const int64_t *offset = ogrjoin_pairs_offset(lists);
    const double *measure = ogrjoin_pairs_measure(lists);
    int64_t n_rows = ogrjoin_pairs_rows(lists), n = n_before;
    ck_assert_ptr_null(ogrjoin_pairs_left(lists));
    ck_assert_ptr_null(ogrjoin_pairs_right(lists));
    ck_assert_int_eq(offset[0], 0);
    ck_assert_int_eq(offset[n_rows], ogrjoin_pairs_count(lists));
    ck_assert_int_le(n + offset[n_rows], ogrjoin_pairs_count(whole));
    for (int64_t row = 0; row < n_rows; row++)
    {
        for (int64_t i = offset[row]; i < offset[row + 1]; i++, n++)
        {
            ck_assert_int_eq(ogrjoin_pairs_left(whole)[n], first + row);
            ck_assert_int_eq(ogrjoin_pairs_right(whole)[n],
                             ogrjoin_pairs_right32(lists)[i]);
            if (measure != NULL)
                ck_assert(ogrjoin_pairs_measure(whole)[n] == measure[i]);
        }
    }
    return n;
}

/* Joins a source in n_layers layers of at_once rows, and then all remaining
 * rows at once. The pairs must equal those of `whole`. */
static void join_source_in_parts(struct ogrjoin_index *index,
                                 const struct ogrjoin_settings *settings,
                                 struct arrow_rows_stream *rows,
                                 int64_t at_once, int64_t n_layers,
                                 const struct ogrjoin_pairs *whole)
{
    struct ArrowArrayStream in = open_rows(rows);
    struct ogrjoin_source *source = NULL;
    struct ogrjoin_layer *layer = NULL;
    struct ogrjoin_pairs *found = NULL;
    int64_t n = 0, first = 0, n_rows = ogrjoin_pairs_rows(whole);
    must(ogrjoin_source_open(&in, NULL, settings, &source, &err));
    ck_assert_ptr_null(in.release);
    for (int64_t i = 0; i < n_layers; i++)
    {
        must(ogrjoin_source_next(source, at_once, &layer, &err));
        if (layer == NULL)
            break;
        ck_assert(ogrjoin_layer_count(layer) == at_once ||
                  first + ogrjoin_layer_count(layer) == n_rows);
        must(ogrjoin_join_lists(index, layer, &found, &err));
        n = same_lists(whole, found, first, n);
        first += ogrjoin_layer_count(layer);
        ogrjoin_pairs_free(found);
        must(ogrjoin_join(index, layer, &found, &err));
        for (int64_t p = 0; p < ogrjoin_pairs_count(found); p++)
            ck_assert_int_lt(ogrjoin_pairs_left(found)[p], first);
        ogrjoin_pairs_free(found);
        ogrjoin_layer_free(layer);
    }
    must(ogrjoin_join_source(index, source, n_rows / 2, &found, &err));
    ogrjoin_source_free(source);
    n = same_lists(whole, found, first, n);
    ck_assert_int_eq(first + ogrjoin_pairs_rows(found), n_rows);
    ck_assert_int_eq(n, ogrjoin_pairs_count(whole));
    ogrjoin_pairs_free(found);
}

/* A stream is read in layers of any size. Their pairs are those of the whole
 * stream, and ids are row numbers of the whole stream. */
TEST_LOOP(sources, 0, 4)
{
    for (int trial = 0; trial < 20; trial++)
    {
        struct arrow_rows left, right;
        struct arrow_options of_right = {FORM_SEPARATED, 2, 0, 0, 0, 0};
        struct ogrjoin_settings *settings =
            settings_of(joins[_i].name, joins[_i].distance);
        struct ogrjoin_layer *join_side, *input = NULL;
        struct ogrjoin_index *index = NULL;
        struct ogrjoin_pairs *whole = NULL, *lists = NULL;
        struct oj_flat_buf buf = {0};
        struct arrow_rows_stream rows = {
            .rows = &left,
            .options = {(enum arrow_form)(trial % 5), 2, trial % 2, trial % 3,
                        trial % 2, trial % 5 < FORM_SEPARATED || trial % 2},
            .n = 3};
        struct ArrowArrayStream in;
        random_state = (uint64_t)(8000 + 100 * _i + trial);
        choose_rows(&left, 1);
        choose_rows(&right, 1);
        flatten_rows(&left, &(struct arrow_options){0}, &buf);
        oj_flat_buf_free(&buf);
        if (left.n_rows < 5)
            rows.options.skip = 0;
        join_side = layer_of(&right, &of_right);
        must(ogrjoin_set_number(settings, "exclude_self", trial % 2, &err));
        must(ogrjoin_index_new(join_side, settings, &index, &err));
        in = open_rows(&rows);
        must(ogrjoin_layer_from_stream(&in, NULL, settings, &input, &err));
        must(ogrjoin_join(index, input, &whole, &err));
        ck_assert_ptr_null(ogrjoin_pairs_offset(whole));
        ck_assert_ptr_null(ogrjoin_pairs_right32(whole));
        ck_assert_int_eq(ogrjoin_pairs_rows(whole), ogrjoin_layer_count(input));
        must(ogrjoin_join_lists(index, input, &lists, &err));
        ck_assert_int_eq(same_lists(whole, lists, 0, 0),
                         ogrjoin_pairs_count(whole));
        ck_assert(joins[_i].op != OJ_OP_INTERSECTS ||
                  ogrjoin_pairs_measure(lists) == NULL);
        join_source_in_parts(index, settings, &rows, 1, 1000, whole);
        join_source_in_parts(index, settings, &rows, 7, 2, whole);
        join_source_in_parts(index, settings, &rows, left.n_rows, 1, whole);
        join_source_in_parts(index, settings, &rows, 1000, 0, whole);
        ogrjoin_index_trim(index);
        join_source_in_parts(index, settings, &rows, INT64_MAX, 2, whole);
        ogrjoin_pairs_free(whole);
        ogrjoin_pairs_free(lists);
        ogrjoin_layer_free(input);
        ogrjoin_index_free(index);
        ogrjoin_layer_free(join_side);
        ogrjoin_settings_free(settings);
    }
}

/* Pairs of a layer with settings first_row count its rows from this number on,
 * however the layer is read. */
TEST(rows_are_counted_from_first_row)
{
    struct arrow_rows rows;
    struct arrow_rows_stream twice = {
        .rows = &rows, .options = {FORM_VIEW, 2, 0, 0, 0, 0}, .n = 2};
    struct ogrjoin_settings *settings = settings_of("intersects", -1);
    struct ogrjoin_layer *side, *layer[3] = {NULL};
    struct ogrjoin_source *source = NULL;
    struct ogrjoin_index *index = NULL;
    struct ogrjoin_pairs *found = NULL;
    struct ArrowArrayStream in;
    struct arrow_schema schema;
    struct ArrowArray array;
    random_state = 5;
    make_rows(&rows, OJ_PART_POINT, 4, 10, 1);
    side = layer_of(&rows, &twice.options);
    must(ogrjoin_index_new(side, settings, &index, &err));
    must(ogrjoin_set_number(settings, "first_row", 1000, &err));
    make_schema(&rows, &twice.options, &schema);
    make_array(&rows, &twice.options, &array);
    must(ogrjoin_layer_from_array(&schema.node[0], &array, NULL, settings,
                                  &layer[0], &err));
    in = open_rows(&twice);
    must(ogrjoin_layer_from_stream(&in, NULL, settings, &layer[1], &err));
    in = open_rows(&twice);
    must(ogrjoin_source_open(&in, NULL, settings, &source, &err));
    must(ogrjoin_source_next(source, 5, &layer[2], &err));
    for (int i = 0; i < 3; i++)
    {
        int64_t n = ogrjoin_layer_count(layer[i]), n_pairs;
        must(ogrjoin_join(index, layer[i], &found, &err));
        n_pairs = ogrjoin_pairs_count(found);
        ck_assert_int_ge(n_pairs, n);
        ck_assert_int_eq(ogrjoin_pairs_left(found)[0], 1000);
        ck_assert_int_eq(ogrjoin_pairs_left(found)[n_pairs - 1], 999 + n);
        ogrjoin_pairs_free(found);
        ogrjoin_layer_free(layer[i]);
    }
    must(ogrjoin_source_next(source, 5, &layer[0], &err));
    must(ogrjoin_join(index, layer[0], &found, &err));
    ck_assert_int_eq(ogrjoin_pairs_left(found)[0], 1005);
    ogrjoin_pairs_free(found);
    ogrjoin_layer_free(layer[0]);
    ogrjoin_source_free(source);
    ogrjoin_index_free(index);
    ogrjoin_layer_free(side);
    ogrjoin_settings_free(settings);
}

/* A source without rows gives one empty layer and then none. The lists of pairs
 * of this source cannot become a record batch. */
TEST(source_without_rows)
{
    struct arrow_rows rows;
    struct arrow_rows_stream none = {
        .rows = &rows, .options = {FORM_VIEW, 2, 0, 0, 0, 0}, .n = 0};
    struct ogrjoin_settings *settings = settings_of("intersects", -1);
    struct ogrjoin_layer *layer = NULL;
    struct ogrjoin_source *source = NULL;
    struct ogrjoin_index *index = NULL;
    struct ogrjoin_pairs *found = NULL;
    struct ArrowArrayStream in;
    struct ArrowSchema schema;
    struct ArrowArray array;
    random_state = 5;
    make_rows(&rows, OJ_PART_POINT, 0, 10, 1);
    in = open_rows(&none);
    must(ogrjoin_source_open(&in, NULL, NULL, &source, &err));
    ck_assert_int_eq(ogrjoin_source_next(source, 0, &layer, &err),
                     OGRJOIN_ERR_ARG);
    must(ogrjoin_source_next(source, 5, &layer, &err));
    ck_assert_int_eq(ogrjoin_layer_count(layer), 0);
    must(ogrjoin_index_new(layer, settings, &index, &err));
    must(ogrjoin_join_lists(index, layer, &found, &err));
    ck_assert_int_eq(ogrjoin_pairs_count(found), 0);
    ck_assert_int_eq(ogrjoin_pairs_offset(found)[0], 0);
    ck_assert_ptr_nonnull(ogrjoin_pairs_right32(found));
    ck_assert_int_eq(ogrjoin_pairs_to_arrow(found, &schema, &array, &err),
                     OGRJOIN_ERR_ARG);
    ogrjoin_pairs_free(found);
    ogrjoin_layer_free(layer);
    must(ogrjoin_source_next(source, 5, &layer, &err));
    ck_assert_ptr_null(layer);
    must(ogrjoin_join_source(index, source, 0, &found, &err));
    ck_assert_int_eq(ogrjoin_pairs_count(found), 0);
    ck_assert_int_eq(ogrjoin_pairs_rows(found), 0);
    ogrjoin_pairs_free(found);
    ogrjoin_source_free(source);
    ogrjoin_source_free(NULL);
    ck_assert_int_eq(none.n_released, 1);
    ogrjoin_index_free(index);
    ogrjoin_settings_free(settings);
}

static void keep_array(struct ArrowArray *array)
{
    array->release = NULL;
}

static void keep_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

/* Rows that are all NULL have no SRID, not even 0. */
TEST(srid_of_missing_geometries)
{
    static const uint8_t valid[] = {0};
    static const int32_t offset[] = {0, 0, 0};
    const void *buffers[] = {valid, offset, ""};
    struct ArrowArray array = {.length = 2,
                               .null_count = 2,
                               .n_buffers = 3,
                               .buffers = buffers,
                               .release = keep_array};
    struct ArrowSchema schema = {.format = "z",
                                 .name = "g",
                                 .flags = ARROW_FLAG_NULLABLE,
                                 .release = keep_schema};
    struct ogrjoin_layer *layer = NULL;
    int64_t srid = 0;
    must(ogrjoin_layer_from_array(&schema, &array, NULL, NULL, &layer, &err));
    must(ogrjoin_layer_srid(layer, &srid, &err));
    ck_assert_int_eq(srid, -1);
    ogrjoin_layer_free(layer);
}

/* A layer's SRID is that of all of its geometries, which must be one. */
TEST(srid_of_layers_and_sources)
{
    static const uint8_t point[] = {1, 1, 0, 0, 0x20, 0xd7, 8, 0, 0, /* 2263 */
                                    0, 0, 0, 0, 0,    0,    0, 0, 0,
                                    0, 0, 0, 0, 0,    0,    0};
    enum
    {
        N = 3
    };
    uint8_t bytes[N * sizeof point];
    int32_t offset[N + 1];
    const void *buffers[] = {NULL, offset, bytes};
    for (int n_equal = 1; n_equal <= N; n_equal++)
    {
        struct ArrowArray array = {.length = N,
                                   .n_buffers = 3,
                                   .buffers = buffers,
                                   .release = keep_array};
        struct ArrowSchema schema = {
            .format = "z", .name = "g", .release = keep_schema};
        struct ogrjoin_layer *layer = NULL;
        int64_t srid = -1;
        for (int i = 0; i < N; i++)
        {
            memcpy(bytes + i * (int)sizeof point, point, sizeof point);
            bytes[i * (int)sizeof point + 5] = i < n_equal ? 0xd7 : 0xe6;
            offset[i] = i * (int)sizeof point;
        }
        offset[N] = (int)sizeof bytes;
        must(ogrjoin_layer_from_array(&schema, &array, NULL, NULL, &layer,
                                      &err));
        if (n_equal == N)
        {
            must(ogrjoin_layer_srid(layer, &srid, &err));
            ck_assert_int_eq(srid, 2263);
        }
        else
        {
            ck_assert_int_eq(ogrjoin_layer_srid(layer, &srid, &err),
                             OGRJOIN_ERR_ARG);
            ck_assert_ptr_nonnull(strstr(err.message, "has the SRID 2278"));
            ck_assert_int_eq(srid, -1);
        }
        ogrjoin_layer_free(layer);
    }
}

/* A self join compares row numbers of the whole stream. */
TEST(self_join)
{
    struct arrow_rows rows;
    struct arrow_options options = {FORM_SEPARATED, 2, 0, 0, 0, 0};
    struct ogrjoin_settings *settings = settings_of("nearest", -1);
    struct ogrjoin_layer *layer;
    struct ogrjoin_index *index = NULL;
    struct ogrjoin_pairs *found = NULL;
    random_state = 5;
    make_rows(&rows, OJ_PART_POINT, 0, 30, 1);
    layer = layer_of(&rows, &options);
    must(ogrjoin_set_number(settings, "exclude_self", 1, &err));
    must(ogrjoin_index_new(layer, settings, &index, &err));
    must(ogrjoin_join(index, layer, &found, &err));
    ck_assert_int_eq(ogrjoin_pairs_count(found), 30);
    for (int64_t i = 0; i < 30; i++)
        ck_assert_int_ne(ogrjoin_pairs_right(found)[i], i);
    ogrjoin_pairs_free(found);
    ogrjoin_index_free(index);
    ogrjoin_layer_free(layer);
    ogrjoin_settings_free(settings);
}

/* --- several threads --------------------------------------------------------
 */

/* Test layers: points, and rows of stars with many corners. Neighbouring stars
 * overlap. */
#define STARS 24
#define CORNERS 120
#define SPRINKLED 10000

struct shared_sides
{
    double star_x[STARS * (CORNERS + 1)], star_y[STARS * (CORNERS + 1)];
    double point_x[SPRINKLED], point_y[SPRINKLED];
    int64_t one[STARS + 1], ring[STARS + 1]; /* offsets */
    uint8_t kind[STARS];
    struct ogrjoin_layer *stars, *points;
};

static void make_sides(struct shared_sides *s)
{
    struct ogrjoin_arrays stars = {.size = sizeof stars,
                                   .n_features = STARS,
                                   .n_parts = STARS,
                                   .n_rings = STARS,
                                   .n_vertices = STARS * (CORNERS + 1),
                                   .part_offset = s->one,
                                   .part_kind = s->kind,
                                   .ring_offset = s->one,
                                   .vertex_offset = s->ring,
                                   .x = s->star_x,
                                   .y = s->star_y};
    struct ogrjoin_arrays points = {.size = sizeof points,
                                    .n_features = SPRINKLED,
                                    .n_vertices = SPRINKLED,
                                    .x = s->point_x,
                                    .y = s->point_y};
    for (int i = 0; i <= STARS; i++)
    {
        s->one[i] = i;
        s->ring[i] = (int64_t)i * (CORNERS + 1);
    }
    for (int i = 0; i < STARS; i++)
    {
        double *x = s->star_x + s->ring[i], *y = s->star_y + s->ring[i];
        s->kind[i] = OGRJOIN_POLYGON;
        for (int c = 0; c <= CORNERS; c++)
        {
            double angle = 6.283185307179586 * (c % CORNERS) / CORNERS;
            double radius = c % 2 ? 6.0 : 3.0;
            x[c] = 10.0 * (i % 8) + radius * cos(angle);
            y[c] = 10.0 * (double)(i / 8) + radius * sin(angle);
        }
    }
    for (int i = 0; i < SPRINKLED; i++)
    {
        s->point_x[i] = 0.01 * pick(8500) - 5.0;
        s->point_y[i] = 0.01 * pick(3500) - 5.0;
    }
    must(ogrjoin_layer_from_arrays(&stars, &s->stars, &err));
    must(ogrjoin_layer_from_arrays(&points, &s->points, &err));
}

/* Settings of an index. It is joined with points, or alternately with points
 * and stars if takes_stars is 1. */
static const struct
{
    const char *op, *metric;
    double distance, k;
    int takes_stars, is_of_points;
} shared_joins[] = {{"nearest", "planar", 4, 1, 0, 0},
                    {"nearest", "planar", -1, 5, 1, 0},
                    {"dwithin", "planar", 1.5, 1, 1, 0},
                    {"dwithin", "planar", 0.7, 1, 1, 1},
                    {"within", "planar", -1, 1, 1, 0},
                    {"intersects", "planar", -1, 1, 1, 0},
                    {"touches", "planar", -1, 1, 1, 0},
                    {"overlaps", "planar", -1, 1, 1, 0},
                    {"disjoint", "planar", -1, 1, 1, 0},
                    {"contains", "planar", -1, 1, 1, 1},
                    {"nearest", "sphere", 100000, 2, 0, 0},
                    {"dwithin", "sphere", 30000, 1, 0, 1}};

#define SHARED_JOINS ((int)(sizeof shared_joins / sizeof *shared_joins))
#define SHARING 4

struct sharing
{
    struct ogrjoin_index *index;
    struct ogrjoin_layer *input[2];
    /* pairs of one thread with an index of its own */
    struct ogrjoin_pairs *expected[2];
    int starts;
};

static void *join_often(void *user)
{
    const struct sharing *s = user;
    for (int i = 0; i < 6; i++)
    {
        int which = (i + s->starts) % 2;
        struct ogrjoin_pairs *found = NULL;
        size_t n;
        if (s->input[which] == NULL)
            continue;
        must(ogrjoin_join(s->index, s->input[which], &found, &err));
        n = (size_t)ogrjoin_pairs_count(found);
        ck_assert_int_eq((int64_t)n, ogrjoin_pairs_count(s->expected[which]));
        ck_assert_mem_eq(ogrjoin_pairs_left(found),
                         ogrjoin_pairs_left(s->expected[which]),
                         n * sizeof(int64_t));
        ck_assert_mem_eq(ogrjoin_pairs_right(found),
                         ogrjoin_pairs_right(s->expected[which]),
                         n * sizeof(int64_t));
        ck_assert_mem_eq(ogrjoin_pairs_measure(found),
                         ogrjoin_pairs_measure(s->expected[which]),
                         n * sizeof(double));
        ogrjoin_pairs_free(found);
    }
    return NULL;
}

/* Joins each input with one thread and an index of its own. */
static void join_alone(const struct ogrjoin_settings *settings,
                       struct ogrjoin_layer *join_side, struct sharing *s)
{
    for (int which = 0; which < 2; which++)
    {
        struct ogrjoin_index *index = NULL;
        if (s->input[which] == NULL)
            continue;
        must(ogrjoin_index_new(join_side, settings, &index, &err));
        must(ogrjoin_join(index, s->input[which], &s->expected[which], &err));
        ogrjoin_index_free(index);
    }
}

TEST_LOOP(threads, 0, SHARED_JOINS)
{
    struct shared_sides *sides = calloc(1, sizeof *sides);
    struct ogrjoin_settings *settings =
        settings_of(shared_joins[_i].op, shared_joins[_i].distance);
    struct ogrjoin_layer *join_side;
    struct sharing first = {0}, s[SHARING];
    pthread_t thread[SHARING];
    ck_assert_ptr_nonnull(sides);
    random_state = 3;
    make_sides(sides);
    join_side = shared_joins[_i].is_of_points ? sides->points : sides->stars;
    first.input[0] = sides->points;
    first.input[1] = shared_joins[_i].takes_stars ? sides->stars : NULL;
    must(ogrjoin_set_text(settings, "metric", shared_joins[_i].metric, &err));
    must(ogrjoin_set_number(settings, "k", shared_joins[_i].k, &err));
    join_alone(settings, join_side, &first);
    must(ogrjoin_index_new(join_side, settings, &first.index, &err));
    for (int t = 0; t < SHARING; t++)
    {
        s[t] = first;
        s[t].starts = t;
        ck_assert_int_eq(pthread_create(&thread[t], NULL, join_often, &s[t]),
                         0);
    }
    for (int t = 0; t < SHARING; t++)
        pthread_join(thread[t], NULL);
    ogrjoin_pairs_free(first.expected[0]);
    ogrjoin_pairs_free(first.expected[1]);
    ogrjoin_index_free(first.index);
    ogrjoin_layer_free(sides->stars);
    ogrjoin_layer_free(sides->points);
    ogrjoin_settings_free(settings);
    free(sides);
}

/* --- errors --------------------------------------------------------------- */

static void fails(int status, int expected, const char *text)
{
    ck_assert_int_eq(status, expected);
    ck_assert_int_eq(err.status, expected);
    ck_assert_msg(strstr(err.message, text) != NULL, "%s", err.message);
    err = (struct ogrjoin_error){0, ""};
}

#define EIGHT "1,1,1,1,1,1,1,1"

static const struct
{
    /* name of the setting; the text to which it is set, or NULL if it is set to
     * `number` */
    const char *name, *text;
    double number;
    const char *message;
} bad_settings[] = {
    {"colour", "red", 0, "no setting \"colour\""},
    {"colour", NULL, 1, "no setting \"colour\""},
    {"k", "3", 0, "k must be a number, not the text"},
    {"op", NULL, 3, "op must be a text, not the number 3"},
    {"k", NULL, 1.5, "whole number"},
    {"k", NULL, NAN, "whole number"},
    {"threads", NULL, 5000, "from 0 to 4096, not 5000"},
    {"max_distance", NULL, -1, "from 0 to inf"},
    {"op", "nearby", 0, "no op \"nearby\""},
    {"ties", "some", 0, "one of first|all"},
    {"relate", "T", 0, "nine"},
    {"backend", "abacus", 0, "no such backend"},
    {"min_similarity", "2", 0, "above 0 and at most 1"},
    {"min_similarity", NULL, 0, "above 0 and at most 1"},
    {"min_similarity", NULL, 1.5, "above 0 and at most 1"},
    {"min_similarity", NULL, 1e-10, "up to 9 digits"},
    {"similar", EIGHT ",1", 0, "at most 8 conditions"},
    {"similar", "0.5,,0.5", 0, "a similarity is above 0"},
    {"similar", "a:0.5,b:7", 0, "a similarity is above 0"},
    {"similar", "\"a,b", 0, "names with"},
    {"vector", "a:0", 0, "weights above 0"},
};

TEST(settings)
{
    struct ogrjoin_settings *s = ogrjoin_settings_new();
    int n = 0;
    for (; ogrjoin_setting_name(n) != NULL; n++)
        ck_assert_ptr_nonnull(ogrjoin_setting_help(n));
    ck_assert_int_ge(n, 16);
    ck_assert_ptr_null(ogrjoin_setting_help(n));
    for (n = 0; ogrjoin_backend_name(n) != NULL; n++)
    {
        ck_assert_ptr_nonnull(ogrjoin_backend_help(n));
        must(ogrjoin_set_text(s, "backend", ogrjoin_backend_name(n), &err));
    }
    ck_assert_int_ge(n, 14);
    ck_assert_ptr_null(ogrjoin_backend_help(n));
    ck_assert_ptr_null(ogrjoin_setting_name(-1));
    for (size_t i = 0; i < sizeof bad_settings / sizeof *bad_settings; i++)
    {
        const char *name = bad_settings[i].name, *text = bad_settings[i].text;
        fails(text != NULL
                  ? ogrjoin_set_text(s, name, text, &err)
                  : ogrjoin_set_number(s, name, bad_settings[i].number, &err),
              OGRJOIN_ERR_ARG, bad_settings[i].message);
    }
    ck_assert_int_eq(ogrjoin_set_number(s, "k", 0.5, NULL), OGRJOIN_ERR_ARG);
    must(ogrjoin_set_number(s, "min_similarity", 0.6, &err));
    must(ogrjoin_set_text(s, "min_similarity", "2/3", &err));
    must(ogrjoin_set_text(s, "similar", "\"a,b\":0.5,c", &err));
    ogrjoin_settings_free(s);
    ck_assert_str_eq(ogrjoin_version(), OGRJOIN_VERSION);
    ck_assert_str_eq(ogrjoin_status_name(OGRJOIN_ERR_NOMEM), "out of memory");
}

static struct ogrjoin_layer *points_at(const double *x, const double *y,
                                       int64_t n)
{
    struct ogrjoin_arrays a = {
        .size = sizeof a, .n_features = n, .n_vertices = n, .x = x, .y = y};
    struct ogrjoin_layer *layer = NULL;
    must(ogrjoin_layer_from_arrays(&a, &layer, &err));
    return layer;
}

static const struct bad_stream bad_streams[] = {
    {FORM_VIEW,
     EIO,
     0,
     "none",
     {0},
     0,
     OGRJOIN_ERR_IO,
     0,
     "stream failed: none"},
    {FORM_VIEW, 0, EIO, NULL, {0}, 0, OGRJOIN_ERR_IO, EIO, "put/output err"},
    {FORM_VIEW, 0, ENOMEM, "full", {0}, 0, OGRJOIN_ERR_NOMEM, ENOMEM, "full"},
    {FORM_VIEW, 0, 0, NULL, SPOIL("", length, INT64_MAX - 1), 0,
     OGRJOIN_ERR_LIMIT, EINVAL, "2147483647"},
    {FORM_VIEW,
     0,
     0,
     NULL,
     {"", NUMBER, 4, -1},
     0,
     OGRJOIN_ERR_DATA,
     EINVAL,
     "a view of an Arrow array"},
    {FORM_VIEW,
     0,
     0,
     NULL,
     {"", BYTE, 1, 8},
     0,
     OGRJOIN_ERR_UNSUPPORTED,
     ENOSYS,
     "row 10: "},
    {FORM_VIEW,
     0,
     0,
     NULL,
     {0},
     1,
     OGRJOIN_ERR_CANCELLED,
     ECANCELED,
     "interrupted"},
    {FORM_INTERLEAVED,
     0,
     0,
     NULL,
     {0},
     1,
     OGRJOIN_ERR_CANCELLED,
     ECANCELED,
     "interrupted"},
    {FORM_VIEW, 0, 0, NULL, {0}, 0, 0, 0, ""},
};

static void ends_as(const struct bad_stream *bad, int status,
                    const char *message)
{
    ck_assert_msg(status == bad->status &&
                      strstr(message != NULL ? message : "", bad->text) != NULL,
                  "\"%s\": %d %s", bad->text, status, message);
}

/* Opens a source whose first array is valid and whose second is invalid. The
 * first makes a layer; the second must give the error. */
static void fails_in_source(const struct bad_stream *bad,
                            struct arrow_rows_stream *rows,
                            const struct ogrjoin_settings *settings,
                            struct ogrjoin_index *index)
{
    struct ogrjoin_pairs *found = NULL;
    struct ArrowArrayStream stream = open_rows(rows);
    struct ogrjoin_source *source = NULL;
    struct ogrjoin_layer *layer = NULL;
    int status;
    rows->n_released = cancel_flag = 0;
    err.message[0] = '\0';
    status = ogrjoin_source_open(&stream, NULL, settings, &source, &err);
    if (bad->schema_code != 0)
        ends_as(bad, status, err.message);
    else
    {
        must(status);
        must(ogrjoin_source_next(source, 10, &layer, &err));
        ck_assert_int_eq(ogrjoin_layer_count(layer), 10);
        ogrjoin_layer_free(layer);
        status = ogrjoin_source_next(source, INT64_MAX, &layer, &err);
        ends_as(bad, status, err.message);
        if (status == OGRJOIN_OK)
            ogrjoin_layer_free(layer);
        ogrjoin_source_free(source);
    }
    ck_assert_int_eq(rows->n_released, 1);
    cancel_flag = 0;
    if (bad->schema_code != 0 || bad->array.value > INT32_MAX)
        return; /* the error does not occur here, because one row less than the
                   limit is read */
    stream = open_rows(rows);
    must(ogrjoin_source_open(&stream, NULL, settings, &source, &err));
    err.message[0] = '\0';
    status = ogrjoin_join_source(index, source, 20, &found, &err);
    ends_as(bad, status, err.message);
    if (status == OGRJOIN_OK)
        ogrjoin_pairs_free(found);
    ogrjoin_source_free(source);
    ck_assert_int_eq(rows->n_released, 2);
    cancel_flag = 0;
}

TEST_LOOP(bad_streams, 0, sizeof bad_streams / sizeof *bad_streams)
{
    const struct bad_stream *bad = &bad_streams[_i];
    struct arrow_rows points, lines;
    struct arrow_rows_stream rows = {
        .rows = &lines,
        .first = bad->form < FORM_SEPARATED ? &points : NULL,
        .options = {.form = bad->form, .n_ordinates = 2},
        .n = 2,
        .bad = bad};
    struct ogrjoin_settings *settings = ogrjoin_settings_new();
    struct ArrowArrayStream stream, out;
    struct ogrjoin_layer *layer = NULL;
    struct ogrjoin_index *index = NULL;
    struct ArrowArray pairs;
    int status;
    random_state = 12;
    make_rows(&points, OJ_PART_POINT, 0, 10, 1);
    make_rows(&lines, OJ_PART_LINE, 0, 10, 1);
    ogrjoin_settings_cancel(settings, &cancel_flag);
    stream = open_rows(&rows);
    err.message[0] = '\0';
    status = ogrjoin_layer_from_stream(&stream, NULL, settings, &layer, &err);
    ends_as(bad, status, err.message);
    ogrjoin_layer_free(layer);
    fails(ogrjoin_layer_from_stream(&stream, NULL, NULL, &layer, &err),
          OGRJOIN_ERR_ARG, "the Arrow stream has been released");
    cancel_flag = 0;
    layer = points_at(lines.x, lines.y, 3);
    must(ogrjoin_index_new(layer, settings, &index, &err));
    stream = open_rows(&rows);
    status = ogrjoin_join_stream(index, &stream, NULL, &out, &err);
    if (bad->schema_code != 0)
        ends_as(bad, status, err.message);
    else
    {
        ck_assert_int_eq(out.get_next(&out, &pairs), 0);
        pairs.release(&pairs);
        ck_assert_int_eq(out.get_next(&out, &pairs), bad->error);
        ends_as(bad, bad->status, out.get_last_error(&out));
        if (pairs.release != NULL)
            pairs.release(&pairs);
        out.release(&out);
    }
    ck_assert_int_eq(rows.n_released, 2);
    fails_in_source(bad, &rows, settings, index);
    ogrjoin_index_free(index);
    ogrjoin_layer_free(layer);
    ogrjoin_settings_free(settings);
}

TEST(arrays)
{
    static const double x[] = {0, 1, 1, 0}, y[] = {0, 0, 1, 0};
    static const int64_t one[] = {0, 1}, vertices[] = {0, 4};
    static const uint8_t kind[] = {OGRJOIN_POLYGON};
    struct ogrjoin_arrays a = {.size = sizeof a,
                               .n_features = 1,
                               .n_parts = 1,
                               .n_rings = 1,
                               .n_vertices = 4,
                               .part_offset = one,
                               .part_kind = kind,
                               .ring_offset = one,
                               .vertex_offset = vertices,
                               .x = x,
                               .y = y};
    struct ogrjoin_layer *layer = NULL;
    must(ogrjoin_layer_from_arrays(&a, &layer, &err));
    ck_assert_int_eq(ogrjoin_layer_count(layer), 1);
    ogrjoin_layer_free(layer);
    a.n_vertices = 3;
    ck_assert_int_eq(ogrjoin_layer_from_arrays(&a, &layer, &err),
                     OGRJOIN_ERR_ARG);
    a.n_features = -1;
    fails(ogrjoin_layer_from_arrays(&a, &layer, &err), OGRJOIN_ERR_ARG,
          "must be 0 or more");
    a.part_kind = NULL;
    fails(ogrjoin_layer_from_arrays(&a, &layer, &err), OGRJOIN_ERR_ARG,
          "part_kind is missing");
    a.size = 8;
    fails(ogrjoin_layer_from_arrays(&a, &layer, &err), OGRJOIN_ERR_ARG, "size");
}

/* Joins a layer that has columns. Checks the number of pairs, and the right
 * feature of the first pair. */
static void joins_with(const struct ogrjoin_settings *settings,
                       const struct ogrjoin_columns *left,
                       const struct ogrjoin_columns *right, int64_t n,
                       int64_t first)
{
    static const double x[] = {0, 10, 20}, near_x[] = {1, 9, 23}, y[3] = {0};
    struct ogrjoin_layer *input = points_at(x, y, 3);
    struct ogrjoin_layer *join_side = points_at(near_x, y, 3);
    struct ogrjoin_index *index = NULL;
    struct ogrjoin_pairs *pairs = NULL;
    struct ogrjoin_validation v = {.size = sizeof v};
    must(ogrjoin_layer_set_columns(input, left, &err));
    must(ogrjoin_layer_set_columns(join_side, right, &err));
    must(ogrjoin_index_new(join_side, settings, &index, &err));
    must(ogrjoin_join(index, input, &pairs, &err));
    ck_assert_int_eq(ogrjoin_pairs_count(pairs), n);
    ck_assert_int_eq(ogrjoin_pairs_right(pairs)[0], first);
    must(ogrjoin_validate(index, input, NULL, &v, &err));
    ck_assert_int_eq(v.n_rows, 3);
    ck_assert_int_eq(v.n_pairs, n);
    ck_assert_int_eq(v.n_differences, 0);
    ck_assert_int_eq(v.left, -1);
    ck_assert_ptr_null(v.kind);
    fails(ogrjoin_validate(index, input, "abacus", &v, &err), OGRJOIN_ERR_ARG,
          "abacus");
    v.size = 8;
    fails(ogrjoin_validate(index, input, NULL, &v, &err), OGRJOIN_ERR_ARG,
          "size");
    ogrjoin_pairs_free(pairs);
    ogrjoin_index_free(index);
    ogrjoin_layer_free(join_side);
    ogrjoin_layer_free(input);
}

TEST(columns_of_features)
{
    static const double own[] = {0.5, 1.5, 3};
    static const int32_t left_class[] = {7, 7, -1}, right_class[] = {5, 7, 7};
    static const int64_t id[] = {1, 2, 3};
    struct ogrjoin_columns none = {.size = sizeof none}, left = none,
                           right = none;
    struct ogrjoin_layer *layer = points_at(own, own, 3);
    struct ogrjoin_settings *settings = settings_of("dwithin", 12);
    joins_with(settings, &none, &none, 6, 0);
    left.max_distance = own;
    joins_with(settings, &left, &none, 2, 1);
    left = none;
    left.on_class = left_class;
    right.on_class = right_class;
    joins_with(settings, &left, &right, 2, 1);
    left = right = none;
    left.id = right.id = id;
    must(ogrjoin_set_number(settings, "exclude_self", 1, &err));
    joins_with(settings, &left, &right, 3, 1);
    none.size = 8;
    fails(ogrjoin_layer_set_columns(layer, &none, &err), OGRJOIN_ERR_ARG,
          "size");
    ogrjoin_settings_free(settings);
    ogrjoin_layer_free(layer);
}

/* --- large sides ------------------------------------------------------------
 */

/* The input has more points than the library joins at once. The pairs are equal
 * as columns, as lists and in three layers. Ids are row numbers of the whole
 * input. */
TEST(large_side_in_pieces)
{
    enum
    {
        N = (2 << 20) + 5,
        PART = N / 3 + 1
    };
    double *x = calloc(N, sizeof *x), *y = calloc(N, sizeof *y);
    int64_t *id = calloc(N, sizeof *id), n = 0;
    struct ogrjoin_settings *settings = settings_of("dwithin", 1.5);
    struct ogrjoin_layer *all, *few;
    struct ogrjoin_index *index = NULL;
    struct ogrjoin_pairs *whole = NULL, *lists = NULL;
    ck_assert(x != NULL && y != NULL && id != NULL);
    for (int i = 0; i < N; i++)
    {
        x[i] = i % 1500;
        y[i] = (double)(i / 1500);
        id[i] = i;
    }
    all = points_at(x, y, N);
    few = points_at(x, y, 3000);
    must(ogrjoin_set_number(settings, "exclude_self", 1, &err));
    must(ogrjoin_index_new(few, settings, &index, &err));
    must(ogrjoin_join(index, all, &whole, &err));
    must(ogrjoin_join_lists(index, all, &lists, &err));
    /* neighbours along each of the 2 join rows of 1500 points; then, for the 3
     * pairs of adjacent rows (input row, join row), the 1500 points above each
     * other and the diagonal neighbours */
    ck_assert_int_eq(ogrjoin_pairs_count(whole),
                     2 * (2 * 1499) + 3 * (1500 + 2 * 1499));
    ck_assert_int_eq(same_lists(whole, lists, 0, 0),
                     ogrjoin_pairs_count(whole));
    ogrjoin_pairs_free(lists);
    for (int64_t first = 0; first < N; first += PART)
    {
        struct ogrjoin_columns columns = {.size = sizeof columns,
                                          .id = id + first};
        int64_t end = first + PART < N ? first + PART : N;
        struct ogrjoin_layer *part =
            points_at(x + first, y + first, end - first);
        must(ogrjoin_layer_set_columns(part, &columns, &err));
        must(ogrjoin_join_lists(index, part, &lists, &err));
        n = same_lists(whole, lists, first, n);
        ogrjoin_pairs_free(lists);
        ogrjoin_layer_free(part);
    }
    ck_assert_int_eq(n, ogrjoin_pairs_count(whole));
    ogrjoin_index_free(index);
    must(ogrjoin_set_number(settings, "max_pairs", (double)n, &err));
    must(ogrjoin_index_new(few, settings, &index, &err));
    must(ogrjoin_join_lists(index, all, &lists, &err));
    ogrjoin_pairs_free(lists);
    ogrjoin_index_free(index);
    must(ogrjoin_set_number(settings, "max_pairs", (double)(n - 1), &err));
    must(ogrjoin_index_new(few, settings, &index, &err));
    ck_assert_int_eq(ogrjoin_join_lists(index, all, &lists, &err),
                     OGRJOIN_ERR_TOO_MANY);
    ogrjoin_index_free(index);
    ogrjoin_pairs_free(whole);
    ogrjoin_layer_free(all);
    ogrjoin_layer_free(few);
    ogrjoin_settings_free(settings);
    free(x);
    free(y);
    free(id);
}

/* --- memory -----------------------------------------------------------------
 */

/* Counts the pairs of a stream in *n. Returns 0, or the error of the stream. */
static int count_streamed(struct ArrowArrayStream *stream, int64_t *n)
{
    struct ArrowArray batch;
    for (*n = 0;;)
    {
        int code = stream->get_next(stream, &batch);
        if (code != 0)
            ck_assert_ptr_nonnull(stream->get_last_error(stream));
        if (code != 0 || batch.release == NULL)
            return code == ENOMEM ? OGRJOIN_ERR_NOMEM : code;
        *n += batch.length;
        batch.release(&batch);
    }
}

/* Joins a layer of three rows, then the remaining rows. Stores the number of
 * pairs in *n. Returns a status. */
static int join_source_after_layer(struct ogrjoin_index *index,
                                   const struct ogrjoin_settings *settings,
                                   struct ArrowArrayStream *stream, int64_t *n)
{
    struct ogrjoin_pairs *pairs = NULL;
    struct ogrjoin_source *source = NULL;
    struct ogrjoin_layer *layer = NULL;
    int status = ogrjoin_source_open(stream, NULL, settings, &source, &err);
    ck_assert_ptr_null(stream->release);
    if (status == OGRJOIN_OK)
        status = ogrjoin_source_next(source, 3, &layer, &err);
    if (status == OGRJOIN_OK)
        status = ogrjoin_join_lists(index, layer, &pairs, &err);
    if (status == OGRJOIN_OK)
    {
        *n = ogrjoin_pairs_count(pairs);
        ogrjoin_pairs_free(pairs);
        pairs = NULL;
        status = ogrjoin_join_source(index, source, 100, &pairs, &err);
    }
    if (status == OGRJOIN_OK)
        *n += ogrjoin_pairs_count(pairs);
    ogrjoin_pairs_free(pairs);
    ogrjoin_layer_free(layer);
    ogrjoin_source_free(source);
    return status;
}

/* Joins a stream with itself, at once and array by array, and exports the pairs
 * to Arrow. Stores the number of pairs in *n. Allocation number fails_at fails;
 * 0: none. Returns a status. */
static int join_stream_with_itself(const struct arrow_rows_stream *rows,
                                   int64_t fails_at, int64_t *n)
{
    struct arrow_rows_stream both[3] = {*rows, *rows, *rows};
    struct ArrowArrayStream whole = open_rows(&both[0]);
    struct ArrowArrayStream cut = open_rows(&both[1]), out = {0};
    struct ArrowArrayStream parts = open_rows(&both[2]);
    struct ogrjoin_settings *settings;
    struct ogrjoin_layer *layer = NULL;
    struct ogrjoin_index *index = NULL;
    struct ogrjoin_pairs *pairs = NULL;
    struct ArrowSchema schema;
    struct ArrowArray array;
    int64_t n_streamed;
    int status = OGRJOIN_ERR_NOMEM;
    (void)oj_alloc_fail_at(fails_at);
    settings = ogrjoin_settings_new();
    if (settings != NULL)
        status = ogrjoin_set_text(settings, "op", "intersects", &err);
    if (status == OGRJOIN_OK)
        status = ogrjoin_set_number(settings, "exclude_self", 1, &err);
    if (status == OGRJOIN_OK)
        status = ogrjoin_set_number(settings, "threads", 1, &err);
    if (status == OGRJOIN_OK)
        status =
            ogrjoin_layer_from_stream(&whole, NULL, settings, &layer, &err);
    if (status == OGRJOIN_OK)
        status = ogrjoin_index_new(layer, settings, &index, &err);
    if (status == OGRJOIN_OK)
    {
        ck_assert_ptr_nonnull(ogrjoin_index_backend(index));
        status = ogrjoin_join(index, layer, &pairs, &err);
    }
    if (status == OGRJOIN_OK)
        status = ogrjoin_pairs_to_arrow(pairs, &schema, &array, &err);
    if (status == OGRJOIN_OK)
    {
        *n = array.length;
        ck_assert_int_eq(array.children[2]->null_count, *n);
        schema.release(&schema);
        array.release(&array);
        status = ogrjoin_join_stream(index, &cut, NULL, &out, &err);
    }
    if (status == OGRJOIN_OK)
        status = count_streamed(&out, &n_streamed);
    if (status == OGRJOIN_OK)
    {
        ck_assert_int_eq(n_streamed, *n);
        status = join_source_after_layer(index, settings, &parts, &n_streamed);
    }
    if (status == OGRJOIN_OK)
        ck_assert_int_eq(n_streamed, *n);
    if (parts.release != NULL)
        parts.release(&parts);
    if (whole.release != NULL)
        whole.release(&whole);
    if (cut.release != NULL)
        cut.release(&cut);
    if (out.release != NULL)
        out.release(&out);
    ogrjoin_pairs_free(pairs);
    ogrjoin_index_free(index);
    ogrjoin_layer_free(layer);
    ogrjoin_settings_free(settings);
    return status;
}

TEST_LOOP(memory, 0, 15)
{
    struct arrow_rows points, rows;
    struct arrow_rows_stream stream = {
        .rows = &rows,
        .first = _i < 3 * FORM_SEPARATED ? &points : NULL,
        .options = {.form = (enum arrow_form)(_i / 3), .n_ordinates = 2},
        .n = 2};
    int64_t n, n_pairs, found;
    random_state = 12;
    make_rows(&points, OJ_PART_POINT, 0, 10, 1);
    make_rows(&rows, (enum oj_part_kind)(1 << _i % 3),
              stream.first == NULL && _i % 2, 10, 1);
    ck_assert_int_eq(join_stream_with_itself(&stream, 0, &n_pairs), OGRJOIN_OK);
    n = oj_alloc_fail_at(0);
    ck_assert_int_gt(n, 5);
    for (int64_t i = 1; i <= n; i++)
    {
        int status = join_stream_with_itself(&stream, i, &found);
        (void)oj_alloc_fail_at(0);
        ck_assert(status == OGRJOIN_ERR_NOMEM ||
                  (status == OGRJOIN_OK && found == n_pairs));
    }
}

int main(void)
{
    tests_open("api");
    return tests_run();
}
