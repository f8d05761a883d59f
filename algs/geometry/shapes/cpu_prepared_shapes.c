#include "cpu_prepared_shapes.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../foundations/base/cpu_lane_loops.h"

#include <stdatomic.h>
#include <string.h>

#define FEATURES_AT_ONCE 2048

/* Sets the members of shape that describe its parts, rings and vertices, for
 * the n parts of the layer from part `first` on. */
static void set_part_range(struct oj_shape *shape, int64_t first, int64_t n)
{
    const struct oj_flat *flat = shape->flat;
    int64_t ring = flat->ring_offset[first];
    int64_t end_ring = flat->ring_offset[first + n];
    shape->first_part = first;
    shape->n_parts = (int32_t)n;
    shape->n_rings = (int32_t)(end_ring - ring);
    shape->first_vertex = flat->vertex_offset[ring];
    shape->n_vertices = flat->vertex_offset[end_ring] - shape->first_vertex;
    for (int64_t p = first; p < first + n; p++)
        shape->kinds |= flat->part_kind[p];
}

static void set_box_of_shape(struct oj_shape *shape)
{
    const struct oj_flat *flat = shape->flat;
    shape->box =
        oj_box_of_points(flat->x + shape->first_vertex,
                         flat->y + shape->first_vertex, shape->n_vertices);
}

/* Returns the box of a polygon part; empty for parts of other kinds. */
static struct oj_box polygon_box(const struct oj_flat *flat, int64_t part)
{
    int64_t first = flat->vertex_offset[flat->ring_offset[part]];
    int64_t end = flat->vertex_offset[flat->ring_offset[part + 1]];
    if (flat->part_kind[part] != OJ_PART_POLYGON)
        return oj_box_empty();
    return oj_box_of_points(flat->x + first, flat->y + first, end - first);
}

/* Maximum number of parts whose boxes are compared with each other. If there
 * are more parts, some boxes are assumed to intersect. */
#define MOST_PARTS_COMPARED 64

static int parts_may_overlap(const struct oj_shape *shape)
{
    struct oj_box box[MOST_PARTS_COMPARED];
    if (!(shape->kinds & OJ_PART_POLYGON) || shape->n_parts == 1)
        return 0;
    if (shape->n_parts > MOST_PARTS_COMPARED)
        return 1;
    for (int64_t p = 0; p < shape->n_parts; p++)
    {
        box[p] = polygon_box(shape->flat, shape->first_part + p);
        for (int64_t q = 0; q < p; q++)
        {
            if (oj_box_intersects(&box[p], &box[q]))
                return 1;
        }
    }
    return 0;
}

struct oj_shape oj_shape_of(const struct oj_flat *flat, int64_t feature)
{
    struct oj_shape shape = {.flat = flat, .feature = (int32_t)feature};
    if (!oj_flat_is_points(flat))
    {
        int64_t first = flat->part_offset[feature];
        set_part_range(&shape, first, flat->part_offset[feature + 1] - first);
    }
    else if (flat->x[feature] == flat->x[feature])
    {
        shape.first_vertex = feature;
        shape.n_parts = shape.n_rings = 1;
        shape.n_vertices = 1;
        shape.kinds = OJ_PART_POINT;
    }
    set_box_of_shape(&shape);
    shape.may_overlap = (uint8_t)parts_may_overlap(&shape);
    return shape;
}

void oj_shape_set_members(struct oj_shape *shape, struct oj_shape *member)
{
    for (int64_t p = 0; p < shape->n_parts; p++)
    {
        struct oj_shape m = {.flat = shape->flat, .feature = shape->feature};
        set_part_range(&m, shape->first_part + p, 1);
        set_box_of_shape(&m);
        member[p] = m;
    }
    shape->member = member;
}

/* --- building the side ---------------------------------------------------- */

struct shapes_build
{
    struct oj_shape_side *side;
    struct oj_order *order;
    struct oj_box *box;      /* [features] box of each feature */
    struct oj_box *tree_box; /* [entries of the tree] box of each entry */
    double *x, *y;           /* [features] centre of each box */
};

static double middle_between(double a, double b)
{
    return 0.5 * a + 0.5 * b;
}

static void compute_boxes_and_middles(int64_t first, int64_t end, void *user)
{
    struct shapes_build *b = user;
    for (int64_t f = first; f < end; f++)
    {
        struct oj_box box = oj_box_of_feature(b->side->flat, f);
        b->box[f] = box;
        b->x[f] = oj_box_is_empty(&box) ? NAN : middle_between(box.x0, box.x1);
        b->y[f] = oj_box_is_empty(&box) ? NAN : middle_between(box.y0, box.y1);
    }
}

