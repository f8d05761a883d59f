/** Candidate pairs of joins by predicate that the CUDA module finds in place of
 *  the CPU engine, each with a verdict. The engine decides the candidates that
 *  their verdict leaves undecided.
 *
 *  rows of a batch --screen--> pairs whose boxes pass, less those that surely
 *  do not match --engine--> pairs
 *
 *  oj_join.c runs the screen and passes the candidates to the engine's
 *  join_candidates().
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

/** How a screen selects the candidates of a join by predicate. */
struct oj_screen_rule
{
    int test; /**< test that the boxes of a pair must pass: enum oj_box_test */
    int is_enough;    /**< 1: the boxes alone decide: all pairs whose boxes pass
                           the test are results */
    int asks_meeting; /**< 1: also test whether the shapes of a pair intersect,
                           because boxes alone decide few pairs */
    int takes_all;    /**< 1: pairs with disjoint boxes can be results */
};

/** Fills *out with the rule for a join. Returns 0 if the join gains nothing
 * from a screen. */
int oj_screen_rule_of(const struct oj_relation *relation,
                      struct oj_screen_rule *out);

/** Returns 1 if the screen decides nearly all pairs of lines and polygons in
 * this join. Otherwise it only finds the candidates, and the engine decides
 * them. */
int oj_screen_decides_most_pairs(const struct oj_relation *relation);

/** Candidates of a batch; the arrays are reused by the next. Owner; zeroed
 * memory is a valid empty value. */
struct oj_screen_pairs
{
    int64_t n_rows, n_pairs;
    int64_t *offset;  /**< [n_rows + 1] first candidate of each row */
    int32_t *feature; /**< [n_pairs] join features as ordinals, in any order
                           within a row */
    uint8_t *verdict; /**< [n_pairs] verdicts, enum oj_pair_verdict
                        (kernels/oj_pair_verdict.h) */
    int64_t cap_offset, cap_feature, cap_verdict;
};

void oj_screen_pairs_free(struct oj_screen_pairs *pairs);

#ifdef __cplusplus
}
#endif
#endif
