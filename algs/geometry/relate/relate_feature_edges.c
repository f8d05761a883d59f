#include "relate_feature_edges.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../foundations/base/cpu_lane_loops.h"
#include "../../foundations/base/exact_integer.h"
#include "../../foundations/kernels/oj_segment_intersection.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Minimum number of edges for an index by bands. A figure with fewer edges has
 * a single band. */
#define EDGES_FOR_BANDS 48

/* Greatest mean number of edges in a band, averaged over the bands of each
 * edge. Above it, a tree of edges replaces the bands. */
#define MOST_IN_BAND 128

/* --- distinct points ------------------------------------------------------ */

static int compare_points_by_x_y(const void *left, const void *right)
{
    const struct oj_relate_point *a = left, *b = right;
    if (a->x != b->x)
        return a->x < b->x ? -1 : 1;
    return (a->y > b->y) - (a->y < b->y);
}

int oj_relate_points_contain(const struct oj_relate_points *points, double x,
                             double y)
{
    const struct oj_relate_point wanted = {x, y};
    return points->n > 0 &&
           bsearch(&wanted, points->point, (size_t)points->n, sizeof wanted,
                   compare_points_by_x_y) != NULL;
}

/* Sorts points by (x, y) and removes duplicates. If odd_only is 1, keeps only
 * points that occur an odd number of times. */
static void sort_and_deduplicate_points(struct oj_relate_points *points,
                                        int odd_only)
{
    struct oj_relate_point *point = points->point;
    int64_t n = points->n, end;
    if (n > 1)
        qsort(point, (size_t)n, sizeof *point, compare_points_by_x_y);
    points->n = 0;
    for (int64_t i = 0; i < n; i = end)
    {
        end = i + 1;
        while (end < n && compare_points_by_x_y(&point[end], &point[i]) == 0)
            end++;
        if (!odd_only || (end - i) % 2 != 0)
            point[points->n++] = point[i];
    }
}

static oj_status append_point(struct oj_relate_points *points, double x,
                              double y, struct oj_error *err)
{
    OJ_ROOM(points->point, points->n, points->n + 1, points->capacity, err);
    points->point[points->n++] = (struct oj_relate_point){x, y};
    return OJ_OK;
}

/* --- edges ---------------------------------------------------------------- */

/* Appends the edges of a ring or line, except edges of length 0. Precondition:
 * the array has room. */
static void add_edges(struct oj_figure *f, int64_t first, int64_t end,
                      enum oj_edge_kind kind, int32_t group)
{
    const double *x = f->shape->flat->x, *y = f->shape->flat->y;
    for (int64_t v = first; v + 1 < end; v++)
    {
        if (x[v] != x[v + 1] || y[v] != y[v + 1])
            f->edge[f->n_edges++] = (struct oj_edge){
                x[v], y[v], x[v + 1], y[v + 1], group, (uint8_t)kind};
    }
}

static oj_status add_line(struct oj_figure *f, int64_t first, int64_t end,
                          struct oj_error *err)
{
    const double *x = f->shape->flat->x, *y = f->shape->flat->y;
    int64_t before = f->n_edges;
    add_edges(f, first, end, OJ_EDGE_LINE, 0);
    if (f->n_edges == before)
        return append_point(&f->points, x[first], y[first], err);
    if (x[first] == x[end - 1] && y[first] == y[end - 1])
        return OJ_OK;
    OJ_TRY(append_point(&f->ends, x[first], y[first], err));
    return append_point(&f->ends, x[end - 1], y[end - 1], err);
}

static oj_status add_ring(struct oj_figure *f, int64_t first, int64_t end,
                          struct oj_error *err)
{
    int64_t before = f->n_edges;
    add_edges(f, first, end, OJ_EDGE_RING, f->n_groups - 1);
    if (f->n_edges > before)
        return OJ_OK;
    OJ_ROOM(f->dot, f->n_dots, f->n_dots + 1, f->cap_dots, err);
    f->dot[f->n_dots++] = (struct oj_dot){
        {f->shape->flat->x[first], f->shape->flat->y[first]}, f->n_groups - 1};
    return OJ_OK;
}

static oj_status add_part_to_figure(struct oj_figure *f, int64_t part,
                                    struct oj_error *err)
{
    const struct oj_flat *flat = f->shape->flat;
    int64_t ring = flat->ring_offset[part];
    int64_t end_ring = flat->ring_offset[part + 1];
    int64_t first = flat->vertex_offset[ring];
    if (flat->part_kind[part] == OJ_PART_LINE)
        return add_line(f, first, flat->vertex_offset[ring + 1], err);
    if (flat->part_kind[part] == OJ_PART_POINT)
        return append_point(&f->points, flat->x[first], flat->y[first], err);
    if (!f->is_valid || f->n_groups == 0)
        f->n_groups++;
    for (; ring < end_ring; ring++)
        OJ_TRY(add_ring(f, flat->vertex_offset[ring],
                        flat->vertex_offset[ring + 1], err));
    return OJ_OK;
}

static oj_status add_parts_to_figure(struct oj_figure *f, struct oj_error *err)
{
    const struct oj_shape *shape = f->shape;
    OJ_ROOM(f->edge, 0, shape->n_vertices, f->cap_edges, err);
    if (oj_flat_is_points(shape->flat))
        return append_point(&f->points, shape->flat->x[shape->first_vertex],
                            shape->flat->y[shape->first_vertex], err);
    for (int64_t p = 0; p < shape->n_parts; p++)
        OJ_TRY(add_part_to_figure(f, shape->first_part + p, err));
    sort_and_deduplicate_points(&f->ends, 1);
    return OJ_OK;
}

/* --- bands of height ------------------------------------------------------ */

static void bands_of_edge(const struct oj_bands *b, const struct oj_edge *e,
                          int32_t *first, int32_t *last)
{
    *first = oj_relate_band_of(b, e->ay < e->by ? e->ay : e->by);
    *last = oj_relate_band_of(b, e->ay < e->by ? e->by : e->ay);
}

static int64_t most_edges_in_band(const struct oj_figure *f)
{
    return f->most_in_band > 0 ? f->most_in_band : MOST_IN_BAND;
}

/* Makes the tree of edges, unless there are more than INT32_MAX edges or
 * oj_box_is_safe_for_grid() refuses the coordinates. */
static oj_status make_tree_of_edges(struct oj_figure *f, struct oj_error *err)
{
    if (f->n_edges > INT32_MAX || !oj_box_is_safe_for_grid(&f->box))
        return OJ_OK;
    return oj_edge_tree_build(&f->tree, f->edge, f->n_edges, err);
}

/* Turns the number of edges of each band, in first[band + 2], into positions of
 * its list. Returns 1 if a band of an edge has, on average over all bands of
 * all edges, more than most_edges_in_band() edges. */
