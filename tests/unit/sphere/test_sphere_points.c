/* Nearest points and bearings on the sphere, compared with known values. For
 * random features, the point must be on the feature, at the distance of the
 * join, and the bearing must lead to it.
 * Kind: unit, property, degenerate, memory. */
#include "../run_tests.h"
#include "random_sphere.h"
#include "sphere_truth.h"

#include "../../../algs/pairs/values/oj_pair_stage.h"

/* Computes the values of the nearest pairs of two layers. */
static void find(const struct oj_flat *input, const struct oj_flat *join,
                 int n_threads, struct oj_matches *m,
                 struct oj_pair_values *values)
{
    struct oj_pair_request request = {0};
    struct oj_pair_side a = {0}, b = {0};
    struct oj_options options = {.n_threads = n_threads};
    struct oj_pair_stage *stage;
    struct oj_join *opened;
    request.relation = oj_relation_default();
    request.relation.metric = OJ_METRIC_SPHERE;
    request.n_threads = n_threads;
    request.want[OJ_PAIR_FROM_X] = request.want[OJ_PAIR_FROM_Y] = 1;
    request.want[OJ_PAIR_NEAREST_X] = request.want[OJ_PAIR_NEAREST_Y] = 1;
    request.want[OJ_PAIR_BEARING] = 1;
    must(oj_join_open(join, &request.relation, "cpu", &options, &opened,
                      &error));
    must(oj_join_batch(opened, input, m, &error));
    must(oj_pair_stage_open(&request, &stage, &error));
    a.joined = a.whole = input;
    b.joined = b.whole = join;
    must(oj_pair_stage_set_join_side(stage, &b, &error));
    must(oj_pair_stage_run(stage, &a, m, values, &error));
    oj_pair_stage_close(stage);
    oj_join_close(opened);
}

static double value_of(const struct oj_pair_values *values,
                       enum oj_pair_value which, int64_t entry)
{
    return values->value[which][entry];
}

/* Checks the values of one point and one feature. */
static void expect_point(const struct oj_flat_buf *a,
                         const struct oj_flat_buf *b, double x, double y,
                         double bearing_or_nan)
{
    struct oj_flat va = oj_flat_buf_view(a), vb = oj_flat_buf_view(b);
    struct oj_pair_values values = {0};
    MATCHES m = {0};
    double got[3];
    find(&va, &vb, 1, &m, &values);
    got[0] = value_of(&values, OJ_PAIR_NEAREST_X, 0);
    got[1] = value_of(&values, OJ_PAIR_NEAREST_Y, 0);
    got[2] = value_of(&values, OJ_PAIR_BEARING, 0);
    expect(fabs(got[0] - x) < 1e-12 * (1 + fabs(x)) && fabs(got[1] - y) < 1e-12,
           "%.17g %.17g, not %.17g %.17g", got[0], got[1], x, y);
    expect(isnan(bearing_or_nan) ? isnan(got[2])
                                 : fabs(got[2] - bearing_or_nan) < 1e-10,
           "bearing %.17g, not %.17g", got[2], bearing_or_nan);
    oj_pair_values_free(&values);
}

/* --- known answers --------------------------------------------------------
 */

/* The nearest points of arcs (feet), computed to fifty digits by other
 * software, which searches the arc for the least haversine. */
