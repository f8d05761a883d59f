/** Searches a packed tree by the distance from a point: for the k nearest
 *  features, or for all features within a distance. Features are numbered by
 *  tie rank; the distance to a feature is the minimum over its segments, or 0
 *  inside its polygons. */
#ifndef OJ_TREE_DISTANCE_SEARCH_H
#define OJ_TREE_DISTANCE_SEARCH_H

#include "../index/oj_pair_conditions.h"
#include "oj_tree_rings.h"

/** The join side as it is searched. Borrows all arrays. */
struct oj_tree_side
{
    struct oj_device_tree segments;
    /** [segments.n] segment of each entry. */
    const struct oj_cuda_segment *segment;
    /** [segments.n] rank of the feature of each entry. */
    const int32_t *rank;
    /** [nodes] the rank below a node if there is only one, otherwise
     *  OJ_TREE_SEVERAL; NULL if searches find one feature per point. */
    const int32_t *only_rank;
    /** [nodes] smallest rank below a node; NULL if only_rank is NULL. */
    const int32_t *least_rank;
    /** Polygons, inside of which the distance is 0. Without polygons, distances
     *  are to boundaries. */
    struct oj_tree_rings rings;
};

#define OJ_TREE_SEVERAL (-1)

/** Returns only_rank of node i of a level. below [n_below] is only_rank of the
 *  nodes of the level below, or the rank of each entry if the level is 0. */
OJ_FN int32_t oj_tree_node_only_rank(const int32_t *below, int64_t n_below,
                                     int64_t i)
{
    int64_t first = i * OJ_TREE_FANOUT, end = first + OJ_TREE_FANOUT, j;
    end = end < n_below ? end : n_below;
    for (j = first + 1; j < end; j++)
    {
        if (below[j] != below[first])
            return OJ_TREE_SEVERAL;
    }
    return below[first];
}

/** Returns least_rank of node i of a level, from least_rank of the level below,
 *  or from the ranks of the entries. */
OJ_FN int32_t oj_tree_node_least_rank(const int32_t *below, int64_t n_below,
                                      int64_t i)
{
    int64_t first = i * OJ_TREE_FANOUT, end = first + OJ_TREE_FANOUT, j;
    int32_t least = below[first];
    end = end < n_below ? end : n_below;
    for (j = first + 1; j < end; j++)
        least = below[j] < least ? below[j] : least;
    return least;
}

/* --- k nearest ------------------------------------------------------------ */

/** The first k of the features added so far, by (distance, rank), each once.
 *  Element i has the index i * stride in the arrays. */
struct oj_tree_best
{
    int32_t k, n;
    int64_t stride;
    double least, most; /**< minimum and maximum distance of a match */
    double *distance;
    int32_t *rank;
};

/** Returns the distance beyond which no feature can enter the list. */
OJ_FN double oj_tree_best_bound(const struct oj_tree_best *best)
{
    return best->n < best->k ? best->most
                             : best->distance[(best->k - 1) * best->stride];
}

OJ_FN void oj_tree_best_add(struct oj_tree_best *best, int32_t rank,
                            double distance)
{
    int64_t stride = best->stride;
    int32_t at = 0, i;
    if (!(distance <= best->most) || !(distance < INFINITY) ||
        distance < best->least)
        return;
    /* searched from the end, because most candidates are inserted near it */
    for (at = best->n; at > 0; at--)
    {
        double d = best->distance[(at - 1) * stride];
        if (d < distance ||
            (d == distance && best->rank[(at - 1) * stride] <= rank))
            break;
    }
    if (at == best->k)
        return;
    for (i = 0; i < at; i++)
    {
        if (best->rank[i * stride] == rank)
            return;
    }
    /* overwrites the old element of the feature if it has one, otherwise a free
     * element or the last one */
    for (i = at; i < best->n && best->rank[i * stride] != rank; i++)
        ;
    if (i == best->n)
    {
        if (best->n < best->k)
            best->n++;
        else
            i--;
    }
    for (; i > at; i--)
    {
        best->distance[i * stride] = best->distance[(i - 1) * stride];
        best->rank[i * stride] = best->rank[(i - 1) * stride];
    }
    best->distance[at * stride] = distance;
    best->rank[at * stride] = rank;
}

