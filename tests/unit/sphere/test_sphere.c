/* nearest and dwithin on the sphere, by our engine and by the reference. They
 * are compared with spherical trigonometry in long double, every point with
 * every arc, including poles, the antimeridian, and polygons around them. Also
 * known distances, ties, filters, threads, and batches.
 * Kind: property, degenerate. OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../run_tests.h"
#include "random_sphere.h"
#include "sphere_truth.h"

#include "../join_trial.h"

#include "../../../algs/foundations/relation/oj_index.h"
#include "../../../algs/references/validation/oj_validation.h"

/* --- comparing -------------------------------------------------------------
 */

/* Compares a row. Pairs whose distance is within rounding of a limit may be
 * missing. All others must be there, with their distance, in order. */
static void check_row(const struct oj_relation *r, const struct oj_flat *f,
                      const struct oj_flat *g, const double *distance,
                      const struct oj_matches *m, int64_t a)
{
    int64_t first = oj_matches_first(m, a), end = oj_matches_end(m, a);
    double last = -1, kth = INFINITY;
    char *seen = oj_calloc(g->n_features + 1, 1);
    ck_assert_ptr_nonnull(seen);
    for (int64_t i = first; i < end; i++)
    {
        int32_t b = m->join_row[i];
        double d = distance[b], t = tolerance(d);
        expect(!seen[b] && plain_is_allowed(r, f, a, g, b),
               "seed %llu, row %d: feature %d", (unsigned long long)seed,
               (int)a, (int)b);
        expect(fabs(m->measure[i] - d) <= t,
               "seed %llu, row %d, feature %d: %.9f, not %.9f",
               (unsigned long long)seed, (int)a, (int)b, m->measure[i], d);
        expect(d <= plain_limit(r, f, a, g, b) + t && d >= r->min_distance - t,
               "seed %llu, row %d, feature %d: %.9f", (unsigned long long)seed,
               (int)a, (int)b, d);
        expect(r->op != OJ_OP_NEAREST || m->measure[i] >= last,
               "seed %llu, row %d: order", (unsigned long long)seed, (int)a);
        seen[b] = 1;
        last = m->measure[i];
    }
    if (r->op == OJ_OP_NEAREST && end - first >= r->k)
        kth = m->measure[first + r->k - 1];
    for (int64_t b = 0; b < g->n_features; b++)
    {
        double d = distance[b], t = tolerance(d);
        int must_be = plain_is_allowed(r, f, a, g, b) && d < INFINITY &&
                      d < plain_limit(r, f, a, g, b) - t &&
                      (d > r->min_distance + t || r->min_distance == 0) &&
                      d < kth - 2 * t;
        expect(seen[b] || !must_be,
               "seed %llu, row %d: feature %d at %.9f is missing",
               (unsigned long long)seed, (int)a, (int)b, d);
    }
    oj_free(seen);
}

static const char *const backends[] = {"cpu", "sphere"};
static const char *backend = "cpu"; /* backend of ask() */

static void ask(const struct oj_relation *relation, const struct oj_flat *input,
                const struct oj_flat *join, int n_threads,
                struct oj_matches *out)
{
    const struct join_trial t = {
        .join = *join, .input = *input, .relation = *relation};
    trial_answer(&t, backend, n_threads, out);
}

static struct oj_relation pick_relation(const struct region *region)
{
    struct oj_relation r = oj_relation_default();
    double width = fmin(region->reach * 111e3, 25e6);
    r.metric = OJ_METRIC_SPHERE;
    r.op = pick(2) ? OJ_OP_NEAREST : OJ_OP_DWITHIN;
    r.max_distance =
        r.op == OJ_OP_NEAREST && pick(2) ? (double)INFINITY : width * unit();
    r.min_distance = one_in(4) ? fmin(r.max_distance, width * unit() / 3) : 0;
    if (r.op == OJ_OP_NEAREST)
    {
        r.k = 1 + pick(4);
        r.ties = one_in(4) ? OJ_TIES_ALL : OJ_TIES_FIRST;
    }
    r.distance_to = one_in(4) ? OJ_TO_BOUNDARY : OJ_TO_INTERIOR;
    r.exclude_self = one_in(4);
    r.unordered_pairs = one_in(5);
    return r;
}