static oj_status fill_shapes_of_bucket(int64_t bucket, int thread, void *user,
                                       struct oj_error *err)
{
    struct shapes_build *b = user;
    const struct oj_flat *flat = b->side->flat;
    const struct oj_order *order = b->order;
    int64_t end = order->bucket_offset[bucket + 1];
    (void)thread;
    (void)err;
    for (int64_t i = order->bucket_offset[bucket]; i < end; i++)
    {
        int64_t feature = order->point[i].index;
        int64_t part = flat->part_offset[feature];
        struct oj_shape shape = {
            .box = b->box[feature], .flat = flat, .feature = (int32_t)feature};
        set_part_range(&shape, part, flat->part_offset[feature + 1] - part);
        shape.may_overlap = (uint8_t)parts_may_overlap(&shape);
        b->side->shape[i] = shape;
        b->tree_box[i] = shape.box;
    }
    return OJ_OK;
}

static void compute_boxes_of_point_runs(int64_t first, int64_t end, void *user)
{
    struct shapes_build *b = user;
    const struct oj_order *order = b->order;
    for (int64_t run = first; run < end; run++)
    {
        struct oj_box box = oj_box_empty();
        int64_t i = run * OJ_RUN_POINTS, last = i + OJ_RUN_POINTS;
        for (; i < last && i < order->n_points; i++)
            oj_box_add_point(&box, order->point[i].x, order->point[i].y);
        b->tree_box[run] = box;
    }
}

/* Sorts the points (x, y), one of each feature, spatially into b->order. Also
 * fills the shapes in this order, unless the layer is one of single points. */
static oj_status sort_features_spatially(struct shapes_build *b, int n_threads,
                                         const double *x, const double *y,
                                         struct oj_error *err)
{
    OJ_TRY(oj_order_build(b->order, n_threads, b->side->flat->n_features, x, y,
                          err));
    OJ_TRY(oj_order_sort(b->order, n_threads,
                         b->side->shape != NULL ? fill_shapes_of_bucket : NULL,
                         b, err));
    b->side->n = b->order->n_points; /* from here on, oj_shape_side_free() frees
                                        side->shape */
    return OJ_OK;
}

static oj_status build_point_tree(struct shapes_build *b, int n_threads,
                                  struct oj_error *err)
{
    const struct oj_flat *flat = b->side->flat;
    int64_t n;
    OJ_TRY(sort_features_spatially(b, n_threads, flat->x, flat->y, err));
    n = (b->side->n + OJ_RUN_POINTS - 1) / OJ_RUN_POINTS;
    OJ_NEW(b->tree_box, n, err);
    oj_parallel_slices(n_threads, n, FEATURES_AT_ONCE,
                       compute_boxes_of_point_runs, b);
    return oj_tree_build(&b->side->tree, n_threads, n, b->tree_box, err);
}

/* Creates the members of shapes with parts of different kinds: first counts
 * them, then fills them. */
static oj_status build_members_of_mixed_shapes(struct oj_shape_side *side,
                                               struct oj_error *err)
{
    unsigned kinds = side->flat->part_kinds;
    int64_t n = 0;
    if ((kinds & (kinds - 1)) == 0)
        return OJ_OK;
    for (int64_t i = 0; i < side->n; i++)
    {
        if (oj_shape_is_mixed(&side->shape[i]))
            n += side->shape[i].n_parts;
    }
    OJ_NEW(side->member, n, err);
    n = 0;
    for (int64_t i = 0; i < side->n; i++)
    {
        if (!oj_shape_is_mixed(&side->shape[i]))
            continue;
        oj_shape_set_members(&side->shape[i], side->member + n);
        n += side->shape[i].n_parts;
    }
    return OJ_OK;
}

static oj_status build_shape_tree(struct shapes_build *b, int n_threads,
                                  struct oj_error *err)
{
    struct oj_shape_side *side = b->side;
    int64_t n = side->flat->n_features;
    OJ_NEW(side->shape, n, err);
    OJ_NEW(b->box, n, err);
    OJ_NEW(b->tree_box, n, err);
    OJ_NEW(b->x, n, err);
    OJ_NEW(b->y, n, err);
    oj_parallel_slices(n_threads, n, FEATURES_AT_ONCE,
                       compute_boxes_and_middles, b);
    OJ_TRY(sort_features_spatially(b, n_threads, b->x, b->y, err));
    OJ_TRY(build_members_of_mixed_shapes(side, err));
    return oj_tree_build(&side->tree, n_threads, side->n, b->tree_box, err);
}

