/** Check's assertions, without a record of each success. After each success
 * Check writes its line number and flushes it, one system call each time. That
 * took two thirds of the time of tests that assert for every row. A debugger
 * shows where a test crashed. */
#ifndef ASSERTIONS_H
#define ASSERTIONS_H

#include <check.h>

#define _mark_point(file, line) ((void)0)

#endif
