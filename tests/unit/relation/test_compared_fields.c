/* Parsing of -similar, -vector, -on, -exclude and -pick.
 * Kinds: unit. */
#include "../run_tests.h"

#include "../../../algs/foundations/relation/oj_compared_fields.h"

#include <string.h>

/* Texts of conditions. For each the fields of both sides, each followed by a
 * mark, and the threshold T. */
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
    ck_assert_int_eq(
        oj_similar_fields_parse("-", good[_i].word, &similar, &err), OJ_OK);
    check_names(similar.fields[0], good[_i].left);
    check_names(similar.fields[1], good[_i].right);
    ck_assert_int_eq(similar.numerator, good[_i].numerator);
    ck_assert_int_eq(similar.denominator, good[_i].denominator);
    oj_similar_fields_free(&similar);
    oj_similar_fields_free(&similar);
}

TEST_LOOP(unit_bad_words, 0, sizeof bad / sizeof *bad)
{
    struct oj_similar similar = {0};
    struct oj_error err;
    ck_assert_msg(oj_similar_fields_parse("-", bad[_i], &similar, &err) ==
                      OJ_ERR_ARG,
                  "'%s' is taken", bad[_i]);
    ck_assert_ptr_null(strstr(err.message, "(null)"));
    ck_assert_ptr_null(similar.fields[0]);
}

static void check_vector(const char *word, const char *left, const char *right,
                         int n, double first, double second)
{
    struct oj_vector_words words;
    struct oj_error err;
    ck_assert_int_eq(oj_vector_fields_parse("-", word, &words, &err), OJ_OK);
    check_names(words.fields[0], left);
    check_names(words.fields[1], right);
    ck_assert_int_eq(words.n, n);
    ck_assert(words.weight[0] == first);
    ck_assert(n < 2 || words.weight[1] == second);
    oj_vector_fields_free(&words);
    oj_vector_fields_free(&words);
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
        ck_assert_msg(oj_vector_fields_parse("-", words[i], &out, &err) ==
                          OJ_ERR_ARG,
                      "'%s' is taken", words[i]);
    for (size_t i = 0; i < sizeof many; i++)
        many[i] = i % 2 == 0 ? 'a' : '+';
    many[sizeof many - 1] = '\0'; /* 1025 fields */
    ck_assert_int_eq(oj_vector_fields_parse("-", many, &out, &err), OJ_ERR_ARG);
    many[sizeof many - 3] = '\0';
    ck_assert_int_eq(oj_vector_fields_parse("-", many, &out, &err), OJ_OK);
    oj_vector_fields_free(&out);
}

/* Checks the pairs of fields in a list. In expected, each field is followed by
 * its mark. */
static void check_pairs(const char *list, const char *expected)
{
    struct oj_field_pairs pairs;
    struct oj_error err;
    char text[200] = "";
    ck_assert_msg(oj_field_pairs_parse("-", "on", list, &pairs, &err) == OJ_OK,
                  "'%s': %s", list, err.message);
    for (int i = 0; i < pairs.n; i++)
    {
        strcat(strcat(text, pairs.fields[0][i]), "~");
        strcat(strcat(text, pairs.fields[1][i]), "|");
    }
    ck_assert_str_eq(text, expected);
    oj_field_pairs_free(&pairs);
    oj_field_pairs_free(&pairs);
}

TEST(unit_good_field_pairs)
{
    check_pairs("a", "a~a|");
    check_pairs("a=b", "a~b|");
    check_pairs(" a = b , c d=e  f ,g", "a~b|c d~e  f|g~g|");
    check_pairs("a,,b,", "a~a|b~b|");
    check_pairs("\"a=b\"", "a=b~a=b|");
    check_pairs("\"a=b\"=\"c,d\"", "a=b~c,d|");
    check_pairs("\"a=b\" = c , \"x, y\"", "a=b~c|x, y~x, y|");
    check_pairs("\" a \"=\"\"\"\"", " a ~\"|");
    check_pairs("a\"b=c:d+e", "a\"b~c:d+e|");
}

