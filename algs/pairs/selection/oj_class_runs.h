/** The runs of -on classes among the entries of a tree, which are sorted by
 *  class, then in Morton order.
 *
 *  run         0    1    2   ...
 *  on_class  [ 0    2    7   ...   ascending
 *  first     [ 0    3    4   ...   entries; n + 1 numbers
 *
 *  A row visits only the entries of its class. In a tree of mixed classes, the
 *  search for the k nearest of a rare class would visit most entries before it
 *  has found them. Source: ours. */
#ifndef OJ_CLASS_RUNS_H
#define OJ_CLASS_RUNS_H

#include "../../foundations/base/cpu_spatial_order.h"

/** Owner; zeroed memory is a valid value for layers without classes. */
struct oj_class_runs
{
    int64_t n;
    int32_t *on_class; /**< [n] */
    int32_t *first;    /**< [n + 1]; NULL: the layer has no classes */
};

/** The entries that a row can have pairs with: from first to last. */
struct oj_class_run
{
    int32_t first, last; /**< last < first: there are none */
};

/** Sorts an order stably by the class of its features. on_class: [features],
 * not below 0 for those in the order. O(n). */
OJ_MUST_USE oj_status oj_class_runs_sort(struct oj_order *order,
                                         const int32_t *on_class,
                                         struct oj_error *err);

/** Lists the runs of n entries, whose classes ascend. Entry i has features of
 * one class; one of them is feature[first[i]], or feature[i] if first is NULL.
 * O(n). */
OJ_MUST_USE oj_status oj_class_runs_make(struct oj_class_runs *runs, int64_t n,
                                         const int32_t *first,
                                         const int32_t *feature,
                                         const int32_t *on_class,
                                         struct oj_error *err);

/** Returns the run of the class of an input row; all entries if the layer has
 * no classes. on_class: [rows], that of the input. O(log classes). */
struct oj_class_run oj_class_runs_find(const struct oj_class_runs *runs,
                                       const int32_t *on_class, int64_t row);

int64_t oj_class_runs_bytes(const struct oj_class_runs *runs);

void oj_class_runs_free(struct oj_class_runs *runs);

#endif
