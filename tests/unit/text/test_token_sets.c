/* Folding, tokens, their numbering, and intersections of token sets.
 * Kind: unit, property, degenerate, large. */
#include "../../../algs/foundations/relation/oj_text_similarity_condition.h"
#include "../../../flatten/text/oj_fold.h"
#include "../../../flatten/text/oj_fold_table.h"
#include "../../../flatten/text/oj_word_replacements.h"

#include "../random_numbers.h"
#include "../run_tests.h"
#include "text_layers.h"

enum
{
    TRGM = 0,
    WORDS = 1,
    GRAMS = 1 /* and q */
};

static struct oj_error error;

static void must(oj_status status)
{
    ck_assert_msg(status == OJ_OK, "%s", error.message);
}

static int encode_utf8(uint32_t c, char *out)
{
    if (c < 0x80)
    {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800)
    {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000)
    {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 63));
        out[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 63));
    out[2] = (char)(0x80 | (c >> 6 & 63));
    out[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* Folds each code point between two letters, where a space is kept. */
TEST_LOOP(unit_all_code_points, OJ_FOLD_FULL, OJ_FOLD_CASE + 1)
{
    struct oj_folded folded = {0};
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (uint32_t c = 0; c < 0x110000; c++)
    {
        char text[6] = "a";
        int n = encode_utf8(c, text + 1);
        if (c >= 0xd800 && c < 0xe000)
            continue;
        text[1 + n] = 'a';
        expect(oj_fold((enum oj_fold)_i, text, n + 2, &folded, &error) == OJ_OK,
               "%x", (unsigned)c);
        expect(folded.n_bad_bytes == 0 && folded.n <= 2 + OJ_FOLD_MOST, "%x",
               (unsigned)c);
        folded.code[folded.n - 1] = 0;
        for (int64_t i = 1; i < folded.n; i++)
            sum = (sum ^ folded.code[i]) * UINT64_C(0x100000001b3);
    }
    ck_assert_uint_eq(sum, oj_fold_checksum[_i]);
    oj_folded_free(&folded);
}

static void expect_fold(enum oj_fold fold, const char *text, const char *want)
{
    struct oj_folded folded = {0};
    char got[256];
    int n = 0;
    must(oj_fold(fold, text, (int64_t)strlen(text), &folded, &error));
    for (int64_t i = 0; i < folded.n; i++)
        n += encode_utf8(folded.code[i], got + n);
    got[n] = '\0';
    ck_assert_str_eq(got, want);
    oj_folded_free(&folded);
}

TEST(unit_folding)
{
    expect_fold(OJ_FOLD_FULL, "  Caf\u00e9 M\u00fcller's ", "cafe mullers");
    expect_fold(OJ_FOLD_FULL, "\u00c6r\u00f8 \u0141\u00f3d\u017a \u00df",
                "aero lodz ss");
    expect_fold(OJ_FOLD_FULL, "a--b,,c!", "a b c");
    expect_fold(OJ_FOLD_FULL, "\uc11c\uc6b8", "\uc11c\uc6b8");
    expect_fold(OJ_FOLD_FULL, "...", "");
    expect_fold(OJ_FOLD_CASE, " A \t\u00c9! ", "a \u00e9!");
    expect_fold(OJ_FOLD_NONE, " A  B ", " A  B ");
    expect_fold(OJ_FOLD_FULL, "a\xff\xc3(b\xe2\x82", "a b");
    expect_fold(OJ_FOLD_NONE, "\xed\xa0\x80\xc0\x80\xf5", "      ");
}

/* Makes token sets of texts by the rules fold and tokens. Also makes the
 * dictionary, unless out is NULL. */
static void make_token_sets(const struct text_column *texts, int fold,
                            int tokens, struct oj_dictionary **out,
                            struct oj_token_sets_buf *sets)
{
    struct oj_token_rules rules = {fold, tokens, NULL};
    struct oj_dictionary *dictionary = NULL;
    must(oj_token_dictionary_make(&texts->view, NULL, &rules, 1, NULL,
                                  &dictionary, sets, &error));
    if (out != NULL)
        *out = dictionary;
    else
        oj_token_dictionary_free(dictionary);
}

static int size_of(const char *text, int tokens)
{
    struct text_column column = {0};
    struct oj_token_sets_buf sets = {0};
    int size;
    add_text(&column, text, (int64_t)strlen(text));
    make_token_sets(&column, OJ_FOLD_FULL, tokens, NULL, &sets);
    size = sets.size[0];
    ck_assert_int_eq(sets.n_without, size == 0);
    ck_assert_int_eq(sets.offset[1], size);
    for (int i = 1; i < size; i++)
        expect(sets.token[i - 1] < sets.token[i], "token %d", i);
    oj_token_sets_free(&sets);
    free_column(&column);
    return size;
}

TEST(unit_tokens)
{
    ck_assert_int_eq(size_of("", TRGM), 0);
    ck_assert_int_eq(size_of(" - ", TRGM), 0);
    ck_assert_int_eq(size_of("a", TRGM), 2);
    ck_assert_int_eq(size_of("word", TRGM), 5);
    ck_assert_int_eq(size_of("word word", TRGM), 5);
    ck_assert_int_eq(size_of("aaaaaa", TRGM), 4);
    ck_assert_int_eq(size_of("one two one", WORDS), 2);
    ck_assert_int_eq(size_of("abc", GRAMS + 1), 3);
    ck_assert_int_eq(size_of("abab", GRAMS + 2), 2);
    ck_assert_int_eq(size_of("ab", GRAMS + 3), 1);
    ck_assert_int_eq(size_of("abcde", GRAMS + 4), 2);
    ck_assert_int_eq(size_of("abc", GRAMS + 8), 1);
    ck_assert_int_eq(size_of("", GRAMS + 8), 0);
}

TEST(unit_word_map)
{
    const char *lines =
        "St.,Street\r\n\n\"the\" ,\nny,\"New York\" \nST,street\n";
    struct oj_word_map *map = NULL;
    struct oj_folded text = {0}, out = {0};
    static const char *const wrong[][2] = {
        {"st street", "line 1 of the word map has no comma"},
        {"\"a\"", "has no comma"},
        {"a b,c", "must have one word before the comma"},
        {",c", "must have one word before the comma"},
        {"a,b\na,c", "line 2 of the word map repeats a word"},
        {"x,\nx,y", "repeats a word"},
        {"a,b,c", "has more than two columns"},
        {"a,\"b\",c", "has more than two columns"},
        {"a,\"b\"c", "has text behind a closing double quote"},
        {"\"a\"b,c", "has text behind a closing double quote"},
        {"\"a\"\"b\",c", "has text behind a closing double quote"},
        {"\"a,", "has a double quote that is not closed"},
        {"a,\"", "has a double quote that is not closed"},
        {"a,\"b", "has a double quote that is not closed"}};
    char got[64] = "";
    must(oj_word_map_make(lines, (int64_t)strlen(lines), OJ_FOLD_FULL, &map,
                          &error));
    must(oj_fold(OJ_FOLD_FULL, "the main st the ny", 18, &text, &error));
    must(oj_word_map_apply(map, &text, &out, &error));
    for (int64_t i = 0; i < out.n; i++)
        got[i] = (char)out.code[i];
    ck_assert_str_eq(got, "main street new york");
    oj_word_map_free(map);
    oj_folded_free(&text);
    oj_folded_free(&out);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    {
        const char *text_of = wrong[i][0];
        ck_assert_int_eq(oj_word_map_make(text_of, (int64_t)strlen(text_of),
                                          OJ_FOLD_FULL, &map, &error),
                         OJ_ERR_DATA);
        ck_assert_msg(strstr(error.message, wrong[i][1]) != NULL, "%s: %s",
                      text_of, error.message);
    }
}

/* ---- sets ---------------------------------------------------------------- */

static void add_random_texts(struct text_column *column, int n)
{
    for (int i = 0; i < n; i++)
    {
        char text[64];
        int length = pick(24), at = 0;
        for (int j = 0; j < length; j++)
            at += encode_utf8(one_in(9)    ? ' '
                              : one_in(20) ? 0xe0 + (uint32_t)pick(64)
                                           : 'a' + (uint32_t)pick(4),
                              text + at);
        if (one_in(20))
            text[pick(at + 1)] = (char)0xf0;
        add_text(column, text, at);
    }
}

static int64_t bound_of(const struct oj_token_sets *a, int64_t i,
                        const struct oj_token_sets *b, int64_t j)
{
    uint64_t x = a->bits[i].word[0] ^ b->bits[j].word[0];
    uint64_t y = a->bits[i].word[1] ^ b->bits[j].word[1];
    return (a->size[i] + b->size[j] - __builtin_popcountll(x) -
            __builtin_popcountll(y)) /
           2;
}

/* Sets that were looked up in the dictionary of one side have the intersections
 * that they have with a dictionary of both sides, for any number of threads. */
TEST_LOOP(property_found_sets, 0, 10)
{
    struct text_column join = {0}, input = {0}, both = {0};
    struct oj_dictionary *dictionary = NULL;
    struct oj_token_sets_buf made = {0}, found = {0}, all = {0}, other = {0};
    struct oj_token_rules rules = {_i % 3, _i, NULL};
    struct oj_token_sets a, b, c;
    enum
    {
        N = 1500
    };
    random_state = (uint64_t)_i;
    add_random_texts(&join, N);
    add_random_texts(&input, N);
    for (int i = 0; i < 2 * N; i++)
    {
        const struct oj_texts *from = i < N ? &join.view : &input.view;
        add_text(&both, from->bytes + from->offset[i % N],
                 from->offset[i % N + 1] - from->offset[i % N]);
    }
    must(oj_token_dictionary_make(&join.view, NULL, &rules, 3, NULL,
                                  &dictionary, &made, &error));
    must(oj_token_dictionary_make_sets(dictionary, &input.view, NULL, 2, NULL,
                                       &found, &error));
    must(oj_token_dictionary_make_sets(dictionary, &join.view, NULL, 1, NULL,
                                       &other, &error));
    make_token_sets(&both, rules.fold, rules.tokens, NULL, &all);
    ck_assert(made.n_bad_bytes == other.n_bad_bytes &&
              made.n_without == other.n_without);
    ck_assert_mem_eq(made.size, other.size, N * sizeof *made.size);
    ck_assert_mem_eq(made.bits, other.bits, N * sizeof *made.bits);
    ck_assert_mem_eq(made.token, other.token,
                     (size_t)made.offset[N] * sizeof *made.token);
    a = oj_token_sets_view(&found);
    b = oj_token_sets_view(&made);
    c = oj_token_sets_view(&all);
    ck_assert_mem_eq(c.size, b.size, N * sizeof *b.size);
    ck_assert_mem_eq(c.size + N, a.size, N * sizeof *b.size);
    for (int i = 0; i < N; i += 7)
    {
        for (int j = 0; j < N; j++)
        {
            int64_t o = oj_token_sets_count_common(&a, i, &b, j);
            expect(o == oj_token_sets_count_common(&c, N + i, &c, j) &&
                       o <= bound_of(&a, i, &b, j),
                   "rows %d, %d", i, j);
        }
    }
    oj_token_dictionary_free(dictionary);
    oj_token_sets_free(&made);
    oj_token_sets_free(&found);
    oj_token_sets_free(&other);
    oj_token_sets_free(&all);
    free_column(&join);
    free_column(&input);
    free_column(&both);
}

/* Returns the number of pairs that fulfil a condition. is_self 1: a and b are
 * one side, and each pair counts once. Adds the number of pairs exactly at the
 * threshold to *n_exact, unless n_exact is NULL. */
static int64_t count_pairs(const struct oj_token_sets *a,
                           const struct oj_token_sets *b, int is_self,
                           const struct oj_text_condition *condition,
                           int64_t *n_exact)
{
    int64_t n = 0;
    for (int64_t i = 0; i < a->n_rows; i++)
    {
        for (int64_t j = is_self ? i + 1 : 0; j < b->n_rows; j++)
        {
            int64_t least =
                oj_text_min_common_tokens(condition, a->size[i], b->size[j]);
            int64_t o;
            if (a->size[i] == 0 || b->size[j] == 0 ||
                bound_of(a, i, b, j) < least)
                continue;
            o = oj_token_sets_count_common(a, i, b, j);
            n += o >= least;
            if (n_exact != NULL)
                *n_exact += 16 * o * o == 9 * (int64_t)a->size[i] * b->size[j];
        }
    }
    return n;
}

TEST(real_restaurants)
{
    static const int64_t tenths[] = {3, 5, 6, 7, 8};
    static const int64_t want[] = {503, 131, 106, 95, 89};
    static const int64_t others[] = {116, 123, 203}; /* at .7 */
    struct text_column join, input;
    struct oj_dictionary *dictionary;
    struct oj_token_sets_buf made = {0}, found = {0};
    struct oj_token_sets a, b;
    if (!read_column("text_fodors_zagats_b.csv", "name", 1, INT32_MAX, &join) ||
        !read_column("text_fodors_zagats_a.csv", "name", 1, INT32_MAX, &input))
        return;
    make_token_sets(&join, OJ_FOLD_FULL, TRGM, &dictionary, &made);
    must(oj_token_dictionary_make_sets(dictionary, &input.view, NULL, 2, NULL,
                                       &found, &error));
    a = oj_token_sets_view(&found);
    b = oj_token_sets_view(&made);
    for (int i = 0; i < 5; i++)
    {
        struct oj_text_condition at = {OJ_TEXT_JACCARD, tenths[i], 10};
        ck_assert_int_eq(count_pairs(&a, &b, 0, &at, NULL), want[i]);
    }
    for (int i = 0; i < 3; i++)
    {
        struct oj_text_condition at = {(enum oj_text_measure)(OJ_TEXT_DICE + i),
                                       7, 10};
        ck_assert_int_eq(count_pairs(&a, &b, 0, &at, NULL), others[i]);
    }
    oj_token_dictionary_free(dictionary);
    oj_token_sets_free(&made);
    oj_token_sets_free(&found);
    free_column(&join);
    free_column(&input);
}

TEST(real_cosine_at_the_threshold)
{
    struct oj_text_condition at = {OJ_TEXT_COSINE, 75, 100};
    struct oj_token_sets_buf made = {0};
    struct oj_token_sets a;
    struct text_column names;
    int64_t n_exact = 0;
    if (!read_column("geonames_cities.csv", "name", 6, 20000, &names))
        return;
    make_token_sets(&names, OJ_FOLD_FULL, TRGM, NULL, &made);
    a = oj_token_sets_view(&made);
    ck_assert_int_eq(count_pairs(&a, &a, 1, &at, &n_exact), 962);
    ck_assert_int_eq(n_exact, 35);
    oj_token_sets_free(&made);
    free_column(&names);
}

TEST(large_texts)
{
    enum
    {
        LONG = 100000
    };
    struct text_column column = {0};
    struct oj_token_sets_buf sets = {0};
    struct oj_token_rules rules = {OJ_FOLD_FULL, WORDS, NULL};
    struct oj_dictionary *dictionary = NULL;
    const int64_t fid[] = {17, 18};
    char *text = malloc(8 * (OJ_MOST_TOKENS + 3));
    int64_t n = 0;
    ck_assert_ptr_nonnull(text);
    random_state = 5;
    for (int i = 0; i < LONG; i++)
        text[i] = (char)('a' + pick(26));
    add_text(&column, text, LONG);
    make_token_sets(&column, OJ_FOLD_FULL, GRAMS + 5, NULL, &sets);
    ck_assert_int_gt(sets.size[0], LONG - 1000);
    for (int i = 1; i < sets.size[0]; i++)
        expect(sets.token[i - 1] < sets.token[i], "token %d", i);
    /* no three consecutive ones are equal */
    for (uint32_t i = 0; i < OJ_MOST_TOKENS + 3; i++)
        n += encode_utf8(i % 1024 == 0 ? 0x4e00 + i / 1024 : 0x8000 + i % 1024,
                         text + n);
    add_text(&column, text, n);
    make_token_sets(&column, OJ_FOLD_FULL, GRAMS + 1, NULL, &sets);
    ck_assert_int_gt(sets.size[1], 2000);
    free_column(&column);
    n = 0;
    for (uint32_t i = 0; i <= OJ_MOST_TOKENS; i++)
    {
        n += encode_utf8(0x4e00 + i / 1024, text + n);
        n += encode_utf8(0x8000 + i % 1024, text + n);
        text[n++] = ' ';
    }
    add_text(&column, "a", 1);
    add_text(&column, text, n);
    ck_assert_int_eq(oj_token_dictionary_make(&column.view, fid, &rules, 1,
                                              NULL, &dictionary, &sets, &error),
                     OJ_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(error.message, "18"));
    ck_assert_int_eq(sets.n_rows, 0);
    oj_token_sets_free(&sets);
    free_column(&column);
    free(text);
}

TEST(degenerate_no_texts)
{
    static const int64_t offset[] = {0};
    struct oj_texts none = {0, offset, NULL};
    struct oj_token_rules rules = {0};
    struct oj_dictionary *dictionary = NULL;
    struct oj_token_sets_buf sets = {0}, found = {0};
    const int cancel = 1;
    must(oj_token_dictionary_make(&none, NULL, &rules, 0, NULL, &dictionary,
                                  &sets, &error));
    must(oj_token_dictionary_make_sets(dictionary, &none, NULL, 0, NULL, &found,
                                       &error));
    ck_assert(sets.n_rows == 0 && sets.offset[0] == 0 && found.n_rows == 0);
    ck_assert_int_gt(oj_token_dictionary_bytes(dictionary), 0);
    oj_token_dictionary_free(dictionary);
    oj_token_dictionary_free(NULL);
    oj_word_map_free(NULL);
    {
        struct text_column one = {0};
        add_text(&one, "a", 1);
        ck_assert_int_eq(oj_token_dictionary_make(&one.view, NULL, &rules, 1,
                                                  &cancel, &dictionary, &sets,
                                                  &error),
                         OJ_ERR_CANCELLED);
        free_column(&one);
    }
    oj_token_sets_free(&sets);
    oj_token_sets_free(&found);
}

/* ---- conditions ---------------------------------------------------------- */

static double plain_similarity(int measure, double o, double a, double b)
{
    switch (measure)
    {
        case OJ_TEXT_JACCARD:
            return o / (a + b - o);
        case OJ_TEXT_DICE:
            return 2 * o / (a + b);
        case OJ_TEXT_COSINE:
            return o / sqrt(a * b);
    }
    return o / (a < b ? a : b);
}

TEST_LOOP(property_conditions, OJ_TEXT_JACCARD, OJ_TEXT_OVERLAP + 1)
{
    random_state = 77;
    for (int i = 0; i < 200000; i++)
    {
        int most = one_in(10) ? 1 << 20 : 60;
        int64_t a = 1 + pick(most), b = 1 + pick(most);
        int64_t o = 1 + pick((int)(a < b ? a : b)), k = 1 + pick(9), least;
        double value = plain_similarity(_i, (double)o, (double)a, (double)b);
        enum oj_text_measure measure = (enum oj_text_measure)_i;
        double got = oj_text_similarity(measure, o, a, b);
        struct oj_text_condition at = {measure, 1 + pick(20), 20};
        double limit = (double)at.numerator / (double)at.denominator;
        if (one_in(50))
            at = (struct oj_text_condition){measure, 999999999, 1000000000};
        if (one_in(50))
            at.numerator = 0;
        limit = (double)at.numerator / (double)at.denominator;
        expect(fabs(got - value) <= 2.3e-16, "trial %d", i);
        if (a * k <= 1 << 20 && b * k <= 1 << 20)
            expect(got == oj_text_similarity(measure, o * k, a * k, b * k),
                   "trial %d", i);
        least = oj_text_min_common_tokens(&at, a, b);
        expect(oj_text_is_similar(&at, o, a, b) == (o >= least), "trial %d", i);
        if (fabs(value - limit) > 1e-14)
            expect((o >= least) == (value > limit), "trial %d", i);
        else if (at.numerator > 0 && most == 60)
            expect(o >= least, "trial %d", i);
    }
}

int main(void)
{
    tests_open("token sets");
    return tests_run();
}
