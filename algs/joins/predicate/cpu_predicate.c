/* Engine for joins by predicate.
 *
 * Rows are processed in spatial order. Candidates are the features whose boxes
 * pass the test of the predicate (cpu_prepared_shapes.h), or those found by a
 * screen on the GPU. A candidate that the pair filter accepts is decided by the
 * fast exact kernels (cpu_prepared_shapes.h); pairs that these leave undecided
 * are decided by the DE-9IM matrix (relate.h).
 *
 * If one pair of a row is enough, its candidates are listed in parts, and the
 * search of the row ends when a pair is found. If it must be the first pair in
 * tie order, the search goes on, but leaves out nodes of the tree whose
 * features all rank after the pair found. So a row does not list all of the
 * many features that may lie at its location. */
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_clock.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../foundations/kernels/oj_pair_verdict.h"
#include "../../foundations/relation/oj_is_points_in_polygons.h"
#include "../../foundations/relation/oj_matrix.h"
#include "../../foundations/relation/oj_screen.h"
#include "../../geometry/relate/relate.h"
#include "../../geometry/relate/relate_shared_borders.h"
#include "../../geometry/shapes/cpu_prepared_shapes.h"
#include "../../pairs/selection/oj_parallel_row_search.h"
#include "../../pairs/selection/oj_tie_rank_sort.h"

#include <stdatomic.h>
#include <string.h>

/* --- decisions without the matrix -----------------------------------------
 *
 *  Lines and polygons are decided by three facts: the locations of vertices,
 *  whether edges cross, and whether edges touch. If edges touch without
 *  crossing, the borders (decide_by_borders()) or the matrix decide.
 */

enum decision
{
    DECISION_NO = 0,
    DECISION_YES,
    DECISION_UNSURE
};

/* Flags: a decision is only right if these shapes are topologically valid
 * (oj_shape_is_valid()). */
enum needs_valid
{
    NEEDS_VALID_A = 1,
    NEEDS_VALID_B = 2
};

#define NEEDS_BOTH ((unsigned)NEEDS_VALID_A | (unsigned)NEEDS_VALID_B)

/* Three definitions of "a is inside b". */
enum inside
{
    COVERED,  /* no point of a is outside */
    WITHIN,   /* no point of a is outside of b, and the interiors intersect */
    PROPERLY, /* all points of a are in the interior of b */
};

/* Returns 1 if op is a kind of containment and sets *how to its definition.
 * *is_around becomes 1 if the join feature must be inside of the input feature,
 * 0 for the reverse. */
static int classify_containment_op(enum oj_op op, enum inside *how,
                                   int *is_around)
{
    *is_around = op == OJ_OP_CONTAINS || op == OJ_OP_COVERS ||
                 op == OJ_OP_CONTAINS_PROPERLY;
    *how = op == OJ_OP_WITHIN || op == OJ_OP_CONTAINS ? WITHIN
           : op == OJ_OP_CONTAINS_PROPERLY            ? PROPERLY
                                                      : COVERED;
    return *is_around || op == OJ_OP_WITHIN || op == OJ_OP_COVEREDBY;
}

int oj_screen_rule_of(const struct oj_relation *relation,
                      struct oj_screen_rule *out)
{
    enum oj_op op = relation->op;
    enum inside how;
    int is_around, is_inside = classify_containment_op(op, &how, &is_around);
    out->test = is_inside            ? is_around ? OJ_BOX_WITHIN : OJ_BOX_COVERS
                : op == OJ_OP_EQUALS ? OJ_BOX_EQUALS
                                     : OJ_BOX_MEETS;
    out->is_enough = op == OJ_OP_BBOX;
    out->asks_meeting = !is_inside && op != OJ_OP_EQUALS && op != OJ_OP_BBOX;
    out->takes_all = op == OJ_OP_RELATE && !oj_relation_needs_contact(relation);
    return (oj_op_get(op)->takes & OJ_TAKES_SHAPES) != 0 && !out->takes_all;
}

int oj_screen_decides_most_pairs(const struct oj_relation *relation)
{
    return relation->op == OJ_OP_INTERSECTS || relation->op == OJ_OP_DISJOINT ||
           oj_relation_is_bbox(relation);
}

/* Sets of locations, as bits 1 << enum oj_location: where vertices of a shape
 * lie in another shape. */
#define SOME_OUTSIDE (1u << OJ_OUTSIDE)
#define SOME_INSIDE (1u << OJ_INSIDE)
#define SOME_ON_BOUNDARY (1u << OJ_ON_BOUNDARY)

/* Returns the locations that a's vertices have in b, as a set of bits. Stops
 * when a location in `enough` was found. */
static unsigned locate_vertices(const struct oj_shape *a,
                                const struct oj_shape *b, unsigned enough)
{
    const double *x = a->flat->x + a->first_vertex;
    const double *y = a->flat->y + a->first_vertex;
    unsigned found = 0;
    for (int64_t i = 0; i < a->n_vertices && (found & enough) == 0; i++)
        found |= 1u << oj_shape_locate(b, x[i], y[i]);
    return found;
}

/* Returns 1 if any vertex of a has one of these locations in b. */
static int has_vertex_at_locations(const struct oj_shape *a,
                                   const struct oj_shape *b, unsigned places)
{
    return (locate_vertices(a, b, places) & places) != 0;
}

/* --- containment ---------------------------------------------------------- */

static enum decision decision_yes_or_no(int condition)
{
    return condition ? DECISION_YES : DECISION_NO;
}

/* Returns 1 if the first vertex of any ring of polygon b is inside or on the
 * boundary of polygon a. */
static int has_ring_starting_in(const struct oj_shape *b,
                                const struct oj_shape *a)
{
    for (int64_t r = 0; r < b->n_rings; r++)
    {
        int64_t n, v = oj_shape_ring_vertices(b, r, &n);
        if (oj_shape_locate(a, b->flat->x[v], b->flat->y[v]) != OJ_OUTSIDE)
            return 1;
    }
    return 0;
}

/* Returns the flags NEEDS_VALID_.. of the shapes that must be topologically
 * valid, so that a decision by the locations `found` of points is right. In
 * invalid polygons parts may overlap or share edges, or have no area. */
static unsigned validity_needed_for_points(const struct oj_shape *a,
                                           const struct oj_shape *b,
                                           unsigned found)
{
    int is_on = (found & SOME_ON_BOUNDARY) != 0;
    return (a->may_overlap || (is_on && a->kinds == OJ_PART_POLYGON)
                ? (unsigned)NEEDS_VALID_A
                : 0u) |
           (b->may_overlap || (is_on && b->kinds == OJ_PART_POLYGON)
                ? (unsigned)NEEDS_VALID_B
                : 0u);
}

static enum decision decide_points_inside(const struct oj_shape *a,
                                          const struct oj_shape *b,
                                          enum inside how, unsigned *needs)
{
    unsigned found =
        locate_vertices(a, b,
                        how == PROPERLY && b->kinds == OJ_PART_POLYGON
                            ? SOME_OUTSIDE | SOME_ON_BOUNDARY
                            : SOME_OUTSIDE);
    *needs = validity_needed_for_points(a, b, how == COVERED ? 0u : found);
    if (found & SOME_OUTSIDE)
        return DECISION_NO;
    if (b->kinds == OJ_PART_POINT || how == COVERED)
        return DECISION_YES;
    if (b->kinds == OJ_PART_LINE) /* The ends of a line are usually its
                                     boundary, so the matrix must decide. */
        return DECISION_UNSURE;
    return decision_yes_or_no(how == WITHIN ? (found & SOME_INSIDE) != 0
                                            : (found & SOME_ON_BOUNDARY) == 0);
}

static int is_line_or_single_ring(const struct oj_shape *shape)
{
    return shape->kinds == OJ_PART_LINE || shape->n_rings == 1;
}

/* Decides whether a, of lines or polygons, is inside polygon b, provided that
 * both are topologically valid. At a crossing of edges, each shape has points
 * outside of the other. Without contact of edges, each part of a is wholly
 * inside or outside of b, and a is inside only if no ring of b is in it. */
static enum decision decide_lines_or_polygons_inside(const struct oj_shape *a,
                                                     const struct oj_shape *b,
                                                     enum inside how)
{
    enum oj_location window =
        oj_box_intersects(&a->box, &b->box)
            ? oj_shape_grid_locate_box(oj_shape_edge_grid(b), b, &a->box)
            : OJ_OUTSIDE;
    if (window != OJ_ON_BOUNDARY)
        return decision_yes_or_no(window == OJ_INSIDE);
    /* For PROPERLY, a vertex on the boundary of b excludes the pair. */
    if (has_vertex_at_locations(
            a, b, SOME_OUTSIDE | (how == PROPERLY ? SOME_ON_BOUNDARY : 0u)))
        return DECISION_NO;
    if (oj_shapes_contact(a, b, OJ_TOUCHING) != OJ_APART)
        return how == PROPERLY ? DECISION_NO : DECISION_UNSURE;
    return decision_yes_or_no(a->kinds == OJ_PART_LINE ||
                              !has_ring_starting_in(b, a));
}

