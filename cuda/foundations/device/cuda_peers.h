/** Devices of a join that need copies of the same arrays: each device copies
 *  one part from the host, and the other parts from the other devices, over
 *  links that are faster than the bus.
 *
 *   host     [ 0        | 1        ]
 *   device 0   copied     from 1
 *   device 1   from 0     copied
 */
#ifndef CUDA_PEERS_H
#define CUDA_PEERS_H

#include "cuda_host_threads.h"

#include <pthread.h>

/** The devices and their barrier. Owns a lock, which
 * oj_cuda_peer_barrier_init() makes and oj_cuda_peer_barrier_destroy() frees.
 */
struct oj_cuda_peer_barrier
{
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n, n_waiting;
    /** Number of times that all devices have reached the barrier; changed
     *  atomically. */
    unsigned turn;
    int has_failed;      /**< changed atomically */
    struct oj_error why; /**< error of the first device that failed */
    pthread_t begun_by;
    /** For each device, its own memory for the array that is being
     *  exchanged. */
    struct
    {
        const char *array;
        int ordinal;
    } of[OJ_GPU_MAX_DEVICES];
};

void oj_cuda_peer_barrier_init(struct oj_cuda_peer_barrier *peers);
void oj_cuda_peer_barrier_destroy(struct oj_cuda_peer_barrier *peers);

/** Prepares a run of n devices. None of them may still be running. */
void oj_cuda_peer_barrier_begin(struct oj_cuda_peer_barrier *peers, int n);

/** Records that the calling device has failed: devices that wait for it then
 *  fail with its message. */
void oj_cuda_peer_barrier_fail(struct oj_cuda_peer_barrier *peers,
                               const struct oj_error *why);

/** Fails if a device has no thread of its own, because devices on one thread
 *  would wait for each other forever. */
OJ_MUST_USE oj_status oj_cuda_peer_barrier_check_threads(
    const struct oj_cuda_peer_barrier *peers, struct oj_error *err);

/** Waits until all devices of a run have called this function. Fails if one of
 *  them has failed. */
OJ_MUST_USE oj_status oj_cuda_peer_barrier_wait_for_all(
    struct oj_cuda_peer_barrier *peers, struct oj_error *err);

/** Completes array on all devices of device->peers: device i has written bytes
 *  first[i] .. first[i + 1] - 1 of its array, and these are copied to the
 *  arrays of all other devices. first is [devices + 1]. All devices must make
 *  their calls in one common order. Returns when the copies of all devices are
 *  complete. */
OJ_MUST_USE oj_status
oj_cuda_peers_exchange(const struct oj_cuda_device *device, cudaStream_t stream,
                       void *array, const int64_t *first, struct oj_error *err);

/** Like oj_cuda_copy_in(), for an array that every device of device->peers
 *  needs: each device must call it, and several calls must come in one common
 *  order. Waits for the stream if there are several devices and the array has 1
 *  MiB or more. */
OJ_MUST_USE oj_status oj_cuda_copy_to_all_peers(
    const struct oj_cuda_device *device, cudaStream_t stream, void *to,
    const void *from, int64_t bytes, struct oj_error *err);

/** Lets the n devices ordinal[] read the memory pool of device directly, where
 *  a link between them exists. Without a link, CUDA's driver copies through the
 *  host, which is slower. */
void oj_cuda_peers_allow_reading(const struct oj_cuda_device *device,
                                 const int *ordinal, int n);

/** Runs body(i, err) for device i of a run that has begun. If it fails, the
 *  other devices fail, too, as soon as they wait for this one. */
template <typename Body>
OJ_MUST_USE oj_status oj_cuda_run_on_peer(struct oj_cuda_peer_barrier *peers,
                                          int i, Body &body,
                                          struct oj_error *err)
{
    oj_status status = oj_cuda_peer_barrier_check_threads(peers, err);
    if (status == OJ_OK)
        status = body(i, err);
    if (status != OJ_OK)
        oj_cuda_peer_barrier_fail(peers, err);
    return status;
}

/** Runs body(i, err) for each of n devices in parallel, as run() does; body may
 *  call oj_cuda_copy_to_all_peers(). If one fails, all fail. */
template <typename Body>
OJ_MUST_USE oj_status oj_cuda_run_on_peers_with_runner(
    oj_cuda_threads_runner *run, struct oj_cuda_peer_barrier *peers, int n,
    Body body, struct oj_error *err)
{
    oj_cuda_peer_barrier_begin(peers, n);
    return oj_cuda_threads_try(
        run, n,
        [&](int i, struct oj_error *error)
        { return oj_cuda_run_on_peer(peers, i, body, error); },
        err);
}

/** Like oj_cuda_run_on_peers_with_runner(), on threads of the module
 *  (cuda_host_threads.h). The caller must be one of them: it runs the body
 *  itself if n is 1. */
template <typename Body>
OJ_MUST_USE oj_status oj_cuda_run_on_peers(struct oj_cuda_peer_barrier *peers,
                                           int n, Body body,
                                           struct oj_error *err)
{
    return oj_cuda_run_on_peers_with_runner(oj_cuda_threads_run_parallel, peers,
                                            n, body, err);
}

/** Like oj_cuda_run_on_peers_with_runner(), on threads of the module, while the
 * calling thread waits. */
template <typename Body>
OJ_MUST_USE oj_status oj_cuda_run_on_peers_on_module(
    struct oj_cuda_peer_barrier *peers, int n, Body body, struct oj_error *err)
{
    return oj_cuda_run_on_peers_with_runner(oj_cuda_threads_run_on_module,
                                            peers, n, body, err);
}

/** Like oj_cuda_run_on_peers_on_module(); meanwhile n_more threads, of which
 * the calling thread is one, run more(), which makes no CUDA call. n_more >= 1.
 */
template <typename Body, typename More>
OJ_MUST_USE oj_status oj_cuda_run_on_peers_and_caller(
    struct oj_cuda_peer_barrier *peers, int n, Body body, int n_more, More more,
    struct oj_error *err)
{
    oj_cuda_peer_barrier_begin(peers, n);
    return oj_cuda_threads_try(
        oj_cuda_threads_run_with_caller, n + n_more,
        [&](int i, struct oj_error *error)
        {
            if (i < n)
                return oj_cuda_run_on_peer(peers, i, body, error);
            more();
            return OJ_OK;
        },
        err);
}

#endif
