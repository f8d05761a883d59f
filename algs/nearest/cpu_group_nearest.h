/** The nearest feature of each point of a group, the first in tie order, and
 *  whether there may be others as near: what the two files that decide share.
 */
#ifndef CPU_GROUP_NEAREST_H
#define CPU_GROUP_NEAREST_H

#include "cpu_candidates.h"

#define OJ_NO_FEATURE (-1)

/* The answers of a group while they are found. */
struct oj_group_best
{
    double distance[OJ_GROUP];
    int32_t feature[OJ_GROUP];
    uint32_t tied; /* bit i: others may be as near to point i */
};

/* 1 when feature a comes before b in tie order. */
OJ_INLINE int oj_comes_before(const struct oj_cpu_index *index, int32_t a,
                              int32_t b)
{
    if (b == OJ_NO_FEATURE)
        return 1;
    if (index->tie_rank == NULL)
        return a < b;
    return index->tie_rank[a] < index->tie_rank[b];
}

/* Point i of the group is in a polygon of feature. */
OJ_INLINE void oj_group_found_around(const struct oj_cpu_index *index, int i,
                                     int32_t feature,
                                     struct oj_group_best *best)
{
    if (best->feature[i] != OJ_NO_FEATURE && best->feature[i] != feature)
        best->tied |= UINT32_C(1) << i;
    if (oj_comes_before(index, feature, best->feature[i]))
        best->feature[i] = feature;
}

OJ_INLINE void oj_lanes_in_box(const double *px, const double *py,
                               struct oj_box box, int64_t in_box[OJ_LANES])
{
    OJ_EIGHT in_box[c] =
        (int64_t)(px[c] >= box.x0) & (int64_t)(px[c] <= box.x1) &
        (int64_t)(py[c] >= box.y0) & (int64_t)(py[c] <= box.y1);
}

/* Lets the part of a shell decide about the points of the group that are in its
 * boxes. */
OJ_INLINE void oj_group_try_shell(const struct oj_cpu_index *index,
                                  const struct oj_nearest_scratch *s,
                                  const struct oj_group *g,
                                  const struct oj_ring *shell, int marks_ties,
                                  struct oj_group_best *best)
{
    const struct oj_rings *rings = &index->rings;
    const double *x = rings->flat->x + shell->first_vertex;
    const double *y = rings->flat->y + shell->first_vertex;
    for (int first = 0; first < g->n; first += OJ_LANES)
    {
        const double *px = g->x + first, *py = g->y + first;
        int64_t in_shell[OJ_LANES], in_holes[OJ_LANES] = {0};
        int64_t inside[OJ_LANES], unclear[OJ_LANES], any = 0;
        oj_lanes_in_box(px, py, shell->box, in_shell);
        if (shell->holes >= 0)
            oj_lanes_in_box(px, py, rings->hole_box[shell->holes], in_holes);
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
            /* one that comes later says nothing but that there are several */
            if ((in_shell[lane] | in_holes[lane]) == 0 ||
                (!oj_comes_before(index, shell->feature, best->feature[i]) &&
                 (!marks_ties || (best->tied >> i & 1u) != 0)))
                continue;
            if (ask ? oj_shell_contains(rings, s, shell, g->x[i], g->y[i])
                    : oj_holes_leave(rings, s, shell, (int)in_shell[lane],
                                     g->x[i], g->y[i]))
                oj_group_found_around(index, i, shell->feature, best);
        }
    }
}

/* First in tie order of the features with a polygon around each point, at
 * distance 0. */
OJ_INLINE void oj_group_around(const struct oj_cpu_index *index,
                               const struct oj_nearest_scratch *s,
                               const struct oj_group *g, int marks_ties,
                               struct oj_group_best *best)
{
    best->tied = 0;
    for (int i = 0; i < g->n; i++)
        best->feature[i] = OJ_NO_FEATURE;
    for (int64_t i = 0; i < s->n_rings; i++)
    {
        const struct oj_ring *ring = &index->rings.ring[s->ring[i]];
        if (ring->holes != OJ_IS_HOLE)
            oj_group_try_shell(index, s, g, ring, marks_ties, best);
    }
    for (int i = 0; i < g->n; i++)
        best->distance[i] = best->feature[i] != OJ_NO_FEATURE ? 0.0 : INFINITY;
}

/* Pairs of a point of the group and a candidate, to be measured exactly: many
 * at once, so that divisions and roots fill vectors. */
#define OJ_GROUP_PAIRS 64
struct oj_group_pairs
{
    int n;
    int32_t point[OJ_GROUP_PAIRS + OJ_GROUP];     /* of the group */
    int32_t candidate[OJ_GROUP_PAIRS + OJ_GROUP]; /* of the scratch */
};

/* oj_segment_distance() without its branches: the same operations, so the same
 * bits. */
OJ_INLINE double oj_distance_without_branches(double px, double py, double ax,
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
OJ_INLINE void oj_group_settle(const struct oj_cpu_index *index,
                               const struct oj_nearest_scratch *s,
                               const struct oj_group *g, int marks_ties,
                               struct oj_group_pairs *p,
                               struct oj_group_best *best)
{
    double px[OJ_GROUP_PAIRS + OJ_GROUP], py[OJ_GROUP_PAIRS + OJ_GROUP];
    double ax[OJ_GROUP_PAIRS + OJ_GROUP], ay[OJ_GROUP_PAIRS + OJ_GROUP];
    double bx[OJ_GROUP_PAIRS + OJ_GROUP], by[OJ_GROUP_PAIRS + OJ_GROUP];
    double distance[OJ_GROUP_PAIRS + OJ_GROUP];
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
        distance[i] = oj_distance_without_branches(px[i], py[i], ax[i], ay[i],
                                                   bx[i], by[i]);
    for (int i = 0; i < n; i++)
    {
        int at = p->point[i];
        int32_t feature =
            index->segments.feature[s->candidate[p->candidate[i]]];
        double d = distance[i];
        int wins = (d < best->distance[at]) |
                   ((d == best->distance[at]) & (d < INFINITY) &
                    oj_comes_before(index, feature, best->feature[at]));
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
OJ_INLINE struct oj_scale oj_group_decide(const struct oj_cpu_index *index,
                                          struct oj_nearest_scratch *s,
                                          const struct oj_group *g,
                                          int marks_ties,
                                          struct oj_group_best *best)
{
    float least2[OJ_GROUP], limit2[OJ_GROUP];
    struct oj_scale scale = oj_fill_matrix(&index->segments, s, g, least2);
    struct oj_group_pairs pairs;
    pairs.n = 0;
    for (int i = 0; i < g->n; i++)
    {
        int inside = best->feature[i] != OJ_NO_FEATURE;
        float reach = (inside ? 0.0f : sqrtf(least2[i])) + 2.0f * scale.off;
        limit2[i] = reach * reach * (1.0f + 1e-6f);
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
        if (pairs.n > OJ_GROUP_PAIRS)
            oj_group_settle(index, s, g, marks_ties, &pairs, best);
    }
    oj_group_settle(index, s, g, marks_ties, &pairs, best);
    return scale;
}

#endif
