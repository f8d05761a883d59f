/* Pairs of points within a distance: scattered lists, threads and batches; data
 * for which cells are inefficient; counts beyond the limit.
 * Kind: property, degenerate. */
#include "../references.h"

#include "../join_trial.h"
#include "../run_tests.h"

#include "../../../algs/foundations/kernels/oj_square_limit.h"
#include "../../../algs/foundations/relation/oj_index.h"
#include "../../../algs/joins/dwithin/cpu_near_grid.h"
#include "../../../algs/pairs/selection/oj_tie_rank_sort.h"

static void join_near_points(const struct oj_relation *relation,
                             const struct oj_flat *input,
                             const struct oj_flat *join, int n_threads,
                             struct oj_matches *out)
{
    const struct join_trial t = {
        .join = *join, .input = *input, .relation = *relation};
    ck_assert(oj_cpu_near_points.supports(relation, join, input));
    trial_answer(&t, "cpu", n_threads, out);
}

/* --- scattered lists -------------------------------------------------------
 */

struct pair_entry
{
    int32_t feature;
    double distance;
};

static int compare_entries(const void *left, const void *right)
{
    const struct pair_entry *a = left, *b = right;
    return (a->feature > b->feature) - (a->feature < b->feature);
}

/* Writes the pairs of a row to *list, sorted by feature; enlarges *list if
 * necessary. Returns the number of pairs. */
static int64_t sort_row(const struct oj_matches *m, int64_t row,
                        struct pair_entry **list, int64_t *capacity)
{
    int64_t first = oj_matches_first(m, row);
    int64_t n = oj_matches_end(m, row) - first;
    must(oj_reserve(list, 0, n + 1, capacity, sizeof **list, &error));
    for (int64_t i = 0; i < n; i++)
        (*list)[i] =
            (struct pair_entry){m->join_row[first + i], m->measure[first + i]};
    if (n > 1)
        qsort(*list, (size_t)n, sizeof **list, compare_entries);
    return n;
}

/* Checks that both answers have equal pairs for each row, in any order. */
static void check_same_sets(const struct oj_matches *one,
                            const struct oj_matches *any)
{
    struct pair_entry *a = NULL, *b = NULL;
    int64_t capacity[2] = {0, 0};
    ck_assert_int_eq(one->n_rows, any->n_rows);
    ck_assert_int_eq(one->n_pairs, any->n_pairs);
    ck_assert_int_eq(one->n_matched, any->n_matched);
    for (int64_t row = 0; row < one->n_rows; row++)
    {
        int64_t n = sort_row(one, row, &a, &capacity[0]);
        expect(sort_row(any, row, &b, &capacity[1]) == n, "row %d: length",
               (int)row);
        for (int64_t i = 0; i < n; i++)
            expect(a[i].feature == b[i].feature &&
                       a[i].distance == b[i].distance,
                   "row %d, pair %d", (int)row, (int)i);
    }
    oj_free(a);
    oj_free(b);
}

/* Points are evenly distributed, so that the estimate of pairs is right, or in
 * one place, so that it is wrong. FIDs are in order or not. There is a filter
 * or none.
 */
TEST_LOOP(scattered, 0, 8)
{
    LAYER a = {0}, b = {0};
    struct oj_flat va, vb;
    struct oj_relation r = oj_relation_default();
    MATCHES ordered = {0}, any = {0};
    int in_one_place = _i & 1, with_filter = _i & 2, shuffled = _i & 4;
    int n_dense = in_one_place ? 20000 : 0;
    random_state = 77;
    for (int i = 0; i < 90000; i++)
    {
        double spread = i < n_dense ? 1.0 : 1000.0;
        double x = 500 + spread * (unit() - 0.5);
        /* some rows have no geometry */
        add_point(&a, i % 997 == 5 ? NAN : x, 500 + spread * (unit() - 0.5));
    }
    for (int i = 0; i < 3000; i++)
    {
        double spread = in_one_place ? (i < 200 ? 1.0 : 0.0) : 1000.0;
        add_point(&b, (spread > 0 ? 500 : 5000) + spread * (unit() - 0.5),
                  500 + spread * (unit() - 0.5));
    }
    for (int64_t i = 0; shuffled && i < b.n_features; i++)
        b.fid[i] = (i * 7919) % b.n_features;
    va = oj_flat_buf_view(&a);
    vb = oj_flat_buf_view(&b);
    r.op = OJ_OP_DWITHIN;
    r.max_distance = in_one_place ? 1.0 : 12.5;
    r.exclude_self = 1;
    r.exclude_same_geometry = with_filter != 0;
    join_near_points(&r, &va, &vb, 2, &ordered);
    ck_assert_int_eq(ordered.scattered, 0);
    ck_assert_int_gt(ordered.n_pairs, 100000);
    r.any_order = 1;
    for (int n_threads = 1; n_threads <= 3; n_threads++)
    {
        join_near_points(&r, &va, &vb, n_threads, &any);
        ck_assert_int_eq(any.scattered, !in_one_place && !with_filter);
        check_same_sets(&ordered, &any);
    }
}

