#include "cpu_nearest.h"

#include "../flatten/oj_clock.h"
#include "cpu_candidates.h"

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

OJ_INLINE void lanes_in_box(const double *px, const double *py,
                            struct oj_box box, int64_t in_box[OJ_LANES])
{
    OJ_EIGHT in_box[c] =
        (int64_t)(px[c] >= box.x0) & (int64_t)(px[c] <= box.x1) &
        (int64_t)(py[c] >= box.y0) & (int64_t)(py[c] <= box.y1);
}

/* Lets the part of a shell decide about the points of the group that are in its
 * boxes. */
OJ_INLINE void try_shell(const struct oj_cpu_index *index,
                         const struct oj_nearest_scratch *s,
                         const struct oj_group *g, const struct oj_ring *shell,
                         int32_t around[OJ_GROUP])
{
    const struct oj_rings *rings = &index->rings;
    const double *x = rings->flat->x + shell->first_vertex;
    const double *y = rings->flat->y + shell->first_vertex;
    for (int first = 0; first < g->n; first += OJ_LANES)
    {
        const double *px = g->x + first, *py = g->y + first;
        int64_t in_shell[OJ_LANES], in_holes[OJ_LANES] = {0};
        int64_t inside[OJ_LANES], unclear[OJ_LANES], any = 0;
        lanes_in_box(px, py, shell->box, in_shell);
        if (shell->holes >= 0)
            lanes_in_box(px, py, rings->hole_box[shell->holes], in_holes);
        OJ_EIGHT any |= in_shell[c] | in_holes[c];
        if (any == 0)
            continue;
        if (shell->grid < 0)
        {
            oj_ring_locate8(x, y, shell->n_vertices, px, py, inside, unclear);
            any = 0;
            OJ_EIGHT in_shell[c] &= inside[c] | unclear[c];
            OJ_EIGHT any |= in_shell[c] | in_holes[c];
            if (any == 0)
                continue;
        }
        for (int i = first; i < first + OJ_LANES && i < g->n; i++)
        {
            int lane = i - first;
            int ask = shell->grid >= 0 || unclear[lane] != 0;
            if ((in_shell[lane] | in_holes[lane]) == 0 ||
                !comes_before(index, shell->feature, around[i]))
                continue;
            if (ask ? oj_shell_contains(rings, s, shell, g->x[i], g->y[i])
                    : oj_holes_leave(rings, s, shell, (int)in_shell[lane],
                                     g->x[i], g->y[i]))
                around[i] = shell->feature;
        }
    }
}

/* First in tie order of the features with a polygon around each point. */
OJ_INLINE void find_around(const struct oj_cpu_index *index,
                           const struct oj_nearest_scratch *s,
                           const struct oj_group *g, int32_t around[OJ_GROUP])
{
    for (int i = 0; i < g->n; i++)
        around[i] = NO_FEATURE;
    for (int64_t i = 0; i < s->n_rings; i++)
    {
        const struct oj_ring *ring = &index->rings.ring[s->ring[i]];
        if (ring->holes != OJ_IS_HOLE)
            try_shell(index, s, g, ring, around);
    }
}

/* Pairs of a point of the group and a candidate, to be measured exactly: many
 * at once, so that divisions and roots fill vectors. */
#define PAIRS 64
struct pairs
{
    int n;
    int32_t point[PAIRS + OJ_GROUP];     /* of the group */
    int32_t candidate[PAIRS + OJ_GROUP]; /* of the scratch */
};

/* The answers of a group while they are found. */
struct best
{
    double distance[OJ_GROUP];
    int32_t feature[OJ_GROUP];
};

/* oj_segment_distance() without its branches: the same operations, so the same
 * bits. */
OJ_INLINE double distance_without_branches(double px, double py, double ax,
                                           double ay, double bx, double by)
{
    double dx = bx - ax, dy = by - ay;
    double ux = px - ax, uy = py - ay;
    double vx = px - bx, vy = py - by;
    double len2 = dx * dx + dy * dy;
    double r = (ux * dx + uy * dy) / len2;
    double s = ((ay - py) * dx - (ax - px) * dy) / len2;
    int is_point = (dx == 0.0) & (dy == 0.0);
    int at_start = is_point | (r <= 0.0);
    double ex = at_start ? ux : vx, ey = at_start ? uy : vy;
    double to_end = sqrt(ex * ex + ey * ey);
    double to_line = fabs(s) * sqrt(len2);
    return (at_start | (r >= 1.0)) ? to_end : to_line;
}

