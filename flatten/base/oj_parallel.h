/** Parallel loops over tasks, and teams of threads for several short loops. */
#ifndef OJ_PARALLEL_H
#define OJ_PARALLEL_H

#include "oj_status.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

/** Maximum number of threads of a loop. */
#define OJ_MAX_THREADS 1024

/** Returns the number of processors that this process may use; at least 1. */
int oj_cpu_count(void);

/** Runs body(task, thread, user) for every task 0 <= task < n_tasks. n_threads
 *  threads, including the calling one, take tasks in ascending order; 0 <=
 *  thread < n_threads. If threads cannot be started, fewer are used. Results
 *  must not depend on which thread takes which task. */
void oj_parallel_for(int n_threads, int64_t n_tasks,
                     void (*body)(int64_t task, int thread, void *user),
                     void *user);

/** Threads that are kept for loops. A loop without a team starts and ends its
 *  threads, which takes 30 to 70 microseconds for each: too long for loops of a
 *  millisecond. Zeroed memory is a valid team without threads. The members are
 *  private. */
struct oj_team
{
    /* Number of the loop << 33 | is open << 32 | threads of the team that have
     * entered the loop << 16 | threads of the team in the loop. */
    uint64_t state;
    void *loop;     /* the loop that is open */
    int most;       /* threads of the team that may enter the loop */
    int is_working; /* between oj_parallel_join_team() and
                       oj_parallel_leave_team() */
    int is_over;    /* the threads end */
    int n_asleep;
    pid_t owner;   /* process that has the threads, mutex and condition; 0: they
                      do not exist */
    int n_threads; /* threads in `thread` */
    pthread_mutex_t mutex;
    pthread_cond_t has_work; /* a loop is open, or is_over is set */
    pthread_t thread[OJ_MAX_THREADS];
};

/** Until oj_parallel_leave_team(), the loops of the calling thread run on it
 * and on the threads of the team, instead of on new threads; loops within these
 * loops do not. First starts the threads that the team lacks to n_threads - 1;
 * if that fails, loops get fewer threads. A team may be joined by one thread at
 * a time, and a thread may join one team at a time. */
void oj_parallel_join_team(struct oj_team *team, int n_threads);

/** After this, the threads of the team sleep. */
void oj_parallel_leave_team(struct oj_team *team);

/** Ends the threads and waits for their end. In a process made by fork() there
 *  are none. Zeroes the team. */
void oj_parallel_end_team(struct oj_team *team);

/** Runs body, which can fail, for every task. A thread that has finished a task
 *  calls end(task, thread, status, user, err), with the result of body, before
 *  it takes another task; calls of end are serialised in task order. After an
 *  end that fails no further end is called, and its status and error are
 *  returned. */
OJ_MUST_USE oj_status oj_parallel_in_order(
    int n_threads, int64_t n_tasks,
    oj_status (*body)(int64_t task, int thread, void *user,
                      struct oj_error *err),
    oj_status (*end)(int64_t task, int thread, oj_status status, void *user,
                     struct oj_error *err),
    void *user, struct oj_error *err);

/** Runs body in parallel for slices [first, end) that divide 0 <= i < n; each
 *  begins at a multiple of at_once. */
void oj_parallel_slices(int n_threads, int64_t n, int64_t at_once,
                        void (*body)(int64_t first, int64_t end, void *user),
                        void *user);

/** Runs body, which can fail, for 0 <= i < n in parallel; each thread takes
 *  at_once consecutive i at a time. After a failure no more are taken, and the
 *  status and error of the failure that came first in time are returned. */
OJ_MUST_USE oj_status oj_parallel_try(int n_threads, int64_t n, int64_t at_once,
                                      oj_status (*body)(int64_t i, int thread,
                                                        void *user,
                                                        struct oj_error *err),
                                      void *user, struct oj_error *err);

#endif
