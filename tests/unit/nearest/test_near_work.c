/* The number of candidates of a nearest join in difficult cases: k greater than
 * the number of features, a polygon of very many segments, points far from all
 * features, all features excluded by their class, copies in one place. Also the
 * answers if very many features are equally near, or if the number of features
 * in reach varies.
 * Kind: degenerate, large. */
#include "../references.h"

#include "../../../algs/references/validation/plain_point_distance.h"
#include "../join_trial.h"
#include "../run_tests.h"

#define TEETH 5000

/* number of candidates and size of the index of a join */
struct join_work
{
    int64_t n_candidates, n_points_searched, index_bytes;
};

/* Joins with a backend. Returns 0 if the backend has no device. */
static int join_on(const char *backend, const struct join_trial *t,
                   struct oj_matches *out, struct join_work *work)
{
    const struct oj_options options = {.n_threads = 2};
    struct oj_join *join;
    oj_status status =
        oj_join_open(&t->join, &t->relation, backend, &options, &join, &error);
    if (status == OJ_ERR_NO_DEVICE)
        return 0;
    must(status);
    must(oj_join_batch(join, &t->input, out, &error));
    work->n_candidates = oj_join_stats(join)->n_candidates;
    work->n_points_searched = oj_join_stats(join)->n_points_searched;
    work->index_bytes = oj_join_stats(join)->index_bytes;
    oj_join_close(join);
    if (oj_relation_is_nearest(&t->relation))
        trial_check_form(t, out);
    return 1;
}

/* --- k larger than the number of features --------------------------------- */

/* Adds a comb-shaped polygon of TEETH teeth. The teeth point upwards if height
 * is positive, otherwise downwards. */
static void add_comb(struct oj_flat_buf *buf, double y, double height)
{
    double *xy = oj_malloc(4 * TEETH + 8, sizeof *xy);
    int64_t n = 2 * TEETH + 1;
    for (int64_t i = 0; i < n; i++)
    {
        xy[2 * i] = (double)i;
        xy[2 * i + 1] = i % 2 ? y + height : y;
    }
    xy[2 * n] = 2.0 * TEETH;
    xy[2 * n + 1] = y - height;
    xy[2 * n + 2] = 0.0;
    xy[2 * n + 3] = y - height;
    xy[2 * n + 4] = xy[0];
    xy[2 * n + 5] = xy[1];
    add_simple(buf, OJ_PART_POLYGON, n + 3, xy);
    oj_free(xy);
}

/* Adds input points. Half of them are in one place, the others in a row above
 * the first comb. */
static void add_points_above_comb(struct oj_flat_buf *input)
{
    for (int i = 0; i < 600; i++)
        add_point(input, i % 2 ? 5000.0 : 15.0 * i, 12.0 + i % 7);
}

static struct join_trial trial_of(const struct oj_flat_buf *join,
                                  const struct oj_flat_buf *input, int64_t k,
                                  double max_distance)
{
    struct join_trial t = {.relation = oj_relation_default()};
    t.join = oj_flat_buf_view(join);
    t.input = oj_flat_buf_view(input);
    t.relation.k = k;
    t.relation.max_distance = max_distance;
    return t;
}

