/** The nearest join features of points, group by group.
 *
 *  Points come in Morton order and are taken in patches of groups that lie
 * close together.  A patch finds the few segments that can be nearest to a
 * point of a group, whatever max_distance is (cpu_point_patches.h); then every
 * point is measured against these, and those that come within rounding of its
 * least distance are measured again in GEOS's order of operations, which
 * decides.
 */
#ifndef CPU_NEAREST_SEARCH_H
#define CPU_NEAREST_SEARCH_H

#include "../../foundations/base/cpu_spatial_order.h"
#include "../../foundations/base/oj_radix.h"
#include "../../foundations/relation/oj_relation.h"
#include "../../geometry/rings/cpu_layer_segment_tree.h"
#include "../../pairs/selection/oj_pair_filter.h"
#include "../../pairs/selection/oj_ranking.h"
#include "../within/cpu_containing.h"

#define OJ_GROUP 32 /* points a group has at most */

#define OJ_OWN_SLOTS 4096 /* a power of two */
#define OJ_OWN_MOST 3072  /* features that are noted */

#define OJ_NO_CLASS (-2) /* of a point: none is excluded */

/** Which segments a search looks at. */
struct oj_segment_choice
{
    int64_t first, end; /**< slots: all of them, or those of a class */
    int64_t skip_first, skip_end; /**< but for these: a class that all points
                                       leave out, or none */
    int32_t skip_class;           /**< that class, or OJ_NO_CLASS */
    int64_t n_features;           /**< that have them */
    int is_all;                   /**< 1: all segments, whatever the row */
    const int32_t *class_of;      /**< [features], or NULL: of no matter */
    int32_t on_class;             /**< of the features looked at */
    /** 1: a row's nearest is not of its class; that of a feature is excluded[]
     *  or, NULL, the feature itself. */
    int excludes;
    const int32_t *excluded;
    int32_t left_out; /**< the class that is not looked at, since no point of
                         the place may have it; or OJ_NO_CLASS */
    /** Of a search for one point: looked at is only what may be a pair of row;
     *  NULL: all. */
    const struct oj_pair_filter *filter;
    int32_t row;
};

/** The join side as the engine holds it. */
struct oj_cpu_index
{
    struct oj_relation relation;  /**< k: no more than there are features */
    const int32_t *tie_rank;      /**< [features] or NULL: the ordinal */
    const int32_t *on_class;      /**< [features] or NULL */
    struct oj_segments segments;  /**< of all features */
    int64_t n_features;           /**< that have segments */
    int fids_ascend;              /**< 1: each is greater than the one before */
    const int32_t *exclude_class; /**< [features] or NULL */
};

/** The features that points may have: all, or those of a class that must be
 * equal, without those of a large class that all points leave out. */
struct oj_nearest_among
{
    const struct oj_segments_class *of;         /**< NULL: all features */
    const struct oj_segments_left_out *without; /**< NULL: leaves out none */
};

/** Boxes near a patch of points, eight at a time. */
struct oj_front_block
{
    struct oj_tree_node box;
    int32_t entry[OJ_FANOUT]; /**< of the tree they come from */
    float d2[OJ_FANOUT];      /**< squared distance to what was asked last */
};

struct oj_front
{
    int64_t n, cap_blocks;
    struct oj_front_block *block;
};

struct oj_own_slot
{
    double d2; /* least squared distance from the centre of a place */
    int32_t feature;
    uint32_t stamp; /* not that of the table: empty */
};

/** How near each feature is known to be: its own segments that are farther than
 *  that are needed by nobody, however many features are asked for.
 *
 *  The bound of a search is the k-th least distance, and there is none while
 *  fewer than k features are in reach.  A search that collects very much then
 *  notes the least distance of each feature in this table, and leaves out what
 *  lies behind it.  Features that find no room in it are not bounded by
 *  themselves.  Zeroed memory is a valid empty table. */
struct oj_own_bounds
{
    int is_used; /**< 1: the search at work looks at it */
    int32_t n;
    uint32_t stamp;
    struct oj_own_slot slot[OJ_OWN_SLOTS];
};

/** A feature near a group, in the order in which they are found. */
struct oj_found_feature
{
    int32_t feature;
    int32_t place;   /**< among those that are listed, or -1 */
    uint32_t inside; /**< bits of points that its polygons contain */
    float low,
        high; /**< what it is away from the group at least, and at most */
};

struct oj_found_slot
{
    int32_t feature, place; /**< place among those found */
    uint32_t stamp;         /**< not that of the table: empty */
};

/** The features near a group (cpu_group_features.h). */
struct oj_group_features
{
    int64_t n;
    struct oj_found_feature *found;
    int32_t *found_of;          /**< [candidates] into found */
    struct oj_found_slot *slot; /**< [n_slots] of found by feature */
    int64_t n_slots;
    int shift; /**< of a hash of 32 bits, to those in use */
    uint32_t stamp;
    struct oj_keyed *key;     /**< [2 n] what they are sorted by */
    int64_t *first;           /**< [n + 1] into the scratch's candidates */
    int32_t *feature;         /**< [n] ordinals */
    float *least2;            /**< [n][OJ_GROUP] */
    uint32_t *inside, *close; /**< [n] bits of points */
    float *column;            /**< [n] numbers of one point */
    int64_t offset[OJ_GROUP + 1], end[OJ_GROUP]; /**< of each point's pairs */
    int32_t *pair_of;        /**< [pairs] places in feature */
    double *pair_distance;   /**< [pairs] */
    int32_t *pair_candidate; /**< [pairs] the nearest of the feature; below 0:
                                  the point is inside */
    int64_t cap_pair_candidate;
    int64_t cap_key, cap_first, cap_feature, cap_least2, cap_inside, cap_close,
        cap_column, cap_pair_of, cap_pair_distance, cap_found, cap_found_of;
};

