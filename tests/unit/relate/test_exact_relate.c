/* Compares the exact reference with GEOS's relate, on random valid geometries
 * of one kind. test_oracle compares the reference with the test suites of GEOS
 * and JTS.
 * Kind: property. */
#include "../../../algs/api/engine/oj_join.h"

#include "../predicate/random_shapes.h"
#include "../random_numbers.h"
#include "../references.h"
#include "../run_tests.h"

#include "../exact_truth.h"
#include "../wkt_shapes.h"

#include <stdarg.h>

/* --- shapes for GEOS ------------------------------------------------------ */

/* A text that grows. Shapes here need less than 8 KB. */
struct shape_text
{
    char at[8192];
    size_t n;
};

__attribute__((format(printf, 2, 3))) static void
add_text(struct shape_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    text->n += (size_t)vsnprintf(text->at + text->n, sizeof text->at - text->n,
                                 format, arguments);
    va_end(arguments);
    ck_assert(text->n < sizeof text->at);
}

/* Writes the only feature as WKT, with coordinates multiplied by scale. Its
 * parts have one kind. */
static void write_shape(struct shape_text *text, const struct oj_flat *flat,
                        double scale)
{
    const unsigned kind = flat->part_kind[0];
    const int depth = kind == OJ_PART_POLYGON;
    text->n = 0;
    add_text(text, "%s (",
             kind == OJ_PART_POINT  ? "MULTIPOINT"
             : kind == OJ_PART_LINE ? "MULTILINESTRING"
                                    : "MULTIPOLYGON");
    for (int64_t p = 0; p < flat->n_parts; p++)
    {
        add_text(text, "%s%s", p > 0 ? "," : "", depth ? "(" : "");
        for (int64_t r = flat->ring_offset[p]; r < flat->ring_offset[p + 1];
             r++)
        {
            int64_t first = flat->vertex_offset[r];
            add_text(text, r > flat->ring_offset[p] ? ",(" : "(");
            for (int64_t v = first; v < flat->vertex_offset[r + 1]; v++)
                add_text(text, "%s%.17g %.17g", v > first ? "," : "",
                         scale * flat->x[v], scale * flat->y[v]);
            add_text(text, ")");
        }
        add_text(text, depth ? ")" : "");
    }
    add_text(text, ")");
}

static GEOSGeometry *read_shape(const struct shape_text *text)
{
    GEOSGeometry *shape = GEOSWKTReader_read_r(geos, wkt_reader, text->at);
    ck_assert_ptr_nonnull(shape);
    return shape;
}

/* Makes valid parts of one kind, without lines that cross themselves. For such
 * lines, GEOS's relate before 3.13 finds common lines that do not exist, unless
 * they are divided at their nodes. */
static void make_valid_shape(struct oj_flat_buf *buf, struct shape_text *text,
                             const struct shape_lattice *l)
{
    int is_valid = 0;
    while (!is_valid)
    {
        struct oj_flat flat;
        GEOSGeometry *shape;
        oj_flat_buf_clear(buf);
        add_shapes(buf, l, 1);
        flat = oj_flat_buf_view(buf);
        if (oj_flat_is_points(&flat) || flat.n_vertices > 90 ||
            (flat.part_kinds & (flat.part_kinds - 1)) != 0)
            continue;
        write_shape(text, &flat, 1.0);
        shape = read_shape(text);
        is_valid =
            GEOSisValid_r(geos, shape) == 1 && GEOSisSimple_r(geos, shape) == 1;
        GEOSGeom_destroy_r(geos, shape);
    }
}

