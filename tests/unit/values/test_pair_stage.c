/* The stage that picks one pair per row, and computes overlaps and nearest
 * points. It is compared with plain loops and GEOS, with any number of threads,
 * and with every allocation failing in turn.
 * Kinds: properties, memory. */
#include "../references.h"

#include "../../../algs/foundations/kernels/oj_segment.h"
#include "../../../algs/pairs/selection/oj_feature_area_length.h"
#include "../../../algs/pairs/selection/oj_nearest_points.h"
#include "../../../algs/pairs/values/oj_pair_stage.h"
#include "../../../algs/pairs/values/oj_pick.h"
#include "../../../algs/references/geos/geos_pairs.h"
#include "../../../algs/references/validation/oj_validation.h"
#include "../../../algs/references/validation/plain_point_distance.h"
#include "../plain_pairs.h"
#include "../run_tests.h"

#include <float.h>

/* ---- scores ------------------------------------------------------------- */

TEST(scores_keep_the_order_of_numbers)
{
    const double ascending[] = {-INFINITY, -DBL_MAX, -1.5,    -DBL_MIN,
                                -5e-324,   0.0,      5e-324,  DBL_MIN,
                                1.0,       1.5,      DBL_MAX, INFINITY};
    int n = (int)(sizeof ascending / sizeof *ascending);
    ck_assert(oj_pick_score_of_double((double)NAN) == OJ_NO_SCORE);
    ck_assert(oj_pick_score_of_double(-0.0) == oj_pick_score_of_double(0.0));
    for (int i = 0; i < n; i++)
    {
        int64_t score = oj_pick_score_of_double(ascending[i]);
        ck_assert(score > OJ_NO_SCORE);
        ck_assert(oj_pick_score_reversed(score) > OJ_NO_SCORE);
        ck_assert(i == 0 || score > oj_pick_score_of_double(ascending[i - 1]));
        ck_assert(i == 0 || oj_pick_score_reversed(score) <
                                oj_pick_score_reversed(
                                    oj_pick_score_of_double(ascending[i - 1])));
    }
    ck_assert(oj_pick_score_of_integer(INT64_MIN) > OJ_NO_SCORE);
    ck_assert(oj_pick_score_reversed(INT64_MAX) > OJ_NO_SCORE);
    ck_assert(oj_pick_score_reversed(OJ_NO_SCORE) == OJ_NO_SCORE);
}

/* ---- picking ------------------------------------------------------------ */

static void fill_lists(struct oj_matches *m, const int64_t *offset, int n_rows,
                       const int32_t *join_row, const double *measure)
{
    int64_t n = offset[n_rows];
    must(oj_matches_reserve(m, n_rows, n, 1, &error));
    memcpy(m->offset, offset, (size_t)(n_rows + 1) * sizeof *offset);
    memcpy(m->join_row, join_row, (size_t)n * sizeof *join_row);
    memcpy(m->measure, measure, (size_t)n * sizeof *measure);
    m->n_pairs = n;
}

