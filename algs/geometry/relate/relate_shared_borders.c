#include "relate_shared_borders.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../foundations/base/cpu_lane_loops.h"
#include "../../foundations/kernels/oj_segment_intersection.h"
#include "relate_feature_edges.h"

#include <string.h>

/* Bits of the state of an edge. */
enum edge_state
{
    STARTS_AT_NODE = 1, /* the edge's first vertex is a vertex of the other
                           polygon */
    ENDS_AT_NODE = 2,
    IS_SHARED = 4 /* the edge is also an edge of the other polygon */
};

enum contact_kind
{
    SHARED_FORWARD,  /* both polygons have the edge, and their rings traverse it
                        in equal directions */
    SHARED_BACKWARD, /* both polygons have the edge, but their rings traverse it
                        in opposite directions */
    COMMON_VERTEX,
    BOXES_MEET
};

/* oj_border_is_simple() does not compare more than this number of edges. */
#define MOST_EDGES_COMPARED 2048

/* --- edges of a window ---------------------------------------------------- */

OJ_INLINE struct oj_edge border_edge(const struct oj_border *border, int64_t i)
{
    const double *x = border->x + border->edge[i];
    const double *y = border->y + border->edge[i];
    return (struct oj_edge){x[0], y[0], x[1], y[1], 0, OJ_EDGE_RING};
}

OJ_INLINE struct oj_box box_of_border_edge(const struct oj_border *border,
                                           int64_t i)
{
    const double *x = border->x + border->edge[i];
    const double *y = border->y + border->edge[i];
    return oj_box_of_segment(x[0], y[0], x[1], y[1]);
}

OJ_INLINE int edge_meets_window(const double *x, const double *y,
                                const struct oj_box *w)
{
    return ((x[0] <= w->x1) | (x[1] <= w->x1)) &
           ((x[0] >= w->x0) | (x[1] >= w->x0)) &
           ((y[0] <= w->y1) | (y[1] <= w->y1)) &
           ((y[0] >= w->y0) | (y[1] >= w->y0));
}

/* Lists in out the edges from i to i + 7 whose boxes intersect the window,
 * except edges before `least`, and returns their number. out must have room for
 * eight. */
OJ_INLINE int64_t list_of_eight_edges_in_window(const double *x,
                                                const double *y, int64_t i,
                                                int64_t least,
                                                const struct oj_box *window,
                                                int32_t *restrict out)
{
    const struct oj_box w = *window;
    int64_t hit[OJ_LANES], any = 0, n = 0;
    OJ_EIGHT
    {
        hit[c] = edge_meets_window(x + i + c, y + i + c, &w) & (i + c >= least);
    }
    OJ_EIGHT
    {
        any |= hit[c];
    }
    for (int c = 0; any && c < OJ_LANES; c++)
    {
        out[n] = (int32_t)(i + c);
        n += hit[c];
    }
    return n;
}

/* Lists in out the edges from first to end - 1 whose boxes intersect the
 * window, and returns their number. out must have room for all of them and 7
 * more. */
OJ_CLONES static int64_t list_edges_in_window(const double *restrict x,
                                              const double *restrict y,
                                              int64_t first, int64_t end,
                                              const struct oj_box *window,
                                              int32_t *restrict out)
{
    int64_t n = 0, i = first;
    for (; i + OJ_LANES <= end; i += OJ_LANES)
        n += list_of_eight_edges_in_window(x, y, i, i, window, out + n);
    if (i < end && end - first >= OJ_LANES)
        return n + list_of_eight_edges_in_window(x, y, end - OJ_LANES, i,
                                                 window, out + n);
    for (; i < end; i++)
    {
        out[n] = (int32_t)i;
        n += edge_meets_window(x + i, y + i, window);
    }
    return n;
}

/* --- boxes in groups of eight --------------------------------------------- */

static void set_boxes_empty(struct oj_border_boxes *boxes)
{
    for (int c = 0; c < OJ_BORDER_BOXES; c++)
    {
        boxes->x0[c] = boxes->y0[c] = INFINITY;
        boxes->x1[c] = boxes->y1[c] = -INFINITY;
    }
}

static void set_box(struct oj_border_boxes *boxes, int c,
                    const struct oj_box *box)
{
    boxes->x0[c] = box->x0;
    boxes->y0[c] = box->y0;
    boxes->x1[c] = box->x1;
    boxes->y1[c] = box->y1;
}

static struct oj_box box_around_boxes(const struct oj_border_boxes *boxes)
{
    struct oj_box box = oj_box_empty();
    for (int c = 0; c < OJ_BORDER_BOXES; c++)
    {
        const struct oj_box one = {boxes->x0[c], boxes->y0[c], boxes->x1[c],
                                   boxes->y1[c]};
        oj_box_add_box(&box, &one);
    }
    return box;
}

