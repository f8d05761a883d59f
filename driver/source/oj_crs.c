#include "oj_crs.h"

#include "../../algs/api/rows/oj_crs_text.h"
#include "../../algs/api/rows/oj_distance_scale.h"
#include "../base/oj_message.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <gdal.h>

#include <stdio.h>
#include <string.h>

/* Returns " at epoch 2025.5", or "" for a CRS without an epoch. */
static const char *describe_epoch(OGRSpatialReferenceH srs)
{
    double epoch = OSRGetCoordinateEpoch(srs);
    return epoch > 0.0 ? CPLSPrintf(" at epoch %.10g", epoch) : "";
}

const char *oj_crs_describe(OGRSpatialReferenceH srs)
{
    const char *authority, *code, *name;
    if (srs == NULL)
        return "none";
    authority = OSRGetAuthorityName(srs, NULL);
    code = OSRGetAuthorityCode(srs, NULL);
    name = OSRGetName(srs);
    if (authority != NULL && code != NULL)
        return CPLSPrintf("%s:%s%s", authority, code, describe_epoch(srs));
    return CPLSPrintf("%.255s%s", name != NULL ? name : "unnamed",
                      describe_epoch(srs));
}

/* Makes the CRS that the value of an option describes; replaces *out. */
static oj_status make_crs_of_option(const char *words, const char *option,
                                    OGRSpatialReferenceH *out,
                                    struct oj_error *err)
{
    OGRSpatialReferenceH srs = OSRNewSpatialReference(NULL);
    if (srs == NULL)
        return oj_fail(err, OJ_ERR_NOMEM,
                       "out of memory for a CRS: free memory");
    if (OSRSetFromUserInput(srs, words) != OGRERR_NONE)
    {
        int is_number =
            words[0] != '\0' && words[strspn(words, "0123456789")] == '\0';
        OSRRelease(srs);
        return oj_fail(
            err, OJ_ERR_ARG,
            "-%s '%.100s' is not a CRS that PROJ knows; write %sEPSG:%s",
            option, words, is_number ? "" : "for example ",
            is_number ? words : "2263");
    }
    /* Coordinates are x (east), y (north), whatever axis order the authority
     * defines. */
    OSRSetAxisMappingStrategy(srs, OAMS_TRADITIONAL_GIS_ORDER);
    if (*out != NULL)
        OSRRelease(*out);
    *out = srs;
    return OJ_OK;
}

/* Returns 1 if a layer in this CRS has its coordinates in the order x, y. */
static int has_x_y_axis_order(OGRSpatialReferenceH srs)
{
    OGRSpatialReferenceH usual = OSRClone(srs);
    const int *a, *b;
    int n_a = 0, n_b = 0, same;
    if (usual == NULL)
        return 1;
    OSRSetAxisMappingStrategy(usual, OAMS_TRADITIONAL_GIS_ORDER);
    a = OSRGetDataAxisToSRSAxisMapping(srs, &n_a);
    b = OSRGetDataAxisToSRSAxisMapping(usual, &n_b);
    same = n_a >= 2 && n_b >= 2 && a[0] == b[0] && a[1] == b[1];
    OSRRelease(usual);
    return same;
}

static int are_crs_equal(OGRSpatialReferenceH a, OGRSpatialReferenceH b)
{
    const char *const options[] = {"IGNORE_DATA_AXIS_TO_SRS_AXIS_MAPPING=YES",
                                   NULL};
    if (has_x_y_axis_order(a) && has_x_y_axis_order(b))
        return OSRIsSameEx(a, b, options);
    return OSRIsSame(a, b);
}

struct two_crs
{
    OGRSpatialReferenceH a, b;
};

/* Compares two CRS by GDAL. Returns 1 if they are equal. It is the callback
 * oj_crs_callbacks.compare; user is a struct two_crs. */
static int compare_by_gdal(void *user, const char *a, const char *b)
{
    const struct two_crs *both = user;
    (void)a;
    (void)b;
    return are_crs_equal(both->a, both->b);
}

