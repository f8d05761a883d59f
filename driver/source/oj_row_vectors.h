/** The vectors of -vector: numbers of a row, from fields or from one list.
 *
 *   -vector price:0.001+area=PRICE+AREA     (0.001 price, area)
 *   -vector emb                             a list, or a text as "[0.1, 2]",
 *                                           which is how GeoPackage keeps lists
 *
 *  A weight multiplies both sides before anything else.  As many dimensions as
 *  fields, or as the first list of the side whose rows are inserted.  Not a
 *  vector: one with a NULL, a NaN or a number beyond OJ_FLAT_MOST, a list of
 *  another length, and for a cosine one whose squared length is below DBL_MIN.
 */
#ifndef OJ_ROW_VECTORS_H
#define OJ_ROW_VECTORS_H

#include "../../algs/relation/oj_vector_condition.h"
#include "../../flatten/arrays/oj_flat.h"
#include "oj_classes.h"

struct oj_row_vectors;

/** fields  [n] of the input and of the join layer, n of OJ_MOST_DIMENSIONS at
 *          most; where n is 1 they may hold lists
 *  weight  [n] */
OJ_MUST_USE oj_status
oj_row_vectors_new(const struct oj_class_field *const fields[2], int n,
                   const double *weight, enum oj_vector_norm norm,
                   struct oj_row_vectors **out, struct oj_error *err);

/** Sets flat->vectors, which borrows *value, for its rows.
 *  insert      enum oj_insertion: the rows say how many dimensions there
 *              are
 *  *n_without  rows without a vector are added to it
 *  OJ_ERR_DATA: the first list is longer than OJ_MOST_DIMENSIONS. */
OJ_MUST_USE oj_status oj_row_vectors_make(
    struct oj_row_vectors *vectors, int side, int insert,
    const struct oj_row_values *values, double **value, int64_t *capacity,
    struct oj_flat *flat, int64_t *n_without, struct oj_error *err);

/** There are so many dimensions: for who inserts no rows. Accepts NULL. */
void oj_row_vectors_use(struct oj_row_vectors *vectors, int64_t n_dimensions);

/** Accepts NULL. */
void oj_row_vectors_free(struct oj_row_vectors *vectors);

#endif
