#include "cpu_query_patch_search.h"

#include "../../flatten/base/oj_clock.h"
#include "cpu_point_patches.h"

#include <float.h>
#include <string.h>

#define NO_FEATURE (-1)

/* --- groups ---------------------------------------------------------------

 * Of neighbouring points, and the segments that can be nearest to one of them:
 * the second half of a search that cpu_point_patches.h begins.  A segment is a
 * candidate when it may come as close to the group's box as the bound says that
 * nearest ones do. */

#define OJ_GROUP 32 /* points a group has at most */

/* So few candidates are not looked through once more. */
#define OJ_FEW_CANDIDATES 16

/* A group that still has more candidates than this is taken in halves. */
#define OJ_MANY_CANDIDATES 256

struct oj_group
{
    int n;
    int64_t first; /* of the patch */
    const struct oj_ordered_point *point;
    struct oj_place place;
    /* beyond n, up to a multiple of OJ_WIDE: repetitions */
    double x[OJ_GROUP], y[OJ_GROUP];
};

/* Takes points from the front of the n >= 1 that are left; more than OJ_LANES
 * in multiples of it, so that no lanes idle. */
OJ_INLINE void oj_group_take(struct oj_group *g, int64_t n, int most,
                             const struct oj_ordered_point *point, double limit)
{
    g->n = oj_place_take(&g->place, n, most, point, limit);
    if (g->n > OJ_WIDE && g->n % OJ_WIDE != 0)
        g->n = oj_place_take(&g->place, g->n / OJ_WIDE * OJ_WIDE, most, point,
                             INFINITY);
    g->point = point;
    for (int i = 0; i < g->n; i++)
    {
        g->x[i] = point[i].x;
        g->y[i] = point[i].y;
    }
    for (int i = g->n; i % OJ_WIDE != 0; i++)
    {
        g->x[i] = point[0].x;
        g->y[i] = point[0].y;
    }
}

/* Patches and groups grow where they find little and shrink where they find
 * much; this moves work between the levels, never an answer. */
OJ_INLINE void oj_adapt(double *limit, int64_t n, int64_t few, int64_t many,
                        double base)
{
    if (n > many)
        *limit *= 0.7;
    else if (n < few)
        *limit *= 1.1;
    if (!(*limit > base / 64.0))
        *limit = base / 64.0;
    if (*limit > base * 16.0)
        *limit = base * 16.0;
}

/* --- candidates ----------------------------------------------------------- */

/* Drops the candidates that the bound has overtaken. */
OJ_INLINE void oj_candidates_compact(struct oj_nearest_scratch *s, float keep)
{
    int64_t n = 0;
    for (int64_t i = 0; i < s->n_candidates; i++)
    {
        s->candidate[n] = s->candidate[i];
        s->candidate_low[n] = s->candidate_low[i];
        n += s->candidate_low[i] <= keep;
    }
    s->n_candidates = n;
}

/* Drops those that are behind their own features' bounds. */
static inline void oj_candidates_compact_by_feature(
    const struct oj_segments *segments, struct oj_nearest_scratch *s,
    const struct oj_place *place, const struct oj_bound *bound)
{
    struct oj_own_keep of = {-1, 0.0f};
    int64_t n = 0;
    oj_own_begin(s);
    for (int64_t i = 0; i < s->n_candidates; i++)
    {
        int64_t slot = s->candidate[i];
        float low = s->candidate_low[i];
        s->candidate[n] = slot;
        s->candidate_low[n] = low;
        n += oj_own_keeps(s, place, bound, segments->feature[slot], low, &of);
    }
    s->n_candidates = n;
}

/* Room for one more bundle. */
static inline oj_status oj_candidates_reserve(struct oj_nearest_scratch *s,
                                              struct oj_error *err)
{
    int64_t n = s->n_candidates + OJ_BUNDLE;
    OJ_ROOM(s->candidate_low, s->n_candidates, n, s->cap_low, err);
    return oj_reserve(&s->candidate, s->n_candidates, n, &s->cap_candidates,
                      sizeof *s->candidate, err);
}

