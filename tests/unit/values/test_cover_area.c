/* The area that several features cover together. Rectilinear rings are compared
 * with a count of cells, valid polygons with GEOS, and rings of every difficult
 * kind with a count of places. Then every allocation fails in turn.
 * Kinds: properties, memory, degenerate. */
#include "../../../algs/foundations/base/oj_feature_box.h"
#include "../../../algs/pairs/values/oj_cover_area.h"
#include "../../../algs/references/geos/geos_pairs.h"
#include "../plain_pairs.h"
#include "../random_rings.h"
#include "../run_tests.h"

#include <float.h>

enum
{
    SIZE = 24, /* cells along a side of the lattice */
    MOST = 12  /* features of the join side */
};

/* ---- layers -------------------------------------------------------------- */

static void begin_polygon(struct oj_flat_buf *buf)
{
    must(oj_flat_buf_begin_part(buf, OJ_PART_POLYGON, &error));
}

static void append_ring(struct oj_flat_buf *buf, const double *xs,
                        const double *ys, int64_t n)
{
    double *x, *y;
    must(oj_flat_buf_begin_ring(buf, &error));
    must(oj_flat_buf_add_vertices(buf, n, &x, &y, &error));
    memcpy(x, xs, (size_t)n * sizeof *x);
    memcpy(y, ys, (size_t)n * sizeof *y);
}

/* Adds a closed path along the axes with integer vertices. The path may cross
 * and cover itself. */
static void add_rectilinear_ring(struct oj_flat_buf *buf)
{
    double x[16], y[16];
    int n = 2 * (2 + pick(5));
    for (int i = 0; i < n; i += 2)
    {
        x[i] = pick(SIZE + 1);
        y[i] = i > 0 ? y[i - 1] : pick(SIZE + 1);
        x[i + 1] = x[i];
        y[i + 1] = pick(SIZE + 1);
    }
    y[n - 1] = y[0];
    x[n] = x[0];
    y[n] = y[0];
    append_ring(buf, x, y, n + 1);
}

static void add_rectilinear_feature(struct oj_flat_buf *buf)
{
    must(oj_flat_buf_begin_feature(buf, 0, &error));
    for (int part = pick(3); part >= 0; part--)
    {
        begin_polygon(buf);
        for (int ring = pick(2); ring >= 0; ring--)
            add_rectilinear_ring(buf);
    }
    must(oj_flat_buf_end_feature(buf, &error));
}

/* ---- references ---------------------------------------------------------- */

/* Returns 1 if the place is in a polygon part of the feature, by the even-odd
 * rule over the rings of each part. */
static int is_in_feature(const struct oj_flat *flat, int64_t feature, double x,
                         double y)
{
    for (int64_t part = flat->part_offset[feature];
         part < flat->part_offset[feature + 1]; part++)
    {
        int is_odd = 0;
        int64_t v = flat->vertex_offset[flat->ring_offset[part]];
        for (int64_t ring = flat->ring_offset[part];
             ring < flat->ring_offset[part + 1]; ring++)
        {
            for (; v + 1 < flat->vertex_offset[ring + 1]; v++)
            {
                double x0 = flat->x[v], y0 = flat->y[v];
                double x1 = flat->x[v + 1], y1 = flat->y[v + 1];
                if ((y0 <= y) != (y1 <= y))
                    is_odd ^= x0 + (y - y0) / (y1 - y0) * (x1 - x0) <= x;
            }
            v = flat->vertex_offset[ring + 1];
        }
        if (is_odd)
            return 1;
    }
    return 0;
}

static void count_cells(const struct oj_flat *row, const struct oj_flat *joins,
                        double *covered, double *whole)
{
    *covered = *whole = 0.0;
    for (int i = 0; i < SIZE * SIZE; i++)
    {
        double x = i % SIZE + 0.5, y = (double)(i / SIZE) + 0.5;
        int is_covered = 0;
        if (!is_in_feature(row, 0, x, y))
            continue;
        for (int64_t f = 0; f < joins->n_features; f++)
            is_covered |= is_in_feature(joins, f, x, y);
        *whole += 1.0;
        *covered += is_covered;
    }
}

static struct oj_flat_buf row_buf, join_buf;
static struct oj_cover_work work;
static const int32_t all[MOST] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static void measure(double *covered, double *whole)
{
    const struct oj_flat row = oj_flat_buf_view(&row_buf);
    const struct oj_flat joins = oj_flat_buf_view(&join_buf);
    int is_measured;
    must(oj_cover_area(&work, &row, 0, &joins, all, joins.n_features, covered,
                       whole, &is_measured, &error));
    ck_assert_int_eq(is_measured, 1);
}

/* ---- tests --------------------------------------------------------------- */

