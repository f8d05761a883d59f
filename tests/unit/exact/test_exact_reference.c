/* The exact reference. Its matrices are compared with those derived by hand
 * (tests/cases/matrices.txt), in both orders, and with every change of the
 * input that must not change them. Its distances are compared with fractions of
 * small integers. Then allocations fail.
 * Kind: unit, property, degenerate, memory. */
#include "../../../flatten/base/oj_alloc.h"

#include "../random_numbers.h"
#include "../references.h"
#include "../run_tests.h"

#include "../exact_truth.h"
#include "../wkt_shapes.h"

/* --- equal shapes in other representations -------------------------------- */

struct change
{
    int exponent;      /* coordinates are multiplied by 2^exponent */
    double by_x, by_y; /* added to coordinates before */
    int turn;          /* 1: x and y exchanged */
    int reverse;       /* 1: vertices in reverse order */
    int rotate;        /* rings begin at another vertex */
    int repeat;        /* vertices occur twice or more */
};

static void add_changed_vertex(struct oj_flat_buf *buf, double x, double y,
                               const struct change *change)
{
    double *to_x, *to_y;
    for (int i = change->repeat ? pick(3) : 0; i >= 0; i--)
    {
        must(oj_flat_buf_add_vertices(buf, 1, &to_x, &to_y, &error));
        *to_x = ldexp((change->turn ? y : x) + change->by_x, change->exponent);
        *to_y = ldexp((change->turn ? x : y) + change->by_y, change->exponent);
    }
}

static void add_changed_ring(struct oj_flat_buf *buf,
                             const struct oj_flat *flat, int64_t first,
                             int64_t end, int kind, const struct change *change)
{
    struct change one = *change;
    int64_t n = end - first, start = 0;
    must(oj_flat_buf_begin_ring(buf, &error));
    if (kind == OJ_PART_POINT)
        one.repeat = 0;
    if (kind == OJ_PART_POLYGON)
    {
        n--; /* closed again below */
        start = change->rotate ? pick((int)n) : 0;
    }
    for (int64_t i = 0; i < n + (kind == OJ_PART_POLYGON); i++)
    {
        int64_t v = change->reverse ? n - 1 - i % n : i;
        v = first + (v + start) % n;
        add_changed_vertex(buf, flat->x[v], flat->y[v], &one);
    }
}

static void add_changed(struct oj_flat_buf *buf, const struct oj_flat *flat,
                        const struct change *change)
{
    if (oj_flat_is_points(flat))
    {
        must(oj_flat_buf_begin_feature(buf, 1, &error));
        if (!isnan(flat->x[0]))
        {
            must(oj_flat_buf_begin_part(buf, OJ_PART_POINT, &error));
            add_changed_ring(buf, flat, 0, 1, OJ_PART_POINT, change);
        }
        must(oj_flat_buf_end_feature(buf, &error));
        return;
    }
    must(oj_flat_buf_begin_feature(buf, 1, &error));
    for (int64_t p = 0; p < flat->n_parts; p++)
    {
        must(oj_flat_buf_begin_part(buf, flat->part_kind[p], &error));
        for (int64_t r = flat->ring_offset[p]; r < flat->ring_offset[p + 1];
             r++)
            add_changed_ring(buf, flat, flat->vertex_offset[r],
                             flat->vertex_offset[r + 1], flat->part_kind[p],
                             change);
    }
    must(oj_flat_buf_end_feature(buf, &error));
}

/* --- matrices ------------------------------------------------------------- */

static void check_matrix(const struct oj_flat *a, const struct oj_flat *b,
                         const char *expected, const char *text)
{
    struct oj_matrix matrix = exact_matrix(a, 0, b, 0);
    struct oj_matrix other = exact_matrix(b, 0, a, 0);
    ck_assert_msg(strcmp(matrix.at, expected) == 0, "%s: %s, expected %s", text,
                  matrix.at, expected);
    other = transposed_matrix(&other);
    ck_assert_msg(strcmp(other.at, expected) == 0,
                  "%s, sides exchanged: %s, expected %s", text, other.at,
                  expected);
}