TEST(the_greatest_score_wins)
{
    const int64_t offset[] = {0, 3, 3, 5, 6};
    const int32_t join_row[] = {2, 0, 1, 1, 2, 0};
    const double measure[] = {0.0, 1.0, 2.0, 3.0, 4.0, 5.0};
    const int64_t of_feature[] = {7, 7, OJ_NO_SCORE};
    const int64_t of_entry[] = {1, 2, 2, OJ_NO_SCORE, OJ_NO_SCORE, 0};
    const int32_t rank[] = {2, 1, 0};
    struct oj_pick_scores scores = {0};
    MATCHES m = {0}, out = {0};
    fill_lists(&m, offset, 4, join_row, measure);

    must(oj_pick(&m, &scores, &out, &error)); /* picks the minimum ordinal */
    ck_assert_ptr_null(out.offset);
    ck_assert_int_eq(out.n_rows, 4);
    ck_assert_int_eq(out.n_pairs, 3);
    ck_assert_int_eq(out.n_matched, 3);
    ck_assert_int_eq(out.join_row[0], 0);
    ck_assert(out.measure[0] == 1.0);
    ck_assert_int_eq(out.join_row[1], -1);
    ck_assert(isnan(out.measure[1]));
    ck_assert_int_eq(out.join_row[2], 1);
    ck_assert_int_eq(out.join_row[3], 0);

    scores.tie_rank = rank;
    must(oj_pick(&m, &scores, &out, &error));
    ck_assert_int_eq(out.join_row[0], 2);
    ck_assert_int_eq(out.join_row[2], 2);

    scores.of_feature = of_feature; /* scores 0 and 1 tie: the rank decides */
    must(oj_pick(&m, &scores, &out, &error));
    ck_assert_int_eq(out.join_row[0], 1);
    ck_assert_int_eq(out.join_row[2], 1);

    scores.of_feature = NULL;
    scores.of_entry = of_entry;
    scores.in_tie_order = 1;
    must(oj_pick(&m, &scores, &out, &error));
    ck_assert_int_eq(out.join_row[0], 0); /* the first of the two */
    /* a pair is picked even if no pair has a score */
    ck_assert_int_eq(out.join_row[2], 1);

    must(oj_pick(&out, &scores, &m, &error)); /* a single pair is picked */
    ck_assert_int_eq(m.join_row[0], 0);
    ck_assert_int_eq(m.join_row[1], -1);
}

/* ---- measures ----------------------------------------------------------- */

TEST(areas_and_lengths)
{
    LAYER buf = {0};
    struct oj_flat flat;
    /* a square of side 2 with a hole of side 1, far from the origin */
    const double far = 1e8;
    double square[] = {far,     far, far + 2, far, far + 2,
                       far + 2, far, far + 2, far, far};
    double hole[] = {far + 0.5, far + 0.5, far + 0.5, far + 1.5, far + 1.5,
                     far + 1.5, far + 1.5, far + 0.5, far + 0.5, far + 0.5};
    double line[] = {0, 0, 3, 4, 3, 5};
    begin(&buf);
    add_part(&buf, OJ_PART_POLYGON);
    add_ring(&buf, 5, square);
    add_ring(&buf, 5, hole);
    add_part(&buf, OJ_PART_LINE);
    add_ring(&buf, 3, line);
    end(&buf);
    must(oj_flat_buf_add_null(&buf, 1, &error));
    flat = oj_flat_buf_view(&buf);
    ck_assert(oj_flat_area(&flat, 0) == 3.0);
    ck_assert(oj_flat_length(&flat, 0) == 6.0);
    ck_assert_uint_eq(oj_flat_kinds(&flat, 0), OJ_PART_POLYGON | OJ_PART_LINE);
    ck_assert_uint_eq(oj_flat_kinds(&flat, 1), 0);
    ck_assert(oj_flat_area(&flat, 1) == 0.0);
}

TEST(bearings)
{
    ck_assert(oj_planar_bearing(1, 1, 1, 9) == 0.0);
    ck_assert(oj_planar_bearing(1, 1, 9, 1) == 90.0);
    ck_assert(oj_planar_bearing(1, 1, 1, -9) == 180.0);
    ck_assert(oj_planar_bearing(1, 1, -9, 1) == 270.0);
    ck_assert(isnan(oj_planar_bearing(1, 1, 1, 1)));
    ck_assert(oj_planar_bearing(0, 0, -1e-300, 1) < 360.0);
    ck_assert(oj_planar_bearing(0, 0, -1e-300, 1) >= 0.0);
}

/* ---- nearest points ----------------------------------------------------- */

static struct oj_flat_buf inputs, joins;

static void build_layers(uint64_t state, int n_inputs, int n_joins)
{
    struct scene scene = {0.0, 0.0, 1.0, 30, 1, 0.0};
    random_state = state;
    oj_flat_buf_clear(&inputs);
    oj_flat_buf_clear(&joins);
    add_join_features(&inputs, &scene, n_inputs,
                      OJ_PART_POINT | OJ_PART_LINE | OJ_PART_POLYGON, 0);
    add_join_features(&joins, &scene, n_joins,
                      OJ_PART_POINT | OJ_PART_LINE | OJ_PART_POLYGON, 0);
}

