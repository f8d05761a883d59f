/** Waits until another thread waits, for tests of the order in which threads
 * wait for each other. Include once. */
#ifndef SLEEPING_THREAD_H
#define SLEEPING_THREAD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* declares syscall() */
#endif

#include <stdio.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* Stores the number of the calling thread. Called immediately before the call
 * in which the thread waits. */
static inline void store_thread_number(pid_t *number)
{
    __atomic_store_n(number, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
}

static inline int thread_sleeps(const pid_t *number)
{
    pid_t of = __atomic_load_n(number, __ATOMIC_ACQUIRE);
    char path[64], state = 0;
    FILE *file;
    if (of == 0)
        return 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)of);
    file = fopen(path, "r");
    if (file == NULL)
        return 1; /* it has ended */
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    fclose(file);
    return state == 'S';
}

/* Returns when the thread has slept in five tests one after another: threads
 * that wait wake now and then to look at their cancel flag. */
static inline void wait_until_thread_sleeps(const pid_t *number)
{
    const struct timespec t = {0, 2000000};
    int n_asleep = 0;
    while (n_asleep < 5)
    {
        n_asleep = thread_sleeps(number) ? n_asleep + 1 : 0;
        nanosleep(&t, NULL);
    }
}

#endif
