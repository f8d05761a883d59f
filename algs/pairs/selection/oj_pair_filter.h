/** Which pairs of features may count at all, whatever their geometries say:
 *  equality of attributes, self joins, exclusions.
 */
#ifndef OJ_PAIR_FILTER_H
#define OJ_PAIR_FILTER_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../../flatten/text/oj_token_sets.h"
#include "../../foundations/relation/oj_relation.h"

#ifdef __cplusplus
extern "C" {
#endif

enum
{
    OJ_LONG_TEXT = 64 /* tokens, or more */
};

/** The conditions of a join on a batch; borrows the two sides. */
struct oj_pair_filter
{
    int is_needed; /**< 0: every pair may count */
    const struct oj_relation *relation;
    const struct oj_flat *input, *join_side;
    /** Of the first condition on texts: bits in which similar sets of so many
     *  tokens differ at most; -1: none are.  Bits do not tell of long ones. */
    int32_t most_apart[OJ_LONG_TEXT + 1][OJ_LONG_TEXT + 1];
    int32_t most_apart_short[OJ_LONG_TEXT + 1]; /**< from any that is short */
};

/** The filter of a batch. OJ_ERR_ARG when one side lacks what the other or the
 *  relation asks for. */
OJ_MUST_USE oj_status oj_pair_filter_make(const struct oj_relation *relation,
                                          const struct oj_flat *input,
                                          const struct oj_flat *join_side,
                                          struct oj_pair_filter *out,
                                          struct oj_error *err);

/** 1 when row and feature may be a pair; asked before any geometry is. */
int oj_pair_filter_passes(const struct oj_pair_filter *filter, int64_t row,
                          int64_t feature);

static inline int oj_pair_may_count(const struct oj_pair_filter *filter,
                                    int64_t row, int64_t feature)
{
    return !filter->is_needed || oj_pair_filter_passes(filter, row, feature);
}

/** Where most_apart has sets of so many tokens. */
static inline int32_t oj_token_count_class(int32_t n_tokens)
{
    return n_tokens < OJ_LONG_TEXT ? n_tokens : OJ_LONG_TEXT;
}

/** The similarity of the texts of a condition of relation; both have tokens. */
double oj_pair_similarity(const struct oj_relation *relation, int condition,
                          const struct oj_flat *input, int64_t row,
                          const struct oj_flat *join_side, int64_t feature);

/** The difference of the vectors of relation's condition; both have one. */
double oj_pair_difference(const struct oj_relation *relation,
                          const struct oj_flat *input, int64_t row,
                          const struct oj_flat *join_side, int64_t feature);

/** The measure of similar: the first similarity, negated, or where no texts are
 *  compared the difference. */
double oj_pair_rank(const struct oj_relation *relation,
                    const struct oj_flat *input, int64_t row,
                    const struct oj_flat *join_side, int64_t feature);

/** 1 when the two features have the same parts, rings and vertices, in the same
 *  order and bit for bit (0 and -0 are equal). */
int oj_flat_same_geometry(const struct oj_flat *a, int64_t feature_a,
                          const struct oj_flat *b, int64_t feature_b);

/** Of join features that are equal, or of their equal segments, how many in tie
 *  order can be in the answer of a nearest join; INT64_MAX: any number, since
 *  which pairs count does not follow from the geometry and, in a self join, the
 *  FID.  O(features) at most. */
int64_t oj_equals_to_keep(const struct oj_relation *relation,
                          const struct oj_flat *join_side,
                          const int32_t *tie_rank);

/** 0 when no pair of the feature can count: its class is below 0, its own
 *  greatest distance negative or NaN, one of its texts has no token, or it
 *  has no vector. */
static inline int oj_feature_may_pair(const struct oj_flat *flat,
                                      int64_t feature)
{
    for (int i = 0; i < flat->n_texts; i++)
    {
        if (flat->texts[i].size[feature] == 0)
            return 0;
    }
    if (flat->vectors.value != NULL &&
        !oj_vector_is_there(&flat->vectors, feature))
        return 0;
    return (flat->on_class == NULL || flat->on_class[feature] >= 0) &&
           (flat->max_distance == NULL || flat->max_distance[feature] >= 0.0);
}

/** The greatest distance at which the pair counts: the input feature's own,
 *  the join feature's own, or the relation's.  Negative: at none. */
static inline double oj_pair_max_distance(const struct oj_relation *relation,
                                          const struct oj_flat *input,
                                          int64_t row,
                                          const struct oj_flat *join_side,
                                          int64_t feature)
{
    double d = relation->max_distance;
    if (input->max_distance != NULL)
        d = input->max_distance[row];
    else if (join_side->max_distance != NULL)
        d = join_side->max_distance[feature];
    return d >= 0.0 ? d : -1.0;
}

#ifdef __cplusplus
}
#endif
#endif