TEST(more_than_there_are)
{
    for (int c = 0; c < 4; c++)
    {
        LAYER join = {0}, input = {0};
        MATCHES few = {0}, many = {0};
        int64_t n_in_reach = 1 + c / 2;
        double reach = c % 2 ? 9000.0 : INFINITY;
        struct join_work least, most;
        struct join_trial t;
        add_comb(&join, 0.0, 10.0);
        if (n_in_reach > 1)
            add_comb(&join, 40.0, -10.0);
        for (int i = 0; i < 3 && c % 2; i++)
            add_square(&join, 1e6 * i + 1e6, 0.0, 1e6 * i + 1e6 + 5.0, 5.0);
        must(oj_flat_buf_add_null(&join, join.n_features, &error));
        add_points_above_comb(&input);
        t = trial_of(&join, &input, n_in_reach, reach);
        (void)join_on("cpu", &t, &few, &least);
        t.relation.k = n_in_reach + 2;
        (void)join_on("cpu", &t, &many, &most);
        ck_assert_int_eq(many.n_pairs, 600 * n_in_reach);
        ck_assert_int_eq(few.n_pairs, many.n_pairs);
        for (int64_t i = 0; i < few.n_pairs; i++)
            expect(few.join_row[i] == many.join_row[i] &&
                       bits_of(few.measure[i]) == bits_of(many.measure[i]),
                   "%d: pair %d", c, (int)i);
        expect(most.n_candidates <= 4 * least.n_candidates + 600 * 64,
               "%d: %lld candidates instead of %lld", c,
               (long long)most.n_candidates, (long long)least.n_candidates);
    }
}

/* --- far away ------------------------------------------------------------- */

/* The points are farther apart than the squares, and far from all of them. For
 * a group of points, only few squares can be among the nearest, whatever k is.
 * With bounds by corners a row has about 3 k candidates, without them 27 k. */
TEST(far_from_all)
{
    LAYER join = {0}, input = {0};
    struct join_work least, most;
    MATCHES one = {0}, few = {0};
    struct join_trial t;
    for (int i = 0; i < 40000; i++)
    {
        double x = i % 200 * 10.0, y = i / 200 * 10.0;
        add_square(&join, x, y, x + 7.0, y + 7.0);
    }
    for (int i = 0; i < 10000; i++)
        add_point(&input, 20000.0 + i % 100 * 200.0, 9000.0 + i / 100 * 200.0);
    t = trial_of(&join, &input, 1, INFINITY);
    (void)join_on("cpu", &t, &one, &least);
    t.relation.k = 5;
    (void)join_on("cpu", &t, &few, &most);
    ck_assert_int_eq(few.n_pairs, 5 * one.n_pairs);
    for (int64_t row = 0; row < t.input.n_features; row++)
        expect(one.join_row[row] == few.join_row[5 * row] &&
                   bits_of(one.measure[row]) == bits_of(few.measure[5 * row]),
               "row %d", (int)row);
    expect(most.n_candidates <= 5 * 8 * one.n_pairs,
           "%lld candidates of k = 5, %lld of k = 1",
           (long long)most.n_candidates, (long long)least.n_candidates);
}

/* --- out of reach --------------------------------------------------------- */

/* Features in two corners of a wide plane, and points. _i chooses the kind of
 * the features. One point in a hundred is beside a feature, the others are far
 * from all. Only points beside a feature are searched. */
TEST_LOOP(far_points_are_not_searched, 0, 6)
{
    enum
    {
        N = 20000
    };
    LAYER join = {0}, input = {0};
    MATCHES out = {0};
    struct join_work work = {0};
    struct join_trial t;
    for (int i = 0; i < 400; i++)
    {
        double x = (i % 2) * 90000.0 + i % 20 * 10.0;
        double y = (i % 2) * 90000.0 + i / 20 * 10.0;
        if (_i % 3 == 0)
            add_square(&join, x, y, x + 7.0, y + 7.0);
        else if (_i % 3 == 1)
            add_line(&join, x, y, x + 7.0, y + 7.0);
        else
            add_point(&join, x, y);
    }
    for (int i = 0; i < N; i++)
    {
        if (i % 100 == 0)
            add_point(&input, i / 100 % 20 * 10.0, i / 2000 * 20.0);
        else
            add_point(&input, 20000.0 + i % 211 * 300.0, i / 211 * 700.0);
    }
    t = trial_of(&join, &input, 1, 15.0);
    if (_i >= 3)
        oj_relation_make_dwithin(&t.relation);
    (void)join_on("cpu", &t, &out, &work);
    expect(out.n_matched == N / 100, "%lld rows with pairs",
           (long long)out.n_matched);
    expect(work.n_points_searched >= N / 100 &&
               work.n_points_searched <= N / 50,
           "%lld of %d points are searched, %d are near",
           (long long)work.n_points_searched, N, N / 100);
}

