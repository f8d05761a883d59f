#include "oj_nearest_points.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../foundations/kernels/oj_ring.h"
#include "../../foundations/kernels/oj_segment_pair.h"

#include <string.h>

/* Number of consecutive segments that share one bounding box. */
#define RUN 16

struct oj_plain_segment
{
    double x0, y0, x1, y1;
};

/* A part of a feature as segments, ring by ring in the order of its vertices. A
 * point is one segment of length 0. */
struct part_side
{
    const struct oj_flat *flat;
    int64_t feature, n_parts;
    struct oj_part_segments *of; /* segments of the current part */

    /* The current part. */
    int64_t first_ring, end_ring;
    int kind;
    int64_t n_segments, n_runs;
    struct oj_box all;
};

/* The best pair of segments so far: minimum distance, then lowest indices. */
struct nearest_best
{
    double distance;
    int64_t i, j;
    int found;
    struct oj_plain_segment a, b;
};

void oj_nearest_work_free(struct oj_nearest_work *work)
{
    oj_free(work->a.segment);
    oj_free(work->a.box);
    oj_free(work->b.segment);
    oj_free(work->b.box);
    memset(work, 0, sizeof *work);
}

/* ---- parts and their runs ----------------------------------------------- */

static struct part_side init_feature_parts(const struct oj_flat *flat,
                                           int64_t feature,
                                           struct oj_part_segments *of)
{
    struct part_side s = {.flat = flat, .feature = feature, .of = of};
    if (oj_flat_is_points(flat))
        s.n_parts = flat->x[feature] - flat->x[feature] == 0.0;
    else
        s.n_parts = flat->part_offset[feature + 1] - flat->part_offset[feature];
    return s;
}

/* Returns the first vertex of ring r, and sets *n to the number of vertices of
 * the ring. */
static int64_t first_vertex_of_ring(const struct part_side *s, int64_t r,
                                    int64_t *n)
{
    if (oj_flat_is_points(s->flat))
    {
        *n = 1;
        return s->feature;
    }
    *n = s->flat->vertex_offset[r + 1] - s->flat->vertex_offset[r];
    return s->flat->vertex_offset[r];
}

static oj_status add_ring_segments(struct part_side *s, int64_t ring,
                                   struct oj_error *err)
{
    const double *x = s->flat->x, *y = s->flat->y;
    int64_t n, v = first_vertex_of_ring(s, ring, &n), is_line = n > 1;
    int64_t end = s->n_segments + (is_line ? n - 1 : 1);
    OJ_ROOM(s->of->segment, s->n_segments, end, s->of->cap_segments, err);
    for (; s->n_segments < end; v++)
        s->of->segment[s->n_segments++] = (struct oj_plain_segment){
            x[v], y[v], x[v + is_line], y[v + is_line]};
    return OJ_OK;
}

static int64_t end_of_segment_run(const struct part_side *s, int64_t run)
{
    return (run + 1) * RUN < s->n_segments ? (run + 1) * RUN : s->n_segments;
}

static oj_status load_part_segments(struct part_side *s, int64_t place,
                                    struct oj_error *err)
{
    s->first_ring = s->n_segments = 0;
    s->end_ring = 1;
    s->kind = OJ_PART_POINT;
    if (!oj_flat_is_points(s->flat))
    {
        int64_t part = s->flat->part_offset[s->feature] + place;
        s->first_ring = s->flat->ring_offset[part];
        s->end_ring = s->flat->ring_offset[part + 1];
        s->kind = s->flat->part_kind[part];
    }
    for (int64_t ring = s->first_ring; ring < s->end_ring; ring++)
        OJ_TRY(add_ring_segments(s, ring, err));
    s->n_runs = (s->n_segments + RUN - 1) / RUN;
    OJ_ROOM(s->of->box, 0, s->n_runs, s->of->cap_boxes, err);
    s->all = oj_box_empty();
    for (int64_t run = 0; run < s->n_runs; run++)
    {
        struct oj_box box = oj_box_empty();
        for (int64_t i = run * RUN; i < end_of_segment_run(s, run); i++)
        {
            const struct oj_plain_segment *segment = &s->of->segment[i];
            oj_box_add_point(&box, segment->x0, segment->y0);
            oj_box_add_point(&box, segment->x1, segment->y1);
        }
        oj_box_add_box(&s->all, &box);
        s->of->box[run] = oj_box_widened(&box, 0.0);
    }
    s->all = oj_box_widened(&s->all, 0.0);
    return OJ_OK;
}

/* ---- minimum distance --------------------------------------------------- */

