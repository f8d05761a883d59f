/* One-to-one pairs are those of a plain greedy choice over all pairs in order,
 * or those of the best of all possible choices.
 * Kind: property, unit, memory, large. */
#include "../../../algs/pairs/values/oj_one_to_one.h"

#include "../../../flatten/base/oj_alloc.h"

#include <math.h>
#include <stdio.h>

#include "../random_numbers.h"
#include "../run_tests.h"

static struct oj_error error;

/* A pair with its sort key for the plain choice. */
struct ranked_pair
{
    double similarity, measure;
    int64_t row, place, join;
};

/* random pairs, as the answers of a join */
struct trial
{
    int64_t n_rows, n_join, n_pairs;
    int64_t *label; /* [n_rows] labels of rows; NULL: row numbers */
    /* [n_join] ordinals, shuffled; join_row is an index into this array */
    int64_t *ordinal;
    int64_t *first;    /* [n_rows + 1] */
    int32_t *join_row; /* [n_pairs] */
    double *measure;
    double *similarity; /* [n_pairs] */
    int is_ranked;      /* 1: ranked by similarity first */
    enum oj_one_to_one_rule rule;
    int64_t *truth; /* [n_rows] expected ordinal; -1: none */
    double *truth_measure;
    int64_t n_truth;
};

static void must(oj_status status)
{
    ck_assert_msg(status == OJ_OK, "%s", error.message);
}

static void *allocate(int64_t n, size_t size)
{
    void *array = calloc((size_t)n + 1, size);
    ck_assert_ptr_nonnull(array);
    return array;
}

static int compare_plain(const void *left, const void *right)
{
    const struct ranked_pair *a = left, *b = right;
    double da = isnan(a->measure) ? 0 : a->measure;
    double db = isnan(b->measure) ? 0 : b->measure;
    if (a->similarity != b->similarity)
        return a->similarity > b->similarity ? -1 : 1;
    if (da != db)
        return da < db ? -1 : 1;
    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    return a->place < b->place ? -1 : 1;
}

/* Chooses from all pairs in order. A pair is chosen if both its features are
 * still free.
 */
static void choose_plainly(struct trial *t)
{
    struct ranked_pair *pair = allocate(t->n_pairs, sizeof *pair);
    char *is_taken = allocate(t->n_join, 1);
    int64_t n = 0;
    for (int64_t row = 0; row < t->n_rows; row++)
    {
        t->truth[row] = -1;
        for (int64_t p = t->first[row]; p < t->first[row + 1]; p++)
            pair[n++] = (struct ranked_pair){
                t->is_ranked ? t->similarity[p] : 0, t->measure[p], row, p,
                t->ordinal[t->join_row[p]]};
    }
    qsort(pair, (size_t)n, sizeof *pair, compare_plain);
    for (int64_t i = 0; i < n; i++)
    {
        if (t->truth[pair[i].row] >= 0 || is_taken[pair[i].join])
            continue;
        is_taken[pair[i].join] = 1;
        t->truth[pair[i].row] = pair[i].join;
        t->truth_measure[pair[i].row] = pair[i].measure;
        t->n_truth++;
    }
    free(is_taken);
    free(pair);
}

/* ---- all choices ----------------------------------------------------------
 */

/* Exhaustive search over all choices, for at most MOST_TRIED rows. Each row
 * tries its pairs in order, then goes without. So the first of equally good
 * choices is found first. */
enum
{
    MOST_TRIED = 8
};

struct all_choices
{
    const struct trial *t;
    struct ranked_pair pair[MOST_TRIED][64]; /* pairs of each row, in order */
    int n_of_row[MOST_TRIED];
    char is_taken[64];
    /* index of the chosen pair, or -1 */
    int64_t now[MOST_TRIED], best[MOST_TRIED];
    /* sums are exact: values have few digits */
    double n_now, similarity_now, measure_now;
    double n_best, similarity_best, measure_best;
};

static int is_choice_better(const struct all_choices *all)
{
    if (all->n_now != all->n_best)
        return all->n_now > all->n_best;
    if (all->similarity_now != all->similarity_best)
        return all->similarity_now > all->similarity_best;
    return all->measure_now < all->measure_best;
}

