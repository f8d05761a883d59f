/* Kind: property. A join side in tiles answers as one in memory does: the same
 * pairs in the same order, the same attributes, for any size of tile, any cut
 * of the input into batches and any state of the FIDs.
 * Kind: memory. The n-th allocation fails: an error, nothing lost. */
#include "../../../algs/pairs/oj_pairs.h"
#include "../../../driver/job/oj_tiled_join.h"
#include "../layers.h"

#include "../../../flatten/read/oj_layer_read.h"
#include "../../../flatten/read/oj_value.h"
#include "../random_layers.h"
#include "../run_tests.h"

#include <stdio.h>

/* A join side in memory. */
struct whole
{
    struct oj_flat_buf buf;
    struct oj_flat flat;
    struct oj_table *table; /* row i: values that only i has */
    int64_t *fid;
    int fids_are_unique;
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

static int are_unique(const int64_t *fid, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
    {
        for (int64_t j = 0; j < i; j++)
        {
            if (fid[i] == fid[j])
                return 0;
        }
    }
    return 1;
}

static struct whole make_whole(const struct scene *s, unsigned kinds)
{
    struct whole w;
    memset(&w, 0, sizeof w);
    add_join_features(&w.buf, s, 20 + pick(150), kinds, 0);
    w.flat = oj_flat_buf_view(&w.buf);
    w.fids_are_unique = 1;
    if (pick(2))
    {
        w.fid = pick_fids(w.flat.n_features);
        w.flat.fid = w.fid;
        w.fids_are_unique =
            w.fid != NULL && are_unique(w.fid, w.flat.n_features);
    }
    w.table = make_table((int)w.flat.n_features);
    ck_assert_int_ge(oj_table_rows(w.table), w.flat.n_features);
    return w;
}

static void free_whole(struct whole *w)
{
    oj_flat_buf_free(&w->buf);
    oj_table_free(w->table);
    oj_free(w->fid);
}

/* The layer's features in tiles, added in several batches. */
static oj_status make_tiles(const struct whole *w, int64_t memory,
                            struct oj_tiles *tiles, struct oj_error *err)
{
    const struct oj_row_values values = {w->table, NULL};
    oj_status status = oj_table_new_like(w->table, &tiles->columns, err);
    if (status == OJ_OK)
        status = oj_tiles_open(tiles, NULL, memory, err);
    if (status == OJ_OK)
        status = oj_tiles_add(tiles, &w->flat, &values, 0, err);
    return status == OJ_OK ? oj_tiles_finish(tiles, err) : status;
}

/* A value as OGR writes it; "" and 0 for NULL. */
static int value_text(const struct oj_table *table, int64_t row, int column,
                      char *text, size_t size)
{
    struct oj_value value;
    OGRFieldSubType subtype;
    OGRFieldType type = oj_table_type(table, column, &subtype);
    OGRFeatureDefnH defn;
    OGRFeatureH feature;
    text[0] = '\0';
    oj_table_value(table, row, column, &value);
    if (OGR_RawField_IsNull(&value.raw))
        return 0;
    feature = oj_value_scratch(type, subtype, &defn);
    OGR_F_SetFieldRaw(feature, 0, &value.raw);
    snprintf(text, size, "%s", OGR_F_GetFieldAsString(feature, 0));
    OGR_F_Destroy(feature);
    OGR_FD_Release(defn);
    return 1;
}

static void same_rows(const struct oj_table *a, int64_t i,
                      const struct oj_table *b, int64_t j)
{
    for (int c = 0; c < N_FIELDS; c++)
    {
        char left[200], right[200];
        ck_assert_int_eq(value_text(a, i, c, left, sizeof left),
                         value_text(b, j, c, right, sizeof right));
        ck_assert_str_eq(left, right);
    }
}

static void same_answers(const struct whole *w, const struct oj_matches *whole,
                         int64_t first_row, const struct oj_matches *tiled,
                         const struct oj_feature_set *side)
{
    struct oj_flat flat = oj_feature_set_view(side);
    for (int64_t row = 0; row < tiled->n_rows; row++)
    {
        int64_t i = oj_matches_first(tiled, row);
        int64_t j = oj_matches_first(whole, first_row + row);
        int64_t n = oj_matches_end(tiled, row) - i;
        ck_assert_int_eq(n, oj_matches_end(whole, first_row + row) - j);
        for (; n > 0; n--, i++, j++)
        {
            int64_t at = tiled->join_row[i], feature = whole->join_row[j];
            ck_assert_int_eq(side->ordinal[at], feature);
            ck_assert(tiled->measure[i] == whole->measure[j] ||
                      (isnan(tiled->measure[i]) && isnan(whole->measure[j])));
            ck_assert_int_eq(oj_feature_set_view(side).fid[at],
                             w->flat.fid != NULL ? w->flat.fid[feature] : 0);
            ck_assert(oj_flat_same_geometry(&flat, at, &w->flat, feature));
            same_rows(side->table, at, w->table, feature);
        }
    }
}

static struct oj_relation pick_relation(const struct scene *s)
{
    static const enum oj_op ops[] = {OJ_OP_NEAREST, OJ_OP_NEAREST,
                                     OJ_OP_DWITHIN, OJ_OP_INTERSECTS,
                                     OJ_OP_WITHIN,  OJ_OP_DISJOINT};
    struct oj_relation relation = oj_relation_default();
    relation.op = ops[pick(6)];
    if (relation.op == OJ_OP_DWITHIN || pick(2))
        relation.max_distance = s->scale * pick(s->extent);
    relation.k = pick(2) ? 1 : 1 + pick(6);
    relation.ties = pick(2) ? OJ_TIES_ALL : OJ_TIES_FIRST;
    return relation;
}

static void try_batches(const struct whole *w, const struct oj_flat *input,
                        const struct oj_relation *relation,
                        const struct oj_matches *whole, struct oj_tiles *tiles)
{
    struct oj_options options = {.n_threads = 1 + pick(2)};
    struct oj_tiled_join *join;
    MATCHES matches = {0};
    struct oj_feature_set side = {0};
    struct oj_flat_slice slice = {0};
    must(oj_tiled_join_open(tiles, relation, NULL, &options, w->fids_are_unique,
                            &join, &error));
    for (int64_t first = 0; first < input->n_features;)
    {
        int64_t n = 1 + pick((int)(input->n_features - first));
        must(oj_flat_slice_make(input, first, n, &slice, &error));
        must(oj_tiled_join_batch(join, &slice.flat, NULL, &matches, &side,
                                 &error));
        same_answers(w, whole, first, &matches, &side);
        first += n;
    }
    oj_tiled_join_close(join);
    oj_feature_set_free(&side);
    oj_flat_slice_free(&slice);
}

static int64_t try_round(void)
{
    static const unsigned kinds[] = {OJ_PART_POINT, OJ_PART_POLYGON,
                                     OJ_PART_POINT | OJ_PART_LINE |
                                         OJ_PART_POLYGON};
    struct scene s = pick_scene();
    struct whole w = make_whole(&s, kinds[pick(3)]);
    LAYER points = {0};
    struct oj_flat input;
    struct oj_options options = {.n_threads = 1};
    struct oj_relation relation = pick_relation(&s);
    struct oj_join *join;
    MATCHES whole = {0};
    struct oj_tiles tiles = {0};
    int64_t n_tiles;
    add_input_points(&points, &s, &w.flat, 1 + pick(60), 0);
    input = oj_flat_buf_view(&points);
    must(oj_join_open(&w.flat, &relation, NULL, &options, &join, &error));
    must(oj_join_batch(join, &input, &whole, &error));
    must(make_tiles(&w, 1 + pick(200000), &tiles, &error));
    try_batches(&w, &input, &relation, &whole, &tiles);
    n_tiles = tiles.n_tiles;
    oj_tiles_close(&tiles);
    oj_join_close(join);
    free_whole(&w);
    return n_tiles;
}

TEST_LOOP(tiles_change_no_answer, 0, 8)
{
    int64_t n_tiles = 0;
    for (int round = 0; round < 10; round++)
    {
        random_state = (uint64_t)(_i * 1000 + round);
        n_tiles += try_round();
    }
    ck_assert_int_gt(n_tiles, 10);
}

static oj_status use_all(const struct whole *w, const struct oj_flat *input,
                         struct oj_error *err)
{
    const struct oj_relation relation = oj_relation_default();
    struct oj_options options = {.n_threads = 1};
    struct oj_tiles tiles = {0};
    struct oj_tiled_join *join = NULL;
    MATCHES matches = {0};
    struct oj_feature_set side = {0};
    oj_status status = make_tiles(w, 20000, &tiles, err);
    if (status == OJ_OK)
        status = oj_tiled_join_open(&tiles, &relation, NULL, &options, 1, &join,
                                    err);
    if (status == OJ_OK)
        status = oj_tiled_join_batch(join, input, NULL, &matches, &side, err);
    oj_tiled_join_close(join);
    oj_tiles_close(&tiles);
    oj_feature_set_free(&side);
    return status;
}

TEST(memory_ends_anywhere)
{
    struct scene s = {0.0, 0.0, 1.0, 100, 1, 0.0};
    struct whole w = make_whole(&s, OJ_PART_POLYGON);
    LAYER points = {0};
    struct oj_flat input;
    int64_t n;
    add_input_points(&points, &s, &w.flat, 20, 0);
    input = oj_flat_buf_view(&points);
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
}

int main(void)
{
    tests_open("tiled join");
    GDALAllRegister();
    return tests_run();
}
