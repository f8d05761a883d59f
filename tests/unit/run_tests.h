/** Frame of a test program. The tests that TEST() and TEST_LOOP() define run in
 * the order of the file, in one test case without a time limit of its own.
 * Include once. */
#ifndef RUN_TESTS_H
#define RUN_TESTS_H

#include "assertions.h"
#include "owned.h"

#include <stdlib.h>

#define TESTS_MOST 64

static struct
{
    const TTest *test[TESTS_MOST];
    int first[TESTS_MOST], end[TESTS_MOST];
    int n;
    Suite *suite;
} listed_tests;

static inline void tests_add(const TTest *test, int first, int end)
{
    if (listed_tests.n == TESTS_MOST)
        abort();
    listed_tests.test[listed_tests.n] = test;
    listed_tests.first[listed_tests.n] = first;
    listed_tests.end[listed_tests.n++] = end;
}

/** A test that runs for _i = first ... end - 1. Its body follows. */
#define TEST_LOOP(name, first, end)                                            \
    static void name##_test(int _i);                                           \
    __attribute__((constructor)) static void name##_add(void)                  \
    {                                                                          \
        static const TTest test = {#name, name##_test, __FILE__, __LINE__};    \
        tests_add(&test, first, end);                                          \
    }                                                                          \
    static void name##_test(int _i __attribute__((unused)))

/** A test; its body follows. */
#define TEST(name) TEST_LOOP(name, 0, 1)

/** Opens and returns the test case of all tests. Fixtures can be added to
 *  it. */
static inline TCase *tests_open(const char *name)
{
    TCase *tcase = tcase_create(name);
    listed_tests.suite = suite_create(name);
    tcase_set_timeout(tcase, 0);
    suite_add_tcase(listed_tests.suite, tcase);
    for (int i = 0; i < listed_tests.n; i++)
        tcase_add_loop_test(tcase, listed_tests.test[i], listed_tests.first[i],
                            listed_tests.end[i]);
    return tcase;
}

/* Runs all tests. Returns the exit code for main(). */
static inline int tests_run(void)
{
    SRunner *runner = srunner_create(listed_tests.suite);
    int n_failed;
    srunner_run_all(runner, CK_ENV);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