/* --- one class ------------------------------------------------------------ */

/* All features have one class. Rows of this class exclude all features and have
 * no pairs; other rows exclude none. Rows of the class must not test the
 * features one by one, which would take minutes. */
TEST_LOOP(all_of_one_class, 0, 2)
{
    enum
    {
        N = 100000
    };
    int64_t k = _i == 0 ? 1 : 3, at = 0;
    LAYER join = {0}, input = {0};
    MATCHES all = {0}, others = {0};
    struct join_work work;
    struct join_trial t;
    int32_t *of_join = oj_malloc(N, sizeof *of_join);
    int32_t *of_input = oj_malloc(N, sizeof *of_input);
    for (int i = 0; i < N; i++)
    {
        add_point(&join, i % 331 * 3.0, i % 307 * 5.0);
        add_point(&input, i % 317 * 4.0, i % 313 * 4.0);
        of_join[i] = 2;
        of_input[i] = i % 5 == 0 ? 1 : i % 7 == 0 ? -1 : 2;
    }
    t = trial_of(&join, &input, k, INFINITY);
    (void)join_on("cpu", &t, &all, &work);
    t.join.exclude_class = of_join;
    t.input.exclude_class = of_input;
    (void)join_on("cpu", &t, &others, &work);
    for (int64_t row = 0; row < N; row++)
    {
        int64_t first = oj_matches_first(&others, row);
        if (of_input[row] == 2)
            continue;
        for (int64_t i = 0; i < k; i++)
            expect(all.join_row[k * row + i] == others.join_row[first + i] &&
                       bits_of(all.measure[k * row + i]) ==
                           bits_of(others.measure[first + i]),
                   "row %d: pair %d", (int)row, (int)i);
        at += k;
    }
    ck_assert_int_eq(others.n_pairs, at);
    oj_free(of_join);
    oj_free(of_input);
}

/* --- copies --------------------------------------------------------------- */

/* Adds n copies of a square, or of a square with a hole. */
static void add_stack(struct oj_flat_buf *join, double x, int with_hole, int n)
{
    double shell[] = {x, 0, x + 9, 0, x + 9, 9, x, 9, x, 0};
    double hole[] = {x + 2, 2, x + 2, 7, x + 7, 7, x + 7, 2, x + 2, 2};
    for (int i = 0; i < n; i++)
    {
        begin(join);
        add_part(join, OJ_PART_POLYGON);
        add_ring(join, 5, shell);
        if (with_hole)
            add_ring(join, 5, hole);
        end(join);
    }
}

/* An index of 2,000 equal squares is as large as one of 40, except for the list
 * of their rings. The feature after them begins with three vertices of the
 * square, but is no copy. Squares with holes follow. */
TEST(stacks)
{
    LAYER input = {0};
    struct join_work work[2];
    for (int i = 0; i < 400; i++)
        add_point(&input, i % 20 + 0.25, i / 20 + 0.25);
    for (int c = 0; c < 4; c++)
    {
        int64_t k = c < 2 ? 1 : 3;
        int with_hole = c % 2;
        MATCHES out = {0}, few = {0};
        for (int many = 0; many < 2; many++)
        {
            LAYER join = {0};
            struct join_trial t;
            double like[] = {10, 0, 19, 0, 19, 9, 14, 15, 10, 0};
            add_stack(&join, 10.0, with_hole, many ? 2000 : 40);
            add_simple(&join, OJ_PART_POLYGON, 5, like);
            add_square(&join, 0, 0, 5, 5);
            for (int i = 0; i < 60; i++)
                add_stack(&join, 0.1 * i, 1, 1);
            t = trial_of(&join, &input, k, 30.0);
            (void)join_on("cpu", &t, many ? &out : &few, &work[many]);
        }
        ck_assert_int_eq(out.n_pairs, few.n_pairs);
        for (int64_t i = 0; i < out.n_pairs; i++)
        {
            int32_t row = few.join_row[i];
            row += row < 40 ? 0 : 2000 - 40;
            expect(out.join_row[i] == row &&
                       bits_of(out.measure[i]) == bits_of(few.measure[i]),
                   "%d: pair %d", c, (int)i);
        }
        expect(work[1].index_bytes <=
                   2 * work[0].index_bytes + 2000 * (1 + with_hole) * 32,
               "%d: %lld bytes instead of %lld", c,
               (long long)work[1].index_bytes, (long long)work[0].index_bytes);
    }
}

