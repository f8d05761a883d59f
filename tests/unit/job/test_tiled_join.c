/* A join side in tiles. If an allocation fails, the join returns an error, and
 * nothing leaks. test_random_layers (-memory) and e2e/test_memory.py check that
 * tiles change no answer.
 * Kind: memory. */
#include "../../../driver/job/oj_tiled_join.h"
#include "../layers.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/read/oj_layer_read.h"
#include "../random_layers.h"
#include "../run_tests.h"

/* A join side in memory. */
struct whole
{
    struct oj_flat_buf buf;
    struct oj_flat flat;
    struct oj_table *table; /* values that differ between all rows */
};

static struct oj_table *make_table(int n)
{
    int fields[N_FIELDS];
    GDALDatasetH dataset = make_layer("Memory", "", N_FIELDS, wkbPoint, NULL);
    OGRLayerH layer = first_layer(dataset);
    struct oj_read_options options = {0};
    struct oj_read_counts counts;
    LAYER flat = {0};
    struct oj_table *table = NULL;
    for (int f = 0; f < N_FIELDS; f++)
        fields[f] = f;
    add_points(layer, n, 1);
    options.batch_rows = 100;
    options.limit = -1;
    options.fields = fields;
    options.n_fields = N_FIELDS;
    must(oj_layer_read_all(layer, &options, &flat, &table, &counts, NULL, NULL,
                           &error));
    GDALClose(dataset);
    return table;
}

static struct whole make_whole(const struct scene *s, unsigned kinds)
{
    struct whole w;
    memset(&w, 0, sizeof w);
    add_join_features(&w.buf, s, 20 + pick(150), kinds, 0);
    w.flat = oj_flat_buf_view(&w.buf);
    w.table = make_table((int)w.flat.n_features);
    ck_assert_int_ge(oj_table_rows(w.table), w.flat.n_features);
    return w;
}

static void free_whole(struct whole *w)
{
    oj_flat_buf_free(&w->buf);
    oj_table_free(w->table);
}

/* Adds one of seven texts to each feature. */
static void add_texts(const struct oj_flat *flat, struct oj_dictionary **made,
                      struct oj_token_sets_buf *sets)
{
    static const char words[] = "elm oak ash fir yew box bay ";
    const struct oj_token_rules rules = {0};
    int64_t n = flat->n_features;
    int64_t *offset = oj_malloc(n + 1, sizeof *offset);
    char *bytes = oj_malloc(4 * n + 1, 1);
    struct oj_texts texts = {n, offset, bytes};
    ck_assert(offset != NULL && bytes != NULL);
    for (int64_t i = 0; i <= n; i++)
    {
        offset[i] = 4 * i;
        if (i < n)
            memcpy(bytes + 4 * i, words + 4 * (i % 7), 4);
    }
    if (*made == NULL)
        must(oj_token_dictionary_make(&texts, NULL, &rules, 1, NULL, made, sets,
                                      &error));
    else
        must(oj_token_dictionary_make_sets(*made, &texts, NULL, 1, NULL, sets,
                                           &error));
    oj_free(offset);
    oj_free(bytes);
}

/* Puts the features of the layer into tiles, in several batches. Returns a
 * status. */
static oj_status make_tiles(const struct whole *w, int64_t memory,
                            struct oj_tiles *tiles, struct oj_error *err)
{
    const struct oj_attributes values = {.table = w->table};
    oj_status status = oj_table_new_like(w->table, &tiles->columns, err);
    tiles->n_texts = w->flat.n_texts;
    if (status == OJ_OK)
        status = oj_join_tiles_open(tiles, NULL, memory, err);
    if (status == OJ_OK)
        status = oj_join_tiles_add(tiles, &w->flat, &values, 0, err);
    return status == OJ_OK ? oj_join_tiles_finish(tiles, memory, NULL, err)
                           : status;
}

static oj_status use_all(const struct whole *w, const struct oj_flat *input,
                         struct oj_error *err)
{
    struct oj_relation relation = oj_relation_default();
    struct oj_options options = {.n_threads = 1};
    struct oj_tiles tiles = {0};
    struct oj_tiled_join *join = NULL;
    MATCHES matches = {0};
    struct oj_feature_set side = {0};
    oj_status status = make_tiles(w, 20000, &tiles, err);
    relation.n_similar = 1;
    relation.similar[0] = (struct oj_text_condition){OJ_TEXT_JACCARD, 1, 1};
    if (status == OJ_OK)
        status = oj_tiled_join_open(&tiles, &relation, NULL, &options, 1, &join,
                                    err);
    if (status == OJ_OK)
        status =
            oj_tiled_join_batch(join, input, NULL, 1, &matches, &side, err);
    oj_tiled_join_close(join);
    if (status == OJ_OK) /* matched features are returned with their texts */
        ck_assert(side.buf.n_features > 0 &&
                  side.columns.texts[0].n_rows == side.buf.n_features);
    oj_join_tiles_close(&tiles);
    oj_feature_set_free(&side);
    return status;
}

TEST(memory_ends_anywhere)
{
    struct scene s = {0.0, 0.0, 1.0, 100, 1, 0.0};
    struct whole w = make_whole(&s, OJ_PART_POLYGON);
    LAYER points = {0};
    struct oj_flat input;
    struct oj_dictionary *dictionary = NULL;
    struct oj_token_sets_buf sets[2] = {{0}};
    struct oj_token_sets texts[2];
    int64_t n;
    add_input_points(&points, &s, &w.flat, 20, 0);
    input = oj_flat_buf_view(&points);
    add_texts(&w.flat, &dictionary, &sets[0]);
    add_texts(&input, &dictionary, &sets[1]);
    for (int i = 0; i < 2; i++)
        texts[i] = oj_token_sets_view(&sets[i]);
    w.flat.texts = &texts[0];
    input.texts = &texts[1];
    w.flat.n_texts = input.n_texts = 1;
    oj_alloc_fail_at(0);
    ck_assert_int_eq(use_all(&w, &input, &error), OJ_OK);
    n = oj_alloc_fail_at(0);
    for (int64_t i = 1; i <= n; i += 1 + n / 100)
    {
        oj_alloc_fail_at(i);
        ck_assert_int_eq(use_all(&w, &input, &error), OJ_ERR_NOMEM);
        oj_alloc_fail_at(0);
    }
    free_whole(&w);
    oj_token_dictionary_free(dictionary);
    oj_token_sets_free(&sets[0]);
    oj_token_sets_free(&sets[1]);
}

int main(void)
{
    tests_open("tiled join");
    GDALAllRegister();
    return tests_run();
}
