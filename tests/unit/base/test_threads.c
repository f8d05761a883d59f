/* Loops over tasks on threads. Kind: unit. */
#include "../run_tests.h"

#include "../../../flatten/base/oj_parallel.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum
{
    N_TASKS = 300
};

struct ordered
{
    int made_by[N_TASKS]; /* thread that ran each task, plus 1 */
    int64_t n_ended;
    int64_t first_bad; /* number of the first task that fails; all later tasks
                          fail, too */
    int64_t last;      /* task whose end function fails */
};

/* A task that takes time in proportion to its number modulo 7. */
static oj_status run_ordered_task(int64_t task, int thread, void *user,
                                  struct oj_error *err)
{
    struct ordered *o = user;
    volatile int64_t sum = 0;
    for (int64_t i = 0; i < task % 7 * 20000; i++)
        sum += i;
    ck_assert_int_ge(sum, 0);
    o->made_by[task] = thread + 1;
    return task < o->first_bad
               ? OJ_OK
               : oj_fail(err, OJ_ERR_DATA, "task %d", (int)task);
}

static oj_status end_ordered_task(int64_t task, int thread, oj_status status,
                                  void *user, struct oj_error *err)
{
    struct ordered *o = user;
    ck_assert_int_eq(task, o->n_ended);
    ck_assert_int_eq(o->made_by[task], thread + 1);
    ck_assert_int_eq(status, task < o->first_bad ? OJ_OK : OJ_ERR_DATA);
    o->n_ended++;
    return task == o->last ? oj_fail(err, OJ_ERR_IO, "the end") : status;
}

TEST_LOOP(ends_come_in_order_from_who_made_the_task, 1, 9)
{
    struct ordered o = {{0}, 0, N_TASKS, N_TASKS};
    struct oj_error err;
    ck_assert_int_eq(oj_parallel_in_order(_i, N_TASKS, run_ordered_task,
                                          end_ordered_task, &o, &err),
                     OJ_OK);
    ck_assert_int_eq(o.n_ended, N_TASKS);
}

/* A failure in a task, or in the function that ends a task. */
TEST_LOOP(the_first_failure_in_order_is_the_last_end, 1, 9)
{
    struct ordered o = {{0}, 0, 77, N_TASKS};
    struct oj_error err;
    ck_assert_int_eq(oj_parallel_in_order(_i, N_TASKS, run_ordered_task,
                                          end_ordered_task, &o, &err),
                     OJ_ERR_DATA);
    ck_assert_str_eq(err.message, "task 77");
    ck_assert_int_eq(o.n_ended, 78);
    o.n_ended = 0;
    o.last = 55;
    ck_assert_int_eq(oj_parallel_in_order(_i, N_TASKS, run_ordered_task,
                                          end_ordered_task, &o, NULL),
                     OJ_ERR_IO);
    ck_assert_int_eq(o.n_ended, 56);
}

struct team_work
{
    int64_t n_runs[N_TASKS]; /* of each task, in all loops */
    int64_t n_inner;         /* tasks of loops within tasks */
    int n_threads;
    int is_bad; /* a thread number was out of range */
};

static void count_inner_task(int64_t task, int thread, void *user)
{
    struct team_work *work = user;
    (void)task;
    (void)thread;
    __atomic_add_fetch(&work->n_inner, 1, __ATOMIC_RELAXED);
}

static void count_task(int64_t task, int thread, void *user)
{
    struct team_work *work = user;
    if (thread < 0 || thread >= work->n_threads)
        __atomic_store_n(&work->is_bad, 1, __ATOMIC_RELAXED);
    work->n_runs[task]++; /* a task runs once in a loop, and loops do not
                             overlap */
    if (task == 3)
        oj_parallel_for(2, 10, count_inner_task, work);
}

/* Loops of different length and number of threads, some after the threads of
 * the team have fallen asleep; loops within loops; joined twice, the second
 * time with fewer threads wanted than the team has. */
TEST_LOOP(a_team_runs_each_task_of_each_loop_once, 1, 9)
{
    static struct team_work work;
    struct oj_team team = {0};
    int64_t n_runs[N_TASKS] = {0}, n_inner = 0;
    memset(&work, 0, sizeof work);
    for (int t = 0; t < 2; t++)
    {
        oj_parallel_join_team(&team, (_i + t) / (t + 1));
        for (int loop = 0; loop < 300; loop++)
        {
            int64_t n_tasks = loop * 7 % N_TASKS;
            work.n_threads = 1 + loop % 11;
            if (loop % 100 == 50)
                usleep(2000);
            oj_parallel_for(work.n_threads, n_tasks, count_task, &work);
            for (int64_t i = 0; i < n_tasks; i++)
                n_runs[i]++;
            n_inner += n_tasks > 3 ? 10 : 0;
        }
        oj_parallel_leave_team(&team);
    }
    oj_parallel_end_team(&team);
    ck_assert_int_eq(memcmp(work.n_runs, n_runs, sizeof n_runs), 0);
    ck_assert_int_eq(work.n_inner, n_inner);
    ck_assert(!work.is_bad);
}

/* A process made by fork() has the memory of a team, but not its threads. The
 * thread sanitizer does not let such a process start threads. */
#ifndef __SANITIZE_THREAD__
static int64_t count_inner_tasks(struct oj_team *team)
{
    struct team_work work = {.n_threads = 4};
    oj_parallel_join_team(team, 4);
    oj_parallel_for(4, 1000, count_inner_task, &work);
    oj_parallel_leave_team(team);
    return work.n_inner;
}

TEST(a_team_survives_fork)
{
    struct oj_team team = {0};
    int status = 0;
    pid_t child;
    ck_assert_int_eq(count_inner_tasks(&team), 1000);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
    {
        int is_right;
        alarm(20);
        is_right = count_inner_tasks(&team) == 1000;
        oj_parallel_end_team(&team);
        _exit(is_right && team.n_threads == 0 ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(count_inner_tasks(&team), 1000);
    oj_parallel_end_team(&team);
}
#endif

int main(void)
{
    tests_open("threads");
    return tests_run();
}