static void try_pairs_of_row(struct all_choices *all, int row)
{
    if (row == all->t->n_rows)
    {
        if (!is_choice_better(all))
            return;
        memcpy(all->best, all->now, sizeof all->best);
        all->n_best = all->n_now;
        all->similarity_best = all->similarity_now;
        all->measure_best = all->measure_now;
        return;
    }
    for (int i = 0; i < all->n_of_row[row]; i++)
    {
        const struct ranked_pair *pair = &all->pair[row][i];
        const double measure = isnan(pair->measure) ? 0.0 : pair->measure;
        if (all->is_taken[pair->join])
            continue;
        all->is_taken[pair->join] = 1;
        all->now[row] = i;
        all->n_now++;
        all->similarity_now += pair->similarity;
        all->measure_now += measure;
        try_pairs_of_row(all, row + 1);
        all->n_now--;
        all->similarity_now -= pair->similarity;
        all->measure_now -= measure;
        all->is_taken[pair->join] = 0;
    }
    all->now[row] = -1;
    try_pairs_of_row(all, row + 1);
}

/* Replaces the expected pairs by the best of all choices. */
static void choose_best_of_all(struct trial *t)
{
    struct all_choices all = {.t = t, .n_best = -1.0};
    ck_assert_int_le(t->n_rows, MOST_TRIED);
    for (int row = 0; row < t->n_rows; row++)
    {
        for (int64_t p = t->first[row]; p < t->first[row + 1]; p++)
            all.pair[row][all.n_of_row[row]++] = (struct ranked_pair){
                t->is_ranked ? t->similarity[p] : 0, t->measure[p], row, p,
                t->ordinal[t->join_row[p]]};
        qsort(all.pair[row], (size_t)all.n_of_row[row], sizeof **all.pair,
              compare_plain);
    }
    try_pairs_of_row(&all, 0);
    t->n_truth = 0;
    for (int row = 0; row < t->n_rows; row++)
    {
        const struct ranked_pair *pair =
            all.best[row] >= 0 ? &all.pair[row][all.best[row]] : NULL;
        t->truth[row] = pair != NULL ? pair->join : -1;
        t->truth_measure[row] = pair != NULL ? pair->measure : 0.0;
        t->n_truth += pair != NULL;
    }
}

/* Makes random pairs with n_measures different measures. These are few, so that
 * many are equal. With n_measures 0 the join has no measure. */
static void make_trial(struct trial *t, int n_rows, int n_join, int most_pairs,
                       int n_measures)
{
    const struct trial empty = {0};
    *t = empty;
    t->rule = OJ_ONE_TO_ONE_GREEDY;
    t->n_rows = n_rows;
    t->n_join = n_join;
    t->first = allocate(n_rows + 1, sizeof *t->first);
    t->ordinal = allocate(n_join, sizeof *t->ordinal);
    t->join_row = allocate((int64_t)n_rows * most_pairs, sizeof *t->join_row);
    t->measure = allocate((int64_t)n_rows * most_pairs, sizeof *t->measure);
    t->similarity =
        allocate((int64_t)n_rows * most_pairs, sizeof *t->similarity);
    t->is_ranked = one_in(2);
    t->truth = allocate(n_rows, sizeof *t->truth);
    t->truth_measure = allocate(n_rows, sizeof *t->truth_measure);
    for (int i = 0; i < n_join; i++)
    {
        int j = pick(i + 1);
        t->ordinal[i] = t->ordinal[j];
        t->ordinal[j] = i;
    }
    for (int row = 0; row < n_rows; row++)
    {
        int n = n_join == 0 ? 0 : pick(most_pairs + 1), step = 1 + pick(3);
        int from = n_join == 0 ? 0 : pick(n_join);
        for (int i = 0; i < n && i * step < n_join; i++)
        {
            double measure = n_measures == 0 ? (double)NAN : pick(n_measures);
            t->join_row[t->n_pairs] = (from + i * step) % n_join;
            t->similarity[t->n_pairs] = pick(4) / 4.0;
            t->measure[t->n_pairs++] = measure;
        }
        t->first[row + 1] = t->n_pairs;
    }
    choose_plainly(t);
}

static void free_trial(struct trial *t)
{
    free(t->label);
    free(t->ordinal);
    free(t->first);
    free(t->join_row);
    free(t->measure);
    free(t->similarity);
    free(t->truth);
    free(t->truth_measure);
}

/* Adds all pairs as answers of at most most_rows rows, in one-to-one form where
 * possible. Returns a status. */
