/** In which CRS is joined, and what a distance means there. */
#ifndef OJ_CRS_H
#define OJ_CRS_H

#include "../command/oj_parsed_command.h"
#include "oj_source.h"

/** Zeroed memory is a valid empty one. */
struct oj_crs
{
    OGRSpatialReferenceH join;   /**< owned; distances are in it; NULL: none */
    OGRSpatialReferenceH output; /**< owned; what the output says; NULL: none */
    char unit[64]; /**< of distances: that of join, the metre with -metric
                        sphere; "" unknown, or the join has none */
};

/** Applies -s_srs, -join_srs, -t_srs, -crs and -a_srs: chooses the CRS of the
 *  join, sets the transformations of both sides, prints a notice where the
 *  join side is reprojected, and gives relation its distances, in the unit of
 *  the join.  The boxes of -window are in the CRS of the join.  OJ_ERR_ARG or
 *  OJ_ERR_DATA with what to write instead. */
OJ_MUST_USE oj_status oj_crs_choose(const struct oj_command *command,
                                    struct oj_source *input,
                                    struct oj_source *join, struct oj_crs *crs,
                                    struct oj_relation *relation,
                                    struct oj_error *err);

/** oj_distance_scale() in the CRS of the join.  *scale: what a distance of the
 *  given unit is multiplied by to be in the unit of the join.  option (without
 * dash) and its value as written are for the error text: OJ_ERR_ARG where the
 * unit has no fixed length in this CRS. */
OJ_MUST_USE oj_status oj_crs_scale(const struct oj_command *command,
                                   const struct oj_crs *crs, const char *option,
                                   const char *written, enum oj_unit unit,
                                   double *scale, struct oj_error *err);

/** "EPSG:2263", or the name; "none" for NULL. Kept for a few calls
 *  (CPLSPrintf()). */
const char *oj_crs_describe(OGRSpatialReferenceH srs);

/** Accepts zeroed memory. */
void oj_crs_free(struct oj_crs *crs);

#endif
