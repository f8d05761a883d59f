/* Joins of points that are mostly far from a sparse layer. The mask of the area
 * within reach excludes most points, and none that has a pair. Answers equal a
 * plain computation.
 * Kind: property, degenerate. OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../references.h"

#include "../join_trial.h"
#include "../plain_pairs.h"
#include "../run_tests.h"

#include "../../../algs/foundations/base/oj_reach_mask.h"

static int64_t n_masks, n_near, n_left_out, n_points, n_boxes_out;

/* Makes features in few places of a wide plane. Points are beside the features,
 * and anywhere. */
static void make_sparse(struct join_trial *t, double wide)
{
    struct scene scene = pick_scene();
    unsigned kinds = plain_kinds();
    memset(t, 0, sizeof *t);
    t->relation = oj_relation_default();
    for (int places = 1 + pick(4); places > 0; places--)
    {
        struct scene there = scene;
        there.origin_x += scene.scale * wide * pick(100);
        there.origin_y += scene.scale * wide * pick(100);
        add_join_features(&t->join_buf, &there, 1 + pick(12), kinds, 0);
        trial_view(t);
        add_input_points(&t->input_buf, &there, &t->join, 30, 0);
    }
    for (int i = 0; i < 60; i++)
        add_point(&t->input_buf,
                  scene.origin_x + scene.scale * wide * 100.0 * unit(),
                  scene.origin_y + scene.scale * wide * 100.0 * unit());
    trial_view(t);
}

static void check_mask(const struct join_trial *t, const double *matrix)
{
    struct oj_reach_mask mask;
    double limit = t->relation.max_distance;
    must(oj_reach_mask_make(&mask, &t->join, limit, &error));
    n_masks += mask.bit != NULL;
    for (int64_t a = 0; mask.bit != NULL && a < t->input.n_features; a++)
    {
        int has = oj_reach_mask_has(&mask, t->input.x[a], t->input.y[a]);
        int64_t other = pick((int)t->input.n_features);
        struct oj_box box = oj_box_of_segment(
            t->input.x[a], t->input.y[a], t->input.x[other], t->input.y[other]);
        n_points++;
        n_left_out += !has;
        if (t->input.x[a] == t->input.x[a] &&
            t->input.x[other] == t->input.x[other])
        {
            int meets = oj_reach_mask_meets_box(&mask, &box);
            expect(!has || meets, "seed %llu: box at point %d",
                   (unsigned long long)seed, (int)a);
            n_boxes_out += !meets;
        }
        for (int64_t b = 0; b < t->join.n_features; b++)
        {
            int is_near = matrix[a * t->join.n_features + b] <= limit;
            n_near += is_near;
            expect(!is_near || has, "seed %llu: point %d is near feature %d",
                   (unsigned long long)seed, (int)a, (int)b);
        }
    }
    oj_reach_mask_free(&mask);
}

TEST(sparse_layers_lose_no_pair)
{
    for (int64_t left = first_round(1500); left > 0; left = next_round(left))
    {
        struct join_trial t;
        double *matrix;
        int64_t n;
        MATCHES m = {0};
        make_sparse(&t, pow(10.0, 1 + pick(6)));
        n = t.join.n_features;
        plain_pick_join(&t.relation, &(struct scene){.scale = 1.0, .extent = 1},
                        4);
        /* take distances that occur, so that some pairs are exactly at the
         * limit */
        matrix = plain_matrix(&t.input, &t.join, t.relation.distance_to);
        t.relation.max_distance = 0.0;
        t.relation.min_distance = 0.0;
        for (int tries = 0; tries < 5; tries++)
        {
            double d = matrix[pick((int)t.input.n_features) * n + pick((int)n)];
            if (d < INFINITY && (tries == 0 || d < t.relation.max_distance))
                t.relation.max_distance = d;
        }
        check_mask(&t, matrix);
        trial_answer(&t, "cpu", 1 + pick(3), &m);
        check_answer("sparse", &t.relation, &t.input, &t.join, matrix, &m);
        oj_free(matrix);
        trial_free(&t);
    }
    /* the rounds must have met the cases for which they are made */
    ck_assert_int_gt(n_masks, 100);
    ck_assert_int_gt(n_near, 100);
    ck_assert_int_gt(n_left_out, n_points / 4);
    ck_assert_int_gt(n_boxes_out, n_points / 20);
}

