/* Exact predicate and distance of two features.
 *
 *  Builds the arrangement of the segments of both features: segments are cut
 *  into pieces at all vertices and crossings (nodes). Locates each node, each
 *  piece and the face on either side of each piece. That gives the whole
 *  matrix, since every bounded face borders a piece.
 */
#include "exact_reference.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../foundations/base/exact_integer.h"
#include "../../foundations/base/oj_feature_box.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- segments of the two features ----------------------------------------- */

/* Number of successive segments with one bounding box; segments of a ring are
 * close to each other. */
#define RUN 64

/* An edge of a ring or line. A segment of length 0 represents a point, or a
 * line or ring whose vertices are all equal. */
struct exact_segment
{
    double ax, ay, bx, by;
    int64_t part; /* index of its part in the pair */
};

struct exact_part
{
    int side; /* 0: part of the input feature, 1: of the join feature */
    enum oj_part_kind kind;
    int64_t first, n; /* range of its segments, in the order of the vertices */
};

struct exact_pair
{
    int exponent; /* all coordinates are integers times 2^exponent */
    int64_t n_parts, n_segments;
    int64_t n_of_input; /* number of segments of the input feature; those of the
                           join feature follow */
    struct exact_part *part;
    struct exact_segment *segment;
    struct oj_box *run; /* box of each run of RUN segments */
};

static void free_pair(struct exact_pair *pair)
{
    oj_free(pair->part);
    oj_free(pair->segment);
    oj_free(pair->run);
}

static struct oj_box box_of_segment(const struct exact_segment *s)
{
    return oj_box_of_segment(s->ax, s->ay, s->bx, s->by);
}

static int is_zero_length_segment(const struct exact_segment *s)
{
    return s->ax == s->bx && s->ay == s->by;
}

static void lower_exponent_to_that_of(int *exponent, double value)
{
    int own = oj_integer_exponent(value);
    *exponent = own < *exponent ? own : *exponent;
}

/* Appends the segment between two vertices. (Adding 0.0 turns -0 into 0.) */
static void append_segment_of_vertices(struct exact_pair *pair,
                                       const struct oj_flat *flat, int64_t from,
                                       int64_t to)
{
    const struct exact_segment s = {flat->x[from] + 0.0, flat->y[from] + 0.0,
                                    flat->x[to] + 0.0, flat->y[to] + 0.0,
                                    pair->n_parts - 1};
    lower_exponent_to_that_of(&pair->exponent, s.ax);
    lower_exponent_to_that_of(&pair->exponent, s.ay);
    lower_exponent_to_that_of(&pair->exponent, s.bx);
    lower_exponent_to_that_of(&pair->exponent, s.by);
    pair->segment[pair->n_segments++] = s;
}

static void read_ring(struct exact_pair *pair, const struct oj_flat *flat,
                      int64_t first, int64_t end)
{
    int64_t n_before = pair->n_segments;
    for (int64_t v = first; v + 1 < end; v++)
    {
        if (flat->x[v] != flat->x[v + 1] || flat->y[v] != flat->y[v + 1])
            append_segment_of_vertices(pair, flat, v, v + 1);
    }
    if (pair->n_segments == n_before && first < end)
        append_segment_of_vertices(pair, flat, first, first);
}

static struct exact_part *append_part(struct exact_pair *pair, int side,
                                      enum oj_part_kind kind)
{
    struct exact_part *part = &pair->part[pair->n_parts++];
    part->side = side;
    part->kind = kind;
    part->first = pair->n_segments;
    part->n = 1;
    return part;
}

static void append_parts_and_segments(struct exact_pair *pair,
                                      const struct oj_flat *flat,
                                      int64_t feature, int side)
{
    int64_t first, end;
    oj_flat_vertex_range(flat, feature, &first, &end);
    if (oj_flat_is_points(flat))
    {
        if (first < end)
        {
            append_part(pair, side, OJ_PART_POINT);
            append_segment_of_vertices(pair, flat, feature, feature);
        }
        return;
    }
    for (int64_t p = flat->part_offset[feature];
         p < flat->part_offset[feature + 1]; p++)
    {
        struct exact_part *part =
            append_part(pair, side, (enum oj_part_kind)flat->part_kind[p]);
        for (int64_t r = flat->ring_offset[p]; r < flat->ring_offset[p + 1];
             r++)
            read_ring(pair, flat, flat->vertex_offset[r],
                      flat->vertex_offset[r + 1]);
        part->n = pair->n_segments - part->first;
    }
}

/* Adds the numbers of parts and segments of a feature to *n_parts and
 * *n_segments. A ring of v vertices has v - 1 segments, or one of length 0. */
static void count_parts_and_segments(const struct oj_flat *flat,
                                     int64_t feature, int64_t *n_parts,
                                     int64_t *n_segments)
{
    int64_t first, end;
    oj_flat_vertex_range(flat, feature, &first, &end);
    *n_segments += end - first;
    *n_parts += oj_flat_is_points(flat) ? 1
                                        : flat->part_offset[feature + 1] -
                                              flat->part_offset[feature];
}

/* Reads both features into *pair, which must be zeroed. The caller frees it,
 * also after a failure. */
static oj_status read_segments_of_two_features(
    struct exact_pair *pair, const struct oj_flat *input, int64_t row,
    const struct oj_flat *join_side, int64_t feature, struct oj_error *err)
{
    int64_t n_parts = 0, n_segments = 0;
    count_parts_and_segments(input, row, &n_parts, &n_segments);
    count_parts_and_segments(join_side, feature, &n_parts, &n_segments);
    OJ_NEW(pair->part, n_parts, err);
    OJ_NEW(pair->segment, n_segments, err);
    OJ_NEW(pair->run, n_segments / RUN + 1, err);
    pair->exponent = INT_MAX;
    append_parts_and_segments(pair, input, row, 0);
    pair->n_of_input = pair->n_segments;
    append_parts_and_segments(pair, join_side, feature, 1);
    if (pair->exponent == INT_MAX) /* all coordinates are 0 */
        pair->exponent = 0;
    for (int64_t i = 0; i < pair->n_segments; i++)
    {
        struct oj_box box = box_of_segment(&pair->segment[i]);
        if (i % RUN == 0)
            pair->run[i / RUN] = box;
        else
            oj_box_add_box(&pair->run[i / RUN], &box);
    }
    return OJ_OK;
}

