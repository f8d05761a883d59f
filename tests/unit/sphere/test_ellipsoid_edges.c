/* Lines and polygons on an ellipsoid. Distances of points from geodesic edges
 * are compared with a search along every edge. Joins with points on either side
 * are compared with all pairs, bit for bit. Also points in polygons with
 * geodesic edges, edges cut into pieces, bounds, threads, batches, and memory.
 * Kind: property, degenerate, memory. OGRJOIN_TEST_LONG=1 runs fifty times as
 * long; OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../run_tests.h"
#include "ellipsoid_relations.h"
#include "random_sphere.h"

#include "../join_trial.h"

#include "../../../algs/joins/sphere/ellipsoid_edge_distance.h"
#include "../../../algs/joins/sphere/ellipsoid_pair_distance.h"
#include "../../../algs/pairs/values/oj_pair_stage.h"
#include "../../../algs/references/validation/oj_validation.h"

/* --- places --------------------------------------------------------------- */

/* Stores the end of an edge that begins at (x, y) in *u and *v: anywhere, near,
 * on its meridian, across a pole, at a pole, nearly antipodal, or the start
 * itself. For an edge on the equator, moves the start there. */
static void place_end(double *x, double *y, double *u, double *v)
{
    double by = pow(10, 12 * unit() - 10);
    *u = *x + by * (2 * unit() - 1);
    *v = *y + by * (2 * unit() - 1);
    switch (pick(9))
    {
        case 0:
            *u = 360 * unit() - 180;
            *v = 180 * unit() - 90;
            break;
        case 1:
            *u = *x;
            *v = 180 * unit() - 90;
            break;
        case 2:
            *y = *v = 0;
            *u = *x + 170 * unit();
            break;
        case 3:
            *u = *x + 180;
            *v = *y;
            break;
        case 4:
            *u = *x + 180 + by / 100 * (unit() - 0.5);
            *v = -*y + by / 100 * (unit() - 0.5);
            break;
        case 5:
            *u = pick(2) ? *x : *x + 360;
            *v = *y;
            break;
        case 6:
            *v = pick(2) ? 90 : -90;
            break;
        default:
            break;
    }
    *v = fmax(-90, fmin(90, *v));
}

/* Stores a point in *x and *y: at a vertex, on an edge, beside it by
 * micrometres to kilometres, a quarter of the equator away, antipodal to it, at
 * a pole, or anywhere. */
static void place_point(const struct oj_geodesic *geodesic, double x0,
                        double y0, double x1, double y1, double *x, double *y)
{
    struct oj_geodesic_line line;
    struct oj_geodesic_point at;
    double turn = 2 * (double)PI * unit(), by = pow(10, 12 * unit() - 11);
    oj_geodesic_line_make(geodesic, x0, y0, x1, y1, &line);
    at = oj_geodesic_line_at(&line, line.metres * unit());
    *x = at.longitude;
    *y = at.latitude;
    switch (pick(8))
    {
        case 0:
            *x = pick(2) ? x0 : x1;
            *y = *x == x0 ? y0 : y1;
            break;
        case 1:
            *x = 360 * unit() - 180;
            *y = 180 * unit() - 90;
            break;
        case 2:
            *y = pick(2) ? 90 : -90;
            break;
        case 3:
            *x += 180 + by * cos(turn);
            *y = -*y + by * sin(turn);
            break;
        case 4:
            break;
        case 5: /* about as far from the edge as a pole is from the equator */
            *x += 90 + by * cos(turn);
            *y = by * sin(turn);
            break;
        default:
            *x += by * cos(turn) / fmax(0.01, cos(*y * (double)PI / 180));
            *y += by * sin(turn);
    }
    *y = fmax(-90, fmin(90, *y));
}

/* --- one edge ------------------------------------------------------------- */

static struct oj_ellipsoid_vertex vertex_at(const struct oj_ellipsoid *e,
                                            double x, double y)
{
    struct oj_ellipsoid_vertex v = {
        x, y, oj_ellipsoid_point(e, oj_sphere_vector(x, y))};
    return v;
}

