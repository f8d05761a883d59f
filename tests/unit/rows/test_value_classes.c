/* Compares classes of equal values with the values themselves.
 * unit/source/test_classes.c tests the classes of layers.
 * Kinds: truth cases, property, memory. */
#include "../run_tests.h"

#include "../../../algs/api/rows/oj_value_classes.h"
#include "../../../flatten/base/oj_alloc.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct oj_error error;

/* Values of a table, row by row. */
struct value_table
{
    const struct oj_plain_value *value;
    int n_fields;
};

static oj_status read_value(void *user, int field, int64_t row,
                            struct oj_plain_value *value, struct oj_error *err)
{
    const struct value_table *values = user;
    (void)err;
    *value = values->value[row * values->n_fields + field];
    return OJ_OK;
}

static void find_classes(struct oj_value_classes *classes,
                         const enum oj_value_comparison *comparison,
                         int n_fields, const struct oj_plain_value *value,
                         int64_t n_rows, int insert, int32_t *class_of)
{
    struct value_table values = {value, n_fields};
    const struct oj_plain_reader reader = {read_value, &values};
    struct oj_value_key key = {0};
    ck_assert_int_eq(oj_value_classes_find(classes, &key, comparison, n_fields,
                                           &reader, n_rows, insert, class_of,
                                           &error),
                     OJ_OK);
    oj_value_key_free(&key);
}

static struct oj_plain_value text_value(const char *of)
{
    return oj_plain_text(of, (int64_t)strlen(of));
}

static const struct oj_plain_value null;

TEST(truth_kinds_and_comparisons)
{
    ck_assert_int_eq(oj_value_comparison_of(OJ_FIELD_INT64, OJ_FIELD_FLOAT32),
                     OJ_COMPARE_NUMBERS);
    ck_assert_int_eq(oj_value_comparison_of(OJ_FIELD_BOOLEAN, OJ_FIELD_INT16),
                     OJ_COMPARE_NUMBERS);
    ck_assert_int_eq(oj_value_comparison_of(OJ_FIELD_INT64, OJ_FIELD_TEXT),
                     OJ_COMPARE_TEXTS);
    ck_assert_int_eq(oj_value_comparison_of(OJ_FIELD_DATE, OJ_FIELD_DATE),
                     OJ_COMPARE_TEXTS);
    ck_assert_int_eq(oj_value_comparison_of(OJ_FIELD_DATE, OJ_FIELD_DATETIME),
                     OJ_COMPARE_MOMENTS);
    ck_assert_int_eq(
        oj_value_comparison_of(OJ_FIELD_DATETIME, OJ_FIELD_DATETIME),
        OJ_COMPARE_MOMENTS);
    ck_assert_int_eq(oj_value_comparison_of(OJ_FIELD_TEXT, OJ_FIELD_DATE),
                     OJ_COMPARE_MOMENTS);
    ck_assert_int_eq(oj_value_comparison_of(OJ_FIELD_TEXT, OJ_FIELD_TIME),
                     OJ_COMPARE_TEXTS);
    ck_assert_int_eq(oj_value_comparison_of(OJ_FIELD_DATE, OJ_FIELD_INT64),
                     OJ_COMPARE_TEXTS);
}

/* Dates, datetimes and texts are equal if they mean one moment. */
TEST(truth_moments)
{
    const enum oj_value_comparison moments = OJ_COMPARE_MOMENTS;
    const struct oj_plain_value in[] = {
        text_value("2024/01/02"), text_value("2024/01/02 10:00:00+02"),
        text_value("2024/01/03"), null, text_value("yesterday")};
    const struct oj_plain_value of[] = {
        text_value("2024-01-02T00:00:00Z"), text_value("2024-01-02 08:00"),
        text_value("2024-01-04"), text_value("yesterday"), text_value("")};
    static const int32_t inserted[] = {0, 1, 2, -1, -1};
    static const int32_t found[] = {0, 1, -1, -1, -1};
    struct oj_value_classes classes = {0};
    int32_t a[5];
    find_classes(&classes, &moments, 1, in, 5, 1, a);
    ck_assert_mem_eq(a, inserted, sizeof inserted);
    find_classes(&classes, &moments, 1, of, 5, 0, a);
    ck_assert_mem_eq(a, found, sizeof found);
    oj_value_classes_free(&classes);
}

