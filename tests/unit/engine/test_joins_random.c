/* Every join between features of any kinds, on every backend that supports it,
 * has the pairs that GEOS finds by tests of all pairs, plain and prepared.
 * Some features are invalid; where GEOS decides them, its result counts.
 * Larger sets of points with many ties are joined with any features. The joins
 * of these sets are compared with the plain reference, and with GEOS where
 * both define the area of a polygon alike.
 * Kind: property, degenerate. OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../references.h"

#include "../geos_area.h"
#include "../join_trial.h"
#include "../plain_pairs.h"
#include "../run_tests.h"

#include "../../../algs/foundations/base/oj_feature_box.h"
#include "../../../algs/pairs/selection/oj_answer_ranking.h"
#include "../../../algs/pairs/selection/oj_pair_filter.h"
#include "../../../algs/references/geos/geos_pairs.h"
#include "../../../algs/references/validation/oj_validation.h"

#define N_ROUNDS 45

/* --- a join to try -------------------------------------------------------- */

static const char *const masks[] = {"T********", "FF*FF****", "0********",
                                    "T*F**F***", "****T****", "FF*F0****",
                                    "212101212", "tff*ff***", "*********"};

static struct oj_relation pick_relation(const struct scene *s)
{
    struct oj_relation r = oj_relation_default();
    r.op = (enum oj_op)pick(OJ_OP_SIMILAR);
    snprintf(r.mask, sizeof r.mask, "%s", masks[pick(9)]);
    r.max_distance = s->scale * pick(1 + s->extent / 2);
    if (r.op == OJ_OP_NEAREST)
    {
        r.k = one_in(2) ? 1 : 1 + pick(5);
        r.ties = one_in(3) ? OJ_TIES_ALL : OJ_TIES_FIRST;
        r.distance_to = one_in(4) ? OJ_TO_BOUNDARY : OJ_TO_INTERIOR;
        if (one_in(3))
            r.max_distance = INFINITY;
    }
    if (one_in(4))
        r.min_distance = s->scale * pick(3);
    return r;
}

static void add_features(struct oj_flat_buf *buf, const struct scene *s,
                         const struct oj_flat *other, int n)
{
    unsigned kinds = 1u + (unsigned)pick(7);
    if (one_in(4) && other != NULL)
        add_input_points(buf, s, other, n, pick(2));
    else
        add_join_features(buf, s, n, kinds, one_in(6));
}

static void make_trial(struct join_trial *t)
{
    struct scene s;
    memset(t, 0, sizeof *t);
    do /* GEOS takes seconds for more pairs */
    {
        trial_free(t);
        s = pick_scene();
        t->relation = pick_relation(&s);
        add_features(&t->join_buf, &s, NULL, pick(60));
        t->join = oj_flat_buf_view(&t->join_buf);
        add_features(&t->input_buf, &s, &t->join, pick(60));
        if (one_in(3)) /* both sides have equal features */
            t->input = t->join;
        else
            t->input = oj_flat_buf_view(&t->input_buf);
    } while (t->join.n_features * t->input.n_features > 3000);
    pick_columns(&t->columns, &t->join, &t->input, &t->relation,
                 s.scale * (1 + s.extent / 20), 5);
    if (one_in(6))
        pick_texts(&t->columns, &t->join, &t->input, &t->relation);
    if (one_in(4))
        pick_spans(&t->columns, &t->join, &t->input, &t->relation);
    if (one_in(6))
        pick_vectors(&t->columns, &t->join, &t->input, &t->relation);
}

/* --- all pairs, one by one ------------------------------------------------ */

static int has_distance(const struct oj_relation *r)
{
    return r->op == OJ_OP_NEAREST || r->op == OJ_OP_DWITHIN;
}

/* Returns 1 if disjoint features can match the pattern. */
static int may_be_apart(const struct oj_relation *r)
{
    return r->op == OJ_OP_RELATE && strchr("F*f", r->mask[0]) &&
           strchr("F*f", r->mask[1]) && strchr("F*f", r->mask[3]) &&
           strchr("F*f", r->mask[4]);
}

/* Decides a pair by GEOS. *distance is NaN for joins without distances. If GEOS
 * cannot say, *distance is a lower bound. by_even_odd 1: the part of a hole
 * outside of its shell is area, unlike in GEOS. */
