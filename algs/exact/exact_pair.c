#include "exact_pair.h"

#include "../../flatten/base/oj_array.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* --- reading -------------------------------------------------------------- */

static int64_t count_vertices(const struct oj_flat *flat, int64_t feature)
{
    int64_t first, end;
    oj_flat_vertices(flat, feature, &first, &end);
    return end - first;
}

static int64_t count_parts(const struct oj_flat *flat, int64_t feature)
{
    if (oj_flat_is_points(flat))
        return count_vertices(flat, feature);
    return flat->part_offset[feature + 1] - flat->part_offset[feature];
}

/* Two lists that grow towards each other's ends of one array. */
struct pair_reader
{
    struct oj_exact_pair *pair;
    struct oj_exact_segment *dot;
};

static void add_dot(struct pair_reader *reader, double x, double y)
{
    struct oj_exact_segment *dot = &reader->dot[reader->pair->n_dots++];
    dot->ax = dot->bx = x;
    dot->ay = dot->by = y;
    dot->part = reader->pair->n_parts - 1;
}

/* A ring or line; + 0.0 makes a plain zero of a negative one. */
static void read_ring(struct pair_reader *reader, const struct oj_flat *flat,
                      int64_t first, int64_t end)
{
    struct oj_exact_pair *pair = reader->pair;
    int64_t n_before = pair->n_segments;
    for (int64_t v = first; v + 1 < end; v++)
    {
        struct oj_exact_segment *s = &pair->segment[pair->n_segments];
        s->ax = flat->x[v] + 0.0;
        s->ay = flat->y[v] + 0.0;
        s->bx = flat->x[v + 1] + 0.0;
        s->by = flat->y[v + 1] + 0.0;
        s->part = pair->n_parts - 1;
        pair->n_segments += s->ax != s->bx || s->ay != s->by;
    }
    if (pair->n_segments == n_before && first < end)
        add_dot(reader, flat->x[first] + 0.0, flat->y[first] + 0.0);
}

static void begin_part(struct oj_exact_pair *pair, int side,
                       enum oj_part_kind kind)
{
    struct oj_exact_part *part = &pair->part[pair->n_parts++];
    part->side = side;
    part->kind = kind;
    part->first_segment = pair->n_segments;
    part->n_segments = 0;
}

static void read_feature(struct pair_reader *reader, const struct oj_flat *flat,
                         int64_t feature, int side)
{
    struct oj_exact_pair *pair = reader->pair;
    if (oj_flat_is_points(flat))
    {
        if (count_vertices(flat, feature) == 0)
            return;
        begin_part(pair, side, OJ_PART_POINT);
        read_ring(reader, flat, feature, feature + 1);
        return;
    }
    for (int64_t p = flat->part_offset[feature];
         p < flat->part_offset[feature + 1]; p++)
    {
        begin_part(pair, side, (enum oj_part_kind)flat->part_kind[p]);
        for (int64_t r = flat->ring_offset[p]; r < flat->ring_offset[p + 1];
             r++)
            read_ring(reader, flat, flat->vertex_offset[r],
                      flat->vertex_offset[r + 1]);
        pair->part[pair->n_parts - 1].n_segments =
            pair->n_segments - pair->part[pair->n_parts - 1].first_segment;
    }
}

static void lower(int *exponent, double value)
{
    int own = oj_integer_exponent(value);
    if (own < *exponent)
        *exponent = own;
}

static int find_exponent(const struct oj_exact_pair *pair, const double *also,
                         int n_also)
{
    int exponent = INT_MAX;
    for (int64_t i = 0; i < pair->n_segments + pair->n_dots; i++)
    {
        lower(&exponent, pair->segment[i].ax);
        lower(&exponent, pair->segment[i].ay);
        lower(&exponent, pair->segment[i].bx);
        lower(&exponent, pair->segment[i].by);
    }
    for (int i = 0; i < n_also; i++)
        lower(&exponent, also[i]);
    return exponent == INT_MAX ? 0 : exponent;
}

