/* The engine gives the same pairs and distances, bit for bit, as the plain
 * reference, and as GEOS where that has the area of a polygon in mind that its
 * rings enclose, on random layers full of ties, touching and broken shapes.
 * Kind: property, degenerate.  OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../references.h"

#include "../geos_area.h"
#include "../layer_trial.h"
#include "../run_tests.h"

static int64_t n_rows, n_pairs, n_undecided, n_rounding, n_disputed;

static void pick_relation(const struct scene *s, struct oj_relation *relation)
{
    static const double steps[] = {0.0, 1e-9, 1.0, 2.5, 10.0, 300.0, 1e9};
    static const int64_t ks[] = {2, 3, 5, 12, 100, 1000};
    *relation = oj_relation_default();
    relation->max_distance =
        pick(3) == 0 ? INFINITY : s->scale * steps[pick(7)];
    if (one_in(20))
        relation->max_distance = 1e-300;
    relation->k = pick(2) ? 1 : ks[pick(6)];
    relation->ties = pick(3) ? OJ_TIES_FIRST : OJ_TIES_ALL;
    relation->distance_to = pick(3) ? OJ_TO_INTERIOR : OJ_TO_BOUNDARY;
}

static int pick_count(int usual, int large)
{
    if (one_in(30))
        return pick(2);
    return one_in(15) ? pick(large) : 1 + pick(usual);
}

/* Compares a trial and tells of it when it differs. */
static void check_trial(const struct layer_trial *t, const char *reference,
                        uint64_t seed)
{
    struct oj_validation v;
    compare_backends(t, reference, &v);
    n_rows += v.n_rows;
    n_pairs += v.n_pairs;
    n_undecided += v.n_undecided;
    n_rounding += v.n_rows_proved;
    if (v.n_differences == 0)
        return;
    fprintf(stderr, "seed %llu:\n", (unsigned long long)seed);
    print_reduced(t, reference);
    ck_abort_msg("seed %llu, %s: %lld differences", (unsigned long long)seed,
                 reference, (long long)v.n_differences);
}

static void check_references(struct layer_trial *t, uint64_t seed)
{
    LAYER undisputed = {0};
    check_trial(t, "quadrant", seed);
    if (t->relation.distance_to == OJ_TO_INTERIOR)
    {
        n_disputed += copy_undisputed(&t->join, &t->input, &undisputed);
        t->input = oj_flat_buf_view(&undisputed);
    }
    check_trial(t, "geos", seed);
}

static void run_round(uint64_t seed, const struct scene *given)
{
    static const int threads[] = {1, 1, 2, 5};
    LAYER join = {0}, input = {0};
    struct scene scene;
    struct layer_trial t;
    int64_t *fid;
    unsigned kinds = (unsigned)(1 + pick(7));
    scene = given != NULL ? *given : pick_scene();
    pick_relation(&scene, &t.relation);
    t.n_threads = threads[pick(4)];
    add_join_features(&join, &scene, pick_count(60, 1500), kinds,
                      given == NULL && one_in(20));
    t.join = oj_flat_buf_view(&join);
    add_input_points(&input, &scene, &t.join, pick_count(150, 2000), pick(2));
    t.input = oj_flat_buf_view(&input);
    fid = pick_fids(t.join.n_features);
    t.join.fid = fid;
    must(oj_flat_check(&t.join, &error));
    check_references(&t, seed);
    oj_free(fid);
}

TEST(random_layers)
{
    uint64_t first = first_seed();
    int64_t n = rounds(250);
    for (int64_t i = 0; i < n; i++)
    {
        random_state = first + (uint64_t)i;
        run_round(first + (uint64_t)i, NULL);
    }
    printf("%lld rounds: %lld rows, %lld pairs compared, %lld rows undecided "
           "by GEOS, %lld rounded by it, %lld with another area left out\n",
           (long long)n, (long long)n_rows, (long long)n_pairs,
           (long long)n_undecided, (long long)n_rounding,
           (long long)n_disputed);
    ck_assert(n < 250 || (n_pairs > 40000 && n_undecided == 0));
    ck_assert(n_rounding * 1000 <= n_rows);
}

/* Coordinates whose squares leave the range of single precision. */
TEST(extreme_scales)
{
    static const double scales[] = {1e-12, 1e-16,  1e-18,  1e-20, 1e-30,
                                    1e-60, 1e-100, 1e-130, 1e12,  1e18,
                                    1e20,  1e30,   1e60,   1e100, 1e130};
    uint64_t first = first_seed();
    for (int64_t i = 0; i < rounds(80); i++)
    {
        struct scene scene = {0.0, 0.0, 1.0, 20, 1, 0.0};
        random_state = first + (uint64_t)i;
        scene.scale = scales[pick(15)];
        scene.on_lattice = pick(2);
        run_round(first + (uint64_t)i, &scene);
    }
}

/* The index that a batch of this input needs, in bytes, and its pairs. */
static int64_t index_bytes(const struct oj_flat *join,
                           const struct oj_flat *input, unsigned input_kinds,
                           int64_t *n_found)
{
    struct oj_options options = {.n_threads = 1, .input_kinds = input_kinds};
    struct oj_relation relation = oj_relation_default();
    MATCHES m = {0};
    struct oj_join *opened;
    int64_t bytes;
    relation.op = OJ_OP_INTERSECTS;
    must(oj_join_open(join, &relation, "cpu", &options, &opened, &error));
    must(oj_join_batch(opened, input, &m, &error));
    bytes = oj_join_stats(opened)->index_bytes;
    *n_found = m.n_pairs;
    oj_join_close(opened);
    return bytes;
}

/* Cells for points are made only where points may come; and whatever was
 * expected, all input is answered. */
TEST(indexed_for_what_comes)
{
    const unsigned shapes = OJ_PART_LINE | OJ_PART_POLYGON;
    LAYER join = {0}, points = {0};
    struct oj_flat a, b;
    int64_t n_usual, n_expected;
    for (int i = 0; i < 40; i++)
    {
        add_square(&join, i, 0.0, i + 1.5, 1.0);
        add_point(&points, i + 0.25, 0.5);
    }
    a = oj_flat_buf_view(&join);
    b = oj_flat_buf_view(&points);
    ck_assert_int_lt(index_bytes(&a, &a, shapes, &n_expected),
                     index_bytes(&a, &a, 0, &n_usual));
    ck_assert_int_eq(n_expected, n_usual);
    ck_assert_int_eq(n_usual, 40 + 2 * 39);
    ck_assert_int_gt(index_bytes(&a, &b, shapes, &n_expected),
                     index_bytes(&a, &b, 0, &n_usual));
    ck_assert_int_eq(n_expected, n_usual);
    ck_assert_int_eq(n_usual, 40 + 39);
}

int main(void)
{
    tests_open("engine");
    return tests_run();
}
