/* Parsing of how, pick, overlap and geometry, and the scores of picked values.
 * Kind: unit. */
#include "../run_tests.h"

#include "../../../algs/api/rows/oj_row_words.h"
#include "../../../algs/pairs/values/oj_pick.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_word_list.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct oj_error error;

TEST(unit_words_are_in_the_order_of_their_enums)
{
    static const struct
    {
        const char *word;
        int place;
    } hows[] = {{"left", OJ_HOW_LEFT},   {"inner", OJ_HOW_INNER},
                {"semi", OJ_HOW_SEMI},   {"ANTI", OJ_HOW_ANTI},
                {"right", OJ_HOW_RIGHT}, {"full", OJ_HOW_FULL}},
      geometries[] = {{"input", OJ_WRITE_INPUT},
                      {"join", OJ_WRITE_JOIN},
                      {"nearest_point", OJ_WRITE_NEAREST_POINT},
                      {"connection", OJ_WRITE_CONNECTION},
                      {"intersection", OJ_WRITE_SHAPE}};
    for (size_t i = 0; i < sizeof hows / sizeof *hows; i++)
        ck_assert_int_eq(oj_words_find(OJ_HOW_WORDS, hows[i].word),
                         hows[i].place);
    for (size_t i = 0; i < sizeof geometries / sizeof *geometries; i++)
        ck_assert_int_eq(
            oj_words_find(OJ_ROW_GEOMETRY_WORDS, geometries[i].word),
            geometries[i].place);
}

/* ---- pick -----------------------------------------------------------------
 */

