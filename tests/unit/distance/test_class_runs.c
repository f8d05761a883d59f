/* Joins by distance with -on and -exclude, in the plane, on the sphere, on an
 * ellipsoid, and by shape. Classes are rare, of middle size, large, or without
 * features. Answers equal those of joins with conditions on vectors and spans
 * instead of the classes, to the last bit, and those of the reference. A row
 * does not visit the features that cannot be its pairs.
 * Kind: property, degenerate, memory. OGRJOIN_TEST_LONG=1 runs fifty times as
 * long; OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../run_tests.h"
#include "../sphere/random_sphere.h"

#include "../join_trial.h"

#include "../../../algs/foundations/base/oj_geodesic.h"

enum
{
    PLANE,
    SPHERE,
    ELLIPSOID,
    SHAPES,
    N_WAYS
};

/* Class numbers times this factor are too sparse to be positions in an
 * array. */
#define SPARSE 10000019

static int64_t n_pairs, n_of_references;

static int cannot_run(int way)
{
    return way == ELLIPSOID && !oj_geodesic_is_available();
}

/* --- a trial -------------------------------------------------------------- */

/* Returns a random class: 0 for half of the features, 1 to 3 for many, and one
 * of 40 others or none for a few. */
static int32_t pick_class(void)
{
    if (pick(2))
        return 0;
    if (pick(3))
        return 1 + pick(3);
    return one_in(4) ? -1 : 4 + pick(40);
}

static int32_t *pick_classes(int64_t n, int32_t by)
{
    int32_t *column = oj_malloc(n + 1, sizeof *column);
    ck_assert_ptr_nonnull(column);
    for (int64_t i = 0; i < n; i++)
    {
        int32_t of = pick_class();
        column[i] = of < 0 ? -1 : of * by;
    }
    return column;
}

static void set_on_classes(struct join_trial *t)
{
    int32_t by = pick(2) ? 1 : SPARSE;
    oj_free(t->columns.on_class[0]);
    oj_free(t->columns.on_class[1]);
    t->join.on_class = t->columns.on_class[0] =
        pick_classes(t->join.n_features, by);
    t->input.on_class = t->columns.on_class[1] =
        pick_classes(t->input.n_features, by);
}

static void set_exclude_classes(struct join_trial *t)
{
    oj_free(t->columns.exclude_class[0]);
    oj_free(t->columns.exclude_class[1]);
    t->join.exclude_class = t->columns.exclude_class[0] =
        pick_classes(t->join.n_features, 1);
    t->input.exclude_class = t->columns.exclude_class[1] =
        pick_classes(t->input.n_features, 1);
}

static double *numbers_of_classes(const int32_t *on_class, int64_t n)
{
    double *number = oj_malloc(n + 1, sizeof *number);
    ck_assert_ptr_nonnull(number);
    for (int64_t i = 0; i < n; i++)
        number[i] = on_class[i] >= 0 ? on_class[i] : (double)NAN;
    return number;
}

/* Replaces the classes of -on by vectors of one dimension that must be equal.
 * The order of entries in the index does not depend on vectors. */
static void compare_on_classes_as_vectors(struct join_trial *t)
{
    struct oj_flat *side[2] = {&t->join, &t->input};
    if (t->join.on_class == NULL)
        return;
    t->relation.vector = (struct oj_vector_condition){
        .is_asked = 1, .norm = OJ_NORM_L1, .max_difference = 0.0};
    for (int i = 0; i < 2; i++)
    {
        t->columns.vector[i] =
            numbers_of_classes(side[i]->on_class, side[i]->n_features);
        side[i]->vectors = (struct oj_vectors){1, t->columns.vector[i]};
        side[i]->on_class = NULL;
    }
}

