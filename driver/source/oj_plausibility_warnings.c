#include "oj_plausibility_warnings.h"

#include "../base/oj_message.h"

#include <cpl_error.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SAMPLE_ROWS 1000

/* In a join of the nearest without a maximum distance the layers may lie apart.
 * Then the axes count as swapped only if the gap between the layers is more
 * than this many times the sum of both diagonals. With a smaller gap the layers
 * often intersect by chance when x and y of one layer are exchanged. */
#define STRIKING_GAP 10

/* Bounding box of a side's features. */
struct side_extent
{
    int is_known;
    int is_sample; /* 1 if only the first SAMPLE_ROWS rows are covered */
    OGREnvelope box;
};

/* ---- extents ------------------------------------------------------------- */

static int is_finite_envelope(const OGREnvelope *box)
{
    return isfinite(box->MinX) && isfinite(box->MinY) && isfinite(box->MaxX) &&
           isfinite(box->MaxY) && box->MinX <= box->MaxX &&
           box->MinY <= box->MaxY;
}

/* Returns 1 if the first rows can be read quickly, and the layer can be read
 * again afterwards. */
static int can_read_first_rows_cheaply(const struct oj_source *source)
{
    const char *dataset = source->side->dataset;
    struct stat file;
    if (source->is_result_set || source->stream != NULL ||
        source->side->where != NULL ||
        OGR_L_GetSpatialFilter(source->layer) != NULL)
        return 0;
    if (strncmp(dataset, "/vsi", 4) == 0)
        return strncmp(dataset, "/vsistdin", 9) != 0 &&
               strstr(dataset, "_streaming") == NULL;
    return stat(dataset, &file) == 0 &&
           (S_ISREG(file.st_mode) || S_ISDIR(file.st_mode));
}

static void extend_box_by_feature(OGREnvelope *sum, OGRFeatureH feature)
{
    OGRGeometryH geometry = OGR_F_GetGeometryRef(feature);
    OGREnvelope box;
    if (geometry == NULL || OGR_G_IsEmpty(geometry))
        return;
    OGR_G_GetEnvelope(geometry, &box);
    if (!is_finite_envelope(&box))
        return;
    sum->MinX = fmin(sum->MinX, box.MinX);
    sum->MinY = fmin(sum->MinY, box.MinY);
    sum->MaxX = fmax(sum->MaxX, box.MaxX);
    sum->MaxY = fmax(sum->MaxY, box.MaxY);
}

static void sample_extent(const struct oj_source *source,
                          struct side_extent *extent)
{
    const OGREnvelope empty = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    OGRFeatureH feature;
    int n = 0;
    extent->box = empty;
    OGR_L_ResetReading(source->layer);
    for (; n < SAMPLE_ROWS &&
           (feature = OGR_L_GetNextFeature(source->layer)) != NULL;
         n++)
    {
        extend_box_by_feature(&extent->box, feature);
        OGR_F_Destroy(feature);
    }
    OGR_L_ResetReading(source->layer);
    extent->is_sample = n == SAMPLE_ROWS;
}

/* Returns the extent in the layer's own CRS, if the driver has it without a
 * scan or force is 1; otherwise the extent of the first rows. */
static struct side_extent extent_of_source(const struct oj_source *source,
                                           int force)
{
    struct side_extent extent = {0};
    int found;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    found = OGR_L_GetExtent(source->layer, &extent.box, force) == OGRERR_NONE;
    if (!found && can_read_first_rows_cheaply(source))
    {
        sample_extent(source, &extent);
        found = 1;
    }
    CPLErrorReset();
    CPLPopErrorHandler();
    extent.is_known = found && is_finite_envelope(&extent.box);
    return extent;
}

/* Transforms an extent into the CRS of the join; unknown if that fails. */
static struct side_extent
transform_extent(struct side_extent extent,
                 OGRCoordinateTransformationH transformation)
{
    const OGREnvelope from = extent.box;
    OGREnvelope *to = &extent.box;
    if (transformation == NULL || !extent.is_known)
        return extent;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    extent.is_known = OCTTransformBounds(transformation, from.MinX, from.MinY,
                                         from.MaxX, from.MaxY, &to->MinX,
                                         &to->MinY, &to->MaxX, &to->MaxY, 21);
    CPLErrorReset();
    CPLPopErrorHandler();
    /* A box across the antimeridian has MinX > MaxX; it counts as unknown. */
    extent.is_known = extent.is_known && is_finite_envelope(to);
    return extent;
}

static double gap_between_boxes(const struct side_extent *a,
                                const struct side_extent *b)
{
    double dx = fmax(a->box.MinX - b->box.MaxX, b->box.MinX - a->box.MaxX);
    double dy = fmax(a->box.MinY - b->box.MaxY, b->box.MinY - a->box.MaxY);
    return hypot(fmax(dx, 0.0), fmax(dy, 0.0));
}