TEST_LOOP(plain_way, 0, 2)
{
    static const unsigned kinds[] = {OJ_PART_POINT, OJ_PART_LINE,
                                     OJ_PART_POLYGON, 7};
    backend = backends[_i];
    EACH_ROUND(_i == 0 ? 120 : 40)
    {
        LAYER a = {0}, b = {0};
        MATCHES m = {0};
        struct oj_flat va, vb;
        struct region region;
        double *own, *matrix[2];
        region = pick_region();
        add_features(&a, &region, 1 + pick(25), OJ_PART_POINT, 1);
        add_features(&b, &region, 1 + pick(40), kinds[pick(4)], 1);
        va = oj_flat_buf_view(&a);
        vb = oj_flat_buf_view(&b);
        own = oj_malloc(va.n_features + vb.n_features, sizeof *own);
        for (int64_t i = 0; i < va.n_features + vb.n_features; i++)
            own[i] = one_in(8) ? (double)NAN : region.reach * 40e3 * unit();
        matrix[0] = sphere_matrix(&va, &vb, 0);
        matrix[1] = sphere_matrix(&va, &vb, 1);
        for (int i = 0; i < 5; i++)
        {
            struct oj_relation r = pick_relation(&region);
            va.max_distance = vb.max_distance = NULL;
            if (r.op == OJ_OP_DWITHIN && one_in(3))
                va.max_distance = own;
            else if (r.op == OJ_OP_DWITHIN && one_in(3))
                vb.max_distance = own;
            ask(&r, &va, &vb, 1 + pick(3), &m);
            for (int64_t row = 0; row < va.n_features; row++)
                check_row(&r, &va, &vb,
                          matrix[r.distance_to == OJ_TO_INTERIOR] +
                              row * vb.n_features,
                          &m, row);
        }
        oj_free(own);
        oj_free(matrix[0]);
        oj_free(matrix[1]);
    }
}

/* --- distances of shapes ------------------------------------------------- */

static double vertex_metres(const struct oj_flat *f, int64_t v,
                            const struct oj_flat *g, int64_t w)
{
    return (double)(angle(to_vector(f->x[v], f->y[v]),
                          to_vector(g->x[w], g->y[w])) *
                    R);
}

/* Returns the distances in metres from every vertex of f to every feature of g:
 * [vertices][features]. of_arcs 1: to the arcs of g, otherwise to its vertices
 * only. */
static double *vertex_matrix(const struct oj_flat *f, const struct oj_flat *g,
                             int of_arcs)
{
    const struct oj_flat points =
        oj_flat_of_points(f->n_vertices, NULL, f->x, f->y);
    int64_t n = g->n_features, w, end;
    double *matrix;
    if (of_arcs)
        return sphere_matrix(&points, g, 0);
    matrix = oj_malloc(f->n_vertices * n, sizeof *matrix);
    ck_assert_ptr_nonnull(matrix);
    for (int64_t i = 0; i < f->n_vertices * n; i++)
    {
        matrix[i] = INFINITY;
        oj_flat_vertex_range(g, i % n, &w, &end);
        for (; w < end; w++)
            matrix[i] = fmin(matrix[i], vertex_metres(f, i / n, g, w));
    }
    return matrix;
}

/* Returns the directed distance from feature a of f to feature b, in metres:
 * the greatest distance of a vertex of a. matrix has the distances of the
 * vertices of f from n features. */
static double directed_metres(const double *matrix, const struct oj_flat *f,
                              int64_t a, int64_t n, int64_t b)
{
    double most = 0.0;
    int64_t v, end;
    oj_flat_vertex_range(f, a, &v, &end);
    for (; v < end; v++)
        most = fmax(most, matrix[v * n + b]);
    return most;
}