oj_status oj_exact_pair_make(const struct oj_flat *input, int64_t row,
                             const struct oj_flat *join_side, int64_t feature,
                             const double *also, int n_also,
                             struct oj_exact_pair *pair, struct oj_error *err)
{
    /* A ring of v vertices gives v - 1 segments or one dot. */
    int64_t n_parts = count_parts(input, row) + count_parts(join_side, feature);
    int64_t n_vertices =
        count_vertices(input, row) + count_vertices(join_side, feature);
    struct pair_reader reader = {pair, NULL};
    memset(pair, 0, sizeof *pair);
    pair->part = oj_malloc(n_parts, sizeof *pair->part);
    pair->segment = oj_malloc(n_vertices, sizeof *pair->segment);
    reader.dot = oj_malloc(n_vertices, sizeof *reader.dot);
    if (pair->part == NULL || pair->segment == NULL || reader.dot == NULL)
    {
        oj_free(reader.dot);
        oj_exact_pair_free(pair);
        return oj_fail_nomem(err, n_vertices, 2 * sizeof *pair->segment);
    }
    read_feature(&reader, input, row, 0);
    read_feature(&reader, join_side, feature, 1);
    memcpy(pair->segment + pair->n_segments, reader.dot,
           (size_t)pair->n_dots * sizeof *reader.dot);
    oj_free(reader.dot);
    pair->exponent = find_exponent(pair, also, n_also);
    return OJ_OK;
}

void oj_exact_pair_free(struct oj_exact_pair *pair)
{
    oj_free(pair->part);
    oj_free(pair->segment);
    memset(pair, 0, sizeof *pair);
}

/* --- boxes ---------------------------------------------------------------- */

enum
{
    LEAF = 8
};

struct oj_exact_box oj_exact_box_of(const struct oj_exact_segment *s)
{
    struct oj_exact_box box;
    box.low[0] = s->ax < s->bx ? s->ax : s->bx;
    box.low[1] = s->ay < s->by ? s->ay : s->by;
    box.high[0] = s->ax < s->bx ? s->bx : s->ax;
    box.high[1] = s->ay < s->by ? s->by : s->ay;
    return box;
}

static void extend(struct oj_exact_box *box, const struct oj_exact_box *by)
{
    for (int axis = 0; axis < 2; axis++)
    {
        if (by->low[axis] < box->low[axis])
            box->low[axis] = by->low[axis];
        if (by->high[axis] > box->high[axis])
            box->high[axis] = by->high[axis];
    }
}

oj_status oj_exact_tree_make(const struct oj_exact_segment *segment, int64_t n,
                             struct oj_exact_tree *tree, struct oj_error *err)
{
    const double inf = (double)INFINITY;
    const struct oj_exact_box nothing = {{inf, inf}, {-inf, -inf}};
    tree->segment = segment;
    tree->n_segments = n;
    for (tree->n_leaves = 1; tree->n_leaves * LEAF < n;)
        tree->n_leaves *= 2;
    OJ_NEW(tree->box, 2 * tree->n_leaves, err);
    for (int64_t i = 0; i < 2 * tree->n_leaves; i++)
        tree->box[i] = nothing;
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_exact_box box = oj_exact_box_of(&segment[i]);
        extend(&tree->box[tree->n_leaves + i / LEAF], &box);
    }
    for (int64_t i = tree->n_leaves - 1; i > 0; i--)
    {
        extend(&tree->box[i], &tree->box[2 * i]);
        extend(&tree->box[i], &tree->box[2 * i + 1]);
    }
    return OJ_OK;
}

void oj_exact_tree_free(struct oj_exact_tree *tree)
{
    oj_free(tree->box);
    memset(tree, 0, sizeof *tree);
}

int64_t oj_exact_leaf_begin(const struct oj_exact_tree *tree, int64_t leaf)
{
    return (leaf - tree->n_leaves) * LEAF;
}

int64_t oj_exact_leaf_end(const struct oj_exact_tree *tree, int64_t leaf)
{
    int64_t end = oj_exact_leaf_begin(tree, leaf) + LEAF;
    return end < tree->n_segments ? end : tree->n_segments;
}

