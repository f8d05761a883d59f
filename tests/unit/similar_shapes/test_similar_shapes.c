/* nearest and dwithin by distances of shapes, between features of all kinds and
 * with every option of joins by distance. The engine is compared with all pairs
 * by GEOS, and bit for bit with a plain computation of both directions.
 * Kind: property, large. OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../references.h"

#include "../join_trial.h"
#include "../plain_pairs.h"
#include "../run_tests.h"

#include "../../../algs/joins/similar_shapes/oj_densify.h"
#include "../../../algs/joins/sphere/cpu_sphere_side.h"
#include "../../../algs/references/geos/geos_pairs.h"
#include "../../../algs/references/validation/plain_shape_distances.h"

#define N_DISTANCES (OJ_DISTANCE_DIRECTED_FROM_JOIN + 1)

static int64_t n_pairs_of_geos, n_pairs_found;

static int has_parts(const struct oj_flat *flat, int64_t feature)
{
    int64_t first, end;
    oj_flat_vertex_range(flat, feature, &first, &end);
    return first < end;
}

/* Returns the distance of two shapes by a plain computation. If GEOS has a
 * function for it, GEOS must agree. */
static double shape_distance(struct oj_geos_pairs *geos,
                             const struct oj_flat *f, int64_t a,
                             const struct oj_flat *g, int64_t b,
                             enum oj_distance_kind kind)
{
    int of_segments = kind != OJ_DISTANCE_HAUSDORFF_POINTS;
    double there = oj_plain_shapes_directed_hausdorff(f, a, g, b, of_segments);
    double back = oj_plain_shapes_directed_hausdorff(g, b, f, a, of_segments);
    double plain = fmax(there, back), d = NAN;
    if (kind == OJ_DISTANCE_DIRECTED_HAUSDORFF)
        return there;
    if (kind == OJ_DISTANCE_DIRECTED_FROM_JOIN)
        return back;
    if (kind == OJ_DISTANCE_FRECHET)
        must(oj_plain_shapes_frechet(f, a, NULL, g, b, NULL, &plain, &error));
    ck_assert_int_eq(oj_geos_pairs_shape_distance(geos, a, b, &d), OJ_GEOS_YES);
    expect(d == plain, "seed %llu: %d and %d: GEOS says %.17g, not %.17g",
           (unsigned long long)seed, (int)a, (int)b, d, plain);
    n_pairs_of_geos++;
    return d;
}

static double *shape_matrix(const struct oj_flat *f, const struct oj_flat *g,
                            const struct oj_relation *relation)
{
    int64_t n = g->n_features;
    double *matrix = oj_malloc(f->n_features * n, sizeof *matrix);
    struct oj_geos_pairs *geos;
    ck_assert_ptr_nonnull(matrix);
    must(oj_geos_pairs_open(relation, g, 0, &geos, &error));
    oj_geos_pairs_set_input(geos, f);
    for (int64_t a = 0; a < f->n_features; a++)
    {
        for (int64_t b = 0; b < n; b++)
            matrix[a * n + b] =
                has_parts(f, a) && has_parts(g, b)
                    ? shape_distance(geos, f, a, g, b, relation->distance)
                    : INFINITY;
    }
    oj_geos_pairs_close(geos);
    return matrix;
}

/* --- random layers -------------------------------------------------------- */

/* Asserts that threads, batches and exchanged sides do not change the answer,
 * and that the references give an equal one. Tiny shapes are not compared with
 * the references: their squared distances underflow, and the references search
 * a box widened by just the distance. */
