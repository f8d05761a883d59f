/* Polygons of many vertices, clipped to the surroundings of a box. Their
 * intersections with features in the box are compared with those of the whole
 * polygons, bit for bit, and the places in the box with their locations in the
 * whole polygon. Then every allocation fails in turn.
 * Kinds: properties, degenerate, large, memory. */
#include "../../../algs/foundations/base/oj_feature_box.h"
#include "../../../algs/geometry/rings/polygon_clip.h"
#include "../../../algs/references/geos/geos_pairs.h"
#include "../plain_pairs.h"
#include "../run_tests.h"

#include <time.h>

enum
{
    MOST_VERTICES = 4000,
    ROWS = 40
};

static struct oj_flat_buf large_buf, small_buf, whole_buf, clipped_buf;
static double xs[2 * MOST_VERTICES + 2], ys[2 * MOST_VERTICES + 2];

/* Centre and size of the large feature. */
static double centre_x, centre_y, size;

/* ---- large features ------------------------------------------------------ */

/* Adds a ring of the first n places of xs and ys, in either direction. It
 * begins at a random vertex. */
static void add_ring_of_places(struct oj_flat_buf *buf, int n)
{
    const int first = pick(n), is_reversed = one_in(2);
    double *x, *y;
    must(oj_flat_buf_begin_ring(buf, &error));
    must(oj_flat_buf_add_vertices(buf, n + 1, &x, &y, &error));
    for (int i = 0; i <= n; i++)
    {
        const int from = (first + i) % n;
        x[is_reversed ? n - i : i] = xs[from];
        y[is_reversed ? n - i : i] = ys[from];
    }
}

/* Adds a ring of n vertices in order of angle, with radii from least to 1, all
 * in units of `radius`. */
static void add_wiggly_ring(struct oj_flat_buf *buf, int n, double x, double y,
                            double radius, double least)
{
    for (int i = 0; i < n; i++)
    {
        const double angle = 6.283185307179586 * (double)i / (double)n;
        const double r = radius * between(least, 1.0);
        xs[i] = x + r * cos(angle);
        ys[i] = y + r * sin(angle);
    }
    add_ring_of_places(buf, n);
}

/* Adds a ring with edges along the axes: columns of whole heights. */
static void add_skyline(struct oj_flat_buf *buf, int n)
{
    int at = 0;
    for (int i = 0; i < n / 2; i++)
    {
        const int height = 1 + pick(one_in(4) ? n / 2 : 3);
        for (int end = 0; end < 2; end++)
        {
            xs[at] = centre_x + i + end;
            ys[at++] = centre_y + height;
        }
    }
    xs[at] = centre_x + n / 2;
    ys[at++] = centre_y;
    xs[at] = centre_x;
    ys[at++] = centre_y;
    add_ring_of_places(buf, at);
    size = n / 2;
}

/* Adds a band that winds several times around the centre. */
static void add_spiral(struct oj_flat_buf *buf, int n)
{
    const int half = n / 2;
    for (int i = 0; i < half; i++)
    {
        const double turn = 5.0 * (double)i / half;
        for (int side = 0; side < 2; side++)
        {
            const double r = size * (0.1 + 0.15 * turn + (side ? 0.1 : 0.0) +
                                     between(0.0, 0.02));
            const int at = side ? 2 * half - 1 - i : i;
            xs[at] = centre_x + r * cos(6.283185307179586 * turn);
            ys[at] = centre_y + r * sin(6.283185307179586 * turn);
        }
    }
    add_ring_of_places(buf, 2 * half);
}

static void add_polygon(struct oj_flat_buf *buf)
{
    must(oj_flat_buf_begin_part(buf, OJ_PART_POLYGON, &error));
}

/* Adds a polygon with holes, a skyline, a spiral, or a polygon among many
 * islands. */
