#include "cpu_nearest.h"

#include "../../flatten/base/oj_clock.h"
#include "cpu_group_nearest.h"

#include <string.h>

/* Answers the points of a group, or sets s->too_many. */
OJ_INLINE oj_status answer_group(const struct oj_cpu_index *index,
                                 struct oj_nearest_scratch *s,
                                 struct oj_group *g, int32_t *feature,
                                 double *distance, struct oj_error *err)
{
    struct oj_group_best best;
    double max_distance = index->relation.max_distance;
    double start = s->timings ? oj_clock_seconds() : 0.0, middle = 0.0;
    int n_inside = 0;
    OJ_TRY(oj_collect_rings(&index->rings, s, &g->place, err));
    oj_group_around(index, s, g, 0, &best);
    for (int i = 0; i < g->n; i++)
        n_inside += best.feature[i] != OJ_NO_FEATURE;
    /* where all are inside, only other features at distance 0 matter */
    OJ_TRY(oj_collect_candidates(&index->segments, s, &g->place, 1,
                                 n_inside == g->n ? 0.0 : max_distance, err));
    if (s->too_many)
        return OJ_OK;
    OJ_TRY(oj_matrix_reserve(s, err));
    if (s->timings)
        middle = oj_clock_seconds();
    (void)oj_group_decide(index, s, g, 0, &best);
    for (int i = 0; i < g->n; i++)
    {
        uint32_t at = g->point[i].index;
        int matched = (best.feature[i] != OJ_NO_FEATURE) &
                      (best.distance[i] <= max_distance);
        feature[at] = matched ? best.feature[i] : OJ_NO_FEATURE;
        distance[at] = matched ? best.distance[i] : NAN;
    }
    s->n_refined += s->n_candidates * g->n;
    if (s->timings)
    {
        s->filter_s += middle - start;
        s->refine_s += oj_clock_seconds() - middle;
    }
    return OJ_OK;
}

/* Answers go to random places of large arrays: has their cache lines come near
 * while the patch is at work. */
OJ_INLINE void fetch_answers(int n, const struct oj_ordered_point *point,
                             const int32_t *feature, const double *distance)
{
    for (int i = 0; i < n; i++)
    {
        __builtin_prefetch(&feature[point[i].index], 0, 2);
        __builtin_prefetch(&distance[point[i].index], 0, 2);
    }
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
        oj_adapt(&s->group_limit, s->n_candidates, 20, 40,
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
        oj_patch_fetch_rings(&index->rings, s);
        fetch_answers(taken, point + at, feature, distance);
        OJ_TRY(
            answer_patch(index, s, taken, point + at, feature, distance, err));
        most = OJ_PATCH;
        at += taken;
        oj_adapt(&s->patch_limit, s->near_bundles.n, 24, 96, 4.0 * base);
    }
    return OJ_OK;
}

void oj_nearest_scratch_free(struct oj_nearest_scratch *s)
{
    oj_free(s->near_rings.block);
    oj_free(s->near_bundles.block);
    oj_free(s->near);
    oj_free(s->candidate);
    oj_free(s->candidate_low);
    oj_free(s->matrix);
    oj_free(s->ring);
    oj_free(s->best_feature);
    oj_free(s->best_d2);
    oj_free(s->own);
    memset(s, 0, sizeof *s);
}