static oj_status add_all(const struct trial *t, int most_rows,
                         struct oj_one_to_one *choice)
{
    MATCHES m = {0};
    double *similarity = allocate(t->n_pairs + t->n_rows, sizeof *similarity);
    oj_status status = OJ_OK;
    int64_t end;
    for (int64_t row = 0; row < t->n_rows && status == OJ_OK; row = end)
    {
        int64_t first = t->first[row], is_single = 1;
        end = row + 1 + pick(most_rows);
        if (end > t->n_rows)
            end = t->n_rows;
        for (int64_t i = row; i < end; i++)
            is_single &= t->first[i + 1] - t->first[i] <= 1;
        status = oj_matches_reserve(
            &m, end - row, is_single ? end - row : t->first[end] - first,
            !is_single, &error);
        if (status != OJ_OK)
            break;
        for (int64_t i = row; i <= end && !is_single; i++)
            m.offset[i - row] = t->first[i] - first;
        for (int64_t i = row; i < end; i++)
        {
            if (is_single)
                m.join_row[i - row] = -1;
            for (int64_t p = t->first[i]; p < t->first[i + 1]; p++)
            {
                int64_t to = is_single ? i - row : p - first;
                m.join_row[to] = t->join_row[p];
                m.measure[to] = t->measure[p];
                similarity[to] = t->similarity[p];
            }
        }
        const struct oj_pair_ranks ranks = {
            .similarity = t->is_ranked ? similarity : NULL};
        status = oj_one_to_one_add_matches(
            choice, &m, &ranks, t->ordinal,
            t->label == NULL ? NULL : t->label + row, &error);
    }
    free(similarity);
    return status != OJ_OK ? status
                           : oj_one_to_one_choose_pairs(choice, NULL, &error);
}

static void compare_with_truth(const struct trial *t,
                               const struct oj_one_to_one *choice)
{
    const struct oj_one_pair *pair;
    int64_t n, hint = 0, other = 0;
    pair = oj_one_to_one_pairs(choice, &n);
    ck_assert_int_eq(n, t->n_truth);
    for (int64_t i = 1; i < n; i++)
        ck_assert_int_lt(pair[i - 1].label, pair[i].label);
    for (int64_t row = 0; row < t->n_rows; row++)
    {
        int64_t label = t->label == NULL ? row : t->label[row];
        const struct oj_one_pair *of_row =
            oj_one_to_one_find_pair(choice, label, &hint);
        if (one_in(50))
            /* the expected position is only a hint, so any number is allowed */
            other = pick((int)t->n_rows);
        ck_assert_ptr_eq(oj_one_to_one_find_pair(choice, label, &other),
                         of_row);
        if (t->truth[row] < 0)
        {
            ck_assert_ptr_null(of_row);
            continue;
        }
        ck_assert_ptr_nonnull(of_row);
        ck_assert_int_eq(of_row->join, t->truth[row]);
        ck_assert(of_row->measure == t->truth_measure[row] ||
                  (isnan(of_row->measure) && isnan(t->truth_measure[row])));
    }
}

static void try_choice(const struct trial *t, int most_rows, int64_t most_held)
{
    struct oj_one_to_one *choice = NULL;
    must(oj_one_to_one_open(t->n_join, t->rule, most_held, NULL, &choice,
                            &error));
    must(add_all(t, most_rows, choice));
    compare_with_truth(t, choice);
    oj_one_to_one_close(choice);
}

/* Replaces the expected pairs by those of our best choice, with all rows in one
 * answer and all lists in memory. */
static void choose_again_by_best(struct trial *t)
{
    struct oj_one_to_one *choice = NULL;
    const struct oj_one_pair *pair;
    int64_t n, hint = 0;
    t->rule = OJ_ONE_TO_ONE_BEST;
    must(oj_one_to_one_open(t->n_join, t->rule, INT64_MAX, NULL, &choice,
                            &error));
    must(add_all(t, (int)t->n_rows, choice));
    pair = oj_one_to_one_pairs(choice, &n);
    ck_assert_ptr_nonnull(pair);
    /* at least as many pairs as the greedy choice has */
    ck_assert_int_ge(n, t->n_truth);
    t->n_truth = n;
    for (int64_t row = 0; row < t->n_rows; row++)
    {
        pair = oj_one_to_one_find_pair(
            choice, t->label == NULL ? row : t->label[row], &hint);
        t->truth[row] = pair != NULL ? pair->join : -1;
        t->truth_measure[row] = pair != NULL ? pair->measure : 0.0;
    }
    oj_one_to_one_close(choice);
}