/* Decides whether a is inside of b. Sets *needs to the flags NEEDS_VALID_.. of
 * the shapes that must be topologically valid for the decision to be right. */
static enum decision decide_inside(const struct oj_shape *a,
                                   const struct oj_shape *b, enum inside how,
                                   unsigned *needs)
{
    *needs = 0;
    if (a->kinds == OJ_PART_POINT)
        return decide_points_inside(a, b, how, needs);
    *needs = NEEDS_BOTH;
    if (b->kinds == OJ_PART_POLYGON)
        return decide_lines_or_polygons_inside(a, b, how);
    /* A line is never inside of points, a polygon never inside of lines or
     * points. */
    if (a->kinds != b->kinds)
        return DECISION_NO;
    /* Both are lines. */
    return has_vertex_at_locations(a, b, SOME_OUTSIDE) ? DECISION_NO
                                                       : DECISION_UNSURE;
}

/* --- touching, crossing, overlapping, equal ------------------------------- */

static int are_shapes_of_two_kinds(const struct oj_shape *a,
                                   const struct oj_shape *b, uint8_t kind,
                                   uint8_t other)
{
    return (a->kinds == kind && b->kinds == other) ||
           (a->kinds == other && b->kinds == kind);
}

static enum decision decide_touches(const struct oj_shape *a,
                                    const struct oj_shape *b, unsigned *needs)
{
    *needs = 0;
    if (a->kinds == OJ_PART_POINT && b->kinds == OJ_PART_POINT)
        return DECISION_NO;
    if (are_shapes_of_two_kinds(a, b, OJ_PART_POINT, OJ_PART_POLYGON))
    {
        unsigned found = a->kinds == OJ_PART_POINT ? locate_vertices(a, b, 0)
                                                   : locate_vertices(b, a, 0);
        *needs = validity_needed_for_points(a, b, found);
        return decision_yes_or_no((found & SOME_INSIDE) == 0);
    }
    if (a->kinds == OJ_PART_POINT || b->kinds == OJ_PART_POINT)
        return DECISION_UNSURE;
    /* If a vertex of one shape is inside of the other, a polygon, the interiors
     * intersect near this vertex. */
    *needs = NEEDS_BOTH;
    if ((b->kinds == OJ_PART_POLYGON &&
         has_vertex_at_locations(a, b, SOME_INSIDE)) ||
        (a->kinds == OJ_PART_POLYGON &&
         has_vertex_at_locations(b, a, SOME_INSIDE)))
        return DECISION_NO;
    return DECISION_UNSURE;
}

/* Decides OJ_OP_CROSSES for lines with polygons and OJ_OP_OVERLAPS for
 * polygons. Returns DECISION_NO for kinds that can never cross or overlap, and
 * DECISION_UNSURE for all others. */
static enum decision decide_crosses_or_overlaps(enum oj_op op,
                                                const struct oj_shape *a,
                                                const struct oj_shape *b,
                                                unsigned *needs)
{
    int crosses = op == OJ_OP_CROSSES, is_simple;
    enum oj_contact contact;
    *needs = NEEDS_BOTH;
    if (crosses ? a->kinds == b->kinds && a->kinds != OJ_PART_LINE
                : a->kinds != b->kinds)
        return DECISION_NO;
    /* The matrix decides the remaining combinations of kinds. */
    if (crosses ? !are_shapes_of_two_kinds(a, b, OJ_PART_LINE, OJ_PART_POLYGON)
                : a->kinds != OJ_PART_POLYGON)
        return DECISION_UNSURE;
    contact = oj_shapes_contact(a, b, OJ_CROSSING);
    /* The interiors intersect near a crossing, unless another ring of a polygon
     * touches the crossed edge in exactly this point. */
    if (contact == OJ_CROSSING)
        return is_line_or_single_ring(a) && is_line_or_single_ring(b)
                   ? DECISION_YES
                   : DECISION_UNSURE;
    /* Without contact of edges, a line of one part that intersects a polygon is
     * wholly inside of it, and of two intersecting polygons of one ring each,
     * one contains the other. */
    is_simple = crosses ? (a->kinds == OJ_PART_LINE ? a : b)->n_parts == 1
                        : a->n_rings == 1 && b->n_rings == 1;
    return contact == OJ_APART && is_simple ? DECISION_NO : DECISION_UNSURE;
}

static enum decision decide_equals(const struct oj_shape *a,
                                   const struct oj_shape *b, unsigned *needs)
{
    *needs = NEEDS_BOTH;
    if (a->kinds != b->kinds)
        return DECISION_NO;
    if (oj_flat_same_geometry(a->flat, a->feature, b->flat, b->feature))
        return DECISION_YES;
    /* If the shapes are equal, each vertex of one is on the boundary (or on the
     * line) of the other. */
    return has_vertex_at_locations(a, b, SOME_OUTSIDE | SOME_INSIDE) ||
                   has_vertex_at_locations(b, a, SOME_OUTSIDE | SOME_INSIDE)
               ? DECISION_NO
               : DECISION_UNSURE;
}

/* --- disjoint features ---------------------------------------------------- */

/* Sets the dimensions of interior and boundary of a shape, as DE-9IM letters.
 * Returns 0 for lines of several parts and for collections, whose boundary is
 * not computed here. */
static int de9im_dimensions_of_shape(const struct oj_shape *shape,
                                     char *interior, char *boundary)
{
    const double *x = shape->flat->x + shape->first_vertex;
    const double *y = shape->flat->y + shape->first_vertex;
    int64_t last = shape->n_vertices - 1;
    *boundary = 'F';
    *interior = shape->kinds == OJ_PART_POINT  ? '0'
                : shape->kinds == OJ_PART_LINE ? '1'
                                               : '2';
    if (shape->kinds == OJ_PART_POLYGON)
        *boundary = '1';
    else if (shape->kinds == OJ_PART_LINE && shape->n_parts == 1)
        *boundary = x[0] == x[last] && y[0] == y[last] ? 'F' : '0';
    else if (shape->kinds != OJ_PART_POINT)
        return 0;
    return 1;
}

static enum decision decide_relate_of_disjoint_shapes(const char *mask,
                                                      const struct oj_shape *a,
                                                      const struct oj_shape *b,
                                                      unsigned *needs)
{
    struct oj_matrix matrix = oj_matrix_empty();
    *needs = NEEDS_BOTH;
    if (!de9im_dimensions_of_shape(a, &matrix.at[2], &matrix.at[5]) ||
        !de9im_dimensions_of_shape(b, &matrix.at[6], &matrix.at[7]))
        return DECISION_UNSURE;
    return oj_matrix_matches_pattern(&matrix, mask) ? DECISION_YES
                                                    : DECISION_NO;
}

/* --- all joins ------------------------------------------------------------ */

static enum decision
decide_predicate_without_matrix(const struct oj_relation *relation,
                                const struct oj_shape *a,
                                const struct oj_shape *b, unsigned *needs)
{
    int is_mixed = a->member != NULL || b->member != NULL, is_around;
    enum oj_op op = relation->op;
    enum inside how;
    if (op == OJ_OP_INTERSECTS || op == OJ_OP_DISJOINT)
        return decision_yes_or_no(oj_shapes_intersect(a, b, needs) ==
                                  (op == OJ_OP_INTERSECTS));
    if (!is_mixed && classify_containment_op(op, &how, &is_around))
    {
        enum decision decision =
            decide_inside(is_around ? b : a, is_around ? a : b, how, needs);
        if (is_around) /* the flags are for (b, a) and must be exchanged */
            *needs = (*needs & NEEDS_VALID_A ? (unsigned)NEEDS_VALID_B : 0u) |
                     (*needs & NEEDS_VALID_B ? (unsigned)NEEDS_VALID_A : 0u);
        return decision;
    }
    if (!oj_shapes_intersect(a, b, needs))
        return op == OJ_OP_RELATE && !oj_relation_needs_contact(relation)
                   ? decide_relate_of_disjoint_shapes(relation->mask, a, b,
                                                      needs)
                   : DECISION_NO;
    if (is_mixed)
        return DECISION_UNSURE;
    switch (op)
    {
        case OJ_OP_TOUCHES:
            return decide_touches(a, b, needs);
        case OJ_OP_CROSSES:
        case OJ_OP_OVERLAPS:
            return decide_crosses_or_overlaps(op, a, b, needs);
        case OJ_OP_EQUALS:
            return decide_equals(a, b, needs);
        default:
            return DECISION_UNSURE;
    }
}