/* Returns the Fréchet distance in metres by a full table. Each cell is computed
 * from three neighbours. */
static double frechet_metres(const struct oj_flat *f, int64_t a,
                             const struct oj_flat *g, int64_t b)
{
    int64_t v, w, n, m;
    double *cell, last;
    oj_flat_vertex_range(f, a, &v, &n);
    oj_flat_vertex_range(g, b, &w, &m);
    n -= v;
    m -= w;
    cell = oj_malloc(n * m, sizeof *cell);
    ck_assert_ptr_nonnull(cell);
    for (int64_t i = 0; i < n * m; i++)
    {
        double least = i == 0 ? 0.0 : INFINITY;
        if (i >= m)
            least = fmin(least, cell[i - m]);
        if (i % m > 0)
            least = fmin(least, cell[i - 1]);
        if (i >= m && i % m > 0)
            least = fmin(least, cell[i - m - 1]);
        cell[i] = fmax(least, vertex_metres(f, v + i / m, g, w + i % m));
    }
    last = cell[n * m - 1];
    oj_free(cell);
    return last;
}

/* Returns 1 if the feature has no pairs, because it has no vertices, or one
 * beyond a pole.
 */
static int is_off(const struct oj_flat *flat, int64_t feature)
{
    int64_t v, end;
    oj_flat_vertex_range(flat, feature, &v, &end);
    if (v == end)
        return 1;
    while (v < end && fabs(flat->y[v]) <= 90)
        v++;
    return v < end;
}

static double *shape_matrix(const struct oj_flat *f, const struct oj_flat *g,
                            enum oj_distance_kind kind)
{
    int of_arcs = kind != OJ_DISTANCE_HAUSDORFF_POINTS;
    int64_t n = g->n_features;
    double *matrix = oj_malloc(f->n_features * n, sizeof *matrix);
    double *forth = vertex_matrix(f, g, of_arcs);
    double *back = vertex_matrix(g, f, of_arcs);
    ck_assert_ptr_nonnull(matrix);
    for (int64_t i = 0; i < f->n_features * n; i++)
    {
        int64_t a = i / n, b = i % n;
        matrix[i] = INFINITY;
        if (is_off(f, a) || is_off(g, b))
            continue;
        matrix[i] = kind == OJ_DISTANCE_FRECHET
                        ? frechet_metres(f, a, g, b)
                        : directed_metres(forth, f, a, n, b);
        if (kind == OJ_DISTANCE_HAUSDORFF ||
            kind == OJ_DISTANCE_HAUSDORFF_POINTS)
            matrix[i] =
                fmax(matrix[i], directed_metres(back, g, b, f->n_features, a));
    }
    oj_free(forth);
    oj_free(back);
    return matrix;
}

