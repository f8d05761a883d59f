/* Features whose polygon parts overlap or share edges. Tests how they are
 * found, where points are in them, their joins on the CPU, and their areas.
 * test_random_layers joins them on every backend.
 * Kind: unit, property. OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../references.h"

#include "../../../algs/foundations/kernels/oj_ring.h"
#include "../../../algs/geometry/relate/oj_self_overlap.h"
#include "../../../algs/pairs/values/oj_pair_stage.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../exact_truth.h"
#include "../random_numbers.h"
#include "../run_tests.h"
#include "../within/point_matches.h"

static int64_t n_marked, n_unmarked_several;
static int64_t n_surrounded;

/* --- layers --------------------------------------------------------------- */

/* Adds a feature that is given as a text. Parts are separated by '|', rings by
 * ';', coordinates by blanks. L begins a line, P a point. */
static void add_text(struct oj_flat_buf *buf, const char *text)
{
    begin(buf);
    for (const char *at = text; *at != '\0';)
    {
        double xy[200];
        int n = 0;
        enum oj_part_kind kind = *at == 'L'   ? OJ_PART_LINE
                                 : *at == 'P' ? OJ_PART_POINT
                                              : OJ_PART_POLYGON;
        at += *at == 'L' || *at == 'P';
        add_part(buf, kind);
        for (;;)
        {
            char *next;
            double v = strtod(at, &next);
            if (next != at)
            {
                ck_assert_int_lt(n, 200);
                xy[n++] = v;
                at = next;
                continue;
            }
            while (*at == ' ')
                at++;
            add_ring(buf, n / 2, xy);
            n = 0;
            if (*at != ';')
                break;
            at++;
        }
        at += *at == '|';
    }
    end(buf);
}

/* --- random features ------------------------------------------------------ */

static void random_ring(struct oj_flat_buf *buf, double x0, double y0,
                        double size)
{
    double xy[20];
    int n = 3 + pick(4);
    if (pick(2))
    {
        double x1 = x0 + 1 + pick((int)size), y1 = y0 + 1 + pick((int)size);
        double box[] = {x0, y0, x1, y0, x1, y1, x0, y1, x0, y0};
        add_ring(buf, 5, box);
        return;
    }
    for (int i = 0; i < n; i++)
    {
        xy[2 * i] = x0 + pick((int)size + 1);
        xy[2 * i + 1] = y0 + pick((int)size + 1);
    }
    xy[2 * n] = xy[0];
    xy[2 * n + 1] = xy[1];
    add_ring(buf, n + 1, xy);
}

/* Adds two or more adjacent triangles, as in a TIN or a collected layer. */
static void add_tiles(struct oj_flat_buf *buf)
{
    double step = 1 + pick(2);
    for (int i = 0; i < 4; i++)
    {
        double x = step * (i % 2), y = step * (i / 2);
        double low[] = {x, y, x + step, y, x, y + step, x, y};
        double high[] = {x + step, y,        x + step, y + step,
                         x,        y + step, x + step, y};
        if (one_in(6))
            continue;
        add_part(buf, OJ_PART_POLYGON);
        add_ring(buf, 4, low);
        add_part(buf, OJ_PART_POLYGON);
        add_ring(buf, 4, high);
    }
}

static void add_random(struct oj_flat_buf *buf)
{
    int n = 1 + pick(4);
    begin(buf);
    if (one_in(5))
        add_tiles(buf);
    for (int i = 0; i < n; i++)
    {
        uint64_t state = random_state;
        for (int times = one_in(8) ? 2 : 1; times > 0; times--)
        {
            random_state = state;
            add_part(buf, OJ_PART_POLYGON);
            random_ring(buf, pick(3), pick(3), 1 + pick(2));
            if (one_in(3))
                random_ring(buf, pick(3), pick(3), 1 + pick(2));
        }
    }
    end(buf);
}

static void add_grid(struct oj_flat_buf *buf)
{
    for (int i = 0; i < 11; i++)
    {
        for (int j = 0; j < 11; j++)
            must(oj_flat_buf_add_point(buf, buf->n_features, 0.5 * i - 0.5,
                                       0.5 * j - 0.5, &error));
    }
    must(oj_flat_buf_add_null(buf, buf->n_features, &error));
}