/* Measures a bundle, tightens the bound and keeps what can be needed. */
OJ_INLINE oj_status oj_visit_bundle(const struct oj_segments *segments,
                                    struct oj_nearest_scratch *s,
                                    const struct oj_place *place, int64_t k,
                                    int32_t bundle, struct oj_bound *bound,
                                    struct oj_error *err)
{
    double d2[OJ_BUNDLE];
    float low[OJ_BUNDLE];
    oj_bundle_measure(&segments->bundle[bundle], place, d2, low);
    oj_bound_tighten(segments, s, place, k, bundle, d2, bound);
    if (s->n_candidates + OJ_BUNDLE > s->cap_candidates)
    {
        oj_candidates_compact(s, bound->keep);
        OJ_TRY(oj_candidates_reserve(s, err));
    }
    for (int i = 0; i < OJ_BUNDLE; i++)
    {
        s->candidate[s->n_candidates] = (int64_t)bundle * OJ_BUNDLE + i;
        s->candidate_low[s->n_candidates] = low[i];
        s->n_candidates += low[i] <= bound->keep;
    }
    return OJ_OK;
}

/* Measures the boxes of the front from the group; returns the nearest. */
OJ_INLINE int64_t oj_front_measure(struct oj_front *front, const float q[4])
{
    float least[OJ_LANES];
    int32_t at[OJ_LANES];
    int nearest = 0;
    OJ_EIGHT
    {
        least[c] = INFINITY;
        at[c] = 0;
    }
    for (int32_t i = 0; i * OJ_FANOUT < front->n; i++)
    {
        struct oj_front_block *block = &front->block[i];
        oj_boxes_distance2(&block->box, q, block->d2);
        OJ_EIGHT
        {
            float d2 = block->d2[c];
            at[c] = d2 < least[c] ? i : at[c];
            least[c] = d2 < least[c] ? d2 : least[c];
        }
    }
    for (int c = 1; c < OJ_LANES; c++)
        nearest = least[c] < least[nearest] ? c : nearest;
    return (int64_t)at[nearest] * OJ_FANOUT + nearest;
}

/* Lists in s->near the places in the front of boxes within reach2. */
OJ_INLINE void oj_front_list(struct oj_nearest_scratch *s, float reach2)
{
    const struct oj_front *front = &s->near_bundles;
    int32_t n = 0;
    for (int32_t i = 0; i * OJ_FANOUT < front->n; i++)
    {
        const float *d2 = front->block[i].d2;
        int any = 0;
        OJ_EIGHT any |= d2[c] <= reach2;
        if (!any)
            continue;
        for (int32_t c = 0; c < OJ_FANOUT; c++)
        {
            s->near[n] = i * OJ_FANOUT + c;
            n += d2[c] <= reach2;
        }
    }
    s->n_near = n;
}

/* Leaves in s->candidate the segments that can be among the k nearest of a
 * point of the group, within cap; or sets s->too_many. */
OJ_INLINE oj_status oj_collect_candidates(const struct oj_segments *segments,
                                          struct oj_nearest_scratch *s,
                                          const struct oj_place *place,
                                          int64_t k, double cap,
                                          struct oj_error *err)
{
    const struct oj_tree *tree = &segments->tree;
    struct oj_front *front = &s->near_bundles;
    struct oj_bound bound = oj_bound_make(tree, cap);
    int64_t check_at = OJ_MANY_CANDIDATES + k;
    int64_t nearest;
    float q[4];
    s->n_candidates = 0;
    s->n_best = 0;
    s->too_many = 0;
    if (k > 1)
        s->own->is_used = 0;
    if (front->n == 0)
        return OJ_OK;
    OJ_TRY(oj_candidates_reserve(s, err));
    OJ_ROOM(s->near, 0, front->n + OJ_FANOUT, s->cap_near, err);
    oj_tree_relative(tree, &place->box, q);
    /* the nearest box alone gives a bound that most others do not pass */
    nearest = oj_front_measure(front, q);
    if (front->block[nearest / OJ_FANOUT].d2[nearest % OJ_FANOUT] >
        bound.reach2)
        return OJ_OK;
    OJ_TRY(oj_visit_bundle(
        segments, s, place, k,
        front->block[nearest / OJ_FANOUT].entry[nearest % OJ_FANOUT], &bound,
        err));
    front->block[nearest / OJ_FANOUT].d2[nearest % OJ_FANOUT] = INFINITY;
    oj_front_list(s, bound.reach2);
    for (int32_t i = 0; i < s->n_near; i++)
    {
        const struct oj_front_block *block =
            &front->block[s->near[i] / OJ_FANOUT];
        int lane = s->near[i] % OJ_FANOUT;
        if (block->d2[lane] > bound.reach2)
            continue;
        OJ_TRY(oj_visit_bundle(segments, s, place, k, block->entry[lane],
                               &bound, err));
        if (s->n_candidates > check_at)
        {
            oj_candidates_compact(s, bound.keep);
            if (k > 1 && s->n_candidates > OJ_MANY_CANDIDATES + k)
                oj_candidates_compact_by_feature(segments, s, place, &bound);
            s->too_many =
                place->h > 0.0 && s->n_candidates > OJ_MANY_CANDIDATES + k;
            if (s->too_many)
                return OJ_OK;
            check_at = 2 * s->n_candidates + OJ_MANY_CANDIDATES + k;
        }
    }
    oj_candidates_compact(s, bound.keep);
    if (k > 1 && s->n_best < k && s->n_candidates > OJ_FEW_CANDIDATES)
        oj_candidates_compact_by_feature(segments, s, place, &bound);
    return OJ_OK;
}