/* Minimum number of boxes for a second level of boxes, which does not pay for
 * fewer boxes. */
#define LEAST_GROUPED 5

static int64_t count_groups_of_eight(int64_t n)
{
    return (n + OJ_BORDER_BOXES - 1) / OJ_BORDER_BOXES;
}

static oj_status fill_border_boxes(struct oj_border *border,
                                   struct oj_error *err)
{
    int64_t n = count_groups_of_eight(border->n);
    OJ_ROOM(border->boxes, 0, n, border->cap_boxes, err);
    OJ_ROOM(border->near, 0, border->n, border->cap_near, err);
    if (n > 0)
        set_boxes_empty(&border->boxes[n - 1]);
    for (int64_t i = 0; i < border->n; i++)
    {
        const struct oj_box box = box_of_border_edge(border, i);
        set_box(&border->boxes[i / OJ_BORDER_BOXES], (int)(i % OJ_BORDER_BOXES),
                &box);
    }
    border->n_groups = n < LEAST_GROUPED ? 0 : count_groups_of_eight(n);
    OJ_ROOM(border->groups, 0, border->n_groups, border->cap_groups, err);
    if (border->n_groups > 0)
        set_boxes_empty(&border->groups[border->n_groups - 1]);
    for (int64_t i = 0; i < n && border->n_groups > 0; i++)
    {
        const struct oj_box box = box_around_boxes(&border->boxes[i]);
        set_box(&border->groups[i / OJ_BORDER_BOXES],
                (int)(i % OJ_BORDER_BOXES), &box);
    }
    return OJ_OK;
}

/* Returns a mask of the eight boxes: bit c is set if box c intersects `box`. */
OJ_INLINE unsigned
mask_of_intersecting_boxes(const struct oj_border_boxes *boxes,
                           const struct oj_box *box)
{
    static const int64_t bit[OJ_BORDER_BOXES] = {1, 2, 4, 8, 16, 32, 64, 128};
    const double x0 = box->x0, y0 = box->y0, x1 = box->x1, y1 = box->y1;
    int64_t bits = 0;
    OJ_EIGHT
    {
        int hit = (boxes->x0[c] <= x1) & (x0 <= boxes->x1[c]) &
                  (boxes->y0[c] <= y1) & (y0 <= boxes->y1[c]);
        bits |= hit ? bit[c] : 0;
    }
    return (unsigned)bits;
}

/* Lists in out the edges from 8 * eight to 8 * eight + 7 whose boxes intersect
 * `box`, except edges before `least`, and returns their number. */
OJ_INLINE int64_t list_edges_of_group(const struct oj_border *border,
                                      int64_t eight, const struct oj_box *box,
                                      int64_t least, int32_t *restrict out)
{
    unsigned hits = mask_of_intersecting_boxes(&border->boxes[eight], box);
    int64_t n = 0, first = eight * OJ_BORDER_BOXES;
    for (; hits != 0; hits &= hits - 1)
    {
        int64_t k = first + __builtin_ctz(hits);
        out[n] = (int32_t)k;
        n += k >= least;
    }
    return n;
}

/* Lists in out, in ascending order, the edges from `least` on whose boxes
 * intersect `box`, and returns their number. out must have room for all. */
OJ_INLINE int64_t list_edges_near(const struct oj_border *border,
                                  const struct oj_box *box, int64_t least,
                                  int32_t *restrict out)
{
    int64_t n_boxes = count_groups_of_eight(border->n), n = 0;
    int64_t eight = least / OJ_BORDER_BOXES;
    if (border->n_groups == 0)
    {
        for (; eight < n_boxes; eight++)
            n += list_edges_of_group(border, eight, box, least, out + n);
        return n;
    }
    for (int64_t g = eight / OJ_BORDER_BOXES; g < border->n_groups; g++)
    {
        unsigned eights = mask_of_intersecting_boxes(&border->groups[g], box);
        for (; eights != 0; eights &= eights - 1)
        {
            int64_t k = g * OJ_BORDER_BOXES + __builtin_ctz(eights);
            if (k >= eight)
                n += list_edges_of_group(border, k, box, least, out + n);
        }
    }
    return n;
}

/* --- the border of a polygon ---------------------------------------------- */

