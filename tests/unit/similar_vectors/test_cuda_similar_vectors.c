/* Similar vectors on a GPU have the answers of the backend cpu, bit for bit.
 * Skipped if no GPU can be used.
 * Kind: property, degenerate, memory. OGRJOIN_TEST_ROUNDS=n runs more rounds.
 */
#include "../references.h"

#include "../run_device_tests.h"
#include "vector_trial.h"

static int64_t n_pairs_seen, n_exact_seen, n_on_device;

/* Compares the answer with that of the paper's method. The method may return an
 * error. */
static void compare_paper(const struct join_trial *t,
                          const struct oj_options *given,
                          const struct oj_matches *truth)
{
    MATCHES theirs = {0};
    oj_status status =
        trial_open_and_join(t, "cuda_zlists", given, NULL, &theirs);
    if (t->relation.vector.norm == OJ_NORM_COSINE ||
        t->relation.ties == OJ_TIES_ALL)
        ck_assert_int_eq(status, OJ_ERR_UNSUPPORTED);
    else if (given->gpu_memory == 0 || status != OJ_ERR_NOMEM)
    {
        must(status);
        same_matches("by Z-lists", &theirs, truth);
    }
}

static void compare(const struct join_trial *t, const struct oj_options *given)
{
    MATCHES ours = {0}, truth = {0};
    char how[64] = "";
    trial_truth(t, &truth);
    compare_paper(t, given, &truth);
    must(trial_open_and_join(t, "cuda", given, how, &ours));
    same_matches("on the GPU", &ours, &truth);
    n_on_device += strcmp(how, "tiles of vectors") == 0;
    n_pairs_seen += ours.n_pairs;
    for (int64_t i = 0; i < ours.n_entries; i++)
        n_exact_seen += ours.measure[i] == t->relation.vector.max_difference;
}

static void make_job(struct join_trial *t, int kind, int most_rows)
{
    int64_t n_dimensions = one_in(2) ? 17 + pick(60) : 1 + pick(20);
    make_trial(t, kind, pick(most_rows), pick(most_rows), n_dimensions);
    if (one_in(2) || t->relation.k == OJ_EVERY_PAIR)
        t->relation.vector.max_difference = pick_limit(t);
    if (one_in(3)) /* gives more pairs, for the method by products */
        t->relation.vector.max_difference *= 1.0 + pick(4);
    t->relation.k = one_in(2) ? OJ_EVERY_PAIR : 1 + pick(one_in(4) ? 80 : 6);
    pick_columns(&t->columns, &t->join, &t->input, &t->relation, 1.0, 4);
    t->columns.vector[0] = (double *)t->join.vectors.value;
    t->columns.vector[1] = (double *)t->input.vectors.value;
    t->relation.exclude_same_geometry = 0;
}

TEST_LOOP(random_sides, 0, N_KINDS)
{
    n_pairs_seen = n_exact_seen = n_on_device = 0;
    EACH_ROUND(20)
    {
        struct oj_options options = {.n_threads = 1, .gpus = OJ_ALL_GPUS};
        struct join_trial job, alone;
        random_state += (uint64_t)_i * 7919;
        make_job(&job, _i, one_in(4) ? 500 : 150);
        options.gpu_batch =
            one_in(2) ? 0 : 1 + job.input.n_features / (1 + pick(3));
        compare(&job, &options);
        alone = trial_with_itself(&job);
        compare(&alone, &options);
        trial_free(&job);
    }
    printf("kind %d: %lld pairs, %lld of them just at the limit\n", _i,
           (long long)n_pairs_seen, (long long)n_exact_seen);
    ck_assert_int_gt(n_pairs_seen, 0);
    ck_assert_int_gt(n_on_device, 0);
}

/* Many tiles with all norms, by differences and by products. */
TEST_LOOP(many_tiles, 0, 4)
{
    const struct oj_options options = {.n_threads = 0};
    struct join_trial job;
    random_state = (uint64_t)_i + 17;
    n_pairs_seen = n_exact_seen = n_on_device = 0;
    for (int i = 0; i < 2; i++)
    {
        MATCHES nearest = {0};
        make_trial(&job, CLUSTERS, i == 0 ? 2600 : 700, 500,
                   i == 0 ? 1 + pick(12) : 40);
        job.relation.vector.norm = (enum oj_vector_norm)_i;
        job.relation.k = 7;
        compare(&job, &options);
        trial_truth(&job, &nearest);
        job.relation.k = OJ_EVERY_PAIR;
        job.relation.vector.max_difference =
            nearest.measure[nearest.n_entries / 2];
        compare(&job, &options);
        trial_free(&job);
    }
    ck_assert_int_eq(n_on_device, 4);
    ck_assert_int_gt(n_exact_seen, 0);
}

