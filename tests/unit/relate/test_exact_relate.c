/* Kind: unit, property. The exact reference against GEOS's relate on random
 * valid geometries of one kind, and against the answers that the test suites of
 * GEOS and JTS expect. The latter needs oracle_cases.csv and oracle_tests.csv.
 */
#include "../../../algs/engine/oj_join.h"

#include "../random_numbers.h"
#include "../references.h"
#include "../run_tests.h"

#include "../exact_truth.h"
#include "../oracle_table.h"
#include "../wkt_shapes.h"

#include <strings.h>

/* --- GEOS on lattices ----------------------------------------------------- */

/* Text that grows; shapes here need less than 4 KB. */
struct shape_text
{
    char at[4096];
    size_t n;
};

static void add_text(struct shape_text *text, const char *word)
{
    size_t n = strlen(word);
    ck_assert(text->n + n < sizeof text->at);
    memcpy(text->at + text->n, word, n + 1);
    text->n += n;
}

struct relate_lattice
{
    int size, x, y;
};

static void add_vertex(struct shape_text *text, int x, int y)
{
    char word[64];
    snprintf(word, sizeof word, "%d %d", x, y);
    add_text(text, word);
}

static void add_any_vertex(struct shape_text *text,
                           const struct relate_lattice *l)
{
    add_vertex(text, l->x + pick(l->size), l->y + pick(l->size));
}

static void add_vertices(struct shape_text *text,
                         const struct relate_lattice *l, int n)
{
    add_text(text, "(");
    for (int i = 0; i < n; i++)
    {
        add_text(text, i > 0 ? ", " : "");
        add_any_vertex(text, l);
    }
    add_text(text, ")");
}

static void add_any_ring(struct shape_text *text,
                         const struct relate_lattice *l)
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