static int convert_band_counts_to_positions(const struct oj_figure *f)
{
    const struct oj_bands *b = &f->bands;
    double n_found = 0.0;
    for (int32_t band = 0; band < b->n; band++)
    {
        const double n = (double)b->first[band + 2];
        n_found += n * n;
        b->first[band + 2] += b->first[band + 1];
    }
    return n_found > (double)most_edges_in_band(f) * (double)b->first[b->n + 1];
}

/* Makes an index of the edges by bands of height: counts the edges of each
 * band, then lists them. If edges are long there are fewer bands, because a
 * long edge is in many bands. If edges crowd in the bands, makes a tree
 * instead. */
static oj_status make_bands_or_tree(struct oj_figure *f, struct oj_error *err)
{
    struct oj_bands *b = &f->bands;
    double height = f->box.y1 - f->box.y0, rise = 0.0, n;
    int32_t first, last;
    f->tree.n = 0;
    b->n = 1;
    b->y0 = f->box.y0;
    b->per_unit = 0.0;
    for (int64_t i = 0; i < f->n_edges; i++)
        rise += fabs(f->edge[i].by - f->edge[i].ay);
    if (f->n_edges < EDGES_FOR_BANDS || !(height > 0.0) || !isfinite(rise))
        return f->n_edges > most_edges_in_band(f) ? make_tree_of_edges(f, err)
                                                  : OJ_OK;
    /* rise / height is the average number of edges at a height */
    n = 2.0 * (double)f->n_edges / (1.0 + rise / height);
    n = n < 2.0 ? 2.0 : n > 1e6 ? 1e6 : n;
    b->per_unit = n / height;
    if (!isfinite(b->per_unit))
    {
        b->per_unit = 0.0;
        return OJ_OK;
    }
    b->n = (int32_t)n;
    OJ_ROOM(b->first, 0, b->n + 2, b->cap_first, err);
    memset(b->first, 0, (size_t)(b->n + 2) * sizeof *b->first);
    for (int64_t i = 0; i < f->n_edges; i++)
    {
        bands_of_edge(b, &f->edge[i], &first, &last);
        for (int32_t band = first; band <= last; band++)
            b->first[band + 2]++;
    }
    if (convert_band_counts_to_positions(f))
        OJ_TRY(make_tree_of_edges(f, err));
    if (f->tree.n > 0)
        return OJ_OK;
    OJ_ROOM(b->edge, 0, b->first[b->n + 1], b->cap_edge, err);
    for (int64_t i = 0; i < f->n_edges; i++)
    {
        bands_of_edge(b, &f->edge[i], &first, &last);
        for (int32_t band = first; band <= last; band++)
            b->edge[b->first[band + 1]++] = (int32_t)i;
    }
    return OJ_OK;
}

/* --- decomposition of a feature ------------------------------------------- */

/* First step of a decomposition: lists edges and bands, without detecting
 * polygons that have no area. O(vertices). is_valid 1: the shape is known to be
 * topologically valid. */
static oj_status list_figure_edges_and_bands(struct oj_figure *f,
                                             const struct oj_shape *shape,
                                             int is_valid, struct oj_error *err)
{
    f->shape = shape;
    f->flat = NULL;
    f->is_valid = is_valid;
    f->n_edges = f->points.n = f->ends.n = f->n_dots = 0;
    f->n_groups = 0;
    f->has_flat = 0;
    f->box = shape->box;
    OJ_TRY(add_parts_to_figure(f, err));
    OJ_TRY(make_bands_or_tree(f, err));
    OJ_ROOM(f->is_on, 0, f->n_groups + 1, f->cap_on, err);
    OJ_ROOM(f->mark, 0, f->n_groups + 1, f->cap_mark, err);
    OJ_ROOM(f->used, 0, f->n_groups + 1, f->cap_used, err);
    OJ_ROOM(f->is_used, 0, f->n_groups + 1, f->cap_is_used, err);
    memset(f->is_on, 0, (size_t)f->n_groups);
    memset(f->mark, 0, (size_t)f->n_groups * sizeof *f->mark);
    memset(f->is_used, 0, (size_t)f->n_groups);
    f->n_used = 0;
    return oj_reserve(&f->encloses, 0, f->n_groups + 1, &f->cap_encloses,
                      sizeof *f->encloses, err);
}

/* Second step of a decomposition: moves rings that are a single point (dots) to
 * the isolated points, if their polygon has no area, and sorts these points.
 * Precondition: f->encloses is set, unless the feature is valid. */
static oj_status list_zero_area_rings_as_points(struct oj_figure *f,
                                                struct oj_error *err)
{
    int64_t n_kept = 0;
    for (int64_t i = 0; i < f->n_dots; i++)
    {
        if (f->is_valid || f->encloses[f->dot[i].group])
            f->dot[n_kept++] = f->dot[i];
        else
            OJ_TRY(
                append_point(&f->points, f->dot[i].at.x, f->dot[i].at.y, err));
    }
    f->n_dots = n_kept;
    sort_and_deduplicate_points(&f->points, 0);
    return OJ_OK;
}

/* --- exact signs at a node ------------------------------------------------ */

static int sign_of_double(double v)
{
    return (v > 0.0) - (v < 0.0);
}

/* --- a crossing and a third edge ------------------------------------------ */

/* Bound of the relative rounding error of a sum of products; several times the
 * actual error. */
#define UNITS 1e-14

/* Sums of products of at least this size are not affected by underflow. */
#define LEAST_SIZE 1e-280

static void lower_exponent_to_that_of_edge(const struct oj_edge *e,
                                           int *exponent)
{
    const double value[4] = {e->ax, e->ay, e->bx, e->by};
    for (int i = 0; i < 4; i++)
    {
        int own = oj_integer_exponent(value[i]);
        *exponent = own < *exponent ? own : *exponent;
    }
}

static void set_scaled_vector(struct oj_integer out[2], double ax, double ay,
                              double bx, double by, int exponent)
{
    oj_integer_difference(&out[0], bx, ax, exponent);
    oj_integer_difference(&out[1], by, ay, exponent);
}

/* out = cross product u x v */
static void set_cross_product(struct oj_integer *out,
                              const struct oj_integer u[2],
                              const struct oj_integer v[2])
{
    oj_integer_cross(out, &u[0], &v[1], &u[1], &v[0]);
}

int oj_edge_side(const struct oj_edge *e, double x, double y)
{
    return oj_orientation(e->ax, e->ay, e->bx, e->by, x, y);
}

static int is_same_edge(const struct oj_edge *e, const struct oj_edge *f)
{
    return (e->ax == f->ax && e->ay == f->ay && e->bx == f->bx &&
            e->by == f->by) ||
           (e->ax == f->bx && e->ay == f->by && e->bx == f->ax &&
            e->by == f->ay);
}

/* Returns the sign of the cross product of the directions of two edges with a
 * common point. If rounded arithmetic leaves it open, uses the side of e on
 * which an end of f lies. */
