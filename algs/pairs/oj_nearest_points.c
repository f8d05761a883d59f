#include "oj_nearest_points.h"

#include "../../flatten/base/oj_array.h"
#include "../kernels/oj_ring.h"
#include "../kernels/oj_segment_pair.h"

#include <string.h>

/* Segments that share a box. */
#define RUN 16

/* A part of one of the features: its segments in the order of its vertices, a
 * point as one segment without length. Segments are numbered over all rings;
 * runs end with their ring. */
struct part_segments
{
    const struct oj_flat *flat;
    int64_t feature, n_parts;
    struct oj_box **box;
    int64_t *capacity;

    /* The part at hand. */
    int64_t part, first_ring, end_ring;
    int kind;
    int64_t n_runs;
    struct oj_box all;
    double x, y; /* its first vertex */
};

struct segment
{
    double x0, y0, x1, y1;
};

/* The best so far: the least distance, and of equal ones the least places. */
struct best
{
    double distance;
    int64_t i, j;
    int found;
    struct segment a, b;
};

void oj_nearest_work_free(struct oj_nearest_work *work)
{
    oj_free(work->box_a);
    oj_free(work->box_b);
    memset(work, 0, sizeof *work);
}

/* ---- parts and their runs ----------------------------------------------- */

static struct part_segments open_side(const struct oj_flat *flat,
                                      int64_t feature, struct oj_box **box,
                                      int64_t *capacity)
{
    struct part_segments s = {0};
    s.flat = flat;
    s.feature = feature;
    s.box = box;
    s.capacity = capacity;
    if (oj_flat_is_points(flat))
        s.n_parts = flat->x[feature] - flat->x[feature] == 0.0;
    else
        s.n_parts = flat->part_offset[feature + 1] - flat->part_offset[feature];
    return s;
}

static int64_t count_segments(int64_t n_vertices)
{
    return n_vertices > 1 ? n_vertices - 1 : 1;
}

/* Vertices of ring r of the part at hand. */
static int64_t ring_of(const struct part_segments *s, int64_t r, int64_t *n)
{
    if (oj_flat_is_points(s->flat))
    {
        *n = 1;
        return s->feature;
    }
    *n = s->flat->vertex_offset[r + 1] - s->flat->vertex_offset[r];
    return s->flat->vertex_offset[r];
}

static oj_status add_runs(struct part_segments *s, int64_t ring,
                          struct oj_error *err)
{
    int64_t n, first = ring_of(s, ring, &n);
    int64_t n_segments = count_segments(n);
    int64_t n_runs = (n_segments + RUN - 1) / RUN;
    OJ_TRY(oj_reserve(s->box, s->n_runs, s->n_runs + n_runs, s->capacity,
                      sizeof **s->box, err));
    for (int64_t run = 0; run < n_runs; run++)
    {
        struct oj_box box = oj_box_empty();
        int64_t end = (run + 1) * RUN + 1 < n ? (run + 1) * RUN + 1 : n;
        for (int64_t v = run * RUN; v < end; v++)
            oj_box_add_point(&box, s->flat->x[first + v],
                             s->flat->y[first + v]);
        oj_box_add_box(&s->all, &box);
        (*s->box)[s->n_runs++] = oj_box_around(&box, 0.0);
    }
    return OJ_OK;
}

static oj_status take_part(struct part_segments *s, int64_t place,
                           struct oj_error *err)
{
    int64_t n, first;
    s->part = s->first_ring = 0;
    s->end_ring = 1;
    s->kind = OJ_PART_POINT;
    if (!oj_flat_is_points(s->flat))
    {
        s->part = s->flat->part_offset[s->feature] + place;
        s->first_ring = s->flat->ring_offset[s->part];
        s->end_ring = s->flat->ring_offset[s->part + 1];
        s->kind = s->flat->part_kind[s->part];
    }
    first = ring_of(s, s->first_ring, &n);
    s->x = s->flat->x[first];
    s->y = s->flat->y[first];
    s->n_runs = 0;
    s->all = oj_box_empty();
    for (int64_t ring = s->first_ring; ring < s->end_ring; ring++)
        OJ_TRY(add_runs(s, ring, err));
    s->all = oj_box_around(&s->all, 0.0);
    return OJ_OK;
}

/* ---- segments ----------------------------------------------------------- */

/* Where a run is: its ring's vertices, and the number of its first segment. */
struct segment_run
{
    int64_t ring, first_vertex, n_vertices;
    int64_t start;  /* of the run in its ring */
    int64_t number; /* of its first segment in the part */
};

static struct segment_run first_run(const struct part_segments *s)
{
    struct segment_run run = {0};
    run.ring = s->first_ring;
    run.first_vertex = ring_of(s, run.ring, &run.n_vertices);
    return run;
}

static int64_t run_length(const struct segment_run *run)
{
    int64_t left = count_segments(run->n_vertices) - run->start;
    return left < RUN ? left : RUN;
}

static void next_run(const struct part_segments *s, struct segment_run *run)
{
    run->number += run_length(run);
    run->start += run_length(run);
    if (run->start < count_segments(run->n_vertices) ||
        run->ring + 1 >= s->end_ring)
        return;
    run->ring++;
    run->start = 0;
    run->first_vertex = ring_of(s, run->ring, &run->n_vertices);
}

