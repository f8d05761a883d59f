#include "oj_distance_scale.h"

#include "../../foundations/base/oj_geodesic.h"

#include <math.h>
#include <stdio.h>

struct oj_distance_frame
oj_distance_frame_of_crs_text(const char *dash, enum oj_metric metric,
                              const struct oj_crs_text *crs)
{
    return (struct oj_distance_frame){.dash = dash,
                                      .metric = metric,
                                      .kind = crs->kind,
                                      .unit = crs->unit,
                                      .unit_name = crs->unit_name,
                                      .semi_major = crs->semi_major,
                                      .inverse_flattening =
                                          crs->inverse_flattening,
                                      .crs = crs->name};
}

/* ---- advice in messages: in the terms of the command or of the library --- */

static int is_command(const struct oj_distance_frame *frame)
{
    return frame->dash[0] != '\0';
}

/* Returns the sign between an option and its value in messages: " " for the
 * command, "=" for the library. */
static const char *separator_before_value(const struct oj_distance_frame *frame)
{
    return is_command(frame) ? " " : "=";
}

/* Returns the name of a metric of the globe, for messages. */
static const char *metric_name(const struct oj_distance_frame *frame)
{
    return frame->metric == OJ_METRIC_ELLIPSOID ? "ellipsoid" : "sphere";
}

static int measures_on_globe(const struct oj_distance_frame *frame)
{
    return frame->metric != OJ_METRIC_PLANAR;
}

static const char *advise_degrees(const struct oj_distance_frame *frame)
{
    return is_command(frame)
               ? "bring both sides into degrees with -t_srs EPSG:4326 (the "
                 "output too)"
               : "bring both sides into EPSG:4326";
}

static const char *advise_projected_crs(const struct oj_distance_frame *frame)
{
    return is_command(frame) ? "name a projected CRS to join in with -t_srs"
                             : "bring both sides into a projected CRS";
}

/* Returns the words for messages that name the sides without a CRS, with their
 * verb. */
static const char *name_sides_without_crs(const struct oj_distance_frame *frame)
{
    return is_command(frame)   ? "the input layer has"
           : frame->are_layers ? "the sides have"
                               : "the left side has";
}

static const char *advise_giving_crs(const struct oj_distance_frame *frame)
{
    return is_command(frame)   ? "name it with -s_srs"
           : frame->are_layers ? "give a side with a CRS"
                               : "name it with left_crs";
}

static oj_status fail_unknown_crs(const struct oj_distance_frame *frame,
                                  const char *what, struct oj_error *err)
{
    if (frame->kind == OJ_CRS_KIND_NONE)
        return oj_fail(err, OJ_ERR_ARG,
                       "%s: %s no CRS; %s, or write crs=ignore to take "
                       "coordinates as they are",
                       what, name_sides_without_crs(frame),
                       advise_giving_crs(frame));
    return oj_fail(
        err, OJ_ERR_ARG,
        "%s: the CRS of the join, %s, does not state its unit%s: "
        "give it as PROJJSON or WKT%s",
        what, frame->crs,
        frame->kind == OJ_CRS_KIND_UNKNOWN ? ", nor whether it is in degrees"
                                           : "",
        is_command(frame) ? " with -s_srs"
                          : ", or write crs=ignore to take coordinates as they "
                            "are");
}

/* ---- conversion ---------------------------------------------------------- */

/* Returns the ellipsoid of the CRS of the join. */
static struct oj_ellipsoid
ellipsoid_of_frame(const struct oj_distance_frame *frame)
{
    return (struct oj_ellipsoid){frame->semi_major,
                                 frame->inverse_flattening != 0.0
                                     ? 1.0 / frame->inverse_flattening
                                     : 0.0};
}

/* Refuses -metric ellipsoid without an ellipsoid, with one that is too flat for
 * exact geodesics, or in a build without geodesics. */
