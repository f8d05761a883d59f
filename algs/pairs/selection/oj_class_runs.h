/** The runs of classes among the entries of a tree. Entries are sorted by class
 *  of -on, then by large exclude-class (oj_large_classes.h), then in Morton
 *  order.
 *
 *  -on class    0                     2             7          ascending
 *  large class  none    0      1      none 0    1   none ...
 *  first      [ 0       3      9      20   20   24  25   ...   entries
 *
 *  A row visits only the entries of its -on class, without those of the large
 *  class that it excludes. In a tree of mixed classes, the search for the k
 *  nearest features of a rare class would visit most entries before it has
 * found them. Source: ours. */
#ifndef OJ_CLASS_RUNS_H
#define OJ_CLASS_RUNS_H

#include "../../foundations/base/cpu_morton_order.h"
#include "oj_large_classes.h"

/** The runs. Owner; zeroed memory is a valid value for layers without
 * classes. */
struct oj_class_runs
{
    int64_t n;         /**< -on classes; 1 if the layer has none */
    int32_t *on_class; /**< [n]; NULL: the layer has no -on classes */
    int32_t *first;    /**< [n * (large.n + 1) + 1] first entry of each run,
                            then the end; NULL: a row visits all entries */
    struct oj_large_classes large;
};

/** The entries that a row can have pairs with: from first to last, but for
 * those from skip_first to skip_last. */
struct oj_class_run
{
    int32_t first, last;           /**< last < first: there are no entries */
    int32_t skip_first, skip_last; /**< skip_last < skip_first: none is skipped
                                    */
};

/** Sorts an order stably by the classes of its features, and sets runs->large.
 * Features in the order have an -on class of 0 or more if flat has classes.
 * O(n). */
OJ_MUST_USE oj_status oj_class_runs_sort(struct oj_class_runs *runs,
                                         const struct oj_flat *flat,
                                         struct oj_order *order,
                                         struct oj_error *err);

/** Returns 1 if two features are in one run. */
int oj_class_runs_are_equal(const struct oj_class_runs *runs,
                            const struct oj_flat *flat, int64_t a, int64_t b);

/** Lists the runs of n entries in the order of oj_class_runs_sort(). The
 * features of an entry are in one run; one of them is feature[first[i]], or
 * feature[i] if first is NULL. O(n). */
OJ_MUST_USE oj_status oj_class_runs_make(struct oj_class_runs *runs,
                                         const struct oj_flat *flat, int64_t n,
                                         const int32_t *first,
                                         const int32_t *feature,
                                         struct oj_error *err);

/** Returns the run of an input row. O(log classes). */
struct oj_class_run oj_class_runs_find(const struct oj_class_runs *runs,
                                       const struct oj_flat *input,
                                       int64_t row);

/** Returns 1 if the row can have pairs with any of the entries below a tree
 * node: those from node << shift to ((node + 1) << shift) - 1. */
static inline int oj_class_run_meets_node(const struct oj_class_run *run,
                                          int64_t node, int shift)
{
    int64_t first = node << shift, last = ((node + 1) << shift) - 1;
    return first <= run->last && last >= run->first &&
           (first < run->skip_first || last > run->skip_last);
}

int64_t oj_class_runs_bytes(const struct oj_class_runs *runs);

void oj_class_runs_free(struct oj_class_runs *runs);

#endif
