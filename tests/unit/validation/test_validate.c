/* Two answers are made to differ. The comparison must find, count and classify
 * the differences.
 * Kind: unit. */
#include "../references.h"
#include "../run_tests.h"

#include "../../../algs/references/validation/oj_validation.h"
#include "../../../flatten/base/oj_alloc.h"

#include <stdlib.h>

/* two answers and their comparison; empty before each test */
static struct oj_matches a, b;
static struct oj_validation v;

static void free_answers(void)
{
    oj_matches_free(&a);
    oj_matches_free(&b);
    oj_validation_free(&v);
    memset(&v, 0, sizeof v);
}

static void compare_answers(void)
{
    must(oj_validation_compare(&v, &a, &b, &error));
}

/* Makes a one-to-one answer of n rows. Row i has feature 10 i at the distance i
 * + 0.5. Row 3 has no pair. */
static void make_single(struct oj_matches *m, int64_t n)
{
    must(oj_matches_reserve(m, n, n, 0, &error));
    for (int64_t i = 0; i < n; i++)
    {
        m->join_row[i] = i == 3 ? -1 : (int32_t)(10 * i);
        m->measure[i] = i == 3 ? NAN : (double)i + 0.5;
    }
}

/* Makes an answer of 3 rows with lists of 3, 0 and 2 pairs. */
static void make_lists(struct oj_matches *m)
{
    static const int64_t offset[] = {0, 3, 3, 5};
    static const int32_t join_row[] = {7, 3, 9, 1, 2};
    static const double measure[] = {1.0, 2.0, 2.0, 0.0, 5.0};
    memset(m, 0, sizeof *m);
    must(oj_matches_reserve(m, 3, 5, 1, &error));
    memcpy(m->offset, offset, sizeof offset);
    memcpy(m->join_row, join_row, sizeof join_row);
    memcpy(m->measure, measure, sizeof measure);
}

/* Makes an answer of one row with the features 0 and 1. */
static void make_pairs_of_a_row(struct oj_matches *m, double first,
                                double second)
{
    must(oj_matches_reserve(m, 1, 2, 1, &error));
    m->offset[0] = 0;
    m->offset[1] = 2;
    for (int32_t i = 0; i < 2; i++)
    {
        m->join_row[i] = i;
        m->measure[i] = i == 0 ? first : second;
    }
}

static void make_both(int64_t n)
{
    make_single(&a, n);
    make_single(&b, n);
}

static void make_both_lists(void)
{
    make_lists(&a);
    make_lists(&b);
}

static void swap_pairs(struct oj_matches *m, int64_t i, int64_t j)
{
    int32_t join_row = m->join_row[i];
    double measure = m->measure[i];
    m->join_row[i] = m->join_row[j];
    m->measure[i] = m->measure[j];
    m->join_row[j] = join_row;
    m->measure[j] = measure;
}

static void check_first(enum oj_difference_kind kind, int64_t row, int32_t ours,
                        int32_t reference)
{
    ck_assert_int_ge(v.n_first, 1);
    ck_assert_int_eq(v.first[0].kind, kind);
    ck_assert_int_eq(v.first[0].input_row, row);
    ck_assert_int_eq(v.first[0].join_row_ours, ours);
    ck_assert_int_eq(v.first[0].join_row_reference, reference);
    ck_assert_int_eq(isnan(v.first[0].measure_ours), ours < 0);
    ck_assert_int_eq(isnan(v.first[0].measure_reference), reference < 0);
}

TEST(same_answers)
{
    make_both(6);
    compare_answers();
    compare_answers();
    ck_assert_int_eq(v.n_rows, 12);
    ck_assert_int_eq(v.n_pairs, 10);
    ck_assert_int_eq(v.n_differences, 0);
    ck_assert_int_eq(v.n_rows_different, 0);
    ck_assert_int_eq(v.n_first, 0);
    oj_matches_free(&a);
    oj_matches_free(&b);
    make_both_lists();
    compare_answers();
    ck_assert_int_eq(v.n_rows, 15);
    ck_assert_int_eq(v.n_pairs, 15);
    ck_assert_int_eq(v.n_differences, 0);
}

