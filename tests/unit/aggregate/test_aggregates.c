/* Compares aggregates with a plain computation over sorted pairs. The
 * aggregates keep the values of pairs in memory or in files. Then every
 * allocation fails in turn.
 * Kind: unit, property, memory. */
#include "plain_aggregates.h"

#include "../../../flatten/base/oj_alloc.h"

#include "../run_tests.h"

static struct oj_aggregate_plan make_plan(int64_t memory)
{
    struct oj_aggregate_plan plan = {all,    N_ALL,  types,      COLUMNS,
                                     memory, &files, is_of_pairs};
    return plan;
}

static void shuffle_pairs(void)
{
    for (int i = n_pairs - 1; i > 0; i--)
    {
        int k = pick(i + 1);
        struct aggregated_pair other = pairs[i];
        pairs[i] = pairs[k];
        pairs[k] = other;
    }
}

static void check_some(struct oj_aggregates *a, const struct oj_aggregate *some,
                       int n_some)
{
    for (int64_t row = 0; row < ROWS; row++)
    {
        for (int i = 0; i < n_some; i++)
        {
            struct oj_aggregate_value got,
                expected = plain_aggregate(&some[i], row);
            struct oj_error error;
            enum oj_aggregate_type type =
                oj_aggregate_type(some[i].kind, types[some[i].column]);
            must(oj_aggregates_result(a, row, i, &got, &error));
            expect(is_same(type, &got, &expected),
                   "seed %llu, row %d, aggregate %d: %d %lld %g %.*s, not %d "
                   "%lld %g",
                   (unsigned long long)seed, (int)row, i, got.is_null,
                   (long long)got.integer, got.real, (int)got.n_bytes,
                   got.bytes != NULL ? got.bytes : "", expected.is_null,
                   (long long)expected.integer, expected.real);
        }
    }
}

TEST(property_all_aggregates)
{
    static const int64_t memory[] = {0, 1, 3000, 100000};
    for (int m = 0; m < 4; m++)
    {
        const struct oj_aggregate_plan plan = make_plan(memory[m]);
        struct oj_aggregates *a;
        must(oj_aggregates_open(&plan, &a, NULL));
        EACH_ROUND(12)
        {
            make_pairs();
            for (int turn = 0; turn < 2; turn++)
            {
                n_opened = 0;
                must(oj_aggregates_reset(a, ROWS, NULL));
                must(add_all_pairs(a, NULL));
                expect((n_opened > 0) == (memory[m] == 1 && n_pairs >= 256) ||
                           memory[m] > 1,
                       "spills");
                must(oj_aggregates_rewind(a, NULL));
                check_some(a, all, N_ALL);
                shuffle_pairs();
            }
        }
        oj_aggregates_close(a);
    }
}

/* ---- some aggregates, and rows put together ------------------------------ */

/* Copies the aggregates of `all` for which take() returns 1 to `some`. Returns
 * their number. */
static int select_aggregates(struct oj_aggregate *some,
                             int (*take)(const struct oj_aggregate *what))
{
    int n = 0;
    for (int i = 0; i < N_ALL; i++)
    {
        if (take(&all[i]))
            some[n++] = all[i];
    }
    return n;
}

static int can_be_merged(const struct oj_aggregate *what)
{
    return what->kind <= OJ_AGG_MEAN;
}

static int is_a_sum(const struct oj_aggregate *what)
{
    return what->kind <= OJ_AGG_MEAN || what->kind == OJ_AGG_STDDEV;
}

/* Some pairs are added to a second set of aggregates. After the second set is
 * merged into the first, the first set holds the aggregates of all pairs. */
TEST(property_merged_rows)
{
    struct oj_aggregate some[N_ALL];
    struct oj_aggregate_plan plan = make_plan(0);
    struct oj_aggregates *a, *other;
    plan.aggregates = some;
    plan.n_aggregates = select_aggregates(some, can_be_merged);
    must(oj_aggregates_open(&plan, &a, NULL));
    must(oj_aggregates_open(&plan, &other, NULL));
    EACH_ROUND(40)
    {
        make_pairs();
        must(oj_aggregates_reset(a, ROWS, NULL));
        must(oj_aggregates_reset(other, ROWS, NULL));
        for (int i = 0; i < n_pairs; i++)
            must(add_pairs(pick(2) ? a : other, i, 1, NULL));
        must(oj_aggregates_merge(a, other, NULL));
        must(oj_aggregates_rewind(a, NULL));
        check_some(a, some, plan.n_aggregates);
    }
    oj_aggregates_close(a);
    oj_aggregates_close(other);
}

