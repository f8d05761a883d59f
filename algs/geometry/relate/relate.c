#include "relate.h"

#include "../../foundations/base/cpu_lane_loops.h"
#include "../../foundations/kernels/oj_segment_intersection.h"

#include <string.h>

/* Number of nodes (vertices, crossings of edges) between two checks of the
 * cancel flag. */
#define NODES_PER_POLL 1024

/* State of the comparison of two shapes. */
struct relate
{
    const struct oj_relation *relation; /* the relation to be decided; NULL:
                                           compute the whole matrix */
    struct oj_figure *side[2];
    struct oj_node_scratch *node;
    struct oj_matrix *matrix;
    const int *cancel;
    int n_until_poll;
};

static void add_to_matrix(struct oj_matrix *matrix, int figure,
                          enum oj_matrix_place own, enum oj_matrix_place other,
                          int dimension)
{
    if (figure == 0)
        oj_matrix_add(matrix, own, other, dimension);
    else
        oj_matrix_add(matrix, other, own, dimension);
}

static int are_both_features_simple(const struct relate *r)
{
    return r->side[0]->is_simple && r->side[1]->is_simple;
}

/* Returns 1 if op is decided by two facts: the areas of the features overlap,
 * and each feature has points outside of the other. */
static int do_overlapping_areas_decide(enum oj_op op)
{
    switch (op)
    {
        case OJ_OP_INTERSECTS:
        case OJ_OP_WITHIN:
        case OJ_OP_CONTAINS:
        case OJ_OP_COVERS:
        case OJ_OP_COVEREDBY:
        case OJ_OP_CONTAINS_PROPERLY:
        case OJ_OP_TOUCHES:
        case OJ_OP_CROSSES:
        case OJ_OP_OVERLAPS:
        case OJ_OP_EQUALS:
        case OJ_OP_DISJOINT:
            return 1;
        case OJ_OP_RELATE:
        case OJ_OP_NEAREST:
        case OJ_OP_DWITHIN:
        case OJ_OP_BBOX:
        case OJ_OP_SIMILAR:
        case OJ_OP_ATTRIBUTES:
        case OJ_N_OPS:
            return 0;
    }
    return 0;
}

/* Returns 1 if the entries so far decide the relation, whichever entries are
 * added later. */
static int does_matrix_so_far_decide(const struct relate *r)
{
    const char *m = r->matrix->at;
    int a_outside = m[2] != 'F' || m[5] != 'F';
    int b_outside = m[6] != 'F' || m[7] != 'F';
    if (r->relation == NULL)
        return 0;
    if (m[0] == '2' && m[2] != 'F' && m[6] != 'F' &&
        do_overlapping_areas_decide(r->relation->op))
        return 1;
    switch (r->relation->op)
    {
        case OJ_OP_INTERSECTS:
        case OJ_OP_DISJOINT:
            return m[0] != 'F' || m[1] != 'F' || m[3] != 'F' || m[4] != 'F';
        case OJ_OP_WITHIN:
        case OJ_OP_COVEREDBY:
            return a_outside;
        case OJ_OP_CONTAINS:
        case OJ_OP_COVERS:
            return b_outside;
        case OJ_OP_CONTAINS_PROPERLY:
            return b_outside || m[3] != 'F' || m[4] != 'F';
        case OJ_OP_EQUALS:
            return a_outside || b_outside;
        case OJ_OP_TOUCHES:
            return m[0] != 'F';
        case OJ_OP_CROSSES: /* the dimensions of the features matter, too */
            return are_both_features_simple(r) && m[0] != 'F' &&
                   ((m[2] != 'F' && m[6] == '2') ||
                    (m[6] != 'F' && m[2] == '2'));
        default:
            return 0;
    }
}

static oj_status check_cancel_by_nodes(struct relate *r, struct oj_error *err)
{
    if (--r->n_until_poll > 0)
        return OJ_OK;
    r->n_until_poll = NODES_PER_POLL;
    return oj_check_cancel(r->cancel, err);
}

static oj_status add_node_to_matrix(struct relate *r,
                                    const struct oj_node *node, int *is_vertex,
                                    struct oj_error *err)
{
    OJ_TRY(check_cancel_by_nodes(r, err));
    return oj_relate_node_add_to_matrix(r->side[0], r->side[1], node, r->node,
                                        r->matrix, is_vertex, err);
}

