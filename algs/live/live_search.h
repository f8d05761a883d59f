/** Searches in a state of a kept index: the pairs of input points with kept
 *  points, and the kept points that can be in pairs with any features.
 *
 *   rows   in Morton order, so that a page is read for all rows near it
 *   row    directory -> pages whose box is in reach -> squared distances of 256
 *          points at a time -> points within the bound */
#ifndef LIVE_SEARCH_H
#define LIVE_SEARCH_H

#include "../../flatten/arrays/oj_flat.h"
#include "../foundations/relation/oj_relation.h"
#include "live_tree.h"

struct live_query
{
    const struct live_state *state;
    const struct oj_relation *relation; /**< checked; its k is set */
    const struct oj_flat *input;
    int n_threads;
    int64_t max_pairs; /**< maximum number of pairs; more are
                            OJ_ERR_TOO_MANY_PAIRS; 0: no limit */
    const int *cancel; /**< or NULL */
};

/** Kept points, by ascending ids. Owner; zeroed memory is a valid empty one. */
struct live_points
{
    int64_t n, cap_id, cap_x, cap_y;
    int64_t *id;
    double *x, *y;
};

void live_points_free(struct live_points *points);

/** Returns a view of points as a layer, with their ids as FIDs. */
static inline struct oj_flat
live_points_view_as_layer(const struct live_points *points)
{
    return oj_flat_of_points(points->n, points->id, points->x, points->y);
}

/** Sorts points by ascending ids. After an error they are unchanged. */
OJ_MUST_USE oj_status live_points_sort(struct live_points *points,
                                       struct oj_error *err);

/** Returns all points of a state. O(n). */
OJ_MUST_USE oj_status live_search_list_points(const struct live_state *state,
                                              struct live_points *out,
                                              struct oj_error *err);

/** Returns 1 if only kept points near a feature can be in pairs with it, so
 *  that live_search_candidates() need not return all points. */
int live_search_needs_near_points_only(const struct oj_relation *relation);

/** Returns the points that can be in pairs of the query: points within reach of
 *  the box of a feature, or among its k nearest. If there are more than `most`,
 *  sets *are_all to 1 and leaves *out empty.
 *  Cost  O(pages in reach) per feature */
OJ_MUST_USE oj_status live_search_candidates(const struct live_query *query,
                                             int64_t most,
                                             struct live_points *out,
                                             int *are_all,
                                             struct oj_error *err);

/** Pairs of rows with ids, in the order of a join. Owner; zeroed memory is a
 *  valid empty one. */
struct live_pairs
{
    int64_t n_rows, n;
    int64_t *offset; /**< [n_rows + 1] first pair of each row */
    int64_t *id;
    double *distance;
};

void live_pairs_free(struct live_pairs *pairs);

/** Returns 1 if live_search_pairs() supports the join: nearest and dwithin of
 *  single points by planar distances, without compared columns. */
int live_search_supports_join(const struct oj_relation *relation,
                              const struct oj_flat *input);

/** Ways to join with a kept index; all give equal pairs. */
enum live_way
{
    LIVE_IN_PAGES,      /**< live_search_pairs() */
    LIVE_BY_CANDIDATES, /**< live_search_candidates() and an index of them */
    LIVE_BY_ALL         /**< an index of all points */
};

/** Chooses, of the ways that support the join, the one that is expected to be
 *  the fastest. wants_pairs is 1 if only the pairs are wanted, without picks or
 *  values.
 */
enum live_way live_search_choose_method(const struct live_state *state,
                                        const struct oj_relation *relation,
                                        const struct oj_flat *input,
                                        int wants_pairs);

/** Finds all pairs of the query. */
OJ_MUST_USE oj_status live_search_pairs(const struct live_query *query,
                                        struct live_pairs *out,
                                        struct oj_error *err);

#endif
