/** Distances as a person writes them: 100, 100ft, 0.5mi, 2.5km, 0.01deg; and
 *  amounts of memory: 100000, 512M, 4G, 1.5GB. */
#ifndef OJ_UNIT_H
#define OJ_UNIT_H

#include "../../flatten/base/oj_status.h"

#include <stdint.h>

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

/** Reads text, which option (for the error text) was given. "inf" is
 *  unbounded. */
OJ_MUST_USE oj_status oj_distance_parse(const char *text, const char *option,
                                        struct oj_distance *out,
                                        struct oj_error *err);

/** 1 and the bytes, at least 1, or 0 where text is no such amount. K, M, G and
 *  T are powers of 1024. */
int oj_size_parse(const char *text, int64_t *bytes);

#ifdef __cplusplus
}
#endif
#endif
