/** Finds the nearest join features of points, group by group.
 *
 *  Points in Morton order are divided into patches, and patches into groups,
 *  of points that lie close together. A patch finds the bundles of segments,
 *  and a group the few segments of these, that can be nearest to one of its
 *  points, whatever max_distance is (cpu_point_patches.h). Then every point of
 *  the group is measured against these segments in single precision. Segments
 *  that may be nearest to a point, allowing for rounding, are measured again
 *  in GEOS's order of operations, which decides. */
#ifndef CPU_NEAREST_SEARCH_H
#define CPU_NEAREST_SEARCH_H

#include "../../foundations/base/cpu_morton_order.h"
#include "../../foundations/base/oj_radix_sort.h"
#include "../../foundations/relation/oj_relation.h"
#include "../../geometry/rings/cpu_layer_segment_tree.h"
#include "../../pairs/selection/oj_answer_ranking.h"
#include "../../pairs/selection/oj_pair_filter.h"
#include "../within/cpu_containing.h"

#define OJ_GROUP 32 /* maximum number of points in a group */

/* Number of slots of struct oj_feature_bounds, a power of two, and maximum
 * number of features in it. */
#define OJ_FEATURE_BOUND_SLOTS 4096
#define OJ_MOST_FEATURE_BOUNDS 3072

#define OJ_NO_CLASS (-2) /* the point excludes no class */

/** The segments that a search considers. */
struct oj_segment_choice
{
    int64_t first, end; /**< slots first .. end - 1 are considered: all, or
                             those of one -on class */
    int64_t skip_first, skip_end; /**< range of slots that are skipped: those of
                                       the class that all points exclude; empty
                                       if there is no such class */
    int32_t skip_class;           /**< class of the slots skip_first .. skip_end
                                       - 1, or OJ_NO_CLASS */
    int64_t n_features;           /**< number of features with such segments */
    int is_all;                   /**< 1: every row considers all segments */
    const int32_t *class_of;      /**< [features] -on class of each feature, or
                                       NULL if classes are not compared */
    int32_t on_class;             /**< -on class of the features that are
                                       considered */
    /** 1: each row excludes one class of features. The class of feature f is
     * excluded[f]; if excluded is NULL, it is f itself. */
    int excludes;
    const int32_t *excluded;
    int32_t left_out; /**< class that is not considered, because all points of
                           the current patch or group exclude it, or
                           OJ_NO_CLASS */
    /** If this is not NULL, the search is for a single point, and only features
     * that form a pair with `row` under this filter are considered. */
    const struct oj_pair_filter *filter;
    int32_t row;
};

/** The join side as the engine stores it. */
struct oj_cpu_index
{
    struct oj_relation relation;  /**< relation of the join; its k is reduced to
                                       at most the number of features, and is
                                       OJ_EVERY_PAIR in op dwithin */
    const int32_t *tie_rank;      /**< [features] tie rank of each feature, or
                                       NULL if this is its ordinal */
    const int32_t *on_class;      /**< [features] -on class of each feature, or
                                       NULL */
    struct oj_segments segments;  /**< segments of all features */
    int64_t n_features;           /**< number of join features */
    int fids_ascend;              /**< 1: FIDs ascend strictly */
    const int32_t *exclude_class; /**< [features] class of each feature for
                                       -exclude, or NULL */
};

/** The features among which points search: all, or those of one -on class,
 * without those of a large class that all points exclude. */
struct oj_nearest_among
{
    const struct oj_segments_class *of; /**< the -on class, or NULL for all
                                             features */
    const struct oj_segments_exclude_class
        *without; /**< the class that is left out, or NULL */
};

/** Eight boxes near a patch of points. */
struct oj_front_block
{
    struct oj_tree_node box;
    int32_t entry[OJ_FANOUT]; /**< bundle of each box, or -1 if the box is
                                   unused */
    float d2[OJ_FANOUT];      /**< squared distance of each box to the last
                                   place for which it was computed */
};

struct oj_front
{
    int64_t n, cap_blocks;
    struct oj_front_block *block;
};

struct oj_feature_bound_slot
{
    double d2; /* minimum squared distance of the feature from the centre of a
                  place */
    int32_t feature;
    uint32_t stamp; /* equals that of the table if the slot is in use */
};

/** Upper bounds of the distance of single features. A segment beyond the bound
 * of its own feature is not needed, however many features are requested.
 *
 * The bound of a search is the k-th smallest distance; there is none while
 * fewer than k features are in reach. Some searches collect very many
 * segments, or end with fewer than k features and more than a few segments.
 * They then record the minimum distance of each feature in this table and drop
 * segments beyond it. Features for which the table has no room have no bound
 * of their own. Zeroed memory is a valid empty table. */
