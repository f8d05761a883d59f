/* Texts and vectors in Arrow columns of every format, alone and in streams,
 * give the pairs of plain arrays. Invalid columns, including columns of
 * geometries, give an error, whatever bytes are in offsets, views, indices and
 * counts.
 * Kinds: unit, degenerate, memory. */
#include "../../../algs/ogrjoin.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../run_tests.h"

#include "arrow_rows.h"

#include <math.h>

enum
{
    N = 6,  /* rows of a side */
    G = 10, /* rows with geometries */
    D = 2,
    N_COLUMNS = 8
};

/*  row     0         1       2     3         4        5            */
static const char *const name[N] = {"Elm street", "",    "bar",
                                    NULL,         "elm", "Bar Elm 12"};
static const int number[N] = {1, 2, 3, 4, 5, 6};
static const double vector[N][D] = {{0, 1},   {1, 1}, {2.5, 1},
                                    {NAN, 0}, {4, 4}, {0, 0.5}};

static struct ogrjoin_error err;

static void must(int status)
{
    ck_assert_msg(status == OGRJOIN_OK, "%s", err.message);
}

/* --- the batch -------------------------------------------------------------
 */

static const char *const column_name[N_COLUMNS] = {
    "u", "U", "vu", "dictionary", "whole", "fixed", "list", "real"};

static void set_valid(struct ArrowArray *array, unsigned rows)
{
    uint8_t bits[1] = {(uint8_t)rows};
    array->buffers[0] = copy_bytes(bits, 1);
    array->null_count = -1;
}

static void put_texts(struct ArrowArray *out, int is_large)
{
    char bytes[100] = "";
    int64_t offset[N + 1] = {0};
    for (int i = 0; i < N; i++)
    {
        strcat(bytes, name[i] != NULL ? name[i] : "");
        offset[i + 1] = (int64_t)strlen(bytes);
    }
    init_node(out, N, 3, 0);
    set_valid(out, 0x37);
    out->buffers[1] = make_offsets(offset, N, is_large);
    out->buffers[2] = copy_bytes(bytes, strlen(bytes));
}

static void put_views(struct ArrowArray *out)
{
    uint8_t views[16 * N] = {0};
    for (int i = 0; i < N; i++)
    {
        int32_t n = name[i] != NULL ? (int32_t)strlen(name[i]) : 0;
        memcpy(views + 16 * i, &n, sizeof n);
        memcpy(views + 16 * i + 4, name[i] != NULL ? name[i] : "", (size_t)n);
    }
    init_node(out, N, 3, 0);
    set_valid(out, 0x37);
    out->buffers[1] = copy_bytes(views, sizeof views);
}

/* Makes a dictionary of the texts, with index i for row i. */
static void put_places(struct ArrowArray *out)
{
    int8_t places[N];
    for (int i = 0; i < N; i++)
        places[i] = (int8_t)i;
    init_node(out, N, 2, 0);
    out->buffers[1] = copy_bytes(places, sizeof places);
    out->dictionary = calloc(1, sizeof *out->dictionary);
    put_texts(out->dictionary, 0);
}

static void put_lists(struct ArrowArray *out, int is_fixed)
{
    int64_t offset[N + 1];
    float small[N * D];
    for (int i = 0; i <= N; i++)
        offset[i] = D * i;
    for (int i = 0; i < N * D; i++)
        small[i] = (float)vector[i / D][i % D];
    init_node(out, N, is_fixed ? 1 : 2, 1);
    init_node(out->children[0], (int64_t)N * D, 2, 0);
    if (!is_fixed)
        out->buffers[1] = make_offsets(offset, N, 0);
    out->children[0]->buffers[1] = is_fixed ? copy_bytes(small, sizeof small)
                                            : copy_bytes(vector, sizeof vector);
}

static void release_batch(struct ArrowArray *array)
{
    struct ArrowArray *places = array->children[3];
    places->dictionary->release(places->dictionary);
    free(places->dictionary);
    release_node(array);
}

static struct ArrowArray make_batch(void)
{
    struct ArrowArray out;
    double real[N];
    for (int i = 0; i < N; i++)
        real[i] = vector[i][0];
    init_node(&out, N, 1, N_COLUMNS);
    put_texts(out.children[0], 0);
    put_texts(out.children[1], 1);
    put_views(out.children[2]);
    put_places(out.children[3]);
    init_node(out.children[4], N, 2, 0);
    out.children[4]->buffers[1] = copy_bytes(number, sizeof number);
    put_lists(out.children[5], 1);
    put_lists(out.children[6], 0);
    init_node(out.children[7], N, 2, 0);
    out.children[7]->buffers[1] = copy_bytes(real, sizeof real);
    out.release = release_batch;
    return out;
}

static void make_columns(struct arrow_schema *s)
{
    static const char *const format[N_COLUMNS] = {"u", "U",    "vu", "c",
                                                  "i", "+w:2", "+l", "g"};
    struct ArrowSchema *top, *node[N_COLUMNS];
    memset(s, 0, sizeof *s);
    top = add_node(s, "+s", "");
    give_children(s, top, N_COLUMNS);
    for (int i = 0; i < N_COLUMNS; i++)
        node[i] = add_node(s, format[i], column_name[i]);
    give_children(s, node[5], 1);
    add_node(s, "f", "item");
    give_children(s, node[6], 1);
    add_node(s, "g", "item");
    node[3]->dictionary = node[0];
}

/* --- layers and joins -------------------------------------------------------
 */

static struct ogrjoin_settings *settings_of(const char *setting,
                                            const char *words, const char *side)
{
    struct ogrjoin_settings *s = ogrjoin_settings_new();
    must(ogrjoin_set_text(s, "op", "similar", &err));
    must(ogrjoin_set_text(s, setting, words, &err));
    if (strcmp(setting, "vector") == 0)
        must(ogrjoin_set_number(s, "max_difference", 1.5, &err));
    must(ogrjoin_set_text(s, "side", side, &err));
    return s;
}

