/* Sums by limbs are computed as on devices. They equal exact sums of the
 * values, and sums of pairs that are added one by one, bit for bit.
 * Kind: unit, property, memory. */
#include "../../../algs/foundations/aggregate/oj_aggregate.h"
#include "../../../algs/foundations/aggregate/oj_sum_request.h"
#include "../../../algs/foundations/base/oj_exact_sum.h"

#include "../../../flatten/base/oj_alloc.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "../../gpu/plain_sums.h"
#include "../random_numbers.h"
#include "../run_tests.h"

enum
{
    FEATURES = 7,
    ROWS = 300,
    BATCHES = 4,
    COLUMNS = 4,
    MOST_PAIRS = 3 /* of a row */
};

static void must(oj_status status)
{
    ck_assert_int_eq(status, OJ_OK);
}

/* --- values --------------------------------------------------------------- */

/* Returns a random real of the kind 0, 1, 2 ... (cases below). All values of a
 * column are of one kind. */
static double real_of_kind(int kind)
{
    static const double odd[] = {(double)NAN, (double)INFINITY,
                                 -(double)INFINITY};
    static const double special[] = {
        0.0,      -0.0, 0x1p-1074, -0x1p-1074, DBL_MIN, DBL_MAX,
        -DBL_MAX, 1.0,  0x1p1023,  -0x1p-53,   0x1p53,  DBL_EPSILON};
    double value = between(-1000.0, 1000.0);
    switch (kind)
    {
        case 0: /* money */
            return (double)(int64_t)(value * 100.0) / 100.0;
        case 1: /* whole numbers */
            return (double)pick(1 << 20) - 500000.0;
        case 2: /* few */
            return pick(2) ? 0.0 : 0.25;
        case 3:
            return any_size(-1074, 1023);
        case 4:
            return any_size(-1080, -1000);
        case 5:
            return any_size(960, 1023);
        case 6:
            return special[pick((int)(sizeof special / sizeof *special))];
        case 7:
            return one_in(50) ? odd[pick(3)] : value;
        case 8: /* only one special value */
            return one_in(20) ? odd[1] : pick(2) ? 0.0 : -0.0;
        case 9: /* large values that cancel each other */
            return pick(2) ? 1e300 : -1e300;
        default:
            return pick(2) ? 0.0 : -0.0;
    }
}

static int64_t integer_of_kind(int kind)
{
    static const int64_t special[] = {INT64_MIN, INT64_MAX, 0,  1,
                                      INT32_MIN, INT32_MAX, -1, INT64_MIN + 1};
    switch (kind % 5)
    {
        case 0:
            return pick(1000);
        case 1:
            return (int64_t)random_bits();
        case 2:
            return special[pick(8)];
        case 3:
            return pick(2) ? INT32_MIN : INT32_MAX;
        default:
            return 0;
    }
}

/* A batch of rows: its columns, and the features that each row is paired with.
 */
struct summed_rows
{
    double real[COLUMNS][ROWS];
    int64_t integer[COLUMNS][ROWS];
    uint8_t is_null[COLUMNS][ROWS];
    struct oj_aggregate_column column[COLUMNS];
    int64_t n;
    int n_pairs;
    int64_t feature[ROWS * MOST_PAIRS];
    int32_t at[ROWS * MOST_PAIRS];
};

