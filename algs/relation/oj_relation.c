#include "oj_relation.h"

#include <math.h>
#include <string.h>
#include <strings.h>

static const struct oj_op_info ops[OJ_N_OPS] = {
    {"nearest", "distance", OJ_TAKES_DISTANCE | OJ_TAKES_K, OJ_OP_NEAREST,
     "the nearest join feature, or the -k nearest, within -max_distance"},
    {"dwithin", "distance", OJ_TAKES_DISTANCE, OJ_OP_DWITHIN,
     "every join feature within -max_distance"},
    {"intersects", NULL, 0, OJ_OP_INTERSECTS,
     "the two have a point in common (default)"},
    {"within", NULL, 0, OJ_OP_CONTAINS,
     "the input feature lies in the join feature, not only on its boundary"},
    {"contains", NULL, 0, OJ_OP_WITHIN,
     "the join feature lies in the input feature, not only on its boundary"},
    {"covers", NULL, 0, OJ_OP_COVEREDBY,
     "no point of the join feature is outside the input feature"},
    {"coveredby", NULL, 0, OJ_OP_COVERS,
     "no point of the input feature is outside the join feature"},
    {"contains_properly", NULL, 0, OJ_OP_RELATE,
     "the join feature lies in the interior of the input feature"},
    {"touches", NULL, 0, OJ_OP_TOUCHES,
     "they meet, but their interiors do not"},
    {"crosses", NULL, 0, OJ_OP_CROSSES,
     "they cross: a line through a polygon, two lines in points"},
    {"overlaps", NULL, 0, OJ_OP_OVERLAPS,
     "same dimension, a part in common, each with a part of its own"},
    {"equals", NULL, 0, OJ_OP_EQUALS,
     "the same point set, however it is drawn"},
    {"disjoint", NULL, 0, OJ_OP_DISJOINT, "no point in common"},
    {"relate", NULL, OJ_TAKES_MASK, OJ_OP_RELATE,
     "the DE-9IM pattern of -relate holds"},
    {"bbox", NULL, 0, OJ_OP_BBOX, "their envelopes have a point in common"},
};

/* Row OJ_OP_CONTAINS_PROPERLY with its sides exchanged has no name. */
static const char within_properly[] = "TFF*FF***";

const struct oj_op_info *oj_op_get(enum oj_op op)
{
    return &ops[op];
}

int oj_op_find(const char *name)
{
    for (int i = 0; i < OJ_N_OPS; i++)
    {
        if (strcasecmp(ops[i].name, name) == 0)
            return i;
    }
    return -1;
}

struct oj_relation oj_relation_default(void)
{
    struct oj_relation relation;
    memset(&relation, 0, sizeof relation);
    relation.op = OJ_OP_NEAREST;
    relation.max_distance = INFINITY;
    relation.k = 1;
    return relation;
}

struct oj_relation oj_relation_transpose(const struct oj_relation *relation)
{
    struct oj_relation other = *relation;
    other.op = oj_op_get(relation->op)->transposed;
    other.unordered_pairs = -relation->unordered_pairs;
    if (relation->op == OJ_OP_CONTAINS_PROPERLY)
        memcpy(other.mask, within_properly, sizeof within_properly);
    else if (relation->op == OJ_OP_RELATE)
    {
        for (int row = 0; row < 3; row++)
        {
            for (int column = 0; column < 3; column++)
                other.mask[3 * column + row] = relation->mask[3 * row + column];
        }
    }
    return other;
}

int oj_relation_needs_contact(const struct oj_relation *relation)
{
    static const int common[] = {0, 1, 3, 4}; /* interiors, boundaries */
    if (relation->op != OJ_OP_RELATE)
        return relation->op != OJ_OP_DISJOINT &&
               relation->op != OJ_OP_NEAREST && relation->op != OJ_OP_DWITHIN;
    for (int i = 0; i < 4; i++)
    {
        if (strchr("Ff*", relation->mask[common[i]]) == NULL)
            return 1;
    }
    return 0;
}

static oj_status check_mask(const char *mask, struct oj_error *err)
{
    if (!oj_mask_is_valid(mask))
        return oj_fail(err, OJ_ERR_ARG,
                       "a DE-9IM pattern is nine of the letters T F * 0 1 2, "
                       "such as T*F**F***, not \"%.20s\"",
                       mask);
    return OJ_OK;
}

oj_status oj_relation_check(const struct oj_relation *r, struct oj_error *err)
{
    if ((int)r->op < 0 || r->op >= OJ_N_OPS)
        return oj_fail(err, OJ_ERR_ARG, "unknown join %d", (int)r->op);
    if (isnan(r->max_distance) || r->max_distance < 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "the greatest distance must be 0 or more, not %g",
                       r->max_distance);
    if (isnan(r->min_distance) || r->min_distance < 0 || isinf(r->min_distance))
        return oj_fail(err, OJ_ERR_ARG,
                       "the least distance must be a number, 0 or more, not %g",
                       r->min_distance);
    if (r->k < 1 || r->k > INT32_MAX)
        return oj_fail(err, OJ_ERR_ARG,
                       "k must be a whole number from 1 to %d, not %lld",
                       INT32_MAX, (long long)r->k);
    if (r->op == OJ_OP_RELATE)
        return check_mask(r->mask, err);
    return OJ_OK;
}
