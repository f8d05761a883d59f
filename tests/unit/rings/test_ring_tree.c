/* The tree of cells over polygon rings that devices use, built on the host with
 * the same functions: every point has the pairs that the cpu backend gives it,
 * in their order, and the polygon around it that a plain loop over all parts
 * finds first.
 * Kind: property, degenerate, large.  OGRJOIN_TEST_LONG=1 runs fifty times as
 * long; OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../plain_pairs.h"
#include "../run_tests.h"

#include "../../../algs/relate/oj_overlapping_parts.h"
#include "../../../algs/relation/cpu_family.h"
#include "plain_ring_tree.h"

#include <stdio.h>

static const enum oj_op ops[] = {OJ_OP_INTERSECTS, OJ_OP_WITHIN,
                                 OJ_OP_COVEREDBY, OJ_OP_TOUCHES};
static const unsigned accepted[] = {
    1u << OJ_INSIDE | 1u << OJ_ON_BOUNDARY, 1u << OJ_INSIDE,
    1u << OJ_INSIDE | 1u << OJ_ON_BOUNDARY, 1u << OJ_ON_BOUNDARY};
static uint64_t seed;
static int64_t n_pairs_seen, n_points_seen, n_asked, n_units_asked;
static int64_t n_below_root; /* trees that begin there */

/* --- pairs ---------------------------------------------------------------- */

/* Features that trees of features leave out, or NULL. */
static uint8_t *left_out;

static int is_left_out(int64_t feature)
{
    return left_out != NULL && left_out[feature];
}

static void check_row(const struct oj_ring_tree *t, const struct oj_flat *input,
                      int64_t row, unsigned take, const struct oj_matches *m)
{
    double x = input->x[row], y = input->y[row];
    int64_t p = m->offset[row], end_of_row = m->offset[row + 1];
    struct oj_ring_place place;
    int32_t found = oj_ring_tree_find(t, x, y, &place);
    if (found >= 0 && !is_left_out(found) && (take >> OJ_INSIDE & 1u))
        expect(p < end_of_row && m->join_row[p++] == found,
               "seed %llu: row %d (%a %a) is not in feature %d",
               (unsigned long long)seed, (int)row, x, y, found);
    n_points_seen++;
    n_asked += found == OJ_RING_ASK;
    while (found == OJ_RING_ASK && place.at < place.end)
    {
        uint32_t first = place.at, unit;
        enum oj_location at = oj_ring_tree_next(t, &place, x, y, &unit);
        enum oj_location truth =
            oj_ring_tree_locate_exactly(t, &place, x, y, first, place.at);
        expect(at == truth,
               "seed %llu: row %d (%a %a), unit %d: short edges say %d, not %d",
               (unsigned long long)seed, (int)row, x, y, (int)unit, (int)at,
               (int)truth);
        n_units_asked++;
        if ((take >> at & 1u) && !is_left_out(unit))
            expect(p < end_of_row && m->join_row[p++] == (int32_t)unit,
                   "seed %llu: row %d (%a %a) is no pair of feature %d",
                   (unsigned long long)seed, (int)row, x, y, (int)unit);
    }
    expect(p == end_of_row, "seed %llu: row %d (%a %a) lacks feature %d",
           (unsigned long long)seed, (int)row, x, y, m->join_row[p]);
}

static void ask_cpu(const struct oj_flat *join, const struct oj_flat *input,
                    enum oj_op op, struct oj_matches *out)
{
    const struct oj_cpu_family *family = &oj_cpu_points_in_polygons;
    struct oj_relation relation = oj_relation_default();
    struct oj_options options = {.n_threads = 1};
    struct oj_stats stats;
    struct oj_index *index;
    memset(&stats, 0, sizeof stats);
    relation.op = op;
    must(
        family->index(join, NULL, &relation, &options, &index, &stats, &error));
    must(family->join(index, input, out, &stats, &error));
    family->free_index(index);
    n_pairs_seen += out->n_pairs;
}