/* Returns the least distance of n points of the line, then of n points around
 * the nearest of these, and so on. */
static double least_of_many(const struct oj_geodesic *geodesic,
                            const struct oj_geodesic_line *line, double x,
                            double y)
{
    double low = 0, high = line->metres, least = INFINITY;
    for (int round = 0; round < 10; round++)
    {
        const int n = round == 0 ? 400 : 40;
        double best = INFINITY, step = (high - low) / n, at = low;
        for (int i = 0; i <= n; i++)
        {
            struct oj_geodesic_point p =
                oj_geodesic_line_at(line, low + step * i);
            double d =
                oj_geodesic_metres(geodesic, x, y, p.longitude, p.latitude);
            if (d < best)
            {
                best = d;
                at = low + step * i;
            }
        }
        least = fmin(least, best);
        low = fmax(0, at - step);
        high = fmin(line->metres, at + step);
    }
    return least;
}

/* If an edge is longer than allowed, replaces it by a random piece of it that
 * is short enough. */
static void cut(const struct oj_ellipsoid *e,
                const struct oj_geodesic *geodesic, double *x0, double *y0,
                double *x1, double *y1)
{
    struct oj_geodesic_line line;
    double n, i;
    oj_geodesic_line_make(geodesic, *x0, *y0, *x1, *y1, &line);
    n = ceil(line.metres / (OJ_ELLIPSOID_LONGEST_EDGE * e->semi_major));
    if (!(n > 1))
        return;
    i = floor(unit() * n);
    struct oj_geodesic_point a =
        oj_geodesic_line_at(&line, line.metres * (i / n));
    struct oj_geodesic_point b =
        oj_geodesic_line_at(&line, line.metres * ((i + 1) / n));
    *x0 = a.longitude;
    *y0 = a.latitude;
    *x1 = b.longitude;
    *y1 = b.latitude;
}

TEST(feet_of_perpendiculars)
{
    int n_edges = 0, n_feet = 0, n_far = 0;
    EACH_ROUND(60)
    {
        struct oj_ellipsoid e = pick_ellipsoid();
        struct oj_geodesic *geodesic;
        must(oj_geodesic_open(&e, &geodesic, &error));
        for (int i = 0; i < 40; i++)
        {
            double x0 = 360 * unit() - 180, y0 = 180 * unit() - 90, x1, y1;
            double x, y, least, most_error;
            struct oj_geodesic_line line;
            struct oj_ellipsoid_vertex a, b, p;
            struct oj_edge_foot foot, back;
            place_end(&x0, &y0, &x1, &y1);
            cut(&e, geodesic, &x0, &y0, &x1, &y1);
            place_point(geodesic, x0, y0, x1, y1, &x, &y);
            a = vertex_at(&e, x0, y0);
            b = vertex_at(&e, x1, y1);
            p = vertex_at(&e, x, y);
            foot = oj_edge_foot_find(&e, geodesic, &p, &a, &b);
            back = oj_edge_foot_find(&e, geodesic, &p, &b, &a);
            oj_geodesic_line_make(geodesic, x0, y0, x1, y1, &line);
            least = least_of_many(geodesic, &line, x, y);
            most_error = (least > 1.5 * e.semi_major ? OJ_EDGE_FAR_ERROR
                                                     : OJ_EDGE_NEAR_ERROR) *
                         e.semi_major;
            /* coordinates are rounded by a few nanometres on the Earth */
            expect(foot.metres <= least + most_error + 2e-15 * e.semi_major &&
                       foot.metres >= least - 2e-10 * e.semi_major,
                   "seed %llu: %.17g %.17g - %.17g %.17g, from %.17g %.17g: "
                   "%.9f, not %.9f (flattening %g)",
                   (unsigned long long)seed, x0, y0, x1, y1, x, y, foot.metres,
                   least, e.flattening);
            expect(foot.metres ==
                       oj_geodesic_metres(geodesic, x, y, foot.x, foot.y),
                   "%.17g is not the distance of its point", foot.metres);
            expect(foot.metres == back.metres && foot.x == back.x &&
                       foot.y == back.y,
                   "seed %llu: another foot in the other direction",
                   (unsigned long long)seed);
            expect(foot.metres <= oj_geodesic_metres(geodesic, x, y, x0, y0) &&
                       foot.metres <=
                           oj_geodesic_metres(geodesic, x, y, x1, y1),
                   "an end is nearer");
            n_edges++;
            n_feet += !foot.is_vertex;
            n_far += least > 1.5 * e.semi_major;
        }
        oj_geodesic_close(geodesic);
    }
    ck_assert_int_gt(n_feet, n_edges / 10);
    ck_assert_int_gt(n_far, n_edges / 10);
}

