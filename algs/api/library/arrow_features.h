/** Converts geometries of Arrow arrays to the arrays of a layer.
 *
 *  All arrays are kept until the last was added. Then their rows are read by
 *  all threads, in the first of these ways that is possible for all rows:
 *
 *  separated coordinates, one array --> x, y in place, offsets as int64
 *  WKB of single points, 2-D        --> x, y
 *  WKB of plain lines and polygons  --counts, scan--> the layer's arrays
 *  all else                         --bufs--> the layer's arrays
 */
#ifndef ARROW_FEATURES_H
#define ARROW_FEATURES_H

#include "../../foundations/base/oj_reach_mask.h"
#include "../arrow/arrow_schema.h"
#include "../arrow/oj_arrow_iso_wkb.h"

/** The part of the plane in which features can have pairs. A feature whose
 * envelope lies outside of it is read without parts. This saves its conversion
 * and search where the join side is small or far away: 150,000 zones joined
 * with a box take a third of the time. Owner; the caller zeroes it and sets
 * join_side. */
struct arrow_reach
{
    const struct oj_flat *join_side; /**< layer that the features are joined
                                          with; a pair must have a point in
                                          common */
    struct oj_reach_mask mask;       /**< made when the first features are
                                          read */
    int is_made;
};

/** The features of a sequence of arrays. Owner; zeroed memory is a valid empty
 * value. */
struct arrow_features
{
    struct arrow_held *held; /**< the arrays, in the order of the rows */
    int64_t n_held, cap_held;
    int64_t first_fid; /**< FID of the first row; FIDs are row numbers */
    int64_t n_rows;

    struct oj_flat_buf made; /**< the arrays of flat that this struct owns */
    struct oj_flat flat;     /**< valid after arrow_features_make_layer() */
    int keeps_m; /**< 1: flat gets the M values of vertices, if there are any;
                      set before arrow_features_make_layer() */
    struct oj_arrow_srid srid;  /**< SRID of the first WKB geometry, or 0 of
                                     coordinates; it may be set before, to that
                                     of previous rows */
    struct oj_arrow_srid other; /**< first WKB geometry with another SRID;
                                     is_found 0: there is none */
    struct arrow_reach
        *reach; /**< where features can have pairs; NULL:
                     anywhere; set before arrow_features_make_layer() */
};

/** Appends the rows of array, whose geometry column has this layout. layout
 * must stay valid until arrow_features_make_layer(). array is moved, also on
 * failure. After a failure, features can only be freed. */
OJ_MUST_USE oj_status arrow_features_add(struct arrow_features *features,
                                         const struct arrow_layout *layout,
                                         struct ArrowArray *array,
                                         struct oj_error *err);

/** Makes features->flat. FIDs are row numbers from first_fid on; flat.fid may
 * be NULL, since they can be computed. */
OJ_MUST_USE oj_status arrow_features_make_layer(struct arrow_features *features,
                                                int n_threads,
                                                const int *cancel,
                                                struct oj_error *err);

/** Sets *srid to the SRID of the first geometry of an array, to 0 if it has no
 * SRID, or to -1 if the array has no geometry.  Coordinates have no SRID. */
OJ_MUST_USE oj_status arrow_features_first_srid(
    const struct arrow_layout *layout, const struct ArrowArray *array,
    int64_t *srid, struct oj_error *err);

void arrow_features_free(struct arrow_features *features);

#endif
