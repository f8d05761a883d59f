#include "oj_lazy.h"

#include "../../flatten/base/oj_array.h"
#include "../base/oj_cancel.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

/* How often a waiting reader looks whether it is to stop itself. */
#define LOOK_NS 50000000

struct oj_lazy
{
    oj_lazy_work *work;
    void *user;
    pthread_t thread;

    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t moved;  /* any of it has changed */
    const void *item;      /* on its way, or in use; NULL: none */
    int is_in_use;         /* item was handed over */
    int is_stopping;
    int has_ended; /* status and error are final */
    oj_status status;
    struct oj_error error;
};

static void *work_main(void *user)
{
    struct oj_lazy *lazy = user;
    struct oj_error error = {OJ_OK, ""};
    oj_status status = lazy->work(lazy->user, lazy, &error);
    pthread_mutex_lock(&lazy->mutex);
    lazy->has_ended = 1;
    lazy->status = status;
    lazy->error = error;
    pthread_cond_broadcast(&lazy->moved);
    pthread_mutex_unlock(&lazy->mutex);
    return NULL;
}

/* Waits are timed by a clock that nobody sets. */
static int init_locks(struct oj_lazy *lazy)
{
    pthread_condattr_t attributes;
    int is_made;
    if (pthread_mutex_init(&lazy->mutex, NULL) != 0)
        return 0;
    is_made = pthread_condattr_init(&attributes) == 0;
    if (is_made)
    {
        is_made =
            pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
            pthread_cond_init(&lazy->moved, &attributes) == 0;
        pthread_condattr_destroy(&attributes);
    }
    if (!is_made)
        pthread_mutex_destroy(&lazy->mutex);
    return is_made;
}

oj_status oj_lazy_start(oj_lazy_work *work, void *user, struct oj_lazy **out,
                        struct oj_error *err)
{
    struct oj_lazy *lazy = oj_calloc(1, sizeof *lazy);
    if (lazy == NULL)
        return oj_fail_nomem(err, 1, sizeof *lazy);
    lazy->work = work;
    lazy->user = user;
    if (!init_locks(lazy))
    {
        oj_free(lazy);
        return oj_fail(err, OJ_ERR_NOMEM, "could not make a lock");
    }
    if (pthread_create(&lazy->thread, NULL, work_main, lazy) != 0)
    {
        pthread_cond_destroy(&lazy->moved);
        pthread_mutex_destroy(&lazy->mutex);
        oj_free(lazy);
        return oj_fail(err, OJ_ERR_NOMEM, "could not start a thread");
    }
    *out = lazy;
    return OJ_OK;
}

oj_status oj_lazy_give(struct oj_lazy *lazy, const void *item,
                       struct oj_error *err)
{
    int goes_on;
    pthread_mutex_lock(&lazy->mutex);
    lazy->item = item;
    lazy->is_in_use = 0;
    pthread_cond_broadcast(&lazy->moved);
    while (lazy->item != NULL && !lazy->is_stopping)
        pthread_cond_wait(&lazy->moved, &lazy->mutex);
    lazy->item = NULL;
    goes_on = !lazy->is_stopping;
    pthread_mutex_unlock(&lazy->mutex);
    return goes_on ? OJ_OK : oj_fail_cancelled(err);
}

/* With the lock held. */
static void wait_a_moment(struct oj_lazy *lazy)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_NS;
    if (until.tv_nsec >= 1000000000)
    {
        until.tv_sec += 1;
        until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&lazy->moved, &lazy->mutex, &until);
}

oj_status oj_lazy_next(struct oj_lazy *lazy, const void **item,
                       struct oj_error *err)
{
    oj_status status = OJ_OK;
    int is_cancelled = 0;
    pthread_mutex_lock(&lazy->mutex);
    if (lazy->is_in_use)
    {
        lazy->item = NULL;
        lazy->is_in_use = 0;
        pthread_cond_broadcast(&lazy->moved);
    }
    while (lazy->item == NULL && !lazy->has_ended && !is_cancelled)
    {
        wait_a_moment(lazy);
        is_cancelled = oj_is_cancelled();
    }
    *item = lazy->item;
    lazy->is_in_use = lazy->item != NULL;
    if (lazy->item == NULL && lazy->has_ended)
        status = lazy->status;
    else if (lazy->item == NULL)
        status = OJ_ERR_CANCELLED;
    pthread_mutex_unlock(&lazy->mutex);
    if (status == OJ_OK)
        return OJ_OK;
    *item = NULL;
    if (status == OJ_ERR_CANCELLED)
        return oj_fail_cancelled(err);
    return oj_fail(err, status, "%s", lazy->error.message);
}

void oj_lazy_stop(struct oj_lazy *lazy)
{
    if (lazy == NULL)
        return;
    pthread_mutex_lock(&lazy->mutex);
    lazy->is_stopping = 1;
    pthread_cond_broadcast(&lazy->moved);
    pthread_mutex_unlock(&lazy->mutex);
    pthread_join(lazy->thread, NULL);
    pthread_cond_destroy(&lazy->moved);
    pthread_mutex_destroy(&lazy->mutex);
    oj_free(lazy);
}