/* change of each schema, or NULL */
static const struct schema_spoil *schema_spoil;

static int layer_of(const char *setting, const char *words, const char *side,
                    struct ArrowArray *batch, struct ogrjoin_layer **out)
{
    struct ogrjoin_settings *s = settings_of(setting, words, side);
    struct arrow_schema schema;
    int status;
    make_columns(&schema);
    if (schema_spoil != NULL)
        spoil_schema(&schema, schema_spoil);
    status =
        ogrjoin_layer_from_array(&schema.node[0], batch, NULL, s, out, &err);
    ck_assert_ptr_null(batch->release);
    ogrjoin_settings_free(s);
    return status;
}

/* Joins the layers, and writes for each pair the left and the right row as two
 * digits. Returns a status. */
static int join_layers(const char *setting, const char *words,
                       struct ogrjoin_layer *left, struct ogrjoin_layer *right,
                       char digits[100])
{
    struct ogrjoin_settings *s = settings_of(setting, words, "none");
    struct ogrjoin_index *index = NULL;
    struct ogrjoin_pairs *pairs = NULL;
    int status = ogrjoin_index_new(right, s, &index, &err);
    if (status == OGRJOIN_OK)
        status = ogrjoin_join(index, left, &pairs, &err);
    for (int64_t i = 0; status == OGRJOIN_OK && i < ogrjoin_pairs_count(pairs);
         i++)
        sprintf(digits + 3 * i, "%d%d ", (int)ogrjoin_pairs_left(pairs)[i],
                (int)ogrjoin_pairs_right(pairs)[i]);
    ogrjoin_pairs_free(pairs);
    ogrjoin_index_free(index);
    ogrjoin_settings_free(s);
    return status;
}

/* Makes points, to which texts or vectors can be added. */
static struct ogrjoin_layer *plain_layer(void)
{
    static const double zero[N] = {0};
    static const struct ogrjoin_arrays arrays = {.size = sizeof arrays,
                                                 .n_features = N,
                                                 .n_parts = N,
                                                 .n_rings = N,
                                                 .n_vertices = N,
                                                 .x = zero,
                                                 .y = zero};
    struct ogrjoin_layer *out = NULL;
    must(ogrjoin_layer_from_arrays(&arrays, &out, &err));
    return out;
}

static const struct compared
{
    const char *setting, *words;
    /* one or two columns that are concatenated; -1: no second one */
    int column[2];
} compared[] = {
    {"similar", "u:0.3", {0, -1}},
    {"similar", "U:0.3", {0, -1}},
    {"similar", "u=vu:0.3", {0, -1}},
    {"similar", "dictionary=U:0.3", {0, -1}},
    {"similar", "vu+whole=U+whole:0.3", {0, 4}},
    {"similar", "\"u\":0.3", {0, -1}},
    {"vector", "fixed", {5, -1}},
    {"vector", "fixed=list", {5, -1}},
    {"vector", "real+whole:0.25", {7, 4}},
    {"vector", "real:1e0", {7, -1}},
};

static void give_texts(struct ogrjoin_layer *layer, const struct compared *c,
                       int64_t offset[N + 1], char bytes[200])
{
    char *at = bytes;
    for (int i = 0; i < N; i++)
    {
        offset[i] = at - bytes;
        at += sprintf(at, "%s", name[i] != NULL ? name[i] : "");
        if (c->column[1] >= 0)
            at += sprintf(at, " %d", number[i]);
    }
    offset[N] = at - bytes;
    must(ogrjoin_layer_add_text(layer, offset, bytes, &err));
}

static void give_vectors(struct ogrjoin_layer *layer, const struct compared *c,
                         int64_t offset[N + 1], double value[N * D])
{
    int n = 0;
    for (int i = 0; i < N; i++)
    {
        offset[i] = n;
        value[n++] = vector[i][0];
        if (c->column[0] == 5)
            value[n++] = vector[i][1];
        else if (c->column[1] >= 0)
            value[n++] = number[i];
    }
    offset[N] = n;
    must(ogrjoin_layer_set_vectors(layer, offset, value, &err));
}

TEST_LOOP(unit_columns, 0, sizeof compared / sizeof *compared)
{
    const struct compared *c = &compared[_i];
    struct ogrjoin_layer *layer[2] = {NULL, NULL}, *plain = plain_layer();
    struct ArrowArray batch;
    char digits[100] = "", expected[100] = "";
    int64_t offset[N + 1];
    char bytes[200];
    double value[N * D];
    for (int i = 0; i < 2; i++)
    {
        batch = make_batch();
        must(layer_of(c->setting, c->words, i == 0 ? "left" : "right", &batch,
                      &layer[i]));
    }
    if (strcmp(c->setting, "similar") == 0)
        give_texts(plain, c, offset, bytes);
    else
        give_vectors(plain, c, offset, value);
    must(join_layers(c->setting, c->words, layer[0], layer[1], digits));
    must(join_layers(c->setting, c->words, plain, plain, expected));
    ck_assert_str_eq(digits, expected);
    ck_assert_uint_gt(strlen(digits), 3 * 4);
    for (int i = 0; i < 2; i++)
        ogrjoin_layer_free(layer[i]);
    ogrjoin_layer_free(plain);
}

/* --- streams ----------------------------------------------------------------
 */

struct batch_stream
{
    int n_left;
};

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    static struct arrow_schema schema;
    (void)stream;
    make_columns(&schema);
    *out = schema.node[0];
    return 0;
}

/* Returns each batch without its first row. */
static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct batch_stream *self = stream->private_data;
    memset(out, 0, sizeof *out);
    if (self->n_left-- > 0)
    {
        *out = make_batch();
        out->offset = 1;
        out->length = N - 1;
    }
    return 0;
}