/* Returns the index of the next segment, from *at on and before end, whose box
 * intersects `box`, and sets *at to the index after it. Returns -1 if there is
 * none. The box may be reduced between calls. */
static int64_t next_segment_near_box(const struct exact_pair *pair,
                                     const struct oj_box *box, int64_t *at,
                                     int64_t end)
{
    while (*at < end)
    {
        int64_t i = *at;
        struct oj_box own = box_of_segment(&pair->segment[i]);
        if (i % RUN == 0 && !oj_box_intersects(&pair->run[i / RUN], box))
        {
            *at += RUN;
            continue;
        }
        (*at)++;
        if (oj_box_intersects(&own, box))
            return i;
    }
    return -1;
}

/* --- exact points --------------------------------------------------------- */

/* A node: a vertex (`first` is NULL, and bounds has its exact coordinates), or
 * the crossing of the segments `first` and `second` in their interiors. */
struct exact_place
{
    struct oj_box bounds;
    const struct exact_segment *first, *second;
    int exponent; /* exponent of the pair: coordinates are integers times
                     2^exponent */
};

/* A point to be located: a node, or the midpoint of two nodes. Its exact
 * coordinates, x / w and y / w times 2^exponent, are computed only if its
 * bounds do not decide. The struct has about 5 KB. */
struct exact_point
{
    struct oj_box bounds;
    const struct exact_place *from, *to; /* the point is *from if `to` is NULL;
                                            otherwise the midpoint of *from and
                                            *to */
    int is_made;
    struct oj_integer x, y, w; /* w > 0 */
};

static struct exact_place place_of_vertex(double x, double y, int exponent)
{
    struct exact_place place = {{x, y, x, y}, NULL, NULL, exponent};
    return place;
}

/* Computes out = (b - a) x (p - a), which is positive if p is left of the
 * segment a -> b. All coordinates must be multiples of 2^exponent. */
static void exact_orientation_of_vertex(struct oj_integer *out,
                                        const struct exact_segment *s,
                                        double px, double py, int exponent)
{
    struct oj_integer dx, dy, x, y;
    oj_integer_difference(&dx, s->bx, s->ax, exponent);
    oj_integer_difference(&dy, s->by, s->ay, exponent);
    oj_integer_difference(&x, px, s->ax, exponent);
    oj_integer_difference(&y, py, s->ay, exponent);
    oj_integer_cross(out, &dx, &y, &dy, &x);
}

/* Computes out = b * a_side - a * b_side. */
static void compute_crossing_numerator(struct oj_integer *out, double a,
                                       double b,
                                       const struct oj_integer *a_side,
                                       const struct oj_integer *b_side,
                                       int exponent)
{
    struct oj_integer whole_a, whole_b;
    oj_integer_set(&whole_a, a, exponent);
    oj_integer_set(&whole_b, b, exponent);
    oj_integer_cross(out, &whole_b, a_side, &whole_a, b_side);
}

/* Computes the exact coordinates x / w, y / w of a node: a vertex, or the
 * crossing of two segments. a_side and b_side are the orientations of the ends
 * a and b of `second` relative to `first`, of different signs; the crossing is
 * a + (b - a) a_side / (a_side - b_side). */
static void compute_homogeneous_coordinates(const struct exact_place *place,
                                            struct oj_integer *x,
                                            struct oj_integer *y,
                                            struct oj_integer *w)
{
    const struct exact_segment *s = place->second;
    struct oj_integer a_side, b_side;
    int exponent = place->exponent;
    if (s == NULL)
    {
        oj_integer_set(x, place->bounds.x0, exponent);
        oj_integer_set(y, place->bounds.y0, exponent);
        oj_integer_set_small(w, 1);
        return;
    }
    exact_orientation_of_vertex(&a_side, place->first, s->ax, s->ay, exponent);
    exact_orientation_of_vertex(&b_side, place->first, s->bx, s->by, exponent);
    oj_integer_subtract(w, &a_side, &b_side);
    compute_crossing_numerator(x, s->ax, s->bx, &a_side, &b_side, exponent);
    compute_crossing_numerator(y, s->ay, s->by, &a_side, &b_side, exponent);
    if (w->sign > 0)
        return;
    oj_integer_negate(x);
    oj_integer_negate(y);
    oj_integer_negate(w);
}

/* Replaces low and high by bounds of x / w * 2^exponent, if these are tighter.
 */
static void narrow_bounds_by_exact_ratio(double *low, double *high,
                                         const struct oj_integer *x,
                                         const struct oj_integer *w,
                                         int exponent)
{
    double mantissa, value, error;
    int own;
    oj_integer_ratio(x, w, &mantissa, &own);
    value = ldexp(mantissa, own + exponent);
    error = fabs(value) * 0x1p-49 + 0x1p-1070;
    if (!isfinite(value))
        return;
    *low = fmax(*low, value - error);
    *high = fmin(*high, value + error);
}

static struct exact_place
make_crossing_point_with_bounds(const struct exact_segment *first,
                                const struct exact_segment *second,
                                int exponent)
{
    struct oj_box a = box_of_segment(first), b = box_of_segment(second);
    struct exact_place place = {{fmax(a.x0, b.x0), fmax(a.y0, b.y0),
                                 fmin(a.x1, b.x1), fmin(a.y1, b.y1)},
                                first,
                                second,
                                exponent};
    struct oj_integer x, y, w;
    compute_homogeneous_coordinates(&place, &x, &y, &w);
    narrow_bounds_by_exact_ratio(&place.bounds.x0, &place.bounds.x1, &x, &w,
                                 exponent);
    narrow_bounds_by_exact_ratio(&place.bounds.y0, &place.bounds.y1, &y, &w,
                                 exponent);
    return place;
}

