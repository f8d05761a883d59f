/* The nearest segments of points by cells, as the CUDA module has them, against
 * the cpu backend, bit for bit: points, lines and polygons, ties under any
 * order of FIDs, copies, long segments, reaches from none to no limit, numbers
 * of any size.
 * Kind: property, degenerate, large.  OGRJOIN_TEST_LONG=1 runs fifty times as
 * long; OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "random_layers.h"

#include "plain_near_cells.h"

static uint64_t seed;
static int64_t n_asked, n_outside, n_refused;

/* What cells answer in each row against what the cpu backend does. */
static void compare(const struct near_cells *c, const struct oj_flat *input,
                    const struct oj_matches *truth, const int32_t *tie_rank)
{
    struct oj_near_view v = near_view(c);
    for (int64_t i = 0; i < input->n_features; i++)
    {
        double x = input->x[i], y = input->y[i], distance = NAN;
        int32_t rank = oj_near_one(&v, x, y, OJ_NEAR_NONE, &distance);
        int32_t row = truth->join_row[i], expected = row;
        if (rank < 0)
            distance = NAN;
        n_asked++;
        if (row >= 0 && tie_rank != NULL)
            expected = tie_rank[row];
        if (rank == OJ_NEAR_OUTSIDE)
        {
            n_outside++;
            expect(row < 0 || c->square.has_outside,
                   "seed %llu: row %lld, a match outside of the square",
                   (unsigned long long)seed, (long long)i);
            continue;
        }
        expect(rank == expected &&
                   bits_of(distance) == bits_of(truth->measure[i]),
               "seed %llu: row %lld (%a %a): rank %d at %a, cpu rank %d at %a",
               (unsigned long long)seed, (long long)i, x, y, (int)rank,
               distance, (int)expected, truth->measure[i]);
    }
}

static void try_layers(const struct oj_flat *join, const struct oj_flat *input,
                       double reach)
{
    struct oj_relation relation = oj_relation_default();
    struct oj_options options = {.n_threads = 1};
    struct near_cells c = {0};
    struct oj_matches truth = {0};
    struct oj_join *opened;
    relation.max_distance = reach;
    relation.distance_to = OJ_TO_BOUNDARY;
    must(oj_join_open(join, &relation, "cpu", &options, &opened, &error));
    must(oj_join_batch(opened, input, &truth, &error));
    c.directory_level = pick(8);
    c.leaf_size = 1 + (uint32_t)pick(12);
    c.wide = one_in(4) ? 0 : (uint32_t)pick(100);
    near_add_layer(&c, join, oj_join_tie_rank(opened));
    if (near_build(&c, reach))
        compare(&c, input, &truth, oj_join_tie_rank(opened));
    else
        n_refused++;
    near_free(&c);
    oj_join_close(opened);
    oj_matches_free(&truth);
}

static double pick_reach(const struct scene *s)
{
    switch (pick(8))
    {
        case 0:
            return 0.0;
        case 1:
            return INFINITY;
        case 2:
            return s->scale * s->extent * 3.0;
        case 3:
            return s->scale * 1e9;
        default:
            return s->scale * pick(12);
    }
}

START_TEST(random_layers)
{
    int64_t n_rounds = rounds(150);
    for (seed = first_seed(); n_rounds > 0; seed++, n_rounds--)
    {
        struct scene scene;
        struct oj_flat_buf join = {0}, input = {0};
        struct oj_flat join_view, input_view;
        int64_t *fid;
        random_state = seed;
        scene = pick_scene();
        add_join_features(&join, &scene, 1 + pick(one_in(5) ? 400 : 40),
                          1 + (unsigned)pick(7), 0);
        join_view = oj_flat_buf_view(&join);
        add_input_points(&input, &scene, &join_view, 300, 0);
        input_view = oj_flat_buf_view(&input);
        join_view.fid = fid = pick_fids(join_view.n_features);
        if (oj_flat_is_points(&input_view))
            try_layers(&join_view, &input_view, pick_reach(&scene));
        oj_free(fid);
        oj_flat_buf_free(&join);
        oj_flat_buf_free(&input);
    }
    ck_assert_int_gt(n_asked, 0);
    printf("%lld points asked, %lld outside, %lld layers refused\n",
           (long long)n_asked, (long long)n_outside, (long long)n_refused);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("near_cells");
    TCase *properties = tcase_create("properties");
    SRunner *runner;
    int n_failed;
    tcase_set_timeout(properties, 0);
    tcase_add_test(properties, random_layers);
    suite_add_tcase(suite, properties);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed == 0 ? 0 : 1;
}
