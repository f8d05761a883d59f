#include "geos_second_word.h"

/* One of the two features; the other. */
struct sides
{
    struct oj_geos_features *features;
    struct oj_geos_kept *a; /* of features */
    struct oj_geos_features *others;
    struct oj_geos_kept *b; /* of others */
};

typedef char (*predicate)(GEOSContextHandle_t, const GEOSPreparedGeometry *,
                          const GEOSGeometry *);

/* 0, 1, or 2: not known. */
static char ask(const struct sides *s, predicate holds)
{
    const GEOSPreparedGeometry *prepared =
        oj_geos_features_prepare(s->features, s->a);
    const GEOSGeometry *other = oj_geos_features_whole(s->others, s->b);
    return prepared != NULL && other != NULL
               ? holds(s->features->geos, prepared, other)
               : 2;
}

/* Two points never cross, nor do two polygons; what overlaps is of one
 * dimension. */
static int dimensions_deny(enum oj_op op, const struct oj_geos_kept *a,
                           const struct oj_geos_kept *b)
{
    if (op == OJ_OP_OVERLAPS)
        return a->kinds != b->kinds;
    return op == OJ_OP_CROSSES && a->kinds == b->kinds &&
           a->kinds != OJ_PART_LINE;
}

/* a lies properly inside b, or the other way round. */
static enum oj_geos_verdict proper(enum oj_op op, int a_is_inside)
{
    switch (op)
    {
        case OJ_OP_WITHIN:
        case OJ_OP_COVEREDBY:
            return a_is_inside ? OJ_GEOS_YES : OJ_GEOS_NO;
        case OJ_OP_CONTAINS:
        case OJ_OP_COVERS:
        case OJ_OP_CONTAINS_PROPERLY:
            return a_is_inside ? OJ_GEOS_NO : OJ_GEOS_YES;
        case OJ_OP_EQUALS:
        case OJ_OP_TOUCHES:
        case OJ_OP_CROSSES:
        case OJ_OP_OVERLAPS:
            return OJ_GEOS_NO;
        default:
            return OJ_GEOS_CANNOT_SAY;
    }
}

enum oj_geos_verdict oj_geos_second_word(const struct oj_relation *relation,
                                         struct oj_geos_features *input,
                                         struct oj_geos_kept *a,
                                         struct oj_geos_features *join_side,
                                         struct oj_geos_kept *b)
{
    const struct sides ab = {input, a, join_side, b};
    const struct sides ba = {join_side, b, input, a};
    enum oj_op op = relation->op;
    char meet;
    if (dimensions_deny(op, a, b))
        return OJ_GEOS_NO;
    meet = ask(&ba, GEOSPreparedIntersects_r);
    if (meet == 0 && oj_relation_needs_contact(relation))
        return OJ_GEOS_NO;
    if (op == OJ_OP_INTERSECTS && meet <= 1)
        return OJ_GEOS_YES;
    if (op == OJ_OP_DISJOINT && meet <= 1)
        return meet == 0 ? OJ_GEOS_YES : OJ_GEOS_NO;
    if (op == OJ_OP_RELATE)
        return OJ_GEOS_CANNOT_SAY;
    if (ask(&ab, GEOSPreparedContainsProperly_r) == 1)
        return proper(op, 0);
    if (ask(&ba, GEOSPreparedContainsProperly_r) == 1)
        return proper(op, 1);
    return OJ_GEOS_CANNOT_SAY;
}
