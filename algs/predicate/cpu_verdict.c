#include "cpu_verdict.h"

#include "../pairs/oj_pairs.h"
#include "../relation/oj_matrix.h"
#include "../relation/oj_screen.h"
#include "../shapes/cpu_meet.h"

#define NEEDS_BOTH ((unsigned)OJ_NEEDS_NICE_A | (unsigned)OJ_NEEDS_NICE_B)

/* How a shape lies inside another one. */
enum inside
{
    COVERED,  /* no point of it outside */
    WITHIN,   /* and interiors meet */
    PROPERLY, /* all of it in the interior */
};

/* 1 when the join asks whether one shape is inside the other: how, and whether
 * it is the second one in the first. */
static int asks_inside(enum oj_op op, enum inside *how, int *is_around)
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
    int is_around, is_inside = asks_inside(op, &how, &is_around);
    out->test = is_inside            ? is_around ? OJ_BOX_WITHIN : OJ_BOX_COVERS
                : op == OJ_OP_EQUALS ? OJ_BOX_EQUALS
                                     : OJ_BOX_MEETS;
    out->is_enough = op == OJ_OP_BBOX;
    out->asks_meeting = !is_inside && op != OJ_OP_EQUALS && op != OJ_OP_BBOX;
    out->takes_all = op == OJ_OP_RELATE && !oj_relation_needs_contact(relation);
    return op != OJ_OP_NEAREST && op != OJ_OP_DWITHIN && !out->takes_all;
}

/* Where the vertices of a shape lie in another: bits 1 << enum oj_location. */
#define SOME_OUTSIDE (1u << OJ_OUTSIDE)
#define SOME_INSIDE (1u << OJ_INSIDE)
#define SOME_ON_BOUNDARY (1u << OJ_ON_BOUNDARY)

/* Looks no further once it has found one of enough. */
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

/* 1 when a vertex of a lies in one of these places in b. */
static int has_vertex(const struct oj_shape *a, const struct oj_shape *b,
                      unsigned places)
{
    return (locate_vertices(a, b, places) & places) != 0;
}

/* --- inside --------------------------------------------------------------- */

static enum oj_verdict yes_if(int condition)
{
    return condition ? OJ_VERDICT_YES : OJ_VERDICT_NO;
}

/* 1 when a ring of polygon b begins in polygon a. */
static int has_ring_in(const struct oj_shape *b, const struct oj_shape *a)
{
    for (int64_t r = 0; r < b->n_rings; r++)
    {
        int64_t n, v = oj_shape_ring(b, r, &n);
        if (oj_shape_locate(a, b->flat->x[v], b->flat->y[v]) != OJ_OUTSIDE)
            return 1;
    }
    return 0;
}

/* Where points are in polygons, even-odd over all rings says only if parts do
 * not overlap; and a point on a ring may be inside, where parts share an edge
 * or a polygon is but a line. */
static unsigned needs_of_points(const struct oj_shape *a,
                                const struct oj_shape *b, unsigned found)
{
    int is_on = (found & SOME_ON_BOUNDARY) != 0;
    return (a->may_overlap || (is_on && a->kinds == OJ_PART_POLYGON)
                ? (unsigned)OJ_NEEDS_NICE_A
                : 0u) |
           (b->may_overlap || (is_on && b->kinds == OJ_PART_POLYGON)
                ? (unsigned)OJ_NEEDS_NICE_B
                : 0u);
}

static enum oj_verdict points_are_inside(const struct oj_shape *a,
                                         const struct oj_shape *b,
                                         enum inside how, unsigned *needs)
{
    unsigned found =
        locate_vertices(a, b,
                        how == PROPERLY && b->kinds == OJ_PART_POLYGON
                            ? SOME_OUTSIDE | SOME_ON_BOUNDARY
                            : SOME_OUTSIDE);
    *needs = needs_of_points(a, b, how == COVERED ? 0u : found);
    if (found & SOME_OUTSIDE)
        return OJ_VERDICT_NO;
    if (b->kinds == OJ_PART_POINT || how == COVERED)
        return OJ_VERDICT_YES;
    if (b->kinds == OJ_PART_LINE) /* its ends are its boundary, mostly */
        return OJ_VERDICT_UNSURE;
    return yes_if(how == WITHIN ? (found & SOME_INSIDE) != 0
                                : (found & SOME_ON_BOUNDARY) == 0);
}

