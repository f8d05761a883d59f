/* The backend cuda with layers that are hard for its structures: packed trees
 * of segments and points, and cells of points, segments and rings. Tests rings
 * of all lengths, copies, ties under any order of FIDs, conditions, extreme
 * coordinates, and one crowded place. All answers equal those of the backend
 * cpu, bit for bit. Skipped if no GPU can be used.
 * Kind: property, degenerate, large. OGRJOIN_TEST_ROUNDS=n runs more rounds. */
#include "../references.h"

#include "../../../algs/foundations/kernels/oj_segment.h"
#include "../join_trial.h"
#include "../run_device_tests.h"

static const struct oj_options two_threads = {.n_threads = 2};

static int64_t compare(const struct join_trial *t)
{
    return trial_compare(t, "cuda", &two_threads);
}

/* --- random joins --------------------------------------------------------- */

/* Returns a maximum distance, from 0 to infinity. */
static double pick_reach(const struct scene *s)
{
    const double reaches[] = {0.0, INFINITY, INFINITY, s->extent * 3.0,
                              1e9, pick(12), pick(12), pick(12)};
    double reach = reaches[pick(8)];
    return reach < INFINITY ? s->scale * reach : reach;
}

/* Sets a random join by distance between any kinds of features: dwithin, or
 * nearest with any k. */
static void ask_trees(struct oj_relation *r, const struct scene *s,
                      const struct oj_flat *join)
{
    r->op = one_in(3) ? OJ_OP_DWITHIN : OJ_OP_NEAREST;
    r->max_distance = pick_reach(s);
    if (r->op == OJ_OP_DWITHIN && !(r->max_distance < INFINITY))
        r->max_distance = s->scale;
    if (r->op == OJ_OP_NEAREST)
    {
        r->distance_to = pick(2) ? OJ_TO_BOUNDARY : OJ_TO_INTERIOR;
        r->k = one_in(4) ? 1 : 1 + pick(one_in(3) ? 500 : 8);
        r->ties = one_in(3) ? OJ_TIES_ALL : OJ_TIES_FIRST;
    }
    if (one_in(6) && r->max_distance < INFINITY &&
        (oj_flat_is_points(join) || r->op == OJ_OP_DWITHIN))
        r->min_distance = r->max_distance / 2;
}

static void ask_point_pairs(struct oj_relation *r, const struct scene *s,
                            const struct oj_flat *join)
{
    static const enum oj_op ops[] = {
        OJ_OP_DWITHIN, OJ_OP_DWITHIN,   OJ_OP_DWITHIN,
        OJ_OP_DWITHIN, OJ_OP_BBOX,      OJ_OP_EQUALS,
        OJ_OP_WITHIN,  OJ_OP_CONTAINS,  OJ_OP_INTERSECTS,
        OJ_OP_COVERS,  OJ_OP_COVEREDBY, OJ_OP_CONTAINS_PROPERLY};
    r->op = oj_flat_is_points(join) ? ops[pick(12)] : OJ_OP_BBOX;
    if (r->op != OJ_OP_DWITHIN)
        return;
    r->max_distance = s->scale * pick(one_in(3) ? s->extent : 6);
    if (one_in(5))
        r->min_distance = r->max_distance / 2;
}

/* Sets a join with the one nearest point, within random limits of the distance.
 */
static void ask_near_other(struct oj_relation *r, const struct scene *s,
                           const struct oj_flat *join)
{
    (void)join;
    r->max_distance = one_in(3) ? (double)INFINITY
                                : s->scale * pick(one_in(3) ? s->extent : 6);
    if (one_in(5))
        r->min_distance = fmin(r->max_distance, s->scale * pick(4));
}

static void ask_near_segments(struct oj_relation *r, const struct scene *s,
                              const struct oj_flat *join)
{
    (void)join;
    r->max_distance = pick_reach(s);
    r->distance_to = OJ_TO_BOUNDARY;
}

static void ask_rings(struct oj_relation *r, const struct scene *s,
                      const struct oj_flat *join)
{
    static const enum oj_op ops[] = {OJ_OP_INTERSECTS, OJ_OP_WITHIN,
                                     OJ_OP_COVEREDBY, OJ_OP_TOUCHES,
                                     OJ_OP_NEAREST};
    (void)join;
    r->op = ops[pick(5)];
    /* nearest takes the first of several polygons that contain the point, all
     * of them at distance 0 */
    if (r->op == OJ_OP_NEAREST)
        r->max_distance = s->scale * pick(6);
}

