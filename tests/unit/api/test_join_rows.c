/* Joins two Arrow streams into a stream of rows: every value of how, input
 * arrays of any size, aggregates, invalid settings, cancelling, progress,
 * errors of streams, an index that exists already, several threads, classes of
 * values, and failing allocations.
 * Kinds: unit, degenerate, memory. */
#include "../../../algs/ogrjoin.h"

#include "../../../algs/api/arrow/oj_arrow_column.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../run_tests.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum
{
    MOST_ROWS = 8,
    N_COLUMNS = 4, /* columns id, x, y, name */
    TEXT = 2000
};

/* A side of points on a line, with or without names. */
struct point_side
{
    int n;
    double x[MOST_ROWS];
    const char *name[MOST_ROWS];
    int at_once;  /* rows per array; 0: all rows */
    int fails_at; /* number of the array that fails; 0: none */
};

static const struct point_side left = {
    5, {0, 1, 5, 20, 9}, {"a", "b", NULL, "d", "e"}, 0, 0};
static const struct point_side right = {
    4, {0.5, 5, 6, 100}, {"x", "y", NULL, "z"}, 0, 0};

static struct ogrjoin_error err;

static void must(int status)
{
    ck_assert_msg(status == OGRJOIN_OK, "%s", err.message);
}

/* --- streams ----------------------------------------------------------------
 */

struct side_stream
{
    struct point_side side;
    int at, n_arrays;
};

static const char *const formats[N_COLUMNS] = {"l", "g", "g", "u"};

static int give_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    static const char *const names[] = {"id", "px", "py", "name"};
    oj_status status =
        oj_arrow_schema_make("+s", "", NULL, 0, N_COLUMNS, out, NULL);
    (void)stream;
    for (int i = 0; i < N_COLUMNS && status == OJ_OK; i++)
        status = oj_arrow_schema_make(formats[i], names[i], NULL,
                                      ARROW_FLAG_NULLABLE, 0, out->children[i],
                                      NULL);
    if (status != OJ_OK)
        oj_arrow_schema_release(out);
    return status == OJ_OK ? 0 : ENOMEM;
}

static oj_status put_row(const struct point_side *side, int row, int i,
                         struct oj_arrow_column *columns)
{
    const char *name = side->name[row];
    char *to;
    OJ_TRY(oj_arrow_column_put_integer(&columns[0], i, 10 + row, NULL));
    OJ_TRY(oj_arrow_column_put_real(&columns[1], i, side->x[row], NULL));
    OJ_TRY(oj_arrow_column_put_real(&columns[2], i, 0, NULL));
    if (name == NULL)
        return oj_arrow_column_put_null(&columns[3], i, NULL);
    OJ_TRY(oj_arrow_column_put_bytes(&columns[3], i, (int64_t)strlen(name), &to,
                                     NULL));
    memcpy(to, name, strlen(name));
    return OJ_OK;
}

static oj_status put_rows(const struct point_side *side, int first, int n,
                          struct ArrowArray *out)
{
    struct oj_arrow_column columns[N_COLUMNS];
    oj_status status = OJ_OK;
    memset(columns, 0, sizeof columns);
    for (int c = 0; c < N_COLUMNS && status == OJ_OK; c++)
        status = oj_arrow_column_open_format(formats[c], n, &columns[c], NULL);
    for (int i = 0; i < n && status == OJ_OK; i++)
        status = put_row(side, first + i, i, columns);
    for (int c = 0; c < N_COLUMNS && status == OJ_OK; c++)
        status = oj_arrow_column_finish(&columns[c], n, out->children[c], NULL);
    for (int c = 0; c < N_COLUMNS; c++)
        oj_arrow_column_free(&columns[c]);
    return status;
}

static int give_array(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct side_stream *s = stream->private_data;
    int n = s->side.n - s->at;
    oj_status status;
    memset(out, 0, sizeof *out);
    if (s->side.at_once > 0 && n > s->side.at_once)
        n = s->side.at_once;
    if (++s->n_arrays == s->side.fails_at)
        return EIO;
    if (n == 0)
        return 0;
    status = oj_arrow_array_make(1, N_COLUMNS, out, NULL);
    if (status == OJ_OK)
        status = put_rows(&s->side, s->at, n, out);
    out->length = n;
    s->at += n;
    if (status != OJ_OK)
        oj_arrow_array_release(out);
    return status == OJ_OK ? 0 : ENOMEM;
}

static const char *give_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return "no such array";
}

