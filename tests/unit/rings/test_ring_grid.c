/* Point in a large ring by cells equals the test of all edges, for every kind
 * of ring and every difficult place of the point.
 * Kind: property, degenerate, large. OGRJOIN_TEST_LONG=1 runs fifty times as
 * long; OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../random_rings.h"
#include "../run_tests.h"

#include "../../../algs/foundations/base/oj_feature_box.h"
#include "../../../algs/geometry/rings/edge_grid.h"
#include "../../../algs/joins/within/cpu_ring_box_index.h"
#include "../../../flatten/base/oj_alloc.h"

#include <stdio.h>

static struct oj_error error;
static struct test_ring ring;
/* Returns 1 if signs are exact for a coordinate of this magnitude: it is
 * neither tiny nor huge. */
static int is_in_range(double v)
{
    return v == 0.0 || (fabs(v) > 1e-140 && fabs(v) < 1e140);
}

static int is_ring_in_range(void)
{
    for (int64_t i = 0; i < ring.n; i++)
    {
        if (!is_in_range(ring.x[i]) || !is_in_range(ring.y[i]))
            return 0;
    }
    return 1;
}

static int ring_in_range; /* 1 if the current ring is in range */

static int64_t n_at[3]; /* number of points, by enum oj_location */

static void check_point(const struct oj_edge_grid *grid, double x, double y)
{
    struct oj_box box = oj_box_of_points(ring.x, ring.y, ring.n);
    enum oj_location truth = oj_ring_locate(x, y, ring.x, ring.y, ring.n);
    enum oj_location by_grid = truth, by_plain = truth, walked, walked_plain;
    if (oj_box_contains_point(&box, x, y))
    {
        struct oj_edge_grid plain = *grid;
        plain.kernel = &oj_ring_plain;
        by_grid = oj_edge_grid_locate(grid, x, y);
        by_plain = oj_edge_grid_locate(&plain, x, y);
    }
    walked = oj_ring_locate_fast(grid->kernel, x, y, ring.x, ring.y, ring.n);
    walked_plain =
        oj_ring_locate_fast(&oj_ring_plain, x, y, ring.x, ring.y, ring.n);
    if (!ring_in_range || !is_in_range(x) || !is_in_range(y))
        return; /* outside of the exact range any answer is accepted */
    n_at[truth]++;
    expect(by_grid == truth && by_plain == truth && walked == truth &&
               walked_plain == truth,
           "seed %llu, ring of %d vertices, (%a %a): grid %d, plain grid %d, "
           "walks %d, %d, truth %d",
           (unsigned long long)seed, (int)ring.n, x, y, (int)by_grid,
           (int)by_plain, (int)walked, (int)walked_plain, (int)truth);
}

/* Stores a place beside edges and vertices, on them, or at their height, in *x
 * and *y. */
static void pick_place(const struct oj_edge_grid *grid, double *x, double *y)
{
    int64_t n = ring.n - 1;
    int64_t i = (int64_t)(random_bits() % (uint64_t)n);
    int64_t j = (int64_t)(random_bits() % (uint64_t)n);
    double t = one_in(3) ? 0.5 : unit();
    switch (pick(7))
    {
        case 0: /* a vertex */
            *x = ring.x[i];
            *y = ring.y[i];
            break;
        case 1: /* on an edge */
        case 2:
            *x = ring.x[i] + t * (ring.x[i + 1] - ring.x[i]);
            *y = ring.y[i] + t * (ring.y[i + 1] - ring.y[i]);
            break;
        case 3: /* the x of one vertex and the y of another */
            *x = ring.x[i];
            *y = ring.y[j];
            break;
        case 4: /* halfway between vertices, often on a lattice */
            *x = 0.5 * (ring.x[i] + ring.x[j]);
            *y = 0.5 * (ring.y[i] + ring.y[j]);
            break;
        case 5: /* on the border of a cell */
            *x = grid->frame.x0 +
                 (double)pick((int)grid->nx + 1) * grid->frame.cell;
            *y = grid->frame.y0 +
                 (double)pick((int)grid->ny + 1) * grid->frame.cell;
            break;
        default:
            *x = between(ring.x[i], ring.x[j]);
            *y = between(ring.y[j], ring.y[i]);
            break;
    }
    if (one_in(3))
        *x = nudge(*x, 1);
    if (one_in(3))
        *y = nudge(*y, 1);
}

