/** The CRS in which the sides are joined, and the conversion of distances to
 *  it. */
#ifndef OJ_CRS_H
#define OJ_CRS_H

#include "../command/oj_parsed_command.h"
#include "oj_source.h"

/** The CRS of a join. Zeroed memory is valid: no CRS. */
struct oj_crs
{
    /** CRS of the join, owned; distances are in its unit; NULL if there is none
     */
    OGRSpatialReferenceH join;
    /** CRS written to the output, owned; NULL if there is none */
    OGRSpatialReferenceH output;
    /** unit of distances: that of `join`, or metres with -metric sphere or
     *  ellipsoid; "" if the unit is unknown or there is no CRS */
    char unit[64];
};

/** Applies -s_srs, -join_srs, -t_srs, -crs and -a_srs: chooses the CRS of the
 *  join, sets the transformations of both sides, prints a notice if the join
 *  side is reprojected, and converts the distances of `relation` to the unit of
 *  that CRS. The boxes of -window are in the CRS of the join. OJ_ERR_ARG or
 *  OJ_ERR_DATA, with what to write instead. */
OJ_MUST_USE oj_status oj_crs_choose(const struct oj_command *command,
                                    struct oj_source *input,
                                    struct oj_source *join, struct oj_crs *crs,
                                    struct oj_relation *relation,
                                    struct oj_error *err);

/** Returns 1 if x and y mean one place in both CRS: they differ at most by the
 *  order of axes and by heights. Coordinates that are equal in x and y are then
 *  taken as they are, and heights with them. */
int oj_crs_is_one_plane(OGRSpatialReferenceH a, OGRSpatialReferenceH b);

/** Sets *scale to the factor that converts a distance in this unit to the unit
 *  of the join. OJ_ERR_ARG if the unit has no fixed length in the CRS of the
 *  join. option (without dash) and written (its value as the user wrote it) are
 *  used in the error text. */
OJ_MUST_USE oj_status oj_crs_scale(const struct oj_command *command,
                                   const struct oj_crs *crs, const char *option,
                                   const char *written, enum oj_unit unit,
                                   double *scale, struct oj_error *err);

/** Returns "EPSG:2263", or the name of the CRS, with " at epoch 2025.5" if it
 *  has an epoch; "none" for NULL. From CPLSPrintf(): overwritten after a few
 *  more calls. */
const char *oj_crs_describe(OGRSpatialReferenceH srs);

/** Frees what crs owns; zeroed memory is accepted. */
void oj_crs_free(struct oj_crs *crs);

#endif