/* Returns 1 if the coordinates can be moved and scaled exactly. All coordinates
 * of the file are small multiples of 1/4, except those of pairs with these
 * texts. */
static int stays_exact(const char *text)
{
    return strstr(text, "1e-300") == NULL && strstr(text, "0.1 ") == NULL &&
           strstr(text, "0.95") == NULL;
}

static void check_changed(const struct oj_flat *a, const struct oj_flat *b,
                          const char *expected, const char *text)
{
    static const int exponents[] = {0, 1, -3, 60, -60, 470, -900, 485, -1070};
    const int n = (int)(sizeof exponents / sizeof *exponents);
    for (int round = 0; round < 3 * n; round++)
    {
        LAYER to_a = {0}, to_b = {0};
        struct oj_flat view_a, view_b;
        struct change change = {0};
        change.exponent = exponents[round % n];
        change.turn = pick(2);
        change.reverse = pick(2);
        change.rotate = pick(2);
        change.repeat = pick(2);
        if (stays_exact(text))
        {
            change.by_x = pick(2) ? pick(9) - 4 : pick(2000000) - 1000000;
            change.by_y = pick(2) ? pick(9) - 4 : pick(2000000) - 1000000;
            if (abs(change.exponent) > 450)
            {
                change.by_x = 0;
                change.by_y = pick(2);
            }
        }
        else
            change.exponent = 0;
        add_changed(&to_a, a, &change);
        change.reverse = pick(2);
        change.repeat = pick(2);
        add_changed(&to_b, b, &change);
        view_a = oj_flat_buf_view(&to_a);
        view_b = oj_flat_buf_view(&to_b);
        check_matrix(&view_a, &view_b, expected, text);
    }
}

/* The n-th allocation fails, for all n. */
static void check_memory(const struct oj_flat *a, const struct oj_flat *b,
                         const char *expected)
{
    oj_status status = OJ_ERR_NOMEM;
    for (int64_t n = 1; status != OJ_OK; n++)
    {
        struct oj_matrix matrix = {"untouched"};
        oj_alloc_fail_at(n);
        status = oj_exact_matrix(a, 0, b, 0, &matrix, &error);
        oj_alloc_fail_at(0);
        ck_assert(status == OJ_OK || status == OJ_ERR_NOMEM);
        ck_assert_str_eq(matrix.at, status == OJ_OK ? expected : "untouched");
    }
    if (a->n_vertices == 0 || b->n_vertices == 0 || isnan(a->x[0]) ||
        isnan(b->x[0]))
        return;
    status = OJ_ERR_NOMEM;
    for (int64_t n = 1; status != OJ_OK; n++)
    {
        int order = 7;
        oj_alloc_fail_at(n);
        status = oj_exact_compare_distance(a, 0, b, 0, OJ_TO_INTERIOR, 0.0,
                                           &order, &error);
        oj_alloc_fail_at(0);
        ck_assert(status == OJ_OK || status == OJ_ERR_NOMEM);
        ck_assert((order == 7) == (status != OJ_OK));
    }
}

/* Checks that the distance is 0 exactly if the features have a common point. */
static void check_contact(const struct oj_flat *a, const struct oj_flat *b,
                          const char *matrix, const char *text)
{
    int meets = matrix[0] != 'F' || matrix[1] != 'F' || matrix[3] != 'F' ||
                matrix[4] != 'F';
    if (strstr(text, "EMPTY") != NULL)
        return;
    ck_assert_int_eq(exact_order(a, 0, b, 0, OJ_TO_INTERIOR, 0.0), !meets);
    ck_assert_int_eq(exact_order(b, 0, a, 0, OJ_TO_INTERIOR, 0.0), !meets);
}

static FILE *open_cases(void)
{
    FILE *file = fopen(OJ_TEST_CASES "/matrices.txt", "r");
    ck_assert_ptr_nonnull(file);
    return file;
}