static enum oj_geos_outcome decide_pair_by_geos(struct oj_geos_pairs *pairs,
                                                const struct join_trial *t,
                                                int by_even_odd, int64_t row,
                                                int64_t feature,
                                                double *distance)
{
    const struct oj_relation *r = &t->relation;
    struct oj_box a = oj_box_of_feature(&t->input, row);
    struct oj_box b = oj_box_of_feature(&t->join, feature);
    enum oj_geos_outcome outcome;
    double most;
    *distance = NAN;
    if (oj_box_is_empty(&a) || oj_box_is_empty(&b))
        return OJ_GEOS_NO;
    if (r->op == OJ_OP_BBOX)
        return oj_box_intersects(&a, &b) ? OJ_GEOS_YES : OJ_GEOS_NO;
    if (!has_distance(r) && !may_be_apart(r) && !oj_box_intersects(&a, &b))
        return r->op == OJ_OP_DISJOINT ? OJ_GEOS_YES : OJ_GEOS_NO;
    if (!has_distance(r))
        return oj_geos_pairs_decide(pairs, row, feature);
    most = oj_pair_max_distance(r, &t->input, row, &t->join, feature);
    outcome = oj_geos_pairs_distance(pairs, row, feature, distance);
    if (by_even_odd && outcome == OJ_GEOS_YES && *distance > 0.0 &&
        r->distance_to == OJ_TO_INTERIOR &&
        plain_distance(&t->input, row, &t->join, feature, OJ_TO_INTERIOR) ==
            0.0)
        *distance = 0.0;
    if (outcome == OJ_GEOS_CANNOT_SAY)
    {
        a = oj_box_widened(&a, 0.0);
        b = oj_box_widened(&b, 0.0);
        *distance = oj_box_distance(&a, &b); /* at least */
        return *distance <= most ? outcome : OJ_GEOS_NO;
    }
    if (outcome == OJ_GEOS_YES && !(*distance >= r->min_distance &&
                                    *distance <= most && *distance < INFINITY))
        return OJ_GEOS_NO;
    return outcome;
}

static void join_row(struct oj_geos_pairs *pairs, const struct join_trial *t,
                     int by_even_odd, const struct oj_pair_filter *filter,
                     int64_t row, struct oj_ranking *ranking,
                     struct oj_answers *answers)
{
    int is_undecided = 0;
    double refused_at = INFINITY;
    oj_ranking_start(ranking);
    for (int32_t feature = 0; feature < t->join.n_features; feature++)
    {
        double distance;
        enum oj_geos_outcome outcome;
        if (!oj_pair_filter_accepts(filter, row, feature))
            continue;
        outcome =
            decide_pair_by_geos(pairs, t, by_even_odd, row, feature, &distance);
        ck_assert_int_ne(outcome, OJ_GEOS_OUT_OF_MEMORY);
        if (outcome == OJ_GEOS_CANNOT_SAY && has_distance(&t->relation))
            refused_at = fmin(refused_at, distance);
        is_undecided |= outcome == OJ_GEOS_CANNOT_SAY;
        if (outcome == OJ_GEOS_CANNOT_SAY && t->relation.op != OJ_OP_NEAREST)
            must(oj_answers_add_undecided(answers, row, feature, &error));
        if (outcome != OJ_GEOS_YES)
            continue;
        must(oj_answers_reserve(answers, 1, &error));
        if (t->relation.op == OJ_OP_NEAREST)
            must(oj_ranking_add(ranking, feature, distance, &error));
        else
            oj_answers_append_pair(answers, (int32_t)row, feature, distance);
    }
    if (t->relation.op == OJ_OP_NEAREST)
    {
        oj_ranking_finish(ranking);
        must(oj_answers_add_ranking(answers, row, ranking, &error));
        is_undecided &= ranking->n < ranking->k ||
                        refused_at <= ranking->list[ranking->k - 1].distance;
    }
    if (is_undecided && t->relation.op == OJ_OP_NEAREST)
        must(oj_answers_add_undecided(answers, row, -1, &error));
}