static int has_one_ring(const struct oj_shape *shape)
{
    return shape->kinds == OJ_PART_LINE || shape->n_rings == 1;
}

/* Whether the interiors are where they should be next to a point in which an
 * edge of a crosses one of b.  Not if another ring of the polygon touches its
 * edge in that very point, or a line ends on itself there; either then has a
 * vertex on the other feature. */
static int crossing_is_sure(const struct oj_shape *a, const struct oj_shape *b)
{
    int are_lines = a->kinds == OJ_PART_LINE && b->kinds == OJ_PART_LINE;
    if (has_one_ring(a) && has_one_ring(b) && !are_lines)
        return 1;
    return !has_vertex(a, b, SOME_ON_BOUNDARY) &&
           !has_vertex(b, a, SOME_ON_BOUNDARY);
}

/* Lines or polygons in a polygon.  Nice ones: next to a point where edges
 * cross, both have points that the other lacks; where edges do not meet at all,
 * a lies inside or outside part by part, and inside only if no ring of b is in
 * it. */
static enum oj_verdict edges_are_inside(const struct oj_shape *a,
                                        const struct oj_shape *b,
                                        enum inside how)
{
    enum oj_location window =
        oj_box_intersects(&a->box, &b->box)
            ? oj_cells_locate_box(oj_shape_cells(b), b, &a->box)
            : OJ_OUTSIDE;
    enum oj_contact contact;
    if (window != OJ_ON_BOUNDARY)
        return yes_if(window == OJ_INSIDE);
    /* properly: a vertex on the boundary of b is a contact of edges, too */
    if (has_vertex(a, b,
                   SOME_OUTSIDE | (how == PROPERLY ? SOME_ON_BOUNDARY : 0u)))
        return OJ_VERDICT_NO;
    contact =
        oj_shapes_contact(a, b, how == PROPERLY ? OJ_TOUCHING : OJ_CROSSING);
    if (contact == OJ_CROSSING)
        return how == PROPERLY || crossing_is_sure(a, b) ? OJ_VERDICT_NO
                                                         : OJ_VERDICT_UNSURE;
    if (contact == OJ_TOUCHING)
        return how == PROPERLY ? OJ_VERDICT_NO : OJ_VERDICT_UNSURE;
    return yes_if(a->kinds == OJ_PART_LINE || !has_ring_in(b, a));
}

/* Whether a is in b. */
static enum oj_verdict is_inside(const struct oj_shape *a,
                                 const struct oj_shape *b, enum inside how,
                                 unsigned *needs)
{
    *needs = 0;
    if (a->kinds == OJ_PART_POINT)
        return points_are_inside(a, b, how, needs);
    *needs = NEEDS_BOTH;
    if (b->kinds == OJ_PART_POLYGON)
        return edges_are_inside(a, b, how);
    /* lines in points, polygons in lines or points */
    if (a->kinds != b->kinds)
        return OJ_VERDICT_NO;
    /* a line in a line */
    return has_vertex(a, b, SOME_OUTSIDE) ? OJ_VERDICT_NO : OJ_VERDICT_UNSURE;
}

/* --- touching, crossing, overlapping, equal ------------------------------- */

/* Points, and something. */
static unsigned locate_points(const struct oj_shape *a,
                              const struct oj_shape *b)
{
    return a->kinds == OJ_PART_POINT ? locate_vertices(a, b, 0)
                                     : locate_vertices(b, a, 0);
}

