/** Distances as a person writes them: 100, 100ft, 0.5mi, 2.5km, 0.01deg. */
#ifndef OJ_DISTANCE_UNIT_H
#define OJ_DISTANCE_UNIT_H

#include "../../../flatten/base/oj_status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum oj_unit
{
    OJ_UNIT_CRS = 0, /**< none was written: units of the CRS of the join */
    OJ_UNIT_M,
    OJ_UNIT_KM,
    OJ_UNIT_FT,    /**< international foot */
    OJ_UNIT_US_FT, /**< US survey foot */
    OJ_UNIT_MI,    /**< statute mile */
    OJ_UNIT_DEG,   /**< degree: geographic CRS only */
    OJ_N_UNITS
};

struct oj_distance
{
    double value; /**< >= 0; INFINITY: unbounded */
    enum oj_unit unit;
};

/** By enum oj_unit. */
extern const struct oj_unit_row
{
    const char *name; /**< "us-ft"; "" for OJ_UNIT_CRS */
    double size;      /**< metres; radians for deg */
} oj_units[OJ_N_UNITS];

/** The unit of a name (without case), or -1. */
int oj_unit_find(const char *name);

/** Reads text, which option was given: its name, with dash before it in
 *  messages.  "inf" is unbounded. */
OJ_MUST_USE oj_status oj_distance_parse(const char *dash, const char *option,
                                        const char *text,
                                        struct oj_distance *out,
                                        struct oj_error *err);

/** The unit of a field of distances, "F:km", whose word for it is unit; written
 *  is the whole. */
OJ_MUST_USE oj_status oj_distance_unit_read(const char *dash,
                                            const char *option,
                                            const char *written,
                                            const char *unit, enum oj_unit *out,
                                            struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
