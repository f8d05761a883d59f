#include "cpu_pair_distance.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../foundations/base/oj_radix_sort.h"
#include "../../foundations/kernels/oj_morton.h"
#include "../../foundations/kernels/oj_segment_pair.h"

#include <string.h>

#define FEATURES_AT_ONCE 4096

/* Features per task of building trees; few, because a few large features can be
 * most of the work. */
#define TREES_PER_TASK 16

/* Number of pairs of leaves between two polls of the cancel flag. */
#define LEAVES_PER_POLL 256

struct features_build
{
    struct oj_features *features;
    int with_interiors;
    int64_t *n_segments; /* [n_features] number of segments of each feature */
};

/* --- boxes ---------------------------------------------------------------- */

static struct oj_box box_of_ring(const struct oj_flat *flat, int64_t ring)
{
    int64_t first = flat->vertex_offset[ring];
    return oj_box_of_points(flat->x + first, flat->y + first,
                            flat->vertex_offset[ring + 1] - first);
}

static int64_t first_ring(const struct oj_flat *flat, int64_t feature)
{
    return flat->ring_offset[flat->part_offset[feature]];
}

/* Returns the number of segments of a ring or line. A line of one vertex counts
 * as one segment, like a point. */
static int64_t count_segments_of_ring(const struct oj_flat *flat, int64_t ring)
{
    int64_t n = flat->vertex_offset[ring + 1] - flat->vertex_offset[ring];
    return n > 1 ? n - 1 : n;
}

static void make_boxes_and_count_segments(int64_t first, int64_t end,
                                          void *user)
{
    struct features_build *b = user;
    struct oj_features *features = b->features;
    const struct oj_flat *flat = features->flat;
    for (int64_t f = first; f < end; f++)
    {
        struct oj_box box = oj_box_empty();
        int64_t n = 0;
        for (int64_t r = first_ring(flat, f); r < first_ring(flat, f + 1); r++)
        {
            struct oj_box of_ring = box_of_ring(flat, r);
            if (features->ring_box != NULL)
                features->ring_box[r] = of_ring;
            oj_box_add_box(&box, &of_ring);
            n += count_segments_of_ring(flat, r);
        }
        features->box[f] = box;
        b->n_segments[f] = n;
    }
}

/* --- trees ---------------------------------------------------------------- */

/* Gives a tree to each feature with more than OJ_FEW_SEGMENTS segments, and to
 * each tree a range of the items and nodes, which are allocated. */
static oj_status reserve_places_of_segment_trees(struct features_build *b,
                                                 struct oj_error *err)
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
        struct oj_feature_tree *tree;
        if (features->own[f] < 0)
            continue;
        tree = &features->tree[features->own[f]];
        tree->first_item = n_items;
        tree->n_items = b->n_segments[f];
        oj_box_levels_make(&tree->levels,
                           (tree->n_items + OJ_FEATURE_TREE_FANOUT - 1) /
                               OJ_FEATURE_TREE_FANOUT,
                           n_nodes);
        n_items += tree->n_items;
        n_nodes += oj_box_levels_count(&tree->levels);
    }
    OJ_NEW(features->item, n_items, err);
    OJ_NEW(features->node, n_nodes, err);
    return OJ_OK;
}

static uint32_t end_vertex_of_item(uint32_t item)
{
    return item & OJ_ITEM_POINT ? item & ~OJ_ITEM_POINT : item + 1;
}

