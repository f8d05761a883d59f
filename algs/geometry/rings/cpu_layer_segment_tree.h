/** A packed tree of all segments of the join side, eight to a bundle.
 *
 *  bundle 0           bundle 1          ...   neighbours in Morton order
 *  ax[8] ay[8]        ax[8] ay[8]             given coordinates and direction
 *  bx[8] by[8]        bx[8] by[8]
 *  feature[8]         feature[8]              feature of each segment
 *
 *  A point is a segment with equal ends.  The last bundle is padded with copies
 *  of a segment, which do not change the result.
 *
 *  If only features of equal class can be pairs (struct oj_flat.on_class),
 *  segments are sorted by class, and in Morton order within a class, so that a
 *  class is a run of slots.  A bundle may contain the end of one class and the
 *  begin of the next.
 *
 *  If rows leave out a class (struct oj_flat.exclude_class), the segments of
 *  large ones are runs, too, behind each other within those of a class to be
 * on: a row that leaves one out looks at what is before and behind its run.
 */
#ifndef CPU_LAYER_SEGMENT_TREE_H
#define CPU_LAYER_SEGMENT_TREE_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/base/cpu_tree.h"
#include "../../pairs/selection/oj_equal_features.h"

#define OJ_BUNDLE 8

struct oj_bundle
{
    double ax[OJ_BUNDLE], ay[OJ_BUNDLE], bx[OJ_BUNDLE], by[OJ_BUNDLE];
};

/** The run of segments of a class. */
struct oj_segments_class
{
    int64_t first, end; /**< slots first .. end - 1; slot = bundle * OJ_BUNDLE +
                             position */
    int64_t n_features; /**< features of the class that have segments */
    double bundle_size; /**< mean of width + height of its bundles' boxes */
    int32_t on_class;
};

/* Maximum number of classes with more than a fifth of all features each. */
#define OJ_LARGE_CLASSES 4

/** The run of a large class that rows leave out, among all segments or those of
 * a class to be on. */
struct oj_segments_exclude_class
{
    int64_t first, end; /**< slots */
    int64_t n_features; /**< features of it that have segments */
    int32_t on_class;   /**< or 0 where features have none */
    int32_t exclude_class;
};

struct oj_segments
{
    int64_t n_bundles;
    struct oj_bundle *bundle; /**< [n_bundles] */
    int32_t *feature;         /**< [n_bundles * OJ_BUNDLE] feature of each
                                   slot */
    struct oj_tree tree;      /**< tree over the boxes of bundles: entry i is
                                   bundle i */
    double bundle_size;       /**< mean of width + height of the bundles'
                                   boxes */
    int64_t n_classes;
    struct oj_segments_class *of_class; /**< [n_classes] sorted by on_class,
                                             or NULL */
    int n_large;
    int32_t large[OJ_LARGE_CLASSES]; /**< [n_large] classes that have runs */
    int64_t n_left_out;
    struct oj_segments_exclude_class *left_out; /**< [n_left_out] sorted by
                                                on_class, then as large */
};

/** Indexes the segments of flat.
 *     equal   which features of equal segments are needed; the segments of the
 *             others are left out
 * Errors: OJ_ERR_LIMIT for more than 2^31 - 1 segments; OJ_ERR_NOMEM. */
OJ_MUST_USE oj_status oj_segments_build(struct oj_segments *segments,
                                        const struct oj_flat *flat,
                                        const struct oj_equal_features *equal,
                                        int n_threads, struct oj_error *err);

/** Number of features of flat that have segments; counting stops at `most`. */
int64_t oj_segments_count_features(const struct oj_flat *flat, int64_t most);

/** The run of a class; empty if no feature has the class. O(log classes). */
struct oj_segments_class
oj_segments_find_on_class(const struct oj_segments *segments, int32_t on_class);

/** The place of a class to be left out in large, or -1. */
static inline int oj_segments_find_large(const struct oj_segments *segments,
                                         int32_t exclude_class)
{
    int i = segments->n_large - 1;
    while (i >= 0 && segments->large[i] != exclude_class)
        i--;
    return i;
}

/** The run of large class i among the features of a class to be on (0 where
 * they have none); empty if no feature is of both.  O(log classes). */
struct oj_segments_exclude_class
oj_segments_find_exclude_class(const struct oj_segments *segments,
                               int32_t on_class, int i);

int64_t oj_segments_bytes(const struct oj_segments *segments);

void oj_segments_free(struct oj_segments *segments);

#endif
