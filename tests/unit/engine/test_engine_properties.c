/* What must change no answer of the engine: the batches that rows come in, the
 * number of threads, the order of the input, the order of the join side (where
 * FIDs decide), mirroring, turning, exact moves and powers of two; and layers
 * that are special as a whole.
 * Kind: property, degenerate, large.  OGRJOIN_TEST_LONG=1 runs fifty times as
 * long; OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../references.h"

#include "../../../algs/quadrant/flat_distance.h"
#include "../join_trial.h"
#include "../run_tests.h"

/* --- answers ---------------------------------------------------------------
 */

static void same_answers(const char *what, const struct oj_matches *one,
                         const struct oj_matches *other, double scale)
{
    ck_assert_int_eq(one->n_rows, other->n_rows);
    for (int64_t row = 0; row < one->n_rows; row++)
        same_row(what, one, row, other, row, NULL, scale);
}

static void check_batches(const struct join_trial *t, int n_threads,
                          const struct oj_matches *truth)
{
    static const int64_t sizes[] = {1, 7, 1000};
    const struct oj_options options = {.n_threads = n_threads};
    /* some hundred batches of a size are enough */
    for (int s = 0; s < 3; s++)
        trial_check_batches(t, &options, sizes[s], 100, truth);
}

static void check_threads(const struct join_trial *t,
                          const struct oj_matches *truth)
{
    static const int threads[] = {1, 2, 5};
    for (int i = 0; i < 3; i++)
    {
        MATCHES out = {0};
        trial_answer(t, "cpu", threads[i], &out);
        same_answers("threads", truth, &out, 1.0);
    }
}

/* A random order of n things. */
static int32_t *shuffle(int64_t n)
{
    int32_t *order = oj_malloc(n, sizeof *order);
    ck_assert_ptr_nonnull(order);
    for (int64_t i = 0; i < n; i++)
        order[i] = (int32_t)i;
    for (int64_t i = n - 1; i > 0; i--)
    {
        int64_t j = pick((int)i + 1);
        int32_t moved = order[i];
        order[i] = order[j];
        order[j] = moved;
    }
    return order;
}

/* The features of flat in another order, with their FIDs. */
static struct oj_flat reorder(const struct oj_flat *flat, const int32_t *order,
                              struct oj_flat_buf *buf)
{
    struct oj_flat view;
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        int64_t fid = flat->fid != NULL ? flat->fid[order[i]] : i;
        must(oj_flat_buf_copy(buf, flat, order[i], fid, &error));
    }
    view = oj_flat_buf_view(buf);
    view.fid = flat->fid != NULL ? view.fid : NULL;
    return view;
}

static void check_order_of_input(const struct join_trial *t,
                                 const struct oj_matches *truth)
{
    struct join_trial again = *t;
    LAYER buf = {0};
    MATCHES out = {0};
    int32_t *order = shuffle(t->input.n_features);
    again.input = reorder(&t->input, order, &buf);
    trial_truth(&again, &out);
    for (int64_t row = 0; row < out.n_rows; row++)
        same_row("order of input", truth, order[row], &out, row, NULL, 1.0);
    oj_free(order);
}

static int has_repeats(const int64_t *fid, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
    {
        for (int64_t j = i + 1; j < n; j++)
        {
            if (fid[i] == fid[j])
                return 1;
        }
    }
    return 0;
}

/* FIDs, all different, order ties: the order of the join side is nothing. */
static void check_order_of_join(const struct join_trial *t,
                                const struct oj_matches *truth)
{
    struct join_trial again = *t;
    LAYER buf = {0};
    MATCHES out = {0};
    int64_t n = t->join.n_features;
    int32_t *order, *place;
    if (t->join.fid == NULL || has_repeats(t->join.fid, n))
        return;
    order = shuffle(n);
    place = oj_malloc(n, sizeof *place);
    ck_assert_ptr_nonnull(place);
    for (int64_t i = 0; i < n; i++)
        place[order[i]] = (int32_t)i;
    again.join = reorder(&t->join, order, &buf);
    trial_truth(&again, &out);
    for (int64_t row = 0; row < out.n_rows; row++)
        same_row("order of join", truth, row, &out, row, place, 1.0);
    oj_free(order);
    oj_free(place);
}

/* --- motions ---------------------------------------------------------------
 */

struct axis_motion
{
    const char *name;
    int swaps;
    double sx, sy, dx, dy; /* x * sx + dx, after swapping */
};

