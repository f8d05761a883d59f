#include "cpu_contain.h"

#include "../pairs/oj_pairs.h"
#include "../shapes/cpu_meet.h"

#define BOTH_NICE ((unsigned)OJ_NEEDS_NICE_A | (unsigned)OJ_NEEDS_NICE_B)

/* Where the vertices of a shape lie in another: bits. */
enum
{
    SOME_OUTSIDE = 1,
    SOME_INSIDE = 2,
    SOME_ON_BOUNDARY = 4
};

/* Looks no further once it has found one of enough. */
static unsigned locate_vertices(const struct oj_shape *a,
                                const struct oj_shape *b, unsigned enough)
{
    const double *x = a->flat->x + a->first_vertex;
    const double *y = a->flat->y + a->first_vertex;
    unsigned found = 0;
    for (int64_t i = 0; i < a->n_vertices && (found & enough) == 0; i++)
    {
        switch (oj_shape_locate(b, x[i], y[i]))
        {
            case OJ_OUTSIDE:
                found |= SOME_OUTSIDE;
                break;
            case OJ_INSIDE:
                found |= SOME_INSIDE;
                break;
            case OJ_ON_BOUNDARY:
                found |= SOME_ON_BOUNDARY;
                break;
        }
    }
    return found;
}

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

/* --- inside --------------------------------------------------------------- */