static oj_status
sort_segments_in_morton_order(const struct oj_features *features,
                              int64_t feature, int64_t n, uint32_t *item,
                              struct oj_error *err)
{
    const struct oj_flat *flat = features->flat;
    const struct oj_box *box = &features->box[feature];
    double width = box->x1 - box->x0, height = box->y1 - box->y0;
    double scale = 65535.0 / (width > height ? width : height);
    struct oj_keyed *keyed, *sorted;
    OJ_NEW(keyed, 2 * n, err);
    for (int64_t i = 0; i < n; i++)
    {
        uint32_t v = item[i] & ~OJ_ITEM_POINT, w = end_vertex_of_item(item[i]);
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

static void list_feature_segments(const struct oj_flat *flat, int64_t feature,
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
                       const struct oj_feature_tree *tree)
{
    const struct oj_flat *flat = features->flat;
    struct oj_box *node = features->node + tree->levels.first[0];
    const uint32_t *item = features->item + tree->first_item;
    for (int64_t i = 0; i < tree->n_items; i++)
    {
        struct oj_box *box = &node[i / OJ_FEATURE_TREE_FANOUT];
        uint32_t v = item[i] & ~OJ_ITEM_POINT, w = end_vertex_of_item(item[i]);
        if (i % OJ_FEATURE_TREE_FANOUT == 0)
            *box = oj_box_empty();
        oj_box_add_point(box, flat->x[v], flat->y[v]);
        oj_box_add_point(box, flat->x[w], flat->y[w]);
    }
    oj_box_levels_fill(&tree->levels, 2, (double *)features->node);
}

static oj_status fill_tree(int64_t f, int thread, void *user,
                           struct oj_error *err)
{
    struct oj_features *features = user;
    const struct oj_flat *flat = features->flat;
    const struct oj_feature_tree *tree;
    uint32_t *item;
    (void)thread;
    if (features->own[f] < 0)
        return OJ_OK;
    tree = &features->tree[features->own[f]];
    item = features->item + tree->first_item;
    list_feature_segments(flat, f, item);
    if (first_ring(flat, f + 1) - first_ring(flat, f) > 1)
        OJ_TRY(sort_segments_in_morton_order(features, f, tree->n_items, item,
                                             err));
    fill_nodes(features, tree);
    return OJ_OK;
}

/* --- building ------------------------------------------------------------- */

static oj_status build_boxes_and_trees(struct features_build *b, int n_threads,
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
        OJ_TRY(oj_ring_grids_build(&features->grids, flat, n_threads, err));
    }
    oj_parallel_slices(n_threads, n, FEATURES_AT_ONCE,
                       make_boxes_and_count_segments, b);
    OJ_TRY(reserve_places_of_segment_trees(b, err));
    return oj_parallel_try(n_threads, n, TREES_PER_TASK, fill_tree, features,
                           err);
}

oj_status oj_distance_features_build(struct oj_features *features,
                                     const struct oj_flat *flat,
                                     int with_interiors, int n_threads,
                                     struct oj_error *err)
{
    struct features_build b;
    oj_status status;
    memset(features, 0, sizeof *features);
    features->flat = flat;
    if (flat->n_vertices > INT32_MAX)
        return oj_fail(
            err, OJ_ERR_LIMIT,
            "%lld vertices in a layer or batch; at most %d are possible: use "
            "smaller batches (batch), or tiles (memory)",
            (long long)flat->n_vertices, INT32_MAX);
    if (oj_flat_is_points(flat))
        return OJ_OK;
    memset(&b, 0, sizeof b);
    b.features = features;
    b.with_interiors = with_interiors;
    status = build_boxes_and_trees(&b, n_threads, err);
    oj_free(b.n_segments);
    if (status != OJ_OK)
        oj_distance_features_free(features);
    return status;
}

int64_t oj_distance_features_bytes(const struct oj_features *features)
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
                           sizeof *features->node / OJ_FEATURE_TREE_FANOUT);
    return bytes + oj_ring_grids_bytes(&features->grids);
}

void oj_distance_features_free(struct oj_features *features)
{
    oj_ring_grids_free(&features->grids);
    oj_free(features->box);
    oj_free(features->ring_box);
    oj_free(features->own);
    oj_free(features->tree);
    oj_free(features->item);
    oj_free(features->node);
    memset(features, 0, sizeof *features);
}

/* --- a few segments ------------------------------------------------------- */

static void append_segment(struct oj_segment_list *list,
                           const struct oj_flat *flat, int64_t v, int64_t w)
{
    int i = list->n++;
    list->ax[i] = flat->x[v];
    list->ay[i] = flat->y[v];
    list->bx[i] = flat->x[w];
    list->by[i] = flat->y[w];
}

