/* nearest and dwithin on an ellipsoid, by our engine and by the reference,
 * compared with all geodesics. Also bounds of distances by chords, known
 * distances, bearings, threads, batches, errors, and memory.
 * Kind: unit, property, degenerate, memory. OGRJOIN_TEST_LONG=1 runs fifty
 * times as long; OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../run_tests.h"
#include "ellipsoid_relations.h"
#include "random_sphere.h"

#include "../join_trial.h"

#include "../../../algs/foundations/base/oj_geodesic.h"
#include "../../../algs/joins/sphere/cpu_sphere_side.h"
#include "../../../algs/pairs/values/oj_pair_stage.h"

/* Returns 1 if this build has no PROJ. It then refuses the metric, and nothing
 * else can be tested. */
static int is_without_geodesics(void)
{
    struct oj_geodesic *geodesic = NULL;
    if (oj_geodesic_is_available())
        return 0;
    ck_assert_int_eq(oj_geodesic_open(&wgs84, &geodesic, &error),
                     OJ_ERR_UNSUPPORTED);
    ck_assert_ptr_null(geodesic);
    return 1;
}

/* --- geodesics ------------------------------------------------------------ */

/* Values from the manuals of GeographicLib and PROJ, and the quarter of a
 * meridian.
 */
TEST(known_geodesics)
{
    static const struct
    {
        double x0, y0, x1, y1, metres, bearing, within;
    } known[] = {
        {-73.8, 40.6, -0.5, 51.6, 5551759.400319, 51.198882845579, 1e-6},
        {174.81, -41.32, -5.50, 40.96, 19959679.267353, 161.0676699861589,
         1e-6},
        {0, -30, 179.8, 29.9, 19989832.827610, 161.890524736, 1e-6},
        {0, 0, 77, 90, 10001965.729313, 0, 1e-6},
        {12, 90, 77, -90, 20003931.458625, NAN, 1e-6},
        {179.5, 10, -179.5, 10, 109639.322, 89.9131759, 2e-2},
        {5, 7, 5, 7, 0, NAN, 0},
        {5, 7, 365, 7, 0, NAN, 0},
        {180, 0, -180, 0, 0, NAN, 0},
        {0, 90, 45, 90, 0, NAN, 0},
    };
    struct oj_geodesic *geodesic;
    if (is_without_geodesics())
        return;
    must(oj_geodesic_open(&wgs84, &geodesic, &error));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    {
        double metres = oj_geodesic_metres(geodesic, known[i].x0, known[i].y0,
                                           known[i].x1, known[i].y1);
        double bearing = oj_geodesic_bearing(geodesic, known[i].x0, known[i].y0,
                                             known[i].x1, known[i].y1);
        expect(fabs(metres - known[i].metres) <= known[i].within,
               "%d: %.9f m, not %.9f", (int)i, metres, known[i].metres);
        if (metres > 0.0)
            expect(isnan(known[i].bearing) ||
                       fabs(bearing - known[i].bearing) < 1e-3,
                   "%d: %.12f degrees, not %.12f", (int)i, bearing,
                   known[i].bearing);
        else
            expect(isnan(bearing), "%d: %.12f degrees", (int)i, bearing);
    }
    expect(oj_geodesic_bearing(geodesic, 0, 0, -1, 0) == 270.0, "west");
    ck_assert(isnan(oj_geodesic_bearing(geodesic, NAN, 0, 1, 1)));
    oj_geodesic_close(geodesic);
}

TEST(ellipsoids_that_are_refused)
{
    enum
    {
        N_WITHOUT_AXIS = 4
    };
    static const struct oj_ellipsoid refused[] = {
        {0, 0},        {-1, 0},       {NAN, 0},  {INFINITY, 0},
        {6e6, 0.0201}, {6e6, -0.021}, {6e6, NAN}};
    struct oj_geodesic *geodesic = NULL;
    if (is_without_geodesics())
        return;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
    {
        ck_assert_int_eq(oj_geodesic_open(&refused[i], &geodesic, &error),
                         OJ_ERR_ARG);
        ck_assert_ptr_nonnull(strstr(error.message, i < N_WITHOUT_AXIS
                                                        ? "none is known"
                                                        : "a flattening of"));
        ck_assert_ptr_null(geodesic);
    }
}

/* --- bounds --------------------------------------------------------------- */

/* Stores a point near the other, near its antipode, or anywhere, in *u and
 * *v. */
static void place_other(double x, double y, double *u, double *v)
{
    double by = pow(10, 14 * unit() - 12);
    int is_opposite = pick(2);
    *u = x + (is_opposite ? 180 : 0) + by * (2 * unit() - 1);
    *v = (is_opposite ? -y : y) + by * (2 * unit() - 1);
    *v = fmax(-90, fmin(90, *v));
    if (one_in(20))
        *u = x + 180;
}