static void release_side(struct ArrowArrayStream *stream)
{
    free(stream->private_data);
    stream->release = NULL;
}

static struct ArrowArrayStream open_side(const struct point_side *side)
{
    struct side_stream *s = calloc(1, sizeof *s);
    s->side = *side;
    return (struct ArrowArrayStream){give_schema, give_array, give_error,
                                     release_side, s};
}

/* --- rows as a text ---------------------------------------------------------
 */

static int is_there(const struct ArrowArray *array, int64_t row)
{
    const uint8_t *valid = array->buffers[0];
    row += array->offset;
    return valid == NULL || (valid[row / 8] >> row % 8 & 1) != 0;
}

static void put_value(const struct ArrowSchema *schema,
                      const struct ArrowArray *array, int64_t row, char *text)
{
    size_t n = strlen(text);
    int64_t at = array->offset + row;
    const void *values = array->buffers[1];
    if (!is_there(array, row))
        snprintf(text + n, TEXT - n, "-");
    else if (schema->format[0] == 'g')
        snprintf(text + n, TEXT - n, "%g", ((const double *)values)[at]);
    else if (schema->format[0] == 'i')
        snprintf(text + n, TEXT - n, "%d", ((const int32_t *)values)[at]);
    else if (schema->format[0] == 'u')
    {
        const int32_t *offset = values;
        snprintf(text + n, TEXT - n, "%.*s", offset[at + 1] - offset[at],
                 (const char *)array->buffers[2] + offset[at]);
    }
    else
        snprintf(text + n, TEXT - n, "%lld",
                 (long long)((const int64_t *)values)[at]);
}

/* 1 if name is an element of the list. */
static int is_named(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += n)
    {
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return 1;
    }
    return 0;
}

/* Writes the values of the named columns as text, with | between rows. Returns
 * an error code of the stream, or 0. */
static int read_rows(struct ArrowArrayStream *rows, const char *columns,
                     char *text)
{
    struct ArrowSchema schema;
    int code = rows->get_schema(rows, &schema);
    text[0] = '\0';
    while (code == 0)
    {
        struct ArrowArray array;
        code = rows->get_next(rows, &array);
        if (code != 0 || array.release == NULL)
            break;
        for (int64_t row = 0; row < array.length; row++)
        {
            for (int64_t i = 0; i < schema.n_children; i++)
            {
                if (!is_named(columns, schema.children[i]->name))
                    continue;
                put_value(schema.children[i], array.children[i], row, text);
                strcat(text, " ");
            }
            strcat(text, "|");
        }
        array.release(&array);
    }
    if (schema.release != NULL)
        schema.release(&schema);
    return code;
}

static struct ogrjoin_settings *settings_of(const char *const *words)
{
    static const char *const points[] = {"left_x",  "px",  "left_y",  "py",
                                         "right_x", "px",  "right_y", "py",
                                         "backend", "cpu", NULL};
    struct ogrjoin_settings *settings = ogrjoin_settings_new();
    must(ogrjoin_set_number(settings, "threads", 1, &err));
    for (int i = 0; points[i] != NULL; i += 2)
        must(ogrjoin_set_text(settings, points[i], points[i + 1], &err));
    for (int i = 0; words[i] != NULL; i += 2)
        must(ogrjoin_set_text(settings, words[i], words[i + 1], &err));
    return settings;
}

static int join_sides(const struct point_side *a, const struct point_side *b,
                      const struct ogrjoin_settings *settings,
                      const char *columns, char *text)
{
    struct ArrowArrayStream input = open_side(a), join_side = open_side(b);
    struct ArrowArrayStream rows = {0};
    int status = ogrjoin_join_rows(&input, &join_side, settings, &rows, &err);
    ck_assert_ptr_null(input.release);
    ck_assert_ptr_null(join_side.release);
    if (status != OGRJOIN_OK)
        return status;
    status = read_rows(&rows, columns, text);
    rows.release(&rows);
    ck_assert_ptr_null(rows.release);
    return status == 0 ? OGRJOIN_OK : status == ENOMEM ? OGRJOIN_ERR_NOMEM : -1;
}

/* --- rows of each kind of join -------------------------------------------- */

