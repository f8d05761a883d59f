#include "oj_early_warnings.h"

#include "../base/oj_message.h"

#include <cpl_error.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SAMPLE_ROWS 1000

struct side_extent
{
    int is_known;
    int is_sample; /* of the first SAMPLE_ROWS rows only */
    double x0, y0, x1, y1;
};

/* ---- extents ------------------------------------------------------------ */

static struct side_extent extent_of_box(const OGREnvelope *box)
{
    struct side_extent extent = {0,         0,         box->MinX,
                                 box->MinY, box->MaxX, box->MaxY};
    extent.is_known = isfinite(box->MinX) && isfinite(box->MinY) &&
                      isfinite(box->MaxX) && isfinite(box->MaxY) &&
                      box->MinX <= box->MaxX && box->MinY <= box->MaxY;
    return extent;
}

/* Whether the first rows can be read at no great cost, and then again. */
static int can_sample(const struct oj_source *source)
{
    const char *dataset = source->side->dataset;
    struct stat file;
    if (source->is_result_set || source->side->where != NULL ||
        OGR_L_GetSpatialFilter(source->layer) != NULL)
        return 0;
    if (strncmp(dataset, "/vsi", 4) == 0)
        return strncmp(dataset, "/vsistdin", 9) != 0 &&
               strstr(dataset, "_streaming") == NULL;
    return stat(dataset, &file) == 0 &&
           (S_ISREG(file.st_mode) || S_ISDIR(file.st_mode));
}

static void add_box(OGREnvelope *sum, const OGREnvelope *box)
{
    sum->MinX = fmin(sum->MinX, box->MinX);
    sum->MinY = fmin(sum->MinY, box->MinY);
    sum->MaxX = fmax(sum->MaxX, box->MaxX);
    sum->MaxY = fmax(sum->MaxY, box->MaxY);
}

static struct side_extent sample_extent(const struct oj_source *source)
{
    OGREnvelope sum = {INFINITY, -INFINITY, INFINITY, -INFINITY}, box;
    struct side_extent extent;
    OGRFeatureH feature;
    int n = 0;
    OGR_L_ResetReading(source->layer);
    while (n < SAMPLE_ROWS &&
           (feature = OGR_L_GetNextFeature(source->layer)) != NULL)
    {
        OGRGeometryH geometry = OGR_F_GetGeometryRef(feature);
        if (geometry != NULL && !OGR_G_IsEmpty(geometry))
        {
            OGR_G_GetEnvelope(geometry, &box);
            if (extent_of_box(&box).is_known)
                add_box(&sum, &box);
        }
        OGR_F_Destroy(feature);
        n++;
    }
    OGR_L_ResetReading(source->layer);
    extent = extent_of_box(&sum);
    extent.is_sample = n == SAMPLE_ROWS;
    return extent;
}

/* In the layer's own CRS, where the driver has it at hand; all of a layer is
 * read for it only with force, else its first rows. */
static struct side_extent extent_of(const struct oj_source *source, int force)
{
    struct side_extent extent = {0, 0, 0, 0, 0, 0};
    OGREnvelope box;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    if (OGR_L_GetExtent(source->layer, &box, force) == OGRERR_NONE)
        extent = extent_of_box(&box);
    else if (can_sample(source))
        extent = sample_extent(source);
    CPLErrorReset();
    CPLPopErrorHandler();
    return extent;
}

/* In the CRS of the join; unknown where that is not possible. */
static struct side_extent
transformed(const struct side_extent *from,
            OGRCoordinateTransformationH transformation)
{
    struct side_extent to = *from;
    int done;
    if (transformation == NULL || !from->is_known)
        return to;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    done = OCTTransformBounds(transformation, from->x0, from->y0, from->x1,
                              from->y1, &to.x0, &to.y0, &to.x1, &to.y1, 21);
    CPLErrorReset();
    CPLPopErrorHandler();
    /* Across the antimeridian the bounds come with x0 > x1. */
    to.is_known = done && isfinite(to.x0) && isfinite(to.y0) &&
                  isfinite(to.x1) && isfinite(to.y1) && to.x0 <= to.x1;
    return to;
}