/* Replaces the classes of -exclude by instants that must differ. */
static void compare_exclude_classes_as_spans(struct join_trial *t)
{
    struct oj_flat *side[2] = {&t->join, &t->input};
    if (t->join.exclude_class == NULL)
        return;
    t->relation.n_spans = 1;
    t->relation.spans[0].relations = 1u << OJ_SPAN_BEFORE | 1u << OJ_SPAN_AFTER;
    for (int i = 0; i < 2; i++)
    {
        const int32_t *of = side[i]->exclude_class;
        int64_t n = side[i]->n_features;
        int64_t *at = oj_malloc(n + 1, sizeof *at);
        ck_assert_ptr_nonnull(at);
        for (int64_t f = 0; f < n; f++) /* no class differs from all others */
            at[f] = of[f] >= 0 ? of[f] : -1 - i;
        t->columns.from[i][0] = at;
        side[i]->spans[0] = (struct oj_spans){at, at};
        side[i]->n_spans = 1;
        side[i]->exclude_class = NULL;
    }
}

static void pick_relation_on(int way, const struct region *region,
                             struct oj_relation *r)
{
    double unit_m = way == PLANE ? 1.0 : 111e3;
    double width = fmin(region->reach, 100.0) * unit_m;
    *r = oj_relation_default();
    r->metric = way == SPHERE      ? OJ_METRIC_SPHERE
                : way == ELLIPSOID ? OJ_METRIC_ELLIPSOID
                                   : OJ_METRIC_PLANAR;
    r->ellipsoid = (struct oj_ellipsoid){6378137.0, 1 / 298.257223563};
    if (way == SHAPES)
    {
        r->distance = pick(2) ? OJ_DISTANCE_HAUSDORFF : OJ_DISTANCE_FRECHET;
        width /= unit_m;
    }
    r->op = one_in(3) ? OJ_OP_DWITHIN : OJ_OP_NEAREST;
    r->max_distance = width * unit();
    if (way != SHAPES)
        r->min_distance = one_in(3) ? r->max_distance * unit() / 3 : 0.0;
    if (r->op == OJ_OP_DWITHIN)
        return;
    r->k = one_in(4) ? 1000 : 1 + pick(5);
    r->ties = one_in(3) ? OJ_TIES_ALL : OJ_TIES_FIRST;
    if (one_in(2))
        r->max_distance = INFINITY;
}

/* Adds features, some of them twice, so that classes share places. */
static void add_some_twice(struct oj_flat_buf *buf, const struct region *region,
                           int n, unsigned kinds)
{
    uint64_t state = random_state;
    add_features(buf, region, n, kinds, 1);
    if (pick(2))
        return;
    random_state = state;
    add_features(buf, region, n, kinds, 1);
}

static void make_trial(struct join_trial *t, int way)
{
    struct region region = pick_region();
    unsigned input_kinds = way == PLANE && pick(2) ? 7 : OJ_PART_POINT;
    unsigned join_kinds = one_in(3) ? 7 : OJ_PART_POINT;
    memset(t, 0, sizeof *t);
    if (way == SHAPES)
        input_kinds = join_kinds = OJ_PART_LINE;
    if (way == ELLIPSOID && pick(2))
    {
        input_kinds = join_kinds;
        join_kinds = OJ_PART_POINT;
    }
    add_some_twice(&t->join_buf, &region, 1 + pick(one_in(3) ? 300 : 80),
                   join_kinds);
    add_some_twice(&t->input_buf, &region, 1 + pick(60), input_kinds);
    trial_view(t);
    t->join.fid = t->fid = pick_fids(t->join.n_features);
    pick_relation_on(way, &region, &t->relation);
    pick_columns(&t->columns, &t->join, &t->input, &t->relation,
                 region.reach * 20e3, 4);
    if (t->join.max_distance != NULL || t->input.max_distance != NULL)
        t->relation.max_distance = INFINITY; /* as the command sets it */
    if (pick(2))
        set_exclude_classes(t);
    if (t->join.exclude_class == NULL || pick(2))
        set_on_classes(t);
}

/* --- tests ---------------------------------------------------------------- */

/* On an ellipsoid, compares the answers for points with the reference, which
 * measures equally. */
static void compare_with_reference(const struct join_trial *t,
                                   const struct oj_matches *ours)
{
    MATCHES truth = {0};
    if (t->relation.metric != OJ_METRIC_ELLIPSOID ||
        t->join.part_kinds != OJ_PART_POINT ||
        t->input.part_kinds != OJ_PART_POINT)
        return;
    trial_answer(t, "ellipsoid", 1, &truth);
    same_matches("reference", ours, &truth);
    n_of_references++;
}