/* Lists the edges of shape whose boxes intersect the window, ring by ring. */
static oj_status list_border_edges_in_window(struct oj_border *border,
                                             const struct oj_shape *shape,
                                             const struct oj_box *window,
                                             struct oj_error *err)
{
    border->shape = shape;
    border->x = shape->flat->x + shape->first_vertex;
    border->y = shape->flat->y + shape->first_vertex;
    border->n = 0;
    border->left_ring = -1;
    OJ_ROOM(border->edge, 0, shape->n_vertices + OJ_LANES, border->capacity,
            err);
    for (int64_t r = 0; r < shape->n_rings; r++)
    {
        int64_t n, first = oj_shape_ring_vertices(shape, r, &n);
        first -= shape->first_vertex;
        border->n +=
            list_edges_in_window(border->x, border->y, first, first + n - 1,
                                 window, border->edge + border->n);
    }
    return OJ_OK;
}

/* Returns 1 if the edges from p to q and from p to r have equal directions, so
 * that they overlap. */
static int do_edges_overlap_at_start(double px, double py, double qx, double qy,
                                     double rx, double ry)
{
    const struct oj_edge e = {px, py, qx, qy, 0, OJ_EDGE_RING};
    if ((qx > px) != (rx > px) || (qx < px) != (rx < px) ||
        (qy > py) != (ry > py) || (qy < py) != (ry < py))
        return 0;
    return oj_edge_side(&e, rx, ry) == 0;
}

/* Precondition: the boxes of the edges intersect. */
static enum oj_contact contact_of_edges(const struct oj_edge *e,
                                        const struct oj_edge *f)
{
    return oj_segments_contact(e->ax, e->ay, e->bx, e->by, f->ax, f->ay, f->bx,
                               f->by);
}

/* --- whether the edges of a polygon touch only at successive vertices ----- */

/* Returns 1 if two edges of one polygon have no common point, or only a vertex
 * that joins successive edges. Precondition: their boxes intersect. */
static int do_edges_touch_only_in_sequence(const struct oj_edge *e,
                                           const struct oj_edge *f)
{
    if (e->ax == f->bx && e->ay == f->by)
        return !(e->bx == f->ax && e->by == f->ay) &&
               !do_edges_overlap_at_start(e->ax, e->ay, e->bx, e->by, f->ax,
                                          f->ay);
    return contact_of_edges(e, f) == OJ_APART;
}

/* Returns 1 if a ring is closed, has no repeated vertices, and no edge goes
 * back over the edge before it. */
static int is_ring_closed_without_spikes(const struct oj_shape *shape,
                                         int64_t ring)
{
    int64_t n, first = oj_shape_ring_vertices(shape, ring, &n);
    const double *x = shape->flat->x + first, *y = shape->flat->y + first;
    if (n < 4 || x[0] != x[n - 1] || y[0] != y[n - 1])
        return 0;
    for (int64_t v = 0; v + 1 < n; v++)
    {
        int64_t after = v + 2 < n ? v + 2 : 1;
        if ((x[v] == x[v + 1] && y[v] == y[v + 1]) ||
            do_edges_overlap_at_start(x[v + 1], y[v + 1], x[v], y[v], x[after],
                                      y[after]))
            return 0;
    }
    return 1;
}

OJ_CLONES static int are_edges_of_border_apart(const struct oj_border *border)
{
    const int32_t *near = border->near;
    for (int64_t i = 0; i < border->n; i++)
    {
        const struct oj_edge e = border_edge(border, i);
        const struct oj_box box = box_of_border_edge(border, i);
        /* 1: edge i + 1 begins where edge i ends. The pair needs no test here:
         * is_ring_closed_without_spikes() has tested all successive edges. */
        int follows =
            i + 1 < border->n && border->edge[i] + 1 == border->edge[i + 1];
        int64_t n =
            list_edges_near(border, &box, i + 1 + follows, border->near);
        for (int64_t k = 0; k < n; k++)
        {
            const struct oj_edge f = border_edge(border, near[k]);
            if (!do_edges_touch_only_in_sequence(&e, &f))
                return 0;
        }
    }
    return 1;
}

oj_status oj_border_is_simple(const struct oj_shape *shape,
                              struct oj_border *border, int *is,
                              struct oj_error *err)
{
    *is = 0;
    if (!oj_border_supports_shape(shape) ||
        shape->n_vertices > MOST_EDGES_COMPARED)
        return OJ_OK;
    for (int64_t r = 0; r < shape->n_rings; r++)
    {
        if (!is_ring_closed_without_spikes(shape, r))
            return OJ_OK;
    }
    OJ_TRY(list_border_edges_in_window(border, shape, &shape->box, err));
    OJ_TRY(fill_border_boxes(border, err));
    *is = are_edges_of_border_apart(border);
    return OJ_OK;
}

/* --- where two borders may intersect -------------------------------------- */

static uint8_t edge_states_of_equal_ends(int a_is_start, int a_is_end)
{
    return (uint8_t)((a_is_start ? STARTS_AT_NODE : 0) |
                     (a_is_end ? ENDS_AT_NODE : 0));
}

