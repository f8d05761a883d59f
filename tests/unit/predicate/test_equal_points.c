/* Joins of points with points by predicates: the pairs are those with equal
 * coordinates (0 equals -0) that fulfil the conditions of the join, in the
 * order of FIDs, for any number of threads.
 * Kind: property, degenerate. OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../references.h"

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

/* Adds points in few places, so that many coincide, with zeros of both signs.
 */
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

/* The pairs of a row are sorted by FID; no two FIDs are equal. */
static void check_row(const struct join_trial *t, int64_t row,
                      const struct oj_matches *m)
{
    int64_t at = oj_matches_first(m, row), end = oj_matches_end(m, row);
    int64_t n = 0;
    for (int64_t f = 0; f < t->join.n_features; f++)
    {
        if (t->join.x[f] == t->input.x[row] &&
            t->join.y[f] == t->input.y[row] &&
            plain_counts(&t->relation, &t->input, row, &t->join, f))
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
                   plain_counts(&t->relation, &t->input, row, &t->join, f),
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
        must(trial_ask(&t, "cpu", &options, method, &m));
        ck_assert_str_eq(method, oj_cpu_equal_points.name);
        for (int64_t row = 0; row < t.input.n_features; row++)
            check_row(&t, row, &m);
        oj_free(join_fid);
        oj_free(input_fid);
        trial_free(&t);
    }
    /* the rounds must have covered the cases they are made for */
    ck_assert_int_gt(n_pairs, 1000);
    ck_assert_int_gt(n_of_zeros, 100);
    ck_assert_int_gt(n_lists, 100);
}

int main(void)
{
    tests_open("equal points");
    return tests_run();
}
