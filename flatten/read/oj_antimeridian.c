#include "oj_antimeridian.h"

#include <cpl_conv.h>
#include <cpl_error.h>

#include <math.h>

/* The plane of a projection ends between two points 2 STEP degrees apart if
 * their images are more than LEAP times as far apart as those of two points
 * beside them. */
#define STEP 1e-6
#define LEAP 1e4

/* Distance of cut pieces from the antimeridian, as a fraction of a turn (0.1
 * mm), unless the antimeridian is opposite to the meridian 0. PROJ reduces
 * longitudes several times, so it can map a point exactly on the line to either
 * end of the plane; only 180 and -180 degrees from meridian 0 stay apart. */
#define GAP 2.5e-12

/* Maximum extent, in turns around the Earth, of a geometry that is cut. Real
 * data have far less. */
#define MOST_TURNS 64

/* Returns the distance between the images of (x0, y) and (x1, y); NaN if one of
 * the points has no image. */
static double
distance_after_transformation(OGRCoordinateTransformationH transformation,
                              double x0, double x1, double y)
{
    double x[2] = {x0, x1}, both[2] = {y, y};
    double dx, dy;
    int is_good[2] = {0, 0};
    (void)OCTTransformEx(transformation, 2, x, both, NULL, is_good);
    dx = x[1] - x[0];
    dy = both[1] - both[0];
    return is_good[0] && is_good[1] ? sqrt(dx * dx + dy * dy) : (double)NAN;
}

/* Returns the projection's central meridian in degrees; 0 if it has none. */
static double central_meridian(OGRSpatialReferenceH srs)
{
    static const char *const names[] = {
        "central_meridian", "longitude_of_center", "longitude_of_origin"};
    for (int i = 0; i < 3; i++)
    {
        OGRErr found = OGRERR_FAILURE;
        double value = OSRGetNormProjParm(srs, names[i], 0.0, &found);
        if (found == OGRERR_NONE)
            return value;
    }
    return 0.0;
}

static int is_crs_in_degrees(OGRSpatialReferenceH srs)
{
    return OSRIsGeographic(srs) &&
           fabs(OSRGetAngularUnits(srs, NULL) - 0.0174532925199433) < 1e-12;
}

/* For a transformation from degrees into a plane: sets `at` to the meridian
 * opposite to the central one, `turn` to 360, and is_torn to 1 if the plane
 * ends at this meridian. */
static void find_end_of_plane(OGRCoordinateTransformationH transformation,
                              struct oj_antimeridian *found)
{
    static const double latitudes[] = {0.0, 40.0, -40.0, 75.0, -75.0};
    found->turn = 360.0;
    found->at =
        central_meridian(OCTGetTargetCS(transformation)) + found->turn / 2.0;
    for (int i = 0; i < 5 && !found->is_torn; i++)
    {
        double at = found->at, y = latitudes[i];
        double across = distance_after_transformation(transformation, at - STEP,
                                                      at + STEP, y);
        double before = distance_after_transformation(
            transformation, at - 3 * STEP, at - STEP, y);
        found->is_torn = across > LEAP * before;
    }
}

/* For a transformation from a plane into degrees: sets `at` to the x of the
 * meridian of 180 degrees, `turn` to the width of 360 degrees, and is_torn to 1
 * if meridians are parallel lines x = const at equal distances, as in all
 * cylindrical projections. Otherwise sets is_curved to 1. */
static void find_end_of_degrees(OGRCoordinateTransformationH transformation,
                                struct oj_antimeridian *found)
{
    OGRCoordinateTransformationH inverse = OCTGetInverse(transformation);
    double x[9], y[9];
    int is_good[9] = {0}, is_straight = inverse != NULL;
    for (int i = 0; i < 9; i++)
    {
        x[i] = 180.0 - 10.0 * (i % 3); /* 180, 170, 160 degrees */
        y[i] = 40.0 * (i / 3 - 1);
    }
    if (inverse != NULL)
        (void)OCTTransformEx(inverse, 9, x, y, NULL, is_good);
    for (int i = 0; i < 9 && is_straight; i++)
    {
        double step = x[3] - x[4];
        is_straight = is_good[i] && step > 0.0 &&
                      fabs(x[i] - (x[3] - (i % 3) * step)) < 1e-6 * step;
    }
    found->is_torn = is_straight;
    found->is_curved = !is_straight;
    found->at = x[3];
    found->turn = 36.0 * (x[3] - x[4]);
    if (inverse != NULL)
        OCTDestroyCoordinateTransformation(inverse);
}

struct oj_antimeridian
oj_antimeridian_find(OGRCoordinateTransformationH transformation)
{
    struct oj_antimeridian found = {0};
    OGRSpatialReferenceH from, to;
    if (transformation == NULL)
        return found;
    from = OCTGetSourceCS(transformation);
    to = OCTGetTargetCS(transformation);
    if (from == NULL || to == NULL)
        return found;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    if (is_crs_in_degrees(from) && OSRIsProjected(to))
        find_end_of_plane(transformation, &found);
    else if (OSRIsProjected(from) && is_crs_in_degrees(to))
        find_end_of_degrees(transformation, &found);
    CPLErrorReset();
    CPLPopErrorHandler();
    return found;
}

/* Returns the x of the next antimeridian beyond x. Antimeridians repeat at
 * intervals of `turn`. */
static double
next_antimeridian_beyond(const struct oj_antimeridian *antimeridian, double x)
{
    const double at = antimeridian->at, turn = antimeridian->turn;
    return at + turn * (floor((x - at) / turn) + 1.0);
}

