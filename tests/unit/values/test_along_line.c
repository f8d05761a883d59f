/* Places along a line: known ones, and random ones compared with a plain loop.
 * Kind: unit, property. */
#include "../../../algs/foundations/kernels/oj_segment.h"
#include "../../../algs/pairs/values/oj_along_line.h"
#include "../plain_pairs.h"
#include "../run_tests.h"

#include <math.h>
#include <string.h>

#define ALL (OJ_ALONG_PERCENT | OJ_ALONG_SIDE | OJ_ALONG_BEARING)

/* a line of n vertices, as a layer */
struct line_layer
{
    struct oj_flat flat;
    int64_t part[2], ring[2], vertex[2];
    uint8_t kind;
};

static void set_line(struct line_layer *line, const double *x, const double *y,
                     int64_t n)
{
    *line = (struct line_layer){
        .part = {0, 1}, .ring = {0, 1}, .vertex = {0, n}, .kind = OJ_PART_LINE};
    line->flat = (struct oj_flat){.n_features = 1,
                                  .n_parts = 1,
                                  .n_rings = 1,
                                  .n_vertices = n,
                                  .part_kinds = OJ_PART_LINE,
                                  .part_offset = line->part,
                                  .part_kind = &line->kind,
                                  .ring_offset = line->ring,
                                  .vertex_offset = line->vertex,
                                  .x = x,
                                  .y = y};
}

TEST(truth_places)
{
    static const double x[] = {0, 0, 4, 4, 4, 0}, y[] = {0, 0, 0, 4, 4, 4};
    static const struct
    {
        double x, y, along, offset, side, segment, bearing;
    } known[] = {{1, 1, 1, 1, 1, 2, 90},    {1, -1, 1, -1, -1, 2, 90},
                 {2, 0, 2, 0, 0, 2, 90},    {4, 0, 4, 0, 0, 2, 90},
                 {-3, 0, 0, 3, 1, 2, 90},   {-3, -4, 0, -5, -1, 2, 90},
                 {7, -4, 4, -5, -1, 2, 90}, {7, 8, 8, -5, -1, 3, 0},
                 {-2, 4, 12, 2, 1, 5, 270}, {2, 3, 10, 1, 1, 5, 270}};
    struct line_layer line;
    struct oj_along_side side;
    set_line(&line, x, y, 6);
    must(oj_along_side_build(&side, &line.flat, 0, 1, &error));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    {
        const struct oj_along got = oj_along_measure_point(
            &side, 0, known[i].x, known[i].y, INFINITY, NULL, ALL);
        ck_assert_msg(
            got.along == known[i].along && got.offset == known[i].offset &&
                got.side == known[i].side && got.segment == known[i].segment &&
                got.bearing == known[i].bearing &&
                got.percent == 100.0 * (known[i].along / 12.0),
            "place %d: %g %g %g %g %g", (int)i, got.along, got.offset, got.side,
            got.segment, got.bearing);
    }
    ck_assert(isnan(
        oj_along_measure_point(&side, 0, (double)NAN, 0, INFINITY, NULL, ALL)
            .along));
    oj_along_side_free(&side);
}

/* M at a vertex, between two vertices, where a vertex has none, and beyond the
 * ends. The first segment has no length: the M of its end counts. */
TEST(truth_m_values)
{
    static const double x[] = {0, 0, 4, 4, 4, 0}, y[] = {0, 0, 0, 4, 4, 4};
    static const double m[] = {7, 10, 30, (double)NAN, 50, 40};
    static const struct
    {
        double x, y, m;
    } known[] = {{1, 1, 15},          {2, -9, 20},  {-3, 0, 10},
                 {4, -1, 30},         {7, 0, 30},   {4, 2, (double)NAN},
                 {7, 8, (double)NAN}, {1, 5, 42.5}, {-2, 4, 40},
                 {3.5, 5, 48.75}};
    struct line_layer line;
    struct oj_along_side side;
    set_line(&line, x, y, 6);
    line.flat.m = m;
    must(oj_along_side_build(&side, &line.flat, 0, 1, &error));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    {
        const struct oj_along got = oj_along_measure_point(
            &side, 0, known[i].x, known[i].y, INFINITY, NULL, ALL | OJ_ALONG_M);
        ck_assert_msg(got.m == known[i].m ||
                          (isnan(got.m) && isnan(known[i].m)),
                      "place %d: %g", (int)i, got.m);
        ck_assert(got.percent == 100.0 * (got.along / 12.0));
    }
    ck_assert(
        isnan(oj_along_measure_point(&side, 0, 1, 1, INFINITY, NULL, ALL).m));
    oj_along_side_free(&side);
}

/* A feature with a latitude beyond 90 is not on the sphere, so that its
 * segments have no lengths. Of two lines, only the second is measured. Under
 * Valgrind, a read of the vectors of the first, which do not exist, is an
 * error. */
