/* Lines and polygons on both sides. The backend cuda finds pairs of boxes and
 * decides most of them on a device. It gives the answers of the backend cpu:
 * for random layers, large features, little memory, batches of all sizes, and
 * all devices. Also tests points with very many lines and polygons. Skipped if
 * no GPU can be used.
 * Kind: property, degenerate, memory, large. OGRJOIN_TEST_ROUNDS=n runs more
 * rounds. */
#include "../references.h"

#include "../join_trial.h"
#include "../predicate/random_shapes.h"
#include "../run_device_tests.h"

/* The first device, or some of all. */
static uint64_t some_gpus(void)
{
    int n = 1;
    if (one_in(2))
        return 0;
    must(module->count(&n, &error));
    return (UINT64_C(1) << (1 + pick(n))) - 1;
}

/* Joins on the GPU once, or twice with the index of the first join. Compares
 * the pairs with truth, those of the CPU. */
static void check_again(struct join_trial *t, int64_t gpu_memory,
                        const struct oj_matches *truth)
{
    enum oj_op op = t->relation.op;
    struct oj_options options = {.n_threads = 1 + pick(4),
                                 .gpu_memory = gpu_memory,
                                 .gpu_batch = one_in(2) ? 1 + pick(40) : 0,
                                 .gpus = some_gpus()};
    MATCHES ours = {0};
    struct oj_join *join;
    options.input_kinds = one_in(2) ? t->input.part_kinds : 0;
    join = trial_open(t, "cuda", &options);
    for (int n = one_in(4) ? 2 : 1; n > 0; n--)
        must(oj_join_batch(join, &t->input, &ours, &error));
    if (op == OJ_OP_INTERSECTS && gpu_memory == 0 && t->join.n_vertices > 0 &&
        (t->input.part_kinds & OJ_PART_POINT) == 0)
        expect(strstr(oj_join_method(join, &t->input), "on the GPU") != NULL,
               "seed %llu: %s", (unsigned long long)seed,
               oj_join_method(join, &t->input));
    oj_join_close(join);
    same_matches(oj_op_get(op)->name, &ours, truth);
}

static void check(struct join_trial *t, enum oj_op op)
{
    MATCHES truth = {0};
    t->relation = oj_relation_default();
    t->relation.op = op;
    memcpy(t->relation.mask, one_in(2) ? "T********" : "FT*******", 10);
    trial_truth(t, &truth);
    check_again(t, 0, &truth);
}

static unsigned some_kinds(void)
{
    static const unsigned kinds[] = {
        OJ_PART_POLYGON, OJ_PART_POLYGON, OJ_PART_LINE,
        OJ_PART_LINE | OJ_PART_POLYGON,
        OJ_PART_POINT | OJ_PART_LINE | OJ_PART_POLYGON};
    return kinds[pick(5)];
}

/* Makes random features, or features with corners on a small lattice, many of
 * which share vertices and edges. Repeats this until neither layer consists of
 * points alone.
 */
static void make_layers(struct join_trial *t, int most, int on_lattice)
{
    do
    {
        struct scene scene = pick_scene();
        const struct shape_lattice lattice = {2 << pick(4), 0.0, 1.0};
        memset(t, 0, sizeof *t);
        for (int side = 0; side < 2; side++)
        {
            struct oj_flat_buf *buf = side ? &t->input_buf : &t->join_buf;
            if (on_lattice)
                add_shapes(buf, &lattice, 10 + pick(30));
            else
                add_join_features(buf, &scene, 1 + pick(most), some_kinds(), 1);
        }
        trial_view(t);
        if (!oj_flat_is_points(&t->join) && !oj_flat_is_points(&t->input))
            return;
        trial_free(t);
    } while (1);
}

