/** Host threads of the module. They make CUDA calls without changing the
 *  caller's current device, and run one function for several devices at once.
 */
#ifndef CUDA_HOST_THREADS_H
#define CUDA_HOST_THREADS_H

#include "oj_cuda.h"

#include <sched.h>

/** Returns once is_over() returns 1, or most_s seconds have passed. The thread
 *  polls and yields its processor, because waking a thread that sleeps takes 50
 *  to 100 microseconds, as long as many kernels. */
template <typename IsOver>
void oj_cuda_threads_poll_until(double most_s, IsOver is_over)
{
    double end = oj_clock_seconds() + most_s;
    while (!is_over() && oj_clock_seconds() < end)
        (void)sched_yield();
}

enum
{
    OJ_CUDA_MOST_THREADS = OJ_GPU_MAX_DEVICES /**< maximum number of threads at
                                                   a time */
};

/** Runs body(0) .. body(n - 1), each on a thread of the module, and waits for
 *  all. n <= OJ_CUDA_MOST_THREADS. If no thread can be started for a body, the
 *  body runs on the calling thread, and may change the current device of that
 *  thread. */
void oj_cuda_threads_run_on_module(int n, void (*body)(int i, void *user),
                                   void *user);

/** Runs body() on another thread and waits for it: the caller's current device
 *  stays current, and CUDA initialises no device that body does not use. */
template <typename Body> void oj_cuda_threads_run_one_on_module(Body body)
{
    oj_cuda_threads_run_on_module(
        1, [](int, void *user) { (*(Body *)user)(); }, &body);
}

/** Like oj_cuda_threads_run_on_module(), but the calling thread runs body n - 1
 *  itself while the others wake; that body must make no CUDA call. */
void oj_cuda_threads_run_with_caller(int n, void (*body)(int i, void *user),
                                     void *user);

/** Like oj_cuda_threads_run_on_module(), but if n is 1 the calling thread,
 * which must be one of the module, runs the body itself. */
void oj_cuda_threads_run_parallel(int n, void (*body)(int i, void *user),
                                  void *user);

typedef void oj_cuda_threads_runner(int n, void (*body)(int i, void *user),
                                    void *user);

/** Runs body(i, err) for i = 0 .. n - 1 as run() does. Returns the status and
 *  the message of the failed body with the smallest i. */
template <typename Body>
OJ_MUST_USE oj_status oj_cuda_threads_try(oj_cuda_threads_runner *run, int n,
                                          Body body, struct oj_error *err)
{
    struct all_of_them
    {
        Body *body;
        oj_status status[OJ_CUDA_MOST_THREADS];
        struct oj_error error[OJ_CUDA_MOST_THREADS];
    } all;
    all.body = &body;
    run(
        n,
        [](int i, void *user)
        {
            struct all_of_them *a = (struct all_of_them *)user;
            a->status[i] = (*a->body)(i, &a->error[i]);
        },
        &all);
    for (int i = 0; i < n; i++)
    {
        if (all.status[i] != OJ_OK)
            return oj_fail(err, all.status[i], "%s", all.error[i].message);
    }
    return OJ_OK;
}

/** Runs body(i, err) for i = 0 .. n - 1 as oj_cuda_threads_run_parallel() does.
 */
template <typename Body>
OJ_MUST_USE oj_status oj_cuda_threads_try_parallel(int n, Body body,
                                                   struct oj_error *err)
{
    return oj_cuda_threads_try(oj_cuda_threads_run_parallel, n, body, err);
}

/** Runs body(i, err) for 0 <= i < n in parallel on threads of the module, while
 *  the calling thread waits. */
template <typename Body>
OJ_MUST_USE oj_status oj_cuda_threads_try_on_module(int n, Body body,
                                                    struct oj_error *err)
{
    return oj_cuda_threads_try(oj_cuda_threads_run_on_module, n, body, err);
}

/** Builds one part of an index on device->stream. */
typedef oj_status oj_cuda_part_builder(int part, struct oj_cuda_device *device,
                                       void *user, struct oj_error *err);

/** Builds parts 0 .. n - 1 of an index in parallel, each on its own thread and
 *  stream, because a part spends most of its time waiting for small kernels.
 *  First waits for device->stream; on return, all streams have finished.
 *  Returns the status and the message of the smallest part that failed; other
 *  parts may exist then. */
OJ_MUST_USE oj_status oj_cuda_threads_build_parts(struct oj_cuda_device *device,
                                                  int n,
                                                  oj_cuda_part_builder *build,
                                                  void *user,
                                                  struct oj_error *err);

#endif