/* --- crossings at whole numbers ------------------------------------------- */

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0)
    {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Lists the end points of all segments of a shape, from edge[n] on. Between
 * rings of different parts it may list one segment too many. Returns the new
 * number of segments. */
static int edges_of(const struct oj_flat *flat, double (*edge)[4], int n)
{
    for (int64_t v = 0; v + 1 < flat->n_vertices; v++, n++)
    {
        edge[n][0] = flat->x[v];
        edge[n][1] = flat->y[v];
        edge[n][2] = flat->x[v + 1];
        edge[n][3] = flat->y[v + 1];
    }
    return n;
}

/* Returns the factor by which integer coordinates must be multiplied so that
 * all crossings are integers, too. The coordinates of a crossing are integers
 * divided by the cross product of its two segments. Returns 0 if the factor
 * would be too large. */
static int64_t whole_scale(const struct oj_flat *a, const struct oj_flat *b)
{
    double edge[200][4];
    int n;
    int64_t scale = 1;
    ck_assert(a->n_vertices + b->n_vertices < 200);
    n = edges_of(b, edge, edges_of(a, edge, 0));
    for (int i = 0; i < n; i++)
    {
        for (int j = 0; j < i; j++)
        {
            double *p = edge[i], *q = edge[j];
            double product =
                (p[2] - p[0]) * (q[3] - q[1]) - (p[3] - p[1]) * (q[2] - q[0]);
            int64_t whole = (int64_t)fabs(product);
            if (whole == 0 || fmin(p[0], p[2]) > fmax(q[0], q[2]) ||
                fmin(q[0], q[2]) > fmax(p[0], p[2]) ||
                fmin(p[1], p[3]) > fmax(q[1], q[3]) ||
                fmin(q[1], q[3]) > fmax(p[1], p[3]))
                continue;
            scale *= whole / common_divisor(scale, whole);
            if (scale > INT64_C(1) << 40)
                return 0;
        }
    }
    return scale;
}

/* --- comparing ------------------------------------------------------------ */

static int n_compared, n_skipped;

static void check_order(const struct oj_matrix *matrix, const struct oj_flat *a,
                        const struct oj_flat *b, const struct shape_text *text)
{
    struct oj_matrix other = exact_matrix(b, 0, a, 0);
    other = transposed_matrix(&other);
    expect(strcmp(matrix->at, other.at) == 0, "%s; %s: %s, exchanged %s",
           text[0].at, text[1].at, matrix->at, other.at);
}

static void compare_with_geos(const struct shape_lattice *l)
{
    struct shape_text text[2];
    LAYER buf_a = {0}, buf_b = {0};
    struct oj_flat a, b;
    struct oj_matrix matrix;
    GEOSGeometry *shape[2];
    int64_t scale;
    char *expected;
    make_valid_shape(&buf_a, &text[0], l);
    make_valid_shape(&buf_b, &text[1], l);
    a = oj_flat_buf_view(&buf_a);
    b = oj_flat_buf_view(&buf_b);
    matrix = exact_matrix(&a, 0, &b, 0);
    check_order(&matrix, &a, &b, text);
    scale = whole_scale(&a, &b);
    n_skipped += scale == 0;
    if (scale == 0)
        return;
    for (int i = 0; i < 2; i++)
    {
        write_shape(&text[i], i == 0 ? &a : &b, (double)scale);
        shape[i] = read_shape(&text[i]);
    }
    expected = GEOSRelate_r(geos, shape[0], shape[1]);
    ck_assert_ptr_nonnull(expected);
    expect(strcmp(expected, matrix.at) == 0, "%s; %s: %s, GEOS %s", text[0].at,
           text[1].at, matrix.at, expected);
    n_compared++;
    GEOSFree_r(geos, expected);
    GEOSGeom_destroy_r(geos, shape[0]);
    GEOSGeom_destroy_r(geos, shape[1]);
}

TEST(relate_on_lattices)
{
    random_state = first_seed();
    wkt_open();
    for (int64_t round = rounds(10000); round > 0; round--)
    {
        /* steps of two, so that midpoints are integers, too */
        struct shape_lattice lattice = {2 + pick(6), 0.0, 2.0};
        compare_with_geos(&lattice);
    }
    wkt_close();
    printf("%d pairs of valid shapes compared with GEOS's relate, all equal; "
           "%d left out, whose crossings are no whole numbers\n",
           n_compared, n_skipped);
    ck_assert_int_gt(n_compared, n_skipped);
}

int main(void)
{
    tests_open("exact_relate");
    return tests_run();
}
