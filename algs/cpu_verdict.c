#include "cpu_verdict.h"

#include "cpu_meet.h"

#include <string.h>

/* A pattern holds for features apart only if it asks for no common point of
 * interiors and boundaries. */
static int asks_for_contact(const char *mask)
{
    static const int common[] = {0, 1, 3, 4};
    for (int i = 0; i < 4; i++)
    {
        char c = mask[common[i]];
        if (c != '*' && c != 'F' && c != 'f')
            return 1;
    }
    return 0;
}

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
            rule.takes_all = !asks_for_contact(relation->mask);
            break;
        default:
            break;
    }
    return rule;
}

enum oj_verdict oj_verdict_of(const struct oj_relation *relation,
                              const struct oj_shape *a,
                              const struct oj_shape *b, unsigned *needs)
{
    int meet = oj_shapes_meet(a, b, needs);
    switch (relation->op)
    {
        case OJ_OP_INTERSECTS:
            return meet ? OJ_VERDICT_YES : OJ_VERDICT_NO;
        case OJ_OP_DISJOINT:
            return meet ? OJ_VERDICT_NO : OJ_VERDICT_YES;
        case OJ_OP_RELATE:
            return OJ_VERDICT_UNSURE;
        default:
            return meet ? OJ_VERDICT_UNSURE : OJ_VERDICT_NO;
    }
}
