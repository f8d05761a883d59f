/* Special layers: empty ones, many features in one place, one huge feature
 * among many small ones, joins without sense. test_joins_random checks that
 * batches, threads, the order of the input and FIDs change no answer, for
 * coordinates of any size.
 * Kind: degenerate, large. */
#include "../references.h"

#include "../../../algs/references/validation/plain_point_distance.h"
#include "../join_trial.h"
#include "../run_tests.h"

/* --- special layers --------------------------------------------------------
 */

static void run_special(const struct oj_flat_buf *join,
                        const struct oj_flat_buf *input, int64_t k,
                        enum oj_ties ties, struct oj_matches *out)
{
    struct join_trial t = {.relation = oj_relation_default()};
    t.join = oj_flat_buf_view(join);
    t.input = oj_flat_buf_view(input);
    t.relation.k = k;
    t.relation.ties = ties;
    trial_truth(&t, out);
    trial_check_form(&t, out);
}

TEST(empty_sides)
{
    struct oj_flat_buf nothing = {0}, nulls = {0}, points = {0}, join = {0};
    const struct oj_flat_buf *joins[] = {&nothing, &nulls, &join};
    const struct oj_flat_buf *inputs[] = {&nothing, &nulls, &points};
    for (int i = 0; i < 10; i++)
    {
        must(oj_flat_buf_add_null(&nulls, i, &error));
        add_point(&points, i, i);
    }
    add_square(&join, 0, 0, 1, 1);
    for (int c = 0; c < 36; c++)
    {
        MATCHES out = {0};
        int j = c % 3, i = c / 3 % 3;
        run_special(joins[j], inputs[i], c / 9 % 2 ? 3 : 1,
                    c / 18 ? OJ_TIES_ALL : OJ_TIES_FIRST, &out);
        ck_assert_int_eq(out.n_rows, inputs[i]->n_features);
        ck_assert_int_eq(out.n_pairs, j == 2 && i == 2 ? 10 : 0);
    }
    oj_flat_buf_free(&nulls);
    oj_flat_buf_free(&points);
    oj_flat_buf_free(&join);
}

/* Thousands of points in one place on both sides must not take quadratic
 * time. */
TEST(identical_points)
{
    LAYER join = {0}, input = {0};
    MATCHES out = {0};
    for (int i = 0; i < 50000; i++)
    {
        add_point(&join, 3.0, 4.0);
        add_point(&input, i % 2 ? 3.0 : 0.0, i % 2 ? 4.0 : 0.0);
    }
    run_special(&join, &input, 1, OJ_TIES_FIRST, &out);
    for (int i = 0; i < 50000; i++)
    {
        expect(out.join_row[i] == 0 && out.measure[i] == (i % 2 ? 0.0 : 5.0),
               "row %d", i);
    }
    run_special(&join, &input, 4, OJ_TIES_FIRST, &out);
    ck_assert_int_eq(out.n_pairs, 200000);
    for (int i = 0; i < 200000; i++)
        expect(out.join_row[i] == i % 4, "pair %d", i);
}

TEST(all_ties_of_a_heap)
{
    LAYER join = {0}, input = {0};
    MATCHES out = {0};
    for (int i = 0; i < 3000; i++)
        add_point(&join, 3.0, 4.0);
    for (int i = 0; i < 100; i++)
        add_point(&input, 0.0, i % 2 ? 0.0 : 8.0);
    run_special(&join, &input, 1, OJ_TIES_ALL, &out);
    ck_assert_int_eq(out.n_pairs, 300000);
    for (int i = 0; i < 300000; i++)
        expect(out.join_row[i] == i % 3000 && out.measure[i] == 5.0, "pair %d",
               i);
}

/* A self join of thousands of points in one place and a few beside them. Each
 * row gets the first others in tie order, of all points or only of points at
 * other places. The join must not take quadratic time. */
