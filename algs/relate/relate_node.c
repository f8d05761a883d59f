#include "relate_node.h"

#include "../../flatten/base/oj_array.h"
#include <string.h>

/* --- edges at the node ---------------------------------------------------- */

static int8_t quadrant_of(double dx, double dy)
{
    if (dy != 0.0)
        return dy > 0.0 ? 0 : 2;
    return dx < 0.0 ? 1 : 3;
}

static oj_status add_ray(struct oj_node_scratch *s, const struct oj_edge *e,
                         int sign, int figure, struct oj_error *err)
{
    struct oj_ray *ray;
    /* differences of doubles have the right sign */
    double dx = e->bx - e->ax, dy = e->by - e->ay;
    OJ_TRY(oj_reserve(&s->ray, s->n_rays, s->n_rays + 1, &s->cap_rays,
                      sizeof *s->ray, err));
    ray = &s->ray[s->n_rays++];
    ray->edge = e;
    ray->sign = (int8_t)sign;
    ray->quadrant = quadrant_of(sign > 0 ? dx : -dx, sign > 0 ? dy : -dy);
    ray->figure = (uint8_t)figure;
    return OJ_OK;
}

/* e contains the node. */
static oj_status add_rays(struct oj_node_scratch *s, const struct oj_edge *e,
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
    PASSES_NOT, /* the ray towards +x does not cross the edge */
    PASSES,     /* .. crosses it */
    CONTAINS,   /* the edge contains the node */
    ENDS_THERE, /* and ends there */
};

/* As oj_ring_edge(), for nodes of either kind. */
static enum passing pass_edge(const struct oj_node *node,
                              const struct oj_edge *e)
{
    int above_a, above_b, side; /* of the node */
    if (e == node->cross[0] || e == node->cross[1])
        return CONTAINS;
    above_a = oj_node_compare_y(node, e->ay);
    above_b = oj_node_compare_y(node, e->by);
    if ((above_a == 0 && oj_node_compare_x(node, e->ax) == 0) ||
        (above_b == 0 && oj_node_compare_x(node, e->bx) == 0))
        return ENDS_THERE;
    if (above_a == 0 && above_b == 0)
        return oj_node_compare_x(node, e->ax) * oj_node_compare_x(node, e->bx) <
                       0
                   ? CONTAINS
                   : PASSES_NOT;
    if ((above_a < 0) == (above_b < 0))
        return PASSES_NOT;
    if (e->ax > node->x + node->error && e->bx > node->x + node->error)
        return PASSES;
    if (e->ax < node->x - node->error && e->bx < node->x - node->error)
        return PASSES_NOT;
    side = oj_node_side(node, e);
    if (side == 0)
        return CONTAINS;
    return (side > 0) == (e->by > e->ay) ? PASSES : PASSES_NOT;
}

/* Casts the ray, and lists the edges that contain the node. */
static oj_status cast(struct oj_figure *f, int figure,
                      const struct oj_node *node, struct oj_node_scratch *s,
                      int *is_vertex, struct oj_error *err)
{
    double low = node->y - node->error, high = node->y + node->error;
    int32_t band = oj_band_of(&f->bands, low);
    int is_all = band != oj_band_of(&f->bands, high);
    int64_t n = is_all ? f->n_edges : oj_band_size(f, band);
    memset(f->is_on, 0, (size_t)f->n_groups);
    memset(f->mark, 0, (size_t)f->n_groups * sizeof *f->mark);
    if (!(node->x - node->error <= f->box.x1))
        return OJ_OK;
    for (int64_t k = 0; k < n; k++)
    {
        const struct oj_edge *e =
            &f->edge[is_all ? k : oj_band_edge(f, band, k)];
        enum passing passing;
        if ((e->ay < low && e->by < low) || (e->ay > high && e->by > high))
            continue;
        passing = pass_edge(node, e);
        if (passing == PASSES && e->kind == OJ_EDGE_RING)
            f->is_on[e->group] ^= 1;
        if (passing == ENDS_THERE)
            *is_vertex = 1;
        if (passing == CONTAINS || passing == ENDS_THERE)
            OJ_TRY(add_rays(s, e, node, figure, err));
    }
    return OJ_OK;
}

