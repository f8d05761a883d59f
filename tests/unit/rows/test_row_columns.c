/* The columns of a row: those that the join computes, their order, and their
 * names, in particular where names are in use already.
 * Kinds: truth cases, property, memory. */
#include "../run_tests.h"

#include "../../../algs/api/rows/oj_row_columns.h"
#include "../../../flatten/base/oj_alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct oj_error error;

/* ---- computed columns ---------------------------------------------------- */

static struct oj_relation relation_of(enum oj_op op, int64_t k)
{
    struct oj_relation relation = oj_relation_default();
    relation.op = op;
    relation.k = k;
    return relation;
}

static struct oj_row_column_words words_of(const struct oj_relation *relation)
{
    struct oj_row_column_words words = {.dash = "-", .relation = relation};
    return words;
}

/* Asserts the names of all columns, separated by spaces. Asserts that the
 * requested values are exactly those that the columns hold. */
static void check_columns(const struct oj_row_column_words *words,
                          const char *expected)
{
    struct oj_computed_columns columns = {0};
    unsigned char want[OJ_N_PAIR_VALUES] = {0};
    char names[500] = "";
    ck_assert_msg(oj_computed_columns_choose(words, &columns, want, &error) ==
                      OJ_OK,
                  "%s", error.message);
    for (int i = 0; i < columns.n; i++)
    {
        size_t n = strlen(names);
        snprintf(names + n, sizeof names - n, "%s%s", n > 0 ? " " : "",
                 columns.column[i].name);
        if (columns.column[i].origin == OJ_COLUMN_PAIR_VALUE)
        {
            ck_assert_int_eq(want[columns.column[i].source], 1);
            want[columns.column[i].source] = 0;
        }
    }
    ck_assert_str_eq(names, expected);
    for (int i = 0; i < OJ_N_PAIR_VALUES; i++)
        ck_assert_int_eq(want[i], 0);
    oj_computed_columns_free(&columns);
}

TEST(truth_columns_of_joins)
{
    struct oj_relation nearest = relation_of(OJ_OP_NEAREST, 1);
    struct oj_relation three = relation_of(OJ_OP_NEAREST, 3);
    struct oj_relation meet = relation_of(OJ_OP_INTERSECTS, 1);
    struct oj_relation similar = relation_of(OJ_OP_SIMILAR, OJ_EVERY_PAIR);
    struct oj_row_column_words words = words_of(&nearest);
    check_columns(&words, "join_fid join_distance");
    words = words_of(&three);
    check_columns(&words, "join_fid join_distance join_rank");
    words.choice.picks = 1;
    check_columns(&words, "join_fid join_distance");
    words = words_of(&three);
    words.choice.one_to_one = 1;
    check_columns(&words, "join_fid join_distance");
    nearest.ties = OJ_TIES_ALL;
    words = words_of(&nearest);
    check_columns(&words, "join_fid join_distance join_rank");
    words = words_of(&meet);
    check_columns(&words, "join_fid");
    similar.n_similar = 3;
    words = words_of(&similar);
    check_columns(&words, "join_fid join_similarity join_similarity_2 "
                          "join_similarity_3");
    similar.vector.is_asked = 1;
    similar.k = 2;
    check_columns(&words, "join_fid join_similarity join_similarity_2 "
                          "join_similarity_3 join_difference join_rank");
}