static enum oj_verdict points_are_inside(const struct oj_shape *a,
                                         const struct oj_shape *b,
                                         enum oj_inside how, unsigned *needs)
{
    unsigned found = locate_vertices(
        a, b,
        how == OJ_INSIDE_PROPERLY && b->kinds == OJ_PART_POLYGON
            ? (unsigned)SOME_OUTSIDE | (unsigned)SOME_ON_BOUNDARY
            : (unsigned)SOME_OUTSIDE);
    *needs = needs_of_points(a, b, how == OJ_INSIDE_COVERED ? 0u : found);
    if (found & SOME_OUTSIDE)
        return OJ_VERDICT_NO;
    if (b->kinds == OJ_PART_POINT || how == OJ_INSIDE_COVERED)
        return OJ_VERDICT_YES;
    if (b->kinds == OJ_PART_LINE) /* its ends are its boundary, mostly */
        return OJ_VERDICT_UNSURE;
    return yes_if(how == OJ_INSIDE_WITHIN ? (found & SOME_INSIDE) != 0
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
    return ((locate_vertices(a, b, SOME_ON_BOUNDARY) |
             locate_vertices(b, a, SOME_ON_BOUNDARY)) &
            SOME_ON_BOUNDARY) == 0;
}

/* Lines or polygons in a polygon.  Nice ones: next to a point where edges
 * cross, both have points that the other lacks; where edges do not meet at all,
 * a lies inside or outside part by part, and inside only if no ring of b is in
 * it. */
static enum oj_verdict edges_are_inside(const struct oj_shape *a,
                                        const struct oj_shape *b,
                                        enum oj_inside how)
{
    enum oj_location window = oj_shape_locate_box(b, &a->box);
    unsigned found;
    enum oj_contact contact;
    if (window != OJ_ON_BOUNDARY)
        return yes_if(window == OJ_INSIDE);
    found = locate_vertices(a, b,
                            how == OJ_INSIDE_PROPERLY
                                ? (unsigned)SOME_OUTSIDE |
                                      (unsigned)SOME_ON_BOUNDARY
                                : (unsigned)SOME_OUTSIDE);
    if (found & SOME_OUTSIDE)
        return OJ_VERDICT_NO;
    contact = oj_shapes_contact(
        a, b, how == OJ_INSIDE_PROPERLY ? OJ_TOUCHING : OJ_CROSSING);
    if (contact == OJ_CROSSING)
        return how == OJ_INSIDE_PROPERLY || crossing_is_sure(a, b)
                   ? OJ_VERDICT_NO
                   : OJ_VERDICT_UNSURE;
    if (contact == OJ_TOUCHING)
        return how == OJ_INSIDE_PROPERLY ? OJ_VERDICT_NO : OJ_VERDICT_UNSURE;
    return yes_if(a->kinds == OJ_PART_LINE || !has_ring_in(b, a));
}

enum oj_verdict oj_shape_is_inside(const struct oj_shape *a,
                                   const struct oj_shape *b, enum oj_inside how,
                                   unsigned *needs)
{
    *needs = 0;
    if (a->kinds == OJ_PART_POINT)
        return points_are_inside(a, b, how, needs);
    *needs = BOTH_NICE;
    if (b->kinds == OJ_PART_POLYGON)
        return edges_are_inside(a, b, how);
    /* lines in points, polygons in lines or points */
    if (a->kinds != b->kinds)
        return OJ_VERDICT_NO;
    /* a line in a line */
    if (locate_vertices(a, b, SOME_OUTSIDE) & SOME_OUTSIDE)
        return OJ_VERDICT_NO;
    return OJ_VERDICT_UNSURE;
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

enum oj_verdict oj_shapes_touch(const struct oj_shape *a,
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
    *needs = BOTH_NICE;
    contact = oj_shapes_contact(a, b, OJ_CROSSING);
    if (contact == OJ_APART ||
        (contact == OJ_CROSSING && crossing_is_sure(a, b)))
        return OJ_VERDICT_NO;
    if ((b->kinds == OJ_PART_POLYGON &&
         (locate_vertices(a, b, SOME_INSIDE) & SOME_INSIDE)) ||
        (a->kinds == OJ_PART_POLYGON &&
         (locate_vertices(b, a, SOME_INSIDE) & SOME_INSIDE)))
        return OJ_VERDICT_NO;
    return OJ_VERDICT_UNSURE;
}

enum oj_verdict oj_shapes_cross(const struct oj_shape *a,
                                const struct oj_shape *b, unsigned *needs)
{
    enum oj_contact contact;
    *needs = a->kinds == OJ_PART_POINT && b->kinds == OJ_PART_POINT
                 ? 0u
                 : BOTH_NICE; /* else it may be of another dimension */
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

enum oj_verdict oj_shapes_overlap(const struct oj_shape *a,
                                  const struct oj_shape *b, unsigned *needs)
{
    enum oj_contact contact;
    *needs = 0;
    if (a->kinds == OJ_PART_POINT && b->kinds == OJ_PART_POINT)
        return yes_if((locate_vertices(a, b, SOME_OUTSIDE) & SOME_OUTSIDE) &&
                      (locate_vertices(b, a, SOME_OUTSIDE) & SOME_OUTSIDE));
    *needs = BOTH_NICE;
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

enum oj_verdict oj_shapes_equal(const struct oj_shape *a,
                                const struct oj_shape *b, unsigned *needs)
{
    *needs = 0;
    if (a->kinds == OJ_PART_POINT && b->kinds == OJ_PART_POINT)
        return yes_if(!(locate_vertices(a, b, SOME_OUTSIDE) & SOME_OUTSIDE) &&
                      !(locate_vertices(b, a, SOME_OUTSIDE) & SOME_OUTSIDE));
    *needs = BOTH_NICE;
    if (a->kinds != b->kinds)
        return OJ_VERDICT_NO;
    if (oj_flat_same_geometry(a->flat, a->feature, b->flat, b->feature))
        return OJ_VERDICT_YES;
    /* every vertex of one is on the boundary of the other, or on the line */
    if ((locate_vertices(a, b, (unsigned)SOME_OUTSIDE | (unsigned)SOME_INSIDE) |
         locate_vertices(b, a,
                         (unsigned)SOME_OUTSIDE | (unsigned)SOME_INSIDE)) &
        ((unsigned)SOME_OUTSIDE | (unsigned)SOME_INSIDE))
        return OJ_VERDICT_NO;
    return OJ_VERDICT_UNSURE;
}
