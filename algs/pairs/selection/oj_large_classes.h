/** The large exclude-classes of a join side. Features of equal exclude-class
 *  cannot be pairs (-exclude, struct oj_flat.exclude_class), so a row of a
 * large class would visit very many features in vain. Indexes store the
 * features of a large class side by side, and a row of this class skips them.
 * Source: ours; Misra and Gries 1982. */
#ifndef OJ_LARGE_CLASSES_H
#define OJ_LARGE_CLASSES_H

#include <stdint.h>

/** Maximum number of large exclude-classes. Each has more than a fifth of all
 * features. */
#define OJ_LARGE_CLASSES 4

/** Plain values; zeroed memory has no classes. */
struct oj_large_classes
{
    int n;
    int32_t of[OJ_LARGE_CLASSES]; /**< [n] */
};

/** Returns the large ones of the classes of n features; none if class_of is
 * NULL. O(n). */
struct oj_large_classes oj_large_classes_find(int64_t n,
                                              const int32_t *class_of);

/** Returns the index of a class in `of`, or -1 if the class is not large. */
static inline int oj_large_classes_index(const struct oj_large_classes *classes,
                                         int32_t exclude_class)
{
    int i = classes->n - 1;
    while (i >= 0 && classes->of[i] != exclude_class)
        i--;
    return i;
}

#endif
