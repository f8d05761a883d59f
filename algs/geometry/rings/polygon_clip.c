#include "polygon_clip.h"

#include "../../../flatten/base/oj_alloc.h"

#include <string.h>

/* Number of edges in an entry of the tree. */
#define RUN 16

/* Sides of a window. A vertex may be on two sides, for example left of the
 * window and below it. */
enum
{
    LEFT = 1,
    RIGHT = 2,
    BELOW = 4,
    ABOVE = 8
};

/* A clip in progress. */
struct clip_pass
{
    struct oj_polygon_clip *clip;
    struct oj_box window;
    float q[4]; /* the window in coordinates of the tree */
    struct oj_flat_buf *out;
    int64_t most, n_left; /* most: maximum vertices of the result; n_left:
                             vertices kept so far, of all rings */
    int64_t part;         /* the last part in out; -1: none */

    int64_t ring;   /* the ring that the next vertex belongs to */
    int64_t n_kept; /* vertices kept of this ring */
    int64_t last;   /* the last vertex of this ring so far */
    int64_t n_runs; /* number of runs of this ring so far */
    unsigned sides; /* sides on which all vertices of the current run are */
    int n_forced;
    int64_t forced[8]; /* vertices of this ring that stay, ascending */
};

/* ---- preparation --------------------------------------------------------- */

/* Returns the first vertex of a ring; for n_rings, the number of vertices. */
static int64_t ring_start(const struct oj_polygon_clip *clip, int64_t ring)
{
    return clip->flat->vertex_offset[clip->first_ring + ring] -
           clip->first_vertex;
}

static void insert_sorted(int64_t *list, int n, int64_t value)
{
    for (; n > 0 && list[n - 1] > value; n--)
        list[n] = list[n - 1];
    list[n] = value;
}

/* Finds the vertices that GEOS's Orientation::isCCW() compares: the ends of the
 * last ascending edge that reaches the greatest y, and of the next descending
 * edge. */
static struct oj_ring_cap
find_vertices_of_orientation_test(const double *y, int64_t first, int64_t n)
{
    struct oj_ring_cap cap;
    int64_t high = 0, low;
    for (int64_t i = 1; i < n; i++)
    {
        if (y[i] > y[i - 1] && y[i] >= y[high])
            high = i;
    }
    low = high;
    do
        low = (low + 1) % n;
    while (low != high && y[low] == y[high]);
    insert_sorted(cap.vertex, 0, first + (high > 0 ? high - 1 : 0));
    insert_sorted(cap.vertex, 1, first + high);
    insert_sorted(cap.vertex, 2, first + (low > 0 ? low - 1 : n - 1));
    insert_sorted(cap.vertex, 3, first + low);
    return cap;
}

static void find_extremes(struct oj_polygon_clip *clip)
{
    const double *x = clip->flat->x + clip->first_vertex;
    const double *y = clip->flat->y + clip->first_vertex;
    int64_t *extreme = clip->extreme;
    memset(extreme, 0, sizeof clip->extreme);
    for (int64_t i = 1; i < clip->n_vertices; i++)
    {
        extreme[0] = x[i] < x[extreme[0]] ? i : extreme[0];
        extreme[1] = x[i] > x[extreme[1]] ? i : extreme[1];
        extreme[2] = y[i] < y[extreme[2]] ? i : extreme[2];
        extreme[3] = y[i] > y[extreme[3]] ? i : extreme[3];
    }
}

/* Builds the tree over runs of RUN edges. The connection of two rings counts as
 * an edge, which only enlarges a box. */
static oj_status build_tree(struct oj_polygon_clip *clip, struct oj_error *err)
{
    const double *x = clip->flat->x + clip->first_vertex;
    const double *y = clip->flat->y + clip->first_vertex;
    const int64_t n = (clip->n_vertices + RUN - 1) / RUN;
    struct oj_box *box;
    oj_status status;
    OJ_NEW(box, n, err);
    for (int64_t i = 0; i < n; i++)
    {
        int64_t end = RUN * (i + 1) + 1;
        end = end < clip->n_vertices ? end : clip->n_vertices;
        box[i] = oj_box_of_points(x + RUN * i, y + RUN * i, end - RUN * i);
    }
    status = oj_tree_build(&clip->tree, 1, n, box, err);
    oj_free(box);
    return status;
}