/* Tests both backends with each kind of distance. */
TEST_LOOP(shapes, 0, 8)
{
    static const unsigned kinds[] = {OJ_PART_POINT, OJ_PART_LINE,
                                     OJ_PART_POLYGON, 7};
    enum oj_distance_kind kind =
        (enum oj_distance_kind)(OJ_DISTANCE_HAUSDORFF + _i / 2);
    int64_t n_pairs = 0;
    backend = backends[_i % 2];
    EACH_ROUND(_i % 2 == 0 ? 30 : 10)
    {
        LAYER a = {0}, b = {0};
        MATCHES m = {0};
        struct oj_flat va, vb;
        struct region region = pick_region();
        double *matrix, *own;
        add_features(&a, &region, 1 + pick(12), kinds[pick(4)], 1);
        add_features(&b, &region, 1 + pick(20), kinds[pick(4)], 1);
        va = oj_flat_buf_view(&a);
        vb = oj_flat_buf_view(&b);
        matrix = shape_matrix(&va, &vb, kind);
        own = oj_malloc(va.n_features + vb.n_features, sizeof *own);
        for (int64_t i = 0; i < va.n_features + vb.n_features; i++)
            own[i] = one_in(8) ? (double)NAN : region.reach * 80e3 * unit();
        for (int i = 0; i < 4; i++)
        {
            struct oj_relation r = pick_relation(&region);
            r.distance_to = OJ_TO_INTERIOR;
            r.distance = kind;
            va.max_distance = vb.max_distance = NULL;
            if (r.op == OJ_OP_DWITHIN && one_in(3))
                va.max_distance = own;
            else if (r.op == OJ_OP_DWITHIN && one_in(3))
                vb.max_distance = own;
            ask(&r, &va, &vb, 1 + pick(3), &m);
            for (int64_t row = 0; row < va.n_features; row++)
                check_row(&r, &va, &vb, matrix + row * vb.n_features, &m, row);
            n_pairs += m.n_pairs;
        }
        oj_free(matrix);
        oj_free(own);
    }
    ck_assert_int_gt(n_pairs, 50);
}

/* --- known answers ---------------------------------------------------------
 */

static void expect_nearest(const struct oj_flat_buf *a,
                           const struct oj_flat_buf *b, int64_t row,
                           int32_t feature, double metres)
{
    struct oj_relation r = oj_relation_default();
    struct oj_flat va = oj_flat_buf_view(a), vb = oj_flat_buf_view(b);
    MATCHES m = {0};
    r.metric = OJ_METRIC_SPHERE;
    ask(&r, &va, &vb, 1, &m);
    expect(m.join_row[row] == feature, "row %d: feature %d, not %d", (int)row,
           (int)m.join_row[row], (int)feature);
    expect(fabs(m.measure[row] - metres) <= 1e-6 + 1e-12 * metres,
           "row %d: %.9f, not %.9f", (int)row, m.measure[row], metres);
}

TEST_LOOP(known_points, 0, 2)
{
    const double degree = (double)(R * PI / 180);
    LAYER a = {0}, b = {0};
    backend = backends[_i];
    add_point(&b, -179.9, 0);
    add_point(&b, 179.0, 0);
    add_point(&b, 0, 90);
    add_point(&b, 180, -45);
    add_point(&b, 10, 20);
    add_point(&b, 0, 95); /* nowhere */
    add_point(&a, 179.9, 0);
    add_point(&a, 123, 89.5);
    add_point(&a, -180, -45);     /* the same place: 0, not nearly */
    add_point(&a, 370, 20);       /* the same place */
    add_point(&a, 57, 90);        /* the pole by another name */
    add_point(&a, 0, -90.000001); /* nowhere */
    add_point(&a, 10, -70);
    expect_nearest(&a, &b, 0, 0, 0.2 * degree);
    expect_nearest(&a, &b, 1, 2, 0.5 * degree);
    expect_nearest(&a, &b, 2, 3, 0);
    expect_nearest(&a, &b, 3, 4, 0);
    expect_nearest(&a, &b, 4, 2, 0);
    {
        struct oj_relation r = oj_relation_default();
        struct oj_flat va = oj_flat_buf_view(&a), vb = oj_flat_buf_view(&b);
        MATCHES m = {0};
        r.metric = OJ_METRIC_SPHERE;
        ask(&r, &va, &vb, 1, &m);
        ck_assert_int_eq(m.join_row[5], -1);
        for (int i = 2; i < 5; i++)
            expect(_i == 0 ? m.measure[i] == 0 : m.measure[i] < 1e-9,
                   "not the same places: %g", m.measure[i]);
    }
}

/* Distances that were computed with other software, by haversines, to forty
 * digits. */
