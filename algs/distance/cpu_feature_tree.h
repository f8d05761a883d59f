/** A packed tree over the boxes of a side's features, nearest first.
 *
 *  entry          0   1   2  ...   features in Morton order of their middles
 *  feature      [ 7   3   9  ...   ordinals
 *  x, y         [                  layers of single points: where they are
 *
 *  Features that join nothing (no parts, a class below 0, a distance of their
 *  own that is negative or NaN) are left out.
 */
#ifndef CPU_FEATURE_TREE_H
#define CPU_FEATURE_TREE_H

#include "../base/cpu_order.h"
#include "../base/cpu_tree.h"
#include "cpu_features.h"

/** Owner; zeroed memory is a valid empty one. */
struct oj_feature_tree
{
    const struct oj_features *features; /**< outlives this */
    struct oj_tree tree;
    int32_t *feature; /**< [n_entries] */
    double *x, *y;    /**< [n_entries], or NULL */

    /** [n_nodes * OJ_FANOUT] greatest distance of the features below a child,
     *  as the tree compares it; NULL: features have none of their own. */
    float *reach2;

    /** [n_nodes * OJ_FANOUT] lowest place in tie order below a child: among
     *  very many features in one place, only the first of them matter. */
    int32_t *first_rank;
};

/** Puts the features in Morton order of their middles, all buckets sorted. */
OJ_MUST_USE oj_status oj_features_order(const struct oj_features *features,
                                        int n_threads, struct oj_order *order,
                                        struct oj_error *err);

/** tie_rank: [n_features], or NULL: the ordinal. */
OJ_MUST_USE oj_status oj_feature_tree_build(struct oj_feature_tree *tree,
                                            const struct oj_features *features,
                                            const int32_t *tie_rank,
                                            int n_threads,
                                            struct oj_error *err);

int64_t oj_feature_tree_bytes(const struct oj_feature_tree *tree);

void oj_feature_tree_free(struct oj_feature_tree *tree);

#endif
