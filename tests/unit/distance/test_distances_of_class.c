/* Joins by distance with -on. Where all classes are small, the features of a
 * class are measured one by one; otherwise an index is searched. Both ways give
 * equal answers, to the last bit, and the engine chooses the right one.
 * Kind: property, degenerate, memory.  OGRJOIN_TEST_LONG=1 runs fifty times as
 * long; OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../references.h"

#include "../join_trial.h"
#include "../run_tests.h"

#include "../../../algs/pairs/selection/oj_class_features.h"

#define BY_CLASS "distances to the features of a class"

/* Class numbers times this factor are too sparse to be positions in an
 * array. */
#define SPARSE 10000019

static int64_t n_by_class, n_pairs;

/* Sets random classes of n rows. Some rows have none. */
static void set_classes(int32_t *column, int64_t n, int n_classes)
{
    for (int64_t i = 0; i < n; i++)
        column[i] = one_in(10) ? -1 : pick(n_classes);
}

/* Sets classes of join features. At most OJ_FEW_OF_CLASS features have equal
 * classes. */
static void set_small_classes(int32_t *column, int64_t n, int n_classes)
{
    int count[2000] = {0};
    ck_assert_int_le(n_classes, 2000);
    set_classes(column, n, n_classes);
    for (int64_t i = 0; i < n; i++)
    {
        if (column[i] >= 0 && ++count[column[i]] > OJ_FEW_OF_CLASS)
            column[i] = -1;
    }
}

static void pick_distance_relation(struct oj_relation *r, const struct scene *s)
{
    r->op = one_in(3) ? OJ_OP_DWITHIN : OJ_OP_NEAREST;
    r->max_distance = s->scale * pick(s->extent + 1);
    r->distance_to = one_in(4) ? OJ_TO_BOUNDARY : OJ_TO_INTERIOR;
    r->min_distance = one_in(4) ? s->scale * pick(3) : 0.0;
    if (r->op == OJ_OP_DWITHIN)
        return;
    r->k = one_in(2) ? 1 : 1 + pick(5);
    r->ties = one_in(3) ? OJ_TIES_ALL : OJ_TIES_FIRST;
    if (one_in(2))
        r->max_distance = INFINITY;
}

static void ask(const struct join_trial *t, char how[64],
                struct oj_matches *out)
{
    const struct oj_options options = {.n_threads = 1 + pick(3)};
    must(trial_open_and_join(t, "cpu", &options, how, out));
}

static void spread_column(int32_t *column, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        column[i] = column[i] < 0 ? -1 : (column[i] + 1) * SPARSE;
}

/* Gives the classes of both sides sparse numbers. */
static void spread_classes(struct join_trial *t)
{
    spread_column(t->columns.on_class[0], t->join.n_features);
    spread_column(t->columns.on_class[1], t->input.n_features);
}

/* Compares both ways for one join. With must_be_by_class, the engine must be
 * able to measure the features of a class one by one. */
static void check_both_ways(struct join_trial *t, int must_be_by_class)
{
    MATCHES by_class = {0}, by_index = {0};
    char how[64], other[64];
    ask(t, how, &by_class);
    expect(!must_be_by_class || strcmp(how, BY_CLASS) == 0, "seed %llu: %s",
           (unsigned long long)seed, how);
    spread_classes(t);
    ask(t, other, &by_index);
    ck_assert_str_ne(other, BY_CLASS);
    same_matches(how, &by_class, &by_index);
    n_by_class += strcmp(how, BY_CLASS) == 0;
    n_pairs += by_class.n_pairs;
}

static int32_t *new_column(int64_t n)
{
    int32_t *column = oj_malloc(n + 1, sizeof *column);
    ck_assert_ptr_nonnull(column);
    return column;
}

/* Makes a trial whose join side has up to 19 small classes. kinds: the kinds of
 * features of the join side. The input has points if of_points is 1, otherwise
 * features of any kinds. */