/* Returns 1 if both CRS state a shift to WGS 84 (TOWGS84), and the shifts
 * differ. */
static int have_different_shifts(OGRSpatialReferenceH a, OGRSpatialReferenceH b)
{
    double of_a[7], of_b[7];
    return OSRGetTOWGS84(a, of_a, 7) == OGRERR_NONE &&
           OSRGetTOWGS84(b, of_b, 7) == OGRERR_NONE &&
           memcmp(of_a, of_b, sizeof of_a) != 0;
}

/* The library compares the WKT of both, regardless of the order of axes and of
 * heights. This function compares what WKT lacks: the order of x and y in the
 * data, epochs, and shifts to WGS 84. */
int oj_crs_is_one_plane(OGRSpatialReferenceH a, OGRSpatialReferenceH b)
{
    const char *const format[] = {"FORMAT=WKT2_2019", NULL};
    struct two_crs both = {a, b};
    const struct oj_crs_callbacks callbacks = {NULL, compare_by_gdal, &both};
    enum oj_crs_equality equality = OJ_CRS_NOT_KNOWN;
    struct oj_error unwanted = {OJ_OK, ""};
    char *text_a = NULL, *text_b = NULL;
    oj_status status = OJ_ERR_DATA;
    if (has_x_y_axis_order(a) && has_x_y_axis_order(b) &&
        OSRGetCoordinateEpoch(a) == OSRGetCoordinateEpoch(b) &&
        !have_different_shifts(a, b) &&
        OSRExportToWktEx(a, &text_a, format) == OGRERR_NONE &&
        OSRExportToWktEx(b, &text_b, format) == OGRERR_NONE)
        status = oj_crs_text_compare(text_a, text_b, &callbacks, &equality,
                                     &unwanted);
    CPLFree(text_a);
    CPLFree(text_b);
    return status == OJ_OK ? equality == OJ_CRS_EQUAL : are_crs_equal(a, b);
}

/* Returns 1 for CRS of two epochs that are one CRS otherwise. */
static int differ_only_by_epoch(OGRSpatialReferenceH a, OGRSpatialReferenceH b)
{
    OGRSpatialReferenceH at_epoch_of_b = OSRClone(a);
    int is_equal;
    OSRSetCoordinateEpoch(at_epoch_of_b, OSRGetCoordinateEpoch(b));
    is_equal =
        oj_crs_is_one_plane(at_epoch_of_b, b) && !oj_crs_is_one_plane(a, b);
    OSRRelease(at_epoch_of_b);
    return is_equal;
}

/* Makes the transformation of a side into a CRS that differs from its own. */
static oj_status make_transformation(struct oj_source *source,
                                     OGRSpatialReferenceH from,
                                     OGRSpatialReferenceH to,
                                     struct oj_error *err)
{
    CPLErrorReset();
    source->transformation = OCTNewCoordinateTransformation(from, to);
    if (source->transformation == NULL)
        return oj_fail(err, OJ_ERR_DATA,
                       "%s layer '%s' cannot be brought from %s to %s (%s); "
                       "correct its CRS with -%s, or use -crs ignore",
                       source->role, source->name, oj_crs_describe(from),
                       oj_crs_describe(to), CPLGetLastErrorMsg(),
                       source->role[0] == 'i' ? "s_srs" : "join_srs");
    /* GDAL warns if it cannot transform between epochs. */
    if (CPLGetLastErrorType() == CE_Warning && differ_only_by_epoch(from, to))
    {
        OCTDestroyCoordinateTransformation(source->transformation);
        source->transformation = NULL;
        oj_warn("%s layer '%s' is not brought from %s to %s: GDAL %s does not "
                "transform between epochs; its coordinates are taken as they "
                "are",
                source->role, source->name, oj_crs_describe(from),
                oj_crs_describe(to), GDALVersionInfo("RELEASE_NAME"));
        return OJ_OK;
    }
    oj_notice("%s layer '%s' is reprojected from %s to %s", source->role,
              source->name, oj_crs_describe(from), oj_crs_describe(to));
    return OJ_OK;
}

