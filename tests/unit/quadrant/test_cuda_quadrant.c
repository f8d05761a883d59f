/* The backend cuda_quadrant gives the answers of cpu, to the last bit: random
 * layers, quadrants of every size, batches, little memory; what it does not
 * answer it refuses.  Skipped where no GPU can be used.
 * Kind: property, degenerate, memory.  OGRJOIN_TEST_ROUNDS=n for more. */
#include "../random_layers.h"

#include "../../../flatten/base/oj_array.h"
#include "../references.h"
#include "../run_device_tests.h"

#include <stdio.h>

static uint64_t seed;

struct quadrant_trial
{
    struct oj_flat_buf join_buf, input_buf;
    int64_t *fid;
    struct oj_flat join, input;
    struct oj_relation relation;
};

static void make_job(struct quadrant_trial *job, int most_join, int most_input)
{
    static const double reaches[] = {0.0, 0.5, 1.0, 3.0, 50.0, 1e9};
    struct scene scene;
    memset(job, 0, sizeof *job);
    scene = pick_scene();
    add_join_features(&job->join_buf, &scene, pick(most_join),
                      1 + (unsigned)pick(7), 1);
    job->join = oj_flat_buf_view(&job->join_buf);
    add_input_points(&job->input_buf, &scene, &job->join, pick(most_input), 0);
    job->input = oj_flat_buf_view(&job->input_buf);
    job->fid = pick_fids(job->join.n_features);
    job->join.fid = job->fid;
    job->relation = oj_relation_default();
    job->relation.max_distance = scene.scale * reaches[pick(6)];
    job->relation.distance_to = pick(2) ? OJ_TO_BOUNDARY : OJ_TO_INTERIOR;
}

static void free_job(struct quadrant_trial *job)
{
    oj_flat_buf_free(&job->join_buf);
    oj_flat_buf_free(&job->input_buf);
    oj_free(job->fid);
}

static oj_status try_join(const struct quadrant_trial *job, const char *backend,
                          const struct oj_options *options,
                          struct oj_matches *out)
{
    struct oj_join *join = NULL;
    oj_status status = oj_join_open(&job->join, &job->relation, backend,
                                    options, &join, &error);
    if (status == OJ_OK)
        status = oj_join_batch(join, &job->input, out, &error);
    oj_join_close(join);
    return status;
}

static void same(const struct oj_matches *ours, const struct oj_matches *truth)
{
    ck_assert_int_eq(ours->n_rows, truth->n_rows);
    ck_assert_int_eq(ours->n_matched, truth->n_matched);
    ck_assert_int_eq(ours->n_pairs, truth->n_pairs);
    for (int64_t row = 0; row < ours->n_rows; row++)
    {
        double a = ours->measure[row], b = truth->measure[row];
        expect(ours->join_row[row] == truth->join_row[row] &&
                   (bits_of(a) == bits_of(b) || (a != a && b != b)),
               "seed %llu: row %d: feature %d at %.17g, not %d at %.17g",
               (unsigned long long)seed, (int)row, (int)ours->join_row[row], a,
               (int)truth->join_row[row], b);
    }
}

static void answer_of_cpu(const struct quadrant_trial *job,
                          struct oj_matches *out)
{
    const struct oj_options options = {.n_threads = 2};
    must(try_join(job, "cpu", &options, out));
}

TEST(random_sides)
{
    int64_t n_rounds = rounds(100), n_run = 0;
    for (seed = first_seed(); n_rounds > 0; seed++, n_rounds--)
    {
        struct oj_options options = {.n_threads = 1};
        struct oj_matches ours = {0}, truth = {0};
        struct quadrant_trial job;
        random_state = seed;
        make_job(&job, one_in(4) ? 2000 : 60, one_in(4) ? 20000 : 600);
        options.quadrant_size = one_in(2) ? 0 : 1 + pick(600);
        options.gpu_batch =
            one_in(2) ? 0 : 1 + job.input.n_features / (1 + pick(20));
        if (oj_flat_is_points(&job.input))
        {
            answer_of_cpu(&job, &truth);
            must(try_join(&job, "cuda_quadrant", &options, &ours));
            same(&ours, &truth);
            n_run++;
        }
        oj_matches_free(&ours);
        oj_matches_free(&truth);
        free_job(&job);
    }
    ck_assert_int_gt(n_run, 0);
}

/* An answer, or a clear error. */
TEST(little_memory)
{
    int64_t n_rounds = rounds(4) / 4 + 1;
    for (seed = first_seed(); n_rounds > 0; seed++, n_rounds--)
    {
        struct oj_matches ours = {0}, truth = {0};
        struct quadrant_trial job;
        random_state = seed;
        do
        {
            make_job(&job, 1500, 30000);
            if (!oj_flat_is_points(&job.input))
                free_job(&job);
        } while (job.input_buf.n_features == 0);
        answer_of_cpu(&job, &truth);
        for (int64_t bytes = 1 << 12; bytes < (int64_t)1 << 28; bytes *= 4)
        {
            const struct oj_options options = {.n_threads = 1,
                                               .gpu_memory = bytes};
            oj_status status = try_join(&job, "cuda_quadrant", &options, &ours);
            ck_assert_msg(status == OJ_OK || status == OJ_ERR_NOMEM,
                          "seed %llu: %s", (unsigned long long)seed,
                          error.message);
            if (status == OJ_OK)
                same(&ours, &truth);
        }
        oj_matches_free(&ours);
        oj_matches_free(&truth);
        free_job(&job);
    }
}

TEST(refused)
{
    struct oj_matches out = {0};
    const struct oj_options options = {.n_threads = 1};
    struct quadrant_trial job;
    int cancel = 1;
    const struct oj_options stopped = {.n_threads = 1, .cancel = &cancel};
    random_state = 1;
    do
    {
        make_job(&job, 40, 2000);
        if (!oj_flat_is_points(&job.input))
            free_job(&job);
    } while (job.input_buf.n_features == 0);
    ck_assert_int_eq(try_join(&job, "cuda_quadrant", &stopped, &out),
                     OJ_ERR_CANCELLED);
    job.relation.max_distance = INFINITY;
    ck_assert_int_eq(try_join(&job, "cuda_quadrant", &options, &out),
                     OJ_ERR_UNSUPPORTED);
    job.relation.max_distance = 1.0;
    job.relation.k = 2;
    ck_assert_int_eq(try_join(&job, "cuda_quadrant", &options, &out),
                     OJ_ERR_UNSUPPORTED);
    oj_matches_free(&out);
    free_job(&job);
}

int main(void)
{
    if (!device_tests_open("cuda_quadrant"))
        return DEVICE_TESTS_SKIPPED;
    return tests_run();
}