/* --- measuring ------------------------------------------------------------ */

/* What a number in the matrix means. It is in single precision, relative to the
 * group's centre and to the extent of group and candidates, so that nothing in
 * it is larger than 1 or so. */
struct oj_scale
{
    double inverse_unit; /* 1 / extent in CRS units, 0: nothing is told apart */
    float off;           /* what distances in the matrix may be off, together
                            with those in GEOS's order of operations */
};

/* The extent of the candidates around the centre, and of the group. */
OJ_INLINE double oj_group_extent(const struct oj_segments *segments,
                                 const struct oj_nearest_scratch *s,
                                 const struct oj_group *g)
{
    double extent = 0.0;
    for (int64_t j = 0; j < s->n_candidates; j++)
    {
        int64_t slot = s->candidate[j];
        const struct oj_bundle *b = &segments->bundle[slot / OJ_BUNDLE];
        int at = (int)(slot % OJ_BUNDLE);
        double ax = fabs(b->ax[at] - g->place.cx);
        double ay = fabs(b->ay[at] - g->place.cy);
        double bx = fabs(b->bx[at] - g->place.cx);
        double by = fabs(b->by[at] - g->place.cy);
        ax = ax > bx ? ax : bx;
        ay = ay > by ? ay : by;
        extent = ax + ay > extent ? ax + ay : extent;
    }
    return extent + g->place.h;
}

/* Squared distances of sixteen points to a segment, up to rounding. */
OJ_INLINE void oj_measure16(const float *restrict x, const float *restrict y,
                            float ax, float ay, float dx, float dy,
                            float inverse, float *restrict d2,
                            float *restrict least2)
{
    OJ_SIXTEEN
    {
        float ux = x[c] - ax, uy = y[c] - ay;
        float t = (ux * dx + uy * dy) * inverse;
        t = t > 0.0f ? t : 0.0f;
        t = t < 1.0f ? t : 1.0f;
        ux -= t * dx;
        uy -= t * dy;
        d2[c] = ux * ux + uy * uy;
        least2[c] = d2[c] < least2[c] ? d2[c] : least2[c];
    }
}

/* Squared distances of all points of the group to the candidates, up to
 * rounding, in s->matrix: one row of OJ_GROUP a candidate, of which the first
 * g->n are of use; least2: the least of each point.
 *
 * Coordinates are rounded to 2^-24 of the extent and some ten operations add as
 * much each, so off, 64 times 2^-24, is ample; GEOS's double formula errs by
 * far less. */