/* Compares two nodes exactly, by x, then by y. */
static int compare_places(const void *left, const void *right)
{
    const struct exact_place *a = *(const struct exact_place *const *)left;
    const struct exact_place *b = *(const struct exact_place *const *)right;
    struct oj_integer x[2], y[2], w[2], p, q;
    int order;
    if (a->bounds.x1 < b->bounds.x0 || a->bounds.x0 > b->bounds.x1)
        return a->bounds.x1 < b->bounds.x0 ? -1 : 1;
    if (a->first == NULL && b->first == NULL) /* both are vertices: their bounds
                                                 are exact, so x is equal
                                                 here */
        return (a->bounds.y0 > b->bounds.y0) - (a->bounds.y0 < b->bounds.y0);
    compute_homogeneous_coordinates(a, &x[0], &y[0], &w[0]);
    compute_homogeneous_coordinates(b, &x[1], &y[1], &w[1]);
    oj_integer_multiply(&p, &x[0], &w[1]);
    oj_integer_multiply(&q, &x[1], &w[0]);
    order = oj_integer_compare(&p, &q);
    if (order != 0)
        return order;
    oj_integer_multiply(&p, &y[0], &w[1]);
    oj_integer_multiply(&q, &y[1], &w[0]);
    return oj_integer_compare(&p, &q);
}

/* Sets *low and *high to bounds of the midpoint of two numbers, one in [a0,
 * a1], the other in [b0, b1]. */
static void bound_midpoint(double a0, double a1, double b0, double b1,
                           double *low, double *high)
{
    *low = *high = a0;
    if (a0 == a1 && a0 == b0 && a0 == b1)
        return;
    *low = nextafter(a0 / 2 + b0 / 2, -(double)INFINITY);
    *high = nextafter(a1 / 2 + b1 / 2, (double)INFINITY);
}

static void set_point_or_midpoint(struct exact_point *point,
                                  const struct exact_place *from,
                                  const struct exact_place *to)
{
    const struct oj_box *a = &from->bounds;
    struct oj_box *bounds = &point->bounds;
    point->from = from;
    point->to = to;
    point->is_made = 0;
    *bounds = *a;
    if (to == NULL)
        return;
    bound_midpoint(a->x0, a->x1, to->bounds.x0, to->bounds.x1, &bounds->x0,
                   &bounds->x1);
    bound_midpoint(a->y0, a->y1, to->bounds.y0, to->bounds.y1, &bounds->y0,
                   &bounds->y1);
}

static void compute_exact_point_or_midpoint(struct exact_point *point)
{
    struct oj_integer x[2], y[2], w[2];
    if (point->is_made)
        return;
    point->is_made = 1;
    if (point->to == NULL)
    {
        compute_homogeneous_coordinates(point->from, &point->x, &point->y,
                                        &point->w);
        return;
    }
    compute_homogeneous_coordinates(point->from, &x[0], &y[0], &w[0]);
    compute_homogeneous_coordinates(point->to, &x[1], &y[1], &w[1]);
    oj_integer_add_products(&point->x, &x[0], &w[1], &x[1], &w[0]);
    oj_integer_add_products(&point->y, &y[0], &w[1], &y[1], &w[0]);
    oj_integer_multiply(&point->w, &w[0], &w[1]);
    oj_integer_add(&point->w, &point->w, &point->w);
}

/* Returns 1 if a vertex is left of a segment's line, -1 if it is right of it, 0
 * if it is on it. Doubles decide most cases: products have a relative error of
 * at most 2^-51, underflow does not matter for sizes from 1e-280 on, and after
 * an overflow all comparisons are false. */
static int orientation_sign_of_vertex(const struct exact_segment *s, double x,
                                      double y, int exponent)
{
    double left = (s->bx - s->ax) * (y - s->ay);
    double right = (s->by - s->ay) * (x - s->ax);
    double size = fabs(left) + fabs(right), error = size * 0x1p-49;
    struct oj_integer side;
    if (size > 1e-280 && fabs(left - right) > error)
        return left > right ? 1 : -1;
    exact_orientation_of_vertex(&side, s, x, y, exponent);
    return side.sign;
}

/* Returns the orientation of a node or midpoint relative to the line of a
 * segment. */
static int orientation_sign_of_point(const struct exact_segment *s,
                                     struct exact_point *point)
{
    int exponent = point->from->exponent;
    struct oj_integer dx, dy, x, y, a;
    if (point->to == NULL && point->from->first == NULL)
        return orientation_sign_of_vertex(s, point->bounds.x0, point->bounds.y0,
                                          exponent);
    compute_exact_point_or_midpoint(point);
    oj_integer_difference(&dx, s->bx, s->ax, exponent);
    oj_integer_difference(&dy, s->by, s->ay, exponent);
    oj_integer_set(&a, s->ax, exponent);
    oj_integer_multiply(&x, &a, &point->w);
    oj_integer_subtract(&x, &point->x, &x);
    oj_integer_set(&a, s->ay, exponent);
    oj_integer_multiply(&y, &a, &point->w);
    oj_integer_subtract(&y, &point->y, &y);
    oj_integer_cross(&a, &dx, &y, &dy, &x);
    return a.sign;
}

/* Returns 1 if y is greater than the y of the point. */
static int has_greater_y(double y, struct exact_point *point)
{
    struct oj_integer whole, scaled;
    if (y > point->bounds.y1)
        return 1;
    if (y < point->bounds.y0 || point->bounds.y0 == y)
        return 0;
    compute_exact_point_or_midpoint(point);
    oj_integer_set(&whole, y, point->from->exponent);
    oj_integer_multiply(&scaled, &whole, &point->w);
    return oj_integer_compare(&scaled, &point->y) > 0;
}

/* Returns 1 if the ray from the point to the right, shifted up by an
 * infinitesimal amount, crosses the segment; 0 also if the segment contains the
 * point. */
