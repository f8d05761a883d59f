/* Every join between features of any kinds, on every backend that takes it:
 * the same pairs as when GEOS is asked about all pairs, one by one; and what
 * geos_pairs.h promises of prepared geometries and of joins with their sides
 * exchanged.  Invalid features are as good as others: where GEOS has a word, it
 * is the answer.
 * Kind: property. OJ_TEST_SEED=n and OJ_TEST_ROUNDS=n run others, or more, and
 * OJ_TEST_FIRST=n leaves out those before round n. */
#include "../random_numbers.h"
#include "../run_tests.h"

#include "../memory_trial.h"
#include "../plain_pairs.h"

#include "../../../algs/base/oj_boxes.h"
#include "../../../algs/geos/geos_pairs.h"
#include "../../../algs/pairs/oj_pairs.h"
#include "../../../algs/pairs/oj_ranking.h"
#include "../../../algs/reference/oj_validate.h"

#include <stdio.h>
#include <stdlib.h>

#define N_ROUNDS 45

/* --- a join to try -------------------------------------------------------- */

struct random_join_trial
{
    struct oj_relation relation;
    struct oj_flat_buf input_buf, join_buf;
    struct oj_flat input, join;
    double *max_distance;
    int32_t *input_class, *join_class;
    int by_even_odd; /* a hole beyond its shell is area, though not to GEOS */
};

static const char *const masks[] = {"T********", "FF*FF****", "0********",
                                    "T*F**F***", "****T****", "FF*F0****",
                                    "212101212", "tff*ff***", "*********"};

static struct oj_relation pick_relation(const struct scene *s)
{
    struct oj_relation r = oj_relation_default();
    r.op = (enum oj_op)pick(OJ_N_OPS);
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
    r.exclude_self = one_in(5);
    r.unordered_pairs = one_in(5) ? (pick(2) ? 1 : -1) : 0;
    r.exclude_same_geometry = one_in(5);
    return r;
}

static int32_t *pick_classes(int64_t n)
{
    int32_t *value = oj_malloc(n, sizeof *value);
    ck_assert_ptr_nonnull(value);
    for (int64_t i = 0; i < n; i++)
        value[i] = pick(6) - 1;
    return value;
}