TEST(truth_columns_that_options_add)
{
    struct oj_relation near = relation_of(OJ_OP_DWITHIN, 1);
    struct oj_row_column_words words = words_of(&near);
    words.name_count = "n";
    words.overlap = " percent ,AREA,, area";
    words.nearest_point_fields = words.bearing_field = 1;
    check_columns(&words, "join_fid join_distance n overlap_area "
                          "overlap_percent nearest_x nearest_y join_bearing");
    words.named[0] = "along";
    words.named[OJ_PAIR_SIDE - OJ_FIRST_NAMED_PAIR_VALUE] = "";
    words.named[OJ_PAIR_SEGMENT - OJ_FIRST_NAMED_PAIR_VALUE] = "piece";
    words.named[OJ_PAIR_RELATION - OJ_FIRST_NAMED_PAIR_VALUE] = "how";
    check_columns(&words, "join_fid join_distance n overlap_area "
                          "overlap_percent nearest_x nearest_y join_bearing "
                          "along piece how");
    memset(words.named, 0, sizeof words.named);
    words.overlap = "length";
    words.name_count = "";
    check_columns(&words, "join_fid join_distance overlap_length nearest_x "
                          "nearest_y join_bearing");
}

TEST(truth_given_names)
{
    struct oj_relation similar = relation_of(OJ_OP_SIMILAR, 2);
    struct oj_row_column_words words = words_of(&similar);
    similar.n_similar = 2;
    similar.vector.is_asked = 1;
    words.name_fid = "a";
    words.name_similarity = "b";
    words.name_difference = "c";
    words.name_rank = "d";
    check_columns(&words, "a b b_2 c d");
    words.name_fid = words.name_similarity = words.name_difference =
        words.name_rank = "";
    check_columns(&words, "");
}

TEST(truth_kinds_and_options)
{
    struct oj_relation three = relation_of(OJ_OP_NEAREST, 3);
    struct oj_row_column_words words = words_of(&three);
    struct oj_computed_columns columns = {0};
    unsigned char want[OJ_N_PAIR_VALUES] = {0};
    static const enum oj_field_kind kinds[] = {
        OJ_FIELD_INT64,   OJ_FIELD_FLOAT64, OJ_FIELD_INT32,   OJ_FIELD_INT64,
        OJ_FIELD_FLOAT64, OJ_FIELD_FLOAT64, OJ_FIELD_FLOAT64, OJ_FIELD_TEXT,
        OJ_FIELD_INT64,   OJ_FIELD_FLOAT64, OJ_FIELD_TEXT,    OJ_FIELD_TEXT};
    for (int i = 0; i < OJ_N_NAMED_PAIR_VALUES; i++)
        words.named[i] = oj_row_column_option(
            (enum oj_pair_value)(OJ_FIRST_NAMED_PAIR_VALUE + i));
    words.name_distance = "d";
    words.name_count = "n";
    ck_assert_int_eq(oj_computed_columns_choose(&words, &columns, want, NULL),
                     OJ_OK);
    ck_assert_int_eq(columns.n, 12);
    for (int i = 0; i < 12; i++)
        ck_assert_int_eq(columns.column[i].kind, kinds[i]);
    ck_assert_str_eq(columns.column[4].name, "along_field");
    ck_assert_str_eq(columns.column[11].option, "relation_field");
    for (int i = OJ_FIRST_NAMED_PAIR_VALUE; i <= OJ_PAIR_RELATION; i++)
        ck_assert_int_eq(want[i], 1);
    ck_assert_ptr_null(columns.column[0].option);
    ck_assert_str_eq(columns.column[1].option, "name_distance");
    ck_assert_ptr_null(columns.column[2].option);
    ck_assert_str_eq(columns.column[3].option, "name_count");
    oj_computed_columns_free(&columns);
}

/* An invalid word leaves the output unchanged, and is an error. */
TEST(truth_unknown_overlap)
{
    struct oj_relation meet = relation_of(OJ_OP_INTERSECTS, 1);
    struct oj_row_column_words words = words_of(&meet);
    struct oj_computed_columns columns = {0};
    unsigned char want[OJ_N_PAIR_VALUES] = {0};
    words.overlap = "area,volume";
    ck_assert_int_eq(oj_computed_columns_choose(&words, &columns, want, &error),
                     OJ_ERR_ARG);
    ck_assert_str_eq(error.message,
                     "-overlap takes area, length, percent, iou, input_area "
                     "and join_area, with commas between them, not 'volume'");
    ck_assert_int_eq(columns.n, 0);
    ck_assert_int_eq(want[OJ_PAIR_OVERLAP_AREA], 0);
    words.dash = "";
    words.overlap = " , ";
    ck_assert_int_eq(oj_computed_columns_choose(&words, &columns, want, &error),
                     OJ_ERR_ARG);
    ck_assert_str_eq(error.message,
                     "overlap is empty: write area, length, percent, iou, "
                     "input_area or join_area");
}