static int does_ray_cross_segment(const struct exact_segment *s,
                                  struct exact_point *point)
{
    int a_above = has_greater_y(s->ay, point);
    if (a_above == has_greater_y(s->by, point))
        return 0;
    if (s->ax < point->bounds.x0 && s->bx < point->bounds.x0)
        return 0;
    if (s->ax > point->bounds.x1 && s->bx > point->bounds.x1)
        return 1;
    return orientation_sign_of_point(s, point) == (s->by > s->ay ? 1 : -1);
}

/* --- the arrangement ------------------------------------------------------ */

/* The arrangement of two features: their segments, cut at all nodes. Nodes are
 * the vertices, the segments of length 0, and the crossings of any two
 * segments. They are numbered by x, then by y, hence in order along any
 * segment. A piece is the part of a segment between two successive nodes.
 * Pieces with equal ends coincide; their records are adjacent. */

/* A node on a segment. */
struct exact_cut
{
    int64_t segment, node;
};

/* A piece of a segment, with nodes from < to. */
struct exact_piece
{
    int64_t from, to, part;
};

/* A part of a feature that has the node on its edges. */
struct node_part
{
    int64_t node, part, piece; /* index of one of the part's pieces at the node;
                                  -1 if the part is a single point there */
};

struct exact_arrangement
{
    struct exact_pair pair;
    int64_t n_places, cap_places, n_cuts, cap_cuts, n_nodes, n_pieces, n_visits;
    /* The ends of segment s are places 2 s and 2 s + 1; the places of crossings
     * follow. */
    struct exact_place *place;
    const struct exact_place **ranked; /* [n_places] in the order of nodes */
    const struct exact_place **node;
    int64_t *node_of_place;
    struct exact_cut *cut;
    struct exact_piece *piece; /* [n_pieces] sorted by (from, to, part) */
    struct node_part *visit;   /* [n_visits] sorted by (node, part) */
    /* [n_parts] 1: the part is a polygon with area */
    uint8_t *is_area;
    /* [side][n_nodes] 1: an odd number of the feature's line ends are at the
     * node */
    uint8_t *ends[2];
    /* [n_pieces] bit s: feature s has area on both sides of the piece */
    uint8_t *covered;
    /* [n_parts] for the point that is being located. parity is the number of
     * segments of the part that the ray from the point crosses, modulo 2;
     * on_ring is 1 if the point is on a ring of the part. */
    uint8_t *parity, *on_ring;
};

static void free_arrangement(struct exact_arrangement *a)
{
    free_pair(&a->pair);
    oj_free(a->place);
    oj_free(a->ranked);
    oj_free(a->node);
    oj_free(a->node_of_place);
    oj_free(a->cut);
    oj_free(a->piece);
    oj_free(a->visit);
    oj_free(a->is_area);
    oj_free(a->ends[0]);
    oj_free(a->ends[1]);
    oj_free(a->covered);
    oj_free(a->parity);
    oj_free(a->on_ring);
}

/* Records that the segment has a node at `place`. Until nodes are numbered,
 * exact_cut.node is an index of places. */
static oj_status add_cut_of_segment(struct exact_arrangement *a,
                                    int64_t segment, int64_t place,
                                    struct oj_error *err)
{
    OJ_ROOM(a->cut, a->n_cuts, a->n_cuts + 1, a->cap_cuts, err);
    a->cut[a->n_cuts].segment = segment;
    a->cut[a->n_cuts++].node = place;
    return OJ_OK;
}

/* Adds cuts to segment s where an end of t lies on it. side[0] and side[1] are
 * the orientations of the two ends of t relative to s. */
static oj_status cut_segment_at_touching_ends(struct exact_arrangement *a,
                                              int64_t s, int64_t t,
                                              const int side[2],
                                              struct oj_error *err)
{
    struct oj_box box = box_of_segment(&a->pair.segment[s]);
    for (int end = 0; end < 2; end++)
    {
        int64_t place = 2 * t + end;
        if (side[end] == 0 && oj_box_intersects(&box, &a->place[place].bounds))
            OJ_TRY(add_cut_of_segment(a, s, place, err));
    }
    return OJ_OK;
}

static oj_status cut_two_segments_at_meetings(struct exact_arrangement *a,
                                              int64_t i, int64_t j,
                                              struct oj_error *err)
{
    const struct exact_segment *s = &a->pair.segment[i];
    const struct exact_segment *t = &a->pair.segment[j];
    int exponent = a->pair.exponent;
    int of_t[2] = {orientation_sign_of_vertex(s, t->ax, t->ay, exponent),
                   orientation_sign_of_vertex(s, t->bx, t->by, exponent)};
    int of_s[2] = {orientation_sign_of_vertex(t, s->ax, s->ay, exponent),
                   orientation_sign_of_vertex(t, s->bx, s->by, exponent)};
    if (of_t[0] * of_t[1] >= 0 || of_s[0] * of_s[1] >= 0)
    {
        OJ_TRY(cut_segment_at_touching_ends(a, i, j, of_t, err));
        return cut_segment_at_touching_ends(a, j, i, of_s, err);
    }
    OJ_ROOM(a->place, a->n_places, a->n_places + 1, a->cap_places, err);
    a->place[a->n_places++] = make_crossing_point_with_bounds(s, t, exponent);
    OJ_TRY(add_cut_of_segment(a, i, a->n_places - 1, err));
    return add_cut_of_segment(a, j, a->n_places - 1, err);
}