static int cross_sign(const struct oj_edge *e, const struct oj_edge *f)
{
    double left = (e->bx - e->ax) * (f->by - f->ay);
    double right = (e->by - e->ay) * (f->bx - f->ax);
    double det = left - right, size = fabs(left) + fabs(right);
    int side;
    if (size > LEAST_SIZE && fabs(det) > 1e-15 * size)
        return sign_of_double(det);
    if (is_same_edge(e, f)) /* frequent: neighbours share an edge */
        return 0;
    side = oj_edge_side(e, f->bx, f->by);
    return side != 0 ? side : -oj_edge_side(e, f->ax, f->ay);
}

/* Returns the side of edge e on which the crossing of edges p and q lies, in
 * exact integers. The crossing is p.a + t (p.b - p.a) with t = T / W, W =
 * cross(p, q) and T = cross(q.a - p.a, q), where p, q and e stand for the
 * vectors from a to b. So the side is the sign of (W cross(e, p.a - e.a) + T
 * cross(e, p)) / W. */
static int exact_side_of_crossing(const struct oj_edge *p,
                                  const struct oj_edge *q,
                                  const struct oj_edge *e)
{
    struct oj_integer along_p[2], along_q[2], along_e[2], between[2];
    struct oj_integer w, t, u, v, sum;
    int exponent = INT_MAX;
    lower_exponent_to_that_of_edge(p, &exponent);
    lower_exponent_to_that_of_edge(q, &exponent);
    lower_exponent_to_that_of_edge(e, &exponent);
    exponent = exponent == INT_MAX ? 0 : exponent;
    set_scaled_vector(along_p, p->ax, p->ay, p->bx, p->by, exponent);
    set_scaled_vector(along_q, q->ax, q->ay, q->bx, q->by, exponent);
    set_scaled_vector(along_e, e->ax, e->ay, e->bx, e->by, exponent);
    set_scaled_vector(between, p->ax, p->ay, q->ax, q->ay, exponent);
    set_cross_product(&w, along_p, along_q);
    set_cross_product(&t, between, along_q);
    set_scaled_vector(between, e->ax, e->ay, p->ax, p->ay, exponent);
    set_cross_product(&u, along_e, between);
    set_cross_product(&v, along_e, along_p);
    oj_integer_add_products(&sum, &w, &u, &t, &v);
    return sum.sign * w.sign;
}

/* Returns 1 if the node is left of the line through e, -1 if right of it, 0 if
 * on it. */
static int side_of_node_to_edge(const struct oj_node *node,
                                const struct oj_edge *e)
{
    double dx, dy, det, size;
    if (node->cross[0] == NULL)
        return oj_edge_side(e, node->x, node->y);
    if (e == node->cross[0] || e == node->cross[1])
        return 0;
    dx = e->bx - e->ax;
    dy = e->by - e->ay;
    det = dx * (node->y - e->ay) - dy * (node->x - e->ax);
    size = (fabs(dx) + fabs(dy)) *
           (fabs(node->x) + fabs(node->y) + fabs(e->ax) + fabs(e->ay));
    if (size > LEAST_SIZE &&
        fabs(det) > UNITS * size + (fabs(dx) + fabs(dy)) * node->error)
        return sign_of_double(det);
    return exact_side_of_crossing(node->cross[0], node->cross[1], e);
}

/* Returns the sign of the node's y minus v. compare_node_x() does this for
 * x. */
static int compare_node_y(const struct oj_node *node, double v)
{
    const struct oj_edge level = {0.0, v, 1.0, v, 0, OJ_EDGE_LINE};
    if (node->cross[0] != NULL && !(fabs(node->y - v) > node->error))
        return exact_side_of_crossing(node->cross[0], node->cross[1], &level);
    return (node->y > v) - (node->y < v);
}

static int compare_node_x(const struct oj_node *node, double v)
{
    const struct oj_edge upright = {v, 0.0, v, 1.0, 0, OJ_EDGE_LINE};
    if (node->cross[0] != NULL && !(fabs(node->x - v) > node->error))
        return -exact_side_of_crossing(node->cross[0], node->cross[1],
                                       &upright);
    return (node->x > v) - (node->x < v);
}

static double largest_coordinate(const struct oj_edge *e)
{
    return oj_larger(oj_larger(fabs(e->ax), fabs(e->bx)),
                     oj_larger(fabs(e->ay), fabs(e->by)));
}

struct oj_node oj_relate_node_of_crossing(const struct oj_edge *e,
                                          const struct oj_edge *f)
{
    struct oj_node node = {e->ax, e->ay, INFINITY, {e, f}};
    double ex = e->bx - e->ax, ey = e->by - e->ay;
    double fx = f->bx - f->ax, fy = f->by - f->ay;
    double w = ex * fy - ey * fx;
    double t = ((f->ax - e->ax) * fy - (f->ay - e->ay) * fx) / w;
    double size = oj_larger(largest_coordinate(e), largest_coordinate(f));
    double spread = (fabs(ex) + fabs(ey)) * (fabs(fx) + fabs(fy)) / fabs(w);
    if (!(t >= 0.0 && t <= 1.0) || !(spread < 1e10) || !(fabs(w) > LEAST_SIZE))
        return node;
    node.x = e->ax + t * ex;
    node.y = e->ay + t * ey;
    node.error = UNITS * size * spread;
    return node;
}

/* --- edges at a node ------------------------------------------------------ */

static int8_t quadrant_of_direction(double dx, double dy)
{
    if (dy != 0.0)
        return dy > 0.0 ? 0 : 2;
    return dx < 0.0 ? 1 : 3;
}

static oj_status add_ray(struct oj_node_scratch *s, const struct oj_edge *e,
                         int sign, int figure, struct oj_error *err)
{
    struct oj_ray *ray;
    /* The differences are rounded, but their signs are exact. */
    double dx = e->bx - e->ax, dy = e->by - e->ay;
    OJ_ROOM(s->ray, s->n_rays, s->n_rays + 1, s->cap_rays, err);
    ray = &s->ray[s->n_rays++];
    ray->edge = e;
    ray->sign = (int8_t)sign;
    ray->quadrant =
        quadrant_of_direction(sign > 0 ? dx : -dx, sign > 0 ? dy : -dy);
    ray->figure = (uint8_t)figure;
    return OJ_OK;
}

/* Adds the rays in which edge e leaves the node, which lies on e: one ray if
 * the node is an end of e, otherwise two. */
OJ_INLINE oj_status add_rays_of_edge(struct oj_node_scratch *s,
                                     const struct oj_edge *e,
                                     const struct oj_node *node, int figure,
                                     struct oj_error *err)
{
    int is_exact = node->cross[0] == NULL;
    int is_a = is_exact && node->x == e->ax && node->y == e->ay;
    int is_b = is_exact && node->x == e->bx && node->y == e->by;
    if (!is_b)
        OJ_TRY(add_ray(s, e, 1, figure, err));
    if (!is_a)
        OJ_TRY(add_ray(s, e, -1, figure, err));
    return OJ_OK;
}

