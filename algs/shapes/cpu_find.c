#include "cpu_shapes.h"

#include "../../flatten/base/oj_array.h"
#include "../base/cpu_vector.h"

#define STACK (OJ_TREE_LEVELS * OJ_FANOUT)

/* A child can hold what is looked for when its low corner is at most .. and its
 * high corner at least ..: single precision, rounded to the generous side.
 * Rounding keeps order, so that no child is lost. */
struct box_query
{
    float low_x, low_y, high_x, high_y;
};

static float relative(double v, double origin, double scale)
{
    double f = (v - origin) * scale;
    return (float)(f > 1e38 ? 1e38 : f < -1e38 ? -1e38 : f);
}

static float up(double v, double origin, double scale)
{
    float f = relative(v, origin, scale);
    return f + (fabsf(f) * 1.2e-7f + 1e-30f);
}

static float down(double v, double origin, double scale)
{
    float f = relative(v, origin, scale);
    return f - (fabsf(f) * 1.2e-7f + 1e-30f);
}

static struct box_query make_query(const struct oj_tree *t,
                                   enum oj_box_test test,
                                   const struct oj_box *box)
{
    int covers = test == OJ_BOX_COVERS || test == OJ_BOX_EQUALS;
    struct box_query q;
    q.low_x = up(covers ? box->x0 : box->x1, t->origin_x, t->scale);
    q.low_y = up(covers ? box->y0 : box->y1, t->origin_y, t->scale);
    q.high_x = down(covers ? box->x1 : box->x0, t->origin_x, t->scale);
    q.high_y = down(covers ? box->y1 : box->y0, t->origin_y, t->scale);
    return q;
}

static int passes(enum oj_box_test test, const struct oj_box *found,
                  const struct oj_box *asked)
{
    switch (test)
    {
        case OJ_BOX_MEETS:
            return oj_box_intersects(found, asked);
        case OJ_BOX_COVERS:
            return oj_box_covers(found, asked);
        case OJ_BOX_WITHIN:
            return oj_box_covers(asked, found);
        case OJ_BOX_EQUALS:
            return oj_box_covers(found, asked) && oj_box_covers(asked, found);
    }
    return 0;
}

/* Points: to meet a box is to be contained in it. */
static void take_points(const struct oj_shape_side *side, enum oj_box_test test,
                        const struct oj_box *asked, int64_t run,
                        struct oj_found *found)
{
    int64_t i = run * OJ_RUN_POINTS;
    int64_t end = i + OJ_RUN_POINTS < side->n ? i + OJ_RUN_POINTS : side->n;
    const struct oj_ordered_point *p = side->points.point;
    int64_t n = found->n;
    if ((test == OJ_BOX_COVERS || test == OJ_BOX_EQUALS) &&
        (asked->x0 != asked->x1 || asked->y0 != asked->y1))
        return;
    for (; i < end; i++)
    {
        found->at[n] = (int32_t)i;
        n += (asked->x0 <= p[i].x) & (p[i].x <= asked->x1) &
             (asked->y0 <= p[i].y) & (p[i].y <= asked->y1);
    }
    found->n = n;
}

OJ_INLINE void test_children(const struct oj_tree_node *restrict node,
                             const struct box_query *q, int *restrict hit)
{
    float low_x = q->low_x, low_y = q->low_y;
    float high_x = q->high_x, high_y = q->high_y;
    OJ_EIGHT
    {
        hit[c] = (node->x0[c] <= low_x) & (node->y0[c] <= low_y) &
                 (node->x1[c] >= high_x) & (node->y1[c] >= high_y);
    }
}

struct box_visit
{
    int32_t node; /* of the level */
    int32_t level;
};

OJ_CLONES oj_status oj_side_find(const struct oj_shape_side *side,
                                 enum oj_box_test test,
                                 const struct oj_box *box,
                                 struct oj_found *found, struct oj_error *err)
{
    const struct oj_tree *tree = &side->tree;
    struct box_query q;
    struct box_visit stack[STACK];
    int depth = 0;
    found->n = 0;
    if (tree->n_levels == 0 || oj_box_is_empty(box))
        return OJ_OK;
    q = make_query(tree, test, box);
    stack[depth++] = (struct box_visit){0, tree->n_levels - 1};
    while (depth > 0)
    {
        struct box_visit v = stack[--depth];
        const struct oj_tree_node *node =
            &tree->node[tree->level_first[v.level] + v.node];
        int hit[OJ_FANOUT];
        test_children(node, &q, hit);
        if (v.level > 0)
        {
            /* the first child comes off first: places ascend */
            for (int c = OJ_FANOUT - 1; c >= 0; c--)
            {
                stack[depth].node = v.node * OJ_FANOUT + c;
                stack[depth].level = v.level - 1;
                depth += hit[c];
            }
            continue;
        }
        OJ_TRY(oj_reserve(&found->at, found->n,
                          found->n + OJ_FANOUT * OJ_RUN_POINTS,
                          &found->capacity, sizeof *found->at, err));
        for (int c = 0; c < OJ_FANOUT; c++)
        {
            int64_t entry = (int64_t)v.node * OJ_FANOUT + c;
            if (!hit[c])
                continue;
            if (side->shape == NULL)
                take_points(side, test, box, entry, found);
            else
            {
                found->at[found->n] = (int32_t)entry;
                found->n += passes(test, &side->shape[entry].box, box);
            }
        }
    }
    return OJ_OK;
}