static oj_status cut_all_segments_at_meetings(struct exact_arrangement *a,
                                              struct oj_error *err)
{
    const struct exact_pair *pair = &a->pair;
    a->n_places = 2 * pair->n_segments;
    OJ_ROOM(a->place, 0, a->n_places, a->cap_places, err);
    for (int64_t i = 0; i < pair->n_segments; i++)
    {
        const struct exact_segment *s = &pair->segment[i];
        a->place[2 * i] = place_of_vertex(s->ax, s->ay, pair->exponent);
        a->place[2 * i + 1] = place_of_vertex(s->bx, s->by, pair->exponent);
        OJ_TRY(add_cut_of_segment(a, i, 2 * i, err));
        OJ_TRY(add_cut_of_segment(a, i, 2 * i + 1, err));
    }
    for (int64_t i = 0; i < pair->n_segments; i++)
    {
        struct oj_box box = box_of_segment(&pair->segment[i]);
        int64_t at = i + 1;
        for (int64_t j; (j = next_segment_near_box(pair, &box, &at,
                                                   pair->n_segments)) >= 0;)
            OJ_TRY(cut_two_segments_at_meetings(a, i, j, err));
    }
    return OJ_OK;
}

static oj_status sort_and_number_nodes(struct exact_arrangement *a,
                                       struct oj_error *err)
{
    int64_t n = a->n_places;
    OJ_NEW(a->ranked, n, err);
    OJ_NEW(a->node, n, err);
    OJ_NEW(a->node_of_place, n, err);
    for (int64_t i = 0; i < n; i++)
        a->ranked[i] = &a->place[i];
    if (n > 0)
        qsort(a->ranked, (size_t)n, sizeof *a->ranked, compare_places);
    for (int64_t i = 0; i < n; i++)
    {
        if (i == 0 || compare_places(&a->ranked[i - 1], &a->ranked[i]) != 0)
            a->node[a->n_nodes++] = a->ranked[i];
        a->node_of_place[a->ranked[i] - a->place] = a->n_nodes - 1;
    }
    return OJ_OK;
}

/* Compares two records of int64_t by their first n members. */
static int compare_first_n_integers(const void *left, const void *right, int n)
{
    const int64_t *a = left, *b = right;
    for (int i = 0; i < n; i++)
    {
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    }
    return 0;
}

/* Orders cuts by (segment, node) and visits by (node, part). */
static int compare_by_first_two_numbers(const void *left, const void *right)
{
    return compare_first_n_integers(left, right, 2);
}

static int compare_pieces(const void *left, const void *right)
{
    return compare_first_n_integers(left, right, 3);
}

static oj_status make_noded_pieces_of_segments(struct exact_arrangement *a,
                                               struct oj_error *err)
{
    OJ_NEW(a->piece, a->n_cuts, err);
    for (int64_t i = 0; i < a->n_cuts; i++)
        a->cut[i].node = a->node_of_place[a->cut[i].node];
    if (a->n_cuts > 0)
        qsort(a->cut, (size_t)a->n_cuts, sizeof *a->cut,
              compare_by_first_two_numbers);
    for (int64_t i = 1; i < a->n_cuts; i++)
    {
        const struct exact_cut *last = &a->cut[i - 1], *cut = &a->cut[i];
        if (cut->segment == last->segment && cut->node != last->node)
            a->piece[a->n_pieces++] = (struct exact_piece){
                last->node, cut->node, a->pair.segment[cut->segment].part};
    }
    if (a->n_pieces > 0)
        qsort(a->piece, (size_t)a->n_pieces, sizeof *a->piece, compare_pieces);
    return OJ_OK;
}

/* Returns the end of the run of records from `first` on that are of one piece
 * (n_equal 2), or of one piece and one part (n_equal 3). */
static int64_t end_of_equal_pieces(const struct exact_arrangement *a,
                                   int64_t first, int n_equal)
{
    int64_t end = first;
    while (end < a->n_pieces &&
           compare_first_n_integers(&a->piece[end], &a->piece[first],
                                    n_equal) == 0)
        end++;
    return end;
}

/* --- classification of parts ---------------------------------------------- */

static void toggle_line_end_parity(struct exact_arrangement *a, int64_t part,
                                   int64_t node)
{
    a->ends[a->pair.part[part].side][node] ^= 1;
}

/* Sets is_area of the polygons that enclose an area, which is so if an odd
 * number of their ring segments cover some piece. Other polygons count as
 * lines. Then sets `ends` to the parity of line ends. */
static oj_status classify_areas_and_count_line_ends(struct exact_arrangement *a,
                                                    struct oj_error *err)
{
    const struct exact_pair *pair = &a->pair;
    OJ_NEW_ZEROED(a->is_area, pair->n_parts, err);
    OJ_NEW_ZEROED(a->ends[0], a->n_nodes, err);
    OJ_NEW_ZEROED(a->ends[1], a->n_nodes, err);
    for (int64_t i = 0, end; i < a->n_pieces; i = end)
    {
        int64_t part = a->piece[i].part;
        end = end_of_equal_pieces(a, i, 3);
        if (pair->part[part].kind == OJ_PART_POLYGON && (end - i) % 2 == 1)
            a->is_area[part] = 1;
    }
    for (int64_t i = 0; i < a->n_pieces; i = end_of_equal_pieces(a, i, 3))
    {
        const struct exact_piece *piece = &a->piece[i];
        if (pair->part[piece->part].kind != OJ_PART_POLYGON ||
            a->is_area[piece->part])
            continue;
        toggle_line_end_parity(a, piece->part, piece->from);
        toggle_line_end_parity(a, piece->part, piece->to);
    }
    for (int64_t p = 0; p < pair->n_parts; p++)
    {
        const struct exact_part *part = &pair->part[p];
        if (part->kind != OJ_PART_LINE || part->n == 0)
            continue;
        toggle_line_end_parity(a, p, a->node_of_place[2 * part->first]);
        toggle_line_end_parity(
            a, p, a->node_of_place[2 * (part->first + part->n) - 1]);
    }
    return OJ_OK;
}

/* --- location of nodes and pieces ----------------------------------------- */

/* Neighbourhood of a point with respect to one feature. */
struct around
{
    int n_rings;    /* number of polygons with area that have a ring there */
    int is_inside;  /* 1: inside of a polygon that has no ring there */
    int is_covered; /* 1: areas cover the whole neighbourhood */
    int on_line, is_end, on_dot;
};

