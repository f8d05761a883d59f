/** Common part of the engines and references for joins by similarity of texts
 * or vectors, row by row.  The first condition on texts ranks the pairs; if
 * there is none, the condition on vectors does. */
#ifndef SIMILAR_ENGINE_SIDES_H
#define SIMILAR_ENGINE_SIDES_H

#include "../../pairs/selection/oj_parallel_row_search.h"

/** The sides of a batch. Must not be moved while the batch is joined. */
struct oj_similar_sides
{
    struct oj_token_sets input, join_side; /**< token sets of the condition on
                                                texts that ranks; without rows
                                                if vectors rank */
    struct oj_relation rest;               /**< the other conditions */
    struct oj_flat side[2]; /**< the sides without the texts that rank */
};

/** Implements oj_engine.takes: returns 1 for -op similar by texts without a
 * condition on location. */
int oj_similar_supports_text_join(const struct oj_relation *relation,
                                  const struct oj_flat *join_side,
                                  const struct oj_flat *input);

/** Implements oj_engine.takes: returns 1 for -op similar by vectors without a
 * condition on location. */
int oj_similar_supports_vector_join(const struct oj_relation *relation,
                                    const struct oj_flat *join_side,
                                    const struct oj_flat *input);

/** Sets up the sides of an open batch. Replaces the filter of index by one for
 * the other conditions, which borrows from sides. If a side has no features,
 * sets index->n_rows to 0. */
OJ_MUST_USE oj_status oj_similar_sides_make(struct oj_row_index *index,
                                            struct oj_similar_sides *sides,
                                            struct oj_error *err);

/** Returns the ranking value of a pair with this number of common tokens: the
 * similarity, negated. */
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
