/* Points in polygons by cells, for many polygons and for a few large ones. The
 * pairs equal those of a plain loop over all rings of all features, for all
 * shapes, batches, threads and conditions.
 * Kind: property, degenerate. OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../references.h"

#include "../join_trial.h"
#include "../plain_pairs.h"

#include "../run_tests.h"
#include "point_matches.h"

#include <stdio.h>

static int64_t n_candidates, n_boxes; /* totals of all rounds with large rings
                                       */

static const enum oj_op ops[] = {OJ_OP_INTERSECTS, OJ_OP_WITHIN,
                                 OJ_OP_COVEREDBY, OJ_OP_TOUCHES};

static void check_trial(const struct points_trial *t, int n_threads,
                        int64_t batch)
{
    const struct oj_engine *family = &oj_cpu_points_in_polygons;
    struct oj_options options = {.n_threads = n_threads, .timings = pick(2)};
    struct oj_stats stats;
    struct oj_index *index;
    MATCHES out = {0};
    memset(&stats, 0, sizeof stats);
    ck_assert(family->supports(t->relation, t->join, t->input));
    ck_assert(family->supports(t->relation, t->join, NULL));
    must(oj_index_make(family,
                       &(struct oj_index_args){.join_side = t->join,
                                               .tie_rank = t->tie_rank,
                                               .relation = *t->relation,
                                               .options = options},
                       &index, &stats, &error));
    for (int64_t first = 0; first < t->input->n_features; first += batch)
    {
        int64_t left = t->input->n_features - first;
        int64_t n = left < batch ? left : batch;
        struct oj_flat view = part_of(t->input, first, n);
        must(family->join(index, &view, &out, &stats, &error));
        check_matches(t, first, n, &out);
    }
    oj_index_free(family, index);
}

static void check_relation(const struct oj_flat *join,
                           const struct oj_flat *input,
                           const struct oj_relation *relation,
                           const int32_t *tie_rank)
{
    uint8_t *truth = make_truth(join, input, relation);
    struct points_trial t = {join, input, relation, tie_rank, truth};
    int64_t n = input->n_features;
    check_trial(&t, 1, n > 0 ? n : 1);
    check_trial(&t, 1 + pick(4), 1 + pick(one_in(3) ? 3 : 1000));
    oj_free(truth);
}

static void check_ops(const struct oj_flat *join, const struct oj_flat *input)
{
    for (int i = 0; i < 4; i++)
    {
        struct oj_relation relation = oj_relation_default();
        relation.op = ops[i];
        relation.any_order = one_in(2);
        check_relation(join, input, &relation, NULL);
    }
}

/* Compares the backend, in batches. */
static void check_batches(const struct join_trial *t)
{
    uint8_t *truth = make_truth(&t->join, &t->input, &t->relation);
    struct points_trial points = {&t->join, &t->input, &t->relation, NULL,
                                  truth};
    const struct oj_options options = {.n_threads = 1 + 2 * pick(2)};
    struct oj_join *join = trial_open(t, "cpu", &options);
    int64_t n_points = t->input.n_features;
    int64_t step = pick(2) ? n_points : 1 + pick(5000);
    MATCHES out = {0};
    for (int64_t first = 0; first < n_points; first += step)
    {
        int64_t n = n_points - first < step ? n_points - first : step;
        struct oj_flat view = part_of(&t->input, first, n);
        must(oj_join_batch(join, &view, &out, &error));
        check_matches(&points, first, n, &out);
    }
    n_candidates += oj_join_stats(join)->n_candidates;
    n_boxes += n_points * t->join.n_rings;
    oj_join_close(join);
    oj_free(truth);
}

/* Returns a view that has arrays of offsets, even if no feature was added. */
static struct oj_flat join_view(const struct oj_flat_buf *buf)
{
    static const int64_t none[] = {0};
    struct oj_flat view = oj_flat_buf_view(buf);
    if (view.part_offset == NULL)
    {
        view.n_parts = view.n_rings = view.n_vertices = 0;
        view.part_offset = view.ring_offset = view.vertex_offset = none;
        if (view.n_features > 0)
            view.part_offset = oj_calloc(view.n_features + 1, 8);
    }
    return view;
}