static void check_ways(struct join_trial *t, int is_tiny, const double *matrix,
                       const struct oj_matches *truth)
{
    const struct oj_options options = {.n_threads = 2};
    MATCHES m = {0};
    int64_t n_rows = t->input.n_features, n = t->join.n_features;
    for (int n_threads = 1; n_threads <= 4; n_threads++)
    {
        trial_answer(t, "cpu", n_threads, &m);
        same_matches("threads", &m, truth);
    }
    trial_check_batches(t, "cpu", &options, 1 + pick(5), 4, truth);
    if (!is_tiny)
    {
        trial_answer(t, one_in(2) ? "geos" : "spatialindex", 1, &m);
        same_matches("GEOS", &m, truth);
    }
    if (!is_tiny && t->relation.op == OJ_OP_NEAREST &&
        t->relation.distance == OJ_DISTANCE_HAUSDORFF_POINTS &&
        t->relation.min_distance == 0.0)
    {
        trial_answer(t, "cut_points", 1, &m);
        same_matches("cut points", &m, truth);
    }
    if (t->relation.op != OJ_OP_NEAREST)
    {
        struct join_trial other = {.join = t->input, .input = t->join};
        double *turned = oj_malloc(n_rows * n, sizeof *turned);
        ck_assert_ptr_nonnull(turned);
        other.relation = oj_relation_transpose(&t->relation);
        for (int64_t i = 0; i < n_rows * n; i++)
            turned[i % n * n_rows + i / n] = matrix[i];
        trial_answer(&other, "cpu", 2, &m);
        check_answer("exchanged", &other.relation, &other.input, &other.join,
                     turned, &m);
        oj_free(turned);
    }
}

static void check_layers(enum oj_distance_kind kind)
{
    struct join_trial t = {0};
    struct scene scene = pick_scene();
    int64_t *fid;
    double *matrix;
    int is_tiny = one_in(6);
    MATCHES m = {0};
    if (is_tiny) /* squared distances have few digits, or are 0 */
    {
        scene = (struct scene){0.0, 0.0, 0.0, 12, 1, 0.0};
        scene.scale = ldexp(0.5 + unit() / 2, -522 - pick(20));
    }
    add_join_features(&t.input_buf, &scene, 1 + pick(12), plain_kinds(), 1);
    add_join_features(&t.join_buf, &scene, 1 + pick(25), plain_kinds(), 1);
    trial_view(&t);
    t.fid = pick_fids(t.join.n_features);
    fid = pick_fids(t.input.n_features);
    t.join.fid = t.fid;
    t.input.fid = fid;
    t.relation = oj_relation_default();
    t.relation.distance = kind;
    matrix = shape_matrix(&t.input, &t.join, &t.relation);
    for (int i = 0; i < 4; i++)
    {
        const struct oj_flat plain[2] = {t.join, t.input};
        t.relation = oj_relation_default();
        t.relation.distance = kind;
        plain_pick_join(&t.relation, &scene, 40);
        pick_columns(&t.columns, &t.join, &t.input, &t.relation, scene.scale,
                     4);
        trial_answer(&t, "cpu", 2, &m);
        check_answer("cpu", &t.relation, &t.input, &t.join, matrix, &m);
        check_ways(&t, is_tiny, matrix, &m);
        n_pairs_found += m.n_pairs;
        columns_free(&t.columns);
        memset(&t.columns, 0, sizeof t.columns);
        t.join = plain[0];
        t.input = plain[1];
    }
    oj_free(matrix);
    oj_free(fid);
    trial_free(&t);
}

TEST_LOOP(as_geos, OJ_DISTANCE_HAUSDORFF, N_DISTANCES)
{
    n_pairs_of_geos = n_pairs_found = 0;
    EACH_ROUND(40)
    {
        check_layers((enum oj_distance_kind)_i);
    }
    printf("distance %d: %lld pairs, %lld measured by GEOS\n", _i,
           (long long)n_pairs_found, (long long)n_pairs_of_geos);
    ck_assert_int_gt(n_pairs_found, 1000);
    ck_assert(n_pairs_of_geos > 1000 || _i == OJ_DISTANCE_DIRECTED_HAUSDORFF ||
              _i == OJ_DISTANCE_DIRECTED_FROM_JOIN);
}

/* --- more vertices -------------------------------------------------------- */

/* Asserts that densified features keep all vertices in order. The vertices
 * added on a segment must leave no piece longer than length. */
