/* The text of -agg: its meaning, the accepted types of fields, the names of
 * results, and messages. Messages are equal for the command and the library,
 * except for the dash of options.
 * Kinds: unit, memory. */
#include "../run_tests.h"

#include "../../../algs/api/rows/oj_aggregate_words.h"
#include "../../../flatten/base/oj_alloc.h"

#include <stdio.h>
#include <string.h>

/* Fields of the join side: one of each kind, and odd names. */
static const struct oj_field_description side[] = {
    {"b", OJ_FIELD_BOOLEAN, 1},      {"h", OJ_FIELD_INT16, 1},
    {"i", OJ_FIELD_INT32, 1},        {"l", OJ_FIELD_INT64, 1},
    {"f", OJ_FIELD_FLOAT32, 1},      {"r", OJ_FIELD_FLOAT64, 1},
    {"t", OJ_FIELD_TEXT, 1},         {"x", OJ_FIELD_BYTES, 1},
    {"d", OJ_FIELD_DATE, 1},         {"c", OJ_FIELD_TIME, 1},
    {"z", OJ_FIELD_DATETIME, 1},     {"is", OJ_FIELD_INT32_LIST, 1},
    {"ls", OJ_FIELD_INT64_LIST, 1},  {"rs", OJ_FIELD_FLOAT64_LIST, 1},
    {"ts", OJ_FIELD_TEXT_LIST, 1},   {"n", OJ_FIELD_NULL, 1},
    {"o", OJ_FIELD_OTHER, 1},        {"odd, \"name\"", OJ_FIELD_INT32, 1},
    {"it's (x)", OJ_FIELD_INT32, 1}, {"count", OJ_FIELD_INT32, 1}};

enum
{
    N_FIELDS = sizeof side / sizeof *side
};

static int find_field(const char *name)
{
    int i = 0;
    while (i < N_FIELDS && strcmp(side[i].name, name) != 0)
        i++;
    return i;
}

/* Binds aggregate i to the field side[column], or to no field if column is -1.
 * Weights are the values of the field r. */
static oj_status bind_aggregate(struct oj_aggregate_words *words, int i,
                                int column, struct oj_error *err)
{
    const int weight = find_field("r");
    const struct oj_aggregate_operand values = {OJ_COLUMN_JOIN, column,
                                                column >= 0 ? side[column].kind
                                                            : OJ_FIELD_NULL};
    const struct oj_aggregate_operand weights = {OJ_COLUMN_JOIN, weight,
                                                 side[weight].kind};
    return oj_aggregate_words_bind(words, i, &values, &weights, err);
}

static oj_status read_words(const char *dash, const char *text,
                            struct oj_aggregate_words *words,
                            struct oj_error *err)
{
    oj_status status = oj_aggregate_words_parse(dash, text, words, err);
    for (int i = 0; status == OJ_OK && i < words->n; i++)
    {
        const char *name = words->word[i].field;
        int column = name != NULL ? find_field(name) : -1;
        if (column == N_FIELDS)
            status = oj_fail(err, OJ_ERR_ARG, "no field %s", name);
        else
            status = bind_aggregate(words, i, column, err);
        if (status != OJ_OK)
            oj_aggregate_words_free(words);
    }
    return status;
}

/* Writes each aggregate as "name=kind of aggregate:kind of column[:index of its
 * values]". */
static void describe(const struct oj_aggregate_words *words, char *out,
                     size_t size)
{
    size_t n = 0;
    out[0] = '\0';
    for (int i = 0; i < words->n && n < size; i++)
    {
        const struct oj_aggregate_word *word = &words->word[i];
        n += (size_t)snprintf(
            out + n, size - n, "%s%s=%s%s:%s", i > 0 ? " " : "", word->name,
            word->function->name,
            words->aggregates[i].kind == OJ_AGG_COUNT_VALUES ? "_values" : "",
            oj_field_kind_name(word->kind));
        if (word->field != NULL && n < size)
            n += (size_t)snprintf(out + n, size - n, ":%d",
                                  words->aggregates[i].column);
    }
}