oj_status oj_polygon_clip_build(struct oj_polygon_clip *clip,
                                const struct oj_flat *flat, int64_t feature,
                                struct oj_error *err)
{
    oj_status status;
    memset(clip, 0, sizeof *clip);
    clip->flat = flat;
    clip->first_part = flat->part_offset[feature];
    clip->n_parts = flat->part_offset[feature + 1] - clip->first_part;
    clip->first_ring = flat->ring_offset[clip->first_part];
    clip->n_rings =
        flat->ring_offset[clip->first_part + clip->n_parts] - clip->first_ring;
    clip->first_vertex = flat->vertex_offset[clip->first_ring];
    clip->n_vertices = ring_start(clip, clip->n_rings);
    OJ_NEW(clip->cap, clip->n_rings, err);
    for (int64_t r = 0; r < clip->n_rings; r++)
    {
        const int64_t first = ring_start(clip, r);
        clip->cap[r] = find_vertices_of_orientation_test(
            flat->y + clip->first_vertex + first, first,
            ring_start(clip, r + 1) - first);
    }
    find_extremes(clip);
    status = build_tree(clip, err);
    if (status != OJ_OK)
        oj_polygon_clip_free(clip);
    return status;
}

void oj_polygon_clip_free(struct oj_polygon_clip *clip)
{
    oj_tree_free(&clip->tree);
    oj_free(clip->cap);
    oj_free(clip->left);
    memset(clip, 0, sizeof *clip);
}

/* ---- the window ---------------------------------------------------------- */

/* Widens a box by more than a tenth of its shorter side (of the longer one if
 * the shorter is 0), which GEOS adds, and by more than rounding errors. */
static struct oj_box widen_box(const struct oj_box *box)
{
    const double width = box->x1 - box->x0, height = box->y1 - box->y0;
    double by = width < height ? width : height;
    by = by > 0.0 ? by : oj_larger(width, height);
    by = by / 8.0 + 1e-9 * oj_box_largest_coordinate(box);
    return (struct oj_box){box->x0 - by, box->y0 - by, box->x1 + by,
                           box->y1 + by};
}

/* Converts a box to coordinates of the tree, rounded outward. */
static void set_tree_query(struct clip_pass *pass, const struct oj_box *box)
{
    const struct oj_tree *tree = &pass->clip->tree;
    const double x = tree->origin_x, y = tree->origin_y, s = tree->scale;
    pass->q[0] = oj_tree_round_down(box->x0 - tree->slack, x, s);
    pass->q[1] = oj_tree_round_down(box->y0 - tree->slack, y, s);
    pass->q[2] = oj_tree_round_up(box->x1 + tree->slack, x, s);
    pass->q[3] = oj_tree_round_up(box->y1 + tree->slack, y, s);
}

/* Returns the sides of the window on which child c of a node certainly is. */
static unsigned sides_of_child(const struct clip_pass *pass,
                               const struct oj_tree_node *node, int c)
{
    const float *q = pass->q;
    return (node->x1[c] < q[0] ? LEFT : 0u) |
           (node->x0[c] > q[2] ? RIGHT : 0u) |
           (node->y1[c] < q[1] ? BELOW : 0u) |
           (node->y0[c] > q[3] ? ABOVE : 0u);
}

/* Enlarges `all` by those edges of an entry whose boxes intersect box. */
static void add_edges_of_entry(const struct oj_polygon_clip *clip,
                               int64_t entry, const struct oj_box *box,
                               struct oj_box *all)
{
    const double *x = clip->flat->x + clip->first_vertex;
    const double *y = clip->flat->y + clip->first_vertex;
    for (int64_t v = RUN * entry;
         v < RUN * (entry + 1) && v + 1 < clip->n_vertices; v++)
    {
        const struct oj_box edge =
            oj_box_of_segment(x[v], y[v], x[v + 1], y[v + 1]);
        if (oj_box_intersects(&edge, box))
            oj_box_add_box(all, &edge);
    }
}

/* Enlarges `all` by the edges under a node whose boxes intersect box. pass->q
 * is the box in coordinates of the tree. */
static void add_edges_of_node(const struct clip_pass *pass, int level,
                              int64_t at, const struct oj_box *box,
                              struct oj_box *all)
{
    const struct oj_tree *tree = &pass->clip->tree;
    const struct oj_tree_node *node =
        tree->node + tree->level_first[level] + at;
    for (int c = 0; c < OJ_FANOUT; c++)
    {
        const int64_t child = at * OJ_FANOUT + c;
        if (child << 3 * level >= tree->n_entries)
            break;
        if (sides_of_child(pass, node, c) != 0)
            continue;
        if (level > 0)
            add_edges_of_node(pass, level - 1, child, box, all);
        else
            add_edges_of_entry(pass->clip, child, box, all);
    }
}

/* Sets the window for a box: the box is widened, enlarged by the edges that
 * intersect it, and widened again. */
