#include "relate_edge_tree.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../foundations/base/cpu_morton_order.h"

#include <string.h>

/* Number of edges in an entry of the tree. */
#define RUN 8

/* --- chains --------------------------------------------------------------- */

static int does_chain_continue(const struct oj_edge *e,
                               const struct oj_edge *next)
{
    return e->bx == next->ax && e->by == next->ay && e->group == next->group &&
           e->kind == next->kind;
}

static oj_status list_chains(struct oj_edge_tree *t, const struct oj_edge *edge,
                             int64_t n, struct oj_error *err)
{
    OJ_ROOM(t->chain, 0, n, t->cap_chain, err);
    OJ_ROOM(t->start, 0, n + 1, t->cap_start, err);
    t->n_chains = 0;
    for (int64_t i = 0; i < n; i++)
    {
        if (i == 0 || !does_chain_continue(&edge[i - 1], &edge[i]))
            t->start[t->n_chains++] = (int32_t)i;
        t->chain[i] = (int32_t)(t->n_chains - 1);
    }
    t->start[t->n_chains] = (int32_t)n;
    return OJ_OK;
}

static int are_chains_of_rings_closed(const struct oj_edge_tree *t,
                                      const struct oj_edge *edge)
{
    for (int64_t c = 0; c < t->n_chains; c++)
    {
        const struct oj_edge *first = &edge[t->start[c]];
        const struct oj_edge *last = &edge[t->start[c + 1] - 1];
        if (first->kind == OJ_EDGE_RING &&
            (first->ax != last->bx || first->ay != last->by))
            return 0;
    }
    return 1;
}

/* Sorts the chains by the middle of their boxes; x, y: scratch [n_chains]. */
static oj_status sort_middles_of_chains(struct oj_edge_tree *t,
                                        const struct oj_edge *edge, double *x,
                                        double *y, struct oj_order *order,
                                        struct oj_error *err)
{
    for (int64_t c = 0; c < t->n_chains; c++)
    {
        struct oj_box box = oj_box_empty();
        for (int64_t i = t->start[c]; i < t->start[c + 1]; i++)
        {
            oj_box_add_point(&box, edge[i].ax, edge[i].ay);
            oj_box_add_point(&box, edge[i].bx, edge[i].by);
        }
        x[c] = 0.5 * box.x0 + 0.5 * box.x1;
        y[c] = 0.5 * box.y0 + 0.5 * box.y1;
    }
    OJ_TRY(oj_order_build(order, 1, t->n_chains, x, y, err));
    OJ_TRY(oj_order_sort(order, 1, NULL, NULL, err));
    for (int64_t i = 0; i < t->n_chains; i++)
        t->position[i] = (int32_t)order->point[i].index;
    return OJ_OK;
}

static oj_status sort_chains(struct oj_edge_tree *t, const struct oj_edge *edge,
                             struct oj_error *err)
{
    double *middle;
    struct oj_order order;
    oj_status status;
    OJ_ROOM(t->position, 0, t->n_chains, t->cap_position, err);
    t->position[0] = 0;
    if (t->n_chains == 1)
        return OJ_OK;
    OJ_NEW(middle, 2 * t->n_chains, err);
    memset(&order, 0, sizeof order);
    status = sort_middles_of_chains(t, edge, middle, middle + t->n_chains,
                                    &order, err);
    oj_order_free(&order);
    oj_free(middle);
    return status;
}

/* --- the tree ------------------------------------------------------------- */

static oj_status build_tree_of_runs(struct oj_edge_tree *t,
                                    const struct oj_edge *edge, int64_t n,
                                    struct oj_error *err)
{
    const int64_t n_runs = (n + RUN - 1) / RUN;
    struct oj_box *box;
    oj_status status;
    OJ_NEW(box, n_runs, err);
    for (int64_t run = 0; run < n_runs; run++)
        box[run] = oj_box_empty();
    for (int64_t i = 0; i < n; i++)
    {
        const struct oj_edge *e = &edge[t->order[i]];
        oj_box_add_point(&box[i / RUN], e->ax, e->ay);
        oj_box_add_point(&box[i / RUN], e->bx, e->by);
    }
    status = oj_tree_build(&t->tree, 1, n_runs, box, err);
    oj_free(box);
    return status;
}

oj_status oj_edge_tree_build(struct oj_edge_tree *t, const struct oj_edge *edge,
                             int64_t n, struct oj_error *err)
{
    int64_t n_listed = 0;
    t->n = 0;
    oj_tree_free(&t->tree);
    OJ_TRY(list_chains(t, edge, n, err));
    if (!are_chains_of_rings_closed(t, edge))
        return OJ_OK;
    OJ_TRY(sort_chains(t, edge, err));
    OJ_ROOM(t->order, 0, n, t->cap_order, err);
    for (int64_t c = 0; c < t->n_chains; c++)
    {
        const int32_t chain = t->position[c];
        for (int32_t i = t->start[chain]; i < t->start[chain + 1]; i++)
            t->order[n_listed++] = i;
    }
    OJ_TRY(build_tree_of_runs(t, edge, n, err));
    t->n = n;
    return OJ_OK;
}