static unsigned any_kinds(void)
{
    return 1 + (unsigned)pick(7);
}

static unsigned points_mostly(void)
{
    return pick(3) ? OJ_PART_POINT : any_kinds();
}

static unsigned points(void)
{
    return OJ_PART_POINT;
}

static unsigned polygons_mostly(void)
{
    return one_in(4) ? 7 : OJ_PART_POLYGON;
}

static const struct
{
    const char *name;
    void (*ask)(struct oj_relation *, const struct scene *,
                const struct oj_flat *);
    unsigned (*kinds)(void);
    int n_few, n_many; /* usual and large numbers of features */
    /* one of this number of joins has a condition; 0: no join has */
    int conditions;
    int64_t n_rounds;
} kinds[] = {
    {"trees", ask_trees, any_kinds, 40, 400, 6, 40},
    {"pairs of points", ask_point_pairs, points_mostly, 40, 400, 6, 80},
    {"nearest other points", ask_near_other, points, 60, 1000, 4, 80},
    {"cells of segments", ask_near_segments, any_kinds, 12, 40, 0, 1},
    {"cells of rings", ask_rings, polygons_mostly, 120, 120, 0, 20},
};

#define N_KINDS ((int)(sizeof kinds / sizeof *kinds))

TEST_LOOP(random_joins, 0, N_KINDS)
{
    int64_t n_pairs = 0;
    EACH_ROUND(kinds[_i].n_rounds)
    {
        struct join_trial t;
        struct scene scene;
        int n;
        n = one_in(5) ? kinds[_i].n_many : kinds[_i].n_few;
        scene = trial_make(&t, pick(n), kinds[_i].kinds(), 0, 300);
        kinds[_i].ask(&t.relation, &scene, &t.join);
        if (kinds[_i].conditions > 0)
            pick_columns(&t.columns, &t.join, &t.input, &t.relation,
                         scene.scale, kinds[_i].conditions);
        n_pairs += compare(&t);
        trial_free(&t);
    }
    printf("%s: %lld pairs\n", kinds[_i].name, (long long)n_pairs);
    ck_assert_int_gt(n_pairs, 0);
}

/* Points in polygons at very large and very small coordinates. Some are so far
 * from the origin that few numbers are representable there. The signs of areas
 * stay exact. */
TEST(sizes_of_rings)
{
    static const double scales[] = {1e-120, 1e-30, 1e30, 1e120, 1.0};
    EACH_ROUND(10)
    {
        struct scene scene = {0.0, 0.0, 1.0, 20, 1, 0.0};
        struct join_trial t = {.relation = oj_relation_default()};
        scene.scale = scales[pick(5)];
        scene.on_lattice = pick(2);
        if (pick(2))
            scene.origin_x = scene.scale * ldexp(1.0, 20 + pick(32));
        if (pick(2))
            scene.origin_y = -scene.scale * ldexp(1.0, 20 + pick(32));
        add_join_features(&t.join_buf, &scene, 60, OJ_PART_POLYGON, 1);
        t.join = oj_flat_buf_view(&t.join_buf);
        add_input_points(&t.input_buf, &scene, &t.join, 1 + pick(250), 0);
        t.input = oj_flat_buf_view(&t.input_buf);
        ask_rings(&t.relation, &scene, &t.join);
        compare(&t);
        trial_free(&t);
    }
}

/* --- points --------------------------------------------------------------- */

/* Both sides are equal. Points coincide, differ in the last bit, or are so
 * close that their distance rounds to 0. */