int oj_antimeridian_lies_between(const struct oj_antimeridian *antimeridian,
                                 double least, double greatest)
{
    return antimeridian->is_torn && isfinite(least) && isfinite(greatest) &&
           next_antimeridian_beyond(antimeridian, least) < greatest;
}

static OGRGeometryH make_rectangle(double x0, double x1, const OGREnvelope *box)
{
    OGRGeometryH ring = OGR_G_CreateGeometry(wkbLinearRing);
    OGRGeometryH polygon = OGR_G_CreateGeometry(wkbPolygon);
    double y0 = box->MinY - 1.0, y1 = box->MaxY + 1.0;
    OGR_G_AddPoint_2D(ring, x0, y0);
    OGR_G_AddPoint_2D(ring, x1, y0);
    OGR_G_AddPoint_2D(ring, x1, y1);
    OGR_G_AddPoint_2D(ring, x0, y1);
    OGR_G_AddPoint_2D(ring, x0, y0);
    OGR_G_AddGeometryDirectly(polygon, ring);
    return polygon;
}

static void shift_x_of_geometry(OGRGeometryH geometry, double by)
{
    const int n_members = OGR_G_GetGeometryCount(geometry);
    const int n_points = n_members > 0 ? 0 : OGR_G_GetPointCount(geometry);
    for (int i = 0; i < n_members; i++)
        shift_x_of_geometry(OGR_G_GetGeometryRef(geometry, i), by);
    for (int i = 0; i < n_points; i++)
    {
        double x, y, z, m;
        OGR_G_GetPointZM(geometry, i, &x, &y, &z, &m);
        if (OGR_G_Is3D(geometry))
            OGR_G_SetPoint(geometry, i, x + by, y, z);
        else
            OGR_G_SetPoint_2D(geometry, i, x + by, y);
    }
}

/* Adds piece, or the members of a collection, to `to` if they have this
 * dimension. Where a polygon only touches the meridian, the cut also returns
 * lines, which are dropped. */
static void add_pieces_of_dimension(OGRGeometryH to, OGRGeometryH piece,
                                    int dimension)
{
    if (OGR_GT_IsSubClassOf(OGR_G_GetGeometryType(piece),
                            wkbGeometryCollection))
        for (int i = 0; i < OGR_G_GetGeometryCount(piece); i++)
            add_pieces_of_dimension(to, OGR_G_GetGeometryRef(piece, i),
                                    dimension);
    else if (OGR_G_GetDimension(piece) == dimension && !OGR_G_IsEmpty(piece))
        OGR_G_AddGeometry(to, piece);
}

/* Cuts a line or polygon, or a multi-geometry of these, at the antimeridians,
 * and adds the pieces to `to`, each shifted into the turn that ends at
 * antimeridian->at. A geometry that crosses no antimeridian is added as it is.
 * Returns 0 if GDAL fails or if the geometry spans more than MOST_TURNS turns.
 */
static int cut_and_add_pieces(const struct oj_antimeridian *antimeridian,
                              OGRGeometryH to, OGRGeometryH geometry)
{
    const int dimension = OGR_G_GetDimension(geometry);
    const double turn = antimeridian->turn;
    const double gap =
        fabs(antimeridian->at - turn / 2.0) > 1e-9 * turn ? GAP * turn : 0.0;
    OGREnvelope box;
    double at;
    int is_good = 1, n_turns = 0;
    OGR_G_GetEnvelope(geometry, &box);
    if (dimension == 0 ||
        !oj_antimeridian_lies_between(antimeridian, box.MinX, box.MaxX))
    {
        add_pieces_of_dimension(to, geometry, dimension);
        return 1;
    }
    at = next_antimeridian_beyond(antimeridian, box.MinX) - turn;
    for (; at < box.MaxX && is_good; at += turn)
    {
        OGRGeometryH band = make_rectangle(at + gap, at + turn - gap, &box);
        OGRGeometryH piece = OGR_G_Intersection(geometry, band);
        is_good = piece != NULL && ++n_turns <= MOST_TURNS;
        if (is_good)
        {
            shift_x_of_geometry(piece, antimeridian->at - turn - at);
            add_pieces_of_dimension(to, piece, dimension);
        }
        OGR_G_DestroyGeometry(piece);
        OGR_G_DestroyGeometry(band);
    }
    return is_good;
}

OGRGeometryH oj_antimeridian_cut(const struct oj_antimeridian *antimeridian,
                                 OGRGeometryH geometry)
{
    OGRGeometryH plain = OGR_G_GetLinearGeometry(geometry, 0.0, NULL), out;
    const OGRwkbGeometryType type = wkbFlatten(OGR_G_GetGeometryType(plain));
    int is_good = 1;
    out = OGR_G_CreateGeometry(
        type == wkbGeometryCollection    ? wkbGeometryCollection
        : OGR_G_GetDimension(plain) == 1 ? wkbMultiLineString
                                         : wkbMultiPolygon);
    CPLPushErrorHandler(CPLQuietErrorHandler);
    if (type == wkbGeometryCollection)
        for (int i = 0; i < OGR_G_GetGeometryCount(plain) && is_good; i++)
            is_good = cut_and_add_pieces(antimeridian, out,
                                         OGR_G_GetGeometryRef(plain, i));
    else
        is_good = cut_and_add_pieces(antimeridian, out, plain);
    CPLErrorReset();
    CPLPopErrorHandler();
    is_good = is_good && !OGR_G_IsEmpty(out);
    OGR_G_DestroyGeometry(plain);
    if (is_good)
        return out;
    OGR_G_DestroyGeometry(out);
    return NULL;
}
