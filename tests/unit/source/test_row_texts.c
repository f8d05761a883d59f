/* Concatenates fields of rows and makes token sets of them. One side makes the
 * dictionary. The texts of batches are looked up in it, and a second user
 * shares it.
 * Kind: unit. */
#include "../run_tests.h"

#include "../../../driver/source/oj_side_compared_columns.h"
#include "../../../flatten/read/oj_layer_read.h"

#include <gdal.h>
#include <ogr_api.h>

#include <string.h>

static const struct
{
    const char *name; /* field name; NULL: none */
    int number;
} places[] = {{"Elm Cafe", 12}, {"elm café", 12}, {NULL, 7}, {"--", 12},
              {"Mill", 7},      {"The Mill", 7},  {"", 12}};

enum
{
    N_ROWS = sizeof places / sizeof *places
};

struct place_rows
{
    GDALDatasetH dataset;
    struct oj_flat_buf flat;
    struct oj_table *table;
};

static struct place_rows read_places(void)
{
    static const int fields[2] = {0, 1};
    static const struct
    {
        const char *name;
        OGRFieldType type;
    } made[2] = {{"name", OFTString}, {"number", OFTInteger}};
    GDALDriverH driver = GDALGetDriverByName("Memory");
    struct place_rows p = {0};
    struct oj_read_options options = {0};
    struct oj_read_counts counts;
    OGRLayerH layer;
    p.dataset = GDALCreate(driver != NULL ? driver : GDALGetDriverByName("MEM"),
                           "", 0, 0, 0, GDT_Unknown, NULL);
    layer = GDALDatasetCreateLayer(p.dataset, "rows", NULL, wkbNone, NULL);
    for (int i = 0; i < 2; i++)
    {
        OGRFieldDefnH field = OGR_Fld_Create(made[i].name, made[i].type);
        OGR_L_CreateField(layer, field, 1);
        OGR_Fld_Destroy(field);
    }
    for (int i = 0; i < N_ROWS; i++)
    {
        OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(layer));
        if (places[i].name != NULL)
            OGR_F_SetFieldString(feature, 0, places[i].name);
        OGR_F_SetFieldInteger(feature, 1, places[i].number);
        ck_assert_int_eq(OGR_L_CreateFeature(layer, feature), OGRERR_NONE);
        OGR_F_Destroy(feature);
    }
    options.batch_rows = N_ROWS;
    options.limit = -1;
    options.fields = fields;
    options.n_fields = 2;
    ck_assert_int_eq(oj_layer_read_all(layer, &options, &p.flat, &p.table,
                                       &counts, NULL, NULL, NULL),
                     OJ_OK);
    return p;
}

static void free_places(struct place_rows *p)
{
    oj_table_free(p->table);
    oj_flat_buf_free(&p->flat);
    GDALClose(p->dataset);
}

/* Makes token sets of the name, of name and number, and of words. Returns a
 * status. */
static oj_status new_texts(const char *word_map, struct oj_side_columns *out,
                           struct oj_error *err)
{
    static const struct oj_side_field fields[2] = {
        {0, OFTString, OFSTNone, NULL, NULL},
        {1, OFTInteger, OFSTNone, NULL, NULL}};
    out->n_texts = 2;
    out->n_threads = 1;
    out->rules.tokens = 1;
    for (int side = 0; side < 2; side++)
    {
        for (int i = 0; i < 3; i++)
            OJ_TRY(oj_side_columns_add(out, OJ_MADE_TEXT + (i > 0), side,
                                       &fields[i > 1], err));
    }
    return oj_side_columns_open(out, word_map, err);
}

static oj_status make_token_sets(struct oj_side_columns *texts, int insert,
                                 const struct place_rows *p,
                                 struct oj_compared_columns *made,
                                 struct oj_flat *flat, int64_t *n_without,
                                 struct oj_error *err)
{
    const struct oj_attributes values = {.table = p->table};
    struct oj_missing_values missing = {0};
    oj_status status;
    *flat = oj_flat_buf_view(&p->flat);
    flat->n_features = N_ROWS;
    status = oj_side_columns_make(texts, insert, insert, &values, made, flat,
                                  &missing, err);
    *n_without = missing.n_no_text;
    return status;
}

static int64_t count_common_tokens(const struct oj_flat *a, int64_t i,
                                   const struct oj_flat *b, int64_t j,
                                   int condition)
{
    return oj_token_sets_count_common(&a->texts[condition], i,
                                      &b->texts[condition], j);
}

/* Both sides use one dictionary, and a second user shares it. */
TEST(unit_sets_of_both_sides)
{
    struct place_rows p = read_places();
    struct oj_side_columns texts = {0}, later = {0};
    struct oj_vocabulary *held;
    struct oj_compared_columns of_join = {0}, of_input = {0};
    struct oj_flat join, input;
    int64_t n_without;
    ck_assert_int_eq(new_texts("the,\ncafe,bar", &texts, NULL), OJ_OK);
    ck_assert_int_eq(
        make_token_sets(&texts, 1, &p, &of_join, &join, &n_without, NULL),
        OJ_OK);
    ck_assert_int_eq(n_without, 3);
    ck_assert_int_eq(join.n_texts, 2);
    held = oj_vocabulary_add_reference(texts.vocabulary);
    ck_assert_int_gt(oj_vocabulary_bytes(held), 0);
    oj_side_columns_close(&texts);
    ck_assert_int_eq(new_texts("the,\ncafe,bar", &later, NULL), OJ_OK);
    oj_side_columns_use_vocabulary(&later, held);
    oj_vocabulary_free(held);
    for (int round = 0; round < 2; round++)
    {
        ck_assert_int_eq(
            make_token_sets(&later, 0, &p, &of_input, &input, &n_without, NULL),
            OJ_OK);
        ck_assert_int_eq(n_without, 3);
        ck_assert_int_eq(count_common_tokens(&input, 0, &join, 1, 0), 2);
        ck_assert_int_eq(count_common_tokens(&input, 0, &join, 1, 1), 3);
        ck_assert_int_eq(count_common_tokens(&input, 4, &join, 5, 0), 1);
        ck_assert_int_eq(input.texts[0].size[5], 1); /* "the" is removed */
        ck_assert_int_eq(input.texts[1].size[2], 1); /* NULL adds nothing */
        ck_assert_int_eq(count_common_tokens(&input, 2, &join, 4, 1), 1);
        ck_assert_int_eq(count_common_tokens(&input, 2, &join, 0, 1), 0);
    }
    ck_assert_int_gt(oj_compared_columns_bytes(&of_join), 0);
    oj_side_columns_close(&later);
    oj_compared_columns_free(&of_join);
    oj_compared_columns_free(&of_input);
    free_places(&p);
}

/* Missing columns are accepted. */
TEST(unit_nothing)
{
    struct oj_side_columns texts = {0};
    struct oj_error err;
    oj_side_columns_close(&texts);
    ck_assert_int_eq(oj_vocabulary_bytes(NULL), 0);
    oj_vocabulary_free(NULL);
    ck_assert_int_eq(new_texts("no comma", &texts, &err), OJ_ERR_DATA);
    oj_side_columns_close(&texts);
}

int main(void)
{
    tests_open("row_texts");
    GDALAllRegister();
    return tests_run();
}