static void check_dense(const struct oj_flat *flat, const struct oj_flat *dense,
                        int64_t ring, double length)
{
    int64_t at = dense->vertex_offset[ring];
    for (int64_t v = flat->vertex_offset[ring];
         v < flat->vertex_offset[ring + 1]; v++, at++)
    {
        double dx, dy, slack, before = 0.0;
        ck_assert(dense->x[at] == flat->x[v] && dense->y[at] == flat->y[v]);
        if (v + 1 == flat->vertex_offset[ring + 1])
            continue;
        dx = flat->x[v + 1] - flat->x[v];
        dy = flat->y[v + 1] - flat->y[v];
        slack = 0x1p-50 *
                (fabs(flat->x[v]) + fabs(flat->y[v]) + fabs(dx) + fabs(dy));
        for (;; at++)
        {
            double px = dense->x[at + 1] - flat->x[v];
            double py = dense->y[at + 1] - flat->y[v], along = hypot(px, py);
            ck_assert(along - before <= length * (1.0 + 1e-9) + slack);
            ck_assert(fabs(px * dy - py * dx) <= slack * hypot(dx, dy));
            before = along;
            if (px == dx && py == dy)
                break;
            ck_assert(along <= hypot(dx, dy) + slack);
        }
        ck_assert(ceil(sqrt(dx * dx + dy * dy) / length) <= 1.0 ||
                  at + 1 > dense->vertex_offset[ring] + 1);
    }
    ck_assert_int_eq(at, dense->vertex_offset[ring + 1]);
}

/* A join with -densify equals the join of layers that have more vertices, for
 * any number of threads, and by the reference. */
TEST(densified)
{
    int64_t n_put_in = 0;
    EACH_ROUND(60)
    {
        struct join_trial t = {0}, dense = {0};
        struct scene scene = pick_scene();
        struct oj_dense of[2] = {{0}, {0}};
        double length = scene.scale * (0.3 + 5.0 * unit());
        MATCHES truth = {0}, m = {0};
        add_join_features(&t.input_buf, &scene, 1 + pick(10), plain_kinds(), 1);
        add_join_features(&t.join_buf, &scene, 1 + pick(20), plain_kinds(), 1);
        trial_view(&t);
        must(oj_densify(&t.input, length, 0, &of[0], &dense.input, &error));
        must(oj_densify(&t.join, length, 0, &of[1], &dense.join, &error));
        for (int64_t r = 0; !oj_flat_is_points(&t.join) && r < t.join.n_rings;
             r++)
            check_dense(&t.join, &dense.join, r, length);
        n_put_in += dense.join.n_vertices - t.join.n_vertices;
        t.relation = oj_relation_default();
        plain_pick_join(&t.relation, &scene, 40);
        t.relation.distance =
            (enum oj_distance_kind)(OJ_DISTANCE_HAUSDORFF + pick(4));
        t.relation.exclude_same_geometry = 0;
        dense.relation = t.relation;
        t.relation.densify = length;
        trial_answer(&dense, "cpu", 1, &truth);
        trial_answer(&t, "cpu", 1 + pick(4), &m);
        same_matches("densified", &m, &truth);
        trial_answer(&t, "geos", 1, &m);
        same_matches("GEOS", &m, &truth);
        oj_densify_free(&of[0]);
        oj_densify_free(&of[1]);
        trial_free(&t);
    }
    ck_assert_int_gt(n_put_in, 1000);
}

/* The pieces of a great circle are equally long. Its ends are unchanged. */
TEST(densified_on_the_sphere)
{
    LAYER buf = {0};
    struct oj_flat flat, out;
    struct oj_dense dense = {0};
    double last = -1.0;
    add_line(&buf, 170.0, 60.0, -100.0, 50.0);
    add_line(&buf, 0.0, 10.0, 180.0, -10.0); /* opposite ends: no arc is the
                                                shortest */
    flat = oj_flat_buf_view(&buf);
    must(oj_densify(&flat, 100e3, 1, &dense, &out, &error));
    for (int64_t v = 0; v + 1 < out.vertex_offset[1]; v++)
    {
        double step = oj_sphere_metres_of_chord2(
            oj_sphere_chord2(oj_sphere_vector(out.x[v], out.y[v]),
                             oj_sphere_vector(out.x[v + 1], out.y[v + 1])));
        expect(step <= 100e3 + 1e-3 && (v == 0 || fabs(step - last) < 1e-3),
               "piece %d is %.6f m long", (int)v, step);
        last = step;
    }
    ck_assert_int_eq(out.vertex_offset[1], 54 + 1);
    ck_assert_int_eq(out.n_vertices, out.vertex_offset[1] + 2);
    ck_assert(out.x[0] == 170.0 && out.x[out.vertex_offset[1] - 1] == -100.0);
    ck_assert_int_eq(oj_densify(&flat, 1e-6, 1, &dense, &out, &error),
                     OJ_ERR_ARG);
    oj_densify_free(&dense);
}

