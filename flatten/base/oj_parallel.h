/** Parallel loops over tasks. */
#ifndef OJ_PARALLEL_H
#define OJ_PARALLEL_H

#include "oj_status.h"

#include <stdint.h>

/** Processors this process may use; at least 1. */
int oj_cpu_count(void);

/** Runs body(task, thread, user) for every task 0 <= task < n_tasks, taken in
 *  ascending order by n_threads threads, the calling one included; thread is
 *  below n_threads.  Threads that cannot be started are done without.  Results
 *  must not depend on which thread takes which task. */
void oj_parallel_for(int n_threads, int64_t n_tasks,
                     void (*body)(int64_t task, int thread, void *user),
                     void *user);

/** Runs a body that can fail for every task; a thread that is done with it
 * calls end(task, thread, status, user, err) before its next task: one after
 * another, in the order of the tasks. status, err: those of body. The first end
 * that does not return OJ_OK is the last one; its status and error are given.
 */
OJ_MUST_USE oj_status oj_parallel_in_order(
    int n_threads, int64_t n_tasks,
    oj_status (*body)(int64_t task, int thread, void *user,
                      struct oj_error *err),
    oj_status (*end)(int64_t task, int thread, oj_status status, void *user,
                     struct oj_error *err),
    void *user, struct oj_error *err);

/** Runs body for all of 0 <= i < n in the same way, in slices first <= i < end
 *  of at_once that begin at its multiples. */
void oj_parallel_slices(int n_threads, int64_t n, int64_t at_once,
                        void (*body)(int64_t first, int64_t end, void *user),
                        void *user);

/** Runs body for 0 <= i < n in the same way, at_once of them in a row on one
 *  thread, where body can fail: after an error, which is then in err, no
 *  further one is begun.  Of several errors the first in time counts. */
OJ_MUST_USE oj_status oj_parallel_try(int n_threads, int64_t n, int64_t at_once,
                                      oj_status (*body)(int64_t i, int thread,
                                                        void *user,
                                                        struct oj_error *err),
                                      void *user, struct oj_error *err);

#endif