static void free_layers(void)
{
    oj_flat_buf_free(&inputs);
    oj_flat_buf_free(&joins);
}

/* The distance is that of GEOS. Both points are on their features, at this
 * distance from each other. */
TEST_LOOP(nearest_points_agree_with_geos, 0, 8)
{
    struct oj_relation relation = oj_relation_default();
    struct oj_nearest_work work = {0};
    struct oj_flat a, b;
    struct oj_geos_pairs *geos;
    int64_t n_compared = 0;
    build_layers(first_seed() + (uint64_t)_i, 40, 40);
    a = oj_flat_buf_view(&inputs);
    b = oj_flat_buf_view(&joins);
    relation.op = OJ_OP_DWITHIN;
    must(oj_geos_pairs_open(&relation, &b, 0, &geos, &error));
    oj_geos_pairs_set_input(geos, &a);
    for (int64_t i = 0; i < a.n_features; i++)
    {
        for (int64_t j = 0; j < b.n_features; j++)
        {
            struct oj_nearest_points p;
            double d = INFINITY;
            must(oj_nearest_points_find(&a, i, &b, j, OJ_TO_INTERIOR, &work, &p,
                                        &error));
            if (oj_geos_pairs_distance(geos, i, j, &d) != OJ_GEOS_YES)
                continue;
            n_compared++;
            /* the point is in a hole outside of its shell, which is area here,
             * but not for GEOS */
            if (p.distance == 0.0 && d > 0.0 &&
                plain_distance(&a, i, &b, j, OJ_TO_INTERIOR) == 0.0)
                d = 0.0;
            expect(fabs(p.distance - d) <= 1e-12 * (1 + d),
                   "seed %d, pair %d %d: %.17g, GEOS %.17g", _i, (int)i, (int)j,
                   p.distance, d);
            expect(fabs(oj_point_distance(p.ax, p.ay, p.bx, p.by) - d) <=
                       1e-9 * (1 + d),
                   "seed %d, pair %d %d: points at other distance", _i, (int)i,
                   (int)j);
            expect(oj_flat_distance(&a, i, OJ_TO_INTERIOR, p.ax, p.ay) < 1e-9,
                   "seed %d, pair %d %d: off the first", _i, (int)i, (int)j);
            expect(oj_flat_distance(&b, j, OJ_TO_INTERIOR, p.bx, p.by) < 1e-9,
                   "seed %d, pair %d %d: off the second", _i, (int)i, (int)j);
        }
    }
    ck_assert_int_gt(n_compared, 500);
    oj_geos_pairs_close(geos);
    oj_nearest_work_free(&work);
    free_layers();
}