/** The nearest segment of a feature to a point, with their distance. */
struct oj_carried_segment
{
    double ax, ay, bx, by, distance;
};

/** The k nearest features of the last point that was answered: a point beside
 *  it has its k-th nearest no farther away than the farthest of these. */
struct oj_nearest_carry
{
    double x, y;
    double distance; /**< of its k-th nearest; INFINITY: not known */
    int64_t n, cap;
    struct oj_carried_segment *segment; /**< [n], one a feature */
};

/** Working memory of one thread; zeroed memory is valid. */
struct oj_nearest_scratch
{
    struct oj_ring_cells *cells;     /**< of the join side's polygons; without
                                          rings where none counts as an area */
    struct oj_containing containing; /**< of the points of the patch */
    struct oj_front near_bundles;    /**< of the patch */
    int32_t n_near;
    int64_t cap_near;
    int32_t *near; /**< places in near_bundles that the group needs */
    int64_t n_candidates, cap_candidates; /**< of the group */
    int64_t *candidate;    /**< slots: bundle * OJ_BUNDLE + place */
    float *candidate_low;  /**< what each is away from the group at least */
    float *candidate_high; /**< and at most; k > 1 */
    int64_t cap_low, cap_high;
    int64_t *sorted; /**< candidates in the order of their features */
    int64_t cap_sorted;
    int too_many; /**< the walk was given up: take fewer points */
    int64_t cap_matrix;
    float *matrix;            /**< see oj_fill_matrix() */
    int64_t n_best, cap_best; /**< k > 1: nearest features to the centre */
    int32_t *best_feature;
    double *best_d2;
    int64_t cap_best_d2;
    struct oj_own_bounds *own; /**< k > 1 */
    struct oj_group_features features;
    struct oj_nearest_carry carry;
    struct oj_segment_choice choice;
    struct oj_ranking ranking; /**< of one point with many pairs */
    int64_t expected;    /**< within a reach: features of a point, about */
    int64_t n_within;    /**< and of all points since the search began */
    int has_many_within; /**< 1: too many for answers without lists */
    int64_t asked; /**< where pairs are filtered: nearest features asked for at
                        first; 0: not known yet */
    int64_t n_open, cap_open;
    struct oj_ordered_point *open; /**< points that want more features */
    struct oj_ordered_point
        *of_class;              /**< points in the order of their classes */
    struct oj_keyed *class_key; /**< by which these are sorted */
    int64_t cap_of_class, cap_class_key;
    /** width + height that patches and groups may have; follow the data, from
     *  some bundles' sizes on, limit_base */
    double patch_limit, group_limit, limit_base;
    const int *cancel; /**< looked at before each group; may be NULL */
    int timings;       /**< 1: fill filter_s and refine_s */
    double filter_s, refine_s;
    int64_t n_refined; /**< (point, segment) pairs measured */
};

/** Where the answers of points go. */
struct oj_nearest_output
{
    const int32_t *row; /**< input row of a point by its index, NULL: the index
                             is the row */
    struct oj_ones *ones; /**< rows of one pair at most, by row; what is in no
                               list is written for each point, -1 and NaN where
                               nothing is within max_distance; or NULL */
    struct oj_answers *answers; /**< all other pairs; NULL where the relation
                                     gives one of each and ones is set */
    const struct oj_matches *lists; /**< lists of as many pairs as each row has,
                                         with offsets; -1 where there are fewer;
                                         or NULL: in answers */
    const struct oj_pair_filter *filter; /**< which pairs count, or NULL: all
                                              within the relation's distance */
};

/** 1 when each row leaves out one class of features, and nothing else. */
static inline int
oj_filter_leaves_out_one_class(const struct oj_cpu_index *index,
                               const struct oj_pair_filter *filter)
{
    const struct oj_relation *relation = &index->relation;
    int by_class = filter->input->exclude_class != NULL;
    if (relation->exclude_same_geometry || relation->min_distance > 0.0 ||
        filter->input->n_features == 0 || filter->join_side->n_features == 0 ||
        filter->input->max_distance != NULL || relation->unordered_pairs != 0 ||
        oj_relation_compares_attributes(relation))
        return 0;
    return relation->exclude_self ? !by_class && index->fids_ascend : by_class;
}

/** The nearest of n points in Morton order among some features: k of each, ties
 *  as the relation says, or all within its reach (dwithin; each point is a
 *  row).  Costs some hundred nanoseconds a group.
 *
 *  Where pairs are filtered, more than k are found and the filter asked from
 * the nearest on; points of which too few pass are asked again for more. */
OJ_MUST_USE oj_status oj_nearest_points(const struct oj_cpu_index *index,
                                        struct oj_nearest_scratch *scratch,
                                        int64_t n,
                                        const struct oj_ordered_point *point,
                                        const struct oj_nearest_among *among,
                                        const struct oj_nearest_output *output,
                                        struct oj_error *err);

void oj_nearest_scratch_free(struct oj_nearest_scratch *scratch);

#endif