enum passing
{
    PASSES_NOT, /* the node's ray towards +x does not cross the edge */
    PASSES,     /* the ray crosses it */
    CONTAINS,   /* the node is inside the edge */
    ENDS_THERE, /* the node is an end of the edge */
};

/* Returns where edge e is relative to a node and its ray towards +x. Like
 * oj_ring_edge_crosses_ray(), but the node may be a crossing. */
OJ_INLINE enum passing classify_edge_against_ray(const struct oj_node *node,
                                                 const struct oj_edge *e)
{
    int above_a, above_b, side; /* above_a 1: the node is above end a; 0: at the
                                   height of a; -1: below a */
    if (e == node->cross[0] || e == node->cross[1])
        return CONTAINS;
    above_a = compare_node_y(node, e->ay);
    above_b = compare_node_y(node, e->by);
    if ((above_a == 0 && compare_node_x(node, e->ax) == 0) ||
        (above_b == 0 && compare_node_x(node, e->bx) == 0))
        return ENDS_THERE;
    if (above_a == 0 && above_b == 0)
        return compare_node_x(node, e->ax) * compare_node_x(node, e->bx) < 0
                   ? CONTAINS
                   : PASSES_NOT;
    if ((above_a < 0) == (above_b < 0))
        return PASSES_NOT;
    if (e->ax > node->x + node->error && e->bx > node->x + node->error)
        return PASSES;
    if (e->ax < node->x - node->error && e->bx < node->x - node->error)
        return PASSES_NOT;
    side = side_of_node_to_edge(node, e);
    if (side == 0)
        return CONTAINS;
    return (side > 0) == (e->by > e->ay) ? PASSES : PASSES_NOT;
}

/* The edges of a figure whose y range may contain a node. */
struct node_band
{
    double low, high; /* range that contains the node's y, which is approximate
                         for crossings */
    int32_t band;     /* the only band of this range; -1: the range spans
                         several bands */
    int64_t next, n;
};

static struct node_band band_of_node(const struct oj_figure *f,
                                     const struct oj_node *node)
{
    struct node_band near = {node->y - node->error, node->y + node->error, 0, 0,
                             0};
    near.band = oj_relate_band_of(&f->bands, near.low);
    if (near.band != oj_relate_band_of(&f->bands, near.high))
        near.band = -1;
    near.n = near.band < 0 ? f->n_edges : oj_relate_band_size(f, near.band);
    return near;
}

OJ_INLINE const struct oj_edge *next_edge_in_band(const struct oj_figure *f,
                                                  struct node_band *near)
{
    while (near->next < near->n)
    {
        int64_t k = near->next++;
        const struct oj_edge *e =
            &f->edge[near->band < 0 ? k
                                    : oj_relate_band_edge(f, near->band, k)];
        if (!(e->ay < near->low && e->by < near->low) &&
            !(e->ay > near->high && e->by > near->high))
            return e;
    }
    return NULL;
}

/* --- groups at a node ----------------------------------------------------- */

OJ_INLINE void mark_group_as_used(struct oj_figure *f, int32_t group)
{
    if (f->is_used[group])
        return;
    f->is_used[group] = 1;
    f->used[f->n_used++] = group;
}

OJ_INLINE void reset_groups(struct oj_figure *f)
{
    for (int32_t i = 0; i < f->n_used; i++)
    {
        const int32_t group = f->used[i];
        f->is_used[group] = f->is_on[group] = 0;
        f->mark[group] = 0;
    }
    f->n_used = 0;
}

OJ_INLINE void toggle_crossing_parity_of_group(struct oj_figure *f,
                                               int32_t group)
{
    mark_group_as_used(f, group);
    f->is_on[group] ^= 1;
}

/* --- ray from a node ------------------------------------------------------ */

OJ_INLINE oj_status add_edge_near_node(struct oj_figure *f, int figure,
                                       const struct oj_node *node,
                                       const struct oj_edge *e,
                                       struct oj_node_scratch *s,
                                       int *is_vertex, struct oj_error *err)
{
    enum passing passing = classify_edge_against_ray(node, e);
    if (passing == PASSES && e->kind == OJ_EDGE_RING)
        toggle_crossing_parity_of_group(f, e->group);
    if (passing == ENDS_THERE)
        *is_vertex = 1;
    if (passing == CONTAINS || passing == ENDS_THERE)
        OJ_TRY(add_rays_of_edge(s, e, node, figure, err));
    return OJ_OK;
}

/* cast_ray_and_list_edges_at_node() for a figure with a tree of edges. */
static oj_status cast_ray_through_tree(struct oj_figure *f, int figure,
                                       const struct oj_node *node,
                                       struct oj_node_scratch *s,
                                       int *is_vertex, struct oj_error *err)
{
    const struct oj_box box = {node->x - node->error, node->y - node->error,
                               node->x + node->error, node->y + node->error};
    struct oj_edges_found *found = &f->at_node;
    OJ_TRY(oj_edge_tree_find(&f->tree, &box, 1, found, err));
    for (int64_t i = 0; i < found->n_right; i++)
    {
        const struct oj_edge *first = &f->edge[found->right[i].first];
        const struct oj_edge *last = &f->edge[found->right[i].last];
        if (first->kind == OJ_EDGE_RING &&
            (compare_node_y(node, first->ay) < 0) !=
                (compare_node_y(node, last->by) < 0))
            toggle_crossing_parity_of_group(f, first->group);
    }
    for (int64_t i = 0; i < found->n; i++)
    {
        const struct oj_edge *e = &f->edge[found->edge[i]];
        if (!(e->ay < box.y0 && e->by < box.y0) &&
            !(e->ay > box.y1 && e->by > box.y1))
            OJ_TRY(add_edge_near_node(f, figure, node, e, s, is_vertex, err));
    }
    return OJ_OK;
}

/* For each edge of f that contains the node, appends to s the directions in
 * which it leaves the node (struct oj_ray), and sets *is_vertex to 1 if the
 * node is an end of an edge. For each group of rings, sets f->is_on to 1 if the
 * half-line from the node towards +x crosses an odd number of the group's edges
 * of kind OJ_EDGE_RING that do not contain the node. */
static oj_status cast_ray_and_list_edges_at_node(
    struct oj_figure *f, int figure, const struct oj_node *node,
    struct oj_node_scratch *s, int *is_vertex, struct oj_error *err)
{
    struct node_band near;
    reset_groups(f);
    if (!(node->x - node->error <= f->box.x1))
        return OJ_OK;
    if (f->tree.n > 0)
        return cast_ray_through_tree(f, figure, node, s, is_vertex, err);
    near = band_of_node(f, node);
    for (const struct oj_edge *e; (e = next_edge_in_band(f, &near)) != NULL;)
        OJ_TRY(add_edge_near_node(f, figure, node, e, s, is_vertex, err));
    return OJ_OK;
}