static void make_layers(struct oj_flat_buf *join, struct oj_flat_buf *input)
{
    int n = 1 + pick(30);
    for (int i = 0; i < n; i++)
        add_random(join);
    add_grid(input);
}

/* Locates a point by the even-odd rule over all rings of a polygon feature. */
static enum oj_location even_odd(const struct oj_flat *flat, int64_t feature,
                                 double x, double y)
{
    const int64_t *part = flat->part_offset + feature;
    return oj_rings_locate_by_even_odd(
        x, y, flat->x, flat->y, flat->vertex_offset, flat->ring_offset[part[0]],
        flat->ring_offset[part[1]]);
}

/* --- which features have overlapping parts -------------------------------- */

static void check_mark(const char *text, int is_marked)
{
    for (int n_threads = 1; n_threads < 4; n_threads++)
    {
        LAYER buf = {0};
        struct oj_flat flat;
        uint8_t *mark = NULL;
        add_square(&buf, 0, 0, 1, 1);
        add_text(&buf, text);
        must(oj_flat_buf_add_null(&buf, 9, &error));
        flat = oj_flat_buf_view(&buf);
        must(oj_self_overlap_find(&flat, 1, n_threads, NULL, &mark, &error));
        ck_assert_msg((mark != NULL) == is_marked, "%s", text);
        if (mark != NULL)
            ck_assert_msg(mark[0] == 0 && mark[1] == 1 && mark[2] == 0, "%s",
                          text);
        oj_free(mark);
    }
}

TEST(marks)
{
    /* areas that overlap */
    check_mark("0 0 5 0 5 5 0 5 0 0|3 2 8 2 8 7 3 7 3 2", 1);
    check_mark("0 0 5 0 5 5 0 5 0 0|0 0 5 0 5 5 0 5 0 0", 1);
    check_mark("0 0 5 0 5 5 0 5 0 0|1 1 2 1 2 2 1 2 1 1", 1);
    check_mark("1 1 2 1 2 2 1 2 1 1|0 0 5 0 5 5 0 5 0 0", 1);
    /* each polygon passes only through vertices of the other */
    check_mark("0 0 2 0 4 0 4 4 2 4 0 4 0 0|2 -1 3 -1 3 5 2 5 2 4 2 0 2 -1", 1);
    check_mark("0 2 2 0 4 2 2 4 0 2|2 0 3 2 2 4 1 2 2 0", 1);
    check_mark("0 2 2 0 4 2 2 4 0 2|2 0 4 2 2 4 0 2 2 0", 1);
    /* a common edge, or a part of one */
    check_mark("1 1 1 6 4 6 4 1 1 1|9 1 4 1 4 6 9 6 9 1", 1);
    check_mark("1 1 1 6 4 6 4 1 1 1|9 2 4 2 4 3 9 3 9 2", 1);
    check_mark("0 0 9 0 9 9 0 9 0 0;2 2 7 2 7 7 2 7 2 2|2 3 4 3 4 4 2 4 2 3",
               1);
    /* disjoint, or touching in points */
    check_mark("0 0 1 0 1 1 0 1 0 0|2 0 3 0 3 1 2 1 2 0", 0);
    check_mark("0 0 1 0 1 1 0 1 0 0|1 1 2 1 2 2 1 2 1 1", 0);
    check_mark("0 0 4 0 0 4 0 0|4 1 4 4 1 4 4 1", 0);
    check_mark("0 0 4 0 4 4 0 4 0 0|4 2 6 1 6 3 4 2", 0);
    check_mark("0 0 9 0 9 9 0 9 0 0;2 2 7 2 7 7 2 7 2 2|3 3 4 3 4 4 3 4 3 3",
               0);
    check_mark("3 3 4 3 4 4 3 4 3 3|0 0 9 0 9 9 0 9 0 0;2 2 7 2 7 7 2 7 2 2",
               0);
    /* an island that touches the shore of its lake, in its first vertex or in
     * another
     */
    check_mark("0 0 9 0 9 9 0 9 0 0;2 2 7 2 7 7 2 7 2 2|2 3 4 2 4 4 2 3", 0);
    check_mark("0 0 9 0 9 9 0 9 0 0;2 2 7 2 7 7 2 7 2 2|2 3 4 3 4 4 2 3", 0);
    check_mark("0 0 9 0 9 9 0 9 0 0;2 2 7 2 7 7 2 7 2 2|4 3 4 4 2 3 4 3", 0);
    /* one is inside the other, with every vertex on the other's ring */
    check_mark("0 2 2 0 4 2 2 4 0 2|1 1 3 3 1 3 1 1", 1);
    check_mark("0 0 4 0 4 4 0 4 0 0|2 0 4 2 2 4 0 2 2 0", 1);
    /* one polygon, and parts of other kinds */
    check_mark("0 0 5 0 5 5 0 5 0 0|L1 1 2 2|P1 1", 0);
    check_mark("L1 1 2 2|L1 1 2 2|P1 1|P1 1", 0);
    check_mark("L1 1 2 2|0 0 5 0 5 5 0 5 0 0|P1 1|1 1 2 1 2 2 1 2 1 1", 1);
    /* bow ties: the even-odd rule holds within each part */
    check_mark("0 0 4 4 4 0 0 4 0 0|1 2 2 2.5 3 2 2 3 1 2", 1);
    /* polygons that enclose nothing */
    check_mark("1 1 2 2 1 1", 1);
    check_mark("0 0 4 0 4 4 4 0 0 0", 1);
    check_mark("0 0 4 0 4 4 0 4 0 0 4 0 4 4 0 4 0 0", 1);
    check_mark("0 0 4 0 4 4 0 4 0 0 5 5 0 0", 0);
}