/* Compares the ends of e and f. Returns the kind of contact, and records equal
 * ends in the states of both edges. */
OJ_INLINE enum contact_kind mark_equal_vertices(const struct oj_edge *e,
                                                const struct oj_edge *f,
                                                uint8_t *of_e, uint8_t *of_f)
{
    int aa = (e->ax == f->ax) & (e->ay == f->ay);
    int ab = (e->ax == f->bx) & (e->ay == f->by);
    int ba = (e->bx == f->ax) & (e->by == f->ay);
    int bb = (e->bx == f->bx) & (e->by == f->by);
    if (!(aa | ab | ba | bb))
        return BOXES_MEET;
    if (!((aa & bb) | (ab & ba)))
    {
        *of_e |= edge_states_of_equal_ends(aa | ab, ba | bb);
        *of_f |= edge_states_of_equal_ends(aa | ba, ab | bb);
        return COMMON_VERTEX;
    }
    *of_e = *of_f = STARTS_AT_NODE | ENDS_AT_NODE | IS_SHARED;
    return aa ? SHARED_FORWARD : SHARED_BACKWARD;
}

OJ_INLINE void add_edge_contact(struct oj_border_pair *p, int64_t i, int64_t k,
                                enum contact_kind kind)
{
    struct oj_border_contact *contact = &p->contact[p->n_contacts++];
    contact->edge[0] = (int32_t)i;
    contact->edge[1] = (int32_t)k;
    contact->kind = (uint8_t)kind;
}

/* Called for edge i of the first border and edge k of the second, which are
 * equal and marked. Also marks the equal edges that follow as shared, and adds
 * their contacts. step: 1 if the second ring passes the edges in the direction
 * of the first ring, -1 if in the opposite direction. */
OJ_INLINE void follow_shared_edges(struct oj_border_pair *p, int64_t i,
                                   int64_t k, int64_t step)
{
    struct oj_border *a = &p->border[0], *b = &p->border[1];
    for (i++, k += step; i < a->n && k >= 0 && k < b->n; i++, k += step)
    {
        const struct oj_edge e = border_edge(a, i), f = border_edge(b, k);
        int is_shared =
            step > 0
                ? e.ax == f.ax && e.ay == f.ay && e.bx == f.bx && e.by == f.by
                : e.ax == f.bx && e.ay == f.by && e.bx == f.ax && e.by == f.ay;
        if (!is_shared || (a->state[i] & IS_SHARED))
            return;
        a->state[i] = b->state[k] = STARTS_AT_NODE | ENDS_AT_NODE | IS_SHARED;
        add_edge_contact(p, i, k, step > 0 ? SHARED_FORWARD : SHARED_BACKWARD);
    }
}

/* Lists the contacts of the first border's edges from *next on, until the list
 * is full, and advances *next. Skips edges that follow_shared_edges() has
 * marked: these touch other edges of the second border only in their ends, and
 * such a contact is found from the neighbour that has this end. */
OJ_CLONES static void list_edge_contacts(struct oj_border_pair *p,
                                         int64_t *next)
{
    struct oj_border *a = &p->border[0], *b = &p->border[1];
    int64_t i = *next;
    for (; i < a->n && p->n_contacts + a->n + b->n <= p->cap_contacts; i++)
    {
        const struct oj_edge e = border_edge(a, i);
        const struct oj_box box = box_of_border_edge(a, i);
        int64_t n;
        if (a->state[i] & IS_SHARED)
            continue;
        n = list_edges_near(b, &box, 0, b->near);
        for (int64_t k = 0; k < n; k++)
        {
            int32_t at = b->near[k];
            const struct oj_edge f = border_edge(b, at);
            enum contact_kind kind =
                mark_equal_vertices(&e, &f, &a->state[i], &b->state[at]);
            add_edge_contact(p, i, at, kind);
            if (kind < COMMON_VERTEX)
                follow_shared_edges(p, i, at, kind == SHARED_FORWARD ? 1 : -1);
        }
    }
    *next = i;
}

static oj_status clear_edge_states(struct oj_border *border,
                                   struct oj_error *err)
{
    OJ_ROOM(border->state, 0, border->n, border->cap_state, err);
    if (border->n > 0)
        memset(border->state, 0, (size_t)border->n);
    return OJ_OK;
}

/* Limits of the search: the mean number of contacts per edge of both borders,
 * and the product of their numbers of edges. Neighbours in a coverage have few
 * contacts; pairs above a limit are left to oj_shapes_relate(). */
#define MOST_CONTACTS_PER_EDGE 16
#define MOST_PAIRS_COMPARED (INT64_C(1) << 24)