TEST(chords_bound_distances)
{
    double widest = 0;
    if (is_without_geodesics())
        return;
    EACH_ROUND(100)
    {
        struct oj_ellipsoid e = pick_ellipsoid();
        struct oj_geodesic *geodesic;
        must(oj_geodesic_open(&e, &geodesic, &error));
        for (int i = 0; i < 400; i++)
        {
            double x = 360 * unit() - 180, y = 180 * unit() - 90, u, v, s;
            double chord2, least, most;
            if (one_in(10))
                y = pick(2) ? 0 : 90;
            place_other(x, y, &u, &v);
            chord2 = oj_sphere_chord2(
                oj_ellipsoid_point(&e, oj_sphere_vector(x, y)),
                oj_ellipsoid_point(&e, oj_sphere_vector(u, v)));
            s = oj_geodesic_metres(geodesic, x, y, u, v) / e.semi_major;
            least = oj_ellipsoid_least_distance(chord2);
            most = oj_ellipsoid_most_distance(&e, chord2);
            expect(least <= s && s <= most,
                   "%.17g %.17g - %.17g %.17g: %.17g is not within %.17g and "
                   "%.17g (flattening %g)",
                   x, y, u, v, s, least, most, e.flattening);
            ck_assert(chord2 <= oj_ellipsoid_most_chord2(s));
            if (s < 1e-3) /* on the Earth 6 km */
                widest = fmax(widest, most - least);
        }
        oj_geodesic_close(geodesic);
    }
    expect(widest < 1e-10, "%g", widest);
    ck_assert(oj_ellipsoid_most_chord2(-1.0) < 0.0);
    ck_assert(oj_ellipsoid_most_chord2((double)NAN) < 0.0);
}

/* --- joins ---------------------------------------------------------------- */

static const char *const backends[] = {"cpu", "ellipsoid"};

/* Returns the least geodesic in metres between the points of two features.
 * Returns INFINITY if one of them has no points, or points beyond a pole. */
static double plain_metres(const struct oj_geodesic *geodesic,
                           const struct oj_flat *f, int64_t a,
                           const struct oj_flat *g, int64_t b)
{
    int64_t first, end, first_b, end_b;
    double least = INFINITY;
    oj_flat_vertex_range(f, a, &first, &end);
    oj_flat_vertex_range(g, b, &first_b, &end_b);
    for (int64_t v = first; v < end; v++)
    {
        for (int64_t w = first_b; w < end_b; w++)
        {
            if (!(fabs(f->y[v]) <= 90 && fabs(g->y[w]) <= 90))
                return (double)INFINITY;
            least = fmin(least, oj_geodesic_metres(geodesic, f->x[v], f->y[v],
                                                   g->x[w], g->y[w]));
        }
    }
    return least;
}

/* Adds join points that are equal to input points, or at their antipodes. */
static void add_coincident_and_antipodal(struct oj_flat_buf *to,
                                         const struct oj_flat_buf *from)
{
    struct oj_flat flat = oj_flat_buf_view(from);
    for (int64_t i = 0; i < flat.n_features; i++)
    {
        int64_t v, end_v;
        double x, y;
        oj_flat_vertex_range(&flat, i, &v, &end_v);
        if (v >= end_v || !one_in(4) || !(fabs(flat.y[v]) <= 90))
            continue;
        x = flat.x[v];
        y = flat.y[v];
        if (pick(2))
            place_other(x, y, &x, &y);
        for (int n = 1 + (one_in(3) ? pick(4) : 0); n > 0; n--)
        {
            begin(to);
            add_part(to, OJ_PART_POINT);
            add_ring(to, 1, (const double[]){x, y});
            end(to);
        }
    }
}

static void check_pairs(const struct join_trial *t, const double *matrix,
                        const int32_t *rank, const struct oj_matches *m)
{
    const int64_t n_join = t->join.n_features;
    struct plain_pair *pair = oj_malloc(n_join + 1, sizeof *pair);
    ck_assert_ptr_nonnull(pair);
    for (int64_t row = 0; row < t->input.n_features; row++)
    {
        int64_t first = oj_matches_first(m, row);
        int64_t n = plain_row(&t->relation, &t->input, row, &t->join, rank,
                              matrix + row * n_join, pair);
        expect(oj_matches_end(m, row) - first == n,
               "seed %llu, row %d: %d pairs, not %d (op %d, k %d, ties %d, "
               "from %.17g to %.17g m)",
               (unsigned long long)seed, (int)row,
               (int)(oj_matches_end(m, row) - first), (int)n,
               (int)t->relation.op, (int)t->relation.k, (int)t->relation.ties,
               t->relation.min_distance, t->relation.max_distance);
        for (int64_t i = 0; i < n; i++)
            expect(m->join_row[first + i] == pair[i].feature &&
                       m->measure[first + i] == pair[i].distance,
                   "seed %llu, row %d, pair %d: feature %d at %.17g, not %d at "
                   "%.17g",
                   (unsigned long long)seed, (int)row, (int)i,
                   (int)m->join_row[first + i], m->measure[first + i],
                   (int)pair[i].feature, pair[i].distance);
    }
    oj_free(pair);
}