static const char *get_last_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return NULL;
}

static void release_stream(struct ArrowArrayStream *stream)
{
    stream->release = NULL;
}

/* Two batches give the pairs of one layer. Row numbers of the left side count
 * across the batches. */
TEST_LOOP(unit_streams, 0, sizeof compared / sizeof *compared)
{
    const struct compared *c = &compared[_i];
    struct batch_stream batches = {2};
    struct ArrowArrayStream in = {get_schema, get_next, get_last_error,
                                  release_stream, &batches};
    struct ArrowArrayStream out;
    struct ogrjoin_settings *s = settings_of(c->setting, c->words, "left");
    struct ogrjoin_layer *right = NULL, *left = NULL;
    struct ogrjoin_index *index = NULL;
    struct ArrowArray batch = make_batch();
    char digits[100] = "", streamed[100] = "", *at = streamed;
    must(layer_of(c->setting, c->words, "right", &batch, &right));
    must(ogrjoin_layer_from_stream(&in, NULL, s, &left, &err));
    ck_assert_int_eq(ogrjoin_layer_count(left), 2 * (N - 1));
    must(join_layers(c->setting, c->words, left, right, digits));
    must(ogrjoin_index_new(right, s, &index, &err));
    batches.n_left = 2;
    in.release = release_stream;
    must(ogrjoin_join_stream(index, &in, NULL, &out, &err));
    while (out.get_next(&out, &batch) == 0 && batch.release != NULL)
    {
        const int64_t *l = batch.children[0]->buffers[1];
        const int64_t *r = batch.children[1]->buffers[1];
        for (int64_t i = 0; i < batch.length; i++)
            at += sprintf(at, "%d%d ", (int)l[i], (int)r[i]);
        batch.release(&batch);
    }
    ck_assert_ptr_null(out.get_last_error(&out));
    out.release(&out);
    ck_assert_str_eq(digits, streamed);
    ck_assert_uint_gt(strlen(digits), 3 * 5);
    ogrjoin_index_free(index);
    ogrjoin_layer_free(left);
    ogrjoin_layer_free(right);
    ogrjoin_settings_free(s);
}

/* --- invalid columns ------------------------------------------------------ */

static void fails(int status, int expected, const char *text)
{
    ck_assert_msg(status == expected && strstr(err.message, text) != NULL,
                  "%d %s", status, err.message);
}

static struct ArrowSchema whole = {.format = "i"}, no_format, *no_children[1];

#define NO_TEXTS OGRJOIN_ERR_UNSUPPORTED, "no texts"
#define NO_NUMBERS OGRJOIN_ERR_UNSUPPORTED, "no numbers"
#define NO_LISTS OGRJOIN_ERR_UNSUPPORTED, "no lists of numbers"
#define DIFFERS OGRJOIN_ERR_DATA, "does not match its schema"
#define OFFSETS OGRJOIN_ERR_DATA, "offsets"
#define READ(pairs) OGRJOIN_OK, pairs

/* Expected pairs if the 32-bit integers 1 to 6 are read as bytes, or as 16-bit
 * integers. */
#define BYTES "00 11 12 13 15 21 22 23 25 31 32 33 35 44 51 52 53 55 "
#define SHORTS "00 11 13 15 22 31 33 35 44 51 53 55 "

/* Invalid columns. Node 0 of the schema is the struct, nodes 1 to 8 are its
 * columns, and nodes 9 and 10 the values of lists. */
static const struct bad_columns
{
    /* text of the setting similar if it contains a similarity, else of
     * vector */
    const char *words;
    struct schema_spoil schema;
    struct array_spoil array;
    int status;
    /* a part of the error message, or all pairs of the self join if status is
     * OK */
    const char *text;
} bad_columns[] = {
    {"x:1", {0}, {0}, OGRJOIN_ERR_ARG, "no column \"x\""},
    {"vu:1", SCHEMA(1, name, NULL), {0}, READ("00 22 44 55 ")},
    {"real:1", {0}, {0}, NO_TEXTS},
    {"list:1", {0}, {0}, NO_TEXTS},
    {"whole:1", SCHEMA(5, format, ""), {0}, NO_TEXTS},
    {"dictionary:1", SCHEMA(4, format, "g"), {0}, NO_TEXTS},
    {"u:1", SCHEMA(1, dictionary, &no_format), {0}, NO_TEXTS},
    {"u:1", SCHEMA(1, dictionary, &whole), {0}, NO_TEXTS},
    {"whole+list", {0}, {0}, NO_NUMBERS},
    {"dictionary", {0}, {0}, NO_NUMBERS},
    {"real", SCHEMA(8, dictionary, &no_format), {0}, NO_NUMBERS},
    {"list", SCHEMA(7, format, "+"), {0}, NO_NUMBERS},
    {"list", SCHEMA(7, format, "+m"), {0}, NO_NUMBERS},
    {"list", SCHEMA(7, n_children, NULL), {0}, NO_LISTS},
    {"list", SCHEMA(7, children, NULL), {0}, NO_LISTS},
    {"list", SCHEMA(7, children, no_children), {0}, NO_LISTS},
    {"list", SCHEMA(10, format, NULL), {0}, NO_LISTS},
    {"list", SCHEMA(10, format, "u"), {0}, NO_LISTS},
    {"list", SCHEMA(10, dictionary, &whole), {0}, NO_LISTS},
    {"fixed", SCHEMA(6, format, "+w2"), {0}, NO_LISTS},
    {"fixed", SCHEMA(6, format, "+w:-2"), {0}, NO_LISTS},
    {"fixed", SCHEMA(6, format, "+w:2x"), {0}, NO_LISTS},
    {"u:1", {0}, SPOIL("0", dictionary, 1), DIFFERS},
    {"u:1", {0}, SPOIL("0", n_buffers, 2), DIFFERS},
    {"u:1", {0}, {"0", BUFFER, 2, 0}, OFFSETS},
    {"u:1", {0}, {"0", NUMBER, 2, 1 << 30}, OFFSETS},
    {"whole:1", {0}, SPOIL("4", n_buffers, 1), DIFFERS},
    {"whole:1", {0}, {"4", BUFFER, 1, 0}, DIFFERS},
    {"dictionary:1", {0}, SPOIL("3", dictionary, 0), DIFFERS},
    {"dictionary:1", {0}, SPOIL("3d", n_buffers, 2), DIFFERS},
    {"dictionary:1", {0}, {"3", NUMBER, 0, 6}, DIFFERS},
    {"dictionary:1", {0}, {"3", NUMBER, 0, -1}, DIFFERS},
    {"dictionary:1", {0}, {"3d", NULL_BIT, 0, 0}, READ("22 44 55 ")},
    {"u", {0}, {"0", NUMBER, 2, 1 << 30}, OFFSETS},
    {"fixed", {0}, SPOIL("5", n_children, 0), DIFFERS},
    {"fixed", {0}, {"5", CHILD, 0, 0}, DIFFERS},
    {"fixed", {0}, SPOIL("50", length, 11), DIFFERS},
    {"list", {0}, SPOIL("6", n_buffers, 1), DIFFERS},
    {"list", {0}, {"6", NUMBER, 2, 0}, OFFSETS},
    {"list", {0}, {"60", BUFFER, 1, 0}, DIFFERS},
    {"list", {0}, {"60", NULL_BIT, 1, 0}, READ("11 15 12 22 21 44 55 51 ")},
    {"whole:1", SCHEMA(5, format, "C"), {0}, READ(BYTES)},
    {"whole:1", SCHEMA(5, format, "s"), {0}, READ(SHORTS)},
    {"whole:1", SCHEMA(5, format, "S"), {0}, READ(SHORTS)},
    {"whole:1", SCHEMA(5, format, "I"), {0}, READ("00 11 22 33 44 55 ")},
    {"real", SCHEMA(8, format, "L"), {0}, READ("00 05 11 22 33 44 50 55 ")},
    {"real:1", SCHEMA(8, format, "L"), {0}, READ("00 05 11 22 33 44 50 55 ")},
};

