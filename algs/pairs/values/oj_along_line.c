#include "oj_along_line.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../foundations/kernels/oj_segment.h"
#include "../../joins/sphere/sphere_pair_closest_points.h"
#include "../selection/oj_nearest_points.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum
{
    SEGMENTS_PER_BOX = 16,
    FEATURES_PER_TASK = 1024,
    BOXES_PER_TASK = 1024
};

/* ---- preparation --------------------------------------------------------- */

static double length_of_segment(const struct oj_along_side *side, int64_t v)
{
    const struct oj_flat *flat = side->flat;
    if (side->is_on_sphere)
        return oj_sphere_metres_of(
            oj_sphere_chord2(side->sphere.at[v], side->sphere.at[v + 1]));
    return oj_point_distance(flat->x[v], flat->y[v], flat->x[v + 1],
                             flat->y[v + 1]);
}

static struct oj_short_line short_line_of_part(const struct oj_flat *flat,
                                               int64_t part)
{
    const int64_t *offset = &flat->vertex_offset[flat->ring_offset[part]];
    int64_t n = offset[1] - offset[0] - 1;
    return (struct oj_short_line){offset[0], n <= SEGMENTS_PER_BOX ? n : 0};
}

static oj_status measure_features_of_task(int64_t task, int thread, void *user,
                                          struct oj_error *err)
{
    struct oj_along_side *side = user;
    const struct oj_flat *flat = side->flat;
    int64_t feature = task * FEATURES_PER_TASK;
    int64_t end = feature + FEATURES_PER_TASK < flat->n_features
                      ? feature + FEATURES_PER_TASK
                      : flat->n_features;
    (void)thread;
    (void)err;
    for (; feature < end; feature++)
    {
        double sum = 0.0;
        int64_t part = flat->part_offset[feature];
        int64_t end_part = flat->part_offset[feature + 1];
        for (int64_t ring = flat->ring_offset[part];
             ring < flat->ring_offset[end_part]; ring++)
        {
            int64_t v = flat->vertex_offset[ring];
            for (; v < flat->vertex_offset[ring + 1]; v++)
            {
                side->vertex[v] =
                    (struct oj_along_vertex){flat->x[v], flat->y[v], sum};
                if (v + 1 < flat->vertex_offset[ring + 1])
                    sum += length_of_segment(side, v);
            }
        }
        if (end_part == part + 1 && flat->part_kind[part] == OJ_PART_LINE)
            side->line[feature] = short_line_of_part(flat, part);
    }
    return OJ_OK;
}

static oj_status bound_segments_of_task(int64_t task, int thread, void *user,
                                        struct oj_error *err)
{
    struct oj_along_side *side = user;
    const struct oj_flat *flat = side->flat;
    int64_t n = flat->n_vertices / SEGMENTS_PER_BOX + 1;
    int64_t i = task * BOXES_PER_TASK;
    int64_t end = i + BOXES_PER_TASK < n ? i + BOXES_PER_TASK : n;
    (void)thread;
    (void)err;
    for (; i < end; i++)
    {
        struct oj_box box = oj_box_empty();
        for (int64_t v = i * SEGMENTS_PER_BOX;
             v <= (i + 1) * SEGMENTS_PER_BOX && v < flat->n_vertices; v++)
            oj_box_add_point(&box, flat->x[v], flat->y[v]);
        side->box[i] = box;
    }
    return OJ_OK;
}

static oj_status measure_lines_of_side(struct oj_along_side *side,
                                       int n_threads, struct oj_error *err)
{
    const struct oj_flat *flat = side->flat;
    int64_t n_boxes = flat->n_vertices / SEGMENTS_PER_BOX + 1;
    if (oj_flat_is_points(flat))
        return OJ_OK;
    OJ_NEW(side->vertex, flat->n_vertices + 1, err);
    OJ_NEW_ZEROED(side->line, flat->n_features + 1, err);
    if (side->is_on_sphere)
        OJ_TRY(oj_sphere_side_build(&side->sphere, flat, NULL, NULL, 1, 0,
                                    n_threads, err));
    else
    {
        OJ_NEW(side->box, n_boxes, err);
        OJ_TRY(oj_parallel_try(n_threads,
                               (n_boxes + BOXES_PER_TASK - 1) / BOXES_PER_TASK,
                               1, bound_segments_of_task, side, err));
    }
    return oj_parallel_try(n_threads,
                           (flat->n_features + FEATURES_PER_TASK - 1) /
                               FEATURES_PER_TASK,
                           1, measure_features_of_task, side, err);
}

