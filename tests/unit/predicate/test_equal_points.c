/* Joins of points with points by predicates. The pairs are those with equal
 * coordinates (0 equals -0) that fulfil the conditions of the join, in the
 * order of FIDs, for any number of threads. With op attributes, the first pairs
 * and the numbers of pairs are those of the list of all pairs.
 * Kind: property, degenerate. OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../references.h"

#include "../../../algs/foundations/aggregate/oj_aggregate.h"
#include "../join_trial.h"
#include "../plain_pairs.h"
#include "../run_tests.h"

static const enum oj_op ops[] = {OJ_OP_BBOX,
                                 OJ_OP_INTERSECTS,
                                 OJ_OP_WITHIN,
                                 OJ_OP_CONTAINS,
                                 OJ_OP_COVERS,
                                 OJ_OP_COVEREDBY,
                                 OJ_OP_CONTAINS_PROPERLY,
                                 OJ_OP_EQUALS};

static int64_t n_pairs, n_of_zeros, n_lists;

/* Adds points in few places, so that many coincide. Zeros have both signs. */
static void add_places(struct oj_flat_buf *buf, int n)
{
    int extent = 1 + pick(30);
    for (int i = 0; i < n; i++)
    {
        double x = pick(extent) - 1, y = pick(extent) - 1;
        if (one_in(20))
            must(oj_flat_buf_add_null(buf, i, &error));
        else
            add_point(buf, x == 0.0 && pick(2) ? -0.0 : x,
                      one_in(9) ? nudge(y, 1) : y);
    }
}

/* Checks a row. Its pairs must be sorted by FID; no two FIDs are equal. */
static void check_row(const struct join_trial *t, int64_t row,
                      const struct oj_matches *m)
{
    int64_t at = oj_matches_first(m, row), end = oj_matches_end(m, row);
    int64_t n = 0;
    for (int64_t f = 0; f < t->join.n_features; f++)
    {
        if (t->join.x[f] == t->input.x[row] &&
            t->join.y[f] == t->input.y[row] &&
            plain_is_allowed(&t->relation, &t->input, row, &t->join, f))
        {
            n++;
            n_of_zeros += t->join.x[f] == 0.0;
        }
    }
    expect(end - at == n, "seed %llu: row %d has %d pairs, not %d",
           (unsigned long long)seed, (int)row, (int)(end - at), (int)n);
    for (int64_t i = at; i < end; i++)
    {
        int32_t f = m->join_row[i];
        expect(t->join.x[f] == t->input.x[row] &&
                   t->join.y[f] == t->input.y[row] &&
                   plain_is_allowed(&t->relation, &t->input, row, &t->join, f),
               "seed %llu: row %d, feature %d is no pair",
               (unsigned long long)seed, (int)row, (int)f);
        expect(i == at || t->join.fid[m->join_row[i - 1]] < t->join.fid[f],
               "seed %llu: row %d is not in order", (unsigned long long)seed,
               (int)row);
    }
    n_pairs += n;
    n_lists += n > 1;
}

static int64_t *make_fids(int64_t n)
{
    int64_t *fid = oj_malloc(n + 1, sizeof *fid);
    int descend = pick(2);
    ck_assert_ptr_nonnull(fid);
    for (int64_t i = 0; i < n; i++)
        fid[i] = descend ? n - i : 3 * i;
    return fid;
}

