/* Kind: unit, property. The exact reference against GEOS's relate on random
 * valid geometries of one kind, and against the answers that the test suites of
 * GEOS and JTS expect. The latter needs oracle_cases.csv and oracle_tests.csv.
 */
#include "ogrjoin.h"

#include "random_numbers.h"
#include "references.h"
#include "run_tests.h"

#include "exact_truth.h"
#include "oracle_table.h"
#include "wkt_shapes.h"

#include <strings.h>

/* --- GEOS on lattices ----------------------------------------------------- */

/* Text that grows; shapes here need less than 4 KB. */
struct text
{
    char at[4096];
    size_t n;
};

static void add_text(struct text *text, const char *word)
{
    size_t n = strlen(word);
    ck_assert(text->n + n < sizeof text->at);
    memcpy(text->at + text->n, word, n + 1);
    text->n += n;
}

struct lattice
{
    int size, x, y;
};

static void add_vertex(struct text *text, int x, int y)
{
    char word[64];
    snprintf(word, sizeof word, "%d %d", x, y);
    add_text(text, word);
}

static void add_any_vertex(struct text *text, const struct lattice *l)
{
    add_vertex(text, l->x + pick(l->size), l->y + pick(l->size));
}

static void add_vertices(struct text *text, const struct lattice *l, int n)
{
    add_text(text, "(");
    for (int i = 0; i < n; i++)
    {
        add_text(text, i > 0 ? ", " : "");
        add_any_vertex(text, l);
    }
    add_text(text, ")");
}

static void add_any_ring(struct text *text, const struct lattice *l)
{
    int n = 3 + pick(4), x = l->x + pick(l->size), y = l->y + pick(l->size);
    add_text(text, "(");
    add_vertex(text, x, y);
    for (int i = 1; i < n; i++)
    {
        add_text(text, ", ");
        add_any_vertex(text, l);
    }
    add_text(text, ", ");
    add_vertex(text, x, y);
    add_text(text, ")");
}

static void add_any_polygon(struct text *text, const struct lattice *l)
{
    add_text(text, "(");
    if (one_in(3)) /* a frame, and holes */
    {
        struct lattice hole = *l;
        char frame[160];
        snprintf(frame, sizeof frame, "(%d %d, %d %d, %d %d, %d %d, %d %d)",
                 l->x, l->y, l->x + l->size, l->y, l->x + l->size,
                 l->y + l->size, l->x, l->y + l->size, l->x, l->y);
        add_text(text, frame);
        hole.size = l->size + 1;
        for (int i = pick(3); i >= 0; i--)
        {
            add_text(text, ", ");
            add_any_ring(text, &hole);
        }
    }
    else
        add_any_ring(text, l);
    add_text(text, ")");
}

/* Two polygons in halves of the lattice, which may touch. */
static void add_two_polygons(struct text *text, const struct lattice *l)
{
    struct lattice half = *l;
    half.size = l->size / 2 + 1;
    add_text(text, "(");
    add_any_polygon(text, &half);
    add_text(text, ", ");
    half.x += pick(half.size + 1);
    half.y += half.size - 1;
    add_any_polygon(text, &half);
    add_text(text, ")");
}

static void add_any_shape(struct text *text, const struct lattice *l)
{
    switch (pick(6))
    {
        case 0:
            add_text(text, "MULTIPOINT ");
            add_vertices(text, l, 1 + pick(3));
            break;
        case 1:
            add_text(text, "LINESTRING ");
            add_vertices(text, l, 2 + pick(5));
            break;
        case 2:
            add_text(text, "MULTILINESTRING (");
            for (int i = pick(3); i >= 0; i--)
            {
                add_vertices(text, l, 2 + pick(3));
                add_text(text, i > 0 ? ", " : ")");
            }
            break;
        case 3:
        case 4:
            add_text(text, "POLYGON ");
            add_any_polygon(text, l);
            break;
        default:
            add_text(text, "MULTIPOLYGON ");
            add_two_polygons(text, l);
            break;
    }
}

