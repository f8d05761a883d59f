/** Check's assertions without its marks. After each successful assertion Check
 * writes and flushes its line number, a system call each, which took two thirds
 * of the time of tests that assert for every row. A debugger shows where a test
 * crashed. */
#ifndef ASSERTIONS_H
#define ASSERTIONS_H

#include <check.h>

#define _mark_point(file, line) ((void)0)

#endif
