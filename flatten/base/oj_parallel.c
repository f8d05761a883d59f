/* _GNU_SOURCE: for sched_getaffinity and CPU_COUNT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "oj_parallel.h"
#include "oj_clock.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

int oj_cpu_count(void)
{
    long n = 0;
#ifdef CPU_COUNT
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = CPU_COUNT(&set);
#endif
    if (n < 1)
        n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > OJ_MAX_THREADS ? OJ_MAX_THREADS : (int)n;
}

struct loop
{
    atomic_llong next_task;
    atomic_int next_thread;
    int64_t n_tasks;
    void (*body)(int64_t, int, void *);
    void *user;
};

static void *run_tasks_of_thread(void *argument)
{
    struct loop *loop = argument;
    int thread = atomic_fetch_add(&loop->next_thread, 1);
    int64_t task;
    while ((task = atomic_fetch_add(&loop->next_task, 1)) < loop->n_tasks)
        loop->body(task, thread, loop->user);
    return NULL;
}

/* --- teams -----------------------------------------------------------------
 *
 * The thread that has joined a team opens a loop, works in it, closes it when
 * no task is left, and waits for the team's threads that are in it. It does not
 * wait for threads that have not entered; each enters a loop at most once. */

#define LOOP_NUMBER(state) ((state) >> 33)
#define LOOP_IS_OPEN (UINT64_C(1) << 32)
#define ONE_ENTERED (UINT64_C(1) << 16)
#define N_ENTERED(state) ((int)((state) >> 16 & 0xffff))
#define N_INSIDE(state) ((int)((state)&0xffff))

/* How long threads poll for the next loop before they sleep. Waking a thread
 * takes 50 to 100 microseconds. */
static const double most_idle_s = 200e-6;

/* Team that this thread has joined; NULL: none, or the thread runs a loop. */
static _Thread_local struct oj_team *joined;

/* Enters the open loop if it is not loop number `last` and more threads may
 * enter it. Sets *number then. */
