/* Events equal those of a plain sequential program over the pairs. Their state
 * survives a file: written and read, it is unchanged.
 * Kind: property, unit, memory. */
#include "../../../algs/pairs/events/oj_event_state.h"

#include "../../../flatten/base/oj_alloc.h"

#include <math.h>
#include <stdio.h>

#include "../random_numbers.h"
#include "../run_tests.h"

static struct oj_error error;

enum
{
    N_FEATURES = 30,
    N_KEYS = 25,
    MOST_ROWS = 200,
    MOST_PAIRS = 8,
    MOST_EVENTS = MOST_ROWS * (N_FEATURES + MOST_PAIRS)
};

static void must(oj_status status)
{
    ck_assert_msg(status == OJ_OK, "%s", error.message);
}

/* Reports of a batch with their pairs. text[i] is the name of key i. */
struct event_trial
{
    struct oj_event_rules rules;
    int32_t tie_rank[N_FEATURES], by_rank[N_FEATURES];
    int64_t fid[N_FEATURES];
    struct oj_matches pairs;
    int32_t key[MOST_ROWS];
    int64_t integer[MOST_ROWS], offset[MOST_ROWS + 1];
    char bytes[MOST_ROWS * 16];
    uint8_t is_null[MOST_ROWS];
    double x[MOST_ROWS], y[MOST_ROWS];

    /* state of the plain program: the features of each key */
    uint8_t has[N_KEYS][N_FEATURES];
    int64_t n_events;
    int64_t row[MOST_EVENTS];
    int32_t feature[MOST_EVENTS];
    uint8_t kind[MOST_EVENTS];
};

static void shuffle_ranks(struct event_trial *t)
{
    for (int i = 0; i < N_FEATURES; i++)
        t->by_rank[i] = i;
    for (int i = N_FEATURES - 1; i > 0; i--)
    {
        const int j = pick(i + 1);
        const int32_t kept = t->by_rank[i];
        t->by_rank[i] = t->by_rank[j];
        t->by_rank[j] = kept;
    }
    for (int i = 0; i < N_FEATURES; i++)
    {
        t->tie_rank[t->by_rank[i]] = i;
        t->fid[t->by_rank[i]] = 100 + 7 * i;
    }
}

static void open_trial(struct event_trial *t, int kind)
{
    memset(t, 0, sizeof *t);
    random_state = (uint64_t)kind + 1;
    t->rules.is_nearest = kind & 1;
    t->rules.with_stays = kind >> 1 & 1;
    t->rules.has_texts = kind >> 2 & 1;
    shuffle_ranks(t);
}

static void make_pairs(struct event_trial *t, int64_t n)
{
    int64_t at = 0;
    must(oj_matches_reserve(&t->pairs, n, n * MOST_PAIRS, 1, &error));
    for (int64_t i = 0; i < n; i++)
    {
        /* One row in four has up to MOST_PAIRS features. A key stores two (FEW
         * in oj_events.c) without an array, so this needs arrays. */
        const int most = t->rules.is_nearest ? 1 : one_in(4) ? MOST_PAIRS : 2;
        int32_t rank = pick(5);
        t->pairs.offset[i] = at;
        for (int p = pick(most + 1); p > 0 && rank < N_FEATURES; p--)
        {
            t->pairs.join_row[at] = t->by_rank[rank];
            t->pairs.measure[at++] = unit();
            rank += 1 + pick(4);
        }
    }
    t->pairs.offset[n] = at;
    t->pairs.n_entries = t->pairs.n_pairs = at;
}

static void make_reports(struct event_trial *t, int64_t n)
{
    make_pairs(t, n);
    for (int64_t i = 0; i < n; i++)
    {
        t->key[i] = pick(N_KEYS);
        t->is_null[i] = (uint8_t)one_in(20);
        t->integer[i] = (int64_t)t->key[i] * INT64_C(1000000007) - 5;
        t->offset[i + 1] =
            t->offset[i] + snprintf(t->bytes + t->offset[i], 16, "key %d%s",
                                    t->key[i], t->key[i] % 2 ? " is odd" : "");
        if (t->rules.has_texts && one_in(30))
        {
            t->offset[i + 1] = t->offset[i];
            t->is_null[i] = 2; /* an empty text, which is no key either */
        }
        t->x[i] = one_in(25) ? (double)NAN : unit();
        t->y[i] = unit();
    }
}

static void put_truth(struct event_trial *t, int64_t row, int kind,
                      int32_t feature)
{
    t->row[t->n_events] = row;
    t->feature[t->n_events] = feature;
    t->kind[t->n_events++] = (uint8_t)kind;
}