TEST_LOOP(classes_equal_a_filter, 0, N_WAYS)
{
    if (cannot_run(_i))
        return;
    n_pairs = n_of_references = 0;
    EACH_ROUND(200)
    {
        struct join_trial t;
        MATCHES by_class = {0}, by_filter = {0};
        make_trial(&t, _i);
        trial_answer(&t, "cpu", 1 + pick(3), &by_class);
        compare_with_reference(&t, &by_class);
        compare_on_classes_as_vectors(&t);
        compare_exclude_classes_as_spans(&t);
        trial_answer(&t, "cpu", 1 + pick(3), &by_filter);
        same_matches("filter", &by_class, &by_filter);
        n_pairs += by_class.n_pairs;
        trial_free(&t);
    }
    printf("way %d: %lld pairs, %lld joins equal the reference\n", _i,
           (long long)n_pairs, (long long)n_of_references);
    ck_assert_int_gt(n_pairs, rounds(200));
    ck_assert_int_gt(n_of_references, _i == ELLIPSOID ? rounds(200) / 10 : -1);
}

/* Makes 3000 features, three of them of a rare class. The features are lines if
 * way is SHAPES, otherwise points. by_exclude 0: all rows are in this class.
 * by_exclude 1: all rows are in the class of the other features, which they
 * exclude. */
static void make_rare_class(struct join_trial *t, int way, int by_exclude)
{
    const struct region region = {10, 50, 3};
    memset(t, 0, sizeof *t);
    for (int i = 0; i < 3000; i++)
    {
        double x = 10 + 3 * unit(), y = 50 + unit();
        begin(&t->join_buf);
        add_part(&t->join_buf, way == SHAPES ? OJ_PART_LINE : OJ_PART_POINT);
        add_ring(&t->join_buf, way == SHAPES ? 2 : 1,
                 (const double[]){x, y, x + 0.01, y});
        end(&t->join_buf);
    }
    trial_view(t);
    t->input = t->join;
    pick_relation_on(way, &region, &t->relation);
    t->relation.op = OJ_OP_NEAREST;
    t->relation.max_distance = INFINITY;
    t->relation.min_distance = way == SHAPES ? 0.0 : 1e-9;
    if (by_exclude)
        set_exclude_classes(t);
    else
        set_on_classes(t);
    for (int i = 0; i < 3000; i++)
    {
        int is_rare = i % 1000 == 7;
        if (by_exclude)
        {
            t->columns.exclude_class[0][i] = !is_rare;
            t->columns.exclude_class[1][i] = 1;
            continue;
        }
        t->columns.on_class[0][i] = is_rare ? 5 : i % 4;
        t->columns.on_class[1][i] = 5;
    }
}

TEST_LOOP(a_row_visits_few_features, 0, N_WAYS)
{
    const struct oj_options options = {.n_threads = 2};
    static const int64_t k[] = {1, 3, 4, 5000};
    if (cannot_run(_i))
        return;
    for (int i = 0; i < 8; i++)
    {
        struct join_trial t;
        MATCHES m = {0};
        struct oj_join *join;
        int64_t n;
        make_rare_class(&t, _i, i / 4);
        t.relation.k = k[i % 4];
        t.relation.ties = OJ_TIES_FIRST;
        join = trial_open(&t, "cpu", &options);
        must(oj_join_batch(join, &t.input, &m, &error));
        n = oj_join_stats(join)->n_candidates;
        oj_join_close(join);
        /* each row may be measured four times with the three features of its
         * class, not with all 3000 */
        expect(n <= 3000 * 3 * 4, "k %d: %lld candidates", (int)t.relation.k,
               (long long)n);
        /* if there is a minimum distance, a feature is too near to itself */
        ck_assert_int_ge(m.n_pairs, 3000 * (i % 4 == 0 ? 1 : 3) - 3);
        trial_free(&t);
    }
}

TEST_LOOP(memory_each_allocation_fails, 0, N_WAYS)
{
    struct join_trial t;
    if (cannot_run(_i))
        return;
    random_state = 11;
    make_trial(&t, _i);
    ck_assert_int_gt(trial_fail_each_allocation(&t), 10);
    trial_free(&t);
}

int main(void)
{
    tests_open("runs of classes");
    return tests_run();
}