/* Labels rows by FIDs, which are ascending or shuffled. */
static void label_rows(struct trial *t, int is_shuffled)
{
    t->label = allocate(t->n_rows, sizeof *t->label);
    for (int64_t i = 0; i < t->n_rows; i++)
    {
        int64_t j = is_shuffled ? pick((int)i + 1) : i;
        t->label[i] = t->label[j];
        t->label[j] = INT64_MIN / 2 + 3 * i;
    }
}

TEST_LOOP(small_sides, 0, 20)
{
    for (int i = 0; i < 300; i++)
    {
        struct trial t;
        random_state = (uint64_t)(1000 * _i + i);
        make_trial(&t, pick(12), pick(9), 1 + pick(6), pick(5));
        if (one_in(2))
            label_rows(&t, one_in(2));
        try_choice(&t, 4, INT64_MAX);
        free_trial(&t);
    }
}

TEST_LOOP(best_of_all_choices, 0, 20)
{
    for (int i = 0; i < 300; i++)
    {
        struct trial t;
        random_state = (uint64_t)(1000 * _i + i);
        make_trial(&t, pick(MOST_TRIED), pick(7), 1 + pick(5), pick(5));
        t.rule = OJ_ONE_TO_ONE_BEST;
        choose_best_of_all(&t);
        if (one_in(2))
            label_rows(&t, one_in(2));
        try_choice(&t, 4, INT64_MAX);
        free_trial(&t);
    }
}

TEST_LOOP(best_in_memory_and_in_a_file, 0, 8)
{
    static const int measures[] = {0, 1, 7, 1000000};
    struct trial t;
    random_state = (uint64_t)_i;
    make_trial(&t, 2000, _i % 3 == 0 ? 300 : 2500, 4, measures[_i % 4]);
    if (_i >= 4)
        label_rows(&t, 1);
    choose_again_by_best(&t);
    try_choice(&t, 100, 0);
    try_choice(&t, 1, 100000);
    free_trial(&t);
}

/* A group with one pair too many keeps its greedy pairs. Another group gets the
 * best ones. */
TEST(large_groups_are_chosen_greedily)
{
    enum
    {
        WIDTH = 50,
        N_ROWS = (int)(OJ_ONE_TO_ONE_MOST_GROUP_PAIRS / WIDTH)
    };
    struct trial t;
    struct oj_one_to_one *choice = NULL;
    const struct oj_one_pair *pair;
    int64_t n, n_groups, n_pairs;
    random_state = 1;
    make_trial(&t, N_ROWS + 2, N_ROWS + WIDTH + 2, WIDTH, 1);
    t.rule = OJ_ONE_TO_ONE_BEST;
    for (int i = 0; i < t.n_join; i++)
        t.ordinal[i] = i;
    for (int one_more = 0; one_more < 2; one_more++)
    {
        t.n_pairs = 0;
        for (int row = 0; row < N_ROWS; row++)
        {
            for (int j = 0; j < WIDTH + (one_more && row == 0); j++)
            {
                t.join_row[t.n_pairs] = row + j;
                t.similarity[t.n_pairs] = 0.5;
                t.measure[t.n_pairs++] = 1 + pick(1000);
            }
            t.first[row + 1] = t.n_pairs;
        }
        for (int row = N_ROWS; row < N_ROWS + 2; row++)
        {
            for (int j = 0; j < (row == N_ROWS ? 2 : 1); j++)
            {
                t.join_row[t.n_pairs] = N_ROWS + WIDTH + j;
                t.similarity[t.n_pairs] = 0.5;
                t.measure[t.n_pairs++] = row == N_ROWS ? j : 2;
            }
            t.first[row + 1] = t.n_pairs;
        }
        must(oj_one_to_one_open(t.n_join, t.rule, INT64_MAX, NULL, &choice,
                                &error));
        must(add_all(&t, 1000, choice));
        oj_one_to_one_large_groups(choice, &n_groups, &n_pairs);
        ck_assert_int_eq(n_groups, one_more);
        ck_assert_int_eq(n_pairs, one_more ? N_ROWS * WIDTH + 1 : 0);
        pair = oj_one_to_one_pairs(choice, &n);
        ck_assert_int_eq(pair[n - 2].join, N_ROWS + WIDTH + 1);
        ck_assert_int_eq(pair[n - 1].join, N_ROWS + WIDTH);
        if (one_more)
        {
            t.n_truth = 0;
            t.is_ranked = 0;
            choose_plainly(&t);
            ck_assert_int_eq(t.n_truth, n - 1);
            for (int64_t i = 0; i < n - 2; i++)
                ck_assert_int_eq(pair[i].join, t.truth[pair[i].label]);
        }
        oj_one_to_one_close(choice);
    }
    free_trial(&t);
}