static oj_status relate_vertex(struct relate *r, double x, double y,
                               struct oj_error *err)
{
    const struct oj_node node = {x, y, 0.0, {NULL, NULL}};
    int is_vertex;
    return add_node_to_matrix(r, &node, &is_vertex, err);
}

/* --- topologically valid shapes ------------------------------------------- */

static int has_parts_of_kind_only(const struct oj_figure *f, unsigned kind)
{
    return f->shape->kinds == kind;
}

/* Adds to the matrix a vertex of a simple figure and its surroundings. `other`
 * is the place of the vertex in the other shape, interior or exterior. The
 * surroundings have this place, too, because the vertex is not on a
 * boundary. */
static void add_vertex_not_on_other_boundary(struct relate *r, int figure,
                                             double x, double y,
                                             enum oj_matrix_place other)
{
    const struct oj_figure *f = r->side[figure];
    struct oj_matrix *m = r->matrix;
    if (has_parts_of_kind_only(f, OJ_PART_POINT))
        add_to_matrix(m, figure, OJ_PLACE_INTERIOR, other, 0);
    else if (has_parts_of_kind_only(f, OJ_PART_LINE))
    {
        add_to_matrix(m, figure, OJ_PLACE_INTERIOR, other, 1);
        if (oj_relate_points_contain(&f->ends, x, y))
            add_to_matrix(m, figure, OJ_PLACE_BOUNDARY, other, 0);
    }
    else
    {
        add_to_matrix(m, figure, OJ_PLACE_INTERIOR, other, 2);
        add_to_matrix(m, figure, OJ_PLACE_BOUNDARY, other, 1);
    }
    add_to_matrix(m, figure, OJ_PLACE_EXTERIOR, other, 2);
}

/* Adds a vertex of a figure, if both figures are simple (topologically valid,
 * with parts of one kind). */
static oj_status relate_simple_vertex(struct relate *r, int figure, double x,
                                      double y, struct oj_error *err)
{
    struct oj_figure *other = r->side[1 - figure];
    enum oj_location location = OJ_OUTSIDE;
    if (oj_box_contains_point(&other->box, x, y))
        OJ_TRY(oj_relate_figure_locate(other, x, y, r->node, &location, err));
    if (location == OJ_ON_BOUNDARY)
        return relate_vertex(r, x, y, err);
    add_vertex_not_on_other_boundary(r, figure, x, y,
                                     location == OJ_INSIDE ? OJ_PLACE_INTERIOR
                                                           : OJ_PLACE_EXTERIOR);
    return OJ_OK;
}

/* Returns 1 if the part of the figure that is outside of the other shape's box
 * cannot change the matrix. */
static int is_exterior_row_complete(const struct relate *r, int figure)
{
    const char *m = r->matrix->at;
    return r->side[figure]->n_groups > 0 && m[figure == 0 ? 2 : 6] == '2' &&
           m[figure == 0 ? 5 : 7] == '1';
}

/* Adds a vertex; with a fast path for two simple figures. */
static oj_status relate_vertex_if_needed(struct relate *r, int figure, double x,
                                         double y, struct oj_error *err)
{
    if (are_both_features_simple(r))
        return relate_simple_vertex(r, figure, x, y, err);
    if (!oj_box_contains_point(&r->side[1 - figure]->box, x, y) &&
        is_exterior_row_complete(r, figure))
        return OJ_OK;
    return relate_vertex(r, x, y, err);
}

/* --- a large polygon and a small shape ------------------------------------ */

/* The vertices of a polygon with at least LARGE_EDGES edges, and at least
 * LARGE_RATIO times as many as the other shape, are searched by the other
 * shape's box. Pays: "One pair of many parts" in
 * driver/docs/benchmarks/cpu.md. */
#define LARGE_EDGES 256
#define LARGE_RATIO 4

static int is_large_simple_polygon(const struct relate *r, int figure)
{
    const struct oj_figure *f = r->side[figure];
    return f->n_edges >= LARGE_EDGES &&
           f->n_edges >= LARGE_RATIO * r->side[1 - figure]->n_edges &&
           are_both_features_simple(r) &&
           has_parts_of_kind_only(f, OJ_PART_POLYGON);
}

