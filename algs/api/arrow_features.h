/** Geometries of Arrow arrays -> the arrays of a layer.
 *
 *  array 0 --slices, in parallel--> bufs --\
 *  array 1 --slices, in parallel--> bufs ---+--in parallel--> one layer
 *
 *  or, of one array that a layer can take as it is:
 *
 *  separated coordinates --> x, y in place, offsets as int64
 *  WKB of single points  --in parallel--> x, y
 */
#ifndef ARROW_FEATURES_H
#define ARROW_FEATURES_H

#include "arrow_schema.h"

/** Owner of the features of some arrays; zeroed memory is a valid empty one. */
struct arrow_features
{
    struct oj_flat_buf *slice; /**< in the order of the rows */
    int64_t n_slices, cap_slices;
    int64_t first_fid; /**< of the first row; FIDs are the numbers of rows */
    int64_t n_rows;

    struct oj_flat_buf made;  /**< what of flat is owned */
    struct ArrowArray in_use; /**< coordinates of flat; release NULL: none */
    int is_whole;             /**< flat is there, of one array */
    struct oj_flat flat;      /**< after arrow_features_end() */
};

/** Adds the rows of array, whose column has this layout.  In any case array is
 *  released or kept, and marked as released.  May use its coordinates in place
 *  where nothing else is added.  On failure features can only be freed. */
OJ_MUST_USE oj_status arrow_features_add(struct arrow_features *features,
                                         const struct arrow_layout *layout,
                                         struct ArrowArray *array,
                                         int n_threads, const int *cancel,
                                         struct oj_error *err);

/** Makes features->flat. Its FIDs are the row numbers, or NULL for these. */
OJ_MUST_USE oj_status arrow_features_end(struct arrow_features *features,
                                         int n_threads, struct oj_error *err);

void arrow_features_free(struct arrow_features *features);

#endif
