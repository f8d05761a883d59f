#include "oj_radix_sort.h"

#define DIGIT_BITS 8
#define N_DIGITS 256

static int digit_of_key(uint64_t key, int shift)
{
    return (int)(key >> shift & (N_DIGITS - 1));
}

struct oj_keyed *oj_radix_sort(struct oj_keyed *a, struct oj_keyed *scratch,
                               int64_t n)
{
    uint64_t differing = 0;
    for (int64_t i = 1; i < n; i++)
        differing |= a[i].key ^ a[0].key;
    for (int shift = 0; shift < 64; shift += DIGIT_BITS)
    {
        int64_t place[N_DIGITS] = {0}, sum = 0;
        struct oj_keyed *other;
        if (digit_of_key(differing, shift) == 0)
            continue; /* all keys have an equal byte here */
        for (int64_t i = 0; i < n; i++)
            place[digit_of_key(a[i].key, shift)]++;
        for (int d = 0; d < N_DIGITS; d++)
        {
            int64_t first = sum;
            sum += place[d];
            place[d] = first;
        }
        for (int64_t i = 0; i < n; i++)
            scratch[place[digit_of_key(a[i].key, shift)]++] = a[i];
        other = a;
        a = scratch;
        scratch = other;
    }
    return a;
}
