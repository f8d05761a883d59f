/* The backend cuda has the answers of the backend cpu, bit for bit. Tests
 * random layers, batches of every size, two threads at once, little memory,
 * points that stay on the device, and cancelling. Skipped if no GPU can be
 * used.
 * Kind: property, degenerate, memory. OGRJOIN_TEST_ROUNDS=n runs more rounds.
 */
#include "../references.h"

#include "../../gpu/gpu_resident.h"
#include "../join_trial.h"
#include "../pair_counts.h"
#include "../run_device_tests.h"
#include "pair_sums_trial.h"

#include <pthread.h>

static const struct gpu_resident *on_gpu;

static int64_t n_counted, n_summed;

/* --- layers and joins ----------------------------------------------------- */

static struct oj_relation pick_relation(const struct scene *s)
{
    static const enum oj_op ops[] = {
        OJ_OP_INTERSECTS, OJ_OP_WITHIN,   OJ_OP_COVEREDBY,
        OJ_OP_TOUCHES,    OJ_OP_DWITHIN,  OJ_OP_BBOX,
        OJ_OP_EQUALS,     OJ_OP_CONTAINS, OJ_OP_CONTAINS_PROPERLY};
    struct oj_relation r = oj_relation_default();
    double reaches[] = {0.0, 0.5, 1.0, 3.0, 50.0, INFINITY};
    r.max_distance = s->scale * reaches[pick(6)];
    if (pick(5) < 3)
    {
        r.op = one_in(3) ? OJ_OP_DWITHIN : ops[pick(9)];
        if (r.op == OJ_OP_DWITHIN && !(r.max_distance < INFINITY))
            r.max_distance = s->scale;
        if (r.op == OJ_OP_DWITHIN && one_in(6))
            r.min_distance = r.max_distance / 2;
        r.any_order = one_in(4);
        return r;
    }
    r.distance_to = pick(2) ? OJ_TO_BOUNDARY : OJ_TO_INTERIOR;
    if (one_in(3))
        r.k = 1 + pick(one_in(4) ? 200 : 6);
    r.ties = one_in(6) ? OJ_TIES_ALL : OJ_TIES_FIRST;
    if (one_in(10) && r.max_distance < INFINITY)
        r.min_distance = r.max_distance / 2;
    return r;
}

static void make_job(struct join_trial *job, int most_join, int most_input)
{
    static const unsigned kinds[] = {
        OJ_PART_POLYGON, OJ_PART_POLYGON,
        OJ_PART_LINE,    OJ_PART_POINT,
        OJ_PART_POINT,   OJ_PART_POINT | OJ_PART_LINE | OJ_PART_POLYGON};
    struct scene scene =
        trial_make(job, pick(most_join), kinds[pick(6)], 1, pick(most_input));
    job->relation = pick_relation(&scene);
    pick_columns(&job->columns, &job->join, &job->input, &job->relation,
                 scene.scale, 8);
}

/* Returns 1 if the data may stay on the device: points, with no conditions but
 * those on FIDs. */
static int may_stay(const struct join_trial *job)
{
    return job->input.on_class == NULL && job->input.exclude_class == NULL &&
           job->input.max_distance == NULL;
}

/* Compares the pairs of each row, in any order if the relation allows it. */
static void compare_all(struct join_trial *job,
                        const struct oj_options *options)
{
    job->relation.any_order = 0;
    trial_compare(job, "cuda", options);
}

/* Compares the number of pairs of each join feature. The backend counts all
 * pairs twice. */
static void compare_counts(struct join_trial *job,
                           const struct oj_options *options)
{
    MATCHES truth = {0};
    int64_t n = job->join.n_features, n_pairs = 0;
    int64_t *count = oj_calloc(n > 0 ? n : 1, sizeof *count);
    struct oj_join *join;
    ck_assert_ptr_nonnull(count);
    job->relation.any_order = 0;
    trial_truth(job, &truth);
    join = trial_open(job, "cuda", options);
    for (int i = 0; i < 2; i++)
    {
        oj_status status = count_pairs_by_feature(join, &job->input, n, count,
                                                  &n_pairs, &error);
        if (status == OJ_ERR_UNSUPPORTED)
            break;
        must(status);
        n_counted++;
        ck_assert_int_eq(n_pairs, truth.n_pairs);
    }
    for (int64_t row = 0; n_pairs > 0 && row < truth.n_rows; row++)
    {
        for (int64_t i = oj_matches_first(&truth, row);
             i < oj_matches_end(&truth, row); i++)
            count[truth.join_row[i]] -= 2;
    }
    for (int64_t f = 0; f < n; f++)
        expect(count[f] == 0, "seed %llu: the count of %d is off by %lld",
               (unsigned long long)seed, (int)f, (long long)count[f]);
    oj_join_close(join);
    oj_free(count);
}

