/* Work on a background thread whose results are asked for one by one.
 * Kind: unit; threads. */
#include "../../../driver/base/oj_cancel.h"
#include "../../../driver/dataset/oj_lazy.h"
#include "../../../flatten/base/oj_array.h"

#include "../run_tests.h"

#include <string.h>
#include <unistd.h>

static struct oj_error error;

/* Gives numbers, and fails where it is told to. */
struct number_source
{
    int n, fails_at;
    int n_given; /* let go by who asked */
    int was_stopped;
};

static oj_status give_numbers(void *user, struct oj_lazy *lazy,
                              struct oj_error *err)
{
    struct number_source *numbers = user;
    for (int i = 0; i < numbers->n; i++)
    {
        oj_status status;
        if (i == numbers->fails_at)
            return oj_fail(err, OJ_ERR_DATA, "number %d is bad", i);
        status = oj_lazy_give(lazy, &i, err);
        numbers->was_stopped = status != OJ_OK;
        if (status != OJ_OK)
            return status;
        numbers->n_given++;
    }
    return OJ_OK;
}

static struct oj_lazy *start(struct number_source *numbers)
{
    struct oj_lazy *lazy = NULL;
    ck_assert_int_eq(oj_lazy_start(give_numbers, numbers, &lazy, &error),
                     OJ_OK);
    return lazy;
}

START_TEST(test_all)
{
    struct number_source numbers = {1000, -1, 0, 0};
    struct oj_lazy *lazy = start(&numbers);
    const void *item = NULL;
    for (int i = 0; i < 1000; i++)
    {
        ck_assert_int_eq(oj_lazy_next(lazy, &item, &error), OJ_OK);
        ck_assert_int_eq(*(const int *)item, i);
    }
    for (int i = 0; i < 3; i++)
    {
        ck_assert_int_eq(oj_lazy_next(lazy, &item, &error), OJ_OK);
        ck_assert_ptr_null(item);
    }
    oj_lazy_stop(lazy);
    ck_assert_int_eq(numbers.n_given, 1000);
}
END_TEST

/* What is in use stays until the next one is asked for. */
START_TEST(test_one_at_a_time)
{
    struct number_source numbers = {10, -1, 0, 0};
    struct oj_lazy *lazy = start(&numbers);
    const void *item = NULL;
    usleep(20000);
    ck_assert_int_eq(oj_lazy_next(lazy, &item, &error), OJ_OK);
    usleep(20000);
    ck_assert_int_eq(*(const int *)item, 0);
    ck_assert_int_eq(__atomic_load_n(&numbers.n_given, __ATOMIC_RELAXED), 0);
    oj_lazy_stop(lazy);
    ck_assert_int_eq(numbers.n_given, 0);
    ck_assert_int_eq(numbers.was_stopped, 1);
}
END_TEST

START_TEST(test_error)
{
    struct number_source numbers = {10, _i, 0, 0};
    struct oj_lazy *lazy = start(&numbers);
    const void *item = NULL;
    for (int i = 0; i < _i; i++)
        ck_assert_int_eq(oj_lazy_next(lazy, &item, &error), OJ_OK);
    for (int i = 0; i < 2; i++)
    {
        ck_assert_int_eq(oj_lazy_next(lazy, &item, &error), OJ_ERR_DATA);
        ck_assert_ptr_null(item);
        ck_assert_ptr_nonnull(strstr(error.message, "is bad"));
    }
    oj_lazy_stop(lazy);
}
END_TEST

START_TEST(test_stop_anywhere)
{
    for (int i = 0; i < 200; i++)
    {
        struct number_source numbers = {20, -1, 0, 0};
        struct oj_lazy *lazy = start(&numbers);
        const void *item = NULL;
        for (int k = 0; k < i % 25; k++)
            ck_assert_int_eq(oj_lazy_next(lazy, &item, &error), OJ_OK);
        oj_lazy_stop(lazy);
    }
    oj_lazy_stop(NULL);
}
END_TEST

static oj_status never_give(void *user, struct oj_lazy *lazy,
                            struct oj_error *err)
{
    const int *ends = user;
    (void)lazy;
    while (!__atomic_load_n(ends, __ATOMIC_RELAXED))
        usleep(1000);
    return oj_fail(err, OJ_ERR_CANCELLED, "interrupted");
}

/* Who waits is let go when their own flag is raised; the work goes on. */
START_TEST(test_waiting_is_cancelled)
{
    struct oj_lazy *lazy = NULL;
    const void *item = NULL;
    int flag = 1, ends = 0;
    const int *before = oj_cancel_use(&flag);
    ck_assert_int_eq(oj_lazy_start(never_give, &ends, &lazy, &error), OJ_OK);
    ck_assert_int_eq(oj_lazy_next(lazy, &item, &error), OJ_ERR_CANCELLED);
    oj_cancel_use(before);
    __atomic_store_n(&ends, 1, __ATOMIC_RELAXED);
    oj_lazy_stop(lazy);
}
END_TEST

START_TEST(test_memory)
{
    struct number_source numbers = {1, -1, 0, 0};
    struct oj_lazy *lazy = NULL;
    oj_alloc_fail_at(1);
    ck_assert_int_eq(oj_lazy_start(give_numbers, &numbers, &lazy, &error),
                     OJ_ERR_NOMEM);
    oj_alloc_fail_at(0);
    ck_assert_ptr_null(lazy);
}
END_TEST

int main(void)
{
    TCase *tcase = tests_open("lazy");
    tcase_add_test(tcase, test_all);
    tcase_add_test(tcase, test_one_at_a_time);
    tcase_add_loop_test(tcase, test_error, 0, 4);
    tcase_add_test(tcase, test_stop_anywhere);
    tcase_add_test(tcase, test_waiting_is_cancelled);
    tcase_add_test(tcase, test_memory);
    return tests_run();
}
