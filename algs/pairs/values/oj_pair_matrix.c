#include "oj_pair_matrix.h"

#include "../../../flatten/arrays/oj_pair_values.h"
#include "../../../flatten/base/oj_alloc.h"

#include <string.h>

enum validity
{
    NOT_KNOWN,
    NOT_VALID,
    VALID
};

oj_status oj_pair_matrix_side_make(struct oj_pair_matrix_side *side,
                                   const struct oj_flat *flat,
                                   struct oj_error *err)
{
    oj_pair_matrix_side_free(side);
    OJ_NEW_ZEROED(side->validity, flat->n_features + 1, err);
    side->flat = flat;
    return OJ_OK;
}

void oj_pair_matrix_side_free(struct oj_pair_matrix_side *side)
{
    oj_free((void *)side->validity);
    memset(side, 0, sizeof *side);
}

void oj_pair_matrix_forget_batch(struct oj_pair_matrix_work *work)
{
    oj_relate_scratch_forget_layers(&work->relate);
    oj_relate_figure_forget_layer(&work->figure);
    work->row = -1;
}

void oj_pair_matrix_work_free(struct oj_pair_matrix_work *work)
{
    oj_relate_scratch_free(&work->relate);
    oj_relate_figure_free(&work->figure);
    memset(work, 0, sizeof *work);
}

static oj_status cache_shape_of_row(struct oj_pair_matrix_work *work,
                                    const struct oj_flat *input, int64_t row,
                                    struct oj_error *err)
{
    if (work->row == row)
        return OJ_OK;
    work->row = -1;
    work->shape = oj_shape_of(input, row);
    OJ_TRY(oj_shape_is_valid(&work->shape, &work->figure, &work->relate.node,
                             &work->row_is_valid, err));
    work->row = row;
    return OJ_OK;
}

/* Sets *is_valid to the cached validity of a feature, computed on first use.
 * Two threads may compute it at once; both store equal values. */
static oj_status find_validity(struct oj_pair_matrix_side *side,
                               struct oj_pair_matrix_work *work,
                               int64_t feature, int *is_valid,
                               struct oj_error *err)
{
    _Atomic uint8_t *known = &side->validity[feature];
    uint8_t validity = atomic_load_explicit(known, memory_order_relaxed);
    if (validity == NOT_KNOWN)
    {
        OJ_TRY(oj_shape_is_valid(&work->other, &work->figure,
                                 &work->relate.node, is_valid, err));
        validity = *is_valid ? VALID : NOT_VALID;
        atomic_store_explicit(known, validity, memory_order_relaxed);
    }
    *is_valid = validity == VALID;
    return OJ_OK;
}

oj_status oj_pair_matrix_compute(struct oj_pair_matrix_side *side,
                                 const struct oj_flat *input, int64_t row,
                                 int64_t feature, const int *cancel,
                                 struct oj_pair_matrix_work *work,
                                 struct oj_matrix *matrix, struct oj_error *err)
{
    int is_valid;
    OJ_TRY(cache_shape_of_row(work, input, row, err));
    work->other = oj_shape_of(side->flat, feature);
    OJ_TRY(find_validity(side, work, feature, &is_valid, err));
    return oj_shapes_relate(NULL, &work->shape, work->row_is_valid,
                            &work->other, is_valid, cancel, &work->relate,
                            matrix, err);
}

int oj_pair_matrix_relation(const struct oj_matrix *matrix)
{
    static const char *const names[] = {OJ_PAIR_RELATIONS};
    const int n = (int)(sizeof names / sizeof *names);
    struct oj_relation relation = oj_relation_default();
    for (int i = 0; i < n; i++)
    {
        relation.op = (enum oj_op)oj_op_find(names[i]);
        if (oj_matrix_satisfies_relation(matrix, &relation))
            return i;
    }
    return n - 1;
}