/* --- rays by angle -------------------------------------------------------- */

/* -1, 0, 1: r comes before, with, after q, from the angle 0 to 2 pi, which
 * is last. */
static int compare_rays(const struct oj_ray *r, const struct oj_ray *q)
{
    int sign;
    if (r->quadrant != q->quadrant)
        return r->quadrant < q->quadrant ? -1 : 1;
    if (r->quadrant % 2 != 0)
        return 0;
    sign = oj_cross_sign(r->edge, q->edge);
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

/* --- what lies around ----------------------------------------------------- */

/* A figure on the way around the node. */
struct node_round
{
    struct oj_figure *f;
    int32_t n_on;             /* groups that hold the sector at hand */
    int32_t n_always;         /* groups that hold all, and have no edge here */
    int32_t n_groups;         /* groups that have edges here */
    int64_t n_lines, n_rings; /* edges here */
    int64_t n_flat_ends;      /* flat groups' pieces that end here */
    int is_covered;           /* all sectors are interior so far */
};

static void mark_group(struct node_round *r, int32_t group)
{
    r->n_rings++;
    if (r->f->mark[group] == 0)
    {
        r->f->mark[group] = -1;
        r->n_groups++;
    }
}

/* Groups that hold all of the surroundings are those that hold the node; the
 * others with rings at the node are marked. */
static void start_round(struct node_round *r, struct oj_figure *f, int figure,
                        const struct oj_node *node,
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
            mark_group(r, e->group);
    }
    for (int64_t i = 0; i < f->n_dots && node->cross[0] == NULL; i++)
    {
        if (f->dot[i].at.x == node->x && f->dot[i].at.y == node->y)
            mark_group(r, f->dot[i].group);
    }
    for (int32_t g = 0; g < f->n_groups; g++)
    {
        r->n_on += f->is_on[g];
        r->n_always += f->is_on[g] && f->mark[g] == 0;
    }
    r->is_covered = s->n_rays > 0 || r->n_on > 0;
}

/* The place of the rays first .. end, which have one direction, in a figure;
 * what follows them is the sector at hand afterwards.  number is that of the
 * direction, from 1 on. */
static enum oj_matrix_place take_direction(struct node_round *r, int figure,
                                           const struct oj_node_scratch *s,
                                           int64_t first, int64_t end,
                                           int32_t number)
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
    if (before > n_before) /* a group without an edge here */
        return OJ_PLACE_INTERIOR;
    if (n_own > 1 && before > 0 && r->n_on > 0)
        return OJ_PLACE_INTERIOR;
    if (n_own > 0)
        return OJ_PLACE_BOUNDARY;
    return has_line ? OJ_PLACE_INTERIOR : OJ_PLACE_EXTERIOR;
}

static enum oj_matrix_place sector_of(struct node_round *r)
{
    if (r->n_on > 0)
        return OJ_PLACE_INTERIOR;
    r->is_covered = 0;
    return OJ_PLACE_EXTERIOR;
}

/* The node itself. */
static enum oj_matrix_place place_of_node(const struct node_round *r,
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
    n_ends += is_exact && oj_spots_have(f->end, f->n_ends, node->x, node->y);
    if (n_ends % 2 != 0)
        return OJ_PLACE_BOUNDARY;
    if (r->n_lines > 0 || r->n_flat_ends > 0 ||
        (is_exact && oj_spots_have(f->spot, f->n_spots, node->x, node->y)))
        return OJ_PLACE_INTERIOR;
    return OJ_PLACE_EXTERIOR;
}

