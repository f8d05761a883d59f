/* _GNU_SOURCE: for sched_getaffinity and CPU_COUNT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "oj_parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#define MAX_THREADS 1024

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
    return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (int)n;
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

void oj_parallel_for(int n_threads, int64_t n_tasks,
                     void (*body)(int64_t, int, void *), void *user)
{
    pthread_t started[MAX_THREADS];
    struct loop loop;
    int n_started = 0;
    atomic_init(&loop.next_task, 0);
    atomic_init(&loop.next_thread, 0);
    loop.n_tasks = n_tasks;
    loop.body = body;
    loop.user = user;
    if (n_threads > MAX_THREADS)
        n_threads = MAX_THREADS;
    if (n_threads > n_tasks)
        n_threads = (int)n_tasks;
    if (n_threads <= 1) /* short loops are faster without atomics */
    {
        for (int64_t task = 0; task < n_tasks; task++)
            body(task, 0, user);
        return;
    }
    while (n_started + 1 < n_threads &&
           pthread_create(&started[n_started], NULL, run_tasks_of_thread,
                          &loop) == 0)
        n_started++;
    run_tasks_of_thread(&loop);
    for (int i = 0; i < n_started; i++)
        pthread_join(started[i], NULL);
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