static struct segment segment_of(const struct part_segments *s,
                                 const struct segment_run *run, int64_t i)
{
    int64_t v = run->first_vertex + run->start + i;
    int64_t w = run->n_vertices > 1 ? v + 1 : v;
    struct segment segment = {s->flat->x[v], s->flat->y[v], s->flat->x[w],
                              s->flat->y[w]};
    return segment;
}

/* ---- the least distance ------------------------------------------------- */

static void compare_runs(const struct part_segments *a,
                         const struct segment_run *run_a,
                         const struct part_segments *b,
                         const struct segment_run *run_b, struct best *best)
{
    int64_t n_a = run_length(run_a), n_b = run_length(run_b);
    for (int64_t i = 0; i < n_a; i++)
    {
        struct segment p = segment_of(a, run_a, i);
        for (int64_t j = 0; j < n_b; j++)
        {
            struct segment q = segment_of(b, run_b, j);
            double d = oj_segment_pair_distance(p.x0, p.y0, p.x1, p.y1, q.x0,
                                                q.y0, q.x1, q.y1);
            int64_t at_i = run_a->number + i, at_j = run_b->number + j;
            if (!(d <= best->distance) || d == (double)INFINITY)
                continue;
            if (best->found && d == best->distance &&
                (at_i > best->i || (at_i == best->i && at_j >= best->j)))
                continue;
            best->distance = d;
            best->found = 1;
            best->i = at_i;
            best->j = at_j;
            best->a = p;
            best->b = q;
        }
    }
}

/* The pair of runs with the nearest boxes gives a bound that spares most other
 * pairs. */
static double bound_of(const struct part_segments *a,
                       const struct part_segments *b)
{
    struct segment_run run_a = first_run(a), best_a = run_a,
                       best_b = first_run(b);
    struct best best = {INFINITY, 0, 0, 0, {0, 0, 0, 0}, {0, 0, 0, 0}};
    double least = INFINITY;
    if (a->n_runs == 1 && b->n_runs == 1)
        return INFINITY;
    for (int64_t i = 0; i < a->n_runs; i++, next_run(a, &run_a))
    {
        struct segment_run run_b = first_run(b);
        for (int64_t j = 0; j < b->n_runs; j++, next_run(b, &run_b))
        {
            double d = oj_box_distance(&(*a->box)[i], &(*b->box)[j]);
            if (d >= least)
                continue;
            least = d;
            best_a = run_a;
            best_b = run_b;
        }
    }
    compare_runs(a, &best_a, b, &best_b, &best);
    return best.distance;
}

/* Segments of the parts at hand against each other: *best is replaced when they
 * are nearer. */
static void compare_parts(const struct part_segments *a,
                          const struct part_segments *b, struct best *best)
{
    struct segment_run run_a = first_run(a);
    struct best here = *best;
    double bound;
    if (oj_box_distance(&a->all, &b->all) > best->distance)
        return;
    bound = bound_of(a, b);
    here.found = 0;
    here.distance = bound < best->distance ? bound : best->distance;
    for (int64_t i = 0; i < a->n_runs; i++, next_run(a, &run_a))
    {
        struct segment_run run_b = first_run(b);
        for (int64_t j = 0; j < b->n_runs; j++, next_run(b, &run_b))
        {
            if (oj_box_distance(&(*a->box)[i], &(*b->box)[j]) <= here.distance)
                compare_runs(a, &run_a, b, &run_b, &here);
        }
    }
    if (here.found && (!best->found || here.distance < best->distance))
        *best = here;
}

static enum oj_location locate(const struct part_segments *s, int64_t ring,
                               double x, double y)
{
    int64_t n, first = ring_of(s, ring, &n);
    return oj_ring_locate(x, y, s->flat->x + first, s->flat->y + first, n);
}

/* As the distance has it: on a ring, or inside an odd number of them. */
static int part_holds(const struct part_segments *s, double x, double y)
{
    const struct oj_box point = {x, y, x, y};
    int odd = 0;
    if (s->kind != OJ_PART_POLYGON || !oj_box_intersects(&s->all, &point))
        return 0;
    for (int64_t ring = s->first_ring; ring < s->end_ring; ring++)
    {
        enum oj_location location = locate(s, ring, x, y);
        if (location == OJ_ON_BOUNDARY)
            return 1;
        odd ^= location == OJ_INSIDE;
    }
    return odd;
}

/* ---- points ------------------------------------------------------------- */

/* The point of segment s that is nearest to x, y. */
static void project(const struct segment *s, double x, double y, double *to_x,
                    double *to_y)
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

static int is_on(const struct segment *s, double x, double y)
{
    return oj_spans_overlap(s->x0, s->x1, x, x) &&
           oj_spans_overlap(s->y0, s->y1, y, y) &&
           oj_orientation(s->x0, s->y0, s->x1, s->y1, x, y) == 0;
}