TEST_LOOP(property_cells_of_rectilinear_rings, 0, 200)
{
    double covered, whole, expected, all_of_row;
    random_state = (uint64_t)_i * 77 + 5;
    for (int round = 0; round < 5; round++)
    {
        struct oj_flat row, joins;
        oj_flat_buf_clear(&row_buf);
        oj_flat_buf_clear(&join_buf);
        add_rectilinear_feature(&row_buf);
        for (int n = pick(MOST + 1); n > 0; n--)
            add_rectilinear_feature(&join_buf);
        if (join_buf.n_features == 0)
            continue;
        row = oj_flat_buf_view(&row_buf);
        joins = oj_flat_buf_view(&join_buf);
        count_cells(&row, &joins, &expected, &all_of_row);
        measure(&covered, &whole);
        ck_assert_msg(covered == expected && whole == all_of_row,
                      "%.17g of %.17g, expected %.17g of %.17g", covered, whole,
                      expected, all_of_row);
    }
}

static void append_star(struct oj_flat_buf *buf, double x, double y,
                        double size)
{
    double xs[40], ys[40];
    int n = 3 + pick(30);
    for (int i = 0; i < n; i++)
    {
        double angle = 6.283185307179586 * (double)i / (double)n;
        double r = size * between(0.3, 1.0);
        xs[i] = x + r * cos(angle);
        ys[i] = y + r * sin(angle);
    }
    xs[n] = xs[0];
    ys[n] = ys[0];
    must(oj_flat_buf_begin_feature(buf, 0, &error));
    begin_polygon(buf);
    append_ring(buf, xs, ys, n + 1);
    must(oj_flat_buf_end_feature(buf, &error));
}

/* Stars of any size around that of the row, which is often far from the origin.
 * Some equal the row, or each other. */
TEST_LOOP(property_geos_of_stars, 0, 300)
{
    double covered, whole, area, length;
    const double x = one_in(2) ? 0.0 : 1e6, y = one_in(2) ? 0.0 : -2e6;
    struct oj_geos_pairs *geos;
    struct oj_flat row, joins;
    random_state = (uint64_t)_i * 91 + 3;
    oj_flat_buf_clear(&row_buf);
    oj_flat_buf_clear(&join_buf);
    append_star(&row_buf, x, y, 10.0);
    row = oj_flat_buf_view(&row_buf);
    for (int n = 2 + pick(MOST - 1); n > 0; n--)
    {
        if (one_in(12))
            must(oj_flat_buf_copy(&join_buf, &row, 0, 0, &error));
        else
            append_star(&join_buf, x + between(-15.0, 15.0),
                        y + between(-15.0, 15.0), pow(10.0, between(0.0, 3.0)));
    }
    joins = oj_flat_buf_view(&join_buf);
    must(oj_geos_pairs_open(NULL, &joins, 0, &geos, &error));
    oj_geos_pairs_set_input(geos, &row);
    measure(&covered, &whole);
    ck_assert_int_eq(oj_geos_pairs_measure_cover(geos, 0, all, joins.n_features,
                                                 0, &area, &length),
                     OJ_GEOS_YES);
    ck_assert_msg(fabs(covered - area) <= 1e-8 * whole,
                  "%.17g, GEOS %.17g, of %.17g", covered, area, whole);
    must(oj_geos_pairs_area(geos, 1, 0, &area, &error));
    ck_assert(fabs(whole - area) <= 1e-12 * area);
    oj_geos_pairs_close(geos);
}

/* Tests many places in the row's box. Returns the area of those that are
 * covered. */
static double count_places(const struct oj_flat *row,
                           const struct oj_flat *joins,
                           const struct oj_box *box)
{
    enum
    {
        STEPS = 400
    };
    double covered = 0.0;
    for (int i = 0; i < STEPS * STEPS; i++)
    {
        double x = box->x0 + (box->x1 - box->x0) * (i % STEPS + unit()) / STEPS;
        double y = box->y0 +
                   (box->y1 - box->y0) * ((double)(i / STEPS) + unit()) / STEPS;
        int is_covered = 0;
        if (!is_in_feature(row, 0, x, y))
            continue;
        for (int64_t f = 0; f < joins->n_features && !is_covered; f++)
            is_covered = is_in_feature(joins, f, x, y);
        covered += is_covered;
    }
    return covered * (box->x1 - box->x0) * (box->y1 - box->y0) /
           (STEPS * STEPS);
}