TEST(unit_rules_of_pick)
{
    static const struct
    {
        const char *rule;
        enum oj_pick_rule expected;
        const char *field;
        int is_least;
    } cases[] = {
        {"first", OJ_PICK_FIRST, NULL, 0},
        {"Nearest", OJ_PICK_NEAREST, NULL, 0},
        {"largest_overlap", OJ_PICK_LARGEST_OVERLAP, NULL, 0},
        {"smallest_area", OJ_PICK_SMALLEST_AREA, NULL, 0},
        {"largest_area", OJ_PICK_LARGEST_AREA, NULL, 0},
        {"most_similar", OJ_PICK_MOST_SIMILAR, NULL, 0},
        {"max:pop", OJ_PICK_SCORE, "pop", 0},
        {"MIN:Pop", OJ_PICK_SCORE, "Pop", 1},
        {"min:\"a:\"\"b\"\"\"", OJ_PICK_SCORE, "a:\"b\"", 1},
        {"max:", OJ_PICK_SCORE, "", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
        struct oj_row_pick pick = {0};
        ck_assert_msg(oj_row_pick_read("-", cases[i].rule, &pick, &error) ==
                          OJ_OK,
                      "%s: %s", cases[i].rule, error.message);
        ck_assert_int_eq(pick.rule, cases[i].expected);
        ck_assert_int_eq(pick.is_least, cases[i].is_least);
        if (cases[i].field == NULL)
            ck_assert_ptr_null(pick.field);
        else
            ck_assert_str_eq(pick.field, cases[i].field);
        oj_row_pick_free(&pick);
        ck_assert_ptr_null(pick.field);
    }
}

/* The parser accepts every word that shell completion offers. */
TEST(unit_words_of_pick_are_rules)
{
    const char *word;
    int n;
    for (int i = 0; (word = oj_words_at(OJ_PICK_WORDS, i, &n)) != NULL; i++)
    {
        struct oj_row_pick pick = {0};
        char rule[40];
        snprintf(rule, sizeof rule, "%.*s%s", n, word,
                 word[n - 1] == ':' ? "f" : "");
        ck_assert_msg(oj_row_pick_read("", rule, &pick, &error) == OJ_OK, "%s",
                      rule);
        oj_row_pick_free(&pick);
    }
}

TEST(unit_what_is_no_rule)
{
    static const struct
    {
        const char *dash, *rule, *message;
    } cases[] = {
        {"-", "best",
         "-pick best: there is no such rule; write first, nearest, "
         "largest_overlap, smallest_area, largest_area, most_similar, "
         "max:FIELD or min:FIELD"},
        {"", "all",
         "pick all: there is no such rule; write first, nearest, "
         "largest_overlap, smallest_area, largest_area, most_similar, "
         "max:FIELD or min:FIELD"},
        {"", "max:\"a",
         "pick: a field name that begins with a double quote must end with "
         "one; "
         "write a double quote inside it twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
        struct oj_row_pick pick = {0};
        ck_assert_int_eq(
            oj_row_pick_read(cases[i].dash, cases[i].rule, &pick, &error),
            OJ_ERR_ARG);
        ck_assert_str_eq(error.message, cases[i].message);
        ck_assert_ptr_null(pick.field);
    }
}

TEST(unit_fields_that_pick_takes)
{
    for (int kind = OJ_FIELD_BOOLEAN; kind <= OJ_FIELD_OTHER; kind++)
    {
        const struct oj_field_description field = {"f",
                                                   (enum oj_field_kind)kind, 1};
        int fits = kind <= OJ_FIELD_FLOAT64 || kind == OJ_FIELD_DATE ||
                   kind == OJ_FIELD_TIME || kind == OJ_FIELD_DATETIME ||
                   kind == OJ_FIELD_NULL;
        ck_assert_int_eq(oj_row_pick_check_field("-", &field, &error),
                         fits ? OJ_OK : OJ_ERR_ARG);
    }
    {
        const struct oj_field_description field = {"f", OJ_FIELD_TEXT, 1};
        ck_assert_int_eq(oj_row_pick_check_field("-", &field, &error),
                         OJ_ERR_ARG);
        ck_assert_str_eq(error.message,
                         "-pick: the field 'f' of the join layer is of type "
                         "String; max and min take numbers, dates and times");
    }
}

/* Scores have the order of the values, or the reverse order for min. A missing
 * value comes last in both. */
TEST_LOOP(property_scores_are_ordered, 0, 2)
{
    const struct oj_plain_value integers[] = {
        oj_plain_integer(INT64_MIN + 1), oj_plain_integer(-5),
        oj_plain_integer(0), oj_plain_integer(INT64_MAX)};
    const struct oj_plain_value reals[] = {oj_plain_real((double)-INFINITY),
                                           oj_plain_real(-1.5),
                                           oj_plain_real(-1e-300),
                                           oj_plain_real(0.0),
                                           oj_plain_real(2.5),
                                           oj_plain_real((double)INFINITY)};
    const struct oj_plain_value missing[] = {
        {.form = OJ_PLAIN_NULL},
        {.form = OJ_PLAIN_REAL, .real = (double)NAN},
        {.form = OJ_PLAIN_TEXT, .text = "7", .n = 1}};
    const struct oj_row_pick pick = {OJ_PICK_SCORE, NULL, _i};
    for (int i = 0; i < 3; i++)
        ck_assert((oj_row_pick_score(&pick, &integers[i]) <
                   oj_row_pick_score(&pick, &integers[i + 1])) == !_i);
    for (int i = 0; i < 5; i++)
        ck_assert((oj_row_pick_score(&pick, &reals[i]) <
                   oj_row_pick_score(&pick, &reals[i + 1])) == !_i);
    for (int i = 0; i < 3; i++)
        ck_assert(oj_row_pick_score(&pick, &missing[i]) == OJ_NO_SCORE);
    for (int i = 0; i < 6; i++)
        ck_assert(oj_row_pick_score(&pick, &reals[i]) > OJ_NO_SCORE);
}

TEST(memory_pick)
{
    struct oj_row_pick pick = {0};
    oj_alloc_fail_at(1);
    ck_assert_int_eq(oj_row_pick_read("-", "max:f", &pick, &error),
                     OJ_ERR_NOMEM);
    oj_alloc_fail_at(0);
    ck_assert_ptr_null(pick.field);
}

/* ---- overlap and geometry -------------------------------------------------
 */

TEST(unit_lists_of_overlap)
{
    static const struct
    {
        const char *list;
        int area, length, percent;
    } cases[] = {{"area", 1, 0, 0},
                 {"area,length,percent", 1, 1, 1},
                 {"  Percent , AREA,", 1, 0, 1},
                 {",,length,length", 0, 1, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
        unsigned char want[OJ_N_PAIR_VALUES] = {0};
        ck_assert_int_eq(oj_row_overlap_read("-", cases[i].list, want, &error),
                         OJ_OK);
        ck_assert_int_eq(want[OJ_PAIR_OVERLAP_AREA], cases[i].area);
        ck_assert_int_eq(want[OJ_PAIR_OVERLAP_LENGTH], cases[i].length);
        ck_assert_int_eq(want[OJ_PAIR_OVERLAP_PERCENT], cases[i].percent);
    }
}

TEST(unit_what_is_no_overlap)
{
    static const char *const lists[] = {"", " ,", "areas", "area length",
                                        "area,a_word_that_is_far_too_long"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    {
        unsigned char want[OJ_N_PAIR_VALUES] = {0};
        ck_assert_int_eq(oj_row_overlap_read("-", lists[i], want, &error),
                         OJ_ERR_ARG);
        ck_assert_ptr_nonnull(strstr(error.message, "-overlap "));
    }
}

TEST(unit_what_geometries_need)
{
    for (int geometry = OJ_WRITE_INPUT; geometry <= OJ_WRITE_SHAPE; geometry++)
    {
        struct oj_pair_request request = {0};
        int is_point = geometry == OJ_WRITE_NEAREST_POINT;
        int is_line = geometry == OJ_WRITE_CONNECTION;
        oj_row_request_geometry_values((enum oj_write_geometry)geometry,
                                       &request);
        ck_assert_int_eq(request.want[OJ_PAIR_NEAREST_X], is_point || is_line);
        ck_assert_int_eq(request.want[OJ_PAIR_NEAREST_Y], is_point || is_line);
        ck_assert_int_eq(request.want[OJ_PAIR_FROM_X], is_line);
        ck_assert_int_eq(request.want[OJ_PAIR_FROM_Y], is_line);
        ck_assert_int_eq(request.want_shapes, geometry == OJ_WRITE_SHAPE);
    }
}

int main(void)
{
    tests_open("row words");
    return tests_run();
}