TEST_LOOP(unit_refused, 0, sizeof bad_columns / sizeof *bad_columns)
{
    const struct bad_columns *bad = &bad_columns[_i];
    struct ogrjoin_layer *layer = NULL;
    struct ArrowArray batch = make_batch();
    const char *setting = strchr(bad->words, ':') ? "similar" : "vector";
    char digits[200] = "";
    int status;
    spoil_array(&batch, &bad->array);
    schema_spoil = &bad->schema;
    status = layer_of(setting, bad->words, "left", &batch, &layer);
    schema_spoil = NULL;
    if (bad->status != OGRJOIN_OK)
    {
        fails(status, bad->status, bad->text);
        ck_assert_msg(strncmp(err.message, "left side: ", 11) == 0, "%s",
                      err.message);
    }
    else
    {
        must(status);
        must(join_layers(setting, bad->words, layer, layer, digits));
        ck_assert_str_eq(digits, bad->text);
    }
    ogrjoin_layer_free(layer);
}

/* Texts and vectors that the caller adds to a layer, and streams that cannot be
 * joined. */
TEST(unit_given_columns)
{
    static const int64_t down[N + 1] = {0, 3, 2, 4, 5, 6, 7},
                                  below[N + 1] = {-1, 0, 0, 0, 0, 0, 0},
                                  threes[N + 1] = {0, 0, 3, 6, 9, 12, 15},
                                  many[N + 1] = {0,    0,    1025, 1025,
                                                 1025, 1025, 1025};
    static const double numbers[1025];
    struct ogrjoin_layer *layer = plain_layer(), *one_text = plain_layer();
    struct ogrjoin_index *index = NULL;
    struct ogrjoin_pairs *pairs = NULL;
    struct ogrjoin_settings *s = settings_of("similar", "1,1/2", "none");
    struct ogrjoin_settings *named =
        settings_of("similar", "missing:1", "none");
    struct ogrjoin_index *of_named = NULL;
    struct batch_stream batches = {0};
    struct ArrowArrayStream in = {get_schema, get_next, get_last_error,
                                  release_stream, &batches};
    struct ArrowArrayStream out;
    fails(join_layers("vector", "u", layer, layer, NULL), OGRJOIN_ERR_ARG,
          "right side: the setting vector needs numbers in both layers");
    fails(ogrjoin_layer_set_vectors(layer, down, numbers, &err),
          OGRJOIN_ERR_ARG,
          "offsets of vectors must be 0 or more and never decrease: offset ");
    must(ogrjoin_layer_set_vectors(layer, threes, numbers, &err));
    fails(join_layers("vector", "a+b", layer, layer, NULL), OGRJOIN_ERR_ARG,
          "names 2 columns, but rows have 3 numbers");
    must(ogrjoin_layer_set_vectors(layer, many, numbers, &err));
    fails(join_layers("vector", "a", layer, layer, NULL), OGRJOIN_ERR_DATA,
          "the list of row 1 has more than 1024");
    fails(ogrjoin_layer_add_text(layer, below, "", &err), OGRJOIN_ERR_ARG,
          "offsets of texts must be 0 or more and never decrease: offset ");
    for (int i = 0; i < 2; i++)
        must(ogrjoin_layer_add_text(layer, threes, "abcabdabeabfabg", &err));
    must(ogrjoin_layer_add_text(one_text, threes, "abcabdabeabfabg", &err));
    must(ogrjoin_index_new(layer, s, &index, &err));
    must(ogrjoin_join(index, layer, &pairs, &err));
    ck_assert_int_eq(ogrjoin_pairs_count(pairs), N - 1);
    ck_assert(ogrjoin_pairs_value(pairs, "similarity_2")[0] == 1);
    ck_assert_ptr_null(ogrjoin_pairs_value(pairs, "similarity_1"));
    ck_assert_ptr_null(ogrjoin_pairs_value(pairs, "similarity_3"));
    ogrjoin_pairs_free(pairs);
    pairs = NULL;
    fails(ogrjoin_join(index, one_text, &pairs, &err), OGRJOIN_ERR_ARG,
          "left side: a layer must have a column of texts for each condition "
          "on texts (similar): it has 1, not 2");
    must(ogrjoin_index_new(one_text, named, &of_named, &err));
    fails(ogrjoin_join_stream(of_named, &in, NULL, &out, &err), OGRJOIN_ERR_ARG,
          "left side: similar: the Arrow schema has no column \"missing\"");
    in.release = release_stream;
    ogrjoin_index_free(of_named);
    ogrjoin_settings_free(named);
    ogrjoin_layer_free(one_text);
    fails(ogrjoin_join_stream(index, &in, NULL, &out, &err),
          OGRJOIN_ERR_UNSUPPORTED, "the names of the columns");
    ogrjoin_index_free(index);
    must(ogrjoin_set_number(s, "one_to_one", 1, &err));
    must(ogrjoin_index_new(layer, s, &index, &err));
    in.release = release_stream;
    fails(ogrjoin_join_stream(index, &in, NULL, &out, &err),
          OGRJOIN_ERR_UNSUPPORTED, "one_to_one needs");
    for (int i = 2; i < 8; i++)
        must(ogrjoin_layer_add_text(layer, threes, "abcabdabeabfabg", &err));
    fails(ogrjoin_layer_add_text(layer, threes, "", &err), OGRJOIN_ERR_LIMIT,
          "at most 8 texts");
    ogrjoin_pairs_free(pairs);
    ogrjoin_index_free(index);
    ogrjoin_layer_free(layer);
    layer = plain_layer();
    must(ogrjoin_index_new(layer, NULL, &index, &err));
    ogrjoin_index_free(index);
    ogrjoin_layer_free(layer);
    ogrjoin_settings_free(s);
}