TEST(known_feet)
{
    static const struct
    {
        double p[2], a[2], b[2], foot[2], bearing;
    } known[] = {
        {{30, 50},
         {0, 60},
         {90, 60},
         {19.9990928011811284, 65.7505562615968878},
         345.521895658323162},
        {{179.5, 10},
         {170, 12},
         {-170, 12},
         {179.495893549538029, 12.1791754255861548},
         359.894436267610908},
        {{-116.5, 34.5},
         {-118.4, 33.95},
         {-73.78333333333333, 40.63333333333333},
         {-116.559058689609133, 34.6142850519829619},
         336.962688981669233},
        {{12, -80},
         {-30, -70},
         {40, -65},
         {4.33133015808764478, -71.5187351618520023},
         343.70378309023019},
        {{2.3522, 48.8566},
         {-0.1278, 51.5074},
         {13.4050, 52.5200},
         {1.5119538185402786, 51.7164257285665436},
         349.689645856584579},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    {
        LAYER a = {0}, b = {0}, c = {0};
        add_point(&a, known[i].p[0], known[i].p[1]);
        add_line(&b, known[i].a[0], known[i].a[1], known[i].b[0],
                 known[i].b[1]);
        add_line(&c, known[i].b[0], known[i].b[1], known[i].a[0],
                 known[i].a[1]);
        expect_point(&a, &b, known[i].foot[0], known[i].foot[1],
                     known[i].bearing);
        expect_point(&a, &c, known[i].foot[0], known[i].foot[1],
                     known[i].bearing);
    }
}

/* Bearings between places: great circles, along the equator, along a meridian,
 * from a pole. The first are published (Los Angeles to New York: 66
 * degrees). */
TEST(known_bearings)
{
    static const struct
    {
        double x0, y0, x1, y1, bearing;
    } known[] = {
        {-118.4, 33.95, -73.78333333333333, 40.63333333333333,
         65.8921665527453013},
        {-86.67, 36.12, -118.40, 33.94, 274.593574105462835},
        {-0.4543, 51.4700, 139.7798, 35.5494, 31.4357291340020409},
        {-21.95, 64.15, 179.5, 66.5, 348.761511018250946},
        {0, 60, 180, 60, 0},     /* over the pole */
        {0, -60, 180, -60, 180}, /* over the other */
        {10, 0, 20, 0, 90},
        {10, 0, -20, 0, 270},
        {179, 0, -179, 0, 90},
        {-179, 0, 179, 0, 270},
        {179, 0, 181, 0, 90},
        {5, 5, 5, 6, 0},
        {5, 5, 5, -6, 180},
        {5, 5, 365, 4, 180},
        {30, 90, 30, 0, 180},
        {30, 90, 120, 0, 90},
        {30, -90, 30, 0, 0},
        {30, -90, 120, 0, 90},
        {3, 40, 77, 90, 0},
        {3, 40, 77, -90, 180},
        {4, 4, 4, 4, NAN},
        {-180, 7, 180, 7, NAN},
        {11, 90, 12, 90, NAN},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    {
        LAYER a = {0}, b = {0};
        add_point(&a, known[i].x0, known[i].y0);
        add_point(&b, known[i].x1, known[i].y1);
        expect_point(&a, &b, known[i].x1, known[i].y1, known[i].bearing);
    }
}

/* The textbook formula. */
static double bearing_between(double x0, double y0, double x1, double y1)
{
    long double l = (x1 - x0) * PI / 180, f = y0 * PI / 180, g = y1 * PI / 180;
    long double t = atan2l(sinl(l) * cosl(g),
                           cosl(f) * sinl(g) - sinl(f) * cosl(g) * cosl(l));
    return (double)fmodl(t * 180 / PI + 360, 360);
}

/* A nearest point at a vertex keeps the vertex's longitude. A point between two
 * vertices gets a longitude between theirs. */
TEST(longitudes)
{
    static const double square[] = {178, -2, 182, -2, 182, 2, 178, 2, 178, -2};
    LAYER a = {0}, east = {0}, west = {0}, box = {0}, inside = {0};
    add_point(&a, 0, 10);
    add_line(&east, 350, 0, 370, 0);
    add_line(&west, -10, 0, 10, 0);
    expect_point(&a, &east, 360, 0, 180);
    expect_point(&a, &west, 0, 0, 180);
    add_simple(&box, OJ_PART_POLYGON, 5, square);
    add_point(&inside, -179.5, 1);
    expect_point(&inside, &box, -179.5, 1, (double)NAN); /* itself */
    oj_flat_buf_free(&inside);
    add_point(&inside, -177, -2.5);
    expect_point(&inside, &box, 182, -2, bearing_between(-177, -2.5, 182, -2));
}

/* --- random ones ----------------------------------------------------------
 */

/* Returns the distance in metres between (x, y) and the end of a path from
 * (from_x, from_y), `metres` long, in the direction `bearing`. */
static double miss(double from_x, double from_y, double bearing, double metres,
                   double x, double y)
{
    struct long_vector p = to_vector(from_x, from_y), q = to_vector(x, y), at;
    long double t = (long double)bearing * PI / 180, s = metres / R;
    long double l = (long double)from_x * PI / 180;
    struct long_vector east = {-sinl(l), cosl(l), 0}, north = cross(p, east);
    at.x = cosl(s) * p.x + sinl(s) * (cosl(t) * north.x + sinl(t) * east.x);
    at.y = cosl(s) * p.y + sinl(s) * (cosl(t) * north.y + sinl(t) * east.y);
    at.z = cosl(s) * p.z + sinl(s) * (cosl(t) * north.z + sinl(t) * east.z);
    return (double)(angle(at, q) * R);
}

static void check_pair(const struct oj_flat *join, int64_t feature,
                       double metres, const struct oj_pair_values *values,
                       int64_t entry)
{
    double ax = value_of(values, OJ_PAIR_FROM_X, entry);
    double ay = value_of(values, OJ_PAIR_FROM_Y, entry);
    double bx = value_of(values, OJ_PAIR_NEAREST_X, entry);
    double by = value_of(values, OJ_PAIR_NEAREST_Y, entry);
    double bearing = value_of(values, OJ_PAIR_BEARING, entry);
    struct oj_flat point = {
        .n_features = 1, .n_vertices = 1, .x = &bx, .y = &by};
    double *off = sphere_matrix(&point, join, 1);
    double between = (double)(angle(to_vector(ax, ay), to_vector(bx, by)) * R);
    double t = tolerance(metres);
    expect(fabs(between - metres) <= t, "seed %llu: %.9f, not %.9f",
           (unsigned long long)seed, between, metres);
    expect(off[feature] <= t, "seed %llu: %.9f from the feature",
           (unsigned long long)seed, off[feature]);
    oj_free(off);
    if (isnan(bearing))
        expect(metres < 1e-6, "seed %llu: no bearing at %.9f",
               (unsigned long long)seed, metres);
    else if (metres > 1e-3 && metres < 19e6)
        expect(miss(ax, ay, bearing, metres, bx, by) < 1e-4,
               "seed %llu: missed by %.9f", (unsigned long long)seed,
               miss(ax, ay, bearing, metres, bx, by));
}

TEST(random_pairs)
{
    static const unsigned kinds[] = {OJ_PART_POINT, OJ_PART_LINE,
                                     OJ_PART_POLYGON, 7};
    int64_t n_pairs = 0;
    EACH_ROUND(150)
    {
        LAYER a = {0}, b = {0};
        struct oj_pair_values values = {0}, other = {0};
        MATCHES m = {0};
        struct oj_flat va, vb;
        struct region region;
        region = pick_region();
        add_features(&a, &region, 1 + pick(25), OJ_PART_POINT, 1);
        add_features(&b, &region, 1 + pick(20), kinds[pick(4)], 1);
        va = oj_flat_buf_view(&a);
        vb = oj_flat_buf_view(&b);
        find(&va, &vb, 1, &m, &values);
        find(&va, &vb, 3, &m, &other);
        for (int64_t row = 0; row < m.n_rows; row++)
        {
            int64_t entry = oj_matches_first(&m, row);
            if (oj_matches_end(&m, row) == entry)
                continue;
            check_pair(&vb, m.join_row[entry], m.measure[entry], &values,
                       entry);
            n_pairs++;
        }
        for (int i = 0; i < OJ_N_PAIR_VALUES; i++)
        {
            if (values.value[i] != NULL && values.n_entries > 0)
                ck_assert_mem_eq(values.value[i], other.value[i],
                                 (size_t)values.n_entries *
                                     sizeof *values.value[i]);
        }
        oj_pair_values_free(&values);
        oj_pair_values_free(&other);
    }
    ck_assert_int_gt(n_pairs, 500);
}

int main(void)
{
    tests_open("sphere_points");
    return tests_run();
}
