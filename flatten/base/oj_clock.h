/** Wall time, for what is told of how long things took. */
#ifndef OJ_CLOCK_H
#define OJ_CLOCK_H

#include <time.h>

/** Seconds since some fixed moment; never goes backwards. */
static inline double oj_clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
