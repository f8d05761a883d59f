#include "cpu_features.h"

#include "../../flatten/base/oj_array.h"
#include "../base/cpu_threads.h"
#include "../base/oj_radix.h"
#include "../kernels/oj_morton.h"

#include <string.h>

#define FEATURES_PER_TASK 4096

/* A few large features can be all the work there is. */
#define TREES_PER_TASK 16

/* From how many vertices on a ring gets cells. */
#define LARGE_VERTICES 64

struct features_build
{
    struct oj_features *features;
    int with_interiors;
    int64_t *n_segments; /* [n_features], of features that get a tree */
};

/* --- boxes ---------------------------------------------------------------- */

static struct oj_box box_of_ring(const struct oj_flat *flat, int64_t ring)
{
    struct oj_box box = oj_box_empty();
    for (int64_t v = flat->vertex_offset[ring];
         v < flat->vertex_offset[ring + 1]; v++)
        oj_box_add_point(&box, flat->x[v], flat->y[v]);
    return box;
}

static int64_t first_ring(const struct oj_flat *flat, int64_t feature)
{
    return flat->ring_offset[flat->part_offset[feature]];
}

/* A line of one vertex is taken as that point. */
static int64_t segments_of_ring(const struct oj_flat *flat, int64_t ring)
{
    int64_t n = flat->vertex_offset[ring + 1] - flat->vertex_offset[ring];
    return n > 1 ? n - 1 : n;
}

static void measure_features(int64_t task, int thread, void *user)
{
    struct features_build *b = user;
    struct oj_features *features = b->features;
    const struct oj_flat *flat = features->flat;
    int64_t end = (task + 1) * FEATURES_PER_TASK;
    (void)thread;
    for (int64_t f = task * FEATURES_PER_TASK; f < end && f < flat->n_features;
         f++)
    {
        struct oj_box box = oj_box_empty();
        int64_t n = 0;
        for (int64_t r = first_ring(flat, f); r < first_ring(flat, f + 1); r++)
        {
            struct oj_box of_ring = box_of_ring(flat, r);
            if (features->ring_box != NULL)
                features->ring_box[r] = of_ring;
            oj_box_add_box(&box, &of_ring);
            n += segments_of_ring(flat, r);
        }
        features->box[f] = box;
        b->n_segments[f] = n;
    }
}

/* --- trees ---------------------------------------------------------------- */

/* Where the trees' items and nodes go. */
static oj_status place_trees(struct features_build *b, struct oj_error *err)
{
    struct oj_features *features = b->features;
    int64_t n_items = 0, n_nodes = 0, n = features->flat->n_features;
    for (int64_t f = 0; f < n; f++)
    {
        features->own[f] = -1;
        if (b->n_segments[f] > OJ_FEW_SEGMENTS)
            features->own[f] = (int32_t)features->n_trees++;
    }
    OJ_NEW(features->tree, features->n_trees, err);
    for (int64_t f = 0; f < n; f++)
    {
        struct oj_own_tree *tree;
        int64_t n_level;
        if (features->own[f] < 0)
            continue;
        tree = &features->tree[features->own[f]];
        memset(tree, 0, sizeof *tree);
        tree->first_item = n_items;
        tree->n_items = n_level = b->n_segments[f];
        n_items += n_level;
        do
        {
            n_level = (n_level + OJ_OWN_FANOUT - 1) / OJ_OWN_FANOUT;
            tree->first_node[tree->n_levels++] = n_nodes;
            n_nodes += n_level;
        } while (n_level > 1);
    }
    OJ_NEW(features->item, n_items, err);
    OJ_NEW(features->node, n_nodes, err);
    return OJ_OK;
}

static uint32_t end_of_item(uint32_t item)
{
    return item & OJ_ITEM_POINT ? item & ~OJ_ITEM_POINT : item + 1;
}

