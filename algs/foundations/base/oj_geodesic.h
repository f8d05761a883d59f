/** Shortest lines on an ellipsoid: their length and direction, by
 * geod_inverse() of PROJ (C. F. F. Karney, Algorithms for geodesics, J. Geodesy
 * 87, 2013), which is exact to 15 nm on the Earth.  A build without PROJ cannot
 * compute them (see oj_geodesic_is_available()).
 *
 *  Coordinates are longitude and latitude in degrees.  Longitudes are taken
 *  modulo 360.  Results depend on the arguments only, so they are equal on all
 *  threads and in all batches.
 */
#ifndef OJ_GEODESIC_H
#define OJ_GEODESIC_H

#include "../../../flatten/base/oj_status.h"
#include "../kernels/oj_ellipsoid.h"

/** An ellipsoid with the coefficients of PROJ's series. Threads may share it.
 */
struct oj_geodesic;

/** Returns 1 if this build can compute geodesics, 0 if it was made without
 *  PROJ. */
int oj_geodesic_is_available(void);

/** Prepares an ellipsoid. Errors: OJ_ERR_UNSUPPORTED in a build without PROJ,
 * OJ_ERR_ARG if oj_ellipsoid_is_usable() is 0. */
OJ_MUST_USE oj_status oj_geodesic_open(const struct oj_ellipsoid *ellipsoid,
                                       struct oj_geodesic **out,
                                       struct oj_error *err);

/** Frees the ellipsoid, which may be NULL. */
void oj_geodesic_close(struct oj_geodesic *geodesic);

/** Returns the length in metres of the shortest line from point 1 to point 2.
 * Latitudes are within 90 degrees. */
double oj_geodesic_metres(const struct oj_geodesic *geodesic, double longitude1,
                          double latitude1, double longitude2,
                          double latitude2);

/** Returns the direction at point 1 of the shortest line to point 2, in degrees
 * clockwise from north, in [0, 360). At a pole, the longitude of point 1
 * defines north. NaN if the points are equal or a coordinate is NaN. Antipodal
 * points have many shortest lines, of which PROJ chooses one. */
double oj_geodesic_bearing(const struct oj_geodesic *geodesic,
                           double longitude1, double latitude1,
                           double longitude2, double latitude2);

/** Returns the length in metres of the shortest line from point 1 to point 2.
 *  course[0], course[1]: directions of the line at point 1 and at point 2, in
 *  degrees clockwise from north, from -180 to 180. If the points are equal, the
 *  directions have no meaning. */
double oj_geodesic_azimuths(const struct oj_geodesic *geodesic,
                            double longitude1, double latitude1,
                            double longitude2, double latitude2,
                            double course[2]);

/** The shortest line between two points, to find points on it. Plain data. */
struct oj_geodesic_line
{
    double metres;     /**< length of the line */
    double course[2];  /**< directions of the line at its ends, in degrees */
    double series[80]; /**< the memory of a struct geod_geodesicline of PROJ */
};

void oj_geodesic_line_make(const struct oj_geodesic *geodesic,
                           double longitude1, double latitude1,
                           double longitude2, double latitude2,
                           struct oj_geodesic_line *line);

/** A point of a line, and the line's direction there, in degrees. */
struct oj_geodesic_point
{
    double longitude, latitude, course; /**< longitude and course from -180 to
                                             180 */
};

/** Returns the point at the distance `metres` from the start of the line,
 * measured along the line. */
struct oj_geodesic_point
oj_geodesic_line_at(const struct oj_geodesic_line *line, double metres);

#endif