static enum oj_matrix_place
de9im_place_of_surroundings(const struct around *around)
{
    if (around->is_inside)
        return OJ_PLACE_INTERIOR;
    if (around->n_rings > 0)
        return around->n_rings > 1 && around->is_covered ? OJ_PLACE_INTERIOR
                                                         : OJ_PLACE_BOUNDARY;
    if (around->on_line)
        return around->is_end ? OJ_PLACE_BOUNDARY : OJ_PLACE_INTERIOR;
    return around->on_dot ? OJ_PLACE_INTERIOR : OJ_PLACE_EXTERIOR;
}

/* Casts a ray from the point to the right and sets parity. Clears on_ring,
 * which the caller sets. */
static void cast_ray_from_point(struct exact_arrangement *a,
                                struct exact_point *point)
{
    const struct exact_pair *pair = &a->pair;
    struct oj_box ray = point->bounds;
    ray.x1 = INFINITY;
    memset(a->on_ring, 0, (size_t)pair->n_parts);
    memset(a->parity, 0, (size_t)pair->n_parts);
    for (int64_t at = 0, s;
         (s = next_segment_near_box(pair, &ray, &at, pair->n_segments)) >= 0;)
    {
        int64_t part = pair->segment[s].part;
        if (a->is_area[part])
            a->parity[part] ^=
                (uint8_t)does_ray_cross_segment(&pair->segment[s], point);
    }
}

/* Finds where a piece (records first .. end - 1) lies in both features. Bit 0
 * of covers[s] is set if feature s has area on the right of the piece, or above
 * it if the piece is horizontal; bit 1 if on its left, or below. */
static void find_areas_beside_piece(struct exact_arrangement *a, int64_t first,
                                    int64_t end, struct around around[2],
                                    int covers[2])
{
    struct exact_point point;
    set_point_or_midpoint(&point, a->node[a->piece[first].from],
                          a->node[a->piece[first].to]);
    cast_ray_from_point(a, &point);
    for (int64_t i = first, next; i < end; i = next)
    {
        int64_t part = a->piece[i].part;
        int side = a->pair.part[part].side, right = a->parity[part];
        next = end_of_equal_pieces(a, i, 3);
        if (!a->is_area[part])
        {
            around[side].on_line = 1;
            continue;
        }
        covers[side] |= right | (right ^ (int)((next - i) % 2)) << 1;
        around[side].n_rings++;
        a->on_ring[part] = 1;
    }
    for (int64_t part = 0; part < a->pair.n_parts; part++)
    {
        int side = a->pair.part[part].side;
        if (!a->parity[part] || a->on_ring[part])
            continue;
        around[side].is_inside = 1;
        covers[side] = 3;
    }
    for (int side = 0; side < 2; side++)
        around[side].is_covered = covers[side] == 3;
}

static void add_pieces_to_matrix(struct exact_arrangement *a,
                                 struct oj_matrix *matrix)
{
    for (int64_t i = 0, end; i < a->n_pieces; i = end)
    {
        struct around around[2];
        int covers[2] = {0, 0};
        memset(around, 0, sizeof around);
        end = end_of_equal_pieces(a, i, 2);
        find_areas_beside_piece(a, i, end, around, covers);
        oj_matrix_add(matrix, de9im_place_of_surroundings(&around[0]),
                      de9im_place_of_surroundings(&around[1]), 1);
        for (int bit = 1; bit <= 2; bit++)
            oj_matrix_add(
                matrix, covers[0] & bit ? OJ_PLACE_INTERIOR : OJ_PLACE_EXTERIOR,
                covers[1] & bit ? OJ_PLACE_INTERIOR : OJ_PLACE_EXTERIOR, 2);
        memset(a->covered + i, (covers[0] == 3) | (covers[1] == 3) << 1,
               (size_t)(end - i));
    }
}

static oj_status list_and_sort_parts_at_nodes(struct exact_arrangement *a,
                                              struct oj_error *err)
{
    const struct exact_pair *pair = &a->pair;
    OJ_NEW(a->visit, 2 * a->n_pieces + pair->n_segments, err);
    for (int64_t i = 0; i < a->n_pieces; i++)
    {
        const struct exact_piece *piece = &a->piece[i];
        a->visit[a->n_visits++] =
            (struct node_part){piece->from, piece->part, i};
        a->visit[a->n_visits++] = (struct node_part){piece->to, piece->part, i};
    }
    for (int64_t s = 0; s < pair->n_segments; s++)
    {
        if (is_zero_length_segment(&pair->segment[s]))
            a->visit[a->n_visits++] = (struct node_part){
                a->node_of_place[2 * s], pair->segment[s].part, -1};
    }
    if (a->n_visits > 0)
        qsort(a->visit, (size_t)a->n_visits, sizeof *a->visit,
              compare_by_first_two_numbers);
    return OJ_OK;
}

/* Finds where a node (visits first .. end - 1) lies in both features. */
static void find_surroundings_of_node(struct exact_arrangement *a,
                                      int64_t first, int64_t end,
                                      struct around around[2])
{
    struct exact_point point;
    int64_t node = a->visit[first].node;
    int n_pieces = 0, covered = 3;
    set_point_or_midpoint(&point, a->node[node], NULL);
    cast_ray_from_point(a, &point);
    for (int64_t i = first; i < end; i++)
    {
        const struct node_part *visit = &a->visit[i];
        struct around *of = &around[a->pair.part[visit->part].side];
        if (visit->piece >= 0)
        {
            covered &= a->covered[visit->piece];
            n_pieces++;
        }
        if (a->is_area[visit->part])
        {
            of->n_rings += !a->on_ring[visit->part];
            a->on_ring[visit->part] = 1;
        }
        else if (visit->piece >= 0)
            of->on_line = 1;
        else
            of->on_dot = 1;
    }
    for (int side = 0; side < 2; side++)
    {
        around[side].is_end = a->ends[side][node];
        around[side].is_covered = n_pieces > 0 && (covered >> side & 1);
    }
    for (int64_t part = 0; part < a->pair.n_parts; part++)
    {
        struct around *of = &around[a->pair.part[part].side];
        if (!a->parity[part])
            continue;
        if (!a->on_ring[part])
            of->is_inside = 1;
        else if (n_pieces == 0) /* the ring is a hole that consists of a single
                                   point inside of the area */
            of->is_covered = 1;
    }
}

