/** The stage between a join and what takes its answers: one pair of each row is
 *  picked, and what is asked of the pairs is computed, on all threads.
 *
 *  What it gives (struct oj_pair_values) depends on nothing but the pairs.
 */
#ifndef OJ_PAIR_STAGE_H
#define OJ_PAIR_STAGE_H

#include "../flatten/oj_pair_values.h"
#include "oj_relation.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Which pair of a row; ties go to the one first in tie order. */
enum oj_pick_rule
{
    OJ_PICK_ALL = 0, /**< none is picked: all pairs stay */
    OJ_PICK_FIRST,   /**< first in tie order */
    OJ_PICK_NEAREST,
    OJ_PICK_LARGEST_OVERLAP, /**< area where both features have polygons, else
                                  length */
    OJ_PICK_SMALLEST_AREA,   /**< of the join feature */
    OJ_PICK_LARGEST_AREA,
    OJ_PICK_SCORE /**< greatest feature_score */
};

/** Plain values; borrows what it points at. */
struct oj_pair_request
{
    enum oj_pick_rule pick;
    const int64_t *feature_score; /**< [join features] of oj_pick.h */
    const int32_t *tie_rank;      /**< [join features] or NULL: the ordinal */
    unsigned char want[OJ_N_PAIR_VALUES];
    int want_shapes;

    /** Parts of intersections that stay in the shapes, enum oj_part_kind
     *  or'ed; 0: all. */
    unsigned shape_kinds;

    struct oj_relation relation;
    int n_threads; /**< >= 1, or 0: all that the machine has */
    const int *cancel;
};

struct oj_pair_stage;

/** 1 when request asks for anything. */
OJ_EXPORT int oj_pair_request_is_needed(const struct oj_pair_request *request);

/** join_side and what request points at outlive *out; request is copied.
 *  OJ_ERR_UNSUPPORTED in one line for what is not computed on a sphere. */
OJ_MUST_USE OJ_EXPORT oj_status oj_pair_stage_open(
    const struct oj_pair_request *request, const struct oj_flat *join_side,
    struct oj_pair_stage **out, struct oj_error *err);

/** Fills *values for the matches of input. One thread at a time. */
OJ_MUST_USE OJ_EXPORT oj_status
oj_pair_stage_run(struct oj_pair_stage *stage, const struct oj_flat *input,
                  const struct oj_matches *matches,
                  struct oj_pair_values *values, struct oj_error *err);

/** Pairs whose intersection GEOS could not make: they have no overlap. *first:
 *  its reason for one of them (the stage's memory), or "". */
OJ_EXPORT int64_t oj_pair_stage_undecided(const struct oj_pair_stage *stage,
                                          const char **first);

/** Accepts NULL. */
OJ_EXPORT void oj_pair_stage_close(struct oj_pair_stage *stage);

#ifdef __cplusplus
}
#endif
#endif