TEST(layers_that_fill_their_frame_exclude_points_outside)
{
    LAYER buf = {0};
    struct oj_flat flat;
    struct oj_reach_mask mask;
    for (int i = 0; i < 400; i++)
        add_point(&buf, i % 20, i / 20);
    flat = oj_flat_buf_view(&buf);
    must(oj_reach_mask_make(&mask, &flat, 0.6, &error));
    ck_assert(oj_reach_mask_has(&mask, 3.5, 4.5));
    ck_assert(oj_reach_mask_has(&mask, -0.6, 19.6));
    ck_assert(!oj_reach_mask_has(&mask, -1.0, 4.0));
    ck_assert(!oj_reach_mask_has(&mask, 4.0, 20.0));
    ck_assert(!oj_reach_mask_has(&mask, NAN, 4.0));
    ck_assert(oj_reach_mask_may_exclude(&mask, &(struct oj_box){0, 0, 20, 5}));
    ck_assert(!oj_reach_mask_may_exclude(&mask, &(struct oj_box){0, 0, 19, 5}));
    oj_reach_mask_free(&mask);
    must(oj_reach_mask_make(&mask, &flat, 0.01, &error));
    ck_assert_ptr_nonnull(mask.bit);
    ck_assert(oj_reach_mask_has(&mask, 3.0, 4.01));
    ck_assert(!oj_reach_mask_has(&mask, 3.5, 4.5));
    ck_assert(!oj_reach_mask_has(&mask, -1.0, 4.0));
    ck_assert(!oj_reach_mask_has(&mask, NAN, 4.0));
    ck_assert(oj_reach_mask_meets_box(&mask, &(struct oj_box){3, 4, 3, 4}));
    ck_assert(oj_reach_mask_meets_box(&mask, &(struct oj_box){-9, -9, 99, 99}));
    ck_assert(
        oj_reach_mask_meets_box(&mask, &(struct oj_box){2.5, 3.5, 3.5, 4.5}));
    ck_assert(
        !oj_reach_mask_meets_box(&mask, &(struct oj_box){3.4, 4.4, 3.6, 4.6}));
    ck_assert(!oj_reach_mask_meets_box(&mask,
                                       &(struct oj_box){3.4, -9.0, 3.6, 99.0}));
    ck_assert(!oj_reach_mask_meets_box(&mask, &(struct oj_box){20, 0, 30, 30}));
    oj_reach_mask_free(&mask);
}

/* Two points far apart along one axis. The mask has few columns, or few
 * rows. */
TEST(long_frames_have_small_masks)
{
    for (int is_tall = 0; is_tall < 2; is_tall++)
    {
        LAYER buf = {0};
        struct oj_flat flat;
        struct oj_reach_mask mask;
        add_point(&buf, 0, 0);
        add_point(&buf, is_tall ? 0 : 1000, is_tall ? 1000 : 0);
        flat = oj_flat_buf_view(&buf);
        must(oj_reach_mask_make(&mask, &flat, 1e-9, &error));
        ck_assert_ptr_nonnull(mask.bit);
        ck_assert_int_le((int64_t)mask.ny * mask.row_words, (1 << 20) / 8 + 64);
        ck_assert(oj_reach_mask_has(&mask, 0, 0));
        ck_assert(
            !oj_reach_mask_has(&mask, is_tall ? 0 : 500, is_tall ? 500 : 0));
        oj_reach_mask_free(&mask);
    }
}

TEST(layers_without_features_have_no_mask)
{
    LAYER buf = {0};
    struct oj_flat flat;
    struct oj_reach_mask mask;
    flat = oj_flat_buf_view(&buf);
    must(oj_reach_mask_make(&mask, &flat, 1.0, &error));
    ck_assert_ptr_null(mask.bit);
    must(oj_flat_buf_add_null(&buf, 0, &error));
    flat = oj_flat_buf_view(&buf);
    must(oj_reach_mask_make(&mask, &flat, 1.0, &error));
    ck_assert_ptr_null(mask.bit);
}

int main(void)
{
    tests_open("reach mask");
    return tests_run();
}
