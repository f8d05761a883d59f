/** Selects, among features with equal geometries, those that an answer of a
 *  nearest join can contain.
 *
 *  Equal features are equally near, so their tie ranks order them. The first k
 *  in this order are enough unless a condition excludes some of them:
 *
 *    -on        a row is joined with one class only: the first k of each class
 *    -exclude   a row excludes one class: the first k, and for each class the
 *               first k of the other classes; together at most 2 k
 *    self       a row excludes one feature: the first k + 1; where FIDs
 *               repeat, a row excludes all features with its FID (as -exclude)
 *
 *  Features that share an equal segment are treated likewise, unless a
 *  condition depends on whole geometries. Source: ours. */
#ifndef OJ_EQUAL_FEATURES_H
#define OJ_EQUAL_FEATURES_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/relation/oj_relation.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Rule that selects the features to keep; borrows its arrays. */
struct oj_equal_features
{
    int64_t k; /**< features to keep of those that all conditions treat alike;
                    INT64_MAX: all are kept */
    const int32_t *tie_rank;      /**< [features] tie ranks; NULL: the ordinal
                                       is the rank */
    const int32_t *on_class;      /**< [features] or NULL */
    const int32_t *exclude_class; /**< [features] or NULL */
    const int64_t *exclude_fid;   /**< [features] FIDs that repeat, or NULL */
};

/** Returns the rule for a nearest join whose rows consist of points.
 * O(features). */
struct oj_equal_features
oj_equal_features_make(const struct oj_relation *relation,
                       const struct oj_flat *join_side,
                       const int32_t *tie_rank);

/** Sets is_needed[i] to 0 if no answer can contain feature[i], otherwise to 1.
 * feature: [n] distinct features of equal geometry, in any order. O(n log n).
 */
OJ_MUST_USE oj_status oj_equal_features_mark_needed(
    const struct oj_equal_features *of, int64_t n, const int32_t *feature,
    uint8_t *is_needed, struct oj_error *err);

/** Returns 1 if the FIDs are distinct: they ascend, or there is a tie rank,
 * which exists only for FIDs that are distinct and do not ascend. */
int oj_fids_are_distinct(const struct oj_flat *flat, const int32_t *tie_rank);

#ifdef __cplusplus
}
#endif
#endif