/* --- the engine ----------------------------------------------------------- */

/* Rows per task if a GPU screen supplies the candidates: SCREENED_PER_TASK for
 * all rows, OPEN_PER_TASK for rows with undecided pairs, which are few and take
 * long. */
#define SCREENED_PER_TASK 256
#define OPEN_PER_TASK 16

/* Cached topological validity of a shape: results of oj_shape_is_valid() and
 * oj_border_is_simple(). */
enum oj_validity
{
    OJ_VALIDITY_NOT_KNOWN,
    OJ_NOT_VALID,
    OJ_VALID,
    OJ_VALID_SIMPLE
};

/* State of a thread. */
struct predicate_worker
{
    struct oj_row_worker shared;
    struct oj_relate_scratch relate;
    struct oj_border_pair borders;
    struct oj_border own_border; /* scratch of oj_border_is_simple() */
    struct oj_figure figure;     /* scratch of oj_shape_is_valid() */
    struct oj_found found;
    struct oj_shape *member; /* a shape for each part of the current row's
                                shape, if the parts are of several kinds */
    int64_t cap_members;
    struct oj_edge_grid cells;     /* grid of the current row's edges */
    _Atomic uint8_t own_validity;  /* enum oj_validity of the current row */
    _Atomic uint8_t *row_validity; /* cache of the validity of the current row's
                                      shape: own_validity, or the element of a
                                      join feature with an equal geometry */
    uint8_t *is_met; /* [features] 1 if the feature intersects the current row;
                        only for OJ_OP_DISJOINT */
    int64_t n_rows, n_until_poll;

    /* If one pair of a row is enough: the feature of the current row's pair so
     * far, and the limit of tie ranks that can still replace it. only_rank is
     * INT64_MAX if there is no pair yet, the rank of the feature if a feature
     * with a lower rank must replace it, and 0 if any pair is enough. */
    int32_t only_feature;
    int64_t only_rank;
};

/* The prepared join side. */
struct predicate_index
{
    struct oj_row_index shared;
    struct oj_screen_rule rule;
    struct oj_shape_side side; /* the prepared features; if a screen finds the
                                  candidates, built when first needed */
    int has_side;
    int32_t *place_of; /* [features] position of each join feature in `side`;
                          made when pairs of a screen first need it */
    _Atomic uint8_t *validity; /* [features] enum oj_validity: cached validity
                                  of each join feature */
    int32_t *min_rank; /* least tie rank below each node of the side's tree, if
                          the first pair in tie order is enough; otherwise
                          NULL */
};

static const struct oj_relation *
relation_of_index(const struct predicate_index *index)
{
    return &index->shared.args.relation;
}

static struct predicate_worker *
worker_of_thread(const struct predicate_index *index, int thread)
{
    return (void *)oj_row_worker(&index->shared, thread);
}

/* Number of pairs between two polls of the cancel flag. It is also polled
 * before each computation of a matrix. */
#define PAIRS_PER_POLL 256

static oj_status poll_cancel_flag(const struct oj_options *options,
                                  struct predicate_worker *w,
                                  struct oj_error *err)
{
    if (--w->n_until_poll > 0)
        return OJ_OK;
    w->n_until_poll = PAIRS_PER_POLL;
    return oj_check_cancel(options->cancel, err);
}

/* Builds the side on first use, and min_rank if the join needs it. */
static oj_status build_side_if_needed(struct predicate_index *index,
                                      struct oj_error *err)
{
    if (!index->has_side)
        OJ_TRY(oj_shape_side_build(&index->side, index->shared.args.join_side,
                                   index->shared.args.options.n_threads, err));
    if (relation_of_index(index)->enough_pairs == OJ_ENOUGH_FIRST &&
        index->min_rank == NULL)
        OJ_TRY(oj_shape_side_min_ranks(
            &index->side, index->shared.args.tie_rank, &index->min_rank, err));
    index->has_side = 1;
    return OJ_OK;
}

/* --- topological validity of shapes, cached ------------------------------- */

static oj_status compute_validity_of_shape(struct predicate_worker *w,
                                           const struct oj_shape *shape,
                                           enum oj_validity *validity,
                                           struct oj_error *err)
{
    int is_simple, is_valid;
    OJ_TRY(oj_border_is_simple(shape, &w->own_border, &is_simple, err));
    *validity = OJ_VALID_SIMPLE;
    if (is_simple && shape->n_rings == 1)
        return OJ_OK;
    w->n_until_poll = 0; /* poll the cancel flag again after the test, which may
                         take long */
    OJ_TRY(
        oj_shape_is_valid(shape, &w->figure, &w->relate.node, &is_valid, err));
    *validity = !is_valid   ? OJ_NOT_VALID
                : is_simple ? OJ_VALID_SIMPLE
                            : OJ_VALID;
    return OJ_OK;
}

/* Sets *validity to the topological validity of the shape: that in the cache
 * *known, which all threads share, or else a computed one, which it stores
 * there. */
static oj_status find_cached_validity(struct predicate_worker *w,
                                      const struct oj_shape *shape,
                                      _Atomic uint8_t *known,
                                      enum oj_validity *validity,
                                      struct oj_error *err)
{
    *validity =
        (enum oj_validity)atomic_load_explicit(known, memory_order_relaxed);
    if (*validity != OJ_VALIDITY_NOT_KNOWN)
        return OJ_OK;
    OJ_TRY(compute_validity_of_shape(w, shape, validity, err));
    atomic_store_explicit(known, (uint8_t)*validity, memory_order_relaxed);
    return OJ_OK;
}

static oj_status is_feature_topologically_valid(struct predicate_worker *w,
                                                const struct oj_shape *shape,
                                                _Atomic uint8_t *known,
                                                int *yes, struct oj_error *err)
{
    enum oj_validity validity;
    OJ_TRY(find_cached_validity(w, shape, known, &validity, err));
    *yes = validity != OJ_NOT_VALID;
    return OJ_OK;
}

/* --- decision by the edges of both borders -------------------------------- */

/* Two polygons of at most this many vertices each are first compared by their
 * borders, which reads all vertices. Larger ones are first compared by the edge
 * grid of a polygon, of which only a few cells are read. */
#define MOST_BORDER_VERTICES 512

/* In joins that compare borders first, a polygon of at most
 * BORDER_VERTICES_WITHOUT_CELLS vertices gets an edge grid only after
 * BORDERS_BEFORE_CELLS tests; after SMALL_BORDERS_BEFORE_CELLS if the other
 * polygon has SMALL_BORDER_RATIO times fewer vertices, because the grid then
 * decides more pairs. */
#define BORDER_VERTICES_WITHOUT_CELLS 256
#define BORDERS_BEFORE_CELLS 32
#define SMALL_BORDERS_BEFORE_CELLS 12
#define SMALL_BORDER_RATIO 3

static int does_op_compare_borders_first(const struct predicate_index *index)
{
    enum oj_op op = relation_of_index(index)->op;
    return op == OJ_OP_TOUCHES || op == OJ_OP_OVERLAPS || op == OJ_OP_RELATE;
}

/* Returns the number of tests after which the shape gets an edge grid, if it is
 * compared with n others that have n_vertices in total. Returns as_a_rule if
 * borders are not compared first, or if the shape is not a small polygon. */
static uint8_t count_tests_before_edge_grid(const struct predicate_index *index,
                                            const struct oj_shape *shape,
                                            int64_t n, int64_t n_vertices,
                                            uint8_t as_a_rule)
{
    if (!does_op_compare_borders_first(index) ||
        shape->kinds != OJ_PART_POLYGON ||
        shape->n_vertices > BORDER_VERTICES_WITHOUT_CELLS)
        return as_a_rule;
    return n * shape->n_vertices < SMALL_BORDER_RATIO * n_vertices
               ? BORDERS_BEFORE_CELLS
               : SMALL_BORDERS_BEFORE_CELLS;
}

/* Returns 1 if the edge grid of a will probably decide the pair: b lies in grid
 * cells without edges, or has far fewer vertices than a. */
static int will_edge_grid_decide(const struct oj_shape *a,
                                 const struct oj_shape *b)
{
    const struct oj_edge_grid *cells = oj_shape_edge_grid(a);
    return cells != NULL &&
           (a->n_vertices >= SMALL_BORDER_RATIO * b->n_vertices ||
            oj_shape_grid_locate_box(cells, a, &b->box) != OJ_ON_BOUNDARY);
}