/* Lists the segments of a feature that has no tree. */
static void collect_feature_segments(const struct oj_features *features,
                                     int64_t feature,
                                     struct oj_segment_list *out)
{
    const struct oj_flat *flat = features->flat;
    out->n = 0;
    out->box = oj_distance_features_box(features, feature);
    if (oj_flat_is_points(flat))
    {
        append_segment(out, flat, feature, feature);
        return;
    }
    for (int64_t r = first_ring(flat, feature);
         r < first_ring(flat, feature + 1); r++)
    {
        int64_t v = flat->vertex_offset[r];
        int64_t last = flat->vertex_offset[r + 1] - 1;
        if (v == last)
            append_segment(out, flat, v, v);
        for (; v < last; v++)
            append_segment(out, flat, v, v + 1);
    }
}

/* Lists the segments features->item[first] to item[end - 1], at most
 * OJ_FEW_SEGMENTS. */
static void collect_tree_segments(const struct oj_features *features,
                                  int64_t first, int64_t end,
                                  struct oj_segment_list *out)
{
    out->n = 0;
    out->box = oj_box_empty();
    for (int64_t i = first; i < end; i++)
    {
        uint32_t item = features->item[i];
        uint32_t v = item & ~OJ_ITEM_POINT, w = end_vertex_of_item(item);
        append_segment(out, features->flat, v, w);
        oj_box_add_point(&out->box, features->flat->x[v], features->flat->y[v]);
        oj_box_add_point(&out->box, features->flat->x[w], features->flat->y[w]);
    }
}

/* --- points in polygons --------------------------------------------------- */

static enum oj_location locate_in_ring(const struct oj_features *features,
                                       int64_t ring, double x, double y)
{
    const struct oj_flat *flat = features->flat;
    const struct oj_box *box = &features->ring_box[ring];
    int64_t first = flat->vertex_offset[ring];
    if (!oj_box_contains_point(box, x, y))
        return OJ_OUTSIDE;
    if (features->grids.of_ring[ring] >= 0)
        return oj_edge_grid_locate(
            &features->grids.grid[features->grids.of_ring[ring]], x, y);
    return oj_ring_locate(x, y, flat->x + first, flat->y + first,
                          flat->vertex_offset[ring + 1] - first);
}

static int does_part_contain_point(const struct oj_features *features,
                                   int64_t part, double x, double y)
{
    const struct oj_flat *flat = features->flat;
    int odd = 0;
    for (int64_t ring = flat->ring_offset[part];
         ring < flat->ring_offset[part + 1]; ring++)
    {
        enum oj_location location = locate_in_ring(features, ring, x, y);
        if (location == OJ_ON_BOUNDARY)
            return 1;
        odd ^= location == OJ_INSIDE;
    }
    return odd;
}

/* Returns 1 if a polygon part of the feature contains the point: it is on a
 * ring of the part, or inside an odd number of its rings. */
static int does_feature_contain_point(const struct oj_features *features,
                                      int64_t feature, double x, double y)
{
    const struct oj_flat *flat = features->flat;
    if (features->ring_box == NULL)
        return 0;
    for (int64_t p = flat->part_offset[feature];
         p < flat->part_offset[feature + 1]; p++)
    {
        if (flat->part_kind[p] == OJ_PART_POLYGON &&
            does_part_contain_point(features, p, x, y))
            return 1;
    }
    return 0;
}

/* --- the distance of two features ----------------------------------------- */

/* State of the computation of one distance. */
struct pair_distance_search
{
    const struct oj_features *a, *b;
    const struct oj_feature_tree *tree_a, *tree_b; /* NULL if a feature has no
                                                      tree: its segments are
                                                      listed in scratch */
    struct oj_pair_scratch *scratch;
    double least; /* minimum distance so far */
    double cut;   /* distances above this are not needed */
    double cut2;  /* boxes whose squared distance is greater are skipped */
    double slack; /* upper bound of the error by which a computed distance can
                     be too small */
    int n_leaves;
};

/* Sets cut and the limit cut2 for boxes. cut2 is at least 1e-300: the square of
 * a small cut could underflow and exclude boxes that are near enough. */
