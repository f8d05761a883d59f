#include "cpu_pair_distance.h"

#include "../kernels/oj_segment_pair.h"

/* Pairs of leaves between two looks at the cancel flag. */
#define LEAVES_PER_LOOK 256

/* A place in a tree, or all segments of a feature without one. */
struct tree_cursor
{
    int level; /* -1: the list */
    int64_t node;
};

/* One distance on its way. */
struct pair_distance_search
{
    const struct oj_features *a, *b;
    const struct oj_own_tree *tree_a, *tree_b; /* NULL: a list */
    struct oj_pair_scratch *scratch;
    double least; /* so far */
    double cut;   /* what is farther does not matter */
    double cut2;  /* the same for squared distances of boxes */
    double slack; /* what computed distances may be too small */
    int n_leaves;
};

/* Squared boxes' distances that underflow are 0, which looks at more. */
static void set_cut(struct pair_distance_search *s, double cut)
{
    double reach = cut + s->slack;
    s->cut = cut;
    s->cut2 = reach * reach * (1.0 + 1e-12);
    if (!(s->cut2 > 1e-300))
        s->cut2 = 1e-300;
}

static double box_distance2(const struct oj_box *a, const struct oj_box *b)
{
    double dx = oj_larger(oj_larger(a->x0 - b->x1, b->x0 - a->x1), 0.0);
    double dy = oj_larger(oj_larger(a->y0 - b->y1, b->y0 - a->y1), 0.0);
    return dx * dx + dy * dy;
}

static void found(struct pair_distance_search *s, double distance)
{
    if (!(distance < s->least))
        return;
    s->least = distance;
    if (distance < s->cut)
        set_cut(s, distance);
}

static struct oj_box box_of_segment(const struct oj_segment_list *list, int i)
{
    struct oj_box box = {list->ax[i], list->ay[i], list->ax[i], list->ay[i]};
    oj_box_add_point(&box, list->bx[i], list->by[i]);
    return box;
}

static void measure_lists(struct pair_distance_search *s,
                          const struct oj_segment_list *a,
                          const struct oj_segment_list *b)
{
    for (int i = 0; i < a->n; i++)
    {
        struct oj_box box = box_of_segment(a, i);
        if (box_distance2(&box, &b->box) > s->cut2)
            continue;
        s->scratch->n_refined += b->n;
        if (a->ax[i] == a->bx[i] && a->ay[i] == a->by[i])
        {
            for (int j = 0; j < b->n; j++)
                found(s, oj_segment_distance(a->ax[i], a->ay[i], b->ax[j],
                                             b->ay[j], b->bx[j], b->by[j]));
            continue;
        }
        for (int j = 0; j < b->n; j++)
        {
            struct oj_box other = box_of_segment(b, j);
            if (box_distance2(&box, &other) > s->cut2)
                continue;
            found(s, oj_segment_pair_distance(a->ax[i], a->ay[i], a->bx[i],
                                              a->by[i], b->ax[j], b->ay[j],
                                              b->bx[j], b->by[j]));
            if (s->least == 0.0)
                return;
        }
    }
}

static const struct oj_box *box_at(const struct oj_features *features,
                                   const struct oj_own_tree *tree,
                                   const struct oj_segment_list *list,
                                   struct tree_cursor at)
{
    if (at.level < 0)
        return &list->box;
    return &features->node[tree->first_node[at.level] + at.node];
}

/* The segments at a cursor that is a leaf; those of a list are there. */
static void list_leaf(const struct oj_features *features,
                      const struct oj_own_tree *tree, struct tree_cursor at,
                      struct oj_segment_list *list)
{
    int64_t first = at.node * OJ_OWN_FANOUT, end = first + OJ_OWN_FANOUT;
    if (at.level < 0)
        return;
    end = end < tree->n_items ? end : tree->n_items;
    oj_features_list_items(features, tree->first_item + first,
                           tree->first_item + end, list);
}

/* A child on the way down, with its distance. */
struct child_distance
{
    double d2;
    int64_t node;
};

/* The children of at that are within reach of box, the nearest first. */
static int list_children(const struct pair_distance_search *s,
                         const struct oj_features *features,
                         const struct oj_own_tree *tree, struct tree_cursor at,
                         const struct oj_box *box,
                         struct child_distance children[OJ_OWN_FANOUT])
{
    int64_t first = at.node * OJ_OWN_FANOUT;
    int64_t n_level =
        tree->first_node[at.level] - tree->first_node[at.level - 1];
    const struct oj_box *node =
        features->node + tree->first_node[at.level - 1] + first;
    int n = 0;
    for (int64_t i = 0; i < OJ_OWN_FANOUT && first + i < n_level; i++)
    {
        struct child_distance child = {box_distance2(&node[i], box), first + i};
        int place = n;
        if (child.d2 > s->cut2)
            continue;
        for (; place > 0 && children[place - 1].d2 > child.d2; place--)
            children[place] = children[place - 1];
        children[place] = child;
        n++;
    }
    return n;
}