static void set_window(struct clip_pass *pass, const struct oj_box *box)
{
    const struct oj_tree *tree = &pass->clip->tree;
    const struct oj_box near = widen_box(box);
    struct oj_box all = near;
    set_tree_query(pass, &near);
    add_edges_of_node(pass, tree->n_levels - 1, 0, &near, &all);
    pass->window = widen_box(&all);
    set_tree_query(pass, &pass->window);
}

/* ---- clipping ------------------------------------------------------------ */

static int ring_has_extreme(const struct oj_polygon_clip *clip, int64_t ring)
{
    for (int i = 0; i < 4; i++)
    {
        if (clip->extreme[i] >= ring_start(clip, ring) &&
            clip->extreme[i] < ring_start(clip, ring + 1))
            return 1;
    }
    return 0;
}

/* Returns the first ring from `ring` on that ends after vertex end - 1 or has
 * an extreme vertex. */
static int64_t skip_rings(const struct oj_polygon_clip *clip, int64_t ring,
                          int64_t end)
{
    int64_t low = ring, high = clip->n_rings;
    for (int i = 0; i < 4; i++)
    {
        if (clip->extreme[i] >= ring_start(clip, ring))
            end = clip->extreme[i] < end ? clip->extreme[i] : end;
    }
    while (low < high)
    {
        const int64_t middle = low + (high - low) / 2;
        if (ring_start(clip, middle + 1) > end)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void begin_ring(struct clip_pass *pass)
{
    const struct oj_polygon_clip *clip = pass->clip;
    const struct oj_ring_cap *cap = &clip->cap[pass->ring];
    pass->n_kept = pass->n_runs = 0;
    pass->n_forced = 4;
    memcpy(pass->forced, cap->vertex, sizeof cap->vertex);
    for (int i = 0; i < 4; i++)
    {
        if (clip->extreme[i] >= ring_start(clip, pass->ring) &&
            clip->extreme[i] < ring_start(clip, pass->ring + 1))
            insert_sorted(pass->forced, pass->n_forced++, clip->extreme[i]);
    }
}

/* Keeps a vertex of the ring, unless it is the vertex that was kept last. */
static oj_status keep_vertex(struct clip_pass *pass, int64_t vertex,
                             struct oj_error *err)
{
    struct oj_polygon_clip *clip = pass->clip;
    if (pass->n_kept > 0 && clip->left[pass->n_kept - 1] == vertex)
        return OJ_OK;
    OJ_ROOM(clip->left, pass->n_kept, pass->n_kept + 1, clip->cap_left, err);
    clip->left[pass->n_kept++] = vertex;
    pass->n_left++;
    return OJ_OK;
}

/* Processes the vertices first .. end - 1 of the ring, all of them on `sides`
 * of the window. They extend the current run if they have a side in common with
 * it, otherwise they begin a new run. */
static oj_status clip_vertices_of_ring(struct clip_pass *pass, int64_t first,
                                       int64_t end, unsigned sides,
                                       struct oj_error *err)
{
    if (pass->n_runs > 0 && (pass->sides & sides) != 0)
        pass->sides &= sides;
    else
    {
        if (pass->n_runs > 0)
            OJ_TRY(keep_vertex(pass, pass->last, err));
        OJ_TRY(keep_vertex(pass, first, err));
        pass->n_runs++;
        pass->sides = sides;
    }
    for (int i = 0; i < pass->n_forced; i++)
    {
        if (pass->forced[i] >= first && pass->forced[i] < end)
            OJ_TRY(keep_vertex(pass, pass->forced[i], err));
    }
    pass->last = end - 1;
    return OJ_OK;
}

/* Begins a part of the output, unless the last part of the output is that of
 * the ring. */
static oj_status begin_polygon_of_ring_if_new(struct clip_pass *pass,
                                              struct oj_error *err)
{
    const struct oj_polygon_clip *clip = pass->clip;
    const int64_t *offset = clip->flat->ring_offset + clip->first_part;
    const int64_t ring = clip->first_ring + pass->ring;
    int64_t low = pass->part, high = clip->n_parts;
    if (low >= 0 && ring < offset[low + 1])
        return OJ_OK;
    while (low + 1 < high)
    {
        const int64_t middle = low + (high - low) / 2;
        if (offset[middle] <= ring)
            low = middle;
        else
            high = middle;
    }
    pass->part = low;
    return oj_flat_buf_begin_part(pass->out, OJ_PART_POLYGON, err);
}

/* Adds the clipped ring to the output, unless the whole ring is on one side of
 * the window and has no extreme vertex. */
static oj_status end_ring(struct clip_pass *pass, struct oj_error *err)
{
    const struct oj_polygon_clip *clip = pass->clip;
    const double *x = clip->flat->x + clip->first_vertex;
    const double *y = clip->flat->y + clip->first_vertex;
    double *to_x, *to_y;
    if (pass->n_runs == 1 && pass->sides != 0 &&
        !ring_has_extreme(clip, pass->ring))
        return OJ_OK;
    OJ_TRY(keep_vertex(pass, pass->last, err));
    OJ_TRY(begin_polygon_of_ring_if_new(pass, err));
    OJ_TRY(oj_flat_buf_begin_ring(pass->out, err));
    OJ_TRY(
        oj_flat_buf_add_vertices(pass->out, pass->n_kept, &to_x, &to_y, err));
    for (int64_t i = 0; i < pass->n_kept; i++)
    {
        to_x[i] = x[clip->left[i]];
        to_y[i] = y[clip->left[i]];
    }
    return OJ_OK;
}

/* Processes the vertices first .. end - 1, of any rings, all of them on `sides`
 * of the window. */
static oj_status clip_vertices(struct clip_pass *pass, int64_t first,
                               int64_t end, unsigned sides,
                               struct oj_error *err)
{
    const struct oj_polygon_clip *clip = pass->clip;
    while (first < end && pass->n_left <= pass->most)
    {
        int64_t behind;
        if (first == ring_start(clip, pass->ring))
        {
            if (sides != 0)
                pass->ring = skip_rings(clip, pass->ring, end);
            first = ring_start(clip, pass->ring);
            if (first >= end)
                break;
            begin_ring(pass);
        }
        behind = ring_start(clip, pass->ring + 1);
        behind = behind < end ? behind : end;
        OJ_TRY(clip_vertices_of_ring(pass, first, behind, sides, err));
        first = behind;
        if (first == ring_start(clip, pass->ring + 1))
        {
            OJ_TRY(end_ring(pass, err));
            pass->ring++;
        }
    }
    return OJ_OK;
}

static oj_status clip_entry(struct clip_pass *pass, int64_t entry,
                            struct oj_error *err)
{
    const struct oj_polygon_clip *clip = pass->clip;
    const double *x = clip->flat->x + clip->first_vertex;
    const double *y = clip->flat->y + clip->first_vertex;
    const struct oj_box *window = &pass->window;
    for (int64_t v = RUN * entry; v < RUN * (entry + 1) && v < clip->n_vertices;
         v++)
    {
        const unsigned sides =
            (x[v] < window->x0 ? LEFT : 0u) | (x[v] > window->x1 ? RIGHT : 0u) |
            (y[v] < window->y0 ? BELOW : 0u) | (y[v] > window->y1 ? ABOVE : 0u);
        OJ_TRY(clip_vertices(pass, v, v + 1, sides, err));
    }
    return OJ_OK;
}

/* Processes the vertices under a node of the tree, in their order. */
static oj_status clip_node(struct clip_pass *pass, int level, int64_t at,
                           struct oj_error *err)
{
    const struct oj_polygon_clip *clip = pass->clip;
    const struct oj_tree *tree = &clip->tree;
    const struct oj_tree_node *node =
        tree->node + tree->level_first[level] + at;
    for (int c = 0; c < OJ_FANOUT && pass->n_left <= pass->most; c++)
    {
        const int64_t child = at * OJ_FANOUT + c;
        const int64_t first = RUN * (child << 3 * level);
        const unsigned sides = sides_of_child(pass, node, c);
        int64_t end = RUN * ((child + 1) << 3 * level);
        if (first >= clip->n_vertices)
            break;
        end = end < clip->n_vertices ? end : clip->n_vertices;
        if (sides != 0)
            OJ_TRY(clip_vertices(pass, first, end, sides, err));
        else if (level > 0)
            OJ_TRY(clip_node(pass, level - 1, child, err));
        else
            OJ_TRY(clip_entry(pass, child, err));
    }
    return OJ_OK;
}

oj_status oj_polygon_clip_near(struct oj_polygon_clip *clip,
                               const struct oj_box *box, int64_t most,
                               struct oj_flat_buf *out, int *is_clipped,
                               struct oj_error *err)
{
    struct clip_pass pass = {
        .clip = clip, .out = out, .most = most, .part = -1};
    oj_flat_buf_clear(out);
    set_window(&pass, box);
    OJ_TRY(oj_flat_buf_begin_feature(out, 0, err));
    OJ_TRY(clip_node(&pass, clip->tree.n_levels - 1, 0, err));
    OJ_TRY(oj_flat_buf_end_feature(out, err));
    *is_clipped = pass.n_left <= most;
    return OJ_OK;
}
