/** What a join asks: the table of joins and the options of one of them.
 *  One row per join; a new join is a row here and at most one kernel. */
#ifndef OJ_RELATION_H
#define OJ_RELATION_H

#include "../flatten/oj_status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum oj_op
{
    OJ_OP_NEAREST = 0,
    OJ_N_OPS
};

enum oj_ties
{
    OJ_TIES_FIRST = 0, /**< k pairs; equal distances in tie order */
    OJ_TIES_ALL        /**< and all that are as far as the k-th */
};

enum oj_distance_to
{
    OJ_TO_INTERIOR = 0, /**< 0 for a point in a polygon, as GEOS says */
    OJ_TO_BOUNDARY      /**< to the rings, also from inside (the paper) */
};

/** One join, asked. Plain values; owns nothing. */
struct oj_relation
{
    enum oj_op op;
    double max_distance; /**< CRS units, >= 0; INFINITY: unbounded */
    int64_t k;           /**< nearest: join features per input feature, >= 1 */
    enum oj_ties ties;
    enum oj_distance_to distance_to;
};

/** A row of the table of joins. */
struct oj_op_info
{
    const char *name;        /**< value of -op */
    const char *measure;     /**< what measure means: "distance" */
    unsigned input_kinds;    /**< enum oj_part_kind or'ed: input side */
    unsigned join_kinds;     /**< the same: join side */
    int takes_max_distance;  /**< 1: -max_distance, -k, -ties, -distance_to */
    const char *description; /**< one line for --help */
};

/** The row of op; never NULL for a valid op. */
OJ_EXPORT const struct oj_op_info *oj_op_get(enum oj_op op);

/** The op of a name (without case), or -1. */
OJ_EXPORT int oj_op_find(const char *name);

/** OJ_OP_NEAREST, unbounded, k 1, first of ties, to the interior. */
OJ_EXPORT struct oj_relation oj_relation_default(void);

/** OJ_ERR_ARG with a clear line when the values make no sense together. */
OJ_MUST_USE OJ_EXPORT oj_status
oj_relation_check(const struct oj_relation *relation, struct oj_error *err);

/** 1 when an input row can have more than one pair. */
static inline int oj_relation_gives_lists(const struct oj_relation *relation)
{
    return relation->k > 1 || relation->ties == OJ_TIES_ALL;
}

#ifdef __cplusplus
}
#endif
#endif
