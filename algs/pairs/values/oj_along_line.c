#include "oj_along_line.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../../flatten/base/oj_target_clones.h"
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

static const struct oj_along no_place = {NAN, NAN, NAN, NAN, NAN, NAN, NAN};

/* ---- preparation --------------------------------------------------------- */

static double length_of_segment(const struct oj_along_side *side, int64_t v)
{
    const struct oj_flat *flat = side->flat;
    if (side->is_on_sphere)
        return oj_sphere_metres_of_chord2(
            oj_sphere_chord2(side->sphere.at[v], side->sphere.at[v + 1]));
    return oj_point_distance(flat->x[v], flat->y[v], flat->x[v + 1],
                             flat->y[v + 1]);
}

static struct oj_short_line short_line_of_part(const struct oj_flat *flat,
                                               int64_t part,
                                               const double *measure)
{
    const int64_t *offset = &flat->vertex_offset[flat->ring_offset[part]];
    int64_t n = offset[1] - offset[0] - 1;
    double length = n > 0 ? measure[offset[1] - 1] : 0.0;
    return (struct oj_short_line){offset[0],
                                  n <= SEGMENTS_PER_BOX ? (int32_t)n : 0,
                                  (float)(length * length + (double)FLT_MIN)};
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
        if (side->is_on_sphere &&
            oj_sphere_box3_is_empty(&side->sphere.box[feature]))
            continue; /* the vertices of a feature with an empty box have no
                         vectors, and the feature has no pairs */
        for (int64_t ring = flat->ring_offset[part];
             ring < flat->ring_offset[end_part]; ring++)
        {
            int64_t v = flat->vertex_offset[ring];
            for (; v < flat->vertex_offset[ring + 1]; v++)
            {
                side->measure[v] = sum;
                if (v + 1 < flat->vertex_offset[ring + 1])
                    sum += length_of_segment(side, v);
            }
        }
        if (end_part == part + 1 && flat->part_kind[part] == OJ_PART_LINE)
            side->line[feature] = short_line_of_part(flat, part, side->measure);
    }
    return OJ_OK;
}

static int64_t segments_per_box(int level)
{
    return (int64_t)SEGMENTS_PER_BOX << (4 * level);
}

static int64_t count_boxes(const struct oj_along_side *side, int level)
{
    return side->flat->n_vertices / segments_per_box(level) + 1;
}

static oj_status compute_boxes_of_task(int64_t task, int thread, void *user,
                                       struct oj_error *err)
{
    struct oj_along_side *side = user;
    const struct oj_flat *flat = side->flat;
    int64_t n = count_boxes(side, 0);
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
        side->box[0][i] = box;
    }
    return OJ_OK;
}

static oj_status compute_boxes_of_segments(struct oj_along_side *side,
                                           int n_threads, struct oj_error *err)
{
    for (int level = 0; level < OJ_ALONG_LEVELS; level++)
        OJ_NEW(side->box[level], count_boxes(side, level), err);
    OJ_TRY(oj_parallel_try(
        n_threads, (count_boxes(side, 0) + BOXES_PER_TASK - 1) / BOXES_PER_TASK,
        1, compute_boxes_of_task, side, err));
    for (int level = 1; level < OJ_ALONG_LEVELS; level++)
    {
        for (int64_t i = 0; i < count_boxes(side, level); i++)
            side->box[level][i] = oj_box_empty();
        for (int64_t i = 0; i < count_boxes(side, level - 1); i++)
            oj_box_add_box(&side->box[level][i / 16], &side->box[level - 1][i]);
    }
    return OJ_OK;
}

