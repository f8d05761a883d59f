/** Joins of points in device memory, whose answers stay there. Internal parts
 *  of the module's functions for resident points. */
#ifndef CUDA_RESIDENT_POINTS_H
#define CUDA_RESIDENT_POINTS_H

#include "cuda_index.h"

struct oj_cuda_work;

/** Returns the join side's index on the first device, of the family that
 *  oj_cuda_index_chosen_family() names for this join. Fails with
 *  OJ_ERR_UNSUPPORTED if there is none. */
OJ_MUST_USE oj_status oj_cuda_resident_choose_index(
    const struct oj_gpu_index *index, const struct oj_cuda_index **out,
    struct oj_error *err);

/** Converts points for the families. Copies, which are needed if points are not
 *  contiguous, belong to *work. Fails with OJ_ERR_UNSUPPORTED if the join needs
 *  columns other than FIDs, or FIDs that points does not have. */
OJ_MUST_USE oj_status oj_cuda_resident_prepare_points(
    const struct oj_gpu_index *index, struct oj_cuda_work *work,
    const struct oj_gpu_points *points, struct oj_cuda_points *out);

/** Joins with one answer per point; d_measure may be NULL. Fails with
 *  OJ_ERR_UNSUPPORTED if the join allows several pairs per point. */
OJ_MUST_USE oj_status oj_cuda_resident_join_one_per_point(
    const struct oj_cuda_index *of, struct oj_cuda_work *work,
    const struct oj_cuda_points *points, int32_t *d_row, double *d_measure);

#endif