static void find_nearest_in_runs(const struct part_side *a, int64_t run_a,
                                 const struct part_side *b, int64_t run_b,
                                 struct nearest_best *best)
{
    for (int64_t i = run_a * RUN; i < end_of_segment_run(a, run_a); i++)
    {
        const struct oj_plain_segment *p = &a->of->segment[i];
        for (int64_t j = run_b * RUN; j < end_of_segment_run(b, run_b); j++)
        {
            const struct oj_plain_segment *q = &b->of->segment[j];
            double d = oj_segment_pair_distance(p->x0, p->y0, p->x1, p->y1,
                                                q->x0, q->y0, q->x1, q->y1);
            if (!(d <= best->distance) || d == (double)INFINITY)
                continue;
            if (best->found && d == best->distance &&
                (i > best->i || (i == best->i && j >= best->j)))
                continue;
            *best = (struct nearest_best){d, i, j, 1, *p, *q};
        }
    }
}

/* Compares the segments of two parts; replaces *best by a nearer pair. */
static void find_nearest_in_parts(const struct part_side *a,
                                  const struct part_side *b,
                                  struct nearest_best *best)
{
    struct nearest_best here = {.distance = best->distance};
    if (oj_box_distance(&a->all, &b->all) > best->distance)
        return;
    for (int64_t i = 0; i < a->n_runs; i++)
    {
        for (int64_t j = 0; j < b->n_runs; j++)
        {
            if (oj_box_distance(&a->of->box[i], &b->of->box[j]) <=
                here.distance)
                find_nearest_in_runs(a, i, b, j, &here);
        }
    }
    if (here.found && (!best->found || here.distance < best->distance))
        *best = here;
}

/* Returns 1 if the point is on a ring of the polygon part, or inside by the
 * even-odd rule. */
static int does_part_contain_point(const struct part_side *s, double x,
                                   double y)
{
    const struct oj_box point = {x, y, x, y};
    return s->kind == OJ_PART_POLYGON && oj_box_intersects(&s->all, &point) &&
           oj_rings_locate_by_even_odd(x, y, s->flat->x, s->flat->y,
                                       s->flat->vertex_offset, s->first_ring,
                                       s->end_ring) != OJ_OUTSIDE;
}

/* Computes the point of segment s that is nearest to (x, y). */
static void project_on_segment(const struct oj_plain_segment *s, double x,
                               double y, double *to_x, double *to_y)
{
    double dx = s->x1 - s->x0, dy = s->y1 - s->y0;
    double len2 = dx * dx + dy * dy;
    double r = ((x - s->x0) * dx + (y - s->y0) * dy) / len2;
    *to_x = s->x0;
    *to_y = s->y0;
    if (r >= 1.0)
    {
        *to_x = s->x1;
        *to_y = s->y1;
    }
    else if (r > 0.0)
    {
        *to_x = s->x0 + r * dx;
        *to_y = s->y0 + r * dy;
    }
}

void oj_nearest_point_of_segment(double x, double y, double ax, double ay,
                                 double bx, double by, double *to_x,
                                 double *to_y)
{
    const struct oj_plain_segment segment = {ax, ay, bx, by};
    project_on_segment(&segment, x, y, to_x, to_y);
}

static int is_point_on_segment(const struct oj_plain_segment *s, double x,
                               double y)
{
    return oj_segment_intervals_overlap(s->x0, s->x1, x, x) &&
           oj_segment_intervals_overlap(s->y0, s->y1, y, y) &&
           oj_orientation(s->x0, s->y0, s->x1, s->y1, x, y) == 0;
}

/* Sets *x and *y to the intersection of two segments: a common vertex if there
 * is one, else the crossing point. */
static void intersection_point_of_segments(const struct oj_plain_segment *a,
                                           const struct oj_plain_segment *b,
                                           double *x, double *y)
{
    const double vertex[4][2] = {
        {a->x0, a->y0}, {a->x1, a->y1}, {b->x0, b->y0}, {b->x1, b->y1}};
    double dx = a->x1 - a->x0, dy = a->y1 - a->y0;
    double ex = b->x1 - b->x0, ey = b->y1 - b->y0;
    double t =
        ((b->x0 - a->x0) * ey - (b->y0 - a->y0) * ex) / (dx * ey - dy * ex);
    for (int i = 0; i < 4; i++)
    {
        *x = vertex[i][0];
        *y = vertex[i][1];
        if (is_point_on_segment(i < 2 ? b : a, *x, *y))
            return;
    }
    *x = t > 0.0 && t < 1.0 ? a->x0 + t * dx : a->x0;
    *y = t > 0.0 && t < 1.0 ? a->y0 + t * dy : a->y0;
}

/* Computes the nearest points of two disjoint segments: one of the four ends,
 * and the point of the other segment nearest to it. The ends are tried in the
 * order of oj_segment_pair_distance(). */
