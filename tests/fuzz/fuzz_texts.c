/* Reads any bytes as texts, as a word map, as -similar and -vector, and as
 * lists of numbers. Folding twice equals folding once. Token sets are
 * consistent, and are equal if texts arrive in pieces. Invalid words are
 * refused with one line of error. With clang:
 * -fsanitize=fuzzer,address,undefined. With OJ_FUZZ_MAIN, fuzz_texts
 * [ITERATIONS] mutates sample texts, from a fixed random seed. */
#include "../../algs/foundations/relation/oj_compared_fields.h"
#include "../../driver/source/oj_side_compared_columns.h"
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/read/oj_layer_read.h"
#include "../../flatten/text/oj_fold.h"
#include "../../flatten/text/oj_token_sets.h"
#include "../../flatten/text/oj_word_replacements.h"
#include "fuzz_bytes.h"

#include <gdal.h>
#include <ogr_api.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
    MOST_TEXTS = 32,
    N_TOKENS = 10 /* number of names in OJ_TOKEN_NAMES */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- folding -------------------------------------------------------------- */

static int64_t put_code(uint32_t c, char *to)
{
    if (c < 0x80)
        to[0] = (char)c;
    else if (c < 0x800)
        to[0] = (char)(0xC0 | c >> 6);
    else if (c < 0x10000)
        to[0] = (char)(0xE0 | c >> 12);
    else
        to[0] = (char)(0xF0 | c >> 18);
    if (c < 0x80)
        return 1;
    if (c >= 0x800)
        to[1] = (char)(0x80 | (c >> (c < 0x10000 ? 6 : 12) & 63));
    if (c >= 0x10000)
        to[2] = (char)(0x80 | (c >> 6 & 63));
    to[c < 0x800 ? 1 : c < 0x10000 ? 2 : 3] = (char)(0x80 | (c & 63));
    return c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

static void try_fold(enum oj_fold fold, const char *text, int64_t n)
{
    struct oj_folded once = {0}, again = {0};
    struct oj_error err;
    char *bytes;
    int64_t n_bytes = 0;
    require(oj_fold(fold, text, n, &once, &err) == OJ_OK, "folding fails");
    require(once.n_bad_bytes >= 0 && once.n_bad_bytes <= n, "bad bytes");
    bytes = oj_malloc(4 * once.n + 1, 1);
    require(bytes != NULL, "out of memory");
    for (int64_t i = 0; i < once.n; i++)
        n_bytes += put_code(once.code[i], bytes + n_bytes);
    require(oj_fold(fold, bytes, n_bytes, &again, &err) == OJ_OK,
            "folding fails the second time");
    require(
        again.n_bad_bytes == 0 && again.n == once.n &&
            (once.n == 0 || memcmp(again.code, once.code,
                                   (size_t)once.n * sizeof *once.code) == 0),
        "folding twice is not folding once");
    oj_free(bytes);
    oj_folded_free(&once);
    oj_folded_free(&again);
}

/* --- sets ----------------------------------------------------------------- */

static void check_sets(const struct oj_token_sets *sets)
{
    for (int64_t i = 0; i < sets->n_rows; i++)
    {
        int64_t n = sets->offset[i + 1] - sets->offset[i];
        require(n == sets->size[i], "a token of the join side has no number");
        for (int64_t t = sets->offset[i] + 1; t < sets->offset[i + 1]; t++)
            require(sets->token[t] > sets->token[t - 1], "tokens repeat");
        for (int64_t j = 0; j < i; j++)
            require(oj_token_sets_bound(sets, i, sets, j) >=
                        oj_token_sets_count_common(sets, i, sets, j),
                    "more in common than the bits allow");
    }
}

static void check_same(const struct oj_token_sets *a,
                       const struct oj_token_sets *b, const char *what)
{
    int64_t n = a->n_rows;
    require(n == b->n_rows, what);
    for (int64_t i = 0; i < n; i++)
        require(a->size[i] == b->size[i] &&
                    memcmp(&a->bits[i], &b->bits[i], sizeof *a->bits) == 0 &&
                    a->offset[i + 1] == b->offset[i + 1],
                what);
    require(a->offset[n] == 0 ||
                memcmp(a->token, b->token,
                       (size_t)a->offset[n] * sizeof *a->token) == 0,
            what);
}

/* Adds text by text, and numbers the tokens only after the last one. */
static void try_pieces(const struct oj_texts *texts,
                       const struct oj_token_rules *rules,
                       const struct oj_token_sets *whole)
{
    struct oj_dictionary *dictionary = NULL;
    struct oj_token_sets_buf piece[MOST_TEXTS] = {{0}}, all = {0};
    struct oj_token_sets view;
    uint32_t *number = NULL;
    struct oj_error err;
    for (int64_t i = 0; i < texts->n; i++)
    {
        const struct oj_texts one = {1, texts->offset + i, texts->bytes};
        require(oj_token_dictionary_add(&one, NULL, rules, 0, 1, NULL,
                                        &dictionary, &piece[i], &err) == OJ_OK,
                "a piece fails");
    }
    require(oj_token_dictionary_number_by_rarity(dictionary, &number, &err) ==
                OJ_OK,
            "ordering fails");
    for (int64_t i = 0; i < texts->n; i++)
    {
        oj_tokens_renumber(piece[i].token, piece[i].offset[1], number);
        view = oj_token_sets_view(&piece[i]);
        require(oj_token_sets_add(&all, &view, 0, &err) == OJ_OK,
                "adding fails");
        oj_token_sets_free(&piece[i]);
    }
    view = oj_token_sets_view(&all);
    check_same(&view, whole, "pieces have other sets");
    oj_token_sets_free(&all);
    oj_free(number);
    oj_token_dictionary_free(dictionary);
}

static void try_sets(const struct oj_token_rules *rules, const char *text,
                     int64_t n)
{
    int64_t offset[MOST_TEXTS + 1] = {0};
    struct oj_texts texts = {0, offset, text};
    struct oj_dictionary *dictionary = NULL;
    struct oj_token_sets_buf sets = {0}, found = {0};
    struct oj_token_sets a, b;
    struct oj_error err;
    for (int64_t i = 0; i < n && texts.n < MOST_TEXTS - 1; i++)
    {
        if (text[i] == '\n')
            offset[++texts.n] = i;
    }
    offset[++texts.n] = n;
    require(oj_token_dictionary_make(&texts, NULL, rules, 2, NULL, &dictionary,
                                     &sets, &err) == OJ_OK,
            "a dictionary fails");
    require(oj_token_dictionary_make_sets(dictionary, &texts, NULL, 1, NULL,
                                          &found, &err) == OJ_OK,
            "a search fails");
    a = oj_token_sets_view(&sets);
    b = oj_token_sets_view(&found);
    check_sets(&a);
    check_same(&a, &b, "texts that are looked up have other sets");
    try_pieces(&texts, rules, &a);
    oj_token_sets_free(&sets);
    oj_token_sets_free(&found);
    oj_token_dictionary_free(dictionary);
}

/* --- words ---------------------------------------------------------------- */

static void check_refused(const struct oj_error *err)
{
    require(err->message[0] != '\0', "no reason is given");
}

static void try_words(const char *text, int64_t n)
{
    struct oj_similar similar = {0};
    struct oj_vector_words vector = {0};
    struct oj_word_map *map = NULL;
    struct oj_folded from = {0}, to = {0};
    struct oj_error err = {OJ_OK, ""};
    if (oj_similar_fields_parse("", text, &similar, &err) != OJ_OK)
        check_refused(&err);
    else
        require(similar.fields[0] != NULL && similar.fields[1] != NULL &&
                    similar.numerator <= similar.denominator,
                "-similar without fields");
    err.message[0] = '\0';
    if (oj_vector_fields_parse("", text, &vector, &err) != OJ_OK)
        check_refused(&err);
    else
        require(vector.weight[0] > 0.0, "a weight");
    err.message[0] = '\0';
    if (oj_word_map_make(text, n, OJ_FOLD_FULL, &map, &err) != OJ_OK)
        check_refused(&err);
    else
        require(oj_fold(OJ_FOLD_FULL, text, n, &from, &err) == OJ_OK &&
                    oj_word_map_apply(map, &from, &to, &err) == OJ_OK,
                "words are not replaced");
    oj_similar_fields_free(&similar);
    oj_vector_fields_free(&vector);
    oj_word_map_free(map);
    oj_folded_free(&from);
    oj_folded_free(&to);
}

/* --- lists of numbers ----------------------------------------------------- */

static OGRLayerH list_layer(void)
{
    static OGRLayerH layer;
    GDALDriverH driver;
    OGRFieldDefnH field;
    if (layer != NULL)
        return layer;
    GDALAllRegister();
    driver = GDALGetDriverByName("Memory");
    layer = GDALDatasetCreateLayer(
        GDALCreate(driver != NULL ? driver : GDALGetDriverByName("MEM"), "", 0,
                   0, 0, GDT_Unknown, NULL),
        "lists", NULL, wkbNone, NULL);
    field = OGR_Fld_Create("v", OFTString);
    OGR_L_CreateField(layer, field, 1);
    OGR_Fld_Destroy(field);
    return layer;
}

static void try_list(const char *text)
{
    static const struct oj_side_field field = {0, OFTString, OFSTNone, NULL,
                                               NULL};
    static const int columns[1] = {0};
    const double weight = 1.0;
    struct oj_read_options options = {
        .batch_rows = 10, .limit = -1, .fields = columns, .n_fields = 1};
    struct oj_read_counts counts;
    struct oj_flat_buf buf = {0};
    struct oj_table *table = NULL;
    struct oj_attributes values = {0};
    struct oj_side_columns vectors = {.weight = &weight, .norm = OJ_NORM_L2};
    struct oj_compared_columns made = {0};
    struct oj_missing_values missing = {0};
    struct oj_flat flat;
    OGRLayerH layer = list_layer();
    OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(layer));
    struct oj_error err = {OJ_OK, ""};
    OGR_F_SetFID(feature, 1);
    OGR_F_SetFieldString(feature, 0, text);
    require(OGR_L_SetFeature(layer, feature) == OGRERR_NONE, "no feature");
    OGR_F_Destroy(feature);
    require(oj_layer_read_all(layer, &options, &buf, &table, &counts, NULL,
                              NULL, &err) == OJ_OK &&
                oj_side_columns_open(&vectors, NULL, &err) == OJ_OK &&
                oj_side_columns_add(&vectors, OJ_MADE_VECTOR, 1, &field,
                                    &err) == OJ_OK,
            "a list is not read");
    values.table = table;
    flat = oj_flat_buf_view(&buf);
    flat.n_features = 1;
    if (oj_side_columns_make(&vectors, 1, 1, &values, &made, &flat, &missing,
                             &err) != OJ_OK)
        check_refused(&err);
    else
    {
        require(flat.vectors.n_dimensions >= 1 &&
                    flat.vectors.n_dimensions <= OJ_MOST_DIMENSIONS,
                "dimensions");
        for (int64_t i = 0; i < flat.vectors.n_dimensions; i++)
            require(missing.n_no_vector == 1 ? isnan(made.vector[i])
                                             : isfinite(made.vector[i]),
                    "a number that is none");
    }
    oj_compared_columns_free(&made);
    oj_side_columns_close(&vectors);
    oj_table_free(table);
    oj_flat_buf_free(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = oj_malloc((int64_t)size + 1, 1);
    struct oj_token_rules rules = {0};
    require(text != NULL, "out of memory");
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    rules.fold = size > 0 ? data[0] % 3 : 0;
    rules.tokens = size > 1 ? data[1] % N_TOKENS : 0;
    try_fold((enum oj_fold)rules.fold, text, (int64_t)size);
    try_sets(&rules, text, (int64_t)size);
    try_words(text, (int64_t)strlen(text));
    if (size > 2 && data[2] % 4 == 0)
        try_list(text);
    oj_free(text);
    return 0;
}

#ifdef OJ_FUZZ_MAIN
enum
{
    MAX_BYTES = 600
};

static const char *const seeds[] = {
    "Caf\xC3\xA9 M\xC3\xBCller\ncafe muller\nCAFE\n\xE5\xB1\xB1 \xEF\xAC\x81",
    "St,street\n\"Ave\",\"avenue of\"\nthe,\n",
    "name+\"street:old\"=NAME+ADDR:0.6",
    "price:0.001+area=PRICE+AREA",
    "[1, -2.5e3, nan, 4]",
    "\xF0\x9F\x98\x80\xED\x95\x9C\n\xC3\x98\xC4\xB1\xE2\x80\x99 1/2\n--\n",
};

int main(int argc, char **argv)
{
    static const char letters[] = "\n\",:+=/[]. 019aZ'\xC3\xE2\xF4\x80\xBF\xFF";
    long n_rounds = argc > 1 ? atol(argv[1]) : 60000;
    random_state = 20261127;
    for (long i = 0; i < n_rounds; i++)
    {
        const char *one = seeds[pick(sizeof seeds / sizeof *seeds)];
        char text[MAX_BYTES] = "";
        size_t n = strlen(one);
        memcpy(text, one, n);
        for (int m = pick(7); m > 0; m--)
            n = mutate(text, n, MAX_BYTES, letters, sizeof letters - 1);
        LLVMFuzzerTestOneInput((const uint8_t *)text, n);
    }
    printf("%ld inputs\n", n_rounds);
    return 0;
}
#endif
