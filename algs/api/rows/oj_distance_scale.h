/** Converts distances with units to the unit of the join, and decides when
 *  degrees or units are refused, for the command, the library and all other
 *  entries.
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

/** How distances are measured. Borrows its texts. */
struct oj_distance_frame
{
    const char *dash; /**< "-": messages are for the command, which has
                           -t_srs and -s_srs; "": for the settings of the
                           library */
    enum oj_metric metric;
    enum oj_crs_kind kind; /**< kind of the CRS of the join */
    double unit;           /**< unit of its axes, as in struct oj_crs_text */
    const char *unit_name;
    const char *crs;         /**< name of the CRS for messages */
    int takes_plain_numbers; /**< 1: plain numbers are accepted also in
                                  degrees and unknown units, and the sphere
                                  without a CRS, because the user asked to
                                  take coordinates as they are */
};

/** The distances given by the user; NULL: not given. */
struct oj_distance_request
{
    const struct oj_distance *max_distance, *min_distance, *densify;
};

/** Makes the frame of a CRS; borrows crs. */
struct oj_distance_frame
oj_distance_frame_of_crs_text(const char *dash, enum oj_metric metric,
                              const struct oj_crs_text *crs);

/** Sets *scale, the factor from the given unit to the unit of the join.  option
 * (without dash) and its value as written are for messages. OJ_ERR_ARG if the
 * unit has no fixed length here. */
OJ_MUST_USE oj_status oj_distance_scale(const struct oj_distance_frame *frame,
                                        const char *option, const char *written,
                                        enum oj_unit unit, double *scale,
                                        struct oj_error *err);

/** Converts max_distance, min_distance and densify to the unit of the join and
 * stores them in relation, if the join measures distances or a maximum is
 * given; otherwise they are unbounded and 0.  frame->metric is used for
 * relation->metric.  OJ_ERR_ARG: a distance is refused, or the minimum is
 * above the maximum or unbounded. */
OJ_MUST_USE oj_status
oj_distances_convert(const struct oj_distance_frame *frame,
                     const struct oj_distance_request *request,
                     struct oj_relation *relation, struct oj_error *err);

/** Name of the unit of measures: "metre" on the sphere, otherwise that of the
 * CRS; "" if unknown. */
const char *oj_distance_unit_name(const struct oj_distance_frame *frame);

#ifdef __cplusplus
}
#endif
#endif