static oj_status find_contacts(struct oj_border_pair *p, struct oj_error *err)
{
    struct oj_border *a = &p->border[0], *b = &p->border[1];
    int64_t n_both = a->n + b->n;
    OJ_TRY(clear_edge_states(a, err));
    OJ_TRY(clear_edge_states(b, err));
    p->is_complete = a->n == 0 || b->n <= MOST_PAIRS_COMPARED / a->n;
    if (!p->is_complete)
        return OJ_OK;
    OJ_TRY(fill_border_boxes(b, err));
    for (int64_t next = 0; next < a->n && p->is_complete;)
    {
        OJ_ROOM(p->contact, p->n_contacts, p->n_contacts + 2 * n_both,
                p->cap_contacts, err);
        list_edge_contacts(p, &next);
        p->is_complete = p->n_contacts <= MOST_CONTACTS_PER_EDGE * n_both;
    }
    return OJ_OK;
}

oj_status oj_borders_find_contacts(const struct oj_shape *a,
                                   const struct oj_shape *b,
                                   struct oj_border_pair *p,
                                   struct oj_error *err)
{
    p->window = (struct oj_box){
        oj_larger(a->box.x0, b->box.x0), oj_larger(a->box.y0, b->box.y0),
        -oj_larger(-a->box.x1, -b->box.x1), -oj_larger(-a->box.y1, -b->box.y1)};
    p->n_contacts = 0;
    OJ_TRY(list_border_edges_in_window(&p->border[0], a, &p->window, err));
    OJ_TRY(list_border_edges_in_window(&p->border[1], b, &p->window, err));
    return find_contacts(p, err);
}

/* --- on which side the interior is ---------------------------------------- */

/* What the contacts and chains of two borders show, from which the matrix
 * follows. A chain is a run of edges between two nodes (points in which the
 * borders touch). */
struct border_facts
{
    int has_crossing, has_node, has_shared;
    int has_opening;      /* 1: a vertex of one border lies inside of an edge of
                             the other border */
    int runs_along;       /* 1: edges overlap without being equal */
    int shares_interior;  /* 1: at some shared edge both interiors are on one
                             side */
    int shares_line_only; /* 1: at some shared edge the interiors are on
                             opposite sides */
    int is_inside[2], is_outside[2]; /* [border] 1: some edges of this border
                                        are inside (or outside) the other
                                        polygon */
};

/* Returns the index of the ring that contains vertex v of the shape. */
static int64_t ring_of_vertex(const struct oj_shape *shape, int64_t v)
{
    int64_t n, ring = 0;
    while (ring + 1 < shape->n_rings &&
           oj_shape_ring_vertices(shape, ring + 1, &n) - shape->first_vertex <=
               v)
        ring++;
    return ring;
}

/* Returns 1 if the ring is a hole of its part. */
static int is_ring_a_hole(const struct oj_shape *shape, int64_t ring)
{
    const struct oj_flat *flat = shape->flat;
    for (int64_t p = shape->first_part; p < shape->first_part + shape->n_parts;
         p++)
    {
        if (flat->ring_offset[p] == flat->ring_offset[shape->first_part] + ring)
            return 0;
    }
    return 1;
}

/* Returns 1 if the interior is on the left side of the ring, decided by the
 * turn at the ring's lexicographically smallest vertex. Precondition: the shape
 * is valid, and its edges touch only at successive vertices. */
static int is_interior_left(const struct oj_shape *shape, int64_t ring)
{
    int64_t n, first = oj_shape_ring_vertices(shape, ring, &n), least = 0;
    const double *x = shape->flat->x + first, *y = shape->flat->y + first;
    struct oj_edge into;
    int64_t before;
    for (int64_t v = 1; v + 1 < n; v++)
    {
        if (x[v] < x[least] || (x[v] == x[least] && y[v] < y[least]))
            least = v;
    }
    before = least > 0 ? least - 1 : n - 2;
    into = (struct oj_edge){x[before], y[before], x[least],
                            y[least],  0,         OJ_EDGE_RING};
    return (oj_edge_side(&into, x[least + 1], y[least + 1]) > 0) !=
           is_ring_a_hole(shape, ring);
}

static int cached_interior_left_of_edge(struct oj_border *border, int64_t i)
{
    int64_t ring = ring_of_vertex(border->shape, border->edge[i]);
    if (ring != border->left_ring)
        border->is_left = is_interior_left(border->shape, ring);
    border->left_ring = ring;
    return border->is_left;
}

/* --- pairs of edges ------------------------------------------------------- */

/* Returns 1 if two edges overlap from their common vertex on. Precondition: the
 * edges have the contact COMMON_VERTEX. */