/* 1 and 1.0 are equal. Integers beyond 2^53 differ from each other. NaN equals
 * nothing. */
TEST(truth_numbers)
{
    const enum oj_value_comparison numbers = OJ_COMPARE_NUMBERS;
    const int64_t large = INT64_C(9007199254740993);
    const struct oj_plain_value in[] = {oj_plain_integer(1),
                                        oj_plain_integer(0),
                                        oj_plain_integer(large),
                                        oj_plain_integer(large - 1),
                                        oj_plain_real(0.5),
                                        oj_plain_integer(INT64_MIN),
                                        oj_plain_real(1e300),
                                        oj_plain_integer(INT64_MAX),
                                        oj_plain_real((double)INFINITY),
                                        oj_plain_real((double)NAN),
                                        null};
    const struct oj_plain_value of[] = {oj_plain_real(1.0),
                                        oj_plain_real(-0.0),
                                        oj_plain_integer(large),
                                        oj_plain_real(9007199254740992.0),
                                        oj_plain_real(0.5),
                                        oj_plain_real(-9223372036854775808.0),
                                        oj_plain_real(1e300),
                                        oj_plain_real(9223372036854775808.0),
                                        oj_plain_real((double)INFINITY),
                                        oj_plain_real((double)NAN),
                                        null};
    struct oj_value_classes classes = {0};
    int32_t a[11], b[11];
    find_classes(&classes, &numbers, 1, in, 11, 1, a);
    find_classes(&classes, &numbers, 1, of, 11, 0, b);
    for (int i = 0; i < 11; i++)
    {
        if (i < 9)
            ck_assert_int_eq(a[i], i);
        else
            ck_assert_int_eq(a[i], -1);
        /* 2^63 does not fit into int64_t */
        ck_assert_int_eq(b[i], i == 7 ? -1 : a[i]);
    }
    ck_assert_int_gt(oj_value_classes_bytes(&classes), 0);
    oj_value_classes_free(&classes);
}

/* A number that is compared with texts is written as OGR writes it, in any
 * locale.
 */
TEST(truth_numbers_as_texts)
{
    const enum oj_value_comparison texts = OJ_COMPARE_TEXTS;
    const struct oj_plain_value in[] = {
        oj_plain_integer(-7),      oj_plain_integer(INT64_MIN),
        oj_plain_real(1.0),        oj_plain_real(0.1),
        oj_plain_real(1e300),      oj_plain_real(2.5),
        oj_plain_real((double)NAN)};
    const struct oj_plain_value of[] = {
        text_value("-7"),     text_value("-9223372036854775808"),
        text_value("1"),      text_value("0.1"),
        text_value("1e+300"), text_value("2.5"),
        text_value("nan")};
    struct oj_value_classes classes = {0};
    int32_t a[7], b[7];
    setlocale(LC_ALL, "de_DE.UTF-8"); /* a locale with a decimal comma, if it is
                                         installed */
    find_classes(&classes, &texts, 1, in, 7, 1, a);
    setlocale(LC_ALL, "C");
    find_classes(&classes, &texts, 1, of, 7, 0, b);
    for (int i = 0; i < 6; i++)
    {
        ck_assert_int_eq(a[i], i);
        ck_assert_int_eq(b[i], i);
    }
    ck_assert_int_eq(a[6], -1);
    ck_assert_int_eq(b[6], -1);
    oj_value_classes_free(&classes);
}

