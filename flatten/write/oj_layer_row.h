/** The geometry of the row that the layer writer is about to write. */
#ifndef OJ_LAYER_ROW_H
#define OJ_LAYER_ROW_H

#include "../arrays/oj_flat.h"
#include "../read/oj_attributes.h"
#include "../read/oj_batch.h"

/** Owns nothing. */
struct oj_row_geometry
{
    OGRFeatureH feature;  /**< of the row; the same for all rows */
    int promote_to_multi; /**< 1: single shapes become multi */
    int multi_shapes;     /**< 1: the same for those made from arrays */
    int64_t n_without;    /**< rows whose geometry is NULL or empty */
};

/* fid: of the feature it comes from, for messages. */

/** As the reader gave it, Z and M kept. */
OJ_MUST_USE oj_status oj_row_geometry_set_batch(struct oj_row_geometry *g,
                                                const struct oj_batch *batch,
                                                int64_t row,
                                                struct oj_error *err);

/** Of a feature of a flat layer. */
OJ_MUST_USE oj_status oj_row_geometry_set_flat(struct oj_row_geometry *g,
                                               const struct oj_flat *flat,
                                               int64_t feature, int64_t fid,
                                               struct oj_error *err);

OJ_MUST_USE oj_status oj_row_geometry_set_point(struct oj_row_geometry *g,
                                                double x, double y, int64_t fid,
                                                struct oj_error *err);

/** A line of two points, which may be equal. */
OJ_MUST_USE oj_status oj_row_geometry_set_line(struct oj_row_geometry *g,
                                               double x0, double y0, double x1,
                                               double y1, int64_t fid,
                                               struct oj_error *err);

OJ_MUST_USE oj_status oj_row_geometry_set_null(struct oj_row_geometry *g,
                                               struct oj_error *err);

#endif