static void make_rows(struct summed_rows *rows)
{
    rows->n = pick(4) == 0 ? pick(3) : pick(ROWS);
    rows->n_pairs = 0;
    for (int c = 0; c < COLUMNS; c++)
    {
        int kind = pick(11), nulls = pick(3);
        for (int64_t i = 0; i < rows->n; i++)
        {
            rows->real[c][i] = real_of_kind(kind);
            rows->integer[c][i] = integer_of_kind(kind);
            rows->is_null[c][i] = nulls == 2 && pick(3) == 0;
            if (rows->is_null[c][i]) /* the value of a NULL must be ignored */
                rows->real[c][i] = (double)NAN;
        }
        rows->column[c].real = rows->real[c];
        rows->column[c].integer = rows->integer[c];
        rows->column[c].is_null = nulls == 0 ? NULL : rows->is_null[c];
    }
    for (int64_t i = 0; i < rows->n; i++)
    {
        for (int k = pick(MOST_PAIRS + 1); k > 0; k--)
        {
            /* feature 0 gets about half of the pairs, the last feature none */
            rows->feature[rows->n_pairs] = pick(2) ? 0 : 1 + pick(FEATURES - 2);
            rows->at[rows->n_pairs++] = (int32_t)i;
        }
    }
}

/* Sums a batch as a backend does, with the pairs in random order. */
static void sum_rows(struct summed_rows *rows, struct oj_aggregates *sums,
                     int n_threads)
{
    struct oj_sum_request request;
    int64_t *words;
    int first = rows->n_pairs > 0 ? pick(rows->n_pairs) : 0;
    must(oj_aggregates_plan_sums(sums, rows->column, rows->n, n_threads,
                                 &request, &words, NULL));
    for (int i = 0; i < rows->n_pairs; i++)
    {
        int p = (first + i) % rows->n_pairs;
        plain_add_pair(&request, rows->at[p],
                       words + rows->feature[p] * request.n_words);
    }
    must(oj_aggregates_add_sums(sums, &request, NULL));
}

/* --- against pairs -------------------------------------------------------- */

static void same_results(struct oj_aggregates *a, struct oj_aggregates *b,
                         int n_aggregates)
{
    for (int64_t row = 0; row < FEATURES; row++)
    {
        ck_assert_int_eq(oj_aggregates_pair_count(a, row),
                         oj_aggregates_pair_count(b, row));
        for (int i = 0; i < n_aggregates; i++)
        {
            struct oj_aggregate_value u = {0}, v = {0};
            oj_status first = oj_aggregates_result(a, row, i, &u, NULL);
            ck_assert_int_eq(oj_aggregates_result(b, row, i, &v, NULL), first);
            if (first != OJ_OK)
            {
                ck_assert_int_eq(first, OJ_ERR_LIMIT);
                continue;
            }
            ck_assert_int_eq(u.is_null, v.is_null);
            ck_assert_int_eq(u.integer, v.integer);
            ck_assert_msg(memcmp(&u.real, &v.real, sizeof u.real) == 0 ||
                              (u.real != u.real && v.real != v.real),
                          "row %d, aggregate %d: %a, not %a", (int)row, i,
                          v.real, u.real);
        }
    }
}

TEST(property_sums_of_pairs)
{
    static const struct oj_aggregate aggregates[] = {
        {OJ_AGG_COUNT, 0, NULL, 0, 0.0},
        {OJ_AGG_SUM, 0, NULL, 0, 0.0},
        {OJ_AGG_MEAN, 0, NULL, 0, 0.0},
        {OJ_AGG_COUNT_VALUES, 0, NULL, 0, 0.0},
        {OJ_AGG_SUM, 1, NULL, 0, 0.0},
        {OJ_AGG_MEAN, 1, NULL, 0, 0.0},
        {OJ_AGG_COUNT_VALUES, 2, NULL, 0, 0.0},
        {OJ_AGG_MEAN, 3, NULL, 0, 0.0}};
    static const enum oj_aggregate_type types[COLUMNS] = {
        OJ_AGG_REAL, OJ_AGG_INTEGER, OJ_AGG_INTEGER, OJ_AGG_REAL};
    const struct oj_aggregate_plan plan = {aggregates, 8,    types, COLUMNS,
                                           0,          NULL, NULL};
    struct oj_aggregates *by_pairs = NULL, *by_sums = NULL;
    static struct summed_rows rows;
    must(oj_aggregates_open(&plan, &by_pairs, NULL));
    must(oj_aggregates_open(&plan, &by_sums, NULL));
    ck_assert(oj_aggregates_need_only_sums(by_sums));
    for (seed = 1; seed < 600; seed++)
    {
        random_state = seed;
        must(oj_aggregates_reset(by_pairs, FEATURES, NULL));
        must(oj_aggregates_reset(by_sums, FEATURES, NULL));
        for (int b = pick(BATCHES); b >= 0; b--)
        {
            struct oj_aggregate_pairs pairs = {
                .row = rows.feature, .at = rows.at, .columns = rows.column};
            make_rows(&rows);
            pairs.n = rows.n_pairs;
            must(oj_aggregates_add(by_pairs, &pairs, NULL));
            if (one_in(4)) /* some batches are added as pairs */
                must(oj_aggregates_add(by_sums, &pairs, NULL));
            else
                sum_rows(&rows, by_sums, 1 + pick(2));
        }
        must(oj_aggregates_rewind(by_pairs, NULL));
        must(oj_aggregates_rewind(by_sums, NULL));
        same_results(by_pairs, by_sums, 8);
    }
    oj_aggregates_close(by_pairs);
    oj_aggregates_close(by_sums);
}

