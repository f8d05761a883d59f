#include "../flatten/oj_clock.h"
#include "cpu_candidates.h"

/* Adds the features whose polygons contain the point, at distance 0. */
static oj_status add_around(const struct oj_cpu_index *index,
                            const struct oj_nearest_scratch *s, double x,
                            double y, struct oj_ranking *ranking,
                            struct oj_error *err)
{
    const struct oj_rings *rings = &index->rings;
    for (int64_t i = 0; i < s->n_rings; i++)
    {
        const struct oj_ring *ring = &rings->ring[s->ring[i]];
        if (ring->holes != OJ_IS_HOLE &&
            oj_shell_contains(rings, s, ring, x, y))
            OJ_TRY(oj_ranking_add(ranking, ring->feature, 0.0, err));
    }
    return OJ_OK;
}

/* Ranks all candidates of point i of the group.  The ranking's bound drops as
 * features come in, and saves most exact distances. */
static oj_status rank_point(const struct oj_cpu_index *index,
                            struct oj_nearest_scratch *s,
                            const struct oj_group *g, int i,
                            struct oj_scale scale, struct oj_ranking *ranking,
                            struct oj_error *err)
{
    const struct oj_segments *segments = &index->segments;
    oj_ranking_start(ranking);
    OJ_TRY(add_around(index, s, g->x[i], g->y[i], ranking, err));
    for (int64_t j = 0; j < s->n_candidates; j++)
    {
        float reach =
            (float)(ranking->bound * scale.inverse_unit) + 2.0f * scale.off;
        int64_t slot = s->candidate[j];
        if (s->matrix[j * OJ_GROUP + i] > reach * reach * (1.0f + 1e-6f))
            continue;
        OJ_TRY(oj_ranking_add(
            ranking, segments->feature[slot],
            oj_exact_distance(segments, slot, g->x[i], g->y[i]), err));
    }
    oj_ranking_finish(ranking);
    return OJ_OK;
}

/* Answers the points of a group, or sets s->too_many. */
OJ_INLINE oj_status answer_group(const struct oj_cpu_index *index,
                                 struct oj_nearest_scratch *s,
                                 struct oj_group *g, const int32_t *row,
                                 struct oj_ranking *ranking,
                                 struct oj_answers *answers,
                                 struct oj_error *err)
{
    float least2[OJ_GROUP];
    struct oj_scale scale;
    double start = s->timings ? oj_clock_seconds() : 0.0, middle = 0.0;
    OJ_TRY(oj_collect_rings(&index->rings, s, &g->place, err));
    OJ_TRY(oj_collect_candidates(&index->segments, s, &g->place,
                                 index->relation.k,
                                 index->relation.max_distance, err));
    if (s->too_many)
        return OJ_OK;
    OJ_TRY(oj_matrix_reserve(s, err));
    if (s->timings)
        middle = oj_clock_seconds();
    scale = oj_fill_matrix(&index->segments, s, g, least2);
    for (int i = 0; i < g->n; i++)
    {
        uint32_t at = g->point[i].index;
        OJ_TRY(rank_point(index, s, g, i, scale, ranking, err));
        OJ_TRY(oj_answers_add(answers, row == NULL ? (int64_t)at : row[at],
                              ranking, err));
    }
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
                                 const int32_t *row, struct oj_ranking *ranking,
                                 struct oj_answers *answers,
                                 struct oj_error *err)
{
    struct oj_group g;
    int64_t k = index->relation.k;
    int most = OJ_GROUP;
    for (int at = 0; at < n;)
    {
        oj_group_take(&g, n - at, most, point + at, s->group_limit);
        OJ_TRY(answer_group(index, s, &g, row, ranking, answers, err));
        if (s->too_many)
        {
            most = (g.n + 1) / 2;
            continue;
        }
        most = OJ_GROUP;
        at += g.n;
        oj_adapt(&s->group_limit, s->n_candidates, 20 + 2 * k, 40 + 4 * k,
                 index->segments.bundle_size);
    }
    return OJ_OK;
}

OJ_CLONES static oj_status
answer_points(const struct oj_cpu_index *index, struct oj_nearest_scratch *s,
              int64_t n, const struct oj_ordered_point *point,
              const int32_t *row, struct oj_ranking *ranking,
              struct oj_answers *answers, struct oj_error *err)
{
    struct oj_place patch;
    double base = index->segments.bundle_size;
    int64_t k = index->relation.k;
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
        OJ_TRY(oj_patch_bundles(&index->segments, s, &patch, k,
                                index->relation.max_distance, err));
        if (s->too_many)
        {
            most = (taken + 1) / 2;
            continue;
        }
        OJ_TRY(oj_patch_rings(&index->rings, s, &patch, err));
        OJ_TRY(answer_patch(index, s, taken, point + at, row, ranking, answers,
                            err));
        most = OJ_PATCH;
        at += taken;
        oj_adapt(&s->patch_limit, s->near_bundles.n, 48 + k, 160 + 4 * k,
                 4.0 * base);
    }
    return OJ_OK;
}

oj_status oj_nearest_lists(const struct oj_cpu_index *index,
                           struct oj_nearest_scratch *s, int64_t n,
                           const struct oj_ordered_point *point,
                           const int32_t *row, struct oj_answers *answers,
                           struct oj_error *err)
{
    struct oj_ranking ranking =
        oj_ranking_make(&index->relation, index->tie_rank);
    oj_status status = OJ_OK;
    int64_t k = index->relation.k;
    if (k > index->segments.n_segments)
        k = index->segments.n_segments;
    status = oj_reserve(&s->best_feature, 0, k, &s->cap_best,
                        sizeof *s->best_feature, err);
    if (status == OJ_OK)
        status = oj_reserve(&s->best_d2, 0, k, &s->cap_best_d2,
                            sizeof *s->best_d2, err);
    if (status == OJ_OK)
        status = answer_points(index, s, n, point, row, &ranking, answers, err);
    oj_ranking_free(&ranking);
    return status;
}