static void set_distance_cutoff(struct pair_distance_search *s, double cut)
{
    double reach = cut + s->slack;
    s->cut = cut;
    s->cut2 = reach * reach * (1.0 + 1e-12);
    if (!(s->cut2 > 1e-300))
        s->cut2 = 1e-300;
}

static double box_distance2(const struct oj_box *a, const struct oj_box *b)
{
    return oj_box_squared_distance(2, (const double *)a, (const double *)b);
}

static void lower_least_distance(struct pair_distance_search *s,
                                 double distance)
{
    if (!(distance < s->least))
        return;
    s->least = distance;
    if (distance < s->cut)
        set_distance_cutoff(s, distance);
}

static struct oj_box box_of_segment(const struct oj_segment_list *list, int i)
{
    return oj_box_of_segment(list->ax[i], list->ay[i], list->bx[i],
                             list->by[i]);
}

static void min_distance_of_segment_lists(struct pair_distance_search *s,
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
                lower_least_distance(
                    s, oj_segment_distance(a->ax[i], a->ay[i], b->ax[j],
                                           b->ay[j], b->bx[j], b->by[j]));
            continue;
        }
        for (int j = 0; j < b->n; j++)
        {
            struct oj_box other = box_of_segment(b, j);
            if (box_distance2(&box, &other) > s->cut2)
                continue;
            lower_least_distance(
                s, oj_segment_pair_distance(a->ax[i], a->ay[i], a->bx[i],
                                            a->by[i], b->ax[j], b->ay[j],
                                            b->bx[j], b->by[j]));
            if (s->least == 0.0)
                return;
        }
    }
}

static const struct oj_box *box_of_tree_node_or_list(
    const struct oj_features *features, const struct oj_feature_tree *tree,
    const struct oj_segment_list *list, struct oj_box_child at)
{
    if (at.level < 0)
        return &list->box;
    return &features->node[tree->levels.first[at.level] + at.node];
}

/* Lists the segments of a box of level 0. Level -1 is a feature without a tree,
 * whose segments the caller has listed. */
static void collect_leaf_segments(const struct oj_features *features,
                                  const struct oj_feature_tree *tree,
                                  struct oj_box_child at,
                                  struct oj_segment_list *list)
{
    int64_t first = at.node * OJ_FEATURE_TREE_FANOUT,
            end = first + OJ_FEATURE_TREE_FANOUT;
    if (at.level < 0)
        return;
    end = end < tree->n_items ? end : tree->n_items;
    collect_tree_segments(features, tree->first_item + first,
                          tree->first_item + end, list);
}

/* Lowers s->least to the minimum distance of the segments below two boxes,
 * where it is smaller. Level -1 is a feature without a tree, whose segments the
 * caller has listed. Recursion depth: at most the levels of both trees. */
static void min_distance_below_tree_nodes(struct pair_distance_search *s,
                                          struct oj_box_child at_a,
                                          struct oj_box_child at_b)
{
    struct oj_pair_scratch *scratch = s->scratch;
    const struct oj_box *box_a =
        box_of_tree_node_or_list(s->a, s->tree_a, &scratch->first, at_a);
    const struct oj_box *box_b =
        box_of_tree_node_or_list(s->b, s->tree_b, &scratch->second, at_b);
    struct oj_box_child children[OJ_FEATURE_TREE_FANOUT];
    int into_a, n;
    if (at_a.level <= 0 && at_b.level <= 0)
    {
        if (++s->n_leaves % LEAVES_PER_POLL == 0 &&
            oj_check_cancel(s->scratch->cancel, NULL) != OJ_OK)
        {
            set_distance_cutoff(s, -1.0);
            s->cut2 = -1.0;
            return;
        }
        collect_leaf_segments(s->a, s->tree_a, at_a, &scratch->first);
        collect_leaf_segments(s->b, s->tree_b, at_b, &scratch->second);
        min_distance_of_segment_lists(s, &scratch->first, &scratch->second);
        return;
    }
    /* Descends into the larger box. */
    into_a = at_b.level <= 0 ||
             (at_a.level > 0 &&
              (box_a->x1 - box_a->x0) + (box_a->y1 - box_a->y0) >
                  (box_b->x1 - box_b->x0) + (box_b->y1 - box_b->y0));
    n = oj_box_levels_push(
        &(into_a ? s->tree_a : s->tree_b)->levels, 2,
        (const double *)(into_a ? s->a : s->b)->node, into_a ? at_a : at_b,
        (const double *)(into_a ? box_b : box_a), s->cut2, 1, children, 0);
    while (n-- > 0 && children[n].d2 <= s->cut2 && s->least > 0.0)
        min_distance_below_tree_nodes(s, into_a ? children[n] : at_a,
                                      into_a ? at_b : children[n]);
}

