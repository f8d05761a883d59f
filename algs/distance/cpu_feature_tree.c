#include "cpu_feature_tree.h"

#include "../../flatten/base/oj_array.h"
#include "../pairs/oj_pairs.h"

#include <string.h>

/* Middles of the boxes; NaN leaves features out that join nothing. */
static void find_middles(const struct oj_features *features, double *x,
                         double *y)
{
    const struct oj_flat *flat = features->flat;
    for (int64_t f = 0; f < flat->n_features; f++)
    {
        struct oj_box box = oj_features_box(features, f);
        x[f] = y[f] = NAN;
        if (!oj_box_is_empty(&box) && oj_feature_may_pair(flat, f))
        {
            x[f] = 0.5 * box.x0 + 0.5 * box.x1;
            y[f] = 0.5 * box.y0 + 0.5 * box.y1;
        }
    }
}

oj_status oj_features_order(const struct oj_features *features, int n_threads,
                            struct oj_order *order, struct oj_error *err)
{
    int64_t n = features->flat->n_features;
    double *x, *y;
    oj_status status;
    OJ_NEW(x, n, err);
    y = oj_malloc(n, sizeof *y);
    if (y == NULL)
        status = oj_fail_nomem(err, n, sizeof *y);
    else
    {
        find_middles(features, x, y);
        status = oj_order_build(order, n_threads, n, x, y, err);
    }
    oj_free(x);
    oj_free(y);
    if (status == OJ_OK)
        status = oj_order_sort(order, n_threads, NULL, NULL, err);
    return status;
}

static oj_status fill_entries(struct oj_feature_tree *tree,
                              const struct oj_order *order, int n_threads,
                              struct oj_error *err)
{
    const struct oj_features *features = tree->features;
    int64_t n = order->n_points;
    struct oj_box *box;
    oj_status status;
    OJ_NEW(tree->feature, n, err);
    if (oj_flat_is_points(features->flat))
    {
        OJ_NEW(tree->x, n, err);
        OJ_NEW(tree->y, n, err);
    }
    OJ_NEW(box, n, err);
    for (int64_t i = 0; i < n; i++)
    {
        int64_t f = order->point[i].index;
        tree->feature[i] = (int32_t)f;
        box[i] = oj_features_box(features, f);
        if (tree->x != NULL)
        {
            tree->x[i] = box[i].x0;
            tree->y[i] = box[i].y0;
        }
    }
    status = oj_tree_build(&tree->tree, n_threads, n, box, err);
    oj_free(box);
    return status;
}

/* The greatest distances, from the features up to the root. */
static oj_status fill_reach(struct oj_feature_tree *tree, struct oj_error *err)
{
    const struct oj_tree *nodes = &tree->tree;
    const double *max_distance = tree->features->flat->max_distance;
    if (max_distance == NULL)
        return OJ_OK;
    tree->reach2 = oj_calloc(nodes->n_nodes * OJ_FANOUT, sizeof *tree->reach2);
    if (tree->reach2 == NULL)
        return oj_fail_nomem(err, nodes->n_nodes * OJ_FANOUT,
                             sizeof *tree->reach2);
    for (int64_t i = 0; i < nodes->n_entries; i++)
        tree->reach2[i] = oj_tree_reach2(nodes, max_distance[tree->feature[i]]);
    for (int level = 1; level < nodes->n_levels; level++)
    {
        int64_t below = nodes->level_first[level - 1];
        int64_t first = nodes->level_first[level];
        for (int64_t i = 0; i < (first - below) * OJ_FANOUT; i++)
        {
            float *of_node = &tree->reach2[first * OJ_FANOUT + i / OJ_FANOUT];
            float reach2 = tree->reach2[below * OJ_FANOUT + i];
            *of_node = reach2 > *of_node ? reach2 : *of_node;
        }
    }
    return OJ_OK;
}

/* The lowest ranks, from the features up to the root. */
static oj_status fill_ranks(struct oj_feature_tree *tree,
                            const int32_t *tie_rank, struct oj_error *err)
{
    const struct oj_tree *nodes = &tree->tree;
    int64_t n = nodes->n_nodes * OJ_FANOUT;
    OJ_NEW(tree->first_rank, n, err);
    for (int64_t i = 0; i < n; i++)
        tree->first_rank[i] = INT32_MAX;
    for (int64_t i = 0; i < nodes->n_entries; i++)
        tree->first_rank[i] =
            tie_rank != NULL ? tie_rank[tree->feature[i]] : tree->feature[i];
    for (int level = 1; level < nodes->n_levels; level++)
    {
        int64_t below = nodes->level_first[level - 1];
        int64_t first = nodes->level_first[level];
        for (int64_t i = 0; i < (first - below) * OJ_FANOUT; i++)
        {
            int32_t *of_node =
                &tree->first_rank[first * OJ_FANOUT + i / OJ_FANOUT];
            int32_t rank = tree->first_rank[below * OJ_FANOUT + i];
            *of_node = rank < *of_node ? rank : *of_node;
        }
    }
    return OJ_OK;
}

oj_status oj_feature_tree_build(struct oj_feature_tree *tree,
                                const struct oj_features *features,
                                const int32_t *tie_rank, int n_threads,
                                struct oj_error *err)
{
    struct oj_order order;
    oj_status status;
    memset(tree, 0, sizeof *tree);
    memset(&order, 0, sizeof order);
    tree->features = features;
    status = oj_features_order(features, n_threads, &order, err);
    if (status == OJ_OK)
        status = fill_entries(tree, &order, n_threads, err);
    if (status == OJ_OK)
        status = fill_reach(tree, err);
    if (status == OJ_OK)
        status = fill_ranks(tree, tie_rank, err);
    oj_order_free(&order);
    if (status != OJ_OK)
        oj_feature_tree_free(tree);
    return status;
}

int64_t oj_feature_tree_bytes(const struct oj_feature_tree *tree)
{
    int64_t an_entry = (int64_t)sizeof *tree->feature;
    int64_t bytes = oj_tree_bytes(&tree->tree);
    if (tree->x != NULL)
        an_entry += 2 * (int64_t)sizeof *tree->x;
    bytes += tree->tree.n_nodes * OJ_FANOUT * (int64_t)sizeof(int32_t);
    if (tree->reach2 != NULL)
        bytes += tree->tree.n_nodes * OJ_FANOUT * (int64_t)sizeof(float);
    return bytes + tree->tree.n_entries * an_entry;
}

void oj_feature_tree_free(struct oj_feature_tree *tree)
{
    oj_tree_free(&tree->tree);
    oj_free(tree->feature);
    oj_free(tree->x);
    oj_free(tree->y);
    oj_free(tree->reach2);
    oj_free(tree->first_rank);
    memset(tree, 0, sizeof *tree);
}