/* Rows are equal if all their fields are. "a", "bc" differs from "ab", "c". */
TEST(truth_several_fields)
{
    const enum oj_value_comparison both[] = {OJ_COMPARE_TEXTS,
                                             OJ_COMPARE_NUMBERS};
    const enum oj_value_comparison texts[] = {OJ_COMPARE_TEXTS,
                                              OJ_COMPARE_TEXTS};
    const struct oj_plain_value in[] = {text_value("a"),
                                        oj_plain_integer(1),
                                        text_value("a"),
                                        oj_plain_integer(2),
                                        text_value("a"),
                                        oj_plain_real(1.0),
                                        text_value("b"),
                                        null,
                                        null,
                                        oj_plain_integer(1),
                                        text_value(""),
                                        oj_plain_integer(1)};
    const struct oj_plain_value ends[] = {
        text_value("a"), text_value("bc"),  text_value("ab"), text_value("c"),
        text_value(""),  text_value("abc"), text_value("ab"), text_value("c")};
    static const int32_t of_ends[] = {0, 1, 2, 1};
    static const int32_t expected[] = {0, 1, 0, -1, -1, 2};
    struct oj_value_classes classes = {0}, others = {0};
    int32_t a[6];
    find_classes(&classes, both, 2, in, 6, 1, a);
    ck_assert_mem_eq(a, expected, sizeof expected);
    find_classes(&others, texts, 2, ends, 4, 1, a);
    ck_assert_mem_eq(a, of_ends, sizeof of_ends);
    find_classes(&others, texts, 2, ends, 0, 1, a);
    oj_value_classes_free(&classes);
    oj_value_classes_free(&others);
}

static struct oj_plain_value random_value(int kind, char *memory)
{
    if (rand() % 8 == 0)
        return null;
    switch (kind)
    {
        case 0:
            return oj_plain_integer(rand() % 6 - 3);
        case 1:
            return oj_plain_real((rand() % 12 - 6) / 2.0);
        default:
            sprintf(memory, "%g", (rand() % 12 - 6) / 2.0);
            return oj_plain_text(memory, (int64_t)strlen(memory));
    }
}

/* Returns 1 if both values exist and are equal: numbers as numbers, others as
 * texts. */
static int are_equal(const struct oj_plain_value *a,
                     const struct oj_plain_value *b)
{
    char written[2][OJ_PLAIN_TEXT_BYTES];
    const struct oj_plain_value *of[2] = {a, b};
    for (int i = 0; i < 2; i++)
    {
        if (of[i]->form == OJ_PLAIN_NULL)
            return 0;
        if (of[i]->form == OJ_PLAIN_TEXT)
            snprintf(written[i], sizeof written[i], "%.*s", (int)of[i]->n,
                     of[i]->text);
        else
            snprintf(written[i], sizeof written[i], "%g",
                     of[i]->form == OJ_PLAIN_INTEGER ? (double)of[i]->integer
                                                     : of[i]->real);
    }
    if (a->form != OJ_PLAIN_TEXT && b->form != OJ_PLAIN_TEXT)
        return atof(written[0]) == atof(written[1]);
    return strcmp(written[0], written[1]) == 0;
}

/* Every pair of kinds of values: integers, reals and texts. */
TEST_LOOP(property_classes_are_equal_where_values_are, 0, 9)
{
    enum
    {
        N = 120
    };
    static const enum oj_field_kind kinds[] = {OJ_FIELD_INT32, OJ_FIELD_FLOAT64,
                                               OJ_FIELD_TEXT};
    static char memory[2][N][16];
    const enum oj_value_comparison comparison =
        oj_value_comparison_of(kinds[_i / 3], kinds[_i % 3]);
    struct oj_plain_value value[2][N];
    struct oj_value_classes classes = {0};
    int32_t a[N], b[N];
    int n_equal = 0;
    srand((unsigned)_i + 1);
    for (int i = 0; i < N; i++)
    {
        value[0][i] = random_value(_i / 3, memory[0][i]);
        value[1][i] = random_value(_i % 3, memory[1][i]);
    }
    find_classes(&classes, &comparison, 1, value[1], N, 1, b);
    find_classes(&classes, &comparison, 1, value[0], N, 0, a);
    for (int i = 0; i < N; i++)
    {
        for (int k = 0; k < N; k++)
        {
            int equal = a[i] >= 0 && a[i] == b[k];
            ck_assert_int_eq(equal, are_equal(&value[0][i], &value[1][k]));
            n_equal += equal;
        }
    }
    ck_assert_int_gt(n_equal, 0);
    oj_value_classes_free(&classes);
}

/* Whole numbers are stored in one of three forms. When a new value does not fit
 * a form, the next is used, and the classes keep their numbers. */
