/** What the workers of a batch share, each of which takes chunk after chunk:
 *  whether they go on, and the first failure. */
#ifndef CUDA_WORKER_STATUS_H
#define CUDA_WORKER_STATUS_H

#include "oj_cuda.h"

#include <pthread.h>

struct oj_cuda_workers
{
    int stop;    /**< 1: nobody goes on; changed atomically */
    int n_ready; /**< workers that have what they need; changed atomically */
    pthread_mutex_t lock; /**< of what follows */
    oj_status status;     /**< OJ_OK, or the first failure, told by error */
    struct oj_error error;
    oj_status lack; /**< why a worker has not what it needs */
    struct oj_error lack_error;
};

void oj_cuda_workers_start(struct oj_cuda_workers *workers);

/** 1: the batch has failed. */
int oj_cuda_workers_stopped(const struct oj_cuda_workers *workers);

/** A failure of the batch; status OJ_OK: none. */
void oj_cuda_workers_told(struct oj_cuda_workers *workers, oj_status status,
                          const struct oj_error *error);

/** Whether a worker has what it needs: without, it leaves the chunks to the
 *  others, and the batch fails only where all lack it. */
void oj_cuda_workers_ready(struct oj_cuda_workers *workers, oj_status status,
                           const struct oj_error *error);

/** What became of the batch, when all workers are back. */
OJ_MUST_USE oj_status oj_cuda_workers_end(struct oj_cuda_workers *workers,
                                          struct oj_error *err);

#endif