static void check_features(const struct oj_flat *join,
                           const struct oj_flat *input, uint32_t most,
                           int directory_level)
{
    struct plain_tree t;
    struct oj_matches out = {0};
    struct oj_flat with = *join;
    must(oj_overlapping_parts(join, 1, NULL, &left_out, &error));
    with.overlaps = left_out;
    plain_tree_build(&t, join, OJ_RING_FEATURES, most, directory_level);
    n_below_root += t.start > 0;
    for (int i = 0; i < 4; i++)
    {
        ask_cpu(&with, input, ops[i], &out);
        for (int64_t row = 0; row < input->n_features; row++)
            check_row(&t.tree, input, row, accepted[i], &out);
    }
    oj_matches_free(&out);
    plain_tree_free(&t);
    oj_free(left_out);
    left_out = NULL;
}

/* --- the first polygon around a point ------------------------------------- */

static int32_t plain_first_around(const struct oj_flat *join, int64_t from,
                                  double x, double y)
{
    const double p[] = {x, y};
    for (int64_t f = from; isfinite(x) && isfinite(y) && f < join->n_features;
         f++)
    {
        for (int64_t q = join->part_offset[f]; q < join->part_offset[f + 1];
             q++)
        {
            if (join->part_kind[q] == OJ_PART_POLYGON &&
                plain_holds(join, q, p))
                return (int32_t)f;
        }
    }
    return OJ_RING_NONE;
}

static void check_parts(const struct oj_flat *join, const struct oj_flat *input,
                        enum oj_ring_units units, uint32_t most,
                        int directory_level)
{
    struct plain_tree t;
    plain_tree_build(&t, join, units, most, directory_level);
    for (int64_t row = 0; row < input->n_features; row++)
    {
        double x = input->x[row], y = input->y[row];
        int32_t truth = plain_first_around(join, 0, x, y);
        int32_t found = oj_ring_tree_first_around(&t.tree, x, y);
        struct oj_ring_place place;
        expect(found == truth,
               "seed %llu: row %d (%a %a) is in feature %d first, not %d",
               (unsigned long long)seed, (int)row, x, y, truth, found);
        /* what is sure of all parts is the only one */
        expect(units != OJ_RING_ALL_PARTS || truth < 0 ||
                   oj_ring_tree_find(&t.tree, x, y, &place) == OJ_RING_ASK ||
                   plain_first_around(join, truth + 1, x, y) == OJ_RING_NONE,
               "seed %llu: row %d (%a %a) is not in feature %d alone",
               (unsigned long long)seed, (int)row, x, y, truth);
    }
    plain_tree_free(&t);
}

/* --- rounds --------------------------------------------------------------- */

static struct oj_flat join_view(const struct oj_flat_buf *buf)
{
    static const int64_t none[] = {0, 0};
    struct oj_flat view = oj_flat_buf_view(buf);
    if (view.part_offset == NULL)
    {
        view.n_features = 0;
        view.n_parts = view.n_rings = view.n_vertices = 0;
        view.part_offset = view.ring_offset = view.vertex_offset = none;
    }
    return view;
}

static void check_scene(const struct scene *scene, int n, unsigned kinds)
{
    struct oj_flat_buf join = {0}, input = {0};
    struct oj_flat a, b;
    uint32_t most = 1u << pick(5);
    int directory_level = pick(4);
    must(oj_flat_buf_begin(&join, 0, &error)); /* the long form */
    end(&join);
    add_join_features(&join, scene, n, kinds, 1);
    b = join_view(&join);
    add_input_points(&input, scene, &b, 1 + pick(250), 0);
    a = oj_flat_buf_view(&input);
    if (kinds == OJ_PART_POLYGON)
        check_features(&b, &a, most, directory_level);
    check_parts(&b, &a, OJ_RING_PARTS, most, directory_level);
    check_parts(&b, &a, OJ_RING_ALL_PARTS, most, directory_level);
    oj_flat_buf_free(&join);
    oj_flat_buf_free(&input);
}