static int should_compare_borders_first(const struct predicate_index *index,
                                        const struct oj_shape *a,
                                        const struct oj_shape *b)
{
    return does_op_compare_borders_first(index) &&
           a->kinds == OJ_PART_POLYGON && b->kinds == OJ_PART_POLYGON &&
           a->n_vertices <= MOST_BORDER_VERTICES &&
           b->n_vertices <= MOST_BORDER_VERTICES &&
           oj_box_intersects(&a->box, &b->box) &&
           !will_edge_grid_decide(a, b) && !will_edge_grid_decide(b, a);
}

/* Returns 1 if the ring of a is outside of b. Precondition: both are polygons
 * of one ring, valid or not, whose borders are disjoint. */
static int is_ring_outside(const struct oj_shape *a, const struct oj_shape *b)
{
    return !oj_box_covers(&b->box, &a->box) ||
           oj_shape_locate(b, a->flat->x[a->first_vertex],
                           a->flat->y[a->first_vertex]) == OJ_OUTSIDE;
}

static int are_rings_outside_each_other(const struct oj_shape *a,
                                        const struct oj_shape *b)
{
    return a->n_rings == 1 && b->n_rings == 1 && is_ring_outside(a, b) &&
           is_ring_outside(b, a);
}

/* Returns 1 if only features with a common point can be pairs of the relation.
 */
static int needs_common_point(const struct oj_relation *relation)
{
    return relation->op != OJ_OP_DISJOINT &&
           (relation->op != OJ_OP_RELATE ||
            oj_relation_needs_contact(relation));
}

static int is_validity_unknown_or_simple(_Atomic uint8_t *known)
{
    uint8_t validity = atomic_load_explicit(known, memory_order_relaxed);
    return validity == OJ_VALIDITY_NOT_KNOWN || validity == OJ_VALID_SIMPLE;
}

/* Decides a pair of polygons by their edges near the common part of their boxes
 * (relate_shared_borders.h). Sets *is_decided to 1 if these edges suffice, and
 * then *holds to 1 if the features are a pair. */
static oj_status
decide_by_borders(struct predicate_index *index, struct predicate_worker *w,
                  const struct oj_shape *shape, int32_t feature,
                  const struct oj_shape *other, int *is_decided, int *holds,
                  struct oj_error *err)
{
    const struct oj_relation *relation = relation_of_index(index);
    enum oj_validity of_row, of_feature;
    struct oj_matrix matrix;
    *is_decided = 0;
    if (!oj_border_supports_shape(shape) || !oj_border_supports_shape(other) ||
        !is_validity_unknown_or_simple(w->row_validity) ||
        !is_validity_unknown_or_simple(&index->validity[feature]))
        return OJ_OK;
    OJ_TRY(oj_borders_find_contacts(shape, other, &w->borders, err));
    if (w->borders.is_complete && w->borders.n_contacts == 0 &&
        needs_common_point(relation) &&
        are_rings_outside_each_other(shape, other))
    {
        *is_decided = 1;
        *holds = 0;
        return OJ_OK;
    }
    OJ_TRY(find_cached_validity(w, shape, w->row_validity, &of_row, err));
    OJ_TRY(find_cached_validity(w, other, &index->validity[feature],
                                &of_feature, err));
    *is_decided = of_row == OJ_VALID_SIMPLE && of_feature == OJ_VALID_SIMPLE &&
                  oj_borders_relate(&w->borders, &matrix);
    if (*is_decided)
        *holds = oj_matrix_satisfies_relation(&matrix, relation);
    return OJ_OK;
}

/* --- decision by the matrix ----------------------------------------------- */

/* Decides a pair of any shapes exactly, by its DE-9IM matrix: sets *holds to 1
 * if the features are a pair. */
static oj_status decide_by_matrix(struct predicate_index *index,
                                  struct predicate_worker *w,
                                  const struct oj_shape *shape, int32_t feature,
                                  const struct oj_shape *other, int *holds,
                                  struct oj_error *err)
{
    const struct oj_relation *relation = relation_of_index(index);
    struct oj_matrix matrix;
    int row_is_valid, feature_is_valid;
    OJ_TRY(is_feature_topologically_valid(w, shape, w->row_validity,
                                          &row_is_valid, err));
    OJ_TRY(is_feature_topologically_valid(w, other, &index->validity[feature],
                                          &feature_is_valid, err));
    w->n_until_poll = 0; /* poll the cancel flag again after the matrix, which
                         may take long */
    OJ_TRY(oj_shapes_relate(relation, shape, row_is_valid, other,
                            feature_is_valid, index->shared.args.options.cancel,
                            &w->relate, &matrix, err));
    *holds = oj_matrix_satisfies_relation(&matrix, relation);
    return OJ_OK;
}

/* --- one pair ------------------------------------------------------------- */

/* If a row and a candidate have this many vertices each, both get an edge grid
 * at once: without one, each vertex of the other might be compared with all
 * edges. */
#define VERTICES_FOR_CELLS_AT_ONCE 2048

static oj_status make_edge_grid_if_useful(struct predicate_index *index,
                                          const struct oj_shape *shape,
                                          int64_t at, struct oj_error *err)
{
    struct oj_shape_side *side = &index->side;
    const struct oj_shape *other = &side->shape[at];
    int64_t n_vertices = shape->n_vertices;
    uint8_t n_asks = OJ_ASKS_BEFORE_CELLS;
    if (atomic_load_explicit(&other->cells, memory_order_relaxed) != NULL)
        return OJ_OK;
    if (shape->kinds == OJ_PART_POLYGON)
        n_asks = count_tests_before_edge_grid(index, other, 1,
                                              shape->n_vertices, n_asks);
    if (n_asks != OJ_ASKS_BEFORE_CELLS ||
        (shape->cells != NULL &&
         (n_vertices < VERTICES_FOR_CELLS_AT_ONCE ||
          other->n_vertices < VERTICES_FOR_CELLS_AT_ONCE)))
        n_vertices = 0;
    return oj_shape_side_make_grid_if_useful(side, at, n_vertices, n_asks, err);
}

/* Decides a pair by locations of vertices and contacts of edges. Sets
 * *is_decided to 1 if these suffice and the shapes are as valid as they
 * require, and then *holds to 1 if the features are a pair. */
static oj_status decide_by_vertices_and_edges(
    struct predicate_index *index, struct predicate_worker *w,
    const struct oj_shape *shape, int32_t feature, const struct oj_shape *other,
    int *is_decided, int *holds, struct oj_error *err)
{
    unsigned needs = 0;
    enum decision decision = decide_predicate_without_matrix(
        relation_of_index(index), shape, other, &needs);
    *is_decided = decision != DECISION_UNSURE;
    *holds = decision == DECISION_YES;
    if (*is_decided && (needs & NEEDS_VALID_B))
        OJ_TRY(is_feature_topologically_valid(
            w, other, &index->validity[feature], is_decided, err));
    if (*is_decided && (needs & NEEDS_VALID_A))
        OJ_TRY(is_feature_topologically_valid(w, shape, w->row_validity,
                                              is_decided, err));
    return OJ_OK;
}

/* Sets *holds to 1 if the row and the feature at position `at` are a pair.
 * Tries borders and vertices (the cheaper of them first), and finally the
 * DE-9IM matrix. */
static oj_status decide_pair(struct predicate_index *index,
                             struct predicate_worker *w,
                             const struct oj_shape *shape, int64_t at,
                             int *holds, struct oj_error *err)
{
    struct oj_shape_side *side = &index->side;
    int32_t feature = oj_shape_side_feature(side, at);
    struct oj_shape point;
    const struct oj_shape *other = &point;
    int borders_first, is_decided = 0;
    *holds = 1;
    if (index->rule.is_enough)
        return OJ_OK;
    if (side->shape != NULL)
    {
        other = &side->shape[at];
        OJ_TRY(make_edge_grid_if_useful(index, shape, at, err));
    }
    else
        point = oj_shape_side_point(side, at);
    borders_first = should_compare_borders_first(index, shape, other);
    if (borders_first)
        OJ_TRY(decide_by_borders(index, w, shape, feature, other, &is_decided,
                                 holds, err));
    if (!is_decided)
        OJ_TRY(decide_by_vertices_and_edges(index, w, shape, feature, other,
                                            &is_decided, holds, err));
    if (!is_decided && !borders_first)
        OJ_TRY(decide_by_borders(index, w, shape, feature, other, &is_decided,
                                 holds, err));
    return is_decided
               ? OJ_OK
               : decide_by_matrix(index, w, shape, feature, other, holds, err);
}

/* --- one row -------------------------------------------------------------- */

/* Makes room for one more pair. To avoid repeated copying, the new size is
 * extrapolated from the rows so far to the whole batch. */