/* --- point location ------------------------------------------------------- */

/* Locates a point in a simple figure by the edges of its band. */
static enum oj_location locate_point_in_band(const struct oj_figure *f,
                                             double px, double py)
{
    int32_t band = oj_relate_band_of(&f->bands, py);
    int64_t n = oj_relate_band_size(f, band);
    int odd = 0;
    for (int64_t k = 0; k < n; k++)
    {
        const struct oj_edge *e = &f->edge[oj_relate_band_edge(f, band, k)];
        int edge = oj_ring_edge_crosses_ray(px, py, e->ax, e->ay, e->bx, e->by);
        if (edge == OJ_ON_BOUNDARY)
            return OJ_ON_BOUNDARY;
        odd ^= edge;
    }
    return odd && f->shape->kinds == OJ_PART_POLYGON ? OJ_INSIDE : OJ_OUTSIDE;
}

oj_status oj_relate_figure_locate(struct oj_figure *f, double px, double py,
                                  struct oj_node_scratch *s,
                                  enum oj_location *location,
                                  struct oj_error *err)
{
    const struct oj_node node = {px, py, 0.0, {NULL, NULL}};
    int is_vertex = 0;
    if (f->shape->kinds != OJ_PART_LINE &&
        atomic_load_explicit(&f->shape->cells, memory_order_acquire) != NULL)
        *location = oj_shape_locate(f->shape, px, py);
    else if (oj_relate_points_contain(&f->points, px, py))
        *location = OJ_ON_BOUNDARY;
    else if (f->tree.n == 0)
        *location = locate_point_in_band(f, px, py);
    else
    {
        s->n_rays = 0;
        OJ_TRY(
            cast_ray_and_list_edges_at_node(f, 0, &node, s, &is_vertex, err));
        /* a simple figure of polygons has one group */
        *location = s->n_rays > 0                    ? OJ_ON_BOUNDARY
                    : f->n_groups > 0 && f->is_on[0] ? OJ_INSIDE
                                                     : OJ_OUTSIDE;
    }
    return OJ_OK;
}

/* --- rays by angle -------------------------------------------------------- */

/* Compares two rays by the angle of their direction, in (0, 2 pi]; returns -1,
 * 0 or 1. */
static int compare_rays(const struct oj_ray *r, const struct oj_ray *q)
{
    int sign;
    if (r->quadrant != q->quadrant)
        return r->quadrant < q->quadrant ? -1 : 1;
    if (r->quadrant % 2 != 0)
        return 0;
    sign = cross_sign(r->edge, q->edge);
    return -sign * r->sign * q->sign;
}

static void sort_rays(struct oj_node_scratch *s)
{
    for (int64_t i = 1; i < s->n_rays; i++)
    {
        struct oj_ray moved = s->ray[i];
        int64_t j = i;
        for (; j > 0 && compare_rays(&s->ray[j - 1], &moved) > 0; j--)
            s->ray[j] = s->ray[j - 1];
        s->ray[j] = moved;
    }
}

/* --- sectors and rays around a node --------------------------------------- */

/* State of one figure while the directions around a node are swept by angle.
 * Groups: sets of rings under one even-odd rule (relate_feature_edges.h). */
struct node_sweep
{
    struct oj_figure *f;
    int32_t n_on;             /* number of groups that contain the current
                                 sector */
    int32_t n_always;         /* number of groups that contain the node but have
                                 no edge there; they contain all sectors around
                                 it */
    int32_t n_groups;         /* number of groups with edges at the node */
    int64_t n_lines, n_rings; /* number of line edges and of ring edges at the
                                 node */
    int64_t n_flat_ends; /* number of directions in which edges of a polygon
                            without area leave the node, summed over these
                            polygons */
    int is_covered;      /* 1: all sectors so far are interior */
};

static void count_ring_edge_at_node(struct node_sweep *r, int32_t group)
{
    r->n_rings++;
    if (r->f->mark[group] == 0)
    {
        mark_group_as_used(r->f, group);
        r->f->mark[group] = -1;
        r->n_groups++;
    }
}

/* Initialises the sweep for a figure, by the rays in s and by f->is_on. A group
 * without ring edges at the node contains either all sectors or none. */
static void start_sweep_around_node(struct node_sweep *r, struct oj_figure *f,
                                    int figure, const struct oj_node *node,
                                    const struct oj_node_scratch *s)
{
    memset(r, 0, sizeof *r);
    r->f = f;
    for (int64_t i = 0; i < s->n_rays; i++)
    {
        const struct oj_edge *e = s->ray[i].edge;
        if (s->ray[i].figure != figure)
            continue;
        r->n_lines += e->kind == OJ_EDGE_LINE;
        if (e->kind == OJ_EDGE_RING)
            count_ring_edge_at_node(r, e->group);
    }
    for (int64_t i = 0; i < f->n_dots && node->cross[0] == NULL; i++)
    {
        if (f->dot[i].at.x == node->x && f->dot[i].at.y == node->y)
            count_ring_edge_at_node(r, f->dot[i].group);
    }
    for (int32_t i = 0; i < f->n_used; i++)
    {
        const int32_t g = f->used[i];
        r->n_on += f->is_on[g];
        r->n_always += f->is_on[g] && f->mark[g] == 0;
    }
    r->is_covered = s->n_rays > 0 || r->n_on > 0;
}

/* Returns the place, in the figure, of one direction around the node, and
 * advances r to the sector behind this direction. The rays of the direction are
 * first .. end - 1. number is its ordinal, from 1. */
static enum oj_matrix_place
de9im_place_of_ray_direction(struct node_sweep *r, int figure,
                             const struct oj_node_scratch *s, int64_t first,
                             int64_t end, int32_t number)
{
    struct oj_figure *f = r->f;
    int32_t n_own = 0, n_before = 0, before = r->n_on;
    int has_line = 0;
    for (int64_t i = first; i < end; i++)
    {
        const struct oj_edge *e = s->ray[i].edge;
        if (s->ray[i].figure != figure)
            continue;
        has_line |= e->kind != OJ_EDGE_RING;
        if (e->kind == OJ_EDGE_FLAT && f->mark[e->group] != number)
        {
            mark_group_as_used(f, e->group);
            f->mark[e->group] = number;
            r->n_flat_ends++;
        }
        if (e->kind != OJ_EDGE_RING)
            continue;
        if (f->mark[e->group] != number)
        {
            f->mark[e->group] = number;
            n_own++;
            n_before += f->is_on[e->group];
        }
        f->is_on[e->group] ^= 1;
        r->n_on += f->is_on[e->group] ? 1 : -1;
    }
    if (before > n_before) /* a group without an edge in this direction contains
                              the sectors on both sides */
        return OJ_PLACE_INTERIOR;
    if (n_own > 1 && before > 0 && r->n_on > 0)
        return OJ_PLACE_INTERIOR;
    if (n_own > 0)
        return OJ_PLACE_BOUNDARY;
    return has_line ? OJ_PLACE_INTERIOR : OJ_PLACE_EXTERIOR;
}