static struct oj_flat move(const struct axis_motion *m,
                           const struct oj_flat *flat)
{
    struct oj_flat moved = *flat;
    double *x = oj_malloc(flat->n_vertices, sizeof *x);
    double *y = oj_malloc(flat->n_vertices, sizeof *y);
    ck_assert(x != NULL && y != NULL);
    for (int64_t i = 0; i < flat->n_vertices; i++)
    {
        x[i] = (m->swaps ? flat->y[i] : flat->x[i]) * m->sx + m->dx;
        y[i] = (m->swaps ? flat->x[i] : flat->y[i]) * m->sy + m->dy;
    }
    moved.x = x;
    moved.y = y;
    return moved;
}

/* can_shift: moving by these powers of two rounds nothing. */
static void check_motions(const struct join_trial *t,
                          const struct oj_matches *truth, int can_shift)
{
    static const struct axis_motion motions[] = {
        {"mirrored", 0, -1, 1, 0, 0},
        {"swapped", 1, 1, 1, 0, 0},
        {"turned", 1, -1, 1, 0, 0},
        {"scaled up", 0, 0x1p40, 0x1p40, 0, 0},
        {"scaled down", 0, 0x1p-40, 0x1p-40, 0, 0},
        {"moved", 0, 1, 1, 0x1p20, -0x1p21},
        {"moved far", 0, 1, 1, 0x1p40, 0x1p38},
        {"scaled far down", 0, 0x1p-200, 0x1p-200, 0, 0},
    };
    /* the last one is slow: single precision filters nothing there */
    for (int i = 0; i < 7 + one_in(8); i++)
    {
        const struct axis_motion *m = &motions[i];
        struct join_trial again = *t;
        MATCHES out = {0};
        if (m->dx != 0.0 && !can_shift)
            continue;
        again.join = move(m, &t->join);
        again.input = move(m, &t->input);
        again.relation.max_distance *= m->sy;
        trial_truth(&again, &out);
        same_answers(m->name, truth, &out, m->sy);
        oj_free((void *)(uintptr_t)again.join.x);
        oj_free((void *)(uintptr_t)again.join.y);
        oj_free((void *)(uintptr_t)again.input.x);
        oj_free((void *)(uintptr_t)again.input.y);
    }
}

static int is_short_binary(const struct oj_flat *flat)
{
    for (int64_t i = 0; i < flat->n_vertices; i++)
    {
        double x = flat->x[i] * 1024.0, y = flat->y[i] * 1024.0;
        if (isfinite(x) && isfinite(y) &&
            (x != rint(x) || y != rint(y) || fabs(x) + fabs(y) > 0x1p40))
            return 0;
    }
    return 1;
}

/* --- random layers ---------------------------------------------------------
 */

static void pick_relation(const struct scene *s, struct oj_relation *relation)
{
    static const double steps[] = {0.0, 1.0, 3.5, 40.0, 1e9};
    relation->max_distance = pick(2) ? INFINITY : s->scale * steps[pick(5)];
    relation->k = pick(2) ? 1 : 1 + pick(12);
    relation->ties = pick(3) ? OJ_TIES_FIRST : OJ_TIES_ALL;
    relation->distance_to = pick(3) ? OJ_TO_INTERIOR : OJ_TO_BOUNDARY;
}

TEST(nothing_changes_an_answer)
{
    EACH_ROUND(24)
    {
        MATCHES truth = {0};
        struct scene scene;
        struct join_trial t = {.relation = oj_relation_default()};
        int n_threads;
        scene = pick_scene();
        pick_relation(&scene, &t.relation);
        n_threads = 1 + pick(2);
        add_join_features(&t.join_buf, &scene, 1 + pick(one_in(5) ? 3000 : 200),
                          (unsigned)(1 + pick(7)), 0);
        t.join = oj_flat_buf_view(&t.join_buf);
        add_input_points(&t.input_buf, &scene, &t.join, pick(2500), pick(2));
        t.input = oj_flat_buf_view(&t.input_buf);
        t.join.fid = t.fid = pick_fids(t.join.n_features);
        trial_answer(&t, "cpu", n_threads, &truth);
        trial_check_form(&t, &truth);
        check_batches(&t, n_threads, &truth);
        check_threads(&t, &truth);
        check_order_of_input(&t, &truth);
        check_order_of_join(&t, &truth);
        check_motions(&t, &truth,
                      is_short_binary(&t.join) && is_short_binary(&t.input));
        trial_free(&t);
    }
}

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

/* Thousands of points at one place on both sides: no quadratic work. */
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

/* Many small squares, one huge polygon around, diagonals through all. */
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

/* A line reaches into the square; the quadrants group points only. */
TEST(questions_that_make_no_sense)
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

int main(void)
{
    tests_open("engine, properties");
    return tests_run();
}