static const char *const meanings[][2] = {
    {"count", "count=count:Integer64"},
    {" COUNT ( * ) ", "count=count:Integer64"},
    {"count(t)", "count_t=count_values:Integer64:0"},
    {"count as n,count(\"*\")as\"a \"\"b\"\"\"",
     "n=count:Integer64 a \"b\"=count:Integer64"},
    {"sum(i), sum(r) AS total", "sum_i=sum:Integer64:0 total=sum:Real:1"},
    {"avg(i),mean(b)", "mean_i=mean:Real:0 mean_b=mean:Real:1"},
    {"min(b),max(h),mode(f),first(t),last(z)",
     "min_b=min:Integer:0 max_h=max:Integer:1 mode_f=mode:Real:2 "
     "first_t=first:String:3 last_z=last:DateTime:4"},
    {"sum(i),max(i),count(i)",
     "sum_i=sum:Integer64:0 max_i=max:Integer:0 count_i=count_values:Integer64:"
     "0"},
    {"count(z),max(z),concat(z)",
     "count_z=count_values:Integer64:0 max_z=max:DateTime:1 "
     "concat_z=concat:String:2"},
    {"concat(i),concat(i, ', ') as again",
     "concat_i=concat:String:0 again=concat:String:0"},
    {"unique(c),median(b),stddev(l),weighted_sum(f)",
     "unique_c=unique:Integer64:0 median_b=median:Real:1 "
     "stddev_l=stddev:Real:2 weighted_sum_f=weighted_sum:Real:3"},
    {"sum(\"odd, \"\"name\"\"\"), max('it''s (x)') as 'it''s'",
     "sum_odd, \"name\"=sum:Integer64:0 it's=max:Integer:1"},
    {"count(count) as asc", "asc=count_values:Integer64:0"},
    {"first(n),sum(n),mean(n),concat(n),unique(n)",
     "first_n=first:without any value:0 sum_n=sum:Integer64:0 "
     "mean_n=mean:Real:0 "
     "concat_n=concat:String:1 unique_n=unique:Integer64:0"},
    {"percentile(r, 90),Percentile( i ,99.9 ),q1(r),q3(\"i\") as q",
     "percentile_r_90=percentile:Real:0 percentile_i_99_9=percentile:Real:1 "
     "q1_r=q1:Real:0 q=q3:Real:1"},
    {"range(i),range(r),variance(h),minority(t)",
     "range_i=range:Integer64:0 range_r=range:Real:1 "
     "variance_h=variance:Real:2 minority_t=minority:String:3"},
    {"weighted_mean(i),weighted_mean(i, r) as w",
     "weighted_mean_i=weighted_mean:Real:0 w=weighted_mean:Real:0"},
    {"covered_area,Covered_Percent as p,covered_length",
     "covered_area=covered_area:Real p=covered_percent:Real "
     "covered_length=covered_length:Real"},
    {"count(o),count(x),count(is),count(n)",
     "count_o=count_values:Integer64:0 count_x=count_values:Integer64:1 "
     "count_is=count_values:Integer64:2 count_n=count_values:Integer64:3"},
};

TEST_LOOP(unit_what_words_mean, 0, sizeof meanings / sizeof *meanings)
{
    struct oj_aggregate_words words;
    struct oj_error err;
    char text[1000];
    if (read_words("-", meanings[_i][0], &words, &err) != OJ_OK)
        ck_abort_msg("%s: %s", meanings[_i][0], err.message);
    describe(&words, text, sizeof text);
    ck_assert_str_eq(text, meanings[_i][1]);
    oj_aggregate_words_free(&words);
}

TEST(unit_what_pairs_need)
{
    struct oj_aggregate_words words;
    struct oj_error err;
    ck_assert_int_eq(
        read_words("", "count, sum(i), concat(t, '; ')", &words, &err), OJ_OK);
    ck_assert_int_eq(words.needs_places, 1);
    ck_assert_int_eq(words.has_weighted_sum, 0);
    ck_assert_str_eq(words.aggregates[2].separator, "; ");
    ck_assert_int_eq(words.n_fields, 2);
    ck_assert_int_eq((int)words.fields[0].form, OJ_FORM_NUMBER);
    ck_assert_int_eq((int)words.fields[1].form, OJ_FORM_TEXT);
    ck_assert_int_eq(words.fields[1].column, find_field("t"));
    ck_assert_int_eq((int)words.types[0], OJ_AGG_INTEGER);
    ck_assert_int_eq((int)words.types[1], OJ_AGG_BYTES);
    oj_aggregate_words_free(&words);
    ck_assert_int_eq(read_words("", "weighted_sum(r) as w, min(z), concat(ts)",
                                &words, &err),
                     OJ_OK);
    ck_assert_int_eq(words.has_weighted_sum, 1);
    ck_assert_int_eq(words.word[0].is_named, 1);
    ck_assert_int_eq(words.word[0].gives_value, 0);
    ck_assert_int_eq(words.word[1].is_named, 0);
    ck_assert_int_eq(words.word[1].gives_value, 1);
    ck_assert_int_eq((int)words.fields[1].form, OJ_FORM_TIME);
    ck_assert_int_eq((int)words.fields[2].form, OJ_FORM_WRITTEN);
    ck_assert_str_eq(words.aggregates[2].separator, ", ");
    oj_aggregate_words_free(&words);
    ck_assert_int_eq(read_words("", "count, max(i)", &words, &err), OJ_OK);
    ck_assert_int_eq(words.needs_places, 0);
    oj_aggregate_words_free(&words);
}

