/** Replaces leaves of a state by subtrees, many of them at once: a leaf that
 *  overflows is split, and small siblings are united.
 *
 *  task      points of its leaves, arriving points -> subtree     all threads
 *  subtrees  nodes and pages get numbers                          one thread
 *  pages     are filled                                           all threads
 *
 *  Numbers are given in the order of the tasks, so the state does not depend on
 *  the number of threads. */
#ifndef LIVE_RESHAPE_H
#define LIVE_RESHAPE_H

#include "../foundations/base/oj_radix_sort.h"
#include "oj_live.h"

/** Points of a batch that arrive in leaves. */
struct live_arrivals
{
    const int64_t *id;
    const double *x, *y;
    const uint32_t *entry;        /**< entry of each row's id */
    const struct oj_keyed *order; /**< value: row */
};

/** Leaves that a subtree replaces. */
struct live_reshape
{
    uint32_t leaf[4]; /**< [n_leaves] first pages of the leaves */
    int n_leaves;
    int32_t node;       /**< node whose children the leaves are, which is freed;
                             -1: none */
    int64_t first, end; /**< the arriving points are live_arrivals.order[first
                             .. end) */
    int64_t n;          /**< points of the leaves and arriving points */
    struct oj_box cell; /**< cell of the subtree */
    uint32_t parent;    /**< 4 * node + child, or LIVE_NONE: the root */
    int depth;
    int is_done; /**< set by live_reshape_leaves() */

    /* The following members are set and used by live_reshape_leaves() alone. */
    int64_t at;         /**< index of the task's first point among the points of
                             a round */
    int64_t first_page; /**< index of the subtree's first leaf among the leaves
                             of a round */
    struct live_subtree subtree;
};

/** Returns the number of points of a leaf, whose first page is given. */
int64_t live_count_points(const struct live_state *state, uint32_t page);

/** Frees a page of a state, and its block. */
void live_free_page(struct oj_live *live, struct live_state *state,
                    uint32_t page);

/** Carries out n tasks, whose leaves are distinct. A task for which memory is
 *  missing has no effect, and its is_done stays 0.
 *  n_promised  number of pages and blocks that must still be free afterwards */
void live_reshape_leaves(struct oj_live *live, struct live_state *state,
                         int n_threads, const struct live_arrivals *arrivals,
                         int64_t n_promised, int64_t n,
                         struct live_reshape *task);

#endif