TEST(truth_beyond_the_poles)
{
    static const int64_t one[] = {0, 1, 2}, vertex[] = {0, 3, 5};
    static const uint8_t kind[] = {OJ_PART_LINE, OJ_PART_LINE};
    static const double x[] = {0, 0, 0, 10, 12}, y[] = {0, 151, 2, 0, 0};
    const struct oj_flat flat = {.n_features = 2,
                                 .n_parts = 2,
                                 .n_rings = 2,
                                 .n_vertices = 5,
                                 .part_kinds = OJ_PART_LINE,
                                 .part_offset = one,
                                 .part_kind = kind,
                                 .ring_offset = one,
                                 .vertex_offset = vertex,
                                 .x = x,
                                 .y = y};
    struct oj_along_side side;
    struct oj_along got;
    must(oj_along_side_build(&side, &flat, 1, 1, &error));
    got = oj_along_measure_point(&side, 1, 11, 0, INFINITY, NULL, ALL);
    ck_assert_double_eq_tol(got.percent, 50, 1e-9);
    ck_assert(got.segment == 1);
    oj_along_side_free(&side);
}

/* Short and long lines, with an upper bound of the distance or without. The
 * bound may be too small. */
TEST_LOOP(property_first_of_the_nearest_segments, 0, 40)
{
    double x[90], y[90];
    uint64_t state = (uint64_t)_i + 1;
    int64_t n = 2 + 7 * (_i % 12);
    struct line_layer line;
    struct oj_along_side side;
    for (int64_t v = 0; v < n; v++)
    {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x[v] = (double)(state >> 60);
        y[v] = (double)(state >> 52 & 15);
    }
    set_line(&line, x, y, n);
    must(oj_along_side_build(&side, &line.flat, 0, 1, &error));
    for (int i = 0; i < 400; i++)
    {
        double px = i % 20 * 0.75, py = (double)(i / 20) * 0.75;
        double least = INFINITY;
        int64_t first = 0;
        for (int64_t v = 0; v + 1 < n; v++)
        {
            double d =
                oj_segment_distance(px, py, x[v], y[v], x[v + 1], y[v + 1]);
            int has_length = x[v] != x[v + 1] || y[v] != y[v + 1];
            if (has_length && d < least)
            {
                least = d;
                first = v;
            }
        }
        if (isinf(least))
            continue;
        for (int bound = 0; bound < 3; bound++)
        {
            const struct oj_along got =
                oj_along_measure_point(&side, 0, px, py,
                                       bound == 0   ? INFINITY
                                       : bound == 1 ? least
                                                    : least / 2,
                                       NULL, ALL);
            ck_assert(got.segment == (double)(first + 1));
            ck_assert(fabs(got.offset) == least);
        }
    }
    oj_along_side_free(&side);
}

/* A line that enters and leaves boxes of all levels: the first of the nearest
 * segments, with and without a bound. */
TEST(large_long_line)
{
    enum
    {
        N = 9000
    };
    static double x[N], y[N];
    uint64_t state = 7;
    struct line_layer line;
    struct oj_along_side side;
    for (int64_t v = 1; v < N; v++)
    {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x[v] = x[v - 1] + (double)(state >> 62) - 1.0;
        y[v] = y[v - 1] + (double)(state >> 60 & 3) - 1.5 + (v % 3000 > 1500);
    }
    set_line(&line, x, y, N);
    must(oj_along_side_build(&side, &line.flat, 0, 1, &error));
    for (int i = 0; i < 200; i++)
    {
        double px = x[i * 40] + i % 7 * 30, py = y[i * 40] - i % 5 * 100;
        double least = INFINITY;
        int64_t first = 0;
        for (int64_t v = 0; v + 1 < N; v++)
        {
            double d =
                oj_segment_distance(px, py, x[v], y[v], x[v + 1], y[v + 1]);
            if ((x[v] != x[v + 1] || y[v] != y[v + 1]) && d < least)
            {
                least = d;
                first = v;
            }
        }
        for (int bound = 0; bound < 2; bound++)
        {
            const struct oj_along got = oj_along_measure_point(
                &side, 0, px, py, bound == 0 ? INFINITY : least, NULL, ALL);
            ck_assert(got.segment == (double)(first + 1));
            ck_assert(fabs(got.offset) == least);
        }
    }
    oj_along_side_free(&side);
}

/* Many lines of 1 to 12 vertices with whole coordinates, so that segments are
 * often equally near, or have no length. */
struct short_lines
{
    struct oj_flat flat;
    int64_t part[301], ring[301], vertex[301];
    uint8_t kind[300];
    double x[301 * 12], y[301 * 12];
};

