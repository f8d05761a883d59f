/** A packed tree of all segments of the join side, eight to a bundle.
 *
 *  bundle 0           bundle 1          ...   neighbours in Morton order
 *  ax[8] ay[8]        ax[8] ay[8]             segments a -> b as in the layer
 *  bx[8] by[8]        bx[8] by[8]
 *  feature[8]         feature[8]              feature of each segment
 *
 *  A point is a segment with equal ends.  The last bundle is padded with copies
 *  of a segment, which do not change the result.
 *
 *  Two conditions divide the features into classes, which determine the order
 *  of the segments.  Within equal classes they are in Morton order.
 *
 *  - Only features of equal on-class can be pairs (-on, struct
 *    oj_flat.on_class).  Each on-class is a run of slots.  A bundle may contain
 *    the end of one run and the begin of the next.
 *  - Features of equal exclude-class cannot be pairs (-exclude, struct
 *    oj_flat.exclude_class).  Each large exclude-class is a run of slots within
 *    the run of an on-class (or among all segments).  A row of this class
 *    searches the slots before and after this run.
 */
#ifndef CPU_LAYER_SEGMENT_TREE_H
#define CPU_LAYER_SEGMENT_TREE_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/base/cpu_packed_tree.h"
#include "../../pairs/selection/oj_equal_features.h"
#include "../../pairs/selection/oj_large_classes.h"

#define OJ_BUNDLE 8

/** Eight segments a -> b. */
struct oj_bundle
{
    double ax[OJ_BUNDLE], ay[OJ_BUNDLE], bx[OJ_BUNDLE], by[OJ_BUNDLE];
};

/** The run of segments of an on-class. */
struct oj_segments_class
{
    int64_t first, end; /**< slots from first to end - 1; slot = bundle *
                             OJ_BUNDLE + position in the bundle */
    int64_t n_features; /**< number of features of the class that have segments
                         */
    double bundle_size; /**< mean of width + height of the boxes of the class's
                             bundles */
    int32_t on_class;
};

/** The run of a large exclude-class within an on-class. Rows of this
 * exclude-class skip the run. */
struct oj_segments_exclude_class
{
    int64_t first, end; /**< slots from first to end - 1 */
    int64_t n_features; /**< number of features of the run that have segments */
    int32_t on_class;   /**< 0 if the layer has no on-classes */
    int32_t exclude_class;
};

/** The segments of a layer and their tree. Owner; zeroed memory is valid. */
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
    struct oj_segments_class *of_class; /**< [n_classes] runs of on-classes,
                                             sorted by on_class; NULL: the layer
                                             has no on-classes */
    struct oj_large_classes large;      /**< the large exclude-classes */
    int64_t n_left_out;
    struct oj_segments_exclude_class *left_out; /**< [n_left_out] runs of large
                                                exclude-classes, sorted by
                                                on_class, then in the order of
                                                `large` */
};

/** Indexes the segments of flat. If many are equal, omits those of features
 * that `equal` does not keep. Errors: OJ_ERR_LIMIT for more than 2^31 - 1
 * segments or 2^32 - 1 vertices; OJ_ERR_NOMEM. */
OJ_MUST_USE oj_status oj_segments_build(struct oj_segments *segments,
                                        const struct oj_flat *flat,
                                        const struct oj_equal_features *equal,
                                        int n_threads, struct oj_error *err);

/** Returns the number of features of flat that have segments, counted up to
 *  `most`. */
int64_t oj_segments_count_features(const struct oj_flat *flat, int64_t most);

/** Returns the run of an on-class, which is empty if no feature has the class.
 *  O(log classes).
 */
struct oj_segments_class
oj_segments_find_on_class(const struct oj_segments *segments, int32_t on_class);

/** Returns the run of large exclude-class i within an on-class (0 if the layer
 * has none). The run is empty if no feature has both classes. O(log
 * classes). */
struct oj_segments_exclude_class
oj_segments_find_exclude_class(const struct oj_segments *segments,
                               int32_t on_class, int i);

int64_t oj_segments_bytes(const struct oj_segments *segments);

void oj_segments_free(struct oj_segments *segments);

#endif