static void make_large(int shape)
{
    const int n = 300 + pick(one_in(3) ? MOST_VERTICES - 300 : 700);
    const int is_far = one_in(2);
    centre_x = is_far ? 5e5 : 0.0;
    centre_y = is_far ? -4e6 : 0.0;
    size = one_in(2) ? 1.0 : 1e4;
    oj_flat_buf_clear(&large_buf);
    must(oj_flat_buf_begin_feature(&large_buf, 0, &error));
    add_polygon(&large_buf);
    switch (shape)
    {
        case 0:
            add_skyline(&large_buf, n);
            break;
        case 1:
            add_spiral(&large_buf, n);
            break;
        default:
            add_wiggly_ring(&large_buf, n, centre_x, centre_y, size,
                            one_in(3) ? 0.4 : 0.9);
            for (int i = pick(10); i > 0; i--)
                add_wiggly_ring(&large_buf, one_in(2) ? 4 : 4 + n / 10,
                                centre_x + size * 0.28 * cos(i),
                                centre_y + size * 0.28 * sin(i), size * 0.1,
                                0.7);
    }
    for (int i = shape > 2 ? 1 + pick(100) : 0; i > 0; i--)
    {
        add_polygon(&large_buf);
        add_wiggly_ring(
            &large_buf, 4 + pick(30), centre_x + size * (1.5 + 0.1 * (i % 10)),
            centre_y + size * 0.1 * (double)(i / 10), size * 0.04, 0.5);
    }
    must(oj_flat_buf_end_feature(&large_buf, &error));
}

/* ---- small features ------------------------------------------------------ */

static void add_box_ring(double x, double y, double width, double height)
{
    xs[0] = xs[3] = x;
    xs[1] = xs[2] = x + width;
    ys[0] = ys[1] = y;
    ys[2] = ys[3] = y + height;
    add_polygon(&small_buf);
    add_ring_of_places(&small_buf, 4);
}

/* Adds a feature near a vertex of the large one: a box around it or with a
 * corner in it, a polygon with a border in common, a line, points. */
static void add_small(const struct oj_flat *large)
{
    const int64_t v = pick((int)large->n_vertices - 1);
    const double by = size * pow(10.0, between(-3.0, -0.5));
    const double x = large->x[v], y = large->y[v];
    double *to_x, *to_y;
    must(oj_flat_buf_begin_feature(&small_buf, 0, &error));
    switch (pick(10))
    {
        case 0:
            add_box_ring(x, y, by, by);
            break;
        case 1:
            add_box_ring(floor(x), floor(y), 1 + pick(3), 1 + pick(3));
            break;
        case 2:
            add_polygon(&small_buf);
            xs[0] = x;
            ys[0] = y;
            xs[1] = large->x[v + 1];
            ys[1] = large->y[v + 1];
            xs[2] = x + between(-by, by);
            ys[2] = y + between(-by, by);
            add_ring_of_places(&small_buf, 3);
            break;
        case 3:
            add_polygon(&small_buf);
            add_wiggly_ring(&small_buf, 3 + pick(40), x, y, by, 0.3);
            break;
        case 4:
            add_box_ring(x, y, by, by);
            add_box_ring(x - 3.0 * by, y, by, 2.0 * by);
            break;
        case 5:
            must(oj_flat_buf_begin_part(&small_buf, OJ_PART_LINE, &error));
            must(oj_flat_buf_begin_ring(&small_buf, &error));
            must(oj_flat_buf_add_vertices(&small_buf, 3, &to_x, &to_y, &error));
            for (int i = 0; i < 3; i++)
            {
                to_x[i] = i == 1 ? x : x + between(-by, by);
                to_y[i] = i == 1 || one_in(3) ? y : y + between(-by, by);
            }
            break;
        case 6:
            for (int i = 0; i < 2; i++)
            {
                must(oj_flat_buf_begin_part(&small_buf, OJ_PART_POINT, &error));
                must(oj_flat_buf_begin_ring(&small_buf, &error));
                must(oj_flat_buf_add_vertices(&small_buf, 1, &to_x, &to_y,
                                              &error));
                *to_x = i ? x : x + between(-by, by);
                *to_y = i ? y : y + between(-by, by);
            }
            break;
        case 7:
            add_box_ring(centre_x + size * between(-1.2, 1.2),
                         centre_y + size * between(-1.2, 1.2), by,
                         by * between(0.01, 1.0));
            break;
        default:
            add_box_ring(x - by, y - by, 2.0 * by, 2.0 * by);
    }
    must(oj_flat_buf_end_feature(&small_buf, &error));
}

