/* nearest and dwithin by distances of shapes on a GPU have the answers of the
 * backend cpu, bit for bit. Skipped if no GPU can be used.
 * Kind: property, degenerate, memory. OGRJOIN_TEST_ROUNDS=n runs more rounds.
 */
#include "../references.h"

#include "../join_trial.h"
#include "../run_device_tests.h"

#define N_DISTANCES (OJ_DISTANCE_DIRECTED_FROM_JOIN + 1)

static int64_t n_pairs_seen, n_on_gpu, n_by_cut_points;

static void pick_join(struct oj_relation *r, double scale, int extent)
{
    r->op = pick(2) ? OJ_OP_NEAREST : OJ_OP_DWITHIN;
    r->max_distance = scale * pick(extent);
    if (r->op == OJ_OP_NEAREST && pick(2))
        r->max_distance = INFINITY;
    if (one_in(3))
        r->min_distance = fmin(r->max_distance, scale * pick(6));
    if (r->op == OJ_OP_NEAREST)
        r->k = one_in(2) ? 1 + pick(300) : 1 + pick(3);
    if (r->op == OJ_OP_NEAREST && one_in(3))
        r->ties = OJ_TIES_ALL;
}

/* Compares the answer with that of the paper's method, if the method supports
 * the join. */
static void compare_cut_points(const struct join_trial *t,
                               const struct oj_options *given,
                               const struct oj_matches *truth)
{
    MATCHES theirs = {0};
    oj_status status =
        trial_open_and_join(t, "cuda_cut_points", given, NULL, &theirs);
    if (status == OJ_ERR_UNSUPPORTED)
        return;
    must(status);
    same_matches("by cut points", &theirs, truth);
    n_by_cut_points++;
}

static void compare_with_cpu(const struct join_trial *t,
                             const struct oj_options *given)
{
    MATCHES ours = {0}, truth = {0};
    char how[64] = "";
    trial_truth(t, &truth);
    must(trial_open_and_join(t, "cuda", given, how, &ours));
    same_matches("on the GPU", &ours, &truth);
    n_pairs_seen += ours.n_pairs;
    n_on_gpu += strstr(how, "block for each row") != NULL;
    compare_cut_points(t, given, &truth);
}

/* Adds a random walk whose steps are much smaller than its extent. */
static void add_walk(struct oj_flat_buf *buf, int64_t n, double scale)
{
    double *x, *y, at_x = scale * pick(40), at_y = scale * pick(40);
    begin(buf);
    add_part(buf, OJ_PART_LINE);
    must(oj_flat_buf_begin_ring(buf, &error));
    must(oj_flat_buf_add_vertices(buf, n, &x, &y, &error));
    for (int64_t i = 0; i < n; i++)
    {
        x[i] = at_x += scale * (unit() - 0.4);
        y[i] = at_y += scale * (unit() - 0.5);
    }
    end(buf);
}

/* Makes both sides with at most `most` features of any kind. Some are long.
 * Returns the scale of the coordinates. */
static double make_sides(struct join_trial *t, int most)
{
    static const unsigned kinds[] = {OJ_PART_POINT, OJ_PART_LINE,
                                     OJ_PART_POLYGON, 7, 7};
    struct scene scene = pick_scene();
    memset(t, 0, sizeof *t);
    add_join_features(&t->input_buf, &scene, 1 + pick(most), kinds[pick(5)], 1);
    add_join_features(&t->join_buf, &scene, 1 + pick(most), kinds[pick(5)], 1);
    for (int n = one_in(2) ? pick(12) : 0; n > 0; n--)
        add_walk(one_in(2) ? &t->input_buf : &t->join_buf,
                 2 + pick(one_in(3) ? 3000 : 150), scene.scale);
    trial_view(t);
    t->relation = oj_relation_default();
    return scene.scale;
}

static void check_sides(enum oj_distance_kind kind)
{
    struct join_trial t;
    double scale = make_sides(&t, one_in(6) ? 300 : 40);
    int64_t *fid = pick_fids(t.input.n_features);
    t.join.fid = t.fid = pick_fids(t.join.n_features);
    t.input.fid = fid;
    for (int i = 0; i < 4; i++)
    {
        const struct oj_flat plain[2] = {t.join, t.input};
        struct oj_options options = {.n_threads = 1, .gpus = OJ_ALL_GPUS};
        struct join_trial alone;
        t.relation = oj_relation_default();
        t.relation.distance = kind;
        pick_join(&t.relation, scale, 60);
        options.gpu_batch =
            one_in(2) ? 0 : 1 + t.input.n_features / (1 + pick(5));
        pick_columns(&t.columns, &t.join, &t.input, &t.relation, scale, 4);
        compare_with_cpu(&t, &options);
        alone = trial_with_itself(&t);
        alone.input.max_distance = NULL;
        alone.join.max_distance = NULL;
        compare_with_cpu(&alone, &options);
        columns_free(&t.columns);
        memset(&t.columns, 0, sizeof t.columns);
        t.join = plain[0];
        t.input = plain[1];
    }
    oj_free(fid);
    trial_free(&t);
}