/* The box that follows node and what is in it; 0: none. */
static int64_t node_after(int64_t node)
{
    while (node & 1)
        node >>= 1;
    return node == 0 ? 0 : node + 1;
}

int64_t oj_exact_search_next(struct oj_exact_search *s)
{
    const struct oj_exact_tree *tree = s->tree;
    if (!s->is_begun)
    {
        s->is_begun = 1;
        s->node = 1;
    }
    for (;;)
    {
        while (s->at < s->end)
        {
            struct oj_exact_box box = oj_exact_box_of(&tree->segment[s->at++]);
            if (oj_exact_boxes_meet(&box, &s->box))
                return s->at - 1;
        }
        if (s->node == 0)
            return -1;
        if (!oj_exact_boxes_meet(&tree->box[s->node], &s->box))
            s->node = node_after(s->node);
        else if (s->node < tree->n_leaves)
            s->node *= 2;
        else
        {
            s->at = oj_exact_leaf_begin(tree, s->node);
            s->end = oj_exact_leaf_end(tree, s->node);
            s->node = node_after(s->node);
        }
    }
}

/* --- exact coordinates ---------------------------------------------------- */

/* out = (b - a) x (p - a): > 0 where p is left of the segment. */
static void side_of_vertex(const struct oj_exact_pair *pair,
                           struct oj_integer *out,
                           const struct oj_exact_segment *s, double px,
                           double py)
{
    struct oj_integer dx, dy, x, y;
    oj_integer_difference(&dx, s->bx, s->ax, pair->exponent);
    oj_integer_difference(&dy, s->by, s->ay, pair->exponent);
    oj_integer_difference(&x, px, s->ax, pair->exponent);
    oj_integer_difference(&y, py, s->ay, pair->exponent);
    oj_integer_cross(out, &dx, &y, &dy, &x);
}

/* out = b * a_side - a * b_side */
static void between(const struct oj_exact_pair *pair, struct oj_integer *out,
                    double a, double b, const struct oj_integer *a_side,
                    const struct oj_integer *b_side)
{
    struct oj_integer whole_a, whole_b;
    oj_integer_set(&whole_a, a, pair->exponent);
    oj_integer_set(&whole_b, b, pair->exponent);
    oj_integer_cross(out, &whole_b, a_side, &whole_a, b_side);
}

/* The ends of second lie a_side and b_side of first, on different sides: the
 * crossing is a + (b - a) a_side / (a_side - b_side). */
static void make_crossing(const struct oj_exact_pair *pair,
                          const struct oj_exact_place *place,
                          struct oj_integer *x, struct oj_integer *y,
                          struct oj_integer *w)
{
    const struct oj_exact_segment *s = place->second;
    struct oj_integer a_side, b_side;
    side_of_vertex(pair, &a_side, place->first, s->ax, s->ay);
    side_of_vertex(pair, &b_side, place->first, s->bx, s->by);
    oj_integer_subtract(w, &a_side, &b_side);
    between(pair, x, s->ax, s->bx, &a_side, &b_side);
    between(pair, y, s->ay, s->by, &a_side, &b_side);
    if (w->sign > 0)
        return;
    oj_integer_negate(x);
    oj_integer_negate(y);
    oj_integer_negate(w);
}

static void make_place(const struct oj_exact_pair *pair,
                       const struct oj_exact_place *place, struct oj_integer *x,
                       struct oj_integer *y, struct oj_integer *w)
{
    if (place->first != NULL)
    {
        make_crossing(pair, place, x, y, w);
        return;
    }
    oj_integer_set(x, place->bounds.low[0], pair->exponent);
    oj_integer_set(y, place->bounds.low[1], pair->exponent);
    oj_integer_set_small(w, 1);
}

