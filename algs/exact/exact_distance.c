/* The least distance of the segments and points of two features, squared, as a
 * fraction of whole numbers. */
#include "exact_reference.h"

#include "../../flatten/base/oj_array.h"
#include "exact_pair.h"

#include <math.h>
#include <string.h>

/* A distance squared: above / below, of 2^(2 exponent) of the pair. */
struct fraction
{
    struct oj_integer above, below; /* below > 0 */
};

struct nearness
{
    struct oj_exact_pair pair;
    /* Segments and dots of one side; [1] has the tree. */
    struct oj_exact_segment *segment[2];
    int64_t n_segments[2];
    struct oj_exact_tree tree[2];
    struct fraction least;
    int is_found;
    double bound; /* at least the distance found */
};

static void free_nearness(struct nearness *n)
{
    oj_exact_pair_free(&n->pair);
    for (int side = 0; side < 2; side++)
    {
        oj_free(n->segment[side]);
        oj_exact_tree_free(&n->tree[side]);
    }
}

/* --- reading -------------------------------------------------------------- */

/* Copies segments and dots side by side, in one list for each side. */
static oj_status sort_out(struct nearness *n, struct oj_error *err)
{
    const struct oj_exact_pair *pair = &n->pair;
    int64_t n_all = pair->n_segments + pair->n_dots;
    OJ_NEW(n->segment[0], n_all, err);
    OJ_NEW(n->segment[1], n_all, err);
    for (int64_t i = 0; i < n_all; i++)
    {
        int side = pair->part[pair->segment[i].part].side;
        n->segment[side][n->n_segments[side]++] = pair->segment[i];
    }
    for (int side = 0; side < 2; side++)
        OJ_TRY(oj_exact_tree_make(n->segment[side], n->n_segments[side],
                                  &n->tree[side], err));
    return OJ_OK;
}

/* --- whether a feature is in an area of the other ------------------------- */

/* Whether a polygon of the side has the point inside, by even-odd; parity
 * [n_parts] is 0 before and after. */
static int is_in_area(const struct nearness *n, int side, double x, double y,
                      uint8_t *parity)
{
    struct oj_exact_search search = {.tree = &n->tree[side]};
    struct oj_exact_point point;
    int is_inside = 0;
    oj_exact_point_vertex(&point, x, y);
    search.box = point.bounds;
    search.box.high[0] = (double)INFINITY;
    for (int64_t i; (i = oj_exact_search_next(&search)) >= 0;)
    {
        const struct oj_exact_segment *segment = &n->segment[side][i];
        if (n->pair.part[segment->part].kind == OJ_PART_POLYGON)
            parity[segment->part] ^=
                (uint8_t)oj_exact_ray_meets(&n->pair, segment, &point);
    }
    for (int64_t part = 0; part < n->pair.n_parts; part++)
    {
        is_inside |= parity[part];
        parity[part] = 0;
    }
    return is_inside;
}

/* Where no ring, line or point of one side meets one of the other, these are
 * all inside an area of the other or all outside, ring by ring: their first
 * vertices say which. */
static oj_status find_area(const struct nearness *n, int *is_found,
                           struct oj_error *err)
{
    uint8_t *parity = oj_calloc(n->pair.n_parts, sizeof *parity);
    if (parity == NULL)
        return oj_fail_nomem(err, n->pair.n_parts, sizeof *parity);
    *is_found = 0;
    for (int side = 0; side < 2; side++)
    {
        const struct oj_exact_segment *s = n->segment[side];
        for (int64_t i = 0; i < n->n_segments[side] && !*is_found; i++)
        {
            if (i > 0 && s[i].ax == s[i - 1].bx && s[i].ay == s[i - 1].by)
                continue; /* of one ring */
            *is_found = is_in_area(n, 1 - side, s[i].ax, s[i].ay, parity);
        }
    }
    oj_free(parity);
    return OJ_OK;
}

/* --- two segments --------------------------------------------------------- */

/* The coordinates of to - from. */
struct exact_vector
{
    struct oj_integer x, y;
};

static void make_vector(const struct oj_exact_pair *pair,
                        struct exact_vector *out, double from_x, double from_y,
                        double to_x, double to_y)
{
    oj_integer_difference(&out->x, to_x, from_x, pair->exponent);
    oj_integer_difference(&out->y, to_y, from_y, pair->exponent);
}

/* out = a.x * b.x + a.y * b.y */
static void dot_product(struct oj_integer *out, const struct exact_vector *a,
                        const struct exact_vector *b)
{
    oj_integer_add_products(out, &a->x, &b->x, &a->y, &b->y);
}