/* --- layers --------------------------------------------------------------- */

static void add_edge(struct oj_flat_buf *buf, double x0, double y0, double x1,
                     double y1)
{
    begin(buf);
    add_part(buf, OJ_PART_LINE);
    add_ring(buf, 2, (const double[]){x0, y0, x1, y1});
    end(buf);
}

/* Adds lines and polygons with long and degenerate edges, and points beside
 * their edges. */
static void add_odd_features(const struct oj_geodesic *geodesic,
                             struct oj_flat_buf *points,
                             struct oj_flat_buf *shapes, int n)
{
    for (int i = 0; i < n; i++)
    {
        double x0 = 360 * unit() - 180, y0 = 180 * unit() - 90, x1, y1, x, y;
        place_end(&x0, &y0, &x1, &y1);
        if (pick(2))
            add_edge(shapes, x0, y0, x1, y1);
        else
        {
            struct oj_flat flat;
            int64_t v;
            begin(shapes);
            add_part(shapes, OJ_PART_POLYGON);
            add_round(shapes, x0, y0, pow(10, 5 * unit() - 3) * 1.4,
                      3 + pick(one_in(3) ? 60 : 4));
            end(shapes);
            flat = oj_flat_buf_view(shapes);
            v = flat.n_vertices - 2 - pick(2);
            x0 = flat.x[v];
            y0 = flat.y[v];
            x1 = flat.x[v + 1];
            y1 = flat.y[v + 1];
        }
        for (int j = 0; j < 3; j++)
        {
            place_point(geodesic, x0, y0, x1, y1, &x, &y);
            add_point(points, x, y);
        }
    }
}

/* Sides of a pair of layers. */
struct both_sides
{
    struct oj_ellipsoid ellipsoid;
    struct oj_geodesic *geodesic;
    struct oj_sphere_side input, join;
    struct oj_ellipsoid_sides sides;
};

static void sides_make(struct both_sides *s, const struct oj_flat *input,
                       const struct oj_flat *join, int with_interiors)
{
    must(oj_geodesic_open(&s->ellipsoid, &s->geodesic, &error));
    must(oj_sphere_side_build(&s->input, input, &s->ellipsoid, s->geodesic, 1,
                              with_interiors, 2, &error));
    must(oj_sphere_side_build(&s->join, join, &s->ellipsoid, s->geodesic, 1,
                              with_interiors, 1, &error));
    s->sides = (struct oj_ellipsoid_sides){&s->ellipsoid, s->geodesic,
                                           &s->input, &s->join};
}

static void sides_free(struct both_sides *s)
{
    oj_sphere_side_free(&s->input);
    oj_sphere_side_free(&s->join);
    oj_geodesic_close(s->geodesic);
}

/* Returns the distances of all pairs. Each edge is measured by itself. */
static double *matrix_of_sides(const struct both_sides *s)
{
    int64_t n = s->input.flat->n_features, m = s->join.flat->n_features;
    double *matrix = oj_malloc(n * m, sizeof *matrix);
    ck_assert_ptr_nonnull(matrix);
    for (int64_t i = 0; i < n * m; i++)
        matrix[i] = oj_sphere_box3_is_empty(&s->input.box[i / m]) ||
                            oj_sphere_box3_is_empty(&s->join.box[i % m])
                        ? INFINITY
                        : oj_ellipsoid_find_nearest_points(
                              &s->sides, i / m, i % m, (double)INFINITY)
                              .distance;
    return matrix;
}