static int enter_loop(struct oj_team *team, uint64_t last, uint64_t *number)
{
    uint64_t state = __atomic_load_n(&team->state, __ATOMIC_SEQ_CST);
    while ((state & LOOP_IS_OPEN) != 0 && LOOP_NUMBER(state) != last &&
           N_ENTERED(state) < __atomic_load_n(&team->most, __ATOMIC_RELAXED))
    {
        if (__atomic_compare_exchange_n(&team->state, &state,
                                        state + ONE_ENTERED + 1, 0,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        {
            *number = LOOP_NUMBER(state);
            return 1;
        }
    }
    return 0;
}

/* Returns 1 once the thread has entered a loop, and 0 if the team has ended. */
static int wait_and_enter_loop(struct oj_team *team, uint64_t *number)
{
    const uint64_t last = *number;
    double end = oj_clock_seconds() + most_idle_s;
    int is_in;
    while (__atomic_load_n(&team->is_working, __ATOMIC_RELAXED) &&
           oj_clock_seconds() < end)
    {
        if (enter_loop(team, last, number))
            return 1;
        (void)sched_yield();
    }
    pthread_mutex_lock(&team->mutex);
    __atomic_add_fetch(&team->n_asleep, 1, __ATOMIC_SEQ_CST);
    while (!(is_in = enter_loop(team, last, number)) && !team->is_over)
        pthread_cond_wait(&team->has_work, &team->mutex);
    __atomic_sub_fetch(&team->n_asleep, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&team->mutex);
    return is_in;
}

static void *run_loops_of_team(void *argument)
{
    struct oj_team *team = argument;
    uint64_t number = 0;
    while (wait_and_enter_loop(team, &number))
    {
        run_tasks_of_thread(team->loop);
        __atomic_sub_fetch(&team->state, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void wake_sleeping_threads(struct oj_team *team)
{
    if (__atomic_load_n(&team->n_asleep, __ATOMIC_SEQ_CST) == 0)
        return;
    pthread_mutex_lock(&team->mutex);
    pthread_cond_broadcast(&team->has_work);
    pthread_mutex_unlock(&team->mutex);
}

static void run_loop_on_team(struct oj_team *team, int n_threads,
                             struct loop *loop)
{
    uint64_t state = __atomic_load_n(&team->state, __ATOMIC_RELAXED);
    joined = NULL;
    team->loop = loop;
    __atomic_store_n(&team->most, n_threads - 1, __ATOMIC_RELAXED);
    __atomic_store_n(&team->state,
                     (LOOP_NUMBER(state) + 1) << 33 | LOOP_IS_OPEN,
                     __ATOMIC_SEQ_CST);
    wake_sleeping_threads(team);
    run_tasks_of_thread(loop);
    __atomic_and_fetch(&team->state, ~LOOP_IS_OPEN, __ATOMIC_ACQ_REL);
    while (N_INSIDE(__atomic_load_n(&team->state, __ATOMIC_ACQUIRE)) > 0)
        (void)sched_yield();
    joined = team;
}

/* The threads inherit the blocked signals, which are all but those of faults
 * and profilers: other signals go to the program's own threads. */
static void start_missing_threads(struct oj_team *team, int n_threads)
{
    static const int kept[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGPROF};
    sigset_t blocked, before;
    if (team->n_threads + 1 >= n_threads)
        return;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        sigdelset(&blocked, kept[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    while (team->n_threads + 1 < n_threads &&
           pthread_create(&team->thread[team->n_threads], NULL,
                          run_loops_of_team, team) == 0)
        team->n_threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void oj_parallel_join_team(struct oj_team *team, int n_threads)
{
    if (n_threads > OJ_MAX_THREADS)
        n_threads = OJ_MAX_THREADS;
    if (team->owner != getpid())
    {
        memset(team, 0, sizeof *team);
        team->owner = getpid();
        pthread_mutex_init(&team->mutex, NULL);
        pthread_cond_init(&team->has_work, NULL);
    }
    __atomic_store_n(&team->is_working, 1, __ATOMIC_RELAXED);
    start_missing_threads(team, n_threads);
    joined = team;
}

void oj_parallel_leave_team(struct oj_team *team)
{
    joined = NULL;
    __atomic_store_n(&team->is_working, 0, __ATOMIC_RELAXED);
}

void oj_parallel_end_team(struct oj_team *team)
{
    if (team->owner == getpid())
    {
        pthread_mutex_lock(&team->mutex);
        team->is_over = 1;
        pthread_cond_broadcast(&team->has_work);
        pthread_mutex_unlock(&team->mutex);
        for (int i = 0; i < team->n_threads; i++)
            pthread_join(team->thread[i], NULL);
        pthread_cond_destroy(&team->has_work);
        pthread_mutex_destroy(&team->mutex);
    }
    memset(team, 0, sizeof *team);
}

/* --- loops -----------------------------------------------------------------
 */

static void run_loop_on_new_threads(int n_threads, struct loop *loop)
{
    pthread_t started[OJ_MAX_THREADS];
    int n_started = 0;
    while (n_started + 1 < n_threads &&
           pthread_create(&started[n_started], NULL, run_tasks_of_thread,
                          loop) == 0)
        n_started++;
    run_tasks_of_thread(loop);
    for (int i = 0; i < n_started; i++)
        pthread_join(started[i], NULL);
}

void oj_parallel_for(int n_threads, int64_t n_tasks,
                     void (*body)(int64_t, int, void *), void *user)
{
    struct loop loop = {.n_tasks = n_tasks, .body = body, .user = user};
    atomic_init(&loop.next_task, 0);
    atomic_init(&loop.next_thread, 0);
    if (n_threads > OJ_MAX_THREADS)
        n_threads = OJ_MAX_THREADS;
    if (n_threads > n_tasks)
        n_threads = (int)n_tasks;
    if (n_threads <= 1) /* short loops are faster without atomics */
    {
        for (int64_t task = 0; task < n_tasks; task++)
            body(task, 0, user);
        return;
    }
    if (joined != NULL)
        run_loop_on_team(joined, n_threads, &loop);
    else
        run_loop_on_new_threads(n_threads, &loop);
}

struct ordered_loop
{
    oj_status (*body)(int64_t, int, void *, struct oj_error *);
    oj_status (*end)(int64_t, int, oj_status, void *, struct oj_error *);
    void *user;
    oj_status status;
    struct oj_error error;
    pthread_mutex_t mutex;
    pthread_cond_t has_ended;
    int64_t n_ended;
};

static void run_ordered_task(int64_t task, int thread, void *user)
{
    struct ordered_loop *loop = user;
    struct oj_error error;
    oj_status status = loop->body(task, thread, loop->user, &error);
    pthread_mutex_lock(&loop->mutex);
    while (loop->n_ended < task)
        pthread_cond_wait(&loop->has_ended, &loop->mutex);
    pthread_mutex_unlock(&loop->mutex);
    if (loop->status == OJ_OK)
        loop->status = loop->end(task, thread, status, loop->user, &error);
    pthread_mutex_lock(&loop->mutex);
    if (loop->status != OJ_OK && loop->error.status == OJ_OK)
        loop->error = error;
    loop->n_ended++;
    pthread_cond_broadcast(&loop->has_ended);
    pthread_mutex_unlock(&loop->mutex);
}

oj_status oj_parallel_in_order(int n_threads, int64_t n_tasks,
                               oj_status (*body)(int64_t, int, void *,
                                                 struct oj_error *),
                               oj_status (*end)(int64_t, int, oj_status, void *,
                                                struct oj_error *),
                               void *user, struct oj_error *err)
{
    struct ordered_loop loop = {.body = body, .end = end, .user = user};
    pthread_mutex_init(&loop.mutex, NULL);
    pthread_cond_init(&loop.has_ended, NULL);
    oj_parallel_for(n_threads, n_tasks, run_ordered_task, &loop);
    pthread_mutex_destroy(&loop.mutex);
    pthread_cond_destroy(&loop.has_ended);
    if (loop.status != OJ_OK && err != NULL)
        *err = loop.error;
    return loop.status;
}

struct slices
{
    int64_t n, at_once;
    void (*body)(int64_t, int64_t, void *);
    void *user;
};

static void run_slice(int64_t task, int thread, void *user)
{
    const struct slices *s = user;
    int64_t first = task * s->at_once, end = first + s->at_once;
    (void)thread;
    s->body(first, end < s->n ? end : s->n, s->user);
}

void oj_parallel_slices(int n_threads, int64_t n, int64_t at_once,
                        void (*body)(int64_t, int64_t, void *), void *user)
{
    struct slices slices = {n, at_once, body, user};
    oj_parallel_for(n_threads, (n + at_once - 1) / at_once, run_slice, &slices);
}

struct fallible_loop
{
    int64_t n, at_once;
    oj_status (*body)(int64_t, int, void *, struct oj_error *);
    void *user;
    atomic_int status;
    struct oj_error *err; /* written only by the thread that sets status */
};

static void run_body_until_error(int64_t task, int thread, void *user)
{
    struct fallible_loop *trial = user;
    int64_t end = (task + 1) * trial->at_once;
    end = end < trial->n ? end : trial->n;
    for (int64_t i = task * trial->at_once; i < end; i++)
    {
        struct oj_error err;
        oj_status status;
        int expected = OJ_OK;
        if (atomic_load_explicit(&trial->status, memory_order_relaxed) != OJ_OK)
            return;
        status = trial->body(i, thread, trial->user, &err);
        if (status != OJ_OK &&
            atomic_compare_exchange_strong(&trial->status, &expected,
                                           (int)status) &&
            trial->err != NULL)
            *trial->err = err;
    }
}

oj_status oj_parallel_try(int n_threads, int64_t n, int64_t at_once,
                          oj_status (*body)(int64_t, int, void *,
                                            struct oj_error *),
                          void *user, struct oj_error *err)
{
    struct fallible_loop trial = {
        .n = n, .at_once = at_once, .body = body, .user = user, .err = err};
    atomic_init(&trial.status, OJ_OK);
    oj_parallel_for(n_threads, (n + at_once - 1) / at_once,
                    run_body_until_error, &trial);
    return (oj_status)atomic_load(&trial.status);
}