TEST(truth_forms_of_whole_numbers)
{
    const enum oj_value_comparison numbers = OJ_COMPARE_NUMBERS;
    const struct oj_plain_value ascending[] = {oj_plain_integer(-5),
                                               oj_plain_integer(-5),
                                               oj_plain_integer(2),
                                               oj_plain_real(3.0),
                                               null,
                                               oj_plain_integer(900)};
    const struct oj_plain_value back[] = {
        oj_plain_integer(2), oj_plain_integer(1), oj_plain_integer(901)};
    const struct oj_plain_value half[] = {
        oj_plain_real(0.5), oj_plain_integer(900), oj_plain_integer(INT64_MIN)};
    const struct oj_plain_value asked[] = {
        oj_plain_integer(900),       oj_plain_real(2.0),
        oj_plain_integer(1),         oj_plain_real(0.5),
        oj_plain_integer(INT64_MIN), oj_plain_real(1e300),
        oj_plain_integer(4),         oj_plain_integer(INT64_MAX),
        oj_plain_integer(-5)};
    static const int32_t of_ascending[] = {0, 0, 1, 2, -1, 3};
    static const int32_t of_back[] = {1, 4, 5}, of_half[] = {6, 3, 7};
    static const int32_t after[3][9] = {{3, 1, -1, -1, -1, -1, -1, -1, 0},
                                        {3, 1, 4, -1, -1, -1, -1, -1, 0},
                                        {3, 1, 4, 6, 7, -1, -1, -1, 0}};
    struct oj_value_classes classes = {0};
    int32_t class_of[9];
    find_classes(&classes, &numbers, 1, asked, 9, 0, class_of);
    for (int i = 0; i < 9; i++)
        ck_assert_int_eq(class_of[i], -1);
    find_classes(&classes, &numbers, 1, ascending, 6, 1, class_of);
    ck_assert_int_eq(classes.form, OJ_CLASSES_ASCENDING);
    ck_assert_mem_eq(class_of, of_ascending, sizeof of_ascending);
    find_classes(&classes, &numbers, 1, asked, 9, 0, class_of);
    ck_assert_mem_eq(class_of, after[0], sizeof after[0]);
    find_classes(&classes, &numbers, 1, back, 3, 1, class_of);
    ck_assert_int_eq(classes.form, OJ_CLASSES_WHOLE);
    ck_assert_mem_eq(class_of, of_back, sizeof of_back);
    find_classes(&classes, &numbers, 1, asked, 9, 0, class_of);
    ck_assert_mem_eq(class_of, after[1], sizeof after[1]);
    find_classes(&classes, &numbers, 1, half, 3, 1, class_of);
    ck_assert_int_eq(classes.form, OJ_CLASSES_ANY);
    ck_assert_mem_eq(class_of, of_half, sizeof of_half);
    find_classes(&classes, &numbers, 1, asked, 9, 0, class_of);
    ck_assert_mem_eq(class_of, after[2], sizeof after[2]);
    oj_value_classes_free(&classes);
}

/* Unsigned integers from 2^63 on equal neither each other nor the double to
 * which they round. */
TEST(truth_large_unsigned_integers)
{
    const enum oj_value_comparison numbers = OJ_COMPARE_NUMBERS;
    const enum oj_value_comparison texts = OJ_COMPARE_TEXTS;
    const uint64_t two_to_63 = UINT64_C(1) << 63;
    const struct oj_plain_value kept[] = {
        oj_plain_large_unsigned(two_to_63),
        oj_plain_large_unsigned(two_to_63 + 1),
        oj_plain_large_unsigned(UINT64_MAX), oj_plain_integer(-1),
        oj_plain_real(0x1p64)};
    const struct oj_plain_value asked[] = {
        oj_plain_large_unsigned(UINT64_MAX),
        oj_plain_real(0x1p63),
        oj_plain_large_unsigned(two_to_63 + 2),
        oj_plain_integer(INT64_MIN),
        oj_plain_real(0x1p64),
        oj_plain_large_unsigned(two_to_63 + 1)};
    const struct oj_plain_value written[] = {
        oj_plain_text("18446744073709551615", 20),
        oj_plain_text("9223372036854775809", 19)};
    static const int32_t of_kept[] = {0, 1, 2, 3, 4};
    static const int32_t of_asked[] = {2, 0, -1, -1, 4, 1};
    static const int32_t of_written[] = {2, 1};
    struct oj_value_classes classes = {0};
    int32_t class_of[6];
    find_classes(&classes, &numbers, 1, kept, 5, 1, class_of);
    ck_assert_mem_eq(class_of, of_kept, sizeof of_kept);
    find_classes(&classes, &numbers, 1, asked, 6, 0, class_of);
    ck_assert_mem_eq(class_of, of_asked, sizeof of_asked);
    oj_value_classes_free(&classes);
    find_classes(&classes, &texts, 1, kept, 5, 1, class_of);
    find_classes(&classes, &texts, 1, written, 2, 0, class_of);
    ck_assert_mem_eq(class_of, of_written, sizeof of_written);
    oj_value_classes_free(&classes);
}