TEST(truth_columns_of_aggregates)
{
    struct oj_aggregate_words words = {0};
    struct oj_computed_column column;
    ck_assert_int_eq(
        oj_aggregate_words_parse("-", "count as n, count", &words, &error),
        OJ_OK);
    for (int i = 0; i < 2; i++)
    {
        ck_assert_int_eq(oj_aggregate_words_bind(&words, i, NULL, NULL, &error),
                         OJ_OK);
        column = oj_computed_column_of_aggregate(&words.word[i], i);
        ck_assert_int_eq(column.origin, OJ_COLUMN_AGGREGATE);
        ck_assert_int_eq(column.source, i);
        ck_assert_int_eq(column.kind, OJ_FIELD_INT64);
        ck_assert_str_eq(column.name, i == 0 ? "n" : "count");
        if (i == 0)
            ck_assert_str_eq(column.option, "agg");
        else
            ck_assert_ptr_null(column.option);
    }
    oj_aggregate_words_free(&words);
}

/* ---- operands of aggregates ---------------------------------------------- */

static const struct oj_field_description join_fields[] = {
    {"v", OJ_FIELD_FLOAT64, 1}, {"Join_FID", OJ_FIELD_TEXT, 1}};

static oj_status find_join_field(void *user, const char *name, int *column,
                                 struct oj_field_description *field,
                                 struct oj_error *err)
{
    (void)user;
    for (int i = 0; i < 2; i++)
    {
        if (strcasecmp(join_fields[i].name, name) != 0)
            continue;
        *column = i;
        *field = join_fields[i];
        return OJ_OK;
    }
    return oj_fail(err, OJ_ERR_ARG, "no field '%s'", name);
}

static const struct oj_join_field_finder finder = {find_join_field, NULL};

static oj_status bind_text(const struct oj_row_column_words *words,
                           const char *text, struct oj_aggregate_words *out,
                           unsigned char *want, const char **hidden)
{
    oj_status status = oj_aggregate_words_parse("-", text, out, &error);
    ck_assert_int_eq(status, OJ_OK);
    status =
        oj_aggregate_columns_bind(words, &finder, out, want, hidden, &error);
    if (status != OJ_OK)
        oj_aggregate_words_free(out);
    return status;
}

TEST(truth_aggregates_of_pairs)
{
    static const enum oj_column_origin origins[] = {
        OJ_COLUMN_MEASURE, OJ_COLUMN_RANK,       OJ_COLUMN_PAIR_VALUE,
        OJ_COLUMN_JOIN,    OJ_COLUMN_PAIR_VALUE, OJ_COLUMN_JOIN};
    struct oj_relation near = relation_of(OJ_OP_NEAREST, 3);
    struct oj_row_column_words words = words_of(&near);
    struct oj_aggregate_words bound = {0};
    unsigned char want[OJ_N_PAIR_VALUES] = {0};
    const char *hidden = NULL;
    words.choice.aggregates = 1;
    ck_assert_int_eq(
        bind_text(&words,
                  "mean(JOIN_distance), max(join_rank), "
                  "weighted_mean(overlap_area, v), weighted_mean(v), "
                  "first(join_fid), max(nearest_x)",
                  &bound, want, &hidden),
        OJ_OK);
    ck_assert_str_eq(hidden, "join_fid");
    ck_assert_int_eq(bound.n_fields, 7);
    ck_assert_int_eq(bound.n_of_pairs, 5);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq((int)bound.fields[i].origin, (int)origins[i]);
    ck_assert_int_eq(bound.fields[2].column, OJ_PAIR_OVERLAP_AREA);
    ck_assert_int_eq(bound.fields[4].column, OJ_PAIR_OVERLAP_SIZE);
    ck_assert_int_eq((int)bound.word[1].kind, OJ_FIELD_INT32);
    ck_assert_int_eq((int)bound.word[4].kind, OJ_FIELD_TEXT);
    for (int i = 0; i < OJ_N_PAIR_VALUES; i++)
        ck_assert_int_eq(want[i], i == OJ_PAIR_OVERLAP_AREA ||
                                      i == OJ_PAIR_OVERLAP_SIZE ||
                                      i == OJ_PAIR_NEAREST_X);
    oj_aggregate_words_free(&bound);
}

