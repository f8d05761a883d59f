/** Check's assertions without its marks: after each assertion that holds Check
 *  writes and flushes the line it stands in, one call of the system each, which
 *  was two thirds of the time of the tests that look at every row. Where a test
 *  crashed a debugger says. */
#ifndef ASSERTIONS_H
#define ASSERTIONS_H

#include <check.h>

#define _mark_point(file, line) ((void)0)

#endif
