/* The shared kernels. Orientation is compared with exact sums, distances and
 * point in ring with GEOS, and Morton codes with a loop over bits.
 * Kind: property, degenerate. OGRJOIN_TEST_LONG=1 runs fifty times as long. */
#include "../exact_sign.h"
#include "../exact_truth.h"
#include "../random_rings.h"
#include "../run_tests.h"

#include "../../../algs/foundations/kernels/oj_morton.h"
#include "../../../algs/foundations/kernels/oj_ring.h"
#include "../../../algs/references/validation/oj_validation.h"

#include <geos_c.h>

#include <stdio.h>

/* --- orientation -----------------------------------------------------------
 */

struct triple
{
    double ax, ay, bx, by, cx, cy;
};

static void check_triple(const struct triple *t)
{
    int truth = exact_orientation(t->ax, t->ay, t->bx, t->by, t->cx, t->cy);
    int ours = oj_orientation(t->ax, t->ay, t->bx, t->by, t->cx, t->cy);
    int turned = oj_orientation(t->bx, t->by, t->cx, t->cy, t->ax, t->ay);
    int reversed = oj_orientation(t->bx, t->by, t->ax, t->ay, t->cx, t->cy);
    expect(ours == truth && turned == truth && reversed == -truth,
           "seed %llu: (%a %a) (%a %a) (%a %a): %d, turned %d, "
           "reversed %d, exact %d",
           (unsigned long long)seed, t->ax, t->ay, t->bx, t->by, t->cx, t->cy,
           ours, turned, reversed, truth);
}

TEST(orientation_on_lattices)
{
    static const double scales[] = {1, 0x1p-30, 0x1p40, 0.1, 1e-7, 1e7, 3};
    static const double offsets[] = {0, 1, 1e7, 0x1p52, -1e-7, 1.0 / 3};
    seed = random_state = first_seed();
    for (int64_t i = rounds(300000); i > 0; i--)
    {
        struct triple t;
        double *v = &t.ax;
        int extent = 1 << pick(12);
        double scale = scales[pick(7)], offset = offsets[pick(6)];
        for (int c = 0; c < 6; c++)
            v[c] = offset + scale * (pick(2 * extent + 1) - extent);
        check_triple(&t);
    }
}

TEST(orientation_of_all_small_triples)
{
    for (int code = 0; code < 4096 * 64; code++)
    {
        struct triple t;
        double *v = &t.ax;
        int64_t det;
        for (int c = 0; c < 6; c++)
            v[c] = (code >> 3 * c & 7) - 3;
        det = (int64_t)((t.bx - t.ax) * (t.cy - t.ay) -
                        (t.by - t.ay) * (t.cx - t.ax));
        expect(oj_orientation(t.ax, t.ay, t.bx, t.by, t.cx, t.cy) ==
                   (det > 0) - (det < 0),
               "triple %d", code);
    }
}

/* Sets c to a point on the line through a and b, or just beside it. */
static void put_on_line(struct triple *t)
{
    double along = pick(4) ? between(-0.5, 1.5) : pick(9) / 8.0;
    t->cx = t->ax + along * (t->bx - t->ax);
    t->cy = t->ay + along * (t->by - t->ay);
    if (pick(2))
    {
        t->cx = nudge(t->cx, 2);
        t->cy = nudge(t->cy, 2);
    }
}

TEST(orientation_near_lines)
{
    static const int limits[][2] = {{-60, 60},    {0, 1},       {20, 24},
                                    {-460, 460},  {-1074, 498}, {-1074, -1050},
                                    {-570, -550}, {-1000, -990}};
    seed = random_state = first_seed();
    for (int64_t i = rounds(600000); i > 0; i--)
    {
        struct triple t;
        double *v = &t.ax;
        const int *limit = limits[pick(8)];
        for (int c = 0; c < 6; c++)
            v[c] = any_size(limit[0], limit[1]);
        if (one_in(8))
            t.bx = t.ax;
        if (one_in(8))
            t.by = t.ay;
        if (one_in(8))
            t.bx = nudge(t.ax, 3);
        if (one_in(8))
            t.by = nudge(t.ay, 3);
        if (one_in(16))
            v[pick(6)] = pick(2) ? 0.0 : -0.0;
        if (pick(4))
            put_on_line(&t);
        check_triple(&t);
    }
}

