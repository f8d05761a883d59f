#include "oj_large_classes.h"

#include <stddef.h>

/* Minimum number of features of a large exclude-class, of n in all. A row of a
 * smaller class skips few of its nearest features anyway. */
#define LARGE_PART(n) ((n) / (OJ_LARGE_CLASSES + 1) + 1)

/* Minimum size of the largest exclude-class; if it is smaller, no class counts
 * as large. Points of separate classes lie farther apart, which makes the
 * search slower: one join took 1.3 times as long when the largest class had 29
 * % of all features. */
#define LARGEST_PART(n) ((n) / 3 + 1)

/* Finds all classes with more than 1 / (OJ_LARGE_CLASSES + 1) of the elements,
 * and possibly a few others: a counter remains for each. Returns their number.
 * Source: Misra and Gries 1982. */
static int find_frequent_classes(int64_t n, const int32_t *class_of,
                                 int32_t class[OJ_LARGE_CLASSES])
{
    int64_t count[OJ_LARGE_CLASSES];
    int n_kept = 0;
    for (int64_t i = 0; i < n; i++)
    {
        int at = n_kept - 1, n_left = 0;
        if (class_of[i] < 0)
            continue;
        while (at >= 0 && class[at] != class_of[i])
            at--;
        if (at >= 0)
            count[at]++;
        else if (n_kept < OJ_LARGE_CLASSES)
        {
            class[n_kept] = class_of[i];
            count[n_kept++] = 1;
        }
        else
        {
            for (int c = 0; c < n_kept; c++)
            {
                class[n_left] = class[c];
                count[n_left] = count[c] - 1;
                n_left += count[c] > 1;
            }
            n_kept = n_left;
        }
    }
    return n_kept;
}

struct oj_large_classes oj_large_classes_find(int64_t n,
                                              const int32_t *class_of)
{
    struct oj_large_classes large = {0};
    int64_t count[OJ_LARGE_CLASSES] = {0};
    int32_t class[OJ_LARGE_CLASSES];
    int n_kept, has_largest = 0;
    if (class_of == NULL)
        return large;
    n_kept = find_frequent_classes(n, class_of, class);
    for (int64_t i = 0; i < n; i++)
    {
        for (int c = 0; c < n_kept; c++)
            count[c] += class_of[i] == class[c];
    }
    for (int c = 0; c < n_kept; c++)
        has_largest |= count[c] >= LARGEST_PART(n);
    for (int c = 0; c < n_kept && has_largest; c++)
    {
        if (count[c] >= LARGE_PART(n))
            large.of[large.n++] = class[c];
    }
    return large;
}
