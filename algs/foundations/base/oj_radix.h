/** Stable radix sort of 64-bit keys, each with a value. */
#ifndef OJ_RADIX_H
#define OJ_RADIX_H

#include <stdint.h>

struct oj_keyed
{
    uint64_t key;
    int64_t value;
};

/** Sorts a[0 .. n) by key, stably, with scratch [n]. Returns a or scratch,
 * whichever holds the result. O(n), one pass for each byte in which keys
 * differ. */
struct oj_keyed *oj_radix_sort(struct oj_keyed *a, struct oj_keyed *scratch,
                               int64_t n);

#endif