TEST_LOOP(all_geodesics, 0, 2)
{
    if (is_without_geodesics())
        return;
    EACH_ROUND(_i == 0 ? 150 : 40)
    {
        struct oj_ellipsoid e = pick_ellipsoid();
        struct join_trial t = {0};
        struct oj_geodesic *geodesic;
        struct region region = pick_region();
        MATCHES m = {0};
        double *matrix, *own;
        int32_t *rank;
        int64_t n;
        must(oj_geodesic_open(&e, &geodesic, &error));
        add_features(&t.input_buf, &region, 1 + pick(25), OJ_PART_POINT, 1);
        add_features(&t.join_buf, &region, 1 + pick(60), OJ_PART_POINT, 1);
        if (pick(2))
            add_coincident_and_antipodal(&t.join_buf, &t.input_buf);
        trial_view(&t);
        n = t.input.n_features * t.join.n_features;
        matrix = oj_malloc(n, sizeof *matrix);
        own = oj_malloc(t.input.n_features + t.join.n_features, sizeof *own);
        rank = oj_malloc(t.join.n_features, sizeof *rank);
        ck_assert(matrix != NULL && own != NULL && rank != NULL);
        for (int64_t i = 0; i < n; i++)
            matrix[i] = plain_metres(geodesic, &t.input, i / t.join.n_features,
                                     &t.join, i % t.join.n_features);
        for (int64_t i = 0; i < t.join.n_features; i++)
            rank[i] = (int32_t)i;
        for (int64_t i = 0; i < t.input.n_features + t.join.n_features; i++)
            own[i] = one_in(8) ? (double)NAN : matrix[pick((int)n)];
        for (int i = 0; i < 6; i++)
        {
            t.relation = pick_relation(e, matrix, n);
            t.input.max_distance = t.join.max_distance = NULL;
            if (one_in(3))
                t.input.max_distance = own;
            else if (one_in(3))
                t.join.max_distance = own;
            if (t.input.max_distance != NULL || t.join.max_distance != NULL)
                t.relation.max_distance = INFINITY; /* as the command sets it */
            trial_answer(&t, backends[_i], 1 + pick(3), &m);
            check_pairs(&t, matrix, rank, &m);
        }
        oj_free(rank);
        oj_free(own);
        oj_free(matrix);
        oj_geodesic_close(geodesic);
        trial_free(&t);
    }
}

/* Results do not depend on threads and batches. */
TEST_LOOP(threads_and_batches, 0, 2)
{
    struct oj_options options = {.n_threads = 2};
    struct region region = {175, 60, 20};
    LAYER a = {0}, b = {0};
    MATCHES one = {0}, other = {0};
    struct join_trial t = {0};
    if (is_without_geodesics())
        return;
    random_state = 6;
    add_features(&a, &region, 3000, OJ_PART_POINT, 0);
    add_features(&b, &region, 700, OJ_PART_POINT, 1);
    t.input = oj_flat_buf_view(&a);
    t.join = oj_flat_buf_view(&b);
    t.relation = relation_on(wgs84);
    t.relation.op = _i ? OJ_OP_DWITHIN : OJ_OP_NEAREST;
    t.relation.k = _i ? 1 : 4;
    t.relation.max_distance = 3e5;
    trial_answer(&t, "cpu", 1, &one);
    trial_answer(&t, "cpu", 3, &other);
    ck_assert_int_gt(one.n_pairs, 3000);
    same_matches("threads", &other, &one);
    trial_check_batches(&t, "cpu", &options, 37, t.input.n_features, &one);
}

/* --- nearest points and directions ---------------------------------------- */