static const struct
{
    const char *words[12];
    const char *columns, *rows;
} cases[] = {
    {{"op", "dwithin", "max_distance", "1", NULL},
     "id join_fid join_distance join_name",
     "10 0 0.5 x |11 0 0.5 x |12 1 0 y |12 2 1 - |13 - - - |14 - - - |"},
    {{"op", "dwithin", "max_distance", "1", "how", "inner", NULL},
     "id join_fid",
     "10 0 |11 0 |12 1 |12 2 |"},
    {{"op", "dwithin", "max_distance", "1", "how", "semi", NULL},
     "id name",
     "10 a |11 b |12 - |"},
    {{"op", "dwithin", "max_distance", "1", "how", "anti", NULL},
     "id name",
     "13 d |14 e |"},
    {{"op", "dwithin", "max_distance", "1", "how", "right", NULL},
     "id join_fid join_name",
     "10 0 x |11 0 x |12 1 y |12 2 - |- 3 z |"},
    {{"op", "dwithin", "max_distance", "1", "how", "full", "name_count", "n",
      NULL},
     "join_fid n",
     "0 1 |0 1 |1 2 |2 2 |- 0 |- 0 |3 - |"},
    {{"op", "nearest", "name_fid", "there", NULL},
     "id there",
     "10 0 |11 0 |12 1 |13 2 |14 2 |"},
    {{"op", "nearest", "ties", "all", "min_distance", "1", NULL},
     "id join_fid join_rank",
     "10 1 1 |11 1 1 |12 2 1 |13 2 1 |14 2 1 |"},
    {{"op", "dwithin", "max_distance", "1", "pick", "max:id", NULL},
     "id join_fid",
     "10 0 |11 0 |12 2 |13 - |14 - |"},
    {{"op", "nearest", "pick", "first", "left_select", "name", "right_select",
      "", NULL},
     "name join_fid",
     "a 0 |b 0 |- 1 |d 2 |e 2 |"},
    {{"op", "dwithin", "max_distance", "1", "agg",
      "count, sum(id) as s, concat(name, '+') as names, max(px) as m", NULL},
     "id count s names m",
     "10 1 10 x 0.5 |11 1 10 x 0.5 |12 2 23 y 6 |13 0 - - - |"
     "14 0 - - - |"},
    {{"op", "dwithin", "max_distance", "1", "how", "inner", "agg",
      "median(px) as m", NULL},
     "id m",
     "10 0.5 |11 0.5 |12 5.5 |"},
    {{"op", "dwithin", "max_distance", "30", "on", "name=name", NULL},
     "id join_fid",
     "10 - |11 - |12 - |13 - |14 - |"},
    {{"op", "dwithin", "max_distance", "1", "on", "id", NULL},
     "join_fid",
     "0 |- |2 |- |- |"},
    {{"op", "dwithin", "max_distance", "5", "exclude", "self,field=id", "how",
      "inner", NULL},
     "id join_fid",
     "10 1 |11 0 |11 2 |12 0 |12 1 |14 1 |14 2 |"},
    {{"op", "dwithin", "max_distance_field", "px", NULL},
     "id join_fid",
     "10 - |11 0 |12 0 |12 1 |12 2 |13 0 |13 1 |13 2 |14 0 |14 1 |14 2 |"},
    {{"op", "nearest", "how", "full", "pick", "nearest", "prefix", "r_", NULL},
     "r_name",
     "x |x |y |- |- |z |"},
};

/* The rows do not depend on the sizes of arrays and batches. */
TEST_LOOP(rows_of_every_kind, 0, (int)(sizeof cases / sizeof *cases))
{
    struct ogrjoin_settings *settings = settings_of(cases[_i].words);
    char text[TEXT];
    for (int at_once = 0; at_once < 4; at_once++)
    {
        for (int batch_rows = 0; batch_rows < 3; batch_rows++)
        {
            struct point_side a = left, b = right;
            a.at_once = at_once;
            b.at_once = at_once > 0 ? 4 - at_once : 0;
            must(ogrjoin_set_number(settings, "batch_rows", batch_rows, &err));
            must(join_sides(&a, &b, settings, cases[_i].columns, text));
            ck_assert_str_eq(text, cases[_i].rows);
        }
    }
    ogrjoin_settings_free(settings);
}

TEST(one_to_one_takes_all_rows)
{
    static const char *const words[] = {"op", "nearest", NULL};
    struct ogrjoin_settings *settings = settings_of(words);
    struct point_side a = left;
    char text[TEXT];
    a.at_once = 1;
    must(ogrjoin_set_number(settings, "k", 4, &err));
    must(ogrjoin_set_number(settings, "one_to_one", 1, &err));
    must(ogrjoin_set_number(settings, "batch_rows", 2, &err));
    must(join_sides(&a, &right, settings, "id join_fid", text));
    ck_assert_str_eq(text, "10 0 |11 - |12 1 |13 3 |14 2 |");
    ogrjoin_settings_free(settings);
}