/* Adds the events of one report to the expected ones, feature by feature. */
static void add_truth_of_row(struct event_trial *t, int64_t row)
{
    uint8_t *has = t->has[t->key[row]], now[N_FEATURES] = {0};
    int32_t nearest = -1, before = -1;
    for (int64_t p = t->pairs.offset[row]; p < t->pairs.offset[row + 1]; p++)
        now[nearest = t->pairs.join_row[p]] = 1;
    for (int i = 0; i < N_FEATURES; i++)
        before = has[i] ? i : before;
    if (t->rules.is_nearest && before != nearest)
        put_truth(t, row, OJ_EVENT_CHANGE, nearest);
    else if (t->rules.is_nearest && nearest >= 0 && t->rules.with_stays)
        put_truth(t, row, OJ_EVENT_STAY, nearest);
    for (int step = 0; step < 3 && !t->rules.is_nearest; step++)
    {
        for (int r = 0; r < N_FEATURES; r++)
        {
            const int32_t f = t->by_rank[r];
            if (step == 0 && has[f] && !now[f])
                put_truth(t, row, OJ_EVENT_EXIT, f);
            if (step == 1 && !has[f] && now[f])
                put_truth(t, row, OJ_EVENT_ENTER, f);
            if (step == 2 && has[f] && now[f] && t->rules.with_stays)
                put_truth(t, row, OJ_EVENT_STAY, f);
        }
    }
    memcpy(has, now, sizeof now);
}

static void make_truth(struct event_trial *t, int64_t n)
{
    t->n_events = 0;
    for (int64_t i = 0; i < n; i++)
    {
        if (!t->is_null[i] && !isnan(t->x[i]))
            add_truth_of_row(t, i);
        t->is_null[i] = t->is_null[i] == 1;
    }
}

static oj_status add_batch(struct event_trial *t, int64_t n,
                           struct oj_events *events, struct oj_event_rows *out)
{
    struct oj_event_keys keys = {0};
    struct oj_flat reports = {0};
    keys.is_null = t->is_null;
    keys.integer = t->rules.has_texts ? NULL : t->integer;
    keys.offset = t->rules.has_texts ? t->offset : NULL;
    keys.bytes = t->bytes;
    reports.n_features = n;
    reports.x = t->x;
    reports.y = t->y;
    return oj_events_add(events, &keys, &reports, &t->pairs, out, &error);
}

static void compare_events(const struct event_trial *t,
                           const struct oj_event_rows *out)
{
    int64_t at = 0;
    ck_assert_int_eq(out->rows.n_entries, t->n_events);
    for (int64_t row = 0; row < out->rows.n_rows; row++)
    {
        for (; at < out->rows.offset[row + 1]; at++)
        {
            const int is_pair =
                out->kind[at] != OJ_EVENT_EXIT && out->rows.join_row[at] >= 0;
            ck_assert_int_eq(t->row[at], row);
            ck_assert_int_eq(out->rows.join_row[at], t->feature[at]);
            ck_assert_int_eq(out->kind[at], t->kind[at]);
            ck_assert_int_eq(isnan(out->rows.measure[at]) == 0, is_pair);
        }
    }
    ck_assert_int_eq(at, t->n_events);
}

static int64_t count_inside(const struct event_trial *t)
{
    int64_t n = 0;
    for (int k = 0; k < N_KEYS; k++)
        n += memchr(t->has[k], 1, N_FEATURES) != NULL;
    return n;
}

static struct oj_flat join_of(const struct event_trial *t)
{
    static const double zeros[N_FEATURES];
    struct oj_flat join = {0};
    join.n_features = join.n_vertices = N_FEATURES;
    join.fid = t->fid;
    join.x = join.y = zeros;
    return join;
}

/* Saves the state to a file in memory, and loads it from there. */
static void save_and_load(const struct event_trial *t,
                          struct oj_events **events)
{
    const struct oj_flat join = join_of(t);
    const struct oj_event_state state = {&join, "options"};
    const struct oj_event_state_to_write written = {&state, *events};
    struct oj_events *loaded = NULL;
    char *bytes = NULL;
    size_t n = 0;
    FILE *file = open_memstream(&bytes, &n);
    ck_assert_ptr_nonnull(file);
    oj_event_state_write(file, &written);
    ck_assert_int_eq(fclose(file), 0);
    must(oj_events_new(&t->rules, N_FEATURES, t->tie_rank, &loaded, &error));
    must(oj_event_state_read((const uint8_t *)bytes, (int64_t)n, "file", &state,
                             loaded, &error));
    free(bytes);
    oj_events_free(*events);
    *events = loaded;
}

/* The 8 rounds are all combinations of rules. After every third batch the state
 * is written to a file and read again. */
TEST_LOOP(random_batches, 0, 8)
{
    static struct event_trial t;
    struct oj_events *events;
    struct oj_event_rows out = {0};
    int64_t n_all = 0;
    open_trial(&t, _i);
    must(oj_events_new(&t.rules, N_FEATURES, t.tie_rank, &events, &error));
    for (int batch = 0; batch < 200; batch++)
    {
        const int64_t n = pick(4) == 0 ? pick(3) : pick(MOST_ROWS);
        struct oj_event_counts counts;
        make_reports(&t, n);
        make_truth(&t, n);
        must(add_batch(&t, n, events, &out));
        compare_events(&t, &out);
        oj_events_count(events, &counts);
        ck_assert_int_eq(counts.n_inside, count_inside(&t));
        n_all += t.n_events;
        if (batch % 3 == 0)
            save_and_load(&t, &events);
    }
    ck_assert_int_gt(n_all, 5000);
    oj_event_rows_free(&out);
    oj_matches_free(&t.pairs);
    oj_events_free(events);
}