static enum oj_matrix_place de9im_place_of_sector(struct node_sweep *r)
{
    if (r->n_on > 0)
        return OJ_PLACE_INTERIOR;
    r->is_covered = 0;
    return OJ_PLACE_EXTERIOR;
}

/* Returns the place of the node in its figure. */
static enum oj_matrix_place de9im_place_of_node(const struct node_sweep *r,
                                                const struct oj_node *node)
{
    const struct oj_figure *f = r->f;
    int64_t n_ends = r->n_flat_ends;
    int is_exact = node->cross[0] == NULL;
    if (r->n_always > 0)
        return OJ_PLACE_INTERIOR;
    if (r->n_rings > 0)
        return r->n_groups > 1 && r->is_covered ? OJ_PLACE_INTERIOR
                                                : OJ_PLACE_BOUNDARY;
    n_ends += is_exact && oj_relate_points_contain(&f->ends, node->x, node->y);
    if (n_ends % 2 != 0)
        return OJ_PLACE_BOUNDARY;
    if (r->n_lines > 0 || r->n_flat_ends > 0 ||
        (is_exact && oj_relate_points_contain(&f->points, node->x, node->y)))
        return OJ_PLACE_INTERIOR;
    return OJ_PLACE_EXTERIOR;
}

static void add_sectors_and_rays_to_matrix(struct oj_figure *a,
                                           struct oj_figure *b,
                                           const struct oj_node *node,
                                           const struct oj_node_scratch *s,
                                           struct oj_matrix *matrix)
{
    struct node_sweep of_a, of_b;
    int64_t end;
    int32_t number = 0;
    start_sweep_around_node(&of_a, a, 0, node, s);
    start_sweep_around_node(&of_b, b, 1, node, s);
    for (int64_t first = 0; first < s->n_rays; first = end)
    {
        enum oj_matrix_place place;
        end = first + 1;
        while (end < s->n_rays &&
               compare_rays(&s->ray[first], &s->ray[end]) == 0)
            end++;
        number++;
        place = de9im_place_of_ray_direction(&of_a, 0, s, first, end, number);
        oj_matrix_add(
            matrix, place,
            de9im_place_of_ray_direction(&of_b, 1, s, first, end, number), 1);
        place = de9im_place_of_sector(&of_a);
        oj_matrix_add(matrix, place, de9im_place_of_sector(&of_b), 2);
    }
    oj_matrix_add(matrix, de9im_place_of_node(&of_a, node),
                  de9im_place_of_node(&of_b, node), 0);
}

oj_status oj_relate_node_add_to_matrix(struct oj_figure *a, struct oj_figure *b,
                                       const struct oj_node *node,
                                       struct oj_node_scratch *s,
                                       struct oj_matrix *matrix, int *is_vertex,
                                       struct oj_error *err)
{
    *is_vertex = 0;
    s->n_rays = 0;
    OJ_TRY(cast_ray_and_list_edges_at_node(a, 0, node, s, is_vertex, err));
    OJ_TRY(cast_ray_and_list_edges_at_node(b, 1, node, s, is_vertex, err));
    if (*is_vertex && node->cross[0] != NULL)
        return OJ_OK;
    sort_rays(s);
    add_sectors_and_rays_to_matrix(a, b, node, s, matrix);
    return OJ_OK;
}

/* Sweeps around a point of one figure. Sets *depth to the maximum number of
 * groups that contain a common sector. If group >= 0, sets *depth to 1 if this
 * group contains any sector, otherwise to 0. */
static oj_status count_overlapping_parts_at_point(struct oj_figure *f, double x,
                                                  double y, int32_t group,
                                                  struct oj_node_scratch *s,
                                                  int32_t *depth,
                                                  struct oj_error *err)
{
    const struct oj_node node = {x, y, 0.0, {NULL, NULL}};
    int32_t n_on = 0;
    int is_vertex;
    s->n_rays = 0;
    OJ_TRY(cast_ray_and_list_edges_at_node(f, 0, &node, s, &is_vertex, err));
    sort_rays(s);
    for (int32_t i = 0; i < f->n_used; i++)
        n_on += f->is_on[f->used[i]] && (group < 0 || f->used[i] == group);
    *depth = n_on;
    for (int64_t i = 0; i < s->n_rays; i++)
    {
        int32_t g = s->ray[i].edge->group;
        if (s->ray[i].edge->kind == OJ_EDGE_RING && (group < 0 || g == group))
        {
            toggle_crossing_parity_of_group(f, g);
            n_on += f->is_on[g] ? 1 : -1;
        }
        if (i + 1 == s->n_rays || compare_rays(&s->ray[i], &s->ray[i + 1]) != 0)
            *depth = n_on > *depth ? n_on : *depth;
    }
    return OJ_OK;
}

/* --- test for topologically valid shapes ---------------------------------- */

static int do_all_lines_have_length(const struct oj_shape *shape)
{
    const double *x = shape->flat->x, *y = shape->flat->y;
    for (int64_t r = 0; r < shape->n_rings; r++)
    {
        int64_t n, first = oj_shape_ring_vertices(shape, r, &n), v = first;
        while (v < first + n && x[v] == x[first] && y[v] == y[first])
            v++;
        if (v == first + n)
            return 0;
    }
    return 1;
}

/* Returns 1 if two edges with intersecting boxes have no common point, or if
 * their only common point is an end of one of them. */
static int do_edges_share_at_most_an_end(const struct oj_edge *e,
                                         const struct oj_edge *f)
{
    int c = oj_orientation(e->ax, e->ay, e->bx, e->by, f->ax, f->ay);
    int d = oj_orientation(e->ax, e->ay, e->bx, e->by, f->bx, f->by);
    double e0, e1, f0, f1;
    if (c != 0 || d != 0)
        return c * d >= 0 ||
               oj_orientation(f->ax, f->ay, f->bx, f->by, e->ax, e->ay) *
                       oj_orientation(f->ax, f->ay, f->bx, f->by, e->bx,
                                      e->by) >=
                   0;
    /* collinear edges: compare their ranges along an axis */
    e0 = e->ax == e->bx ? e->ay : e->ax;
    e1 = e->ax == e->bx ? e->by : e->bx;
    f0 = e->ax == e->bx ? f->ay : f->ax;
    f1 = e->ax == e->bx ? f->by : f->bx;
    return (e0 < e1 ? e1 : e0) <= (f0 < f1 ? f0 : f1) ||
           (f0 < f1 ? f1 : f0) <= (e0 < e1 ? e0 : e1);
}