/* A vertex where there is one, else where the lines cross. */
static void common_point(const struct segment *a, const struct segment *b,
                         double *x, double *y)
{
    double dx = a->x1 - a->x0, dy = a->y1 - a->y0;
    double ex = b->x1 - b->x0, ey = b->y1 - b->y0;
    double t =
        ((b->x0 - a->x0) * ey - (b->y0 - a->y0) * ex) / (dx * ey - dy * ex);
    *x = a->x0;
    *y = a->y0;
    if (is_on(b, a->x0, a->y0))
        return;
    if (is_on(b, a->x1, a->y1))
    {
        *x = a->x1;
        *y = a->y1;
    }
    else if (is_on(a, b->x0, b->y0))
    {
        *x = b->x0;
        *y = b->y0;
    }
    else if (is_on(a, b->x1, b->y1))
    {
        *x = b->x1;
        *y = b->y1;
    }
    else if (t > 0.0 && t < 1.0)
    {
        *x = a->x0 + t * dx;
        *y = a->y0 + t * dy;
    }
}

/* The vertex that is nearest to the other segment, and its foot there; the
 * vertices in the order in which the distance takes them. */
static void points_between(const struct segment *a, const struct segment *b,
                           struct oj_nearest_points *out)
{
    const double x[4] = {a->x0, a->x1, b->x0, b->x1};
    const double y[4] = {a->y0, a->y1, b->y0, b->y1};
    double least = INFINITY;
    int best = 0;
    for (int i = 0; i < 4; i++)
    {
        const struct segment *s = i < 2 ? b : a;
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
        project(b, out->ax, out->ay, &out->bx, &out->by);
    }
    else
    {
        out->bx = x[best];
        out->by = y[best];
        project(a, out->bx, out->by, &out->ax, &out->ay);
    }
}

static void set_common(struct oj_nearest_points *out, double x, double y)
{
    out->distance = 0.0;
    out->ax = out->bx = x;
    out->ay = out->by = y;
}

static void set_points(const struct best *best, struct oj_nearest_points *out)
{
    double x, y;
    out->distance = best->distance;
    if (best->distance > 0.0)
    {
        points_between(&best->a, &best->b, out);
        return;
    }
    common_point(&best->a, &best->b, &x, &y);
    set_common(out, x, y);
}

/* 1 when one of the parts at hand lies in the other, or begins there. */
static int is_inside(const struct part_segments *a,
                     const struct part_segments *b,
                     struct oj_nearest_points *out)
{
    if (part_holds(b, a->x, a->y))
        set_common(out, a->x, a->y);
    else if (part_holds(a, b->x, b->y))
        set_common(out, b->x, b->y);
    else
        return 0;
    return 1;
}

/* As is_inside(), for the other rings of a.  No rings of the two parts meet:
 * then this happens only to invalid polygons, with holes beyond their shells.
 */
static int has_ring_inside(const struct part_segments *a,
                           const struct part_segments *b,
                           struct oj_nearest_points *out)
{
    for (int64_t ring = a->first_ring + 1; ring < a->end_ring; ring++)
    {
        int64_t n, v = ring_of(a, ring, &n);
        double x = a->flat->x[v], y = a->flat->y[v];
        if (part_holds(b, x, y))
        {
            set_common(out, x, y);
            return 1;
        }
    }
    return 0;
}

oj_status oj_nearest_points_find(const struct oj_flat *flat_a, int64_t a,
                                 const struct oj_flat *flat_b, int64_t b,
                                 enum oj_distance_to distance_to,
                                 struct oj_nearest_work *work,
                                 struct oj_nearest_points *out,
                                 struct oj_error *err)
{
    struct part_segments one = open_side(flat_a, a, &work->box_a, &work->cap_a);
    struct part_segments two = open_side(flat_b, b, &work->box_b, &work->cap_b);
    struct best best = {INFINITY, 0, 0, 0, {0, 0, 0, 0}, {0, 0, 0, 0}};
    struct oj_nearest_points none = {INFINITY, NAN, NAN, NAN, NAN};
    *out = none;
    for (int64_t i = 0; i < one.n_parts; i++)
    {
        OJ_TRY(take_part(&one, i, err));
        for (int64_t j = 0; j < two.n_parts; j++)
        {
            OJ_TRY(take_part(&two, j, err));
            if (distance_to == OJ_TO_INTERIOR && is_inside(&one, &two, out))
                return OJ_OK;
            compare_parts(&one, &two, &best);
            if (best.found && best.distance <= 0.0)
            {
                set_points(&best, out);
                return OJ_OK;
            }
            if (distance_to == OJ_TO_INTERIOR &&
                (has_ring_inside(&one, &two, out) ||
                 has_ring_inside(&two, &one, out)))
                return OJ_OK;
        }
    }
    if (best.found)
        set_points(&best, out);
    return OJ_OK;
}

double oj_bearing(double ax, double ay, double bx, double by)
{
    double dx = bx - ax, dy = by - ay, degrees;
    if (dx == 0.0 && dy == 0.0)
        return (double)NAN;
    degrees = atan2(dx, dy) * (180.0 / 3.14159265358979323846);
    if (degrees < 0.0)
        degrees += 360.0;
    return degrees < 360.0 ? degrees : 0.0;
}