/* Thousands of numbers in each form. With gaps, a number is not at the position
 * that is guessed first. */
TEST_LOOP(property_many_whole_numbers, 0, 3)
{
    enum
    {
        N = 5000
    };
    const enum oj_value_comparison numbers = OJ_COMPARE_NUMBERS;
    static struct oj_plain_value value[N], asked[N];
    static int32_t class_of[N], found[N];
    struct oj_value_classes classes = {0};
    for (int i = 0; i < N; i++)
    {
        /* dense, with growing gaps, descending */
        int64_t number = _i == 0 ? i - 70 : _i == 1 ? (int64_t)i * i : N - i;
        value[i] = oj_plain_integer(number);
    }
    for (int i = 0; i < N; i++)
        asked[i] = value[(int64_t)i * 1009 % N];
    find_classes(&classes, &numbers, 1, value, N, 1, class_of);
    find_classes(&classes, &numbers, 1, asked, N, 0, found);
    for (int i = 0; i < N; i++)
    {
        ck_assert_int_eq(class_of[i], i);
        ck_assert_int_eq(found[i], (int)((int64_t)i * 1009 % N));
        asked[i].integer = _i == 1 ? asked[i].integer + 2 : -100 - i;
    }
    find_classes(&classes, &numbers, 1, asked, N, 0, found);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(found[i], -1);
    ck_assert_int_eq(classes.form,
                     _i == 2 ? OJ_CLASSES_WHOLE : OJ_CLASSES_ASCENDING);
    ck_assert_int_gt(oj_value_classes_bytes(&classes), 4 * N);
    oj_value_classes_free(&classes);
}

static oj_status fail_to_read(void *user, int field, int64_t row,
                              struct oj_plain_value *value,
                              struct oj_error *err)
{
    (void)user;
    (void)field;
    if (row == 2)
        return oj_fail(err, OJ_ERR_IO, "row 2");
    *value = oj_plain_integer(row);
    return OJ_OK;
}

TEST(truth_errors_of_readers_are_passed_on)
{
    const enum oj_value_comparison numbers = OJ_COMPARE_NUMBERS;
    const struct oj_plain_reader reader = {fail_to_read, NULL};
    struct oj_value_classes classes = {0};
    struct oj_value_key key = {0};
    int32_t class_of[4];
    ck_assert_int_eq(oj_value_classes_find(&classes, &key, &numbers, 1, &reader,
                                           4, 1, class_of, &error),
                     OJ_ERR_IO);
    ck_assert_str_eq(error.message, "row 2");
    oj_value_key_free(&key);
    oj_value_classes_free(&classes);
}

TEST(memory_classes)
{
    const enum oj_value_comparison numbers = OJ_COMPARE_NUMBERS;
    const struct oj_plain_value one[] = {oj_plain_integer(1),
                                         oj_plain_integer(2)};
    struct value_table values = {one, 1};
    const struct oj_plain_reader reader = {read_value, &values};
    oj_status status = OJ_ERR_NOMEM;
    for (int64_t n = 1; status != OJ_OK; n++)
    {
        struct oj_value_classes classes = {0};
        struct oj_value_key key = {0};
        int32_t class_of[2];
        ck_assert_int_lt(n, 20);
        oj_alloc_fail_at(n);
        status = oj_value_classes_find(&classes, &key, &numbers, 1, &reader, 2,
                                       1, class_of, &error);
        oj_alloc_fail_at(0);
        ck_assert(status == OJ_OK || status == OJ_ERR_NOMEM);
        oj_value_key_free(&key);
        oj_value_classes_free(&classes);
    }
}

int main(void)
{
    tests_open("value classes");
    return tests_run();
}
