/** Stable radix sort of 64-bit keys, each with a value. */
#ifndef OJ_RADIX_SORT_H
#define OJ_RADIX_SORT_H

#include <stdint.h>

/** A value with the key by which it is sorted. */
struct oj_keyed
{
    uint64_t key;
    int64_t value;
};

/** Sorts a[0] .. a[n - 1] stably by key. scratch must have n elements. Returns
 * the array that holds the result: a or scratch. O(n), with one pass for each
 * byte in which keys differ. */
struct oj_keyed *oj_radix_sort(struct oj_keyed *a, struct oj_keyed *scratch,
                               int64_t n);

#endif