static oj_status make_room_for_pair(struct predicate_index *index,
                                    struct predicate_worker *w,
                                    struct oj_error *err)
{
    int64_t n = w->shared.answers->n_entries, more = 1;
    if (w->shared.answers->budget == NULL)
    {
        double done = (double)(w->n_rows + 1) /
                      ((double)index->shared.input->n_features /
                       (double)index->shared.args.options.n_threads);
        if (n < w->shared.answers->cap_distance)
            return OJ_OK;
        if (w->n_rows > 256 && done > 0.02 && done < 1.0)
            more = (int64_t)((double)n * (1.1 / done - 1.0)) + 1;
    }
    return oj_answers_reserve(w->shared.answers, more, err);
}

/* Returns the set of point locations in a polygon (bits 1 << enum oj_location)
 * for which the polygon and the point are a pair. Returns 0 if the location
 * does not decide this join. */
static unsigned point_locations_that_satisfy_op(enum oj_op op)
{
    switch (op)
    {
        case OJ_OP_COVERS:
            return oj_point_locations_of_op(OJ_OP_COVEREDBY);
        case OJ_OP_CONTAINS:
        case OJ_OP_CONTAINS_PROPERLY:
            return oj_point_locations_of_op(OJ_OP_WITHIN);
        case OJ_OP_INTERSECTS:
        case OJ_OP_TOUCHES:
            return oj_point_locations_of_op(op);
        default:
            return 0;
    }
}

/* Sets *holds to 1 if the polygon row and the point at position `at` are a
 * pair, by the point's location in the polygon: `places` is the set of
 * locations that make a pair. If the polygon is not topologically valid,
 * decide_pair() decides, since points on its rings may be in the interior. */
static oj_status decide_point_in_polygon(struct predicate_index *index,
                                         struct predicate_worker *w,
                                         const struct oj_shape *shape,
                                         int64_t at, unsigned places,
                                         int *holds, struct oj_error *err)
{
    const struct oj_ordered_point *p = &index->side.points.point[at];
    enum oj_location location = oj_shape_locate(shape, p->x, p->y);
    int is_valid = !shape->may_overlap;
    *holds = (int)(places >> location & 1);
    if (location == OJ_OUTSIDE && is_valid)
        return OJ_OK;
    if (shape->may_overlap || (location == OJ_ON_BOUNDARY &&
                               *holds != (int)(places >> OJ_INSIDE & 1)))
        OJ_TRY(is_feature_topologically_valid(w, shape, w->row_validity,
                                              &is_valid, err));
    return is_valid ? OJ_OK : decide_pair(index, w, shape, at, holds, err);
}

static oj_status store_pair(struct predicate_index *index,
                            struct predicate_worker *w, int64_t row,
                            int32_t feature, struct oj_error *err)
{
    OJ_TRY(make_room_for_pair(index, w, err));
    oj_answers_append_pair(w->shared.answers, (int32_t)row, feature, NAN);
    return OJ_OK;
}

/* Returns 1 if this feature can still change the answer of the current row: all
 * pairs are wanted, none is found yet, or its tie rank is below that of the
 * pair found. */
static int can_pair_change_answer(const struct predicate_index *index,
                                  const struct predicate_worker *w,
                                  int32_t feature)
{
    return w->only_rank == INT64_MAX ||
           oj_tie_rank(index->shared.args.tie_rank, feature) < w->only_rank;
}

/* Adds a pair of the current row. If one pair is enough, only stores it in
 * only_feature and only_rank. Precondition: can_pair_change_answer(). */
static oj_status add_pair(struct predicate_index *index,
                          struct predicate_worker *w, int64_t row,
                          int32_t feature, struct oj_error *err)
{
    const int enough = relation_of_index(index)->enough_pairs;
    if (enough == OJ_ENOUGH_ALL)
        return store_pair(index, w, row, feature, err);
    w->only_feature = feature;
    w->only_rank = enough == OJ_ENOUGH_ANY
                       ? 0
                       : oj_tie_rank(index->shared.args.tie_rank, feature);
    return OJ_OK;
}

/* Adds the pairs of OJ_OP_DISJOINT: each feature that passes the pair filter,
 * except those marked in is_met (they intersect the row). Then clears the
 * marks. */
static oj_status add_disjoint_pairs(struct predicate_index *index,
                                    struct predicate_worker *w, int64_t row,
                                    struct oj_error *err)
{
    const struct oj_shape_side *side = &index->side;
    for (int64_t at = 0; at < side->n; at++)
    {
        int32_t feature = oj_shape_side_feature(side, at);
        if (at % 65536 == 65535)
            OJ_TRY(oj_check_cancel(index->shared.args.options.cancel, err));
        if (w->only_rank == 0)
            break;
        if (!w->is_met[feature] && can_pair_change_answer(index, w, feature) &&
            oj_pair_filter_accepts(&index->shared.filter, row, feature))
            OJ_TRY(add_pair(index, w, row, feature, err));
    }
    for (int64_t i = 0; i < w->found.n; i++)
        w->is_met[oj_shape_side_feature(side, w->found.at[i])] = 0;
    return OJ_OK;
}

/* Decides the candidates of a row, in w->found, and adds those that are pairs.
 * For OJ_OP_DISJOINT marks those that intersect the row, and adds all other
 * features. */
static oj_status add_pairs_of_candidates(struct predicate_index *index,
                                         struct predicate_worker *w,
                                         int64_t row,
                                         const struct oj_shape *shape,
                                         struct oj_error *err)
{
    const struct oj_shape_side *side = &index->side;
    int is_disjoint = relation_of_index(index)->op == OJ_OP_DISJOINT;
    /* Fast path for a polygon with a layer of single points, since there may be
     * very many points. */
    unsigned places =
        side->shape == NULL && shape->kinds == OJ_PART_POLYGON
            ? point_locations_that_satisfy_op(relation_of_index(index)->op)
            : 0;
    for (int64_t i = 0; i < w->found.n && w->only_rank != 0; i++)
    {
        int32_t at = w->found.at[i];
        int32_t feature = oj_shape_side_feature(side, at);
        int holds;
        if (!can_pair_change_answer(index, w, feature) ||
            !oj_pair_filter_accepts(&index->shared.filter, row, feature))
            continue;
        OJ_TRY(poll_cancel_flag(&index->shared.args.options, w, err));
        w->shared.n_candidates++;
        if (places != 0)
            OJ_TRY(decide_point_in_polygon(index, w, shape, at, places, &holds,
                                           err));
        else
            OJ_TRY(decide_pair(index, w, shape, at, &holds, err));
        if (is_disjoint)
            w->is_met[feature] = !holds;
        else if (holds)
            OJ_TRY(add_pair(index, w, row, feature, err));
    }
    return is_disjoint ? add_disjoint_pairs(index, w, row, err) : OJ_OK;
}

static oj_status list_all_features(const struct oj_shape_side *side,
                                   struct oj_found *found, struct oj_error *err)
{
    OJ_ROOM(found->at, 0, side->n, found->capacity, err);
    for (int64_t i = 0; i < side->n; i++)
        found->at[i] = (int32_t)i;
    found->n = side->n;
    return OJ_OK;
}

/* The shape of a row gets an edge grid if it has OJ_CELLS_VERTICES vertices and
 * the row has FOUND_FOR_CELLS candidates, or if it has OJ_CELLS_FEW_VERTICES
 * vertices and the row has FOUND_FOR_FEW_VERTICES candidates. */
#define FOUND_FOR_CELLS 8
#define FOUND_FOR_FEW_VERTICES 256

/* Returns the cache of the validity of the row's shape. If a join feature has
 * an equal geometry, as in a self join, its cache is used, so that validity is
 * tested once. Such a feature is only searched in joins that compare borders
 * first. */
static _Atomic uint8_t *
validity_of_equal_feature(const struct predicate_index *index,
                          struct predicate_worker *w,
                          const struct oj_shape *shape)
{
    const struct oj_shape_side *side = &index->side;
    if (!does_op_compare_borders_first(index) || index->rule.takes_all ||
        side->shape == NULL)
        return &w->own_validity;
    for (int64_t i = 0; i < w->found.n; i++)
    {
        const struct oj_shape *other = &side->shape[w->found.at[i]];
        if (other->n_vertices == shape->n_vertices &&
            oj_box_covers(&other->box, &shape->box) &&
            oj_box_covers(&shape->box, &other->box) &&
            oj_flat_same_geometry(shape->flat, shape->feature, other->flat,
                                  other->feature))
            return &index->validity[other->feature];
    }
    return &w->own_validity;
}

static int has_candidate_of_many_vertices(const struct predicate_index *index,
                                          const struct predicate_worker *w)
{
    const struct oj_shape *shape = index->side.shape;
    for (int64_t i = 0; i < w->found.n; i++)
    {
        if (shape[w->found.at[i]].n_vertices >= VERTICES_FOR_CELLS_AT_ONCE)
            return 1;
    }
    return 0;
}