static oj_status sort_items(const struct oj_features *features, int64_t feature,
                            int64_t n, uint32_t *item, struct oj_error *err)
{
    const struct oj_flat *flat = features->flat;
    const struct oj_box *box = &features->box[feature];
    double width = box->x1 - box->x0, height = box->y1 - box->y0;
    double scale = 65535.0 / (width > height ? width : height);
    struct oj_keyed *keyed, *sorted;
    OJ_NEW(keyed, 2 * n, err);
    for (int64_t i = 0; i < n; i++)
    {
        uint32_t v = item[i] & ~OJ_ITEM_POINT, w = end_of_item(item[i]);
        double x = 0.5 * flat->x[v] + 0.5 * flat->x[w];
        double y = 0.5 * flat->y[v] + 0.5 * flat->y[w];
        keyed[i].key = oj_morton(oj_morton_column(x, box->x0, scale),
                                 oj_morton_column(y, box->y0, scale));
        keyed[i].value = item[i];
    }
    sorted = oj_radix_sort(keyed, keyed + n, n);
    for (int64_t i = 0; i < n; i++)
        item[i] = (uint32_t)sorted[i].value;
    oj_free(keyed);
    return OJ_OK;
}

static void list_items(const struct oj_flat *flat, int64_t feature,
                       uint32_t *item)
{
    for (int64_t r = first_ring(flat, feature);
         r < first_ring(flat, feature + 1); r++)
    {
        int64_t v = flat->vertex_offset[r];
        int64_t last = flat->vertex_offset[r + 1] - 1;
        if (v == last)
            *item++ = (uint32_t)v | OJ_ITEM_POINT;
        for (; v < last; v++)
            *item++ = (uint32_t)v;
    }
}

static void fill_nodes(struct oj_features *features,
                       const struct oj_own_tree *tree)
{
    const struct oj_flat *flat = features->flat;
    struct oj_box *node = features->node + tree->first_node[0];
    const uint32_t *item = features->item + tree->first_item;
    int64_t n_below = (tree->n_items + OJ_OWN_FANOUT - 1) / OJ_OWN_FANOUT;
    for (int64_t i = 0; i < n_below; i++)
        node[i] = oj_box_empty();
    for (int64_t i = 0; i < tree->n_items; i++)
    {
        uint32_t v = item[i] & ~OJ_ITEM_POINT, w = end_of_item(item[i]);
        oj_box_add_point(&node[i / OJ_OWN_FANOUT], flat->x[v], flat->y[v]);
        oj_box_add_point(&node[i / OJ_OWN_FANOUT], flat->x[w], flat->y[w]);
    }
    for (int level = 1; level < tree->n_levels; level++)
    {
        const struct oj_box *below =
            features->node + tree->first_node[level - 1];
        int64_t n = (n_below + OJ_OWN_FANOUT - 1) / OJ_OWN_FANOUT;
        node = features->node + tree->first_node[level];
        for (int64_t i = 0; i < n; i++)
            node[i] = oj_box_empty();
        for (int64_t i = 0; i < n_below; i++)
            oj_box_add_box(&node[i / OJ_OWN_FANOUT], &below[i]);
        n_below = n;
    }
}

static oj_status fill_tree(int64_t f, int thread, void *user,
                           struct oj_error *err)
{
    struct oj_features *features = user;
    const struct oj_flat *flat = features->flat;
    const struct oj_own_tree *tree;
    uint32_t *item;
    (void)thread;
    if (features->own[f] < 0)
        return OJ_OK;
    tree = &features->tree[features->own[f]];
    item = features->item + tree->first_item;
    list_items(flat, f, item);
    if (first_ring(flat, f + 1) - first_ring(flat, f) > 1)
        OJ_TRY(sort_items(features, f, tree->n_items, item, err));
    fill_nodes(features, tree);
    return OJ_OK;
}

/* --- large rings ---------------------------------------------------------- */

static int is_large(const struct oj_flat *flat, int64_t part, int64_t ring)
{
    return flat->part_kind[part] == OJ_PART_POLYGON &&
           flat->vertex_offset[ring + 1] - flat->vertex_offset[ring] >=
               LARGE_VERTICES;
}

