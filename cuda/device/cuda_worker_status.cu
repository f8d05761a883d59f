#include "cuda_worker_status.h"

#include <string.h>

void oj_cuda_workers_start(struct oj_cuda_workers *workers)
{
    memset(workers, 0, sizeof *workers);
    pthread_mutex_init(&workers->lock, NULL);
}

int oj_cuda_workers_stopped(const struct oj_cuda_workers *workers)
{
    return __atomic_load_n(&workers->stop, __ATOMIC_RELAXED);
}

void oj_cuda_workers_told(struct oj_cuda_workers *workers, oj_status status,
                          const struct oj_error *error)
{
    if (status == OJ_OK)
        return;
    pthread_mutex_lock(&workers->lock);
    if (workers->status == OJ_OK)
    {
        workers->status = status;
        workers->error = *error;
    }
    pthread_mutex_unlock(&workers->lock);
    __atomic_store_n(&workers->stop, 1, __ATOMIC_RELAXED);
}

void oj_cuda_workers_ready(struct oj_cuda_workers *workers, oj_status status,
                           const struct oj_error *error)
{
    if (status == OJ_OK)
    {
        __atomic_add_fetch(&workers->n_ready, 1, __ATOMIC_RELAXED);
        return;
    }
    pthread_mutex_lock(&workers->lock);
    workers->lack = status;
    workers->lack_error = *error;
    pthread_mutex_unlock(&workers->lock);
}

oj_status oj_cuda_workers_end(struct oj_cuda_workers *workers,
                              struct oj_error *err)
{
    pthread_mutex_destroy(&workers->lock);
    if (workers->status != OJ_OK)
        return oj_fail(err, workers->status, "%s", workers->error.message);
    if (workers->n_ready == 0 && workers->lack != OJ_OK)
        return oj_fail(err, workers->lack, "%s", workers->lack_error.message);
    return OJ_OK;
}
