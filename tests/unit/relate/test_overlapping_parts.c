/* Which features have polygon parts that overlap or share edges, and where
 * points lie in them.
 * Kind: unit, property.  OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../references.h"

#include "../../../algs/relate/oj_overlapping_parts.h"
#include "../overlapping_layers.h"
#include "../run_tests.h"

static int64_t n_marked, n_unmarked_several;

/* By even-odd over all rings of a feature of polygons. */
static enum oj_location even_odd(const struct oj_flat *flat, int64_t feature,
                                 double x, double y)
{
    int odd = 0;
    for (int64_t p = flat->part_offset[feature];
         p < flat->part_offset[feature + 1]; p++)
    {
        enum oj_location in = OJ_OUTSIDE;
        if (flat->part_kind[p] == OJ_PART_POLYGON)
            in = plain_in_part(flat, p, x, y);
        if (in == OJ_ON_BOUNDARY)
            return in;
        odd ^= in == OJ_INSIDE;
    }
    return odd ? OJ_INSIDE : OJ_OUTSIDE;
}

/* --- which features they are ---------------------------------------------- */

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
        must(oj_overlapping_parts(&flat, 1, n_threads, NULL, &mark, &error));
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
    /* across each other's vertices only */
    check_mark("0 0 2 0 4 0 4 4 2 4 0 4 0 0|2 -1 3 -1 3 5 2 5 2 4 2 0 2 -1", 1);
    check_mark("0 2 2 0 4 2 2 4 0 2|2 0 3 2 2 4 1 2 2 0", 1);
    check_mark("0 2 2 0 4 2 2 4 0 2|2 0 4 2 2 4 0 2 2 0", 1);
    /* an edge in common, or a piece of one */
    check_mark("1 1 1 6 4 6 4 1 1 1|9 1 4 1 4 6 9 6 9 1", 1);
    check_mark("1 1 1 6 4 6 4 1 1 1|9 2 4 2 4 3 9 3 9 2", 1);
    check_mark("0 0 9 0 9 9 0 9 0 0;2 2 7 2 7 7 2 7 2 2|2 3 4 3 4 4 2 4 2 3",
               1);
    /* apart, or in points */
    check_mark("0 0 1 0 1 1 0 1 0 0|2 0 3 0 3 1 2 1 2 0", 0);
    check_mark("0 0 1 0 1 1 0 1 0 0|1 1 2 1 2 2 1 2 1 1", 0);
    check_mark("0 0 4 0 0 4 0 0|4 1 4 4 1 4 4 1", 0);
    check_mark("0 0 4 0 4 4 0 4 0 0|4 2 6 1 6 3 4 2", 0);
    check_mark("0 0 9 0 9 9 0 9 0 0;2 2 7 2 7 7 2 7 2 2|3 3 4 3 4 4 3 4 3 3",
               0);
    check_mark("3 3 4 3 4 4 3 4 3 3|0 0 9 0 9 9 0 9 0 0;2 2 7 2 7 7 2 7 2 2",
               0);
    /* an island that touches its lake's shore, with its first vertex or not */
    check_mark("0 0 9 0 9 9 0 9 0 0;2 2 7 2 7 7 2 7 2 2|2 3 4 2 4 4 2 3", 0);
    check_mark("0 0 9 0 9 9 0 9 0 0;2 2 7 2 7 7 2 7 2 2|2 3 4 3 4 4 2 3", 0);
    check_mark("0 0 9 0 9 9 0 9 0 0;2 2 7 2 7 7 2 7 2 2|4 3 4 4 2 3 4 3", 0);
    /* inside, and every vertex on the other's ring */
    check_mark("0 2 2 0 4 2 2 4 0 2|1 1 3 3 1 3 1 1", 1);
    check_mark("0 0 4 0 4 4 0 4 0 0|2 0 4 2 2 4 0 2 2 0", 1);
    /* one polygon, and parts of other kinds */
    check_mark("0 0 5 0 5 5 0 5 0 0|L1 1 2 2|P1 1", 0);
    check_mark("L1 1 2 2|L1 1 2 2|P1 1|P1 1", 0);
    check_mark("L1 1 2 2|0 0 5 0 5 5 0 5 0 0|P1 1|1 1 2 1 2 2 1 2 1 1", 1);
    /* bow ties: even-odd within each part */
    check_mark("0 0 4 4 4 0 0 4 0 0|1 2 2 2.5 3 2 2 3 1 2", 1);
    /* polygons that enclose nothing */
    check_mark("1 1 2 2 1 1", 1);
    check_mark("0 0 4 0 4 4 4 0 0 0", 1);
    check_mark("0 0 4 0 4 4 0 4 0 0 4 0 4 4 0 4 0 0", 1);
    check_mark("0 0 4 0 4 4 0 4 0 0 5 5 0 0", 0);
}

/* Islands around a coast of many vertices, all within its box; then one more on
 * the land, or across the coast. */
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
        must(oj_overlapping_parts(&flat, 1, 2, NULL, &mark, &error));
        ck_assert_int_eq(mark != NULL, extra > 0);
        ck_assert(mark == NULL || (mark[0] == 0 && mark[1] == 1));
        oj_free(mark);
    }
}

/* What is not marked is what even-odd over all rings says; and
 * the exact reference agrees with the plain one. */
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
        must(oj_overlapping_parts(&join, 1, 1 + pick(3), NULL, &mark, &error));
        for (int64_t f = 0; f < join.n_features; f++)
        {
            int is_marked = mark != NULL && mark[f];
            n_marked += is_marked;
            n_unmarked_several +=
                !is_marked && join.part_offset[f + 1] - join.part_offset[f] > 1;
            for (int64_t p = 0; p + 1 < input.n_features; p++)
            {
                double x = input.x[p], y = input.y[p];
                enum oj_location truth = locate_by_parts(&join, f, x, y);
                expect(exact_location(&join, f, x, y) == truth,
                       "seed %d, feature %d, %g %g", (int)seed, (int)f, x, y);
                expect(is_marked || even_odd(&join, f, x, y) == truth,
                       "seed %d, feature %d is not marked, %g %g", (int)seed,
                       (int)f, x, y);
            }
        }
        oj_free(mark);
    }
    ck_assert_int_gt(n_marked, n);
    ck_assert_int_gt(n_unmarked_several, n / 2);
    ck_assert_int_gt(n_surrounded, n);
}

int main(void)
{
    tests_open("overlapping parts");
    return tests_run();
}