static int do_edges_overlap_at_common_vertex(const struct oj_edge *e,
                                             const struct oj_edge *f)
{
    int e_ends = (e->bx == f->ax && e->by == f->ay) ||
                 (e->bx == f->bx && e->by == f->by);
    int f_ends = e_ends ? e->bx == f->bx && e->by == f->by
                        : e->ax == f->bx && e->ay == f->by;
    return do_edges_overlap_at_start(
        e_ends ? e->bx : e->ax, e_ends ? e->by : e->ay, e_ends ? e->ax : e->bx,
        e_ends ? e->ay : e->by, f_ends ? f->ax : f->bx, f_ends ? f->ay : f->by);
}

/* Records a contact of two unshared edges. Collinear edges without a common
 * vertex overlap, because their boxes intersect. */
static void record_unshared_contact(const struct oj_border_pair *p,
                                    const struct oj_border_contact *contact,
                                    struct border_facts *facts)
{
    const struct oj_edge e = border_edge(&p->border[0], contact->edge[0]);
    const struct oj_edge f = border_edge(&p->border[1], contact->edge[1]);
    enum oj_contact of_edges;
    if (contact->kind == COMMON_VERTEX)
    {
        facts->runs_along |= do_edges_overlap_at_common_vertex(&e, &f);
        return;
    }
    of_edges = contact_of_edges(&e, &f);
    facts->has_crossing |= of_edges == OJ_CROSSING;
    facts->has_opening |= of_edges == OJ_TOUCHING;
    facts->runs_along |= of_edges == OJ_TOUCHING &&
                         oj_edge_side(&e, f.ax, f.ay) == 0 &&
                         oj_edge_side(&e, f.bx, f.by) == 0;
}

static int has_one_ring(const struct oj_shape *shape)
{
    return shape->n_rings == 1;
}

/* Records on which sides of a shared edge the interiors are. Not needed for two
 * polygons of one ring each (see add_interior_entries()). */
static void add_sides_of_shared_edge(struct oj_border_pair *p,
                                     const struct oj_border_contact *contact,
                                     struct border_facts *facts)
{
    int is_one_side;
    if (has_one_ring(p->border[0].shape) && has_one_ring(p->border[1].shape))
        return;
    is_one_side =
        (contact->kind == SHARED_FORWARD) ==
        (cached_interior_left_of_edge(&p->border[0], contact->edge[0]) ==
         cached_interior_left_of_edge(&p->border[1], contact->edge[1]));
    facts->shares_interior |= is_one_side;
    facts->shares_line_only |= !is_one_side;
}

/* Records all contacts. An unshared edge touches a shared edge only in
 * vertices, because the edges of each polygon touch only at successive
 * vertices. */
static void record_contacts(struct oj_border_pair *p,
                            struct border_facts *facts)
{
    for (int64_t i = 0; i < p->n_contacts; i++)
    {
        const struct oj_border_contact *contact = &p->contact[i];
        int is_shared = (p->border[0].state[contact->edge[0]] |
                         p->border[1].state[contact->edge[1]]) &
                        IS_SHARED;
        facts->has_node |= contact->kind != BOXES_MEET;
        if (contact->kind < COMMON_VERTEX)
        {
            facts->has_shared = 1;
            add_sides_of_shared_edge(p, contact, facts);
        }
        else if (!is_shared)
            record_unshared_contact(p, contact, facts);
    }
}

/* --- chains between nodes ------------------------------------------------- */

/* The listed edges of one ring: edges first .. end - 1 of a border. */
struct border_ring
{
    const struct oj_border *border;
    struct oj_border *other;
    const struct oj_box *window;
    int64_t first, end;
    int is_closed; /* 1: all edges of the ring are listed, so the first edge
                      follows the last */
};

/* Returns 1 if an end of edge i is outside of the window, and so outside of the
 * other polygon. */
OJ_INLINE int does_edge_leave_window(const struct border_ring *ring, int64_t i)
{
    const struct oj_edge e = border_edge(ring->border, i);
    const struct oj_box *w = ring->window;
    return !(oj_box_contains_point(w, e.ax, e.ay) &
             oj_box_contains_point(w, e.bx, e.by));
}

/* Returns 1 if edge i is the first of a chain: the edge before it is not
 * listed, or the borders touch in the vertex between them. */
OJ_INLINE int does_edge_start_chain(const struct border_ring *ring, int64_t i)
{
    const int32_t *edge = ring->border->edge;
    if (ring->border->state[i] & STARTS_AT_NODE)
        return 1;
    return i == ring->first ? !ring->is_closed : edge[i - 1] + 1 != edge[i];
}

/* Returns 1 if the direction from vertex p of a ring to point d leads into the
 * left side of the ring. u is the vertex before p, v the vertex after p. */
