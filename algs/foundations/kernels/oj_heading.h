/** Decides which directions fit a heading: they differ from it by at most a
 *  tolerance.
 *
 *  Directions are compared by the signs of cross products with the two bounds,
 *  heading - tolerance and heading + tolerance, so no angle of a segment is
 *  computed. The bounds come from a polynomial in this file, so results do not
 *  depend on the C library. Bounds at multiples of 45 degrees are exact. The
 *  tangents of all other rational angles are irrational, and coordinates are
 *  rational, so no segment has exactly the direction of a bound at such an
 *  angle.
 *
 *  Source: ours.
 */
#ifndef OJ_HEADING_H
#define OJ_HEADING_H

#include "oj_kernel.h"

/** Tolerance in degrees if the user gives none. */
#define OJ_HEADING_TOLERANCE 45.0

/** The condition of a join: only segments of the join side whose direction fits
 * the input feature's heading (struct oj_flat.heading) count. */
struct oj_heading_condition
{
    int is_asked;     /**< 0: no condition; the other members are ignored */
    int both_ways;    /**< 1: the reverse direction may fit instead */
    double tolerance; /**< degrees, 0 to 180 */
};

/** The directions that fit one heading. */
struct oj_heading_range
{
    /** Unit vectors of the bounds, clockwise from first to last. */
    double first_x, first_y, last_x, last_y;
    double degrees, tolerance; /**< the heading and its tolerance */
    int is_all;    /**< 1: there is no heading, so every segment fits */
    int is_wide;   /**< 1: more than half of all directions fit */
    int is_single; /**< 1: both bounds are one direction: the tolerance is 0 or
                        less than the rounding of the heading */
    int both_ways;
};

/** Returns 1 if degrees is a usable heading. NaN, infinite numbers and
 * magnitudes above 360 mean that there is no heading (ships report 511, for
 * example). */
OJ_FN int oj_heading_is_usable(double degrees)
{
    return degrees >= -360.0 && degrees <= 360.0;
}

/** Returns the value at u of a polynomial of degree 8 with coefficients c, from
 * the highest power down. */
OJ_FN double oj_heading_polynomial(const double c[9], double u)
{
    double sum = c[0];
    for (int i = 1; i < 9; i++)
        sum = c[i] + u * sum;
    return sum;
}

/** Computes sine and cosine of an angle from 0 to 45 degrees, by Taylor
 * polynomials whose next term is below 2^-53. */
OJ_FN void oj_heading_sine_cosine(double degrees, double *sine, double *cosine)
{
    const double t = degrees * 0.017453292519943295;
    const double of_sine[9] = {
        2.8114572543455206e-15, -7.647163731819816e-13, 1.6059043836821613e-10,
        -2.505210838544172e-08, 2.7557319223985893e-06, -0.0001984126984126984,
        0.008333333333333333,   -0.16666666666666666,   1.0};
    const double of_cosine[9] = {4.779477332387385e-14,
                                 -1.1470745597729725e-11,
                                 2.08767569878681e-09,
                                 -2.755731922398589e-07,
                                 2.48015873015873e-05,
                                 -0.001388888888888889,
                                 0.041666666666666664,
                                 -0.5,
                                 1.0};
    if (degrees == 45.0)
    {
        *sine = *cosine = 0.7071067811865476;
        return;
    }
    *sine = t * oj_heading_polynomial(of_sine, t * t);
    *cosine = oj_heading_polynomial(of_cosine, t * t);
}

/** Computes the unit vector of a direction in degrees clockwise from north
 * (+y). Range of degrees: -540 to 540. */
OJ_FN void oj_heading_vector(double degrees, double *x, double *y)
{
    double rest = degrees, sine, cosine;
    int quarter, is_steep;
    while (rest < 0.0)
        rest += 360.0;
    while (rest >= 360.0)
        rest -= 360.0;
    quarter = (int)(rest / 90.0);
    rest -= 90.0 * (double)quarter;
    is_steep = rest > 45.0;
    oj_heading_sine_cosine(is_steep ? 90.0 - rest : rest, &sine, &cosine);
    if (is_steep)
    {
        double swap = sine;
        sine = cosine;
        cosine = swap;
    }
    *x = quarter == 0   ? sine
         : quarter == 1 ? cosine
         : quarter == 2 ? -sine
                        : -cosine;
    *y = quarter == 0   ? cosine
         : quarter == 1 ? -sine
         : quarter == 2 ? -cosine
                        : sine;
}

/** Computes the range of directions that fit a heading, which is in degrees
 * clockwise from north (+y). */
OJ_FN struct oj_heading_range
oj_heading_range_of(const struct oj_heading_condition *condition,
                    double degrees)
{
    struct oj_heading_range r;
    double tolerance = condition->tolerance;
    r.degrees = degrees;
    r.tolerance = tolerance;
    r.both_ways = condition->both_ways;
    r.is_all = !oj_heading_is_usable(degrees);
    r.is_wide = tolerance > 90.0 || (tolerance == 90.0 && r.both_ways);
    r.is_single = 1;
    r.first_x = r.last_x = 0.0;
    r.first_y = r.last_y = 1.0;
    if (r.is_all)
        return r;
    oj_heading_vector(degrees - tolerance, &r.first_x, &r.first_y);
    oj_heading_vector(degrees + tolerance, &r.last_x, &r.last_y);
    r.is_single = r.first_x == r.last_x && r.first_y == r.last_y;
    return r;
}

/** Returns 1 if the direction (dx, dy) of a segment fits. A segment of length 0
 * has no direction and fits no heading. */
OJ_FN int oj_heading_fits(const struct oj_heading_range *r, double dx,
                          double dy)
{
    /* from > 0: (dx, dy) is clockwise of the first bound. to > 0: it is
     * counterclockwise of the last bound. */
    double from = dx * r->first_y - dy * r->first_x;
    double to = r->last_x * dy - r->last_y * dx;
    int fits, fits_back;
    if (r->is_all)
        return 1;
    if (dx == 0.0 && dy == 0.0)
        return 0;
    if (r->is_wide)
        return r->both_ways || r->tolerance >= 180.0 ||
               !(from < 0.0 && to < 0.0);
    fits = from >= 0.0 && to >= 0.0;
    fits_back = from <= 0.0 && to <= 0.0;
    if (r->is_single) /* The dot product distinguishes the two directions of
                         the line. */
    {
        double along = dx * r->first_x + dy * r->first_y;
        fits = fits && along > 0.0;
        fits_back = fits_back && along < 0.0;
    }
    return fits || (r->both_ways && fits_back);
}

#endif