/* --- layers --------------------------------------------------------------- */

static void make_anything(struct join_trial *t)
{
    struct scene scene = pick_scene();
    must(
        oj_flat_buf_begin_feature(&t->join_buf, 0, &error)); /* the long form */
    end(&t->join_buf);
    add_join_features(&t->join_buf, &scene, pick(120), OJ_PART_POLYGON, 1);
    t->join = join_view(&t->join_buf);
    add_input_points(&t->input_buf, &scene, &t->join, 1 + pick(150), 0);
}

static void make_usual(struct join_trial *t)
{
    struct scene scene = {0.0, 0.0, 1.0, 12, 1, 0.0};
    add_join_features(&t->join_buf, &scene, 60 + pick(60), OJ_PART_POLYGON, 0);
    t->join = join_view(&t->join_buf);
    add_input_points(&t->input_buf, &scene, &t->join, 80, 0);
}

/* Makes layers with very large or very small coordinates, for which signs are
 * still exact.
 */
static void make_of_a_size(struct join_trial *t)
{
    static const double scales[] = {1e-120, 1e-30, 1e30, 1e120};
    struct scene scene = {0.0, 0.0, scales[pick(4)], 20, 1, 0.0};
    add_join_features(&t->join_buf, &scene, 60, OJ_PART_POLYGON, 0);
    t->join = join_view(&t->join_buf);
    add_input_points(&t->input_buf, &scene, &t->join, 80, 0);
}

/* Makes a few lots that are far away from each other in x, y or both. Cells
 * cannot cover everything between them. */
static void make_far_rings(struct join_trial *t)
{
    struct scene scene = {0.0, 0.0, 1.0, 40, 1, 0.0};
    for (int k = 1 + pick(3); k > 0; k--)
    {
        double far = (pick(2) ? 1.0 : -1.0) * pow(10.0, 2 + pick(8));
        double x = pick(3) ? far : 5.0, y = pick(3) ? far : 5.0;
        for (int lot = one_in(4) ? 20 : 1; lot > 0; lot--)
            add_square(&t->join_buf, x + lot, y, x + lot + 1.0, y + 1.0);
        add_join_features(&t->join_buf, &scene, 20 + pick(100), OJ_PART_POLYGON,
                          0);
    }
    t->join = join_view(&t->join_buf);
    add_input_points(&t->input_buf, &scene, &t->join, 300, 0);
}

/* Adds a lot of a city. angle is the direction of the city's streets, in
 * radians. */
static void add_lot(struct oj_flat_buf *buf, const double *middle, double angle,
                    double width, double height)
{
    double xy[10], c = cos(angle), s = sin(angle);
    for (int i = 0; i < 5; i++)
    {
        double u = i == 1 || i == 2 ? width : 0.0,
               v = i % 4 >= 2 ? height : 0.0;
        xy[2 * i] = middle[0] + u * c - v * s;
        xy[2 * i + 1] = middle[1] + u * s + v * c;
    }
    xy[8] = xy[0];
    xy[9] = xy[1];
    add_simple(buf, OJ_PART_POLYGON, 5, xy);
}

/* Makes towns that are far apart, rotated streets, districts that cover them,
 * and copies in one place. So cells get crowded, axes are rotated, and several
 * layers of cells are needed. */
static void make_towns(struct join_trial *t)
{
    double angle = pick(3) ? unit() * 6.3 : 0.0;
    double apart = pick(2) ? 1e4 : 1e9, town[3][2];
    int n_lots = 300 + pick(3000);
    for (int i = 0; i < 3; i++)
    {
        town[i][0] = apart * unit();
        town[i][1] = apart * unit();
    }
    for (int i = 0; i < n_lots; i++)
    {
        double middle[2], *at = town[pick(3)];
        middle[0] = at[0] + 2.0 * pick(40);
        middle[1] = at[1] + pick(40);
        if (one_in(40))
            add_lot(&t->join_buf, middle, angle, 30.0 * unit(), 50.0 * unit());
        else
            add_lot(&t->join_buf, one_in(4) ? at : middle, angle, 2.0, 1.0);
    }
    add_lot(&t->join_buf, town[0], angle, 2.0 * apart, apart);
    t->join = oj_flat_buf_view(&t->join_buf);
    for (int i = 0; i < 1500; i++)
    {
        double x, y;
        pick_beside(&t->join, &x, &y);
        if (pick(2))
        {
            x += unit() - 0.5;
            y += unit() - 0.5;
        }
        add_point(&t->input_buf, x, y);
    }
}