TEST(nearest_points_and_bearings)
{
    LAYER a = {0}, b = {0};
    MATCHES m = {0};
    struct oj_pair_request request = {0};
    struct oj_pair_side sides[2] = {{0}, {0}};
    struct oj_pair_values values = {0};
    struct oj_options options = {.n_threads = 1};
    struct oj_flat va, vb;
    struct oj_pair_stage *stage;
    struct oj_join *join;
    if (is_without_geodesics())
        return;
    begin(&a);
    add_part(&a, OJ_PART_POINT);
    add_ring(&a, 1, (const double[]){-73.8, 40.6});
    add_part(&a, OJ_PART_POINT);
    add_ring(&a, 1, (const double[]){-120, -10});
    end(&a);
    begin(&b);
    add_part(&b, OJ_PART_POINT);
    add_ring(&b, 1, (const double[]){60, 60});
    add_part(&b, OJ_PART_POINT);
    add_ring(&b, 1, (const double[]){-0.5, 51.6});
    end(&b);
    va = oj_flat_buf_view(&a);
    vb = oj_flat_buf_view(&b);
    request.relation = relation_on(wgs84);
    request.n_threads = 1;
    request.want[OJ_PAIR_FROM_X] = request.want[OJ_PAIR_FROM_Y] = 1;
    request.want[OJ_PAIR_NEAREST_X] = request.want[OJ_PAIR_NEAREST_Y] = 1;
    request.want[OJ_PAIR_BEARING] = 1;
    must(oj_join_open(&vb, &request.relation, "cpu", &options, &join, &error));
    must(oj_join_batch(join, &va, &m, &error));
    must(oj_pair_stage_open(&request, &stage, &error));
    sides[0].joined = sides[0].whole = &va;
    sides[1].joined = sides[1].whole = &vb;
    must(oj_pair_stage_set_join_side(stage, &sides[1], &error));
    must(oj_pair_stage_run(stage, &sides[0], &m, &values, &error));
    ck_assert_int_eq(m.n_pairs, 1);
    ck_assert(fabs(m.measure[0] - 5551759.400319) < 1e-6);
    ck_assert(values.value[OJ_PAIR_FROM_X][0] == -73.8);
    ck_assert(values.value[OJ_PAIR_FROM_Y][0] == 40.6);
    ck_assert(values.value[OJ_PAIR_NEAREST_X][0] == -0.5);
    ck_assert(values.value[OJ_PAIR_NEAREST_Y][0] == 51.6);
    ck_assert(fabs(values.value[OJ_PAIR_BEARING][0] - 51.198882845579) < 1e-9);
    oj_pair_values_free(&values);
    oj_pair_stage_close(stage);
    oj_join_close(join);
}

/* --- errors and memory ---------------------------------------------------- */

TEST(what_is_refused)
{
    LAYER point = {0}, line = {0};
    MATCHES m = {0};
    struct oj_options options = {.n_threads = 1};
    struct join_trial t = {0};
    if (is_without_geodesics())
        return;
    add_point(&point, 1, 1);
    add_line(&line, 0, 0, 1, 0);
    t.input = t.join = oj_flat_buf_view(&line);
    t.relation = relation_on(wgs84);
    ck_assert_int_ne(trial_open_and_join(&t, "cpu", &options, NULL, &m), OJ_OK);
    expect(strstr(error.message, "must be of points") != NULL, "%s",
           error.message);
    ck_assert_int_eq(trial_open_and_join(&t, "ellipsoid", &options, NULL, &m),
                     OJ_ERR_UNSUPPORTED);
    t.join = oj_flat_buf_view(&point);
    ck_assert_int_eq(trial_open_and_join(&t, "geos", &options, NULL, &m),
                     OJ_ERR_UNSUPPORTED);
    expect(strstr(error.message, "backend ellipsoid") != NULL, "%s",
           error.message);
    ck_assert_int_eq(trial_open_and_join(&t, "sphere", &options, NULL, &m),
                     OJ_ERR_UNSUPPORTED);
    t.input = t.join;
    t.relation.ellipsoid = (struct oj_ellipsoid){0, 0};
    ck_assert_int_ne(trial_open_and_join(&t, "cpu", &options, NULL, &m), OJ_OK);
    t.relation = relation_on(wgs84);
    t.relation.distance = OJ_DISTANCE_HAUSDORFF;
    ck_assert_int_eq(trial_open_and_join(&t, "cpu", &options, NULL, &m),
                     OJ_ERR_ARG);
}

/* Each allocation fails once. */
TEST(out_of_memory)
{
    LAYER a = {0}, b = {0};
    struct region region = {0, 0, 20};
    struct join_trial t = {0};
    if (is_without_geodesics())
        return;
    random_state = 3;
    add_features(&a, &region, 40, OJ_PART_POINT, 1);
    add_features(&b, &region, 60, OJ_PART_POINT, 1);
    t.input = oj_flat_buf_view(&a);
    t.join = oj_flat_buf_view(&b);
    t.relation = relation_on(wgs84);
    t.relation.k = 3;
    ck_assert_int_gt(trial_fail_each_allocation(&t), 10);
}

int main(void)
{
    tests_open("ellipsoid");
    return tests_run();
}