static void nearest_points_of_segments(const struct oj_plain_segment *a,
                                       const struct oj_plain_segment *b,
                                       struct oj_nearest_points *out)
{
    const double x[4] = {a->x0, a->x1, b->x0, b->x1};
    const double y[4] = {a->y0, a->y1, b->y0, b->y1};
    double least = INFINITY;
    int best = 0;
    for (int i = 0; i < 4; i++)
    {
        const struct oj_plain_segment *s = i < 2 ? b : a;
        double d = oj_segment_distance(x[i], y[i], s->x0, s->y0, s->x1, s->y1);
        if (d < least)
        {
            least = d;
            best = i;
        }
    }
    if (best < 2)
    {
        out->ax = x[best];
        out->ay = y[best];
        project_on_segment(b, out->ax, out->ay, &out->bx, &out->by);
    }
    else
    {
        out->bx = x[best];
        out->by = y[best];
        project_on_segment(a, out->bx, out->by, &out->ax, &out->ay);
    }
}

static void set_both_points_at_distance_0(struct oj_nearest_points *out,
                                          double x, double y)
{
    out->distance = 0.0;
    out->ax = out->bx = x;
    out->ay = out->by = y;
}

static void set_nearest_points_from_best(const struct nearest_best *best,
                                         struct oj_nearest_points *out)
{
    double x, y;
    out->distance = best->distance;
    if (best->distance > 0.0)
    {
        nearest_points_of_segments(&best->a, &best->b, out);
        return;
    }
    intersection_point_of_segments(&best->a, &best->b, &x, &y);
    set_both_points_at_distance_0(out, x, y);
}

/* Returns 1 if the first vertex of one of a's rings first .. end - 1 lies in b;
 * then sets both nearest points to this vertex. */
static int find_ring_start_inside(const struct part_side *a,
                                  const struct part_side *b, int64_t first,
                                  int64_t end, struct oj_nearest_points *out)
{
    for (int64_t ring = first; ring < end; ring++)
    {
        int64_t n, v = first_vertex_of_ring(a, ring, &n);
        if (does_part_contain_point(b, a->flat->x[v], a->flat->y[v]))
        {
            set_both_points_at_distance_0(out, a->flat->x[v], a->flat->y[v]);
            return 1;
        }
    }
    return 0;
}

/* Returns 1 if the first ring of one part starts inside the other part; then
 * sets both nearest points to this start. */
static int find_first_ring_starting_inside(const struct part_side *a,
                                           const struct part_side *b,
                                           struct oj_nearest_points *out)
{
    int64_t i = a->first_ring, j = b->first_ring;
    return find_ring_start_inside(a, b, i, i + 1, out) ||
           find_ring_start_inside(b, a, j, j + 1, out);
}

/* Like find_first_ring_starting_inside(), for all other rings of the two parts.
 * Returns 0 for valid polygons: only a hole outside of its shell can start
 * inside the other part while the first ring does not. */
static int find_other_ring_starting_inside(const struct part_side *a,
                                           const struct part_side *b,
                                           struct oj_nearest_points *out)
{
    return find_ring_start_inside(a, b, a->first_ring + 1, a->end_ring, out) ||
           find_ring_start_inside(b, a, b->first_ring + 1, b->end_ring, out);
}

oj_status oj_nearest_points_find(const struct oj_flat *flat_a, int64_t a,
                                 const struct oj_flat *flat_b, int64_t b,
                                 enum oj_distance_to distance_to,
                                 struct oj_nearest_work *work,
                                 struct oj_nearest_points *out,
                                 struct oj_error *err)
{
    struct part_side one = init_feature_parts(flat_a, a, &work->a);
    struct part_side two = init_feature_parts(flat_b, b, &work->b);
    struct nearest_best best = {.distance = INFINITY};
    struct oj_nearest_points none = {INFINITY, NAN, NAN, NAN, NAN};
    *out = none;
    for (int64_t i = 0; i < one.n_parts; i++)
    {
        OJ_TRY(load_part_segments(&one, i, err));
        for (int64_t j = 0; j < two.n_parts; j++)
        {
            OJ_TRY(load_part_segments(&two, j, err));
            if (distance_to == OJ_TO_INTERIOR &&
                find_first_ring_starting_inside(&one, &two, out))
                return OJ_OK;
            find_nearest_in_parts(&one, &two, &best);
            if (best.found && best.distance <= 0.0)
            {
                set_nearest_points_from_best(&best, out);
                return OJ_OK;
            }
            if (distance_to == OJ_TO_INTERIOR &&
                find_other_ring_starting_inside(&one, &two, out))
                return OJ_OK;
        }
    }
    if (best.found)
        set_nearest_points_from_best(&best, out);
    return OJ_OK;
}

double oj_planar_bearing(double ax, double ay, double bx, double by)
{
    double dx = bx - ax, dy = by - ay, degrees;
    if (dx == 0.0 && dy == 0.0)
        return (double)NAN;
    degrees = atan2(dx, dy) * (180.0 / 3.14159265358979323846);
    if (degrees < 0.0)
        degrees += 360.0;
    return degrees < 360.0 ? degrees : 0.0;
}
