/** Waits with a time limit, for threads that must poll a flag meanwhile. They
 *  use the monotonic clock, so that a change of the system time does not
 *  lengthen a wait. */
#ifndef OJ_TIMED_WAIT_H
#define OJ_TIMED_WAIT_H

#include <pthread.h>
#include <time.h>

/** Initialises a condition variable for oj_timed_wait(). Returns 1, or 0 on
 *  failure; pthread_cond_destroy() frees it. */
static inline int oj_timed_wait_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    int is_made;
    if (pthread_condattr_init(&attributes) != 0)
        return 0;
    is_made = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
              pthread_cond_init(condition, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    return is_made;
}

/** Milliseconds after which a waiting thread polls the cancel flag again. */
#define OJ_CANCEL_POLL_MS 50

/** Waits on the condition variable for at most ms (< 1000) milliseconds; mutex
 *  must be locked. Returns 0 if it was signalled or woke up spuriously, as
 *  pthread_cond_wait() may; ETIMEDOUT at the time limit. */
static inline int oj_timed_wait(pthread_cond_t *condition,
                                pthread_mutex_t *mutex, int ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ms * 1000000L;
    if (until.tv_nsec >= 1000000000L)
    {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    return pthread_cond_timedwait(condition, mutex, &until);
}

/** Waits on the condition variable until it is signalled or the cancel flag is
 *  due to be polled. */
static inline void oj_timed_wait_until_poll(pthread_cond_t *condition,
                                            pthread_mutex_t *mutex)
{
    (void)oj_timed_wait(condition, mutex, OJ_CANCEL_POLL_MS);
}

#endif
