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
 *  Features are stored as tie ranks: at equal distance the lower rank wins.
 *
 *  If only features of equal class can be pairs (struct oj_flat.on_class),
 *  segments are sorted by class, and in Morton order within a class, so that a
 *  class is a run of slots.  A bundle may contain the end of one class and the
 *  start of the next.
 */
#ifndef CPU_LAYER_SEGMENT_TREE_H
#define CPU_LAYER_SEGMENT_TREE_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/base/cpu_tree.h"

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

struct oj_segments
{
    int64_t n_bundles;
    struct oj_bundle *bundle; /**< [n_bundles] */
    int32_t *feature;         /**< [n_bundles * OJ_BUNDLE] tie rank of each
                                   slot's feature */
    struct oj_tree tree;      /**< tree over the boxes of bundles: entry i is
                                   bundle i */
    double bundle_size;       /**< mean of width + height of the bundles'
                                   boxes */
    int64_t n_classes;
    struct oj_segments_class *of_class; /**< [n_classes] sorted by on_class;
                                             NULL: no classes */
};

/** Indexes the segments of flat.
 *     tie_rank   [n_features] tie ranks; NULL: the ordinals
 *     k_distinct of equal segments only those with the k_distinct lowest tie
 *     ranks are kept; INT64_MAX: all are kept
 * Errors: OJ_ERR_LIMIT for more than 2^31 - 1 segments; OJ_ERR_NOMEM. */
OJ_MUST_USE oj_status oj_segments_build(struct oj_segments *segments,
                                        const struct oj_flat *flat,
                                        const int32_t *tie_rank,
                                        int64_t k_distinct, int n_threads,
                                        struct oj_error *err);

/** Number of features of flat that have segments; counting stops at `most`. */
int64_t oj_segments_count_features(const struct oj_flat *flat, int64_t most);

/** The run of a class; empty if no feature has the class. O(log classes). */
struct oj_segments_class
oj_segments_find_class(const struct oj_segments *segments, int32_t on_class);

int64_t oj_segments_bytes(const struct oj_segments *segments);

void oj_segments_free(struct oj_segments *segments);

#endif