static oj_status list_large_rings(struct oj_features *features,
                                  struct oj_error *err)
{
    const struct oj_flat *flat = features->flat;
    int64_t n = 0;
    for (int64_t p = 0; p < flat->n_parts; p++)
    {
        for (int64_t r = flat->ring_offset[p]; r < flat->ring_offset[p + 1];
             r++)
            n += is_large(flat, p, r);
    }
    if (n == 0)
        return OJ_OK;
    features->large_ring = oj_calloc(n, sizeof *features->large_ring);
    if (features->large_ring == NULL)
        return oj_fail_nomem(err, n, sizeof *features->large_ring);
    OJ_NEW(features->large, flat->n_rings, err);
    for (int64_t p = 0; p < flat->n_parts; p++)
    {
        for (int64_t r = flat->ring_offset[p]; r < flat->ring_offset[p + 1];
             r++)
        {
            features->large[r] = -1;
            if (!is_large(flat, p, r))
                continue;
            features->large_ring[features->n_large_rings].ring = r;
            features->large[r] = (int32_t)features->n_large_rings++;
        }
    }
    return OJ_OK;
}

static oj_status build_grid(int64_t i, int thread, void *user,
                            struct oj_error *err)
{
    struct oj_features *features = user;
    const struct oj_flat *flat = features->flat;
    struct oj_large_ring *large = &features->large_ring[i];
    int64_t first = flat->vertex_offset[large->ring];
    (void)thread;
    return oj_edge_grid_of_ring(&large->grid, flat->x + first, flat->y + first,
                                flat->vertex_offset[large->ring + 1] - first,
                                NULL, err);
}

/* --- all ------------------------------------------------------------------ */

static oj_status build_long_form(struct features_build *b, int n_threads,
                                 struct oj_error *err)
{
    struct oj_features *features = b->features;
    const struct oj_flat *flat = features->flat;
    int64_t n = flat->n_features;
    OJ_NEW(features->box, n, err);
    OJ_NEW(features->own, n, err);
    OJ_NEW(b->n_segments, n, err);
    if (b->with_interiors && (flat->part_kinds & OJ_PART_POLYGON))
    {
        OJ_NEW(features->ring_box, flat->n_rings, err);
        OJ_TRY(list_large_rings(features, err));
    }
    oj_parallel_for(n_threads, (n + FEATURES_PER_TASK - 1) / FEATURES_PER_TASK,
                    measure_features, b);
    OJ_TRY(place_trees(b, err));
    OJ_TRY(oj_parallel_try(n_threads, n, TREES_PER_TASK, fill_tree, features,
                           err));
    return oj_parallel_try(n_threads, features->n_large_rings, 1, build_grid,
                           features, err);
}

oj_status oj_features_build(struct oj_features *features,
                            const struct oj_flat *flat, int with_interiors,
                            int n_threads, struct oj_error *err)
{
    struct features_build b;
    oj_status status;
    memset(features, 0, sizeof *features);
    features->flat = flat;
    if (flat->n_vertices > INT32_MAX)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "%lld vertices at once; at most %d are possible",
                       (long long)flat->n_vertices, INT32_MAX);
    if (oj_flat_is_points(flat))
        return OJ_OK;
    memset(&b, 0, sizeof b);
    b.features = features;
    b.with_interiors = with_interiors;
    status = build_long_form(&b, n_threads, err);
    oj_free(b.n_segments);
    if (status != OJ_OK)
        oj_features_free(features);
    return status;
}

int64_t oj_features_bytes(const struct oj_features *features)
{
    int64_t n = features->flat == NULL ? 0 : features->flat->n_features;
    int64_t bytes = 0;
    if (features->box != NULL)
        bytes += n * (int64_t)(sizeof *features->box + sizeof *features->own);
    if (features->ring_box != NULL)
        bytes += features->flat->n_rings * (int64_t)sizeof *features->ring_box;
    for (int64_t t = 0; t < features->n_trees; t++)
        bytes += features->tree[t].n_items *
                 (int64_t)(sizeof *features->item +
                           sizeof *features->node / OJ_OWN_FANOUT);
    for (int64_t i = 0; i < features->n_large_rings; i++)
        bytes += oj_edge_grid_bytes(&features->large_ring[i].grid);
    return bytes;
}

