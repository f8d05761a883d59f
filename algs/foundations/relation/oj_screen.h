/** Candidate pairs of predicates that the CUDA module finds in place of the cpu
 *  engine, with what it found out about them; the engine decides the rest.
 *
 *  rows of a batch --screen--> pairs whose boxes pass, less those that are
 *  surely none --engine--> pairs
 *
 *  The join asks the screen and hands the candidates to the engine
 *  (join_candidates of struct oj_engine), which calls nothing of the join.
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

/** Which pairs are candidates of a predicate. */
struct oj_screen_rule
{
    int test;         /**< which boxes pass, enum oj_box_test */
    int is_enough;    /**< 1: such a pair is all that is wanted */
    int asks_meeting; /**< 1: of such pairs, whether they meet: boxes alone say
                           little about that */
    int takes_all; /**< 1: features whose boxes are apart may be pairs, too */
};

/** The rule of such a join. 0: a screen is of no use to it. */
int oj_screen_rule_of(const struct oj_relation *relation,
                      struct oj_screen_rule *out);

/** 1 for joins of which boxes and meeting decide nearly all pairs of lines and
 *  polygons. Of other joins a screen finds the candidates, and deciding them
 *  takes as long as without it. */
int oj_screen_decides_most_pairs(const struct oj_relation *relation);

/** Candidates of a batch. Owner; zeroed memory is a valid empty one, and is
 *  reused from batch to batch. */
struct oj_screen_pairs
{
    int64_t n_rows, n_pairs;
    int64_t *offset;  /**< [n_rows + 1] */
    int32_t *feature; /**< [n_pairs] join ordinals, in any order in a row */
    uint8_t *said;    /**< [n_pairs] enum oj_said (kernels/oj_pair_verdict.h) */
    int64_t cap_offset, cap_feature, cap_said;
};

void oj_screen_pairs_free(struct oj_screen_pairs *pairs);

#ifdef __cplusplus
}
#endif
#endif