TEST(truth_by_hand)
{
    char line[4096], text[4096];
    FILE *file = open_cases();
    int n_cases = 0;
    wkt_open();
    random_state = 4;
    while (fgets(line, sizeof line, file) != NULL)
    {
        LAYER a = {0}, b = {0};
        struct oj_flat view_a, view_b;
        char *first = strchr(line, ';'), *second;
        if (line[0] == '#' || first == NULL)
            continue;
        line[strcspn(line, "\n")] = '\0';
        strcpy(text, line);
        *first++ = '\0';
        second = strchr(first, ';');
        ck_assert_ptr_nonnull(second);
        *second++ = '\0';
        add_shape(&a, first);
        add_shape(&b, second);
        view_a = oj_flat_buf_view(&a);
        view_b = oj_flat_buf_view(&b);
        check_matrix(&view_a, &view_b, line, text);
        check_changed(&view_a, &view_b, line, text);
        check_contact(&view_a, &view_b, line, text);
        check_memory(&view_a, &view_b, line);
        n_cases++;
    }
    fclose(file);
    wkt_close();
    printf("%d matrices by hand, each in 28 forms and both orders\n", n_cases);
    ck_assert_int_ge(n_cases, 120);
}

/* --- predicates ----------------------------------------------------------- */

TEST(predicates_of_a_pair)
{
    LAYER a = {0}, b = {0};
    struct oj_flat view_a, view_b;
    struct oj_relation relation = oj_relation_default();
    int holds;
    add_square(&a, 0, 0, 4, 4);
    must(oj_flat_buf_add_null(&a, 2, &error));
    add_square(&b, 4, 4, 5, 5);
    add_square(&b, 1, 1, 2, 2);
    view_a = oj_flat_buf_view(&a);
    view_b = oj_flat_buf_view(&b);
    relation.op = OJ_OP_TOUCHES;
    ck_assert_int_eq(exact_holds(&relation, &view_a, 0, &view_b, 0), 1);
    ck_assert_int_eq(exact_holds(&relation, &view_a, 0, &view_b, 1), 0);
    relation.op = OJ_OP_CONTAINS;
    ck_assert_int_eq(exact_holds(&relation, &view_a, 0, &view_b, 1), 1);
    relation.op = OJ_OP_BBOX;
    ck_assert_int_eq(exact_holds(&relation, &view_a, 0, &view_b, 0), 1);
    ck_assert_int_eq(exact_holds(&relation, &view_b, 0, &view_b, 1), 0);
    relation.op = OJ_OP_DISJOINT;
    ck_assert_int_eq(exact_holds(&relation, &view_b, 0, &view_b, 1), 1);
    /* a feature without geometry has no pairs */
    ck_assert_int_eq(exact_holds(&relation, &view_a, 1, &view_b, 1), 0);
    for (int i = 0; i < OJ_N_OPS; i++)
    {
        relation.op = (enum oj_op)i;
        if ((oj_op_get(relation.op)->takes & OJ_TAKES_SHAPES) == 0)
            ck_assert_int_eq(oj_exact_decide_pair(&relation, &view_a, 0,
                                                  &view_b, 0, &holds, &error),
                             OJ_ERR_INTERNAL);
    }
}

/* --- distances ------------------------------------------------------------ */

struct small_fraction
{
    int64_t above, below;
};

static int is_less(struct small_fraction a, struct small_fraction b)
{
    return a.above * b.below < b.above * a.below;
}

/* Returns the squared distance of p and the segment a b. Coordinates are
 * integers below 2^9. */
static struct small_fraction point_to_segment(const int *p, const int *a,
                                              const int *b)
{
    int64_t dx = b[0] - a[0], dy = b[1] - a[1];
    int64_t px = p[0] - a[0], py = p[1] - a[1];
    int64_t at = dx * px + dy * py, length = dx * dx + dy * dy;
    struct small_fraction d = {px * px + py * py, 1};
    if (at > 0 && at < length)
    {
        d.above = (dx * py - dy * px) * (dx * py - dy * px);
        d.below = length;
    }
    else if (at > 0)
    {
        px = p[0] - b[0];
        py = p[1] - b[1];
        d.above = px * px + py * py;
    }
    return d;
}

static int turn_of(const int *a, const int *b, const int *c)
{
    int64_t v = (int64_t)(b[0] - a[0]) * (c[1] - a[1]) -
                (int64_t)(b[1] - a[1]) * (c[0] - a[0]);
    return (v > 0) - (v < 0);
}