TEST(nearest_of_a_heap)
{
    enum
    {
        HEAP = 20000,
        BESIDE = 5
    };
    LAYER side = {0};
    MATCHES out = {0};
    struct join_trial t = {.relation = oj_relation_default()};
    for (int i = 0; i < HEAP + BESIDE; i++)
    {
        if (i < HEAP)
            must(oj_flat_buf_add_point(&side, i, 3.0, 4.0, &error));
        else
            must(oj_flat_buf_add_point(&side, i, 4.0 + i - HEAP, 4.0, &error));
    }
    t.join = t.input = oj_flat_buf_view(&side);
    t.relation.k = 3;
    for (int round = 0; round < 3; round++)
    {
        t.relation.exclude_self = round == 0;
        t.relation.exclude_same_geometry = round == 1;
        t.relation.min_distance = round == 2 ? 0.5 : 0.0;
        must(trial_open_and_join(&t, "cpu", NULL, NULL, &out));
        ck_assert_int_eq(out.n_pairs, 3 * (HEAP + BESIDE));
        for (int i = 0; i < 3 * HEAP; i++)
        {
            int row = i / 3, nth = i % 3 + (round == 0 && i % 3 >= row);
            expect(out.join_row[i] == (round == 0 ? nth : HEAP + nth) &&
                       out.measure[i] == (round == 0 ? 0.0 : nth + 1.0),
                   "round %d, pair %d", round, i);
        }
    }
}

/* Many small squares, a huge polygon around them, and diagonals through all. */
TEST(large_among_small)
{
    LAYER join = {0}, input = {0};
    MATCHES out = {0};
    struct scene scene = {0.0, 0.0, 1.0, 600, 0, 0.0};
    double middle[2] = {300.0, 300.0};
    struct oj_flat view;
    random_state = seed = 3;
    for (int i = 0; i < 40000; i++)
        add_square(&join, i % 200 * 3, i / 200 * 3, i % 200 * 3 + 1,
                   i / 200 * 3 + 1);
    begin(&join);
    add_part(&join, OJ_PART_POLYGON);
    add_large(&join, &scene, middle, 300.0);
    end(&join);
    add_line(&join, 0.0, 0.0, 600.0, 600.0);
    add_line(&join, 0.0, 600.0, 600.0, 0.1);
    add_point(&join, 1e9, 1e9);
    view = oj_flat_buf_view(&join);
    add_input_points(&input, &scene, &view, 20000, 0);
    add_point(&input, 1e9, -1e9);
    run_special(&join, &input, 1, OJ_TIES_FIRST, &out);
    for (int row = 0; row < 20001; row += 97)
    {
        double x = input.x[row], y = input.y[row], least = INFINITY;
        int32_t at = -1;
        for (int64_t f = 0; f < join.n_features && isfinite(x); f++)
        {
            double d = oj_flat_distance(&view, f, OJ_TO_INTERIOR, x, y);
            at = d < least ? (int32_t)f : at;
            least = d < least ? d : least;
        }
        ck_assert_int_eq(out.join_row[row], at);
        ck_assert(at < 0 || bits_of(out.measure[row]) == bits_of(least));
    }
}

/* One side has a line, but the backend quadrant takes points only. */
TEST(joins_without_sense)
{
    LAYER join = {0}, input = {0};
    struct oj_flat join_view, input_view;
    struct oj_relation relation = oj_relation_default();
    MATCHES out = {0};
    struct oj_join *handle;
    add_square(&join, 0, 0, 1, 1);
    add_line(&input, 0, 0, 1, 1);
    join_view = oj_flat_buf_view(&join);
    input_view = oj_flat_buf_view(&input);
    must(oj_join_open(&join_view, &relation, NULL, NULL, &handle, &error));
    must(oj_join_batch(handle, &input_view, &out, &error));
    ck_assert_int_eq(out.join_row[0], 0);
    oj_join_close(handle);
    must(
        oj_join_open(&join_view, &relation, "quadrant", NULL, &handle, &error));
    ck_assert_int_eq(oj_join_batch(handle, &input_view, &out, &error),
                     OJ_ERR_UNSUPPORTED);
    oj_join_close(handle);
    relation.k = 0;
    ck_assert_int_eq(
        oj_join_open(&join_view, &relation, NULL, NULL, &handle, &error),
        OJ_ERR_ARG);
    relation.k = 1;
    relation.max_distance = NAN;
    ck_assert_int_eq(
        oj_join_open(&join_view, &relation, NULL, NULL, &handle, &error),
        OJ_ERR_ARG);
}