/* out = (a.x * b.y - a.y * b.x)^2 */
static void cross_squared(struct oj_integer *out, const struct exact_vector *a,
                          const struct exact_vector *b)
{
    struct oj_integer one, other;
    oj_integer_cross(&one, &a->x, &b->y, &a->y, &b->x);
    oj_integer_copy(&other, &one);
    oj_integer_multiply(out, &one, &other);
}

/* Takes a distance that is less than the least so far. */
static void take(struct nearness *n, const struct fraction *distance)
{
    struct oj_integer left, right;
    double mantissa;
    int exponent;
    if (n->is_found)
    {
        oj_integer_multiply(&left, &distance->above, &n->least.below);
        oj_integer_multiply(&right, &n->least.above, &distance->below);
        if (oj_integer_compare(&left, &right) >= 0)
            return;
    }
    n->is_found = 1;
    oj_integer_copy(&n->least.above, &distance->above);
    oj_integer_copy(&n->least.below, &distance->below);
    oj_integer_ratio(&distance->above, &distance->below, &mantissa, &exponent);
    if (exponent % 2 != 0)
    {
        mantissa *= 2.0;
        exponent--;
    }
    n->bound = ldexp(sqrt(mantissa), exponent / 2 + n->pair.exponent);
    n->bound += n->bound * 0x1p-45 + 0x1p-1070;
}

/* A point and a segment, or two points. */
static void measure_point(struct nearness *n, double x, double y,
                          const struct oj_exact_segment *s)
{
    struct exact_vector along, to_point;
    struct fraction distance;
    struct oj_integer at;
    make_vector(&n->pair, &along, s->ax, s->ay, s->bx, s->by);
    make_vector(&n->pair, &to_point, s->ax, s->ay, x, y);
    dot_product(&at, &along, &to_point);
    dot_product(&distance.below, &along, &along);
    if (at.sign <= 0) /* a is the nearest */
    {
        dot_product(&distance.above, &to_point, &to_point);
        oj_integer_set_small(&distance.below, 1);
    }
    else if (oj_integer_compare(&at, &distance.below) >= 0)
    {
        make_vector(&n->pair, &to_point, s->bx, s->by, x, y);
        dot_product(&distance.above, &to_point, &to_point);
        oj_integer_set_small(&distance.below, 1);
    }
    else
        cross_squared(&distance.above, &along, &to_point);
    take(n, &distance);
}

static int side_of(const struct nearness *n, const struct oj_exact_segment *s,
                   double x, double y)
{
    struct oj_exact_point point;
    oj_exact_point_vertex(&point, x, y);
    return oj_exact_side(&n->pair, s, &point);
}

/* Segments that cross inside both; all others are as far as some end. */
static int do_cross(const struct nearness *n, const struct oj_exact_segment *s,
                    const struct oj_exact_segment *t)
{
    struct oj_exact_box a = oj_exact_box_of(s), b = oj_exact_box_of(t);
    return oj_exact_boxes_meet(&a, &b) &&
           side_of(n, s, t->ax, t->ay) * side_of(n, s, t->bx, t->by) < 0 &&
           side_of(n, t, s->ax, s->ay) * side_of(n, t, s->bx, s->by) < 0;
}

/* Not more than the distance of two boxes. */
static double least_distance(const struct oj_exact_box *a,
                             const struct oj_exact_box *b)
{
    double gap[2], distance;
    for (int axis = 0; axis < 2; axis++)
        gap[axis] = fmax(0.0, fmax(a->low[axis] - b->high[axis],
                                   b->low[axis] - a->high[axis]));
    distance = hypot(gap[0], gap[1]);
    if (!(distance < 0x1p1022)) /* it, or a gap, may have overflown */
        return 0x1p1022;
    return distance - distance * 0x1p-45 - 0x1p-1070;
}

static void measure_point_within_bound(struct nearness *n, double x, double y,
                                       const struct oj_exact_segment *s)
{
    struct oj_exact_box box = oj_exact_box_of(s);
    const struct oj_exact_box at = {{x, y}, {x, y}};
    if (!n->is_found || least_distance(&box, &at) <= n->bound)
        measure_point(n, x, y, s);
}

static void measure(struct nearness *n, const struct oj_exact_segment *s,
                    const struct oj_exact_segment *t)
{
    if (do_cross(n, s, t))
    {
        struct fraction nothing;
        oj_integer_set_small(&nothing.above, 0);
        oj_integer_set_small(&nothing.below, 1);
        take(n, &nothing);
        return;
    }
    measure_point_within_bound(n, t->ax, t->ay, s);
    measure_point_within_bound(n, t->bx, t->by, s);
    measure_point_within_bound(n, s->ax, s->ay, t);
    measure_point_within_bound(n, s->bx, s->by, t);
}