/* Checks that every distance of the matrix equals that of the reference and
 * that of the nearest points, and that it is within the bounds by chords. */
static void check_matrix(const struct both_sides *s, const struct oj_flat *f,
                         const struct oj_flat *g, const double *matrix,
                         int with_interiors)
{
    struct oj_plain_sphere from = {0}, to = {0};
    int64_t m = g->n_features;
    double of_axis = s->ellipsoid.semi_major;
    double flatness = fmax(fabs(s->ellipsoid.flattening) * 298, 1);
    must(oj_plain_sphere_make(&from, f, &s->ellipsoid, &error));
    must(oj_plain_sphere_make(&to, g, &s->ellipsoid, &error));
    for (int64_t i = 0; i < f->n_features * m; i++)
    {
        double plain, t;
        struct oj_chord2_range range;
        struct oj_nearest_points points;
        if (!(matrix[i] < INFINITY))
            continue;
        plain =
            oj_plain_sphere_metres(&from, i / m, &to, i % m, with_interiors);
        t = plain > 1.5 * of_axis ? 2e-10 * of_axis : 2e-13 * of_axis;
        if (matrix[i] == 0 || plain == 0) /* a ring is known to .6 mm */
            t = 1.6e-10 * of_axis * flatness;
        expect(fabs(matrix[i] - plain) <= t,
               "seed %llu, features %d and %d: %.9f, not %.9f (flattening %g)",
               (unsigned long long)seed, (int)(i / m), (int)(i % m), matrix[i],
               plain, s->ellipsoid.flattening);
        range =
            oj_ellipsoid_chord_range(&s->sides, i / m, i % m, (double)INFINITY);
        expect(oj_ellipsoid_least_distance(range.least2) * of_axis <=
                       matrix[i] &&
                   matrix[i] <=
                       (oj_ellipsoid_most_distance(&s->ellipsoid, range.most2) +
                        OJ_EDGE_FAR_ERROR) *
                           of_axis,
               "seed %llu, features %d and %d: %.9f is beyond its bounds",
               (unsigned long long)seed, (int)(i / m), (int)(i % m), matrix[i]);
        points = oj_ellipsoid_find_nearest_points(&s->sides, i / m, i % m,
                                                  range.most2);
        expect(points.distance == matrix[i],
               "seed %llu, features %d and %d: %.17g by bounds, not %.17g",
               (unsigned long long)seed, (int)(i / m), (int)(i % m),
               points.distance, matrix[i]);
        expect(fabs(oj_geodesic_metres(s->geodesic, points.ax, points.ay,
                                       points.bx, points.by) -
                    matrix[i]) < 1e-15 * of_axis,
               "seed %llu: the nearest points are not so far",
               (unsigned long long)seed);
    }
    oj_plain_sphere_free(&from);
    oj_plain_sphere_free(&to);
}

/* --- joins ---------------------------------------------------------------- */

/* Makes the layers of a trial, with shapes on one side and points on the other.
 * turn 1: the shapes are the input. */
static void fill_trial(struct join_trial *t, struct oj_ellipsoid e, int turn)
{
    static const unsigned kinds[] = {OJ_PART_LINE, OJ_PART_POLYGON, 7};
    struct oj_flat_buf *points = turn ? &t->join_buf : &t->input_buf;
    struct oj_flat_buf *shapes = turn ? &t->input_buf : &t->join_buf;
    struct region region = pick_region();
    struct oj_geodesic *geodesic;
    must(oj_geodesic_open(&e, &geodesic, &error));
    if (pick(3))
    {
        add_features(points, &region, 1 + pick(20), OJ_PART_POINT, 1);
        add_features(shapes, &region, 1 + pick(20), kinds[pick(3)], 1);
    }
    if (points->n_features == 0 || pick(2))
        add_odd_features(geodesic, points, shapes, 1 + pick(7));
    oj_geodesic_close(geodesic);
    trial_view(t);
}