static void make_point(const struct oj_exact_pair *pair,
                       struct oj_exact_point *point)
{
    struct oj_integer x[2], y[2], w[2];
    if (point->is_made)
        return;
    point->is_made = 1;
    if (!point->is_middle)
    {
        make_place(pair, &point->from, &point->x, &point->y, &point->w);
        return;
    }
    make_place(pair, &point->from, &x[0], &y[0], &w[0]);
    make_place(pair, &point->to, &x[1], &y[1], &w[1]);
    oj_integer_add_products(&point->x, &x[0], &w[1], &x[1], &w[0]);
    oj_integer_add_products(&point->y, &y[0], &w[1], &y[1], &w[0]);
    oj_integer_multiply(&point->w, &w[0], &w[1]);
    oj_integer_add(&point->w, &point->w, &point->w);
}

/* --- places --------------------------------------------------------------- */

void oj_exact_place_vertex(struct oj_exact_place *place, double x, double y)
{
    place->bounds.low[0] = place->bounds.high[0] = x;
    place->bounds.low[1] = place->bounds.high[1] = y;
    place->first = place->second = NULL;
}

/* Narrows the bounds of an axis to those of x / w * 2^exponent. */
static void bound(const struct oj_exact_pair *pair, struct oj_exact_box *bounds,
                  int axis, const struct oj_integer *x,
                  const struct oj_integer *w)
{
    double mantissa, value, error;
    int exponent;
    oj_integer_ratio(x, w, &mantissa, &exponent);
    value = ldexp(mantissa, exponent + pair->exponent);
    if (!isfinite(value))
        return;
    error = fabs(value) * 0x1p-49 + 0x1p-1070;
    if (value - error > bounds->low[axis])
        bounds->low[axis] = value - error;
    if (value + error < bounds->high[axis])
        bounds->high[axis] = value + error;
}

void oj_exact_place_crossing(const struct oj_exact_pair *pair,
                             struct oj_exact_place *place,
                             const struct oj_exact_segment *first,
                             const struct oj_exact_segment *second)
{
    struct oj_exact_box a = oj_exact_box_of(first);
    struct oj_exact_box b = oj_exact_box_of(second);
    struct oj_integer x, y, w;
    place->first = first;
    place->second = second;
    for (int axis = 0; axis < 2; axis++)
    {
        place->bounds.low[axis] = fmax(a.low[axis], b.low[axis]);
        place->bounds.high[axis] = fmin(a.high[axis], b.high[axis]);
    }
    make_place(pair, place, &x, &y, &w);
    bound(pair, &place->bounds, 0, &x, &w);
    bound(pair, &place->bounds, 1, &y, &w);
}

int oj_exact_place_compare(const struct oj_exact_pair *pair,
                           const struct oj_exact_place *a,
                           const struct oj_exact_place *b)
{
    struct oj_integer x[2], y[2], w[2], left, right;
    int order, is_made = 0;
    for (int axis = 0; axis < 2; axis++)
    {
        if (a->bounds.high[axis] < b->bounds.low[axis])
            return -1;
        if (a->bounds.low[axis] > b->bounds.high[axis])
            return 1;
        if (a->bounds.low[axis] == a->bounds.high[axis] &&
            b->bounds.low[axis] == b->bounds.high[axis])
            continue;
        if (!is_made)
        {
            make_place(pair, a, &x[0], &y[0], &w[0]);
            make_place(pair, b, &x[1], &y[1], &w[1]);
            is_made = 1;
        }
        oj_integer_multiply(&left, axis == 0 ? &x[0] : &y[0], &w[1]);
        oj_integer_multiply(&right, axis == 0 ? &x[1] : &y[1], &w[0]);
        order = oj_integer_compare(&left, &right);
        if (order != 0)
            return order;
    }
    return 0;
}

/* --- points --------------------------------------------------------------- */

void oj_exact_point_at(struct oj_exact_point *point,
                       const struct oj_exact_place *place)
{
    point->from = *place;
    point->bounds = place->bounds;
    point->is_middle = point->is_made = 0;
}

void oj_exact_point_vertex(struct oj_exact_point *point, double x, double y)
{
    struct oj_exact_place place;
    oj_exact_place_vertex(&place, x, y);
    oj_exact_point_at(point, &place);
}