static void pick_columns(struct random_join_trial *t, const struct scene *s)
{
    if (one_in(4))
    {
        t->input_class = pick_classes(t->input.n_features);
        t->join_class = pick_classes(t->join.n_features);
        if (pick(2))
        {
            t->input.on_class = t->input_class;
            t->join.on_class = t->join_class;
        }
        else
        {
            t->input.exclude_class = t->input_class;
            t->join.exclude_class = t->join_class;
        }
    }
    if (t->relation.op == OJ_OP_DWITHIN && pick(2))
    {
        struct oj_flat *side = pick(2) ? &t->input : &t->join;
        t->max_distance = oj_malloc(side->n_features, sizeof *t->max_distance);
        ck_assert_ptr_nonnull(t->max_distance);
        for (int64_t i = 0; i < side->n_features; i++)
            t->max_distance[i] =
                one_in(8) ? NAN : s->scale * (pick(1 + s->extent / 4) - 1);
        side->max_distance = t->max_distance;
    }
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

static void make_trial(struct random_join_trial *t)
{
    struct scene s = pick_scene();
    memset(t, 0, sizeof *t);
    t->relation = pick_relation(&s);
    add_features(&t->join_buf, &s, NULL, pick(60));
    t->join = oj_flat_buf_view(&t->join_buf);
    add_features(&t->input_buf, &s, &t->join, pick(60));
    if (one_in(3)) /* the same features on both sides */
        t->input = t->join;
    else
        t->input = oj_flat_buf_view(&t->input_buf);
    pick_columns(t, &s);
}

static void free_trial(struct random_join_trial *t)
{
    oj_flat_buf_free(&t->input_buf);
    oj_flat_buf_free(&t->join_buf);
    oj_free(t->max_distance);
    oj_free(t->input_class);
    oj_free(t->join_class);
}

/* --- all pairs, one by one ------------------------------------------------ */

static int has_distance(const struct oj_relation *r)
{
    return r->op == OJ_OP_NEAREST || r->op == OJ_OP_DWITHIN;
}

/* Patterns that hold for features apart. */
static int may_be_apart(const struct oj_relation *r)
{
    return r->op == OJ_OP_RELATE && strchr("F*f", r->mask[0]) &&
           strchr("F*f", r->mask[1]) && strchr("F*f", r->mask[3]) &&
           strchr("F*f", r->mask[4]);
}

static enum oj_geos_verdict ask(struct oj_geos_pairs *pairs,
                                const struct random_join_trial *t, int64_t row,
                                int64_t feature, double *distance)
{
    const struct oj_relation *r = &t->relation;
    struct oj_box a = oj_box_of_feature(&t->input, row);
    struct oj_box b = oj_box_of_feature(&t->join, feature);
    enum oj_geos_verdict verdict;
    double most;
    *distance = NAN;
    if (oj_box_is_empty(&a) || oj_box_is_empty(&b))
        return OJ_GEOS_NO;
    if (r->op == OJ_OP_BBOX)
        return oj_box_intersects(&a, &b) ? OJ_GEOS_YES : OJ_GEOS_NO;
    if (!has_distance(r) && !may_be_apart(r) && !oj_box_intersects(&a, &b))
        return r->op == OJ_OP_DISJOINT ? OJ_GEOS_YES : OJ_GEOS_NO;
    if (!has_distance(r))
        return oj_geos_pairs_hold(pairs, row, feature);
    most = oj_pair_max_distance(r, &t->input, row, &t->join, feature);
    verdict = oj_geos_pairs_distance(pairs, row, feature, distance);
    if (t->by_even_odd && verdict == OJ_GEOS_YES && *distance > 0.0 &&
        r->distance_to == OJ_TO_INTERIOR &&
        plain_distance(&t->input, row, &t->join, feature, OJ_TO_INTERIOR) ==
            0.0)
        *distance = 0.0;
    if (verdict == OJ_GEOS_CANNOT_SAY)
    {
        a = oj_box_around(&a, 0.0);
        b = oj_box_around(&b, 0.0);
        *distance = oj_box_distance(&a, &b); /* at least */
        return *distance <= most ? verdict : OJ_GEOS_NO;
    }
    if (verdict == OJ_GEOS_YES && !(*distance >= r->min_distance &&
                                    *distance <= most && *distance < INFINITY))
        return OJ_GEOS_NO;
    return verdict;
}

static void join_row(struct oj_geos_pairs *pairs,
                     const struct random_join_trial *t,
                     const struct oj_pair_filter *filter, int64_t row,
                     struct oj_ranking *ranking, struct oj_answers *answers)
{
    int is_undecided = 0;
    double refused_at = INFINITY;
    oj_ranking_start(ranking);
    for (int32_t feature = 0; feature < t->join.n_features; feature++)
    {
        double distance;
        enum oj_geos_verdict verdict;
        if (!oj_pair_may_count(filter, row, feature))
            continue;
        verdict = ask(pairs, t, row, feature, &distance);
        ck_assert_int_ne(verdict, OJ_GEOS_OUT_OF_MEMORY);
        if (verdict == OJ_GEOS_CANNOT_SAY && has_distance(&t->relation))
            refused_at = fmin(refused_at, distance);
        is_undecided |= verdict == OJ_GEOS_CANNOT_SAY;
        if (verdict == OJ_GEOS_CANNOT_SAY && t->relation.op != OJ_OP_NEAREST)
            must(oj_answers_add_undecided(answers, row, feature, &error));
        if (verdict != OJ_GEOS_YES)
            continue;
        must(oj_answers_reserve(answers, 1, &error));
        if (t->relation.op == OJ_OP_NEAREST)
            must(oj_ranking_add(ranking, feature, distance, &error));
        else
            oj_answers_put(answers, (int32_t)row, feature, distance);
    }
    if (t->relation.op == OJ_OP_NEAREST)
    {
        oj_ranking_finish(ranking);
        must(oj_answers_add(answers, row, ranking, &error));
        is_undecided &= ranking->n < ranking->k ||
                        refused_at <= ranking->list[ranking->k - 1].distance;
    }
    if (is_undecided && t->relation.op == OJ_OP_NEAREST)
        must(oj_answers_add_undecided(answers, row, -1, &error));
}

static void join_all_pairs(const struct random_join_trial *t,
                           struct oj_matches *out)
{
    struct oj_ranking ranking = oj_ranking_make(&t->relation, NULL);
    struct oj_answers answers = {0};
    struct oj_pair_filter filter;
    struct oj_geos_pairs *pairs;
    must(oj_geos_pairs_open(&t->relation, &t->join, 0, &pairs, &error));
    oj_geos_pairs_set_input(pairs, &t->input);
    must(oj_pair_filter_make(&t->relation, &t->input, &t->join, &filter,
                             &error));
    for (int64_t row = 0; row < t->input.n_features; row++)
        join_row(pairs, t, &filter, row, &ranking, &answers);
    must(oj_answers_to_matches(&answers, 1, t->input.n_features, &t->relation,
                               NULL, out, &error));
    oj_geos_pairs_close(pairs);
    oj_ranking_free(&ranking);
    oj_answers_free(&answers);
}

/* --- backends ------------------------------------------------------------- */

static struct
{
    int64_t n_joins, n_pairs, n_rounding, n_within_ulps;
    int64_t n_undecided, n_undecided_proved;
} counts;

/* What a comparison found, and who asks. */
struct finding
{
    const struct random_join_trial *t;
    const char *backend;
    long round;
};

static oj_status on_difference(const struct oj_difference *d, void *user,
                               struct oj_error *err)
{
    const struct finding *f = user;
    const struct random_join_trial *t = f->t;
    (void)err;
    if (d->kind == OJ_DIFFERENCE_PROVED)
        return OJ_OK;
    ck_abort_msg("round %ld, %s, %s (%s), %lld x %lld: row %lld: %s, %d at "
                 "%.17g, expected %d at %.17g",
                 f->round, f->backend, oj_op_get(t->relation.op)->name,
                 t->relation.mask, (long long)t->input.n_features,
                 (long long)t->join.n_features, (long long)d->input_row,
                 oj_difference_kind_name(d->kind), d->join_row_ours,
                 d->measure_ours, d->join_row_reference, d->measure_reference);
    return OJ_OK;
}

static void try_backend(const struct random_join_trial *t, const char *backend,
                        int n_threads, const struct oj_matches *expected,
                        long round)
{
    struct oj_options options = {.n_threads = n_threads, .quadrant_size = 8};
    struct finding finding = {t, backend, round};
    struct oj_validation v = {.report = on_difference,
                              .user = &finding,
                              .join_side = &t->join,
                              .input = &t->input,
                              .relation = &t->relation};
    MATCHES matches = {0};
    struct oj_join *join;
    must(
        oj_join_open(&t->join, &t->relation, backend, &options, &join, &error));
    must(oj_join_batch(join, &t->input, &matches, &error));
    must(oj_validation_compare(&v, &matches, expected, &error));
    counts.n_joins++;
    counts.n_pairs += v.n_pairs;
    counts.n_undecided += v.n_undecided;
    counts.n_undecided_proved += v.n_undecided_proved;
    counts.n_rounding += v.n_rows_proved;
    counts.n_within_ulps += v.n_within_ulps;
    oj_validation_free(&v);
    oj_join_close(join);
}

static long from_environment(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtol(text, NULL, 10) : otherwise;
}

TEST(as_all_pairs)
{
    long n_rounds = from_environment("OJ_TEST_ROUNDS", N_ROUNDS);
    long seed = from_environment("OJ_TEST_SEED", 1);
    memset(&counts, 0, sizeof counts);
    for (long round = from_environment("OJ_TEST_FIRST", 0); round < n_rounds;
         round++)
    {
        struct random_join_trial t;
        MATCHES expected = {0};
        random_state = (uint64_t)(seed * 1000003 + round);
        make_trial(&t);
        t.by_even_odd = has_distance(&t.relation);
        join_all_pairs(&t, &expected);
        try_backend(&t, "cpu", 1 + pick(3), &expected, round);
        if (t.by_even_odd)
        {
            t.by_even_odd = 0;
            oj_matches_free(&expected);
            join_all_pairs(&t, &expected);
        }
        try_backend(&t, "geos", 1, &expected, round);
        try_backend(&t, "spatialindex", 1, &expected, round);
        if (has_distance(&t.relation)) /* of predicates it asks prepared ones */
            try_backend(&t, "geos_sorted", 1, &expected, round);
        try_backend(&t, "spatialindex_collective", 1, &expected, round);
        free_trial(&t);
    }
    printf("%lld joins, %lld pairs compared; undecided by GEOS: %lld pairs, "
           "ours proved, and %lld rows; %lld rows rounded by it, %lld pairs "
           "within ulps\n",
           (long long)counts.n_joins, (long long)counts.n_pairs,
           (long long)counts.n_undecided_proved, (long long)counts.n_undecided,
           (long long)counts.n_rounding, (long long)counts.n_within_ulps);
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
        xy[i] = 0x1p490 * values[pick(12)]; /* up to 0.998e150 */
    must(oj_flat_buf_begin(buf, fid, &error));
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

/* The largest coordinates that join, whose squares are near the largest
 * numbers. */
TEST(huge_coordinates)
{
    static const double reaches[] = {0.0,   1e10,    1e154,   2e154,
                                     1e300, 1.7e308, DBL_MAX, INFINITY};
    memset(&counts, 0, sizeof counts);
    for (long round = 0; round < 120; round++)
    {
        struct random_join_trial t;
        MATCHES expected = {0};
        random_state = (uint64_t)(77 + round);
        memset(&t, 0, sizeof t);
        for (int i = 0; i < 12; i++)
        {
            add_huge(&t.input_buf, i);
            add_huge(&t.join_buf, i);
        }
        t.input = oj_flat_buf_view(&t.input_buf);
        t.join = oj_flat_buf_view(&t.join_buf);
        t.relation = oj_relation_default();
        t.relation.op = pick(2) ? OJ_OP_DWITHIN : OJ_OP_NEAREST;
        t.relation.max_distance = reaches[pick(8)];
        if (t.relation.op == OJ_OP_NEAREST)
            t.relation.k = 1 + pick(3);
        else if (pick(2) || !(t.relation.max_distance < INFINITY))
        {
            t.max_distance = oj_malloc(12, sizeof *t.max_distance);
            ck_assert_ptr_nonnull(t.max_distance);
            for (int i = 0; i < 12; i++)
                t.max_distance[i] = reaches[pick(8)];
            if (pick(2))
                t.input.max_distance = t.max_distance;
            else
                t.join.max_distance = t.max_distance;
        }
        join_all_pairs(&t, &expected);
        for (int64_t i = 0; i < expected.n_entries; i++)
            ck_assert(expected.join_row[i] < 0 ||
                      isfinite(expected.measure[i]));
        try_backend(&t, "cpu", 1 + pick(3), &expected, round);
        try_backend(&t, "geos", 1, &expected, round);
        try_backend(&t, "spatialindex", 1, &expected, round);
        free_trial(&t);
    }
    printf("%lld joins of huge coordinates, %lld pairs, %lld rows rounded\n",
           (long long)counts.n_joins, (long long)counts.n_pairs,
           (long long)counts.n_rounding);
    ck_assert_int_gt(counts.n_pairs, 600);
}

/* --- GEOS's own consistency ----------------------------------------------- */

static int64_t n_same, n_raised, n_rounded;

/* Plain, prepared, and with the sides exchanged. */
static void ask_three(const struct random_join_trial *t)
{
    struct oj_relation other = oj_relation_transpose(&t->relation);
    struct oj_geos_pairs *plain, *prepared, *exchanged;
    must(oj_geos_pairs_open(&t->relation, &t->join, 0, &plain, &error));
    must(oj_geos_pairs_open(&t->relation, &t->join, 1, &prepared, &error));
    must(oj_geos_pairs_open(&other, &t->input, 0, &exchanged, &error));
    oj_geos_pairs_set_input(plain, &t->input);
    oj_geos_pairs_set_input(prepared, &t->input);
    oj_geos_pairs_set_input(exchanged, &t->join);
    for (int64_t row = 0; row < t->input.n_features; row++)
    {
        for (int64_t feature = 0; feature < t->join.n_features; feature++)
        {
            enum oj_geos_verdict a = oj_geos_pairs_hold(plain, row, feature);
            enum oj_geos_verdict b = oj_geos_pairs_hold(prepared, row, feature);
            enum oj_geos_verdict c =
                oj_geos_pairs_hold(exchanged, feature, row);
            if (a == OJ_GEOS_CANNOT_SAY || c == OJ_GEOS_CANNOT_SAY)
            {
                n_raised++; /* its relate trips over its own rounding */
                continue;
            }
            n_same += a == b && a == c;
            n_rounded += !(a == b && a == c);
        }
    }
    oj_geos_pairs_close(plain);
    oj_geos_pairs_close(prepared);
    oj_geos_pairs_close(exchanged);
}

TEST(geos_agrees_with_itself)
{
    long n_rounds = from_environment("OJ_TEST_ROUNDS", N_ROUNDS);
    long seed = from_environment("OJ_TEST_SEED", 1);
    n_same = n_raised = n_rounded = 0;
    for (long round = 0; round < n_rounds / 3; round++)
    {
        struct random_join_trial t;
        random_state = (uint64_t)(seed * 1000003 + round) ^ 0x5555;
        make_trial(&t);
        if (!has_distance(&t.relation) && t.relation.op != OJ_OP_BBOX)
            ask_three(&t);
        free_trial(&t);
    }
    printf("%lld pairs: plain, prepared and exchanged alike; %lld are not; "
           "%lld where the plain one raised\n",
           (long long)n_same, (long long)n_rounded, (long long)n_raised);
    ck_assert_int_le(n_rounded, n_same / 1000);
}

/* --- memory --------------------------------------------------------------- */

TEST(out_of_memory)
{
    static const char *const references[] = {"geos", "spatialindex_collective"};
    LAYER squares = {0}, between_them = {0};
    struct oj_flat join, input;
    for (int i = 0; i < 12; i++)
    {
        add_square(&squares, i, 0, i + 1.5, 1);
        add_square(&between_them, 2 * i, 0.5, 2 * i + 1, 2);
    }
    join = oj_flat_buf_view(&squares);
    input = oj_flat_buf_view(&between_them);
    for (int i = 0; i < 2 * OJ_N_OPS; i++)
    {
        struct memory_join t = {
            .backend = references[i % 2],
            .join = &join,
            .input = &input,
            .relation = oj_relation_default(),
            .options = {.n_threads = 1, .quadrant_size = 8}};
        t.relation.op = (enum oj_op)(i / 2);
        t.relation.max_distance = 0.5;
        snprintf(t.relation.mask, sizeof t.relation.mask, "T********");
        try_without_memory(&t, 7);
    }
}

int main(void)
{
    tests_open("joins, random");
    return tests_run();
}