/* Measures the pairs and lets them compete. */
OJ_INLINE void settle_pairs(const struct oj_cpu_index *index,
                            const struct oj_nearest_scratch *s,
                            const struct oj_group *g, struct pairs *p,
                            struct best *best)
{
    double px[PAIRS + OJ_GROUP], py[PAIRS + OJ_GROUP];
    double ax[PAIRS + OJ_GROUP], ay[PAIRS + OJ_GROUP];
    double bx[PAIRS + OJ_GROUP], by[PAIRS + OJ_GROUP];
    double distance[PAIRS + OJ_GROUP];
    int n = p->n;
    for (int i = 0; i < n; i++)
    {
        int64_t slot = s->candidate[p->candidate[i]];
        const struct oj_bundle *b = &index->segments.bundle[slot / OJ_BUNDLE];
        int at = (int)(slot % OJ_BUNDLE);
        px[i] = g->x[p->point[i]];
        py[i] = g->y[p->point[i]];
        ax[i] = b->ax[at];
        ay[i] = b->ay[at];
        bx[i] = b->bx[at];
        by[i] = b->by[at];
    }
    for (int i = 0; i < n; i++)
        distance[i] =
            distance_without_branches(px[i], py[i], ax[i], ay[i], bx[i], by[i]);
    for (int i = 0; i < n; i++)
    {
        int at = p->point[i];
        int32_t feature =
            index->segments.feature[s->candidate[p->candidate[i]]];
        double d = distance[i];
        int wins = (d < best->distance[at]) |
                   ((d == best->distance[at]) & (d < INFINITY) &
                    comes_before(index, feature, best->feature[at]));
        best->distance[at] = wins ? d : best->distance[at];
        best->feature[at] = wins ? feature : best->feature[at];
    }
    p->n = 0;
}

/* Decides the nearest of each point of the group among the candidates; around:
 * the feature that contains the point, or NO_FEATURE. */
OJ_INLINE void decide(const struct oj_cpu_index *index,
                      struct oj_nearest_scratch *s, const struct oj_group *g,
                      const int32_t around[OJ_GROUP], int32_t *feature,
                      double *distance)
{
    float least2[OJ_GROUP], limit2[OJ_GROUP];
    struct oj_scale scale = oj_fill_matrix(&index->segments, s, g, least2);
    double max_distance = index->relation.max_distance;
    struct pairs pairs;
    struct best best;
    pairs.n = 0;
    for (int i = 0; i < g->n; i++)
    {
        int inside = around[i] != NO_FEATURE;
        float reach = (inside ? 0.0f : sqrtf(least2[i])) + 2.0f * scale.off;
        limit2[i] = reach * reach * (1.0f + 1e-6f);
        best.distance[i] = inside ? 0.0 : INFINITY;
        best.feature[i] = around[i];
    }
    for (int i = g->n; i % OJ_WIDE != 0; i++)
        limit2[i] = -1.0f;
    /* all that rounding might have put in the wrong order */
    for (int32_t j = 0; j < s->n_candidates; j++)
    {
        uint32_t close =
            oj_row_close(s->matrix + (int64_t)j * OJ_GROUP, limit2, g->n);
        for (; close != 0; close &= close - 1)
        {
            pairs.point[pairs.n] = __builtin_ctz(close);
            pairs.candidate[pairs.n++] = j;
        }
        if (pairs.n > PAIRS)
            settle_pairs(index, s, g, &pairs, &best);
    }
    settle_pairs(index, s, g, &pairs, &best);
    for (int i = 0; i < g->n; i++)
    {
        uint32_t at = g->point[i].index;
        int matched = (best.feature[i] != NO_FEATURE) &
                      (best.distance[i] <= max_distance);
        feature[at] = matched ? best.feature[i] : NO_FEATURE;
        distance[at] = matched ? best.distance[i] : NAN;
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
    find_around(index, s, g, around);
    for (int i = 0; i < g->n; i++)
        n_inside += around[i] != NO_FEATURE;
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
    memset(s, 0, sizeof *s);
}