OJ_FN double oj_tree_entry_distance(const struct oj_tree_side *side,
                                    int64_t entry, double px, double py)
{
    const struct oj_cuda_segment *s = &side->segment[entry];
    return oj_segment_distance(px, py, s->ax, s->ay, s->bx, s->by);
}

/** Returns 1 if the conditions allow a pair of row, which is at p, and the
 *  feature of an entry. */
OJ_FN int oj_tree_may_pair(const struct oj_tree_side *side,
                           const struct oj_pair_rule *rule, int64_t row,
                           int64_t entry, double px, double py)
{
    const struct oj_cuda_segment *s = &side->segment[entry];
    return oj_pair_rule_passes(rule, row, side->rank[entry],
                               s->ax == px && s->ay == py);
}

/** Returns 1 if nothing below node `at` can enter the list, because the list
 *  has k features at distance 0 with smaller ranks than all below. So among
 *  many features at one location only the first k are visited. */
OJ_FN int oj_tree_best_excludes_node(const struct oj_tree_side *side,
                                     const struct oj_tree_best *best,
                                     uint32_t at)
{
    int64_t last = (best->k - 1) * best->stride;
    uint32_t i = at & ((1u << OJ_TREE_INDEX_BITS) - 1u);
    return side->least_rank != 0 && best->n == best->k &&
           best->distance[last] == 0.0 &&
           side->least_rank
                   [side->segments.level_first[at >> OJ_TREE_INDEX_BITS] + i] >
               best->rank[last];
}

/** Returns 1 if node `at` can be skipped: all its segments belong to one
 *  feature, which is in the list with a distance that is no larger. Without
 *  this test, all segments of a feature would be visited while the list has
 *  fewer than k features. d2 is the squared distance of the node, slack the
 *  maximum error of a distance. */
OJ_FN int oj_tree_can_skip_known_feature(const struct oj_tree_side *side,
                                         const struct oj_tree_best *best,
                                         double slack, uint32_t at, double d2)
{
    uint32_t i = at & ((1u << OJ_TREE_INDEX_BITS) - 1u);
    int32_t rank, j;
    if (side->only_rank == 0 || best->n == best->k)
        return 0;
    rank =
        side->only_rank[side->segments.level_first[at >> OJ_TREE_INDEX_BITS] +
                        i];
    for (j = 0; rank != OJ_TREE_SEVERAL && j < best->n; j++)
    {
        double reach = best->distance[j * best->stride] + slack;
        if (d2 * (1.0 - 1e-14) <= reach * reach * (1.0 + 1e-14))
            return 0;
        if (best->rank[j * best->stride] == rank)
            return 1;
    }
    return 0;
}

/** Returns the rank of the next feature with a polygon that contains p and may
 *  be paired with row, or -1. *w is a walk through the tree of polygons. */
OJ_FN int32_t oj_tree_next_containing(const struct oj_tree_side *side,
                                      const struct oj_pair_rule *rule,
                                      int64_t row, double px, double py,
                                      struct oj_tree_walk *w)
{
    const struct oj_tree_rings *rings = &side->rings;
    int64_t entry;
    while (rings->polygons.n > 0 &&
           (entry = oj_tree_walk_next(w, &rings->polygons)) >= 0)
    {
        int32_t part = rings->polygon_part[entry];
        int32_t rank = rings->part_feature[part];
        if (oj_pair_rule_passes(rule, row, rank, 0) &&
            oj_tree_polygon_contains(rings, part, px, py))
            return rank;
    }
    return -1;
}

/** Adds the features whose polygons contain p, the finite point of row, to the
 *  list *best, at distance 0. */
OJ_FN void oj_tree_add_containing(const struct oj_tree_side *side,
                                  const struct oj_pair_rule *rule, int64_t row,
                                  double px, double py,
                                  struct oj_tree_best *best)
{
    struct oj_tree_walk w;
    int32_t rank;
    oj_tree_walk_start(&w, &side->rings.polygons, px, py, 0.0);
    while ((rank = oj_tree_next_containing(side, rule, row, px, py, &w)) >= 0)
        oj_tree_best_add(best, rank, 0.0);
}