OJ_INLINE struct oj_scale oj_fill_matrix(const struct oj_segments *segments,
                                         const struct oj_nearest_scratch *s,
                                         const struct oj_group *g,
                                         float least2[OJ_GROUP])
{
    struct oj_scale scale = {1.0 / oj_group_extent(segments, s, g),
                             64.0f * 5.9604645e-8f};
    double cx = g->place.cx, cy = g->place.cy, unit;
    float x[OJ_GROUP], y[OJ_GROUP];
    if (!isfinite(scale.inverse_unit))
        scale.inverse_unit = 0.0;
    unit = scale.inverse_unit;
    for (int i = 0; i < g->n; i += OJ_WIDE)
    {
        OJ_SIXTEEN
        {
            x[i + c] = (float)((g->x[i + c] - cx) * unit);
            y[i + c] = (float)((g->y[i + c] - cy) * unit);
            least2[i + c] = INFINITY;
        }
    }
    for (int64_t j = 0; j < s->n_candidates; j++)
    {
        int64_t slot = s->candidate[j];
        const struct oj_bundle *b = &segments->bundle[slot / OJ_BUNDLE];
        int at = (int)(slot % OJ_BUNDLE);
        float ax = (float)((b->ax[at] - cx) * unit);
        float ay = (float)((b->ay[at] - cy) * unit);
        float dx = (float)((b->bx[at] - b->ax[at]) * unit);
        float dy = (float)((b->by[at] - b->ay[at]) * unit);
        float len2 = dx * dx + dy * dy;
        float inverse = len2 > 1e-30f ? 1.0f / len2 : 0.0f;
        float *row = s->matrix + j * OJ_GROUP;
        for (int i = 0; i < g->n; i += OJ_WIDE)
            oj_measure16(x + i, y + i, ax, ay, dx, dy, inverse, row + i,
                         least2 + i);
    }
    return scale;
}

/* Which points of the group are within limit2 of the candidate of a row: bit i
 * for point i. */
OJ_INLINE uint32_t oj_points_within_limit(const float *restrict row,
                                          const float *restrict limit2, int n)
{
    static const uint32_t bit[OJ_GROUP] = {
        1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,
        1u << 7,  1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13,
        1u << 14, 1u << 15, 1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20,
        1u << 21, 1u << 22, 1u << 23, 1u << 24, 1u << 25, 1u << 26, 1u << 27,
        1u << 28, 1u << 29, 1u << 30, 1u << 31};
    uint32_t close = 0;
    for (int i = 0; i < n; i += OJ_WIDE)
    {
        OJ_SIXTEEN close |= row[i + c] <= limit2[i + c] ? bit[i + c] : 0u;
    }
    return close;
}

/* The distance that decides. */
OJ_INLINE double oj_exact_distance(const struct oj_segments *segments,
                                   int64_t slot, double x, double y)
{
    const struct oj_bundle *b = &segments->bundle[slot / OJ_BUNDLE];
    int at = (int)(slot % OJ_BUNDLE);
    return oj_segment_distance(x, y, b->ax[at], b->ay[at], b->bx[at],
                               b->by[at]);
}

static inline oj_status oj_matrix_reserve(struct oj_nearest_scratch *s,
                                          struct oj_error *err)
{
    return oj_reserve(&s->matrix, 0, s->n_candidates * OJ_GROUP, &s->cap_matrix,
                      sizeof *s->matrix, err);
}

/* --- the nearest of each point of a group --------------------------------- */

/* The first in tie order of the nearest, while they are found. */
struct group_best
{
    double distance[OJ_GROUP];
    int32_t feature[OJ_GROUP];
    uint32_t tied; /* bit i: others may be as near to point i */
};

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

/* The features whose polygons contain point i of the group: from the returned
 * one on, n. */
OJ_INLINE const int32_t *
features_containing_point(const struct oj_nearest_scratch *s,
                          const struct oj_group *g, int i, int64_t *n)
{
    const int64_t *offset = s->containing.offset + g->first + i;
    *n = 0;
    if (s->cells->n_sets == 0)
        return NULL;
    *n = offset[1] - offset[0];
    return s->containing.feature + offset[0];
}

/* First in tie order of the features whose polygons contain each point, at
 * distance 0: of how many points there are some. */
OJ_INLINE int set_containing_as_nearest(const struct oj_cpu_index *index,
                                        const struct oj_nearest_scratch *s,
                                        const struct oj_group *g,
                                        struct group_best *best)
{
    int n_inside = 0;
    best->tied = 0;
    for (int i = 0; i < g->n; i++)
    {
        int64_t n;
        const int32_t *feature = features_containing_point(s, g, i, &n);
        best->feature[i] = NO_FEATURE;
        for (int64_t k = 0; k < n; k++)
        {
            if (comes_before(index, feature[k], best->feature[i]))
                best->feature[i] = feature[k];
        }
        best->distance[i] = n > 0 ? 0.0 : INFINITY;
        best->tied |= (uint32_t)(n > 1) << i;
        n_inside += n > 0;
    }
    return n_inside;
}