static void join_all_pairs(const struct join_trial *t, int by_even_odd,
                           struct oj_matches *out)
{
    struct oj_ranking ranking = oj_ranking_make(&t->relation, NULL);
    struct oj_answers answers = {0};
    struct oj_pair_filter filter;
    struct oj_geos_pairs *pairs;
    must(oj_geos_pairs_open(&t->relation, &t->join,
                            seed % 2 && !has_distance(&t->relation), &pairs,
                            &error));
    oj_geos_pairs_set_input(pairs, &t->input);
    must(oj_pair_filter_make(&t->relation, &t->input, &t->join, &filter,
                             &error));
    for (int64_t row = 0; row < t->input.n_features; row++)
        join_row(pairs, t, by_even_odd, &filter, row, &ranking, &answers);
    must(oj_answers_to_matches(&answers, 1, t->input.n_features, &t->relation,
                               NULL, out, &error));
    oj_geos_pairs_close(pairs);
    oj_ranking_free(&ranking);
    oj_answers_free(&answers);
}

/* --- backends ------------------------------------------------------------- */

static struct
{
    int64_t n_joins, n_rows, n_pairs, n_rounding, n_within_ulps;
    int64_t n_undecided, n_undecided_proved;
} counts;

/* The join and the backend of a comparison, for messages. */
struct finding
{
    const struct join_trial *t;
    const char *backend;
};

static oj_status on_difference(const struct oj_difference *d, void *user,
                               struct oj_error *err)
{
    const struct finding *f = user;
    const struct join_trial *t = f->t;
    (void)err;
    if (d->kind >= OJ_DIFFERENCE_PROVED)
        return OJ_OK;
    ck_abort_msg("seed %llu, %s, %s (%s), k %d, %lld x %lld: row %lld: %s, %d "
                 "at %.17g, expected %d at %.17g",
                 (unsigned long long)seed, f->backend,
                 oj_op_get(t->relation.op)->name, t->relation.mask,
                 (int)t->relation.k, (long long)t->input.n_features,
                 (long long)t->join.n_features, (long long)d->input_row,
                 oj_validation_difference_name(d->kind), d->join_row_ours,
                 d->measure_ours, d->join_row_reference, d->measure_reference);
    return OJ_OK;
}

static void try_answer(const struct join_trial *t, const char *backend,
                       const struct oj_matches *matches,
                       const struct oj_matches *expected)
{
    struct finding finding = {t, backend};
    struct oj_validation v = {.report = on_difference,
                              .user = &finding,
                              .join_side = &t->join,
                              .input = &t->input,
                              .relation = &t->relation};
    must(oj_validation_compare(&v, matches, expected, &error));
    counts.n_joins++;
    counts.n_rows += v.n_rows;
    counts.n_pairs += v.n_pairs;
    counts.n_undecided += v.n_undecided;
    counts.n_undecided_proved += v.n_undecided_proved;
    counts.n_rounding += v.n_rows_proved + v.n_rows_rounding;
    counts.n_within_ulps += v.n_within_ulps;
    oj_validation_free(&v);
}

static void try_backend(const struct join_trial *t, const char *backend,
                        int n_threads, const struct oj_matches *expected)
{
    const struct oj_options options = {.n_threads = n_threads,
                                       .quadrant_size = 8};
    MATCHES matches = {0};
    must(trial_open_and_join(t, backend, &options, NULL, &matches));
    try_answer(t, backend, &matches, expected);
}

static void print_counts(const char *what)
{
    printf("%s: %lld joins, %lld rows, %lld pairs compared; undecided by GEOS: "
           "%lld pairs, ours proved, and %lld rows; %lld rows rounded by it, "
           "%lld pairs within ulps\n",
           what, (long long)counts.n_joins, (long long)counts.n_rows,
           (long long)counts.n_pairs, (long long)counts.n_undecided_proved,
           (long long)counts.n_undecided, (long long)counts.n_rounding,
           (long long)counts.n_within_ulps);
}

TEST(as_all_pairs)
{
    EACH_ROUND(N_ROUNDS)
    {
        struct join_trial t;
        MATCHES expected = {0};
        int is_distance;
        random_state = 1000002 + seed;
        make_trial(&t);
        is_distance = has_distance(&t.relation);
        join_all_pairs(&t, is_distance, &expected);
        try_backend(&t, "cpu", 1 + pick(3), &expected);
        if (is_distance)
        {
            oj_matches_free(&expected);
            join_all_pairs(&t, 0, &expected);
        }
        try_backend(&t, "geos", 1, &expected);
        try_backend(&t, "spatialindex", 1, &expected);
        /* geos_sorted decides predicates by prepared geometries, unlike the
         * expected pairs here */
        if (is_distance)
            try_backend(&t, "geos_sorted", 1, &expected);
        try_backend(&t, "spatialindex_collective", 1, &expected);
        trial_free(&t);
    }
    print_counts("all pairs");
}