TEST(unit_plans_that_are_not_summed)
{
    static const struct oj_aggregate aggregates[] = {
        {OJ_AGG_SUM, 0, NULL, 0, 0.0},
        {OJ_AGG_STDDEV, 0, NULL, 0, 0.0},
        {OJ_AGG_MIN, 0, NULL, 0, 0.0}};
    static const enum oj_aggregate_type types[] = {OJ_AGG_REAL};
    for (int first = 0; first < 3; first++)
    {
        const struct oj_aggregate_plan plan = {
            aggregates + first, 1, types, 1, 0, NULL, NULL};
        struct oj_aggregates *a = NULL;
        must(oj_aggregates_open(&plan, &a, NULL));
        ck_assert_int_eq(oj_aggregates_need_only_sums(a), first == 0);
        oj_aggregates_close(a);
    }
}

/* Opens aggregates that only sum one column. */
static struct oj_aggregates *open_sum(const enum oj_aggregate_type *type,
                                      int64_t n_rows)
{
    static const struct oj_aggregate sum = {OJ_AGG_SUM, 0, NULL, 0, 0.0};
    const struct oj_aggregate_plan plan = {&sum, 1, type, 1, 0, NULL, NULL};
    struct oj_aggregates *sums;
    must(oj_aggregates_open(&plan, &sums, NULL));
    must(oj_aggregates_reset(sums, n_rows, NULL));
    return sums;
}

/* A join of points with a layer without features. */
TEST(unit_no_features)
{
    static const enum oj_aggregate_type type = OJ_AGG_INTEGER;
    static const int64_t value[] = {4, 2};
    const struct oj_aggregate_column column = {.integer = value};
    struct oj_aggregates *sums = open_sum(&type, 0);
    struct oj_sum_request request;
    int64_t *words;
    must(oj_aggregates_plan_sums(sums, &column, 2, 1, &request, &words, NULL));
    must(oj_aggregates_add_sums(sums, &request, NULL));
    oj_aggregates_close(sums);
}

/* --- limbs ---------------------------------------------------------------- */

/* A column that is long enough for several tasks and for the largest window of
 * limbs. */