/** Adds the feature of an entry if it can enter the list and may be paired with
 *  row, which is at p. Returns 1 if the bound may have changed. */
OJ_FN int oj_tree_add_entry(const struct oj_tree_side *side,
                            const struct oj_pair_rule *rule, int64_t row,
                            double px, double py, int64_t entry,
                            struct oj_tree_best *best)
{
    double distance = oj_tree_entry_distance(side, entry, px, py);
    if (distance > oj_tree_best_bound(best) ||
        !oj_tree_may_pair(side, rule, row, entry, px, py))
        return 0;
    oj_tree_best_add(best, side->rank[entry], distance);
    return 1;
}

/* --- within a distance ---------------------------------------------------- */

/* Number of features whose candidates are remembered: if one of the last
 * features is found again, it is no new candidate. */
#define OJ_TREE_RECENT 4

/** Candidates of a point in the order in which they are found. A feature may
 *  occur several times, with others in between. Candidates beyond `most` are
 *  only counted. */
struct oj_tree_found
{
    int64_t n;                         /* candidates, below 2^31 */
    int64_t most;                      /* capacity of the arrays */
    int32_t recent[OJ_TREE_RECENT];    /* ranks, the latest first */
    int32_t recent_at[OJ_TREE_RECENT]; /* index of their candidates */
    double *distance;
    int32_t *rank;
};

OJ_FN struct oj_tree_found oj_tree_found_start(int64_t most, double *distance,
                                               int32_t *rank)
{
    struct oj_tree_found found;
    int i;
    found.n = 0;
    found.most = most;
    for (i = 0; i < OJ_TREE_RECENT; i++)
    {
        found.recent[i] = -1;
        found.recent_at[i] = 0;
    }
    found.distance = distance;
    found.rank = rank;
    return found;
}

OJ_FN void oj_tree_found_add(struct oj_tree_found *found, int32_t rank,
                             double distance)
{
    int i;
    for (i = 0; i < OJ_TREE_RECENT; i++)
    {
        int32_t at = found->recent_at[i];
        if (found->recent[i] != rank)
            continue;
        if (at < found->most && distance < found->distance[at])
            found->distance[at] = distance;
        return;
    }
    for (i = OJ_TREE_RECENT - 1; i > 0; i--)
    {
        found->recent[i] = found->recent[i - 1];
        found->recent_at[i] = found->recent_at[i - 1];
    }
    found->recent[0] = found->n < INT32_MAX ? rank : -1;
    found->recent_at[0] = (int32_t)found->n;
    if (found->n < found->most)
    {
        found->distance[found->n] = distance;
        found->rank[found->n] = rank;
    }
    found->n++;
}

/** Adds all features within `reach` of p, the finite point of row, to the
 *  candidates *found. If rule excludes equal points, either all features must
 *  be points or none. Every call adds them in the order of the walk, so one
 *  call may count and the next one store them. */
OJ_FN void oj_tree_find_within(const struct oj_tree_side *side,
                               const struct oj_pair_rule *rule, int64_t row,
                               double px, double py, double reach,
                               struct oj_tree_found *found)
{
    struct oj_tree_walk w;
    int64_t entry;
    int32_t rank;
    if (!(reach >= 0.0))
        return;
    oj_tree_walk_start(&w, &side->rings.polygons, px, py, 0.0);
    while ((rank = oj_tree_next_containing(side, rule, row, px, py, &w)) >= 0)
        oj_tree_found_add(found, rank, 0.0);
    oj_tree_walk_start(&w, &side->segments, px, py, reach);
    while ((entry = oj_tree_walk_next(&w, &side->segments)) >= 0)
    {
        double distance = oj_tree_entry_distance(side, entry, px, py);
        if (distance <= reach && distance < INFINITY &&
            oj_tree_may_pair(side, rule, row, entry, px, py))
            oj_tree_found_add(found, side->rank[entry], distance);
    }
}

