/* Options that clash, in the syntax of the command and in that of other
 * callers. Also the number of output rows per input row.
 * Kind: unit. */
#include "../run_tests.h"

#include "../../../algs/api/rows/oj_option_clash.h"
#include "../../../algs/api/rows/oj_rows_per_input.h"

#include <stdio.h>
#include <string.h>

/* Returns the word of an option in "name=word;name=word;", or NULL. */
static const char *word_in_list(const void *user, const char *name)
{
    static char word[64];
    const size_t n = strlen(name);
    for (const char *at = user; *at != '\0'; at += strcspn(at, ";") + 1)
    {
        if (strncmp(at, name, n) != 0 || at[n] != '=')
            continue;
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at + n + 1, ";"),
                 at + n + 1);
        return word;
    }
    return NULL;
}

/* Writes an option as an argument of Python. */
static void spell_as_argument(const void *user, const char *name,
                              const char *word, char *text, size_t size)
{
    (void)user;
    if (word == NULL)
        snprintf(text, size, "%s", name);
    else
        snprintf(text, size, "%s='%s'", name, word);
}

static struct oj_relation relation_of(enum oj_op op, int64_t k,
                                      enum oj_ties ties)
{
    struct oj_relation relation = {0};
    relation.op = op;
    relation.k = k;
    relation.ties = ties;
    return relation;
}

/* Checks the message for a list of options. as_arguments 1: the message names
 * them as arguments of a function. expected is "" if there must be no
 * message. */
static void check_message(const char *list, const struct oj_relation *relation,
                          int as_arguments, const char *expected)
{
    struct oj_given_options given = {.relation = relation,
                                     .op = oj_op_get(relation->op)->name,
                                     .word = word_in_list,
                                     .spell = as_arguments ? spell_as_argument
                                                           : NULL,
                                     .user = list};
    struct oj_error err = {OJ_OK, ""};
    const oj_status status = oj_option_clash_check(&given, &err);
    ck_assert_str_eq(err.message, expected);
    ck_assert_int_eq(status, expected[0] == '\0' ? OJ_OK : OJ_ERR_ARG);
}