/* Valid, and without lines that cross themselves: with those GEOS's relate finds
 * lines in common that are none, before 3.13, and does not when the lines were
 * cut at their nodes first. */
static void make_valid_shape(struct text *text, const struct lattice *l)
{
    int is_valid = 0;
    while (!is_valid)
    {
        GEOSGeometry *shape;
        text->n = 0;
        add_any_shape(text, l);
        shape = GEOSWKTReader_read_r(geos, wkt_reader, text->at);
        ck_assert_ptr_nonnull(shape);
        is_valid = GEOSisValid_r(geos, shape) == 1 &&
                   GEOSisSimple_r(geos, shape) == 1;
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

/* The ends of all segments of a shape, its edges; of rings of different parts
 * there may be one too many. */
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

/* By what to multiply whole coordinates so that all crossings are whole, too:
 * x and y of each are whole numbers divided by the cross product of its
 * segments. 0: by too much. */
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

/* The text with its numbers multiplied. */
static void scale_text(struct text *out, const char *text, int64_t scale)
{
    out->n = 0;
    while (*text != '\0')
    {
        char word[32] = {*text, '\0'};
        if (strchr("0123456789", *text) != NULL)
        {
            char *end;
            snprintf(word, sizeof word, "%lld",
                     (long long)(strtoll(text, &end, 10) * scale));
            text = end;
        }
        else
            text++;
        add_text(out, word);
    }
}

/* --- comparing ------------------------------------------------------------ */

static int n_compared, n_skipped;

static void check_order(const struct oj_matrix *matrix, const struct oj_flat *a,
                        const struct oj_flat *b, const struct text *text)
{
    struct oj_matrix other = exact_matrix(b, 0, a, 0);
    other = transposed_matrix(&other);
    expect(strcmp(matrix->at, other.at) == 0, "%s; %s: %s, exchanged %s",
           text[0].at, text[1].at, matrix->at, other.at);
}

static void compare_with_geos(const struct lattice *l)
{
    struct text text[2], scaled;
    struct oj_flat_buf a = {0}, b = {0};
    struct oj_flat view_a, view_b;
    struct oj_matrix matrix;
    GEOSGeometry *shape[2];
    int64_t scale;
    for (int i = 0; i < 2; i++)
        make_valid_shape(&text[i], l);
    add_shape(&a, text[0].at);
    add_shape(&b, text[1].at);
    view_a = oj_flat_buf_view(&a);
    view_b = oj_flat_buf_view(&b);
    matrix = exact_matrix(&view_a, 0, &view_b, 0);
    check_order(&matrix, &view_a, &view_b, text);
    scale = whole_scale(&view_a, &view_b);
    n_skipped += scale == 0;
    if (scale > 0)
    {
        char *expected;
        for (int i = 0; i < 2; i++)
        {
            scale_text(&scaled, text[i].at, scale);
            shape[i] = GEOSWKTReader_read_r(geos, wkt_reader, scaled.at);
            ck_assert_ptr_nonnull(shape[i]);
        }
        expected = GEOSRelate_r(geos, shape[0], shape[1]);
        ck_assert_ptr_nonnull(expected);
        expect(strcmp(expected, matrix.at) == 0, "%s; %s: %s, GEOS %s",
               text[0].at, text[1].at, matrix.at, expected);
        n_compared++;
        GEOSFree_r(geos, expected);
        GEOSGeom_destroy_r(geos, shape[0]);
        GEOSGeom_destroy_r(geos, shape[1]);
    }
    oj_flat_buf_free(&a);
    oj_flat_buf_free(&b);
}

START_TEST(relate_on_lattices)
{
    random_state = first_seed();
    wkt_open();
    for (int64_t round = rounds(10000); round > 0; round--)
    {
        struct lattice lattice = {3 + pick(6), 0, 0};
        compare_with_geos(&lattice);
    }
    wkt_close();
    printf("%d pairs of valid shapes compared with GEOS's relate, all equal; "
           "%d left out, whose crossings are no whole numbers\n",
           n_compared, n_skipped);
    ck_assert_int_gt(n_compared, n_skipped);
}
END_TEST

/* --- what the test suites expect ------------------------------------------ */
static struct
{
    int n_asked, n_wrong;
} counts;

static void check_distance(const struct table *tests, int row,
                           const struct oj_flat *a, const struct oj_flat *b)
{
    const char *text = get(tests, row, "expected");
    double expected = strtod(text, NULL);
    int order;
    if (strcasecmp(get(tests, row, "op"), "iswithindistance") == 0)
    {
        double limit = strtod(get(tests, row, "arg3"), NULL);
        order = exact_order(a, 0, b, 0, OJ_TO_INTERIOR, limit);
        if ((order <= 0) != (strcmp(text, "true") == 0))
        {
            counts.n_wrong++;
            printf("%s: %s, %s within %g: order %d\n",
                   get(tests, row, "case_id"), text, get(tests, row, "op"),
                   limit, order);
        }
        return;
    }
    if (exact_order(a, 0, b, 0, OJ_TO_INTERIOR, expected * (1 - 1e-12)) < 0 ||
        exact_order(a, 0, b, 0, OJ_TO_INTERIOR, expected * (1 + 1e-12)) > 0)
    {
        counts.n_wrong++;
        printf("%s: distance %s\n", get(tests, row, "case_id"), text);
    }
}

static void ask(const struct table *cases, const struct table *tests, int row)
{
    int at = find_case(cases, get(tests, row, "case_id"));
    int exchanged = strcasecmp(get(tests, row, "arg1"), "B") == 0;
    const char *op = get(tests, row, "op");
    int expected = strcmp(get(tests, row, "expected"), "true") == 0, holds;
    struct oj_relation relation = oj_relation_default();
    struct oj_flat_buf a = {0}, b = {0};
    struct oj_flat view_a, view_b;
    struct oj_matrix matrix;
    add_shape(&a, get(cases, at, exchanged ? "b_wkt" : "a_wkt"));
    add_shape(&b, get(cases, at, exchanged ? "a_wkt" : "b_wkt"));
    view_a = oj_flat_buf_view(&a);
    view_b = oj_flat_buf_view(&b);
    counts.n_asked++;
    if (strcmp(op, "distance") == 0 || strcmp(op, "iswithindistance") == 0)
    {
        if (a.counts.n_empty + b.counts.n_empty == 0)
            check_distance(tests, row, &view_a, &view_b);
    }
    else
    {
        matrix = exact_matrix(&view_a, 0, &view_b, 0);
        relation.op = strcmp(op, "equalstopo") == 0
                          ? OJ_OP_EQUALS
                          : (enum oj_op)oj_op_find(op);
        snprintf(relation.mask, sizeof relation.mask, "%s",
                 get(tests, row, "arg3"));
        holds = oj_matrix_holds(&matrix, &relation);
        if (holds != expected)
        {
            counts.n_wrong++;
            printf("%s %s %s: %s expected %d; geos %s\n",
                   get(tests, row, "case_id"), op, relation.mask, matrix.at,
                   expected, get(tests, row, "geos3111"));
        }
    }
    oj_flat_buf_free(&a);
    oj_flat_buf_free(&b);
}

START_TEST(answers_of_test_suites)
{
    struct table cases, tests;
    if (!read_table("oracle_cases.csv", &cases) ||
        !read_table("oracle_tests.csv", &tests))
    {
        printf("skipped: 2 files, 5159 questions\n");
        return;
    }
    wkt_open();
    for (int row = 1; row < tests.n_rows; row++)
        ask(&cases, &tests, row);
    wkt_close();
    printf("%d asked, %d wrong\n", counts.n_asked, counts.n_wrong);
    free_table(&cases);
    free_table(&tests);
}
END_TEST

int main(void)
{
    TCase *tcase = tests_open("exact_relate");
    tcase_add_test(tcase, relate_on_lattices);
    tcase_add_test(tcase, answers_of_test_suites);
    return tests_run();
}