/* Of equally near places the first is chosen: by part, then by segment. */
TEST(the_first_of_equal_places)
{
    LAYER a = {0}, b = {0};
    struct oj_flat flat_a, flat_b;
    struct oj_nearest_work work = {0};
    struct oj_nearest_points p;
    double line[82], dot[] = {0.0, 0.0}, far[] = {0.0, 9.0};
    /* a sawtooth line, in which every other vertex has y = 1 */
    for (int i = 0; i < 41; i++)
    {
        line[2 * i] = 0.5 * (i - 20);
        line[2 * i + 1] = i % 2 ? 1.0 : 2.0;
    }
    add_simple(&a, OJ_PART_LINE, 2, (double[]){-20, 0, 20, 0});
    begin(&b);
    add_part(&b, OJ_PART_POINT);
    add_ring(&b, 1, far);
    add_part(&b, OJ_PART_LINE);
    add_ring(&b, 41, line);
    end(&b);
    flat_a = oj_flat_buf_view(&a);
    flat_b = oj_flat_buf_view(&b);
    must(oj_nearest_points_find(&flat_a, 0, &flat_b, 0, OJ_TO_INTERIOR, &work,
                                &p, &error));
    ck_assert(p.distance == 1.0 && p.bx == line[2] && p.by == 1.0);
    ck_assert(p.ax == line[2] && p.ay == 0.0);
    must(oj_nearest_points_find(&flat_b, 0, &flat_a, 0, OJ_TO_INTERIOR, &work,
                                &p, &error));
    ck_assert(p.distance == 1.0 && p.ax == line[2] && p.ay == 1.0);
    /* inside a polygon, the nearest point is the point itself, or with
     * OJ_TO_BOUNDARY a point of the boundary */
    oj_flat_buf_clear(&a);
    oj_flat_buf_clear(&b);
    must(oj_flat_buf_add_point(&a, 0, dot[0], dot[1], &error));
    add_simple(&b, OJ_PART_POLYGON, 5,
               (double[]){-2, -3, 5, -3, 5, 4, -2, 4, -2, -3});
    flat_a = oj_flat_buf_view(&a);
    flat_b = oj_flat_buf_view(&b);
    must(oj_nearest_points_find(&flat_a, 0, &flat_b, 0, OJ_TO_INTERIOR, &work,
                                &p, &error));
    ck_assert(p.distance == 0.0 && p.bx == 0.0 && p.by == 0.0);
    must(oj_nearest_points_find(&flat_a, 0, &flat_b, 0, OJ_TO_BOUNDARY, &work,
                                &p, &error));
    ck_assert(p.distance == 2.0 && p.bx == -2.0 && p.by == 0.0);
    oj_nearest_work_free(&work);
}

/* ---- the stage ---------------------------------------------------------- */

/* Makes pairs of every input feature with some join features, in tie order. */
static void make_matches(struct oj_matches *m, int64_t n_inputs,
                         int64_t n_joins)
{
    int64_t n = 0;
    must(oj_matches_reserve(m, n_inputs, n_inputs * n_joins, 1, &error));
    for (int64_t i = 0; i < n_inputs; i++)
    {
        m->offset[i] = n;
        for (int64_t j = 0; j < n_joins; j++)
        {
            if ((i + j) % 3 == 0 && i % 7 != 6)
            {
                m->join_row[n] = (int32_t)j;
                m->measure[n++] = (double)NAN;
            }
        }
        m->n_matched += n > m->offset[i];
    }
    m->offset[n_inputs] = n;
    m->n_entries = m->n_pairs = n;
}

static struct oj_pair_request ask_all(enum oj_pick_rule rule, int n_threads)
{
    struct oj_pair_request request = {0};
    request.pick = rule;
    memset(request.want, 1, sizeof request.want);
    request.want_shapes = 1;
    request.relation = oj_relation_default();
    request.relation.op = OJ_OP_BBOX;
    request.n_threads = n_threads;
    return request;
}

static oj_status run_once(const struct oj_pair_request *request,
                          const struct oj_matches *m,
                          struct oj_pair_values *values)
{
    const struct oj_flat a = oj_flat_buf_view(&inputs);
    const struct oj_flat b = oj_flat_buf_view(&joins);
    const struct oj_pair_side input = {&a, &a, NULL, NULL};
    const struct oj_pair_side side = {&b, &b, NULL, NULL};
    struct oj_pair_stage *stage;
    oj_status status = oj_pair_stage_open(request, &stage, &error);
    if (status != OJ_OK)
        return status;
    status = oj_pair_stage_set_join_side(stage, &side, &error);
    if (status == OJ_OK)
        status = oj_pair_stage_run(stage, &input, m, values, &error);
    oj_pair_stage_close(stage);
    return status;
}

static int same_doubles(const double *a, const double *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
    {
        if (!(a[i] == b[i] || (isnan(a[i]) && isnan(b[i]))))
            return 0;
    }
    return 1;
}