oj_status oj_along_side_build(struct oj_along_side *side,
                              const struct oj_flat *flat, int is_on_sphere,
                              int n_threads, struct oj_error *err)
{
    oj_status status;
    memset(side, 0, sizeof *side);
    side->flat = flat;
    side->is_on_sphere = is_on_sphere;
    status = measure_lines_of_side(side, n_threads, err);
    if (status != OJ_OK)
        oj_along_side_free(side);
    return status;
}

void oj_along_side_free(struct oj_along_side *side)
{
    oj_free(side->vertex);
    oj_free(side->line);
    oj_free(side->box);
    oj_sphere_side_free(&side->sphere);
    memset(side, 0, sizeof *side);
}

/* The nearest segment found so far. */
struct nearest_segment
{
    double distance; /* units of the CRS; on the sphere squared chord */
    int64_t v;       /* first vertex of the segment; -1: none found */
    int64_t ring;    /* ring of the segment; -1: the feature is a struct
                        oj_short_line */
    const struct oj_heading_range *heading; /* only segments that fit this
                                               heading are considered; NULL:
                                               all */
};

/* Returns 1 if every segment in the box has a computed distance above best. The
 * factor and the added term are larger than the rounding error of
 * oj_segment_distance() (OJ_VALIDATION_SLACK in oj_validation.h). */
static inline int is_box_farther(double x0, double y0, double x1, double y1,
                                 double x, double y, double best)
{
    double dx = oj_larger(oj_larger(x0 - x, x - x1), 0.0);
    double dy = oj_larger(oj_larger(y0 - y, y - y1), 0.0);
    double reach = best * (1.0 + 0x1p-40) + 0x1p-44 * ((x1 - x0) + (y1 - y0)) +
                   OJ_LEAST_DISTANCE;
    return dx * dx + dy * dy > reach * reach;
}

/* Compares the segments that start at vertices first to end - 1 of a ring. */
static void find_nearest_of_segments(const struct oj_along_side *side,
                                     int64_t ring, int64_t first, int64_t end,
                                     double x, double y,
                                     struct nearest_segment *best)
{
    for (int64_t v = first; v < end; v++)
    {
        const struct oj_along_vertex *a = &side->vertex[v], *b = a + 1;
        double distance;
        if (is_box_farther(a->x < b->x ? a->x : b->x, a->y < b->y ? a->y : b->y,
                           a->x < b->x ? b->x : a->x, a->y < b->y ? b->y : a->y,
                           x, y, best->distance))
            continue;
        distance = oj_segment_distance(x, y, a->x, a->y, b->x, b->y);
        if (distance < best->distance &&
            (best->heading == NULL ||
             oj_heading_fits(best->heading, b->x - a->x, b->y - a->y)))
            *best = (struct nearest_segment){distance, v, ring, best->heading};
    }
}

/* Compares the segments of a ring; skips 16 at once where their box is farther
 * than the best. */
static void find_nearest_of_ring(const struct oj_along_side *side, int64_t ring,
                                 double x, double y,
                                 struct nearest_segment *best)
{
    int64_t v = side->flat->vertex_offset[ring];
    int64_t end = side->flat->vertex_offset[ring + 1] - 1;
    if (end - v <= SEGMENTS_PER_BOX)
    {
        find_nearest_of_segments(side, ring, v, end, x, y, best);
        return;
    }
    while (v < end)
    {
        int64_t i = v / SEGMENTS_PER_BOX;
        int64_t next = (i + 1) * SEGMENTS_PER_BOX;
        const struct oj_box *box = &side->box[i];
        next = next < end ? next : end;
        if (!is_box_farther(box->x0, box->y0, box->x1, box->y1, x, y,
                            best->distance))
            find_nearest_of_segments(side, ring, v, next, x, y, best);
        v = next;
    }
}

static void find_nearest_arc_of_ring(const struct oj_along_side *side,
                                     int64_t ring, struct oj_vec3 p,
                                     struct nearest_segment *best)
{
    const struct oj_vec3 *at = side->sphere.at;
    int64_t v = side->flat->vertex_offset[ring];
    for (; v + 1 < side->flat->vertex_offset[ring + 1]; v++)
    {
        double chord2 = oj_sphere_arc_chord2(p, at[v], at[v + 1]);
        if (chord2 < best->distance)
            *best = (struct nearest_segment){chord2, v, ring, NULL};
    }
}