TEST(same_as_cpu)
{
    uint64_t first = first_seed();
    int64_t n = rounds(200);
    for (int64_t i = 0; i < n; i++)
    {
        struct scene scene;
        seed = random_state = first + (uint64_t)i;
        scene = pick_scene();
        check_scene(&scene, pick(120), OJ_PART_POLYGON);
    }
    ck_assert_int_gt(n_pairs_seen, n);
    ck_assert_int_gt(n_below_root, n / 2);
    ck_assert_int_lt(n_below_root, n);
}

/* Lines and points among the polygons are left out. */
TEST(of_all_kinds)
{
    uint64_t first = first_seed();
    for (int64_t i = rounds(60); i > 0; i--)
    {
        struct scene scene;
        seed = random_state = first + (uint64_t)i;
        scene = pick_scene();
        check_scene(&scene, pick(100),
                    OJ_PART_POLYGON | OJ_PART_LINE | OJ_PART_POINT);
    }
}

/* Very large and very small coordinates, as far as signs are exact; and places
 * so far from the origin that numbers are few. */
TEST(sizes)
{
    static const double scales[] = {1e-120, 1e-30, 1e30, 1e120, 1.0};
    uint64_t first = first_seed();
    for (int64_t i = rounds(80); i > 0; i--)
    {
        struct scene scene = {0.0, 0.0, 1.0, 20, 1, 0.0};
        seed = random_state = first + (uint64_t)i;
        scene.scale = scales[pick(5)];
        scene.on_lattice = pick(2);
        if (pick(2))
            scene.origin_x = scene.scale * ldexp(1.0, 20 + pick(32));
        if (pick(2))
            scene.origin_y = -scene.scale * ldexp(1.0, 20 + pick(32));
        check_scene(&scene, 60, OJ_PART_POLYGON);
    }
}

/* --- real sizes ----------------------------------------------------------- */

static struct oj_flat_buf crowd;

/* Points anywhere in the box of a layer, and beside its edges. */
static void add_crowd(const struct oj_flat *join, int n)
{
    double x0 = INFINITY, y0 = INFINITY, x1 = -INFINITY, y1 = -INFINITY;
    for (int64_t v = 0; v < join->n_vertices; v++)
    {
        x0 = fmin(x0, join->x[v]);
        y0 = fmin(y0, join->y[v]);
        x1 = fmax(x1, join->x[v]);
        y1 = fmax(y1, join->y[v]);
    }
    oj_flat_buf_clear(&crowd);
    for (int i = 0; i < n; i++)
    {
        double x = between(x0, x1), y = between(y0, y1);
        if (one_in(3))
            pick_beside(join, &x, &y);
        add_point(&crowd, x, y);
    }
}

static void check_large(const struct oj_flat *join, int n, const char *what)
{
    struct oj_flat a;
    n_points_seen = n_asked = n_units_asked = 0;
    add_crowd(join, n);
    a = oj_flat_buf_view(&crowd);
    check_features(join, &a, 8, 3);
    if (getenv("OGRJOIN_TEST_FIGURES") != NULL)
        printf("%s: %.2f %% of the points ask, %.2f units each\n", what,
               100.0 * (double)n_asked / (double)n_points_seen,
               (double)n_units_asked / (double)n_asked);
    oj_flat_buf_free(&crowd);
}

TEST(one_polygon)
{
    struct oj_flat_buf join = {0};
    struct oj_flat view;
    int64_t n = 200000;
    double *x, *y;
    random_state = seed = 7;
    begin(&join);
    add_part(&join, OJ_PART_POLYGON);
    must(oj_flat_buf_ring(&join, &error));
    must(oj_flat_buf_vertices(&join, n + 1, &x, &y, &error));
    for (int64_t i = 0; i < n; i++)
    {
        double angle = 6.283185307179586 * (double)i / (double)n;
        double r = 1000.0 + 30.0 * sin(41.0 * angle) + 3.0 * unit();
        x[i] = 5e5 + r * cos(angle);
        y[i] = 4e6 + r * sin(angle);
    }
    x[n] = x[0];
    y[n] = y[0];
    end(&join);
    add_square(&join, 5e5 - 100.0, 4e6 - 100.0, 5e5 + 100.0, 4e6 + 100.0);
    view = oj_flat_buf_view(&join);
    check_large(&view, 20000, "one polygon");
    oj_flat_buf_free(&join);
}