/* --- distances --------------------------------------------------------------
 */

static GEOSContextHandle_t geos;

static void open_geos(void)
{
    geos = GEOS_init_r();
    ck_assert_ptr_nonnull(geos);
}

static void close_geos(void)
{
    GEOS_finish_r(geos);
}

static GEOSGeometry *make_line(double ax, double ay, double bx, double by)
{
    GEOSCoordSequence *ends = GEOSCoordSeq_create_r(geos, 2, 2);
    GEOSCoordSeq_setXY_r(geos, ends, 0, ax, ay);
    GEOSCoordSeq_setXY_r(geos, ends, 1, bx, by);
    return GEOSGeom_createLineString_r(geos, ends);
}

/* Returns a random coordinate. kind is that of the round. */
static double pick_coordinate(int kind)
{
    switch (kind)
    {
        case 0:
            return pick(17) - 8;
        case 1:
            return between(-100.0, 100.0);
        case 2:
            return 1e7 + between(0.0, 100.0);
        case 3:
            return 1e-7 * pick(100);
        case 4:
            return any_size(-30, 30);
        case 5:
            return 1e7 + 1e-7 * pick(100);
        case 6:
            return any_size(-160, 160);
        case 7:
            return any_size(-560, -500); /* squares underflow */
        default:
            return any_size(-440, 440);
    }
}

/* number of segments so short that the kernel treats them as points */
static int64_t n_short;

static int is_short(const double end[4])
{
    double dx = end[2] - end[0], dy = end[3] - end[1];
    return dx * dx + dy * dy < DBL_MIN && (dx != 0.0 || dy != 0.0);
}

/* Asserts the bound of the rounding error that oj_validation.h states. */
static void check_rounding(const double end[4], double px, double py,
                           double distance)
{
    double x[2] = {end[0], end[2]}, y[2] = {end[1], end[3]};
    uint8_t kind = OJ_PART_LINE;
    int64_t one[2] = {0, 1}, two[2] = {0, 2};
    const struct oj_flat point = oj_flat_of_points(1, NULL, &px, &py);
    const struct oj_flat line = {.n_features = 1,
                                 .n_parts = 1,
                                 .n_rings = 1,
                                 .n_vertices = 2,
                                 .part_kinds = OJ_PART_LINE,
                                 .part_offset = one,
                                 .ring_offset = one,
                                 .vertex_offset = two,
                                 .part_kind = &kind,
                                 .x = x,
                                 .y = y};
    double length = hypot(x[1] - x[0], y[1] - y[0]);
    double off = OJ_VALIDATION_SLACK * (distance + length) + OJ_LEAST_DISTANCE;
    expect(
        exact_order(&point, 0, &line, 0, OJ_TO_INTERIOR, distance + off) <= 0 &&
            (distance <= off || exact_order(&point, 0, &line, 0, OJ_TO_INTERIOR,
                                            distance - off) >= 0),
        "seed %llu: (%a %a) to (%a %a, %a %a): %a is off by more than %a",
        (unsigned long long)seed, px, py, end[0], end[1], end[2], end[3],
        distance, off);
}

static void compare_distance(const GEOSGeometry *line, const double end[4],
                             double px, double py)
{
    GEOSGeometry *point = GEOSGeom_createPointFromXY_r(geos, px, py);
    double ours = oj_segment_distance(px, py, end[0], end[1], end[2], end[3]);
    double theirs = -1.0;
    expect(GEOSDistance_r(geos, point, line, &theirs) == 1, "GEOS raised");
    GEOSGeom_destroy_r(geos, point);
    check_rounding(end, px, py, ours);
    /* for so short segments GEOS gives an arbitrary number or NaN */
    if (is_short(end))
    {
        n_short++;
        return;
    }
    expect(bits_of(ours) == bits_of(theirs),
           "seed %llu: (%a %a) to (%a %a, %a %a): %a, GEOS %a",
           (unsigned long long)seed, px, py, end[0], end[1], end[2], end[3],
           ours, theirs);
}