static void check_corners(const struct oj_edge_grid *grid)
{
    struct oj_box box = oj_box_of_points(ring.x, ring.y, ring.n);
    for (int corner = 0; corner < 4; corner++)
    {
        double x = corner & 1 ? box.x0 : box.x1;
        double y = corner & 2 ? box.y0 : box.y1;
        check_point(grid, x, y);
        check_point(grid, nextafter(x, INFINITY), y);
        check_point(grid, nextafter(x, -INFINITY), y);
        check_point(grid, x, nextafter(y, INFINITY));
        check_point(grid, x, nextafter(y, -INFINITY));
        check_point(grid, x + 1e9, y);
        check_point(grid, x, y - 1e9);
    }
}

static void check_ring(int n_points)
{
    struct oj_edge_grid grid;
    double n_cells;
    n_cells = pick(2) ? 0.0 : exp2(between(0.0, 14.0));
    ring_in_range = is_ring_in_range();
    ck_assert_int_eq(oj_edge_grid_of_ring(&grid, ring.x, ring.y, ring.n, NULL,
                                          n_cells, &error),
                     OJ_OK);
    /* memory must depend on the numbers of vertices and cells, not on the
     * shape */
    expect(oj_edge_grid_bytes(&grid) <
               400 * ring.n + 10000 + 50 * (int64_t)n_cells,
           "seed %llu: %lld bytes for %d vertices, %d x %d cells of %g",
           (unsigned long long)seed, (long long)oj_edge_grid_bytes(&grid),
           (int)ring.n, (int)grid.nx, (int)grid.ny, grid.frame.cell);
    for (int i = 0; i < n_points; i++)
    {
        double x, y;
        pick_place(&grid, &x, &y);
        check_point(&grid, x, y);
    }
    check_corners(&grid);
    oj_edge_grid_free(&grid);
}

static int64_t pick_size(void)
{
    if (one_in(10))
        return 3 + pick(61);
    return (int64_t)(64.0 * exp2(between(0.0, 6.3)));
}

TEST(same_as_edge_by_edge)
{
    static const double moves[][3] = {
        {1, 0, 0},      {1, 1e7, -1e7},    {1e-7, 0, 0},
        {1e-7, 1, 1},   {1e-7, 1e7, 5e6},  {1e7, 0, 1e12},
        {0.1, 0.3, -7}, {1.0 / 3, 1e5, 0}, {0x1p-20, 1e7, 1e7}};
    int64_t n = rounds(1000);
    EACH_ROUND(1000)
    {
        const double *move;
        move = moves[pick(2) ? 0 : pick(9)];
        ring_make(&ring, (enum ring_kind)pick(RING_N_KINDS), pick_size());
        ring_move(&ring, move[0], move[1], move[2]);
        check_ring(300);
    }
    printf("%lld points outside, %lld inside, %lld on the boundary\n",
           (long long)n_at[OJ_OUTSIDE], (long long)n_at[OJ_INSIDE],
           (long long)n_at[OJ_ON_BOUNDARY]);
    ck_assert(n < 100 || (n_at[OJ_OUTSIDE] > n && n_at[OJ_INSIDE] > n &&
                          n_at[OJ_ON_BOUNDARY] > n));
}

/* Integer coordinates. Tests every point of the lattice, and points between. */
TEST(every_place_of_small_lattices)
{
    EACH_ROUND(60)
    {
        struct oj_edge_grid grid;
        ring_make(&ring, pick(2) ? RING_LATTICE : RING_STAIRS, 64 + pick(200));
        ring_in_range = is_ring_in_range();
        ck_assert_int_eq(oj_edge_grid_of_ring(&grid, ring.x, ring.y, ring.n,
                                              NULL, 0.0, &error),
                         OJ_OK);
        for (double x = -1.0; x <= 16.0; x += 0.5)
        {
            for (double y = -1.0; y <= 16.0; y += 0.5)
                check_point(&grid, x, y);
        }
        oj_edge_grid_free(&grid);
    }
}

/* Magnitudes whose squares and reciprocals are outside of the range of
 * double. */