TEST(self_joins)
{
    struct join_trial t = {.relation = oj_relation_default()};
    seed = random_state = 5;
    for (int i = 0; i < 600; i++)
    {
        double x = pick(9), y = pick(9);
        if (i % 3 == 0)
            x = nudge(x, 1);
        if (i % 7 == 0)
            x = y = pick(2) ? 1e-200 : -0.0;
        add_point(&t.join_buf, x, y);
    }
    t.join = t.input = oj_flat_buf_view(&t.join_buf);
    for (int i = 0; i < 12; i++)
    {
        t.relation.op = i % 2 == 0 ? OJ_OP_DWITHIN : OJ_OP_EQUALS;
        t.relation.max_distance = i % 4 == 0 ? 0.0 : 1.0;
        t.relation.exclude_self = i / 4 == 0;
        t.relation.unordered_pairs = i / 4 == 0 ? 0 : i / 4 == 1 ? 1 : -1;
        t.relation.exclude_same_geometry = i % 3 == 0;
        compare(&t);
    }
    trial_free(&t);
}

/* Coordinates that are the least and the greatest that joins accept. */
TEST(extremes)
{
    static const double values[] = {0.0,    -0.0,  5e-324, 1e-160, 1.0,
                                    1e75,   1e76,  1e149,  1e150,  -1e150,
                                    -1e149, -1e76, -1e-160};
    static const double reaches[] = {0.0,   1e-200, 3e-162,  1e-160,  1.0,
                                     1e149, 1e154,  1.7e308, INFINITY};
    struct join_trial t = {.relation = oj_relation_default()};
    seed = random_state = 6;
    for (int i = 0; i < 13 * 13; i++)
        add_point(&t.join_buf, values[i / 13], values[i % 13]);
    t.join = t.input = oj_flat_buf_view(&t.join_buf);
    for (int i = 0; i < 18; i++)
    {
        t.relation.exclude_self = i < 9;
        t.relation.exclude_same_geometry = i >= 9;
        t.relation.max_distance = reaches[i % 9];
        compare(&t);
    }
    t.relation = oj_relation_default();
    for (int i = 0; i < 10; i++)
    {
        t.relation.op = i == 0   ? OJ_OP_EQUALS
                        : i == 1 ? OJ_OP_BBOX
                                 : OJ_OP_DWITHIN;
        t.relation.max_distance = i < 2 ? INFINITY : reaches[i - 2];
        compare(&t);
    }
    trial_free(&t);
}

/* Many points at few places. Each place has more than k points. */
TEST(coincident)
{
    struct join_trial t = {.relation = oj_relation_default()};
    seed = random_state = 11;
    for (int i = 0; i < 3000; i++)
        add_point(&t.join_buf, i % 7 == 0 ? 1.0 : 0.1, i % 5 == 0 ? 2.0 : 0.3);
    for (int i = 0; i < 12; i++)
        add_point(&t.input_buf, 0.1 * i, 0.3 * i);
    trial_view(&t);
    t.join.fid = t.fid = pick_fids(t.join.n_features);
    t.relation.k = 5;
    compare(&t);
    t.relation.ties = OJ_TIES_ALL;
    compare(&t);
    t.relation = oj_relation_default();
    t.relation.op = OJ_OP_DWITHIN;
    t.relation.max_distance = oj_point_distance(0.1, 0.3, 1.0, 2.0);
    compare(&t);
    trial_free(&t);
}

/* Each point finds the first other point of its place, without tests of all the
 * others. */
TEST_LOOP(coinciding_with_itself, 0, 2)
{
    struct join_trial t = {.relation = oj_relation_default()};
    seed = random_state = 8;
    for (int i = 0; i < 3000; i++)
        add_point(&t.join_buf, _i == 0 ? 5.0 : pick(3), 7.0);
    t.join = t.input = oj_flat_buf_view(&t.join_buf);
    t.relation.exclude_self = 1;
    compare(&t);
    trial_free(&t);
}

/* --- segments ------------------------------------------------------------- */

/* Adds a star of n corners. Every second corner is at a random distance from
 * the centre. */
static void add_long_ring(struct oj_flat_buf *buf, int n, double x, double y,
                          double size)
{
    double *px, *py;
    must(oj_flat_buf_begin_ring(buf, &error));
    must(oj_flat_buf_add_vertices(buf, n + 1, &px, &py, &error));
    for (int i = 0; i < n; i++)
    {
        double angle = 6.283185307179586 * i / n;
        double r = size * (i % 2 == 0 ? 1.0 : between(0.2, 1.0));
        px[i] = x + floor(r * cos(angle) * 64.0) / 64.0;
        py[i] = y + floor(r * sin(angle) * 64.0) / 64.0;
    }
    px[n] = px[0];
    py[n] = py[0];
}

