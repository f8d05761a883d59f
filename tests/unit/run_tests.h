/** The frame of a test program: one test case, without a time limit of its own.
 *  Include once. */
#ifndef RUN_TESTS_H
#define RUN_TESTS_H

#include <check.h>
#include <stdlib.h>

static Suite *tests_suite;

static inline TCase *tests_open(const char *name)
{
    TCase *tcase = tcase_create(name);
    tests_suite = suite_create(name);
    tcase_set_timeout(tcase, 0);
    suite_add_tcase(tests_suite, tcase);
    return tcase;
}

/* What main() returns. */
static inline int tests_run(void)
{
    SRunner *runner = srunner_create(tests_suite);
    int n_failed;
    srunner_run_all(runner, CK_ENV);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
