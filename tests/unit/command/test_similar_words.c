/* Kinds: unit. The words of -similar, as they are written. */
#include "../run_tests.h"

#include "../../../driver/command/oj_similar.h"

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
    ck_assert_int_eq(oj_similar_parse(good[_i].word, &similar, &err), OJ_OK);
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
    ck_assert_msg(oj_similar_parse(bad[_i], &similar, &err) == OJ_ERR_ARG,
                  "'%s' is taken", bad[_i]);
    ck_assert_ptr_null(strstr(err.message, "(null)"));
    ck_assert_ptr_null(similar.fields[0]);
}

int main(void)
{
    tests_open("similar");
    return tests_run();
}