TEST(unit_large_column)
{
    static const enum oj_aggregate_type type = OJ_AGG_REAL;
    const int64_t n = 200001;
    struct oj_aggregates *sums = open_sum(&type, 1);
    struct oj_aggregate_column column = {0};
    struct oj_aggregate_value result;
    struct oj_sum_request request;
    struct oj_exact_sum expected = {0};
    double *value = oj_calloc(n, sizeof *value), truth;
    int64_t *words = NULL;
    ck_assert_ptr_nonnull(value);
    random_state = 3;
    for (int64_t i = 0; i < n; i++)
    {
        value[i] = i == 7 ? 0x1p-1074 : i == n - 1 ? DBL_MAX : any_size(-9, 9);
        must(oj_exact_sum_add(&expected, value[i], NULL));
    }
    column.real = value;
    for (int threads = 1; threads < 100; threads += 33)
    {
        must(oj_aggregates_plan_sums(sums, &column, n, threads, &request,
                                     &words, NULL));
        ck_assert_int_eq(request.column[0].base, -1074);
        ck_assert_int_eq(request.column[0].n_limbs, OJ_SUM_MOST_WORDS);
        ck_assert_int_eq(request.n_words, 1 + OJ_SUM_MOST_WORDS);
    }
    for (int64_t i = 0; i < n; i++)
        plain_add_pair(&request, i, words);
    must(oj_aggregates_add_sums(sums, &request, NULL));
    must(oj_aggregates_result(sums, 0, 0, &result, NULL));
    truth = oj_exact_sum_value(&expected);
    ck_assert(memcmp(&result.real, &truth, sizeof truth) == 0);
    oj_exact_sum_clear(&expected);
    oj_aggregates_close(sums);
    oj_free(value);
}

/* The limbs are as full as possible, positive and negative. Their sums are
 * compared with sums of halves of the values, added as doubles. */
TEST(unit_full_limbs)
{
    const int64_t full = INT64_C(0x7fffffff) * INT64_C(0xffffffff);
    random_state = 5;
    for (int turn = 0; turn < 5000; turn++)
    {
        struct oj_exact_sum sum = {0}, expected = {0};
        int64_t limb[6];
        int n = 1 + pick(6), scale = pick(2000) - 1074;
        double got, truth;
        for (int i = 0; i < n; i++)
        {
            int64_t low;
            limb[i] = pick(2) ? full - pick(3) : (int64_t)(random_bits() >> 2);
            if (pick(3) == 0)
                limb[i] = -limb[i];
            if (pick(5) == 0)
                limb[i] = 0;
            low = (int64_t)((uint64_t)limb[i] & 0xffffffffu);
            if (scale + 32 * i + 64 > 1000)
                limb[i] = low = 0;
            must(oj_exact_sum_add(&expected, ldexp((double)low, scale + 32 * i),
                                  NULL));
            must(oj_exact_sum_add(
                &expected,
                ldexp((double)((limb[i] - low) / (INT64_C(1) << 32)),
                      scale + 32 * i + 32),
                NULL));
        }
        must(oj_exact_sum_add_limbs(&sum, limb, n, scale, NULL));
        got = oj_exact_sum_value(&sum);
        truth = oj_exact_sum_value(&expected);
        ck_assert_msg(memcmp(&got, &truth, sizeof got) == 0, "%a, not %a", got,
                      truth);
        oj_exact_sum_clear(&sum);
        oj_exact_sum_clear(&expected);
    }
}

/* The n-th allocation fails: planning the sums returns OJ_ERR_NOMEM. */
TEST(memory_for_sums)
{
    static const enum oj_aggregate_type type = OJ_AGG_REAL;
    static struct summed_rows rows;
    oj_status status = OJ_ERR_NOMEM;
    int n = 0;
    random_state = 11;
    do
        make_rows(&rows);
    while (rows.n_pairs < 10);
    while (status != OJ_OK)
    {
        struct oj_aggregates *sums = open_sum(&type, FEATURES);
        struct oj_sum_request request;
        int64_t *words;
        ck_assert_int_eq(status, OJ_ERR_NOMEM);
        oj_alloc_fail_at(++n);
        status = oj_aggregates_plan_sums(sums, rows.column, rows.n, 1, &request,
                                         &words, NULL);
        oj_alloc_fail_at(0);
        oj_aggregates_close(sums);
    }
    ck_assert_int_gt(n, 1);
}

int main(void)
{
    tests_open("sum requests");
    return tests_run();
}