oj_status oj_shape_side_build(struct oj_shape_side *side,
                              const struct oj_flat *flat, int n_threads,
                              struct oj_error *err)
{
    int is_points = oj_flat_is_points(flat);
    struct oj_order order = {0};
    struct shapes_build b = {.side = side,
                             .order = is_points ? &side->points : &order};
    oj_status status;
    *side = (struct oj_shape_side){.flat = flat};
    status = is_points ? build_point_tree(&b, n_threads, err)
                       : build_shape_tree(&b, n_threads, err);
    oj_order_free(&order);
    oj_free(b.box);
    oj_free(b.tree_box);
    oj_free(b.x);
    oj_free(b.y);
    if (status != OJ_OK)
        oj_shape_side_free(side);
    return status;
}

/* --- edge grids, made when they are expected to pay ------------------------
 */

/* Cells per vertex in the edge grid of a shape: CELLS_LARGE for large features,
 * to save memory, and up to CELLS_SMALL more for small ones, so that most of
 * their pairs are decided without testing edges. */
#define CELLS_SMALL 20.0
#define CELLS_LARGE 2.0

#define MANY_VERTICES 32

oj_status oj_shape_make_edge_grid(const struct oj_shape *shape,
                                  struct oj_edge_grid *cells,
                                  struct oj_error *err)
{
    const struct oj_flat *flat = shape->flat;
    const struct oj_box *box = &shape->box;
    double n = (double)shape->n_vertices;
    double each = CELLS_LARGE + CELLS_SMALL * 64.0 / (n + 64.0);
    const struct oj_edge_fineness fineness = {each, each, 12.0, 4.0};
    struct oj_edge_chains chains = {.x = flat->x + shape->first_vertex,
                                    .y = flat->y + shape->first_vertex,
                                    .n_vertices = shape->n_vertices,
                                    .n = shape->n_rings,
                                    .has_inside =
                                        shape->kinds == OJ_PART_POLYGON};
    struct oj_edge_extent extent = {box->x0, box->y0, box->x1, box->y1, 0.0};
    if (shape->kinds != OJ_PART_POINT)
        extent.length =
            oj_edge_measure_extent(chains.x, chains.y, chains.n_vertices)
                .length;
    if (chains.n > 1)
        chains.offset =
            flat->vertex_offset + flat->ring_offset[shape->first_part];
    oj_edge_grid_free(cells);
    return oj_edge_grid_build(cells, &chains, &extent, &fineness, err);
}

static oj_status make_and_attach_edge_grid(struct oj_shape *shape,
                                           struct oj_error *err)
{
    struct oj_edge_grid *cells, *none = NULL;
    oj_status status;
    OJ_NEW_ZEROED(cells, 1, err);
    status = oj_shape_make_edge_grid(shape, cells, err);
    if (status == OJ_OK &&
        atomic_compare_exchange_strong(&shape->cells, &none, cells))
        return OJ_OK;
    /* the grid failed, or another thread has made an equal grid before */
    oj_edge_grid_free(cells);
    oj_free(cells);
    return status;
}

oj_status oj_shape_side_make_grid_if_useful(struct oj_shape_side *side,
                                            int64_t at, int64_t n_vertices,
                                            uint8_t n_asks,
                                            struct oj_error *err)
{
    struct oj_shape *shape = &side->shape[at];
    uint8_t n_asked;
    if (!oj_shape_can_have_edge_grid(shape, OJ_CELLS_VERTICES))
        return OJ_OK;
    n_asked = atomic_load_explicit(&shape->n_asks, memory_order_relaxed);
    if (n_asked < n_asks &&
        (n_vertices < MANY_VERTICES || shape->n_vertices < MANY_VERTICES))
    {
        atomic_store_explicit(&shape->n_asks, (uint8_t)(n_asked + 1),
                              memory_order_relaxed);
        return OJ_OK;
    }
    return make_and_attach_edge_grid(shape, err);
}

int64_t oj_shape_side_bytes(const struct oj_shape_side *side)
{
    int64_t bytes = oj_tree_bytes(&side->tree);
    if (side->shape != NULL)
        bytes += side->n * (int64_t)sizeof *side->shape;
    return bytes +
           side->points.cap_points * (int64_t)sizeof *side->points.point;
}

void oj_shape_side_free(struct oj_shape_side *side)
{
    oj_tree_free(&side->tree);
    for (int64_t i = 0; side->shape != NULL && i < side->n; i++)
    {
        struct oj_edge_grid *cells =
            atomic_load_explicit(&side->shape[i].cells, memory_order_relaxed);
        if (cells != NULL)
            oj_edge_grid_free(cells);
        oj_free(cells);
    }
    oj_free(side->shape);
    oj_free(side->member);
    oj_order_free(&side->points);
    memset(side, 0, sizeof *side);
}

/* --- search of features by their boxes ------------------------------------ */

static float relative_to_frame(double v, double origin, double scale)
{
    double f = (v - origin) * scale;
    return (float)(f > 1e38 ? 1e38 : f < -1e38 ? -1e38 : f);
}

