/* Loops over tasks on threads. Kind: unit. */
#include "../run_tests.h"

#include "../../../flatten/base/oj_threads.h"

enum
{
    N_TASKS = 300
};

struct ordered
{
    int made_by[N_TASKS]; /* thread + 1 */
    int64_t n_ended;
};

/* Tasks take longer and longer, and then short again. */
static void make(int64_t task, int thread, void *user)
{
    struct ordered *o = user;
    volatile int64_t sum = 0;
    for (int64_t i = 0; i < task % 7 * 20000; i++)
        sum += i;
    ck_assert_int_ge(sum, 0);
    o->made_by[task] = thread + 1;
}

static void end(int64_t task, int thread, void *user)
{
    struct ordered *o = user;
    ck_assert_int_eq(task, o->n_ended);
    ck_assert_int_eq(o->made_by[task], thread + 1);
    o->n_ended++;
}

TEST_LOOP(ends_come_in_order_from_who_made_the_task, 1, 9)
{
    struct ordered o = {{0}, 0};
    oj_parallel_in_order(_i, N_TASKS, make, end, &o);
    ck_assert_int_eq(o.n_ended, N_TASKS);
}

int main(void)
{
    tests_open("threads");
    return tests_run();
}