void oj_edge_tree_free(struct oj_edge_tree *t)
{
    oj_tree_free(&t->tree);
    oj_free(t->order);
    oj_free(t->chain);
    oj_free(t->start);
    oj_free(t->position);
    memset(t, 0, sizeof *t);
}

/* --- searches ------------------------------------------------------------- */

/* A search in progress. */
struct ray_search
{
    const struct oj_edge_tree *t;
    float q[4]; /* the box in coordinates of the tree, rounded outward */
    int with_right;
    struct oj_edges_found *found;
};

static oj_status add_part_of_chain(struct oj_edges_found *found, int32_t first,
                                   int32_t last, struct oj_error *err)
{
    OJ_ROOM(found->right, found->n_right, found->n_right + 1, found->cap_right,
            err);
    found->right[found->n_right++] = (struct oj_chain_part){first, last};
    return OJ_OK;
}

/* Adds to s->found the parts of chains that the edges at the positions first ..
 * end - 1 of t->order form. Whole chains are left out: the ends of a closed
 * chain are equal, so a ray crosses it an even number of times. */
static oj_status add_edges_to_the_right(const struct ray_search *s,
                                        int64_t first, int64_t end,
                                        struct oj_error *err)
{
    const struct oj_edge_tree *t = s->t;
    const int32_t i = t->order[first], k = t->order[end - 1];
    const int32_t chain = t->chain[i], chain_of_last = t->chain[k];
    if (chain == chain_of_last)
        return add_part_of_chain(s->found, i, k, err);
    if (i != t->start[chain])
        OJ_TRY(add_part_of_chain(s->found, i, t->start[chain + 1] - 1, err));
    if (k != t->start[chain_of_last + 1] - 1)
        OJ_TRY(add_part_of_chain(s->found, t->start[chain_of_last], k, err));
    return OJ_OK;
}

static oj_status add_edges_of_run(const struct ray_search *s, int64_t first,
                                  int64_t end, struct oj_error *err)
{
    struct oj_edges_found *found = s->found;
    OJ_ROOM(found->edge, found->n, found->n + RUN, found->capacity, err);
    for (int64_t i = first; i < end; i++)
        found->edge[found->n++] = s->t->order[i];
    return OJ_OK;
}

static oj_status search_node(const struct ray_search *s, int level, int64_t at,
                             struct oj_error *err)
{
    const struct oj_tree *tree = &s->t->tree;
    const struct oj_tree_node *node =
        tree->node + tree->level_first[level] + at;
    const float *q = s->q;
    for (int c = 0; c < OJ_FANOUT; c++)
    {
        const int64_t child = at * OJ_FANOUT + c;
        const int64_t edges = (int64_t)RUN << 3 * level;
        int64_t end = (child + 1) * edges;
        if (child * edges >= s->t->n)
            break;
        if (!(node->y0[c] <= q[3] && node->y1[c] >= q[1] &&
              node->x1[c] >= q[0]))
            continue;
        end = end < s->t->n ? end : s->t->n;
        if (node->x0[c] > q[2])
        {
            if (s->with_right)
                OJ_TRY(add_edges_to_the_right(s, child * edges, end, err));
        }
        else if (level > 0)
            OJ_TRY(search_node(s, level - 1, child, err));
        else
            OJ_TRY(add_edges_of_run(s, child * edges, end, err));
    }
    return OJ_OK;
}

oj_status oj_edge_tree_find(const struct oj_edge_tree *t,
                            const struct oj_box *box, int with_right,
                            struct oj_edges_found *found, struct oj_error *err)
{
    const struct oj_tree *tree = &t->tree;
    const double x = tree->origin_x, y = tree->origin_y, scale = tree->scale;
    const struct ray_search search = {
        t,
        {oj_tree_round_down(box->x0 - tree->slack, x, scale),
         oj_tree_round_down(box->y0 - tree->slack, y, scale),
         oj_tree_round_up(box->x1 + tree->slack, x, scale),
         oj_tree_round_up(box->y1 + tree->slack, y, scale)},
        with_right,
        found};
    found->n = found->n_right = 0;
    return search_node(&search, tree->n_levels - 1, 0, err);
}

void oj_edges_found_free(struct oj_edges_found *found)
{
    oj_free(found->edge);
    oj_free(found->right);
    memset(found, 0, sizeof *found);
}