TEST(extreme_sizes)
{
    static const double scales[] = {1e-320, 1e-310, 1e-160, 1e-130, 1e-20,
                                    1e20,   1e130,  1e137,  1e154,  1e300};
    EACH_ROUND(120)
    {
        double scale;
        scale = scales[pick(10)];
        ring_make(&ring, (enum ring_kind)pick(RING_N_KINDS), 64 + pick(300));
        ring_move(&ring, scale, 0.0, 0.0);
        check_ring(60);
    }
}

/* For every edge, a frame lists columns in each row. They must contain all
 * points of the edge in this row. Edges have any length and slope, and may be
 * smaller or larger than the frame. Some are nearly horizontal or vertical. */
TEST(edges_stay_in_their_columns)
{
    static const double sizes[] = {1e-9, 1e-3, 1.0, 1e5, 1e12};
    int64_t n_narrow = 0, n = rounds(20000);
    EACH_ROUND(20000)
    {
        struct oj_edge_frame f;
        struct oj_edge_rows e;
        double size, origin, ax, ay, bx, by;
        size = sizes[pick(5)];
        origin = pick(2) ? 0.0 : between(-1e4, 1e4) * size;
        f.x0 = origin;
        f.y0 = origin * between(-1.0, 1.0);
        f.last_x = 1 + pick(pick(2) ? 40 : OJ_FRAME_MOST - 2);
        f.last_y = 1 + pick(pick(2) ? 40 : OJ_FRAME_MOST - 2);
        f.cell = fmax(size / fmax(f.last_x, f.last_y),
                      1e-12 * fmax(fabs(f.x0), fabs(f.y0)));
        f.inverse = 1.0 / f.cell;
        ax = f.x0 + between(-0.2, 1.2) * f.last_x * f.cell;
        ay = f.y0 + between(-0.2, 1.2) * f.last_y * f.cell;
        bx = one_in(4) ? nudge(ax, 3) : ax + between(-2.0, 2.0) * size;
        by = one_in(4) ? ay + between(-2.0, 2.0) * f.cell
                       : ay + between(-2.0, 2.0) * size;
        e = oj_edge_rows_of(&f, ax, ay, bx, by);
        n_narrow += e.is_narrow;
        for (int k = 0; k <= 64; k++)
        {
            double t = k < 64 ? unit() : 1.0;
            double x = k == 0 ? ax : k == 64 ? bx : ax + t * (bx - ax);
            double y = k == 0 ? ay : k == 64 ? by : ay + t * (by - ay);
            int32_t row = oj_frame_row(&f, y), column = oj_frame_column(&f, x);
            int32_t from, to;
            if (x < f.x0 || y < f.y0 || x > f.x0 + (f.last_x + 1.0) * f.cell ||
                y > f.y0 + (f.last_y + 1.0) * f.cell)
                continue;
            oj_edge_columns(&f, &e, row, &from, &to);
            expect(row >= e.window.row0 && row <= e.window.row1 &&
                       column >= from && column <= to,
                   "seed %llu: (%a %a) in row %d, column %d of %d .. %d",
                   (unsigned long long)seed, x, y, (int)row, (int)column,
                   (int)from, (int)to);
        }
    }
    ck_assert(n_narrow > n / 10);
}

/* Several rings side by side. The even-odd rule is applied to all of them
 * together. */
