/* Kinds: unit. The words of -similar and -vector, as they are written. */
#include "../run_tests.h"

#include "../../../algs/relation/oj_compared_fields.h"

#include <string.h>

/* Each with the fields of both sides, a mark after each, and T. */
static const struct
{
    const char *word, *left, *right;
    int64_t numerator, denominator;
} good[] = {
    {"name", "name|", "name|", 0, 0},
    {"name:0.6", "name|", "name|", 6, 10},
    {"name=NAME:.75", "name|", "NAME|", 75, 100},
    {"a+b=c:3/4", "a|b|", "c|", 3, 4},
    {"a b+c=d+e+f:1", "a b|c|", "d|e|f|", 1, 1},
    {"\"a:b\"+\"c=+\"=\"say \"\"x\"\"\":1.0", "a:b|c=+|", "say \"x\"|", 10, 10},
    {"x:0.123456789", "x|", "x|", 123456789, 1000000000},
    {"x:1.000000000", "x|", "x|", 1000000000, 1000000000},
    {"x:999999999/999999999", "x|", "x|", 999999999, 999999999},
    {"x:0.600", "x|", "x|", 600, 1000},
};

static const char *const bad[] = {
    "",
    ":0.6",
    "=b:0.6",
    "a=:0.6",
    "a+:0.6",
    "+a:0.6",
    "a=b=c:0.6",
    "a:",
    "a:0",
    "a:0.0",
    "a:1.1",
    "a:2",
    "a:4/3",
    "a:1/0",
    "a:0/1",
    "a:/2",
    "a:1/",
    "a:-0.5",
    "a:+0.5",
    "a:0.5 ",
    "a:0,5",
    "a:50%",
    "a:nan",
    "a:inf",
    "a:1e-1",
    "a:0x1",
    "a:.",
    "a:0.5.5",
    "a:0.1234567890",
    "a:0.6:0.7",
    "\"\":1",
    "\"a\"b:1",
    "a:1234567890/1234567891",
    "\"a:1",
};

static void check_names(char **fields, const char *expected)
{
    char text[100] = "";
    for (; *fields != NULL; fields++)
    {
        strcat(text, *fields);
        strcat(text, "|");
    }
    ck_assert_str_eq(text, expected);
}

TEST_LOOP(unit_good_words, 0, sizeof good / sizeof *good)
{
    struct oj_similar similar;
    struct oj_error err;
    ck_assert_int_eq(oj_similar_parse("-", good[_i].word, &similar, &err),
                     OJ_OK);
    check_names(similar.fields[0], good[_i].left);
    check_names(similar.fields[1], good[_i].right);
    ck_assert_int_eq(similar.numerator, good[_i].numerator);
    ck_assert_int_eq(similar.denominator, good[_i].denominator);
    oj_similar_free(&similar);
    oj_similar_free(&similar);
}

TEST_LOOP(unit_bad_words, 0, sizeof bad / sizeof *bad)
{
    struct oj_similar similar = {0};
    struct oj_error err;
    ck_assert_msg(oj_similar_parse("-", bad[_i], &similar, &err) == OJ_ERR_ARG,
                  "'%s' is taken", bad[_i]);
    ck_assert_ptr_null(strstr(err.message, "(null)"));
    ck_assert_ptr_null(similar.fields[0]);
}

static void check_vector(const char *word, const char *left, const char *right,
                         int n, double first, double second)
{
    struct oj_vector_words words;
    struct oj_error err;
    ck_assert_int_eq(oj_vector_parse("-", word, &words, &err), OJ_OK);
    check_names(words.fields[0], left);
    check_names(words.fields[1], right);
    ck_assert_int_eq(words.n, n);
    ck_assert(words.weight[0] == first);
    ck_assert(n < 2 || words.weight[1] == second);
    oj_vector_words_free(&words);
    oj_vector_words_free(&words);
}

TEST(unit_good_vectors)
{
    check_vector("emb", "emb|", "emb|", 1, 1, 0);
    check_vector("price:0.001+area=P+A", "price|area|", "P|A|", 2, 0.001, 1);
    check_vector("a:1e+2+\"b:=\":.5", "a|b:=|", "a|b:=|", 2, 100, 0.5);
}

TEST(unit_bad_vectors)
{
    static const char *const words[] = {
        "",      "a:",    "a:0", "a:-1", "a:inf", "a:nan", "a:1:2", "a+",
        "a+b=c", "a=b:2", "=b",  "a:1x", "a=b=c", "\"a",   "a b:"};
    struct oj_vector_words out = {0};
    struct oj_error err;
    char many[2 * 1025];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        ck_assert_msg(oj_vector_parse("-", words[i], &out, &err) == OJ_ERR_ARG,
                      "'%s' is taken", words[i]);
    for (size_t i = 0; i < sizeof many; i++)
        many[i] = i % 2 == 0 ? 'a' : '+';
    many[sizeof many - 1] = '\0'; /* 1025 fields */
    ck_assert_int_eq(oj_vector_parse("-", many, &out, &err), OJ_ERR_ARG);
    many[sizeof many - 3] = '\0';
    ck_assert_int_eq(oj_vector_parse("-", many, &out, &err), OJ_OK);
    oj_vector_words_free(&out);
}

int main(void)
{
    tests_open("compared_fields");
    return tests_run();
}