static int by_row(const void *a, const void *b)
{
    const struct aggregated_pair *u = a, *v = b;
    return (u->row > v->row) - (u->row < v->row);
}

/* A plan whose aggregates need no single values takes the fast path, which sums
 * the pairs of one row together. */
TEST(property_sums)
{
    struct oj_aggregate some[N_ALL];
    struct oj_aggregate_plan plan = make_plan(0);
    struct oj_aggregates *a;
    plan.aggregates = some;
    plan.n_aggregates = select_aggregates(some, is_a_sum);
    must(oj_aggregates_open(&plan, &a, NULL));
    EACH_ROUND(40)
    {
        make_pairs();
        if (seed % 2 == 0)
            qsort(pairs, (size_t)n_pairs, sizeof *pairs, by_row);
        must(oj_aggregates_reset(a, ROWS, NULL));
        must(add_all_pairs(a, NULL));
        check_some(a, some, plan.n_aggregates);
    }
    oj_aggregates_close(a);
}

TEST(unit_counts)
{
    const struct oj_aggregate counts[] = {{.kind = OJ_AGG_COUNT},
                                          {.kind = OJ_AGG_COUNT}};
    const int64_t more[] = {3, 0, (int64_t)1 << 40};
    struct oj_aggregate_plan plan = {.aggregates = counts, .n_aggregates = 2};
    const int64_t row_two = 2;
    const int32_t at = 0;
    const struct oj_aggregate_pairs pair = {.n = 1, .row = &row_two, .at = &at};
    struct oj_aggregate_value value;
    struct oj_aggregates *a;
    must(oj_aggregates_open(&plan, &a, NULL));
    ck_assert(oj_aggregates_need_only_sums(a));
    must(oj_aggregates_reset(a, 4, NULL));
    must(oj_aggregates_add(a, &pair, NULL));
    for (int row = 0; row < 3; row++)
        oj_aggregates_counts(a)[row] += 2 * more[row];
    must(oj_aggregates_rewind(a, NULL));
    for (int row = 0; row < 4; row++)
    {
        must(oj_aggregates_result(a, row, 1, &value, NULL));
        ck_assert_int_eq(value.integer,
                         row < 3 ? 2 * more[row] + (row == 2) : 0);
    }
    oj_aggregates_close(a);
    plan = make_plan(0);
    must(oj_aggregates_open(&plan, &a, NULL));
    must(oj_aggregates_reset(a, 4, NULL));
    ck_assert_ptr_null(oj_aggregates_counts(a));
    ck_assert(!oj_aggregates_need_only_sums(a));
    oj_aggregates_close(a);
}

TEST(unit_integer_sums)
{
    static const enum oj_aggregate_type type = OJ_AGG_INTEGER;
    static const struct oj_aggregate list[] = {{OJ_AGG_SUM, 0, NULL, 0, 0.0},
                                               {OJ_AGG_MEAN, 0, NULL, 0, 0.0}};
    const struct oj_aggregate_plan plan = {list, 2, &type, 1, 0, NULL, NULL};
    struct oj_aggregates *a;
    struct oj_aggregate_value value = {0};
    int64_t integer = INT64_MAX;
    const struct oj_aggregate_column integers = {.integer = &integer};
    static const int64_t row[3] = {0};
    static const int32_t at[3] = {0};
    const struct oj_aggregate_pairs three = {
        .n = 3, .row = row, .at = at, .columns = &integers};
    struct oj_error error;
    must(oj_aggregates_open(&plan, &a, NULL));
    must(oj_aggregates_reset(a, 1, NULL));
    must(oj_aggregates_add(a, &three, NULL));
    must(oj_aggregates_rewind(a, NULL));
    ck_assert_int_eq(oj_aggregates_result(a, 0, 0, &value, &error),
                     OJ_ERR_LIMIT);
    must(oj_aggregates_result(a, 0, 1, &value, NULL));
    ck_assert(value.real == 0x1p63);
    integer = INT64_MIN;
    must(oj_aggregates_add(a, &three, NULL));
    must(oj_aggregates_result(a, 0, 0, &value, &error));
    ck_assert_int_eq(value.integer, -3);
    oj_aggregates_close(a);
}

