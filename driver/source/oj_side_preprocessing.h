/** Preprocessing of a side: makes, from the rows that were read, the features
 *  and columns that are joined.
 *
 *  Features are replaced by one of their points (-centroid_of,
 *  -point_on_surface_of), by their envelopes (-op window against a layer), or
 *  by valid ones (-invalid): by GEOS, through OGR, in the CRS of the join. The
 *  output keeps the original features.  -invalid fail gives OJ_ERR_DATA, which
 *  names the first invalid feature.
 *
 *  The fields of -on, -exclude field=, -similar, -vector, -within_time,
 *  -during, -max_distance_field and -join_max_distance_field become columns of
 *  struct oj_flat.
 *
 *  Order of calls: open; then all rows of one side, with insert; then the rows
 *  of the other side, batch by batch. Either side can be inserted.
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

/** Statistics of a side's features, for warnings and the summary. */
struct oj_side_findings
{
    /** number of features with polygons that -invalid skip or fix has tested */
    int64_t n_tested;
    int64_t n_invalid; /**< invalid ones among n_tested */
    /** number of invalid features that GEOS cannot make valid; they are skipped
     */
    int64_t n_not_fixed;
    int64_t n_no_point;    /**< features for which GEOS finds no point */
    char reason[160];      /**< why the first invalid feature is invalid, or
                                "" */
    int64_t first_invalid; /**< FID of the first invalid feature */
    /** on the globe: number of features with a latitude beyond 90; these
     *  match nothing */
    int64_t n_beyond_poles;
    struct oj_missing_values missing;
};

/** How to reshape the features of one side, and statistics about it. Zeroed
 *  memory in which role and name are set changes no feature. */
struct oj_reshape
{
    enum oj_joined_shape shape;
    enum oj_invalid_mode invalid;
    const char *role, *name; /**< role and name of the layer, for messages */

    struct oj_side_findings found;

    struct oj_layer_geometry work;
};

/** Returns 1 if features are replaced by points. */
int oj_reshape_makes_points(const struct oj_reshape *reshape);

/** The preprocessing of both sides; [0] input, [1] join. Zeroed memory is valid
 *  and closed. */
struct oj_sides
{
    struct oj_reshape reshape[2];
    struct oj_side_columns columns;
    int is_self_join; /**< both sides are one layer */
    /** 1 if the side must consist of points. With -metric sphere or -heading
     *  this is the input side; with -metric ellipsoid it is the side whose type
     *  allows points, if neither type allows only points */
    int is_of_points[2];
    /** why only points are accepted, and what to write instead; for messages */
    const char *points_only;
    /** 1 if distances are measured on the sphere or the ellipsoid */
    int is_on_globe;
    /** 1 if a feature is not joined with itself, for which both sides need FIDs
     */
    int needs_fids;
};

/** Preprocessed rows. Owns its arrays; zeroed memory is valid and empty. The
 *  rows may be filled again for each batch. */
struct oj_side_work
{
    struct oj_flat_buf shapes;
    struct oj_compared_columns columns;
};

/** Plans the preprocessing. Precondition: both sides are open, their CRS known.
 *  Adds the fields that are needed to those that are read, and sets
 *  relation->exclude. If both sides are one layer, pairs of a feature with
 *  itself are excluded, with a notice. OJ_ERR_ARG for invalid arguments. */
OJ_MUST_USE oj_status oj_sides_open(
    const struct oj_command *command, struct oj_source *input,
    struct oj_source *join, const struct oj_crs *crs, struct oj_sides *sides,
    struct oj_relation *relation, struct oj_error *err);

/** Preprocesses rows. On entry, *flat has the rows as read; on return, the
 *  features and columns to join, borrowed from work. values are the fields of
 *  the rows. They are used only if oj_side_columns_are_needed() returns 1.
 *  insert is an enum oj_insertion. */
OJ_MUST_USE oj_status oj_sides_preprocess_rows(
    struct oj_sides *sides, int side, int insert,
    const struct oj_attributes *values, struct oj_side_work *work,
    struct oj_flat *flat, struct oj_error *err);

void oj_side_work_free(struct oj_side_work *work);

/** Frees what sides owns; closed ones are accepted. */
void oj_sides_close(struct oj_sides *sides);

#endif
