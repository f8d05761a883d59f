/** The exact DE-9IM matrix of a pair, and the name of its relation. */
#ifndef OJ_PAIR_MATRIX_H
#define OJ_PAIR_MATRIX_H

#include "../../geometry/relate/relate.h"

/** The features of the join side, prepared for matrices. Owner; zeroed memory
 * is a valid empty one. */
struct oj_pair_matrix_side
{
    const struct oj_flat *flat; /**< outlives this */
    _Atomic uint8_t *validity; /**< [n_features] results of oj_shape_is_valid(),
                                    filled in when first needed */
};

/** The last row and feature as shapes, reused by the next pair. One object per
 * thread; zeroed memory is valid. */
struct oj_pair_matrix_work
{
    struct oj_relate_scratch relate;
    struct oj_figure figure;
    int64_t row; /**< row whose shape is kept; -1: none */
    struct oj_shape shape;
    int row_is_valid;
    struct oj_shape other; /**< shape of the join feature used last */
};

OJ_MUST_USE oj_status oj_pair_matrix_side_make(struct oj_pair_matrix_side *side,
                                               const struct oj_flat *flat,
                                               struct oj_error *err);

void oj_pair_matrix_side_free(struct oj_pair_matrix_side *side);

/** Drops the cached shapes of work. Must be called before work is used with
 * another batch or join side. */
void oj_pair_matrix_forget_batch(struct oj_pair_matrix_work *work);

void oj_pair_matrix_work_free(struct oj_pair_matrix_work *work);

/** Finds the matrix of an input row and a feature of the side; both must have
 * parts. Costs as much as oj_shapes_relate(). cancel: nonzero ends the work
 * with OJ_ERR_CANCELLED. */
OJ_MUST_USE oj_status oj_pair_matrix_compute(
    struct oj_pair_matrix_side *side, const struct oj_flat *input, int64_t row,
    int64_t feature, const int *cancel, struct oj_pair_matrix_work *work,
    struct oj_matrix *matrix, struct oj_error *err);

/** Returns the index in OJ_PAIR_RELATIONS of the first relation that matrix
 * matches. */
int oj_pair_matrix_relation(const struct oj_matrix *matrix);

#endif