/* Measures what lies below two cursors; the depth is that of both trees. */
static void descend(struct pair_distance_search *s, struct tree_cursor at_a,
                    struct tree_cursor at_b)
{
    struct oj_pair_scratch *scratch = s->scratch;
    const struct oj_box *box_a = box_at(s->a, s->tree_a, &scratch->first, at_a);
    const struct oj_box *box_b =
        box_at(s->b, s->tree_b, &scratch->second, at_b);
    struct child_distance children[OJ_OWN_FANOUT];
    int into_a, n;
    if (at_a.level <= 0 && at_b.level <= 0)
    {
        if (++s->n_leaves % LEAVES_PER_LOOK == 0 &&
            oj_check_cancel(s->scratch->cancel, NULL) != OJ_OK)
        {
            set_cut(s, -1.0);
            s->cut2 = -1.0;
            return;
        }
        list_leaf(s->a, s->tree_a, at_a, &scratch->first);
        list_leaf(s->b, s->tree_b, at_b, &scratch->second);
        measure_lists(s, &scratch->first, &scratch->second);
        return;
    }
    /* the larger box is taken apart */
    into_a = at_b.level <= 0 ||
             (at_a.level > 0 &&
              (box_a->x1 - box_a->x0) + (box_a->y1 - box_a->y0) >
                  (box_b->x1 - box_b->x0) + (box_b->y1 - box_b->y0));
    n = into_a ? list_children(s, s->a, s->tree_a, at_a, box_b, children)
               : list_children(s, s->b, s->tree_b, at_b, box_a, children);
    for (int i = 0; i < n && children[i].d2 <= s->cut2 && s->least > 0.0; i++)
    {
        struct tree_cursor below = {(into_a ? at_a : at_b).level - 1,
                                    children[i].node};
        descend(s, into_a ? below : at_a, into_a ? at_b : below);
    }
}

static const struct oj_own_tree *own_tree(const struct oj_features *features,
                                          int64_t feature)
{
    if (features->own == NULL || features->own[feature] < 0)
        return NULL;
    return &features->tree[features->own[feature]];
}

/* 1 when a vertex of inner lies in a polygon part of outer: the first of each
 * ring is enough, since a ring that is partly inside also meets a ring.  Where
 * no rings meet and two areas have a point in common, a piece of it ends at
 * some ring of one that is inside the other. */
static int holds_some(const struct oj_features *outer, int64_t outside,
                      const struct oj_features *inner, int64_t inside)
{
    const struct oj_flat *flat = inner->flat;
    const struct oj_box *box;
    if (outer->ring_box == NULL)
        return 0;
    if (oj_flat_is_points(flat))
        return oj_features_hold(outer, outside, flat->x[inside],
                                flat->y[inside]);
    box = &outer->box[outside];
    for (int64_t r = flat->ring_offset[flat->part_offset[inside]];
         r < flat->ring_offset[flat->part_offset[inside + 1]]; r++)
    {
        double x = flat->x[flat->vertex_offset[r]];
        double y = flat->y[flat->vertex_offset[r]];
        if (x >= box->x0 && x <= box->x1 && y >= box->y0 && y <= box->y1 &&
            oj_features_hold(outer, outside, x, y))
            return 1;
    }
    return 0;
}

double oj_pair_distance(const struct oj_features *a, int64_t feature_a,
                        const struct oj_features *b, int64_t feature_b,
                        int to_interior, double limit,
                        struct oj_pair_scratch *scratch)
{
    struct oj_box box_a = oj_features_box(a, feature_a);
    struct oj_box box_b = oj_features_box(b, feature_b);
    struct tree_cursor at_a = {-1, 0}, at_b = {-1, 0};
    struct pair_distance_search s = {a,        b,     NULL,     NULL, scratch,
                                     INFINITY, limit, INFINITY, 0.0,  0};
    s.slack =
        2.0 * oj_box_slack(oj_larger(oj_box_size(&box_a), oj_box_size(&box_b)));
    set_cut(&s, limit);
    if (box_distance2(&box_a, &box_b) > s.cut2)
        return INFINITY;
    if (to_interior && oj_box_intersects(&box_a, &box_b) &&
        (holds_some(a, feature_a, b, feature_b) ||
         holds_some(b, feature_b, a, feature_a)))
        return 0.0;
    s.tree_a = own_tree(a, feature_a);
    s.tree_b = own_tree(b, feature_b);
    if (s.tree_a != NULL)
    {
        at_a.level = s.tree_a->n_levels - 1;
        scratch->listed = 0;
    }
    else if (scratch->listed != feature_a + 1)
    {
        oj_features_list(a, feature_a, &scratch->first);
        scratch->listed = feature_a + 1;
    }
    if (s.tree_b != NULL)
        at_b.level = s.tree_b->n_levels - 1;
    else
        oj_features_list(b, feature_b, &scratch->second);
    descend(&s, at_a, at_b);
    return s.least;
}
