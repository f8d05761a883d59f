#include "cpu_packed_tree.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_compare.h"
#include "../../../flatten/base/oj_parallel.h"

#include <stdlib.h>
#include <string.h>

#define NODES_AT_ONCE 1024
#define N_SAMPLES 1024

struct tree_build
{
    struct oj_tree *tree;
    const struct oj_box *box;
};

/* Chooses the origin (median of the box centres, robust against outliers), the
 * scale (a power of two for which the extent is about a million units) and the
 * slack. */
static void choose_origin_and_scale(struct oj_tree *tree, int64_t n,
                                    const struct oj_box *box)
{
    double x[N_SAMPLES], y[N_SAMPLES];
    double extent = 0.0, largest = 0.0;
    int n_samples = n < N_SAMPLES ? (int)n : N_SAMPLES;
    int exponent;
    for (int i = 0; i < n_samples; i++)
    {
        int64_t at = (int64_t)((double)n / n_samples * i);
        x[i] = 0.5 * (box[at].x0 + box[at].x1);
        y[i] = 0.5 * (box[at].y0 + box[at].y1);
    }
    qsort(x, (size_t)n_samples, sizeof *x, oj_compare_doubles);
    qsort(y, (size_t)n_samples, sizeof *y, oj_compare_doubles);
    tree->origin_x = x[n_samples / 2];
    tree->origin_y = y[n_samples / 2];
    for (int64_t i = 0; i < n; i++)
    {
        double left = tree->origin_x - box[i].x0;
        double right = box[i].x1 - tree->origin_x;
        double below = tree->origin_y - box[i].y0;
        double above = box[i].y1 - tree->origin_y;
        left = left > right ? left : right;
        below = below > above ? below : above;
        left = left > below ? left : below;
        extent = left > extent ? left : extent;
    }
    if (!isfinite(extent)) /* the difference of two coordinates overflowed */
    {
        tree->origin_x = tree->origin_y = extent = 0.0;
        for (int64_t i = 0; i < n; i++)
            extent = oj_box_is_empty(&box[i])
                         ? extent
                         : fmax(extent, oj_box_largest_coordinate(&box[i]));
    }
    largest = extent + fmax(fabs(tree->origin_x), fabs(tree->origin_y));
    /* 64 ulp of the largest coordinate cover two errors: the rounding of the
     * shift to the origin, and the error of double-precision distances to
     * segments as long as the extent. OJ_LEAST_DISTANCE covers underflow. */
    tree->slack = 64.0 * 2.220446049250313e-16 * largest + OJ_LEAST_DISTANCE;
    tree->scale = 1.0;
    if (extent > 0.0 && isfinite(extent))
    {
        frexp(extent, &exponent);
        exponent = 20 - exponent;
        /* A tiny extent would need an exponent for which ldexp() overflows. */
        exponent = exponent > 900 ? 900 : exponent;
        tree->scale = ldexp(1.0, exponent);
    }
}

static void set_child_box_empty(struct oj_tree_node *node, int c)
{
    node->x0[c] = node->y0[c] = INFINITY;
    node->x1[c] = node->y1[c] = -INFINITY;
}

static void fill_leaf_nodes(int64_t first, int64_t end, void *user)
{
    const struct tree_build *b = user;
    struct oj_tree *tree = b->tree;
    double ox = tree->origin_x, oy = tree->origin_y, scale = tree->scale;
    for (int64_t i = first; i < end; i++)
    {
        struct oj_tree_node *node = tree->node + i;
        for (int c = 0; c < OJ_FANOUT; c++)
        {
            int64_t entry = i * OJ_FANOUT + c;
            if (entry >= tree->n_entries)
            {
                set_child_box_empty(node, c);
                continue;
            }
            node->x0[c] = oj_tree_round_down(b->box[entry].x0, ox, scale);
            node->y0[c] = oj_tree_round_down(b->box[entry].y0, oy, scale);
            node->x1[c] = oj_tree_round_up(b->box[entry].x1, ox, scale);
            node->y1[c] = oj_tree_round_up(b->box[entry].y1, oy, scale);
        }
    }
}

static void fill_inner_level_boxes(struct oj_tree *tree, int level,
                                   int64_t n_below)
{
    const struct oj_tree_node *below =
        tree->node + tree->level_first[level - 1];
    struct oj_tree_node *node = tree->node + tree->level_first[level];
    int64_t n_nodes = (n_below + OJ_FANOUT - 1) / OJ_FANOUT;
    for (int64_t i = 0; i < n_nodes; i++)
    {
        for (int c = 0; c < OJ_FANOUT; c++)
        {
            const struct oj_tree_node *from = below + i * OJ_FANOUT + c;
            set_child_box_empty(node + i, c);
            if (i * OJ_FANOUT + c >= n_below)
                continue;
            for (int g = 0; g < OJ_FANOUT; g++)
            {
                if (from->x0[g] < node[i].x0[c])
                    node[i].x0[c] = from->x0[g];
                if (from->y0[g] < node[i].y0[c])
                    node[i].y0[c] = from->y0[g];
                if (from->x1[g] > node[i].x1[c])
                    node[i].x1[c] = from->x1[g];
                if (from->y1[g] > node[i].y1[c])
                    node[i].y1[c] = from->y1[g];
            }
        }
    }
}

oj_status oj_tree_build(struct oj_tree *tree, int n_threads, int64_t n,
                        const struct oj_box *box, struct oj_error *err)
{
    struct tree_build b = {tree, box};
    int64_t n_level = n;
    memset(tree, 0, sizeof *tree);
    tree->n_entries = n;
    tree->scale = 1.0;
    if (n == 0)
        return OJ_OK;
    do
    {
        n_level = (n_level + OJ_FANOUT - 1) / OJ_FANOUT;
        tree->level_first[tree->n_levels++] = tree->n_nodes;
        tree->n_nodes += n_level;
    } while (n_level > 1);
    OJ_NEW(tree->node, tree->n_nodes, err);
    choose_origin_and_scale(tree, n, box);
    n_level = (n + OJ_FANOUT - 1) / OJ_FANOUT;
    oj_parallel_slices(n_threads, n_level, NODES_AT_ONCE, fill_leaf_nodes, &b);
    for (int level = 1; level < tree->n_levels; level++)
    {
        fill_inner_level_boxes(tree, level, n_level);
        n_level = (n_level + OJ_FANOUT - 1) / OJ_FANOUT;
    }
    return OJ_OK;
}

int64_t oj_tree_bytes(const struct oj_tree *tree)
{
    return tree->n_nodes * (int64_t)sizeof *tree->node;
}

void oj_tree_free(struct oj_tree *tree)
{
    oj_free(tree->node);
    memset(tree, 0, sizeof *tree);
}
