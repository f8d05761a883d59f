/* Loops over tasks on threads. Kind: unit. */
#include "../run_tests.h"

#include "../../../flatten/base/oj_parallel.h"

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

int main(void)
{
    tests_open("threads");
    return tests_run();
}