void oj_exact_point_middle(struct oj_exact_point *point,
                           const struct oj_exact_place *from,
                           const struct oj_exact_place *to)
{
    const struct oj_exact_box *a = &from->bounds, *b = &to->bounds;
    point->from = *from;
    point->to = *to;
    point->is_middle = 1;
    point->is_made = 0;
    for (int axis = 0; axis < 2; axis++)
    {
        double low = a->low[axis], high = b->high[axis];
        if (low != high || low != a->high[axis] || low != b->low[axis])
        {
            low = nextafter(a->low[axis] / 2 + b->low[axis] / 2,
                            -(double)INFINITY);
            high = nextafter(a->high[axis] / 2 + b->high[axis] / 2,
                             (double)INFINITY);
        }
        point->bounds.low[axis] = low;
        point->bounds.high[axis] = high;
    }
}

/* A number between the bounds of an axis; *radius: how far off it may be. */
static double centre(const struct oj_exact_box *bounds, int axis,
                     double *radius)
{
    double low = bounds->low[axis], high = bounds->high[axis], middle;
    middle = low == high ? low : low + (high - low) / 2;
    *radius = fmax(middle - low, high - middle) * 1.01;
    return middle;
}

/* Doubles decide the side, or say 0: not decided.  The products have a relative
 * error of 2^-51 at most, and their underflow does not matter beside a size of
 * 1e-280; where something overflows, no comparison holds. */
static int quick_side(const struct oj_exact_segment *s,
                      const struct oj_exact_box *bounds)
{
    double x_radius, y_radius;
    double x = centre(bounds, 0, &x_radius), y = centre(bounds, 1, &y_radius);
    double dx = s->bx - s->ax, dy = s->by - s->ay;
    double left = dx * (y - s->ay), right = dy * (x - s->ax);
    double size = fabs(left) + fabs(right), value = left - right;
    double error = size * 0x1p-49 + (fabs(dx) * y_radius) * 1.01 +
                   (fabs(dy) * x_radius) * 1.01;
    if (!(size > 1e-280))
        return 0;
    return (value > error) - (value < -error);
}

int oj_exact_side(const struct oj_exact_pair *pair,
                  const struct oj_exact_segment *s,
                  struct oj_exact_point *point)
{
    struct oj_integer dx, dy, x, y, a;
    int side = quick_side(s, &point->bounds);
    if (side != 0)
        return side;
    make_point(pair, point);
    oj_integer_difference(&dx, s->bx, s->ax, pair->exponent);
    oj_integer_difference(&dy, s->by, s->ay, pair->exponent);
    oj_integer_set(&a, s->ax, pair->exponent);
    oj_integer_multiply(&x, &a, &point->w);
    oj_integer_subtract(&x, &point->x, &x);
    oj_integer_set(&a, s->ay, pair->exponent);
    oj_integer_multiply(&y, &a, &point->w);
    oj_integer_subtract(&y, &point->y, &y);
    oj_integer_cross(&a, &dx, &y, &dy, &x);
    return a.sign;
}

/* 1 when y is greater than that of the point. */
static int is_above(const struct oj_exact_pair *pair, double y,
                    struct oj_exact_point *point)
{
    struct oj_integer whole, scaled;
    if (y > point->bounds.high[1])
        return 1;
    if (y < point->bounds.low[1] || point->bounds.low[1] == y)
        return 0;
    make_point(pair, point);
    oj_integer_set(&whole, y, pair->exponent);
    oj_integer_multiply(&scaled, &whole, &point->w);
    return oj_integer_compare(&scaled, &point->y) > 0;
}

int oj_exact_ray_meets(const struct oj_exact_pair *pair,
                       const struct oj_exact_segment *s,
                       struct oj_exact_point *point)
{
    int a_above = is_above(pair, s->ay, point);
    int b_above = is_above(pair, s->by, point);
    if (a_above == b_above)
        return 0;
    if (s->ax < point->bounds.low[0] && s->bx < point->bounds.low[0])
        return 0;
    if (s->ax > point->bounds.high[0] && s->bx > point->bounds.high[0])
        return 1;
    return oj_exact_side(pair, s, point) == (s->by > s->ay ? 1 : -1);
}
