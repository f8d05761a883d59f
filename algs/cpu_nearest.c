#include "cpu_nearest.h"

#include "cpu_candidates.h"
#include "oj_clock.h"

#include <string.h>

#define NO_FEATURE (-1)

/* 1 when feature a comes before b in tie order. */
OJ_INLINE int comes_before(const struct oj_cpu_index *index, int32_t a,
                           int32_t b)
{
    if (b == NO_FEATURE)
        return 1;
    if (index->tie_rank == NULL)
        return a < b;
    return index->tie_rank[a] < index->tie_rank[b];
}

/* First in tie order of the features with a polygon around the point. */
static int32_t first_around(const struct oj_cpu_index *index,
                            const struct oj_nearest_scratch *s, double x,
                            double y)
{
    const struct oj_rings *rings = &index->rings;
    int32_t first = NO_FEATURE;
    for (int64_t i = 0; i < s->n_rings; i++)
    {
        const struct oj_ring *ring = &rings->ring[s->ring[i]];
        if (!ring->is_hole && ring->feature != first &&
            comes_before(index, ring->feature, first) &&
            oj_shell_contains(rings, s, ring, x, y))
            first = ring->feature;
    }
    return first;
}

/* What is known of the point i of a group while its nearest is decided. */
struct best
{
    double distance;
    int32_t feature;
};

OJ_INLINE void measure(const struct oj_cpu_index *index, int64_t slot,
                       const struct oj_group *g, int i, struct best *best)
{
    int32_t feature = index->segments.feature[slot];
    double d = oj_exact_distance(&index->segments, slot, g->x[i], g->y[i]);
    if (d < best->distance ||
        (d == best->distance && comes_before(index, feature, best->feature)))
    {
        best->distance = d;
        best->feature = feature;
    }
}

/* For each point of the group the last candidate within limit2, and how many
 * there are; both as doubles, which the lanes hold exactly. */
OJ_INLINE void find_close(const struct oj_nearest_scratch *s,
                          const struct oj_group *g,
                          const double limit2[OJ_GROUP], double last[OJ_GROUP],
                          double count[OJ_GROUP])
{
    for (int i = 0; i < g->n; i += OJ_LANES)
    {
        oj_double8 limit = *(const oj_double8 *)(limit2 + i);
        oj_double8 found = {0.0}, n = {0.0}, number = {0.0};
        for (int64_t j = 0; j < s->n_candidates; j++)
        {
            oj_long8 is_close =
                *(const oj_double8 *)(s->matrix + j * OJ_GROUP + i) <= limit;
            found = OJ_SELECT_D8(is_close, number, found);
            n += (oj_double8)(is_close & (oj_long8)((oj_double8){} + 1.0));
            number += 1.0;
        }
        *(oj_double8 *)(last + i) = found;
        *(oj_double8 *)(count + i) = n;
    }
}

/* Decides the nearest of each point of the group among the candidates; around:
 * the feature that contains the point, or NO_FEATURE. */
OJ_INLINE void decide(const struct oj_cpu_index *index,
                      struct oj_nearest_scratch *s, const struct oj_group *g,
                      const int32_t around[OJ_GROUP], int32_t *feature,
                      double *distance)
{
    _Alignas(64) double least2[OJ_GROUP];
    _Alignas(64) double limit2[OJ_GROUP];
    _Alignas(64) double last[OJ_GROUP];
    _Alignas(64) double count[OJ_GROUP];
    double off = oj_fill_matrix(&index->segments, s, g, least2);
    for (int i = 0; i < g->n; i++)
    {
        double reach = around[i] == NO_FEATURE ? sqrt(least2[i]) : 0.0;
        reach += 2.0 * off;
        limit2[i] = reach * reach * (1.0 + 1e-12);
    }
    for (int i = g->n; i % OJ_LANES != 0; i++)
        limit2[i] = 0.0;
    find_close(s, g, limit2, last, count);
    for (int i = 0; i < g->n; i++)
    {
        uint32_t at = g->point[i].index;
        struct best best = {around[i] == NO_FEATURE ? INFINITY : 0.0,
                            around[i]};
        int matched;
        if (count[i] == 1.0)
            measure(index, s->candidate[(int64_t)last[i]], g, i, &best);
        else if (count[i] > 1.0)
        {
            for (int64_t j = (int64_t)last[i]; j >= 0; j--)
            {
                if (s->matrix[j * OJ_GROUP + i] <= limit2[i])
                    measure(index, s->candidate[j], g, i, &best);
            }
        }
        matched = best.feature != NO_FEATURE &&
                  best.distance <= index->relation.max_distance;
        feature[at] = matched ? best.feature : NO_FEATURE;
        distance[at] = matched ? best.distance : NAN;
    }
}