TEST_LOOP(all_pairs, 0, 2)
{
    int64_t n_pairs = 0;
    EACH_ROUND(25)
    {
        struct both_sides s = {.ellipsoid = pick_ellipsoid()};
        struct join_trial t = {0};
        MATCHES m = {0};
        int with_interiors = !one_in(5);
        double *matrix;
        int64_t n;
        fill_trial(&t, s.ellipsoid, _i);
        n = t.input.n_features * t.join.n_features;
        sides_make(&s, &t.input, &t.join, with_interiors);
        matrix = matrix_of_sides(&s);
        check_matrix(&s, &t.input, &t.join, matrix, with_interiors);
        for (int i = 0; i < 6; i++)
        {
            t.relation = pick_relation(s.ellipsoid, matrix, n);
            t.relation.distance_to =
                with_interiors ? OJ_TO_INTERIOR : OJ_TO_BOUNDARY;
            trial_answer(&t, "cpu", 1 + pick(3), &m);
            check_answer("cpu", &t.relation, &t.input, &t.join, matrix, &m);
            n_pairs += m.n_pairs;
        }
        oj_free(matrix);
        sides_free(&s);
        trial_free(&t);
    }
    ck_assert_int_gt(n_pairs, 1000);
}

/* The reference backend "ellipsoid" finds equal pairs. */
TEST_LOOP(reference, 0, 2)
{
    EACH_ROUND(8)
    {
        struct both_sides s = {.ellipsoid = wgs84};
        struct join_trial t = {0};
        MATCHES ours = {0}, other = {0};
        double *matrix;
        fill_trial(&t, wgs84, _i);
        sides_make(&s, &t.input, &t.join, 1);
        matrix = matrix_of_sides(&s);
        t.relation = pick_relation(wgs84, matrix,
                                   t.input.n_features * t.join.n_features);
        /* a pair exactly at this limit might be dropped in favour of another */
        t.relation.min_distance *= 0.999;
        for (int i = 0; i < 2; i++)
        {
            struct oj_validation v = {.relation = &t.relation,
                                      .input = &t.input,
                                      .join_side = &t.join};
            t.relation.op = i ? OJ_OP_DWITHIN : OJ_OP_NEAREST;
            t.relation.k = i ? 1 : t.relation.k;
            t.relation.ties = i ? OJ_TIES_FIRST : t.relation.ties;
            if (i && !(t.relation.max_distance < INFINITY))
                t.relation.max_distance = 1e6;
            trial_answer(&t, "cpu", 2, &ours);
            trial_answer(&t, "ellipsoid", 1, &other);
            must(oj_validation_compare(&v, &ours, &other, &error));
            expect(v.n_differences == 0,
                   "seed %llu: row %d, %s: feature %d at %.9f, not %d at %.9f",
                   (unsigned long long)seed, (int)v.first[0].input_row,
                   oj_validation_difference_name(v.first[0].kind),
                   (int)v.first[0].join_row_ours, v.first[0].measure_ours,
                   (int)v.first[0].join_row_reference,
                   v.first[0].measure_reference);
            oj_validation_free(&v);
        }
        oj_free(matrix);
        sides_free(&s);
        trial_free(&t);
    }
}

/* --- known answers -------------------------------------------------------- */

/* Finds the nearest feature of shapes, and returns the nearest points that the
 * pair stage computes. turn 1: the shapes are the input. Stores the feature in
 * *feature. */