TEST_LOOP(known_distances, 0, 2)
{
    static const struct
    {
        double x0, y0, x1, y1, metres;
    } known[] = {
        /* Nashville, Los Angeles; London, Tokyo; Reykjavik, Wrangel Island */
        {-86.67, 36.12, -118.40, 33.94, 2886448.41680734226},
        {-0.4543, 51.4700, 139.7798, 35.5494, 9591567.50792530114},
        {-21.95, 64.15, 179.5, 66.5, 5385653.51633934193},
        {0, 60, 180, 60, 6671704.78406212481}, /* over the pole */
        {0, 0, 179, 0, 19903919.2724520057},
        {0, 0, 180, 0, 20015114.352186374}, /* half of the equator */
    };
    backend = backends[_i];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    {
        LAYER a = {0}, b = {0};
        add_point(&a, known[i].x0, known[i].y0);
        add_point(&b, known[i].x1, known[i].y1);
        expect_nearest(&a, &b, 0, 0, known[i].metres);
        expect_nearest(&b, &a, 0, 0, known[i].metres);
    }
}

/* A ring around the whole Earth, at the equator or near it, contains the north
 * with the pole. */
TEST_LOOP(hemisphere, 0, 2)
{
    static const double equator[] = {0, 0, 90, 0, 180, 0, -90, 0, 0, 0};
    static const double wavy[] = {0, 1,    45, -1,  90, 1,   135, -1, 180,
                                  1, -135, -1, -90, 1,  -45, -1,  0,  1};
    const double degree = (double)(R * PI / 180);
    LAYER a = {0}, b = {0}, c = {0};
    backend = backends[_i];
    add_point(&a, 0, 90);
    add_point(&a, 77, 90);
    add_point(&a, 20, 30);
    add_point(&a, 20, -30);
    add_point(&a, 0, -90);
    add_simple(&b, OJ_PART_POLYGON, 5, equator);
    add_simple(&c, OJ_PART_POLYGON, 9, wavy);
    for (int64_t row = 0; row < 3; row++)
    {
        expect_nearest(&a, &b, row, 0, 0);
        expect_nearest(&a, &c, row, 0, 0);
    }
    expect_nearest(&a, &b, 3, 0, 30 * degree);
    expect_nearest(&a, &b, 4, 0, 90 * degree);
    expect_nearest(&a, &c, 4, 0, 89 * degree);
}

/* Lines follow great circles. Tests polygons around a pole and across the
 * antimeridian, Antarctica as drawn in the plane, and both orientations of
 * rings. */
TEST_LOOP(known_shapes, 0, 2)
{
    const double degree = (double)(R * PI / 180);
    static const double across[] = {170, 10,  -170, 10,  -170,
                                    -10, 170, -10,  170, 10};
    static const double back[] = {170, 10,   170, -10, -170,
                                  -10, -170, 10,  170, 10};
    static const double antarctica[] = {-180, -90, 180,  -90, 180, -70,
                                        90,   -65, 0,    -70, -90, -65,
                                        -180, -70, -180, -90};
    static const double arctic[] = {0, 60, 90, 60, 180, 60, -90, 60, 0, 60};
    LAYER a = {0}, b = {0};
    const double *rings[] = {across, back, antarctica, arctic};
    const int n_of[] = {5, 5, 8, 5};
    backend = backends[_i];
    for (int i = 0; i < 4; i++)
    {
        LAYER polygon = {0};
        LAYER points = {0};
        add_simple(&polygon, OJ_PART_POLYGON, n_of[i], rings[i]);
        if (i < 2)
        {
            add_point(&points, 180, 0);
            add_point(&points, -175, 5);
            add_point(&points, 0, 0); /* opposite */
            expect_nearest(&points, &polygon, 0, 0, 0);
            expect_nearest(&points, &polygon, 1, 0, 0);
            expect_nearest(
                &points, &polygon, 2, 0,
                (double)(angle(to_vector(0, 0), to_vector(170, 10)) * R));
        }
        else if (i == 2)
        {
            add_point(&points, 12, -90);
            add_point(&points, 179, -80);
            add_point(&points, -179, -80);
            add_point(&points, 90, -64);
            for (int64_t p = 0; p < 3; p++)
                expect_nearest(&points, &polygon, p, 0, 0);
            expect_nearest(&points, &polygon, 3, 0, degree);
        }
        else
        {
            /* the arc from 0 to 90 E reaches 67.8 N, so 64 N is outside of
             * it */
            add_point(&points, 45, 64);
            add_point(&points, 45, 69);
            add_point(&points, 7, 90);
            expect_nearest(&points, &polygon, 1, 0, 0);
            expect_nearest(&points, &polygon, 2, 0, 0);
            expect_nearest(
                &points, &polygon, 0, 0,
                (double)(arc_angle(to_vector(45, 64), to_vector(0, 60),
                                   to_vector(90, 60)) *
                         R));
        }
    }
    add_line(&b, 0, 60, 90, 60);
    add_point(&a, 45, 60);
    expect_nearest(&a, &b, 0, 0,
                   (double)(arc_angle(to_vector(45, 60), to_vector(0, 60),
                                      to_vector(90, 60)) *
                            R));
}