/* Joins a layer with itself. One set of arrays for both sides, copies of the
 * arrays, and batches give equal pairs. */
TEST_LOOP(self_join, 0, 2)
{
    LAYER a = {0}, copy = {0};
    struct oj_flat view, copied;
    struct oj_relation r = oj_relation_default();
    MATCHES whole = {0}, other = {0};
    struct oj_options options = {.n_threads = 2};
    struct oj_flat_slice batch = {0};
    struct oj_join *join;
    int64_t n_pairs = 0;
    random_state = 78;
    for (int i = 0; i < 70000; i++)
    {
        double x = 300 * unit() * unit(), y = 300 * unit();
        add_point(&a, x, y);
        add_point(&copy, x, y);
    }
    view = oj_flat_buf_view(&a);
    copied = oj_flat_buf_view(&copy);
    r.op = OJ_OP_DWITHIN;
    r.max_distance = 0.75;
    r.unordered_pairs = 1;
    r.any_order = _i;
    join_near_points(&r, &view, &view, 2, &whole);
    join_near_points(&r, &copied, &view, 1, &other);
    ck_assert_int_eq(whole.n_pairs, other.n_pairs);
    if (_i == 0)
        ck_assert_mem_eq(whole.join_row, other.join_row,
                         (size_t)whole.n_pairs * sizeof *whole.join_row);
    must(oj_join_open(&view, &r, "cpu", &options, &join, &error));
    for (int64_t at = 0; at < view.n_features; at += 999)
    {
        int64_t n = view.n_features - at;
        must(oj_flat_slice_make(&view, at, n < 999 ? n : 999, &batch, &error));
        must(oj_join_batch(join, &batch.flat, &other, &error));
        n_pairs += other.n_pairs;
        for (int64_t row = 0; row < other.n_rows; row++)
            expect(oj_matches_end(&other, row) -
                           oj_matches_first(&other, row) ==
                       oj_matches_end(&whole, at + row) -
                           oj_matches_first(&whole, at + row),
                   "row %d", (int)(at + row));
    }
    ck_assert_int_eq(n_pairs, whole.n_pairs);
    oj_join_close(join);
    oj_flat_slice_free(&batch);
}

/* --- odd data --------------------------------------------------------------
 */

static void assert_n_pairs(const struct oj_flat *flat, double d,
                           int64_t n_pairs)
{
    struct oj_relation r = oj_relation_default();
    MATCHES m = {0};
    r.op = OJ_OP_DWITHIN;
    r.max_distance = d;
    r.unordered_pairs = 1;
    join_near_points(&r, flat, flat, 2, &m);
    expect(m.n_pairs == n_pairs, "%g: %lld pairs, not %lld", d,
           (long long)m.n_pairs, (long long)n_pairs);
}

TEST(odd_data)
{
    LAYER same = {0}, row = {0}, far = {0}, uneven = {0};
    struct oj_flat view;
    int64_t n = 0;
    for (int i = 0; i < 2000; i++)
        add_point(&same, 5.0, 5.0);
    view = oj_flat_buf_view(&same);
    assert_n_pairs(&view, 0.0, 2000 * 1999 / 2);
    assert_n_pairs(&view, 1e-300, 2000 * 1999 / 2);
    assert_n_pairs(&view, 1e300, 2000 * 1999 / 2);
    for (int i = 0; i < 2000; i++) /* one step apart on a line */
        add_point(&row, 1e9 + i, -1e9);
    view = oj_flat_buf_view(&row);
    assert_n_pairs(&view, 0.0, 0);
    assert_n_pairs(&view, 1.0, 1999);
    assert_n_pairs(&view, nextafter(1.0, 0.0), 0);
    assert_n_pairs(&view, 1999.0, 2000 * 1999 / 2);
    assert_n_pairs(&view, 1e200, 2000 * 1999 / 2);
    for (int i = 0; i < 2000; i++) /* minimum and maximum coordinates that joins
                                      accept */
        add_point(&far, i % 2 ? 1e150 : -1e150, i % 4 < 2 ? 1e150 : -1e150);
    view = oj_flat_buf_view(&far);
    assert_n_pairs(&view, 1.0, 4 * (500 * 499 / 2));
    assert_n_pairs(&view, 1e149, 4 * (500 * 499 / 2));
    /* one half dense, the other half far away and also dense */
    for (int i = 0; i < 20000; i++)
        add_point(&uneven, (i % 2 ? 1e12 : 0.0) + i, 0.0);
    view = oj_flat_buf_view(&uneven);
    n = 19998;
    assert_n_pairs(&view, 2.5, n);
    add_point(&uneven, -1e15, 7.0);
    add_point(&uneven, NAN, NAN);
    view = oj_flat_buf_view(&uneven);
    assert_n_pairs(&view, 2.5, n);
}