/* Returns the number of candidates from which on the row's shape gets an edge
 * grid. */
static int64_t
count_candidates_before_edge_grid(const struct predicate_index *index,
                                  const struct predicate_worker *w,
                                  const struct oj_shape *shape)
{
    const struct oj_shape_side *side = &index->side;
    int64_t n = w->found.n, n_vertices = 0;
    if (side->shape != NULL && n < FOUND_FOR_CELLS &&
        shape->n_vertices >= VERTICES_FOR_CELLS_AT_ONCE &&
        has_candidate_of_many_vertices(index, w))
        return 1;
    if (side->shape == NULL || n < FOUND_FOR_CELLS || n >= BORDERS_BEFORE_CELLS)
        return FOUND_FOR_CELLS;
    for (int64_t i = 0; i < n; i++)
        n_vertices += side->shape[w->found.at[i]].n_vertices;
    return count_tests_before_edge_grid(index, shape, n, n_vertices,
                                        FOUND_FOR_CELLS);
}

/* Prepares the shape of a row. If its parts are of different kinds, makes a
 * shape for each part; otherwise an edge grid, if the row has at least `least`
 * candidates. */
static oj_status prepare_row_shape(struct predicate_worker *w,
                                   struct oj_shape *shape, int64_t least,
                                   struct oj_error *err)
{
    w->own_validity = OJ_VALIDITY_NOT_KNOWN;
    w->row_validity = &w->own_validity;
    if (oj_shape_is_mixed(shape))
    {
        OJ_ROOM(w->member, 0, shape->n_parts, w->cap_members, err);
        oj_shape_set_members(shape, w->member);
        return OJ_OK;
    }
    if (w->found.n < least ||
        !oj_shape_can_have_edge_grid(shape, w->found.n < FOUND_FOR_FEW_VERTICES
                                                ? OJ_CELLS_VERTICES
                                                : OJ_CELLS_FEW_VERTICES))
        return OJ_OK;
    OJ_TRY(oj_shape_make_edge_grid(shape, &w->cells, err));
    shape->cells = &w->cells;
    return OJ_OK;
}

/* Candidates are listed in parts if one pair is enough: the first part has
 * FIRST_PART of them, each later part twice as many, up to LARGEST_PART. */
#define FIRST_PART 64
#define LARGEST_PART 4096

/* Prepares the row's shape, and adds the pairs of its first candidates, which
 * are in w->found. */
static oj_status add_pairs_of_first_candidates(struct predicate_index *index,
                                               struct predicate_worker *w,
                                               int64_t row,
                                               struct oj_shape *shape,
                                               struct oj_error *err)
{
    if (w->found.n > 0)
        OJ_TRY(prepare_row_shape(
            w, shape, count_candidates_before_edge_grid(index, w, shape), err));
    w->row_validity = validity_of_equal_feature(index, w, shape);
    return add_pairs_of_candidates(index, w, row, shape, err);
}

/* Searches a row until its only pair is sure: the first in tie order, or any.
 */
static oj_status search_only_pair_of_row(struct predicate_index *index,
                                         struct predicate_worker *w,
                                         int64_t row, struct oj_shape *shape,
                                         struct oj_error *err)
{
    struct oj_shape_search search;
    oj_shape_search_start(&index->side, (enum oj_box_test)index->rule.test,
                          &shape->box, &search);
    for (int64_t part = FIRST_PART; w->only_rank != 0;
         part = part < LARGEST_PART ? 2 * part : part)
    {
        OJ_TRY(oj_shape_search_next(&index->side, &search, part,
                                    index->min_rank, w->only_rank - 1,
                                    &w->found, err));
        if (w->found.n == 0)
            break;
        OJ_TRY(part == FIRST_PART
                   ? add_pairs_of_first_candidates(index, w, row, shape, err)
                   : add_pairs_of_candidates(index, w, row, shape, err));
    }
    return OJ_OK;
}

static oj_status search_row(struct oj_row_index *shared,
                            struct oj_row_worker *worker, int64_t row,
                            struct oj_error *err)
{
    struct predicate_index *index = (void *)shared;
    struct predicate_worker *w = (void *)worker;
    const struct oj_relation *relation = relation_of_index(index);
    struct oj_shape shape = oj_shape_of(shared->input, row);
    w->n_rows++;
    w->only_rank = INT64_MAX;
    if (relation->enough_pairs != OJ_ENOUGH_ALL && !index->rule.takes_all &&
        relation->op != OJ_OP_DISJOINT)
        OJ_TRY(search_only_pair_of_row(index, w, row, &shape, err));
    else
    {
        if (index->rule.takes_all)
            OJ_TRY(list_all_features(&index->side, &w->found, err));
        else
            OJ_TRY(oj_shape_side_find(&index->side,
                                      (enum oj_box_test)index->rule.test,
                                      &shape.box, &w->found, err));
        OJ_TRY(add_pairs_of_first_candidates(index, w, row, &shape, err));
    }
    return w->only_rank < INT64_MAX
               ? store_pair(index, w, row, w->only_feature, err)
               : OJ_OK;
}

/* --- pairs found by a screen ---------------------------------------------- */

/* Returns 1 if the verdict of the screen does not decide whether the pair is in
 * the answer of the join. */
static int needs_decision_after_gpu_screen(const struct predicate_index *index,
                                           uint8_t verdict)
{
    enum oj_op op = relation_of_index(index)->op;
    if (verdict == OJ_VERDICT_INTERSECTS)
        return op != OJ_OP_INTERSECTS && op != OJ_OP_DISJOINT &&
               op != OJ_OP_BBOX;
    return verdict != OJ_VERDICT_DISJOINT;
}

/* Returns 1 if the feature has more than one ring and is not cached as valid.
 * If it returns 0, the caller need not read the vertices of the feature. */
static int may_feature_be_invalid(const struct predicate_index *index,
                                  int32_t feature)
{
    const struct oj_flat *flat = index->shared.args.join_side;
    int64_t first = flat->part_offset[feature];
    int64_t end = flat->part_offset[feature + 1];
    uint8_t validity =
        atomic_load_explicit(&index->validity[feature], memory_order_relaxed);
    return flat->ring_offset[end] - flat->ring_offset[first] > 1 &&
           validity != OJ_VALID && validity != OJ_VALID_SIMPLE;
}

/* Sets *holds for a pair whose verdict is only right if the polygons are
 * topologically valid: tests their validity and, if one is invalid, computes
 * the DE-9IM matrix. meets is 1 if the verdict is that they intersect, and 0 if
 * it is that they are disjoint. */
static oj_status decide_gpu_screened_if_valid(struct predicate_index *index,
                                              struct predicate_worker *w,
                                              const struct oj_shape *shape,
                                              int32_t feature, int meets,
                                              int *holds, struct oj_error *err)
{
    const struct oj_flat *join_side = index->shared.args.join_side;
    struct oj_shape other;
    int is_sure = 1;
    if (may_feature_be_invalid(index, feature))
    {
        other = oj_shape_of(join_side, feature);
        if (oj_shape_has_many_rings(&other))
            OJ_TRY(is_feature_topologically_valid(
                w, &other, &index->validity[feature], &is_sure, err));
    }
    if (is_sure && oj_shape_has_many_rings(shape))
        OJ_TRY(is_feature_topologically_valid(w, shape, w->row_validity,
                                              &is_sure, err));
    if (!is_sure)
    {
        other = oj_shape_of(join_side, feature);
        return decide_by_matrix(index, w, shape, feature, &other, holds, err);
    }
    *holds = meets == (relation_of_index(index)->op != OJ_OP_DISJOINT);
    return OJ_OK;
}

/* Returns 1 if a pair with this verdict must be decided by the prepared shapes
 * of both features; 0 if it is decided, or if at most the validity of its
 * features must be tested. */
static int
needs_join_shape_after_gpu_screen(const struct predicate_index *index,
                                  uint8_t verdict)
{
    enum oj_op op = relation_of_index(index)->op;
    int decides_meeting = op == OJ_OP_INTERSECTS || op == OJ_OP_DISJOINT;
    return needs_decision_after_gpu_screen(index, verdict) &&
           verdict != OJ_VERDICT_DISJOINT_IF_VALID &&
           (verdict != OJ_VERDICT_INTERSECTS_IF_VALID || !decides_meeting);
}

/* --- a batch of pairs found by a screen ----------------------------------- */

/* State of a batch whose candidates a screen has found. Decisions replace the
 * verdicts of the candidates in their array; then the pairs are counted and
 * copied once into the result. There may be millions of candidates, most of
 * them decided by the screen. */