/* For each function, one character for each of the first fields of `side`: y if
 * the function accepts the kind of the field, a dot if it refuses it. */
static const char *const takes[][2] = {
    {"count", "yyyyyyyyyyyyyyyyy"},    {"sum", "yyyyyy.........y."},
    {"mean", "yyyyyy.........y."},     {"median", "yyyyyy.........y."},
    {"stddev", "yyyyyy.........y."},   {"weighted_sum", "yyyyyy.........y."},
    {"variance", "yyyyyy.........y."}, {"weighted_mean", "yyyyyy.........y."},
    {"q1", "yyyyyy.........y."},       {"range", "yyyyyy.........y."},
    {"minority", "yyyyyyy.yyy....y."}, {"min", "yyyyyyy.yyy....y."},
    {"max", "yyyyyyy.yyy....y."},      {"first", "yyyyyyy.yyy....y."},
    {"last", "yyyyyyy.yyy....y."},     {"mode", "yyyyyyy.yyy....y."},
    {"unique", "yyyyyyy.yyy....y."},   {"concat", "yyyyyyy.yyyyyyyy."}};

TEST_LOOP(unit_which_kinds_functions_take, 0, sizeof takes / sizeof *takes)
{
    for (int f = 0; takes[_i][1][f] != '\0'; f++)
    {
        struct oj_aggregate_words words;
        struct oj_error err;
        char text[100];
        snprintf(text, sizeof text, "%s(%s)", takes[_i][0], side[f].name);
        if (read_words("", text, &words, &err) == OJ_OK)
        {
            ck_assert_msg(takes[_i][1][f] == 'y', "%s is taken", text);
            oj_aggregate_words_free(&words);
        }
        else
        {
            ck_assert_msg(takes[_i][1][f] == '.', "%s: %s", text, err.message);
            ck_assert_msg(strstr(err.message, " needs ") != NULL, "%s",
                          err.message);
        }
    }
}

#define THERE_ARE "; there are " OJ_AGGREGATE_NAMES

#define NAME_IS_MISSING                                                        \
    "the name after \"as\" is missing: write it, as in \"count as n\""

