/** Threads of the module's own: they leave the caller's current device as it
 *  is, and do for several devices at once what one would do for each. */
#ifndef CUDA_THREADS_H
#define CUDA_THREADS_H

#include "oj_cuda.h"

/** Runs body on a thread of its own and waits for it: so the caller's current
 *  device stays what it is, and no device is started that is not asked for. */
void oj_cuda_aside(void (*body)(void *user), void *user);

/** Runs body for 0 .. n - 1, each on a thread of its own, and waits for all;
 *  those that get no thread run on the caller's, so be aside. */
void oj_cuda_side_by_side(int n, void (*body)(int i, void *user), void *user);

/** Runs body(i, err) for i = 0 .. n - 1 aside and side by side, at most
 *  OJ_GPU_MAX_DEVICES of them, and waits for all; the status and the message of
 *  the first that fails. */
template <typename Body>
OJ_MUST_USE oj_status oj_cuda_try_all(int n, Body body, struct oj_error *err)
{
    struct
    {
        Body *body;
        int n;
        oj_status status[OJ_GPU_MAX_DEVICES];
        struct oj_error error[OJ_GPU_MAX_DEVICES];
    } all;
    typedef decltype(all) all_type;
    all.body = &body;
    all.n = n;
    oj_cuda_aside(
        [](void *user)
        {
            oj_cuda_side_by_side(((all_type *)user)->n,
                                 [](int i, void *same)
                                 {
                                     all_type *a = (all_type *)same;
                                     a->status[i] = (*a->body)(i, &a->error[i]);
                                 },
                                 user);
        },
        &all);
    for (int i = 0; i < n; i++)
    {
        if (all.status[i] != OJ_OK)
            return oj_fail(err, all.status[i], "%s", all.error[i].message);
    }
    return OJ_OK;
}

/** Builds parts 0 .. n - 1 of an index, at most OJ_CUDA_MOST_PARTS, each on a
 *  thread and a stream of its own: most of the time of each is waiting for
 * small kernels. What device->stream has to do is done before, and on return
 * all that was enqueued.  The status and the message of the first that fails;
 * then other parts may be there. */
OJ_MUST_USE oj_status
oj_cuda_build_parts(struct oj_cuda_device *device, int n,
                    oj_status (*build)(int part, struct oj_cuda_device *device,
                                       void *user, struct oj_error *err),
                    void *user, struct oj_error *err);

enum
{
    OJ_CUDA_MOST_PARTS = 4
};

#endif