TEST(random_layers)
{
    EACH_ROUND(14)
    {
        struct join_trial t;
        make_layers(&t, one_in(5) ? 250 : 60, one_in(3));
        check(&t, OJ_OP_INTERSECTS);
        check(&t, OJ_OP_BBOX);
        /* GEOS is slow for more pairs */
        if (t.join.n_features * t.input.n_features < 4000)
            check(&t, (enum oj_op)(OJ_OP_INTERSECTS +
                                   pick(OJ_OP_SIMILAR - OJ_OP_INTERSECTS)));
        trial_free(&t);
    }
}

/* Memory suffices for the index alone, for some rows at a time, or for neither.
 * Expected are equal pairs in each case. */
TEST(little_memory)
{
    EACH_ROUND(2)
    {
        struct join_trial t;
        MATCHES truth = {0};
        make_layers(&t, 100, 0);
        t.relation = oj_relation_default();
        t.relation.op = OJ_OP_INTERSECTS;
        trial_truth(&t, &truth);
        for (int64_t bytes = 1 << 14; bytes < (int64_t)1 << 26; bytes *= 4)
            check_again(&t, bytes, &truth);
        trial_free(&t);
    }
}

/* Coordinates at the limits of exact arithmetic, and beyond them. */
TEST(odd_numbers)
{
    static const double sizes[] = {1e-300, 1e-120, 1e-99, 1.0,
                                   1e99,   1e120,  1e149, 1.1e149};
    random_state = 3;
    for (int i = 0; i < 8; i++)
    {
        struct join_trial t = {.relation = oj_relation_default()};
        for (int j = 0; j < 40; j++)
        {
            double x = sizes[i] * pick(6), y = sizes[i] * pick(6);
            if (one_in(2))
                add_square(&t.join_buf, x, y, x + sizes[i] * (1 + pick(3)),
                           y + sizes[i] * (1 + pick(3)));
            else
                add_line(&t.join_buf, x, y, sizes[i] * pick(8),
                         sizes[i] * pick(8));
        }
        trial_view(&t);
        t.input = t.join;
        seed = (uint64_t)i;
        check(&t, OJ_OP_INTERSECTS);
        check(&t, OJ_OP_DISJOINT);
        check(&t, OJ_OP_BBOX);
        trial_free(&t);
    }
}

/* Adds a ring or a line of n vertices around (x, y), so jagged that it crosses
 * others. */
static void add_ragged(struct oj_flat_buf *buf, int n, double x, double y,
                       double reach, int is_line)
{
    double *xy = oj_malloc(2 * n + 2, sizeof *xy);
    ck_assert_ptr_nonnull(xy);
    for (int i = 0; i < n; i++)
    {
        double angle = 6.283185307179586 * i / n;
        double r = reach * (0.9 + 0.1 * unit());
        xy[2 * i] = x + r * cos(angle);
        xy[2 * i + 1] = y + r * sin(angle);
    }
    xy[2 * n] = xy[0];
    xy[2 * n + 1] = xy[1];
    add_simple(buf, is_line ? OJ_PART_LINE : OJ_PART_POLYGON,
               is_line ? n : n + 1, xy);
    oj_free(xy);
}

/* Features of very different sizes, some of them inside one another. */
TEST(large_features)
{
    static const int sizes[] = {4, 40, 400, 3000, 20000};
    EACH_ROUND(2)
    {
        struct join_trial t = {.relation = oj_relation_default()};
        for (int i = 0; i < 60; i++)
        {
            add_ragged(&t.join_buf, sizes[pick(5)], 100 * unit(), 100 * unit(),
                       1 + 40 * unit() * unit(), one_in(3));
            add_ragged(&t.input_buf, sizes[pick(5)], 100 * unit(), 100 * unit(),
                       1 + 40 * unit() * unit(), one_in(3));
        }
        trial_view(&t);
        check(&t, OJ_OP_INTERSECTS);
        t.join = oj_flat_buf_view(&t.input_buf);
        t.input = oj_flat_buf_view(&t.join_buf);
        check(&t, OJ_OP_INTERSECTS);
        trial_free(&t);
    }
}

