#include "oj_relation.h"

#include "../flatten/oj_flat.h"

#include <math.h>
#include <strings.h>

#define ANY_KIND (OJ_PART_POINT | OJ_PART_LINE | OJ_PART_POLYGON)

static const struct oj_op_info ops[OJ_N_OPS] = {
    {"nearest", "distance", OJ_PART_POINT, ANY_KIND, 1,
     "the nearest join feature, or the -k nearest, within -max_distance"},
};

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
    struct oj_relation relation = {OJ_OP_NEAREST, INFINITY, 1, OJ_TIES_FIRST,
                                   OJ_TO_INTERIOR};
    return relation;
}

oj_status oj_relation_check(const struct oj_relation *r, struct oj_error *err)
{
    if ((int)r->op < 0 || r->op >= OJ_N_OPS)
        return oj_fail(err, OJ_ERR_ARG, "unknown join %d", (int)r->op);
    if (isnan(r->max_distance) || r->max_distance < 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "the greatest distance must be 0 or more, not %g",
                       r->max_distance);
    if (r->k < 1 || r->k > INT32_MAX)
        return oj_fail(err, OJ_ERR_ARG,
                       "k must be a whole number from 1 to %d, not %lld",
                       INT32_MAX, (long long)r->k);
    return OJ_OK;
}