static oj_status relate_edge_start_in_box(struct relate *r, int figure,
                                          const struct oj_edge *e,
                                          const struct oj_box *box,
                                          struct oj_error *err)
{
    if (!oj_box_contains_point(box, e->ax, e->ay))
        return OJ_OK;
    return relate_simple_vertex(r, figure, e->ax, e->ay, err);
}

/* Adds the vertices of a large polygon. Vertices outside of the other shape's
 * box all add equal entries. Each vertex in the box is the start of an edge,
 * since rings are closed, and is visited in the band of its height only. */
static oj_status relate_vertices_of_large_polygon(struct relate *r, int figure,
                                                  struct oj_error *err)
{
    struct oj_figure *f = r->side[figure];
    const struct oj_box *box = &r->side[1 - figure]->box;
    int32_t band = oj_relate_band_of(&f->bands, box->y0);
    int32_t last = oj_relate_band_of(&f->bands, box->y1);
    if (!oj_box_covers(box, &f->box))
        add_vertex_not_on_other_boundary(r, figure, f->box.x0, f->box.y0,
                                         OJ_PLACE_EXTERIOR);
    if (f->tree.n > 0)
    {
        OJ_TRY(oj_edge_tree_find(&f->tree, box, 0, &f->near, err));
        for (int64_t k = 0; k < f->near.n && !does_matrix_so_far_decide(r); k++)
            OJ_TRY(relate_edge_start_in_box(
                r, figure, &f->edge[f->near.edge[k]], box, err));
        return OJ_OK;
    }
    for (; band <= last; band++)
    {
        int64_t n = oj_relate_band_size(f, band);
        for (int64_t k = 0; k < n && !does_matrix_so_far_decide(r); k++)
        {
            const struct oj_edge *e = &f->edge[oj_relate_band_edge(f, band, k)];
            if (oj_relate_band_of(&f->bands, e->ay) == band)
                OJ_TRY(relate_edge_start_in_box(r, figure, e, box, err));
        }
    }
    return OJ_OK;
}

/* --- all vertices --------------------------------------------------------- */

static oj_status relate_all_vertices(struct relate *r, int figure,
                                     struct oj_error *err)
{
    const struct oj_figure *f = r->side[figure];
    const struct oj_relate_point *point = f->points.point;
    if (does_matrix_so_far_decide(r))
        return OJ_OK;
    if (is_large_simple_polygon(r, figure))
        return relate_vertices_of_large_polygon(r, figure, err);
    for (int64_t i = 0; i < f->points.n && !does_matrix_so_far_decide(r); i++)
        OJ_TRY(relate_vertex_if_needed(r, figure, point[i].x, point[i].y, err));
    /* simple figures have no dots (rings of a single point) */
    for (int64_t i = 0; i < f->n_dots && !does_matrix_so_far_decide(r); i++)
        OJ_TRY(relate_vertex_if_needed(r, figure, f->dot[i].at.x,
                                       f->dot[i].at.y, err));
    for (int64_t i = 0; i < f->n_edges && !does_matrix_so_far_decide(r); i++)
    {
        const struct oj_edge *e = &f->edge[i];
        OJ_TRY(relate_vertex_if_needed(r, figure, e->ax, e->ay, err));
        if (i + 1 == f->n_edges || e[1].ax != e->bx || e[1].ay != e->by)
            OJ_TRY(relate_vertex_if_needed(r, figure, e->bx, e->by, err));
    }
    return OJ_OK;
}

/* Returns 1 if crossings of edges cannot change the matrix any more, or if the
 * relation is decided. Between simple figures all crossings add equal entries.
 * For two lines only the entry of the crossing itself is certain, because other
 * edges may pass there. */