/* Returns the arc of a feature that is nearest to p, by the trees of the sphere
 * side. These also hold parts that are points, so the feature must have
 * none. */
static struct nearest_segment
find_nearest_arc_by_trees(const struct oj_along_side *side, int64_t feature,
                          struct oj_vec3 p)
{
    const struct oj_flat *flat = side->flat;
    const struct oj_sphere_place place =
        oj_sphere_nearest_edge(&side->sphere, feature, p, INFINITY);
    struct nearest_segment best = {
        place.chord2, place.vertex,
        flat->ring_offset[flat->part_offset[feature]], NULL};
    while (best.v >= flat->vertex_offset[best.ring + 1])
        best.ring++;
    if (best.v + 1 == flat->vertex_offset[best.ring + 1])
        best.v = -1; /* a line of one vertex has no segment */
    return best;
}

static struct nearest_segment
find_nearest_segment(const struct oj_along_side *side, int64_t feature,
                     double x, double y, double most,
                     const struct oj_heading_range *heading)
{
    const struct oj_flat *flat = side->flat;
    /* The initial distance is slightly above `most`, since only smaller
     * distances are accepted. */
    struct nearest_segment best = {most * (1.0 + 0x1p-40) + OJ_LEAST_DISTANCE,
                                   -1, 0, heading};
    struct oj_vec3 p = {0.0, 0.0, 0.0};
    if (!side->is_on_sphere && side->line[feature].n_segments > 0)
    {
        int64_t v = side->line[feature].first;
        find_nearest_of_segments(
            side, -1, v, v + side->line[feature].n_segments, x, y, &best);
        return best;
    }
    if (side->is_on_sphere)
    {
        p = oj_sphere_vector(x, y);
        if ((oj_flat_kinds(flat, feature) & OJ_PART_POINT) == 0)
        {
            const struct nearest_segment found =
                find_nearest_arc_by_trees(side, feature, p);
            if (found.v >= 0) /* -1: a line of one vertex is nearer */
                return found;
        }
    }
    for (int64_t part = flat->part_offset[feature];
         part < flat->part_offset[feature + 1]; part++)
    {
        if (flat->part_kind[part] == OJ_PART_POINT)
            continue;
        for (int64_t ring = flat->ring_offset[part];
             ring < flat->ring_offset[part + 1]; ring++)
        {
            if (side->is_on_sphere)
                find_nearest_arc_of_ring(side, ring, p, &best);
            else
                find_nearest_of_ring(side, ring, x, y, &best);
        }
    }
    return best;
}

/* A position on a ring: the nearest segment and the place on it. */
struct place
{
    const struct oj_along_side *side;
    int64_t first, last; /* first and last vertex of the ring */
    int64_t v;           /* first vertex of the nearest segment */
    int end;   /* 0: between its ends, 1: at its start, 2: at its end */
    double by; /* if end is 0: distance from the start of the segment */
};

static int are_vertices_equal(const struct place *q, int64_t v, int64_t w)
{
    const struct oj_along_vertex *vertex = q->side->vertex;
    const struct oj_vec3 *at = q->side->sphere.at;
    if (q->side->is_on_sphere)
        return at[v].x == at[w].x && at[v].y == at[w].y && at[v].z == at[w].z;
    return vertex[v].x == vertex[w].x && vertex[v].y == vertex[w].y;
}

/* Replaces a segment of length 0 by the next segment of the ring that has a
 * length; if there is none, by the previous one. */
static void skip_segments_without_length(struct place *q)
{
    int64_t v = q->v;
    while (v < q->last && are_vertices_equal(q, v, v + 1))
        v++;
    if (v == q->last)
    {
        v = q->v;
        while (v > q->first && are_vertices_equal(q, v, v + 1))
            v--;
        if (are_vertices_equal(q, v, v + 1))
            return;
    }
    q->v = v;
}

static void find_place_in_plane(struct place *q, double x, double y)
{
    const struct oj_along_vertex *a = &q->side->vertex[q->v], *b = a + 1;
    double ax = a->x, ay = a->y, bx = b->x, by = b->y;
    double dx = bx - ax, dy = by - ay, len2 = dx * dx + dy * dy, r;
    if (!(len2 >= DBL_MIN)) /* oj_segment_distance() measures such segments by
                               their ends, too */
    {
        q->end =
            oj_point_distance(x, y, ax, ay) <= oj_point_distance(x, y, bx, by)
                ? 1
                : 2;
        return;
    }
    r = ((x - ax) * dx + (y - ay) * dy) / len2;
    q->end = r <= 0.0 ? 1 : r >= 1.0 ? 2 : 0;
    q->by = r;
}