/* A place in an odd number of rings is area, whichever ring is the shell. */
TEST_LOOP(holes_anywhere, 0, 2)
{
    static const double shell[] = {0, 0, 10, 0, 10, 10, 0, 10, 0, 0};
    static const double beyond[] = {20, 0, 30, 0, 30, 10, 20, 10, 20, 0};
    static const double across[] = {5, 2, 15, 2, 15, 8, 5, 8, 5, 2};
    static const double again[] = {22, 2, 28, 2, 28, 8, 22, 8, 22, 2};
    const double degree = (double)(R * PI / 180);
    LAYER a = {0}, b = {0};
    backend = backends[_i];
    begin(&b);
    add_part(&b, OJ_PART_POLYGON);
    add_ring(&b, 5, shell);
    add_ring(&b, 5, beyond);
    add_ring(&b, 5, across);
    add_ring(&b, 5, again);
    end(&b);
    add_point(&a, 2, 5);  /* in the shell */
    add_point(&a, 21, 5); /* in a hole far from the shell */
    add_point(&a, 14, 5); /* in a hole across the shell, outside of it */
    add_point(&a, 9, 0);  /* on the shell: an edge along the equator */
    for (int64_t row = 0; row < 4; row++)
        expect_nearest(&a, &b, row, 0, 0);
    oj_flat_buf_clear(&a);
    add_point(&a, 10 - 1e-9, 5); /* in both rings, nearly on the shell */
    add_point(&a, 18, 0);        /* in none */
    add_point(&a, 22.5, 5);      /* in two holes */
    expect_nearest(&a, &b, 0, 0, 1e-9 * degree * cos(5 * (double)PI / 180));
    expect_nearest(&a, &b, 1, 0, 2 * degree);
    expect_nearest(&a, &b, 2, 0,
                   (double)(arc_angle(to_vector(22.5, 5), to_vector(22, 2),
                                      to_vector(22, 8)) *
                            R));
}

/* Equal distances are sorted by FID. All ties can be requested. */
TEST(ties)
{
    LAYER a = {0}, b = {0};
    struct oj_relation r = oj_relation_default();
    MATCHES m = {0};
    struct oj_flat va, vb;
    for (int i = 0; i < 50; i++)
        add_point(&b, i % 2 ? 180 : -180, 0);
    for (int64_t i = 0; i < 50; i++)
        b.fid[i] = 100 - i;
    add_point(&a, 179, 0);
    va = oj_flat_buf_view(&a);
    vb = oj_flat_buf_view(&b);
    backend = "cpu";
    r.metric = OJ_METRIC_SPHERE;
    r.k = 3;
    ask(&r, &va, &vb, 1, &m);
    ck_assert_int_eq(m.n_pairs, 3);
    ck_assert_int_eq(m.join_row[0], 49);
    ck_assert_int_eq(m.join_row[2], 47);
    r.ties = OJ_TIES_ALL;
    ask(&r, &va, &vb, 1, &m);
    ck_assert_int_eq(m.n_pairs, 50);
}

