/* The cache of join sides with several threads: answers, which threads wait for
 * which, and the state after the making of a side has failed or was cancelled.
 * Kinds: unit, property. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* declares syscall() */
#endif

#include "../sleeping_thread.h"
#include "join_makers.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- a clock that is set --------------------------------------------------
 */

/* Seconds by which the wall clock is ahead. A test sets it back to 0 later. */
static int ahead_s;

/* Replaces the C library's function in this program. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    int result = (int)syscall(SYS_clock_gettime, clock, t);
    if (clock == CLOCK_REALTIME)
        t->tv_sec += __atomic_load_n(&ahead_s, __ATOMIC_RELAXED);
    return result;
}

/* ---- threads ------------------------------------------------------------ */

struct cache_thread
{
    pthread_t thread;
    const struct answers_by_key *answer;
    struct maker *maker; /* of key 0 */
    int number, n_rounds, n_keys;
    int cancel;
    pid_t thread_number;
    int n_wrong, is_mine;
    struct oj_join_use use;
    oj_status status;
    struct oj_error error;
};

static void start_workers(struct cache_thread *workers, int n,
                          void *(*body)(void *))
{
    for (int i = 0; i < n; i++)
    {
        workers[i].number = i;
        ck_assert_int_eq(
            pthread_create(&workers[i].thread, NULL, body, &workers[i]), 0);
    }
}

static void end_workers(struct cache_thread *workers, int n)
{
    for (int i = 0; i < n; i++)
        pthread_join(workers[i].thread, NULL);
}

static void *join_in_rounds(void *user)
{
    struct cache_thread *w = user;
    MATCHES matches = {0};
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
            if (oj_join_use_join_batch(&use, &w->answer->view, &matches,
                                       NULL) != OJ_OK ||
                !same_answer(w->answer, key, &matches))
                w->n_wrong++;
        }
        w->n_wrong += use.stats.refine_s < 0.0;
        oj_join_use_release(&use);
    }
    return NULL;
}