static void add_any_polygon(struct shape_text *text,
                            const struct relate_lattice *l)
{
    add_text(text, "(");
    if (one_in(3)) /* a frame, and holes */
    {
        struct relate_lattice hole = *l;
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
static void add_two_polygons(struct shape_text *text,
                             const struct relate_lattice *l)
{
    struct relate_lattice half = *l;
    half.size = l->size / 2 + 1;
    add_text(text, "(");
    add_any_polygon(text, &half);
    add_text(text, ", ");
    half.x += pick(half.size + 1);
    half.y += half.size - 1;
    add_any_polygon(text, &half);
    add_text(text, ")");
}

static void add_any_shape(struct shape_text *text,
                          const struct relate_lattice *l)
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

/* Valid, and without lines that cross themselves: with those GEOS's relate
 * finds lines in common that are none, before 3.13, and does not when the lines
 * were cut at their nodes first. */
static void make_valid_shape(struct shape_text *text,
                             const struct relate_lattice *l)
{
    int is_valid = 0;
    while (!is_valid)
    {
        GEOSGeometry *shape;
        text->n = 0;
        add_any_shape(text, l);
        shape = GEOSWKTReader_read_r(geos, wkt_reader, text->at);
        ck_assert_ptr_nonnull(shape);
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
static void scale_text(struct shape_text *out, const char *text, int64_t scale)
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
                        const struct oj_flat *b, const struct shape_text *text)
{
    struct oj_matrix other = exact_matrix(b, 0, a, 0);
    other = transposed_matrix(&other);
    expect(strcmp(matrix->at, other.at) == 0, "%s; %s: %s, exchanged %s",
           text[0].at, text[1].at, matrix->at, other.at);
}

static void compare_with_geos(const struct relate_lattice *l)
{
    struct shape_text text[2], scaled;
    LAYER a = {0}, b = {0};
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
}

TEST(relate_on_lattices)
{
    random_state = first_seed();
    wkt_open();
    for (int64_t round = rounds(10000); round > 0; round--)
    {
        struct relate_lattice lattice = {3 + pick(6), 0, 0};
        compare_with_geos(&lattice);
    }
    wkt_close();
    printf("%d pairs of valid shapes compared with GEOS's relate, all equal; "
           "%d left out, whose crossings are no whole numbers\n",
           n_compared, n_skipped);
    ck_assert_int_gt(n_compared, n_skipped);
}

/* --- what the test suites expect ------------------------------------------ */

/* What is not equal, one by one, and why; each must be needed. */
static const struct relate_exception
{
    const char *case_id, *op, *reason;
} exceptions_list[] = {
    {"geos/failure/robust-TestRobustRelateFloat.xml#0", "contains",
     "the suite means decimal fractions: 0.95 + 0.05 = 1. As doubles they are "
     "inside the triangle, as GEOS says, too"},
    {"geos/misc/InvalidRelates.xml#2", "relate",
     "not valid: two polygons of a multipolygon have an edge in common, which "
     "is in the interior here, and on the boundary by the suite"},
    {"jts/validate/TestRelatePL.xml#1", "equalstopo",
     "a line of one point is that point; the suite denies it in this file and "
     "affirms it in its copy, geos/validate/TestRelatePL.xml#1"},
};
#define N_EXCEPTIONS ((int)(sizeof exceptions_list / sizeof *exceptions_list))
static int n_needed[N_EXCEPTIONS];

static struct
{
    int n_equal, n_both_empty, n_exceptions, n_wrong;
} counts;

static void count_answer(const char *case_id, const char *op, int is_right,
                         const char *matrix)
{
    if (is_right)
    {
        counts.n_equal++;
        return;
    }
    for (int i = 0; i < N_EXCEPTIONS; i++)
    {
        const struct relate_exception *e = &exceptions_list[i];
        if (strcmp(e->case_id, case_id) == 0 && strcmp(e->op, op) == 0)
        {
            n_needed[i]++;
            counts.n_exceptions++;
            return;
        }
    }
    counts.n_wrong++;
    fprintf(stderr, "%s: %s is not as expected; %s\n", case_id, op, matrix);
}

/* Distances expected are rounded. */
static int is_distance(const struct oracle_table *tests, int row,
                       const struct oj_flat *a, const struct oj_flat *b)
{
    const char *text = get(tests, row, "expected");
    double expected = strtod(text, NULL), limit;
    if (strcmp(get(tests, row, "op"), "distance") == 0)
        return exact_order(a, 0, b, 0, OJ_TO_INTERIOR,
                           expected * (1 - 1e-12)) >= 0 &&
               exact_order(a, 0, b, 0, OJ_TO_INTERIOR,
                           expected * (1 + 1e-12)) <= 0;
    limit = strtod(get(tests, row, "arg3"), NULL);
    return (exact_order(a, 0, b, 0, OJ_TO_INTERIOR, limit) <= 0) ==
           (strcmp(text, "true") == 0);
}

static void ask(const struct oracle_table *tests, int row,
                const struct oj_flat *a, const struct oj_flat *b, int n_empty)
{
    const char *op = get(tests, row, "op");
    const char *case_id = get(tests, row, "case_id");
    int expected = strcmp(get(tests, row, "expected"), "true") == 0;
    struct oj_relation relation = oj_relation_default();
    struct oj_matrix matrix = exact_matrix(a, 0, b, 0);
    if (strcmp(op, "distance") == 0 || strcmp(op, "iswithindistance") == 0)
    {
        count_answer(case_id, op, n_empty > 0 || is_distance(tests, row, a, b),
                     matrix.at);
        return;
    }
    relation.op = strcmp(op, "equalstopo") == 0 ? OJ_OP_EQUALS
                                                : (enum oj_op)oj_op_find(op);
    if (relation.op == OJ_OP_EQUALS && n_empty == 2)
    {
        counts.n_both_empty++; /* equal for the suite, no pair of a join */
        return;
    }
    snprintf(relation.mask, sizeof relation.mask, "%s",
             get(tests, row, "arg3"));
    count_answer(case_id, op, oj_matrix_holds(&matrix, &relation) == expected,
                 matrix.at);
}

static void ask_row(const struct oracle_table *cases,
                    const struct oracle_table *tests, int row)
{
    int at = find_case(cases, get(tests, row, "case_id"));
    int exchanged = strcasecmp(get(tests, row, "arg1"), "B") == 0;
    LAYER a = {0}, b = {0};
    struct oj_flat view_a, view_b;
    add_shape(&a, get(cases, at, exchanged ? "b_wkt" : "a_wkt"));
    add_shape(&b, get(cases, at, exchanged ? "a_wkt" : "b_wkt"));
    view_a = oj_flat_buf_view(&a);
    view_b = oj_flat_buf_view(&b);
    ask(tests, row, &view_a, &view_b,
        (int)(a.counts.n_empty + b.counts.n_empty));
}

TEST(answers_of_test_suites)
{
    struct oracle_table cases, tests;
    if (!read_table("oracle_cases.csv", &cases) ||
        !read_table("oracle_tests.csv", &tests))
    {
        printf("skipped: 2 files, 5159 questions\n");
        return;
    }
    wkt_open();
    for (int row = 1; row < tests.n_rows; row++)
        ask_row(&cases, &tests, row);
    wkt_close();
    for (int i = 0; i < N_EXCEPTIONS; i++)
        ck_assert_msg(n_needed[i] > 0, "not an exception any more: %s",
                      exceptions_list[i].case_id);
    printf("%d questions of test suites: %d answers as expected, %d whether "
           "two empty shapes are equal, %d exceptions, %d wrong\n",
           tests.n_rows - 1, counts.n_equal, counts.n_both_empty,
           counts.n_exceptions, counts.n_wrong);
    ck_assert_int_eq(counts.n_wrong, 0);
    free_table(&cases);
    free_table(&tests);
}

int main(void)
{
    tests_open("exact_relate");
    return tests_run();
}