/* Rings with enough edges for all levels of chains, and points on their
 * corners, beside them and far outside. */
TEST(long_rings)
{
    static const int corners[] = {40, 1000, 70000};
    struct join_trial t = {.relation = oj_relation_default()};
    seed = random_state = 7;
    for (int f = 0; f < 3; f++)
    {
        begin(&t.join_buf);
        for (int p = 0; p < (f < 2 ? 2 : 1); p++)
        {
            add_part(&t.join_buf, OJ_PART_POLYGON);
            add_long_ring(&t.join_buf, corners[f] + p, 300.0 * p, 100.0 * f,
                          500.0);
            add_long_ring(&t.join_buf, 64 + p, 300.0 * p, 100.0 * f, 90.0);
        }
        end(&t.join_buf);
    }
    t.join = oj_flat_buf_view(&t.join_buf);
    for (int i = 0; i < 200; i++)
    {
        int v = pick((int)t.join.n_vertices);
        double far = one_in(50) ? 1e9 : 700.0;
        if (one_in(3))
            add_point(&t.input_buf, t.join.x[v], t.join.y[v]);
        else
            add_point(&t.input_buf, between(-far, far),
                      one_in(3) ? t.join.y[v] : between(-far, far));
    }
    t.input = oj_flat_buf_view(&t.input_buf);
    t.relation.k = 3;
    compare(&t);
    t.relation = oj_relation_default();
    t.relation.op = OJ_OP_DWITHIN;
    t.relation.max_distance = 3.0;
    compare(&t);
    trial_free(&t);
}

/* Adds blocks of 66 lots in two rows. Each lot lies slightly above the one
 * before it, so that neighbours share parts of their borders. */
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

/* Adds lines of all lengths from one vertex, and copies of some of them in
 * either direction. */
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
        case 2: /* long and short segments side by side */
            for (int i = 0; i < 400; i++)
                add_line(buf, x, y + i * 1e-3, x + (i % 7 ? 30.0 : 1e5),
                         y + i * 1e-3 + pick(2));
            break;
        case 3: /* three places, 2,000 times each, and a point far away */
            for (int i = 0; i < 6000; i++)
                add_point(buf, x + (i % 3), y);
            add_point(buf, x + 1e6, y);
            break;
        case 4: /* on one line, end to end or overlapping */
            for (int i = 0; i < 500; i++)
                add_line(buf, x + pick(100), y, x + pick(100), y);
            break;
        default: /* nearly in one place */
            for (int i = 0; i < 500; i++)
                add_point(buf, nudge(x, 1000), nudge(y, 1000));
            break;
    }
}

TEST(near_segments_of_other_layers)
{
    static const double reaches[] = {0.0, 3.0, 100.0, 1e4, INFINITY};
    EACH_ROUND(6)
    {
        struct join_trial t = {.relation = oj_relation_default()};
        double x = pick(2) ? 1e6 : 0.25, y = pick(2) ? 2e5 : 1e-3;
        add_others(&t.join_buf, (int)(seed % 6), x, y);
        t.join = oj_flat_buf_view(&t.join_buf);
        t.join.fid = t.fid = pick_fids(t.join.n_features);
        for (int i = 0; i < 200; i++)
        {
            double px, py;
            pick_beside(&t.join, &px, &py);
            if (pick(2))
            {
                px += between(-60.0, 60.0);
                py += between(-60.0, 60.0);
            }
            add_point(&t.input_buf, px, py);
        }
        t.input = oj_flat_buf_view(&t.input_buf);
        t.relation.distance_to = OJ_TO_BOUNDARY;
        t.relation.max_distance = reaches[pick(5)];
        compare(&t);
        trial_free(&t);
    }
}

/* --- rings ---------------------------------------------------------------- */

/* Compares all joins that cells of rings support. The points are in the box of
 * the join layer, and beside its edges. */