static void find_place_on_sphere(struct place *q, struct oj_vec3 p)
{
    const struct oj_vec3 *at = q->side->sphere.at;
    struct oj_vec3 foot;
    q->end = oj_sphere_arc_nearest(p, at[q->v], at[q->v + 1], &foot);
    if (q->end == 0)
        q->by = oj_sphere_metres_of(oj_sphere_chord2(at[q->v], foot)) /
                length_of_segment(q->side, q->v);
}

/* Returns the side of the line from vertex v to vertex w on which the point
 * lies: 1 left, -1 right, 0 on it. The point is (x, y); on the sphere, p. */
static int side_of_line(const struct place *q, int64_t v, int64_t w, double x,
                        double y, struct oj_vec3 p)
{
    const struct oj_along_vertex *a = &q->side->vertex[v];
    const struct oj_along_vertex *b = &q->side->vertex[w];
    const struct oj_vec3 *at = q->side->sphere.at;
    double sign;
    if (!q->side->is_on_sphere)
        return oj_orientation(a->x, a->y, b->x, b->y, x, y);
    sign = oj_sphere_vec3_dot(oj_sphere_vec3_sub(p, at[v]),
                              oj_sphere_vec3_cross(at[v], at[w]));
    return (sign > 0.0) - (sign < 0.0);
}

static int side_of_line_with_vertex(const struct place *q, int64_t v, int64_t w,
                                    int64_t of)
{
    const struct oj_vec3 none = {0.0, 0.0, 0.0};
    const struct oj_along_vertex *vertex = &q->side->vertex[of];
    return side_of_line(q, v, w, vertex->x, vertex->y,
                        q->side->is_on_sphere ? q->side->sphere.at[of] : none);
}

/* Returns the last vertex before v that differs from it, or -1 if there is
 * none. In a closed ring the search continues at the end of the ring. */
static int64_t vertex_before(const struct place *q, int64_t v)
{
    int64_t w = v;
    while (w > q->first && are_vertices_equal(q, w, v))
        w--;
    if (!are_vertices_equal(q, w, v))
        return w;
    if (!are_vertices_equal(q, q->first, q->last))
        return -1;
    for (w = q->last; w > v && are_vertices_equal(q, w, v);)
        w--;
    return are_vertices_equal(q, w, v) ? -1 : w;
}

static int64_t vertex_after(const struct place *q, int64_t v)
{
    int64_t w = v;
    while (w < q->last && are_vertices_equal(q, w, v))
        w++;
    if (!are_vertices_equal(q, w, v))
        return w;
    if (!are_vertices_equal(q, q->first, q->last))
        return -1;
    for (w = q->first; w < v && are_vertices_equal(q, w, v);)
        w++;
    return are_vertices_equal(q, w, v) ? -1 : w;
}

/* Returns the side on which a point lies whose nearest place is vertex v; the
 * point must differ from v. The point is (x, y); on the sphere, p. */
static int side_at_vertex(const struct place *q, int64_t v, double x, double y,
                          struct oj_vec3 p)
{
    int64_t from = vertex_before(q, v), to = vertex_after(q, v);
    int before, after, turn;
    if (from < 0 || to < 0)
    {
        before = from >= 0 ? side_of_line(q, from, v, x, y, p)
                           : side_of_line(q, v, to, x, y, p);
        return before != 0 ? before : 1;
    }
    before = side_of_line(q, from, v, x, y, p);
    after = side_of_line(q, v, to, x, y, p);
    if (before == after && before != 0)
        return before;
    turn = side_of_line_with_vertex(q, from, v, to);
    return turn != 0 ? -turn : before != 0 ? before : after != 0 ? after : 1;
}

static double find_side_of_point(const struct place *q, double x, double y,
                                 struct oj_vec3 p)
{
    if (q->end == 0)
        return side_of_line(q, q->v, q->v + 1, x, y, p);
    if (are_vertices_equal(q, q->v, q->v + 1))
        return (double)NAN;
    return side_at_vertex(q, q->v + q->end - 1, x, y, p);
}

static double bearing_of_segment(const struct place *q)
{
    const struct oj_along_vertex *a = &q->side->vertex[q->v], *b = a + 1;
    return q->side->is_on_sphere ? oj_sphere_bearing(a->x, a->y, b->x, b->y)
                                 : oj_planar_bearing(a->x, a->y, b->x, b->y);
}