/* Pairs of a point of the group and a candidate, to be measured exactly: many
 * at once, so that divisions and roots fill vectors. */
#define PAIRS_AT_ONCE 64
struct group_pairs
{
    int n;
    int32_t point[PAIRS_AT_ONCE + OJ_GROUP];     /* of the group */
    int32_t candidate[PAIRS_AT_ONCE + OJ_GROUP]; /* of the scratch */
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
    double to_a2 = ux * ux + uy * uy, to_b2 = vx * vx + vy * vy;
    int is_short = !(len2 >= DBL_MIN);
    int at_start = is_short ? to_a2 <= to_b2 : r <= 0.0;
    double to_end = sqrt(at_start ? to_a2 : to_b2);
    double to_line = fabs(s) * sqrt(len2);
    return (is_short | at_start | (r >= 1.0)) ? to_end : to_line;
}

/* Measures the pairs and lets them compete. */
OJ_INLINE void measure_pairs(const struct oj_cpu_index *index,
                             const struct oj_nearest_scratch *s,
                             const struct oj_group *g, int marks_ties,
                             struct group_pairs *p, struct group_best *best)
{
    double px[PAIRS_AT_ONCE + OJ_GROUP], py[PAIRS_AT_ONCE + OJ_GROUP];
    double ax[PAIRS_AT_ONCE + OJ_GROUP], ay[PAIRS_AT_ONCE + OJ_GROUP];
    double bx[PAIRS_AT_ONCE + OJ_GROUP], by[PAIRS_AT_ONCE + OJ_GROUP];
    double distance[PAIRS_AT_ONCE + OJ_GROUP];
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
        if (marks_ties)
        {
            uint32_t other =
                (d == best->distance[at]) & (feature != best->feature[at]);
            uint32_t nearer = d < best->distance[at];
            best->tied &= ~(nearer << at);
            best->tied |= other << at;
        }
        best->distance[at] = wins ? d : best->distance[at];
        best->feature[at] = wins ? feature : best->feature[at];
    }
    p->n = 0;
}

/* Decides the nearest of each point of the group among the candidates; best:
 * what is around the points. */
OJ_INLINE struct oj_scale
find_nearest_of_group(const struct oj_cpu_index *index,
                      struct oj_nearest_scratch *s, const struct oj_group *g,
                      int marks_ties, struct group_best *best)
{
    float least2[OJ_GROUP], limit2[OJ_GROUP];
    struct oj_scale scale = oj_fill_matrix(&index->segments, s, g, least2);
    struct group_pairs pairs;
    pairs.n = 0;
    for (int i = 0; i < g->n; i++)
    {
        int inside = best->feature[i] != NO_FEATURE;
        float reach = (inside ? 0.0f : sqrtf(least2[i])) + 2.0f * scale.off;
        limit2[i] = reach * reach * (1.0f + 1e-6f);
    }
    for (int i = g->n; i % OJ_WIDE != 0; i++)
        limit2[i] = -1.0f;
    /* all that rounding might have put in the wrong order */
    for (int32_t j = 0; j < s->n_candidates; j++)
    {
        uint32_t close = oj_points_within_limit(
            s->matrix + (int64_t)j * OJ_GROUP, limit2, g->n);
        for (; close != 0; close &= close - 1)
        {
            pairs.point[pairs.n] = __builtin_ctz(close);
            pairs.candidate[pairs.n++] = j;
        }
        if (pairs.n > PAIRS_AT_ONCE)
            measure_pairs(index, s, g, marks_ties, &pairs, best);
    }
    measure_pairs(index, s, g, marks_ties, &pairs, best);
    return scale;
}

/* --- answers -------------------------------------------------------------- */

/* Points on their way to their answers. */
struct nearest_search
{
    const struct oj_cpu_index *index;
    struct oj_nearest_scratch *s;
    const struct oj_nearest_output *to;
    struct oj_ranking ranking; /* of one point */
};