static void add_nodes_to_matrix(struct exact_arrangement *a,
                                struct oj_matrix *matrix)
{
    for (int64_t i = 0, end; i < a->n_visits; i = end)
    {
        struct around around[2];
        memset(around, 0, sizeof around);
        for (end = i; end < a->n_visits; end++)
        {
            if (a->visit[end].node != a->visit[i].node)
                break;
        }
        find_surroundings_of_node(a, i, end, around);
        oj_matrix_add(matrix, de9im_place_of_surroundings(&around[0]),
                      de9im_place_of_surroundings(&around[1]), 0);
    }
}

static oj_status fill_matrix(struct exact_arrangement *a,
                             struct oj_matrix *matrix, struct oj_error *err)
{
    OJ_TRY(cut_all_segments_at_meetings(a, err));
    OJ_TRY(sort_and_number_nodes(a, err));
    OJ_TRY(make_noded_pieces_of_segments(a, err));
    OJ_TRY(classify_areas_and_count_line_ends(a, err));
    OJ_TRY(list_and_sort_parts_at_nodes(a, err));
    OJ_NEW_ZEROED(a->covered, a->n_pieces, err);
    OJ_NEW(a->parity, a->pair.n_parts, err);
    OJ_NEW(a->on_ring, a->pair.n_parts, err);
    add_pieces_to_matrix(a, matrix);
    add_nodes_to_matrix(a, matrix);
    return OJ_OK;
}

oj_status oj_exact_matrix(const struct oj_flat *input, int64_t row,
                          const struct oj_flat *join_side, int64_t feature,
                          struct oj_matrix *out, struct oj_error *err)
{
    struct oj_matrix matrix = oj_matrix_empty();
    struct exact_arrangement a;
    oj_status status;
    memset(&a, 0, sizeof a);
    status = read_segments_of_two_features(&a.pair, input, row, join_side,
                                           feature, err);
    if (status == OJ_OK)
        status = fill_matrix(&a, &matrix, err);
    free_arrangement(&a);
    if (status == OJ_OK)
        *out = matrix;
    return status;
}

oj_status oj_exact_decide_pair(const struct oj_relation *relation,
                               const struct oj_flat *input, int64_t row,
                               const struct oj_flat *join_side, int64_t feature,
                               int *holds, struct oj_error *err)
{
    struct oj_box box = oj_box_of_feature(input, row);
    struct oj_box other = oj_box_of_feature(join_side, feature);
    struct oj_matrix matrix;
    if ((oj_op_get(relation->op)->takes & OJ_TAKES_SHAPES) == 0)
        return oj_fail_internal(
            err, "the exact reference decides joins by predicate only, not %s",
            oj_op_get(relation->op)->name);
    if (oj_relation_is_bbox(relation) || oj_box_is_empty(&box) ||
        oj_box_is_empty(&other))
    {
        *holds = oj_box_intersects(&box, &other);
        return OJ_OK;
    }
    OJ_TRY(oj_exact_matrix(input, row, join_side, feature, &matrix, err));
    *holds = oj_matrix_satisfies_relation(&matrix, relation);
    return OJ_OK;
}

/* --- distances ------------------------------------------------------------ */

/* The minimum squared distance found so far, as the fraction above / below in
 * units of 2^(2 exponent). */
struct nearness
{
    struct exact_pair pair;
    struct oj_integer above, below; /* below > 0 */
    int is_found;
    double bound; /* an upper bound of the distance, used to skip segments by
                     their boxes */
};

static int is_distance_zero(const struct nearness *n)
{
    return n->is_found && n->above.sign == 0;
}

/* Replaces the minimum squared distance if above / below is smaller. */
static void keep_smaller_squared_distance(struct nearness *n,
                                          const struct oj_integer *above,
                                          const struct oj_integer *below)
{
    struct oj_integer left, right;
    double mantissa;
    int exponent;
    if (n->is_found)
    {
        oj_integer_multiply(&left, above, &n->below);
        oj_integer_multiply(&right, &n->above, below);
        if (oj_integer_compare(&left, &right) >= 0)
            return;
    }
    n->is_found = 1;
    oj_integer_copy(&n->above, above);
    oj_integer_copy(&n->below, below);
    oj_integer_ratio(above, below, &mantissa, &exponent);
    if (exponent % 2 != 0)
    {
        mantissa *= 2.0;
        exponent--;
    }
    n->bound = ldexp(sqrt(mantissa), exponent / 2 + n->pair.exponent);
    n->bound += n->bound * 0x1p-45 + 0x1p-1070;
}

static void set_zero_distance(struct nearness *n)
{
    struct oj_integer nothing, one;
    oj_integer_set_small(&nothing, 0);
    oj_integer_set_small(&one, 1);
    keep_smaller_squared_distance(n, &nothing, &one);
}

/* An exact vector between two points. */
struct exact_vector
{
    struct oj_integer x, y;
};

static void make_exact_vector(const struct nearness *n,
                              struct exact_vector *out, double from_x,
                              double from_y, double to_x, double to_y)
{
    oj_integer_difference(&out->x, to_x, from_x, n->pair.exponent);
    oj_integer_difference(&out->y, to_y, from_y, n->pair.exponent);
}

/* Computes out = a.x * b.x + a.y * b.y. */
static void dot_product(struct oj_integer *out, const struct exact_vector *a,
                        const struct exact_vector *b)
{
    oj_integer_add_products(out, &a->x, &b->x, &a->y, &b->y);
}

/* Lowers the minimum *n to the exact distance from a point to a segment, which
 * may have length 0. */