struct screened_batch
{
    struct predicate_index *index;
    struct oj_screen_pairs *pairs;
    struct oj_matches *out;
    int64_t *count;         /* [tasks] number of pairs, later their prefix
                               sums */
    int64_t *n_matched;     /* [tasks] rows with at least one pair */
    atomic_int asks_shapes; /* 1: some undecided pairs need the prepared
                               join side */
    struct oj_tie_rank_sorter *order; /* [threads] scratch for sorting a row's
                                   pairs */
};

void oj_screen_pairs_free(struct oj_screen_pairs *pairs)
{
    oj_free(pairs->offset);
    oj_free(pairs->feature);
    oj_free(pairs->verdict);
    memset(pairs, 0, sizeof *pairs);
}

static int64_t end_row_of_task(const struct screened_batch *b, int64_t task)
{
    int64_t end = (task + 1) * SCREENED_PER_TASK;
    return end < b->pairs->n_rows ? end : b->pairs->n_rows;
}

/* Decides the pairs of a row that the screen left undecided. Afterwards the
 * verdict of a pair is OJ_VERDICT_INTERSECTS if it is in the result and
 * OJ_VERDICT_DISJOINT if not; for OJ_OP_DISJOINT the reverse. */
static oj_status decide_gpu_screened_row(int64_t row, int thread, void *user,
                                         struct oj_error *err)
{
    struct screened_batch *b = user;
    struct predicate_index *index = b->index;
    struct predicate_worker *w = worker_of_thread(index, thread);
    const int32_t *feature = b->pairs->feature;
    uint8_t *verdict = b->pairs->verdict;
    int64_t i = b->pairs->offset[row], end = b->pairs->offset[row + 1];
    struct oj_shape shape;
    while (i < end && !needs_decision_after_gpu_screen(index, verdict[i]))
        i++;
    if (i == end)
        return OJ_OK;
    OJ_TRY(oj_check_cancel(index->shared.args.options.cancel, err));
    shape = oj_shape_of(b->index->shared.input, row);
    w->n_rows++;
    w->found.n = 0; /* From here on, found.n is the number of pairs that need
                       both shapes; it decides whether the row's shape gets an
                       edge grid. */
    for (int64_t k = i; k < end; k++)
        w->found.n += needs_join_shape_after_gpu_screen(index, verdict[k]);
    OJ_TRY(prepare_row_shape(w, &shape, FOUND_FOR_CELLS, err));
    for (; i < end; i++)
    {
        int holds;
        if (!needs_decision_after_gpu_screen(index, verdict[i]))
            continue;
        OJ_TRY(poll_cancel_flag(&index->shared.args.options, w, err));
        w->shared.n_candidates++;
        if (needs_join_shape_after_gpu_screen(index, verdict[i]))
            OJ_TRY(decide_pair(index, w, &shape, index->place_of[feature[i]],
                               &holds, err));
        else
            OJ_TRY(decide_gpu_screened_if_valid(
                index, w, &shape, feature[i],
                verdict[i] == OJ_VERDICT_INTERSECTS_IF_VALID, &holds, err));
        verdict[i] = holds != (relation_of_index(index)->op == OJ_OP_DISJOINT)
                         ? OJ_VERDICT_INTERSECTS
                         : OJ_VERDICT_DISJOINT;
    }
    return OJ_OK;
}

static oj_status map_features_to_positions(struct predicate_index *index,
                                           struct oj_error *err)
{
    OJ_TRY(build_side_if_needed(index, err));
    if (index->place_of != NULL)
        return OJ_OK;
    OJ_NEW(index->place_of, index->shared.args.join_side->n_features, err);
    for (int64_t at = 0; at < index->side.n; at++)
        index->place_of[oj_shape_side_feature(&index->side, at)] = (int32_t)at;
    return OJ_OK;
}

/* --- result of a batch with a screen -------------------------------------- */

static int feature_has_parts(const struct oj_flat *flat, int64_t feature)
{
    return flat->part_offset[feature] < flat->part_offset[feature + 1];
}

/* Writes the join features of a row's pairs to out, unless out is NULL, and
 * returns their number. For OJ_OP_DISJOINT, is_met [features] must be zeroed,
 * and is zeroed on return. */
static int64_t list_gpu_screened_pairs_of_row(const struct screened_batch *b,
                                              int64_t row, uint8_t *is_met,
                                              int32_t *out)
{
    const struct oj_screen_pairs *pairs = b->pairs;
    const struct oj_flat *join_side = b->index->shared.args.join_side;
    int64_t first = pairs->offset[row], end = pairs->offset[row + 1], n = 0;
    int is_disjoint = relation_of_index(b->index)->op == OJ_OP_DISJOINT;
    if (is_disjoint && !feature_has_parts(b->index->shared.input, row))
        return 0;
    for (int64_t i = first; i < end; i++)
    {
        if (pairs->verdict[i] != OJ_VERDICT_INTERSECTS)
            continue;
        if (is_disjoint)
            is_met[pairs->feature[i]] = 1;
        else if (out != NULL)
            out[n] = pairs->feature[i];
        n++;
    }
    if (!is_disjoint)
        return n;
    n = 0;
    for (int64_t f = 0; f < join_side->n_features; f++)
    {
        if (is_met[f] || !feature_has_parts(join_side, f) ||
            !oj_pair_filter_accepts(&b->index->shared.filter, row, f))
            continue;
        if (out != NULL)
            out[n] = (int32_t)f;
        n++;
    }
    for (int64_t i = first; i < end; i++)
        is_met[pairs->feature[i]] = 0;
    return n;
}

static void count_gpu_screened_pairs_of_task(int64_t task, int thread,
                                             void *user)
{
    struct screened_batch *b = user;
    const struct predicate_index *index = b->index;
    int64_t n = 0, n_matched = 0;
    for (int64_t row = task * SCREENED_PER_TASK; row < end_row_of_task(b, task);
         row++)
    {
        int64_t n_row = list_gpu_screened_pairs_of_row(
            b, row, worker_of_thread(index, thread)->is_met, NULL);
        n += n_row;
        n_matched += n_row > 0;
    }
    b->count[task] = n;
    b->n_matched[task] = n_matched;
}

/* Sets to disjoint the verdicts of those pairs of a row that the pair filter
 * rejects. Sets *is_open to 1 if undecided pairs remain, and *asks_shapes to 1
 * if some of these need the prepared side. */
static void filter_gpu_screened_row(const struct screened_batch *b, int64_t row,
                                    int *is_open, int *asks_shapes)
{
    const struct predicate_index *index = b->index;
    const struct oj_screen_pairs *pairs = b->pairs;
    *is_open = *asks_shapes = 0;
    for (int64_t i = pairs->offset[row]; i < pairs->offset[row + 1]; i++)
    {
        if (!oj_pair_filter_accepts(&index->shared.filter, row,
                                    pairs->feature[i]))
            pairs->verdict[i] = OJ_VERDICT_DISJOINT;
        *is_open |= needs_decision_after_gpu_screen(index, pairs->verdict[i]);
        *asks_shapes |=
            needs_join_shape_after_gpu_screen(index, pairs->verdict[i]);
    }
}

/* Decides the rows of a task that do not need the prepared side. If no row
 * needs it, counts the pairs of the task; otherwise sets b->asks_shapes. */
static oj_status decide_and_count_task(int64_t task, int thread, void *user,
                                       struct oj_error *err)
{
    struct screened_batch *b = user;
    int n_asking = 0;
    for (int64_t row = task * SCREENED_PER_TASK; row < end_row_of_task(b, task);
         row++)
    {
        int is_open, asks_shapes;
        filter_gpu_screened_row(b, row, &is_open, &asks_shapes);
        n_asking += asks_shapes;
        if (is_open && !asks_shapes)
            OJ_TRY(decide_gpu_screened_row(row, thread, b, err));
    }
    if (n_asking > 0)
        atomic_store_explicit(&b->asks_shapes, 1, memory_order_relaxed);
    else
        count_gpu_screened_pairs_of_task(task, thread, b);
    return OJ_OK;
}

/* Decides the rows that need the prepared side, and counts all pairs again. */
static oj_status decide_rows_by_shapes(struct screened_batch *b,
                                       int64_t n_tasks, struct oj_error *err)
{
    int n_threads = b->index->shared.args.options.n_threads;
    OJ_TRY(map_features_to_positions(b->index, err));
    OJ_TRY(oj_parallel_try(n_threads, b->pairs->n_rows, OPEN_PER_TASK,
                           decide_gpu_screened_row, b, err));
    oj_parallel_for(n_threads, n_tasks, count_gpu_screened_pairs_of_task, b);
    return OJ_OK;
}