struct oj_feature_bounds
{
    int is_used; /**< 1: the current search uses the table */
    int32_t n;
    uint32_t stamp;
    struct oj_feature_bound_slot slot[OJ_FEATURE_BOUND_SLOTS];
};

/** A feature near a group, in the order in which features are found. */
struct oj_found_feature
{
    int32_t feature;
    int32_t place;   /**< index among the selected features, in tie order
                          (oj_group_features_select()), or -1 if it is not
                          selected */
    uint32_t inside; /**< bit i: its polygons contain point i of the group */
    /** Lower and upper bound of the distance from any point of the group. After
     * the selection `low` is the distance within which segments of the feature
     * are kept. */
    float low, high;
};

struct oj_found_slot
{
    int32_t feature, place; /**< place: index among the features found */
    uint32_t stamp;         /**< equals that of the table if the slot is in
                                 use */
};

/** The features near a group of points, and the pairs of its points
 * (cpu_group_features.h). Owner. */
struct oj_group_features
{
    int64_t n;
    struct oj_found_feature *found;
    int32_t *found_of;          /**< [candidates] index in found of the
                                     candidate's feature */
    struct oj_found_slot *slot; /**< [n_slots] hash table of found by feature */
    int64_t n_slots;
    int shift; /**< right shift of a 32-bit hash that gives a slot */
    uint32_t stamp;
    struct oj_keyed *key;   /**< [2 n] sort keys, and scratch */
    int64_t *first;         /**< [n + 1] index of each feature's first
                                 candidate in the candidates of the scratch */
    int32_t *feature;       /**< [n] ordinals */
    int32_t *nearest_first; /**< [n] indices of all features, those near to the
                                 group first */
    int64_t cap_nearest_first;
    float *least2;            /**< [n][OJ_GROUP] squared distance of each point,
                                   in units of the matrix */
    uint32_t *inside, *close; /**< [n] bit i of inside: point i is inside of the
                                   feature; bit i of close: the feature may be
                                   in the answer of point i */
    float *column;            /**< [n] scratch: squared distances of one
                                   point */
    int64_t offset[OJ_GROUP + 1], end[OJ_GROUP]; /**< first pair of each point,
                                                      and the end of its
                                                      pairs */
    int32_t *pair_of;        /**< [pairs] ordinals of the features */
    double *pair_distance;   /**< [pairs] */
    int32_t *last_candidate; /**< [pairs of the group's last point] nearest
                                  candidate of the feature; a number below 0 if
                                  the point is inside of it */
    int64_t cap_last_candidate;
    int64_t cap_key, cap_first, cap_feature, cap_least2, cap_inside, cap_close,
        cap_column, cap_pair_of, cap_pair_distance, cap_found, cap_found_of;
};

/** The nearest segment of a feature to a point, with their distance. */
struct oj_carried_segment
{
    double ax, ay, bx, by, distance;
};

/** A segment of a feature near a group. */
struct oj_near_segment
{
    double ax, ay, bx, by;
};

/** The k nearest features of the point answered last. They bound the next
 * search: the k-th nearest feature of any point is at most as far as the
 * farthest of these. If features were listed, the carry also has a segment of
 * each feature near the last group: the k-th nearest feature of a point is at
 * most as far as the k-th nearest of these. */
struct oj_nearest_carry
{
    int64_t n_near, cap_near;
    struct oj_near_segment *near; /**< [n_near] a segment of each feature near
                                       the last group */
    double x, y;
    double distance; /**< distance of the k-th nearest feature; INFINITY if no
                          features are stored */
    int64_t n, cap;
    struct oj_carried_segment *segment; /**< [n] the nearest segment of each
                                             feature */
};

