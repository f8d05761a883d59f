/* The nearest segments of points by cells, as the CUDA module has them, against
 * the cpu backend, bit for bit: points, lines and polygons, ties under any
 * order of FIDs, copies, long segments, reaches from none to no limit, numbers
 * of any size.
 * Kind: property, degenerate, large.  OGRJOIN_TEST_LONG=1 runs fifty times as
 * long; OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../random_layers.h"
#include "../run_tests.h"

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
        int32_t rank = oj_near_one(&v, x, y, OJ_NEAR_NONE, 0, &distance);
        int32_t row = truth->join_row[i], expected = row;
        if (rank < 0)
            distance = NAN;
        n_asked++;
        if (row >= 0 && tie_rank != NULL)
            expected = tie_rank[row];
        if (rank == OJ_NEAR_OPEN)
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
    c.seed_level = pick(2) ? 2 * pick(3) : 0;
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

TEST(random_layers)
{
    int64_t n_rounds = rounds(60);
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

/* --- layers as they are, and worse ---------------------------------------- */

/* Blocks of two rows of lots that share borders, corners a little moved. */
static void add_lots(struct oj_flat_buf *buf, int n_blocks, double x0,
                     double y0)
{
    for (int block = 0; block < n_blocks; block++)
    {
        double bx = x0 + 900.0 * (block % 6) + pick(40);
        double by = y0 + 264.0 * (block / 6.0) + pick(20);
        for (int lot = 0; lot < 66; lot++)
        {
            double x = bx + 25.0 * (lot % 33), y = by + 100.0 * (lot / 33.0);
            add_square(buf, x, y, x + 25.0, y + 100.0);
        }
    }
}

/* Lines of all lengths from one vertex, and copies of some, either way. */
static void add_hub(struct oj_flat_buf *buf, double x, double y)
{
    for (int i = 0; i < 300; i++)
    {
        double length = ldexp(1.0, pick(20) - 5), angle = 7.0 * unit();
        double bx = x + length * cos(angle), by = y + length * sin(angle);
        add_line(buf, x, y, bx, by);
        if (one_in(5))
            add_line(buf, x, y, bx, by);
        if (one_in(5))
            add_line(buf, bx, by, x, y);
    }
}

static void add_others(struct oj_flat_buf *buf, int kind, double x, double y)
{
    switch (kind)
    {
        case 0:
            add_lots(buf, 12, x, y);
            break;
        case 1:
            add_hub(buf, x, y);
            break;
        case 2: /* long and short, side by side */
            for (int i = 0; i < 400; i++)
                add_line(buf, x, y + i * 1e-3, x + (i % 7 ? 30.0 : 1e5),
                         y + i * 1e-3 + pick(2));
            break;
        case 3: /* the same place again and again, and one far away */
            for (int i = 0; i < 6000; i++)
                add_point(buf, x + (i % 3), y);
            add_point(buf, x + 1e6, y);
            break;
        case 4: /* on one line, end to end and overlapping */
            for (int i = 0; i < 500; i++)
                add_line(buf, x + pick(100), y, x + pick(100), y);
            break;
        default: /* hardly apart */
            for (int i = 0; i < 500; i++)
                add_point(buf, nudge(x, 1000), nudge(y, 1000));
            break;
    }
}

TEST(other_layers)
{
    static const double reaches[] = {0.0, 3.0, 100.0, 1e4, INFINITY};
    int64_t n_rounds = rounds(12);
    for (seed = first_seed(); n_rounds > 0; seed++, n_rounds--)
    {
        struct oj_flat_buf join = {0}, input = {0};
        struct oj_flat join_view, input_view;
        double x = pick(2) ? 1e6 : 0.25, y = pick(2) ? 2e5 : 1e-3;
        int64_t *fid;
        random_state = seed;
        add_others(&join, (int)(seed % 6), x, y);
        join_view = oj_flat_buf_view(&join);
        join_view.fid = fid = pick_fids(join_view.n_features);
        for (int i = 0; i < 3000; i++)
        {
            double px, py;
            pick_beside(&join_view, &px, &py);
            if (pick(2))
            {
                px += between(-60.0, 60.0);
                py += between(-60.0, 60.0);
            }
            add_point(&input, px, py);
        }
        input_view = oj_flat_buf_view(&input);
        try_layers(&join_view, &input_view, reaches[pick(5)]);
        oj_free(fid);
        oj_flat_buf_free(&join);
        oj_flat_buf_free(&input);
    }
}

/* --- one distance ---------------------------------------------------------
 */

static double pick_number(void)
{
    double v = between(-2.0, 2.0);
    switch (pick(6))
    {
        case 0:
            return pick(5) - 2.0;
        case 1:
            return v * 1e6;
        case 2:
            return nudge(1.0, 3);
        case 3:
            return ldexp(v, pick(280) - 140);
        case 4: /* where quotients underflow */
            return pick(2) ? ldexp(v, -1060) : 0.0;
        default:
            return v;
    }
}

TEST(one_distance)
{
    int64_t n = 200000 * rounds(1), n_lost = 0, n_first = 0;
    random_state = first_seed();
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_near_ends e = {pick_number(), pick_number(), pick_number(),
                                 pick_number()};
        double px = pick_number(), py = pick_number(), expected;
        if (one_in(4)) /* on the way, or nearly */
        {
            double t = pick(5) * 0.25;
            px = nudge(e.ax + t * (e.bx - e.ax), 2);
            py = nudge(e.ay + t * (e.by - e.ay), 2);
        }
        if (oj_near_is_lost(e.ax, e.ay, e.bx, e.by))
        {
            n_lost++;
            continue;
        }
        expected = oj_segment_distance(px, py, e.ax, e.ay, e.bx, e.by);
        n_first += expected == oj_point_distance(px, py, e.ax, e.ay);
        ck_assert_msg(bits_of(oj_near_distance(e, px, py)) == bits_of(expected),
                      "%a %a from %a %a .. %a %a", px, py, e.ax, e.ay, e.bx,
                      e.by);
    }
    ck_assert(n_lost < n / 2 && n_first > 0 && n_first < n);
}

/* What cells leave to others. */
TEST(refused)
{
    struct oj_near_square square;
    ck_assert(!oj_near_square(0, 0, 1e31, 1, 1e31, 1.0, 5, &square));
    ck_assert(!oj_near_square(0, 0, 1e-30, 0, 1e-30, 0.0, 5, &square));
    ck_assert(oj_near_square(3, 3, 3, 3, 3, 0.0, 1, &square));
    ck_assert(oj_near_square(0, 0, 0, 0, 0, 0.0, 1, &square));
    ck_assert(oj_near_square(0, 0, 9, 9, 9, INFINITY, 1, &square));
    ck_assert(square.has_outside);
    ck_assert(oj_near_is_lost(0.0, 0.0, 1e-160, 0.0));
    ck_assert(!oj_near_is_lost(1.0, 0.0, 1.0, 0.0));
}

int main(void)
{
    tests_open("near_cells");
    return tests_run();
}