/* Adds up to four features of up to three rings. Most are large, and they may
 * overlap in any way. */
static void add_large_features(struct oj_flat_buf *buf, double scale,
                               double origin)
{
    static struct test_ring ring;
    int n_features = 1 + pick(4);
    for (int f = 0; f < n_features; f++)
    {
        begin(buf);
        for (int r = one_in(3) ? 1 + pick(3) : 1; r > 0; r--)
        {
            double *x, *y;
            int64_t n = one_in(5) ? 3 + pick(30) : 32 + pick(800);
            ring_make(&ring, (enum ring_kind)pick(RING_N_KINDS), n);
            ring_move(&ring, pick(2) ? scale : 0.3 * scale,
                      origin + 300.0 * scale * pick(3),
                      origin + 300.0 * scale * pick(3));
            add_part(buf, OJ_PART_POLYGON);
            must(oj_flat_buf_begin_ring(buf, &error));
            must(oj_flat_buf_add_vertices(buf, ring.n, &x, &y, &error));
            memcpy(x, ring.x, (size_t)ring.n * sizeof *x);
            memcpy(y, ring.y, (size_t)ring.n * sizeof *y);
        }
        end(buf);
    }
}

/* Makes many points in few large polygons: anywhere in the box, beside
 * vertices, on edges, and on lines that divide the box into equal parts, whose
 * number is a power of two. The borders of cells are on such lines. */
static void make_large_rings(struct join_trial *t)
{
    double x0 = INFINITY, y0 = INFINITY, x1 = -INFINITY, y1 = -INFINITY;
    const struct oj_flat *join = &t->join;
    add_large_features(&t->join_buf, pick(3) ? 1.0 : 1e-5, pick(3) ? 0.0 : 1e6);
    t->join = oj_flat_buf_view(&t->join_buf);
    for (int64_t v = 0; v < join->n_vertices; v++)
    {
        x0 = fmin(x0, join->x[v]);
        y0 = fmin(y0, join->y[v]);
        x1 = fmax(x1, join->x[v]);
        y1 = fmax(y1, join->y[v]);
    }
    for (int i = 0; i < 24000; i++)
    {
        int64_t v = pick((int)join->n_vertices - 1);
        double x = between(x0, x1), y = between(y0, y1), u = unit();
        switch (pick(8))
        {
            case 0:
                x = nudge(join->x[v], 2);
                y = nudge(join->y[v], 2);
                break;
            case 1:
                x = join->x[v] + u * (join->x[v + 1] - join->x[v]);
                y = join->y[v] + u * (join->y[v + 1] - join->y[v]);
                break;
            case 2:
                x = nudge(x0 + (x1 - x0) * pick(257) / 256.0, 2);
                y = nudge(y0 + (y1 - y0) * pick(257) / 256.0, 2);
                break;
            case 3:
                x = one_in(50) ? NAN : x;
                y = one_in(50) ? y1 + 1.0 : y;
                break;
            default:
                break;
        }
        add_point(&t->input_buf, x, y);
    }
}

/* --- rounds --------------------------------------------------------------- */

static int32_t *pick_ranks(int64_t n)
{
    int32_t *rank = oj_malloc(n, sizeof *rank);
    for (int64_t i = 0; i < n; i++)
    {
        int64_t j = pick((int)i + 1);
        rank[i] = rank[j];
        rank[j] = (int32_t)i;
    }
    return rank;
}