TEST(unit_bad_field_pairs)
{
    static const char *const lists[] = {
        "",    ",",      "=",    "a=",       "=b",       "a=b=c",   "a=,b",
        "\"a", "\"a\"b", "\"\"", "a=\"b\"c", "\"a=\"\"", "\"a\"=\""};
    struct oj_field_pairs out = {0};
    struct oj_error err;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        ck_assert_msg(oj_field_pairs_parse("-", "on", lists[i], &out, &err) ==
                          OJ_ERR_ARG,
                      "'%s' is taken", lists[i]);
    ck_assert_ptr_null(out.text);
}

TEST(unit_field_names)
{
    static const char *const words[][2] = {
        {"a=b", "a=b"},       {"\"a=b\"", "a=b"}, {"say \"x\"", "say \"x\""},
        {"\"\"\"x\"", "\"x"}, {"\"a", NULL},      {"\"a\"b", NULL}};
    struct oj_error err;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    {
        char name[20];
        oj_status status;
        strcpy(name, words[i][0]);
        status = oj_field_name_parse("-", "pick", name, &err);
        ck_assert_int_eq(status, words[i][1] != NULL ? OJ_OK : OJ_ERR_ARG);
        if (words[i][1] != NULL)
            ck_assert_str_eq(name, words[i][1]);
    }
}

TEST(unit_select_names)
{
    static const char *const lists[][2] = {
        {"", ""},
        {" , ,", ""},
        {"a", "a|"},
        {" a , b c ,d", "a|b c|d|"},
        {"a=b,\"c,d\" , \"x,\"\"y\"\"\"", "a=b|c,d|x,\"y\"|"},
        {"a\"b,\" e \"", "a\"b| e |"},
        {"\"\",a,\"\"", "a|"},
        {"a, \"\" ,b", "a|b|"},
        {"\"\"a", NULL},
        {"\"a", NULL},
        {"\"a\"b", NULL},
        {"a,\"b\" c", NULL}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    {
        struct oj_field_pairs names = {0};
        struct oj_error err;
        char text[64] = "";
        const oj_status status =
            oj_field_names_parse("-", "select", lists[i][0], &names, &err);
        ck_assert_int_eq(status, lists[i][1] != NULL ? OJ_OK : OJ_ERR_ARG);
        for (int j = 0; j < names.n; j++)
            strcat(strcat(text, names.fields[0][j]), "|");
        if (lists[i][1] != NULL)
            ck_assert_str_eq(text, lists[i][1]);
        oj_field_pairs_free(&names);
    }
}

TEST(unit_similar_ends)
{
    static const struct
    {
        const char *list;
        size_t end;
    } cases[] = {{"", 0},
                 {"a", 1},
                 {"a,b", 1},
                 {"a:0.6,b", 5},
                 {"\"a,b\"=c:1,d", 9},
                 {"a+\"x,\"\"y\"\"\":3/4,d", 15},
                 {"a\"b,c\"d", 3},
                 {"a=\"b,c", 6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_int_eq(oj_similar_fields_end(cases[i].list) - cases[i].list,
                         (long)cases[i].end);
}

/* An = in a quoted name does not separate the two sides. */
TEST(unit_vector_with_odd_name)
{
    struct oj_vector_words words = {0};
    struct oj_error err;
    ck_assert_int_eq(oj_vector_fields_parse("-", "\"a=b\":2:3", &words, &err),
                     OJ_ERR_ARG);
    ck_assert_ptr_null(strstr(err.message, "weights only on the left"));
    ck_assert_int_eq(oj_vector_fields_parse("-", "\"a=b\"=c:3", &words, &err),
                     OJ_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(err.message, "weights only on the left"));
    ck_assert_int_eq(oj_vector_fields_parse("-", "\"a=b\":2", &words, &err),
                     OJ_OK);
    ck_assert_str_eq(words.fields[1][0], "a=b");
    oj_vector_fields_free(&words);
}

int main(void)
{
    tests_open("compared_fields");
    return tests_run();
}