static int is_pair_of(const struct oj_shape *a, const struct oj_shape *b,
                      uint8_t kind, uint8_t other)
{
    return (a->kinds == kind && b->kinds == other) ||
           (a->kinds == other && b->kinds == kind);
}

static enum oj_verdict shapes_touch(const struct oj_shape *a,
                                    const struct oj_shape *b, unsigned *needs)
{
    enum oj_contact contact;
    *needs = 0;
    if (a->kinds == OJ_PART_POINT && b->kinds == OJ_PART_POINT)
        return OJ_VERDICT_NO;
    if (is_pair_of(a, b, OJ_PART_POINT, OJ_PART_POLYGON))
    {
        unsigned found = locate_points(a, b);
        *needs = needs_of_points(a, b, found);
        return yes_if((found & SOME_INSIDE) == 0);
    }
    if (a->kinds == OJ_PART_POINT || b->kinds == OJ_PART_POINT)
        return OJ_VERDICT_UNSURE;
    /* interiors meet next to a crossing; and where nothing touches, one has a
     * part inside the other; and a vertex inside a polygon has interior of its
     * own feature next to it */
    *needs = NEEDS_BOTH;
    contact = oj_shapes_contact(a, b, OJ_CROSSING);
    if (contact == OJ_APART ||
        (contact == OJ_CROSSING && crossing_is_sure(a, b)))
        return OJ_VERDICT_NO;
    if ((b->kinds == OJ_PART_POLYGON && has_vertex(a, b, SOME_INSIDE)) ||
        (a->kinds == OJ_PART_POLYGON && has_vertex(b, a, SOME_INSIDE)))
        return OJ_VERDICT_NO;
    return OJ_VERDICT_UNSURE;
}

static enum oj_verdict shapes_cross(const struct oj_shape *a,
                                    const struct oj_shape *b, unsigned *needs)
{
    enum oj_contact contact;
    *needs = a->kinds == OJ_PART_POINT && b->kinds == OJ_PART_POINT
                 ? 0u
                 : NEEDS_BOTH; /* else it may be of another dimension */
    if (a->kinds == b->kinds && a->kinds != OJ_PART_LINE)
        return OJ_VERDICT_NO;
    if (is_pair_of(a, b, OJ_PART_POINT, OJ_PART_POLYGON))
    {
        unsigned found = locate_points(a, b);
        *needs = needs_of_points(a, b, found);
        return yes_if((found & SOME_INSIDE) && (found & SOME_OUTSIDE));
    }
    if (!is_pair_of(a, b, OJ_PART_LINE, OJ_PART_POLYGON))
        return OJ_VERDICT_UNSURE;
    contact = oj_shapes_contact(a, b, OJ_CROSSING);
    if (contact == OJ_CROSSING)
        return crossing_is_sure(a, b) ? OJ_VERDICT_YES : OJ_VERDICT_UNSURE;
    /* without contact a line that meets a polygon is all inside */
    if (contact == OJ_APART && (a->kinds == OJ_PART_LINE ? a : b)->n_parts == 1)
        return OJ_VERDICT_NO;
    return OJ_VERDICT_UNSURE;
}

static enum oj_verdict shapes_overlap(const struct oj_shape *a,
                                      const struct oj_shape *b, unsigned *needs)
{
    enum oj_contact contact;
    *needs = 0;
    if (a->kinds == OJ_PART_POINT && b->kinds == OJ_PART_POINT)
        return yes_if(has_vertex(a, b, SOME_OUTSIDE) &&
                      has_vertex(b, a, SOME_OUTSIDE));
    *needs = NEEDS_BOTH;
    if (a->kinds != b->kinds)
        return OJ_VERDICT_NO;
    if (a->kinds == OJ_PART_LINE)
        return OJ_VERDICT_UNSURE;
    contact = oj_shapes_contact(a, b, OJ_CROSSING);
    if (contact == OJ_CROSSING)
        return crossing_is_sure(a, b) ? OJ_VERDICT_YES : OJ_VERDICT_UNSURE;
    /* without contact one of two simple shapes that meet contains the other */
    if (contact == OJ_APART && a->n_rings == 1 && b->n_rings == 1)
        return OJ_VERDICT_NO;
    return OJ_VERDICT_UNSURE;
}