static struct small_fraction segment_to_segment(const int *a, const int *b,
                                                const int *c, const int *d)
{
    struct small_fraction least = point_to_segment(a, c, d), other[3];
    other[0] = point_to_segment(b, c, d);
    other[1] = point_to_segment(c, a, b);
    other[2] = point_to_segment(d, a, b);
    for (int i = 0; i < 3; i++)
    {
        if (is_less(other[i], least))
            least = other[i];
    }
    if (turn_of(a, b, c) * turn_of(a, b, d) < 0 &&
        turn_of(c, d, a) * turn_of(c, d, b) < 0)
        least.above = 0;
    return least;
}

static void add_lattice_line(struct oj_flat_buf *buf, const int (*at)[2], int n,
                             double step)
{
    double xy[64];
    for (int i = 0; i < 2 * n; i++)
        xy[i] = at[i / 2][i % 2] * step;
    add_simple(buf, OJ_PART_LINE, n, xy);
}

/* Compares the distance with limit: squared.above with limit * limit *
 * squared.below. Returns -1, 0 or 1. */
static int order_of(struct small_fraction squared, int64_t limit)
{
    int64_t right = limit * limit * squared.below;
    return (squared.above > right) - (squared.above < right);
}

TEST(distances_of_lines)
{
    random_state = first_seed();
    for (int64_t round = rounds(20000); round > 0; round--)
    {
        int size = 2 + pick(60), n[2] = {2 + pick(6), 2 + pick(6)}, at[2][8][2];
        double step = ldexp(1.0, pick(1150) - 700);
        struct small_fraction least = {INT32_MAX, 1};
        LAYER a = {0}, b = {0};
        struct oj_flat view_a, view_b;
        for (int i = 0; i < 32; i++)
            at[i / 16][i / 2 % 8][i % 2] = pick(size);
        for (int i = 0; i + 1 < n[0]; i++)
        {
            for (int j = 0; j + 1 < n[1]; j++)
            {
                struct small_fraction d = segment_to_segment(
                    at[0][i], at[0][i + 1], at[1][j], at[1][j + 1]);
                if (is_less(d, least))
                    least = d;
            }
        }
        add_lattice_line(&a, at[0], n[0], step);
        add_lattice_line(&b, at[1], n[1], step);
        view_a = oj_flat_buf_view(&a);
        view_b = oj_flat_buf_view(&b);
        for (int64_t limit = 0; limit < 6; limit++)
        {
            int order = exact_order(&view_a, 0, &view_b, 0, OJ_TO_INTERIOR,
                                    (double)limit * step);
            expect(order == order_of(least, limit), "round %lld: limit %d",
                   (long long)round, (int)limit);
            /* nearer to limit than to limit + 2 means not greater than limit +
             * 1 */
            expect(exact_is_nearer(&view_b, 0, &view_a, 0, OJ_TO_BOUNDARY,
                                   (double)limit * step,
                                   (double)(limit + 2) * step) ==
                       (order_of(least, limit + 1) <= 0),
                   "round %lld: nearer to %d", (long long)round, (int)limit);
            expect(exact_is_nearer(&view_b, 0, &view_a, 0, OJ_TO_BOUNDARY,
                                   (double)(limit + 2) * step,
                                   (double)limit * step) ==
                       (order_of(least, limit + 1) >= 0),
                   "round %lld: farther than %d", (long long)round, (int)limit);
        }
    }
}