TEST(missing_pair)
{
    make_both(6);
    compare_answers();
    a.join_row[2] = -1;
    a.measure[2] = NAN;
    compare_answers();
    ck_assert_int_eq(v.n_differences, 1);
    ck_assert_int_eq(v.n_of_kind[OJ_DIFFERENCE_MISSING], 1);
    ck_assert_int_eq(v.n_rows_different, 1);
    check_first(OJ_DIFFERENCE_MISSING, 8, -1, 20); /* second batch */
    ck_assert(v.first[0].measure_reference == 2.5);
}

TEST(extra_pair)
{
    make_both(6);
    a.join_row[3] = 4;
    a.measure[3] = 1.0;
    compare_answers();
    ck_assert_int_eq(v.n_differences, 1);
    check_first(OJ_DIFFERENCE_EXTRA, 3, 4, -1);
}

TEST(other_feature)
{
    make_both(6);
    /* another feature at this distance, because a tie was decided otherwise */
    a.join_row[1] = 11;
    compare_answers();
    ck_assert_int_eq(v.n_differences, 2);
    ck_assert_int_eq(v.n_of_kind[OJ_DIFFERENCE_EXTRA], 1);
    ck_assert_int_eq(v.n_of_kind[OJ_DIFFERENCE_MISSING], 1);
    ck_assert_int_eq(v.n_rows_different, 1);
}

TEST(last_bit_of_distance)
{
    make_both(6);
    a.measure[5] = nextafter(a.measure[5], 0.0);
    compare_answers();
    ck_assert_int_eq(v.n_differences, 1);
    check_first(OJ_DIFFERENCE_DISTANCE, 5, 50, 50);
}

TEST(lists_differ)
{
    make_both_lists();
    /* exchanges the two pairs at distance 2, so that only the order differs */
    swap_pairs(&a, 1, 2);
    compare_answers();
    ck_assert_int_eq(v.n_differences, 1);
    check_first(OJ_DIFFERENCE_ORDER, 0, 9, 3);
    b.offset[1] = b.offset[2] = 2; /* the last pair of row 1 goes to row 2 */
    compare_answers();
    ck_assert_int_eq(v.n_of_kind[OJ_DIFFERENCE_EXTRA], 1);
    ck_assert_int_eq(v.n_of_kind[OJ_DIFFERENCE_MISSING], 1);
    ck_assert_int_eq(v.n_rows_different, 3);
    ck_assert_int_eq(v.n_rows, 6);
}

/* In a join without a measure, only the sets of pairs count. NaN equals NaN. */
TEST(no_measure)
{
    make_both_lists();
    for (int i = 0; i < 5; i++)
    {
        a.measure[i] = NAN;
        b.measure[i] = -NAN;
    }
    compare_answers();
    ck_assert_int_eq(v.n_differences, 0);
    a.join_row[4] = 8;
    compare_answers();
    ck_assert_int_eq(v.n_differences, 2);
}

/* A row that one of the two answers could not decide is no difference. */
TEST(undecided_on_either_side)
{
    make_both(6);
    a.undecided = oj_malloc(1, sizeof *a.undecided);
    b.undecided = oj_malloc(2, sizeof *b.undecided);
    ck_assert(a.undecided != NULL && b.undecided != NULL);
    a.undecided[0] = b.undecided[0] = 1;
    b.undecided[1] = 4;
    a.n_undecided = 1;
    b.n_undecided = 2;
    a.join_row[1] = 12;
    a.join_row[4] = -1;
    compare_answers();
    must(oj_validation_compare(&v, &b, &a, &error));
    ck_assert_int_eq(v.n_differences, 0);
    ck_assert_int_eq(v.n_undecided, 4);
    ck_assert_int_eq(v.n_rows, 8);
}

/* Makes three rows with lists of two pairs, features 10 to 15. */
static void make_pairs(struct oj_matches *m)
{
    memset(m, 0, sizeof *m);
    must(oj_matches_reserve(m, 3, 6, 1, &error));
    for (int i = 0; i < 4; i++)
        m->offset[i] = 2 * i;
    for (int i = 0; i < 6; i++)
    {
        m->join_row[i] = 10 + i;
        m->measure[i] = NAN;
    }
    m->n_pairs = 6;
    m->n_matched = 3;
}

static void set_undecided(struct oj_matches *m, int64_t n, int64_t *rows,
                          int32_t *features)
{
    m->n_undecided = n;
    m->undecided = rows;
    m->undecided_join = features;
}

/* A pair that one of the answers could not decide is excluded, but no other
 * pair of its row. The feature -1 excludes the whole row. */