TEST(distances_as_geos_has_them)
{
    seed = random_state = first_seed();
    open_geos();
    n_short = 0;
    for (int64_t i = rounds(200000); i > 0; i--)
    {
        double end[4];
        GEOSGeometry *line;
        int kind = pick(9);
        for (int c = 0; c < 4; c++)
            end[c] = pick_coordinate(kind);
        if (one_in(10))
        {
            end[2] = nudge(end[0], pick(3));
            end[3] = nudge(end[1], pick(3));
        }
        line = make_line(end[0], end[1], end[2], end[3]);
        for (int p = 0; p < 6; p++)
        {
            double x = pick_coordinate(kind), y = pick_coordinate(kind);
            double t = between(-0.2, 1.2);
            if (p == 1 || p == 2) /* near the segment */
            {
                x = nudge(end[0] + t * (end[2] - end[0]), p);
                y = nudge(end[1] + t * (end[3] - end[1]), p);
            }
            else if (p == 3) /* perpendicular to the segment at its start */
            {
                x = end[0] - (end[3] - end[1]);
                y = end[1] + (end[2] - end[0]);
            }
            else if (p == 4) /* near its end */
            {
                x = nudge(end[2], pick(2));
                y = nudge(end[3], pick(2));
            }
            compare_distance(line, end, x, y);
        }
        GEOSGeom_destroy_r(geos, line);
    }
    close_geos();
    printf("%lld distances from segments as short as points\n",
           (long long)n_short);
    expect(n_short > 1000, "few");
}

/* --- point in ring ----------------------------------------------------------
 */

static GEOSGeometry *make_polygon(const struct test_ring *ring)
{
    GEOSCoordSequence *seq = GEOSCoordSeq_create_r(geos, (unsigned)ring->n, 2);
    for (int64_t i = 0; i < ring->n; i++)
        GEOSCoordSeq_setXY_r(geos, seq, (unsigned)i, ring->x[i], ring->y[i]);
    return GEOSGeom_createPolygon_r(
        geos, GEOSGeom_createLinearRing_r(geos, seq), NULL, 0);
}

/* Returns 1 if GEOS computes a wrong orientation of an edge of the ring and the
 * point. */
static int geos_misjudges(const struct test_ring *r, double x, double y)
{
    for (int64_t i = 0; i + 1 < r->n; i++)
    {
        int sign =
            exact_orientation(r->x[i], r->y[i], r->x[i + 1], r->y[i + 1], x, y);
        if (GEOSOrientationIndex_r(geos, r->x[i], r->y[i], r->x[i + 1],
                                   r->y[i + 1], x, y) != sign ||
            GEOSOrientationIndex_r(geos, r->x[i + 1], r->y[i + 1], r->x[i],
                                   r->y[i], x, y) != -sign)
            return 1;
    }
    return 0;
}

static int64_t n_misjudged;

static void compare_location(const struct test_ring *ring,
                             const GEOSGeometry *polygon,
                             const GEOSPreparedGeometry *prepared, double x,
                             double y)
{
    enum oj_location ours = oj_ring_locate(x, y, ring->x, ring->y, ring->n);
    GEOSGeometry *point = GEOSGeom_createPointFromXY_r(geos, x, y);
    double distance = -1.0;
    int inside, touched, differs;
    expect(GEOSDistance_r(geos, point, polygon, &distance) == 1, "GEOS raised");
    inside = GEOSPreparedContainsProperly_r(geos, prepared, point);
    touched = GEOSPreparedIntersects_r(geos, prepared, point);
    /* a distance can underflow to 0 beside the border */
    differs = ours != OJ_OUTSIDE && distance != 0.0;
    /* GEOS may take a ring of five vertices for a rectangle by mistake */
    if (ring->n != 5)
        differs |=
            inside != (ours == OJ_INSIDE) || touched != (ours != OJ_OUTSIDE);
    if (differs && geos_misjudges(ring, x, y))
        n_misjudged++;
    else
        expect(!differs,
               "seed %llu, ring of %d: (%a %a): ours %d, GEOS inside "
               "%d, touched %d, distance %g",
               (unsigned long long)seed, (int)ring->n, x, y, (int)ours, inside,
               touched, distance);
    GEOSGeom_destroy_r(geos, point);
}