TEST_LOOP(random_sides, OJ_DISTANCE_HAUSDORFF, N_DISTANCES)
{
    n_pairs_seen = n_on_gpu = n_by_cut_points = 0;
    EACH_ROUND(20)
    {
        check_sides((enum oj_distance_kind)_i);
    }
    printf("distance %d: %lld pairs of %lld joins on the GPU\n", _i,
           (long long)n_pairs_seen, (long long)n_on_gpu);
    ck_assert_int_gt(n_pairs_seen, 20);
    ck_assert_int_gt(n_on_gpu, 2);
    ck_assert_int_eq(n_by_cut_points > 0, _i == OJ_DISTANCE_HAUSDORFF_POINTS);
}

/* All bounds are equal. There are more features than a block can hold. */
TEST(all_alike)
{
    const struct oj_options options = {.n_threads = 1};
    struct join_trial t = {0};
    random_state = 3;
    add_walk(&t.input_buf, 40, 1.0);
    for (int i = 0; i < 1500; i++)
    {
        random_state = 3 + (uint64_t)(i % 7 == 0);
        add_walk(&t.join_buf, 40, 1.0);
    }
    trial_view(&t);
    t.relation = oj_relation_default();
    t.relation.distance = OJ_DISTANCE_HAUSDORFF_POINTS;
    n_on_gpu = 0;
    for (int i = 0; i < 4; i++)
    {
        t.relation.k = i % 2 == 0 ? 200 : 1600;
        t.relation.ties = i < 2 ? OJ_TIES_FIRST : OJ_TIES_ALL;
        n_pairs_seen = 0;
        compare_with_cpu(&t, &options);
        ck_assert_int_eq(n_pairs_seen, i == 0 ? 200 : i == 2 ? 1285 : 1500);
    }
    ck_assert_int_eq(n_on_gpu, 4);
    trial_free(&t);
}

TEST(degenerate_sides)
{
    const struct oj_options options = {.n_threads = 1};
    int cancel = 1;
    const struct oj_options stopped = {.n_threads = 1, .cancel = &cancel};
    struct join_trial t;
    struct oj_flat input;
    MATCHES out = {0};
    random_state = 2;
    make_sides(&t, 20);
    t.relation.distance = OJ_DISTANCE_FRECHET;
    ck_assert_int_eq(trial_open_and_join(&t, "cuda", &stopped, NULL, &out),
                     OJ_ERR_CANCELLED);
    for (int k = 1; k < 3; k++)
    {
        t.relation.k = k;
        input = t.input;
        compare_with_cpu(&t, &options);
        t.input = (struct oj_flat){0};
        compare_with_cpu(&t, &options);
        t.input = input;
    }
    t.join = (struct oj_flat){0};
    compare_with_cpu(&t, &options);
    t.relation.k = 1;
    compare_with_cpu(&t, &options);
    trial_free(&t);
}

/* Maximum distances per feature limit the pairs, whether rows or join features
 * have them. */
TEST(one_side_has_distances)
{
    const struct oj_options options = {.n_threads = 1};
    struct join_trial t;
    double scale;
    random_state = 10;
    scale = make_sides(&t, 60);
    t.relation.op = OJ_OP_DWITHIN;
    t.relation.distance = OJ_DISTANCE_HAUSDORFF_POINTS;
    t.relation.max_distance = 20 * scale;
    for (int s = 0; s < 2; s++)
    {
        struct oj_flat *side = s == 0 ? &t.join : &t.input;
        double *of = pick_distances(side->n_features, 4 * scale);
        side->max_distance = of;
        n_pairs_seen = 0;
        compare_with_cpu(&t, &options);
        ck_assert_int_gt(n_pairs_seen, 0);
        side->max_distance = NULL;
        oj_free(of);
    }
    trial_free(&t);
}

TEST(little_memory)
{
    struct join_trial t;
    double scale;
    random_state = 6;
    scale = make_sides(&t, 200);
    for (int64_t bytes = 1 << 12; bytes < (int64_t)1 << 26; bytes *= 8)
    {
        const struct oj_options options = {.n_threads = 1, .gpu_memory = bytes};
        t.relation.distance = OJ_DISTANCE_HAUSDORFF;
        pick_join(&t.relation, scale, 60);
        compare_with_cpu(&t, &options);
    }
    trial_free(&t);
}

int main(void)
{
    if (!device_tests_open("distances of shapes on a GPU"))
        return DEVICE_TESTS_SKIPPED;
    return tests_run();
}