/* Compares the sums of the points' values per join feature, which the backend
 * computes, with sums over the pairs. */
static void compare_sums(struct join_trial *job,
                         const struct oj_options *options)
{
    MATCHES truth = {0};
    struct oj_join *join;
    job->relation.any_order = 0;
    trial_truth(job, &truth);
    join = trial_open(job, "cuda", options);
    n_summed += try_sums(join, &job->input, job->join.n_features, &truth);
    oj_join_close(join);
}

static struct oj_options pick_options(void)
{
    struct oj_options options = {.n_threads = 1 + pick(4)};
    options.gpu_batch = one_in(2) ? 0 : 1 + pick(2000);
    options.gpu_memory = one_in(4) ? (int64_t)256 << 20 : 0;
    options.gpus = one_in(2) ? OJ_ALL_GPUS : 0;
    return options;
}

/* --- tests ---------------------------------------------------------------- */

TEST(random_layers)
{
    int64_t n_compared = 0;
    EACH_ROUND(150)
    {
        struct oj_options options;
        struct join_trial job;
        options = pick_options();
        make_job(&job, one_in(4) ? 2000 : 60, one_in(4) ? 20000 : 600);
        n_compared += job.join.n_features * job.input.n_features;
        compare_all(&job, &options);
        compare_counts(&job, &options);
        compare_sums(&job, &options);
        trial_free(&job);
    }
    printf("%lld pairs of random features\n", (long long)n_compared);
    if (rounds(150) < 10) /* short runs may lack such cases */
        return;
    ck_assert_int_gt(n_counted, 0);
    ck_assert_int_gt(n_summed, 0);
}

/* Lists of pairs of every length, and more pairs than are allowed. */
TEST(long_lists)
{
    static const double reaches[] = {0.0, 1.0, 30.0, 3000.0};
    struct oj_options options = {.n_threads = 2};
    MATCHES ours = {0};
    struct join_trial job = {.relation = oj_relation_default()};
    struct oj_join *join;
    seed = random_state = 3;
    for (int i = 0; i < 6000; i++)
        add_point(&job.join_buf, i % 5 == 0 ? 7.0 : pick(300), pick(300));
    job.join = oj_flat_buf_view(&job.join_buf);
    job.input = job.join;
    job.relation.op = OJ_OP_DWITHIN;
    for (int i = 0; i < 4; i++)
    {
        job.relation.max_distance = reaches[i];
        job.relation.unordered_pairs = i == 2;
        job.relation.exclude_self = i == 1;
        if (i == 3) /* all pairs */
            job.input.n_features = job.input.n_vertices = 500;
        compare_all(&job, &options);
        compare_counts(&job, &options);
        compare_sums(&job, &options);
    }
    options.max_batch_pairs = 1000;
    join = trial_open(&job, "cuda", &options);
    ck_assert_int_eq(oj_join_batch(join, &job.input, &ours, &error),
                     OJ_ERR_TOO_MANY_PAIRS);
    oj_join_close(join);
    trial_free(&job);
}

/* A batch with few ties, one with too many for one list, and one with ties of
 * many features. */
TEST(all_ties)
{
    static const int n_tied[] = {300, 20000, 300}, n_lines[] = {2, 2, 12};
    const struct oj_options options = {.n_threads = 2};
    for (int i = 0; i < 3; i++)
    {
        struct join_trial job = {.relation = oj_relation_default()};
        seed = random_state = 5 + (uint64_t)i;
        for (int line = 0; line < n_lines[i]; line++)
            add_line(&job.join_buf, 0, line % 2 == 0 ? 1 : -1, 100,
                     line % 2 == 0 ? 1 : -1);
        for (int point = 0; point < 20000; point++)
            add_point(&job.input_buf, pick(100),
                      point < n_tied[i] ? 0 : pick(9) + 2);
        trial_view(&job);
        job.relation.op = OJ_OP_NEAREST;
        job.relation.max_distance = 50.0;
        job.relation.ties = OJ_TIES_ALL;
        compare_all(&job, &options);
        trial_free(&job);
    }
}

/* A point in many envelopes and a point in none; features without parts. */
TEST(envelopes)
{
    const struct oj_options options = {.n_threads = 2};
    struct join_trial job = {.relation = oj_relation_default()};
    seed = random_state = 4;
    for (int i = 0; i < 3000; i++)
    {
        if (i % 10 == 0)
            must(oj_flat_buf_add_null(&job.join_buf, i, &error));
        else if (i % 2 == 0)
            add_line(&job.join_buf, pick(50), pick(50), pick(50), pick(50));
        else
            add_line(&job.join_buf, -i, 2 * i, i, -i);
    }
    for (int i = 0; i < 1000; i++)
        add_point(&job.input_buf, pick(120) - 30, pick(120) - 30);
    trial_view(&job);
    job.relation.op = OJ_OP_BBOX;
    compare_all(&job, &options);
    compare_counts(&job, &options);
    trial_free(&job);
}