/* Sets *is to 1 if no two parts contain a common sector around the point,
 * otherwise to 0. */
static oj_status are_parts_apart_around_point(struct oj_figure *f, double x,
                                              double y,
                                              struct oj_node_scratch *scratch,
                                              int *is, struct oj_error *err)
{
    int32_t depth = 0;
    OJ_TRY(count_overlapping_parts_at_point(f, x, y, -1, scratch, &depth, err));
    *is = depth < 2;
    return OJ_OK;
}

/* Tests the ends at which two edges of different parts touch. *touch is 1 on
 * entry and becomes 0 if the parts overlap around such an end. */
static oj_status check_parts_disjoint_at_shared_end(
    struct oj_figure *f, const struct oj_edge *e, const struct oj_edge *other,
    struct oj_node_scratch *scratch, int *touch, struct oj_error *err)
{
    const struct oj_edge *edge[2] = {e, other};
    for (int i = 0; i < 4 && *touch; i++)
    {
        const struct oj_edge *of = edge[i >> 1], *on = edge[1 - (i >> 1)];
        double x = i & 1 ? of->bx : of->ax, y = i & 1 ? of->by : of->ay;
        if (oj_on_segment(x, y, on->ax, on->ay, on->bx, on->by))
            OJ_TRY(are_parts_apart_around_point(f, x, y, scratch, touch, err));
    }
    return OJ_OK;
}

/* Sets *is_fine to 1 if the edges do not cross or overlap, and their parts do
 * not overlap around a point in which the edges touch; otherwise to 0. */
OJ_INLINE oj_status check_contact_of_edges(struct oj_figure *f,
                                           const struct oj_edge *e,
                                           const struct oj_edge *other,
                                           struct oj_node_scratch *scratch,
                                           int *is_fine, struct oj_error *err)
{
    *is_fine = 1;
    if (!oj_segment_boxes_meet(e->ax, e->ay, e->bx, e->by, other->ax, other->ay,
                               other->bx, other->by))
        return OJ_OK;
    *is_fine = do_edges_share_at_most_an_end(e, other);
    if (*is_fine && e->group != other->group)
        OJ_TRY(check_parts_disjoint_at_shared_end(f, e, other, scratch, is_fine,
                                                  err));
    return OJ_OK;
}

/* Sets *is_fine to 1 if no two edges of the band cross or overlap, and no two
 * parts overlap around a point in which their edges touch; otherwise to 0. */
static oj_status check_edge_contacts_of_band(struct oj_figure *f, int32_t band,
                                             struct oj_node_scratch *scratch,
                                             int *is_fine, struct oj_error *err)
{
    int64_t n = oj_relate_band_size(f, band);
    *is_fine = 1;
    for (int64_t i = 1; i < n; i++)
    {
        const struct oj_edge *e = &f->edge[oj_relate_band_edge(f, band, i)];
        for (int64_t k = 0; k < i && *is_fine; k++)
            OJ_TRY(check_contact_of_edges(
                f, e, &f->edge[oj_relate_band_edge(f, band, k)], scratch,
                is_fine, err));
    }
    return OJ_OK;
}

/* check_edge_contacts() for a figure with a tree of edges. */
static oj_status check_edge_contacts_by_tree(struct oj_figure *f,
                                             struct oj_node_scratch *scratch,
                                             int *is_fine, struct oj_error *err)
{
    *is_fine = 1;
    for (int64_t i = 1; i < f->n_edges && *is_fine; i++)
    {
        const struct oj_edge *e = &f->edge[i];
        const struct oj_box box = oj_box_of_segment(e->ax, e->ay, e->bx, e->by);
        OJ_TRY(oj_edge_tree_find(&f->tree, &box, 0, &f->near, err));
        for (int64_t k = 0; k < f->near.n && *is_fine; k++)
        {
            if (f->near.edge[k] < i)
                OJ_TRY(check_contact_of_edges(f, e, &f->edge[f->near.edge[k]],
                                              scratch, is_fine, err));
        }
    }
    return OJ_OK;
}

/* Sets *is_fine to 1 if no two edges cross or overlap, and no two parts overlap
 * around a point in which their edges touch; otherwise to 0. */
static oj_status check_edge_contacts(struct oj_figure *f,
                                     struct oj_node_scratch *scratch,
                                     int *is_fine, struct oj_error *err)
{
    if (f->tree.n > 0)
        return check_edge_contacts_by_tree(f, scratch, is_fine, err);
    *is_fine = 1;
    for (int32_t band = 0; band < f->bands.n && *is_fine; band++)
        OJ_TRY(check_edge_contacts_of_band(f, band, scratch, is_fine, err));
    return OJ_OK;
}

/* Sets *are to 1 if no part overlaps another, otherwise to 0. Precondition:
 * rings do not cross, so a single vertex of a ring decides whether the ring is
 * inside another part. */
static oj_status check_parts_do_not_overlap(struct oj_figure *f,
                                            struct oj_node_scratch *scratch,
                                            int *are, struct oj_error *err)
{
    *are = 1;
    for (int64_t i = 0; i < f->n_edges && *are && f->n_groups > 1; i++)
    {
        const struct oj_edge *e = &f->edge[i];
        if (i > 0 && e[-1].bx == e->ax && e[-1].by == e->ay)
            continue; /* not the first edge of a ring. A ring that begins where
                         the ring before ends is skipped too:
                         check_edge_contacts() has tested this vertex. */
        OJ_TRY(
            are_parts_apart_around_point(f, e->ax, e->ay, scratch, are, err));
    }
    return OJ_OK;
}

/* Compares the start of edge `at` with the rings of its group, except its own
 * ring, which has the edges first .. end - 1. Sets *is_on to 1 if the start
 * lies on one of these rings; otherwise sets *is_inside to 1 if an odd number
 * of them enclose it, else to 0. */
static oj_status
locate_edge_start_in_other_rings(struct oj_figure *f, int64_t first,
                                 int64_t end, int64_t at,
                                 struct oj_node_scratch *scratch, int *is_on,
                                 int *is_inside, struct oj_error *err)
{
    const struct oj_edge *edge = f->edge;
    const struct oj_node node = {edge[at].ax, edge[at].ay, 0.0, {NULL, NULL}};
    int is_vertex, odd = 0;
    *is_on = 0;
    scratch->n_rays = 0;
    OJ_TRY(
        cast_ray_and_list_edges_at_node(f, 0, &node, scratch, &is_vertex, err));
    for (int64_t i = 0; i < scratch->n_rays && !*is_on; i++)
    {
        const struct oj_edge *e = scratch->ray[i].edge;
        *is_on =
            e->group == edge[at].group && (e < edge + first || e >= edge + end);
    }
    for (int64_t i = first; i < end && !*is_on; i++)
        odd ^= classify_edge_against_ray(&node, &edge[i]) == PASSES;
    *is_inside = f->is_on[edge[at].group] ^ odd;
    return OJ_OK;
}

