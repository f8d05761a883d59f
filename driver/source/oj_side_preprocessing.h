/** From the rows of a side as they were read to what is joined of them.
 *
 *  In place of features a point of each (-centroid_of, -point_on_surface_of),
 *  their envelopes (-op window against a layer), or what -invalid makes of
 *  them: all from GEOS, over OGR, in the CRS of the join.  The output keeps the
 *  features.  -invalid fail is OJ_ERR_DATA naming the first invalid feature.
 *
 *  What -on, -exclude field=, -similar, -vector, -max_distance_field and
 *  -join_max_distance_field ask of fields is turned into columns of struct
 *  oj_flat.
 *
 *  The order is: open; then all rows of the side that is looked up, with
 *  insert; then the rows of the other, batch by batch.  Which side that is does
 *  not matter.
 */
#ifndef OJ_SIDE_PREPROCESSING_H
#define OJ_SIDE_PREPROCESSING_H

#include "../../algs/foundations/relation/oj_relation.h"
#include "../../flatten/read/oj_layer_geometry.h"
#include "oj_crs.h"
#include "oj_side_compared_columns.h"
#include "oj_source.h"

enum oj_joined_shape
{
    OJ_SHAPE_AS_READ = 0,
    OJ_SHAPE_CENTROID,
    OJ_SHAPE_POINT_ON_SURFACE,
    OJ_SHAPE_ENVELOPE
};

/** What was seen of a side's features while they were made into what is
 *  joined. */
struct oj_side_findings
{
    int64_t n_tested;    /**< features with polygons that -invalid looked at */
    int64_t n_invalid;   /**< of these; skip and fix */
    int64_t n_not_fixed; /**< of these, what GEOS cannot make valid: skipped */
    int64_t n_no_point;  /**< features for which GEOS gives no point */
    char reason[160];    /**< GEOS's for the first invalid one, or "" */
    int64_t first_invalid;  /**< its FID */
    int64_t n_beyond_poles; /**< -metric sphere: with a latitude beyond 90,
                                 which join nothing */
    struct oj_missing_values missing;
};

/** What to do with one side, and what was done. Zeroed memory, with role and
 *  name set, changes nothing. */
struct oj_reshape
{
    enum oj_joined_shape shape;
    enum oj_invalid_mode invalid;
    const char *role, *name; /**< of the layer, for messages */

    struct oj_side_findings found;

    struct oj_layer_geometry work;
};

/** 1 when points are joined in place of the features. */
int oj_reshape_makes_points(const struct oj_reshape *reshape);

/** Zeroed memory is a valid closed one. Index 0 is the input, 1 the join. */
struct oj_sides
{
    struct oj_reshape reshape[2];
    struct oj_side_columns columns;
    int is_self_join; /**< both sides are one layer */
    int needs_points; /**< on the input side: -metric sphere */
    int needs_fids;   /**< of both sides: a feature and itself are no pair */
};

/** What was made of some rows. Owner; zeroed memory is a valid empty one and
 *  may be used for many batches. */
struct oj_side_work
{
    struct oj_flat_buf shapes;
    struct oj_compared_columns columns;
};

/** Both sides are open and their CRS known. Has the fields read that are
 * needed, and sets what relation excludes: a feature and itself where both
 * sides are one layer, with a notice. OJ_ERR_ARG for words that make no sense.
 */
OJ_MUST_USE oj_status oj_sides_open(
    const struct oj_command *command, struct oj_source *input,
    struct oj_source *join, const struct oj_crs *crs, struct oj_sides *sides,
    struct oj_relation *relation, struct oj_error *err);

/** flat: the rows as read on entry, what is joined of them on return; it then
 *  borrows from work. values: their fields, looked at only where
 *  oj_side_columns_need(). insert: enum oj_insertion. */
OJ_MUST_USE oj_status oj_sides_make(struct oj_sides *sides, int side,
                                    int insert,
                                    const struct oj_attributes *values,
                                    struct oj_side_work *work,
                                    struct oj_flat *flat, struct oj_error *err);

void oj_side_work_free(struct oj_side_work *work);

/** Accepts a closed one. */
void oj_sides_close(struct oj_sides *sides);

#endif