/* A join of empty sides still has columns. */
TEST(sides_without_rows)
{
    static const char *const words[] = {"op", "nearest", "how", "full", NULL};
    struct ogrjoin_settings *settings = settings_of(words);
    struct point_side none = {0};
    char text[TEXT];
    must(join_sides(&none, &right, settings, "join_fid", text));
    ck_assert_str_eq(text, "0 |1 |2 |3 |");
    must(join_sides(&left, &none, settings, "id join_fid", text));
    ck_assert_str_eq(text, "10 - |11 - |12 - |13 - |14 - |");
    must(join_sides(&none, &none, settings, "id", text));
    ck_assert_str_eq(text, "");
    ogrjoin_settings_free(settings);
}

/* Joins one join side with several inputs, and frees all of them in any
 * order. */
TEST(rows_are_kept)
{
    static const char *const words[] = {"op", "nearest", NULL};
    static const char *const within[] = {
        "op", "dwithin", "max_distance", "1", "how", "inner", NULL};
    struct ogrjoin_settings *settings = settings_of(words);
    struct ogrjoin_settings *others = settings_of(within);
    struct ArrowArrayStream join_side = open_side(&right), out[3];
    struct ogrjoin_rows *rows = NULL;
    char text[TEXT];
    must(ogrjoin_rows_open(&join_side, settings, &rows, &err));
    ck_assert_int_eq(ogrjoin_rows_count(rows), right.n);
    ogrjoin_settings_free(settings);
    for (int i = 0; i < 3; i++)
    {
        struct ArrowArrayStream input = open_side(&left);
        must(ogrjoin_rows_join(rows, &input, i == 1 ? others : NULL, &out[i],
                               &err));
        ck_assert_int_eq(ogrjoin_rows_geometry(&out[i]), -1);
    }
    ogrjoin_rows_free(rows);
    ogrjoin_settings_free(others);
    out[0].release(&out[0]); /* unread */
    ck_assert_int_eq(read_rows(&out[1], "join_fid", text), 0);
    ck_assert_str_eq(text, "0 |0 |1 |2 |");
    ck_assert_int_eq(read_rows(&out[2], "join_fid", text), 0);
    ck_assert_str_eq(text, "0 |0 |1 |2 |2 |");
    out[1].release(&out[1]);
    out[2].release(&out[2]);
}

/* --- geometries as texts ---------------------------------------------------
 */

static const struct point_side left_texts = {
    5,
    {0},
    {"SRID=4326;POINT (1 1)", NULL, "SRID=4326;point(5 5)", " ",
     "\\x0101000020e6100000000000000000144000000000000014C0"},
    0,
    0};
static const struct point_side right_texts = {
    3,
    {0},
    {"SRID=4326;POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))",
     "0x0101000020E610000000000000000014400000000000001440",
     "SRID=4326;LINESTRING (5 -5, 9 9)"},
    0,
    0};

/* Settings of a join of sides whose geometries are the texts in their column
 * name. */
static struct ogrjoin_settings *settings_of_texts(void)
{
    struct ogrjoin_settings *settings = ogrjoin_settings_new();
    must(ogrjoin_set_text(settings, "op", "intersects", &err));
    must(ogrjoin_set_text(settings, "left_column", "name", &err));
    must(ogrjoin_set_text(settings, "right_column", "name", &err));
    must(ogrjoin_set_number(settings, "threads", 1, &err));
    must(ogrjoin_set_number(settings, "batch_rows", 3, &err));
    return settings;
}

static int join_texts(const struct point_side *a, const struct point_side *b,
                      const char *word, const char *value, char *text)
{
    struct ogrjoin_settings *settings = settings_of_texts();
    int status;
    if (word != NULL)
        must(ogrjoin_set_text(settings, word, value, &err));
    status = join_sides(a, b, settings, "id join_id", text);
    ogrjoin_settings_free(settings);
    return status;
}