static void go_round(struct oj_figure *a, struct oj_figure *b,
                     const struct oj_node *node,
                     const struct oj_node_scratch *s, struct oj_matrix *matrix)
{
    struct node_round of_a, of_b;
    int64_t end;
    int32_t number = 0;
    start_round(&of_a, a, 0, node, s);
    start_round(&of_b, b, 1, node, s);
    for (int64_t first = 0; first < s->n_rays; first = end)
    {
        enum oj_matrix_place place;
        end = first + 1;
        while (end < s->n_rays &&
               compare_rays(&s->ray[first], &s->ray[end]) == 0)
            end++;
        number++;
        place = take_direction(&of_a, 0, s, first, end, number);
        oj_matrix_add(matrix, place,
                      take_direction(&of_b, 1, s, first, end, number), 1);
        place = sector_of(&of_a);
        oj_matrix_add(matrix, place, sector_of(&of_b), 2);
    }
    oj_matrix_add(matrix, place_of_node(&of_a, node),
                  place_of_node(&of_b, node), 0);
}

oj_status oj_node_relate(struct oj_figure *a, struct oj_figure *b,
                         const struct oj_node *node, struct oj_node_scratch *s,
                         struct oj_matrix *matrix, int *is_vertex,
                         struct oj_error *err)
{
    *is_vertex = 0;
    s->n_rays = 0;
    OJ_TRY(cast(a, 0, node, s, is_vertex, err));
    OJ_TRY(cast(b, 1, node, s, is_vertex, err));
    if (*is_vertex && node->cross[0] != NULL)
        return OJ_OK;
    sort_rays(s);
    go_round(a, b, node, s, matrix);
    return OJ_OK;
}

static int ends_at(const struct oj_figure *f, const struct oj_node *node)
{
    double low = node->y - node->error, high = node->y + node->error;
    int32_t band = oj_band_of(&f->bands, low);
    int is_all = band != oj_band_of(&f->bands, high);
    int64_t n = is_all ? f->n_edges : oj_band_size(f, band);
    for (int64_t k = 0; k < n; k++)
    {
        const struct oj_edge *e =
            &f->edge[is_all ? k : oj_band_edge(f, band, k)];
        if ((e->ay < low && e->by < low) || (e->ay > high && e->by > high))
            continue;
        if (pass_edge(node, e) == ENDS_THERE)
            return 1;
    }
    return 0;
}

void oj_node_find_vertex(const struct oj_figure *a, const struct oj_figure *b,
                         const struct oj_node *node, int *is_vertex)
{
    *is_vertex = ends_at(a, node) || ends_at(b, node);
}

/* Goes around a point of one figure.  *depth: as of oj_figure_depth(), or, for
 * a group >= 0, 1 where that one holds a sector. */
static oj_status look_around(struct oj_figure *f, double x, double y,
                             int32_t group, struct oj_node_scratch *s,
                             int32_t *depth, struct oj_error *err)
{
    const struct oj_node node = {x, y, 0.0, {NULL, NULL}};
    int32_t n_on = 0;
    int is_vertex;
    s->n_rays = 0;
    OJ_TRY(cast(f, 0, &node, s, &is_vertex, err));
    sort_rays(s);
    for (int32_t g = 0; g < f->n_groups; g++)
        n_on += f->is_on[g] && (group < 0 || g == group);
    *depth = n_on;
    for (int64_t i = 0; i < s->n_rays; i++)
    {
        int32_t g = s->ray[i].edge->group;
        if (s->ray[i].edge->kind == OJ_EDGE_RING && (group < 0 || g == group))
        {
            f->is_on[g] ^= 1;
            n_on += f->is_on[g] ? 1 : -1;
        }
        if (i + 1 == s->n_rays || compare_rays(&s->ray[i], &s->ray[i + 1]) != 0)
            *depth = n_on > *depth ? n_on : *depth;
    }
    return OJ_OK;
}

oj_status oj_figure_depth(struct oj_figure *f, double x, double y,
                          struct oj_node_scratch *s, int32_t *depth,
                          struct oj_error *err)
{
    return look_around(f, x, y, -1, s, depth, err);
}

oj_status oj_group_encloses(struct oj_figure *f, int32_t group, double x,
                            double y, struct oj_node_scratch *s, int *encloses,
                            struct oj_error *err)
{
    int32_t depth = 0;
    OJ_TRY(look_around(f, x, y, group, s, &depth, err));
    *encloses = depth > 0;
    return OJ_OK;
}

void oj_node_scratch_free(struct oj_node_scratch *s)
{
    oj_free(s->ray);
    memset(s, 0, sizeof *s);
}