/* --- many points, the nearest of anything ----------------------------------
 */

static int pick_count(int usual, int large)
{
    if (one_in(30))
        return pick(2);
    return one_in(15) ? pick(large) : 1 + pick(usual);
}

/* Compares the engine with the plain reference and with GEOS. with_too_few 1:
 * some parts have too few vertices. */
static void check_nearest(const struct scene *s, int with_too_few)
{
    static const double steps[] = {0.0, 1e-9, 1.0, 2.5, 10.0, 300.0, 1e9};
    static const int64_t ks[] = {2, 3, 5, 12, 100, 1000};
    static const int threads[] = {1, 1, 2, 5};
    LAYER undisputed = {0};
    MATCHES ours = {0}, theirs = {0};
    struct join_trial t = {.relation = oj_relation_default()};
    int n_threads = threads[pick(4)];
    const struct oj_options batched = {.n_threads = threads[pick(4)]};
    t.relation.max_distance =
        pick(3) == 0 ? INFINITY : s->scale * steps[pick(7)];
    if (one_in(20))
        t.relation.max_distance = 1e-300;
    t.relation.k = pick(2) ? 1 : ks[pick(6)];
    t.relation.ties = pick(3) ? OJ_TIES_FIRST : OJ_TIES_ALL;
    t.relation.distance_to = pick(3) ? OJ_TO_INTERIOR : OJ_TO_BOUNDARY;
    add_join_features(&t.join_buf, s, pick_count(60, 1500),
                      (unsigned)(1 + pick(7)), with_too_few);
    t.join = oj_flat_buf_view(&t.join_buf);
    add_input_points(&t.input_buf, s, &t.join, pick_count(150, 2000), pick(2));
    t.input = oj_flat_buf_view(&t.input_buf);
    t.join.fid = t.fid = pick_fids(t.join.n_features);
    must(oj_flat_check(&t.join, &error));
    for (int i = 0; i < 2; i++)
    {
        if (i == 1 && t.relation.distance_to == OJ_TO_INTERIOR)
        {
            copy_undisputed(&t.join, &t.input, &undisputed);
            t.input = oj_flat_buf_view(&undisputed);
        }
        trial_answer(&t, "cpu", n_threads, &ours);
        trial_answer(&t, i == 0 ? "quadrant" : "geos", n_threads, &theirs);
        trial_check_form(&t, &ours);
        try_answer(&t, i == 0 ? "quadrant" : "geos", &ours, &theirs);
        /* answers must not depend on batches and threads */
        if (i == 0 && one_in(4))
            trial_check_batches(&t, "cpu", &batched,
                                one_in(3) ? 1 : 1 + pick(1000), 100, &ours);
    }
    trial_free(&t);
}

TEST(nearest_of_many)
{
    int64_t n = rounds(250);
    memset(&counts, 0, sizeof counts);
    for (seed = first_seed(); seed < first_seed() + (uint64_t)n; seed++)
    {
        struct scene scene;
        random_state = seed;
        scene = pick_scene();
        check_nearest(&scene, one_in(20));
    }
    print_counts("nearest of many");
    ck_assert(n < 250 || (counts.n_pairs > 40000 && counts.n_undecided == 0));
    ck_assert(counts.n_rounding * 1000 <= counts.n_rows);
}

/* The squares of coordinates are outside of the range of single precision. */
TEST(extreme_scales)
{
    static const double scales[] = {1e-12, 1e-16,  1e-18,  1e-20, 1e-30,
                                    1e-60, 1e-100, 1e-130, 1e12,  1e18,
                                    1e20,  1e30,   1e60,   1e100, 1e130};
    EACH_ROUND(80)
    {
        struct scene scene = {0.0, 0.0, 1.0, 20, 1, 0.0};
        scene.scale = scales[pick(15)];
        scene.on_lattice = pick(2);
        check_nearest(&scene, 0);
    }
}

/* --- the largest coordinates ------------------------------------------------
 */