static void make_small(void)
{
    const struct oj_flat large = oj_flat_buf_view(&large_buf);
    oj_flat_buf_clear(&small_buf);
    for (int i = 0; i < ROWS; i++)
        add_small(&large);
}

/* ---- intersections ------------------------------------------------------- */

/* Appends the intersections of all rows with feature 0, or of row 0 with all
 * features. One object computes n_pairs of them. An object takes whole features
 * for its first pairs, so n_pairs 1 computes all from whole features. */
static void intersect_all(const struct oj_flat *input,
                          const struct oj_flat *join_side, int n_pairs,
                          struct oj_flat_buf *out)
{
    const int64_t n =
        input->n_features > 1 ? input->n_features : join_side->n_features;
    struct oj_geos_pairs *geos = NULL;
    oj_flat_buf_clear(out);
    for (int64_t i = 0; i < n; i++)
    {
        enum oj_geos_outcome outcome;
        if (i % n_pairs == 0)
        {
            oj_geos_pairs_close(geos);
            must(oj_geos_pairs_open(NULL, join_side, 0, &geos, &error));
            oj_geos_pairs_set_input(geos, input);
        }
        outcome =
            oj_geos_pairs_add_intersection(geos, input->n_features > 1 ? i : 0,
                                           input->n_features > 1 ? 0 : i, out);
        if (outcome != OJ_GEOS_YES)
            must(oj_flat_buf_add_null(out, i, &error));
    }
    oj_geos_pairs_close(geos);
}

static void expect_equal_layers(const struct oj_flat *a,
                                const struct oj_flat *b)
{
    expect(a->n_features == b->n_features && a->n_parts == b->n_parts &&
               a->n_rings == b->n_rings && a->n_vertices == b->n_vertices,
           "seed %d: counts differ", (int)seed);
    if (a->n_vertices == 0)
        return;
    expect(memcmp(a->part_offset, b->part_offset,
                  (size_t)(a->n_features + 1) * sizeof *a->part_offset) == 0 &&
               memcmp(a->part_kind, b->part_kind, (size_t)a->n_parts) == 0 &&
               memcmp(a->ring_offset, b->ring_offset,
                      (size_t)(a->n_parts + 1) * sizeof *a->ring_offset) == 0 &&
               memcmp(a->vertex_offset, b->vertex_offset,
                      (size_t)(a->n_rings + 1) * sizeof *a->vertex_offset) == 0,
           "seed %d: parts differ", (int)seed);
    for (int64_t v = 0; v < a->n_vertices; v++)
        expect(bits_of(a->x[v]) == bits_of(b->x[v]) &&
                   bits_of(a->y[v]) == bits_of(b->y[v]),
               "seed %d: vertex %d: %.17g %.17g, clipped %.17g %.17g",
               (int)seed, (int)v, a->x[v], a->y[v], b->x[v], b->y[v]);
}

static void compare_intersections(void)
{
    const struct oj_flat large = oj_flat_buf_view(&large_buf);
    const struct oj_flat small = oj_flat_buf_view(&small_buf);
    for (int is_input = 0; is_input < 2; is_input++)
    {
        const struct oj_flat *input = is_input ? &large : &small;
        const struct oj_flat *join_side = is_input ? &small : &large;
        struct oj_flat whole, clipped;
        intersect_all(input, join_side, 1, &whole_buf);
        intersect_all(input, join_side, ROWS, &clipped_buf);
        whole = oj_flat_buf_view(&whole_buf);
        clipped = oj_flat_buf_view(&clipped_buf);
        expect_equal_layers(&whole, &clipped);
    }
}

TEST(property_intersections_equal_those_of_the_whole)
{
    EACH_ROUND(30)
    {
        make_large(pick(6));
        make_small();
        compare_intersections();
    }
}

