/** Assertions of fuzzers, and random changes of bytes. Include once. */
#ifndef FUZZ_BYTES_H
#define FUZZ_BYTES_H

#include "../unit/random_numbers.h"

#include <stdio.h>

static inline void require(int holds, const char *what)
{
    if (!holds)
    {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

/* Changes the n bytes of an array, n > 0, which has room for size bytes: flips
 * bits, writes extreme values, cuts, removes and repeats. Returns the new
 * number of bytes. */
static inline size_t mutate(void *array, size_t n, size_t size,
                            const void *values, int n_values)
{
    const uint8_t *value = values;
    uint8_t *bytes = array, *at = bytes + pick((int)n);
    size_t left = n - (size_t)(at - bytes);
    switch (pick(8))
    {
        case 0:
            *at ^= (uint8_t)(1u << pick(8));
            return n;
        case 1:
            *at = value[pick(n_values)];
            return n;
        case 2:
            for (size_t i = 0; i < left && i < 4; i++)
                at[i] = value[pick(n_values)];
            return n;
        case 3:
            *at = (uint8_t)pick(256);
            return n;
        case 4:
            return at > bytes ? n - left : 1;
        case 5:
            memmove(at, at + 1, left - 1);
            return n > 1 ? n - 1 : n;
        case 6:
            if (n + 9 >= size)
                return n;
            memmove(at + 9, at, left);
            return n + 9;
        default:
            if (n + left >= size)
                return n;
            memcpy(bytes + n, at, left);
            return n + left;
    }
}

#endif