/* So many tiles that each of several devices gets some. */
TEST(tiles_of_all_devices)
{
    const struct oj_options one = {.n_threads = 0};
    const struct oj_options all = {.n_threads = 0, .gpus = OJ_ALL_GPUS};
    MATCHES ours = {0}, theirs = {0}, truth = {0};
    struct join_trial job;
    random_state = 23;
    make_trial(&job, CLUSTERS, 9000, 200, 3);
    job.relation.k = 4;
    trial_truth(&job, &truth);
    must(trial_open_and_join(&job, "cuda", &all, NULL, &ours));
    must(trial_open_and_join(&job, "cuda", &one, NULL, &theirs));
    same_matches("on all GPUs", &ours, &truth);
    same_matches("on one GPU", &theirs, &truth);
    trial_free(&job);
}

/* The greatest number of dimensions. They are processed slab by slab. */
TEST_LOOP(large_dimensions, 0, 4)
{
    const struct oj_options options = {.n_threads = 1};
    struct join_trial job;
    random_state = (uint64_t)_i + 5;
    make_trial(&job, CLUSTERS, 200, 40, OJ_MOST_DIMENSIONS);
    job.relation.vector.norm = (enum oj_vector_norm)_i;
    job.relation.k = 5;
    compare(&job, &options);
    job.relation.k = OJ_EVERY_PAIR;
    job.relation.vector.max_difference = 2.0 * pick_limit(&job);
    compare(&job, &options);
    trial_free(&job);
}

/* The method of the paper with Z-order lists, for points of the plane. */
TEST(points_by_z_lists)
{
    n_pairs_seen = 0;
    for (int i = 0; i < 40; i++)
    {
        const struct oj_options options = {.n_threads = 1};
        struct join_trial job;
        random_state = (uint64_t)i + 1;
        trial_make(&job, pick(200), OJ_PART_POINT, 0, pick(200));
        job.relation.op = one_in(2) ? OJ_OP_NEAREST : OJ_OP_DWITHIN;
        job.relation.max_distance = pick(40);
        job.relation.k = 1 + pick(5);
        if (oj_flat_is_points(&job.join) && oj_flat_is_points(&job.input))
        {
            MATCHES truth = {0};
            trial_truth(&job, &truth);
            compare_paper(&job, &options, &truth);
            n_pairs_seen += truth.n_pairs;
        }
        trial_free(&job);
    }
    printf("%lld pairs of points\n", (long long)n_pairs_seen);
    ck_assert_int_gt(n_pairs_seen, 500);
}

/* Enough for a part, or the CPU joins. */
TEST(little_memory)
{
    struct join_trial job;
    random_state = 8;
    make_trial(&job, CLUSTERS, 900, 900, 20);
    job.relation.k = 3;
    for (int64_t bytes = 1 << 12; bytes < (int64_t)1 << 26; bytes *= 4)
    {
        const struct oj_options options = {.n_threads = 1, .gpu_memory = bytes};
        compare(&job, &options);
    }
    trial_free(&job);
}

/* Joins for which there is no kernel are answered by the CPU. */
TEST(left_to_the_cpu)
{
    const struct oj_options options = {.n_threads = 1};
    struct join_trial job;
    random_state = 11;
    n_on_device = 0;
    make_trial(&job, LATTICE, 200, 50, 3);
    job.relation.k = 3;
    job.relation.ties = OJ_TIES_ALL;
    compare(&job, &options);
    ck_assert_int_eq(n_on_device, 0);
    trial_free(&job);
}

TEST(degenerate_sides)
{
    const struct oj_options options = {.n_threads = 1};
    int cancel = 1;
    const struct oj_options stopped = {.n_threads = 1, .cancel = &cancel};
    struct join_trial job;
    struct oj_flat input;
    MATCHES out = {0};
    random_state = 4;
    make_trial(&job, CLUSTERS, 300, 200, 6);
    job.relation.k = 2;
    ck_assert_int_eq(trial_open_and_join(&job, "cuda", &stopped, NULL, &out),
                     OJ_ERR_CANCELLED);
    input = job.input;
    job.input = (struct oj_flat){0};
    compare(&job, &options);
    job.input = input;
    job.input.vectors.n_dimensions = 5;
    ck_assert_int_eq(trial_open_and_join(&job, "cuda", &options, NULL, &out),
                     OJ_ERR_ARG);
    job.input = input;
    for (int64_t i = 0; i < 300; i++)
        job.columns.vector[0][6 * i] = (double)NAN;
    compare(&job, &options);
    job.join = (struct oj_flat){0};
    compare(&job, &options);
    trial_free(&job);
}

int main(void)
{
    if (!device_tests_open("similar vectors on a GPU"))
        return DEVICE_TESTS_SKIPPED;
    return tests_run();
}