static int are_crossings_redundant(const struct relate *r)
{
    int a_is_area = has_parts_of_kind_only(r->side[0], OJ_PART_POLYGON);
    int b_is_area = has_parts_of_kind_only(r->side[1], OJ_PART_POLYGON);
    int line = b_is_area ? 0 : 1;
    struct oj_matrix more = *r->matrix;
    if (!are_both_features_simple(r) || does_matrix_so_far_decide(r))
        return does_matrix_so_far_decide(r);
    if (!a_is_area && !b_is_area)
        oj_matrix_add(&more, OJ_PLACE_INTERIOR, OJ_PLACE_INTERIOR, 0);
    else if (a_is_area && b_is_area)
    {
        memcpy(more.at, "2121", 4);
        oj_matrix_add(&more, OJ_PLACE_BOUNDARY, OJ_PLACE_BOUNDARY, 0);
        memcpy(more.at + 5, "1212", 4);
    }
    else
    {
        add_to_matrix(&more, line, OJ_PLACE_INTERIOR, OJ_PLACE_INTERIOR, 1);
        add_to_matrix(&more, line, OJ_PLACE_INTERIOR, OJ_PLACE_EXTERIOR, 1);
        add_to_matrix(&more, line, OJ_PLACE_INTERIOR, OJ_PLACE_BOUNDARY, 0);
    }
    return memcmp(&more, r->matrix, sizeof more) == 0;
}

/* --- pairs of edges ------------------------------------------------------- */

static inline struct oj_box box_of_edge(const struct oj_edge *e)
{
    return oj_box_of_segment(e->ax, e->ay, e->bx, e->by);
}

/* box: the box of e */
OJ_INLINE int edges_cross(const struct oj_edge *e, const struct oj_box *box,
                          const struct oj_edge *f)
{
    struct oj_box other = box_of_edge(f);
    return oj_box_intersects(box, &other) &&
           oj_segments_contact(e->ax, e->ay, e->bx, e->by, f->ax, f->ay, f->bx,
                               f->by) == OJ_CROSSING;
}

static int edge_box_intersects(const struct oj_edge *e,
                               const struct oj_box *box)
{
    struct oj_box own = box_of_edge(e);
    return oj_box_intersects(&own, box);
}

static oj_status add_crossing_to_matrix(struct relate *r,
                                        const struct oj_edge *e,
                                        const struct oj_edge *f,
                                        struct oj_error *err)
{
    const struct oj_node node = oj_relate_node_of_crossing(e, f);
    int is_vertex;
    return add_node_to_matrix(r, &node, &is_vertex, err);
}

/* relate_edge_crossings() for a figure with a tree of edges. box: the box of e.
 */
static oj_status
relate_edge_crossings_by_tree(struct relate *r, const struct oj_edge *e,
                              const struct oj_box *box, struct oj_figure *to,
                              int64_t least, struct oj_error *err)
{
    OJ_TRY(oj_edge_tree_find(&to->tree, box, 0, &to->near, err));
    for (int64_t k = 0; k < to->near.n; k++)
    {
        const struct oj_edge *f = &to->edge[to->near.edge[k]];
        if (to->near.edge[k] < least || !edges_cross(e, box, f))
            continue;
        OJ_TRY(add_crossing_to_matrix(r, e, f, err));
        if (are_crossings_redundant(r))
            return OJ_OK;
    }
    return OJ_OK;
}

/* Adds the crossings of edge e with those edges of `to` whose index is at least
 * `least`. A crossing of two edges that share several bands is added in the
 * first of these bands. */
static oj_status relate_edge_crossings(struct relate *r,
                                       const struct oj_edge *e,
                                       struct oj_figure *to, int64_t least,
                                       struct oj_error *err)
{
    const struct oj_box box = box_of_edge(e);
    int32_t first = oj_relate_band_of(&to->bands, box.y0);
    int32_t last = oj_relate_band_of(&to->bands, box.y1);
    if (to->tree.n > 0)
        return relate_edge_crossings_by_tree(r, e, &box, to, least, err);
    for (int32_t band = first; band <= last; band++)
    {
        int64_t n = oj_relate_band_size(to, band);
        for (int64_t k = 0; k < n; k++)
        {
            int64_t i = oj_relate_band_edge(to, band, k);
            const struct oj_edge *f = &to->edge[i];
            int32_t own;
            if (i < least || !edges_cross(e, &box, f))
                continue;
            own = oj_relate_band_of(&to->bands, f->ay < f->by ? f->ay : f->by);
            if (band != (own > first ? own : first))
                continue;
            OJ_TRY(add_crossing_to_matrix(r, e, f, err));
            if (are_crossings_redundant(r))
                return OJ_OK;
        }
    }
    return OJ_OK;
}