TEST(pairs_are_those_of_a_plain_loop)
{
    for (int64_t left = first_round(1500); left > 0; left = next_round(left))
    {
        struct join_trial t;
        const struct oj_options options = {.n_threads = 1 + pick(3)};
        int64_t *join_fid, *input_fid;
        char method[64];
        MATCHES m = {0};
        memset(&t, 0, sizeof t);
        t.relation = oj_relation_default();
        t.relation.op = ops[pick(8)];
        add_places(&t.join_buf, pick(one_in(3) ? 600 : 40));
        add_places(&t.input_buf, pick(one_in(3) ? 600 : 40));
        trial_view(&t);
        t.join.fid = join_fid = make_fids(t.join.n_features);
        t.input.fid = input_fid = make_fids(t.input.n_features);
        pick_columns(&t.columns, &t.join, &t.input, &t.relation, 1.0, 5);
        t.join.max_distance = t.input.max_distance = NULL;
        must(trial_open_and_join(&t, "cpu", &options, method, &m));
        ck_assert_str_eq(method, oj_cpu_equal_points.name);
        for (int64_t row = 0; row < t.input.n_features; row++)
            check_row(&t, row, &m);
        oj_free(join_fid);
        oj_free(input_fid);
        trial_free(&t);
    }
    /* the rounds must have met the cases for which they are made */
    ck_assert_int_gt(n_pairs, 1000);
    ck_assert_int_gt(n_of_zeros, 100);
    ck_assert_int_gt(n_lists, 100);
}

/* Returns aggregates that count the pairs of each of n rows. */
static struct oj_aggregates *open_counts(int64_t n)
{
    static const struct oj_aggregate what[] = {{OJ_AGG_COUNT, 0, NULL, 0, 0.0}};
    static const struct oj_aggregate_plan plan = {what, 1,    NULL, 0,
                                                  0,    NULL, NULL};
    struct oj_aggregates *counts = NULL;
    must(oj_aggregates_open(&plan, &counts, &error));
    must(oj_aggregates_reset(counts, n, &error));
    return counts;
}

/* Counts the pairs of each join feature without listing them, for each half of
 * the input, and compares the counts with the list of all pairs. Returns 0 if
 * conditions require the list. */
static int check_counts_of_features(const struct join_trial *t,
                                    const struct oj_matches *all)
{
    const int64_t n = t->join.n_features;
    struct oj_aggregates *counts = open_counts(n);
    struct oj_join *join = trial_open(t, "cpu", NULL);
    int64_t n_counted = 0, *expected = oj_calloc(n + 1, sizeof *expected);
    oj_status status = OJ_OK;
    ck_assert_ptr_nonnull(expected);
    for (int64_t i = 0; i < all->n_entries; i++)
        expected[all->join_row[i]]++;
    for (int k = 0; k < 2 && status == OJ_OK; k++)
    {
        status = oj_join_sum_pairs(join, &t->input, NULL, counts, &n_counted,
                                   &error);
        if (status == OJ_OK)
            ck_assert_int_eq(n_counted, all->n_pairs);
    }
    for (int64_t f = 0; f < n; f++)
        ck_assert_int_eq(oj_aggregates_pair_count(counts, f),
                         status == OJ_OK ? 2 * expected[f] : 0);
    ck_assert(status == OJ_OK || status == OJ_ERR_UNSUPPORTED);
    oj_free(expected);
    oj_aggregates_close(counts);
    oj_join_close(join);
    return status == OJ_OK;
}

/* Compares the answer that lists first pairs with the list of all pairs. */
static void check_first_pairs(const struct oj_matches *all,
                              const struct oj_matches *firsts)
{
    ck_assert_int_eq(firsts->n_pairs, all->n_pairs);
    ck_assert_int_eq(firsts->n_matched, all->n_matched);
    for (int64_t row = 0; row < all->n_rows; row++)
    {
        const int64_t a = oj_matches_first(all, row);
        const int64_t n = oj_matches_end(all, row) - a;
        const int64_t b = oj_matches_first(firsts, row);
        ck_assert_int_eq(oj_matches_end(firsts, row) - b, n > 0);
        if (n == 0)
            continue;
        ck_assert_int_eq(firsts->join_row[b], all->join_row[a]);
        ck_assert_int_eq(oj_matches_pairs_of_entry(firsts, b), n);
        n_lists += n > 1;
    }
}