TEST(cancelling_stops_the_search)
{
    struct oj_one_to_one *choice = NULL;
    const int cancel = 1;
    struct oj_matches m = {0};
    const struct oj_pair_ranks ranks = {0};
    must(oj_one_to_one_open(2, OJ_ONE_TO_ONE_BEST, INT64_MAX, NULL, &choice,
                            &error));
    must(oj_matches_reserve(&m, 1, 2, 1, &error));
    m.offset[0] = 0;
    m.offset[1] = 2;
    for (int i = 0; i < 2; i++)
    {
        m.join_row[i] = i;
        m.measure[i] = 1.0;
    }
    must(oj_one_to_one_add_matches(choice, &m, &ranks, NULL, NULL, &error));
    ck_assert_int_eq(oj_one_to_one_choose_pairs(choice, &cancel, &error),
                     OJ_ERR_CANCELLED);
    oj_one_to_one_close(choice);
    oj_matches_free(&m);
}

TEST_LOOP(lists_in_memory_and_in_a_file, 0, 12)
{
    static const int measures[] = {0, 1, 7, 1000000};
    struct trial t;
    random_state = (uint64_t)_i;
    make_trial(&t, 6000, _i % 3 == 0 ? 600 : 7000, 12, measures[_i % 4]);
    ck_assert_int_gt(t.n_truth, 500);
    if (_i >= 4)
        label_rows(&t, _i >= 8);
    try_choice(&t, 1000, INT64_MAX);
    try_choice(&t, 1000, 0);
    try_choice(&t, 1, 100000);
    free_trial(&t);
}

/* Every row has pairs with the first half of the features. Later rows are
 * nearer to them, so the first rows get none. */
TEST(long_chains)
{
    enum
    {
        N = 500
    };
    struct trial t;
    random_state = 1;
    make_trial(&t, N, N, N, 1);
    t.n_pairs = 0;
    for (int row = 0; row < N; row++)
    {
        for (int j = 0; j < N / 2; j++)
        {
            t.join_row[t.n_pairs] = j;
            t.measure[t.n_pairs++] = N - row + (double)j / N;
        }
        t.first[row + 1] = t.n_pairs;
    }
    t.n_truth = 0;
    choose_plainly(&t);
    ck_assert_int_eq(t.n_truth, N / 2);
    try_choice(&t, 100, INT64_MAX);
    try_choice(&t, 100, 0);
    free_trial(&t);
}

TEST(repeated_labels_are_an_error)
{
    struct oj_one_to_one *choice = NULL;
    struct trial t;
    random_state = 1;
    make_trial(&t, 100, 100, 4, 10);
    t.label = allocate(t.n_rows, sizeof *t.label);
    must(
        oj_one_to_one_open(t.n_join, t.rule, INT64_MAX, NULL, &choice, &error));
    ck_assert_int_eq(add_all(&t, 10, choice), OJ_ERR_DATA);
    oj_one_to_one_close(choice);
    free_trial(&t);
}

TEST_LOOP(without_memory, 0, 4)
{
    oj_status status = OJ_ERR_NOMEM;
    struct trial t;
    int n_failed = 0;
    make_trial(&t, 300, 200, 12, 50);
    if (_i >= 2)
        choose_again_by_best(&t);
    for (int n = 1; status != OJ_OK; n++)
    {
        struct oj_one_to_one *choice = NULL;
        random_state = 5;
        oj_alloc_fail_at(n);
        status =
            oj_one_to_one_open(t.n_join, t.rule, _i % 2 == 0 ? INT64_MAX : 0,
                               NULL, &choice, &error);
        if (status == OJ_OK)
            status = add_all(&t, 30, choice);
        oj_alloc_fail_at(0);
        n_failed += status != OJ_OK;
        ck_assert(status == OJ_OK || status == OJ_ERR_NOMEM);
        if (status == OJ_OK)
            compare_with_truth(&t, choice);
        oj_one_to_one_close(choice);
    }
    ck_assert_int_gt(n_failed, 10);
    free_trial(&t);
}

int main(void)
{
    tests_open("one_to_one");
    return tests_run();
}
