/** Geometries of Arrow arrays -> the arrays of a layer.
 *
 *  All arrays are kept until the last has come. Then pieces of their rows are
 *  read on all threads, in the first of these ways that fits all rows:
 *
 *  separated coordinates, one array --> x, y in place, offsets as int64
 *  WKB of single points, 2-D        --> x, y
 *  WKB of plain lines and polygons  --counts, scan--> the layer's arrays
 *  all else                         --bufs--> the layer's arrays
 */
#ifndef ARROW_FEATURES_H
#define ARROW_FEATURES_H

#include "../arrow/arrow_schema.h"

/** Releases an array; accepts a released one. */
static inline void arrow_array_release(struct ArrowArray *array)
{
    if (array->release != NULL)
        array->release(array);
    array->release = NULL;
}

/** The features of some arrays. Owner; zeroed memory is a valid empty one. */
struct arrow_features
{
    struct arrow_held *held; /**< in the order of the rows */
    int64_t n_held, cap_held;
    int64_t first_fid; /**< FID of the first row; FIDs are row numbers */
    int64_t n_rows;

    struct oj_flat_buf made; /**< arrays of flat that are owned */
    struct oj_flat flat;     /**< valid after arrow_features_end() */
};

/** Adds the rows of array, whose column has this layout; layout must stay valid
 * until arrow_features_end(). array is moved, also on failure. After a failure
 * features can only be freed. */
OJ_MUST_USE oj_status arrow_features_add(struct arrow_features *features,
                                         const struct arrow_layout *layout,
                                         struct ArrowArray *array,
                                         struct oj_error *err);

/** Makes features->flat. FIDs are the row numbers; flat.fid may be NULL, which
 * stands for them. */
OJ_MUST_USE oj_status arrow_features_end(struct arrow_features *features,
                                         int n_threads, const int *cancel,
                                         struct oj_error *err);

void arrow_features_free(struct arrow_features *features);

#endif
