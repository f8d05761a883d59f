/** Distances with units as users write them: 100, 100ft, 0.5mi, 2.5km, 0.01deg.
 */
#ifndef OJ_DISTANCE_UNIT_H
#define OJ_DISTANCE_UNIT_H

#include "../../../flatten/base/oj_status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum oj_unit
{
    OJ_UNIT_CRS = 0, /**< no unit was given: the unit of the CRS of the join */
    OJ_UNIT_M,
    OJ_UNIT_KM,
    OJ_UNIT_FT,    /**< international foot */
    OJ_UNIT_US_FT, /**< US survey foot */
    OJ_UNIT_MI,    /**< statute mile */
    OJ_UNIT_DEG,   /**< degree, for geographic CRS only */
    OJ_N_UNITS
};

struct oj_distance
{
    double value; /**< >= 0; INFINITY: no limit */
    enum oj_unit unit;
};

/** Table of units, indexed by enum oj_unit. */
extern const struct oj_unit_row
{
    const char *name; /**< name that users write, as "us-ft"; "" for
                           OJ_UNIT_CRS */
    double size;      /**< size in metres; size of a degree in radians */
} oj_units[OJ_N_UNITS];

/** Returns the unit with this name, ignoring case, or -1 if there is none. */
int oj_unit_find(const char *name);

/** Parses text, the value of an option; dash and option are for messages. "inf"
 * means no limit. */
OJ_MUST_USE oj_status oj_distance_parse(const char *dash, const char *option,
                                        const char *text,
                                        struct oj_distance *out,
                                        struct oj_error *err);

/** Parses the name of a field with distances, the value of an option: F, F:km,
 *  or either with F in double quotes.  Without a unit *unit is OJ_UNIT_CRS.
 *  has_field  returns 1 if there is a field of this name; a colon in the name
 *             then does not start a unit
 *  name       output, at least strlen(word) + 1 bytes */
OJ_MUST_USE oj_status oj_distance_field_parse(
    const char *dash, const char *option, const char *word,
    int (*has_field)(const void *user, const char *name), const void *user,
    char *name, enum oj_unit *unit, struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
