#include "cpu_verdict.h"

#include "../relation/oj_matrix.h"
#include "../shapes/cpu_meet.h"

struct oj_box_rule oj_verdict_box_rule(const struct oj_relation *relation)
{
    struct oj_box_rule rule = {OJ_BOX_MEETS, 0, 0};
    switch (relation->op)
    {
        case OJ_OP_BBOX:
            rule.is_enough = 1;
            break;
        case OJ_OP_WITHIN:
        case OJ_OP_COVEREDBY:
            rule.test = OJ_BOX_COVERS;
            break;
        case OJ_OP_CONTAINS:
        case OJ_OP_COVERS:
        case OJ_OP_CONTAINS_PROPERLY:
            rule.test = OJ_BOX_WITHIN;
            break;
        case OJ_OP_EQUALS:
            rule.test = OJ_BOX_EQUALS;
            break;
        case OJ_OP_RELATE:
            rule.takes_all = !oj_relation_needs_contact(relation);
            break;
        default:
            break;
    }
    return rule;
}

/* --- features apart -------------------------------------------------------
 */

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

static unsigned exchange(unsigned needs)
{
    return (needs & OJ_NEEDS_NICE_A ? (unsigned)OJ_NEEDS_NICE_B : 0u) |
           (needs & OJ_NEEDS_NICE_B ? (unsigned)OJ_NEEDS_NICE_A : 0u);
}

static enum oj_verdict is_around(const struct oj_shape *a,
                                 const struct oj_shape *b, enum oj_inside how,
                                 unsigned *needs)
{
    enum oj_verdict verdict = oj_shape_is_inside(b, a, how, needs);
    *needs = exchange(*needs);
    return verdict;
}

/* Shapes of one kind each, one in the other. */
static enum oj_verdict verdict_inside(enum oj_op op, const struct oj_shape *a,
                                      const struct oj_shape *b, unsigned *needs)
{
    switch (op)
    {
        case OJ_OP_WITHIN:
            return oj_shape_is_inside(a, b, OJ_INSIDE_WITHIN, needs);
        case OJ_OP_COVEREDBY:
            return oj_shape_is_inside(a, b, OJ_INSIDE_COVERED, needs);
        case OJ_OP_CONTAINS:
            return is_around(a, b, OJ_INSIDE_WITHIN, needs);
        case OJ_OP_COVERS:
            return is_around(a, b, OJ_INSIDE_COVERED, needs);
        default:
            return is_around(a, b, OJ_INSIDE_PROPERLY, needs);
    }
}

/* Shapes of one kind each, which meet. */
static enum oj_verdict verdict_meeting(enum oj_op op, const struct oj_shape *a,
                                       const struct oj_shape *b,
                                       unsigned *needs)
{
    switch (op)
    {
        case OJ_OP_TOUCHES:
            return oj_shapes_touch(a, b, needs);
        case OJ_OP_CROSSES:
            return oj_shapes_cross(a, b, needs);
        case OJ_OP_OVERLAPS:
            return oj_shapes_overlap(a, b, needs);
        case OJ_OP_EQUALS:
            return oj_shapes_equal(a, b, needs);
        default:
            return OJ_VERDICT_UNSURE;
    }
}

static int is_inside_op(enum oj_op op)
{
    return op == OJ_OP_WITHIN || op == OJ_OP_COVEREDBY ||
           op == OJ_OP_CONTAINS || op == OJ_OP_COVERS ||
           op == OJ_OP_CONTAINS_PROPERLY;
}

enum oj_verdict oj_verdict_of(const struct oj_relation *relation,
                              const struct oj_shape *a,
                              const struct oj_shape *b, unsigned *needs)
{
    int is_mixed = a->member != NULL || b->member != NULL;
    enum oj_op op = relation->op;
    int meet;
    if (!is_mixed && is_inside_op(op))
        return verdict_inside(op, a, b, needs);
    meet = oj_shapes_meet(a, b, needs);
    if (op == OJ_OP_INTERSECTS)
        return meet ? OJ_VERDICT_YES : OJ_VERDICT_NO;
    if (op == OJ_OP_DISJOINT)
        return meet ? OJ_VERDICT_NO : OJ_VERDICT_YES;
    if (!meet)
        return op == OJ_OP_RELATE && !oj_relation_needs_contact(relation)
                   ? relate_apart(relation->mask, a, b, needs)
                   : OJ_VERDICT_NO;
    if (is_mixed)
        return OJ_VERDICT_UNSURE;
    return verdict_meeting(op, a, b, needs);
}