/* Returns the number of rows with a geometry: each row is nearest to itself or
 * to an equal row. */
static int64_t count_geometries(struct ogrjoin_layer *layer)
{
    struct ogrjoin_settings *settings = ogrjoin_settings_new();
    struct ogrjoin_index *index = NULL;
    struct ogrjoin_pairs *pairs = NULL;
    int64_t n;
    must(ogrjoin_set_text(settings, "backend", "cpu", &err));
    must(ogrjoin_set_number(settings, "max_distance", 0, &err));
    must(ogrjoin_index_new(layer, settings, &index, &err));
    must(ogrjoin_join(index, layer, &pairs, &err));
    n = ogrjoin_pairs_count(pairs);
    ogrjoin_pairs_free(pairs);
    ogrjoin_index_free(index);
    ogrjoin_settings_free(settings);
    return n;
}

/* --- geometries --------------------------------------------------------------
 */

struct bad_arrow
{
    int line; /* line number in this file */
    enum arrow_form form;
    enum oj_part_kind kind;
    /* letters: m: multi-geometries; c: a column of a struct, read by its name
     * (c alone) or found without a name (c?); u: the schema has no name */
    const char *traits;
    struct schema_spoil schema;
    struct array_spoil array;
    int status;
    const char *text; /* expected part of the message */
    int64_t n;        /* if OGRJOIN_OK: number of rows with geometries */
};

static int read_bad_arrow(const struct bad_arrow *bad,
                          struct ogrjoin_layer **layer)
{
    int is_column = strchr(bad->traits, 'c') != NULL;
    struct arrow_options options = {
        .form = bad->form, .n_ordinates = 2, .is_column = is_column};
    struct arrow_rows rows;
    struct arrow_schema schema;
    struct ArrowArray array;
    int status;
    random_state = 11;
    make_rows(&rows, bad->kind, strchr(bad->traits, 'm') != NULL, G, 1);
    make_schema(&rows, &options, &schema);
    if (strchr(bad->traits, 'u') != NULL)
        schema.node[0].name = NULL;
    spoil_schema(&schema, &bad->schema);
    make_array(&rows, &options, &array);
    spoil_array(&array, &bad->array);
    status = ogrjoin_layer_from_array(
        &schema.node[0], &array, strcmp(bad->traits, "c") == 0 ? "shape" : NULL,
        NULL, layer, &err);
    ck_assert_ptr_null(array.release);
    return status;
}

#define POINTS __LINE__, FORM_SEPARATED, OJ_PART_POINT, ""
#define LINES __LINE__, FORM_SEPARATED, OJ_PART_LINE, ""
#define COLUMN __LINE__, FORM_SEPARATED, OJ_PART_LINE, "c"
#define PAIRED __LINE__, FORM_INTERLEAVED, OJ_PART_LINE, ""
#define POLYGONS __LINE__, FORM_SEPARATED, OJ_PART_POLYGON, ""
#define MULTI __LINE__, FORM_SEPARATED, OJ_PART_POLYGON, "m"
#define WKB __LINE__, FORM_BINARY, OJ_PART_LINE, ""
#define NAMELESS __LINE__, FORM_BINARY, OJ_PART_LINE, "u"
#define WKB_COLUMN __LINE__, FORM_BINARY, OJ_PART_LINE, "c"
#define ANY_COLUMN __LINE__, FORM_BINARY, OJ_PART_LINE, "c?"
#define WKB_POLYGONS __LINE__, FORM_BINARY, OJ_PART_POLYGON, ""
#define WKB_MULTI __LINE__, FORM_BINARY, OJ_PART_LINE, "m"
#define VIEWS __LINE__, FORM_VIEW, OJ_PART_LINE, ""

