/** What a distance in a unit is in the unit of the join, and when degrees or
 *  units are refused: the one rule of every door.
 *
 *   CRS of the join   plain number     m, km, ft, us-ft, mi   deg
 *   none              as it is         refused                refused
 *   projected, local  as it is         converted              refused
 *   geographic        refused *        refused                converted
 *   unknown           refused *        refused                refused
 *   -metric sphere    metres           converted              refused, and any
 *                                                             CRS but degrees
 *
 *   * unless takes_plain_numbers
 *
 *  nearest without a maximum is refused where a plain number is: the nearest in
 *  degrees is not the nearest.
 */
#ifndef OJ_DISTANCE_SCALE_H
#define OJ_DISTANCE_SCALE_H

#include "../../foundations/relation/oj_relation.h"
#include "oj_crs_text.h"
#include "oj_distance_unit.h"

#ifdef __cplusplus
extern "C" {
#endif

/** In what distances are measured. Borrows. */
struct oj_distance_frame
{
    const char *dash; /**< "-": messages are the command's, which has -t_srs and
                           -s_srs; "": those of the library's settings */
    enum oj_metric metric;
    enum oj_crs_kind kind; /**< of the CRS of the join */
    double unit;           /**< of its axes, as in struct oj_crs_text */
    const char *unit_name;
    const char *crs;         /**< its name in messages */
    int takes_plain_numbers; /**< 1: also in degrees and unknown units, as they
                                  are, and the sphere without a CRS: the user
                                  asked for coordinates as they are */
};

/** Distances that were asked for; NULL: not given. */
struct oj_distance_request
{
    const struct oj_distance *max_distance, *min_distance, *densify;
};

/** The frame of a CRS that was read; borrows crs. */
struct oj_distance_frame
oj_distance_frame_of_crs_text(const char *dash, enum oj_metric metric,
                              const struct oj_crs_text *crs);

/** *scale: what a distance of the given unit is multiplied by to be in the unit
 *  of the join.  option (without dash) and its value as written are for the
 *  error text: OJ_ERR_ARG where the unit has no fixed length here. */
OJ_MUST_USE oj_status oj_distance_scale(const struct oj_distance_frame *frame,
                                        const char *option, const char *written,
                                        enum oj_unit unit, double *scale,
                                        struct oj_error *err);

/** Sets relation's max_distance, min_distance and densify, in the unit of the
 *  join, where its join measures distances or a maximum is given; else
 *  unbounded and 0.  relation->metric counts as frame->metric.  OJ_ERR_ARG: a
 *  distance that is refused, a minimum above the maximum or unbounded. */
OJ_MUST_USE oj_status
oj_distances_convert(const struct oj_distance_frame *frame,
                     const struct oj_distance_request *request,
                     struct oj_relation *relation, struct oj_error *err);

/** The name of the unit that measures are in: "metre" on the sphere, that of
 *  the CRS, or "" where it is unknown. */
const char *oj_distance_unit_name(const struct oj_distance_frame *frame);

#ifdef __cplusplus
}
#endif
#endif
