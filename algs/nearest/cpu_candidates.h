/** Groups of neighbouring points, and the segments that can be nearest to one
 * of them: the second half of a search that cpu_patch.h begins.
 *
 *  A segment is a candidate when it may come as close to the group's box as the
 *  bound of cpu_patch.h says that nearest ones do.
 */
#ifndef CPU_CANDIDATES_H
#define CPU_CANDIDATES_H

#include "cpu_patch.h"

#define OJ_GROUP 32 /* points a group has at most */

/* A group that still has more candidates than this is taken in halves. */
#define OJ_MANY_CANDIDATES 256

struct oj_group
{
    int n;
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
static inline void oj_candidates_compact_own(const struct oj_segments *segments,
                                             struct oj_nearest_scratch *s,
                                             const struct oj_place *place,
                                             const struct oj_bound *bound)
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
                oj_candidates_compact_own(segments, s, place, &bound);
            s->too_many =
                place->h > 0.0 && s->n_candidates > OJ_MANY_CANDIDATES + k;
            if (s->too_many)
                return OJ_OK;
            check_at = 2 * s->n_candidates + OJ_MANY_CANDIDATES + k;
        }
    }
    oj_candidates_compact(s, bound.keep);
    if (k > 1 && s->n_best < k && s->n_candidates > OJ_FEW_BOXES)
        oj_candidates_compact_own(segments, s, place, &bound);
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
OJ_INLINE uint32_t oj_row_close(const float *restrict row,
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

/* --- the polygons around the points --------------------------------------- */

/* Leaves in s->ring the polygon rings whose boxes touch that of the group. */
OJ_INLINE oj_status oj_collect_rings(const struct oj_rings *rings,
                                     struct oj_nearest_scratch *s,
                                     const struct oj_place *place,
                                     struct oj_error *err)
{
    struct oj_front *front = &s->near_rings;
    float reach2 = oj_tree_reach2(&rings->tree, 0.0);
    float q[4];
    s->n_rings = 0;
    if (front->n == 0)
        return OJ_OK;
    OJ_ROOM(s->ring, 0, front->n + OJ_FANOUT, s->cap_rings, err);
    oj_tree_relative(&rings->tree, &place->box, q);
    for (int64_t i = 0; i * OJ_FANOUT < front->n; i++)
    {
        struct oj_front_block *block = &front->block[i];
        oj_boxes_distance2(&block->box, q, block->d2);
        for (int c = 0; c < OJ_FANOUT; c++)
        {
            s->ring[s->n_rings] = block->entry[c];
            s->n_rings += block->d2[c] <= reach2;
        }
    }
    return OJ_OK;
}

/* Where eight points are in a small ring, by the signs that double precision
 * settles: odd[c] is 1 in the lanes that are inside, and unclear[c] is 1 in
 * those that oj_ring_locate() has to decide. */
OJ_INLINE void oj_ring_locate8(const double *x, const double *y, int64_t n,
                               const double *restrict px,
                               const double *restrict py, int64_t *restrict odd,
                               int64_t *restrict unclear)
{
    OJ_EIGHT
    {
        odd[c] = 0;
        unclear[c] = 0;
    }
    for (int64_t i = 0; i + 1 < n; i++)
    {
        double ax = x[i], ay = y[i], bx = x[i + 1], by = y[i + 1];
        int64_t upward = by > ay;
        OJ_EIGHT
        {
            int64_t crosses = (int64_t)(py[c] < ay) ^ (int64_t)(py[c] < by);
            double left = (ax - px[c]) * (by - py[c]);
            double right = (ay - py[c]) * (bx - px[c]);
            double det = left - right;
            double size = fabs(left) + fabs(right);
            /* as in oj_orientation() */
            int64_t settled =
                (int64_t)(fabs(det) > 3.3306690738754716e-16 * size) &
                (int64_t)(size > 1e-280);
            int64_t touches = (int64_t)(py[c] == ay) | (int64_t)(py[c] == by);
            odd[c] ^= crosses & ((int64_t)(det > 0.0) ^ upward ^ 1);
            unclear[c] |= (crosses & (settled ^ 1)) | touches;
        }
    }
}

/* 1 when the polygon part of a shell contains the point, which is not on
 * the shell; odd: it is inside the shell. */
static inline int oj_holes_leave(const struct oj_rings *rings,
                                 const struct oj_nearest_scratch *s,
                                 const struct oj_ring *shell, int odd, double x,
                                 double y)
{
    const struct oj_box *box;
    if (shell->holes == OJ_NO_HOLES)
        return odd;
    box = &rings->hole_box[shell->holes];
    if (x < box->x0 || x > box->x1 || y < box->y0 || y > box->y1)
        return odd;
    for (int64_t i = 0; i < s->n_rings; i++)
    {
        const struct oj_ring *ring = &rings->ring[s->ring[i]];
        enum oj_location location;
        if (ring->holes != OJ_IS_HOLE || ring->part != shell->part)
            continue;
        location = oj_rings_locate(rings, ring, x, y);
        if (location == OJ_ON_BOUNDARY)
            return 1;
        odd ^= location == OJ_INSIDE;
    }
    return odd;
}

/* 1 when the polygon part of a shell contains the point. */
static inline int oj_shell_contains(const struct oj_rings *rings,
                                    const struct oj_nearest_scratch *s,
                                    const struct oj_ring *shell, double x,
                                    double y)
{
    enum oj_location location = oj_rings_locate(rings, shell, x, y);
    return location == OJ_ON_BOUNDARY ||
           oj_holes_leave(rings, s, shell, location == OJ_INSIDE, x, y);
}

#endif
