/** Groups of points, and the distances between their points and the candidates
 *  that remain after a search: first all distances in single precision, then
 *  exact distances of the pairs that single precision cannot decide.
 *
 *  matrix   candidate 0   squared distances of points 0 .. 31
 *           candidate 1   ..
 *
 *  Everything here is inlined into cpu_nearest_of_point_groups.c, and compiled
 *  there for several instruction sets. Source: ours. */
#ifndef CPU_GROUP_MATRIX_H
#define CPU_GROUP_MATRIX_H

#include "cpu_point_patches.h"

#include <float.h>

/* --- groups --------------------------------------------------------------- */

struct oj_group
{
    int n;
    int64_t first; /* index of the first point in the patch */
    const struct oj_ordered_point *point;
    struct oj_points_box place;
    /* Entries from n up to a multiple of OJ_WIDE repeat the first point. */
    double x[OJ_GROUP], y[OJ_GROUP];
    int32_t excluded[OJ_GROUP]; /* [i] class that point i excludes; unused if
                                   points exclude none */
};

/* Forms a group of the leading ones of n >= 1 points: at most `most`, with
 * width + height within limit. If these are more than OJ_WIDE, they are cut to
 * a multiple of OJ_WIDE, so that no SIMD lane is idle. */
OJ_INLINE void oj_group_form(struct oj_group *g, int64_t n, int most,
                             const struct oj_ordered_point *point, double limit)
{
    g->n =
        oj_points_box_set_to_leading_points(&g->place, n, most, point, limit);
    if (g->n > OJ_WIDE && g->n % OJ_WIDE != 0)
        g->n = oj_points_box_set_to_leading_points(
            &g->place, g->n / OJ_WIDE * OJ_WIDE, most, point, INFINITY);
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

/* Returns the features whose polygons contain point i of the group, and their
 * number *n. */
OJ_INLINE const int32_t *
oj_group_features_containing_point(const struct oj_nearest_scratch *s,
                                   const struct oj_group *g, int i, int64_t *n)
{
    const int64_t *offset = s->containing.offset + g->first + i;
    *n = 0;
    if (s->cells->n_sets == 0)
        return NULL;
    *n = offset[1] - offset[0];
    return s->containing.feature + offset[0];
}

/* --- measuring ------------------------------------------------------------ */

/* Unit and error of the distances in the matrix. They are in single precision,
 * relative to the group's centre and to the extent of group and candidates, so
 * that they are at most about 1. */
struct oj_scale
{
    double inverse_unit; /* 1 / extent in CRS units, or 0 if distances are not
                            compared, and every candidate is measured exactly */
    float off;           /* upper bound of the error of distances in the matrix,
                            including that of distances in GEOS's order of
                            operations */
};

/* Returns the greater one of extent and an upper bound of the distance, in CRS
 * units, from the group's centre to the ends of a segment. */
OJ_INLINE double oj_group_extent_with_segment(const struct oj_group *g,
                                              double extent, double ax,
                                              double ay, double bx, double by)
{
    ax = fabs(ax - g->place.cx);
    ay = fabs(ay - g->place.cy);
    bx = fabs(bx - g->place.cx);
    by = fabs(by - g->place.cy);
    ax = ax > bx ? ax : bx;
    ay = ay > by ? ay : by;
    return ax + ay > extent ? ax + ay : extent;
}

/* Returns, in CRS units, an upper bound of the distance from the group's centre
 * to the ends of the candidates, plus half the diagonal of the group's box. */
OJ_INLINE double oj_group_extent(const struct oj_segments *segments,
                                 const struct oj_nearest_scratch *s,
                                 const struct oj_group *g)
{
    double extent = 0.0;
    for (int64_t j = 0; j < s->n_candidates; j++)
    {
        int64_t slot = s->candidate[j];
        const struct oj_bundle *b = oj_slot_bundle(segments, slot);
        int at = oj_slot_position_in_bundle(slot);
        extent = oj_group_extent_with_segment(g, extent, b->ax[at], b->ay[at],
                                              b->bx[at], b->by[at]);
    }
    return extent + g->place.h;
}

/* Returns the unit and error of distances up to `extent`.
 *
 * Coordinates are rounded to 2^-24 of the extent, and each of some ten
 * operations adds an error of that size, so off, 64 times 2^-24, is ample. The
 * error of GEOS's double formula is far smaller, unless its squares underflow;
 * OJ_LEAST_DISTANCE is added for these. */
OJ_INLINE struct oj_scale oj_group_scale_of_extent(double extent)
{
    struct oj_scale scale = {1.0 / extent, 64.0f * 5.9604645e-8f};
    if (!isfinite(scale.inverse_unit))
        scale.inverse_unit = 0.0;
    scale.off += (float)(OJ_LEAST_DISTANCE * scale.inverse_unit);
    return scale;
}

/* Points of a group in the unit of the matrix, relative to the group's centre.
 */
struct oj_scaled_points
{
    float x[OJ_GROUP], y[OJ_GROUP];
};

OJ_INLINE void oj_group_scale_points(const struct oj_group *g, double unit,
                                     struct oj_scaled_points *to)
{
    double cx = g->place.cx, cy = g->place.cy;
    for (int i = 0; i < g->n; i += OJ_WIDE)
    {
        OJ_SIXTEEN
        {
            to->x[i + c] = (float)((g->x[i + c] - cx) * unit);
            to->y[i + c] = (float)((g->y[i + c] - cy) * unit);
        }
    }
}

/* Computes the squared distances of sixteen points to a segment, up to
 * rounding. */
OJ_INLINE void oj_group_matrix_measure16(const float *restrict x,
                                         const float *restrict y, float ax,
                                         float ay, float dx, float dy,
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

/* Sets row, a row of the matrix, to the squared distances of all points of the
 * group to a segment, up to rounding. The ends of the segment are in CRS units.
 * Lowers least2 to these distances. */
OJ_INLINE void oj_group_matrix_fill_row(const struct oj_group *g, double unit,
                                        const struct oj_scaled_points *points,
                                        double ax, double ay, double bx,
                                        double by, float *restrict row,
                                        float *restrict least2)
{
    float sx = (float)((ax - g->place.cx) * unit);
    float sy = (float)((ay - g->place.cy) * unit);
    float dx = (float)((bx - ax) * unit);
    float dy = (float)((by - ay) * unit);
    float len2 = dx * dx + dy * dy;
    float inverse = len2 > 1e-30f ? 1.0f / len2 : 0.0f;
    for (int i = 0; i < g->n; i += OJ_WIDE)
        oj_group_matrix_measure16(points->x + i, points->y + i, sx, sy, dx, dy,
                                  inverse, row + i, least2 + i);
}

/* Computes the squared distances of all points of the group to the candidates,
 * up to rounding, in s->matrix: a row of OJ_GROUP numbers per candidate, of
 * which the first g->n are used. Sets least2 to the minimum for each point.
 * Returns the unit and the error of the distances. */
OJ_INLINE struct oj_scale
oj_group_matrix_fill(const struct oj_segments *segments,
                     const struct oj_nearest_scratch *s,
                     const struct oj_group *g, float least2[OJ_GROUP])
{
    struct oj_scale scale =
        oj_group_scale_of_extent(oj_group_extent(segments, s, g));
    struct oj_scaled_points points;
    oj_group_scale_points(g, scale.inverse_unit, &points);
    for (int i = 0; i < OJ_GROUP; i++)
        least2[i] = INFINITY;
    for (int64_t j = 0; j < s->n_candidates; j++)
    {
        int64_t slot = s->candidate[j];
        const struct oj_bundle *b = oj_slot_bundle(segments, slot);
        int at = oj_slot_position_in_bundle(slot);
        oj_group_matrix_fill_row(g, scale.inverse_unit, &points, b->ax[at],
                                 b->ay[at], b->bx[at], b->by[at],
                                 s->matrix + j * OJ_GROUP, least2);
    }
    return scale;
}

/* Sets to NaN, which is within no limit, the distances between each point and
 * the candidates of the class that it excludes. Recomputes least2 without them.
 */
OJ_INLINE void oj_group_matrix_mask_excluded(const struct oj_segments *segments,
                                             const struct oj_nearest_scratch *s,
                                             const struct oj_group *g,
                                             float least2[OJ_GROUP])
{
    for (int i = 0; i < OJ_GROUP; i++)
        least2[i] = INFINITY;
    for (int64_t j = 0; j < s->n_candidates; j++)
    {
        int32_t of =
            oj_excluded_class(&s->choice, segments->feature[s->candidate[j]]);
        float *row = s->matrix + j * OJ_GROUP;
        for (int i = 0; i < g->n; i += OJ_WIDE)
        {
            OJ_SIXTEEN
            {
                float d2 = g->excluded[i + c] == of ? NAN : row[i + c];
                least2[i + c] = d2 < least2[i + c] ? d2 : least2[i + c];
                row[i + c] = d2;
            }
        }
    }
}

/* Returns the points of the group that are within limit2 of the candidate of
 * this row, as a mask: bit i for point i. */
OJ_INLINE uint32_t oj_group_matrix_points_within(const float *restrict row,
                                                 const float *restrict limit2,
                                                 int n)
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

static inline oj_status oj_group_matrix_reserve(struct oj_nearest_scratch *s,
                                                struct oj_error *err)
{
    return oj_reserve(&s->matrix, 0, s->n_candidates * OJ_GROUP, &s->cap_matrix,
                      sizeof *s->matrix, err);
}

/* --- exact distances ------------------------------------------------------ */

/* Pairs of a point of the group and a candidate that must be measured exactly.
 * Many are measured at once, so that divisions and roots fill SIMD vectors. */
#define OJ_PAIRS_AT_ONCE 64
struct oj_group_pairs
{
    int n;
    int32_t point[OJ_PAIRS_AT_ONCE + OJ_GROUP];     /* index of the point in the
                                                       group */
    int32_t candidate[OJ_PAIRS_AT_ONCE + OJ_GROUP]; /* index of the candidate */
};

/* Computes the distances of the pairs in GEOS's order of operations. */
OJ_INLINE void oj_group_pairs_distance(const struct oj_segments *segments,
                                       const struct oj_nearest_scratch *s,
                                       const struct oj_group *g,
                                       const struct oj_group_pairs *p,
                                       double *restrict distance)
{
    double px[OJ_PAIRS_AT_ONCE + OJ_GROUP], py[OJ_PAIRS_AT_ONCE + OJ_GROUP];
    double ax[OJ_PAIRS_AT_ONCE + OJ_GROUP], ay[OJ_PAIRS_AT_ONCE + OJ_GROUP];
    double bx[OJ_PAIRS_AT_ONCE + OJ_GROUP], by[OJ_PAIRS_AT_ONCE + OJ_GROUP];
    int n = p->n;
    for (int i = 0; i < n; i++)
    {
        const struct oj_bundle *b;
        int64_t slot;
        int at;
        px[i] = g->x[p->point[i]];
        py[i] = g->y[p->point[i]];
        slot = s->candidate[p->candidate[i]];
        b = oj_slot_bundle(segments, slot);
        at = oj_slot_position_in_bundle(slot);
        ax[i] = b->ax[at];
        ay[i] = b->ay[at];
        bx[i] = b->bx[at];
        by[i] = b->by[at];
    }
    for (int i = 0; i < n; i++)
        distance[i] = oj_segment_distance_without_branches(px[i], py[i], ax[i],
                                                           ay[i], bx[i], by[i]);
}

#endif