static enum oj_verdict are_equal(const struct oj_shape *a,
                                 const struct oj_shape *b, unsigned *needs)
{
    *needs = 0;
    if (a->kinds == OJ_PART_POINT && b->kinds == OJ_PART_POINT)
        return yes_if(!has_vertex(a, b, SOME_OUTSIDE) &&
                      !has_vertex(b, a, SOME_OUTSIDE));
    *needs = NEEDS_BOTH;
    if (a->kinds != b->kinds)
        return OJ_VERDICT_NO;
    if (oj_flat_same_geometry(a->flat, a->feature, b->flat, b->feature))
        return OJ_VERDICT_YES;
    /* every vertex of one is on the boundary of the other, or on the line */
    return has_vertex(a, b, SOME_OUTSIDE | SOME_INSIDE) ||
                   has_vertex(b, a, SOME_OUTSIDE | SOME_INSIDE)
               ? OJ_VERDICT_NO
               : OJ_VERDICT_UNSURE;
}

/* --- features apart ------------------------------------------------------- */

/* Dimensions of the interior and of the boundary, as DE-9IM writes them; 0 when
 * that takes the matrix. */
static int dimensions(const struct oj_shape *shape, char *interior,
                      char *boundary)
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

static enum oj_verdict relate_apart(const char *mask, const struct oj_shape *a,
                                    const struct oj_shape *b, unsigned *needs)
{
    struct oj_matrix matrix = oj_matrix_empty();
    *needs = (unsigned)OJ_NEEDS_NICE_A | (unsigned)OJ_NEEDS_NICE_B;
    if (!dimensions(a, &matrix.at[2], &matrix.at[5]) ||
        !dimensions(b, &matrix.at[6], &matrix.at[7]))
        return OJ_VERDICT_UNSURE;
    return oj_matrix_fits(&matrix, mask) ? OJ_VERDICT_YES : OJ_VERDICT_NO;
}

/* --- all joins ------------------------------------------------------------ */

enum oj_verdict oj_verdict_of(const struct oj_relation *relation,
                              const struct oj_shape *a,
                              const struct oj_shape *b, unsigned *needs)
{
    int is_mixed = a->member != NULL || b->member != NULL, is_around;
    enum oj_op op = relation->op;
    enum inside how;
    if (op == OJ_OP_INTERSECTS || op == OJ_OP_DISJOINT)
        return yes_if(oj_shapes_meet(a, b, needs) == (op == OJ_OP_INTERSECTS));
    if (!is_mixed && asks_inside(op, &how, &is_around))
    {
        enum oj_verdict verdict =
            is_inside(is_around ? b : a, is_around ? a : b, how, needs);
        if (is_around) /* what it needs was said of b, a */
            *needs =
                (*needs & OJ_NEEDS_NICE_A ? (unsigned)OJ_NEEDS_NICE_B : 0u) |
                (*needs & OJ_NEEDS_NICE_B ? (unsigned)OJ_NEEDS_NICE_A : 0u);
        return verdict;
    }
    if (!oj_shapes_meet(a, b, needs))
        return op == OJ_OP_RELATE && !oj_relation_needs_contact(relation)
                   ? relate_apart(relation->mask, a, b, needs)
                   : OJ_VERDICT_NO;
    if (is_mixed)
        return OJ_VERDICT_UNSURE;
    switch (op)
    {
        case OJ_OP_TOUCHES:
            return shapes_touch(a, b, needs);
        case OJ_OP_CROSSES:
            return shapes_cross(a, b, needs);
        case OJ_OP_OVERLAPS:
            return shapes_overlap(a, b, needs);
        case OJ_OP_EQUALS:
            return are_equal(a, b, needs);
        default:
            return OJ_VERDICT_UNSURE;
    }
}