static struct oj_nearest_points ask_one(const struct oj_flat_buf *points,
                                        const struct oj_flat_buf *shapes,
                                        int turn, int32_t *feature)
{
    struct join_trial t = {.input = oj_flat_buf_view(turn ? shapes : points),
                           .join = oj_flat_buf_view(turn ? points : shapes)};
    struct oj_pair_request request = {0};
    struct oj_pair_side sides[2] = {{0}, {0}};
    struct oj_pair_values values = {0};
    struct oj_pair_stage *stage;
    struct oj_nearest_points found;
    MATCHES m = {0};
    t.relation = relation_on(wgs84);
    trial_answer(&t, "cpu", 1, &m);
    request.relation = t.relation;
    request.n_threads = 1;
    for (int i = OJ_PAIR_FROM_X; i <= OJ_PAIR_NEAREST_Y; i++)
        request.want[i] = 1;
    request.want[OJ_PAIR_BEARING] = 1;
    must(oj_pair_stage_open(&request, &stage, &error));
    sides[0].joined = sides[0].whole = &t.input;
    sides[1].joined = sides[1].whole = &t.join;
    must(oj_pair_stage_set_join_side(stage, &sides[1], &error));
    must(oj_pair_stage_run(stage, &sides[0], &m, &values, &error));
    found = (struct oj_nearest_points){
        m.measure[0], values.value[OJ_PAIR_FROM_X][0],
        values.value[OJ_PAIR_FROM_Y][0], values.value[OJ_PAIR_NEAREST_X][0],
        values.value[OJ_PAIR_NEAREST_Y][0]};
    ck_assert(found.distance > 0 || isnan(values.value[OJ_PAIR_BEARING][0]));
    *feature = m.join_row[0];
    oj_pair_values_free(&values);
    oj_pair_stage_close(stage);
    return found;
}

/* For a point of the equator, the nearest point of a meridian is on the
 * equator, by symmetry. The nearest point of the equator to a point is on that
 * point's meridian. The arc lengths of meridians and of the equator are
 * known. */
