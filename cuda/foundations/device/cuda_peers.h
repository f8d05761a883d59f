/** The devices of a join that copy the same arrays: each takes a part from the
 *  host, and what the others took from them, over links that are faster.
 *
 *   host     [ 0        | 1        ]
 *   device 0   copied     from 1
 *   device 1   from 0     copied
 */
#ifndef CUDA_PEERS_H
#define CUDA_PEERS_H

#include "cuda_host_threads.h"

#include <pthread.h>

/** Owner of a lock. */
struct oj_cuda_peers
{
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n, n_waiting;
    unsigned turn;       /**< how often all have met */
    struct oj_error why; /**< of the first that failed */
    pthread_t begun_by;
    struct
    {
        const char *array;
        int ordinal;
    } of[OJ_GPU_MAX_DEVICES]; /**< what each copies at the moment */
};

void oj_cuda_peers_init(struct oj_cuda_peers *peers);
void oj_cuda_peers_destroy(struct oj_cuda_peers *peers);

/** The n devices, of which none is at work, begin. */
void oj_cuda_peers_begin(struct oj_cuda_peers *peers, int n);

/** Runs on the thread of a device that has failed: the others do not wait for
 *  it any longer, and fail with its message. */
void oj_cuda_peers_fail(struct oj_cuda_peers *peers,
                        const struct oj_error *why);

/** Where threads are missing, devices would wait for those that come later. */
OJ_MUST_USE oj_status oj_cuda_peers_check(const struct oj_cuda_peers *peers,
                                          struct oj_error *err);

/** As oj_cuda_copy_in(), for arrays that every device of device->peers copies
 *  in the same order; waits for the stream where there are several. */
OJ_MUST_USE oj_status oj_cuda_copy_to_all(const struct oj_cuda_device *device,
                                          cudaStream_t stream, void *to,
                                          const void *from, int64_t bytes,
                                          struct oj_error *err);

/** Pools of the devices give memory that all of them can read, where they have
 *  such links; where not, copies take longer. */
void oj_cuda_peers_link(const struct oj_cuda_device *device, const int *ordinal,
                        int n);

/** body(i, err) for each of n devices at once, which may use
 *  oj_cuda_copy_to_all(). Runs aside. */
template <typename Body>
OJ_MUST_USE oj_status oj_cuda_try_peers(struct oj_cuda_peers *peers, int n,
                                        Body body, struct oj_error *err)
{
    oj_cuda_peers_begin(peers, n);
    return oj_cuda_threads_try_side_by_side(
        n,
        [&](int i, struct oj_error *error)
        {
            oj_status status = oj_cuda_peers_check(peers, error);
            if (status == OJ_OK)
                status = body(i, error);
            if (status != OJ_OK)
                oj_cuda_peers_fail(peers, error);
            return status;
        },
        err);
}

#endif