TEST(batches_of_any_size)
{
    static const int64_t sizes[] = {1, 7, 1000, 1 << 20};
    EACH_ROUND(6)
    {
        const struct oj_options options = {.n_threads = 2};
        MATCHES truth = {0};
        struct join_trial job;
        make_job(&job, 300, 3000);
        job.relation.any_order = 0;
        trial_truth(&job, &truth);
        for (int i = 0; i < 4; i++)
            trial_check_batches(&job, "cuda", &options, sizes[i],
                                sizes[i] == 1 ? 200 : job.input.n_features,
                                &truth);
        trial_free(&job);
    }
}

/* A join that runs on another thread at the same time. */
struct beside
{
    const struct join_trial *job;
    struct oj_matches out;
    oj_status status;
    struct oj_error error;
};

static void *join_beside(void *user)
{
    struct beside *b = user;
    const struct oj_options options = {
        .n_threads = 2, .gpu_batch = 500, .gpus = OJ_ALL_GPUS};
    struct oj_join *join = NULL;
    b->status = oj_join_open(&b->job->join, &b->job->relation, "cuda", &options,
                             &join, &b->error);
    for (int i = 0; i < 5 && b->status == OJ_OK; i++)
        b->status = oj_join_batch(join, &b->job->input, &b->out, &b->error);
    oj_join_close(join);
    return NULL;
}

TEST(threads_at_once)
{
    EACH_ROUND(10)
    {
        struct join_trial job[2];
        struct beside beside[2] = {0};
        pthread_t thread[2];
        for (int i = 0; i < 2; i++)
        {
            make_job(&job[i], 500, 5000);
            job[i].relation.any_order = 0;
            beside[i].job = &job[i];
        }
        for (int i = 0; i < 2; i++)
            ck_assert_int_eq(
                pthread_create(&thread[i], NULL, join_beside, &beside[i]), 0);
        for (int i = 0; i < 2; i++)
        {
            MATCHES truth = {0};
            pthread_join(thread[i], NULL);
            ck_assert_msg(beside[i].status == OJ_OK, "%s",
                          beside[i].error.message);
            trial_truth(&job[i], &truth);
            same_rows("beside another", &beside[i].out, &truth, 0);
            oj_matches_free(&beside[i].out);
        }
        trial_free(&job[0]);
        trial_free(&job[1]);
    }
}

/* The answer does not depend on the size of the device memory: where it is too
 * small, the CPU answers. OGRJOIN_TEST_SHORT=1 takes every second size. */
TEST(little_memory)
{
    int64_t factor = is_switched_on("OGRJOIN_TEST_SHORT") ? 16 : 4;
    EACH_ROUND(4)
    {
        struct join_trial job;
        MATCHES truth = {0}, ours = {0};
        make_job(&job, 3000, 5000);
        job.relation.any_order = 0;
        trial_truth(&job, &truth);
        for (int64_t bytes = 1 << 8; bytes < (int64_t)1 << 28; bytes *= factor)
        {
            const struct oj_options options = {.n_threads = 2,
                                               .gpu_memory = bytes};
            struct oj_join *join = NULL;
            oj_status status = oj_join_open(&job.join, &job.relation, "cuda",
                                            &options, &join, &error);
            if (status == OJ_OK)
                status = oj_join_batch(join, &job.input, &ours, &error);
            ck_assert_msg(status == OJ_OK, "seed %llu: %s",
                          (unsigned long long)seed, error.message);
            same_rows("little memory", &ours, &truth, 0);
            oj_join_close(join);
        }
        trial_free(&job);
    }
}

TEST(cancelled)
{
    struct join_trial job = {0};
    MATCHES ours = {0};
    struct oj_join *join;
    int cancel = 0;
    const struct oj_options options = {.n_threads = 2, .cancel = &cancel};
    random_state = 1;
    do
    {
        trial_free(&job);
        make_job(&job, 100, 20000);
    } while (job.input.n_features < 1000 || job.relation.op != OJ_OP_NEAREST ||
             oj_relation_allows_many_pairs(&job.relation));
    join = trial_open(&job, "cuda", &options);
    cancel = 1;
    ck_assert_int_eq(oj_join_batch(join, &job.input, &ours, &error),
                     OJ_ERR_CANCELLED);
    cancel = 0;
    must(oj_join_batch(join, &job.input, &ours, &error));
    oj_join_close(join);
    trial_free(&job);
}

/* --- data that stay on the device ----------------------------------------- */