/* Adds a coast of many vertices with islands inside its box. extra adds one
 * more island, on the land or across the coast. */
static void add_coast(struct oj_flat_buf *buf, int n, int extra)
{
    begin(buf);
    add_part(buf, OJ_PART_POLYGON);
    add_round_ring(buf, n, 0, 0, 100.5, 100.0);
    for (int i = 0; i < 40; i++)
    {
        double angle = 6.283185307179586 * (i + 0.4) / 40;
        double x = (extra == 1 && i == 7 ? 90.0 : 101.0) * cos(angle);
        double y = (extra == 1 && i == 7 ? 90.0 : 101.0) * sin(angle);
        double size = extra == 2 && i == 7 ? -2.0 : 0.2;
        double island[] = {x,        y, x + size, y, x + size,
                           y + size, x, y + size, x, y};
        add_part(buf, OJ_PART_POLYGON);
        add_ring(buf, 5, island);
    }
    end(buf);
}

TEST(coasts)
{
    for (int extra = 0; extra < 3; extra++)
    {
        LAYER buf = {0};
        struct oj_flat flat;
        uint8_t *mark = NULL;
        add_coast(&buf, 5000, 0);
        add_coast(&buf, 5000, extra);
        flat = oj_flat_buf_view(&buf);
        must(oj_self_overlap_find(&flat, 1, 2, NULL, &mark, &error));
        ck_assert_int_eq(mark != NULL, extra > 0);
        ck_assert(mark == NULL || (mark[0] == 0 && mark[1] == 1));
        oj_free(mark);
    }
}

/* In features that are not marked, the even-odd rule over all rings is right.
 * The exact reference agrees with the plain one. */
TEST(locations)
{
    int64_t n = rounds(30);
    EACH_ROUND(30)
    {
        LAYER join_buf = {0}, input_buf = {0};
        struct oj_flat join, input;
        uint8_t *mark = NULL;
        make_layers(&join_buf, &input_buf);
        join = oj_flat_buf_view(&join_buf);
        input = oj_flat_buf_view(&input_buf);
        must(oj_self_overlap_find(&join, 1, 1 + pick(3), NULL, &mark, &error));
        for (int64_t f = 0; f < join.n_features; f++)
        {
            int is_marked = mark != NULL && mark[f];
            n_marked += is_marked;
            n_unmarked_several +=
                !is_marked && join.part_offset[f + 1] - join.part_offset[f] > 1;
            for (int64_t p = 0; p + 1 < input.n_features; p++)
            {
                double x = input.x[p], y = input.y[p];
                enum oj_location truth = exact_location(&join, f, x, y);
                enum oj_location by_rings = even_odd(&join, f, x, y);
                n_surrounded +=
                    truth == OJ_INSIDE && by_rings == OJ_ON_BOUNDARY;
                expect(locate(&join, f, x, y) == truth,
                       "seed %d, feature %d, %g %g", (int)seed, (int)f, x, y);
                expect(is_marked || by_rings == truth,
                       "seed %d, feature %d is not marked, %g %g", (int)seed,
                       (int)f, x, y);
            }
        }
        oj_free(mark);
    }
    ck_assert_int_gt(n_marked, n);
    ck_assert_int_gt(n_unmarked_several, n / 4);
    ck_assert_int_gt(n_surrounded, n);
}