static void expect_same(const struct oj_pair_values *a,
                        const struct oj_pair_values *b)
{
    struct oj_flat x = oj_flat_buf_view(&a->shapes);
    struct oj_flat y = oj_flat_buf_view(&b->shapes);
    ck_assert_int_eq(a->n_entries, b->n_entries);
    ck_assert_int_eq(a->is_picked, b->is_picked);
    if (a->is_picked)
        ck_assert_int_eq(memcmp(a->picked.join_row, b->picked.join_row,
                                (size_t)a->n_entries * sizeof(int32_t)),
                         0);
    for (int i = 0; i < OJ_PAIR_SIMILARITY; i++) /* no texts */
        ck_assert(same_doubles(a->value[i], b->value[i], a->n_entries));
    ck_assert_int_eq(x.n_features, a->n_entries);
    ck_assert_int_eq(x.n_features, y.n_features);
    ck_assert_int_eq(x.n_vertices, y.n_vertices);
    ck_assert(same_doubles(x.x, y.x, x.n_vertices));
    ck_assert(same_doubles(x.y, y.y, x.n_vertices));
}

/* Threads do not change values. Picked pairs have the largest overlap. */
TEST_LOOP(threads_change_nothing, 0, 3)
{
    MATCHES m = {0};
    build_layers(77 + (uint64_t)_i, 25, 25);
    make_matches(&m, 25, 25);
    for (int rule = OJ_PICK_ALL; rule <= OJ_PICK_LARGEST_AREA; rule++)
    {
        struct oj_pair_request one = ask_all((enum oj_pick_rule)rule, 1);
        struct oj_pair_request many = ask_all((enum oj_pick_rule)rule, 5);
        struct oj_pair_values first = {0}, second = {0};
        must(run_once(&one, &m, &first));
        must(run_once(&many, &m, &second));
        expect_same(&first, &second);
        oj_pair_values_free(&first);
        oj_pair_values_free(&second);
    }
    free_layers();
}

/* Converts an answer to one-to-one form, in which rows with several pairs have
 * lists. Every fifth row has a list, too. */
static void convert_to_one_to_one(const struct oj_matches *lists,
                                  struct oj_matches *out)
{
    int64_t n = lists->n_rows;
    must(oj_matches_reserve(out, n, n + lists->n_pairs, 0, &error));
    must(oj_matches_reserve_tied(out, n, &error));
    out->n_entries = n;
    out->n_tied = 0;
    for (int64_t row = 0; row < n; row++)
    {
        int64_t first = lists->offset[row], count = lists->offset[row + 1];
        count -= first;
        out->join_row[row] = count == 0 ? -1 : lists->join_row[first];
        out->measure[row] = (double)NAN;
        if (count < 2 && row % 5 != 0)
            continue;
        out->join_row[row] = (int32_t)(OJ_TIED_ROW - out->n_tied);
        out->tied_row[out->n_tied] = row;
        out->tied_offset[out->n_tied++] = out->n_entries;
        for (int64_t i = 0; i < count; i++)
        {
            out->join_row[out->n_entries] = lists->join_row[first + i];
            out->measure[out->n_entries++] = (double)NAN;
        }
    }
    out->tied_offset[out->n_tied] = out->n_entries;
    out->n_pairs = lists->n_pairs;
    out->n_matched = lists->n_matched;
}

TEST_LOOP(rows_that_are_listed_apart_have_the_same_values, 0, 3)
{
    MATCHES m = {0}, apart = {0};
    build_layers(277 + (uint64_t)_i, 25, 25);
    make_matches(&m, 25, 25);
    convert_to_one_to_one(&m, &apart);
    for (int rule = OJ_PICK_ALL; rule <= OJ_PICK_LARGEST_AREA; rule++)
    {
        struct oj_pair_request request = ask_all((enum oj_pick_rule)rule, 3);
        struct oj_pair_values of_lists = {0}, of_apart = {0};
        must(run_once(&request, &m, &of_lists));
        must(run_once(&request, &apart, &of_apart));
        if (of_lists.is_picked)
            expect_same(&of_lists, &of_apart);
        for (int64_t row = 0; !of_lists.is_picked && row < m.n_rows; row++)
        {
            int64_t a = oj_matches_first(&m, row);
            int64_t b = oj_matches_first(&apart, row);
            int64_t count = oj_matches_end(&m, row) - a;
            ck_assert_int_eq(oj_matches_end(&apart, row) - b, count);
            for (int i = 0; i < OJ_PAIR_SIMILARITY; i++)
                ck_assert(same_doubles(of_lists.value[i] + a,
                                       of_apart.value[i] + b, count));
        }
        oj_pair_values_free(&of_lists);
        oj_pair_values_free(&of_apart);
    }
    free_layers();
}