TEST(words_of_the_command)
{
    const struct oj_relation nearest =
        relation_of(OJ_OP_NEAREST, 1, OJ_TIES_FIRST);
    const struct oj_relation three =
        relation_of(OJ_OP_NEAREST, 3, OJ_TIES_FIRST);
    const struct oj_relation ties = relation_of(OJ_OP_NEAREST, 1, OJ_TIES_ALL);
    const struct oj_relation meets =
        relation_of(OJ_OP_INTERSECTS, 0, OJ_TIES_FIRST);
    const struct
    {
        const char *list;
        const struct oj_relation *relation;
        const char *expected;
    } cases[] = {
        {"", &nearest, ""},
        {"pick=first;", &meets, ""},
        {"pick=first;agg=count;", &meets,
         "-pick and -agg do not go together: leave one out, because each "
         "reduces the pairs of an input row to one row"},
        {"how=semi;", &meets, ""},
        {"how=semi;prefix=p;", &meets,
         "-prefix and -how semi do not go together: leave one out, because "
         "only the input layer's geometry and fields are written"},
        {"agg=count;how=inner;", &meets, ""},
        {"agg=count;how=full;", &meets,
         "-agg gives one row for each input row: write -how left, or -how "
         "inner for the rows with pairs only"},
        {"agg=count;name_count=n;", &meets,
         "-agg names its own columns: leave -name_count out and write \"count "
         "as n\" in -agg"},
        {"explain=;validate=geos;", &meets,
         "-explain and -validate do not go together: leave one out, because "
         "-explain only shows the plan, and nothing is joined"},
        {"heading=h;", &nearest, ""},
        {"heading=h;distance_to=boundary;", &nearest, ""},
        {"heading=h;distance=frechet;", &nearest,
         "-heading selects segments, and -distance frechet compares whole "
         "shapes: leave one of them out"},
        {"heading=h;metric=sphere;max_distance=1;", &nearest,
         "-heading is a direction in the plane: leave -metric sphere out, and "
         "join in a projected CRS"},
        {"heading=h;distance_to=interior;", &nearest,
         "-heading measures to lines and rings, also from points inside of a "
         "polygon: write -distance_to boundary, or leave -distance_to out"},
        {"name_rank=r;", &three, ""},
        {"name_rank=r;", &ties, ""},
        {"name_rank=;", &nearest, ""},
        {"name_rank=r;", &nearest,
         "-name_rank needs several pairs per input row that are ordered by "
         "distance or similarity: -op nearest or similar with -k above 1 or "
         "-ties all, and without -pick"},
        {"name_rank=r;pick=first;", &three,
         "-name_rank needs several pairs per input row that are ordered by "
         "distance or similarity: -op nearest or similar with -k above 1 or "
         "-ties all, and without -pick"},
        {"name_rank=r;pick=ALL;", &three, ""},
        {"name_distance=d;", &meets,
         "-name_distance: -op intersects measures no distance; leave the "
         "option out"},
        {"name_distance=d;", &nearest, ""},
        {"pick=most_similar;", &meets,
         "-pick most_similar needs -similar or -vector"},
        {"pick=most_similar;similar=;", &meets, ""},
        {"pick=most_similar;vector=v;", &meets, ""},
        {"in_place=;", &nearest, ""},
        {"in_place=;how=inner;", &nearest,
         "-in_place keeps every row of the layer: write -how left, or leave "
         "-how out"},
        {"in_place=;", &meets,
         "-in_place has room for one join feature per row, and -op intersects "
         "can find several: choose one with -pick, for example -pick first, or "
         "with -one_to_one, or add them up with -agg"},
        {"in_place=;pick=all;", &three,
         "-in_place has room for one join feature per row: write -k 1, or "
         "reduce several to one with -pick, -one_to_one or -agg"},
        {"in_place=;", &ties,
         "-in_place has room for one join feature per row: write -ties first, "
         "or reduce several to one with -pick, -one_to_one or -agg"},
        {"in_place=;one_to_one=;", &meets, ""},
        {"in_place=;agg=count;", &ties, ""},
        {"centroid_of=input;point_on_surface_of=join;", &meets, ""},
        {"centroid_of=both;point_on_surface_of=join;", &meets,
         "-centroid_of and -point_on_surface_of both replace the features of "
         "the join side by points: name this side in one of them only"},
        {"distance_to=boundary;metric=sphere;", &nearest,
         "-distance_to boundary is possible with -metric planar only: leave "
         "one of them out"},
        {"distance_to=interior;metric=sphere;", &nearest, ""},
        {"metric=sphere;validate=geos;", &nearest,
         "-validate geos: this reference measures in the plane, as GEOS does; "
         "that of -metric sphere is -validate sphere"},
        {"validate=sphere;", &nearest,
         "-validate sphere: this reference is for -metric sphere; in the plane "
         "it is -validate geos"},
        {"metric=ellipsoid;validate=sphere;", &nearest,
         "-validate sphere: this reference does not measure on the ellipsoid; "
         "that of -metric ellipsoid is -validate ellipsoid"},
        {"metric=sphere;validate=ellipsoid;", &nearest,
         "-validate ellipsoid: this reference is for -metric ellipsoid; that "
         "of "
         "-metric sphere is -validate sphere"},
        {"validate=ellipsoid;", &nearest,
         "-validate ellipsoid: this reference is for -metric ellipsoid; in the "
         "plane it is -validate geos"},
        {"distance=hausdorff;bearing_field=;", &nearest,
         "-bearing_field and -distance hausdorff do not go together: leave one "
         "out, because only -distance least has nearest points"},
        {"distance=least;bearing_field=;", &nearest, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_message(cases[i].list, cases[i].relation, 0, cases[i].expected);
}

/* Messages to the library and Python name options as settings: how='anti', not
 * -how anti. */
TEST(words_of_another_caller)
{
    const struct oj_relation nearest =
        relation_of(OJ_OP_NEAREST, 1, OJ_TIES_FIRST);
    check_message(
        "pick=first;one_to_one=;", &nearest, 1,
        "pick and one_to_one do not go together: leave one out, because each "
        "reduces the pairs of an input row to one row");
    check_message(
        "how=anti;agg=count;", &nearest, 1,
        "agg and how='anti' do not go together: leave one out, because only "
        "the input layer's geometry and fields are written");
    check_message("pick=most_similar;", &nearest, 1,
                  "pick='most_similar' needs similar or vector");
    check_message(
        "agg=sum(a);name_count=n;", &nearest, 1,
        "agg names its own columns: leave name_count out and write \"count "
        "as n\" in agg");
    check_message(
        "metric=sphere;validate=geos;", &nearest, 1,
        "validate='geos': this reference measures in the plane, as GEOS "
        "does; that of metric='sphere' is validate='sphere'");
}

/* A message that is longer than its buffer is truncated. */
TEST(long_words)
{
    const struct oj_relation meets =
        relation_of(OJ_OP_INTERSECTS, 0, OJ_TIES_FIRST);
    static char name[3000];
    struct oj_given_options given = {.relation = &meets,
                                     .op = name,
                                     .word = word_in_list,
                                     .user = "in_place=;"};
    struct oj_error err = {OJ_OK, ""};
    memset(name, 'x', sizeof name - 1);
    ck_assert_int_eq(oj_option_clash_check(&given, &err), OJ_ERR_ARG);
    ck_assert_int_lt((int)strlen(err.message), 1024);
    ck_assert_ptr_nonnull(strstr(err.message, "xxxx"));
}

TEST(rows_per_input)
{
    static const struct oj_row_choice all = {.how = OJ_HOW_LEFT};
    static const struct oj_row_choice one[] = {{.how = OJ_HOW_SEMI},
                                               {.how = OJ_HOW_ANTI},
                                               {.picks = 1},
                                               {.one_to_one = 1},
                                               {.aggregates = 1}};
    for (int op = 0; op < OJ_N_OPS; op++)
    {
        const int has_k = (oj_op_get((enum oj_op)op)->takes & OJ_TAKES_K) != 0;
        const struct oj_relation first =
            relation_of((enum oj_op)op, 1, OJ_TIES_FIRST);
        const struct oj_relation three =
            relation_of((enum oj_op)op, 3, OJ_TIES_FIRST);
        const struct oj_relation ties =
            relation_of((enum oj_op)op, 1, OJ_TIES_ALL);
        const struct oj_relation every =
            relation_of((enum oj_op)op, OJ_EVERY_PAIR, OJ_TIES_FIRST);
        ck_assert_int_eq(oj_rows_per_input_find(&first, &all),
                         has_k ? OJ_ROWS_ONE : OJ_ROWS_SEVERAL);
        ck_assert_int_eq(oj_rows_per_input_find(&three, &all),
                         has_k ? OJ_ROWS_SEVERAL_BY_K : OJ_ROWS_SEVERAL);
        ck_assert_int_eq(oj_rows_per_input_find(&ties, &all),
                         has_k ? OJ_ROWS_SEVERAL_BY_TIES : OJ_ROWS_SEVERAL);
        ck_assert_int_eq(oj_rows_per_input_have_rank(&first, &all), 0);
        ck_assert_int_eq(oj_rows_per_input_have_rank(&three, &all), has_k);
        ck_assert_int_eq(oj_rows_per_input_have_rank(&every, &all),
                         op == OJ_OP_NEAREST);
        for (int i = 0; i < 5; i++)
        {
            ck_assert_int_eq(oj_rows_per_input_find(&ties, &one[i]),
                             OJ_ROWS_ONE);
            ck_assert_int_eq(oj_rows_per_input_have_rank(&ties, &one[i]), 0);
        }
    }
}

int main(void)
{
    tests_open("option_clash");
    return tests_run();
}