/* --- equally near --------------------------------------------------------- */

static void check_ties(const struct join_trial *t, const struct oj_matches *out,
                       const char *backend)
{
    for (int64_t row = 0; row < t->input.n_features; row++)
    {
        int64_t at = oj_matches_first(out, row), n = 0;
        double least = t->relation.max_distance;
        double *d = oj_malloc(t->join.n_features, sizeof *d);
        for (int64_t f = 0; f < t->join.n_features; f++)
        {
            d[f] = oj_flat_distance(&t->join, f, t->relation.distance_to,
                                    t->input.x[row], t->input.y[row]);
            least = d[f] < least ? d[f] : least;
        }
        for (int64_t f = 0; f < t->join.n_features; f++)
        {
            if (!(d[f] <= least) || !(d[f] < INFINITY))
                continue;
            expect(at + n < oj_matches_end(out, row) &&
                       out->join_row[at + n] == (int32_t)f &&
                       bits_of(out->measure[at + n]) == bits_of(d[f]),
                   "%s: row %d: feature %d at %g is missing", backend, (int)row,
                   (int)f, d[f]);
            n++;
        }
        ck_assert_int_eq(oj_matches_end(out, row) - at, n);
        oj_free(d);
    }
}

/* Adds a grid of 7 x 7 squares, each 0 to 3 times, some squares that lie across
 * four of them, stacks of 3 squares with and n_copies without a hole, and a
 * line. */
static void add_squares(struct oj_flat_buf *join, int n_copies)
{
    for (int i = 0; i < 49; i++)
    {
        double x = i % 7 * 10.0, y = i / 7 * 10.0;
        for (int copy = 0; copy < i % 4; copy++)
            add_square(join, x, y, x + 10.0, y + 10.0);
        if (i % 9 == 4)
            add_square(join, x + 5.0, y + 5.0, x + 15.0, y + 15.0);
    }
    add_stack(join, 80.0, 1, 3);
    add_stack(join, 80.0, 0, n_copies);
    add_line(join, -20.0, 0.0, -20.0, 70.0);
}

/* Finds all ties of points on corners, edges and centres of squares. Round 1,
 * on the GPU, has few copies, since each takes long on an emulated device;
 * test_cuda_layers has more. */
TEST_LOOP(all_that_are_as_near, 0, 2)
{
    static const double reaches[] = {0.0, 5.0, 30.0, INFINITY};
    LAYER join = {0}, input = {0};
    add_squares(&join, _i == 0 ? 40 : 4);
    for (int i = 0; i < 400; i++)
        add_point(&input, i % 20 * 5.0 - 5.0, i / 20 * 5.0 - 5.0);
    add_point(&input, 1e5, 2e5);
    add_point(&input, -1e7, 35.0);
    for (int c = 0; c < 8; c++)
    {
        struct join_trial t = trial_of(&join, &input, 1, reaches[c % 4]);
        MATCHES out = {0};
        struct join_work work;
        const char *backend = _i == 0 ? "cpu" : "cuda";
        t.relation.ties = OJ_TIES_ALL;
        t.relation.distance_to = c / 4 ? OJ_TO_BOUNDARY : OJ_TO_INTERIOR;
        if (join_on(backend, &t, &out, &work))
            check_ties(&t, &out, backend);
    }
}

