#include "../../flatten/base/oj_clock.h"
#include "cpu_group_nearest.h"

/* Where the answers of points go. */
struct destination
{
    const int32_t *row; /* of a point, by its index; NULL: the index */
    struct oj_ones *ones;
    struct oj_answers *answers;
    struct oj_ranking ranking; /* of the point on its way */
};

static int32_t row_of(const struct destination *to,
                      const struct oj_ordered_point *point)
{
    return to->row == NULL ? (int32_t)point->index : to->row[point->index];
}

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
                            struct oj_scale scale, struct destination *to,
                            struct oj_error *err)
{
    const struct oj_segments *segments = &index->segments;
    struct oj_ranking *ranking = &to->ranking;
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
    return oj_answers_add(to->answers, row_of(to, &g->point[i]), ranking, err);
}

/* Several nearest. */
OJ_INLINE oj_status rank_group(const struct oj_cpu_index *index,
                               struct oj_nearest_scratch *s,
                               const struct oj_group *g, struct destination *to,
                               struct oj_error *err)
{
    float least2[OJ_GROUP];
    struct oj_scale scale = oj_fill_matrix(&index->segments, s, g, least2);
    for (int i = 0; i < g->n; i++)
        OJ_TRY(rank_point(index, s, g, i, scale, to, err));
    return OJ_OK;
}

static oj_status put_one(const struct destination *to, int32_t row,
                         int32_t feature, double distance, struct oj_error *err)
{
    if (to->ones != NULL)
    {
        to->ones->feature[row] = feature;
        to->ones->distance[row] = distance;
        return OJ_OK;
    }
    OJ_TRY(oj_answers_reserve(to->answers, 1, err));
    oj_answers_put(to->answers, row, feature, distance);
    return OJ_OK;
}

/* One nearest: only points to which several features are as near are ranked.
 * Ties of 100,000 lots under a million points: a third of the time that it
 * takes to rank all. */
OJ_INLINE oj_status decide_group(const struct oj_cpu_index *index,
                                 struct oj_nearest_scratch *s,
                                 const struct oj_group *g, int marks_ties,
                                 struct oj_group_best *best,
                                 struct destination *to, struct oj_error *err)
{
    struct oj_scale scale = oj_group_decide(index, s, g, marks_ties, best);
    for (int i = 0; i < g->n; i++)
    {
        int32_t row = row_of(to, &g->point[i]);
        if (best->feature[i] == OJ_NO_FEATURE ||
            !(best->distance[i] <= index->relation.max_distance))
            continue;
        if (!marks_ties || (best->tied >> i & 1u) == 0)
        {
            OJ_TRY(put_one(to, row, best->feature[i], best->distance[i], err));
            continue;
        }
        if (to->ones != NULL)
            to->ones->feature[row] = OJ_ONE_OF_MANY;
        OJ_TRY(rank_point(index, s, g, i, scale, to, err));
    }
    return OJ_OK;
}

/* Answers the points of a group, or sets s->too_many. */
OJ_INLINE oj_status answer_group(const struct oj_cpu_index *index,
                                 struct oj_nearest_scratch *s,
                                 const struct oj_group *g,
                                 struct destination *to, struct oj_error *err)
{
    struct oj_group_best best;
    int64_t k = index->relation.k;
    double cap = index->relation.max_distance;
    double start = s->timings ? oj_clock_seconds() : 0.0, middle = 0.0;
    int marks_ties = index->relation.ties == OJ_TIES_ALL, n_inside = 0;
    best.tied = 0;
    OJ_TRY(oj_collect_rings(&index->rings, s, &g->place, err));
    if (k == 1)
    {
        oj_group_around(index, s, g, marks_ties, &best);
        for (int i = 0; i < g->n; i++)
            n_inside += best.feature[i] != OJ_NO_FEATURE;
        cap = n_inside == g->n ? 0.0 : cap;
    }
    OJ_TRY(oj_collect_candidates(&index->segments, s, &g->place, k, cap, err));
    if (s->too_many)
        return OJ_OK;
    OJ_TRY(oj_matrix_reserve(s, err));
    if (s->timings)
        middle = oj_clock_seconds();
    if (k == 1)
        OJ_TRY(decide_group(index, s, g, marks_ties, &best, to, err));
    else
        OJ_TRY(rank_group(index, s, g, to, err));
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
                                 struct destination *to, struct oj_error *err)
{
    struct oj_group g;
    int64_t k = index->relation.k;
    int most = OJ_GROUP;
    for (int at = 0; at < n;)
    {
        oj_group_take(&g, n - at, most, point + at, s->group_limit);
        OJ_TRY(answer_group(index, s, &g, to, err));
        if (s->too_many)
        {
            most = (g.n + 1) / 2;
            continue;
        }
        most = OJ_GROUP;
        at += g.n;
        if (k == 1)
            oj_adapt(&s->group_limit, s->n_candidates, 20, 40,
                     index->segments.bundle_size);
        else
            oj_adapt(&s->group_limit, s->n_candidates, 20 + 2 * k, 40 + 4 * k,
                     index->segments.bundle_size);
    }
    return OJ_OK;
}

/* Answers go to random places of large arrays: has their cache lines come near
 * while the patch is at work. */
OJ_INLINE void fetch_answers(const struct destination *to, int n,
                             const struct oj_ordered_point *point)
{
    for (int i = 0; to->ones != NULL && i < n; i++)
    {
        __builtin_prefetch(&to->ones->feature[point[i].index], 0, 2);
        __builtin_prefetch(&to->ones->distance[point[i].index], 0, 2);
    }
}

OJ_CLONES static oj_status
answer_points(const struct oj_cpu_index *index, struct oj_nearest_scratch *s,
              int64_t n, const struct oj_ordered_point *point,
              struct destination *to, struct oj_error *err)
{
    struct oj_place patch;
    double base = index->segments.bundle_size;
    int64_t k = index->relation.k;
    int64_t few = k == 1 ? 24 : 48 + k, many = k == 1 ? 96 : 160 + 4 * k;
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
        oj_patch_fetch_rings(&index->rings, s);
        fetch_answers(to, taken, point + at);
        OJ_TRY(answer_patch(index, s, taken, point + at, to, err));
        most = OJ_PATCH;
        at += taken;
        oj_adapt(&s->patch_limit, s->near_bundles.n, few, many, 4.0 * base);
    }
    return OJ_OK;
}

oj_status oj_nearest_lists(const struct oj_cpu_index *index,
                           struct oj_nearest_scratch *s, int64_t n,
                           const struct oj_ordered_point *point,
                           const int32_t *row, struct oj_ones *ones,
                           struct oj_answers *answers, struct oj_error *err)
{
    struct destination to = {
        row, ones, answers, oj_ranking_make(&index->relation, index->tie_rank)};
    oj_status status = OJ_OK;
    int64_t k = index->relation.k;
    if (s->own == NULL)
        s->own = oj_calloc(1, sizeof *s->own);
    if (s->own == NULL)
        return oj_fail_nomem(err, 1, sizeof *s->own);
    status = oj_reserve(&s->best_feature, 0, k, &s->cap_best,
                        sizeof *s->best_feature, err);
    if (status == OJ_OK)
        status = oj_reserve(&s->best_d2, 0, k, &s->cap_best_d2,
                            sizeof *s->best_d2, err);
    if (status == OJ_OK)
        status = answer_points(index, s, n, point, &to, err);
    oj_ranking_free(&to.ranking);
    return status;
}