TEST(undecided_pairs)
{
    static int64_t rows_a[] = {0, 1, 1}, rows_b[] = {0, 1, 2};
    static int32_t features_a[] = {10, 12, 40}, features_b[] = {10, 41, -1};
    make_pairs(&a);
    make_pairs(&b);
    a.join_row[0] = 9; /* sorts before the excluded pair */
    b.join_row[0] = 9;
    set_undecided(&a, 3, rows_a, features_a);
    set_undecided(&b, 3, rows_b, features_b);
    a.join_row[4] = 70; /* a pair in the row that is excluded as a whole */
    compare_answers();
    ck_assert_int_eq(v.n_differences, 0);
    ck_assert_int_eq(v.n_undecided, 1);
    ck_assert_int_eq(v.n_undecided_pairs, 4); /* 10; 12, 40, 41 */
    ck_assert_int_eq(v.n_rows, 2);
    ck_assert_int_eq(v.n_pairs, 3); /* 9, 11; 13 */
    /* feature 12 is excluded, whatever the reference has; feature 13 is not */
    b.join_row[2] = 8;
    b.join_row[3] = 12;
    compare_answers();
    ck_assert_int_eq(v.n_of_kind[OJ_DIFFERENCE_MISSING], 1);
    ck_assert_int_eq(v.n_of_kind[OJ_DIFFERENCE_EXTRA], 1);
    ck_assert_int_eq(v.first[0].join_row_reference, 8);
    ck_assert_int_eq(v.first[1].join_row_ours, 13);
    set_undecided(&a, 0, NULL, NULL);
    set_undecided(&b, 0, NULL, NULL);
}

/* The reference may have answers for only some of the rows. */
TEST(part_of_the_rows)
{
    static int64_t rows_a[] = {0, 1}, rows_b[] = {0, 1};
    static int32_t features_a[] = {10, 12}, features_b[] = {12, 14};
    make_pairs(&a);
    make_pairs(&b);
    set_undecided(&a, 2, rows_a, features_a);
    set_undecided(&b, 2, rows_b, features_b);
    for (int i = 0; i < 4; i++)
        b.join_row[i] = a.join_row[i + 2];
    b.join_row[3] = 99;
    b.n_rows = 2;
    must(oj_validation_compare_part(&v, &a, 1, &b, &error));
    ck_assert_int_eq(v.n_rows, 2);
    ck_assert_int_eq(v.n_undecided_pairs, 2); /* 12, 14 */
    ck_assert_int_eq(v.n_pairs, 3);           /* 13; 15, 99 */
    ck_assert_int_eq(v.n_differences, 2);
    ck_assert_int_eq(v.first[0].input_row, 1);
    ck_assert_int_eq(v.n_rows_seen, 2);
    set_undecided(&a, 0, NULL, NULL);
    set_undecided(&b, 0, NULL, NULL);
}

/* Distances between lines may differ by two ulps, and a pair at a limit may be
 * on either side of the limit. For points neither is allowed. */
TEST(some_ulps_between_lines)
{
    LAYER lines = {0}, ends = {0};
    struct oj_flat flat, points;
    struct oj_relation relation = oj_relation_default();
    add_line(&lines, 0, 0, 1, 0);
    add_line(&lines, 2, 0, 3, 0);
    add_point(&ends, 0, 0);
    add_point(&ends, 1, 0);
    flat = oj_flat_buf_view(&lines);
    points = oj_flat_buf_view(&ends);
    relation.op = OJ_OP_DWITHIN;
    relation.max_distance = 8.0;
    make_both(2);
    a.join_row[0] = b.join_row[0] = a.join_row[1] = b.join_row[1] = 1;
    v.join_side = v.input = &flat;
    v.relation = &relation;
    b.measure[0] = 1.0;
    a.measure[0] = nextafter(nextafter(1.0, 9.0), 9.0);
    compare_answers();
    ck_assert_int_eq(v.n_differences, 0);
    ck_assert_int_eq(v.n_within_ulps, 1);
    /* a pair at distance 8, which is at the limit or just beyond it */
    a.join_row[1] = -1;
    b.measure[1] = 8.0;
    compare_answers();
    ck_assert_int_eq(v.n_differences, 0);
    ck_assert_int_eq(v.n_within_ulps, 3);
    a.measure[0] = nextafter(a.measure[0], 9.0);
    compare_answers();
    ck_assert_int_eq(v.n_differences, 1);
    ck_assert_int_eq(v.n_of_kind[OJ_DIFFERENCE_DISTANCE], 1);
    v.input = &points;
    b.measure[0] = nextafter(a.measure[0], 9.0);
    compare_answers();
    ck_assert_int_eq(v.n_of_kind[OJ_DIFFERENCE_DISTANCE], 2);
    ck_assert_int_eq(v.n_of_kind[OJ_DIFFERENCE_MISSING], 1);
}