/* --- few and many within reach -------------------------------------------- */

/* Adds squares in a row, stacks of n_copies squares in some places, and a block
 * of narrow squares, many of which are near a point. */
static void add_uneven_lots(struct oj_flat_buf *join, int n_copies)
{
    for (int i = 0; i < 300; i++)
    {
        double x = i * 10.0;
        add_square(join, x, i % 3, x + 8.0, 6.0);
        for (int copy = 0; i % 60 == 30 && copy < n_copies; copy++)
            add_square(join, x + 2.0, 9.0, x + 6.0, 12.0);
    }
    for (int i = 0; i < 200; i++)
        add_square(join, 3000.0 + i * 0.5, 0.0, 3000.4 + i * 0.5, 20.0);
    add_line(join, 500.0, 8.0, 700.0, 8.0);
    must(oj_flat_buf_add_null(join, join->n_features, &error));
}

/* All features within reach of points. The FIDs of the join side are shuffled
 * and some repeat: the pairs of a row must be in order of FID, then of index.
 * Consecutive points have few, then many, then few features in reach. Some
 * trials have a maximum distance per row. */
TEST_LOOP(few_and_many_within, 0, 12)
{
    static const double reaches[] = {0.0, 2.0, 7.0};
    LAYER join = {0}, input = {0};
    MATCHES out = {0};
    struct join_trial t;
    double *own_reach = NULL;
    int64_t *fid, n_wrong = 0;
    add_uneven_lots(&join, _i % 2 ? 30 : 6);
    for (int i = 0; i < 6000; i++)
        add_point(&input, i % 3 == 0 ? i % 700 * 5.0 : 0.55 * i,
                  i * 7 % 23 * 0.75);
    must(oj_flat_buf_add_null(&input, input.n_features, &error));
    t = trial_of(&join, &input, 1, reaches[_i / 2 % 3]);
    oj_relation_make_dwithin(&t.relation);
    fid = oj_malloc(t.join.n_features, sizeof *fid);
    for (int64_t f = 0; f < t.join.n_features; f++)
        fid[f] = (f * 7919) % 1009;
    t.join.fid = fid;
    if (_i >= 6)
    {
        own_reach = oj_malloc(t.input.n_features, sizeof *own_reach);
        for (int64_t row = 0; row < t.input.n_features; row++)
            own_reach[row] = row % 11 == 0 ? 6.0 : t.relation.max_distance / 2;
        t.input.max_distance = own_reach;
    }
    trial_answer(&t, "cpu", 2, &out);
    for (int64_t row = 0; row < t.input.n_features; row++)
    {
        double reach =
            own_reach != NULL ? own_reach[row] : t.relation.max_distance;
        int64_t first = oj_matches_first(&out, row), n = 0;
        int64_t end = oj_matches_end(&out, row);
        for (int64_t f = 0; f < t.join.n_features; f++)
        {
            double d = oj_flat_distance(&t.join, f, t.relation.distance_to,
                                        t.input.x[row], t.input.y[row]);
            int64_t at = first;
            if (!(d <= reach) || !(d < INFINITY))
                continue;
            n++;
            while (at < end && out.join_row[at] != (int32_t)f)
                at++;
            n_wrong += at == end || bits_of(out.measure[at]) != bits_of(d);
        }
        n_wrong += end - first != n;
        for (int64_t at = first + 1; at < end; at++)
        {
            int32_t before = out.join_row[at - 1], after = out.join_row[at];
            n_wrong += fid[before] > fid[after] ||
                       (fid[before] == fid[after] && before >= after);
        }
    }
    ck_assert_int_eq(n_wrong, 0);
    expect(out.n_pairs > 0, "no pairs");
    oj_free(own_reach);
    oj_free(fid);
}