/* Polygons that cross themselves are not clipped, since GEOS repairs some. */
TEST(degenerate_polygons_that_are_not_valid)
{
    EACH_ROUND(6)
    {
        make_large(2 + pick(4));
        for (int64_t i = 1 + pick(20); i > 0; i--)
        {
            int64_t v = 1 + pick((int)large_buf.vertex_offset[1] - 3);
            double x = large_buf.x[v];
            large_buf.x[v] = large_buf.x[v + 1];
            large_buf.x[v + 1] = x;
        }
        make_small();
        compare_intersections();
    }
}

/* ---- the clip itself ----------------------------------------------------- */

/* Returns 1 if the place is in the feature, by even-odd over all rings. */
static int is_in_layer(const struct oj_flat *flat, double x, double y)
{
    int is_odd = 0;
    const double p[2] = {x, y};
    for (int64_t ring = 0; ring < flat->n_rings; ring++)
        is_odd ^= plain_locate(flat, ring, p) == 1;
    return is_odd;
}

/* Returns the vertex of greatest y of a ring; -1: there are several, or it is
 * the first one. */
static int64_t highest_vertex(const struct oj_flat *flat, int64_t ring)
{
    const int64_t first = flat->vertex_offset[ring];
    int64_t high = first;
    int is_one = 0;
    for (int64_t v = first + 1; v < flat->vertex_offset[ring + 1]; v++)
    {
        is_one = flat->y[v] > flat->y[high] ||
                 (is_one && flat->y[v] < flat->y[high]);
        high = flat->y[v] > flat->y[high] ? v : high;
    }
    return is_one ? high : -1;
}

/* Asserts that `clipped` has only vertices of `whole`, in order, among them
 * those that determine the envelope and the orientation of each ring. */
static void expect_subset(const struct oj_flat *whole,
                          const struct oj_flat *clipped)
{
    const struct oj_box a = oj_box_of_feature(whole, 0);
    const struct oj_box b = oj_box_of_feature(clipped, 0);
    int64_t from = 0;
    expect(memcmp(&a, &b, sizeof a) == 0, "seed %d: the envelope differs",
           (int)seed);
    for (int64_t ring = 0; ring < clipped->n_rings; ring++)
    {
        const int64_t high = highest_vertex(clipped, ring);
        for (int64_t v = clipped->vertex_offset[ring];
             v < clipped->vertex_offset[ring + 1]; v++, from++)
        {
            while (from < whole->n_vertices &&
                   (whole->x[from] != clipped->x[v] ||
                    whole->y[from] != clipped->y[v]))
                from++;
            expect(from < whole->n_vertices,
                   "seed %d: a vertex is new, or not in order", (int)seed);
            for (int i = -1; v == high && i < 2; i += 2)
                expect(whole->x[from + i] == clipped->x[v + i] &&
                           whole->y[from + i] == clipped->y[v + i],
                       "seed %d: no neighbour of the highest vertex",
                       (int)seed);
        }
    }
}

TEST(property_places_near_the_box_keep_their_location)
{
    EACH_ROUND(30)
    {
        struct oj_polygon_clip clip = {0};
        struct oj_flat large;
        make_large(pick(6));
        large = oj_flat_buf_view(&large_buf);
        must(oj_polygon_clip_build(&clip, &large, 0, &error));
        for (int i = 0; i < 20; i++)
        {
            const int64_t v = pick((int)large.n_vertices);
            const double by = size * pow(10.0, between(-4.0, -1.0));
            const struct oj_box box = {large.x[v] - by, large.y[v] - by,
                                       large.x[v] + by, large.y[v] + by};
            struct oj_flat clipped;
            int is_clipped;
            must(oj_polygon_clip_near(&clip, &box, large.n_vertices,
                                      &clipped_buf, &is_clipped, &error));
            expect(is_clipped, "seed %d: not clipped", (int)seed);
            clipped = oj_flat_buf_view(&clipped_buf);
            expect_subset(&large, &clipped);
            for (int k = 0; k < 10; k++)
            {
                const double x = between(box.x0, box.x1);
                const double y = between(box.y0, box.y1);
                expect(is_in_layer(&large, x, y) == is_in_layer(&clipped, x, y),
                       "seed %d: %.17g %.17g has another location", (int)seed,
                       x, y);
            }
        }
        oj_polygon_clip_free(&clip);
    }
}