/* Gives a side without a CRS that of the other side. */
static oj_status fill_missing_crs(const struct oj_command *command,
                                  struct oj_source *input,
                                  struct oj_source *join, struct oj_error *err)
{
    const struct oj_source *has = input->srs != NULL ? input : join;
    struct oj_source *lacks = has == input ? join : input;
    if (has->srs == NULL || lacks->srs != NULL || command->crs == OJ_CRS_IGNORE)
        return OJ_OK;
    if (command->crs == OJ_CRS_STRICT)
        return oj_fail(
            err, OJ_ERR_DATA,
            "%s layer '%s' has no CRS, and -crs strict assumes none; "
            "name it with -%s",
            lacks->role, lacks->name,
            lacks->role[0] == 'i' ? "s_srs" : "join_srs");
    oj_warn("%s layer '%s' has no CRS; taken to be %s, that of the %s layer "
            "(-%s names another)",
            lacks->role, lacks->name, oj_crs_describe(has->srs), has->role,
            lacks->role[0] == 'i' ? "s_srs" : "join_srs");
    lacks->srs = OSRClone(has->srs);
    return OJ_OK;
}

/* Gives a side whose coordinates have no epoch that of the other side, if their
 * CRS are otherwise equal. */
static oj_status fill_missing_epoch(const struct oj_command *command,
                                    struct oj_source *input,
                                    struct oj_source *join,
                                    struct oj_error *err)
{
    const struct oj_source *has;
    struct oj_source *lacks;
    OGRSpatialReferenceH completed;
    double epoch;
    if (input->srs == NULL || join->srs == NULL ||
        command->crs == OJ_CRS_IGNORE)
        return OJ_OK;
    has = OSRGetCoordinateEpoch(input->srs) > 0.0 ? input : join;
    lacks = has == input ? join : input;
    epoch = OSRGetCoordinateEpoch(has->srs);
    if (!(epoch > 0.0) || OSRGetCoordinateEpoch(lacks->srs) > 0.0)
        return OJ_OK;
    completed = OSRClone(lacks->srs);
    OSRSetCoordinateEpoch(completed, epoch);
    if (!oj_crs_is_one_plane(has->srs, completed))
    {
        OSRRelease(completed);
        return OJ_OK;
    }
    OSRRelease(lacks->srs);
    lacks->srs = completed;
    if (command->crs == OJ_CRS_STRICT)
        return oj_fail(err, OJ_ERR_DATA,
                       "%s layer '%s' has no coordinate epoch, that of the %s "
                       "layer is %.10g, and -crs strict assumes none; give it "
                       "one (ogr2ogr -a_coord_epoch), or leave -crs strict out",
                       lacks->role, lacks->name, has->role, epoch);
    oj_warn("%s layer '%s' has no coordinate epoch; taken to be %.10g, that of "
            "the %s layer",
            lacks->role, lacks->name, epoch, has->role);
    return OJ_OK;
}

/* Transforms a side into the CRS of -t_srs. A target that differs by its
 * heights alone transforms these. */
static oj_status transform_to_target_crs(struct oj_source *source,
                                         OGRSpatialReferenceH from,
                                         OGRSpatialReferenceH to,
                                         struct oj_error *err)
{
    return are_crs_equal(from, to) ? OJ_OK
                                   : make_transformation(source, from, to, err);
}

/* Transforms both sides into the CRS of -t_srs. The boxes of -window are given
 * in that CRS. */
