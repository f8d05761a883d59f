/** Wall-clock time, for durations in summaries and logs. */
#ifndef OJ_CLOCK_H
#define OJ_CLOCK_H

#include <time.h>

/** Returns the seconds since some fixed moment; monotonic. */
static inline double oj_clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