static oj_status write_gpu_screened_pairs_of_task(int64_t task, int thread,
                                                  void *user,
                                                  struct oj_error *err)
{
    struct screened_batch *b = user;
    const struct predicate_index *index = b->index;
    struct oj_matches *out = b->out;
    int64_t at = b->count[task];
    OJ_TRY(oj_check_cancel(index->shared.args.options.cancel, err));
    for (int64_t row = task * SCREENED_PER_TASK; row < end_row_of_task(b, task);
         row++)
    {
        int32_t *feature = out->join_row + at;
        int64_t n;
        out->offset[row] = at;
        if (relation_of_index(index)->op == OJ_OP_DISJOINT)
            OJ_TRY(oj_check_cancel(index->shared.args.options.cancel, err));
        n = list_gpu_screened_pairs_of_row(
            b, row, worker_of_thread(index, thread)->is_met, feature);
        for (int64_t i = at; i < at + n; i++)
            out->measure[i] = NAN;
        at += n;
        if (!relation_of_index(index)->any_order)
            OJ_TRY(oj_tie_rank_sort_pairs(&b->order[thread], n,
                                          index->shared.args.tie_rank, feature,
                                          NULL, err));
    }
    return OJ_OK;
}

static oj_status write_all_gpu_screened_pairs(struct screened_batch *b,
                                              int64_t n_tasks,
                                              struct oj_error *err)
{
    const struct predicate_index *index = b->index;
    int n_threads = index->shared.args.options.n_threads;
    int64_t n_rows = b->pairs->n_rows, n = 0, n_matched = 0;
    for (int64_t task = 0; task < n_tasks; task++)
    {
        int64_t count = b->count[task];
        b->count[task] = n;
        n += count;
        n_matched += b->n_matched[task];
    }
    OJ_TRY(oj_pair_budget_check(index->shared.budget.most, n, err));
    OJ_TRY(oj_matches_reserve(b->out, n_rows, n, 1, err));
    OJ_TRY(oj_parallel_try(n_threads, n_tasks, 1,
                           write_gpu_screened_pairs_of_task, b, err));
    b->out->offset[n_rows] = b->out->n_pairs = n;
    b->out->n_matched = n_matched;
    return OJ_OK;
}

static oj_status join_gpu_screened_rows(struct screened_batch *b,
                                        struct oj_error *err)
{
    struct predicate_index *index = b->index;
    int n_threads = index->shared.args.options.n_threads;
    int64_t n_rows = b->pairs->n_rows;
    int64_t n_tasks = (n_rows + SCREENED_PER_TASK - 1) / SCREENED_PER_TASK;
    OJ_NEW(b->count, n_tasks, err);
    OJ_NEW(b->n_matched, n_tasks, err);
    OJ_NEW_ZEROED(b->order, n_threads, err);
    OJ_TRY(
        oj_parallel_try(n_threads, n_tasks, 1, decide_and_count_task, b, err));
    if (atomic_load(&b->asks_shapes))
        OJ_TRY(decide_rows_by_shapes(b, n_tasks, err));
    return write_all_gpu_screened_pairs(b, n_tasks, err);
}

static oj_status make_matches_of_gpu_screened(struct predicate_index *index,
                                              struct oj_screen_pairs *pairs,
                                              struct oj_matches *out,
                                              struct oj_stats *stats,
                                              struct oj_error *err)
{
    struct screened_batch b = {.index = index, .pairs = pairs, .out = out};
    double start = oj_clock_seconds();
    oj_status status = join_gpu_screened_rows(&b, err);
    oj_free(b.count);
    oj_free(b.n_matched);
    for (int t = 0; t < index->shared.n_threads; t++)
    {
        stats->n_candidates += worker_of_thread(index, t)->shared.n_candidates;
        if (b.order != NULL)
            oj_tie_rank_sorter_free(&b.order[t]);
    }
    oj_free(b.order);
    stats->refine_s += oj_clock_seconds() - start;
    return status;
}

/* --- a batch -------------------------------------------------------------- */

/* Sets *x, *y to the first vertex of a feature, by which rows are sorted in
 * spatial order. Returns 0 if it has none. */
static int first_vertex_of_feature(const void *layer, int64_t feature,
                                   double *x, double *y)
{
    const struct oj_flat *flat = layer;
    int64_t part = flat->part_offset[feature], v;
    if (part == flat->part_offset[feature + 1])
        return 0;
    v = flat->vertex_offset[flat->ring_offset[part]];
    *x = flat->x[v];
    *y = flat->y[v];
    return 1;
}

static oj_status build_side_and_order_rows(struct oj_row_index *shared,
                                           struct oj_error *err)
{
    const struct oj_flat *input = shared->input;
    OJ_TRY(build_side_if_needed((void *)shared, err));
    return oj_row_sort_input(
        shared, input,
        oj_flat_is_points(input) ? NULL : first_vertex_of_feature, err);
}

static oj_status prepare_workers(struct predicate_index *index,
                                 struct oj_error *err)
{
    for (int t = 0; t < index->shared.n_threads; t++)
    {
        struct predicate_worker *w = worker_of_thread(index, t);
        w->n_rows = 0;
        oj_relate_scratch_forget_layers(&w->relate);
        if (relation_of_index(index)->op != OJ_OP_DISJOINT)
            continue;
        oj_free(w->is_met); /* a failed batch may have left marks in it, so it
                               is freed */
        OJ_NEW_ZEROED(w->is_met, index->shared.args.join_side->n_features, err);
    }
    return OJ_OK;
}

static oj_status join_by_predicate(struct oj_index *wrapped,
                                   const struct oj_flat *input,
                                   struct oj_matches *out,
                                   struct oj_stats *stats, struct oj_error *err)
{
    struct predicate_index *index = (void *)wrapped;
    OJ_TRY(oj_row_batch_open(&index->shared, input, err));
    OJ_TRY(prepare_workers(index, err));
    return oj_row_batch_join(&index->shared, out, stats, err);
}

static oj_status join_candidates(struct oj_index *wrapped,
                                 const struct oj_flat *input,
                                 struct oj_screen_pairs *candidates,
                                 struct oj_matches *out, struct oj_stats *stats,
                                 struct oj_error *err)
{
    struct predicate_index *index = (void *)wrapped;
    OJ_TRY(oj_row_batch_open(&index->shared, input, err));
    OJ_TRY(prepare_workers(index, err));
    return make_matches_of_gpu_screened(index, candidates, out, stats, err);
}

/* --- the join side -------------------------------------------------------- */

static void free_worker(struct oj_row_worker *worker)
{
    struct predicate_worker *w = (void *)worker;
    oj_relate_scratch_free(&w->relate);
    oj_border_pair_free(&w->borders);
    oj_border_free(&w->own_border);
    oj_relate_figure_free(&w->figure);
    oj_free(w->found.at);
    oj_free(w->member);
    oj_edge_grid_free(&w->cells);
    oj_free(w->is_met);
}

static const struct oj_row_method by_candidates = {
    .worker_size = sizeof(struct predicate_worker),
    .start = build_side_and_order_rows,
    .row_of = oj_row_at_position,
    .search = search_row,
    .free_worker = free_worker};

static void free_predicate_index(struct oj_index *wrapped)
{
    struct predicate_index *index = (void *)wrapped;
    oj_free((void *)index->validity);
    oj_free(index->place_of);
    oj_free(index->min_rank);
    oj_shape_side_free(&index->side);
}

/* Builds the index. With a GPU screen, the prepared side is only built when it
 * is needed. */
static oj_status build_predicate_index(struct oj_index *wrapped,
                                       const struct oj_index_args *args,
                                       struct oj_stats *stats,
                                       struct oj_error *err)
{
    struct predicate_index *index =
        oj_row_index_begin(wrapped, &by_candidates, args);
    (void)oj_screen_rule_of(&args->relation, &index->rule);
    OJ_NEW_ZEROED(index->validity, args->join_side->n_features, err);
    if (!args->gets_candidates)
        OJ_TRY(build_side_if_needed(index, err));
    stats->index_bytes += oj_shape_side_bytes(&index->side);
    return OJ_OK;
}

static int supports_predicate_join(const struct oj_relation *relation,
                                   const struct oj_flat *join_side,
                                   const struct oj_flat *input)
{
    (void)join_side;
    (void)input;
    return (oj_op_get(relation->op)->takes & OJ_TAKES_SHAPES) != 0;
}

static const struct oj_engine_cost points_cost = {.vertex_s = 30e-9,
                                                  .row_s = 380e-9};

const struct oj_engine oj_cpu_predicate = {.name = "predicates",
                                           .supports = supports_predicate_join,
                                           .index_size =
                                               sizeof(struct predicate_index),
                                           .build = build_predicate_index,
                                           .join = join_by_predicate,
                                           .join_candidates = join_candidates,
                                           .free_side = free_predicate_index,
                                           .free_batches = oj_row_batches_free,
                                           .set_options = oj_row_set_options,
                                           .points_cost = &points_cost};