static oj_status transform_both_to_target_crs(const struct oj_command *command,
                                              struct oj_source *input,
                                              struct oj_source *join,
                                              struct oj_crs *crs,
                                              struct oj_error *err)
{
    int has_boxes = command->n_windows > 0;
    OJ_TRY(make_crs_of_option(command->t_srs, "t_srs", &crs->join, err));
    if (input->srs == NULL)
        return oj_fail(err, OJ_ERR_DATA,
                       "input layer '%s' has no CRS, so it cannot be brought "
                       "into %s; name its CRS with -s_srs",
                       input->name, command->t_srs);
    if (!has_boxes && command->crs == OJ_CRS_STRICT &&
        !oj_crs_is_one_plane(input->srs, join->srs))
        return oj_fail(err, OJ_ERR_DATA,
                       "the two layers have different CRS, and -crs strict "
                       "allows no reprojection of one of them alone: reproject "
                       "it first, or leave -crs strict out");
    OJ_TRY(transform_to_target_crs(input, input->srs, crs->join, err));
    if (has_boxes)
        return OJ_OK;
    return transform_to_target_crs(
        join, command->crs == OJ_CRS_IGNORE ? input->srs : join->srs, crs->join,
        err);
}

/* Transforms the join side into the CRS of the input, if there is no -t_srs.
 * The boxes of -window are given in the CRS of the input. */
static oj_status transform_join_to_input_crs(const struct oj_command *command,
                                             const struct oj_source *input,
                                             struct oj_source *join,
                                             struct oj_crs *crs,
                                             struct oj_error *err)
{
    if (input->srs == NULL)
        return OJ_OK;
    crs->join = OSRClone(input->srs);
    if (command->n_windows > 0 || command->crs == OJ_CRS_IGNORE ||
        join->srs == NULL || oj_crs_is_one_plane(input->srs, join->srs))
        return OJ_OK;
    if (command->crs == OJ_CRS_AUTO)
        return make_transformation(join, join->srs, crs->join, err);
    return oj_fail(err, OJ_ERR_DATA,
                   "the layers have different CRS, input %s and join %s, and "
                   "-crs strict forbids to reproject: bring one into the CRS "
                   "of the other first, or leave -crs strict out",
                   oj_crs_describe(input->srs), oj_crs_describe(join->srs));
}

/* ---- distances ----------------------------------------------------------- */

static enum oj_crs_kind kind_of_crs(OGRSpatialReferenceH srs)
{
    if (srs == NULL)
        return OJ_CRS_KIND_NONE;
    return OSRIsGeographic(srs)   ? OJ_CRS_KIND_GEOGRAPHIC
           : OSRIsGeocentric(srs) ? OJ_CRS_KIND_GEOCENTRIC
           : OSRIsProjected(srs)  ? OJ_CRS_KIND_PROJECTED
                                  : OJ_CRS_KIND_LOCAL;
}

/* Describes the CRS of the join for oj_distance_scale(). The name in the result
 * is overwritten after a few more calls of CPLSPrintf(). */
static struct oj_distance_frame distance_frame(const struct oj_command *command,
                                               const struct oj_crs *crs)
{
    struct oj_distance_frame frame = {.dash = "-",
                                      .metric = command->relation.metric,
                                      .kind = kind_of_crs(crs->join),
                                      .crs = oj_crs_describe(crs->join)};
    char *name = NULL;
    if (frame.kind == OJ_CRS_KIND_GEOGRAPHIC)
    {
        OGRErr failed = OGRERR_NONE;
        frame.unit = OSRGetAngularUnits(crs->join, &name);
        frame.semi_major = OSRGetSemiMajor(crs->join, &failed);
        if (failed != OGRERR_NONE || OSRIsDerivedGeographic(crs->join))
            frame.semi_major = 0.0;
        frame.inverse_flattening = OSRGetInvFlattening(crs->join, NULL);
    }
    else if (frame.kind != OJ_CRS_KIND_NONE)
        frame.unit = OSRGetLinearUnits(crs->join, &name);
    frame.unit_name = name;
    return frame;
}

oj_status oj_crs_scale(const struct oj_command *command,
                       const struct oj_crs *crs, const char *option,
                       const char *written, enum oj_unit unit, double *scale,
                       struct oj_error *err)
{
    struct oj_distance_frame frame = distance_frame(command, crs);
    return oj_distance_scale(&frame, option, written, unit, scale, err);
}

