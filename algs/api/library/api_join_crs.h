/** Chooses the CRS of a join from the CRS of its sides, and converts distances
 * to its unit. */
#ifndef API_JOIN_CRS_H
#define API_JOIN_CRS_H

#include "../rows/oj_distance_scale.h"
#include "api_settings.h"

/** The CRS of a side. */
struct api_side_crs
{
    const char *words;      /**< text of the CRS, from the user or the data;
                                 NULL: none */
    struct oj_crs_text crs; /**< result of oj_crs_text_read() */
    int has_shapes;         /**< 0: the side has no geometries, so its CRS does
                                 not matter */
};

/** Sets *out to the CRS of the left side, or of the right side if the left has
 * none. Sends a notice if one side has none. Fails with OJ_ERR_ARG if the two
 * differ or cannot be compared, or if *out is geocentric, unless the setting
 * crs is ignore. */
OJ_MUST_USE oj_status api_join_crs_choose(const struct ogrjoin_settings *s,
                                          const struct api_side_crs *left,
                                          const struct api_side_crs *right,
                                          struct oj_crs_text *out,
                                          struct oj_error *err);

/** Returns the unit and kind of the CRS, for the conversion of distances;
 * borrows crs. */
struct oj_distance_frame
api_join_crs_distance_frame(const struct ogrjoin_settings *s,
                            const struct oj_crs_text *crs);

/** Converts the distances of the settings to the unit of the frame and stores
 * them in s->relation. Fails with OJ_ERR_ARG if a distance cannot be
 * converted. */
OJ_MUST_USE oj_status api_join_crs_convert_distances(
    struct ogrjoin_settings *s, const struct oj_distance_frame *frame,
    struct oj_error *err);

#endif