TEST_LOOP(picked_pairs_are_the_best_of_all, 0, 3)
{
    MATCHES m = {0};
    struct oj_pair_values all = {0}, picked = {0};
    struct oj_pair_request request = ask_all(OJ_PICK_ALL, 2);
    struct oj_flat a, b;
    build_layers(177 + (uint64_t)_i, 25, 25);
    a = oj_flat_buf_view(&inputs);
    b = oj_flat_buf_view(&joins);
    make_matches(&m, 25, 25);
    must(run_once(&request, &m, &all));
    request = ask_all(OJ_PICK_LARGEST_OVERLAP, 2);
    must(run_once(&request, &m, &picked));
    for (int64_t row = 0; row < m.n_rows; row++)
    {
        double best = -1.0;
        int32_t expected = -1;
        for (int64_t p = m.offset[row]; p < m.offset[row + 1]; p++)
        {
            unsigned both =
                oj_flat_kinds(&a, row) & oj_flat_kinds(&b, m.join_row[p]);
            double size = both & OJ_PART_POLYGON
                              ? all.value[OJ_PAIR_OVERLAP_AREA][p]
                              : all.value[OJ_PAIR_OVERLAP_LENGTH][p];
            if (expected < 0 || size > best || (isnan(best) && !isnan(size)))
            {
                best = size;
                expected = m.join_row[p];
            }
        }
        ck_assert_int_eq(picked.picked.join_row[row], expected);
        if (expected < 0)
        {
            ck_assert(isnan(picked.value[OJ_PAIR_NEAREST_X][row]));
            ck_assert(isnan(picked.value[OJ_PAIR_OVERLAP_AREA][row]));
        }
    }
    oj_pair_values_free(&all);
    oj_pair_values_free(&picked);
    free_layers();
}

/* ---- lines that run over themselves -------------------------------------- */

/* Adds a feature of lines; in xy, each part begins with its number of
 * vertices. The list ends with 0. */
static void add_lines(struct oj_flat_buf *buf, const double *xy)
{
    begin(buf);
    for (; *xy > 0.0; xy += 1 + 2 * (int)*xy)
    {
        add_part(buf, OJ_PART_LINE);
        add_ring(buf, (int)*xy, xy + 1);
    }
    end(buf);
}

/* Two pairs of which a line runs over itself and is crossed there. */
static void build_overlapping_lines(struct oj_matches *m)
{
    const double line[] = {7, 4, 0, 4, 0, 0, 4, 0, 1, 1, 2, 3, 0, 4, 0, 0};
    const double lines[] = {7, 2, 3, 2, 3, 4, 2, 3, 0, 4, 4, 0, 2, 3, 4,
                            7, 2, 1, 2, 1, 1, 2, 0, 4, 2, 2, 1, 2, 4, 3,
                            6, 2, 1, 4, 0, 1, 2, 2, 3, 0, 2, 2, 1, 0};
    const double others[] = {6, 0, 7, 7, 2, 2, 1, 5, 8, 0, 7, 6, 3, 6,
                             3, 3, 3, 3, 5, 8, 2, 5, 3, 6, 3, 3, 0};
    oj_flat_buf_clear(&inputs);
    oj_flat_buf_clear(&joins);
    add_lines(&inputs, line);
    add_simple(&inputs, OJ_PART_POLYGON, 4, (double[]){7, 8, 0, 1, 0, 4, 7, 8});
    add_lines(&joins, lines);
    add_lines(&joins, others);
    fill_lists(m, (int64_t[]){0, 1, 2}, 2, (int32_t[]){0, 1},
               (double[]){NAN, NAN});
    m->n_entries = 2;
}