/* Writes to feature and distance the features that t's relation allows in the
 * answer of a row: the k nearest, and their ties if asked for, by distance and
 * ordinal. Returns their number. */
static int64_t plain_k_nearest(const struct join_trial *t, int64_t row,
                               int32_t *feature, double *distance)
{
    const struct oj_relation *relation = &t->relation;
    const int32_t *of_input = t->input.exclude_class;
    const int32_t *of_join = t->join.exclude_class;
    int64_t n = 0, kept;
    for (int32_t f = 0; f < t->join.n_features; f++)
    {
        double d = oj_flat_distance(&t->join, f, relation->distance_to,
                                    t->input.x[row], t->input.y[row]);
        int64_t at = n;
        if (!(d <= relation->max_distance) || !(d < INFINITY) ||
            (of_join != NULL && of_join[f] == of_input[row]))
            continue;
        for (; at > 0 && distance[at - 1] > d; at--)
        {
            feature[at] = feature[at - 1];
            distance[at] = distance[at - 1];
        }
        feature[at] = f;
        distance[at] = d;
        n++;
    }
    kept = n < relation->k ? n : relation->k;
    while (relation->ties == OJ_TIES_ALL && kept > 0 && kept < n &&
           distance[kept] == distance[kept - 1])
        kept++;
    return kept;
}

/* Finds the k nearest features within a reach. Consecutive points have few,
 * then many, then few features in reach, because the engine finds all features
 * in reach first if they are few. Tests k = 4 and 9, without and with all ties,
 * and no class, one of 5 or one of 2 classes excluded by each row. */
TEST_LOOP(few_and_many_of_k, 0, 12)
{
    static const int n_classes[] = {0, 5, 2};
    LAYER join = {0}, input = {0};
    MATCHES out = {0};
    struct join_trial t;
    int32_t *of_join, *of_input, *feature;
    double *distance;
    int64_t n_wrong = 0, n_full = 0, n_short = 0;
    int c = n_classes[_i / 4];
    add_uneven_lots(&join, 30);
    for (int i = 0; i < 3000; i++)
        add_point(&input, 1.05 * i, i * 7 % 23 * 0.75);
    t = trial_of(&join, &input, _i % 2 ? 9 : 4, 7.0);
    t.relation.ties = _i / 2 % 2 ? OJ_TIES_ALL : OJ_TIES_FIRST;
    of_join = oj_malloc(t.join.n_features, sizeof *of_join);
    of_input = oj_malloc(t.input.n_features, sizeof *of_input);
    feature = oj_malloc(t.join.n_features, sizeof *feature);
    distance = oj_malloc(t.join.n_features, sizeof *distance);
    for (int32_t f = 0; c > 0 && f < t.join.n_features; f++)
        of_join[f] = f * 7 % 11 % c;
    for (int32_t row = 0; c > 0 && row < t.input.n_features; row++)
        of_input[row] = row % 13 % (c + 1);
    t.join.exclude_class = c > 0 ? of_join : NULL;
    t.input.exclude_class = c > 0 ? of_input : NULL;
    trial_answer(&t, "cpu", 2, &out);
    for (int64_t row = 0; row < t.input.n_features; row++)
    {
        int64_t n = plain_k_nearest(&t, row, feature, distance);
        int64_t first = oj_matches_first(&out, row);
        n_full += n >= t.relation.k;
        n_short += n < t.relation.k;
        n_wrong += oj_matches_end(&out, row) - first != n;
        for (int64_t i = 0; n_wrong == 0 && i < n; i++)
            n_wrong += out.join_row[first + i] != feature[i] ||
                       bits_of(out.measure[first + i]) != bits_of(distance[i]);
    }
    ck_assert_int_eq(n_wrong, 0);
    expect(n_full > 100 && n_short > 100, "rows have too many or too few");
    oj_free(of_join);
    oj_free(of_input);
    oj_free(feature);
    oj_free(distance);
}

int main(void)
{
    tests_open("work of nearest joins");
    return tests_run();
}