static void make_small_classes(struct join_trial *t, unsigned kinds,
                               int of_points)
{
    int n_classes = 1 + pick(19);
    struct scene scene =
        trial_make(t, 1 + pick(60), kinds, one_in(6), 1 + pick(60));
    if (!of_points)
    {
        oj_flat_buf_clear(&t->input_buf);
        add_join_features(&t->input_buf, &scene, 1 + pick(30), 7, 0);
        t->input = oj_flat_buf_view(&t->input_buf);
    }
    pick_distance_relation(&t->relation, &scene);
    pick_columns(&t->columns, &t->join, &t->input, &t->relation, scene.scale,
                 6);
    oj_free(t->columns.on_class[0]);
    oj_free(t->columns.on_class[1]);
    t->join.on_class = t->columns.on_class[0] = new_column(t->join.n_features);
    t->input.on_class = t->columns.on_class[1] =
        new_column(t->input.n_features);
    set_small_classes(t->columns.on_class[0], t->join.n_features, n_classes);
    set_classes(t->columns.on_class[1], t->input.n_features, n_classes + 1);
}

TEST(both_ways_give_equal_answers)
{
    n_by_class = n_pairs = 0;
    EACH_ROUND(300)
    {
        struct join_trial t;
        unsigned kinds = one_in(3) ? OJ_PART_POINT : 1u + (unsigned)pick(7);
        int of_points = pick(2);
        make_small_classes(&t, kinds, of_points);
        check_both_ways(&t, oj_flat_is_points(&t.join) ||
                                t.input.part_kinds > OJ_PART_POINT);
        trial_free(&t);
    }
    printf("%lld joins by class, %lld pairs\n", (long long)n_by_class,
           (long long)n_pairs);
    ck_assert_int_gt(2 * n_by_class, rounds(300));
    ck_assert_int_gt(n_pairs, rounds(300));
}

/* Classes as large, at most and on average, as those whose features are
 * measured one by one, and larger classes. */
TEST(large_classes_need_an_index)
{
    struct join_trial t;
    MATCHES matches = {0};
    char how[64];
    memset(&t, 0, sizeof t);
    t.relation = oj_relation_default();
    t.relation.max_distance = INFINITY;
    for (int i = 0; i < 1000; i++)
    {
        add_point(&t.join_buf, i % 37, i % 11);
        add_point(&t.input_buf, i % 5, i % 7);
    }
    trial_view(&t);
    t.join.on_class = t.columns.on_class[0] = new_column(1000);
    t.input.on_class = t.columns.on_class[1] = new_column(1000);
    for (int i = 0; i < 1000; i++)
        t.columns.on_class[0][i] = t.columns.on_class[1][i] = i / 4;
    for (int i = 0; i < OJ_MOST_OF_CLASS; i++)
        t.columns.on_class[0][i] = 0;
    ask(&t, how, &matches);
    ck_assert_str_eq(how, BY_CLASS);
    ck_assert_int_eq(matches.n_pairs, 1000 - OJ_MOST_OF_CLASS + 4);
    t.columns.on_class[0][OJ_MOST_OF_CLASS] = 0; /* one too many */
    ask(&t, how, &matches);
    ck_assert_str_ne(how, BY_CLASS);
    ck_assert_int_eq(matches.n_pairs, 1000 - OJ_MOST_OF_CLASS + 4);
    for (int i = 0; i < 1000; i++) /* too many on average */
        t.columns.on_class[0][i] = i / (OJ_FEW_OF_CLASS + 1);
    ask(&t, how, &matches);
    ck_assert_str_ne(how, BY_CLASS);
    trial_free(&t);
}

TEST(degenerate_classes)
{
    static int32_t none[3] = {-1, -1, -1}, highest[3] = {INT32_MAX, 0, 1};
    struct oj_flat flat = {.n_features = 3};
    int are_small = 1;
    must(oj_class_features_are_small(&flat, &are_small, &error));
    ck_assert_int_eq(are_small, 0); /* no classes */
    flat.on_class = none;
    must(oj_class_features_are_small(&flat, &are_small, &error));
    ck_assert_int_eq(are_small, 1);
    flat.on_class = highest;
    must(oj_class_features_are_small(&flat, &are_small, &error));
    ck_assert_int_eq(are_small, 0);
    flat.n_features = 0;
    must(oj_class_features_are_small(&flat, &are_small, &error));
    ck_assert_int_eq(are_small, 1);
}

TEST(memory_each_allocation_fails)
{
    struct join_trial t;
    MATCHES matches = {0};
    char how[64];
    random_state = 5;
    make_small_classes(&t, OJ_PART_POINT, 1);
    ask(&t, how, &matches);
    ck_assert_str_eq(how, BY_CLASS);
    ck_assert_int_gt(trial_fail_each_allocation(&t), 10);
    trial_free(&t);
}

int main(void)
{
    tests_open("distances of classes");
    return tests_run();
}