/* Answers the points of a group, or sets s->too_many. */
OJ_INLINE oj_status answer_group(const struct oj_cpu_index *index,
                                 struct oj_nearest_scratch *s,
                                 struct oj_group *g, int32_t *feature,
                                 double *distance, struct oj_error *err)
{
    int32_t around[OJ_GROUP];
    double start = s->timings ? oj_clock_seconds() : 0.0, middle = 0.0;
    int n_inside = 0;
    OJ_TRY(oj_collect_rings(&index->rings, s, &g->place, err));
    for (int i = 0; i < g->n; i++)
    {
        around[i] = first_around(index, s, g->x[i], g->y[i]);
        n_inside += around[i] != NO_FEATURE;
    }
    /* where all are inside, only other features at distance 0 matter */
    OJ_TRY(oj_collect_candidates(
        &index->segments, s, &g->place, 1,
        n_inside == g->n ? 0.0 : index->relation.max_distance, err));
    if (s->too_many)
        return OJ_OK;
    OJ_TRY(oj_matrix_reserve(s, err));
    if (s->timings)
        middle = oj_clock_seconds();
    decide(index, s, g, around, feature, distance);
    s->n_refined += s->n_candidates * g->n;
    if (s->timings)
    {
        s->filter_s += middle - start;
        s->refine_s += oj_clock_seconds() - middle;
    }
    return OJ_OK;
}

/* Answers the points of a patch, group by group. */
OJ_INLINE oj_status answer_patch(const struct oj_cpu_index *index,
                                 struct oj_nearest_scratch *s, int n,
                                 const struct oj_ordered_point *point,
                                 int32_t *feature, double *distance,
                                 struct oj_error *err)
{
    struct oj_group g;
    int most = OJ_GROUP;
    for (int at = 0; at < n;)
    {
        oj_group_take(&g, n - at, most, point + at, s->group_limit);
        OJ_TRY(answer_group(index, s, &g, feature, distance, err));
        if (s->too_many)
        {
            most = (g.n + 1) / 2;
            continue;
        }
        most = OJ_GROUP;
        at += g.n;
        oj_adapt(&s->group_limit, s->n_candidates, 16, 40,
                 index->segments.bundle_size);
    }
    return OJ_OK;
}

OJ_CLONES oj_status oj_nearest_one(const struct oj_cpu_index *index,
                                   struct oj_nearest_scratch *s, int64_t n,
                                   const struct oj_ordered_point *point,
                                   int32_t *feature, double *distance,
                                   struct oj_error *err)
{
    struct oj_place patch;
    double base = index->segments.bundle_size;
    int most = OJ_PATCH;
    if (s->group_limit == 0.0)
    {
        s->group_limit = base;
        s->patch_limit = 4.0 * base;
    }
    for (int64_t at = 0; at < n;)
    {
        int taken =
            oj_place_take(&patch, n - at, most, point + at, s->patch_limit);
        OJ_TRY(oj_patch_bundles(&index->segments, s, &patch, 1,
                                index->relation.max_distance, err));
        if (s->too_many)
        {
            most = (taken + 1) / 2;
            continue;
        }
        OJ_TRY(oj_patch_rings(&index->rings, s, &patch, err));
        OJ_TRY(
            answer_patch(index, s, taken, point + at, feature, distance, err));
        most = OJ_PATCH;
        at += taken;
        oj_adapt(&s->patch_limit, s->near_bundles.n, 48, 160, 4.0 * base);
    }
    return OJ_OK;
}

void oj_nearest_scratch_free(struct oj_nearest_scratch *s)
{
    oj_free(s->near_rings.block);
    oj_free(s->near_bundles.block);
    oj_free(s->candidate);
    oj_free(s->candidate_d2);
    oj_free(s->matrix);
    oj_free(s->ring);
    oj_free(s->best_feature);
    oj_free(s->best_d2);
    memset(s, 0, sizeof *s);
}