static void *on_device(struct oj_gpu_index *index, const void *host, int64_t n,
                       size_t size)
{
    void *memory = NULL;
    int64_t bytes = (n > 0 ? n : 1) * (int64_t)size;
    must(on_gpu->allocate(index, bytes, &memory, &error));
    if (host != NULL && n > 0)
        must(on_gpu->copy(index, memory, host, n * (int64_t)size, &error));
    return memory;
}

static void check_one(struct oj_gpu_index *index,
                      const struct oj_gpu_points *points,
                      const struct oj_matches *truth)
{
    MATCHES ours = {0};
    int64_t n = points->n;
    int32_t *row = on_device(index, NULL, n, sizeof *row);
    double *measure = on_device(index, NULL, n, sizeof *measure);
    must(on_gpu->join(index, points, row, measure, NULL, &error));
    must(oj_matches_reserve(&ours, n, n, 0, &error));
    must(on_gpu->copy(index, ours.join_row, row,
                      n * (int64_t)sizeof *ours.join_row, &error));
    must(on_gpu->copy(index, ours.measure, measure,
                      n * (int64_t)sizeof *ours.measure, &error));
    same_rows("resident", &ours, truth, 0);
    on_gpu->release(index, row);
    on_gpu->release(index, measure);
}

static void check_counts(struct oj_gpu_index *index,
                         const struct join_trial *job,
                         const struct oj_gpu_points *points,
                         const struct oj_matches *truth)
{
    int64_t n = job->join.n_features;
    int64_t *expected = oj_calloc(n, sizeof *expected);
    int64_t *count = oj_calloc(n, sizeof *count);
    int64_t *counted = on_device(index, count, n, sizeof *count);
    const struct oj_sum_request only = {.n_words = 1};
    oj_status status = on_gpu->sum(index, points, &only, counted, NULL, &error);
    ck_assert(status == OJ_OK || status == OJ_ERR_UNSUPPORTED);
    must(on_gpu->copy(index, count, counted, n * (int64_t)sizeof *count,
                      &error));
    for (int64_t row = 0; row < truth->n_rows; row++)
    {
        for (int64_t i = oj_matches_first(truth, row);
             i < oj_matches_end(truth, row); i++)
            expected[truth->join_row[i]]++;
    }
    for (int64_t i = 0; status == OJ_OK && i < n; i++)
        expect(count[i] == expected[i],
               "seed %llu: feature %d is counted %lld times, not %lld",
               (unsigned long long)seed, (int)i, (long long)count[i],
               (long long)expected[i]);
    on_gpu->release(index, counted);
    oj_free(expected);
    oj_free(count);
}

TEST(resident)
{
    EACH_ROUND(20)
    {
        const struct oj_options options = {.n_threads = 2};
        struct oj_stats stats = {0};
        struct oj_gpu_points points = {0};
        MATCHES truth = {0};
        struct oj_gpu_index *index;
        struct join_trial job;
        int64_t n;
        double seconds[2];
        oj_status status;
        make_job(&job, 300, 3000);
        job.relation.any_order = 0;
        for (int64_t i = 0; job.fid != NULL && i < job.join.n_features; i++)
            job.fid[i] = i; /* FIDs give the order of ties */
        n = job.input.n_features;
        if (!may_stay(&job) ||
            !module->supports(&job.relation, &job.join, &job.input) || n == 0 ||
            job.join.n_features == 0)
        {
            trial_free(&job);
            continue;
        }
        trial_truth(&job, &truth);
        status = module->index(&job.join, NULL, &job.relation, &options, &index,
                               &stats, &error);
        if (status == OJ_ERR_UNSUPPORTED) /* the CPU joins */
        {
            oj_matches_free(&truth);
            trial_free(&job);
            continue;
        }
        must(status);
        points.n = n;
        points.x = on_device(index, job.input.x, n, sizeof *job.input.x);
        points.y = on_device(index, job.input.y, n, sizeof *job.input.y);
        points.fid = on_device(index, job.input.fid, n, sizeof *job.input.fid);
        must(on_gpu->rebuild(index, seconds, &error));
        if (!oj_relation_allows_many_pairs(&job.relation))
            check_one(index, &points, &truth);
        check_counts(index, &job, &points, &truth);
        on_gpu->release(index, (void *)(uintptr_t)points.x);
        on_gpu->release(index, (void *)(uintptr_t)points.y);
        on_gpu->release(index, (void *)(uintptr_t)points.fid);
        module->free_index(index);
        trial_free(&job);
    }
}

int main(void)
{
    if (!device_tests_open("cuda"))
        return DEVICE_TESTS_SKIPPED;
    must(gpu_resident_find(&on_gpu, &error));
    return tests_run();
}