static oj_status convert_distances(const struct oj_command *command,
                                   struct oj_crs *crs,
                                   struct oj_relation *relation,
                                   struct oj_error *err)
{
    static const char *const options[] = {"max_distance", "min_distance",
                                          "densify"};
    struct oj_distance_frame frame = distance_frame(command, crs);
    struct oj_distance distances[3];
    const struct oj_distance *given[3] = {NULL, NULL, NULL};
    struct oj_distance_request request;
    snprintf(crs->unit, sizeof crs->unit, "%s", oj_distance_unit_name(&frame));
    for (int i = 0; i < 3; i++)
    {
        distances[i] = oj_command_distance(command, options[i]);
        if (oj_command_has_option(command, options[i]))
            given[i] = &distances[i];
    }
    request = (struct oj_distance_request){
        .max_distance = given[0],
        .min_distance = given[1],
        .densify = given[2],
        .picks_nearest =
            command->pick != NULL && EQUAL(command->pick, "nearest"),
        .wants_bearing = oj_command_has_option(command, "bearing_field")};
    return oj_distances_convert(&frame, &request, relation, err);
}

/* Refuses geocentric coordinates (X, Y, Z from the centre of the Earth). Joins
 * ignore Z, so opposite points of the Earth would coincide. */
static oj_status check_not_geocentric(const struct oj_command *command,
                                      const char *option,
                                      OGRSpatialReferenceH srs,
                                      struct oj_error *err)
{
    if (srs == NULL || !OSRIsGeocentric(srs) ||
        (command->crs == OJ_CRS_IGNORE && command->t_srs == NULL))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "%s%s is a geocentric CRS, whose X and Y are no plane: "
                   "ogr2ogr -t_srs EPSG:4979 makes longitude and latitude of "
                   "it; -crs ignore takes X and Y as they are",
                   option, oj_crs_describe(srs));
}

oj_status oj_crs_choose(const struct oj_command *command,
                        struct oj_source *input, struct oj_source *join,
                        struct oj_crs *crs, struct oj_relation *relation,
                        struct oj_error *err)
{
    int has_shapes = input->type != wkbNone && join->type != wkbNone;
    if (command->input.srs != NULL)
        OJ_TRY(
            make_crs_of_option(command->input.srs, "s_srs", &input->srs, err));
    if (command->join.srs != NULL)
        OJ_TRY(
            make_crs_of_option(command->join.srs, "join_srs", &join->srs, err));
    OJ_TRY(check_not_geocentric(command, "the input layer's CRS ", input->srs,
                                err));
    OJ_TRY(
        check_not_geocentric(command, "the join layer's CRS ", join->srs, err));
    if (command->n_windows == 0 && has_shapes)
    {
        OJ_TRY(fill_missing_crs(command, input, join, err));
        OJ_TRY(fill_missing_epoch(command, input, join, err));
    }
    if (!has_shapes && command->t_srs == NULL)
        crs->join = input->srs != NULL ? OSRClone(input->srs) : NULL;
    else if (command->t_srs != NULL)
        OJ_TRY(transform_both_to_target_crs(command, input, join, crs, err));
    else
        OJ_TRY(transform_join_to_input_crs(command, input, join, crs, err));
    OJ_TRY(check_not_geocentric(command, "-t_srs ", crs->join, err));
    OJ_TRY(convert_distances(command, crs, relation, err));
    if (command->a_srs != NULL)
        return make_crs_of_option(command->a_srs, "a_srs", &crs->output, err);
    if (crs->join != NULL)
        crs->output = OSRClone(crs->join);
    return OJ_OK;
}

void oj_crs_free(struct oj_crs *crs)
{
    if (crs->join != NULL)
        OSRRelease(crs->join);
    if (crs->output != NULL)
        OSRRelease(crs->output);
    memset(crs, 0, sizeof *crs);
}