TEST(places_of_lines_that_run_over_themselves_count_once)
{
    struct oj_pair_request request = {0};
    MATCHES m = {0};
    int64_t n = 0;
    request.want[OJ_PAIR_OVERLAP_LENGTH] = 1;
    request.want_shapes = 1;
    request.relation = oj_relation_default();
    request.relation.op = OJ_OP_INTERSECTS;
    request.n_threads = 1;
    build_overlapping_lines(&m);
    oj_alloc_fail_at(0);
    for (int64_t i = 0; i == 0 || i <= n; i++)
    {
        struct oj_pair_values values = {0};
        const double *length;
        struct oj_flat shapes;
        oj_status status;
        oj_alloc_fail_at(i);
        status = run_once(&request, &m, &values);
        n = i == 0 ? oj_alloc_fail_at(0) : n;
        oj_alloc_fail_at(0);
        ck_assert_int_eq(status, i == 0 ? OJ_OK : OJ_ERR_NOMEM);
        length = values.value[OJ_PAIR_OVERLAP_LENGTH];
        shapes = oj_flat_buf_view(&values.shapes);
        for (int row = 0; i == 0 && row < 2; row++)
        {
            const double expected =
                row == 0 ? 3.0 * sqrt(2.0) : 9.189635005836248;
            ck_assert(fabs(length[row] - expected) < 1e-12);
            ck_assert(oj_flat_length(&shapes, row) == length[row]);
        }
        oj_pair_values_free(&values);
    }
    ck_assert_int_gt(n, 10);
    free_layers();
}

/* Every allocation except those of GEOS fails in turn. */
TEST_LOOP(out_of_memory, 0, 8)
{
    const enum oj_pick_rule rules[] = {OJ_PICK_ALL, OJ_PICK_LARGEST_OVERLAP,
                                       OJ_PICK_NEAREST, OJ_PICK_SMALLEST_AREA};
    struct oj_pair_request request = ask_all(rules[_i / 2], 1 + _i % 2);
    MATCHES m = {0};
    struct oj_pair_values expected = {0};
    int64_t n;
    build_layers(5, 7, 7);
    make_matches(&m, 7, 7);
    oj_alloc_fail_at(0);
    must(run_once(&request, &m, &expected));
    n = oj_alloc_fail_at(0);
    ck_assert_int_gt(n, 10);
    for (int64_t i = 1; i <= n; i += i < 100 ? 1 : 7)
    {
        struct oj_pair_values values = {0};
        oj_status status;
        oj_alloc_fail_at(i);
        status = run_once(&request, &m, &values);
        oj_alloc_fail_at(0);
        /* with several threads there may be fewer than i allocations */
        ck_assert(status == OJ_ERR_NOMEM || (status == OJ_OK && _i % 2 == 1));
        if (i % 16 == 0 || status == OJ_OK)
        {
            must(run_once(&request, &m, &values));
            expect_same(&values, &expected);
        }
        oj_pair_values_free(&values);
    }
    oj_pair_values_free(&expected);
    free_layers();
}

TEST(cancel_stops)
{
    struct oj_pair_request request = ask_all(OJ_PICK_ALL, 2);
    MATCHES m = {0};
    struct oj_pair_values values = {0};
    int cancel = 1;
    build_layers(5, 30, 30);
    make_matches(&m, 30, 30);
    request.cancel = &cancel;
    ck_assert_int_eq(run_once(&request, &m, &values), OJ_ERR_CANCELLED);
    oj_pair_values_free(&values);
    free_layers();
}

int main(void)
{
    tests_open("pair stage");
    return tests_run();
}
