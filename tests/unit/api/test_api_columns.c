/* Kinds: unit, degenerate, memory. Texts and vectors out of Arrow columns of
 * every format, alone and in streams, are those of plain arrays; what is broken
 * is said, whatever bytes lie in offsets, views, places and counts. */
#include "../../../algs/ogrjoin.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../run_tests.h"

#include "arrow_rows.h"

#include <math.h>

enum
{
    N = 6, /* rows of a side */
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

/* Places in the texts themselves, backwards. */
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

static int layer_of(const char *setting, const char *words, const char *side,
                    struct ArrowArray *batch, struct ogrjoin_layer **out)
{
    struct ogrjoin_settings *s = settings_of(setting, words, side);
    struct arrow_schema schema;
    int status;
    make_columns(&schema);
    status =
        ogrjoin_layer_from_array(&schema.node[0], batch, NULL, s, out, &err);
    ck_assert_ptr_null(batch->release);
    ogrjoin_settings_free(s);
    return status;
}

/* Joins, and gives the right features of all pairs as digits. */
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

/* Points, to which texts or vectors are given. */
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
    int column[2]; /* of texts or numbers put together; -1: one */
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

/* Each batch without its first row. */
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

/* Two batches as one layer, and each joined by itself: left goes on counting.
 */
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

/* --- what is broken ---------------------------------------------------------
 */

static void fails(int status, int expected, const char *text)
{
    ck_assert_msg(status == expected && strstr(err.message, text) != NULL,
                  "%d %s", status, err.message);
}

TEST(unit_refused)
{
    struct ogrjoin_layer *layer = NULL;
    struct ArrowArray batch;
    static const struct
    {
        const char *setting, *words, *text;
        int status;
    } bad[] = {
        {"similar", "x:1", "no column \"x\"", OGRJOIN_ERR_ARG},
        {"similar", "real:1", "no texts", OGRJOIN_ERR_UNSUPPORTED},
        {"similar", "list:1", "no texts", OGRJOIN_ERR_UNSUPPORTED},
        {"vector", "whole+list", "no numbers", OGRJOIN_ERR_UNSUPPORTED},
        {"vector", "dictionary", "no numbers", OGRJOIN_ERR_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    {
        batch = make_batch();
        fails(layer_of(bad[i].setting, bad[i].words, "left", &batch, &layer),
              bad[i].status, bad[i].text);
        ck_assert_ptr_null(layer);
    }
    layer = plain_layer();
    fails(join_layers("vector", "u", layer, layer, NULL), OGRJOIN_ERR_ARG,
          "no vectors");
    ogrjoin_layer_free(layer);
}

/* Counts, offsets of lists, views and places with wrong bytes; what Arrow does
 * not tell, how long buffers are, stays true. */
static void spoil_counts(struct ArrowArray *array)
{
    static const int64_t lengths[] = {-1, 0, 1, N - 1},
                         offsets[] = {-1, INT64_MAX};
    if (pick(2) == 0)
        array->length = lengths[pick(4)];
    else
        array->offset = offsets[pick(2)];
}

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
