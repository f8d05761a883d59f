/** Conditions on a pair besides the join itself: equal attributes, similar
 * texts and vectors, spans of time, self joins, exclusions. */
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
    OJ_LONG_TEXT = 64 /* sets with this many tokens or more are one size
                         class */
};

/** The conditions of a join, prepared for a batch; borrows both sides. */
struct oj_pair_filter
{
    int is_needed;     /**< 0: every pair passes */
    int tests_classes; /**< 1: equal classes of -on are the only condition */
    const struct oj_relation *relation;
    const struct oj_flat *input, *join_side;
    /** For the first condition on texts, [class][class]: maximum number of bits
     * in which the bitmaps of two similar token sets of these size classes can
     * differ; -1: sets of these sizes are never similar.  Long sets have no
     * limit, because their bitmaps are too full. */
    int32_t most_apart[OJ_LONG_TEXT + 1][OJ_LONG_TEXT + 1];
    int32_t most_apart_short[OJ_LONG_TEXT + 1]; /**< [class] maximum of
                                                     most_apart over all sizes
                                                     of short sets */
};

/** Makes the filter of a batch. Fails with OJ_ERR_ARG if a side lacks arrays
 * that the relation or the other side needs. */
OJ_MUST_USE oj_status oj_pair_filter_make(const struct oj_relation *relation,
                                          const struct oj_flat *input,
                                          const struct oj_flat *join_side,
                                          struct oj_pair_filter *out,
                                          struct oj_error *err);

/** Implements oj_engine.takes for engines in which equal values of -on alone
 * decide. */
int oj_pair_filter_supports_attributes_join(const struct oj_relation *relation,
                                            const struct oj_flat *join_side,
                                            const struct oj_flat *input);

/** Returns 1 if the pair meets all conditions. Called before its geometries are
 * compared. */
int oj_pair_filter_passes(const struct oj_pair_filter *filter, int64_t row,
                          int64_t feature);

static inline int oj_pair_filter_accepts(const struct oj_pair_filter *filter,
                                         int64_t row, int64_t feature)
{
    return !filter->is_needed || oj_pair_filter_passes(filter, row, feature);
}

/** Returns the size class of a token count: an index of most_apart. */
static inline int32_t oj_token_count_class(int32_t n_tokens)
{
    return n_tokens < OJ_LONG_TEXT ? n_tokens : OJ_LONG_TEXT;
}

/** Returns the similarity, 0 to 1, of the texts of one condition of relation;
 * both texts must have tokens. */
double oj_pair_text_similarity(const struct oj_relation *relation,
                               int condition, const struct oj_flat *input,
                               int64_t row, const struct oj_flat *join_side,
                               int64_t feature);

/** Returns the difference of the two vectors of relation's condition on
 * vectors; neither may be missing. */
double oj_pair_vector_difference(const struct oj_relation *relation,
                                 const struct oj_flat *input, int64_t row,
                                 const struct oj_flat *join_side,
                                 int64_t feature);

/** Returns the measure of a pair of op similar: the similarity of the first
 * texts, negated; without texts, the difference of the vectors. */
double oj_pair_similar_measure(const struct oj_relation *relation,
                               const struct oj_flat *input, int64_t row,
                               const struct oj_flat *join_side,
                               int64_t feature);

/** Returns 1 if the two features have equal parts, rings and vertices, in equal
 * order (0 and -0 are equal). */
int oj_flat_same_geometry(const struct oj_flat *a, int64_t feature_a,
                          const struct oj_flat *b, int64_t feature_b);

/** Returns a hash of the first vertices of a feature and of their number; equal
 * geometries have equal hashes. */
uint64_t oj_flat_geometry_hash(const struct oj_flat *flat, int64_t feature);

/** Returns 0 if no pair of the feature can pass: its class is below 0, its own
 * maximum distance is negative or NaN, one of its texts has no token, or its
 * vector or a span is missing. */
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
    for (int i = 0; i < flat->n_spans; i++)
    {
        if (!oj_span_is_there(&flat->spans[i], feature))
            return 0;
    }
    return (flat->on_class == NULL || flat->on_class[feature] >= 0) &&
           (flat->max_distance == NULL || flat->max_distance[feature] >= 0.0);
}

/** Returns the maximum distance of a pair: that of the input feature if the
 * input side has the column max_distance, otherwise that of the join feature if
 * the join side has it, otherwise the relation's. A negative result means that
 * no pair is possible. */
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