static int is_direction_left_of_ring(const double p[2], const double u[2],
                                     const double v[2], const double d[2])
{
    const struct oj_edge to_u = {p[0], p[1], u[0], u[1], 0, OJ_EDGE_RING};
    const struct oj_edge to_v = {p[0], p[1], v[0], v[1], 0, OJ_EDGE_RING};
    int d_of_u = oj_edge_side(&to_u, d[0], d[1]);
    int d_of_v = oj_edge_side(&to_v, d[0], d[1]);
    if (oj_edge_side(&to_v, u[0], u[1]) > 0) /* the left side is less than 180
                                                degrees wide */
        return d_of_v > 0 && d_of_u < 0;
    return !(d_of_u > 0 && d_of_v < 0);
}

/* Returns the location, in the other polygon, of edge i near its start.
 * Precondition: the start is a vertex of the other polygon, and the edge is not
 * shared. The edge is inside if its direction is on the interior's side of the
 * two edges that the other polygon has at this vertex. */
static enum oj_location locate_edge_at_node(const struct border_ring *ring,
                                            int64_t i)
{
    struct oj_border *other = ring->other;
    const struct oj_edge e = border_edge(ring->border, i);
    const double p[2] = {e.ax, e.ay}, d[2] = {e.bx, e.by};
    double u[2] = {NAN, NAN}, v[2] = {NAN, NAN};
    int64_t at = -1;
    for (int64_t k = 0; k < other->n; k++)
    {
        const struct oj_edge f = border_edge(other, k);
        if (f.bx == p[0] && f.by == p[1])
        {
            u[0] = f.ax;
            u[1] = f.ay;
        }
        if (f.ax == p[0] && f.ay == p[1])
        {
            v[0] = f.bx;
            v[1] = f.by;
            at = k;
        }
    }
    return at >= 0 && is_direction_left_of_ring(p, u, v, d) ==
                          cached_interior_left_of_edge(other, at)
               ? OJ_INSIDE
               : OJ_OUTSIDE;
}

static int64_t next_edge_of_ring(const struct border_ring *ring, int64_t i)
{
    return i + 1 < ring->end ? i + 1 : ring->first;
}

/* Returns the location, in the other polygon, of the chain that begins with
 * edge `first`. A ring without nodes is one chain. leaves: 1 if some vertex of
 * the chain is outside of the window, and so outside of the other polygon. */
static enum oj_location locate_chain(const struct border_ring *ring,
                                     int64_t first, int leaves)
{
    struct oj_edge e;
    if (leaves)
        return OJ_OUTSIDE;
    if (ring->border->state[first] & STARTS_AT_NODE)
        return locate_edge_at_node(ring, first);
    e = border_edge(ring->border, first);
    return oj_shape_locate(ring->other->shape, e.bx, e.by);
}

/* Splits a ring of border `of` into chains and records the location of each
 * chain whose edges are not shared. */
static void record_chains_of_ring(const struct border_ring *ring, int of,
                                  struct border_facts *facts)
{
    int64_t count = ring->end - ring->first, first = ring->first;
    while (first < ring->end && !does_edge_start_chain(ring, first))
        first++;
    if (first == ring->end)
        first = ring->first;
    for (int64_t done = 0, n; done < count; done += n)
    {
        int64_t i = first;
        int leaves = 0;
        n = 0;
        do
        {
            leaves |= does_edge_leave_window(ring, i);
            i = next_edge_of_ring(ring, i);
            n++;
        } while (done + n < count && !does_edge_start_chain(ring, i));
        if (!(ring->border->state[first] & IS_SHARED))
        {
            enum oj_location location = locate_chain(ring, first, leaves);
            facts->is_inside[of] |= location == OJ_INSIDE;
            facts->is_outside[of] |= location == OJ_OUTSIDE;
        }
        first = i;
    }
}

static void record_border_locations(struct oj_border_pair *p, int of,
                                    struct border_facts *facts)
{
    const struct oj_border *border = &p->border[of];
    const struct oj_shape *shape = border->shape;
    struct border_ring ring = {border, &p->border[1 - of], &p->window, 0, 0, 0};
    for (int64_t r = 0; r < shape->n_rings; r++)
    {
        int64_t n, first = oj_shape_ring_vertices(shape, r, &n);
        int64_t last;
        first -= shape->first_vertex;
        last = first + n - 2;
        ring.first = ring.end;
        while (ring.end < border->n && border->edge[ring.end] <= last)
            ring.end++;
        facts->is_outside[of] |= ring.end - ring.first < n - 1;
        if (ring.end == ring.first)
            continue;
        ring.is_closed = border->edge[ring.first] == first &&
                         border->edge[ring.end - 1] == last;
        record_chains_of_ring(&ring, of, facts);
    }
}

/* --- the matrix ----------------------------------------------------------- */