/* --- all segments --------------------------------------------------------- */

static int is_zero(const struct nearness *n)
{
    return n->is_found && n->least.above.sign == 0;
}

/* One segment and what lies in a box of the tree; the nearer half first. As
 * deep as the tree. */
static void visit(struct nearness *n, const struct oj_exact_segment *s,
                  const struct oj_exact_box *box, int64_t node)
{
    const struct oj_exact_tree *tree = &n->tree[1];
    double left, right;
    if (is_zero(n) ||
        (n->is_found && least_distance(box, &tree->box[node]) > n->bound))
        return;
    if (node < tree->n_leaves)
    {
        left = least_distance(box, &tree->box[2 * node]);
        right = least_distance(box, &tree->box[2 * node + 1]);
        visit(n, s, box, 2 * node + (right < left));
        visit(n, s, box, 2 * node + !(right < left));
        return;
    }
    for (int64_t i = oj_exact_leaf_begin(tree, node);
         i < oj_exact_leaf_end(tree, node); i++)
    {
        struct oj_exact_box other = oj_exact_box_of(&tree->segment[i]);
        if (!n->is_found || least_distance(box, &other) <= n->bound)
            measure(n, s, &tree->segment[i]);
    }
}

/* n->least becomes the distance; 0 / 1 where it is 0. */
static oj_status find_least(struct nearness *n, enum oj_distance_to distance_to,
                            struct oj_error *err)
{
    int is_inside = 0;
    for (int64_t i = 0; i < n->n_segments[0] && !is_zero(n); i++)
    {
        struct oj_exact_box box = oj_exact_box_of(&n->segment[0][i]);
        visit(n, &n->segment[0][i], &box, 1);
    }
    if (distance_to != OJ_TO_INTERIOR || is_zero(n))
        return OJ_OK;
    OJ_TRY(find_area(n, &is_inside, err));
    if (is_inside)
    {
        oj_integer_set_small(&n->least.above, 0);
        oj_integer_set_small(&n->least.below, 1);
    }
    return OJ_OK;
}

/* *order: the distance of the features, compared with (a + b) / 2. */
static oj_status compare(const struct oj_flat *input, int64_t row,
                         const struct oj_flat *join_side, int64_t feature,
                         enum oj_distance_to distance_to, double a, double b,
                         int *order, struct oj_error *err)
{
    const double also[2] = {a, b};
    struct nearness n;
    struct oj_integer sum, other, squared;
    oj_status status;
    memset(&n, 0, sizeof n);
    OJ_TRY(oj_exact_pair_make(input, row, join_side, feature, also, 2, &n.pair,
                              err));
    status = sort_out(&n, err);
    if (status == OJ_OK && (n.n_segments[0] == 0 || n.n_segments[1] == 0))
        status =
            oj_fail(err, OJ_ERR_ARG, "a feature without parts has no distance");
    if (status == OJ_OK)
        status = find_least(&n, distance_to, err);
    if (status == OJ_OK)
    {
        /* 4 distance^2 and (a + b)^2, both times below */
        oj_integer_set(&sum, a, n.pair.exponent);
        oj_integer_set(&other, b, n.pair.exponent);
        oj_integer_add(&sum, &sum, &other);
        oj_integer_copy(&other, &sum);
        oj_integer_multiply(&squared, &sum, &other);
        oj_integer_multiply(&other, &squared, &n.least.below);
        oj_integer_set_small(&squared, 4);
        oj_integer_multiply(&sum, &n.least.above, &squared);
        *order = oj_integer_compare(&sum, &other);
    }
    free_nearness(&n);
    return status;
}

oj_status oj_exact_compare_distance(const struct oj_flat *input, int64_t row,
                                    const struct oj_flat *join_side,
                                    int64_t feature,
                                    enum oj_distance_to distance_to,
                                    double limit, int *order,
                                    struct oj_error *err)
{
    return compare(input, row, join_side, feature, distance_to, limit, limit,
                   order, err);
}

oj_status oj_exact_is_nearer(const struct oj_flat *input, int64_t row,
                             const struct oj_flat *join_side, int64_t feature,
                             enum oj_distance_to distance_to, double a,
                             double b, int *is_nearer, struct oj_error *err)
{
    int order = 0;
    if (a == b)
    {
        *is_nearer = 1;
        return OJ_OK;
    }
    OJ_TRY(compare(input, row, join_side, feature, distance_to, a, b, &order,
                   err));
    *is_nearer = a < b ? order <= 0 : order >= 0;
    return OJ_OK;
}
