/** Who finds the candidate pairs of predicates in place of the cpu engine, and
 *  says what it knows of them; the engine decides the rest.
 *
 *  rows of a batch --screen--> pairs whose boxes pass, less those that are
 *  surely none --engine--> pairs
 */
#ifndef OJ_CANDIDATE_PROVIDER_H
#define OJ_CANDIDATE_PROVIDER_H

#include "../../flatten/arrays/oj_flat.h"

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

/** Owner; zeroed memory is a valid empty one, and is reused from batch to
 *  batch. */
struct oj_screen_pairs
{
    int64_t n_rows, n_pairs;
    int64_t *offset;  /**< [n_rows + 1] */
    int32_t *feature; /**< [n_pairs] join ordinals, in any order in a row */
    uint8_t *said;    /**< [n_pairs] enum oj_said (kernels/oj_pair_verdict.h) */
    int64_t cap_offset, cap_feature, cap_said;
};

void oj_screen_pairs_free(struct oj_screen_pairs *pairs);

/** Borrowed by who uses it, from one thread at a time. */
struct oj_screen
{
    void *self;

    /** 1 when it takes such a batch. */
    int (*takes)(void *self, const struct oj_flat *input);

    /** The pairs of a batch. OJ_ERR_TOO_MANY_PAIRS: more than most (> 0), of a
     *  batch of two rows or more; OJ_ERR_CANCELLED; any other error: the
     *  caller has to find them itself. */
    oj_status (*find)(void *self, const struct oj_flat *input, int64_t most,
                      struct oj_screen_pairs *out, struct oj_stats *stats,
                      struct oj_error *err);
};

#ifdef __cplusplus
}
#endif
#endif
