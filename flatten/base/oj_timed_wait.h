/** Waits that end after some time, for threads that look at a flag meanwhile.
 *  They go by the monotonic clock: when an administrator or a time server sets
 *  the clock of the machine, no wait becomes longer. */
#ifndef OJ_TIMED_WAIT_H
#define OJ_TIMED_WAIT_H

#include <pthread.h>
#include <time.h>

/** Makes a condition for oj_timed_wait().  1, or 0 when it cannot be made;
 *  pthread_cond_destroy() frees it. */
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

/** How often threads that wait look at their cancel flag, in ms. */
#define OJ_LOOK_MS 50

/** Waits for the condition, ms (below 1000) at most; mutex is locked.  0 when
 *  it was signalled, or for no reason, as pthread_cond_wait() does. */
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

/** Waits for the condition, or until it is time to look at a cancel flag. */
static inline void oj_wait_or_look(pthread_cond_t *condition,
                                   pthread_mutex_t *mutex)
{
    (void)oj_timed_wait(condition, mutex, OJ_LOOK_MS);
}

#endif