TEST(distances_by_hand)
{
    LAYER a = {0}, b = {0};
    struct oj_flat view_a, view_b;
    wkt_open();
    add_shape(&a, "POINT (2 2)");
    add_shape(&a, "POINT (3 4)");
    add_shape(&a, "POINT (1 1)");
    add_shape(&a, "LINESTRING (1e150 1e150, 1e150 -1e150)");
    add_shape(&a, "POINT (5e-324 0)");
    add_shape(&b, "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))");
    add_shape(&b, "POINT (0 0)");
    add_shape(&b, "POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 8 1, 8 8, 1 8, "
                  "1 1))");
    add_shape(&b, "LINESTRING (-1e150 0, -1e150 5)");
    view_a = oj_flat_buf_view(&a);
    view_b = oj_flat_buf_view(&b);
    /* from inside, and from the ring */
    ck_assert_int_eq(exact_order(&view_a, 0, &view_b, 0, OJ_TO_INTERIOR, 0), 0);
    ck_assert_int_eq(exact_order(&view_a, 0, &view_b, 0, OJ_TO_BOUNDARY, 2), 0);
    ck_assert_int_eq(exact_order(&view_b, 0, &view_a, 0, OJ_TO_BOUNDARY, 2), 0);
    /* from a point in a hole */
    ck_assert_int_eq(exact_order(&view_a, 0, &view_b, 2, OJ_TO_INTERIOR, 1), 0);
    /* a right triangle with the sides 3, 4, 5; then the doubles next to 5 and
     * next to sqrt(2) */
    ck_assert_int_eq(exact_order(&view_a, 1, &view_b, 1, OJ_TO_INTERIOR, 5), 0);
    ck_assert_int_eq(exact_order(&view_a, 1, &view_b, 1, OJ_TO_INTERIOR,
                                 nextafter(5.0, 0.0)),
                     1);
    ck_assert_int_eq(exact_order(&view_a, 1, &view_b, 1, OJ_TO_INTERIOR,
                                 nextafter(5.0, 6.0)),
                     -1);
    ck_assert_int_eq(
        exact_order(&view_a, 2, &view_b, 1, OJ_TO_INTERIOR, 1.4142135623730951),
        -1);
    ck_assert_int_eq(
        exact_order(&view_a, 2, &view_b, 1, OJ_TO_INTERIOR, 1.4142135623730950),
        1);
    ck_assert_int_eq(exact_is_nearer(&view_a, 2, &view_b, 1, OJ_TO_INTERIOR,
                                     1.4142135623730951,
                                     nextafter(1.4142135623730951, 0.0)),
                     1);
    ck_assert_int_eq(exact_is_nearer(&view_a, 2, &view_b, 1, OJ_TO_INTERIOR,
                                     1.4142135623730951, 1.4142135623730951),
                     1);
    /* a distance near the maximum; and the smallest double above 0 */
    ck_assert_int_eq(
        exact_order(&view_a, 3, &view_b, 3, OJ_TO_INTERIOR, 1.7e150), 1);
    ck_assert_int_eq(exact_order(&view_a, 4, &view_b, 1, OJ_TO_INTERIOR, 0), 1);
    ck_assert_int_eq(
        exact_order(&view_a, 4, &view_b, 1, OJ_TO_INTERIOR, 5e-324), 0);
    ck_assert_int_eq(
        exact_is_nearer(&view_a, 4, &view_b, 1, OJ_TO_INTERIOR, 5e-324, 0.0),
        1);
    wkt_close();
}

/* --- size ----------------------------------------------------------------- */

TEST(large_polygons)
{
    LAYER a = {0}, b = {0};
    struct oj_flat view_a, view_b;
    struct oj_matrix matrix;
    add_disc(&a, 5000, 0.1, 0.2, 90, 100);
    add_disc(&b, 5000, 3.3, 0.2, 90, 100);
    view_a = oj_flat_buf_view(&a);
    view_b = oj_flat_buf_view(&b);
    matrix = exact_matrix(&view_a, 0, &view_b, 0);
    ck_assert_str_eq(matrix.at, "212101212");
    matrix = exact_matrix(&view_a, 0, &view_a, 0);
    ck_assert_str_eq(matrix.at, "2FFF1FFF2");
    ck_assert_int_eq(exact_order(&view_a, 0, &view_b, 0, OJ_TO_BOUNDARY, 0), 0);
    oj_flat_buf_clear(&b);
    add_disc(&b, 5000, 303.3, 0.2, 90, 100);
    view_b = oj_flat_buf_view(&b);
    ck_assert_int_eq(exact_order(&view_a, 0, &view_b, 0, OJ_TO_BOUNDARY, 103),
                     1);
    ck_assert_int_eq(exact_order(&view_a, 0, &view_b, 0, OJ_TO_BOUNDARY, 124),
                     -1);
}

int main(void)
{
    tests_open("exact_reference");
    return tests_run();
}