TEST_LOOP(known_feet, 0, 2)
{
    const double degree = 6378137.0 * (double)PI / 180; /* on the equator */
    static const struct
    {
        double x0, y0, x1, y1, x, y, foot_x, foot_y, metres;
    } known[] = {
        {10, -20, 10, 30, 12, 0, 10, 0, 2}, /* below 100: degrees */
        {179, 0, -179, 0, 180, 1, 180, 0, 110574.3885577},
        {190, 0, 200, 0, -165, 1, 195, 0, 110574.3885577},
        {-5, 0, 40, 0, 7, 90, NAN, 0, 10001965.729313},
        {0, 80, 180, 80, 90, 89, NAN, 90, 111693.9},
        {20, 10, 20, 10, 21, 10, 20, 10, 109639.3},
        {0, 0, 90, 0, 180, 0, 90, 0, 90},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    {
        LAYER points = {0}, shapes = {0};
        struct oj_nearest_points found;
        double metres = known[i].metres, foot[2];
        int32_t feature;
        add_point(&points, known[i].x, known[i].y);
        add_edge(&shapes, known[i].x0, known[i].y0, known[i].x1, known[i].y1);
        found = ask_one(&points, &shapes, _i, &feature);
        metres *= metres < 100 ? degree : 1;
        expect(fabs(found.distance - metres) < (i == 4 || i == 5 ? 1.0 : 1e-3),
               "%d: %.9f, not %.9f", (int)i, found.distance, metres);
        foot[0] = _i ? found.ax : found.bx;
        foot[1] = _i ? found.ay : found.by;
        expect((isnan(known[i].foot_x) ||
                fabs(remainder(foot[0] - known[i].foot_x, 360)) < 1e-7) &&
                   fabs(foot[1] - known[i].foot_y) < 1e-7,
               "%d: foot %.12f %.12f", (int)i, foot[0], foot[1]);
    }
}

/* A long edge runs along 50 degrees north. Between its ends, the parallel is
 * far south of the geodesic. Points beside the edge are inside or outside,
 * including those between the geodesic and its plane section. */
TEST(insides_beside_long_edges)
{
    struct oj_geodesic *geodesic;
    struct oj_geodesic_line line;
    int n_inside = 0, n = 0;
    must(oj_geodesic_open(&wgs84, &geodesic, &error));
    EACH_ROUND(20)
    {
        LAYER points = {0}, shapes = {0};
        MATCHES m = {0};
        struct join_trial t = {0};
        double x = 360 * unit() - 180, width = pow(10, 2.2 * unit());
        double ring[] = {x, 50, x + width / 2, 20, x + width, 50, x, 50};
        int is_north[200];
        begin(&shapes);
        add_part(&shapes, OJ_PART_POLYGON);
        add_ring(&shapes, 4, ring);
        end(&shapes);
        oj_geodesic_line_make(geodesic, x, 50, x + width, 50, &line);
        for (int i = 0; i < 200; i++)
        {
            struct oj_geodesic_point at = oj_geodesic_line_at(
                &line, line.metres * (0.02 + 0.96 * unit()));
            double north = pow(10, 7 * unit() - 3); /* 1 mm to 10 km */
            double most = 0.01 * line.metres;
            north = fmin(north, most) * (pick(2) ? 1 : -1);
            is_north[i] = north > 0;
            add_point(&points, at.longitude, at.latitude + north / 111000);
        }
        t.input = oj_flat_buf_view(&points);
        t.join = oj_flat_buf_view(&shapes);
        t.relation = relation_on(wgs84);
        trial_answer(&t, "cpu", 1, &m);
        for (int i = 0; i < 200; i++, n++)
        {
            expect((m.measure[i] == 0) == !is_north[i],
                   "seed %llu, point %d is %d north of the edge: %.9f",
                   (unsigned long long)seed, i, is_north[i], m.measure[i]);
            n_inside += m.measure[i] == 0;
        }
    }
    ck_assert(n_inside > n / 4 && n_inside < 3 * n / 4);
    oj_geodesic_close(geodesic);
}

/* Two features with a common border are equally far, whatever the direction of
 * the border in each. */
TEST(common_borders_tie)
{
    struct oj_geodesic *geodesic;
    must(oj_geodesic_open(&wgs84, &geodesic, &error));
    EACH_ROUND(30)
    {
        LAYER points = {0}, shapes = {0};
        MATCHES m = {0};
        struct join_trial t = {0};
        for (int i = 0; i < 10; i++)
        {
            double x0 = 360 * unit() - 180, y0 = 170 * unit() - 85, x1, y1;
            double x, y;
            place_end(&x0, &y0, &x1, &y1);
            place_point(geodesic, x0, y0, x1, y1, &x, &y);
            add_point(&points, x, y);
            add_edge(&shapes, x0, y0, x1, y1);
            add_edge(&shapes, x1, y1, x0, y0);
        }
        t.input = oj_flat_buf_view(&points);
        t.join = oj_flat_buf_view(&shapes);
        t.relation = relation_on(wgs84);
        t.relation.ties = OJ_TIES_ALL;
        t.relation.k = 1;
        trial_answer(&t, "cpu", 2, &m);
        for (int64_t row = 0; row < t.input.n_features; row++)
        {
            int64_t first = oj_matches_first(&m, row);
            ck_assert_int_ge(oj_matches_end(&m, row) - first, 2);
            ck_assert(m.measure[first] == m.measure[first + 1]);
        }
    }
    oj_geodesic_close(geodesic);
}

TEST(pieces_of_edges)
{
    LAYER shapes = {0};
    struct oj_flat flat;
    struct oj_geodesic *geodesic;
    struct oj_cut_edges *pieces = NULL;
    must(oj_geodesic_open(&wgs84, &geodesic, &error));
    add_edge(&shapes, 0, 0, 1, 1);
    add_edge(&shapes, 359, 89.9, 1, 89.9); /* short, over 358 degrees */
    flat = oj_flat_buf_view(&shapes);
    must(oj_cut_edges_make(geodesic, &wgs84, &flat, 2, &pieces, &error));
    ck_assert_ptr_null(pieces);
    add_edge(&shapes, 0, 0, 90, 0); /* 10,019 km: 51 pieces */
    add_edge(&shapes, 0, 91, 90, 0);
    add_edge(&shapes, 3, 3, 2, 2);
    flat = oj_flat_buf_view(&shapes);
    must(oj_cut_edges_make(geodesic, &wgs84, &flat, 2, &pieces, &error));
    ck_assert_ptr_nonnull(pieces);
    ck_assert_int_eq(pieces->flat.n_vertices, 4 + 52 + 4);
    ck_assert_int_eq(pieces->flat.vertex_offset[3], 4 + 52);
    for (int64_t v = 4; v + 1 < 4 + 52; v++)
        ck_assert(oj_geodesic_metres(geodesic, pieces->x[v], pieces->y[v],
                                     pieces->x[v + 1], pieces->y[v + 1]) <=
                  OJ_ELLIPSOID_LONGEST_EDGE * 6378137.0);
    ck_assert(pieces->x[4 + 51] == 90 && pieces->y[4 + 51] == 0);
    oj_cut_edges_free(pieces);
    oj_geodesic_close(geodesic);
}

/* --- errors, threads and memory ------------------------------------------- */

TEST(what_is_refused)
{
    LAYER line = {0};
    MATCHES m = {0};
    struct oj_options options = {.n_threads = 1};
    struct join_trial t = {0};
    add_line(&line, 0, 0, 1, 0);
    t.input = t.join = oj_flat_buf_view(&line);
    t.relation = relation_on(wgs84);
    ck_assert_int_eq(trial_open_and_join(&t, "cpu", &options, NULL, &m),
                     OJ_ERR_UNSUPPORTED);
    expect(strstr(error.message, "one of the sides must be of points") != NULL,
           "%s", error.message);
    ck_assert_int_eq(trial_open_and_join(&t, "ellipsoid", &options, NULL, &m),
                     OJ_ERR_UNSUPPORTED);
    expect(strstr(error.message, "one of the sides") != NULL, "%s",
           error.message);
}

/* The result does not depend on threads and batches. */
TEST_LOOP(threads_and_batches, 0, 4)
{
    struct oj_options options = {.n_threads = 2};
    struct region region = {175, 60, 20};
    LAYER points = {0}, shapes = {0};
    MATCHES one = {0}, other = {0};
    struct join_trial t = {0};
    random_state = 6;
    add_features(&points, &region, 1500, OJ_PART_POINT, 0);
    add_features(&shapes, &region, 500, 7, 1);
    t.input = oj_flat_buf_view(_i < 2 ? &points : &shapes);
    t.join = oj_flat_buf_view(_i < 2 ? &shapes : &points);
    t.relation = relation_on(wgs84);
    t.relation.op = _i % 2 ? OJ_OP_DWITHIN : OJ_OP_NEAREST;
    t.relation.k = _i % 2 ? 1 : 4;
    t.relation.max_distance = 1e5;
    trial_answer(&t, "cpu", 1, &one);
    trial_answer(&t, "cpu", 3, &other);
    ck_assert_int_gt(one.n_pairs, 1000);
    same_matches("threads", &other, &one);
    trial_check_batches(&t, "cpu", &options, 37, t.input.n_features, &one);
}

/* Each allocation fails once. */
TEST_LOOP(out_of_memory, 0, 2)
{
    LAYER points = {0}, shapes = {0};
    struct region region = {0, 0, 20};
    struct join_trial t = {0};
    random_state = 3;
    add_features(&points, &region, 40, OJ_PART_POINT, 1);
    add_features(&shapes, &region, 60, 7, 1);
    add_edge(&shapes, 0, 0, 60, 20);
    t.input = oj_flat_buf_view(_i ? &shapes : &points);
    t.join = oj_flat_buf_view(_i ? &points : &shapes);
    t.relation = relation_on(wgs84);
    t.relation.k = 3;
    ck_assert_int_gt(trial_fail_each_allocation(&t), 10);
}

int main(void)
{
    if (!oj_geodesic_is_available())
        return 0; /* test_ellipsoid tests the refusal */
    tests_open("ellipsoid_edges");
    return tests_run();
}