#define FORMAT(format)                                                         \
    OGRJOIN_ERR_UNSUPPORTED,                                                   \
        "column shape: geometries in the Arrow format \"" format "\"", 0
#define ROWS(n) OGRJOIN_OK, "", n
#define UNMARKED OGRJOIN_ERR_ARG, "no column is marked", 0
#define SCHEMA_IS_BROKEN OGRJOIN_ERR_DATA, "the Arrow schema is broken", 0
#define BAD_VIEW                                                               \
    OGRJOIN_ERR_DATA,                                                          \
        "a view of an Arrow array lies outside of its data buffers", 0
#define NULL_PART OGRJOIN_ERR_DATA, "of a geometry is NULL", 0
#define ROW_0 OGRJOIN_ERR_DATA, "row 0: broken WKB", 0
#define MORE_BYTES OGRJOIN_ERR_DATA, "bytes follow after its end", 0
#define NOT_READ OGRJOIN_ERR_DATA, "row 0: ", 0
#define NO_COLUMN OGRJOIN_ERR_ARG, "no column \"shape\"", 0
#define NO_NAME OGRJOIN_ERR_UNSUPPORTED, "column geometry:", 0

/* Arrow metadata with the key of the extension name, after another key. */
#define KEY "\24\0\0\0ARROW:extension:name"
#define OTHER_KEY "\24\0\0\0ARROW:extension:nome\1\0\0\0x"
#define TWO_PAIRS "\2\0\0\0" OTHER_KEY KEY "\16\0\0\0geoarrow.point"
#define META(text) SCHEMA(0, metadata, text)

/* Invalid arrays. The nodes of a schema are the lists, then the struct or list
 * of coordinates, then x and y. If the geometries are a column, node 0 is the
 * struct around it, and node 1 another column. */
