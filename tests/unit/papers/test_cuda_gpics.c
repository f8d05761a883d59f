/* G-PICS on GPUs has the answers of the backend cpu, bit for bit. Tests random
 * points with ties, clusters and coincident points, and all supported
 * conditions, on one GPU and on all. Skipped if no GPU can be used.
 * Kind: property, degenerate, memory. OGRJOIN_TEST_ROUNDS=n runs more rounds.
 */
#include "../references.h"

#include "../run_device_tests.h"
#include "gpics_trial.h"

static const char *const backends[] = {
    "cuda_gpics_quadtree", "cuda_gpics_kdtree", "cuda_gpics_quadtree_single",
    "cuda_gpics_kdtree_single"};

enum
{
    N_BACKENDS = sizeof backends / sizeof *backends
};

static int64_t n_pairs_seen;

static void compare_with_cpu(const struct join_trial *t,
                             const struct oj_options *options)
{
    MATCHES truth = {0};
    trial_truth(t, &truth);
    n_pairs_seen += truth.n_pairs;
    for (int b = 0; b < N_BACKENDS; b++)
    {
        MATCHES ours = {0};
        must(trial_open_and_join(t, backends[b], options, NULL, &ours));
        same_matches(backends[b], &ours, &truth);
        if (one_in(8))
            trial_check_batches(t, backends[b], options, 1 + pick(100), 5,
                                &truth);
    }
}

static struct oj_options pick_gpu_options(const struct join_trial *t)
{
    struct oj_options options = pick_options();
    options.gpus = one_in(2) ? OJ_ALL_GPUS : 0;
    options.gpu_batch = one_in(3) ? 1 + t->input.n_features / (1 + pick(4)) : 0;
    return options;
}

TEST(as_cpu)
{
    n_pairs_seen = 0;
    EACH_ROUND(40)
    {
        struct oj_options options;
        struct join_trial t;
        make_trial(&t, pick(5));
        if (one_in(4))
        {
            pick_columns(&t.columns, &t.join, &t.input, &t.relation, 1.0, 4);
            t.join.max_distance = t.input.max_distance = NULL;
        }
        options = pick_gpu_options(&t);
        compare_with_cpu(&t, &options);
        trial_free(&t);
    }
    printf("%lld pairs\n", (long long)n_pairs_seen);
    ck_assert_int_gt(n_pairs_seen, 40);
}

/* Makes a join side of n points in n_places different places. */
static void make_side(struct join_trial *t, int n, int n_places)
{
    memset(t, 0, sizeof *t);
    for (int i = 0; i < n; i++)
        add_point(&t->join_buf, 3.0 + i % n_places, 4.0 - 2.0 * (i % n_places));
    for (int i = 0; i < 40; i++)
        add_point(&t->input_buf, pick(9), pick(9) - 3.0);
    add_features_without_geometry(&t->input_buf, 1);
    add_point(&t->input_buf, 3.0, 4.0);
    trial_view(t);
    t->relation = oj_relation_default();
}

/* A join side without points, with one, with all in one place, or in a few. */
TEST(degenerate_sides)
{
    static const int sizes[][2] = {{0, 1}, {1, 1}, {2, 1}, {700, 1}, {900, 3}};
    static const enum oj_op ops[] = {OJ_OP_NEAREST, OJ_OP_DWITHIN, OJ_OP_EQUALS,
                                     OJ_OP_BBOX};
    const struct oj_options options = {
        .n_threads = 1, .quadrant_size = 4, .gpus = OJ_ALL_GPUS};
    random_state = 4;
    for (int i = 0; i < 5; i++)
    {
        struct join_trial t;
        make_side(&t, sizes[i][0], sizes[i][1]);
        if (i == 1)
            add_features_without_geometry(&t.join_buf, 3);
        trial_view(&t);
        n_pairs_seen = 0;
        for (int j = 0; j < 8; j++)
        {
            t.relation.op = ops[j / 2];
            t.relation.max_distance =
                t.relation.op == OJ_OP_DWITHIN ? 5.0 : INFINITY;
            t.relation.k = j == 1 ? 3 : 1;
            t.relation.ties = j % 2 ? OJ_TIES_ALL : OJ_TIES_FIRST;
            compare_with_cpu(&t, &options);
        }
        ck_assert_int_eq(n_pairs_seen > 0, i > 0);
        trial_free(&t);
    }
}

/* All features are without geometry, or there are no rows. */
TEST(nothing_to_join)
{
    const struct oj_options options = {.n_threads = 1};
    struct join_trial t;
    random_state = 5;
    make_side(&t, 0, 1);
    add_features_without_geometry(&t.join_buf, 5);
    trial_view(&t);
    compare_with_cpu(&t, &options);
    add_point(&t.join_buf, 1.0, 2.0);
    trial_view(&t);
    t.input = (struct oj_flat){0};
    compare_with_cpu(&t, &options);
    trial_free(&t);
}

TEST(refused)
{
    struct join_trial t;
    int cancel = 1;
    const struct oj_options options = {.n_threads = 1},
                            stopped = {.n_threads = 1, .cancel = &cancel};
    MATCHES out = {0};
    random_state = 6;
    for (int b = 0; b < N_BACKENDS; b++)
    {
        make_side(&t, 100, 9);
        ck_assert_int_eq(
            trial_open_and_join(&t, backends[b], &stopped, NULL, &out),
            OJ_ERR_CANCELLED);
        add_square(&t.join_buf, 0, 0, 1, 1);
        trial_view(&t);
        ck_assert_int_eq(
            trial_open_and_join(&t, backends[b], &options, NULL, &out),
            OJ_ERR_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(error.message, backends[b]));
        trial_free(&t);
    }
}

/* With less memory than needed, there is an error and no wrong answer. */
TEST(little_memory)
{
    struct join_trial t;
    int64_t n_answered = 0, n_failed = 0;
    MATCHES truth = {0};
    random_state = 7;
    make_side(&t, 2000, 700);
    for (int i = 0; i < 2000; i++)
        add_point(&t.input_buf, between(0.0, 700.0), between(-1400.0, 0.0));
    trial_view(&t);
    t.relation.k = 20;
    t.relation.max_distance = INFINITY;
    trial_truth(&t, &truth);
    for (int64_t bytes = 1 << 12; bytes < (int64_t)1 << 28; bytes *= 4)
    {
        const struct oj_options options = {.n_threads = 1, .gpu_memory = bytes};
        for (int b = 0; b < N_BACKENDS; b++)
        {
            MATCHES ours = {0};
            oj_status status =
                trial_open_and_join(&t, backends[b], &options, NULL, &ours);
            expect(status == OJ_OK || status == OJ_ERR_NOMEM, "%s: %s",
                   backends[b], error.message);
            n_failed += status != OJ_OK;
            n_answered += status == OJ_OK;
            if (status == OJ_OK)
                same_matches(backends[b], &ours, &truth);
        }
    }
    ck_assert_int_gt(n_failed, 0);
    ck_assert_int_gt(n_answered, N_BACKENDS);
    trial_free(&t);
}

int main(void)
{
    if (!device_tests_open("G-PICS on a GPU"))
        return DEVICE_TESTS_SKIPPED;
    return tests_run();
}
