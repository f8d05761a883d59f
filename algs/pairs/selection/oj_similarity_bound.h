/** Tests whether a feature's text can still be among the k most similar of a
 *  row, by the sizes and bitmaps of the two token sets.
 *
 *  The k-th best similarity so far determines how many tokens two sets of given
 *  sizes must have in common. This number only grows while a row is searched,
 *  so it is updated by counting up. Bitmaps give an upper bound of the common
 *  tokens (oj_token_sets.h).
 *
 *  Everything here is inlined into functions that are compiled for several
 *  instruction sets. Source: ours. */
#ifndef OJ_SIMILARITY_BOUND_H
#define OJ_SIMILARITY_BOUND_H

#include "../../foundations/base/cpu_lane_loops.h"
#include "oj_answer_ranking.h"
#include "oj_pair_filter.h"
#include "oj_tie_rank_sort.h"

#include <math.h>

/** Bounds of one row, initialised by oj_similarity_bound_start(). Arrays are
 * indexed by the token count of the join feature. */
struct oj_similarity_bound
{
    const struct oj_token_sets *a, *b; /**< input and join side */
    enum oj_text_measure measure;
    int64_t row;
    double known[OJ_LONG_TEXT]; /**< ranking->bound for which as_good and better
                                     are valid; NaN: none yet */
    int32_t as_good[OJ_LONG_TEXT]; /**< minimum of common tokens for a
                                        similarity that equals the bound */
    int32_t better[OJ_LONG_TEXT];  /**< minimum of common tokens for a
                                        similarity above the bound */
};

OJ_INLINE void oj_similarity_bound_start(struct oj_similarity_bound *bound,
                                         const struct oj_relation *relation,
                                         const struct oj_flat *input,
                                         int64_t row,
                                         const struct oj_flat *join_side)
{
    bound->a = &input->texts[0];
    bound->b = &join_side->texts[0];
    bound->measure = relation->similar[0].measure;
    bound->row = row;
    for (int size = 0; size < OJ_LONG_TEXT; size++)
    {
        bound->known[size] = (double)NAN;
        bound->as_good[size] = bound->better[size] = 1;
    }
}

/* Raises as_good[size] and better[size] to the bound of the ranking, `most`,
 * which is a negated similarity. */
static inline void oj_similarity_bound_raise(struct oj_similarity_bound *bound,
                                             double most, int32_t size)
{
    int32_t of_row = bound->a->size[bound->row];
    int32_t least = of_row < size ? of_row : size;
    int32_t common = bound->as_good[size];
    while (common <= least &&
           -oj_text_similarity(bound->measure, common, of_row, size) > most)
        common++;
    bound->as_good[size] = common;
    while (common <= least &&
           -oj_text_similarity(bound->measure, common, of_row, size) >= most)
        common++;
    bound->better[size] = common;
    bound->known[size] = most;
}

/** Returns 0 if the feature cannot be in the answer of the row. */
OJ_INLINE int oj_similarity_bound_allows(struct oj_similarity_bound *bound,
                                         const struct oj_ranking *ranking,
                                         int32_t feature)
{
    const struct oj_token_bits *s = &bound->a->bits[bound->row];
    const struct oj_token_bits *t = &bound->b->bits[feature];
    int32_t size = bound->b->size[feature];
    int32_t both = bound->a->size[bound->row] + size;
    int32_t common = (both - __builtin_popcountll(s->word[0] ^ t->word[0]) -
                      __builtin_popcountll(s->word[1] ^ t->word[1])) /
                     2;
    if (size >= OJ_LONG_TEXT)
        return 1;
    if (bound->known[size] != ranking->bound)
        oj_similarity_bound_raise(bound, ranking->bound, size);
    return common >= bound->better[size] ||
           (common >= bound->as_good[size] &&
            oj_tie_rank(ranking->tie_rank, feature) < ranking->last_rank);
}

#endif