TEST(several_rings)
{
    static const struct oj_edge_fineness fine = {12.0, 12.0, 12.0, 4.0};
    static double x[4 * RING_CAPACITY], y[4 * RING_CAPACITY];
    EACH_ROUND(200)
    {
        struct oj_edge_chains chains = {.x = x, .y = y, .has_inside = 1};
        int64_t offset[5] = {7, 7, 7, 7, 7};
        struct oj_edge_extent extent;
        struct oj_edge_grid grid;
        chains.n = 1 + pick(4);
        chains.offset = offset;
        for (int64_t r = 0; r < chains.n; r++)
        {
            ring_make(&ring, (enum ring_kind)pick(RING_N_KINDS), 4 + pick(200));
            memcpy(x + chains.n_vertices, ring.x, (size_t)ring.n * sizeof *x);
            memcpy(y + chains.n_vertices, ring.y, (size_t)ring.n * sizeof *y);
            chains.n_vertices += ring.n;
            offset[r + 1] = 7 + chains.n_vertices;
        }
        extent = oj_edge_measure_extent(x, y, chains.n_vertices);
        ck_assert_int_eq(
            oj_edge_grid_build(&grid, &chains, &extent, &fine, &error), OJ_OK);
        for (int k = 0; k < 300; k++)
        {
            int64_t v = pick((int)chains.n_vertices);
            double px = pick(2) ? x[v] : between(extent.x0, extent.x1);
            double py = pick(2) ? y[v] : between(extent.y0, extent.y1);
            int truth = 0;
            for (int64_t r = 0; r < chains.n && truth != OJ_ON_BOUNDARY; r++)
            {
                int64_t at = offset[r] - 7;
                enum oj_location one = oj_ring_locate(
                    px, py, x + at, y + at, offset[r + 1] - offset[r]);
                truth =
                    one == OJ_ON_BOUNDARY ? OJ_ON_BOUNDARY : truth ^ (int)one;
            }
            expect((int)oj_edge_grid_locate(&grid, px, py) == truth,
                   "seed %llu: (%a %a) is at %d", (unsigned long long)seed, px,
                   py, truth);
        }
        oj_edge_grid_free(&grid);
    }
}

/* The number of vertices is checked before a vertex is read. */
TEST(too_few_or_too_many_vertices)
{
    static const double x[2], y[2];
    struct oj_edge_grid grid;
    ck_assert_int_eq(oj_edge_grid_of_ring(&grid, x, y, 1, NULL, 0.0, &error),
                     OJ_ERR_INTERNAL);
    ck_assert_int_eq(oj_edge_grid_of_ring(&grid, x, y,
                                          OJ_EDGE_GRID_VERTICES + 1, NULL, 0.0,
                                          &error),
                     OJ_ERR_LIMIT);
    ck_assert_ptr_nonnull(
        strstr(error.message, "a ring has 134217729 vertices; at most"));
}

/* The message about a ring of an indexed layer names the feature by its FID. */
TEST(feature_of_a_ring_with_too_many_vertices)
{
    static const int64_t fid[] = {70};
    static const double x[] = {0, 1, 1, 0, 0}, y[] = {0, 0, 1, 1, 0};
    const struct oj_flat flat = {.n_features = 1, .fid = fid, .x = x, .y = y};
    const struct oj_located_ring located = {.n_vertices = 134217729};
    static struct oj_late_grid late;
    struct oj_ring_cells cells = {.flat = &flat,
                                  .n_rings = 1,
                                  .n_grids = 1,
                                  .grid = &late,
                                  .n_points = 8};
    const struct oj_edge_grid *grid;
    ck_assert_int_eq(oj_ring_cells_build_grid(&cells, &located, &grid, &error),
                     OJ_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(
        error.message, "feature 70 of the join layer: a ring has 134217729"));
    ck_assert_ptr_null(grid);
}

/* The message about a ring of a distance join names the feature by its FID: the
 * second feature, whose second ring is too long. */
TEST(feature_of_a_ring_of_a_layer)
{
    static const int64_t fid[] = {70, 71};
    static const double x[8], y[8];
    static const int64_t part_offset[] = {0, 1, 2}, ring_offset[] = {0, 1, 3};
    static const int64_t vertex_offset[] = {0, 4, 8, 134217737};
    static const uint8_t part_kind[] = {OJ_PART_POLYGON, OJ_PART_POLYGON};
    const struct oj_flat flat = {.n_features = 2,
                                 .n_parts = 2,
                                 .n_rings = 3,
                                 .n_vertices = 134217737,
                                 .part_offset = part_offset,
                                 .ring_offset = ring_offset,
                                 .vertex_offset = vertex_offset,
                                 .part_kind = part_kind,
                                 .fid = fid,
                                 .x = x,
                                 .y = y};
    struct oj_ring_grids grids;
    ck_assert_int_eq(oj_ring_grids_build(&grids, &flat, 2, &error),
                     OJ_ERR_LIMIT);
    ck_assert_ptr_nonnull(
        strstr(error.message, "feature 71: a ring has 134217729 vertices"));
}

int main(void)
{
    tests_open("ring grid");
    return tests_run();
}
