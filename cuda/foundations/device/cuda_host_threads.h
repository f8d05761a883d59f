/** Threads of the module's own: they leave the caller's current device as it
 *  is, and do for several devices at once what one would do for each. */
#ifndef CUDA_HOST_THREADS_H
#define CUDA_HOST_THREADS_H

#include "oj_cuda.h"

enum
{
    OJ_CUDA_MOST_THREADS = OJ_GPU_MAX_DEVICES /**< at a time */
};

void oj_cuda_thread_run_aside(void (*body)(int none, void *user), void *user);

/** Runs body() on a thread of its own and waits for it: so the caller's current
 *  device stays what it is, and no device is started that is not asked for. */
template <typename Body> void oj_cuda_thread_aside(Body body)
{
    oj_cuda_thread_run_aside([](int, void *user) { (*(Body *)user)(); }, &body);
}

/** Runs body for 0 .. n - 1, at most OJ_CUDA_MOST_THREADS, each on a thread of
 *  its own, and waits for all; those that get no thread run on the caller's, so
 *  be aside. */
void oj_cuda_threads_side_by_side(int n, void (*body)(int i, void *user),
                                  void *user);

/** Runs body(i, err) for i = 0 .. n - 1 side by side, and waits for all; the
 *  status and the message of the first that fails. */
template <typename Body>
OJ_MUST_USE oj_status oj_cuda_threads_try_side_by_side(int n, Body body,
                                                       struct oj_error *err)
{
    struct all_of_them
    {
        Body *body;
        oj_status status[OJ_CUDA_MOST_THREADS];
        struct oj_error error[OJ_CUDA_MOST_THREADS];
    } all;
    all.body = &body;
    oj_cuda_threads_side_by_side(
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

/** Runs body(i, err) for 0 <= i < n side by side, while the calling thread only
 *  waits; gives the first error. */
template <typename Body>
OJ_MUST_USE oj_status oj_cuda_threads_try_all(int n, Body body,
                                              struct oj_error *err)
{
    oj_status status = OJ_OK;
    oj_cuda_thread_aside(
        [&]() { status = oj_cuda_threads_try_side_by_side(n, body, err); });
    return status;
}

/** Builds a part of an index on device's stream. */
typedef oj_status oj_cuda_part_builder(int part, struct oj_cuda_device *device,
                                       void *user, struct oj_error *err);

/** Builds parts 0 .. n - 1 of an index, each on a thread and a stream of its
 *  own: most of the time of each is waiting for small kernels. What
 *  device->stream has to do is done before, and on return all that was
 *  enqueued.  The status and the message of the first that fails; then other
 *  parts may be there. */
OJ_MUST_USE oj_status oj_cuda_threads_build_parts(struct oj_cuda_device *device,
                                                  int n,
                                                  oj_cuda_part_builder *build,
                                                  void *user,
                                                  struct oj_error *err);

#endif
