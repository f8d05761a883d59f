/** Distances of a point by the tree: its k nearest features, and all features
 *  within a distance.
 *
 *  Features go by their rank in tie order; their distance is the least of their
 *  segments, or 0 from inside a polygon.
 */
#ifndef OJ_TREE_DISTANCE_SEARCH_H
#define OJ_TREE_DISTANCE_SEARCH_H

#include "../index/oj_pair_conditions.h"
#include "oj_tree_rings.h"

/** The join side. Borrows everything. */
struct oj_tree_side
{
    struct oj_device_tree segments;
    const struct oj_cuda_segment *segment; /**< [segments.n], of each entry */
    const int32_t *rank;                   /**< [segments.n] */
    /** [nodes] The feature of all that is below, or OJ_TREE_SEVERAL; NULL where
     *  one feature each is asked for. */
    const int32_t *only_rank;
    const int32_t *least_rank;  /**< [nodes] of all below; NULL as well */
    struct oj_tree_rings rings; /**< no polygons: to the boundary */
};

#define OJ_TREE_SEVERAL (-1)

/** What only_rank is of node i of a level; below: that of the n_below nodes of
 *  the level below, or the ranks of the entries. */
OJ_FN int32_t oj_tree_only_rank(const int32_t *below, int64_t n_below,
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

/** The least of the ranks below node i of a level; below as above. */
OJ_FN int32_t oj_tree_least_rank(const int32_t *below, int64_t n_below,
                                 int64_t i)
{
    int64_t first = i * OJ_TREE_FANOUT, end = first + OJ_TREE_FANOUT, j;
    int32_t least = below[first];
    end = end < n_below ? end : n_below;
    for (j = first + 1; j < end; j++)
        least = below[j] < least ? below[j] : least;
    return least;
}

/* --- the nearest ---------------------------------------------------------- */

/** The first k in the order (distance, rank) of those that were added; each
 *  feature once. Place i is at i * stride. */
struct oj_tree_best
{
    int32_t k, n;
    int64_t stride;
    double least, most; /**< limits of distances */
    double *distance;
    int32_t *rank;
};

/** What is farther than this cannot get in. */
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
    /* from the end: most candidates go to it */
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
    /* what the feature had before, or what drops out, or the free place */
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

/** 1 when row, which is at p, may have the feature of an entry. */
OJ_FN int oj_tree_may_pair(const struct oj_tree_side *side,
                           const struct oj_pair_rule *rule, int64_t row,
                           int64_t entry, double px, double py)
{
    const struct oj_cuda_segment *s = &side->segment[entry];
    return oj_pair_rule_passes(rule, row, side->rank[entry],
                               s->ax == px && s->ay == py);
}

/** 1 when nothing below node `at` can get in, since the places are full of
 *  features at distance 0 whose ranks come before all of its: so of features at
 *  one place only the first k are looked at. */
OJ_FN int oj_tree_comes_too_late(const struct oj_tree_side *side,
                                 const struct oj_tree_best *best, uint32_t at)
{
    int64_t last = (best->k - 1) * best->stride;
    uint32_t i = at & ((1u << OJ_TREE_INDEX_BITS) - 1u);
    return side->least_rank != 0 && best->n == best->k &&
           best->distance[last] == 0.0 &&
           side->least_rank
                   [side->segments.level_first[at >> OJ_TREE_INDEX_BITS] + i] >
               best->rank[last];
}

/** 1 when node `at`, whose squared distance from a point is d2, has nothing but
 *  segments of a feature that is known to be as near: so a feature of very many
 *  segments is not looked at whole where there are fewer than k in reach.
 *  slack: what rounding may take from a distance. */
OJ_FN int oj_tree_is_known(const struct oj_tree_side *side,
                           const struct oj_tree_best *best, double slack,
                           uint32_t at, double d2)
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

/** The feature of the next polygon that holds p, and that row may have, of a
 *  walk through the polygons, or -1. */
OJ_FN int32_t oj_tree_next_around(const struct oj_tree_side *side,
                                  const struct oj_pair_rule *rule, int64_t row,
                                  double px, double py, struct oj_tree_walk *w)
{
    const struct oj_tree_rings *rings = &side->rings;
    int64_t entry;
    while (rings->polygons.n > 0 &&
           (entry = oj_tree_walk_next(w, &rings->polygons)) >= 0)
    {
        int32_t part = rings->polygon_part[entry];
        int32_t rank = rings->part_feature[part];
        if (oj_pair_rule_passes(rule, row, rank, 0) &&
            oj_tree_part_holds(rings, part, px, py))
            return rank;
    }
    return -1;
}

/** Adds the features whose polygons hold p, which is finite and that of row. */
OJ_FN void oj_tree_add_around(const struct oj_tree_side *side,
                              const struct oj_pair_rule *rule, int64_t row,
                              double px, double py, struct oj_tree_best *best)
{
    struct oj_tree_walk w;
    int32_t rank;
    oj_tree_walk_start(&w, &side->rings.polygons, px, py, 0.0);
    while ((rank = oj_tree_next_around(side, rule, row, px, py, &w)) >= 0)
        oj_tree_best_add(best, rank, 0.0);
}

/** Adds the feature of an entry, where it may get in and row, which is at p,
 *  may have it. Returns 1 when it may have changed the bound. */
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

/* Features in the order in which they came; one of them that comes again is no
 * new candidate. */
#define OJ_TREE_RECENT 4

/** Candidates of a point in the order in which they are found; a feature may
 *  come several times, with others between.  Those beyond most are only
 *  counted. */
struct oj_tree_found
{
    int64_t n;                         /* below 2^31, as segments are */
    int64_t most;                      /* places */
    int32_t recent[OJ_TREE_RECENT];    /* ranks, the last one first */
    int32_t recent_at[OJ_TREE_RECENT]; /* their candidates */
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

/** Finds what is at most reach away from p, which is finite and that of row;
 *  where rule excludes equal points, all features are points or none is. Gives
 *  the candidates in one order in every call, so that one may count and the
 *  next fill. */
OJ_FN void oj_tree_within(const struct oj_tree_side *side,
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
    while ((rank = oj_tree_next_around(side, rule, row, px, py, &w)) >= 0)
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

/** What pairs of a point are sorted by. */
enum oj_tree_order
{
    OJ_TREE_BY_RANK,    /**< then by distance */
    OJ_TREE_BY_DISTANCE /**< then by rank */
};

OJ_FN int oj_tree_comes_before(enum oj_tree_order order, double a_distance,
                               int32_t a_rank, double b_distance,
                               int32_t b_rank)
{
    if (order == OJ_TREE_BY_RANK)
        return a_rank < b_rank || (a_rank == b_rank && a_distance < b_distance);
    return a_distance < b_distance ||
           (a_distance == b_distance && a_rank < b_rank);
}

/* Puts a candidate into the heap of n below place at, whose top is the last in
 * order. */
OJ_FN void oj_tree_sift(enum oj_tree_order order, int64_t n, double *distance,
                        int32_t *rank, int64_t at, double d, int32_t r)
{
    for (;;)
    {
        int64_t child = 2 * at + 1;
        if (child >= n)
            break;
        if (child + 1 < n &&
            oj_tree_comes_before(order, distance[child], rank[child],
                                 distance[child + 1], rank[child + 1]))
            child++;
        if (!oj_tree_comes_before(order, d, r, distance[child], rank[child]))
            break;
        distance[at] = distance[child];
        rank[at] = rank[child];
        at = child;
    }
    distance[at] = d;
    rank[at] = r;
}

OJ_FN void oj_tree_sort(enum oj_tree_order order, int64_t n, double *distance,
                        int32_t *rank)
{
    int64_t i, j;
    if (n > 24)
    {
        for (i = n / 2 - 1; i >= 0; i--)
            oj_tree_sift(order, n, distance, rank, i, distance[i], rank[i]);
        for (i = n - 1; i > 0; i--)
        {
            double d = distance[i];
            int32_t r = rank[i];
            distance[i] = distance[0];
            rank[i] = rank[0];
            oj_tree_sift(order, i, distance, rank, 0, d, r);
        }
        return;
    }
    for (i = 1; i < n; i++)
    {
        double d = distance[i];
        int32_t r = rank[i];
        for (j = i; j > 0 && oj_tree_comes_before(order, d, r, distance[j - 1],
                                                  rank[j - 1]);
             j--)
        {
            distance[j] = distance[j - 1];
            rank[j] = rank[j - 1];
        }
        distance[j] = d;
        rank[j] = r;
    }
}

/** Of n candidates in the order of ranks each feature once, at its least
 *  distance if that is not below least.  Returns how many are left. */
OJ_FN int64_t oj_tree_fold(double least, int64_t n, double *distance,
                           int32_t *rank)
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

/** Makes n candidates pairs: folds them, in order.  Returns how many are left.
 */
OJ_FN int64_t oj_tree_settle(enum oj_tree_order order, double least, int64_t n,
                             double *distance, int32_t *rank)
{
    int64_t kept;
    oj_tree_sort(OJ_TREE_BY_RANK, n, distance, rank);
    kept = oj_tree_fold(least, n, distance, rank);
    if (order == OJ_TREE_BY_DISTANCE)
        oj_tree_sort(order, kept, distance, rank);
    return kept;
}

#endif