static oj_status relate_all_crossings(struct relate *r, struct oj_error *err)
{
    int swap = r->side[0]->n_edges > r->side[1]->n_edges;
    const struct oj_figure *few = r->side[swap];
    struct oj_figure *many = r->side[1 - swap];
    for (int64_t i = 0; i < few->n_edges && !are_crossings_redundant(r); i++)
    {
        if (!edge_box_intersects(&few->edge[i], &many->box))
            continue;
        OJ_TRY(check_cancel_by_nodes(r, err));
        OJ_TRY(relate_edge_crossings(r, &few->edge[i], many, 0, err));
    }
    return OJ_OK;
}

/* --- shapes that are not topologically valid ------------------------------ */

/* Adds the points in which edges of one figure cross each other. */
static oj_status relate_own_crossings(struct relate *r, int figure,
                                      struct oj_error *err)
{
    struct oj_figure *f = r->side[figure];
    for (int64_t i = 0; i < f->n_edges && !does_matrix_so_far_decide(r); i++)
    {
        OJ_TRY(check_cancel_by_nodes(r, err));
        if (!edge_box_intersects(&f->edge[i], &r->side[1 - figure]->box) &&
            is_exterior_row_complete(r, figure))
            continue;
        OJ_TRY(relate_edge_crossings(r, &f->edge[i], f, i + 1, err));
    }
    return OJ_OK;
}

/* --- both shapes ---------------------------------------------------------- */

oj_status oj_shapes_relate(const struct oj_relation *relation,
                           const struct oj_shape *input, int input_is_valid,
                           const struct oj_shape *join_side, int join_is_valid,
                           const int *cancel, struct oj_relate_scratch *scratch,
                           struct oj_matrix *matrix, struct oj_error *err)
{
    struct relate r = {relation,       {&scratch->input, &scratch->join_side},
                       &scratch->node, matrix,
                       cancel,         NODES_PER_POLL};
    *matrix = oj_matrix_empty();
    OJ_TRY(oj_relate_figure_make(&scratch->input, input, input_is_valid,
                                 &scratch->node, err));
    OJ_TRY(oj_relate_figure_make(&scratch->join_side, join_side, join_is_valid,
                                 &scratch->node, err));
    for (int figure = 0; figure < 2; figure++)
    {
        OJ_TRY(relate_all_vertices(&r, figure, err));
        if (!r.side[figure]->is_valid)
            OJ_TRY(relate_own_crossings(&r, figure, err));
    }
    return relate_all_crossings(&r, err);
}

oj_status oj_relate_locate_point(const struct oj_shape *shape, double x,
                                 double y, struct oj_relate_scratch *scratch,
                                 enum oj_matrix_place *place,
                                 struct oj_error *err)
{
    const struct oj_node node = {x, y, 0.0, {NULL, NULL}};
    const struct oj_flat point = oj_flat_of_points(1, NULL, &x, &y);
    struct oj_shape of_point = oj_shape_of(&point, 0);
    struct oj_matrix matrix = oj_matrix_empty();
    int is_vertex;
    oj_relate_figure_forget_layer(&scratch->input);
    OJ_TRY(oj_relate_figure_make(&scratch->input, &of_point, 1, &scratch->node,
                                 err));
    oj_relate_figure_forget_layer(&scratch->input);
    OJ_TRY(oj_relate_figure_make(&scratch->join_side, shape, 0, &scratch->node,
                                 err));
    OJ_TRY(oj_relate_node_add_to_matrix(&scratch->input, &scratch->join_side,
                                        &node, &scratch->node, &matrix,
                                        &is_vertex, err));
    *place = matrix.at[0] != 'F'   ? OJ_PLACE_INTERIOR
             : matrix.at[1] != 'F' ? OJ_PLACE_BOUNDARY
                                   : OJ_PLACE_EXTERIOR;
    return OJ_OK;
}

void oj_relate_scratch_forget_layers(struct oj_relate_scratch *scratch)
{
    oj_relate_figure_forget_layer(&scratch->input);
    oj_relate_figure_forget_layer(&scratch->join_side);
}

void oj_relate_scratch_free(struct oj_relate_scratch *scratch)
{
    oj_relate_figure_free(&scratch->input);
    oj_relate_figure_free(&scratch->join_side);
    oj_relate_node_scratch_free(&scratch->node);
}
