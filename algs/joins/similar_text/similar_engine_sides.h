/** Joins by similarity of texts or vectors, row by row: what the engines and
 *  their plain references share.  The first condition on texts ranks, whose
 * sets are here; without one the condition on vectors.
 */
#ifndef SIMILAR_ENGINE_SIDES_H
#define SIMILAR_ENGINE_SIDES_H

#include "../../pairs/selection/oj_parallel_row_search.h"

/** Of a batch; not to be moved while it is joined. */
struct oj_similar_sides
{
    struct oj_token_sets input, join_side; /**< no rows: there are no pairs by
                                                texts */
    struct oj_relation rest; /**< the conditions that do not rank, */
    struct oj_flat side[2];  /**< and what they look at */
};

/** For struct oj_engine: 1 for -op similar by texts, of any features. */
int oj_similar_takes(const struct oj_relation *relation,
                     const struct oj_flat *join_side,
                     const struct oj_flat *input);

/** For struct oj_engine: 1 for -op similar by vectors, of any features. */
int oj_similar_vectors_takes(const struct oj_relation *relation,
                             const struct oj_flat *join_side,
                             const struct oj_flat *input);

/** Sets up the sides of a batch that is open, and makes its filter that of the
 *  rest, which borrows from sides. */
OJ_MUST_USE oj_status oj_similar_sides_make(struct oj_row_index *index,
                                            struct oj_similar_sides *sides,
                                            struct oj_error *err);

/** What pairs with so many common tokens are compared by. */
static inline double
oj_negated_text_similarity(const struct oj_row_index *index,
                           const struct oj_similar_sides *sides, int64_t row,
                           int64_t feature, int64_t common)
{
    return -oj_text_similarity(index->args.relation.similar[0].measure, common,
                               sides->input.size[row],
                               sides->join_side.size[feature]);
}

#endif