static void try_threads(const char *max, int n_keys, int n_rounds)
{
    struct cache_thread workers[N_THREADS];
    static struct answers_by_key answer;
    memset(workers, 0, sizeof workers);
    make_answers(&answer);
    empty_cache(max);
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

TEST(threads_some_keys)
{
    struct oj_join_cache_counts before = oj_join_cache_counts();
    try_threads(NULL, 1, 100);
    ck_assert_int_eq(oj_join_cache_counts().n_built - before.n_built, 1);
    try_threads(NULL, N_KEYS, 100);
    ck_assert_int_eq(oj_join_cache_counts().n_built - before.n_built,
                     N_KEYS + 1);
    try_threads("150K", N_KEYS, 50); /* the cache has room for one or two sides
                                      */
    try_threads("1K", N_KEYS, 50);
}

/* Takes a side once and holds it. */
static void *take_once(void *user)
{
    struct cache_thread *w = user;
    store_thread_number(&w->thread_number);
    w->status =
        take(0, 0, w->maker, &w->cancel, &w->use, &w->is_mine, &w->error);
    return NULL;
}

/* Waits until the maker was called n times. */
static void wait_for_calls(const struct maker *maker, int n)
{
    double end = now_s() + 60.0;
    while (__atomic_load_n(&maker->n_calls, __ATOMIC_RELAXED) < n)
    {
        ck_assert(now_s() < end);
        rest_ms(1);
    }
}

TEST(others_wait)
{
    struct maker maker = {.ms = 300};
    struct cache_thread workers[N_THREADS];
    int n_mine = 0;
    memset(workers, 0, sizeof workers);
    empty_cache(NULL);
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
        oj_join_use_release(&workers[i].use);
    ck_assert_int_eq(n_mine, 1);
    ck_assert_int_eq(maker.n_calls, 1);
    ck_assert_int_eq(n_entries(), 1);
}

TEST(failure_is_returned_to_all)
{
    struct maker maker = {.is_held = 1, .failure = OJ_ERR_DATA};
    struct cache_thread workers[N_THREADS];
    memset(workers, 0, sizeof workers);
    empty_cache(NULL);
    for (int i = 0; i < N_THREADS; i++)
        workers[i].maker = &maker;
    start_workers(workers, 1, take_once);
    wait_for_calls(&maker, 1);
    start_workers(workers + 1, N_THREADS - 1, take_once);
    for (int i = 1; i < N_THREADS; i++)
        wait_until_thread_sleeps(&workers[i].thread_number);
    __atomic_store_n(&maker.is_held, 0, __ATOMIC_RELAXED);
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
    ck_assert(take_and_end(0, 0)); /* the next thread tries again */
}

static void cancel(struct cache_thread *w)
{
    __atomic_store_n(&w->cancel, 1, __ATOMIC_RELAXED);
    oj_join_use_stop(&w->use);
}

TEST(cancelled_maker)
{
    struct maker slow = {.ms = 60000}, quick = {.ms = 0};
    struct cache_thread workers[3];
    double begin;
    memset(workers, 0, sizeof workers);
    empty_cache(NULL);
    workers[0].maker = &slow;
    workers[1].maker = workers[2].maker = &quick;
    start_workers(workers, 1, take_once);
    wait_for_calls(&slow, 1);
    start_workers(workers + 1, 2, take_once);
    wait_until_thread_sleeps(&workers[1].thread_number);
    wait_until_thread_sleeps(&workers[2].thread_number);
    ck_assert_int_eq(quick.n_calls, 0);
    begin = now_s();
    cancel(&workers[0]);
    end_workers(workers, 3);
    ck_assert(now_s() - begin < 50.0); /* the slow one takes 60 s */
    ck_assert_int_eq(workers[0].status, OJ_ERR_CANCELLED);
    ck_assert_int_eq(workers[1].status, OJ_OK);
    ck_assert_int_eq(workers[2].status, OJ_OK);
    ck_assert_int_eq(quick.n_calls, 1);
    ck_assert_int_eq(workers[1].is_mine + workers[2].is_mine, 1);
    oj_join_use_release(&workers[1].use);
    oj_join_use_release(&workers[2].use);
    ck_assert_int_eq(n_entries(), 1);
    /* if no other thread waits, a cancelled side is removed */
    empty_cache(NULL);
    slow.n_calls = workers[0].cancel = 0;
    start_workers(workers, 1, take_once);
    wait_for_calls(&slow, 1);
    cancel(&workers[0]);
    end_workers(workers, 1);
    ck_assert_int_eq(workers[0].status, OJ_ERR_CANCELLED);
    ck_assert_int_eq(n_entries(), 0);
    /* a thread that is cancelled already does not begin to make a side */
    slow.n_calls = 0;
    start_workers(workers, 1, take_once);
    end_workers(workers, 1);
    ck_assert_int_eq(workers[0].status, OJ_ERR_CANCELLED);
    ck_assert_int_eq(slow.n_calls, 0);
    ck_assert_int_eq(n_entries(), 0);
}

/* A waiting thread can be cancelled, even if the wall clock is set back by an
 * hour while it waits. */
TEST_LOOP(cancelled_waiter, 0, 2)
{
    struct maker slow = {.ms = 60000};
    struct cache_thread workers[2];
    memset(workers, 0, sizeof workers);
    empty_cache(NULL);
    workers[0].maker = workers[1].maker = &slow;
    start_workers(workers, 1, take_once);
    wait_for_calls(&slow, 1);
    __atomic_store_n(&ahead_s, 3600 * _i, __ATOMIC_RELAXED);
    start_workers(workers + 1, 1, take_once);
    wait_until_thread_sleeps(&workers[1].thread_number);
    /* the flag alone is enough, because waiting threads poll it */
    __atomic_store_n(&workers[1].cancel, 1, __ATOMIC_RELAXED);
    end_workers(workers + 1, 1);
    __atomic_store_n(&ahead_s, 0, __ATOMIC_RELAXED);
    ck_assert_int_eq(workers[1].status, OJ_ERR_CANCELLED);
    /* the thread that makes the side is not cancelled */
    ck_assert_int_eq(n_entries(), 1);
    cancel(&workers[0]);
    end_workers(workers, 1);
    ck_assert_int_eq(workers[0].status, OJ_ERR_CANCELLED);
    ck_assert_int_eq(n_entries(), 0);
}

/* ---- batches ------------------------------------------------------------ */

/* Runs a batch that takes seconds, again and again until it is cancelled. */
static void *join_for_long(void *user)
{
    struct cache_thread *w = user;
    LAYER input = {0};
    MATCHES matches = {0};
    struct oj_flat view;
    w->status = fill_points(&input, 5, 2000000, &w->error);
    view = oj_flat_buf_view(&input);
    while (w->status == OJ_OK)
    {
        __atomic_store_n(&w->is_mine, 1, __ATOMIC_RELAXED);
        w->status = oj_join_use_join_batch(&w->use, &view, &matches, &w->error);
        __atomic_fetch_add(&w->n_rounds, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

TEST(stopped_batch)
{
    static struct answers_by_key answer;
    struct maker maker = {.seed = 0};
    struct cache_thread worker;
    struct oj_join_use other = {0};
    MATCHES matches = {0};
    int is_mine, n_rounds, has_waited, n_tries = 0;
    memset(&worker, 0, sizeof worker);
    make_answers(&answer);
    empty_cache(NULL);
    ck_assert_int_eq(
        take(0, 0, &maker, &worker.cancel, &worker.use, &is_mine, NULL), OJ_OK);
    ck_assert_int_eq(take(0, 0, &maker, NULL, &other, &is_mine, NULL), OJ_OK);
    start_workers(&worker, 1, join_for_long);
    while (!__atomic_load_n(&worker.is_mine, __ATOMIC_RELAXED))
        rest_ms(1);
    /* Two of these batches need not wait for the long one. On a busy machine
     * this thread may sleep while a long one ends, so they are repeated. */
    do
    {
        n_rounds = __atomic_load_n(&worker.n_rounds, __ATOMIC_RELAXED);
        for (int i = 0; i < 2; i++)
        {
            ck_assert_int_eq(
                oj_join_use_join_batch(&other, &answer.view, &matches, NULL),
                OJ_OK);
            ck_assert(same_answer(&answer, 0, &matches));
        }
        n_tries++;
        has_waited =
            __atomic_load_n(&worker.n_rounds, __ATOMIC_RELAXED) != n_rounds;
    } while (has_waited && n_tries < 10);
    ck_assert(!has_waited);
    rest_ms(20);
    cancel(&worker);
    end_workers(&worker, 1);
    ck_assert_int_eq(worker.status, OJ_ERR_CANCELLED);
    /* the batch was cancelled while it ran, not while it waited */
    ck_assert_str_ne(worker.error.message, "interrupted while waiting");
    ck_assert_int_eq(
        oj_join_use_join_batch(&other, &answer.view, &matches, NULL), OJ_OK);
    ck_assert(same_answer(&answer, 0, &matches));
    oj_join_use_release(&worker.use);
    oj_join_use_release(&other);
    ck_assert(!take_and_end(0, 0));
    oj_flat_buf_free(&answer.input);
}

int main(void)
{
    tests_open("join_cache_threads");
    return tests_run();
}