/* --- threads and batches -------------------------------------------------- */

TEST_LOOP(threads_and_batches, 0, 2)
{
    struct oj_options options = {.n_threads = 2};
    struct region region = {175, 60, 20};
    LAYER a = {0}, b = {0};
    struct oj_relation r = oj_relation_default();
    MATCHES one = {0}, other = {0};
    struct oj_flat va, vb;
    random_state = 6;
    add_features(&a, &region, 3000, OJ_PART_POINT, 0);
    add_features(&b, &region, 500, 7, 1);
    va = oj_flat_buf_view(&a);
    vb = oj_flat_buf_view(&b);
    r.metric = OJ_METRIC_SPHERE;
    r.op = _i ? OJ_OP_DWITHIN : OJ_OP_NEAREST;
    r.k = _i ? 1 : 4;
    r.max_distance = 3e5;
    backend = "cpu";
    ask(&r, &va, &vb, 1, &one);
    ask(&r, &va, &vb, 3, &other);
    ck_assert_int_gt(one.n_pairs, 3000);
    same_matches("threads", &other, &one);
    trial_check_batches(
        &(struct join_trial){.join = vb, .input = va, .relation = r}, "cpu",
        &options, 37, va.n_features, &one);
}

/* --- comparing answers ---------------------------------------------------
 */

/* On the sphere, our engine and the reference compute the distance of points by
 * different formulas. They are equal up to the rounding of chords, which is
 * larger towards the antipode. GEOS is not involved. */
TEST(rounding_on_the_sphere)
{
    static const double x[] = {0, 1}, y[] = {0, 0};
    static const struct
    {
        double ours, reference;
        int differs;
    } cases[] = {
        {1000.0, 1000.00000005, 0},
        {1000.0, 1000.000001, 1},
        {0.0, 0.00000005, 0},
        {0.0, 0.000001, 1},
        {20015114.2, 20015114.3, 0},
        {20015114.2, 20015113.2, 1},
        {10000000.0, 10000000.00001, 1},
    };
    struct oj_flat points = oj_flat_of_points(2, NULL, x, y);
    struct oj_relation relation = oj_relation_default();
    relation.metric = OJ_METRIC_SPHERE;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
        for (int op = 0; op < 2; op++)
        {
            struct oj_matches a, b;
            struct oj_validation v = {0};
            relation.op = op ? OJ_OP_DWITHIN : OJ_OP_NEAREST;
            relation.max_distance = cases[i].reference + (op ? 0.0 : 9.0);
            memset(&a, 0, sizeof a);
            memset(&b, 0, sizeof b);
            must(oj_matches_reserve(&a, 2, 2, 0, &error));
            must(oj_matches_reserve(&b, 2, 2, 0, &error));
            v.join_side = v.input = &points;
            v.relation = &relation;
            a.join_row[0] = b.join_row[0] = a.join_row[1] = b.join_row[1] = 1;
            a.measure[0] = a.measure[1] = cases[i].ours;
            b.measure[0] = b.measure[1] = cases[i].reference;
            /* at the limit, so that only one of the two answers has the pair */
            if (op)
                a.join_row[1] = -1;
            must(oj_validation_compare(&v, &a, &b, &error));
            ck_assert_int_eq(v.n_of_kind[OJ_DIFFERENCE_DISTANCE],
                             cases[i].differs * (op ? 1 : 2));
            ck_assert_int_eq(v.n_of_kind[OJ_DIFFERENCE_MISSING], 0);
            ck_assert_int_eq(v.n_rows_proved, 0);
            oj_matches_free(&a);
            oj_matches_free(&b);
            oj_validation_free(&v);
        }
    }
}

int main(void)
{
    tests_open("sphere");
    return tests_run();
}