/* --- joins ---------------------------------------------------------------- */

/* Joins with conditions on attributes, in batches, on threads. In some rounds
 * other kinds than points are expected, or more pairs are found than
 * allowed. */
TEST(joins)
{
    static const enum oj_op ops[] = {OJ_OP_INTERSECTS, OJ_OP_WITHIN,
                                     OJ_OP_COVEREDBY, OJ_OP_TOUCHES};
    EACH_ROUND(2)
    {
        LAYER join_buf = {0}, input_buf = {0};
        MATCHES out = {0};
        struct oj_options options = {.n_threads = 1 + pick(3),
                                     .input_kinds =
                                         one_in(3) ? OJ_PART_POLYGON : 0};
        struct oj_relation relation = oj_relation_default();
        struct oj_flat join, input;
        struct points_trial t = {&join, &input, &relation, NULL, NULL};
        struct oj_join *opened;
        int32_t class_of[200];
        uint8_t *truth;
        int64_t n, n_rows;
        make_layers(&join_buf, &input_buf);
        join = oj_flat_buf_view(&join_buf);
        input = oj_flat_buf_view(&input_buf);
        n = join.n_features;
        n_rows = input.n_features;
        for (int i = 0; i < 200; i++)
            class_of[i] = pick(3) - 1;
        if (one_in(3))
            join.on_class = input.on_class = class_of;
        relation.op = ops[pick(4)];
        relation.any_order = pick(2);
        t.truth = truth = oj_calloc(n * n_rows, 1);
        for (int64_t p = 0; p < n * (n_rows - 1); p++)
            truth[p] =
                plain_is_allowed(&relation, &input, p / n, &join, p % n) &&
                holds(relation.op,
                      locate(&join, p % n, input.x[p / n], input.y[p / n]));
        must(oj_join_open(&join, &relation, "cpu", &options, &opened, &error));
        for (int64_t b = 0; b < 3; b++)
        {
            int64_t first = n_rows * b / 3, end = n_rows * (b + 1) / 3;
            struct oj_flat batch = part_of(&input, first, end - first);
            must(oj_join_batch(opened, &batch, &out, &error));
            check_matches(&t, first, end - first, &out);
        }
        oj_join_close(opened);
        oj_free(truth);
        relation = oj_relation_default();
        relation.op = OJ_OP_INTERSECTS;
        join.on_class = input.on_class = NULL;
        options.max_batch_pairs = 1;
        must(oj_join_open(&join, &relation, "cpu", &options, &opened, &error));
        ck_assert_int_eq(oj_join_batch(opened, &input, &out, &error),
                         OJ_ERR_TOO_MANY_PAIRS);
        oj_join_close(opened);
    }
    ck_assert_int_gt(n_pairs_seen, 24);
}

/* --- areas of unions and intersections ------------------------------------ */

struct areas
{
    double overlap, length, percent, join;
    int32_t picked;
};

/* Measures the pairs of the only input feature with two join features. Both
 * intersect it. */
