/** In which CRS is joined, and what a distance means there. */
#ifndef OJ_CRS_H
#define OJ_CRS_H

#include "oj_command.h"
#include "oj_source.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Zeroed memory is a valid empty one. */
struct oj_crs
{
    OGRSpatialReferenceH join;   /**< owned; distances are in it; NULL: none */
    OGRSpatialReferenceH output; /**< owned; what the output says; NULL: none */
    double max_distance;         /**< units of join; INFINITY: unbounded */
    char unit[64];               /**< of join_distance: "metre"; "" unknown */
};

/** Applies -s_srs, -join_srs, -t_srs, -crs and -a_srs: settles the CRS of the
 *  join, sets the transformations of both sides, prints a notice where the
 *  join side is reprojected, and converts -max_distance.  OJ_ERR_ARG or
 *  OJ_ERR_DATA with what to write instead. */
OJ_MUST_USE oj_status oj_crs_settle(const struct oj_command *command,
                                    struct oj_source *input,
                                    struct oj_source *join, struct oj_crs *crs,
                                    struct oj_error *err);

/** Accepts zeroed memory. */
void oj_crs_free(struct oj_crs *crs);

#ifdef __cplusplus
}
#endif
#endif