static int32_t input_row_of_point(const struct oj_nearest_output *to,
                                  const struct oj_ordered_point *point)
{
    return to->row == NULL ? (int32_t)point->index : to->row[point->index];
}

/* Ranks the features whose polygons contain point i of the group, at distance
 * 0, and all candidates.  The ranking's bound drops as features come in, and
 * saves most exact distances. */
static oj_status rank_candidates_of_point(struct nearest_search *search,
                                          const struct oj_group *g, int i,
                                          struct oj_scale scale,
                                          struct oj_error *err)
{
    const struct oj_segments *segments = &search->index->segments;
    const struct oj_nearest_scratch *s = search->s;
    struct oj_ranking *ranking = &search->ranking;
    int64_t n;
    const int32_t *feature = features_containing_point(s, g, i, &n);
    oj_ranking_start(ranking);
    for (int64_t k = 0; k < n; k++)
        OJ_TRY(oj_ranking_add(ranking, feature[k], 0.0, err));
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
    return oj_answers_add(search->to->answers,
                          input_row_of_point(search->to, &g->point[i]), ranking,
                          err);
}

/* One nearest: only points to which several features are as near are ranked.
 * Ties of 100,000 lots under a million points: a third of the time that it
 * takes to rank all. */
OJ_INLINE oj_status put_nearest(struct nearest_search *search,
                                const struct oj_group *g,
                                const struct group_best *best,
                                struct oj_scale scale, int marks_ties,
                                struct oj_error *err)
{
    const struct oj_nearest_output *to = search->to;
    double max_distance = search->index->relation.max_distance;
    for (int i = 0; i < g->n; i++)
    {
        int32_t row = input_row_of_point(to, &g->point[i]);
        int matched = (best->feature[i] != NO_FEATURE) &
                      (best->distance[i] <= max_distance);
        if (marks_ties && matched && (best->tied >> i & 1u) != 0)
        {
            if (to->ones != NULL)
                to->ones->feature[row] = OJ_ONE_OF_MANY;
            OJ_TRY(rank_candidates_of_point(search, g, i, scale, err));
        }
        else if (to->ones != NULL)
        {
            to->ones->feature[row] = matched ? best->feature[i] : NO_FEATURE;
            to->ones->distance[row] = matched ? best->distance[i] : NAN;
        }
        else if (matched)
        {
            OJ_TRY(oj_answers_reserve(to->answers, 1, err));
            oj_answers_put(to->answers, row, best->feature[i],
                           best->distance[i]);
        }
    }
    return OJ_OK;
}

/* Answers the points of a group, or sets s->too_many.  k and marks_ties (k is
 * 1, and all that are as near count) are constants in the usual case, here and
 * below. */