/* Rings that cross, touch and cover themselves. */
TEST_LOOP(property_places_in_wild_rings, 0, 56)
{
    static struct test_ring ring;
    struct oj_flat row, joins;
    struct oj_box box;
    double covered, whole, expected;
    random_state = (uint64_t)_i + 1;
    oj_flat_buf_clear(&row_buf);
    oj_flat_buf_clear(&join_buf);
    for (int i = 0; i < 4; i++)
    {
        struct oj_flat_buf *to = i == 0 ? &row_buf : &join_buf;
        ring_make(&ring,
                  i == 0 ? RING_WILD : (enum ring_kind)(_i % RING_N_KINDS),
                  5 + pick(20));
        must(oj_flat_buf_begin_feature(to, 0, &error));
        begin_polygon(to);
        append_ring(to, ring.x, ring.y, ring.n);
        must(oj_flat_buf_end_feature(to, &error));
    }
    row = oj_flat_buf_view(&row_buf);
    joins = oj_flat_buf_view(&join_buf);
    measure(&covered, &whole);
    ck_assert(covered >= 0.0 && covered <= whole * (1.0 + 1e-12));
    box = oj_box_of_feature(&row, 0);
    expected = count_places(&row, &joins, &box);
    ck_assert_msg(fabs(covered - expected) <
                      0.01 * (box.x1 - box.x0) * (box.y1 - box.y0),
                  "%g, by places %g, of %g", covered, expected, whole);
}

TEST(degenerate_what_covers_equals_the_whole)
{
    double covered, whole;
    random_state = 4;
    for (int i = 0; i < 200; i++)
    {
        oj_flat_buf_clear(&row_buf);
        oj_flat_buf_clear(&join_buf);
        append_star(&row_buf, 1e5, 1e5, 1.0);
        append_star(&join_buf, 1e5, 1e5, 1.0);
        append_star(&join_buf, 1e5, 1e5, 100.0);
        measure(&covered, &whole);
        ck_assert(covered == whole);
    }
}

/* Two combs across each other. They need more steps than are allowed, so the
 * area is not measured. */
TEST(large_combs_are_left_to_the_caller)
{
    enum
    {
        TEETH = 3000
    };
    double *x = oj_calloc(2 * TEETH + 3, sizeof *x);
    double *y = oj_calloc(2 * TEETH + 3, sizeof *y);
    double covered = -1.0, whole = -1.0;
    struct oj_flat row, joins;
    int is_measured = 1;
    oj_flat_buf_clear(&row_buf);
    oj_flat_buf_clear(&join_buf);
    for (int side = 0; side < 2; side++)
    {
        struct oj_flat_buf *to = side == 0 ? &row_buf : &join_buf;
        for (int i = 0; i < 2 * TEETH; i++)
        {
            const double along = i / 2, across = (i + 1) / 2 % 2 ? TEETH : 1.0;
            x[i] = side == 0 ? along : across;
            y[i] = side == 0 ? across : along;
        }
        x[2 * TEETH] = side == 0 ? TEETH : 0.0;
        y[2 * TEETH] = side == 0 ? 0.0 : TEETH;
        x[2 * TEETH + 1] = y[2 * TEETH + 1] = 0.0;
        x[2 * TEETH + 2] = x[0];
        y[2 * TEETH + 2] = y[0];
        must(oj_flat_buf_begin_feature(to, 0, &error));
        begin_polygon(to);
        append_ring(to, x, y, 2 * TEETH + 3);
        must(oj_flat_buf_end_feature(to, &error));
    }
    row = oj_flat_buf_view(&row_buf);
    joins = oj_flat_buf_view(&join_buf);
    must(oj_cover_area(&work, &row, 0, &joins, all, 1, &covered, &whole,
                       &is_measured, &error));
    ck_assert_int_eq(is_measured, 0);
    ck_assert(covered == -1.0 && whole == -1.0);
    oj_free(x);
    oj_free(y);
}

TEST(memory_every_allocation_fails)
{
    struct oj_flat row, joins;
    double covered, whole, expected;
    int is_measured;
    random_state = 8;
    oj_flat_buf_clear(&row_buf);
    oj_flat_buf_clear(&join_buf);
    append_star(&row_buf, 0.0, 0.0, 10.0);
    for (int i = 0; i < MOST; i++)
        append_star(&join_buf, between(-9.0, 9.0), between(-9.0, 9.0), 8.0);
    row = oj_flat_buf_view(&row_buf);
    joins = oj_flat_buf_view(&join_buf);
    measure(&expected, &whole);
    for (int64_t i = 1;; i++)
    {
        struct oj_cover_work fresh = {0};
        oj_status status;
        oj_alloc_fail_at(i);
        status = oj_cover_area(&fresh, &row, 0, &joins, all, MOST, &covered,
                               &whole, &is_measured, &error);
        oj_alloc_fail_at(0);
        oj_cover_work_free(&fresh);
        ck_assert(status == OJ_OK || status == OJ_ERR_NOMEM);
        if (status != OJ_OK)
            continue;
        ck_assert(i > 4 && covered == expected);
        return;
    }
}

int main(void)
{
    tests_open("cover_area");
    return tests_run();
}
