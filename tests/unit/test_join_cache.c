/* Kinds: unit, property (threads), memory. The cache of join sides, fed with
 * sides that are made here: what is found, what goes, who waits for whom, and
 * what is left when making fails, is cancelled or has no memory. */
#include "run_tests.h"

#include "../../driver/oj_join_cache.h"
#include "../../flatten/oj_array.h"
#include "../../flatten/oj_matches.h"

#include <cpl_conv.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum
{
    N_POINTS = 2000, /* of a join side */
    N_INPUT = 300,
    N_THREADS = 8,
    N_KEYS = 4
};

static void rest_ms(int ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- sides -------------------------------------------------------------- */

/* How a side is made, and what was seen of it. */
struct maker
{
    int seed;
    int n_points; /* 0: N_POINTS */
    int ms;       /* that it takes */
    int keep;     /* 0: nobody else may have it; -1 stands for that */
    oj_status failure;
    const int *cancel; /* of the one who makes it; may be NULL */
    int n_calls;       /* counted atomically */
};

static int is_raised(const int *flag)
{
    return flag != NULL && __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}

static double coordinate(unsigned *state)
{
    *state = *state * 1103515245u + 12345u;
    return (double)(*state >> 8 & 0xffff) / 16.0;
}

static oj_status fill_points(struct oj_flat_buf *buf, int seed, int n,
                             struct oj_error *err)
{
    unsigned state = (unsigned)seed * 2654435761u + 1u;
    for (int i = 0; i < n; i++)
    {
        double x = coordinate(&state), y = coordinate(&state);
        OJ_TRY(oj_flat_buf_add_point(buf, i, x, y, err));
    }
    return OJ_OK;
}

static oj_status make_side(void *user, struct oj_join_side *side,
                           const int *cancel, int *keep, struct oj_error *err)
{
    struct maker *maker = user;
    const struct oj_relation relation = oj_relation_default();
    struct oj_options options = {0};
    int n = maker->n_points > 0 ? maker->n_points : N_POINTS;
    double end = now_s() + maker->ms / 1000.0;
    __atomic_fetch_add(&maker->n_calls, 1, __ATOMIC_RELAXED);
    while (now_s() < end)
    {
        if (is_raised(cancel) || is_raised(maker->cancel))
            return oj_fail(err, OJ_ERR_CANCELLED, "interrupted");
        rest_ms(1);
    }
    OJ_TRY(fill_points(&side->buf, maker->seed, n, err));
    if (maker->failure != OJ_OK)
        return oj_fail(err, maker->failure, "as was asked");
    side->flat = oj_flat_buf_view(&side->buf);
    options.n_threads = 1;
    options.cancel = cancel;
    *keep = maker->keep >= 0;
    return oj_join_open(&side->flat, &relation, "cpu", &options, &side->engine,
                        err);
}

/* Key i, in a state of its files. */
static struct oj_join_key make_key(int i, int state)
{
    struct oj_join_key key = {0};
    char text[40];
    int n = snprintf(text, sizeof text, "side %d", i);
    key.n_identity = n;
    n += snprintf(text + n, sizeof text - (size_t)n, " state %d", state);
    key.n = key.capacity = n;
    key.bytes = oj_malloc(n, 1);
    ck_assert_ptr_nonnull(key.bytes);
    memcpy(key.bytes, text, (size_t)n);
    return key;
}

static oj_status take(int key_number, int state, struct maker *maker,
                      const int *cancel, struct oj_join_use *use, int *is_mine,
                      struct oj_error *err)
{
    struct oj_join_key key = make_key(key_number, state);
    oj_status status =
        oj_join_cache_take(&key, make_side, maker, cancel, use, is_mine, err);
    oj_free(key.bytes);
    return status;
}

/* 1 when it had to be made. */
static int take_and_end(int key_number, int state)
{
    struct maker maker = {.seed = key_number};
    struct oj_join_use use = {0};
    int is_mine;
    ck_assert_int_eq(
        take(key_number, state, &maker, NULL, &use, &is_mine, NULL), OJ_OK);
    ck_assert_int_eq(maker.n_calls, is_mine);
    oj_join_use_end(&use);
    oj_join_use_end(&use);
    return is_mine;
}

/* An empty cache; max may be NULL. */
static void start(const char *max)
{
    CPLSetConfigOption("OGRJOIN_CACHE_MAX", max);
    oj_join_cache_clear();
    ck_assert_int_eq(oj_join_cache_counts().n_entries, 0);
}

static int64_t n_entries(void)
{
    return oj_join_cache_counts().n_entries;
}

/* ---- what is found, and what goes ---------------------------------------- */

START_TEST(second_finds)
{
    struct oj_join_cache_counts before = oj_join_cache_counts(), after;
    start(NULL);
    ck_assert(take_and_end(1, 0));
    ck_assert(!take_and_end(1, 0));
    ck_assert(take_and_end(2, 0));
    ck_assert(!take_and_end(2, 0));
    ck_assert(!take_and_end(1, 0));
    after = oj_join_cache_counts();
    ck_assert_int_eq(after.n_entries, 2);
    ck_assert_int_eq(after.n_built - before.n_built, 2);
    ck_assert_int_eq(after.n_found - before.n_found, 3);
    ck_assert_int_gt(after.n_bytes, 2 * N_POINTS * 24);
}
END_TEST

START_TEST(changed_files_replace)
{
    struct maker maker = {.seed = 1};
    struct oj_join_use use = {0};
    int is_mine;
    start(NULL);
    ck_assert(take_and_end(1, 0));
    ck_assert(take_and_end(1, 1));
    ck_assert_int_eq(n_entries(), 1);
    ck_assert_int_eq(take(1, 1, &maker, NULL, &use, &is_mine, NULL), OJ_OK);
    ck_assert(take_and_end(1, 2)); /* the one in use stays, unseen */
    ck_assert_int_eq(n_entries(), 1);
    ck_assert_int_eq(oj_join_use_side(&use)->flat.n_features, N_POINTS);
    oj_join_use_end(&use);
    ck_assert_int_eq(n_entries(), 1);
    ck_assert(!take_and_end(1, 2));
}
END_TEST

START_TEST(bound)
{
    struct maker maker = {.seed = 1};
    struct oj_join_use use = {0};
    char max[40];
    int is_mine;
    int64_t one;
    start(NULL);
    ck_assert(take_and_end(0, 0));
    one = oj_join_cache_counts().n_bytes;
    snprintf(max, sizeof max, "%lld", (long long)(one * 5 / 2));
    start(max);
    ck_assert(take_and_end(1, 0));
    ck_assert(take_and_end(2, 0));
    ck_assert(!take_and_end(1, 0));
    ck_assert(take_and_end(3, 0)); /* 2 was used before 1 */
    ck_assert_int_eq(n_entries(), 2);
    ck_assert(!take_and_end(1, 0));
    ck_assert(take_and_end(2, 0));
    /* In use it stays, and counts. */
    ck_assert_int_eq(take(1, 0, &maker, NULL, &use, &is_mine, NULL), OJ_OK);
    ck_assert(!is_mine);
    for (int i = 4; i < 8; i++)
        ck_assert(take_and_end(i, 0));
    ck_assert(!take_and_end(1, 0));
    ck_assert_int_eq(n_entries(), 2);
    oj_join_use_end(&use);
    /* What is larger than all goes with its last user. */
    start("1K");
    ck_assert(take_and_end(1, 0));
    ck_assert_int_eq(n_entries(), 0);
    ck_assert_int_eq(take(1, 0, &maker, NULL, &use, &is_mine, NULL), OJ_OK);
    ck_assert(!take_and_end(1, 0));
    oj_join_use_end(&use);
    ck_assert_int_eq(n_entries(), 0);
}
END_TEST

START_TEST(limit)
{
    int64_t quarter;
    start(NULL);
    quarter = oj_join_cache_limit();
    ck_assert_int_gt(quarter, 1 << 20);
    start("0");
    ck_assert_int_eq(oj_join_cache_limit(), 0);
    start("64M");
    ck_assert_int_eq(oj_join_cache_limit(), 64 << 20);
    start("much");
    ck_assert_int_eq(oj_join_cache_limit(), quarter);
    start("-5");
    ck_assert_int_eq(oj_join_cache_limit(), quarter);
    start("");
    ck_assert_int_eq(oj_join_cache_limit(), quarter);
}
END_TEST

START_TEST(not_kept)
{
    struct maker maker = {.seed = 1, .keep = -1};
    struct oj_join_use use = {0}, other = {0};
    int is_mine;
    start(NULL);
    ck_assert_int_eq(take(1, 0, &maker, NULL, &use, &is_mine, NULL), OJ_OK);
    ck_assert(is_mine);
    ck_assert_int_eq(n_entries(), 0);
    ck_assert(take_and_end(1, 0));
    oj_join_use_end(&use);
    /* Without a key nobody finds it, but it can be shared. */
    maker.keep = 0;
    ck_assert_int_eq(
        oj_join_cache_take(NULL, make_side, &maker, NULL, &use, &is_mine, NULL),
        OJ_OK);
    ck_assert(is_mine);
    ck_assert_int_eq(n_entries(), 1);
    oj_join_use_share(&use, NULL, &other);
    oj_join_use_end(&use);
    ck_assert_int_eq(oj_join_use_side(&other)->flat.n_features, N_POINTS);
    oj_join_use_end(&other);
}
END_TEST

START_TEST(clear_leaves_what_is_used)
{
    struct maker maker = {.seed = 1};
    struct oj_join_use use = {0};
    int is_mine;
    start(NULL);
    ck_assert(take_and_end(2, 0));
    ck_assert_int_eq(take(1, 0, &maker, NULL, &use, &is_mine, NULL), OJ_OK);
    oj_join_cache_clear();
    ck_assert_int_eq(n_entries(), 0);
    ck_assert_int_eq(oj_join_use_side(&use)->flat.n_features, N_POINTS);
    oj_join_use_end(&use);
    ck_assert(take_and_end(1, 0));
}
END_TEST

/* ---- answers ------------------------------------------------------------ */

struct answer
{
    struct oj_flat_buf input;
    struct oj_flat view;
    int32_t row[N_KEYS][N_INPUT];
    double distance[N_KEYS][N_INPUT];
};

static void make_answers(struct answer *a)
{
    struct oj_matches matches = {0};
    memset(a, 0, sizeof *a);
    ck_assert_int_eq(fill_points(&a->input, 77, N_INPUT, NULL), OJ_OK);
    a->view = oj_flat_buf_view(&a->input);
    for (int key = 0; key < N_KEYS; key++)
    {
        struct maker maker = {.seed = key};
        struct oj_join_side side = {0};
        int keep;
        ck_assert_int_eq(make_side(&maker, &side, NULL, &keep, NULL), OJ_OK);
        ck_assert_int_eq(oj_join_batch(side.engine, &a->view, &matches, NULL),
                         OJ_OK);
        for (int i = 0; i < N_INPUT; i++)
        {
            a->row[key][i] = matches.join_row[i];
            a->distance[key][i] = matches.measure[i];
        }
        oj_join_side_free(&side);
    }
    oj_matches_free(&matches);
}

static int same_answer(const struct answer *a, int key,
                       const struct oj_matches *matches)
{
    return memcmp(a->row[key], matches->join_row, sizeof a->row[key]) == 0 &&
           memcmp(a->distance[key], matches->measure,
                  sizeof a->distance[key]) == 0;
}

/* ---- threads ------------------------------------------------------------ */

struct worker
{
    pthread_t thread;
    const struct answer *answer;
    struct maker *maker; /* of key 0 */
    int number, n_rounds, n_keys;
    int cancel;
    int n_wrong, is_mine;
    struct oj_join_use use;
    oj_status status;
    struct oj_error error;
};

static void start_workers(struct worker *workers, int n, void *(*body)(void *))
{
    for (int i = 0; i < n; i++)
    {
        workers[i].number = i;
        ck_assert_int_eq(
            pthread_create(&workers[i].thread, NULL, body, &workers[i]), 0);
    }
}

static void end_workers(struct worker *workers, int n)
{
    for (int i = 0; i < n; i++)
        pthread_join(workers[i].thread, NULL);
}

static void *join_in_rounds(void *user)
{
    struct worker *w = user;
    struct oj_matches matches = {0};
    unsigned state = (unsigned)w->number + 1u;
    for (int round = 0; round < w->n_rounds; round++)
    {
        int key = (int)coordinate(&state) % w->n_keys;
        int n_batches = 1 + (int)coordinate(&state) % 3, is_mine;
        struct maker maker = {.seed = key};
        struct oj_join_use use = {0};
        if (take(key, 0, &maker, &w->cancel, &use, &is_mine, NULL) != OJ_OK)
        {
            w->n_wrong++;
            continue;
        }
        for (int i = 0; i < n_batches; i++)
        {
            if (oj_join_use_batch(&use, &w->answer->view, &matches, NULL) !=
                    OJ_OK ||
                !same_answer(w->answer, key, &matches))
                w->n_wrong++;
        }
        w->n_wrong += use.stats.refine_s < 0.0;
        oj_join_use_end(&use);
    }
    oj_matches_free(&matches);
    return NULL;
}

static void try_threads(const char *max, int n_keys, int n_rounds)
{
    struct worker workers[N_THREADS];
    static struct answer answer;
    memset(workers, 0, sizeof workers);
    make_answers(&answer);
    start(max);
    for (int i = 0; i < N_THREADS; i++)
    {
        workers[i].answer = &answer;
        workers[i].n_keys = n_keys;
        workers[i].n_rounds = n_rounds;
    }
    start_workers(workers, N_THREADS, join_in_rounds);
    end_workers(workers, N_THREADS);
    for (int i = 0; i < N_THREADS; i++)
        ck_assert_int_eq(workers[i].n_wrong, 0);
    oj_flat_buf_free(&answer.input);
}

START_TEST(threads_one_key)
{
    struct oj_join_cache_counts before = oj_join_cache_counts();
    try_threads(NULL, 1, 100);
    ck_assert_int_eq(oj_join_cache_counts().n_built - before.n_built, 1);
}
END_TEST

START_TEST(threads_some_keys)
{
    struct oj_join_cache_counts before = oj_join_cache_counts();
    try_threads(NULL, N_KEYS, 100);
    ck_assert_int_eq(oj_join_cache_counts().n_built - before.n_built, N_KEYS);
    try_threads("150K", N_KEYS, 50); /* room for one or two */
    try_threads("1K", N_KEYS, 50);
}
END_TEST

/* One take, held. */
static void *take_once(void *user)
{
    struct worker *w = user;
    w->status =
        take(0, 0, w->maker, &w->cancel, &w->use, &w->is_mine, &w->error);
    return NULL;
}

/* Until maker has begun n times. */
static void wait_for_calls(const struct maker *maker, int n)
{
    double end = now_s() + 60.0;
    while (__atomic_load_n(&maker->n_calls, __ATOMIC_RELAXED) < n)
    {
        ck_assert(now_s() < end);
        rest_ms(1);
    }
}

START_TEST(others_wait)
{
    struct maker maker = {.ms = 300};
    struct worker workers[N_THREADS];
    int n_mine = 0;
    memset(workers, 0, sizeof workers);
    start(NULL);
    for (int i = 0; i < N_THREADS; i++)
        workers[i].maker = &maker;
    start_workers(workers, N_THREADS, take_once);
    end_workers(workers, N_THREADS);
    for (int i = 0; i < N_THREADS; i++)
    {
        ck_assert_int_eq(workers[i].status, OJ_OK);
        ck_assert_ptr_eq(workers[i].use.entry, workers[0].use.entry);
        n_mine += workers[i].is_mine;
    }
    for (int i = 0; i < N_THREADS; i++)
        oj_join_use_end(&workers[i].use);
    ck_assert_int_eq(n_mine, 1);
    ck_assert_int_eq(maker.n_calls, 1);
    ck_assert_int_eq(n_entries(), 1);
}
END_TEST

START_TEST(failure_is_everybodys)
{
    struct maker maker = {.ms = 1500, .failure = OJ_ERR_DATA};
    struct worker workers[N_THREADS];
    memset(workers, 0, sizeof workers);
    start(NULL);
    for (int i = 0; i < N_THREADS; i++)
        workers[i].maker = &maker;
    start_workers(workers, 1, take_once);
    wait_for_calls(&maker, 1);
    start_workers(workers + 1, N_THREADS - 1, take_once);
    end_workers(workers, N_THREADS);
    for (int i = 0; i < N_THREADS; i++)
    {
        ck_assert_int_eq(workers[i].status, OJ_ERR_DATA);
        ck_assert_int_eq(workers[i].error.status, OJ_ERR_DATA);
        ck_assert_str_eq(workers[i].error.message, "as was asked");
        ck_assert_ptr_null(workers[i].use.entry);
    }
    ck_assert_int_eq(maker.n_calls, 1);
    ck_assert_int_eq(n_entries(), 0);
    ck_assert(take_and_end(0, 0)); /* and the next one tries again */
}
END_TEST

static void cancel(struct worker *w)
{
    __atomic_store_n(&w->cancel, 1, __ATOMIC_RELAXED);
    oj_join_use_stop(&w->use);
}

START_TEST(cancelled_maker)
{
    struct maker slow = {.ms = 60000}, quick = {.ms = 0};
    struct worker workers[3];
    double begin;
    memset(workers, 0, sizeof workers);
    start(NULL);
    workers[0].maker = &slow;
    workers[1].maker = workers[2].maker = &quick;
    start_workers(workers, 1, take_once);
    wait_for_calls(&slow, 1);
    start_workers(workers + 1, 2, take_once);
    rest_ms(100);
    ck_assert_int_eq(quick.n_calls, 0);
    begin = now_s();
    cancel(&workers[0]);
    end_workers(workers, 3);
    ck_assert(now_s() - begin < 10.0);
    ck_assert_int_eq(workers[0].status, OJ_ERR_CANCELLED);
    ck_assert_int_eq(workers[1].status, OJ_OK);
    ck_assert_int_eq(workers[2].status, OJ_OK);
    ck_assert_int_eq(quick.n_calls, 1);
    ck_assert_int_eq(workers[1].is_mine + workers[2].is_mine, 1);
    oj_join_use_end(&workers[1].use);
    oj_join_use_end(&workers[2].use);
    ck_assert_int_eq(n_entries(), 1);
    /* With nobody waiting nothing stays. */
    start(NULL);
    slow.n_calls = workers[0].cancel = 0;
    start_workers(workers, 1, take_once);
    wait_for_calls(&slow, 1);
    cancel(&workers[0]);
    end_workers(workers, 1);
    ck_assert_int_eq(workers[0].status, OJ_ERR_CANCELLED);
    ck_assert_int_eq(n_entries(), 0);
    /* Nor is anything begun for one who was cancelled before. */
    slow.n_calls = 0;
    start_workers(workers, 1, take_once);
    end_workers(workers, 1);
    ck_assert_int_eq(workers[0].status, OJ_ERR_CANCELLED);
    ck_assert_int_eq(slow.n_calls, 0);
    ck_assert_int_eq(n_entries(), 0);
}
END_TEST

START_TEST(cancelled_waiter)
{
    struct maker slow = {.ms = 3000};
    struct worker workers[2];
    double begin = now_s();
    memset(workers, 0, sizeof workers);
    start(NULL);
    workers[0].maker = workers[1].maker = &slow;
    start_workers(workers, 1, take_once);
    wait_for_calls(&slow, 1);
    start_workers(workers + 1, 1, take_once);
    rest_ms(50);
    /* The flag alone does, too: it is looked at now and then. */
    __atomic_store_n(&workers[1].cancel, 1, __ATOMIC_RELAXED);
    end_workers(workers + 1, 1);
    ck_assert(now_s() - begin < 2.5);
    ck_assert_int_eq(workers[1].status, OJ_ERR_CANCELLED);
    end_workers(workers, 1);
    ck_assert_int_eq(workers[0].status, OJ_OK);
    oj_join_use_end(&workers[0].use);
    ck_assert_int_eq(n_entries(), 1);
}
END_TEST

/* ---- batches ------------------------------------------------------------ */

/* A batch that takes seconds, over and over until it is stopped. */
static void *join_for_long(void *user)
{
    struct worker *w = user;
    struct oj_flat_buf input = {0};
    struct oj_matches matches = {0};
    struct oj_flat view;
    w->status = fill_points(&input, 5, 2000000, &w->error);
    view = oj_flat_buf_view(&input);
    while (w->status == OJ_OK)
    {
        __atomic_store_n(&w->is_mine, 1, __ATOMIC_RELAXED);
        w->status = oj_join_use_batch(&w->use, &view, &matches, &w->error);
    }
    oj_matches_free(&matches);
    oj_flat_buf_free(&input);
    return NULL;
}

START_TEST(stopped_batch)
{
    static struct answer answer;
    struct maker maker = {.seed = 0};
    struct worker worker;
    struct oj_join_use other = {0};
    struct oj_matches matches = {0};
    double begin;
    int is_mine;
    memset(&worker, 0, sizeof worker);
    make_answers(&answer);
    start(NULL);
    ck_assert_int_eq(
        take(0, 0, &maker, &worker.cancel, &worker.use, &is_mine, NULL), OJ_OK);
    ck_assert_int_eq(take(0, 0, &maker, NULL, &other, &is_mine, NULL), OJ_OK);
    start_workers(&worker, 1, join_for_long);
    while (!__atomic_load_n(&worker.is_mine, __ATOMIC_RELAXED))
        rest_ms(1);
    /* It waits its turn, and gets it although the first asks again at once. */
    for (int i = 0; i < 2; i++)
    {
        ck_assert_int_eq(
            oj_join_use_batch(&other, &answer.view, &matches, NULL), OJ_OK);
        ck_assert(same_answer(&answer, 0, &matches));
    }
    rest_ms(20);
    begin = now_s();
    cancel(&worker);
    end_workers(&worker, 1);
    ck_assert(now_s() - begin < 1.0);
    ck_assert_int_eq(worker.status, OJ_ERR_CANCELLED);
    ck_assert_int_eq(oj_join_use_batch(&other, &answer.view, &matches, NULL),
                     OJ_OK);
    ck_assert(same_answer(&answer, 0, &matches));
    oj_join_use_end(&worker.use);
    oj_join_use_end(&other);
    ck_assert(!take_and_end(0, 0));
    oj_matches_free(&matches);
    oj_flat_buf_free(&answer.input);
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

START_TEST(without_memory)
{
    static struct answer answer;
    struct maker maker = {.seed = 0};
    struct oj_join_key key = make_key(0, 0);
    struct oj_matches matches = {0};
    oj_status status = OJ_ERR_NOMEM;
    make_answers(&answer);
    start(NULL);
    for (int64_t n = 1; status != OJ_OK; n++)
    {
        struct oj_join_use use = {0};
        struct oj_error error = {OJ_OK, ""};
        int is_mine;
        oj_alloc_fail_at(n);
        status = oj_join_cache_take(&key, make_side, &maker, NULL, &use,
                                    &is_mine, &error);
        if (status == OJ_OK)
            status = oj_join_use_batch(&use, &answer.view, &matches, &error);
        oj_alloc_fail_at(0);
        ck_assert(status == OJ_OK || status == OJ_ERR_NOMEM);
        if (status != OJ_OK)
        {
            ck_assert_int_eq(error.status, OJ_ERR_NOMEM);
            ck_assert_int_eq(n_entries(), 0);
        }
        oj_join_use_end(&use);
        ck_assert_int_lt(n, 10000);
    }
    ck_assert(same_answer(&answer, 0, &matches));
    ck_assert_int_eq(n_entries(), 1);
    oj_matches_free(&matches);
    oj_free(key.bytes);
    oj_flat_buf_free(&answer.input);
}
END_TEST

int main(void)
{
    TCase *tcase = tests_open("join_cache");
    tcase_add_test(tcase, second_finds);
    tcase_add_test(tcase, changed_files_replace);
    tcase_add_test(tcase, bound);
    tcase_add_test(tcase, limit);
    tcase_add_test(tcase, not_kept);
    tcase_add_test(tcase, clear_leaves_what_is_used);
    tcase_add_test(tcase, threads_one_key);
    tcase_add_test(tcase, threads_some_keys);
    tcase_add_test(tcase, others_wait);
    tcase_add_test(tcase, failure_is_everybodys);
    tcase_add_test(tcase, cancelled_maker);
    tcase_add_test(tcase, cancelled_waiter);
    tcase_add_test(tcase, stopped_batch);
    tcase_add_test(tcase, without_memory);
    return tests_run();
}