OJ_INLINE oj_status answer_group(struct nearest_search *search,
                                 const struct oj_group *g, int64_t k,
                                 int marks_ties, struct oj_error *err)
{
    const struct oj_cpu_index *index = search->index;
    struct oj_nearest_scratch *s = search->s;
    struct group_best best;
    struct oj_scale scale;
    float least2[OJ_GROUP];
    double cap = index->relation.max_distance;
    double start = s->timings ? oj_clock_seconds() : 0.0, middle = 0.0;
    best.tied = 0;
    /* where all are inside, only other features at distance 0 matter */
    if (k == 1 && set_containing_as_nearest(index, s, g, &best) == g->n)
        cap = 0.0;
    OJ_TRY(oj_collect_candidates(&index->segments, s, &g->place, k, cap, err));
    if (s->too_many)
        return OJ_OK;
    OJ_TRY(oj_matrix_reserve(s, err));
    if (s->timings)
        middle = oj_clock_seconds();
    if (k == 1)
    {
        scale = find_nearest_of_group(index, s, g, marks_ties, &best);
        OJ_TRY(put_nearest(search, g, &best, scale, marks_ties, err));
    }
    else
    {
        scale = oj_fill_matrix(&index->segments, s, g, least2);
        for (int i = 0; i < g->n; i++)
            OJ_TRY(rank_candidates_of_point(search, g, i, scale, err));
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
OJ_INLINE oj_status answer_patch(struct nearest_search *search, int n,
                                 const struct oj_ordered_point *point,
                                 int64_t k, int marks_ties,
                                 struct oj_error *err)
{
    struct oj_nearest_scratch *s = search->s;
    struct oj_group g;
    int64_t more = k == 1 ? 0 : 2 * k;
    int most = OJ_GROUP;
    for (int at = 0; at < n;)
    {
        OJ_TRY(oj_check_cancel(s->cancel, err));
        oj_group_take(&g, n - at, most, point + at, s->group_limit);
        g.first = at;
        OJ_TRY(answer_group(search, &g, k, marks_ties, err));
        if (s->too_many)
        {
            most = (g.n + 1) / 2;
            continue;
        }
        most = OJ_GROUP;
        at += g.n;
        oj_adapt(&s->group_limit, s->n_candidates, 20 + more, 40 + 2 * more,
                 search->index->segments.bundle_size);
    }
    return OJ_OK;
}

/* Answers go to random places of large arrays: has their cache lines come near
 * while the patch is at work. */
OJ_INLINE void prefetch_answers(const struct oj_nearest_output *to, int n,
                                const struct oj_ordered_point *point)
{
    for (int i = 0; to->ones != NULL && i < n; i++)
    {
        __builtin_prefetch(&to->ones->feature[point[i].index], 0, 2);
        __builtin_prefetch(&to->ones->distance[point[i].index], 0, 2);
    }
}

OJ_INLINE oj_status answer_points(struct nearest_search *search, int64_t n,
                                  const struct oj_ordered_point *point,
                                  int64_t k, int marks_ties,
                                  struct oj_error *err)
{
    const struct oj_cpu_index *index = search->index;
    struct oj_nearest_scratch *s = search->s;
    struct oj_place patch;
    double base = index->segments.bundle_size;
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
        OJ_TRY(oj_patch_containing(s, taken, point + at, err));
        prefetch_answers(search->to, taken, point + at);
        OJ_TRY(answer_patch(search, taken, point + at, k, marks_ties, err));
        most = OJ_PATCH;
        at += taken;
        oj_adapt(&s->patch_limit, s->near_bundles.n, few, many, 4.0 * base);
    }
    return OJ_OK;
}

/* One nearest, the first in tie order. */
OJ_CLONES static oj_status
answer_one_nearest(struct nearest_search *search, int64_t n,
                   const struct oj_ordered_point *point, struct oj_error *err)
{
    return answer_points(search, n, point, 1, 0, err);
}

OJ_CLONES static oj_status
answer_k_nearest_or_ties(struct nearest_search *search, int64_t n,
                         const struct oj_ordered_point *point,
                         struct oj_error *err)
{
    const struct oj_relation *relation = &search->index->relation;
    return answer_points(search, n, point, relation->k,
                         relation->ties == OJ_TIES_ALL, err);
}

oj_status oj_nearest_points(const struct oj_cpu_index *index,
                            struct oj_nearest_scratch *s, int64_t n,
                            const struct oj_ordered_point *point,
                            const struct oj_nearest_output *to,
                            struct oj_error *err)
{
    struct nearest_search search = {
        index, s, to, oj_ranking_make(&index->relation, index->tie_rank)};
    int64_t k = index->relation.k;
    oj_status status;
    if (k == 1 && index->relation.ties != OJ_TIES_ALL)
        return answer_one_nearest(&search, n, point, err);
    if (s->own == NULL)
        OJ_NEW_ZEROED(s->own, 1, err);
    OJ_ROOM(s->best_feature, 0, k, s->cap_best, err);
    OJ_ROOM(s->best_d2, 0, k, s->cap_best_d2, err);
    status = answer_k_nearest_or_ties(&search, n, point, err);
    oj_ranking_free(&search.ranking);
    return status;
}

void oj_nearest_scratch_free(struct oj_nearest_scratch *s)
{
    oj_containing_free(&s->containing);
    oj_free(s->near_bundles.block);
    oj_free(s->near);
    oj_free(s->candidate);
    oj_free(s->candidate_low);
    oj_free(s->matrix);
    oj_free(s->best_feature);
    oj_free(s->best_d2);
    oj_free(s->own);
    memset(s, 0, sizeof *s);
}