/** Sort order of the pairs of a point. */
enum oj_tree_order
{
    OJ_TREE_BY_RANK,    /**< by rank, then distance */
    OJ_TREE_BY_DISTANCE /**< by distance, then rank */
};

OJ_FN int oj_tree_candidate_precedes(enum oj_tree_order order,
                                     double a_distance, int32_t a_rank,
                                     double b_distance, int32_t b_rank)
{
    if (order == OJ_TREE_BY_RANK)
        return a_rank < b_rank || (a_rank == b_rank && a_distance < b_distance);
    return a_distance < b_distance ||
           (a_distance == b_distance && a_rank < b_rank);
}

/* Inserts the candidate (d, r) into a heap of n elements of distance and rank,
 * whose top is the last one in order. Element `at` is free: candidates below it
 * that come after (d, r) in order move up, until (d, r) fits. */
OJ_FN void oj_tree_heap_sift_down(enum oj_tree_order order, int64_t n,
                                  double *distance, int32_t *rank, int64_t at,
                                  double d, int32_t r)
{
    for (;;)
    {
        int64_t child = 2 * at + 1;
        if (child >= n)
            break;
        if (child + 1 < n &&
            oj_tree_candidate_precedes(order, distance[child], rank[child],
                                       distance[child + 1], rank[child + 1]))
            child++;
        if (!oj_tree_candidate_precedes(order, d, r, distance[child],
                                        rank[child]))
            break;
        distance[at] = distance[child];
        rank[at] = rank[child];
        at = child;
    }
    distance[at] = d;
    rank[at] = r;
}

OJ_FN void oj_tree_sort_candidates(enum oj_tree_order order, int64_t n,
                                   double *distance, int32_t *rank)
{
    int64_t i, j;
    if (n > 24)
    {
        for (i = n / 2 - 1; i >= 0; i--)
            oj_tree_heap_sift_down(order, n, distance, rank, i, distance[i],
                                   rank[i]);
        for (i = n - 1; i > 0; i--)
        {
            double d = distance[i];
            int32_t r = rank[i];
            distance[i] = distance[0];
            rank[i] = rank[0];
            oj_tree_heap_sift_down(order, i, distance, rank, 0, d, r);
        }
        return;
    }
    for (i = 1; i < n; i++)
    {
        double d = distance[i];
        int32_t r = rank[i];
        for (j = i; j > 0 && oj_tree_candidate_precedes(
                                 order, d, r, distance[j - 1], rank[j - 1]);
             j--)
        {
            distance[j] = distance[j - 1];
            rank[j] = rank[j - 1];
        }
        distance[j] = d;
        rank[j] = r;
    }
}

/** Reduces n candidates, sorted by rank, to one per feature, with its minimum
 *  distance; drops features nearer than `least`. Returns how many remain. */
OJ_FN int64_t oj_tree_keep_nearest_per_feature(double least, int64_t n,
                                               double *distance, int32_t *rank)
{
    int64_t i, kept = 0;
    int32_t last = -1;
    for (i = 0; i < n; i++)
    {
        if (rank[i] == last)
            continue;
        last = rank[i];
        if (distance[i] < least)
            continue;
        distance[kept] = distance[i];
        rank[kept++] = last;
    }
    return kept;
}

/** Turns n candidates, in distance and rank, into the pairs of a point: reduces
 *  them in place to one per feature, drops features nearer than `least`, and
 *  sorts the others by `order`. Returns how many remain. */
OJ_FN int64_t oj_tree_candidates_to_pairs(enum oj_tree_order order,
                                          double least, int64_t n,
                                          double *distance, int32_t *rank)
{
    int64_t kept;
    oj_tree_sort_candidates(OJ_TREE_BY_RANK, n, distance, rank);
    kept = oj_tree_keep_nearest_per_feature(least, n, distance, rank);
    if (order == OJ_TREE_BY_DISTANCE)
        oj_tree_sort_candidates(order, kept, distance, rank);
    return kept;
}

#endif
