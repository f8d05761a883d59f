/** Frame of a test program that needs a GPU or the emulated device. If the
 * module finds neither, the program prints a line and is skipped. Include
 * once. */
#ifndef RUN_DEVICE_TESTS_H
#define RUN_DEVICE_TESTS_H

#include "../../algs/foundations/relation/oj_gpu.h"
#include "run_tests.h"

#include <stdio.h>

/** Exit code of main() without a device. ctest then counts the test as
 *  skipped. */
#define DEVICE_TESTS_SKIPPED 77

static const struct oj_gpu_module *module;

/** Returns 0 if there is no device, after printing a line about it. */
static inline int device_tests_open(const char *name)
{
    struct oj_gpu_device device = {0};
    struct oj_error why = {OJ_OK, ""};
    int n = 0;
    if (oj_gpu_load(&module, &why) != OJ_OK ||
        module->count(&n, &why) != OJ_OK ||
        module->describe(0, &device, &why) != OJ_OK ||
        device.why_not[0] != '\0')
    {
        printf("skipped, %d tests: %s\n", listed_tests.n,
               device.why_not[0] != '\0' ? device.why_not : why.message);
        return 0;
    }
    setenv("CK_FORK", "no", 1); /* a device does not work after a fork */
    tests_open(name);
    return 1;
}

#endif