/* Enough rows for every device. They are divided by their number of vertices,
 * come in pieces of few rows, or in an index whose memory allows only some rows
 * at a time. */
TEST(rows_of_all_devices)
{
    static const int64_t limits[][2] = {{0, 0}, {7, 0}, {0, 40 << 20}};
    struct join_trial t = {.relation = oj_relation_default()};
    MATCHES truth = {0};
    int n_devices = 1;
    seed = random_state = 31;
    must(module->count(&n_devices, &error));
    for (int i = 0; i < 900; i++)
        add_ragged(&t.input_buf, one_in(8) ? 9000 : 400, 100 * unit(),
                   100 * unit(), 1 + 4 * unit(), one_in(3));
    for (int i = 0; i < 40; i++)
        add_ragged(&t.join_buf, 40, 100 * unit(), 100 * unit(), 20 * unit(),
                   one_in(3));
    trial_view(&t);
    t.relation.op = OJ_OP_INTERSECTS;
    trial_truth(&t, &truth);
    ck_assert_int_gt(truth.n_pairs, 1000);
    for (int i = 0; i < 3 * n_devices; i++)
    {
        struct oj_options options = {.n_threads = 2,
                                     .gpu_batch = limits[i % 3][0],
                                     .gpu_memory = limits[i % 3][1],
                                     .gpus = (UINT64_C(1) << (1 + i / 3)) - 1};
        MATCHES ours = {0};
        struct oj_join *join = trial_open(&t, "cuda", &options);
        must(oj_join_batch(join, &t.input, &ours, &error));
        oj_join_close(join);
        same_matches("rows of all devices", &ours, &truth);
    }
    trial_free(&t);
}

/* More features are within reach of a point than one thread sorts. Many of them
 * are at one distance. */
TEST(long_rows)
{
    static const struct
    {
        enum oj_op op;
        double max_distance, min_distance;
        enum oj_ties ties;
        int64_t k;
    } asked[] = {{OJ_OP_DWITHIN, 3.0, 0.0, OJ_TIES_FIRST, 1},
                 {OJ_OP_DWITHIN, 60.0, 1.0, OJ_TIES_FIRST, 1},
                 {OJ_OP_NEAREST, 60.0, 0.0, OJ_TIES_ALL, 1},
                 {OJ_OP_NEAREST, 60.0, 0.0, OJ_TIES_ALL, 8},
                 {OJ_OP_NEAREST, 60.0, 0.0, OJ_TIES_ALL, 40}};
    const struct oj_options options = {0};
    struct join_trial t = {.relation = oj_relation_default()};
    seed = random_state = 12;
    for (int i = 0; i < 3000; i++)
    {
        double x = i % 3 == 0 ? 5.0 : 40 * unit();
        double y = i % 3 == 0 ? 5.0 : 40 * unit();
        if (one_in(2))
            add_square(&t.join_buf, x, y, x + 1, y + 1);
        else
            add_line(&t.join_buf, x, y, x + 1, y + 1);
    }
    for (int i = 0; i < 300; i++)
    {
        if (i % 10 == 0) /* a third of the features begin here */
            add_point(&t.input_buf, 5.0, 5.0);
        else
            add_point(&t.input_buf, pick(40), pick(40));
    }
    trial_view(&t);
    for (int i = 0; i < 5; i++)
    {
        t.relation.op = asked[i].op;
        t.relation.max_distance = asked[i].max_distance;
        t.relation.min_distance = asked[i].min_distance;
        t.relation.ties = asked[i].ties;
        t.relation.k = asked[i].k;
        ck_assert_int_gt(trial_compare(&t, "cuda", &options), 1000);
    }
    trial_free(&t);
}

int main(void)
{
    if (!device_tests_open("cuda_screen"))
        return DEVICE_TESTS_SKIPPED;
    return tests_run();
}
