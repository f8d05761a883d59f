/* Places along a line: known ones, and random ones compared with a plain loop.
 * Kind: unit, property. */
#include "../../../algs/foundations/kernels/oj_segment.h"
#include "../../../algs/pairs/values/oj_along_line.h"
#include "../plain_pairs.h"
#include "../run_tests.h"

#include <math.h>

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
        const struct oj_along got = oj_along_find(
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
        oj_along_find(&side, 0, (double)NAN, 0, INFINITY, NULL, ALL).along));
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
        const struct oj_along got = oj_along_find(
            &side, 0, known[i].x, known[i].y, INFINITY, NULL, ALL | OJ_ALONG_M);
        ck_assert_msg(got.m == known[i].m ||
                          (isnan(got.m) && isnan(known[i].m)),
                      "place %d: %g", (int)i, got.m);
        ck_assert(got.percent == 100.0 * (got.along / 12.0));
    }
    ck_assert(isnan(oj_along_find(&side, 0, 1, 1, INFINITY, NULL, ALL).m));
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
            const struct oj_along got = oj_along_find(&side, 0, px, py,
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

int main(void)
{
    tests_open("along_line");
    return tests_run();
}