TEST(texts_are_geometries)
{
    char text[TEXT];
    for (int at_once = 0; at_once < 4; at_once++)
    {
        struct point_side a = left_texts, b = right_texts;
        a.at_once = at_once;
        b.at_once = at_once > 0 ? 4 - at_once : 0;
        must(join_texts(&a, &b, NULL, NULL, text));
        ck_assert_str_eq(text, "10 10 |11 - |12 11 |13 - |14 12 |");
        b.name[2] = "LINESTRING (5 -5, 9 9)";
        ck_assert_int_eq(join_texts(&a, &b, NULL, NULL, text), OGRJOIN_ERR_ARG);
        ck_assert_msg(
            strstr(err.message,
                   "side: row 2: the geometry has no SRID, and that of "
                   "row 0 has the SRID 4326") != NULL,
            "%s", err.message);
        must(join_texts(&a, &b, "right_crs", "EPSG:4326", text));
        b.name[2] = "LINESTRING (5 -5, 9 x)";
        ck_assert_int_eq(join_texts(&a, &b, NULL, NULL, text), OGRJOIN_ERR_ARG);
        ck_assert_msg(
            strstr(err.message,
                   "right side: row 2: the column name holds no geometry") !=
                NULL,
            "%s", err.message);
    }
}

TEST(srid_of_sides_differ)
{
    struct point_side b = right_texts;
    char text[TEXT];
    b.n = 1;
    b.name[0] = "SRID=2263;POINT (1 1)";
    ck_assert_int_eq(join_texts(&left_texts, &b, NULL, NULL, text),
                     OGRJOIN_ERR_ARG);
    ck_assert_msg(strstr(err.message, "left EPSG:4326 and right EPSG:2263") !=
                      NULL,
                  "%s", err.message);
    must(join_texts(&left_texts, &b, "crs", "ignore", text));
    ck_assert_str_eq(text, "10 10 |11 - |12 - |13 - |14 - |");
}

TEST(memory_of_texts)
{
    struct ogrjoin_settings *settings = settings_of_texts();
    struct point_side a = left_texts;
    char text[TEXT];
    int status = OGRJOIN_ERR_NOMEM;
    a.at_once = 2;
    for (int64_t n = 1; status != OGRJOIN_OK; n++)
    {
        (void)oj_alloc_fail_at(n);
        status = join_sides(&a, &right_texts, settings, "id join_id", text);
        (void)oj_alloc_fail_at(0);
        ck_assert_msg(status == OGRJOIN_OK || status == OGRJOIN_ERR_NOMEM,
                      "%lld: %s", (long long)n, err.message);
        ck_assert_int_lt(n, 5000);
    }
    ck_assert_str_eq(text, "10 10 |11 - |12 11 |13 - |14 12 |");
    ogrjoin_settings_free(settings);
}

/* --- invalid settings ----------------------------------------------------- */

static const struct
{
    const char *words[8];
    const char *message;
} bad[] = {
    {{"op", "intersects", "distance_to", "boundary", NULL}, "no effect on op"},
    {{"op", "nearest", "tokens", "words", NULL}, "without similar"},
    {{"op", "nearest", "how", "semi", "overlap", "area", NULL}, "together"},
    {{"op", "nearest", "agg", "sum(nam)", NULL}, "did you mean \"name\""},
    {{"op", "nearest", "agg", "sum(name)", NULL}, "sum"},
    {{"op", "nearest", "max_distance", "3ft", NULL}, "no CRS"},
    {{"op", "nearest", "left_crs", "EPSG:4326", NULL}, "degrees"},
    {{"op", "nearest", "left_crs", "EPSG:2263", "right_crs", "EPSG:4326", NULL},
     "EPSG:2263"},
    {{"op", "nearest", "on", "name=nam", NULL}, "did you mean"},
    {{"op", "nearest", "pick", "max:name", NULL}, "max and min"},
    {{"op", "nearest", "geometry", "join", NULL}, "no column of geometries"},
    {{"op", "nearest", "exclude", "me", NULL}, "exclude is"},
    {{"op", "dwithin", NULL}, "needs a finite maximum distance"},
    {{"op", "nearest", "left_fid", "name", NULL}, "must be an integer"},
    {{"op", "nearest", "name_fid", "id", NULL}, "another name"},
};

TEST_LOOP(settings_without_sense, 0, (int)(sizeof bad / sizeof *bad))
{
    struct ogrjoin_settings *settings = settings_of(bad[_i].words);
    char text[TEXT];
    err.message[0] = '\0';
    ck_assert_int_eq(join_sides(&left, &right, settings, "id", text),
                     OGRJOIN_ERR_ARG);
    ck_assert_msg(strstr(err.message, bad[_i].message) != NULL, "%s",
                  err.message);
    ogrjoin_settings_free(settings);
}

TEST(names_of_settings)
{
    struct ogrjoin_settings *settings = ogrjoin_settings_new();
    ck_assert_int_eq(ogrjoin_set_text(settings, "geometri", "join", &err),
                     OGRJOIN_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(err.message, "did you mean \"geometry\""));
    ck_assert_int_eq(ogrjoin_set_text(settings, "how", "outer", &err),
                     OGRJOIN_ERR_ARG);
    ogrjoin_settings_free(settings);
}