static const struct bad_arrow bad_arrows[] = {
    {LINES, SCHEMA(0, release, NULL), {0}, SCHEMA_IS_BROKEN},
    {LINES, SCHEMA(0, format, NULL), {0}, SCHEMA_IS_BROKEN},
    {LINES, SCHEMA(0, n_children, (intptr_t)-1), {0}, SCHEMA_IS_BROKEN},
    {LINES, SCHEMA(0, children, NULL), {0}, SCHEMA_IS_BROKEN},
    {LINES, SCHEMA(0, children, no_children), {0}, SCHEMA_IS_BROKEN},
    {LINES, SCHEMA(1, format, NULL), {0}, SCHEMA_IS_BROKEN},
    {LINES, SCHEMA(1, release, NULL), {0}, SCHEMA_IS_BROKEN},
    {LINES, SCHEMA(2, format, NULL), {0}, SCHEMA_IS_BROKEN},
    {MULTI, SCHEMA(1, release, NULL), {0}, SCHEMA_IS_BROKEN},
    {LINES, SCHEMA(0, n_children, NULL), {0}, FORMAT("+l")},
    {LINES, SCHEMA(0, format, "+w:2"), {0}, FORMAT("+w:2")},
    {MULTI, SCHEMA(1, format, "u"), {0}, FORMAT("u")},
    {LINES, SCHEMA(1, n_children, (intptr_t)1), {0}, FORMAT("+s")},
    {LINES, SCHEMA(2, format, "f"), {0}, FORMAT("+s")},
    {LINES, SCHEMA(3, format, "f"), {0}, FORMAT("+s")},
    {LINES, SCHEMA(2, name, "lon"), {0}, FORMAT("+s")},
    {LINES, SCHEMA(3, name, "lat"), {0}, FORMAT("+s")},
    {LINES, SCHEMA(2, name, NULL), {0}, ROWS(G)},
    {LINES, SCHEMA(3, name, NULL), {0}, ROWS(G)},
    {PAIRED, SCHEMA(1, format, "+w:1"), {0}, FORMAT("+w:1")},
    {PAIRED, SCHEMA(1, format, "+w:5"), {0}, FORMAT("+w:5")},
    {PAIRED, SCHEMA(1, format, "+w:22"), {0}, FORMAT("+w:22")},
    {PAIRED, SCHEMA(1, n_children, NULL), {0}, FORMAT("+w:2")},
    {PAIRED, SCHEMA(2, format, "f"), {0}, FORMAT("+w:2")},
    {WKB, SCHEMA(0, dictionary, &no_format), {0}, FORMAT("dictionary")},
    {NAMELESS, SCHEMA(0, format, "i"), {0}, NO_NAME},
    {COLUMN, SCHEMA(1, name, NULL), {0}, ROWS(G)},
    {COLUMN, SCHEMA(1, name, "shape"), {0}, FORMAT("l")},
    {ANY_COLUMN, SCHEMA(1, format, "z"), {0}, UNMARKED},
    {COLUMN, SCHEMA(2, name, "form"), {0}, NO_COLUMN},
    {POINTS, META("\0\0\0\0"), {0}, UNMARKED},
    {POINTS, META("\1\0\0\0\377\377\377\377"), {0}, UNMARKED},
    {POINTS, META("\1\0\0\0" KEY "\377\377\377\377"), {0}, UNMARKED},
    {POINTS, META("\1\0\0\0" KEY "\4\0\0\0line"), {0}, UNMARKED},
    {POINTS, META(TWO_PAIRS), {0}, ROWS(G)},
    {WKB, META("\1\0\0\0" KEY "\14\0\0\0geoarrow.wkb"), {0}, ROWS(G)},

    {LINES, {0}, SPOIL("", length, -1), DIFFERS, 0},
    {LINES, {0}, SPOIL("", length, 0), ROWS(0)},
    {LINES, {0}, SPOIL("", offset, -1), DIFFERS, 0},
    {LINES, {0}, SPOIL("", offset, INT64_MAX - G), DIFFERS, 0},
    {LINES, {0}, SPOIL("", n_buffers, 1), DIFFERS, 0},
    {LINES, {0}, SPOIL("", buffers, 0), DIFFERS, 0},
    {LINES, {0}, {"", BUFFER, 1, 0}, DIFFERS, 0},
    {LINES, {0}, SPOIL("", n_children, 0), DIFFERS, 0},
    {LINES, {0}, SPOIL("", children, 0), DIFFERS, 0},
    {LINES, {0}, {"", CHILD, 0, 0}, DIFFERS, 0},
    {LINES, {0}, SPOIL("", dictionary, 1), DIFFERS, 0},
    {LINES, {0}, SPOIL("0", n_children, 1), DIFFERS, 0},
    {LINES, {0}, SPOIL("0", n_children, 5), DIFFERS, 0},
    {LINES, {0}, SPOIL("0", buffers, 0), DIFFERS, 0},
    {LINES, {0}, {"0", CHILD, 0, 0}, DIFFERS, 0},
    {LINES, {0}, {"0", CHILD, 1, 0}, DIFFERS, 0},
    {LINES, {0}, SPOIL("00", length, 1), DIFFERS, 0},
    {LINES, {0}, {"01", BUFFER, 1, 0}, DIFFERS, 0},
    {PAIRED, {0}, SPOIL("0", length, INT64_MAX / 3), DIFFERS, 0},
    {PAIRED, {0}, SPOIL("0", n_children, 0), DIFFERS, 0},
    {PAIRED, {0}, SPOIL("00", length, 3), DIFFERS, 0},
    {COLUMN, {0}, SPOIL("", n_children, 1), DIFFERS, 0},
    {COLUMN, {0}, {"", CHILD, 1, 0}, DIFFERS, 0},
    {COLUMN, {0}, SPOIL("", buffers, 0), DIFFERS, 0},
    {COLUMN, {0}, SPOIL("1", length, G - 1), DIFFERS, 0},
    {WKB, {0}, SPOIL("", n_buffers, 2), DIFFERS, 0},
    {WKB, {0}, {"", BUFFER, 1, 0}, DIFFERS, 0},
    {VIEWS, {0}, {"", BUFFER, 1, 0}, DIFFERS, 0},
    {VIEWS, {0}, {"", BUFFER, 4, 0}, DIFFERS, 0},

    {LINES, {0}, {"", NUMBER, 0, -1}, OFFSETS, 0},
    {LINES, {0}, {"", NUMBER, 2, 0}, OFFSETS, 0},
    {LINES, {0}, {"", NUMBER, G, 1 << 30}, OFFSETS, 0},
    {POLYGONS, {0}, {"0", NUMBER, 1, 1 << 30}, OFFSETS, 0},
    {WKB, {0}, {"", NUMBER, 2, -4}, OFFSETS, 0},
    {WKB, {0}, {"", NUMBER, 2, 1 << 30}, OFFSETS, 0},
    {WKB, {0}, {"", BUFFER, 2, 0}, OFFSETS, 0},
    {VIEWS, {0}, {"", BUFFER, 2, 0}, BAD_VIEW},
    {VIEWS, {0}, {"", NUMBER, 12, -5}, BAD_VIEW},
    {VIEWS, {0}, {"", NUMBER, 12, 1 << 20}, BAD_VIEW},
    {VIEWS, {0}, {"", NUMBER, 14, 9}, BAD_VIEW},
    {VIEWS, {0}, {"", NUMBER, 14, -1}, BAD_VIEW},
    {VIEWS, {0}, {"", NUMBER, 15, -1}, BAD_VIEW},

    {LINES, {0}, {"", NULL_BIT, 3, 0}, ROWS(G - 1)},
    {COLUMN, {0}, {"", NULL_BIT, 3, 0}, ROWS(G - 1)},
    {LINES, {0}, {"00", NULL_BIT, -1, 0}, ROWS(G)},
    {LINES, {0}, {"00", NULL_BIT, 3, 0}, NULL_PART},
    {LINES, {0}, {"0", NULL_BIT, 3, 0}, NULL_PART},
    {PAIRED, {0}, {"00", NULL_BIT, 3, 0}, NULL_PART},
    {MULTI, {0}, {"0", NULL_BIT, 0, 0}, NULL_PART},
    {LINES, {0}, {"", NUMBER, 1, 0}, ROWS(G - 1)},
    {POLYGONS, {0}, {"", NUMBER, 1, 0}, ROWS(G - 1)},
    {POLYGONS, {0}, {"0", NUMBER, 1, 1}, ROWS(G)},
    {POLYGONS, {0}, {"000", NUMBER, 1, 0x40590000}, ROWS(G)},
    {POLYGONS, {0}, {"001", NUMBER, 1, 0x40590000}, ROWS(G)},
    {WKB, {0}, {"", BYTE, 0, 2}, ROW_0},
    {WKB, {0}, {"", BYTE, 1, 77}, NOT_READ},
    {WKB, {0}, {"", BYTE, 5, 0}, MORE_BYTES},
    {WKB, {0}, {"", BYTE, 8, 1}, ROW_0},
    {WKB, {0}, {"", NUMBER, 1, 3}, ROW_0},
    {WKB, {0}, {"", NUMBER, 1, 7}, ROW_0},
    {WKB_POLYGONS, {0}, {"", BYTE, 5, 0}, ROW_0},
    {WKB_POLYGONS, {0}, {"", NUMBER, 1, 7}, ROW_0},
    {WKB_POLYGONS, {0}, {"", BYTE, 20, 9}, ROWS(G)},
    {WKB_POLYGONS, {0}, {"", BYTE, 28, 9}, ROWS(G)},
    {WKB_MULTI, {0}, {"", NUMBER, 1, 7}, ROW_0},
    {WKB_MULTI, {0}, {"", BYTE, 5, 0}, ROW_0},
    {WKB_MULTI, {0}, {"", BYTE, 9, 2}, ROW_0},
    {WKB_MULTI, {0}, {"", BYTE, 10, 3}, ROW_0},
};