static oj_status check_ellipsoid(const struct oj_distance_frame *frame,
                                 struct oj_error *err)
{
    const struct oj_ellipsoid ellipsoid = ellipsoid_of_frame(frame);
    const char *dash = frame->dash, *sign = separator_before_value(frame);
    if (!oj_geodesic_is_available())
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "%smetric%sellipsoid: this build of ogrjoin has no "
                       "geodesics, which are those of PROJ: use "
                       "%smetric%ssphere, or a build with PROJ",
                       dash, sign, dash, sign);
    if (!(ellipsoid.semi_major > 0.0) && frame->kind == OJ_CRS_KIND_NONE)
        return oj_fail(err, OJ_ERR_ARG,
                       "%smetric%sellipsoid measures on the ellipsoid of a "
                       "CRS, and %s none: %s, or use %smetric%ssphere",
                       dash, sign, name_sides_without_crs(frame),
                       advise_giving_crs(frame), dash, sign);
    if (!(ellipsoid.semi_major > 0.0))
        return oj_fail(
            err, OJ_ERR_ARG,
            "%smetric%sellipsoid measures on the ellipsoid of a CRS, and the "
            "CRS of the join, %s, does not state its ellipsoid: %s",
            dash, sign, frame->crs,
            is_command(frame) ? "name with -s_srs a CRS that does"
                              : "give it as PROJJSON or WKT");
    if (!oj_ellipsoid_is_usable(&ellipsoid))
        return oj_fail(err, OJ_ERR_ARG,
                       "%smetric%sellipsoid: the ellipsoid of the CRS of the "
                       "join, %s, has a flattening of %g, and geodesics are "
                       "exact up to %g: use %smetric%ssphere",
                       dash, sign, frame->crs, ellipsoid.flattening,
                       OJ_ELLIPSOID_MOST_FLATTENING, dash, sign);
    return OJ_OK;
}

/* Sets *scale for a metric of the globe: plain numbers are metres, degrees are
 * refused. */
static oj_status scale_on_globe(const struct oj_distance_frame *frame,
                                const char *option, const char *written,
                                enum oj_unit unit, double *scale,
                                struct oj_error *err)
{
    const int is_unknown =
        frame->kind == OJ_CRS_KIND_UNKNOWN || frame->kind == OJ_CRS_KIND_NONE;
    char what[32];
    snprintf(what, sizeof what, "metric=%s", metric_name(frame));
    if (is_unknown && !frame->takes_plain_numbers && !is_command(frame))
        return fail_unknown_crs(frame, what, err);
    if (frame->kind != OJ_CRS_KIND_GEOGRAPHIC &&
        !(is_unknown && frame->takes_plain_numbers))
        return oj_fail(err, OJ_ERR_ARG,
                       "%smetric%s%s measures between longitudes and "
                       "latitudes, and the CRS of the join is %s: %s, or leave "
                       "%smetric out",
                       frame->dash, separator_before_value(frame),
                       metric_name(frame),
                       frame->kind == OJ_CRS_KIND_NONE ? "unknown" : frame->crs,
                       advise_degrees(frame), frame->dash);
    if (frame->kind == OJ_CRS_KIND_GEOGRAPHIC &&
        !(fabs(frame->unit / oj_units[OJ_UNIT_DEG].size - 1.0) <= 1e-9))
        return oj_fail(
            err, OJ_ERR_ARG,
            "%smetric%s%s needs degrees, and the CRS of the join, %s, has "
            "another unit: %s EPSG:4326",
            frame->dash, separator_before_value(frame), metric_name(frame),
            frame->crs,
            is_command(frame) ? "use -t_srs" : "bring both sides into");
    if (unit == OJ_UNIT_DEG)
        return oj_fail(err, OJ_ERR_ARG,
                       "%s%s%s%s: with %smetric%s%s distances are lengths; "
                       "write m, km, ft, us-ft, mi, or none for metres",
                       frame->dash, option, separator_before_value(frame),
                       written, frame->dash, separator_before_value(frame),
                       metric_name(frame));
    if (frame->metric == OJ_METRIC_ELLIPSOID)
        OJ_TRY(check_ellipsoid(frame, err));
    *scale = unit == OJ_UNIT_CRS ? 1.0 : oj_units[unit].size;
    return OJ_OK;
}