/* An answer in one-to-one form equals an answer with these pairs in lists. */
TEST(forms_mix)
{
    static const int64_t offset[] = {0, 1, 2, 3, 3, 4};
    make_single(&a, 5);
    memset(&b, 0, sizeof b);
    must(oj_matches_reserve(&b, 5, 4, 1, &error));
    memcpy(b.offset, offset, sizeof offset);
    for (int i = 0; i < 4; i++)
    {
        b.join_row[i] = a.join_row[i < 3 ? i : 4];
        b.measure[i] = a.measure[i < 3 ? i : 4];
    }
    compare_answers();
    must(oj_validation_compare(&v, &b, &a, &error));
    ck_assert_int_eq(v.n_pairs, 8);
    ck_assert_int_eq(v.n_differences, 0);
}

TEST(undecided_rows)
{
    static int64_t undecided[] = {1, 4};
    make_both(6);
    a.join_row[1] = 99;
    a.join_row[4] = -1;
    a.join_row[5] = 98;
    b.undecided = undecided;
    b.n_undecided = 2;
    compare_answers();
    ck_assert_int_eq(v.n_undecided, 2);
    ck_assert_int_eq(v.n_rows, 4);
    ck_assert_int_eq(v.n_rows_different, 1);
    ck_assert_int_eq(v.first[0].input_row, 5);
    b.undecided = NULL;
}

static oj_status count_reports(const struct oj_difference *difference,
                               void *user, struct oj_error *err)
{
    int64_t *n = user;
    ck_assert_int_eq(difference->kind, OJ_DIFFERENCE_DISTANCE);
    if (++*n == 1000)
        return oj_fail(err, OJ_ERR_IO, "the report is full");
    return OJ_OK;
}

TEST(every_difference_is_reported)
{
    int64_t n = 0;
    make_both(501);
    for (int64_t i = 0; i < 501; i++)
        a.measure[i] += 1.0;
    v.report = count_reports;
    v.user = &n;
    compare_answers();
    ck_assert_int_eq(n, 500);
    ck_assert_int_eq(v.n_differences, 500);
    ck_assert_int_eq(v.n_first, OJ_N_FIRST_DIFFERENCES);
    ck_assert_int_eq(v.first[9].input_row, 10); /* row 3 has no pair */
    ck_assert_int_eq(oj_validation_compare(&v, &a, &b, &error), OJ_ERR_IO);
    ck_assert_str_eq(error.message, "the report is full");
}

/* The sides and the relation of the answers that are compared. */
static struct
{
    struct oj_flat join, input;
    struct oj_relation relation;
} compared;

/* Prepares the comparison of answers for two layers, with the default
 * relation. */
static void compare_layers(const struct oj_flat_buf *join,
                           const struct oj_flat_buf *input)
{
    compared.join = oj_flat_buf_view(join);
    compared.input = oj_flat_buf_view(input);
    compared.relation = oj_relation_default();
    v.join_side = &compared.join;
    v.input = &compared.input;
    v.relation = &compared.relation;
}

/* The point is exactly on the slanted edge. In double-double arithmetic it is
 * not, so GEOS locates it in the hole. */
