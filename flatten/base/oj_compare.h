/** Comparison functions for qsort() and bsearch(): ascending numbers, or
 *  structs by their first member, a number. */
#ifndef OJ_COMPARE_H
#define OJ_COMPARE_H

#include <stdint.h>

/** Compares two doubles; neither may be NaN. */
static inline int oj_compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static inline int oj_compare_int32(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

static inline int oj_compare_int64(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

#endif