static int looks_like_degrees(const struct side_extent *e)
{
    return e->box.MinX >= -181 && e->box.MaxX <= 361 && e->box.MinY >= -91 &&
           e->box.MaxY <= 91;
}

/* ---- layers that are disjoint -------------------------------------------- */

static const char *unit_name_of_crs(const struct oj_crs *crs)
{
    return crs->unit[0] != '\0' ? crs->unit : "unknown unit";
}

static int is_by_distance(const struct oj_command *command)
{
    return (oj_op_get(command->relation.op)->takes & OJ_TAKES_DISTANCE) != 0 ||
           oj_command_has_option(command, "max_distance");
}

/* Returns the maximum distance between the boxes of two features of a pair, or
 * INFINITY if the maximum differs from row to row. */
static double largest_pair_gap(const struct oj_command *command,
                               double max_distance)
{
    if (command->max_distance_field != NULL ||
        command->join_max_distance_field != NULL ||
        oj_relation_is_on_globe(&command->relation))
        return INFINITY;
    if (is_by_distance(command))
        return max_distance;
    return oj_relation_needs_contact(&command->relation) ? 0.0 : INFINITY;
}

/* Returns 1 if the box of a side, with x and y exchanged, intersects the box of
 * the other side. Returns 0 if the exchanged box has latitudes beyond the
 * poles. */
static int do_layers_meet_if_swapped(const struct oj_source *source,
                                     const struct side_extent *own,
                                     const struct side_extent *other)
{
    const OGREnvelope box = {own->box.MinY, own->box.MaxY, own->box.MinX,
                             own->box.MaxX};
    struct side_extent swapped = *own;
    if (source->srs != NULL && OSRIsGeographic(source->srs) &&
        (box.MinY < -91 || box.MaxY > 91))
        return 0;
    swapped.box = box;
    swapped = transform_extent(swapped, source->transformation);
    return swapped.is_known && gap_between_boxes(&swapped, other) <= 0.0;
}

/* Warns if the axes of one layer seem to be swapped. own are the extents in the
 * layers' CRS, joined those in the CRS of the join. */
static void warn_of_swapped_axes(const struct oj_source *const source[2],
                                 const struct side_extent own[2],
                                 const struct side_extent joined[2])
{
    int fits[2], which;
    for (int i = 0; i < 2; i++)
        fits[i] = do_layers_meet_if_swapped(source[i], &own[i], &joined[1 - i]);
    which = fits[0] ? 0 : 1;
    if (fits[0] && fits[1])
        oj_warn("x and y look swapped in one of the two layers: with them "
                "exchanged, the layers would intersect; correct that layer");
    else if (fits[which])
        oj_warn("x and y look swapped in the %s layer '%s': with them "
                "exchanged, the layers would intersect; correct that layer",
                source[which]->role, source[which]->name);
}

/* Warns if the coordinates of a layer look like degrees, but its CRS is not in
 * degrees; or if no CRS is known and the other layer's coordinates do not look
 * like degrees. */
static void warn_of_unexpected_degrees(const struct oj_source *source,
                                       const struct side_extent *own,
                                       const struct side_extent *other)
{
    if (!looks_like_degrees(own))
        return;
    if (source->srs != NULL && !OSRIsGeographic(source->srs))
        oj_warn("the coordinates of the %s layer '%s' look like degrees, but "
                "its CRS is not in degrees; if they are degrees, write -%s "
                "EPSG:4326",
                source->role, source->name,
                source->role[0] == 'i' ? "s_srs" : "join_srs");
    else if (source->srs == NULL && !looks_like_degrees(other))
        oj_warn("the coordinates of the %s layer '%s' look like degrees, those "
                "of the other do not, and no CRS is known: name them with "
                "-s_srs and -join_srs",
                source->role, source->name);
}

static double extent_diagonal(const struct side_extent *e)
{
    return hypot(e->box.MaxX - e->box.MinX, e->box.MaxY - e->box.MinY);
}

/* Returns 1 if a gap between two extents shows that the layers are apart. A
 * sample may not represent its layer, so with samples the gap must be wider
 * than both extents together. */
static int is_gap_conclusive(const struct side_extent *a,
                             const struct side_extent *b, double gap)
{
    return (!a->is_sample && !b->is_sample) ||
           gap > extent_diagonal(a) + extent_diagonal(b);
}