/* Adds the entries for the interiors, if no edges cross.
 *
 *  An area that is common, or that belongs to one polygon alone, is bounded by
 *  shared edges (interiors on one side, or on opposite sides) or by chains
 *  inside or outside of the other polygon.
 *
 *  For two single rings, chains suffice. Suppose that no chain is inside, so
 *  that only shared edges can bound a common area. These edges form a closed
 *  ring, which is all of both rings. So the rings are equal if no chain of the
 *  first ring is outside; otherwise the interiors are disjoint. */
static void add_interior_entries(const struct oj_border_pair *p,
                                 const struct border_facts *f,
                                 struct oj_matrix *matrix)
{
    int are_single =
        has_one_ring(p->border[0].shape) && has_one_ring(p->border[1].shape);
    int is_any_inside = f->is_inside[0] || f->is_inside[1];
    int are_equal = are_single && !is_any_inside && !f->is_outside[0];
    if (is_any_inside || are_equal || f->shares_interior)
        oj_matrix_add(matrix, OJ_PLACE_INTERIOR, OJ_PLACE_INTERIOR, 2);
    if (f->is_outside[0] || f->is_inside[1] || f->shares_line_only)
        oj_matrix_add(matrix, OJ_PLACE_INTERIOR, OJ_PLACE_EXTERIOR, 2);
    if (f->is_outside[1] || f->is_inside[0] || f->shares_line_only)
        oj_matrix_add(matrix, OJ_PLACE_EXTERIOR, OJ_PLACE_INTERIOR, 2);
}

static void add_boundary_entries(const struct border_facts *f,
                                 struct oj_matrix *matrix)
{
    if (f->is_inside[0])
        oj_matrix_add(matrix, OJ_PLACE_BOUNDARY, OJ_PLACE_INTERIOR, 1);
    if (f->is_inside[1])
        oj_matrix_add(matrix, OJ_PLACE_INTERIOR, OJ_PLACE_BOUNDARY, 1);
    if (f->is_outside[0])
        oj_matrix_add(matrix, OJ_PLACE_BOUNDARY, OJ_PLACE_EXTERIOR, 1);
    if (f->is_outside[1])
        oj_matrix_add(matrix, OJ_PLACE_EXTERIOR, OJ_PLACE_BOUNDARY, 1);
    if (f->has_node)
        oj_matrix_add(matrix, OJ_PLACE_BOUNDARY, OJ_PLACE_BOUNDARY, 0);
    if (f->has_shared)
        oj_matrix_add(matrix, OJ_PLACE_BOUNDARY, OJ_PLACE_BOUNDARY, 1);
}

/* Returns 1 if some chains of the second border are known to be outside of the
 * first polygon and none inside, so that they need not be located. Tested only
 * for single rings A and B: no chain of A is inside of B, and A's box does not
 * cover B's. (If a chain of B were inside of A, it would bound a common area
 * that no chain of A bounds. So all of B would be inside of A, and A's box
 * would cover B's.) */
static int has_second_ring_outside_chains_only(const struct oj_border_pair *p,
                                               const struct border_facts *facts)
{
    const struct oj_shape *a = p->border[0].shape, *b = p->border[1].shape;
    return has_one_ring(a) && has_one_ring(b) && !facts->is_inside[0] &&
           !oj_box_covers(&a->box, &b->box);
}

int oj_borders_relate(struct oj_border_pair *p, struct oj_matrix *matrix)
{
    struct border_facts facts;
    if (!p->is_complete)
        return 0;
    memset(&facts, 0, sizeof facts);
    record_contacts(p, &facts);
    if (facts.has_crossing) /* points near a crossing have all nine combinations
                               of interior, boundary and exterior */
    {
        memcpy(matrix->at, "212101212", 10);
        if (facts.has_shared || facts.runs_along)
            oj_matrix_add(matrix, OJ_PLACE_BOUNDARY, OJ_PLACE_BOUNDARY, 1);
        return 1;
    }
    if (facts.has_opening || facts.runs_along)
        return 0;
    record_border_locations(p, 0, &facts);
    if (has_second_ring_outside_chains_only(p, &facts))
        facts.is_outside[1] = 1;
    else
        record_border_locations(p, 1, &facts);
    *matrix = oj_matrix_empty();
    add_interior_entries(p, &facts, matrix);
    add_boundary_entries(&facts, matrix);
    return 1;
}

void oj_border_free(struct oj_border *border)
{
    oj_free(border->edge);
    oj_free(border->state);
    oj_free(border->boxes);
    oj_free(border->groups);
    oj_free(border->near);
    memset(border, 0, sizeof *border);
}

void oj_border_pair_free(struct oj_border_pair *p)
{
    oj_border_free(&p->border[0]);
    oj_border_free(&p->border[1]);
    oj_free(p->contact);
    memset(p, 0, sizeof *p);
}