/* --- cancel, progress, errors -----------------------------------------------
 */

TEST(cancel_ends_a_stream)
{
    static const char *const words[] = {"op", "nearest", NULL};
    struct ogrjoin_settings *settings = settings_of(words);
    struct ArrowArrayStream input = open_side(&left);
    struct ArrowArrayStream join_side = open_side(&right), rows;
    struct ArrowArray array;
    int cancel = 0;
    ogrjoin_settings_cancel(settings, &cancel);
    must(ogrjoin_join_rows(&input, &join_side, settings, &rows, &err));
    ogrjoin_settings_free(settings);
    cancel = 1;
    ck_assert_int_eq(rows.get_next(&rows, &array), ECANCELED);
    ck_assert_ptr_nonnull(rows.get_last_error(&rows));
    cancel = 0; /* no record batch may be incomplete */
    ck_assert_int_eq(rows.get_next(&rows, &array), ECANCELED);
    rows.release(&rows);
}

struct seen
{
    int64_t rows, all;
    int n, ends_at;
};

static int note_progress(void *user, int64_t rows, int64_t n_rows)
{
    struct seen *seen = user;
    seen->rows = rows;
    seen->all = n_rows;
    return ++seen->n == seen->ends_at;
}

TEST(progress_counts_rows)
{
    static const char *const words[] = {"op", "nearest", NULL};
    struct ogrjoin_settings *settings = settings_of(words);
    struct seen seen = {0, 0, 0, 0};
    char text[TEXT];
    ogrjoin_settings_progress(settings, note_progress, &seen);
    must(ogrjoin_set_number(settings, "batch_rows", 2, &err));
    must(ogrjoin_set_number(settings, "input_rows", 5, &err));
    must(join_sides(&(struct point_side){.n = left.n, .at_once = 1}, &right,
                    settings, "id", text));
    ck_assert_int_ge(seen.n, 3); /* batches are joined in parts */
    ck_assert_int_eq(seen.rows, 5);
    ck_assert_int_eq(seen.all, 5);
    seen = (struct seen){0, 0, 0, 1};
    ck_assert_int_eq(join_sides(&left, &right, settings, "id", text), -1);
    ck_assert_int_eq(seen.n, 1);
    ogrjoin_settings_free(settings);
}

TEST(errors_of_sides)
{
    static const char *const words[] = {"op", "nearest", NULL};
    struct ogrjoin_settings *settings = settings_of(words);
    struct point_side broken = right;
    char text[TEXT];
    broken.fails_at = 2;
    broken.at_once = 2;
    ck_assert_int_eq(join_sides(&left, &broken, settings, "id", text),
                     OGRJOIN_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "no such array"));
    ck_assert_int_eq(join_sides(&broken, &right, settings, "id", text), -1);
    ogrjoin_settings_free(settings);
}

/* --- an existing index, and several threads ------------------------------- */

/* Returns an index of the right side's points, or NULL if the settings are
 * invalid. */
static struct ogrjoin_index *
index_right(const struct ogrjoin_settings *settings)
{
    static const double y[MOST_ROWS] = {0};
    const struct ogrjoin_arrays arrays = {.size = sizeof arrays,
                                          .n_features = right.n,
                                          .n_vertices = right.n,
                                          .x = right.x,
                                          .y = y};
    struct ogrjoin_layer *layer = NULL;
    struct ogrjoin_index *index = NULL;
    must(ogrjoin_layer_from_arrays(&arrays, &layer, &err));
    if (ogrjoin_index_new(layer, settings, &index, NULL) != OGRJOIN_OK)
        index = NULL;
    ogrjoin_layer_free(layer);
    return index;
}

static struct ogrjoin_rows *open_right(void)
{
    static const char *const none[] = {NULL};
    struct ogrjoin_settings *settings = settings_of(none);
    struct ArrowArrayStream stream = open_side(&right);
    struct ogrjoin_rows *rows = NULL;
    must(ogrjoin_rows_open(&stream, settings, &rows, &err));
    ogrjoin_settings_free(settings);
    return rows;
}