static void warn_of_no_match(const struct side_extent *a,
                             const struct side_extent *b, double gap,
                             const struct oj_crs *crs)
{
    char so[96] = "the two layers do not meet, so nothing can match";
    if (a->is_sample || b->is_sample)
        snprintf(so, sizeof so,
                 "the two layers do not meet, judging by the first %d rows of "
                 "%s",
                 SAMPLE_ROWS,
                 !b->is_sample   ? "the input layer"
                 : !a->is_sample ? "the join layer"
                                 : "each");
    oj_warn(
        "%s: input x %.8g to %.8g, y %.8g to %.8g; join x %.8g to %.8g, y "
        "%.8g to %.8g; nearest gap %g (%s); if a CRS is wrong, name it with "
        "-s_srs or -join_srs",
        so, a->box.MinX, a->box.MaxX, a->box.MinY, a->box.MaxY, b->box.MinX,
        b->box.MaxX, b->box.MinY, b->box.MaxY, gap, unit_name_of_crs(crs));
}

static void warn_if_layers_do_not_meet(const struct oj_command *command,
                                       const struct oj_source *const source[2],
                                       const struct side_extent own[2],
                                       const struct oj_crs *crs,
                                       double max_distance)
{
    const struct side_extent joined[2] = {
        transform_extent(own[0], source[0]->transformation),
        transform_extent(own[1], source[1]->transformation)};
    double reach = largest_pair_gap(command, max_distance), gap;
    if (!joined[0].is_known || !joined[1].is_known)
        return;
    gap = gap_between_boxes(&joined[0], &joined[1]);
    if (gap <= 0.0 || !is_gap_conclusive(&joined[0], &joined[1], gap))
        return;
    if (gap > reach)
        warn_of_no_match(&joined[0], &joined[1], gap, crs);
    else if (isfinite(reach) || !is_by_distance(command))
        return;
    if (gap > reach || gap > STRIKING_GAP * (extent_diagonal(&joined[0]) +
                                             extent_diagonal(&joined[1])))
        warn_of_swapped_axes(source, own, joined);
    /* The boxes of -window are given in the CRS of the join, so this is tested
     * only if the input side has a CRS. */
    if (command->n_windows == 0 || source[0]->srs != NULL)
        warn_of_unexpected_degrees(source[0], &own[0], &own[1]);
    if (command->n_windows == 0)
        warn_of_unexpected_degrees(source[1], &own[1], &own[0]);
}

/* ---- distances ----------------------------------------------------------- */

static void warn_of_doubtful_distance_unit(const struct oj_command *command,
                                           const struct side_extent *own,
                                           const struct oj_crs *crs)
{
    const struct oj_distance d = oj_command_distance(command, "max_distance");
    double value = d.value;
    if (!oj_command_has_option(command, "max_distance") || value <= 0 ||
        isinf(value))
        return;
    if (d.unit == OJ_UNIT_DEG && value > 10)
        oj_warn("-max_distance %gdeg is a large part of the Earth; for metres "
                "use -metric sphere or -t_srs",
                value);
    if (d.unit != OJ_UNIT_CRS)
        return;
    if (crs->join != NULL && value < 0.1)
        oj_warn("-max_distance %g is in the unit %s here, not in degrees; if "
                "you mean so small a distance, write %gm or %gft",
                value, unit_name_of_crs(crs), value, value);
    if (crs->join == NULL && value > 10 && own->is_known &&
        looks_like_degrees(own))
        oj_warn("the coordinates look like degrees, and no CRS is known, "
                "so -max_distance %g means %g degrees; if it is in metres, "
                "write -s_srs EPSG:4326 -metric sphere",
                value, value);
}

/* Prints a notice if the layer has several geometry columns: like ogr2ogr,
 * ogrjoin uses the first one, and the user may mean another. */
static void notice_geometry_columns(const struct oj_source *source)
{
    OGRFeatureDefnH defn =
        source->layer != NULL ? OGR_L_GetLayerDefn(source->layer) : NULL;
    if (defn == NULL || OGR_FD_GetGeomFieldCount(defn) < 2 ||
        source->side->geometry != NULL)
        return;
    oj_notice(
        "%s layer '%s' has %d geometry columns: '%s' is joined, the others "
        "are left out; -%s_geometry takes another one",
        source->role, source->name, OGR_FD_GetGeomFieldCount(defn),
        OGR_GFld_GetNameRef(OGR_FD_GetGeomFieldDefn(defn, 0)), source->role);
}

void oj_plausibility_warn(const struct oj_command *command,
                          const struct oj_source *input,
                          const struct oj_source *join,
                          const struct oj_crs *crs, double max_distance)
{
    const struct oj_source *const source[2] = {input, join};
    const struct side_extent own[2] = {
        extent_of_source(input, 0),
        extent_of_source(join, command->n_windows > 0)};
    notice_geometry_columns(input);
    notice_geometry_columns(join);
    if (is_by_distance(command))
        warn_of_doubtful_distance_unit(command, &own[0], crs);
    if (oj_command_needs_shapes(command))
        warn_if_layers_do_not_meet(command, source, own, crs, max_distance);
}
