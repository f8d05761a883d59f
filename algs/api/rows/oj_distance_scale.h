/** Converts distances with units to the unit of the join. Decides which units
 *  are allowed with which CRS. Used by the command, JOIN: and the library.
 *
 *   CRS of the join   plain number     m, km, ft, us-ft, mi   deg
 *   none              as it is         refused                refused
 *   projected, local  as it is         converted              refused
 *   geographic        refused *        refused                converted
 *   unknown           refused *        refused                refused
 *   -metric sphere    metres           converted              refused, and any
 *   or ellipsoid                                              CRS but degrees
 *
 *   * unless takes_plain_numbers
 *
 *  nearest without a maximum distance is refused where a plain number is,
 *  because the nearest feature in degrees is often not the nearest in metres.
 *  For this reason, the nearest pair and the direction of pairs are refused
 *  there, too, in joins that take no distance and whose pairs may lie apart,
 *  such as joins by equal attributes.
 */
#ifndef OJ_DISTANCE_SCALE_H
#define OJ_DISTANCE_SCALE_H

#include "../../foundations/relation/oj_relation.h"
#include "oj_crs_text.h"
#include "oj_distance_unit.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How the distances of a join are measured: metric, and unit of the CRS. Texts
 * are borrowed. */
struct oj_distance_frame
{
    const char *dash; /**< "-": messages name options of the command; "":
                           settings of the library */
    enum oj_metric metric;
    enum oj_crs_kind kind; /**< kind of the CRS of the join */
    double unit; /**< unit of the CRS's axes, see struct oj_crs_text */
    const char *unit_name;
    double semi_major, inverse_flattening; /**< ellipsoid of a CRS in degrees,
                                              see struct oj_crs_text */
    const char *crs;                       /**< name of the CRS for messages */
    int are_layers; /**< 1: the sides are layers of the library, for whose CRS
                         there is no setting */
    int takes_plain_numbers; /**< 1: the user asked to take coordinates as they
                                  are: a distance without a unit is accepted
                                  also if the CRS is in degrees or its unit is
                                  unknown, and -metric sphere is accepted
                                  without a CRS */
};

/** The distances that the user gave (NULL: not given), and other options by
 * which a join measures pairs. */
struct oj_distance_request
{
    const struct oj_distance *max_distance, *min_distance, *densify;
    int picks_nearest; /**< 1: the nearest pair of a row is chosen */
    int wants_bearing; /**< 1: the direction of pairs is a column */
};

/** Makes the frame of a join in this CRS. dash: "-" for the command, "" for
 *  the library. dash and the texts of crs are borrowed as long as the frame is
 *  used. takes_plain_numbers is 0. */
struct oj_distance_frame
oj_distance_frame_of_crs_text(const char *dash, enum oj_metric metric,
                              const struct oj_crs_text *crs);

/** Sets *scale to the factor from the given unit to the unit of the join.
 * option (without dash) and written (its value) are for messages. Fails with
 * OJ_ERR_ARG if the unit is not allowed. */
OJ_MUST_USE oj_status oj_distance_scale(const struct oj_distance_frame *frame,
                                        const char *option, const char *written,
                                        enum oj_unit unit, double *scale,
                                        struct oj_error *err);

/** Converts max_distance, min_distance and densify to the unit of the join and
 * stores them in relation. For the metric ellipsoid, stores the ellipsoid of
 * the CRS, too. If the join measures no distances and no maximum is given,
 * stores infinity as the maximum and 0 as the minimum. The metric is
 * frame->metric, not that of relation. Fails with OJ_ERR_ARG if a unit is not
 * allowed, the minimum is infinite or above the maximum, or pairs would be
 * measured in degrees. Fails with OJ_ERR_UNSUPPORTED if the build has no
 * geodesics. */
OJ_MUST_USE oj_status
oj_distances_convert(const struct oj_distance_frame *frame,
                     const struct oj_distance_request *request,
                     struct oj_relation *relation, struct oj_error *err);

/** Returns the name of the unit of distances in the output: "metre" on the
 * globe, otherwise the unit of the CRS, or "" if it is not known. */
const char *oj_distance_unit_name(const struct oj_distance_frame *frame);

#ifdef __cplusplus
}
#endif
#endif