TEST_LOOP(bad_arrow, 0, sizeof bad_arrows / sizeof *bad_arrows)
{
    const struct bad_arrow *bad = &bad_arrows[_i];
    struct ogrjoin_layer *layer = NULL;
    int status = read_bad_arrow(bad, &layer);
    int64_t n = status == OGRJOIN_OK ? count_geometries(layer) : 0;
    ck_assert_msg(status == bad->status && n == bad->n &&
                      strstr(err.message, bad->text) != NULL,
                  "line %d: %d %d %s", bad->line, status, (int)n, err.message);
    ck_assert(status == OGRJOIN_OK || (err.status == status && layer == NULL));
    ogrjoin_layer_free(layer);
}

/* Points in several slices, and structures that are no schema. */
TEST(many_rows)
{
    static const struct arrow_rows points = {.kind = OJ_PART_POINT};
    static const struct arrow_options pairs = {.form = FORM_INTERLEAVED,
                                               .n_ordinates = 2};
    struct ogrjoin_layer *layer = NULL;
    struct arrow_schema schema;
    struct ArrowArray array;
    make_schema(&points, &pairs, &schema);
    init_node(&array, 5000, 1, 1);
    init_node(array.children[0], 10000, 2, 0);
    array.children[0]->buffers[1] = calloc(10000, sizeof(double));
    must(ogrjoin_layer_from_array(&schema.node[0], &array, NULL, NULL, &layer,
                                  &err));
    ck_assert_int_eq(count_geometries(layer), 5000);
    ogrjoin_layer_free(layer);
    make_array(&points, &pairs, &array);
    ck_assert_int_eq(
        ogrjoin_layer_from_array(NULL, &array, NULL, NULL, &layer, NULL),
        OGRJOIN_ERR_DATA);
    ck_assert_ptr_null(array.release);
}

/* --- random ones -----------------------------------------------------------
 */

/* Sets the length or the offset of the array to a random, mostly wrong value.
 */
static void spoil_counts(struct ArrowArray *array)
{
    static const int64_t lengths[] = {-1, 0, 1, N - 1},
                         offsets[] = {-1, INT64_MAX};
    if (pick(2) == 0)
        array->length = lengths[pick(4)];
    else
        array->offset = offsets[pick(2)];
}

/* Flips a random bit of an offset, view or index, and spoils some lengths and
 * offsets of arrays. Buffers keep their size, because Arrow does not store it,
 * and so the reader cannot check it. */
static void spoil(struct ArrowArray *batch)
{
    static const int with_offsets[] = {2, 3, 6};
    struct ArrowArray *column = batch->children[with_offsets[pick(3)]];
    ((uint8_t *)(uintptr_t)column->buffers[1])[pick(N)] ^=
        (uint8_t)(1 << pick(8));
    if (pick(3) == 0)
        spoil_counts(batch);
    if (pick(3) == 0)
        spoil_counts(batch->children[pick(N_COLUMNS)]);
    if (pick(6) == 0)
        spoil_counts(batch->children[5 + pick(2)]->children[0]);
    if (pick(6) == 0)
        spoil_counts(batch->children[3]->dictionary);
}

TEST(degenerate_arrays)
{
    int n_refused = 0;
    random_state = 5;
    for (int i = 0; i < 20000; i++)
    {
        const struct compared *c =
            &compared[pick((int)(sizeof compared / sizeof *compared))];
        struct ArrowArray batch = make_batch();
        struct ogrjoin_layer *layer = NULL;
        spoil(&batch);
        n_refused += layer_of(c->setting, c->words, "left", &batch, &layer) !=
                     OGRJOIN_OK;
        ogrjoin_layer_free(layer);
    }
    ck_assert_int_gt(n_refused, 2000);
    ck_assert_int_lt(n_refused, 19000);
}

TEST_LOOP(memory, 0, sizeof compared / sizeof *compared)
{
    const struct compared *c = &compared[_i];
    int status = OGRJOIN_ERR_NOMEM;
    for (int n = 1; status != OGRJOIN_OK; n++)
    {
        struct ogrjoin_settings *s = ogrjoin_settings_new();
        struct arrow_schema schema;
        struct ArrowArray batch = make_batch();
        struct ogrjoin_layer *layer = NULL;
        struct ogrjoin_index *index = NULL;
        struct ogrjoin_pairs *pairs = NULL;
        make_columns(&schema);
        must(ogrjoin_set_text(s, "op", "similar", &err));
        must(ogrjoin_set_text(s, "side", "right", &err));
        must(ogrjoin_set_number(s, "max_difference", 1.5, &err));
        (void)oj_alloc_fail_at(n);
        status = ogrjoin_set_text(s, c->setting, c->words, &err);
        if (status == OGRJOIN_OK)
            status = ogrjoin_layer_from_array(&schema.node[0], &batch, NULL, s,
                                              &layer, &err);
        if (status == OGRJOIN_OK)
            status = ogrjoin_index_new(layer, s, &index, &err);
        if (status == OGRJOIN_OK)
            status = ogrjoin_join(index, layer, &pairs, &err);
        (void)oj_alloc_fail_at(0);
        ck_assert(status == OGRJOIN_OK || status == OGRJOIN_ERR_NOMEM);
        ck_assert_int_lt(n, 1000);
        if (batch.release != NULL)
            batch.release(&batch);
        ogrjoin_pairs_free(pairs);
        ogrjoin_index_free(index);
        ogrjoin_layer_free(layer);
        ogrjoin_settings_free(s);
    }
}

int main(void)
{
    tests_open("api_columns");
    return tests_run();
}