/* Lots that share their borders, in blocks between streets, and districts over
 * all of them. */
TEST(city)
{
    struct oj_flat_buf join = {0};
    struct oj_flat view;
    random_state = seed = 8;
    for (int b = 0; b < 900; b++)
    {
        double x0 = 987000.0 + 900.0 * (b % 30), y0 = 2e5 + 264.0 * (b / 30);
        for (int i = 0; i < 48; i++)
        {
            double x = x0 + 40.0 + 34.0 * (i / 2), y = y0 + 30.0;
            double jog = i % 2 ? 100.0 : 0.0;
            add_square(&join, x, y + jog, x + 34.0, y + jog + 100.0);
        }
    }
    for (int i = 0; i < 9; i++)
        add_square(&join, 987000.0 + 9000.0 * (i % 3), 2e5 + 2640.0 * (i / 3),
                   996000.0 + 9000.0 * (i % 3), 202640.0 + 2640.0 * (i / 3));
    view = oj_flat_buf_view(&join);
    check_large(&view, 60000, "city");
    oj_flat_buf_free(&join);
}

/* Few polygons with long edges that they share, and slivers among them. */
TEST(countries)
{
    struct oj_flat_buf join = {0};
    struct oj_flat view;
    double at[21][21][2];
    random_state = seed = 9;
    for (int j = 0; j < 21; j++)
    {
        for (int i = 0; i < 21; i++)
        {
            at[j][i][0] = 100.0 * i + between(-30.0, 30.0);
            at[j][i][1] = 100.0 * j + between(-30.0, 30.0);
        }
    }
    for (int j = 0; j < 20; j++)
    {
        for (int i = 0; i < 20; i++)
        {
            double xy[10];
            memcpy(xy, at[j][i], 16);
            memcpy(xy + 2, at[j][i + 1], 16);
            memcpy(xy + 4, at[j + 1][i + 1], 16);
            memcpy(xy + 6, at[j + 1][i], 16);
            memcpy(xy + 8, at[j][i], 16);
            begin(&join);
            add_part(&join, OJ_PART_POLYGON);
            add_ring(&join, 5, xy);
            end(&join);
            if (one_in(10))
            {
                xy[6] = nudge(xy[0], 4);
                begin(&join);
                add_part(&join, OJ_PART_POLYGON);
                add_ring(&join, 5, xy);
                end(&join);
            }
        }
    }
    view = oj_flat_buf_view(&join);
    check_large(&view, 30000, "countries");
    oj_flat_buf_free(&join);
}

/* Many copies of one polygon, and many edges that meet in one vertex: cells
 * stop being split though they stay crowded. */
TEST(crowds)
{
    struct oj_flat_buf join = {0};
    struct oj_flat view;
    random_state = seed = 10;
    for (int i = 0; i < 400; i++)
        add_square(&join, 0.0, 0.0, 10.0, 10.0);
    for (int i = 0; i < 400; i++)
    {
        double a = 6.28 * i / 400.0, b = 6.28 * (i + 1) / 400.0;
        double xy[] = {50.0,
                       50.0,
                       50.0 + 40.0 * cos(a),
                       50.0 + 40.0 * sin(a),
                       50.0 + 40.0 * cos(b),
                       50.0 + 40.0 * sin(b),
                       50.0,
                       50.0};
        begin(&join);
        add_part(&join, OJ_PART_POLYGON);
        add_ring(&join, 4, xy);
        end(&join);
    }
    view = oj_flat_buf_view(&join);
    check_large(&view, 3000, "crowds");
    add_crowd(&view, 1000);
    view = oj_flat_buf_view(&join);
    {
        struct oj_flat a = oj_flat_buf_view(&crowd);
        check_parts(&view, &a, OJ_RING_PARTS, 8, 2);
        check_parts(&view, &a, OJ_RING_ALL_PARTS, 8, 2);
    }
    oj_flat_buf_free(&crowd);
    oj_flat_buf_free(&join);
}

int main(void)
{
    tests_open("tree of cells over rings");
    return tests_run();
}