void oj_features_free(struct oj_features *features)
{
    for (int64_t i = 0; i < features->n_large_rings; i++)
        oj_edge_grid_free(&features->large_ring[i].grid);
    oj_free(features->large_ring);
    oj_free(features->large);
    oj_free(features->box);
    oj_free(features->ring_box);
    oj_free(features->own);
    oj_free(features->tree);
    oj_free(features->item);
    oj_free(features->node);
    memset(features, 0, sizeof *features);
}

/* --- asking --------------------------------------------------------------- */

static void list_add(struct oj_segment_list *list, const struct oj_flat *flat,
                     int64_t v, int64_t w)
{
    int i = list->n++;
    list->ax[i] = flat->x[v];
    list->ay[i] = flat->y[v];
    list->bx[i] = flat->x[w];
    list->by[i] = flat->y[w];
}

void oj_features_list(const struct oj_features *features, int64_t feature,
                      struct oj_segment_list *out)
{
    const struct oj_flat *flat = features->flat;
    out->n = 0;
    out->box = oj_features_box(features, feature);
    if (oj_flat_is_points(flat))
    {
        list_add(out, flat, feature, feature);
        return;
    }
    for (int64_t r = first_ring(flat, feature);
         r < first_ring(flat, feature + 1); r++)
    {
        int64_t v = flat->vertex_offset[r];
        int64_t last = flat->vertex_offset[r + 1] - 1;
        if (v == last)
            list_add(out, flat, v, v);
        for (; v < last; v++)
            list_add(out, flat, v, v + 1);
    }
}

void oj_features_list_items(const struct oj_features *features, int64_t first,
                            int64_t end, struct oj_segment_list *out)
{
    out->n = 0;
    out->box = oj_box_empty();
    for (int64_t i = first; i < end; i++)
    {
        uint32_t item = features->item[i];
        uint32_t v = item & ~OJ_ITEM_POINT, w = end_of_item(item);
        list_add(out, features->flat, v, w);
        oj_box_add_point(&out->box, features->flat->x[v], features->flat->y[v]);
        oj_box_add_point(&out->box, features->flat->x[w], features->flat->y[w]);
    }
}

static enum oj_location locate(const struct oj_features *features, int64_t ring,
                               double x, double y)
{
    const struct oj_flat *flat = features->flat;
    const struct oj_box *box = &features->ring_box[ring];
    int64_t first = flat->vertex_offset[ring];
    if (x < box->x0 || x > box->x1 || y < box->y0 || y > box->y1)
        return OJ_OUTSIDE;
    if (features->large != NULL && features->large[ring] >= 0)
        return oj_edge_grid_locate(
            &features->large_ring[features->large[ring]].grid, x, y);
    return oj_ring_locate(x, y, flat->x + first, flat->y + first,
                          flat->vertex_offset[ring + 1] - first);
}

static int part_holds(const struct oj_features *features, int64_t part,
                      double x, double y)
{
    const struct oj_flat *flat = features->flat;
    int odd = 0;
    for (int64_t ring = flat->ring_offset[part];
         ring < flat->ring_offset[part + 1]; ring++)
    {
        enum oj_location location = locate(features, ring, x, y);
        if (location == OJ_ON_BOUNDARY)
            return 1;
        odd ^= location == OJ_INSIDE;
    }
    return odd;
}

int oj_features_hold(const struct oj_features *features, int64_t feature,
                     double x, double y)
{
    const struct oj_flat *flat = features->flat;
    if (features->ring_box == NULL)
        return 0;
    for (int64_t p = flat->part_offset[feature];
         p < flat->part_offset[feature + 1]; p++)
    {
        if (flat->part_kind[p] == OJ_PART_POLYGON &&
            part_holds(features, p, x, y))
            return 1;
    }
    return 0;
}