static void join_case(struct ogrjoin_rows *rows, int i, int with_index)
{
    struct ogrjoin_settings *settings = settings_of(cases[i].words);
    struct ogrjoin_index *index = with_index ? index_right(settings) : NULL;
    struct ArrowArrayStream input = open_side(&left), out = {0};
    char text[TEXT];
    must(ogrjoin_rows_join_index(rows, index, &input, settings, &out, &err));
    ogrjoin_index_free(index);
    ogrjoin_settings_free(settings);
    ck_assert_int_eq(read_rows(&out, cases[i].columns, text), 0);
    ck_assert_str_eq(text, cases[i].rows);
    out.release(&out);
}

enum
{
    N_CASES = (int)(sizeof cases / sizeof *cases),
    N_THREADS = 4
};

TEST_LOOP(an_index_that_is_there, 0, N_CASES)
{
    struct ogrjoin_rows *rows = open_right();
    join_case(rows, _i, 1);
    join_case(rows, _i, 0);
    join_case(rows, _i, 1);
    ogrjoin_rows_free(rows);
}

/* Returns the number of allocations of the first join with the side. */
static int64_t count_allocations(struct ogrjoin_index *index,
                                 const struct ogrjoin_settings *settings)
{
    struct ogrjoin_rows *rows = open_right();
    struct ArrowArrayStream input = open_side(&left), out = {0};
    int64_t n;
    (void)oj_alloc_fail_at(INT64_MAX);
    must(ogrjoin_rows_join_index(rows, index, &input, settings, &out, &err));
    n = oj_alloc_fail_at(0);
    out.release(&out);
    ogrjoin_rows_free(rows);
    return n;
}

/* A join that gets an index neither reads features nor builds an index. */
TEST(no_second_index)
{
    static const char *const words[] = {"op", "nearest", "ties", "all", NULL};
    static const char *const others[] = {"op", "nearest", NULL};
    struct ogrjoin_settings *settings = settings_of(words);
    struct ogrjoin_settings *of_index = settings_of(others);
    struct ogrjoin_index *alike = index_right(settings);
    struct ogrjoin_index *other = index_right(of_index);
    int64_t n = count_allocations(alike, settings);
    ck_assert_int_lt(n, count_allocations(other, settings));
    ck_assert_int_eq(count_allocations(NULL, settings),
                     count_allocations(other, settings));
    ogrjoin_index_free(alike);
    ogrjoin_index_free(other);
    ogrjoin_settings_free(settings);
    ogrjoin_settings_free(of_index);
}

struct joining
{
    struct ogrjoin_rows *rows;
    int first;
};

static void *join_all_cases(void *user)
{
    const struct joining *j = user;
    for (int i = 0; i < 2 * N_CASES; i++)
        join_case(j->rows, (j->first + 5 * i) % N_CASES, i % 3 == 0);
    return NULL;
}

/* Each thread has other settings. The join side keeps one index, so the threads
 * constantly replace it. */
TEST(threads_join_one_side)
{
    struct ogrjoin_rows *rows = open_right();
    struct joining joining[N_THREADS];
    pthread_t thread[N_THREADS];
    for (int t = 0; t < N_THREADS; t++)
    {
        joining[t] = (struct joining){rows, t};
        ck_assert_int_eq(
            pthread_create(&thread[t], NULL, join_all_cases, &joining[t]), 0);
    }
    for (int t = 0; t < N_THREADS; t++)
        pthread_join(thread[t], NULL);
    ogrjoin_rows_free(rows);
}

/* --- classes of values
 * --------------------------------------------------------
 */

/* Finds the classes of the left side's values in a column, and checks the last
 * right row of each value's class; -1: none. */
static void classes_of(struct ogrjoin_classes *classes, int column,
                       const char *expected)
{
    struct ArrowArrayStream stream = open_side(&left);
    struct ArrowSchema schema;
    struct ArrowArray array;
    const int32_t *of_join = NULL;
    int32_t of_left[MOST_ROWS];
    char text[TEXT] = "";
    ck_assert_int_eq(stream.get_schema(&stream, &schema), 0);
    ck_assert_int_eq(stream.get_next(&stream, &array), 0);
    must(ogrjoin_classes_find(classes, schema.children[column],
                              array.children[column], of_left, &of_join, &err));
    for (int i = 0; i < left.n; i++)
    {
        int64_t found = -1;
        for (int k = 0; of_left[i] >= 0 && k < right.n; k++)
        {
            if (of_join[k] == of_left[i])
                found = k;
        }
        snprintf(text + strlen(text), TEXT - strlen(text), "%d ", (int)found);
    }
    ck_assert_str_eq(text, expected);
    array.release(&array);
    schema.release(&schema);
    stream.release(&stream);
}