static void set_short_lines(struct short_lines *lines, uint64_t state)
{
    struct oj_flat *flat = &lines->flat;
    memset(lines, 0, sizeof *lines);
    for (int64_t i = 0; i < 300; i++)
    {
        int64_t v = lines->vertex[i];
        state = state * 6364136223846793005u + 1442695040888963407u;
        lines->kind[i] = OJ_PART_LINE;
        lines->part[i + 1] = lines->ring[i + 1] = i + 1;
        lines->vertex[i + 1] = v + 1 + (int64_t)((state >> 40) % 12);
        for (; v < lines->vertex[i + 1]; v++)
        {
            state = state * 6364136223846793005u + 1442695040888963407u;
            lines->x[v] = (double)(state >> 61);
            lines->y[v] = (double)(state >> 58 & 7);
        }
    }
    *flat = (struct oj_flat){.n_features = 300,
                             .n_parts = 300,
                             .n_rings = 300,
                             .n_vertices = lines->vertex[300],
                             .part_kinds = OJ_PART_LINE,
                             .part_offset = lines->part,
                             .part_kind = lines->kind,
                             .ring_offset = lines->ring,
                             .vertex_offset = lines->vertex,
                             .x = lines->x,
                             .y = lines->y};
}

/* Multiplies coordinates, then moves them, so that differences are rounded. */
static void scale_and_move(double *x, int64_t n, double scale, double by)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = x[i] * scale + by;
}

/* Blocks of pairs have the places that pairs have one by one, also where
 * squares overflow or underflow, and where rounding decides which of several
 * segments is the nearest. */
TEST_LOOP(property_blocks_of_pairs, 0, 120)
{
    static const double scales[] = {1.0, 1e-170, 1e-155, 1e-23, 0.1, 1e155};
    static const double moves[] = {0.0, 0.0, 0.0, 0.0, 1e6, 0.0};
    static struct short_lines lines;
    const double scale = scales[_i % 6], move = moves[_i % 6];
    struct oj_along_side side;
    uint64_t state = (uint64_t)_i + 11;
    const unsigned want = _i % 4 == 0 ? OJ_ALONG_MEASURE : ALL;
    const double step = _i / 12 % 2 == 0 ? 0.5 : 0.37;
    int n_sides = 0;
    set_short_lines(&lines, state);
    scale_and_move(lines.x, lines.flat.n_vertices, scale, move);
    scale_and_move(lines.y, lines.flat.n_vertices, scale, move);
    must(oj_along_side_build(&side, &lines.flat, 0, 1, &error));
    for (int64_t n = 1; n <= OJ_ALONG_BLOCK; n += 9)
    {
        int32_t feature[OJ_ALONG_BLOCK];
        double x[OJ_ALONG_BLOCK], y[OJ_ALONG_BLOCK];
        struct oj_along got;
        double at[7][OJ_ALONG_BLOCK];
        struct oj_along_arrays arrays = {.along = at[0], .segment = at[5]};
        if (want == ALL)
            arrays = (struct oj_along_arrays){at[0], at[1], at[2], at[3],
                                              at[4], at[5], at[6]};
        for (int64_t i = 0; i < n; i++)
        {
            state = state * 6364136223846793005u + 1442695040888963407u;
            feature[i] = (int32_t)((state >> 33) % 301) - 1;
            x[i] = (double)(state >> 59) * step - 2.0;
            y[i] = (double)(state >> 54 & 31) * step - 2.0;
            if (i % 50 == 7)
                x[i] = y[i] = (double)NAN;
        }
        for (int k = 0; k < 7; k++)
            for (int64_t i = 0; i < n; i++)
                at[k][i] = (double)NAN;
        scale_and_move(x, n, scale, move);
        scale_and_move(y, n, scale, move);
        oj_along_measure_block(&side, n, feature, x, y, NULL, &arrays);
        for (int64_t i = 0; i < n; i++)
        {
            struct oj_along one = {NAN, NAN, NAN, NAN, NAN, NAN, NAN};
            if (feature[i] >= 0)
                one = oj_along_measure_point(&side, feature[i], x[i], y[i],
                                             INFINITY, NULL, want);
            got = (struct oj_along){at[0][i], at[1][i], at[2][i], at[3][i],
                                    at[4][i], at[5][i], at[6][i]};
            expect(memcmp(&one, &got, sizeof one) == 0,
                   "pair %d of %d: along %.17g, %.17g; segment %g, %g", (int)i,
                   (int)n, one.along, got.along, one.segment, got.segment);
            n_sides += got.side == 1.0;
        }
    }
    ck_assert(n_sides > 0 || want == OJ_ALONG_MEASURE || scale != 1.0);
    oj_along_side_free(&side);
}

int main(void)
{
    tests_open("along_line");
    return tests_run();
}