TEST(degenerate_too_many_vertices_near_the_box)
{
    struct oj_polygon_clip clip = {0};
    struct oj_flat large;
    struct oj_box box;
    int is_clipped = 1;
    random_state = 3;
    make_large(3);
    large = oj_flat_buf_view(&large_buf);
    box = oj_box_of_feature(&large, 0);
    must(oj_polygon_clip_build(&clip, &large, 0, &error));
    must(oj_polygon_clip_near(&clip, &box, large.n_vertices - 1, &clipped_buf,
                              &is_clipped, &error));
    ck_assert_int_eq(is_clipped, 0);
    must(oj_polygon_clip_near(&clip, &box, large.n_vertices, &clipped_buf,
                              &is_clipped, &error));
    ck_assert_int_eq(is_clipped, 1);
    ck_assert_int_eq(clipped_buf.n_vertices, large.n_vertices);
    oj_polygon_clip_free(&clip);
}

/* Clips save most of the time: the intersections take about a tenth of it, and
 * the test allows half of it. */
TEST(large_intersections_take_time_for_near_edges_only)
{
    clock_t begin, of_whole, of_clips;
    struct oj_flat large, small;
    random_state = 5;
    centre_x = centre_y = 0.0;
    size = 1.0;
    oj_flat_buf_clear(&large_buf);
    oj_flat_buf_clear(&small_buf);
    must(oj_flat_buf_begin_feature(&large_buf, 0, &error));
    for (int i = 0; i < 10; i++)
    {
        add_polygon(&large_buf);
        add_wiggly_ring(&large_buf, MOST_VERTICES, 3.0 * i, 0.0, 1.0, 0.99);
    }
    must(oj_flat_buf_end_feature(&large_buf, &error));
    large = oj_flat_buf_view(&large_buf);
    for (int i = 0; i < ROWS; i++)
    {
        const int64_t v = pick((int)large.n_vertices);
        must(oj_flat_buf_begin_feature(&small_buf, 0, &error));
        add_box_ring(large.x[v], large.y[v], 1e-3, 1e-3);
        must(oj_flat_buf_end_feature(&small_buf, &error));
    }
    small = oj_flat_buf_view(&small_buf);
    begin = clock();
    intersect_all(&small, &large, 1, &whole_buf);
    of_whole = clock() - begin;
    begin = clock();
    intersect_all(&small, &large, ROWS, &clipped_buf);
    of_clips = clock() - begin;
    ck_assert_msg(2 * of_clips < of_whole, "%g s, whole %g s",
                  (double)of_clips / CLOCKS_PER_SEC,
                  (double)of_whole / CLOCKS_PER_SEC);
}

TEST(memory_every_allocation_fails)
{
    const struct oj_box box = {-0.1, 0.9, 0.1, 1.1};
    struct oj_flat large;
    random_state = 2;
    do
        make_large(4);
    while (size > 1.0 || centre_x > 0.0);
    large = oj_flat_buf_view(&large_buf);
    for (int64_t i = 1;; i++)
    {
        struct oj_polygon_clip clip = {0};
        struct oj_flat_buf out = {0};
        oj_status status;
        int is_clipped = 0;
        oj_alloc_fail_at(i);
        status = oj_polygon_clip_build(&clip, &large, 0, &error);
        if (status == OJ_OK)
            status = oj_polygon_clip_near(&clip, &box, large.n_vertices, &out,
                                          &is_clipped, &error);
        oj_alloc_fail_at(0);
        oj_polygon_clip_free(&clip);
        oj_flat_buf_free(&out);
        ck_assert(status == OJ_OK || status == OJ_ERR_NOMEM);
        if (status != OJ_OK)
            continue;
        ck_assert(i > 4 && is_clipped);
        return;
    }
}

int main(void)
{
    tests_open("polygon_clip");
    return tests_run();
}