/* Returns the number, from 1, of the segment that starts at vertex v of this
 * ring, counted over all rings of the feature. A ring of n vertices has n - 1
 * segments; a part that is a point has none. */
static double number_of_segment(const struct oj_flat *flat, int64_t feature,
                                int64_t ring, int64_t v)
{
    int64_t first_ring = flat->ring_offset[flat->part_offset[feature]];
    return (double)(v - flat->vertex_offset[first_ring] - (ring - first_ring) +
                    1);
}

static double m_of_place(const struct place *q)
{
    const double *m = q->side->flat->m;
    if (m == NULL)
        return (double)NAN;
    return q->end == 0 ? m[q->v] + q->by * (m[q->v + 1] - m[q->v])
                       : m[q->v + q->end - 1];
}

static void fill_values_along(const struct place *q, int64_t feature,
                              const struct nearest_segment *nearest,
                              unsigned want, struct oj_along *out)
{
    const struct oj_flat *flat = q->side->flat;
    const struct oj_along_vertex *a = &q->side->vertex[q->v], *b = a + 1;
    out->along = q->end == 0   ? a->measure + q->by * (b->measure - a->measure)
                 : q->end == 1 ? a->measure
                               : b->measure;
    out->segment = nearest->ring < 0
                       ? (double)(q->v - q->first + 1)
                       : number_of_segment(flat, feature, nearest->ring, q->v);
    if ((want & OJ_ALONG_PERCENT) != 0)
    {
        int64_t first, end;
        double length;
        oj_flat_vertex_range(flat, feature, &first, &end);
        length = q->side->vertex[end - 1].measure;
        if (length > 0.0)
            out->percent = 100.0 * (out->along / length);
    }
    if ((want & OJ_ALONG_BEARING) != 0)
        out->bearing = bearing_of_segment(q);
    if ((want & OJ_ALONG_M) != 0)
        out->m = m_of_place(q);
}

struct oj_along oj_along_find(const struct oj_along_side *side, int64_t feature,
                              double x, double y, double most,
                              const struct oj_heading_range *heading,
                              unsigned want)
{
    struct oj_along out = {NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    struct oj_vec3 p = {0.0, 0.0, 0.0};
    struct nearest_segment nearest;
    struct place q = {.side = side};
    double distance;
    if (isnan(x) || oj_flat_is_points(side->flat))
        return out;
    nearest = find_nearest_segment(side, feature, x, y, most, heading);
    if (nearest.v < 0) /* `most` was computed by another formula and rounded
                          down, so that all distances are above it */
        nearest = find_nearest_segment(side, feature, x, y, INFINITY, heading);
    if (nearest.v < 0)
        return out;
    if (nearest.ring < 0)
    {
        q.first = side->line[feature].first;
        q.last = q.first + side->line[feature].n_segments;
    }
    else
    {
        q.first = side->flat->vertex_offset[nearest.ring];
        q.last = side->flat->vertex_offset[nearest.ring + 1] - 1;
    }
    q.v = nearest.v;
    skip_segments_without_length(&q);
    distance = nearest.distance;
    if (side->is_on_sphere)
    {
        p = oj_sphere_vector(x, y);
        find_place_on_sphere(&q, p);
        distance = oj_sphere_metres_of(distance);
    }
    else
        find_place_in_plane(&q, x, y);
    fill_values_along(&q, feature, &nearest, want, &out);
    if ((want & OJ_ALONG_SIDE) != 0)
    {
        out.side = distance > 0.0 ? find_side_of_point(&q, x, y, p) : 0.0;
        out.offset = out.side * distance;
    }
    return out;
}

double oj_along_nearest_point(const struct oj_along_side *side, int64_t feature,
                              double x, double y,
                              const struct oj_heading_range *heading,
                              double *to_x, double *to_y)
{
    const struct nearest_segment nearest =
        oj_flat_is_points(side->flat)
            ? (struct nearest_segment){INFINITY, -1, 0, heading}
            : find_nearest_segment(side, feature, x, y, INFINITY, heading);
    if (nearest.v < 0)
        return (double)INFINITY;
    oj_nearest_point_of_segment(x, y, side->vertex[nearest.v].x,
                                side->vertex[nearest.v].y,
                                side->vertex[nearest.v + 1].x,
                                side->vertex[nearest.v + 1].y, to_x, to_y);
    return nearest.distance;
}