/** Working memory of one thread; zeroed memory is valid. */
struct oj_nearest_scratch
{
    struct oj_ring_cells *cells;     /**< cells of the join side's polygons;
                                          without rings if no polygon counts as
                                          an area */
    struct oj_containing containing; /**< polygons that contain the points of
                                          the patch */
    struct oj_front near_bundles;    /**< bundles near the patch */
    int32_t n_near;
    int64_t cap_near;
    int32_t *near; /**< indices in near_bundles of those that the group needs */
    int64_t n_candidates, cap_candidates; /**< candidates of the group */
    int64_t *candidate;    /**< slots of the segments: bundle * OJ_BUNDLE +
                                place */
    float *candidate_low;  /**< lower bound of the candidate's distance from any
                                point of the group */
    float *candidate_high; /**< upper bound of that distance; used if answers
                                are lists or ties are needed */
    int64_t cap_low, cap_high;
    int64_t *sorted; /**< candidates, sorted by feature */
    int64_t cap_sorted;
    int too_many; /**< 1: the search was stopped because it found too many boxes
                       or candidates; the caller retries with fewer points */
    int64_t cap_matrix;
    float *matrix;            /**< see oj_group_matrix_fill() */
    int64_t n_best, cap_best; /**< length of the list of the features that are
                                   nearest to the centre so far; used for k >
                                   1 */
    int32_t *best_feature;
    double *best_d2;
    int64_t cap_best_d2;
    struct oj_feature_bounds *own; /**< used for k > 1 */
    struct oj_group_features features;
    struct oj_nearest_carry carry;
    struct oj_segment_choice choice;
    struct oj_ranking ranking; /**< ranks the pairs of one point that has
                                    many */
    int64_t expected;    /**< expected number of features per point in joins
                              within a reach */
    int64_t n_within;    /**< number of features found or listed for the points
                              of the current run */
    int has_few_within;  /**< 1: in a join of the k nearest, the points of the
                              last patch had fewer than k features within their
                              reach, on average */
    int has_many_within; /**< 1: points have so many features within their reach
                              that these are listed for each group */
    int64_t n_asked; /**< number of nearest features to find first if pairs are
                        filtered; 0 before it is set */
    int64_t n_open, cap_open;
    struct oj_ordered_point *open; /**< [n_open] points for which more features
                                        must be found */
    struct oj_ordered_point *of_class; /**< points, sorted by class */
    struct oj_keyed *class_key;        /**< keys for sorting points by class */
    int64_t cap_of_class, cap_class_key;
    /** Maximum width + height of patches and of groups, adapted to the data.
     * Initially 4 * limit_base and limit_base, the mean size of bundles. */
    double patch_limit, group_limit, limit_base;
    const int *cancel; /**< polled before each group; may be NULL */
    int timings;       /**< 1: fill filter_s and refine_s */
    double filter_s, refine_s;
    int64_t n_refined; /**< number of (point, segment) pairs measured */
};

/** Destination of the answers of the points. */
struct oj_nearest_output
{
    const int32_t *row; /**< [points] input row of each point, by its index, or
                             NULL if the index is the row */
    /** [rows] answers of rows with at most one pair. The entry of a row is its
     * pair, -1 and NaN if nothing is within max_distance, or OJ_ONE_OF_MANY if
     * its pairs are in answers. If ones is NULL, pairs are stored in lists or
     * answers. */
    struct oj_single_pairs *ones;
    struct oj_answers *answers; /**< all other pairs; never NULL */
    /** [rows][list_size] pairs of each row; join_row is -1 in unused entries of
     * a list. The member offset is not used. If lists is NULL, pairs are stored
     * in ones or answers. */
    const struct oj_matches *lists;
    int64_t list_size;
    /** Pairs that do not pass this filter are dropped. If it is NULL, all pairs
     * within the relation's distance are kept. */
    const struct oj_pair_filter *filter;
};

/** Returns 1 if the only condition is that each row excludes one class of
 * features, or the feature with its own FID. */
static inline int
oj_filter_excludes_one_class(const struct oj_cpu_index *index,
                             const struct oj_pair_filter *filter)
{
    const struct oj_relation *relation = &index->relation;
    int by_class = filter->input->exclude_class != NULL;
    if (relation->exclude_same_geometry || relation->min_distance > 0.0 ||
        filter->input->n_features == 0 || filter->join_side->n_features == 0 ||
        filter->input->max_distance != NULL || relation->unordered_pairs != 0 ||
        relation->n_spans > 0 || oj_relation_compares_attributes(relation))
        return 0;
    return relation->exclude_self ? !by_class && index->fids_ascend : by_class;
}

/** Finds and stores the pairs of n points in Morton order among the given
 * features: the k nearest of each point, with all ties if relation.ties is
 * OJ_TIES_ALL, or in op dwithin all features within its reach (each point is
 * then a row). Costs some hundred nanoseconds a group.
 *
 * If pairs are filtered, more than k features are found and tested with the
 * filter from the nearest on. Points for which too few pass are searched again
 * for more features. */
OJ_MUST_USE oj_status oj_nearest_search_points(
    const struct oj_cpu_index *index, struct oj_nearest_scratch *scratch,
    int64_t n, const struct oj_ordered_point *point,
    const struct oj_nearest_among *among,
    const struct oj_nearest_output *output, struct oj_error *err);

void oj_nearest_scratch_free(struct oj_nearest_scratch *scratch);

#endif