static oj_status
fail_plain_number_in_degrees(const struct oj_distance_frame *frame,
                             const char *option, const char *written,
                             struct oj_error *err)
{
    const char *sign = separator_before_value(frame);
    return oj_fail(
        err, OJ_ERR_ARG,
        "the CRS of the join, %s, is in degrees, and %s%s%s%s has no "
        "fixed length there: use %smetric%ssphere for metres along "
        "great circles, or %s, or write degrees, for example "
        "%smax_distance%s0.01deg",
        frame->crs, frame->dash, option, sign, written, frame->dash, sign,
        advise_projected_crs(frame), frame->dash, sign);
}

/* Refuses nearest without a maximum distance if plain numbers are refused: the
 * nearest in degrees is not the nearest in metres. */
static oj_status check_nearest_is_defined(const struct oj_distance_frame *frame,
                                          struct oj_error *err)
{
    if (frame->takes_plain_numbers)
        return OJ_OK;
    if (frame->kind == OJ_CRS_KIND_UNKNOWN)
        return fail_unknown_crs(frame, "the nearest feature", err);
    if (frame->kind != OJ_CRS_KIND_GEOGRAPHIC)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "the CRS of the join, %s, is in degrees, where the nearest "
                   "feature is not well defined: use %smetric%ssphere, or %s, "
                   "or accept distances in degrees with %smax_distance%sinfdeg",
                   frame->crs, frame->dash, separator_before_value(frame),
                   advise_projected_crs(frame), frame->dash,
                   separator_before_value(frame));
}

/* Returns 1 if features of a pair need not have a common point. */
static int may_pairs_be_apart(const struct oj_relation *relation)
{
    return !oj_relation_needs_contact(relation) ||
           oj_relation_is_bbox(relation);
}

/* Refuses to measure the pairs of a join without distances if plain numbers are
 * refused. Pairs with a common point are at distance 0 in any unit. */
static oj_status check_pairs_are_not_measured_in_degrees(
    const struct oj_distance_frame *frame, const struct oj_distance_request *of,
    const struct oj_relation *relation, struct oj_error *err)
{
    char what[32];
    if (frame->takes_plain_numbers || measures_on_globe(frame) ||
        !may_pairs_be_apart(relation) ||
        !(of->picks_nearest || of->wants_bearing))
        return OJ_OK;
    if (of->picks_nearest)
        snprintf(what, sizeof what, "%spick%snearest", frame->dash,
                 separator_before_value(frame));
    else
        snprintf(what, sizeof what, "%sbearing_field", frame->dash);
    if (frame->kind == OJ_CRS_KIND_UNKNOWN)
        return fail_unknown_crs(frame, what, err);
    if (frame->kind != OJ_CRS_KIND_GEOGRAPHIC)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "%s: the CRS of the join, %s, is in degrees, where %s not "
                   "well defined: %s%s",
                   what, frame->crs,
                   of->picks_nearest ? "the nearest feature is"
                                     : "directions are",
                   advise_projected_crs(frame),
                   is_command(frame) ? ""
                                     : ", or write crs=ignore to take "
                                       "coordinates as they are");
}

static oj_status fail_unit_without_crs(const struct oj_distance_frame *frame,
                                       const char *option, const char *written,
                                       struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_ARG,
                   "%s%s%s%s: %s no CRS, so the length of units is unknown; "
                   "%s, or write the distance without a unit",
                   frame->dash, option, separator_before_value(frame), written,
                   name_sides_without_crs(frame), advise_giving_crs(frame));
}

/* Returns the factor from a unit to the unit of the CRS. Precondition: both are
 * units of length, or both of angle. */
static double scale_of_unit(const struct oj_distance_frame *frame,
                            enum oj_unit unit)
{
    double scale = oj_units[unit].size / frame->unit;
    /* exactly 1 in spite of rounding, so that 100us-ft is exactly 100 in a CRS
     * in US survey feet */
    return fabs(scale - 1.0) < 1e-12 ? 1.0 : scale;
}

