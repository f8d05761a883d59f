/** The stage between a join and what takes its answers: one pair of each row is
 *  picked, and what is asked of the pairs is computed, on all threads.
 *
 *  What it gives (struct oj_pair_values) depends on nothing but the pairs.
 */
#ifndef OJ_PAIR_STAGE_H
#define OJ_PAIR_STAGE_H

#include "../../../flatten/arrays/oj_pair_values.h"
#include "../../foundations/relation/oj_relation.h"

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
    OJ_PICK_MOST_SIMILAR, /**< of the first condition on texts; without one,
                               of that on vectors */
    OJ_PICK_SCORE         /**< greatest score of the join feature */
};

/** Plain values. */
struct oj_pair_request
{
    enum oj_pick_rule pick;
    unsigned char want[OJ_N_PAIR_VALUES];
    int want_shapes;

    /** Parts of intersections that stay in the shapes, enum oj_part_kind
     *  or'ed; 0: all. */
    unsigned shape_kinds;

    struct oj_relation relation;
    int n_threads; /**< >= 1, or 0: all that the machine has */
    const int *cancel;
};

/** A side of the join. Where a point was joined in place of each feature,
 *  distances and nearest points are those of the points, and areas and
 *  intersections those of the features. */
struct oj_pair_side
{
    const struct oj_flat *joined;
    const struct oj_flat *whole; /**< the features; may be the same */

    /* Of the join side. */
    const int64_t *score;    /**< OJ_PICK_SCORE: [features] of oj_pick.h */
    const int32_t *tie_rank; /**< [features] or NULL: the ordinal */
};

struct oj_pair_stage;

/** 1 when request asks for anything. */
int oj_pair_request_is_needed(const struct oj_pair_request *request);

/** request is copied. */
OJ_MUST_USE oj_status oj_pair_stage_open(const struct oj_pair_request *request,
                                         struct oj_pair_stage **out,
                                         struct oj_error *err);

/** The join side of the answers from now on; what side points at outlives its
 *  use. Before the first run. */
OJ_MUST_USE oj_status oj_pair_stage_set_join_side(
    struct oj_pair_stage *stage, const struct oj_pair_side *side,
    struct oj_error *err);

/** Fills *values for the matches of input. One thread at a time. */
OJ_MUST_USE oj_status oj_pair_stage_run(struct oj_pair_stage *stage,
                                        const struct oj_pair_side *input,
                                        const struct oj_matches *matches,
                                        struct oj_pair_values *values,
                                        struct oj_error *err);

/** Pairs whose intersection GEOS could not make: they have no overlap. *first:
 *  its reason for one of them (the stage's memory), or "". */
int64_t oj_pair_stage_undecided(const struct oj_pair_stage *stage,
                                const char **first);

/** Of the area of join feature of side, or of its length where it has no
 *  polygons, the part that an entry's overlap takes up, 0 to 1; 1 of points.
 *  values has the overlaps and OJ_PAIR_JOIN_AREA. */
double oj_pair_share(const struct oj_flat *side, int32_t feature,
                     const struct oj_pair_values *values, int64_t entry);

/** Accepts NULL. */
void oj_pair_stage_close(struct oj_pair_stage *stage);

#endif
