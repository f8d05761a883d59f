#include "cuda_host_threads.h"

#include "../../../flatten/base/oj_alloc.h"

#include <pthread.h>
#include <unistd.h>

/* How long an idle thread polls for its next function (body) before it sleeps,
 * and how long the caller polls for the end of all bodies. Bodies launch
 * kernels and wait for them, which often takes milliseconds. */
static const double most_idle_s = 200e-6, most_waiting_s = 5e-3;

struct bodies
{
    void (*body)(int i, void *user);
    void *user;
    int n_left; /* number of bodies on other threads that are still running;
                   changed under the lock, atomically */
    pthread_cond_t ended;
};

/* A thread and the body that it runs. Idle threads are reused, because starting
 * one takes as long as copying some 10 MB. */
struct host_thread
{
    pthread_cond_t wakes;
    struct bodies *of; /* NULL: the thread is idle; changed under the lock,
                          atomically */
    int i;
    struct host_thread *next; /* next thread in the list of idle ones */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* List of idle threads, which belong to the process `owner`. */
static struct host_thread *idle;
static pid_t owner;

static void *run_bodies_of_pool_thread(void *user)
{
    struct host_thread *thread = (struct host_thread *)user;
    for (;;)
    {
        struct bodies *of = thread->of;
        of->body(thread->i, of->user);
        (void)cudaGetLastError(); /* clears CUDA's error, which the next body
                                     must not report */
        pthread_mutex_lock(&lock);
        if (__atomic_sub_fetch(&of->n_left, 1, __ATOMIC_RELAXED) == 0)
            pthread_cond_signal(&of->ended);
        __atomic_store_n(&thread->of, NULL, __ATOMIC_RELAXED);
        thread->next = idle;
        idle = thread;
        pthread_mutex_unlock(&lock);
        oj_cuda_threads_poll_until(
            most_idle_s, [=]()
            { return __atomic_load_n(&thread->of, __ATOMIC_RELAXED) != NULL; });
        pthread_mutex_lock(&lock);
        while (thread->of == NULL)
            pthread_cond_wait(&thread->wakes, &lock);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static int start_thread(struct bodies *of, int i)
{
    pthread_t id;
    struct host_thread *thread =
        (struct host_thread *)oj_calloc(1, sizeof *thread);
    if (thread == NULL)
        return 0;
    pthread_cond_init(&thread->wakes, NULL);
    thread->of = of;
    thread->i = i;
    if (pthread_create(&id, NULL, run_bodies_of_pool_thread, thread) == 0)
    {
        pthread_detach(id);
        return 1;
    }
    pthread_cond_destroy(&thread->wakes);
    oj_free(thread);
    return 0;
}

/* Runs body i on an idle or a new thread. Returns 0 if no thread can be
 * started. */
static int run_body_on_thread(struct bodies *of, int i)
{
    struct host_thread *thread;
    pthread_mutex_lock(&lock);
    if (owner != getpid()) /* after a fork, none of these threads exist in the
                              child */
        idle = NULL;
    owner = getpid();
    thread = idle;
    (void)__atomic_add_fetch(&of->n_left, 1, __ATOMIC_RELAXED);
    if (thread != NULL)
    {
        idle = thread->next;
        thread->i = i;
        __atomic_store_n(&thread->of, of, __ATOMIC_RELAXED);
        pthread_cond_signal(&thread->wakes);
    }
    pthread_mutex_unlock(&lock);
    if (thread != NULL || start_thread(of, i))
        return 1;
    pthread_mutex_lock(&lock);
    (void)__atomic_sub_fetch(&of->n_left, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
    return 0;
}

/* Runs bodies 0 .. n_aside - 1 of n on threads of the module, the others on the
 * calling thread. */
static void run_bodies(int n, int n_aside, void (*body)(int i, void *user),
                       void *user)
{
    struct bodies of = {body, user, 0, PTHREAD_COND_INITIALIZER};
    int is_on_thread[OJ_CUDA_MOST_THREADS];
    for (int i = 0; i < n; i++)
        is_on_thread[i] = i < n_aside && run_body_on_thread(&of, i);
    for (int i = 0; i < n; i++)
    {
        if (!is_on_thread[i])
            body(i, user);
    }
    oj_cuda_threads_poll_until(
        most_waiting_s,
        [&]() { return __atomic_load_n(&of.n_left, __ATOMIC_RELAXED) == 0; });
    pthread_mutex_lock(&lock); /* the last thread may still be about to signal
                                  of.ended */
    while (of.n_left > 0)
        pthread_cond_wait(&of.ended, &lock);
    pthread_mutex_unlock(&lock);
}

void oj_cuda_threads_run_on_module(int n, void (*body)(int i, void *user),
                                   void *user)
{
    run_bodies(n, n, body, user);
}

void oj_cuda_threads_run_with_caller(int n, void (*body)(int i, void *user),
                                     void *user)
{
    run_bodies(n, n - 1, body, user);
}

void oj_cuda_threads_run_parallel(int n, void (*body)(int i, void *user),
                                  void *user)
{
    if (n == 1)
        body(0, user);
    else
        oj_cuda_threads_run_on_module(n, body, user);
}

/* Builds a part of an index: part 0 on the device's own stream, other parts on
 * new streams. */
static oj_status build_index_part_on_stream(struct oj_cuda_device *device,
                                            int part,
                                            oj_cuda_part_builder *build,
                                            void *user, struct oj_error *err)
{
    OJ_CUDA_TRY(cudaSetDevice(device->ordinal), "choosing a device", err);
    if (part > 0)
        OJ_CUDA_TRY(
            cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking),
            "making a stream", err);
    OJ_TRY(build(part, device, user, err));
    OJ_CUDA_TRY(oj_cuda_wait(device->stream), "indexing the join layer", err);
    return OJ_OK;
}

static oj_status build_index_part_on_thread(struct oj_cuda_device *device,
                                            int part,
                                            oj_cuda_part_builder *build,
                                            void *user, struct oj_error *err)
{
    struct oj_cuda_device own = *device;
    oj_status status;
    own.counts_for = device;
    if (part > 0)
        own.stream = NULL;
    status = build_index_part_on_stream(&own, part, build, user, err);
    if (part > 0 && own.stream != NULL)
    {
        (void)cudaStreamSynchronize(own.stream);
        (void)cudaStreamDestroy(own.stream);
        (void)cudaGetLastError();
    }
    return status;
}

oj_status oj_cuda_threads_build_parts(struct oj_cuda_device *device, int n,
                                      oj_cuda_part_builder *build, void *user,
                                      struct oj_error *err)
{
    OJ_CUDA_TRY(oj_cuda_wait(device->stream), "indexing the join layer", err);
    return oj_cuda_threads_try_parallel(
        n,
        [=](int i, struct oj_error *error)
        { return build_index_part_on_thread(device, i, build, user, error); },
        err);
}
