/** The CRS of a join, of those that its sides have, and what the distances of
 *  settings are in it. */
#ifndef API_JOIN_CRS_H
#define API_JOIN_CRS_H

#include "../rows/oj_distance_scale.h"
#include "api_settings.h"

/** The CRS of a side. */
struct api_side_crs
{
    const char *words;      /**< as they came, or NULL: none */
    struct oj_crs_text crs; /**< what oj_crs_text_read() made of them */
    int has_shapes;         /**< 0: the side has no geometries to be in it */
};

/** *out: that of the left side, or else that of the right one. A notice where
 *  one side has none; OJ_ERR_ARG: they have two, or whether they have is not
 *  known, unless the setting crs is ignore. */
OJ_MUST_USE oj_status api_join_crs_choose(const struct ogrjoin_settings *s,
                                          const struct api_side_crs *left,
                                          const struct api_side_crs *right,
                                          struct oj_crs_text *out,
                                          struct oj_error *err);

/** In what distances are measured; borrows crs. */
struct oj_distance_frame api_join_crs_frame(const struct ogrjoin_settings *s,
                                            const struct oj_crs_text *crs);

/** Sets the distances of s->relation to those that were given, in the unit of
 *  the frame. OJ_ERR_ARG: one that is refused. */
OJ_MUST_USE oj_status api_join_crs_convert(
    struct ogrjoin_settings *s, const struct oj_distance_frame *frame,
    struct oj_error *err);

#endif
