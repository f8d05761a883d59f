#include "oj_geodesic.h"

#include "../../../flatten/base/oj_alloc.h"

#ifdef OJ_PROJ

#include <geodesic.h>

struct oj_geodesic
{
    struct geod_geodesic series;
};

int oj_geodesic_is_available(void)
{
    return 1;
}

oj_status oj_geodesic_open(const struct oj_ellipsoid *ellipsoid,
                           struct oj_geodesic **out, struct oj_error *err)
{
    struct oj_geodesic *geodesic;
    if (!(fabs(ellipsoid->flattening) <= OJ_ELLIPSOID_MOST_FLATTENING))
        return oj_fail(err, OJ_ERR_ARG,
                       "the ellipsoid has a flattening of %g, and geodesics "
                       "are exact up to %g: use metric sphere",
                       ellipsoid->flattening, OJ_ELLIPSOID_MOST_FLATTENING);
    if (!oj_ellipsoid_is_usable(ellipsoid))
        return oj_fail(err, OJ_ERR_ARG,
                       "metric ellipsoid measures on the ellipsoid of a CRS, "
                       "and none is known: give the CRS with "
                       "ogrjoin_settings_use_crs(), or use metric sphere");
    OJ_NEW(geodesic, 1, err);
    geod_init(&geodesic->series, ellipsoid->semi_major, ellipsoid->flattening);
    *out = geodesic;
    return OJ_OK;
}

double oj_geodesic_metres(const struct oj_geodesic *geodesic, double longitude1,
                          double latitude1, double longitude2, double latitude2)
{
    double metres;
    geod_inverse(&geodesic->series, latitude1, longitude1, latitude2,
                 longitude2, &metres, NULL, NULL);
    return metres;
}

double oj_geodesic_bearing(const struct oj_geodesic *geodesic,
                           double longitude1, double latitude1,
                           double longitude2, double latitude2)
{
    double metres = NAN, degrees = NAN;
    if (isnan(longitude1) || isnan(longitude2))
        return (double)NAN;
    geod_inverse(&geodesic->series, latitude1, longitude1, latitude2,
                 longitude2, &metres, &degrees, NULL);
    if (!(metres > 0.0))
        return (double)NAN;
    if (degrees < 0.0)
        degrees += 360.0;
    return degrees < 360.0 ? fabs(degrees) : 0.0;
}

double oj_geodesic_azimuths(const struct oj_geodesic *geodesic,
                            double longitude1, double latitude1,
                            double longitude2, double latitude2,
                            double course[2])
{
    double metres;
    geod_inverse(&geodesic->series, latitude1, longitude1, latitude2,
                 longitude2, &metres, &course[0], &course[1]);
    return metres;
}

_Static_assert(sizeof(struct geod_geodesicline) <=
                   sizeof((struct oj_geodesic_line *)0)->series,
               "struct oj_geodesic_line has no room for the line of PROJ");

void oj_geodesic_line_make(const struct oj_geodesic *geodesic,
                           double longitude1, double latitude1,
                           double longitude2, double latitude2,
                           struct oj_geodesic_line *line)
{
    struct geod_geodesicline *series = (void *)line->series;
    line->metres = oj_geodesic_azimuths(geodesic, longitude1, latitude1,
                                        longitude2, latitude2, line->course);
    geod_lineinit(series, &geodesic->series, latitude1, longitude1,
                  line->course[0],
                  (unsigned)GEOD_LATITUDE | (unsigned)GEOD_LONGITUDE |
                      (unsigned)GEOD_AZIMUTH | (unsigned)GEOD_DISTANCE_IN);
}

struct oj_geodesic_point
oj_geodesic_line_at(const struct oj_geodesic_line *line, double metres)
{
    struct oj_geodesic_point point;
    geod_position((const void *)line->series, metres, &point.latitude,
                  &point.longitude, &point.course);
    return point;
}

#else

int oj_geodesic_is_available(void)
{
    return 0;
}

oj_status oj_geodesic_open(const struct oj_ellipsoid *ellipsoid,
                           struct oj_geodesic **out, struct oj_error *err)
{
    (void)ellipsoid;
    (void)out;
    return oj_fail(
        err, OJ_ERR_UNSUPPORTED,
        "metric ellipsoid needs geodesics, and this build of ogrjoin "
        "has none: use metric sphere, or a build with PROJ");
}

/* Never called: without PROJ, oj_geodesic_open() fails. */
double oj_geodesic_metres(const struct oj_geodesic *geodesic, double longitude1,
                          double latitude1, double longitude2, double latitude2)
{
    (void)geodesic;
    (void)longitude1;
    (void)latitude1;
    (void)longitude2;
    (void)latitude2;
    return (double)NAN;
}

double oj_geodesic_bearing(const struct oj_geodesic *geodesic,
                           double longitude1, double latitude1,
                           double longitude2, double latitude2)
{
    return oj_geodesic_metres(geodesic, longitude1, latitude1, longitude2,
                              latitude2);
}

double oj_geodesic_azimuths(const struct oj_geodesic *geodesic,
                            double longitude1, double latitude1,
                            double longitude2, double latitude2,
                            double course[2])
{
    course[0] = course[1] = (double)NAN;
    return oj_geodesic_metres(geodesic, longitude1, latitude1, longitude2,
                              latitude2);
}

void oj_geodesic_line_make(const struct oj_geodesic *geodesic,
                           double longitude1, double latitude1,
                           double longitude2, double latitude2,
                           struct oj_geodesic_line *line)
{
    line->metres = oj_geodesic_azimuths(geodesic, longitude1, latitude1,
                                        longitude2, latitude2, line->course);
}

struct oj_geodesic_point
oj_geodesic_line_at(const struct oj_geodesic_line *line, double metres)
{
    (void)line;
    (void)metres;
    return (struct oj_geodesic_point){(double)NAN, (double)NAN, (double)NAN};
}

#endif

void oj_geodesic_close(struct oj_geodesic *geodesic)
{
    oj_free(geodesic);
}