static void compare_in_box(struct join_trial *t, int n)
{
    static const enum oj_op ops[] = {OJ_OP_INTERSECTS, OJ_OP_WITHIN,
                                     OJ_OP_TOUCHES, OJ_OP_NEAREST};
    double x0 = INFINITY, y0 = INFINITY, x1 = -INFINITY, y1 = -INFINITY;
    t->join = oj_flat_buf_view(&t->join_buf);
    for (int64_t v = 0; v < t->join.n_vertices; v++)
    {
        x0 = fmin(x0, t->join.x[v]);
        y0 = fmin(y0, t->join.y[v]);
        x1 = fmax(x1, t->join.x[v]);
        y1 = fmax(y1, t->join.y[v]);
    }
    for (int i = 0; i < n; i++)
    {
        double x = between(x0, x1), y = between(y0, y1);
        if (one_in(3))
            pick_beside(&t->join, &x, &y);
        add_point(&t->input_buf, x, y);
    }
    t->input = oj_flat_buf_view(&t->input_buf);
    for (int i = 0; i < 4; i++)
    {
        t->relation.op = ops[i];
        t->relation.max_distance = 1.0;
        compare(t);
    }
    trial_free(t);
}

/* A ring of very many vertices that contains a square. */
TEST(one_polygon)
{
    struct join_trial t = {.relation = oj_relation_default()};
    int64_t n = 20000;
    double *x, *y;
    random_state = seed = 7;
    begin(&t.join_buf);
    add_part(&t.join_buf, OJ_PART_POLYGON);
    must(oj_flat_buf_begin_ring(&t.join_buf, &error));
    must(oj_flat_buf_add_vertices(&t.join_buf, n + 1, &x, &y, &error));
    for (int64_t i = 0; i < n; i++)
    {
        double angle = 6.283185307179586 * (double)i / (double)n;
        double r = 1000.0 + 30.0 * sin(41.0 * angle) + 3.0 * unit();
        x[i] = 5e5 + r * cos(angle);
        y[i] = 4e6 + r * sin(angle);
    }
    x[n] = x[0];
    y[n] = y[0];
    end(&t.join_buf);
    add_square(&t.join_buf, 5e5 - 100.0, 4e6 - 100.0, 5e5 + 100.0, 4e6 + 100.0);
    compare_in_box(&t, 2000);
}

/* Blocks of lots that share borders, with streets between the blocks, and
 * districts that cover all blocks. */
TEST(city)
{
    struct join_trial t = {.relation = oj_relation_default()};
    random_state = seed = 8;
    for (int b = 0; b < 225; b++)
    {
        double x0 = 987000.0 + 900.0 * (b % 15), y0 = 2e5 + 264.0 * (b / 15);
        for (int i = 0; i < 48; i++)
        {
            double x = x0 + 40.0 + 34.0 * (i / 2), y = y0 + 30.0;
            double jog = i % 2 ? 100.0 : 0.0;
            add_square(&t.join_buf, x, y + jog, x + 34.0, y + jog + 100.0);
        }
    }
    for (int i = 0; i < 9; i++)
        add_square(&t.join_buf, 987000.0 + 4500.0 * (i % 3),
                   2e5 + 1320.0 * (i / 3), 991500.0 + 4500.0 * (i % 3),
                   201320.0 + 1320.0 * (i / 3));
    compare_in_box(&t, 10000);
}

/* Few polygons with long shared edges, and slivers between them. */
TEST(countries)
{
    struct join_trial t = {.relation = oj_relation_default()};
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
            for (int n = one_in(10) ? 2 : 1; n > 0; n--)
            {
                begin(&t.join_buf);
                add_part(&t.join_buf, OJ_PART_POLYGON);
                add_ring(&t.join_buf, 5, xy);
                end(&t.join_buf);
                xy[6] = nudge(xy[0], 4);
            }
        }
    }
    compare_in_box(&t, 10000);
}

/* Many copies of one polygon, and many edges that meet in one vertex. Cells
 * stay crowded however often they are split, so the splitting must stop. */
TEST(crowds)
{
    struct join_trial t = {.relation = oj_relation_default()};
    random_state = seed = 10;
    for (int i = 0; i < 400; i++)
        add_square(&t.join_buf, 0.0, 0.0, 10.0, 10.0);
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
        begin(&t.join_buf);
        add_part(&t.join_buf, OJ_PART_POLYGON);
        add_ring(&t.join_buf, 4, xy);
        end(&t.join_buf);
    }
    compare_in_box(&t, 2000);
}

int main(void)
{
    if (!device_tests_open("cuda_layers"))
        return DEVICE_TESTS_SKIPPED;
    return tests_run();
}