/* Joins that no engine of a backend takes. The message names what to change. */
TEST(messages_of_joins_without_an_engine)
{
    static const struct
    {
        enum oj_op op;
        enum oj_metric metric;
        int has_heading, is_line; /* is_line: the input is no point */
        const char *backend, *message;
    } cases[] = {
        {OJ_OP_NEAREST, OJ_METRIC_ELLIPSOID, 0, 0, "live_quadtree",
         "the backend live_quadtree does not support op nearest with metric "
         "ellipsoid between such features: use the backend auto"},
        {OJ_OP_NEAREST, OJ_METRIC_ELLIPSOID, 0, 0, "gpics_kdtree",
         "the backend gpics_kdtree does not support op nearest with metric "
         "ellipsoid between such features: use the backend auto"},
        {OJ_OP_NEAREST, OJ_METRIC_ELLIPSOID, 0, 1, "cpu",
         "metric ellipsoid measures between points or multipoints and features "
         "of any type: one of the sides must be of points (centroid_of makes "
         "them)"},
        {OJ_OP_NEAREST, OJ_METRIC_PLANAR, 1, 0, "gpics_quadtree",
         "the backend gpics_quadtree does not support op nearest with a "
         "heading between such features: use the backend auto"},
        {OJ_OP_NEAREST, OJ_METRIC_PLANAR, 1, 0, "quadrant",
         "the backend quadrant does not support op nearest with a heading "
         "between such features: use the backend auto"},
        {OJ_OP_NEAREST, OJ_METRIC_PLANAR, 1, 1, "cpu",
         "a heading needs points as input: join the centroids of lines and "
         "polygons (centroid_of input), or leave the heading out"},
        {OJ_OP_NEAREST, OJ_METRIC_PLANAR, 0, 1, "gpics_kdtree",
         "the backend gpics_kdtree does not support op nearest between such "
         "features: use the backend auto"},
        {OJ_OP_ATTRIBUTES, OJ_METRIC_PLANAR, 0, 0, "geos",
         "the backend geos does not support op attributes: use the backend "
         "auto"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
        LAYER join = {0}, input = {0};
        MATCHES out = {0};
        static const double course[] = {45.0};
        static const int32_t classes[] = {0};
        struct oj_relation relation = oj_relation_default();
        struct oj_flat sides[2];
        struct oj_join *handle;
        struct oj_error err = {OJ_OK, ""};
        oj_status status;
        relation.op = cases[i].op;
        relation.metric = cases[i].metric;
        relation.ellipsoid = (struct oj_ellipsoid){6378137.0, 1.0 / 298.257};
        relation.heading.is_asked = cases[i].has_heading;
        relation.heading.tolerance = 45.0;
        add_line(&join, 0, 0, 1, 1);
        if (cases[i].is_line)
            add_line(&input, 0, 0, 1, 1);
        else
            add_point(&input, 0, 1);
        sides[0] = oj_flat_buf_view(&join);
        sides[1] = oj_flat_buf_view(&input);
        sides[1].heading = course;
        sides[0].on_class = sides[1].on_class = classes;
        status = oj_join_open(&sides[0], &relation, cases[i].backend, NULL,
                              &handle, &err);
        if (status == OJ_OK)
        {
            status = oj_join_batch(handle, &sides[1], &out, &err);
            oj_join_close(handle);
        }
        ck_assert_int_eq(status, OJ_ERR_UNSUPPORTED);
        ck_assert_str_eq(err.message, cases[i].message);
    }
}

/* --- lists of k nearest ----------------------------------------------------
 */

#define K_OF_LISTS 6

/* Adds n points, and features without a geometry. One of `every` points lies on
 * the squares of a grid, and the others far from them. */
static void add_points_on_grid(struct oj_flat_buf *buf, int n, int every)
{
    for (int i = 0; i < n; i++)
    {
        if (i % 1009 == 5)
            must(oj_flat_buf_add_null(buf, i, &error));
        else
            add_point(buf, i % every == 0 ? i * 7 % 397 : 5000 + i % 50,
                      i * 11 % 389);
    }
}

/* Joins a batch. Asserts that its pairs are those of joins of few rows, which
 * store no lists in place. Returns 1 if the batch stored lists in place. */
static int join_and_compare(struct oj_join *join, const struct join_trial *t)
{
    const int64_t at_once = 20000;
    MATCHES out = {0};
    must(oj_join_batch(join, &t->input, &out, &error));
    trial_check_form(t, &out);
    for (int64_t first = 0; first < t->input.n_features; first += at_once)
    {
        struct oj_flat_slice rows = {0};
        struct join_trial few = *t;
        MATCHES expected = {0};
        int64_t left = t->input.n_features - first;
        must(oj_flat_slice_make(
            &t->input, first, left < at_once ? left : at_once, &rows, &error));
        few.input = rows.flat;
        trial_truth(&few, &expected);
        expect(expected.cap_join_row < few.input.n_features * K_OF_LISTS,
               "few rows: intermediate lists");
        same_rows("lists of k", &expected, &out, first);
        oj_flat_slice_free(&rows);
    }
    return out.cap_join_row == t->input.n_features * K_OF_LISTS;
}

/* Lists of k pairs within a distance are stored in place under two conditions.
 * A sample of the first batch, or the last batch, has nearly k pairs a row; and
 * k pairs for every row are within the limit of a batch. */
TEST(lists_in_place)
{
    LAYER squares = {0}, full = {0}, empty = {0};
    struct join_trial t = {.relation = oj_relation_default()};
    struct oj_options options = {.n_threads = 2};
    struct oj_flat view_of_full, view_of_empty;
    struct oj_join *join;
    MATCHES out = {0};
    for (int i = 0; i < 1600; i++)
        add_square(&squares, i % 40 * 10, i / 40 * 10, i % 40 * 10 + 8,
                   i / 40 * 10 + 8);
    add_points_on_grid(&full, 70000, 1);
    add_points_on_grid(&empty, 66000, 9);
    view_of_full = oj_flat_buf_view(&full);
    view_of_empty = oj_flat_buf_view(&empty);
    t.join = oj_flat_buf_view(&squares);
    t.relation.k = K_OF_LISTS;
    t.relation.max_distance = 15.0;

    join = trial_open(&t, "cpu", &options);
    t.input = view_of_full;
    expect(join_and_compare(join, &t), "a sample with many pairs");
    t.input = view_of_empty;
    expect(join_and_compare(join, &t), "a full batch before");
    t.input = view_of_full;
    expect(!join_and_compare(join, &t), "a batch with few pairs before");
    must(oj_join_batch(join, &t.input, &out, &error));
    oj_join_close(join);

    join = trial_open(&t, "cpu", &options);
    t.input = view_of_empty;
    expect(!join_and_compare(join, &t), "a sample with few pairs");
    oj_join_close(join);

    expect(out.n_pairs < view_of_full.n_features * K_OF_LISTS, "gaps");
    options.max_batch_pairs = out.n_pairs;
    join = trial_open(&t, "cpu", &options);
    t.input = view_of_full;
    expect(!join_and_compare(join, &t), "the limit of a batch");
    oj_join_close(join);
}

int main(void)
{
    tests_open("special layers");
    return tests_run();
}
