/** What is joined in place of the features as they were read: a point of each
 *  (-centroid_of, -point_on_surface_of), their envelopes (-op window against a
 *  layer), or what -invalid makes of them.  The output keeps the features.
 *
 *  Everything comes from GEOS, over OGR, in the CRS of the join.
 */
#ifndef OJ_RESHAPE_H
#define OJ_RESHAPE_H

#include "../../flatten/arrays/oj_flat.h"
#include "../../flatten/read/oj_layer_geometry.h"
#include "../command/oj_command.h"

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
    int64_t n_no_reach;     /**< rows without a usable distance of their own:
                                 NULL or negative */
    int64_t n_beyond_poles; /**< -metric sphere: with a latitude beyond 90,
                                 which join nothing */
};

/** What to do with one side, and what was done. Zeroed memory, with role and
 *  name set, changes nothing. */
struct oj_reshape
{
    enum oj_joined_shape shape;
    enum oj_invalid_mode invalid;
    const char *role, *name; /**< of the layer, for messages */
    const int *cancel;       /**< nonzero stops; may be NULL */

    struct oj_side_findings found;

    struct oj_layer_geometry work;
};

/** What the command asks of a side: 0 the input, 1 the join side. */
struct oj_reshape oj_reshape_for(const struct oj_command *command, int side,
                                 const char *name);

/** 1 when features are changed at all. */
int oj_reshape_is_needed(const struct oj_reshape *reshape);

/** Appends to *to, for each feature of from, what is joined in its place; FIDs
 *  and order stay.  -invalid fail is OJ_ERR_DATA naming the first invalid
 *  feature. */
OJ_MUST_USE oj_status oj_reshape_features(struct oj_reshape *reshape,
                                          const struct oj_flat *from,
                                          struct oj_flat_buf *to,
                                          struct oj_error *err);

void oj_reshape_free(struct oj_reshape *reshape);

#endif
