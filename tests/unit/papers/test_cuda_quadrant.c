/* The backend cuda_quadrant has the answers of the backend cpu, bit for bit.
 * Tests random layers, quadrants of every size, batches, and little memory. The
 * backend refuses joins that it does not support. Skipped if no GPU can be
 * used.
 * Kind: property, degenerate, memory. OGRJOIN_TEST_ROUNDS=n runs more rounds.
 */
#include "../references.h"

#include "../join_trial.h"
#include "../run_device_tests.h"

/* Makes a join whose input has only points. */
static void make_job(struct join_trial *job, int most_join, int most_input)
{
    static const double reaches[] = {0.0, 0.5, 1.0, 3.0, 50.0, 1e9};
    struct scene scene = trial_make(job, pick(most_join), 1 + (unsigned)pick(7),
                                    1, pick(most_input));
    job->relation.max_distance = scene.scale * reaches[pick(6)];
    job->relation.distance_to = pick(2) ? OJ_TO_BOUNDARY : OJ_TO_INTERIOR;
    if (!oj_flat_is_points(&job->input))
    {
        trial_free(job);
        make_job(job, most_join, most_input);
    }
}

TEST(random_sides)
{
    EACH_ROUND(100)
    {
        struct oj_options options = {.n_threads = 1};
        struct join_trial job;
        make_job(&job, one_in(4) ? 2000 : 60, one_in(4) ? 20000 : 600);
        options.quadrant_size = one_in(2) ? 0 : 1 + pick(600);
        options.gpu_batch =
            one_in(2) ? 0 : 1 + job.input.n_features / (1 + pick(20));
        trial_compare(&job, "cuda_quadrant", &options);
        trial_free(&job);
    }
}

/* The answer is right, or there is an error. */
TEST(little_memory)
{
    int64_t n_rounds = rounds(32) / 32 + 1;
    for (seed = first_seed(); n_rounds > 0; seed++, n_rounds--)
    {
        MATCHES ours = {0}, truth = {0};
        struct join_trial job;
        random_state = seed;
        make_job(&job, 1500, 15000);
        trial_truth(&job, &truth);
        for (int64_t bytes = 1 << 12; bytes < (int64_t)1 << 28; bytes *= 4)
        {
            const struct oj_options options = {.n_threads = 1,
                                               .gpu_memory = bytes};
            oj_status status = trial_open_and_join(&job, "cuda_quadrant",
                                                   &options, NULL, &ours);
            ck_assert_msg(status == OJ_OK || status == OJ_ERR_NOMEM,
                          "seed %llu: %s", (unsigned long long)seed,
                          error.message);
            if (status == OJ_OK)
                same_matches("quadrants", &ours, &truth);
        }
        trial_free(&job);
    }
}

TEST(refused)
{
    MATCHES out = {0};
    const struct oj_options options = {.n_threads = 1};
    struct join_trial job;
    int cancel = 1;
    const struct oj_options stopped = {.n_threads = 1, .cancel = &cancel};
    random_state = 1;
    make_job(&job, 40, 2000);
    ck_assert_int_eq(
        trial_open_and_join(&job, "cuda_quadrant", &stopped, NULL, &out),
        OJ_ERR_CANCELLED);
    job.relation.max_distance = INFINITY;
    ck_assert_int_eq(
        trial_open_and_join(&job, "cuda_quadrant", &options, NULL, &out),
        OJ_ERR_UNSUPPORTED);
    job.relation.max_distance = 1.0;
    job.relation.k = 2;
    ck_assert_int_eq(
        trial_open_and_join(&job, "cuda_quadrant", &options, NULL, &out),
        OJ_ERR_UNSUPPORTED);
    trial_free(&job);
}

int main(void)
{
    if (!device_tests_open("cuda_quadrant"))
        return DEVICE_TESTS_SKIPPED;
    return tests_run();
}