TEST(first_pairs_and_counts_of_equal_attributes)
{
    int64_t n_counted = 0, n_listed = 0;
    n_lists = 0;
    for (int64_t left = first_round(1500); left > 0; left = next_round(left))
    {
        struct join_trial t;
        const struct oj_options options = {.n_threads = 1 + pick(3)};
        int64_t *join_fid, *input_fid;
        char method[64];
        MATCHES all = {0};
        MATCHES firsts = {0};
        memset(&t, 0, sizeof t);
        t.relation = oj_relation_default();
        t.relation.op = OJ_OP_ATTRIBUTES;
        add_places(&t.join_buf, 1 + pick(one_in(3) ? 600 : 40));
        add_places(&t.input_buf, 1 + pick(one_in(3) ? 600 : 40));
        trial_view(&t);
        t.join.fid = join_fid = make_fids(t.join.n_features);
        t.input.fid = input_fid = make_fids(t.input.n_features);
        pick_columns(&t.columns, &t.join, &t.input, &t.relation, 1.0, 6);
        if (t.join.on_class == NULL)
        {
            const int n_classes = 1 + pick(9);
            t.join.on_class = t.columns.on_class[0] =
                pick_column(t.join.n_features, n_classes);
            t.input.on_class = t.columns.on_class[1] =
                pick_column(t.input.n_features, n_classes);
        }
        must(trial_open_and_join(&t, "cpu", &options, method, &all));
        ck_assert_str_eq(method, oj_cpu_equal_attributes.name);
        if (check_counts_of_features(&t, &all))
            n_counted++;
        else
            n_listed++;
        t.relation.enough_pairs = 1;
        must(trial_open_and_join(&t, "cpu", &options, method, &firsts));
        check_first_pairs(&all, &firsts);
        oj_free(join_fid);
        oj_free(input_fid);
        trial_free(&t);
    }
    ck_assert_int_gt(n_counted, 100);
    ck_assert_int_gt(n_listed, 100);
    ck_assert_int_gt(n_lists, 100);
}

/* Two groups have 2 x 10^10 pairs. A list of them would take minutes. */
TEST(counts_of_large_groups)
{
    enum
    {
        GROUP = 100000
    };
    struct join_trial t;
    int32_t *classes = oj_malloc(2 * GROUP, sizeof *classes);
    struct oj_aggregates *counts = open_counts(2 * GROUP);
    struct oj_join *join;
    int64_t n_counted = 0;
    MATCHES firsts = {0};
    memset(&t, 0, sizeof t);
    ck_assert_ptr_nonnull(classes);
    for (int i = 0; i < 2 * GROUP; i++)
    {
        add_point(&t.join_buf, i, 0);
        add_point(&t.input_buf, 0, i);
        classes[i] = i % 2;
    }
    trial_view(&t);
    t.join.on_class = t.input.on_class = classes;
    t.relation = oj_relation_default();
    t.relation.op = OJ_OP_ATTRIBUTES;
    join = trial_open(&t, "cpu", NULL);
    must(oj_join_sum_pairs(join, &t.input, NULL, counts, &n_counted, &error));
    ck_assert_int_eq(n_counted, INT64_C(2) * GROUP * GROUP);
    ck_assert_int_eq(oj_aggregates_pair_count(counts, 7), GROUP);
    oj_join_close(join);
    t.relation.enough_pairs = 1;
    join = trial_open(&t, "cpu", NULL);
    must(oj_join_batch(join, &t.input, &firsts, &error));
    ck_assert_int_eq(firsts.n_pairs, INT64_C(2) * GROUP * GROUP);
    ck_assert_int_eq(firsts.n_entries, 2 * GROUP);
    ck_assert_int_eq(firsts.join_row[7], 1);
    oj_join_close(join);
    oj_aggregates_close(counts);
    oj_free(classes);
    trial_free(&t);
}

int main(void)
{
    tests_open("equal points");
    return tests_run();
}