/* After an allocation has failed, the batch can be added again. */
TEST_LOOP(no_memory, 0, 8)
{
    static struct event_trial t;
    int n_failed = 0;
    oj_status status = OJ_ERR_NOMEM;
    for (int n = 1; status != OJ_OK; n++)
    {
        struct oj_events *events = NULL;
        struct oj_event_rows out = {0};
        open_trial(&t, _i);
        status = OJ_OK;
        oj_alloc_fail_at(n);
        if (oj_events_new(&t.rules, N_FEATURES, t.tie_rank, &events, &error) !=
            OJ_OK)
            status = OJ_ERR_NOMEM;
        oj_alloc_fail_at(0);
        for (int batch = 0; batch < 4 && events != NULL; batch++)
        {
            oj_status here;
            make_reports(&t, MOST_ROWS);
            make_truth(&t, MOST_ROWS);
            oj_alloc_fail_at(n);
            here = add_batch(&t, MOST_ROWS, events, &out);
            oj_alloc_fail_at(0);
            ck_assert(here == OJ_OK || here == OJ_ERR_NOMEM);
            if (here != OJ_OK)
            {
                status = here;
                must(add_batch(&t, MOST_ROWS, events, &out));
            }
            compare_events(&t, &out);
        }
        n_failed += status != OJ_OK;
        oj_event_rows_free(&out);
        oj_events_free(events);
        oj_matches_free(&t.pairs);
    }
    ck_assert_int_gt(n_failed, 5);
}

/* Keys that disappear need no memory: a million of them need no more
 * allocations than some thousands. */
TEST_LOOP(keys_that_have_gone_are_forgotten, 0, 2)
{
    const struct oj_event_rules rules = {0, 0, _i};
    static struct event_trial t;
    struct oj_events *events;
    struct oj_event_rows out = {0};
    int64_t n_late = 0, key = 0;
    t.rules = rules;
    must(oj_events_new(&rules, N_FEATURES, NULL, &events, &error));
    for (int batch = 0; batch < 20000; batch++)
    {
        /* 50 keys enter a feature, and leave it */
        must(oj_matches_reserve(&t.pairs, 100, 50, 1, &error));
        for (int i = 0; i < 100; i++)
        {
            const int64_t name = key + i % 50;
            t.integer[i] = name;
            t.offset[i + 1] = t.offset[i] + snprintf(t.bytes + t.offset[i], 16,
                                                     "%lld", (long long)name);
            t.is_null[i] = 0;
            t.x[i] = t.y[i] = 0;
            t.pairs.offset[i] = i < 50 ? i : 50;
            if (i < 50)
            {
                t.pairs.join_row[i] = i % N_FEATURES;
                t.pairs.measure[i] = 0;
            }
        }
        t.pairs.offset[100] = t.pairs.n_entries = t.pairs.n_pairs = 50;
        key += 50;
        if (batch == 10000)
            (void)oj_alloc_fail_at(0);
        must(add_batch(&t, 100, events, &out));
        ck_assert_int_eq(out.rows.n_entries, 100);
    }
    n_late = oj_alloc_fail_at(0);
    /* slots are reused, so the number of allocations does not grow */
    ck_assert_int_lt(n_late, 10000);
    oj_event_rows_free(&out);
    oj_matches_free(&t.pairs);
    oj_events_free(events);
    memset(&t, 0, sizeof t);
}

/* A key that is there twice, keys whose features repeat, descend or do not
 * exist, and FIDs that repeat are refused. */
TEST(states_that_do_not_fit)
{
    static struct event_trial t;
    const struct oj_event_key twice[] = {
        {7, NULL, 0, 2, (const int32_t[]){0, 1}},
        {7, NULL, 0, 1, (const int32_t[]){2}}};
    const struct oj_event_key odd[] = {
        {8, NULL, 0, 0, (const int32_t[]){0}},
        {8, NULL, 0, 2, (const int32_t[]){1, 1}},
        {8, NULL, 0, 2, (const int32_t[]){2, 1}},
        {8, NULL, 0, 1, (const int32_t[]){-1}},
        {8, NULL, 0, 1, (const int32_t[]){N_FEATURES}}};
    struct oj_flat join;
    struct oj_event_state state = {&join, ""};
    struct oj_events *events;
    open_trial(&t, 0);
    must(oj_events_new(&t.rules, N_FEATURES, NULL, &events, &error));
    must(oj_events_add_key(events, &twice[0], &error));
    ck_assert_int_eq(oj_events_add_key(events, &twice[1], &error), OJ_ERR_DATA);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        ck_assert_int_eq(oj_events_add_key(events, &odd[i], &error),
                         OJ_ERR_DATA);
    oj_events_free(events);
    join = join_of(&t);
    must(oj_event_state_check_unique_fids(&state, &error));
    t.fid[3] = t.fid[4];
    ck_assert_int_eq(oj_event_state_check_unique_fids(&state, &error),
                     OJ_ERR_ARG);
}

int main(void)
{
    tests_open("events");
    return tests_run();
}