/* Sets *is to 1 if the ring with the edges first .. end - 1 is inside an odd
 * number of the other rings of its part; to 0 if not, or if all its vertices
 * are on other rings. Precondition: rings do not cross. */
static oj_status is_inside_other_rings(struct oj_figure *f, int64_t first,
                                       int64_t end,
                                       struct oj_node_scratch *scratch, int *is,
                                       struct oj_error *err)
{
    int is_on = 1;
    *is = 0;
    for (int64_t i = first; i < end && is_on; i++)
    {
        int is_inside;
        OJ_TRY(locate_edge_start_in_other_rings(f, first, end, i, scratch,
                                                &is_on, &is_inside, err));
        *is = !is_on && is_inside;
    }
    return OJ_OK;
}

/* Returns the number of edges of a ring that a figure has: edges of length 0
 * are left out. */
static int64_t count_edges_of_ring(const struct oj_flat *flat, int64_t ring)
{
    const double *x = flat->x, *y = flat->y;
    int64_t n = 0;
    for (int64_t v = flat->vertex_offset[ring];
         v + 1 < flat->vertex_offset[ring + 1]; v++)
        n += x[v] != x[v + 1] || y[v] != y[v + 1];
    return n;
}

/* Sets *are to 1 if each hole is inside its shell and inside no other hole,
 * otherwise to 0. */
static oj_status check_holes_in_shells(struct oj_figure *f,
                                       struct oj_node_scratch *scratch,
                                       int *are, struct oj_error *err)
{
    const struct oj_shape *shape = f->shape;
    const struct oj_flat *flat = shape->flat;
    int64_t end, first = 0;
    *are = 1;
    if (shape->n_rings == shape->n_parts)
        return OJ_OK;
    for (int64_t part = shape->first_part;
         part < shape->first_part + shape->n_parts; part++)
    {
        const int64_t shell = flat->ring_offset[part];
        for (int64_t ring = shell; ring < flat->ring_offset[part + 1] && *are;
             ring++, first = end)
        {
            end = first + count_edges_of_ring(flat, ring);
            if (ring > shell)
                OJ_TRY(is_inside_other_rings(f, first, end, scratch, are, err));
        }
    }
    return OJ_OK;
}

oj_status oj_shape_is_valid(const struct oj_shape *shape,
                            struct oj_figure *figure,
                            struct oj_node_scratch *scratch, int *is_valid,
                            struct oj_error *err)
{
    int is_fine;
    *is_valid =
        shape->kinds == OJ_PART_POINT ||
        (shape->kinds == OJ_PART_LINE && do_all_lines_have_length(shape));
    if (shape->kinds != OJ_PART_POLYGON)
        return OJ_OK;
    OJ_TRY(list_figure_edges_and_bands(figure, shape, 0, err));
    if (figure->n_dots > 0)
        return OJ_OK;
    OJ_TRY(check_edge_contacts(figure, scratch, &is_fine, err));
    if (!is_fine)
        return OJ_OK;
    OJ_TRY(check_holes_in_shells(figure, scratch, &is_fine, err));
    if (!is_fine)
        return OJ_OK;
    return check_parts_do_not_overlap(figure, scratch, is_valid, err);
}

/* --- figures of invalid shapes -------------------------------------------- */

/* Returns 1 if the edges first .. end - 1 are collinear, so that they enclose
 * no area. The general test would be slow for them, because collinear edges may
 * all be in one band. */
static int are_all_edges_collinear(const struct oj_figure *f, int64_t first,
                                   int64_t end)
{
    const struct oj_edge *e = &f->edge[first];
    for (int64_t i = first + 1; i < end; i++)
    {
        if (oj_orientation(e->ax, e->ay, e->bx, e->by, f->edge[i].ax,
                           f->edge[i].ay) != 0 ||
            oj_orientation(e->ax, e->ay, e->bx, e->by, f->edge[i].bx,
                           f->edge[i].by) != 0)
            return 0;
    }
    return 1;
}

/* Sets f->encloses for each group. If the rings of a group enclose no area, its
 * edges become OJ_EDGE_FLAT, and f->has_flat is set. */
static oj_status mark_zero_area_polygons(struct oj_figure *f,
                                         struct oj_node_scratch *scratch,
                                         struct oj_error *err)
{
    int64_t first = 0, end;
    memset(f->encloses, 0, (size_t)f->n_groups);
    for (; first < f->n_edges; first = end)
    {
        int32_t group = f->edge[first].group;
        int32_t encloses = 0;
        int is_line;
        end = first + 1;
        if (f->edge[first].kind != OJ_EDGE_RING)
            continue;
        while (end < f->n_edges && f->edge[end].kind == OJ_EDGE_RING &&
               f->edge[end].group == group)
            end++;
        is_line = are_all_edges_collinear(f, first, end);
        for (int64_t i = first; i < end && !encloses && !is_line; i++)
            OJ_TRY(count_overlapping_parts_at_point(f, f->edge[i].ax,
                                                    f->edge[i].ay, group,
                                                    scratch, &encloses, err));
        for (int64_t i = first; i < end && !encloses; i++)
            f->edge[i].kind = OJ_EDGE_FLAT;
        f->has_flat |= !encloses;
        f->encloses[group] = (uint8_t)encloses;
    }
    return OJ_OK;
}

oj_status oj_relate_figure_make(struct oj_figure *f,
                                const struct oj_shape *shape, int is_valid,
                                struct oj_node_scratch *scratch,
                                struct oj_error *err)
{
    f->shape = shape;
    if (f->flat == shape->flat && f->feature == shape->feature &&
        f->is_valid == is_valid)
        return OJ_OK;
    OJ_TRY(list_figure_edges_and_bands(f, shape, is_valid, err));
    if (!is_valid)
        OJ_TRY(mark_zero_area_polygons(f, scratch, err));
    OJ_TRY(list_zero_area_rings_as_points(f, err));
    f->is_simple = is_valid && !oj_shape_is_mixed(shape);
    f->flat = shape->flat;
    f->feature = shape->feature;
    return OJ_OK;
}

void oj_relate_figure_free(struct oj_figure *f)
{
    oj_free(f->edge);
    oj_free(f->points.point);
    oj_free(f->ends.point);
    oj_free(f->dot);
    oj_free(f->encloses);
    oj_free(f->bands.first);
    oj_free(f->bands.edge);
    oj_edge_tree_free(&f->tree);
    oj_edges_found_free(&f->near);
    oj_edges_found_free(&f->at_node);
    oj_free(f->is_on);
    oj_free(f->mark);
    oj_free(f->used);
    oj_free(f->is_used);
    memset(f, 0, sizeof *f);
}

void oj_relate_node_scratch_free(struct oj_node_scratch *s)
{
    oj_free(s->ray);
    memset(s, 0, sizeof *s);
}
