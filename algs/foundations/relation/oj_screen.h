/** Candidate pairs of joins by predicate, found by the CUDA module in place of
 *  the cpu engine, with a verdict on each; the engine decides the undecided
 *  ones.
 *
 *  rows of a batch --screen--> pairs whose boxes pass, less those that are
 *  surely none --engine--> pairs
 *
 *  oj_join runs the screen and passes the candidates to the engine
 *  (join_candidates of struct oj_engine).
 */
#ifndef OJ_SCREEN_H
#define OJ_SCREEN_H

#include "../../../flatten/arrays/oj_flat.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct oj_relation;
struct oj_stats;

/** Selects the candidates of a join by predicate. */
struct oj_screen_rule
{
    int test;         /**< the test of boxes, enum oj_box_test */
    int is_enough;    /**< 1: every pair whose boxes pass is a result */
    int asks_meeting; /**< 1: also test whether such pairs intersect, since
                           boxes alone decide little */
    int takes_all;    /**< 1: pairs with disjoint boxes can be results, too */
};

/** Fills *out with the rule by which a screen selects the candidates of a join.
 *  Returns 0 if the join gains nothing from a screen. */
int oj_screen_rule_of(const struct oj_relation *relation,
                      struct oj_screen_rule *out);

/** 1 for joins that boxes and the test for intersection decide for nearly all
 * pairs of lines and polygons. For other joins a screen finds the candidates,
 * but deciding them takes as long as without it. */
int oj_screen_decides_most_pairs(const struct oj_relation *relation);

/** Candidates of a batch. Owner; zeroed memory is a valid empty one; reused for
 * all batches. */
struct oj_screen_pairs
{
    int64_t n_rows, n_pairs;
    int64_t *offset;  /**< [n_rows + 1] */
    int32_t *feature; /**< [n_pairs] join ordinals, in any order within a row */
    uint8_t *said;    /**< [n_pairs] verdicts, enum oj_said
                           (kernels/oj_pair_verdict.h) */
    int64_t cap_offset, cap_feature, cap_said;
};

void oj_screen_pairs_free(struct oj_screen_pairs *pairs);

#ifdef __cplusplus
}
#endif
#endif