static float round_up_in_frame(double v, double origin, double scale)
{
    float f = relative_to_frame(v, origin, scale);
    return f + (fabsf(f) * 1.2e-7f + 1e-30f);
}

static float round_down_in_frame(double v, double origin, double scale)
{
    float f = relative_to_frame(v, origin, scale);
    return f - (fabsf(f) * 1.2e-7f + 1e-30f);
}

static struct oj_shape_box_query
make_box_query_in_tree_frame(const struct oj_tree *t, enum oj_box_test test,
                             const struct oj_box *box)
{
    int covers = test == OJ_BOX_COVERS || test == OJ_BOX_EQUALS;
    struct oj_shape_box_query q;
    q.low_x =
        round_up_in_frame(covers ? box->x0 : box->x1, t->origin_x, t->scale);
    q.low_y =
        round_up_in_frame(covers ? box->y0 : box->y1, t->origin_y, t->scale);
    q.high_x =
        round_down_in_frame(covers ? box->x1 : box->x0, t->origin_x, t->scale);
    q.high_y =
        round_down_in_frame(covers ? box->y1 : box->y0, t->origin_y, t->scale);
    return q;
}

static int passes_box_test(enum oj_box_test test, const struct oj_box *found,
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

/* Appends the points of a leaf that pass the test against the box `asked`. (A
 * point that intersects the box is within it.) */
static void find_points_of_run_in_box(const struct oj_shape_side *side,
                                      enum oj_box_test test,
                                      const struct oj_box *asked, int64_t run,
                                      struct oj_found *found)
{
    int64_t i = run * OJ_RUN_POINTS;
    int64_t end = i + OJ_RUN_POINTS < side->n ? i + OJ_RUN_POINTS : side->n;
    const struct oj_ordered_point *p = side->points.point;
    int64_t n = found->n;
    int is_point = asked->x0 == asked->x1 && asked->y0 == asked->y1;
    if (!is_point && (test == OJ_BOX_COVERS || test == OJ_BOX_EQUALS))
        return;
    for (; is_point && i < end; i++) /* fast path if the query box is a point:
                                        1.4 times as fast */
    {
        if (p[i].x == asked->x0 && p[i].y == asked->y0)
            found->at[n++] = (int32_t)i;
    }
    for (; i < end; i++)
    {
        found->at[n] = (int32_t)i;
        n += (asked->x0 <= p[i].x) & (p[i].x <= asked->x1) &
             (asked->y0 <= p[i].y) & (p[i].y <= asked->y1);
    }
    found->n = n;
}

/* Returns the bit mask of the children whose boxes pass the query. */
OJ_INLINE unsigned test_children(const struct oj_tree_node *restrict node,
                                 const struct oj_shape_box_query *q)
{
    float low_x = q->low_x, low_y = q->low_y;
    float high_x = q->high_x, high_y = q->high_y;
    int hit[OJ_FANOUT];
    unsigned bits = 0;
    OJ_EIGHT
    {
        hit[c] = (node->x0[c] <= low_x) & (node->y0[c] <= low_y) &
                 (node->x1[c] >= high_x) & (node->y1[c] >= high_y);
    }
    for (int c = 0; c < OJ_FANOUT; c++)
        bits |= (unsigned)hit[c] << c;
    return bits;
}

void oj_shape_search_start(const struct oj_shape_side *side,
                           enum oj_box_test test, const struct oj_box *box,
                           struct oj_shape_search *search)
{
    const struct oj_tree *tree = &side->tree;
    search->test = test;
    search->box = *box;
    search->n_waiting = 0;
    if (tree->n_levels == 0 || oj_box_is_empty(box))
        return;
    search->query = make_box_query_in_tree_frame(tree, test, box);
    search->waiting[search->n_waiting++] =
        (struct oj_shape_node){0, tree->n_levels - 1};
}

/* Pushes the children of a node in reverse, so that they are popped in
 * ascending order. */
OJ_INLINE void push_children(struct oj_shape_search *search,
                             struct oj_shape_node parent, unsigned hit)
{
    for (; hit != 0; search->n_waiting++)
    {
        int c = 31 - __builtin_clz(hit);
        search->waiting[search->n_waiting] = (struct oj_shape_node){
            parent.node * OJ_FANOUT + c, parent.level - 1};
        hit ^= 1u << c;
    }
}

OJ_CLONES oj_status oj_shape_search_next(const struct oj_shape_side *side,
                                         struct oj_shape_search *search,
                                         int64_t least, const int32_t *min_rank,
                                         int64_t most_rank,
                                         struct oj_found *found,
                                         struct oj_error *err)
{
    const struct oj_tree *tree = &side->tree;
    found->n = 0;
    while (search->n_waiting > 0 && found->n < least)
    {
        const struct oj_shape_node v = search->waiting[--search->n_waiting];
        const int64_t at = tree->level_first[v.level] + v.node;
        unsigned hit;
        if (min_rank != NULL && min_rank[at] > most_rank)
            continue;
        hit = test_children(&tree->node[at], &search->query);
        if (v.level > 0)
        {
            push_children(search, v, hit);
            continue;
        }
        if (found->capacity - found->n < OJ_FANOUT * OJ_RUN_POINTS)
            OJ_ROOM(found->at, found->n, found->n + OJ_FANOUT * OJ_RUN_POINTS,
                    found->capacity, err);
        for (; hit != 0; hit &= hit - 1)
        {
            int64_t entry = (int64_t)v.node * OJ_FANOUT + __builtin_ctz(hit);
            if (side->shape == NULL)
                find_points_of_run_in_box(side, search->test, &search->box,
                                          entry, found);
            else
            {
                found->at[found->n] = (int32_t)entry;
                found->n += passes_box_test(
                    search->test, &side->shape[entry].box, &search->box);
            }
        }
    }
    return OJ_OK;
}

oj_status oj_shape_side_find(const struct oj_shape_side *side,
                             enum oj_box_test test, const struct oj_box *box,
                             struct oj_found *found, struct oj_error *err)
{
    struct oj_shape_search search;
    oj_shape_search_start(side, test, box, &search);
    return oj_shape_search_next(side, &search, INT64_MAX, NULL, 0, found, err);
}

/* Returns the least tie rank of the features of an entry of the tree: a shape,
 * or a run of points. */
static int32_t min_rank_of_entry(const struct oj_shape_side *side,
                                 const int32_t *tie_rank, int64_t entry)
{
    const int64_t each = side->shape != NULL ? 1 : OJ_RUN_POINTS;
    const int64_t end =
        (entry + 1) * each < side->n ? (entry + 1) * each : side->n;
    int32_t least = INT32_MAX;
    for (int64_t at = entry * each; at < end; at++)
    {
        const int32_t feature = oj_shape_side_feature(side, at);
        const int32_t rank = tie_rank != NULL ? tie_rank[feature] : feature;
        least = rank < least ? rank : least;
    }
    return least;
}

oj_status oj_shape_side_min_ranks(const struct oj_shape_side *side,
                                  const int32_t *tie_rank, int32_t **min_rank,
                                  struct oj_error *err)
{
    const struct oj_tree *tree = &side->tree;
    int64_t n_children = tree->n_entries;
    int32_t *rank;
    OJ_NEW(rank, tree->n_nodes + 1, err);
    for (int level = 0; level < tree->n_levels; level++)
    {
        const int64_t first = tree->level_first[level];
        const int64_t n = (n_children + OJ_FANOUT - 1) / OJ_FANOUT;
        for (int64_t i = 0; i < n; i++)
            rank[first + i] = INT32_MAX;
        for (int64_t child = 0; child < n_children; child++)
        {
            const int32_t least =
                level == 0 ? min_rank_of_entry(side, tie_rank, child)
                           : rank[tree->level_first[level - 1] + child];
            int32_t *parent = &rank[first + child / OJ_FANOUT];
            *parent = least < *parent ? least : *parent;
        }
        n_children = n;
    }
    *min_rank = rank;
    return OJ_OK;
}

/* --- location of one point ------------------------------------------------ */

/* Returns the location of a point by the even-odd rule over all rings of a
 * polygon, edge by edge. */
static enum oj_location locate_in_rings(const struct oj_shape *shape, double px,
                                        double py)
{
    const struct oj_flat *flat = shape->flat;
    int64_t ring = flat->ring_offset[shape->first_part];
    return oj_rings_locate_by_even_odd(px, py, flat->x, flat->y,
                                       flat->vertex_offset, ring,
                                       ring + shape->n_rings);
}

/* Returns 1 if the point is on an edge. Edge i joins vertex i and vertex i +
 * step. With step 0 the edges are single points. */
static int is_point_on_any_edge(double px, double py, const double *x,
                                const double *y, int64_t n, int64_t step)
{
    for (int64_t i = 0; i < n; i++)
    {
        if (oj_on_segment(px, py, x[i], y[i], x[i + step], y[i + step]))
            return 1;
    }
    return 0;
}

/* Returns 1 if the point is on a line, or equals a point, of the shape. */
static int is_point_on_lines_or_points(const struct oj_shape *shape, double px,
                                       double py)
{
    for (int64_t r = 0; r < shape->n_rings; r++)
    {
        int64_t n, v = oj_shape_ring_vertices(shape, r, &n);
        if (is_point_on_any_edge(px, py, shape->flat->x + v, shape->flat->y + v,
                                 n > 1 ? n - 1 : n, n > 1))
            return 1;
    }
    return 0;
}

static int is_point_on_edges_of_its_cell(const struct oj_edge_grid *g,
                                         double px, double py)
{
    int32_t column = oj_frame_column(&g->frame, px);
    const struct oj_edge_run *run,
        *end = oj_edge_grid_runs(g, oj_frame_row(&g->frame, py), column, column,
                                 &run);
    for (; run < end; run++)
    {
        int64_t step, v = oj_edge_run_start(run, &step);
        if (is_point_on_any_edge(px, py, g->chains.x + v, g->chains.y + v,
                                 run->n, step))
            return 1;
    }
    return 0;
}

OJ_CLONES enum oj_location oj_shape_locate(const struct oj_shape *shape,
                                           double px, double py)
{
    const struct oj_edge_grid *cells = oj_shape_edge_grid(shape);
    if (!oj_box_contains_point(&shape->box, px, py))
        return OJ_OUTSIDE;
    if (shape->kinds == OJ_PART_POLYGON)
        return cells != NULL ? oj_edge_grid_locate(cells, px, py)
                             : locate_in_rings(shape, px, py);
    return (cells != NULL ? is_point_on_edges_of_its_cell(cells, px, py)
                          : is_point_on_lines_or_points(shape, px, py))
               ? OJ_ON_BOUNDARY
               : OJ_OUTSIDE;
}

/* --- contact of edges ----------------------------------------------------- */

struct edge
{
    double ax, ay, bx, by;
};

OJ_INLINE enum oj_contact edges_contact(const struct edge *e,
                                        const struct oj_box *box, double cx,
                                        double cy, double dx, double dy)
{
    struct oj_box other = oj_box_of_segment(cx, cy, dx, dy);
    if (!((box->x0 <= other.x1) & (other.x0 <= box->x1) &
          (box->y0 <= other.y1) & (other.y0 <= box->y1)))
        return OJ_APART;
    return oj_segments_contact(e->ax, e->ay, e->bx, e->by, cx, cy, dx, dy);
}

/* Returns the strongest contact of edge e with n edges, or the first contact
 * that is at least `enough`. Edge i joins vertex i and vertex i + step. */
static enum oj_contact contact_with_edge_run(const struct edge *e,
                                             const struct oj_box *box,
                                             const double *x, const double *y,
                                             int64_t n, int64_t step,
                                             enum oj_contact enough)
{
    enum oj_contact best = OJ_APART;
    for (int64_t i = 0; i < n && best < enough; i++)
    {
        enum oj_contact contact =
            edges_contact(e, box, x[i], y[i], x[i + step], y[i + step]);
        best = contact > best ? contact : best;
    }
    return best;
}

static enum oj_contact
contact_of_edge_with_grid_edges(const struct edge *e, const struct oj_box *box,
                                const struct oj_edge_grid *g,
                                enum oj_contact enough)
{
    const struct oj_edge_rows rows =
        oj_edge_rows_of(&g->frame, e->ax, e->ay, e->bx, e->by);
    enum oj_contact best = OJ_APART;
    for (int32_t row = rows.window.row0; row <= rows.window.row1; row++)
    {
        const struct oj_edge_run *run, *end;
        int32_t first, last;
        oj_edge_columns(&g->frame, &rows, row, &first, &last);
        end = oj_edge_grid_runs(g, row, first, last, &run);
        for (; run < end; run++)
        {
            int64_t step, v = oj_edge_run_start(run, &step);
            enum oj_contact contact = contact_with_edge_run(
                e, box, g->chains.x + v, g->chains.y + v, run->n, step, enough);
            best = contact > best ? contact : best;
            if (best >= enough)
                return best;
        }
    }
    return best;
}

static enum oj_contact contact_of_edge_with_shape(const struct edge *e,
                                                  const struct oj_box *box,
                                                  const struct oj_shape *shape,
                                                  enum oj_contact enough)
{
    enum oj_contact best = OJ_APART;
    for (int64_t r = 0; r < shape->n_rings && best < enough; r++)
    {
        int64_t n, first = oj_shape_ring_vertices(shape, r, &n);
        enum oj_contact contact = contact_with_edge_run(
            e, box, shape->flat->x + first, shape->flat->y + first,
            n > 1 ? n - 1 : 1, n > 1, enough);
        best = contact > best ? contact : best;
    }
    return best;
}

/* Returns the strongest contact of an edge of a large shape with the edges of a
 * small shape. */
static enum oj_contact
contact_of_edge_with_small_shape(const struct edge *e, const struct oj_box *box,
                                 const struct oj_shape *small,
                                 enum oj_contact enough)
{
    const struct oj_box *s = &small->box;
    if (!oj_box_intersects(box, s) ||
        oj_line_misses_box(e->ax, e->ay, e->bx, e->by, s->x0, s->y0, s->x1,
                           s->y1))
        return OJ_APART;
    return contact_of_edge_with_shape(e, box, small, enough);
}

/* Returns the strongest contact of a small shape with the edges of a large
 * shape in the cells that the small shape's box intersects. */
static enum oj_contact contact_of_grid_edges_in_window(
    const struct oj_shape *small, const struct oj_edge_grid *g,
    const struct oj_edge_window *w, enum oj_contact enough)
{
    const double *x = g->chains.x, *y = g->chains.y;
    enum oj_contact best = OJ_APART;
    for (int32_t row = w->row0; row <= w->row1; row++)
    {
        const struct oj_edge_run *run,
            *end = oj_edge_grid_runs(g, row, w->column0, w->column1, &run);
        for (; run < end; run++)
        {
            int64_t step, first = oj_edge_run_start(run, &step);
            for (int64_t v = first; v < first + run->n; v++)
            {
                struct edge e = {x[v], y[v], x[v + step], y[v + step]};
                struct oj_box box = oj_box_of_segment(e.ax, e.ay, e.bx, e.by);
                enum oj_contact contact =
                    contact_of_edge_with_small_shape(&e, &box, small, enough);
                best = contact > best ? contact : best;
                if (best >= enough)
                    return best;
            }
        }
    }
    return best;
}

/* Returns the strongest contact of the edges of one shape with another shape.
 * Uses the edge grid of the other shape, if it has one. */
static enum oj_contact contact_of_all_edges_with_shape(
    const struct oj_shape *from, const struct oj_shape *to,
    const struct oj_edge_grid *cells, enum oj_contact enough)
{
    enum oj_contact best = OJ_APART;
    for (int64_t r = 0; r < from->n_rings; r++)
    {
        int64_t n, first = oj_shape_ring_vertices(from, r, &n);
        const double *x = from->flat->x + first, *y = from->flat->y + first;
        int64_t last = n > 1 ? n - 1 : 1, step = n > 1;
        for (int64_t i = 0; i < last; i++)
        {
            struct edge e = {x[i], y[i], x[i + step], y[i + step]};
            struct oj_box box = oj_box_of_segment(e.ax, e.ay, e.bx, e.by);
            enum oj_contact contact;
            if (!oj_box_intersects(&box, &to->box))
                continue;
            contact =
                cells != NULL
                    ? contact_of_edge_with_grid_edges(&e, &box, cells, enough)
                    : contact_of_edge_with_shape(&e, &box, to, enough);
            best = contact > best ? contact : best;
            if (best >= enough)
                return best;
        }
    }
    return best;
}

#define SMALL_VERTICES 32

enum oj_contact oj_shapes_contact(const struct oj_shape *a,
                                  const struct oj_shape *b,
                                  enum oj_contact enough)
{
    const struct oj_edge_grid *cells_a = oj_shape_edge_grid(a);
    const struct oj_edge_grid *cells_b = oj_shape_edge_grid(b);
    int swap = cells_b == NULL
                   ? cells_a != NULL
                   : cells_a != NULL && a->n_vertices > b->n_vertices;
    const struct oj_shape *small = swap ? b : a, *large = swap ? a : b;
    const struct oj_edge_grid *cells = swap ? cells_a : cells_b;
    if (cells != NULL && small->n_vertices <= SMALL_VERTICES)
    {
        const struct oj_box *s = &small->box;
        struct oj_edge_window w =
            oj_frame_window(&cells->frame, s->x0, s->y0, s->x1, s->y1);
        int64_t n_cells =
            (int64_t)(w.column1 - w.column0 + 1) * (w.row1 - w.row0 + 1);
        if (n_cells <= 4 * small->n_vertices)
            return contact_of_grid_edges_in_window(small, cells, &w, enough);
    }
    return contact_of_all_edges_with_shape(small, large, cells, enough);
}

/* --- shapes of points ----------------------------------------------------- */

/* Returns 1 if any point of a point shape, whose grid is g, is in the other
 * shape. Tests only points in cells that the other shape's box intersects. */
static int does_any_grid_point_intersect(const struct oj_edge_grid *g,
                                         const struct oj_shape *other)
{
    const struct oj_box *o = &other->box;
    struct oj_edge_window w =
        oj_frame_window(&g->frame, o->x0, o->y0, o->x1, o->y1);
    for (int32_t row = w.row0; row <= w.row1; row++)
    {
        const struct oj_edge_run *run,
            *end = oj_edge_grid_runs(g, row, w.column0, w.column1, &run);
        for (; run < end; run++)
        {
            int64_t step, v = oj_edge_run_start(run, &step);
            if (oj_shape_locate(other, g->chains.x[v], g->chains.y[v]) !=
                OJ_OUTSIDE)
                return 1;
        }
    }
    return 0;
}

static int does_any_point_intersect(const struct oj_shape *points,
                                    const struct oj_shape *other)
{
    const struct oj_edge_grid *cells = oj_shape_edge_grid(points);
    const double *x = points->flat->x + points->first_vertex;
    const double *y = points->flat->y + points->first_vertex;
    if (cells != NULL)
        return does_any_grid_point_intersect(cells, other);
    for (int64_t i = 0; i < points->n_vertices; i++)
    {
        if (oj_shape_locate(other, x[i], y[i]) != OJ_OUTSIDE)
            return 1;
    }
    return 0;
}

/* --- intersection of two shapes ------------------------------------------- */

/* Returns 1 if the first vertex of any part of shape is in the polygon. */
static int does_a_part_start_in_polygon(const struct oj_shape *shape,
                                        const struct oj_shape *polygon)
{
    const double *x = shape->flat->x, *y = shape->flat->y;
    if (polygon->kinds != OJ_PART_POLYGON)
        return 0;
    for (int64_t p = 0; p < shape->n_parts; p++)
    {
        int64_t v = oj_shape_part_start(shape, p);
        if (oj_shape_locate(polygon, x[v], y[v]) != OJ_OUTSIDE)
            return 1;
    }
    return 0;
}

/* Returns 1 if lines or polygons intersect. If no edges touch or cross, each
 * part of one shape is wholly inside or outside of the other, so the first
 * vertex of a part decides. This requires that holes are inside their shells,
 * which is always so for a polygon of one ring. */
static int do_lines_or_polygons_intersect(const struct oj_shape *a,
                                          const struct oj_shape *b,
                                          unsigned *rests_on)
{
    const struct oj_edge_grid *of_a = oj_shape_edge_grid(a);
    const struct oj_edge_grid *of_b = oj_shape_edge_grid(b);
    int is_b = of_a == NULL || (of_b != NULL && b->n_vertices > a->n_vertices);
    const struct oj_shape *large = is_b ? b : a, *small = is_b ? a : b;
    enum oj_location window =
        oj_shape_grid_locate_box(is_b ? of_b : of_a, large, &small->box);
    unsigned many;
    if (window == OJ_INSIDE)
        return 1;
    many = (oj_shape_has_many_rings(a) ? 1u : 0u) |
           (oj_shape_has_many_rings(b) ? 2u : 0u);
    if (window == OJ_OUTSIDE) /* decided by the edge grid of `large` alone */
    {
        *rests_on |= many & (is_b ? 2u : 1u);
        return 0;
    }
    if (does_a_part_start_in_polygon(small, large) ||
        oj_shapes_contact(small, large, OJ_TOUCHING) != OJ_APART ||
        does_a_part_start_in_polygon(large, small))
        return 1;
    *rests_on |= many;
    return 0;
}

/* Returns 1 if two shapes intersect, each with parts of one kind only. */
static int do_single_kind_shapes_intersect(const struct oj_shape *a,
                                           const struct oj_shape *b,
                                           unsigned *rests_on)
{
    if (!oj_box_intersects(&a->box, &b->box))
        return 0;
    if (a->kinds != OJ_PART_POINT && b->kinds != OJ_PART_POINT)
        return do_lines_or_polygons_intersect(a, b, rests_on);
    if (a->kinds == OJ_PART_POINT &&
        (b->kinds != OJ_PART_POINT || a->n_vertices <= b->n_vertices))
    {
        if (does_any_point_intersect(a, b))
            return 1;
    }
    else if (does_any_point_intersect(b, a))
        return 1;
    *rests_on |= (a->may_overlap ? 1u : 0u) | (b->may_overlap ? 2u : 0u);
    return 0;
}

int oj_shapes_intersect(const struct oj_shape *a, const struct oj_shape *b,
                        unsigned *rests_on)
{
    int n_a = a->member != NULL ? a->n_parts : 1;
    int n_b = b->member != NULL ? b->n_parts : 1;
    *rests_on = 0;
    if (n_a == 1 && n_b == 1)
        return do_single_kind_shapes_intersect(a, b, rests_on);
    for (int i = 0; i < n_a; i++)
    {
        const struct oj_shape *of_a = a->member != NULL ? a->member + i : a;
        if (!oj_box_intersects(&of_a->box, &b->box))
            continue;
        for (int j = 0; j < n_b; j++)
        {
            const struct oj_shape *of_b = b->member != NULL ? b->member + j : b;
            if (do_single_kind_shapes_intersect(of_a, of_b, rests_on))
                return 1;
        }
    }
    return 0;
}