static oj_status measure_lines_of_side(struct oj_along_side *side,
                                       int n_threads, struct oj_error *err)
{
    const struct oj_flat *flat = side->flat;
    if (oj_flat_is_points(flat))
        return OJ_OK;
    OJ_NEW(side->measure, flat->n_vertices + 1, err);
    OJ_NEW_ZEROED(side->line, flat->n_features + 1, err);
    if (side->is_on_sphere)
        OJ_TRY(oj_sphere_side_build(&side->sphere, flat, NULL, NULL, 1, 0,
                                    n_threads, err));
    else
        OJ_TRY(compute_boxes_of_segments(side, n_threads, err));
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
    oj_free(side->measure);
    oj_free(side->line);
    for (int level = 0; level < OJ_ALONG_LEVELS; level++)
        oj_free(side->box[level]);
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

/* Replaces *best by a nearer segment, if there is one among those that start at
 * the vertices first to end - 1 of a ring. */
static void find_nearest_of_segments(const struct oj_along_side *side,
                                     int64_t ring, int64_t first, int64_t end,
                                     double x, double y,
                                     struct nearest_segment *best)
{
    for (int64_t v = first; v < end; v++)
    {
        const double ax = side->flat->x[v], bx = side->flat->x[v + 1];
        const double ay = side->flat->y[v], by = side->flat->y[v + 1];
        double distance;
        if (is_box_farther(ax < bx ? ax : bx, ay < by ? ay : by,
                           ax < bx ? bx : ax, ay < by ? by : ay, x, y,
                           best->distance))
            continue;
        distance = oj_segment_distance(x, y, ax, ay, bx, by);
        if (distance < best->distance &&
            (best->heading == NULL ||
             oj_heading_fits(best->heading, bx - ax, by - ay)))
            *best = (struct nearest_segment){distance, v, ring, best->heading};
    }
}

/* Called for vertex v in a scan of a ring that begins at vertex first. Returns
 * the vertex behind the largest box that the scan enters at v and that is
 * farther than `best`, or v if there is no such box. */
static int64_t skip_far_boxes(const struct oj_along_side *side, int64_t first,
                              int64_t v, double x, double y, double best)
{
    for (int level = OJ_ALONG_LEVELS - 1; level >= 0; level--)
    {
        const int64_t n = segments_per_box(level);
        const struct oj_box *box = &side->box[level][v / n];
        if ((v % n == 0 || v == first) &&
            is_box_farther(box->x0, box->y0, box->x1, box->y1, x, y, best))
            return (v / n + 1) * n;
    }
    return v;
}

/* Replaces *best by a nearer segment of a ring, if there is one. Skips segments
 * in boxes that are farther than *best. */
static void find_nearest_of_ring(const struct oj_along_side *side, int64_t ring,
                                 double x, double y,
                                 struct nearest_segment *best)
{
    const int64_t first = side->flat->vertex_offset[ring];
    const int64_t end = side->flat->vertex_offset[ring + 1] - 1;
    if (end - first <= SEGMENTS_PER_BOX)
    {
        find_nearest_of_segments(side, ring, first, end, x, y, best);
        return;
    }
    for (int64_t v = first, next; v < end; v = next)
    {
        next = skip_far_boxes(side, first, v, x, y, best->distance);
        if (next > v)
            continue;
        next = (v / SEGMENTS_PER_BOX + 1) * SEGMENTS_PER_BOX;
        next = next < end ? next : end;
        find_nearest_of_segments(side, ring, v, next, x, y, best);
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
 * side. The trees also hold parts that are points, so the feature must have no
 * such parts. */
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
        const struct oj_short_line *line = &side->line[feature];
        find_nearest_of_segments(side, -1, line->first,
                                 line->first + line->n_segments, x, y, &best);
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
    int end;   /* 0: the place is inside of the segment, 1: at its start, 2: at
                  its end */
    double by; /* if end is 0: position on the segment, as a fraction of its
                  length */
};

static int are_vertices_equal(const struct place *q, int64_t v, int64_t w)
{
    const struct oj_flat *flat = q->side->flat;
    const struct oj_vec3 *at = q->side->sphere.at;
    if (q->side->is_on_sphere)
        return at[v].x == at[w].x && at[v].y == at[w].y && at[v].z == at[w].z;
    return flat->x[v] == flat->x[w] && flat->y[v] == flat->y[w];
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

static void project_on_segment_in_plane(struct place *q, double x, double y)
{
    const double *at_x = q->side->flat->x + q->v;
    const double *at_y = q->side->flat->y + q->v;
    double ax = at_x[0], ay = at_y[0], bx = at_x[1], by = at_y[1];
    double dx = bx - ax, dy = by - ay, len2 = dx * dx + dy * dy, r;
    if (!(len2 >= DBL_MIN)) /* the squared length underflows;
                               oj_segment_distance() also measures such a
                               segment by its ends */
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

static void project_on_segment_on_sphere(struct place *q, struct oj_vec3 p)
{
    const struct oj_vec3 *at = q->side->sphere.at;
    struct oj_vec3 foot;
    q->end = oj_sphere_arc_nearest(p, at[q->v], at[q->v + 1], &foot);
    if (q->end == 0)
        q->by = oj_sphere_metres_of_chord2(oj_sphere_chord2(at[q->v], foot)) /
                length_of_segment(q->side, q->v);
}

/* Returns the side of the line from vertex v to vertex w on which the point
 * lies: 1 left, -1 right, 0 on it. The point is (x, y); on the sphere, p. */
static int side_of_line(const struct place *q, int64_t v, int64_t w, double x,
                        double y, struct oj_vec3 p)
{
    const struct oj_flat *flat = q->side->flat;
    const struct oj_vec3 *at = q->side->sphere.at;
    double sign;
    if (!q->side->is_on_sphere)
        return oj_orientation(flat->x[v], flat->y[v], flat->x[w], flat->y[w], x,
                              y);
    sign = oj_sphere_vec3_dot(oj_sphere_vec3_sub(p, at[v]),
                              oj_sphere_vec3_cross(at[v], at[w]));
    return (sign > 0.0) - (sign < 0.0);
}

static int side_of_line_with_vertex(const struct place *q, int64_t v, int64_t w,
                                    int64_t of)
{
    const struct oj_vec3 none = {0.0, 0.0, 0.0};
    const struct oj_flat *flat = q->side->flat;
    return side_of_line(q, v, w, flat->x[of], flat->y[of],
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
    const double *x = q->side->flat->x + q->v, *y = q->side->flat->y + q->v;
    return q->side->is_on_sphere ? oj_sphere_bearing(x[0], y[0], x[1], y[1])
                                 : oj_planar_bearing(x[0], y[0], x[1], y[1]);
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

static double interpolate_m_value(const struct place *q)
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
    const double *measure = q->side->measure + q->v;
    out->along = q->end == 0   ? measure[0] + q->by * (measure[1] - measure[0])
                 : q->end == 1 ? measure[0]
                               : measure[1];
    out->segment = nearest->ring < 0
                       ? (double)(q->v - q->first + 1)
                       : number_of_segment(flat, feature, nearest->ring, q->v);
    if ((want & OJ_ALONG_PERCENT) != 0)
    {
        int64_t first, end;
        double length;
        oj_flat_vertex_range(flat, feature, &first, &end);
        length = q->side->measure[end - 1];
        if (length > 0.0)
            out->percent = 100.0 * (out->along / length);
    }
    if ((want & OJ_ALONG_BEARING) != 0)
        out->bearing = bearing_of_segment(q);
    if ((want & OJ_ALONG_M) != 0)
        out->m = interpolate_m_value(q);
}

/* Returns a place with the ring and the first vertex of the nearest segment;
 * the members end and by are not set. */
static struct place init_place_on_segment(const struct oj_along_side *side,
                                          int64_t feature,
                                          const struct nearest_segment *nearest)
{
    struct place q = {.side = side, .v = nearest->v};
    if (nearest->ring < 0)
    {
        q.first = side->line[feature].first;
        q.last = q.first + side->line[feature].n_segments;
    }
    else
    {
        q.first = side->flat->vertex_offset[nearest->ring];
        q.last = side->flat->vertex_offset[nearest->ring + 1] - 1;
    }
    return q;
}

/* Returns the values of the place of (x, y) on the nearest segment. */
static struct oj_along
measure_point_along_segment(const struct oj_along_side *side, int64_t feature,
                            const struct nearest_segment *nearest, double x,
                            double y, unsigned want)
{
    struct oj_along out = no_place;
    struct oj_vec3 p = {0.0, 0.0, 0.0};
    struct place q = init_place_on_segment(side, feature, nearest);
    double distance = nearest->distance;
    skip_segments_without_length(&q);
    if (side->is_on_sphere)
    {
        p = oj_sphere_vector(x, y);
        project_on_segment_on_sphere(&q, p);
        distance = oj_sphere_metres_of_chord2(distance);
    }
    else
        project_on_segment_in_plane(&q, x, y);
    fill_values_along(&q, feature, nearest, want, &out);
    if ((want & OJ_ALONG_SIDE) != 0)
    {
        out.side = distance > 0.0 ? find_side_of_point(&q, x, y, p) : 0.0;
        out.offset = out.side * distance;
    }
    return out;
}

struct oj_along oj_along_measure_point(const struct oj_along_side *side,
                                       int64_t feature, double x, double y,
                                       double most,
                                       const struct oj_heading_range *heading,
                                       unsigned want)
{
    struct nearest_segment nearest;
    if (isnan(x) || oj_flat_is_points(side->flat))
        return no_place;
    nearest = find_nearest_segment(side, feature, x, y, most, heading);
    if (nearest.v < 0) /* `most` was no upper bound: a distance rounded down, or
                          no distance at all */
        nearest = find_nearest_segment(side, feature, x, y, INFINITY, heading);
    return nearest.v < 0 ? no_place
                         : measure_point_along_segment(side, feature, &nearest,
                                                       x, y, want);
}

/* ---- blocks of pairs ----------------------------------------------------- */

enum
{
    /* Lines of more segments are measured one by one. */
    MOST_SEGMENTS = 8,
    SEGMENTS_AT_ONCE = 4
};

/* The nearest segment of each pair, and the place on it. */
struct block_places
{
    double px[OJ_ALONG_BLOCK], py[OJ_ALONG_BLOCK];
    double ax[OJ_ALONG_BLOCK], ay[OJ_ALONG_BLOCK];
    double bx[OJ_ALONG_BLOCK], by[OJ_ALONG_BLOCK];
    double measure_a[OJ_ALONG_BLOCK], measure_b[OJ_ALONG_BLOCK];
    int64_t v[OJ_ALONG_BLOCK]; /* first vertex of the segment; -1: none was
                                  found */

    double distance[OJ_ALONG_BLOCK];
    double ratio[OJ_ALONG_BLOCK]; /* position on the segment, 0 to 1 */
    double along[OJ_ALONG_BLOCK], offset[OJ_ALONG_BLOCK];
    double side[OJ_ALONG_BLOCK]; /* 1: left, -1: right; 0: the place may be a
                                    vertex, or rounding leaves the side open */
};

/* Prefetches the short lines of a block: pairs refer to lines in random order,
 * so reading them would miss the cache. Always inlined: gcc 12 removes calls of
 * a static function that only prefetches. */
OJ_INLINE void prefetch_lines_of_block(const struct oj_along_side *side,
                                       int64_t n, const int32_t *feature)
{
    for (int64_t i = 0; i < n; i++)
        __builtin_prefetch(&side->line[feature[i] < 0 ? 0 : feature[i]]);
    for (int64_t i = 0; i < n; i++)
    {
        const int64_t v = side->line[feature[i] < 0 ? 0 : feature[i]].first;
        __builtin_prefetch(&side->flat->x[v]);
        __builtin_prefetch(&side->flat->y[v]);
        __builtin_prefetch(&side->measure[v]);
    }
}

/* The least and the second least squared distance from a point to the segments
 * of a line. Each is the bit pattern of a double, with the number of the
 * segment in its lowest bits. The patterns are compared as integers, which have
 * the order of doubles >= 0 and take no branches. */
struct least_squares
{
    int64_t first, second;
};

typedef double four_doubles __attribute__((vector_size(32)));
typedef int64_t four_masks __attribute__((vector_size(32)));

static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t larger(int64_t a, int64_t b)
{
    return a < b ? b : a;
}

OJ_INLINE void copy_four(four_doubles *to, const double *from)
{
    memcpy(to, from, sizeof *to);
}

/* Updates *least by SEGMENTS_AT_ONCE segments, the first of which starts at the
 * vertex x[0], y[0]. Their squared distances differ from the squares of
 * oj_segment_distance() by rounding errors. add: INFINITY for segments that do
 * not count, otherwise 0. */
OJ_INLINE void lower_least_squared_distances(const double *x, const double *y,
                                             double px, double py,
                                             const double *add, int32_t k,
                                             struct least_squares *least)
{
    int64_t q[SEGMENTS_AT_ONCE], low, high, next;
    const four_doubles one = {1.0, 1.0, 1.0, 1.0};
    four_doubles ax, ay, bx, by, dx, dy, ux, uy, r, excess;
    four_masks is_before_end, is_behind_start;
    const four_masks number = {0, 1, 2, 3};
    four_doubles ex, ey, q4;
    four_masks key;
    copy_four(&ax, x);
    copy_four(&ay, y);
    copy_four(&bx, x + 1);
    copy_four(&by, y + 1);
    copy_four(&excess, add);
    dx = bx - ax;
    dy = by - ay;
    ux = px - ax;
    uy = py - ay;
    r = (ux * dx + uy * dy) / (dx * dx + dy * dy + DBL_MIN);
    is_before_end = r < one;
    is_behind_start = r > 0.0;
    r = (four_doubles)(((four_masks)r & is_before_end & is_behind_start) |
                       ((four_masks)one & ~is_before_end));
    ex = ux - r * dx;
    ey = uy - r * dy;
    q4 = ex * ex + ey * ey + excess;
    key = ((four_masks)q4 & ~(int64_t)(MOST_SEGMENTS - 1)) |
          (number + (int64_t)k);
    memcpy(q, &key, sizeof q);
    low = smaller(larger(q[0], q[1]), larger(q[2], q[3]));
    q[0] = smaller(q[0], q[1]);
    q[2] = smaller(q[2], q[3]);
    high = larger(q[0], q[2]);
    next = smaller(low, high);
    low = smaller(q[0], q[2]);
    high = larger(low, least->first);
    least->first = smaller(low, least->first);
    least->second = smaller(smaller(next, least->second), high);
}

static inline double squared_distance_of_key(int64_t key)
{
    double q;
    key &= ~(int64_t)(MOST_SEGMENTS - 1);
    memcpy(&q, &key, sizeof q);
    return q;
}

/* Finds the nearest segment of each short line, unless another one may be as
 * near. With D the distance of a segment and L the length of the line, rounding
 * changes a square by less than 2^-47 (D + L)^2, and the distance that
 * oj_segment_distance() computes by less than 2^-47 (D + L). The margin exceeds
 * both several times: the segment has the least computed distance, and no other
 * one equals it. Pairs with squares that are infinite, NaN or below 1e-280 are
 * left to oj_along_measure_point(). */
OJ_CLONES static void
find_nearest_segments_of_block(const struct oj_along_side *side, int64_t n,
                               const int32_t *feature, struct block_places *p)
{
    /* [segments left]: added to squares, so that the segments of the next line
     * do not count */
    static const double add[SEGMENTS_AT_ONCE + 1][SEGMENTS_AT_ONCE] = {
        {INFINITY, INFINITY, INFINITY, INFINITY},
        {0.0, INFINITY, INFINITY, INFINITY},
        {0.0, 0.0, INFINITY, INFINITY},
        {0.0, 0.0, 0.0, INFINITY},
        {0.0, 0.0, 0.0, 0.0}};
    const double *x = side->flat->x, *y = side->flat->y;
    const double *measure = side->measure;
    for (int64_t i = 0; i < n; i++)
    {
        const struct oj_short_line *line =
            &side->line[feature[i] < 0 ? 0 : feature[i]];
        const int64_t v = line->first, n_left = line->n_segments;
        struct least_squares least = {INT64_MAX, INT64_MAX};
        int64_t nearest;
        p->v[i] = -1;
        if (feature[i] < 0 || n_left == 0 || n_left > MOST_SEGMENTS ||
            v + MOST_SEGMENTS >= side->flat->n_vertices)
        {
            p->ax[i] = p->ay[i] = p->bx[i] = p->by[i] = 0.0;
            p->measure_a[i] = p->measure_b[i] = 0.0;
            continue;
        }
        for (int32_t k = 0; k < n_left; k += SEGMENTS_AT_ONCE)
            lower_least_squared_distances(
                x + v + k, y + v + k, p->px[i], p->py[i],
                add[n_left - k < SEGMENTS_AT_ONCE ? n_left - k
                                                  : SEGMENTS_AT_ONCE],
                k, &least);
        nearest = v + (least.first & (MOST_SEGMENTS - 1));
        if (squared_distance_of_key(least.second) * (1.0 - 0x1p-40) >
            squared_distance_of_key(least.first) +
                0x1p-40 * (double)line->length2 + 1e-280)
            p->v[i] = nearest;
        p->ax[i] = x[nearest];
        p->ay[i] = y[nearest];
        p->bx[i] = x[nearest + 1];
        p->by[i] = y[nearest + 1];
        p->measure_a[i] = measure[nearest];
        p->measure_b[i] = measure[nearest + 1];
    }
}

/* Sets distance, ratio, along, offset and side of n places to the values that
 * oj_segment_distance(), project_on_segment_in_plane(),
 * oj_orientation_if_certain() and fill_values_along() would compute. */
OJ_CLONES static void project_block_on_segments(int64_t n,
                                                struct block_places *p)
{
    const double *restrict px = p->px, *restrict py = p->py;
    const double *restrict ax = p->ax, *restrict ay = p->ay;
    const double *restrict bx = p->bx, *restrict by = p->by;
    const double *restrict from = p->measure_a, *restrict to = p->measure_b;
    const int64_t *restrict v = p->v;
    double *restrict ratio = p->ratio, *restrict side = p->side;
    double *restrict along = p->along, *restrict offset = p->offset;
    double *restrict distance = p->distance;
    for (int64_t i = 0; i < n; i++)
    {
        double dx = bx[i] - ax[i], dy = by[i] - ay[i];
        double len2 = dx * dx + dy * dy;
        double r = ((px[i] - ax[i]) * dx + (py[i] - ay[i]) * dy) / len2;
        double s = ((ay[i] - py[i]) * dx - (ax[i] - px[i]) * dy) / len2;
        double far = fabs(s) * sqrt(len2);
        double left = (ax[i] - px[i]) * (by[i] - py[i]);
        double right = (ay[i] - py[i]) * (bx[i] - px[i]);
        double det = left - right, size = fabs(left) + fabs(right);
        int is_certain = (size > 1e-280) &
                         (fabs(det) > OJ_ORIENTATION_ERROR * size) &
                         (len2 >= DBL_MIN) & (r > 0.0) & (r < 1.0) &
                         (far > 0.0) & (far < INFINITY) & (v[i] >= 0);
        double sign = is_certain ? (det > 0.0 ? 1.0 : -1.0) : 0.0;
        distance[i] = far;
        ratio[i] = r;
        along[i] = from[i] + r * (to[i] - from[i]);
        offset[i] = sign * far;
        side[i] = sign;
    }
}

/* Returns the values of pair i of a block. */
static struct oj_along measure_pair_of_block(const struct oj_along_side *side,
                                             int32_t feature,
                                             const struct block_places *p,
                                             int64_t i, double most,
                                             unsigned want)
{
    struct nearest_segment nearest = {p->distance[i], p->v[i], -1, NULL};
    struct oj_along along = no_place;
    struct place q;
    if (feature < 0)
        return no_place;
    if (p->v[i] < 0)
        return oj_along_measure_point(side, feature, p->px[i], p->py[i], most,
                                      NULL, want);
    if (p->side[i] == 0.0)
    {
        nearest.distance = oj_segment_distance(p->px[i], p->py[i], p->ax[i],
                                               p->ay[i], p->bx[i], p->by[i]);
        return measure_point_along_segment(side, feature, &nearest, p->px[i],
                                           p->py[i], want);
    }
    q = init_place_on_segment(side, feature, &nearest);
    q.by = p->ratio[i];
    fill_values_along(&q, feature, &nearest, want, &along);
    if ((want & OJ_ALONG_SIDE) != 0)
    {
        along.side = p->side[i];
        along.offset = p->offset[i];
    }
    return along;
}

static void store_if_wanted(double *to, int64_t i, double value)
{
    if (to != NULL)
        to[i] = value;
}

void oj_along_store(const struct oj_along_arrays *out, int64_t i,
                    const struct oj_along *place)
{
    store_if_wanted(out->along, i, place->along);
    store_if_wanted(out->m, i, place->m);
    store_if_wanted(out->percent, i, place->percent);
    store_if_wanted(out->offset, i, place->offset);
    store_if_wanted(out->side, i, place->side);
    store_if_wanted(out->segment, i, place->segment);
    store_if_wanted(out->bearing, i, place->bearing);
}

static void copy_if_wanted(double *to, const double *from, int64_t n)
{
    if (to != NULL)
        memcpy(to, from, (size_t)n * sizeof *from);
}

void oj_along_measure_block(const struct oj_along_side *side, int64_t n,
                            const int32_t *feature, const double *x,
                            const double *y, const double *most,
                            const struct oj_along_arrays *out)
{
    const unsigned more = (out->percent != NULL ? OJ_ALONG_PERCENT : 0U) |
                          (out->bearing != NULL ? OJ_ALONG_BEARING : 0U) |
                          (out->m != NULL ? OJ_ALONG_M : 0U) |
                          (out->segment != NULL ? OJ_ALONG_MEASURE : 0U);
    const unsigned want =
        more | OJ_ALONG_MEASURE |
        (out->offset != NULL || out->side != NULL ? OJ_ALONG_SIDE : 0U);
    struct block_places p;
    if (side->line == NULL) /* all features are points */
    {
        for (int64_t i = 0; i < n; i++)
            oj_along_store(out, i, &no_place);
        return;
    }
    prefetch_lines_of_block(side, n, feature);
    memcpy(p.px, x, (size_t)n * sizeof *x);
    memcpy(p.py, y, (size_t)n * sizeof *y);
    find_nearest_segments_of_block(side, n, feature, &p);
    project_block_on_segments(n, &p);
    copy_if_wanted(out->along, p.along, n);
    copy_if_wanted(out->offset, p.offset, n);
    copy_if_wanted(out->side, p.side, n);
    for (int64_t i = 0; i < n; i++)
    {
        if (more != 0 || p.side[i] == 0.0)
        {
            const struct oj_along place =
                measure_pair_of_block(side, feature[i], &p, i,
                                      most != NULL ? most[i] : INFINITY, want);
            oj_along_store(out, i, &place);
        }
    }
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
    oj_nearest_point_of_segment(
        x, y, side->flat->x[nearest.v], side->flat->y[nearest.v],
        side->flat->x[nearest.v + 1], side->flat->y[nearest.v + 1], to_x, to_y);
    return nearest.distance;
}