/* --- large features ------------------------------------------------------- */

#define N_LARGE 200000

/* Adds a walk to the right that goes up and down. */
static void add_walk(struct oj_flat_buf *buf, int64_t n, double aside)
{
    double *x, *y;
    begin(buf);
    add_part(buf, OJ_PART_LINE);
    must(oj_flat_buf_begin_ring(buf, &error));
    must(oj_flat_buf_add_vertices(buf, n, &x, &y, &error));
    for (int64_t i = 0; i < n; i++)
    {
        x[i] = (double)i * 3.0 + unit();
        y[i] = 50.0 * sin((double)i * 0.01) + unit() + aside;
    }
    end(buf);
}

/* Distances of large and small features equal the plain computation. The
 * distance to a copy that was moved aside is the length of the move. */
TEST_LOOP(large, OJ_DISTANCE_HAUSDORFF, N_DISTANCES)
{
    struct join_trial t = {0};
    double *matrix;
    MATCHES m = {0};
    random_state = 5;
    add_walk(&t.input_buf, N_LARGE, 0.0);
    random_state = 5;
    add_walk(&t.join_buf, N_LARGE, 8.0);
    random_state = 5;
    add_walk(&t.join_buf, N_LARGE, 0.0);
    for (int i = 0; i < 20; i++)
        add_walk(&t.join_buf, 20 + i, 10.0 * i);
    trial_view(&t);
    t.relation.distance = (enum oj_distance_kind)_i;
    t.relation.op = OJ_OP_NEAREST;
    t.relation.max_distance = INFINITY;
    t.relation.k = 30;
    trial_answer(&t, "cpu", 2, &m);
    ck_assert_int_eq(m.n_pairs, t.join.n_features);
    matrix = oj_malloc(t.join.n_features, sizeof *matrix);
    ck_assert_ptr_nonnull(matrix);
    for (int64_t i = 0; i < m.n_pairs; i++)
    {
        int32_t b = m.join_row[i];
        double d = 0.0, back;
        if (b == 0)
            expect(m.measure[i] <= 8.0 + 1e-9 && m.measure[i] > 0.5,
                   "8 aside: %.17g", m.measure[i]);
        if (b == 1)
            ck_assert(m.measure[i] == 0.0);
        matrix[b] = m.measure[i];
        if (b < 2)
            continue;
        if (_i == OJ_DISTANCE_FRECHET)
            must(oj_plain_shapes_frechet(&t.input, 0, NULL, &t.join, b, NULL,
                                         &d, &error));
        else if (_i != OJ_DISTANCE_DIRECTED_FROM_JOIN)
            d = oj_plain_shapes_directed_hausdorff(
                &t.input, 0, &t.join, b, _i != OJ_DISTANCE_HAUSDORFF_POINTS);
        back = oj_plain_shapes_directed_hausdorff(
            &t.join, b, &t.input, 0, _i != OJ_DISTANCE_HAUSDORFF_POINTS);
        if (_i != OJ_DISTANCE_DIRECTED_HAUSDORFF && _i != OJ_DISTANCE_FRECHET)
            d = fmax(d, back);
        matrix[b] = d;
    }
    check_answer("large", &t.relation, &t.input, &t.join, matrix, &m);
    oj_free(matrix);
    trial_free(&t);
}

int main(void)
{
    tests_open("similar shapes");
    return tests_run();
}