/* A million points in one place have 10^12 pairs. The error must come early. */
TEST_LOOP(too_many, 0, 2)
{
    LAYER same = {0};
    struct oj_options options = {.n_threads = 2, .max_batch_pairs = 10000000};
    struct oj_relation r = oj_relation_default();
    MATCHES m = {0};
    struct oj_join *join;
    struct oj_flat view, one;
    for (int i = 0; i < 1000000; i++)
        add_point(&same, 5.0, 5.0);
    view = oj_flat_buf_view(&same);
    r.op = OJ_OP_DWITHIN;
    r.max_distance = 1.0;
    r.any_order = _i;
    must(oj_join_open(&view, &r, "cpu", &options, &join, &error));
    ck_assert_int_eq(oj_join_batch(join, &view, &m, &error),
                     OJ_ERR_TOO_MANY_PAIRS);
    one = view;
    one.n_features = 1;
    must(oj_join_batch(join, &one, &m, &error));
    ck_assert_int_eq(m.n_pairs, 1000000);
    oj_join_close(join);
}

/* --- parts -----------------------------------------------------------------
 */

/* Squared distances, compared with oj_square_limit_most() or
 * oj_square_limit_least() of a limit, give the answers of distances compared
 * with the limit. */
TEST(squares)
{
    random_state = 3;
    for (int i = 0; i < 200000; i++)
    {
        double d = fabs(any_size(-500, 500)), e;
        d = one_in(50) ? (pick(2) ? 0.0 : 1e-170) : d;
        e = oj_square_limit_most(d);
        expect(sqrt(e) <= d &&
                   (e >= 1.7e308 || sqrt(nextafter(e, INFINITY)) > d),
               "most %.17g", d);
        e = oj_square_limit_least(d);
        expect(sqrt(e) >= d && (e == 0.0 || sqrt(nextafter(e, 0.0)) < d),
               "least %.17g", d);
    }
}

/* Both kernels find equal pairs. */
TEST(kernels)
{
    enum
    {
        MOST = 100
    };
    double x[MOST + 8], y[MOST + 8], d2[2][MOST + 8];
    int32_t id[MOST + 8], found[2][MOST + 8];
    random_state = 4;
    for (int round = 0; round < 20000; round++)
    {
        struct oj_near_hood hood = {.n = pick(MOST), .x = x, .y = y, .id = id};
        struct oj_near_query q = {.x = pick(10), .y = pick(10)};
        const struct oj_near_kernel *kernel[2] = {&oj_near_plain,
                                                  oj_near_kernel()};
        int64_t n[2];
        for (int i = 0; i < hood.n + 8; i++)
        {
            x[i] = i < hood.n ? (double)pick(10) : (double)NAN;
            y[i] = i < hood.n ? (double)pick(10) : (double)NAN;
            id[i] = i < hood.n ? pick(20) : 0;
        }
        q.most2 = pick(50);
        q.least2 = one_in(3) ? pick(10) : 0;
        q.from = one_in(3) ? pick(20) : 0;
        q.end = one_in(3) ? pick(20) : INT32_MAX;
        q.except = one_in(3) ? pick(20) : -1;
        for (int i = 0; i < 2; i++)
        {
            n[i] = kernel[i]->collect(&hood, &q, found[i], d2[i]);
            expect(kernel[i]->count(&hood, &q) == n[i], "count");
        }
        expect(n[0] == n[1], "round %d: %d and %d", round, (int)n[0],
               (int)n[1]);
        for (int64_t i = 0; i < n[0]; i++)
            expect(found[0][i] == found[1][i] && d2[0][i] == d2[1][i],
                   "round %d", round);
    }
}

TEST(row_order)
{
    enum
    {
        MOST = 3000
    };
    static int32_t feature[MOST], tie_rank[3 * MOST];
    static double measure[MOST];
    struct oj_tie_rank_sorter order = {0};
    random_state = 9;
    for (int f = 0; f < 3 * MOST; f++)
        tie_rank[f] = 3 * MOST - f;
    for (int round = 0; round < 500; round++)
    {
        int n = pick(one_in(3) ? MOST : 60), step = 1 + pick(100);
        for (int i = 0; i < n; i++)
            feature[i] = 3 * i;
        for (int i = n - 1; i > 0; i -= step) /* FIDs in descending runs, or
                                                 shuffled */
        {
            int j = pick(i + 1);
            int32_t moved = feature[i];
            feature[i] = feature[j];
            feature[j] = moved;
        }
        for (int i = 0; i < n; i++)
            measure[i] = feature[i] + 0.5;
        ck_assert_int_eq(
            oj_tie_rank_sort_pairs(&order, n, NULL, feature, measure, NULL),
            OJ_OK);
        for (int i = 0; i < n; i++)
            expect(feature[i] == 3 * i && measure[i] == 3 * i + 0.5,
                   "round %d, %d of %d", round, i, n);
        ck_assert_int_eq(
            oj_tie_rank_sort_pairs(&order, n, tie_rank, feature, NULL, NULL),
            OJ_OK);
        for (int i = 0; i < n; i++)
            expect(feature[i] == 3 * (n - 1 - i), "round %d, %d of %d ranked",
                   round, i, n);
    }
    oj_tie_rank_sorter_free(&order);
}

int main(void)
{
    tests_open("near points");
    return tests_run();
}