TEST(unit_wrong_plans)
{
    static const struct oj_aggregate wrong[] = {
        {OJ_AGG_SUM, 2, NULL, 0, 0.0},
        {OJ_AGG_MEDIAN, 2, NULL, 0, 0.0},
        {OJ_AGG_CONCAT, 0, ",", 0, 0.0},
        {OJ_AGG_MIN, 4, NULL, 0, 0.0},
        {OJ_AGG_MIN, -1, NULL, 0, 0.0},
        {OJ_AGG_RANGE, 2, NULL, 0, 0.0},
        {OJ_AGG_PERCENTILE, 1, NULL, 0, 100.5},
        {OJ_AGG_PERCENTILE, 1, NULL, 0, (double)NAN},
        {OJ_AGG_WEIGHTED_MEAN, 1, NULL, 2, 0.0},
        {OJ_AGG_WEIGHTED_MEAN, 1, NULL, 4, 0.0}};
    for (int i = 0; i < (int)(sizeof wrong / sizeof *wrong); i++)
    {
        const struct oj_aggregate_plan plan = {&wrong[i], 1,    types, COLUMNS,
                                               0,         NULL, NULL};
        struct oj_aggregates *a = NULL;
        struct oj_error error;
        ck_assert_int_eq(oj_aggregates_open(&plan, &a, &error),
                         OJ_ERR_INTERNAL);
        ck_assert(strstr(error.message, "internal error: aggregate 0 of a "
                                        "plan ") == error.message);
        ck_assert_ptr_null(a);
    }
}

TEST(unit_no_room_for_runs)
{
    struct oj_aggregate_plan plan = make_plan(1);
    struct oj_aggregates *a;
    struct oj_error error;
    oj_status status;
    plan.files = &no_files;
    random_state = 1;
    make_pairs();
    while (n_pairs < 300)
        pairs[n_pairs] = pairs[0], n_pairs++;
    must(oj_aggregates_open(&plan, &a, NULL));
    must(oj_aggregates_reset(a, ROWS, NULL));
    status = add_pairs(a, 0, n_pairs, &error);
    ck_assert_int_eq(status, OJ_ERR_IO);
    oj_aggregates_close(a);
}

static oj_status run_all(int64_t memory, struct oj_error *err)
{
    const struct oj_aggregate_plan plan = make_plan(memory);
    struct oj_aggregates *a;
    oj_status status;
    OJ_TRY(oj_aggregates_open(&plan, &a, err));
    status = oj_aggregates_reset(a, ROWS, err);
    for (int i = 0; i < n_pairs && status == OJ_OK; i += 100)
        status = add_pairs(a, i, 100, err);
    if (status == OJ_OK)
        status = oj_aggregates_rewind(a, err);
    for (int i = 0; i < ROWS * N_ALL && status == OJ_OK; i++)
    {
        struct oj_aggregate_value value;
        status = oj_aggregates_result(a, i / N_ALL, i % N_ALL, &value, err);
    }
    oj_aggregates_close(a);
    return status;
}

TEST(memory_every_allocation_fails)
{
    static const int64_t memory[] = {0, 1, 3000};
    for (int m = 0; m < 3; m++)
    {
        struct oj_error error;
        int64_t n;
        random_state = 3;
        make_pairs();
        n_pairs = 600;
        oj_alloc_fail_at(0);
        must(run_all(memory[m], &error));
        n = oj_alloc_fail_at(0);
        ck_assert_int_gt(n, 10);
        for (int64_t i = 1; i <= n; i++)
        {
            oj_status status;
            oj_alloc_fail_at(i);
            status = run_all(memory[m], &error);
            oj_alloc_fail_at(0);
            expect(status == OJ_ERR_NOMEM, "allocation %d of %d: %s", (int)i,
                   (int)n, oj_status_name(status));
        }
        must(run_all(memory[m], &error));
    }
}

int main(void)
{
    tests_open("aggregates");
    return tests_run();
}