static const struct oj_feature_tree *
segment_tree_of_feature(const struct oj_features *features, int64_t feature)
{
    if (features->own == NULL || features->own[feature] < 0)
        return NULL;
    return &features->tree[features->own[feature]];
}

/* Returns 1 if the first vertex of a ring or line of the inner feature is in a
 * polygon part of the outer one. Other vertices need no test: a ring that is
 * only partly inside intersects a ring of the outer feature, so the distance of
 * their segments is 0. If no rings intersect and the areas overlap, some ring
 * of one feature is entirely inside of the other. */
static int contains_ring_start(const struct oj_features *outer, int64_t outside,
                               const struct oj_features *inner, int64_t inside)
{
    const struct oj_flat *flat = inner->flat;
    const struct oj_box *box;
    if (outer->ring_box == NULL)
        return 0;
    if (oj_flat_is_points(flat))
        return does_feature_contain_point(outer, outside, flat->x[inside],
                                          flat->y[inside]);
    box = &outer->box[outside];
    for (int64_t r = flat->ring_offset[flat->part_offset[inside]];
         r < flat->ring_offset[flat->part_offset[inside + 1]]; r++)
    {
        double x = flat->x[flat->vertex_offset[r]];
        double y = flat->y[flat->vertex_offset[r]];
        if (oj_box_contains_point(box, x, y) &&
            does_feature_contain_point(outer, outside, x, y))
            return 1;
    }
    return 0;
}

double oj_pair_distance(const struct oj_features *a, int64_t feature_a,
                        const struct oj_features *b, int64_t feature_b,
                        int to_interior, double limit,
                        struct oj_pair_scratch *scratch)
{
    struct oj_box box_a = oj_distance_features_box(a, feature_a);
    struct oj_box box_b = oj_distance_features_box(b, feature_b);
    struct oj_box_child at_a = {0.0, 0, -1}, at_b = at_a;
    struct pair_distance_search s = {a,        b,     NULL,     NULL, scratch,
                                     INFINITY, limit, INFINITY, 0.0,  0};
    s.slack = 2.0 * oj_box_rounding_error(
                        oj_larger(oj_box_largest_coordinate(&box_a),
                                  oj_box_largest_coordinate(&box_b)));
    set_distance_cutoff(&s, limit);
    if (box_distance2(&box_a, &box_b) > s.cut2)
        return INFINITY;
    if (to_interior && oj_box_intersects(&box_a, &box_b) &&
        (contains_ring_start(a, feature_a, b, feature_b) ||
         contains_ring_start(b, feature_b, a, feature_a)))
        return 0.0;
    s.tree_a = segment_tree_of_feature(a, feature_a);
    s.tree_b = segment_tree_of_feature(b, feature_b);
    if (s.tree_a != NULL)
    {
        at_a.level = s.tree_a->levels.n_levels - 1;
        scratch->listed = 0;
    }
    else if (scratch->listed != feature_a + 1)
    {
        collect_feature_segments(a, feature_a, &scratch->first);
        scratch->listed = feature_a + 1;
    }
    if (s.tree_b != NULL)
        at_b.level = s.tree_b->levels.n_levels - 1;
    else
        collect_feature_segments(b, feature_b, &scratch->second);
    min_distance_below_tree_nodes(&s, at_a, at_b);
    return s.least;
}