TEST(rounding_of_geos)
{
    static const double hole[] = {-0.40000010000000003,    0.40000000000000002,
                                  -0.50000009999999995,    0.59999999999999998,
                                  0.39999990000000002,     0,
                                  -9.9999999999999995e-08, 0.30000000000000004,
                                  -0.40000010000000003,    0.40000000000000002};
    static const double shell[] = {-2, -2, 2, -2, 2, 2, -2, 2, -2, -2};
    LAYER polygon = {0}, point = {0};
    begin(&polygon);
    add_part(&polygon, OJ_PART_POLYGON);
    add_ring(&polygon, 5, shell);
    add_ring(&polygon, 5, hole);
    end(&polygon);
    add_point(&point, 0.099999900000000003, 0.2);
    compare_layers(&polygon, &point);
    must(oj_matches_reserve(&a, 1, 1, 0, &error));
    must(oj_matches_reserve(&b, 1, 1, 0, &error));
    a.join_row[0] = b.join_row[0] = 0;
    a.measure[0] = 0.0;
    b.measure[0] = 1e-17;
    compare_answers();
    ck_assert_int_eq(v.n_rows_proved, 1);
    ck_assert_int_eq(v.n_differences, 0);
    ck_assert_int_eq(v.n_rows_different, 0);
    ck_assert_int_eq(v.n_of_kind[OJ_DIFFERENCE_PROVED], 1);
    ck_assert_str_eq(oj_validation_difference_name(v.first[0].kind), "proved");
    compared.relation.distance_to = OJ_TO_BOUNDARY;
    compare_answers();
    ck_assert_int_eq(v.n_rows_proved, 2);
    a.measure[0] = 1e-17; /* now our distance is wrong */
    b.measure[0] = 0.0;
    compare_answers();
    ck_assert_int_eq(v.n_rows_proved, 2);
    ck_assert_int_eq(v.n_differences, 1);
}

/* Two points have distance 5 from the input point. The reference errs in the
 * first distance, then we in the second. The row then counts only as different,
 * though one of its differences is proved. */
TEST(row_with_a_proved_and_a_real_difference)
{
    LAYER points = {0}, point = {0};
    add_point(&points, 3.0, 4.0);
    add_point(&points, 4.0, 3.0);
    add_point(&point, 0.0, 0.0);
    compare_layers(&points, &point);
    make_pairs_of_a_row(&a, 5.0, 5.0);
    make_pairs_of_a_row(&b, 5.5, 5.0);
    compared.relation.op = OJ_OP_DWITHIN;
    compared.relation.max_distance = 10.0;
    compare_answers();
    ck_assert_int_eq(v.n_rows_proved, 1);
    ck_assert_int_eq(v.n_rows_different, 0);
    a.measure[1] = 6.0;
    compare_answers();
    ck_assert_int_eq(v.n_of_kind[OJ_DIFFERENCE_PROVED], 2);
    ck_assert_int_eq(v.n_differences, 1);
    ck_assert_int_eq(v.n_rows_different, 1);
    ck_assert_int_eq(v.n_rows_proved, 1);
}

/* A slanted edge and a line are 7e-18 apart. GEOS's rounded crossing is on
 * both, so GEOS's distance is 0. Our formula gives 1.2e-16, which is within its
 * rounding. */
TEST(rounding_of_our_formula)
{
    static const double triangle[] = {
        1.8, 1.9000000000000001, 1.1, 2.0,
        0.1, 5.300000000000001,  1.8, 1.9000000000000001};
    LAYER lines = {0}, polygons = {0};
    const double d = 1.1682513662340108e-16;
    add_line(&lines, 3.2, 2.4000000000000004, 1.2000000000000002, 3.1);
    begin(&polygons);
    add_part(&polygons, OJ_PART_POLYGON);
    add_ring(&polygons, 4, triangle);
    end(&polygons);
    compare_layers(&lines, &polygons);
    must(oj_matches_reserve(&a, 1, 1, 0, &error));
    must(oj_matches_reserve(&b, 1, 1, 0, &error));
    a.join_row[0] = b.join_row[0] = 0;
    a.measure[0] = d;
    b.measure[0] = 0.0;
    compare_answers();
    ck_assert_int_eq(v.n_differences, 0);
    ck_assert_int_eq(v.n_rows_rounding, 1);
    ck_assert_int_eq(v.n_of_kind[OJ_DIFFERENCE_ROUNDING], 1);
    ck_assert_str_eq(oj_validation_difference_name(v.first[0].kind),
                     "rounding");
    /* the maximum distance is between the two distances: we lack the pair */
    compared.relation.op = OJ_OP_DWITHIN;
    compared.relation.max_distance = 5e-17;
    a.join_row[0] = -1;
    a.measure[0] = NAN;
    compare_answers();
    ck_assert_int_eq(v.n_rows_rounding, 2);
    /* the minimum distance is between the two distances: only we have the
     * pair */
    compared.relation.max_distance = 1.0;
    compared.relation.min_distance = 5e-17;
    a.join_row[0] = 0;
    a.measure[0] = d;
    b.join_row[0] = -1;
    b.measure[0] = NAN;
    compare_answers();
    ck_assert_int_eq(v.n_rows_rounding, 3);
    ck_assert_int_eq(v.n_differences, 0);
    /* these are differences: an error larger than rounding, a missing distance,
     * and a wrong 0 of ours, which must be exact */
    compared.relation.min_distance = 0.0;
    b.join_row[0] = 0;
    a.measure[0] = 1e-13;
    b.measure[0] = 0.0;
    compare_answers();
    ck_assert_int_eq(v.n_differences, 1);
    a.measure[0] = 0.0;
    b.measure[0] = 1e-17;
    compare_answers();
    ck_assert_int_eq(v.n_differences, 2);
    a.join_row[0] = -1;
    a.measure[0] = NAN;
    compare_answers();
    ck_assert_int_eq(v.n_differences, 3);
    ck_assert_int_eq(v.n_rows_rounding, 3);
    ck_assert_int_eq(v.n_within_ulps, 0);
    /* a row with a difference of each sort counts only as different */
    add_line(&lines, 3.2, 2.4000000000000004, 1.2000000000000002, 3.1);
    compared.join = oj_flat_buf_view(&lines);
    oj_matches_free(&a);
    oj_matches_free(&b);
    make_pairs_of_a_row(&a, d, 1e-13);
    make_pairs_of_a_row(&b, 0.0, 0.0);
    compare_answers();
    ck_assert_int_eq(v.n_of_kind[OJ_DIFFERENCE_ROUNDING], 4);
    ck_assert_int_eq(v.n_differences, 4);
    ck_assert_int_eq(v.n_rows_different, 4);
    ck_assert_int_eq(v.n_rows_rounding, 3);
}