oj_status oj_distance_scale(const struct oj_distance_frame *frame,
                            const char *option, const char *written,
                            enum oj_unit unit, double *scale,
                            struct oj_error *err)
{
    char what[600];
    int is_geographic = frame->kind == OJ_CRS_KIND_GEOGRAPHIC;
    if (measures_on_globe(frame))
        return scale_on_globe(frame, option, written, unit, scale, err);
    if (unit == OJ_UNIT_CRS &&
        (frame->takes_plain_numbers || frame->kind == OJ_CRS_KIND_NONE))
    {
        *scale = 1.0;
        return OJ_OK;
    }
    if (frame->kind == OJ_CRS_KIND_NONE)
        return fail_unit_without_crs(frame, option, written, err);
    snprintf(what, sizeof what, "%s%s%s%s", frame->dash, option,
             separator_before_value(frame), written);
    if (frame->kind == OJ_CRS_KIND_UNKNOWN)
        return fail_unknown_crs(frame, what, err);
    if (is_geographic && unit != OJ_UNIT_DEG)
        return fail_plain_number_in_degrees(frame, option, written, err);
    if (!is_geographic && unit == OJ_UNIT_DEG)
        return oj_fail(err, OJ_ERR_ARG,
                       "%s: the CRS of the join is not in degrees; write m, "
                       "km, ft, us-ft, mi, or no unit",
                       what);
    if (unit != OJ_UNIT_CRS && !(frame->unit > 0))
        return fail_unknown_crs(frame, what, err);
    *scale = unit == OJ_UNIT_CRS ? 1.0 : scale_of_unit(frame, unit);
    return OJ_OK;
}

/* ---- the distances of a join --------------------------------------------- */

static oj_status convert_distance(const struct oj_distance_frame *frame,
                                  const char *option,
                                  const struct oj_distance *distance,
                                  double *out, struct oj_error *err)
{
    char written[64];
    double scale = 1.0;
    snprintf(written, sizeof written, "%g%s", distance->value,
             oj_units[distance->unit].name);
    OJ_TRY(
        oj_distance_scale(frame, option, written, distance->unit, &scale, err));
    *out = scale == 1.0 ? distance->value : distance->value * scale;
    return OJ_OK;
}

oj_status oj_distances_convert(const struct oj_distance_frame *frame,
                               const struct oj_distance_request *request,
                               struct oj_relation *relation,
                               struct oj_error *err)
{
    static const struct oj_distance unbounded = {INFINITY, OJ_UNIT_CRS};
    const struct oj_distance *max = request->max_distance;
    relation->max_distance = INFINITY;
    relation->min_distance = relation->densify = 0.0;
    if (frame->metric == OJ_METRIC_ELLIPSOID)
        relation->ellipsoid = ellipsoid_of_frame(frame);
    if ((oj_op_get(relation->op)->takes & OJ_TAKES_DISTANCE) == 0 &&
        max == NULL)
        return check_pairs_are_not_measured_in_degrees(frame, request, relation,
                                                       err);
    if (max == NULL && measures_on_globe(frame))
        max = &unbounded;
    if (max != NULL)
        OJ_TRY(convert_distance(frame, "max_distance", max,
                                &relation->max_distance, err));
    else if (oj_relation_sorts_by_measure(relation))
        OJ_TRY(check_nearest_is_defined(frame, err));
    if (request->min_distance != NULL)
        OJ_TRY(convert_distance(frame, "min_distance", request->min_distance,
                                &relation->min_distance, err));
    if (request->densify != NULL)
        OJ_TRY(convert_distance(frame, "densify", request->densify,
                                &relation->densify, err));
    if (!(relation->min_distance <= relation->max_distance))
        return oj_fail(err, OJ_ERR_ARG,
                       "%smin_distance is greater than %smax_distance, so no "
                       "feature would match: write a smaller %smin_distance",
                       frame->dash, frame->dash, frame->dash);
    if (isinf(relation->min_distance))
        return oj_fail(err, OJ_ERR_ARG,
                       "%smin_distance is infinite: write a finite distance",
                       frame->dash);
    return OJ_OK;
}

const char *oj_distance_unit_name(const struct oj_distance_frame *frame)
{
    if (measures_on_globe(frame))
        return "metre";
    return frame->unit_name != NULL ? frame->unit_name : "";
}