static struct ogrjoin_classes *classes_of_right(int column)
{
    struct ArrowArrayStream stream = open_side(&right);
    struct ogrjoin_classes *classes = NULL;
    struct ArrowSchema schema;
    struct ArrowArray array;
    ck_assert_int_eq(stream.get_schema(&stream, &schema), 0);
    ck_assert_int_eq(stream.get_next(&stream, &array), 0);
    must(ogrjoin_classes_new(schema.children[column], array.children[column],
                             &classes, &err));
    ck_assert_ptr_null(array.children[column]->release);
    array.release(&array);
    schema.release(&schema);
    stream.release(&stream);
    return classes;
}

/* Values of left and right. id: 10 to 14, and 10 to 13. px: 0 1 5 20 9, and 0.5
 * 5 6 100. name: a b - d e, and x y - z. */
TEST(classes_of_values)
{
    struct ogrjoin_classes *ids = classes_of_right(0);
    struct ogrjoin_classes *places = classes_of_right(1);
    struct ogrjoin_classes *names = classes_of_right(3);
    for (int again = 0; again < 2; again++)
    {
        classes_of(ids, 0, "0 1 2 3 -1 ");
        classes_of(ids, 1, "-1 -1 -1 -1 -1 ");
        classes_of(ids, 3, "-1 -1 -1 -1 -1 ");
        classes_of(places, 1, "-1 -1 1 -1 -1 ");
        classes_of(names, 3, "-1 -1 -1 -1 -1 ");
    }
    ogrjoin_classes_free(ids);
    ogrjoin_classes_free(places);
    ogrjoin_classes_free(names);
}

/* --- memory ------------------------------------------------------------------
 */

TEST_LOOP(memory, 0, (int)(sizeof cases / sizeof *cases))
{
    struct ogrjoin_settings *settings = settings_of(cases[_i].words);
    struct point_side a = left;
    char text[TEXT];
    int status = OGRJOIN_ERR_NOMEM;
    a.at_once = 2;
    must(ogrjoin_set_number(settings, "batch_rows", 3, &err));
    for (int64_t n = 1; status != OGRJOIN_OK; n++)
    {
        (void)oj_alloc_fail_at(n);
        status = join_sides(&a, &right, settings, cases[_i].columns, text);
        (void)oj_alloc_fail_at(0);
        ck_assert_msg(status == OGRJOIN_OK || status == OGRJOIN_ERR_NOMEM,
                      "%lld: %s", (long long)n, err.message);
        ck_assert_int_lt(n, 5000);
    }
    ck_assert_str_eq(text, cases[_i].rows);
    ogrjoin_settings_free(settings);
}

/* Finds classes of the right side's names among themselves, while allocation
 * number `at` fails. Returns a status. */
static int find_in_classes(int64_t at)
{
    struct ArrowArrayStream stream = open_side(&right);
    struct side_stream *side = stream.private_data;
    struct ogrjoin_classes *classes = NULL;
    struct ArrowSchema schema;
    struct ArrowArray array[2];
    const int32_t *of_join = NULL;
    int32_t found[MOST_ROWS];
    int status;
    ck_assert_int_eq(stream.get_schema(&stream, &schema), 0);
    for (int i = 0; i < 2; i++)
    {
        side->at = 0;
        ck_assert_int_eq(stream.get_next(&stream, &array[i]), 0);
    }
    (void)oj_alloc_fail_at(at);
    status = ogrjoin_classes_new(schema.children[3], array[0].children[3],
                                 &classes, &err);
    if (status == OGRJOIN_OK)
        status =
            ogrjoin_classes_find(classes, schema.children[3],
                                 array[1].children[3], found, &of_join, &err);
    (void)oj_alloc_fail_at(0);
    for (int i = 0; status == OGRJOIN_OK && i < right.n; i++)
        ck_assert_int_eq(found[i], of_join[i]);
    ogrjoin_classes_free(classes);
    for (int i = 0; i < 2; i++)
        array[i].release(&array[i]);
    schema.release(&schema);
    stream.release(&stream);
    return status;
}

TEST(memory_of_classes)
{
    int status = OGRJOIN_ERR_NOMEM;
    for (int64_t at = 1; status != OGRJOIN_OK; at++)
    {
        status = find_in_classes(at);
        ck_assert(status == OGRJOIN_OK || status == OGRJOIN_ERR_NOMEM);
        ck_assert_int_lt(at, 100);
    }
}

int main(void)
{
    tests_open("join_rows");
    return tests_run();
}