static void add_huge(struct oj_flat_buf *buf, int64_t fid)
{
    static const int values[] = {0,   1,    31,  -31,  93,  125,
                                 156, -218, 249, -249, 312, -312};
    int kind = pick(3);
    double xy[8];
    for (int i = 0; i < 8; i++)
        xy[i] = 0x1p490 * values[pick(12)]; /* coordinates up to 0.998e150 */
    must(oj_flat_buf_begin_feature(buf, fid, &error));
    add_part(buf, kind == 0   ? OJ_PART_POINT
                  : kind == 1 ? OJ_PART_LINE
                              : OJ_PART_POLYGON);
    if (kind == 2)
    {
        xy[6] = xy[0];
        xy[7] = xy[1];
    }
    add_ring(buf, kind == 0 ? 1 : kind == 1 ? 2 : 4, xy);
    end(buf);
}

/* The greatest coordinates that joins accept. Their squares are near the
 * greatest double. */
TEST(huge_coordinates)
{
    static const double reaches[] = {0.0,   1e10,    1e154,   2e154,
                                     1e300, 1.7e308, DBL_MAX, INFINITY};
    memset(&counts, 0, sizeof counts);
    for (seed = 77; seed < 77 + 120; seed++)
    {
        struct join_trial t = {.relation = oj_relation_default()};
        MATCHES expected = {0};
        random_state = seed;
        for (int i = 0; i < 12; i++)
        {
            add_huge(&t.input_buf, i);
            add_huge(&t.join_buf, i);
        }
        trial_view(&t);
        t.relation.op = pick(2) ? OJ_OP_DWITHIN : OJ_OP_NEAREST;
        t.relation.max_distance = reaches[pick(8)];
        if (t.relation.op == OJ_OP_NEAREST)
            t.relation.k = 1 + pick(3);
        else if (pick(2) || !(t.relation.max_distance < INFINITY))
        {
            double *column = pick_distances(12, 0.0);
            for (int i = 0; i < 12; i++)
                column[i] = reaches[pick(8)];
            t.columns.max_distance = column;
            if (pick(2))
                t.input.max_distance = column;
            else
                t.join.max_distance = column;
        }
        join_all_pairs(&t, 0, &expected);
        for (int64_t i = 0; i < expected.n_entries; i++)
            ck_assert(expected.join_row[i] < 0 ||
                      isfinite(expected.measure[i]));
        try_backend(&t, "cpu", 1 + pick(3), &expected);
        try_backend(&t, "geos", 1, &expected);
        try_backend(&t, "spatialindex", 1, &expected);
        trial_free(&t);
    }
    print_counts("huge coordinates");
    ck_assert_int_gt(counts.n_pairs, 600);
}

/* --- indexes ------------------------------------------------------------- */

/* Returns the size in bytes of the index for a batch of this input. Stores the
 * number of pairs of the batch in *n_found. */
static int64_t index_bytes(const struct oj_flat *join,
                           const struct oj_flat *input, unsigned input_kinds,
                           int64_t *n_found)
{
    struct oj_options options = {.n_threads = 1, .input_kinds = input_kinds};
    struct oj_relation relation = oj_relation_default();
    MATCHES m = {0};
    struct oj_join *opened;
    int64_t bytes;
    relation.op = OJ_OP_INTERSECTS;
    must(oj_join_open(join, &relation, "cpu", &options, &opened, &error));
    must(oj_join_batch(opened, input, &m, &error));
    bytes = oj_join_stats(opened)->index_bytes;
    *n_found = m.n_pairs;
    oj_join_close(opened);
    return bytes;
}

/* Cells for points are only built if points are expected. Input of every kind
 * is joined, whatever was expected. */
TEST(indexed_for_what_comes)
{
    const unsigned shapes = OJ_PART_LINE | OJ_PART_POLYGON;
    LAYER join = {0}, points = {0};
    struct oj_flat a, b;
    int64_t n_usual, n_expected;
    for (int i = 0; i < 40; i++)
    {
        add_square(&join, i, 0.0, i + 1.5, 1.0);
        add_point(&points, i + 0.25, 0.5);
    }
    a = oj_flat_buf_view(&join);
    b = oj_flat_buf_view(&points);
    ck_assert_int_lt(index_bytes(&a, &a, shapes, &n_expected),
                     index_bytes(&a, &a, 0, &n_usual));
    ck_assert_int_eq(n_expected, n_usual);
    ck_assert_int_eq(n_usual, 40 + 2 * 39);
    ck_assert_int_gt(index_bytes(&a, &b, shapes, &n_expected),
                     index_bytes(&a, &b, 0, &n_usual));
    ck_assert_int_eq(n_expected, n_usual);
    ck_assert_int_eq(n_usual, 40 + 39);
}

int main(void)
{
    tests_open("joins, random");
    return tests_run();
}