static struct side_extent swapped(const struct side_extent *from)
{
    struct side_extent to = {from->is_known, from->is_sample, from->y0,
                             from->x0,       from->y1,        from->x1};
    return to;
}

static double gap_between(const struct side_extent *a,
                          const struct side_extent *b)
{
    double dx = fmax(fmax(a->x0 - b->x1, b->x0 - a->x1), 0.0);
    double dy = fmax(fmax(a->y0 - b->y1, b->y0 - a->y1), 0.0);
    return hypot(dx, dy);
}

static int looks_like_degrees(const struct side_extent *e)
{
    return e->x0 >= -181 && e->x1 <= 361 && e->y0 >= -91 && e->y1 <= 91;
}

/* ---- layers that do not meet -------------------------------------------- */

static const char *unit_of(const struct oj_crs *crs)
{
    return crs->unit[0] != '\0' ? crs->unit : "unknown unit";
}

/* How far apart two features may be and still be a pair; INFINITY where that is
 * not known beforehand. */
static double reach_of(const struct oj_command *command,
                       const struct oj_crs *crs)
{
    if (command->op == OJ_OP_DISJOINT || command->max_distance_field != NULL ||
        command->join_max_distance_field != NULL ||
        command->metric == OJ_METRIC_SPHERE)
        return INFINITY;
    if ((oj_op_get((enum oj_op)command->op)->takes & OJ_TAKES_DISTANCE) != 0)
        return crs->max_distance;
    return 0.0;
}

/* Which of the two layers has its axes swapped, if that is what it looks
 * like. */
static void warn_of_axes(const struct oj_source *input,
                         const struct oj_source *join,
                         const struct side_extent *input_own,
                         const struct side_extent *join_own,
                         const struct side_extent *a,
                         const struct side_extent *b, double reach)
{
    struct side_extent other = swapped(input_own);
    struct side_extent a_swapped = transformed(&other, input->transformation);
    struct side_extent b_swapped;
    int input_fits, join_fits;
    other = swapped(join_own);
    b_swapped = transformed(&other, join->transformation);
    input_fits = a_swapped.is_known && gap_between(&a_swapped, b) <= reach;
    join_fits = b_swapped.is_known && gap_between(a, &b_swapped) <= reach;
    if (!input_fits && !join_fits)
        return;
    if (input_fits && join_fits)
        oj_warn("x and y look swapped in one of the two layers: so read, they "
                "would meet");
    else
        oj_warn("x and y look swapped in the %s layer '%s': so read, it would "
                "meet the other",
                input_fits ? input->role : join->role,
                input_fits ? input->name : join->name);
}

/* The usual reason is a CRS that is not what the layer says. */
static void warn_of_crs(const struct oj_source *source,
                        const struct side_extent *own,
                        const struct side_extent *other)
{
    if (!looks_like_degrees(own))
        return;
    if (source->srs != NULL && !OSRIsGeographic(source->srs))
        oj_warn("the coordinates of the %s layer '%s' look like degrees, but "
                "its CRS is not: if so, correct it with -%s EPSG:4326",
                source->role, source->name,
                source->role[0] == 'i' ? "s_srs" : "join_srs");
    else if (source->srs == NULL && !looks_like_degrees(other))
        oj_warn("the coordinates of the %s layer '%s' look like degrees, those "
                "of the other do not, and no CRS is known: name them with "
                "-s_srs and -join_srs",
                source->role, source->name);
}

static double width_of(const struct side_extent *e)
{
    return hypot(e->x1 - e->x0, e->y1 - e->y0);
}

/* The first rows may lie to one side of the others: only a gap that is wider
 * than all that was seen says something. */