static void pick_near_ring(const struct test_ring *ring, double *x, double *y)
{
    int64_t i = pick((int)ring->n - 1), j = pick((int)ring->n - 1);
    double t = pick(3) ? unit() : 0.5;
    if (one_in(3)) /* a point anywhere in its box */
    {
        *x = ring->x[i] + t * (ring->x[j] - ring->x[i]);
        *y = ring->y[j] + unit() * (ring->y[i] - ring->y[j]);
        return;
    }
    t = one_in(4) ? 0.0 : t;
    *x = ring->x[i] + t * (ring->x[i + 1] - ring->x[i]);
    *y = ring->y[i] + t * (ring->y[i + 1] - ring->y[i]);
    if (one_in(3))
        *x = ring->x[j]; /* at the height of a vertex */
    if (one_in(3))
        *y = ring->y[j];
    if (one_in(4))
    {
        *x = nudge(*x, 1);
        *y = nudge(*y, 1);
    }
}

TEST(locations_as_geos_has_them)
{
    static struct test_ring ring;
    static const double moves[][2] = {{1, 0},    {1, 1e7},   {1e-7, 0},
                                      {1e-7, 1}, {0.1, 0.3}, {1e7, -1e9}};
    int64_t n = rounds(6000);
    open_geos();
    n_misjudged = 0;
    EACH_ROUND(6000)
    {
        GEOSGeometry *polygon;
        const GEOSPreparedGeometry *prepared;
        const double *move;
        move = moves[pick(2) ? 0 : pick(6)];
        ring_make(&ring, (enum ring_kind)pick(RING_N_KINDS), 3 + pick(20));
        ring_move(&ring, move[0], move[1], -move[1]);
        polygon = make_polygon(&ring);
        ck_assert_ptr_nonnull(polygon);
        prepared = GEOSPrepare_r(geos, polygon);
        for (int p = 0; p < 30; p++)
        {
            double x, y;
            pick_near_ring(&ring, &x, &y);
            compare_location(&ring, polygon, prepared, x, y);
        }
        GEOSPreparedGeom_destroy_r(geos, prepared);
        GEOSGeom_destroy_r(geos, polygon);
    }
    close_geos();
    printf("%lld locations that GEOS rounds\n", (long long)n_misjudged);
    ck_assert(n_misjudged < n);
}

/* --- Morton codes -----------------------------------------------------------
 */

TEST(morton_codes)
{
    random_state = first_seed();
    for (int i = 0; i < 100000; i++)
    {
        uint32_t x = (uint32_t)pick(65536), y = (uint32_t)pick(65536);
        uint32_t code = 0;
        for (int bit = 0; bit < 16; bit++)
            code |= (x >> bit & 1) << 2 * bit | (y >> bit & 1) << (2 * bit + 1);
        expect(oj_morton(x, y) == code, "code of %u %u", x, y);
    }
    ck_assert_uint_eq(oj_morton(65535, 65535), UINT32_MAX);
    ck_assert_uint_eq(oj_morton_column(NAN, 0.0, 1.0), 0);
    ck_assert_uint_eq(oj_morton_column(-INFINITY, 0.0, 1.0), 0);
    ck_assert_uint_eq(oj_morton_column(INFINITY, 0.0, 1.0), 65535);
    ck_assert_uint_eq(oj_morton_column(INFINITY, 0.0, 0.0), 0);
    ck_assert_uint_eq(oj_morton_column(1e300, -1e300, 1e300), 65535);
    ck_assert_uint_eq(oj_morton_column(7.99, 0.0, 1.0), 7);
    ck_assert_uint_eq(oj_morton_column(65535.5, 0.0, 1.0), 65535);
}

int main(void)
{
    tests_open("kernels");
    return tests_run();
}