static const char *const refused[][2] = {
    {"", "a function is missing" THERE_ARE},
    {"count,", "a function is missing" THERE_ARE},
    {",count", "a function is missing" THERE_ARE},
    {"summe(i)", "there is no function 'summe'" THERE_ARE},
    {"sum", "sum needs a field, as in sum(F)"},
    {"sum()", "sum() needs the name of a field between its brackets"},
    {"sum(i", "the bracket of sum is not closed in sum(i"},
    {"sum(\"i\" r)", "sum has 'r)' where its closing bracket should be"},
    {"sum(\"i)", "the quote \" is not closed in sum(\"i)"},
    {"sum(i, r)", "sum takes one field; a field whose name has a comma goes in "
                  "double quotes"},
    {"concat(t, ;)", "the separator of concat must be in quotes, as in "
                     "concat(name, '; ')"},
    {"concat(t, ';', 1)", "concat takes one field and a separator; a field "
                          "whose name has a comma goes in double quotes"},
    {"stdev(i)", "there is no function 'stdev'; write stddev"},
    {"Count_Distinct(i)",
     "there is no function 'Count_Distinct'; write unique"},
    {"nunique(i)", "there is no function 'nunique'; write unique"},
    {"average(i)", "there is no function 'average'; write mean"},
    {"majority(i)", "there is no function 'majority'; write mode"},
    {"quantile(i, 0.5)", "there is no function 'quantile'; write percentile(F, "
                         "90), from 0 to 100"},
    {"percentile", "percentile needs a field, as in percentile(F, 90)"},
    {"percentile(i)", "percentile needs a number from 0 to 100 after the "
                      "field, as in percentile(F, 90)"},
    {"percentile(i, 101)", "percentile needs a number from 0 to 100 after the "
                           "field, as in percentile(F, 90)"},
    {"percentile(i, nan)", "percentile needs a number from 0 to 100 after the "
                           "field, as in percentile(F, 90)"},
    {"percentile(i, 0x10)", "percentile needs a number from 0 to 100 after the "
                            "field, as in percentile(F, 90)"},
    {"percentile(i, 9in)", "percentile needs a number from 0 to 100 after the "
                           "field, as in percentile(F, 90)"},
    {"percentile(i, 1, 2)", "percentile takes one field and one number; a "
                            "field whose name has a comma goes in double "
                            "quotes"},
    {"percentile(i, 1", "the bracket of percentile is not closed in "
                        "percentile(i, 1"},
    {"covered_area(i)",
     "covered_area takes no field, because it measures the input "
     "feature: write it without brackets"},
    {"q1(i, 1)", "q1 takes one field; a field whose name has a comma goes in "
                 "double quotes"},
    {"weighted_mean(i,)", "weighted_mean names no column after the comma: "
                          "name the weights, or leave the comma out to weight "
                          "by the size of the overlap"},
    {"weighted_mean(i, r, r)", "weighted_mean takes a field and a column of "
                               "weights; a field whose name has a comma goes "
                               "in double quotes"},
    {"range(d)", "range(d) needs numbers; the field is Date"},
    {"count as", NAME_IS_MISSING},
    {"count as ", NAME_IS_MISSING},
    {"count as ,sum(i)", NAME_IS_MISSING},
    {"count as \"\"", NAME_IS_MISSING},
    {"count sum(i)", "write a comma between aggregates, before \"sum(i)\""},
    {"sum(i) total", "write a comma between aggregates, before \"total\""},
    {"sum(i),max(r) as SUM_I",
     "two columns would be called 'SUM_I'; name one of them, as in "
     "\"max(..) as NAME\""},
    {"sum(d)", "sum(d) needs numbers; the field is Date"},
    {"max(x)",
     "max(x) needs numbers, texts, dates or times; the field is Binary"},
    {"concat(x)",
     "concat(x) needs a text, numbers, dates or a list; the field is Binary"},
};

TEST_LOOP(unit_words_that_are_refused, 0, sizeof refused / sizeof *refused)
{
    static const char *const dashes[] = {"-", ""};
    for (int i = 0; i < 2; i++)
    {
        struct oj_aggregate_words words;
        struct oj_error err = {OJ_OK, ""};
        char expected[1000];
        snprintf(expected, sizeof expected, "%sagg: %s", dashes[i],
                 refused[_i][1]);
        ck_assert_int_eq(read_words(dashes[i], refused[_i][0], &words, &err),
                         OJ_ERR_ARG);
        ck_assert_str_eq(err.message, expected);
    }
}

/* Messages give advice for texts that look like numbers. */
TEST(unit_numbers_in_texts)
{
    struct oj_aggregate_words words;
    struct oj_error err;
    ck_assert_int_eq(read_words("-", "sum(t)", &words, &err), OJ_ERR_ARG);
    ck_assert_str_eq(err.message,
                     "-agg: sum(t) needs numbers; the field is String, which "
                     "-join_sql can CAST; of CSV files -joo "
                     "AUTODETECT_TYPE=YES tells the types");
    ck_assert_int_eq(read_words("", "sum(t)", &words, &err), OJ_ERR_ARG);
    ck_assert_str_eq(err.message, "agg: sum(t) needs numbers; the field is "
                                  "String, which can be cast");
}

TEST(memory_each_allocation_fails)
{
    oj_status status = OJ_ERR_NOMEM;
    for (int64_t n = 1; status != OJ_OK; n++)
    {
        struct oj_aggregate_words words;
        struct oj_error err;
        oj_alloc_fail_at(n);
        status = read_words("-", "count, sum(i)", &words, &err);
        oj_alloc_fail_at(0);
        ck_assert(status == OJ_OK || status == OJ_ERR_NOMEM);
        if (status == OJ_OK)
            oj_aggregate_words_free(&words);
    }
}

int main(void)
{
    tests_open("aggregate_words");
    return tests_run();
}