static int is_telling(const struct side_extent *a, const struct side_extent *b,
                      double gap)
{
    return (!a->is_sample && !b->is_sample) || gap > width_of(a) + width_of(b);
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
    oj_warn("%s: input x %.8g to %.8g, y %.8g to %.8g; join x %.8g to %.8g, y "
            "%.8g to %.8g; "
            "nearest gap %g (%s)",
            so, a->x0, a->x1, a->y0, a->y1, b->x0, b->x1, b->y0, b->y1, gap,
            unit_of(crs));
}

static void
warn_of_gap(const struct oj_command *command, const struct oj_source *input,
            const struct side_extent *input_own, const struct oj_source *join,
            const struct side_extent *join_own, const struct oj_crs *crs)
{
    struct side_extent a = transformed(input_own, input->transformation);
    struct side_extent b = transformed(join_own, join->transformation);
    double reach = reach_of(command, crs), gap;
    if (!a.is_known || !b.is_known)
        return;
    gap = gap_between(&a, &b);
    if (gap <= 0.0 || !is_telling(&a, &b, gap))
        return;
    if (gap > reach)
        warn_of_no_match(&a, &b, gap, crs);
    else if (isfinite(reach) || command->op == OJ_OP_DISJOINT)
        return;
    warn_of_axes(input, join, input_own, join_own, &a, &b,
                 isfinite(reach) ? reach : 0.0);
    /* A box of -window is in the CRS of the join, whatever that is. */
    if (command->n_windows == 0 || input->srs != NULL)
        warn_of_crs(input, input_own, join_own);
    if (command->n_windows == 0)
        warn_of_crs(join, join_own, input_own);
}

/* ---- distances ---------------------------------------------------------- */

static void warn_of_distance(const struct oj_command *command,
                             const struct side_extent *own,
                             const struct oj_crs *crs)
{
    const struct oj_distance *d = &command->max_distance;
    double value = d->value;
    if (!oj_command_given(command, "max_distance") || value <= 0 ||
        isinf(value))
        return;
    if (d->unit == OJ_UNIT_DEG && value > 10)
        oj_warn("-max_distance %gdeg is a large part of the Earth; for metres "
                "use -metric sphere or -t_srs",
                value);
    if (d->unit != OJ_UNIT_CRS)
        return;
    if (crs->join != NULL && value < 0.1)
        oj_warn(
            "-max_distance %g is in the unit %s here, not in degrees; write "
            "%gm or %gft where so small a distance is meant",
            value, unit_of(crs), value, value);
    if (crs->join == NULL && value > 10 && own->is_known &&
        looks_like_degrees(own))
        oj_warn("the coordinates look like degrees, and no CRS is known: "
                "-max_distance %g is %g degrees then; with -s_srs EPSG:4326 "
                "-metric sphere it is in metres",
                value, value);
}

/* As ogr2ogr does, ogrjoin takes the first; which of them is meant no one can
 * see. */
static void note_columns(const struct oj_source *source)
{
    OGRFeatureDefnH defn =
        source->layer != NULL ? OGR_L_GetLayerDefn(source->layer) : NULL;
    if (defn == NULL || OGR_FD_GetGeomFieldCount(defn) < 2)
        return;
    oj_notice(
        "%s layer '%s' has %d geometry columns: '%s' is joined, the others "
        "are left out; -%s with a SELECT takes another one",
        source->role, source->name, OGR_FD_GetGeomFieldCount(defn),
        OGR_GFld_GetNameRef(OGR_FD_GetGeomFieldDefn(defn, 0)),
        source->role[0] == 'i' ? "sql" : "join_sql");
}

void oj_warn_early(const struct oj_command *command,
                   const struct oj_source *input, const struct oj_source *join,
                   const struct oj_crs *crs)
{
    struct side_extent input_own = extent_of(input, 0);
    struct side_extent join_own = extent_of(join, command->n_windows > 0);
    note_columns(input);
    note_columns(join);
    if ((oj_op_get((enum oj_op)command->op)->takes & OJ_TAKES_DISTANCE) != 0)
        warn_of_distance(command, &input_own, crs);
    warn_of_gap(command, input, &input_own, join, &join_own, crs);
}