static const struct
{
    void (*make)(struct join_trial *);
    int conditions; /* 1: with conditions, and any order of ties */
    int is_large;   /* 1: large, so one join of each kind is enough */
    int64_t n_rounds;
} kinds[] = {{make_anything, 0, 0, 120}, {make_usual, 1, 0, 60},
             {make_of_a_size, 0, 0, 40}, {make_far_rings, 0, 0, 40},
             {make_towns, 0, 0, 8},      {make_large_rings, 0, 1, 30}};

#define N_KINDS ((int)(sizeof kinds / sizeof *kinds))

TEST_LOOP(same_as_ring_by_ring, 0, N_KINDS)
{
    int64_t n = rounds(kinds[_i].n_rounds);
    EACH_ROUND(kinds[_i].n_rounds)
    {
        struct join_trial t = {.relation = oj_relation_default()};
        kinds[_i].make(&t);
        t.input = oj_flat_buf_view(&t.input_buf);
        t.relation.op = ops[pick(4)];
        if (kinds[_i].conditions)
        {
            int32_t *rank = pick_ranks(t.join.n_features);
            pick_columns(&t.columns, &t.join, &t.input, &t.relation, 1.0, 2);
            if (one_in(3))
                pick_spans(&t.columns, &t.join, &t.input, &t.relation);
            t.relation.exclude_same_geometry = 0;
            check_relation(&t.join, &t.input, &t.relation,
                           pick(2) ? rank : NULL);
            oj_free(rank);
        }
        else if (kinds[_i].is_large)
            check_batches(&t);
        else
            check_ops(&t.join, &t.input);
        trial_free(&t);
    }
    ck_assert_int_gt(n_pairs_seen, n);
    ck_assert(!kinds[_i].is_large || n < 20 || 3 * n_candidates < n_boxes);
}

/* --- tests of every family ------------------------------------------------ */

/* Sides without features, without features that have parts, without rows, or
 * with no rows that have a geometry. */
TEST(nothing)
{
    LAYER join = {0}, input = {0};
    struct oj_flat a, b, nowhere;
    const double nan[] = {NAN, NAN, NAN};
    const int64_t fid[] = {0, 1, 2};
    random_state = seed = 0;
    must(oj_flat_buf_begin_feature(&join, 0, &error));
    end(&join);
    must(oj_flat_buf_add_null(&join, 1, &error));
    add_point(&input, 0.0, 0.0);
    a = oj_flat_buf_view(&input);
    b = oj_flat_buf_view(&join);
    check_ops(&b, &a);
    b.n_features = 0;
    check_ops(&b, &a);
    add_square(&join, -1.0, -1.0, 1.0, 1.0);
    b = oj_flat_buf_view(&join);
    check_ops(&b, &a);
    nowhere = a;
    nowhere.x = nowhere.y = nan;
    nowhere.fid = fid;
    nowhere.n_features = nowhere.n_vertices = 3;
    check_ops(&b, &nowhere);
    nowhere.n_features = nowhere.n_vertices = 0;
    check_ops(&b, &nowhere);
}

/* Joins that other engines support. */
TEST(not_taken)
{
    const struct oj_engine *family = &oj_cpu_points_in_polygons;
    LAYER join = {0}, line = {0}, input = {0};
    struct oj_relation relation = oj_relation_default();
    struct oj_flat a, b, c;
    add_square(&join, -1.0, -1.0, 1.0, 1.0);
    add_line(&line, 0.0, 0.0, 1.0, 1.0);
    add_point(&input, 0.0, 0.0);
    a = oj_flat_buf_view(&input);
    b = oj_flat_buf_view(&join);
    c = oj_flat_buf_view(&line);
    ck_assert(!family->supports(&relation, &b, &a)); /* nearest */
    relation.op = OJ_OP_CONTAINS;
    ck_assert(!family->supports(&relation, &b, &a));
    relation.op = OJ_OP_DISJOINT;
    ck_assert(!family->supports(&relation, &b, &a));
    relation.op = OJ_OP_INTERSECTS;
    ck_assert(family->supports(&relation, &b, &a));
    ck_assert(!family->supports(&relation, &c, &a));
    ck_assert(!family->supports(&relation, &b, &c));
    ck_assert(!family->supports(&relation, &a, &a));
}

int main(void)
{
    tests_open("points in polygons");
    return tests_run();
}
