/* Points in the envelopes of features of all kinds, including envelopes without
 * area. The pairs equal those of a plain loop over all boxes, for any number of
 * threads.
 * Kind: property, degenerate. OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../references.h"

#include "../join_trial.h"
#include "../plain_pairs.h"
#include "../run_tests.h"

#include "../../../algs/foundations/base/oj_feature_box.h"

static int64_t n_pairs, n_on_border, n_flat;

static void check_row(const struct join_trial *t, int64_t row,
                      const struct oj_matches *m)
{
    double x = t->input.x[row], y = t->input.y[row];
    int64_t at = oj_matches_first(m, row);
    for (int64_t f = 0; f < t->join.n_features; f++)
    {
        struct oj_box box = oj_box_of_feature(&t->join, f);
        if (oj_box_is_empty(&box) || !oj_box_contains_point(&box, x, y))
            continue;
        expect(at < oj_matches_end(m, row) && m->join_row[at] == f,
               "seed %llu: row %d lacks feature %d", (unsigned long long)seed,
               (int)row, (int)f);
        at++;
        n_pairs++;
        n_on_border += x == box.x0 || x == box.x1 || y == box.y0 || y == box.y1;
        n_flat += box.x0 == box.x1 || box.y0 == box.y1;
    }
    expect(at == oj_matches_end(m, row), "seed %llu: row %d has too many pairs",
           (unsigned long long)seed, (int)row);
}

TEST(pairs_are_those_of_all_boxes)
{
    for (int64_t left = first_round(600); left > 0; left = next_round(left))
    {
        static const struct oj_engine *engine = &oj_cpu_points_in_envelopes;
        struct join_trial t;
        char method[64];
        const struct oj_options options = {.n_threads = 1 + pick(3)};
        MATCHES m = {0};
        trial_make(&t, pick(60), plain_kinds(), 1, 200);
        t.join.fid = NULL;
        t.relation.op = OJ_OP_BBOX;
        must(trial_open_and_join(&t, "cpu", &options, method, &m));
        if (engine->supports(&t.relation, &t.join, &t.input))
            ck_assert_str_eq(method, engine->name);
        for (int64_t row = 0; row < t.input.n_features; row++)
            check_row(&t, row, &m);
        trial_free(&t);
    }
    /* the rounds must have met the cases for which they are made */
    ck_assert_int_gt(n_pairs, 1000);
    ck_assert_int_gt(n_on_border, 100);
    ck_assert_int_gt(n_flat, 100);
}

int main(void)
{
    tests_open("points in envelopes");
    return tests_run();
}
