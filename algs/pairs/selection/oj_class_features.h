/** The features of each -on class.
 *
 *  class       0     1       2   ...
 *  first     [ 0     1       4   ...   positions in feature
 *  feature   [ 7     3 5 8   9   ...   ordinals
 *
 *  If all classes are small (a key, an address, a customer), a join visits the
 *  features of a row's class one by one and needs no spatial index.
 *  Source: ours. */
#ifndef OJ_CLASS_FEATURES_H
#define OJ_CLASS_FEATURES_H

#include "../../../flatten/arrays/oj_flat.h"

/** Limits of small classes, for which joins visit the features of a row's class
 * one by one: at most OJ_FEW_OF_CLASS features on average, each class weighted
 * by its number of features, and at most OJ_MOST_OF_CLASS in the largest
 * class. A row of the largest class then costs about as much as a search. */
#define OJ_FEW_OF_CLASS 8
#define OJ_MOST_OF_CLASS 64

/** The features by class. Owner; zeroed memory is a valid empty one. */
struct oj_class_features
{
    int64_t n_classes;
    int32_t *first;   /**< [n_classes + 1] positions in feature */
    int32_t *feature; /**< [first[n_classes]] ordinals, class by class, in tie
                           order */
};

/** Sets *are_small to 1 if flat has classes that are small (OJ_FEW_OF_CLASS,
 * OJ_MOST_OF_CLASS), and class numbers are below a few times the number of
 * features. O(n), with a byte per class; for layers with large classes it
 * usually returns after a few thousand features. */
OJ_MUST_USE oj_status oj_class_features_are_small(const struct oj_flat *flat,
                                                  int *are_small,
                                                  struct oj_error *err);

/** Lists the features of each class of flat. Leaves out features that cannot be
 * in a pair (is_listed() returns 0). tie_rank: [features]; NULL: the ordinal is
 * the rank. O(n). */
OJ_MUST_USE oj_status
oj_class_features_make(struct oj_class_features *classes,
                       const struct oj_flat *flat, const int32_t *tie_rank,
                       int (*is_listed)(const void *user, int64_t feature),
                       const void *user, struct oj_error *err);

int64_t oj_class_features_bytes(const struct oj_class_features *classes);

void oj_class_features_free(struct oj_class_features *classes);

/** Sets *first and *end to the positions of a class; an empty range if no
 * feature has the class. */
static inline void
oj_class_features_find(const struct oj_class_features *classes,
                       int32_t on_class, int64_t *first, int64_t *end)
{
    *first = *end = 0;
    if (on_class < 0 || on_class >= classes->n_classes)
        return;
    *first = classes->first[on_class];
    *end = classes->first[on_class + 1];
}

#endif