static struct areas measure_pair(const char *input_text, const char *first,
                                 const char *second, enum oj_pick_rule rule)
{
    LAYER input_buf = {0}, join_buf = {0};
    struct oj_pair_request request = {0};
    struct oj_pair_values values = {0};
    struct oj_pair_stage *stage;
    MATCHES m = {0};
    struct areas areas;
    add_text(&input_buf, input_text);
    add_text(&join_buf, first);
    add_text(&join_buf, second);
    const struct oj_flat a = oj_flat_buf_view(&input_buf);
    const struct oj_flat b = oj_flat_buf_view(&join_buf);
    const struct oj_pair_side input = {&a, &a, NULL, NULL};
    const struct oj_pair_side side = {&b, &b, NULL, NULL};
    request.pick = rule;
    memset(request.want, 1, sizeof request.want);
    request.relation = oj_relation_default();
    request.relation.op = OJ_OP_INTERSECTS;
    request.n_threads = 1;
    must(oj_matches_reserve(&m, 1, 2, 1, &error));
    m.offset[0] = 0;
    m.offset[1] = m.n_pairs = 2;
    m.n_matched = 1;
    m.join_row[0] = 0;
    m.join_row[1] = 1;
    m.measure[0] = m.measure[1] = (double)NAN;
    must(oj_pair_stage_open(&request, &stage, &error));
    must(oj_pair_stage_set_join_side(stage, &side, &error));
    must(oj_pair_stage_run(stage, &input, &m, &values, &error));
    areas.overlap = values.value[OJ_PAIR_OVERLAP_AREA][0];
    areas.length = values.value[OJ_PAIR_OVERLAP_LENGTH][0];
    areas.percent = values.value[OJ_PAIR_OVERLAP_PERCENT][0];
    areas.join = values.value[OJ_PAIR_JOIN_AREA][0];
    areas.picked = values.is_picked ? values.picked.join_row[0] : -1;
    oj_pair_stage_close(stage);
    oj_pair_values_free(&values);
    return areas;
}

TEST(areas_of_unions)
{
    static const char two[] = "0 0 5 0 5 5 0 5 0 0|3 2 8 2 8 7 3 7 3 2";
    static const char mixed[] =
        "0 0 5 0 5 5 0 5 0 0|3 2 8 2 8 7 3 7 3 2|L1 1 1 9|P20 20";
    static const char inside[] = "3 2 5 2 5 5 3 5 3 2";
    static const char box45[] = "0 0 9 0 9 5 0 5 0 0";
    struct areas a = measure_pair(inside, two, box45, OJ_PICK_ALL);
    ck_assert(a.overlap == 6.0 && a.percent == 100.0 && a.join == 44.0);
    a = measure_pair(two, inside, box45, OJ_PICK_ALL);
    ck_assert(a.overlap == 6.0 && a.join == 6.0);
    ck_assert(a.percent == 100.0 * 6.0 / 44.0);
    a = measure_pair(two, two, box45, OJ_PICK_ALL);
    ck_assert(a.overlap == 44.0 && a.percent == 100.0);
    /* one polygon twice */
    a = measure_pair(inside, "0 0 9 0 9 5 0 5 0 0|0 0 9 0 9 5 0 5 0 0", two,
                     OJ_PICK_ALL);
    ck_assert(a.overlap == 6.0 && a.join == 45.0);
    /* a feature with lines and points, too */
    a = measure_pair(inside, mixed, box45, OJ_PICK_ALL);
    ck_assert(a.overlap == 6.0 && a.length == 0.0 && a.join == 44.0);
    a = measure_pair("0 0 2 0 2 9 0 9 0 0|L1 2 4 2", mixed, box45, OJ_PICK_ALL);
    ck_assert(a.overlap == 10.0 && a.length == 6.0 && a.join == 44.0);
    /* 44 is less than 45 and more than 43 */
    ck_assert_int_eq(
        measure_pair(inside, box45, two, OJ_PICK_SMALLEST_AREA).picked, 1);
    ck_assert_int_eq(
        measure_pair(inside, "0 0 9 0 9 4 0 4 0 0", two, OJ_PICK_LARGEST_AREA)
            .picked,
        1);
    ck_assert_int_eq(measure_pair("2 0 9 0 9 9 2 9 2 0",
                                  "0 0 8 0 8 5.8 0 5.8 0 0", two,
                                  OJ_PICK_LARGEST_OVERLAP)
                         .picked,
                     0);
}

int main(void)
{
    tests_open("overlapping parts");
    return tests_run();
}