/* Whether shapes intersect is decided exactly. So rounding does not excuse a
 * missing pair of intersecting shapes. */
TEST(missing_pair_of_shapes_that_meet)
{
    LAYER lines = {0}, others = {0};
    add_line(&lines, 0, 0, 1, 1);
    add_line(&others, 0, 1, 1, 0);
    compare_layers(&lines, &others);
    compared.relation.op = OJ_OP_DWITHIN;
    compared.relation.max_distance = 1.0;
    must(oj_matches_reserve(&a, 1, 1, 0, &error));
    must(oj_matches_reserve(&b, 1, 1, 0, &error));
    a.join_row[0] = -1;
    a.measure[0] = NAN;
    b.join_row[0] = 0;
    b.measure[0] = 0.0;
    compare_answers();
    ck_assert_int_eq(v.n_within_ulps, 0);
    ck_assert_int_eq(v.n_of_kind[OJ_DIFFERENCE_MISSING], 1);
}

/* The reference has a wrong nearest feature: it is equally near, but later in
 * tie order. Our answer, the first of these features, is right. */
TEST(ties_after_an_error)
{
    static const double at[] = {0, 0, 0}, origin[] = {0};
    static const int64_t orders[2][3] = {{7, 8, 9}, {8, 7, 9}};
    struct oj_flat join = {0}, input = {0};
    struct oj_relation relation = oj_relation_default();
    join.n_features = join.n_vertices = 3;
    input.n_features = input.n_vertices = 1;
    join.part_kinds = input.part_kinds = OJ_PART_POINT;
    join.x = join.y = at;
    input.x = input.y = origin;
    must(oj_matches_reserve(&a, 1, 1, 0, &error));
    must(oj_matches_reserve(&b, 1, 1, 0, &error));
    a.join_row[0] = 0;
    b.join_row[0] = 1;
    a.measure[0] = b.measure[0] = 0.0;
    for (int i = 0; i < 3; i++)
    {
        oj_validation_free(&v);
        v = (struct oj_validation){
            .join_side = &join, .input = &input, .relation = &relation};
        join.fid = i < 2 ? orders[i] : NULL;
        compare_answers();
        ck_assert_int_eq(v.n_of_kind[OJ_DIFFERENCE_PROVED], i == 1 ? 1 : 2);
        ck_assert_int_eq(v.n_differences, i == 1);
    }
}

TEST(other_number_of_rows)
{
    make_single(&a, 6);
    make_single(&b, 5);
    ck_assert_int_eq(oj_validation_compare(&v, &a, &b, &error),
                     OJ_ERR_INTERNAL);
}

int main(void)
{
    tcase_add_checked_fixture(tests_open("validate"), NULL, free_answers);
    return tests_run();
}