TEST(truth_aggregates_that_are_refused)
{
    static const struct
    {
        int k;
        const char *text, *name_distance, *message;
    } cases[] = {
        {3, "max(w)", NULL,
         "no field 'w'; pairs have: join_fid, join_distance, join_rank, "
         "overlap_area, overlap_length, overlap_percent, overlap_iou, "
         "input_area, join_area, nearest_x, nearest_y, join_bearing"},
        {1, "max(join_rank)", NULL, "no field 'join_rank'; pairs have: "},
        {1, "count(distinct v)", NULL,
         "-agg: write unique(v) to count different values"},
        {1, "mean(join_distance)", "d", "no field 'join_distance'; pairs"},
        {1, "mean(v)", "d",
         "-name_distance has no effect, because no aggregate uses 'd': write "
         "for example \"mean(d)\", or leave the option out"},
        {1, "mean(v)", "V",
         "-name_distance: the join layer has a field 'V' already"},
        {1, "mean(v)", "",
         "-name_distance: rows of aggregates have no such column; leave the "
         "option out"},
        {1, "sum(join_fid)", NULL,
         "-agg: sum(join_fid) needs numbers; the field is String"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
        struct oj_relation near = relation_of(OJ_OP_NEAREST, cases[i].k);
        struct oj_row_column_words words = words_of(&near);
        struct oj_aggregate_words bound = {0};
        unsigned char want[OJ_N_PAIR_VALUES] = {0};
        const char *hidden = NULL;
        words.name_distance = cases[i].name_distance;
        ck_assert_int_eq(
            bind_text(&words, cases[i].text, &bound, want, &hidden),
            OJ_ERR_ARG);
        ck_assert_msg(strstr(error.message, cases[i].message) == error.message,
                      "%s, not %s", error.message, cases[i].message);
    }
}

/* The aggregate that the message proposes takes the type of the column. */
TEST(truth_unused_name_of_texts)
{
    struct oj_relation meets = relation_of(OJ_OP_INTERSECTS, 1);
    struct oj_row_column_words words = words_of(&meets);
    struct oj_aggregate_words bound = {0};
    unsigned char want[OJ_N_PAIR_VALUES] = {0};
    const char *hidden = NULL;
    words.named[OJ_PAIR_MATRIX - OJ_FIRST_NAMED_PAIR_VALUE] = "mx";
    ck_assert_int_eq(bind_text(&words, "count", &bound, want, &hidden),
                     OJ_ERR_ARG);
    ck_assert_str_eq(
        error.message,
        "-matrix_field has no effect, because no aggregate uses "
        "'mx': write for example \"mode(mx)\", or leave the option "
        "out");
    ck_assert_int_eq(bind_text(&words, "mode(mx)", &bound, want, &hidden),
                     OJ_OK);
    oj_aggregate_words_free(&bound);
}

TEST(truth_given_name_of_pairs)
{
    struct oj_relation near = relation_of(OJ_OP_NEAREST, 1);
    struct oj_row_column_words words = words_of(&near);
    struct oj_aggregate_words bound = {0};
    unsigned char want[OJ_N_PAIR_VALUES] = {0};
    const char *hidden = NULL;
    words.name_distance = "feet";
    ck_assert_int_eq(bind_text(&words, "mean(feet)", &bound, want, &hidden),
                     OJ_OK);
    ck_assert_ptr_null(hidden);
    ck_assert_int_eq((int)bound.fields[0].origin, OJ_COLUMN_MEASURE);
    ck_assert_str_eq(bound.word[0].name, "mean_feet");
    oj_aggregate_words_free(&bound);
}

/* ---- names ----------------------------------------------------------------
 */

enum
{
    MOST_FIELDS = 12
};

/* Names of fields and of computed columns, separated by spaces. A name that the
 * user gave begins with =. */
struct names
{
    char text[3][400];
    struct oj_field_description field[2][MOST_FIELDS];
    struct oj_computed_column computed[MOST_FIELDS];
    struct oj_row_columns_request request;
};

static int split_names(char *text, const char *list, const char *names[])
{
    int n = 0;
    char *at;
    snprintf(text, 400, "%s", list);
    for (at = strtok(text, " "); at != NULL; at = strtok(NULL, " "))
        names[n++] = strcmp(at, "-") == 0 ? "" : at;
    return n;
}

static void set_side(struct names *names, int side, const char *list,
                     struct oj_row_side_fields *out)
{
    const char *name[MOST_FIELDS];
    out->n = split_names(names->text[side], list, name);
    out->field = names->field[side];
    for (int i = 0; i < out->n; i++)
    {
        const struct oj_field_description field = {name[i], OJ_FIELD_TEXT,
                                                   i % 2};
        names->field[side][i] = field;
    }
}

static void set_names(struct names *names, const char *input,
                      const char *computed, const char *join)
{
    const char *name[MOST_FIELDS];
    memset(names, 0, sizeof *names);
    set_side(names, 0, input, &names->request.input);
    set_side(names, 1, join, &names->request.join);
    names->request.n_computed = split_names(names->text[2], computed, name);
    names->request.computed = names->computed;
    for (int i = 0; i < names->request.n_computed; i++)
    {
        int is_given = name[i][0] == '=';
        const struct oj_computed_column column = {
            OJ_COLUMN_RANK, i, OJ_FIELD_INT32, name[i] + is_given,
            is_given ? "name_rank" : NULL};
        names->computed[i] = column;
    }
    names->request.dash = "-";
    names->request.prefix = "join_";
}

/* Checks names. expected are the names of all columns, or the name that
 * clashes. */
static void check_names(const char *taken, const char *input,
                        const char *computed, const char *join,
                        const char *expected)
{
    struct oj_row_columns columns = {0};
    struct names names;
    char found[sizeof error.message] = "";
    oj_status status;
    set_names(&names, input, computed, join);
    ck_assert_int_eq(oj_row_columns_reserve_name(&columns, taken, &error),
                     OJ_OK);
    status = oj_row_columns_plan(&names.request, &columns, &error);
    for (int64_t i = 0; i < columns.n && status == OJ_OK; i++)
    {
        size_t n = strlen(found);
        snprintf(found + n, sizeof found - n, "%s%s", n > 0 ? " " : "",
                 columns.column[i].name);
    }
    if (status != OJ_OK)
        snprintf(found, sizeof found, "%s", error.message);
    ck_assert_str_eq(found, expected);
    oj_row_columns_free(&columns);
    ck_assert_int_eq(columns.n, 0);
}

TEST(truth_names_that_are_free_stay)
{
    check_names("", "id name", "join_fid", "kind size",
                "id name join_fid kind size");
    check_names(NULL, "", "", "", "");
    check_names("fid", "", "join_fid", "a", "join_fid a");
}

TEST(truth_fields_whose_names_are_taken)
{
    check_names("", "id name", "", "ID kind", "id name join_ID kind");
    check_names("", "id join_id", "", "id", "id join_id join_id_2");
    check_names("", "id join_id join_id_2", "", "id id",
                "id join_id join_id_2 join_id_3 join_id_4");
    check_names("fid", "FID a", "", "fid", "FID_2 a join_fid");
    check_names("", "a A a", "", "a A", "a A_2 a_3 join_a join_A_2");
    check_names("", "- -", "", "-", "field field_2 join_field");
    check_names("", "\303\204 \303\244", "", "", "\303\204 \303\244");
}

/* If a default name is in use, all computed columns get one number: join_fid_2,
 * join_distance_2. */
TEST(truth_computed_names_that_are_taken)
{
    check_names("", "join_fid", "join_fid join_distance", "",
                "join_fid join_fid_2 join_distance_2");
    check_names("", "join_fid join_distance_2", "join_fid join_distance", "",
                "join_fid join_distance_2 join_fid_3 join_distance_3");
    check_names("JOIN_FID", "", "join_fid =n", "join_fid n",
                "join_fid_2 n join_join_fid join_n");
}

TEST(truth_given_names_that_are_taken)
{
    static const char twice[] =
        "-name_rank: the output has a column 'N' already; choose another name";
    check_names("", "n", "=N", "", twice);
    check_names("n", "", "=N", "", twice);
    check_names("", "", "n =N", "", twice);
    check_names("", "", "=N n", "", twice);
    check_names("", "", "=n =N", "", twice);
    check_names("", "", "=n", "N", "n join_N");
    /* default names with a number avoid names that the user gave */
    check_names("", "a", "a =a_2", "", "a a_3 a_2");
    check_names("", "a", "=a_2 a", "", "a a_2 a_3");
}

TEST(truth_long_names_are_not_cut)
{
    char name[3000], twice[3100];
    struct oj_field_description fields[2];
    struct oj_row_columns_request request = {.dash = "", .prefix = name};
    struct oj_row_columns columns = {0};
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (int i = 0; i < 2; i++)
    {
        fields[i].name = name;
        fields[i].kind = OJ_FIELD_INT64;
        fields[i].is_nullable = 0;
    }
    request.input.field = fields;
    request.input.n = 2;
    ck_assert_int_eq(oj_row_columns_plan(&request, &columns, &error), OJ_OK);
    snprintf(twice, sizeof twice, "%s_2", name);
    ck_assert_str_eq(columns.column[0].name, name);
    ck_assert_str_eq(columns.column[1].name, twice);
    oj_row_columns_free(&columns);
}

TEST_LOOP(truth_what_may_be_missing, 0, 2)
{
    struct oj_row_columns columns = {0};
    struct names names;
    set_names(&names, "a b", "c", "d e");
    names.request.has_other_rows = _i;
    ck_assert_int_eq(oj_row_columns_plan(&names.request, &columns, &error),
                     OJ_OK);
    for (int i = 0; i < 5; i++)
    {
        const struct oj_named_column *column = &columns.column[i];
        int is_input = i < 2;
        ck_assert_int_eq(column->origin, is_input ? OJ_COLUMN_INPUT
                                         : i == 2 ? OJ_COLUMN_RANK
                                                  : OJ_COLUMN_JOIN);
        ck_assert_int_eq(column->source, i < 2 ? i : i == 2 ? 0 : i - 3);
        ck_assert_int_eq(column->kind, i == 2 ? OJ_FIELD_INT32 : OJ_FIELD_TEXT);
        ck_assert_int_eq(column->is_always_there, is_input && !_i);
        ck_assert_int_eq(column->is_nullable, i > 0 || _i);
    }
    oj_row_columns_free(&columns);
}

/* Random names of few letters. All columns get different names, free names are
 * kept, and the columns are those of the request, in its order. */
TEST_LOOP(property_names_differ, 0, 300)
{
    static const char *const words[] = {"a",   "A",   "b",   "a_2", "j_a",
                                        "j_b", "B_2", "a_3", "-",   "field"};
    char list[3][400] = {"", "", ""};
    struct oj_row_columns columns = {0};
    struct names names;
    int64_t n_input, n_join;
    srand((unsigned)_i);
    for (int l = 0; l < 3; l++)
    {
        int n = rand() % (l == 1 ? 3 : MOST_FIELDS);
        for (int i = 0; i < n; i++)
        {
            const char *word = words[rand() % 10];
            if (l == 1)
                word = i == 0 ? "a" : "b";
            snprintf(list[l] + strlen(list[l]), 400 - strlen(list[l]), "%s ",
                     word);
        }
    }
    set_names(&names, list[0], list[1], list[2]);
    names.request.prefix = "j_";
    ck_assert_int_eq(oj_row_columns_plan(&names.request, &columns, &error),
                     OJ_OK);
    n_input = names.request.input.n;
    n_join = names.request.join.n;
    ck_assert_int_eq(columns.n, n_input + names.request.n_computed + n_join);
    for (int64_t i = 0; i < columns.n; i++)
    {
        const struct oj_named_column *column = &columns.column[i];
        int is_free = column->origin != OJ_COLUMN_RANK;
        ck_assert_int_eq(column->origin, i < n_input ? OJ_COLUMN_INPUT
                                         : i < columns.n - n_join
                                             ? OJ_COLUMN_RANK
                                             : OJ_COLUMN_JOIN);
        for (int64_t k = 0; k < i; k++)
        {
            ck_assert_int_ne(strcasecmp(column->name, columns.column[k].name),
                             0);
            is_free = is_free &&
                      strcasecmp(columns.column[k].name, column->original) != 0;
        }
        if (is_free && column->original[0] != '\0')
            ck_assert_str_eq(column->name, column->original);
    }
    oj_row_columns_free(&columns);
}

/* Many fields with one name. */
TEST(large_one_name)
{
    enum
    {
        N = 2000
    };
    struct oj_field_description *fields = calloc(N, sizeof *fields);
    struct oj_row_columns_request request = {.dash = "", .prefix = "j"};
    struct oj_row_columns columns = {0};
    for (int i = 0; i < N; i++)
    {
        fields[i].name = "one";
        fields[i].kind = OJ_FIELD_TEXT;
    }
    request.input.field = fields;
    request.input.n = N;
    request.join = request.input;
    ck_assert_int_eq(oj_row_columns_plan(&request, &columns, &error), OJ_OK);
    ck_assert_str_eq(columns.column[N - 1].name, "one_2000");
    ck_assert_str_eq(columns.column[2 * N - 1].name, "jone_2000");
    oj_row_columns_free(&columns);
    free(fields);
}

/* ---- memory ---------------------------------------------------------------
 */

TEST(memory_columns)
{
    struct oj_relation similar = relation_of(OJ_OP_SIMILAR, 2);
    struct oj_row_column_words words = words_of(&similar);
    oj_status status = OJ_ERR_NOMEM;
    similar.n_similar = 2;
    for (int64_t n = 1; status != OJ_OK; n++)
    {
        struct oj_computed_columns computed = {0};
        struct oj_row_columns columns = {0};
        unsigned char want[OJ_N_PAIR_VALUES] = {0};
        struct names names;
        ck_assert_int_lt(n, 100);
        set_names(&names, "a a", "", "a b");
        oj_alloc_fail_at(n);
        status = oj_computed_columns_choose(&words, &computed, want, &error);
        names.request.computed = computed.column;
        names.request.n_computed = computed.n;
        if (status == OJ_OK)
            status = oj_row_columns_reserve_name(&columns, "fid", &error);
        if (status == OJ_OK)
            status = oj_row_columns_plan(&names.request, &columns, &error);
        oj_alloc_fail_at(0);
        ck_assert(status == OJ_OK || status == OJ_ERR_NOMEM);
        oj_row_columns_free(&columns);
        oj_computed_columns_free(&computed);
    }
}

int main(void)
{
    tests_open("row columns");
    return tests_run();
}