static void measure_point_to_segment_exactly(struct nearness *n, double x,
                                             double y,
                                             const struct exact_segment *s)
{
    const struct oj_box point = {x, y, x, y}, box = box_of_segment(s);
    struct exact_vector along, to_point;
    struct oj_integer above, below, at, copy;
    if (oj_box_distance(&box, &point) > n->bound)
        return;
    make_exact_vector(n, &along, s->ax, s->ay, s->bx, s->by);
    make_exact_vector(n, &to_point, s->ax, s->ay, x, y);
    dot_product(&at, &along, &to_point);
    dot_product(&below, &along, &along);
    if (at.sign > 0 && oj_integer_compare(&at, &below) < 0)
    {
        oj_integer_cross(&at, &along.x, &to_point.y, &along.y, &to_point.x);
        oj_integer_copy(&copy, &at);
        oj_integer_multiply(&above, &at, &copy);
    }
    else /* an end of the segment is the nearest point */
    {
        if (at.sign > 0)
            make_exact_vector(n, &to_point, s->bx, s->by, x, y);
        dot_product(&above, &to_point, &to_point);
        oj_integer_set_small(&below, 1);
    }
    keep_smaller_squared_distance(n, &above, &below);
}

/* Measures the distance of two segments. Unless they cross in their interiors,
 * it is the distance from an end of one to the other. */
static void measure_segment_distance(struct nearness *n,
                                     const struct exact_segment *s,
                                     const struct exact_segment *t)
{
    struct oj_box a = box_of_segment(s), b = box_of_segment(t);
    int exponent = n->pair.exponent;
    if (oj_box_intersects(&a, &b) &&
        orientation_sign_of_vertex(s, t->ax, t->ay, exponent) *
                orientation_sign_of_vertex(s, t->bx, t->by, exponent) <
            0 &&
        orientation_sign_of_vertex(t, s->ax, s->ay, exponent) *
                orientation_sign_of_vertex(t, s->bx, s->by, exponent) <
            0)
    {
        set_zero_distance(n);
        return;
    }
    measure_point_to_segment_exactly(n, t->ax, t->ay, s);
    measure_point_to_segment_exactly(n, t->bx, t->by, s);
    measure_point_to_segment_exactly(n, s->ax, s->ay, t);
    measure_point_to_segment_exactly(n, s->bx, s->by, t);
}

/* Sets *n to the minimum distance over all pairs of segments of the two
 * features. */
static oj_status find_least_squared_distance(struct nearness *n,
                                             struct oj_error *err)
{
    const struct exact_pair *pair = &n->pair;
    n->is_found = 0;
    n->bound = INFINITY;
    if (pair->n_of_input == 0 || pair->n_of_input == pair->n_segments)
        return oj_fail_internal(err,
                                "exact distance of a feature without parts");
    for (int64_t i = 0; i < pair->n_of_input && !is_distance_zero(n); i++)
    {
        struct oj_box box = box_of_segment(&pair->segment[i]);
        struct oj_box near = oj_box_widened(&box, n->bound);
        int64_t at = pair->n_of_input, j;
        while ((j = next_segment_near_box(pair, &near, &at,
                                          pair->n_segments)) >= 0)
        {
            measure_segment_distance(n, &pair->segment[i], &pair->segment[j]);
            near = oj_box_widened(&box, n->bound);
        }
    }
    return OJ_OK;
}

/* Sets *order to -1, 0 or 1 if the exact distance of two features is less than,
 * equal to or greater than (a + b) / 2. */
static oj_status
compare_distance_with_mean(const struct oj_flat *input, int64_t row,
                           const struct oj_flat *join_side, int64_t feature,
                           enum oj_distance_to distance_to, double a, double b,
                           int *order, struct oj_error *err)
{
    struct oj_matrix matrix = oj_matrix_empty();
    struct nearness n;
    struct oj_integer sum, other, squared;
    oj_status status;
    memset(&n.pair, 0, sizeof n.pair);
    status = read_segments_of_two_features(&n.pair, input, row, join_side,
                                           feature, err);
    lower_exponent_to_that_of(&n.pair.exponent, a);
    lower_exponent_to_that_of(&n.pair.exponent, b);
    if (status == OJ_OK)
        status = find_least_squared_distance(&n, err);
    if (status == OJ_OK && distance_to == OJ_TO_INTERIOR &&
        !is_distance_zero(&n))
        status = oj_exact_matrix(input, row, join_side, feature, &matrix, err);
    if (status == OJ_OK)
    {
        if (matrix.at[0] != 'F' || matrix.at[1] != 'F' || matrix.at[3] != 'F')
            set_zero_distance(&n); /* one feature has a point inside of an area
                                      of the other */
        /* Compares 4 distance^2 with (a + b)^2, both multiplied by `below`. */
        oj_integer_set(&sum, a, n.pair.exponent);
        oj_integer_set(&other, b, n.pair.exponent);
        oj_integer_add(&sum, &sum, &other);
        oj_integer_copy(&other, &sum);
        oj_integer_multiply(&squared, &sum, &other);
        oj_integer_multiply(&other, &squared, &n.below);
        oj_integer_set_small(&squared, 4);
        oj_integer_multiply(&sum, &n.above, &squared);
        *order = oj_integer_compare(&sum, &other);
    }
    free_pair(&n.pair);
    return status;
}

oj_status oj_exact_compare_distance(const struct oj_flat *input, int64_t row,
                                    const struct oj_flat *join_side,
                                    int64_t feature,
                                    enum oj_distance_to distance_to,
                                    double limit, int *order,
                                    struct oj_error *err)
{
    return compare_distance_with_mean(input, row, join_side, feature,
                                      distance_to, limit, limit, order, err);
}

oj_status oj_exact_first_distance_is_closer(
    const struct oj_flat *input, int64_t row, const struct oj_flat *join_side,
    int64_t feature, enum oj_distance_to distance_to, double a, double b,
    int *is_nearer, struct oj_error *err)
{
    int order = 0;
    if (a != b)
        OJ_TRY(compare_distance_with_mean(input, row, join_side, feature,
                                          distance_to, a, b, &order, err));
    *is_nearer = a < b ? order <= 0 : order >= 0;
    return OJ_OK;
}
